"""`to_geotiff`: writes arrays of NumPy, CuPy, torch, Dask and xarray.

A Plan holds the engine's profile (profile.py) and the rows (band, y, x), as views if possible (arrays.py,
conversion.py). The rows then go to the writer, here or by Dask.
"""

from __future__ import annotations

import dataclasses
import math
import os
import types
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from . import _cogpu
from .arguments import flag, whole
from .arrays import arrange, is_dask, is_xarray, mask_of, permuted, type_of
from .conversion import Conversion, Packing, fill_of, packed_of
from .errors import about, InvalidArgumentError, UnsupportedError
from .keywords import accept_other_names, defaults_of, translated
from .lazy import paths_of
from .profile import coding, colours, device_of, facts_of, grid, items_of, nodata_of, place, pyramid
from .progress import reporter
from .stored import ENGINE_SCHEMES, path_of
from .urls import is_path, scheme_of, shown, source_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._types import Crs, Gpu, Path, Writable

Target = TypeVar("Target", bound="Path | Writable | None")
CHUNK_BYTES = 256 << 20
PROGRESS_STEPS = 50


@accept_other_names
def to_geotiff(data: Any, path: Target, *, crs: Crs = None, nodata: float | None = None,
               transform: Sequence[float] | None = None, mask: Any = None, compression: str | None = "deflate",
               compression_level: int | None = None, max_z_error: float = 0.0, tiled: bool = True,
               tile_size: int | tuple[int, int] | None = None, predictor: bool | int | None = None,
               interleave: Literal["pixel", "band"] = "pixel", cog: bool = False,
               overview_levels: Sequence[int] | None = None, overview_resampling: str | None = None,
               bigtiff: bool | None = None, photometric: str | int = "auto", pack: bool = False,
               gpu: Gpu | None = None, streaming_buffer_bytes: int = CHUNK_BYTES,
               progress: bool | Callable[[int, int], Any] | None = None) -> Target | bytes:
    """Writes an array as a GeoTIFF or a Cloud Optimized GeoTIFF (COG), and returns `path`.

    An old file is replaced when the new one is complete; if writing fails, it stays. Its sidecars (.ovr, .msk,
    .aux.xml) are removed with it; InvalidArgumentError if `data` reads one of them. The array is not changed. Dask
    arrays, and arrays that xarray opened lazily, are read and written a few rows at a time.

    Parameters
    ----------
    data
        Array of NumPy, CuPy or torch, cogpu.Array, any array with DLPack, xarray.DataArray, or Dask array. 2-D, or 3-D
        with bands. Plain arrays are (band, y, x). The dimensions of a DataArray may have any order; their names are
        band (bands, channel), y (lat, latitude, row) and x (lon, longitude, col). bool is stored as uint8.
        Georeferencing, nodata, scales, units and tags of a DataArray are written too, as cogpu, rioxarray and
        xarray-spatial store them. attrs["band_tags"] and attrs["tag_domains"], JSON or dicts, become metadata of bands
        and of other domains.
    path
        Path, "s3://bucket/key", an object with write, or None: the file's bytes are returned. S3 objects are uploaded
        in parts while rows are written, with the settings of cogpu.configure(network=...). If a Dask cluster writes a
        COG to S3, workers upload most of it, each with the settings and credentials of its own process:
        client.run(cogpu.configure, network=...). An object is written from its current position; without seek,
        nothing is written before the file is complete.
    crs
        EPSG code, "EPSG:32633", WKT, PROJ string, or an object with to_wkt (default: that of the data).
    nodata
        Number that the sample type can hold; NaN for floats (default: that of the data: encoding _FillValue; attrs
        _FillValue, missing_value, fill_value, nodata, which must agree; nodatavals, one for all bands). A value of the
        data that no sample can have, such as -9999 after a cast to uint8, is left out with a warning. NaN in float
        data is stored as nodata if nodata is given here or the data was read masked; otherwise NaN stays NaN.
    transform
        Six numbers a, b, c, d, e, f (x = a col + b row + c, y = d col + e row + f, for pixel corners), or
        affine.Affine (default: that of the data).
    mask
        2-D array of bool or uint8, 0 or False for invalid pixels, stored as a mask directory (default: no mask). A
        Dask mask is computed along with the rows.
    compression
        "deflate" (default: all readers have it), "zstd" (faster), "lzw", "packbits", "lzma", "jpeg", "webp", "lerc",
        "lerc_deflate", "lerc_zstd"; "none" or None. rasterio's name `compress` is accepted.
    compression_level
        deflate 1 to 12 (6), zstd 1 to 22 (9), lzma 1 to 9 (6); quality of jpeg and webp 1 to 100 (75).
    max_z_error
        Largest change of a sample by LERC (default: 0, lossless).
    tiled, tile_size
        True: tiles (default); False: strips. tile_size is the side of tiles, or (height, width), multiples of 16
        (default: 512).
    predictor
        None: 2 for integers and 3 for floats with deflate, lzw and zstd (default). False or 1: none; True or 2:
        horizontal; 3: floating point.
    interleave
        "pixel" (default): a block holds all bands; "band": each band has blocks of its own.
    cog
        True: a COG, with tiles and overviews in the order of the standard (default: False).
    overview_levels
        Factors, ascending: [2, 4, 8]; []: none (default: for a COG 2, 4, 8 ... until one tile holds the level; else
        none).
    overview_resampling
        "average" or "mean", "nearest", "rms", "bilinear", "cubic", "mode", "min", "max", "median" (default: nearest
        with a palette and for complex samples, else average).
    bigtiff
        True, False, or None: BigTIFF if the file could exceed 4 GiB (default).
    photometric
        "minisblack", "miniswhite", "rgb", "rgba", "palette", "cmyk", "ycbcr", "cielab" or TIFF's number. "auto"
        (default): palette if attrs or encoding have a colormap; the interpretation in the data's encoding, which reads
        set for min-is-white, CMYK, YCbCr and CIELab; RGB for three bands of uint8, as in GDAL; else minisblack. Pixels
        are stored as they are.
    pack
        True: inverts a read with unscale=True. Scale and offset in the data's encoding are applied backwards, and
        values are stored in the dtype of the encoding; NaN becomes nodata. A value that does not fit is an error.
    gpu
        None: the GPU encodes arrays in GPU memory, the CPU all others (default). True: the current GPU encodes. False:
        the CPU encodes. "emu": an emulated GPU, for tests. On a Dask cluster (a `distributed` client) the CPU cores of
        the workers encode, also with True; the bytes of the file are those of a local write with False.
    streaming_buffer_bytes
        Bytes of rows in memory at a time, at least a row of blocks; on a cluster per worker (default: 256 MiB).
    progress
        True: a tqdm bar; or a function that is called with (rows done, rows in all) (default: none).
    """
    asked = {name: value for name, value in locals().items() if name not in ("data", "path")}
    with about(source_name(path)):
        written: Target | bytes = carry_out(plan(data, **asked), path, streaming_buffer_bytes, progress)
    return written


def carry_out(planned: Plan, path: Any, streaming_buffer_bytes: int = CHUNK_BYTES, progress: Any = None) -> Any:
    """Writes what was planned; returns `path`, or the file's bytes where it is None."""
    report = reporter(progress)
    budget = whole("streaming_buffer_bytes", streaming_buffer_bytes, 1, 1 << 62)
    target = path if path is None or hasattr(path, "write") else target_of(path)
    if is_dask(planned.array):
        from . import dask
        written = dask.write(planned, target, streaming_buffer_bytes=budget, report=report)
    else:
        written = push_all(planned, target, budget, report)
    return bytes(written["memory"]) if path is None else path


def target_of(path: Any) -> str | bytes:
    """A path or URL as the engine takes it; file:// URLs are paths."""
    if not is_path(path):
        raise TypeError(f"path must be a path, an object with write, or None, not {type(path).__name__}")
    if scheme_of(path) not in (None, "file", *ENGINE_SCHEMES):
        raise UnsupportedError(f"{shown(path)}: files are written to paths and to s3:// addresses; give an object with "
                               "write for others: with fsspec.open(url, 'wb') as target: ...")
    local: str | bytes | os.PathLike[str] = path_of(path)
    return os.fspath(local)


def push_all(planned: Plan, target: Any, budget: int, report: Callable[[int, int], Any] | None) -> dict[str, Any]:
    """Pushes an array that is there, or is read when it is indexed, in chunks of at most `budget` bytes."""
    _, height, _ = planned.shape
    step = planned.rows_per_chunk(budget)
    if report:
        step = min(step, planned.rows_per_chunk(math.ceil(planned.nbytes / PROGRESS_STEPS)))
    writer = _cogpu.Writer(target, planned.profile, planned.inputs)
    try:
        for start in range(0, height, step):
            stop = min(start + step, height)
            mask = planned.mask_rows(start, stop)
            writer.write_rows(planned.rows(start, stop), None if mask is None else np.asarray(mask))
            if report:
                report(stop, height)
    except BaseException:
        writer.abort()
        raise
    return writer.close()


def plan(data: Any, **parameters: Any) -> Plan:
    """What is to be written, from data and the parameters of to_geotiff: a Plan. Reads no pixel."""
    defaults = defaults_of(to_geotiff)
    asked = types.SimpleNamespace(**{**defaults, **translated("to_geotiff", defaults, parameters)})
    array, axes = arrange(data)
    facts = facts_of(data, axes, asked) if is_xarray(data) else {}
    bands, height, width = (1 if axis is None else int(array.shape[axis]) for axis in axes)
    if not bands * height * width:
        raise InvalidArgumentError(f"data of shape {tuple(array.shape)} has no pixels")
    shape = bands, height, width
    packed = packed_of(facts) if flag("pack", asked.pack) else None
    dtype = packed["dtype"] if packed else type_of(array)
    nodata = nodata_of(asked.nodata, facts.get("nodata"), dtype)
    mask = mask_of(asked.mask, shape)
    device = device_of(asked.gpu)
    profile = {"width": width, "height": height, "bands": bands, "type": str(dtype), "device": device,
               "mask": mask is not None, **coding(asked), **grid(asked), **pyramid(asked),
               **colours(asked, facts, bands, dtype), **place(asked, facts),
               "nodata": None if nodata is None else str(nodata),
               "nan_is_nodata": dtype.kind == "f" and (asked.nodata is not None or facts.get("masked", False)),
               "metadata": items_of(facts, packed or facts)}
    profile = {name: value for name, value in profile.items() if value is not None}
    packing = Packing(str(dtype), packed["scales"], packed["offsets"], nodata) if packed else None
    convert = Conversion(str(dtype), device == "cpu", packing, fill_of(array, nodata))
    return Plan(profile, shape, array, axes, convert, mask)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A file to be: the engine's profile, and where its rows come from."""

    profile: dict[str, Any]
    shape: tuple[int, int, int]  # bands, height, width
    array: Any  # as the user gave it; xarray's are Variables, which may be lazy
    axes: tuple[int | None, int, int]  # of band (or None), y and x in it
    convert: Conversion
    mask: Any = None  # (y, x), uint8, of NumPy or of Dask

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.convert.dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def inputs(self) -> list[str]:
        """Paths of files that are read while this is written, of which none may be removed as a sidecar."""
        return [path for array in (self.array, self.mask) for path in paths_of(array)]

    @property
    def block_rows(self) -> int:
        return _cogpu.level_layouts(self.profile)[0]["block_height"]

    @property
    def can_be_cut(self) -> bool:
        """All can, but for GPU memory where there is no CuPy: that is pushed as a whole."""
        return hasattr(self.array, "__getitem__")

    def rows_per_chunk(self, budget: int) -> int:
        """Rows that `budget` bytes hold: whole rows of blocks, one at least; all of what cannot be cut."""
        if not self.can_be_cut:
            return self.shape[1]
        rows = budget // (self.nbytes // self.shape[1])
        return max(rows // self.block_rows, 1) * self.block_rows

    def rows(self, start: int, stop: int) -> Any:
        """Rows from start to stop, (band, y, x), as they are to be stored: views where that can be; lazy of Dask."""
        if not self.can_be_cut:
            return self.array
        band, y, x = self.axes
        index = tuple(slice(start, stop) if axis == y else slice(None) for axis in range(len(self.array.shape)))
        rows = self.array[index]
        rows = rows.data if is_xarray(rows) else rows
        rows = permuted(rows, (y, x) if band is None else self.axes)
        rows = rows[None] if band is None else rows
        return self.convert_lazily(rows) if is_dask(rows) else self.convert(rows)

    def convert_lazily(self, rows: Any) -> Any:
        if self.convert.is_needless(rows):
            return rows
        if self.convert.packing:
            rows = rows.rechunk({0: -1})  # bands have scales of their own
        return rows.map_blocks(self.convert, dtype=self.dtype)

    def mask_rows(self, start: int, stop: int) -> Any:
        return None if self.mask is None else self.mask[start:stop]
