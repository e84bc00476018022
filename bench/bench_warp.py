"""Warps and VRTs, measured: cogpu beside gdalwarp, rasterio and rioxarray, in one run.

- warp: a file in UTM to a raster in Web Mercator, from the page cache (open, decode, warp, close) and from pixels in
  memory (warp alone), with one thread and with all; warp_peers.py has the contenders, which take turns.
- vrt: 16 and 100 files joined by gdalbuildvrt, the whole and windows.
- memory: the largest memory of `cogpu warp` while it writes a COG of 100,000 x 100,000 from a few small files.
- gpu, where there is one: warp_gpu.py.

Pixels of all are compared before anything is measured: reads of VRTs with the source, warps with `gdalwarp -et 0`.
A warp is wrong if it differs from that by more than a quarter of what neighbouring pixels differ. Figures are
medians; ratios are medians of the ratios within each repeat.

Writes bench/results/warp.json and warp.md; --docs puts the tables that were measured into docs/bench-warp.md, and
--report makes them of a warp.json that another machine has written.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import rasterio
from rasterio.transform import from_origin

import rasters
from common import ALL, RESULTS, best, machine, markdown, not_measured, put_into, ratio
from warp_gpu import SIZES as GPU_SIZES
from warp_gpu import find_device, gpu_tables, in_turns, measure_gpu
from warp_peers import VRT_READERS, Gdalwarp, Grid, field, pixels_of

PARTS = ("warp", "vrt", "memory", "gpu")
FILES = ("float32 deflate p3", "rgb8 deflate p2", "uint16 deflate p2")
METHODS = ("bilinear", "cubic", "near")
THREADS = sorted({1, ALL})
MERCATOR = "EPSG:3857"
WINDOW = 512
LIMIT_BYTES = 256 << 20
WRONG = 0.25  # of the mean difference of neighbouring pixels
FULL = GPU_SIZES["full"] | {"side": 4096, "repeats": 5, "windows": 200, "mosaic_side": 100_000}
QUICK = GPU_SIZES["quick"] | {"side": 2048, "repeats": 3, "windows": 20, "mosaic_side": 20_000}
TINY = GPU_SIZES["tiny"] | {"side": 512, "repeats": 1, "windows": 4, "mosaic_side": 2000}
SIZES = {"full": FULL, "quick": QUICK, "tiny": TINY}


# ---- warps on the CPU ----------------------------------------------------------------------------

def gdal_name(method):
    return "near" if method == "nearest" else method


def python_name(method):
    return "nearest" if method == "near" else method


def distance(pixels, exact):
    """Mean difference of two rasters, as a share of the mean difference of neighbouring pixels."""
    neighbours = np.abs(np.diff(exact.astype("f8"), axis=-1)).mean()
    return np.abs(np.subtract(pixels, exact, dtype="f8")).mean() / neighbours


def wrong_warp(contender, act, exact):
    """Why a contender cannot be measured, or None."""
    try:
        pixels = pixels_of(act(contender), exact.dtype)
    except Exception as why:  # a peer that cannot do it is a finding, not a failure
        return f"{type(why).__name__}: {why}"[:200]
    if pixels.shape != exact.shape or distance(pixels, exact) > WRONG:
        return "wrong pixels"


def measure_warp(name, method, sizes, contenders):
    """One file by one method: from the file and from memory, for each number of threads."""
    path = rasters.file(next(row for row in rasters.rows() if row.name == name), sizes["side"])
    grid = Grid.inside(path, MERCATOR)
    gdal = Gdalwarp()
    with rasterio.open(path) as file:
        exact = gdal.warp(path, grid, gdal_name(method), ALL, error=0).array(file.dtypes[0])
    held = {contender.name: contender.held(path) for contender in contenders}
    outcome = {"warp": f"{name}, {python_name(method)}", "pixels": exact.shape[1] * exact.shape[2], "seconds": {}, "refused": {}}
    for kind in ("file", "memory"):
        for threads in THREADS:
            def act(contender):
                word = method if contender.name == "gdalwarp" else python_name(method)
                if kind == "file":
                    return contender.warp(path, grid, word, threads)
                return contender.warp_held(held[contender.name], grid, word, threads)
            able = []
            for contender in contenders:
                why = wrong_warp(contender, act, exact)
                outcome["refused"] |= {contender.name: why} if why else {}
                able += [] if why else [contender]
            outcome["seconds"][f"{kind} {threads}"] = in_turns(able, sizes["repeats"], act)
    gdal.library.GDALClose(held.pop("gdalwarp"))
    return outcome


def warp_tables(outcome):
    names, text = outcome["field"], ""
    titles = {"file": "From a file: open, decode, warp", "memory": "From pixels in memory: warp alone"}
    for key in (f"{kind} {threads}" for kind in titles for threads in outcome["threads"]):
        kind, threads = key.split()
        lines = []
        for found in outcome["warps"]:
            seconds = found["seconds"][key]
            shown = [f"{found['pixels'] / median(seconds[n]) / 1e6:.0f}" if n in seconds else "-" for n in names]
            peers = best(seconds, [n for n in names if n != "cogpu"])
            lines.append([found["warp"], *shown,
                          ratio(seconds, "cogpu", "gdalwarp"), ratio(seconds, "cogpu", peers)])
        text += f"\n{titles[kind]}, {threads} thread{'s' * (threads != '1')}, megapixels of the result a second:\n\n"
        text += markdown(["file and method", *names, "x gdalwarp", "x best peer"], lines)
    return text


# ---- VRTs ----------------------------------------------------------------------------------------

def tiles_of(row, side, across):
    """A raster as across x across files, and a VRT of gdalbuildvrt over them."""
    folder = rasters.DATA / f"tiles-{row.name.replace(' ', '-')}-{side}-{across}"
    vrt = folder / "all.vrt"
    if vrt.exists():
        return vrt
    folder.mkdir(parents=True, exist_ok=True)
    source, size, paths = rasters.raster(row.raster, side), -(-side // across), []
    for y in range(0, side, size):
        for x in range(0, side, size):
            paths.append(folder / f"{y}-{x}.tif")
            rasters.write(paths[-1], source[:, y:y + size, x:x + size],
                          row.options | {"transform": from_origin(356000 + x, 5700000 - y, 1, 1)})
    Gdalwarp().build_vrt(vrt, paths)
    return vrt


def measure_vrt(across, sizes):
    row = next(row for row in rasters.rows() if row.name == FILES[0])
    side, random = sizes["side"], np.random.default_rng(7)
    vrt, source = tiles_of(row, side, across), rasters.raster(row.raster, side)
    most = max(side - WINDOW, 1)
    windows = [(*map(int, random.integers(0, most, 2)), min(WINDOW, side)) for _ in range(sizes["windows"])]
    outcome = {"vrt": f"{across * across} files", "seconds": {}, "refused": {}, "bytes": {}}
    for job, places in (("whole", None), ("windows", windows)):
        expected = source if places is None else [source[:, y:y + s, x:x + s] for x, y, s in places]
        outcome["bytes"][job] = sum(part.nbytes for part in ([source] if places is None else expected))
        for threads in THREADS:
            able = []
            for name, read in VRT_READERS.items():
                made = read(vrt, places, threads)
                same = (np.array_equal(made, expected) if places is None else
                        all(map(np.array_equal, made, expected)))
                outcome["refused"] |= {} if same else {name: "wrong pixels"}
                able += [name] if same else []
            outcome["seconds"][f"{job} {threads}"] = in_turns(
                able, sizes["repeats"], lambda name: VRT_READERS[name](vrt, places, threads))
    return outcome


def vrt_table(outcome):
    names, lines = list(VRT_READERS), []
    for found in outcome["vrts"]:
        for key, seconds in found["seconds"].items():
            job, threads = key.split()
            what = "whole" if job == "whole" else f"{outcome['sizes']['windows']} windows"
            shown = [f"{found['bytes'][job] / median(seconds[n]) / 1e6:.0f}" if n in seconds else "-" for n in names]
            lines.append([f"{found['vrt']}, {what}, {threads} thread{'s' * (threads != '1')}", *shown,
                          ratio(seconds, "cogpu", "GDAL"), ratio(seconds, "cogpu, cache", "GDAL")])
    return "\nVRTs of gdalbuildvrt, MB/s:\n\n" + markdown(["read", *names, "x GDAL", "cache x GDAL"], lines)


# ---- memory --------------------------------------------------------------------------------------

def sparse_scenes(side, count=8, size=1024):
    """Small files of uint8 on the diagonal of a raster of side x side pixels of 10 m."""
    size, folder = min(size, side // count), rasters.DATA / f"sparse-{side}"
    folder.mkdir(parents=True, exist_ok=True)
    paths, step = [], (side - size) // (count - 1)
    y, x = np.mgrid[:size, :size]
    pixels = (128 + 100 * np.sin(x / 30) * np.cos(y / 40)).astype("uint8")[None]
    for number in range(count):
        place = number * step if number < count - 1 else side - size
        paths.append(folder / f"{number}.tif")
        if not paths[-1].exists():
            rasters.write(paths[-1], pixels, {**rasters.TILES, **rasters.DEFLATE, "nodata": 0,
                                              "transform": from_origin(300000 + 10 * place, 6000000 - 10 * place, 10, 10)})
    return paths


# A process's largest memory begins with that of the one that started it, so this small one starts it.
MEASURE = ("import json, resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
           "print(json.dumps([code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]))")


def measure_memory(side, program):
    """`cogpu warp` to a COG, in a process of its own."""
    paths, target = sparse_scenes(side), rasters.DATA / "sparse-out.tif"
    target.unlink(missing_ok=True)
    words = [program, "warp", *paths, target, "--cog", "--quiet"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *words], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    code, largest = json.loads(done.stdout)
    if code:
        return {"side": side, "failed": done.stderr.strip()[:200]}
    with rasterio.open(target) as file, rasterio.open(paths[-1]) as last:
        overviews, size = len(file.overviews(1)), last.width
        here = rasterio.windows.Window(side - size, side - size, size, size)
        same = file.shape == (side, side) and np.array_equal(file.read(window=here), last.read())
    found = {"side": side, "rss_bytes": largest, "seconds": seconds, "overviews": overviews,
             "file_bytes": target.stat().st_size}
    target.unlink()
    return found if same else {"side": side, "failed": "wrong pixels"}


def memory_table(found):
    if "failed" in found:
        return f"\nMemory was not measured: {found['failed']}\n"
    line = [f"{found['side']:,} x {found['side']:,} uint8 from 8 files, {found['overviews']} overviews",
            f"{found['rss_bytes'] / 2**20:.0f} MiB", f"{LIMIT_BYTES >> 20} MiB", f"{found['seconds']:.1f} s",
            f"{found['file_bytes'] / 1e6:.1f} MB"]
    return "\n" + markdown(["`cogpu warp ... --cog`", "largest memory", "allowed", "time", "file"], [line])


# ---- report --------------------------------------------------------------------------------------

def heading(outcome):
    sizes = outcome["sizes"]
    return (f"{outcome['machine']}; rasters of {sizes['side']} x {sizes['side']}; medians of {sizes['repeats']}; "
            f"{outcome['versions']}.\n")


def tables(outcome):
    """{mark in docs/bench-warp.md: text} of what was measured."""
    found = {}
    if outcome.get("warps"):
        found["warp"] = heading(outcome) + warp_tables(outcome) + not_measured(outcome, "warp", str)
    if outcome.get("vrts"):
        found["vrt"] = heading(outcome) + vrt_table(outcome) + not_measured({"vrts": outcome["vrts"]}, "vrt", str)
    if outcome.get("memory"):
        found["memory"] = f"{outcome['machine']}.\n" + memory_table(outcome["memory"])
    if outcome.get("gpu"):
        found["gpu"] = gpu_tables(outcome["gpu"])
    return found


def save(outcome):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "warp.json").write_text(json.dumps(outcome, indent=1))
    (RESULTS / "warp.md").write_text("\n".join(tables(outcome).values()))


def versions():
    import cogpu
    return ", ".join([f"cogpu {cogpu.__version__}", f"GDAL {rasterio.__gdal_version__}",
                      f"rasterio {rasterio.__version__}"])


def measure(chosen, sizes):
    contenders, absent = field()
    outcome = {"machine": machine(), "sizes": sizes, "threads": THREADS, "field": [c.name for c in contenders],
               "absent": absent, "versions": versions(), "warps": [], "vrts": [], "memory": None, "gpu": None}
    if "warp" in chosen.only:
        for name in FILES:
            for method in METHODS:
                print(f"measuring {name}, {python_name(method)}", file=sys.stderr)
                outcome["warps"].append(measure_warp(name, method, sizes, contenders))
                save(outcome)  # a long run that is stopped leaves what it has
    for across in (4, 10) if "vrt" in chosen.only else ():
        print(f"measuring a VRT of {across * across} files", file=sys.stderr)
        outcome["vrts"].append(measure_vrt(across, sizes))
        save(outcome)
    if "memory" in chosen.only:
        print("measuring memory", file=sys.stderr)
        outcome["memory"] = measure_memory(sizes["mosaic_side"], rasters.ROOT / "build" / "cogpu")
    device = "emu" if chosen.emu else find_device()
    if "gpu" in chosen.only and device:
        print(f"measuring {device}", file=sys.stderr)
        outcome["gpu"] = measure_gpu(sizes, device)
    elif "gpu" in chosen.only:
        print("no GPU: that part is left out", file=sys.stderr)
    save(outcome)
    return outcome


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--size", choices=SIZES, default="full", help="of rasters; full if not given")
    options.add_argument("--quick", action="store_const", dest="size", const="quick", help="2048 x 2048, 3 repeats")
    options.add_argument("--repeats", type=int, help="5 if not given")
    options.add_argument("--only", action="append", choices=PARTS, help="a part; all if not given")
    options.add_argument("--emu", action="store_true", help="the emulated GPU in place of one, to try the program")
    options.add_argument("--report", type=Path, help="make the tables of this warp.json and measure nothing")
    options.add_argument("--docs", action="store_true", help="put the tables into docs/bench-warp.md")
    chosen = options.parse_args()
    sizes = SIZES[chosen.size] | ({"repeats": chosen.repeats} if chosen.repeats else {})
    chosen.only = chosen.only or list(PARTS)
    sys.path.insert(0, str(rasters.ROOT / "build" / "python"))
    outcome = json.loads(chosen.report.read_text()) if chosen.report else measure(chosen, sizes)
    for mark, text in tables(outcome).items():
        print(text)
        if chosen.docs:
            put_into("bench-warp.md", mark, text)


if __name__ == "__main__":
    main()
