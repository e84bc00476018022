"""Pixels that are read when someone asks: what xarray's and Dask's lazy arrays rest on.

`Pixels` says which pixels of which file are meant and how they are to come, in words that travel to other threads,
processes and machines: no handle and no device is in it. The file is opened, and the device found, where `read` runs.
`opened` keeps the files of a process open between such reads, so that a graph of many tasks reads a header once.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import urls
from .arguments import flag
from .errors import DeviceError, FallbackWarning, InvalidArgumentError, IOError, SourceWarning
from .file import float_for, named_dtype
from .file import open as open_file
from .gdal_names import refuse_gdal_name
from .mosaic import Recipe
from .stored import path_of
from .urls import is_url

if TYPE_CHECKING:
    from .file import File

FILES_KEPT = 32
WIDEST = {"i": 8, "u": 8, "f": 8, "c": 16}  # bytes of the samples that arrays may have, by kind


class _OpenFiles:
    """The files that were used last, by what they are now: a path that holds another file meanwhile is opened anew. A
    URL stands for itself: its File reads the version that it was opened as, or fails."""

    def __init__(self):
        self.files = collections.OrderedDict()
        self.opening = {}  # a lock for each that is being opened, so that many threads read its header once
        self.lock = threading.Lock()

    def get(self, path, image, sidecars, vrt_sources):
        how = path, image, sidecars, vrt_sources
        try:
            is_constant = isinstance(path, Recipe) or is_url(path)
            key = how if is_constant else (*how, *_state(path), *_sidecar_states(path))
        except OSError:
            return _open_anew(*how)  # which says it in our words
        with self.lock:
            file = self._kept(key)
            opening = None if file else self.opening.setdefault(key, threading.Lock())
        return file or self._open(key, opening)

    def _kept(self, key):
        if key in self.files:
            self.files.move_to_end(key)
        return self.files.get(key)

    def _open(self, key, opening):
        with opening:
            with self.lock:
                file = self._kept(key)
            if file:
                return file
            try:
                file = _open_anew(*key[:4])
                with self.lock:
                    self._keep(key, file)
            finally:
                with self.lock:
                    self.opening.pop(key, None)
        return file

    def put(self, recipe, file):
        with self.lock:
            self._keep((recipe, 0, file.sidecars, file.vrt_sources), file)

    def _keep(self, key, file):
        self.files[key] = file
        while len(self.files) > FILES_KEPT:
            self.files.popitem(last=False)

    def drop(self, path):
        with self.lock:
            for key in [key for key in self.files if key[0] == path]:
                del self.files[key]


def _open_anew(path, image, sidecars, vrt_sources):
    return path.open() if isinstance(path, Recipe) else open_file(path, image=image, sidecars=sidecars,
                                                                  vrt_sources=vrt_sources)


def _state(path):
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns, state.st_ino, state.st_dev


def _sidecar_states(path):
    """Of files beside it that change what it means, None where there is none: one may come or go while it is open."""
    stem = os.path.splitext(path)[0]
    states = []
    for name in (path + ".ovr", path + ".msk", path + ".aux.xml", stem + ".tfw", stem + ".wld"):
        try:
            states.append(_state(name))
        except OSError:
            states.append(None)
    return states


_open_files = _OpenFiles()


def _forget_files():
    """A child process has neither the parent's threads nor the lock that one of them may have held."""
    global _open_files
    _open_files = _OpenFiles()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_files)


def is_path(source: Any) -> bool:
    """Or a URL."""
    return urls.is_path(source)


def absolute(source: Any) -> Any:
    """A path that means the same in a process with another working directory, or a URL; what is neither stays as it
    is."""
    if not is_path(source):
        return source
    return os.fsdecode(source) if is_url(source) else os.path.abspath(os.fsdecode(path_of(source)))


def opened(source: Any, image: int = 0, sidecars: bool | None = None, vrt_sources: Any = None) -> File:
    """The File of a path, URL or mosaic.Recipe, kept open for the next caller. A File is returned unchanged."""
    if isinstance(source, Recipe):
        return _open_files.get(source, image, sidecars, vrt_sources)
    if not is_path(source):
        return source
    refuse_gdal_name(source)  # here, where it has not become a part of an absolute path
    return _open_files.get(absolute(source), image, sidecars, vrt_sources)


def keep(recipe: Recipe, file: File) -> None:
    """Keeps the File of a recipe open, in place of an older one."""
    _open_files.drop(recipe)
    _open_files.put(recipe, file)


def may_change(source: Any) -> bool:
    """Whether a File may be outdated though the path's own file did not change: of a URL, a VRT, a mosaic."""
    return isinstance(source, Recipe) or is_url(source) or is_vrt(source)


def is_vrt(source: Any) -> bool:
    """Whether a path or URL has the ending of a VRT."""
    return is_path(source) and urls.shown(source).lower().endswith(".vrt")


def paths_of(array: Any) -> list[str]:
    """The paths of local files that an array of Dask or xarray reads when it is computed."""
    if array is None:
        return []
    if hasattr(array, "__dask_graph__") and array.__dask_graph__() is not None:
        entries = array.__dask_graph__().values()
    else:
        entries = [getattr(array, "_data", None)]  # of an xarray Variable, which `data` would read
    found = {path for entry in entries for path in _paths_in(_source_in(entry))}
    return sorted(path for path in found if not is_url(path))


def _paths_in(pixels):
    """The paths of a Pixels: of its file, or of a mosaic's or VRT's sources."""
    if pixels is None:
        return []
    if isinstance(pixels.source, Recipe):
        return pixels.source.paths()
    if not isinstance(pixels.source, str):
        return []
    if not is_vrt(pixels.source):
        return [pixels.source]
    file = opened(pixels.source, pixels.image, pixels.sidecars, pixels.vrt_sources)
    return [pixels.source, *(source.path for source in file.sources if source.path)]


def _source_in(entry):
    """The Pixels that xarray's and Dask's wrappers hold; None where they hold none."""
    for _ in range(16):
        if isinstance(entry, Pixels):
            return entry
        entry = next((getattr(entry, name) for name in ("pixels", "array", "value") if hasattr(entry, name)), None)
        if entry is None:
            return None
    return None


def release(source: Any) -> None:
    """Lets go of the files of a path, URL or Recipe; reads that are under way keep theirs."""
    _open_files.drop(absolute(source))


def spanned(index: Any, length: int) -> tuple[slice, Any]:
    """The slice of step 1 that holds all that an index of one dimension (a slice, number or array) means, and the index
    within that slice."""
    if isinstance(index, slice):
        picked = range(length)[index]
        first, last = sorted((picked[0], picked[-1])) if picked else (0, -1)
        return slice(first, last + 1), slice(None, None, None if picked.step == 1 else picked.step)
    picked = np.arange(length)[index]
    first, last = (picked.min(), picked.max()) if picked.size else (0, -1)
    return slice(int(first), int(last) + 1), picked - first


def array_module(gpu: Any) -> Any:
    """The module whose arrays `gpu` means: NumPy for False and "emu", CuPy for True.

    DeviceError where CuPy is not installed or finds no GPU.
    """
    if gpu is False or gpu == "emu":
        return np
    if gpu is not True:
        raise InvalidArgumentError(f'gpu: {gpu!r} is neither True nor False (nor "emu", the emulated GPU)')
    try:
        import cupy
    except ImportError as error:
        raise DeviceError("gpu=True needs CuPy, which is not installed (pip install cupy-cuda12x)") from error
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"gpu=True needs a GPU, and CuPy finds none ({error})") from error
    return cupy


def _failures():
    """What is raised where a GPU fails: our own, and CuPy's where it is in use. Nothing else is fallen back from."""
    cupy = sys.modules.get("cupy")
    return (DeviceError, cupy.cuda.runtime.CUDARuntimeError) if cupy else DeviceError


def _result_dtype(stored, dtype, floats):
    """Of what `read` returns; refuses casts that lose more than digits."""
    natural = float_for(stored) if floats else stored
    if dtype is None:
        return natural
    wanted = named_dtype(dtype).newbyteorder("=")
    rounds = wanted.kind == "f" and natural.kind in "iuf" or wanted.kind == natural.kind == "c"
    if wanted.itemsize <= WIDEST.get(wanted.kind, 0) and (rounds or np.can_cast(natural, wanted, "safe")):
        return wanted
    why = " (masked and unscaled pixels are floats)" if floats and stored.kind in "iu" else ""
    raise InvalidArgumentError(f"dtype: {natural} pixels do not fit into {wanted}{why}; read them as they are, and use "
                               "astype")


@dataclasses.dataclass(frozen=True)
class Pixels:
    """Bands of a level of a file, as they are to be read. Made by `pixels_of`.

    `source` is a path, a URL or a mosaic.Recipe, or a File where there is none, and can be pickled where that can.
    `version_id` is that of the File: pixels of another version of it are an error, so that no array is a mixture. `gpu`
    is False, True or "emu". `decode` is the device that decodes for NumPy's arrays, or None.
    """

    source: object = dataclasses.field(repr=False)  # a URL may hold secrets
    version_id: object
    image: int
    sidecars: bool | None
    level: int
    bands: tuple[int, ...]
    dtype: np.dtype[Any]
    masked: bool
    unscale: bool
    gpu: object
    on_gpu_failure: str
    shape: tuple[int, int, int]
    block_shape: tuple[int, int]
    interleave: str
    vrt_sources: str | None = None
    decode: str | None = None

    def read(self, rows: slice = slice(None), columns: slice = slice(None), bands: Any = None, out: Any = None) -> Any:
        """Pixels of rows and columns of the level, each a slice of step 1, shaped (band, y, x).

        Parameters
        ----------
        bands : numbers of bands in the file, from 1; None for those of this object.
        out : array of the right shape and type to read into; None for a new one.

        Returns
        -------
        array
            NumPy's; with gpu=True CuPy's, on the device that is current for the thread that calls.
        """
        bands = self.bands if bands is None else tuple(int(band) for band in bands)
        row0, row1, _ = rows.indices(self.shape[1])
        column0, column1, _ = columns.indices(self.shape[2])
        shape = (len(bands), max(row1 - row0, 0), max(column1 - column0, 0))
        if 0 in shape:
            return array_module(self.gpu).empty(shape, self.dtype) if out is None else out
        where = {"window": (row0, column0, row1, column1), "level": self.level, "bands": bands}
        try:
            return self._read_by(self._file(), where, out)
        except IOError:
            if may_change(self.source):
                release(self.source)  # it may have changed: the next open must see that
            raise

    def _file(self):
        file = opened(self.source, self.image, self.sidecars, self.vrt_sources)
        if file.version_id != self.version_id:
            release(self.source)  # one that was kept may be older than this
            file = opened(self.source, self.image, self.sidecars, self.vrt_sources)
            if file.version_id != self.version_id:
                raise IOError(f"{file.name}: the file changed since the array was made; open it again")
        return file

    def _read_by(self, file, where, out):
        """By the device that is asked for, or by the CPU where that may take its place."""
        if self.gpu is False and self.decode is None:
            return self._read(file, where, out, _from_host)
        try:
            return self._read(file, where, out, self._fetch())
        except _failures() as error:
            if self.on_gpu_failure == "strict":
                raise
            warnings.warn(f"the GPU failed ({error}); the CPU reads instead", FallbackWarning, stacklevel=3)
        return self._uploaded(self._read(file, where, None, _from_host), out)

    def _fetch(self):
        if self.gpu is False:
            return functools.partial(_from_host, decode=self.decode)
        return _from_emulator if self.gpu == "emu" else _from_gpu

    def _read(self, file, where, out, fetch):
        """The engine converts to floats on the way; what else is asked for is done to what it gave."""
        if file.dtype.kind == "c":
            pixels = self._read_complex(file, where, fetch)
        elif self.dtype == file.dtype or self.dtype.kind == "f":
            return self._read_real(file, where, self.dtype, out, fetch)
        else:
            pixels = self._read_real(file, where, float_for(file.dtype) if self.masked else file.dtype, None, fetch)
        if out is None:
            return pixels.astype(self.dtype, copy=False)
        out[...] = pixels
        return out

    def _read_real(self, file, where, dtype, out, fetch):
        out = fetch(file.read, where, dtype, out, masked=self.masked, unscale=self.unscale)
        if self.masked and file.info["mask_source"] == "alpha":
            for plane, band in zip(out, where["bands"]):  # alpha says what is valid, and is so itself everywhere
                if band == file.info["alpha_band"]:
                    fetch(file.read, {**where, "bands": (band,)}, dtype, plane[None], unscale=self.unscale)
        return out

    def _read_complex(self, file, where, fetch):
        pixels = fetch(file.read, where, file.dtype, None)
        if self.masked:
            pixels[fetch(file.read_mask, where, np.dtype("uint8"), None) == 0] = complex(np.nan, np.nan)
        if self.unscale:
            for plane, band in zip(pixels, where["bands"]):
                plane *= file.scales[band - 1]
                plane += file.offsets[band - 1]
        return pixels

    def _uploaded(self, host, out):
        """What the CPU read, where the caller expects it; as it is where there is no GPU at all."""
        if out is not None:
            out[...] = array_module(self.gpu).asarray(host)
            return out
        try:
            return array_module(self.gpu).asarray(host)
        except _failures():
            return host


def _shape(where):
    row0, column0, row1, column1 = where["window"]
    return len(where["bands"]), row1 - row0, column1 - column0


def _checked(array):
    """The Array of a read; sources of a mosaic that could not be read are warned of."""
    bad = array.result["bad_sources"]
    if bad:
        warnings.warn(f"{bad} sources of the mosaic could not be read, and are left out", SourceWarning, stacklevel=2)
    return array


def _from_host(read, where, dtype, out, **how):
    out = np.empty(_shape(where), dtype) if out is None else out
    _checked(read(**where, **how, out=out))
    return out


def _from_emulator(read, where, dtype, out, **how):
    if out is None:
        floats = {"dtype": dtype} if dtype.kind == "f" else {}
        return np.asarray(_checked(read(**where, **how, **floats, device="emu")))
    _checked(read(**where, **how, out=out, device="emu"))
    return out


def _from_gpu(read, where, dtype, out, **how):
    """Memory comes from CuPy's pool, on the thread's device, and is written after what CuPy's stream holds."""
    cupy = array_module(True)
    out = cupy.empty(_shape(where), dtype) if out is None else out
    _checked(read(**where, **how, out=out, stream=cupy.cuda.get_current_stream().ptr))
    return out


def _usable(gpu, on_gpu_failure):
    """`gpu`, or False where its arrays cannot be had in this process, which no task elsewhere could fix."""
    try:
        array_module(gpu)
    except DeviceError as error:
        if on_gpu_failure == "strict":
            raise
        warnings.warn(f"{error}; the CPU reads instead", FallbackWarning, stacklevel=5)
        return False
    return gpu


def pixels_of(file: File, *, source: Any = None, level: int = 0, bands: Any = None, dtype: Any = None,
              masked: bool = False, unscale: bool = False, gpu: Any = False, on_gpu_failure: str = "auto",
              decode: str | None = None) -> Pixels:
    """The Pixels of `file` that the words mean; all are checked here, and nothing is read.

    `source` is the path, URL or Recipe that `file` was opened from; without one the Pixels hold the file itself. Bands
    count from 1.
    """
    if on_gpu_failure not in ("auto", "strict"):
        raise InvalidArgumentError(f"on_gpu_failure: {on_gpu_failure!r} is neither 'auto' nor 'strict'")
    masked = flag("unscale", unscale) or flag("masked", masked)
    if decode is not None and gpu is not False:
        raise InvalidArgumentError(f"decode={decode!r}: it is for NumPy arrays, and gpu={gpu!r} makes those of a GPU, "
                                   "which decodes them; leave one of them out")
    gpu = _usable(gpu, on_gpu_failure)
    bands = tuple(range(1, file.shape[0] + 1)) if bands is None else tuple(bands)
    height, width = file.levels[level].shape
    return Pixels(source=file if source is None else absolute(source), version_id=file.version_id, image=file.image,
                  sidecars=file.sidecars, level=level,
                  bands=bands, dtype=_result_dtype(file.dtype, dtype, masked), masked=masked, unscale=bool(unscale),
                  gpu=gpu, on_gpu_failure=on_gpu_failure, shape=(len(bands), height, width),
                  block_shape=tuple(file.levels[level].block_shape), interleave=file.interleave,
                  vrt_sources=file.vrt_sources, decode=decode)
