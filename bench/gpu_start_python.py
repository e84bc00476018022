"""Start-up of a Python process that reads one small file, step by step: each case is a process of its own.

    python bench/gpu_start_python.py FILE.tif [--repeats 9] [--device cuda]

Prints the least time of each process from its start to its end, of what it does in between, and of its end. The
difference between two cases is the cost of what the second does more: "driver" is CUDA alone, without this library;
"read" and "read, NumPy" are what a user runs. "no exit handlers" leaves by os._exit, so that what the driver does at
the end of a process is not in it.
"""
import argparse
import json
import os
import subprocess
import sys
import time

CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
mark("cuInit")
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
mark("context")
"""
PINNED = """
assert cuda.cuCtxPushCurrent_v2(context) == 0
memory = ctypes.c_void_p()
assert cuda.cuMemHostAlloc(ctypes.byref(memory), 4 << 20, 1) == 0
mark("4 MiB pinned")
"""
IMPORT = """
import cogpu
mark("import cogpu")
"""
OPEN = IMPORT + """
file = cogpu.open(FILE)
mark("open")
"""
READ = """
array = file.read(device=DEVICE)
mark("read")
"""
NUMPY = """
import numpy
mark("import numpy")
"""
CASES = {
    "empty": "",
    "numpy": NUMPY,
    "driver": CUDA,
    "driver, pinned": CUDA + PINNED,
    "open": OPEN,
    "read on the CPU": OPEN + "array = file.read()\nmark('read')",
    "read": OPEN + READ,
    "read twice": OPEN + READ + READ.replace('"read"', '"read again"'),
    "driver, read": CUDA + OPEN + READ,
    "read, NumPy": NUMPY + OPEN + READ + "pixels = numpy.from_dlpack(array, device='cpu')\nmark('to the host')",
    "decoded into host memory": OPEN + "array = file.read(decode=DEVICE)\nmark('read')",
    "read, freed": OPEN + READ + "del array, file\nmark('free')",
    "read, no exit handlers": OPEN + READ + "finish()\nos._exit(0)",
    "cupy": "import cupy\nmark('import cupy')\ncupy.zeros(1)\nmark('context')",
    "torch": "import torch\nmark('import torch')\ntorch.zeros(1, device='cuda')\nmark('context')",
}
FRAME = """
import json, os, sys, time
FILE, DEVICE = sys.argv[1:3]
marks = []
def mark(name):
    marks.append((name, time.time()))
def finish():
    os.write(1, json.dumps(marks).encode())
mark("interpreter")
%s
finish()
"""


def run(code, file, device):
    """Milliseconds of each step, and of the end of the process."""
    start = time.time()
    done = subprocess.run([sys.executable, "-c", FRAME % code, file, device], capture_output=True, text=True)
    end = time.time()
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    steps, last = {}, start
    for name, at in json.loads(done.stdout):
        steps[name], last = 1e3 * (at - last), at
    return {**steps, "exit": 1e3 * (end - last), "process": 1e3 * (end - start)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    os.environ["COGPU_ALWAYS_DEVICE"] = "1"
    for name, code in CASES.items():
        try:
            runs = [run(code, given.file, given.device) for _ in range(given.repeats)]
        except RuntimeError as error:
            print(f"{name:26} {error}")
            continue
        least = {step: min(one[step] for one in runs) for step in runs[0]}
        print(f"{name:26} {least.pop('process'):7.1f} ms: " +
              ", ".join(f"{step} {took:.1f}" for step, took in least.items()), flush=True)


if __name__ == "__main__":
    main()
