"""Converts rows (band, y, x) to the file's sample type: on the host if requested, packed by scale and offset if values
were unpacked. Objects of this module are pickled into Dask tasks, so they hold no array.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from .arrays import TYPES, is_torch, on_host
from .errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class Conversion:
    """Rows in memory to rows as the engine takes them."""

    dtype: str
    to_host: bool = False
    packing: "Packing | None" = None
    fill: object = None

    def is_needless(self, rows: Any) -> bool:
        return rows.dtype == np.dtype(self.dtype) and not (self.to_host or self.packing or self.fill is not None)

    def __call__(self, rows: Any) -> Any:
        if self.to_host:
            rows = on_host(rows)
        if isinstance(rows, np.ma.MaskedArray):
            rows = rows.filled(self.fill)
        if self.packing:
            return self.packing(rows)
        if is_torch(rows):
            return rows.byte() if self.dtype == "uint8" else rows
        if rows.dtype == bool:
            return rows.view(np.uint8)
        return rows.astype(self.dtype, copy=False)


def fill_of(array: Any, nodata: Any) -> Any:
    """What masked samples of a NumPy masked array become: without nodata there is nothing that would say so."""
    if not isinstance(array, np.ma.MaskedArray):
        return None
    if nodata is None:
        raise InvalidArgumentError("data is a masked array: give nodata, which masked samples become; or data.data "
                                   "with mask=")
    return nodata


def packed_of(facts: dict[str, Any]) -> dict[str, Any]:
    """How values were stored before they were unpacked, complete: type, and scale and offset of each band."""
    packed = facts.get("packed") or {}
    if packed.get("dtype") is None:
        raise InvalidArgumentError("pack=True: the data does not say which type it is to be packed to: take a "
                                   "DataArray that was read with unscale=True, or set data.encoding['dtype']")
    dtype = np.dtype(packed["dtype"])
    if dtype.name not in TYPES or dtype.kind == "c":
        raise InvalidArgumentError(f"pack=True: values cannot be packed to the type {dtype}")
    scales, offsets = packed.get("scales") or (1.0,), packed.get("offsets") or (0.0,)
    if not all(scale and math.isfinite(scale) for scale in scales) or not all(map(math.isfinite, offsets)):
        raise InvalidArgumentError(f"pack=True: scales {scales} and offsets {offsets} must be finite, and no scale 0")
    return {"dtype": dtype, "scales": scales, "offsets": offsets}


@dataclasses.dataclass(frozen=True)
class Packing:
    """(value - offset) / scale, rounded, in the type of the file; what would not come back as it was is refused."""

    dtype: str
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    nodata: object = None

    def __call__(self, rows: Any) -> Any:
        scale, offset = (np.asarray(values, like=rows).reshape(-1, 1, 1) for values in (self.scales, self.offsets))
        invalid = np.isnan(rows)
        packed = (rows.astype("float64") - offset) / scale
        if np.dtype(self.dtype).kind in "iu":
            packed = self.whole(packed, invalid)
        packed = packed.astype(self.dtype)
        if self.nodata is not None:
            packed[invalid] = self.nodata
        return packed

    def whole(self, packed: Any, invalid: Any) -> Any:
        info = np.iinfo(self.dtype)
        packed = np.where(invalid, 0, np.rint(packed))
        if self.nodata is None and invalid.any():
            raise InvalidArgumentError(f"pack=True cannot restore integer dtype {self.dtype}: there are NaN, and no "
                                       "nodata that they could become: give nodata")
        if not ((packed >= info.min) & (packed < float(info.max + 1))).all():
            raise InvalidArgumentError(f"pack=True: {self.dtype} cannot represent all values: some are infinite or, "
                                       "divided by the scale, beyond its range")
        return packed
