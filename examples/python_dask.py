"""Statistics of a raster that need not fit into memory: Dask takes it block by block, in one pass, and no more than a
few blocks are there at a time.

    python examples/python_dask.py demo/terrain.tif docs/python-dask.png
"""

import pathlib
import re
import sys

import cogpu
import dask
import dask.array
import numpy
import picture


def peak():
    """Bytes of memory that this process had at most (Linux)."""
    return int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


def limits(path):
    """Where the bars begin and end: the smallest overview tells."""
    with cogpu.open(path) as file:
        small = numpy.asarray(file.read(level=len(file.levels) - 1, bands=1, masked=True))
    return float(numpy.nanmin(small)), float(numpy.nanmax(small))


def main(path, drawing, chunks=512):
    heights = cogpu.open_geotiff(path, chunks=chunks, masked=True).sel(band=1)  # nothing is decoded yet
    print(f"{heights.nbytes / 1e6:.0f} MB in {heights.data.npartitions} blocks")
    values, before = heights.data, peak()
    found = dask.compute(dask.array.nanmin(values), dask.array.nanmax(values), dask.array.nanmean(values),
                         dask.array.nanstd(values), dask.array.histogram(values, 128, limits(path))[0])
    print("min {:.2f}, max {:.2f}, mean {:.2f}, standard deviation {:.2f}".format(*map(float, found[:4])))
    print(f"memory: {(peak() - before) / 1e6:.0f} MB more than before")
    picture.save(drawing, picture.bars(found[4]))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) >= 3 else sys.exit(__doc__)
