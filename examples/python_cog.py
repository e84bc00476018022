"""A COG from an array: coordinates and a coordinate system make it a map, overviews are made on the way, and the file
is checked by the rules for COGs before it is drawn from its overviews.

    python examples/python_cog.py dunes.tif docs/python-cog.png
"""

import sys

import cogpu
import numpy
import picture
import xarray


def dunes(side=1024):
    """Heights of a made-up desert, with a pond that was not measured."""
    y, x = numpy.mgrid[:side, :side] / side
    ridge = 90 * numpy.sin(40 * x + 6 * numpy.sin(5 * y + 3 * x)) + 40 * numpy.sin(23 * y - 14 * x)
    heights = (560 + 290 * x - 160 * y + ridge).astype("float32")
    heights[numpy.hypot((x - 0.68) * 1.5, y - 0.3) < 0.09] = numpy.nan
    return heights


def main(target, drawing):
    heights = dunes()
    side = len(heights)
    grid = xarray.DataArray(heights, dims=("y", "x"), attrs={"crs": "EPSG:32632"},
                            coords={"y": 5_200_000 - 10 * (numpy.arange(side) + 0.5),
                                    "x": 600_000 + 10 * (numpy.arange(side) + 0.5)})
    cogpu.to_geotiff(grid, target, cog=True, compression="deflate", predictor=3, tile_size=256, nodata=-9999)

    print(f"checked as a COG: {cogpu.check(target, strict=True)['verdict']}")
    with cogpu.open(target) as file:
        print(f"{file.crs}, {file.bounds}, nodata {file.nodata}")
        levels = range(1, len(file.levels))
    small = [cogpu.open_geotiff(target, level=level, masked=True).sel(band=1) for level in levels]
    picture.save(drawing, picture.beside(*(picture.relief(one.values, 10 * 2**(n + 1)) for n, one in enumerate(small))))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) >= 3 else sys.exit(__doc__)
