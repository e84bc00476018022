"""Overviews of the writer beside GDAL's: nearest, average and mode the same, the others within rounding; level by
level of a pyramid, with nodata, NaN and masks."""

import pathlib
import tempfile

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import rasterio
from rasterio.enums import Resampling

SIZES = [(200, 300), (201, 303), (64, 65), (1, 130), (130, 1), (97, 7), (33, 200)]
EQUAL = ["nearest", "average", "mode"]
CLOSE = ["bilinear", "cubic", "rms"]


def samples(dtype, size, seed=1):
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:size[0], :size[1]]
    hills = np.sin(x / 9) * 40 + np.cos(y / 7) * 30 + random.normal(0, 5, size) + 100
    return (np.round(hills / 8) * 8 if seed == 2 else hills).astype(dtype)[None]


def gdals(array, method, mask=None, **options):
    """GDAL's overviews by 2, 4 and 8, each made of the last."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.tif"
        path.write_bytes(reference.write(array, **options))
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as file:
            if mask is not None:
                file.write_mask(mask > 0)
            file.build_overviews([2, 4, 8], Resampling[method])
        levels = []
        for level in range(3):
            with rasterio.open(path, overview_level=level) as file:
                levels.append(file.read())
    return levels


def ours(array, method, **options):
    data = cogpu.write(array, resampling=method, overview_factors=[2, 4, 8], block_width=32, **options)
    with cogpu.open_memory(data) as file:
        return [file.read(level=level) for level in (1, 2, 3)]


def within_rounding(found, expected):
    wide, right = found.astype("f8"), expected.astype("f8")
    assert np.array_equal(np.isnan(wide), np.isnan(right))
    allowed = 1 if found.dtype.kind in "ui" else np.maximum(np.abs(right), 1) * 1e-5
    return bool(np.all(np.nan_to_num(np.abs(wide - right)) <= allowed))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4", "f8"])
@pytest.mark.parametrize("method", EQUAL)
def test_equal(method, dtype, size):
    array = samples(dtype, size, 2 if method == "mode" else 1)
    levels = 1 if size[1] == 1 else 3  # GDAL makes all levels of a column of level 0
    for found, expected in zip(ours(array, method)[:levels], gdals(array, method)):
        assert reference.same(found, expected)


@pytest.mark.parametrize("size", SIZES[:3])
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
@pytest.mark.parametrize("method", CLOSE)
def test_close(method, dtype, size):
    """Of one level: what is rounded there is another source for the next."""
    array = samples(dtype, size)
    assert within_rounding(ours(array, method)[0], gdals(array, method)[0])


@pytest.mark.parametrize("dtype, nodata", [("u1", 0), ("i2", -9999), ("f4", -9999), ("f4", float("nan"))])
@pytest.mark.parametrize("method", ["nearest", "average", "bilinear", "cubic"])
def test_nodata(method, dtype, nodata):
    if method in ("bilinear", "cubic") and np.isnan(nodata):
        pytest.skip("NaN spoils what is around it in GDAL's")
    array = samples(dtype, (201, 303))
    array[:, 40:90, 50:130] = nodata
    array[:, ::17, ::5] = nodata
    found = ours(array, method, nodata=str(nodata))[0]
    expected = gdals(array, method, nodata=nodata)[0]
    assert reference.same(found, expected) if method in EQUAL else within_rounding(found, expected)


@pytest.mark.parametrize("method", ["average", "cubic"])
def test_mask(method):
    array = samples("u1", (200, 300))
    mask = (np.hypot(*np.mgrid[-100:100, -150:150]) < 80).astype("u1")
    data = cogpu.write(array, mask, resampling=method, overview_factors=[2, 4, 8], block_width=32)
    expected = gdals(array, method, mask)[0]
    with cogpu.open_memory(data) as file:
        found, valid = file.read(level=1), file.mask(level=1) > 0
    assert np.abs(found.astype(int) - expected)[:, valid].max() <= 1
    assert valid.any() and not valid.all()


@pytest.mark.parametrize("method, reduce", [("min", np.min), ("max", np.max), ("median", np.median)])
def test_of_squares(method, reduce):
    """Sides that are even: each pixel is made of four."""
    array = samples("f4", (200, 300))
    squares = array.reshape(1, 100, 2, 150, 2).swapaxes(2, 3).reshape(1, 100, 150, 4)
    assert reference.same(ours(array, method)[0], reduce(squares, axis=-1).astype("f4"))


def test_bands_and_planes():
    array = np.concatenate([samples("u1", (201, 303), seed) for seed in (3, 4, 5)])
    expected = gdals(array, "average")
    for planar in 0, 1:
        for found, right in zip(ours(array, "average", interleave=planar), expected):
            assert reference.same(found, right)


@pytest.mark.parametrize("dtype, options", [(cogpu.CI16, {}), ("c8", {}), ("c16", {"nodata": "-9999"})])
def test_complex_samples(dtype, options):
    """Some of them have no mean: a COG is made of all."""
    array = np.zeros((1, 70, 90), dtype)
    array.view("i2" if dtype is cogpu.CI16 else f"f{array.itemsize // 2}")[:] = samples("i2", (70, 180))
    with cogpu.open_memory(cogpu.write(array, cog=1, block_width=64, **options)) as file:
        assert np.array_equal(file.read(level=1), array[:, ::2, ::2])
