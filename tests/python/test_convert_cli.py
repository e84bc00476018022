"""cogpu convert, compared by GDAL (rasterio) and rio-cogeo: pixels, and all that a file says of them.

What the writer makes of a profile is compared elsewhere; here, that the profile is the input's and the options'. Every file is made here.
"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
import rasterio.shutil  # noqa: E402
tifffile = pytest.importorskip("tifffile")
from rasterio.control import GroundControlPoint  # noqa: E402
from rasterio.enums import ColorInterp, MaskFlags, Resampling  # noqa: E402
from rasterio.rpc import RPC  # noqa: E402
from rasterio.transform import Affine, from_origin  # noqa: E402
from test_cli import failed as cli_failed, samples  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))
RNG = np.random.default_rng(5)
PLACE = from_origin(500000, 5000000, 10, 10)

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")


def run(*words, stdin=None):
    return subprocess.run([BINARY, "convert", *map(str, words)], capture_output=True, input=stdin, timeout=120)


def convert(path, *words, notes=0):
    """Converts to a file beside it; returns that and what was told."""
    out = path.parent / "out.tif"
    result = run(path, out, "--json", *words)
    lines = result.stderr.decode().splitlines()
    assert result.returncode == 0 and len(lines) == notes, lines
    return out, json.loads(result.stdout) | {"notes": lines}


def failed(*words, code=1):
    return cli_failed("convert", *words, code=code)


def write(path, pixels, **profile):
    bands, height, width = pixels.shape
    options = dict(crs="EPSG:32632", transform=PLACE, tiled=True, blockxsize=64, blockysize=64, compress="deflate") | profile
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width, dtype=pixels.dtype, **options) as file:
        file.write(pixels)
    return path


def read(path, **options):
    with rasterio.open(path, **options) as file:
        return file.read()


def same_place(a, b):
    with rasterio.open(a) as first, rasterio.open(b) as second:
        assert first.transform == second.transform and first.crs == second.crs
        assert first.tags().get("AREA_OR_POINT") == second.tags().get("AREA_OR_POINT")


# ---- pixels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8", "c8", "c16"])
def test_types(tmp_path, dtype):
    pixels = samples((2, 150, 170), dtype)
    path = write(tmp_path / "a.tif", pixels)
    for words in [], ["--cog"]:
        out, told = convert(path, *words)
        assert (read(out) == pixels).all() and read(out).dtype == pixels.dtype
        same_place(path, out)
        assert (told["levels"], told["bytes"], told["type"]) == (1, out.stat().st_size, np.dtype(dtype).name)


def test_half_floats(tmp_path):
    pixels = samples((70, 90), "f2")
    tifffile.imwrite(tmp_path / "a.tif", pixels, byteorder=">")
    out, _ = convert(tmp_path / "a.tif")
    found = tifffile.imread(out)
    assert found.dtype == np.float16 and (found == pixels).all()


@pytest.mark.parametrize("options", [
    dict(tiled=False, compress="lzw"), dict(interleave="band"), dict(ENDIANNESS="BIG"), dict(BIGTIFF="YES", compress="zstd"), dict(nbits=3),
])
def test_layouts_of_the_input(tmp_path, options):
    pixels = RNG.integers(0, 8, (3, 200, 130), dtype="u1")
    path = write(tmp_path / "a.tif", pixels, **options)
    for words in [], ["--interleave", "band"], ["--strips", 30]:
        assert (read(convert(path, *words)[0]) == pixels).all()


@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_many_chunks_and_a_mask(tmp_path, interleave):
    """40 MB of pixels are more than one chunk."""
    pixels = np.tile(samples((2, 500, 1000), "f4"), (1, 10, 1))
    mask = np.tile(RNG.integers(0, 2, (500, 1000), dtype="u1") * 255, (10, 1))
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write(tmp_path / "a.tif", pixels, interleave=interleave, compress=None, blockxsize=512, blockysize=512)
        with rasterio.open(path, "r+") as file:
            file.write_mask(mask)
    out, _ = convert(path, "--codec", "none")
    with rasterio.open(out) as file:
        assert (file.read() == pixels).all() and (file.dataset_mask() == mask).all()
        assert file.mask_flag_enums[0] == [MaskFlags.per_dataset]


def test_a_part(tmp_path):
    pixels = samples((4, 300, 200), "i2")
    path = write(tmp_path / "a.tif", pixels)
    out, told = convert(path, "--window", "30,70,100,150", "--band", "4,2")
    assert (read(out) == pixels[[3, 1], 70:220, 30:130]).all() and told["window"] == [30, 70, 100, 150]
    with rasterio.open(out) as file:
        assert file.transform == from_origin(500300, 4999300, 10, 10)
    out, told = convert(path, "--bbox", "500300,4997800,501300,4999300")
    assert told["window"] == [30, 70, 100, 150] and (read(out) == pixels[:, 70:220, 30:130]).all()


def test_a_level(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 300, 200), "u2"))
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], Resampling.average)
    out, told = convert(path, "--level", 1, "--window", "10,20,50,60")
    assert told["level"] == 1 and (read(out) == read(path, overview_level=0)[:, 20:80, 10:60]).all()
    with rasterio.open(out) as file:
        assert file.transform == from_origin(500200, 4999600, 20, 20)


def test_stdin(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 50, 60), "u1"))
    result = run("-", tmp_path / "b.tif", stdin=path.read_bytes())
    assert result.returncode == 0 and (read(tmp_path / "b.tif") == read(path)).all()
    assert result.stdout.decode().startswith(f"{tmp_path}/b.tif: 60 x 50 pixels, 1 band of uint8, 1 level; ")


# ---- options -------------------------------------------------------------------------------------


def test_cog(tmp_path):
    cog_validate = pytest.importorskip("rio_cogeo").cog_validate
    pixels = np.cumsum(RNG.integers(0, 5, (1, 700, 1100)), axis=2).astype("u2")
    path = write(tmp_path / "a.tif", pixels)
    out, told = convert(path, "--cog", "--block", 256, "--codec", "zstd", "--compression-level", 3, "--threads", 2)
    assert cog_validate(out, strict=True) == (True, [], [])
    with rasterio.open(out) as file:
        assert file.overviews(1) == [2, 4, 8] and file.block_shapes == [(256, 256)] and file.compression.value == "ZSTD"
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
    assert told["levels"] == 4 and told["cog"] is True and told["blocks"] == 5 * 3 + 3 * 2 + 2 + 1
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4, 8], Resampling.average)
    assert (read(out, overview_level=0) == read(path, overview_level=0)).all()


def test_overviews_as_listed_and_resampled(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 512, 512), "u1"))
    out, told = convert(path, "--overviews", "2,8", "--resampling", "nearest")
    assert told["levels"] == 3
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 8], Resampling.nearest)
    for level in 0, 1:
        assert (read(out, overview_level=level) == read(path, overview_level=level)).all()
    assert convert(path, "--cog", "--overviews", "none", "--block", 64)[1]["levels"] == 1
    assert convert(path, "--overviews", "auto", "--block", 64)[1]["levels"] == 4


@pytest.mark.parametrize("words, expected", [
    (["--block", "128x64"], {"blockxsize": 128, "blockysize": 64, "tiled": True}),
    (["--strips", "25"], {"blockysize": 25, "tiled": False}),
    (["--interleave", "band"], {"interleave": "band"}),
    (["--codec", "none"], {"compress": None}),
    (["--codec", "packbits"], {"compress": "packbits"}),
    (["--codec", "lzw"], {"compress": "lzw"}),
    (["--codec", "lzma", "--compression-level", "1"], {"compress": "lzma"}),
    (["--codec", "lerc_zstd"], {"compress": "lerc_zstd"}),
    (["--codec", "webp", "--lossless"], {"compress": "webp"}),
])
def test_layout_and_codec(tmp_path, words, expected):
    pixels = samples((3, 100, 200), "u1")
    out, _ = convert(write(tmp_path / "a.tif", pixels, photometric="rgb"), *words)
    with rasterio.open(out) as file:
        assert (file.read() == pixels).all()
        assert {name: file.profile.get(name) for name in expected} == expected


def test_level_and_predictor(tmp_path):
    pixels = np.cumsum(RNG.integers(0, 3, (1, 300, 300)), axis=1).astype("u2")
    path = write(tmp_path / "a.tif", pixels)
    sizes = {}
    for words in "1", "12":
        sizes[words] = convert(path, "--compression-level", words, "--predictor", 1)[1]["bytes"]
    assert sizes["12"] < sizes["1"]
    for predictor, stored in ("auto", 2), ("1", 1), ("2", 2):
        out, _ = convert(path, "--predictor", predictor)
        with tifffile.TiffFile(out) as file:
            assert int(file.pages[0].predictor) == stored
    out, _ = convert(write(tmp_path / "f.tif", samples((1, 30, 30), "f4")))
    with tifffile.TiffFile(out) as file:
        assert int(file.pages[0].predictor) == 3


def test_loss_as_asked(tmp_path):
    y, x = np.mgrid[:256, :256]
    smooth = np.stack([x, y, (x + y) // 2]).astype("u1")
    path = write(tmp_path / "a.tif", smooth, photometric="rgb")
    sizes = [convert(path, "--codec", "jpeg", "--quality", q)[1]["bytes"] for q in (20, 95)]
    assert sizes[0] < sizes[1]
    out = tmp_path / "out.tif"
    assert np.abs(read(out).astype(int) - smooth).mean() < 3
    with tifffile.TiffFile(out) as file:
        assert file.pages[0].photometric.name == "YCBCR"
    path = write(tmp_path / "f.tif", samples((1, 64, 64), "f4"))
    difference = np.abs(read(convert(path, "--codec", "lerc", "--max-z-error", 10)[0]) - read(path))
    assert 0 < difference.max() <= 10


def test_bigtiff_and_sparse(tmp_path):
    pixels = np.zeros((1, 256, 256), "u1")
    pixels[0, 10, 10] = 1
    path = write(tmp_path / "a.tif", pixels)
    out, told = convert(path, "--bigtiff", "yes", "--sparse", "--block", 64)
    assert told["bigtiff"] is True and told["sparse_blocks"] == 15 and told["blocks"] == 16
    assert out.read_bytes()[2] == 43 and (read(out) == pixels).all()
    assert convert(path, "--bigtiff", "no")[1]["bigtiff"] is False


# ---- place ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [
    Affine(10, 0, 500000, 0, 10, 5000000), Affine(3, 4, 500000, 4, -3, 5000000), Affine(0.1, 0, 7, 0, -0.3, 50),
])
@pytest.mark.parametrize("point", [False, True])
def test_transforms(tmp_path, transform, point):
    path = write(tmp_path / "a.tif", samples((1, 40, 50), "u1"), transform=transform)
    if point:
        with rasterio.open(path, "r+") as file:
            file.update_tags(AREA_OR_POINT="Point")
    out, _ = convert(path)
    same_place(path, out)
    out, _ = convert(path, "--window", "10,20,5,5")
    with rasterio.open(out) as file:
        assert np.allclose(file.transform * (0, 0), transform * (10, 20), rtol=1e-12)
        assert np.allclose(file.transform * (5, 5), transform * (15, 25), rtol=1e-12)


@pytest.mark.parametrize("crs", [
    "EPSG:4326", "EPSG:3857", "EPSG:25832+5783", "+proj=laea +lat_0=40 +lon_0=10 +datum=WGS84 +units=m",
    None,
])
def test_coordinate_systems(tmp_path, crs):
    path = write(tmp_path / "a.tif", samples((1, 40, 50), "u1"), crs=crs)
    same_place(path, convert(path)[0])


def test_epoch(tmp_path):
    """Of a file that GDAL makes of a VRT."""
    wkt = rasterio.crs.CRS.from_epsg(9000).to_wkt()
    (tmp_path / "a.vrt").write_text(f'<VRTDataset rasterXSize="20" rasterYSize="20"><SRS coordinateEpoch="2017.25">{wkt}</SRS>'
                                    '<GeoTransform>5, 0.1, 0, 50, 0, -0.1</GeoTransform><VRTRasterBand dataType="Byte" band="1"/></VRTDataset>')
    rasterio.shutil.copy(tmp_path / "a.vrt", tmp_path / "a.tif", driver="GTiff")
    out, _ = convert(tmp_path / "a.tif")
    rasterio.shutil.copy(out, tmp_path / "b.vrt", driver="VRT")
    assert 'coordinateEpoch="2017.25"' in (tmp_path / "b.vrt").read_text()


def test_control_points(tmp_path):
    path = tmp_path / "a.tif"
    points = [GroundControlPoint(row=r, col=c, x=7 + c / 100, y=50 - r / 100, z=3) for r, c in ((0, 0), (0, 40), (0.119, 0), (30, 40))]
    with rasterio.open(path, "w", driver="GTiff", count=1, height=31, width=41, dtype="uint8", gcps=points, crs="EPSG:4326") as file:
        file.write(samples((1, 31, 41), "u1"))
    for words, x, y in ([], 0, 0), (["--window", "3,5,20,20"], 3, 5):
        with rasterio.open(convert(path, *words)[0]) as file:
            found, crs = file.gcps
        assert crs == "EPSG:4326"
        assert [(p.row, p.col, p.x, p.y, p.z) for p in found] == [(p.row - y, p.col - x, p.x, p.y, p.z) for p in points]


def test_rpc(tmp_path):
    path = tmp_path / "a.tif"
    numbers = list(RNG.normal(size=20))
    rpc = RPC(height_off=100, height_scale=500, lat_off=50, lat_scale=0.1, long_off=7, long_scale=0.2, line_off=150.1, line_scale=160,
              samp_off=100, samp_scale=110, line_num_coeff=numbers, line_den_coeff=numbers, samp_num_coeff=numbers, samp_den_coeff=numbers,
              err_bias=1, err_rand=2)
    with rasterio.open(path, "w", driver="GTiff", count=1, height=300, width=200, dtype="uint8", rpcs=rpc) as file:
        file.write(samples((1, 300, 200), "u1"))
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2], Resampling.nearest)
    with rasterio.open(path) as a, rasterio.open(convert(path)[0]) as b:
        assert a.rpcs == b.rpcs and b.rpcs.line_off == 150.1
    with rasterio.open(convert(path, "--window", "20,30,50,60")[0]) as file:
        assert (file.rpcs.samp_off, file.rpcs.line_off, file.rpcs.samp_scale) == (80, 120.1, 110)
    with rasterio.open(convert(path, "--level", 1)[0]) as file:
        assert (file.rpcs.samp_off, file.rpcs.line_off, file.rpcs.samp_scale, file.rpcs.line_scale) == (49.75, 74.8, 55, 80)


# ---- what the pixels mean ------------------------------------------------------------------------


def test_nodata(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 40, 50), "f4"), nodata=-9999)

    def nodata(*words):
        with rasterio.open(convert(path, *words)[0]) as file:
            return file.nodata

    assert nodata() == -9999 and nodata("--nodata", "7.5") == 7.5 and nodata("--nodata", "none") is None and np.isnan(nodata("--nodata", "nan"))


def test_nodata_that_no_sample_has(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, samples((30, 30), "u2"), extratags=[(42113, "s", 0, "-9999", True)])
    out, told = convert(path, notes=1)
    assert "nodata -9999 is not a value of uint16" in told["notes"][0]
    with rasterio.open(out) as file:
        assert file.nodata is None
    convert(path, "--nodata", 3)
    assert "nodata" in failed(path, tmp_path / "b.tif", "--nodata", "-1", code=2)


@pytest.mark.parametrize("dtype, text, value", [
    ("f4", "-1.#INF", -np.inf), ("f8", "1.#QNAN", np.nan), ("f4", "0.1", np.float32(0.1)), ("u1", "255\n", 255), ("i2", " -9999 m", -9999),
    ("f8", "-1,5", -1.5), ("i8", "-9007199254740993 ", -9007199254740993)])
def test_nodata_as_others_write_it(tmp_path, dtype, text, value):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, samples((30, 30), dtype), extratags=[(42113, "s", 0, text, True)])
    with rasterio.open(convert(path)[0]) as file:
        assert np.array_equal(file.nodata, value, equal_nan=True)


def bits_of(path):
    with rasterio.open(path) as file:
        return file.tags(1, ns="IMAGE_STRUCTURE").get("NBITS")


@pytest.mark.parametrize("bits", [1, 4, 12])
def test_bits(tmp_path, bits):
    """As in the input, unless the new file needs whole bytes, or --bits says otherwise."""
    pixels = samples((1, 70, 90), "u1" if bits < 8 else "u2") % (1 << bits)
    path = write(tmp_path / "a.tif", pixels, nbits=bits)
    for words, due in ([], bits), (["--cog"], bits), (["--strips", "0", "--codec", "none"], bits), (["--predictor", "2"], None), \
            (["--codec", "lerc"], None), (["--bits", "8" if bits < 8 else "16"], None), (["--nodata", str(1 << bits)], None):
        out, _ = convert(path, *words)
        assert bits_of(out) == (due and str(due)), words
        assert (read(out) == pixels).all()
    assert bits_of(convert(write(tmp_path / "b.tif", pixels), "--bits", bits)[0]) == str(bits)


def test_palette_of_few_bits(tmp_path):
    path = write(tmp_path / "a.tif", samples((1, 70, 90), "u1") % 16, nbits=4)
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {index: (index, 10 * index, 255 - index, 255) for index in range(16)})
    out, _ = convert(path)
    with rasterio.open(path) as before, rasterio.open(out) as after:
        assert bits_of(out) == "4" and before.colormap(1) == after.colormap(1)


def test_palette(tmp_path):
    path = write(tmp_path / "a.tif", RNG.integers(0, 256, (1, 40, 50), dtype="u1"), photometric="palette")
    palette = {i: tuple(map(int, RNG.integers(0, 256, 3))) + (255,) for i in range(256)}
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, palette)
    with rasterio.open(convert(path, "--cog")[0]) as file:
        assert file.colormap(1) == palette and file.colorinterp == (ColorInterp.palette,) and (file.read() == read(path)).all()


@pytest.mark.parametrize("bands, options", [
    (1, dict(photometric="miniswhite")), (3, dict(photometric="rgb")), (3, dict(photometric="minisblack")), (4, dict(photometric="rgb", alpha="yes")),
    (4, dict(photometric="rgb", alpha="premultiplied")), (2, dict(photometric="minisblack", alpha="yes")), (5, dict(photometric="rgb")),
    (4, dict(photometric="rgb", alpha="no")), (4, dict(photometric="cielab")),
])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_colours(tmp_path, bands, options, dtype):
    path = write(tmp_path / "a.tif", samples((bands, 40, 50), dtype), **options)
    out, _ = convert(path)
    assert (read(out) == read(path)).all()
    with rasterio.open(path) as a, rasterio.open(out) as b:
        assert a.colorinterp == b.colorinterp
    with tifffile.TiffFile(path) as a, tifffile.TiffFile(out) as b:
        for tag in "PhotometricInterpretation", "ExtraSamples":
            assert a.pages[0].tags.valueof(tag) == b.pages[0].tags.valueof(tag)


@pytest.mark.parametrize("photometric, compress", [("ycbcr", "jpeg"), ("cmyk", "lzw"), ("cmyk", "jpeg")])
def test_colours_of_printers_and_cameras(tmp_path, photometric, compress):
    """What GDAL reads as RGB, JPEG's YCbCr, is written as RGB; inks stay inks where they are read as such."""
    path = write(tmp_path / "a.tif", samples((3 if photometric == "ycbcr" else 4, 64, 64), "u1"), photometric=photometric, compress=compress)
    out, _ = convert(path, notes=compress == "jpeg")
    assert (read(out) == read(path)).all()
    with rasterio.open(path) as a, rasterio.open(out) as b:
        assert a.colorinterp == b.colorinterp


def test_inks_of_few_bits(tmp_path):
    """In bytes they would be read as RGB."""
    pixels = samples((4, 64, 64), "u1") % 16
    path = write(tmp_path / "a.tif", pixels, photometric="cmyk", nbits=4)
    assert (read(convert(path)[0]) == pixels).all()


def test_bands_that_are_chosen_have_their_meaning(tmp_path):
    path = write(tmp_path / "a.tif", samples((4, 40, 50), "u1"), photometric="rgb", alpha="yes")

    def meaning(bands):
        with rasterio.open(convert(path, "--band", bands)[0]) as file:
            return [colour.name for colour in file.colorinterp]

    assert meaning("1,2,3,4") == ["red", "green", "blue", "alpha"] and meaning("1,2,3") == ["red", "green", "blue"]
    assert meaning("2") == ["gray"] and meaning("2,4") == ["gray", "alpha"] and meaning("4,1")[0] == "gray"


def test_metadata(tmp_path):
    path = write(tmp_path / "a.tif", samples((3, 40, 50), "i2"))
    with rasterio.open(path, "r+") as file:
        file.update_tags(SURVEY="spring <\N{EURO SIGN}> & more", TIFFTAG_SOFTWARE="a program", TIFFTAG_DATETIME="2024:05:06 07:08:09",
                         TIFFTAG_IMAGEDESCRIPTION="a field", TIFFTAG_XRESOLUTION="300", TIFFTAG_COPYRIGHT="me")
        file.update_tags(ns="OTHER", KEY="value")
        for band in 1, 2, 3:
            file.update_tags(band, NUMBER=str(band), STATISTICS_MEAN=str(band))
        file.descriptions, file.units = ("one", "two", "three"), ("m", "km", "cm")
        file.scales, file.offsets = (0.1, 1, 2), (5, 0, -7)

    def told(*words):
        with rasterio.open(convert(path, *words)[0]) as file:
            own = [file.tags(band) for band in file.indexes]
            return file.tags(), file.tags(ns="OTHER"), own, file.descriptions, file.units, file.scales, file.offsets

    with rasterio.open(path) as file:
        everything = file.tags()
    tags, other, own, *rest = told()
    assert tags == everything and other == {"KEY": "value"} and own == [{"NUMBER": str(b), "STATISTICS_MEAN": str(b)} for b in (1, 2, 3)]
    assert rest == [("one", "two", "three"), ("m", "km", "cm"), (0.1, 1, 2), (5, 0, -7)]
    tags, _, own, *rest = told("--band", "3,1,3")
    assert tags == everything and own == [{"NUMBER": b, "STATISTICS_MEAN": b} for b in "313"]
    assert rest == [("three", "one", "three"), ("cm", "m", "cm"), (2, 0.1, 2), (-7, 5, -7)]
    for words in ["--window", "0,0,40,40"], ["--nodata", "3"], ["--codec", "lerc", "--max-z-error", "1"]:
        assert told(*words)[2] == [{"NUMBER": b} for b in "123"], words


def test_metadata_that_is_odd(tmp_path):
    """Names that no file may be written with are left out; numbers stay, however they are told."""
    path = tmp_path / "a.tif"
    items = '<Item name="A&#10;B">1</Item><Item name="KEY" domain="&#1;">2</Item><Item name="GOOD">3</Item>' \
            '<Item name="SCALE" sample="0" role="scale"> 0.1 m</Item><Item name="OFFSET" sample="0" role="offset">bad</Item>'
    tifffile.imwrite(path, samples((30, 30), "u2"), extratags=[(42112, "s", 0, f"<GDALMetadata>{items}</GDALMetadata>", True)])
    with rasterio.open(convert(path)[0]) as file:
        assert file.tags()["GOOD"] == "3" and file.scales == (0.1,) and file.offsets == (0,)


def test_scale_that_the_place_tells(tmp_path):
    """With a vertical system, of GeoTIFF 1.1, the third axis is that of the samples."""
    path = tmp_path / "a.tif"
    keys = [1, 1, 1, 6, 0, 0, 1, 1, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32633, 4096, 0, 1, 5773, 4099, 0, 1, 9001]  # a key 0 is none
    tifffile.imwrite(path, samples((30, 30), "u2"), extratags=[
        (33550, "d", 3, (60, 60, 2.5), True), (33922, "d", 6, (0, 0, 0, 440720, 3751320, 10), True), (34735, "H", len(keys), keys, True)])
    with rasterio.open(path) as before, rasterio.open(convert(path)[0]) as file:
        assert file.scales == before.scales == (2.5,) and file.offsets == before.offsets == (10,) and file.crs == before.crs


def test_mask_of_a_part(tmp_path):
    mask = RNG.integers(0, 2, (100, 100), dtype="u1") * 255
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write(tmp_path / "a.tif", samples((3, 100, 100), "u1"), photometric="rgb")
        with rasterio.open(path, "r+") as file:
            file.write_mask(mask)
    out, _ = convert(path, "--window", "10,20,50,40", "--cog", "--codec", "webp")
    with rasterio.open(out) as file:
        assert (file.dataset_mask() == mask[20:60, 10:60]).all() and file.mask_flag_enums[0] == [MaskFlags.per_dataset]


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_onto_itself(tmp_path):
    pixels = samples((1, 600, 700), "u2")
    path = write(tmp_path / "a.tif", pixels)
    for words in ["--codec", "none"], ["--cog"]:
        assert run(path, path, *words).returncode == 0
        assert (read(path) == pixels).all()
    assert os.listdir(tmp_path) == ["a.tif"]


def test_what_fails_leaves_the_old_file(tmp_path):
    pixels = samples((1, 1000, 1000), "u2")
    path = write(tmp_path / "a.tif", pixels, compress="none")
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 20000)
    out = tmp_path / "out.tif"
    out.write_bytes(b"old")
    assert "a.tif" in failed(path, out)
    assert "17" in failed(path, out, "--block", 17, code=2)
    assert out.read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["a.tif", "out.tif"]
    assert convert(path, "--fill-bad-blocks", notes=1)[1]["bad_blocks"] > 0
    assert (read(out)[0, :900] == pixels[0, :900]).all()


def test_files_beside_the_old_one(tmp_path):
    """GDAL would read them with the new one: they go with the old one, but for a file that is converted in its place. One that no program
    replaces stays, and is told of."""
    path, out, old = write(tmp_path / "a.tif", samples((1, 300, 300), "u2")), tmp_path / "out.tif", samples((1, 300, 300), "u2") // 2
    with rasterio.Env(TIFF_USE_OVR=True, GDAL_TIFF_INTERNAL_MASK=False):
        with rasterio.open(write(out, old), "r+") as file:
            file.write_mask(np.zeros((300, 300), "u1"))
        with rasterio.open(out, "r+") as file:
            file.build_overviews([2], Resampling.nearest)
    beside = ["out.tif.msk", "out.tif.msk.ovr", "out.tif.ovr"]
    assert sorted(os.listdir(tmp_path)) == ["a.tif", "out.tif", *beside]
    notes = run(out, out).stderr.decode().splitlines()
    assert len(notes) == 3 and all("contains stale" in note for note in notes) and sorted(os.listdir(tmp_path)) == ["a.tif", "out.tif", *beside]
    _, told = convert(path, notes=3)
    assert all("removed" in note for note in told["notes"]) and all(any(f"{name}:" in note for note in told["notes"]) for name in beside)
    assert sorted(os.listdir(tmp_path)) == ["a.tif", "out.tif"]
    with rasterio.open(out) as file:
        assert file.overviews(1) == [] and file.mask_flag_enums == ([MaskFlags.all_valid],)
    out.unlink()
    (tmp_path / "out.tif.aux.xml").write_text("<PAMDataset/>")
    assert "out.tif.aux.xml: contains stale" in convert(path, notes=1)[1]["notes"][0]


@pytest.mark.parametrize("ignored", [None, signal.SIGHUP])
def test_interrupts_leave_nothing(tmp_path, ignored):
    """But those that nohup has told it to ignore do not interrupt it."""
    path, out = tmp_path / "a.tif", tmp_path / "out.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=20000, width=20000, dtype="uint8", tiled=True, sparse_ok=True):
        pass
    out.write_bytes(b"old")
    process = subprocess.Popen([BINARY, "convert", path, out, "--codec", "lzma", "--compression-level", "9"],
                               preexec_fn=ignored and (lambda: signal.signal(ignored, signal.SIG_IGN)))
    deadline = time.monotonic() + 60
    while len(os.listdir(tmp_path)) == 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if ignored:
        process.send_signal(ignored)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT
    assert out.read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["a.tif", "out.tif"]


def test_memory_does_not_grow_with_the_image(tmp_path, run):
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=12000, width=10000, dtype="uint8", tiled=True, sparse_ok=True):
        pass
    done = run(BINARY, "convert", path, tmp_path / "out.tif", "--cog", "--codec", "zstd", "--compression-level", "1", timeout=100)
    assert done.code == 0, done.stderr
    if "san" not in Path(BINARY).parent.name:
        assert done.mib < 90  # 120 MB of pixels


# ---- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, message", [
    (["{}"], "convert needs IN OUT"),
    (["{}", "b.tif", "c.tif"], "convert accepts IN OUT only"),
    (["{}", "https://a.b/c.tif"], "OUT cannot be a URL"),
    (["{}", "b.tif", "--compression-level", "0"], "--compression-level 0: expected a level of the codec"),
    (["{}", "b.tif", "--quality", "101"], "--quality 101: expected a number from 1 to 100"),
    (["{}", "b.tif", "--max-z-error", "-1"], "--max-z-error -1: expected a number of at least 0"),
    (["{}", "b.tif", "--predictor", "4"], "--predictor 4: expected auto, 1, 2 or 3"),
    (["{}", "b.tif", "--block", "x"], "--block x: expected a size"),
    (["{}", "b.tif", "--block", "64x"], "--block 64x: expected a size"),
    (["{}", "b.tif", "--block", "0"], "--block 0: expected a size"),
    (["{}", "b.tif", "--strips", "a"], "--strips a: expected a number of rows"),
    (["{}", "b.tif", "--overviews", "2,,4"], "--overviews 2,,4: expected auto, none, or factors"),
    (["{}", "b.tif", "--resampling", "best"], "--resampling best: expected nearest"),
    (["{}", "b.tif", "--bigtiff", "maybe"], "--bigtiff maybe: expected auto, yes or no"),
    (["{}", "b.tif", "--nodata", ""], "--nodata : expected a number"),
    (["{}", "b.tif", "--strips", "9", "--block", "64"], "--strips and --block cannot be combined"),
    (["{}", "b.tif", "--strips", "9", "--cog"], "a COG has tiles"),
    (["{}", "b.tif", "--window", "0,0,1,1", "--bbox", "0,0,1,1"], "cannot be combined"),
    (["{}", "b.tif", "--codek", "lzw"], "did you mean --codec?"),
    (["{}", "b.tif", "--cog=yes"], "--cog takes no value"),
])
def test_wrong_usage(tmp_path, words, message):
    path = write(tmp_path / "a.tif", np.zeros((1, 4, 4), "u1"), tiled=False)
    assert message in failed(*(word.format(path) for word in words), code=2)


@pytest.mark.parametrize("words, message", [
    (["--codec", "best"], "best"), (["--block", "17"], "16"), (["--predictor", "3"], "predictor 3"), (["--overviews", "4,2"], "4"),
    (["--nodata", "300"], "300"), (["--codec", "lzw", "--compression-level", "5"], "level"), (["--band", "2"], "there is no band 2"),
    (["--window", "0,0,9,9"], "beyond level 0"), (["--level", "1"], "level"), (["--image", "1"], "image"),
])
def test_what_cannot_be_is_refused_in_a_line(tmp_path, words, message):
    path = write(tmp_path / "a.tif", np.zeros((1, 4, 4), "u1"), tiled=False)
    assert message in failed(path, tmp_path / "b.tif", *words, code=1 if words[0] in ("--band", "--level", "--image") else 2)
    assert os.listdir(tmp_path) == ["a.tif"]


def test_a_name_is_told_once(tmp_path):
    path = write(tmp_path / "a.tif", np.zeros((1, 4, 4), "u1"), tiled=False)
    for name in tmp_path, tmp_path / "no" / "b.tif":
        assert failed(path, name).count(str(name)) == 1
