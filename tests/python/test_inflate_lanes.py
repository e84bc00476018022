"""The command line decodes deflate files by the interleaved decoder (COGPU_INFLATE=lanes), by libdeflate (library), or
by its own choice: the same pixels, which are rasterio's, and the same messages.

The C tests compare streams and reads (tests/unit/codec/test_inflate_lanes.c, tests/unit/read/test_read_lanes.c).
"""

import os
import subprocess
import zlib

import numpy as np
import pytest
import rasterio
import tiff_bytes as tb
from conftest import BIN, TIME_FACTOR

CHOICES = ["library", "lanes", "default"]
SHAPE = (420, 500)


def run(choice, *words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, timeout=60 * TIME_FACTOR,
                          env={**os.environ, "COGPU_INFLATE": choice})


def pixels(bands, dtype, kind):
    """Noise in low bits, of which some rows and columns are flat; or few values."""
    rng = np.random.default_rng(4)
    slope = np.add.outer(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    bits = {"noisy": 40, "smooth": 3, "flat": 1}[kind]
    planes = [slope // 3 + 50 * band + rng.integers(0, bits, SHAPE) for band in range(bands)]
    array = np.stack(planes) % (256 if dtype == "uint8" else 30000)
    array[:, 100:200, 50:300] = 17
    return (array / 7 if np.dtype(dtype).kind == "f" else array).astype(dtype)


def checked_reads(path, tmp_path, *words):
    """The bytes that each choice reads, which are the same."""
    results = []
    for choice in CHOICES:
        out = tmp_path / f"{choice}.npy"
        done = run(choice, "read", path, "-o", out, *words)
        results.append((done.returncode, done.stderr, out.read_bytes() if done.returncode == 0 else b""))
        out.unlink(missing_ok=True)
    assert results[1] == results[0] and results[2] == results[0]
    return results[0]


@pytest.mark.parametrize("kind", ["noisy", "smooth", "flat"])
@pytest.mark.parametrize("options", [{}, {"tiled": True, "blockxsize": 64, "blockysize": 64},
                                     {"tiled": True, "blockxsize": 128, "blockysize": 96, "interleave": "band"},
                                     {"blockysize": 20, "endianness": "big"}], ids=lambda o: "-".join(map(str, o.values())))
@pytest.mark.parametrize("dtype, predictor", [("uint8", 1), ("uint8", 2), ("uint16", 2), ("float32", 1), ("float32", 2),
                                              ("float32", 3), ("float64", 3), ("int32", 2)])
def test_same_pixels(dtype, predictor, options, kind, tmp_path):
    array = pixels(2, dtype, kind)
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=2, height=SHAPE[0], width=SHAPE[1], dtype=dtype,
                       compress="deflate", predictor=predictor, **options) as file:
        file.write(array)
    code, _, data = checked_reads(path, tmp_path)
    assert code == 0
    (tmp_path / "b.npy").write_bytes(data)
    read = np.load(tmp_path / "b.npy")
    assert np.array_equal(read if read.shape == array.shape else read.transpose(2, 0, 1), array)


DAMAGES = ["valid", "cut_off", "wrong_sum", "flipped", "wrong_header", "long", "followed", "short", "empty"]


def damage_stream(stream, damage):
    return {"valid": stream, "cut_off": stream[:len(stream) // 2], "wrong_sum": stream[:-1] + bytes([stream[-1] ^ 1]),
            "flipped": stream[:30] + bytes([stream[30] ^ 8]) + stream[31:], "wrong_header": b"\0" + stream[1:],
            "long": zlib.compress(zlib.decompress(stream) + b"more" * 99), "followed": stream + b"x" * 50,
            "short": zlib.compress(zlib.decompress(stream)[:900]), "empty": b"\x78"}[damage]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("number", [0, 17, 41])
@pytest.mark.parametrize("damage", DAMAGES)
def test_same_messages(damage, number, threads, tmp_path):
    """One block of many is another than the rest, for all threads."""
    array = pixels(1, "uint16", "noisy")
    streams = [zlib.compress(tb.block_bytes(block, "<", 1)) for block in tb.cut(array, (64, 64), None, False)]
    assert len(streams) == 56
    streams[number] = damage_stream(streams[number], damage)
    path = tmp_path / "a.tif"
    path.write_bytes(tb.image(array, compression=tb.DEFLATE, tile=(64, 64), blocks=streams))
    code, message, _ = checked_reads(path, tmp_path, "--threads", threads)
    assert (code == 0) == (damage in ("valid", "long", "followed"))
    assert code == 0 or b"a.tif" in message
