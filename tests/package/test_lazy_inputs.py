"""A file that an array reads lazily is not removed when that array replaces the file it is a sidecar of."""

import os

import numpy as np
import pytest

import cogpu

xr = pytest.importorskip("xarray")
da = pytest.importorskip("dask.array")

PIXELS = np.arange(64 * 64, dtype="u2").reshape(64, 64)


@pytest.fixture
def pair(tmp_path):
    """A file, and a GeoTIFF that readers take for its overviews."""
    cogpu.to_geotiff(PIXELS[:32, :32], tmp_path / "x.tif")
    cogpu.to_geotiff(PIXELS, tmp_path / "x.tif.ovr")
    return tmp_path / "x.tif", tmp_path / "x.tif.ovr"


def by_dask(path):
    return cogpu.open_geotiff(path, chunks=32)


def by_dask_and_arithmetic(path):
    return cogpu.open_geotiff(path, chunks=32).data[:, ::-1] + np.uint16(1)


def by_xarray(path):
    return xr.open_dataset(path, engine="cogpu")["band_data"]


def by_xarray_and_dask(path):
    return xr.open_dataset(path, engine="cogpu", chunks={})["band_data"]


@pytest.mark.parametrize("read", [by_dask, by_dask_and_arithmetic, by_xarray, by_xarray_and_dask])
@pytest.mark.parametrize("name", ["same", "symlink", "hardlink"])
def test_lazy_input_is_not_removed(pair, read, name):
    target, beside = pair
    source = beside
    if name != "same":
        source = beside.parent / "other.tif"
        (os.symlink if name == "symlink" else os.link)(beside, source)
    array = read(str(source))
    before = {path: path.read_bytes() for path in pair}
    with pytest.raises(cogpu.InvalidArgumentError, match="x.tif.ovr is an input"):
        cogpu.to_geotiff(array, target)
    assert {path: path.read_bytes() for path in pair} == before
    cogpu.to_geotiff(array, target.parent / "elsewhere.tif")
    assert (target.parent / "elsewhere.tif").exists()


def test_a_lazy_file_onto_itself(pair):
    """What is replaced by itself takes its sidecars with it, as before."""
    target, beside = pair
    cogpu.to_geotiff(by_dask(str(target)), target)
    assert not beside.exists() and (cogpu.open(target).read() == PIXELS[:32, :32]).all()


def test_other_arrays_replace_sidecars(pair):
    target, beside = pair
    by_dask(str(beside))
    cogpu.to_geotiff(PIXELS, target)
    assert not beside.exists()
