"""COGs of GDAL's to serve, and their pixels as GDAL reads them."""

import pathlib
import types

import numpy as np
import rasterio
from rasterio.io import MemoryFile
from rasterio.shutil import copy
from rasterio.transform import from_origin

HAS_PLANAR_COGS = tuple(map(int, rasterio.__gdal_version__.split(".")[:2])) >= (3, 11)


def terrain(bands, size, dtype):
    """Smooth, with noise that keeps blocks from being all alike."""
    y, x = np.mgrid[:size, :size].astype("f4")
    noise = np.random.default_rng(size).normal(0, 2, (bands, size, size))
    values = 120 + 60 * np.sin(x / 90) + 50 * np.cos(y / 70) + 10 * np.arange(bands)[:, None, None] + noise
    return values.astype("f4").round(1).astype(dtype)


def disc(size):
    """A mask: valid inside a circle."""
    y, x = np.ogrid[:size, :size]
    return np.where((x - size / 2) ** 2 + (y - size / 2) ** 2 < (0.45 * size) ** 2, 255, 0).astype("u1")


def write(path, pixels, mask=None, driver="COG", **options):
    bands, height, width = pixels.shape
    profile = {"driver": "GTiff", "count": bands, "height": height, "width": width, "dtype": pixels.dtype.name,
               "crs": "EPSG:32633", "transform": from_origin(400000, 5000000, 10, 10)}
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), MemoryFile() as memory:
        with memory.open(**profile) as file:
            file.write(pixels)
            if mask is not None:
                file.write_mask(mask)
            if driver != "COG":
                file.build_overviews([2, 4])
        with memory.open() as file:
            copy(file, path, driver=driver, **options)


def describe(path):
    """pixels, valid (or None), overviews: (bands, height, width) each, the levels from large to small."""
    with rasterio.open(path) as file:
        has_mask = rasterio.enums.MaskFlags.per_dataset in file.mask_flag_enums[0]
        valid = file.dataset_mask() if has_mask else None
        pixels, count = file.read(), len(file.overviews(1))
    overviews = []
    for level in range(count):
        with rasterio.open(path, overview_level=level) as file:
            overviews.append(file.read())
    return types.SimpleNamespace(name=path.name, path=path, pixels=pixels, valid=valid, overviews=overviews)


def make(folder):
    """The COGs by their names, NAME.tif in the folder."""
    folder = pathlib.Path(folder)
    deflate = {"COMPRESS": "DEFLATE", "LEVEL": 1}
    write(folder / "masked.tif", terrain(1, 2048, "f4"), disc(2048), BLOCKSIZE=256, **deflate)
    write(folder / "jpeg.tif", terrain(3, 1024, "u1"), COMPRESS="JPEG", BLOCKSIZE=256)
    if HAS_PLANAR_COGS:
        write(folder / "planar.tif", terrain(3, 768, "i2"), INTERLEAVE="BAND", BLOCKSIZE=128, **deflate)
    else:
        write(folder / "planar.tif", terrain(3, 768, "i2"), driver="GTiff", INTERLEAVE="BAND", TILED=True,
              BLOCKXSIZE=128, BLOCKYSIZE=128, COPY_SRC_OVERVIEWS=True, COMPRESS="DEFLATE", ZLEVEL=1)
    write(folder / "bigtiff.tif", terrain(1, 768, "u2"), BIGTIFF="YES", BLOCKSIZE=128, **deflate)
    # 4,096 tiles: where they lie and how long they are takes 24 KiB.
    write(folder / "long_header.tif", terrain(1, 2048, "u1"), BLOCKSIZE=32, **deflate)
    return {path.stem: describe(path) for path in sorted(folder.glob("*.tif"))}
