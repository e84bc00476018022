"""Files that went wrong elsewhere, built from bytes: for each the verdict, its text and, where pixels
come back, their values. The numbers are those of the project's list of traps.

Where GDAL's answer is the measure, GDAL is asked in the test itself.
"""

import functools
import struct
import threading
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import judge
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import ABSENT, ARGUMENT, CORRUPT, FORMAT, IO, LIMIT, OK, UNSUPPORTED
from tiff_bytes import ASCII, BYTE, DOUBLE, IFD, LONG, LONG8, RATIONAL, SHORT, SLONG8, Raw

PIXELS = (np.arange(12 * 10, dtype="u2") * 37 % 251).reshape(12, 10)
BYTES = PIXELS.astype("u1")


def opened(data, **limits):
    return cogpu.open_memory(data, cogpu.OpenOptions(limits=cogpu.Limits(**limits)) if limits
                             else None)


def pixels(data, **request):
    with opened(data) as file:
        return file.read(**request)


def refused(data, *statuses, said="", at=None, **request):
    """The error of opening or reading; `at` tells which of the two has to fail."""
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data) as file:
            assert at != "open", "the file opened"
            file.read(**request)
    error = caught.value
    assert error.status in statuses, str(error)
    assert said.lower() in error.message.lower(), error.message
    assert len(error.message) > 15
    return error


def reads(data, expected=PIXELS, warns=""):
    """The file reads, with pixels as expected, and its warning holds some words."""
    with opened(data) as file:
        expected = expected[None] if expected.ndim == 2 else expected
        assert judge.same(file.read(), expected)
        info = file.info()
        assert warns.lower() in info.warning.lower()
        return info


def tags(*pairs):
    return {tag: (kind, values) for tag, kind, values in pairs}


def deflated(array, level=6, **how):
    return tb.image(array, compression=tb.DEFLATE, encode=lambda data: zlib.compress(data, level),
                    **how)


# ---- A. header, directories, tags --------------------------------------------------------------

@pytest.mark.parametrize("data", [
    b"", b"I", b"II", b"II*\0", b"II*\0\x08\0\0", b"XX*\0\x08\0\0\0", b"IM*\0\x08\0\0\0",
    b"II\x29\0\x08\0\0\0",
    b"MM*\0\0\0\0\x08", b"\x89PNG\r\n\x1a\n" * 4, b"II+\0\x08\0\0\0\x10\0\0\0", bytes(4096)])
def test_T001_not_a_tiff(data):
    refused(data, FORMAT, said="not a TIFF", at="open")


def test_T001_nothing_but_a_header():
    refused(b"II*\0\x08\0\0\0", CORRUPT, at="open")
    refused(b"II*\0\0\0\0\0", CORRUPT, at="open")


@pytest.mark.parametrize("field,value", [(4, 4), (4, 16), (6, 1)])
def test_T002_bigtiff_header(field, value):
    data = bytearray(tb.image(PIXELS, big=True))
    data[field:field + 2] = struct.pack("<H", value)
    refused(bytes(data), FORMAT, CORRUPT, at="open")


def test_T002_count_times_size_overflows():
    data = tb.image(PIXELS, big=True, tags=tags((273, LONG8, Raw(2 ** 62, 16)),
                                                (33550, DOUBLE, Raw(2 ** 61 + 1, 16))))
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data) as file:
            assert "ModelPixelScale" in file.info().warning
            file.read()
            return
    assert caught.value.status in (CORRUPT, LIMIT)


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
    """The chain ends where it meets itself; what stands before is read."""
    info = reads(chain_of(count, link).bytes(), warns=f"directory {count}")
    assert info.images == count


def test_T003_cycle_through_subifds():
    writer = tb.Writer()
    first = tb.add_image(writer, PIXELS, tags=tags((330, LONG, [8])))
    data = bytearray(writer.bytes())
    at = data.index(struct.pack("<HHII", 330, LONG, 1, 8))
    data[at + 8:at + 12] = struct.pack("<I", first)
    with opened(bytes(data)) as file:
        assert file.directory(0).directories == 1 and file.info().warning
        assert judge.same(file.read()[0], PIXELS)


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
        assert file.directory(0).directories == loaded
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
    assert judge.same(judge.read(data)[0], bits)
    info = reads(data, bits)
    assert (info.bands, info.bits, info.compression, info.block_height) == (1, 1, 1, 12)


@pytest.mark.parametrize("tag", [259, 277, 278, 284, 339])
def test_T008_each_default(tag):
    reads(tb.image(PIXELS, drop=(tag,)))


@pytest.mark.parametrize("tag", [256, 257])
def test_T008_required(tag):
    refused(tb.image(PIXELS, drop=(tag,)), CORRUPT, at="open")


def test_T009_missing_byte_counts():
    assert judge.same(pixels(tb.image(PIXELS, rows=5, drop=(279,)))[0], PIXELS)
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
        assert judge.same(file.read(window=(0, 0, 10, 6))[0], PIXELS[:6])
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=(0, 5, 10, 3))
    assert caught.value.status == CORRUPT


def test_T010_fewer_counts_than_offsets():
    counts = tags((279, LONG, [60, 60]))
    assert judge.same(pixels(tb.image(PIXELS, rows=3, tags=counts))[0], PIXELS)
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
        assert caught.value.status in (CORRUPT, LIMIT)
        assert judge.same(file.read()[0], PIXELS)


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
        assert judge.same(pixels(deflated(PIXELS, tags={tag: (SHORT, Raw(0, 0))}))[0], PIXELS)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT and error.directory == 0


def test_T015_tags_of_another_codec():
    foreign = tags((317, SHORT, [2]), (347, 7, b"\xff\xd8\xff\xd9"), (292, LONG, [7]),
                   (50674, LONG, [9, 9]), (530, SHORT, [2, 2]))
    data = tb.image(PIXELS, tags=foreign)
    assert judge.same(judge.read(data)[0], PIXELS)
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
            assert judge.same(file.read(image=index)[0], PIXELS + np.uint16(index))


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
    if row.available:
        pytest.skip("this build reads it")
    error = refused(tb.image(PIXELS, compression=codec), UNSUPPORTED, at="read")
    assert str(codec) in error.message or row.name in error.message


@pytest.mark.parametrize("width,height", [(0, 12), (10, 0), (0, 0), (1 << 31, 1), (1, 1 << 31),
                                          (0xFFFFFFFF, 0xFFFFFFFF),
                                          (1 << 32, 1), ((1 << 32) + 10, 12), (1 << 63, 1)])
def test_T020_impossible_sizes(width, height):
    refused(tb.image(PIXELS, big=True, tags=tags((256, LONG8, [width]), (257, LONG8, [height]))),
            CORRUPT, LIMIT, at="open")


# ---- B. samples, bits, byte order --------------------------------------------------------------

def test_T021_mixed_bits():
    array = np.stack([PIXELS] * 4)
    data = tb.image(array, tags=tags((258, SHORT, [16, 16, 16, 8])))
    refused(data, UNSUPPORTED, said="BitsPerSample", at="open")


def test_T022_mixed_formats():
    array = np.stack([PIXELS] * 3)
    refused(tb.image(array, tags=tags((339, SHORT, [1, 2, 1]))), UNSUPPORTED, said="SampleFormat",
            at="open")


def test_T022_empty_sample_format_is_unsigned():
    reads(tb.image(PIXELS, tags={339: (SHORT, Raw(0, 0))}))


@pytest.mark.parametrize("bits,format", [(0, 1), (33, 1), (48, 1), (63, 2), (65, 1), (128, 1),
                                         (65535, 1), (8, 3), (31, 3),
                                         (80, 3), (16, 5), (32, 6), (128, 5), (8, 7), (8, 0),
                                         (8, 99)])
def test_T024_impossible_depths(bits, format):
    refused(tb.image(BYTES, tags=tags((258, SHORT, [bits]), (339, SHORT, [format]))), UNSUPPORTED,
            CORRUPT, at="open")


@pytest.mark.parametrize("bits", [3, 5, 7, 11, 12, 15, 17, 20, 31])
def test_T024_signed_odd_depths_are_sign_extended(bits):
    dtype = "i1" if bits < 8 else "i2" if bits < 16 else "i4"
    values = np.random.default_rng(bits).integers(-(1 << bits - 1), 1 << bits - 1,
                                                  (7, 9)).astype(dtype)
    stored = values.astype("i8") & (1 << bits) - 1
    data = tb.image(stored.astype("u4"), bits=bits, format=2)
    assert judge.same(pixels(data)[0], values)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("predictor", [1, 2, 3])
def test_T025_float16(order, predictor):
    array = judge.noise(np.random.default_rng(1), (1, 9, 13), "f2")
    data = deflated(array, order=order, predictor=predictor)
    assert judge.same(judge.read(data), array)
    assert judge.same(pixels(data), array)


@pytest.mark.parametrize("dtype", ["u2", "i4", "f8", "u8"])
def test_T028_big_endian(dtype):
    array = judge.noise(np.random.default_rng(2), (2, 9, 13), dtype)
    data = tb.image(array, order=">")
    assert judge.same(pixels(data), array)


def test_T032_min_is_white_is_not_inverted():
    info = reads(tb.image(BYTES, photometric=0), BYTES)
    assert info.photometric == 0


def test_T033_four_bands_are_not_rgba_by_themselves():
    array = np.stack([BYTES] * 4)
    with opened(tb.image(array, photometric=1)) as file:
        assert [file.band(i).interpretation for i in range(1, 5)] == ["gray", "undefined",
                                                                      "undefined", "undefined"]
        assert file.info().alpha_band == 0 and file.info().validity == cogpu.ALL_VALID


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("bands", [[1], [4], [3, 2, 1], [4, 4, 1], [2, 1, 2, 3, 4, 1, 1]])
def test_T034_band_subset_and_order(planar, bands):
    array = np.stack([PIXELS + np.uint16(1000 * i) for i in range(4)])
    data = tb.image(array, planar=planar, tile=(16, 16))
    assert judge.same(pixels(data, bands=bands), array[[b - 1 for b in bands]])


@pytest.mark.parametrize("bands", [[0], [5], [1, 99], [2 ** 32 - 1]])
def test_T192_bands_that_are_not_there(bands):
    with opened(tb.image(np.stack([PIXELS] * 4))) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(bands=bands, out=np.zeros((len(bands), 12, 10), "u2"))
    assert caught.value.status == ARGUMENT


# ---- C. predictors -----------------------------------------------------------------------------

def test_T042_predictor_3_with_integers():
    refused(deflated(PIXELS, predictor=3), CORRUPT, UNSUPPORTED, said="predictor")


def test_T044_predictor_with_packed_bits():
    data = tb.image(PIXELS & 15, bits=12, format=1, compression=tb.DEFLATE, encode=zlib.compress,
                    tags=tags((317, SHORT, [2])))
    refused(data, CORRUPT, UNSUPPORTED, said="predictor")


@pytest.mark.parametrize("predictor", [0, 4, 34892, 65535])
def test_T044_unknown_predictor(predictor):
    refused(deflated(PIXELS, tags=tags((317, SHORT, [predictor]))), CORRUPT, UNSUPPORTED,
            said="predictor")


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 17), (1, 17, 1), (3, 1, 1), (3, 7, 1),
                                   (2, 5, 31)])
@pytest.mark.parametrize("dtype,predictor", [("f4", 3), ("f8", 3), ("f2", 3), ("u2", 2), ("u8", 2)])
def test_T045_small_shapes(shape, dtype, predictor):
    array = judge.noise(np.random.default_rng(3), shape, dtype)
    for layout in ({"rows": 1}, {"tile": (16, 16)}, {"rows": 99}):
        data = deflated(array, predictor=predictor, **layout)
        assert judge.same(pixels(data), array)


# ---- D. blocks ---------------------------------------------------------------------------------

@pytest.mark.parametrize("width,height", [(100, 150), (257, 383), (512, 257)])
@pytest.mark.parametrize("planar", [False, True])
def test_T046_edge_tiles(width, height, planar):
    array = judge.noise(np.random.default_rng(4), (2, height, width), "u2")
    data = deflated(array, level=1, tile=(64, 48), planar=planar)
    assert judge.same(pixels(data), array)
    with opened(data) as file:
        window = (width - 1, height - 5, 1, 5)
        assert judge.same(file.read(window=window), array[:, -5:, -1:])
        assert file.last_result.blocks == (2 if planar else 1)


def sparse(planar=False, nodata=None, **how):
    """Of four tiles, or eight, every second is missing."""
    array = np.stack([np.arange(1, 32 * 32 + 1, dtype="u2").reshape(32, 32)] * 2)
    blocks = [zlib.compress(tb.block_bytes(b)) if i % 2 else None for i,
              b in enumerate(tb.cut(array, (16, 16), None, planar))]
    extra = tags((42113, ASCII, f"{nodata}\0")) if nodata is not None else {}
    expected = array.copy()
    expected[:, :, :16] = nodata or 0
    return tb.image(array, tile=(16, 16), planar=planar, compression=tb.DEFLATE, blocks=blocks,
                    tags=extra, **how), expected


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("nodata", [None, 77])
def test_T047_sparse(planar, nodata):
    data, expected = sparse(planar, nodata)
    assert judge.same(judge.read(data), expected)
    with opened(data) as file:
        assert judge.same(file.read(), expected)
        result = file.last_result
        assert (result.blocks, result.sparse_blocks,
                result.bad_blocks) == ((8, 4, 0) if planar else (4, 2, 0))


def test_T047_all_sparse():
    data = tb.image(PIXELS, rows=3, blocks=[None] * 4, tags=tags((42113, ASCII, b"513\0")))
    assert judge.same(pixels(data)[0], np.full_like(PIXELS, 513))


def test_T048_offset_without_count_is_sparse():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    tb.add_image(writer, PIXELS, rows=6, blocks=[(at, 120), (at + 120, 0)])
    expected = PIXELS.copy()
    expected[6:] = 0
    assert judge.same(judge.read(writer.bytes())[0], expected)
    assert judge.same(pixels(writer.bytes())[0], expected)


def ghost_text(*lines):
    text = "".join(line + "\n" for line in lines).encode()
    return b"GDAL_STRUCTURAL_METADATA_SIZE=%06d bytes\n" % len(text) + text


GHOST = ["LAYOUT=IFDS_BEFORE_DATA", "BLOCK_ORDER=ROW_MAJOR", "BLOCK_LEADER=SIZE_AS_UINT4",
         "BLOCK_TRAILER=LAST_4_BYTES_REPEATED", "KNOWN_INCOMPATIBLE_EDITION=NO"]


def with_leaders(order="<", lines=GHOST, leader=lambda i, n: n, trailer=lambda i, t: t, counts=None,
                 big=False):
    """Four deflated tiles, each between a leader and a trailer; both may lie."""
    array = np.arange(1, 32 * 32 + 1, dtype="u2").reshape(32, 32)
    writer = tb.Writer(order, big, ghost_text(*lines))
    places = []
    for index, block in enumerate(tb.cut(array[None], (16, 16))):
        raw = zlib.compress(tb.block_bytes(block, order))
        at = writer.add(struct.pack("<I", leader(index, len(raw))) + raw + trailer(index,
                                                                                   raw[-4:])) + 4
        places.append((at, len(raw) if counts is None else counts(index, len(raw))))
    tb.add_image(writer, array, tile=(16, 16), compression=tb.DEFLATE, blocks=places)
    return writer.bytes(), array


@pytest.mark.parametrize("order", "<>")
def test_T048_offset_without_count_behind_a_sound_leader(order):
    """The leader is little-endian in files of either order."""
    data, array = with_leaders(order, counts=lambda i, n: 0)
    assert judge.same(pixels(data)[0], array)


@pytest.mark.parametrize("lines", [GHOST[:2], GHOST[:4] + ["KNOWN_INCOMPATIBLE_EDITION=YES"]])
def test_T048_offset_without_count_and_no_promise(lines):
    data, array = with_leaders(lines=lines, counts=lambda i, n: 0)
    assert judge.same(pixels(data)[0], np.zeros_like(array))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("leader,trailer", [
    (lambda i, n: n + 4, None), (lambda i, n: 0, None), (lambda i, n: 0xFFFFFFFF, None),
    (None, lambda i, t: b"XXXX"),
    (lambda i, n: n - 1, lambda i, t: b"")])
def test_T074_wrong_leaders_and_trailers(order, leader, trailer):
    """The byte counts of the directory decide."""
    data, array = with_leaders(order, leader=leader or (lambda i, n: n),
                               trailer=trailer or (lambda i, t: t))
    assert judge.same(pixels(data)[0], array)


def test_T049_fewer_tiles_than_the_grid():
    array = np.zeros((64, 64), "u1")
    data = tb.image(array, tile=(16, 16), tags=tags((324, LONG, [8, 8]), (325, LONG, [256, 256])))
    refused(data, CORRUPT)


def test_T050_more_offsets_than_blocks():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    tb.add_image(writer, PIXELS, tags=tags((273, LONG, [at, 9, 9, 9]), (279, LONG, [240, 9, 9, 9])))
    reads(writer.bytes())


def test_T051_planar_tiles_by_band():
    array = np.stack([np.full((40, 50), value, "u1") for value in (3, 5, 7)])
    array[:, 20, 30] = (30, 50, 70)
    data = tb.image(array, planar=True, tile=(16, 32))
    with opened(data) as file:
        assert judge.same(file.read(), array)
        assert judge.same(file.read(bands=[2], window=(30, 20, 1, 1)), array[1:2, 20:21, 30:31])
        assert file.last_result.blocks == 1


@pytest.mark.parametrize("codec,encode", [(tb.DEFLATE, zlib.compress),
                                          (tb.ZSTD, imagecodecs.zstd_encode),
                                          (tb.LZMA, imagecodecs.lzma_encode),
                                          (tb.LZW, tb.lzw_encode),
                                          (tb.PACKBITS, tb.packbits_encode), (tb.NONE, bytes)])
def test_T052_block_too_short(codec, encode):
    """The second of two blocks holds a byte too few: an error that names it, no zeros."""
    halves = [encode(PIXELS[:6].tobytes()), encode(PIXELS[6:].tobytes()[:-1])]
    data = tb.image(PIXELS, rows=6, compression=codec, blocks=halves)
    error = refused(data, CORRUPT, at="read")
    assert (error.directory, error.block) == (0, 1) and error.offset > 0
    assert judge.same(pixels(data, window=(0, 0, 10, 6))[0], PIXELS[:6])


@pytest.mark.parametrize("codec,encode", [
    (tb.DEFLATE, zlib.compress), (tb.ZSTD, imagecodecs.zstd_encode), (tb.LZMA, imagecodecs.lzma_encode),
    (tb.LZW, tb.lzw_encode), (tb.PACKBITS, tb.packbits_encode), (tb.NONE, bytes)])
def test_T052_block_too_long(codec, encode):
    halves = [encode(PIXELS[:6].tobytes()), encode(PIXELS[6:].tobytes() + b"more")]
    reads(tb.image(PIXELS, rows=6, compression=codec, blocks=halves))


def test_T053_bad_block_is_filled_when_asked():
    array = np.arange(1, 65, dtype="u1").reshape(8, 8)
    good = zlib.compress(array[:4].tobytes())
    data = tb.image(array, rows=4, compression=tb.DEFLATE, blocks=[good, good[:-6]],
                    tags=tags((42113, ASCII, b"200\0")))
    assert refused(data, CORRUPT).block == 1
    with opened(data) as file:
        expected = array.copy()
        expected[4:] = 200
        assert judge.same(file.read(fill_bad_blocks=True)[0], expected)
        result = file.last_result
        assert (result.blocks, result.bad_blocks) == (2, 1)
        assert (result.first_bad.status, result.first_bad.block,
                result.first_bad.directory) == (CORRUPT, 1, 0)
        assert result.first_bad.message
        file.read(fill_bad_blocks=True, window=(0, 0, 8, 4))
        assert file.last_result.bad_blocks == 0


def test_T053_what_is_unsupported_is_not_filled():
    """Filling is for damage in blocks, not for files that cannot be read at all."""
    with opened(tb.image(PIXELS, compression=99)) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(fill_bad_blocks=True)
        assert caught.value.status == UNSUPPORTED


@pytest.mark.parametrize("rows", [1, 5, 7, 11, 12, 13, 1000, 0xFFFFFFFF])
def test_T055_last_strip(rows):
    data = deflated(PIXELS, rows=min(rows, 1000), tags=tags((278, LONG, [rows])))
    reads(data)


@pytest.mark.parametrize("tile", [(16, 16), (64, 64), (1, 1), (10, 1), (3, 5), (128, 1), (1, 64),
                                  (1000, 2)])
def test_T056_tiles_of_any_size(tile):
    data = deflated(PIXELS, tile=tile)
    reads(data)
    for window in ((9, 11, 1, 1), (2, 4, 5, 3)):
        x, y, w, h = window
        assert judge.same(pixels(data, window=window)[0], PIXELS[y:y + h, x:x + w])


@pytest.mark.parametrize("width,height", [(8, 12), (10, 6), (20, 12), (10, 24), (9, 12), (10, 11)])
def test_T057_jpeg_of_another_size_than_its_block(width, height):
    raw = imagecodecs.jpeg_encode(np.full((height, width), 99, "u1"))
    data = tb.image(BYTES, compression=tb.JPEG, blocks=[raw])
    try:
        found = pixels(data)[0]
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT and error.block == 0
        return
    assert width >= 10 and height >= 12, "a smaller picture cannot fill the block"
    assert np.all(found == 99)


@pytest.mark.parametrize("ratio", [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (1, 2)])
@pytest.mark.parametrize("codec,encode", [(tb.NONE, bytes), (tb.LZW, tb.lzw_encode)])
def test_T058_subsampled_ycbcr_without_jpeg(ratio, codec, encode):
    """As GDAL returns it, or a typed refusal."""
    across, down = ratio
    width, height = 21, 13
    units = -(-width // across) * -(-height // down)
    raw = np.random.default_rng(5).integers(0, 256, units * (across * down + 2),
                                            dtype="u1").tobytes()
    data = tb.image(np.zeros((3, height, width), "u1"), photometric=6, compression=codec,
                    blocks=[encode(raw)],
                    tags=tags((530, SHORT, ratio)))
    try:
        found = pixels(data)
    except cogpu.CogpuError as error:
        assert error.status == UNSUPPORTED, str(error)
        return
    assert judge.same(found, judge.read(data))


@pytest.mark.parametrize("ratio", [[0, 0], [0, 1], [1, 0], [3, 1], [65535, 65535]])
def test_T058_T215_impossible_subsampling(ratio):
    data = tb.image(np.zeros((3, 13, 21), "u1"), photometric=6, tags=tags((530, SHORT, ratio)))
    refused(data, CORRUPT, UNSUPPORTED)


def test_T058_subsampling_of_one_number():
    """It is left out, and the default holds: 2, 2."""
    data = tb.image((np.arange(360) % 251).astype("u1").reshape(3, 12, 10),
                    photometric=6, tags=tags((530, SHORT, [2])))
    assert judge.same(pixels(data), judge.read(data))


@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8])
def test_T059_orientation_is_reported_alone(orientation):
    info = reads(tb.image(PIXELS, tags=tags((274, SHORT, [orientation]))))
    assert info.orientation == orientation


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_T059_orientation_that_is_none(orientation):
    assert reads(tb.image(PIXELS, tags=tags((274, SHORT, [orientation])))).orientation == 1


def test_T061_blocks_that_share_bytes():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    places = [(at, 60), (at, 60), (at + 20, 60), (at + 10, 60)]
    tb.add_image(writer, PIXELS, rows=3, blocks=places)
    flat = PIXELS.ravel()
    expected = np.concatenate([flat[start:start + 30] for start in (0, 0, 10, 5)]).reshape(12, 10)
    reads(writer.bytes(), expected)


# ---- E. overviews, masks, COG ------------------------------------------------------------------

def pyramid(*levels, masks=()):
    """Level 0, reduced levels, masks by size; each (array, subfile type)."""
    writer = tb.Writer()
    for array, kind in (*levels, *masks):
        mask = kind & 4
        tb.add_image(writer, array, tags=tags((254, LONG, [kind])), photometric=4 if mask else 1,
                     **({"bits": 1, "format": 1} if mask else {}))
    return writer.bytes()


def test_T063_mask_between_image_and_overviews():
    mask = (PIXELS % 2).astype("u1")
    data = pyramid((PIXELS, 0), (mask, 4), (PIXELS[::2, ::2], 1), (mask[::2, ::2], 5))
    with opened(data) as file:
        assert file.info().levels == 2 and file.info().validity == cogpu.BY_MASK
        assert judge.same(file.read(level=1)[0], PIXELS[::2, ::2])
        assert judge.same(file.mask(), mask * np.uint8(255))
        assert judge.same(file.mask(level=1), mask[::2, ::2] * np.uint8(255))


def test_T064_T066_overview_inherits_transform_by_ratio():
    geo = tags((33550, DOUBLE, [10, 20, 0]), (33922, DOUBLE, [0, 0, 0, 1000, 2000, 0]))
    writer = tb.Writer()
    tb.add_image(writer, PIXELS[:, :9], tags=geo)
    tb.add_image(writer, PIXELS[:6, :5], tags=tags((254, LONG, [1])))
    with opened(writer.bytes()) as file:
        assert file.level(0).transform == [1000, 10, 0, 2000, 0, -20]
        assert file.level(1).transform == pytest.approx([1000, 18, 0, 2000, 0, -40])


def test_T065_pixel_is_point_overview_keeps_the_corner():
    geo = tags((33550, DOUBLE, [10, 20, 0]), (33922, DOUBLE, [0, 0, 0, 1000, 2000, 0]),
               (34735, SHORT, [1, 1, 0, 1, 1025, 0, 1, 2]))
    writer = tb.Writer()
    tb.add_image(writer, PIXELS, tags=geo)
    tb.add_image(writer, PIXELS[:6, :5], tags=tags((254, LONG, [1])))
    with opened(writer.bytes()) as file:
        assert file.info().pixel_is_point
        assert file.level(0).transform == [995, 10, 0, 2010, 0, -20]
        assert file.level(1).transform == pytest.approx([995, 20, 0, 2010, 0, -40])


@pytest.mark.parametrize("lines,present", [
    ([" " + line for line in GHOST], True), (["STRANGE=1"] + GHOST + ["MORE=2"], True), ([], False),
    (GHOST[:4] + ["KNOWN_INCOMPATIBLE_EDITION=YES"], True)])
def test_T072_ghost_area(lines, present):
    data, array = with_leaders(lines=lines)
    with opened(data) as file:
        assert judge.same(file.read()[0], array)
        assert bool(file.info().ghost & 1) == present
        assert bool(file.info().ghost & 64) == any("=YES" in line for line in lines)


@pytest.mark.parametrize("digits", [b"000000", b"999999", b"00001x", b"-00001", b"000003"])
def test_T072_ghost_of_wrong_size(digits):
    data, array = with_leaders()
    at = data.index(b"SIZE=") + 5
    data = data[:at] + digits + data[at + 6:]
    assert judge.same(pixels(data)[0], array)


def test_T073_directory_at_an_odd_byte():
    writer = tb.Writer(ghost=b"x")
    at = writer.add(BYTES.tobytes(), align=1)
    offset = writer.directory([(256, LONG, [10]), (257, LONG, [12]), (258, SHORT, [8]),
                               (262, SHORT, [1]),
                               (273, LONG, [at]), (279, LONG, [120])], align=1)
    assert offset % 2 == 1
    reads(writer.bytes(), BYTES)


def test_T076_masks_and_overviews_that_miss_each_other():
    mask = (PIXELS % 2).astype("u1")
    with opened(pyramid((PIXELS, 0), (PIXELS[::2, ::2], 1), (mask, 4))) as file:
        assert [bool(level.has_mask) for level in file.levels()] == [True, False]
        assert judge.same(file.mask(), mask * np.uint8(255))
        assert judge.same(file.read(level=1)[0], PIXELS[::2, ::2])
    with opened(pyramid((PIXELS, 0), (PIXELS[::4, ::4], 1), (PIXELS[::2, ::2], 1),
                        (mask[::2, ::2], 5))) as file:
        assert [level.width for level in file.levels()] == [10, 5, 3]


def test_T076_further_images_are_no_levels():
    writer = tb.Writer()
    for index, kind in enumerate((0, 1, 0, 1, 2)):
        array = PIXELS + np.uint16(index)
        tb.add_image(writer, array[::2, ::2] if kind == 1 else array,
                     tags=tags((254, LONG, [kind])))
    with opened(writer.bytes()) as file:
        assert file.info().images == 3
        assert [file.info(i).directory for i in range(3)] == [0, 2, 4]
        assert judge.same(file.read(image=2)[0], PIXELS + np.uint16(4))
        with pytest.raises(cogpu.CogpuError) as caught:
            file.info(3)
        assert caught.value.status in (ABSENT, ARGUMENT)


def test_T081_too_many_levels():
    writer = tb.Writer()
    tb.add_image(writer, np.zeros((64, 64), "u1"))
    for size in range(60, 0, -1):
        tb.add_image(writer, np.full((size, size), size, "u1"), tags=tags((254, LONG, [1])))
    with opened(writer.bytes()) as file:
        assert 2 <= file.info().levels <= 32
        last = file.info().levels - 1
        assert np.all(file.read(level=last) == file.level(last).width)


def test_T081_level_larger_than_its_image():
    data = pyramid((PIXELS[:5, :5], 0), (PIXELS, 1), (PIXELS[:2, :2], 1))
    with opened(data) as file:
        assert all(level.width <= 5 for level in file.levels())
        assert judge.same(file.read()[0], PIXELS[:5, :5])


def test_T192_levels_that_are_not_there():
    with opened(tb.image(PIXELS)) as file:
        for ask in (lambda: file.level(1),
                    lambda: file.read(level=1, out=np.zeros((1, 12, 10), "u2"))):
            with pytest.raises(cogpu.CogpuError) as caught:
                ask()
            assert caught.value.status in (ABSENT, ARGUMENT)


# ---- F. codecs ---------------------------------------------------------------------------------

def stream(codec, raw, array=BYTES, **how):
    return tb.image(array, compression=codec, blocks=[raw], **how)


RAW = BYTES.tobytes()


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


def stored(data, final=1):
    return bytes([final]) + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data


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
def test_T085_T086_unsound_deflate(name, raw):
    data = stream(tb.DEFLATE, zlib_of(raw))
    with pytest.raises(zlib.error):
        zlib.decompress(zlib_of(raw))
    refused(data, CORRUPT)


def test_T087_unusual_but_sound_deflate():
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
def test_T091_unsound_zstd(raw):
    refused(stream(tb.ZSTD, raw) if raw else tb.image(BYTES, compression=tb.ZSTD, blocks=[(8, 1)]),
            CORRUPT, UNSUPPORTED)


def lzw(codes, expected, **how):
    """A stream of codes by hand for one row of pixels."""
    row = np.frombuffer(bytes(expected), "u1").reshape(1, -1)
    return tb.image(row, compression=tb.LZW, blocks=[tb.lzw_codes(codes, **how)]), row


def test_T092_sound_lzw():
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
    for array in (BYTES, judge.noise(np.random.default_rng(7), (1, 90, 70), "u1")[0]):
        raw = tb.lzw_encode(array.tobytes(), low_first=True, early=0)
        data = stream(tb.LZW, raw, array)
        assert judge.same(judge.read(data)[0], array)
        reads(data, array)


@pytest.mark.parametrize("codes", [
    [256, 1, 260, 257], [256, 258, 1, 257], [256, 300, 257], [256, 1, 2, 4095, 257], [256, 257],
    [257], [256, 1, 2, 256, 259, 257]])
def test_T092_T093_unsound_lzw(codes):
    data, _ = lzw(codes, [0] * 8)
    assert refused(data, CORRUPT).block == 0


def test_T092_table_full_without_clear():
    """A table that is full stays as it is, or the stream is refused; it never overflows."""
    rng = np.random.default_rng(8)
    codes = [256] + rng.integers(0, 256, 6000).tolist() + [257]
    values = np.array(codes[1:-1], "u1").reshape(60, 100)
    data = stream(tb.LZW, tb.lzw_codes(codes), values)
    try:
        assert judge.same(pixels(data)[0], values)
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT


def test_T094_packbits():
    rows = {
        bytes([256 - 7, 5]): [5] * 8, bytes([7]) + bytes(range(8)): range(8),
        bytes([128, 128, 7]) + bytes(range(8)): range(8),                       # -128 means nothing
        bytes([256 - 100, 9]): [9] * 8,                                         # a run past the block
        bytes([7]) + bytes(range(8)) + b"\x03\x01": range(8)}                   # rest that nobody needs
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
    assert rows[1].available and rows[5].available and rows[32773].available
    for row in rows.values():
        assert row.name and (row.library or not row.available)


# ---- G. nodata ---------------------------------------------------------------------------------

def with_nodata(text, array=PIXELS):
    return tb.image(array, tags=tags((42113, ASCII,
                                      text if isinstance(text, bytes) else text.encode() + b"\0")))


@pytest.mark.parametrize("text", ["-9999", "65536", "1e400", "nan", "inf", "-inf", "0.5", "", " ",
                                  "abc", "--1", "e5"])
def test_T109_T110_T111_T124_nodata_that_no_sample_equals(text):
    with opened(with_nodata(text)) as file:
        info = file.info()
        assert not info.nodata.matches
        assert info.validity == cogpu.ALL_VALID
        assert (info.nodata.text or "") in (text, text.strip())
        assert judge.same(file.read()[0], PIXELS)
        assert np.all(file.mask() == 255)


@pytest.mark.parametrize("text,value", [("7", 7), (" 7", 7), ("7 ", 7), ("7.0", 7), ("7e0", 7),
                                        ("+7", 7), ("007", 7), ("65535", 65535)])
def test_T124_nodata_texts(text, value):
    with opened(with_nodata(text)) as file:
        info = file.info()
        assert info.nodata.matches and info.nodata.value == value
        assert judge.same(file.mask(), np.where(PIXELS == value, 0, 255).astype("u1"))


def test_T124_nodata_without_end():
    with opened(with_nodata(b"7")) as file:
        assert file.info().nodata.value == 7


@pytest.mark.parametrize("dtype,text", [("i8", "-9223372036854775808"),
                                        ("i8", "9223372036854775807"), ("i8", "9007199254740993"),
                                        ("u8", "18446744073709551615"), ("u8", "9007199254740993"),
                                        ("i8", "-1")])
def test_T112_exact_64_bit_nodata(dtype, text):
    value = int(text)
    array = np.array([[value, value - 1 if value > 0 else value + 1, 5, 0]], dtype)
    with opened(with_nodata(text, array)) as file:
        assert getattr(file.info().nodata, "i64" if dtype == "i8" else "u64") == value
        assert file.mask().tolist() == [[0, 255, 255, 255]]


def test_T116_nan_and_infinities():
    array = np.array([[1, np.nan, np.inf, -np.inf, 0]], "f4")
    for text, mask in (("nan", [255, 0, 255, 255, 255]), ("inf", [255, 255, 0, 255, 255]),
                       ("-inf", [255, 255, 255, 0, 255])):
        data = with_nodata(text, array)
        with opened(data) as file, judge.opened(data) as expected:
            assert file.mask().tolist() == [mask]
            assert judge.same(file.read()[0], array)
            if text != "nan":
                continue
            assert expected.read_masks(1).tolist() == [mask]


def test_T116_float_nodata_is_compared_after_rounding():
    array = np.array([[0.1, 0.2]], "f4")
    data = with_nodata("0.1", array)
    with opened(data) as file, judge.opened(data) as expected:
        assert judge.same(file.mask(), expected.read_masks(1))
        assert file.mask().tolist() == [[0, 255]]


# ---- H. georeference ---------------------------------------------------------------------------

SCALE = (33550, DOUBLE, [10, 20, 0])
TIE = (33922, DOUBLE, [0, 0, 0, 1000, 2000, 0])


def located(*pairs):
    with opened(tb.image(PIXELS, tags=tags(*pairs))) as file:
        assert judge.same(file.read()[0], PIXELS)
        return file.info()


@pytest.mark.parametrize("scale", [[0, 0, 0], [10, 0, 0], [0, 10, 0], [float("nan"), 1, 0],
                                   [1, float("inf"), 0], [10]])
def test_T125_unsound_scale(scale):
    info = located((33550, DOUBLE, scale), TIE)
    assert not info.has_transform and "ModelPixelScale" in info.warning


def test_T126_matrix():
    matrix = [2, 0.5, 0, 7, -0.25, -3, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1]
    assert located((34264, DOUBLE, matrix)).transform == [7, 2, 0.5, 9, -0.25, -3]
    for wrong in (matrix[:15], matrix + [1]):
        info = located((34264, DOUBLE, wrong))
        assert not info.has_transform and "ModelTransformation" in info.warning


def test_T137_tiepoint_elsewhere():
    info = located(SCALE, (33922, DOUBLE, [5, 3, 0, 1000, 2000, 0]))
    assert info.transform == [950, 10, 0, 2060, 0, -20]


def test_T139_negative_scale_and_missing_tiepoint():
    info = located((33550, DOUBLE, [10, -20, 0]), TIE)
    assert info.transform == [1000, 10, 0, 2000, 0, -20] and info.warning
    assert not located(SCALE).has_transform


def test_T140_tiepoints_are_control_points():
    points = [0, 0, 0, 10, 50, 0, 10, 0, 0, 11, 50, 0, 0, 12, 0, 10, 49, 1]
    info = located((33922, DOUBLE, points))
    assert not info.has_transform
    assert [(g.column, g.row, g.x, g.y, g.z) for g in info.gcps] == [(0, 0, 10, 50, 0),
                                                                     (10, 0, 11, 50, 0),
                                                                     (0, 12, 10, 49, 1)]


def geokeys(*words, doubles=None, text=None):
    extra = tags((34735, SHORT, list(words)))
    if doubles is not None:
        extra |= tags((34736, DOUBLE, doubles))
    if text is not None:
        extra |= tags((34737, ASCII, text))
    return tb.image(PIXELS, tags=extra)


def test_T142_sound_keys():
    data = geokeys(1, 1, 0, 4, 1024, 0, 1, 1, 1026, 34737, 5, 0, 2057, 34736, 1, 1, 3072, 0, 1,
                   32633,
                   doubles=[1.5, 6378137.0], text=b"abcd|\0")
    with opened(data) as file:
        assert file.geokeys() == {1024: [1], 1026: "abcd", 2057: [6378137.0], 3072: [32633]}
        assert file.crs().code == 32633 and file.crs().model == "projected"


@pytest.mark.parametrize("words,doubles,text", [
    ([1, 1, 0, 9, 1024, 0, 1, 1], None, None), ([1, 1, 0], None, None), ([1], None, None),
    ([1, 1, 0, 1, 2057, 34736, 1, 5], [1.0], None),
    ([1, 1, 0, 1, 2057, 34736, 65535, 0], [1.0], None),
    ([1, 1, 0, 1, 1026, 34737, 99, 0], None, b"abc|\0"),
    ([1, 1, 0, 1, 1026, 34737, 3, 65535], None, b"abc|\0"),
    ([1, 1, 0, 1, 2057, 34736, 1, 0], None, None), ([1, 1, 0, 1, 1026, 34737, 3, 0], None, None),
    ([1, 1, 0, 1, 1024, 99, 1, 0], None, None), ([9, 9, 9, 1, 1024, 0, 1, 1], None, None),
    ([1, 1, 0, 1, 3072, 34735, 9, 60000], None, None)])
def test_T142_unsound_keys(words, doubles, text):
    with opened(geokeys(*words, doubles=doubles, text=text)) as file:
        assert judge.same(file.read()[0], PIXELS)
        assert file.info().warning
        file.geokeys()


def test_T142_duplicate_and_empty_keys():
    with opened(geokeys(1, 1, 0, 3, 3072, 0, 1, 32633, 3072, 0, 1, 32632, 1024, 0, 1, 1)) as file:
        assert file.geokeys()[3072] in ([32633], [32632])
    with opened(geokeys(1, 1, 0, 2, 2057, 34736, 0, 0, 1026, 34737, 0, 0, doubles=[1.0],
                        text=b"x|\0")) as file:
        file.geokeys()


@pytest.mark.parametrize("words", [[1, 1, 0, 1, 3072, 34736, 1, 0], [1, 1, 0, 1, 2057, 0, 1, 7],
                                   [1, 1, 0, 1, 3072, 34737, 2, 0]])
def test_T143_keys_of_the_wrong_kind(words):
    """A code that stands among the doubles, a length that stands among the codes: no coordinate system."""
    with opened(geokeys(*words, doubles=[32633.0], text=b"ab|\0")) as file:
        file.geokeys()
        try:
            assert file.crs().code in (0, 32633)
        except cogpu.CogpuError as error:
            assert error.status == ABSENT


def metadata(xml):
    return tb.image(PIXELS, tags=tags((42112, ASCII, xml.encode() + b"\0")))


def test_T144_metadata():
    xml = ('<GDALMetadata>\n <Item name="A">x &amp;lt; y</Item>\n <Item name="B" sample="7">far</Item>\n'
           ' <Item name="SCALE" sample="0" role="scale">0.5</Item>\n</GDALMetadata>\n')
    with opened(metadata(xml)) as file:
        items = {item.name: item for item in file.items()}
        assert items["A"].value == "x < y"
        assert file.band(1).scale == 0.5
        assert judge.same(file.read()[0], PIXELS)


@pytest.mark.parametrize("xml", [
    "", "<", "<GDALMetadata>", "<GDALMetadata><Item", '<GDALMetadata><Item name="x', "<a></b>",
    "&&&&", "]]>",
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><GDALMetadata><Item name="x">&b;</Item></GDALMetadata>',
    "<GDALMetadata>" + "<Item>" * 5000, "<" * 10000,
    '<GDALMetadata><Item name="SCALE" role="scale" sample="0">abc</Item></GDALMetadata>',
    '<GDALMetadata><Item name="x" sample="99999999999999999999">1</Item></GDALMetadata>',
    "<GDALMetadata><Item/></GDALMetadata>",
    '<GDALMetadata><Item name="x">&#x110000;&#0;&unknown;&amp</Item></GDALMetadata>'])
def test_T221_unsound_metadata(xml):
    with opened(metadata(xml)) as file:
        assert judge.same(file.read()[0], PIXELS)
        assert "aaaaaaaaaaaaaaaaaaaa" not in "".join(item.value for item in file.items())
        assert file.band(1).scale == 1


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
        refused(data, LIMIT, CORRUPT, UNSUPPORTED)


@pytest.mark.parametrize("count", [1 << 20, 1 << 28, (1 << 32) - 1])
def test_T205_forged_counts_of_arrays(count):
    for tag in (273, 279):
        data = tb.image(PIXELS, rows=3, tags={tag: (LONG, Raw(count, 8))})
        with opened(data) as file:
            try:
                file.read()
            except cogpu.CogpuError as error:
                assert error.status == CORRUPT
    refused(tb.image(PIXELS, tags={256: (LONG, Raw(count, 8))}), CORRUPT, LIMIT)


def test_T206_too_many_samples():
    refused(huge(tags=tags((277, SHORT, [65535]))), CORRUPT, LIMIT)
    refused(huge(tags=tags((277, SHORT, [65535]), (258, SHORT, [65535]))), CORRUPT, LIMIT,
            UNSUPPORTED, at="open")
    refused(huge(tags=tags((277, SHORT, [0]))), CORRUPT, at="open")


@pytest.mark.parametrize("codec,offset,count", [
    (codec, *place) for codec in (tb.NONE, tb.DEFLATE, tb.ZSTD, tb.LZW)
    for place in ((8, 0xFFFFFFFF), (0xFFFFFFF0, 0x20), (100000, 240), (8, 1 << 20))
    if codec != tb.NONE or place[0] != 8])  # of uncompressed blocks the bytes in excess do not matter
def test_T207_T208_blocks_beyond_the_file(codec, offset, count):
    error = refused(tb.image(PIXELS, compression=codec, rows=6, blocks=[(offset, count)] * 2),
                    CORRUPT, LIMIT)
    assert error.block == 0 and error.offset == offset


def test_T208_sum_of_offset_and_count_wraps():
    for place in ((2 ** 64 - 8, 16), (2 ** 63, 2 ** 63), (2 ** 64 - 1, 2 ** 64 - 1),
                  (16, 2 ** 64 - 16)):
        refused(tb.image(PIXELS, big=True, rows=6, compression=tb.LZW, blocks=[place] * 2), CORRUPT,
                LIMIT)


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
        assert error.status in (CORRUPT, LIMIT)


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
    assert caught.value.status in (LIMIT, CORRUPT)


@pytest.mark.parametrize("window", [(0, 0, 11, 12), (0, 0, 10, 13), (10, 0, 1, 1), (0, 12, 1, 1),
                                    (5, 5, 6, 1), (2 ** 32 - 1, 0, 2, 1),
                                    (1, 0, 2 ** 32 - 1, 1), (0, 2 ** 31, 1, 1), (10, 12, 0, 0)])
def test_T138_T214_windows_outside(window):
    with opened(tb.image(PIXELS)) as file:
        out = np.zeros((1, min(window[3], 20) or 1, min(window[2], 20) or 1), "u2")
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=window, out=out)
    assert caught.value.status == ARGUMENT


@pytest.mark.parametrize("shape,dtype", [((1, 12, 11), "u2"), ((1, 13, 10), "u2"),
                                         ((2, 12, 10), "u2"), ((1, 12, 10), "u1"),
                                         ((1, 12, 10), "i4"), ((1, 11, 10), "u2")])
def test_T214_raster_of_another_shape(shape, dtype):
    with opened(tb.image(PIXELS)) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(out=np.zeros(shape, dtype))
    assert caught.value.status == ARGUMENT


@pytest.mark.parametrize("tag", [278, 322, 323])
def test_T215_zero_block_sizes(tag):
    how = {"rows": 3} if tag == 278 else {"tile": (16, 16)}
    refused(tb.image(PIXELS, tags={tag: (LONG, [0])}, **how), CORRUPT, at="open")


def test_T216_too_many_blocks():
    data = huge(tags=tags((256, LONG, [0x7FFFFFFF]), (257, LONG, [0x7FFFFFFF]), (322, LONG, [1]),
                          (323, LONG, [1])), tile=(1, 1))
    refused(data, LIMIT, CORRUPT)
    with pytest.raises(cogpu.CogpuError) as caught:
        opened(tb.image(PIXELS, rows=1), blocks=11)
    assert caught.value.status == LIMIT and "blocks" in caught.value.message
    with opened(tb.image(PIXELS, rows=1), blocks=12) as file:
        assert judge.same(file.read()[0], PIXELS)


@pytest.mark.parametrize("limit,value", [("tags", 10), ("bands", 2), ("block_bytes", 719),
                                         ("call_bytes", 64)])
def test_limits_have_names(limit, value):
    """Just above the limit: refused, with its name. Without limits the same file reads."""
    array = np.stack([PIXELS] * 3)
    data = deflated(array)
    assert judge.same(pixels(data), array)
    with pytest.raises(cogpu.CogpuError) as caught:
        with opened(data, **{limit: value}) as file:
            file.read()
    assert caught.value.status == LIMIT and limit in caught.value.message


@pytest.mark.parametrize("limit,value", [("tags", 11), ("bands", 3), ("block_bytes", 720)])
def test_limits_are_reached_not_passed(limit, value):
    array = np.stack([PIXELS] * 3)
    with opened(deflated(array), **{limit: value}) as file:
        assert file.directory(0).tags <= 11
        assert judge.same(file.read(), array)


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


# ---- what a small window costs -----------------------------------------------------------------

class CountingSource:
    """A sparse file of any length: pieces of bytes, zeros between them, and a list of what was read."""

    def __init__(self, size, pieces):
        self.length, self.pieces, self.reads, self.closed = size, pieces, [], 0

    def read(self, offset, wanted):
        wanted = max(0, min(wanted, self.length - offset))
        self.reads.append(wanted)
        out = bytearray(wanted)
        for at, data in self.pieces:
            low, high = max(at, offset), min(at + len(data), offset + wanted)
            if low < high:
                out[low - offset:high - offset] = data[low - at:high - at]
        return bytes(out)

    def size(self):
        return self.length

    def close(self):
        self.closed += 1

    def open(self, **limits):
        options = cogpu.OpenOptions(limits=cogpu.Limits(**limits)) if limits else None
        return cogpu.open_source(self.read, self.size, self.close, options)


def million_tiles():
    """262144 x 262144 pixels of 256 x 256 tiles: 2^20 tiles, of which one holds data."""
    tile = np.arange(65536, dtype="u4").reshape(256, 256).astype("u1")
    raw, blocks, chosen = zlib.compress(tile.tobytes()), 1 << 20, 777_777
    offsets_at, counts_at = 1 << 16, (1 << 16) + 8 * blocks
    data_at = counts_at + 4 * blocks
    writer = tb.Writer(big=True)
    writer.directory([(256, LONG, [262144]), (257, LONG, [262144]), (258, SHORT, [8]),
                      (259, SHORT, [tb.DEFLATE]), (262, SHORT, [1]),
                      (277, SHORT, [1]), (322, SHORT, [256]), (323, SHORT, [256]),
                      (324, LONG8, Raw(blocks, offsets_at)),
                      (325, LONG, Raw(blocks, counts_at))])
    pieces = [(0, writer.bytes()), (offsets_at + 8 * chosen, struct.pack("<Q", data_at)),
              (counts_at + 4 * chosen, struct.pack("<I", len(raw))), (data_at, raw)]
    return CountingSource(data_at + len(raw), pieces), tile, chosen


def test_lazy_arrays_of_a_million_blocks():
    source, tile, chosen = million_tiles()
    with source.open() as file:
        assert file.info().blocks == 1 << 20
        assert len(source.reads) <= 3
        x, y = chosen % 1024 * 256, chosen // 1024 * 256
        assert judge.same(file.read(window=(x, y, 256, 256))[0], tile)
        assert judge.same(file.read(window=(x + 3, y + 5, 7, 9))[0], tile[5:14, 3:10])
        assert np.all(file.read(window=(0, 0, 100, 100)) == 0)
        assert file.last_result.sparse_blocks == 1
    assert sum(source.reads) < 128 << 10, source.reads
    assert len(source.reads) <= 16, source.reads
    assert source.closed == 1


def test_T194_opening_reads_no_pixels():
    array = np.random.default_rng(9).integers(0, 255, (2000, 1000), dtype="u1")
    data = tb.image(array, rows=10)
    source = CountingSource(len(data), [(0, data)])
    with source.open() as file:
        file.info()
        assert sum(source.reads) < 64 << 10
        assert judge.same(file.read()[0], array)
        assert file.last_result.bytes_read >= array.nbytes


@pytest.mark.parametrize("failing", ["size", "read at once", "read later"])
def test_source_that_fails(failing):
    data = tb.image(PIXELS, rows=3)
    source = CountingSource(len(data), [(0, data)])
    real = source.read
    if failing == "size":
        source.size = lambda: (IO,)
    elif failing == "read at once":
        source.read = lambda offset, wanted: IO
    with pytest.raises(cogpu.CogpuError) as caught:
        with cogpu.open_source(lambda o, n: source.read(o, n), source.size, source.close) as file:
            assert failing == "read later"
            source.read = lambda offset, wanted: IO
            file.read(window=(0, 0, 10, 3))
            source.read = real
            pytest.skip("the whole file was read when it was opened")
    assert caught.value.status == IO
    assert source.closed == 1


def test_source_that_ends_early():
    """A source that is shorter than it says is corrupt or an I/O error, never garbage."""
    data = tb.image(np.ones((500, 500), "u2"), rows=100)
    source = CountingSource(len(data), [(0, data)])
    half = lambda offset, wanted: source.read(offset, max(0, min(wanted, len(data) // 2 - offset)))
    with pytest.raises(cogpu.CogpuError) as caught:
        with cogpu.open_source(half, source.size) as file:
            file.read()
    assert caught.value.status in (IO, CORRUPT)


# ---- several threads, several files ------------------------------------------------------------

def test_T181_two_threads_read_one_file():
    array = judge.noise(np.random.default_rng(10), (3, 301, 277), "u2")
    data = deflated(array, tile=(32, 32), predictor=2)
    wrong = []

    def work(file, seed, threads):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x, y = int(rng.integers(270)), int(rng.integers(290))
            w, h = int(rng.integers(1, 277 - x + 1)), int(rng.integers(1, 301 - y + 1))
            if not judge.same(file.read(window=(x, y, w, h), threads=threads),
                              array[:, y:y + h, x:x + w]):
                wrong.append((x, y, w, h))

    with opened(data) as file:
        workers = [threading.Thread(target=work, args=(file, seed, seed % 2 + 1))
                   for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong


def test_context_caches_blocks():
    array = judge.noise(np.random.default_rng(11), (1, 128, 128), "u2")
    with opened(deflated(array, tile=(32, 32))) as file, cogpu.Context(threads=2,
                                                                       cache_bytes=1 << 20) as context:
        assert judge.same(file.read(context=context), array)
        assert (file.last_result.blocks, file.last_result.cached_blocks) == (16, 0)
        assert judge.same(file.read(context=context, window=(5, 5, 70, 20)), array[:, 5:25, 5:75])
        assert file.last_result.cached_blocks == file.last_result.blocks == 3
        assert judge.same(file.read(context=context), array)
        assert file.last_result.cached_blocks == 16


def test_context_cache_tells_files_apart():
    arrays = [np.full((32, 32), value, "u1") for value in (1, 2, 3)]
    with cogpu.Context(cache_bytes=1 << 20) as context:
        for array in arrays * 2:
            with opened(deflated(array)) as file:
                assert judge.same(file.read(context=context)[0], array)


def test_context_with_too_small_a_cache():
    array = judge.noise(np.random.default_rng(12), (1, 128, 128), "u2")
    with opened(deflated(array, tile=(32, 32))) as file, cogpu.Context(threads=2,
                                                                       cache_bytes=5000) as context:
        for _ in range(4):
            assert judge.same(file.read(context=context), array)


def test_read_many_of_several_files():
    arrays = [judge.noise(np.random.default_rng(i), (2, 60 + i, 50), dtype) for i,
              dtype in enumerate(("u1", "u2", "f4", "f8"))]
    files = [opened(deflated(array, tile=(16, 16))) for array in arrays]
    wanted = [(file, {"window": (i, 2 * j, 20, 30 - j), "bands": [2, 1]}) for i,
              file in enumerate(files) for j in range(5)]
    results, failure = cogpu.read_many(wanted)
    assert failure is None
    for (file, request), (status, found) in zip(wanted, results):
        x, y, w, h = request["window"]
        assert status == OK
        assert judge.same(found, arrays[files.index(file)][::-1, y:y + h, x:x + w])
    for file in files:
        file.close()


def test_read_many_where_one_fails():
    bad = tb.image(PIXELS, compression=tb.DEFLATE, blocks=[b"not deflate at all"])
    with opened(deflated(PIXELS)) as good_file, opened(bad) as bad_file:
        results, failure = cogpu.read_many([(good_file, {}), (bad_file, {}),
                                            (good_file, {"window": (1, 1, 3, 3)}), (bad_file, {})])
        assert [status for status, _ in results] == [OK, CORRUPT, OK, CORRUPT]
        assert failure.status == CORRUPT and failure.block == 0
        assert judge.same(results[0][1][0], PIXELS)
        assert judge.same(results[2][1][0], PIXELS[1:4, 1:4])
        assert cogpu.read_many([]) == ([], None)


# ---- raw tags ----------------------------------------------------------------------------------

@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("big", [False, True])
def test_raw_tags(order, big):
    extra = tags((270, ASCII, b"text\0"), (282, RATIONAL, [300, 7]), (33550, DOUBLE, [1.5, 2.5, 0]),
                 (40000, tb.SLONG, [-5, 6, 7]))
    with opened(tb.image(PIXELS, order=order, big=big, rows=4, tags=extra)) as file:
        found = file.tags()
        assert found[256].name == "ImageWidth" and found[40000].name == "unknown"
        assert (found[282].type, found[282].count, found[282].bytes) == (RATIONAL, 1, 8)
        assert file.tag_read(0, 40000, 0, 3, "i4").tolist() == [-5, 6, 7]
        assert file.tag_read(0, 40000, 1, 1, "i4").tolist() == [6]
        assert file.tag_read(0, 33550, 1, 2, "f8").tolist() == [2.5, 0]
        assert file.tag_read(0, 282, 0, 1, "u4,u4")[0].tolist() == (300, 7)
        assert file.tag_read(0, 270, 0, 5, "u1").tobytes() == b"text\0"
        for tag, first, count, status in ((999, 0, 1, ABSENT), (40000, 2, 2, ARGUMENT),
                                          (40000, 2 ** 63, 2 ** 63, ARGUMENT)):
            with pytest.raises(cogpu.CogpuError) as caught:
                error = cogpu.Error()
                room = np.zeros(64, "u1")
                cogpu._check(cogpu.lib.cogpu_tag_read(file.handle, 0, tag, first, count,
                                                      room.ctypes.data, error), error)
            assert caught.value.status == status
        with pytest.raises(cogpu.CogpuError) as caught:
            file.directory(1)
        assert caught.value.status in (ABSENT, ARGUMENT)


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
        assert caught.value.status in (IO, ABSENT) and len(caught.value.message) > 10
