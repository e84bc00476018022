"""What can go wrong, a class for each status of the engine.

Each is also the built-in exception that a user would catch for it. A message that is about a file names it.
"""

import re

from .urls import shown


class Error(Exception):
    """What, where and what to do. `directory`, `block` and `offset` are None where they do not apply."""

    status = "error"

    def __init__(self, message, directory=None, block=None, offset=None):
        super().__init__(message)
        self.directory, self.block, self.offset = directory, block, offset

    def __str__(self):
        return str(self.args[0]) if self.args else ""

    def __reduce__(self):
        return type(self), (str(self), self.directory, self.block, self.offset)


class ArgumentError(Error, ValueError):
    """The call itself is wrong."""

    status = "argument"


class OutOfMemoryError(Error, MemoryError):
    """The host, or a GPU, has not enough memory."""

    status = "memory"


class IOError(Error, OSError):
    """The operating system, or the object that was read from or written to, failed."""

    status = "io"


class FormatError(Error, ValueError):
    """Not a TIFF at all."""

    status = "format"


class CorruptError(Error, ValueError):
    """A TIFF whose content contradicts itself or is cut off."""

    status = "corrupt"


class UnsupportedError(Error, ValueError):
    """Valid, but this build or the engine cannot do it."""

    status = "unsupported"


class LimitError(Error, ValueError):
    """Beyond a limit that the caller may raise."""

    status = "limit"


class DeviceError(Error, RuntimeError):
    """A GPU failed, or there is none of that number."""

    status = "device"


class AbsentError(Error, LookupError):
    """What was asked for is not there: no such image, level, band, tag."""

    status = "absent"


class CancelledError(Error):
    """The caller's progress function cancelled the call."""

    status = "cancelled"


class MissingFileError(AbsentError, FileNotFoundError):
    """There is no such file."""


class FallbackWarning(UserWarning):
    """A GPU was asked for, and the CPU did the work."""


class MetadataWarning(UserWarning):
    """Metadata of a file are malformed and not applied: a scale of 0, NaN or "abc"."""


BY_STATUS = {kind.status: kind for kind in (ArgumentError, OutOfMemoryError, IOError, FormatError, CorruptError,
                                            UnsupportedError, LimitError, DeviceError, AbsentError, CancelledError)}


def make(status, message, directory=-1, block=-1, offset=-1, name=None, is_missing=False):
    """The exception for a failure that the engine tells of; `name` is the path or URL of the file, or None."""
    places = (None if place < 0 else place for place in (directory, block, offset))
    kind = MissingFileError if is_missing else BY_STATUS[status]
    return kind(_with_name(message, name), *places)


def _with_name(message, name):
    """The message with the file's name in front, unless it has the name already."""
    name = shown(name) if name else ""
    is_named = not name or re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", message)
    return message if is_named else f"{name}: {message}"


def add_name(error, name):
    """Names the file in an exception: in the message of ours, in a note to those of others."""
    if isinstance(error, (Error, TypeError)) and error.args and isinstance(error.args[0], str):
        error.args = (_with_name(error.args[0], name), *error.args[1:])
    elif name and isinstance(error, Exception):
        note = f"file: {shown(name)}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)


class about:
    """A context whose exceptions name a file: `with about(file.name): ...`"""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if error is not None:
            add_name(error, self.name)
