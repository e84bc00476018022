"""What can go wrong, a class for each status of the engine.

Each is also the built-in exception that a user would catch for it.
"""


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
    """Sound, but this build or the engine cannot do it."""

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
    """A GPU was asked for, and the processor did the work."""


BY_STATUS = {kind.status: kind for kind in (ArgumentError, OutOfMemoryError, IOError, FormatError, CorruptError,
                                            UnsupportedError, LimitError, DeviceError, AbsentError, CancelledError)}


def make(status, message, directory=-1, block=-1, offset=-1):
    """The exception for a failure that the engine tells of."""
    places = (None if place < 0 else place for place in (directory, block, offset))
    return BY_STATUS[status](message, *places)
