"""Dask arrays to files: the bytes of the array in memory, each task run once, and never the whole array there."""

import collections
import io
import os
import threading
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("dask")
import dask
import dask.array as da
import rasterio
import xarray

import cogpu
from cogpu import dask_steps, dask_write, lazy
from conftest import Pipe
from dask_made import in_memory, terrain


class Source:
    """Chunks that are made when they are asked for, and counted."""

    def __init__(self, pixels, chunks):
        self.pixels, self.chunks, self.counts, self.lock = pixels, chunks, collections.Counter(), threading.Lock()
        self.shape, self.dtype, self.ndim = pixels.shape, pixels.dtype, pixels.ndim

    def __getitem__(self, index):
        with self.lock:
            self.counts[str(index)] += 1
        return self.pixels[index]

    def array(self):
        return da.from_array(self, self.chunks, asarray=False, meta=np.empty((0,) * self.ndim, self.dtype))


# ---- the same bytes --------------------------------------------------------------------------------------------------

LAYOUTS = {
    "tiles": {},
    "small tiles": {"tile_size": 64},
    "cog": {"cog": True, "tile_size": 64},
    "cog of zstd": {"cog": True, "tile_size": 32, "compression": "zstd", "overview_resampling": "bilinear"},
    "strips": {"tiled": False},
    "planar": {"interleave": "band", "tile_size": 64, "compression": "lzw"},
    "planar cog": {"interleave": "band", "tile_size": 64, "cog": True, "overview_resampling": "cubic"},
    "overviews": {"overview_levels": [2, 4], "tile_size": 48, "compression": None},
    "predictor": {"predictor": 2, "tile_size": (32, 80)},
    "nodata": {"nodata": 100, "cog": True, "tile_size": 64},
}
CHUNKS = {"blocks": 64, "odd": (3, 50, 77), "rows": (3, 1, 131), "columns": (3, 201, 40), "one": -1,
          "bands": (1, 100, 100), "uneven": ((2, 1), (7, 100, 94), (130, 1))}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_bytes_are_those_of_the_array_in_memory(layout, chunks):
    pixels = terrain(3, 201, 131, "int16")
    lazy = da.from_array(pixels, CHUNKS[chunks])
    assert in_memory(lazy, streaming_buffer_bytes=10_000, **LAYOUTS[layout]) == in_memory(pixels, **LAYOUTS[layout])


@pytest.mark.parametrize("shape, chunks", [((1, 1), 1), ((1, 500), (1, 7)), ((500, 1), (3, 1)), ((17, 1000), (16, 999)),
                                           ((64, 64), 64)])
@pytest.mark.parametrize("cog", [False, True])
def test_odd_shapes(shape, chunks, cog):
    pixels = terrain(1, *shape)[0]
    assert in_memory(da.from_array(pixels, chunks), cog=cog, tile_size=16) == in_memory(pixels, cog=cog, tile_size=16)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int8", "uint16", "uint32", "int64", "float16", "float64",
                                   "complex64", "complex128", ">f4"])
def test_all_types(dtype):
    pixels = terrain(1, 90, 70)[0]
    pixels = pixels > 100 if dtype == "bool" else pixels.astype(dtype)
    assert in_memory(da.from_array(pixels, 37), tile_size=32) == in_memory(pixels, tile_size=32)


def test_bands_may_stand_last():
    pixels = np.moveaxis(terrain(3, 120, 90, "uint8"), 0, -1)
    lazy, eager = (xarray.DataArray(data, dims=("y", "x", "band"))
                   for data in (da.from_array(pixels, (50, 40, 2)), pixels))
    assert in_memory(lazy, tile_size=32, streaming_buffer_bytes=1) == in_memory(eager, tile_size=32)


def test_nan_becomes_nodata_and_the_array_stays_as_it_is():
    pixels = terrain(1, 150, 130)
    pixels[:, 20:50, 30:90] = np.nan
    before = pixels.copy()
    written = in_memory(da.from_array(pixels, 60), nodata=-9999, cog=True, tile_size=32)
    assert written == in_memory(pixels, nodata=-9999, cog=True, tile_size=32)
    np.testing.assert_array_equal(pixels, before)
    with rasterio.open(io.BytesIO(written)) as file:
        stored = file.read()
        assert file.overviews(1)
    np.testing.assert_array_equal(stored, np.where(np.isnan(pixels), -9999, pixels))


def test_masks_go_along():
    pixels, mask = terrain(2, 150, 130, "uint8"), terrain(1, 150, 130)[0] > 90
    words = {"mask": mask, "cog": True, "tile_size": 32}
    written = in_memory(da.from_array(pixels, (1, 60, 60)), streaming_buffer_bytes=1, **words)
    assert written == in_memory(pixels, **words)
    with rasterio.open(io.BytesIO(written)) as file:
        np.testing.assert_array_equal(file.dataset_mask() > 0, mask)
    lazily = words | {"mask": da.from_array(mask, (50, 70))}
    assert in_memory(da.from_array(pixels, (1, 60, 60)), streaming_buffer_bytes=1, **lazily) == written
    assert in_memory(pixels, streaming_buffer_bytes=1, **lazily) == written


def test_a_mask_of_dask_is_computed_along_with_the_rows():
    pixels, computed, seen = terrain(1, 256, 64), [], []
    source = da.from_array(pixels, (1, 32, 64))
    mask = (source[0] > 90).map_blocks(lambda chunk: computed.append(1) or chunk, meta=np.empty((0, 0), bool))
    with dask.config.set(scheduler="sync"):
        written = in_memory(source, mask=mask, tile_size=32, streaming_buffer_bytes=1,
                            progress=lambda done, total: seen.append(len(computed)))
    assert len(computed) == 8 and seen[0] <= 3
    assert written == in_memory(pixels, mask=pixels[0] > 90, tile_size=32)


@pytest.mark.parametrize("words", [{}, {"cog": True}])
def test_an_emulated_gpu_encodes(words):
    pixels = terrain(1, 130, 100)
    words |= {"gpu": "emu", "tile_size": 64}
    lazy = da.from_array(pixels, (1, 50, 64))
    assert in_memory(lazy, streaming_buffer_bytes=1, **words) == in_memory(pixels, **words)


@pytest.mark.parametrize("gpu", [None, False, "emu"])
def test_chunks_of_a_gpu_are_written_as_they_come(tmp_path, gpu):
    """T184: never all of them are there, and gpu=False brings them down."""
    pixels, computed, seen = terrain(1, 256, 100), [], []
    path = tmp_path / "a.tif"
    cogpu.to_geotiff(pixels, path, tile_size=32)
    array = cogpu.dask.blocks(lazy.pixels_of(lazy.opened(path), source=path, gpu="emu"), (32, 100))
    array = array.map_blocks(lambda chunk: computed.append(1) or chunk, meta=array._meta)
    with dask.config.set(scheduler="sync"):
        written = in_memory(array, gpu=gpu, streaming_buffer_bytes=1, tile_size=32,
                            progress=lambda done, total: seen.append(len(computed)))
    assert len(computed) == 8 and seen[0] <= 3
    assert written == in_memory(pixels, gpu="emu" if gpu is None else gpu, tile_size=32)


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_schedulers(scheduler):
    pixels = terrain(2, 200, 150)
    lazy = da.from_array(pixels, (2, 60, 60)).map_overlap(np.negative, depth=(0, 1, 1), boundary="none")
    with dask.config.set(scheduler=scheduler, num_workers=2):
        written = in_memory(lazy, cog=True, tile_size=32, streaming_buffer_bytes=1)
    assert written == in_memory(-pixels, cog=True, tile_size=32)


def test_what_the_reader_gives_is_written_back(tmp_path):
    pixels = terrain(2, 200, 150, "uint16")
    cogpu.to_geotiff(pixels, tmp_path / "a.tif", tile_size=32, crs=32633, transform=(10, 0, 500000, 0, -10, 4600000))
    cogpu.to_geotiff(cogpu.open_geotiff(tmp_path / "a.tif", chunks=64), tmp_path / "b.tif", tile_size=32)
    assert (tmp_path / "b.tif").read_bytes() == (tmp_path / "a.tif").read_bytes()


# ---- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cog", [False, True])
def test_targets(tmp_path, cog):
    pixels = terrain(1, 200, 150)
    lazy, words = da.from_array(pixels, (1, 60, 60)), {"cog": cog, "tile_size": 32}
    expected, memory, pipe = in_memory(pixels, **words), io.BytesIO(), Pipe()
    for target in (memory, pipe, tmp_path / "a.tif"):
        cogpu.to_geotiff(lazy, target, **words)
    assert memory.getvalue() == bytes(pipe.taken) == (tmp_path / "a.tif").read_bytes() == expected


# ---- how it is computed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    lambda array: array,
    lambda array: array + array,
    lambda array: array.rechunk((1, 33, 150)),
    lambda array: array.rechunk((1, 130, 70)),
    lambda array: array[:, 5:-5, ::2],
    lambda array: array.map_overlap(np.sqrt, depth=(0, 3, 3), boundary="reflect"),
    lambda array: da.cumsum(array, axis=1),
    lambda array: array[:, ::-1],
], ids=["as it is", "twice", "finer", "coarser", "sliced", "overlapping", "summed up", "upside down"])
@pytest.mark.parametrize("cog", [False, True])
def test_each_source_chunk_is_computed_once(change, cog):
    source = Source(terrain(1, 301, 150), (1, 40, 60))
    lazy = change(source.array())
    expected = in_memory(lazy.compute(), cog=cog, tile_size=32)
    source.counts.clear()
    assert in_memory(lazy, cog=cog, tile_size=32, streaming_buffer_bytes=1) == expected
    assert set(source.counts.values()) == {1} and len(source.counts) == 8 * 3


def test_a_mean_over_all_does_not_keep_all():
    source = Source(terrain(1, 320, 150), (1, 40, 150))
    array = source.array()
    lazy = array - array.mean()
    expected = lazy.compute()
    source.counts.clear()
    np.testing.assert_array_equal(read_back(in_memory(lazy, tile_size=32, streaming_buffer_bytes=1)), expected)
    assert set(source.counts.values()) == {1, 2}  # for the mean, which is kept; and again, but for the first rows


def read_back(written):
    with rasterio.open(io.BytesIO(written)) as file:
        return file.read()


@pytest.mark.parametrize("cog", [False, True])
def test_memory_is_bounded_by_the_budget(tmp_path, cog):
    rows, height, width = 128, 8192, 1024
    lazy = da.random.default_rng(1).random((height, width), chunks=(rows, 512), dtype="float32")
    budget = 3 * rows * width * 4
    in_memory(lazy[:rows])  # what is imported on the way
    tracemalloc.start()
    try:
        cogpu.to_geotiff(lazy, tmp_path / "a.tif", cog=cog, tile_size=64, compression=None,
                         streaming_buffer_bytes=budget)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    graph = 8000 * lazy.npartitions
    assert peak < budget + graph < lazy.nbytes / 10


class Watched:
    """A writer that takes rows and says so; each call waits until the next chunk is being computed."""

    def __init__(self, pushed, next_begun):
        self.pushed, self.next_begun, self.aborted = pushed, next_begun, False

    def __call__(self, target, profile, inputs):
        return self

    def write_rows(self, rows, mask=None):
        number = len(self.pushed)
        assert self.next_begun(number + 1), "the next chunk was not computed while this one was written"
        self.pushed.append(rows)

    def close(self):
        return {"memory": b""}

    def abort(self):
        self.aborted = True


def test_the_next_chunk_is_computed_while_one_is_written(monkeypatch):
    pixels, pushed, begun, count = terrain(1, 160, 20), [], [threading.Event() for _ in range(6)], 5
    begun[count].set()

    def chunk(block_id=None):
        assert len(pushed) >= block_id[1] - 1, "a chunk was computed before the last but one was written"
        begun[block_id[1]].set()
        return pixels[:, 32 * block_id[1]:32 * (block_id[1] + 1)]

    lazy = da.map_blocks(chunk, chunks=((1,), (32,) * count, (20,)), meta=np.empty((0, 0, 0), "float32"))
    monkeypatch.setattr(cogpu._cogpu, "Writer", Watched(pushed, lambda number: begun[number].wait(10)))
    in_memory(lazy, tile_size=32, streaming_buffer_bytes=1)
    np.testing.assert_array_equal(np.concatenate(pushed, axis=1), pixels)
    assert [rows.shape[1] for rows in pushed] == [32] * count


def test_rows_are_grouped_under_the_limit():
    def heights(*arguments):
        return [len(rows) for rows in dask_write.rows_by_step(*arguments)]

    assert heights([10] * 7, 1, 30, 1) == [3, 3, 1]
    assert heights([10] * 7, 1, 29, 1) == [2, 2, 2, 1]
    assert heights([10] * 3, 1, 5, 1) == [1, 1, 1]  # a row of chunks is the least
    assert heights([1] * 100, 10, 20, 32) == [32, 32, 32, 4]  # or a row of blocks
    assert heights([100, 1, 1, 100], 1, 50, 16) == [1, 2, 1]


def test_progress_is_told():
    told = []
    in_memory(da.from_array(terrain(1, 100, 50), (1, 30, 50)), tile_size=16, streaming_buffer_bytes=1,
              progress=lambda done, total: told.append((done, total)))
    assert told == [(30, 100), (60, 100), (90, 100), (100, 100)]


# ---- failures --------------------------------------------------------------------------------------------------------


class Trouble(Exception):
    pass


def failing(pixels, block_info=None):
    if block_info[0]["chunk-location"][1] == 3:
        raise Trouble("row 3")
    return pixels


@pytest.mark.parametrize("cog", [False, True])
def test_what_fails_in_a_task_comes_out_and_leaves_no_file(tmp_path, cog):
    lazy = da.from_array(terrain(1, 200, 50), (1, 30, 50)).map_blocks(failing, dtype="float32")
    (tmp_path / "old.tif").write_bytes(b"old")
    for name in ("old.tif", "new.tif"):
        with pytest.raises(Trouble, match="row 3"):
            cogpu.to_geotiff(lazy, tmp_path / name, cog=cog, tile_size=16, streaming_buffer_bytes=1)
    assert os.listdir(tmp_path) == ["old.tif"] and (tmp_path / "old.tif").read_bytes() == b"old"


def test_what_fails_in_progress_leaves_no_file(tmp_path):
    def refuse(done, total):
        raise Trouble("enough")

    with pytest.raises(Trouble):
        cogpu.to_geotiff(da.zeros((100, 100), chunks=20), tmp_path / "a.tif", tile_size=16, streaming_buffer_bytes=1,
                         progress=refuse)
    assert os.listdir(tmp_path) == []


def test_a_bad_profile_fails_before_anything_is_computed(tmp_path):
    source = Source(terrain(1, 100, 50), (1, 30, 50))
    with pytest.raises(cogpu.Error):
        cogpu.to_geotiff(source.array(), tmp_path / "no such folder" / "a.tif")
    assert not source.counts


# ---- steps -----------------------------------------------------------------------------------------------------------


def ran(graph, wanted):
    """What the steps yield, how often each task ran, and how many results of earlier ones each step had."""
    counts, kept = collections.Counter(), []

    def counting(key, function, arguments):
        def run(*values):
            counts[key] += 1
            return function(*values)

        return run, *arguments

    def get(tasks, keys):
        kept.append(sum(task is not graph[key] for key, task in tasks.items()))
        return dask.get(tasks, keys)

    graph = {key: counting(key, *task) for key, task in graph.items()}
    return [list(result) for result in dask_steps.Steps(graph, wanted).results(get)], counts, kept


def test_steps_keep_what_the_next_needs_and_let_go_of_it():
    graph = {("source", i): (lambda i: i, [i]) for i in range(6)}
    graph |= {("sum", i): (lambda *both: sum(both), [("source", i), ("source", i + 1)]) for i in range(5)}
    results, counts, kept = ran(graph, [[("sum", i)] for i in range(5)])
    assert results == [[1], [3], [5], [7], [9]]
    assert set(counts.values()) == {1} and kept == [0, 1, 1, 1, 1]


def test_steps_keep_what_many_need_and_no_more():
    graph = {"many": (lambda: 1, []), "two": (lambda: 2, [])}
    graph |= {i: (lambda *values: sum(values), ["many"] * (i % 2 == 0) + ["two"] * (i in (0, 5))) for i in range(6)}
    results, counts, kept = ran(graph, [[i] for i in range(6)])
    assert results == [[3], [0], [1], [0], [1], [2]]
    assert counts["many"] == 1 and counts["two"] == 2 and kept == [0, 1, 1, 1, 1, 0]
