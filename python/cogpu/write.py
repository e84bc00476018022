"""to_geotiff: writes arrays of NumPy, CuPy, torch, Dask and xarray.

A Plan holds the engine's profile (profile.py) and the rows (band, y, x), as views if possible (arrays.py, conversion.py).
The rows then go to the writer, here or by Dask.
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
from .errors import ArgumentError, UnsupportedError, about
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


def to_geotiff(data: Any, path: Target, *, crs: Crs = None, nodata: float | None = None,
               transform: Sequence[float] | None = None, mask: Any = None, compression: str | None = "deflate",
               compression_level: int | None = None, max_z_error: float = 0.0, tiled: bool = True,
               tile_size: int | tuple[int, int] | None = None, predictor: bool | int | None = None,
               interleave: Literal["pixel", "band"] = "pixel", cog: bool = False,
               overview_levels: Sequence[int] | None = None, overview_resampling: str | None = None,
               bigtiff: bool | None = None, photometric: str | int = "auto", pack: bool = False,
               gpu: Gpu | None = None, streaming_buffer_bytes: int = CHUNK_BYTES,
               progress: bool | Callable[[int, int], Any] | None = None) -> Target | bytes:
    """Writes an array as a GeoTIFF or a Cloud Optimized GeoTIFF, and returns `path`.

    The file takes the place of an old one when it is complete, not before; where writing fails, the old one stands.
    Sidecars of the old file (.ovr, .msk, .aux.xml) are removed with it; ArgumentError where `data` reads one of them.
    The array is never changed. Dask arrays, and arrays that xarray opened lazily, are read and written a few rows at
    a time.

    Parameters
    ----------
    data
        Array of NumPy, CuPy or torch, cogpu.Array, anything with DLPack, xarray.DataArray, or a Dask array. 2-D, or
        with bands: plain arrays are (band, y, x); a DataArray may have its dimensions in any order, called band
        (bands, channel), y (lat, latitude, row) and x (lon, longitude, col). bool is stored as uint8. What a
        DataArray says of its georeferencing, its nodata, scale, units and tags, as our readers, rioxarray and
        xarray-spatial put it there, is written too; attrs["band_tags"] and attrs["tag_domains"], JSON or dicts,
        become tags of bands and of other metadata domains.
    path
        Path, or "s3://bucket/key" (which goes up in parts while rows are written, by the settings of
        cogpu.configure(network=); of a COG that a cluster writes the workers send most, each by the settings and
        credentials of its own process: client.run(cogpu.configure, network=...)), or an object with write (which is
        written to from where it stands; without seek nothing is written before all is known), or None: the file's
        bytes are returned.
    crs
        EPSG code, "EPSG:32633", WKT, a PROJ string, or an object with to_wkt; None: the one of the data.
    nodata
        Number that the sample type can hold, NaN for floats; None: the one of the data (encoding _FillValue; attrs
        _FillValue, missing_value, fill_value, nodata, which must agree; nodatavals, one for all bands). One of the data
        that samples cannot be, as -9999 after a cast to uint8, is left out with a warning. NaN in float data is stored
        as nodata where nodata was given here, or the data was read masked; NaN beside an unmasked nodata stays NaN.
    transform
        Six numbers a, b, c, d, e, f (x = a col + b row + c, y = d col + e row + f, of corners), or affine.Affine;
        None: the one of the data.
    mask
        2-D array of bool or uint8, 0 or False where a pixel is invalid, stored as a mask inside the file; None: no
        mask. One of Dask is computed along with the rows.
    compression
        "deflate" (the default: all readers have it), "zstd" (faster), "lzw", "packbits", "lzma", "jpeg", "webp",
        "lerc", "lerc_deflate", "lerc_zstd"; "none" or None.
    compression_level
        deflate 1 to 12 (6), zstd 1 to 22 (9), lzma 1 to 9 (6); the quality of jpeg and webp, 1 to 100 (75).
    max_z_error
        What LERC may change a sample by; 0: nothing.
    tiled, tile_size
        Tiles, or strips; the side of tiles, or (height, width), multiples of 16 (None: 512, which COGs have in
        practice: fewer requests than 256).
    predictor
        None: the one that fits the sample type (2 for integers, 3 for floats) with deflate, lzw and zstd: smaller
        files for little time. False or 1: none; True or 2: horizontal; 3: of floats.
    interleave
        "pixel" or "band": whether the bands of a pixel stand together, or each band has blocks of its own.
    cog
        True: a COG: tiles, with overviews, in the order that remote readers want.
    overview_levels
        Factors, ascending: [2, 4, 8]; []: none. None: of a COG 2, 4, 8 ... until one tile holds the level; else none.
    overview_resampling
        "average" or "mean", "nearest", "rms", "bilinear", "cubic", "mode", "min", "max", "median". None: nearest with a
        palette and for complex samples, else average.
    bigtiff
        True, False, or None: where the file could pass 4 GiB.
    photometric
        "minisblack", "miniswhite", "rgb", "rgba", "palette", "cmyk", "ycbcr", "cielab" or TIFF's number. "auto":
        palette where attrs has a colormap (colours of 16 bits) or the data was read from a file with one, which its
        encoding keeps; the one in the data's encoding, which a read sets for min-is-white, and for inks, YCbCr and
        CIELab that it left as they are; RGB for three bands of uint8, as GDAL; else minisblack. Pixels are stored as
        they are.
    pack
        True: the inverse of a read with unpack: values are divided back by the scale and offset in the data's
        encoding and stored in the type that it names; NaN becomes nodata. Values that do not fit are an error.
    gpu
        None: arrays on a GPU are encoded there, all others by the host. True: rows go up to the current GPU and are
        encoded there; False: by the host, a few rows at a time; "emu": an emulated GPU, for tests. Of Dask arrays on a
        cluster (a `distributed` client) the CPU cores of the workers encode, also with True, and this process puts the
        file together: its bytes are those of a local write with False.
    streaming_buffer_bytes
        Bytes of rows that are taken at a time (256 MiB), but at least a row of blocks; on a cluster by each worker.
    progress
        True: a bar of tqdm; or a function that is called with (rows done, rows in all).
    """
    asked = {name: value for name, value in locals().items() if name not in ("data", "path")}
    with about(source_name(path)):
        return carry_out(plan(data, **asked), path, streaming_buffer_bytes, progress)


def carry_out(planned, path, streaming_buffer_bytes=CHUNK_BYTES, progress=None):
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


def target_of(path):
    """A path or URL as the engine takes it; file:// URLs are paths."""
    if not is_path(path):
        raise TypeError(f"path must be a path, an object with write, or None, not {type(path).__name__}")
    if scheme_of(path) not in (None, "file", *ENGINE_SCHEMES):
        raise UnsupportedError(f"{shown(path)}: files are written to paths and to s3:// addresses; give an object with "
                               "write for others: with fsspec.open(url, 'wb') as target: ...")
    return os.fspath(path_of(path))


def push_all(planned, target, budget, report):
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
            writer.push(planned.rows(start, stop), None if mask is None else np.asarray(mask))
            if report:
                report(stop, height)
    except BaseException:
        writer.abort()
        raise
    return writer.close()


def plan(data, **parameters):
    """What is to be written, from data and the parameters of to_geotiff: a Plan. Reads no pixel."""
    defaults = to_geotiff.__kwdefaults__ or {}
    unknown = set(parameters) - set(defaults)
    if unknown:
        raise TypeError(f"unknown parameter {sorted(unknown)[0]!r}")
    asked = types.SimpleNamespace(**{**defaults, **parameters})
    array, axes = arrange(data)
    facts = facts_of(data, axes, asked) if is_xarray(data) else {}
    bands, height, width = (1 if axis is None else int(array.shape[axis]) for axis in axes)
    if not bands * height * width:
        raise ArgumentError(f"data of shape {tuple(array.shape)} has no pixels")
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
               "items": items_of(facts, packed or facts)}
    profile = {name: value for name, value in profile.items() if value is not None}
    packing = Packing(str(dtype), packed["scales"], packed["offsets"], nodata) if packed else None
    convert = Conversion(str(dtype), device == "cpu", packing, fill_of(array, nodata))
    return Plan(profile, shape, array, axes, convert, mask)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A file to be: the engine's profile, and where its rows come from."""

    profile: dict
    shape: tuple  # bands, height, width
    array: Any  # as the user gave it; xarray's are Variables, which may be lazy
    axes: tuple  # of band (or None), y and x in it
    convert: Conversion
    mask: Any = None  # (y, x), uint8, of NumPy or of Dask

    @property
    def dtype(self):
        return np.dtype(self.convert.dtype)

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def inputs(self):
        """Paths of files that are read while this is written, of which none may be removed as a sidecar."""
        return [path for array in (self.array, self.mask) for path in paths_of(array)]

    @property
    def block_rows(self):
        return _cogpu.outline(self.profile)[0]["block_height"]

    @property
    def can_be_cut(self):
        """All can, but for GPU memory where there is no CuPy: that is pushed as a whole."""
        return hasattr(self.array, "__getitem__")

    def rows_per_chunk(self, budget):
        """Rows that `budget` bytes hold: whole rows of blocks, one at least; all of what cannot be cut."""
        if not self.can_be_cut:
            return self.shape[1]
        rows = budget // (self.nbytes // self.shape[1])
        return max(rows // self.block_rows, 1) * self.block_rows

    def rows(self, start, stop):
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

    def convert_lazily(self, rows):
        if self.convert.is_needless(rows):
            return rows
        if self.convert.packing:
            rows = rows.rechunk({0: -1})  # bands have scales of their own
        return rows.map_blocks(self.convert, dtype=self.dtype)

    def mask_rows(self, start, stop):
        return None if self.mask is None else self.mask[start:stop]
