"""Runs what needs a GPU: the tests of the CUDA backend on it, or under compute-sanitizer.

    run_gpu.py              tests of the backend on the GPU; the reference comparisons, those of the Python package and
                            those with servers, with COGPU_DEVICES=cuda; --only runs one of the four
    run_gpu.py --sanitize   the backend's under memcheck, racecheck and synccheck; --only runs one tool
"""

import argparse
import contextlib
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build-gpu"
FOUND = 9  # exit status of compute-sanitizer where it has something to report
TOOLS = ["racecheck", "memcheck", "synccheck"]
REFERENCE_TESTS = ["corpus", "differential", "convert", "stream", "convert_device", "write_device", "write_jpeg"]
NETWORK = ["http_read", "many_windows", "cli_read", "cli_write", "s3_write", "readme"]
# Races that racecheck reports and that are none, by the two functions: those of tests/races.supp.
FOLLOWED = [{"store_words4", "follow_matches"}, {"follow_links", "word_at"}, {"follow_links"}]
# It loses count at barriers that some of a block's warps have among themselves, and from there on reports accesses
# on the two sides of a plain barrier. Suites that run kernels with such barriers are for ThreadSanitizer alone: make
# test-deep.
NOT_FOR_RACECHECK = ("kernel_inflate", "kernel_inflate_few", "kernel_deflate", "read_pipeline", "read_streams",
                     "read_cufile", "read_threads")
UNUSED = "terminated before first instrumented API call"  # by a test that launches nothing
MUTATIONS = "kernel_mutations"
PLAIN_COUNT, SANITIZED_COUNT = "100000", "300"  # of mutated streams a codec: what there is time for
AT_ONCE, WORKERS = 8, 10  # programs that run at once; processes of pytest
GROUPS = ["programs", "references", "package", "network"]


def build():
    """Suite -> the command that runs it."""
    kernels = (ROOT / "tests" / "unit" / "kernels").glob("test_*.c")
    suites = {path.stem.removeprefix("test_"): "test_kernels" for path in kernels}
    suites |= {name: "test_gpu" for name in ("device", "read_pipeline", "read_streams", "read_cufile", "read_threads",
                                             "write_pipeline", "device_convert", "nvjpeg", "nvjpeg_encode")}
    suites |= {name: "test_faults" for name in ("gpu_write_faults", "gpu_read_faults")}
    subprocess.run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DCOGPU_CUDA=ON",
                    "-DCOGPU_PYTHON=ON", f"-DPython3_EXECUTABLE={sys.executable}"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j", "--target", "cogpu", "cogpu_cli", "cogpu_python",
                    *sorted(set(suites.values()))], check=True, stdout=subprocess.DEVNULL)
    return {name: [BUILD / "tests" / program, name] for name, program in sorted(suites.items())}


def races(text):
    """What racecheck reports: the pairs of functions, and the two lines of each."""
    pairs = re.findall(r"(.* between (?:Read|Write) access at (\w+).*\n.* and (?:Read|Write) access at (\w+).*)", text)
    return [({first, second}, lines) for lines, first, second in pairs]


def is_good(done, found):
    """A program that ended well, but for races that are none."""
    passed = re.search(r"[1-9]\d* passed, 0 failed", done.stdout)
    is_known = (found and not unknown(found)) or UNUSED in done.stdout
    return done.returncode == 0 or bool(passed and is_known)


def unknown(found):
    return [lines for pair, lines in found if pair not in FOLLOWED]


def run(name, command, environment):
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    found = races(done.stdout)
    good = is_good(done, found)
    known = f" ({len(found) - len(unknown(found))} of them are races that are meant)" if found else ""
    print(f"{'ok    ' if good else 'FAILED'} {name}, {time.monotonic() - start:.0f} s: {last}{known}", flush=True)
    if not good:
        print("\n".join(unknown(found)[:20]), done.stdout[-3000:], done.stderr[-3000:], flush=True)
    return bool(good)


def parts(suite):
    """The test functions of a suite, by its source."""
    source = next((ROOT / "tests").glob(f"**/test_{suite}.c"))
    return dict.fromkeys(re.findall(r"\bRUN\((\w+)\)", source.read_text()))


def plain(suites):
    for name, command in suites.items():
        yield name, [*command, *(["--count", PLAIN_COUNT] if name == MUTATIONS else [])], {}


def sanitized(suites, tools):
    """Each suite under each tool; under racecheck, which takes long, one of its functions at a time."""
    for tool in tools:
        with_tool = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "10000"]
        with_tool += ["--report-api-errors", "no"] if tool == "memcheck" else []  # those are statuses
        for name, command in suites.items():
            if tool == "racecheck" and name in (*NOT_FOR_RACECHECK, MUTATIONS):
                continue
            count = ["--count", SANITIZED_COUNT] if name == MUTATIONS else []
            for part in parts(name) if tool == "racecheck" else [None]:
                yield (f"{tool} {name} {part or ''}".strip(), [*with_tool, *command, *count],
                       {"COGPU_TEST": part} if part else {})


@contextlib.contextmanager
def shared_gpu():
    """What lets processes use the GPU side by side, rather than by turns, where CUDA's MPS is installed: the small
    kernels of tests leave most of it idle, and racecheck takes long for each. Not for the reference comparisons: they
    start more processes than MPS has connections, and measure memory."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        control = functools.partial(subprocess.run, env=os.environ | environment, stdout=subprocess.DEVNULL)
        try:
            control(["nvidia-cuda-mps-control", "-d"], check=True)
        except (OSError, subprocess.CalledProcessError):
            yield {}
            return
        try:
            yield environment
        finally:
            control(["nvidia-cuda-mps-control"], input=b"quit\n")


def run_all(commands, environment):
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: run(one[0], one[1], environment | one[2]), commands))


def run_pytests(group, on_gpu):
    """The references, the package, or what servers have part in. What looks at the GPU's free memory runs by itself,
    since others there change it."""
    environment = on_gpu | {"COGPU_DEVICES": "cuda", "COGPU_BIN": str(BUILD / "cogpu"),
                            "COGPU_LIB": str(BUILD / "libcogpu.so"), "COGPU_PACKAGE": str(BUILD / "python"),
                            "COGPU_TIME_FACTOR": "30"}  # CUDA starts slowly, in many processes more so
    alone, at_once = "tests/package/test_cuda.py", ["-n", str(min(WORKERS, len(os.sched_getaffinity(0))))]
    sets = {"references": {"references": [*at_once, *(f"tests/python/test_{name}.py" for name in REFERENCE_TESTS)]},
            "network": {"network": [*at_once, *(f"tests/net/test_{name}.py" for name in NETWORK)]},
            "package": {"package": [*at_once, "tests/package", f"--ignore={alone}"], "package with CuPy": [alone]}}
    return [run(name, [sys.executable, "-m", "pytest", "-q", *words], environment)
            for name, words in sets[group].items()]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sanitize", action="store_true")
    options.add_argument("--only", action="append", choices=GROUPS + TOOLS)
    chosen = options.parse_args()
    wanted = [name for name in (TOOLS if chosen.sanitize else GROUPS) if not chosen.only or name in chosen.only]
    if not wanted:
        options.error(f"nothing to run: {', '.join(TOOLS)} go with --sanitize, {', '.join(GROUPS)} without it")
    programs = build()
    on_gpu = {"COGPU_TEST_DEVICE": "cuda", "COGPU_ALWAYS_DEVICE": "1"}
    outcomes = []
    if chosen.sanitize:
        with shared_gpu() as shared:
            outcomes += run_all(sanitized(programs, wanted), on_gpu | shared)
    for group in [] if chosen.sanitize else wanted:
        outcomes += run_all(plain(programs), on_gpu) if group == "programs" else run_pytests(group, on_gpu)
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    sys.exit(not all(outcomes))


main()
