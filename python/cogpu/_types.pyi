"""Types of parameters, for checkers such as pyright and mypy: there is no such module when a program runs."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from typing_extensions import Buffer

from .file import File
from .stored import Stored

class Readable(Protocol):
    """An object that a file is read from."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...

class Writable(Protocol):
    """An object that a file is written to."""

    def write(self, data: bytes, /) -> Any: ...

class RasterioWindow(Protocol):
    """rasterio.windows.Window."""

    @property
    def col_off(self) -> Any: ...
    @property
    def row_off(self) -> Any: ...
    @property
    def width(self) -> Any: ...
    @property
    def height(self) -> Any: ...

class Named(Protocol):
    """A member of an enumeration, as rasterio.enums.Resampling has them."""

    @property
    def name(self) -> str: ...

class OpenFile(Protocol):
    """What fsspec.open gives."""

    @property
    def fs(self) -> Any: ...
    @property
    def path(self) -> Any: ...

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Source: TypeAlias = Path | Buffer | Readable | Stored | OpenFile
SourceOrFile: TypeAlias = Source | File
Window: TypeAlias = (Sequence[int] | Sequence[Sequence[int | None]] | tuple[slice, slice] | RasterioWindow
                     | np.ndarray[Any, Any])
Bands: TypeAlias = int | np.integer[Any] | Sequence[int] | np.ndarray[Any, Any]
Chunks: TypeAlias = int | str | Sequence[Any] | Mapping[Any, Any]
Resampling: TypeAlias = (Literal["nearest", "average", "rms", "bilinear", "cubic", "cubic_spline", "lanczos", "mode"]
                         | Named)
Gpu: TypeAlias = bool | Literal["emu"]
OnGpuFailure: TypeAlias = Literal["auto", "strict"]
Coordinates: TypeAlias = bool | Literal["2d"]
Crs: TypeAlias = Any  # a number of EPSG, a text, or an object with to_wkt
