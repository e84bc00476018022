"""Files that broke other readers, built from bytes: samples, bits, byte order, predictors
(docs/traps.md, sections B and C).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import zlib

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import CORRUPT, INVALID_ARGUMENT, UNSUPPORTED
from tiff_bytes import SHORT, Raw
from trap_files import BYTES, PIXELS, deflated, opened, pixels, reads, refused, tags

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
    assert reference.same(pixels(data)[0], values)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("predictor", [1, 2, 3])
def test_T025_float16(order, predictor):
    array = reference.noise(np.random.default_rng(1), (1, 9, 13), "f2")
    data = deflated(array, order=order, predictor=predictor)
    assert reference.same(reference.read(data), array)
    assert reference.same(pixels(data), array)


@pytest.mark.parametrize("dtype", ["u2", "i4", "f8", "u8"])
def test_T028_big_endian(dtype):
    array = reference.noise(np.random.default_rng(2), (2, 9, 13), dtype)
    data = tb.image(array, order=">")
    assert reference.same(pixels(data), array)


def test_T032_min_is_white_is_not_inverted():
    info = reads(tb.image(BYTES, photometric=0), BYTES)
    assert info.photometric == 0


def test_T033_four_bands_are_not_rgba_by_themselves():
    array = np.stack([BYTES] * 4)
    with opened(tb.image(array, photometric=1)) as file:
        assert [file.band(i).interpretation for i in range(1, 5)] == ["gray", "undefined",
                                                                      "undefined", "undefined"]
        assert file.info().alpha_band == 0 and file.info().mask_source == cogpu.MASK_NONE


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("bands", [[1], [4], [3, 2, 1], [4, 4, 1], [2, 1, 2, 3, 4, 1, 1]])
def test_T034_band_subset_and_order(planar, bands):
    array = np.stack([PIXELS + np.uint16(1000 * i) for i in range(4)])
    data = tb.image(array, planar=planar, tile=(16, 16))
    assert reference.same(pixels(data, bands=bands), array[[b - 1 for b in bands]])


@pytest.mark.parametrize("bands", [[0], [5], [1, 99], [2 ** 32 - 1]])
def test_T192_bands_that_are_not_there(bands):
    with opened(tb.image(np.stack([PIXELS] * 4))) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(bands=bands, out=np.zeros((len(bands), 12, 10), "u2"))
    assert caught.value.status == INVALID_ARGUMENT


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
    array = reference.noise(np.random.default_rng(3), shape, dtype)
    for layout in ({"rows": 1}, {"tile": (16, 16)}, {"rows": 99}):
        data = deflated(array, predictor=predictor, **layout)
        assert reference.same(pixels(data), array)
