"""What docs/supported.md says is not read: a file for each row of its tables, and the message that it gives."""

import pathlib
import re

import cogpu_ctypes as cogpu
import imagecodecs
import numpy as np
import pytest
import tiff_bytes as tb

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "supported.md").read_text()
COMPRESSIONS = re.findall(r"^\| (\d+) \| [^|]+ \| `([^`]+)` \|$", PAGE, re.M)
FILES = dict(re.findall(r"^\| ([^|`\d][^|`]*|\d+-bit [^|`]*) \| `([^`]+)` \|$", PAGE, re.M))
BYTES = np.zeros((16, 16), "u1")


def jpeg(array, **options):
    return bytes(imagecodecs.jpeg_encode(array, **options))


def jpegxl_of_several_layers():
    """A frame that the first one would be made of, put before it. Where the frames begin depends on the encoder."""
    stream = bytes(imagecodecs.jpegxl_encode(BYTES, lossless=True, effort=3))
    for at in range(4, 60):
        data = tb.image(BYTES, compression=52546, blocks=[stream[:at] + b"\x02" + stream[at:]])
        with cogpu.open_memory(data) as file:
            try:
                file.read()
            except cogpu.CogpuError as failure:
                if failure.name == "unsupported":
                    return data
    raise AssertionError("no place for a frame")


MADE = {
    "bands of different depths": lambda: tb.image(np.zeros((2, 8, 8), "u1"), tags={258: (tb.SHORT, [8, 16])}),
    "bands of different types": lambda: tb.image(np.zeros((2, 8, 8), "u1"), tags={339: (tb.SHORT, [1, 2])}),
    "integers of 33 to 63 bits": lambda: tb.image(BYTES, tags={258: (tb.SHORT, [48])}),
    "floats other than of 16, 24, 32 and 64 bits": lambda: tb.image(BYTES, tags={258: (tb.SHORT, [128]),
                                                                                 339: (tb.SHORT, [3])}),
    "a predictor other than 1, 2 and 3": lambda: tb.image(BYTES, compression=8, tags={317: (tb.SHORT, [34892])}),
    "CCITT with several bands together": lambda: tb.image(np.zeros((3, 16, 16), "u1"), compression=4, bits=1),
    "LERC of 64-bit integers": lambda: tb.image(np.zeros((16, 16), "i8"), compression=34887),
    "old-style JPEG with a plane for each band": lambda: tb.image(np.zeros((3, 8, 8), "u1"), compression=6, planar=True),
    "old-style JPEG of 4 bands": lambda: tb.image(np.zeros((4, 8, 8), "u1"), compression=6),
    "12-bit JPEG, with libjpeg-turbo before 3": lambda: tb.image(
        np.zeros((16, 16), "u2"), compression=7, bits=12, format=1,
        blocks=[jpeg(np.zeros((16, 16), "u2"), bitspersample=12, level=90)]),
    "lossless JPEG, with libjpeg-turbo before 3": lambda: tb.image(BYTES, compression=7,
                                                                   blocks=[jpeg(BYTES, lossless=True)]),
    "JPEG of other depths": lambda: tb.image(np.zeros((16, 16), "f4"), compression=7),
    "JPEG 2000 of floats": lambda: tb.image(np.zeros((16, 16), "f4"), compression=34712),
    "JPEG XL of signed integers": lambda: tb.image(np.zeros((16, 16), "i2"), compression=52546),
    "JPEG XL of other depths": lambda: tb.image(np.zeros((16, 16), "u2"), compression=50002, bits=12, format=1),
    "JPEG XL with layers, a preview or many hidden frames, with libjxl before 0.11": jpegxl_of_several_layers,
}


def version_of(library):
    """Major and minor number of a library of the build."""
    texts = [codec.library for codec in cogpu.codecs().values() if codec.library.startswith(library + " ")]
    return tuple(int(part) for part in re.findall(r"\d+", texts[0])[:2]) if texts else (0, 0)


def message_of(data):
    with pytest.raises(cogpu.CogpuError) as failure, cogpu.open_memory(data) as file:
        file.read()
    assert failure.value.name == "unsupported", failure.value
    return failure.value.message


def test_the_page_is_read():
    assert len(COMPRESSIONS) > 30 and set(FILES) == set(MADE)


@pytest.mark.parametrize("number,message", COMPRESSIONS)
def test_unsupported_compression(number, message):
    data = tb.image(BYTES, compression=int(number))
    with cogpu.open_memory(data) as file:
        assert file.info().width == 16
    assert message_of(data) == message


def test_numbers_that_are_not_listed_are_read():
    """Each name of the table of codecs is read, or stands on the page."""
    listed = {int(number) for number, _ in COMPRESSIONS}
    for codec in cogpu.codecs().values():
        assert bool(codec.can_decode) != (codec.compression in listed), codec.name


@pytest.mark.parametrize("kind", MADE)
def test_unsupported_file(kind):
    if "libjpeg-turbo before 3" in kind and version_of("libjpeg-turbo") >= (3, 0):
        pytest.skip("this libjpeg-turbo reads it")
    if "libjxl before 0.11" in kind and version_of("libjxl") >= (0, 11):
        pytest.skip("this libjxl reads it")
    expected = re.escape(FILES[kind]).replace("VERSION", r"[\d.]+")
    assert re.fullmatch(expected, message_of(MADE[kind]())), message_of(MADE[kind]())
