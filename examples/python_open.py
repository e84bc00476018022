"""Open a raster, ask what it is, and draw it from its smallest sufficient overview: a few kilobytes are read, however
large the file is.

    python examples/python_open.py demo/terrain.tif docs/python-open.png
"""

import sys

import cogpu
import picture


def main(path, drawing, side=512):
    with cogpu.open(path) as file:
        print(f"{file.name}: {file.shape} of {file.dtype}, {file.crs}, nodata {file.nodata}")
        for number, level in enumerate(file.levels):
            print(f"  level {number}: {level.shape}, blocks of {level.block_shape}, {level.codec}")
        enough = [number for number, level in enumerate(file.levels) if max(level.shape) >= side]
        level = max(enough, default=0)

    heights = cogpu.open_geotiff(path, level=level, masked=True).sel(band=1)
    print(f"  heights {float(heights.min()):.1f} to {float(heights.max()):.1f}")
    pixel = abs(float(heights.x[1] - heights.x[0]))
    step = -(-max(heights.shape) // side)
    picture.save(drawing, picture.relief(heights.values[::step, ::step], pixel * step))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) >= 3 else sys.exit(__doc__)
