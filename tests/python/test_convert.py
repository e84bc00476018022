"""Samples converted on their way into the raster: cast to floats, NaN where invalid, scaled; or to masks.

NumPy is the reference, on what rasterio reads: pixels, masks, scales and offsets. All is compared bit by bit, on the CPU and
on the GPU (the emulated one, unless COGPU_DEVICES says cuda).
"""

import itertools
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import rasterio
import tiff_bytes as tb
from rasterio.windows import Window

DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
TARGETS = ["f2", "f4", "f8"]
DEVICES = [cogpu.CPU, cogpu.GPU]
CODECS = [(tb.DEFLATE, zlib.compress), (tb.LZW, tb.lzw_encode), (tb.ZSTD, imagecodecs.zstd_encode), (tb.NONE, bytes)]


def converted(pixels, target, valid=None, scales=None, offsets=None):
    """`pixels` (bands, height, width) by NumPy's arithmetic; each NaN is NumPy's own."""
    with np.errstate(all="ignore"):
        if scales is None:
            values = pixels.astype(target)
        else:
            work = np.dtype("f8" if target == "f8" else "f4")
            scales, offsets = (np.array(numbers, "f8").astype(work)[:, None, None] for numbers in (scales, offsets))
            values = (pixels.astype(work) * scales + offsets).astype(target)
    if valid is not None:
        values[~valid] = np.nan
    values[np.isnan(values)] = np.nan
    return values


def same_bits(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    return np.ascontiguousarray(found).tobytes() == expected.tobytes()


def check(file, expected, devices=DEVICES, **how):
    """The whole, and a window of listed bands into a chunky and a backward raster, on each device."""
    bands, height, width = expected.shape
    x, y = width // 3, height // 4
    picked = [bands, 1, 1]
    part = np.ascontiguousarray(expected[[b - 1 for b in picked], y:, x:])
    for device in devices:
        assert same_bits(file.read(dtype=expected.dtype, device=device, **how), expected), device
        room = np.zeros((height - y, width - x, 4), expected.dtype)
        backward = np.zeros(part.shape, expected.dtype)[::-1, ::-1, ::-1]
        for out in (room.transpose(2, 0, 1)[:3], backward):
            file.read(out=out, device=device, bands=picked, window=(x, y, width - x, height - y), **how)
            assert same_bits(out, part), (device, out.strides)
        assert not room[:, :, 3].tobytes().strip(b"\0")


def scale_xml(scales, offsets):
    items = [f'<Item name="{name}" sample="{band}" role="{name.lower()}">{number!r}</Item>'
             for band, pair in enumerate(zip(scales, offsets)) for name, number in zip(("SCALE", "OFFSET"), pair)]
    return ("<GDALMetadata>" + "".join(items) + "</GDALMetadata>").encode() + b"\0"


def file_of(array, nodata=None, scales=None, offsets=None, **layout):
    tags = {}
    if nodata is not None:
        tags[42113] = (tb.ASCII, str(nodata).encode() + b"\0")
    if scales is not None:
        tags[42112] = (tb.ASCII, scale_xml(scales, offsets))
    return tb.image(array, tags=tags, **layout)


# ---- every type to every float ------------------------------------------------------------------

SCALES, OFFSETS = (0.1, -2.5, 1 / 3), (-5.25, 0, 1e3)


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype, planar):
    seed = DTYPES.index(dtype) + 11 * planar
    array = reference.noise(np.random.default_rng(seed), (3, 18, 23), dtype)
    nodata = array[1, 9, 9].item() if np.isfinite(array[1, 9, 9]) else 3
    array[0, 2:7, 5:20] = nodata
    codec, encode = CODECS[seed % 4]
    predictor = 1 if codec == tb.NONE else 3 if dtype[0] == "f" and planar else 2
    data = file_of(array, nodata, SCALES, OFFSETS, order="<>"[seed % 2], compression=codec, encode=encode, predictor=predictor,
                   planar=planar, **({"tile": (16, 16)} if seed % 3 else {"rows": 9}))
    with reference.opened(data) as expected:
        assert expected.scales == SCALES and expected.offsets == OFFSETS
        pixels = expected.read()
        assert reference.same(pixels, array)
        valid = expected.read_masks() > 0
        assert not valid.all() and valid.any()
    with cogpu.open_memory(data) as file:
        for turn, (target, nan, scaled) in enumerate(itertools.product(TARGETS, (False, True), (False, True))):
            if target == dtype and not nan and not scaled:
                continue
            scale = (SCALES, OFFSETS) if scaled else (None, None)
            devices = DEVICES if turn % 2 == planar else DEVICES[:1]  # the emulated one takes its time
            check(file, converted(pixels, target, valid if nan else None, *scale), devices, masked=nan, unscale=scaled)


def test_samples_of_the_rasters_type_stay_as_they_are():
    """NaN with sign and payload, and -0, where nothing is to be done."""
    bits = np.array([[0x7FC12345, 0xFFC00001, 0x80000000, 0x3F800000]], "u4")
    with cogpu.open_memory(tb.image(bits.view("f4"))) as file:
        for device in DEVICES:
            assert same_bits(file.read(dtype="f4", device=device)[0], bits.view("f4"))
            assert file.read(dtype="f4", device=device, masked=True)[0].tobytes() == bits.tobytes()


@pytest.mark.parametrize("bits,dtype", [(1, "u1"), (4, "u1"), (12, "u2"), (24, "u4")])
def test_packed_depths(bits, dtype):
    array = reference.noise(np.random.default_rng(bits), (3, 17, 29), dtype, bits)
    with cogpu.open_memory(file_of(array, 1, SCALES, OFFSETS, bits=bits)) as file:
        for target in TARGETS:
            check(file, converted(array, target, array != 1, SCALES, OFFSETS), masked=True, unscale=True)


def test_halves():
    """Each half to float32, and the edges between halves: ties, denormals, overflow."""
    halves = np.arange(1 << 16, dtype="u2").view("f2").reshape(1, 256, 256)
    with cogpu.open_memory(tb.image(halves, tile=(64, 64))) as file:
        for device in DEVICES:
            assert same_bits(file.read(dtype="f4", device=device), converted(halves, "f4"))
    exact = np.sort(halves[np.isfinite(halves)].astype("f8"))
    middles = (exact[1:] + exact[:-1]) / 2
    edges = np.concatenate([middles, np.nextafter(middles, -np.inf), np.nextafter(middles, np.inf),
                            [65519.99, 65520, 65536, 1e300, -1e300, 2.0**-25, 1e-300, np.inf]])
    edges = edges[:len(edges) // 256 * 256 - 256].reshape(1, -1, 256)
    with cogpu.open_memory(tb.image(edges, tile=(64, 64), compression=tb.DEFLATE, encode=zlib.compress)) as file:
        for device in DEVICES:
            assert same_bits(file.read(dtype="f2", device=device), converted(edges, "f2"))


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_long_lists_of_bands_are_placed_by_the_device(scaled, planar):
    rng = np.random.default_rng(5)
    array = reference.noise(rng, (13, 20, 17), "u2")
    scales, offsets = rng.normal(size=13), rng.normal(size=13)
    picked = [int(b) for b in rng.integers(1, 14, 20)]
    data = file_of(array, None, [float(s) for s in scales], [float(o) for o in offsets], planar=planar, tile=(16, 16),
                   compression=tb.DEFLATE, encode=zlib.compress)
    chosen = array[[b - 1 for b in picked]]
    with cogpu.open_memory(data) as file:
        for device in DEVICES:
            how = {"device": device, "bands": picked, "threads": 1}
            assert reference.same(file.read(**how), chosen)
            if device == cogpu.GPU:
                assert file.last_result.device_blocks == file.last_result.blocks > 0
            order = np.array(picked) - 1
            expected = converted(chosen, "f4", None, *((scales[order], offsets[order]) if scaled else (None, None)))
            assert same_bits(file.read(dtype="f4", unscale=scaled, **how), expected)
        whole = converted(array, "f8", None, scales, offsets)
        check(file, whole, unscale=True)


def test_many_files_with_lists_in_one_batch():
    rng = np.random.default_rng(6)
    requests, expected = [], []
    files = []
    for i in range(5):
        array = reference.noise(rng, (12, 20, 17), "i2")
        scales = [float(s) for s in rng.normal(size=12)]
        files.append(cogpu.open_memory(file_of(array, None, scales, [0.5] * 12, tile=(16, 16),
                                               compression=tb.DEFLATE, encode=zlib.compress)))
        bands = [int(b) for b in rng.integers(1, 13, 9 + i)]
        requests.append((files[-1], {"bands": bands, "unscale": True}))
        order = np.array(bands) - 1
        expected.append(converted(array[order], "f4", None, np.array(scales)[order], [0.5] * len(bands)))
    for device in DEVICES:
        results, error = cogpu.read_many(requests, cogpu.shared_context(), device=device, dtype="f4")
        assert error is None
        for (status, found), wanted in zip(results, expected):
            assert status == cogpu.OK and same_bits(found, wanted)
    for file in files:
        file.close()


# ---- other ways that blocks take into the raster ------------------------------------------------

def test_cached_blocks():
    array = reference.noise(np.random.default_rng(7), (2, 64, 50), "u2")
    data = file_of(array, 5, (2, 3), (0, 1), tile=(16, 16), compression=tb.DEFLATE, encode=zlib.compress)
    expected = converted(array, "f4", array != 5, (2, 3), (0, 1))
    with cogpu.open_memory(data) as file, cogpu.Context(cache_bytes=1 << 20) as context:
        for _ in range(2):
            assert same_bits(file.read(dtype="f4", masked=True, unscale=True, context=context), expected)
        assert file.last_result.cached_blocks == file.last_result.blocks


def test_blocks_too_large_to_be_held():
    array = reference.noise(np.random.default_rng(8), (1, 3000, 1400), "u2")
    data = file_of(array, 7, (0.5,), (1,), rows=3000, compression=tb.DEFLATE, encode=lambda d: zlib.compress(d, 1), predictor=2)
    expected = converted(array, "f4", array != 7, (0.5,), (1,))
    with cogpu.open_memory(data) as file:
        assert same_bits(file.read(dtype="f4", masked=True, unscale=True), expected)


@pytest.mark.parametrize("dtype,target", [("f4", "f4"), ("i2", "f2")])
def test_stored_rows_are_not_read_straight_into_the_raster(dtype, target):
    """Though they would fit: they lie in the file as in the raster."""
    array = reference.noise(np.random.default_rng(21), (1, 40, 30), dtype)
    array[0, 3:9] = 5
    with cogpu.open_memory(file_of(array, 5, rows=8)) as file:
        check(file, converted(array, target, array != 5), masked=True)


def test_planar_cmyk():
    array = reference.noise(np.random.default_rng(9), (4, 30, 40), "u1")
    data = file_of(array, 90, SCALES + (2,), OFFSETS + (3,), planar=True, photometric=5)
    with reference.opened(data) as expected, cogpu.open_memory(data) as file:
        pixels = file.read()
        assert reference.same(pixels, expected.read())
        check(file, converted(pixels, "f4", pixels != 90, SCALES + (2,), OFFSETS + (3,)), masked=True, unscale=True)


@pytest.mark.parametrize("compress", ["jpeg", "lerc"])
def test_codecs_of_the_host(compress):
    array = np.cumsum(np.ones((3, 40, 50)), axis=-1).astype("u1")
    data = reference.write(array, compress=compress, tiled=True, blockxsize=16, blockysize=16)
    with cogpu.open_memory(data) as file:
        check(file, converted(file.read(), "f4"))


def test_bad_blocks_are_filled_with_nodata_and_so_with_nan():
    array = np.arange(64 * 16, dtype="u2").reshape(1, 64, 16)
    blocks = [zlib.compress(array[0, y:y + 16].tobytes()) for y in range(0, 64, 16)]
    blocks[2] = blocks[2][:9]
    data = tb.image(array, rows=16, compression=tb.DEFLATE, blocks=blocks, tags={42113: (tb.ASCII, b"7\0")})
    expected = converted(array, "f4", array != 7)
    expected[:, 32:48] = np.nan
    with cogpu.open_memory(data) as file:
        for device in DEVICES:
            found = file.read(dtype="f4", masked=True, device=device, fill_bad_blocks=True)
            assert same_bits(found, expected) and file.last_result.bad_blocks == 1


# ---- masks and alpha -----------------------------------------------------------------------------

def check_voids(path, level=0, bands=None):
    options = {"overview_level": level - 1} if level else {}
    with rasterio.open(path, **options) as expected, cogpu.open(path) as file:
        pixels, valid = expected.read(), expected.read_masks() > 0
        if expected.colorinterp[-1] == rasterio.enums.ColorInterp.alpha:
            valid[-1] = valid[0]  # the library lets alpha stand for all bands, its own with them
        assert not valid.all() and valid.any()
        for target in TARGETS:
            check(file, converted(pixels, target, valid), masked=True, level=level)
        ones, zeros = np.ones(len(pixels)), np.zeros(len(pixels))
        check(file, converted(pixels, "f4", valid, ones, zeros), masked=True, unscale=True, level=level)


@pytest.mark.parametrize("options", [{}, {"tiled": True, "blockxsize": 32, "blockysize": 32, "compress": "deflate"},
                                     {"interleave": "band"}])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
def test_mask_directory(tmp_path, dtype, options):
    array = reference.noise(np.random.default_rng(10), (3, 40, 31), dtype)
    path = tmp_path / "a.tif"
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(path, "w", driver="GTiff", count=3, height=40, width=31, dtype=array.dtype.name, nodata=5,
                           **options) as file:
            file.write(array)
            file.write_mask(np.random.default_rng(11).integers(0, 2, (40, 31)).astype("u1") * 255)
            file.build_overviews([2])
    with cogpu.open(path) as file:
        assert file.info().mask_source == cogpu.MASK_DIRECTORY
    check_voids(path)
    check_voids(path, level=1)


def test_mask_with_a_band_for_each_band(tmp_path):
    masks = np.random.default_rng(12).integers(0, 2, (3, 20, 33)).astype("u1")
    writer = tb.Writer()
    tb.add_image(writer, reference.noise(np.random.default_rng(13), (3, 20, 33), "u1"), photometric=2)
    tb.add_image(writer, masks, bits=1, format=1, photometric=4, tags={254: (tb.LONG, [4])})
    path = tmp_path / "a.tif"
    path.write_bytes(writer.bytes())
    check_voids(path)
    with cogpu.open(path) as file:
        one = converted(file.read(bands=[3]), "f4", masks[2:] > 0)
        for device in DEVICES:
            assert same_bits(file.read(dtype="f4", masked=True, bands=[3], device=device), one)


@pytest.mark.parametrize("bands", [2, 4])
def test_alpha(tmp_path, bands):
    array = reference.noise(np.random.default_rng(14), (bands, 50, 41), "u1")
    array[-1, 5:9] = 0
    path = tmp_path / "a.tif"
    path.write_bytes(reference.write(array, compress="deflate", ALPHA="YES", **({"photometric": "RGB"} if bands == 4 else {})))
    with cogpu.open(path) as file:
        assert file.info().mask_source == cogpu.MASK_ALPHA
    check_voids(path)


def test_all_valid():
    array = reference.noise(np.random.default_rng(15), (2, 20, 30), "i4")
    with cogpu.open_memory(tb.image(array)) as file:
        check(file, converted(array, "f8"), masked=True)


# ---- masks by the device --------------------------------------------------------------------------

def check_mask(data, expected, decoded=True, **how):
    """The mask, whole and a window of listed bands, backward, from each device; `decoded` by itself."""
    bands, height, width = expected.shape
    picked = [int(b) for b in np.random.default_rng(bands).integers(1, bands + 1, 10)]
    part = expected[[b - 1 for b in picked], 3:, 5:]
    with cogpu.open_memory(data) as file:
        for device in DEVICES:
            assert reference.same(file.read(content=cogpu.MASK, device=device, **how), expected), device
            result = file.last_result
            assert result.blocks > 0 and result.device_blocks == (result.blocks if decoded and device == cogpu.GPU else 0)
            out = np.zeros(part.shape, "u1")[::-1, ::-1, ::-1]
            file.read(content=cogpu.MASK, out=out, device=device, bands=picked, window=(5, 3, width - 5, height - 3), **how)
            assert reference.same(np.ascontiguousarray(out), part), device


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("dtype,nodata", [("u1", 0), ("i1", -3), ("u2", 9), ("i4", -70000), ("u8", 2**64 - 1), ("i8", -2**63),
                                          ("f2", 0), ("f2", "nan"), ("f4", -9999), ("f4", "nan"), ("f8", "nan"), ("f8", 0),
                                          ("c8", 7), ("c8", "nan"), ("c16", 7), ("c16", "nan")])
def test_masks_by_nodata(dtype, nodata, planar):
    array = reference.noise(np.random.default_rng(17), (2, 18, 23), dtype)
    if np.dtype(dtype).kind == "f":
        array[1, 5, :4] = [0, -0.0, np.nan, -np.nan]
    if np.dtype(dtype).kind == "c":
        array[1, 5, :6] = [complex(7, 0), complex(7, 1), complex(np.nan, 0), complex(0, np.nan), complex(0, 7), 0]
    array[0, 4:9, 6:15] = np.array(float(nodata) if nodata == "nan" else nodata).astype(dtype)
    invalid = np.isnan(array) if nodata == "nan" else array == np.array(nodata).astype(dtype)
    data = file_of(array, nodata, planar=planar, tile=(16, 16), compression=tb.DEFLATE, encode=zlib.compress,
                   predictor=1 if "c" in dtype else 2)
    with reference.opened(data) as expected:
        if "c" not in dtype:
            assert reference.same(expected.read_masks(), np.where(invalid, 0, 255).astype("u1"))
    check_mask(data, np.where(invalid, 0, 255).astype("u1"), decoded=dtype != "c16")


@pytest.mark.parametrize("bands,mask_bands,bits", [(1, 1, 1), (3, 1, 8), (12, 1, 1), (3, 3, 1), (12, 12, 8)])
def test_masks_of_a_directory(bands, mask_bands, bits):
    rng = np.random.default_rng(18)
    masks = (rng.integers(0, 2, (mask_bands, 20, 33)) * rng.integers(1, 2**bits, (20, 33))).astype("u1")
    writer = tb.Writer()
    tb.add_image(writer, reference.noise(rng, (bands, 20, 33), "u2"), tags={42113: (tb.ASCII, b"5\0")})
    tb.add_image(writer, masks, bits=bits, format=1, photometric=4, tags={254: (tb.LONG, [4])}, tile=(16, 16),
                 compression=tb.DEFLATE, encode=zlib.compress)
    check_mask(writer.bytes(), np.where(np.broadcast_to(masks, (bands, 20, 33)), 255, 0).astype("u1"))


@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_masks_by_alpha(dtype):
    array = reference.noise(np.random.default_rng(19), (4, 30, 21), dtype)
    array[3, 5:9, 3:] = 0
    data = reference.write(array, compress="lzw", predictor=2, photometric="RGB", ALPHA="YES")
    check_mask(data, np.broadcast_to(np.where(array[3], 255, 0).astype("u1"), array.shape))


def test_masks_without_a_reason():
    with cogpu.open_memory(tb.image(np.zeros((2, 9, 7), "f4"))) as file:
        for device in DEVICES:
            assert (file.read(content=cogpu.MASK, device=device) == 255).all()


def test_mask_of_planar_cmyk():
    array = reference.noise(np.random.default_rng(20), (4, 12, 17), "u1")
    data = file_of(array, 90, planar=True, photometric=5)
    with cogpu.open_memory(data) as file:
        expected = np.where(file.read() == 90, 0, 255)
        for device in DEVICES:
            assert np.array_equal(file.read(content=cogpu.MASK, device=device), expected)


def test_bad_blocks_of_a_mask_are_counted():
    array = np.arange(64 * 16, dtype="u2").reshape(1, 64, 16)
    blocks = [zlib.compress(array[0, y:y + 16].tobytes()) for y in range(0, 64, 16)]
    blocks[1] = blocks[1][:9]
    data = tb.image(array, rows=16, compression=tb.DEFLATE, blocks=blocks, tags={42113: (tb.ASCII, b"7\0")})
    with cogpu.open_memory(data) as file:
        for device in DEVICES:
            mask = file.read(content=cogpu.MASK, device=device, fill_bad_blocks=True)
            assert not mask[0, 16:32].any() and (mask == 0).sum() == 16 * 16 + 1
            assert (file.last_result.blocks, file.last_result.bad_blocks) == (4, 1)
            with pytest.raises(cogpu.CogpuError) as caught:
                file.read(content=cogpu.MASK, device=device)
            assert caught.value.status == cogpu.CORRUPT and caught.value.block == 1


# ---- traps ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", ["-9999", "65536", "nan", "inf", "0.5", "abc", ""])
def test_T109_T110_T111_T115_nodata_that_no_sample_equals(text):
    """No NaN, and the raster is of floats all the same."""
    array = np.array([[[0, 1, 9999, 55537, 65535]]], "u2")
    with cogpu.open_memory(file_of(array, text)) as file:
        check(file, converted(array, "f4"), masked=True)


@pytest.mark.parametrize("dtype,value", [("i8", 2**53 + 1), ("u8", 2**64 - 1), ("i8", -2**63), ("i8", 2**63 - 1),
                                         ("u8", 2**53 + 1)])
def test_T112_nodata_is_compared_before_the_cast(dtype, value):
    near = value - 1 if value > 0 else value + 1
    array = np.array([[[value, near, 5, 0]]], dtype)
    with cogpu.open_memory(file_of(array, value)) as file:
        for target, device in itertools.product(TARGETS, DEVICES):
            found = file.read(dtype=target, masked=True, device=device)
            assert np.isnan(found).tolist() == [[[True, False, False, False]]]
            assert same_bits(found, converted(array, target, array != np.array(value, dtype)))


def test_T113_min_is_white_is_not_turned_and_neither_is_nodata():
    array = np.array([[[0, 1, 254, 255]]], "u1")
    data = tb.image(array, photometric=0, tags={42113: (tb.ASCII, b"254\0")})
    with reference.opened(data) as expected, cogpu.open_memory(data) as file:
        check(file, converted(expected.read(), "f4", expected.read_masks() > 0), masked=True)
        assert np.isnan(file.read(dtype="f4", masked=True)).tolist() == [[[False, False, True, False]]]


@pytest.mark.parametrize("text,kept", [("nan", 1), ("inf", 2), ("-inf", 3), ("0", 4)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_T116_nan_infinities_and_both_zeros_as_nodata(dtype, text, kept):
    array = np.array([[[1, np.nan, np.inf, -np.inf, 0, -0.0]]], dtype)
    invalid = np.isnan(array) | (array == np.array(float(text)).astype(dtype))
    assert invalid[0, 0, kept]
    with cogpu.open_memory(file_of(array, text)) as file:
        for target in TARGETS:
            check(file, converted(array, target, ~invalid), masked=True)


def test_T117_the_device_gives_what_the_cpu_gives():
    array = reference.noise(np.random.default_rng(16), (3, 100, 90), "i2")
    array[:, 10:40, 5:50] = -9999
    data = file_of(array, -9999, SCALES, OFFSETS, tile=(32, 32), compression=tb.DEFLATE, encode=zlib.compress)
    with cogpu.open_memory(data) as file:
        for target in TARGETS:
            how = {"dtype": target, "masked": True, "unscale": True}
            assert same_bits(file.read(**how, device=cogpu.GPU), file.read(**how))
            assert np.isnan(file.read(**how)).sum() == (array == -9999).sum()


def test_T047_sparse_blocks_become_nan():
    with rasterio.MemoryFile() as memory:
        with memory.open(driver="GTiff", count=2, height=64, width=64, dtype="uint16", nodata=9, tiled=True, blockxsize=32,
                         blockysize=32, SPARSE_OK=True) as file:
            file.write(np.ones((2, 32, 32), "u2"), window=Window(0, 0, 32, 32))
        data = bytes(memory.getbuffer())
    with reference.opened(data) as expected, cogpu.open_memory(data) as file:
        check(file, converted(expected.read(), "f4", expected.read_masks() > 0), masked=True)
        assert file.last_result.sparse_blocks > 0


@pytest.mark.parametrize("text", ["abc", "", "1e999", "nan"])
def test_T123_scales_that_are_no_numbers_are_left_out(text):
    xml = f'<GDALMetadata><Item name="SCALE" sample="0" role="scale">{text}</Item></GDALMetadata>'.encode() + b"\0"
    array = np.arange(12, dtype="u1").reshape(1, 3, 4)
    with cogpu.open_memory(tb.image(array, tags={42112: (tb.ASCII, xml)})) as file:
        band = file.band(1)
        check(file, converted(array, "f4", None, [band.scale], [band.offset]), unscale=True)


def test_T123_each_band_has_its_own_scale():
    array = np.arange(24, dtype="u1").reshape(2, 3, 4)
    with cogpu.open_memory(file_of(array, None, (0.1, 10), (1, -1))) as file:
        check(file, converted(array, "f8", None, (0.1, 10), (1, -1)), unscale=True)


def test_T195_nodata_0_is_nodata():
    array = np.array([[[0, 1, 2, 0]]], "u1")
    with cogpu.open_memory(file_of(array, 0)) as file:
        check(file, converted(array, "f4", array != 0), masked=True)


# ---- what is refused -----------------------------------------------------------------------------

def refusal(file, message, **how):
    for device in DEVICES:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(device=device, **how)
        assert caught.value.status == cogpu.INVALID_ARGUMENT and message in caught.value.message


def test_refusals():
    array = np.ones((1, 4, 5), "u1")
    with cogpu.open_memory(tb.image(array)) as file:
        refusal(file, "only to float16, float32 or float64", dtype=np.dtype("u2"))
        refusal(file, "only to float16, float32 or float64", masked=True)
        refusal(file, "only to float16, float32 or float64", unscale=True)
        refusal(file, "a mask needs", content=cogpu.MASK, dtype=np.dtype("f4"))
        refusal(file, "a mask cannot be scaled", content=cogpu.MASK, masked=True)
        refusal(file, "only to float16, float32 or float64", dtype=np.dtype("c8"))
    for dtype in ("c8", "c16", cogpu.CI16):
        with cogpu.open_memory(tb.image(np.zeros((1, 4, 5), dtype), format=5 if dtype is cogpu.CI16 else None)) as file:
            refusal(file, "cannot be converted to float32", dtype=np.dtype("f4"))
            refusal(file, "cannot be scaled or set to NaN", masked=True)
