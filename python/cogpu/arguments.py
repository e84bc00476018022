"""Checks of parameters: each returns the value as one plain type, or raises an error that names the parameter. One
wording for the whole package.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Any, cast

from .errors import InvalidArgumentError
from .later import is_numpy


def flag(name: str, value: Any) -> bool:
    """A bool: a text or a number where one is expected is a mistake."""
    if not isinstance(value, bool) and not is_numpy(value, "bool_"):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(cast(Any, value))


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """An int, from `least` to `most` where these are given; a bool is none, since band=True is a mistake."""
    if isinstance(value, bool) or is_numpy(value, "bool_"):
        raise TypeError(f"{name} must be an int, not a bool")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an int, not {value!r}") from None
    if least is not None and most is not None and not least <= number <= most:
        raise InvalidArgumentError(f"{name}={number} is not from {least} to {most}")
    if least is not None and number < least:
        raise InvalidArgumentError(f"{name}={number} is less than {least}")
    return number


def number(name: str, value: Any, least: float | None = None) -> int | float:
    """A finite int or float, from `least` on where that is given."""
    value = value.item() if is_numpy(value, "generic") else value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if value - value != 0 or least is not None and value < least:
        raise InvalidArgumentError(f"{name}={value} is not a number" + ("" if least is None else f" from {least} on"))
    return value


def word(name: str, value: Any, words: Collection[str]) -> str:
    """One of some words, in any case of letters."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(words)}, not {value!r}")
    if value.lower() not in words:
        raise InvalidArgumentError(f"{name}={value!r} is not one of {', '.join(words)}")
    return value.lower()
