"""The documentation: README is one screen, links lead somewhere, and every block of code runs or is checked.

A block of code is run by the language and mark of its fence:

    c               the blocks of a page are one program, compiled and run here, kernels on the emulated GPU
    sh              commands of cogpu run here; those of make and of scripts are checked: the target, script and options exist
    sh network      tests/net/test_readme.py
    sh gpu          here, on the emulated GPU
    python          README, docs/python.md, docs/mosaics.md: tests/package/test_python_examples.py; docs/network.md:
                    tests/net/test_readme.py
    python example  tests/package/test_docs_examples.py
    text, none      what a program prints, a drawing
    python          docs/python-reference.md: signatures, which tools/python_reference.py copies from the source
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin

ROOT = cogpu.ROOT
BIN = pathlib.Path(os.environ.get("COGPU_BIN", ROOT / "build" / "cogpu")).resolve()
GUIDES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.relative_to(ROOT / 'docs')}" for path in
                                                  (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^ *```(\w+)? ?(\w*)\n(.*?)^ *```$", re.M | re.S)
RUN_BY_PAGE = {
    "c": {"docs/c.md", "docs/gpu.md", "docs/mosaics.md", "docs/network.md"},
    "python": {"README.md", "docs/mosaics.md", "docs/python.md", "docs/network.md", "docs/python-reference.md"},
    "python gpu": {"docs/python.md"}, "python torch": {"docs/python.md"},
    "sh network": {"docs/command-line.md", "docs/network.md"},
    "sh gpu": {"docs/command-line.md", "docs/mosaics.md"},
}
EVERYWHERE = {"", "sh", "text", "python example"}  # each is checked on all pages


def blocks(page, language, mark=""):
    return [code for lang, word, code in FENCE.findall((ROOT / page).read_text()) if (lang, word) == (language, mark)]


# ---- README --------------------------------------------------------------------------------------

@pytest.mark.no_library
def test_readme_is_one_screen():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 700
    assert "<!-- bench:" not in text
    assert text.count("![") == 2 and text.index("![") < text.index("## Install") < text.index("## Read and write")


@pytest.mark.no_library
def test_the_picture_shows_figures_of_the_benchmark():
    """The text of the picture has the numbers of docs/bench-gpu.md that it is drawn from."""
    page = (ROOT / "docs" / "bench-gpu.md").read_text()
    row = re.search(r"^\| float32 deflate p2 \|(.*)\|$", page, re.M)[1].replace("*", "").split("|")
    shown = re.search(r"!\[(.*?)\]\(docs/speed.png\)", (ROOT / "README.md").read_text())[1]
    assert re.findall(r"([\d.]+) ms", shown) == [row[index].strip() for index in (2, 5, 3, 4)]


def test_codecs_are_those_of_the_library():
    """The table of README and of docs/supported.md, beside what cogpu_codec_info says."""
    rows = {}
    for page in ("README.md", "docs/supported.md"):
        text = (ROOT / page).read_text()
        table = re.search(r"^\| codec \| CPU decode.*?(?=^\n)", text, re.M | re.S)[0]
        rows[page] = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert rows["README.md"] == rows["docs/supported.md"]
    said = {name.strip().lower(): cells for names, *cells in rows["README.md"] for name in names.split(",")}
    words = {"none": "none", "packbits": "packbits", "lzw": "lzw", "deflate": "deflate", "zstd": "zstd", "jpeg": "jpeg",
             "lerc": "lerc", "lzma": "lzma", "webp": "webp", "ccitt_g4": "ccitt", "jpeg2000": "jpeg 2000",
             "jpegxl": "jpeg xl", "old_jpeg": "old-style jpeg"}
    found = {codec.name: codec for codec in cogpu.codecs().values()}
    assert set(words.values()) == set(said)
    for name, word in words.items():
        decode, encode, gpu_decode, gpu_encode = said[word]
        codec = found[name]
        assert decode == "yes" and codec.can_decode, name
        assert (encode == "yes") == bool(codec.can_encode), name
        assert (gpu_decode != "CPU") == bool(codec.gpu_decode), name
        assert (gpu_encode not in ("CPU", "no")) == bool(codec.gpu_encode), name


# ---- links and blocks ------------------------------------------------------------------------------

@pytest.mark.no_library
@pytest.mark.parametrize("page", GUIDES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^):#\s]+)[^)]*\)", re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)):
        assert ((ROOT / page).parent / link).exists(), link


@pytest.mark.no_library
@pytest.mark.parametrize("page", GUIDES)
def test_every_block_is_tested(page):
    text = (ROOT / page).read_text()
    assert text.count("```") == 2 * len(FENCE.findall(text))
    for language, mark, code in FENCE.findall(text):
        kind = f"{language} {mark}".strip()
        assert kind in EVERYWHERE or page in RUN_BY_PAGE.get(kind, ()), f"{kind}: {code[:60]}"


# ---- C -------------------------------------------------------------------------------------------

MAINS = {
    "docs/c.md": """
int main(int count, char **words) {
    static uint8_t pixels[2 * 64 * 64];
    const double bbox[4] = {400100, 4999000, 401000, 4999900};
    cogpu_file *file = NULL;
    cogpu_error error;
    if (count != 3 || cogpu_open(words[1], NULL, &file, &error) != COGPU_OK)
        return 2;
    int failed = read_heights(words[1]) || read_box(file, bbox, 1) || read_corners(file, pixels) ||
                 write_hill(words[2]) || check_cog(words[2]);
    printf("mask %d %d\\n", pixels[0], pixels[64 * 64]);
    cogpu_close(file);
    return failed;
}
""",
    "docs/gpu.md": """
int main(int count, char **words) {
    cogpu_context *context = NULL;
    cogpu_file *file = NULL;
    cogpu_raster raster;
    cogpu_error error;
    if (count != 3 || cogpu_open(words[1], NULL, &file, &error) != COGPU_OK ||
        cogpu_context_open(NULL, &context, &error) != COGPU_OK)
        return 2;
    int failed = read_to_device(context, file, COGPU_DEVICE_EMULATOR, &raster) || read_async(context, file, &raster) ||
                 write_from_device(context, &raster, words[2]);
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, 0, raster.data);
    cogpu_context_close(context);
    cogpu_close(file);
    return failed;
}
""",
    "docs/mosaics.md": """
#include <stdio.h>
int main(int count, char **words) {
    static uint16_t pixels[1000 * 1000];
    cogpu_file *file = NULL;
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_error error;
    if (count != 3 || open_zones(words[1], words[1], &file, &error) != COGPU_OK ||
        cogpu_image_info(file, 0, &image, &error) != COGPU_OK)
        return 2;
    cogpu_raster raster = {.struct_size = sizeof raster, .data = pixels, .type = image.type, .bands = 1,
                           .width = image.width, .height = image.height};
    cogpu_status status = cogpu_read(file, NULL, &raster, NULL, &error);
    printf("%u x %u\\n", image.width, image.height);
    cogpu_close(file);
    return status != COGPU_OK;
}
""",
    "docs/network.md": """
int main(int count, char **words) {
    cogpu_context *context = NULL;
    cogpu_file *file = NULL;
    cogpu_error error;
    cogpu_status status = open_url(count == 3 ? words[1] : "", &context, &file, &error);
    cogpu_close(file);
    cogpu_context_close(context);
    return status != COGPU_OK;
}
""",
}


@pytest.fixture
def dem(tmp_path):
    """dem.tif: 300 x 280 heights with nodata in a corner and two overviews, in tiles that the emulator decodes quickly."""
    y, x = np.mgrid[:300, :280]
    heights = (900 + 200 * np.sin(x / 40) * np.cos(y / 30) + y).astype("float32")
    heights[:70, :60] = -9999
    path = tmp_path / "dem.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=300, width=280, dtype="float32", nodata=-9999,
                       crs="EPSG:32633", transform=from_origin(400000, 5000000, 10, 10), tiled=True, blockxsize=64,
                       blockysize=64, compress="packbits") as file:
        file.write(heights, 1)
        file.build_overviews([2, 4])
    return path


@pytest.mark.parametrize("page", MAINS)
def test_c_blocks_run(page, dem, tmp_path):
    library = cogpu.LIBRARY.resolve()
    source, program, written = tmp_path / "page.c", tmp_path / "page", tmp_path / "written.tif"
    source.write_text("\n".join(blocks(page, "c")) + MAINS[page])
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", source, library, "-o", program,
                    f"-Wl,-rpath,{library.parent}"], check=True)
    done = subprocess.run([program, dem, written], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if page == "docs/c.md":
        assert "300" in done.stdout and "mask 0 255" in done.stdout and "written.tif: valid\n" in done.stdout
        with rasterio.open(written) as file:
            assert file.read(1)[1999, 2999] == np.float32(300 + 29.99 + 199.9)
    if page == "docs/mosaics.md":
        assert done.stdout == "201 x 216\n"
    if page == "docs/gpu.md":
        with rasterio.open(written) as file, rasterio.open(dem) as source:
            assert np.array_equal(file.read(1), source.read(1))


# ---- shell ---------------------------------------------------------------------------------------

def commands(page, mark=""):
    """Lines of the page's shell blocks, without comments."""
    lines = "".join(blocks(page, "sh", mark)).splitlines()
    return [line for line in (re.sub(r"\s+#.*", "", line).strip() for line in lines) if line and not line.startswith("#")]


def pages_with(mark):
    return [page for page in GUIDES if commands(page, mark)]


@pytest.mark.parametrize("page", pages_with(""))
def test_commands_of_cogpu_run(page, dem, tmp_path):
    """All of a page, in one folder, in their order. URLs are for tests/net."""
    found = [line for line in commands(page) if re.match(r"(build/)?cogpu ", line) and "://" not in line]
    found += [line.replace("cuda", "emu") for line in commands(page, "gpu")]
    for line in found:
        done = subprocess.run(["bash", "-c", re.sub(r"^(build/)?cogpu ", f"{BIN} ", line)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)


@pytest.mark.no_library
@pytest.mark.parametrize("page", pages_with(""))
def test_other_commands_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for line in commands(page):
        for part in line.removeprefix("sudo ").split(" && "):
            words = part.replace("'", "").split()
            if words[0] == "make":
                targets = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
                assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets), part
            elif words[0] in (".venv/bin/python", "python"):
                source = (ROOT / words[1]).read_text()
                assert all(f'"{word.split("=")[0]}"' in source for word in words[2:] if word.startswith("--")), part
            else:
                assert re.match(r"(build/)?cogpu |build/bench_gpu_|build-san/tests/|(env/bin/)?pip install |python3 -m venv env$|export |cc |\./read ", part), part


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_the_c_guide_links(dem, tmp_path):
    """Its commands, with the build tree in the place of an installation."""
    library = cogpu.LIBRARY.resolve()
    (tmp_path / "cogpu.pc").write_text(f"Name: cogpu\nDescription: cogpu\nVersion: 0\nCflags: -I{ROOT}/include\n"
                                       f"Libs: -L{library.parent} -lcogpu\n")
    export, compile_it, run_it = commands("docs/c.md")
    assert export.startswith("export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig LD_LIBRARY_PATH=")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(["bash", "-ec", f"{compile_it}\n{run_it}"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PKG_CONFIG_PATH": str(tmp_path), "LD_LIBRARY_PATH": str(library.parent)})
    assert done.returncode == 0, done.stderr


# ---- generated references --------------------------------------------------------------------------

@pytest.mark.no_library
def test_the_c_reference_has_every_declaration():
    sys.path.insert(0, str(ROOT / "tools" / "docs"))
    import c_reference
    pages, titles = c_reference.pages()
    text = "\n".join(pages.values())
    header = "".join((ROOT / "include" / name).read_text() for name in ("cogpu.h", "cogpu_distributed.h"))
    names = set(re.findall(r"^COGPU_API[^;]*?\b(cogpu_\w+)\(", header, re.M)) | set(re.findall(r"^\} (cogpu_\w+);", header, re.M))
    assert len(names) > 100
    for name in names:
        assert f'id="{name}"' in text or f"{{#{name}}}" in text, name
    assert set(pages) == {path for _, path in titles}
    assert "COGPU_MUST_CHECK" not in text


@pytest.mark.no_library
def test_pages_of_the_examples_are_those_of_the_scripts():
    done = subprocess.run([sys.executable, ROOT / "tools" / "docs" / "run_examples.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for picture in (ROOT / "docs" / "examples").glob("*.png"):
        assert picture.stat().st_size < 150_000, picture


MKDOCS = ROOT / "build-docs" / "venv" / "bin" / "mkdocs"


@pytest.mark.skipif(not MKDOCS.exists(), reason="no MkDocs in build-docs/venv (make docs)")
def test_the_site_builds_without_warnings(tmp_path):
    done = subprocess.run([MKDOCS, "build", "--strict", "--site-dir", tmp_path / "site"], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "COGPU_BIN": str(BIN), "NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = [path.read_text() for path in (tmp_path / "site").rglob("*.html")]
    assert len(pages) > 50
    loaded = re.findall(r'(?:<script[^>]* src|<link[^>]* rel="stylesheet"[^>]* href|<img[^>]* src)="(https?://[^"]+)', "".join(pages))
    assert not loaded  # nothing comes from other hosts
    assert not any("<p>```" in page for page in pages)  # a fence that was not understood
