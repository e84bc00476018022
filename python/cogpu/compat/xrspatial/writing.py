"""xarray-spatial's to_geotiff over cogpu.to_geotiff."""

import contextlib
import dataclasses
import fractions
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import arrays, georef, write
from ...errors import ArgumentError
from ...profile import PHOTOMETRIC, PHOTOMETRIC_NUMBERS
from . import georeferencing
from .arguments import refuse_vrt
from .attributes import IMAGE_DESCRIPTION, NOT_EXTRA, RESOLUTION_UNIT, RESOLUTION_UNITS, TEXT, UNDEFINED, X_RESOLUTION, Y_RESOLUTION
from .errors import ConflictingNodataError
from .metadata_xml import items_of_xml
from .packing import packed_encoding

if TYPE_CHECKING:
    import xarray as xr

LEVELS = {"deflate": (1, 9), "zstd": (1, 22)}
NO_LEVELS = ("lzw", "packbits", "none", "jpeg", "lerc")
NO_PREDICTOR = ("none", "packbits")
ROLES = {"SCALE": "scale", "OFFSET": "offset", "DESCRIPTION": "description", "UNITTYPE": "unittype"}
DEFAULT_TILE = 256
RATIONAL, SHORT = 5, 3
TEMPORAL = ("time", "date", "datetime", "t")


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
    nodata value that the type cannot hold is stored in the tag, and no pixel is nodata then.
    """
    refuse_vrt(path)
    for name, value in (("color_ramp", color_ramp), ("color_ramp_range", color_ramp_range)):
        if value is not None:
            raise ArgumentError(f"{name}={value!r}: it needs files beside the GeoTIFF, which are not written here")
    check_options(compression, compression_level, tiled, tile_size, cog)
    check_number("nodata", nodata)
    if pack and not isinstance_of_xarray(data):
        raise ArgumentError("pack=True requires a DataArray that was read with unpack=True")
    data = named(data)
    axes = axes_of(data)
    attrs = data.attrs
    if crs is None:
        georeferencing.check_crs(attrs)
    georeferencing.check_known(attrs.get("crs") if crs is None else crs)
    if not attrs.get("_xrspatial_no_georef"):
        georeferencing.check_coordinates(data, axes)
    transform = georeferencing.transform_of(data, axes, drop_rotation)
    stated = nodata_stated(attrs) if nodata is None else nodata
    bare = without_attrs(data, axes, pack, stated)
    dtype = np.dtype(bare.encoding["dtype"]) if pack else arrays.type_of(bare.variable)
    fits = stated is None or georef.fits(stated, dtype)
    codec = compression.lower()
    options = {"crs": crs, "nodata": stated if fits else None, "transform": transform, "compression": codec,
               "max_z_error": max_z_error, "tiled": tiled, "cog": cog, "bigtiff": bigtiff, "gpu": gpu, "pack": pack,
               "compression_level": compression_level if codec in LEVELS else None,
               "tile_size": tile_size if tiled else None, "predictor": predictor_of(predictor, codec, dtype),
               "overview_levels": overview_levels if cog else None,
               "overview_resampling": overview_resampling if cog else None,
               "photometric": "minisblack" if photometric == "auto" and "colormap" not in attrs else photometric}
    check_photometric(photometric, data.size // (data.sizes[axes[0]] * data.sizes[axes[1]]))
    planned = write.plan(bare, **options)
    profile = {**planned.profile, "nan_is_nodata": planned.dtype.kind == "f" and bool(attrs.get("masked_nodata", True)),
               "items": items_of(attrs, pack, planned.shape[0]), "description": attrs.get("image_description"),
               "tags": [*tags_of(attrs), *([] if fits else [nodata_tag(stated)])]}
    profile = {name: value for name, value in profile.items() if value is not None}
    if hasattr(path, "write") and hasattr(path, "seek") and hasattr(path, "truncate"):
        path.seek(0)  # xarray-spatial replaces what a buffer holds
        path.truncate()
    written = write.carry_out(dataclasses.replace(planned, profile=profile), path, streaming_buffer_bytes)
    remove_stale_sidecar(path)
    return written


def remove_stale_sidecar(path: Any) -> None:
    """A PAM file describes the raster that was replaced; GDAL removes it as well."""
    if isinstance(path, (str, os.PathLike)) and "://" not in os.fspath(path):
        with contextlib.suppress(OSError):
            os.remove(f"{os.fspath(path)}.aux.xml")


# ---- checks ------------------------------------------------------------------------------------------------------------


def isinstance_of_xarray(data: Any) -> bool:
    import xarray as xr

    return isinstance(data, xr.DataArray)


def check_options(compression: Any, level: Any, tiled: bool, tile_size: Any, cog: bool) -> None:
    if not isinstance(compression, str):
        raise TypeError(f"compression must be a str, not {type(compression).__name__}; 'none' for no compression")
    codec = compression.lower()
    if codec not in (*LEVELS, *NO_LEVELS, "webp", "lzma", "lerc_deflate", "lerc_zstd"):
        raise ArgumentError(f"Unknown compression {compression!r}: there are {', '.join((*LEVELS, *NO_LEVELS))}")
    if level is not None and (isinstance(level, bool) or not isinstance(level, (int, np.integer))):
        raise TypeError(f"compression_level must be an int, not {level!r}")
    if level is not None and codec in LEVELS and not LEVELS[codec][0] <= level <= LEVELS[codec][1]:
        raise ArgumentError(f"compression_level={level} is out of range for {codec} (valid: {LEVELS[codec][0]}-"
                            f"{LEVELS[codec][1]})")
    if tiled or cog:
        check_tile_size(tile_size)
    elif tile_size != DEFAULT_TILE:
        warnings.warn(f"tile_size={tile_size} is ignored when tiled=False", UserWarning, stacklevel=3)
    if cog and not tiled:
        raise ArgumentError("cog=True needs tiled=True: a COG has tiles; give cog=False for strips")


def check_tile_size(tile_size: Any) -> None:
    if isinstance(tile_size, bool) or not isinstance(tile_size, (int, np.integer)) or tile_size <= 0:
        raise ArgumentError(f"tile_size must be a positive int, not {tile_size!r}")
    if tile_size % 16:
        below = tile_size // 16 * 16
        near = f"{below} or {below + 16}" if below else "16"
        raise ArgumentError(f"tile_size={tile_size} must be a multiple of 16, such as {near}")


def check_photometric(photometric: Any, bands: int) -> None:
    kind = PHOTOMETRIC_NUMBERS.get(photometric, photometric) if isinstance(photometric, int) else photometric
    needed = {"rgb": 3, "rgba": 4}.get(kind.lower(), 1) if isinstance(kind, str) else 1
    if bands < needed:
        raise ArgumentError(f"photometric={photometric!r} needs at least {needed} bands, and data has {bands}")
    if isinstance(kind, str) and kind.lower() not in ("auto", *PHOTOMETRIC):
        raise ArgumentError(f"photometric={photometric!r} is not a valid name: give auto, {', '.join(PHOTOMETRIC)}")


def check_number(name: str, value: Any) -> None:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be numeric, not the bool {value!r}")
    if value is None:
        return
    try:
        float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be numeric, not {value!r}") from None


def predictor_of(predictor: Any, codec: str, dtype: np.dtype) -> Any:
    """The predictor; codecs that compress nothing, or bytes alone, take none, and say nothing of it."""
    if codec in NO_PREDICTOR:
        return False
    if predictor == 3 and predictor is not True and dtype.kind != "f":
        raise ArgumentError(f"predictor=3 is for floats, not for {dtype}")
    if predictor not in (False, 0, 1) and codec in ("jpeg", "lerc"):
        raise ArgumentError(f"predictor={predictor!r} does not go with {codec}, which has no PREDICTOR tag")
    return predictor


def named(data: Any) -> "xr.DataArray":
    """A DataArray; a plain array's dimensions are (y, x) or (y, x, band)."""
    import xarray as xr

    if isinstance(data, xr.Dataset):
        raise TypeError("data is an xarray.Dataset: give one variable, as data['name']")
    if not isinstance(data, xr.DataArray):
        is_array = hasattr(data, "shape") or hasattr(data, "__dlpack_device__")
        array = arrays.sliceable(data if is_array else np.asarray(data))
        data = xr.DataArray(array, dims=("y", "x", "band")[:len(array.shape)] if len(array.shape) < 4 else None)
    if data.ndim not in (2, 3):
        raise ArgumentError(f"Expected 2D or 3D array, got {data.ndim}D: to_geotiff takes (y, x), (y, x, band) or "
                            "(band, y, x)")
    return data


def axes_of(data: "xr.DataArray") -> tuple[str, str]:
    """The names of the dimensions of rows and columns. Two dimensions may have any names."""
    dims = tuple(str(dim) for dim in data.dims)
    known = {name for names in arrays.AXES.values() for name in names}
    unknown = [dim for dim in dims if dim not in known]
    if unknown and len(dims) == 3:
        raise ArgumentError(dims_message(dims, unknown[0]))
    y, x = dims if unknown else (dims[axis] for axis in arrays.axes_by_name(dims)[1:])
    if not data.sizes[y] * data.sizes[x]:
        raise ArgumentError(f"to_geotiff: data is empty: height={data.sizes[y]}, width={data.sizes[x]}")
    if not data.size:
        raise ArgumentError(f"to_geotiff: data has no bands: 0 bands in shape {data.shape}")
    return y, x


def dims_message(dims: tuple[str, ...], unknown: str) -> str:
    place = "leading" if dims[0] == unknown else "trailing"
    kind = "temporal" if unknown.lower() in TEMPORAL else "non-band"
    what = f"{kind} {place} dim" if kind == "temporal" or place == "trailing" else "ambiguous dims"
    return (f"to_geotiff: {dims} has {what} {unknown!r}: it takes (y, x), (band, y, x) or (y, x, band). Rename or transpose "
            f"it, write one part at a time, as data.isel({unknown}=0), or give a raw ndarray (y, x, band)")


def nodata_stated(attrs: dict[Any, Any]) -> Any:
    """nodata, or nodatavals (one for all bands, or a sequence), or _FillValue; an error where they contradict each other.
    NaN alone in nodatavals is how rioxarray says that there is none."""
    bands = attrs.get("nodatavals")
    bands = () if bands is None else tuple(bands) if np.iterable(bands) and not isinstance(bands, str) else (bands,)
    for name, value in (("nodata", attrs.get("nodata")), *(("nodatavals", band) for band in bands),
                        ("_FillValue", attrs.get("_FillValue"))):
        check_number(f"attrs[{name!r}]: {name}", value)
    bands = tuple(value for value in bands if value is not None and value == value)
    if len(set(bands)) > 1:
        raise ConflictingNodataError(f"attrs['nodatavals'] has distinct per-band values {bands}, and a file has one for all: "
                                     "give nodata=")
    stated = [value for value in (attrs.get("nodata"), *bands[:1], attrs.get("_FillValue")) if value is not None]
    if len({"nan" if value != value else value for value in stated}) > 1:
        raise ConflictingNodataError(f"attrs name several nodata values, {stated}: give nodata=, or remove some")
    return plain_number(stated[0]) if stated else None


def plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


# ---- what is written ---------------------------------------------------------------------------------------------------


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


def items_of(attrs: dict[Any, Any], pack: bool, bands: int) -> list[dict[str, Any]]:
    """GDAL_METADATA: items of the image, and those of bands, which GDAL knows by their roles."""
    is_unpacked = attrs.get("scale_factor") is not None
    items = [item(name, value) for name, value in metadata_of(attrs).items()]
    items = [each for each in items if each["band"] <= bands]  # others are of bands that were not read
    if not is_unpacked and not pack:
        return items
    # Values that were unpacked must not be scaled again by those who read them; packed ones have one scale for all, of
    # the image where the file had it there, else of each band, where GDAL looks for it.
    of_image = any(each["name"] in ("SCALE", "OFFSET") and not each["band"] for each in items)
    items = [each for each in items if each["name"] not in ("SCALE", "OFFSET")]
    if not (is_unpacked and pack):
        return items
    for name, value in (("SCALE", attrs["scale_factor"]), ("OFFSET", attrs.get("add_offset") or 0.0)):
        items += [item(name if of_image else (name, band), repr(float(value))) for band in range(1 if of_image else bands)]
    return items


def metadata_of(attrs: dict[Any, Any]) -> dict[Any, Any]:
    items = attrs.get("gdal_metadata")
    if isinstance(items, dict):
        return items
    return items_of_xml(attrs["gdal_metadata_xml"]) if attrs.get("gdal_metadata_xml") else {}


def item(name: Any, value: Any) -> dict[str, Any]:
    name, band = (name[0], int(name[1]) + 1) if isinstance(name, tuple) else (name, 0)
    return {"domain": "", "name": str(name), "value": str(value), "band": band, "role": ROLES.get(name, "") if band else ""}


def tags_of(attrs: dict[Any, Any]) -> list[tuple[int, int, int, Any]]:
    """extra_tags and the resolution, as the engine takes tags. Tags that it makes itself are left out."""
    units = {name: unit for unit, name in RESOLUTION_UNITS.items()}
    tags = {number: (number, RATIONAL, 1, rational(attrs[name])) for name, number in (
        ("x_resolution", X_RESOLUTION), ("y_resolution", Y_RESOLUTION)) if attrs.get(name) is not None}
    if attrs.get("resolution_unit") is not None:
        unit = attrs["resolution_unit"]
        tags[RESOLUTION_UNIT] = (RESOLUTION_UNIT, SHORT, 1, (units.get(unit, unit) if isinstance(unit, str) else unit,))
    for number, kind, count, value in attrs.get("extra_tags") or ():
        if number not in NOT_EXTRA and number != IMAGE_DESCRIPTION and (not np.iterable(value) or len(value)):
            tags[number] = extra_tag(number, kind, count, value)
    return [tags[number] for number in sorted(tags)]


def rational(value: Any) -> tuple[int, int]:
    exact = fractions.Fraction(float(value)).limit_denominator(1_000_000)
    return exact.numerator, exact.denominator


def extra_tag(number: int, kind: int, count: int, value: Any) -> tuple[int, int, int, Any]:
    if kind == TEXT:
        text = (value if isinstance(value, bytes) else str(value).encode()).rstrip(b"\0") + b"\0"
        return number, kind, len(text), text
    if isinstance(value, (bytes, bytearray)):
        return number, kind if kind == UNDEFINED else 1, len(value), bytes(value)
    if kind == RATIONAL:
        numbers = value if np.iterable(value) else (value,)
        pairs = [rational(each) for each in numbers]
        return number, kind, len(pairs), tuple(part for pair in pairs for part in pair)
    values = tuple(value) if np.iterable(value) else (value,)
    return number, kind, len(values), values


def nodata_tag(nodata: Any) -> tuple[int, int, int, bytes]:
    number = plain_number(nodata)
    text = str(int(number) if np.isfinite(number) and number == int(number) else number).encode() + b"\0"
    return 42113, TEXT, len(text), text
