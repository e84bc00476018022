"""Runs what needs a GPU: the tests of the CUDA backend on it, or under compute-sanitizer.

    run_gpu.py              tests of the backend on the GPU; the judges with COGPU_DEVICES=cuda
    run_gpu.py --sanitize   the same tests under memcheck, racecheck and synccheck
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-gpu"
TOOLS = ["memcheck", "racecheck", "synccheck"]
JUDGES = ["corpus", "differential", "convert", "stream"]
LONGER = {"test_cuda_mutations": ["--count", "100000"]}  # what a GPU has time for


def build():
    names = [path.stem for path in sorted((ROOT / "tests").glob("*/test_cuda_*.c"))]
    names.append("test_nvjpeg")
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DCOGPU_CUDA=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j", "--target", "cogpu", "cogpu_cli", *names], check=True,
                   stdout=subprocess.DEVNULL)
    return [BUILD / "tests" / name for name in names]


def run(name, command, environment):
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name}: {last}", flush=True)
    if done.returncode != 0:
        print(done.stdout[-3000:] + done.stderr[-3000:])
    return done.returncode == 0


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sanitize", action="store_true")
    chosen = options.parse_args()
    programs = build()
    on_gpu = {"COGPU_TEST_DEVICE": "cuda", "COGPU_ALWAYS_DEVICE": "1"}
    outcomes = []
    for tool in TOOLS if chosen.sanitize else []:
        outcomes += [run(f"{tool} {program.name}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
                                                   program], on_gpu) for program in programs]
    if not chosen.sanitize:
        outcomes += [run(program.name, [program, *LONGER.get(program.name, [])], on_gpu) for program in programs]
        judges = on_gpu | {"COGPU_DEVICES": "cuda", "COGPU_BIN": str(BUILD / "cogpu"),
                           "COGPU_LIB": str(BUILD / "libcogpu.so")}
        outcomes.append(run("judges", [sys.executable, "-m", "pytest", "-q", "-n", "8",
                                       *(f"tests/python/test_{name}.py" for name in JUDGES)], judges))
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    sys.exit(not all(outcomes))


main()
