"""Warps of arrays by affine transforms: with cogpu_cpu_warp, through libwarp_case, and with GDAL's warper."""

import ctypes
import glob
import itertools
import pathlib
from ctypes import c_double, c_uint32, c_void_p

import numpy as np
import rasterio
from rasterio.transform import Affine

from cogpu_ctypes import DTYPES, LIBRARY

METHODS = {"near": 1, "average": 2, "rms": 3, "bilinear": 4, "cubic": 5, "mode": 6, "min": 7, "max": 8, "med": 9,
           "cubicspline": 10, "lanczos": 11, "q1": 12, "q3": 13, "sum": 14}
TYPES = {dtype.str[1:]: number for number, dtype in enumerate(DTYPES) if dtype is not None and dtype.kind in "uif"}
RASTERIO_NAMES = {"u1": "uint8", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "u8": "uint64",
                  "i8": "int64", "f4": "float32", "f8": "float64"}
GDAL_NAMES = {"u1": "Byte", "i1": "Int8", "u2": "UInt16", "i2": "Int16", "u4": "UInt32", "i4": "Int32", "u8": "UInt64",
              "i8": "Int64", "f4": "Float32", "f8": "Float64"}
CRS = "EPSG:32631"
NAMES = (f"/vsimem/warp_case_{i}.tif" for i in itertools.count())


class Case(ctypes.Structure):
    _fields_ = [(name, c_uint32) for name in (
        "method", "bands", "from_type", "to_type", "width", "height", "x", "y", "window_width", "window_height", "target_x",
        "target_y", "target_width", "target_height", "alpha_band", "clamps", "is_exact", "threads")] + [
        ("to_source", c_double * 6), ("to_target", c_double * 6), ("scale_x", c_double), ("scale_y", c_double)] + [
        (name, c_void_p) for name in ("source", "mask", "target", "valid", "nodata", "avoided", "fill")]


def load_library(folder=None):
    return ctypes.CDLL(str((folder or LIBRARY.parent) / "tests" / "libwarp_case.so"))


def gdal():
    """The libgdal inside rasterio, which knows the files of rasterio's MemoryFile."""
    found = glob.glob(str(pathlib.Path(rasterio.__file__).parents[1] / "rasterio.libs" / "libgdal*"))
    lib = ctypes.CDLL(found[0])
    for name in ("GDALOpen", "GDALWarp", "GDALWarpAppOptionsNew"):
        getattr(lib, name).restype = c_void_p
    return lib


def coefficients(affine):
    """In the order of a geotransform."""
    return (c_double * 6)(affine.c, affine.a, affine.b, affine.f, affine.d, affine.e)


def warp(library, source, to_source, size, method, to_type=None, scale=(1, 1), nodata=None, avoided=None, fill=0, mask=None,
         alpha_band=0, clamps=0, is_exact=1, threads=1, window=None, part=None):
    """The target (bands, height, width) of the source, and its validity. `to_source` maps pixels of the target to pixels of the
    source. window: the part (x, y, width, height) of the target. part: the part of the source that is given."""
    bands, height, width = source.shape
    x, y, part_width, part_height = part or (0, 0, width, height)
    given = np.ascontiguousarray(source[:, y:y + part_height, x:x + part_width])
    window = window or (0, 0, *size)
    to_type = np.dtype(to_type or source.dtype)
    target = np.full((bands, window[3], window[2]), 77, to_type)
    valid = np.full(target.shape, 77, np.uint8)
    fills = np.zeros((bands, 16), np.uint8)
    for band, value in enumerate(np.broadcast_to(fill, bands)):
        fills[band, :to_type.itemsize] = np.frombuffer(np.array(value, to_type).tobytes(), np.uint8)
    lists = [None if value is None else np.array(np.broadcast_to(value, bands), np.float64) for value in (nodata, avoided)]
    masks = None if mask is None else np.ascontiguousarray(mask[y:y + part_height, x:x + part_width])

    def address(array):
        return None if array is None else array.ctypes.data

    case = Case(METHODS[method], bands, TYPES[source.dtype.str[1:]], TYPES[to_type.str[1:]], width, height, x, y, part_width,
                part_height, *window, alpha_band, clamps, is_exact, threads, coefficients(to_source),
                coefficients(~to_source), *scale, address(given), address(masks), address(target), address(valid),
                address(lists[0]), address(lists[1]), address(fills))
    assert library.run_warp_case(ctypes.byref(case)) == 0
    return target, valid


def gdal_warp(source, to_source, size, method, to_type=None, scale=(1, 1), nodata=None, dst_nodata=None, alpha=False,
              mask=None, options=()):
    """The same by GDAL. The grid of the target is whole metres from (500000, 5000000) down; the source has the transform."""
    bands, height, width = source.shape
    base = Affine(8, 0, 500000, 0, -8, 5000000)
    to_type = np.dtype(to_type or source.dtype).str[1:]
    name, out = next(NAMES), next(NAMES)
    profile = dict(driver="GTiff", width=width, height=height, count=bands, dtype=RASTERIO_NAMES[source.dtype.str[1:]],
                   crs=CRS, transform=base @ ~to_source)
    if nodata is not None:
        profile["nodata"] = nodata
    if alpha:
        profile.update(ALPHA="YES", photometric="RGB")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(name, "w", **profile) as file:
        file.write(source)
        if mask is not None:
            file.write_mask(mask)
    left, top = base @ (0, 0)
    right, bottom = base @ size
    words = ["-q", "-r", method, "-et", "0", "-wm", "2000", "-ovr", "NONE", "-te", *(repr(v) for v in (left, bottom, right, top)),
             "-ts", *(str(v) for v in size), "-ot", GDAL_NAMES[to_type], "-wo", f"XSCALE={scale[0]!r}", "-wo",
             f"YSCALE={scale[1]!r}", "-of", "GTiff", *options]
    if dst_nodata is not None:
        words += ["-dstnodata", repr(dst_nodata)]
    lib = gdal()
    lib.CPLSetConfigOption(b"GDAL_WARP_USE_TRANSLATION_OPTIM", b"NO")
    argv = (ctypes.c_char_p * (len(words) + 1))(*[word.encode() for word in words], None)
    made = lib.GDALWarpAppOptionsNew(argv, None)
    dataset = c_void_p(lib.GDALOpen(name.encode(), 0))
    result = lib.GDALWarp(out.encode(), None, 1, ctypes.byref(dataset), c_void_p(made), None)
    assert result
    lib.GDALClose(c_void_p(result))
    lib.GDALClose(dataset)
    lib.GDALWarpAppOptionsFree(c_void_p(made))
    with rasterio.open(out) as file:
        pixels = file.read()
    for path in (name, out):
        lib.VSIUnlink(path.encode())
    return pixels
