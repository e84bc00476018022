"""Who reads a raster into GPU memory: cogpu, nvTIFF and xarray-spatial; measured, in turns.

A reader is made once, with what it keeps between reads (cogpu's context, nvTIFF's decoder). Its `file` takes
a path, its `memory` the same file's bytes in page-locked host memory; each opens, reads all and
closes, and returns where the pixels lie on the device when they are all there. cogpu and nvTIFF write into
memory that was allocated before, xarray-spatial allocates its own, from CuPy's pool.

As a program it takes files and their pixels (PATH PATH.npy ...) and prints a line of JSON for each, after
one that lists the libraries present. A program of its own, so that a reader which hangs or breaks the GPU's context
does not take the benchmark with it.
"""
import argparse
import ctypes as c
import json
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

import cogpu_lib
from cogpu_lib import call, cogpu, pointer, u32, u64

CUDA, EMU = 1, 2  # cogpu_device_kind
TYPES = {name: number for number, name in cogpu_lib.TYPES.items()}
TURN, LONG_MS = 3, 1000  # reads of a turn; a reader that took so long has had its turns
NO_PIXEL = 0xC3  # each byte of the raster's memory before a read that is checked
WORKERS = len(os.sched_getaffinity(0))


def load(variable, folder, name):
    """A peer's library: the one that an environment variable names, or pip's, or the system's."""
    places = [os.environ[variable]] if variable in os.environ else [
        *(f"{packages}/{folder}/{name}" for packages in sys.path), name]
    for place in places:
        try:
            return c.CDLL(place)
        except OSError as why:
            problem = why
    raise problem


class Driver:
    """NVIDIA's driver: page-locked memory, and waiting for all of the GPU's work."""

    def __init__(self):
        self.library, self.context = c.CDLL("libcuda.so.1"), pointer()
        self.need("cuInit", 0)
        self.need("cuDevicePrimaryCtxRetain", c.byref(self.context), 0)
        self.need("cuCtxSetCurrent", self.context)

    def need(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: status {status}")

    def page_locked(self, size):
        memory = pointer()
        self.need("cuMemHostAlloc", c.byref(memory), c.c_size_t(size), 0)
        return np.ctypeslib.as_array((c.c_uint8 * size).from_address(memory.value))

    def release(self, array):
        self.need("cuMemFreeHost", pointer(array.ctypes.data))

    def finish(self):
        self.need("cuCtxSynchronize")

    def free_bytes(self):
        """Of the device; any thread may ask."""
        free, total = c.c_size_t(), c.c_size_t()
        self.need("cuCtxSetCurrent", self.context)
        self.need("cuMemGetInfo_v2", c.byref(free), c.byref(total))
        return free.value


class Emulated:
    """In the driver's place for the emulator, whose memory is the host's."""
    page_locked = staticmethod(lambda size: np.empty(size, "u1"))
    release = finish = staticmethod(lambda *_: None)
    free_bytes = staticmethod(lambda: 0)


class Device:
    """The device with one raster's memory on it, and the pixels that have to get there. `device_bytes` are
    what the context may take of it; 0 for its default."""

    def __init__(self, is_emu, device_bytes=0):
        self.kind, self.context, self.raster = EMU if is_emu else CUDA, pointer(), pointer()
        self.driver, self.kept = Emulated() if is_emu else Driver(), {}
        self.pool = ThreadPoolExecutor(WORKERS)
        call(cogpu.cogpu_context_open, c.byref(cogpu_lib.ContextOptions(device_bytes=device_bytes)),
             c.byref(self.context))

    def page_locked(self, name, size):
        """Kept for the next file, since page-locking takes long."""
        if name in self.kept and self.kept[name].size < size:
            self.driver.release(self.kept.pop(name))
        if name not in self.kept:
            self.kept[name] = self.driver.page_locked(size)
        return self.kept[name][:size]

    def allocate(self, size):
        call(cogpu.cogpu_device_allocate, self.context, self.kind, 0, size, c.byref(self.raster))

    def begin(self, path, pixels):
        """The file that is read next."""
        self.pixels, bytes_of_file = pixels, path.stat().st_size
        self.allocate(max(pixels.nbytes, bytes_of_file))
        self.host = self.page_locked("host", pixels.nbytes)
        self.stored = self.page_locked("stored", bytes_of_file)
        with open(path, "rb") as file:
            file.readinto(self.stored)

    def end(self):
        cogpu.cogpu_device_free(self.context, self.kind, 0, self.raster)

    def upload(self, array):
        call(cogpu.cogpu_device_upload, self.context, self.kind, 0, array.ctypes.data, array.nbytes,
             self.raster)

    def download(self, address, array):
        call(cogpu.cogpu_device_download, self.context, self.kind, 0, address, array.nbytes,
             array.ctypes.data)

    def wrong_pixels(self, read):
        """How many of a read's pixels are not the source's; what was there before is no pixel of it."""
        rows = [slice(y, y + 256) for y in range(0, len(self.pixels), 256)]
        bits = f"u{self.pixels.itemsize}"
        found = self.host.view(bits).reshape(self.pixels.shape)
        list(self.pool.map(lambda some: found[some].view("u1").fill(NO_PIXEL), rows))
        self.upload(self.host)
        self.download(read(), self.host)
        return sum(self.pool.map(
            lambda some: int(np.count_nonzero(found[some] != self.pixels[some].view(bits))), rows))


# ---- the readers -------------------------------------------------------------------------------

class Cogpu:
    """Decodes on the device. Bytes in page-locked memory are copied up from there; others, and those of files,
    go through page-locked memory of its own."""
    name = "cogpu"

    def __init__(self, device):
        self.device, self.version = device, cogpu.cogpu_version().decode()

    def file(self, path):
        file = pointer()
        call(cogpu.cogpu_open, str(path).encode(), None, c.byref(file))
        return self.read(file)

    def memory(self, stored):
        file = pointer()
        call(cogpu.cogpu_open_memory, stored.ctypes.data, stored.nbytes, None, c.byref(file))
        return self.read(file)

    def read(self, file):
        try:
            self.read_into(file, self.device.raster, self.device.kind)
        finally:
            cogpu.cogpu_close(file)
        return self.device.raster

    def read_into(self, file, memory, kind):
        height, width = self.device.pixels.shape
        raster = cogpu_lib.Raster(memory, TYPES[self.device.pixels.dtype.name], 1, height, width, device=kind)
        call(cogpu.cogpu_read, file, c.byref(cogpu_lib.Request(context=self.device.context)),
             c.byref(raster), None)


class Processor(Cogpu):
    """cogpu's CPU backend with a thread for each CPU core, into page-locked memory, then one copy."""
    name = "CPU + upload"
    memory = None

    def read_into(self, file, memory, kind):
        super().read_into(file, self.device.host.ctypes.data, 0)
        self.device.upload(self.device.host)


class NvTiff:
    """By its interface of 0.8."""
    name = "nvTIFF"
    STATUSES = {3: "not a valid TIFF", 4: "not supported", 5: "no memory", 6: "a kernel failed",
                8: "internal error", 9: "nvCOMP was not found"}

    class Image(c.Structure):
        _fields_ = [("planes", c.POINTER(pointer)), ("pitches", c.POINTER(c.c_size_t)), ("count", u32)]

    def __init__(self, device):
        if device.kind == EMU:
            raise OSError("needs a GPU")
        try:
            load("COGPU_NVCOMP", "nvidia/libnvcomp/lib64", "libnvcomp.so.5")  # nvTIFF asks for it by its name
        except OSError:
            pass  # nvTIFF will say so
        self.library = load("COGPU_NVTIFF", "nvidia/nvtiff/lib", "libnvtiff.so.0")
        self.device, self.decoder, self.parameters = device, pointer(), pointer()
        numbers = [c.c_int() for _ in range(3)]
        for part, number in enumerate(numbers):
            self.need("nvtiffGetProperty", part, c.byref(number))
        self.version = ".".join(str(number.value) for number in numbers)
        self.need("nvtiffDecoderCreateSimple", c.byref(self.decoder), None)
        self.need("nvtiffDecodeParamsCreate", c.byref(self.parameters))

    def need(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{self.STATUSES.get(status, 'failed')} ({name}: status {status})")

    def file(self, path):
        stream = pointer()
        self.need("nvtiffStreamOpenFromFile", str(path).encode(), c.byref(stream))
        return self.decode(stream)

    def memory(self, stored):
        stream = pointer()
        self.need("nvtiffStreamOpen", pointer(stored.ctypes.data), c.c_size_t(stored.nbytes),
                  c.byref(stream))
        return self.decode(stream)

    def decode(self, stream):
        pixels, raster = self.device.pixels, self.device.raster
        image = self.Image(c.pointer(raster), c.pointer(c.c_size_t(pixels.shape[1] * pixels.itemsize)), 1)
        try:
            self.need("nvtiffDecode", stream, self.decoder, self.parameters, c.byref(image), None)
        finally:
            self.device.driver.finish()
            self.library.nvtiffStreamClose(stream)
        return raster


def xarray_spatial(device):
    """(xrspatial.geotiff, cupy, versions) where they are installed."""
    if device.kind == EMU:
        raise OSError("needs a GPU")
    np.row_stack = getattr(np, "row_stack", np.vstack)  # numba-cuda 0.30 asks for what NumPy 2.5 has no more
    import cupy
    import numba
    from importlib.metadata import version
    from xrspatial import geotiff
    return geotiff, cupy, f"{version('xarray-spatial')} (Numba {numba.__version__}, CuPy {cupy.__version__})"


def noting(work):
    """What a call of xarray-spatial's returns, and its warning that it fell back to the CPU, if any."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = work()
    said = {str(one.message) for one in warned}
    return result, "; ".join(sorted(words for words in said if " back to " in words))[:300]


class XarraySpatial:
    """Its open_geotiff(gpu=True), which falls back to the CPU where it cannot decode on the GPU: a
    warning tells, and is kept as `note`."""
    name = "xarray-spatial"
    memory = note = None

    def __init__(self, device):
        self.geotiff, cupy, self.version = xarray_spatial(device)
        self.finish, self.array = cupy.cuda.runtime.deviceSynchronize, None

    def file(self, path):
        self.array = None  # its memory goes back to the pool
        self.array, self.note = noting(lambda: self.geotiff.open_geotiff(str(path), gpu=True))
        self.finish()
        return self.array.data.data.ptr


class Bare:
    """Moves the file's bytes, and makes no pixels of them: what it moved is compared with the file."""
    file = memory = None
    version = ""

    def __init__(self, device):
        self.device = device

    def wrong(self, move):
        found = np.empty_like(self.device.stored)
        move()
        self.fetch(found)
        return int(np.count_nonzero(found != self.device.stored))


class Wire(Bare):
    """The file's bytes up to the device in one copy from page-locked memory, and nothing else: no read can
    be faster that takes them this way."""
    name = "wire"

    def memory(self, stored):
        self.device.upload(stored)

    def fetch(self, found):
        self.device.download(self.device.raster, found)


class Ring(Bare):
    """A file through a small ring of page-locked memory, by a thread for each CPU core: what the host and
    PCIe allow without decoding (gpu_ring.c)."""
    name = "ring"

    def __init__(self, device):
        super().__init__(device)
        self.library, self.ring = c.CDLL(str(cogpu_lib.LIBRARY.with_name("libbench_gpu_ring.so"))), pointer()
        call(self.library.bench_ring_open, int(device.kind == EMU), c.byref(self.ring))

    def file(self, path):
        call(self.library.bench_ring_take, self.ring, str(path).encode())

    def fetch(self, found):
        call(self.library.bench_ring_give, self.ring, pointer(found.ctypes.data))


# ---- measuring ---------------------------------------------------------------------------------

def find(device, kinds):
    """Those that are there, and why the others are not."""
    there, missing = [], {}
    for kind in kinds:
        try:
            there.append(kind(device))
        except (ImportError, OSError, RuntimeError, AttributeError) as why:
            missing[kind.name] = f"{type(why).__name__}: {why}"[:300]
    return there, missing


def time_all(field, repeats, before=lambda: None):
    """Milliseconds of each read or write; `before` each, outside of its time. They take turns, in an order that
    rotates, so that a slow moment of the machine meets all alike; one that is slow has fewer."""
    times = {name: [] for name in field}
    for turn in range(-(-repeats // TURN) if field else 0):
        first = turn % len(field)
        for name in [*field][first:] + [*field][:first]:
            for _ in range(TURN):
                if sum(times[name]) > LONG_MS:
                    break
                before()
                start = time.perf_counter()
                field[name]()
                times[name].append((time.perf_counter() - start) * 1e3)
    return times


def spread(times):
    return {"ms": median(times), "ms_min": min(times), "ms_max": max(times), "times": len(times)}


def measure(device, readers, job, source, repeats):
    """{reader: its times and wrong pixels, or why it was refused} for one job, "file" or "memory"."""
    found, field = {}, {}
    wrong = {reader.name: getattr(reader, "wrong", device.wrong_pixels) for reader in readers}
    for reader in readers:
        if getattr(reader, job) is None:
            continue
        read = lambda reader=reader: getattr(reader, job)(source)
        try:
            found[reader.name] = {"wrong": wrong[reader.name](read)}
            field[reader.name] = read
        except Exception as why:  # a peer that cannot read the file is a finding, not a failure
            found[reader.name] = {"refused": f"{type(why).__name__}: {why}"[:300]}
    for name, times in time_all(field, repeats).items():
        found[name]["wrong"] = max(found[name]["wrong"], wrong[name](field[name]))
        found[name] |= spread(times)
    for reader in readers:
        if getattr(reader, "note", None) and reader.name in found:
            found[reader.name]["note"] = reader.note
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("files", nargs="+", help="a path, the path of its pixels (.npy), another path, ...")
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--ours", action="store_true", help="without peers")
    options.add_argument("--emu", action="store_true")
    picked = options.parse_args()
    device = Device(picked.emu)
    readers, missing = find(device, (Cogpu, Processor, Wire, Ring) + (() if picked.ours else (NvTiff, XarraySpatial)))
    print(json.dumps({"versions": {reader.name: reader.version for reader in readers if reader.version},
                      "missing": missing}), flush=True)
    for path, source in zip(picked.files[::2], picked.files[1::2]):
        path, pixels = Path(path), np.load(source, mmap_mode="r")[0]
        device.begin(path, pixels)
        print(json.dumps({
            "file": path.name, "pixel_bytes": pixels.nbytes, "file_bytes": path.stat().st_size,
            "from_file": measure(device, readers, "file", path, picked.repeats),
            "from_memory": measure(device, readers, "memory", device.stored, picked.repeats)}), flush=True)
        device.end()


if __name__ == "__main__":
    main()
