"""libcogpu through ctypes for the benchmarks: pixels into NumPy arrays, files from them.

Structs, constants and prototypes come from include/cogpu.h (tools/header_mirror.py).
"""
import ctypes as c
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import header_mirror  # noqa: E402

LIBRARY = Path(os.environ.get("COGPU_LIBRARY", ROOT / "build" / "libcogpu.so"))
u32, i64, u64, pointer = c.c_uint32, c.c_int64, c.c_uint64, c.c_void_p
TYPES = {1: "uint8", 2: "int8", 3: "uint16", 4: "int16", 5: "uint32", 6: "int32", 10: "float32",
         11: "float64"}

MIRROR = header_mirror.read(ROOT / "include" / "cogpu.h")
globals().update({struct.__name__: struct for struct in MIRROR.structs.values()})
AVERAGE = MIRROR.constants["COGPU_RESAMPLE_AVERAGE"]
WRITE = MIRROR.field("cogpu_sink", "write")

cogpu = MIRROR.declare(c.CDLL(str(LIBRARY)))


def call(function, *arguments):
    error = Error()
    if function(*arguments, c.byref(error)):
        raise RuntimeError(error.message.decode())


class File:
    """An open file and its context: threads, and the cache of decoded blocks, whose bytes `cache_bytes` may set."""

    def __init__(self, path, threads=0, **options):
        self.file, self.context, self.image = pointer(), pointer(), Image()
        call(cogpu.cogpu_open, str(path).encode(), None, c.byref(self.file))
        call(cogpu.cogpu_image_info, self.file, 0, c.byref(self.image))
        call(cogpu.cogpu_context_open, c.byref(ContextOptions(threads=threads, **options)),
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
    call(cogpu.cogpu_image_info, file, 0, c.byref(image))
    call(cogpu.cogpu_crs_info, file, 0, c.byref(crs))
    found = crs.code, tuple(image.transform)
    if wkt:
        room = c.create_string_buffer(16384)
        call(cogpu.cogpu_crs_wkt, file, 0, None, room, len(room), c.byref(c.c_size_t()))
    cogpu.cogpu_close(file)
    return found


class Writer:
    """A file that is written by chunks of (bands, rows, width), arrays or rasters wherever they lie; `to` is a
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
            call(cogpu.cogpu_writer_write_rows, self.writer, c.byref(raster), None)
        except RuntimeError:
            cogpu.cogpu_writer_abort(self.writer)
            raise

    def close(self):
        """The bytes of the file."""
        written = Written()
        call(cogpu.cogpu_writer_close, self.writer, c.byref(written))
        return written.bytes
