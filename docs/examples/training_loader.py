# %% [markdown]
# # A training loader
#
# `cogpu.torch.Windows` yields batches of random windows of many files. One call decodes all windows of a batch straight into
# one tensor on the device that trains, while the network uses the batch before. A small network learns to fill holes in
# elevation models.

# %%
import subprocess
import time

import cogpu
import torch
from cogpu.torch import Windows
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

# %% [markdown]
# ## Files and batches
#
# All files have the same bands and sample type. `masked=True` gives NaN for nodata.

# %%
from terrain import mountains

for seed in (1, 2, 3):
    cogpu.to_geotiff(mountains(side=512, seed=seed), f"dem{seed}.tif", cog=True, tile_size=128, nodata=-9999)
windows = Windows([f"dem{seed}.tif" for seed in (1, 2, 3)], size=48, batch=32, device=DEVICE, masked=True, length=150)
first = next(iter(windows))
print(tuple(first.shape), first.dtype, "on", first.device.type)

# %% [markdown]
# ## Training
#
# Each window is normalized. A square in its middle is hidden, and the network predicts it.

# %%
def normalized(heights):
    heights = heights - heights.nanmean((1, 2, 3), keepdim=True).nan_to_num()
    valid = ~heights.isnan()
    heights = heights.nan_to_num()
    return heights / heights.std((1, 2, 3), keepdim=True).clamp(min=1), valid


hidden = torch.zeros(48, 48, dtype=torch.bool, device=DEVICE)
hidden[16:32, 16:32] = True
layers = [nn.Conv2d(2, 24, 5, padding=2), nn.ReLU()]
for dilation in (2, 4, 8):
    layers += [nn.Conv2d(24, 24, 3, padding=dilation, dilation=dilation), nn.ReLU()]
network = nn.Sequential(*layers, nn.Conv2d(24, 1, 3, padding=1)).to(DEVICE)
optimizer = torch.optim.Adam(network.parameters(), 2e-3)


def fill(heights):
    """The windows with the hidden square predicted."""
    known = torch.where(hidden, 0, heights)
    marks = hidden.to(heights.dtype).expand_as(heights)
    return torch.where(hidden, network(torch.cat([known, marks], 1)), heights)


def train(heights):
    """One step; returns the loss."""
    heights, valid = normalized(heights)
    counted = hidden & valid
    loss = nn.functional.mse_loss(fill(heights)[counted], heights[counted])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


begin = time.perf_counter()
losses = [train(heights) for heights in windows]
seconds = time.perf_counter() - begin
print(f"mean loss of the first 10 batches {sum(losses[:10]) / 10:.2f}, of the last 10 {sum(losses[-10:]) / 10:.2f}")

# %% [markdown]
# ## Does the loader keep up?
#
# It does if reading alone gives more crops a second than training. Then training never waits for a batch, and
# `prefetch`, the number of batches that are read ahead, need not grow. `bench/gpu_crops.py` measures larger files.

# %%
def utilization():
    """Percent of the last moments in which the GPU had work."""
    try:
        return torch.cuda.utilization()
    except ModuleNotFoundError:  # nvidia-ml-py is not installed
        query = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        return int(subprocess.check_output(query, text=True).splitlines()[0])


if DEVICE == "cuda":
    print(f"GPU utilization {utilization()} %")
else:
    print("there is no GPU: the CPU reads and trains")
crops = 32 * len(windows)
begin = time.perf_counter()
for heights in windows:
    pass
print(f"{crops / seconds:.0f} crops a second with training, {crops / (time.perf_counter() - begin):.0f} without")

# %% [markdown]
# ## The picture
#
# Windows of another epoch: with the hole, filled, and the truth.

# %%
from matplotlib import pyplot

windows.set_epoch(1)
heights = normalized(next(iter(windows)))[0][:4]
with torch.no_grad():
    rows = [torch.where(hidden, torch.nan, heights), fill(heights), heights]
figure, axes = pyplot.subplots(3, 4, figsize=(7, 5.4), layout="constrained")
for row, (name, pictures) in enumerate(zip(("input", "filled", "truth"), rows)):
    axes[row][0].set_ylabel(name)
    for axis, picture in zip(axes[row], pictures.cpu()):
        axis.imshow(picture[0], cmap="terrain", vmin=-2.5, vmax=2.5)
        axis.set(xticks=[], yticks=[])
figure.savefig("training_loader.png", dpi=75)
