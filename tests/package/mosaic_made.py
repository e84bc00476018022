"""Sources of mosaics, made by GDAL: tiles of one scene, a scene of another UTM zone, and pixels that GDAL warps."""

import numpy as np
import rasterio
from conftest import write_file
from rasterio.crs import CRS
from rasterio.transform import from_origin
from rasterio.warp import Resampling, reproject

SIDE, SIZE = 150, 10.0
LEFT, TOP = 400000.0, 5000000.0
NODATA = -999


def scene(shape, seed=0):
    """Smooth, with holes of nodata."""
    y, x = np.mgrid[:shape[0], :shape[1]]
    random = np.random.default_rng(seed)
    pixels = (500 + 300 * np.sin(x / 20 + seed) + 200 * np.cos(y / 15) + random.integers(0, 9, shape)).astype("int16")
    for row, column in random.integers(0, min(shape) - 12, (4, 2)):
        pixels[row:row + 9, column:column + 12] = NODATA
    return pixels


def tile(folder, name, column, row, seed=0, **profile):
    """A tile of the grid that begins at LEFT, TOP, from a column and row on."""
    transform = from_origin(LEFT + column * SIZE, TOP - row * SIZE, SIZE, SIZE)
    profile = {"transform": transform, "nodata": NODATA, **profile}
    pixels = scene((SIDE, SIDE), seed)
    write_file(folder / name, pixels[None], **profile)
    return pixels


def tiles(folder):
    """Three that overlap: paths, and their pixels on the grid that has all, with nodata around."""
    placed, paths = [], []
    for number, (column, row) in enumerate([(0, 0), (100, 30), (60, 110)]):
        whole = np.full((SIDE + 110, SIDE + 100), NODATA, "int16")
        whole[row:row + SIDE, column:column + SIDE] = tile(folder, f"tile{number}.tif", column, row, number)
        placed.append(whole)
        paths.append(str(folder / f"tile{number}.tif"))
    return paths, np.stack(placed)


def composed(placed, method):
    """By NumPy."""
    valid = placed != NODATA
    if method == "count":
        return valid.sum(0)
    order = placed if method == "first" else placed[::-1]
    if method in ("first", "last"):
        index = (order != NODATA).argmax(0)[None]
        return np.take_along_axis(order, index, 0)[0]
    masked = np.ma.masked_array(placed, ~valid)
    if method == "median":
        ordered = np.sort(np.where(valid, placed, np.iinfo("int16").max), 0)
        lower = np.maximum(valid.sum(0) - 1, 0) // 2
        found = np.take_along_axis(ordered, lower[None], 0)[0]
        return np.where(valid.any(0), found, NODATA)
    return {"min": masked.min, "max": masked.max}[method](axis=0).filled(NODATA)


def warped(path, crs, transform, shape, resampling="nearest", **words):
    """By GDAL, every position exact."""
    with rasterio.open(path) as file:
        out = np.full((file.count, *shape), file.nodata or 0, file.dtypes[0])
        reproject(rasterio.band(file, file.indexes), out, dst_transform=transform, dst_crs=CRS.from_user_input(crs),
                  resampling=Resampling[resampling], tolerance=0, **words)
    return out
