"""Options of cogpu convert that change what a file says or holds: georeferencing, metadata, type, range, size.

--dtype and --scale follow gdal_translate's -ot and -scale: rounded half away from zero, clamped, NaN becomes 0, nodata is kept.
"""

import json
import os
import re

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
from rasterio.enums import Resampling  # noqa: E402
from rasterio.transform import Affine  # noqa: E402
from test_cli import BINARY, done, failed as cli_failed, run as cli_run, samples, stderr_on_a_terminal  # noqa: E402
from test_convert_cli import PLACE, convert, failed, read, run, write  # noqa: E402

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]


def stored(values, dtype):
    """gdal_translate's -ot, of values that doubles hold."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asarray(values).astype(dtype)
    info, out = np.iinfo(dtype), np.empty(values.shape, dtype)
    for i, value in np.ndenumerate(np.asarray(values, "f8")):
        whole = 0 if np.isnan(value) else value if np.isinf(value) else np.sign(value) * np.floor(abs(value) + 0.5)
        out[i] = info.max if whole >= info.max else info.min if whole <= info.min else int(whole)
    return out


# ---- georeferencing --------------------------------------------------------------------------------


def test_crs(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 20, 20), "u1"), tiled=False)
    out, _ = convert(path, "--crs", "EPSG:3857")
    with rasterio.open(out) as file:
        assert file.crs == rasterio.CRS.from_epsg(3857) and file.transform == PLACE
    wkt = rasterio.CRS.from_epsg(2056).to_wkt()
    out, _ = convert(path, "--crs", wkt)
    with rasterio.open(out) as file:
        assert file.crs.to_epsg() == 2056
    out, _ = convert(path, "--crs", "none")
    with rasterio.open(out) as file:
        assert file.crs is None and file.transform == PLACE
    failed(path, tmp_path / "b.tif", "--crs", "EPSG:nonsense", code=2)


def test_transform_and_bounds(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 20, 40), "u1"), tiled=False)
    out, _ = convert(path, "--transform", "100,2,0.5,900,0.25,-3")
    with rasterio.open(out) as file:
        assert file.transform == Affine.from_gdal(100, 2, 0.5, 900, 0.25, -3)
    out, _ = convert(path, "--bounds", "10,-20,30,20", "--window", "0,0,10,20")
    with rasterio.open(out) as file:
        assert tuple(file.bounds) == (10, -20, 30, 20) and file.transform == Affine(2, 0, 10, 0, -2, 20)
    assert "cannot be combined" in failed(path, out, "--bounds", "0,0,1,1", "--transform", "0,1,0,0,0,-1", code=2)
    assert "six numbers" in failed(path, out, "--transform", "0,1,0,0,0,0", code=2)
    assert "xmin < xmax" in failed(path, out, "--bounds", "1,0,1,1", code=2)


# ---- metadata --------------------------------------------------------------------------------------


def test_metadata_option(tmp_path):
    path = write(tmp_path / "a.tif", samples((2, 20, 20), "u1"), tiled=False)
    with rasterio.open(path, "r+") as file:
        file.update_tags(KEPT="1", CHANGED="old", GONE="x", AREA_OR_POINT="Area")
        file.update_tags(2, BAND="old", STAYS="y")
        file.update_tags(ns="MINE", A="1", B="2")
        file.update_tags(TIFFTAG_SOFTWARE="before", TIFFTAG_ARTIST="someone")
    words = ["--metadata", "CHANGED=new = more", "--metadata", "GONE=", "--metadata=2:BAND=b", "--metadata", "1:MINE:IN=both",
             "--metadata", "MINE:A=3", "--metadata", ":WITH:COLON=c", "--metadata", "TIFFTAG_SOFTWARE=after",
             "--metadata", "TIFFTAG_ARTIST=", "--metadata", "TIFFTAG_COPYRIGHT=all", "--metadata", "AREA_OR_POINT=point",
             "--metadata", "1:DESCRIPTION=first"]
    out, _ = convert(path, *words)
    with rasterio.open(out) as file:
        tags = file.tags()
        assert tags.pop("WITH") == "COLON=c"  # rasterio takes the first colon for a separator
        assert tags == {"KEPT": "1", "CHANGED": "new = more", "AREA_OR_POINT": "Point", "TIFFTAG_SOFTWARE": "after", "TIFFTAG_COPYRIGHT": "all"}
        assert file.tags(2) == {"BAND": "b", "STAYS": "y"} and file.tags(1, ns="MINE") == {"IN": "both"}
        assert file.tags(ns="MINE") == {"A": "3", "B": "2"} and file.descriptions == ("first", None)
    for word, message in ("KEY", "expected KEY=VALUE"), ("=x", "expected KEY=VALUE"), ("0:A=b", "expected KEY=VALUE"), \
            ("9:A=b", "2 bands"), ("AREA_OR_POINT=maybe", "Area or Point"):
        assert message in failed(path, out, "--metadata", word, code=2)


def test_domains_and_band_items_survive(tmp_path):
    """In convert, and in what info tells."""
    path = write(tmp_path / "a.tif", samples((2, 20, 20), "u1"), tiled=False)
    with rasterio.open(path, "r+") as file:
        file.update_tags(SURVEY="spring")
        file.update_tags(1, SENSOR="a <b> & \N{EURO SIGN}")
        file.update_tags(2, ns="CALIBRATION", GAIN="2.5")
        file.update_tags(ns="OTHER", DEEP="x")
    for words in [], ["--cog"], ["--band", "2,1"]:
        out, _ = convert(path, *words)
        first, second = (2, 1) if "--band" in words else (1, 2)
        with rasterio.open(out) as file:
            assert file.tags()["SURVEY"] == "spring" and file.tags(ns="OTHER") == {"DEEP": "x"}
            assert file.tags(first) == {"SENSOR": "a <b> & \N{EURO SIGN}"} and file.tags(second, ns="CALIBRATION") == {"GAIN": "2.5"}
            assert file.tags(second) == {}
        told = json.loads(done("info", out, "--json"))
        items = {(item["band"], item["domain"], item["name"]): item["value"] for item in told["metadata"]}
        assert items[(first, "", "SENSOR")] == "a <b> & \N{EURO SIGN}" and items[(second, "CALIBRATION", "GAIN")] == "2.5"
        assert any(key[1:] == ("OTHER", "DEEP") for key in items)
        text = done("info", out)
        assert all(word in text for word in ("SENSOR", "CALIBRATION", "GAIN", "OTHER", "DEEP"))


# ---- types and ranges --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_from_floats(tmp_path, dtype):
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.4, 1e10, -1e10, 1e300, -1e300, np.nan, np.inf, -np.inf, 127.5, -128.6, 65535.5, 2.4999, 7, 0])
    pixels = np.tile(values, (2, 5, 40))
    path = write(tmp_path / "a.tif", pixels, tiled=False)
    for words in [], ["--interleave", "band"]:
        out, told = convert(path, "--dtype", dtype.upper(), *words)
        found = read(out)
        with np.errstate(over="ignore"):
            assert found.dtype == dtype == told["type"] and np.array_equal(found, stored(pixels, dtype), equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", ["u1", "i1", "i2", "u4", "u8", "i8"])
def test_dtype_from_integers(tmp_path, dtype, source):
    info = np.iinfo(source)
    pixels = np.concatenate([samples((1, 30, 40), source), np.full((1, 1, 40), info.max, source), np.full((1, 1, 40), info.min, source)], 1)
    out, _ = convert(write(tmp_path / "a.tif", pixels, tiled=False), "--dtype", dtype)
    found = read(out)
    if found.dtype.kind == "f":
        assert (found == pixels.astype(dtype)).all()
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        assert (found == np.array([min(max(int(v), low), high) for v in pixels.ravel()], dtype).reshape(pixels.shape)).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", None])
@pytest.mark.parametrize("numbers", [(0, 100), (-50, 200, 10, 20), (100, 0), (5, 5, 0, 1)])
def test_scale(tmp_path, dtype, numbers):
    pixels = samples((2, 40, 50), "i2")
    path = write(tmp_path / "a.tif", pixels, tiled=False, interleave="band")
    out, _ = convert(path, "--scale", ",".join(map(str, numbers)), *(["--dtype", dtype] if dtype else []))
    low, high, to_low, to_high = [*map(float, numbers), 0, 255.999][:4] if len(numbers) == 2 else map(float, numbers)
    high += 0.1 if high == low else 0
    ratio = (to_high - to_low) / (high - low)
    expected = stored(pixels * ratio + (to_low - low * ratio), dtype or "int16")
    assert (read(out) == expected).all()


def test_scale_by_the_range_of_each_band(tmp_path):
    pixels = np.stack([samples((40, 50), "u2") // 4, samples((40, 50), "u2") // 2 + 100])
    pixels[0, 0, 0] = 60000
    path = write(tmp_path / "a.tif", pixels, tiled=False, nodata=60000)
    out, _ = convert(path, "--scale", "--dtype", "uint8", "--window", "0,0,30,20", notes=1)
    valid = np.where(pixels == 60000, np.nan, pixels)
    low, high = np.nanmin(valid, (1, 2), keepdims=True), np.nanmax(valid, (1, 2), keepdims=True)
    ratio = 255.999 / (high - low)
    expected = stored(np.where(pixels == 60000, 255, pixels * ratio - low * ratio), "u1")
    assert (read(out) == expected[:, :20, :30]).all()
    with rasterio.open(out) as file:
        assert file.nodata == 255


@pytest.mark.parametrize("dtype, nodata, kept", [("uint8", -9999, 0), ("int16", -9999, -9999), ("uint16", 1e9, 65535), ("float32", -9999, -9999)])
def test_nodata_is_converted_with_the_samples(tmp_path, dtype, nodata, kept):
    pixels = np.full((1, 20, 20), nodata, "f8")
    pixels[0, 5:] = 7
    path = write(tmp_path / "a.tif", pixels, tiled=False, nodata=nodata)
    for words in [], ["--scale", "0,10,0,100"]:
        out, told = convert(path, "--dtype", dtype, *words, notes=nodata != kept)
        with rasterio.open(out) as file:
            assert file.nodata == kept and (file.read(1)[:5] == kept).all() and (file.read(1)[5:] == (70 if words else 7)).all()
        assert not told["notes"] or f"became {kept}" in told["notes"][0]


def test_types_that_cannot_be(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 20, 20), "c8"), tiled=False)
    assert "real" in failed(path, tmp_path / "b.tif", "--dtype", "uint8")
    assert "expected uint8" in failed(path, tmp_path / "b.tif", "--dtype", "complex64", code=2)
    assert "expected SMIN,SMAX" in failed(path, tmp_path / "b.tif", "--scale", "1,2,3", code=2)


def test_types_on_a_device(tmp_path):
    pixels = samples((3, 200, 150), "i2")
    path = write(tmp_path / "a.tif", pixels)
    for words in ["--dtype", "uint8"], ["--dtype", "float32"], ["--scale", "0,1000"], ["--size", "50,0"]:
        out, _ = convert(path, *words)
        expected = read(out)
        out, _ = convert(path, *words, "--device", "emu")
        assert (read(out) == expected).all()


def test_palettes_and_statistics_do_not_survive_other_values(tmp_path):
    path = write(tmp_path / "a.tif", np.arange(400, dtype="u1").reshape(1, 20, 20) % 200, tiled=False, photometric="palette")
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {i: (i, 0, 255 - i, 255) for i in range(256)})
        file.update_tags(1, STATISTICS_MAXIMUM="199")
    for words, kept in (["--size", "10,10"], True), (["--dtype", "uint16"], True), (["--scale", "0,9"], False), (["--dtype", "float32"], False):
        out, _ = convert(path, *words)
        with rasterio.open(out) as file:
            assert "STATISTICS_MAXIMUM" not in file.tags(1) and (file.colorinterp[0].name == "palette") == kept
    assert (read(convert(path, "--size", "10,10")[0]) == read(path)[:, ::2, ::2]).all()  # nearest, as in overviews


# ---- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["nearest", "average", "bilinear", "cubic", "mode", "rms"])
@pytest.mark.parametrize("factor", [2, 3])
def test_size_is_as_overviews_are(tmp_path, method, factor):
    """A size that an overview has is what GDAL's overview holds."""
    pixels = samples((2, 120, 180), "u2")
    path = write(tmp_path / "a.tif", pixels)
    out, told = convert(path, "--size", f"{180 // factor},{120 // factor}", "--resampling", method)
    with rasterio.open(path, "r+") as file:
        file.build_overviews([factor], Resampling[method])
    with rasterio.open(path, overview_level=0) as file:
        expected = file.read().astype(int)
    assert told["shape"] == [2, 120 // factor, 180 // factor]
    assert np.abs(read(out).astype(int) - expected).max() <= (0 if method in ("nearest", "average", "mode") else 1)
    with rasterio.open(out) as file:
        assert np.allclose(file.transform, PLACE * Affine.scale(factor)) and file.crs.to_epsg() == 32632


@pytest.mark.parametrize("size", [(77, 41), (180, 120), (1, 1), (0, 40), (45, 0)])
def test_any_size(tmp_path, size):
    pixels = samples((1, 120, 180), "f4")
    path = write(tmp_path / "a.tif", pixels)
    out, told = convert(path, "--size", f"{size[0]},{size[1]}", "--resampling", "average")
    width, height = size[0] or 180 * size[1] // 120, size[1] or 120 * size[0] // 180
    with rasterio.open(path) as file, rasterio.open(out) as made:
        expected = file.read(out_shape=(1, height, width), resampling=Resampling.average)
        assert made.shape == (height, width) and np.allclose(made.read(), expected, rtol=1e-5, atol=1e-3)
        assert np.allclose(np.array(made.bounds), np.array(file.bounds))


def test_size_reads_the_best_overview(tmp_path):
    """Levels are told apart by their values."""
    path = write(tmp_path / "a.tif", np.zeros((1, 512, 512), "u1"))
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4, 8], Resampling.nearest)
    for level, value in enumerate((50, 100, 150)):
        with rasterio.open(path, "r+", overview_level=level) as file:
            file.write(np.full((1, *file.shape), value, "u1"))
    for size, value in (512, 0), (300, 0), (256, 50), (200, 50), (128, 100), (65, 100), (64, 150), (10, 150):
        out, told = convert(path, "--size", f"{size},{size}")
        assert (read(out) == value).all(), size
    out, told = convert(path, "--size", "10,10", "--level", 1)
    assert (read(out) == 50).all() and told["level"] == 1
    for window, value in (("0,0,256,256", 100), ("1,0,256,256", 0), ("2,2,256,256", 50)):
        out, told = convert(path, "--window", window, "--size", "64,64")
        assert (read(out) == value).all(), window


def test_size_heeds_masks_and_nodata(tmp_path):
    pixels = samples((1, 100, 100), "u2") // 2 + 1
    pixels[0, ::2] = 0
    path = write(tmp_path / "a.tif", pixels, nodata=0)
    out, _ = convert(path, "--size", "50,50")
    odd = pixels[0, 1::2].astype("f8")
    assert np.abs(read(out)[0] - (odd[:, ::2] + odd[:, 1::2]) / 2).max() <= 0.5
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write(tmp_path / "b.tif", pixels)
        with rasterio.open(path, "r+") as file:
            file.write_mask((pixels[0] != 0).astype("u1") * 255)
    out, _ = convert(path, "--size", "50,50")
    assert np.abs(read(out)[0] - (odd[:, ::2] + odd[:, 1::2]) / 2).max() <= 0.5


def test_size_of_much_more_than_memory_holds(tmp_path, run):
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=3, height=12000, width=30000, dtype="uint8", tiled=True, sparse_ok=True) as file:
        file.write(np.full((1, 600, 600), 200, "u1"), [1], window=rasterio.windows.Window(0, 0, 600, 600))
    result = run(BINARY, "convert", path, tmp_path / "b.tif", "--size", "300,120", "--threads", 1, timeout=120)
    assert result.code == 0 and result.mib < 400
    found = read(tmp_path / "b.tif")
    assert (found[0, :6, :6] == 200).all() and found.sum() == 200 * 36


def test_sizes_that_cannot_be(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 20, 20), "u1"), tiled=False)
    assert "can only make images smaller" in failed(path, tmp_path / "b.tif", "--size", "21,20", code=2)
    for word in "0,0", "5", "a,b", "5,5,5":
        assert "expected W,H" in failed(path, tmp_path / "b.tif", "--size", word, code=2)


# ---- words -----------------------------------------------------------------------------------------


def test_codec_names_in_any_case(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 64, 64), "u1"))
    for name, expected in ("ZSTD", "ZSTD"), ("Deflate", "DEFLATE"), ("LZW", "LZW"), ("Lerc_ZSTD", "LERC_ZSTD"):
        out, _ = convert(path, "--codec", name)
        with rasterio.open(out) as file:
            assert file.profile["compress"].upper() == expected
    convert(path, "--cog", "--resampling", "NEAREST", "--bigtiff", "Yes", "--predictor", "AUTO")


@pytest.mark.parametrize("codec, options, is_lossy", [
    ("jpeg", {}, True), ("webp", {"WEBP_LOSSLESS": False}, True), ("webp", {"WEBP_LOSSLESS": True}, False), ("lerc", {"MAX_Z_ERROR": 3}, True),
    ("lerc", {}, False), ("deflate", {}, False),
])
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_lossy_input_is_noted(tmp_path, codec, options, is_lossy, dtype):
    if codec in ("jpeg", "webp") and dtype == "f4":
        pytest.skip("it has bytes alone")
    path = write(tmp_path / "a.tif", samples((3, 64, 64), dtype), compress=codec, **options)
    _, told = convert(path, "--codec", "zstd", notes=int(is_lossy))
    assert not is_lossy or f"lossy compression ({codec})" in told["notes"][0]
    if codec != "deflate":
        lossy = {"jpeg": [], "webp": [], "lerc": ["--max-z-error", "3"]}[codec]
        convert(path, "--codec", codec, *lossy)


def test_usage_errors_as_json():
    for words in ["info", "--json"], ["info", "--jsn", "a", "--json"], ["convert", "a.tif", "b.tif", "--codec", "best", "--json"], \
            ["frobnicate", "--json"], ["checksum", "a", "--level", "x", "--json"]:
        result = cli_run(*words)
        told = json.loads(result.stdout)["error"]
        assert result.returncode == 2 and told["status"] == "usage" and told["file"] is None
        assert result.stderr.decode() == f"cogpu: {told['message']}\n"
    result = cli_run("info", "--", "--json")
    assert result.returncode == 1 and result.stdout == b""


def test_help_of_a_command():
    assert done("help") == done("--help")
    for command in "info", "convert", "read":
        assert done("help", command) == done(command, "--help")
    assert "did you mean info" in cli_failed("help", "inof", code=2)


def test_quiet_and_verbose(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 64, 64), "u1"), compress="jpeg")
    out = tmp_path / "b.tif"
    result = run(path, out, "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    result = run(path, out, "--verbose")
    lines = result.stderr.decode().splitlines()
    assert result.returncode == 0 and len(lines) == 3 and "1 blocks read" in lines[1] and "blocks written" in lines[2]
    assert cli_run("checksum", path, "--quiet").stdout == cli_run("checksum", path).stdout
    assert cli_run("read", path, "-o", tmp_path / "a.npy", "--quiet").stdout == b""
    result = run("no.tif", out, "--quiet")
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("columns", [8, 20, 35, 50, 80, 200])
def test_progress_fits_the_terminal(tmp_path, columns, monkeypatch):
    path = tmp_path / "long.tif"
    with rasterio.open(path, "w", driver="GTiff", width=45000, height=45000, count=1, dtype="uint16", tiled=True, blockxsize=512, blockysize=512,
                       SPARSE_OK=True):
        pass
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = stderr_on_a_terminal("checksum", path, "--threads", 1)
    lines = [line.replace("\x1b[K", "") for line in shown.split("\r") if line.replace("\x1b[K", "")]
    assert lines and all(len(line) < columns and re.search(r"\d %", line) for line in lines), lines[:3]
    assert ("[" in lines[0]) == (columns >= 50) or columns == 35
    assert stderr_on_a_terminal("checksum", path, "--threads", 1, "--quiet") == ""
