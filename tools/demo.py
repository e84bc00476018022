"""make demo: a raster becomes a COG, which is checked, described, read beside rasterio, compared and drawn.

Takes a file's name, or makes a terrain with the noise of a survey; leaves demo/terrain.tif and demo/preview.png.
Ends with 1 where the pixels of the COG are not those that rasterio reads of the source.
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
SURVEY, TERRAIN = DEMO / "survey.tif", DEMO / "terrain.tif"
SIDE = 4096
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


def make_survey():
    print(f"survey    {shown(SURVEY)} is made: {SIDE} x {SIDE}, float32, in strips, as an instrument might leave it\n")
    with rasterio.open(SURVEY, "w", driver="GTiff", width=SIDE, height=SIDE, count=1, dtype="float32",
                       nodata=-9999, crs="EPSG:32632", transform=rasterio.Affine(10, 0, 600000, 0, -10, 5200000)) as file:
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


def compare(source, path):
    """False where the pixels of the COG are not those of the source."""
    with cogpu.open(path) as file:
        info = file.info()
    rows = min(info.height, max(1, BYTES_MAX // (info.bands * info.width * info.dtype.itemsize)))
    window, shape = (0, 0, info.width, rows), (info.bands, rows, info.width)
    ours, pixels = best(lambda: read_cogpu(path, window, shape, info.dtype))
    print(f"read      {pixels.nbytes / 1e6:.1f} MB of pixels, best of {REPEATS}, "
          f"{len(os.sched_getaffinity(0))} threads")
    speed("cogpu", pixels.nbytes, ours)
    try:
        theirs, _ = best(lambda: read_rasterio(path, window))
        expected = read_rasterio(source, window)
    except rasterio.errors.RasterioError as error:
        print(f"          rasterio cannot read it: {error}")
        return True
    speed("rasterio", pixels.nbytes, theirs)
    if expected.dtype != pixels.dtype:
        print(f"          rasterio gives {expected.dtype} for {info.dtype}: not compared")
        return True
    found = command("checksum", path, "--window", ",".join(map(str, window))).split()[0]
    same = found == hashlib.sha256(np.ascontiguousarray(expected)).hexdigest()
    print(f"pixels    {'the same as' if same else 'NOT those of'} the source's by rasterio, sha256 {found[:16]}...\n")
    return same


# ---- the steps ---------------------------------------------------------------------------------

def step(*words):
    """A command as a user would type it, and what it says."""
    print("$ build/cogpu", *(shown(word) if isinstance(word, pathlib.Path) else word for word in words), flush=True)
    print(command(*words).rstrip() + "\n")


def main():
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    DEMO.mkdir(exist_ok=True)
    source = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SURVEY
    cog = TERRAIN if source == SURVEY else DEMO / f"{source.stem}.cog.tif"
    if source == SURVEY and not SURVEY.exists():
        make_survey()
    step("convert", source, cog, "--cog")
    step("check", cog)
    step("info", cog)
    same = compare(source, cog)
    step("preview", cog, DEMO / "preview.png")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
