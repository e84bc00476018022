# %% [markdown]
# # S3 to GPU
#
# A COG is written to a bucket, and a window of it is read from the bucket into GPU memory: one request for the header, then
# requests for the blocks of the window, all in flight together. Neighboring blocks share a request.

# %%
import cogpu

GPU = any(device["name"].startswith("cuda") for device in cogpu.devices()) or "emu"

# %% [markdown]
# ## A bucket
#
# This page uses a mock of S3 on this machine (moto). With a real bucket leave this cell out: region and credentials come from
# the environment and the files of the AWS CLI, and `allow_private_addresses` is not needed.

# %%
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
endpoint = "http://{}:{}".format(*server.get_host_and_port())
keys = {"aws_access_key_id": "example", "aws_secret_access_key": "example"}
boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(Bucket="elevation")
cogpu.configure(network={"s3_endpoint": endpoint, "s3_region": "us-east-1", "s3_access_key": "example",
                         "s3_secret_key": "example", "allow_private_addresses": True})

# %% [markdown]
# ## To S3
#
# A large file is uploaded in parts while rows are encoded. The object appears when the upload is complete.

# %%
from terrain import mountains

cogpu.to_geotiff(mountains(), "s3://elevation/dem.tif", cog=True, compression="zstd", tile_size=128, nodata=-9999)

# %% [markdown]
# ## From S3 to the GPU
#
# Opening reads the header, `bbox` selects the window in coordinates of the CRS, and the GPU decodes its blocks.

# %%
with cogpu.open("s3://elevation/dem.tif") as file:
    print(file.shape, file.crs, [level.shape for level in file.levels])
    left, bottom, right, top = file.bounds

box = (left + 2000, top - 5000, left + 4500, top - 2500)
window = cogpu.open_geotiff("s3://elevation/dem.tif", bbox=box, gpu=GPU, masked=True).sel(band=1)
print(window.shape, f"mean height {float(window.mean()):.1f} m")

# %% [markdown]
# ## The picture
#
# The overview comes from the same object: a few kilobytes, however large the full resolution is.

# %%
from matplotlib import pyplot
from matplotlib.patches import Rectangle

overview = cogpu.open_geotiff("s3://elevation/dem.tif", level=2, masked=True).sel(band=1)
pixels = window.data.get() if GPU is True else window.data
figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
axes[0].imshow(overview, cmap="terrain", extent=(left, right, bottom, top), vmin=200, vmax=1700)
axes[0].add_patch(Rectangle((box[0], box[1]), box[2] - box[0], box[3] - box[1], fill=False, color="red", lw=2))
axes[0].set_title("overview level 2")
axes[1].imshow(pixels, cmap="terrain", extent=(box[0], box[2], box[1], box[3]), vmin=200, vmax=1700)
axes[1].set_title("window at full resolution")
for axis in axes:
    axis.set(xticks=[], yticks=[])
figure.savefig("s3_to_gpu.png", dpi=75)
server.stop()
cogpu.configure()
