"""What reading over the network takes beside the caller's pixels, however large files are and wherever blocks lie."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tiff_bytes

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "python"
MOST = 64 << 20
PROGRAM = """
import concurrent.futures, json, sys
sys.path.insert(0, sys.argv[1])
import cogpu_ctypes as cogpu

def memory(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

with cogpu.Context(threads=2, network={"allow_private_addresses": 1}) as context:
    files = [cogpu.open(url, cogpu.OpenOptions(context=context.handle)) for url in sys.argv[2:]]
    pixels = [file.read(window=(0, 0, 16, 16), context=context) for file in files]
    pixels = [file.empty(file.request()) for file in files]
    for one in pixels:
        one.fill(1)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = memory("VmRSS")
    with concurrent.futures.ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(lambda file, out: file.read(out, context=context), files, pixels))
    print(json.dumps([memory("VmHWM") - before, [int(one.max()) for one in pixels]]))
    for file in files:
        file.close()
"""


def write(path, side, tile, stride):
    """A file of zeros, tiles in holes of the disk, one every `stride` bytes."""
    count, first = (side // tile) ** 2, 1 << 20
    writer = tiff_bytes.Writer()
    tiff_bytes.add_image(writer, np.zeros((1, 1), "u1"), tile=(tile, tile),
                         blocks=[(first + number * stride, tile * tile) for number in range(count)],
                         tags={256: (tiff_bytes.LONG, [side]), 257: (tiff_bytes.LONG, [side])})
    path.write_bytes(writer.bytes())
    os.truncate(path, first + count * stride)


@pytest.mark.parametrize("side, tile, stride, files", [(8192, 512, 512 * 512, 3), (768, 16, 128 << 10, 4)],
                         ids=["large files at once", "small blocks far from each other"])
def test_memory(side, tile, stride, files, nginx):
    path = nginx.files / "zeros.tif"
    try:
        write(path, side, tile, stride)
        urls = [f"{nginx.http}/files/zeros.tif?{number}" for number in range(files)]
        done = subprocess.run([sys.executable, "-c", PROGRAM, PYTHON, *urls], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        taken, largest = json.loads(done.stdout)
        assert taken < MOST and largest == [0] * files
    finally:
        path.unlink()
    if tile == 16:
        assert len(nginx.requests()) >= files * (side // tile) ** 2
