"""Pixels of a file as a Dask array of (band, y, x) chunks, read when tasks run.

A chunk is a window of the file. Chunks that are multiples of the file's blocks start at block edges, so no block is
decoded twice. The worker that runs a task opens the file and decodes on its current device. dask_write.py has `write`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask
import dask.array
import dask.tokenize
import dask.utils

from . import lazy
from .dask_write import write
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._types import Bounds

__all__ = ["blocks", "write"]

MOST_TASKS = 50_000
DIMENSIONS = ("band", "y", "x")


def blocks(pixels: Any, chunks: Any = "auto", window: Bounds | None = None) -> Any:
    """Makes a Dask array (band, y, x) of pixels.

    Parameters
    ----------
    pixels
        A `lazy.Pixels`: file, level, bands and dtype.
    chunks
        Side in pixels; (height, width); -1: one chunk; "auto" (default), {} or a size such as "64 MiB": whole blocks of
        about that many bytes ("auto": Dask's array.chunk-size); a dict such as {"band": 1, "y": 512, "x": 512}, in
        which dimensions without entry are not split; or Dask's chunks of band, y and x. Chunks hold all bands unless
        the bands are given.
    window
        (row0, col0, row1, col1), half-open, in pixels of the level (default: all).
    """
    part = Part(pixels, *_window(window, pixels.shape))
    sizes = _sizes(chunks, part)
    _check_count(chunks, sizes, part.shape)
    cuts, meta = _cuts(sizes, part), lazy.array_module(pixels.gpu).empty((0, 0, 0), part.dtype)
    make_array: Any = dask.array.from_array
    try:
        return make_array(part, cuts, name=f"cogpu-{dask.tokenize.tokenize(part, cuts)}", meta=meta)
    except ValueError as error:
        raise InvalidArgumentError(f"chunks={chunks!r} does not fit {part.shape} (band, y, x): {error}") from error


@dataclass(frozen=True)
class Part:
    """A window of `pixels` as something that Dask can index: the one entry of the graph that all its tasks share."""

    pixels: Any  # lazy.Pixels, or a Padded or Resampled of beyond.py
    row: int
    column: int
    height: int
    width: int

    ndim = 3

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.pixels.shape[0], self.height, self.width

    @property
    def dtype(self) -> Any:
        return self.pixels.dtype

    def __dask_tokenize__(self) -> Any:
        """What says that two arrays have the same chunks: the request, and the file, whose version the pixels have."""
        return dask.tokenize.normalize_token((self.pixels, self.row, self.column, self.height, self.width))

    def __getitem__(self, index: Any) -> Any:
        """The pixels of slices, numbers and at most one list: of a chunk, or of what was left of it by slicing."""
        index = index if isinstance(index, tuple) else (index,)
        index += (slice(None),) * (self.ndim - len(index))
        (bands, rows, columns), rest = zip(*map(lazy.spanned, index, self.shape))
        pixels = self.pixels.read(_moved(rows, self.row), _moved(columns, self.column), bands=self.pixels.bands[bands])
        return pixels if all(isinstance(one, slice) and one == slice(None) for one in rest) else pixels[rest]


def _moved(span: slice, by: int) -> slice:
    return slice(span.start + by, span.stop + by)


def _window(window: Bounds | None, shape: tuple[int, int, int]) -> Bounds:
    """(row, column, height, width), checked."""
    _, height, width = shape
    row0, col0, row1, col1 = (0, 0, height, width) if window is None else window
    if not (0 <= row0 < row1 <= height and 0 <= col0 < col1 <= width):
        raise InvalidArgumentError(f"window {window} must hold pixels and lie inside the {height} rows and {width} "
                                   "columns")
    return row0, col0, row1 - row0, col1 - col0


# ---- chunks ----------------------------------------------------------------------------------------------------------


def _sizes(chunks: Any, part: Part) -> tuple[Any, Any, Any]:
    """For each dimension the size of its chunks, or a tuple of all of them where the caller gave that."""
    bands, height, width = (_size(chunks, *one) for one in zip(_by_dimension(chunks), part.shape, strict=True))
    bands = part.shape[0] if bands == "auto" else bands
    pixels = _bytes(chunks) // (part.dtype.itemsize * _largest(bands))
    block_height, block_width = part.pixels.block_shape
    if width == "auto":
        side = math.isqrt(pixels) if height == "auto" else pixels // _largest(height)
        width = _whole(side, block_width, part.width)
    if height == "auto":
        height = _whole(pixels // _largest(width), block_height, part.height)
    return bands, height, width


def _by_dimension(chunks: Any) -> tuple[Any, ...]:
    """What was asked, for each of band, y, x."""
    if isinstance(chunks, dict) and chunks:
        strange = set(chunks) - {*DIMENSIONS, *range(len(DIMENSIONS))}
        if strange:
            raise InvalidArgumentError(f"chunks names {sorted(map(str, strange))}: there are band, y and x")
        return tuple(chunks.get(name, chunks.get(axis, -1)) for axis, name in enumerate(DIMENSIONS))
    if isinstance(chunks, (str, dict)) or chunks is None:
        return -1, "auto", "auto"
    if isinstance(chunks, (tuple, list)):
        if len(chunks) not in (2, 3):
            raise InvalidArgumentError(f"chunks must be (height, width), or sizes for band, y and x, not {chunks!r}")
        return (-1, *chunks)[-3:]
    return -1, chunks, chunks


def _size(chunks: Any, asked: Any, length: int) -> Any:
    """One dimension's size in pixels, "auto", or a tuple of all its chunks."""
    if isinstance(asked, (tuple, list)):
        return tuple(asked)
    if isinstance(asked, str) and asked == "auto":
        return asked
    if asked is None or (asked == -1 and not isinstance(asked, bool)):
        return length
    if isinstance(asked, bool) or not hasattr(asked, "__index__"):
        raise TypeError(f"chunks must be whole numbers, \"auto\" or -1, not {chunks!r}")
    if asked < 1:
        raise InvalidArgumentError(f"chunks must be 1 or more, or -1 for all, not {chunks!r}")
    return min(asked.__index__(), length)


def _bytes(chunks: Any) -> int:
    """How much a chunk may take where its size is ours to choose."""
    asked = chunks if isinstance(chunks, str) and chunks != "auto" else dask.config.get("array.chunk-size")
    try:
        return int(dask.utils.parse_bytes(asked))
    except ValueError as error:
        raise InvalidArgumentError(f"chunks={chunks!r} is neither \"auto\" nor a size as \"64 MiB\"") from error


def _largest(size: Any) -> int:
    return int(max(size) if isinstance(size, tuple) else size)


def _whole(size: int, block: int, length: int) -> int:
    """As many whole blocks as fit into `size`, at least one, at most the dimension."""
    return min(max(size // block, 1) * block, length)


def _check_count(chunks: Any, sizes: tuple[Any, ...], shape: tuple[int, int, int]) -> None:
    """Before anything is made of them: a scheduler is at its end with millions of tasks, and so is memory."""
    count = math.prod(len(size) if isinstance(size, tuple) else -(-length // size)
                      for size, length in zip(sizes, shape, strict=True))
    if count > MOST_TASKS:
        side = math.isqrt(2 * shape[1] * shape[2] // MOST_TASKS) + 1
        raise InvalidArgumentError(f"chunks={chunks!r} makes {count} tasks, and {MOST_TASKS} are the most: raise "
                                   f"chunks, to {side} or more")


def _cuts(sizes: tuple[Any, ...], part: Part) -> tuple[tuple[int, ...], ...]:
    """The chunks as Dask wants them: for each dimension all sizes."""
    starts, grids = (0, part.row, part.column), (1, *part.pixels.block_shape)
    return tuple(size if isinstance(size, tuple) else _cut(length, size, start, block)
                 for size, length, start, block in zip(sizes, part.shape, starts, grids, strict=True))


def _cut(length: int, size: int, start: int, block: int) -> tuple[int, ...]:
    """Chunks of `size` each; of whole blocks where it is a multiple, though the window may begin inside of one."""
    first = size - start % block if size < length and size % block == 0 else size
    cuts = [0, *range(min(first, length), length, size), length]
    return tuple(stop - begin for begin, stop in zip(cuts, cuts[1:]) if stop > begin)
