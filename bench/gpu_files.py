"""The files of the GPU's benchmark: which are read and which are written, and the making of those that are
read (once: they are kept).

Takes the rasters of rasters.py at full size and stores each in every way that is measured. GDAL writes the
files, as it writes those that people have; where rasterio is not installed, and for what GDAL does not
write, the blocks are encoded by the codec libraries themselves: libdeflate, zlib, zstd; LZW and PackBits by
imagecodecs, or by cogpu. Here, so that bench_gpu.py is about measuring alone.
"""
import ctypes
import ctypes.util
import functools
import os
import struct
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatch

import numpy as np

try:
    import imagecodecs
except ImportError:
    imagecodecs = None
try:
    import rasterio
except ImportError:
    rasterio = None

import rasters

WORKERS = len(os.sched_getaffinity(0))
SIDE, SMALL_SIDE, WRITE_SIDE, UNTUNED_SIDE = 10_000, 3600, 8192, 5000
GDAL = getattr(rasterio, "__gdal_version__", None)
GDAL_CODECS = {"deflate": rasters.DEFLATE, "zstd": rasters.ZSTD, "lzw": rasters.LZW,
               "packbits": {"compress": "packbits"}, "none": {}}
COMPRESSIONS = {"deflate": 8, "zlib": 8, "zstd": 50000, "lzw": 5, "packbits": 32773, "none": 1}
SHORT, LONG, DOUBLE = (3, "H"), (4, "I"), (12, "d")  # TIFF's types, and struct's
GEOTIFF = [  # EPSG:32632, pixels of a metre
    (33550, DOUBLE, (1.0, 1.0, 0.0)), (33922, DOUBLE, (0.0, 0.0, 0.0, 356000.0, 5700000.0, 0.0)),
    (34735, SHORT, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632))]
SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}


@dataclass
class Case:
    """A file: which raster, stored how. `block` is the side of a tile, or "s64" for strips of 64 rows."""
    raster: str
    codec: str
    predictor: int = 1
    block: str = "512"
    side: int = 0  # 0: the side of the run

    @property
    def name(self):
        parts = [self.raster, self.codec, f"p{self.predictor}" * (self.predictor > 1), self.block]
        return "-".join(filter(None, parts + [str(self.side or "")]))

    @property
    def is_striped(self):
        return self.block.startswith("s")

    @property
    def rows(self):
        """Of a block."""
        return int(self.block.removeprefix("s"))

    def within(self, side):
        """The same, of a side that is not larger: to try the benchmark."""
        return replace(self, side=min(self.side, side))

    @property
    def written_by_gdal(self):
        return GDAL is not None and self.codec in GDAL_CODECS


GLO_30 = [Case("float32", codec, predictor, "1024", SMALL_SIDE)  # the DEM's own blocks: 16 tiles
          for codec, predictor in (("zlib", 3), ("zlib", 2), ("deflate", 3), ("deflate", 2), ("zstd", 3), ("lzw", 2))]
SENTINEL = [Case("uint16", codec, 2, "1024", 11 * 1024) for codec in ("deflate", "zstd")]  # a scene: 121 tiles
ONE_STRIP = [Case("float32", codec, 3, f"s{SMALL_SIDE}", SMALL_SIDE) for codec in ("deflate", "zstd")]  # of 52 MB
# Rasters that no kernel was tuned with.
UNTUNED = [Case(raster, codec, predictor, side=UNTUNED_SIDE) for codec in ("deflate", "zstd", "lzw")
           for raster, predictor in (("classes", 1), ("sar", 2), ("float64", 3))]


def cases():
    """All of them. "deflate" is what GDAL writes today, by libdeflate; "zlib" stands for older files."""
    ways = [("float32", codec, predictor) for codec in ("deflate", "zstd", "lzw") for predictor in (3, 2)]
    ways += [("float32", "none", 1)] + [("uint16", codec, 2) for codec in ("deflate", "zstd", "lzw")]
    return [Case(*way, block) for way in ways for block in ("512", "256", "s64")] + [
        Case("float32", "deflate", 3, side=SMALL_SIDE), Case("float32", "zlib", 3),
        Case("uint16", "zlib", 2), Case("uint16", "packbits")] + GLO_30 + SENTINEL + ONE_STRIP + UNTUNED


DEFAULT_LEVELS = {"deflate": 6, "zstd": 9}
HIGH_LEVELS = {3: 7, 2: 8}  # of deflate, by predictor


@dataclass
class WriteCase:
    """A file that is written, in tiles of 512; and how its tiles are encoded."""
    raster: str
    codec: str
    predictor: int = 1
    is_high: bool = False
    cog: bool = False

    @property
    def name(self):
        parts = ["write", "cog" * self.cog, self.raster, self.codec, f"p{self.predictor}" * (self.predictor > 1),
                 "high" * self.is_high]
        return "-".join(filter(None, parts))

    @property
    def level(self):
        """0 where the codec has none."""
        return HIGH_LEVELS[self.predictor] if self.is_high else DEFAULT_LEVELS.get(self.codec, 0)


def write_cases():
    return [WriteCase("float32", "deflate", 3), WriteCase("uint16", "deflate", 2),
            WriteCase("float32", "deflate", 3, is_high=True), WriteCase("float32", "deflate", 2, is_high=True),
            WriteCase("float32", "zstd", 3), WriteCase("float32", "zstd", 2), WriteCase("float32", "lzw", 2),
            WriteCase("float32", "deflate", 3, cog=True), WriteCase("float32", "none")]


def encode_cases():
    """Of those that are written, the ones whose tiles are encoded in a way of their own."""
    return [case for case in write_cases() if case.codec != "none" and not case.cog]


def chosen(field, names):
    """The cases whose names have one of these parts, with * for anything; all, if there are none."""
    return [case for case in field
            if not names or any(fnmatch(case.name, f"*{name}*") for name in names)]


# ---- by GDAL -----------------------------------------------------------------------------------

def write_by_gdal(path, pixels, case):
    layout = ({"blockysize": case.rows} if case.is_striped else
              {"tiled": True, "blockxsize": case.rows, "blockysize": case.rows})
    predictor = {"predictor": case.predictor} if case.predictor > 1 else {}
    rasters.write(path, pixels[None], layout | GDAL_CODECS[case.codec] | predictor)


# ---- by ourselves ------------------------------------------------------------------------------

def streamed(frame):
    """A zstd frame of known size as libtiff writes it, without the size in advance: a window
    (4 MiB, where the frame has none) in the place of the size, and an empty last block (RFC 8878, 3.1.1)."""
    flags = frame[4]
    assert not flags & 0x07, "without check sum and dictionary"
    is_single = bool(flags & 0x20)
    window = b"\x60" if is_single else frame[5:6]
    first = at = (5 if is_single else 6) + (int(is_single), 2, 4, 8)[flags >> 6]
    while not frame[at] & 1:  # the last block's header has bit 0 set; type 1 repeats a single byte
        header = int.from_bytes(frame[at:at + 3], "little")
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    return frame[:4] + b"\0" + window + frame[first:at] + bytes([frame[at] & 0xFE]) + frame[at + 1:] + b"\1\0\0"


@functools.cache
def library(name, *functions):
    """A codec library of this machine, or the one that COGPU_LIBDEFLATE or COGPU_LIBZSTD names. Its functions return
    sizes or pointers."""
    found = os.environ.get(f"COGPU_LIB{name.upper()}") or ctypes.util.find_library(name)
    if not found:
        raise OSError(f"no lib{name} on this machine")
    loaded = ctypes.CDLL(found)
    for function in functions:
        getattr(loaded, function).restype = ctypes.c_size_t
    return loaded


def by_libdeflate(data, level=6):
    if imagecodecs:
        return imagecodecs.deflate_encode(data, level)
    deflate = library("deflate", "libdeflate_alloc_compressor", "libdeflate_zlib_compress",
                      "libdeflate_zlib_compress_bound")
    compressor = ctypes.c_void_p(deflate.libdeflate_alloc_compressor(level))
    size = ctypes.c_size_t(len(data))
    stored = ctypes.create_string_buffer(deflate.libdeflate_zlib_compress_bound(compressor, size))
    count = deflate.libdeflate_zlib_compress(compressor, data, size, stored, ctypes.c_size_t(len(stored)))
    deflate.libdeflate_free_compressor(compressor)
    return stored.raw[:count]


def by_zstd(data, level=9):
    if imagecodecs:
        return bytes(imagecodecs.zstd_encode(data, level))
    zstd = library("zstd", "ZSTD_compress", "ZSTD_compressBound")
    size = ctypes.c_size_t(len(data))
    stored = ctypes.create_string_buffer(zstd.ZSTD_compressBound(size))
    count = zstd.ZSTD_compress(stored, ctypes.c_size_t(len(stored)), data, size, level)
    return stored.raw[:count]


ENCODERS = {
    "none": bytes,
    "deflate": by_libdeflate,
    "zlib": lambda data: zlib.compress(data, 6),
    "zstd": lambda data: streamed(by_zstd(data)),
    "lzw": lambda data: imagecodecs.lzw_encode(data),  # clears its table at other places than libtiff
    "packbits": lambda data: imagecodecs.packbits_encode(data),
}
OF_IMAGECODECS = ("lzw", "packbits")


def blocks(pixels, case):
    """Tiles, those at the edges filled up with zeros, or strips, the last one shorter; in file order."""
    height, width, *_ = pixels.shape
    side = case.rows
    if case.is_striped:
        yield from (pixels[y:y + side] for y in range(0, height, side))
        return
    for y in range(0, height, side):
        for x in range(0, width, side):
            tile = pixels[y:y + side, x:x + side]
            missing = [(0, side - n) for n in tile.shape[:2]] + [(0, 0)] * (tile.ndim - 2)
            yield np.pad(tile, missing) if any(n for _, n in missing) else tile


def predicted(pixels, predictor):
    """What a predictor makes of a block (TIFF 6.0, section 14; TIFF technical note 3)."""
    pixels = np.ascontiguousarray(pixels)
    if predictor == 1:
        return pixels
    if predictor == 3:  # the rows' bytes by significance, the highest first
        bytes_of_samples = pixels.astype(pixels.dtype.newbyteorder(">")).view("u1").reshape(*pixels.shape, -1)
        numbers = np.moveaxis(bytes_of_samples, -1, 1).reshape(len(pixels), -1)
    else:
        numbers = pixels.view(f"u{pixels.itemsize}")
    differences = numbers.copy()
    differences[:, 1:] -= numbers[:, :-1]
    return differences


def encode(pixels, case):
    return bytes(ENCODERS[case.codec](predicted(pixels, case.predictor).tobytes()))


def write_by_ourselves(path, pixels, case):
    if case.codec in OF_IMAGECODECS and not imagecodecs:
        write_by_cogpu(path, pixels, case)
        return
    part = path.with_suffix(".part")
    with ThreadPoolExecutor(WORKERS) as pool, open(part, "wb") as file:
        write_tiff(file, pixels, case, pool.map(lambda block: encode(block, case), blocks(pixels, case)))
    part.rename(path)


def write_tiff(file, pixels, case, stored):
    """A TIFF (TIFF 6.0) of pixels (y, x) or (y, x, band): the blocks, then the directory and its values."""
    height, width, bands = (*pixels.shape, 1)[:3]
    file.write(b"II*\0\0\0\0\0")
    offsets, sizes = [], []
    for block in stored:
        offsets.append(file.tell())
        sizes.append(file.write(block))
    layout = ([(278, LONG, (case.rows,)), (273, LONG, offsets), (279, LONG, sizes)] if case.is_striped else
              [(322, LONG, (case.rows,)), (323, LONG, (case.rows,)), (324, LONG, offsets), (325, LONG, sizes)])
    tags = [(256, LONG, (width,)), (257, LONG, (height,)), (258, SHORT, (pixels.itemsize * 8,) * bands),
            (259, SHORT, (COMPRESSIONS[case.codec],)), (262, SHORT, (1,)), (277, SHORT, (bands,)),
            (317, SHORT, (case.predictor,)), (338, SHORT, (0,) * (bands - 1)),
            (339, SHORT, (SAMPLE_FORMATS[pixels.dtype.kind],) * bands), *layout, *GEOTIFF]
    entries = []
    for tag, (kind, letter), values in sorted(entry for entry in tags if entry[2]):
        content = struct.pack(f"<{len(values)}{letter}", *values)
        if len(content) > 4:
            place = file.seek(file.tell() + file.tell() % 2)
            file.write(content)
            content = struct.pack("<I", place)
        entries.append(struct.pack("<HHI", tag, kind, len(values)) + content.ljust(4, b"\0"))
    directory = file.seek(file.tell() + file.tell() % 2)
    file.write(struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4))
    file.seek(4)
    file.write(struct.pack("<I", directory))


def write_by_cogpu(path, pixels, case):
    """By cogpu's encoders on the CPU."""
    import cogpu_lib

    layout = {"strips": 1} if case.is_striped else {"block_width": case.rows}
    writer = cogpu_lib.Writer(path, (1, *pixels.shape), pixels.dtype.name, codec=case.codec.encode(),
                              predictor=case.predictor, block_height=case.rows, **layout)
    writer.push(np.ascontiguousarray(pixels)[None])
    writer.close()


# ---- either ------------------------------------------------------------------------------------

def writer():
    if GDAL:
        return f"GDAL {GDAL}"
    return "libdeflate, zlib and zstd; LZW and PackBits by " + ("imagecodecs" if imagecodecs else "cogpu")


def cannot_make(case):
    """Why a case's file cannot be made here, or None."""
    try:
        if not case.written_by_gdal and not imagecodecs and case.codec in ("deflate", "zstd"):
            library(case.codec)
    except OSError as why:
        return str(why)
    return None


def pixels_of(case, side):
    """(height, width), mapped from the disk."""
    return rasters.raster(case.raster, case.side or side)[0]


def libtiff_lzw_bytes(case, side):
    """Of all tiles as libtiff encodes them; None where there is no libtiff, that is, no GDAL."""
    if not GDAL:
        return None
    import tifffile

    with tifffile.TiffFile(file(Case(case.raster, "lzw", case.predictor, side=side), side)) as written:
        return sum(written.pages[0].databytecounts)


def file(case, side):
    """The path of a case's file; made if it is not there."""
    writer = "gdal-" if case.written_by_gdal else ""
    path = rasters.DATA / f"gpu-{writer}{case.name}{'' if case.side else f'-{side}'}.tif"
    if not path.exists():
        start = time.monotonic()
        write = write_by_gdal if case.written_by_gdal else write_by_ourselves
        write(path, pixels_of(case, side), case)
        print(f"made {path.name} in {time.monotonic() - start:.1f} s", file=sys.stderr)
    return path
