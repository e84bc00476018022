"""From a File to the attributes that xarray-spatial gives a DataArray, and the checks that it makes of a header."""

import math
from typing import Any

from ... import georef
from ...file import File
from .contract import (CONTRACT, GEOREF_STATUS_CRS_ONLY, GEOREF_STATUS_FULL, GEOREF_STATUS_NONE,
                       GEOREF_STATUS_ROTATED_DROPPED, GEOREF_STATUS_TRANSFORM_ONLY)
from .errors import (DegeneratePixelSizeError, InconsistentGeoKeysError, InvalidIntegerNodataError,
                     RotatedTransformError)

X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, EXTRA_SAMPLES, GDAL_METADATA = 282, 283, 296, 338, 42112
IMAGE_DESCRIPTION, PIXEL_SCALE, TRANSFORMATION = 270, 33550, 34264
RESOLUTION_UNITS = {1: "none", 2: "inch", 3: "centimeter"}
# Tags that have attributes of their own, that the writer makes, or that point into the file.
NOT_EXTRA = {*range(254, 260), 262, 266, 273, 274, *range(277, 285), 288, 289, 292, 293, 296, 317, 320,
             *range(322, 326), 330, *range(338, 342), 347, 400, *range(512, 522), *range(529, 533), 559,
             *range(32995, 32999), 33424, 33550, 33920, 33922, 34264, 34665, *range(34735, 34738), 34853, 40965, 42112,
             42113, 50674, 50844}
MODEL_TYPE, GEOGRAPHIC_TYPE, PROJECTED_TYPE = 1024, 2048, 3072
PROJECTED, GEOGRAPHIC = 1, 2
TEXT, UNDEFINED = 2, 7


# ---- checks ----------------------------------------------------------------------------------------------------------


def check_header(file: File, allow_rotated: bool, allow_invalid_nodata: bool) -> None:
    """Refuses what xarray-spatial refuses of a header, by its classes of errors."""
    check_pixel_size(file)
    check_geokeys(file)
    transform = file.transform
    if transform is not None and (transform.b or transform.d) and not allow_rotated:
        raise RotatedTransformError(f"{file.name}: the grid has a rotation or shear ({tuple(transform)}), which the "
                                    "stable readers do not take: allow_rotated=True reads it without georeferencing, "
                                    "cogpu.open_geotiff with it")
    check_nodata(file, allow_invalid_nodata)


def is_rotated(file: File) -> bool:
    transform = file.transform
    return transform is not None and bool(transform.b or transform.d)


def check_pixel_size(file: File) -> None:
    matrix = georef.tiff_tag(file, TRANSFORMATION, tuple)
    scale = georef.tiff_tag(file, PIXEL_SCALE, tuple)
    if matrix and len(matrix) == 16:
        name, sides = "ModelTransformation", (math.hypot(matrix[0], matrix[4]), math.hypot(matrix[1], matrix[5]))
    elif scale and len(scale) >= 2:
        name, sides = "ModelPixelScale", scale[:2]
    else:
        return
    if not all(side and math.isfinite(side) for side in sides):
        raise DegeneratePixelSizeError(f"{file.name}: {name}Tag states pixels of {sides[0]} x {sides[1]}: no "
                                       "coordinates follow from that; cogpu.open_geotiff reads the pixels")


def check_geokeys(file: File) -> None:
    keys = {key: value for key, _, value in file._file.geokeys(file.image or 0)}
    model = keys.get(MODEL_TYPE)
    model = model[0] if isinstance(model, tuple) and model else model
    if model == GEOGRAPHIC and PROJECTED_TYPE in keys or (
            model == PROJECTED and GEOGRAPHIC_TYPE in keys and not any(3072 <= key < 4096 for key in keys)):
        kind = "geographic" if model == GEOGRAPHIC else "projected"
        raise InconsistentGeoKeysError(f"{file.name}: GTModelType says {kind}, and the other GeoKeys describe another "
                                       "kind of coordinate system; cogpu.open_geotiff reads it as GDAL does")


def check_nodata(file: File, allow_invalid_nodata: bool) -> None:
    nodata = file.info["nodata"]  # as stated; file.nodata is None where no sample can be it
    if nodata is None or file.dtype.kind not in "iu" or allow_invalid_nodata:
        return
    if not math.isfinite(nodata) or nodata != int(nodata):
        what = "fractional" if math.isfinite(nodata) else "non-finite"
        raise InvalidIntegerNodataError(f"{file.name}: nodata {nodata} is {what}, which no sample of {file.dtype} can "
                                        "be: allow_invalid_nodata=True ignores it")


# ---- attributes ------------------------------------------------------------------------------------------------------


def attrs_of(file: File, transform: "tuple[float, ...] | None") -> dict[str, Any]:
    """Attributes but for nodata. `transform`: of the window, in GDAL's order, or None."""
    attrs: dict[str, Any] = {"_xrspatial_geotiff_contract": CONTRACT}
    if is_rotated(file) and transform is not None:
        x0, a, b, y0, d, e = transform
        attrs |= {"georef_status": GEOREF_STATUS_ROTATED_DROPPED, "_xrspatial_no_georef": True,
                  "rotated_affine": (a, b, x0, d, e, y0)}
    else:
        attrs |= georeferencing_attrs(file, transform)
    if file.area_or_point == "Point":
        attrs["raster_type"] = "point"
    return attrs | tag_attrs(file)


def georeferencing_attrs(file: File, transform: "tuple[float, ...] | None") -> dict[str, Any]:
    attrs: dict[str, Any] = {"georef_status": status_of(transform, file.crs)}
    if file.crs is not None:
        if file.crs.startswith("EPSG:"):
            attrs["crs"] = int(file.crs.removeprefix("EPSG:"))
        attrs["crs_wkt"] = file.wkt or file.crs
    if transform is None:
        attrs["_xrspatial_no_georef"] = True
    else:
        x0, a, _, y0, _, e = transform
        half = 0.5 if file.area_or_point == "Point" else 0.0  # here the transform has the first centre, not the corner
        attrs["transform"] = (a, 0.0, x0 + half * a, 0.0, e, y0 + half * e)
    return attrs


def status_of(transform: "tuple[float, ...] | None", crs: "str | None") -> str:
    if transform is None:
        return GEOREF_STATUS_NONE if crs is None else GEOREF_STATUS_CRS_ONLY
    return GEOREF_STATUS_TRANSFORM_ONLY if crs is None else GEOREF_STATUS_FULL


def tag_attrs(file: File) -> dict[str, Any]:
    """GDAL_METADATA, the palette, the description and the tags that are kept as they are stored."""
    attrs: dict[str, Any] = {}
    items = items_by_name(file)
    if items:
        attrs["gdal_metadata"] = items
    if file.palette:
        attrs["colormap"] = tuple(colour[part] for part in range(3) for colour in file.palette)
    if file.info.get("description"):
        attrs["image_description"] = file.info["description"]
    xml = metadata_xml(file)
    if xml is not None:
        attrs["gdal_metadata_xml"] = xml
    extra = [tag for entry in file._file.tags(file.info["directory"]) if (tag := extra_tag(file, entry))]
    if extra:
        attrs["extra_tags"] = extra
    return attrs | resolution_attrs(file)


def items_by_name(file: File) -> dict[Any, str]:
    """The default domain of GDAL_METADATA: items of the image by name, those of bands by (name, band from 0)."""
    return {item["name"] if not item["band"] else (item["name"], item["band"] - 1): item["value"]
            for item in file.metadata_items if item["domain"] == ""}


def metadata_xml(file: File) -> "str | None":
    text = georef.tiff_tag(file, GDAL_METADATA, bytes)
    return text.split(b"\0")[0].decode("utf-8", "replace") if text else None


def resolution_attrs(file: File) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for name, number in (("x_resolution", X_RESOLUTION), ("y_resolution", Y_RESOLUTION)):
        values = georef.tiff_tag(file, number, tuple)
        if values:
            attrs[name] = float(values[0])
    unit = georef.tiff_tag(file, RESOLUTION_UNIT, tuple)
    if unit:
        attrs["resolution_unit"] = RESOLUTION_UNITS.get(unit[0], str(unit[0]))
    samples = georef.tiff_tag(file, EXTRA_SAMPLES, tuple)
    if samples:
        attrs["extra_samples"] = samples
    return attrs


def extra_tag(file: File, entry: dict[str, Any]) -> "tuple[int, int, int, Any] | None":
    """(number, type, count, value) of a tag that has no attribute of its own; None for those that have one."""
    number, kind, count = entry["id"], entry["type"], entry["count"]
    value = None if number in NOT_EXTRA else georef.tiff_tag(file, number, (bytes, tuple))
    if value is None:
        return None
    if kind == TEXT and isinstance(value, bytes):
        return number, kind, count, value.split(b"\0")[0].decode("utf-8", "replace")
    return number, kind, count, value[0] if isinstance(value, tuple) and len(value) == 1 else value
