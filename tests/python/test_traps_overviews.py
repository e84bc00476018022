"""Files that broke other readers, built from bytes: overviews, masks and COG (docs/traps.md, section E).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import INVALID_ARGUMENT, NOT_FOUND
from tiff_bytes import DOUBLE, LONG, SHORT
from trap_files import BYTES, GHOST, PIXELS, opened, pixels, reads, tags, with_leaders


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
        assert file.info().levels == 2 and file.info().mask_source == cogpu.MASK_DIRECTORY
        assert reference.same(file.read(level=1)[0], PIXELS[::2, ::2])
        assert reference.same(file.mask(), mask * np.uint8(255))
        assert reference.same(file.mask(level=1), mask[::2, ::2] * np.uint8(255))


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
        assert reference.same(file.read()[0], array)
        assert bool(file.info().ghost & 1) == present
        assert bool(file.info().ghost & 64) == any("=YES" in line for line in lines)


@pytest.mark.parametrize("digits", [b"000000", b"999999", b"00001x", b"-00001", b"000003"])
def test_T072_ghost_of_wrong_size(digits):
    data, array = with_leaders()
    at = data.index(b"SIZE=") + 5
    data = data[:at] + digits + data[at + 6:]
    assert reference.same(pixels(data)[0], array)


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
        assert reference.same(file.mask(), mask * np.uint8(255))
        assert reference.same(file.read(level=1)[0], PIXELS[::2, ::2])
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
        assert reference.same(file.read(image=2)[0], PIXELS + np.uint16(4))
        with pytest.raises(cogpu.CogpuError) as caught:
            file.info(3)
        assert caught.value.status in (NOT_FOUND, INVALID_ARGUMENT)


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
        assert reference.same(file.read()[0], PIXELS[:5, :5])


def test_T192_levels_that_are_not_there():
    with opened(tb.image(PIXELS)) as file:
        for ask in (lambda: file.level(1),
                    lambda: file.read(level=1, out=np.zeros((1, 12, 10), "u2"))):
            with pytest.raises(cogpu.CogpuError) as caught:
                ask()
            assert caught.value.status in (NOT_FOUND, INVALID_ARGUMENT)
