"""Writing, measured: cogpu beside GDAL's GTiff and COG drivers, rio-cogeo and tifffile, in one run.

Every repeat goes through all writers, in an order that rotates, so that a slow moment of the machine meets
all alike. Each write is a process of its own (writers.py): an array in memory becomes a file, from open to
close, and the most memory that this takes is counted beyond the array. Files go to a file system in
memory where there is one: a disk is not a writer's merit, and of these writers cogpu alone waits until the file
is on it. Each file is read back by GDAL, and has to have the array's pixels, the tiles, codec and predictor
that were asked for, and in a COG overviews, before its time counts. Figures are medians with the smallest
and largest; ratios are medians of the ratios within each repeat.

A last row is a COG of 20,000 x 20,000 from a stream, to the disk: chunks of 256 rows, made as they pass.

Writes bench/results/write.md and write.json; --docs also puts the tables and their summary into
docs/bench.md.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from statistics import median

import numpy as np
import rasterio
from rasterio.errors import NotGeoreferencedWarning
from rasterio.windows import Window

import rasters
from common import ALL, RESULTS, best, machine, markdown, not_measured, put_into, ratio, speed
from writers import BLOCK, CHUNK, cases, cogpu_lib, stream_case, writers

STREAM_SIDE = 20000
THREADS = sorted({1, ALL})
MEMORY_DISK = Path("/dev/shm")
warnings.simplefilter("ignore", NotGeoreferencedWarning)  # tifffile writes pixels alone


def in_process(*arguments):
    """What one write in a process of its own comes to."""
    os.sync()  # so that no writer flushes the pages of another
    done = subprocess.run([sys.executable, Path(__file__).parent / "writers.py", *map(str, arguments)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().split("\n")[-1][:200])
    return json.loads(done.stdout)


def rows_of(source, side):
    """Chunks of (first, pixels) of an array, or of one that is too large to be made."""
    for first in range(0, side, CHUNK):
        count = min(CHUNK, side - first)
        yield first, (source[:, first:first + count] if source.shape[1] == side else
                      rasters.enlarge(source, side, first, count))


def check(path, case, source, side):
    """Raises unless the file is what was to be written."""
    with rasterio.open(path, num_threads=ALL) as file:
        tags = file.tags(ns="IMAGE_STRUCTURE") | file.tags(1, ns="IMAGE_STRUCTURE")
        stored = tags.get("COMPRESSION", "none").lower(), int(tags.get("PREDICTOR", 1)), file.block_shapes[0]
        if stored != (case.codec, case.predictor, (BLOCK, BLOCK)):
            raise RuntimeError(f"stored otherwise: {stored}")
        if case.cog != bool(file.overviews(1)):
            raise RuntimeError(f"overviews: {file.overviews(1)}")
        for first, pixels in rows_of(source, side):
            if not np.array_equal(file.read(window=Window(0, first, side, pixels.shape[1])), pixels):
                raise RuntimeError(f"wrong pixels from row {first} on")
        return [side] + [-(-side // factor) for factor in file.overviews(1)]


def write_checked(case, name, threads, side, path, source):
    path.unlink(missing_ok=True)
    found = in_process(name, case.name, threads, side, path)
    check(path, case, source, side)
    return found | {"bytes": path.stat().st_size}


def measure(case, side, repeats, folder, seconds):
    source, path = rasters.raster(case.raster, side), folder / "written.tif"
    field, refused = list(writers(case)), {}
    found = {str(threads): {} for threads in THREADS}
    for repeat in range(repeats):
        turn = repeat % len(field)
        for name in field[turn:] + field[:turn]:
            for threads in THREADS if name not in refused else ():
                try:
                    once = write_checked(case, name, threads, side, path, source)
                    found[str(threads)].setdefault(name, []).append(once)
                except RuntimeError as why:  # a peer that cannot write it is a finding, not a failure
                    refused[name] = str(why)
    path.unlink(missing_ok=True)
    pick = lambda what: {threads: {name: [once[what] for once in all] for name, all in by_name.items()
                                   if name not in refused} for threads, by_name in found.items()}
    return {"row": case.name, "kind": case.kind, "raster_bytes": source.nbytes, "refused": refused,
            "seconds": pick(seconds), "memory": pick("memory"), "bytes": pick("bytes")}


def measure_stream(side, folder, seconds):
    """Beside it what the writer may take: 64 MiB and three rows of blocks a level."""
    path = folder / "streamed.tif"
    path.unlink(missing_ok=True)
    found = in_process("stream", ALL, side, path)
    widths = check(path, stream_case(), rasters.small("float32"), side)
    size = path.stat().st_size
    path.unlink()
    allowed = (64 << 20) + sum(3 * BLOCK * width * 4 for width in widths)
    return {"side": side, "threads": ALL, "levels": len(widths), "seconds": found[seconds], "bytes": size,
            "memory": found["memory"], "allowed": allowed}


def mebibytes(values):
    return f"{median(values) / 2**20:.1f}" if values else "-"


def names_of(results):
    """All who were measured, and of these the others."""
    names = list(dict.fromkeys(name for result in results for name in result["seconds"]["1"]))
    return names, [name for name in names if name != "cogpu"]


def speeds(results, threads, spread):
    (names, peers), lines = names_of(results), []
    for result in results:
        seconds, megabytes = result["seconds"][threads], result["raster_bytes"] / 1e6
        lines.append([result["row"], *(speed(megabytes, seconds.get(name), spread) for name in names),
                      *(ratio(seconds, "cogpu", name) for name in peers)])
    return markdown(["file", *names, *(f"x {name}" for name in peers)], lines)


def share(sizes, name):
    """Our size as a part of another's, as text."""
    return f"{sizes['cogpu'][0] / sizes[name][0]:.3f}" if "cogpu" in sizes and name in sizes else "-"


def sizes(results):
    (names, peers), lines = names_of(results), []
    for result in results:
        found = result["bytes"]["1"]
        lines.append([result["row"], *(f"{found[name][0] / 1e6:.2f}" if name in found else "-" for name in names),
                      *(share(found, name) for name in peers)])
    return markdown(["file", *names, *(f"ours / {name}" for name in peers)], lines)


def memories(results, threads):
    names, _ = names_of(results)
    return markdown(["file", *names], [[result["row"], *(mebibytes(result["memory"][threads].get(name))
                                                         for name in names)] for result in results])


def stream_report(stream):
    side = stream["side"]
    return (f"\nA COG of {side} x {side} float32 ({stream['levels']} levels, deflate 6) from chunks of {CHUNK} rows, "
            f"{stream['threads']} threads, to the disk and flushed:\n\n" + markdown(
                ["who", "MB/s", "file, MB", "memory beyond the chunk, MiB", "allowed: 64 + 3 rows of blocks a level, MiB"],
                [["cogpu", f"{side * side * 4 / 1e6 / stream['seconds']:.0f}", f"{stream['bytes'] / 1e6:.0f}",
                  mebibytes([stream["memory"]]), mebibytes([stream["allowed"]])]]))


def report(outcome, spread):
    side, text = outcome["side"], ""
    for kind in ("GeoTIFF", "COG"):
        results = [result for result in outcome["rows"] if result["kind"] == kind]
        for threads in map(str, THREADS) if results else ():
            plural = "s" * (threads != "1")
            text += f"\n{kind}, {threads} thread{plural}, MB/s:\n\n{speeds(results, threads, spread)}"
        if results:
            text += f"\n{kind}, size, MB:\n\n{sizes(results)}"
            text += f"\n{kind}, memory beyond the raster, {ALL} threads, MiB:\n\n{memories(results, str(ALL))}"
    text += stream_report(outcome["stream"]) if outcome["stream"] else ""
    return (f"{outcome['machine']}; {side} x {side}; {outcome['repeats']} repeats; {outcome['clock']}.\n" + text +
            not_measured(outcome, "row", str))


def summary(outcome):
    """A row a file: our speed, how many times as fast as the best other we are, size and memory beside theirs."""
    lines = []
    for result in outcome["rows"]:
        line = [result["row"]]
        for threads in map(str, THREADS):
            seconds = result["seconds"][threads]
            peer = best(seconds, [name for name in seconds if name != "cogpu"])
            line += [speed(result["raster_bytes"] / 1e6, seconds.get("cogpu"), False), ratio(seconds, "cogpu", peer)]
        held = result["memory"][str(ALL)]
        others = [median(values) for name, values in held.items() if name != "cogpu"]
        lines.append(line + [share(result["bytes"][str(ALL)], peer), mebibytes(held.get("cogpu")),
                             mebibytes([min(others)] if others else [])])
    plural = lambda threads: f"{threads} thread" + "s" * (threads > 1)
    speeds = [heading for threads in THREADS for heading in (f"MB/s, {plural(threads)}", "x best peer")]
    text = f"{outcome['machine']}; {outcome['side']} x {outcome['side']}.\n\n" + markdown(
        ["file", *speeds, "size, ours / best peer's", "memory beyond the raster, MiB", "least of the peers, MiB"], lines)
    return text + (stream_report(outcome["stream"]) if outcome["stream"] else "")


def save(outcome):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "write.json").write_text(json.dumps(outcome, indent=1))
    (RESULTS / "write.md").write_text(report(outcome, spread=True))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--side", type=int, default=5000, help="of the rasters (5000)")
    options.add_argument("--stream-side", type=int, default=STREAM_SIDE, help=f"of the stream's ({STREAM_SIDE})")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--rows", default="", help="only rows whose name contains one of these, by commas; "
                         "'stream' is a row too")
    options.add_argument("--folder", type=Path, default=MEMORY_DISK if MEMORY_DISK.is_dir() else rasters.DATA,
                         help="where files go, but for the stream's (%(default)s)")
    options.add_argument("--docs", action="store_true", help="put the tables and their summary into docs/bench.md")
    options.add_argument("--cpu-time", action="store_true", help="by CPU time: for a machine that is not idle")
    chosen = options.parse_args()
    seconds = "cpu_seconds" if chosen.cpu_time else "seconds"
    wanted = lambda name: any(part in name for part in chosen.rows.split(","))
    outcome = {"machine": machine(), "side": chosen.side, "repeats": chosen.repeats,
               "clock": "CPU time" if chosen.cpu_time else "time passed", "rows": [], "stream": None}
    rasters.DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cogpu-bench-", dir=chosen.folder) as folder:
        for case in cases():
            if wanted(case.name):
                print(f"measuring {case.name}", file=sys.stderr)
                outcome["rows"].append(measure(case, chosen.side, chosen.repeats, Path(folder), seconds))
                save(outcome)  # a long run that is stopped leaves what it has
    if wanted("stream") and cogpu_lib:
        print("measuring stream", file=sys.stderr)
        outcome["stream"] = measure_stream(chosen.stream_side, rasters.DATA, seconds)
    save(outcome)
    print(report(outcome, spread=False))
    if chosen.docs:
        put_into("bench.md", "write-summary", summary(outcome))
        put_into("bench.md", "write", report(outcome, spread=False))


if __name__ == "__main__":
    main()
