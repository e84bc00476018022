"""Random windows of many files as batches for PyTorch, decoded on the device that trains.

Yields tensors (batch, band, y, x). One call decodes all windows of a batch straight into one tensor of torch's memory,
while the batch before is used. windows.py chooses the windows. Needs PyTorch; `import cogpu` does not import this
module.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .arguments import whole
from .errors import DeviceError, InvalidArgumentError
from .file import File
from .lazy import keep
from .mosaic import is_single
from .prefetch import prefetched
from .urls import shown
from .windows import OpenFiles, Places, read_windows, survey

if TYPE_CHECKING:
    import numpy as np

    from ._types import Bands, Path

__all__ = ["Windows"]


class Windows(torch.utils.data.IterableDataset[Any]):
    """Batches of random windows of many files.

    Iterate over it, or pass it to `torch.utils.data.DataLoader(windows, batch_size=None, num_workers=...)`. Workers
    share the batches; number, order and pixels stay the same. With a GPU use no workers: batches are decoded where they
    are used. Workers that use a GPU need `multiprocessing_context="spawn"`.

    A thread reads the next batches while one is used (`prefetch`), on a CUDA stream of its own. A tensor belongs to the
    stream that is current when it is yielded; `transform` runs there, in the caller's thread. An error is raised when
    the caller asks for its batch. A loop that ends early cancels reads that have not begun.

    Files stay open, up to half of the files that the process may open (`ulimit -n`); beyond that they are opened again.

    Parameters
    ----------
    files : paths, URLs, Files, or one of these; a File of open_mosaic is one large file. All have the same bands and
        dtype, and are at least as large as a window. The probability of a file is its share of the total area.
    size : side of a window in pixels of the level, or (height, width) (default: 256)
    batch : windows in a batch (default: 64)
    bands : a band or several, from 1 (default: all)
    level : overview level (default: 0, the full resolution)
    device : "cuda" (default: torch's current GPU), "cuda:1", "cpu"; "emu" for the emulated GPU, with host tensors
    dtype : a float dtype of torch, to which pixels are converted (default: that of the files)
    masked : True: invalid pixels become NaN; integers become float32 unless `dtype` is given (default: False)
    seed : the same seed gives the same windows (default: 0). Processes that train together need different seeds.
    length : batches in an epoch (default: as many as cover the area of the files once)
    transform : function of a batch's tensor; its result is yielded instead (default: none)
    places : True: yields (tensor, places); places is an int64 CPU tensor (batch, 3) of file, first row, first column
        (default: False)
    prefetch : batches that are read ahead, each of which takes memory; 0: none, and no thread. Workers of a DataLoader
        read ahead by its prefetch_factor instead (default: 1)
    """

    def __init__(self, files: Path | File | Iterable[Path | File], size: int | Sequence[int] = 256, batch: int = 64,
                 bands: Bands | None = None, level: int = 0, device: str | torch.device = "cuda",
                 dtype: torch.dtype | None = None, masked: bool = False, seed: int = 0, length: int | None = None,
                 transform: Callable[[torch.Tensor], Any] | None = None, places: bool = False,
                 prefetch: int = 1) -> None:
        super().__init__()
        self.files = [_kept(file) for file in ([files] if is_single(files) else files)]
        self.batch, self.level = whole("batch", batch, 1), level
        self._open = OpenFiles(self.files)
        shapes, self.bands, kind = survey(self._open, bands, level)
        self._places = Places(shapes, size, seed, [shown(file) for file in self.files])
        self.length = (math.ceil(self._places.windows() / self.batch) if length is None else whole("length", length, 1))
        self.masked, self.transform, self.places, self.epoch = masked, transform, places, 0
        self.prefetch = whole("prefetch", prefetch, 0)
        self.dtype = self._type(dtype, kind)
        self._emulated = device == "emu"
        self.device = torch.device("cpu" if self._emulated else device)

    def _type(self, dtype: torch.dtype | None, kind: np.dtype[Any]) -> torch.dtype:
        own = getattr(torch, kind.name, None)
        if dtype is None:
            dtype = torch.float32 if self.masked and kind.kind in "iu" else own
        if dtype is None:
            raise InvalidArgumentError(f"{shown(self.files[0])} has pixels of {kind}, which torch has not: choose a "
                                       "float by dtype=")
        if self.masked and not (dtype.is_floating_point or dtype.is_complex):
            raise InvalidArgumentError(f"dtype is {dtype}, which has no NaN for pixels that are not valid "
                                       "(masked=True)")
        return dtype

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which changes the windows. Call it before each epoch, as with torch's DistributedSampler."""
        self.epoch = whole("epoch", epoch, 0)

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        if self.device.type == "cuda" and torch.cuda._is_in_bad_fork():
            raise DeviceError(f"device is {self.device}, and CUDA does not work in a process that was forked after its "
                              "use: give the DataLoader multiprocessing_context=\"spawn\", or take num_workers=0")
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        ahead, device, epoch = 0 if worker else self.prefetch, self._current_device(), self.epoch
        stream = _reading_stream(device) if ahead and device.type == "cuda" else None
        self._open.forget_changed()

        def read(number: int) -> tuple[torch.Tensor, np.ndarray[Any, Any]]:
            places = self._places.draw(self.batch, number, epoch)
            with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
                return self._read(places, device), places

        def finish(batch: tuple[torch.Tensor, np.ndarray[Any, Any]]) -> Any:
            tensor, places = batch
            if stream:  # its memory may be allocated again, for that stream, when this one has done with it
                tensor.record_stream(torch.cuda.current_stream(device))
            tensor = self.transform(tensor) if self.transform else tensor
            return (tensor, torch.from_numpy(places)) if self.places else tensor

        with contextlib.closing(prefetched(read, range(first, self.length, step), ahead)) as batches:
            yield from map(finish, batches)  # which keeps no reference to a batch

    def _current_device(self) -> torch.device:
        """With its number: other threads have another current device."""
        if self.device.type == "cuda" and self.device.index is None:
            return torch.device("cuda", torch.cuda.current_device())
        return self.device

    def _read(self, places: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
        """The windows at some places. They are complete for every stream when this returns."""
        height, width = self._places.size
        tensor = torch.empty((len(places), len(self.bands), height, width), dtype=self.dtype, device=device)
        out, numbers, limit = self._target(tensor), places[:, 0].tolist(), self._open.limit
        for first in range(0, len(numbers), limit):
            end = first + limit
            read_windows(self._open.get(numbers[first:end]), places[first:end, 1:],
                         out[first * len(self.bands):end * len(self.bands)], bands=self.bands, level=self.level,
                         masked=self.masked, **self._where(device))
        return tensor

    def _target(self, tensor: torch.Tensor) -> Any:
        """The bands of all windows of a batch. Host tensors as NumPy arrays, since torch's own interface calls CUDA,
        which fails in a forked worker."""
        bands = tensor.flatten(0, 1)
        return bands if tensor.device.type == "cuda" else bands.numpy()

    def _where(self, device: torch.device) -> dict[str, Any]:
        """The stream on which torch uses the tensor's memory, which its allocator may have reused."""
        if device.type == "cuda":
            return {"stream": torch.cuda.current_stream(device).cuda_stream}
        return {"device": "emu"} if self._emulated else {}


@functools.cache
def _reading_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all loops of a process: torch's allocator keeps memory for each stream."""
    return torch.cuda.Stream(device)


def _kept(file: Any) -> Any:
    """What a worker opens again: of a mosaic its recipe, of a File its path or URL."""
    if not isinstance(file, File):
        return file
    if file._recipe is not None:
        keep(file._recipe, file)
        return file._recipe
    return file
