# %% [markdown]
# # A Dask array, streamed from the GPU to a COG
#
# The raster need not fit into GPU memory. Dask decodes a few chunks on the GPU, computes there, and `to_geotiff` writes
# these rows while the next ones are computed. Overviews are computed on the way.

# %%
import importlib

import cogpu

GPU = any(device["name"].startswith("cuda") for device in cogpu.devices()) or "emu"
xp = importlib.import_module("cupy" if GPU is True else "numpy")

# %% [markdown]
# ## A lazy array
#
# With `chunks` nothing is decoded yet. Chunks follow the tiles of the file.

# %%
from terrain import mountains

cogpu.to_geotiff(mountains(), "dem.tif", cog=True, compression="zstd", tile_size=256, nodata=-9999)
dem = cogpu.open_geotiff("dem.tif", chunks=256, gpu=GPU, masked=True).sel(band=1)
print(type(dem.data).__name__, dem.shape, "in", dem.data.npartitions, "chunks")

# %% [markdown]
# ## Hillshade
#
# Each chunk needs one row or column of its neighbors, which `map_overlap` adds.

# %%
def hillshade(heights, pixel=10.0):
    """Light from the north-west, 45 degrees high: 0 is black, 1 white."""
    down, right = xp.gradient(heights, pixel)
    light = (1 + (right + down) / xp.sqrt(2)) / xp.sqrt(1 + right**2 + down**2)
    return xp.clip(light / xp.sqrt(2), 0, 1).astype("float32")


shade = dem.copy(data=dem.data.map_overlap(hillshade, depth=1, boundary="nearest", dtype="float32"))

# %% [markdown]
# ## Streamed into a COG
#
# `streaming_buffer_bytes` limits the rows in memory; here it is so small that the raster is written in three steps.

# %%
def report(done, total):
    print(f"{done} of {total} rows")


cogpu.to_geotiff(shade, "shade.tif", cog=True, tile_size=256, nodata=float("nan"), gpu=GPU,
                 streaming_buffer_bytes=768 * 256 * 4, progress=report)
print(cogpu.check("shade.tif", strict=True)["verdict"])

# %% [markdown]
# ## The picture

# %%
from matplotlib import pyplot

levels = [cogpu.open_geotiff("shade.tif", level=level, masked=True).sel(band=1) for level in (1, 2)]
figure, axes = pyplot.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for level, (axis, overview) in enumerate(zip(axes, levels), 1):
    axis.imshow(overview, cmap="gray", vmin=0, vmax=1)
    axis.set(title=f"shade.tif, overview level {level}: {overview.shape[0]} x {overview.shape[1]}", xticks=[], yticks=[])
figure.savefig("dask_stream.png", dpi=75)
