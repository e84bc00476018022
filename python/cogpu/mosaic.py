"""Mosaics: many files, of different CRSs and resolutions, as one File on one grid.

`open_mosaic` opens them, `write_vrt` writes them as a VRT. A `Mosaic` is what one is made of, and a `Recipe` that as
bytes, which open it again in another process.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import pickle
import warnings
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _cogpu
from .arguments import flag, number, whole
from .errors import Error, InvalidArgumentError, SourceWarning
from .file import _engine_bands, File, named_dtype, SourceInfo, version_of
from .keywords import accept_other_names, translated
from .stored import path_of, source_of, Stored
from .target import engine_grid
from .urls import is_path, is_url, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ._types import (Bands, Composite, Crs, GridLike, MosaicSource, MosaicSources, Path, Resolution, Shape,
                         SourceOrFile, VrtSources, WarpResampling)

__all__ = ["Mosaic", "Recipe", "Source", "is_single", "open_mosaic", "write_vrt"]

OPENERS = 16  # threads that open sources which Python reads


@dataclasses.dataclass(frozen=True)
class Source:
    """A source of a mosaic with settings of its own.

    path        a path, a URL, a File or another source of `open`
    image       index of the image in a file with several (default: 0)
    bands       bands of the source that are the bands of the mosaic, from 1 (default: all)
    nodata      replaces the file's nodata; "none": it has none (default: the file's)
    mask        False: a mask in the file does not count (default: True)
    priority    sources are sorted by it, highest first; equal ones keep their order (default: 0)
    rpc_height  height above the ellipsoid, of a source that has RPCs only (default: 0)
    rpc_dem     path of a DEM, whose heights replace rpc_height (default: none)
    """

    path: SourceOrFile
    image: int = 0
    bands: Bands | None = None
    nodata: float | str | None = None
    mask: bool = True
    priority: int = 0
    rpc_height: float = 0.0
    rpc_dem: Path | None = None


@accept_other_names
def open_mosaic(sources: MosaicSources, *, crs: Crs | None = None, resolution: Resolution | None = None,
                bbox: Sequence[float] | None = None, bbox_crs: Crs | None = None, shape: Shape | None = None,
                like: GridLike | None = None, transform: Any = None, align: bool = False,
                resampling: WarpResampling = "nearest", composite: Composite = "first",
                dtype: npt.DTypeLike | None = None, nodata: float | str | None = None, max_error: float = 0.125,
                full_resolution: bool = False, skip_bad_sources: bool = False, priority: Sequence[int] | None = None,
                image: int = 0, sidecars: bool | None = None, limits: dict[str, int] | None = None,
                vrt_sources: VrtSources | None = None) -> File:
    """Opens many files as one File on one grid. No pixels are read; a read of a window reads the blocks of the sources
    that it needs, at the overview level that it needs, and resamples them. Sources on the grid are copied.

    What of the grid is not given is computed from the sources, as gdalwarp does: the CRS of the first source, the union
    of all sources, the finest resolution.

    sources           a source or several: paths, URLs, Files, other sources of `open`, Source objects, or dicts with
                      the fields of Source
    crs               CRS of the grid: a number of EPSG, a text, or an object with to_wkt
    resolution        size of a pixel in units of the CRS: a number, or (x, y)
    bbox              bounds of the grid: (left, bottom, right, top)
    bbox_crs          CRS of bbox (default: that of the grid)
    shape             (height, width); one of them may be None: pixels are square then
    like              the grid of a DataArray, Dataset, GeoBox, File, path or rasterio dataset; not with the others
    transform         affine transform of the grid: an Affine, or numbers (a, b, c, d, e, f); needs `shape`
    align             True: edges are multiples of the resolution (gdalwarp -tap; default: False)
    resampling        "nearest" (default), "bilinear", "cubic", "cubic_spline", "lanczos", "average", "rms", "mode",
                      "min", "max", "median", "q1", "q3", "sum", or rasterio's Resampling
    composite         pixel where valid ones overlap: of the "first" source (default) or the "last"; "min", "max",
                      "mean", "median" of all; or their "count"
    dtype             type of the samples (default: one that holds those of all sources)
    nodata            of pixels without a source; "none": 0, and not nodata (default: that of the first source that has
                      one, else 0)
    max_error         of a pixel's position, in source pixels; 0 or less: positions are exact (default: 0.125)
    full_resolution   True: overviews of the sources are not used (default: False)
    skip_bad_sources  True: sources that cannot be opened or read are left out, with a SourceWarning; see File.sources
                      (default: False)
    priority          a number for each source, in place of Source.priority: highest first
    image, sidecars, limits, vrt_sources    of the sources, as in `open`
    """
    grid = engine_grid(crs=crs, resolution=resolution, bbox=bbox, bbox_crs=bbox_crs, shape=shape, like=like,
                       transform=transform, align=align)
    options = {"resampling": _name(resampling), "composite": _name(composite),
               "dtype": None if dtype is None else named_dtype(dtype).name, "nodata": nodata_text(nodata),
               "max_error": _max_error(max_error), "full_resolution": flag("full_resolution", full_resolution),
               "skip_bad_sources": flag("skip_bad_sources", skip_bad_sources)}
    mosaic = Mosaic(_checked_sources(sources, image, priority), options,
                    {"grid": grid, "sidecars": sidecars, "limits": limits, "vrt_sources": vrt_sources})
    file = File._of_mosaic(mosaic)
    _warn_of_bad_sources(file, mosaic)
    return file


@accept_other_names
def write_vrt(path: Any, sources: MosaicSources, *, resolution: Resolution | None = None,
              bbox: Sequence[float] | None = None, shape: Shape | None = None, like: GridLike | None = None,
              transform: Any = None, align: bool = False, resampling: WarpResampling = "nearest",
              composite: Composite = "first", dtype: npt.DTypeLike | None = None, nodata: float | str | None = None,
              skip_bad_sources: bool = False, priority: Sequence[int] | None = None, image: int = 0,
              sidecars: bool | None = None, vrt_sources: VrtSources | None = None) -> Any:
    """Writes a mosaic as GDAL's VRT, as gdalbuildvrt does: sources have paths and one CRS, and composite is "first" or
    "last". Paths below the folder of the VRT are relative to it. Returns the VRT as a buffer if `path` is None.

    path      path of the VRT, an object with write, or None
    sources   those of open_mosaic, or a File that it returned, without other keywords

    Other parameters are those of open_mosaic. The first source is on top, while gdalbuildvrt has the last one there:
    composite="last" for that.
    """
    if isinstance(sources, File) and isinstance(sources._arguments["source"], Mosaic):
        return sources._file.write_vrt(path)
    with open_mosaic(sources, resolution=resolution, bbox=bbox, shape=shape, like=like, transform=transform,
                     align=align, resampling=resampling, composite=composite, dtype=dtype, nodata=nodata,
                     skip_bad_sources=skip_bad_sources, priority=priority, image=image, sidecars=sidecars,
                     vrt_sources=vrt_sources) as file:
        return file._file.write_vrt(path)


# ---- arguments -------------------------------------------------------------------------------------------------------


def is_single(sources: Any) -> bool:
    """One source, not several."""
    return is_path(sources) or isinstance(sources, (File, Source, Stored, Mapping, bytes, bytearray, memoryview)) or \
        hasattr(sources, "read") or hasattr(sources, "open") or not isinstance(sources, Iterable)


def _checked_sources(sources: Any, image: int, priority: Any) -> list[Source]:
    given: list[Any] = [sources] if is_single(sources) else list(sources)
    if not given:
        raise InvalidArgumentError("sources: there are none")
    checked = [_checked_source(source, image) for source in given]
    if priority is None:
        return checked
    priorities: list[Any] = list(priority)
    if len(priorities) != len(checked):
        raise InvalidArgumentError(f"priority: {len(priorities)} numbers for {len(checked)} sources")
    return [dataclasses.replace(source, priority=whole("priority", one)) for source, one in zip(checked, priorities)]


def _checked_source(source: MosaicSource, image: int) -> Source:
    if isinstance(source, Source):
        return source
    if isinstance(source, Mapping):
        fields = [field.name for field in dataclasses.fields(Source)]
        words: dict[str, Any] = {"image": image, **source}
        if "path" not in words:
            raise InvalidArgumentError(f"sources: {source!r} has no path")
        return Source(**translated("Source", fields, words))
    return Source(source, image=source.image if isinstance(source, File) else image)


def _name(value: Any) -> str:
    """Of an enumerator: a text, or a member of an enumeration such as rasterio's Resampling."""
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"{value!r} is not the name of a method")
    return name


def nodata_text(nodata: Any) -> str | None:
    if nodata is None or isinstance(nodata, str):
        return nodata
    if nodata != nodata:
        return "nan"
    return repr(number("nodata", nodata))


def _max_error(max_error: Any) -> float:
    """0 is the library's default, and exactness is negative there."""
    error = number("max_error", max_error)
    return float(error) if error > 0 else -1.0


def _warn_of_bad_sources(file: File, mosaic: Mosaic) -> None:
    if not mosaic.options["skip_bad_sources"]:
        return
    bad = [source for source in file.sources if source.error is not None]
    if bad:
        warnings.warn(f"{len(bad)} of {len(file.sources)} sources are left out; the first: {bad[0].error}",
                      SourceWarning, stacklevel=4)


# ---- descriptions ----------------------------------------------------------------------------------------------------


class Mosaic:
    """What a mosaic is made of."""

    def __init__(self, sources: list[Source], options: dict[str, Any], how: dict[str, Any]) -> None:
        self.sources, self.options, self.how = sources, options, how
        self.failed: list[SourceInfo] = []  # of those that Python opens

    def __repr__(self) -> str:
        return f"<mosaic of {len(self.sources)} sources>"

    def versions(self) -> list[Any]:
        """Of the sources."""
        return [version_of(source.path) for source in self.sources]

    def open_engine(self) -> _cogpu.File:
        pairs = list(zip(self.sources, self._open_others()))
        self.failed = [SourceInfo(source_name(source.path) or None, opened, False, False, (0, 0, 0, 0))
                       for source, opened in pairs if isinstance(opened, Error)]
        sources = [self._engine_source(source, opened) for source, opened in pairs if not isinstance(opened, Error)]
        return _cogpu.open_mosaic(sources, self.options, **self.how)

    def _engine_source(self, source: Source, opened: File | None) -> dict[str, Any]:
        """A dict with the fields of cogpu_mosaic_source that are not defaults."""
        where = {"path": os.fsdecode(path_of(source.path))} if opened is None else {"file": opened._file}
        fields = {"image": source.image and whole("image", source.image, 0), "bands": _engine_bands(source.bands),
                  "nodata": nodata_text(source.nodata), "ignore_mask": not flag("mask", source.mask),
                  "priority": source.priority, "rpc_height": source.rpc_height,
                  "rpc_dem": source.rpc_dem and os.fsdecode(path_of(source.rpc_dem))}
        return {**where, **{name: value for name, value in fields.items() if value}}

    def _open_others(self) -> list[File | Error | None]:
        """A File for each source that the engine does not open by a path, or why there is none."""
        whats = [source.path if isinstance(source.path, File) else source_of(source.path) for source in self.sources]
        others = [what for what in whats if not is_path(what) and not isinstance(what, File)]
        if not others:
            return [what if isinstance(what, File) else None for what in whats]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(OPENERS) as pool:
            opened = iter(list(pool.map(self._open_other, others)))
        return [what if isinstance(what, File) else None if is_path(what) else next(opened) for what in whats]

    def _open_other(self, source: Any) -> File | Error:
        try:
            return File(source, sidecars=self.how["sidecars"], limits=self.how["limits"])
        except Error as error:
            if not self.options["skip_bad_sources"]:
                raise
            return error

    @functools.cached_property
    def recipe(self) -> Recipe | None:
        """None if a source cannot be pickled."""
        try:
            content = pickle.dumps(([_anywhere(source) for source in self.sources], self.options, self.how))
        except (TypeError, AttributeError, pickle.PicklingError):
            return None
        return Recipe(zlib.compress(content, 1))


class Recipe:
    """A Mosaic as bytes, which are made once: many tasks that read it may be sent, and opened where they run."""

    def __init__(self, content: bytes) -> None:
        self.content, self.digest = content, hashlib.sha256(content).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe, (self.content,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<recipe of a mosaic, {len(self.content)} bytes>"

    def __dask_tokenize__(self) -> Any:
        return "cogpu.Recipe", self.digest

    def mosaic(self) -> Mosaic:
        mosaic = Mosaic(*pickle.loads(zlib.decompress(self.content)))
        mosaic.__dict__["recipe"] = self
        return mosaic

    def open(self) -> File:
        return File._of_mosaic(self.mosaic())

    def paths(self) -> list[str]:
        """Of the local files that it names."""
        sources = [source.path for source in self.mosaic().sources]
        names = [source.name if isinstance(source, File) else source for source in sources]
        return [os.fsdecode(path_of(name)) for name in names if is_path(name) and name and not is_url(name)]


def _anywhere(source: Source) -> Source:
    """With paths that mean the same in a process with another working directory."""
    changes: dict[str, Any] = {name: os.path.abspath(os.fsdecode(path_of(value))) for name, value in
               (("path", source.path), ("rpc_dem", source.rpc_dem)) if is_path(value) and not is_url(value)}
    return dataclasses.replace(source, **changes) if changes else source


def stem_source(sources: Any) -> str:
    """The name of a single source; "" of several."""
    source: Any = sources
    if isinstance(sources, Source):
        source = sources.path
    elif isinstance(sources, Mapping):
        source = cast("Mapping[str, Any]", sources).get("path")
    return source_name(source) if is_single(source) else ""
