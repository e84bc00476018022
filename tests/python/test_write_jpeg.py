"""JPEG that nvJPEG encodes, whose part a stand-in plays on the emulated GPU; on a GPU (COGPU_DEVICES=cuda) it is the true one.

A process in which nvJPEG is there writes all files. Here, where the host encodes, they are compared: streams are whole JPEGs, GDAL and tifffile
read what we read, and that is what the host's own file has; to the last bit where the stand-in was at work, which is libjpeg as the host is.
"""

import io
import os
import subprocess
import sys

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tifffile
from rio_cogeo import cog_validate
from test_jpeg_engines import FAKE
from test_write import pixels

# bands, height, width, options
BY_NVJPEG = {
    "grey": (1, 70, 90, {"block_width": 32}),
    "grey-strips": (1, 50, 61, {"strips": 1, "block_height": 16}),
    "colours": (3, 70, 90, {"block_width": 32, "quality": 90}),
    "colours-strips": (3, 50, 61, {"strips": 1, "block_height": 32, "quality": 30}),
    "colours-cog": (3, 150, 170, {"cog": 1, "block_width": 32}),
    "best": (3, 70, 90, {"block_width": 48, "quality": 100}),
    "worst": (1, 70, 90, {"block_width": 48, "quality": 1}),
    "planar": (3, 70, 90, {"block_width": 32, "interleave": 1}),
    "masked": (3, 100, 130, {"cog": 1, "block_width": 32, "mask": 1}),
    "sparse": (1, 100, 130, {"cog": 1, "block_width": 16, "sparse": 1}),
    "one-pixel": (3, 1, 1, {"block_width": 16}),
    "one-column": (3, 39, 1, {"strips": 1, "block_height": 16}),
}
BY_THE_HOST = {
    "rgb": (3, 70, 90, {"block_width": 32, "photometric": 2}),
    "four-bands": (4, 70, 90, {"block_width": 32}),
    "no-memory": (3, 70, 90, {"block_width": 32, "device_bytes": 5 << 10}),
}
CASES = BY_NVJPEG | BY_THE_HOST


def write(name, chunks=None, device=cogpu.CPU):
    """The file of a case, from chunks that lie on a device or not."""
    bands, height, width, options = CASES[name]
    array, mask = pixels("u1", bands, height, width), None
    options = {"codec": "jpeg"} | options
    device_bytes = options.pop("device_bytes", 64 << 20)
    if options.pop("mask", 0):
        mask = (pixels("u1", 1, height, width)[0] > 90).astype("u1")
    if "sparse" in options:
        array[:, 20:70, 30:] = 0
    with cogpu.Context(device_bytes=device_bytes) as context:
        return cogpu.write(array, mask, chunks, lies=device, context=context, **options)


def write_all(folder):
    for name, (_, height, *_) in CASES.items():
        data = write(name, None, cogpu.GPU)
        if height > 1:
            assert write(name, [1, height // 3, height - 1 - height // 3], cogpu.GPU) == data, f"{name}: chunks matter"
        with open(f"{folder}/{name}.tif", "wb") as file:
            file.write(data)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of all files."""
    folder = tmp_path_factory.mktemp("written")
    stand_in = {"COGPU_NVJPEG": str(FAKE)} if cogpu.GPU == cogpu.EMU else {}
    if cogpu.GPU == cogpu.EMU and FAKE is None:
        pytest.skip("the stand-in for nvJPEG has not been built")
    done = subprocess.run([sys.executable, "-c", f"import test_write_jpeg; test_write_jpeg.write_all({str(folder)!r})"],
                          capture_output=True, text=True, cwd=os.path.dirname(__file__), env=os.environ | stand_in)
    assert done.returncode == 0, done.stderr
    files = {name: (folder / f"{name}.tif").read_bytes() for name in CASES}
    if stand_in == {} and not has_tables(streams(tifffile.TiffFile(io.BytesIO(files["grey"])).pages[0])[0]):
        pytest.skip("nvJPEG is not installed")
    return files


def streams(page):
    """The stored bytes of its blocks, but for those that are left out."""
    file = page.parent.filehandle
    found = []
    for offset, count in zip(page.dataoffsets, page.databytecounts):
        if count:
            file.seek(offset)
            found.append(file.read(count))
    return found


def segments(stream):
    """Marker -> what follows it, of all before the scan."""
    at, found = 2, {}
    while at + 4 <= len(stream) and stream[at + 1] not in (0xD9, 0xDA):
        length = int.from_bytes(stream[at + 2:at + 4])
        found[stream[at + 1]] = found.get(stream[at + 1], b"") + stream[at + 4:at + 2 + length]
        at += 2 + length
    return found


def quantizers(stream):
    """Number -> table."""
    tables = segments(stream)[0xDB]
    return {tables[at]: tables[at + 1:at + 65] for at in range(0, len(tables), 65)}


def has_tables(stream):
    return {0xDB, 0xC4} <= segments(stream).keys()


def all_pages(data):
    file = tifffile.TiffFile(io.BytesIO(data))
    return [page for series in file.series for level in series.levels for page in level.pages if page.compression == 7]


@pytest.mark.parametrize("name", BY_NVJPEG)
def test_streams(written, name):
    """Each is a whole JPEG that says what the tags say, with the tables of the host."""
    for page in all_pages(written[name]):
        for stream in streams(page):
            assert stream[:2] == b"\xff\xd8" and stream[-2:] == b"\xff\xd9" and has_tables(stream)
            assert quantizers(page.jpegtables).items() <= quantizers(stream).items()
            frame, bands = segments(stream)[0xC0], 1 if page.planarconfig == 2 else page.samplesperpixel
            assert frame[5] == bands and frame[7] == (0x11 if bands == 1 else 0x22)
            assert imagecodecs.jpeg_decode(stream).shape[1] == (page.tilewidth or page.imagewidth)


def close(left, right):
    if cogpu.GPU == cogpu.EMU:
        return reference.same(left, right)
    return left.shape == right.shape and np.abs(left.astype(int) - right).mean() < 1


def by_tifffile(data):
    page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    found = page.asarray()
    found = np.moveaxis(found, -1, 0) if found.ndim == 3 and page.planarconfig == 1 else found
    return np.ascontiguousarray(found.reshape((page.samplesperpixel, page.imagelength, page.imagewidth)))


@pytest.mark.parametrize("name", ["grey", "colours"])
def test_tables_of_the_file_do_not_matter(written, name):
    data = written[name]
    tables = tifffile.TiffFile(io.BytesIO(data)).pages[0].jpegtables
    other = tables
    for table in quantizers(tables).values():
        other = other.replace(table, bytes(255 - value for value in table))
    assert data.count(tables) == 1 and other != tables
    changed = data.replace(tables, other)
    with cogpu.open_memory(changed) as file:
        assert reference.same(file.read(), reference.read(data))
    assert reference.same(reference.read(changed), reference.read(data)) and reference.same(by_tifffile(changed), by_tifffile(data))


@pytest.mark.parametrize("name", BY_NVJPEG)
def test_pixels(written, name, tmp_path):
    data, by_host = written[name], write(name)
    assert data != by_host
    with cogpu.open_memory(data) as file:
        ours = file.read()
        if CASES[name][3].get("cog"):
            assert file.check(strict=True)[0].errors == 0
    assert reference.same(ours, reference.read(data))
    assert reference.same(by_tifffile(data), ours)
    left, right = list(reference.levels(data)), list(reference.levels(by_host))
    assert len(left) == len(right)
    for (level, mask), (expected, expected_mask) in zip(left, right):
        assert close(level, expected) and reference.same(mask, expected_mask)
    if CASES[name][3].get("cog"):
        (tmp_path / "a.tif").write_bytes(data)
        valid, errors, warnings = cog_validate(tmp_path / "a.tif", strict=True, quiet=True)
        assert valid, (errors, warnings)


@pytest.mark.parametrize("name", BY_NVJPEG)
def test_tags(written, name):
    """Those of the host's file, but for places."""
    places = {"TileOffsets", "TileByteCounts", "StripOffsets", "StripByteCounts"}
    both = [[{tag.name: tag.value for tag in page.tags if tag.name not in places} for page in all_pages(data)]
            for data in (written[name], write(name))]
    assert both[0] == both[1]


@pytest.mark.parametrize("name", BY_THE_HOST)
def test_what_is_the_hosts(written, name):
    assert written[name] == write(name)
