"""Paths and URLs: which of them a source is, and a URL as it may be shown: without user info and query, which may be
secrets."""

from __future__ import annotations

import os
import re
from typing import Any, TypeGuard

# As the engine tells them: a scheme of two letters or more, and "://". fsspec's chains may begin without the latter:
# simplecache::https://host/file.tif.
_PARTS = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]+::)*([A-Za-z][A-Za-z0-9+.-]+)://)([^/?#]*)([^?#]*)")


def is_path(source: Any) -> TypeGuard[str | bytes | os.PathLike[Any]]:
    """A path or URL. No path has a NUL byte, and every TIFF has one among its first four: such bytes are content."""
    return isinstance(source, (str, os.PathLike)) or isinstance(source, bytes) and b"\0" not in source


def scheme_of(source: Any) -> str | None:
    """The scheme of a URL in small letters, "::" for a chain of fsspec's, None for a path and for what is neither."""
    parts = _PARTS.match(os.fsdecode(source)) if is_path(source) else None
    if not parts:
        return None
    return "::" if "::" in os.fsdecode(source) else parts[2].lower()


def is_url(source: Any) -> bool:
    """A URL that is not a local file's."""
    return scheme_of(source) not in (None, "file")


def local_path(source: Any) -> Any:
    """The path that a file:// URL names; other sources as they are. ValueError where it names another host."""
    if scheme_of(source) != "file":
        return source
    import urllib.parse  # late: it takes a while to import, and most files are no URLs

    parts = urllib.parse.urlsplit(os.fsdecode(source).replace("?", "%3F").replace("#", "%23"))
    if parts.netloc.lower() not in ("", "localhost"):
        raise ValueError(f"a file:// URL names a file of this host, as file:///{parts.path.lstrip('/')}, and this one "
                         f"names {parts.netloc.rpartition('@')[2]}")
    return os.fsdecode(urllib.parse.unquote_to_bytes(parts.path))


def shown(source: Any) -> str:
    """A path or URL as a str for names and messages; of what is neither, what it says of itself. A misspelt URL, as
    "http:/user:password@host", is no URL; its secrets are left out all the same."""
    if not is_path(source):
        return str(source)
    text = os.fsdecode(source)
    return "::".join(map(_shown_part, text.split("::"))) if "::" in text else _shown_part(text)


def _shown_part(text: str) -> str:
    parts = _PARTS.match(text)
    if not parts:
        return _shown_path(text)
    scheme, _, host, path = parts.groups()
    if ":" in host and "@" in text[parts.end(3):]:  # perhaps a user and a part of a password with "/" or "?" in it
        return scheme + "..."
    return scheme + host.rpartition("@")[2] + path


def source_name(source: Any) -> str:
    """How messages call a source: the path, the URL without secrets, or what the object calls itself; else ""."""
    name = source if is_path(source) else getattr(source, "name", "")
    return shown(name) if is_path(name) else ""


def _shown_path(text: str) -> str:
    """A path of a file as it is. What is no file may be a misspelt URL."""
    if os.path.exists(text):
        return text
    before, at, after = text.rpartition("@")
    if at and ":" in before:
        if "?" in before:  # what is user and what is query cannot be told
            return "..."
        text = "..." + after
    path, _, query = text.partition("?")
    return path + "?..." if "=" in query else text
