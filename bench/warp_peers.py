"""Who is measured by bench_warp.py: cogpu, GDAL's gdalwarp, rasterio.warp.reproject and rioxarray.

Each warps a file, or pixels in memory, to a grid in another CRS and returns them as an array, or None for what it
cannot do. All have the same grid, resampling, maximal error of positions (0.125 pixels) and number of threads. GDAL is
the library inside rasterio's wheel, called by ctypes: gdalwarp as a function, with threads for decoding as well.
"""
import ctypes
import importlib
import os
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
from rasterio.io import MemoryFile
from rasterio.warp import Resampling, calculate_default_transform, reproject

MAX_ERROR = 0.125
CACHE = 256 << 20  # bytes of decoded blocks; GDAL takes 5 % of the memory


@dataclass(frozen=True)
class Grid:
    crs: str
    transform: rasterio.Affine
    shape: tuple  # rows, columns

    @classmethod
    def inside(cls, path, crs):
        """The middle of the grid that gdalwarp chooses, without the corners that no pixel of the file covers."""
        with rasterio.open(path) as file:
            transform, width, height = calculate_default_transform(file.crs, crs, file.width, file.height, *file.bounds)
        left, top = width // 16, height // 16
        return cls(crs, transform @ rasterio.Affine.translation(left, top), (height - 2 * top, width - 2 * left))

    @property
    def bounds(self):
        return rasterio.transform.array_bounds(*self.shape, self.transform)


# ---- cogpu ---------------------------------------------------------------------------------------

class Cogpu:
    """open_mosaic of one source, and a read of the whole. Pixels in memory are an uncompressed TIFF, which is used in
    place."""
    name = "cogpu"

    def __init__(self):
        self.cogpu = importlib.import_module("cogpu")

    def warp(self, source, grid, method, threads):
        with self.cogpu.open_mosaic([source], crs=grid.crs, transform=grid.transform, shape=grid.shape,
                                    resampling=method, max_error=MAX_ERROR) as file:
            return np.asarray(file.read(threads=threads))

    def held(self, path):
        return plain_bytes(path)

    warp_held = warp


# ---- GDAL ----------------------------------------------------------------------------------------

FUNCTIONS = [("GDALAllRegister", None, []),
             ("GDALOpenEx", c_void_p, [c_char_p, c_int] + [POINTER(c_char_p)] * 3), ("GDALClose", c_int, [c_void_p]),
             ("GDALWarpAppOptionsNew", c_void_p, [POINTER(c_char_p), c_void_p]),
             ("GDALWarpAppOptionsFree", None, [c_void_p]),
             ("GDALWarp", c_void_p, [c_char_p, c_void_p, c_int, POINTER(c_void_p), c_void_p, POINTER(c_int)]),
             ("GDALTranslateOptionsNew", c_void_p, [POINTER(c_char_p), c_void_p]),
             ("GDALTranslateOptionsFree", None, [c_void_p]),
             ("GDALTranslate", c_void_p, [c_char_p, c_void_p, c_void_p, POINTER(c_int)]),
             ("GDALBuildVRTOptionsNew", c_void_p, [POINTER(c_char_p), c_void_p]),
             ("GDALBuildVRTOptionsFree", None, [c_void_p]),
             ("GDALBuildVRT", c_void_p, [c_char_p, c_int, c_void_p, POINTER(c_char_p), c_void_p, POINTER(c_int)]),
             ("GDALGetRasterCount", c_int, [c_void_p]),
             ("GDALDatasetRasterIO", c_int, [c_void_p] + [c_int] * 5 + [c_void_p] + [c_int] * 4 + [c_void_p] + [c_int] * 3),
             ("CPLGetLastErrorMsg", c_char_p, [])]
TYPES = {"uint8": 1, "uint16": 2, "float32": 6}  # GDALDataType


def load_gdal():
    os.environ.setdefault("CPL_LOG", os.devnull)  # warnings of every warp
    folder = Path(rasterio.__file__).parent.parent / "rasterio.libs"
    found = sorted(folder.glob("libgdal-*.so*"))
    if not found:
        raise OSError("rasterio's wheel has no GDAL inside")
    library = ctypes.CDLL(str(found[0]))
    for name, result, arguments in FUNCTIONS:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.GDALAllRegister()
    return library


def texts(words):
    return (c_char_p * (len(words) + 1))(*[str(word).encode() for word in words], None)


class Gdalwarp:
    """gdalwarp into a raster in memory, with the memory that lets it work in large parts."""
    name = "gdalwarp"

    def __init__(self):
        self.library = load_gdal()

    def need(self, pointer):
        if not pointer:
            raise RuntimeError(self.library.CPLGetLastErrorMsg().decode())
        return c_void_p(pointer)

    @contextmanager
    def options(self, function, words):
        made = self.need(getattr(self.library, f"{function}OptionsNew")(texts(words), None))
        yield made
        getattr(self.library, f"{function}OptionsFree")(made)

    def open(self, path, threads):
        return self.need(self.library.GDALOpenEx(os.fsencode(path), 0, None, texts([f"NUM_THREADS={threads}"]), None))

    def warp(self, path, grid, method, threads, error=MAX_ERROR):
        source = self.open(path, threads)
        try:
            return self.warp_held(source, grid, method, threads, error)
        finally:
            self.library.GDALClose(source)

    def warp_held(self, source, grid, method, threads, error=MAX_ERROR):
        words = ["-q", "-of", "MEM", "-t_srs", grid.crs, "-te", *map(repr, grid.bounds), "-ts", grid.shape[1],
                 grid.shape[0], "-r", method, "-et", error, "-wm", 500, "-wo", f"NUM_THREADS={threads}",
                 *(["-multi"] if threads > 1 else [])]
        with self.options("GDALWarpApp", words) as options:
            made = self.need(self.library.GDALWarp(b"", None, 1, byref(source), options, None))
        return Held(self.library, made, grid.shape)

    def held(self, path):
        """The file's pixels in a dataset of GDAL's MEM driver."""
        source = self.open(path, 1)
        with self.options("GDALTranslate", ["-q", "-of", "MEM"]) as options:
            made = self.need(self.library.GDALTranslate(b"", source, options, None))
        self.library.GDALClose(source)
        return made

    def build_vrt(self, path, paths):
        with self.options("GDALBuildVRT", ["-q"]) as options:
            made = self.library.GDALBuildVRT(os.fsencode(path), len(paths), None, texts(paths), options, None)
        self.library.GDALClose(self.need(made))


class Held:
    """A raster of GDAL's in memory: it is copied to an array for the comparison only."""

    def __init__(self, library, dataset, shape):
        self.library, self.dataset, self.shape = library, dataset, shape

    def array(self, dtype):
        bands = self.library.GDALGetRasterCount(self.dataset)
        out = np.empty((bands, *self.shape), dtype)
        height, width = self.shape
        failed = self.library.GDALDatasetRasterIO(self.dataset, 0, 0, 0, width, height, out.ctypes.data_as(c_void_p),
                                                  width, height, TYPES[str(out.dtype)], bands, None, 0, 0, 0)
        if failed:
            raise RuntimeError(self.library.CPLGetLastErrorMsg().decode())
        return out

    def __del__(self):
        self.library.GDALClose(self.dataset)


class Rasterio:
    """rasterio.warp.reproject, from a dataset or an array to an array."""
    name = "rasterio"

    def held(self, path):
        with rasterio.open(path) as file:
            return file.read(), file.transform, file.crs

    def warp(self, path, grid, method, threads):
        with rasterio.Env(GDAL_NUM_THREADS=threads), rasterio.open(path) as file:
            return self.into(rasterio.band(file, file.indexes), file.count, file.dtypes[0], grid, method, threads)

    def warp_held(self, source, grid, method, threads):
        pixels, transform, crs = source
        return self.into(pixels, len(pixels), pixels.dtype, grid, method, threads, src_transform=transform, src_crs=crs)

    def into(self, source, bands, dtype, grid, method, threads, **placed):
        out = np.zeros((bands, *grid.shape), dtype)
        reproject(source, out, dst_transform=grid.transform, dst_crs=grid.crs, resampling=Resampling[method],
                  num_threads=threads, tolerance=MAX_ERROR, warp_mem_limit=500, **placed)
        return out


class Rioxarray:
    """.rio.reproject, which reads all first, in one thread."""
    name = "rioxarray"

    def __init__(self):
        self.rioxarray = importlib.import_module("rioxarray")

    def held(self, path):
        with self.rioxarray.open_rasterio(path) as raster:
            return raster.load()

    def warp(self, path, grid, method, threads):
        with self.rioxarray.open_rasterio(path) as raster:
            return self.warp_held(raster, grid, method, threads)

    def warp_held(self, source, grid, method, threads):
        return source.rio.reproject(grid.crs, transform=grid.transform, shape=grid.shape, resampling=Resampling[method],
                                    num_threads=threads, warp_mem_limit=500).values


def field():
    """The contenders that are installed, and the names of the others."""
    found, absent = [], []
    for kind in (Cogpu, Gdalwarp, Rasterio, Rioxarray):
        try:
            found.append(kind())
        except (ImportError, OSError):
            absent.append(kind.name)
    return found, absent


def pixels_of(made, dtype):
    return made.array(dtype) if isinstance(made, Held) else made


def plain_bytes(path):
    """The file again, without compression, as bytes."""
    with rasterio.open(path) as file, MemoryFile() as memory:
        profile = {"driver": "GTiff", "count": file.count, "height": file.height, "width": file.width,
                   "dtype": file.dtypes[0], "crs": file.crs, "transform": file.transform, "tiled": True,
                   "blockxsize": 512, "blockysize": 512, "interleave": "pixel"}
        with memory.open(**profile) as out:
            out.write(file.read())
        memory.seek(0)
        return memory.read()


# ---- reads of VRTs -------------------------------------------------------------------------------

def read_by_cogpu(path, windows, threads):
    import cogpu
    with cogpu.open(path) as file:
        if windows is None:
            return np.asarray(file.read(threads=threads))
        return [np.asarray(file.read(window=(y, x, y + side, x + side), threads=threads)) for x, y, side in windows]


def read_with_cache(path, windows, threads):
    """GDAL keeps decoded blocks, too."""
    import cogpu
    cogpu.configure(cache_bytes=CACHE)
    try:
        return read_by_cogpu(path, windows, threads)
    finally:
        cogpu.configure()


def read_by_gdal(path, windows, threads):
    with rasterio.Env(GDAL_NUM_THREADS=threads, VRT_NUM_THREADS=threads), rasterio.open(path) as file:
        if windows is None:
            return file.read()
        return [file.read(window=rasterio.windows.Window(x, y, side, side)) for x, y, side in windows]


VRT_READERS = {"cogpu": read_by_cogpu, "cogpu, cache": read_with_cache, "GDAL": read_by_gdal}
