"""VRTs in Python: written as gdalbuildvrt writes them, and opened as files."""

import os
import pickle

import numpy as np
import pytest
import rasterio
from mosaic_made import composed, NODATA, tile, tiles

import cogpu
from cogpu import lazy
from cogpu.errors import InvalidArgumentError

xr = pytest.importorskip("xarray")


@pytest.fixture
def made(tmp_path):
    return tiles(tmp_path)


def test_written_and_read_by_gdal(made, tmp_path):
    paths, placed = made
    for composite in ("first", "last"):
        assert cogpu.write_vrt(tmp_path / "all.vrt", paths, composite=composite) is None
        with rasterio.open(tmp_path / "all.vrt") as file:
            np.testing.assert_array_equal(file.read(1), composed(placed, composite))
            assert file.nodata == NODATA and file.crs.to_epsg() == 32633
        with cogpu.open(tmp_path / "all.vrt") as file:
            np.testing.assert_array_equal(np.asarray(file.read())[0], composed(placed, composite))
            assert file.nodata == NODATA and file.crs == "EPSG:32633"
            assert {source.path for source in file.sources} == set(paths)


def test_paths_are_relative(made, tmp_path):
    paths, placed = made
    cogpu.write_vrt(tmp_path / "all.vrt", paths)
    text = (tmp_path / "all.vrt").read_text()
    assert 'relativeToVRT="1">tile0.tif<' in text and str(tmp_path) not in text
    os.rename(tmp_path, f"{tmp_path}-moved")
    np.testing.assert_array_equal(cogpu.open_geotiff(f"{tmp_path}-moved/all.vrt")[0], composed(placed, "first"))
    os.rename(f"{tmp_path}-moved", tmp_path)


def test_targets(made, tmp_path):
    content = cogpu.write_vrt(None, made[0])
    assert bytes(content).startswith(b"<VRTDataset")
    with cogpu.open_mosaic(made[0]) as mosaic:
        cogpu.write_vrt(tmp_path / "file.vrt", mosaic)
    with rasterio.open(tmp_path / "file.vrt") as file:
        np.testing.assert_array_equal(file.read(1), composed(made[1], "first"))
    with open(tmp_path / "object.vrt", "wb") as target:
        cogpu.write_vrt(target, made[0])
    assert (tmp_path / "object.vrt").read_bytes().startswith(b"<VRTDataset")


def test_what_a_vrt_cannot_say(made, tmp_path):
    for words in ({"composite": "mean"}, ):
        with pytest.raises(cogpu.UnsupportedError):
            cogpu.write_vrt(tmp_path / "a.vrt", made[0], **words)
    with pytest.raises(TypeError, match="a VRT does not reproject"):
        cogpu.write_vrt(tmp_path / "a.vrt", made[0], crs=3857)
    with cogpu.open_mosaic(made[0], crs=3857) as mosaic, pytest.raises(cogpu.UnsupportedError):
        cogpu.write_vrt(tmp_path / "a.vrt", mosaic)
    with cogpu.open(made[0][0]) as file, pytest.raises(cogpu.UnsupportedError):
        cogpu.write_vrt(tmp_path / "a.vrt", file)  # a source without a path
    assert not (tmp_path / "a.vrt").exists()


def test_opened_lazily_and_in_parts(made, tmp_path):
    pytest.importorskip("dask")
    from cogpu.engine import Engine

    cogpu.write_vrt(tmp_path / "all.vrt", made[0])
    whole = composed(made[1], "first")
    array = cogpu.open_geotiff(tmp_path / "all.vrt", chunks=64)
    assert array.name == "all"
    np.testing.assert_array_equal(array[0].compute(scheduler="threads"), whole)
    np.testing.assert_array_equal(cogpu.open_geotiff(tmp_path / "all.vrt", window=(5, 6, 70, 80))[0], whole[5:70, 6:80])
    dataset = xr.open_dataset(tmp_path / "all.vrt", engine=Engine, mask_and_scale=False)
    np.testing.assert_array_equal(dataset.band_data[0], whole)
    again = pickle.loads(pickle.dumps(cogpu.open(tmp_path / "all.vrt")))
    np.testing.assert_array_equal(np.asarray(again.read())[0], whole)


def test_the_engine_knows_the_ending(monkeypatch):
    import importlib.util

    from cogpu.engine import Engine

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rioxarray" else find(name))
    assert Engine().guess_can_open("a.vrt") and Engine().guess_can_open("A.VRT")


def test_a_grid_of_its_own(made, tmp_path):
    cogpu.write_vrt(tmp_path / "all.vrt", made[0])
    direct = cogpu.open_geotiff(made[0], resolution=20, resampling="nearest", full_resolution=True)
    np.testing.assert_array_equal(cogpu.open_geotiff(tmp_path / "all.vrt", resolution=20, full_resolution=True), direct)


def test_sources_that_change(made, tmp_path):
    cogpu.write_vrt(tmp_path / "all.vrt", made[0][:1])
    np.testing.assert_array_equal(cogpu.open_geotiff(tmp_path / "all.vrt")[0], made[1][0, :150, :150])
    pixels = tile(tmp_path, "tile0.tif", 0, 0, 9)
    np.testing.assert_array_equal(cogpu.open_geotiff(tmp_path / "all.vrt")[0], pixels)


def test_which_sources_a_vrt_may_name(made, tmp_path):
    (tmp_path / "below").mkdir()
    cogpu.write_vrt(tmp_path / "below" / "all.vrt", made[0])
    np.testing.assert_array_equal(cogpu.open_geotiff(tmp_path / "below" / "all.vrt")[0], composed(made[1], "first"))
    for opener in (cogpu.open, cogpu.open_geotiff):
        with pytest.raises(cogpu.Error, match="tile"):
            opener(tmp_path / "below" / "all.vrt", vrt_sources="below")
    with pytest.raises(InvalidArgumentError, match="vrt_sources"):
        cogpu.open(tmp_path / "below" / "all.vrt", vrt_sources="all")


def test_what_a_written_array_is_made_of(made, tmp_path):
    """Its sources, whose sidecars must stay while it is written."""
    pytest.importorskip("dask")
    cogpu.write_vrt(tmp_path / "all.vrt", made[0])
    array = cogpu.open_geotiff(tmp_path / "all.vrt", chunks=64)
    assert lazy.paths_of(array.data) == sorted([*made[0], str(tmp_path / "all.vrt")])
    assert lazy.paths_of(cogpu.open_geotiff(made[0], chunks=64).data) == sorted(made[0])
