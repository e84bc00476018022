"""The command line, compared from outside: exit codes, messages, JSON, pixels as rasterio reads them.

The binary comes from COGPU_BIN, or is build/cogpu of the repository. Every file is made here.
"""

import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
tifffile = pytest.importorskip("tifffile")
from rasterio import shutil  # noqa: E402
from rasterio.enums import Resampling  # noqa: E402
from rasterio.transform import Affine, from_origin  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))
RNG = np.random.default_rng(7)

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")


def run(*words, stdin=None):
    return subprocess.run([BINARY, *map(str, words)], capture_output=True, input=stdin, timeout=120)


def done(*words, stdin=None):
    """Runs a command that must succeed and says nothing on stderr; returns its stdout."""
    result = run(*words, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""
    return result.stdout.decode()


def failed(*words, code=1, stdin=None):
    """Runs a command that must fail with one line on stderr; returns the line."""
    result = run(*words, stdin=stdin)
    lines = result.stderr.decode().splitlines()
    assert result.returncode == code, (result.returncode, lines)
    assert len(lines) == 1 and lines[0].startswith("cogpu: "), lines
    return lines[0]


def samples(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return RNG.normal(size=shape, scale=1000).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True)


def write(path, pixels, **profile):
    bands, height, width = pixels.shape
    defaults = dict(crs="EPSG:32632", transform=from_origin(500000, 5000000, 10, 10), tiled=True,
                    blockxsize=64, blockysize=64, compress="deflate")
    defaults.update(profile)
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width,
                       dtype=pixels.dtype, **defaults) as file:
        file.write(pixels)
    return path


@pytest.fixture
def rgb(tmp_path):
    pixels = samples((3, 130, 150), "u1")
    return write(tmp_path / "rgb.tif", pixels, photometric="rgb"), pixels


@pytest.fixture
def dem(tmp_path):
    pixels = samples((1, 300, 200), "f4")
    path = write(tmp_path / "dem.tif", pixels, nodata=-9999.0, predictor=3)
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], Resampling.nearest)
        file.update_tags(SURVEY="spring \N{EURO SIGN}")
        file.set_band_description(1, "elevation")
    return path, pixels


@pytest.fixture
def truncated(tmp_path):
    """A tiled file, uncompressed, whose last tiles are cut off."""
    path = write(tmp_path / "cut.tif", samples((1, 256, 256), "u2"), compress="none")
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 20000)
    return path


# ---- usage ---------------------------------------------------------------------------------------


def test_help_and_version():
    text = done("--help")
    for command in "info", "checksum", "read", "compare", "devices":
        assert re.search(rf"^  {command} ", text, re.M)
        own = done(command, "--help")
        assert own.startswith(f"Usage: cogpu {command}") and "--json" in own
        assert done(command, "-h") == own
    for command in "info", "convert", "warp", "mosaic", "check", "preview", "read", "checksum", "compare", "bench":
        own = done(command, "--help")
        for option in "private-addresses", "anonymous", "region", "endpoint", "max-retries", "timeout":
            assert re.search(rf"^  --{option} ", own, re.M)
    assert re.fullmatch(r"cogpu \d+\.\d+\.\d+\n", done("--version"))
    assert done("-h") == text


def test_no_command_is_wrong_usage():
    result = run()
    assert result.returncode == 2 and b"Usage: cogpu" in result.stderr and result.stdout == b""


@pytest.mark.parametrize("words, message", [
    (["inof", "a.tif"], "no such command: inof; did you mean info?"),
    (["frobnicate"], "no such command: frobnicate; see cogpu --help"),
    (["info"], "info needs FILE...; see cogpu info --help"),
    (["info", "-", "a.tif", "-"], "only one of the files can be stdin"),
    (["bench", "a.tif", "b.tif"], "bench accepts FILE only"),
    (["help", "frobnicate"], "no such command: frobnicate"),
    (["help", "info", "read"], "help accepts one COMMAND only"),
    (["devices", "a.tif"], "devices accepts options only"),
    (["compare", "a.tif"], "compare needs A B"),
    (["compare", "-", "-"], "only one of the two files can be stdin"),
    (["info", "--jsn", "a.tif"], "info has no option --jsn; did you mean --json?"),
    (["info", "--window", "0,0,1,1", "a.tif"], "info has no option --window"),
    (["info", "-x", "a.tif"], "info has no option -x; see cogpu info --help"),
    (["info", "--json=yes", "a.tif"], "--json takes no value"),
    (["info", "a.tif", "--image"], "--image needs a value: --image N"),
    (["info", "a.tif", "--image", "first"], "--image first: expected a number"),
    (["info", "a.tif", "--image", "-1"], "--image -1: expected a number"),
    (["checksum", "a.tif", "--level", "4294967296"], "--level 4294967296: expected a number"),
    (["checksum", "a.tif", "--window", "1,2,3"], "--window 1,2,3: expected x,y,width,height"),
    (["checksum", "a.tif", "--window", "1,2,3,0"], "--window 1,2,3,0: expected"),
    (["checksum", "a.tif", "--window", "1,2,3,4,5"], "--window 1,2,3,4,5: expected"),
    (["checksum", "a.tif", "--window=-1,2,3,4"], "--window -1,2,3,4: expected"),
    (["checksum", "a.tif", "--band", "0"], "--band 0: the first band is 1"),
    (["checksum", "a.tif", "--band", "1,,2"], "--band 1,,2: expected a band"),
    (["checksum", "a.tif", "--band", ""], "--band : expected a band"),
    (["checksum", "a.tif", "--threads", "many"], "--threads many: expected"),
    (["checksum", "a.tif", "--device", "tpu"], "--device tpu: no such device"),
    (["checksum", "a.tif", "--device", "emu:x"], "--device emu:x: no such device"),
    (["read", "a.tif", "--decode", "tpu"], "--decode tpu: no such device"),
    (["read", "a.tif"], "read needs -o OUT"),
    (["read", "a.tif", "-o", "out.jpg"], "-o out.jpg: expected a file name that ends in .npy"),
    (["read", "a.tif", "-o", "out"], "-o out: expected a file name"),
    (["read", "a.tif", "-o"], "--output needs a value"),
    (["read", "a.tif", "-o", "o.npy", "--bbox", "1,2,3"], "--bbox 1,2,3: expected xmin"),
    (["read", "a.tif", "-o", "o.npy", "--bbox", "3,2,1,4"], "--bbox 3,2,1,4: expected xmin"),
    (["read", "a.tif", "-o", "o.npy", "--bbox", "nan,2,3,4"], "--bbox nan,2,3,4: expected"),
    (["read", "a.tif", "-o", "o.npy", "--bbox", "1,2,3,4", "--window", "0,0,1,1"],
     "--bbox and --window cannot be combined"),
    (["read", "a.tif", "-o", "o.npy", "--type", "uint8"], "--type uint8: expected float16, float32"),
    (["read", "a.tif", "-o", "o.npy", "--mask", "--masked"], "--mask cannot be combined with --type, --masked or --unscale"),
    (["checksum", "a.tif", "--masked"], "checksum has no option --masked"),
    (["info", "a.tif", "--max-retries", "101"], "--max-retries 101: expected a number from 0 to 100"),
    (["info", "a.tif", "--retries", "-1"], "--max-retries -1: expected a number"),
    (["info", "a.tif", "--timeout", "0"], "--timeout 0: expected seconds"),
    (["info", "a.tif", "--timeout", "86401"], "--timeout 86401: expected seconds"),
    (["info", "a.tif", "--timeout", "inf"], "--timeout inf: expected seconds"),
    (["info", "a.tif", "--region", ""], "--region : expected the name of a region"),
    (["info", "a.tif", "--endpoint="], "--endpoint : expected the URL"),
    (["info", "a.tif", "--anonymous=yes"], "--anonymous takes no value"),
    (["info", "a.tif", "--private-adresses"], "did you mean --private-addresses?"),
    (["devices", "--anonymous"], "devices has no option --anonymous"),
    (["read", "a.tif", "-o", "s3://bucket/o.npy"], "OUT cannot be a URL"),
])
def test_wrong_usage(words, message):
    assert message in failed(*words, code=2)


def test_two_dashes_end_the_options(tmp_path, rgb):
    odd = tmp_path / "--json"
    odd.write_bytes(rgb[0].read_bytes())
    result = subprocess.run([BINARY, "info", "--", "--json"], cwd=tmp_path, capture_output=True)
    assert result.returncode == 0 and result.stdout.startswith(b"--json\n")


def test_full_disk_behind_stdout_is_an_error(rgb):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        result = subprocess.run([BINARY, "info", str(rgb[0])], stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1 and b"stdout: cannot be written" in result.stderr


# ---- errors of files -----------------------------------------------------------------------------


def test_missing_file_and_no_tiff(tmp_path):
    missing = tmp_path / "missing.tif"
    assert f"cogpu: {missing}: " in failed("info", missing)
    text = tmp_path / "text.tif"
    text.write_text("this is no TIFF file at all")
    for words in (["info", text], ["checksum", text], ["compare", text, text],
                  ["read", text, "-o", tmp_path / "out.npy"]):
        assert f"cogpu: {text}: " in failed(*words)
    empty = tmp_path / "empty.tif"
    empty.write_bytes(b"")
    failed("info", empty)
    failed("info", tmp_path)
    assert not (tmp_path / "out.npy").exists()


def test_urls_need_libcurl():
    url = "http://127.0.0.1:1/a.tif"
    has_curl = json.loads(done("devices", "--json"))["libraries"]["libcurl"] is not None
    assert ("not public" if has_curl else "no libcurl") in failed("info", url, code=2 if has_curl else 1)
    if has_curl:
        assert "file://" in failed("info", "file:///a.tif")


def test_errors_have_a_place_and_a_json_form(truncated):
    line = failed("checksum", truncated)
    assert re.search(r"\(directory 0, block \d+, offset \d+\)$", line)
    result = run("checksum", truncated, "--json")
    error = json.loads(result.stdout)["error"]
    assert result.returncode == 1 and result.stderr.decode().strip() == line
    assert set(error) == {"file", "status", "message", "directory", "block", "offset"}
    assert error["file"] == str(truncated) and error["status"] == "corrupt"
    assert error["directory"] == 0 and error["message"] in line


def test_places_that_do_not_apply_are_null(tmp_path):
    result = run("info", tmp_path / "missing.tif", "--json")
    error = json.loads(result.stdout)["error"]
    assert error["status"] == "not_found"
    assert error["directory"] is error["block"] is error["offset"] is None


def test_absent_image_level_band_window(rgb):
    path, _ = rgb
    failed("info", path, "--image", 9)
    failed("checksum", path, "--image", 9)
    failed("checksum", path, "--level", 9)
    assert "no band 4; the image has 3" in failed("checksum", path, "--band", "1,4")
    assert "reaches beyond level 0, which has 150 x 130 pixels" in \
        failed("checksum", path, "--window", "100,0,51,10", code=2)
    failed("checksum", path, "--window", "4294967295,0,4294967295,1", code=2)


def test_names_cannot_command_the_terminal(tmp_path):
    line = failed("info", tmp_path / "a\x1b[2J\n.tif")
    assert "\x1b" not in line and r"a\x1b[2J\n.tif" in line


# ---- info ----------------------------------------------------------------------------------------


def test_info_for_a_person(dem):
    text = done("info", dem[0])
    for expected in ("size          200 x 300 pixels, 1 band", "samples       float32",
                     "tiles of 64 x 64", "deflate (8), predictor 3 (floating point)",
                     "nodata        -9999", "EPSG:32632", "origin        500000, 5000000",
                     "pixel         10 x -10", "bounds        500000, 4997000, 502000, 5000000",
                     "100 x 150", "50 x 75", "elevation", "SURVEY = spring \N{EURO SIGN}"):
        assert expected in text, text


def test_info_json(dem):
    path, _ = dem
    info = json.loads(done("info", path, "--json"))
    with rasterio.open(path) as file:
        assert (info["width"], info["height"], info["band_count"]) == (200, 300, 1)
        assert info["transform"] == list(file.transform.to_gdal())
        assert info["bounds"] == list(file.bounds)
        assert info["crs"]["code"] == file.crs.to_epsg() and info["crs"]["authority"] == "EPSG"
    assert info["type"] == "float32" and info["bits"] == 32 and info["layout"] == "tiles"
    assert info["codec"] == "deflate" and info["compression"] == 8 and info["predictor"] == 3
    assert info["images"] == 1 and info["image"] == 0 and info["warnings"] == []
    assert info["nodata"] == {"text": "-9999", "matches": True, "value": -9999}
    assert info["mask_source"] == "nodata" and info["palette"] is None and info["rpc"] is None
    assert [(v["width"], v["height"]) for v in info["levels"]] == [(200, 300), (100, 150), (50, 75)]
    assert info["levels"][1]["transform"][1] == 20
    assert info["bands"] == [{"interpretation": "gray", "description": "elevation", "unit": None,
                              "has_scale": False, "scale": 1, "offset": 0, "nodata": info["nodata"]}]
    assert info["sidecars"] == []
    items = {(item["domain"], item["name"]): item["value"] for item in info["metadata"]}
    assert items["", "SURVEY"] == "spring \N{EURO SIGN}"
    assert any(key["id"] == 3072 and key["value"] == [32632] for key in info["geokeys"])
    assert "directories" not in info
    assert info["cog"] is False


def test_info_knows_a_cog(tmp_path):
    pixels = samples((1, 600, 600), "u1")
    source = write(tmp_path / "plain.tif", pixels)
    path = tmp_path / "cog.tif"
    shutil.copy(source, path, driver="COG", blocksize=256)
    info = json.loads(done("info", path, "--json"))
    assert info["cog"] is True and info["ghost"]["ifds_before_data"] and not info["ghost"]["broken"]
    text = done("info", path)
    assert "cog           yes: its ghost area says so" in text
    assert "ghost area    directories before data" in text
    strips = write(tmp_path / "strips.tif", pixels, tiled=False, blockysize=16)
    assert "cog           no: striped, not tiled" in done("info", strips)


def test_info_tags(dem):
    path, _ = dem
    text = done("info", path, "--tags")
    assert re.search(r"^    256  ImageWidth +SHORT +1  200$", text, re.M)
    assert re.search(r"^   3072  \w+ +32632$", text, re.M)
    directories = json.loads(done("info", path, "--tags", "--json"))["directories"]
    with tifffile.TiffFile(path) as file:
        assert len(directories) == len(file.pages)
        for directory, page in zip(directories, file.pages):
            page = page.aspage()
            assert directory["offset"] == page.offset
            assert [tag["id"] for tag in directory["tags"]] == [tag.code for tag in page.tags]
            for ours, tag in zip(directory["tags"], page.tags):
                assert ours["count"] == tag.count and ours["type"] == tag.dtype.name
                if tag.dtype.name in ("SHORT", "LONG") and tag.count < 64:
                    value = tag.value if isinstance(tag.value, tuple) else (int(tag.value),)
                    assert tuple(ours["first"]) == tuple(map(int, value))


def test_info_wkt(dem, tmp_path):
    if json.loads(done("devices", "--json"))["libraries"]["proj"] is None:
        pytest.skip("built without PROJ")
    text = done("info", dem[0], "--wkt")
    assert rasterio.crs.CRS.from_wkt(text).to_epsg() == 32632
    bare = tmp_path / "bare.tif"
    tifffile.imwrite(bare, samples((20, 20), "u1"))
    failed("info", bare, "--wkt")


def test_info_of_other_images(tmp_path):
    path = tmp_path / "pages.tif"
    with tifffile.TiffWriter(path) as file:
        file.write(samples((20, 30), "u1"), metadata=None)
        file.write(samples((40, 50), "u2"), metadata=None)
    assert json.loads(done("info", path, "--json"))["images"] == 2
    other = json.loads(done("info", path, "--json", "--image", 1))
    assert (other["width"], other["height"], other["type"]) == (50, 40, "uint16")
    assert "0 of 0 to 1; --image N shows another" in done("info", path)


def test_info_prints_hostile_text_safely(tmp_path):
    path = tmp_path / "hostile.tif"
    tifffile.imwrite(path, samples((20, 20), "u1"), metadata=None,
                     description=b"\x1b]0;owned\x07 \x9b2J caf\xe9 \"q\"\\\r\n\tend")
    result = run("info", path)
    assert result.returncode == 0
    assert b"\x1b" not in result.stdout and b"\x07" not in result.stdout
    assert r"\x9b2J café" in result.stdout.decode()
    info = json.loads(run("info", path, "--json").stdout.decode())
    assert info["description"] == "\x1b]0;owned\x07 \x9b2J café \"q\"\\\r\n\tend"


# ---- checksum ------------------------------------------------------------------------------------


def sha256(pixels):
    little = np.ascontiguousarray(pixels).astype(pixels.dtype.newbyteorder("<"))
    return hashlib.sha256(little.tobytes()).hexdigest()


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "c8",
                                   "c16"])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_checksum_of_every_type(tmp_path, dtype, interleave):
    pixels = samples((2, 70, 90), dtype)
    path = write(tmp_path / "a.tif", pixels, interleave=interleave)
    assert done("checksum", path) == f"{sha256(pixels)}  {path}\n"


def test_checksum_of_parts(dem, rgb):
    path, pixels = rgb
    for words, part in [
        ([], pixels),
        (["--window", "10,20,77,66"], pixels[:, 20:86, 10:87]),
        (["--band", "3,1"], pixels[[2, 0]]),
        (["--band=2,2", "--threads", 1], pixels[[1, 1]]),
        (["--device", "cpu", "--window", "149,129,1,1"], pixels[:, 129:, 149:]),
    ]:
        assert done("checksum", path, *words).split()[0] == sha256(part), words
    with rasterio.open(dem[0], overview_level=0) as file:
        assert done("checksum", dem[0], "--level", 1).split()[0] == sha256(file.read())


def test_checksum_json(rgb):
    path, pixels = rgb
    told = json.loads(done("checksum", path, "--json", "--band", 2, "--window", "0,1,10,20"))
    assert told == {"file": str(path), "sha256": sha256(pixels[1:2, 1:21, :10]), "image": 0,
                    "level": 0, "window": [0, 1, 10, 20], "bands": [2], "shape": [1, 20, 10],
                    "type": "uint8"}


def test_checksum_of_the_mask(tmp_path):
    pixels = RNG.integers(0, 3, size=(1, 70, 80), dtype="u1")
    path = write(tmp_path / "a.tif", pixels, nodata=1)
    assert done("checksum", path, "--mask").split()[0] == sha256(np.where(pixels == 1, 0, 255)
                                                                .astype("u1"))


def test_stdin(rgb, tmp_path):
    path, pixels = rgb
    data = path.read_bytes()
    assert done("checksum", "-", stdin=data) == f"{sha256(pixels)}  -\n"
    assert json.loads(done("info", "--json", "-", stdin=data))["width"] == 150
    assert done("compare", path, "-", stdin=data).startswith("same pixels")
    assert "cogpu: -: " in failed("info", "-", stdin=b"no TIFF")
    failed("info", "-", stdin=b"")


# ---- read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "c8",
                                   "c16"])
def test_read_npy_and_raw(tmp_path, dtype):
    pixels = samples((3, 50, 70), dtype)
    path = write(tmp_path / "a.tif", pixels)
    text = done("read", path, "-o", tmp_path / "a.npy")
    assert text == f"{tmp_path / 'a.npy'}: 70 x 50 pixels, 3 bands of {pixels.dtype.name}\n"
    array = np.load(tmp_path / "a.npy")
    assert array.dtype == pixels.dtype and np.array_equal(array, pixels)
    done("read", path, f"--output={tmp_path / 'a.raw'}")
    assert (tmp_path / "a.raw").read_bytes() == pixels.tobytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "a.raw", "a.tif"]


def test_read_half_floats_and_complex_integers(tmp_path):
    half = samples((1, 40, 30), "f2")
    tifffile.imwrite(tmp_path / "half.tif", half[0])
    done("read", tmp_path / "half.tif", "-o", tmp_path / "half.npy")
    array = np.load(tmp_path / "half.npy")
    assert array.shape == (1, 40, 30)
    assert np.array_equal(array.astype("f4"), half.astype("f4"))
    path = tmp_path / "complex.tif"
    profile = dict(driver="GTiff", width=9, height=8, count=1, dtype="complex_int16")
    with rasterio.open(path, "w", **profile) as file:
        file.write((np.arange(72).reshape(1, 8, 9) + 5j).astype("c8"))
    done("read", path, "-o", tmp_path / "complex.npy")
    array = np.load(tmp_path / "complex.npy")
    assert array.dtype == np.dtype([("re", "<i2"), ("im", "<i2")])
    assert array["re"].ravel().tolist() == list(range(72)) and (array["im"] == 5).all()


def test_read_parts(dem, rgb, tmp_path):
    out = tmp_path / "part.npy"
    path, pixels = rgb
    done("read", path, "-o", out, "--window", "3,4,50,60", "--band", "3,2")
    assert np.array_equal(np.load(out), pixels[[2, 1], 4:64, 3:53])
    done("read", dem[0], "-o", out, "--level", 2, "--threads", 2)
    with rasterio.open(dem[0], overview_level=1) as file:
        assert np.array_equal(np.load(out), file.read())


def test_read_json(rgb, tmp_path):
    told = json.loads(done("read", rgb[0], "-o", tmp_path / "a.RAW", "--json"))
    assert told == {"file": str(rgb[0]), "output": str(tmp_path / "a.RAW"), "format": "raw",
                    "image": 0, "level": 0, "window": [0, 0, 150, 130], "bands": [1, 2, 3],
                    "shape": [3, 130, 150], "type": "uint8", "sample_bytes": 58500, "bad_blocks": 0}


@pytest.mark.parametrize("box, window", [
    ("500000,4998000,500500,5000000", (0, 0, 50, 200)),  # along pixel edges: no pixel more
    ("500500,4998000,501000,4999000", (50, 100, 50, 100)),
    ("500105,4999005,500195,4999995", (10, 0, 10, 100)),  # touched pixels are taken whole
    ("400000,4999900,600000,6000000", (0, 0, 200, 10)),  # cut to the image
    ("501999,4997001,501999.5,4997002", (199, 299, 1, 1)),
])
def test_read_bbox(dem, tmp_path, box, window):
    path, pixels = dem
    told = json.loads(done("read", path, "-o", tmp_path / "a.npy", "--bbox", box, "--json"))
    x, y, width, height = window
    assert told["window"] == list(window)
    assert np.array_equal(np.load(tmp_path / "a.npy"), pixels[:, y:y + height, x:x + width])


def test_read_bbox_of_a_level(dem, tmp_path):
    told = json.loads(done("read", dem[0], "-o", tmp_path / "a.npy", "--level", 1, "--json",
                           "--bbox", "500000,4998000,500500,5000000"))
    assert told["window"] == [0, 0, 25, 100]


def test_read_bbox_of_south_up_and_negative_coordinates(tmp_path):
    pixels = samples((1, 18, 36), "u1")
    path = write(tmp_path / "a.tif", pixels, crs="EPSG:4326", blockxsize=16, blockysize=16,
                 transform=Affine(10, 0, -180, 0, 10, -90))
    done("read", path, "-o", tmp_path / "a.npy", "--bbox", "-180,-90,-160,-70")
    assert np.array_equal(np.load(tmp_path / "a.npy"), pixels[:, :2, :2])


def test_bbox_that_cannot_be(dem, tmp_path):
    out = tmp_path / "a.npy"
    assert "does not touch the image, which spans 500000,4997000,502000,5000000" in \
        failed("read", dem[0], "-o", out, "--bbox", "0,0,1,1", code=2)
    bare, rotated = tmp_path / "bare.tif", tmp_path / "rotated.tif"
    tifffile.imwrite(bare, samples((20, 20), "u1"))
    assert "no transform" in failed("read", bare, "-o", out, "--bbox", "0,0,1,1", code=2)
    write(rotated, samples((1, 20, 20), "u1"), transform=Affine.rotation(30))
    assert "rotated" in failed("read", rotated, "-o", out, "--bbox", "0,0,1,1", code=2)
    assert not out.exists()


def needs_png():
    if json.loads(done("devices", "--json"))["libraries"]["libpng"] is None:
        pytest.skip("built without libpng")


@pytest.mark.parametrize("bands", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_read_png(tmp_path, bands, dtype, interleave):
    needs_png()
    pixels = samples((bands, 65, 77), dtype)
    extra = dict(photometric="rgb", alpha="yes") if bands == 4 else {}
    path = write(tmp_path / "a.tif", pixels, interleave=interleave, **extra)
    done("read", path, "-o", tmp_path / "a.png")
    with rasterio.open(tmp_path / "a.png") as file:
        assert file.driver == "PNG" and np.array_equal(file.read(), pixels)


def test_read_png_of_a_palette(tmp_path):
    needs_png()
    pixels = samples((1, 40, 30), "u1")
    colours = {i: (i, 255 - i, i // 2, 255) for i in range(256)}
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", width=30, height=40, count=1, dtype="uint8",
                       photometric="palette") as file:
        file.write(pixels)
        file.write_colormap(1, colours)
    done("read", path, "-o", tmp_path / "a.png")
    with rasterio.open(tmp_path / "a.png") as file:
        assert np.array_equal(file.read(), pixels) and file.colormap(1) == colours


def test_png_that_cannot_be(dem, tmp_path):
    needs_png()
    out = tmp_path / "a.png"
    assert "PNG supports uint8 and uint16, but the samples are float32; write .npy or .raw" in \
        failed("read", dem[0], "-o", out)
    five = write(tmp_path / "five.tif", samples((5, 20, 20), "u1"))
    assert "not 5; select bands, such as --band 1,2,3" in failed("read", five, "-o", out)
    assert not out.exists()
    done("read", five, "-o", out, "--band", "5,4,3")


def test_a_fourth_band_that_is_no_alpha_is_told(tmp_path):
    needs_png()
    path = write(tmp_path / "a.tif", samples((4, 20, 20), "u2"), photometric="minisblack",
                 alpha="no")
    result = run("read", path, "-o", tmp_path / "a.png")
    assert result.returncode == 0 and b"band 4 is used as alpha" in result.stderr


@pytest.mark.parametrize("words, dtype", [(["--masked"], "f4"), (["--unscale"], "f4"), (["--type", "float64"], "f8"),
                                          (["--type", "float16", "--masked", "--unscale"], "f2")])
def test_read_floats(tmp_path, words, dtype):
    pixels = RNG.integers(0, 9, size=(2, 70, 80), dtype="i2")
    path = write(tmp_path / "a.tif", pixels, nodata=3)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.25, 2), (-1, 0)
    expected = pixels.astype(dtype)
    if "--unscale" in words:
        expected = expected * np.array([0.25, 2], dtype)[:, None, None] + np.array([-1, 0], dtype)[:, None, None]
    if "--masked" in words:
        expected[pixels == 3] = np.nan
    done("read", path, "-o", tmp_path / "a.npy", *words)
    array = np.load(tmp_path / "a.npy")
    assert array.dtype == dtype and np.array_equal(array, expected, equal_nan=True)


def test_read_floats_that_hold_each_sample(tmp_path):
    path = write(tmp_path / "a.tif", np.ones((1, 5, 6), "i4"))
    assert "bands of float64" in done("read", path, "-o", tmp_path / "a.npy", "--unscale").replace("band of", "bands of")
    assert "float16, float32" in failed("read", path, "-o", tmp_path / "a.npy", "--type", "int8", code=2)


def test_read_mask(tmp_path):
    pixels = RNG.integers(0, 3, size=(1, 70, 80), dtype="i2")
    path = write(tmp_path / "a.tif", pixels, nodata=0)
    done("read", path, "-o", tmp_path / "a.npy", "--mask")
    array = np.load(tmp_path / "a.npy")
    assert array.dtype == np.uint8 and np.array_equal(array, np.where(pixels, 255, 0))


def test_read_fills_bad_blocks(truncated, tmp_path):
    out = tmp_path / "a.npy"
    out.write_bytes(b"old")
    failed("read", truncated, "-o", out)
    assert out.read_bytes() == b"old", "what was there must stay on an error"
    result = run("read", truncated, "-o", out, "--fill-bad-blocks", "--json")
    assert result.returncode == 0 and b"could not be read and were filled" in result.stderr
    assert json.loads(result.stdout)["bad_blocks"] >= 2
    assert (np.load(out)[0, -64:, -64:] == 0).all()
    assert not list(tmp_path.glob("a.npy.*"))


def test_read_output_that_cannot_be(rgb, tmp_path):
    line = failed("read", rgb[0], "-o", tmp_path / "no" / "a.npy")
    assert "cannot open the file's folder" in line and line.count(str(tmp_path / "no" / "a.npy")) == 1
    (tmp_path / "folder.npy").mkdir()
    assert "it is a folder" in failed("read", rgb[0], "-o", tmp_path / "folder.npy")
    result = run("read", rgb[0], "-o", tmp_path / "no" / "a.npy", "--json")
    assert json.loads(result.stdout)["error"]["status"] == "not_found"


def test_read_keeps_links_and_obeys_umask(rgb, tmp_path):
    """A new file has the permissions that the umask leaves, one that is replaced those that it had."""
    target, link = tmp_path / "target.npy", tmp_path / "link.npy"
    link.symlink_to(target)
    for mode in 0o640, 0o604:
        subprocess.run([BINARY, "read", str(rgb[0]), "-o", str(link)], check=True, umask=0o027,
                       stdout=subprocess.DEVNULL)
        assert link.is_symlink() and np.array_equal(np.load(target), rgb[1])
        assert target.stat().st_mode & 0o777 == mode
        target.chmod(0o604)


# ---- compare -------------------------------------------------------------------------------------


def test_compare_same(rgb, tmp_path):
    path, pixels = rgb
    other = write(tmp_path / "b.tif", pixels, compress="lzw", interleave="band", blockxsize=32,
                  blockysize=16)
    assert done("compare", path, other) == "same pixels: 150 x 130, 3 bands of uint8\n"
    told = json.loads(done("compare", path, other, "--json"))
    assert told["same"] is True and told["different_samples"] == 0 and told["first"] is None
    assert told["largest_difference"] == 0 and told["a"]["shape"] == [3, 130, 150]


def different(*words):
    result = run("compare", *words)
    assert result.returncode == 1 and result.stderr == b""
    return result.stdout.decode()


def test_compare_different_pixels(rgb, tmp_path):
    path, pixels = rgb
    changed = pixels.copy()
    changed[2, 0, 0] ^= 1
    changed[1, 100, 149] = 255 - changed[1, 100, 149]
    changed[1, 101, 3] ^= 2
    other = write(tmp_path / "b.tif", changed)
    gap = np.abs(changed.astype(int) - pixels).max()
    text = different(path, other)
    a, b = pixels[1, 100, 149], changed[1, 100, 149]
    assert f"first    band 2, row 100, column 149: {a} and {b}\n" in text
    assert "samples  3 of 58500 (0.00513 %)\n" in text and f"largest  {gap}\n" in text
    told = json.loads(different(path, other, "--json"))
    assert told["same"] is False and told["different_samples"] == 3
    assert told["largest_difference"] == gap
    assert told["first"] == {"band": 2, "row": 100, "column": 149, "a": str(a), "b": str(b)}
    done("compare", path, other, "--band", 1)
    done("compare", path, other, "--window", "0,1,150,99")
    first = json.loads(different(path, other, "--band", "3,2", "--window", "0,0,9,9", "--json"))
    assert first["first"]["band"] == 3 and first["first"]["row"] == 0


def test_compare_shapes_and_types(rgb, tmp_path):
    path, pixels = rgb
    other = write(tmp_path / "b.tif", pixels[:, :100])
    text = different(path, other)
    assert text.startswith("different shapes\n") and "150 x 100 pixels, 3 bands of uint8" in text
    wide = write(tmp_path / "c.tif", pixels.astype("u2"))
    assert different(path, wide).startswith("different sample types\n")
    told = json.loads(different(path, wide, "--json"))
    assert told["same"] is False and told["b"]["type"] == "uint16"
    done("compare", path, other, "--window", "0,0,150,100")
    assert f"cogpu: {other}: the window" in failed("compare", path, other, "--window", "0,0,9,130", code=2)


def test_compare_floats(tmp_path):
    a = np.array([[[1, np.nan, 0.0, np.inf, 5, np.nan]]], "f4")
    b = np.array([[[1, -np.nan, -0.0, np.inf, 5.5, 7]]], "f4")
    first = write(tmp_path / "a.tif", a)
    second = write(tmp_path / "b.tif", b)
    told = json.loads(different(first, second, "--json"))
    assert told["different_samples"] == 2 and told["largest_difference"] == 0.5
    assert told["first"] == {"band": 1, "row": 0, "column": 4, "a": "5", "b": "5.5"}
    only = json.loads(different(first, second, "--json", "--window", "5,0,1,1"))
    assert only["largest_difference"] is None and only["first"]["a"] == "nan"
    done("compare", first, second, "--window", "0,0,4,1")


def test_compare_large_integers_exactly(tmp_path):
    a = np.array([[[2**64 - 1, 0, 2**63]]], "u8")
    b = np.array([[[2**64 - 2, 0, 2**63 + 1]]], "u8")
    files = write(tmp_path / "a.tif", a), write(tmp_path / "b.tif", b)
    told = json.loads(different(*files, "--json"))
    assert told["different_samples"] == 2 and told["largest_difference"] == 1
    assert told["first"]["a"] == str(2**64 - 1) and told["first"]["b"] == str(2**64 - 2)


def test_compare_complex(tmp_path):
    a = np.array([[[1 + 2j, 3 - 4j]]], "c8")
    b = np.array([[[1 + 2j, 0 - 0j]]], "c8")
    files = write(tmp_path / "a.tif", a), write(tmp_path / "b.tif", b)
    told = json.loads(different(*files, "--json"))
    assert told["first"]["a"] == "3-4i" and told["largest_difference"] == 5


def test_compare_names_the_file_that_fails(rgb, truncated, tmp_path):
    valid = write(tmp_path / "valid.tif", samples((1, 256, 256), "u2"))
    assert f"cogpu: {truncated}: " in failed("compare", valid, truncated)
    assert f"cogpu: {truncated}: " in failed("compare", truncated, valid)
    assert "cogpu: /no/such.tif: " in failed("compare", rgb[0], "/no/such.tif")


# ---- devices -------------------------------------------------------------------------------------


def test_devices():
    told = json.loads(done("devices", "--json"))
    assert "cpu" in [device["name"] for device in told["devices"]]
    codecs = {codec["name"]: codec for codec in told["codecs"]}
    for name in "none", "lzw", "packbits":
        assert codecs[name]["can_decode"] and codecs[name]["library"] == "own"
    assert set(told["libraries"]) == {"proj", "libcurl", "libpng"}
    text = done("devices")
    assert re.search(r"^  cpu ", text, re.M) and re.search(r"^ +5  lzw +own$", text, re.M)


def test_emulated_devices(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tif", samples((1, 64, 96), "u2"), compress="lzw")
    expected = done("checksum", path)
    assert "there is no emulated GPU 1: there is one" in failed("checksum", path, "--device", "emu:1")
    monkeypatch.setenv("COGPU_EMU_DEVICES", "2")
    names = [device["name"] for device in json.loads(done("devices", "--json"))["devices"]]
    assert names[-2:] == ["emu:0", "emu:1"]
    for name in "emu", *names[-2:]:
        assert done("checksum", path, "--device", name) == expected
    assert "emu:2" not in names and "there are 2" in failed("checksum", path, "--device", "emu:2")


def test_decode_into_host_memory(tmp_path):
    path = write(tmp_path / "a.tif", samples((2, 300, 400), "u2"), compress="lzw", tiled=True, blockxsize=64,
                 blockysize=64)
    expected = done("checksum", path)
    for words in ["emu"], ["cpu"], ["emu", "--device", "emu"]:
        assert done("checksum", path, "--decode", *words) == expected
    done("read", path, "-o", tmp_path / "a.npy", "--decode", "emu", "--window", "10,20,300,200")
    with rasterio.open(path) as file:
        assert np.array_equal(np.load(tmp_path / "a.npy"), file.read()[:, 20:220, 10:310])
    done("convert", path, tmp_path / "b.tif", "--decode", "emu", "--codec", "zstd")
    assert done("checksum", tmp_path / "b.tif").split()[0] == expected.split()[0]
    told = json.loads(done("bench", path, "--decode", "emu", "--json"))
    assert told["device_blocks"] == told["blocks"] and set(told["stages"]) == {"fetch"}
    assert "there is no emulated GPU 1" in failed("checksum", path, "--decode", "emu:1")
    assert "decode_device" in failed("bench", path, "--device", "emu", "--decode", "cuda", code=2)


# ---- bench ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("device, stages", [("cpu", None), ("emu", {"fetch"})])
def test_bench_has_figures_of_what_it_times(tmp_path, device, stages):
    path = write(tmp_path / "a.tif", samples((1, 64, 96), "u2"), compress="lzw")
    words = "bench", path, "--device", device
    told = json.loads(done(*words, "--json"))
    assert told["bytes"] == 64 * 96 * 2 and told["stored_bytes"] > 0 and told["milliseconds"] > 0
    assert told["device_blocks"] == (told["blocks"] if device == "emu" else 0)
    assert (set(told["stages"]) if "stages" in told else None) == stages
    text = done(*words)
    assert re.search(r"^\d+\.\d\d ms, .* GB/s of pixels, .*\(median of 9\)$", text, re.M)
    assert ("  fetch " in text) == ("no times of its own" in text) == (device == "emu")
    assert "copy" not in text


# ---- large files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """800 MB of pixels, almost all of them in tiles without data."""
    path = tmp_path_factory.mktemp("large") / "sparse.tif"
    with rasterio.open(path, "w", driver="GTiff", width=20000, height=20000, count=1,
                       dtype="uint16", tiled=True, blockxsize=512, blockysize=512, SPARSE_OK=True,
                       compress="deflate") as file:
        file.write(np.full((1, 10, 10), 7, "u2"), window=((15000, 15010), (700, 710)))
    assert path.stat().st_size < 2_000_000
    return path


def sparse_rows():
    blank, marked = np.zeros(20000, "u2"), np.zeros(20000, "u2")
    marked[700:710] = 7
    for row in range(20000):
        yield marked if 15000 <= row < 15010 else blank


def peak_memory(*words):
    """Bytes, and what it printed; by a small process, since a child counts its parent's memory too."""
    told = subprocess.run([sys.executable, Path(__file__).with_name("measure.py"), "120", BINARY,
                           *map(str, words)], stdout=subprocess.PIPE, check=True).stdout
    head, _, text = told.partition(b"\n")
    code, _, kib, _ = head.split()
    assert int(code) == 0
    return int(kib) * 1024, text.decode()


def is_sanitized():
    return b"__asan_init" in Path(BINARY).read_bytes()


def test_memory_is_bounded(sparse, tmp_path):
    if is_sanitized():
        pytest.skip("a sanitizer takes memory of its own")
    hash = hashlib.sha256()
    for row in sparse_rows():
        hash.update(row.tobytes())
    memory, out = peak_memory("checksum", sparse)
    assert out.split()[0] == hash.hexdigest() and memory < 200e6
    memory, out = peak_memory("compare", sparse, sparse)
    assert out.startswith("same") and memory < 300e6
    memory, _ = peak_memory("read", sparse, "-o", tmp_path / "a.npy")
    assert memory < 200e6
    array = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert array.shape == (1, 20000, 20000)
    for i, row in enumerate(sparse_rows()):
        assert i % 7 or np.array_equal(array[0, i], row)


@pytest.mark.parametrize("profile", [
    dict(interleave="pixel"),
    dict(interleave="band"),
    dict(interleave="pixel", tiled=False, blockysize=3000),
    dict(interleave="pixel", tiled=False, blockysize=7, compress="none"),
])
def test_chunks_make_no_difference(tmp_path, profile):
    """72 MB: past what is read at once; a window that begins inside a block."""
    pixels = np.arange(3 * 4000 * 6000, dtype="u4").astype("u1").reshape(3, 4000, 6000)
    pixels[1] += 77
    path = write(tmp_path / "a.tif", pixels, **{**dict(blockxsize=512, blockysize=512), **profile})
    assert done("checksum", path).split()[0] == sha256(pixels)
    done("read", path, "-o", tmp_path / "a.npy", "--window", "5,13,5990,3987")
    assert np.array_equal(np.load(tmp_path / "a.npy"), pixels[:, 13:, 5:5995])
    changed = pixels.copy()
    changed[2, 0, 0] ^= 1
    changed[0, 3999, 5999] ^= 1
    other = write(tmp_path / "b.tif", changed, blockxsize=256, blockysize=256)
    told = json.loads(different(path, other, "--json"))
    assert told["different_samples"] == 2 and told["largest_difference"] == 1
    assert told["first"]["band"] == 1 and told["first"]["row"] == 3999
    if json.loads(done("devices", "--json"))["libraries"]["libpng"] is not None:
        done("read", path, "-o", tmp_path / "a.png")
        with rasterio.open(tmp_path / "a.png") as file:
            assert np.array_equal(file.read(), pixels)


def test_an_interrupt_leaves_nothing_behind(sparse, tmp_path):
    process = subprocess.Popen([BINARY, "read", str(sparse), "-o", str(tmp_path / "a.raw")],
                               stdout=subprocess.DEVNULL)
    while not list(tmp_path.iterdir()) and process.poll() is None:
        time.sleep(0.0005)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) in (-signal.SIGTERM, 0)
    assert process.returncode == 0 or list(tmp_path.iterdir()) == []


def stderr_on_a_terminal(*words):
    try:
        leader, follower = pty.openpty()
    except OSError as why:
        pytest.skip(f"no terminal can be made here: {why}")
    process = subprocess.Popen([BINARY, *map(str, words)], stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 4096):
            shown += part
    except OSError:  # the terminal is gone with the process
        pass
    os.close(leader)
    assert process.wait(120) == 0
    return shown.decode()


def test_progress_is_for_terminals_and_for_long_work(rgb, tmp_path):
    path = tmp_path / "long.tif"
    with rasterio.open(path, "w", driver="GTiff", width=45000, height=45000, count=1,
                       dtype="uint16", tiled=True, blockxsize=512, blockysize=512, SPARSE_OK=True):
        pass
    shown = stderr_on_a_terminal("checksum", path, "--threads", 1)
    assert re.search(r"\r\[#*\.*\] +\d+ %  \d+ MB/s  \d+:\d\d left ", shown), shown[:200]
    assert shown.endswith("\r\x1b[K")
    assert stderr_on_a_terminal("checksum", rgb[0]) == ""
