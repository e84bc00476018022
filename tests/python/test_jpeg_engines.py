"""JPEG by the engines of a GPU, whose part a stand-in for nvJPEG plays: the pixels are the CPU's."""

import os
import subprocess
import sys

import numpy as np
import pytest
import rasterio
from conftest import BIN, SAN_BIN

FAKES = [path.parent / "tests" / "libfake_nvjpeg.so" for path in (BIN, SAN_BIN)]
FAKE = next((path for path in FAKES if path.exists()), None)

READ = """
import sys
import cogpu_ctypes as cogpu, reference
with cogpu.open(sys.argv[1]) as file, cogpu.Context(use_nvjpeg_hardware=1, device_bytes=64 << 20) as context:
    expected = file.read()
    assert reference.same(file.read(device=cogpu.EMU, context=context), expected)
    print(file.last_result.device_blocks, file.last_result.blocks)
    window = dict(window=(30, 9, 90, 50), bands=[1])
    assert reference.same(file.read(device=cogpu.EMU, context=context, **window), file.read(**window))
"""


def read(path):
    """Blocks that the engines decoded, and all."""
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True,
                          cwd=os.path.dirname(__file__), env={**os.environ, "COGPU_NVJPEG": str(FAKE)})
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


@pytest.mark.skipif(FAKE is None, reason="the stand-in for nvJPEG has not been built")
@pytest.mark.parametrize("bands, options, taken", [
    (1, {}, True), (3, dict(photometric="ycbcr", interleave="pixel"), True),
    (3, dict(photometric="rgb", interleave="pixel"), True), (3, dict(interleave="band"), True),
    (1, dict(tiled=False, blockxsize=200, blockysize=16), True), (4, dict(interleave="pixel"), False)],
    ids=["grey", "ycbcr", "rgb", "planar", "strips", "four bands"])
def test_same_pixels(bands, options, taken, tmp_path):
    rows, columns = np.mgrid[:170, :200]
    pixels = np.stack([(rows * (b + 1) + columns) % 256 for b in range(bands)]).astype("u1")
    with rasterio.open(tmp_path / "x.tif", "w", driver="GTiff", count=bands, height=170, width=200, dtype="uint8",
                       compress="jpeg", **({"tiled": True, "blockxsize": 64, "blockysize": 64} | options)) as out:
        out.write(pixels)
    by_engines, blocks = read(tmp_path / "x.tif")
    assert by_engines == (blocks if taken else 0)


@pytest.mark.skipif(FAKE is None, reason="the stand-in for nvJPEG has not been built")
def test_a_damaged_block_is_decoded_by_the_cpu(tmp_path):
    """Without its end marker a stream is refused, and read as ever."""
    with rasterio.open(tmp_path / "x.tif", "w", driver="GTiff", count=1, height=64, width=128, dtype="uint8",
                       compress="jpeg", tiled=True, blockxsize=64, blockysize=64) as out:
        out.write(np.arange(64 * 128).astype("u1").reshape(1, 64, 128))
    data = bytearray((tmp_path / "x.tif").read_bytes())
    end = data.rindex(b"\xff\xd9")
    data[end:end + 2] = b"\0\0"
    (tmp_path / "x.tif").write_bytes(data)
    assert read(tmp_path / "x.tif") == (1, 2)
