"""Files as Dask arrays: which chunks there are, that no block is decoded twice, and that they have the pixels."""

import collections
import math
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("dask")
import cloudpickle
import dask
import dask.array as da
import rasterio

import cogpu
import cogpu.dask
from cogpu import lazy

BLOCK = 64
BANDS, HEIGHT, WIDTH = SHAPE = (3, 300, 421)


def write_raster(path, height=HEIGHT, width=WIDTH, **profile):
    pixels = np.random.default_rng(7).integers(1, 1000, (BANDS, height, width)).astype("int16")
    profile = {"tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK, "compress": "deflate", **profile}
    size = {"width": width, "height": height, "count": BANDS}
    with rasterio.open(path, "w", driver="GTiff", dtype="int16", **size, **profile) as file:
        file.write(pixels)
    return pixels


@pytest.fixture(scope="module")
def raster(tmp_path_factory):
    path = tmp_path_factory.mktemp("dask_read") / "tiles.tif"
    return path, write_raster(path)


def pixels_of(path, **words):
    return lazy.pixels_of(lazy.opened(path), source=path, **words)


@pytest.fixture
def decoded(monkeypatch):
    """Blocks that reads touched, by what the engine says of each read."""
    counts, lock, read = collections.Counter(), threading.Lock(), cogpu.File.read

    def counting(self, *arguments, **words):
        array = read(self, *arguments, **words)
        with lock:
            counts["blocks"] += array.result["blocks"]
            counts["reads"] += 1
        return array

    monkeypatch.setattr(cogpu.File, "read", counting)
    return counts


@pytest.mark.parametrize("chunks", [
    128, 100, 1000, -1, (64, 128), (50, 421), "auto", {}, "40 kB", {"y": 100}, {"x": 64, "band": 1}, (1, 128, 64),
    (2, "auto", 100), ("auto", 100, "auto"), ((1, 2), (100, 200), (400, 21)), (-1, None, 128), {1: 70}])
def test_all_ways_to_ask_for_chunks_give_the_pixels(raster, chunks):
    path, pixels = raster
    array = cogpu.dask.blocks(pixels_of(path), chunks)
    assert array.shape == SHAPE and array.dtype == np.int16
    np.testing.assert_array_equal(array.compute(), pixels)


@pytest.mark.parametrize("chunks, expected", [
    (128, ((3,), (128, 128, 44), (128, 128, 128, 37))),
    (-1, ((3,), (300,), (421,))),
    ({"y": 100}, ((3,), (100, 100, 100), (421,))),
    ({"band": 1, "x": 200}, ((1, 1, 1), (300,), (200, 200, 21))),
    ((1, (100, 200), 421), ((1, 1, 1), (100, 200), (421,))),
    (10_000, ((3,), (300,), (421,))),
])
def test_chunks_are_those_asked_for(raster, chunks, expected):
    assert cogpu.dask.blocks(pixels_of(raster[0]), chunks).chunks == expected


@pytest.mark.parametrize("chunks", ["100 kB", "auto", {}])
@pytest.mark.parametrize("shape", [(64, 64), (32, 128), "strips"])
def test_sizes_in_bytes_give_whole_blocks(tmp_path, chunks, shape):
    block_height, block_width = (8, WIDTH) if shape == "strips" else shape
    pixels = write_raster(tmp_path / "a.tif", tiled=shape != "strips", blockysize=block_height, blockxsize=block_width)
    limit = 100_000
    with dask.config.set({"array.chunk-size": "100 kB"}):
        array = cogpu.dask.blocks(pixels_of(tmp_path / "a.tif"), chunks)
    assert all(size % block_height == 0 for size in array.chunks[1][:-1])
    assert all(size % block_width == 0 for size in array.chunks[2][:-1])
    assert limit / 4 < math.prod(array.chunksize) * 2 <= limit
    np.testing.assert_array_equal(array.compute(), pixels)


@pytest.mark.parametrize("chunks", [64, 128, 192, "60 kB", (64, 192)])
@pytest.mark.parametrize("window", [None, (0, 0, 300, 421), (10, 20, 290, 400), (64, 128, 256, 421), (63, 63, 65, 65),
                                    (299, 420, 300, 421)])
def test_no_block_is_decoded_twice(raster, decoded, chunks, window):
    path, pixels = raster
    array = cogpu.dask.blocks(pixels_of(path), chunks, window=window)
    row0, col0, row1, col1 = window or (0, 0, HEIGHT, WIDTH)
    np.testing.assert_array_equal(array.compute(), pixels[:, row0:row1, col0:col1])
    assert decoded["blocks"] == (-(-row1 // BLOCK) - row0 // BLOCK) * (-(-col1 // BLOCK) - col0 // BLOCK)


def test_one_chunk_stays_one_where_the_window_begins_inside_a_block(raster):
    assert cogpu.dask.blocks(pixels_of(raster[0]), -1, window=(10, 10, 138, 74)).numblocks == (1, 1, 1)


def test_slices_read_what_they_need(raster, decoded):
    path, pixels = raster
    array = cogpu.dask.blocks(pixels_of(path), 256)
    np.testing.assert_array_equal(array[1, 70:120:3, ::-2].compute(), pixels[1, 70:120:3, ::-2])
    np.testing.assert_array_equal(array[::-1, 5, 300:].compute(), pixels[::-1, 5, 300:])
    assert array[:, []].compute().shape == (BANDS, 0, WIDTH)
    np.testing.assert_array_equal(array[:, [7, 280, 3, 3], 300:].compute(), pixels[:, [7, 280, 3, 3], 300:])
    np.testing.assert_array_equal(array[:, :, -1][0].compute(), pixels[0, :, -1])
    assert array[:, 3:3].compute().shape == (BANDS, 0, WIDTH)
    decoded.clear()
    np.testing.assert_array_equal(array[:, :10, :10].compute(), pixels[:, :10, :10])
    assert decoded == {"blocks": 1, "reads": 1}


def test_levels_bands_and_types(tmp_path):
    pixels = write_raster(tmp_path / "a.tif", nodata=5)
    with rasterio.open(tmp_path / "a.tif", "r+") as file:
        file.build_overviews([2], rasterio.enums.Resampling.nearest)
    with rasterio.open(tmp_path / "a.tif", overview_level=0) as file:
        expected = file.read([3, 1]).astype("float32")
    expected[expected == 5] = np.nan
    array = cogpu.dask.blocks(pixels_of(tmp_path / "a.tif", level=1, bands=(3, 1), masked=True), 64)
    assert array.shape == (2, 150, 211) and array.dtype == np.float32
    np.testing.assert_array_equal(array.compute(), expected)
    np.testing.assert_array_equal(array[1:].compute(), expected[1:])
    assert pixels.shape == SHAPE


def test_the_graph_has_a_task_for_each_chunk_and_one_entry_for_the_file(tmp_path):
    path = tmp_path / "large.tif"
    with rasterio.open(path, "w", driver="GTiff", width=100_000, height=100_000, count=1, dtype="uint8", tiled=True,
                       blockxsize=256, blockysize=256, sparse_ok=True, BIGTIFF="YES"):
        pass
    array = cogpu.dask.blocks(pixels_of(path), 1000)
    graph = dict(array.__dask_graph__())
    assert array.npartitions == 100 * 100
    assert len(graph) == array.npartitions + 1
    assert len(pickle.dumps(graph)) / len(graph) < 200  # bytes of a task
    assert array[0, :10, :10].compute().sum() == 0


def test_too_many_tasks_are_refused_with_advice(raster):
    """T185"""
    with pytest.raises(cogpu.InvalidArgumentError, match=r"chunks=1 makes 126300 tasks.*50000.*raise chunks, to 3"):
        cogpu.dask.blocks(pixels_of(raster[0]), 1)
    assert cogpu.dask.blocks(pixels_of(raster[0]), 3).npartitions < 50_000


@pytest.mark.parametrize("chunks, error", [
    (True, TypeError), (1.5, TypeError), ((64, True), TypeError), (0, ValueError), (-2, ValueError),
    ((1, 2, 3, 4), ValueError), ("many", ValueError), ({"z": 3}, ValueError), ((3, (100, 100), 421), ValueError),
    (((3,), (301,), (421,)), ValueError)])
def test_bad_chunks_are_refused_by_name(raster, chunks, error):
    with pytest.raises(error, match="chunks"):
        cogpu.dask.blocks(pixels_of(raster[0]), chunks)


@pytest.mark.parametrize("window", [(0, 0, 301, 10), (-1, 0, 10, 10), (5, 5, 5, 10), (10, 10, 5, 20)])
def test_bad_windows_are_refused_by_name(raster, window):
    with pytest.raises(cogpu.InvalidArgumentError, match="window"):
        cogpu.dask.blocks(pixels_of(raster[0]), 64, window=window)


def test_names_say_what_the_chunks_are(raster, tmp_path):
    def name(path, chunks=64, window=None, **words):
        return cogpu.dask.blocks(pixels_of(path, **words), chunks, window).name

    path, _ = raster
    assert name(path) == name(path)
    copy = tmp_path / "copy.tif"
    copy.write_bytes(path.read_bytes())
    names = [name(path), name(path, 128), name(path, bands=(1,)), name(path, masked=True), name(path, gpu="emu"),
             name(path, window=(0, 0, 64, 64)), name(path, window=(0, 0, 64, 128)), name(copy)]
    os.utime(copy, ns=(1, 1))
    names.append(name(copy))
    assert len(set(names)) == len(names)


def test_graphs_travel(raster):
    path, pixels = raster
    array = cloudpickle.loads(cloudpickle.dumps(cogpu.dask.blocks(pixels_of(path), 100) + 1))
    np.testing.assert_array_equal(array.compute(), pixels + 1)


@pytest.mark.parametrize("how", ["in place", "by another", "in another process"])
def test_a_local_file_that_changed_is_noticed(raster, tmp_path, how):
    """Since the graph was made: no chunk is of the new file."""
    path = tmp_path / "changing.tif"
    path.write_bytes(raster[0].read_bytes())
    array = cogpu.dask.blocks(pixels_of(path), 64)
    np.testing.assert_array_equal(array[:, :64, :64].compute(), raster[1][:, :64, :64])
    if how == "by another":
        (tmp_path / "new.tif").write_bytes(path.read_bytes())
        (tmp_path / "new.tif").replace(path)
    os.utime(path, ns=(1, 1))
    if how == "in another process":
        program = "import sys, cloudpickle; cloudpickle.load(sys.stdin.buffer).compute()"
        done = subprocess.run([sys.executable, "-c", program], input=cloudpickle.dumps(array), capture_output=True)
        assert done.returncode == 1 and b"cogpu.errors.IOError" in done.stderr and b"changed" in done.stderr
    else:
        with pytest.raises(cogpu.IOError, match="changing.tif: the file changed"):
            array.compute()
    again = cogpu.dask.blocks(pixels_of(path), 64)
    assert again.name != array.name
    np.testing.assert_array_equal(again.compute(), raster[1])


def test_an_open_local_file_that_changed_is_noticed(raster, tmp_path):
    path = tmp_path / "changing.tif"
    path.write_bytes(raster[0].read_bytes())
    with cogpu.open(path) as file:
        file.read(window=(0, 0, 10, 10))
        os.utime(path, ns=(1, 1))
        with pytest.raises(cogpu.IOError, match="changed"):
            file.read(window=(0, 0, 10, 10))


def test_nothing_is_read_before_it_is_computed(raster, decoded):
    """T194"""
    array = cogpu.dask.blocks(pixels_of(raster[0]), 64)
    (array + 1).mean(axis=0)
    assert decoded["reads"] == 0


def test_chunks_of_a_gpu_lie_in_its_memory(raster):
    path, pixels = raster
    array = cogpu.dask.blocks(pixels_of(path, gpu="emu"), 256)
    devices = array.map_blocks(lambda chunk: np.full((1, 1, 1), cogpu._cogpu.device_of(chunk)), dtype="U8",
                               chunks=(1, 1, 1))
    assert set(devices.compute().ravel()) == {"emu:0"}
    assert type(array._meta) is np.ndarray
    np.testing.assert_array_equal(array.compute(), pixels)


def test_reductions_agree_with_numpy(raster):
    path, pixels = raster
    array = cogpu.dask.blocks(pixels_of(path), 128)
    assert da.where(array > 500, array, 0).sum().compute() == np.where(pixels > 500, pixels, 0).sum()
    np.testing.assert_allclose(array.mean(axis=(1, 2)).compute(), pixels.mean(axis=(1, 2)))
