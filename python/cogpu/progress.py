"""The `progress` parameter of long calls as a callable (done, total), or None."""

from .errors import ArgumentError


class Bar:
    """tqdm's bar, which takes steps, behind a callback that takes what is done."""

    def __init__(self, unit):
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ArgumentError("progress=True needs tqdm, which is not installed: install it, "
                                "or give a function of (done, total)") from error
        self.make = lambda total: tqdm(total=total, unit=unit, unit_scale=True)
        self.bar = None

    def __call__(self, done, total):
        if self.bar is None:
            self.bar = self.make(total)
        self.bar.update(done - self.bar.n)
        if done >= total:
            self.bar.close()


def reporter(progress, unit="rows"):
    """What to call as callback(done, total) while work goes on; None without `progress`.

    `progress` is None or False for silence, True for tqdm's bar, or a function.
    """
    if progress is None or progress is False:
        return None
    if progress is True:
        return Bar(unit)
    if callable(progress):
        return progress
    raise TypeError(f"progress must be True, False, None or a function of (done, total), not {progress!r}")
