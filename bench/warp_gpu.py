"""Warps on a GPU, measured: file to raster beside file to warped raster, and files of two UTM zones to one raster. Pixels
end in device memory. Kernels alone: bench_gpu_warp (gpu_warp.c).

bench_warp.py calls it. As a program it needs NumPy and the package alone, and writes the part "gpu" of warp.json:

    python bench/warp_gpu.py [--size quick] [--emu] [--out warp.json]

`bench_warp.py --report warp.json --docs` makes the tables of it.
"""
import argparse
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

import rasters
from common import RESULTS, markdown

MERCATOR, UTM = "EPSG:3857", ("EPSG:32632", "EPSG:32633")
SIZES = {"full": {"gpu_side": 10_000, "scene_side": 2500, "scenes": 48, "repeats": 9},
         "quick": {"gpu_side": 2000, "scene_side": 500, "scenes": 48, "repeats": 3},
         "tiny": {"gpu_side": 256, "scene_side": 64, "scenes": 8, "repeats": 1}}


def in_turns(field, repeats, act, clock=time.perf_counter):
    """{name: seconds} of act(contender), in an order that rotates."""
    seconds = {}
    for repeat in range(repeats if field else 0):
        turn = repeat % len(field)
        for contender in field[turn:] + field[:turn]:
            gc.collect()
            start = clock()
            made = act(contender)
            seconds.setdefault(getattr(contender, "name", contender), []).append(clock() - start)
            del made
    return seconds


def scenes_of_two_zones(cogpu, count, side):
    """Files of uint16 in two UTM zones, three columns on each side of 12 degrees east; 20 m pixels."""
    folder = rasters.DATA / f"scenes-{count}-{side}"
    folder.mkdir(parents=True, exist_ok=True)
    paths, pixels = [], rasters.raster("uint16", side)
    for number in range(count):
        zone, place = number % 2, number // 2
        column, row = place % 3, place // 3
        step = 19 * side  # they overlap a little
        left = 280_000 + step * column if zone else 720_000 - step * (column + 1)
        path = folder / f"{number}.tif"
        paths.append(path)
        if not path.exists():
            write(cogpu, path, pixels, 2, UTM[zone], (left, 6000000 - step * row, 20), nodata=0)
    return paths


def terrain_file(cogpu, side):
    path = rasters.DATA / f"gpu-float32-{side}.tif"
    if not path.exists():
        rasters.DATA.mkdir(parents=True, exist_ok=True)
        write(cogpu, path, rasters.raster("float32", side), 3, UTM[0], (356000, 5700000, 1))
    return path


def write(cogpu, path, pixels, predictor, crs, place, nodata=None):
    """By our own writer: deflate 6, tiles of 512."""
    left, top, size = place
    cogpu.to_geotiff(np.ascontiguousarray(pixels), path, crs=crs, transform=(size, 0, left, 0, -size, top), nodata=nodata,
                     predictor=predictor, compression="deflate", compression_level=6)


def gpu_jobs(cogpu, sizes):
    """{job: a function that opens its file or mosaic}."""
    side, count, scene = sizes["gpu_side"], sizes["scenes"], sizes["scene_side"]
    path, scenes = terrain_file(cogpu, side), scenes_of_two_zones(cogpu, count, scene)
    jobs = {f"{side} x {side} float32 deflate p3, file to raster": lambda: cogpu.open(path)}
    for method in ("bilinear", "cubic"):
        jobs[f"the same to Web Mercator, {method}"] = lambda method=method: cogpu.open_mosaic(
            [path], crs=MERCATOR, shape=(side, side), resampling=method)
    jobs[f"{count} files of {scene} x {scene} uint16 in two UTM zones to one grid, bilinear"] = (
        lambda: cogpu.open_mosaic(scenes, crs=MERCATOR, resampling="bilinear"))
    return jobs


def on_host(array, device):
    if device == "emu":
        return np.asarray(array)
    import cupy
    return cupy.asnumpy(cupy.from_dlpack(array))


def differs(file, device):
    """Whether a window has other pixels on the device than on the CPU: where the first source is, if there are several."""
    top, left, bottom, right = file.sources[0].window if file.sources else (0, 0, *file.shape[1:])
    window = (top, left, min(bottom, top + 700), min(right, left + 700))
    pixels = on_host(file.read(window=window, device=device), device)
    return not pixels.any() or not np.array_equal(pixels, np.asarray(file.read(window=window)))


def measure_gpu(sizes, device):
    import cogpu
    jobs, shapes, refused = gpu_jobs(cogpu, sizes), {}, {}

    def read(name):
        with jobs[name]() as file:
            return file.read(device=device)
    for name, opened in jobs.items():  # kernels are loaded, memory is there, and files are in the page cache
        with opened() as file:
            refused |= {name: "wrong pixels"} if differs(file, device) else {}
        shapes[name] = read(name).shape
    seconds = in_turns([name for name in jobs if name not in refused], sizes["repeats"], read)
    described = next(found["description"] for found in cogpu.devices() if found["name"].startswith(device))
    return {"device": described, "seconds": seconds, "shapes": shapes, "refused": refused,
            "kernels": kernels_alone(sizes, device)}


def kernels_alone(sizes, device):
    """The table of gpu_warp.c, as text; or why there is none."""
    found = [rasters.ROOT / folder / "bench_gpu_warp" for folder in ("build-gpu", "build")]
    program = next((path for path in found if path.exists()), None)
    if not program:
        return "bench_gpu_warp is not built (cmake -DCOGPU_BENCH=ON)"
    words = [program, f"--side={sizes['gpu_side']}", f"--repeats={sizes['repeats']}"]
    words += ["--emu", "bilinear float32"] if device == "emu" else []
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        return f"{program.name} failed: {done.stderr.strip()[:200]}"
    return done.stdout.split("\n\n", 1)[-1].strip("\n")


def gpu_tables(found):
    first = next(iter(found["seconds"]))
    lines = []
    for name, seconds in found["seconds"].items():
        bands, height, width = found["shapes"][name]
        lines.append([name, f"{height} x {width}", f"{median(seconds) * 1e3:.1f}",
                      "-" if name == first else f"{median(b / a for a, b in zip(found['seconds'][first], seconds)):.2f}"])
    text = f"{found['device']}.\n\n" + markdown(["what", "result", "ms", "x file to raster"], lines)
    text += "".join(f"\nNot measured: {name}: {why}\n" for name, why in found["refused"].items())
    return text + f"\nKernels alone, from device memory to device memory:\n\n```text\n{found['kernels']}\n```\n"


def find_device():
    import cogpu
    return next((found["name"] for found in cogpu.devices() if found["name"].startswith("cuda")), None)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--size", choices=SIZES, default="full", help="of rasters; full if not given")
    options.add_argument("--repeats", type=int, help="9 if not given")
    options.add_argument("--emu", action="store_true", help="the emulated GPU in place of one, to try the program")
    options.add_argument("--out", type=Path, default=RESULTS / "warp.json")
    chosen = options.parse_args()
    sys.path.insert(0, str(rasters.ROOT / "build" / "python"))
    device = "emu" if chosen.emu else find_device()
    if not device:
        sys.exit("no GPU")
    sizes = SIZES[chosen.size] | ({"repeats": chosen.repeats} if chosen.repeats else {})
    found = measure_gpu(sizes, device)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps({"gpu": found}, indent=1))
    print(gpu_tables(found))


if __name__ == "__main__":
    main()
