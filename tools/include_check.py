#!/usr/bin/env python3
"""Checks that includes go one way and that src/ calls nothing that it must not.

Takes the root of the repository, prints one line for each offence, and ends with 1 if there is any.
What a module, a folder of src/, may include is written down here, once.
"""

import pathlib
import re
import sys

# Each module, and the modules that it may include beside itself. A subfolder that is a module of its own comes
# with its path: the driver is below the kernels, which the pipelines of gpu/ launch.
BELOW = {
    "base": "",
    "pixel": "base",
    "io": "base",
    "tiff": "base io",
    "codec": "base pixel",
    "image": "base pixel io tiff codec",
    "plan": "base pixel io tiff codec image",
    "grid": "base pixel io tiff codec image plan",
    "cpu": "base pixel io codec image plan",
    "gpu/driver": "base",
    "kernels": "base pixel codec image plan cpu gpu/driver",
    "gpu": "base pixel io codec image plan cpu gpu/driver kernels",
    "context": "base pixel io tiff codec image plan grid cpu gpu/driver gpu",
    "read": "base pixel io codec image plan grid cpu gpu/driver gpu context",
    "write": "base pixel io tiff codec image plan cpu gpu/driver kernels gpu context",
    "check": "base io tiff codec image plan context",
    "api": "base pixel io tiff codec image plan grid cpu gpu/driver kernels gpu context read write check",
}
# Folders outside src/ that know the library by its public header alone.
PUBLIC_ONLY = ["cli", "examples", "python/src"]

# Memory is base/memory.h's, text is base/status.h's, and the process is not ours to end.
FORBIDDEN = ["malloc", "calloc", "realloc", "free", "printf", "fprintf", "puts", "abort", "exit",
             "strcpy",
             "strcat", "sprintf", "vsprintf", "atoi", "atol", "atof", "gets"]
CALL = re.compile(r"(?<![\w.>])(" + "|".join(FORBIDDEN) + r")\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def without_comments(text):
    """The code with comments and literals blanked, line numbers kept."""
    return NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def sources(folder):
    return sorted(path for suffix in ("c", "h", "cpp", "cu", "cuh")
                  for path in folder.rglob(f"*.{suffix}"))


def includes(path):
    """(line number, header) of every quoted include outside comments."""
    text = path.read_text()
    bare = without_comments(text).splitlines()
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found and found.group(1) == '"' and "#" in bare[number - 1]:
            yield number, found.group(2)


def module_of(name):
    """The module of a path below src/: the longest that it begins with; None for other paths."""
    parts = name.split("/")
    return next((module for module in ("/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))
                 if module in BELOW), None)


def check_module(root, path):
    module = module_of(str(path.relative_to(root / "src")))
    if module is None:
        yield f"{path.relative_to(root)}: belongs to no module"
        return
    for number, header in includes(path):
        target = module_of(header)
        if "/" in header and target != module and target not in BELOW[module].split():
            yield f"{path.relative_to(root)}:{number}: {module}/ must not include {header}"


def check_calls(root, path):
    if path.relative_to(root / "src").parts[0] == "base":
        return
    for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
        for call in CALL.findall(line):
            yield f"{path.relative_to(root)}:{number}: {call}() is not used in src/ outside base/"


def check_python(root, path):
    """Headers of Python 3.12 take None, True and False for immortal, and do not count them; to 3.11, which
    the module is for too, they are not."""
    for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
        if "Py_RETURN_" in line:
            yield f"{path.relative_to(root)}:{number}: Py_NewRef counts on every Python, Py_RETURN_... does not"


def check_public(root, path):
    for number, header in includes(path):
        if "/" in header:
            yield f"{path.relative_to(root)}:{number}: sees cogpu.h alone, not {header}"


def check(root):
    for path in sources(root / "src"):
        yield from check_module(root, path)
        yield from check_calls(root, path)
    for folder in PUBLIC_ONLY:
        for path in sources(root / folder):
            yield from check_public(root, path)
    for path in sources(root / "python" / "src"):
        yield from check_python(root, path)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                        else pathlib.Path(__file__).resolve().parents[1])
    offences = list(check(root))
    print("\n".join(offences) if offences else "includes and calls are in order")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
