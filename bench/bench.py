"""Reading, measured: cogpu beside GDAL's two drivers, tifffile and async-geotiff, in one run.

Every repeat goes through all contenders, in an order that rotates, so that a slow moment of the
machine meets all alike. A whole read is open, read and close; windows are 200 of 512 x 512 at random
places from one open file, one after the other, with the caches that a reader has by default. All write into a fresh array of their own, whose page faults count. Files lie
in the page cache. Before each whole read as much memory as its array takes is touched and given back,
since a virtual machine may have lent it to others, and getting it back is not a reader's merit. Figures are
medians with the smallest and largest; ratios are medians of the ratios within each repeat.
Pixels of every contender are compared with the source before anything is measured.

Writes bench/results/read.md and read.json; --docs also puts the tables and their summary into docs/bench.md.
"""
import argparse
import gc
import json
import subprocess
import sys
import time

import numpy as np

import rasters
from common import ALL, RESULTS, best, machine, markdown, memory, not_measured, put_into, ratio, speed
from contenders import CodecAlone, contenders, infos, other_inflates, peers

OTHER_INFLATES = other_inflates()
JOBS = [("whole", 1), ("whole", ALL), ("windows", 1)]


def windows(side, count):
    random = np.random.default_rng(7)
    return [(*map(int, random.integers(0, side - 512, 2)), 512, 512) for _ in range(count)]


def run(contender, path, job, threads, places, raster_bytes, clock):
    """Seconds that one job takes."""
    gc.collect()
    if job == "whole":
        np.empty(raster_bytes, "u1").fill(1)
    start = clock()
    file = contender.open(path, threads)
    if job == "whole":
        file.read()
    for place in places if job == "windows" else ():
        file.read(place)
    file.close()
    return clock() - start


def differs(contender, path, source, lossy):
    """Why a contender cannot be measured on this file, or None: it reads a whole and a window right."""
    x, y, width, height = place = (source.shape[2] // 3, source.shape[1] // 5, 512, 512)
    expected = source[:, y:y + height, x:x + width]
    try:
        file = contender.open(path, ALL)
        for pixels in (file.read(), file.read(place)):
            wanted = source if pixels.shape == source.shape else expected
            if not lossy and not np.array_equal(pixels, wanted):
                return "wrong pixels"
            if lossy and np.abs(np.subtract(pixels, wanted, dtype="int16")).mean() > 2:
                return "wrong colours"
        file.close()
    except Exception as why:  # a peer that cannot read the file is a finding, not a failure
        return f"{type(why).__name__}: {why}"[:200]


def codecs_alone(path, codec, clock):
    """Seconds of the codec libraries alone, by name; the file is in memory before the clock starts."""
    alone, seconds = CodecAlone(path, 1), {}
    for name, read in {"codec alone": CodecAlone.read, **(OTHER_INFLATES if codec == "deflate" else {})}.items():
        start = clock()
        read(alone)
        seconds[name] = clock() - start
    return seconds


def measure(row, side, repeats, count, clock):
    path, source = rasters.file(row, side), rasters.raster(row.raster, side)
    if row.lossy:  # decoders differ by a rounding here and there, but not from GDAL by more
        source = peers()[0].open(path, ALL).read()
    count = max(count // row.windows_share, 1)
    places, refused, field = windows(side, count), {}, []
    for contender in contenders():
        why = differs(contender, path, source, row.lossy)
        refused |= {contender.name: why} if why else {}
        field += [] if why else [contender]
    seconds = {f"{job} {n}": {} for job, n in JOBS}
    for repeat in range(repeats):
        turn = repeat % len(field)
        for contender in field[turn:] + field[:turn]:
            for job, n in JOBS:
                if job in contender.jobs and n in contender.threads:
                    took = run(contender, path, job, n, places, source.nbytes, clock)
                    seconds[f"{job} {n}"].setdefault(contender.name, []).append(took)
        if row.codec in ("deflate", "zstd"):
            for name, took in codecs_alone(path, row.codec, clock).items():
                seconds["whole 1"].setdefault(name, []).append(took)
    window_bytes = count * 512 * 512 * source.shape[0] * source.itemsize
    return {"row": row.name, "stored_bytes": path.stat().st_size, "refused": refused, "seconds": seconds,
            "bytes": {f"{job} {n}": source.nbytes if job == "whole" else window_bytes for job, n in JOBS}}


def measure_opens(repeats, clock, count=2000):
    path, field, seconds = rasters.small_file(), list(infos().items()), {}
    for repeat in range(repeats):
        turn = repeat % len(field)
        for name, info in field[turn:] + field[:turn]:
            start = clock()
            for _ in range(count):
                info(path)
            seconds.setdefault(name, []).append(clock() - start)
    return {"count": count, "seconds": seconds}


def peak(name, path):
    """Bytes of memory that one whole read takes beyond its raster, in a process of its own."""
    code = ("import sys; from bench import *\n"
            "found = next(c for c in contenders() if c.name == sys.argv[1])\n"
            "file = found.open(rasters.DATA / sys.argv[2], 2)\n"
            "before = memory('VmRSS'); pixels = file.read()\n"
            "print(memory('VmHWM') - before - pixels.nbytes)")
    out = subprocess.run([sys.executable, "-c", code, name, path.name], cwd=rasters.ROOT / "bench",
                         capture_output=True, text=True)
    return int(out.stdout) if out.returncode == 0 else None


def ratios(key, seconds):
    """Headings and figures of the comparison. In windows GTiff has a cache of blocks, as we have; the others have none."""
    names = [peer.name for peer in peers()]
    if key.startswith("windows"):
        return {"x GTiff": ratio(seconds, "cogpu", names[0]),
                "no cache x best other": ratio(seconds, "cogpu, no cache", best(seconds, names[1:]))}
    found = {"x GTiff": ratio(seconds, "cogpu", names[0]),
             "x best peer": ratio(seconds, "cogpu", best(seconds, names))}
    if key == "whole 1":
        found |= {"x codec alone": ratio(seconds, "cogpu", "codec alone"),
                  "same array x codec alone": ratio(seconds, "cogpu, same array", "codec alone")}
    return found


def table(results, key, spread):
    names = [n for n in [c.name for c in contenders()] + ["codec alone", *OTHER_INFLATES]
             if any(n in result["seconds"][key] for result in results)]
    lines = []
    for result in results:
        seconds, megabytes = result["seconds"][key], result["bytes"][key] / 1e6
        speeds = [speed(megabytes, seconds.get(n), spread) for n in names]
        compared = ratios(key, seconds)
        lines.append([result["row"], *speeds, *compared.values()])
    return markdown(["file", *names, *compared], lines)


def report(outcome, spread):
    text = f"{outcome['machine']}; {outcome['side']} x {outcome['side']}; {outcome['repeats']} repeats; "
    text += f"{outcome['clock']}.\n"
    for key in (f"{job} {n}" for job, n in JOBS) if outcome["rows"] else ():
        job, n = key.split()
        what = ("Whole read" if job == "whole" else
                f"{outcome['windows']} windows of 512 x 512 (an eighth of it in strips, a hundredth in one strip)")
        text += f"\n{what}, {n} thread{'s' * (n != '1')}, MB/s:\n\n{table(outcome['rows'], key, spread)}"
    if outcome["opens"]:
        count = outcome["opens"]["count"]
        lines = [[n, speed(count, s, spread)] for n, s in outcome["opens"]["seconds"].items()]
        text += "\nOpens a second, with coordinate system and transform, all called from Python:\n\n"
        text += markdown(["who", "opens/s"], lines)
    if outcome["peak"]:
        names = list(next(iter(outcome["peak"].values())))
        text += "\nMemory beyond the raster in a whole read with 2 threads, MiB:\n\n" + markdown(
            ["file"] + names, [[row] + ["-" if b is None else f"{b / 2**20:.1f}" for b in found.values()]
                               for row, found in outcome["peak"].items()])
    return text + not_measured(outcome, "row", str)


def summary(outcome):
    """A row a file: our speed with one thread, and how many times as fast as others we are."""
    lines = []
    for result in outcome["rows"]:
        whole, megabytes = result["seconds"]["whole 1"], result["bytes"]["whole 1"] / 1e6
        one, windows = ratios("whole 1", whole), ratios("windows 1", result["seconds"]["windows 1"])
        several = ratios(f"whole {ALL}", result["seconds"][f"whole {ALL}"])
        lines.append([result["row"], speed(megabytes, whole["cogpu"], False), one["x GTiff"], one["x best peer"],
                      several["x best peer"], windows["x GTiff"]])
    return f"{outcome['machine']}; {outcome['side']} x {outcome['side']}.\n\n" + markdown(
        ["file", "MB/s, 1 thread", "x GDAL GTiff", "x best peer", f"{ALL} threads, x best peer",
         "windows, x GDAL GTiff"], lines)


def save(outcome):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "read.json").write_text(json.dumps(outcome, indent=1))
    (RESULTS / "read.md").write_text(report(outcome, spread=True))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--quick", action="store_true", help="2048 x 2048, 3 repeats, 20 windows")
    options.add_argument("--repeats", type=int, help="5 if not given")
    options.add_argument("--rows", default="", help="only rows whose name contains one of these, "
                         "by commas; 'opens' and 'peak' are rows too")
    options.add_argument("--docs", action="store_true", help="put the tables and their summary into docs/bench.md")
    options.add_argument("--cpu-time", action="store_true",
                         help="one thread only, by CPU time: for a machine that is not idle")
    chosen = options.parse_args()
    clock = time.process_time if chosen.cpu_time else time.perf_counter
    if chosen.cpu_time:
        JOBS[:] = [(job, n) for job, n in JOBS if n == 1]
    side, repeats, count = (2048, 3, 20) if chosen.quick else (8192, 5, 200)
    repeats = chosen.repeats or repeats
    wanted = lambda name: any(part in name for part in chosen.rows.split(","))
    CodecAlone.build(rasters.DATA)
    outcome = {"machine": machine(), "side": side, "repeats": repeats, "windows": count,
               "clock": "CPU time" if chosen.cpu_time else "time passed",
               "rows": [], "peak": {}, "opens": None}
    picked = [row for row in rasters.rows() if wanted(row.name)]
    for row in picked:
        print(f"measuring {row.name}", file=sys.stderr)
        outcome["rows"].append(measure(row, side, repeats, count, clock))
        save(outcome)  # a long run that is stopped leaves what it has
    if wanted("opens"):
        outcome["opens"] = measure_opens(repeats, clock)
    for row in rasters.rows() if wanted("peak") else ():
        if row.raster == "float32" and "p2" not in row.name:
            who = [c.name for c in contenders() if "whole" in c.jobs and ALL in c.threads]
            outcome["peak"][row.name] = {name: peak(name, rasters.file(row, side)) for name in who}
    save(outcome)
    print(report(outcome, spread=False))
    if chosen.docs:
        put_into("bench.md", "read-summary", summary(outcome))
        put_into("bench.md", "read", report(outcome, spread=False))


if __name__ == "__main__":
    main()
