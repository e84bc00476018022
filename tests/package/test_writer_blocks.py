"""Blocks and overviews that are made elsewhere than where a file is written: the file is the same, byte by byte."""

import concurrent.futures

import numpy as np
import pytest
from cogpu import _cogpu, errors
from test_writer import COG, pixels, profile_of, write


def window_of(level, index):
    """x, y, width, height of a block in its level, and its plane."""
    across, down = (-(-level[size] // level["block_" + size]) for size in ("width", "height"))
    plane, rest = divmod(index, across * down)
    y, x = (rest // across) * level["block_height"], (rest % across) * level["block_width"]
    return (x, y, min(level["block_width"], level["width"] - x), min(level["block_height"], level["height"] - y)), plane


def cut(array, window):
    x, y, width, height = window
    return array[..., y:y + height, x:x + width]


def make_levels(profile, array, mask):
    """Pixels and mask of all levels, made window by window."""
    levels = [(array, mask)]
    for number, level in enumerate(_cogpu.level_layouts(profile)[1:], 1):
        whole = np.zeros((len(array), level["height"], level["width"]), array.dtype)
        whole_mask = None if mask is None else np.zeros(whole.shape[1:], "uint8")
        for index in range(level["blocks"] // (len(array) if profile.get("interleave") else 1)):
            window, _ = window_of(level, index)
            needs = _cogpu.overview_source_window(profile, number, window)
            pixels_, mask_ = (None if part is None else cut(part, needs) for part in levels[-1])
            made, made_mask = _cogpu.overview_compute(profile, number, window, pixels_, mask_)
            assert made.shape == (len(array), window[3], window[2]) and (made_mask is None) == (mask is None)
            cut(whole, window)[:] = np.from_dlpack(made)
            if mask is not None:
                cut(whole_mask, window)[:] = np.from_dlpack(made_mask)[0]
        levels.append((whole, whole_mask))
    return levels


def encode_all(profile, levels):
    """(level, part, block, bytes) of all blocks, the last first."""
    for number, level in reversed(list(enumerate(_cogpu.level_layouts(profile)))):
        array, mask = levels[number]
        for index in range(level["blocks"]):
            window, plane = window_of(level, index)
            bands = array[plane:plane + 1] if profile.get("interleave") else array
            yield number, "pixels", index, _cogpu.encode_block(profile, number, "pixels", index, cut(bands, window))
            if mask is not None and plane == 0:
                yield number, "mask", index, _cogpu.encode_block(profile, number, "mask", index, cut(mask, window))


@pytest.mark.parametrize("has_mask", [False, True], ids=["", "mask"])
@pytest.mark.parametrize("fields", [
    COG, COG | {"interleave": "band"}, COG | {"resampling": "cubic"},
    COG | {"nodata": "nan", "sparse": True, "resampling": "mode"},
    {"strips": True, "block_height": 9, "overview_factors": [2, 6]},
    {"block_width": 32, "block_height": 16, "overview_factors": [3]},
    COG | {"nodata": "-9999", "nan_is_nodata": True, "resampling": "bilinear"}],
    ids=["cog", "planar", "cubic", "sparse", "strips", "overview_factors", "nan"])
def test_elsewhere_is_here(fields, has_mask):
    """Blocks that are made one by one give the file that rows give."""
    array = pixels(bands=2)
    array[:, 20:60, 10:60] = np.nan
    mask = np.where(np.isnan(array[0]), 0, 255).astype("uint8") if has_mask else None
    profile = profile_of(array, mask=has_mask, **fields)
    writer = _cogpu.Writer(None, profile)
    for block in encode_all(profile, make_levels(profile, array, mask)):
        writer.write_block(*block)
    assert bytes(writer.close()["memory"]) == write(array, mask=mask, **fields)


def test_outline():
    layouts = _cogpu.level_layouts(profile_of(pixels(bands=2), interleave="band", **COG))
    most = [level.pop("max_bytes") for level in layouts]
    assert all(len(write(pixels(bands=2), interleave="band", **COG)) > bytes > level["blocks"] * 32 * 32
               for bytes, level in zip(most[1:], layouts[1:]))
    assert layouts == [
        {"levels": 3, "width": 70, "height": 90, "block_width": 32, "block_height": 32, "blocks": 18},
        {"levels": 3, "width": 35, "height": 45, "block_width": 32, "block_height": 32, "blocks": 8},
        {"levels": 3, "width": 18, "height": 23, "block_width": 32, "block_height": 32, "blocks": 2}]


@pytest.mark.parametrize("fields", [{}, {"interleave": "band"}, {"mask": True}, {"sparse": True, "nodata": "0"}],
                         ids=str)
def test_level_0_may_stay_elsewhere(fields):
    array = pixels(bands=2)
    array[:, :40] = 0
    mask = (array[0] > 3).astype("uint8") if fields.get("mask") else None
    profile, blocks, sizes = profile_of(array, **COG | fields), {}, []
    writer = _cogpu.Writer(None, profile)
    for level, part, block, data in encode_all(profile, make_levels(profile, array, mask)):
        if level == 0:
            blocks[block % 9, part == "pixels" and -1, block] = data
        writer.write_block(level, part, block, len(data) if level == 0 else data)
        sizes.append(len(data))
    written = writer.close()
    made = bytes(written["memory"]) + _cogpu.add_leaders_trailers([blocks[key] for key in sorted(blocks)])
    assert made == write(array, mask=mask, **COG | {name: value for name, value in fields.items() if name != "mask"})
    assert written["bytes"] == len(made) and (0 in sizes) == ("sparse" in fields)


def test_frame():
    assert _cogpu.add_leaders_trailers([]) == b""
    assert _cogpu.add_leaders_trailers((b"abcdef", b"", b"xy")) == b"\6\0\0\0abcdefcdef" + b"\2\0\0\0xyxy\0\0"
    for wrong in (5, [5], ["a"], [bytearray(5)]):
        with pytest.raises(TypeError):
            _cogpu.add_leaders_trailers(wrong)


def test_blocks_that_cannot_stay_elsewhere():
    for fields, level in ((COG, 1), ({}, 0)):
        writer = _cogpu.Writer(None, profile_of(pixels(), **fields))
        with pytest.raises(errors.InvalidArgumentError, match="level 0 of a COG"):
            writer.write_block(level, "pixels", 0, 100)
    for size in (-1, 1 << 64, True, 2.0):
        with pytest.raises((errors.InvalidArgumentError, TypeError)):
            _cogpu.Writer(None, profile_of(pixels(), **COG)).write_block(0, "pixels", 0, size)


def test_blocks_are_encoded_in_many_threads():
    array = pixels(height=128, width=128)
    profile = profile_of(array, **COG)
    blocks = range(_cogpu.level_layouts(profile)[0]["blocks"])

    def encode(index):
        window = window_of(_cogpu.level_layouts(profile)[0], index)[0]
        return _cogpu.encode_block(profile, 0, "pixels", index, cut(array, window))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(encode, blocks)) == [encode(index) for index in blocks]


def test_encode_refuses():
    array = pixels()
    profile = profile_of(array, **COG)
    block = array[:, :32, :32]
    assert isinstance(_cogpu.encode_block(profile, 0, "pixels", 0, block), bytes)
    for level, part, index, data in ((9, "pixels", 0, block), (0, "mask", 0, block), (0, "pixels", 99, block),
                                     (0, "pixels", 0, array), (0, "pixels", 0, block.astype("float64")),
                                     (0, "pixel", 0, block),
                                     (-1, "pixels", 0, block), (0, "pixels", -1, block)):
        with pytest.raises(errors.InvalidArgumentError):
            _cogpu.encode_block(profile, level, part, index, data)
    for level, part, index, data in ((True, "pixels", 0, block), (0, 0, 0, block), (0, "pixels", 0.5, block),
                                     (0, "pixels", 0, None)):
        with pytest.raises(TypeError):
            _cogpu.encode_block(profile, level, part, index, data)


def test_put_refuses():
    array = pixels()
    profile = profile_of(array, **COG)
    encoded = _cogpu.encode_block(profile, 0, "pixels", 0, array[:, :32, :32])
    writer = _cogpu.Writer(None, profile)
    for level, part, index, data in ((True, "pixels", 0, encoded), (0, "pixels", 0, "text"), (0, 5, 0, encoded)):
        with pytest.raises(TypeError):
            writer.write_block(level, part, index, data)
    writer.write_block(0, "pixels", 0, memoryview(bytearray(encoded)))
    with pytest.raises(errors.InvalidArgumentError, match="written before"):
        writer.write_block(0, "pixels", 0, encoded)
    with pytest.raises(errors.InvalidArgumentError, match="closed"):
        writer.write_block(0, "pixels", 1, encoded)


def test_overviews_refuse():
    array = pixels()
    profile = profile_of(array, **COG)
    for level, window in (0, (0, 0, 8, 8)), (9, (0, 0, 8, 8)), (1, (0, 0, 99, 8)), (1, (0, 0, 8)), (1, (-1, 0, 8, 8)):
        with pytest.raises(errors.Error):
            _cogpu.overview_source_window(profile, level, window)
        with pytest.raises(errors.Error):
            _cogpu.overview_compute(profile, level, window, array)
    with pytest.raises(errors.InvalidArgumentError):
        _cogpu.overview_compute(profile, 1, (0, 0, 8, 8), array[:, :3])
    with pytest.raises(errors.InvalidArgumentError):
        needs = _cogpu.overview_source_window(profile, 1, (0, 0, 8, 8))
        _cogpu.overview_compute(profile, 1, (0, 0, 8, 8), cut(array, needs), array[0])
    with pytest.raises(TypeError):
        _cogpu.overview_source_window(profile, 1, 5)
