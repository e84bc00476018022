"""Files that broke other readers, built from bytes: nodata (docs/traps.md, section G).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from tiff_bytes import ASCII
from trap_files import PIXELS, opened, tags


def with_nodata(text, array=PIXELS):
    return tb.image(array, tags=tags((42113, ASCII,
                                      text if isinstance(text, bytes) else text.encode() + b"\0")))


@pytest.mark.parametrize("text", ["-9999", "65536", "1e400", "nan", "inf", "-inf", "0.5", "", " ",
                                  "abc", "--1", "e5"])
def test_T109_T110_T111_T124_nodata_that_no_sample_equals(text):
    with opened(with_nodata(text)) as file:
        info = file.info()
        assert not info.nodata.matches
        assert info.mask_source == cogpu.MASK_NONE
        assert (info.nodata.text or "") in (text, text.strip())
        assert reference.same(file.read()[0], PIXELS)
        assert np.all(file.mask() == 255)


@pytest.mark.parametrize("text,value", [("7", 7), (" 7", 7), ("7 ", 7), ("7.0", 7), ("7e0", 7),
                                        ("+7", 7), ("007", 7), ("65535", 65535)])
def test_T124_nodata_texts(text, value):
    with opened(with_nodata(text)) as file:
        info = file.info()
        assert info.nodata.matches and info.nodata.value == value
        assert reference.same(file.mask(), np.where(PIXELS == value, 0, 255).astype("u1"))


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
        with opened(data) as file, reference.opened(data) as expected:
            assert file.mask().tolist() == [mask]
            assert reference.same(file.read()[0], array)
            if text != "nan":
                continue
            assert expected.read_masks(1).tolist() == [mask]


def test_T116_float_nodata_is_compared_after_rounding():
    array = np.array([[0.1, 0.2]], "f4")
    data = with_nodata("0.1", array)
    with opened(data) as file, reference.opened(data) as expected:
        assert reference.same(file.mask(), expected.read_masks(1))
        assert file.mask().tolist() == [[0, 255]]
