"""Target grids of mosaics, from what users have: numbers, coordinate reference systems, arrays, GeoBoxes, files."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from .arguments import flag, number, whole
from .errors import about, InvalidArgumentError
from .urls import is_path

if TYPE_CHECKING:
    from ._types import Crs, GridLike, Resolution, Shape

    Place = tuple[str | None, tuple[float, ...] | None, tuple[int, int]]  # CRS, GDAL's geotransform, (height, width)

__all__ = ["engine_grid"]


def engine_grid(*, crs: Crs | None = None, resolution: Resolution | None = None, bbox: Any = None,
                bbox_crs: Crs | None = None, shape: Shape | None = None, like: GridLike | None = None,
                transform: Any = None, align: bool = False) -> dict[str, Any] | None:
    """The grid as the extension module takes it: fields of cogpu_grid that are given. None if none is."""
    words = {"resolution": resolution, "bbox": bbox, "bbox_crs": bbox_crs, "shape": shape, "transform": transform,
             "align": flag("align", align) or None}
    if like is not None:
        given = [name for name, value in words.items() if value is not None]
        if given:
            raise InvalidArgumentError(f"like: it is the whole grid; leave out {', '.join(given)}")
        return _grid_like(like, _crs(crs))
    if transform is not None and shape is None:
        raise InvalidArgumentError("transform: it needs shape=(height, width)")
    if align and resolution is None:
        raise InvalidArgumentError("align=True needs resolution")
    height, width = (0, 0) if shape is None else _sides(shape)
    grid = {"crs": _crs(crs), "resolution": None if resolution is None else _resolution(resolution),
            "bbox": None if bbox is None else _box(bbox), "bbox_crs": _crs(bbox_crs), "width": width or None,
            "height": height or None, "transform": None if transform is None else gdal_transform(transform),
            "align": align or None}
    return {name: value for name, value in grid.items() if value is not None} or None


def gdal_transform(transform: Any) -> tuple[float, ...]:
    """Six numbers in GDAL's order, of an Affine, a Transform or numbers (a, b, c, d, e, f)."""
    has_names = all(hasattr(transform, name) for name in "abcdef")
    try:
        values: list[Any] = [getattr(transform, name) for name in "abcdef"] if has_names else list(transform)
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) == 9:  # the matrix, with its last row
        numbers = numbers[:6]
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise InvalidArgumentError(f"transform: {transform!r} is not an Affine or six finite numbers (a, b, c, d, e, "
                                   "f)")
    a, b, c, d, e, f = numbers
    if a * e == b * d:
        raise InvalidArgumentError(f"transform: {transform!r} has no inverse: its pixels have no area")
    return c, a, b, f, d, e


def _crs(crs: Any) -> str | None:
    from . import georef
    text: str | None = cast(Any, georef).crs_text(crs)
    return text


def _resolution(resolution: Any) -> tuple[float, float]:
    """(x, y), both positive: of a number, a pair, or odc-geo's Resolution."""
    if hasattr(resolution, "x") and hasattr(resolution, "y"):
        resolution = resolution.x, resolution.y
    try:
        pair: list[Any] = list(resolution)
    except TypeError:
        pair = [resolution, resolution]
    if isinstance(resolution, str) or len(pair) != 2:
        raise InvalidArgumentError(f"resolution: {resolution!r} is not a number or a pair (x, y)")
    x, y = (abs(number("resolution", side)) for side in pair)
    if not x or not y:
        raise InvalidArgumentError("resolution: pixels of size 0")
    return float(x), float(y)


def _box(bbox: Any) -> tuple[float, ...]:
    """(left, bottom, right, top), also of odc-geo's BoundingBox and rasterio's."""
    try:
        box = tuple(float(side) for side in bbox)
    except (TypeError, ValueError):
        box = ()
    if len(box) != 4 or not all(map(math.isfinite, box)):
        raise InvalidArgumentError(f"bbox: {bbox!r} are not four finite numbers (left, bottom, right, top)")
    if not (box[0] < box[2] and box[1] < box[3]):
        raise InvalidArgumentError(f"bbox: {bbox!r} must have left < right and bottom < top")
    return box


def _sides(shape: Any) -> tuple[int, int]:
    """(height, width); one of them may be 0 or None: pixels are square then."""
    try:
        sides: list[Any] = [0 if side is None else side for side in shape]
    except TypeError:
        sides = []
    if len(sides) != 2 or isinstance(shape, str):
        raise InvalidArgumentError(f"shape: {shape!r} is not (height, width)")
    height, width = (whole("shape", side, 0) for side in sides)
    if not height and not width:
        raise InvalidArgumentError("shape: it has neither height nor width")
    return height, width


# ---- grids of other things -------------------------------------------------------------------------------------------


def _grid_like(like: Any, crs: str | None) -> dict[str, Any]:
    own, transform, (height, width) = _place_of(like)
    if crs is not None and own is not None:
        raise InvalidArgumentError("like: it is the whole grid; leave out crs")
    if own is None and crs is None:
        raise InvalidArgumentError("like: it has no CRS; give crs too")
    if transform is None:
        raise InvalidArgumentError("like: it has no transform")
    return {"crs": own or crs, "transform": transform, "height": height, "width": width}


def _place_of(like: Any) -> Place:
    from .file import File
    if isinstance(like, File):
        return _of_file(like)
    if is_path(like):
        with File(like) as file, about(file.name):
            return _of_file(file)
    if hasattr(like, "dims") and hasattr(like, "coords"):
        return _of_xarray(like)
    return _of_grid(like)


def _of_file(file: Any) -> Place:
    return file.wkt or file.crs, file.transform and file.transform.to_gdal(), file.shape[1:]


def _of_grid(like: Any) -> Place:
    """odc-geo's GeoBox, rasterio's datasets and profiles, and what has their attributes."""
    members = _members(like)

    def part(*names: str) -> Any:
        for name in names:
            if name in members:
                return members[name]
            if hasattr(like, name):
                return getattr(like, name)
        return None

    transform, height, width, shape = part("affine", "transform"), part("height"), part("width"), part("shape")
    if transform is None or (shape is None and (height is None or width is None)):
        raise TypeError("like must be a DataArray, a Dataset, a GeoBox, a File, a path or something with crs, "
                        f"transform and shape, not {like!r}")
    sides = (height, width) if shape is None else shape
    return _crs(part("crs")), gdal_transform(transform), _sides(tuple(sides)[-2:])


def _members(like: Any) -> dict[str, Any]:
    """Of a rasterio profile."""
    return dict(cast(Any, like)) if isinstance(like, dict) else {}


def _of_xarray(like: Any) -> Place:
    from . import georef
    array, y, x = _plane_of(like)
    crs, transform = cast(Any, georef).place_of_array(array, y, x)
    accessor: Any = getattr(like, "rio", None)
    if crs is None and getattr(accessor, "crs", None) is not None:
        crs = _crs(accessor.crs)
    return crs, transform, (array.sizes[y], array.sizes[x])


def _plane_of(like: Any) -> tuple[Any, str, str]:
    """A DataArray, and its dimensions of rows and columns."""
    from .arrays import AXES
    y, x = (next((dim for dim in like.dims if dim in AXES[role]), None) for role in ("y", "x"))
    if y is None or x is None:
        raise InvalidArgumentError(f"like: the dimensions {tuple(like.dims)} have no rows and columns (y, x)")
    if hasattr(like, "variable"):
        return like, y, x
    for variable in like.data_vars.values():
        if {y, x} <= set(variable.dims):
            return variable, y, x
    import xarray
    from .later import np
    coords = {name: coord for name, coord in like.coords.items() if set(coord.dims) <= {y, x}}
    pixels: Any = cast(Any, np).broadcast_to(np.float32(0), (like.sizes[y], like.sizes[x]))
    return xarray.DataArray(pixels, coords, (y, x)), y, x
