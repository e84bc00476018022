"""cogpu preview, compared by NumPy: what rasterio reads, reduced and stretched the way the command's help says.

Pictures are read back by GDAL. Every file is made here.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
tifffile = pytest.importorskip("tifffile")
from rasterio.enums import ColorInterp, Resampling  # noqa: E402
from rasterio.transform import from_origin  # noqa: E402
from test_cli import failed as cli_failed, run  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))
RNG = np.random.default_rng(11)


def has_png():
    told = subprocess.run([BINARY, "devices", "--json"], capture_output=True)
    return json.loads(told.stdout)["libraries"]["libpng"] is not None


pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK) or not has_png(), reason=f"{BINARY} is not built, or without libpng")


def failed(*words, code=1):
    return cli_failed("preview", *words, code=code)


def preview(path, *words):
    """The picture's colours, its alpha (255 where it has none), and what was told of it."""
    out = path.parent / "picture.png"
    result = run("preview", path, out, "--json", *words)
    assert result.returncode == 0 and result.stderr == b"", result.stderr.decode()
    told = json.loads(result.stdout)
    with rasterio.open(out) as file:
        pixels = file.read()
        assert pixels.dtype == np.uint8
        if file.colorinterp[-1] == ColorInterp.alpha:
            colours, alpha = pixels[:-1], pixels[-1]
        else:
            colours, alpha = pixels, np.full(pixels.shape[1:], 255, "u1")
    assert (told["height"], told["width"]) == alpha.shape
    assert told["transparent_pixels"] == np.count_nonzero(alpha == 0)
    return colours, alpha, told


def write(path, pixels, **profile):
    bands, height, width = pixels.shape
    options = dict(crs="EPSG:32632", transform=from_origin(500000, 5000000, 10, 10), tiled=True,
                   blockxsize=64, blockysize=64, compress="deflate") | profile
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width,
                       dtype=pixels.dtype, **options) as file:
        file.write(pixels)
    return path


def reduced(pixels, valid, height, width):
    """Means of the valid pixels of boxes, NaN where there is none."""
    rows = np.arange(height) * pixels.shape[-2] // height
    columns = np.arange(width) * pixels.shape[-1] // width

    def boxes(values):
        return np.add.reduceat(np.add.reduceat(values, rows, -2), columns, -1)

    with np.errstate(invalid="ignore"):
        return boxes(np.where(valid, pixels, 0).astype("f8")) / boxes(valid.astype("f8"))


def grays(values, low, high):
    part = np.clip((np.nan_to_num(values) - low) / (high - low), 0, 1)
    return np.where(np.isnan(values), 0, np.floor(part * 255 + 0.5))


def stretched(values, percent=(2, 98)):
    return grays(values, *np.percentile(values[~np.isnan(values)], percent))


def near(found, expected, levels=1):
    assert found.shape == expected.shape
    assert np.abs(found.astype("f8") - expected).max() <= levels


def surface(height, width, low, high):
    y, x = np.mgrid[:height, :width]
    hills = np.sin(x / 17) * np.cos(y / 23) + (x + 2 * y) / (width + height)
    return low + (hills - hills.min()) / np.ptp(hills) * (high - low)


@pytest.mark.parametrize("dtype, low, high", [
    ("u1", 0, 255), ("i1", -128, 127), ("u2", 100, 60000), ("i2", -9000, 9000), ("u4", 0, 4e9), ("i4", -2e9, -1.9e9), ("f4", -50, 3000),
    ("f8", 1e9, 1e9 + 1), ("i8", -4e15, 4e15), ("u8", 0, 2**63),
])
def test_types(tmp_path, dtype, low, high):
    pixels = surface(170, 230, low, high).astype(dtype)
    path = write(tmp_path / "a.tif", pixels[None])
    colours, alpha, told = preview(path, "--size", 100)
    assert colours.shape == (1, 74, 100) and told["kind"] == "gray" and told["level"] == 0
    near(colours[0], stretched(reduced(pixels, np.full(pixels.shape, True), 74, 100)))
    assert (alpha == 255).all() and told["type"] == np.dtype(dtype).name


def test_half_floats(tmp_path):
    pixels = surface(64, 64, -1, 1).astype("f2")
    pixels[:5] = np.nan
    tifffile.imwrite(tmp_path / "a.tif", pixels)
    colours, alpha, _ = preview(tmp_path / "a.tif")
    near(colours[0], stretched(pixels.astype("f8")))
    assert (alpha == np.where(np.isnan(pixels), 0, 255)).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "complex_int16"])
def test_magnitude_of_complex_samples(tmp_path, dtype):
    pixels = (surface(60, 90, -1000, 1000) + 1j * surface(60, 90, 500, 700)).round().astype("c8")
    pixels[:7, :9] = 0
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=60, width=90, dtype=dtype, nodata=0) as file:
        file.write(pixels, 1)
    valid = pixels != 0
    colours, alpha, _ = preview(path, "--size", 30)
    expected = reduced(np.abs(pixels.astype("c16")), valid, 20, 30)
    near(colours[0], stretched(expected))
    assert ((alpha == 0) == np.isnan(expected)).all() and (alpha == 0).any()


def test_rgb_bytes_are_shown_as_they_are(tmp_path):
    pixels = RNG.integers(30, 200, (3, 130, 150), dtype="u1")
    path = write(tmp_path / "a.tif", pixels, photometric="rgb")
    colours, alpha, told = preview(path)
    assert (colours == pixels).all() and (alpha == 255).all()
    assert told["kind"] == "rgb" and told["stretched"] is False and told["ranges"] == [[0, 255]] * 3
    near(preview(path, "--size", 50)[0], np.floor(reduced(pixels, np.full(pixels.shape, True), 43, 50) + 0.5), 0)
    colours, _, told = preview(path, "--percentiles", "0,100")
    near(colours, np.stack([stretched(band.astype("f8"), (0, 100)) for band in pixels]))
    assert told["stretched"] is True


@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_other_colours_are_stretched_band_by_band(tmp_path, interleave):
    pixels = np.stack([surface(120, 80, low, low + 500) for low in (0, 3000, 9000, 40000)]).astype("u2")
    pixels[2] += RNG.integers(0, 300, (120, 80), dtype="u2")
    path = write(tmp_path / "a.tif", pixels, photometric="minisblack", interleave=interleave)
    colours, _, told = preview(path, "--size", 60)
    means = reduced(pixels, np.full(pixels.shape, True), 60, 40)
    assert told["bands"] == [1, 2, 3] and told["kind"] == "rgb"
    near(colours, np.stack([stretched(band) for band in means[:3]]))
    colours, _, told = preview(path, "--size", 60, "--band", "4,2,1")
    assert told["bands"] == [4, 2, 1]
    near(colours, np.stack([stretched(means[i]) for i in (3, 1, 0)]))
    colours, _, told = preview(path, "--size", 60, "--band", 3, "--stretch", "9100,9500")
    assert told["kind"] == "gray" and told["ranges"] == [[9100, 9500]]
    near(colours[0], grays(means[2], 9100, 9500))


def test_bands_are_found_by_their_names(tmp_path):
    pixels = RNG.integers(0, 255, (4, 40, 50), dtype="u1")
    path = write(tmp_path / "a.tif", pixels, photometric="minisblack")
    with rasterio.open(path, "r+") as file:
        file.colorinterp = [ColorInterp.undefined, ColorInterp.blue, ColorInterp.green, ColorInterp.red]
    colours, _, told = preview(path)
    assert told["bands"] == [4, 3, 2] and (colours == pixels[[3, 2, 1]]).all()


def test_floats_without_names_are_gray(tmp_path):
    pixels = np.stack([surface(30, 30, 0, 1)] * 3).astype("f4")
    assert preview(write(tmp_path / "a.tif", pixels))[2]["kind"] == "gray"


def test_palette(tmp_path):
    pixels = np.repeat(np.repeat(RNG.integers(0, 5, (1, 20, 30), dtype="u1"), 4, 1), 4, 2)
    path = write(tmp_path / "a.tif", pixels, photometric="palette", nodata=4)
    palette = {i: tuple(map(int, RNG.integers(0, 256, 3))) + (255,) for i in range(256)}
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, palette)
    table = np.array([palette[i][:3] for i in range(256)]).T
    for size, shown in (1000, pixels[0]), (30, pixels[0, ::4, ::4]):
        colours, alpha, told = preview(path, "--size", size)
        assert told["kind"] == "palette" and (alpha == np.where(shown == 4, 0, 255)).all()
        assert (colours == np.where(shown == 4, 0, table[:, shown])).all()
    colours, _, _ = preview(path, "--size", 10)
    near(colours, np.floor(np.nan_to_num(reduced(table[:, pixels[0]], np.stack([pixels[0] != 4] * 3), 7, 10)) + 0.5), 0)
    assert "palette" in failed(path, tmp_path / "b.png", "--stretch", "0,3", code=2)


def test_nodata(tmp_path):
    pixels = surface(130, 170, 10, 20).astype("f4")
    pixels[20:60, 30:90] = -9999
    pixels[100:, :20] = np.nan
    pixels[:5, :5] = np.inf
    path = write(tmp_path / "a.tif", pixels[None], nodata=-9999)
    valid = np.isfinite(pixels) & (pixels != -9999)
    colours, alpha, _ = preview(path, "--size", 85)
    means = reduced(pixels, valid, 65, 85)
    assert (alpha == np.where(np.isnan(means), 0, 255)).all() and (alpha == 0).any()
    near(colours[0], stretched(means))


def test_a_band_without_data_leaves_the_pixel(tmp_path):
    pixels = RNG.integers(1, 255, (3, 20, 20), dtype="u1")
    pixels[0, :10] = 0
    pixels[:, 15:] = 0
    path = write(tmp_path / "a.tif", pixels, photometric="rgb", nodata=0)
    colours, alpha, _ = preview(path)
    assert (alpha[:15] == 255).all() and (alpha[15:] == 0).all() and (colours == pixels).all()


def test_mask(tmp_path):
    pixels = RNG.integers(0, 255, (3, 100, 100), dtype="u1")
    mask = np.full((100, 100), 255, "u1")
    mask[30:70, 10:50] = 0
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write(tmp_path / "a.tif", pixels, photometric="rgb")
        with rasterio.open(path, "r+") as file:
            file.write_mask(mask)
    colours, alpha, _ = preview(path)
    assert (alpha == mask).all() and (colours == np.where(mask, pixels, 0)).all()


@pytest.mark.parametrize("associated", [False, True])
def test_alpha(tmp_path, associated):
    pixels = np.full((4, 40, 40), 200, "u1")
    pixels[3] = np.repeat([0, 51, 255, 102], 10)
    if associated:
        pixels[:3] = pixels[:3].astype("f8") * pixels[3] / 255
    path = write(tmp_path / "a.tif", pixels, photometric="rgb", alpha="premultiplied" if associated else "yes")
    for size in 40, 20:
        colours, alpha, told = preview(path, "--size", size)
        assert told["bands"] == [1, 2, 3, 4]
        assert (alpha == pixels[3, :size, ::40 // size]).all()
        assert (colours == np.where(alpha == 0, 0, 200)).all()


def test_alpha_beside_nodata(tmp_path):
    """Nodata tells which samples are valid then; an alpha of 0, which is nodata too, hides the pixel all the same."""
    pixels = np.full((4, 20, 20), 100, "u1")
    pixels[3, :10] = 0
    _, alpha, _ = preview(write(tmp_path / "a.tif", pixels, photometric="rgb", alpha="yes", nodata=0))
    assert (alpha == pixels[3]).all()


@pytest.mark.parametrize("bits", [1, 4])
def test_few_bits_and_white_for_zero(tmp_path, bits):
    pixels = RNG.integers(0, 2**bits, (1, 32, 48), dtype="u1")
    white, black = (write(tmp_path / f"{name}.tif", pixels, photometric=name, nbits=bits, compress=None) for name in ("miniswhite", "minisblack"))
    colours, _, told = preview(black)
    assert told["stretched"] is (bits > 1)
    near(colours, grays(pixels, 0, 2**bits - 1), 0)
    assert (preview(white)[0] == 255 - colours).all()


def test_the_level_that_fits(tmp_path):
    pixels = surface(700, 1000, 0, 1000).astype("u2")
    path = write(tmp_path / "a.tif", pixels[None])
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4, 8], Resampling.average)
    levels = [pixels]
    for factor in range(3):
        with rasterio.open(path, overview_level=factor) as file:
            levels.append(file.read(1))
    for size, level in (2000, 0), (1000, 0), (999, 0), (500, 1), (400, 1), (250, 2), (200, 2), (125, 3), (7, 3):
        colours, _, told = preview(path, "--size", size)
        assert told["level"] == level and max(told["width"], told["height"]) == min(size, 1000)
        source = levels[level]
        near(colours[0], stretched(reduced(source, np.full(source.shape, True), *colours.shape[1:])))
    assert preview(path, "--size", 100, "--level", 1)[2]["level"] == 1
    colours, _, told = preview(path, "--size", 100, "--window", "200,100,400,320")
    assert (told["level"], told["window"], told["width"], told["height"]) == (2, [50, 25, 100, 80], 100, 80)
    near(colours[0], stretched(levels[2][25:105, 50:150].astype("f8")))
    assert preview(path, "--size", 100, "--bbox", "502000,4995800,506000,4999000")[2]["window"] == [50, 25, 100, 80]
    assert preview(path, "--size", 100, "--level", 1, "--window", "0,0,50,20")[2]["window"] == [0, 0, 50, 20]


@pytest.mark.parametrize("shape, size, expected", [
    ((1, 1), 1024, (1, 1)), ((5000, 1), 1024, (1024, 1)), ((1, 5000), 1024, (1, 1024)), ((3, 5000), 1000, (1, 1000)), ((200, 300), 1, (1, 1)),
    ((77, 131), 100, (59, 100)),
])
def test_sizes(tmp_path, shape, size, expected):
    pixels = RNG.integers(0, 255, shape).astype("f4")
    path = write(tmp_path / "a.tif", pixels[None], tiled=False)
    colours, alpha, _ = preview(path, "--size", size)
    assert colours.shape[1:] == expected and (alpha == 255).all()
    if colours.size > 1:
        near(colours[0], stretched(reduced(pixels, np.full(shape, True), *expected)))


def test_one_value_and_none(tmp_path):
    colours, alpha, told = preview(write(tmp_path / "a.tif", np.full((1, 30, 30), 7, "i4")))
    assert (colours == 128).all() and (alpha == 255).all() and told["ranges"] == [[7, 7]]
    colours, alpha, told = preview(write(tmp_path / "b.tif", np.full((1, 30, 30), 7, "i4"), nodata=7))
    assert (colours == 0).all() and (alpha == 0).all() and told["transparent_pixels"] == 900


def test_a_few_bright_pixels_show(tmp_path):
    """Where both percentiles are one value the picture goes from the smallest to the largest."""
    pixels = np.zeros((1, 50, 50), "u2")
    pixels[0, 10, 10:15] = 1000
    colours, _, told = preview(write(tmp_path / "a.tif", pixels))
    assert told["ranges"] == [[0, 1000]] and (colours == np.where(pixels, 255, 0)).all()


def test_memory_does_not_grow_with_the_image(tmp_path, run):
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=12000, width=12000, dtype="uint8", tiled=True, blockxsize=256,
                       blockysize=256, sparse_ok=True) as file:
        file.write(np.full((1, 300, 300), 200, "u1"), window=rasterio.windows.Window(0, 0, 300, 300))
    done = run(BINARY, "preview", path, tmp_path / "a.png", "--size", "500", "--stretch", "0,255", timeout=100)
    assert done.code == 0, done.stderr
    with rasterio.open(tmp_path / "a.png") as file:
        pixels = file.read(1)
    assert (pixels[:12, :12] == 200).all() and (pixels[13:] == 0).all()
    if "san" not in Path(BINARY).parent.name:
        assert done.mib < 90  # 144 MB of pixels


def test_bad_blocks_are_filled_when_asked(tmp_path):
    path = write(tmp_path / "a.tif", RNG.integers(0, 255, (1, 256, 256), dtype="u1"), compress="none")
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 5000)
    assert "a.tif" in failed(path, tmp_path / "a.png") and not (tmp_path / "a.png").exists()
    result = run("preview", path, tmp_path / "a.png", "--fill-bad-blocks")
    assert result.returncode == 0 and b"could not be read" in result.stderr and (tmp_path / "a.png").exists()


def test_what_a_person_reads(tmp_path):
    path = write(tmp_path / "a.tif", surface(30, 40, 0, 100).astype("f4")[None])
    told = run("preview", path, tmp_path / "a.png", "--stretch", "5,95").stdout.decode()
    assert told == f"{tmp_path}/a.png: 40 x 30 pixels, gray, of level 0 (40 x 30); stretched 5 to 95\n"


@pytest.mark.parametrize("words, message", [
    ([], "preview needs FILE OUT.png"),
    (["{}"], "preview needs FILE OUT.png"),
    (["{}", "a.jpg"], "a.jpg: expected a file name that ends in .png"),
    (["{}", "a.png", "--size", "0"], "--size 0: expected a number of pixels from 1 to 8192"),
    (["{}", "a.png", "--size", "8193"], "from 1 to 8192"),
    (["{}", "a.png", "--percentiles", "98,2"], "--percentiles 98,2: expected LOW,HIGH with 0 <= LOW < HIGH <= 100"),
    (["{}", "a.png", "--percentiles", "2,101"], "<= 100"),
    (["{}", "a.png", "--stretch", "5,5"], "--stretch 5,5: expected LOW,HIGH with LOW < HIGH"),
    (["{}", "a.png", "--stretch", "5,nan"], "--stretch"),
    (["{}", "a.png", "--stretch", "1,2", "--percentiles", "1,2"], "cannot be combined"),
    (["{}", "a.png", "--window", "0,0,1,1", "--bbox", "0,0,1,1"], "cannot be combined"),
    (["{}", "a.png", "--band", "1,2"], "one band, or three"),
    (["{}", "a.png", "--sice", "3"], "did you mean --size?"),
])
def test_wrong_usage(tmp_path, words, message):
    path = write(tmp_path / "a.tif", np.zeros((1, 4, 4), "u1"), tiled=False)
    assert message in failed(*(word.format(path) for word in words), code=2)


def test_what_is_not_there(tmp_path):
    path = write(tmp_path / "a.tif", np.zeros((1, 40, 40), "u1"))
    out = tmp_path / "a.png"
    assert "there is no band 2" in failed(path, out, "--band", 2)
    assert "level" in failed(path, out, "--level", 3)
    assert "beyond level 0" in failed(path, out, "--window", "30,0,20,20", code=2)
    assert "no such" in failed(tmp_path / "b.tif", out).lower()
    assert str(tmp_path / "nowhere" / "a.png") in failed(path, tmp_path / "nowhere" / "a.png")
    assert not out.exists()
