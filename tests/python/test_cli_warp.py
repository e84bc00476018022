"""cogpu warp and cogpu mosaic, compared with gdalwarp and gdalbuildvrt of the GDAL inside rasterio, which is called by ctypes.

Positions are exact on both sides (--error 0, -et 0), so that pixels can be equal. Where inputs overlap, GDAL's last is on top.
"""

import ctypes
import json
import os
import re
import resource
import subprocess
from ctypes import c_void_p

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
from rasterio.enums import ColorInterp, Resampling  # noqa: E402
from rasterio.transform import from_origin  # noqa: E402
from rasterio.warp import transform_bounds  # noqa: E402
from test_cli import BINARY, done, failed, run  # noqa: E402
from warp_cases import gdal  # noqa: E402

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")

METHODS = {"nearest": "near", "average": "average", "rms": "rms", "bilinear": "bilinear", "cubic": "cubic", "mode": "mode",
           "min": "min", "max": "max", "median": "med", "cubicspline": "cubicspline", "lanczos": "lanczos", "q1": "q1", "q3": "q3",
           "sum": "sum"}
COLOURS = (ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha)


# ---- helpers ---------------------------------------------------------------------------------------


def smooth(width, height, phase=0.0, dtype="int16"):
    """One band of a surface whose neighbours differ a little."""
    y, x = np.mgrid[:height, :width]
    surface = 1000 + 500 * np.sin(x / 23 + phase) * np.cos(y / 17) + 2 * x - y
    return surface[None].astype(dtype)


def write(path, pixels, left=500000, top=5000000, size=10.0, crs="EPSG:32632", overviews=(), **profile):
    bands, height, width = pixels.shape
    options = dict(crs=crs, transform=from_origin(left, top, size, size), tiled=True, blockxsize=64, blockysize=64,
                   compress="deflate") | profile
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width, dtype=pixels.dtype.name, **options) as file:
        file.write(pixels)
        if overviews:
            file.build_overviews(overviews, Resampling.average)
    return path


def array_of(words):
    return (ctypes.c_char_p * (len(words) + 1))(*[str(word).encode() for word in words], None)


def by_gdal(name, out, paths, words):
    """gdalwarp or gdalbuildvrt: GDALWarp or GDALBuildVRT, which differ in their arguments."""
    library = gdal()
    for function in "GDALWarp", "GDALBuildVRT", f"{name}AppOptionsNew" if name == "GDALWarp" else f"{name}OptionsNew", "GDALOpen":
        getattr(library, function).restype = c_void_p
    kind = f"{name}AppOptions" if name == "GDALWarp" else f"{name}Options"
    options = getattr(library, f"{kind}New")(array_of(words), None)
    inputs = (c_void_p * len(paths))(*[library.GDALOpen(str(path).encode(), 0) for path in paths])
    assert all(inputs) and options
    if name == "GDALWarp":
        made = library.GDALWarp(str(out).encode(), None, len(paths), inputs, c_void_p(options), None)
    else:
        made = library.GDALBuildVRT(str(out).encode(), len(paths), inputs, None, c_void_p(options), None)
    assert made
    library.GDALClose(c_void_p(made))
    for file in inputs:
        library.GDALClose(c_void_p(file))
    getattr(library, f"{kind}Free")(c_void_p(options))
    return out


def gdalwarp(out, paths, *words):
    return by_gdal("GDALWarp", out, paths, ["-q", "-et", "0", "-wm", "2000", "-of", "GTiff", *words])


def warp(out, paths, *words):
    """Runs cogpu warp, which must say nothing on stderr; returns its JSON."""
    return json.loads(done("warp", *paths, out, "--json", *words))


def opened(path, **options):
    with rasterio.open(path, **options) as file:
        return file.read(), file.profile, file.bounds


def same_grid(a, b):
    """Transforms are compared in pixels of the far corner: both add up their errors."""
    with rasterio.open(a) as one, rasterio.open(b) as other:
        assert (one.width, one.height) == (other.width, other.height)
        assert one.crs == other.crs
        for corner in (0, 0), (one.width, one.height):
            column, row = ~other.transform @ (one.transform @ corner)
            assert abs(column - corner[0]) < 1e-6 and abs(row - corner[1]) < 1e-6, (one.transform, other.transform)


def same_pixels(a, b, rounded=0, other=0):
    """Of a million samples so many may be rounded otherwise, and so many may be others: their positions are on an edge."""
    ours, theirs = opened(a)[0], opened(b)[0]
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    far = np.abs(ours.astype("f8") - theirs)
    assert (far > 0).mean() * 1e6 <= rounded + other, ((far > 0).sum(), far.max())
    assert (far > 1).mean() * 1e6 <= other, ((far > 1).sum(), far.max())


@pytest.fixture
def pair(tmp_path):
    """Two files that overlap, of one CRS and pixel size."""
    return [write(tmp_path / "a.tif", smooth(200, 150), nodata=-1),
            write(tmp_path / "b.tif", smooth(200, 150, 2), left=501500, top=4999300, nodata=-1)]


@pytest.fixture
def zones(tmp_path):
    """Two files of neighbouring zones and different pixel sizes."""
    left, bottom, right, top = transform_bounds("EPSG:4326", "EPSG:32633", 11.98, 45.0, 12.1, 45.08)
    return [write(tmp_path / "zone32.tif", smooth(400, 350), left=728000, top=4998000, size=30, nodata=-1),
            write(tmp_path / "zone33.tif", smooth(250, 240, 1), left=left, top=top, size=40, crs="EPSG:32633", nodata=-1)]


# ---- grids -----------------------------------------------------------------------------------------

GRIDS = [
    ([], []),
    (["--crs", "EPSG:3857"], ["-t_srs", "EPSG:3857"]),
    (["--crs", "EPSG:4326"], ["-t_srs", "EPSG:4326"]),
    (["--res", "55"], ["-tr", "55", "55"]),
    (["--res", "55,35"], ["-tr", "55", "35"]),
    (["--res", "55,35", "--align"], ["-tr", "55", "35", "-tap"]),
    (["--size", "310,200"], ["-ts", "310", "200"]),
    (["--size", "310,0"], ["-ts", "310", "0"]),
    (["--size", "0,170"], ["-ts", "0", "170"]),
    (["--bounds", "730000,4990000,738000,4997000", "--res", "25"], ["-te", "730000", "4990000", "738000", "4997000", "-tr", "25", "25"]),
    (["--bounds", "730000,4990000,738000,4997000", "--size", "130,0"],
     ["-te", "730000", "4990000", "738000", "4997000", "-ts", "130", "0"]),
    (["--bounds", "11.95,45.0,12.05,45.07", "--bounds-crs", "EPSG:4326", "--res", "40"],
     ["-te", "11.95", "45.0", "12.05", "45.07", "-te_srs", "EPSG:4326", "-tr", "40", "40"]),
    (["--crs", "EPSG:3035", "--res", "50", "--align"], ["-t_srs", "EPSG:3035", "-tr", "50", "50", "-tap"]),
    (["--t-srs", "EPSG:3035", "--tr", "50", "--tap"], ["-t_srs", "EPSG:3035", "-tr", "50", "50", "-tap"]),
    (["--te", "730000,4990000,738000,4997000", "--ts", "130,110"], ["-te", "730000", "4990000", "738000", "4997000", "-ts", "130", "110"]),
]


@pytest.mark.parametrize("ours, theirs", GRIDS, ids=lambda words: " ".join(words) or "default")
def test_grids(zones, tmp_path, ours, theirs):
    out, expected = tmp_path / "out.tif", tmp_path / "expected.tif"
    warp(out, zones, "--composite", "last", "--error", "0", "--full-resolution", *ours)
    gdalwarp(expected, zones, "-ovr", "NONE", *theirs)
    same_grid(out, expected)
    # Versions of PROJ differ by 0.5 mm in EPSG:3035: so near an edge of 30 m pixels are 33 of a million positions on each axis.
    same_pixels(out, expected, other=66 if "EPSG:3035" in ours else 20)


def test_a_single_file(zones, tmp_path):
    out, expected = tmp_path / "out.tif", tmp_path / "expected.tif"
    warp(out, zones[:1], "--crs", "EPSG:3857", "--error", "0")
    same_grid(out, gdalwarp(expected, zones[:1], "-t_srs", "EPSG:3857"))
    same_pixels(out, expected, other=20)


def test_a_transform(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair, "--transform", "500100,10,0,4999900,0,-10", "--size", "50,40")
    pixels, profile, _ = opened(out)
    assert profile["transform"] == from_origin(500100, 4999900, 10, 10)
    assert np.array_equal(pixels, opened(pair[0])[0][:, 10:50, 10:60])


def test_like(zones, tmp_path):
    like = write(tmp_path / "like.tif", smooth(90, 80), left=1320000, top=5640000, size=100, crs="EPSG:3857")
    out, expected = tmp_path / "out.tif", tmp_path / "expected.tif"
    warp(out, zones, "--like", like, "--error", "0")
    same_grid(out, like)
    bounds = opened(like)[2]
    gdalwarp(expected, zones[::-1], "-t_srs", "EPSG:3857", "-te", *bounds, "-ts", "90", "80", "-ovr", "NONE")
    same_pixels(out, expected, rounded=300, other=30)
    missing = failed("warp", *zones, out, "--like", tmp_path / "missing.tif")
    assert "missing.tif" in missing
    plain = tmp_path / "plain.tif"
    with rasterio.open(plain, "w", driver="GTiff", count=1, height=8, width=8, dtype="uint8") as file:
        file.write(np.zeros((1, 8, 8), "u1"))
    assert "plain.tif" in failed("warp", *zones, out, "--like", plain, code=2)


# ---- pixels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("resolution", ["20", "95"])
def test_resampling(zones, tmp_path, method, resolution):
    out, expected = tmp_path / "out.tif", tmp_path / "expected.tif"
    warp(out, zones[:1], "--crs", "EPSG:3857", "--res", resolution, "--bounds", "1326000,5627000,1335000,5635500", "--error", "0",
         "--resampling", method, "--full-resolution")
    gdalwarp(expected, zones[:1], "-t_srs", "EPSG:3857", "-tr", resolution, resolution, "-te", "1326000", "5627000", "1335000", "5635500",
             "-r", METHODS[method], "-ovr", "NONE")
    same_grid(out, expected)
    same_pixels(out, expected, rounded=300, other=30)
    assert (opened(out)[0] != -1).mean() > 0.5


def test_overviews_are_used_as_gdal_does(tmp_path):
    path = write(tmp_path / "a.tif", smooth(600, 500), overviews=[2, 4, 8], nodata=-1)
    full, out, expected = tmp_path / "full.tif", tmp_path / "out.tif", tmp_path / "expected.tif"
    words = "--crs", "EPSG:3857", "--res", "70", "--error", "0"
    warp(out, [path], *words)
    gdalwarp(expected, [path], "-t_srs", "EPSG:3857", "-tr", "70", "70")
    same_pixels(out, expected, rounded=300, other=30)
    warp(full, [path], *words, "--full-resolution")
    assert not np.array_equal(opened(out)[0], opened(full)[0])


def test_error_of_positions(zones, tmp_path):
    """Interpolated positions differ from exact ones, by little."""
    exact, near, far = (tmp_path / name for name in ("exact.tif", "near.tif", "far.tif"))
    words = "--crs", "EPSG:3857", "--resampling", "bilinear"
    warp(exact, zones[:1], *words, "--error", "0")
    warp(near, zones[:1], *words)
    warp(far, zones[:1], *words, "--error", "0.125")
    assert np.array_equal(opened(near)[0], opened(far)[0])  # the default
    difference = np.abs(opened(exact)[0].astype("i4") - opened(near)[0])
    assert 0 < difference.mean() < 10


def merged(pair, choose):
    """Both files on their union, where `choose` makes one sample of the valid ones of each pixel."""
    one, other = (opened(path)[0][0].astype("f8") for path in pair)
    layers = np.full((2, 220, 350), np.nan)
    layers[0, :150, :200] = one
    layers[1, 70:220, 150:350] = other
    with np.errstate(all="ignore"):
        some = ~np.isnan(layers).all(axis=0)
        return np.where(some, choose(np.where(some, layers, 0)), -1)


@pytest.mark.parametrize("composite, choose", [
    ("first", lambda layers: np.where(np.isnan(layers[0]), layers[1], layers[0])),
    ("last", lambda layers: np.where(np.isnan(layers[1]), layers[0], layers[1])),
    ("min", lambda layers: np.nanmin(layers, axis=0)),
    ("max", lambda layers: np.nanmax(layers, axis=0)),
    ("mean", lambda layers: np.floor(np.nanmean(layers, axis=0) + 0.5)),
    ("median", lambda layers: np.nanmin(layers, axis=0)),
])
def test_composites(pair, tmp_path, composite, choose):
    out = tmp_path / "out.tif"
    warp(out, pair, "--composite", composite)
    assert np.array_equal(opened(out)[0][0], merged(pair, choose))


def test_counts(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair, "--composite", "count", "--nodata", "none")
    expected = np.zeros((220, 350))
    expected[:150, :200] += 1
    expected[70:220, 150:350] += 1
    assert np.array_equal(opened(out)[0][0], expected)


def test_nodata(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair)
    assert opened(out)[1]["nodata"] == -1 and opened(out)[0][0, 0, -1] == -1
    warp(out, pair, "--nodata", "-32768")
    assert opened(out)[1]["nodata"] == -32768 and opened(out)[0][0, 0, -1] == -32768
    warp(out, pair, "--nodata", "none")
    assert opened(out)[1]["nodata"] is None and opened(out)[0][0, 0, -1] == 0
    value = opened(pair[0])[0][0, 5, 5]
    warp(out, pair, "--src-nodata", value)  # and so the nodata of OUT
    assert opened(out)[1]["nodata"] == value
    pixels = opened(pair[0])[0].copy()
    pixels[0, :10, :10] = -1
    hole = write(tmp_path / "hole.tif", pixels, nodata=-1)
    under = write(tmp_path / "under.tif", smooth(200, 150, 1), nodata=-1)
    warp(out, [hole, under])
    assert np.array_equal(opened(out)[0][:, :10, :10], opened(under)[0][:, :10, :10])
    warp(out, [hole, under], "--src-nodata", "none", "--nodata", "none")
    assert np.array_equal(opened(out)[0], pixels)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float32", "float64"])
def test_dtype(zones, tmp_path, dtype):
    names = {"uint8": "Byte", "uint16": "UInt16", "int32": "Int32", "float32": "Float32", "float64": "Float64"}
    out, expected = tmp_path / "out.tif", tmp_path / "expected.tif"
    words = ["--nodata", "0", "--crs", "EPSG:3857", "--res", "60", "--resampling", "bilinear", "--full-resolution"]
    warp(out, zones[:1], "--dtype", dtype, "--error", "0", *words)
    gdalwarp(expected, zones[:1], "-ot", names[dtype], "-dstnodata", "0", "-t_srs", "EPSG:3857", "-tr", "60", "60", "-r", "bilinear",
             "-ovr", "NONE")
    ours, theirs = opened(out)[0], opened(expected)[0]
    assert ours.dtype == dtype and np.abs(ours.astype("f8") - theirs).max() <= (0 if ours.dtype.kind in "iu" else 1e-3)


def test_types_of_inputs_are_joined(tmp_path):
    paths = [write(tmp_path / "a.tif", smooth(20, 20, dtype="uint16")), write(tmp_path / "b.tif", smooth(20, 20), left=500200)]
    assert warp(tmp_path / "out.tif", paths)["type"] == "int32"


def test_bands(tmp_path):
    pixels = np.concatenate([smooth(60, 50, phase) for phase in range(3)])
    path = write(tmp_path / "a.tif", pixels)
    made = warp(tmp_path / "out.tif", [path], "--band", "3,1")
    assert made["bands"] == [3, 1] and np.array_equal(opened(tmp_path / "out.tif")[0], pixels[[2, 0]])


def test_what_the_file_says_of_itself(tmp_path):
    paths = []
    for i in range(2):
        path = write(tmp_path / f"{i}.tif", np.full((4, 40, 50), 7 + i, "u1"), left=500000 + 500 * i, photometric="rgb")
        with rasterio.open(path, "r+") as file:
            file.colorinterp = COLOURS
            file.descriptions = ["one", "two", "three", "four"]
            file.units = ["m"] * 4
            file.scales, file.offsets = [2] * 4, [1, 2, 3, 4]
        paths.append(path)
    out = tmp_path / "out.tif"
    warp(out, paths, "--metadata", "SURVEY=spring")
    with rasterio.open(out) as file:
        assert file.colorinterp == COLOURS
        assert (file.units, file.scales, file.offsets) == (("m",) * 4, (2,) * 4, (1, 2, 3, 4))
        assert file.descriptions == ("one", "two", "three", "four")
        assert file.tags()["SURVEY"] == "spring" and file.crs.to_epsg() == 32632


def test_palettes(tmp_path):
    path = write(tmp_path / "a.tif", np.arange(2000, dtype="u1").reshape(1, 40, 50) % 4, photometric="palette")
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {0: (9, 8, 7, 255), 3: (1, 2, 3, 255)})
    out = tmp_path / "out.tif"
    warp(out, [path])
    with rasterio.open(out) as file:
        assert file.colormap(1)[3] == (1, 2, 3, 255) and file.colorinterp == (ColorInterp.palette,)


def test_device(zones, tmp_path):
    host, device = tmp_path / "host.tif", tmp_path / "device.tif"
    words = "--crs", "EPSG:3857", "--res", "90", "--resampling", "bilinear", "--cog", "--block", "64"
    warp(host, zones, *words)
    warp(device, zones, *words, "--device", "emu")
    assert np.array_equal(opened(host)[0], opened(device)[0])


# ---- the file that is written ------------------------------------------------------------------------


def test_cog(zones, tmp_path):
    out = tmp_path / "out.tif"
    made = warp(out, zones, "--crs", "EPSG:3857", "--cog", "--block", "128", "--codec", "zstd", "--overview-resampling", "nearest",
                "--resampling", "cubic")
    assert made["levels"] >= 3 and made["sources"] == 2 and made["skipped_sources"] == 0
    assert "a valid COG" in done("check", out, "--strict")
    with rasterio.open(out) as file:
        assert file.compression.name == "zstd"
    for method, is_same in ("nearest", True), ("average", False):
        done("convert", out, tmp_path / "again.tif", "--cog", "--block", "128", "--resampling", method)
        again = opened(tmp_path / "again.tif", OVERVIEW_LEVEL=0)[0]
        assert np.array_equal(opened(out, OVERVIEW_LEVEL=0)[0], again) == is_same


def test_many_rows_of_blocks(tmp_path):
    """More chunks and rows of blocks than are read at a time."""
    paths = [write(tmp_path / f"{i}.tif", smooth(3000, 1500, i, "float32"), top=5000000 - 15000 * i, blockxsize=256, blockysize=256)
             for i in range(2)]
    out = tmp_path / "out.tif"
    warp(out, paths, "--cog", "--block", "256")
    assert np.array_equal(opened(out)[0], np.concatenate([opened(path)[0] for path in paths], axis=1))


def test_stdin_and_stdout(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair)
    result = run("warp", "-", pair[1], "-", stdin=pair[0].read_bytes())
    assert result.returncode == 0
    (tmp_path / "piped.tif").write_bytes(result.stdout)
    assert np.array_equal(opened(tmp_path / "piped.tif")[0], opened(out)[0])
    assert "only one" in failed("warp", "-", "-", out, code=2, stdin=pair[0].read_bytes())


def test_a_vrt_as_input(pair, tmp_path):
    vrt, out, expected = tmp_path / "all.vrt", tmp_path / "out.tif", tmp_path / "expected.tif"
    by_gdal("GDALBuildVRT", vrt, pair, ["-q"])
    warp(out, [vrt], "--res", "25", "--error", "0", "--full-resolution")
    gdalwarp(expected, [vrt], "-tr", "25", "25", "-ovr", "NONE")
    same_grid(out, expected)
    same_pixels(out, expected)


# ---- many inputs -------------------------------------------------------------------------------------


@pytest.fixture
def tiles(tmp_path):
    """30 x 20 files of 16 x 16 pixels, and what they are together."""
    pixels = np.arange(30 * 20 * 256, dtype="int32").reshape(1, 320, 480)
    folder, paths = tmp_path / "tiles", []
    folder.mkdir()
    for y in range(20):
        for x in range(30):
            part = np.ascontiguousarray(pixels[:, 16 * y:16 * y + 16, 16 * x:16 * x + 16])
            paths.append(write(folder / f"{y}_{x}.tif", part, left=500000 + 160 * x, top=5000000 - 160 * y, blockxsize=16, blockysize=16))
    return paths, pixels


def test_many_inputs(tiles, tmp_path):
    paths, pixels = tiles
    out, names = tmp_path / "out.tif", tmp_path / "list.txt"
    assert warp(out, paths)["sources"] == 600
    assert np.array_equal(opened(out)[0], pixels)
    names.write_text("".join(f"{path}\r\n\n" for path in paths[1:]))
    warp(out, paths[:1], "--input-list", names)
    assert np.array_equal(opened(out)[0], pixels)
    text = "\n".join(map(str, paths)).encode()  # without a line end behind the last
    assert run("warp", "--input-list", "-", out, stdin=text).returncode == 0
    assert np.array_equal(opened(out)[0], pixels)


def test_few_files_may_be_open(tiles, tmp_path):
    paths, pixels = tiles
    out = tmp_path / "out.tif"
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # noqa: E731
    subprocess.run([BINARY, "warp", *paths, out, "--quiet"], check=True, preexec_fn=limit)
    assert np.array_equal(opened(out)[0], pixels)


def test_lists_that_cannot_be_read(pair, tmp_path):
    out = tmp_path / "out.tif"
    assert "missing.txt" in failed("warp", "--input-list", tmp_path / "missing.txt", out, code=2)
    names = tmp_path / "list.txt"
    names.write_text("\n\n")
    assert "needs IN... OUT" in failed("warp", "--input-list", names, out, code=2)
    names.write_text(f"{pair[0]}\n{pair[1]}\n")
    before = pair[1].read_bytes()
    assert "OUT is missing" in failed("warp", "--input-list", names, code=2)
    assert pair[1].read_bytes() == before


# ---- usage and refusals ------------------------------------------------------------------------------

WRONG = [
    (["--res", "0"], "--res 0: expected"),
    (["--res", "-5"], "--res -5: expected"),
    (["--res", "1,2,3"], "--res 1,2,3: expected"),
    (["--res", "nan"], "--res nan: expected"),
    (["--bounds", "1,2,3"], "--bounds 1,2,3: expected xmin,ymin,xmax,ymax"),
    (["--bounds", "3,2,1,4"], "--bounds 3,2,1,4: expected xmin"),
    (["--size", "0,0"], "--size 0,0: expected W,H"),
    (["--size", "5"], "--size 5: expected W,H"),
    (["--transform", "1,2,3"], "--transform 1,2,3: expected six"),
    (["--crs", ""], "--crs : expected EPSG:N"),
    (["--bounds-crs", "", "--bounds", "1,2,3,4"], "--bounds-crs : expected EPSG:N"),
    (["--resampling", "fine"], "--resampling fine: expected nearest"),
    (["--overview-resampling", "lanczos"], "--overview-resampling lanczos: expected nearest"),
    (["--composite", "top"], "--composite top: expected first, last, min, max, mean, median or count"),
    (["--error", "-1"], "--error -1: expected"),
    (["--nodata", "x"], "--nodata x: expected"),
    (["--src-nodata", ""], "--src-nodata : expected"),
    (["--dtype", "complex64"], "--dtype complex64: expected"),
    (["--rpc-height", "high"], "--rpc-height high: expected"),
    (["--rpc-dem", ""], "--rpc-dem : expected"),
    (["--like", ""], "--like : expected"),
    (["--input-list", ""], "--input-list : expected"),
    (["--vrt-sources", "all"], "--vrt-sources all: expected"),
    (["--align"], "--align needs --res"),
    (["--bounds-crs", "EPSG:4326"], "--bounds-crs needs --bounds"),
    (["--transform", "1,2,0,3,0,-2"], "--transform needs --size"),
    (["--transform", "1,2,0,3,0,-2", "--size", "5,0"], "--transform needs --size"),
    (["--transform", "1,2,0,3,0,-2", "--size", "5,5", "--res", "3"], "--transform cannot be combined with --res"),
    (["--like", "a.tif", "--res", "3"], "--like cannot be combined with"),
    (["--res", "3", "--bounds", "1,2,3,4", "--size", "5,5"], "--bounds, --res and --size cannot be combined"),
    (["--strips", "5", "--cog"], "--strips: a COG has tiles"),
    (["--scale"], "warp has no option --scale"),
    (["--unknown"], "warp has no option --unknown"),
]


@pytest.mark.parametrize("words, message", WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_wrong_usage(pair, tmp_path, words, message):
    line = failed("warp", *pair, tmp_path / "out.tif", *words, code=2)
    assert line.startswith("cogpu: " + message), line
    assert not (tmp_path / "out.tif").exists()


def test_missing_files(pair, tmp_path):
    out = tmp_path / "out.tif"
    assert "needs IN... OUT" in failed("warp", pair[0], code=2)
    assert "missing.tif" in failed("warp", *pair, tmp_path / "missing.tif", out)
    assert "missing.tif" in failed("warp", tmp_path / "missing.tif", out)
    assert "wrong.txt" in failed("warp", *pair, (tmp_path / "wrong.txt", (tmp_path / "wrong.txt").write_text("no TIFF"))[0], out)
    assert not out.exists()


@pytest.mark.parametrize("command", ["warp", "mosaic"])
def test_an_input_is_not_overwritten(pair, tmp_path, command):
    before = pair[1].read_bytes()
    link = tmp_path / "link.tif"
    link.symlink_to(pair[1])
    for out in pair[1], link:
        line = failed(command, *pair, out, code=2)
        assert out.name in line and "is one of the inputs" in line
    assert pair[1].read_bytes() == before


def test_inputs_that_are_sidecars_of_the_output(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair)
    sidecar = pair[0].rename(tmp_path / "out.tif.ovr")
    assert "out.tif.ovr" in failed("warp", sidecar, pair[1], out, code=2)
    assert sidecar.exists()


def test_outputs_that_are_refused(pair, tmp_path):
    out = tmp_path / "out.tif"
    warp(out, pair)
    before = out.read_bytes()
    assert "exist" in failed("warp", *pair, out, "--no-clobber")
    assert out.read_bytes() == before
    assert "URL" in failed("warp", *pair, "https://example.org/a.tif", code=2)
    assert "No such file" in failed("warp", *pair, tmp_path / "missing" / "a.tif")


def test_sources_that_do_not_fit_together(pair, tmp_path):
    out = tmp_path / "out.tif"
    plain = write(tmp_path / "plain.tif", smooth(20, 20), crs=None)
    assert "plain.tif" in failed("warp", *pair, plain, out, code=2)
    assert "EPSG:99999" in failed("warp", *pair, out, "--crs", "EPSG:99999", code=2)


def test_bad_sources_are_skipped(pair, tmp_path):
    out, bad = tmp_path / "out.tif", tmp_path / "bad.tif"
    bad.write_bytes(pair[0].read_bytes()[:60])
    assert "bad.tif" in failed("warp", *pair, bad, out)
    result = run("warp", *pair, bad, out, "--skip-bad-sources", "--json")
    assert result.returncode == 0
    made, notes = json.loads(result.stdout), result.stderr.decode().splitlines()
    assert (made["sources"], made["skipped_sources"]) == (2, 1)
    assert len(notes) == 1 and "bad.tif: left out: " in notes[0]
    expected = tmp_path / "expected.tif"
    warp(expected, pair)
    assert np.array_equal(opened(out)[0], opened(expected)[0])


# ---- mosaic ----------------------------------------------------------------------------------------


def test_mosaic(pair, tmp_path):
    vrt, out = tmp_path / "all.vrt", tmp_path / "out.tif"
    line = done("mosaic", *pair, vrt)
    assert "350 x 220 pixels, 1 band of int16, 2 sources" in line
    warp(out, pair)
    assert np.array_equal(opened(vrt)[0], opened(out)[0])  # as GDAL reads it
    done("read", vrt, "-o", tmp_path / "all.npy")
    assert np.array_equal(np.load(tmp_path / "all.npy"), opened(out)[0])
    assert set(re.findall(r'relativeToVRT="(\d)"', vrt.read_text())) == {"1"}
    moved = tmp_path.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    assert np.array_equal(opened(moved / "all.vrt")[0], opened(moved / "out.tif")[0])


@pytest.mark.parametrize("ours, theirs", [
    ([], []),
    (["--res", "20"], ["-resolution", "user", "-tr", "20", "20"]),
    (["--res", "30", "--align"], ["-resolution", "user", "-tr", "30", "30", "-tap"]),
    (["--bounds", "500500,4998000,502500,4999700", "--res", "10"], ["-te", "500500", "4998000", "502500", "4999700"]),
    (["--nodata", "-7"], ["-vrtnodata", "-7"]),
    (["--src-nodata", "1100"], ["-srcnodata", "1100"]),
], ids=lambda words: " ".join(words) or "default")
def test_mosaic_as_gdalbuildvrt(pair, tmp_path, ours, theirs):
    vrt, expected = tmp_path / "all.vrt", tmp_path / "expected.vrt"
    done("mosaic", *pair, vrt, "--composite", "last", *ours)
    by_gdal("GDALBuildVRT", expected, pair, ["-q", *theirs])
    same_grid(vrt, expected)
    same_pixels(vrt, expected)
    assert opened(vrt)[1]["nodata"] == opened(expected)[1]["nodata"]


def test_what_a_vrt_cannot_express(pair, zones, tmp_path):
    vrt = tmp_path / "all.vrt"
    assert "zone33.tif" in failed("mosaic", *zones, vrt)
    assert "mean" in failed("mosaic", *pair, vrt, "--composite", "mean")
    assert not vrt.exists()
    failed("mosaic", "-", vrt, stdin=pair[0].read_bytes())


def test_mosaic_to_stdout_and_json(pair, tmp_path):
    vrt = tmp_path / "all.vrt"
    text = json.loads(done("mosaic", *pair, vrt, "--json"))
    assert text == {"output": str(vrt), "sources": 2, "skipped_sources": 0, "width": 350, "height": 220, "bands": 1, "type": "int16"}
    result = run("mosaic", *pair, "-")
    assert result.returncode == 0 and b"<VRTDataset" in result.stdout and b"2 sources" in result.stderr


# ---- other commands on a VRT -------------------------------------------------------------------------


@pytest.fixture
def vrt(pair, tmp_path):
    return by_gdal("GDALBuildVRT", tmp_path / "all.vrt", pair, ["-q"])


def test_info(vrt, pair):
    text = done("info", vrt)
    assert re.search(r"^  size +350 x 220 pixels, 1 band$", text, re.M)
    assert re.search(r"^  sources +2: 0 reprojected, 0 left out; --verbose lists them$", text, re.M)
    assert "classic TIFF" not in text and "directory" not in text and "sidecar" not in text
    listed = done("info", vrt, "--verbose")
    assert re.search(r"a\.tif: columns 0 to 20[01], rows 0 to 15[01]", listed)
    assert re.search(r"b\.tif: columns 1(49|50) to 350, rows (69|70) to 220", listed)
    about = json.loads(done("info", vrt, "--json"))
    assert [os.path.basename(source["path"]) for source in about["sources"]] == ["a.tif", "b.tif"]
    windows = np.array([source["window"] for source in about["sources"]])
    assert np.abs(windows - [[0, 0, 200, 150], [150, 70, 350, 220]]).max() <= 1  # that it may touch
    assert all(source["status"] == "ok" and source["message"] is None for source in about["sources"])
    assert about["cog"] is False and about["crs"]["code"] == 32632
    assert json.loads(done("info", pair[0], "--json"))["sources"] is None
    assert json.loads(done("info", vrt, "--json", "--tags"))["directories"] == []
    assert done("info", vrt, "--tags") == text


def test_convert(vrt, tmp_path):
    out = tmp_path / "out.tif"
    made = json.loads(done("convert", vrt, out, "--cog", "--json"))
    assert made["sources"] == 2
    assert np.array_equal(opened(out)[0], opened(vrt)[0])
    done("convert", vrt, out, "--window", "100,60,120,90", "--dtype", "float32")
    assert np.array_equal(opened(out)[0], opened(vrt)[0][:, 60:150, 100:220].astype("f4"))
    assert done("compare", vrt, vrt)
    assert done("checksum", vrt).split()[0] == done("checksum", vrt).split()[0]


def test_preview_and_bench(vrt, tmp_path):
    done("preview", vrt, tmp_path / "all.png", "--size", "100")
    with rasterio.open(tmp_path / "all.png") as file:
        assert (file.width, file.height) == (100, 63)
    assert "GB/s of pixels" in done("bench", vrt)


def test_which_files_a_vrt_may_name(vrt, tmp_path):
    folder = tmp_path / "below"
    folder.mkdir()
    moved = folder / "all.vrt"
    moved.write_text(vrt.read_text().replace('relativeToVRT="1">', 'relativeToVRT="1">../'))
    done("checksum", moved)
    assert "a.tif" in failed("checksum", moved, "--vrt-sources", "below", code=2)
    done("checksum", vrt, "--vrt-sources", "below")


def test_check(vrt):
    line = failed("check", vrt)
    assert "all.vrt" in line and "mosaic" in line
