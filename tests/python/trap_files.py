"""What the tests of traps (test_traps_*.py) share: pixels, and files of few bytes that are opened, read or refused."""

import struct
import zlib

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb

PIXELS = (np.arange(12 * 10, dtype="u2") * 37 % 251).reshape(12, 10)
BYTES = PIXELS.astype("u1")


def opened(data, **limits):
    return cogpu.open_memory(data, cogpu.limited(**limits) if limits
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
        assert reference.same(file.read(), expected)
        info = file.info()
        assert warns.lower() in info.warning.lower()
        return info


def tags(*pairs):
    return {tag: (kind, values) for tag, kind, values in pairs}


def deflated(array, level=6, **how):
    return tb.image(array, compression=tb.DEFLATE, encode=lambda data: zlib.compress(data, level),
                    **how)


GHOST = ["LAYOUT=IFDS_BEFORE_DATA", "BLOCK_ORDER=ROW_MAJOR", "BLOCK_LEADER=SIZE_AS_UINT4",
         "BLOCK_TRAILER=LAST_4_BYTES_REPEATED", "KNOWN_INCOMPATIBLE_EDITION=NO"]


def ghost_text(*lines):
    text = "".join(line + "\n" for line in lines).encode()
    return b"GDAL_STRUCTURAL_METADATA_SIZE=%06d bytes\n" % len(text) + text


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


def stream(codec, raw, array=BYTES, **how):
    return tb.image(array, compression=codec, blocks=[raw], **how)
