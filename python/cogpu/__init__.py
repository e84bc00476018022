"""GeoTIFF and Cloud Optimized GeoTIFF, read and written from memory of the host or of a GPU.

    import cogpu, numpy as np
    with cogpu.open("dem.tif") as file:
        pixels = np.asarray(file.read(window=(0, 0, 512, 512)))

It needs NumPy alone; NumPy too, and xarray, Dask, CuPy and PyTorch, are imported by what needs them, when it is called.
"""

import importlib
import os

from . import _cogpu
from ._cogpu import Array
from .errors import (AbsentError, ArgumentError, CancelledError, CorruptError, DeviceError, Error, FallbackWarning,
                     FormatError, IOError, LimitError, MissingFileError, OutOfMemoryError, UnsupportedError)
from .file import File, Level, Transform, check, open, read_many
from .stored import Stored

__version__ = _cogpu.version()
codecs, configure, devices = _cogpu.codecs, _cogpu.configure, _cogpu.devices

# Names that bring other packages with them, and the modules that have them.
_LATER = {"open_geotiff": "read", "to_geotiff": "write"}
_MODULES = {"compat", "dask", "engine", "georef", "lazy", "torch"}

__all__ = ["AbsentError", "ArgumentError", "Array", "CancelledError", "CorruptError", "DeviceError", "Error",
           "FallbackWarning", "File", "FormatError", "IOError", "Level", "LimitError", "MissingFileError",
           "OutOfMemoryError", "Stored", "Transform", "UnsupportedError", "check", "codecs", "configure", "devices",
           "open", "open_geotiff", "read_many", "to_geotiff"]

os.register_at_fork(after_in_child=_cogpu.forget_context)


def __getattr__(name):
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LATER, *_MODULES})
