"""`open_geotiff`: a file, or a part of one, as an xarray.DataArray (band, y, x).

It checks what the caller asks for, has the pixels read (lazy.Pixels) or a Dask array of them made (dask.blocks), and
puts the names of georef around them.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import numpy as np

from . import georef, lazy
from .arguments import flag, whole
from .errors import ArgumentError, LimitError, about
from .file import File
from .file import open as open_file
from .grids import grid_of, out_sides, resampling_of, window_bounds
from .urls import is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import xarray

    from ._types import Bands, Chunks, Coordinates, Gpu, OnGpuFailure, Resampling, SourceOrFile, Window

MAX_PIXELS = 1_000_000_000
PIXELS = "pixels"
MOST_BEYOND = 1e9  # pixels that a box may reach beyond a file
EDGE = 1e-6  # of a pixel: what a bounding box may miss an edge by and still mean it


def open_geotiff(source: SourceOrFile, *, dtype: npt.DTypeLike | None = None, window: Window | None = None,
                 bbox: Sequence[float] | None = None, overview_level: int | None = None, band: Bands | None = None,
                 image: int = 0, default_name: str | None = None, chunks: Chunks | None = None, gpu: Gpu = False,
                 max_pixels: int = MAX_PIXELS, on_gpu_failure: OnGpuFailure = "auto", masked: bool = False,
                 unpack: bool = False, parse_coordinates: Coordinates = True, boundless: bool = False,
                 fill_value: float | None = None, out_shape: Sequence[int] | None = None,
                 resampling: Resampling = "nearest", sidecars: bool | None = None) -> xarray.DataArray:
    """Reads a GeoTIFF into an xarray.DataArray with dimensions (band, y, x), by rioxarray's conventions.

    What a file states as nodata and no sample can be is left out of the attributes. Its palette is in
    encoding["colormap"], (red, green, blue) of 16 bits each, from where to_geotiff takes it. So does
    encoding["photometric"], "cielab" for one, where samples are neither gray, RGB nor of a palette. Tags of bands and of
    other metadata domains are in attrs["band_tags"] and attrs["tag_domains"], as JSON by number of the band, and to_geotiff
    writes them again; File.metadata has them as dicts.

    Parameters
    ----------
    source : path, URL, content of a file, or whatever else `open` takes, or a File.
    dtype : type of the pixels; None for the file's. Casts that lose more than digits (float to int) are refused.
    window : (row0, col0, row1, col1), half-open, inside the level and in its pixels; or ((row0, row1), (col0, col1)),
        two slices, or rasterio's Window.
    bbox : (xmin, ymin, xmax, ymax) in the file's coordinate system; all pixels that it touches. Not with `window`.
    overview_level : None or 0 for full resolution, 1 for the first overview, and so on, as in xarray-spatial;
        rasterio counts the overviews alone, from 0.
    band : number of a band from 0, or several; None for all. The dimension `band` stays, with a length of one for one
        band: code that was written for all bands works on one, and `.sel(band=1)` removes the dimension.
    image : which image of a file with several (GDAL calls them subdatasets), from 0.
    default_name : name of the array; None for the file's without its ending.
    chunks : None reads now. Else a Dask array: an int, (rows, columns), a dict by dimension, "auto" or {}: see
        cogpu.dask.blocks.
    gpu : True gives CuPy arrays, decoded by the GPU that is current where the pixels are read; with `chunks` a Dask
        array of them.
    max_pixels : most pixels, times bands, that may be read at once; with `chunks` into one of them.
    on_gpu_failure : "auto" warns (FallbackWarning) and lets the CPU decode, "strict" raises DeviceError.
    masked : pixels that nodata, the mask or the alpha band call invalid become NaN, and integers floats.
    unpack : applies scale and offset of each band; implies `masked`.
    parse_coordinates : False leaves the coordinates x and y out. "2d" gives a rotated grid, which has no x and y, the
        coordinates xc and yc (y, x), as rioxarray does: two rasters of float64 more.
    boundless : the window, or bbox, may reach beyond the file: pixels outside become `fill_value`, and coordinates go
        on.
    fill_value : of pixels outside; None for NaN where masked, else nodata, or 0.
    out_shape : (height, width) of the array, as in rasterio: the level is chosen by GDAL's rule, and its pixels are
        resampled. `window` is of the full resolution. Not with `overview_level`.
    resampling : how: "nearest", "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos" or "mode", or
        rasterio's Resampling. Nearest is what rasterio gives; the others are by GDAL's definitions, in double
        precision, with weights exact at the window's edges. Invalid pixels have no weight; what has no valid pixel
        becomes nodata, or NaN where masked.
    sidecars : whether files beside it are read (.ovr, .msk, .aux.xml, world files, RPC files). None: of local files
        alone; True: of URLs too, with a request for each possible name; False: no.
    """
    if window is not None and bbox is not None:
        raise ArgumentError("window and bbox: give one of them")
    whole("max_pixels", max_pixels, 1)
    file = file_of(source, image, sidecars)
    with about(file.name):
        level = level_of(file, overview_level)
        bounds = _window_of(file, level, bbox, boundless) if bbox is not None else \
            window_bounds(window, file.levels[level].shape, flag("boundless", boundless))
        grid = _grid(file, level, bounds, out_shape, resampling, boundless, band)
        pixels = lazy.pixels_of(file, source=source if lazy.is_path(source) else None,
                                level=grid.level if grid else level, bands=_bands(file, band), dtype=dtype,
                                masked=masked, unpack=unpack, gpu=gpu, on_gpu_failure=on_gpu_failure)
        if boundless or grid:
            pixels = _beyond(file, pixels, bounds, grid, fill_value)
        file._warn_of_scales(pixels.bands, stacklevel=2)
        data = _data(pixels, None if boundless or grid else bounds, chunks, max_pixels)
        coords, attrs, encoding = georef.describe(file, pixels, bounds, parse_coordinates, grid and grid.shape)
    return _array(data, coords, default_name or _stem(file.name), attrs, encoding)


def file_of(source, image, sidecars=None):
    """The File of a source, kept open where it is a path or URL."""
    if isinstance(source, File):
        if image not in (0, source.image):
            raise ArgumentError(f"{source.name or 'source'}: image={image}, and the File is of image {source.image}")
        return source
    whole("image", image, 0)
    if is_url(source):
        lazy.release(source)  # it may have changed meanwhile; the engine knows how long a header is good
    if sidecars is not None:
        flag("sidecars", sidecars)
    if lazy.is_path(source):
        return lazy.opened(source, image, sidecars)
    return open_file(source, image=image, sidecars=sidecars)


def level_of(file, overview_level):
    """The level that `overview_level` means, which the file must have."""
    with about(file.name):
        return 0 if overview_level is None else whole("overview_level", overview_level, 0, len(file.levels) - 1)


def _grid(file, level, bounds, out_shape, resampling, boundless, band):
    """The Grid that `out_shape` means, or None."""
    method = resampling_of(resampling)
    if out_shape is None:
        return None
    if level:
        raise ArgumentError(f"overview_level={level}: out_shape chooses the level; leave one of them out")
    return grid_of(file.levels, bounds, out_sides(out_shape, len(_bands(file, band) or range(file.shape[0]))), method,
                   boundless)


def _beyond(file, pixels, bounds, grid, fill_value):
    """The pixels of a window that may reach beyond the level, or of an output of another size."""
    from .beyond import Padded, Resampled, fill_for, kept_nodata

    fill = fill_for(file, pixels.bands, pixels.dtype, fill_value, pixels.masked, pixels.unpack)
    if grid:
        return Resampled(pixels, grid, fill, kept_nodata(file, pixels.masked, pixels.unpack))
    return Padded(pixels, bounds, fill)


def _data(pixels, window, chunks, max_pixels):
    if chunks is None:
        row0, column0, row1, column1 = window or (0, 0, *pixels.shape[1:])
        _check_size("the window", len(pixels.bands) * (row1 - row0) * (column1 - column0), max_pixels)
        return pixels.read(slice(row0, row1), slice(column0, column1))
    from .dask import blocks

    data = blocks(pixels, chunks, window)
    _check_size("a chunk", math.prod(max(sizes, default=0) for sizes in data.chunks), max_pixels)
    return data


def _array(data, coords, name, attrs, encoding):
    """What xarray.DataArray makes of these, in half the time: that one makes a deep copy of each coordinate, with all
    that is said of the coordinate system, and this takes the pixels out of a set of variables."""
    import pandas
    import xarray
    from xarray.indexes import PandasIndex

    variables, indexes = {PIXELS: xarray.Variable(("band", "y", "x"), data, attrs, encoding)}, {}
    for key, (dims, values, facts) in coords.items():
        if isinstance(dims, str):
            indexes[key] = PandasIndex(pandas.Index(values, name=key), dims)
            variables |= indexes[key].create_variables()
        else:
            variables[key] = xarray.Variable(dims, values, facts)
    array = xarray.Coordinates(variables, indexes)[PIXELS]
    del array.coords[PIXELS]
    array.name = name
    return array


def _check_size(what, count, max_pixels):
    if count > max_pixels:
        raise LimitError(f"max_pixels: {what} has {count} samples, more than {max_pixels}; read less, or raise it")


def _bands(file, band):
    if band is None:
        return None
    chosen = tuple(band) if isinstance(band, (list, tuple, range, np.ndarray)) else (band,)
    if not chosen:
        raise ArgumentError("band: none is chosen")
    return tuple(whole("band", number, 0, file.shape[0] - 1) + 1 for number in chosen)


def _window_of(file, level, bbox, boundless):
    """The pixels that a box in the file's coordinates touches, cut to the level unless `boundless`."""
    left, bottom, right, top = _box(bbox)
    if not file.has_transform:
        raise ArgumentError("bbox: the file has no transform; give window")
    a, b, c, d, e, f = file.levels[level].transform
    if b or d or not a or not e:
        raise ArgumentError("bbox: the file's grid is rotated, or its pixels have no size; give window")
    height, width = file.levels[level].shape
    columns = _touched((left - c) / a, (right - c) / a, None if boundless else width)
    rows = _touched((top - f) / e, (bottom - f) / e, None if boundless else height)
    if columns[0] >= columns[1] or rows[0] >= rows[1]:
        raise ArgumentError(f"bbox: {tuple(bbox)} lies outside of the file's bounds {tuple(file.bounds)}")
    return rows[0], columns[0], rows[1], columns[1]


def _box(bbox):
    try:
        left, bottom, right, top = (float(number) for number in bbox)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"bbox: {bbox!r} are not four numbers (xmin, ymin, xmax, ymax)") from error
    if not (left < right and bottom < top) or not all(map(math.isfinite, (left, bottom, right, top))):
        raise ArgumentError(f"bbox: {bbox!r} must be finite, with xmin < xmax and ymin < ymax")
    return left, bottom, right, top


def _touched(one, other, count):
    """First and end of the pixels between two places on an axis; cut before rounded, as places may be infinite. None as
    `count` does not cut them to the level."""
    low, high = sorted((one, other))
    if count is None:
        low, high = max(low, -MOST_BEYOND), min(high, MOST_BEYOND)
    else:
        low, high = (min(max(place, 0.0), float(count)) for place in (low, high))
    return math.floor(low + EDGE), math.ceil(high - EDGE)


def _stem(name):
    return os.path.splitext(os.path.basename(name))[0] if name else None
