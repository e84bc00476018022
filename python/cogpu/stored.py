"""Files in obstore stores and fsspec filesystems as sources, and URLs of schemes that the library does not have."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from .errors import InvalidArgumentError, IOError, MissingFileError, UnsupportedError
from .gdal_names import refuse_gdal_name
from .urls import is_path, local_path, scheme_of, shown

ENGINE_SCHEMES = ("http", "https", "s3")
# Schemes of object stores that obstore knows, and the package that has them for fsspec.
CLOUD_SCHEMES = {"gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "azure": "adlfs", "adl": "adlfs", "abfs": "adlfs",
                 "abfss": "adlfs"}


class Stored:
    """A file in an obstore store or fsspec filesystem, as a source: cogpu.open(cogpu.Stored(store, path)).

    All ranges of a read are requested together if the store can do that: obstore's can, and fsspec's asynchronous ones
    (s3fs, gcsfs, adlfs, HTTP).

    store  an obstore store or fsspec filesystem
    path   path of the file in the store
    name   name in messages (default: the path)
    """

    def __init__(self, store: Any, path: str, name: str | None = None) -> None:
        if not hasattr(store, "get_ranges") and not hasattr(store, "cat_ranges"):
            raise TypeError(f"store must be a store of obstore or a filesystem of fsspec, not {type(store)!r}")
        self.store, self.path, self.name = store, path, path if name is None else name
        is_asked_by_many = hasattr(store, "get_ranges") or getattr(store, "async_impl", False)
        self._turn = contextlib.nullcontext() if is_asked_by_many else threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.store, self.path, self.name)

    def __repr__(self) -> str:
        return f"<cogpu.Stored {self.name!r} in {type(self.store).__name__}>"

    @functools.cached_property
    def size(self) -> int:
        """Size of the file in bytes."""
        try:
            with self._turn:
                is_obstore = hasattr(self.store, "get_ranges")
                size = self.store.head(self.path)["size"] if is_obstore else self.store.size(self.path)
        except FileNotFoundError as error:
            raise MissingFileError(f"{self.name}: there is no such file in {type(self.store).__name__}") from error
        if size is None:
            raise UnsupportedError(f"{self.name}: the filesystem does not say how long the file is")
        return int(size)

    def read_many(self, starts: Sequence[int], ends: Sequence[int]) -> Any:
        """Returns a buffer for each range of bytes. Threads may share it."""
        if hasattr(self.store, "get_ranges"):
            return self.store.get_ranges(self.path, starts=starts, ends=ends, coalesce=0)  # the engine has done so
        with self._turn:
            return self.store.cat_ranges([self.path] * len(starts), starts, ends, on_error="raise")


def source_of(source: Any) -> Any:
    """A source as the engine takes it: URLs of files become paths, URLs of other schemes than its own and what
    fsspec.open gives become a Stored. Other sources stay as they are."""
    if is_path(source):
        source, scheme = path_of(source), scheme_of(source)
        if scheme in (None, "file"):
            refuse_gdal_name(source)
        return source if scheme in (None, "file", *ENGINE_SCHEMES) else _stored_at(os.fsdecode(source), scheme)
    fsspec = sys.modules.get("fsspec")
    if fsspec and isinstance(source, fsspec.core.OpenFile) and source.mode == "rb" and not source.compression:
        return Stored(source.fs, source.path)
    return source


def path_of(source: Any) -> Any:
    """The path of a file:// URL; other sources as they are."""
    try:
        return local_path(source)
    except ValueError as error:
        raise InvalidArgumentError(f"{shown(source)}: {error}") from None


_allowed: set[str] | None = None  # schemes that configure(network={"schemes": ...}) names; None: all


def allow_schemes(network: dict[str, Any] | None) -> None:
    """Takes the schemes from network settings, so that they hold for what other packages open too."""
    global _allowed
    schemes = (network or {}).get("schemes")
    _allowed = {scheme.strip().lower() for scheme in schemes.split(",")} if schemes else None


def _stored_at(url: str, scheme: str) -> Stored:
    """The Stored that a URL means."""
    if _allowed is not None and scheme not in _allowed:
        raise UnsupportedError(f"{shown(url)}: {scheme} is not among the allowed schemes: "
                               f"{', '.join(sorted(_allowed))}")
    obstore = _module("obstore.store") if scheme in CLOUD_SCHEMES else None
    if obstore:
        return _in_obstore(obstore, url)
    fsspec = _module("fsspec.core")
    if fsspec:
        return _in_fsspec(fsspec, url, scheme)
    packages = f"obstore, or fsspec and {CLOUD_SCHEMES[scheme]}" if scheme in CLOUD_SCHEMES else "fsspec"
    raise UnsupportedError(f"{shown(url)}: {scheme}:// is opened by other packages: pip install {packages}")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _in_obstore(obstore: Any, url: str) -> Stored:
    """By settings and credentials of the environment. A URL's first part is the bucket or container."""
    scheme, _, rest = url.partition("://")
    bucket, _, path = rest.partition("/")
    if not path:
        raise InvalidArgumentError(f"{shown(url)}: the URL names no file: {scheme}://bucket/path")
    try:
        store = obstore.from_url(f"{scheme}://{bucket}")
    except Exception as error:  # its own classes, by kind of store
        raise IOError(f"{shown(url)}: obstore cannot open the store: {error}; give cogpu.Stored(store, path) for a "
                      "store with settings of your own") from error
    return Stored(store, path, shown(url))


def _in_fsspec(fsspec: Any, url: str, scheme: str) -> Stored:
    try:
        filesystem, path = fsspec.url_to_fs(url)
    except ImportError as error:  # fsspec knows the scheme, and says which package has it
        raise UnsupportedError(f"{shown(url)}: {scheme}:// needs a package that is not installed: {error}") from error
    except OSError as error:
        raise IOError(f"{shown(url)}: fsspec cannot open the filesystem: {error}") from error
    except ValueError as error:
        raise UnsupportedError(f"{shown(url)}: neither cogpu nor fsspec knows {scheme}://; there are https, http, s3 "
                               "and file, and what packages for fsspec bring") from error
    return Stored(filesystem, path, shown(url))
