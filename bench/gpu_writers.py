"""Who writes a raster that lies in memory of the GPU: cogpu and xarray-spatial; measured, in turns.

A writer's `file` takes a path, its `memory` and `buffer` nothing; each opens, writes all and closes, and
returns the path or the bytes. cogpu's `memory` is the library's own, whose pages stay warm from write to
write, as malloc keeps what is freed; `buffer` is the caller's, of ordinary pages that are warm. Beside them,
with the bytes of cogpu's file: a bare write to the same place, with and without waiting for the disk as cogpu
does, and a bare copy down from the device. Files go to the folder of the data and to a file system in memory;
what was there is removed before, outside of the time. Every file is read back by GDAL where rasterio is
installed, else by cogpu on the processor, and compared with the pixels; what cogpu writes twice has to be the
same bytes.

As a program it takes names of cases (gpu_files.py) and prints a line of JSON for each, after one that says who
is there; --peak prints what a COG by swaths of 512 rows takes of the device's and the host's memory, in a
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

import cogpu_lib
import gpu_files
import rasters
from cogpu_lib import AVERAGE, cogpu
from common import memory
from gpu_readers import TYPES, Device, find, noting, spread, time_all, xarray_spatial

SWATH, BLOCK = 512, 512
CRS, CORNER = 32632, (356000, 5700000)
MEMORY_DISK = Path("/dev/shm")


def keep_freed_pages():
    """Has malloc give freed memory out again, whatever its size and thread, and never back to the system."""
    M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
    for option, value in ((M_TRIM_THRESHOLD, 2**31 - 1), (M_MMAP_MAX, 0), (M_ARENA_MAX, 1)):
        c.CDLL(None).mallopt(option, value)


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
            device.allocate(2 * device.pixels.nbytes)  # stored bytes, too, are copied down from there
            device.upload(np.ascontiguousarray(device.pixels))
            self.buffer = np.ones(2 * device.pixels.nbytes, "u1")

    def raster_of(self, memory, rows):
        pixels = self.device.pixels
        return cogpu_lib.Raster(memory, TYPES[pixels.dtype.name], 1, rows, pixels.shape[1], device=self.device.kind)

    def profile(self):
        case = self.case
        return {"cog": case.cog, "block_width": BLOCK, "block_height": BLOCK, "codec": case.codec.encode(),
                "level": case.level, "predictor": case.predictor, "resampling": AVERAGE, "has_transform": 1,
                "crs": f"EPSG:{CRS}".encode(), "transform": (CORNER[0], 1, 0, CORNER[1], 0, -1),
                "context": self.device.context, "device": self.device.kind}

    def is_same(self, rows, first=0):
        """Whether these are the raster's pixels, bit by bit, from a row on."""
        bits = f"u{rows.itemsize}"
        return np.array_equal(rows.view(bits), self.device.pixels[first:first + len(rows)].view(bits))


# ---- the writers -------------------------------------------------------------------------------

class Cogpu:
    name, note = "cogpu", None

    def __init__(self, bench):
        self.bench, self.version, self.kept = bench, cogpu.cogpu_version().decode(), cogpu_lib.Memory()

    def write(self, sink):
        return self.write_rows(sink, self.bench.raster_of(self.bench.device.raster, len(self.bench.device.pixels)))

    def write_rows(self, sink, rows, **changes):
        pixels = self.bench.device.pixels
        writer = cogpu_lib.Writer(sink, (1, *pixels.shape), pixels.dtype.name, **self.bench.profile() | changes)
        writer.push(rows)
        return writer.close()

    def file(self, path):
        self.write(path)
        return path

    def memory(self, _):
        cogpu.cogpu_memory_release(c.byref(self.kept))
        self.write(cogpu_lib.Sink(memory=c.addressof(self.kept)))
        return as_array(self.kept.data, self.kept.bytes)

    def buffer(self, _):
        room = self.bench.buffer
        return room[:self.write(cogpu_lib.Sink(buffer=room.ctypes.data, buffer_bytes=room.nbytes))]

    def is_by_host(self):
        """Whether the file is the one that the host makes of the same pixels: then the device did nothing."""
        found = cogpu_lib.Memory()
        self.write_rows(cogpu_lib.Sink(memory=c.addressof(found)), np.array(self.bench.device.pixels)[None], device=0)
        is_same = np.array_equal(as_array(found.data, found.bytes), self.bench.stored)
        cogpu.cogpu_memory_release(c.byref(found))
        return is_same

    def wrong(self, written):
        """Pixels that are not the raster's as others read them, or a file that is not the last one's."""
        bytes_of = np.fromfile(written, "u1") if isinstance(written, Path) else written.copy()
        if self.bench.stored is None:
            self.bench.stored = bytes_of
            self.note = "the host encoded it" if self.is_by_host() else None
        return wrong_pixels(self.bench, written) + int(not np.array_equal(bytes_of, self.bench.stored))


class XarraySpatial:
    """Its to_geotiff(gpu=True), which takes no level on the GPU: measured where the level is the default."""
    name, note, memory, buffer = "xarray-spatial", None, None, None

    def __init__(self, bench):
        self.bench, self.array = bench, None
        self.geotiff, self.cupy, self.version = xarray_spatial(bench.device)

    def take_raster(self):
        """Onto the device by CuPy, unless it is there."""
        import xarray
        pixels = self.bench.device.pixels
        if self.array is None or self.array.dtype != pixels.dtype:
            self.array = xarray.DataArray(self.cupy.asarray(np.ascontiguousarray(pixels)), dims=("y", "x"))

    def file(self, path):
        case = self.bench.case
        if case.level:
            raise RuntimeError("takes no level on the GPU")
        self.take_raster()
        cog = {"cog": True, "overview_resampling": "mean"} if case.cog else {}
        _, self.note = noting(lambda: self.geotiff.to_geotiff(
            self.array, str(path), crs=CRS, compression=case.codec, predictor=case.predictor, tile_size=BLOCK,
            gpu=True, **cog))
        return path

    def wrong(self, written):
        return wrong_pixels(self.bench, written)


class Bare:
    """The bytes of cogpu's file, by one write."""
    name, note, version, memory, buffer = "bare", None, "", None, None
    is_flushed = False

    def __init__(self, bench):
        self.bench = bench

    def file(self, path):
        left = memoryview(self.bench.stored)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        while left:
            left = left[os.write(file, left):]
        if self.is_flushed:
            os.fsync(file)
        os.close(file)
        return path

    def wrong(self, written):
        found = np.fromfile(written, "u1") if isinstance(written, Path) else written
        return int(not np.array_equal(found, self.bench.stored))


class Flushed(Bare):
    name, is_flushed = "bare, flushed", True


class Wire(Bare):
    """The bytes of cogpu's file down from the device in one copy to page-locked memory."""
    name, file = "wire", None

    def memory(self, _):
        found = self.bench.device.page_locked("host", self.bench.stored.size)
        self.bench.device.download(self.bench.device.raster, found)
        return found

    def wrong(self, written):
        return int(written.size != self.bench.stored.size)  # what is copied are pixels


# ---- whether a file is right -------------------------------------------------------------------

def wrong_pixels(bench, written):
    """0 where a file, or one in memory, has the raster's pixels, and a COG its overviews."""
    path = written
    if not isinstance(written, Path):
        path = rasters.DATA / "written-from-memory.tif"
        written.tofile(path)
    read = rows_by_gdal if gpu_files.GDAL else rows_by_cogpu
    wrong = sum(not bench.is_same(rows, first) for first, rows in read(path, bench.case))
    if path is not written:
        path.unlink()
    return wrong


def need_levels(levels, side, case):
    if (levels > 1) != (case.cog and side > BLOCK):
        raise RuntimeError(f"the file has {levels} levels")


def rows_by_gdal(path, case):
    import rasterio
    from rasterio.windows import Window
    with rasterio.open(path, num_threads=gpu_files.WORKERS) as file:
        need_levels(1 + len(file.overviews(1)), file.height, case)
        for first in range(0, file.height, SWATH):
            yield first, file.read(1, window=Window(0, first, file.width, min(SWATH, file.height - first)))


def rows_by_cogpu(path, case):
    file = cogpu_lib.File(path)
    need_levels(file.image.levels, file.image.height, case)
    for first in range(0, file.image.height, SWATH):
        yield first, file.read((0, first, file.image.width, min(SWATH, file.image.height - first)))[0]
    file.close()


# ---- measuring ---------------------------------------------------------------------------------

def measure(bench, writers, job, path, repeats):
    """{writer: its times and size, or why it refused} for one job: "memory", "buffer" or "file"."""
    found, field, remove = {}, {}, lambda: path and path.unlink(missing_ok=True)
    for writer in writers:
        if getattr(writer, job) is None or isinstance(writer, Bare) and bench.stored is None:
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
    if field:
        for name, times in time_all(field, repeats, remove).items():
            found[name] |= spread(times)
    remove()
    return found


def measure_case(bench, writers, case, picked):
    bench.begin(case, picked.side)
    places = {"disk": rasters.DATA} | ({"memory_disk": MEMORY_DISK} if MEMORY_DISK.is_dir() else {})
    line = {"file": case.name, "pixel_bytes": bench.device.pixels.nbytes}
    for job in ("memory", "buffer"):
        line[f"to_{job}"] = measure(bench, writers, job, None, picked.repeats)
    for place, folder in places.items():
        path = folder / f"cogpu-bench-{os.getpid()}.tif"
        line[f"to_{place}"] = measure(bench, writers, "file", path, picked.repeats)
    return line


# ---- memory ------------------------------------------------------------------------------------

class Peak:
    """The most that is taken of the device's and the host's memory from the making of it on."""

    def __init__(self, driver):
        self.driver, self.is_over = driver, False
        Path("/proc/self/clear_refs").write_text("5")  # the host's peak begins anew
        self.host, self.free = memory("VmRSS"), driver.free_bytes()
        self.least = self.free
        self.thread = threading.Thread(target=self.watch, daemon=True)  # where the writer fails, nobody ends it
        self.thread.start()

    def watch(self):
        while not self.is_over:
            self.least = min(self.least, self.driver.free_bytes())
            time.sleep(2e-4)

    def found(self):
        self.is_over = True
        self.thread.join()
        return {"device_bytes": self.free - self.least, "host_bytes": max(memory("VmHWM") - self.host, 0)}


def write_swaths(bench, path, source):
    """By cogpu, through one swath's memory on the device. Milliseconds of the writer's calls."""
    device, spent = bench.device, 0
    height, width = device.pixels.shape
    swath = np.empty((SWATH, width), device.pixels.dtype)
    peak = Peak(device.driver)
    start = time.perf_counter()
    writer = cogpu_lib.Writer(path, (1, height, width), device.pixels.dtype.name, **bench.profile())
    spent += time.perf_counter() - start
    for first in range(0, height, SWATH):
        rows = swath[:min(SWATH, height - first)]
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
    """Beyond a swath. The pixels come from the array's file, since pages that are mapped count as memory, too."""
    pixels = bench.device.pixels
    bench.device.allocate(SWATH * pixels[0].nbytes)
    with open(pixels.filename, "rb", buffering=0) as source:
        source.seek(pixels.offset)
        return write_swaths(bench, path, source)


def peak_of_xarray_spatial(bench, path):
    """Beyond the raster, which has to be whole."""
    writer = XarraySpatial(bench)
    writer.take_raster()
    peak, start = Peak(bench.device.driver), time.perf_counter()
    writer.file(path)
    return {"ms": (time.perf_counter() - start) * 1e3, **peak.found()}


def measure_peak(picked):
    device = Device(picked.emu, picked.device_bytes)
    bench = Bench(device)
    bench.case, device.pixels = gpu_files.write_cases()[-1], rasters.raster("float32", picked.side)[0]
    path = rasters.DATA / f"cogpu-bench-{os.getpid()}.tif"
    peak_of = {"cogpu": peak_of_cogpu, "xarray-spatial": peak_of_xarray_spatial}[picked.peak]
    try:
        found = peak_of(bench, path)
        return found | {"bytes": path.stat().st_size, "wrong": wrong_pixels(bench, path)}
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
        print(json.dumps({"file": f"stream-{picked.peak}", "who": picked.peak, "allowed": picked.device_bytes} |
                         measure_peak(picked)))
        return
    keep_freed_pages()
    bench = Bench(Device(picked.emu))
    kinds = (Cogpu, Bare, Flushed, Wire) + (() if picked.ours else (XarraySpatial,))
    writers, missing = find(bench, kinds)
    print(json.dumps({"versions": {writer.name: writer.version for writer in writers if writer.version},
                      "missing": missing}), flush=True)
    for case in gpu_files.write_cases():
        if case.name in picked.cases:
            print(json.dumps(measure_case(bench, writers, case, picked)), flush=True)


if __name__ == "__main__":
    main()
