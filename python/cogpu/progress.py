"""The `progress` parameter of long calls as a callable (done, total), or None."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast

from .errors import InvalidArgumentError


class Bar:
    """tqdm's bar, which takes steps, behind a callback that takes what is done."""

    def __init__(self, unit: str) -> None:
        try:
            tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError as error:
            raise InvalidArgumentError("progress=True needs tqdm, which is not installed: install it, or give a "
                                       "function of (done, total)") from error
        self.tqdm, self.unit = tqdm, unit
        self.bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self.bar is None:
            self.bar = self.tqdm(total=total, unit=self.unit, unit_scale=True)
        self.bar.update(done - self.bar.n)
        if done >= total:
            self.bar.close()


def reporter(progress: Any, unit: str = "rows") -> Callable[[int, int], Any] | None:
    """What to call as callback(done, total) while work goes on; None without `progress`.

    `progress` is None or False for silence, True for tqdm's bar, or a function.
    """
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar(unit)
    if callable(progress):
        return cast("Callable[[int, int], Any]", progress)
    raise TypeError(f"progress must be True, False, None or a function of (done, total), not {progress!r}")
