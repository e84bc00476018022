"""Mosaics as Dask arrays: the pixels, and what is sent to those who read them."""

import os
import pickle

import numpy as np
import pytest

pytest.importorskip("dask")
xr = pytest.importorskip("xarray")
import cloudpickle
import dask
from conftest import host
from mosaic_made import composed, tile, tiles

import cogpu
from cogpu import mosaic as module


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiles(tmp_path_factory.mktemp("mosaic_dask"))


@pytest.mark.parametrize("words", [{}, {"crs": 3857, "resampling": "bilinear", "max_error": 0},
                                   {"resolution": 25, "resampling": "average", "masked": True},
                                   {"composite": "median", "window": (20, 30, 200, 211)}])
@pytest.mark.parametrize("chunks", [64, (100, -1), "auto"])
def test_chunks_are_parts(made, words, chunks, device):
    gpu = "emu" if device == "emu" else device == "cuda"
    now = cogpu.open_geotiff(made[0], gpu=gpu, **words)
    later = cogpu.open_geotiff(made[0], chunks=chunks, gpu=gpu, **words)
    np.testing.assert_array_equal(host(later.compute().data), host(now.data))
    xr.testing.assert_identical(later.drop_vars("band").coords.to_dataset(), now.drop_vars("band").coords.to_dataset())
    assert later.attrs == now.attrs


def test_processes(made):
    array = cogpu.open_geotiff(made[0], chunks=100)
    np.testing.assert_array_equal(array[0].compute(scheduler="processes", num_workers=2), composed(made[1], "first"))


def test_sources_are_pickled_once(made, monkeypatch):
    """However many tasks there are."""
    made_of, count = module.pickle.dumps, []
    monkeypatch.setattr(module.pickle, "dumps", lambda *given: count.append(1) or made_of(*given))
    array = cogpu.open_geotiff([cogpu.Source(path) for path in made[0] * 500], chunks=16)
    graph = dict(array.__dask_graph__())
    content = cloudpickle.dumps(graph)
    tasks = [cloudpickle.dumps(task) for task in graph.values()]
    assert len(graph) > 250 and len(count) == 1
    assert len(content) < 200_000 and sorted(map(len, tasks))[-2] < 5_000  # one entry has the sources


def test_opened_once_by_a_process(made, monkeypatch):
    opened, begin = [], cogpu.File._of_mosaic.__func__
    counting = classmethod(lambda cls, mosaic: opened.append(1) or begin(cls, mosaic))
    monkeypatch.setattr(cogpu.File, "_of_mosaic", counting)
    array = cogpu.open_geotiff(made[0], chunks=32)
    array.compute(scheduler="threads")
    assert len(opened) == 1
    again = pickle.loads(pickle.dumps(array))
    again.compute()
    assert len(opened) == 1  # by its content, which is the same


def test_names_say_what_is_read(made, tmp_path):
    one, same = (cogpu.open_geotiff(made[0], chunks=64).data.name for _ in range(2))
    assert one == same
    assert cogpu.open_geotiff(made[0], chunks=64, composite="last").data.name != one
    assert cogpu.open_geotiff(made[0][:2], chunks=64).data.name != one
    tile(tmp_path, "a.tif", 0, 0, 1)
    first = cogpu.open_geotiff([tmp_path / "a.tif"], chunks=64)
    tile(tmp_path, "a.tif", 0, 0, 2)
    os.utime(tmp_path / "a.tif", ns=(1, 1))
    assert cogpu.open_geotiff([tmp_path / "a.tif"], chunks=64).data.name != first.data.name
    with pytest.raises(cogpu.Error, match="changed"):
        first.compute()


def test_sources_without_a_path(made):
    with open(made[0][0], "rb") as file:
        array = cogpu.open_geotiff([memoryview(file.read()), *made[0][1:]], chunks=64)
    np.testing.assert_array_equal(array[0].compute(scheduler="threads"), composed(made[1], "first"))


def test_the_engine(made):
    from cogpu.engine import Engine

    dataset = xr.open_dataset(made[0], engine=Engine, chunks={"y": 64, "x": 64}, mask_and_scale=False)
    assert dask.is_dask_collection(dataset.band_data.data)
    np.testing.assert_array_equal(dataset.band_data[0].compute(), composed(made[1], "first"))
