"""Files that broke other readers, built from bytes: sizes, arithmetic, memory and time (docs/traps.md, section M).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import functools
import struct
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import CORRUPT, INVALID_ARGUMENT, IO_ERROR, LIMIT_EXCEEDED, NOT_FOUND, UNSUPPORTED
from tiff_bytes import ASCII, BYTE, DOUBLE, LONG, SHORT, Raw
from trap_files import BYTES, PIXELS, deflated, opened, pixels, reads, refused, stream, tags

# ---- M. sizes, arithmetic, memory, time --------------------------------------------------------

def huge(big=False, **how):
    return tb.image(np.zeros((1, 1), "u1"), big=big, **how)


def test_T203_huge_image_one_block_at_a_time():
    """The size alone does no harm: a window of it reads."""
    data = huge(tags=tags((256, LONG, [100000]), (257, LONG, [100000]), (278, LONG, [1]),
                          (273, LONG, Raw(100000, 8)),
                          (279, LONG, Raw(100000, 8))))
    with opened(data) as file:
        assert file.info().width == 100000
        with pytest.raises(cogpu.CogpuError):
            file.read(window=(0, 5000, 10, 1))


@pytest.mark.parametrize("codec", [tb.NONE, tb.DEFLATE, tb.LZW, tb.ZSTD, tb.PACKBITS, tb.LZMA,
                                   tb.LERC, tb.JPEG, 4])
def test_T204_huge_tile_on_a_tiny_image(codec):
    for side in (1 << 20, 1 << 30, (1 << 31) - 1):
        data = huge(compression=codec, tile=(16, 16),
                    tags=tags((322, LONG, [side]), (323, LONG, [side])),
                    blocks=[b"abcdefgh" * 8])
        refused(data, LIMIT_EXCEEDED, CORRUPT, UNSUPPORTED)


@pytest.mark.parametrize("count", [1 << 20, 1 << 28, (1 << 32) - 1])
def test_T205_forged_counts_of_arrays(count):
    for tag in (273, 279):
        data = tb.image(PIXELS, rows=3, tags={tag: (LONG, Raw(count, 8))})
        with opened(data) as file:
            try:
                file.read()
            except cogpu.CogpuError as error:
                assert error.status == CORRUPT
    refused(tb.image(PIXELS, tags={256: (LONG, Raw(count, 8))}), CORRUPT, LIMIT_EXCEEDED)


def test_T206_too_many_samples():
    refused(huge(tags=tags((277, SHORT, [65535]))), CORRUPT, LIMIT_EXCEEDED)
    refused(huge(tags=tags((277, SHORT, [65535]), (258, SHORT, [65535]))), CORRUPT, LIMIT_EXCEEDED,
            UNSUPPORTED, at="open")
    refused(huge(tags=tags((277, SHORT, [0]))), CORRUPT, at="open")


@pytest.mark.parametrize("codec,offset,count", [
    (codec, *place) for codec in (tb.NONE, tb.DEFLATE, tb.ZSTD, tb.LZW)
    for place in ((8, 0xFFFFFFFF), (0xFFFFFFF0, 0x20), (100000, 240), (8, 1 << 20))
    if codec != tb.NONE or place[0] != 8])  # of uncompressed blocks the bytes in excess do not matter
def test_T207_T208_blocks_beyond_the_file(codec, offset, count):
    error = refused(tb.image(PIXELS, compression=codec, rows=6, blocks=[(offset, count)] * 2),
                    CORRUPT, LIMIT_EXCEEDED)
    assert error.block == 0 and error.offset == offset


def test_T208_sum_of_offset_and_count_wraps():
    for place in ((2 ** 64 - 8, 16), (2 ** 63, 2 ** 63), (2 ** 64 - 1, 2 ** 64 - 1),
                  (16, 2 ** 64 - 16)):
        refused(tb.image(PIXELS, big=True, rows=6, compression=tb.LZW, blocks=[place] * 2), CORRUPT,
                LIMIT_EXCEEDED)


BOMB = np.zeros((1 << 10, 1 << 10), "u1")


@pytest.mark.parametrize("codec,encode", [(tb.DEFLATE, zlib.compress),
                                          (tb.ZSTD, imagecodecs.zstd_encode),
                                          (tb.LZMA, imagecodecs.lzma_encode)])
def test_T209_bombs_stop_at_the_block(codec, encode):
    raw = encode(BOMB.tobytes() * 64)
    reads(stream(codec, raw), np.zeros_like(BYTES))


def test_T210_lerc_that_states_a_huge_size():
    raw = bytearray(imagecodecs.lerc_encode(np.zeros((12, 10), "u1")))
    at = bytes(raw).index(struct.pack("<ii", 12, 10))
    raw[at:at + 8] = struct.pack("<ii", 30000, 30000)
    refused(stream(tb.LERC, bytes(raw)), CORRUPT)
    whole = bytes(imagecodecs.lerc_encode(np.zeros((4000, 4000), "u1")))
    refused(stream(tb.LERC, whole), CORRUPT)


def test_T211_jpeg_that_states_a_huge_size():
    raw = bytearray(imagecodecs.jpeg_encode(np.zeros((12, 10), "u1")))
    at = bytes(raw).index(b"\xff\xc0") + 5
    raw[at:at + 4] = struct.pack(">HH", 65500, 65500)
    try:
        pixels(stream(tb.JPEG, bytes(raw)))
    except cogpu.CogpuError as error:
        assert error.status in (CORRUPT, LIMIT_EXCEEDED)


@pytest.mark.parametrize("width,rows,bands,bits",
                         [(0x7FFFFFFF, 0x7FFFFFFF, 1, 8), (0x7FFFFFFF, 3, 65535, 64),
                          (65536, 65536, 1, 32),
                                                   (0x40000001, 4, 4, 32)])
def test_T212_products_that_overflow(width, rows, bands, bits):
    data = huge(tags=tags((256, LONG, [width]), (257, LONG, [rows]), (278, LONG, [rows]),
                          (277, SHORT, [bands]), (258, SHORT, [bits]),
                          (339, SHORT, [1]), (259, SHORT, [tb.DEFLATE])))
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data) as file:
            file.read(window=(0, 0, 1, 1), bands=[1])
    assert caught.value.status in (LIMIT_EXCEEDED, CORRUPT)


@pytest.mark.parametrize("window", [(0, 0, 11, 12), (0, 0, 10, 13), (10, 0, 1, 1), (0, 12, 1, 1),
                                    (5, 5, 6, 1), (2 ** 32 - 1, 0, 2, 1),
                                    (1, 0, 2 ** 32 - 1, 1), (0, 2 ** 31, 1, 1), (10, 12, 0, 0)])
def test_T138_T214_windows_outside(window):
    with opened(tb.image(PIXELS)) as file:
        out = np.zeros((1, min(window[3], 20) or 1, min(window[2], 20) or 1), "u2")
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=window, out=out)
    assert caught.value.status == INVALID_ARGUMENT


@pytest.mark.parametrize("shape,dtype", [((1, 12, 11), "u2"), ((1, 13, 10), "u2"),
                                         ((2, 12, 10), "u2"), ((1, 12, 10), "u1"),
                                         ((1, 12, 10), "i4"), ((1, 11, 10), "u2")])
def test_T214_raster_of_another_shape(shape, dtype):
    with opened(tb.image(PIXELS)) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(out=np.zeros(shape, dtype))
    assert caught.value.status == INVALID_ARGUMENT


@pytest.mark.parametrize("tag", [278, 322, 323])
def test_T215_zero_block_sizes(tag):
    how = {"rows": 3} if tag == 278 else {"tile": (16, 16)}
    refused(tb.image(PIXELS, tags={tag: (LONG, [0])}, **how), CORRUPT, at="open")


def test_T216_too_many_blocks():
    data = huge(tags=tags((256, LONG, [0x7FFFFFFF]), (257, LONG, [0x7FFFFFFF]), (322, LONG, [1]),
                          (323, LONG, [1])), tile=(1, 1))
    refused(data, LIMIT_EXCEEDED, CORRUPT)
    with pytest.raises(cogpu.CogpuError) as caught:
        opened(tb.image(PIXELS, rows=1), blocks=11)
    assert caught.value.status == LIMIT_EXCEEDED and "blocks" in caught.value.message
    with opened(tb.image(PIXELS, rows=1), blocks=12) as file:
        assert reference.same(file.read()[0], PIXELS)


@pytest.mark.parametrize("limit,value", [("tags", 10), ("bands", 2), ("block_bytes", 719),
                                         ("working_memory_bytes", 64)])
def test_limits_have_names(limit, value):
    """Just above the limit: refused, with its name. Without limits the same file reads."""
    array = np.stack([PIXELS] * 3)
    data = deflated(array)
    assert reference.same(pixels(data), array)
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data, **{limit: value}) as file:
            file.read()
    assert caught.value.status == LIMIT_EXCEEDED and limit in caught.value.message


@pytest.mark.parametrize("limit,value", [("tags", 11), ("bands", 3), ("block_bytes", 720)])
def test_limits_are_reached_not_passed(limit, value):
    array = np.stack([PIXELS] * 3)
    with opened(deflated(array), **{limit: value}) as file:
        assert file.directory(0).tag_count <= 11
        assert reference.same(file.read(), array)


def test_T218_many_warnings_are_bounded():
    writer = tb.Writer()
    at = writer.add(BYTES.tobytes())
    base = [(256, LONG, [10]), (257, LONG, [12]), (258, SHORT, [8]), (262, SHORT, [1]),
            (273, LONG, [at]), (279, LONG, [120])]
    writer.directory(base + [(700 + i % 7, 99, Raw(1, 0)) for i in range(4000)])
    info = reads(writer.bytes(), BYTES)
    assert len(info.warning) < 1 << 16


def test_T218_text_tags_that_overlap_are_not_multiplied():
    """Many directories whose texts are all the same large piece of the file: the limit is the file's."""
    writer = tb.Writer()
    text = writer.add(b"x" * 100_000 + b"\0")
    for _ in range(200):
        tb.add_image(writer, PIXELS, tags=tags((270, ASCII, Raw(100_001, text)), (254, LONG, [2])))
    reads(writer.bytes())


def test_T220_ink_names_do_not_matter():
    reads(tb.image(PIXELS, tags=tags((333, ASCII, b"a\0b\0"), (334, SHORT, [900]),
                                     (332, SHORT, [7]))))


# ---- memory: files of a kilobyte that ask for gigabytes ----------------------------------------

@functools.cache
def greedy_files():
    tile = lambda side: tags((322, LONG, [side]), (323, LONG, [side]))
    one = np.zeros((1, 1), "u1")
    zeros = b"\0" * (1 << 20)
    run = b"\x28\xb5\x2f\xfd\x00\x78" + b"".join(struct.pack("<I", 131072 << 3 | 2)[:3] + b"\0"
                                                 for _ in range(200))
    lerc = bytes(imagecodecs.lerc_encode(np.zeros((9000, 9000), "u1")))
    webp = bytes(imagecodecs.webp_encode(np.zeros((4992, 4992, 3), "u1"), lossless=True, method=0))
    huge_strip = tags((256, LONG, [30000]), (257, LONG, [30000]), (278, LONG, [30000]))
    files = {f"tile of {codec}": tb.image(one, compression=codec, tile=(16, 16),
                                          blocks=[b"\x78\x9c" + b"ab" * 100], tags=tile(30000))
             for codec in (tb.NONE, tb.LZW, tb.DEFLATE, tb.ZSTD, tb.LZMA, tb.PACKBITS, tb.LERC,
                           tb.JPEG, tb.WEBP, 2, 3, 4)}
    files |= {
        "zstd of runs": tb.image(one, compression=tb.ZSTD, tile=(16, 16), blocks=[run],
                                 tags=tile(5120)),
        "deflate of zeros": tb.image(one, compression=tb.DEFLATE,
                                     blocks=[zlib.compress(zeros * 8)[:900]], tags=huge_strip),
        "g4 of white": tb.image(one, bits=1, format=1, compression=4, blocks=[b"\xff" * 500],
                                tags=tags((256, LONG, [1 << 19]), (257, LONG, [4000]),
                                          (278, LONG, [4000]))),
        "lerc of zeros": tb.image(one, compression=tb.LERC, tile=(16, 16), blocks=[lerc],
                                  tags=tile(9000)),
        "webp of black": tb.image(np.zeros((3, 1, 1), "u1"), photometric=2, compression=tb.WEBP,
                                  tile=(16, 16), blocks=[webp], tags=tile(4992)),
        "counts": tb.image(one, tags=tags((273, LONG, Raw(0xFFFFFFFF, 8)),
                                          (279, LONG, Raw(0xFFFFFFFF, 8)),
                                          (257, LONG, [0x7FFFFFFF]),
                                          (278, LONG, [1]))),
        "many bands": tb.image(one, planar=True, tags=tags((277, SHORT, [65535]))),
        "long tags": tb.image(one, big=True, tags={tag: (kind, Raw(1 << 23, 16)) for tag, kind in (
            (270, ASCII), (320, SHORT), (33550, DOUBLE), (33922, DOUBLE), (34264, DOUBLE),
            (34735, SHORT), (34736, DOUBLE),
            (34737, ASCII), (42112, ASCII), (42113, ASCII), (50844, DOUBLE), (347, 7), (330, LONG),
            (338, SHORT))}),
        "long tags of bytes": tb.image(one, big=True,
                                       tags={tag: (BYTE, Raw(1 << 26, 16)) for tag in (
            270, 320, 33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113, 50844, 330, 338)}),
        "pixel-rich": tb.image(one, compression=tb.DEFLATE, blocks=[zlib.compress(b"\0")],
                               tags=tags((256, LONG, [0x7FFFFFFF]), (257, LONG, [0x7FFFFFFF]))),
    }
    return files


@pytest.mark.parametrize("name", greedy_files())
def test_T217_a_kilobyte_takes_little_memory(name, tmp_path, run):
    from conftest import BIN, TIME_FACTOR
    data = greedy_files()[name]
    assert len(data) <= 2048
    path = tmp_path / "greedy.tif"
    path.write_bytes(data)
    for command in (["checksum", path], ["info", path]):
        done = run(BIN, *command)
        assert done.code in (0, 1), done.stderr
        assert done.seconds < 2 * TIME_FACTOR
        assert done.mib < 64, f"{command[0]}: {done.mib:.0f} MiB"


# ---- allocations that fail are the business of tests/faults; here: nothing leaks when files are bad

def test_T180_T223_open_and_close_often(tmp_path):
    """Handles and memory come back: ten thousand rounds, most of them on broken files."""
    import resource
    good, bad = deflated(PIXELS), deflated(PIXELS)[:-40]
    path = tmp_path / "a.tif"
    path.write_bytes(good)

    def rounds(count):
        for _ in range(count):
            with opened(good) as file:
                file.read(threads=1)
            with cogpu.open(path) as file:
                file.info()
            with pytest.raises(cogpu.CogpuError):
                opened(bad)

    rounds(200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rounds(3000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 << 10


def test_path_that_is_not_there(tmp_path):
    for path in (tmp_path / "none.tif", tmp_path):
        with pytest.raises(cogpu.CogpuError) as caught:
            cogpu.open(path)
        assert caught.value.status in (IO_ERROR, NOT_FOUND) and len(caught.value.message) > 10
