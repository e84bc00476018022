"""out_shape and resampling: decimated reads from overviews, beside rasterio's."""

import numpy as np
import pytest
import rasterio
import rioxarray  # noqa: F401  (for .rio)
from conftest import host, pixels_of, write_file
from rasterio.enums import Resampling
from rasterio.windows import Window

import cogpu
from cogpu import grids

GPUS = {"cpu": False, "emu": "emu", "cuda": True}
HEIGHT, WIDTH = 301, 407
METHODS = [method for method in grids.RESAMPLING if method != "nearest"]


def made(path, dtype="uint8", nodata=None, bands=2, overviews=(2, 4, 7), **profile):
    """Noise with holes, at random and a large one; the overviews are by nearest, so that levels differ."""
    random = np.random.default_rng(5)
    pixels = random.integers(20, 250, (bands, HEIGHT, WIDTH)).astype(dtype)
    if nodata is not None:
        holes = random.random(pixels.shape) < .2
        holes[:, 100:160, 50:150] = True
        pixels[holes] = nodata
    return write_file(path, pixels, nodata=nodata, overviews=overviews, **profile)


def requests(count, seed=3):
    """Windows (row0, col0, row1, col1) and shapes of outputs, some larger."""
    random = np.random.default_rng(seed)
    yield (0, 0, HEIGHT, WIDTH), (100, 136)
    yield (0, 0, HEIGHT, WIDTH), (43, 59)
    yield (0, 0, HEIGHT, WIDTH), (1, 1)
    for _ in range(count):
        height, width = int(random.integers(1, HEIGHT + 1)), int(random.integers(1, WIDTH + 1))
        row, column = int(random.integers(0, HEIGHT - height + 1)), int(random.integers(0, WIDTH - width + 1))
        less = random.uniform(0.6, 9)
        shape = max(1, int(height / less)), max(1, int(width / less / random.uniform(.6, 1.7)))
        yield (row, column, row + height, column + width), shape


def by_rasterio(file, bounds, shape, method="nearest", **how):
    row0, column0, row1, column1 = bounds
    return file.read(window=Window(column0, row0, column1 - column0, row1 - row0), out_shape=(file.count, *shape),
                     resampling=Resampling[method], **how)


@pytest.mark.parametrize("overviews", [(), (2, 4, 7), (2, 3, 4, 8, 16)])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_nearest_is_rasterios(overviews, interleave, tmp_path):
    path = made(tmp_path / "a.tif", overviews=overviews, interleave=interleave)
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        for bounds, shape in requests(60):
            np.testing.assert_array_equal(file.read(bounds, out_shape=shape), by_rasterio(reference, bounds, shape))


@pytest.mark.parametrize("is_nearest", [True, False])
def test_the_level_is_gdals(is_nearest, tmp_path):
    """Each level holds its own number."""
    path = made(tmp_path / "a.tif", bands=1, overviews=(2, 3, 4, 8, 16))
    for level in range(5):
        with rasterio.open(path, "r+", OVERVIEW_LEVEL=level) as file:
            file.write(np.full((1, file.height, file.width), level + 1, "u1"))
    with rasterio.open(path, "r+") as file:
        file.write(np.zeros((1, HEIGHT, WIDTH), "u1"))
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        for bounds, shape in requests(300):
            size = bounds[2] - bounds[0], bounds[3] - bounds[1]
            found = grids.best_level([level.shape for level in file.levels], size, shape, is_nearest)
            expected = by_rasterio(reference, bounds, shape, "nearest" if is_nearest else "bilinear")
            assert np.unique(expected).tolist() == [found]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype, nodata", [("uint8", None), ("float32", None), ("int16", 17), ("float32", 17.)])
def test_methods_are_gdals(method, dtype, nodata, tmp_path):
    """Of whole images all pixels; of windows all but some at the edges, where GDAL cuts kernels to whole pixels."""
    path = made(tmp_path / "a.tif", dtype, nodata)
    count = differing = 0
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        for number, (bounds, shape) in enumerate(requests(20)):
            ours = np.asarray(file.read(bounds, out_shape=shape, resampling=method)).astype("float64")
            theirs = by_rasterio(reference, bounds, shape, method).astype("float64")
            differ = abs(ours - theirs) > (1 if dtype != "float32" else 1e-3)
            assert number > 2 or not differ.any()
            count, differing = count + differ.size, differing + differ.sum()
    assert differing < 0.01 * count


@pytest.mark.parametrize("method", ["nearest", "average", "cubic", "mode"])
@pytest.mark.parametrize("nodata", [None, 17])
def test_all_ways_to_an_output_agree(method, nodata, tmp_path, device):
    path, bounds, shape = made(tmp_path / "a.tif", "int16", nodata, bands=3), (20, 30, 250, 390), (61, 83)
    how = {"window": bounds, "out_shape": shape, "resampling": method}
    with cogpu.open(path) as file:
        expected = np.asarray(file.read(bounds, out_shape=shape, resampling=Resampling[method]))
        assert expected.shape == (3, *shape) and expected.dtype == "int16"
        array = file.read(bounds, out_shape=(3, *shape), resampling=method, device=device)
        assert array.device.startswith(device)
        np.testing.assert_array_equal(host(array), expected)
        out = np.zeros((1, *shape), "int16")
        file.read(bounds, bands=2, out_shape=shape, resampling=method, out=out)
        np.testing.assert_array_equal(out[0], expected[1])
        np.testing.assert_array_equal(cogpu.read_many([(file, how)])[0], expected)
        masked = np.asarray(file.read(bounds, out_shape=shape, resampling=method, masked=True))
        mask = np.asarray(file.read_mask(bounds, out_shape=shape))
    if method != "cubic":
        assert np.array_equal(np.isnan(masked), expected == nodata if nodata else np.zeros(masked.shape, bool))
    if method == "nearest":
        np.testing.assert_array_equal(mask, np.where(expected == nodata, 0, 255))
    for chunks in (None, 32, "auto", {"band": 1, "y": 20}):
        array = cogpu.open_geotiff(path, chunks=chunks, gpu=GPUS[device], **how)
        np.testing.assert_array_equal(host(array.compute().data), expected)
        array = cogpu.open_geotiff(path, chunks=chunks, gpu=GPUS[device], masked=True, band=[3, 1], **how)
        np.testing.assert_array_equal(host(array.compute().data), masked[[2, 0]])


def test_coordinates_of_an_output(tmp_path):
    path, bounds, shape = made(tmp_path / "a.tif"), (20, 30, 250, 390), (46, 72)
    array = cogpu.open_geotiff(path, window=bounds, out_shape=shape)
    with rasterio.open(path) as file:
        corner = rasterio.windows.transform(Window(30, 20, 360, 230), file.transform)
    expected = rasterio.Affine(corner.a * 5, 0, corner.c, 0, corner.e * 5, corner.f)
    assert array.rio.transform() == expected
    np.testing.assert_allclose(array.x, expected.c + (np.arange(72) + .5) * 50)
    cogpu.to_geotiff(array, tmp_path / "small.tif")
    with rasterio.open(tmp_path / "small.tif") as file:
        assert file.transform == expected


def test_an_output_of_a_mask_or_alpha(tmp_path):
    pixels = pixels_of((1, 128, 128), "uint8")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write_file(tmp_path / "mask.tif", pixels)
        with rasterio.open(path, "r+") as file:
            file.write_mask(np.arange(128 * 128).reshape(128, 128) % 5 != 0)
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        for shape in ((64, 64), (50, 33)):
            ours = np.asarray(file.read(out_shape=shape, resampling="average")).astype(int)
            assert abs(ours - by_rasterio(reference, (0, 0, 128, 128), shape, "average")).max() <= 1


def test_rounding_does_not_make_nodata_of_valid_pixels(tmp_path):
    pixels = np.array([[[16, 18], [16, 18]]], "uint8")
    path = write_file(tmp_path / "a.tif", pixels, nodata=17, tiled=False)
    with cogpu.open(path) as file:  # rasterio's read gives 17; overviews that GDAL builds have 18
        assert np.asarray(file.read(out_shape=(1, 1), resampling="average")).item() == 18


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "complex64", "float64"])
def test_outputs_of_types(dtype, tmp_path):
    """At the ends of what a type holds, too."""
    kind = np.dtype(dtype).kind
    edge = np.iinfo(dtype).max if kind in "iu" else 1e300 if dtype == "float64" else 3 - 4j
    with cogpu.open(write_file(tmp_path / "a.tif", np.full((1, 64, 64), edge, dtype))) as file:
        for method in ("average", "bilinear", "cubic", "nearest") + (("mode",) if kind != "c" else ()):
            array = np.asarray(file.read(out_shape=(20, 30), resampling=method))
            assert array.dtype == dtype and np.allclose(array, np.dtype(dtype).type(edge), rtol=1e-6)
            is_exact = method in ("nearest", "mode") or dtype == "int8"  # the others compute in double precision
            assert not is_exact or (array == np.dtype(dtype).type(edge)).all()


def test_nan_stays_where_it_is(tmp_path):
    pixels = pixels_of((1, 64, 64), "float32")
    pixels[0, 20, 30] = np.nan
    with cogpu.open(write_file(tmp_path / "a.tif", pixels)) as file:
        for method in ("average", "bilinear", "cubic"):
            array = np.asarray(file.read(out_shape=(32, 32), resampling=method))
            assert np.isnan(array[0, 10, 15]) and np.isnan(array).sum() < 20


@pytest.mark.parametrize("method", ["nearest", "average", "bilinear"])
def test_boundless_outputs(method, tmp_path, device):
    """Pixels outside are not valid: an output is that of a file which is padded by nodata."""
    path = made(tmp_path / "a.tif", "int16", 17, overviews=())
    with rasterio.open(path) as file:
        padded = np.pad(file.read(), ((0, 0), (40, 40), (40, 40)), constant_values=17)
    wide = write_file(tmp_path / "wide.tif", padded, nodata=17)
    bounds, shape = (-40, -20, HEIGHT + 30, WIDTH + 40), (97, 60)
    inner = tuple(side + 40 for side in bounds)
    with cogpu.open(path) as file, cogpu.open(wide) as whole:
        expected = np.asarray(whole.read(inner, out_shape=shape, resampling=method))
        ours = host(file.read(bounds, out_shape=shape, resampling=method, boundless=True, device=device))
        np.testing.assert_array_equal(ours, expected)
    for chunks in (None, 32):
        array = cogpu.open_geotiff(path, window=bounds, out_shape=shape, resampling=method, boundless=True,
                                   chunks=chunks, gpu=GPUS[device])
        np.testing.assert_array_equal(host(array.compute().data), expected)


def test_large_images_are_read_in_parts(tmp_path, monkeypatch):
    from cogpu import resample
    path = made(tmp_path / "a.tif", overviews=())
    with cogpu.open(path) as file:
        expected = [np.asarray(file.read(out_shape=(50, 70), resampling=method)) for method in grids.RESAMPLING]
        monkeypatch.setattr(resample, "CHUNK_SAMPLES", 20_000)
        for method, array in zip(grids.RESAMPLING, expected):
            np.testing.assert_array_equal(file.read(out_shape=(50, 70), resampling=method), array)


@pytest.mark.parametrize("how, match", [
    ({"out_shape": 5}, "out_shape"), ({"out_shape": (5,)}, "out_shape"), ({"out_shape": (5, 0)}, "out_shape"),
    ({"out_shape": (7, 5, 5)}, "out_shape"), ({"out_shape": (5, 5.5)}, "out_shape"),
    ({"out_shape": (5, 5), "resampling": "gauss"}, "resampling"),
    ({"out_shape": (5, 5), "resampling": 3}, "resampling"),
    ({"out_shape": (5, 5), "window": (0, 0, 9999, 5)}, "window"), ({"out_shape": (5, 5), "level": 1}, "level"),
    ({"out_shape": (5, 5), "out": np.zeros((2, 5, 6), "u1")}, "out")])
def test_outputs_that_are_refused(how, match, tmp_path):
    path = made(tmp_path / "a.tif")
    with pytest.raises((cogpu.InvalidArgumentError, TypeError), match=match):
        cogpu.open(path).read(**how)
    if "out" not in how:
        with pytest.raises((cogpu.InvalidArgumentError, TypeError), match=match):
            cogpu.open_geotiff(path, **how)
