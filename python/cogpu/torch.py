"""Random windows of many files as batches for PyTorch, decoded on the device that trains.

Yields tensors (batch, band, y, x). A batch is one tensor of torch's own memory, its windows are slices
of it into which one `read_many` decodes: no copy, and the whole batch in one piece of work. Where windows lie is
decided by windows.py. Needs PyTorch; `import cogpu` does not import this.
"""

import math

import torch

from .arguments import whole
from .errors import ArgumentError, DeviceError
from .file import read_many
from .lazy import opened
from .urls import shown
from .windows import Places, survey

__all__ = ["Windows"]


class Windows(torch.utils.data.IterableDataset):
    """Batches of random windows of many files.

    Iterate over it, or give it to `torch.utils.data.DataLoader(windows, batch_size=None, num_workers=...)`, whose
    workers then share the batches; what comes is the same in number, order and pixels. On a GPU there is no need of
    workers: the batch is decoded where it is used. Workers that use one must be made by
    `multiprocessing_context="spawn"`.

    Parameters
    ----------
    files : paths or URLs. They must agree in bands and type of pixels, and none may be smaller than a window. A file is
        drawn as often as its area says.
    size : 256; side of a window in pixels of the level, or (height, width)
    batch : 64; windows in a batch
    bands : None for all; or a band, or several, counted from 1
    level : 0, the full resolution
    device : "cuda", on torch's current GPU; "cuda:1", "cpu"; "emu" for the emulated GPU, whose tensors are the host's
    dtype : None for that of the files; or a float type of torch, into which pixels are turned as they are placed
    masked : False; True for NaN where pixels are not valid, in float32 where files hold integers and dtype says nothing
    seed : 0; the same seed gives the same windows. Processes that train together need a seed each.
    length : None for as many batches as cover the area of the files once; or their number in a pass
    transform : None; or what is called with each batch's tensor, and whose result is handed on
    places : False; True for (tensor, places), an int64 tensor (batch, 3) of file, first row, first column on the CPU
    """

    def __init__(self, files, size=256, batch=64, bands=None, level=0, device="cuda", dtype=None, masked=False, seed=0,
                 length=None, transform=None, places=False):
        super().__init__()
        self.files, self.batch, self.level = list(files), whole("batch", batch, 1), level
        shapes, self.bands, kind = survey(self.files, bands, level)
        self._places = Places(shapes, size, seed, [shown(file) for file in self.files])
        self.length = (math.ceil(self._places.windows() / self.batch) if length is None else whole("length", length, 1))
        self.masked, self.transform, self.places, self.epoch = masked, transform, places, 0
        self.dtype = self._type(dtype, kind)
        self._emulated = device == "emu"
        self.device = torch.device("cpu" if self._emulated else device)

    def _type(self, dtype, kind):
        own = getattr(torch, kind.name, None)
        if dtype is None:
            dtype = torch.float32 if self.masked and kind.kind in "iu" else own
        if dtype is None:
            raise ArgumentError(f"{shown(self.files[0])} has pixels of {kind}, which torch has not: choose a float by "
                                "dtype=")
        if self.masked and not (dtype.is_floating_point or dtype.is_complex):
            raise ArgumentError(f"dtype is {dtype}, which has no NaN for pixels that are not valid (masked=True)")
        return dtype

    def set_epoch(self, epoch):
        """Other windows for the next pass, by the number of it. Call it before the pass, as that of torch's
        DistributedSampler."""
        self.epoch = whole("epoch", epoch, 0)

    def __len__(self):
        return self.length

    def __iter__(self):
        if self.device.type == "cuda" and torch.cuda._is_in_bad_fork():
            raise DeviceError(f"device is {self.device}, and CUDA does not work in a process that was forked after its "
                              "use: give the DataLoader multiprocessing_context=\"spawn\", or take num_workers=0")
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for number in range(first, self.length, step):
            places = self._places.draw(self.batch, number, self.epoch)
            tensor = self._read(places)
            tensor = self.transform(tensor) if self.transform else tensor
            yield (tensor, torch.from_numpy(places)) if self.places else tensor

    def _read(self, places):
        height, width = self._places.size
        tensor = torch.empty((len(places), len(self.bands), height, width), dtype=self.dtype, device=self.device)
        common = {"level": self.level, "bands": self.bands, "masked": self.masked, **self._where()}
        read_many([(opened(self.files[file]),
                    {**common, "window": (row, column, row + height, column + width), "out": out})
                   for (file, row, column), out in zip(places.tolist(), self._targets(tensor))])
        return tensor

    def _targets(self, tensor):
        """The windows of a batch. Those of the host as NumPy's, since torch asks CUDA where memory of its lies, which
        in a forked worker fails."""
        return tensor if self.device.type == "cuda" else tensor.numpy()

    def _where(self):
        """Of a GPU the stream on which torch uses the tensor's memory, which others may have had before."""
        if self.device.type == "cuda":
            return {"stream": torch.cuda.current_stream(self.device).cuda_stream}
        return {"device": "emu"} if self._emulated else {}
