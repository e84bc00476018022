"""File: an open raster. Metadata are attributes, pixels are arrays.

The extension module (_cogpu) checks its arguments; this module adds names and defaults.
"""

from __future__ import annotations

import functools
import math
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _cogpu
from ._cogpu import Array
from .arguments import flag, whole
from .errors import ArgumentError, MetadataWarning, UnsupportedError, about
from .grids import window_bounds
from .later import np
from .stored import Stored, source_of
from .urls import is_path, shown, source_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ._types import Bands, Resampling, Source, SourceOrFile, Window

# Complex integers, which NumPy has not, appear as complex floats that hold all of them.
COMPLEX_INTEGERS = {"complex_int16": "complex64", "complex_int32": "complex128"}


BEYOND = {"boundless", "fill_value", "out_shape", "resampling"}  # words of read that are not the engine's
# A number at the beginning of a text, as GDAL and the engine take one.
NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")


class Transform(NamedTuple):
    """From columns and rows to coordinates, of corners of pixels: x = a * column + b * row + c and
    y = d * column + e * row + f."""

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
        """The coordinates (x, y) of a place in the image."""
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


def dtype_of(name):
    """NumPy's dtype for the engine's name of a sample type."""
    return np.dtype(COMPLEX_INTEGERS.get(name, name))


def named_dtype(dtype):
    """NumPy's dtype for what a caller gave as `dtype`."""
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype: {error}") from error


def float_for(dtype):
    """The float dtype in which samples get NaN or a scale: float32 where it holds each of them, as in xarray."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return dtype
    return np.dtype("float32" if dtype.itemsize <= 2 else "float64")


def _is_scaling(role, text):
    found = NUMBER.match(text)
    number = float(found[0].replace(",", ".")) if found else math.nan
    return math.isfinite(number) and (role == "offset" or number != 0)


def engine_window(bounds):
    """(row0, col0, row1, col1) as the engine's (x, y, width, height)."""
    row0, column0, row1, column1 = bounds
    return column0, row0, column1 - column0, row1 - row0


def _engine_bands(bands):
    if bands is None:
        return None
    if isinstance(bands, (str, bytes)):
        raise TypeError(f"bands must be an int or a sequence of them, not {bands!r}")
    return tuple(whole("bands", band) for band in (bands if np.iterable(bands) else [bands]))


def _engine_stream(stream):
    """The address of a stream: a number, or a stream of CuPy, PyTorch or cuda.core."""
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for name in ("ptr", "cuda_stream"):
        if hasattr(stream, name):
            return getattr(stream, name)
    return stream


class File:
    """An open file, made by cogpu.open. Many threads may use it at once; it can be pickled where it came from a path,
    a URL or a Stored, and is opened again then. What it says of the file:

    shape, dtype          (bands, height, width), NumPy's dtype of samples
    levels                a list of Level, 0 the full resolution
    block_shape, codec, predictor, interleave
    transform             a Transform, or None (see has_transform); bounds: (left, bottom, right, top), or None
    crs                   "EPSG:32633", or WKT, or None; wkt: WKT, or None
    nodata                int or float that samples can be, or None; nodatavals: of each band
    files                 paths of the file and of the sidecars in use
    tags, items           metadata: of the image by name, and all of it; metadata(band, domain): of a band, a domain
    descriptions, units, scales, offsets, interpretations    of bands, a tuple each
    palette, gcps, rpc, area_or_point, images, warning, name, state, info (the engine's own words)
    """

    def __init__(self, source: Source, *, image: int = 0, sidecars: bool | None = None,
                 limits: dict[str, int] | None = None) -> None:
        opened = source_of(source)
        self._arguments: dict[str, Any] = dict(source=source if is_path(source) else opened,
                                               image=whole("image", image), sidecars=sidecars, limits=limits)
        if isinstance(opened, bytes) and not is_path(opened):
            opened = memoryview(opened)  # the engine takes bytes for a path
        self._file = _cogpu.File(opened, sidecars=sidecars, limits=limits)
        self.image, self.sidecars, self._has_warned = self._arguments["image"], sidecars, False
        try:
            self.info = self._file.info(self.image)
        except BaseException:
            self._file.close()
            raise

    # ---- life ------------------------------------------------------------------------------------

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; who still reads from it comes to an end first. Arrays stay."""
        self._file.close()

    def __reduce__(self):
        if not isinstance(self._arguments["source"], (str, bytes, os.PathLike, Stored)):
            raise TypeError("a File can be pickled where it came from a path, a URL or a Stored")
        return _open_again, (self._arguments,)

    def __repr__(self):
        bands, height, width = self.shape
        return f"<cogpu.File {self.name!r}: {bands} x {height} x {width} {self.dtype}, {self.codec}>"

    # ---- facts -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The path, the URL without user info and query, or what the object that is read from calls itself; else ""."""
        return source_name(self._arguments["source"])

    @functools.cached_property
    def state(self) -> str | None:
        """Version identifier of the file, which differs once the file changed: of a URL ETag, Last-Modified and size, of
        a path size, modification time and inode. None for other sources. Reads of a file that changed since it was
        opened raise IOError."""
        return self._file.state()

    @property
    def files(self) -> list[str]:
        """The file, where it has a name, and the sidecars that something was taken from (.ovr, .msk, .aux.xml, ...)."""
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

    def _level(self, index):
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
        """ "band" where each band has blocks of its own, else "pixel"."""
        return "band" if self.info["planar"] else "pixel"

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
        """ "EPSG:32633" where the file names a code, else WKT, or None."""
        crs = self._file.crs(self.image)
        if crs is None:
            return None
        if crs["authority"] and not crs["vertical"]:
            return f"{crs['authority']}:{crs['code']}"
        return self.wkt

    @functools.cached_property
    def wkt(self) -> str | None:
        """WKT2, by PROJ; None where there is no coordinate system, no PROJ, or PROJ cannot name it."""
        return self._file.wkt(self.image)

    @property
    def nodata(self) -> int | float | None:
        """The sample that means that there is none, or None. What the file states and no sample can be, as -9999 or NaN
        for uint8, is None too: info["nodata_text"] has what is stated."""
        return self.info["nodata"] if self.info["nodata_matches"] else None

    @property
    def nodatavals(self) -> tuple[int | float | None, ...]:
        """`nodata` of each band: a file has one for all, but its .aux.xml can state others."""
        return tuple(band["nodata"] if band["nodata_matches"] else None for band in self._bands)

    @functools.cached_property
    def items(self) -> list[dict[str, Any]]:
        """GDAL_METADATA and metadata of .aux.xml: dicts of domain, name, value, role, band (0: of the image)."""
        return self._file.items(self.image)

    @property
    def tags(self) -> dict[str, str]:
        """Metadata of the image itself, the default domain, by name. See `metadata` for those of bands and domains."""
        return self.metadata()

    def metadata(self, band: int = 0, domain: str = "") -> dict[str, str]:
        """Metadata of a band, or of the image (0), in one domain, by name: what rasterio calls tags(band, ns=domain).
        The document of a domain as "xml:NAME" is called "doc"."""
        return {item["name"]: item["value"] for item in self.items
                if item["domain"] == domain and not item["role"] and item["band"] == whole("band", band, 0)}

    def domains(self, band: int = 0) -> tuple[str, ...]:
        """The domains that have metadata of a band, or of the image (0); "" is the default one."""
        return tuple(dict.fromkeys(item["domain"] for item in self.items
                                   if item["band"] == whole("band", band, 0) and not item["role"]))

    @functools.cached_property
    def _malformed_scales(self):
        """(band, "scale" or "offset", text) of items that the engine does not apply."""
        return [(item["band"], item["role"], item["value"]) for item in self.items
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
    def _bands(self):
        return [self._file.band(self.image, band) for band in range(1, self.info["bands"] + 1)]

    def _of_bands(self, name):
        return tuple(band[name] for band in self._bands)

    @property
    def descriptions(self) -> tuple[str | None, ...]:
        """A text or None for each band."""
        return self._of_bands("description")

    @property
    def units(self) -> tuple[str | None, ...]:
        """A text or None for each band."""
        return self._of_bands("unit")

    @property
    def scales(self) -> tuple[float, ...]:
        """value = stored * scale + offset; 1 if none is stated."""
        return self._of_bands("scale")

    @property
    def offsets(self) -> tuple[float, ...]:
        """0 where none is stated."""
        return self._of_bands("offset")

    @property
    def interpretations(self) -> tuple[str, ...]:
        """ "gray", "red", "undefined", ..."""
        return self._of_bands("interpretation")

    @property
    def palette(self) -> list[tuple[int, int, int]] | None:
        """(red, green, blue) of each value, 0 to 65535, or None."""
        return self.info["palette"]

    @property
    def gcps(self) -> list[tuple[float, ...]]:
        """Ground control points: (column, row, level, x, y, z)."""
        return self.info["gcps"]

    @property
    def rpc(self) -> tuple[float, ...] | None:
        """The 92 numbers of rational polynomial coefficients, or None. The first two, errors, are NaN where a sidecar
        does not state them."""
        return self.info["rpc"]

    @property
    def images(self) -> int:
        return self.info["images"]

    @property
    def area_or_point(self) -> str:
        return "Point" if self.info["pixel_is_point"] else "Area"

    @property
    def warning(self) -> str | None:
        """What in the file was not valid and was left out, or None."""
        return self.info["warning"]

    # ---- pixels ----------------------------------------------------------------------------------

    def read(self, window: Window | None = None, level: int = 0, bands: Bands | None = None, *,
             device: str | None = None, out: Any = None, stream: Any = None, dtype: npt.DTypeLike | None = None,
             masked: bool = False, scaled: bool = False, fill_bad_blocks: bool = False, wait: bool = True,
             threads: int = 0, boundless: bool = False, fill_value: float | None = None,
             out_shape: Sequence[int] | None = None, resampling: Resampling = "nearest") -> Array:
        """Reads pixels into an Array, shaped (band, y, x).

        window           (row0, col0, row1, col1), half-open, inside the level; ((row0, row1), (col0, col1)); two
                         slices; or rasterio's Window; None: all
        level            of the pyramid; 0 is the full resolution
        bands            a band or several, from 1 on, in any order; None: all
        device           "cpu", "cuda", "cuda:1", "emu"; None: where `out` lies, or the host
        out              an array that the pixels go to, of any library, in any strides; None: a new one
        stream           of a GPU: a number, or a stream of CuPy or PyTorch; None: the default stream
        dtype            float16, float32 or float64, to convert to; None: the file's, or what NaN or scales need
        masked           invalid pixels (nodata, mask, alpha) become NaN
        scaled           scale and offset of the bands are applied
        fill_bad_blocks  blocks that cannot be read become nodata, or 0, and are counted in Array.result
        wait             False: comes back while a GPU still decodes; see Array.wait
        threads          of the host; 0: one for each CPU core
        boundless        the window may reach beyond the level; pixels outside become fill_value
        fill_value       None: NaN where masked, else nodata, or 0
        out_shape        (height, width) of the output, as in rasterio: the level is chosen by GDAL's rule, and its
                         pixels are resampled; the window is of level 0
        resampling       "nearest", "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos" or "mode", or
                         rasterio's Resampling; invalid pixels have no weight
        """
        if scaled and not self._has_warned:
            self._warn_of_scales(stacklevel=2)
        if boundless or out_shape is not None:
            return self._read_beyond(window, level, bands, device, out, stream, dtype, masked, scaled, boundless,
                                     fill_value, out_shape, resampling, fill_bad_blocks=fill_bad_blocks,
                                     threads=threads)
        return self._read_level(window, level, bands, device=device, out=out, stream=stream, dtype=dtype, masked=masked,
                               scaled=scaled, fill_bad_blocks=fill_bad_blocks, wait=wait, threads=threads)

    def _read_level(self, window=None, level=0, bands=None, *, part="pixels", wait=True, threads=0, **how):
        # What `read` and `read_mask` do to a window inside a level, without a word about malformed scales.
        with about(self.name):
            request = self._request(window, level, bands, **how)
            if part == "pixels" and self.info["type"] in COMPLEX_INTEGERS:
                return self._read_complex_integers(request, threads)
            return self._file.read(**request, part=part, wait=wait, threads=threads)

    def _read_beyond(self, window, level, bands, device, out, stream, dtype, masked, scaled, *beyond, **how):
        """What `read` does where the window may reach beyond the level, or the output has another size."""
        from .beyond import read_beyond
        boundless, fill_value, out_shape, resampling = beyond
        with about(self.name):
            flag("boundless", boundless)
            dtype = self._result_dtype(dtype, out, masked, scaled)
            bands = _engine_bands(bands) or tuple(range(1, self.info["bands"] + 1))
            return read_beyond(self, window, whole("level", level), bands, boundless=boundless, fill_value=fill_value,
                               out_shape=out_shape, resampling=resampling, dtype=dtype, device=device,
                               out=out, stream=_engine_stream(stream), masked=masked, scaled=scaled,
                               **how)

    def read_mask(self, window: Window | None = None, level: int = 0, bands: Bands | None = None, *,
                  device: str | None = None, out: Any = None, stream: Any = None, wait: bool = True, threads: int = 0,
                  boundless: bool = False, out_shape: Sequence[int] | None = None) -> Array:
        """Reads the mask into an Array of uint8: 255 where a pixel is valid, else 0. Parameters are those of read;
        pixels outside of the level are not valid, and another size takes the nearest pixel."""
        if boundless or out_shape is not None:
            return self._read_beyond(window, level, bands, device, out, stream, "uint8", False, False, boundless, None,
                                     out_shape, "nearest", part="mask")
        return self._read_level(window, level, bands, part="mask", device=device, out=out, stream=stream, wait=wait,
                               threads=threads)

    def _read_complex_integers(self, request, threads):
        """Pairs of integers, converted here, since DLPack and NumPy have no such samples."""
        device, out, dtype = request.pop("device"), request.pop("out"), np.dtype(request.pop("dtype") or self.dtype)
        if dtype.kind != "c":
            raise ArgumentError(f"dtype must be complex for complex samples, not {dtype}")
        pairs = np.asarray(self._file.read(**request, threads=threads))
        values = pairs.astype(f"f{dtype.itemsize // 2}").view(dtype)[..., 0]
        if out is None:
            return _cogpu.place(values, device or "cpu")
        target = _cogpu.place(out, device or "cpu")
        if target.shape != values.shape or target.dtype != dtype.name:
            raise ArgumentError(f"out has the shape {target.shape} and dtype {target.dtype}, and the pixels "
                                f"{values.shape} and {dtype}")
        _fill(target, values, request["stream"])
        return target

    def _batched(self, **keywords):
        """The engine's keywords of a request of read_many."""
        if keywords.get("scaled") and not self._has_warned:
            self._warn_of_scales(stacklevel=4)
        with about(self.name):
            return self._request(**keywords)

    def _level_shape(self, level):
        """(height, width) of a level; AbsentError where there is none of that number."""
        if not 0 <= whole("level", level) < self.info["levels"]:
            self._file.level(self.image, level)
        return self.levels[level].shape

    def _result_dtype(self, dtype, out, masked, scaled):
        """The dtype that is asked for; None: the file's, or that of `out`."""
        if dtype is not None:
            return named_dtype(dtype)
        return float_for(self.dtype) if out is None and (masked or scaled) else None

    def _request(self, window=None, level=0, bands=None, *, device=None, out=None, stream=None, dtype=None,
                 masked=False, scaled=False, fill_bad_blocks=False) -> dict[str, Any]:
        """The engine's keywords for those of read."""
        dtype = self._result_dtype(dtype, out, masked, scaled)
        if window is not None:
            window = engine_window(window_bounds(window, self._level_shape(level)))
        return dict(image=self.image, level=whole("level", level), window=window,
                    bands=_engine_bands(bands), device=device, out=out, stream=_engine_stream(stream),
                    dtype=None if dtype is None else dtype.name, nan_where_invalid=masked, scaled=scaled,
                    fill_bad_blocks=fill_bad_blocks)


def _fill(target, values, stream):
    """Sets the samples of an Array; those of a GPU by CuPy, which knows strides there."""
    kind, _, number = target.device.partition(":")
    if kind != "cuda":
        np.asarray(target)[...] = values
        return
    try:
        import cupy
    except ImportError:
        raise UnsupportedError("out: complex integers are put into GPU memory by CuPy, which is not installed; "
                               "without out they are read into new memory") from None
    with cupy.cuda.Device(int(number)), cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null as used:
        cupy.asarray(target)[...] = cupy.asarray(values)
        used.synchronize()


def _open_again(arguments):
    return File(**arguments)


def open(source: Source, *, image: int = 0, sidecars: bool | None = None,
         limits: dict[str, int] | None = None) -> File:
    """Opens a file; no pixel is read.

    source    a path, a URL (https, http, s3, file; gs, az, abfs by obstore or fsspec, all others, as memory, by
              fsspec, where these are installed), the whole file as bytes or another buffer (bytes without a NUL are a
              path), a Stored, what fsspec.open gives, or an object with read and seek, which is asked for one range
              after the other
    image     of several in a file, from 0 on
    sidecars  whether files beside it are read, as GDAL does (.ovr, .msk, .aux.xml, world files, RPC files). None: of
              local files alone; True: of URLs too, with a request for each possible name; False: no
    limits    what a file may ask for at most: directories, tags, tag_bytes, blocks, block_bytes, bands, call_bytes
    """
    return File(source, image=image, sidecars=sidecars, limits=limits)


def read_many(requests: Iterable[tuple[File, dict[str, Any]]]) -> list[Array]:
    """Reads many windows, of one file or of many, as one piece of work: a list of (file, keywords of its read, but
    for wait and threads). Returns an Array for each. Requests with boundless or out_shape are read one by one."""
    requests = [_checked_request(request) for request in requests]
    arrays = [file.read(**keywords) if file.info["type"] in COMPLEX_INTEGERS or keywords.keys() & BEYOND else None
              for file, keywords in requests]
    batch = [(file._file, file._batched(**keywords)) for (file, keywords), array in zip(requests, arrays)
             if array is None]
    read = iter(_cogpu.read_many(batch))
    return [next(read) if array is None else array for array in arrays]


def _checked_request(request):
    words = {"window", "level", "bands", *(File._request.__kwdefaults__ or ()), *BEYOND}
    is_pair = isinstance(request, (tuple, list)) and len(request) == 2
    if not (is_pair and isinstance(request[0], File) and isinstance(request[1], dict) and request[1].keys() <= words):
        raise TypeError(f"requests must be pairs of a File and a dict of {', '.join(sorted(words))}, not {request!r}")
    return request


def check(source: SourceOrFile, *, strict: bool = False) -> dict[str, Any]:
    """Is it a valid Cloud Optimized GeoTIFF? A dict: "verdict" ("valid", "valid with warnings", "invalid"), those of
    "gdal", "rio_cogeo" and "ogc", counts, and "findings".

    source  what `open` takes, or a File
    strict  rules of the standard and warnings of rio-cogeo are faults too
    """
    if isinstance(source, File):
        return _cogpu.check(source._file, strict=strict)
    with open(source) as file:
        return _cogpu.check(file._file, strict=strict)
