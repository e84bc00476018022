"""libcogpu through ctypes: as much of cogpu.h as the benchmark calls, pixels into NumPy arrays."""
import ctypes as c
import os
from pathlib import Path

import numpy as np

LIBRARY = Path(os.environ.get("COGPU_LIBRARY",
                              Path(__file__).resolve().parent.parent / "build" / "libcogpu.so"))
u32, i64, u64, text, number, pointer = c.c_uint32, c.c_int64, c.c_uint64, c.c_char_p, c.c_double, c.c_void_p
TYPES = {1: "uint8", 2: "int8", 3: "uint16", 4: "int16", 5: "uint32", 6: "int32", 10: "float32",
         11: "float64"}


def struct(name, *fields):
    return type(name, (c.Structure,), {"_fields_": list(fields)})


Error = struct("Error", ("status", c.c_int), ("directory", c.c_int32), ("block", i64), ("offset", i64),
               ("message", c.c_char * 232))
Nodata = struct("Nodata", ("text", text), ("matches", c.c_int), ("value", number), ("i64", i64),
                ("u64", u64))
Image = struct("Image", ("images", u32), ("directory", u32), ("width", u32), ("height", u32),
               ("bands", u32), ("type", c.c_int), ("bits", u32), ("levels", u32), ("layout", c.c_int),
               ("block_width", u32), ("block_height", u32), ("blocks", u64), ("planar", c.c_int),
               ("compression", u32), ("codec", text), ("predictor", u32), ("photometric", u32),
               ("orientation", u32), ("fill_order", u32), ("big_endian", c.c_int),
               ("bigtiff", c.c_int), ("ghost", u32), ("description", text), ("validity", c.c_int),
               ("nodata", Nodata), ("alpha_band", u32), ("premultiplied", c.c_int),
               ("palette", pointer), ("palette_entries", u32), ("has_transform", c.c_int),
               ("transform", number * 6), ("pixel_is_point", c.c_int), ("gcps", pointer),
               ("gcp_count", u32), ("rpc", pointer), ("geokeys", u32), ("items", u32),
               ("warning", text))
Crs = struct("Crs", ("model", text), ("authority", text), ("code", u32), ("vertical", u32),
             ("name", text), ("epoch", number))
Raster = struct("Raster", ("data", pointer), ("type", c.c_int), ("bands", u32), ("height", u32),
                ("width", u32), ("stride_band", i64), ("stride_y", i64), ("stride_x", i64),
                ("device", c.c_int), ("device_index", u32), ("stream", pointer))
ContextOptions = struct("ContextOptions", ("threads", u32), ("cache_bytes", u64), ("device_bytes", u64),
                        ("jpeg_engines", c.c_int), ("network", pointer))
Request = struct("Request", ("image", u32), ("level", u32), ("x", u32), ("y", u32), ("width", u32),
                 ("height", u32), ("bands", pointer), ("band_count", u32), ("part", c.c_int),
                 ("fill_bad_blocks", c.c_int), ("nan_where_invalid", c.c_int), ("scaled", c.c_int),
                 ("threads", u32), ("context", pointer), ("pending", pointer), ("progress", pointer),
                 ("progress_user", pointer))
Sink = struct("Sink", ("path", text), ("keep_sidecars", c.c_int), ("no_replace", c.c_int), ("inputs", pointer),
              ("input_count", u32), ("memory", pointer), ("buffer", pointer),
              ("buffer_bytes", c.c_size_t), ("user", pointer), ("write", pointer), ("commit", pointer),
              ("abort", pointer), ("append_only", c.c_int))
Profile = struct("Profile", ("width", u32), ("height", u32), ("bands", u32), ("type", c.c_int),
                 ("cog", c.c_int), ("strips", c.c_int), ("block_width", u32), ("block_height", u32),
                 ("planar", c.c_int), ("codec", text), ("level", c.c_int), ("quality", c.c_int),
                 ("lossless", c.c_int), ("max_error", number), ("predictor", c.c_int),
                 ("bits", u32), ("bigtiff", c.c_int), ("sparse", c.c_int), ("nodata", text), ("nan_is_nodata", c.c_int),
                 ("photometric", c.c_int),
                 ("alpha_band", u32), ("premultiplied", c.c_int), ("palette", pointer),
                 ("palette_entries", u32), ("mask", c.c_int), ("has_transform", c.c_int),
                 ("transform", number * 6), ("pixel_is_point", c.c_int), ("gcps", pointer),
                 ("gcp_count", u32), ("rpc", pointer), ("crs", text), ("geokeys", pointer),
                 ("geokey_count", u32), ("epoch", number), ("items", pointer), ("item_count", u32), ("description", text),
                 ("tags", pointer), ("tag_count", u32), ("overviews", c.c_int), ("factors", pointer),
                 ("factor_count", u32), ("resampling", c.c_int), ("threads", u32), ("context", pointer),
                 ("device", c.c_int), ("device_index", u32), ("progress", pointer), ("progress_user", pointer))
Memory = struct("Memory", ("data", pointer), ("bytes", c.c_size_t))
Written = struct("Written", ("bytes", u64), ("direct_bytes", u64), ("blocks", u64), ("sparse_blocks", u64), ("levels", u32),
                 ("bigtiff", c.c_int))
AVERAGE = 2

cogpu = c.CDLL(str(LIBRARY))
cogpu.cogpu_version.restype = text
cogpu.cogpu_close.argtypes = cogpu.cogpu_context_close.argtypes = [pointer]
cogpu.cogpu_close.restype = cogpu.cogpu_context_close.restype = None
cogpu.cogpu_info.argtypes = [pointer, u32, pointer, pointer]
cogpu.cogpu_crs_info.argtypes = [pointer, u32, pointer, pointer]
cogpu.cogpu_crs_wkt.argtypes = [pointer, u32, pointer, pointer, c.c_size_t, pointer, pointer]
cogpu.cogpu_writer_push.argtypes = [pointer, pointer, pointer, pointer]
cogpu.cogpu_writer_close.argtypes = [pointer, pointer, pointer]
cogpu.cogpu_writer_abort.argtypes = cogpu.cogpu_memory_release.argtypes = [pointer]
cogpu.cogpu_writer_abort.restype = cogpu.cogpu_memory_release.restype = None


def call(function, *arguments):
    error = Error()
    if function(*arguments, c.byref(error)):
        raise RuntimeError(error.message.decode())


class File:
    """An open file and its context: threads, and a cache of decoded blocks if asked for."""

    def __init__(self, path, threads=0, cache_bytes=0):
        self.file, self.context, self.image = pointer(), pointer(), Image()
        call(cogpu.cogpu_open, str(path).encode(), None, c.byref(self.file))
        call(cogpu.cogpu_info, self.file, 0, c.byref(self.image))
        call(cogpu.cogpu_context_open, c.byref(ContextOptions(threads, cache_bytes)),
             c.byref(self.context))

    def read(self, window=None, new_array=np.empty):
        x, y, width, height = window or (0, 0, self.image.width, self.image.height)
        pixels = new_array((self.image.bands, height, width), TYPES[self.image.type])
        request = Request(x=x, y=y, width=width, height=height, context=self.context)
        raster = Raster(pixels.ctypes.data, self.image.type, *pixels.shape)
        call(cogpu.cogpu_read, self.file, c.byref(request), c.byref(raster), None)
        return pixels

    def close(self):
        cogpu.cogpu_context_close(self.context)
        cogpu.cogpu_close(self.file)


def open_info(path, wkt=False):
    """What an indexer wants of a file: the transform and the EPSG code, or the whole WKT."""
    file, image, crs = pointer(), Image(), Crs()
    call(cogpu.cogpu_open, str(path).encode(), None, c.byref(file))
    call(cogpu.cogpu_info, file, 0, c.byref(image))
    call(cogpu.cogpu_crs_info, file, 0, c.byref(crs))
    found = crs.code, tuple(image.transform)
    if wkt:
        room = c.create_string_buffer(16384)
        call(cogpu.cogpu_crs_wkt, file, 0, None, room, len(room), c.byref(c.c_size_t()))
    cogpu.cogpu_close(file)
    return found


class Writer:
    """A file that is written by swaths of (bands, rows, width), arrays or rasters wherever they lie; `to` is a
    path or a sink, `profile` are fields of cogpu_profile."""

    def __init__(self, to, shape, dtype, **profile):
        self.writer = pointer()
        self.type = next(number for number, name in TYPES.items() if name == dtype)
        bands, height, width = shape
        sink = to if isinstance(to, Sink) else Sink(path=str(to).encode())
        call(cogpu.cogpu_writer_open, c.byref(sink), c.byref(Profile(width, height, bands, self.type, **profile)),
             c.byref(self.writer))

    def push(self, pixels):
        raster = pixels if isinstance(pixels, Raster) else Raster(pixels.ctypes.data, self.type, *pixels.shape)
        try:
            call(cogpu.cogpu_writer_push, self.writer, c.byref(raster), None)
        except RuntimeError:
            cogpu.cogpu_writer_abort(self.writer)
            raise

    def close(self):
        """The bytes of the file."""
        written = Written()
        call(cogpu.cogpu_writer_close, self.writer, c.byref(written))
        return written.bytes
