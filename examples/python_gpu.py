"""Slopes on a GPU: the raster is decoded into the GPU's memory, CuPy computes there, and the result is written as a
COG from there. Nothing but stored bytes crosses to the host.

    python examples/python_gpu.py demo/terrain.tif slope.tif docs/python-gpu.png

Needs CuPy. Where there is none, the word `emu` as last argument runs it on the emulated GPU with NumPy, slowly.
"""

import importlib
import sys

import cogpu
import picture


def slope(numbers, heights, pixel):
    """Degrees, of (y, x) heights, by NumPy or CuPy."""
    down, right = numbers.gradient(heights, pixel)
    return numbers.degrees(numbers.arctan(numbers.hypot(down, right)))


def main(path, target, drawing, gpu=True):
    numbers = importlib.import_module("cupy" if gpu is True else "numpy")
    heights = cogpu.open_geotiff(path, gpu=gpu, masked=True).sel(band=1)
    pixel = abs(float(heights.x[1] - heights.x[0]))
    steep = heights.copy(data=slope(numbers, heights.data, pixel))
    cogpu.to_geotiff(steep, target, cog=True, compression="deflate", predictor=3, gpu=gpu)

    height, width = steep.shape
    corner = (max(height - 400, 0), max(width - 400, 0), height, width)
    corner = cogpu.open_geotiff(target, window=corner, masked=True).sel(band=1)
    picture.save(drawing, picture.ramp(corner.values, 0, 60, picture.STEEP))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) >= 4 else sys.exit(__doc__)
