"""What tells URLs from paths, and a URL as it may be shown: without user info and query, which may be secrets."""

import os
import re

# As the engine tells them: a scheme of two letters or more, and "://".
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)([^/?#]*)([^?#]*)")


def is_url(source):
    return isinstance(source, (str, bytes, os.PathLike)) and bool(_PARTS.match(os.fsdecode(source)))


def shown(source):
    """A path or URL as a str for names and messages; of what is neither, what it says of itself."""
    text = os.fsdecode(source) if isinstance(source, (str, bytes, os.PathLike)) else str(source)
    parts = _PARTS.match(text)
    if not parts:
        return text
    scheme, host, path = parts.groups()
    return scheme + host.rpartition("@")[2] + path
