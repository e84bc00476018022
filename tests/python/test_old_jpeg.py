"""Old-style JPEG (compression 6): the ways to put a stream, its header or its tables into a file, against GDAL."""

import struct

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb

OLD_JPEG, YCBCR = 6, 6
SOI, EOI = b"\xff\xd8", b"\xff\xd9"
WIDTH, ROWS, STRIPS = 80, 32, 3
SUBSAMPLINGS = {"444": (1, 1), "422": (2, 1), "420": (2, 2)}


def picture(height=ROWS * STRIPS):
    rows, columns = np.mgrid[:height, :WIDTH]
    return np.stack([(rows * 2 + columns) % 256, 255 - (rows + columns) % 256, (columns * 3) % 256],
                    axis=-1).astype("u1")


def segments(stream):
    """The marker segments of a JPEG stream without those that no decoder needs, and its scan."""
    at, found = 2, []
    while True:
        marker, length = stream[at + 1], struct.unpack(">H", stream[at + 2:at + 4])[0]
        if not 0xE0 <= marker <= 0xEF and marker != 0xFE:
            found.append((marker, stream[at:at + 2 + length]))
        at += 2 + length
        if marker == 0xDA:
            return found, stream[at:stream.rindex(EOI)]


def encode(array, subsampling="420", level=90):
    return bytes(imagecodecs.jpeg8_encode(array, level=level, subsampling=subsampling))


class Parts:
    """A picture as strips that are scans of one header."""

    def __init__(self, array, subsampling, rows=ROWS):
        self.across, self.down = SUBSAMPLINGS[subsampling]
        self.shape = array.shape
        coded = [segments(encode(array[y:y + rows], subsampling)) for y in range(0, len(array), rows)]
        self.segments = coded[0][0]
        self.scans = [scan for _, scan in coded]
        mcus = -(-array.shape[1] // (8 * self.across)) * (rows // (8 * self.down))
        self.restarts = b"\xff\xdd\x00\x04" + struct.pack(">H", mcus)

    def header(self, height=None, restarts=False):
        out = SOI
        for marker, segment in self.segments:
            if marker == 0xC0 and height:
                segment = segment[:5] + struct.pack(">H", height) + segment[7:]
            if marker == 0xDA and restarts:
                out += self.restarts
            out += segment
        return out

    def stream(self):
        """All strips as one stream."""
        marks = [b"\xff" + bytes([0xD0 + i % 8]) for i in range(len(self.scans) - 1)] + [EOI]
        scans = b"".join(scan + mark for scan, mark in zip(self.scans, marks))
        return self.header(self.shape[0], len(self.scans) > 1) + scans

    def table(self, kind, number):
        """The content of one quantisation (DB) or Huffman (C4) table."""
        for marker, segment in self.segments:
            at = 4
            while marker == kind and at < len(segment):
                size = 64 if kind == 0xDB else 16 + sum(segment[at + 1:at + 17])
                if segment[at] == number:
                    return segment[at + 1:at + 1 + size]
                at += 1 + size
        raise AssertionError("no such table")


def tiff(array, blocks, rows, subsampling, tags=None, photometric=YCBCR, before=()):
    """`before` is bytes that stand in the file ahead of the strips; `tags` may be a function of their offsets."""
    writer = tb.Writer()
    places = [writer.add(data) for data in before]
    more = tags(places) if callable(tags) else tags or {}
    blocks = [block(places) if callable(block) else block for block in blocks]
    if subsampling:
        more[530] = (tb.SHORT, list(SUBSAMPLINGS[subsampling]))
    tb.add_image(writer, array.transpose(2, 0, 1), blocks=blocks, compression=OLD_JPEG, rows=rows,
                 photometric=photometric, tags=more)
    return writer.bytes()


def stream_tags(data):
    return lambda places: {513: (tb.LONG, [places[0]]), 514: (tb.LONG, [len(data)])}


def one_strip(array, subsampling):
    """The whole stream in the file, the strip points to its start."""
    data = encode(array, subsampling)
    return tiff(array, [lambda places: (places[0], len(data))], len(array), subsampling, stream_tags(data), before=[data])


def one_strip_scan(array, subsampling):
    """The whole stream in the file, the strip points to its scan."""
    parts = Parts(array, subsampling, len(array))
    data, header = parts.stream(), parts.header(len(array))
    return tiff(array, [lambda places: (places[0] + len(header), len(data) - len(header))], len(array), subsampling,
                stream_tags(data), before=[data])


def no_length(array, subsampling):
    """The stream's length is not told."""
    parts = Parts(array, subsampling, len(array))
    data, header = parts.stream(), parts.header(len(array))
    return tiff(array, [lambda places: (places[0] + len(header), len(data) - len(header))], len(array), subsampling,
                lambda places: {513: (tb.LONG, [places[0]])}, before=[data])


def only_strip(array, subsampling):
    """No tags of JPEG; the strip is a stream."""
    return tiff(array, [encode(array, subsampling)], len(array), subsampling)


def header_and_strips(array, subsampling):
    """The header in the file, the strips are its scans."""
    parts = Parts(array, subsampling)
    data = parts.header(len(array), restarts=True)
    return tiff(array, parts.scans, ROWS, subsampling, stream_tags(data), before=[data])


def strips_of_stream(array, subsampling):
    """The whole stream in the file, with restarts; each strip points into it."""
    parts = Parts(array, subsampling)
    data, header = parts.stream(), parts.header(len(array), restarts=True)
    starts = [len(header)]
    for scan in parts.scans[:-1]:
        starts.append(starts[-1] + len(scan) + 2)
    blocks = [lambda places, at=at, scan=scan: (places[0] + at, len(scan)) for at, scan in zip(starts, parts.scans)]
    return tiff(array, blocks, ROWS, subsampling, stream_tags(data), before=[data])


def tables(array, subsampling, rows=ROWS):
    """Tables by tags, the strips are scans."""
    parts = Parts(array, subsampling, rows)
    data = [parts.table(0xDB, 0), parts.table(0xDB, 1), parts.table(0xC4, 0), parts.table(0xC4, 1),
            parts.table(0xC4, 0x10), parts.table(0xC4, 0x11)]
    pick = lambda places, first: (tb.LONG, [places[first], places[first + 1], places[first + 1]])
    return tiff(array, parts.scans, rows, subsampling,
                lambda places: {512: (tb.SHORT, [1]), 519: pick(places, 0), 520: pick(places, 2), 521: pick(places, 4)},
                before=data)


def tables_one_strip(array, subsampling):
    return tables(array, subsampling, len(array))


WAYS = [one_strip, one_strip_scan, no_length, only_strip, header_and_strips, strips_of_stream, tables, tables_one_strip]


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_old_jpeg_ycbcr(way, subsampling):
    data = way(picture(), subsampling)
    expected = reference.read(data)
    assert expected.shape == (3, ROWS * STRIPS, WIDTH)
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), expected)
        assert reference.same(file.read(window=(7, 30, 40, 20)), expected[:, 30:50, 7:47])
        assert reference.same(file.read(device=cogpu.GPU), expected)
        assert [file.band(i).interpretation for i in (1, 2, 3)] == ["red", "green", "blue"]


@pytest.mark.parametrize("height", [17, 40, 95])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_old_jpeg_of_odd_heights(way, height):
    data = way(picture(height)[:, :77], "420")
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), reference.read(data))


def test_old_jpeg_subsampling_of_the_stream_counts():
    """The stream is subsampled by 2 x 1, the tag says 2 x 2, or nothing."""
    array = picture()
    stream = encode(array, "422")
    for told in ("420", None):
        data = tiff(array, [stream], len(array), told)
        with cogpu.open_memory(data) as file:
            assert reference.same(file.read(), reference.read(data))


def test_old_jpeg_of_grey_and_rgb():
    """GDAL refuses these; libjpeg decodes them."""
    grey = picture()[..., :1]
    stream = bytes(imagecodecs.jpeg8_encode(np.ascontiguousarray(grey[..., 0]), level=90))
    with cogpu.open_memory(tiff(grey, [stream], len(grey), None, photometric=1)) as file:
        assert reference.same(file.read()[0], imagecodecs.jpeg8_decode(stream))
    stream = bytes(imagecodecs.jpeg8_encode(picture(), level=90, colorspace="RGB", outcolorspace="RGB"))
    with cogpu.open_memory(tiff(picture(), [stream], ROWS * STRIPS, None, photometric=2)) as file:
        expected = imagecodecs.jpeg8_decode(stream, colorspace="RGB", outcolorspace="RGB")
        assert reference.same(file.read(), np.ascontiguousarray(expected.transpose(2, 0, 1)))


def refused(data, status, text):
    with cogpu.open_memory(data) as file, pytest.raises(cogpu.CogpuError) as failure:
        file.read()
    assert failure.value.name == status and text in str(failure.value), failure.value


def test_old_jpeg_without_header():
    refused(tiff(picture(), [b"\x12" * 500], ROWS * STRIPS, "420"), "corrupt", "neither the tags nor the block")
    parts = Parts(picture(), "420", ROWS * STRIPS)
    past = 10 ** 6  # where no table is
    tags = {519: (tb.LONG, [past] * 3), 520: (tb.LONG, [past] * 3), 521: (tb.LONG, [past] * 3)}
    refused(tiff(picture(), parts.scans, ROWS * STRIPS, "420", tags), "corrupt", "neither the tags nor the block")


def test_old_jpeg_planar_is_unsupported():
    data = tb.image(picture().transpose(2, 0, 1), compression=OLD_JPEG, planar=True, photometric=YCBCR)
    refused(data, "unsupported", "compression 6 (old_jpeg) with a plane for each band is not supported")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_old_jpeg_damaged(way):
    """Whatever is wrong ends in a status: each byte of the file in turn, then files that end too early."""
    data = way(picture(40)[:, :40], "420")
    rng = np.random.default_rng(5)
    for at in rng.integers(8, len(data), 400):
        broken = bytearray(data)
        broken[at] ^= 1 << int(rng.integers(8))
        ends_in_a_status(bytes(broken))
    for end in rng.integers(8, len(data), 60):
        ends_in_a_status(data[:end])


def ends_in_a_status(data):
    try:
        with cogpu.open_memory(data) as file:
            if file.info().width * file.info().height < 1 << 20:
                file.read()
    except cogpu.CogpuError as failure:
        assert failure.name in ("corrupt", "unsupported", "not_tiff", "limit_exceeded", "invalid_argument"), failure
