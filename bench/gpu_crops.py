"""Training crops, measured: batches of random windows of many files, decoded into a GPU.

    python bench/gpu_crops.py [--only crops] [--files 1000] [--seconds 3] [--json FILE] [--docs]
    python bench/gpu_crops.py --emu          # tries it on the emulator, in a small size

Parts:
- crops: crops a second of 4 x 256 x 256 uint16 in batches of 64, from files of 1024 x 1024 in tiles of 256 and 512: by
  cogpu.torch.Windows, which reads ahead or not; by cogpu.windows.read_windows into an array of CuPy; by read_many; and
  by Windows with a device cache (`device_cache_bytes`), whose first epochs do not count.
- train: a small network on such batches. Utilisation is the time of its steps on one batch that stays on the GPU,
  divided by the time of a step with a new batch; beside it what NVML says.
- latency: one window of 512 x 512 float32, deflate with predictor 3.
- host: a whole file into host memory, decoded by the CPU, and by the GPU (`decode="cuda"`).

What this version of cogpu lacks is named and left out. zlib (level 6) and zstd (level 9) make the files, DISTINCT of
them; the others are copies. Some batches are compared with the rasters before the clock starts.
"""

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

import numpy as np

import cogpu
import gpu_files
import rasters
from cogpu.windows import OpenFiles, Places, read_windows
from common import markdown, put_into

DISTINCT, BANDS, CACHE_BYTES = 16, 4, 32 << 30


class Device:
    """The GPU, or the emulated one, whose tensors are the host's."""

    def __init__(self, is_emulated):
        import torch

        self.torch, self.name = torch, "emu" if is_emulated else "cuda"
        self.is_emulated = is_emulated

    def finish(self):
        if not self.is_emulated:
            self.torch.cuda.synchronize()

    def arrays(self):
        """The module whose arrays are on the device."""
        if self.is_emulated:
            return np
        import cupy
        return cupy

    def utilization(self):
        """Percent, by NVML, or None."""
        try:
            return self.torch.cuda.utilization()
        except Exception:  # without NVML's Python package
            return None


# ---- files -------------------------------------------------------------------------------------

def scenes(side):
    """Rasters of four bands that resemble each other, as those of a satellite do."""
    made = []
    for seed in range(DISTINCT):
        ground = rasters.terrain(100 + seed, side, 1.4)
        noise = np.random.default_rng(seed).normal(0, 0.004, (side, side, BANDS))
        reflectance = ground[..., None] * (0.7, 0.8, 0.9, 1.0) + noise
        made.append(np.clip(1000 + 9000 * reflectance, 0, 65535).astype("uint16"))
    return made


def make_files(folder, pixels, case, count):
    """The first files by the encoder, the others as copies."""
    first = []
    for number, scene in enumerate(pixels[:count]):
        first.append(folder / f"{number}.tif")
        gpu_files.write_by_ourselves(first[-1], scene, case)
    paths = [folder / f"{number}.tif" for number in range(count)]
    with ThreadPoolExecutor(gpu_files.WORKERS) as pool:
        list(pool.map(lambda number: shutil.copyfile(first[number % len(first)], paths[number]),
                      range(len(first), count)))
    return paths


# ---- crops -------------------------------------------------------------------------------------

def on_host(array):
    """A tensor, or an array of CuPy or NumPy, as one of NumPy."""
    if hasattr(array, "get"):
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else array


class Crops:
    """Ways to read batches of the same files."""

    def __init__(self, device, paths, pixels, size, batch):
        self.device, self.paths, self.pixels, self.size, self.batch = device, paths, pixels, size, batch
        self.files, side = OpenFiles(paths), len(pixels[0])
        self.places = Places([(side, side)] * len(paths), size)

    def windows(self, prefetch, epochs=1):
        """Batches without end, of so many different epochs."""
        from cogpu.torch import Windows

        windows, epoch = Windows(self.paths, self.size, self.batch, device=self.device.name, prefetch=prefetch), 0
        while True:
            windows.set_epoch(epoch % epochs)
            yield from windows
            epoch += 1

    def batches(self):
        number = 0
        while True:
            yield self.places.draw(self.batch, number)
            number += 1

    def array(self):
        return self.device.arrays().zeros((self.batch * BANDS, self.size, self.size), "uint16")

    def one_array(self):
        out = self.array()
        for places in self.batches():
            numbers = places[:, 0].tolist()
            for first in range(0, self.batch, self.files.limit):
                part = slice(first, first + self.files.limit)
                read_windows(self.files.get(numbers[part]), places[part, 1:], out[part.start * BANDS:part.stop * BANDS],
                             bands=range(1, BANDS + 1), device=self.device.name)
            yield out

    def read_many(self):
        out = self.array().reshape(self.batch, BANDS, self.size, self.size)
        for places in self.batches():
            files = self.files.get(places[:, 0].tolist())
            cogpu.read_many([(file, {"window": (row, column, row + self.size, column + self.size), "out": crop,
                                     "device": self.device.name})
                             for file, (_, row, column), crop in zip(files, places.tolist(), out)])
            yield out

    def check(self):
        """Both the tensors and the array have the pixels of their places."""
        ways = self.windows(1), self.one_array(), self.read_many()
        for way in ways:
            for number in range(3):
                found = on_host(next(way))
                for crop, (file, row, column) in zip(found.reshape(self.batch, BANDS, self.size, self.size),
                                                     self.places.draw(self.batch, number).tolist()):
                    scene = self.pixels[file % len(self.pixels)][row:row + self.size, column:column + self.size]
                    if not np.array_equal(crop, scene.transpose(2, 0, 1)):
                        raise RuntimeError(f"WRONG PIXELS in batch {number}, file {file}, row {row}, column {column}")
            way.close()

    def rate(self, way, seconds, warm=3):
        """Crops a second."""
        for _ in range(warm):
            next(way)
        self.device.finish()
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            next(way)
            count += self.batch
        self.device.finish()
        found = count / (time.perf_counter() - begin)
        way.close()
        return found


def has_device_cache():
    try:
        cogpu.configure(device_cache_bytes=CACHE_BYTES)
    except TypeError:
        return False
    return True


def cached_rate(crops, seconds):
    """With the stored blocks of one epoch on the device: that epoch is read until it is there."""
    way, epoch = crops.windows(1), len(crops.paths) * len(crops.pixels[0]) ** 2 // crops.size ** 2 // crops.batch
    found = crops.rate(way, seconds, warm=min(2 * epoch + 1, 4000))
    cogpu.configure()
    return found


def measure_crops(crops, seconds):
    crops.check()
    found = {f"Windows, prefetch={count}": crops.rate(crops.windows(count, 1000), seconds) for count in (0, 1, 2)}
    found["read_windows, one array"] = crops.rate(crops.one_array(), seconds)
    found["read_many, kept arrays"] = crops.rate(crops.read_many(), seconds)
    if has_device_cache():
        found["Windows, prefetch=1, device cache"] = cached_rate(crops, seconds)
    return found


# ---- training ----------------------------------------------------------------------------------

class Network:
    """A few convolutions, of about the work of a small segmentation network a crop."""

    def __init__(self, device, width=64):
        torch = device.torch
        self.torch, place = torch, "cpu" if device.is_emulated else "cuda"
        layers = [torch.nn.Conv2d(BANDS, width, 3, padding=1), torch.nn.ReLU()]
        for _ in range(4):
            layers += [torch.nn.Conv2d(width, width, 3, padding=1), torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*layers, torch.nn.Conv2d(width, 1, 1)).to(place)
        self.optimizer = torch.optim.SGD(self.network.parameters(), 1e-4)
        self.place = place

    def step(self, pixels):
        pixels = pixels.float() / 10000
        with self.torch.autocast(self.place, dtype=self.torch.bfloat16):
            loss = (self.network(pixels) - pixels[:, :1]).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()


def step_ms(device, network, batches, seconds):
    """(ms of a step, NVML's percent or None)."""
    for _ in range(3):
        network.step(next(batches))
    device.finish()
    begin, count, percents = time.perf_counter(), 0, []
    while time.perf_counter() - begin < seconds:
        network.step(next(batches))
        count += 1
        if count % 16 == 0:
            device.finish()  # so that the host is not far ahead
            percents.append(device.utilization())
    device.finish()
    spent = time.perf_counter() - begin
    known = [percent for percent in percents if percent is not None]
    return 1e3 * spent / count, median(known) if known else None


def measure_train(crops, seconds, width):
    network, batch = Network(crops.device, width), next(crops.windows(0))
    alone, percent = step_ms(crops.device, network, itertools.repeat(batch), seconds)
    found = {"the same batch": {"ms": alone, "utilisation": 1.0, "nvml": percent}}
    for count in (0, 1, 2):
        batches = crops.windows(count, 1000)
        ms, percent = step_ms(crops.device, network, batches, seconds)
        batches.close()
        found[f"Windows, prefetch={count}"] = {"ms": ms, "utilisation": alone / ms, "nvml": percent}
    return found


# ---- single reads ------------------------------------------------------------------------------

def terrain_file(folder, side):
    path = folder / "terrain.tif"
    if not path.exists():
        heights = rasters.enlarge((np.round(rasters.terrain(1) * 8000) / 100).astype("float32")[None], side)[0]
        gpu_files.write_by_ourselves(path, heights, gpu_files.Case("float32", "zlib", 3))
        np.save(folder / "terrain.npy", heights)
    return path, np.load(folder / "terrain.npy", mmap_mode="r")


def times_of(read, count):
    """Milliseconds: median, and that which nine of ten do not exceed."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        read()
        found.append(1e3 * (time.perf_counter() - begin))
    return {"ms": median(found), "ms_90": quantiles(found, n=10)[-1] if count > 1 else found[0]}


def measure_latency(device, folder, side, count):
    path, heights = terrain_file(folder, side)
    file, size = cogpu.open(path), min(512, side // 2)
    corners = iter(np.random.default_rng(5).integers(0, side - size, (4 * count + 8, 2)).tolist())
    kept = file.read(window=(0, 0, size, size), device=device.name)

    def window():
        row, column = next(corners)
        return row, column, row + size, column + size
    row0, column0, row1, column1 = where = window()
    found = np.from_dlpack(file.read(window=where, device=device.name), device="cpu")
    if not np.array_equal(found[0], heights[row0:row1, column0:column1]):
        raise RuntimeError(f"WRONG PIXELS in window {where}")
    return {"kept array": times_of(lambda: file.read(window=window(), out=kept), count),
            "new array": times_of(lambda: file.read(window=window(), device=device.name), count),
            "CPU, host memory": times_of(lambda: file.read(window=window()), count)}


def measure_host(device, folder, side, count):
    path, heights = terrain_file(folder, side)
    file, out, found = cogpu.open(path), np.empty((1, *heights.shape), heights.dtype), {}
    for name, how in (("CPU", {}), ("GPU", {"decode": device.name})):
        out.fill(np.nan)
        try:
            file.read(out=out, **how)
        except TypeError as why:
            found[name] = {"missing": str(why)}
            continue
        if not np.array_equal(out[0], heights):
            raise RuntimeError(f"WRONG PIXELS, decoded by the {name}")
        found[name] = times_of(lambda how=how: file.read(out=out, **how), count)
    return found


# ---- the run -----------------------------------------------------------------------------------

def run(picked, device, folder):
    found, pixels = {}, scenes(picked.side) if {"crops", "train"} & {*picked.only} else []
    for tile in picked.tiles if pixels else ():
        for codec in ("zlib", "zstd"):
            case = gpu_files.Case("scene", codec, 2, str(tile))
            begin = time.perf_counter()
            (folder / case.name).mkdir()
            paths = make_files(folder / case.name, pixels, case, picked.files)
            crops = Crops(device, paths, pixels, picked.size, picked.batch)
            print(f"made {picked.files} files {case.name} of {paths[0].stat().st_size / 1e6:.1f} MB in "
                  f"{time.perf_counter() - begin:.1f} s", file=sys.stderr)
            if "crops" in picked.only:
                found[f"crops, {codec}, tiles of {tile}"] = measure_crops(crops, picked.seconds)
            if "train" in picked.only and tile == picked.tiles[0]:
                width = 4 if picked.emu else 64
                found[f"train, {codec}, tiles of {tile}"] = measure_train(crops, picked.seconds, width)
            shutil.rmtree(folder / case.name)
    if "latency" in picked.only:
        found["latency"] = measure_latency(device, folder, picked.raster, picked.count)
    if "host" in picked.only:
        found["host"] = measure_host(device, folder, picked.raster, max(picked.count // 20, 2))
    return found


def cell(value):
    if isinstance(value, float):
        return f"{value:,.0f} crops/s"
    if "missing" in value:
        return "-"
    parts = [f"{value['ms']:.2f} ms"]
    if "ms_90" in value:
        parts.append(f"9 of 10 within {value['ms_90']:.2f} ms")
    if "utilisation" in value:
        parts.append(f"utilisation {100 * value['utilisation']:.0f} %")
    if value.get("nvml") is not None:
        parts.append(f"NVML {value['nvml']:.0f} %")
    return ", ".join(parts)


def table(found):
    return markdown(["what", "how", "found"], [[part, name, cell(value)] for part, rows in found.items()
                                              for name, value in rows.items()])


def main():
    parts = ("crops", "train", "latency", "host")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=parts, action="append", help="a part of it; may be repeated")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--side", type=int, default=1024, help="of these files")
    parser.add_argument("--tiles", type=int, nargs="+", default=[256, 512])
    parser.add_argument("--size", type=int, default=256, help="of a crop")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--raster", type=int, default=5000, help="side of the raster of single reads")
    parser.add_argument("--count", type=int, default=200, help="single reads")
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--emu", action="store_true", help="on the emulator, small: it is tried, not measured")
    parser.add_argument("--data", type=Path, help="where the files are made (default: a temporary folder)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--docs", action="store_true", help="put the table into docs/bench-gpu.md")
    picked = parser.parse_args()
    if picked.emu:
        parser.set_defaults(files=5, side=96, tiles=[32, 48], size=32, batch=3, raster=160, count=3, seconds=0.01)
        picked = parser.parse_args()
    picked.only = picked.only or parts
    with tempfile.TemporaryDirectory(dir=picked.data) as folder:
        found = run(picked, Device(picked.emu), Path(folder))
    print(table(found))
    for part in found.values():
        for name, value in part.items():
            if isinstance(value, dict) and "missing" in value:
                print(f"not measured: {name}: {value['missing']}")
    if picked.json:
        picked.json.write_text(json.dumps(found, indent=1))
    if picked.docs:
        put_into("bench-gpu.md", "gpu-crops", table(found))


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "8")
    main()
