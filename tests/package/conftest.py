"""What the tests of the Python package share: the package, devices, and small files made by GDAL.

Environment: COGPU_PACKAGE names the folder that has the package (default: build/python; "installed": Python finds it),
COGPU_CORPUS the folder of real files, COGPU_DEVICES where to read.
"""

import io
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("COGPU_PACKAGE", str(ROOT / "build" / "python"))
CORPUS = pathlib.Path(os.environ.get("COGPU_CORPUS", ROOT.parent / "shared" / "corpus"))
DEVICES = os.environ.get("COGPU_DEVICES", "cpu emu").split()

if PACKAGE != "installed":
    sys.path.insert(0, PACKAGE)
    # Of child processes.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))

import numpy as np  # noqa: E402
import rasterio  # noqa: E402
from rasterio.transform import from_origin  # noqa: E402

# What GDAL before 3.11, and rioxarray of its time, cannot reference, by test. Python 3.11, Debian 12's, gets rasterio 1.4.
OLD_GDAL = tuple(map(int, rasterio.__gdal_version__.split(".")[:2])) < (3, 11)
NOT_FOR_OLD_GDAL = {
    r"test_(as_stored|window)\[.*(fp16|float16|\.f2\.)": "it has no float16",
    r"test_(as_stored|masked)\[.*(jpeg-ycbcr|ycbcr_with_mask|data_w_jpeg|rgb.tiled.jpeg)":
        "its libjpeg 9 smooths shared colours in another way",
    r"test_as_stored\[.*(nodata_precision|wcs_ArcGIS|wcs_SimpleGeo)": "its PROJ describes EPSG:3067 by another text",
    r"test_as_stored\[.*(byte_rpc|rpc_with_gt|dimap2_bundle_IMG_foo2)|test_sidecars_as_rioxarray\[rpc\]":
        "rioxarray before 0.20 knows no RPCs",
    r"test_mosaic\.py::test_(nearest_as_gdal|resampling_as_gdal\[(mode|max|min|med|q1|q3)|several_zones|"
    r"open_geotiff_as_rioxarray|engine$)": "rasterio 1.4 ignores tolerance=0: its positions are interpolated",
}


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "ignore::rasterio.errors.NotGeoreferencedWarning")


def pytest_collection_modifyitems(items):
    for item in items if OLD_GDAL else []:
        for pattern, reason in NOT_FOR_OLD_GDAL.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=f"GDAL {rasterio.__gdal_version__}: {reason}"))


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def array_module(device):
    """Whose arrays lie on a device: CuPy's on a GPU, NumPy's on the host and an emulated GPU."""
    return pytest.importorskip("cupy") if device == "cuda" else np


def host(array):
    """An array as NumPy's: over its memory where that is the host's or an emulated GPU's, a copy of a GPU's."""
    if hasattr(array, "get"):  # CuPy's, whose DLPack has no negative strides
        return array.get()
    return np.from_dlpack(array, device="cpu") if hasattr(array, "__cuda_array_interface__") else np.asarray(array)


def address(array):
    """Of the first sample, by the interface that the array speaks."""
    on_gpu = hasattr(array, "__cuda_array_interface__")
    return (array.__cuda_array_interface__ if on_gpu else array.__array_interface__)["data"][0]


@pytest.fixture(scope="session")
def corpus():
    if not CORPUS.exists():
        pytest.skip(f"no corpus at {CORPUS}")
    return CORPUS


def pixels_of(shape, dtype="uint8", seed=1):
    """Smooth pixels with some noise, for all dtypes."""
    dtype = np.dtype(dtype)
    bands, height, width = shape
    values = np.add.outer(np.arange(bands) * 7, np.add.outer(np.arange(height), 2 * np.arange(width))).astype("f8")
    values += np.random.default_rng(seed).integers(0, 5, shape)
    if dtype.kind == "c":
        values = values - 1j * values[..., ::-1]
    if dtype.kind in "ui":
        values = values % min(np.iinfo(dtype).max, 1 << 40)
    return values.astype(dtype)


def write_file(path, pixels, *, overviews=(), **profile):
    """A GeoTIFF of GDAL's: tiles of 64 x 64, of a codec that is quick on an emulated GPU, unless told otherwise."""
    bands, height, width = pixels.shape
    profile = {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "packbits", "crs": "EPSG:32633",
               "transform": from_origin(400000, 5000000, 10, 10), "dtype": pixels.dtype.name, **profile}
    if not profile["tiled"]:
        del profile["blockxsize"], profile["blockysize"]
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width, **profile) as file:
        file.write(pixels)
        if overviews:
            file.build_overviews(list(overviews))
    return path


class Pipe(io.RawIOBase):
    """Takes bytes in order, as a socket does."""

    def __init__(self):
        self.taken = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.taken += data
        return len(data)


@pytest.fixture
def make_file(tmp_path):
    """make_file(pixels, **profile of rasterio) -> path."""
    def make(pixels, name="made.tif", **profile):
        return write_file(tmp_path / name, pixels, **profile)
    return make


@pytest.fixture(scope="session")
def pixels():
    """Of the file `path`."""
    return pixels_of((3, 150, 200), "int16")


@pytest.fixture(scope="session")
def path(tmp_path_factory, pixels):
    """A file of three bands and two levels, which tests do not change."""
    return write_file(tmp_path_factory.mktemp("made") / "three.tif", pixels, nodata=7, overviews=[2])
