"""Every test of the project, group by group: builds five trees, checks the rules of the code, runs the test
programs in C, those with threads under ThreadSanitizer, the fuzz targets for a short while, the reference
comparisons in Python, the tests of the Python package, those with servers, and some for aarch64. tests/README.md is the guide.

Prints a line for each group when it is done, what failed, what was left out and why; the last line is
"N passed, N failed", and the exit code is 0 if none failed. The environment is that of tests/python/conftest.py.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORPUS = pathlib.Path(os.environ.get("COGPU_CORPUS", ROOT.parent / "shared" / "corpus"))
RELEASE, SANITIZED, FUZZ, RACES, DEEP, CROSS = (
    ROOT / name for name in ("build", "build-san", "build-fuzz", "build-races", "build-deep", "build-aarch64"))
SEEDS = FUZZ / "seeds"
KEPT = ROOT / "tests" / "fuzz" / "kept"
CORES = len(os.sched_getaffinity(0))
LINES = 60  # of a failed program's output
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|error)")
# nvcc, where it is installed, compiles the kernels once, in the release tree and for the oldest architecture: the others
# run them on the emulator.
TREES = {
    RELEASE: ["-DCMAKE_BUILD_TYPE=Release", "-DCOGPU_TESTS=LIBRARIES", "-DCOGPU_PYTHON=ON",
              "-DCOGPU_CUDA_ARCHITECTURES=75"],
    SANITIZED: ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1", "-DCOGPU_SANITIZE=ON", "-DCOGPU_TESTS=ON",
                "-DCOGPU_CUDA=OFF"],
    FUZZ: ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1", "-DCOGPU_FUZZ=ON", "-DCMAKE_C_COMPILER=clang",
           "-DCMAKE_CXX_COMPILER=clang++", "-DCOGPU_CUDA=OFF"],
    DEEP: ["-DCMAKE_BUILD_TYPE=Release", "-DCOGPU_CUDA=OFF"],
    CROSS: ["-DCMAKE_TOOLCHAIN_FILE=cmake/cross.cmake", "-DCOGPU_CROSS=aarch64", "-DCOGPU_CUDA=OFF"],
    RACES: ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O1", "-DCOGPU_RACES=ON", "-DCOGPU_CUDA=OFF"],
}
# Suites whose threads, or those of the kernels that they run, may race; and of suites and functions those that take
# long, or show nothing that others do not: make test-deep runs them too.
RACING = ["pool", "progress", "source", "block_cache", "default_cache", "http_client", "range_cache", "writer",
          "read_pipeline", "read_lanes", "read_streams", "read_cufile", "read_threads", "read_cached", "read_repeats",
          "stored_cache", "chunks", "device_convert", "kernel_apply_mask", "kernel_copy_ranges",
          "kernel_packbits_decode", "kernel_unpack", "kernel_lzw_decode", "kernel_inflate", "kernel_zstd_decode",
          "kernel_composite", "kernel_warp", "decode_device"]
RACING_LONG = ["kernel_pack", "kernel_compact", "kernel_downsample", "kernel_deflate", "kernel_zstd_encode",
               "kernel_lzw_encode", "kernel_packbits_encode", "kernel_inflate_few", "write_direct", "writer_memory"]
LONG = {"kernel_inflate truncated", "kernel_inflate encoder_styles", "kernel_inflate libdeflate_levels",
        "kernel_lzw_decode long_runs", "kernel_unpack test_whole_samples", "kernel_zstd_decode flipped",
        "kernel_zstd_decode large_sizes", "kernel_zstd_decode small_sizes", "kernel_zstd_decode many_windows",
        "progress test_write_on_device", "read_cufile test_reads_by_cufile",
        "writer every_layout_gives_the_same_file"}
# Suites that run once more on a device with little shared memory, where the library takes other ways.
SMALL_DEVICE = ["read_pipeline", "write_pipeline", "kernel_zstd_decode", "kernel_mutations"]

# Modules whose tests need no optional library, and of their suites those that do, or take long with qemu: tools/cross.sh
# runs all.
CROSS_MODULES = ["base", "tiff", "codec", "image", "plan", "cpu", "kernels"]
CROSS_LEFT_OUT = {"progress", "kernel_pack", "kernel_zstd_encode",
                  "kernel_inflate", "kernel_deflate", "kernel_downsample", "kernel_lzw_encode"}


class Group:
    """A group's counts, and what there is to say of it."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped, self.notes = name, 0, 0, 0, []
        self.start = time.monotonic()

    def note(self, text):
        self.notes.append(text)

    def skip(self, what, why):
        self.skipped += 1
        self.note(f"skipped: {what}: {why}")

    def check(self, name, done):
        """A program that either passes or fails."""
        if done.returncode == 0:
            self.passed += 1
        else:
            self.fail(name, done)

    def fail(self, name, done):
        self.failed += 1
        tail = "\n".join(done.stdout.splitlines()[-LINES:])
        self.note(f"FAILED {name} (exit code {done.returncode})\n{tail}")

    def count(self, name, done):
        """A program that says how many passed and failed; one that dies without saying so has failed."""
        lines = done.stdout.strip().splitlines()
        counts = {word: int(number) for number, word in COUNTS.findall(lines[-1] if lines else "")}
        broken = counts.get("failed", 0) + counts.get("error", 0)
        self.passed += counts.get("passed", 0)
        self.skipped += counts.get("skipped", 0)
        if done.returncode != 0 or broken or not counts:
            self.fail(name, done)
            self.failed += max(broken - 1, 0)

    def finish(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        seconds = time.monotonic() - self.start
        lines = [f"{self.name:9s} {self.passed} passed, {self.failed} failed{skipped} ({seconds:.0f} s)",
                 *("  " + text.replace("\n", "\n    ") for text in self.notes)]
        print("\n".join(lines) + "\n", end="", flush=True)  # at once: others may be about to print theirs


def run(*command, timeout=None, env=None):
    """What a program did. One that is not there or takes too long has failed."""
    words = [str(word) for word in command]
    try:
        return subprocess.run(words, cwd=ROOT, env=env, timeout=timeout, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as error:
        return subprocess.CompletedProcess(words, 127, str(error))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, f"not done after {timeout} s")


def side_by_side(jobs):
    """Results of the jobs, (name, function) each, in their order."""
    with ThreadPoolExecutor(CORES) as pool:
        return zip([name for name, _ in jobs], pool.map(lambda job: job[1](), jobs))


def fuzz_targets(tree):
    return sorted(tree / "tests" / path.stem for path in (ROOT / "tests").glob("fuzz/fuzz_*.c"))


def suites():
    """Suite -> its source: tests/unit/MODULE/test_SUITE.c, tests/faults/test_SUITE.c."""
    found = [path for pattern in ("unit/*/test_*.c", "faults/test_*.c") for path in (ROOT / "tests").glob(pattern)]
    return {path.stem.removeprefix("test_"): path for path in sorted(found)}


def command_of(tree, suite):
    """A suite's program, that of its module or its own, and its name."""
    module = suites()[suite].parent.name
    own = tree / "tests" / f"test_{module}_{suite}"
    return [own if own.exists() else tree / "tests" / f"test_{module}", suite]


def suites_to_run(tree):
    """All with sanitizers; without them no kernels on the emulator, which tests/python runs too."""
    return [suite for suite, source in suites().items()
            if tree == SANITIZED or source.parent.name not in ("gpu", "kernels")]


# ---- the groups --------------------------------------------------------------------------------

def build(tree, *targets):
    fresh = []
    if not (tree / "CMakeCache.txt").exists():
        fresh += ["-G", "Ninja"] if shutil.which("ninja") else []
        fresh += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX") if shutil.which("ccache")]
    done = run("cmake", "-S", ROOT, "-B", tree, *fresh, *TREES[tree])
    if done.returncode == 0:
        done = run("cmake", "--build", tree, "--parallel", CORES, *(["--target", *targets] if targets else []))
    return done


def check_build(group):
    group.check("build", build(RELEASE))
    group.check("build with sanitizers", build(SANITIZED))


def check_format(group):
    formatter = next((name for name in ("clang-format-14", "clang-format") if shutil.which(name)), None)
    if formatter is None or " version 14." not in run(formatter, "--version").stdout:
        group.skip("format", "no clang-format 14")
        return
    folders = [ROOT / name for name in ("include", "src", "cli", "python", "tests", "bench", "examples")]
    files = [path for folder in folders for kind in ("*.[ch]", "*.cpp") for path in sorted(folder.rglob(kind))]
    done = run(formatter, "--dry-run", "--Werror", *files)
    done.stdout = "\n".join(sorted(set(re.findall(r"^(.*?):\d+:\d+: error", done.stdout, re.M))))
    group.check("format (make format fixes it)", done)


def check_rules(group):
    group.check("includes", run(sys.executable, "tools/include_check.py", ROOT))
    group.check("symbols", run(sys.executable, "tools/symbol_check.py", RELEASE))
    group.check("words", run(sys.executable, "tools/word_check.py"))
    check_format(group)


def check_programs(group, deep):
    if deep:
        group.check("build of the release tree's tests", build(DEEP))
    found = [(tree, suite) for tree in [SANITIZED] + [DEEP] * deep for suite in suites_to_run(tree)]
    jobs = [(f"{tree.name} {suite}", lambda tree=tree, suite=suite: run(*command_of(tree, suite), timeout=300))
            for tree, suite in found]
    small = {**os.environ, "COGPU_EMU_CAPABILITY": "7.5"}
    jobs += [(f"{suite} on a small device",
              lambda suite=suite: run(*command_of(SANITIZED, suite), env=small, timeout=300))
             for suite in SMALL_DEVICE]
    for name, done in side_by_side(jobs):
        group.count(name, done)


def functions_of(suite):
    """A suite's functions, by its source: run one by one, the long ones do not keep the others waiting."""
    return sorted({f"{suite} {name}" for name in re.findall(r"\bRUN\((\w+)\)", suites()[suite].read_text())})


def check_races(group, with_long):
    racing = RACING + RACING_LONG * with_long
    modules = sorted({suites()[suite].parent.name for suite in ["emulator", *racing]})
    built = build(RACES, *(f"test_{module}" for module in modules))
    group.check("build with ThreadSanitizer", built)
    if built.returncode != 0:
        return
    # It cannot live with addresses that are all too random.
    plain = ["setarch", "-R"] if run("setarch", "-R", "true").returncode == 0 else []
    options = {**os.environ, "TSAN_OPTIONS": f"suppressions={ROOT}/tests/races.supp"}
    blind = run(*plain, *command_of(RACES, "emulator"), env={**options, "COGPU_TEST": "missing_barrier"}, timeout=300)
    group.check("a missing barrier is seen",
                run("true") if "data race" in blind.stdout else subprocess.CompletedProcess([], 1, blind.stdout))
    jobs = [(name, lambda name=name: run(*plain, *command_of(RACES, name.split()[0]), timeout=300,
                                         env={**options, "COGPU_TEST": name.split()[1]}))
            for suite in racing for name in functions_of(suite) if with_long or name not in LONG]
    for name, done in side_by_side(jobs):
        group.count(f"races in {name}", done)


def seeds_of(target):
    """Folders of inputs for a target: made ones, real files, and those kept because they once broke it."""
    made = SEEDS / target
    folders = [made if made.exists() else SEEDS / "tiff", KEPT / target]
    if not made.exists():
        folders += [CORPUS / "bad", CORPUS / "good"]
    return [folder for folder in folders if folder.exists()]


def check_kept(group, targets):
    """Each target has kept inputs under its own name: a renamed target must not lose them silently."""
    names, kept = {target.name for target in targets}, {path.parent.name for path in KEPT.glob("*/*")}
    text = "\n".join(f"no tests/fuzz/{name}.c, or nothing in tests/fuzz/kept/{name}" for name in sorted(names ^ kept))
    group.check("kept inputs", subprocess.CompletedProcess([], 1 if text else 0, text))


def replay(group):
    check_kept(group, fuzz_targets(SANITIZED))
    jobs = []
    for target in fuzz_targets(SANITIZED):
        inputs = [path for folder in seeds_of(target.name) for path in sorted(folder.rglob("*"))
                  if path.is_file() and path.stat().st_size < 1 << 16]
        jobs.append((f"{target.name} on {len(inputs)} seeds",
                     lambda target=target, inputs=inputs: run(target, *inputs)))
    for name, done in side_by_side(jobs):
        group.check(name, done)


def fuzz(target, seconds, is_long):
    """What libFuzzer finds stays in build-fuzz/; a long run also keeps the inputs that it learnt from."""
    learnt = FUZZ / "learnt" / target.name
    if not is_long:
        shutil.rmtree(learnt, ignore_errors=True)
    learnt.mkdir(parents=True, exist_ok=True)
    # AddressSanitizer keeps up to 256 MB of freed memory, which counts for libFuzzer's limit.
    environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=64"}
    return run(target, learnt, *seeds_of(target.name), f"-dict={ROOT}/tests/fuzz/tiff.dict",
               f"-artifact_prefix={FUZZ}/found-{target.name}-", f"-max_total_time={seconds}",
               "-rss_limit_mb=512", "-timeout=5", "-max_len=65536", "-verbosity=0", env=environment)


def check_fuzz(group, seconds):
    sources = fuzz_targets(FUZZ)
    group.check("seeds", run(sys.executable, "tests/seeds.py", SEEDS))
    if not CORPUS.exists():
        group.skip("seeds from real files", f"no corpus at {CORPUS}")
    replay(group)
    if not shutil.which("clang"):
        group.skip("fuzz targets", "no clang")
        return
    built = build(FUZZ, *(path.name for path in sources))
    group.check("build with libFuzzer", built)
    if built.returncode == 0:
        share = seconds or max(3, min(10, 40 * CORES // len(sources)))
        jobs = [(f"{path.name} for {share} s", lambda path=path: fuzz(path, share, seconds)) for path in sources]
        for name, done in side_by_side(jobs):
            group.check(name, done)


def check_install(group):
    """The examples, built and run as a user would: against the installed library, found by pkg-config."""
    if not shutil.which("pkg-config"):
        group.skip("examples", "no pkg-config")
        return
    prefix, raster = RELEASE / "installed", SEEDS / "tiff" / "georeferenced_float32_tiles.tif"
    if not raster.exists():
        group.check("seeds", run(sys.executable, "tests/seeds.py", SEEDS))
    group.check("install", run("cmake", "--install", RELEASE, "--prefix", prefix))
    installed = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*")}
    absent = {"share/man/man1/cogpu.1", "share/bash-completion/completions/cogpu", "share/zsh/site-functions/_cogpu"} - installed
    group.check("manual page and completions", subprocess.CompletedProcess([], 1 if absent else 0, "\n".join(absent)))
    places = {**os.environ, "PKG_CONFIG_PATH": ":".join(map(str, prefix.rglob("pkgconfig")))}
    words = run("pkg-config", "--cflags", "--libs", "cogpu", env=places)
    library = run("pkg-config", "--variable=libdir", "cogpu", env=places).stdout.strip()
    group.check("pkg-config", words)
    check_static(group, library, places)
    check_cmake_package(group, prefix, raster)
    has_gpu = "cuda:0" in run(RELEASE / "cogpu", "devices", "--json").stdout
    environment = {**os.environ, "LD_LIBRARY_PATH": library}
    written = RELEASE / "example.tif"
    for source in sorted((ROOT / "examples").glob("*.c")):
        program = RELEASE / f"example-{source.stem}"
        group.check(f"build of {source.name}", run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source,
                                                   *words.stdout.split(), "-o", program))
        if source.stem.endswith("_gpu") and not has_gpu:
            group.skip(source.name, "no GPU")
        else:
            group.check(source.name, run(program, written if source.stem == "write" else raster, env=environment))
    group.check(f"check of {written.name}", run(RELEASE / "cogpu", "check", written, "--strict"))


def check_static(group, library, places):
    """A compiler of C links the static library by what pkg-config says, though a part of it is C++."""
    words = run("pkg-config", "--static", "--cflags", "--libs", "cogpu", env=places).stdout.split()
    archive = [f"{library}/libcogpu.a" if word == "-lcogpu" else word for word in words]
    program = RELEASE / "example-static"
    group.check("static build of read.c", run("cc", "-std=c11", ROOT / "examples" / "read.c", *archive, "-o", program))
    group.check("static read.c", run(program, SEEDS / "tiff" / "georeferenced_float32_tiles.tif"))


def check_cross(group):
    """aarch64 by Debian's cross compiler, without optional libraries, and its quick suites with qemu-user."""
    if not shutil.which("aarch64-linux-gnu-gcc"):
        group.skip("aarch64", "no aarch64-linux-gnu-gcc; run make setup")
        return
    built = build(CROSS, "cogpu", "cogpu_cli", *(f"module_{module}" for module in CROSS_MODULES))
    group.check("build for aarch64", built)
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not qemu:
        group.skip("tests of aarch64", "no qemu-aarch64; run make setup")
    elif built.returncode == 0:
        emulated = [qemu, "-L", "/usr/aarch64-linux-gnu"]
        group.check("aarch64 cogpu devices", run(*emulated, CROSS / "cogpu", "devices"))
        jobs = [(f"aarch64 {suite}", lambda suite=suite: run(*emulated, *command_of(CROSS, suite), timeout=300))
                for suite, source in suites().items()
                if source.parent.name in CROSS_MODULES and suite not in CROSS_LEFT_OUT]
        for name, done in side_by_side(jobs):
            group.count(name, done)


def check_cmake_package(group, prefix, raster):
    """The examples, built by CMake, which finds the installed library by find_package."""
    build = RELEASE / "examples"
    shutil.rmtree(build, ignore_errors=True)
    configured = run("cmake", "-S", ROOT / "examples", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
    group.check("find_package", configured)
    if configured.returncode == 0:
        group.check("examples by CMake", run("cmake", "--build", build))
        group.check("read.c by CMake", run(build / "read", raster))


def run_pytest(group, folder, log, *chosen, **variables):
    """The folder's tests, or those chosen, on all cores where that can be; all that they say is in build/LOG."""
    parallel = run(sys.executable, "-c", "import xdist").returncode == 0
    environment = {"COGPU_TIME_FACTOR": "3", **os.environ, **variables}
    done = run(sys.executable, "-m", "pytest", "-q", "-rfEs", "--tb=short", "-p", "no:cacheprovider",
               *(["-n", CORES] if parallel else []), folder, *chosen, env=environment)
    (RELEASE / log).write_text(done.stdout)
    group.count(f"{folder} (all of it is in build/{log})", done)
    for line in re.findall(r"^SKIPPED (.*)$", done.stdout, re.M):
        group.note("skipped: " + line)


def can_import(group, folder, *modules):
    absent = [module for module in modules if run(sys.executable, "-c", f"import {module}").returncode != 0]
    if absent:
        group.skip(folder, f"{', '.join(absent)} absent; run make setup")
    return not absent


def check_python(group):
    if can_import(group, "tests/python", "numpy", "rasterio", "tifffile", "pytest"):
        run_pytest(group, "tests/python", "pytest.log")


def check_net(group):
    if can_import(group, "tests/net", "numpy", "rasterio", "pytest"):
        run_pytest(group, "tests/net", "net.log")
        run_pytest(group, "tests/net/test_cli_read.py", "net-sanitized.log", "-k", "not secrets",
                   COGPU_BIN=str(SANITIZED / "cogpu"))


def check_wheel(group):
    """A wheel as pip makes it, of objects that the release tree has, imported from where nothing else of ours is."""
    folder = RELEASE / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    done = run(sys.executable, "-m", "pip", "wheel", ".", "--no-build-isolation", "--no-deps", "--quiet",
               "--disable-pip-version-check", "-C", f"build-dir={RELEASE}",
               "-C", "cmake.define.COGPU_TESTS=LIBRARIES", "-w", folder)
    group.check("pip wheel", done)
    wheels = list(folder.glob("cogpu-*-cp311-abi3-*.whl"))
    group.check("pip install of the wheel", run(sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target",
                                                folder / "installed", "--disable-pip-version-check", *wheels))
    words = "import cogpu, cogpu._cogpu as module; assert module.__file__.startswith(%r), module.__file__" % str(folder)
    group.check("import of the wheel", run(sys.executable, "-c", words,
                                           env={**os.environ, "PYTHONPATH": str(folder / "installed")}))


def check_package(group):
    if can_import(group, "tests/package", "numpy", "rasterio", "xarray", "rioxarray", "dask", "distributed", "pytest"):
        run_pytest(group, "tests/package", "package.log")
    if can_import(group, "the wheel", "scikit_build_core"):
        check_wheel(group)


# One stage after the other, the groups of one side by side: servers keep their tests waiting, and cores idle.
STAGES = [{"build": check_build}, {"rules": check_rules}, {"programs": check_programs, "net": check_net},
          {"fuzz": check_fuzz}, {"install": check_install, "cross": check_cross}, {"python": check_python},
          {"races": check_races, "package": check_package}]
GROUPS = [name for stage in STAGES for name in stage]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="groups to run")
    parser.add_argument("--fuzz-seconds", type=int, help="for each fuzz target")
    parser.add_argument("--deep", action="store_true",
                        help="also what takes long: all races, and the test programs of the release tree")
    chosen = parser.parse_args()
    if chosen.deep:
        os.environ["COGPU_TEST_DEEP"] = "1"  # sweeps of the test programs try each case, not a sample
    options = {"fuzz": [chosen.fuzz_seconds], "races": [chosen.deep], "programs": [chosen.deep]}

    def check(name, function):
        group = Group(name)
        function(group, *options.get(name, []))
        group.finish()
        return group

    groups = []
    with ThreadPoolExecutor() as pool:
        for stage in STAGES:
            started = [pool.submit(check, name, function) for name, function in stage.items()
                       if name in ["build", *chosen.only]]
            groups += [group.result() for group in started]
    totals = {word: sum(getattr(group, word) for group in groups) for word in ("passed", "failed", "skipped")}
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    print(f"{totals['passed']} passed, {totals['failed']} failed{skipped}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
