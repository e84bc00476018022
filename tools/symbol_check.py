#!/usr/bin/env python3
"""Checks the names that the libraries show to the world.

Takes the shared library, the static library and the headers, and the module of the Python package where it
was built; prints one line for each offence, and ends with 1 if there is any. A shared library exports
what the headers declare and nothing else; a static one cannot hide its inner names, so all of them begin
with cogpu_. The module exports what Python calls, and asks of Python no more than the limited API has.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What linkers and sanitizers add to every shared library, and the compiler of C++ to an object that catches exceptions.
NOT_OURS = re.compile(r"_init$|_fini$|_edata$|_end$|__bss_start$|__(asan|ubsan|odr_asan|sancov)\w*|DW\.ref\.\w+$")

# Functions behind macros of Python's limited API.
LIMITED_API_INNER = {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_Dealloc", "_PyObject_New"}


def defined_symbols(path, *flags):
    output = subprocess.run(["nm", "--defined-only", "--extern-only", *flags, path],
                            capture_output=True,
                            text=True, check=True).stdout
    names = {line.split()[-1] for line in output.splitlines() if len(line.split()) == 3}
    return {name.split("@")[0] for name in names if not NOT_OURS.match(name)}


def declared(headers):
    code = re.sub(r"/\*.*?\*/", " ", "".join(header.read_text() for header in headers), flags=re.S)
    return set(re.findall(r"COGPU_API[^;]*?\b(cogpu_\w+)\s*\(", code))


def check(shared, static, headers):
    public = declared(headers)
    exported = defined_symbols(shared, "--dynamic")
    for name in sorted(exported - public):
        yield f"{shared.name} exports {name}, which no header declares"
    for name in sorted(public - exported):
        yield f"a header declares {name}, which {shared.name} does not export"
    for name in sorted(defined_symbols(static)):
        if not name.startswith("cogpu_"):
            yield f"{static.name} defines {name}, which does not begin with cogpu_"


def check_module(module):
    for name in sorted(defined_symbols(module, "--dynamic") - {"PyInit__cogpu"}):
        yield f"{module.name} exports {name}"
    output = subprocess.run(["nm", "--undefined-only", "--dynamic", module], capture_output=True, text=True,
                            check=True).stdout
    for name in sorted(re.findall(r"U (_Py\w+)", output)):
        if name not in LIMITED_API_INNER:
            yield f"{module.name} needs {name}, which is not in Python's limited API"


def check_structs():
    """Two structs of one name confuse readers and debuggers, although no file sees both."""
    places = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".c", ".h", ".cu"):
            for name in re.findall(r"^\s*(?:typedef )?struct (\w+) \{", path.read_text(), re.M):
                places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    for name, paths in places.items():
        if len(paths) > 1:
            yield f"struct {name} is defined in {' and in '.join(paths)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=ROOT / "build")
    parser.add_argument("--headers", type=pathlib.Path, nargs="+", default=sorted((ROOT / "include").glob("*.h")))
    arguments = parser.parse_args()
    offences = list(check_structs())
    offences += list(check(arguments.build / "libcogpu.so", arguments.build / "libcogpu.a",
                          arguments.headers))
    module = arguments.build / "python" / "cogpu" / "_cogpu.abi3.so"
    if module.exists():
        offences += check_module(module)
    print("\n".join(offences) if offences else "symbols are in order")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
