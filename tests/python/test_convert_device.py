"""cogpu convert through a device: the emulated GPU, unless COGPU_DEVICES says cuda.

Its file has the pixels, overviews and masks of the CPU's, and says the same of them; GDAL reads it, and the validators
find a COG. On the emulated device chunks are small, so that all but the smallest images have many of them.
"""

import csv
import json
import os
import subprocess

import reference
import numpy as np
import pytest
import rasterio
from conftest import BIN, CORPUS, DEVICES
from rasterio.enums import Resampling
from rasterio.transform import from_origin
from rio_cogeo import cog_validate
from test_corpus import EXCEPTIONS, checksum

DEVICE = next((name for name in DEVICES if name != "cpu"), "emu")


def cogpu(*words, seed=1):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"COGPU_EMU_SEED": str(seed)})


def convert(path, out, *words, seed=1):
    done = cogpu("convert", path, out, "--json", *words, seed=seed)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for key in ("output", "bytes", "milliseconds"):
        del told[key]
    return told


def info(path):
    told = json.loads(cogpu("info", "--json", path).stdout)
    return {key: value for key, value in told.items() if key not in ("file", "bytes")}


def check(folder, path, *words, seed=1):
    """Converts by both; returns the device's file."""
    ours, theirs = folder / "device.tif", folder / "host.tif"
    assert convert(path, ours, *words, "--device", DEVICE, seed=seed) == convert(path, theirs, *words)
    assert info(ours) == info(theirs)
    assert reference.same_levels(ours.read_bytes(), theirs.read_bytes())
    if "--cog" in words:
        assert cogpu("check", "--strict", ours).returncode == cogpu("check", "--strict", theirs).returncode == 0
        valid, errors, warnings = cog_validate(ours, strict=True, quiet=True)
        assert valid, (errors, warnings)
    return ours


def pixels_of(path, **options):
    with rasterio.open(path, **options) as file:
        return file.read()


def write(path, pixels, mask=None, **options):
    """By GDAL, in small tiles."""
    bands, height, width = pixels.shape
    options = dict(crs="EPSG:32632", transform=from_origin(500000, 5000000, 10, 10), tiled=True, blockxsize=64, blockysize=64,
                   compress="deflate") | options
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), \
            rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width, dtype=pixels.dtype.name, **options) as file:
        file.write(pixels)
        if mask is not None:
            file.write_mask(mask)
    return path


def noise(shape, dtype, seed=1):
    return reference.noise(np.random.default_rng(seed), shape, dtype)


# ---- real files ----------------------------------------------------------------------------------

TRAITS = ["dtype", "compression", "predictor", "bits", "layout", "planar", "byte_order", "bigtiff", "photometric", "mask", "ghost"]
WAYS = [["--cog", "--block", 64], ["--codec", "lzw", "--strips", 13], ["--cog", "--codec", "zstd", "--block", 32, "--interleave", "band"],
        ["--codec", "packbits", "--block", "32x16", "--sparse"], ["--codec", "none", "--overviews", "2"], ["--predictor", 1]]


def sample():
    """Small files of the corpus, each with a trait that none before has, or two of them together."""
    try:
        with (CORPUS / "good.tsv").open(newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
    except FileNotFoundError:
        return [pytest.param(None, id="corpus-absent", marks=pytest.mark.skip(reason=f"no corpus at {CORPUS} (set COGPU_CORPUS)"))]
    for row in rows:
        row["samples"] = int(row["width"]) * int(row["height"]) * int(row["bands"])
    seen, chosen = set(), []
    for row in sorted(rows, key=lambda row: row["samples"]):
        has = {(trait, row[trait]) for trait in TRAITS} | {(row["compression"], row["layout"]), (row["mask"], row["planar"])}
        if 400 <= row["samples"] <= 70000 and row["file"] not in EXCEPTIONS and not has <= seen:
            seen |= has
            chosen.append(pytest.param(row, id=row["file"]))
    return chosen


SAMPLE = sample()


@pytest.mark.parametrize("row, words", [pytest.param(row.values[0], WAYS[i % len(WAYS)], id=row.id, marks=row.marks)
                                        for i, row in enumerate(SAMPLE)])
def test_real_files(tmp_path, row, words):
    out = check(tmp_path, CORPUS / "good" / row["file"], *words)
    assert checksum(cogpu("checksum", out).stdout) == row["sha256_of_pixels"]


# ---- chunks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words, options", [
    (["--block", 32], {"compress": None}),
    (["--block", "64x48", "--cog"], {"compress": None, "interleave": "band"}),
    (["--strips", 29, "--interleave", "band"], {"compress": None, "blockxsize": 32, "blockysize": 112}),
    (["--cog"], {"compress": "lzw", "tiled": False, "blockysize": 7}),
], ids=["tiles", "cog", "strips", "one row of blocks"])
def test_many_chunks(tmp_path, words, options):
    """A chunk is read into the place of one that the writer has cut, and no sooner, in whatever order the device works."""
    pixels = noise((2, 600, 250), "u2")
    mask = np.random.default_rng(2).integers(0, 2, (600, 250), "u1") * 255
    path = write(tmp_path / "a.tif", pixels, mask, **options)
    for seed in 1, 2:
        convert(path, tmp_path / "b.tif", "--codec", "none", *words, "--device", DEVICE, seed=seed)
        with rasterio.open(tmp_path / "b.tif") as file:
            assert (file.read() == pixels).all() and (file.dataset_mask() == mask).all()
    check(tmp_path, path, "--codec", "none", *words, seed=3)


def test_blocks_larger_than_a_chunk(tmp_path):
    path = write(tmp_path / "a.tif", noise((1, 300, 700), "f4"), tiled=False, blockysize=170, compress="zstd")
    check(tmp_path, path, "--cog", "--block", 256)


def test_a_part(tmp_path):
    pixels = noise((4, 300, 200), "i2")
    path = write(tmp_path / "a.tif", pixels, nodata=-9999)
    out = check(tmp_path, path, "--window", "30,70,100,150", "--band", "4,2", "--cog", "--block", 32)
    assert (pixels_of(out) == pixels[[3, 1], 70:220, 30:130]).all()
    out = check(tmp_path, path, "--bbox", "500300,4997800,501300,4999300")
    assert (pixels_of(out) == pixels[:, 70:220, 30:130]).all()


def test_a_level_and_its_mask(tmp_path):
    mask = np.zeros((300, 200), "u1")
    mask[20:200, 50:] = 255
    path = write(tmp_path / "a.tif", noise((3, 300, 200), "u1"), mask)
    with rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], Resampling.nearest)
    out = check(tmp_path, path, "--level", 1, "--window", "10,20,50,60", "--block", 16)
    with rasterio.open(path, overview_level=0) as expected, rasterio.open(out) as found:
        assert (found.read() == expected.read()[:, 20:80, 10:60]).all()
        assert (found.dataset_mask() == expected.dataset_mask()[20:80, 10:60]).all()


# ---- codecs and overviews ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, bands", [("u1", 3), ("f4", 2)])
@pytest.mark.parametrize("codec", ["none", "packbits", "lzw", "deflate", "zstd"])
def test_codecs_of_the_device(tmp_path, codec, dtype, bands):
    pixels = noise((bands, 150, 170), dtype)
    path = write(tmp_path / "a.tif", pixels)
    assert reference.same(pixels_of(check(tmp_path, path, "--cog", "--block", 64, "--codec", codec)), pixels)


@pytest.mark.parametrize("words", [["jpeg"], ["jpeg", "--quality", 90, "--interleave", "band"], ["lerc"], ["lerc_zstd", "--max-z-error", 2], ["lzma"],
                                   ["webp"]], ids=lambda words: words[0])
def test_codecs_of_the_host(tmp_path, words):
    """The device cuts and downsamples, and the host's encoder makes the same bytes of the same blocks."""
    if words[0] == "jpeg" and DEVICE != "emu":
        pytest.skip("a GPU may have nvJPEG: test_write_jpeg")
    mask = np.full((150, 170), 255, "u1")
    mask[40:80, 30:] = 0
    path = write(tmp_path / "a.tif", noise((3, 150, 170), "u1"), mask, photometric="rgb")
    out = check(tmp_path, path, "--cog", "--block", 64, "--codec", *words)
    assert out.read_bytes() == (tmp_path / "host.tif").read_bytes()


@pytest.mark.parametrize("resampling", ["nearest", "average", "rms", "bilinear", "cubic", "mode", "min", "max", "median"])
def test_overviews(tmp_path, resampling):
    """With holes, of which the device makes what the host makes, or leaves it to the host."""
    pixels = noise((1, 130, 170), "i2")
    pixels[0, 30:60, 20:90] = pixels[0, ::7] = -9999
    path = write(tmp_path / "a.tif", pixels, nodata=-9999)
    check(tmp_path, path, "--cog", "--block", 32, "--resampling", resampling)


def test_palette_sparse_and_few_bits(tmp_path):
    pixels = np.zeros((1, 200, 300), "u1")
    pixels[0, 50:90, 20:130] = np.random.default_rng(3).integers(0, 16, (40, 110))
    path = write(tmp_path / "a.tif", pixels, photometric="palette", nbits=4)
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, {i: (i * 15, 255 - i, i, 255) for i in range(16)})
    for words in ["--cog", "--sparse", "--block", 32], ["--bits", 4, "--codec", "lzw"]:
        out = check(tmp_path, path, *words)
        assert (pixels_of(out) == pixels).all()


# ---- what fails ----------------------------------------------------------------------------------


def test_bad_input_leaves_the_old_file(tmp_path):
    """GDAL has written the last blocks last; the first chunks are valid."""
    path, out = write(tmp_path / "a.tif", noise((1, 700, 200), "u2")), tmp_path / "b.tif"
    data = bytearray(path.read_bytes())
    data[-3000:-500] = bytes(2500)
    path.write_bytes(data)
    assert reference.refuses(bytes(data))
    out.write_text("old")
    done = cogpu("convert", path, out, "--device", DEVICE, "--cog")
    assert done.returncode == 1 and str(path) in done.stderr and out.read_text() == "old"
    assert done.stderr == cogpu("convert", path, out, "--cog").stderr
    assert sorted(os.listdir(tmp_path)) == ["a.tif", "b.tif"]
    check(tmp_path, path, "--fill-bad-blocks")


def test_a_device_that_is_not_there(tmp_path):
    path, out = write(tmp_path / "a.tif", noise((1, 20, 30), "u1")), tmp_path / "b.tif"
    out.write_text("old")
    done = cogpu("convert", path, out, "--device", "cuda:63")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and out.read_text() == "old"
    assert cogpu("convert", path, out, "--device", "tpu").returncode == 2


def test_a_file_onto_itself(tmp_path):
    pixels = noise((1, 200, 300), "u2")
    path = write(tmp_path / "a.tif", pixels)
    convert(path, path, "--cog", "--block", 64, "--device", DEVICE)
    assert (pixels_of(path) == pixels).all() and cog_validate(path, quiet=True)[0]
