"""The Python package, measured: cogpu beside rioxarray, xarray-spatial, odc-geo's COG writers and async-geotiff, in
one run.

Every repeat goes through all contenders, in an order that rotates, so that a slow moment of the machine meets all
alike. Files lie in the page cache and are opened anew. What each contender reads or writes is compared with the
source, by rasterio where it is a file, before anything is measured. Then what the package adds to the engine: its
import, an eager read over the bare call, a lazy open and how often it reads, a Dask graph of 100 x 100 chunks, and the
memory of the workers of a cluster that writes a COG. Figures are medians; ratios are medians of the ratios within each
repeat.

Writes bench/results/python.json and python.md; --docs also puts the tables into docs/bench-python.md.
"""
import argparse
import gc
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import numpy as np

import rasters
from common import RESULTS, best, machine, markdown, not_measured, put_into, ratio
from python_peers import TILE, field

JOBS = {"whole": "read whole", "windows": "windows", "windows_cache": "windows, with a cache of blocks",
        "lazy": "open lazily", "mean": "mean by Dask", "cog": "COG of an array", "cog_dask": "COG of a Dask array"}
OPENS, SMALL_READS, IMPORTS = 20, 200, 15
SYSTEMS = (32632, 4326, 3857, 3067, 25832, 2056, 27700, 5070, 3035, 32755, 2154, 28992, 3006, 31370, 5514, 26918, 3413)


def places(side, count):
    random = np.random.default_rng(7)
    return [tuple(map(int, random.integers(0, side - TILE, 2))) for _ in range(count)]


class Course:
    """A raster and its file, and one call for each job."""

    def __init__(self, side, count):
        import rioxarray  # noqa: F401: its accessor
        import xarray
        self.row = next(row for row in rasters.rows() if row.name == "float32 deflate p3")
        self.path, self.source = rasters.file(self.row, side), np.asarray(rasters.raster("float32", side))
        self.places, self.target = places(side, count), rasters.DATA / "python-out.tif"
        self.raster = xarray.DataArray(
            self.source, dims=("band", "y", "x"),
            coords={"band": [1], "y": 5700000 - 0.5 - np.arange(side), "x": 356000 + 0.5 + np.arange(side)})
        self.raster = self.raster.rio.write_crs("EPSG:32632").rio.write_transform()
        self.chunked = self.raster.chunk({"band": 1, "y": TILE * 2, "x": TILE * 2})

    def run(self, contender, job):
        """Seconds of a job, and what it made."""
        act, windows = getattr(contender, job), (self.path, self.places)
        given = {"windows": windows, "windows_cache": windows, "cog": (self.raster, self.target),
                 "cog_dask": (self.chunked, self.target)}.get(job, (self.path,))
        self.target.unlink(missing_ok=True)
        gc.collect()
        start = time.perf_counter()
        for _ in range(OPENS if job == "lazy" else 1):
            made = act(*given)
        return (time.perf_counter() - start) / (OPENS if job == "lazy" else 1), made

    def wrong(self, contender, job):
        """Why a contender cannot be measured on this job, or None."""
        try:
            _, made = self.run(contender, job)
        except Exception as why:  # a peer that cannot do it is a finding, not a failure
            return f"{type(why).__name__}: {why}"[:200]
        if job == "whole" and not np.array_equal(np.squeeze(made), self.source[0]):
            return "wrong pixels"
        if job.startswith("windows") and not all(np.array_equal(np.squeeze(one), self.source[0, y:y + TILE, x:x + TILE])
                                                  for one, (y, x) in zip(made, self.places)):
            return "wrong pixels"
        if job == "mean" and not np.isclose(made, self.source.mean(dtype="f8"), rtol=1e-4):
            return "wrong mean"
        return self.wrong_file() if job.startswith("cog") else None

    def wrong_file(self):
        import rasterio
        with rasterio.open(self.target) as file:
            if not np.array_equal(file.read(), self.source):
                return "wrong pixels"
            if not file.overviews(1) or file.compression != rasterio.enums.Compression.deflate:
                return "no overviews, or another codec"

    def measure(self, contenders, job, repeats):
        seconds, refused, able, sizes = {}, {}, [], {}
        for contender in contenders:
            if hasattr(contender, job):
                why = self.wrong(contender, job)
                refused |= {contender.name: why} if why else {}
                able += [] if why else [contender]
                if job.startswith("cog") and not why:
                    sizes[contender.name] = self.target.stat().st_size
        for repeat in range(repeats if able else 0):
            turn = repeat % len(able)
            for contender in able[turn:] + able[:turn]:
                seconds.setdefault(contender.name, []).append(self.run(contender, job)[0])
        return {"job": job, "seconds": seconds, "refused": refused, "sizes": sizes}


# ---- what the package adds ---------------------------------------------------------------------

def copies(count, pixels, **options):
    """Paths of as many equal small files, so that none is known from before."""
    folder = rasters.DATA / "python-small"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rasters.write(folder / "0.tif", pixels, options)
    for number in range(1, count):
        shutil.copy(folder / "0.tif", folder / f"{number}.tif")
    return [folder / f"{number}.tif" for number in range(count)]


def timed(action, clock=time.perf_counter):
    start = clock()
    action()
    return clock() - start


def eager_overhead(cogpu):
    """Medians of a small read by the bare call and by open_geotiff, in turns."""
    from cogpu import _cogpu
    out, bare, ours = np.ones((1, 256, 256), "float32"), [], []
    paths = copies(SMALL_READS, out, tiled=True, blockxsize=256, blockysize=256)

    def engine(path):
        file = _cogpu.File(os.fspath(path))
        file.read(out=out)
        file.close()
    for path in paths:  # the second reader finds the file in the CPU's cache: each is second once
        pair = [lambda path=path: bare.append(timed(lambda: engine(path))),
                lambda path=path: ours.append(timed(lambda: cogpu.open_geotiff(path)))]
        for act in pair if len(bare) % 2 else pair[::-1]:
            act()
    return {"bare_ms": median(bare) * 1e3, "open_geotiff_ms": median(ours) * 1e3,
            "added_ms": median(b - a for a, b in zip(bare, ours)) * 1e3}


def reads():
    """System calls of this process that read, so far."""
    return int(Path("/proc/self/io").read_text().split("syscr:")[1].split()[0])


def import_overhead():
    """Median of importing the package into a new process, from compiled modules, as an installed one has them."""
    code = "import time; start = time.perf_counter(); import cogpu; print(time.perf_counter() - start)"
    with tempfile.TemporaryDirectory() as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        words = [sys.executable, "-c", code]
        took = [float(subprocess.run(words, env=environment, capture_output=True, check=True).stdout)
                for _ in range(IMPORTS + 1)]
    return {"ms": median(took[1:]) * 1e3}


def lazy_overhead(cogpu):
    """Medians of the first lazy open of a file, with a coordinate system that was met before or with a new one, and the
    reads that one takes."""
    paths = copies(50, np.ones((1, 256, 256), "float32"), tiled=True, blockxsize=64, blockysize=64)
    cogpu.open_geotiff(paths.pop(), chunks=64)
    nothing = -reads() + reads()
    before = reads()
    cogpu.open_geotiff(paths.pop(), chunks=64)
    taken = reads() - before - nothing
    took = [timed(lambda path=path: cogpu.open_geotiff(path, chunks=64)) for path in paths]
    first, *others = [system_file(code) for code in SYSTEMS]
    cogpu.open_geotiff(first, chunks=64)  # PROJ opens its registry once in a process
    new = [timed(lambda path=path: cogpu.open_geotiff(path, chunks=64)) for path in others]
    return {"open_ms": median(took) * 1e3, "new_system_ms": median(new) * 1e3, "reads": taken}


def system_file(code):
    path = rasters.DATA / "python-small" / f"epsg-{code}.tif"
    rasters.write(path, np.ones((1, 256, 256), "float32"),
                  {"tiled": True, "blockxsize": 64, "blockysize": 64, "crs": f"EPSG:{code}"})
    return path


def graph_overhead(cogpu, repeats):
    """Median of making an array of 100 x 100 chunks and its graph, by CPU time: it is one thread's work alone."""
    path = rasters.DATA / "python-grid.tif"
    if not path.exists():
        rasters.write(path, np.broadcast_to(np.uint8(0), (1, 6400, 6400)),
                      {"tiled": True, "blockxsize": 64, "blockysize": 64, "sparse_ok": True})

    def build():
        graph = dict(cogpu.open_geotiff(path, chunks=64).data.__dask_graph__())
        assert len(graph) >= 10000
    return {"seconds": median(timed(build, time.process_time) for _ in range(repeats))}


def overheads(repeats):
    import cluster_memory
    import cogpu
    return {"import": import_overhead(), "eager": eager_overhead(cogpu), "lazy": lazy_overhead(cogpu),
            "graph": graph_overhead(cogpu, repeats), "cluster": cluster_memory.measure()}


# ---- tables ------------------------------------------------------------------------------------

def cell(seconds, job):
    if not seconds:
        return "-"
    return f"{median(seconds) * 1e3:.2f} ms" if job == "lazy" else f"{median(seconds):.3f} s"


def table(outcome):
    names = outcome["field"]
    lines = []
    for found in outcome["jobs"]:
        seconds = found["seconds"]
        peers = best(seconds, [name for name in names if name != "cogpu"])
        what = JOBS[found["job"]].replace("windows", f"{outcome['windows']} windows of {TILE} x {TILE}")
        lines.append([what, *(cell(seconds.get(name), found["job"]) for name in names), ratio(seconds, "cogpu", peers)])
    return markdown(["job", *names, "x best peer"], lines)


def overhead_table(found):
    eager, lazy = found["eager"], found["lazy"]
    lines = [["import cogpu", f"{found['import']['ms']:.1f} ms", "100 ms"],
             ["open_geotiff over the bare call, eager, 256 x 256", f"{eager['added_ms']:.2f} ms", "1 ms"],
             ["open lazily, with chunks", f"{lazy['open_ms']:.2f} ms", "2 ms"],
             ["the same, a coordinate system not met before", f"{lazy['new_system_ms']:.2f} ms", "2 ms"],
             ["reads of the file at a lazy open", f"{lazy['reads']}", "1"],
             ["graph of 100 x 100 chunks, CPU time", f"{found['graph']['seconds']:.3f} s", "0.5 s"]]
    side, workers = found["cluster"]["side"], found["cluster"]["worker_bytes"]
    lines.append([f"COG of {side} x {side} by {len(workers)} workers of a cluster: memory of the largest, all of it",
                  f"{max(workers) / 1e6:.0f} MB", "512 MB"])
    return markdown(["what", "measured", "allowed"], lines)


def report(outcome):
    text = f"{outcome['machine']}; {outcome['side']} x {outcome['side']} float32, deflate 6, predictor 3; medians of "
    text += f"{outcome['repeats']}; {outcome['versions']}.\n\n{table(outcome)}"
    if outcome["overheads"]:
        text += f"\nWhat the package adds:\n\n{overhead_table(outcome['overheads'])}"
    return text + not_measured(outcome, "job", JOBS.get)


def versions(names):
    found = ["Python {}.{}".format(*sys.version_info)]
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # ours, from the build
            found.append(f"{name} {importlib.import_module(name).__version__}")
    return ", ".join(found)


def save(outcome):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "python.json").write_text(json.dumps(outcome, indent=1))
    (RESULTS / "python.md").write_text(report(outcome))


def use_build():
    """The package of the build, here and for the workers of the cluster."""
    package = str(rasters.ROOT / "build" / "python")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = os.pathsep.join([package, str(rasters.ROOT / "bench")])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--side", type=int, default=8192, help="of the raster; 8192 if not given")
    options.add_argument("--windows", type=int, default=200, help="200 if not given")
    options.add_argument("--repeats", type=int, default=5, help="5 if not given")
    options.add_argument("--only", action="append", help="a job: " + ", ".join([*JOBS, "overheads"]))
    options.add_argument("--docs", action="store_true", help="put the tables into docs/bench-python.md")
    chosen = options.parse_args()
    side, repeats, count = chosen.side, chosen.repeats, chosen.windows
    use_build()
    contenders, absent = field()
    names = [contender.name for contender in contenders]
    outcome = {"machine": machine(), "side": side, "repeats": repeats, "windows": count, "field": names,
               "absent": absent, "versions": versions(names), "jobs": [], "overheads": None}
    if not chosen.only or "overheads" in chosen.only:  # first: the disk is busy for a while with what jobs have written
        outcome["overheads"] = overheads(repeats)
        save(outcome)
    course = Course(side, count)
    for job in JOBS:
        if not chosen.only or job in chosen.only:
            print(f"measuring {JOBS[job]}", file=sys.stderr)
            outcome["jobs"].append(course.measure(contenders, job, repeats))
            save(outcome)  # a long run that is stopped leaves what it has
    print(report(outcome))
    if chosen.docs:
        put_into("bench-python.md", "python", report(outcome))


if __name__ == "__main__":
    main()
