"""The checks of tools/ on the repository itself, and on small offenders that they must catch."""

import os
import pathlib
import re
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
    "plan sees cpu": ("src/plan/a.c", '#include "cpu/cpu.h"\n', "src/plan/a.c:1"),
    "driver sees kernels": ("src/gpu/driver/a.c", '#include "kernels/decoder.h"\n', "src/gpu/driver/a.c:1"),
    "kernels see gpu": ("src/kernels/zstd/a.c", '#include "gpu/driver/gpu.h"\n#include "gpu/nvjpeg.h"\n',
                        "src/kernels/zstd/a.c:2"),
    "cli sees src": ("cli/a.c", '#include "base/status.h"\n', "cli/a.c:1"),
    "cli climbs out": ("cli/a.c", '#include "../src/base/status.h"\n', "cli/a.c:1"),
    "malloc": ("src/tiff/a.c", "void *f(void) { return malloc(1); }\n", "malloc()"),
    "printf": ("src/api/a.c", 'void f(void) { printf("x"); }\n', "printf()"),
    "exit": ("src/codec/a.c", "void f(void) {\n    exit (1);\n}\n", "src/codec/a.c:2"),
    "no module": ("src/misc/a.c", "\n", "no module"),
}
INNOCENTS = {
    "a comment": ("src/tiff/a.c", "/* malloc(1)\n * free(x) */\n// exit(1)\n"),
    "a text": ("src/tiff/a.c", 'const char *f(void) { return "malloc(1)"; }\n'),
    "a longer name": ("src/tiff/a.c", "void f(void) { cogpu_free(0); my_exit(1); snprintf(0, 0, 0); }\n"),
    "base may": ("src/base/a.c", "void *f(void) { return malloc(1); }\n"),
    "image sees codec": ("src/image/a.c", '#include "codec/codec.h"\n#include "tiff/tiff.h"\n'),
    "own module, public header": ("src/io/a.c",
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


def repository(folder, **files):
    """A git repository with a copy of the word check, since it looks at files that git lists."""
    for name, text in files.items():
        path = folder / "src" / "io" / f"{name}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "tools").mkdir()
    shutil.copy(TOOLS / "word_check.py", folder / "tools")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return subprocess.run([sys.executable, "tools/word_check.py"], cwd=folder, capture_output=True, text=True)


@pytest.mark.no_library
@pytest.mark.parametrize("line,term", [
    ("static int berth_of(void);", "slot"),  # word-check: planted
    ("enum { BERTHS = 4 };", "slot"),  # word-check: planted
    ("/* Nobody reads it. */", "component"),  # word-check: planted
    ('fail("the header is unsound");', "malformed"),  # word-check: planted
])
def test_word_check_finds(line, term, tmp_path):
    done = repository(tmp_path, a="int one;\n" + line + "\n", b="int two;\n")
    assert done.returncode == 1
    assert "src/io/a.c:2: " in done.stdout and term in done.stdout and "src/io/b.c" not in done.stdout


@pytest.mark.no_library
@pytest.mark.parametrize("line", [
    "int verdict; /* word-check: a field of the public header */",
    "int soundings, threshold, command;",
])
def test_word_check_lets_pass(line, tmp_path):
    done = repository(tmp_path, a=line + "\n")
    assert done.returncode == 0, done.stdout


@pytest.mark.no_library
def test_numbers_of_traps_are_those_of_the_list():
    listed = set(re.findall(r"\*\*(T\d{3})\*\*", (cogpu.ROOT / "docs" / "traps.md").read_text()))
    files = [path for path in (cogpu.ROOT / "tests").rglob("test_*.*") if path.suffix in (".c", ".py")]
    named = {number for path in files for number in re.findall(r"(?<![A-Za-z0-9])T\d{3}\b", path.read_text())}
    assert named and named <= listed


FOLDERS = ("src", "include", "cli", "python", "tests", "tools", "cmake", "examples", "docs")


def documents():
    """Pages of the repository but decisions, which speak of their time."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=cogpu.ROOT, text=True,
                            stdout=subprocess.PIPE)
    if listed.returncode != 0:
        pytest.skip("no git")
    pages = (cogpu.ROOT / name for name in listed.stdout.splitlines() if not name.startswith("docs/decisions/"))
    return [page for page in pages if page.is_file()]


@pytest.mark.no_library
def test_links_and_paths_of_documents_exist():
    """Links; and paths in code font that begin at the root. NAME, MODULE and TARGET stand for others."""
    absent = []
    for page in documents():
        text = page.read_text()
        links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
        paths = [path for path in re.findall(r"`([a-z]+/[\w./-]+)`", text)
                 if path.split("/")[0] in FOLDERS and not re.search("NAME|MODULE|TARGET", path)]
        absent += [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]
        absent += [f"{page.name}: {path}" for path in paths if not (cogpu.ROOT / path).exists()]
    assert not absent, "\n".join(absent)


@pytest.mark.no_library
def test_functions_of_the_walk_exist():
    """docs/walk.md names a file below src/, then functions of it; the last column has other names."""
    absent = []
    rows = re.findall(r"^\| \d+\. .*", (cogpu.ROOT / "docs/walk.md").read_text(), re.M)
    for cells in (row.split("|") for row in rows):
        source = ""
        for name in re.findall(r"`([\w./]+)`", cells[2]):
            if "." in name:
                path = cogpu.ROOT / "src" / name
                source = path.read_text() if path.exists() else ""
                absent += [] if source else [name]
            elif not re.search(rf"\b{name}\b", source):
                absent.append(name)
    assert not absent, "\n".join(absent)
