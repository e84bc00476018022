# %% [markdown]
# # DEM to slope to COG
#
# A digital elevation model (DEM) is decoded on the GPU, CuPy computes the slope there, and the GPU encodes the result as a
# COG. Pixels never come to the host: only compressed bytes cross PCIe.
#
# `GPU` is `True` on a machine with an NVIDIA GPU. Otherwise `"emu"` selects the emulated GPU, which runs the same kernels
# on the CPU and uses NumPy arrays.

# %%
import importlib

import cogpu

GPU = any(device["name"].startswith("cuda") for device in cogpu.devices()) or "emu"
xp = importlib.import_module("cupy" if GPU is True else "numpy")

# %% [markdown]
# ## The DEM
#
# The terrain is made up; any DEM in a projected CRS will do.

# %%
from terrain import mountains

cogpu.to_geotiff(mountains(), "dem.tif", cog=True, compression="zstd", nodata=-9999)
with cogpu.open("dem.tif") as file:
    print(file.shape, file.dtype, file.crs, file.codec, len(file.levels), "levels")

# %% [markdown]
# ## Slope
#
# `masked=True` gives NaN for nodata. The result keeps coordinates and CRS of the DEM.

# %%
dem = cogpu.open_geotiff("dem.tif", gpu=GPU, masked=True).sel(band=1)
pixel = float(abs(dem.x[1] - dem.x[0]))
down, right = xp.gradient(dem.data, pixel)
slope = dem.copy(data=xp.degrees(xp.arctan(xp.hypot(down, right))))

# %% [markdown]
# ## The COG
#
# An array in GPU memory is encoded there, overviews included. `cogpu.check` validates the file by the rules of GDAL,
# rio-cogeo and OGC.

# %%
cogpu.to_geotiff(slope, "slope.tif", cog=True, compression="deflate", gpu=GPU)
print(cogpu.check("slope.tif", strict=True)["verdict"])

# %% [markdown]
# ## The picture
#
# It is drawn from the first overview of each file.

# %%
from matplotlib import pyplot

figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, (name, unit, colors) in zip(axes, [("dem.tif", "m", "terrain"), ("slope.tif", "degrees", "magma")]):
    overview = cogpu.open_geotiff(name, level=1, masked=True).sel(band=1)
    image = axis.imshow(overview, cmap=colors)
    figure.colorbar(image, ax=axis, label=unit)
    axis.set(title=name, xticks=[], yticks=[])
figure.savefig("dem_slope.png", dpi=75)
