"""`open_geotiff`: reads a file, or a part of one, into an xarray.DataArray (band, y, x).

lazy.Pixels reads the pixels, or dask.blocks makes a Dask array of them; georef adds coordinates and attributes.
"""

from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _cogpu, georef, lazy
from .arguments import flag, whole
from .errors import about, InvalidArgumentError, LimitExceededError, NotFoundError
from .file import File
from .file import open as open_file
from .grids import grid_of, out_sides, resampling_of, window_bounds
from .keywords import accept_other_names
from .mosaic import is_single, Mosaic, open_mosaic, Source, stem_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import xarray

    from ._types import (Bands, Bounds, Chunks, Composite, Coordinates, Crs, Gpu, GridLike, MosaicSources, OnGpuFailure,
                         Resolution, Shape, VrtSources, WarpResampling, Window)
    from .file import Transform
    from .grids import Grid

    Box = tuple[float, float, float, float]

MAX_PIXELS = 1_000_000_000
PIXELS = "pixels"
MOST_BEYOND = 1e9  # pixels that a bounding box may exceed the level by
EDGE = 1e-6  # of a pixel: tolerance of bounding boxes, as in cogpu_bbox_to_window


@accept_other_names
def open_geotiff(source: MosaicSources, *, dtype: npt.DTypeLike | None = None, window: Window | None = None,
                 bbox: Sequence[float] | None = None, level: int = 0, band: Bands | None = None,
                 image: int = 0, default_name: str | None = None, chunks: Chunks | None = None, gpu: Gpu = False,
                 max_pixels: int = MAX_PIXELS, on_gpu_failure: OnGpuFailure = "auto", masked: bool = False,
                 unscale: bool = False, parse_coordinates: Coordinates = True, boundless: bool = False,
                 fill_value: float | None = None, out_shape: Sequence[int] | None = None,
                 resampling: WarpResampling = "nearest", sidecars: bool | None = None, crs: Crs | None = None,
                 resolution: Resolution | None = None, bbox_crs: Crs | None = None, shape: Shape | None = None,
                 like: GridLike | None = None, transform: Any = None, align: bool = False,
                 composite: Composite = "first", nodata: float | str | None = None, max_error: float = 0.125,
                 full_resolution: bool = False, skip_bad_sources: bool = False,
                 vrt_sources: VrtSources | None = None, decode: str | None = None) -> xarray.DataArray:
    """Reads a GeoTIFF, a VRT or many files into an xarray.DataArray with dimensions (band, y, x), by rioxarray's
    conventions.

    With `crs`, `resolution`, `shape`, `like`, `transform`, `bbox_crs` or `align` the pixels come on a grid of their
    own: they are resampled, reprojected where the CRS is another one. Several sources become a mosaic on that grid, or
    else on the grid that holds all. See open_mosaic.

    A nodata value that no sample can have is left out of the attributes. encoding["colormap"] has the palette, as
    (red, green, blue) of 16 bits. encoding["photometric"] has the photometric interpretation of samples that are not
    gray, RGB or palette, such as "cielab". attrs["band_tags"] and attrs["tag_domains"] have metadata of bands and of
    other domains, as JSON. to_geotiff writes all of these again.

    Parameters
    ----------
    source : path, URL, content of a file, another source of `open`, or a File; or a list of these, of cogpu.Source or
        of dicts with its fields.
    dtype : type of the pixels (default: the file's). Casts that lose more than digits (float to int) are refused. A
        float type is that of the mosaic too: its pixels are not rounded to integers in between.
    window : (row0, col0, row1, col1), half-open, inside the level, in pixels of the level; ((row0, row1),
        (col0, col1)); two slices; or rasterio's Window (default: all pixels).
    bbox : (xmin, ymin, xmax, ymax) in the file's CRS: all pixels that it touches. Not with `window`. With a grid of
        its own (see above): the bounds of that grid.
    level : overview level; 0 is the full resolution, 1 the first overview (default: 0). xarray-spatial's name
        `overview_level` is accepted. rasterio's overview_level is one less: it counts overviews only, from 0.
    band : a band or several, from 1 (default: all). The dimension `band` stays; `.sel(band=1)` removes it.
    image : index of the image in a file with several (subdatasets in GDAL), from 0 (default: 0).
    default_name : name of the array (default: the file's name without extension).
    chunks : None reads now (default). Otherwise a Dask array: an int, (rows, columns), a dict by dimension, "auto" or
        {}; see cogpu.dask.blocks.
    gpu : True: CuPy arrays, decoded by the current GPU; with `chunks` a Dask array of them (default: False).
    max_pixels : upper limit of pixels, times bands, of one read; with `chunks` of one chunk (default: 1,000,000,000).
    on_gpu_failure : "auto" warns (FallbackWarning) and decodes on the CPU (default); "strict" raises DeviceError.
    masked : True: invalid pixels (nodata, mask, alpha) become NaN, and integers become floats (default: False).
    unscale : True: scale and offset of each band are applied; implies `masked` (default: False). xarray-spatial's name
        `unpack` and rioxarray's `mask_and_scale` are accepted.
    parse_coordinates : False: no coordinates x and y. "2d": a rotated grid, which has no x and y, gets coordinates xc
        and yc (y, x), as in rioxarray: two more rasters of float64 (default: True).
    boundless : True: the window, or bbox, may exceed the file; pixels outside become `fill_value`, and coordinates
        continue (default: False).
    fill_value : pixels outside (default: NaN if masked, else nodata, or 0).
    out_shape : (height, width) of the array, as in rasterio. GDAL's rule chooses the level, whose pixels are
        resampled. `window` counts pixels of the full resolution. Not with `level`.
    resampling : "nearest" (default), "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos", "mode", or
        rasterio's Resampling. "nearest" equals rasterio's. The others follow GDAL's definitions in double precision,
        with exact weights at the window's edges. Invalid pixels have no weight. A pixel without valid sources becomes
        nodata, or NaN if masked. On a grid of its own: by GDAL's warper, also "min", "max", "median", "q1", "q3",
        "sum".
    sidecars : whether files beside it are read (.ovr, .msk, .aux.xml, world files, RPC files). None: of local files
        (default); True: of URLs too, one request for each possible name; False: no.
    crs, resolution, bbox_crs, shape, like, transform, align : the grid, as in open_mosaic.
    composite, nodata, max_error, full_resolution, skip_bad_sources : as in open_mosaic, of a mosaic only.
    vrt_sources : which files a VRT may name, as in `open`.
    decode : device that decodes pixels for NumPy arrays: "cpu" (default), "cuda", "cuda:1", "emu". If it fails,
        `on_gpu_failure` says what happens. Not with `gpu`, whose arrays the GPU decodes anyway.
    """
    if window is not None and bbox is not None:
        raise InvalidArgumentError("window and bbox: give one of them")
    whole("max_pixels", max_pixels, 1)
    file, origin = opened_for(source, image, sidecars, vrt_sources, bbox=bbox, crs=crs, resolution=resolution,
                              bbox_crs=bbox_crs, shape=shape, like=like, transform=transform, align=align,
                              resampling=resampling, composite=composite, nodata=nodata, max_error=max_error,
                              full_resolution=full_resolution, skip_bad_sources=skip_bad_sources, dtype=dtype)
    if is_mosaic(file):
        if out_shape is not None:
            raise InvalidArgumentError("out_shape: for a mosaic or a grid of its own give shape")
        bbox = None if has_grid(crs, resolution, bbox_crs, shape, like, transform, align) else bbox
        resampling = "nearest"
    with about(file.name):
        level = level_of(file, level)
        bounds = _window_of(file, level, bbox, boundless) if bbox is not None else \
            window_bounds(window, file.levels[level].shape, flag("boundless", boundless))
        grid = _grid(file, level, bounds, out_shape, resampling, boundless, band)
        pixels = lazy.pixels_of(file, source=origin, level=grid.level if grid else level,
                                bands=_bands(file, band), dtype=dtype, masked=masked, unscale=unscale, gpu=gpu,
                                on_gpu_failure=on_gpu_failure, decode=decode)
        if boundless or grid:
            pixels = _beyond(file, pixels, bounds, grid, fill_value)
        file._warn_of_scales(pixels.bands, stacklevel=3)
        data = _data(pixels, None if boundless or grid else bounds, chunks, max_pixels)
        coords, attrs, encoding = georef.describe(file, pixels, bounds, parse_coordinates,
                                                  grid.shape if grid else None)
    return _array(data, coords, default_name or _stem(file.name or stem_source(source)), attrs, encoding)


MOSAIC_ONLY = {"composite": "first", "nodata": None, "max_error": 0.125, "full_resolution": False,
               "skip_bad_sources": False}


def has_grid(*words: Any) -> bool:
    """Whether words of a grid are given: crs, resolution, bbox_crs, shape, like, transform, align."""
    return any(word is not None and word is not False for word in words)


def is_mosaic(file: File) -> bool:
    """Whether open_mosaic made it; a VRT is a file as any other."""
    return isinstance(file._arguments["source"], Mosaic)


def opened_for(source: Any, image: int, sidecars: bool | None, vrt_sources: Any, *, bbox: Any = None, crs: Any = None,
               resolution: Any = None, bbox_crs: Any = None, shape: Any = None, like: Any = None, transform: Any = None,
               align: bool = False, resampling: Any = "nearest", dtype: Any = None,
               **mosaic: Any) -> tuple[File, Any]:
    """The File of a source, or of a mosaic, and what opens it again in a task: a path, a URL, a Recipe, or None."""
    is_own_grid = has_grid(crs, resolution, bbox_crs, shape, like, transform, align)
    if is_single(source) and not is_own_grid and not isinstance(source, (Source, dict)):
        for name, default in MOSAIC_ONLY.items():
            if mosaic.get(name, default) != default:
                raise InvalidArgumentError(f"{name}: it is for several sources, or for a grid of its own (crs, "
                                           "resolution, shape, like)")
        file = file_of(source, image, sidecars, vrt_sources)
        return file, source if lazy.is_path(source) else file._recipe
    file = open_mosaic(cast(Any, source), bbox=bbox if is_own_grid else None, crs=crs, resolution=resolution,
                       bbox_crs=bbox_crs, shape=shape, like=like, transform=transform, align=align, resampling=resampling,
                       dtype=dtype if dtype is not None and np.dtype(dtype).kind == "f" else None, image=image,
                       sidecars=sidecars, vrt_sources=vrt_sources, **mosaic)
    if file._recipe is not None:
        lazy.keep(file._recipe, file)
    return file, file._recipe


def file_of(source: Any, image: int, sidecars: bool | None = None, vrt_sources: Any = None) -> File:
    """The File of a source, kept open where it is a path or URL."""
    if isinstance(source, File):
        if image not in (0, source.image):
            raise InvalidArgumentError(f"{source.name or 'source'}: image={image}, and the File is of image "
                                       f"{source.image}")
        return source
    whole("image", image, 0)
    if lazy.may_change(source):
        lazy.release(source)  # it may have changed meanwhile; the engine knows how long a header is good
    if sidecars is not None:
        flag("sidecars", sidecars)
    if lazy.is_path(source):
        return lazy.opened(source, image, sidecars, vrt_sources)
    return open_file(source, image=image, sidecars=sidecars, vrt_sources=vrt_sources)


def level_of(file: File, level: int | None) -> int:
    """The level as an int, if the file has it; None is 0."""
    with about(file.name):
        return 0 if level is None else whole("level", level, 0, len(file.levels) - 1)


def _grid(file: File, level: int, bounds: Bounds, out_shape: Any, resampling: Any, boundless: bool,
          band: Any) -> Grid | None:
    """The Grid that `out_shape` means, or None."""
    method = resampling_of(resampling)
    if out_shape is None:
        return None
    if level:
        raise InvalidArgumentError(f"level={level}: out_shape chooses the level; leave one of them out")
    return grid_of(file.levels, bounds, out_sides(out_shape, len(_bands(file, band) or range(file.shape[0]))), method,
                   boundless)


def _beyond(file: File, pixels: lazy.Pixels, bounds: Bounds, grid: Grid | None, fill_value: Any) -> Any:
    """The pixels of a window that may reach beyond the level, or of an output of another size."""
    from .beyond import Padded, Resampled, fill_for, kept_nodata

    fill = fill_for(file, pixels.bands, pixels.dtype, fill_value, pixels.masked, pixels.unscale)
    if grid:
        return Resampled(pixels, grid, fill, kept_nodata(file, pixels.masked, pixels.unscale))
    return Padded(pixels, bounds, fill)


def _data(pixels: Any, window: Bounds | None, chunks: Any, max_pixels: int) -> Any:
    if chunks is None:
        row0, column0, row1, column1 = window or (0, 0, *pixels.shape[1:])
        _check_size("the window", len(pixels.bands) * (row1 - row0) * (column1 - column0), max_pixels)
        return pixels.read(slice(row0, row1), slice(column0, column1))
    from .dask import blocks

    data = blocks(pixels, chunks, window)
    _check_size("a chunk", math.prod(max(sizes, default=0) for sizes in data.chunks), max_pixels)
    return data


def _array(data: Any, coords: dict[str, Any], name: str | None, attrs: dict[str, Any],
           encoding: dict[str, Any]) -> xarray.DataArray:
    """What xarray.DataArray makes of these, in half the time: that one makes a deep copy of each coordinate, with all
    that is said of the coordinate system, and this takes the pixels out of a set of variables."""
    import xarray
    from xarray.indexes import PandasIndex

    pandas: Any = importlib.import_module("pandas")
    variables: dict[Any, Any] = {PIXELS: xarray.Variable(("band", "y", "x"), data, attrs, encoding)}
    indexes: dict[Any, Any] = {}
    for key, (dims, values, facts) in coords.items():
        if isinstance(dims, str):
            indexes[key] = PandasIndex(pandas.Index(values, name=key), dims)
            variables |= indexes[key].create_variables()
        else:
            variables[key] = xarray.Variable(dims, values, facts)
    array = xarray.Coordinates(variables, indexes)[PIXELS]
    del cast(Any, array).coords[PIXELS]
    array.name = name
    return array


def _check_size(what: str, count: int, max_pixels: int) -> None:
    if count > max_pixels:
        raise LimitExceededError(f"max_pixels: {what} has {count} samples, more than {max_pixels}; read less, or raise "
                                 "it")


def _bands(file: File, band: Any) -> tuple[int, ...] | None:
    if band is None:
        return None
    is_one = not isinstance(band, (list, tuple, range, np.ndarray))
    chosen: tuple[Any, ...] = (band,) if is_one else tuple(cast(Any, band))
    if not chosen:
        raise InvalidArgumentError("band: none is chosen")
    return tuple(whole("band", number, 1, file.shape[0]) for number in chosen)


def _window_of(file: File, level: int, bbox: Any, boundless: bool) -> Bounds:
    """(row0, col0, row1, col1) of the pixels that a bounding box touches, cut to the level unless `boundless`."""
    box, transform = _box(bbox), file.levels[level].transform
    if transform is None:
        raise InvalidArgumentError("bbox: the file has no transform; give window")
    if transform.b or transform.d or not transform.a or not transform.e:
        raise InvalidArgumentError("bbox: the file's grid is rotated, or its pixels have no size; give window")
    if boundless:
        return _touched(box, transform)
    height, width = file.levels[level].shape
    try:
        column, row, columns, rows = _cogpu.bbox_to_window(transform.to_gdal(), width, height, box)
    except NotFoundError:
        raise InvalidArgumentError(f"bbox: {tuple(bbox)} is outside the file's bounds {file.bounds}") from None
    return row, column, row + rows, column + columns


def _box(bbox: Any) -> Box:
    try:
        left, bottom, right, top = (float(number) for number in bbox)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"bbox: {bbox!r} are not four numbers (xmin, ymin, xmax, ymax)") from error
    if not (left < right and bottom < top) or not all(map(math.isfinite, (left, bottom, right, top))):
        raise InvalidArgumentError(f"bbox: {bbox!r} must be finite, with xmin < xmax and ymin < ymax")
    return left, bottom, right, top


def _touched(box: Box, transform: Transform) -> Bounds:
    """As cogpu_bbox_to_window, of a level without end."""
    left, bottom, right, top = box
    places = [((left - transform.c) / transform.a, (right - transform.c) / transform.a),
              ((top - transform.f) / transform.e, (bottom - transform.f) / transform.e)]
    (column0, column1), (row0, row1) = (
        (math.floor(max(min(pair), -MOST_BEYOND) + EDGE), math.ceil(min(max(pair), MOST_BEYOND) - EDGE))
        for pair in places)
    if column0 >= column1 or row0 >= row1:
        raise InvalidArgumentError(f"bbox: {box} is too small, or too far from the file")
    return row0, column0, row1, column1


def _stem(name: str) -> str | None:
    return os.path.splitext(os.path.basename(name))[0] if name else None
