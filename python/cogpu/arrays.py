"""Properties of arrays of NumPy, CuPy, torch, Dask and xarray: axes of bands, rows and columns, sample type, device.

No library is imported that the array did not bring.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _cogpu
from .errors import InvalidArgumentError

AXES = {"band": ("band", "bands", "channel"), "y": ("y", "lat", "latitude", "row"),
        "x": ("x", "lon", "longitude", "col")}
TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
         "complex64", "complex128")


def arrange(data: Any) -> tuple[Any, tuple[int | None, int, int]]:
    """The array behind `data`, and which of its axes are band (None of 2-D ones), y and x."""
    if is_xarray(data):
        if not hasattr(data, "variable"):
            raise TypeError("data is an xarray.Dataset: give one variable, as data['name'], or all as bands, "
                            "as data.to_array('band')")
        return data.variable, axes_by_name(data.dims)
    array = sliceable(data)
    if len(array.shape) not in (2, 3):
        raise InvalidArgumentError(f"data has {len(array.shape)} dimensions; give (y, x) or (band, y, x)")
    return array, (None, 0, 1) if len(array.shape) == 2 else (0, 1, 2)


def axes_by_name(dims: Any) -> tuple[int | None, int, int]:
    role_of = {name: role for role, names in AXES.items() for name in names}
    found = {role_of[dim]: axis for axis, dim in enumerate(dims) if dim in role_of}
    for dim in dims:
        if dim not in role_of:
            raise InvalidArgumentError(f"data has the dimension {dim!r}, which is none of band, y and x: rename it, or "
                                       f"write one part at a time, as data.isel({dim}=0)")
    if len(found) != len(dims) or not {"y", "x"} <= set(found):
        raise InvalidArgumentError(f"data has the dimensions {tuple(dims)}; it takes one of y, one of x, and at most "
                                   "one of band")
    return found.get("band"), found["y"], found["x"]


def sliceable(data: Any) -> Any:
    """The data as something with a shape that can be cut into rows; what only speaks DLPack is wrapped, not copied."""
    if is_torch(data):
        return data.detach()  # torch: the gradient is not written
    if all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__")):
        return data
    if hasattr(data, "__dlpack_device__"):
        return wrapped(data)
    if hasattr(data, "__array_interface__"):
        return np.asarray(data)
    raise TypeError("data must be an array of NumPy, CuPy, torch, Dask or xarray, or speak DLPack, not "
                    f"{type(data).__name__}")


def wrapped(data: Any) -> Any:
    cuda = 2
    if data.__dlpack_device__()[0] != cuda:
        return np.from_dlpack(data)
    try:
        import cupy
    except ImportError:
        return data
    return cupy.from_dlpack(data)


def is_xarray(data: Any) -> bool:
    """Checked without importing xarray, which need not be installed."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(data, (xarray.DataArray, xarray.Dataset, xarray.Variable))


def is_dask(array: Any) -> bool:
    return array.chunks is not None if is_xarray(array) else hasattr(array, "__dask_graph__")


def is_torch(array: Any) -> bool:
    return hasattr(array, "detach")


def permuted(rows: Any, axes: Any) -> Any:
    if tuple(axes) == tuple(range(len(axes))):
        return rows
    return rows.permute(axes) if is_torch(rows) else rows.transpose(axes)


def type_of(array: Any) -> np.dtype[Any]:
    """NumPy's type of what will be stored: the array's own in the machine's byte order; bool is stored as uint8."""
    name = str(array.dtype).removeprefix("torch.") if not isinstance(array.dtype, np.dtype) else array.dtype.name
    if name == "bool":
        return np.dtype("uint8")
    if name not in TYPES:
        raise InvalidArgumentError(f"data has the type {name}, which a GeoTIFF has not: convert it first, as "
                                   "data.astype('float32')")
    return np.dtype(name)


def on_host(rows: Any) -> Any:
    if not rows.shape or 0 in rows.shape or _cogpu.device_of(rows) == "cpu":
        return rows
    if hasattr(rows, "get"):
        return rows.get()  # CuPy
    return rows.cpu() if is_torch(rows) else np.array(rows)


def mask_of(mask: Any, shape: tuple[int, int, int]) -> Any:
    """A mask as uint8, of NumPy or of Dask, if it has the rows and columns of the pixels."""
    if mask is None:
        return None
    mask = mask.data if is_xarray(mask) else mask
    if not is_dask(mask):
        mask = np.asarray(mask.get() if hasattr(mask, "get") else mask)  # CuPy's comes down
    if mask.shape != shape[1:] or mask.dtype not in (np.bool_, np.uint8):
        raise InvalidArgumentError(f"mask must be bool or uint8 of shape {shape[1:]}, not {mask.dtype} of {mask.shape}")
    return mask.view(np.uint8)
