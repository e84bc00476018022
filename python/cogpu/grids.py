"""Windows as users give them, and grids of decimated reads: which level of a file serves an output of some size, and
where its pixels lie on that level. The rules are GDAL's. Arithmetic alone: no pixel is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

from .arguments import whole, word
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._types import Bounds, Sides
    from .file import Level

RESAMPLING = ("nearest", "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos", "mode")
FOUR_INTS = (int,) * 4
NEARLY_WHOLE = 1e-6  # of a pixel: by what windows that were computed from coordinates may miss one


# ---- windows ---------------------------------------------------------------------------------------------------------


def window_bounds(window: Any, shape: Sides, boundless: bool = False) -> Bounds:
    """(row0, col0, row1, col1) of a window of a level that has `shape` (height, width).

    window : None for all; (row0, col0, row1, col1); rasterio's Window; ((row0, row1), (col0, col1)), in which None is
        an end of the level; or a pair of slices. Negative numbers of the last two count from the end, as in Python,
        unless `boundless`.
    boundless : the window may reach beyond the level
    """
    if window is None:
        return 0, 0, *shape
    row0, column0, row1, column1 = bounds = _bounds(window, shape, boundless)
    if row1 <= row0 or column1 <= column0:
        raise InvalidArgumentError("window must be (row0, col0, row1, col1) with row0 < row1 and col0 < col1, not "
                                   f"{window!r}")
    if not boundless and (min(row0, column0) < 0 or row1 > shape[0] or column1 > shape[1]):
        raise InvalidArgumentError(f"window {bounds} is not inside the level, which has {shape[0]} rows and {shape[1]} "
                                   "columns (boundless=True allows that)")
    return bounds


def _bounds(window: Any, shape: Sides, boundless: bool) -> Bounds:
    if _is_plain(window):
        return window
    if hasattr(window, "col_off"):
        row, column, height, width = (_nearly_whole(side) for side in (window.row_off, window.col_off, window.height,
                                                                       window.width))
        return row, column, row + height, column + width
    try:
        sides: tuple[Any, ...] = tuple(window)
    except TypeError:
        sides = ()
    if len(sides) == 2 and not isinstance(window, (str, bytes)):
        (row0, row1), (column0, column1) = (_span(side, length, boundless) for side, length in zip(sides, shape))
        return row0, column0, row1, column1
    if len(sides) != 4 or isinstance(window, (str, bytes)):
        raise TypeError(f"window must be (row0, col0, row1, col1), ((row0, row1), (col0, col1)), two slices or "
                        f"rasterio's Window, not {window!r}")
    row0, column0, row1, column1 = (whole("window", side) for side in sides)
    return row0, column0, row1, column1


def _is_plain(window: Any) -> TypeGuard[Bounds]:
    """Four ints: known at once, since a batch may have thousands of windows."""
    return isinstance(window, tuple) and tuple(map(type, cast(Any, window))) == FOUR_INTS


def _nearly_whole(side: Any) -> int:
    if isinstance(side, bool) or abs(side - round(side)) > NEARLY_WHOLE:
        raise InvalidArgumentError(f"window must have whole numbers, not {side}; see round_offsets and round_lengths "
                                   "of rasterio's Window")
    return int(round(side))


def _span(side: Any, length: int, boundless: bool) -> tuple[int, int]:
    """First and end of one dimension, of a slice or a pair."""
    pair: Any = side
    if type(side) is slice:
        if side.step not in (None, 1):
            raise InvalidArgumentError(f"window: a slice has the step {side.step}; all pixels of a window are read")
        pair = side.start, side.stop
    try:
        start, stop = pair
    except (TypeError, ValueError):
        raise TypeError(f"window: {side!r} is neither a slice nor a pair (first, end)") from None
    start, stop = (usual if end is None else whole("window", end) for end, usual in ((start, 0), (stop, length)))
    if boundless:
        return start, stop
    return start + length if start < 0 else start, stop + length if stop < 0 else stop


def inner_part(bounds: Bounds, shape: Sides) -> Bounds | None:
    """The part of a window that lies inside the level, in pixels of the level; None where there is none."""
    row0, column0, row1, column1 = bounds
    inner = max(row0, 0), max(column0, 0), min(row1, shape[0]), min(column1, shape[1])
    return inner if inner[0] < inner[2] and inner[1] < inner[3] else None


# ---- decimated reads -------------------------------------------------------------------------------------------------


def resampling_of(resampling: Any) -> str:
    """The name of a method, from that or from rasterio's Resampling."""
    return word("resampling", getattr(resampling, "name", resampling), RESAMPLING)


def out_sides(out_shape: Any, bands: int) -> Sides:
    """(height, width) of an output that is given as that or as (bands, height, width)."""
    try:
        sides = tuple(whole("out_shape", side, 1) for side in out_shape)
    except TypeError:
        raise TypeError(f"out_shape must be (height, width), not {out_shape!r}") from None
    if len(sides) not in (2, 3) or len(sides) == 3 and sides[0] != bands:
        raise InvalidArgumentError(f"out_shape must be (height, width), or with the {bands} bands that are read first, "
                                   f"not {out_shape!r}")
    return sides[-2], sides[-1]


class Grid(NamedTuple):
    """An output of `shape` (height, width) over a window of a level, whose place is in pixels of that level."""

    level: int
    level_shape: Sides
    top: float
    left: float
    height: float
    width: float
    shape: Sides
    resampling: str
    boundless: bool

    @property
    def ratios(self) -> tuple[float, float]:
        """Pixels of the level in one of the output, down and across."""
        return self.height / self.shape[0], self.width / self.shape[1]


def grid_of(levels: Sequence[Level], bounds: Bounds, out_shape: Sides, resampling: str,
            boundless: bool = False) -> Grid:
    """The Grid of an output for a window of level 0, on the level that GDAL takes for it."""
    row0, column0, row1, column1 = bounds
    height, width = row1 - row0, column1 - column0
    level = best_level([level.shape for level in levels], (height, width), out_shape, resampling == "nearest")
    down, across = (full / less for full, less in zip(levels[0].shape, levels[level].shape))
    grid = Grid(level, levels[level].shape, row0 / down, column0 / across, height / down, width / across,
                out_shape, resampling, boundless)
    is_as_stored = (grid.height, grid.width) == grid.shape and grid.top.is_integer() and grid.left.is_integer()
    return grid._replace(resampling="nearest") if is_as_stored else grid


def best_level(shapes: Sequence[Sides], size: Sides, out_shape: Sides, is_nearest: bool) -> int:
    """GDALBandGetBestOverviewLevel2: the smallest level that has not much fewer pixels than the output needs."""
    down, across = size[0] / out_shape[0], size[1] / out_shape[1]
    wanted = across if across < down or out_shape[0] == 1 else down
    most = wanted * (1.2 if is_nearest else 1.0) + 0.1
    best, best_factor = 0, 0.0
    for level, shape in enumerate(shapes[1:], start=1):
        factor = min(full / less for full, less in zip(shapes[0], shape))
        if best_factor < factor < most:
            best, best_factor = level, factor
            if abs(wanted - factor) < 0.1:
                break
    return best
