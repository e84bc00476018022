"""Parameters of xarray-spatial's open_geotiff: aliases, combinations that it refuses, and values out of range, each
with its class of error."""

import os
import warnings
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, NotTiffError
from ...file import File
from ...lazy import is_path
from ...urls import shown
from .contract import NOT_GIVEN
from .errors import (BandIndexError, CloudSizeLimitError, GeoTIFFFallbackWarning, RemoteStableSourcesOnlyError)

HTTP = ("http://", "https://")


def renamed(new: str, value: Any, unset: Any, old: str, old_value: Any) -> Any:
    """The value of a parameter that has a deprecated alias."""
    if old_value is NOT_GIVEN:
        return value
    if value is not unset:
        raise TypeError(f"give either {new!r} or its deprecated alias {old!r}, not both")
    warnings.warn(f"{old}= is deprecated: use {new}=", DeprecationWarning, stacklevel=3)
    return old_value


def warn_of_no_effect(lock: object, cache: object) -> None:
    if lock is not None or cache is not True:
        warnings.warn("lock and cache have no effect: files are read without a lock, and blocks are cached by cogpu",
                      GeoTIFFFallbackWarning, stacklevel=3)


def check_combinations(source: Any, *, gpu: Any, chunks: Any, parse_coordinates: bool, on_gpu_failure: Any,
                       missing_sources: Any, band_nodata: Any, max_cloud_bytes: Any) -> None:
    if not isinstance(gpu, (bool, np.bool_)):
        raise TypeError(f"gpu must be a bool, not {gpu!r}")
    for name, is_given in (("missing_sources", missing_sources is not NOT_GIVEN),
                           ("band_nodata", band_nodata is not None)):
        if is_given:
            raise InvalidArgumentError(f"{name} only applies to VRT (.vrt): leave it out")
    if on_gpu_failure is not NOT_GIVEN and not gpu:
        raise InvalidArgumentError("on_gpu_failure only applies with gpu=True")
    if not is_path(source) and not isinstance(source, File) and (chunks is not None or gpu):
        what = "chunks=... (dask)" if chunks is not None else "gpu=True"
        raise InvalidArgumentError(f"{what} is not supported for file-like objects, which threads and processes cannot "
                                   "share: give a path or a URL")
    if max_cloud_bytes is not NOT_GIVEN and (chunks is not None or gpu):
        raise InvalidArgumentError("max_cloud_bytes only applies to reads that are neither chunked nor on a GPU: leave "
                                   "it out")
    if not parse_coordinates and gpu:
        raise InvalidArgumentError("parse_coordinates=False is not supported with gpu=True")


def is_vrt(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).lower().endswith(".vrt")


def refuse_remote(path: Any, stable_only: bool) -> None:
    if stable_only and isinstance(path, (str, os.PathLike)) and "://" in os.fspath(path):
        raise RemoteStableSourcesOnlyError(f"{shown(path)}: URLs are refused{only_stable(True)}")


def only_stable(stable_only: bool) -> str:
    return (", and stable_only=True takes local files alone (release_gate_geotiff.rst of xarray-spatial)" if stable_only
            else "")


def check_cloud_size(source: Any, most: Any) -> None:
    """The size of an object in a store, where the caller sets a limit. Without one there is none: blocks are read one
    by one, not the whole object."""
    is_object = isinstance(source, str) and "://" in source and not source.startswith(HTTP)
    if most is NOT_GIVEN or most is None or not is_object:
        return
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        return
    system, path = url_to_fs(source)
    size = system.size(path)
    if size is not None and size > most:
        raise CloudSizeLimitError(f"{shown(source)}: its {size} bytes exceed max_cloud_bytes={most}")


def check_overview_level(level: Any, file: File) -> None:
    if level is None:
        return
    if isinstance(level, (bool, np.bool_)) or not isinstance(level, (int, np.integer)):
        raise TypeError(f"overview_level must be an int from 0 on, not {type(level).__name__} {level!r}")
    if not 0 <= level < len(file.levels):
        if is_sidecar_broken(file):
            cause = NotTiffError(f"external sidecar did not parse: {file.warning}")
            raise InvalidArgumentError(f"{file.name}: there is no overview_level={level}: NotTiffError: "
                                       f"{cause}") from cause
        raise InvalidArgumentError(f"overview_level={level} is out of range: {file.name} has {len(file.levels)} "
                                   "pyramid IFDs")


def is_sidecar_broken(file: File) -> bool:
    return ".ovr was ignored" in (file.warning or "")


def check_band(band: Any, file: File) -> None:
    if band is None:
        return
    if isinstance(band, (bool, np.bool_)):
        raise InvalidArgumentError(f"band must be a non-negative int, not the bool {band!r}")
    if not isinstance(band, (int, np.integer)):
        raise TypeError(f"band must be a non-negative int, not {type(band).__name__} {band!r}")
    if not 0 <= band < file.shape[0]:
        raise BandIndexError(f"band={band} out of range: {file.name} has {file.shape[0]} bands, counted from 0")


def check_window(window: Any, shape: tuple[int, int]) -> None:
    """(row0, col0, row1, col1) inside a level of that shape."""
    if window is None or hasattr(window, "col_off"):
        return
    try:
        row0, column0, row1, column1 = window
        is_inside = 0 <= row0 < row1 <= shape[0] and 0 <= column0 < column1 <= shape[1]
    except (TypeError, ValueError):
        return  # the reader says what it expects
    if not is_inside:
        raise InvalidArgumentError(f"window={tuple(window)} is outside the source extent of {shape[0]} rows and "
                                   f"{shape[1]} columns, or has a non-positive size")


def check_bbox(bbox: Any, window: Any, file: File) -> None:
    if bbox is None:
        return
    if window is not None:
        raise InvalidArgumentError("window and bbox are mutually exclusive: give one of them")
    try:
        left, bottom, right, top = (float(side) for side in bbox)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"bbox={bbox!r} is not a 4-tuple of numbers (xmin, ymin, xmax, ymax)") from None
    if not np.isfinite((left, bottom, right, top)).all():
        raise InvalidArgumentError(f"bbox={bbox!r} must have finite coordinates")
    if not (left < right and bottom < top):
        raise InvalidArgumentError(f"bbox={bbox!r} has a non-positive size: xmin < xmax and ymin < ymax are needed")
    bounds = file.bounds
    if bounds is None:
        raise InvalidArgumentError(f"bbox: {file.name} has no georeferencing; give window=")
    if file.transform is not None and (file.transform.b or file.transform.d):
        raise InvalidArgumentError(f"bbox: {file.name} has a rotated affine transform; give window=")
    if right <= bounds[0] or left >= bounds[2] or top <= bounds[1] or bottom >= bounds[3]:
        raise InvalidArgumentError(f"bbox={bbox!r} does not overlap the file's bounds {tuple(bounds)}")
