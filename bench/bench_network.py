"""Reading over a network, measured: cogpu beside GDAL's /vsicurl and async-geotiff, in one run.

nginx on this machine sends each answer a while after the request, however many are asked at once: what a server far
away does. Every repeat goes through all contenders, in an order that rotates, each in a new process, so that none has
connections or bytes of before. The clock runs from the opening of the URL to the last pixel; what nginx was asked and
has sent is what its log says. All pixels of each run are compared. Figures are medians; ratios are medians of the
ratios within each repeat.

Writes bench/results/network.json and network.md; --docs also puts the table into docs/bench-network.md.
"""
import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import rasters
from bench_python import places, use_build, versions
from common import RESULTS, machine, markdown, not_measured, put_into, ratio
from network_peers import CONTENDERS
from python_peers import TILE, installed

sys.path.insert(0, str(rasters.ROOT / "tests" / "net"))
import cogs  # noqa: E402
from faults import Faults  # noqa: E402
from nginx import Nginx  # noqa: E402

JOBS, LEVEL = {"windows": f"{{windows}} windows of {TILE} x {TILE}", "overview": "a whole overview"}, 1


def cog(side):
    """The path of GDAL's COG of a surface model; made if it is not there."""
    path = rasters.DATA / "network" / f"cog-{side}.tif"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        cogs.write(part, np.asarray(rasters.raster("float32", side)), COMPRESS="DEFLATE", PREDICTOR="FLOATING_POINT",
                   BLOCKSIZE=TILE, NUM_THREADS="ALL_CPUS")
        part.rename(path)
    return path


class Server:
    """nginx before a folder, each of whose answers waits for so many seconds."""

    def __init__(self, folder, files, delay):
        self.nginx = Nginx(folder, files)
        self.clock = Faults(self.nginx.ports["http"])
        self.clock.plan(every={"kind": "delay", "seconds": delay}, among=[{"kind": "status", "code": 200}], share=1)
        self.url = f"{self.nginx.http}/late/{self.clock.port}"

    def asked(self):
        """How many requests since the last call, and the bytes of their answers."""
        requests = self.nginx.requests()
        return len(requests), sum(request.bytes for request in requests)

    def close(self):
        self.clock.close()
        self.nginx.close()


# ---- one run, in a process of its own ----------------------------------------------------------

def expected(path, job, spots):
    """As GDAL reads the file itself."""
    import rasterio
    with rasterio.open(path, **({"overview_level": LEVEL - 1} if job == "overview" else {})) as file:
        pixels = file.read(1)
    return pixels if job == "overview" else [pixels[y:y + TILE, x:x + TILE] for y, x in spots]


def run_here(name, job, url, path, spots):
    """Seconds of a job by a contender, those of CPU cores, and what is wrong with its pixels, or None."""
    act = getattr(next(kind for kind in CONTENDERS if kind.name == name)(), job)
    given = LEVEL if job == "overview" else spots
    start, started = time.perf_counter(), time.process_time()
    made = act(url, given)
    seconds = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - started}
    made = np.squeeze(made) if job == "overview" else [np.squeeze(window) for window in made]
    return seconds | {"wrong": None if np.array_equal(made, expected(path, job, spots)) else "wrong pixels"}


def run(contender, job, server, side, count):
    """The same, in a new process; and what the server says of it."""
    server.asked()
    url = f"{server.url}/{cog(side).name}"
    words = [sys.executable, __file__, "--run", contender.name, job, url, "--side", side, "--windows", count]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        return {"wrong": (done.stderr.strip() or "no word").splitlines()[-1][:200]}
    requests, sent = server.asked()
    return json.loads(done.stdout) | {"requests": requests, "bytes": sent}


def measure(contenders, job, server, side, count, repeats):
    """The runs of those who can do the job; of those who fail or read wrong pixels, why."""
    able, runs, refused = [kind for kind in contenders if getattr(kind, job)], {}, {}
    for repeat in range(repeats):
        turn = repeat % len(able)
        for contender in able[turn:] + able[:turn]:
            found = run(contender, job, server, side, count)
            runs.setdefault(contender.name, []).append(found)
            refused |= {contender.name: found["wrong"]} if found["wrong"] else {}
    return {"job": job, "runs": {kind.name: runs[kind.name] for kind in able if kind.name not in refused},
            "refused": refused}


# ---- tables ------------------------------------------------------------------------------------

def table(outcome):
    lines = []
    for found in outcome["jobs"]:
        runs = found["runs"]
        seconds, cpu, requests, sent = ({name: [run[what] for run in each] for name, each in runs.items()}
                                              for what in ("seconds", "cpu", "requests", "bytes"))
        what = JOBS[found["job"]].format(**outcome)
        lines += [[f"{what}: {name}", f"{median(seconds[name]):.3f}", ratio(seconds, "cogpu", name),
                   f"{median(cpu[name]):.2f}", f"{median(requests[name]):.0f}",
                   f"{median(sent[name]) / 1e6:.1f}"] for name in runs]
    return markdown(["who", "seconds", "x cogpu's", "CPU seconds", "requests", "MB"], lines)


def report(outcome):
    side, name = outcome["side"], outcome["machine"]
    text = f"{name}; {outcome['delay'] * 1e3:.0f} ms before each answer; a COG of {side} x {side} float32, tiles of "
    text += f"{TILE}, deflate, predictor 3; medians of {outcome['repeats']}; {outcome['versions']}.\n\n{table(outcome)}"
    return text + not_measured(outcome, "job", lambda job: JOBS[job].format(**outcome))


def save(outcome):
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "network.json").write_text(json.dumps(outcome, indent=1))
    (RESULTS / "network.md").write_text(report(outcome))


def gdal_version():
    return f"GDAL {importlib.import_module('rasterio').__gdal_version__}"


def measure_all(chosen):
    able = [kind for kind in CONTENDERS if installed(kind.needs)]
    outcome = {"machine": machine(), "side": chosen.side, "repeats": chosen.repeats, "windows": chosen.windows,
               "delay": chosen.delay, "absent": [kind.name for kind in CONTENDERS if kind not in able], "jobs": [],
               "versions": versions(["cogpu", "rasterio", "async-geotiff"]) + f", {gdal_version()}"}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), cog(chosen.side).parent, chosen.delay)
        for job in JOBS:
            print(f"measuring {JOBS[job].format(**outcome)}", file=sys.stderr)
            outcome["jobs"].append(measure(able, job, server, chosen.side, chosen.windows, chosen.repeats))
            save(outcome)  # a long run that is stopped leaves what it has
        server.close()
    return outcome


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--side", type=int, default=10000, help="of the raster; 10000 if not given")
    options.add_argument("--windows", type=int, default=100, help="100 if not given")
    options.add_argument("--delay", type=float, default=0.03, help="of each answer, in seconds; 0.03 if not given")
    options.add_argument("--repeats", type=int, default=7, help="7 if not given")
    options.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options.add_argument("--docs", action="store_true", help="put the table into docs/bench-network.md")
    chosen = options.parse_args()
    use_build()
    if chosen.run:
        spots = places(chosen.side, chosen.windows)
        print(json.dumps(run_here(*chosen.run, cog(chosen.side), spots)))
        return
    outcome = measure_all(chosen)
    print(report(outcome))
    if chosen.docs:
        put_into("bench-network.md", "network", report(outcome))


if __name__ == "__main__":
    main()
