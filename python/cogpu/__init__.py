"""cogpu reads and writes GeoTIFF and Cloud Optimized GeoTIFF (COG), from and to host memory and GPU memory.

    import cogpu, numpy as np
    with cogpu.open("dem.tif") as file:
        pixels = np.asarray(file.read(window=(0, 0, 512, 512)))

NumPy is the only requirement. NumPy, xarray, Dask, CuPy and PyTorch are imported when a function first needs them.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from . import _cogpu
from ._cogpu import Array
from .errors import (CancelledError, CorruptError, DeviceError, Error, FallbackWarning, InvalidArgumentError, IOError,
                     LimitExceededError, MetadataWarning, MissingFileError, NotFoundError, NotTiffError,
                     OutOfMemoryError, SourceWarning, UnsupportedError)
from .file import File, Level, SourceInfo, Transform, check, open, read_many
from .keywords import accept_other_names
from .mosaic import Source, open_mosaic, write_vrt
from .stored import Stored, allow_schemes

__version__ = _cogpu.version()
codecs, devices = _cogpu.codecs, _cogpu.devices

# Names that bring other packages with them, and the modules that have them.
_LATER = {"open_geotiff": "read", "to_geotiff": "write"}
_MODULES = {"compat", "dask", "engine", "georef", "lazy", "torch"}

__all__ = ["Array", "CancelledError", "CorruptError", "DeviceError", "Error", "FallbackWarning", "File", "IOError",
           "InvalidArgumentError", "Level", "LimitExceededError", "MetadataWarning", "MissingFileError",
           "NotFoundError", "NotTiffError", "OutOfMemoryError", "Source", "SourceInfo", "SourceWarning", "Stored",
           "Transform", "UnsupportedError", "check", "codecs", "configure", "devices", "open", "open_geotiff",
           "open_mosaic", "read_many", "to_geotiff", "write_vrt"]


@accept_other_names
def configure(*, threads: int = 0, cache_bytes: int | None = None, device_bytes: int = 0, use_nvjpeg_hardware: bool = False,
              network: dict[str, Any] | None = None, device_cache_bytes: int = 0) -> None:
    """Sets threads, caches and network of the process. Later reads and writes use a new context with these settings.
    A File of a URL keeps the connections with which it was opened.

    threads              CPU threads that fetch and decode (default: one per CPU core)
    cache_bytes          decoded blocks kept for later reads into host memory, until their File is closed; 0: none
                         (default: 5 % of the memory, at most 256 MiB, of blocks that a read needs a part of)
    device_bytes         GPU memory of reads besides the caller's array (default: 512 MB)
    device_cache_bytes   GPU memory that keeps blocks as they are stored, for later reads of the same Files with that
                         GPU, which then read no file and copy nothing to it: for the epochs of a training run.
                         0: none (default)
    use_nvjpeg_hardware  True: the GPU's JPEG decoder is used, if it has one and nvJPEG is installed
    network              fields of cogpu_network by name, such as {"max_retries": 0, "timeout_seconds": 60}. A field
                         that is left out, or None, has its default. `schemes` applies to obstore and fsspec too
    """
    _cogpu.configure(threads=threads, cache_bytes=cache_bytes, device_bytes=device_bytes,
                     use_nvjpeg_hardware=use_nvjpeg_hardware, network=network,
                     device_cache_bytes=device_cache_bytes)
    allow_schemes(network)


os.register_at_fork(after_in_child=_cogpu.forget_context)


if TYPE_CHECKING:  # to checkers these are there, and no others
    from . import compat as compat
    from . import dask as dask
    from . import engine as engine
    from . import georef as georef
    from . import lazy as lazy
    from . import torch as torch
    from .read import open_geotiff as open_geotiff
    from .write import to_geotiff as to_geotiff
else:
    def __getattr__(name):
        if name in _LATER:
            return getattr(importlib.import_module("." + _LATER[name], __name__), name)
        if name in _MODULES:
            return importlib.import_module("." + name, __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
