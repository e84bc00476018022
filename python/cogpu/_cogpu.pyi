"""The engine, as the extension module shows it: files, arrays, writers. It takes plain words and numbers and checks them;
what is pleasant to use stands in the modules around it. All calls that work release the GIL. All failures are errors.Error.

Devices are named "cpu", "cuda", "cuda:N", "emu", "emu:N"; without a number it is the calling thread's current one
(cogpu_device_current). Windows are (x, y, width, height) here. Arrays are all that has __dlpack__ (versioned is asked for
first), __cuda_array_interface__ or __array_interface__, or is a buffer; 2-D ones are one band.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

class Array:
    """Pixels in host memory or of a device, shaped (band, y, x). Memory is freed with the last that refers to it,
    on any thread, also after the interpreter's end."""

    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def dtype(self) -> str:
        """NumPy's name: "float32"; "complex_int16" and "complex_int32" where NumPy has none."""
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> str:
        """ "cpu", "cuda:0", "emu:1" """
    @property
    def result(self) -> dict[str, Any]:
        """What the read did: fields of cogpu_result."""
    def wait(self) -> None:
        """Of a read with wait=False: waits, and raises what went wrong; and raises DeviceError where blocks came late, after
        others may have used the memory."""
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
    def __init__(self, source: object, *, sidecars: bool | None = None, limits: dict[str, int] | None = None) -> None:
        """A path (str, bytes, os.PathLike) or a URL, which the context's connections serve, or the whole file as a
        buffer (not bytes), or an object with read and seek, which is read under a lock, or with size and
        read_many(starts, ends), which gives a buffer for each range, and which threads call at once."""
    def state(self) -> str | None:
        """What tells a file behind a URL from what stood there before; None for others."""
    def sidecars(self) -> list[str]:
        """Paths of the sidecars in use."""
    def info(self, image: int = 0) -> dict[str, Any]:
        """Fields of cogpu_image by name; types and enums as words; nodata None or an int, float; gcps a list of tuples, and
        gcp_names of (id, info); rpc a tuple or None; palette a list of (r, g, b) or None."""
    def level(self, image: int, level: int) -> dict[str, Any]: ...
    def band(self, image: int, band: int) -> dict[str, Any]: ...
    def items(self, image: int = 0) -> list[dict[str, Any]]: ...
    def crs(self, image: int = 0) -> dict[str, Any] | None: ...
    def wkt(self, image: int = 0) -> str | None:
        """None where there are no keys, no PROJ, or PROJ cannot name the system."""
    def geokeys(self, image: int = 0) -> list[tuple[int, str, object]]: ...
    def directories(self) -> list[dict[str, Any]]: ...
    def tags(self, directory: int) -> list[dict[str, Any]]: ...
    def tag(self, directory: int, id: int) -> object:
        """bytes of a text or of UNDEFINED, else a tuple of numbers."""
    def read(self, *, image: int = 0, level: int = 0, window: tuple[int, int, int, int] | None = None,
             bands: tuple[int, ...] | None = None, part: str = "pixels", dtype: str | None = None,
             nan_where_invalid: bool = False, scaled: bool = False, fill_bad_blocks: bool = False,
             threads: int = 0, device: str | None = None, out: object = None, stream: int | None = None, wait: bool = True) -> Array:
        """Bands are 1-based. With `out` the pixels go there, and the Array that comes back is a view of it that keeps it alive; `device` is needed with
        `out` only to say that host memory is to be an emulated GPU's."""
    def close(self) -> None:
        """Safe while others read: the file is closed after the last of them."""

def read_many(requests: list[tuple[File, dict[str, Any]]]) -> list[Array]:
    """One batch. A request is a file and the keywords of its read, without wait and threads."""

class Writer:
    def __init__(self, target: object, profile: dict[str, Any], inputs: list[Any] = ...) -> None:
        """A path or s3:// address, None for memory, or an object with write (and seek, where it has one and seekable() is true; else in order). The profile has the fields of
        cogpu_profile by name; enums as words; `nodata` a text; items as in File.items; `device` as above. `inputs` are paths that are read for the file: ArgumentError where one of
        them would be removed as a sidecar of the file that it replaces."""
    def push(self, rows: object, mask: object = None, stream: int | None = None) -> None: ...
    def put(self, level: int, part: str, block: int, data: object) -> None:
        """`data` is a buffer; or an int, of all blocks of level 0 of a COG: so many bytes stay elsewhere, and the target gets the file up to
        where level 0 begins."""
    def close(self) -> dict[str, Any]:
        """Fields of cogpu_written; "memory" a read-only buffer where the target was None."""
    def abort(self) -> None: ...

def outline(profile: dict[str, Any]) -> list[dict[str, int]]: ...
def encode(profile: dict[str, Any], level: int, part: str, block: int, pixels: object) -> bytes: ...
def frame(blocks: Sequence[bytes]) -> bytes:
    """Blocks of a COG as they follow each other in the file."""
def overview_needs(profile: dict[str, Any], level: int, window: tuple[int, int, int, int]) -> tuple[int, int, int, int]: ...
def overview_make(profile: dict[str, Any], level: int, window: tuple[int, int, int, int], pixels: object, mask: object = None) -> tuple[Array, Array | None]: ...

# Objects of S3 that several processes write, each by its own context's settings and credentials: see cogpu.h.
PART_BYTES_MIN: int  # of an upload's parts, but for the last
def upload_plan(bytes: int) -> tuple[int, int]:
    """(bytes of a part, parts at most) of an object that may get so long."""
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
    """An Array over an array of the host's; for a GPU, of a copy there."""
def current_device(kind: str) -> str: ...
def check(file: File, *, strict: bool = False) -> dict[str, Any]: ...
def configure(*, threads: int = 0, cache_bytes: int = 0, device_bytes: int = 0, jpeg_engines: bool = False,
              network: dict[str, Any] | None = None) -> None:
    """Of the one context of the process, which the first read makes; a new one from then on. A file opened by its URL keeps the
    one that it was opened with. `network` has the fields of cogpu_network by name; what is left out, None or 0 is the default."""
def forget_context() -> None:
    """After a fork: its threads are not here."""
