"""What the tests of Dask write, and the file of it in memory."""

import numpy as np

import cogpu


def terrain(bands, height, width, dtype="float32"):
    """Smooth, with a little noise, so that codecs and resamplings have something to do."""
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(3).integers(0, 9, (bands, height, width))
    return (100 + 50 * np.sin(x / 31) * np.cos(y / 17) + 20 * np.arange(bands)[:, None, None] + noise).astype(dtype)


def in_memory(data, **words):
    return bytes(cogpu.to_geotiff(data, None, **words))
