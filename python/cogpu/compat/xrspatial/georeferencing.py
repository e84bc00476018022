"""What a DataArray with xarray-spatial's attributes says of its place: checks with its classes of errors, and the
transform that is written."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import georef
from ...errors import InvalidArgumentError, UnsupportedError
from ...profile import known_crs
from .errors import (ConflictingCRSError, InvalidCRSCodeError, NonRepresentableEPSGCRSError, NonUniformCoordsError,
                     UnparseableCRSError)

if TYPE_CHECKING:
    import xarray as xr

SQUARE = "assume_square_pixels_for_degenerate_axis"


def check_crs(attrs: dict[Any, Any]) -> None:
    """attrs["crs"] and attrs["crs_wkt"] must mean the same; pyproj knows, where it is installed."""
    if attrs.get("crs") is None or not attrs.get("crs_wkt"):
        return
    try:
        import pyproj
        from pyproj.exceptions import CRSError
    except ImportError:
        return
    try:
        code, text = (pyproj.CRS.from_user_input(georef.crs_text(attrs[name])) for name in ("crs", "crs_wkt"))
    except CRSError:
        return  # check_known says which one
    if code != text and text.to_epsg() != code.to_epsg():
        raise ConflictingCRSError(f"attrs['crs'] is {code.name}, and attrs['crs_wkt'] is {text.name}: reconcile them, "
                                  "or remove one")


def check_known(crs: Any) -> None:
    try:
        known_crs(georef.crs_text(crs))
    except UnsupportedError as error:
        raise NonRepresentableEPSGCRSError(str(error)) from error
    except InvalidArgumentError as error:
        raise (UnparseableCRSError if isinstance(crs, str) else InvalidCRSCodeError)(str(error)) from error


def check_coordinates(data: "xr.DataArray", axes: tuple[str, str]) -> None:
    for axis in axes:
        if axis not in data.coords or data.coords[axis].dtype.kind not in "iuf":
            continue
        steps = np.diff(data.coords[axis].values.astype("float64"))
        if len(steps) and (not steps.mean() or abs(steps - steps.mean()).max() > 1e-3 * abs(steps.mean())):
            what = "non-uniform" if steps.any() else "constant"
            raise NonUniformCoordsError(f"the coordinates of {axis!r} are {what}: a GeoTIFF cannot hold coordinates "
                                        "that are not evenly spaced; resample, or drop them")


def transform_of(data: "xr.DataArray", axes: tuple[str, str], drop_rotation: bool) -> "tuple[float, ...] | None":
    """Six numbers a, b, c, d, e, f of the corner, or None for none.

    The transform in the attributes counts wherever the coordinates lie on its grid, and against integer coordinates,
    which number pixels (floats 0, 1, 2 ... too). An identity transform is written too: None would say that there is no
    georeferencing.
    """
    attrs, (y, x) = data.attrs, axes
    rotated = attrs.get("rotated_affine")
    if rotated is not None and not drop_rotation:
        return six(rotated)
    if attrs.get("_xrspatial_no_georef"):
        return None
    stated = None if attrs.get("transform") is None else six(attrs["transform"])
    is_on_axes = all(axis in data.coords for axis in axes)
    if stated is not None and attrs.get("raster_type") == "point":
        a, b, c, d, e, f = stated
        stated = a, b, c - (a + b) / 2, d, e, f - (d + e) / 2
    if stated is not None and (stated[1] or stated[3]):
        return stated
    if stated is None and not any(axis in data.coords for axis in axes):
        return transform_of_mapping(data, y, x)
    if stated is not None and (not is_on_axes or any(has_pixel_numbers(data.coords[axis]) for axis in axes)):
        return stated
    return of_coordinates(data, axes, stated)


def has_pixel_numbers(coordinate: "xr.DataArray") -> bool:
    """Whether a coordinate numbers pixels, and says nothing of their place."""
    return coordinate.dtype.kind in "iu" or coordinate.size > 1 and bool(
        (coordinate.values == np.arange(coordinate.size)).all())


def six(values: Any) -> tuple[float, ...]:
    if not hasattr(values, "__iter__"):
        values = [getattr(values, name, None) for name in "abcdef"]
    try:
        numbers = tuple(float(value) for value in tuple(values)[:6])
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != 6 or not np.isfinite(numbers).all():
        raise InvalidArgumentError(f"attrs['transform']={values!r} is not six finite numbers a, b, c, d, e, f")
    return numbers


def transform_of_mapping(data: "xr.DataArray", y: str, x: str) -> "tuple[float, ...] | None":
    """From a coordinate spatial_ref, as rioxarray has it."""
    plain = data.copy(deep=False)
    plain.attrs = {}
    return affine_order(georef.of_array(plain, y, x)["transform"])


def of_coordinates(data: "xr.DataArray", axes: tuple[str, str], stated: "tuple[float, ...] | None") -> Any:
    """The transform that the coordinates say, or the stated one where they lie on its grid."""
    plain = data.copy(deep=False)
    plain.attrs = {} if stated is None else {"transform": stated}
    plain = plain.assign_coords({axis: with_resolution(data, axis, other, stated is None, sign)
                                 for axis, other, sign in ((axes[0], axes[1], -1), (axes[1], axes[0], 1))
                                 if axis in data.coords})
    found = georef.of_array(plain, *axes)["transform"]
    return affine_order(found or (0.0, 1.0, 0.0, 0.0, 0.0, 1.0))


def with_resolution(data: "xr.DataArray", axis: str, other: str, is_needed: bool, sign: int) -> Any:
    """A coordinate; one of a single pixel gets the pixel size of the other axis where the attributes allow that."""
    coordinate = data.coords[axis]
    if not is_needed or coordinate.size != 1 or coordinate.attrs.get("resolution"):
        return coordinate
    steps = np.diff(data.coords[other].values.astype("float64") if other in data.coords else np.zeros(0))
    if data.attrs.get(SQUARE) is not True or not len(steps):
        raise InvalidArgumentError(f"coordinates: {axis!r} has one value, which does not tell the pixel size: set "
                                   f"attrs['transform'], or attrs[{SQUARE!r}] = True to take that of {other!r}")
    return coordinate.assign_attrs(resolution=sign * abs(float(steps.mean())))


def affine_order(transform: "tuple[float, ...] | None") -> "tuple[float, ...] | None":
    if transform is None:
        return None
    c, a, b, f, d, e = transform
    return a, b, c, d, e, f
