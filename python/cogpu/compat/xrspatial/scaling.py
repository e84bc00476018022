"""SCALE and OFFSET of GDAL_METADATA as xarray-spatial takes them: with or without a role, of a band or of the image."""

import math
from typing import Any

from ...errors import InvalidArgumentError
from ...file import File
from .attributes import items_by_name, metadata_xml
from .errors import MalformedScaleOffsetError, MixedBandMetadataError
from .metadata_xml import items_of_xml

USUAL = {"SCALE": 1.0, "OFFSET": 0.0}


def scaling_of(file: File, band: "int | None") -> tuple[float, float]:
    """Scale and offset that hold for all bands, or for the one that is asked for."""
    items = items_by_name(file)
    check_xml(file)
    return chosen(file, items, "SCALE", file.scales, band), chosen(file, items, "OFFSET", file.offsets, band)


def check_xml(file: File) -> None:
    """The engine takes what it can from a text that is not well-formed; a caller that needs scales must not miss
    one."""
    xml = metadata_xml(file)
    try:
        items_of_xml(xml or "")
    except InvalidArgumentError as error:
        raise MalformedScaleOffsetError(f"{file.name}: unpack=True needs GDAL_METADATA: {error}; read without "
                                        "unpack=True") from error


def chosen(file: File, items: dict[Any, str], name: str, stated: "tuple[float, ...]", band: "int | None") -> float:
    values = [number_of(file, name, items.get((name, index), items.get(name)), value)
              for index, value in enumerate(stated)]
    values = values if band is None else values[band:band + 1]
    if len(set(values)) > 1:
        raise MixedBandMetadataError(f"{file.name}: unpack=True with per-band {name} values that differ ({values}): "
                                     "read one with band=, drop unpack=True, or use cogpu.open_geotiff, which unpacks "
                                     "each band")
    return values[0] if values else USUAL[name]


def number_of(file: File, name: str, text: "str | None", stated: float) -> float:
    """The number of an item; `stated` is what the engine found, where no item has the name."""
    if text is None:
        return float(stated)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or name == "SCALE" and not number:
        raise MalformedScaleOffsetError(f"{file.name}: unpack=True cannot apply {name} {text!r} of GDAL_METADATA; read "
                                        "without unpack=True")
    return number
