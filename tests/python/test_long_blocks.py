"""Streams that decode to more than their block: the rest is ignored, valid or not, as GDAL ignores it.

Decision 5 has the rule (docs/decisions/0005-short-blocks.md).
"""

import lzma
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from test_differential import check_file
from test_stream import SHAPE, terrain



def join(encode):
    """One stream of the block and what is behind it."""
    return lambda block, rest: bytes(encode(block + rest))


def deflate_apart(block, rest):
    """No token of the stream has bytes of both."""
    stream = zlib.compressobj()
    return stream.compress(block) + stream.flush(zlib.Z_FULL_FLUSH) + stream.compress(rest) + stream.flush()


CODECS = {"deflate": (tb.DEFLATE, deflate_apart), "deflate_across": (tb.OLD_DEFLATE, join(zlib.compress)),
          "zstd": (tb.ZSTD, join(imagecodecs.zstd_encode)), "lzma": (tb.LZMA, join(lzma.compress)),
          "lzw": (tb.LZW, join(tb.lzw_encode)), "packbits": (tb.PACKBITS, join(tb.packbits_encode)),
          "none": (tb.NONE, join(bytes))}
SUMMED = ["deflate", "deflate_across", "zstd", "lzma"]
NOISE = np.random.default_rng(1).integers(0, 256, 2_000_000, dtype="u1").tobytes()


def check_gdal(data, expected, codec):
    """GDAL reads the file. Of a deflate token that the block's end cuts, its libdeflate leaves out all bytes."""
    pixels = reference.read(data)
    assert codec == "deflate_across" or reference.same(pixels, expected)


@pytest.mark.parametrize("rest", [b"\0", NOISE[:5000]], ids=len)
@pytest.mark.parametrize("layout", [{}, {"rows": 7}, {"tile": (16, 32)}, {"tile": (48, 16), "planar": True},
                                    {"rows": 9, "planar": True}], ids=str)
@pytest.mark.parametrize("codec, dtype, predictor", [
    (codec, dtype, predictor) for codec in CODECS
    for dtype, predictor in [("u1", 1), ("u2", 2), ("f4", 1), ("f4", 2), ("f4", 3), ("i8", 2)]
    if predictor == 1 or codec not in ("packbits", "none")])
def test_long_blocks(codec, dtype, predictor, layout, rest):
    compression, encode = CODECS[codec]
    array = reference.noise(np.random.default_rng(3), (3, 37, 41), dtype)
    data = tb.image(array, compression=compression, predictor=predictor, 
                    encode=lambda block: encode(block, rest), **layout)
    check_file(data, array)
    check_gdal(data, array, codec)


def damaged(stream, kept):
    """What may follow the bytes that a block needs: nothing, garbage, the rest with its last bytes changed, which are a
    checksum (of zstd, where there is none, data)."""
    yield stream[:kept]
    yield stream[:kept] + b"\xff" * 3000
    yield stream[:kept] + NOISE[:3000]
    yield stream[:-4] + bytes(b ^ 255 for b in stream[-4:])


@pytest.mark.parametrize("codec", SUMMED)
def test_long_blocks_with_a_damaged_rest(codec):
    """zstd decodes 128 KiB at a time, so that the damage has to lie behind the part that ends the block."""
    compression, encode = CODECS[codec]
    array = np.frombuffer(NOISE[:150 * 100], "u1").reshape(1, 100, 150)
    stream = encode(array.tobytes(), NOISE[-500_000:])
    for raw in damaged(stream, 300_000):
        data = tb.image(array, compression=compression, blocks=[raw])
        check_file(data, array)
        check_gdal(data, array, codec)


CHECKED = {"deflate": zlib.compress, "lzma": lambda block: lzma.compress(block, check=lzma.CHECK_CRC32)}


@pytest.mark.parametrize("codec", CHECKED)
def test_checksum_of_a_block_that_fits(codec):
    """A stream that ends with its block is compared with its checksum."""
    array = np.frombuffer(NOISE[:150 * 100], "u1").reshape(1, 100, 150)
    stream = bytearray(CHECKED[codec](array.tobytes()))
    behind = 12 + 4 * (int.from_bytes(stream[-8:-4], "little") + 1) if codec == "lzma" else 0  # footer and index
    stream[-1 - behind] ^= 255
    with cogpu.open_memory(tb.image(array, compression=CODECS[codec][0], blocks=[bytes(stream)])) as file:
        for device in (cogpu.CPU, cogpu.GPU):
            with pytest.raises(cogpu.CogpuError) as caught:
                file.read(device=device)
            assert caught.value.status == cogpu.CORRUPT


@pytest.mark.parametrize("codec", SUMMED)
def test_long_blocks_read_in_parts(codec, tmp_path):
    """Of a block above 8 MiB, too, nothing behind it counts; neither what is wrong there."""
    compression, encode = CODECS[codec]
    if codec == "lzma":
        encode = join(lambda block: lzma.compress(block, preset=0))
    array = terrain()
    stream, by_a_byte = encode(array.tobytes(), NOISE), encode(array.tobytes(), b"1")
    streams = [stream, by_a_byte, *damaged(stream, len(stream) - 1_500_000)]
    if codec != "zstd":
        streams.append(by_a_byte[:-4] + bytes(4))
    for raw in streams:
        path = tmp_path / "long.tif"
        path.write_bytes(tb.image(array, compression=compression, blocks=[raw]))
        with cogpu.open(path) as file:
            assert reference.same(file.read(), array)
            assert reference.same(file.read(window=(0, SHAPE[0] - 5, SHAPE[1], 5)), array[:, -5:])
