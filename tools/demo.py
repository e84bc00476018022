"""make demo: a raster described, read beside rasterio, compared with it, and drawn.

Takes a file's name, or makes a terrain with the noise of a survey; leaves demo/preview.png. Ends with 1 where
the pixels are not rasterio's.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
import rasterio
from rasterio.errors import NotGeoreferencedWarning
from rasterio.windows import Window

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import cogpu_ctypes as cogpu  # noqa: E402

DEMO = ROOT / "demo"
TERRAIN = DEMO / "terrain.tif"
SIDE = 4096
PREVIEW_SIDE = 1024
BYTES_MAX = 1 << 30  # of pixels read for the comparison: the first rows of a larger raster
REPEATS = 3


def shown(path):
    path = pathlib.Path(path).resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def command(*words):
    """Runs build/cogpu and returns what it prints."""
    done = subprocess.run([ROOT / "build" / "cogpu", *map(str, words)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


# ---- a terrain ---------------------------------------------------------------------------------

def terrain():
    """Mountains by spectral synthesis, eroded a little, with 5 cm of noise, a lake and an unsurveyed edge."""
    random = np.random.default_rng(11)
    rows, columns = np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None, :]
    frequency = np.hypot(rows, columns)
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(random.standard_normal((SIDE, SIDE), dtype="float32")) * (frequency + 4e-4) ** -2.1
    height = np.fft.irfft2(spectrum, (SIDE, SIDE))
    height /= height.std()
    height = (900 + 420 * np.sign(height) * np.abs(height) ** 1.25).astype("float32")
    height += random.normal(0, 0.05, height.shape).astype("float32")
    y, x = np.ogrid[:SIDE, :SIDE]
    height[x < 180 + 90 * np.sin(y / 260) + y // 14] = -9999
    height[((x - 2900) / 1.6) ** 2 + (y - 1300) ** 2 < 190 ** 2] = -9999
    return height


def make_terrain():
    print(f"terrain   {shown(TERRAIN)} is made: {SIDE} x {SIDE}, float32")
    print("          (GDAL writes the COG; cogpu does not write yet)\n")
    with rasterio.open(TERRAIN, "w", driver="COG", width=SIDE, height=SIDE, count=1, dtype="float32",
                       nodata=-9999, crs="EPSG:32632", transform=rasterio.Affine(10, 0, 600000, 0, -10, 5200000),
                       compress="deflate", predictor=3, overview_resampling="average",
                       num_threads="all_cpus") as file:
        file.write(terrain(), 1)


# ---- read, beside rasterio ---------------------------------------------------------------------

def best(action):
    """The shortest of some times, and what the action returned."""
    seconds, result = [], None
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def read_cogpu(path, window, shape, dtype):
    with cogpu.open(path) as file:
        return file.read(np.empty(shape, dtype), window=window)


def read_rasterio(path, window):
    with rasterio.open(path, num_threads="all_cpus") as file:
        return file.read(window=Window(*window))


def speed(name, bytes_read, seconds):
    print(f"          {name:16s} {bytes_read / seconds / 1e6:6.0f} MB/s  {seconds * 1000:8.1f} ms")


def compare(path):
    """False where the pixels differ."""
    with cogpu.open(path) as file:
        info = file.info()
    rows = min(info.height, max(1, BYTES_MAX // (info.bands * info.width * info.dtype.itemsize)))
    window, shape = (0, 0, info.width, rows), (info.bands, rows, info.width)
    ours, pixels = best(lambda: read_cogpu(path, window, shape, info.dtype))
    print(f"\nread      {pixels.nbytes / 1e6:.1f} MB of pixels, best of {REPEATS}, "
          f"{len(os.sched_getaffinity(0))} threads")
    speed("cogpu", pixels.nbytes, ours)
    try:
        theirs, judged = best(lambda: read_rasterio(path, window))
    except rasterio.errors.RasterioError as error:
        print(f"          rasterio cannot read it: {error}")
        return True
    speed("rasterio", pixels.nbytes, theirs)
    if judged.dtype != pixels.dtype:
        print(f"          rasterio gives {judged.dtype} for {info.dtype}: not compared")
        return True
    found = command("checksum", path, "--window", ",".join(map(str, window))).split()[0]
    same = found == hashlib.sha256(np.ascontiguousarray(judged)).hexdigest()
    print(f"pixels    {'the same as' if same else 'NOT those of'} rasterio's, sha256 {found[:16]}...")
    return same


# ---- a picture ---------------------------------------------------------------------------------

def picture_level(path):
    """The smallest level that is large enough."""
    with cogpu.open(path) as file:
        large = [i for i, level in enumerate(file.levels()) if max(level.width, level.height) >= PREVIEW_SIDE]
        return large[-1] if large else 0


def load(path, level, *options):
    """Pixels of a level by way of a .npy file, thinned to the size of the picture."""
    command("read", path, "--level", level, *options, "-o", DEMO / "level.npy")
    pixels = np.load(DEMO / "level.npy", mmap_mode="r")
    step = max(1, max(pixels.shape) // PREVIEW_SIDE)
    thinned = np.array(pixels[:3, ::step, ::step])
    (DEMO / "level.npy").unlink()
    return thinned


def stretch(pixels, valid):
    """0..1 between the 2nd and the 98th percentile."""
    real = np.abs(pixels) if np.iscomplexobj(pixels) else pixels.astype("float64")
    seen = real[valid & np.isfinite(real)]
    low, high = np.percentile(seen, (2, 98)) if seen.size else (0, 1)
    return np.clip(np.nan_to_num((real - low) / (high - low or 1)), 0, 1)


def hillshade(height, valid, pixel):
    """Light from the north-west on a tint by height."""
    down, across = np.gradient(np.where(valid, height, height[valid].mean()).astype("float64"), pixel)
    light = (1 + across + down) / np.sqrt(3 * (1 + across ** 2 + down ** 2))
    shade = np.clip(0.25 + 0.95 * light, 0, 1)
    stops = np.array([[92, 132, 84], [164, 168, 108], [186, 148, 104], [150, 122, 108], [246, 246, 244]]) / 255
    tint = [np.interp(stretch(height, valid), np.linspace(0, 1, len(stops)), stops[:, k]) for k in range(3)]
    return np.stack(tint) * shade


def draw(path, is_terrain):
    level = picture_level(path)
    pixels, valid = load(path, level), load(path, level, "--band", 1, "--mask")[0] > 0
    if is_terrain:
        colours = hillshade(pixels[0], valid, 10 * SIDE / pixels.shape[2])
    else:
        bands = [0, 1, 2] if len(pixels) == 3 else [0, 0, 0]
        colours = np.stack([stretch(pixels[band], valid) for band in bands])
    picture = np.concatenate([colours * 255, valid[None] * 255]).astype("uint8")
    out = DEMO / "preview.png"
    with rasterio.open(out, "w", driver="PNG", count=4, height=picture.shape[1], width=picture.shape[2],
                       dtype="uint8") as file:
        file.write(picture)
    print(f"picture   {shown(out)}, {picture.shape[2]} x {picture.shape[1]}, from level {level}")


def main():
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    DEMO.mkdir(exist_ok=True)
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TERRAIN
    if path == TERRAIN and not TERRAIN.exists():
        make_terrain()
    print(f"$ build/cogpu info {shown(path)}")
    print(command("info", path).rstrip())
    same = compare(path)
    draw(path, path == TERRAIN)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
