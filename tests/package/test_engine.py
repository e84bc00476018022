"""The engine of xarray: lazy, picklable, safe for threads, indexable, and Dask's chunks are what the device gives."""

import concurrent.futures
import io
import os
import pickle
import types

import numpy as np
import pytest
import rasterio.shutil

import cogpu
from cogpu import lazy
from cogpu.errors import InvalidArgumentError

xr = pytest.importorskip("xarray")

from test_open_geotiff import Counting  # noqa: E402

from cogpu.engine import Engine  # noqa: E402

WIDTH, HEIGHT = 90, 70
PIXELS = np.arange(3 * HEIGHT * WIDTH, dtype="int32").reshape(3, HEIGHT, WIDTH)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("engine") / "scene.tif")
    with rasterio.open(path, "w", driver="GTiff", width=WIDTH, height=HEIGHT, count=3, dtype="int32", tiled=True,
                       blockxsize=32, blockysize=16, compress="deflate", crs="EPSG:32633", nodata=5,
                       transform=rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)) as file:
        file.write(PIXELS)
        file.scales, file.offsets = (2.0, 2.0, 2.0), (1.0, 1.0, 1.0)
        file.build_overviews([2, 4], rasterio.enums.Resampling.nearest)
    return path


def opened(path, **keywords):
    return xr.open_dataset(path, engine=Engine, **keywords)


def raw(path, **keywords):
    return opened(path, mask_and_scale=False, **keywords)["band_data"]


def test_names_and_masking(path):
    dataset = opened(path)
    assert set(dataset.variables) == {"band_data", "band", "y", "x", "spatial_ref"}
    assert set(dataset.coords) == {"band", "y", "x", "spatial_ref"}
    assert np.array_equal(dataset.band_data.values, np.where(PIXELS == 5, np.nan, PIXELS * 2.0 + 1), equal_nan=True)
    assert dataset.band_data.encoding["_FillValue"] == 5 and dataset.band_data.encoding["scale_factor"] == 2
    stored = raw(path)
    assert stored.dtype == "int32" and stored.attrs["_FillValue"] == 5 and np.array_equal(stored.values, PIXELS)
    assert np.isnan(opened(path, mask_and_scale=False, masked=True).band_data.values).sum() == 1
    assert opened(path, decode_cf=False).band_data.dtype == "int32"


KEYS = {"element": (0, 1, 2), "negative numbers": (-1, -2, slice(-5, None)), "steps": (slice(None), 5, slice(3, 60, 7)),
        "backwards": (slice(2, None, -1), slice(None, None, -3), slice(80, 2, -5)),
        "outer": ([0, 2], [3, 1, 60], [5, 5]), "empty": (slice(0, 0), slice(5, 5), slice(None)),
        "empty backwards": (slice(None), slice(10, 3), slice(3, 10, -1)),
        "no rows": (slice(None), [], slice(None)), "one list": (slice(1, None), slice(None), [89, 0, 44])}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_indexing(path, key):
    expected = xr.DataArray(PIXELS, dims=("band", "y", "x"))[key]
    part = raw(path, cache=False)[key]
    copy = pickle.loads(pickle.dumps(part))
    for array in (part, copy, part):
        assert array.shape == expected.shape and np.array_equal(array.values, expected.values)


def test_indexing_by_points_and_twice(path):
    rows, columns = xr.DataArray([1, 5, 60], dims="point"), xr.DataArray([80, 5, 6], dims="point")
    assert np.array_equal(raw(path)[:, rows, columns].values, PIXELS[:, rows.values, columns.values])
    assert np.array_equal(raw(path)[:, 10:, ::-1][1, ::2, 5:9].values, PIXELS[:, 10:, ::-1][1, ::2, 5:9])
    assert np.array_equal(raw(path).sel(band=2, x=slice(500100, 500300)).values, PIXELS[1, :, 10:30])


def test_pickling_before_and_after_load(path):
    """T187"""
    before = pickle.loads(pickle.dumps(opened(path)))
    after = pickle.loads(pickle.dumps(opened(path).load()))
    xr.testing.assert_identical(before.load(), after)


def test_a_file_without_a_path_is_not_pickled_silently(path):
    with open(path, "rb") as stream:
        dataset = opened(io.BytesIO(stream.read()))
    assert dataset.band_data.shape == PIXELS.shape
    with pytest.raises((TypeError, pickle.PicklingError)):
        pickle.dumps(dataset)


def test_many_threads(path):
    """T187"""
    array = raw(path, cache=False)
    windows = [(row, column) for row in range(0, 60, 7) for column in range(0, 80, 9)] * 3
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        parts = pool.map(lambda corner: array[:, corner[0]:corner[0] + 9, corner[1]:corner[1] + 9].values, windows)
        for (row, column), part in zip(windows, parts):
            assert np.array_equal(part, PIXELS[:, row:row + 9, column:column + 9])


def test_opening_reads_the_header_once_and_no_pixel(path, tmp_path):
    """T194"""
    rasterio.shutil.copy(path, tmp_path / "cog.tif", driver="COG", copy_src_overviews=True)
    source = Counting((tmp_path / "cog.tif").read_bytes())
    file = cogpu.open(source)
    assert len(source.spans) == 1
    source.spans.clear()
    dataset = Engine().open_dataset(file)
    tree = Engine().open_datatree(file)
    assert source.spans == []
    assert dataset.band_data[0, 0, 0].values == 1 and tree["level_1"].band_data[0, 0, 0].values == 1
    assert source.spans


def test_a_path_is_opened_once(path, monkeypatch):
    lazy.release(path)
    calls = []
    original = lazy.open_file
    monkeypatch.setattr(lazy, "open_file", lambda *args, **keywords: calls.append(args) or original(*args, **keywords))
    for _ in range(3):
        opened(path).load()
        raw(path)[:, ::7].load()
        pickle.loads(pickle.dumps(raw(path))).load()
    assert len(calls) == 1


def test_close_lets_go_of_the_file(path):
    dataset = opened(path)
    assert any(key[0] == path for key in lazy._open_files.files)
    dataset.close()
    assert not any(key[0] == path for key in lazy._open_files.files)
    assert dataset.band_data[0, 0, 0].values == 1  # opened again
    xr.open_datatree(path, engine=Engine).close()
    assert not any(key[0] == path for key in lazy._open_files.files)


def test_few_files_are_kept_open(path, tmp_path):
    with open(path, "rb") as stream:
        content = stream.read()
    for number in range(lazy.FILES_KEPT + 5):
        (tmp_path / f"{number}.tif").write_bytes(content)
        raw(tmp_path / f"{number}.tif")
    assert len(lazy._open_files.files) <= lazy.FILES_KEPT


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_process_opens_its_own(path):
    array = raw(path, cache=False)
    array[0, :9].load()
    child = os.fork()
    if child == 0:
        os._exit(0 if not lazy._open_files.files and np.array_equal(array[:, 20:].values, PIXELS[:, 20:]) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_overviews(path):
    for level in (1, 2):
        with rasterio.open(path, overview_level=level - 1) as file:
            assert np.array_equal(raw(path, level=level).values, file.read())
    tree = xr.open_datatree(path, engine=Engine, mask_and_scale=False)
    assert set(tree.children) == {"level_0", "level_1", "level_2"}
    for level in range(3):
        xr.testing.assert_identical(tree[f"level_{level}"].to_dataset().load(),
                                    opened(path, mask_and_scale=False, level=level).load())
    assert set(xr.open_groups(path, engine=Engine)) == {"/", "/level_0", "/level_1", "/level_2"}


def test_drop_variables_and_coordinates(path):
    assert "spatial_ref" not in opened(path, drop_variables="spatial_ref").variables
    assert set(opened(path, drop_variables=["x", "band_data"]).variables) == {"band", "y", "spatial_ref"}
    assert set(opened(path, parse_coordinates=False).coords) == {"band", "spatial_ref"}
    assert set(opened(path, default_name="height").data_vars) == {"height"}


@pytest.mark.parametrize("keywords, name", [
    ({"level": 3}, "level"), ({"level": -1}, "level"), ({"gpu": "yes"}, "gpu"),
    ({"on_gpu_failure": "no"}, "on_gpu_failure")])
def test_refused_by_name(path, keywords, name):
    with pytest.raises(InvalidArgumentError, match=name):
        opened(path, **keywords)
    with pytest.raises(TypeError, match="tile_size"):
        opened(path, tile_size=256)


def test_bytes_are_content(path):
    with open(path, "rb") as stream:
        assert np.array_equal(raw(stream.read()).values, PIXELS)


def test_guessing_is_modest(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert all(Engine().guess_can_open(name) for name in ("a.tif", "A.TIFF"))
    assert not any(Engine().guess_can_open(name) for name in ("a.nc", io.BytesIO()))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert not Engine().guess_can_open("a.tif")


def test_the_emulated_gpu_gives_the_same(path):
    for keywords in ({}, {"mask_and_scale": False}, {"level": 1}, {"overview_level": 1},
                     {"mask_and_scale": False, "masked": True}):
        ours = opened(path, gpu="emu", on_gpu_failure="strict", **keywords)
        xr.testing.assert_identical(ours.load(), opened(path, **keywords).load())
    assert np.array_equal(raw(path, gpu="emu")[[2, 0], ::-3, [5, 1]].values, PIXELS[[2, 0]][:, ::-3][..., [5, 1]])


# Dask

def test_chunks(path):
    pytest.importorskip("dask")
    whole = raw(path, chunks={})
    assert whole.data.chunks == ((3,), (16,) * 4 + (6,), (32, 32, 26))
    assert np.array_equal(whole.values, PIXELS)
    assert np.array_equal(raw(path, chunks={"y": 32, "x": 64, "band": 1}).compute(scheduler="threads").values, PIXELS)


@pytest.mark.parametrize("interleave, chunks", [("pixel", (3, HEIGHT, WIDTH)), ("band", (1, HEIGHT, WIDTH))])
def test_preferred_chunks_of_strips_gather_them(tmp_path, interleave, chunks):
    with rasterio.open(tmp_path / "strips.tif", "w", driver="GTiff", width=WIDTH, height=HEIGHT, count=3, dtype="int32",
                       blockysize=1, interleave=interleave) as file:
        file.write(PIXELS)
    assert tuple(raw(tmp_path / "strips.tif").encoding["preferred_chunks"][dim] for dim in ("band", "y", "x")) == chunks


class DeviceArray(np.ndarray):
    """Stands in for an array of a GPU: code that makes a NumPy array of it is found out."""


@pytest.fixture
def device_arrays(monkeypatch):
    """The emulated GPU with an array type of its own."""
    module = types.SimpleNamespace(empty=lambda shape, dtype: np.empty(shape, dtype).view(DeviceArray),
                                   asarray=lambda array: np.asarray(array).view(DeviceArray))
    original, fetch = lazy.array_module, lazy._from_emulator
    monkeypatch.setattr(lazy, "array_module", lambda gpu: module if gpu == "emu" else original(gpu))
    monkeypatch.setattr(lazy, "_from_emulator", lambda *args, **keywords: fetch(*args, **keywords).view(DeviceArray))


@pytest.mark.parametrize("chunks", [{}, {"y": 32, "x": 32}, {"band": 1}, "auto", 64], ids=str)
def test_chunks_stay_on_the_device(path, device_arrays, chunks):
    """T186"""
    dask = pytest.importorskip("dask")
    data = raw(path, chunks=chunks, backend_kwargs={"gpu": "emu"}).data
    assert type(data._meta) is DeviceArray
    assert all(type(block) is DeviceArray for block in dask.compute(*data.to_delayed().ravel(), scheduler="sync"))
    assert np.array_equal(data.compute(), PIXELS)


def test_chunking_later_stays_on_the_device(path, device_arrays):
    """T186, T188: coordinates are NumPy's."""
    pytest.importorskip("dask")
    lazily = opened(path, mask_and_scale=False, gpu="emu")
    part = lazily.isel(y=slice(3, 50, 2), band=1).chunk({"x": 40}).band_data
    assert part.data.chunks == ((24,), (40, 40, 10)) and type(part.data._meta) is DeviceArray
    assert np.array_equal(part.values, PIXELS[1, 3:50:2])
    assert np.array_equal(lazily.band_data.chunk(x=30).values, PIXELS)
    assert type(lazily.band_data.load().data) is DeviceArray
    assert type(lazily.x.data) is np.ndarray


def test_work_on_chunks_of_a_device(path, device_arrays):
    """T188"""
    pytest.importorskip("dask")
    chunked = opened(path, chunks={}, backend_kwargs={"gpu": "emu"}).band_data
    expected = opened(path).band_data.load()
    for work in (lambda a: a.where(a > 100), lambda a: a * 2 + 1, lambda a: a.mean("band"), lambda a: a.sum(),
                 lambda a: a[:, ::2].max("x"), lambda a: a.sel(x=slice(500100, 500300)).std(("y", "x"))):
        xr.testing.assert_allclose(work(chunked).compute(), work(expected))


def test_a_chunked_array_travels(path):
    pytest.importorskip("dask")
    for keywords in ({}, {"gpu": "emu"}):
        copy = pickle.loads(pickle.dumps(raw(path, chunks={}, **keywords)))
        assert np.array_equal(copy.compute(), PIXELS)


def test_entry_point():
    """As pip installs it."""
    pytest.importorskip("cogpu")
    engines = xr.backends.list_engines()
    if "cogpu" not in engines:
        pytest.skip("the package is not installed, only on the path")
    assert isinstance(engines["cogpu"], Engine)
