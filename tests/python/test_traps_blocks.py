"""Files that broke other readers, built from bytes: blocks (docs/traps.md, section D).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import CORRUPT, UNSUPPORTED
from tiff_bytes import ASCII, LONG, SHORT
from trap_files import BYTES, GHOST, PIXELS, deflated, opened, pixels, reads, refused, tags, with_leaders


@pytest.mark.parametrize("width,height", [(100, 150), (257, 383), (512, 257)])
@pytest.mark.parametrize("planar", [False, True])
def test_T046_edge_tiles(width, height, planar):
    array = reference.noise(np.random.default_rng(4), (2, height, width), "u2")
    data = deflated(array, level=1, tile=(64, 48), planar=planar)
    assert reference.same(pixels(data), array)
    with opened(data) as file:
        window = (width - 1, height - 5, 1, 5)
        assert reference.same(file.read(window=window), array[:, -5:, -1:])
        assert file.last_result.blocks == (2 if planar else 1)


def sparse(planar=False, nodata=None, **how):
    """Of four tiles, or eight, every second is missing."""
    array = np.stack([np.arange(1, 32 * 32 + 1, dtype="u2").reshape(32, 32)] * 2)
    blocks = [zlib.compress(tb.block_bytes(b)) if i % 2 else None for i,
              b in enumerate(tb.cut(array, (16, 16), None, planar))]
    extra = tags((42113, ASCII, f"{nodata}\0")) if nodata is not None else {}
    expected = array.copy()
    expected[:, :, :16] = nodata or 0
    return tb.image(array, tile=(16, 16), planar=planar, compression=tb.DEFLATE, blocks=blocks,
                    tags=extra, **how), expected


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("nodata", [None, 77])
def test_T047_sparse(planar, nodata):
    data, expected = sparse(planar, nodata)
    assert reference.same(reference.read(data), expected)
    with opened(data) as file:
        assert reference.same(file.read(), expected)
        result = file.last_result
        assert (result.blocks, result.sparse_blocks,
                result.bad_blocks) == ((8, 4, 0) if planar else (4, 2, 0))


def test_T047_all_sparse():
    data = tb.image(PIXELS, rows=3, blocks=[None] * 4, tags=tags((42113, ASCII, b"513\0")))
    assert reference.same(pixels(data)[0], np.full_like(PIXELS, 513))


def test_T048_offset_without_count_is_sparse():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    tb.add_image(writer, PIXELS, rows=6, blocks=[(at, 120), (at + 120, 0)])
    expected = PIXELS.copy()
    expected[6:] = 0
    assert reference.same(reference.read(writer.bytes())[0], expected)
    assert reference.same(pixels(writer.bytes())[0], expected)


@pytest.mark.parametrize("order", "<>")
def test_T048_offset_without_count_behind_a_valid_leader(order):
    """The leader is little-endian in files of either order."""
    data, array = with_leaders(order, counts=lambda i, n: 0)
    assert reference.same(pixels(data)[0], array)


@pytest.mark.parametrize("lines", [GHOST[:2], GHOST[:4] + ["KNOWN_INCOMPATIBLE_EDITION=YES"]])
def test_T048_offset_without_count_and_no_promise(lines):
    data, array = with_leaders(lines=lines, counts=lambda i, n: 0)
    assert reference.same(pixels(data)[0], np.zeros_like(array))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("leader,trailer", [
    (lambda i, n: n + 4, None), (lambda i, n: 0, None), (lambda i, n: 0xFFFFFFFF, None),
    (None, lambda i, t: b"XXXX"),
    (lambda i, n: n - 1, lambda i, t: b"")])
def test_T074_wrong_leaders_and_trailers(order, leader, trailer):
    """The byte counts of the directory decide."""
    data, array = with_leaders(order, leader=leader or (lambda i, n: n),
                               trailer=trailer or (lambda i, t: t))
    assert reference.same(pixels(data)[0], array)


def test_T049_fewer_tiles_than_the_grid():
    array = np.zeros((64, 64), "u1")
    data = tb.image(array, tile=(16, 16), tags=tags((324, LONG, [8, 8]), (325, LONG, [256, 256])))
    refused(data, CORRUPT)


def test_T050_more_offsets_than_blocks():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    tb.add_image(writer, PIXELS, tags=tags((273, LONG, [at, 9, 9, 9]), (279, LONG, [240, 9, 9, 9])))
    reads(writer.bytes())


def test_T051_planar_tiles_by_band():
    array = np.stack([np.full((40, 50), value, "u1") for value in (3, 5, 7)])
    array[:, 20, 30] = (30, 50, 70)
    data = tb.image(array, planar=True, tile=(16, 32))
    with opened(data) as file:
        assert reference.same(file.read(), array)
        assert reference.same(file.read(bands=[2], window=(30, 20, 1, 1)), array[1:2, 20:21, 30:31])
        assert file.last_result.blocks == 1


@pytest.mark.parametrize("codec,encode", [(tb.DEFLATE, zlib.compress),
                                          (tb.ZSTD, imagecodecs.zstd_encode),
                                          (tb.LZMA, imagecodecs.lzma_encode),
                                          (tb.LZW, tb.lzw_encode),
                                          (tb.PACKBITS, tb.packbits_encode), (tb.NONE, bytes)])
def test_T052_block_too_short(codec, encode):
    """The second of two blocks holds a byte too few: an error that names it, no zeros."""
    halves = [encode(PIXELS[:6].tobytes()), encode(PIXELS[6:].tobytes()[:-1])]
    data = tb.image(PIXELS, rows=6, compression=codec, blocks=halves)
    error = refused(data, CORRUPT, at="read")
    assert (error.directory, error.block) == (0, 1) and error.offset > 0
    assert reference.same(pixels(data, window=(0, 0, 10, 6))[0], PIXELS[:6])


@pytest.mark.parametrize("codec,encode", [
    (tb.DEFLATE, zlib.compress), (tb.ZSTD, imagecodecs.zstd_encode), (tb.LZMA, imagecodecs.lzma_encode),
    (tb.LZW, tb.lzw_encode), (tb.PACKBITS, tb.packbits_encode), (tb.NONE, bytes)])
def test_T052_block_too_long(codec, encode):
    halves = [encode(PIXELS[:6].tobytes()), encode(PIXELS[6:].tobytes() + b"more")]
    reads(tb.image(PIXELS, rows=6, compression=codec, blocks=halves))


def test_T053_bad_block_is_filled_when_asked():
    array = np.arange(1, 65, dtype="u1").reshape(8, 8)
    good = zlib.compress(array[:4].tobytes())
    data = tb.image(array, rows=4, compression=tb.DEFLATE, blocks=[good, good[:-6]],
                    tags=tags((42113, ASCII, b"200\0")))
    assert refused(data, CORRUPT).block == 1
    with opened(data) as file:
        expected = array.copy()
        expected[4:] = 200
        assert reference.same(file.read(fill_bad_blocks=True)[0], expected)
        result = file.last_result
        assert (result.blocks, result.bad_blocks) == (2, 1)
        assert (result.first_bad.status, result.first_bad.block,
                result.first_bad.directory) == (CORRUPT, 1, 0)
        assert result.first_bad.message
        file.read(fill_bad_blocks=True, window=(0, 0, 8, 4))
        assert file.last_result.bad_blocks == 0


def test_T053_what_is_unsupported_is_not_filled():
    """Filling is for damage in blocks, not for files that cannot be read at all."""
    with opened(tb.image(PIXELS, compression=99)) as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(fill_bad_blocks=True)
        assert caught.value.status == UNSUPPORTED


@pytest.mark.parametrize("rows", [1, 5, 7, 11, 12, 13, 1000, 0xFFFFFFFF])
def test_T055_last_strip(rows):
    data = deflated(PIXELS, rows=min(rows, 1000), tags=tags((278, LONG, [rows])))
    reads(data)


@pytest.mark.parametrize("tile", [(16, 16), (64, 64), (1, 1), (10, 1), (3, 5), (128, 1), (1, 64),
                                  (1000, 2)])
def test_T056_tiles_of_any_size(tile):
    data = deflated(PIXELS, tile=tile)
    reads(data)
    for window in ((9, 11, 1, 1), (2, 4, 5, 3)):
        x, y, w, h = window
        assert reference.same(pixels(data, window=window)[0], PIXELS[y:y + h, x:x + w])


@pytest.mark.parametrize("width,height", [(8, 12), (10, 6), (20, 12), (10, 24), (9, 12), (10, 11)])
def test_T057_jpeg_of_another_size_than_its_block(width, height):
    raw = imagecodecs.jpeg_encode(np.full((height, width), 99, "u1"))
    data = tb.image(BYTES, compression=tb.JPEG, blocks=[raw])
    try:
        found = pixels(data)[0]
    except cogpu.CogpuError as error:
        assert error.status == CORRUPT and error.block == 0
        return
    assert width >= 10 and height >= 12, "a smaller picture cannot fill the block"
    assert np.all(found == 99)


@pytest.mark.parametrize("ratio", [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (1, 2)])
@pytest.mark.parametrize("codec,encode", [(tb.NONE, bytes), (tb.LZW, tb.lzw_encode)])
def test_T058_subsampled_ycbcr_without_jpeg(ratio, codec, encode):
    """As GDAL returns it, or a typed refusal."""
    across, down = ratio
    width, height = 21, 13
    units = -(-width // across) * -(-height // down)
    raw = np.random.default_rng(5).integers(0, 256, units * (across * down + 2),
                                            dtype="u1").tobytes()
    data = tb.image(np.zeros((3, height, width), "u1"), photometric=6, compression=codec,
                    blocks=[encode(raw)],
                    tags=tags((530, SHORT, ratio)))
    try:
        found = pixels(data)
    except cogpu.CogpuError as error:
        assert error.status == UNSUPPORTED, str(error)
        return
    assert reference.same(found, reference.read(data))


@pytest.mark.parametrize("ratio", [[0, 0], [0, 1], [1, 0], [3, 1], [65535, 65535]])
def test_T058_T215_impossible_subsampling(ratio):
    data = tb.image(np.zeros((3, 13, 21), "u1"), photometric=6, tags=tags((530, SHORT, ratio)))
    refused(data, CORRUPT, UNSUPPORTED)


def test_T058_subsampling_of_one_number():
    """It is left out, and the default holds: 2, 2."""
    data = tb.image((np.arange(360) % 251).astype("u1").reshape(3, 12, 10),
                    photometric=6, tags=tags((530, SHORT, [2])))
    assert reference.same(pixels(data), reference.read(data))


@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8])
def test_T059_orientation_is_reported_alone(orientation):
    info = reads(tb.image(PIXELS, tags=tags((274, SHORT, [orientation]))))
    assert info.orientation == orientation


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_T059_orientation_that_is_none(orientation):
    assert reads(tb.image(PIXELS, tags=tags((274, SHORT, [orientation])))).orientation == 1


def test_T061_blocks_that_share_bytes():
    writer = tb.Writer()
    at = writer.add(PIXELS.tobytes())
    places = [(at, 60), (at, 60), (at + 20, 60), (at + 10, 60)]
    tb.add_image(writer, PIXELS, rows=3, blocks=places)
    flat = PIXELS.ravel()
    expected = np.concatenate([flat[start:start + 30] for start in (0, 0, 10, 5)]).reshape(12, 10)
    reads(writer.bytes(), expected)
