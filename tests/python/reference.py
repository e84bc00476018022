"""GDAL, by rasterio, as the reference: files that it writes, and what it reads of files."""

import contextlib

import cogpu_ctypes as cogpu
import numpy as np
import rasterio
from rasterio.io import MemoryFile


def complex_pairs(array, dtype):
    """Complex floats as the pairs of integers that they were in the file."""
    flat = np.ascontiguousarray(array)
    parts = flat.view(f"f{flat.dtype.itemsize // 2}")
    pairs = np.empty(array.shape, dtype)
    pairs["re"], pairs["im"] = parts[..., 0::2], parts[..., 1::2]
    return pairs


def native(array, name):
    """rasterio's array in the sample type of the file: it reads complex integers as floats."""
    return complex_pairs(array, cogpu.CI16) if name == "complex_int16" else array


def write(array, driver="GTiff", **options):
    """The bytes of a file that GDAL writes. `array` is (bands, height, width)."""
    dtype = options.pop("dtype", array.dtype.name)
    bands, height, width = array.shape
    with MemoryFile() as memory:
        with memory.open(driver=driver, count=bands, height=height, width=width, dtype=dtype,
                         **options) as file:
            file.write(array)
        return bytes(memory.getbuffer())


@contextlib.contextmanager
def opened(data, **options):
    with MemoryFile(data) as memory, memory.open(driver="GTiff", **options) as file:
        yield file


def read(data, **options):
    with opened(data, **options) as file:
        return native(file.read(), file.dtypes[0])


def levels(data):
    """Pixels and masks of each level."""
    with opened(data) as file:
        count = len(file.overviews(1))
    for level in [None, *range(count)]:
        with opened(data, **({} if level is None else {"overview_level": level})) as file:
            yield file.read(), file.read_masks()


def same_levels(left, right):
    left, right = list(levels(left)), list(levels(right))
    return len(left) == len(right) and all(same(a, b) and same(its_mask, mask) for (a, its_mask), (b, mask) in zip(left, right))


def refuses(data):
    """True where GDAL, too, will not read the file: the expectation of an error is proven by it."""
    try:
        read(data)
    except (rasterio.errors.RasterioError, rasterio.errors.RasterioIOError):
        return True
    return False


def same(left, right):
    """Equal to the last bit, but for the payload of NaNs."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.dtype.kind in "fc":
        return np.array_equal(left, right, equal_nan=True)
    return np.array_equal(left, right)


def noise(rng, shape, dtype, bits=None):
    """Half smooth, half wild, with the extremes of the type: what breaks predictors and bit packing."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (noise(rng, shape, f"f{dtype.itemsize // 2}") * (1 + 1j)).astype(dtype)
    if dtype.kind == "f":
        values = np.cumsum(rng.normal(size=shape), axis=-1).astype(dtype)
        wild = [np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny, -0.0]
        values.flat[rng.integers(0, values.size,
                                 max(values.size // 20, 1))] = wild[rng.integers(len(wild))]
        return values
    limits = np.iinfo(dtype)
    top = (1 << bits) - 1 if bits else int(limits.max)
    values = rng.integers(int(limits.min), top, shape, dtype=dtype, endpoint=True)
    smooth = (np.cumsum(rng.integers(0, 3, shape), axis=-1) % (min(top, 1000) + 1)).astype(dtype)
    return np.where(rng.integers(0, 8, shape) == 0, values, smooth).astype(dtype)
