"""Pictures of rasters for the examples, with NumPy alone: heights as shaded relief, curves, and PNG files.

Turns arrays (y, x) into colors (y, x, 3), which `save` writes. Here, so that an example is about its
idea.
"""

import struct
import zlib

import numpy as np

LAND = np.array([(38, 84, 92), (86, 132, 98), (172, 180, 118), (196, 160, 110), (150, 120, 104), (246, 244, 240)], "f8")
STEEP = np.array([(252, 250, 236), (236, 190, 120), (196, 92, 60), (92, 20, 46)], "f8")
EMPTY = np.array([255, 255, 255])


def ramp(values, low, high, colours=LAND):
    """Colours between those of the ramp; white where a value is NaN."""
    share = np.clip((np.nan_to_num(values, nan=low) - low) / max(high - low, 1e-9), 0, 1) * (len(colours) - 1)
    steps = np.arange(len(colours))
    found = np.stack([np.interp(share, steps, colours[:, band]) for band in range(3)], -1)
    return np.where(np.isnan(values)[..., None], EMPTY, found)


def relief(heights, pixel=1.0):
    """Heights coloured from low to high, lit from the north-west."""
    heights = np.asarray(heights, "f8")
    low, high = np.nanpercentile(heights, [1, 99]) if not np.isnan(heights).all() else (0, 1)
    down, right = np.gradient(heights, pixel)
    light = (1 + (right + down) / np.sqrt(2)) / np.sqrt(1 + right**2 + down**2)
    light = np.where(np.isnan(heights), 1, np.clip(np.nan_to_num(light, nan=1.0) * 0.45 + 0.55, 0.25, 1.15))
    return np.clip(ramp(heights, low, high) * light[..., None], 0, 255)


def bars(counts, height=220, width=512):
    """A histogram of heights, in their colours."""
    tall = np.repeat(np.asarray(counts, "f8"), -(-width // len(counts)))
    filled = np.arange(height)[::-1, None] < tall / tall.max() * (height - 12)
    return ramp(np.where(filled, np.arange(len(tall)), np.nan), 0, len(tall))


def beside(*pictures, gap=8):
    """Pictures in a row, on white."""
    height = max(picture.shape[0] for picture in pictures)
    out = np.full((height, sum(picture.shape[1] + gap for picture in pictures) - gap, 3), 255.0)
    left = 0
    for picture in pictures:
        out[:picture.shape[0], left:left + picture.shape[1]] = picture
        left += picture.shape[1] + gap
    return out


def below(*pictures, gap=8):
    """Pictures in a column, on white."""
    return beside(*(picture.swapaxes(0, 1) for picture in pictures), gap=gap).swapaxes(0, 1)


def save(path, colours):
    """Writes (y, x, 3) colours from 0 to 255 as a PNG, of 5 bits a colour: relief compresses badly otherwise."""
    height, width, _ = colours.shape
    rows = np.zeros((height, width * 3 + 1), "u1")  # each begins with its filter, 0: none
    rows[:, 1:] = colours.reshape(height, -1).astype("u1") | 7

    def piece(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + piece(b"IDAT", zlib.compress(rows.tobytes(), 9)) + piece(b"IEND", b""))
    print(f"{path}: {width} x {height}")
