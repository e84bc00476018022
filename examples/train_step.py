"""One step of training on random windows of many files: a tiny network learns to fill what was not measured. Batches
are decoded by the GPU that trains, straight into the tensor; without a GPU all of it runs on the CPU.

    python examples/train_step.py demo/terrain.tif [more.tif ...] docs/python-torch.png

Needs PyTorch.
"""

import sys

import picture
import torch
from cogpu.torch import Windows
from torch import nn


def prepared(heights):
    """Heights by window, of mean 0 and deviation 1, with 0 where there are none; and where there are some."""
    valid = ~heights.isnan()
    mean = heights.nanmean((1, 2, 3), keepdim=True).nan_to_num()
    centred = (heights - mean).nan_to_num()
    return centred / centred.std((1, 2, 3), keepdim=True).clamp(min=1e-3), valid


def step(network, optimizer, heights):
    """Hides a square of each window, and learns what was there. The loss."""
    heights, valid = prepared(heights)
    third = heights.shape[-1] // 3
    hidden = torch.zeros_like(valid)
    hidden[..., third:-third, third:-third] = True
    loss = nn.functional.mse_loss(network(heights * ~hidden)[hidden & valid], heights[hidden & valid])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def drawn(heights, across=8):
    """The windows of a batch, in rows."""
    tiles = [picture.relief(window[0], 10) for window in heights.cpu().numpy()]
    return picture.below(*(picture.beside(*tiles[first:first + across]) for first in range(0, len(tiles), across)))


def main(*names, size=96, batch=16, seed=1, device="cuda" if torch.cuda.is_available() else "cpu"):
    *files, drawing = names
    torch.manual_seed(0)
    windows = Windows(files, size=size, batch=batch, bands=1, device=device, dtype=torch.float32, masked=True,
                      seed=seed, length=1)
    network = nn.Sequential(nn.Conv2d(1, 16, 9, padding=4), nn.ReLU(), nn.Conv2d(16, 16, 9, padding=4), nn.ReLU(),
                            nn.Conv2d(16, 1, 9, padding=4)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for heights in windows:
        print(f"{tuple(heights.shape)} on {heights.device}: loss {step(network, optimizer, heights):.3f}")
        picture.save(drawing, drawn(heights))


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) >= 3 else sys.exit(__doc__)
