"""Tags that have a default and do not hold what they should: the file opens with a warning, and has GDAL's pixels.

What libtiff takes for one number: an integer type, one value, 65535 at most. All else it leaves out with a warning.
"""

import io
import subprocess
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
import tifffile
from conftest import BIN

RANDOM = np.random.default_rng(4)
ONE, THREE, FOUR = (RANDOM.integers(0, 256, (bands, 20, 33), dtype="u1") for bands in (1, 3, 4))
RAMP = (np.add.outer(np.arange(16), np.arange(32)) * 4 % 256).astype("u1")
DEFLATE = {"compression": tb.DEFLATE, "encode": zlib.compress}
WHOLE = {530: (tb.SHORT, [1, 1])}

# Tag: its valid value, and an image that has or could have it.
OPTIONAL = {
    254: (0, ONE, {}), 255: (1, ONE, {}), 262: (2, THREE, {"photometric": 2}), 266: (1, ONE, {}), 274: (1, ONE, {}), 282: (72, ONE, {}),
    296: (2, ONE, {}), 317: (2, ONE, {"predictor": 2, **DEFLATE}), 332: (1, FOUR, {"photometric": 5}),
    338: (0, FOUR, {"photometric": 2}), 529: (1, THREE, {"photometric": 6, "tags": WHOLE}), 530: (1, THREE, {"photometric": 6}),
    532: (1, THREE, {"photometric": 6, "tags": WHOLE}),
    347: (1, RAMP, {"compression": tb.JPEG, "blocks": [imagecodecs.jpeg_encode(RAMP)]}),
    50674: (0, RAMP, {"compression": tb.LERC, "blocks": [imagecodecs.lerc_encode(RAMP)]}),
}
VARIANTS = {
    "text": lambda value: (tb.ASCII, bytes([value])), "double": lambda value: (tb.DOUBLE, [value]),
    "float": lambda value: (tb.FLOAT, [value]), "rational": lambda value: (tb.RATIONAL, [value, 1]),
    "undefined": lambda value: (tb.UNDEFINED, [value]), "directory": lambda value: (tb.IFD, [value]),
    "no type": lambda value: (99, [value]), "no values": lambda _: (tb.SHORT, tb.Raw(0, 0)),
    "two values": lambda value: (tb.SHORT, [value, value]), "three values": lambda value: (tb.SHORT, [value] * 3),
    "outside": lambda _: (tb.SHORT, tb.Raw(100, 0xFFFFFF0)), "negative": lambda _: (tb.SSHORT, [-1]),
    "large": lambda _: (tb.LONG, [65536 + 1]),
    "byte": lambda value: (tb.BYTE, [value]), "long": lambda value: (tb.LONG, [value]), "short": lambda value: (tb.SHORT, [value]),
}
VALID = "byte", "long", "short"
NUMBERS = {262: 1, 266: 1, 274: 1, 317: 1, 332: 1, 529: 3, 530: 2, 532: 6}  # that they hold, where we read them


def made(tag, entry):
    _, array, layout = OPTIONAL[tag]
    layout = {"rows": 7, **layout} if "blocks" not in layout else dict(layout)
    return tb.image(array, **{**layout, "tags": layout.get("tags", {}) | {tag: entry}})


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tag", OPTIONAL)
def test_optional_tag(tag, variant):
    data = made(tag, VARIANTS[variant](OPTIONAL[tag][0]))
    with cogpu.open_memory(data) as file:
        info = file.info()
        if not reference.refuses(data):
            assert reference.same(file.read(), reference.read(data))
    numbers = {"two values": 2, "three values": 3}.get(variant, 1 if variant in VALID else 0)
    if tag in NUMBERS:
        assert (info.warning == "") == (numbers == NUMBERS[tag]), info.warning


@pytest.mark.parametrize("tag, value, default", [(274, 0, 1), (274, 9, 1), (266, 0, 1), (266, 3, 1)])
def test_optional_tag_out_of_range(tag, value, default):
    with cogpu.open_memory(tb.image(ONE, rows=7, tags={tag: (tb.SHORT, [value])})) as file:
        info = file.info()
        assert reference.same(file.read(), ONE)
    assert f"{default} is used" in info.warning and info.orientation == 1 and info.fill_order == 1


def test_optional_tag_t4_options():
    """One-dimensional lines, which is the default: as libtiff's own reader has it."""
    bits = (RANDOM.random((1, 20, 33)) < 0.3).astype("u1")
    with tifffile.TiffFile(io.BytesIO(reference.write(bits, compress="ccittfax3", nbits=1))) as file:
        page = file.pages[0]
        blocks = [file.filehandle.read_array("u1", size, offset=at).tobytes() for at, size in zip(page.dataoffsets, page.databytecounts)]
        rows = page.rowsperstrip
    data = tb.image(bits, compression=3, bits=1, rows=rows, blocks=blocks, tags={292: (tb.ASCII, b"\0")})
    with cogpu.open_memory(data) as file:
        assert "T4Options" in file.info().warning
        assert reference.same(file.read(), bits) and reference.same(reference.read(data), bits)


@pytest.mark.parametrize("tag", [256, 257, 258, 259, 277, 284, 322, 339])
def test_tags_that_pixels_need(tag):
    """GDAL refuses the file, and so do we."""
    data = tb.image(ONE, tile=(16, 16), tags={tag: (tb.ASCII, b"16")})
    assert reference.refuses(data)
    with pytest.raises(cogpu.CogpuError) as error:
        cogpu.open_memory(data)
    assert error.value.status == cogpu.CORRUPT


def test_optional_tag_in_the_command_line(tmp_path):
    (tmp_path / "a.tif").write_bytes(made(274, (tb.ASCII, b"1")))
    done = subprocess.run([BIN, "info", tmp_path / "a.tif"], capture_output=True, text=True)
    assert done.returncode == 0 and "Orientation" in done.stdout + done.stderr
