"""Reading into the GPU's memory, measured: cogpu beside nvCOMP, nvTIFF and xarray-spatial, in one run.

On rasters of 10,000 x 10,000 and one of 3600 x 3600, stored in every way of gpu_files.py:
- decode alone: all blocks of a file from device memory to device memory, by events on the stream;
  gpu_decode.c, which compares every byte with what the host's codec gives;
- memory to raster and file to raster: open, read, close, until the pixels are in the GPU's memory; from the
  file's bytes in page-locked memory of the host, and from a file in the page cache; gpu_readers.py, which
  compares every pixel with the source;
- the wire: the file's bytes copied up from page-locked memory, and nothing else.
Those measured together take turns. Figures are medians. A peer that is not installed, or refuses a file, is
named below the table.

Cases are chosen by parts of their names, with * for anything: "deflate-p3", "uint16-*-512". Writes gpu.json,
gpu.md and, where matplotlib is installed, gpu.png into bench/results (--out), and prints the tables.
"""
import argparse
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
BENCH = Path(__file__).resolve().parent


def build(folder):
    """gpu_decode.c and the library, in a release build that has the kernels inside."""
    ninja = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    commands = (["cmake", "-S", rasters.ROOT, "-B", folder, *ninja, "-DCOGPU_BENCH=ON"],
                ["cmake", "--build", folder, "--target", "bench_gpu_decode"])
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


def decode_alone(program, words, path, variables):
    """gpu_decode.c's lines over one file, or one that says why there are none. A process for each file, so
    that a decoder which hangs or breaks the GPU's context spoils its own file alone."""
    done = None
    try:
        done = subprocess.run([program, *words, path], capture_output=True, text=True, timeout=SECONDS,
                              env=variables)
        out, why = done.stdout, done.stderr.strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out, why = (late.stdout or b"").decode(), f"not done after {SECONDS} s"
    lines = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
    for line in lines:
        print(f"  {path.name}: {line['who']} {line['gb_s']} GB/s, {line['wrong']} wrong", file=sys.stderr)
    if done is None or done.returncode != 0:
        print(f"  {path.name}: {why}", file=sys.stderr)
    if lines:
        return lines
    failed = {"file": path.name, "who": "cogpu", "failed": why}
    if "--ours" in words:
        return [failed]
    return decode_alone(program, [*words, "--ours"], path, variables) + [failed | {"who": "nvcomp"}]


def reads(words, files, variables):
    """The lines of gpu_readers.py over (path, pixels) pairs: who is there, then one for each file. Where it
    ends early, the file that it was at has failed, and the next ones get a new process."""
    files = list(files)
    while files:
        child = subprocess.Popen([sys.executable, BENCH / "gpu_readers.py", *words, *sum(files, ())],
                                 stdout=subprocess.PIPE, text=True, env=variables)
        for line in in_time(child):
            yield line
            if "file" in line:
                files.pop(0)
        if files:
            path, _ = files.pop(0)
            yield {"file": path.name, "failed": f"ended with {child.wait()}, or took over {SECONDS} s"}


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


def measure(field, picked):
    """Measures the cases, saves after each, since a long run may be stopped, and prints the tables."""
    common = [f"--{word}" for word in ("ours", "emu") if getattr(picked, word)]
    common.append(f"--repeats={picked.repeats}")
    extra = [f"--{word}" for word in ("kernels", "least") if getattr(picked, word)]
    outcome = {"machine": "the emulator" if picked.emu else machine(), "side": picked.side,
               "repeats": picked.repeats, "written_by": gpu_files.writer(), "processors": gpu_files.WORKERS,
               "versions": {}, "missing": {}, "decode": [], "reads": []}
    build(picked.build)
    variables = environment(picked.build)
    for case in field if picked.only != "reads" else ():
        if case.codec != "none":
            outcome["decode"] += decode_alone(picked.build / "bench_gpu_decode", common + extra,
                                              gpu_files.file(case, picked.side), variables)
            save(outcome, picked.out)
    sources = [(gpu_files.file(case, picked.side), gpu_files.pixels_of(case, picked.side).filename)
               for case in field if picked.only != "decode"]
    for line in reads(common, sources, variables):
        if "versions" in line:
            outcome |= line
            continue
        outcome["reads"].append(line)
        print(f"  {line['file']}: " + gpu_report.summary(line), file=sys.stderr)
        save(outcome, picked.out)
    print(gpu_report.report(outcome))
    gpu_report.draw(outcome, picked.out / "gpu.png")
    return int(gpu_report.has_failed(outcome))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("cases", nargs="*", help="parts of the names of the cases; all if none is given")
    options.add_argument("--list", action="store_true", help="print the names of the cases, and end")
    options.add_argument("--make-only", action="store_true", help="make the files, and end")
    options.add_argument("--plot", nargs=2, type=Path, metavar=("JSON", "PICTURE"),
                         help="draw the picture and print the tables of an earlier run, and end")
    options.add_argument("--only", choices=("decode", "reads"), help="decode alone, or the rest")
    options.add_argument("--side", type=int, default=gpu_files.SIDE, help="of the rasters, in pixels")
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--kernels", action="store_true", help="also time each kernel by itself")
    options.add_argument("--least", action="store_true", help="give decoders the least scratch")
    options.add_argument("--ours", action="store_true", help="without peers")
    options.add_argument("--emu", action="store_true", help="on the emulator: the harness is tested, not timed")
    options.add_argument("--data", type=Path, default=rasters.DATA, help="folder of the files")
    options.add_argument("--build", type=Path, default=rasters.ROOT / "build", help="folder of the build")
    options.add_argument("--out", type=Path, default=rasters.ROOT / "bench" / "results")
    picked = options.parse_args()
    rasters.DATA = picked.data
    field = gpu_files.chosen(picked.cases)
    if picked.plot:
        outcome = json.loads(picked.plot[0].read_text())
        print(gpu_report.report(outcome))
        return int(not gpu_report.draw(outcome, picked.plot[1]))
    if picked.list:
        print("\n".join(case.name for case in field))
    elif picked.make_only:
        for case in field:
            gpu_files.file(case, picked.side)
    else:
        return measure(field, picked)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that leaves early, as head does, is no error
    sys.exit(main())
