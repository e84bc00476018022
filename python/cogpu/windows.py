"""Positions (file, row, column) of random windows of many files, from a size and a seed; no pixels are read.

It needs NumPy only, so other frameworks than PyTorch can use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from .arguments import whole
from .errors import about, InvalidArgumentError
from .urls import shown

__all__ = ["Places", "survey"]


def sides(size: Any) -> tuple[int, int]:
    """(height, width) of a window that is given as one number or two."""
    if not isinstance(size, tuple | list):
        return whole("size", size, 1), whole("size", size, 1)
    both: Sequence[Any] = cast(Any, size)
    if len(both) != 2:
        raise InvalidArgumentError(f"size has {len(both)} numbers: one is expected, or (height, width)")
    return whole("size", both[0], 1), whole("size", both[1], 1)


class Places:
    """Positions of random windows.

    A batch depends on the seed, the epoch and its number only. Workers share an epoch without communication, and the
    windows do not depend on the number of workers.

    Parameters
    ----------
    shapes : (height, width) of each raster. The probability of a raster is its share of the total area.
    size : side of a window in pixels, or (height, width)
    seed : the same seed gives the same windows (default: 0)
    names : names of the rasters in messages (default: their numbers)
    """

    def __init__(self, shapes: Iterable[Iterable[int]], size: int | Sequence[int], seed: int = 0,
                 names: Sequence[str] | None = None) -> None:
        self.size, self.seed = sides(size), whole("seed", seed, 0)
        self.shapes = np.array([tuple(shape) for shape in shapes], "int64").reshape(-1, 2)
        if not len(self.shapes):
            raise InvalidArgumentError("files is empty: there is nothing to draw windows from")
        for index, (height, width) in enumerate(self.shapes.tolist()):
            if height < self.size[0] or width < self.size[1]:
                name = names[index] if names else f"raster {index}"
                raise InvalidArgumentError(f"{name} has {height} x {width} pixels (height x width): too few for "
                                           f"windows of {self.size[0]} x {self.size[1]} (size)")
        areas = self.shapes.prod(1).astype("float64")
        self.total = float(areas.sum())
        self._shares = areas / self.total

    def windows(self) -> int:
        """Number of windows with the area of all rasters."""
        return math.ceil(self.total / (self.size[0] * self.size[1]))

    def draw(self, count: int, number: int = 0, epoch: int = 0) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Draws batch `number` of an epoch: an int64 array (count, 3) of raster, first row, first column."""
        random = np.random.default_rng((self.seed, epoch, number))
        rasters = random.choice(len(self.shapes), count, p=self._shares)
        corners = random.integers(0, self.shapes[rasters] - np.array(self.size, "int64"), endpoint=True)
        return np.column_stack([rasters, corners])


def survey(files: Iterable[Any], bands: Any = None,
           level: int = 0) -> tuple[list[tuple[int, int]], tuple[int, ...], Any]:
    """Checks that files can be read together. Returns [(height, width), ...] of the level, the bands (from 1) as a
    tuple, and the NumPy dtype. InvalidArgumentError names a file that differs from the first, or lacks a band or the
    level."""
    from .lazy import opened
    numbers = () if bands is None else tuple(whole("bands", band, 1) for band in np.atleast_1d(bands).tolist())
    level, shapes, common = whole("level", level, 0), list[tuple[int, int]](), None
    for source in files:
        name = shown(source)
        with about(name):
            file = opened(source)
        if level >= len(file.levels):
            raise InvalidArgumentError(f"{name} has {len(file.levels)} levels: there is no level {level}")
        count, *_ = file.shape
        found = numbers or tuple(range(1, count + 1))
        if max(found) > count:
            raise InvalidArgumentError(f"{name} has {count} bands: there is no band {max(found)} (bands)")
        common = common or (name, found, file.dtype)
        if found != common[1]:
            raise InvalidArgumentError(f"{name} has {count} bands, {common[0]} has {len(common[1])}: choose some by "
                                       "bands=")
        if file.dtype != common[2]:
            raise InvalidArgumentError(f"{name} has pixels of {file.dtype}, {common[0]} of {common[2]}: they make no "
                                       "batch")
        shapes.append(file.levels[level].shape)
    return (shapes, common[1], common[2]) if common else (shapes, numbers, None)
