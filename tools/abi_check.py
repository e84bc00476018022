#!/usr/bin/env python3
"""Compares include/cogpu.h with the header of the first release that has the same soname.

    tools/abi_check.py [--header include/cogpu.h] [--baselines tests/abi]

The soname is libcogpu.so.MAJOR.MINOR; its baseline is tests/abi/cogpu-MAJOR.MINOR.h. A program that was compiled with the
baseline runs with the library of today if

- each struct has the baseline's fields at the same offsets, with the same types, and is not smaller. New fields follow
  behind it: not in its padding, which callers need not clear. A struct without struct_size has the same size;
- each constant and enumerator has the same value;
- each function and callback has the same result and parameters.

New structs, fields, values and functions are fine. Otherwise the minor version has to be bumped: COGPU_VERSION_MINOR, the
version in CMakeLists.txt, and a new baseline, a copy of the header. cogpu_distributed.h promises nothing.
"""

import argparse
import ctypes
import pathlib
import sys

import header_mirror

ROOT = pathlib.Path(__file__).resolve().parents[1]


def signature(kind):
    """A ctypes type in words, the same for the same type of two headers."""
    if kind is None:
        return "void"
    if issubclass(kind, ctypes.Structure):
        return f"struct {kind.__name__}"
    if issubclass(kind, ctypes._Pointer):
        return f"{signature(kind._type_)} *"
    if issubclass(kind, ctypes.Array):
        return f"{signature(kind._type_)}[{kind._length_}]"
    if issubclass(kind, ctypes._CFuncPtr):
        return function_signature(kind._restype_, kind._argtypes_)
    return kind.__name__.removeprefix("c_")


def function_signature(result, parameters):
    return f"{signature(result)} ({', '.join(map(signature, parameters))})"


def is_reserved(field):
    return field.startswith("reserved")


def end_of_fields(struct):
    last = getattr(struct, struct._fields_[-1][0])
    return last.offset + last.size


def check_struct(name, old, new):
    """What is wrong with a struct, as text."""
    fields = dict(new._fields_)
    for field, kind in old._fields_:
        if field not in fields:
            yield f"{name}.{field} is gone"
        elif getattr(new, field).offset != getattr(old, field).offset:
            yield f"{name}.{field} has moved from offset {getattr(old, field).offset} to {getattr(new, field).offset}"
        elif signature(fields[field]) != signature(kind):
            yield f"{name}.{field} was {signature(kind)}, is {signature(fields[field])}"
    size, old_size = ctypes.sizeof(new), ctypes.sizeof(old)
    if size < old_size:
        yield f"{name} has {size} bytes, had {old_size}"
    if size != old_size and old._fields_[0][0] != "struct_size":
        yield f"{name} has no struct_size, so its {old_size} bytes are final; it has {size}"
    for field in fields.keys() - dict(old._fields_).keys():
        if getattr(new, field).offset < old_size and not is_reserved(field):
            yield (f"{name}.{field} is at offset {getattr(new, field).offset}, in the padding of older structs "
                   f"({old_size} bytes); put a field `reserved` before it")
    if size > old_size and end_of_fields(new) != size:
        yield f"{name} ends with {size - end_of_fields(new)} bytes of padding; add a field `reserved` at its end"


def check(old, new):
    """What a program of the old header would find different."""
    for name, struct in old.structs.items():
        if name not in new.structs:
            yield f"{name} is gone"
        else:
            yield from check_struct(name, struct, new.structs[name])
    for name, value in old.constants.items():
        if name not in new.constants:
            yield f"{name} is gone"
        elif new.constants[name] != value and not name.startswith("COGPU_VERSION_"):
            yield f"{name} was {value}, is {new.constants[name]}"
    for name, (result, parameters) in old.functions.items():
        was = function_signature(result, parameters)
        if name not in new.functions:
            yield f"{name} is gone"
        elif function_signature(*new.functions[name]) != was:
            yield f"{name} was {was}, is {function_signature(*new.functions[name])}"
    for name, callback in old.callbacks.items():
        if name not in new.callbacks:
            yield f"{name} is gone"
        elif signature(new.callbacks[name]) != signature(callback):
            yield f"{name} was {signature(callback)}, is {signature(new.callbacks[name])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--header", type=pathlib.Path, default=ROOT / "include" / "cogpu.h")
    parser.add_argument("--baselines", type=pathlib.Path, default=ROOT / "tests" / "abi")
    arguments = parser.parse_args()
    new = header_mirror.read(arguments.header)
    soname = "{COGPU_VERSION_MAJOR}.{COGPU_VERSION_MINOR}".format(**new.constants)
    baseline = arguments.baselines / f"cogpu-{soname}.h"
    if not baseline.exists():
        sys.exit(f"{baseline} is missing: the soname {soname} is new, so copy {arguments.header} there")
    differences = list(check(header_mirror.read(baseline), new))
    for difference in differences:
        print(difference)
    if differences:
        sys.exit(f"{arguments.header} breaks programs that were compiled with {baseline}: undo that, or bump "
                 "COGPU_VERSION_MINOR and the version in CMakeLists.txt, and add a new baseline (a copy of the header)")


if __name__ == "__main__":
    main()
