"""Where pixels lie and what they mean: the way from a file's header to the names that xarray's users know, and back.

`describe` returns coordinates, attributes and encoding of a File as rioxarray has them, so that the accessors `.rio`
and `.odc` work. `of_array` returns what a writer needs from a DataArray that follows rioxarray's or xarray-spatial's
conventions. No pixel is read here.
"""

from __future__ import annotations

import copy
import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from . import cf, metadata
from .errors import Error, InvalidArgumentError, LimitExceededError, NotFoundError

if TYPE_CHECKING:
    from ._types import Bounds, Sides
    from .file import File

GRID_MAPPING = "spatial_ref"
SYSTEMS_KEPT = 256
CHUNK_BYTES = 16 << 20  # of strips that a Dask chunk gathers
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
MOST_COORDINATES = 1 << 26  # a header can claim any size; this many take a gigabyte
NODATA_NAMES = ("_FillValue", "missing_value", "fill_value", "nodata")
RPC_NAMES = ("err_bias", "err_rand", "line_off", "samp_off", "lat_off", "long_off", "height_off", "line_scale",
             "samp_scale", "lat_scale", "long_scale", "height_scale", "line_num_coeff", "line_den_coeff",
             "samp_num_coeff", "samp_den_coeff")


# ---- from a file -------------------------------------------------------------------------------------------------

# Tags that GDAL shows among the metadata.
TEXT_TAGS = {269: "TIFFTAG_DOCUMENTNAME", 270: "TIFFTAG_IMAGEDESCRIPTION", 305: "TIFFTAG_SOFTWARE",
             306: "TIFFTAG_DATETIME", 315: "TIFFTAG_ARTIST", 316: "TIFFTAG_HOSTCOMPUTER", 33432: "TIFFTAG_COPYRIGHT"}
NUMBER_TAGS = {280: "TIFFTAG_MINSAMPLEVALUE", 281: "TIFFTAG_MAXSAMPLEVALUE", 282: "TIFFTAG_XRESOLUTION",
               283: "TIFFTAG_YRESOLUTION"}
RPC_READERS = {".rpb": "DG", "_rpc.txt": "GE", ".rpc": "EROS"}  # GDAL's names, by the file of RPC that each finds
RESOLUTION_UNIT, RASTER_TYPE_KEY = 296, 1025
RESOLUTION_UNITS = {1: "1 (unitless)", 2: "2 (pixels/inch)", 3: "3 (pixels/cm)"}
NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+|nan|inf)([eE][+-]?\d+)?\s*", re.IGNORECASE)


def describe(file: File, pixels: Any, window: Bounds | None = None, parse_coordinates: object = True,
             out_shape: Sides | None = None) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What xarray is told of `pixels` (lazy.Pixels, or another output of beyond.py) of `file`.

    Parameters
    ----------
    window : (row0, col0, row1, col1) in pixels of the level, or with `out_shape` of the full resolution; None for all.
    parse_coordinates : False leaves x and y out; "2d" gives rotated grids xc and yc.
    out_shape : (height, width) that the window was resampled to; None where it was not.

    Returns
    -------
    coords : dict of name -> (dimensions, values, attributes)
    attrs, encoding : dicts
    """
    if parse_coordinates not in (True, False, "2d"):
        raise TypeError(f'parse_coordinates must be True, False or "2d", not {parse_coordinates!r}')
    row0, column0, row1, column1 = window or (0, 0, *pixels.shape[1:])
    transform = file.levels[0 if out_shape else pixels.level].transform if file.has_transform else IDENTITY
    if out_shape:
        transform = _resized(transform, (row0, column0, row1, column1), out_shape)
        row0, column0, row1, column1 = 0, 0, *out_shape
    a, b, c, d, e, f = transform
    coords = {"band": ("band", np.asarray(pixels.bands, dtype="int64"), {})}
    if parse_coordinates and not (file.gcps or file.rpc):
        coords |= _coordinates(transform, (row0, row1), (column0, column1), parse_coordinates == "2d")
    corner = (c + column0 * a + row0 * b, a, b, f + column0 * d + row0 * e, d, e)
    coords[GRID_MAPPING] = (), 0, _mapping_attrs(file, corner)
    attrs = _attrs(file, pixels)
    return coords, attrs, _encoding(file, pixels, attrs)


def _resized(transform, window, shape):
    """The transform of an output of `shape` over a window."""
    a, b, c, d, e, f = transform
    row0, column0, row1, column1 = window
    across, down = (column1 - column0) / shape[1], (row1 - row0) / shape[0]
    return (a * across, b * down, c + column0 * a + row0 * b, d * across, e * down, f + column0 * d + row0 * e)


def _coordinates(transform, rows, columns, may_have_two):
    """Of the centres of pixels. Those of a rotated grid are two more rasters, in float64, which its GeoTransform says
    as well: they are made on request."""
    a, b, c, d, e, f = transform
    is_rotated = b or d
    if is_rotated and not may_have_two:
        return {}
    height, width = rows[1] - rows[0], columns[1] - columns[0]
    if (height * width if is_rotated else height + width) > MOST_COORDINATES:
        raise LimitExceededError(f"parse_coordinates: {height} rows and {width} columns are too many for coordinates; "
                                 "give False")
    across, down = np.arange(*columns), np.arange(*rows)
    if not is_rotated:
        return {"x": ("x", across * a + (a * 0.5 + c), {}), "y": ("y", down * e + (e * 0.5 + f), {})}
    down = down[:, None]
    return {"xc": (("y", "x"), across * a + down * b + (a * 0.5 + b * 0.5 + c), {}),
            "yc": (("y", "x"), across * d + down * e + (d * 0.5 + e * 0.5 + f), {})}


def _mapping_attrs(file, transform):
    """Of the coordinate that says where the raster lies."""
    attrs = _crs_attrs(file)
    attrs["GeoTransform"] = " ".join(str(float(number)) for number in transform)
    if file.gcps:
        attrs["gcps"] = json.dumps({"type": "FeatureCollection", "features": [
            {"type": "Feature",
             "properties": {"id": str(number) if id is None else id, "info": info or "", "row": row, "col": column},
             "geometry": {"type": "Point", "coordinates": [x, y, z]}}
            for number, ((column, row, _, x, y, z), (id, info)) in enumerate(
                zip(file.gcps, file.info["gcp_names"]), 1)]})
    if file.rpc:
        attrs["rpcs"] = json.dumps(_rpc_by_name(file.rpc))
    return attrs


def _rpc_by_name(numbers):
    singles = {name: None if math.isnan(number) else number for name, number in zip(RPC_NAMES[:12], numbers)}
    return singles | {name: list(numbers[12 + 20 * i:32 + 20 * i]) for i, name in enumerate(RPC_NAMES[12:])}


_systems = {}  # what _crs_attrs found, by geokeys: many files have their system in common


def _crs_attrs(file):
    crs = file._file.crs(file.image)
    keys = (tuple(file._file.geokeys(file.image)) if crs and not crs["external"] else None) or file.wkt
    attrs = _systems.get(keys)
    if attrs is None:
        wkt = "".join(map(str.lstrip, (file.wkt or file.crs or "").split("\n")))
        attrs = cf.attributes(wkt) | {"crs_wkt": wkt, "spatial_ref": wkt} if wkt else {}
        if len(_systems) >= SYSTEMS_KEPT:
            _systems.clear()
        _systems[keys] = attrs
    return copy.deepcopy(attrs)


def _attrs(file, pixels):
    bands = [number - 1 for number in pixels.bands]
    attrs = {name: _tag_value(text) for name, text in _metadata(file, pixels.bands[0]).items()
             if name not in NODATA_NAMES}
    if file.nodata is not None:
        attrs["_FillValue"] = pixels.dtype.type(file.nodata)
    for plural, singular, values in (("scales", "scale_factor", file.scales), ("offsets", "add_offset", file.offsets)):
        chosen = tuple(values[band] for band in bands)
        attrs |= {singular: chosen[0]} if len(set(chosen)) == 1 else {plural: chosen}
    descriptions = tuple(file.descriptions[band] for band in bands)
    if any(descriptions):
        attrs["long_name"] = descriptions[0] if len(set(descriptions)) == 1 else descriptions
    units = tuple(file.units[band] for band in bands)
    if any(units):
        attrs["units"] = units[0] if len(units) == 1 else units
    return attrs | metadata.kept_items(file, pixels.bands, lambda text: _tag_text(_tag_value(text)))


def _metadata(file, band):
    """What GDAL has as metadata of the image and of a band, as texts by name."""
    texts = _tiff_tags(file)
    if not _has_pam_crs(file) and any(key == RASTER_TYPE_KEY for key, _, _ in file._file.geokeys(file.image)):
        texts["AREA_OR_POINT"] = file.area_or_point
    texts |= {"METADATATYPE": kind for name in file.files for ending, kind in RPC_READERS.items()
              if name.lower().endswith(ending)}
    return texts | {item["name"].removeprefix("NC_GLOBAL#"): item["value"] for item in file.metadata_items
                    if item["band"] in (0, band) and item["value"] and not item["domain"] and not item["role"]}


def _has_pam_crs(file):
    """Whether GDAL takes the coordinate system from PAM, and then looks at no GeoKeys."""
    crs = file._file.crs(file.image)
    return bool(crs and crs["external"]) and any(name.endswith(".aux.xml") for name in file.files)


def _tiff_tags(file):
    """Texts and resolutions that stand in tags of their own. What is of a wrong kind or cannot be read is left out."""
    texts = {}
    for tag in _tags_of_directory(file):
        if tag["id"] in TEXT_TAGS:
            value = tiff_tag(file, tag["id"], bytes)
            if value is not None:
                texts[TEXT_TAGS[tag["id"]]] = value.split(b"\0")[0].decode("utf-8", "replace")
        elif tag["id"] in NUMBER_TAGS or tag["id"] == RESOLUTION_UNIT:
            numbers = tiff_tag(file, tag["id"], tuple)
            if numbers and tag["id"] == RESOLUTION_UNIT:
                texts["TIFFTAG_RESOLUTIONUNIT"] = RESOLUTION_UNITS.get(numbers[0], str(numbers[0]))
            elif numbers:
                texts[NUMBER_TAGS[tag["id"]]] = f"{numbers[0]:.8g}"
    return texts


def _tags_of_directory(file):
    """None of mosaics, which have no directory."""
    try:
        return file._file.tags(file.info["directory"])
    except NotFoundError:
        return []


def tiff_tag(file, number, kind):
    """A tag's value if it is there and of that kind (bytes, or a tuple of numbers), else None."""
    try:
        value = file._file.tag(file.info["directory"], number)
    except Error:
        return None
    return value if isinstance(value, kind) else None


def _tag_value(text):
    """A number where the text is one, an array where it is {1,2,3}."""
    if NUMBER.fullmatch(text):
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    if text.startswith("{") and text.endswith("}"):
        parts = text[1:-1].split(",")
        if all(NUMBER.fullmatch(part) for part in parts):
            return np.array([float(part) for part in parts])
    return text


def _encoding(file, pixels, attrs):
    """What a writer needs to make such a file again; takes from `attrs` what no longer holds of the pixels."""
    encoding = {"grid_mapping": GRID_MAPPING, "source": file.name, "rasterio_dtype": file.info["type"],
                "preferred_chunks": preferred_chunks(pixels)}
    moved = (("_FillValue",) if pixels.masked else ()) + (
        ("scale_factor", "scales", "add_offset", "offsets") if pixels.unscale else ())
    encoding |= {name: attrs.pop(name) for name in moved if name in attrs}
    if pixels.masked:
        encoding["dtype"] = str(file.dtype)
    if file.palette:  # not an attribute: rioxarray would write it as a text, and arithmetic would keep it
        encoding["colormap"] = file.palette
    kind = _photometric(file)
    if kind:
        encoding["photometric"] = kind
    return encoding


def _photometric(file):
    """What samples are to be called in another file, or None where the writer's default is true of them: gray, RGB, a
    palette. Bytes of CMYK and YCbCr that were not converted keep no such name, since readers would convert them."""
    code, is_byte = file.info["photometric"], np.dtype(file.dtype).itemsize == 1
    if code in (1, 2, 3) or file.interpretations[:3] == ("red", "green", "blue"):
        return None
    kept = {0: "miniswhite", 8: "cielab"} if is_byte else {0: "miniswhite", 5: "cmyk", 6: "ycbcr", 8: "cielab"}
    return kept.get(code, "minisblack")


def preferred_chunks(pixels):
    """Blocks of the file, strips gathered to a good size; all bands that are stored together."""
    height, width = pixels.block_shape
    bands = 1 if pixels.interleave == "band" else len(pixels.bands)
    if width >= pixels.shape[2]:
        row = bands * width * pixels.dtype.itemsize
        height *= max(1, CHUNK_BYTES // max(row * height, 1))
    return {"band": bands, "y": min(height, pixels.shape[1]), "x": min(width, pixels.shape[2])}


# ---- from a DataArray --------------------------------------------------------------------------------------------

# Attributes that have a place of their own in a file, or that describe the array that was read and not this one.
NOT_TAGS = (*NODATA_NAMES, metadata.BAND_TAGS, metadata.TAG_DOMAINS, "nodatavals", "masked_nodata",
            "nodata_pixels_present", "scales", "scale_factor", "offsets", "add_offset", "long_name", "units",
            "AREA_OR_POINT", "raster_type", "grid_mapping", "crs", "crs_wkt", "transform", "rotated_affine", "res",
            "is_tiled", "gdal_metadata", "gdal_metadata_xml", "extra_tags")


def of_array(array, y="y", x="x"):
    """What `array`, a DataArray, says of itself beside its pixels.

    Parameters
    ----------
    y, x : names of the dimensions of rows and columns.

    Returns
    -------
    dict
        transform : six numbers in GDAL's order, of the corner, or None. What the attributes state is taken wherever the
            coordinates lie on that grid, a slice of it included, so that nothing drifts; else evenly spaced
            coordinates say it.
        crs : "EPSG:32633", WKT or a PROJ string, or None.
        nodata : a number, or None; also where the array was masked, and its nodata is in the encoding.
        pixel_is_point : bool
        scales, offsets, descriptions, units : a tuple with an entry a band, or None.
        packed : dict with `dtype`, `scales`, `offsets` of the values as stored, before they were unpacked; or None.
        gcps : list of (column, row, level, x, y, z), or None.
        rpc : tuple of 92 numbers, or None.
        tags : dict of texts, for the default domain of GDAL_METADATA.
        items : list of dicts as File.metadata_items has them: tags of bands, and of other domains.
    """
    attrs, encoding = array.attrs, array.encoding
    mapping = _grid_mapping(array)
    bands = array.size // max(array.sizes[y] * array.sizes[x], 1) or 1
    return {"transform": _transform_of(array, mapping, y, x),
            "crs": _crs_of(attrs, mapping),
            "nodata": _nodata_of(attrs, encoding),
            "pixel_is_point": any(str(attrs.get(name)).lower() == "point" for name in ("AREA_OR_POINT", "raster_type")),
            "scales": _per_band(attrs, "scales", "scale_factor", bands),
            "offsets": _per_band(attrs, "offsets", "add_offset", bands),
            "descriptions": _texts(attrs, "long_name", bands) or _band_labels(array, y, x),
            "units": _texts(attrs, "units", bands),
            "packed": {"dtype": None if encoding.get("dtype") is None else np.dtype(encoding["dtype"]),
                       "scales": _per_band(encoding, "scales", "scale_factor", bands),
                       "offsets": _per_band(encoding, "offsets", "add_offset", bands)},
            "gcps": _gcps_of(mapping),
            "rpc": _rpc_of(mapping),
            "tags": metadata.image_tags(attrs, _tags_of(attrs), _tag_value),
            "items": metadata.stated_items(attrs, metadata.band_numbers(array, y, x, bands))}


def place_of_array(array, y="y", x="x"):
    """(CRS, transform in GDAL's order) of a DataArray, each None where it does not say; see of_array."""
    mapping = _grid_mapping(array)
    return _crs_of(array.attrs, mapping), _transform_of(array, mapping, y, x)


def crs_text(crs):
    """A coordinate reference system in the engine's words: None, the number of EPSG, a text, or what has `to_wkt`."""
    if isinstance(crs, (bool, np.bool_)):
        raise TypeError("crs: a bool is not a coordinate reference system")
    if crs is None or isinstance(crs, str):
        return crs or None
    if isinstance(crs, (int, np.integer)):
        return f"EPSG:{crs}"
    if hasattr(crs, "to_wkt"):
        return crs.to_wkt()
    raise TypeError(f"crs: {type(crs).__name__} is not a coordinate reference system; give a number of EPSG or WKT")


def _grid_mapping(array):
    name = array.encoding.get("grid_mapping") or array.attrs.get("grid_mapping") or GRID_MAPPING
    return array.coords[name].attrs if name in array.coords else {}


def _crs_of(attrs, mapping):
    stated = mapping.get("spatial_ref") or mapping.get("crs_wkt")
    if stated:
        return stated
    if "grid_mapping_name" in mapping:
        return _crs_from_cf(mapping)
    return crs_text(attrs.get("crs")) or attrs.get("crs_wkt") or None


def _crs_from_cf(mapping):
    try:
        import pyproj
    except ImportError as error:
        raise InvalidArgumentError("crs: the grid mapping has CF attributes alone, which need pyproj; give "
                                   "crs=") from error
    return pyproj.CRS.from_cf(mapping).to_wkt()


def fits(nodata, dtype):
    """Whether samples of `dtype` can hold the value: attributes may state others, as -9999 for what became uint8."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return math.isfinite(nodata) and nodata == int(nodata) and info.min <= int(nodata) <= info.max
    return not math.isfinite(nodata) or abs(nodata) <= float(np.finfo(dtype).max)


def _nodata_of(attrs, encoding):
    if encoding.get("_FillValue") is not None:
        return _number("_FillValue", encoding["_FillValue"])
    stated = {name: _number(name, attrs[name]) for name in NODATA_NAMES if attrs.get(name) is not None}
    if not stated:
        stated = {f"nodatavals[{band}]": _number("nodatavals", value)
                  for band, value in enumerate(attrs.get("nodatavals") or ()) if value is not None}
    distinct = {"nan" if value != value else value for value in stated.values()}
    if len(distinct) > 1:
        raise InvalidArgumentError("nodata: a file has one for all bands, and the attributes state several "
                                   f"({stated}); give nodata=")
    return next(iter(stated.values()), None)


def _number(name, value):
    value = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(value, complex) and not value.imag:
        value = value.real
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: {value!r} is not a number")
    return value


def _per_band(where, plural, singular, bands):
    """Numbers for each band, from one that holds for all or from a sequence."""
    if where.get(plural) is not None:
        return _checked_length(plural, tuple(float(value) for value in where[plural]), bands)
    return None if where.get(singular) is None else (float(where[singular]),) * bands


def _texts(attrs, name, bands):
    value = attrs.get(name)
    if value is None:
        return None
    if isinstance(value, str):
        return (value,) * bands
    return _checked_length(name, tuple(None if text is None else str(text) for text in value), bands)


def _checked_length(name, values, bands):
    if len(values) != bands:
        raise InvalidArgumentError(f"{name}: {len(values)} values for {bands} bands")
    return values


def _band_labels(array, y, x):
    """Texts along the dimension of the bands, which are descriptions."""
    for dim in array.dims:
        if dim not in (y, x) and dim in array.coords and array.coords[dim].dtype.kind in "UT":
            return tuple(str(label) for label in array.coords[dim].values)
    return None


def _tags_of(attrs):
    tags = {name: value for name, value in attrs.items() if isinstance(name, str) and name not in NOT_TAGS
            and not name.startswith(("STATISTICS_", "TIFFTAG_"))}
    more = attrs.get("gdal_metadata")
    return {name: _tag_text(value) for name, value in (tags | more if isinstance(more, dict) else tags).items()
            if isinstance(name, str)}


def _tag_text(value):
    """Numbers in a row as {1,2,3}, which readers of GDAL_METADATA take apart again."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return "{" + ",".join(str(item) for item in np.asarray(value).ravel().tolist()) + "}"
    return str(value)


def _transform_of(array, mapping, y, x):
    stated = _stated_transform(array.attrs, mapping)
    if stated and (stated[2] or stated[4]):
        return _rotated_transform(array, stated, y, x)
    present = [name for name in (y, x) if name in array.coords and array.coords[name].dims == (name,)]
    if len(present) == 1:
        raise InvalidArgumentError(f"coordinates: {present[0]!r} has some, the other axis has none; drop them or give "
                                   "both")
    if present and "gcps" not in mapping and "rpcs" not in mapping:
        left, width = _axis(array.coords[x], stated and stated[0], stated and stated[1])
        top, height = _axis(array.coords[y], stated and stated[3], stated and stated[5])
        stated = (left, width, 0.0, top, 0.0, height)
    return None if stated == (0, 1, 0, 0, 0, 1) else stated


def _rotated_transform(array, stated, y, x):
    """What 2-D coordinates say, where there are such, of an array that may be a slice; else what is stated."""
    centres = [array.coords[name] for name in ("xc", "yc") if name in array.coords]
    if len(centres) != 2 or any(set(centre.dims) != {y, x} for centre in centres):
        return stated
    sides = []
    for centre, (edge, across, down) in zip(centres, (stated[:3], stated[3:])):
        values = centre.transpose(y, x).values
        across, down = (float(values[0, -1] - values[0, 0]) / (values.shape[1] - 1) if values.shape[1] > 1 else across,
                        float(values[-1, 0] - values[0, 0]) / (values.shape[0] - 1) if values.shape[0] > 1 else down)
        sides.append((float(values[0, 0]) - (across + down) / 2, across, down))
    found = (*sides[0], *sides[1])
    return stated if np.allclose(found, stated, rtol=1e-9, atol=0) else found


def _stated_transform(attrs, mapping):
    """GDAL's order, from where rioxarray and xarray-spatial keep it."""
    if "GeoTransform" in mapping:
        text = mapping["GeoTransform"]
        return _six("GeoTransform", text.split() if isinstance(text, str) else text)
    for name in ("rotated_affine", "transform"):
        if attrs.get(name) is not None:
            a, b, c, d, e, f = _six(name, tuple(attrs[name])[:6])
            return c, a, b, f, d, e
    return None


def _six(name, values):
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name}: {values!r} are not six numbers") from error
    if len(numbers) != 6 or not all(math.isfinite(number) for number in numbers):
        raise InvalidArgumentError(f"{name}: {values!r} are not six finite numbers")
    return numbers


def _axis(coordinate, edge, step):
    """Edge of the first pixel and step: of the stated grid if the coordinates lie on it, else the coordinates' own."""
    centres = _centres(coordinate)
    if step:
        first = round((centres[0] - edge) / step - 0.5)
        if _lies_on(coordinate, centres, edge + (first + 0.5) * step, step):
            return edge + first * step, step
    if len(centres) == 1:
        step = coordinate.attrs.get("resolution")
        if not step:
            raise InvalidArgumentError(f"coordinates: {coordinate.name!r} has one value, which does not tell the size "
                                       "of a pixel; set attrs['transform']")
        return float(centres[0] - step / 2), float(step)
    step = (centres[-1] - centres[0]) / (len(centres) - 1)
    if not step or not _lies_on(coordinate, centres, centres[0], step):
        raise InvalidArgumentError(f"coordinates: {coordinate.name!r} is not evenly spaced; a GeoTIFF cannot hold that")
    return float(centres[0] - step / 2), float(step)


def _centres(coordinate):
    if coordinate.dtype.kind not in "iuf":
        raise InvalidArgumentError(f"coordinates: {coordinate.name!r} holds {coordinate.dtype}, not numbers")
    centres = np.asarray(coordinate.values, dtype="float64")
    if not len(centres) or not np.isfinite(centres).all():
        raise InvalidArgumentError(f"coordinates: {coordinate.name!r} is empty or not finite")
    return centres


def _lies_on(coordinate, centres, first, step):
    """Within a thousandth of a pixel, or what the coordinates' own type can tell, but never beyond a tenth."""
    rounding = 4 * np.finfo(coordinate.dtype).eps * abs(centres).max() if coordinate.dtype.kind == "f" else 0
    expected = first + np.arange(len(centres)) * step
    return abs(centres - expected).max() <= min(max(1e-3 * abs(step), rounding), 0.1 * abs(step))


def _gcps_of(mapping):
    if "gcps" not in mapping:
        return None
    points = json.loads(mapping["gcps"])["features"]
    return [(float(point["properties"]["col"]), float(point["properties"]["row"]), 0.0,
             *(*map(float, point["geometry"]["coordinates"]), 0.0)[:3]) for point in points]


def _rpc_of(mapping):
    if "rpcs" not in mapping:
        return None
    stated = json.loads(mapping["rpcs"])
    values = [stated.get(name) for name in RPC_NAMES]
    numbers = [number for value in values for number in (value if isinstance(value, list) else [value])]
    errors = [math.nan if number is None else float(number) for number in numbers[:2]]
    return (*errors, *(float(number or 0) for number in numbers[2:]))
