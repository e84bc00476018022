"""The ctypes mirror of cogpu.h against the header itself, and the tables of names it rests on."""

import ctypes
import os
import re
import shutil
import subprocess

import cogpu_ctypes as cogpu
import numpy as np
import pytest

HEADERS = [cogpu.ROOT / "include" / name for name in ("cogpu.h", "cogpu_distributed.h")]
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
    source.write_text('#include "cogpu_distributed.h"\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines) + "\n}\n")
    subprocess.run([COMPILER, "-std=c11", f"-I{HEADERS[0].parent}", "-o", folder / "layout", source],
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
def test_every_struct_and_function_of_the_header_is_mirrored():
    text = "\n".join(header.read_text() for header in HEADERS)
    assert set(re.findall(r"^typedef struct (cogpu_\w+) \{", text, re.M)) == set(cogpu.STRUCTS)
    assert set(re.findall(r"^COGPU_API[^;]*?\b(cogpu_\w+)\(", text, re.M)) == set(cogpu.MIRROR.functions)


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


def names_of(function, last):
    """Value -> name, of an enumeration's name function."""
    named = getattr(cogpu.lib, function)
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.c_int]
    return {value: named(value).decode() for value in range(last + 1) if named(value) is not None}


@pytest.mark.parametrize("enumeration, last, count", [("resampling", 99, len(cogpu.RESAMPLINGS)),
                                                      ("photometric", 300, 8), ("device_kind", 9, 3), ("sidecars", 9, 3), ("layout", 9, 2),
                                                      ("interleave", 9, 2), ("mask_source", 9, 4), ("geokey_kind", 9, 3),
                                                      ("content", 9, 2), ("overviews", 9, 4), ("bigtiff", 9, 3),
                                                      ("severity", 9, 3), ("verdict", 9, 3)])
def test_names_parse_back(enumeration, last, count):
    names = names_of(f"cogpu_{enumeration}_name", last)
    parse = getattr(cogpu.lib, f"cogpu_{enumeration}_parse")
    value, error = ctypes.c_int(-1), cogpu.Error()
    assert len(names) == len(set(names.values())) == count
    for number, name in names.items():
        assert parse(name.upper().encode(), ctypes.byref(value), None) == cogpu.OK and value.value == number
    assert parse(b"no such name", ctypes.byref(value), ctypes.byref(error)) == cogpu.INVALID_ARGUMENT
    assert all(name in error.message.decode() for name in names.values())


def test_resampling_names_are_the_headers():
    names = names_of("cogpu_resampling_name", 99)
    assert [name.upper() for name in names.values()][1:] == cogpu.RESAMPLINGS[1:]


def test_codecs_of_gdal_parse():
    parse = cogpu.lib.cogpu_codec_parse
    value = ctypes.c_uint32()
    for name, number in {"LZW": 5, "DEFLATE": 8, "ZSTD": 50000, "LERC_ZSTD": 34887, "CCITTFAX3": 3}.items():
        assert parse(name.encode(), ctypes.byref(value), None) == cogpu.OK and value.value == number


def test_status_names():
    names = [cogpu.lib.cogpu_status_name(i).decode() for i in range(len(cogpu.STATUSES))]
    assert names == [name.lower() for name in cogpu.STATUSES]
    assert cogpu.lib.cogpu_status_name(99) is not None


def test_version_is_the_headers():
    parts = re.findall(r"#define COGPU_VERSION_\w+ (\d+)", HEADERS[0].read_text())
    assert cogpu.lib.cogpu_version().decode() == ".".join(parts)


HEADER_PARTS = {
    "an array of an array": "typedef struct cogpu_a { int x[2][3]; } cogpu_a;",
    "several names": "typedef struct cogpu_a { uint32_t x, y; const char *text, *other; } cogpu_a;",
    "a callback in a struct": "typedef struct cogpu_a { int (*read)(void *user, const char *text, size_t bytes); } cogpu_a;",
}


@pytest.mark.no_library
@pytest.mark.parametrize("part", HEADER_PARTS)
def test_parts_of_headers(part, tmp_path):
    """Layouts as the compiler has them, of what cogpu.h may come to have."""
    (tmp_path / "a.h").write_text("#include <stddef.h>\n#include <stdint.h>\n" + HEADER_PARTS[part] + "\n")
    mirror = cogpu.header_mirror.read(tmp_path / "a.h").structs["cogpu_a"]
    names = [name for name, _ in mirror._fields_]
    (tmp_path / "a.c").write_text('#include "a.h"\n#include <stdio.h>\nint main(void) {\n' + "".join(
        f'printf("%zu ", offsetof(cogpu_a, {name}));\n' for name in names) + 'printf("%zu", sizeof(cogpu_a)); }\n')
    subprocess.run([COMPILER, "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    found = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout.split()
    assert [getattr(mirror, name).offset for name in names] + [ctypes.sizeof(mirror)] == list(map(int, found))


@pytest.mark.no_library
def test_a_header_that_is_not_understood_is_an_error(tmp_path):
    (tmp_path / "a.h").write_text("typedef union cogpu_a { int x; float y; } cogpu_a;\n")
    with pytest.raises(ValueError, match="union"):
        cogpu.header_mirror.read(tmp_path / "a.h")
