"""Who writes a raster that lies in GPU memory: cogpu and xarray-spatial; measured, in turns.

A writer's jobs are methods; each opens, writes all and closes, and returns the path or the bytes:
- `memory`: into the library's own, whose pages stay warm from write to write, as malloc keeps what is freed;
- `buffer`: into the caller's, of ordinary pages that are warm;
- `cache`: to a path, without waiting for the disk: into the page cache. cogpu's path is flushed always, so
  here functions of the caller's take the bytes;
- `file`: to a path, flushed.
Beside them, with the bytes of cogpu's file: a bare write to the same place, in both ways, and a bare copy down
from the device. What was there is removed before, outside of the time. Before and after, every file is compared
with the pixels as others read them: cogpu on the CPU, and GDAL where rasterio is installed, else tifffile;
what cogpu writes again has to be the same bytes.

As a program it takes names of cases (gpu_files.py) and prints a line of JSON for each, after one that says who
is there; --peak prints what a COG by chunks of 512 rows takes of the device's and the host's memory, in a
process that has done nothing else.
"""
import argparse
import ctypes as c
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import tifffile

import cogpu_lib
import gpu_files
import rasters
from cogpu_lib import AVERAGE, cogpu, pointer, u64
from common import memory
from gpu_readers import LONG_MS, TYPES, Device, find, noting, spread, time_all, xarray_spatial

CHUNK, BLOCK = 512, 512
CRS, CORNER = 32632, (356000, 5700000)
OK, IO = 0, 3  # cogpu_status
JOBS = ("memory", "buffer", "cache", "file")
libc = c.CDLL(None)
libc.pwrite.argtypes, libc.pwrite.restype = [c.c_int, pointer, c.c_size_t, cogpu_lib.i64], c.c_ssize_t


def keep_freed_pages():
    """Has malloc give freed memory out again, whatever its size and thread, and never back to the system."""
    M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
    for option, value in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_MAX, 0), (M_ARENA_MAX, 1)):
        libc.mallopt(option, value)


def as_array(address, size):
    return np.ctypeslib.as_array((c.c_uint8 * size).from_address(address))


class Bench:
    """The raster on the device, the case, and what cogpu's file holds, once it has been written."""

    def __init__(self, device):
        self.device, self.raster, self.buffer, self.stored = device, None, None, None

    def begin(self, case, side):
        device, self.case, self.stored = self.device, case, None
        if case.raster != self.raster:
            if self.raster:
                device.end()
            self.raster, device.pixels = case.raster, rasters.raster(case.raster, side)[0]
            tiles = -(-side // BLOCK) * BLOCK
            room = 2 * tiles * tiles * device.pixels.itemsize  # for any file
            device.allocate(room)  # from where as many bytes as a file has are copied down, too
            device.upload(np.ascontiguousarray(device.pixels))
            self.buffer = np.ones(room, "u1")

    def raster_of(self, memory, rows):
        pixels = self.device.pixels
        return cogpu_lib.Raster(memory, TYPES[pixels.dtype.name], 1, rows, pixels.shape[1], device=self.device.kind)

    def profile(self):
        case = self.case
        return {"cog": case.cog, "block_width": BLOCK, "block_height": BLOCK, "codec": case.codec.encode(),
                "compression_level": case.level, "predictor": case.predictor, "resampling": AVERAGE, "has_transform": 1,
                "crs": f"EPSG:{CRS}".encode(), "transform": (CORNER[0], 1, 0, CORNER[1], 0, -1),
                "context": self.device.context, "device": self.device.kind}

    def is_same(self, rows, first=0):
        """Whether these are the raster's pixels, bit by bit, from a row on."""
        bits = f"u{rows.itemsize}"
        return np.array_equal(rows.view(bits), self.device.pixels[first:first + len(rows)].view(bits))


# ---- the writers -------------------------------------------------------------------------------

def bytes_of(written):
    return np.fromfile(written, "u1") if isinstance(written, Path) else written


class Writer:
    """Jobs that it does not do are None."""
    memory = buffer = cache = file = note = None
    version = ""

    def __init__(self, bench):
        self.bench = bench

    def wrong(self, written):
        return wrong_pixels(self.bench, written)


class Cogpu(Writer):
    name = "cogpu"

    def __init__(self, bench):
        super().__init__(bench)
        self.version, self.kept = cogpu.cogpu_version().decode(), cogpu_lib.Memory()

    def write(self, sink):
        return self.write_rows(sink, self.bench.raster_of(self.bench.device.raster, len(self.bench.device.pixels)))

    def write_rows(self, sink, rows, **changes):
        pixels = self.bench.device.pixels
        writer = cogpu_lib.Writer(sink, (1, *pixels.shape), pixels.dtype.name, **self.bench.profile() | changes)
        writer.push(rows)
        return writer.close()

    def memory(self, _):
        cogpu.cogpu_memory_free(c.byref(self.kept))
        self.write(cogpu_lib.Sink(memory=c.pointer(self.kept)))
        return as_array(self.kept.data, self.kept.bytes)

    def buffer(self, _):
        room = self.bench.buffer
        return room[:self.write(cogpu_lib.Sink(buffer=room.ctypes.data, buffer_bytes=room.nbytes))]

    def cache(self, path):
        with open(path, "xb", buffering=0) as file:
            put = lambda _, at, start, size: OK if libc.pwrite(file.fileno(), start, size, at) == size else IO
            take = cogpu_lib.WRITE(put)
            self.write(cogpu_lib.Sink(write=take))
        return path

    def file(self, path):
        self.write(path)
        return path

    def is_by_host(self):
        """Whether the file is the one that the host makes of the same pixels: then the device encoded nothing."""
        found = cogpu_lib.Memory()
        self.write_rows(cogpu_lib.Sink(memory=c.pointer(found)), np.array(self.bench.device.pixels)[None], device=0)
        is_same = np.array_equal(as_array(found.data, found.bytes), self.bench.stored)
        cogpu.cogpu_memory_free(c.byref(found))
        return is_same

    def wrong(self, written):
        """The first file by its pixels, all others by its bytes."""
        if self.bench.stored is not None:
            return int(not np.array_equal(bytes_of(written), self.bench.stored))
        self.bench.stored = np.array(bytes_of(written))
        is_encoded = self.bench.case.codec != "none"
        self.note = "the host encoded it" if is_encoded and self.is_by_host() else None
        return super().wrong(written)


class XarraySpatial(Writer):
    """Its to_geotiff(gpu=True), which does not flush, and takes no level on the GPU: measured where the level is
    the default. It gets no coordinate system, for which it would need pyproj."""
    name = "xarray-spatial"

    def __init__(self, bench):
        super().__init__(bench)
        self.array = None
        self.geotiff, self.cupy, self.version = xarray_spatial(bench.device)

    def take_raster(self, pixels):
        """Onto the device by CuPy."""
        import xarray
        self.array = xarray.DataArray(self.cupy.asarray(np.ascontiguousarray(pixels)), dims=("y", "x"))

    def cache(self, path):
        case, pixels = self.bench.case, self.bench.device.pixels
        if case.is_high:
            raise RuntimeError("takes no level on the GPU")
        if self.array is None or self.array.dtype != pixels.dtype:
            self.take_raster(pixels)
        return self.write(path)

    def write(self, path):
        case = self.bench.case
        cog = {"cog": True, "overview_resampling": "mean"} if case.cog else {}
        _, self.note = noting(lambda: self.geotiff.to_geotiff(
            self.array, str(path), compression=case.codec, predictor=case.predictor, tile_size=BLOCK, gpu=True, **cog))
        return path


class Bare(Writer):
    """The bytes of cogpu's file, by one write."""
    name = "bare"

    def cache(self, path, is_flushed=False):
        left = memoryview(self.bench.stored)
        with open(path, "xb", buffering=0) as file:
            while left:
                left = left[file.write(left):]
            if is_flushed:
                os.fsync(file)
        return path

    def file(self, path):
        return self.cache(path, is_flushed=True)

    def wrong(self, written):
        return int(not np.array_equal(bytes_of(written), self.bench.stored))


class Wire(Writer):
    """As many bytes as cogpu's file has down from the device, in one copy to page-locked memory."""
    name = "wire"

    def memory(self, _):
        found = self.bench.device.page_locked("host", self.bench.stored.size)
        self.bench.device.download(self.bench.device.raster, found)
        return found

    def wrong(self, written):
        pixels = self.bench.device.pixels.reshape(-1).view("u1")
        return int(not np.array_equal(written[:pixels.size], pixels[:written.size]))


# ---- whether a file is right -------------------------------------------------------------------

def wrong_pixels(bench, written):
    """How many rows of tiles of a file, or of one in memory, are not the raster's, by all who read it."""
    path = written
    if not isinstance(written, Path):
        path = rasters.DATA / f"cogpu-bench-{os.getpid()}-memory.tif"
        written.tofile(path)
    try:
        return sum(not bench.is_same(rows, first)
                   for read in (rows_by_cogpu, rows_by_gdal if gpu_files.GDAL else rows_by_tifffile)
                   for first, rows in read(path, bench))
    finally:
        if path is not written:
            path.unlink()


def need_layout(bench, levels, *shape):
    """A file of the raster's size; a COG has overviews, if it is of more than a tile, and no other file has."""
    if shape != bench.device.pixels.shape or (levels > 1) != (bench.case.cog and max(shape) > BLOCK):
        raise RuntimeError(f"the file has {levels} levels, the first of {shape}")


def rows_by_cogpu(path, bench):
    file = cogpu_lib.File(path)
    need_layout(bench, file.image.levels, file.image.height, file.image.width)
    for first in range(0, file.image.height, CHUNK):
        yield first, file.read((0, first, file.image.width, min(CHUNK, file.image.height - first)))[0]
    file.close()


def rows_by_gdal(path, bench):
    import rasterio
    from rasterio.windows import Window
    with rasterio.open(path, num_threads=gpu_files.WORKERS) as file:
        need_layout(bench, 1 + len(file.overviews(1)), file.height, file.width)
        for first in range(0, file.height, CHUNK):
            yield first, file.read(1, window=Window(0, first, file.width, min(CHUNK, file.height - first)))


def rows_by_tifffile(path, bench):
    with tifffile.TiffFile(path) as file:
        pixels = file.pages[0].asarray(maxworkers=gpu_files.WORKERS)
        need_layout(bench, len(file.pages), *pixels.shape)
        yield 0, pixels


# ---- measuring ---------------------------------------------------------------------------------

def measure(bench, writers, job, path, repeats):
    """{writer: its times and size, or why it refused} for one job."""
    found, field, remove = {}, {}, lambda: path.unlink(missing_ok=True)
    for writer in writers:
        if getattr(writer, job) is None or bench.stored is None and isinstance(writer, (Bare, Wire)):
            continue
        write = lambda writer=writer: getattr(writer, job)(path)
        remove()
        try:
            written = write()
            size = written.stat().st_size if isinstance(written, Path) else written.size
            found[writer.name] = {"bytes": size, "wrong": writer.wrong(written)}
            field[writer.name] = write
        except Exception as why:  # a peer that cannot write it is a finding, not a failure
            found[writer.name] = {"refused": f"{type(why).__name__}: {why}"[:300]}
        if writer.note:
            found[writer.name]["note"] = writer.note
    for name, times in time_all(field, repeats, remove).items():
        found[name] |= spread(times)
    for writer in writers:
        if writer.name in field and found[writer.name]["ms"] < LONG_MS:
            remove()
            found[writer.name]["wrong"] += writer.wrong(field[writer.name]())
    remove()
    return found


def measure_case(bench, writers, case, picked):
    bench.begin(case, picked.side)
    path = rasters.DATA / f"cogpu-bench-{os.getpid()}.tif"
    return {"file": case.name, "level": case.level, "pixel_bytes": bench.device.pixels.nbytes} | {
        f"to_{job}": measure(bench, writers, job, path, picked.repeats) for job in JOBS}


# ---- memory ------------------------------------------------------------------------------------

class Peak:
    """The most that is taken of the device's and the host's memory from the making of it on."""

    def __init__(self, driver):
        self.driver, self.is_over = driver, False
        Path("/proc/self/clear_refs").write_text("5")  # the host's peak begins anew
        self.host, self.free = memory("VmRSS"), driver.free_bytes()
        self.least = self.free
        self.thread = threading.Thread(target=self.watch, daemon=True)  # it must not outlive a writer that fails
        self.thread.start()

    def watch(self):
        while not self.is_over:
            self.least = min(self.least, self.driver.free_bytes())
            time.sleep(2e-4)

    def found(self):
        self.is_over = True
        self.thread.join()
        device = {"device_bytes": self.free - self.least} if self.free else {}  # the emulator cannot tell
        return device | {"host_bytes": max(memory("VmHWM") - self.host, 0)}


def write_chunks(bench, path, source):
    """By cogpu, through one chunk's memory on the device. Milliseconds of the writer's calls."""
    device, spent = bench.device, 0
    height, width = device.pixels.shape
    chunk = np.ones((CHUNK, width), device.pixels.dtype)  # so that its pages are there
    peak = Peak(device.driver)
    start = time.perf_counter()
    writer = cogpu_lib.Writer(path, (1, height, width), device.pixels.dtype.name, **bench.profile())
    spent += time.perf_counter() - start
    for first in range(0, height, CHUNK):
        rows = chunk[:min(CHUNK, height - first)]
        source.readinto(rows)
        device.upload(rows)
        start = time.perf_counter()
        writer.push(bench.raster_of(device.raster, len(rows)))
        spent += time.perf_counter() - start
    start = time.perf_counter()
    writer.close()
    spent += time.perf_counter() - start
    return {"ms": spent * 1e3, **peak.found()}


def peak_of_cogpu(bench, path):
    """Beyond a chunk. The pixels come from the array's file, since pages that are mapped count as memory, too."""
    pixels = bench.device.pixels
    bench.device.allocate(CHUNK * pixels[0].nbytes)
    with open(pixels.filename, "rb", buffering=0) as source:
        source.seek(pixels.offset)
        return write_chunks(bench, path, source)


def peak_of_xarray_spatial(bench, path):
    """Beyond the raster, which has to be whole; what its kernels take to be compiled is not counted."""
    writer = XarraySpatial(bench)
    writer.take_raster(bench.device.pixels[:2 * BLOCK, :2 * BLOCK])
    writer.write(path)
    writer.take_raster(bench.device.pixels)
    writer.cupy.get_default_memory_pool().free_all_blocks()
    peak, start = Peak(bench.device.driver), time.perf_counter()
    writer.write(path)
    return {"ms": (time.perf_counter() - start) * 1e3, **peak.found()}


def hidden_memory(driver):
    """A remark where page-locked memory is none of the process's by the system's count."""
    size, before = 64 << 20, memory("VmRSS")
    locked = driver.page_locked(size)
    locked.fill(1)
    is_seen = memory("VmRSS") - before > size // 2
    driver.release(locked)
    return {} if is_seen else {"note": "the host's figure is without page-locked memory"}


def measure_peak(picked):
    device = Device(picked.emu, picked.device_bytes)
    bench = Bench(device)
    bench.case = next(case for case in gpu_files.write_cases() if case.cog)
    device.pixels = rasters.raster(bench.case.raster, picked.side)[0]
    path = rasters.DATA / f"cogpu-bench-{os.getpid()}.tif"
    peak_of = {"cogpu": peak_of_cogpu, "xarray-spatial": peak_of_xarray_spatial}[picked.peak]
    try:
        found = peak_of(bench, path)
        return found | hidden_memory(device.driver) | {"bytes": path.stat().st_size,
                                                       "wrong": wrong_pixels(bench, path)}
    except (ImportError, OSError, RuntimeError) as why:
        return {"refused": f"{type(why).__name__}: {why}"[:300]}
    finally:
        path.unlink(missing_ok=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("cases", nargs="*", help="names of cases")
    options.add_argument("--side", type=int, default=gpu_files.WRITE_SIDE)
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--ours", action="store_true", help="without peers")
    options.add_argument("--emu", action="store_true")
    options.add_argument("--data", type=Path, default=rasters.DATA, help="folder of the rasters, and of files on the disk")
    options.add_argument("--peak", choices=("cogpu", "xarray-spatial"), help="the memory that a COG takes")
    options.add_argument("--device-bytes", type=int, default=0, help="what cogpu may take of the device; 0: its default")
    picked = options.parse_args()
    rasters.DATA = picked.data
    if picked.peak:
        print(json.dumps({"file": "stream"} | measure_peak(picked)))
        return
    keep_freed_pages()
    bench = Bench(Device(picked.emu))
    kinds = (Cogpu, Bare, Wire) + (() if picked.ours else (XarraySpatial,))
    writers, missing = find(bench, kinds)
    print(json.dumps({"versions": {writer.name: writer.version for writer in writers if writer.version},
                      "missing": missing}), flush=True)
    for case in gpu_files.write_cases():
        if case.name in picked.cases:
            print(json.dumps(measure_case(bench, writers, case, picked)), flush=True)


if __name__ == "__main__":
    main()
