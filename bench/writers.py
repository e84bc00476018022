"""Who writes: cogpu, GDAL's GTiff and COG drivers, rio-cogeo and tifffile; and one write, measured.

A writer takes a (bands, height, width) array that is in memory and a path. All store the same: tiles of
512, the same codec, level and predictor; a COG has overviews by average. GDAL and rio-cogeo see the array
itself as their source, without a copy.

As a program: one write in a process of its own, so that its memory is known. A small raster is written
before, which loads and starts what libraries leave until they are needed. Prints JSON.

    writers.py NAME CASE THREADS SIDE PATH      one of the writers, the whole array
    writers.py stream THREADS SIDE PATH         a COG of cogpu's by chunks that are made as they pass
"""
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rasterio
import rasterio.shutil
import tifffile
from rasterio.transform import from_origin
from rio_cogeo.cogeo import cog_translate

import rasters
from common import memory

try:
    import cogpu_lib
except OSError:  # not built: the peers can be measured alone
    cogpu_lib = None

BLOCK, CHUNK = 512, 256
CRS, CORNER = "EPSG:32632", (356000, 5700000)


@dataclass
class Case:
    """A row of the tables: which raster, stored how."""
    raster: str
    codec: str
    level: int = 0
    cog: bool = False

    @property
    def predictor(self):
        return 1 if self.codec == "none" else 3 if self.raster == "float32" else 2

    @property
    def name(self):
        codec = f"{self.codec} {self.level}" if self.level else self.codec
        return f"{self.raster} {codec}" + (f" p{self.predictor}" if self.predictor > 1 else "") + ", COG" * self.cog

    @property
    def kind(self):
        return "COG" if self.cog else "GeoTIFF"


def cases():
    codecs = [("deflate", 6), ("zstd", 9), ("lzw",), ("none",)]
    return [Case(raster, *codec) for raster in ("float32", "uint16") for codec in codecs] + [
        Case(raster, "deflate", 6, cog=True) for raster in ("float32", "uint16")]


def write_cogpu(pixels, path, case, threads):
    writer = open_cogpu(path, pixels.shape, case, threads)
    writer.push(pixels)
    writer.close()


def open_cogpu(path, shape, case, threads):
    return cogpu_lib.Writer(path, shape, case.raster, cog=case.cog, block_width=BLOCK, block_height=BLOCK,
                            codec=case.codec.encode(), compression_level=case.level, predictor=case.predictor,
                            resampling=cogpu_lib.AVERAGE, crs=CRS.encode(), has_transform=1,
                            transform=(CORNER[0], 1, 0, CORNER[1], 0, -1), threads=threads)


def gtiff_options(case, threads):
    levels = {"deflate": {"zlevel": case.level}, "zstd": {"zstd_level": case.level}}
    return {"driver": "GTiff", "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK, "compress": case.codec,
            "predictor": case.predictor, "num_threads": threads, **levels.get(case.codec, {})}


def write_gtiff(pixels, path, case, threads):
    bands, height, width = pixels.shape
    with rasterio.open(path, "w", count=bands, height=height, width=width, dtype=pixels.dtype, crs=CRS,
                       transform=from_origin(*CORNER, 1, 1), **gtiff_options(case, threads)) as file:
        file.write(pixels)


def as_dataset(pixels):
    """The array as a source of GDAL's."""
    bands, height, width = pixels.shape
    kind = {"float32": "Float32", "uint16": "UInt16"}[pixels.dtype.name]
    return rasterio.open(
        f"MEM:::DATAPOINTER={pixels.ctypes.data},PIXELS={width},LINES={height},BANDS={bands},DATATYPE={kind},"
        f"GEOTRANSFORM={CORNER[0]}/1/0/{CORNER[1]}/0/-1,SPATIALREFERENCE={CRS}")


def write_gdal_cog(pixels, path, case, threads):
    with rasterio.Env(GDAL_MEM_ENABLE_OPEN="YES"), as_dataset(pixels) as source:
        rasterio.shutil.copy(source, path, driver="COG", blocksize=BLOCK, compress=case.codec, level=case.level,
                             predictor="YES", overview_resampling="average", num_threads=threads)


def write_rio_cogeo(pixels, path, case, threads):
    options = gtiff_options(case, threads) | {"interleave": "pixel"}
    config = {"GDAL_NUM_THREADS": str(threads), "GDAL_TIFF_OVR_BLOCKSIZE": str(BLOCK)}
    with rasterio.Env(GDAL_MEM_ENABLE_OPEN="YES"), as_dataset(pixels) as source:
        cog_translate(source, path, options, overview_resampling="average", config=config, quiet=True)


def write_tifffile(pixels, path, case, threads):
    codec = {"deflate": "zlib", "none": None}.get(case.codec, case.codec)
    tifffile.imwrite(path, pixels[0], tile=(BLOCK, BLOCK), compression=codec, maxworkers=threads,
                     compressionargs={"level": case.level} if case.level else None,
                     predictor=case.predictor if case.predictor > 1 else None)


def writers(case):
    """By name, us first, where the library is built; then the peers."""
    peers = ({"GDAL COG": write_gdal_cog, "rio-cogeo": write_rio_cogeo} if case.cog else
             {"GDAL GTiff": write_gtiff, "tifffile": write_tifffile})
    return ({"cogpu": write_cogpu} if cogpu_lib else {}) | peers


class Measured:
    """Time and CPU time between enter and leave, several times if need be, and the most memory beyond
    what the process has when it is made."""

    def __init__(self):
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self.before, self.seconds, self.cpu_seconds = memory("VmRSS"), 0, 0

    def __enter__(self):
        self.start = time.perf_counter(), time.process_time()

    def __exit__(self, *_):
        self.seconds += time.perf_counter() - self.start[0]
        self.cpu_seconds += time.process_time() - self.start[1]

    def found(self):
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds,
                "memory": max(memory("VmHWM") - self.before, 0)}


def write_once(name, case, threads, side, path):
    pixels = np.array(rasters.raster(case.raster, side))
    write = writers(case)[name]
    write(np.ascontiguousarray(pixels[:, :2 * BLOCK, :2 * BLOCK]), path, case, threads)
    os.remove(path)
    measured = Measured()
    with measured:
        write(pixels, path, case, threads)
    return measured.found()


def stream_case():
    return Case("float32", "deflate", 6, cog=True)


def stream_once(threads, side, path):
    """Memory is what there is beyond one chunk; its making is not in the time."""
    source = rasters.small("float32")
    rasters.enlarge(source, side, 0, CHUNK)
    measured = Measured()
    with measured:
        writer = open_cogpu(path, (1, side, side), stream_case(), threads)
    for first in range(0, side, CHUNK):
        chunk = rasters.enlarge(source, side, first, min(CHUNK, side - first))
        with measured:
            writer.push(chunk)
        del chunk
    with measured:
        writer.close()
    found = measured.found()
    return found | {"memory": found["memory"] - CHUNK * side * source.itemsize}


def main(arguments):
    if arguments[0] == "stream":
        threads, side, path = arguments[1:]
        return stream_once(int(threads), int(side), path)
    name, case, threads, side, path = arguments
    return write_once(name, next(c for c in cases() if c.name == case), int(threads), int(side), path)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
