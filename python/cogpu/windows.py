"""Random windows of many files, without the pixels: which files go together, and where a batch of windows lies.

Draws positions (file, row, column) from files, a size and a seed. It needs NumPy alone, so that other frameworks than
PyTorch can use it.
"""

import math

import numpy as np

from .arguments import whole
from .errors import ArgumentError, about
from .urls import shown

__all__ = ["Places", "survey"]


def sides(size):
    """(height, width) of a window that is given as one number or two."""
    if isinstance(size, tuple | list):
        if len(size) != 2:
            raise ArgumentError(f"size has {len(size)} numbers: one is expected, or (height, width)")
        return whole("size", size[0], 1), whole("size", size[1], 1)
    return (whole("size", size, 1),) * 2


class Places:
    """Where random windows lie.

    Every batch is drawn by itself from the seed, the pass and its number, so that workers can share a pass without a
    word between them, and the windows are the same however many they are.

    Parameters
    ----------
    shapes : (height, width) of each raster. A raster is drawn as often as its area says.
    size : side of a window in pixels, or (height, width)
    seed : the same seed gives the same windows
    names : of the rasters, for messages; their numbers if not given
    """

    def __init__(self, shapes, size, seed=0, names=None):
        self.size, self.seed = sides(size), whole("seed", seed, 0)
        self.shapes = np.array([tuple(shape) for shape in shapes], "int64").reshape(-1, 2)
        if not len(self.shapes):
            raise ArgumentError("files is empty: there is nothing to draw windows from")
        for index, (height, width) in enumerate(self.shapes.tolist()):
            if height < self.size[0] or width < self.size[1]:
                name = names[index] if names else f"raster {index}"
                raise ArgumentError(f"{name} has {height} x {width} pixels (height x width): too few for windows of "
                                    f"{self.size[0]} x {self.size[1]} (size)")
        areas = self.shapes.prod(1).astype("float64")
        self.total = areas.sum()
        self._shares = areas / self.total

    def windows(self):
        """How many windows have the area of all rasters."""
        return math.ceil(self.total / (self.size[0] * self.size[1]))

    def draw(self, count, number=0, epoch=0):
        """Batch `number` of pass `epoch`: an int64 array (count, 3) of raster, first row, first column."""
        random = np.random.default_rng((self.seed, epoch, number))
        rasters = random.choice(len(self.shapes), count, p=self._shares)
        corners = random.integers(0, self.shapes[rasters] - self.size, endpoint=True)
        return np.column_stack([rasters, corners])


def survey(files, bands=None, level=0):
    """What files that are to be read together have in common: [(height, width), ...] of the level, the bands
    (1-based) as a tuple, and the NumPy type. A file that differs from the first, or lacks a band or the level, is
    refused by its name."""
    from .lazy import opened
    bands = bands if bands is None else tuple(whole("bands", band, 1) for band in np.atleast_1d(bands).tolist())
    level, shapes, common = whole("level", level, 0), [], None
    for source in files:
        name = shown(source)
        with about(name):
            file = opened(source)
        if level >= len(file.levels):
            raise ArgumentError(f"{name} has {len(file.levels)} levels: there is no level {level}")
        count, *_ = file.shape
        found = bands or tuple(range(1, count + 1))
        if max(found) > count:
            raise ArgumentError(f"{name} has {count} bands: there is no band {max(found)} (bands)")
        common = common or (name, found, file.dtype)
        if found != common[1]:
            raise ArgumentError(f"{name} has {count} bands, {common[0]} has {len(common[1])}: choose some by bands=")
        if file.dtype != common[2]:
            raise ArgumentError(f"{name} has pixels of {file.dtype}, {common[0]} of {common[2]}: they make no batch")
        shapes.append(tuple(file.levels[level].shape))
    return (shapes, *(common or (None, bands or (), None))[1:])
