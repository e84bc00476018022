"""The extension module over cogpu.h: files, arrays, writers. It takes plain str, int and tuples and checks them. Calls
that do work release the GIL. Failures are errors.Error.

Devices are "cpu", "cuda", "cuda:N", "emu", "emu:N"; without a number the calling thread's current one
(cogpu_device_current). Windows are (x, y, width, height). Arrays are all objects with __dlpack__ (the versioned one
comes first), __cuda_array_interface__, __array_interface__ or the buffer protocol; 2-D arrays are one band.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._types import Band, CrsInfo, Image, LevelInfo, MetadataItem, SourceFacts

class Array:
    """Pixels in host or device memory, shaped (band, y, x). NumPy, CuPy and PyTorch share its memory, which is freed
    with the last reference."""

    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def dtype(self) -> str:
        """NumPy's name: "float32"; or "complex_int16", "complex_int32", which NumPy lacks."""
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str:
        """ "cpu", "cuda:0", "emu:1" """
    @property
    def result(self) -> dict[str, Any]:
        """Fields of cogpu_result: blocks, bytes and milliseconds of the read."""
    def wait(self) -> None:
        """Waits for a read with wait=False and raises its error. DeviceError if the CPU decoded blocks late, after
        other work of the stream may have used the memory."""
    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    # Of host and emulated memory, and of a GPU's; both show complex integers as pairs.
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

class File:
    def __init__(self, source: object, *, sidecars: bool | None = None, limits: dict[str, int] | None = None,
                 vrt_sources: str | None = None) -> None:
        """Source: a path (str, bytes, os.PathLike) or URL; the content of a file as a buffer (not bytes); an object
        with read and seek, which is read under a lock; or one with size and read_many(starts, ends), which returns a
        buffer for each range, and which several threads call at a time."""
    def image_count(self) -> int: ...
    def version_id(self) -> str | None:
        """cogpu_file_version_id."""
    def sidecars(self) -> list[str]:
        """Paths of the sidecars in use."""
    def info(self, image: int = 0) -> Image:
        """Fields of cogpu_image by name; types and enums by their names. nodata, nodata_text and nodata_matches of band
        1; gcps: list of tuples; gcp_names: list of (id, info); rpc: tuple or None; palette: list of (r, g, b) or
        None."""
    def level(self, image: int, level: int) -> LevelInfo: ...
    def band(self, image: int, band: int) -> Band: ...
    def metadata(self, image: int = 0) -> list[MetadataItem]: ...
    def crs(self, image: int = 0) -> CrsInfo | None: ...
    def wkt(self, image: int = 0) -> str | None:
        """None without a CRS, without PROJ, or if PROJ cannot express the CRS."""
    def geokeys(self, image: int = 0) -> list[tuple[int, str, object]]: ...
    def directories(self) -> list[dict[str, Any]]: ...
    def tags(self, directory: int) -> list[dict[str, Any]]: ...
    def tag(self, directory: int, id: int) -> object:
        """bytes for ASCII and UNDEFINED, else a tuple of numbers."""
    def read(self, *, image: int = 0, level: int = 0, window: tuple[int, int, int, int] | None = None,
             bands: tuple[int, ...] | None = None, content: str = "pixels", dtype: str | None = None,
             masked: bool = False, unscale: bool = False, fill_bad_blocks: bool = False,
             threads: int = 0, device: str | None = None, decode: str | None = None, out: object = None,
             stream: int | None = None, wait: bool = True) -> Array:
        """Bands count from 1. With `out` the Array is a view of it that keeps it alive; `device` then matters only for
        host memory that serves as an emulated GPU's. `decode`: the device that decodes into host memory."""
    def sources(self) -> list[SourceFacts]:
        """Of a mosaic: fields of cogpu_source_description; windows are (left, top, right, bottom)."""
    def write_vrt(self, target: object) -> Any:
        """Target: as of a Writer. With None it returns the VRT as a read-only buffer."""
    def close(self) -> None:
        """Closes the file after pending reads of other threads."""

def open_mosaic(sources: Sequence[dict[str, Any]], options: dict[str, Any], *, grid: dict[str, Any] | None = None,
                sidecars: bool | None = None, limits: dict[str, int] | None = None,
                vrt_sources: str | None = None) -> File:
    """The dicts have the fields of cogpu_mosaic_source, cogpu_mosaic_options (`dtype` for type) and cogpu_grid by name;
    `file` is a File, and enums have their names."""
def read_many(requests: list[tuple[File, dict[str, Any]]]) -> list[Array]:
    """One batch. A request is a file and the keywords of its read, without wait and threads."""
def read_windows(files: list[File], places: np.ndarray[Any, np.dtype[np.int64]], out: object, *, level: int = 0,
                 bands: tuple[int, ...] | None = None, masked: bool = False, unscale: bool = False,
                 fill_bad_blocks: bool = False, device: str | None = None, stream: int | None = None) -> dict[str, int]:
    """One window of each file, as one batch. `places` has image, row and column of each window, `out` (windows * bands,
    height, width) the windows one after the other; its shape and dtype are those of the request. Returns the counts of
    cogpu_result, summed."""

class Writer:
    def __init__(self, target: object, profile: dict[str, Any], inputs: list[Any] = ...) -> None:
        """Target: a path or s3:// URL, None for memory, or an object with write; without seek, or if seekable() is
        false, it is written in order. The profile has the fields of cogpu_profile by name; enums by their names;
        `nodata` as str; `metadata` as from File.metadata; `device` as above. `inputs` are paths that the file is made
        of: InvalidArgumentError if one of them would be removed as a sidecar of the old file."""
    def write_rows(self, rows: object, mask: object = None, stream: int | None = None) -> None: ...
    def write_block(self, level: int, content: str, block: int, data: object) -> None:
        """`data` is a buffer; or an int for all blocks of level 0 of a COG: that many bytes stay elsewhere, and the
        target gets the file up to level 0."""
    def close(self) -> dict[str, Any]:
        """Fields of cogpu_written; "memory" is a read-only buffer if the target was None."""
    def abort(self) -> None: ...

def level_layouts(profile: dict[str, Any]) -> list[dict[str, int]]: ...
def encode_block(profile: dict[str, Any], level: int, content: str, block: int, pixels: object) -> bytes: ...
def add_leaders_trailers(blocks: Sequence[bytes]) -> bytes:
    """Blocks of a COG as they follow each other in the file."""
def overview_source_window(profile: dict[str, Any], level: int,
                           window: tuple[int, int, int, int]) -> tuple[int, int, int, int]: ...
def overview_compute(profile: dict[str, Any], level: int, window: tuple[int, int, int, int], pixels: object,
                     mask: object = None) -> tuple[Array, Array | None]: ...

# S3 multipart uploads by several processes, each with its own settings and credentials: see cogpu_distributed.h.
PART_BYTES_MIN: int  # of all parts but the last
def upload_plan(bytes: int) -> tuple[int, int]:
    """(bytes of a part, largest number of parts) of an object of at most so many bytes."""
def upload_begin(address: str) -> str: ...
def upload_send(address: str, upload: str, number: int, data: object) -> str:
    """The part's ETag."""
def upload_complete(address: str, upload: str, parts: Sequence[tuple[int, str]], bytes: int) -> None: ...
def upload_abort(address: str, upload: str) -> None: ...

def version() -> str: ...
def devices() -> list[dict[str, Any]]: ...
def codecs() -> list[dict[str, Any]]: ...
def resamplings() -> list[str]: ...
def photometrics() -> dict[str, int]: ...
def device_of(array: object) -> str: ...
def place(array: object, device: str) -> Array:
    """An Array over a host array; for a GPU, over a copy there."""
def current_device(kind: str) -> str: ...
def bbox_to_window(transform: Sequence[float], width: int, height: int,
                   bbox: Sequence[float]) -> tuple[int, int, int, int]:
    """cogpu_bbox_to_window: (x, y, width, height). NotFoundError if the box does not touch the level."""
def check(file: File, *, strict: bool = False) -> dict[str, Any]: ...
def configure(*, threads: int = 0, cache_bytes: int | None = None, device_bytes: int = 0, use_nvjpeg_hardware: bool = False,
              network: dict[str, Any] | None = None, device_cache_bytes: int = 0) -> None:
    """Settings of the process's context, which the next read creates. `network` has the fields of cogpu_network by
    name."""
def forget_context() -> None:
    """After a fork: the child has none of the context's threads."""
