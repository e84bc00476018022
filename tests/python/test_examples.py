"""examples/read_cupy.py, with the emulated device and NumPy in the place of a GPU and CuPy. The examples in C are run
by tests/run.py."""

import gc
import sys
import weakref

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio

sys.path.insert(0, str(cogpu.ROOT / "examples"))


@pytest.fixture
def read_cupy(monkeypatch):
    import read_cupy  # it finds the library that cogpu_ctypes has loaded
    monkeypatch.setattr(read_cupy, "DEVICE", read_cupy.EMU)
    return read_cupy


@pytest.fixture
def dem(tmp_path):
    pixels = np.random.default_rng(3).normal(900, 50, (2, 90, 150)).astype("f4")
    pixels[:, 7, 20:40] = -9999
    with rasterio.open(tmp_path / "dem.tif", "w", driver="GTiff", count=2, height=90, width=150, dtype="float32",
                       tiled=True, blockxsize=64, blockysize=64, compress="deflate", nodata=-9999) as file:
        file.write(pixels)
    return tmp_path / "dem.tif", np.where(pixels[0] == -9999, np.nan, pixels[0])


def test_an_array_of_a_band(read_cupy, dem):
    path, pixels = dem
    array = np.from_dlpack(read_cupy.Band(path))
    assert array.dtype == "f4" and array.shape == (1, 90, 150)
    assert np.array_equal(array[0], pixels, equal_nan=True)


def test_memory_lives_as_long_as_an_array(read_cupy, dem):
    path, pixels = dem
    band = read_cupy.Band(path)
    alive, first, second = weakref.ref(band), np.from_dlpack(band), np.from_dlpack(band)
    part = second[0, 5:]
    del band, first, second
    gc.collect()
    assert alive() and np.array_equal(part, pixels[5:], equal_nan=True)
    del part
    gc.collect()
    assert not alive()


def test_errors_are_told(read_cupy, tmp_path):
    (tmp_path / "a.tif").write_bytes(b"no TIFF")
    with pytest.raises(RuntimeError, match="TIFF"):
        read_cupy.Band(tmp_path / "a.tif")


def test_numbers_are_those_of_the_header(read_cupy):
    for name in "CUDA", "EMU", "F32":
        assert getattr(read_cupy, name) == cogpu.CONSTANTS[f"COGPU_{name}"]
