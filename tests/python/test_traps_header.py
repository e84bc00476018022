"""Files that broke other readers, built from bytes: header, directories and tags (docs/traps.md, section A).

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
from cogpu_ctypes import CORRUPT, LIMIT_EXCEEDED, NOT_TIFF, UNSUPPORTED
from tiff_bytes import ASCII, BYTE, DOUBLE, IFD, LONG, LONG8, RATIONAL, SHORT, SLONG8, Raw
from trap_files import BYTES, PIXELS, deflated, opened, pixels, reads, refused, tags


@pytest.mark.parametrize("data", [
    b"", b"I", b"II", b"II*\0", b"II*\0\x08\0\0", b"XX*\0\x08\0\0\0", b"IM*\0\x08\0\0\0",
    b"II\x29\0\x08\0\0\0",
    b"MM*\0\0\0\0\x08", b"\x89PNG\r\n\x1a\n" * 4, b"II+\0\x08\0\0\0\x10\0\0\0", bytes(4096)])
def test_T001_not_a_tiff(data):
    refused(data, NOT_TIFF, said="not a TIFF", at="open")


def test_T001_nothing_but_a_header():
    refused(b"II*\0\x08\0\0\0", CORRUPT, at="open")
    refused(b"II*\0\0\0\0\0", CORRUPT, at="open")


@pytest.mark.parametrize("field,value", [(4, 4), (4, 16), (6, 1)])
def test_T002_bigtiff_header(field, value):
    data = bytearray(tb.image(PIXELS, big=True))
    data[field:field + 2] = struct.pack("<H", value)
    refused(bytes(data), NOT_TIFF, CORRUPT, at="open")


def test_T002_count_times_size_overflows():
    data = tb.image(PIXELS, big=True, tags=tags((273, LONG8, Raw(2 ** 62, 16)),
                                                (33550, DOUBLE, Raw(2 ** 61 + 1, 16))))
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data) as file:
            assert "ModelPixelScale" in file.info().warning
            file.read()
            return
    assert caught.value.status in (CORRUPT, LIMIT_EXCEEDED)


@pytest.mark.parametrize("big", [False, True])
def test_T002_directory_cut_off(big):
    writer = tb.Writer(big=big)
    offset = tb.add_image(writer, PIXELS)
    whole = writer.bytes()
    for keep in (offset, offset + 1, offset + 2, offset + 8, offset + 30, len(whole) - 20):
        error = refused(whole[:keep], CORRUPT, at="open")
        assert error.directory == 0 and error.offset >= 0


def chain_of(count, link=None):
    writer, offsets, links = tb.Writer(), [], []
    for index in range(count):
        links.append(writer.link)
        offsets.append(tb.add_image(writer, PIXELS + index, tags=tags((254, LONG, [2]))))
    if link is not None:
        writer.set_link(writer.link, offsets[link])
    return writer


@pytest.mark.parametrize("count,link", [(1, 0), (2, 0), (2, 1), (5, 2)])
def test_T003_directory_cycle(count, link):
    """The chain ends where it meets itself; the part before is read."""
    info = reads(chain_of(count, link).bytes(), warns=f"directory {count}")
    assert info.images == count


def test_T003_cycle_through_subifds():
    writer = tb.Writer()
    first = tb.add_image(writer, PIXELS, tags=tags((330, LONG, [8])))
    data = bytearray(writer.bytes())
    at = data.index(struct.pack("<HHII", 330, LONG, 1, 8))
    data[at + 8:at + 12] = struct.pack("<I", first)
    with opened(bytes(data)) as file:
        assert file.directory(0).directory_count == 1 and file.info().warning
        assert reference.same(file.read()[0], PIXELS)


def test_T003_exif_that_points_to_its_own_directory():
    writer = tb.Writer()
    tb.add_image(writer, PIXELS, tags=tags((34665, LONG, [8]), (34853, LONG, [8])))
    reads(writer.bytes())


def test_T004_directory_past_the_end():
    data = bytearray(tb.image(PIXELS))
    data[4:8] = struct.pack("<I", len(data) + 100)
    error = refused(bytes(data), CORRUPT, at="open")
    assert error.directory == 0 and error.offset == len(data) + 100


def test_T004_second_directory_past_the_end():
    writer = tb.Writer()
    tb.add_image(writer, PIXELS)
    writer.set_link(writer.link, 1 << 30)
    assert reads(writer.bytes(), warns="directory 1").images == 1


@pytest.mark.parametrize("limit,loaded", [(300, 300), (299, 299)])
def test_T004_limit_of_directories(limit, loaded):
    data = chain_of(300).bytes()
    with opened(data, directories=limit) as file:
        assert file.directory(0).directory_count == loaded
        assert bool(file.info().warning) == (limit < 300)


def test_T005_subifds_nested_deeply():
    writer, below = tb.Writer(), None
    for depth in range(300):
        extra = tags((254, LONG, [1])) if depth < 299 else {}
        if below:
            extra |= tags((330, IFD, [below]))
        below = tb.add_image(writer, PIXELS, tags=extra, chain=depth == 299)
    reads(writer.bytes())


def test_T005_many_subifds_that_are_one():
    """A thousand SubIFDs at one offset: neither a thousand directories nor a thousand warnings."""
    writer = tb.Writer()
    inner = tb.add_image(writer, PIXELS[::2, ::2], tags=tags((254, LONG, [1])), chain=False)
    tb.add_image(writer, PIXELS, tags=tags((330, LONG, [inner] * 1000)))
    info = reads(writer.bytes())
    assert info.levels == 2 and len(info.warning) < 4096


def test_T006_duplicate_tags():
    writer = tb.Writer()
    at = writer.add(BYTES.tobytes())
    entries = [(256, LONG, [10]), (256, LONG, [5]), (257, LONG, [12]), (258, SHORT, [8]),
               (262, SHORT, [1]),
               (273, LONG, [at]), (279, LONG, [120]), (273, LONG, [0])]
    writer.directory(entries)
    reads(writer.bytes(), BYTES, warns="256")


def test_T007_tags_out_of_order():
    writer = tb.Writer()
    at = writer.add(BYTES.tobytes())
    writer.directory([(279, LONG, [120]), (273, LONG, [at]), (262, SHORT, [1]), (257, LONG, [12]),
                      (258, SHORT, [8]),
                      (256, LONG, [10])])
    reads(writer.bytes(), BYTES)


def test_T008_defaults():
    """Width, height and where the data stands: the rest has defaults, of one bit a pixel."""
    bits = (PIXELS & 1).astype("u1")
    data = tb.image(bits, bits=1, format=1, drop=(258, 259, 262, 277, 278, 284, 339))
    assert reference.same(reference.read(data)[0], bits)
    info = reads(data, bits)
    assert (info.bands, info.bits, info.compression, info.block_height) == (1, 1, 1, 12)


@pytest.mark.parametrize("tag", [259, 277, 278, 284, 339])
def test_T008_each_default(tag):
    reads(tb.image(PIXELS, drop=(tag,)))


@pytest.mark.parametrize("tag", [256, 257])
def test_T008_required(tag):
    refused(tb.image(PIXELS, drop=(tag,)), CORRUPT, at="open")


def test_T009_missing_byte_counts():
    assert reference.same(pixels(tb.image(PIXELS, rows=5, drop=(279,)))[0], PIXELS)
    error = refused(deflated(PIXELS, rows=5, drop=(279,)), CORRUPT, said="count", at="read")
    assert (error.directory, error.block) == (0, 0)


def test_T009_missing_offsets():
    with opened(tb.image(PIXELS, drop=(273,))) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read()
    assert caught.value.status == CORRUPT


@pytest.mark.parametrize("tag", [322, 323])
def test_T009_half_a_tile(tag):
    refused(tb.image(PIXELS, tile=(16, 16), drop=(tag,)), CORRUPT, said="tile", at="open")


def test_T010_fewer_offsets_than_blocks():
    """A window of the blocks that are there reads; the missing ones are an error, never other bytes."""
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    tb.add_image(writer, PIXELS, rows=3, tags=tags((273, LONG, [at, at + 60]),
                                                   (279, LONG, [60, 60])))
    with opened(writer.bytes()) as file:
        assert reference.same(file.read(window=(0, 0, 10, 6))[0], PIXELS[:6])
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=(0, 5, 10, 3))
    assert caught.value.status == CORRUPT


def test_T010_fewer_counts_than_offsets():
    counts = tags((279, LONG, [60, 60]))
    assert reference.same(pixels(tb.image(PIXELS, rows=3, tags=counts))[0], PIXELS)
    short = deflated(PIXELS, rows=3)
    with opened(short) as file:
        first = int(file.tag_read(0, 279, 0, 1, "u4")[0])
    error = refused(deflated(PIXELS, rows=3, tags=tags((279, LONG, [first]))), CORRUPT, at="read")
    assert error.block == 1


def test_T011_one_strip_without_count():
    reads(deflated(PIXELS, drop=(279,)))
    reads(tb.image(PIXELS, drop=(279,)))


def test_T012_rational_without_denominator():
    data = tb.image(PIXELS, tags=tags((282, RATIONAL, [5, 0]), (283, RATIONAL, Raw(1 << 30, 8))))
    with opened(data) as file:
        assert file.tag_read(0, 282, 0, 1, "u4,u4")[0].tolist() == (5, 0)
        with pytest.raises(cogpu.CogpuError) as caught:
            file.tag_read(0, 283, 0, 1 << 20, "u4,u4")
        assert caught.value.status in (CORRUPT, LIMIT_EXCEEDED)
        assert reference.same(file.read()[0], PIXELS)


@pytest.mark.parametrize("text,expected", [(b"abc", "abc"), (b"abc\0", "abc"), (b"ab\0cd\0", "ab"),
                                           (b"abcdefgh", "abcdefgh"),
                                           (b"", ""), (b"\0", "")])
def test_T013_text_without_end(text, expected):
    info = reads(tb.image(PIXELS, tags=tags((270, ASCII, text))))
    assert (info.description or "") == expected


def test_T013_text_past_the_end_of_the_file():
    info = reads(tb.image(PIXELS, tags=tags((270, ASCII, Raw(1 << 20, 8)),
                                            (42113, ASCII, Raw(99, 1 << 30)))),
                 warns="ImageDescription")
    assert info.description is None and info.nodata.text is None


@pytest.mark.parametrize("tag", [256, 257, 258, 259, 262, 273, 277, 278, 279, 284])
def test_T014_tag_without_values(tag):
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(tb.image(PIXELS, rows=5, tags={tag: (SHORT, Raw(0, 0))})) as file:
            file.read()
            raise cogpu.CogpuError(CORRUPT, cogpu.Error(message=b"read as if the tag were absent"))
    assert caught.value.status == CORRUPT


@pytest.mark.parametrize("tag", [317, 320, 338, 339, 266, 274, 33550, 33922, 34264, 34735, 34736,
                                 34737, 42112, 42113, 50844])
def test_T014_optional_tag_without_values(tag):
    try:
        assert reference.same(pixels(deflated(PIXELS, tags={tag: (SHORT, Raw(0, 0))}))[0], PIXELS)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT and error.directory == 0


def test_T015_tags_of_another_codec():
    foreign = tags((317, SHORT, [2]), (347, 7, b"\xff\xd8\xff\xd9"), (292, LONG, [7]),
                   (50674, LONG, [9, 9]), (530, SHORT, [2, 2]))
    data = tb.image(PIXELS, tags=foreign)
    assert reference.same(reference.read(data)[0], PIXELS)
    reads(data)


def test_T015_directories_with_different_codecs():
    writer = tb.Writer()
    for index, codec in enumerate((tb.LZW, tb.DEFLATE, tb.NONE, tb.ZSTD)):
        encode = {tb.LZW: tb.lzw_encode, tb.DEFLATE: zlib.compress,
                  tb.ZSTD: imagecodecs.zstd_encode}.get(codec, bytes)
        tb.add_image(writer, PIXELS + index, compression=codec, encode=encode,
                     predictor=2 if codec != 1 else 1)
    with opened(writer.bytes()) as file:
        assert file.info().images == 4
        for index in (3, 0, 2, 1):
            assert reference.same(file.read(image=index)[0], PIXELS + np.uint16(index))


def test_T016_wrong_types():
    """Any integer type will do for an integer; a fraction, a text or a negative number will not."""
    reads(tb.image(PIXELS, big=True, tags=tags((256, BYTE, [10]), (257, LONG8, [12]),
                                               (277, LONG, [1]))))
    with opened(tb.image(PIXELS, big=True)) as file:
        at = int(file.tag_read(0, 273, 0, 1, "u8")[0])
    reads(tb.image(PIXELS, big=True, tags=tags((273, SLONG8, [at]))))
    for kind, values in ((DOUBLE, [10.5]), (ASCII, b"10\0"), (tb.SSHORT, [-10]), (SLONG8, [-1])):
        refused(tb.image(PIXELS, big=True, tags={256: (kind, values)}), CORRUPT, at="open")
    refused(tb.image(PIXELS, big=True, tags=tags((273, SLONG8, [-5]))), CORRUPT)


def test_T016_unknown_type_is_left_out():
    reads(tb.image(PIXELS, tags={700: (99, Raw(5, 8)), 701: (0, Raw(1, 0))}), warns="700")


def test_T017_wrong_number_of_extra_samples():
    array = np.stack([BYTES + i for i in range(6)]).astype("u1")
    for extra in ([0], [0, 0, 0, 0, 0, 0, 0, 0], [2], [0, 0, 2]):
        reads(tb.image(array, photometric=2, tags=tags((338, SHORT, extra))), array)


def test_T018_second_parsers_stay_out():
    junk = {tag: (7, b"\xff" * 64) for tag in (700, 34675, 34377, 33723)}
    reads(tb.image(PIXELS, tags=junk | tags((34665, LONG, [7]), (34853, LONG, [1 << 31]))))


@pytest.mark.parametrize("codec", [0, 9, 99, 32908, 50004, 65535])
def test_T019_unknown_codec(codec):
    error = refused(tb.image(PIXELS, compression=codec), UNSUPPORTED, said=str(codec), at="read")
    assert error.directory == 0


@pytest.mark.parametrize("codec,name", [(6, "jpeg"), (34712, "jpeg"), (32809, "thunder"),
                                        (34661, "jbig"), (50002, "jxl")])
def test_T019_codec_that_is_known_by_name(codec, name):
    row = cogpu.codecs()[codec]
    if row.can_decode:
        pytest.skip("this build reads it")
    error = refused(tb.image(PIXELS, compression=codec), UNSUPPORTED, at="read")
    assert str(codec) in error.message or row.name in error.message


@pytest.mark.parametrize("width,height", [(0, 12), (10, 0), (0, 0), (1 << 31, 1), (1, 1 << 31),
                                          (0xFFFFFFFF, 0xFFFFFFFF),
                                          (1 << 32, 1), ((1 << 32) + 10, 12), (1 << 63, 1)])
def test_T020_impossible_sizes(width, height):
    refused(tb.image(PIXELS, big=True, tags=tags((256, LONG8, [width]), (257, LONG8, [height]))),
            CORRUPT, LIMIT_EXCEEDED, at="open")
