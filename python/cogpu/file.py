"""File: an open raster. Metadata are attributes, pixels are arrays.

The extension module (_cogpu) checks its arguments; this module adds names and defaults.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from . import _cogpu
from ._cogpu import Array
from .arguments import flag, whole
from .errors import about, Error, InvalidArgumentError, MetadataWarning, UnsupportedError
from .grids import window_bounds
from .keywords import accept_other_names, translated
from .later import np
from .stored import path_of, source_of, Stored
from .urls import is_path, shown, source_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ._types import (Band, Bands, Bounds, Image, MetadataItem, Resampling, Sides, Source, SourceOrFile, VrtSources,
                         Window)
    from .mosaic import Mosaic, Recipe

# Complex integers, which NumPy has not, appear as complex floats that hold all of them.
COMPLEX_INTEGERS = {"complex_int16": "complex64", "complex_int32": "complex128"}


BEYOND = frozenset({"boundless", "fill_value", "out_shape", "resampling"})  # words of read that are not the engine's
# A number at the beginning of a text, as GDAL and the engine take one.
NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


class Transform(NamedTuple):
    """Affine transform from pixel corners to coordinates: x = a * column + b * row + c, y = d * column + e * row +
    f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @classmethod
    def from_gdal(cls, numbers: Iterable[float]) -> Transform:
        c, a, b, f, d, e = numbers
        return cls(a, b, c, d, e, f)

    def to_gdal(self) -> tuple[float, float, float, float, float, float]:
        """In GDAL's order: (c, a, b, f, d, e)."""
        return self.c, self.a, self.b, self.f, self.d, self.e

    def at(self, column: float, row: float) -> tuple[float, float]:
        """Coordinates (x, y) of a position in pixels."""
        return self.a * column + self.b * row + self.c, self.d * column + self.e * row + self.f


class Level(NamedTuple):
    """One resolution of an image; level 0 is the full one."""

    shape: tuple[int, int]  # (height, width)
    transform: Transform | None
    block_shape: tuple[int, int]
    codec: str
    predictor: int
    has_mask: bool
    external: bool  # in the .ovr file
    directory: int
    mask_external: bool = False  # in the .msk file


class SourceInfo(NamedTuple):
    """A source of a mosaic or VRT."""

    path: str | None  # None of an open file
    error: Error | None  # why it was left out; None: it was not
    is_reprojected: bool  # its CRS differs from the grid's
    is_copied: bool  # it is on the grid and needs no resampling
    window: tuple[int, int, int, int]  # pixels of the grid that it may touch: (row0, col0, row1, col1)


def _rows_first(window: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = window
    return top, left, bottom, right


def version_of(path: Any) -> Any:
    """Of a source of a mosaic: size, modification time and inode of a local file; None of others."""
    if isinstance(path, File):
        return path.version_id
    try:
        state = os.stat(path_of(path)) if is_path(path) else None
    except (OSError, ValueError):
        return None
    return state and (state.st_size, state.st_mtime_ns, state.st_ino)


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's dtype for the engine's name of a sample type."""
    return np.dtype(COMPLEX_INTEGERS.get(name, name))


def named_dtype(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype for what a caller gave as `dtype`."""
    try:
        named: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype: {error}") from error
    return named


def float_for(dtype: Any) -> np.dtype[Any]:
    """The float dtype in which samples get NaN or a scale: float32 where it holds each of them, as in xarray."""
    stored: np.dtype[Any] = np.dtype(dtype)
    if stored.kind in "fc":
        return stored
    return np.dtype("float32" if stored.itemsize <= 2 else "float64")


def _is_scaling(role: str, text: str) -> bool:
    found = NUMBER.match(text)
    number = float(found[0].replace(",", ".")) if found else math.nan
    return math.isfinite(number) and (role == "offset" or number != 0)


def engine_window(bounds: Bounds) -> tuple[int, int, int, int]:
    """(row0, col0, row1, col1) as the engine's (x, y, width, height)."""
    row0, column0, row1, column1 = bounds
    return column0, row0, column1 - column0, row1 - row0


def _engine_bands(bands: Any) -> tuple[int, ...] | None:
    if bands is None:
        return None
    if isinstance(bands, (str, bytes)):
        raise TypeError(f"bands must be an int or a sequence of them, not {bands!r}")
    try:
        each = iter(bands)
    except TypeError:
        each = [bands]
    return tuple(whole("bands", band) for band in each)


def _engine_stream(stream: Any) -> Any:
    """The address of a stream: a number, or a stream of CuPy, PyTorch or cuda.core."""
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return getattr(stream, name)
    return stream


class File:
    """An open file; create one with cogpu.open. Threads may share it. A File of a path, URL or Stored can be pickled;
    the copy opens the file again. Attributes:

    shape, dtype          (bands, height, width); NumPy's dtype of the samples
    levels                list of Level; 0 is the full resolution, 1 the first overview
    block_shape, codec, predictor, interleave
    transform, bounds     a Transform and (left, bottom, right, top), or None
    crs, wkt              "EPSG:32633" (WKT if there is no code) and WKT, or None
    nodata, nodatavals    nodata of band 1 and of each band: an int, a float or None
    tags, metadata_items  metadata of the image by name; all items of GDAL_METADATA. See metadata(band, domain)
    descriptions, units, scales, offsets, interpretations    tuples with one entry per band
    files, name           paths of the file and its sidecars; the file's path or URL
    version_id            identifies the version of the file: it changes when the file changes
    palette, gcps, rpc, area_or_point, images, warning
    sources               of a mosaic or VRT, a list of SourceInfo in the order of their priority; else empty
    info                  fields of cogpu_image by name
    """

    def __init__(self, source: Source, *, image: int = 0, sidecars: bool | None = None,
                 limits: dict[str, int] | None = None, vrt_sources: VrtSources | None = None) -> None:
        opened = source_of(source)
        arguments = dict(source=source if is_path(source) else opened, image=whole("image", image), sidecars=sidecars,
                         limits=limits, vrt_sources=vrt_sources)
        if isinstance(opened, bytes) and not is_path(opened):
            opened = memoryview(opened)  # the engine takes bytes for a path
        self._begin(_cogpu.File(opened, sidecars=sidecars, limits=limits, vrt_sources=vrt_sources), arguments)

    @classmethod
    def _of_mosaic(cls, mosaic: Mosaic) -> File:
        file = cls.__new__(cls)
        file._begin(mosaic.open_engine(), dict(source=mosaic, image=0, **mosaic.how))
        return file

    def _begin(self, opened: _cogpu.File, arguments: dict[str, Any]) -> None:
        self._file, self._arguments = opened, arguments
        self.image: int = arguments["image"]
        self.sidecars, self.vrt_sources = arguments["sidecars"], arguments["vrt_sources"]
        self._has_warned = False
        try:
            self.info: Image = self._file.info(self.image)
        except BaseException:
            self._file.close()
            raise

    # ---- life ------------------------------------------------------------------------------------

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file after pending reads. Arrays stay valid."""
        self._file.close()

    @property
    def _recipe(self) -> Recipe | None:
        """Of a mosaic: what opens it again in another process, if something can."""
        source = self._arguments["source"]
        return getattr(source, "recipe", None)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is not None:
            return _open_recipe, (self._recipe,)
        if not isinstance(self._arguments["source"], (str, bytes, os.PathLike, Stored)):
            raise TypeError("a File can be pickled where it came from paths, URLs or a Stored")
        return _open_again, (self._arguments,)

    def __repr__(self) -> str:
        bands, height, width = self.shape
        return f"<cogpu.File {self.name!r}: {bands} x {height} x {width} {self.dtype}, {self.codec}>"

    # ---- facts -----------------------------------------------------------------------------------

    @property
    def sources(self) -> list[SourceInfo]:
        """Sources of a mosaic or VRT in the order of their priority; an empty list for other files."""
        opened = [SourceInfo(None if source["path"] is None else shown(source["path"]), source["error"],
                             source["is_reprojected"], source["is_copied"], _rows_first(source["window"]))
                  for source in self._file.sources()]
        return opened + getattr(self._arguments["source"], "failed", [])

    @functools.cached_property
    def name(self) -> str:
        """Path, URL without user info and query, or the source object's `name`; else ""."""
        return source_name(self._arguments["source"])

    @functools.cached_property
    def version_id(self) -> str | None:
        """Version identifier. URL: ETag, Last-Modified and size; path: size, modification time and inode; other
        sources: None. It changes when the file changes, of a mosaic or VRT when a local source changes. Reads of a file
        that changed since it was opened raise IOError."""
        own, source = self._file.version_id(), self._arguments["source"]
        paths = [one["path"] for one in self._file.sources()]
        if not paths:
            return own
        import hashlib

        versions = source.versions() if hasattr(source, "versions") else map(version_of, paths)
        return hashlib.sha256(repr((own, *versions)).encode()).hexdigest()

    @property
    def files(self) -> list[str]:
        """The file, if it has a name, and the sidecars in use (.ovr, .msk, .aux.xml, ...)."""
        return [name for name in (self.name, *map(shown, self._file.sidecars())) if name]

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.info["bands"], self.info["height"], self.info["width"]

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.info["type"])

    @functools.cached_property
    def levels(self) -> list[Level]:
        return [self._level(index) for index in range(self.info["levels"])]

    def _level(self, index: int) -> Level:
        facts = self._file.level(self.image, index)
        transform = Transform.from_gdal(facts["transform"]) if facts["has_transform"] else None
        return Level((facts["height"], facts["width"]), transform, (facts["block_height"], facts["block_width"]),
                     facts["codec"], facts["predictor"], facts["has_mask"], facts["external"], facts["directory"],
                     facts["mask_external"])

    @property
    def block_shape(self) -> tuple[int, int]:
        return self.info["block_height"], self.info["block_width"]

    @property
    def codec(self) -> str:
        return self.info["codec"]

    @property
    def predictor(self) -> int:
        return self.info["predictor"]

    @property
    def interleave(self) -> str:
        """ "pixel": a block holds all bands; "band": each band has blocks of its own."""
        return self.info["interleave"]

    @property
    def has_transform(self) -> bool:
        return self.info["has_transform"]

    @property
    def transform(self) -> Transform | None:
        return Transform.from_gdal(self.info["transform"]) if self.has_transform else None

    @property
    def bounds(self) -> tuple[float, float, float, float] | None:
        """(left, bottom, right, top) of all pixels, or None without a transform."""
        transform = self.transform
        if transform is None:
            return None
        _, height, width = self.shape
        corners = [transform.at(column, row) for column in (0, width) for row in (0, height)]
        xs, ys = zip(*corners)
        return min(xs), min(ys), max(xs), max(ys)

    @functools.cached_property
    def crs(self) -> str | None:
        """ "EPSG:32633" if the file states a code, else WKT, or None."""
        crs = self._file.crs(self.image)
        if crs is None:
            return None
        if crs["authority"] and not crs["vertical"]:
            return f"{crs['authority']}:{crs['code']}"
        return self.wkt

    @functools.cached_property
    def wkt(self) -> str | None:
        """WKT2, by PROJ. None without a CRS, in a build without PROJ, or if PROJ cannot express the CRS."""
        return self._file.wkt(self.image)

    @property
    def nodata(self) -> int | float | None:
        """Nodata value of band 1, or None. A value that no sample can have, such as -9999 or NaN for uint8, is None;
        info["nodata_text"] has the text of the file."""
        return self.info["nodata"] if self.info["nodata_matches"] else None

    @property
    def nodatavals(self) -> tuple[int | float | None, ...]:
        """Nodata value of each band. A TIFF has one for all bands; its .aux.xml can state others."""
        return tuple(band["nodata"] if band["nodata_matches"] else None for band in self._bands)

    @functools.cached_property
    def metadata_items(self) -> list[MetadataItem]:
        """Metadata of GDAL_METADATA and .aux.xml: dicts of domain, name, value, role and band (0: the image)."""
        return self._file.metadata(self.image)

    @property
    def tags(self) -> dict[str, str]:
        """Metadata of the image in the default domain, by name. `metadata` has those of bands and other domains."""
        return self.metadata()

    def metadata(self, band: int = 0, domain: str = "") -> dict[str, str]:
        """Metadata of a band, or of the image (0), in one domain, by name: rasterio's tags(band, ns=domain). A domain
        "xml:NAME" holds one document, named "doc"."""
        return {item["name"]: item["value"] for item in self.metadata_items
                if item["domain"] == domain and not item["role"] and item["band"] == whole("band", band, 0)}

    def domains(self, band: int = 0) -> tuple[str, ...]:
        """Domains with metadata of a band, or of the image (0); "" is the default domain."""
        return tuple(dict.fromkeys(item["domain"] for item in self.metadata_items
                                   if item["band"] == whole("band", band, 0) and not item["role"]))

    @functools.cached_property
    def _malformed_scales(self) -> list[tuple[int, str, str]]:
        """(band, "scale" or "offset", text) of items that the engine does not apply."""
        return [(item["band"], item["role"], item["value"]) for item in self.metadata_items
                if item["role"] in ("scale", "offset") and 0 < item["band"] <= self.info["bands"]
                and not _is_scaling(item["role"], item["value"])]

    def _warn_of_scales(self, bands: Iterable[int] | None = None, stacklevel: int = 2) -> None:
        """Warns (MetadataWarning) of each scale and offset of some bands, or of all, that is not applied. Reads of this
        File do not warn again."""
        self._has_warned = True
        for band, role, text in self._malformed_scales:
            if bands is None or band in bands:
                finite = "a finite number" if role == "offset" else "a finite number other than 0"
                warnings.warn(f"{self.name or 'the file'}: the {role} of band {band} is {text!r}, which is not "
                              f"{finite}: it is not applied", MetadataWarning, stacklevel=stacklevel + 1)

    @functools.cached_property
    def _bands(self) -> list[Band]:
        return [self._file.band(self.image, band) for band in range(1, self.info["bands"] + 1)]

    @property
    def descriptions(self) -> tuple[str | None, ...]:
        """A text or None for each band."""
        return tuple(band["description"] for band in self._bands)

    @property
    def units(self) -> tuple[str | None, ...]:
        """A text or None for each band."""
        return tuple(band["unit"] for band in self._bands)

    @property
    def scales(self) -> tuple[float, ...]:
        """value = stored * scale + offset; 1 if none is stated."""
        return tuple(band["scale"] for band in self._bands)

    @property
    def offsets(self) -> tuple[float, ...]:
        """0 where none is stated."""
        return tuple(band["offset"] for band in self._bands)

    @property
    def interpretations(self) -> tuple[str, ...]:
        """ "gray", "red", "undefined", ..."""
        return tuple(band["interpretation"] for band in self._bands)

    @property
    def palette(self) -> list[tuple[int, int, int]] | None:
        """(red, green, blue) of each value, 0 to 65535, or None."""
        return self.info["palette"]

    @property
    def gcps(self) -> list[tuple[float, ...]]:
        """Ground control points: (column, row, pixel_z, x, y, z)."""
        return self.info["gcps"]

    @property
    def rpc(self) -> tuple[float, ...] | None:
        """The 92 numbers of tag 50844 (rational polynomial coefficients), or None. The first two are NaN if a sidecar
        does not state them."""
        return self.info["rpc"]

    @property
    def images(self) -> int:
        """Number of images in the file."""
        return self._file.image_count()

    @property
    def area_or_point(self) -> str:
        return "Point" if self.info["pixel_is_point"] else "Area"

    @property
    def warning(self) -> str | None:
        """Malformed parts of the file that were ignored, a line each, or None."""
        return self.info["warning"]

    # ---- pixels ----------------------------------------------------------------------------------

    @accept_other_names
    def read(self, window: Window | None = None, level: int = 0, bands: Bands | None = None, *,
             device: str | None = None, out: Any = None, stream: Any = None, dtype: npt.DTypeLike | None = None,
             masked: bool = False, unscale: bool = False, fill_bad_blocks: bool = False, wait: bool = True,
             threads: int = 0, boundless: bool = False, fill_value: float | None = None,
             out_shape: Sequence[int] | None = None, resampling: Resampling = "nearest",
             decode: str | None = None) -> Array:
        """Reads pixels into an Array, shaped (band, y, x).

        window           (row0, col0, row1, col1), half-open, inside the level; ((row0, row1), (col0, col1)); two
                         slices; or rasterio's Window (default: all pixels)
        level            overview level; 0 is the full resolution (default: 0)
        bands            a band or several, from 1, in any order (default: all)
        device           "cpu", "cuda", "cuda:1", "emu" (default: the device of `out`, or "cpu")
        out              array of any library that is filled, with any strides (default: a new one)
        stream           CUDA stream: a number, or a stream of CuPy or PyTorch (default: the default stream)
        dtype            float16, float32 or float64 (default: the file's dtype; with masked or unscale a float)
        masked           True: invalid pixels (nodata, mask, alpha) become NaN
        unscale          True: scale and offset of the bands are applied
        fill_bad_blocks  True: blocks that cannot be read become nodata, or 0, and are counted in Array.result
        wait             False: returns while the GPU decodes; see Array.wait
        threads          CPU threads (default: one per CPU core)
        boundless        True: the window may exceed the level; pixels outside become fill_value
        fill_value       pixels outside (default: NaN if masked, else nodata, or 0)
        out_shape        (height, width) of the output, as in rasterio. GDAL's rule chooses the level, whose pixels are
                         resampled; the window counts pixels of level 0
        resampling       "nearest" (default), "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos", "mode",
                         or rasterio's Resampling. Invalid pixels have no weight
        decode           device that decodes pixels for host memory: "cpu" (default), "cuda", "cuda:1", "emu"
        """
        if unscale and not self._has_warned:
            self._warn_of_scales(stacklevel=3)
        if boundless or out_shape is not None:
            return self._read_beyond(window, level, bands, device, out, stream, dtype, masked, unscale, boundless,
                                     fill_value, out_shape, resampling, fill_bad_blocks=fill_bad_blocks,
                                     threads=threads, decode=decode)
        return self._read_level(window, level, bands, device=device, out=out, stream=stream, dtype=dtype, masked=masked,
                               unscale=unscale, fill_bad_blocks=fill_bad_blocks, wait=wait, threads=threads,
                               decode=decode)

    def _read_level(self, window: Any = None, level: int = 0, bands: Any = None, *, content: str = "pixels",
                    wait: bool = True, threads: int = 0, **how: Any) -> Array:
        # What `read` and `read_mask` do to a window inside a level, without a word about malformed scales.
        with about(self.name):
            request = self._request(window, level, bands, **how)
            if content == "pixels" and self.info["type"] in COMPLEX_INTEGERS:
                return self._read_complex_integers(request, threads)
            return self._file.read(**request, content=content, wait=wait, threads=threads)

    def _read_beyond(self, window: Any, level: int, bands: Any, device: str | None, out: Any, stream: Any, dtype: Any,
                     masked: bool, unscale: bool, *beyond: Any, **how: Any) -> Array:
        """What `read` does where the window may reach beyond the level, or the output has another size."""
        from .beyond import read_beyond
        boundless, fill_value, out_shape, resampling = beyond
        with about(self.name):
            flag("boundless", boundless)
            dtype = self._result_dtype(dtype, out, masked, unscale)
            bands = _engine_bands(bands) or tuple(range(1, self.info["bands"] + 1))
            return read_beyond(self, window, whole("level", level), bands, boundless=boundless, fill_value=fill_value,
                               out_shape=out_shape, resampling=resampling, dtype=dtype, device=device,
                               out=out, stream=_engine_stream(stream), masked=masked, unscale=unscale,
                               **how)

    @accept_other_names
    def read_mask(self, window: Window | None = None, level: int = 0, bands: Bands | None = None, *,
                  device: str | None = None, out: Any = None, stream: Any = None, wait: bool = True, threads: int = 0,
                  boundless: bool = False, out_shape: Sequence[int] | None = None, decode: str | None = None) -> Array:
        """Reads the mask into an Array of uint8: 255 for a valid pixel, else 0. Parameters are those of read. Pixels
        outside the level are invalid. With out_shape the mask is resampled by "nearest"."""
        if boundless or out_shape is not None:
            return self._read_beyond(window, level, bands, device, out, stream, "uint8", False, False, boundless, None,
                                     out_shape, "nearest", content="mask", decode=decode)
        return self._read_level(window, level, bands, content="mask", device=device, out=out, stream=stream, wait=wait,
                               threads=threads, decode=decode)

    def _read_complex_integers(self, request: dict[str, Any], threads: int) -> Array:
        """Pairs of integers, converted here, since DLPack and NumPy have no such samples."""
        device, out, dtype = request.pop("device"), request.pop("out"), np.dtype(request.pop("dtype") or self.dtype)
        if dtype.kind != "c":
            raise InvalidArgumentError(f"dtype must be complex for complex samples, not {dtype}")
        pairs = np.asarray(self._file.read(**request, threads=threads))
        values = pairs.astype(f"f{dtype.itemsize // 2}").view(dtype)[..., 0]
        if out is None:
            return _cogpu.place(values, device or "cpu")
        target = _cogpu.place(out, device or "cpu")
        if target.shape != values.shape or target.dtype != dtype.name:
            raise InvalidArgumentError(f"out has the shape {target.shape} and dtype {target.dtype}, and the pixels "
                                       f"{values.shape} and {dtype}")
        _fill(target, values, request["stream"])
        return target

    def _batched(self, **keywords: Any) -> dict[str, Any]:
        """The engine's keywords of a request of read_many."""
        if keywords.get("unscale") and not self._has_warned:
            self._warn_of_scales(stacklevel=4)
        with about(self.name):
            return self._request(**keywords)

    def _level_shape(self, level: int) -> Sides:
        """(height, width) of a level; NotFoundError if there is no such level."""
        if not 0 <= whole("level", level) < self.info["levels"]:
            self._file.level(self.image, level)
        return self.levels[level].shape

    def _result_dtype(self, dtype: Any, out: Any, masked: bool, unscale: bool) -> np.dtype[Any] | None:
        """The dtype that is asked for; None: the file's, or that of `out`."""
        if dtype is not None:
            return named_dtype(dtype)
        return float_for(self.dtype) if out is None and (masked or unscale) else None

    def _request(self, window: Any = None, level: int = 0, bands: Any = None, *, device: str | None = None,
                 out: Any = None, stream: Any = None, dtype: Any = None, masked: bool = False, unscale: bool = False,
                 fill_bad_blocks: bool = False, decode: str | None = None) -> dict[str, Any]:
        """The engine's keywords for those of read."""
        dtype = self._result_dtype(dtype, out, masked, unscale)
        if window is not None:
            window = engine_window(window_bounds(window, self._level_shape(level)))
        return dict(image=self.image, level=whole("level", level), window=window,
                    bands=_engine_bands(bands), device=device, out=out, stream=_engine_stream(stream),
                    dtype=None if dtype is None else dtype.name, masked=masked, unscale=unscale,
                    fill_bad_blocks=fill_bad_blocks, decode=decode)


def _fill(target: Array, values: np.ndarray[Any, Any], stream: Any) -> None:
    """Sets the samples of an Array; those of a GPU by CuPy, which knows strides there."""
    kind, _, number = target.device.partition(":")
    if kind != "cuda":
        np.asarray(target)[...] = values
        return
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError:
        raise UnsupportedError("out: complex integers are put into GPU memory by CuPy, which is not installed; "
                               "without out they are read into new memory") from None
    with cupy.cuda.Device(int(number)), cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null as used:
        cupy.asarray(target)[...] = cupy.asarray(values)
        used.synchronize()


def _open_recipe(recipe: Recipe) -> File:
    return recipe.open()


def _open_again(arguments: dict[str, Any]) -> File:
    return File(**arguments)


@accept_other_names
def open(source: Source, *, image: int = 0, sidecars: bool | None = None,
         limits: dict[str, int] | None = None, vrt_sources: VrtSources | None = None) -> File:
    """Opens a file and reads its header. A VRT opens as the mosaic that it describes; see open_mosaic.

    source    a path; a URL (https, http, s3, file; gs, az and abfs by obstore or fsspec; others by fsspec); the
              content of a file as bytes or another buffer (bytes without a NUL byte are a path); a Stored; the result
              of fsspec.open; or an object with read and seek
    image     index of the image in a file with several, from 0 (default: 0)
    sidecars  whether files beside it are read, as GDAL does (.ovr, .msk, .aux.xml, world files, RPC files). None: of
              local files (default); True: of URLs too, one request for each possible name; False: no
    limits    dict of upper limits of what a file may take: directories, tags, tag_bytes, blocks, block_bytes, bands,
              working_memory_bytes, sources, vrt_bytes (default: see cogpu_limits)
    vrt_sources  which files a VRT may name: "below", those in its folder and below it; "any", URLs too, and other
              servers. None: of a local VRT local files, of a URL URLs of the same server (default)
    """
    return File(source, image=image, sidecars=sidecars, limits=limits, vrt_sources=vrt_sources)


def read_many(requests: Iterable[tuple[File, dict[str, Any]]]) -> list[Array]:
    """Reads many windows, of one file or several, as one batch. Returns an Array for each request.

    requests  pairs of a File and a dict with keywords of File.read, except `wait` and `threads`. Requests with
              `boundless` or `out_shape` are read one by one
    """
    checked = [_checked_request(request) for request in requests]
    arrays = [file.read(**keywords) if not BEYOND.isdisjoint(keywords) or file.info["type"] in COMPLEX_INTEGERS
              else None for file, keywords in checked]
    batch = [(file._file, file._batched(**keywords)) for (file, keywords), array in zip(checked, arrays)
             if array is None]
    read = iter(_cogpu.read_many(batch))
    return [next(read) if array is None else array for array in arrays]


_REQUEST_WORDS = frozenset({"window", "level", "bands", *(File._request.__kwdefaults__ or ()), *BEYOND})


def _checked_request(request: Any) -> tuple[File, dict[str, Any]]:
    try:
        file, keywords = request
    except (TypeError, ValueError):
        file, keywords = None, None
    if not isinstance(file, File) or type(keywords) is not dict:
        raise TypeError(f"requests must be pairs of a File and a dict of {', '.join(sorted(_REQUEST_WORDS))}, not "
                        f"{request!r}")
    given = cast("dict[str, Any]", keywords)
    return file, given if given.keys() <= _REQUEST_WORDS else translated("File.read", _REQUEST_WORDS, given)


def check(source: SourceOrFile, *, strict: bool = False) -> dict[str, Any]:
    """Validates a Cloud Optimized GeoTIFF by the rules of GDAL, rio-cogeo and the standard (OGC 21-026).

    Returns a dict: "verdict" ("valid", "valid with warnings" or "invalid"); the verdicts by the rules of "gdal",
    "rio_cogeo" and "ogc"; the counts "errors", "warnings", "notes" and "blocks"; and "findings", a list of dicts.

    source  a source of `open`, or a File
    strict  True: rules of the standard and warnings of rio-cogeo are errors too (default: False)
    """
    if isinstance(source, File):
        return _cogpu.check(source._file, strict=strict)
    with open(source) as file:
        return _cogpu.check(file._file, strict=strict)
