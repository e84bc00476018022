"""The accessor `.xrs` of DataArrays and Datasets, as far as it reads, writes and plots GeoTIFFs. It is registered where
xarray-spatial has not registered its own, which reads and writes by that package."""

import importlib.util
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ...errors import InvalidArgumentError
from ...georef import crs_text
from .reading import open_geotiff, opened
from .writing import to_geotiff

if TYPE_CHECKING:
    from ...file import File


class DataArrayAccessor:
    """`array.xrs`"""

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def to_geotiff(self, path: Any, **options: Any) -> Any:
        """to_geotiff(array, path, **options)"""
        return to_geotiff(self._array, path, **options)

    def open_geotiff(self, source: Any, *, auto_reproject: bool = False, **options: Any) -> xr.DataArray:
        """Reads the part of a GeoTIFF that covers this array: as a Dask array where this is one, on the GPU where it
        lies on one. The coordinate systems must be the same: xarray-spatial reprojects (auto_reproject=True), we do
        not."""
        return open_around(self._array, self._array, source, auto_reproject, options)

    def plot(self, **options: Any) -> Any:
        """array.plot(**options), with the palette of the file where attrs has one."""
        array = self._array.compute()
        palette = array.attrs.get("colormap")
        if palette is not None and "cmap" not in options:
            from matplotlib.colors import BoundaryNorm, ListedColormap

            colours = np.asarray(palette, dtype="float64").reshape(3, -1).T / 65535
            edges = np.arange(len(colours) + 1) - 0.5
            options = {"cmap": ListedColormap(colours), "norm": BoundaryNorm(edges, len(colours)), **options}
        return array.plot(**options)


class DatasetAccessor:
    """`dataset.xrs`"""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def _variable(self, var: "str | None") -> xr.DataArray:
        if var is not None:
            return self._dataset[var]
        for array in self._dataset.data_vars.values():
            if {"y", "x"} <= set(array.dims):
                return array
        raise InvalidArgumentError("the Dataset has no variable with the dimensions y and x")

    def to_geotiff(self, path: Any, var: "str | None" = None, **options: Any) -> Any:
        """Writes a variable: `var`, or the first one with the dimensions y and x."""
        return to_geotiff(self._variable(var), path, **options)

    def open_geotiff(self, source: Any, *, auto_reproject: bool = False, var: "str | None" = None,
                     **options: Any) -> xr.DataArray:
        """As that of a DataArray, for the grid of the Dataset and the kind of `var`, or of the first variable."""
        return open_around(self._dataset, self._variable(var), source, auto_reproject, options)


def open_around(grid: Any, like: xr.DataArray, source: Any, auto_reproject: bool,
                options: dict[str, Any]) -> xr.DataArray:
    for name in ("window", "bbox"):
        if name in options:
            raise TypeError(f"{name}: the array says which part is read; call open_geotiff(source, {name}=...)")
    if auto_reproject or options.pop("coregister", False):
        raise InvalidArgumentError("auto_reproject and coregister need xarray-spatial: read the file, and reproject it "
                                   "with rioxarray or odc-geo")
    if "y" not in grid.coords or "x" not in grid.coords:
        raise InvalidArgumentError("the array has no coordinates y and x, which say the part that is read")
    check_same_crs(like.attrs.get("crs", grid.attrs.get("crs")), opened(source))
    if like.chunks is not None:
        options.setdefault("chunks", (max(like.chunksizes["y"]), max(like.chunksizes["x"])))
    if "cupy" in sys.modules and isinstance(like.data, sys.modules["cupy"].ndarray):
        options.setdefault("gpu", True)
    return open_geotiff(source, bbox=extent_of(grid), **options)


def check_same_crs(crs: Any, file: "File") -> None:
    mine = crs_text(crs)
    if mine is None or file.crs is None or mine == file.crs:
        return
    if importlib.util.find_spec("pyproj"):
        import pyproj

        if pyproj.CRS.from_user_input(mine) == pyproj.CRS.from_user_input(file.crs):
            return
    raise InvalidArgumentError(f"{file.name}: its coordinate system is not that of the array ({mine}): reproject one "
                               "of them")


def extent_of(grid: Any) -> tuple[float, float, float, float]:
    """(xmin, ymin, xmax, ymax) of the pixels, whose centres the coordinates are."""
    sides = []
    for axis in ("x", "y"):
        centres = np.asarray(grid.coords[axis].values, dtype="float64")
        half = abs(centres[-1] - centres[0]) / max(len(centres) - 1, 1) / 2
        sides.append((centres.min() - half, centres.max() + half))
    (left, right), (bottom, top) = sides
    return left, bottom, right, top


def plot_geotiff(da: xr.DataArray, **options: Any) -> Any:
    """Deprecated, as in xarray-spatial: use da.xrs.plot()."""
    warnings.warn("plot_geotiff is deprecated: use da.xrs.plot()", DeprecationWarning, stacklevel=2)
    return DataArrayAccessor(da).plot(**options)


def register() -> None:
    """Where xarray-spatial is imported, its accessors stand; where it is imported later, they replace these."""
    if not hasattr(xr.DataArray, "xrs"):
        xr.register_dataarray_accessor("xrs")(DataArrayAccessor)
    if not hasattr(xr.Dataset, "xrs"):
        xr.register_dataset_accessor("xrs")(DatasetAccessor)
