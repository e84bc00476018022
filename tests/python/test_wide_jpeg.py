"""JPEG of more than 8 bits, and lossless JPEG: the pixels that imagecodecs decodes where the installed libjpeg-turbo can
decode them (version 3 and later), else an error that names the version."""

import cogpu_ctypes as cogpu
import imagecodecs
import numpy as np
import pytest
import tiff_bytes as tb

HEIGHT, WIDTH = 48, 64


def samples(bits, bands):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    band = ((np.sin(x / 17) + np.cos(y / 13) + 2) / 4 * ((1 << bits) - 1)).astype("u2" if bits > 8 else "u1")
    return band if bands == 1 else np.stack([band, band[::-1], band[:, ::-1]], -1).copy()


def one_strip(stream, bits, bands):
    writer = tb.Writer()
    offset = writer.add(stream)
    writer.directory([(256, tb.SHORT, WIDTH), (257, tb.SHORT, HEIGHT), (258, tb.SHORT, [bits] * bands),
                      (259, tb.SHORT, tb.JPEG), (262, tb.SHORT, 1 if bands == 1 else 2), (273, tb.LONG, offset),
                      (277, tb.SHORT, bands), (278, tb.SHORT, HEIGHT), (279, tb.LONG, len(stream))])
    return writer.bytes()


def read_or_unsupported(path):
    """The pixels as (row, column[, band]), or None where this libjpeg cannot decode them."""
    with cogpu.open(path) as file:
        try:
            return np.moveaxis(file.read(), 0, -1).squeeze()
        except cogpu.CogpuError as error:
            assert error.status == cogpu.UNSUPPORTED and "libjpeg-turbo" in error.message and "3" in error.message
            return None


@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
def test_lossless_jpeg(bits, bands, tmp_path):
    pixels = samples(bits, bands)
    stream = imagecodecs.jpeg8_encode(pixels, bitspersample=bits, lossless=True, predictor=1)
    (tmp_path / "a.tif").write_bytes(one_strip(stream, bits, bands))
    found = read_or_unsupported(tmp_path / "a.tif")
    assert found is None or np.array_equal(found, pixels)


def test_twelve_bit_jpeg(tmp_path):
    stream = imagecodecs.jpeg8_encode(samples(12, 1), level=95, bitspersample=12)
    (tmp_path / "a.tif").write_bytes(one_strip(stream, 12, 1))
    found = read_or_unsupported(tmp_path / "a.tif")
    assert found is None or np.array_equal(found, imagecodecs.jpeg8_decode(stream))
