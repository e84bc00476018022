"""Programs that were compiled with another version of cogpu.h: the rules, and a program that runs.

tests/abi/cogpu-MAJOR.MINOR.h is the header of the first release with a soname; tools/abi_check.py compares.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys

import cogpu_ctypes as cogpu
import pytest

HEADER = cogpu.ROOT / "include" / "cogpu.h"
TOOL = cogpu.ROOT / "tools" / "abi_check.py"
BASELINES = cogpu.ROOT / "tests" / "abi"
BASELINE = BASELINES / "cogpu-{COGPU_VERSION_MAJOR}.{COGPU_VERSION_MINOR}.h".format(**cogpu.CONSTANTS)
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


# ---- the rules ---------------------------------------------------------------------------------

def check(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


@pytest.mark.no_library
def test_header_keeps_the_promises_of_its_soname():
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.no_library
def test_soname_is_that_of_the_header():
    """CMakeLists.txt makes the soname from the project's version."""
    version = re.search(r"^project\(cogpu VERSION ([\d.]+)", (cogpu.ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    assert version == "{COGPU_VERSION_MAJOR}.{COGPU_VERSION_MINOR}.{COGPU_VERSION_PATCH}".format(**cogpu.CONSTANTS)


WINDOW = "    uint32_t x, y, width, height;\n"
# What is changed in the header, by what, and what the tool says: None if programs still run.
CHANGES = {
    "a field appended": (WINDOW, WINDOW + "    uint64_t depth;\n", None),
    "two fields appended": (WINDOW, WINDOW + "    int depth;\n    int reserved;\n", None),
    "a field in the middle": (WINDOW, "    uint32_t x, y, depth, width, height;\n", "cogpu_window.width has moved"),
    "fields swapped": (WINDOW, "    uint32_t y, x, width, height;\n", "cogpu_window.x has moved"),
    "a field removed": (WINDOW, "    uint32_t x, y, width;\n", "cogpu_window.height is gone"),
    "a field renamed": (WINDOW, "    uint32_t x, y, width, rows;\n", "cogpu_window.height is gone"),
    "a field of another type": (WINDOW, "    float x;\n    uint32_t y, width, height;\n", "cogpu_window.x was uint, is float"),
    "a longer array": ("double transform[6]; /* that of", "double transform[9]; /* that of", "cogpu_level.transform was"),
    "a field in padding": ("    int32_t band;     /* from 1; 0: the whole image */\n",
                           "    int32_t band;\n    int32_t level;\n", "cogpu_metadata_item.level is at offset 44"),
    "a field behind reserved": ("} cogpu_metadata_item;", "    uint64_t level;\n} cogpu_metadata_item;", None),
    "padding at the end": (WINDOW, WINDOW + "    int depth;\n", "cogpu_window ends with 4 bytes of padding"),
    "a larger cogpu_error": ("char reserved[64];", "char reserved[128];", "cogpu_error.reserved was"),
    "a field of cogpu_error": ("    char reserved[64];\n", "    char reserved[64];\n    uint64_t code;\n",
                               "cogpu_error has no struct_size"),
    "a value appended": ("    COGPU_CANCELLED       /*", "    COGPU_CANCELLED, COGPU_BUSY /*", None),
    "a value inserted": ("    COGPU_OUT_OF_MEMORY,\n", "    COGPU_BUSY,\n    COGPU_OUT_OF_MEMORY,\n",
                         "COGPU_OUT_OF_MEMORY was 2, is 3"),
    "a value renumbered": ("COGPU_PHOTOMETRIC_CIELAB = 8", "COGPU_PHOTOMETRIC_CIELAB = 9",
                           "COGPU_PHOTOMETRIC_CIELAB was 8, is 9"),
    "a value removed": ("COGPU_PHOTOMETRIC_CMYK = 5,\n", "\n", "COGPU_PHOTOMETRIC_CMYK is gone"),
    "a function added": ("COGPU_API void cogpu_close(cogpu_file *file);",
                         "COGPU_API void cogpu_close(cogpu_file *file);\nCOGPU_API int cogpu_is_open(cogpu_file *file);", None),
    "a function removed": ("COGPU_API void cogpu_close(cogpu_file *file);", "", "cogpu_close is gone"),
    "a parameter of another type": ("uint32_t cogpu_image_count(const cogpu_file *file)",
                                    "uint32_t cogpu_image_count(uint32_t file)", "cogpu_image_count was"),
    "a parameter more": ("void cogpu_close(cogpu_file *file)", "void cogpu_close(cogpu_file *file, int force)",
                         "cogpu_close was"),
    "a result of another type": ("COGPU_API uint32_t cogpu_image_count", "COGPU_API uint64_t cogpu_image_count",
                                 "cogpu_image_count was uint (void_p), is ulong (void_p)"),
    "a callback's parameter": ("(*cogpu_progress)(void *user, uint64_t done,", "(*cogpu_progress)(void *user, uint32_t done,",
                               "cogpu_progress was"),
    "a function of a struct": ("cogpu_status (*size)(void *user, uint64_t *bytes);",
                               "cogpu_status (*size)(void *user, uint32_t *bytes);", "cogpu_source.size was"),
    "another patch version": ("#define COGPU_VERSION_PATCH ", "#define COGPU_VERSION_PATCH 1", None),
}


def check_changed(text, folder):
    """Compares with the header of today, not the baseline, which may lack what a case changes."""
    changed = folder / "cogpu.h"
    changed.write_text(text)
    shutil.copy(HEADER, folder / BASELINE.name)
    return check("--header", changed, "--baselines", folder)


@pytest.mark.no_library
@pytest.mark.parametrize("case", CHANGES)
def test_changes_of_the_header(case, tmp_path):
    old, new, said = CHANGES[case]
    text = HEADER.read_text()
    assert text.count(old) == 1
    done = check_changed(text.replace(old, new), tmp_path)
    if said is None:
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        assert done.returncode == 1 and said in done.stdout
        assert "bump COGPU_VERSION_MINOR" in done.stderr and "new baseline" in done.stderr


@pytest.mark.no_library
def test_struct_that_is_renamed(tmp_path):
    done = check_changed(HEADER.read_text().replace("cogpu_window", "cogpu_area"), tmp_path)
    assert done.returncode == 1 and "cogpu_window is gone" in done.stdout


@pytest.mark.no_library
def test_new_soname_needs_a_baseline(tmp_path):
    changed = tmp_path / "cogpu.h"
    changed.write_text(re.sub(r"(#define COGPU_VERSION_MINOR) \d+", r"\1 99", HEADER.read_text()))
    done = check("--header", changed)
    assert done.returncode == 1 and "cogpu-0.99.h is missing" in done.stderr


# ---- a program of another version --------------------------------------------------------------

OUTPUT = """\
written: 4 levels, 29 blocks, bigtiff 0
image: 300 x 200, 1 bands of uint16, 4 levels, deflate, tiles, ghost 31, origin 400000 5e+06, 3 items
level 1: 150 x 100, pixels of 20
band 1: scale 0.5, nodata 0, u64 0
item: FIRST=one of band 0
crs: EPSG:32633, external 0
key: 1024 GTModelType 1
directory: 1 of 4, ImageWidth
read: the same, 20 blocks
read: the same, 0 bad
windows: 22850.5 23904, 0 0, 4 4 blocks
check: valid, gdal valid, 0 errors
gcp: 2 12 46
others: 3,2,4,7 none cpu
"""


def newer_header():
    """The header of today with two more fields in each struct that carries its size."""
    more = r"\1    uint64_t later_number;\n    const char *later_text;\n\2"
    text, count = re.subn(r"(typedef struct cogpu_\w+ \{\n    size_t struct_size;.*?\n)(\} cogpu_\w+;)", more,
                          HEADER.read_text(), flags=re.S)
    assert count == HEADER.read_text().count("    size_t struct_size;") > 25
    return text


def run_program(header, folder, source=BASELINES / "old_program.c"):
    """Compiles a program with the text of a header, and runs it with the library of today."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    (folder / "cogpu.h").write_text(header)
    subprocess.run([COMPILER, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}", source, cogpu.LIBRARY,
                    f"-Wl,-rpath,{cogpu.LIBRARY.parent}", "-o", folder / "program"], check=True)
    return subprocess.run([folder / "program", folder], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("header", [HEADER.read_text, BASELINE.read_text, newer_header],
                         ids=["of today", "of the baseline", "newer"])
def test_program_with_header(header, tmp_path):
    done = run_program(header(), tmp_path)
    assert done.stdout == OUTPUT and done.returncode == 0, done.stderr


def test_new_fields_are_refused(tmp_path):
    """A program may run with an older library as long as it leaves new fields alone."""
    source = tmp_path / "refused.c"
    source.write_text("""
#include "cogpu.h"
#include <stdio.h>
int main(void) {
    cogpu_error error;
    cogpu_file *file;
    cogpu_open_options options = COGPU_OPEN_OPTIONS_INIT;
    options.later_number = 1;
    cogpu_status status = cogpu_open("none.tif", &options, &file, &error);
    printf("%s: %s", cogpu_status_name(status), error.message);
}
""")
    done = run_program(newer_header(), tmp_path, source)
    assert done.stdout.startswith("unsupported: cogpu_open_options has fields that this library lacks")


def test_soname(tmp_path):
    """The library that a program needs is that of its minor version."""
    if COMPILER is None or not shutil.which("readelf"):
        pytest.skip("no C compiler, or no readelf")
    said = subprocess.run(["readelf", "-d", cogpu.LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "[libcogpu.so.{COGPU_VERSION_MAJOR}.{COGPU_VERSION_MINOR}]".format(**cogpu.CONSTANTS) in said


# ---- lists in C tests that must have all of the headers -----------------------------------------

@pytest.mark.no_library
def test_each_function_with_an_error_is_tested():
    """tests/unit/api/test_errors_cleared.c: `error` is cleared after success."""
    text = (cogpu.ROOT / "tests" / "unit" / "api" / "test_errors_cleared.c").read_text()
    listed = {f"cogpu_{name}" for name in re.findall(r"\bCALL\((\w+)\)", text)} - {"cogpu_name"}
    assert listed == {name for name, (_, parameters) in cogpu.MIRROR.functions.items()
                      if parameters and parameters[-1] is ctypes.POINTER(cogpu.Error)}


@pytest.mark.no_library
def test_each_enumerator_is_tested():
    """tests/unit/api/test_enum_names.c: it has a name that parses back."""
    text = (cogpu.ROOT / "tests" / "unit" / "api" / "test_enum_names.c").read_text()
    declared = re.findall(r"typedef enum cogpu_\w+ \{(.*?)\} cogpu_\w+;", HEADER.read_text(), re.S)
    values = {name for body in declared for name in re.findall(r"\b(COGPU_\w+)", re.sub(r"/\*.*?\*/", "", body, flags=re.S))}
    assert len(declared) == 17 and values - set(re.findall(r"\bCOGPU_\w+", text)) == set()


@pytest.mark.no_library
def test_each_struct_is_tested():
    """tests/unit/api/test_sized*.c: sizes of older and newer callers."""
    text = "".join((cogpu.ROOT / "tests" / "unit" / "api" / name).read_text()
                   for name in ("test_sized.c", "test_sized_arrays.c"))
    assert {name for name in cogpu.STRUCTS if f"sizeof({name})" not in text and f"({name}," not in text} == {"cogpu_error"}
