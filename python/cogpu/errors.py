"""Exceptions: one class for each status of cogpu.h.

Each is also the matching built-in exception: InvalidArgumentError is a ValueError. A message about a file names it.
"""

from __future__ import annotations

import re
from typing import Any

from .urls import shown


class Error(Exception):
    """Base class. The message says what, where and what to do. `directory`, `block` and `offset` are the location in
    the file, or None."""

    status = "error"

    def __init__(self, message: str, directory: int | None = None, block: int | None = None,
                 offset: int | None = None) -> None:
        super().__init__(message)
        self.directory, self.block, self.offset = directory, block, offset

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.directory, self.block, self.offset)


class InvalidArgumentError(Error, ValueError):
    """The call is wrong: a window outside the image, a wrong type."""

    status = "invalid_argument"


class OutOfMemoryError(Error, MemoryError):
    """The host or a GPU has not enough memory."""

    status = "out_of_memory"


class IOError(Error, OSError):
    """The operating system, the network, or the object that is read from or written to failed."""

    status = "io_error"


class NotTiffError(Error, ValueError):
    """Not a TIFF file."""

    status = "not_tiff"


class CorruptError(Error, ValueError):
    """A TIFF that is truncated or contradicts itself."""

    status = "corrupt"


class UnsupportedError(Error, ValueError):
    """Valid, but this build or this version cannot handle it."""

    status = "unsupported"


class LimitExceededError(Error, ValueError):
    """Beyond a limit that the caller may raise."""

    status = "limit_exceeded"


class DeviceError(Error, RuntimeError):
    """A GPU failed, or there is no such GPU."""

    status = "device_error"


class NotFoundError(Error, LookupError):
    """No such file, image, level, band or tag."""

    status = "not_found"


class CancelledError(Error):
    """The caller's progress function cancelled the call."""

    status = "cancelled"


class MissingFileError(NotFoundError, FileNotFoundError):
    """No such file."""


class FallbackWarning(UserWarning):
    """A GPU was requested, and the CPU did the work."""


class SourceWarning(UserWarning):
    """Sources of a mosaic are left out since they cannot be opened or read (skip_bad_sources)."""


class MetadataWarning(UserWarning):
    """Metadata of a file are malformed and not applied: a scale of 0, NaN or "abc"."""


KINDS: tuple[type[Error], ...] = (InvalidArgumentError, OutOfMemoryError, IOError, NotTiffError, CorruptError,
                                  UnsupportedError, LimitExceededError, DeviceError, NotFoundError, CancelledError)
BY_STATUS = {kind.status: kind for kind in KINDS}


def make(status: str, message: str, directory: int = -1, block: int = -1, offset: int = -1, name: str | None = None,
         is_missing: bool = False) -> Error:
    """The exception for a failure that the engine tells of; `name` is the path or URL of the file, or None."""
    places = (None if place < 0 else place for place in (directory, block, offset))
    kind = MissingFileError if is_missing else BY_STATUS[status]
    return kind(_with_name(message, name), *places)


def _with_name(message: str, name: str | None) -> str:
    """The message with the file's name in front, unless it has the name already."""
    name = shown(name) if name else ""
    is_named = not name or re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", message)
    return message if is_named else f"{name}: {message}"


def add_name(error: BaseException, name: str | None) -> None:
    """Names the file in an exception: in the message of ours, in a note to those of others."""
    if isinstance(error, (Error, TypeError)) and error.args and isinstance(error.args[0], str):
        error.args = (_with_name(error.args[0], name), *error.args[1:])
    elif name and isinstance(error, Exception):
        note = f"file: {shown(name)}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


class about:
    """A context whose exceptions name a file: `with about(file.name): ...`"""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __enter__(self) -> about:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            add_name(error, self.name)
