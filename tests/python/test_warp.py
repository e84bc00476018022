"""Warps on the CPU beside GDAL's warper, by affine transforms of the same CRS: exact positions, one chunk, stated scale."""

import numpy as np
import pytest
from rasterio.transform import Affine

from conftest import OLD_GDAL
from warp_cases import METHODS, gdal_warp, load_library, warp

pytestmark = pytest.mark.skipif(OLD_GDAL, reason="rules of GDAL 3.12")

FACTORS = [0.3, 0.5, 0.77, 0.951, 1, 1.5, 2.3, 4]
SIZE = (60, 70)
LIBRARY = load_library()


def samples(dtype, bands=1, size=SIZE, nodata=None, part=0.1, seed=1):
    random, dtype = np.random.default_rng(seed), np.dtype(dtype)
    y, x = np.mgrid[:size[0], :size[1]]
    hills = np.stack([np.sin(x / 7 + band) * np.cos(y / 5) * 0.35 + 0.35 for band in range(bands)])
    hills += random.random(hills.shape) * 0.3
    if dtype.kind == "f":
        array = (hills * 1000).astype(dtype)
    else:
        low, high = max(np.iinfo(dtype).min, -10**6), min(np.iinfo(dtype).max, 10**6)
        array = (low + hills * (high - low)).astype(dtype)
    if nodata is not None:
        array[random.random(array.shape) < part] = nodata
    return array


def grid(factor, rotation, size=SIZE):
    """Target pixels to source pixels, the size of the target, and the scale."""
    affine = Affine.translation(3.3, -2.1) @ Affine.rotation(rotation) @ Affine.scale(1 / factor)
    return affine, (int(size[0] * factor) + 5, int(size[1] * factor) + 5), (min(factor, 1),) * 2


def differences(ours, gdals, source):
    """Of integers; of floats in units of the last place of float32, at the larger of result and largest sample: sums are
    larger than samples, as are results of lanczos where few taps are valid."""
    if ours.dtype.kind != "f":
        return np.abs(ours.astype(float) - gdals.astype(float))
    assert np.array_equal(np.isnan(ours), np.isnan(gdals))
    unequal = (ours != gdals) & ~np.isnan(ours)
    largest = np.nanmax(np.abs(source.astype(float)))
    units = np.spacing(np.maximum(np.abs(ours[unequal]), largest).astype(np.float32)).astype(float)
    result = np.zeros(ours.shape)
    result[unequal] = np.abs(ours[unequal].astype(float) - gdals[unequal].astype(float)) / units
    return result


def check(source, method, factor, rotation, gdals=None, ours=None, to_type=None, exceptions=0.0):
    affine, size, scale = grid(factor, rotation)
    expected = gdal_warp(source, affine, size, method, to_type, scale, **(gdals or {}))
    actual, valid = warp(LIBRARY, source, affine, size, method, to_type, scale, **(ours or {}))
    tolerance = 0 if method == "near" else 2 if actual.dtype.kind == "f" else 1
    wrong = differences(actual, expected, source) > tolerance
    assert wrong.mean() <= exceptions, f"{wrong.sum()} of {wrong.size} differ"
    return actual, valid


def few(method, rotation):
    """Where differences are known: src/cpu/README.md. Weights of lanczos nearly cancel each other where they leave out the
    middle, which only is possible with several bands."""
    return 2e-3 if method == "sum" and rotation else 0


@pytest.mark.parametrize("dtype", ["u1", "i2", "u2", "f4", "f8", "i4", "i1"])
@pytest.mark.parametrize("method", METHODS)
def test_methods(method, dtype):
    for factor in FACTORS:
        for rotation in 0, 20:
            check(samples(dtype), method, factor, rotation, exceptions=few(method, rotation))


@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("dtype,nodata", [("f4", -9999), ("f4", float("nan")), ("u1", 0), ("i2", -32768), ("f8", -9999)])
@pytest.mark.parametrize("method", METHODS)
def test_nodata(method, dtype, nodata, bands):
    for factor in 0.3, 0.77, 1, 2.3:
        for rotation in 0, 20:
            source = samples(dtype, bands, nodata=nodata)
            actual, valid = check(source, method, factor, rotation, {"nodata": nodata, "dst_nodata": nodata},
                                  {"nodata": nodata, "avoided": nodata, "fill": nodata},
                                  exceptions=max(few(method, rotation), 2e-5 if method == "lanczos" and bands > 1 else 0))
            missing = np.isnan(actual) if nodata != nodata else actual == nodata
            assert np.array_equal(missing, valid == 0)


@pytest.mark.parametrize("method", METHODS)
def test_mask(method):
    mask = (np.random.default_rng(2).random(SIZE) > 0.1).astype("u1") * 255
    for dtype in "f4", "u1":
        for factor in 0.3, 1, 2.3:
            check(samples(dtype, 3), method, factor, 0, {"mask": mask}, {"mask": mask})


@pytest.mark.parametrize("dtype,opaque", [("u1", 255), ("u2", 65535), ("i2", 32767), ("f4", 255)])
@pytest.mark.parametrize("method", METHODS)
def test_alpha(method, dtype, opaque):
    random = np.random.default_rng(3)
    for kind in "opaque", "binary", "partial":
        alpha = np.clip(random.random(SIZE) * 2 - 0.4, 0, 1)
        alpha = alpha * 0 + 1 if kind == "opaque" else (alpha > 0) * 1.0 if kind == "binary" else alpha
        source = samples(dtype, 4)
        source[3] = np.round(alpha * opaque)
        for factor in 0.3, 1, 2.3:
            check(source, method, factor, 0, {"alpha": True}, {"alpha_band": 4}, exceptions=2e-4)


@pytest.mark.parametrize("to_type", ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"])
@pytest.mark.parametrize("method", ["near", "bilinear", "cubic", "average", "mode"])
def test_types(method, to_type):
    for dtype in "u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8":
        check(samples(dtype), method, 1.5, 10, to_type=to_type)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("lanczos", "cubicspline", "sum")])
def test_small_sources(method):
    for size in (1, 1), (2, 2):
        source = samples("f4", size=size)
        affine = Affine.translation(-1.3, -1.1) @ Affine.scale(1 / 2.3)
        expected = gdal_warp(source, affine, (20, 20), method)
        actual, _ = warp(LIBRARY, source, affine, (20, 20), method)
        assert differences(actual, expected, source).max() <= 2


def test_lanczos_at_odd_factors():
    """Where GDAL's weights are wrong (trap W016): against the formula."""
    source = samples("f8", size=(40, 40))
    affine = Affine.translation(9, 9) @ Affine.scale(3)
    actual, _ = warp(LIBRARY, source, affine, (6, 6), "lanczos", scale=(1 / 3, 1 / 3))
    at = (np.arange(6) + 0.5) * 3 + 9
    distance = (np.arange(40) + 0.5 - at[:, None]) / 3
    weights = np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    weights /= weights.sum(1, keepdims=True)
    assert np.allclose(actual[0], weights @ source[0] @ weights.T, rtol=1e-12)


@pytest.mark.parametrize("factor", [0.3, 0.37, 0.77, 0.9, 1, 1.4])
def test_lanczos_needs_half_of_its_taps(factor):
    """Of those that are in the source and in reach."""
    for part in 0.4, 0.5, 0.55:
        source = samples("f8", nodata=-9999, part=part)
        check(source, "lanczos", factor, 0, {"nodata": -9999, "dst_nodata": -9999},
              {"nodata": -9999, "avoided": -9999, "fill": -9999})


@pytest.mark.parametrize("factor,is_even", [(0.77, True), (0.9, True), (1.0173, False), (1.4, True)])
def test_lanczos_is_normalised_where_it_grows(factor, is_even):
    """Of ones: sums of weights that nearly are 1 stay as they are where it does not grow."""
    source, (affine, size, scale) = np.ones((1, 200, 200)), grid(factor, 0, (200, 200))
    found, _ = warp(LIBRARY, source, affine, size, "lanczos", scale=scale)
    expected = gdal_warp(source, affine, size, "lanczos", scale=scale)
    assert np.abs(found - expected).max() < 1e-12 and is_even == (np.ptp(found[found > 0]) < 1e-12)


@pytest.mark.parametrize("factor", [0.77, 1, 1.5, 2.3, 4])
def test_sums_are_preserved(factor):
    """Of a rotated source inside of the target. GDAL loses some of it."""
    source, side = samples("f8", size=(40, 40)), int(90 * factor)
    affine = (Affine.translation(20, 20) @ Affine.rotation(20) @ Affine.scale(1 / factor) @
              Affine.translation(-side / 2, -side / 2))
    actual, _ = warp(LIBRARY, source, affine, (side, side), "sum", scale=(min(factor, 1),) * 2)
    assert abs(actual.sum() / source.sum() - 1) < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_windows_and_threads(method):
    """A pixel is the same whatever window it is read in, and however many threads read it."""
    source = samples("f4", 2, (200, 200), nodata=-9999)
    affine, scale = Affine.translation(20, 10) @ Affine.rotation(15) @ Affine.scale(1.4), (1 / 1.4,) * 2
    settings = {"scale": scale, "nodata": -9999, "fill": -9999, "is_exact": 0}
    whole, _ = warp(LIBRARY, source, affine, (100, 90), method, threads=3, **settings)
    for window in (0, 0, 100, 90), (7, 3, 50, 60), (33, 20, 1, 1), (16, 16, 64, 32):
        x, y, width, height = window
        part, _ = warp(LIBRARY, source, affine, (100, 90), method, window=window, **settings)
        assert np.array_equal(part, whole[:, y:y + height, x:x + width], equal_nan=True)
