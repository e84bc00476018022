"""The files of the GPU's benchmark: which are read and which are written, and the making of those that are
read (once: they are kept).

Takes the rasters of rasters.py at full size and stores each in every way that is measured. GDAL writes the
files, as it writes those that people have; where rasterio is not installed, and for what GDAL does not
write, the blocks are encoded here. Here, so that bench_gpu.py is about measuring alone.
"""
import os
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch

import imagecodecs
import numpy as np
import rasterio
import tifffile

import rasters

WORKERS = len(os.sched_getaffinity(0))
SIDE, SMALL_SIDE, WRITE_SIDE = 10_000, 3600, 8192
GDAL = getattr(rasterio, "__gdal_version__", None)  # None: rasterio is a stand-in that cannot write
GDAL_CODECS = {"deflate": rasters.DEFLATE, "zstd": rasters.ZSTD, "lzw": rasters.LZW,
               "packbits": {"compress": "packbits"}, "none": {}}
COMPRESSIONS = {"deflate": 8, "zlib": 8, "zstd": 50000, "lzw": 5, "packbits": 32773, "none": 1}
GEOTIFF = [  # EPSG:32632, pixels of a metre
    (33550, "d", 3, (1.0, 1.0, 0.0), True),
    (33922, "d", 6, (0.0, 0.0, 0.0, 356000.0, 5700000.0, 0.0), True),
    (34735, "H", 16, (1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3072, 0, 1, 32632), True),
]


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

    @property
    def written_by_gdal(self):
        return GDAL is not None and self.codec in GDAL_CODECS


def cases():
    """All of them. "deflate" is what GDAL writes today, by libdeflate; "zlib" stands for older files."""
    ways = [("float32", codec, predictor) for codec in ("deflate", "zstd", "lzw") for predictor in (3, 2)]
    ways += [("float32", "none", 1)] + [("uint16", codec, 2) for codec in ("deflate", "zstd", "lzw")]
    return [Case(*way, block) for way in ways for block in ("512", "256", "s64")] + [
        Case("float32", "deflate", 3, side=SMALL_SIDE), Case("float32", "zlib", 3),
        Case("uint16", "zlib", 2), Case("uint16", "packbits")]


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
    (4 MiB) in the place of the size, and an empty last block."""
    flags = frame[4]
    assert flags & 0x27 == 0x20, "a single segment without check sum and dictionary"
    first = at = 5 + (1, 2, 4, 8)[flags >> 6]
    while not frame[at] & 1:  # the last block's header has bit 0 set; type 1 repeats a single byte
        header = int.from_bytes(frame[at:at + 3], "little")
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
    return frame[:4] + b"\0\x60" + frame[first:at] + bytes([frame[at] & 0xFE]) + frame[at + 1:] + b"\1\0\0"


ENCODERS = {
    "none": bytes,
    "deflate": lambda data: imagecodecs.deflate_encode(data, 6),
    "zlib": lambda data: zlib.compress(data, 6),
    "zstd": lambda data: streamed(imagecodecs.zstd_encode(data, 9)),
    "lzw": imagecodecs.lzw_encode,  # clears its table at other places than libtiff
    "packbits": imagecodecs.packbits_encode,
}


def blocks(pixels, case):
    """Tiles, those at the edges filled up with zeros, or strips, the last one shorter; in file order."""
    height, width = pixels.shape
    side = case.rows
    if case.is_striped:
        yield from (pixels[y:y + side] for y in range(0, height, side))
        return
    for y in range(0, height, side):
        for x in range(0, width, side):
            tile = pixels[y:y + side, x:x + side]
            missing = [(0, side - n) for n in tile.shape]
            yield np.pad(tile, missing) if any(n for _, n in missing) else tile


def encode(pixels, case):
    pixels = np.ascontiguousarray(pixels)
    if case.predictor == 2:
        pixels = imagecodecs.delta_encode(pixels.view(f"u{pixels.itemsize}"), axis=-1)
    elif case.predictor == 3:
        pixels = imagecodecs.floatpred_encode(pixels, axis=-1)
    return bytes(ENCODERS[case.codec](np.asarray(pixels).tobytes()))


def write_by_ourselves(path, pixels, case):
    layout = {"rowsperstrip": case.rows} if case.is_striped else {"tile": (case.rows,) * 2}
    part = path.with_suffix(".part")
    with ThreadPoolExecutor(WORKERS) as pool:
        stored = pool.map(lambda block: encode(block, case), blocks(pixels, case))
        tifffile.imwrite(part, stored, shape=pixels.shape, dtype=pixels.dtype, photometric="minisblack",
                         compression=COMPRESSIONS[case.codec], metadata=None, software=False,
                         extratags=GEOTIFF, predictor=case.predictor > 1, **layout)
    if case.predictor == 2:  # tifffile knows no 2 for floats, which GDAL writes
        with tifffile.TiffFile(part, mode="r+") as written:
            written.pages[0].tags["Predictor"].overwrite(2)
    part.rename(path)


# ---- either ------------------------------------------------------------------------------------

def writer():
    return f"GDAL {GDAL}" if GDAL else "imagecodecs, since rasterio is not installed"


def pixels_of(case, side):
    """(height, width), mapped from the disk."""
    return rasters.raster(case.raster, case.side or side)[0]


def libtiff_lzw_bytes(case, side):
    """Of all tiles as libtiff encodes them; None where there is no libtiff, that is, no GDAL."""
    if not GDAL:
        return None
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
