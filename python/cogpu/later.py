"""NumPy as `np`, imported when it is first used: it takes longer to import than the rest of this package."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    __all__ = ["np"]
else:
    class _NumPy:
        def __getattr__(self, name):
            import numpy
            return getattr(numpy, name)

    np = _NumPy()
