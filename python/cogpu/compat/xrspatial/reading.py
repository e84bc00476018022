"""xarray-spatial's open_geotiff over cogpu.open_geotiff."""

import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import georef, lazy
from ...errors import InvalidArgumentError, LimitExceededError
from ...file import File
from ...file import open as open_file
from ...read import open_geotiff as read_geotiff
from . import arguments
from .attributes import attrs_of, check_header
from .contract import NOT_GIVEN
from .errors import PixelSafetyLimitError, UnsafeURLError
from .scaling import scaling_of
from .vrt_reading import open_vrt

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import DTypeLike


def open_geotiff(source: Any, *, dtype: "DTypeLike | None" = None, window: "tuple[int, int, int, int] | None" = None,
                 bbox: "tuple[float, float, float, float] | None" = None, overview_level: "int | None" = None,
                 band: "int | None" = None, default_name: "str | None" = None, name: "str | None" = NOT_GIVEN,
                 chunks: "int | tuple[int, int] | None" = None, gpu: bool = False, max_pixels: "int | None" = None,
                 max_cloud_bytes: "int | None" = NOT_GIVEN, on_gpu_failure: str = NOT_GIVEN,
                 missing_sources: str = NOT_GIVEN, allow_rotated: bool = False, allow_unparseable_crs: bool = False,
                 allow_invalid_nodata: bool = False, stable_only: bool = False,
                 allow_experimental_codecs: bool = False, allow_internal_only_jpeg: bool = False,
                 band_nodata: "str | None" = None, masked: bool = False, mask_nodata: bool = NOT_GIVEN,
                 unpack: bool = False, mask_and_scale: bool = NOT_GIVEN, parse_coordinates: bool = True,
                 lock: object = None, cache: bool = True) -> "xr.DataArray":
    """Reads a GeoTIFF or COG as xarray-spatial's open_geotiff does: see there, and cogpu.open_geotiff.

    Returns a DataArray of (y, x), or of (y, x, band) where the file has bands, with NumPy's arrays, Dask's with
    `chunks`, CuPy's with `gpu`. `name`, `mask_nodata` and `mask_and_scale` are deprecated aliases of `default_name`,
    `masked` and `unpack`. SCALE and OFFSET count with or without a role, of bands or of the image.

    A path that ends in .vrt is read by xarray-spatial's rules for VRT: sources are painted in order, and what no source
    covers is NaN, or 0 of integers. cogpu.open_geotiff reads it by GDAL's.
    """
    default_name = arguments.renamed("default_name", default_name, None, "name", name)
    masked = arguments.renamed("masked", masked, False, "mask_nodata", mask_nodata)
    unpack = arguments.renamed("unpack", unpack, False, "mask_and_scale", mask_and_scale)
    arguments.warn_of_no_effect(lock, cache)
    if arguments.is_vrt(source):
        return open_vrt(os.fspath(source), dtype=dtype, window=window, bbox=bbox, overview_level=overview_level,
                        band=band, default_name=default_name, chunks=chunks, gpu=gpu, max_pixels=max_pixels,
                        on_gpu_failure=on_gpu_failure, missing_sources=missing_sources, allow_rotated=allow_rotated,
                        allow_unparseable_crs=allow_unparseable_crs, allow_invalid_nodata=allow_invalid_nodata,
                        stable_only=stable_only, allow_experimental_codecs=allow_experimental_codecs,
                        band_nodata=band_nodata, masked=masked, unpack=unpack, parse_coordinates=parse_coordinates)
    arguments.refuse_remote(source, stable_only)
    arguments.check_combinations(source, gpu=gpu, chunks=chunks, parse_coordinates=parse_coordinates,
                                 on_gpu_failure=on_gpu_failure, missing_sources=missing_sources,
                                 band_nodata=band_nodata, max_cloud_bytes=max_cloud_bytes)
    arguments.check_cloud_size(source, max_cloud_bytes)
    file = opened(source)
    arguments.check_overview_level(overview_level, file)
    arguments.check_band(band, file)
    arguments.check_bbox(bbox, window, file)
    arguments.check_window(window, file.levels[overview_level or 0].shape)
    check_header(file, allow_rotated, allow_invalid_nodata)
    scale, offset = scaling_of(file, band) if unpack else (1.0, 0.0)
    # By nodata alone: masks and alpha bands mean nothing to xarray-spatial.
    is_masked, is_scaled = bool(masked or unpack) and file.nodata is not None, (scale, offset) != (1, 0)
    stored, result = types_of(file, dtype, is_masked or is_scaled)
    where = {"window": window, "bbox": bbox, "level": overview_level, "band": None if band is None else band + 1,
             "max_pixels": max_pixels}
    options = {**where, "dtype": stored, "chunks": chunks, "gpu": gpu, "masked": is_masked,
               "default_name": default_name,
               "on_gpu_failure": None if on_gpu_failure is NOT_GIVEN else on_gpu_failure}
    origin = source if lazy.is_path(source) else file
    array = read(origin, options)
    transform = georef.of_array(array)["transform"] if file.has_transform else None
    attrs = {**attrs_of(file, transform or (0.0, 1.0, 0.0, 0.0, 0.0, 1.0) if file.has_transform else None),
             **nodata_attrs(file, is_masked)}
    if "nodata" in attrs and chunks is None and not gpu:
        attrs["nodata_pixels_present"] = has_nodata(file, array, is_masked, lambda: read(origin, where))
    if dtype is not None and "nodata" in attrs:
        attrs["nodata_dtype_cast"] = str(result)
    if unpack and (is_masked or is_scaled):
        attrs["mask_and_scale_dtype"] = str(file.dtype)
    if is_scaled:
        attrs |= {"scale_factor": scale, "add_offset": offset}
        array = array * scale + offset
    return reshaped(array.astype(result, copy=False), attrs, parse_coordinates)


def read_vrt(source: Any, *, missing_sources: str = "raise", **options: Any) -> "xr.DataArray":
    """open_geotiff of a VRT, which older versions of xarray-spatial have by this name."""
    return open_geotiff(os.fspath(source), missing_sources=missing_sources, **options)


def opened(source: Any) -> File:
    """The File of a source; a broken .ovr file beside it is warned of, as in xarray-spatial."""
    try:
        file = lazy.opened(source) if lazy.is_path(source) else open_file(source)
    except InvalidArgumentError as error:
        if "is not public" in str(error):
            raise UnsafeURLError(str(error)) from error
        raise
    if arguments.is_sidecar_broken(file):
        warnings.warn(f"Ignoring unreadable sidecar of {file.name}: {file.warning}", RuntimeWarning, stacklevel=3)
    return file


def types_of(file: File, dtype: "DTypeLike | None", is_float: bool) -> tuple[np.dtype, np.dtype]:
    """The type to read, and the type of the result. Integers that get NaN or a scale become float64, and half floats
    float32, as in xarray-spatial."""
    natural = np.dtype("float64") if is_float and file.dtype.kind in "iu" else file.dtype
    natural = np.dtype("float32") if natural == "float16" else natural
    result = natural if dtype is None else np.dtype(dtype)
    if natural.kind == "f" and result.kind in "iu":
        raise InvalidArgumentError(f"dtype={result}: the pixels are {natural}, and float to int would lose digits; use "
                                   "astype")
    return natural, result


def read(origin: Any, options: dict[str, Any]) -> "xr.DataArray":
    try:
        return read_geotiff(origin, **{name: value for name, value in options.items() if value is not None})
    except LimitExceededError as error:
        raise PixelSafetyLimitError(f"the pixels exceed the safety limit: {error}") from error


def nodata_attrs(file: File, is_masked: bool) -> dict[str, Any]:
    stated = file.info["nodata"]
    if stated is None:
        return {}
    return {"nodata": int(stated) if float(stated).is_integer() else stated, "masked_nodata": is_masked}


def has_nodata(file: File, array: "xr.DataArray", is_masked: bool, read_again: Any) -> bool:
    """Whether a pixel of an array in memory is nodata. Of floats that were masked, NaN may be the file's own: then the
    pixels are read again as they are stored."""
    if file.nodata is None:
        return False
    pixels = array.values
    if is_masked:
        found = bool(np.isnan(pixels).any())
        if not found or file.dtype.kind in "iu":
            return found
        pixels = read_again().values
    if np.isnan(file.nodata):
        return bool(np.isnan(pixels).any())
    return bool((pixels == pixels.dtype.type(file.nodata)).any())


def reshaped(array: "xr.DataArray", attrs: dict[str, Any], parse_coordinates: bool) -> "xr.DataArray":
    """(band, y, x) with rioxarray's attributes as (y, x) or (y, x, band) with these."""
    array = array.reset_coords("spatial_ref", drop=True) if "spatial_ref" in array.coords else array
    if "band" in array.dims and array.sizes["band"] == 1:
        array = array.isel(band=0, drop=True)
    elif "band" in array.dims:
        array = array.transpose("y", "x", "band").assign_coords(band=np.arange(array.sizes["band"]))
    if not parse_coordinates:
        array = array.drop_vars(["y", "x"], errors="ignore")
    elif "_xrspatial_no_georef" in attrs:
        array = array.assign_coords({axis: pixel_numbers(array, axis) for axis in ("y", "x")})
    array.attrs, array.encoding = attrs, {}
    return array


def pixel_numbers(array: "xr.DataArray", axis: str) -> np.ndarray:
    """Rows or columns of the file; of a rotated grid, which comes without coordinates, of the array."""
    return np.floor(array[axis].values).astype("int64") if axis in array.coords else np.arange(array.sizes[axis])
