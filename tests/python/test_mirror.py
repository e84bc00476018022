"""The ctypes mirror of cogpu.h against the header itself, and the tables of names it rests on."""

import ctypes
import importlib
import os
import re
import shutil
import subprocess

import cogpu_ctypes as cogpu
import numpy as np
import pytest

HEADER = cogpu.ROOT / "include" / "cogpu.h"
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """What a C compiler says: "struct" -> size, "struct.field" -> offset, "COGPU_NAME" -> value."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    lines = [f'printf("{name} %lld\\n", (long long){name});' for name in cogpu.CONSTANTS]
    for name, mirror in cogpu.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
                  for field, _ in mirror._fields_]
    folder = tmp_path_factory.mktemp("mirror")
    source = folder / "layout.c"
    source.write_text('#include "cogpu.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    subprocess.run([COMPILER, "-std=c11", f"-I{HEADER.parent}", "-o", folder / "layout", source],
                   check=True)
    output = subprocess.run([folder / "layout"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0]: [int(n) for n in line.split()[1:]] for line in output.splitlines()}


@pytest.mark.no_library
@pytest.mark.parametrize("name", cogpu.STRUCTS)
def test_struct(compiled, name):
    mirror = cogpu.STRUCTS[name]
    assert [ctypes.sizeof(mirror)] == compiled[name]
    for field, _ in mirror._fields_:
        place = getattr(mirror, field)
        assert [place.offset, place.size] == compiled[f"{name}.{field}"], field


@pytest.mark.no_library
def test_constants(compiled):
    assert {name: compiled[name][0] for name in cogpu.CONSTANTS} == cogpu.CONSTANTS


@pytest.mark.no_library
def test_every_struct_of_the_header_is_mirrored():
    named = set(re.findall(r"^typedef struct (cogpu_\w+) \{", HEADER.read_text(), re.M))
    assert named == set(cogpu.STRUCTS)


def test_type_names_are_numpys():
    for index, dtype in enumerate(cogpu.DTYPES):
        if index == 0:
            assert cogpu.lib.cogpu_type_bytes(0) == 0
            continue
        assert cogpu.lib.cogpu_type_bytes(index) == dtype.itemsize
        name = cogpu.lib.cogpu_type_name(index).decode()
        expected = {cogpu.CI16: "complex_int16",
                    cogpu.CI32: "complex_int32"}.get(dtype) or np.dtype(dtype).name
        assert name == expected
    assert cogpu.lib.cogpu_type_bytes(99) == 0
    assert cogpu.lib.cogpu_type_name(99) is not None


def test_status_names():
    names = [cogpu.lib.cogpu_status_name(i).decode() for i in range(len(cogpu.STATUSES))]
    assert names == [name.lower() for name in cogpu.STATUSES]
    assert cogpu.lib.cogpu_status_name(99) is not None


def test_version_is_the_headers():
    parts = re.findall(r"#define COGPU_VERSION_\w+ (\d+)", HEADER.read_text())
    assert cogpu.lib.cogpu_version().decode() == ".".join(parts)


SMALLER_MIRRORS = {"bench/cogpu_lib": ["Error", "Nodata", "Image", "Raster", "ContextOptions", "Request", "Memory", "Sink",
                                       "Profile", "Written"],
                   "examples/read_cupy": ["Error", "Level", "Request", "Raster"]}


@pytest.mark.parametrize("path, name", [(path, name) for path in SMALLER_MIRRORS for name in SMALLER_MIRRORS[path]])
def test_smaller_mirrors_have_the_same_structs(path, name, monkeypatch):
    """Of the few structs that they need, with `others` for fields at the end that they do not."""
    folder, module = path.split("/")
    monkeypatch.syspath_prepend(cogpu.ROOT / folder)
    ours, theirs = getattr(cogpu, name), getattr(importlib.import_module(module), name)
    fields = [field for field, _ in theirs._fields_ if field != "others"]
    assert ctypes.sizeof(theirs) == ctypes.sizeof(ours)
    assert fields == [field for field, _ in ours._fields_][:len(fields)]
    assert [getattr(theirs, field).offset for field in fields] == [getattr(ours, field).offset for field in fields]
