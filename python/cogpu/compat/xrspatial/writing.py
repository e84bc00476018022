"""xarray-spatial's to_geotiff over cogpu.to_geotiff."""

import contextlib
import dataclasses
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import arrays, georef, write
from ...errors import about, InvalidArgumentError
from ...urls import source_name
from . import georeferencing
from .arguments import is_vrt
from .packing import packed_encoding
from .tags import items_of, nodata_stated, nodata_tag, tags_of
from .vrt_writing import write_tiles
from .write_checks import (DEFAULT_TILE, LEVELS, axes_of, check_number, check_options, check_photometric, check_vrt,
                           is_data_array, named, predictor_of)

if TYPE_CHECKING:
    import xarray as xr


def to_geotiff(data: Any, path: Any, *, crs: Any = None, nodata: "float | int | None" = None,
               compression: str = "zstd", compression_level: "int | None" = None, tiled: bool = True,
               tile_size: int = DEFAULT_TILE, predictor: "bool | int" = False, cog: bool = False,
               overview_levels: "list[int] | None" = None, overview_resampling: str = "mean",
               bigtiff: "bool | None" = None, gpu: "bool | None" = None,
               streaming_buffer_bytes: int = 256 * 1024 * 1024, max_z_error: float = 0.0,
               photometric: "str | int" = "auto", allow_internal_only_jpeg: bool = False,
               allow_experimental_codecs: bool = False, allow_unparseable_crs: bool = False,
               drop_rotation: bool = False, pack: bool = False, color_ramp: "str | bool | None" = None,
               color_ramp_range: "tuple[float, float] | None" = None) -> Any:
    """Writes a GeoTIFF or COG as xarray-spatial's to_geotiff does: see there, and cogpu.to_geotiff.

    Plain arrays and lists are (y, x) or (y, x, band). A rotated grid (attrs["rotated_affine"]) is written as it is,
    unless drop_rotation=True. A COG may go to a file-like object too, and its overviews are made while rows pass. A
    nodata value that the type cannot hold is stored in the tag, and no pixel is nodata then. A path that ends in .vrt
    becomes a VRT with a folder of tiles, STEM_tiles, beside it: of tile_size, or the chunks of a Dask array.
    """
    for name, value in (("color_ramp", color_ramp), ("color_ramp_range", color_ramp_range)):
        if value is not None:
            raise InvalidArgumentError(f"{name}={value!r}: it needs files beside the GeoTIFF, which are not written "
                                       "here")
    check_options(compression, compression_level, tiled, tile_size, cog)
    check_number("nodata", nodata)
    if is_vrt(path):
        check_vrt(path, tiled, tile_size, cog, overview_levels)
    if pack and not is_data_array(data):
        raise InvalidArgumentError("pack=True requires a DataArray that was read with unpack=True")
    data, codec = named(data), compression.lower()
    axes = axes_of(data)
    check_photometric(photometric, data.size // (data.sizes[axes[0]] * data.sizes[axes[1]]))
    check_georeferencing(data, axes, crs)
    if is_vrt(path):
        stated = nodata_stated(data.attrs) if nodata is None else nodata
        words = {"crs": crs, "nodata": nodata, "compression": compression, "compression_level": compression_level,
                 "tile_size": tile_size, "predictor": predictor, "bigtiff": bigtiff, "gpu": gpu,
                 "streaming_buffer_bytes": streaming_buffer_bytes, "max_z_error": max_z_error,
                 "photometric": photometric, "drop_rotation": drop_rotation, "pack": pack}
        return write_tiles(data, axes, os.fspath(path), tile_size, stated,
                           lambda part, tile: to_geotiff(part, tile, **words))
    is_plain = photometric == "auto" and "colormap" not in data.attrs
    options = {"crs": crs, "transform": georeferencing.transform_of(data, axes, drop_rotation), "compression": codec,
               "max_z_error": max_z_error, "tiled": tiled, "cog": cog, "bigtiff": bigtiff, "gpu": gpu,
               "compression_level": compression_level if codec in LEVELS else None,
               "tile_size": tile_size if tiled else None, "predictor": predictor,
               "overview_levels": overview_levels if cog else None,
               "overview_resampling": overview_resampling if cog else None,
               "photometric": "minisblack" if is_plain else photometric}
    with about(source_name(path)):
        planned = plan(data, axes, nodata_stated(data.attrs) if nodata is None else nodata, pack, options)
        if hasattr(path, "write") and hasattr(path, "seek") and hasattr(path, "truncate"):
            path.seek(0)  # xarray-spatial replaces what a buffer holds
            path.truncate()
        written = write.carry_out(planned, path, streaming_buffer_bytes)
    remove_stale_sidecar(path)
    return written


def check_georeferencing(data: "xr.DataArray", axes: tuple[str, str], crs: Any) -> None:
    if crs is None:
        georeferencing.check_crs(data.attrs)
    georeferencing.check_known(data.attrs.get("crs") if crs is None else crs)
    if not data.attrs.get("_xrspatial_no_georef"):
        georeferencing.check_coordinates(data, axes)


def plan(data: "xr.DataArray", axes: tuple[str, str], nodata: Any, pack: bool, options: dict[str, Any]) -> write.Plan:
    """The plan of the writer, with what the attributes say besides; nodata that samples cannot be is an extra tag."""
    attrs, bare = data.attrs, without_attrs(data, axes, pack, nodata)
    dtype = np.dtype(bare.encoding["dtype"]) if pack else arrays.type_of(bare.variable)
    fits = nodata is None or georef.fits(nodata, dtype)
    options = {**options, "nodata": nodata if fits else None, "pack": pack,
               "predictor": predictor_of(options["predictor"], options["compression"], dtype)}
    planned = write.plan(bare, **options)
    profile = {**planned.profile, "nan_is_nodata": planned.dtype.kind == "f" and bool(attrs.get("masked_nodata", True)),
               "metadata": items_of(attrs, pack, planned.shape[0]), "description": attrs.get("image_description"),
               "tags": [*tags_of(attrs), *([] if fits else [nodata_tag(nodata)])]}
    return dataclasses.replace(planned, profile={name: value for name, value in profile.items() if value is not None})


def without_attrs(data: "xr.DataArray", axes: tuple[str, str], pack: bool, nodata: Any) -> "xr.DataArray":
    """The pixels, the coordinate system and the palette; what else the attributes say is given to the writer by name.
    The caller's DataArray is not touched."""
    bare = data.copy(deep=False)
    bare = bare.drop_vars([axis for axis in axes if axis in bare.coords])
    bare = bare.rename({old: new for old, new in zip(axes, ("y", "x")) if old != new})
    bare.attrs = {name: data.attrs[name] for name in ("crs", "crs_wkt", "raster_type", "AREA_OR_POINT", "colormap")
                  if data.attrs.get(name) is not None}
    bare.encoding = packed_encoding(data, nodata) if pack else {
        name: value for name, value in data.encoding.items() if name == "grid_mapping"}
    return bare


def remove_stale_sidecar(path: Any) -> None:
    """A PAM file describes the raster that was replaced; GDAL removes it as well."""
    if isinstance(path, (str, os.PathLike)) and "://" not in os.fspath(path):
        with contextlib.suppress(OSError):
            os.remove(f"{os.fspath(path)}.aux.xml")
