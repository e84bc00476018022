"""What the attributes say that is stored in tags: GDAL_METADATA, resolution, extra tags and nodata."""

import fractions
from typing import Any

import numpy as np

from .attributes import (IMAGE_DESCRIPTION, NOT_EXTRA, RESOLUTION_UNIT, RESOLUTION_UNITS, TEXT, UNDEFINED, X_RESOLUTION,
                         Y_RESOLUTION)
from .errors import ConflictingNodataError
from .metadata_xml import items_of_xml
from .write_checks import check_number

ROLES = {"SCALE": "scale", "OFFSET": "offset", "DESCRIPTION": "description", "UNITTYPE": "unittype"}
RATIONAL, SHORT, GDAL_NODATA = 5, 3, 42113


def nodata_stated(attrs: dict[Any, Any]) -> Any:
    """nodata, or nodatavals (one for all bands, or a sequence), or _FillValue; an error where they contradict each
    other. NaN alone in nodatavals is how rioxarray says that there is none."""
    bands = attrs.get("nodatavals")
    bands = () if bands is None else tuple(bands) if np.iterable(bands) and not isinstance(bands, str) else (bands,)
    for name, value in (("nodata", attrs.get("nodata")), *(("nodatavals", band) for band in bands),
                        ("_FillValue", attrs.get("_FillValue"))):
        check_number(f"attrs[{name!r}]: {name}", value)
    bands = tuple(value for value in bands if value is not None and value == value)
    if len(set(bands)) > 1:
        raise ConflictingNodataError(f"attrs['nodatavals'] has distinct per-band values {bands}, and a file has one "
                                     "for all: give nodata=")
    stated = [value for value in (attrs.get("nodata"), *bands[:1], attrs.get("_FillValue")) if value is not None]
    if len({"nan" if value != value else value for value in stated}) > 1:
        raise ConflictingNodataError(f"attrs name several nodata values, {stated}: give nodata=, or remove some")
    return plain_number(stated[0]) if stated else None


def plain_number(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


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
        keys = [name] if of_image else [(name, band) for band in range(bands)]
        items += [item(key, repr(float(value))) for key in keys]
    return items


def metadata_of(attrs: dict[Any, Any]) -> dict[Any, Any]:
    items = attrs.get("gdal_metadata")
    if isinstance(items, dict):
        return items
    return items_of_xml(attrs["gdal_metadata_xml"]) if attrs.get("gdal_metadata_xml") else {}


def item(name: Any, value: Any) -> dict[str, Any]:
    name, band = (name[0], int(name[1]) + 1) if isinstance(name, tuple) else (name, 0)
    role = ROLES.get(name, "") if band else ""
    return {"domain": "", "name": str(name), "value": str(value), "band": band, "role": role}


def tags_of(attrs: dict[Any, Any]) -> list[tuple[int, int, int, Any]]:
    """extra_tags and the resolution, as the engine takes tags. Tags that it makes itself are left out."""
    units = {name: unit for unit, name in RESOLUTION_UNITS.items()}
    tags: dict[int, tuple[int, int, int, Any]] = {}
    for name, number in (("x_resolution", X_RESOLUTION), ("y_resolution", Y_RESOLUTION)):
        if attrs.get(name) is not None:
            tags[number] = (number, RATIONAL, 1, rational(attrs[name]))
    if attrs.get("resolution_unit") is not None:
        unit = attrs["resolution_unit"]
        tags[RESOLUTION_UNIT] = (RESOLUTION_UNIT, SHORT, 1, (units.get(unit, unit) if isinstance(unit, str) else unit,))
    for number, kind, _, value in attrs.get("extra_tags") or ():
        is_empty = isinstance(value, (bytes, str, tuple, list)) and not value
        if number not in NOT_EXTRA and number != IMAGE_DESCRIPTION and not is_empty:
            tags[number] = extra_tag(number, kind, value)
    return [tags[number] for number in sorted(tags)]


def rational(value: Any) -> tuple[int, int]:
    exact = fractions.Fraction(float(value)).limit_denominator(1_000_000)
    return exact.numerator, exact.denominator


def extra_tag(number: int, kind: int, value: Any) -> tuple[int, int, int, Any]:
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
    return GDAL_NODATA, TEXT, len(text), text
