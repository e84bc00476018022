"""Pixels of VRTs by xarray-spatial's rules: sources are painted in order, each over those before, by nearest
neighbour; what no source covers is NaN or 0."""

import dataclasses
import math
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import lazy
from ...errors import CorruptError, InvalidArgumentError, IOError, LimitExceededError, NotFoundError, UnsupportedError
from ...errors import about, MissingFileError, NotTiffError
from ...file import File
from ...read import MAX_PIXELS, _touched
from . import arguments
from .attributes import check_header, status_of
from .contract import CONTRACT, GEOREF_STATUS_ROTATED_DROPPED, NOT_GIVEN
from .errors import (BandIndexError, GeoTIFFAmbiguousMetadataError, GeoTIFFFallbackWarning, PixelSafetyLimitError,
                     VRTStableSourcesOnlyError)
from .vrt import check, parse, system_of, Vrt, VrtSource

if TYPE_CHECKING:
    import xarray as xr

BLOCK = 256
MOST_NAMED = 3  # missing sources, in a message
# Of a source that cannot be read; what else is raised is a mistake of ours.
UNREADABLE = (IOError, NotTiffError, CorruptError, UnsupportedError, NotFoundError, OSError,
              GeoTIFFAmbiguousMetadataError)


def open_vrt(path: str, *, dtype: Any, window: Any, bbox: Any, overview_level: Any, band: Any, default_name: Any,
             chunks: Any, gpu: bool, max_pixels: Any, on_gpu_failure: Any, missing_sources: Any, allow_rotated: bool,
             allow_unparseable_crs: bool, allow_invalid_nodata: bool, stable_only: bool,
             allow_experimental_codecs: bool, band_nodata: Any, masked: bool, unpack: bool,
             parse_coordinates: bool) -> "xr.DataArray":
    """open_geotiff of a VRT."""
    missing_sources = check_words(path, locals())
    vrt = parse(path)
    with about(path):
        check_band(band, len(vrt.bands))
        bounds = window_of(vrt, window, bbox, allow_rotated)
        check(vrt, band, band_nodata, allow_rotated, allow_unparseable_crs)
        number = 1 if band is None else int(band) + 1
        bands = tuple(range(1, len(vrt.bands) + 1)) if band is None else (number,)
        result = None if dtype is None else np.dtype(dtype)
        pixels = VrtPixels(vrt, bands, natural_of(vrt, bands, bounds, masked and chunks is not None), masked, gpu,
                           missing_sources, (allow_rotated, allow_invalid_nodata))
        check_cast(pixels.dtype, result)
        check_size(pixels, bounds, max_pixels, chunks)
        data, holes = read_data(pixels, bounds, chunks)
        data = data if result is None else data.astype(result)
    attrs = attrs_of(vrt, bounds, number, masked, data.dtype if result is None else pixels.dtype, result)
    if holes:
        attrs["vrt_holes"] = holes
    return array_of(vrt, data, bounds, attrs, band, default_name)


# ---- arguments -------------------------------------------------------------------------------------------------------


def check_words(path: str, given: dict[str, Any]) -> str:
    """Refuses parameters that VRTs do not take; returns the policy for missing sources."""
    if given["stable_only"] and not given["allow_experimental_codecs"]:
        raise VRTStableSourcesOnlyError(f"{path}: a VRT is refused{arguments.only_stable(True)}; "
                                        "allow_experimental_codecs=True reads it")
    level = given["overview_level"]
    if level is not None and (isinstance(level, bool) or not isinstance(level, (int, np.integer))):
        raise TypeError(f"overview_level must be an int from 0 on, not {type(level).__name__} {level!r}")
    for name, is_given in (("overview_level", level not in (None, 0)), ("unpack", given["unpack"]),
                           ("parse_coordinates=False", not given["parse_coordinates"]),
                           ("on_gpu_failure", given["on_gpu_failure"] is not NOT_GIVEN)):
        if is_given:
            raise InvalidArgumentError(f"{path}: {name} is not supported for VRT")
    if given["band_nodata"] not in (None, "first"):
        raise InvalidArgumentError(f"band_nodata={given['band_nodata']!r} is neither None nor 'first'")
    missing = given["missing_sources"]
    if missing is NOT_GIVEN:
        return "raise"
    if missing not in ("raise", "warn"):
        raise InvalidArgumentError(f"missing_sources={missing!r} is neither 'raise' nor 'warn'")
    return "raise" if is_strict() else missing


def is_strict() -> bool:
    return os.environ.get("XRSPATIAL_GEOTIFF_STRICT", "").strip().lower() in ("1", "true", "yes", "on")


def check_band(band: Any, count: int) -> None:
    if band is None:
        return
    if isinstance(band, (bool, np.bool_)):
        raise InvalidArgumentError(f"band must be a non-negative int, not the bool {band!r}")
    if not isinstance(band, (int, np.integer)):
        raise TypeError(f"band must be a non-negative int, not {type(band).__name__} {band!r}")
    if not 0 <= band < count:
        raise BandIndexError(f"band={band} out of range: the VRT has {count} bands, counted from 0")


def window_of(vrt: Vrt, window: Any, bbox: Any, allow_rotated: bool) -> tuple[int, int, int, int]:
    if bbox is not None:
        arguments.check_bbox(bbox, window, Placed(vrt))  # type: ignore[arg-type]
        row0, column0, row1, column1 = _touched(tuple(float(side) for side in bbox), Placed(vrt).transform)
        return max(row0, 0), max(column0, 0), min(row1, vrt.height), min(column1, vrt.width)
    if window is None:
        return 0, 0, vrt.height, vrt.width
    arguments.check_window(window, (vrt.height, vrt.width))
    row0, column0, row1, column1 = (int(side) for side in window)
    return row0, column0, row1, column1


class Placed:
    """Name, transform and bounds of a VRT, as arguments.check_bbox asks a File for them."""

    def __init__(self, vrt: Vrt) -> None:
        from ...file import Transform
        self.name = vrt.path
        self.transform: Any = None if vrt.transform is None else Transform.from_gdal(vrt.transform)
        corners = [self.transform.at(column, row) for column in (0, vrt.width) for row in (0, vrt.height)] \
            if self.transform else []
        xs, ys = zip(*corners) if corners else ((), ())
        self.bounds = (min(xs), min(ys), max(xs), max(ys)) if corners else None


def natural_of(vrt: Vrt, bands: tuple[int, ...], bounds: Any, is_masked: bool) -> np.dtype:
    """The type of the result: of the bands; float64 if a source is scaled, or if integers may get NaN."""
    dtype = vrt.bands[bands[0] - 1].dtype
    if any(source.is_scaled for _, source in vrt.sources(bands)):
        return np.dtype("float64")
    may_be_masked = dtype.kind in "iu" and is_masked and any(
        is_sample(nodata_for(vrt, number, source), dtype) for number, source in vrt.sources(bands))
    return np.dtype("float64") if may_be_masked else dtype


def nodata_for(vrt: Vrt, number: int, source: VrtSource) -> Any:
    return vrt.bands[number - 1].nodata if source.nodata is None else source.nodata


def is_sample(nodata: Any, dtype: np.dtype) -> bool:
    if nodata is None or dtype.kind == "f":
        return nodata is not None
    return math.isfinite(nodata) and nodata == int(nodata) and np.iinfo(dtype).min <= int(nodata) <= \
        np.iinfo(dtype).max


def check_cast(natural: np.dtype, result: "np.dtype | None") -> None:
    if result is not None and natural.kind == "f" and result.kind in "iu":
        raise InvalidArgumentError(f"dtype={result}: the pixels are {natural}, and float to int would lose digits; use "
                                   "astype")


def check_size(pixels: "VrtPixels", bounds: Any, max_pixels: Any, chunks: Any) -> None:
    most = MAX_PIXELS if max_pixels is None else max_pixels
    count = len(pixels.bands) * (bounds[2] - bounds[0]) * (bounds[3] - bounds[1])
    if chunks is None and count > most:
        raise PixelSafetyLimitError(f"the pixels exceed the safety limit: {count} samples, more than max_pixels="
                                    f"{most}")


# ---- pixels ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class VrtPixels:
    """Bands of a VRT, as lazy.Pixels has those of a file: what Dask's tasks share."""

    vrt: Vrt
    bands: tuple[int, ...]
    dtype: np.dtype
    masked: bool
    gpu: bool
    missing_sources: str
    allowed: tuple[bool, bool]  # rotated sources, sources with an invalid nodata value

    interleave = "band"

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.bands), self.vrt.height, self.vrt.width

    @property
    def block_shape(self) -> tuple[int, int]:
        return min(BLOCK, self.vrt.height), min(BLOCK, self.vrt.width)

    def read(self, rows: slice = slice(None), columns: slice = slice(None), bands: Any = None) -> Any:
        return self.painted(rows, columns, self.bands if bands is None else bands)[0]

    def painted(self, rows: slice, columns: slice, bands: Any) -> tuple[Any, list[dict[str, Any]]]:
        """The pixels, and the holes of sources that could not be read."""
        row0, row1, _ = rows.indices(self.vrt.height)
        column0, column1, _ = columns.indices(self.vrt.width)
        module = lazy.array_module(self.gpu)
        fill = np.nan if self.dtype.kind == "f" else 0
        out, holes = module.full((len(bands), row1 - row0, column1 - column0), fill, self.dtype), []
        for index, number in enumerate(bands):
            for source in self.vrt.bands[int(number) - 1].sources:
                try:
                    out = self._paint(out, index, int(number), source, (row0, column0, row1, column1))
                except UNREADABLE as error:
                    holes.append(self._hole(int(number), source, error))
        return out, holes

    def _hole(self, number: int, source: VrtSource, error: BaseException) -> dict[str, Any]:
        if self.missing_sources == "raise":
            raise error
        hole = hole_of(number, source, str(error))
        warnings.warn(f"{source.path} could not be read ({error}): attrs['vrt_holes'] has its place; "
                      "XRSPATIAL_GEOTIFF_STRICT=1 makes it an error", GeoTIFFFallbackWarning, stacklevel=6)
        return hole

    def _paint(self, out: Any, index: int, number: int, source: VrtSource, bounds: Any) -> Any:
        rows, columns = (overlap(source.to[axis], source.to[axis + 2], bounds[start], bounds[start + 2])
                         for axis, start in ((1, 0), (0, 1)))
        if not rows or not columns or not source.of[2] or not source.of[3]:
            return out
        pixels = self._read_source(source, taken(rows, source, 1), taken(columns, source, 0))
        nodata = nodata_for(self.vrt, number, source)
        is_nodata = self._nodata_in(pixels, nodata)
        if source.is_scaled:
            pixels = pixels.astype("float64") * source.scale + source.offset
        if is_nodata is not None and out.dtype.kind != "f":
            if not is_nodata.any():
                is_nodata = None
            else:
                out = out.astype("float64")  # integers become floats when one is nodata
        pixels = converted(pixels, out.dtype)
        if is_nodata is not None:
            pixels = pixels.copy()
            pixels[is_nodata] = np.nan
        out[index, rows[0] - bounds[0]:rows[-1] + 1 - bounds[0], columns[0] - bounds[1]:columns[-1] + 1 - bounds[1]] \
            = pixels
        return out

    def _nodata_in(self, pixels: Any, nodata: Any) -> Any:
        """Where pixels are nodata; None if that does not matter."""
        if not self.masked or not is_sample(nodata, pixels.dtype):
            return None
        return pixels != pixels if nodata != nodata else pixels == pixels.dtype.type(nodata)

    def _read_source(self, source: VrtSource, rows: np.ndarray, columns: np.ndarray) -> Any:
        """Pixels at rows and columns of the source, by one read of the window that has them."""
        file = self._opened(source)
        height, width = file.shape[1:]
        if rows[-1] >= height or columns[-1] >= width:
            raise IOError(f"{source.path}: SrcRect {source.of} exceeds its {width} x {height} pixels")
        if not 1 <= source.band <= file.shape[0]:
            raise BandIndexError(f"{source.path}: SourceBand {source.band}, and the file has {file.shape[0]} bands")
        pixels = lazy.pixels_of(file, source=source.path, bands=(source.band,), gpu=self.gpu)
        window = pixels.read(slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1))[0]
        rows, columns = rows - rows[0], columns - columns[0]
        is_all = len(rows) == window.shape[0] and len(columns) == window.shape[1]
        return window if is_all else window[rows][:, columns]

    def _opened(self, source: VrtSource) -> File:
        if not os.path.exists(source.path):
            raise MissingFileError(f"{source.path}: there is no such file")
        file = lazy.opened(source.path)
        check_header(file, *self.allowed)
        return file


def overlap(start: int, length: int, first: int, last: int) -> range:
    return range(max(start, first), min(start + length, last))


def taken(span: range, source: VrtSource, axis: int) -> np.ndarray:
    """Rows or columns of the source for those of the raster: nearest neighbour, by the centres."""
    begin, count = source.of[axis], source.of[axis + 2]
    places = np.arange(span.start, span.stop) - source.to[axis]
    index = np.floor((places + 0.5) * count / source.to[axis + 2]).astype("int64")
    return begin + np.clip(index, 0, count - 1)


def converted(pixels: Any, dtype: np.dtype) -> Any:
    """To the type of the band: floats are rounded and clamped to integers, as GDAL does."""
    if pixels.dtype == dtype or dtype.kind == "f":
        return pixels.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    if pixels.dtype.kind == "f":
        pixels = np.trunc(np.nan_to_num(pixels) + np.copysign(0.5, pixels))
    return pixels.clip(max(limits.min, _least(pixels.dtype)), min(limits.max, _most(pixels.dtype))).astype(dtype)


def _least(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _most(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


def hole_of(number: int, source: VrtSource, message: str) -> dict[str, Any]:
    return {"source": source.path, "band": number, "dst_rect": source.to, "error": message}


def read_data(pixels: VrtPixels, bounds: Any, chunks: Any) -> tuple[Any, list[dict[str, Any]]]:
    """An array (band, y, x) and the holes; a Dask array with `chunks`, whose missing files are found now."""
    row0, column0, row1, column1 = bounds
    if chunks is None:
        return pixels.painted(slice(row0, row1), slice(column0, column1), pixels.bands)
    holes = []
    for number, source in pixels.vrt.sources(pixels.bands):
        is_inside = overlap(source.to[1], source.to[3], row0, row1) and overlap(source.to[0], source.to[2], column0,
                                                                                 column1)
        if is_inside and not os.path.exists(source.path):
            holes.append(hole_of(number, source, f"{source.path}: there is no such file"))
    if holes and pixels.missing_sources == "raise":
        names = list(dict.fromkeys(hole["source"] for hole in holes))
        raise MissingFileError(f"{', '.join(names[:MOST_NAMED])}{', ...' if len(names) > MOST_NAMED else ''}: no such "
                               f"file, {len(names)} missing source(s) total")
    from ...dask import blocks
    try:
        return blocks(pixels, chunks, bounds), holes
    except LimitExceededError as error:
        raise PixelSafetyLimitError(str(error)) from error


# ---- attributes ------------------------------------------------------------------------------------------------------


def attrs_of(vrt: Vrt, bounds: Any, number: int, masked: bool, dtype: np.dtype,
             result: "np.dtype | None") -> dict[str, Any]:
    attrs: dict[str, Any] = {"_xrspatial_geotiff_contract": CONTRACT}
    crs, wkt = system_of(vrt.srs) if vrt.srs else (None, None)
    transform = windowed(vrt, bounds)
    if vrt.is_rotated and transform is not None:
        c, a, b, f, d, e = transform
        attrs |= {"georef_status": GEOREF_STATUS_ROTATED_DROPPED, "_xrspatial_no_georef": True,
                  "rotated_affine": (a, b, c, d, e, f)}
    else:
        attrs["georef_status"] = status_of(transform, vrt.srs or None)
        if crs is not None and crs.startswith("EPSG:"):
            attrs["crs"] = int(crs.removeprefix("EPSG:"))
        if vrt.srs:
            attrs["crs_wkt"] = wkt or vrt.srs if "[" in vrt.srs else vrt.srs
        if transform is None:
            attrs["_xrspatial_no_georef"] = True
        else:
            c, a, _, f, _, e = transform
            attrs["transform"] = (a, 0.0, c, 0.0, e, f)
    if vrt.is_point:
        attrs["raster_type"] = "point"
    nodata = vrt.bands[number - 1].nodata
    if nodata is not None:
        attrs |= {"nodata": nodata, "masked_nodata": bool(masked and dtype.kind == "f")}
        if result is not None:
            attrs["nodata_dtype_cast"] = str(result)
    return attrs


def windowed(vrt: Vrt, bounds: Any) -> "tuple[float, ...] | None":
    if vrt.transform is None:
        return None
    c, a, b, f, d, e = vrt.transform
    row, column = bounds[:2]
    return c + column * a + row * b, a, b, f + column * d + row * e, d, e


def array_of(vrt: Vrt, data: Any, bounds: Any, attrs: dict[str, Any], band: Any, name: Any) -> "xr.DataArray":
    import xarray as xr
    row0, column0, row1, column1 = bounds
    rows, columns = np.arange(row0, row1), np.arange(column0, column1)
    if vrt.transform is not None and not vrt.is_rotated:
        # A transform is that of the first centre where pixels are points.
        half = 0.0 if vrt.is_point else 0.5
        c, a, _, f, _, e = vrt.transform
        rows, columns = f + (rows + half) * e, c + (columns + half) * a
    name = name or os.path.splitext(os.path.basename(vrt.path))[0]
    array = xr.DataArray(data, dims=("band", "y", "x"), coords={"y": rows, "x": columns}, name=name)
    if len(data) == 1:
        array = array.isel(band=0, drop=True)
    else:
        array = array.transpose("y", "x", "band").assign_coords(band=np.arange(len(data)))
    array.attrs = attrs
    return array
