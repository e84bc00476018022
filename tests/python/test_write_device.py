"""Files that a device writes: the emulated GPU, unless COGPU_DEVICES says cuda.

Three readers have the pixels that were pushed: we, GDAL and tifffile. Overviews and masks are the host's, COGs are valid, and neither chunks
nor batches nor where rows lie change a byte. What the device takes of its memory does not depend on the height of the image.
"""

import ctypes
import itertools
import threading

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
from rio_cogeo import cog_validate
from test_write import TYPES, check, pixels

CODECS = ["none", "packbits", "lzw", "deflate", "zstd"]
LAYOUTS = [{"block_width": 32}, {"block_width": 48, "block_height": 16}, {"strips": 1, "block_height": 7}, {"cog": 1, "block_width": 32},
           {"cog": 1, "block_width": 32, "interleave": 1}]


def small(dtype, bands=1, height=70, width=90):
    return pixels(dtype, bands, height, width)


def write(array, mask=None, chunks=None, **options):
    """Chunks are pushed from device memory that holds something else as soon as they are."""
    options = {"context": cogpu.shared_context()} | options
    writer = cogpu.Writer(cogpu.profile_of(array, mask=int(mask is not None), **options))
    first = 0
    for rows in chunks or [array.shape[1]]:
        part = slice(first, first + rows)
        chunk = array[:, part].copy("K")
        chunk_mask = mask[part].copy() if mask is not None else None
        writer.push(chunk, chunk_mask, cogpu.GPU)
        for pushed in (chunk, chunk_mask)[:2 - (mask is None)]:
            pushed[...] = 85
        first += rows
    return writer.close()


def check_cog(data, tmp_path):
    (tmp_path / "a.tif").write_bytes(data)
    valid, errors, warnings = cog_validate(tmp_path / "a.tif", strict=True, quiet=True)
    assert valid, (errors, warnings)
    with cogpu.open_memory(data) as file:
        assert file.check(strict=True)[0].errors == 0


# ---- pixels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("dtype", TYPES)
def test_lossless(dtype, codec):
    array = small(dtype, 2, 50, 60)
    layout = LAYOUTS[(TYPES.index(dtype) + CODECS.index(codec)) % len(LAYOUTS)]
    data = write(array, codec=codec, **layout)
    check(array, data)
    if codec == "deflate":
        assert data != cogpu.write(array, codec=codec, **layout), "the host was at work"


@pytest.mark.parametrize("predictor", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4", "f8"])
def test_predictors(dtype, predictor):
    if predictor == 3 and dtype[0] != "f":
        pytest.skip("for floats alone")
    for turn, planar in enumerate((0, 1)):
        array = small(dtype, 3, 40, 50)
        check(array, write(array, predictor=predictor, interleave=planar, codec=("deflate", "zstd")[turn], block_width=32))


@pytest.mark.parametrize("size", [(1, 1), (1, 213), (213, 1), (16, 16), (17, 15), (33, 31)])
def test_sizes(size):
    array = small("u2", 2, *size)
    for layout in LAYOUTS:
        check(array, write(array, codec="packbits", **layout))


@pytest.mark.parametrize("bits, dtype", [(1, "u1"), (5, "u1"), (12, "u2")])
def test_few_bits(bits, dtype):
    array = small(dtype, 3) % (1 << bits)
    for layout in LAYOUTS[0], LAYOUTS[2]:
        data = write(array, bits=bits, predictor=1, **layout)
        assert reference.same(reference.read(data), array)


def test_strides():
    array = small("i2", 3)
    expected = write(array)
    chunky = np.ascontiguousarray(np.moveaxis(array, 0, -1))
    backwards = np.ascontiguousarray(array[:, ::-1, ::-1])
    wide = np.zeros((6, 140, 180), "i2")
    wide[::2, ::2, ::2] = array
    for view in np.moveaxis(chunky, -1, 0), backwards[:, ::-1, ::-1], wide[::2, ::2, ::2]:
        assert reference.same(view, array)
        assert cogpu.write(view, lies=cogpu.GPU) == expected


@pytest.mark.parametrize("codec", ["jpeg", "webp", "lerc", "lerc_zstd", "lzma"])
def test_codecs_of_the_host(codec, tmp_path):
    """Blocks that the device cut have the bytes that the host gives them."""
    if codec == "jpeg" and cogpu.GPU != cogpu.EMU:
        pytest.skip("a GPU may have nvJPEG: test_write_jpeg")
    array, mask = small("u1", 3), (small("u1")[0] > 100).astype("u1")
    options = {"codec": codec, "cog": 1, "block_width": 32}
    try:
        expected = cogpu.write(array, mask, **options)
    except cogpu.CogpuError as error:
        pytest.skip(str(error))
    assert write(array, mask, [13, 50, 7], **options) == expected
    check_cog(expected, tmp_path)


# ---- levels and masks ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, bands, options", [
    ("f4", 2, {"nodata": "-9999", "resampling": "cubic"}),
    ("f4", 3, {"nodata": "nan", "interleave": 1, "sparse": 1}),
    ("u1", 4, {"alpha_band": 4, "resampling": "bilinear"}),
    ("u2", 1, {"nodata": "0", "resampling": "mode", "codec": "lzw"}),
    ("i2", 1, {"resampling": "median", "codec": "packbits"}),
    ("u1", 1, {"palette": [i * 257 for i in range(256)] * 3, "codec": "zstd"}),
    ("c8", 1, {"codec": "zstd"}),
    ("f8", 1, {"resampling": "rms", "overview_factors": [2, 6], "nodata": "nan"}),
    ("u4", 2, {"resampling": "max", "codec": "none", "nodata": "100"}),
], ids=lambda value: "-".join(f"{k}" for k in value) if isinstance(value, dict) else None)
@pytest.mark.parametrize("masked", [False, True])
def test_levels(dtype, bands, options, masked, tmp_path):
    array = small(dtype, bands, 100, 130)
    if "nodata" in options:
        array[:, 20:60, 30:90] = float(options["nodata"])
    if "alpha_band" in options:
        array[3] = np.where(array[3] > 100, 255, 0)
    mask = (small("u1", 1, 100, 130)[0] > 90).astype("u1") if masked and "alpha_band" not in options else None
    options = {"cog": "overview_factors" not in options, "block_width": 32} | options
    expected = cogpu.write(array, mask, **options)
    data = write(array, mask, [1, 40, 32, 27], **options)
    check(array, data)
    assert reference.same_levels(data, expected)
    if options["cog"]:
        check_cog(data, tmp_path)


# ---- splits --------------------------------------------------------------------------------------

CHUNKS = [[1] * 35, [1, 15, 16, 1, 2], [16, 16, 3], [24, 11]]


@pytest.mark.parametrize("options", [
    {"cog": 1, "block_width": 16, "nodata": "nan", "sparse": 1}, {"cog": 1, "block_width": 16, "interleave": 1, "resampling": "cubic"},
    {"strips": 1, "block_height": 9, "codec": "packbits"}, {"block_width": 16, "overview_factors": [2, 6], "codec": "zstd"}],
    ids=lambda options: "-".join(options))
def test_splits(options):
    array, mask = small("f4", 2, 35, 45), (small("u1", 1, 35, 45)[0] > 90).astype("u1")
    array[:, 10:30, 20:] = np.nan
    expected = write(array, mask, **options)
    check(array, expected)
    chunky = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    for chunks in CHUNKS:
        assert write(array, mask, chunks, **options) == expected
    assert write(chunky, mask, CHUNKS[1], **options) == expected
    assert cogpu.write(array, mask, CHUNKS[1], device=cogpu.GPU, **options) == expected
    writer = cogpu.Writer(cogpu.profile_of(array, mask=1, device=cogpu.GPU, context=cogpu.shared_context(), **options))
    for turn, rows in enumerate(range(0, 35, 10)):
        part = slice(rows, rows + 10)
        writer.push(array[:, part], mask[part], (cogpu.CPU, cogpu.GPU)[turn % 2])
    assert writer.close() == expected


@pytest.mark.parametrize("codec", CODECS)
def test_batches(codec):
    """With little memory there are few blocks to a batch, and with less than one needs the host writes the file."""
    array, mask = small("u2", 2, 130, 150), (small("u1", 1, 130, 150)[0] > 90).astype("u1")
    options = {"cog": 1, "block_width": 32, "codec": codec}
    expected, by_host = write(array, mask, **options), cogpu.write(array, mask, **options)
    assert expected != by_host
    little = 1 << 20 if codec == "zstd" else 250 << 10  # whose thread blocks need more
    for device_bytes, data in (little, expected), (5 << 10, by_host):
        with cogpu.Context(device_bytes=device_bytes) as context:
            assert write(array, mask, [50, 50, 30], context=context, **options) == data
    check(array, expected)
    assert reference.same_levels(expected, by_host)


def test_writers_and_readers_at_once():
    """In threads of their own, on one context."""
    array = small("u2", 2, 130, 150)
    options = {"cog": 1, "block_width": 32}
    expected, failures = write(array, **options), []

    def work(number):
        for _ in range(2):
            if number % 2:
                with cogpu.open_memory(expected) as file:
                    same = reference.same(file.read(device=cogpu.GPU), array)
            else:
                same = write(array, None, [33] * 3 + [31], **options) == expected
            if not same:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- memory --------------------------------------------------------------------------------------


class Crowded:
    """A context on whose device others have taken all but so much memory."""

    def __init__(self, left):
        self.context, self.taken, error = cogpu.Context(device_bytes=4 << 20), ctypes.c_void_p(), cogpu.Error()
        status = cogpu.lib.cogpu_device_allocate(self.context.handle, cogpu.EMU, 0, (4 << 30) - left, ctypes.byref(self.taken),
                                                 ctypes.byref(error))
        assert status == cogpu.OK, error.message

    def __enter__(self):
        return self.context

    def __exit__(self, *_):
        cogpu.lib.cogpu_device_free(self.context.handle, cogpu.EMU, 0, self.taken)
        self.context.__exit__()


@pytest.mark.skipif(cogpu.GPU != cogpu.EMU, reason="a GPU's memory is others' too")
def test_memory_of_a_device_does_not_grow_with_the_height():
    """What is enough for a low image is enough for a high one; half of it is not."""
    options = {"cog": 1, "block_width": 32, "codec": "none", "resampling": "nearest"}

    def is_enough(left, height):
        array = small("u1", 1, height, 128)
        with Crowded(left) as context:
            try:
                data = write(array, None, [37] * (height // 37) + [height % 37], context=context, **options)
            except cogpu.CogpuError as error:
                assert error.status == cogpu.OUT_OF_MEMORY
                return False
        assert reference.same(reference.read(data), array)
        return True

    enough = next(size for size in itertools.accumulate(itertools.repeat(1 << 18)) if is_enough(size, 128))
    assert enough <= 6 << 20 and is_enough(enough + (1 << 16), 4096)


# ---- what fails ----------------------------------------------------------------------------------


def test_without_a_context():
    array = small("u1")
    writer = cogpu.Writer(cogpu.profile_of(array))
    with pytest.raises(cogpu.CogpuError, match="context"):
        writer.push(array, None, cogpu.GPU)
    writer.abort()


@pytest.mark.parametrize("options", [{"cog": 1, "block_width": 32}, {"block_width": 32}])
def test_failing_sink(options):
    """Whatever write fails, its status is the writer's, and the next one has a valid device."""
    array = small("f4")
    for fails in range(1, 6):
        calls = []

        def put(offset, data):
            calls.append("write")
            return cogpu.IO_ERROR if calls.count("write") == fails else None

        writer = cogpu.Writer(cogpu.profile_of(array, context=cogpu.shared_context(), **options), write=put,
                              commit=lambda: calls.append("commit"), abort=lambda: calls.append("abort"))
        try:
            writer.push(array, None, cogpu.GPU)
            writer.close()
        except cogpu.CogpuError as error:
            assert error.status == cogpu.IO_ERROR
            if writer.handle:
                writer.abort()
            assert calls.count("abort") == 1 and "commit" not in calls
        else:
            assert calls.count("write") < fails and calls[-1] == "commit"
    check(array, write(array, **options))
