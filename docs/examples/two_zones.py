# %% [markdown]
# # Scenes of two UTM zones into one COG
#
# Six elevation models overlap: three are in UTM zone 32, three in zone 33. They become one COG in a CRS of their own, once in
# Python on the GPU, once by the command line on the CPU. [Mosaics](../mosaics.md) is the guide.
#
# `GPU` is `True` on a machine with an NVIDIA GPU. Otherwise `"emu"` selects the emulated GPU, which runs the same kernels
# on the CPU and uses NumPy arrays.

# %%
import cogpu

GPU = any(device["name"].startswith("cuda") for device in cogpu.devices()) or "emu"

# %% [markdown]
# ## The scenes
#
# The terrain is made up, on both sides of 12 degrees east, where the zones meet. The eastern scenes are delivered in zone 33:
# their pixels lie askew to those of zone 32.

# %%
from terrain import mountains

land = mountains(seed=5)
land = land.assign_coords(x=land.x + 124_500)
scenes = []
for number, top in enumerate((0, 234, 468)):
    west, east = land[top:top + 300, :420], land[top:top + 300, 340:]
    cogpu.to_geotiff(west, f"west{number}.tif", nodata=-9999)
    cogpu.to_geotiff(east, "east.tif", nodata=-9999)
    moved = cogpu.open_geotiff("east.tif", crs="EPSG:32633", resolution=10, resampling="cubic", masked=True)
    cogpu.to_geotiff(moved, f"east{number}.tif", nodata=-9999)
    scenes += [f"west{number}.tif", f"east{number}.tif"]

# %% [markdown]
# ## The mosaic
#
# Opening it reads headers only. The grid has a CRS and a resolution; its bounds follow from the scenes. Where scenes overlap,
# the first one with a valid pixel counts. A read of a window touches the scenes that it needs.

# %%
grid = {"crs": "EPSG:3035", "resolution": 10, "resampling": "bilinear"}
with cogpu.open_mosaic(scenes, **grid) as mosaic:
    print(mosaic.shape, mosaic.dtype, mosaic.crs, "nodata", mosaic.nodata)
    for source in mosaic.sources:
        print(source.path, "rows", source.window[::2], "columns", source.window[1::2])
    print("scenes of a window:", mosaic.read(window=(100, 100, 200, 200)).result["sources"])

# %% [markdown]
# ## Python, on the GPU
#
# The GPU decodes the scenes, warps and joins them, and encodes the COG. For a mosaic that is larger than memory,
# `chunks=512` gives a Dask array, which `to_geotiff` writes as a stream.

# %%
joined = cogpu.open_geotiff(scenes, **grid, masked=True, gpu=GPU)
cogpu.to_geotiff(joined, "joined.tif", cog=True, compression="zstd", nodata=-9999, gpu=GPU)
print(cogpu.check("joined.tif", strict=True)["verdict"])

# %% [markdown]
# ## Command line, on the CPU
#
# `cogpu warp` streams: memory depends on the width of the mosaic only. `--device cuda` runs it on the GPU. The pixels are the
# same bits on both.

# %%
import subprocess

import numpy

options = ["--crs", "EPSG:3035", "--res", "10", "--resampling", "bilinear", "--cog", "--codec", "zstd", "--quiet"]
subprocess.run(["cogpu", "warp", *scenes, "streamed.tif", *options], check=True)
with cogpu.open("joined.tif") as joined, cogpu.open("streamed.tif") as streamed:
    print("same pixels:", numpy.array_equal(joined.read(), streamed.read()))

# %% [markdown]
# ## The picture
#
# `composite="count"` counts the scenes of each pixel. Hills are lit from the north-west; seams do not show.

# %%
from matplotlib import pyplot

count = cogpu.open_geotiff(scenes, **grid, composite="count").sel(band=1)
heights = cogpu.open_geotiff("joined.tif", masked=True).sel(band=1)
down, right = numpy.gradient(heights.values, 10.0)
figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
counts = axes[0].imshow(count, cmap=pyplot.get_cmap("YlGnBu", 5), vmin=-0.5, vmax=4.5)
figure.colorbar(counts, ax=axes[0], label="scenes", ticks=range(5))
axes[0].set_title("six scenes of UTM zones 32 and 33")
axes[1].imshow(heights, cmap="terrain")
axes[1].imshow(down + right, cmap="gray", vmin=-1, vmax=1, alpha=0.35)
axes[1].set_title("one COG in EPSG:3035")
for axis in axes:
    axis.set(xticks=[], yticks=[])
figure.savefig("two_zones.png", dpi=75)
