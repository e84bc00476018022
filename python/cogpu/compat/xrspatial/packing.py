"""The inverse of a read with unpack=True: how values were stored, from the attributes of such a read."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    import xarray as xr


def packed_encoding(data: "xr.DataArray", nodata: Any) -> dict[str, Any]:
    """dtype, scale_factor and add_offset as cogpu.to_geotiff takes them from an encoding."""
    attrs = data.attrs
    scale, offset = attrs.get("scale_factor"), attrs.get("add_offset")
    for name, value in (("scale_factor", scale), ("add_offset", offset)):
        if value is not None and (not math.isfinite(value) or name == "scale_factor" and not value):
            raise InvalidArgumentError(f"pack=True cannot reverse attrs[{name!r}] = {value}")
    target = np.dtype(target_of(data, scale is not None or offset is not None))
    if nodata is not None and target.kind in "iu" and not is_sample(nodata, target):
        raise InvalidArgumentError(f"pack=True: nodata {nodata} cannot be represented in {target}")
    return {"dtype": str(target), "scale_factor": 1.0 if scale is None else float(scale),
            "add_offset": 0.0 if offset is None else float(offset)}


def target_of(data: "xr.DataArray", is_scaled: bool) -> Any:
    """The type of the samples: that of the file which was read; of floats that were only masked, their own; else that
    of an integer nodata value."""
    attrs = data.attrs
    if attrs.get("mask_and_scale_dtype") is not None:
        return attrs["mask_and_scale_dtype"]
    nodata = attrs.get("nodata")
    if isinstance(nodata, np.generic) and nodata.dtype.kind in "iu":
        return nodata.dtype
    if attrs.get("masked_nodata") or is_scaled:
        return data.dtype
    raise InvalidArgumentError("pack=True: the attributes have no unpack state (mask_and_scale_dtype, scale_factor, "
                               "masked_nodata): take a DataArray that was read with unpack=True")


def is_sample(nodata: Any, dtype: np.dtype) -> bool:
    limits = np.iinfo(dtype)
    return bool(math.isfinite(nodata)) and nodata == int(nodata) and limits.min <= int(nodata) <= limits.max
