"""Windows in rasterio's forms, windows that reach beyond a file, and coordinates of rotated grids, beside rasterio and
rioxarray."""

import numpy as np
import pytest
import rasterio
import rioxarray
import xarray
from conftest import host, pixels_of, write_file
from rasterio.windows import Window

import cogpu
from cogpu import georef

GPUS = {"cpu": False, "emu": "emu", "cuda": True}
FORMS = [Window(20, 10, 30, 40), Window(20.0, 10.0000000001, 30, 40), ((10, 50), (20, 50)), [[10, 50], [20, 50]],
         (slice(10, 50), slice(20, 50)), (10, 20, 50, 50), ((10, -100), (20, -150)), (slice(10, -100), slice(20, -150))]
BEYOND = [(-5, -7, 30, 40), (100, 150, 180, 230), (-10, -10, 170, 220), (10, 20, 30, 300), (-50, 0, -10, 20),
          (200, 300, 210, 310), (10, 20, 30, 40)]


@pytest.mark.parametrize("window", FORMS, ids=range(len(FORMS)))
def test_windows_of_rasterio(path, pixels, window, device):
    part = pixels[:, 10:50, 20:50]
    with cogpu.open(path) as file:
        np.testing.assert_array_equal(host(file.read(window, device=device)), part)
        np.testing.assert_array_equal(file.read_mask(window), np.where(part == 7, 0, 255))
        np.testing.assert_array_equal(cogpu.read_many([(file, {"window": window})])[0], part)
    for chunks in (None, 16):
        array = cogpu.open_geotiff(path, window=window, chunks=chunks)
        np.testing.assert_array_equal(array.values, part)
        assert array.x[0] == 400000 + 20.5 * 10 and array.y[0] == 5000000 - 10.5 * 10


def test_open_ends_of_windows(path, pixels):
    for window in (((None, 50), (20, None)), (slice(50), slice(20, None))):
        np.testing.assert_array_equal(cogpu.open_geotiff(path, window=window).values, pixels[:, :50, 20:])


@pytest.mark.parametrize("window", [Window(0.5, 0, 10, 10), Window(0, 0, 10.4, 10), (slice(0, 10, 2), slice(0, 10)),
                                    "ab", b"abcd", ((0, 10), 5), ((0, 10, 2), (0, 10)), 7, (0, 0, 10), ((5, 5), (0, 9)),
                                    (10, 10, 5, 20), (0, 0, 151, 10), (-1, 0, 5, 5), Window(-1, 0, 5, 5),
                                    ((0, 1.5), (0, 9)), (0, True, 5, 5)])
def test_windows_that_are_refused(path, window):
    for call in (cogpu.open(path).read, lambda window: cogpu.open_geotiff(path, window=window)):
        with pytest.raises((cogpu.InvalidArgumentError, TypeError), match="window"):
            call(window)


# ---- boundless -------------------------------------------------------------------------------------------------------


def by_rasterio(path, bounds, **how):
    row0, column0, row1, column1 = bounds
    with rasterio.open(path) as file:
        return file.read(window=Window(column0, row0, column1 - column0, row1 - row0), boundless=True, **how)


@pytest.mark.parametrize("bounds", BEYOND)
@pytest.mark.parametrize("nodata", [7, None])
def test_boundless(bounds, nodata, pixels, make_file, device):
    path = make_file(pixels, nodata=nodata)
    expected = by_rasterio(path, bounds)
    with cogpu.open(path) as file:
        np.testing.assert_array_equal(host(file.read(bounds, boundless=True, device=device)), expected)
        np.testing.assert_array_equal(host(file.read(bounds, bands=[3, 1], boundless=True, device=device)),
                                      expected[[2, 0]])
        filled = by_rasterio(path, bounds, fill_value=99) if nodata is None else None
        if filled is not None:
            np.testing.assert_array_equal(host(file.read(bounds, boundless=True, fill_value=99, device=device)), filled)
        mask = host(file.read_mask(bounds, boundless=True, device=device))
        rows, columns = np.mgrid[bounds[0]:bounds[2], bounds[1]:bounds[3]]
        inside = (rows >= 0) & (rows < 150) & (columns >= 0) & (columns < 200)
        valid = inside & (expected != 7 if nodata else expected == expected)
        np.testing.assert_array_equal(mask, np.where(valid, 255, 0))
        masked = host(file.read(bounds, boundless=True, masked=True, device=device))
        np.testing.assert_array_equal(masked, np.where(mask == 0, np.nan, expected).astype("float32"))
        many = cogpu.read_many([(file, {"window": (0, 0, 5, 5)}), (file, {"window": bounds, "boundless": True})])
        np.testing.assert_array_equal(many[1], expected)
    for chunks in (None, 32):
        array = cogpu.open_geotiff(path, window=bounds, boundless=True, chunks=chunks, gpu=GPUS[device])
        np.testing.assert_array_equal(host(array.compute().data), expected)
        array = cogpu.open_geotiff(path, window=bounds, boundless=True, masked=True, chunks=chunks, gpu=GPUS[device])
        np.testing.assert_array_equal(host(array.compute().data), masked)


def test_boundless_coordinates_go_on(path, tmp_path):
    bounds = (-5, -7, 30, 40)
    array = cogpu.open_geotiff(path, window=bounds, boundless=True)
    with rasterio.open(path) as file:
        transform = rasterio.windows.transform(Window(-7, -5, 47, 35), file.transform)
    assert array.rio.transform() == transform
    np.testing.assert_array_equal(array.x, 400000 + (np.arange(-7, 40) + .5) * 10)
    cogpu.to_geotiff(array, tmp_path / "wide.tif")
    with rasterio.open(tmp_path / "wide.tif") as file:
        assert file.transform == transform
        np.testing.assert_array_equal(file.read(), by_rasterio(path, bounds))


def test_boundless_bbox(path, pixels):
    array = cogpu.open_geotiff(path, bbox=(399950, 4999900, 400050, 5000030), boundless=True, masked=True)
    assert array.shape == (3, 13, 10) and array.x[0] == 399955 and array.y[0] == 5000025
    assert array[:, :3].isnull().all() and array[:, :, :5].isnull().all()
    np.testing.assert_array_equal(array[:, 3:, 5:].fillna(7), pixels[:, :10, :5])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64", "uint64"])
def test_boundless_of_types(dtype, make_file, device):
    made = pixels_of((2, 70, 80), dtype)
    with cogpu.open(make_file(made)) as file:
        array = host(file.read((-1, -1, 71, 81), boundless=True, device=device))
        np.testing.assert_array_equal(array, np.pad(made, ((0, 0), (1, 1), (1, 1))))
        out = np.empty((2, 72, 82), dtype)
        file.read((-1, -1, 71, 81), boundless=True, out=out, device=device if device == "emu" else None)
        np.testing.assert_array_equal(out, array)


def test_boundless_scaled_without_a_mask(make_file):
    path = make_file(pixels_of((2, 70, 80), "int16"), nodata=3)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (2, 3), (1, 0)
    with cogpu.open(path) as file:
        array = np.asarray(file.read((-1, 0, 70, 80), boundless=True, unscale=True))
        assert (array[0, 0] == 7).all() and (array[1, 0] == 9).all()
        np.testing.assert_array_equal(array[:, 1:], file.read(unscale=True))


@pytest.mark.parametrize("how, match", [({"fill_value": 1e9}, "fill_value"),
                                        ({"fill_value": float("nan")}, "fill_value"),
                                        ({"fill_value": 1.5}, "fill_value"), ({"fill_value": "0"}, "fill_value"),
                                        ({"boundless": 1}, "boundless")])
def test_boundless_that_is_refused(path, how, match):
    how = {"boundless": True, **how}
    for call in (cogpu.open(path).read, lambda **how: cogpu.open_geotiff(path, **how)):
        with pytest.raises((cogpu.InvalidArgumentError, TypeError), match=match):
            call(window=(-1, 0, 5, 5), **how)


def test_boundless_windows_have_a_limit(path):
    with pytest.raises(cogpu.LimitExceededError, match="max_pixels"):
        cogpu.open_geotiff(path, window=(-10**6, -10**6, 10**6, 10**6), boundless=True)


# ---- rotated grids ---------------------------------------------------------------------------------------------------


@pytest.fixture
def rotated(make_file):
    transform = rasterio.Affine(10.0, 3.0, 400000.0, 2.5, -9.0, 5000000.0)
    return make_file(pixels_of((1, 70, 80), "uint8"), transform=transform)


def test_rotated_grids_have_two_dimensional_coordinates(rotated):
    expected = rioxarray.open_rasterio(rotated)
    assert {"x", "y", "xc", "yc"} & set(cogpu.open_geotiff(rotated).coords) == set()
    dataset = xarray.open_dataset(rotated, engine="cogpu", parse_coordinates="2d")
    for array in (cogpu.open_geotiff(rotated, parse_coordinates="2d"), dataset["band_data"],
                  cogpu.open_geotiff(rotated, parse_coordinates="2d", chunks=32)):
        assert set(array.coords) == set(expected.coords)
        for name in ("xc", "yc"):
            assert array[name].dims == expected[name].dims == ("y", "x")
            np.testing.assert_array_equal(array[name].values, expected[name].values)
    part = cogpu.open_geotiff(rotated, parse_coordinates="2d", window=(5, 6, 20, 30))
    for name in ("xc", "yc"):
        np.testing.assert_array_equal(part[name].values, expected[name].values[5:20, 6:30])


def test_two_dimensional_coordinates_say_where_a_slice_lies(rotated, tmp_path):
    array = cogpu.open_geotiff(rotated, parse_coordinates="2d")
    with rasterio.open(rotated) as file:
        assert georef.of_array(array)["transform"] == file.transform.to_gdal()
        for index, moved in (((slice(None), slice(5, 20), slice(6, 30)), rasterio.Affine.translation(6, 5)),
                             ((slice(None), slice(None, None, 2), slice(None, None, 4)), rasterio.Affine.scale(4, 2))):
            expected = (file.transform @ moved).to_gdal() if hasattr(file.transform, "__matmul__") else \
                (file.transform * moved).to_gdal()
            cogpu.to_geotiff(array[index], tmp_path / "slice.tif")
            with rasterio.open(tmp_path / "slice.tif") as written:
                got = written.transform.to_gdal()
            # The corner of every other pixel is that of the first; its centre is not.
            if moved.a != 1:
                shift = np.array([(moved.a - 1) / 2, (moved.e - 1) / 2])
                expected = (expected[0] - shift @ expected_step(file)[0], *expected[1:3],
                            expected[3] - shift @ expected_step(file)[1], *expected[4:])
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def expected_step(file):
    return np.array([[file.transform.a, file.transform.b], [file.transform.d, file.transform.e]])


def test_other_grids_keep_their_coordinates(path):
    one, other = cogpu.open_geotiff(path), cogpu.open_geotiff(path, parse_coordinates="2d")
    assert one.identical(other)
    with pytest.raises(TypeError, match="parse_coordinates"):
        cogpu.open_geotiff(path, parse_coordinates="3d")


def test_two_dimensional_coordinates_have_a_limit(tmp_path):
    path = write_file(tmp_path / "wide.tif", np.zeros((1, 16, 16), "u1"), sparse_ok=True,
                      transform=rasterio.Affine(10, 1, 0, 1, -10, 0))
    from cogpu import lazy
    file = cogpu.open(path)
    pixels = lazy.pixels_of(file)
    with pytest.raises(cogpu.LimitExceededError, match="parse_coordinates"):
        georef.describe(file, pixels, (0, 0, 1 << 14, 1 << 14), "2d")
