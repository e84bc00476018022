"""Who is measured: cogpu, GDAL's two drivers, tifffile, async-geotiff, and the codec libraries alone.

A contender opens a path with a number of threads; what it opens reads all, or a window (x, y, width,
height), into a fresh (bands, height, width) array, as rasterio does. Here, so that bench.py treats all
alike.
"""
import asyncio
import ctypes
import os
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import rasterio
import tifffile
from async_geotiff import GeoTIFF, Window
from async_tiff.store import LocalStore
from rasterio.windows import Window as RasterioWindow

from common import ALL

try:
    import cogpu_lib
except OSError:  # not built: the peers can be measured alone
    cogpu_lib = None

warnings.filterwarnings("ignore", message="Striped GeoTIFFs")


class Contender:
    def __init__(self, name, opener, threads=(1, ALL), jobs=("whole", "windows")):
        self.name, self.open, self.threads, self.jobs = name, opener, threads, jobs


class Gdal:
    """GDAL through rasterio. Its block cache, 5 % of the memory by default, ends with each close."""

    def __init__(self, driver, path, threads):
        self.file = rasterio.open(path, driver=driver, NUM_THREADS=threads)

    def read(self, window=None):
        return self.file.read(window=window and RasterioWindow(*window))

    def close(self):
        self.file.close()


def gdal_info(driver):
    def info(path):
        with rasterio.open(path, driver=driver) as file:
            return file.crs, file.transform
    return info


def gdal_c_info():
    """The same without rasterio's share: GDAL's C API, from the library inside rasterio's wheel."""
    wheel = Path(rasterio.__file__).parent.parent / "rasterio.libs"
    gdal, pointer = ctypes.CDLL(str(next(wheel.glob("libgdal*")))), ctypes.c_void_p
    gdal.GDALOpenEx.restype = gdal.GDALGetSpatialRef.restype = pointer
    gdal.OSRGetAuthorityCode.restype = ctypes.c_char_p
    drivers = (ctypes.c_char_p * 2)(b"GTiff", None)

    def info(path):
        file = pointer(gdal.GDALOpenEx(str(path).encode(), 2, drivers, None, None))
        transform = (ctypes.c_double * 6)()
        gdal.GDALGetGeoTransform(file, transform)
        code = gdal.OSRGetAuthorityCode(pointer(gdal.GDALGetSpatialRef(file)), None)
        gdal.GDALClose(file)
        return code, tuple(transform)
    return info


class Tifffile:
    """tifffile with imagecodecs. Its pixels come chunky; the bands are moved to the front as a view,
    which costs nothing. Windows are put together from the blocks that it decodes: it has no call for
    them without zarr."""

    def __init__(self, path, threads):
        self.file, self.threads = tifffile.TiffFile(path), threads
        self.page = self.file.pages[0]
        self.pool = ThreadPoolExecutor(threads)

    def read(self, window=None):
        if window:
            return self.read_window(*window)
        pixels = self.page.asarray(maxworkers=self.threads)
        return np.moveaxis(pixels, 2, 0) if pixels.ndim == 3 else pixels[None]

    def read_window(self, x, y, width, height):
        page, handle = self.page, self.file.filehandle.fileno()
        rows, columns = page.chunks[:2]
        across = -(-page.imagewidth // columns)
        out = np.empty((height, width, page.samplesperpixel), page.dtype)

        def block(place):
            index = place[0] * across + place[1]
            stored = os.pread(handle, page.databytecounts[index], page.dataoffsets[index])
            pixels, _, _ = page.decode(stored, index, jpegtables=page.jpegtables)
            top, left = place[0] * rows - y, place[1] * columns - x
            to = out[max(top, 0):top + rows, max(left, 0):left + columns]
            to[:] = pixels[0][max(-top, 0):, max(-left, 0):][:to.shape[0], :to.shape[1]]

        places = [(j, i) for j in range(y // rows, (y + height - 1) // rows + 1)
                  for i in range(x // columns, (x + width - 1) // columns + 1)]
        list((self.pool.map if self.threads > 1 else map)(block, places))
        return np.moveaxis(out, 2, 0)

    def close(self):
        self.pool.shutdown()
        self.file.close()


def tifffile_info(path):
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].geotiff_tags
        return tags["ProjectedCSTypeGeoKey"], tags["ModelPixelScale"], tags["ModelTiepoint"]


class AsyncGeotiff:
    """async-geotiff with its own threads, one for each CPU core: it has no parameter for them."""
    loop = asyncio.new_event_loop()

    def __init__(self, path, threads):
        self.file = self.loop.run_until_complete(
            GeoTIFF.open(path.name, store=LocalStore(str(path.parent))))

    def read(self, window=None):
        return self.loop.run_until_complete(self.file.read(window=window and Window(*window))).data

    def close(self):
        self.file = None


def async_info(path):
    file = AsyncGeotiff(path, ALL).file
    return file.crs, file.transform


class CodecAlone:
    """libdeflate or zstd from memory to memory, one thread, into one reused block."""
    library = None

    def __init__(self, path, threads):
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            self.codec = {8: b"deflate", 50000: b"zstd"}[page.compression]
            self.offsets = np.array(page.dataoffsets, "uint64")
            self.sizes = np.array(page.databytecounts, "uint64")
            self.block_bytes = int(np.prod(page.chunks)) * page.dtype.itemsize
        self.stored = np.fromfile(path, "uint8")

    @classmethod
    def build(cls, folder):
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / "codec_alone.so"
        part = made.with_suffix(f".{os.getpid()}")  # another run may have the old one loaded
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", part,
                        Path(__file__).parent / "codec_alone.c", "-ldeflate", "-lzstd"], check=True)
        part.rename(made)
        cls.library = ctypes.CDLL(str(made))
        cls.library.decode_blocks.restype = ctypes.c_size_t

    def read(self):
        done = self.library.decode_blocks(
            self.codec, *(ctypes.c_void_p(a.ctypes.data) for a in (self.stored, self.offsets, self.sizes)),
            ctypes.c_size_t(len(self.sizes)), ctypes.c_size_t(self.block_bytes))
        assert done == len(self.sizes), "the codec library failed on a block"

    def close(self):
        self.stored = None


def other_inflates():
    """Other deflate libraries, where imagecodecs has them: block by block from memory into one buffer."""
    import imagecodecs
    found = {"ISA-L alone": getattr(imagecodecs, "isal_decode", None),
             "zlib-ng alone": getattr(imagecodecs, "zlibng_decode", None)}

    def decoder(decode):
        def read(alone):
            buffer = np.empty(alone.block_bytes, "u1")
            for offset, size in zip(alone.offsets.tolist(), alone.sizes.tolist()):
                decode(alone.stored[offset:offset + size], out=buffer)
        return read
    return {name: decoder(decode) for name, decode in found.items() if decode}


class SameArray:
    """cogpu into an array that was read into before, as the codec alone reuses its block: neither has
    page faults."""
    kept = {}

    def __init__(self, path, threads):
        self.file = cogpu_lib.File(path, threads)

    def array(self, shape, kind):
        if (shape, kind) not in self.kept:
            self.kept.clear()
            self.kept[shape, kind] = np.full(shape, 1, kind)
        return self.kept[shape, kind]

    def read(self, window=None):
        return self.file.read(window, self.array)

    def close(self):
        self.file.close()


def peers():
    return [
        Contender("GDAL GTiff", lambda path, n: Gdal("GTiff", path, n)),
        Contender("GDAL LIBERTIFF", lambda path, n: Gdal("LIBERTIFF", path, n)),
        Contender("tifffile", Tifffile),
        Contender("async-geotiff", AsyncGeotiff, threads=(ALL,)),
    ]


def contenders():
    """Us first, where the library is built; then the peers."""
    if cogpu_lib is None:
        return peers()
    return [
        Contender("cogpu", cogpu_lib.File),
        Contender("cogpu, same array", SameArray, threads=(1,), jobs=("whole",)),
        Contender("cogpu, no cache", lambda path, n: cogpu_lib.File(path, n, cache_bytes=0), jobs=("windows",)),
    ] + peers()


def infos():
    """Who says a file's coordinate system and transform, and how."""
    peers = {"GDAL GTiff, C API": gdal_c_info(), "GDAL GTiff": gdal_info("GTiff"),
             "GDAL LIBERTIFF": gdal_info("LIBERTIFF"), "tifffile": tifffile_info,
             "async-geotiff": async_info}
    if cogpu_lib is None:
        return peers
    return {"cogpu": cogpu_lib.open_info,
            "cogpu, WKT": lambda path: cogpu_lib.open_info(path, wkt=True)} | peers
