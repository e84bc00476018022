"""Files that xarray-spatial can read too, made by GDAL, for the tests of compat.xrspatial."""

import contextlib
import warnings

import numpy as np
import rasterio
from rasterio.transform import Affine

GRID = Affine(10, 0, 500000, 0, -10, 5000000)


def make(path, pixels, *, scales=None, offsets=None, tags=None, colours=None, **profile):
    pixels = np.atleast_3d(pixels.T).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path, "w", driver="GTiff", count=len(pixels), height=pixels.shape[1], width=pixels.shape[2],
                           dtype=pixels.dtype, **profile) as file:
            file.write(pixels)
            file.update_tags(**tags or {})
            if scales:
                file.scales, file.offsets = scales, offsets
            if colours:
                file.write_colormap(1, colours)
    return str(path)


def files(folder):
    """Files of every kind that both can read, by name."""
    random = np.random.default_rng(1)
    floats, bytes_ = random.normal(size=(20, 30)).astype("float32"), random.integers(0, 255, (3, 20, 30), dtype="uint8")
    small = random.integers(-5, 5, (20, 30)).astype("int16")
    place = {"crs": "EPSG:32633", "transform": GRID}
    return {
        "float": make(folder / "float.tif", floats, nodata=-9999, tiled=True, blockxsize=16, blockysize=16, **place),
        "bands": make(folder / "bands.tif", bytes_, compress="deflate", **place),
        "planar": make(folder / "planar.tif", bytes_, interleave="band", **place),
        "nodata": make(folder / "nodata.tif", small, nodata=-3, **place),
        "no_crs": make(folder / "no_crs.tif", floats, transform=GRID),
        "nowhere": make(folder / "nowhere.tif", small),
        "crs_only": make(folder / "crs_only.tif", small, crs="EPSG:32633"),
        "degrees": make(folder / "degrees.tif", floats, crs="EPSG:4326", transform=Affine(.1, 0, 10, 0, -.1, 50),
                        nodata=np.nan),
        "point": make(folder / "point.tif", small, nodata=4, scales=(.1,), offsets=(5,),
                      tags={"A": "b", "AREA_OR_POINT": "Point"}, **place),
        "palette": make(folder / "palette.tif", (bytes_[0] % 2), colours={0: (255, 0, 0), 1: (0, 255, 0)},
                        photometric="palette",
                        **place),
        "upwards": make(folder / "upwards.tif", floats, crs="EPSG:32633", transform=Affine(10, 0, 0, 0, 10, 0)),
        "scales": make(folder / "scales.tif", np.stack([small, small]), scales=(.1, .2), offsets=(0, 1), **place),
    }


@contextlib.contextmanager
def opened(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path) as file:
            yield file
