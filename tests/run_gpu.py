"""Runs what needs a GPU: the tests of the CUDA backend on it, or under compute-sanitizer.

    run_gpu.py              tests of the backend on the GPU; the judges with COGPU_DEVICES=cuda
    run_gpu.py --sanitize   the same tests under memcheck, racecheck and synccheck
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-gpu"
FOUND = 9  # exit status of compute-sanitizer where it has something to report
TOOLS = ["memcheck", "racecheck", "synccheck"]
JUDGES = ["corpus", "differential", "convert", "stream"]
# Races that racecheck reports and that are none, by the two functions. Ways through a table are followed while others
# shorten theirs: a word that is read is the old or the new one, and both are right (docs/kernels). And it takes no
# account of barriers that some of a block's warps have among themselves.
FOLLOWED = [{"store_words4", "follow"}, {"follow_links", "word_at"}, {"follow_links"}]
BARRIERS = [{"settle_segments"}, {"sum_before"}, {"adler_of"}, {"store_words4", "load_words4"}]
LONGER = {"test_cuda_mutations": ["--count", "100000"]}  # what a GPU has time for


def build():
    names = [path.stem for path in sorted((ROOT / "tests").glob("*/test_cuda_*.c"))]
    names.append("test_nvjpeg")
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DCOGPU_CUDA=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j", "--target", "cogpu", "cogpu_cli", *names], check=True,
                   stdout=subprocess.DEVNULL)
    return [BUILD / "tests" / name for name in names]


def races(text):
    """The pairs of functions that racecheck names."""
    found, first = [], None
    for line in text.splitlines():
        access = re.search(r"(between|and) (?:Read|Write) access at (\w+)", line)
        if access and access[1] == "between":
            first = access[2]
        elif access and {first, access[2]} not in found:
            found.append({first, access[2]})
    return found


def is_good(done):
    """A program that ended well, but for races that are none."""
    found = races(done.stdout)
    passed = re.search(r"[1-9]\d* passed, 0 failed", done.stdout)
    return done.returncode == 0 or (
        done.returncode == FOUND and passed and found and all(pair in FOLLOWED + BARRIERS for pair in found))


def run(name, command, environment):
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    good = is_good(done)
    print(f"{'ok    ' if good else 'FAILED'} {name}: {last}", flush=True)
    if not good:
        print(done.stdout[-3000:] + done.stderr[-3000:])
    return bool(good)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sanitize", action="store_true")
    chosen = options.parse_args()
    programs = build()
    on_gpu = {"COGPU_TEST_DEVICE": "cuda", "COGPU_ALWAYS_DEVICE": "1"}
    outcomes = []
    for tool in TOOLS if chosen.sanitize else []:
        outcomes += [run(f"{tool} {program.name}", ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND),
                                                   "--print-limit", "10000", program], on_gpu) for program in programs]
    if not chosen.sanitize:
        outcomes += [run(program.name, [program, *LONGER.get(program.name, [])], on_gpu) for program in programs]
        judges = on_gpu | {"COGPU_DEVICES": "cuda", "COGPU_BIN": str(BUILD / "cogpu"),
                           "COGPU_LIB": str(BUILD / "libcogpu.so"),
                           "COGPU_TIME_FACTOR": "30"}  # CUDA starts slowly, in many processes more so
        outcomes.append(run("judges", [sys.executable, "-m", "pytest", "-q", "-n", "6",
                                       *(f"tests/python/test_{name}.py" for name in JUDGES)], judges))
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    sys.exit(not all(outcomes))


main()
