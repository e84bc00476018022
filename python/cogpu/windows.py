"""Positions (file, row, column) of random windows of many files, from a size and a seed; and reads of such windows as
one batch.

It needs NumPy only, so other frameworks than PyTorch can use it.
"""

from __future__ import annotations

import collections
import copy
import math
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from . import _cogpu
from .arguments import whole
from .errors import about, InvalidArgumentError
from .file import COMPLEX_INTEGERS, File, read_many, version_of
from .file import open as open_file
from .prefetch import prefetched
from .urls import is_path, is_url, shown

OPENED_AHEAD = 16

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
        name = source.name if isinstance(source, File) else shown(source)
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


# ---- reading ---------------------------------------------------------------------------------------------------------


def files_limit() -> int:
    """How many files may stay open: half of what the process may open. Others need some, and a file with sidecars takes
    several."""
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError):
        return 256
    return 1 << 20 if soft == resource.RLIM_INFINITY else max(soft // 2, 1)


class OpenFiles:
    """Files by number, opened when they are first used. The `limit` files that were used last stay open; others are
    opened again. Threads may share it. A copy in another process opens its own files.

    Parameters
    ----------
    sources : paths, URLs, recipes of mosaics, or Files, which stay as they are
    alone : numbers of local files without sidecars, as far as they are known: the search takes longer than all else
    """

    def __init__(self, sources: Sequence[Any], alone: Iterable[int] = ()) -> None:
        self.sources, self._alone, self._is_child = sources, set(alone), False
        self._begin()

    def _begin(self) -> None:
        self.limit = files_limit()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._kept = collections.OrderedDict[int, tuple[File, Any]]()

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenFiles, (self.sources, self._alone)

    def __iter__(self) -> Iterator[File]:
        """All of them, opened a few ahead, since each may wait for a disk or a server."""
        ahead = min(OPENED_AHEAD, len(self.sources) - 1, self.limit // 4)
        return prefetched(lambda number: self.get([number])[0], range(len(self.sources)), ahead, max(ahead, 1))

    def _own(self) -> None:
        # After a fork, threads that are not here may hold locks of this object and of its files.
        if self._process != os.getpid():
            self._begin()
            self._is_child = True

    def get(self, numbers: Iterable[int]) -> list[File]:
        """The Files of some numbers, at most `limit` different ones."""
        self._own()
        return [self._get(number) for number in numbers]

    def _get(self, number: int) -> File:
        source = self.sources[number]
        if isinstance(source, File) and not self._is_child:
            return source
        with self._lock:
            kept = self._kept.get(number)
            if kept:
                self._kept.move_to_end(number)
                return kept[0]
            while len(self._kept) >= self.limit:
                self._kept.popitem(last=False)
        version = _version_of(source)
        file = self._open(number, source)
        with self._lock:
            self._kept[number] = file, version
        return file

    def _open(self, number: int, source: Any) -> File:
        from .lazy import opened

        if isinstance(source, File):
            return _opened_again(source)
        if number in self._alone:
            return open_file(source, sidecars=False)
        file = opened(source)
        if is_path(source) and not is_url(source) and not file._file.sidecars() and not file._file.sources():
            self._alone.add(number)
        return file

    def forget_changed(self) -> None:
        """Forgets local files that are not what they were when they were opened; the next `get` opens them again."""
        self._own()
        with self._lock:
            for number, (_, version) in list(self._kept.items()):
                if _version_of(self.sources[number]) != version:
                    del self._kept[number]
                    self._alone.discard(number)


def _version_of(source: Any) -> Any:
    """Of a path, what tells that another file is there now."""
    return None if isinstance(source, File) else version_of(source)


def _opened_again(file: File) -> File:
    """A File of its own for this process, if what it was opened from can be opened again."""
    try:
        return copy.copy(file)
    except TypeError:
        return file


def read_windows(files: Sequence[File], corners: np.ndarray[Any, Any], out: Any, *, bands: Sequence[int],
                 **how: Any) -> None:
    """Reads one window of each file into `out`, as one batch.

    corners : int64 array (windows, 2) of first row and column
    out : array (windows * bands, height, width) of any library, whose height and width are those of the windows
    how : level, masked, unscale, fill_bad_blocks, device and stream, as of File.read
    """
    if any(file.info["type"] in COMPLEX_INTEGERS for file in files):
        _read_one_by_one(files, corners, out, bands, how)
        return
    places = np.empty((len(files), 3), "int64")
    places[:, 0], places[:, 1:] = [file.image for file in files], corners
    _cogpu.read_windows([file._file for file in files], places, out, bands=tuple(bands), **how)


def _read_one_by_one(files: Sequence[File], corners: np.ndarray[Any, Any], out: Any, bands: Sequence[int],
                     how: dict[str, Any]) -> None:
    """Complex integers, which the engine reads as pairs."""
    (_, height, width), count = out.shape, len(bands)
    read_many((file, {**how, "bands": bands, "window": (row, column, row + height, column + width),
                      "out": out[index * count:(index + 1) * count]})
              for index, (file, (row, column)) in enumerate(zip(files, corners.tolist())))
