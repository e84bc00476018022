"""The rasters and files that the benchmark reads, made once and kept.

Takes small real rasters (COGPU_RASTERS, or ../shared/rasters beside the repository) or, where that
folder is absent, a generated terrain; enlarges them; and writes one GeoTIFF for each row of the
tables. Here, so that bench.py is about measuring alone.
"""
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RASTERS = Path(os.environ.get("COGPU_RASTERS", ROOT.parent / "shared" / "rasters"))
DATA = ROOT / "build" / "bench-data"

TILES = {"tiled": True, "blockxsize": 512, "blockysize": 512}
DEFLATE, ZSTD, LZW = ({"compress": "deflate", "zlevel": 6}, {"compress": "zstd", "zstd_level": 9},
                      {"compress": "lzw"})
JPEG = {"compress": "jpeg", "photometric": "ycbcr", "jpeg_quality": 85}
ALL_ROWS = 1 << 16


@dataclass
class Row:
    """One file of the tables: which raster, stored how."""
    name: str
    raster: str
    options: dict
    lossy: bool = False

    @property
    def windows_share(self):
        """One window in so many is read: each decodes whole strips, or the one that there is."""
        if "tiled" in self.options:
            return 1
        return 100 if self.options.get("blockysize") == ALL_ROWS else 8

    @property
    def codec(self):
        return self.options.get("compress", "none")


def rows():
    def tiles(raster, codec, predictor=1, lossy=False):
        name = f"{raster} {codec.get('compress', 'none')}" + (f" p{predictor}" if predictor > 1 else "")
        options = {**TILES, **codec} | ({"predictor": predictor} if predictor > 1 else {})
        return Row(name, raster, options, lossy)

    def strips(row, kind="strips", height=None):
        options = {k: v for k, v in row.options.items() if k not in TILES}
        options |= {"blockysize": height} if height else {}
        return Row(f"{row.name}, {kind}", row.raster, options)

    f32 = [tiles("float32", DEFLATE, 3), tiles("float32", DEFLATE, 2), tiles("float32", ZSTD, 2),
           tiles("float32", ZSTD, 3), tiles("float32", LZW, 2), tiles("float32", {})]
    u16 = [tiles("uint16", codec, 2) for codec in (DEFLATE, ZSTD, LZW)]
    rgb = [tiles("rgb8", DEFLATE, 2), tiles("rgb8", LZW, 2), tiles("rgb8", JPEG, lossy=True),
           tiles("rgb8", {"compress": "webp", "webp_level": 75}, lossy=True)]
    others = [tiles("classes", DEFLATE), tiles("sar", DEFLATE, 2), tiles("float64", DEFLATE, 3)]
    striped = [strips(row, *kind) for row in (f32[0], f32[2], f32[5]) for kind in ((), ("strips of 64", 64))]
    return f32 + u16 + rgb + others + striped + [strips(f32[0], "one strip", ALL_ROWS)]


def enlarge(source, side, first=0, rows=None):
    """Repeats (bands, H, W) to (bands, side, side) so that no block holds a source row twice: copies
    side by side are mirrored, copies below turned round, and column block j starts j*H/9 further down.
    All of it, or `rows` rows from `first` on."""
    bands, height, width = source.shape
    j, x = np.divmod(np.arange(side), width)
    out = np.empty((bands, rows or side, side), source.dtype)
    for row in range(out.shape[1]):
        i, y = np.divmod(first + row + j * (height // 9), height)
        out[:, row] = source[:, y, np.where((i + j) % 2, width - 1 - x, x)]
    return out


def terrain(seed, side=1024, slope=1.9):
    """Heights from 0 to 1 with the spectrum of real ground, and a little of a sensor's noise."""
    random = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = 1
    ground = np.fft.irfft2(np.fft.rfft2(random.normal(size=(side, side))) / frequency ** slope)
    ground = (ground - ground.min()) / np.ptp(ground)
    return np.clip(ground + random.normal(scale=2e-4, size=ground.shape), 0, 1)


def classes():
    """A land cover map: twelve classes in patches, and 2 % of single pixels."""
    fields = np.stack([terrain(seed, slope=2.2) for seed in range(10, 22)])
    cover = fields.argmax(0).astype("uint8")
    random = np.random.default_rng(22)
    single = random.random(cover.shape) < 0.02
    cover[single] = random.integers(0, 12, single.sum())
    return cover[None]


def sar():
    """Amplitudes of a radar image with one look: backscatter times speckle."""
    backscatter = 0.05 + terrain(30, slope=1.4) ** 2
    speckle = np.random.default_rng(31).rayleigh(size=backscatter.shape)
    return np.minimum(1500 * np.sqrt(backscatter) * speckle, 65535).astype("uint16")[None]


def sparse_float64():
    """A model's output in double precision, on a part of the grid: the rest has one value."""
    values = 280 + 30 * terrain(40)
    values[terrain(41, slope=2.5) < 0.55] = -9999
    return values[None]


MADE = {"classes": classes, "sar": sar, "float64": sparse_float64}


def small(raster):
    """The source of a raster, as (bands, height, width)."""
    if raster in MADE:
        return MADE[raster]()
    if not RASTERS.is_dir():
        if raster == "float32":
            return (np.round(terrain(1) * 8000) / 100).astype("float32")[None]
        if raster == "uint16":
            return (5000 + terrain(2, slope=1.3) * 18000).astype("uint16")[None]
        return np.stack([(terrain(seed, slope=1.5) * 255).astype("uint8") for seed in (3, 4, 5)])
    import rasterio  # here: a machine with a GPU may lack it
    name = {"float32": "dsm_f32.tif", "uint16": "landsat_u16.tif", "rgb8": "rgb_u16_cog.tif"}[raster]
    with rasterio.open(RASTERS / name) as file:
        pixels = file.read()
    if raster == "rgb8":  # the part without nodata; 62 puts all but the brightest 1 % below 255
        pixels = np.minimum(pixels[:, 200:600, 200:600] // 62, 255).astype("uint8")
    return pixels


def raster(name, side):
    """A raster at the benchmark's size, mapped from the disk."""
    path = DATA / f"{name}-{side}.npy"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        np.save(path, enlarge(small(name), side))
    return np.load(path, mmap_mode="r")


def write(path, pixels, options):
    import rasterio
    from rasterio.transform import from_origin
    bands, height, width = pixels.shape
    part = path.with_suffix(".part")
    with rasterio.open(part, "w", driver="GTiff", count=bands, height=height, width=width,
                       dtype=pixels.dtype, interleave="pixel", num_threads="all_cpus",
                       **{"crs": "EPSG:32632", "transform": from_origin(356000, 5700000, 1, 1), **options}) as file:
        file.write(np.asarray(pixels))
    part.rename(path)


def file(row, side):
    """The path of a row's file; made if it is not there."""
    path = DATA / f"{row.name.replace(', ', ' ').replace(' ', '-')}-{side}.tif"
    if not path.exists():
        print(f"making {path.name}", file=sys.stderr)
        write(path, raster(row.raster, side), row.options)
    return path


def small_file():
    """A small GeoTIFF with an EPSG code and a transform, for opens."""
    path = DATA / "small.tif"
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        write(path, np.zeros((1, 64, 64), "uint8"), {})
    return path
