"""Keywords of GDAL, rasterio, rioxarray and xarray-spatial in calls of public functions.

A keyword that means exactly the same as one of ours is an alias. For others TypeError names the keyword to use. Type
checkers see our keywords only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Functions by qualified name. An alias is the name of our keyword; anything else is the advice of the TypeError.
_THREADS = "use `cogpu.configure(threads=...)`"
_LEVEL = "use `compression_level`"
_TILES = "use `tile_size=(height, width)`"
_FROM_DATA = "it is taken from the data"
_NO_LOCK = "reads need no lock; leave it out"
_XRSPATIAL = "`cogpu.compat.xrspatial.open_geotiff` has it"
_BANDS = "use `cogpu.Source(path, bands=...)`, or choose bands when you read"
_SHAPE = "use `shape=(height, width)`"
_GRID: dict[str, str] = {
    "dst_crs": "crs", "res": "resolution", "geobox": "like", "method": "composite", "dst_transform": "transform",
    "target_aligned_pixels": "align", "dst_nodata": "nodata", "tolerance": "max_error",
    "src_nodata": "use `cogpu.Source(path, nodata=...)`",
    "src_crs": "a source has a CRS of its own; leave it out",
    "dst_width": _SHAPE, "dst_height": _SHAPE, "width": _SHAPE, "height": _SHAPE,
    "use_overviews": "overviews are used; give `full_resolution=True` for none",
}
TABLE: dict[str, dict[str, str]] = {
    "open": {
        "mode": "files are opened for reading; write with `cogpu.to_geotiff`",
        "driver": "all files are TIFF; leave it out",
        "overview_level": "use `File.read(level=...)`; level 1 is the first overview",
        "level": "use `File.read(level=...)`",
        "num_threads": _THREADS, "NUM_THREADS": _THREADS,
        "sharing": "threads share a File; leave it out",
    },
    "open_geotiff": {
        "overview_level": "level",
        "unpack": "unscale", "mask_and_scale": "unscale",
        "mask_nodata": "use `masked=True`",
        "bands": "band",
        "indexes": "use `band`",
        "scaled": "use `unscale=True`",
        "out_dtype": "use `dtype`",
        "name": "use `default_name`",
        "device": "use `gpu=True`",
        "lock": _NO_LOCK,
        "cache": "use `cogpu.configure(cache_bytes=...)`",
        "num_threads": _THREADS, "threads": _THREADS,
        "group": "use `image`", "subdataset": "use `image`",
        "allow_rotated": "rotated grids are read; leave it out",
        "band_nodata": _XRSPATIAL, "max_cloud_bytes": _XRSPATIAL, "missing_sources": _XRSPATIAL,
        "stable_only": _XRSPATIAL,
        **_GRID, "bounds": "bbox",
    },
    "open_mosaic": {
        **_GRID, "bounds": "bbox",
        "out_shape": _SHAPE,
        "indexes": _BANDS, "band": _BANDS, "bands": _BANDS,
        "chunks": "use `cogpu.open_geotiff`", "gpu": "use `cogpu.open_geotiff`, or `File.read(device=...)`",
        "num_threads": _THREADS, "threads": _THREADS,
    },
    "write_vrt": {"res": "resolution", "bounds": "bbox", "method": "composite", "target_aligned_pixels": "align",
                  "crs": "a VRT does not reproject; leave it out", "relativeToVRT": "leave it out",
                  "relative": "paths below the folder of the VRT are relative; leave it out"},
    "Source": {"src_nodata": "nodata", "band": "bands", "indexes": "use `bands`", "url": "path", "filename": "path"},
    "to_geotiff": {
        "compress": "compression", "codec": "compression",
        "blocksize": "tile_size",
        "overview_factors": "overview_levels",
        "max_error": "use `max_z_error`",
        "blockxsize": _TILES, "blockysize": _TILES, "block_width": _TILES, "block_height": _TILES,
        "zlevel": _LEVEL, "zstd_level": _LEVEL, "lzma_preset": _LEVEL, "level": _LEVEL,
        "quality": _LEVEL, "jpeg_quality": _LEVEL, "webp_level": _LEVEL, "webp_quality": _LEVEL,
        "num_threads": _THREADS, "threads": _THREADS,
        "driver": "use `cog=True` for a COG; leave it out for a GeoTIFF",
        "overviews": "use `overview_levels`",
        "resampling": "use `overview_resampling`",
        "dtype": "convert the data first: `data.astype(...)`",
        "count": _FROM_DATA, "width": _FROM_DATA, "height": _FROM_DATA,
        "tags": "use `data.attrs`",
        "device": "use `gpu=True`",
        "lock": "writing needs no lock; leave it out",
        "windowed": "Dask arrays are written by rows; leave it out",
    },
    "File.read": {
        "band": "bands",
        "indexes": "use `bands`",
        "overview_level": "use `level`; level 1 is the first overview",
        "scaled": "use `unscale=True`", "unpack": "use `masked=True, unscale=True`",
        "mask_and_scale": "use `masked=True, unscale=True`",
        "out_dtype": "use `dtype`",
        "gpu": "use `device=\"cuda\"`",
        "num_threads": "use `threads`",
    },
    "File.read_mask": {"band": "bands", "indexes": "use `bands`", "gpu": "use `device=\"cuda\"`"},
    "Engine.open_dataset": {"overview_level": "level", "lock": _NO_LOCK, **_GRID, "bounds": "bbox"},
    "configure": {"num_threads": "use `threads`", "gdal_cachemax": "use `cache_bytes`"},
}


def accept_other_names(function: Function) -> Function:
    """Decorates a public function: aliases are translated, other unknown keywords are a TypeError with advice."""
    code = function.__code__
    known = frozenset(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
    name = function.__qualname__

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if not keywords.keys() <= known:
            keywords = translated(name, known, keywords)
        return function(*arguments, **keywords)

    return cast(Function, call)


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The keyword-only parameters of a decorated function, and their defaults."""
    return dict(getattr(function, "__wrapped__", function).__kwdefaults__ or {})


def translated(function: str, known: Iterable[str], keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords with aliases replaced by our names. TypeError for those that the function does not have."""
    known, result = frozenset(known), dict[str, Any]()
    for name, value in keywords.items():
        own = name if name in known else TABLE.get(function, {}).get(name)
        if own is None or own not in known:
            raise TypeError(f"{function}() has no keyword `{name}`" + _advice(name, own, known))
        if own in result or own != name and own in keywords:
            raise TypeError(f"{function}(): `{name}` is another name of `{own}`; give one of them")
        result[own] = value
    return result


def _advice(name: str, advice: str | None, known: Iterable[str]) -> str:
    if advice:
        return f"; {advice}"
    import difflib

    similar = difflib.get_close_matches(name, known)
    return f"; similar: {', '.join(f'`{one}`' for one in similar)}" if similar else ""
