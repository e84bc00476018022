"""NumPy as `np`, imported when it is first used: it takes longer to import than the rest of this package, and reads into
GPU memory do without it.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    __all__ = ["is_numpy", "np"]
else:
    class _NumPy:
        def __getattr__(self, name):
            import numpy
            return getattr(numpy, name)

    np = _NumPy()


def is_numpy(value: Any, kind: str) -> bool:
    """Whether a value is of this class of NumPy. If NumPy is not loaded, no value is."""
    return "numpy" in sys.modules and isinstance(value, getattr(np, kind))
