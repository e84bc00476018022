"""Reads of windows that reach beyond a level, and of outputs of another size: what File.read and lazy arrays do with
`boundless`, `out_shape` and `resampling`.

A `Padded` or `Resampled` stands for the pixels of an output as lazy.Pixels does for those of a level: it can be read by
rows and columns, pickled, and made a Dask array of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from . import _cogpu
from .arguments import number
from .errors import InvalidArgumentError
from .grids import grid_of, out_sides, resampling_of, window_bounds
from .later import np
from .resample import array_module_of, read_padded, resampled

if TYPE_CHECKING:
    from ._cogpu import Array
    from ._types import Bounds
    from .file import File
    from .grids import Grid
    from .lazy import Pixels

__all__ = ["Padded", "Resampled", "fill_for", "read_beyond"]


def fill_for(file: File, bands: tuple[int, ...], dtype: Any, fill_value: Any, masked: bool = False,
             unscale: bool = False) -> Any:
    """What pixels outside become: `fill_value`, else NaN where masked, else nodata or 0, scaled as pixels are; a
    value, or a tuple with one for each band."""
    if fill_value is not None:
        is_nan = isinstance(fill_value, (float, np.floating)) and fill_value != fill_value
        fill = fill_value if is_nan else number("fill_value", fill_value)
        fits = dtype.kind in "fc" or not is_nan and fill == int(fill) and \
            np.iinfo(dtype).min <= int(fill) <= np.iinfo(dtype).max
        if not fits:
            raise InvalidArgumentError(f"fill_value={fill_value} does not fit pixels of {dtype}")
        return fill
    if masked:
        return float("nan")
    fill = 0 if file.nodata is None else file.nodata
    return tuple(fill * file.scales[band - 1] + file.offsets[band - 1] for band in bands) if unscale else fill


def kept_nodata(file: File, masked: bool, unscale: bool) -> int | float | None:
    """Nodata, where a valid pixel must not become that by resampling."""
    return None if masked or unscale or file.info["mask_source"] != "nodata" else file.nodata


# ---- File.read -------------------------------------------------------------------------------------------------------


def read_beyond(file: File, window: Any, level: int, bands: tuple[int, ...], *, boundless: bool, fill_value: Any,
                out_shape: Any, resampling: Any, dtype: Any, device: str | None, out: Any, stream: Any,
                masked: bool = False, unscale: bool = False, content: str = "pixels", decode: str | None = None,
                **how: Any) -> Array:
    """An Array. `bands` is a tuple, `dtype` of the Array, None for that of `out` or of the file, `content` "pixels" or
    "mask"; `how` are other words of File._read_level."""
    if out_shape is not None and level:
        raise InvalidArgumentError(f"level={level}: out_shape chooses the level; leave one of them out")
    bounds = window_bounds(window, file._level_shape(level), boundless)
    device = device or ("cpu" if out is None else _cogpu.device_of(out))
    sides = (bounds[2] - bounds[0], bounds[3] - bounds[1]) if out_shape is None else out_sides(out_shape, len(bands))

    def read_part(level, bounds, content, fill, array):
        words = {"bands": bands, "stream": stream, "device": device if device.startswith("emu") else None,
                 "decode": decode}
        words |= {"content": "mask"} if content == "mask" else {"masked": masked, "unscale": unscale, **how}
        return read_padded(array, bounds, file._level_shape(level), fill,
                           lambda inner, view: file._read_level(inner, level, out=view, **words))

    with _arrays_of(device, stream) as module:
        array = module.empty((len(bands), *sides), dtype or file.dtype) if out is None else \
            _checked(module, out, (len(bands), *sides), dtype)
        fill = 0 if content == "mask" else fill_for(file, bands, array.dtype, fill_value, masked, unscale)
        if out_shape is None:
            read_part(level, bounds, content, fill, array)
        else:
            grid = grid_of(file.levels, bounds, sides, resampling_of(resampling), boundless)
            _resample(grid, file, fill, kept_nodata(file, masked, unscale), masked, array,
                      functools.partial(read_part, grid.level), content)
        return _cogpu.place(array, device)


def _resample(grid, file, fill, nodata, masked, array, read, content="pixels", rows=None, columns=None):
    """Fills `array` with rows and columns (slices; None: all) of the output; `read(bounds, content, fill, new array)`
    reads a window of the level, "pixels" or "mask"."""
    module = array_module_of(array)
    has_invalid = grid.resampling != "nearest" and not masked and (file.info["mask_source"] != "none" or grid.boundless)

    def pixels_and_mask(bounds):
        shape = len(array), bounds[2] - bounds[0], bounds[3] - bounds[1]
        pixels = read(bounds, content, fill, module.empty(shape, array.dtype))
        if grid.resampling == "nearest":
            return pixels, None
        if masked:
            return pixels, ~module.isnan(pixels)
        return pixels, read(bounds, "mask", 0, module.empty(shape, "uint8")) if has_invalid else None

    rows, columns = rows or slice(0, grid.shape[0]), columns or slice(0, grid.shape[1])
    return resampled(grid, rows, columns, pixels_and_mask, fill, nodata, array)


def _checked(module, out, shape, dtype):
    out = module.asarray(out)
    out = out[None] if out.ndim == 2 else out
    if out.shape != shape or dtype is not None and out.dtype != dtype:
        raise InvalidArgumentError(f"out has the shape {out.shape} and dtype {out.dtype}, and the pixels {shape} and "
                                   f"{dtype or out.dtype}")
    return out


@contextlib.contextmanager
def _arrays_of(device, stream):
    """NumPy, or CuPy with the device current and the stream in use."""
    kind, _, index = device.partition(":")
    if kind != "cuda":
        yield np
        return
    from .lazy import array_module
    cupy = array_module(True)
    with cupy.cuda.Device(int(index)) if index else contextlib.nullcontext():
        with cupy.cuda.ExternalStream(stream) if stream else cupy.cuda.Stream.null as used:
            yield cupy
            used.synchronize()


# ---- lazy arrays -----------------------------------------------------------------------------------------------------


def _reader(pixels, bands):
    """What reads a window of the level into a view."""
    def read(inner, view):
        row0, column0, row1, column1 = inner
        pixels.read(slice(row0, row1), slice(column0, column1), bands, out=view)
    return read


class _Derived:
    """What an output has in common with the lazy.Pixels that it rests on."""

    source = property(lambda self: self.pixels.source)
    bands = property(lambda self: self.pixels.bands)
    dtype = property(lambda self: self.pixels.dtype)
    level = property(lambda self: self.pixels.level)
    masked = property(lambda self: self.pixels.masked)
    unscale = property(lambda self: self.pixels.unscale)
    gpu = property(lambda self: self.pixels.gpu)
    interleave = property(lambda self: self.pixels.interleave)

    def read(self, rows=slice(None), columns=slice(None), bands=None):
        """Pixels of rows and columns of the output, each a slice of step 1, shaped (band, y, x)."""
        from .lazy import array_module
        bands = self.bands if bands is None else tuple(int(band) for band in bands)
        rows, columns = (slice(*span.indices(length)[:2]) for span, length in zip((rows, columns), self.shape[1:]))
        shape = len(bands), max(rows.stop - rows.start, 0), max(columns.stop - columns.start, 0)
        out = array_module(self.gpu).empty(shape, self.dtype)
        return self._read_into(out, rows, columns, bands) if out.size else out

    def _fill_of(self, bands):
        """For the bands that are read, which may be fewer or in another order."""
        return self.fill if not isinstance(self.fill, tuple) else tuple(
            self.fill[self.bands.index(band)] for band in bands)


@dataclasses.dataclass(frozen=True)
class Padded(_Derived):
    """A window, (row0, col0, row1, col1), that may reach beyond the level."""

    pixels: Pixels
    bounds: Bounds
    fill: Any

    @property
    def shape(self):
        return len(self.bands), self.bounds[2] - self.bounds[0], self.bounds[3] - self.bounds[1]

    @property
    def block_shape(self):
        return self.pixels.block_shape

    def _read_into(self, out, rows, columns, bands):
        row0, column0, *_ = self.bounds
        bounds = row0 + rows.start, column0 + columns.start, row0 + rows.stop, column0 + columns.stop
        return read_padded(out, bounds, self.pixels.shape[1:], self._fill_of(bands), _reader(self.pixels, bands))


@dataclasses.dataclass(frozen=True)
class Resampled(_Derived):
    """The output of a Grid, over pixels of its level."""

    pixels: Pixels
    grid: Grid
    fill: Any
    nodata: Any

    @property
    def shape(self):
        return len(self.bands), *self.grid.shape

    @property
    def block_shape(self):
        """Of the output: about what a block of the level becomes."""
        return tuple(max(1, min(round(side / ratio), length)) for side, ratio, length in
                     zip(self.pixels.block_shape, self.grid.ratios, self.grid.shape))

    def _read_into(self, out, rows, columns, bands):
        file = self.pixels._file()

        def read(bounds, content, fill, new):
            if content == "pixels":
                return read_padded(new, bounds, self.grid.level_shape, fill, _reader(self.pixels, bands))
            mask = read_padded(np.empty(new.shape, "uint8"), bounds, self.grid.level_shape, 0,
                               lambda inner, view: file.read_mask(inner, self.level, bands, out=view))
            return array_module_of(new).asarray(mask)

        return _resample(self.grid, file, self._fill_of(bands), self.nodata, self.masked, out, read, rows=rows,
                         columns=columns)
