"""xarray's engine "cogpu": `xr.open_dataset(path, engine="cogpu")`; `xr.open_datatree` for a file and its overviews.

Opening reads the header only. `Lazy` reads pixels on access; it can be indexed, pickled and shared by threads. Names
are those of rioxarray's engine: a variable `band_data` (band, y, x) and a coordinate `spatial_ref`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from . import georef, lazy
from .errors import about, InvalidArgumentError
from .keywords import accept_other_names
from .mosaic import stem_source
from .read import has_grid, level_of, opened_for
from .urls import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._types import (Composite, Coordinates, Crs, Gpu, GridLike, OnGpuFailure, Resolution, Shape, VrtSources,
                         WarpResampling)
    from .file import File

DIMS = ("band", "y", "x")


class Engine(BackendEntrypoint):
    """xarray's engine "cogpu" for GeoTIFF and COG."""

    description = "GeoTIFF and COG, decoded by the CPU or by a GPU"
    supports_groups = True
    open_dataset_parameters = ("drop_variables", "mask_and_scale", "masked", "decode_coords", "level", "image",
                               "gpu", "on_gpu_failure", "parse_coordinates", "default_name", "sidecars", "crs",
                               "resolution", "bbox", "bbox_crs", "shape", "like", "transform", "align", "resampling",
                               "composite", "nodata", "max_error", "full_resolution", "skip_bad_sources",
                               "vrt_sources", "decode")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Modest: where rioxarray is installed, a .tif that is opened without an engine's name stays rioxarray's."""
        if not isinstance(filename_or_obj, (str, os.PathLike)) or importlib.util.find_spec("rioxarray"):
            return False
        return shown(filename_or_obj).lower().endswith((".tif", ".tiff", ".vrt"))

    @accept_other_names
    def open_dataset(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None,
                     mask_and_scale: bool = True, masked: bool = False, decode_coords: Any = "all",
                     level: int = 0, image: int = 0, gpu: Gpu = False,
                     on_gpu_failure: OnGpuFailure = "auto", parse_coordinates: Coordinates = True,
                     default_name: str = "band_data", sidecars: bool | None = None, crs: Crs | None = None,
                     resolution: Resolution | None = None, bbox: Sequence[float] | None = None,
                     bbox_crs: Crs | None = None, shape: Shape | None = None, like: GridLike | None = None,
                     transform: Any = None, align: bool = False, resampling: WarpResampling = "nearest",
                     composite: Composite = "first", nodata: float | str | None = None, max_error: float = 0.125,
                     full_resolution: bool = False, skip_bad_sources: bool = False,
                     vrt_sources: VrtSources | None = None, decode: str | None = None) -> xr.Dataset:
        """Opens one level of an image, a VRT, or a list of files as one mosaic, as a Dataset. Other parameters are
        those of open_geotiff.

        Parameters
        ----------
        mask_and_scale : True: invalid pixels become NaN, and scale and offset are applied (default); False: pixels as
            stored.
        masked : True: with mask_and_scale=False, invalid pixels become NaN (default: False).
        decode_coords : accepted, as in other engines; `spatial_ref` is always a coordinate.
        level : overview level (default: 0, the full resolution). `overview_level` is accepted.
        gpu : True: CuPy arrays; with `chunks` a Dask array of them. Coordinates are NumPy arrays (default: False).
        bbox : bounds of a grid of its own, in its CRS.
        """
        if bbox is not None and not has_grid(crs, resolution, bbox_crs, shape, like, transform, align):
            raise InvalidArgumentError("bbox: it is for a grid of its own; give crs or resolution too")
        file, origin = _open(filename_or_obj, image, sidecars, vrt_sources, crs=crs, resolution=resolution, bbox=bbox,
                           bbox_crs=bbox_crs, shape=shape, like=like, transform=transform, align=align,
                           resampling=resampling, composite=composite, nodata=nodata, max_error=max_error,
                           full_resolution=full_resolution, skip_bad_sources=skip_bad_sources)
        name = file.name or stem_source(filename_or_obj)
        return self._dataset(file, origin, name, level_of(file, level), drop_variables, default_name,
                             parse_coordinates, masked=masked, unscale=mask_and_scale, gpu=gpu,
                             on_gpu_failure=on_gpu_failure, decode=decode)

    def open_groups_as_dict(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None,
                            mask_and_scale: bool = True, masked: bool = False, decode_coords: Any = "all",
                            image: int = 0, gpu: Gpu = False, on_gpu_failure: OnGpuFailure = "auto",
                            parse_coordinates: Coordinates = True, default_name: str = "band_data",
                            sidecars: bool | None = None) -> dict[str, xr.Dataset]:
        """Opens all levels: groups /level_0 (full resolution), /level_1, ... below an empty root.

        The root is empty since groups inherit its coordinates, and levels have different ones.
        """
        file, origin = _open(filename_or_obj, image, sidecars)
        groups: dict[str, xr.Dataset] = {"/": xr.Dataset()}
        for level in range(len(file.levels)):
            groups[f"/level_{level}"] = self._dataset(
                file, origin, file.name, level, drop_variables, default_name, parse_coordinates, masked=masked,
                unscale=mask_and_scale, gpu=gpu, on_gpu_failure=on_gpu_failure)
        groups["/"].encoding.update(groups["/level_0"].encoding)
        return groups

    def open_datatree(self, filename_or_obj: Any, **parameters: Any) -> xr.DataTree:
        groups = self.open_groups_as_dict(filename_or_obj, **parameters)
        tree = xr.DataTree.from_dict(groups)
        for name, dataset in groups.items():
            tree[name].set_close(dataset._close)  # which from_dict forgets
        return tree

    def _dataset(self, file: File, origin: Any, source: str, level: int,
                 drop_variables: str | Iterable[str] | None, name: str,
                 parse_coordinates: Coordinates, **how: Any) -> xr.Dataset:
        with about(file.name):
            pixels = lazy.pixels_of(file, source=origin, level=level, **how)
            file._warn_of_scales(pixels.bands, stacklevel=5)
            coords, attrs, encoding = georef.describe(file, pixels, None, parse_coordinates)
        kind = xr.Variable if pixels.gpu is False else DeviceVariable
        data = kind(DIMS, indexing.LazilyIndexedArray(Lazy(pixels)), attrs, encoding)
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        dataset = xr.Dataset({} if name in dropped else {name: data},
                             {key: value for key, value in coords.items() if key not in dropped})
        if origin is not None:
            if source:
                dataset.encoding["source"] = source  # else xarray puts what it was called with, secrets and all
            dataset.set_close(functools.partial(lazy.release, origin))
        return dataset


def _open(source: Any, image: int, sidecars: bool | None, vrt_sources: Any = None, **words: Any) -> tuple[File, Any]:
    """The File, and what opens it again: its path, or the Recipe of a mosaic. To xarray bytes are a file's content."""
    if isinstance(source, bytes):
        source = memoryview(source)
    file, origin = opened_for(source, image, sidecars, vrt_sources, **words)
    return file, lazy.absolute(origin)


class Lazy(BackendArray):
    """Pixels as xarray indexes them: a slice, number or array for each dimension."""

    def __init__(self, pixels: lazy.Pixels) -> None:
        self.pixels, self.shape, self.dtype = pixels, pixels.shape, pixels.dtype

    def __getitem__(self, key: Any) -> Any:
        key = type(key)(tuple(_tidy(part, size) for part, size in zip(key.tuple, self.shape)))
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        """Reads the window that the key spans, of the bands that it names alone, and takes from that what it means."""
        band_key, *keys = key
        bands = np.atleast_1d(np.asarray(self.pixels.bands)[band_key])
        (rows, row_key), (columns, column_key) = (lazy.spanned(part, size) for part, size in zip(keys, self.shape[1:]))
        out = self.pixels.read(rows, columns, bands=bands)
        out = out[..., column_key][:, row_key]
        return out if isinstance(band_key, (slice, np.ndarray)) else out[0]


def _tidy(key: Any, size: int) -> Any:
    """xarray stumbles over empty slices with a negative step."""
    return slice(0, 0) if isinstance(key, slice) and not range(*key.indices(size)) else key


class DeviceVariable(xr.Variable):
    """A lazy variable whose pixels come to a GPU.

    xarray tells Dask that chunks of lazy variables are NumPy's, and Dask then copies them to the host. Here `chunk`, by
    which `chunks=` of open_dataset works too, says what they are.
    """

    __slots__ = ()

    def chunk(self, chunks: Any = None, *arguments: Any, **how: Any) -> Any:
        chunks = {} if chunks is None else chunks
        pixels = _pixels_below(self._data)
        if pixels is None:
            return super().chunk(chunks, *arguments, **how)
        from dask.array import from_array

        make_array: Any = from_array
        if isinstance(chunks, dict):
            chunks = {**chunks, **how}
            chunks = tuple(chunks.get(dim, size) for dim, size in zip(self.dims, self.shape))
        name = (how.get("from_array_kwargs") or how).get("name")
        meta = lazy.array_module(pixels.gpu).empty((0,) * self.ndim, self.dtype)
        data = make_array(_Sliceable(self._data), chunks, name=name, asarray=False, meta=meta)
        return xr.Variable(self.dims, data, self._attrs, self._encoding)


class _Sliceable:
    """A lazy array of xarray's, with all indexing that it has been through, as something that Dask can slice."""

    def __init__(self, lazily: Any) -> None:
        self.lazily = lazily
        self.shape, self.dtype, self.ndim = lazily.shape, lazily.dtype, lazily.ndim

    def __getitem__(self, key: Any) -> Any:
        return indexing.ImplicitToExplicitIndexingAdapter(self.lazily, indexing.OuterIndexer)[key].get_duck_array()


def _pixels_below(data: Any) -> lazy.Pixels | None:
    """The Pixels that a lazy array of xarray's rests on; None where it holds pixels already."""
    while isinstance(data, indexing.ExplicitlyIndexed) and not isinstance(data, Lazy):
        data = getattr(data, "array", None)
    return data.pixels if isinstance(data, Lazy) else None
