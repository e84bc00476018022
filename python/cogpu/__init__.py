"""GeoTIFF and Cloud Optimized GeoTIFF, read and written from host memory or of a GPU.

    import cogpu, numpy as np
    with cogpu.open("dem.tif") as file:
        pixels = np.asarray(file.read(window=(0, 0, 512, 512)))

It needs NumPy alone; NumPy too, and xarray, Dask, CuPy and PyTorch, are imported by what needs them, when it is called.
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

from . import _cogpu
from ._cogpu import Array
from .errors import (AbsentError, ArgumentError, CancelledError, CorruptError, DeviceError, Error, FallbackWarning,
                     FormatError, IOError, LimitError, MetadataWarning, MissingFileError, OutOfMemoryError,
                     UnsupportedError)
from .file import File, Level, Transform, check, open, read_many
from .stored import Stored, allow_schemes

__version__ = _cogpu.version()
codecs, devices = _cogpu.codecs, _cogpu.devices

# Names that bring other packages with them, and the modules that have them.
_LATER = {"open_geotiff": "read", "to_geotiff": "write"}
_MODULES = {"compat", "dask", "engine", "georef", "lazy", "torch"}

__all__ = ["AbsentError", "ArgumentError", "Array", "CancelledError", "CorruptError", "DeviceError", "Error",
           "FallbackWarning", "File", "FormatError", "IOError", "Level", "LimitError", "MetadataWarning",
           "MissingFileError", "OutOfMemoryError", "Stored", "Transform", "UnsupportedError", "check", "codecs",
           "configure", "devices", "open", "open_geotiff", "read_many", "to_geotiff"]


def configure(*, threads: int = 0, cache_bytes: int = 0, device_bytes: int = 0, jpeg_engines: bool = False,
              network: dict[str, Any] | None = None) -> None:
    """Of the one context of the process, which the first read makes; a new one from then on. A file opened by its URL
    keeps the one that it was opened with. `network` has the fields of cogpu_network by name; what is left out, None or
    0 is the default. Its `schemes` hold for URLs that obstore and fsspec open too."""
    _cogpu.configure(threads=threads, cache_bytes=cache_bytes, device_bytes=device_bytes, jpeg_engines=jpeg_engines,
                     network=network)
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
