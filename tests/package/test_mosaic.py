"""Mosaics and grids of their own beside GDAL: which grid, which pixels, which source, in what words."""

import io
import os
import pickle
import types
import warnings

import numpy as np
import pytest
import rasterio
import rasterio.merge
from conftest import host, write_file
from mosaic_made import composed, LEFT, NODATA, scene, SIZE, tile, tiles, TOP, warped
from rasterio.transform import Affine, from_origin
from rasterio.warp import calculate_default_transform

import cogpu
from cogpu.errors import InvalidArgumentError

xr = pytest.importorskip("xarray")

MERCATOR = Affine(13, 0, 1500000, 0, -13, 5650000)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiles(tmp_path_factory.mktemp("mosaic"))


@pytest.fixture(scope="module")
def path(made):
    return made[0][0]


@pytest.fixture(scope="module")
def target(path):
    """A grid in another CRS that has all of the first tile."""
    with rasterio.open(path) as file:
        transform, width, height = calculate_default_transform(file.crs, "EPSG:3857", file.width, file.height,
                                                               *file.bounds)
    return types.SimpleNamespace(crs="EPSG:3857", transform=transform, shape=(height, width))


# ---- which source ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["first", "last", "min", "max", "median", "count"])
def test_composites(made, method, device):
    paths, placed = made
    with cogpu.open_mosaic(paths, composite=method) as mosaic:
        found = host(mosaic.read(device=device))[0]
        mask = host(mosaic.read_mask(device=device))[0]
    np.testing.assert_array_equal(found, composed(placed, method))
    if method != "count":
        np.testing.assert_array_equal(mask == 255, (placed != NODATA).any(0))


def test_mean(made):
    paths, placed = made
    with cogpu.open_mosaic(paths, composite="mean", dtype="float64") as mosaic:
        found = np.asarray(mosaic.read(masked=True))[0]
    np.testing.assert_allclose(found, np.ma.masked_equal(placed, NODATA).mean(0).filled(np.nan))


@pytest.mark.parametrize("method", ["first", "last", "min", "max"])
def test_as_rasterio_merges(made, method):
    paths, _ = made
    merged, transform = rasterio.merge.merge(paths, method=method)
    with cogpu.open_mosaic(paths, composite=method) as mosaic:
        np.testing.assert_array_equal(mosaic.read(), merged)
        assert mosaic.transform == tuple(transform)[:6]
        assert mosaic.crs == "EPSG:32633" and mosaic.nodata == NODATA and mosaic.dtype == "int16"


def test_priority(made):
    paths, placed = made
    with cogpu.open_mosaic(paths, priority=[1, 3, 2]) as mosaic:
        np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed[[1, 2, 0]], "first"))
        assert [source.path for source in mosaic.sources] == [paths[1], paths[2], paths[0]]
    with cogpu.open_mosaic([cogpu.Source(one, priority=number) for number, one in enumerate(paths)]) as mosaic:
        np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed[::-1], "first"))
    with pytest.raises(InvalidArgumentError, match="priority: 1 numbers for 3 sources"):
        cogpu.open_mosaic(paths, priority=[1])


def test_windows_are_parts(made):
    with cogpu.open_mosaic(made[0]) as mosaic:
        whole = np.asarray(mosaic.read())
        for window in ((0, 0, 7, 9), (100, 90, 160, 171), (259, 249, 260, 250)):
            row0, column0, row1, column1 = window
            array = mosaic.read(window=window)
            np.testing.assert_array_equal(array, whole[:, row0:row1, column0:column1])
        assert mosaic.read(window=(0, 0, 7, 9)).result["sources"] == 1
        assert mosaic.read().result["sources"] == 3 and mosaic.read().result["bad_sources"] == 0


@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_a_grid_without_sources(tmp_path, device):
    tile(tmp_path, "plain.tif", 0, 0, nodata=None)
    with cogpu.open_mosaic(tmp_path / "plain.tif", bbox=(0, 0, 100, 100), resolution=10) as mosaic:
        assert mosaic.shape == (1, 10, 10)
        for pixels in (mosaic.read(device=device), mosaic.read_mask(device=device)):
            assert not host(pixels).any()


def test_masked_pixels_are_left_out_in_every_window(tmp_path):
    pixels = np.arange(1, 401, dtype="u2").reshape(1, 20, 20)
    mask = np.random.default_rng(1).random((20, 20)) > 0.4
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        write_file(tmp_path / "other.tif", pixels, transform=Affine(10, 0, 100, 0, -10, 0))
        write_file(tmp_path / "masked.tif", pixels, transform=Affine(10, 0, 0, 0, -10, 0))
        with rasterio.open(tmp_path / "masked.tif", "r+") as file:
            file.write_mask(mask)
    with cogpu.open_mosaic([tmp_path / "masked.tif", tmp_path / "other.tif"]) as mosaic:
        whole = np.asarray(mosaic.read())[0]
        np.testing.assert_array_equal(whole[:, :10], np.where(mask, pixels[0], 0)[:, :10])
        np.testing.assert_array_equal(np.asarray(mosaic.read(window=(0, 0, 20, 9)))[0], whole[:, :9])


@pytest.mark.parametrize("method", ["nearest", "bilinear", "cubic", "lanczos", "average", "mode"])
def test_bands_are_the_same_alone(tmp_path, method, device):
    """Nodata is elsewhere in each band: kernels ask for a pixel that is valid in any band."""
    path, pixels = tmp_path / "bands.tif", np.stack([scene((90, 80), seed) for seed in range(3)])
    write_file(path, pixels, transform=from_origin(LEFT, TOP, SIZE, SIZE), nodata=NODATA)
    with cogpu.open_mosaic([str(path)], crs="EPSG:3857", resampling=method) as mosaic:
        whole = host(mosaic.read(device=device))
        for bands in [1], [3], [2, 1]:
            alone = host(mosaic.read(bands=bands, device=device))
            np.testing.assert_array_equal(alone, whole[np.array(bands) - 1])
            floats = host(mosaic.read(bands=bands, device=device, dtype="float64"))
            np.testing.assert_array_equal(floats, alone)


def test_decoding_into_host_memory(made):
    """Chunks of the mosaic are composed in device memory."""
    with cogpu.open_mosaic(made[0], composite="mean", resolution=7) as mosaic:
        for keywords in {}, {"masked": True}, {"dtype": "float64"}, {"window": (3, 4, 200, 99)}:
            found = mosaic.read(decode="emu", **keywords)
            assert found.device == "cpu" and found.result["device_blocks"] > 0
            np.testing.assert_array_equal(found, mosaic.read(**keywords))
        np.testing.assert_array_equal(mosaic.read_mask(decode="emu"), mosaic.read_mask())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_samples_are_copied(tmp_path, dtype):
    random = np.random.default_rng(1)
    pixels = (random.normal(size=(2, 20, 20)) + 1j * random.normal(size=(2, 20, 20))).astype(dtype)
    for name, left in (("a.tif", 0), ("b.tif", 100)):
        write_file(tmp_path / name, pixels, transform=Affine(10, 0, left, 0, -10, 0))
    for nodata in (None, 0):
        with cogpu.open_mosaic([tmp_path / "a.tif", tmp_path / "b.tif"], nodata=nodata) as mosaic:
            np.testing.assert_array_equal(np.asarray(mosaic.read())[:, :, :20], pixels)
            np.testing.assert_array_equal(np.asarray(mosaic.read())[:, :, 20:], pixels[:, :, 10:])
    with pytest.raises(cogpu.UnsupportedError, match="complex"):
        cogpu.open_mosaic([tmp_path / "a.tif", tmp_path / "b.tif"], composite="mean")


def test_sources_of_all_kinds(made, tmp_path):
    paths, placed = made
    fsspec = pytest.importorskip("fsspec")
    with open(paths[0], "rb") as file:
        content = file.read()
    with cogpu.open(paths[1]) as opened:
        sources = [memoryview(content), opened, cogpu.Stored(fsspec.filesystem("file"), paths[2])]
        with cogpu.open_mosaic(sources) as mosaic:
            np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed, "first"))
            assert [source.path for source in mosaic.sources] == [None, None, None]
        with cogpu.open_mosaic([io.BytesIO(content), {"path": paths[1]}, f"file://{paths[2]}"]) as mosaic:
            opened.close()
            np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed, "first"))


def test_a_file_may_be_closed_before_the_mosaic(made):
    with cogpu.open(made[0][0]) as opened:
        mosaic = cogpu.open_mosaic(opened)
    np.testing.assert_array_equal(np.asarray(mosaic.read())[0], made[1][0][:150, :150])


def test_errors_of_an_object_are_raised(made):
    class Broken(io.BytesIO):
        is_broken = False

        def read(self, *size):
            if self.is_broken:
                raise RuntimeError("broken")
            return super().read(*size)

    with open(made[0][0], "rb") as file:
        source = Broken(file.read())
    with cogpu.open_mosaic([source]) as mosaic:
        source.is_broken = True
        with pytest.raises(RuntimeError, match="broken"):
            mosaic.read()


# ---- settings of a source --------------------------------------------------------------------------------------------


def test_bands_of_sources(tmp_path):
    pixels = np.stack([scene((60, 80), seed) for seed in range(3)])
    path = write_file(tmp_path / "bands.tif", pixels, nodata=NODATA)
    with cogpu.open_mosaic(cogpu.Source(path, bands=[3, 1])) as mosaic:
        np.testing.assert_array_equal(mosaic.read(), pixels[[2, 0]])
    with cogpu.open_mosaic({"path": path, "bands": 2}) as mosaic:
        np.testing.assert_array_equal(mosaic.read(), pixels[1:2])


def test_nodata_of_sources(made):
    paths, placed = made
    with cogpu.open_mosaic([cogpu.Source(paths[0], nodata="none"), paths[1]]) as mosaic:
        found = np.asarray(mosaic.read())[0]
    pixels = placed[0, :150, :150]  # its -999 are pixels as any other, and must not become nodata: as GDAL does
    np.testing.assert_array_equal(found[:150, :150], np.where(pixels == NODATA, NODATA - 1, pixels))
    with cogpu.open_mosaic(paths[:1], nodata=7) as mosaic:
        assert mosaic.nodata == 7
        found = np.asarray(mosaic.read())[0]
        np.testing.assert_array_equal(found == 7, placed[0, :150, :150] == NODATA)
    with cogpu.open_mosaic(paths, dtype="float32", nodata=float("nan")) as mosaic:
        assert np.isnan(mosaic.nodata) and mosaic.dtype == "float32"
        assert np.isnan(np.asarray(mosaic.read())[0, -1, 0])


def test_bad_sources(made, tmp_path):
    paths, placed = made
    (tmp_path / "bad.tif").write_bytes(b"II*\0")
    bad = [str(tmp_path / "gone.tif"), str(tmp_path / "bad.tif")]
    for path in bad:
        with pytest.raises(cogpu.Error, match=os.path.basename(path)):
            cogpu.open_mosaic([*paths, path])
    with pytest.raises(FileNotFoundError):
        cogpu.open_mosaic([*paths, bad[0]])
    with pytest.warns(cogpu.SourceWarning, match="2 of 5 sources"):
        mosaic = cogpu.open_mosaic([bad[0], *paths, bad[1]], skip_bad_sources=True)
    np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed, "first"))
    left_out = {source.path: source.error for source in mosaic.sources if source.error}
    assert set(left_out) == set(bad) and all(isinstance(error, cogpu.Error) for error in left_out.values())


def test_bad_sources_that_python_opens(made):
    fsspec = pytest.importorskip("fsspec")
    gone = cogpu.Stored(fsspec.filesystem("file"), "/nowhere/gone.tif")
    with pytest.raises(FileNotFoundError):
        cogpu.open_mosaic([made[0][0], gone])
    with pytest.warns(cogpu.SourceWarning, match="1 of 2 sources"):
        mosaic = cogpu.open_mosaic([made[0][0], gone], skip_bad_sources=True)
    assert [source.path for source in mosaic.sources if source.error] == ["/nowhere/gone.tif"]


# ---- which grid ------------------------------------------------------------------------------------------------------


def test_the_suggested_grid(path, target):
    with cogpu.open_mosaic(path, crs=3857) as mosaic:
        assert mosaic.shape[1:] == target.shape
        np.testing.assert_allclose(mosaic.transform, tuple(target.transform)[:6], rtol=1e-12)
        assert mosaic.crs == "EPSG:3857"
        info, = mosaic.sources
        assert info.is_reprojected and not info.is_copied and info.error is None and info.path == path


def test_words_of_the_grid(path):
    with cogpu.open_mosaic(path, crs="EPSG:3857", resolution=(20, 30), align=True) as mosaic:
        a, b, c, d, e, f = mosaic.transform
        assert (a, b, d, e) == (20, 0, 0, -30) and c % 20 == 0 and f % 30 == 0
    box = (LEFT + 100, TOP - 500, LEFT + 400, TOP - 200)
    with cogpu.open_mosaic(path, bbox=box, resolution=5) as mosaic:
        assert mosaic.bounds == box and mosaic.shape == (1, 60, 60)
    with cogpu.open_mosaic(path, bbox=box, shape=(30, 50)) as mosaic:
        assert mosaic.bounds == box and mosaic.shape == (1, 30, 50)
    with cogpu.open_mosaic(path, bbox=box, shape=(None, 50)) as mosaic:
        assert mosaic.shape == (1, 50, 50)
    with cogpu.open_mosaic(path, crs=3857, bbox=box, bbox_crs=32633, resolution=10) as mosaic:
        left, bottom, right, top = rasterio.warp.transform_bounds("EPSG:32633", "EPSG:3857", *box)
        np.testing.assert_allclose(mosaic.bounds, (left, bottom, right, top), atol=10.1)
    with cogpu.open_mosaic(path, transform=MERCATOR, shape=(40, 50), crs=3857) as mosaic:
        assert mosaic.transform == tuple(MERCATOR)[:6] and mosaic.shape == (1, 40, 50)


def likes(path, target, folder):
    """The same grid in all the forms that `like` takes."""
    pixels = np.zeros((1, *target.shape), "uint8")
    write_file(folder / "like.tif", pixels, crs=target.crs, transform=target.transform)
    array = cogpu.open_geotiff(folder / "like.tif")
    yield "path", str(folder / "like.tif")
    yield "File", cogpu.open(folder / "like.tif")
    yield "rasterio", rasterio.open(folder / "like.tif")
    yield "array", array
    yield "plane", array.isel(band=0).drop_vars("band")
    yield "Dataset", xr.Dataset({"zero": ((), 0), "a": array})
    yield "coordinates", xr.Dataset(coords=array.coords)
    yield "GeoBox", types.SimpleNamespace(crs=rasterio.crs.CRS.from_epsg(3857), affine=target.transform,
                                          shape=target.shape)
    yield "profile", {"crs": "EPSG:3857", "transform": target.transform, "width": target.shape[1],
                      "height": target.shape[0]}


def test_like(path, target, tmp_path):
    for name, like in likes(path, target, tmp_path):
        with cogpu.open_mosaic(path, like=like) as mosaic:
            assert mosaic.shape[1:] == target.shape, name
            np.testing.assert_allclose(mosaic.transform, tuple(target.transform)[:6], rtol=1e-9, err_msg=name)
            assert mosaic.crs == "EPSG:3857", name


@pytest.mark.parametrize("words, error, message", [
    ({"like": "{path}", "crs": 3857}, InvalidArgumentError, "like: it is the whole grid; leave out crs"),
    ({"like": "{path}", "resolution": 5, "align": True}, InvalidArgumentError, "leave out resolution, align"),
    ({"like": 5}, TypeError, "like must be"),
    ({"transform": MERCATOR}, InvalidArgumentError, "needs shape"),
    ({"transform": (1, 2), "shape": (1, 1)}, InvalidArgumentError, "six finite numbers"),
    ({"resolution": 0}, InvalidArgumentError, "size 0"), ({"resolution": (1, 2, 3)}, InvalidArgumentError, "pair"),
    ({"bbox": (1, 2, 1, 4), "resolution": 1}, InvalidArgumentError, "left < right"),
    ({"shape": (0, None)}, InvalidArgumentError, "neither height nor width"), ({"shape": 5}, InvalidArgumentError,
                                                                                "height, width"),
    ({"align": True}, InvalidArgumentError, "align=True needs resolution"), ({"align": 1}, TypeError, "align"),
    ({"crs": "nonsense"}, cogpu.Error, "nonsense"), ({"resampling": "cubik"}, InvalidArgumentError, "cubik"),
    ({"composite": "frist"}, InvalidArgumentError, "frist"), ({"dtype": "float33"}, TypeError, "float33"),
    ({"nodata": "x"}, InvalidArgumentError, "nodata"), ({"vrt_sources": "all"}, InvalidArgumentError, "below"),
    ({"dst_width": 5}, TypeError, r"shape=\(height, width\)"), ({"resolutoin": 5}, TypeError, "resolution")])
def test_words_that_are_refused(path, words, error, message):
    words = {name: path if value == "{path}" else value for name, value in words.items()}
    with pytest.raises(error, match=message):
        cogpu.open_mosaic(path, **words)


def test_names_of_others(path, target):
    with cogpu.open_mosaic(path, dst_crs=3857, res=20, method="last", tolerance=0.0) as mosaic:
        assert mosaic.crs == "EPSG:3857" and mosaic.transform.a == 20
    with pytest.raises(InvalidArgumentError, match="there are none"):
        cogpu.open_mosaic([])
    with pytest.raises(TypeError, match="Source.*no keyword `nodat`; similar"):
        cogpu.open_mosaic([{"path": path, "nodat": 5}])


# ---- which pixels ----------------------------------------------------------------------------------------------------


def test_nearest_as_gdal(path, target, device):
    expected = warped(path, target.crs, target.transform, target.shape)
    with cogpu.open_mosaic(path, like=target, max_error=0) as mosaic:
        np.testing.assert_array_equal(host(mosaic.read(device=device)), expected)


@pytest.mark.parametrize("resampling", ["bilinear", "cubic", "cubic_spline", "lanczos", "average", "mode", "max",
                                        "min", "med", "q1", "q3", "rms"])
def test_resampling_as_gdal(path, target, resampling):
    expected = warped(path, target.crs, target.transform, target.shape, resampling)[0].astype(float)
    with cogpu.open_mosaic(path, like=target, max_error=0, resampling=rasterio.warp.Resampling[resampling]) as mosaic:
        found = np.asarray(mosaic.read())[0].astype(float)
    same = abs(found - expected) <= 1
    assert same.mean() > 0.999, (~same).sum()


def test_every_position_is_exact_or_nearly(path, target):
    with cogpu.open_mosaic(path, like=target, max_error=-1) as exact, cogpu.open_mosaic(path, like=target) as near:
        same = np.asarray(exact.read()) == np.asarray(near.read())
    assert same.mean() > 0.85


def test_overviews_are_used(tmp_path):
    pixels = scene((512, 512))[None]
    path = write_file(tmp_path / "levels.tif", pixels, overviews=[2, 4], nodata=NODATA)
    with cogpu.open_mosaic(path, resolution=40) as mosaic, cogpu.open(path) as file:
        np.testing.assert_array_equal(mosaic.read(), file.read(level=2))
        few = mosaic.read().result["bytes_read"]
    with cogpu.open_mosaic(path, resolution=40, full_resolution=True) as mosaic:
        assert mosaic.read().result["bytes_read"] > 4 * few


def test_several_zones(tmp_path):
    """Scenes of two UTM zones on a grid in degrees: the first wins, the second fills."""
    scenes = {}
    for zone, left in ((32, 740000), (33, 280000)):
        scenes[zone] = write_file(tmp_path / f"{zone}.tif", scene((200, 200), zone)[None], crs=f"EPSG:326{zone}",
                                  transform=from_origin(left, 5000000, 30, 30), nodata=NODATA)
    with cogpu.open_mosaic(scenes.values(), crs=4326, max_error=0) as mosaic:
        transform, shape = Affine(*mosaic.transform), mosaic.shape[1:]
        placed = np.concatenate([warped(path, "EPSG:4326", transform, shape) for path in scenes.values()])
        np.testing.assert_array_equal(np.asarray(mosaic.read())[0], composed(placed, "first"))
        assert all(info.is_reprojected for info in mosaic.sources)


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_pickled(made, monkeypatch, tmp_path):
    paths, placed = made
    monkeypatch.chdir(os.path.dirname(paths[0]))
    mosaic = cogpu.open_mosaic([os.path.basename(paths[0]), cogpu.open(paths[1]), cogpu.Source(paths[2])], crs=32633)
    content = pickle.dumps(mosaic)
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(content)
    np.testing.assert_array_equal(np.asarray(again.read())[0], composed(placed, "first"))
    assert again.transform == mosaic.transform
    with pytest.raises(TypeError, match="can be pickled"):
        pickle.dumps(cogpu.open_mosaic([memoryview(open(paths[0], "rb").read())]))


def test_files_are_files(made):
    paths, _ = made
    with cogpu.open_mosaic(paths) as mosaic:
        assert isinstance(mosaic, cogpu.File) and "1 x 260 x 250 int16" in repr(mosaic)
        assert mosaic.name == "" and mosaic.images == 1 and len(mosaic.sources) == 3
        first = mosaic.sources[0]
        assert not first.is_reprojected
        assert first.window[:2] == (0, 0) and all(150 <= side < 160 for side in first.window[2:])  # never too small
        part = cogpu.read_many([(mosaic, {"window": (0, 0, 5, 5)}), (cogpu.open(paths[0]), {"window": (0, 0, 5, 5)})])
        np.testing.assert_array_equal(*part)
    assert cogpu.open(paths[0]).sources == []


# ---- open_geotiff ----------------------------------------------------------------------------------------------------


def test_open_geotiff_of_a_list(made):
    paths, placed = made
    array = cogpu.open_geotiff(paths)
    assert array.dims == ("band", "y", "x") and array.attrs["_FillValue"] == NODATA
    np.testing.assert_array_equal(array[0], composed(placed, "first"))
    np.testing.assert_allclose(array.x[:2], [LEFT + SIZE / 2, LEFT + 1.5 * SIZE])
    np.testing.assert_allclose(array.y[:2], [TOP - SIZE / 2, TOP - 1.5 * SIZE])
    assert "WGS 84 / UTM zone 33N" in array.spatial_ref.attrs["crs_wkt"]
    part = cogpu.open_geotiff(paths, bbox=(LEFT + 95, TOP - 305, LEFT + 205, TOP - 101), masked=True)
    window = cogpu.open_geotiff(paths, window=(10, 9, 31, 21), masked=True)
    xr.testing.assert_identical(part, window)
    np.testing.assert_array_equal(part.fillna(NODATA)[0], composed(placed, "first")[10:31, 9:21])


def test_open_geotiff_as_rioxarray(path, device):
    rioxarray = pytest.importorskip("rioxarray")
    theirs = rioxarray.open_rasterio(path).rio.reproject("EPSG:3857", resolution=15, tolerance=0)
    gpu = "emu" if device == "emu" else device == "cuda"
    ours = cogpu.open_geotiff(path, like=theirs, max_error=0, gpu=gpu)
    np.testing.assert_array_equal(host(ours.data), theirs)
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-12)
    np.testing.assert_allclose(ours.y, theirs.y, rtol=1e-12)
    assert ours.rio.crs == theirs.rio.crs and ours.rio.nodata == theirs.rio.nodata == NODATA
    assert ours.name == "tile0"


def test_systems_do_not_mix(path):
    """What is known of one CRS is not told of another."""
    names = [cogpu.open_geotiff(path, crs=crs).spatial_ref.attrs["crs_wkt"] for crs in (3857, 4326, 3035)]
    assert len(set(names)) == 3


def test_floats_are_not_rounded(path, target):
    floats = cogpu.open_geotiff(path, like=target, resampling="bilinear", dtype="float32")
    whole = cogpu.open_geotiff(path, like=target, resampling="bilinear")
    assert floats.dtype == "float32" and whole.dtype == "int16"
    assert (floats % 1 != 0).any() and abs(floats - whole).max() <= 0.5


@pytest.mark.parametrize("words, message", [
    ({"composite": "last"}, "composite: it is for several sources"), ({"nodata": 5}, "nodata: it is for"),
    ({"crs": 3857, "out_shape": (5, 5)}, "give shape"), ({"dtype": "uint8", "crs": 3857}, "dtype")])
def test_words_of_open_geotiff_that_are_refused(path, words, message):
    with pytest.raises(InvalidArgumentError, match=message):
        cogpu.open_geotiff(path, **words)


def test_a_source_that_changes_is_read_anew(tmp_path):
    first = tile(tmp_path, "a.tif", 0, 0, 1)
    np.testing.assert_array_equal(cogpu.open_geotiff([tmp_path / "a.tif"])[0], first)
    second = tile(tmp_path, "a.tif", 0, 0, 2)
    np.testing.assert_array_equal(cogpu.open_geotiff([tmp_path / "a.tif"])[0], second)


def test_engine(made, target):
    from cogpu.engine import Engine

    paths, placed = made
    dataset = xr.open_dataset(paths, engine=Engine)
    np.testing.assert_array_equal(dataset.band_data[0].fillna(NODATA), composed(placed, "first"))
    grid = xr.open_dataset(paths[0], engine=Engine, like=target, mask_and_scale=False, max_error=0)
    np.testing.assert_array_equal(grid.band_data, warped(paths[0], target.crs, target.transform, target.shape))
    assert grid.encoding["source"] == paths[0]
    with pytest.raises(InvalidArgumentError, match="bbox"):
        xr.open_dataset(paths[0], engine=Engine, bbox=(1, 2, 3, 4))


def test_written_again(made, tmp_path):
    array = cogpu.open_geotiff(made[0])
    cogpu.to_geotiff(array, tmp_path / "all.tif")
    with rasterio.open(tmp_path / "all.tif") as file:
        np.testing.assert_array_equal(file.read(), array)
        assert file.crs.to_epsg() == 32633 and file.nodata == NODATA


def test_no_warnings_without_reason(made):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cogpu.open_geotiff(made[0], skip_bad_sources=True)
