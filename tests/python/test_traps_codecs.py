"""Files that broke other readers, built from bytes: codecs (docs/traps.md, section F).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import struct
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import CORRUPT, UNSUPPORTED
from trap_files import BYTES, pixels, reads, refused, stream

RAW = BYTES.tobytes()


def stored(data, final=1):
    return bytes([final]) + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data


def test_T082_both_numbers_of_deflate():
    for codec in (tb.DEFLATE, tb.OLD_DEFLATE):
        reads(stream(codec, zlib.compress(RAW)), BYTES)


def test_T082_raw_deflate_is_corrupt():
    packer = zlib.compressobj(wbits=-15)
    refused(stream(tb.DEFLATE, packer.compress(RAW) + packer.flush()), CORRUPT)


def test_T084_truncated_streams():
    for encode, codec in ((zlib.compress, tb.DEFLATE), (imagecodecs.zstd_encode, tb.ZSTD),
                          (imagecodecs.lzma_encode, tb.LZMA),
                          (tb.lzw_encode, tb.LZW), (tb.packbits_encode, tb.PACKBITS)):
        whole = encode(RAW)
        for keep in (1, 2, 3, 7, len(whole) // 2, len(whole) - (40 if codec == tb.LZMA else 6)):
            assert refused(stream(codec, whole[:keep]), CORRUPT).block == 0


def bits_low_first(*fields):
    out = tb.BitWriter(low_first=True)
    for value, width in fields:
        out.put(value, width)
    return out.bytes()


def zlib_of(raw_deflate, plain=RAW):
    return b"\x78\x9c" + raw_deflate + struct.pack(">I", zlib.adler32(plain))


@pytest.mark.parametrize("name,raw", [
    ("distance beyond the start (T085)", bits_low_first((1, 1), (1, 2), (0x20, 7), (0, 5), (0, 7))),
    ("LEN and NLEN differ", b"\x01\x05\x00\x05\x00hello"),
    ("block type 3", bits_low_first((1, 1), (3, 2), (0, 64))),
    ("too many length codes", bits_low_first((1, 1), (2, 2), (31, 5), (0, 5), (0, 4), (0, 64))),
    ("too many distance codes", bits_low_first((1, 1), (2, 2), (0, 5), (31, 5), (0, 4), (0, 64))),
    ("over-subscribed code", bits_low_first((1, 1), (2, 2), (0, 5), (0, 5), (15, 4), *[(1, 3)] * 19,
                                            (0, 64))),
    ("empty code lengths", bits_low_first((1, 1), (2, 2), (0, 5), (0, 5), (15, 4), *[(0, 3)] * 19,
                                          (0, 64))),
    ("length code 286", bits_low_first((1, 1), (1, 2), (0x63, 8), (0, 64))),
])
def test_T085_T086_malformed_deflate(name, raw):
    data = stream(tb.DEFLATE, zlib_of(raw))
    with pytest.raises(zlib.error):
        zlib.decompress(zlib_of(raw))
    refused(data, CORRUPT)


def test_T087_unusual_but_valid_deflate():
    pieces = b"".join(stored(RAW[i:i + 1], final=0) + stored(b"", final=0) for i in range(len(RAW)))
    tiny = zlib_of(pieces + stored(b""))
    assert zlib.decompress(tiny) == RAW
    reads(stream(tb.DEFLATE, tiny), BYTES)
    fixed = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_FIXED)
    reads(stream(tb.DEFLATE, fixed.compress(RAW) + fixed.flush()), BYTES)
    reads(stream(tb.DEFLATE, zlib.compress(RAW) + b"trailing bytes"), BYTES)


def test_T083_long_huffman_codes():
    """Fibonacci weights make codes of 15 bits, more than any first-level table holds."""
    weights, values = [1, 1], []
    while len(weights) < 22:
        weights.append(weights[-1] + weights[-2])
    for value, weight in enumerate(weights):
        values += [value] * min(weight, 20000)
    array = np.random.default_rng(6).permutation(np.array(values, "u1"))
    array = array[:len(array) // 64 * 64].reshape(-1, 64)
    packer = zlib.compressobj(6, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
    reads(stream(tb.DEFLATE, packer.compress(array.tobytes()) + packer.flush(), array), array)


def test_T088_adler_mismatch():
    raw = bytearray(zlib.compress(RAW))
    raw[-1] ^= 1
    refused(stream(tb.DEFLATE, bytes(raw)), CORRUPT)


def zstd_raw_block(data, last=True):
    return struct.pack("<I", len(data) << 3 | last)[:3] + data


def zstd_frame(blocks, descriptor=0x20, size=b"\x78"):
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + size + blocks


def test_T090_kinds_of_zstd_frames():
    half = len(RAW) // 2
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"hello"
    unsized = zstd_frame(zstd_raw_block(RAW), descriptor=0, size=b"\x58")
    two = zstd_frame(zstd_raw_block(RAW[:half]),
                     size=bytes([half])) + zstd_frame(zstd_raw_block(RAW[half:]),
                                                      size=bytes([half]))
    blocks = zstd_frame(zstd_raw_block(RAW[:50], False) + zstd_raw_block(b"",
                                                                         False) + zstd_raw_block(RAW[50:]))
    for raw in (unsized, two, blocks, skippable + zstd_frame(zstd_raw_block(RAW))):
        assert imagecodecs.zstd_decode(raw, out=len(RAW) * 2)[:60] == RAW[:60]
        reads(stream(tb.ZSTD, raw), BYTES)
    run = zstd_frame(struct.pack("<I", 120 << 3 | 1 << 1 | 1)[:3] + b"\x07")
    reads(stream(tb.ZSTD, run), np.full_like(BYTES, 7))


@pytest.mark.parametrize("raw", [
    b"\x28\xb5\x2f\xfe" + bytes(20), zstd_frame(struct.pack("<I", 1 << 3 | 3 << 1 | 1)[:3] + b"x"),
    zstd_frame(zstd_raw_block(RAW), descriptor=0x21, size=b"\x01\x78"),
    zstd_frame(zstd_raw_block(RAW)[:-1]),
    zstd_frame(struct.pack("<I", 3 << 3 | 2 << 1 | 1)[:3] + b"\x03\x00\x00"), b""])
def test_T091_malformed_zstd(raw):
    refused(stream(tb.ZSTD, raw) if raw else tb.image(BYTES, compression=tb.ZSTD, blocks=[(8, 1)]),
            CORRUPT, UNSUPPORTED)


def lzw(codes, expected, **how):
    """A stream of codes by hand for one row of pixels."""
    row = np.frombuffer(bytes(expected), "u1").reshape(1, -1)
    return tb.image(row, compression=tb.LZW, blocks=[tb.lzw_codes(codes, **how)]), row


def test_T092_valid_lzw():
    for codes, expected in (
            ([256, 7, 258, 259, 257], [7] * 6),             # KwKwK, twice
            ([256, 1, 2, 258, 257], [1, 2, 1, 2]),
            ([256, 1, 2, 258], [1, 2, 1, 2]),               # no end of information
            ([1, 2, 3, 257], [1, 2, 3]),                    # no opening Clear
            ([256, 256, 256, 5, 256, 6, 257], [5, 6]),      # Clear upon Clear
            ([256, 5, 6, 257, 9, 9, 9], [5, 6])):           # something after the end (T093)
        data, row = lzw(codes, expected)
        reads(data, row)


def test_T092_old_bit_order():
    for array in (BYTES, reference.noise(np.random.default_rng(7), (1, 90, 70), "u1")[0]):
        raw = tb.lzw_encode(array.tobytes(), low_first=True, early=0)
        data = stream(tb.LZW, raw, array)
        assert reference.same(reference.read(data)[0], array)
        reads(data, array)


@pytest.mark.parametrize("codes", [
    [256, 1, 260, 257], [256, 258, 1, 257], [256, 300, 257], [256, 1, 2, 4095, 257], [256, 257],
    [257], [256, 1, 2, 256, 259, 257]])
def test_T092_T093_malformed_lzw(codes):
    data, _ = lzw(codes, [0] * 8)
    assert refused(data, CORRUPT).block == 0


def test_T092_table_full_without_clear():
    """A table that is full stays as it is, or the stream is refused; it never overflows."""
    rng = np.random.default_rng(8)
    codes = [256] + rng.integers(0, 256, 6000).tolist() + [257]
    values = np.array(codes[1:-1], "u1").reshape(60, 100)
    data = stream(tb.LZW, tb.lzw_codes(codes), values)
    try:
        assert reference.same(pixels(data)[0], values)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT


def test_T094_packbits():
    rows = {
        bytes([256 - 7, 5]): [5] * 8, bytes([7]) + bytes(range(8)): range(8),
        bytes([128, 128, 7]) + bytes(range(8)): range(8),                       # -128 means nothing
        bytes([256 - 100, 9]): [9] * 8,                                         # a run past the block
        bytes([7]) + bytes(range(8)) + b"\x03\x01": range(8)}                   # unused rest
    for raw, expected in rows.items():
        row = np.frombuffer(bytes(expected), "u1").reshape(1, 8)
        reads(stream(tb.PACKBITS, raw, row), row)
    for raw in (b"\x07\x01\x02", bytes([256 - 3, 5]), b"\x80", bytes([256 - 7])):
        refused(stream(tb.PACKBITS, raw, np.zeros((1, 8), "u1")), CORRUPT)


@pytest.mark.parametrize("codec,encode", [
    (tb.LERC, lambda a: imagecodecs.lerc_encode(a)),
    (tb.JPEG, lambda a: imagecodecs.jpeg_encode(a))])
@pytest.mark.parametrize("shape", [(6, 10), (12, 5), (24, 20), (1, 1), (12, 10, 3)])
def test_T096_size_inside_the_stream_differs(codec, encode, shape):
    raw = bytes(encode(np.full(shape, 50, "u1")))
    data = stream(codec, raw)
    try:
        found = pixels(data)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT, str(error)
        return
    assert np.all(found == 50) and shape[:2] >= (12, 10)


@pytest.mark.parametrize("shape", [(6, 10, 3), (12, 5, 3), (24, 20, 3), (12, 10, 4)])
def test_T096_webp_of_another_size(shape):
    raw = bytes(imagecodecs.webp_encode(np.full(shape, 50, "u1"), lossless=True))
    data = stream(tb.WEBP, raw, np.zeros((3, 12, 10), "u1"), photometric=2)
    try:
        found = pixels(data)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT, str(error)
        return
    assert shape[:2] == (12, 10) and np.all(found == 50)


def test_T104_every_codec_says_who_decodes_it():
    rows = cogpu.codecs()
    assert rows[1].can_decode and rows[5].can_decode and rows[32773].can_decode
    for row in rows.values():
        assert row.name and (row.library or not row.can_decode)
