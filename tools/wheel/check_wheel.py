"""Checks a wheel: size, tag, libraries and glibc symbols that its module needs, what it exports, and what it ships.

    check_wheel.py WHEEL GLIBC ARCHITECTURE

Ends with 1, after a line for each fault.
"""

import io
import pathlib
import re
import subprocess
import sys
import zipfile

from elftools.elf.elffile import ELFFile

SIZE_MAX = 25_000_000
# Of glibc alone: the loader, and the libraries that it once was split into.
NEEDED = re.compile(r"^(libc\.so\.6|lib(m|dl|pthread|rt)\.so\.\d|ld-linux-.*)$")
SHIPPED = ["cogpu/__init__.py", "cogpu/py.typed", "cogpu/_cogpu.abi3.so", "cogpu/data/proj.db"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def version(text):
    return tuple(map(int, text.split(".")))


def module_faults(data, glibc):
    elf = ELFFile(io.BytesIO(data))
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags():
        if tag.entry.d_tag == "DT_NEEDED" and not NEEDED.match(tag.needed):
            yield f"the module needs {tag.needed}"
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            yield "the module has an rpath"
    for library, symbols in elf.get_section_by_name(".gnu.version_r").iter_versions():
        for symbol in symbols:
            found = re.fullmatch(r"GLIBC_([\d.]+)", symbol.name)
            if not found or version(found.group(1)) > version(glibc):
                yield f"the module needs {symbol.name} of {library.name}"
    exported = [symbol.name for symbol in elf.get_section_by_name(".dynsym").iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"]
    if exported != ["PyInit__cogpu"]:
        yield f"the module exports {', '.join(exported[:10])}"
    if str(ROOT).encode() in data:
        yield "the module contains paths of the build machine"


def faults(path, glibc, architecture):
    size = path.stat().st_size
    tag = f"manylinux_{glibc.replace('.', '_')}_{architecture}"
    if size > SIZE_MAX:
        yield f"{size} bytes, more than {SIZE_MAX}"
    if not path.name.endswith(f"-cp311-abi3-{tag}.whl"):
        yield "the name lacks the tag"
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        for name in SHIPPED:
            if name not in names:
                yield f"{name} is missing"
        if not any("/licenses/libraries/" in name for name in names):
            yield "the licences of the libraries are missing"
        yield from module_faults(wheel.read("cogpu/_cogpu.abi3.so"), glibc)
    shown = subprocess.run(["auditwheel", "show", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(shown.stdout)
    if tag not in shown.stdout:
        yield f"auditwheel does not confirm {tag}"


def main():
    path, glibc, architecture = sys.argv[1:]
    found = list(faults(pathlib.Path(path), glibc, architecture))
    for fault in found:
        print(f"{path}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
