"""The cache of decoded blocks, which is on unless it is turned off: windows share blocks, memory returns, nothing is stale."""

import gc
import os
import pathlib
import random
from concurrent.futures import ThreadPoolExecutor

import cogpu
import numpy as np
import pytest
from conftest import pixels_of

MIB = 1 << 20
TILES = {"blockxsize": 256, "blockysize": 256}
TALL = {"blockxsize": 1008, "blockysize": 3008, "interleave": "pixel"}  # 18 MB: decoded as they are read


@pytest.fixture(autouse=True)
def defaults():
    yield
    cogpu.configure()


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cached(file, *window):
    return file.read(window=window).result["cached_blocks"]


def test_what_configure_says(make_file):
    path = make_file(pixels_of((1, 600, 600), "uint16"), compress="deflate", **TILES)
    for options, expected in (({}, 4), ({"cache_bytes": None}, 4), ({"cache_bytes": 0}, 0), ({"cache_bytes": MIB}, 4)):
        cogpu.configure(**options)
        with cogpu.open(path) as file:
            assert cached(file, 100, 100, 300, 300) == 0
            assert cached(file, 100, 100, 300, 300) == expected, options
    with pytest.raises(TypeError, match="cache_bytes"):
        cogpu.configure(cache_bytes="64 MB")


@pytest.mark.parametrize("profile", [TILES | {"compress": "deflate", "predictor": 2}, TALL | {"compress": "lzw"},
                                     {"tiled": False, "compress": "zstd", "predictor": 2},
                                     TALL | {"compress": "deflate", "predictor": 2}, TALL | {"compress": "none"}],
                         ids=lambda p: f"{p['compress']}-{p.get('blockysize')}")
def test_threads_read_windows(make_file, profile):
    bands = 3
    pixels = pixels_of((bands, 3000, 1000), "uint16")
    path, chance = make_file(pixels, **profile), random.Random(3)
    places = [(chance.randrange(2900), chance.randrange(900)) for _ in range(200)]

    def is_right(place):
        y, x = place
        band = 1 + (x + y) % bands
        return np.array_equal(file.read(window=(y, x, y + 100, x + 100), bands=band),
                              pixels[band - 1:band, y:y + 100, x:x + 100])

    with cogpu.open(path) as file, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(is_right, places))


def test_memory_of_a_closed_file_is_free(make_file):
    """Each file takes 32 MiB, and the next one the same again."""
    path = make_file(np.zeros((1, 8192, 4096), "uint8"), compress="deflate", **TILES)
    for number in range(12):
        with cogpu.open(path) as file:
            for y in range(0, 8192, 512):
                cached(file, y + 1, 0, y + 511, 4096)
        before = before if number else resident()
    assert resident() - before < 16 * MIB


def test_a_read_keeps_a_fifth_of_the_cache(make_file):
    """So that it needs no more memory than one without a cache by much."""
    path = make_file(np.zeros((1, 8192, 16384), "uint8"), compress="deflate", tiled=False)
    with cogpu.open(path) as file:
        block_bytes = file.block_shape[0] * file.block_shape[1]
        assert cached(file, 0, 0, 8192, 16383) == 0
        kept = cached(file, 0, 0, 8192, 16383) * block_bytes
        budget = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 20, 256 * MIB)
        assert 0 < kept <= budget // 5
        assert cached(file, 0, 0, 8192, 16384) * block_bytes > kept, "the second read kept as many"


def test_a_file_with_new_content(make_file):
    old, new = pixels_of((1, 600, 600), "uint16"), pixels_of((1, 600, 600), "uint16") + 1
    path = make_file(old, compress="deflate", **TILES)
    with cogpu.open(path) as file:
        for _ in range(2):
            assert np.array_equal(file.read(window=(5, 5, 50, 50)), old[:, 5:50, 5:50])
        content = make_file(new, "new.tif", compress="deflate", **TILES).read_bytes()
        path.write_bytes(content)
        os.utime(path, ns=(1, 1))
        with pytest.raises(cogpu.IOError, match="changed"):
            file.read(window=(5, 5, 50, 50))
        with cogpu.open(path) as again:
            for _ in range(2):
                assert np.array_equal(again.read(window=(5, 5, 50, 50)), new[:, 5:50, 5:50])


def test_stored_blocks_stay_on_the_device(make_file):
    """Only if the caller asks for it: the second read of a File gets its blocks from there."""
    pixels = pixels_of((1, 600, 600), "uint16")
    path = make_file(pixels, compress="deflate", **TILES)
    for options, expected in (({}, 0), ({"device_cache_bytes": 0}, 0), ({"device_cache_bytes": 16 * MIB}, 9)):
        cogpu.configure(**options)
        with cogpu.open(path) as file:
            first, second = (file.read(device="emu") for _ in range(2))
            for read, count in (first, 0), (second, expected):
                assert np.array_equal(np.asarray(read), pixels)
                assert read.result["device_cached_blocks"] == count, options
            assert (second.result["bytes_read"] == 0) == (expected > 0)
    with pytest.raises(TypeError, match="device_cache_bytes"):
        cogpu.configure(device_cache_bytes="1 GB")
