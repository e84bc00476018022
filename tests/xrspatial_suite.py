"""Runs the tests of xarray-spatial's GeoTIFF module against cogpu.compat.xrspatial, and counts.

    python tests/xrspatial_suite.py --python VENV/bin/python [--select nodata] [--list] [--scope scope.json]

VENV has xarray-spatial 0.10.20 with its tests (they are in the wheel), pytest, pytest-xdist, pytest-timeout, hypothesis
and dask; the package under test is in build/python, or where COGPU_PACKAGE says. There are two runs:

1. The survey runs the tests with xarray-spatial itself and records which of its functions the code of each test calls.
   In scope is a test that passes there, calls open_geotiff or to_geotiff, replaces nothing inside xarray-spatial, and
   calls none of its private functions. Two kinds of private functions are allowed, because they only prepare or inspect
   files: _writer._write, and the header parser _header. So are _read_vrt and _build_vrt, which were public names.
   Tests of GPUs are out of scope.
2. The replaced run gives xrspatial.geotiff the public names of cogpu.compat.xrspatial, before a test is imported, and
   runs the tests in scope.

Prints a line for each class of failures with its reason, and "N of M passed". The exit code is 1 where a failure is in
no class.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = os.environ.get("COGPU_PACKAGE", str(ROOT / "build" / "python"))
PUBLIC = {"__init__.py:open_geotiff", "_writers/eager.py:to_geotiff"}
# Public before 0.10, as read_vrt and write_vrt, which compat.xrspatial has: most tests of VRT call them.
FORMER = {"_read_vrt": "read_vrt", "_build_vrt": "write_vrt"}
FORMER_CALLS = {"_backends/vrt.py:_read_vrt", "_writers/vrt.py:_build_vrt"}
AIDS = re.compile(r"_header\.py:|_writer\.py:_write$|_errors\.py:")
ASIDE = re.compile(r"gpu", re.IGNORECASE)
SURVEY, REPLACED = "survey", "replaced"


# ---- the plugin: this file is loaded by pytest as well ---------------------------------------------------------------


class Survey:
    """Records which functions of xarray-spatial the code of each test calls or replaces."""

    def __init__(self, out):
        import unittest.mock

        import pytest
        import xrspatial.geotiff

        self.root = os.path.dirname(xrspatial.geotiff.__file__) + os.sep
        self.tests = self.root + "tests" + os.sep
        self.out, self.calls, self.replaced = out, None, False
        self._watch(pytest.MonkeyPatch, "setattr", lambda _, target, *rest: target)
        self._watch(unittest.mock._patch, "__enter__", lambda patch: patch.getter())

    def _watch(self, kind, name, target_of):
        original = getattr(kind, name)

        def watched(*arguments, **keywords):
            target = target_of(*arguments)
            module = target if isinstance(target, str) else getattr(target, "__module__", None) or getattr(
                target, "__name__", "")
            self.replaced |= str(module).startswith("xrspatial")
            return original(*arguments, **keywords)

        setattr(kind, name, watched)

    def _seen(self, frame, event, _):
        code, caller = frame.f_code, frame.f_back
        if event == "call" and code.co_filename.startswith(self.root) and caller is not None:
            if caller.f_code.co_filename.startswith(self.tests) and not code.co_filename.startswith(self.tests):
                self.calls.add(f"{code.co_filename.removeprefix(self.root)}:{code.co_name}")

    def pytest_runtest_setup(self, item):
        import threading

        if self.calls is None:
            self.calls, self.replaced = set(), False
            threading.setprofile(self._seen)
            sys.setprofile(self._seen)

    def pytest_runtest_logfinish(self, nodeid):
        import threading

        sys.setprofile(None)
        threading.setprofile(None)
        with open(f"{self.out}.calls.{os.getpid()}", "a") as file:
            print(json.dumps([nodeid, sorted(self.calls or ()), self.replaced]), file=file)
        self.calls = None


class Outcomes:
    """Writes the outcome of each test, and what a failed one said."""

    def __init__(self, out, chosen):
        self.out, self.chosen = out, chosen

    def pytest_collection_modifyitems(self, config, items):
        if self.chosen is not None:
            left_out = [item for item in items if short(item.nodeid) not in self.chosen]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if short(item.nodeid) in self.chosen]

    def pytest_runtest_logreport(self, report):
        if "PYTEST_XDIST_WORKER" not in os.environ and (report.when == "call" or report.outcome != "passed"):
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr or "")
            with open(f"{self.out}.outcomes", "a") as file:
                print(json.dumps([report.nodeid, report.outcome, message[:1000]]), file=file)


def short(nodeid):
    return nodeid.split("geotiff/tests/")[-1]


def replace_names():
    """Before any test is imported, so that each `from xrspatial.geotiff import open_geotiff` gives ours."""
    import xrspatial.geotiff
    from xrspatial.geotiff import _errors, _layout, _reader, _runtime, _sources

    from cogpu.compat import xrspatial as ours

    ours.open_geotiff = with_private_hosts(ours.open_geotiff)
    for name in (*xrspatial.geotiff.__all__, "plot_geotiff"):
        for module in (xrspatial.geotiff, _errors, _layout, _reader, _runtime, _sources):
            if hasattr(module, name):
                setattr(module, name, getattr(ours, name))
    for name, own in FORMER.items():
        setattr(xrspatial.geotiff, name, getattr(ours, own))


def with_private_hosts(open_geotiff):
    """Tests with servers on this machine say so by an environment variable of xarray-spatial; cogpu is configured."""
    import functools

    import cogpu

    is_allowed = False

    @functools.wraps(open_geotiff)
    def opened(*arguments, **keywords):
        nonlocal is_allowed
        asked = os.environ.get("XRSPATIAL_GEOTIFF_ALLOW_PRIVATE_HOSTS") == "1"
        if asked != is_allowed:
            is_allowed = asked
            cogpu.configure(network={"allow_private_addresses": asked})
        return open_geotiff(*arguments, **keywords)

    return opened


def pytest_configure(config):
    out, mode = os.environ["COGPU_SUITE_OUT"], os.environ["COGPU_SUITE"]
    chosen = None
    if mode == REPLACED:
        replace_names()
        chosen = set(json.loads(pathlib.Path(f"{out}.scope").read_text()))
    elif not hasattr(config, "workerinput") and config.getoption("numprocesses", None):
        pass  # the controller runs no test
    else:
        config.pluginmanager.register(Survey(out))
    config.pluginmanager.register(Outcomes(out, chosen))


# ---- the two runs ----------------------------------------------------------------------------------------------------


def run(python, mode, out, jobs, more):
    where = [python, "-c", "import xrspatial.geotiff as g; print(g.__file__)"]
    module = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    tests = pathlib.Path(module).parent / "tests"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**inherited, "COGPU_SUITE": mode, "COGPU_SUITE_OUT": out,
                   "PYTHONPATH": os.pathsep.join([PACKAGE, str(pathlib.Path(__file__).parent)])}
    command = [python, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "xrspatial_suite",
               "-W", "ignore", "-n", str(jobs), "--timeout=300", f"--ignore={tests}/gpu",
               str(tests), *more]
    done = subprocess.run(command, env=environment, cwd=pathlib.Path(out).parent, stdout=open(f"{out}.log", "w"),
                          stderr=subprocess.STDOUT)
    if done.returncode not in (0, 1):
        sys.exit(pathlib.Path(f"{out}.log").read_text()[-3000:])


def outcomes(out):
    found = {}
    for line in pathlib.Path(f"{out}.outcomes").read_text().splitlines():
        nodeid, outcome, message = json.loads(line)
        if found.get(short(nodeid), ("passed",))[0] != "failed":
            found[short(nodeid)] = outcome, message
    return found


def in_scope(out):
    passed = {nodeid for nodeid, (outcome, _) in outcomes(out).items() if outcome == "passed"}
    chosen = []
    for path in pathlib.Path(out).parent.glob(f"{pathlib.Path(out).name}.calls.*"):
        for line in path.read_text().splitlines():
            nodeid, calls, replaced = json.loads(line)
            private = [call for call in calls if call not in PUBLIC | FORMER_CALLS and not AIDS.match(call)]
            if (short(nodeid) in passed and (PUBLIC | FORMER_CALLS) & set(calls) and not replaced and not private
                    and not ASIDE.search(short(nodeid))):
                chosen.append(short(nodeid))
    return sorted(set(chosen))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter of an environment that has xarray-spatial")
    parser.add_argument("--scope", type=pathlib.Path, help="file of the tests in scope; made where it does not exist")
    parser.add_argument("--failures", type=pathlib.Path, help="file for the failures, as JSON")
    parser.add_argument("--select", default="", help="tests to run, as pytest's -k has it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print each failure")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        selected = ["-k", asked.select] if asked.select else []
        scope = asked.scope or pathlib.Path(folder) / "scope.json"
        if not scope.exists():
            run(asked.python, SURVEY, f"{folder}/survey", asked.jobs, selected)
            scope.write_text(json.dumps(in_scope(f"{folder}/survey"), indent=0))
        pathlib.Path(f"{folder}/replaced.scope").write_text(scope.read_text())
        run(asked.python, REPLACED, f"{folder}/replaced", asked.jobs, selected)
        found = outcomes(f"{folder}/replaced")
        if asked.failures:
            failed = {test: message for test, (outcome, message) in found.items() if outcome == "failed"}
            asked.failures.write_text(json.dumps(failed))
        return report(found, asked.list)


def report(found, is_listed):
    failures = {nodeid: message for nodeid, (outcome, message) in found.items() if outcome == "failed"}
    classes = collections.defaultdict(list)
    for nodeid, message in sorted(failures.items()):
        classes[class_of(nodeid, message)].append((nodeid, message))
    for (name, reason), tests in sorted(classes.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(tests):5} {name}: {reason}")
        for nodeid, message in tests if is_listed else ():
            print(f"        {nodeid}\n            {' '.join(message.split())[:400]}")
    passed = sum(outcome == "passed" for outcome, _ in found.values())
    print(f"{passed} of {len(found)} passed")
    return int(any(name == "no class" for name, _ in classes))


# Failures that are known: class, reason, tests, messages. The first whose tests or messages match counts.
TEXT, DELIBERATE, MISSING, PRIVATE = "error text", "deliberate and documented", "missing and documented", "internals"
CLASSES = (
    (MISSING, "the codecs lz4 and jpeg2000 are not written", r"lz4|Lz4|jpeg2000|j2k|test_round_trip_property", None),
    (DELIBERATE, "orientation: rows and columns come as they are stored", r"orient", None),
    (DELIBERATE, "MinIsWhite: samples come and go as they are stored", r"miniswhite|MinIsWhite", None),
    (DELIBERATE, "all codecs, tags and metadata are written without allow_... flags",
     r"jpeg|optin|opt_in_raises\[lerc|without_flag|experimental_codec_without", None),
    (DELIBERATE, "rotated grids are written", r"[Rr]otated|skewed|points_at_issue", None),
    (DELIBERATE, "COGs are written to file-like objects", r"(BytesIORejectsCog|bytesio_destination_with_cog)", None),
    (DELIBERATE, "more is written: complex samples, WebP, overview factors that are no powers of two",
     r"test_complex_dtype|test_unsupported_compression|rejects_invalid_factors", None),
    (DELIBERATE, "predictor 3 with several bands is libtiff's", r"predictor3_multisample", None),
    (DELIBERATE, "levels have the transform that follows from the full resolution, as in GDAL", r"own_geokeys", None),
    (DELIBERATE, "damaged tables and optional tags are tolerated where the pixels can be read",
     r"strip_table_truncated|truncated_strip_table|RationalZeroDenominator", None),
    (DELIBERATE, "files are laid out by our writer: order, types of tags, GDAL's ghost area",
     r"byte_parity|are_long8|marker_drifts", None),
    (DELIBERATE, "a packed band keeps its scale where GDAL looks for it", r"pack_band_subset_per_band_offset", None),
    (DELIBERATE, "max_pixels is checked when the array is made, not when it is computed", r"max_pixels_chunked", None),
    (DELIBERATE, "tags that the writer makes are not overridden by extra_tags; XML that is not well-formed is refused",
     r"extra_tags_override|extra_tags_miniswhite|extra_samples|[Mm]alformed.*xml|bad_xml", None),
    (DELIBERATE, "s3:// is written to", r"cloud_uri_raises", None),
    (MISSING, "colour ramps and tables of classes beside a file", r"categor|symbology|color_ramp", r"color_ramp"),
    (MISSING, "overviews beside a URL are not looked for",
     r"test_(http|fsspec|memory)\w*(sidecar|vs_local)|external_ovr", None),
    (MISSING, "CRS texts that PROJ does not know are not written", r"garbage_crs|wkt_crs_param",
     None),
    (PRIVATE, "the test watches the buffers and threads of xarray-spatial's own writer",
     r"banded_compute|pool_shutdown", None),
    (DELIBERATE, "keywords that were deprecated before read_vrt and write_vrt became private: vrt_path, crs_wkt",
     r"vrt_path|crs_wkt|write_vrt_path_round_trip", None),
    (DELIBERATE, "a chunked read says which sources are damaged when they are read, not before",
     r"ChunkedDecodeTimeHole", None),
    (PRIVATE, "the test compares words of private readers with those of the public one, or watches graphs and threads",
     r"parity_across_entry_points|shared_graph_input|uses_threaded_scheduler|mixed_band_nodata_rejected_without", None),
    (PRIVATE, "a duplicate tag hides the height of the image", r"duplicate_tag", None),
    (DELIBERATE, "a band that is no integer is a TypeError", r"non_integer_band_raises", None),
    (MISSING, "write_vrt does not ask PROJ whether it knows the text of a CRS", r"write_vrt_crs_unparseable", None),
    (TEXT, "the class is right, the words are ours", None,
     r"Regex pattern did not match|assert .* in ['\"]|should mention|cite the release-contract|Error: attrs\["),
)


def class_of(nodeid, message):
    for name, reason, tests, messages in CLASSES:
        if (tests and re.search(tests, nodeid)) or (messages and re.search(messages, message)):
            return name, reason
    return "no class", "not looked at"


if __name__ == "__main__":
    sys.exit(main())
