"""What all tests share: paths of the programs and of the corpus, and the devices to run on.

Environment: COGPU_LIB, COGPU_BIN, COGPU_SAN_BIN name what is tested (default: build/ and build-san/),
COGPU_CORPUS the folder of real files, COGPU_DEVICES where to read, COGPU_TIME_FACTOR stretches time limits on slow machines.
"""

import os
import pathlib
import re
import subprocess
import sys
import warnings

import pytest
import rasterio

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import cogpu_ctypes  # noqa: E402

BIN = pathlib.Path(os.environ.get("COGPU_BIN", ROOT / "build" / "cogpu"))
SAN_BIN = pathlib.Path(os.environ.get("COGPU_SAN_BIN", ROOT / "build-san" / "cogpu"))
CORPUS = pathlib.Path(os.environ.get("COGPU_CORPUS", ROOT.parent / "shared" / "corpus"))
TIME_FACTOR = float(os.environ.get("COGPU_TIME_FACTOR", "1"))
DEVICES = os.environ.get("COGPU_DEVICES", "cpu emu").split()

# Tests that GDAL before 3.11 cannot serve as a reference for. Python 3.11, Debian 12's, gets it with rasterio 1.4.
OLD_GDAL = tuple(map(int, rasterio.__gdal_version__.split(".")[:2])) < (3, 11)
NOT_FOR_OLD_GDAL = {
    r"float16|\bf2\b": "it has no float16",
    r"test_cog\[.*-(BAND|TILE)\]": "its COG driver has no INTERLEAVE",
    r"test_cog_jpeg\[3\]|test_jpeg\[3-options[28]-|test_colours\[ycbcr": "its libjpeg 9 smooths shared colours in another way",
    r"test_crs_code_T131\[3067\]": "its PROJ describes the system by another text",
    r"test_crs_(contradicting|polar|local)": "it reads such keys in another way",
    r"test_box_in_another_crs|test_grids\[.*bounds-crs": "it samples boxes in another CRS at other points",
    r"test_transformer_(grid_across_antimeridian|longitudes\[.*transform5)": "it moves longitudes of globes in another way",
    r"test_transformer_gcps\[\d+-[45]\]": "it fits four and five points by other transforms",
    r"test_resampling\[\d+-mode\]": "its mode counts pixels without their areas",
}

warnings.filterwarnings("ignore", message="Dataset has no geotransform")


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::rasterio.errors.NotGeoreferencedWarning")
    config.addinivalue_line("markers", "no_library: needs neither the library nor the programs")
    config.addinivalue_line("markers", "slow: compiles sources; leave out by -m 'not slow'")


def pytest_collection_modifyitems(items):
    for item in items:
        for pattern, reason in NOT_FOR_OLD_GDAL.items():
            if OLD_GDAL and re.search(pattern, item.name):
                item.add_marker(pytest.mark.skip(reason=f"GDAL {rasterio.__gdal_version__}: {reason}"))
    skip_without_library(items)


def skip_without_library(items):
    """Without a library there is nothing to test: say so once per test instead of failing on None."""
    if cogpu_ctypes.lib is not None:
        return
    absent = pytest.mark.skip(reason=f"{cogpu_ctypes.LIBRARY} has not been built (set COGPU_LIB)")
    for item in items:
        if item.get_closest_marker("no_library") is None:
            item.add_marker(absent)


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def on_device(device):
    """The command line's words for a device; the default needs none."""
    return [] if device == "cpu" else ["--device", device]


class Run:
    """What a program did: exit status, output, seconds, and the most memory it held."""

    def __init__(self, command, timeout):
        measure = [sys.executable, "-S", "-E", str(HERE / "measure.py"), str(timeout),
                   *map(str, command)]
        done = subprocess.run(measure, capture_output=True, check=True)
        head, _, rest = done.stdout.partition(b"\n")
        code, seconds, kib, out_bytes = head.split()
        self.code, self.seconds, self.mib = int(code), float(seconds), int(kib) / 1024
        self.stdout = rest[:int(out_bytes)].decode("utf-8", "replace")
        self.stderr = rest[int(out_bytes):].decode("utf-8", "replace")


@pytest.fixture(scope="session")
def run():
    def run_program(*command, timeout=10):
        return Run(command, timeout * TIME_FACTOR)
    return run_program
