"""TIFF files byte by byte, from tags and blocks, valid or not.

A writer that shares nothing with the library or with GDAL: the reference for both. `Writer` places what it
is told where it is told; `image` writes an array as a plain file with it, any tag of which may be
replaced or dropped.
"""

import struct

import numpy as np

BYTE, ASCII, SHORT, LONG, RATIONAL, SBYTE, UNDEFINED, SSHORT, SLONG, SRATIONAL, FLOAT, DOUBLE, IFD = range(1, 14)
LONG8, SLONG8, IFD8 = 16, 17, 18
FORMATS = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", RATIONAL: "I", SBYTE: "b", UNDEFINED: "B",
           SSHORT: "h", SLONG: "i", SRATIONAL: "i", FLOAT: "f", DOUBLE: "d", IFD: "I", LONG8: "Q",
           SLONG8: "q", IFD8: "Q"}

NONE, LZW, JPEG, DEFLATE, PACKBITS, OLD_DEFLATE, LERC, LZMA, ZSTD, WEBP = (
    1, 5, 7, 8, 32773, 32946, 34887, 34925, 50000, 50001)


class Raw:
    """A tag entry whose count and value field are given as they are: for lies."""

    def __init__(self, count, field):
        self.count, self.field = count, field


class Writer:
    """Appends data and directories; directories are chained unless told otherwise."""

    def __init__(self, order="<", big=False, ghost=b""):
        self.order, self.big = order, big
        mark = b"II" if order == "<" else b"MM"
        if big:
            self.data = bytearray(mark + self.pack("HHHQ", 43, 8, 0, 0))
        else:
            self.data = bytearray(mark + self.pack("HI", 42, 0))
        self.data += ghost
        self.link = len(mark) + (6 if big else 2)

    def pack(self, format, *values):
        return struct.pack(self.order + format, *values)

    def add(self, data, align=2):
        """Appends bytes; returns where they stand."""
        self.data += bytes(-len(self.data) % align)
        offset = len(self.data)
        self.data += data
        return offset

    def _entry(self, tag, type, values):
        room = 8 if self.big else 4
        count_format = "Q" if self.big else "I"
        if isinstance(values, Raw):
            field = values.field
            if isinstance(field, int):
                field = self.pack(count_format, field)
            return self.pack("HH" + count_format, tag, type, values.count) + field.ljust(room,
                                                                                         b"\0")
        if isinstance(values, (bytes, str)):
            raw = values.encode() if isinstance(values, str) else values
            count = len(raw)
        else:
            values = np.atleast_1d(values).ravel().tolist()
            raw = self.pack(f"{len(values)}{FORMATS.get(type, 'B')}", *values)
            count = len(values) // (2 if type in (RATIONAL, SRATIONAL) else 1)
        if len(raw) > room:
            raw = self.pack(count_format, self.add(raw))
        return self.pack("HH" + count_format, tag, type, count) + raw.ljust(room, b"\0")

    def directory(self, tags, chain=True, align=2):
        """Appends a directory of (tag, type, values) entries in the order given; returns its offset."""
        entries = [self._entry(*tag) for tag in tags]
        body = self.pack("Q" if self.big else "H", len(entries)) + b"".join(entries)
        offset = self.add(body, align)
        end = len(self.data)
        self.data += self.pack("Q" if self.big else "I", 0)
        if chain:
            self.set_link(self.link, offset)
            self.link = end
        return offset

    def set_link(self, at, offset):
        self.data[at:at + (8 if self.big else 4)] = self.pack("Q" if self.big else "I", offset)

    def bytes(self):
        return bytes(self.data)


# ---- samples, predictors, blocks ---------------------------------------------------------------

def sample_format(dtype):
    """(BitsPerSample, SampleFormat) of a NumPy type; a pair of fields is a complex integer."""
    dtype = np.dtype(dtype)
    kind = {"u": 1, "i": 2, "f": 3, "V": 5, "c": 6}[dtype.kind]
    return 8 * dtype.itemsize, kind


def pack_bits(rows, bits):
    """Rows of unsigned numbers as `bits` bits each, most significant first, each row padded to a byte."""
    rows = np.asarray(rows, np.uint64)
    places = np.arange(bits - 1, -1, -1, dtype=np.uint64)
    spread = (rows[..., None] >> places & np.uint64(1)).astype(np.uint8)
    return np.packbits(spread.reshape(len(rows), -1), axis=1).tobytes()


def in_order(array, order):
    """The samples' bytes in a byte order; the parts of complex samples are swapped one by one."""
    dtype = array.dtype
    if dtype.kind == "V":
        dtype = dtype[0]
    elif dtype.kind == "c":
        dtype = np.dtype(f"f{dtype.itemsize // 2}")
    flat = np.ascontiguousarray(array).view(dtype.newbyteorder("="))
    return flat.astype(dtype.newbyteorder(order))


def difference_words(block, order):
    """Predictor 2: each sample less the one before it, as integers of its own width."""
    words = np.ascontiguousarray(block).view(f"u{block.dtype.itemsize}")
    out = words.copy()
    out[:, 1:] = words[:, 1:] - words[:, :-1]
    return in_order(out, order).tobytes()


def difference_planes(block):
    """Predictor 3: bytes of a row gathered by significance, highest first, then differences of bytes."""
    height, width, samples = block.shape
    size = block.dtype.itemsize
    planes = np.ascontiguousarray(in_order(block, ">")).view("u1").reshape(height, width * samples,
                                                                           size)
    rows = planes.transpose(0, 2, 1).reshape(height, -1)
    out = rows.copy()
    out[:, samples:] = rows[:, samples:] - rows[:, :-samples]
    return out.tobytes()


def block_bytes(block, order="<", predictor=1, bits=None):
    """A block (height, width, samples) as it is before compression."""
    if bits == 24:  # GDAL packs these as all odd depths, but swaps their bytes in MM files
        octets = block.astype(">u4")[..., None].view("u1")[..., 1:]
        return (octets if order == "<" else octets[..., ::-1]).tobytes()
    if bits is not None and bits % 8:
        return pack_bits(block.reshape(len(block), -1), bits)
    if predictor == 2:
        return difference_words(block, order)
    if predictor == 3:
        return difference_planes(block)
    return in_order(block, order).tobytes()


def cut(array, tile=None, rows=None, planar=False):
    """The blocks of (bands, height, width), in TIFF's order, each (height, width, samples)."""
    bands, height, width = array.shape
    for plane in (array[b:b + 1] for b in range(bands)) if planar else (array,):
        if tile:
            tw, th = tile
            padded = np.pad(plane, ((0, 0), (0, -height % th), (0, -width % tw)), mode="edge")
            for y in range(0, height, th):
                for x in range(0, width, tw):
                    yield padded[:, y:y + th, x:x + tw].transpose(1, 2, 0)
        else:
            for y in range(0, height, rows or height):
                yield plane[:, y:y + (rows or height)].transpose(1, 2, 0)


def image_tags(array, order="<", compression=NONE, predictor=1, tile=None, rows=None, planar=False,
               bits=None, format=None, photometric=1):
    """The tags of a plain image without those that place its blocks: tag -> (type, values)."""
    bands, height, width = array.shape
    own_bits, own_format = sample_format(array.dtype)
    tags = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, [bits or own_bits] * bands),
            259: (SHORT, [compression]), 262: (SHORT, [photometric]), 277: (SHORT, [bands]),
            284: (SHORT, [2 if planar else 1]), 339: (SHORT, [format or own_format] * bands)}
    if tile:
        tags |= {322: (LONG, [tile[0]]), 323: (LONG, [tile[1]])}
    else:
        tags |= {278: (LONG, [rows or height])}
    if predictor != 1:
        tags |= {317: (SHORT, [predictor])}
    return tags


def add_image(writer, array, encode=bytes, blocks=None, tags=None, drop=(), chain=True, **layout):
    """Writes an array as one directory. `blocks` replaces the encoded blocks (None: sparse; a pair:
    offset and count as they are); `tags` replaces or adds tags; `drop` leaves some out."""
    array = np.asarray(array)
    array = array[None] if array.ndim == 2 else array
    all_tags = image_tags(array, writer.order, **layout)
    if blocks is None:
        cuts = cut(array, layout.get("tile"), layout.get("rows"), layout.get("planar", False))
        blocks = [encode(block_bytes(block, writer.order, layout.get("predictor", 1),
                                     layout.get("bits")))
                  for block in cuts]
    places = [place_block(writer, block) for block in blocks]
    first = 324 if layout.get("tile") else 273
    second = 325 if layout.get("tile") else 279
    all_tags[first] = (LONG8 if writer.big else LONG, [offset for offset, _ in places])
    all_tags[second] = (LONG8 if writer.big else LONG, [count for _, count in places])
    all_tags |= tags or {}
    entries = [(tag, *all_tags[tag]) for tag in sorted(all_tags) if tag not in drop]
    return writer.directory(entries, chain)


def place_block(writer, block):
    if block is None:
        return 0, 0
    if isinstance(block, tuple):
        return block
    return writer.add(block), len(block)


def image(array, order="<", big=False, ghost=b"", **how):
    """The bytes of a file that holds an array, (height, width) or (bands, height, width)."""
    writer = Writer(order, big, ghost)
    add_image(writer, array, **how)
    return writer.bytes()


# ---- streams -----------------------------------------------------------------------------------

class BitWriter:
    """Bits into bytes, most significant first, or least significant first for old LZW."""

    def __init__(self, low_first=False):
        self.low_first, self.bits = low_first, []

    def put(self, value, width):
        places = range(width) if self.low_first else range(width - 1, -1, -1)
        self.bits += [value >> place & 1 for place in places]

    def bytes(self):
        packed = np.packbits(np.array(self.bits, np.uint8),
                             bitorder="little" if self.low_first else "big")
        return packed.tobytes()


def lzw_codes(codes, low_first=False, early=1):
    """LZW codes as a stream, each as wide as the table is then; for streams made by hand."""
    out, entries, since_clear = BitWriter(low_first), 258, 0
    width = 9
    for code in codes:
        out.put(code, width)
        if code == 256:
            entries, since_clear, width = 258, 0, 9
            continue
        since_clear += 1
        if since_clear > 1:
            entries = min(entries + 1, 4096)
        if width < 12 and entries + early >= 1 << width:
            width += 1
    return out.bytes()


def lzw_encode(data, low_first=False, early=1):
    """TIFF's LZW: Clear first, a Clear before the table is full, EOI last."""
    codes, table, word = [256], {bytes([i]): i for i in range(256)}, b""
    following = 258
    for value in data:
        longer = word + bytes([value])
        if longer in table:
            word = longer
            continue
        codes.append(table[word])
        table[longer] = following
        following += 1
        if following == 4094:
            codes.append(256)
            table, following = {bytes([i]): i for i in range(256)}, 258
        word = bytes([value])
    if word:
        codes.append(table[word])
    return lzw_codes(codes + [257], low_first, early)


def packbits_encode(data):
    """Literal runs alone: legal, and enough for tests of the decoder's other half by hand."""
    out = b""
    for start in range(0, len(data), 128):
        run = data[start:start + 128]
        out += bytes([len(run) - 1]) + run
    return out


def reverse_bits(data):
    return bytes(int(f"{value:08b}"[::-1], 2) for value in data)
