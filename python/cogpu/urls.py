"""What tells URLs from paths, and a URL as it may be shown: without user info and query, which may be secrets."""

import os
import re

# As the engine tells them: a scheme of two letters or more, and "://".
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)([^/?#]*)([^?#]*)")


def is_url(source):
    return isinstance(source, (str, bytes, os.PathLike)) and bool(_PARTS.match(os.fsdecode(source)))


def shown(source):
    """A path or URL as a str for names and messages; of what is neither, what it says of itself. A misspelt URL, as
    "http:/user:password@host", is no URL; its secrets are left out all the same."""
    text = os.fsdecode(source) if isinstance(source, (str, bytes, os.PathLike)) else str(source)
    parts = _PARTS.match(text)
    if not parts:
        return _shown_path(text)
    scheme, host, path = parts.groups()
    if ":" in host and "@" in text[parts.end(2):]:  # perhaps a user and a part of a password with "/" or "?" in it
        return scheme + "..."
    return scheme + host.rpartition("@")[2] + path


def _shown_path(text):
    before, at, after = text.rpartition("@")
    if at and ":" in before:
        if "?" in before:  # what is user and what is query cannot be told
            return "..."
        text = "..." + after
    path, _, query = text.partition("?")
    return path + "?..." if "=" in query else text
