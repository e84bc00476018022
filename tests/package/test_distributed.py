"""Files written by a cluster of processes: the bytes of the local write, each chunk computed once.

Each worker has an emulated GPU of its own, as dask-cuda gives each a CUDA_VISIBLE_DEVICES.
"""

import collections
import io
import os

import numpy as np
import pytest

distributed = pytest.importorskip("distributed")
import dask
import dask.array as da
import rasterio

import cogpu
import cogpu.dask
from cogpu import lazy
from dask_made import in_memory, terrain

WORKERS = 2


@pytest.fixture(scope="module")
def client():
    def worker(number):
        environment = {"COGPU_EMU_DEVICES": str(WORKERS), "COGPU_EMU_DEVICE": str(number)}
        return {"cls": distributed.Nanny, "options": {"nthreads": 1, "env": environment, "dashboard": False}}

    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0}}
    workers = {number: worker(number) for number in range(WORKERS)}
    with distributed.SpecCluster(workers=workers, scheduler=scheduler) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def counted(pixels, chunks, folder):
    """The pixels as a Dask array whose chunks each leave a mark when they are computed, in whatever process."""
    def mark(chunk, block_info=None):
        place = "-".join(map(str, block_info[0]["chunk-location"]))
        with open(folder / place, "a") as file:
            file.write("x")
        return chunk

    return da.from_array(pixels, chunks).map_blocks(mark, dtype=pixels.dtype)


LAYOUTS = {
    "tiles": {"tile_size": 64},
    "strips": {"tiled": False},
    "planar": {"tile_size": 64, "interleave": "band", "cog": True},
    "factors": {"tile_size": 32, "overview_levels": [3, 6, 30], "compression": "lzw"},
    "nodata": {"tile_size": 64, "cog": True, "nodata": 100},
    **{name: {"tile_size": 32, "cog": True, "overview_resampling": name}
       for name in ("average", "bilinear", "cubic", "mode", "nearest")},
}
CHUNKS = {"odd": (2, 70, 77), "blocks": (2, 64, 128)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_are_those_of_the_local_write(client, tmp_path, layout):
    pixels = terrain(2, 233, 201, "int16")
    expected = in_memory(pixels, **LAYOUTS[layout])
    lazy_pixels = counted(pixels, CHUNKS["odd" if len(layout) % 2 else "blocks"], tmp_path)
    assert in_memory(lazy_pixels, streaming_buffer_bytes=200_000, **LAYOUTS[layout]) == expected
    assert {mark.read_text() for mark in tmp_path.iterdir()} == {"x"}
    assert len(list(tmp_path.iterdir())) == lazy_pixels.npartitions


def test_nan_masks_and_odd_chunks(client):
    pixels = terrain(1, 201, 133)
    pixels[:, 20:150, 30:90] = np.nan
    words = {"nodata": -9999, "cog": True, "tile_size": 32, "overview_resampling": "bilinear"}
    assert in_memory(da.from_array(pixels, (1, 201, 60)), **words) == in_memory(pixels, **words)
    assert np.isnan(pixels).sum() == 130 * 60
    words = {"mask": ~np.isnan(pixels[0]), "cog": True, "tile_size": 64}
    written = in_memory(da.from_array(np.nan_to_num(pixels), (1, 7, 133)), streaming_buffer_bytes=1, **words)
    assert written == in_memory(np.nan_to_num(pixels), **words)
    with rasterio.open(io.BytesIO(written)) as file:
        np.testing.assert_array_equal(file.dataset_mask() > 0, words["mask"])
    words["mask"] = da.from_array(words["mask"], (50, 60))
    assert in_memory(da.from_array(np.nan_to_num(pixels), (1, 7, 133)), **words) == written


def test_many_small_steps(client, tmp_path):
    """Of 16 rows each: no more than two are under way, and overviews that wait for later rows are not made twice."""
    pixels = terrain(1, 160, 100, "uint8")
    words, told = {"cog": True, "tile_size": 16, "overview_resampling": "cubic"}, []
    marks, rows_done = tmp_path / "marks", tmp_path / "rows_done"
    marks.mkdir()
    rows_done.touch()

    def check(chunk, block_info=None):
        first, _ = block_info[0]["array-location"][1]
        assert first <= rows_done.stat().st_size + 16, "a third step was under way"
        return chunk

    def progress(done, total):
        with open(rows_done, "a") as file:  # whose size is what is done: it only grows
            file.write("." * 16)
        told.append((done, total))

    lazy_pixels = counted(pixels, (1, 16, 50), marks).map_blocks(check, dtype="uint8")
    assert in_memory(lazy_pixels, streaming_buffer_bytes=1, progress=progress, **words) == in_memory(pixels, **words)
    assert told == [(16 * (step + 1), 160) for step in range(10)]
    assert {mark.read_text() for mark in marks.iterdir()} == {"x"} and len(list(marks.iterdir())) == 20


def test_what_overlaps_steps_is_computed_once(client, tmp_path):
    pixels = terrain(1, 160, 100)
    lazy_pixels = counted(pixels, (1, 40, 50), tmp_path).map_overlap(np.negative, depth=(0, 2, 2), boundary="none")
    words = {"cog": True, "tile_size": 32}
    assert in_memory(lazy_pixels, streaming_buffer_bytes=1, **words) == in_memory(-pixels, **words)
    assert {mark.read_text() for mark in tmp_path.iterdir()} == {"x"}


def test_persisted_arrays_stay_where_they_are(client):
    pixels = terrain(1, 200, 200)
    words = {"cog": True, "tile_size": 32}
    persisted = da.from_array(pixels, (1, 64, 64)).persist()
    for lazy_pixels, expected in ((persisted, pixels), (persisted + 1, pixels + 1), (persisted, pixels)):
        assert in_memory(lazy_pixels, **words) == in_memory(expected, **words)
    np.testing.assert_array_equal(persisted.compute(), pixels)


def test_keys_are_those_of_this_write_alone(client, caplog):
    """The scheduler warns where a key has another task behind it than before, as when Dask fused in another way."""
    pixels = terrain(1, 100, 100)
    lazy_pixels = da.from_array(pixels, (1, 70, 70)) + 1
    held = lazy_pixels.persist()
    assert in_memory(lazy_pixels, tile_size=32) == in_memory(pixels + 1, tile_size=32)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    np.testing.assert_array_equal(held.compute(), pixels + 1)


def test_paths_and_file_like_targets_are_this_process_s(client, tmp_path, monkeypatch):
    pixels = terrain(1, 200, 200)
    expected = in_memory(pixels, tile_size=32)
    monkeypatch.setattr(cogpu._cogpu, "encode_block", None)  # which is the workers'
    lazy_pixels, memory = da.from_array(pixels, (1, 64, 64)), io.BytesIO()
    cogpu.to_geotiff(lazy_pixels, tmp_path / "a.tif", tile_size=32)
    cogpu.to_geotiff(lazy_pixels, memory, tile_size=32)
    assert (tmp_path / "a.tif").read_bytes() == memory.getvalue() == expected


def test_a_file_is_read_and_written_by_workers(client, tmp_path):
    pixels = terrain(2, 300, 250, "uint16")
    cogpu.to_geotiff(pixels, tmp_path / "a.tif", tile_size=32, cog=True)
    cogpu.to_geotiff(cogpu.open_geotiff(tmp_path / "a.tif", chunks=64), tmp_path / "b.tif", tile_size=32, cog=True)
    assert (tmp_path / "b.tif").read_bytes() == (tmp_path / "a.tif").read_bytes()


def test_tasks_may_put_files_together(client, tmp_path):
    """One on each worker, which has one thread: they must let others run."""
    pixels = terrain(1, 200, 200)

    def assemble(path):
        cogpu.to_geotiff(da.from_array(pixels, (1, 64, 64)), path, tile_size=32, cog=True)
        return os.getpid()

    futures = [client.submit(assemble, tmp_path / f"{number}.tif", workers=[worker], pure=False)
               for number, worker in enumerate(client.nthreads())]
    processes = {future.result(timeout=60) for future in futures}
    assert len(processes) == WORKERS and os.getpid() not in processes
    expected = in_memory(pixels, tile_size=32, cog=True)
    assert all((tmp_path / f"{number}.tif").read_bytes() == expected for number in range(WORKERS))


def test_the_scheduler_that_is_set_is_used(client):
    processes = set()

    def here(chunk):
        processes.add(os.getpid())
        return chunk

    pixels = terrain(1, 100, 100)
    with dask.config.set(scheduler="threads"):
        in_memory(da.from_array(pixels, (1, 50, 50)).map_blocks(here, dtype="float32"), tile_size=32)
    assert processes == {os.getpid()}


class Trouble(Exception):
    pass


def test_what_fails_in_a_task_comes_out_and_leaves_no_file(client, tmp_path):
    def fail(chunk, block_info=None):
        if block_info[0]["chunk-location"][1] == 3:
            raise ZeroDivisionError("row 3")
        return chunk

    lazy_pixels = da.from_array(terrain(1, 200, 50), (1, 32, 50)).map_blocks(fail, dtype="float32")
    with pytest.raises(ZeroDivisionError, match="row 3"):
        cogpu.to_geotiff(lazy_pixels, tmp_path / "a.tif", cog=True, tile_size=16, streaming_buffer_bytes=1)
    assert os.listdir(tmp_path) == []


def test_what_fails_in_progress_leaves_no_file(client, tmp_path):
    def refuse(done, total):
        raise Trouble("enough")

    with pytest.raises(Trouble):
        cogpu.to_geotiff(da.zeros((100, 100), chunks=20), tmp_path / "a.tif", tile_size=16, streaming_buffer_bytes=1,
                         progress=refuse)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("gpu", ["emu", True])
def test_a_device_encodes_nothing_on_a_cluster(client, gpu):
    """The encoders are the host's on all workers: what device one has, or this process, does not change the file."""
    pixels = terrain(1, 100, 100)
    assert in_memory(da.from_array(pixels, (1, 64, 64)), gpu=gpu, tile_size=32) == in_memory(pixels, tile_size=32)


def test_each_chunk_lies_on_its_own_workers_device(client, tmp_path):
    """T187: a device is chosen where the task runs."""
    pixels = terrain(1, 256, 256, "uint8")
    cogpu.to_geotiff(pixels, tmp_path / "a.tif", tile_size=64)
    array = cogpu.dask.blocks(lazy.pixels_of(lazy.opened(tmp_path / "a.tif"), source=tmp_path / "a.tif", gpu="emu"), 64)

    def where(chunk):
        return np.full((1, 1, 1), f"{os.environ['COGPU_EMU_DEVICE']} {cogpu._cogpu.device_of(chunk)}")

    places = collections.Counter(array.map_blocks(where, dtype="U16", chunks=(1, 1, 1)).compute().ravel().tolist())
    assert set(places) == {"0 emu:0", "1 emu:1"}
    np.testing.assert_array_equal(array.compute(), pixels)
