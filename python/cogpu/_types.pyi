"""Types of parameters, for checkers such as pyright and mypy: there is no such module when a program runs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
from typing_extensions import Buffer

from .errors import Error
from .file import File
from .mosaic import Source as MosaicPart
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

class Pair(Protocol):
    """odc.geo.Resolution."""

    @property
    def x(self) -> float: ...
    @property
    def y(self) -> float: ...

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
WarpResampling: TypeAlias = (Literal["nearest", "bilinear", "cubic", "cubic_spline", "lanczos", "average", "rms",
                                     "mode", "min", "max", "median", "q1", "q3", "sum"] | Named)
Composite: TypeAlias = Literal["first", "last", "min", "max", "mean", "median", "count"]
MosaicSource: TypeAlias = SourceOrFile | MosaicPart | Mapping[str, Any]
MosaicSources: TypeAlias = MosaicSource | Iterable[MosaicSource]
VrtSources: TypeAlias = Literal["below", "any"]
Resolution: TypeAlias = float | Sequence[float] | Pair
Shape: TypeAlias = Sequence[int | None]
GridLike: TypeAlias = Any  # a DataArray, Dataset, GeoBox, File, path, or dataset of rasterio
Gpu: TypeAlias = bool | Literal["emu"]
OnGpuFailure: TypeAlias = Literal["auto", "strict"]
Coordinates: TypeAlias = bool | Literal["2d"]
Crs: TypeAlias = Any  # a number of EPSG, a text, or an object with to_wkt
Sides: TypeAlias = tuple[int, int]  # height, width
Bounds: TypeAlias = tuple[int, int, int, int]  # row0, col0, row1, col1
Six: TypeAlias = tuple[float, float, float, float, float, float]

class Image(TypedDict):
    """File.info: fields of cogpu_image."""

    directory: int
    width: int
    height: int
    bands: int
    type: str
    bits: int
    levels: int
    layout: str
    block_width: int
    block_height: int
    blocks: int
    interleave: str
    compression: int
    codec: str
    predictor: int
    photometric: int
    orientation: int
    fill_order: int
    big_endian: bool
    bigtiff: bool
    ghost: int
    description: str | None
    mask_source: str
    alpha_band: int
    premultiplied: bool
    palette: list[tuple[int, int, int]] | None
    has_transform: bool
    transform: Six
    pixel_is_point: bool
    gcps: list[tuple[float, ...]]
    gcp_names: list[tuple[str | None, str | None]]
    rpc: tuple[float, ...] | None
    geokey_count: int
    metadata_count: int
    warning: str | None
    nodata: int | float | None
    nodata_text: str | None
    nodata_matches: bool

class LevelInfo(TypedDict):
    """Fields of cogpu_level."""

    directory: int
    external: bool
    width: int
    height: int
    layout: str
    block_width: int
    block_height: int
    blocks: int
    compression: int
    codec: str
    predictor: int
    has_mask: bool
    mask_external: bool
    mask_directory: int
    has_transform: bool
    transform: Six

class Band(TypedDict):
    """Fields of cogpu_band."""

    description: str | None
    unit: str | None
    interpretation: str
    scale: float
    offset: float
    has_scale: bool
    nodata: int | float | None
    nodata_text: str | None
    nodata_matches: bool

class MetadataItem(TypedDict):
    """Fields of cogpu_metadata_item."""

    domain: str
    name: str
    value: str
    role: str
    band: int

class SourceFacts(TypedDict):
    """Fields of cogpu_source_description."""

    path: str | None
    error: Error | None
    is_reprojected: bool
    is_copied: bool
    window: tuple[int, int, int, int]

class CrsInfo(TypedDict):
    """Fields of cogpu_crs."""

    model: str
    authority: str
    code: int
    vertical: int
    name: str
    epoch: float
    external: bool
