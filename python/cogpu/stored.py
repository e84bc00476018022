"""Files in stores of obstore and filesystems of fsspec, as sources whose ranges are asked for many at once."""

import contextlib
import functools
import sys
import threading

from .errors import UnsupportedError


class Stored:
    """A file in a store, to be opened: cogpu.open(cogpu.Stored(store, path)). What a read needs is asked for together,
    as far as the store can: those of obstore, and of fsspec all that work asynchronously (s3fs, gcsfs, adlfs, HTTP).

    store  a store of obstore, or a filesystem of fsspec
    path   of the file in it
    """

    def __init__(self, store, path):
        if not hasattr(store, "get_ranges") and not hasattr(store, "cat_ranges"):
            raise TypeError(f"store must be a store of obstore or a filesystem of fsspec, not {type(store)!r}")
        self.store, self.name = store, path
        is_asked_by_many = hasattr(store, "get_ranges") or getattr(store, "async_impl", False)
        self._turn = contextlib.nullcontext() if is_asked_by_many else threading.Lock()

    def __repr__(self):
        return f"<cogpu.Stored {self.name!r} in {type(self.store).__name__}>"

    @functools.cached_property
    def size(self) -> int:
        """In bytes."""
        if hasattr(self.store, "get_ranges"):
            return self.store.head(self.name)["size"]
        with self._turn:
            size = self.store.size(self.name)
        if size is None:
            raise UnsupportedError(f"{self.name}: the filesystem does not say how long the file is")
        return size

    def read_many(self, starts, ends):
        """A buffer for each range of bytes. Any thread may ask."""
        if hasattr(self.store, "get_ranges"):
            return self.store.get_ranges(self.name, starts=starts, ends=ends, coalesce=0)  # the engine has done so
        with self._turn:
            return self.store.cat_ranges([self.name] * len(starts), starts, ends, on_error="raise")


def source_of(source):
    """What fsspec.open gives says which file of which filesystem it is; other sources stay as they are."""
    fsspec = sys.modules.get("fsspec")
    if fsspec and isinstance(source, fsspec.core.OpenFile) and source.mode == "rb" and not source.compression:
        return Stored(source.fs, source.path)
    return source
