"""The checks of tools/ on the repository itself, and on small offenders that they must catch."""

import os
import pathlib
import shutil
import subprocess
import sys

import cogpu_ctypes as cogpu
import pytest

TOOLS = cogpu.ROOT / "tools"


def tool(name, *arguments):
    return subprocess.run([sys.executable, TOOLS / name, *arguments], capture_output=True,
                          text=True)


@pytest.mark.no_library
def test_includes_of_the_repository():
    done = tool("include_check.py", cogpu.ROOT)
    assert done.returncode == 0, done.stdout


OFFENDERS = {
    "io sees tiff": ("src/io/a.c", '#include "tiff/tiff.h"\n', "src/io/a.c:1"),
    "codec sees image": ("src/codec/a.c", '#include "base/memory.h"\n#include "image/image.h"\n',
                         "src/codec/a.c:2"),
    "plan sees backend": ("src/plan/a.c", '#include "backend/backend.h"\n', "src/plan/a.c:1"),
    "backend sees api": ("src/backend/cpu/a.c", '#include "api/file.h"\n', "src/backend/cpu/a.c:1"),
    "cli sees src": ("cli/a.c", '#include "base/status.h"\n', "cli/a.c:1"),
    "cli climbs out": ("cli/a.c", '#include "../src/base/status.h"\n', "cli/a.c:1"),
    "malloc": ("src/tiff/a.c", "void *f(void) { return malloc(1); }\n", "malloc()"),
    "printf": ("src/api/a.c", 'void f(void) { printf("x"); }\n', "printf()"),
    "exit": ("src/codec/a.c", "void f(void) {\n    exit (1);\n}\n", "src/codec/a.c:2"),
    "strange room": ("src/misc/a.c", "\n", "no room"),
}
INNOCENTS = {
    "a comment": ("src/tiff/a.c", "/* malloc(1)\n * free(x) */\n// exit(1)\n"),
    "a text": ("src/tiff/a.c", 'const char *f(void) { return "malloc(1)"; }\n'),
    "a longer name": ("src/tiff/a.c", "void f(void) { cogpu_free(0); my_exit(1); snprintf(0, 0, 0); }\n"),
    "base may": ("src/base/a.c", "void *f(void) { return malloc(1); }\n"),
    "image sees codec": ("src/image/a.c", '#include "codec/codec.h"\n#include "tiff/tiff.h"\n'),
    "own room, public header": ("src/io/a.c",
                                '#include "source.h"\n#include "cogpu.h"\n#include <stdio.h>\n'),
    "cli's own header": ("cli/a.c", '#include "cli.h"\n#include "cogpu.h"\n'),
}


def plant(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.mark.no_library
@pytest.mark.parametrize("case", OFFENDERS)
def test_include_check_catches(case, tmp_path):
    name, text, said = OFFENDERS[case]
    plant(tmp_path, name, text)
    done = tool("include_check.py", tmp_path)
    assert done.returncode == 1 and said in done.stdout


@pytest.mark.no_library
@pytest.mark.parametrize("case", INNOCENTS)
def test_include_check_lets_pass(case, tmp_path):
    plant(tmp_path, *INNOCENTS[case])
    done = tool("include_check.py", tmp_path)
    assert done.returncode == 0, done.stdout


def test_symbols_of_the_library():
    if not (cogpu.LIBRARY.parent / "libcogpu.a").exists():
        pytest.skip("no libcogpu.a beside the shared library")
    done = tool("symbol_check.py", cogpu.LIBRARY.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.no_library
@pytest.mark.parametrize("code,said", [
    ("int cogpu_good(void) { return 1; }", None),
    ("int cogpu_good(void) { return 1; } int helper(void) { return 2; }", "helper"),
    ("int cogpu_good(void) { return 1; } int cogpu_more(void) { return 2; }", "exports cogpu_more"),
    ("static int cogpu_good(void) { return 1; } int cogpu_use(void) { return cogpu_good(); }",
     "declares cogpu_good"),
])
def test_symbol_check_catches(code, said, tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None or shutil.which("nm") is None:
        pytest.skip("no C compiler, or no nm")
    (tmp_path / "a.c").write_text(code)
    (tmp_path / "cogpu.h").write_text("COGPU_API int cogpu_good(void);\n/* COGPU_API int cogpu_old(void); */\n")
    run = lambda *command: subprocess.run(command, cwd=tmp_path, check=True)
    run(compiler, "-fPIC", "-c", "a.c")
    run(compiler, "-shared", "-o", "libcogpu.so", "a.o")
    run("ar", "rc", "libcogpu.a", "a.o")
    done = tool("symbol_check.py", tmp_path, "--header", pathlib.Path(tmp_path) / "cogpu.h")
    assert done.returncode == (1 if said else 0), done.stdout
    assert said is None or said in done.stdout
