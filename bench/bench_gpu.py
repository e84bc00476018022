"""Reading into the GPU's memory and writing from it, measured: cogpu beside nvCOMP, nvTIFF and xarray-spatial.

On rasters of 10,000 x 10,000 and smaller ones, stored in every way of gpu_files.py (DEMs in 16 tiles of 1024, scenes in 121,
one strip, rasters that no kernel was tuned with):
- decode alone: all blocks of a file from device memory to device memory, by events on the stream;
  gpu_decode.c, which compares every byte with what the host's codec gives;
- memory to raster and file to raster: open, read, close, until the pixels are in the GPU's memory; from the
  file's bytes in page-locked host memory, and from a file in the page cache; gpu_readers.py, which
  compares every pixel with the source;
- raw upload: the file's bytes to the device as file to raster takes them, without decoding; gpu_ring.c;
- H2D copy: the file's bytes copied from page-locked memory, and nothing else.
And writing, a raster of 8192 x 8192:
- encode alone, and pack and compact beside it: from device memory to device memory; gpu_encode.c, which has the
  host's codec decode every stream, and sets sizes beside those of zlib 6, zstd 9 and libtiff's LZW;
- raster to memory and raster to file, beside a bare write of the same bytes: gpu_writers.py, which reads every
  file back; and the memory that a COG by chunks takes.
Those measured together take turns. Figures are medians. A peer that is not installed, or refuses a file, is
named below the table.

Cases are chosen by parts of their names, with * for anything: "deflate-p3", "uint16-*-512", "write". Writes gpu.json,
gpu.md and, where matplotlib is installed, pictures into bench/results (--out), and prints the tables; gpu_report.py
makes of gpu.json what docs/bench-gpu.md shows.
"""
import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import gpu_files
import gpu_report
import rasters

SECONDS = 90  # that one file may take
STREAM_BYTES = 64 << 20  # of the device, that a writer by chunks is given beside its default
BENCH = Path(__file__).resolve().parent
PARTS = ("decode", "reads", "encode", "writes")  # methods of Run


def build(folder):
    """The programs in C and the library, in a release build that has the kernels inside."""
    ninja = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    commands = (["cmake", "-S", rasters.ROOT, "-B", folder, *ninja, "-DCOGPU_BENCH=ON"],
                ["cmake", "--build", folder, "--target", "bench_gpu"])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}\nthe build failed")


def environment(folder):
    """With pip's nvCOMP where programs look for it: gpu_decode.c and nvTIFF by a path, xarray-spatial by the
    name libnvcomp.so, which pip's has not."""
    found = dict(os.environ, COGPU_LIBRARY=str(folder / "libcogpu.so"))
    for packages in map(Path, sys.path):
        library = packages / "nvidia" / "libnvcomp" / "lib64" / "libnvcomp.so.5"
        if library.exists():
            found.setdefault("COGPU_NVCOMP", str(library))
    if "COGPU_NVCOMP" in found:
        links = folder / "nvcomp"
        links.mkdir(exist_ok=True)
        (links / "libnvcomp.so").unlink(missing_ok=True)
        (links / "libnvcomp.so").symlink_to(found["COGPU_NVCOMP"])
        found["LD_LIBRARY_PATH"] = f"{links}:{found.get('LD_LIBRARY_PATH', '')}"
    return found


def without_nvcomp(picked, variables):
    """Why nvCOMP is not measured, if so; or no peer at all."""
    if picked.ours or picked.emu:
        return {"peers": "left out by --ours"} if picked.ours else {"nvCOMP": "needs a GPU"}
    try:
        ctypes.CDLL(variables.get("COGPU_NVCOMP", "libnvcomp.so.5"))
        return {}
    except OSError as why:
        return {"nvCOMP": str(why)}


def alone(program, words, path, variables):
    """The lines of gpu_decode.c or gpu_encode.c over one file, or one that says why there are none. A process for
    each file, so that a step which hangs or breaks the GPU's context spoils its own file alone."""
    done = None
    try:
        done = subprocess.run([program, *words, path], capture_output=True, text=True, timeout=SECONDS,
                              env=variables)
        out, why = done.stdout, done.stderr.strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out, why = (late.stdout or b"").decode(), f"not done after {SECONDS} s"
    lines = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    for line in lines:
        print(f"  {path.name}: {gpu_report.step_summary(line)}", file=sys.stderr)
    if done is None or done.returncode != 0:
        print(f"  {path.name}: {why}", file=sys.stderr)
    if lines:
        return lines
    failed = {"file": path.name, "who": "cogpu", "failed": why}
    if "--ours" in words:
        return [failed]
    return alone(program, [*words, "--ours"], path, variables) + [failed | {"who": "nvcomp"}]


def lines_of(program, words, items, variables):
    """The lines of gpu_readers.py or gpu_writers.py over items, each of one or more words: the libraries present, then one
    for each item. Where it ends early, the item that it was at has failed, and the next ones get a new process."""
    items = list(items)
    while items:
        child = subprocess.Popen([sys.executable, BENCH / program, *words, *sum(items, ())],
                                 stdout=subprocess.PIPE, text=True, env=variables)
        for line in in_time(child):
            yield line
            if "file" in line:
                items.pop(0)
        if items:
            yield {"file": Path(items.pop(0)[0]).name,
                   "failed": f"ended with {child.wait()}, or took over {SECONDS} s"}


def in_time(child):
    """Lines of JSON that a program prints, which is ended where one takes too long."""
    while True:
        watch = threading.Timer(SECONDS, child.kill)
        watch.start()
        line = child.stdout.readline()
        watch.cancel()
        if not line:
            child.wait()
            return
        if line.startswith("{"):
            yield json.loads(line)


def machine():
    """The GPU and its driver, by the driver's own tool."""
    try:
        return subprocess.check_output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                       text=True).splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        sys.exit("nvidia-smi finds no GPU; --emu tries the benchmark without one")


def save(outcome, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu.json").write_text(json.dumps(outcome, indent=1))
    (folder / "gpu.md").write_text(gpu_report.report(outcome))


class Run:
    """One run: what was asked for, and what has been found, which is saved after each step, since a long run
    may be stopped."""

    def __init__(self, picked):
        self.picked, self.variables = picked, environment(picked.build)
        self.common = [f"--{word}" for word in ("ours", "emu") if getattr(picked, word)]
        self.common.append(f"--repeats={picked.repeats}")
        self.steps = [f"--{word}" for word in ("kernels", "least") if getattr(picked, word)]
        self.write_side = min(picked.side, gpu_files.WRITE_SIDE)
        self.outcome = {"machine": "the emulator" if picked.emu else machine(), "side": picked.side,
                        "write_side": self.write_side, "repeats": picked.repeats, "written_by": gpu_files.writer(),
                        "cpu_cores": gpu_files.WORKERS, "versions": {}, "decode": [], "reads": [], "encode": [],
                        "writes": [], "peaks": [], "missing": without_nvcomp(picked, self.variables)}

    def keep(self, what, lines):
        self.outcome[what] += lines
        save(self.outcome, self.picked.out)

    def possible(self, field):
        """The cases whose files can be made here; the others are named."""
        for case in field:
            why = gpu_files.cannot_make(case)
            if why:
                self.outcome["missing"][case.name] = why
        return [case for case in field if case.name not in self.outcome["missing"]]

    def keep_lines(self, what, program, words, items):
        for line in lines_of(program, self.common + words, items, self.variables):
            if "versions" in line:
                for about in ("versions", "missing"):
                    self.outcome[about] |= line[about]
                continue
            self.keep(what, [line])
            print(f"  {line['file']}: " + gpu_report.summary(line), file=sys.stderr)

    def decode(self, field):
        for case in self.possible(field):
            if case.codec != "none":
                path = gpu_files.file(case, self.picked.side)
                self.keep("decode", alone(self.picked.build / "bench_gpu_decode", self.common + self.steps, path,
                                          self.variables))

    def reads(self, field):
        self.keep_lines("reads", "gpu_readers.py", [], [
            (gpu_files.file(case, self.picked.side), gpu_files.pixels_of(case, self.picked.side).filename)
            for case in self.possible(field)])

    def encode(self, field):
        for case in field:
            path = gpu_files.file(gpu_files.Case(case.raster, "none", side=self.write_side), self.write_side)
            words = [f"--side={self.write_side}", f"--codec={case.codec}", f"--level={case.level}",
                     f"--predictor={case.predictor}"]
            lines = alone(self.picked.build / "bench_gpu_encode", self.common + self.steps + words, path, self.variables)
            libtiff = gpu_files.libtiff_lzw_bytes(case, self.write_side) if case.codec == "lzw" else None
            for line in lines:
                if libtiff and "ratio" in line:
                    line |= {"beside": "libtiff", "ratio": line["stored_bytes"] / libtiff, "beside_bytes": libtiff}
            self.keep("encode", [line | {"case": case.name} for line in lines])

    def writes(self, field):
        words = [f"--side={self.write_side}", f"--data={self.picked.data}"]
        for case in field:
            rasters.raster(case.raster, self.write_side)
        self.keep_lines("writes", "gpu_writers.py", words, [(case.name,) for case in field])
        if any(case.cog for case in field):
            for who, allowed in [("cogpu", 0), ("cogpu", STREAM_BYTES)] + [("xarray-spatial", 0)] * (not self.picked.ours):
                peak = lines_of("gpu_writers.py", self.common + words + [f"--device-bytes={allowed}"],
                                [(f"--peak={who}",)], self.variables)
                self.keep("peaks", [line | {"who": who, "allowed": allowed} for line in peak])

    def finish(self):
        print(gpu_report.report(self.outcome))
        gpu_report.draw(self.outcome, self.picked.out)
        return int(gpu_report.has_failed(self.outcome))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("cases", nargs="*", help="parts of the names of the cases; all if none is given")
    options.add_argument("--list", action="store_true", help="print the names of the cases, and end")
    options.add_argument("--make-only", action="store_true", help="make the files, and end")
    options.add_argument("--only", choices=PARTS, action="append", help="a part of it; may be repeated")
    options.add_argument("--side", type=int, default=gpu_files.SIDE, help="of the rasters, in pixels")
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--kernels", action="store_true", help="also time each kernel by itself")
    options.add_argument("--least", action="store_true", help="give decoders and encoders the least scratch")
    options.add_argument("--ours", action="store_true", help="without peers")
    options.add_argument("--emu", action="store_true", help="on the emulator: the harness is tested, not timed")
    options.add_argument("--data", type=Path, default=rasters.DATA, help="folder of the files")
    options.add_argument("--build", type=Path, default=rasters.ROOT / "build", help="folder of the build")
    options.add_argument("--out", type=Path, default=rasters.ROOT / "bench" / "results")
    picked = options.parse_args()
    rasters.DATA = picked.data
    read = [case.within(picked.side) for case in gpu_files.cases()]
    of_part = {"decode": read, "reads": read, "encode": gpu_files.encode_cases(),
               "writes": gpu_files.write_cases()}
    fields = {part: gpu_files.chosen(of_part[part], picked.cases) for part in picked.only or PARTS}
    if picked.list:
        print("\n".join(dict.fromkeys(case.name for field in fields.values() for case in field)))
    elif picked.make_only:
        for case in fields.get("reads", []):
            gpu_files.file(case, picked.side)
    else:
        build(picked.build)
        run = Run(picked)
        for part, field in fields.items():
            getattr(run, part)(field)
        return run.finish()
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves early, as head does, is no error
    sys.exit(main())
