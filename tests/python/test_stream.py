"""Files of one huge strip, which is decoded as it is read: right, and in little memory."""

import lzma
import re
import subprocess
import sys
import zlib

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import rasterio
import tiff_bytes as tb
from test_differential import check_reads

SHAPE = (1600, 1501)  # with four bytes a sample well above the size from which blocks are streamed

WAYS = [
    dict(compress="deflate"), dict(compress="deflate", predictor=2), dict(compress="deflate", predictor=3),
    dict(compress="zstd", predictor=2), dict(compress="zstd", zstd_level=22), dict(compress="lzw"),
    dict(compress="lzw", predictor=3), dict(compress="lzma"), dict(compress="packbits"),
]


def terrain(bands=1, dtype="f4", shape=SHAPE):
    rng = np.random.default_rng(1)
    slope = np.add.outer(np.arange(shape[0]), np.arange(shape[1])) % 1000
    flat = [np.where(slope < 300, 7, slope + rng.integers(0, 4, shape)) + 10 * b for b in range(bands)]
    return np.stack(flat).astype(dtype)


def write(path, pixels, **options):
    bands, height, width = pixels.shape
    if options["compress"] == "lzma":  # for which GDAL takes twenty times as long
        path.write_bytes(tb.image(pixels, compression=tb.LZMA, planar=bands > 1,
                                  encode=lambda block: lzma.compress(block, preset=0)))
    else:
        with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width,
                           dtype=pixels.dtype, blockysize=height, **options) as out:
            out.write(pixels)
    with cogpu.open(path) as file:
        assert file.info().block_height == height
    with rasterio.open(path) as file:
        return file.read()


@pytest.mark.parametrize("options", WAYS, ids=lambda o: "-".join(map(str, o.values())))
def test_one_strip(options, tmp_path):
    path = tmp_path / "one.tif"
    expected = write(path, terrain(), **options)
    with cogpu.open(path) as file:
        check_reads(file, expected)
        data = path.read_bytes()
        assert reference.same(file.read(device=cogpu.GPU), expected)
        if options.get("zstd_level") != 22:  # whose window is too large to be streamed
            assert file.last_result.bytes_read < len(data), "it is decoded once"
    with cogpu.open_memory(data) as file, cogpu.Context(cache_bytes=1 << 30) as context:
        assert reference.same(file.read(), expected)
        assert reference.same(file.read(context=context), expected)
        assert reference.same(file.read(context=context, window=(5, 70, 800, 900)),
                          expected[:, 70:970, 5:805])
        assert file.last_result.cached_blocks == 1


THREADS = [1, 2, 3, 5]


def rough(shape, dtype="f4"):
    """Less compressible than `terrain`: a strip has many blocks of deflate."""
    rng = np.random.default_rng(2)
    return (terrain(1, "i4", shape) + rng.integers(0, 300, shape)).astype(dtype)


@pytest.mark.parametrize("shape", [(2600, 1801), (1300, 1001)], ids=["streamed", "whole"])
@pytest.mark.parametrize("predictor", [1, 2, 3])
def test_threads_share_a_block(predictor, shape, tmp_path):
    """A strip of 19 MB, and one of 5 MB, which is not streamed, by any number of threads."""
    path = tmp_path / "shared.tif"
    expected = write(path, rough(shape), compress="deflate", predictor=predictor)
    with cogpu.open(path) as file, cogpu.open_memory(path.read_bytes()) as in_memory:
        for threads in THREADS:
            assert reference.same(file.read(threads=threads), expected)
            with cogpu.Context(threads=threads) as context:
                assert reference.same(in_memory.read(context=context), expected)
                assert reference.same(file.read(context=context, window=(3, 500, 700, 400)), expected[:, 500:900, 3:703])
                assert reference.same(file.read(context=context), expected)
                assert file.last_result.bytes_read <= path.stat().st_size, "it is read once"


def outcome(file, context):
    """Pixels, or what is wrong."""
    try:
        return file.read(context=context).tobytes()
    except cogpu.CogpuError as error:
        assert (file.read(context=context, fill_bad_blocks=True) == 0).all()
        return error.status, error.block, str(error)


@pytest.mark.parametrize("shape", [(2600, 1801), (1300, 1001)], ids=["streamed", "whole"])
def test_threads_refuse_the_same(shape, tmp_path):
    """Damage that makes the stream longer than its block goes unnoticed: its Adler-32 does not count."""
    path = tmp_path / "bad.tif"
    expected = write(path, rough(shape), compress="deflate", predictor=2)
    offset, bytes_ = stored(path)
    valid, refused = path.read_bytes(), 0
    damages = [(offset + bytes_ * k // 7 + k, 1) for k in range(7)] + [(offset + bytes_ // 3, 5000), (len(valid) - 1, 1)]
    for at, count in damages:
        path.write_bytes(valid[:at] + bytes(b ^ 64 for b in valid[at:at + count]) + valid[at + count:])
        found = []
        for threads in THREADS:
            with cogpu.open(path) as file, cogpu.Context(threads=threads) as context:
                found.append(outcome(file, context))
                if at > offset + bytes_ // 2 and shape[0] > 2000:  # a streamed block is decoded as far as it is needed
                    assert reference.same(file.read(context=context, window=(0, 0, shape[1], 900)), expected[:, :900])
        assert found == [found[0]] * len(THREADS)
        refused += found[0][0] == cogpu.CORRUPT
    assert refused >= 5


@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("compress", ["deflate", "lzw", "zstd"])
def test_bands(compress, interleave, tmp_path):
    expected = write(tmp_path / "bands.tif", terrain(3, "u2", (1600, 1801)), compress=compress, predictor=2,
                     interleave=interleave)
    with cogpu.open(tmp_path / "bands.tif") as file:
        check_reads(file, expected)


@pytest.mark.parametrize("options", [
    dict(photometric="ycbcr", compress="jpeg", interleave="pixel"), dict(compress="jpeg"),
    dict(compress="deflate", photometric="cmyk"), dict(compress="jpeg", photometric="cmyk")],
    ids=lambda o: "-".join(o.values()))
def test_colours(options, tmp_path):
    bands = 4 if options.get("photometric") == "cmyk" else 3
    expected = write(tmp_path / "colours.tif", terrain(bands, "u1", (2300, 2001)), **options)
    with cogpu.open(tmp_path / "colours.tif") as file:
        check_reads(file, expected)


@pytest.mark.parametrize("compress", ["ccittfax4", "ccittfax3", "ccittrle", "lzw", "packbits"])
def test_bits(compress, tmp_path):
    pixels = (terrain(1, "u2", (8500, 8005)) > 500).astype("u1")
    expected = write(tmp_path / "bits.tif", pixels, compress=compress, nbits=1)
    with cogpu.open(tmp_path / "bits.tif") as file:
        assert reference.same(file.read(), expected)
        assert reference.same(file.read(window=(70, 1000, 80, 90)), expected[:, 1000:1090, 70:150])


def test_lzw_of_one_value(tmp_path):
    """The longest strings there are: 7 MB between two Clear codes."""
    expected = write(tmp_path / "flat.tif", np.full((1, 6000, 4001), 9, "u1"), compress="lzw")
    with cogpu.open(tmp_path / "flat.tif") as file:
        assert reference.same(file.read(), expected)


def test_bits_turned():
    """FillOrder 2 is undone part by part."""
    pixels = terrain(1, "u4")
    turn = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))
    data = tb.image(pixels, compression=tb.DEFLATE, tags={266: (tb.SHORT, [2])},
                    blocks=[zlib.compress(pixels.tobytes(), 1).translate(turn)])
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), pixels)


def stored(path):
    """Where the one strip lies."""
    with cogpu.open(path) as file:
        offset = int(file.tag_read(0, 273, 0, 1, {3: "u2", 4: "u4", 16: "u8"}[file.tags()[273].type])[0])
        return offset, path.stat().st_size - offset


@pytest.mark.parametrize("compress", ["deflate", "zstd", "lzma"])
def test_damage_in_the_middle(compress, tmp_path):
    """Rows before the damage can be had; the whole is refused, or filled where that is asked for."""
    path = tmp_path / "bad.tif"
    expected = write(path, terrain(), compress=compress)
    offset, bytes_ = stored(path)
    data = bytearray(path.read_bytes())
    data[offset + bytes_ // 2:offset + bytes_ // 2 + 60000] = b"\xff" * 60000
    path.write_bytes(data)
    with cogpu.open(path) as file:
        assert reference.same(file.read(window=(0, 0, SHAPE[1], 10)), expected[:, :10])
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read()
        assert caught.value.status == cogpu.CORRUPT and caught.value.block == 0
        assert (file.read(fill_bad_blocks=True) == 0).all()
        assert file.last_result.bad_blocks == 1


@pytest.mark.parametrize("compress", ["deflate", "zstd", "lzma", "lzw", "packbits"])
def test_more_and_less_than_the_block(compress, tmp_path):
    """One row too few is an error; one too many is ignored (T052)."""
    path = tmp_path / "rows.tif"
    expected = write(path, terrain(), compress=compress)
    data = path.read_bytes()
    with cogpu.open_memory(with_rows(path, data, SHAPE[0] + 1)) as file:
        assert file.info().height == SHAPE[0] + 1
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read()
        assert caught.value.status == cogpu.CORRUPT
    with cogpu.open_memory(with_rows(path, data, SHAPE[0] - 1)) as file:
        assert reference.same(file.read(), expected[:, :-1])


def with_rows(path, data, rows):
    """The file with another height, which is less than 65536."""
    changed = bytearray(data)
    entry = int.from_bytes(data[4:8], "little") + 2
    for _ in range(int.from_bytes(data[entry - 2:entry], "little")):
        if int.from_bytes(data[entry:entry + 2], "little") in (257, 278):
            changed[entry + 8:entry + 10] = rows.to_bytes(2, "little")
        entry += 12
    return bytes(changed)


MEASURE = """
import re, sys
import cogpu_ctypes as cogpu, numpy as np
def memory(field):
    return int(re.search(field + r":\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
with cogpu.open(sys.argv[1]) as file:
    info = file.info()
    pixels = np.empty((info.bands, info.height, info.width), info.dtype)
    pixels.fill(0)
    before = memory("VmRSS")
    file.read(out=pixels, threads=2)
    print(memory("VmHWM") - before)
"""


@pytest.mark.parametrize("options", [o for o in WAYS if o.get("zstd_level") != 22] + [
    dict(compress="jpeg", dtype="u1")], ids=lambda o: "-".join(map(str, o.values())))
def test_memory(options, tmp_path):
    """Beyond the raster: far less than the strip, stored or decoded."""
    options = dict(options)
    dtype = np.dtype(options.pop("dtype", "f4"))
    pixels = terrain(2, dtype, (2500, 3001 * 4 // dtype.itemsize))
    write(tmp_path / "large.tif", pixels, interleave="band", **options)
    done = subprocess.run([sys.executable, "-c", MEASURE, str(tmp_path / "large.tif")], check=True,
                          capture_output=True, text=True, cwd=re.sub("/[^/]*$", "", __file__))
    assert float(done.stdout) < 20
