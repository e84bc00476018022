"""Generated files: what the library reads of them against GDAL, bit by bit.

A file is written by GDAL or by tiff_bytes.py, GDAL reads it, and the library has to give the same
pixels, by whatever window, band order, stride and number of threads they are asked for.
"""

import itertools
import random
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import rasterio
import rasterio.shutil
import tiff_bytes as tb
from rasterio.enums import ColorInterp, MaskFlags, Resampling
from rasterio.windows import Window

CODECS = {tb.LZW: tb.lzw_encode, tb.DEFLATE: zlib.compress, tb.ZSTD: imagecodecs.zstd_encode,
          tb.LZMA: imagecodecs.lzma_encode, tb.OLD_DEFLATE: zlib.compress,
          tb.PACKBITS: tb.packbits_encode,
          tb.NONE: bytes}


def check_reads(file, expected, seed=0):
    """Every way to ask for the pixels of an image gives those of `expected`."""
    rng = np.random.default_rng(seed)
    bands, height, width = expected.shape
    assert reference.same(file.read(threads=1), expected)
    assert reference.same(file.read(threads=2), expected)
    for _ in range(3):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        w, h = int(rng.integers(1, width - x + 1)), int(rng.integers(1, height - y + 1))
        order = rng.permutation(bands)[:int(rng.integers(1, bands + 1))]
        picked = [int(b) + 1 for b in (*order, order[0])]
        part = expected[[b - 1 for b in picked], y:y + h, x:x + w]
        assert reference.same(file.read(window=(x, y, w, h), bands=picked), part), (x, y, w, h, picked)
    check_strides(file, expected)
    check_device(file, expected, rng)


def check_device(file, expected, rng):
    """The GPU gives what the CPU gives, whole and in a window, at odd strides."""
    bands, height, width = expected.shape
    assert reference.same(file.read(device=cogpu.GPU), expected)
    x, y = int(rng.integers(width)), int(rng.integers(height))
    room = np.zeros((height - y, width - x, bands + 1), expected.dtype)
    out = room.transpose(2, 0, 1)[:bands]
    read = file.read(out=out, device=cogpu.GPU, window=(x, y, width - x, height - y))
    assert reference.same(np.ascontiguousarray(read), expected[:, y:, x:])
    assert not room[:, :, bands].tobytes().strip(b"\0")


def check_strides(file, expected):
    """Chunky, padded and backward rasters; the bytes between their samples stay as they were."""
    bands, height, width = expected.shape
    dtype = expected.dtype
    chunky = np.zeros((height, width, bands), dtype).transpose(2, 0, 1)
    assert reference.same(np.ascontiguousarray(file.read(out=chunky)), expected)
    room = np.zeros((bands, height + 2, width + 3, 2), dtype)
    room.view("u1").fill(0x5A)
    untouched = room.copy()
    inside = room[:, 1:-1, 1:-2, 0]
    assert reference.same(np.ascontiguousarray(file.read(out=inside)), expected)
    inside[...] = untouched[:, 1:-1, 1:-2, 0]
    assert room.tobytes() == untouched.tobytes()
    backward = np.zeros((bands, height, width), dtype)[::-1, ::-1, ::-1]
    assert reference.same(np.ascontiguousarray(file.read(out=backward)), expected)


def check_file(data, expected, seed=0):
    with cogpu.open_memory(data) as file:
        assert file.info().dtype == expected.dtype
        check_reads(file, expected, seed)


# ---- the matrix of which public files cover a quarter ------------------------------------------

INTEGERS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"]
FLOATS = ["f2", "f4", "f8"]
CELLS = [cell for cell in itertools.product((tb.LZW, tb.DEFLATE, tb.ZSTD), (1, 2, 3),
                                            INTEGERS + FLOATS,
                                            ("strip", "tile"), ("chunky", "separate"), "<>")
         if cell[1] != 3 or cell[2] in FLOATS]


def test_the_matrix_has_600_cells():
    assert len(CELLS) == 600


@pytest.mark.parametrize("codec,predictor,dtype,layout,planar,order", CELLS)
def test_cell(codec, predictor, dtype, layout, planar, order):
    seed = zlib.crc32(repr((codec, predictor, dtype, layout, planar, order)).encode())
    array = reference.noise(np.random.default_rng(seed), (3, 35, 21), dtype)
    blocks = {"tile": (16, 32)} if layout == "tile" else {"rows": 9}
    data = tb.image(array, order=order, compression=codec, encode=CODECS[codec],
                    predictor=predictor,
                    planar=planar == "separate", **blocks)
    assert reference.same(reference.read(data), array)
    check_file(data, array, seed)


# ---- a covering selection of what GDAL writes --------------------------------------------------

PLAIN = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16",
         "float32",
         "float64", "complex_int16", "complex64", "complex128"]
PACKED = [f"uint8:{n}" for n in (1, 2, 3, 4, 5, 6, 7)] + [f"uint16:{n}"
                                                          for n in (9, 10, 11, 12, 13, 14, 15)] + [
    f"uint32:{n}" for n in (17, 18, 20, 23, 24, 25, 30, 31)]
FACTORS = {
    "codec": ["none", "packbits", "lzw", "deflate", "zstd", "lzma", "lerc", "lerc_deflate",
              "lerc_zstd"],
    "sample": PLAIN + PACKED,
    "predictor": [1, 2, 3],
    "layout": ["rows 1", "rows 7", "rows 64", "tile 16 16", "tile 32 16", "tile 16 48",
               "tile 128 128"],
    "interleave": ["pixel", "band"],
    "endianness": ["LITTLE", "BIG"],
    "bigtiff": ["NO", "YES"],
    "bands": [1, 2, 3, 4, 5],
    "size": [(1, 1), (1, 37), (41, 1), (37, 29), (64, 64), (67, 53)],
}


def legal(case):
    """What GDAL writes. Predictors need whole samples; LERC knows integers to 32 bits and floats."""
    base, _, bits = case["sample"].partition(":")
    if case["predictor"] != 1 and (case["codec"] not in ("lzw", "deflate", "zstd") or bits
                                   or "complex" in base):
        return False
    if case["predictor"] == 3 and base not in ("float32", "float64"):
        return False
    no_lerc = bits or "complex" in base or base in ("uint64", "int64", "float16")
    return not (case["codec"].startswith("lerc") and no_lerc)


def pairs_of(case):
    return set(itertools.combinations(sorted(case.items()), 2))


def covering(seed=20):
    """Cases such that each pair of values that can stand together does so at least once."""
    rng = random.Random(seed)
    draw = lambda: {name: rng.choice(values) for name, values in FACTORS.items()}
    pool = list(filter(legal, (draw() for _ in range(6000))))
    wanted, chosen = set().union(*map(pairs_of, pool)), []
    while wanted:
        best = max(rng.sample(pool, 40), key=lambda case: len(pairs_of(case) & wanted))
        if not pairs_of(best) & wanted:
            best = next(case for case in pool if pairs_of(case) & wanted)
        wanted -= pairs_of(best)
        chosen.append(best)
    return chosen


def name_of(case):
    return "-".join(str(value).replace(" ", "_") for value in case.values())


def gdal_options(case):
    kind, *numbers = case["layout"].split()
    options = {"compress": case["codec"], "interleave": case["interleave"],
               "endianness": case["endianness"],
               "bigtiff": case["bigtiff"]}
    if kind == "rows":
        options["blockysize"] = numbers[0]
    else:
        options |= {"tiled": True, "blockxsize": numbers[0], "blockysize": numbers[1]}
    if case["predictor"] != 1:
        options["predictor"] = case["predictor"]
    return options


@pytest.mark.parametrize("case", covering(), ids=name_of)
def test_pair(case):
    base, _, bits = case["sample"].partition(":")
    rng = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    options = gdal_options(case)
    shape = (case["bands"], case["size"][1], case["size"][0])
    if bits:
        options["nbits"] = bits
    if base == "complex_int16":
        array = rng.integers(-32768, 32767, (*shape, 2)).astype("f4").view("c8")[..., 0]
        options["dtype"] = base
    else:
        array = reference.noise(rng, shape, base, int(bits) if bits else None)
    if case["codec"].startswith("lerc") and array.dtype.kind == "f":
        array = np.nan_to_num(array, posinf=3, neginf=-3)
    data = reference.write(array, **options)
    expected = reference.read(data)
    if not case["codec"].startswith("lerc"):  # which may lose the last digits of wild floats
        assert reference.same(expected, reference.native(array,
                                                 base)), "GDAL itself does not return what it wrote"
    check_file(data, expected, len(data))


# ---- codecs with rules of their own ------------------------------------------------------------

@pytest.mark.parametrize("layout", [{}, {"tiled": True, "blockxsize": 32, "blockysize": 32},
                                    {"blockysize": 16}])
@pytest.mark.parametrize("bands,options", [
    (1, {}), (3, {"photometric": "RGB"}), (3, {"photometric": "YCBCR"}),
    (3, {"interleave": "band"}),
    (4, {"photometric": "RGB"}), (2, {}), (4, {"photometric": "CMYK"}),
    (1, {"jpegtablesmode": 0}), (3, {"photometric": "YCBCR", "jpegtablesmode": 3}),
    (5, {"interleave": "band"})])
def test_jpeg(bands, options, layout):
    array = np.cumsum(np.random.default_rng(bands).integers(0, 3, (bands, 75, 91)),
                      axis=-1).astype("u1")
    data = reference.write(array, compress="jpeg", **options, **layout)
    check_file(data, reference.read(data))


@pytest.mark.parametrize("dtype,planar", [("u1", False), ("u2", False), ("u2", True)])
@pytest.mark.parametrize("layout", [{"rows": 7}, {"tile": (16, 16)}])
def test_cmyk(dtype, planar, layout):
    """Bytes of CMYK leave GDAL as RGBA, wider samples as they are."""
    array = reference.noise(np.random.default_rng(13), (4, 20, 33), dtype)
    data = tb.image(array, photometric=5, planar=planar, **layout)
    check_file(data, reference.read(data))
    with reference.opened(data) as expected, cogpu.open_memory(data) as file:
        names = [file.band(i).interpretation for i in (1, 2, 3, 4)]
        assert names == [c.name for c in expected.colorinterp]


@pytest.mark.parametrize("lossless", ["YES", "NO"])
@pytest.mark.parametrize("bands", [3, 4])
@pytest.mark.parametrize("layout", [{}, {"tiled": True, "blockxsize": 32, "blockysize": 48}])
def test_webp(bands, lossless, layout):
    array = np.cumsum(np.random.default_rng(bands).integers(0, 3, (bands, 75, 91)),
                      axis=-1).astype("u1")
    if bands == 4:
        array[3, :48, :32] = 255  # T100: an opaque tile is stored without alpha
    data = reference.write(array, compress="webp", webp_lossless=lossless, **layout)
    check_file(data, reference.read(data))


@pytest.mark.parametrize("codec", ["ccittrle", "ccittfax3", "ccittfax4", "packbits", "lzw",
                                   "deflate"])
@pytest.mark.parametrize("layout", [{}, {"blockysize": 5},
                                    {"tiled": True, "blockxsize": 32, "blockysize": 16}])
@pytest.mark.parametrize("density", [0, 0.02, 0.5, 0.98, 1])
def test_one_bit(codec, layout, density):
    rng = np.random.default_rng(int(100 * density))
    array = (rng.random((1, 37, 1 + int(700 * density) % 301)) < density).astype("u1")
    array[0, 10:20] = array[0, 9]
    for photometric in ("MINISBLACK", "MINISWHITE"):
        data = reference.write(array, compress=codec, nbits=1, photometric=photometric, **layout)
        expected = reference.read(data)
        assert reference.same(expected, array)
        check_file(data, expected)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"])
@pytest.mark.parametrize("options", [{}, {"interleave": "band"},
                                     {"tiled": True, "blockxsize": 16, "blockysize": 16},
                                     {"max_z_error": 0.5}, {"endianness": "BIG"}])
@pytest.mark.parametrize("codec", ["lerc", "lerc_deflate", "lerc_zstd"])
def test_lerc(dtype, options, codec):
    array = (np.cumsum(np.random.default_rng(3).normal(size=(3, 33, 29)),
                       axis=-1)).astype("f8").clip(0, 100)
    data = reference.write(array.astype(dtype), compress=codec, **options)
    check_file(data, reference.read(data))


@pytest.mark.parametrize("nodata", [None, -9999.0, float("nan")])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_lerc_mask_T095(dtype, nodata, interleave):
    """NaNs leave LERC by its mask; they come back as GDAL gives them back."""
    array = np.random.default_rng(4).normal(size=(2, 40, 31)).astype(dtype)
    array[:, 5:9, 3:20] = np.nan
    array[0, 20:22] = np.nan
    data = reference.write(array, compress="lerc", nodata=nodata, interleave=interleave)
    check_file(data, reference.read(data))


@pytest.mark.parametrize("codec", [tb.OLD_DEFLATE, tb.LZMA, tb.PACKBITS, tb.NONE])
@pytest.mark.parametrize("predictor,dtype", [(1, "u2"), (2, "u2"), (2, "f4"), (3, "f4"), (1, "f8")])
@pytest.mark.parametrize("order", "<>")
def test_codec_and_predictor_by_own_writer(codec, predictor, dtype, order):
    if predictor != 1 and codec in (tb.PACKBITS, tb.NONE):
        pytest.skip("predictors do not go with this codec")
    array = reference.noise(np.random.default_rng(5), (2, 33, 18), dtype)
    data = tb.image(array, order=order, compression=codec, encode=CODECS[codec],
                    predictor=predictor, rows=10)
    assert reference.same(reference.read(data), array)
    check_file(data, array)


@pytest.mark.parametrize("bits", list(range(1, 8)) + list(range(9, 16)) + list(range(17, 32)))
@pytest.mark.parametrize("planar", [False, True])
def test_packed_bits_T023_T024(bits, planar):
    dtype = "u1" if bits < 8 else "u2" if bits < 16 else "u4"
    array = reference.noise(np.random.default_rng(bits), (3, 13, 21), dtype, bits)
    for order, tile in itertools.product("<>", (None, (16, 16))):
        data = tb.image(array, order=order, bits=bits, format=1, planar=planar, tile=tile,
                        rows=None if tile else 5)
        assert reference.same(reference.read(data), array)
        check_file(data, array)


@pytest.mark.parametrize("dtype", [cogpu.CI16, cogpu.CI32, "c8", "c16"])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("planar", [False, True])
def test_complex_T027(dtype, order, planar):
    rng = np.random.default_rng(6)
    if np.dtype(dtype).kind == "V":
        array = np.empty((2, 9, 11), dtype)
        for part in ("re", "im"):
            array[part] = reference.noise(rng, array.shape, dtype[0])
    else:
        array = reference.noise(rng, (2, 9, 11), dtype)
    data = tb.image(array, order=order, planar=planar, rows=4, compression=tb.DEFLATE,
                    encode=zlib.compress)
    with reference.opened(data) as file:
        values = file.read()
    back = reference.complex_pairs(values, dtype) if np.dtype(dtype).kind == "V" else values
    if dtype is cogpu.CI32:  # rasterio reads these as complex64, which rounds
        assert np.allclose(back["re"], array["re"], rtol=1e-6)
    else:
        assert reference.same(back, array)
    check_file(data, array)


def test_float24_T026():
    """1 sign, 7 exponent, 16 mantissa bits, as float32; zero, denormals, infinities and NaN too."""
    words = np.array([[0x000000, 0x3F0000, 0xBF8000, 0x400000, 0x7EFFFF, 0x000001, 0x00FFFF],
                      [0x7F0000, 0xFF0000, 0x7F8000, 0x010000, 0x3F0001, 0x812345, 0x800000]], "u4")
    for order in "<>":
        raw = words.astype(order + "u4").view("u1").reshape(2, 7, 4)
        raw = raw[..., :3] if order == "<" else raw[..., 1:]
        data = tb.image(words[None], order=order, bits=24, format=3, blocks=[raw.tobytes()])
        expected = reference.read(data)
        assert expected.dtype == "f4" and expected[0, 0, 1] == 1
        check_file(data, expected)


def test_float24_predictor3_T026():
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 256, (5, 9, 3), dtype="uint8")
    raw[..., 0] &= 0xBF  # most significant byte: no infinities
    planes = raw.transpose(0, 2, 1).reshape(5, -1)
    coded = planes.copy()
    coded[:, 1:] = planes[:, 1:] - planes[:, :-1]
    data = tb.image(np.zeros((1, 5, 9), "u4"), bits=24, format=3, predictor=3,
                    compression=tb.DEFLATE,
                    blocks=[zlib.compress(coded.tobytes())])
    check_file(data, reference.read(data))


@pytest.mark.parametrize("codec", [tb.NONE, tb.PACKBITS, tb.LZW, tb.DEFLATE])
@pytest.mark.parametrize("dtype,bits", [("u1", None), ("u2", None), ("u1", 1), ("u2", 12),
                                        ("f4", None)])
def test_fill_order_2_T029(codec, dtype, bits):
    array = reference.noise(np.random.default_rng(8), (1, 19, 23), dtype, bits)
    encode = lambda data: tb.reverse_bits(CODECS[codec](data))
    data = tb.image(array, compression=codec, encode=encode, bits=bits, format=1 if bits else None,
                    rows=7,
                    tags={266: (tb.SHORT, [2])})
    assert reference.same(reference.read(data), array)
    check_file(data, array)


# ---- levels ------------------------------------------------------------------------------------

def check_levels(path):
    """Every level of a file, its size, transform and pixels, as GDAL's overviews."""
    with cogpu.open(path) as file, rasterio.open(path) as base:
        factors = base.overviews(1)
        assert file.info().levels == len(factors) + 1
        for index, level in enumerate(file.levels()):
            options = {"overview_level": index - 1} if index else {}
            with rasterio.open(path, **options) as expected:
                assert (level.width, level.height) == (expected.width, expected.height)
                assert (level.block_height, level.block_width) == expected.block_shapes[0]
                assert reference.same(file.read(level=index), expected.read())
                assert level.transform == pytest.approx(expected.transform.to_gdal(), rel=1e-12)
                window = Window(1, 1, level.width - 1, level.height - 1)
                part = file.read(level=index, window=(1, 1, window.width, window.height))
                assert reference.same(part, expected.read(window=window))
        return len(factors)


def terrain(bands=1, height=301, width=275, dtype="u2"):
    rng = np.random.default_rng(9)
    return (np.cumsum(rng.integers(0, 5, (bands, height, width)), axis=-1) % 1000).astype(dtype)


GEO = {"crs": "EPSG:32633", "transform": rasterio.transform.from_origin(400000, 5800000, 10, 20)}


def save(path, array, **options):
    bands, height, width = array.shape
    with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width,
                       dtype=array.dtype,
                       **GEO, **options) as file:
        file.write(array)
    return path


def add_overviews(path, factors, external=False):
    with rasterio.Env(TIFF_USE_OVR=external), rasterio.open(path, "r+") as file:
        file.build_overviews(factors, Resampling.average)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("options", [{}, {"interleave": "band", "tiled": True, "compress": "zstd",
                                          "predictor": 2},
                                     {"endianness": "BIG"}, {"bigtiff": "YES", "compress": "lzw"}])
def test_overviews_of_gdaladdo_T063_T064_T066(tmp_path, options, external):
    path = save(tmp_path / "a.tif", terrain(3), **options)
    add_overviews(path, [2, 3, 8], external)
    assert (tmp_path / "a.tif.ovr").exists() == external
    assert check_levels(path) == 3
    if external:
        with cogpu.open(path) as file:
            assert [level.external for level in file.levels()] == [0, 1, 1, 1]
        with cogpu.open(path, cogpu.OpenOptions(sidecars=cogpu.SIDECARS_NONE)) as file:
            assert file.info().levels == 1


@pytest.mark.parametrize("damage", ["empty", "noise", "cut", "other size"])
def test_malformed_ovr_T079(tmp_path, damage):
    """Level 0 reads whatever lies beside the file."""
    array = terrain()
    path = save(tmp_path / "a.tif", array)
    add_overviews(path, [2, 4], external=True)
    side = tmp_path / "a.tif.ovr"
    whole = side.read_bytes()
    side.write_bytes({"empty": b"", "noise": bytes(range(256)), "cut": whole[:len(whole) // 3],
                      "other size": tb.image(np.zeros((900, 900), "u2"),
                                             tags={254: (tb.LONG, [1])})}[damage])
    with cogpu.open(path) as file:
        assert reference.same(file.read(), array)
        if damage == "other size":
            assert file.info().levels == 1
        for level in range(1, file.info().levels):
            with pytest.raises(cogpu.CogpuError):
                file.read(level=level)
                raise AssertionError("a level was read from a broken file")


@pytest.mark.parametrize("interleave", ["PIXEL", "BAND", "TILE"])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("options", [
    {"COMPRESS": "DEFLATE", "PREDICTOR": "YES"}, {"COMPRESS": "NONE"},
    {"COMPRESS": "ZSTD", "BIGTIFF": "YES"},
    {"COMPRESS": "LZW", "SPARSE_OK": "TRUE"}, {"COMPRESS": "LERC"}])
def test_cog(tmp_path, interleave, mask, options):
    array = terrain(3, 700, 530)
    array[:, 256:512] = 0
    source = save(tmp_path / "source.tif", array)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        if mask:
            with rasterio.open(source, "r+") as file:
                file.write_mask((array[0] % 7 != 0).astype("u1") * 255)
        path = tmp_path / "cog.tif"
        rasterio.shutil.copy(source, path, driver="COG", BLOCKSIZE=128, INTERLEAVE=interleave,
                             **options)
    assert check_levels(path) > 1
    check_masks(path)
    with cogpu.open(path) as file:
        ghost = file.info().ghost
        assert ghost & 1 and ghost & 2 and ghost & 4 and ghost & 8 and ghost & 16 and not ghost & 64
        assert bool(ghost & 32) == (mask and interleave == "PIXEL")


@pytest.mark.parametrize("bands", [3, 4])
def test_cog_jpeg(tmp_path, bands):
    """GDAL turns the alpha of a JPEG COG into a mask and the colours into YCbCr."""
    array = terrain(bands, 400, 300, "u1")
    if bands == 4:
        array[3] = np.where(array[3] > 100, 255, 0)
    source = save(tmp_path / "source.tif", array, photometric="RGB")
    path = tmp_path / "cog.tif"
    rasterio.shutil.copy(source, path, driver="COG", BLOCKSIZE=128, COMPRESS="JPEG")
    assert check_levels(path) > 0
    check_masks(path)


@pytest.mark.parametrize("nodata", [None, 7])
@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("rows", ["all", "none", "some"])
def test_sparse_T047(tmp_path, nodata, interleave, rows):
    """Blocks that the file does not hold read as nodata, or 0."""
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=2, height=100, width=70, dtype="uint16",
                       tiled=True,
                       blockxsize=32, blockysize=32, SPARSE_OK=True, nodata=nodata,
                       interleave=interleave,
                       compress="deflate", **GEO) as file:
        if rows != "none":
            height = 100 if rows == "all" else 32
            file.write(terrain(2, height, 70), window=Window(0, 0, 70, height))
    with rasterio.open(path) as expected, cogpu.open(path) as file:
        check_reads(file, expected.read())
        file.read()
        assert file.last_result.blocks == (12 if interleave == "pixel" else 24)
        share = {"all": 0, "none": 1, "some": 9 / 12}[rows]
        assert file.last_result.sparse_blocks == share * file.last_result.blocks


# ---- masks -------------------------------------------------------------------------------------

def check_masks(path):
    """The mask of every level, band by band, as GDAL's."""
    with cogpu.open(path) as file:
        for index in range(file.info().levels):
            options = {"overview_level": index - 1} if index else {}
            with rasterio.open(path, **options) as expected:
                whole = expected.read_masks()
                whole = np.where(whole > 0, 255, 0).astype("u1")  # GDAL hands out alpha as it is
                colours = expected.count - (expected.colorinterp[-1] == ColorInterp.alpha)
                found = file.read(content=cogpu.MASK, level=index)
                assert reference.same(found[:colours], whole[:colours]), index
                for band in range(1, colours + 1):
                    assert reference.same(file.mask(band, level=index), whole[band - 1]), (index, band)
                height, width = expected.shape
                part = file.mask(level=index, window=(1, 0, width - 1, height))
                assert reference.same(part, whole[0, :, 1:])


@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("options", [{}, {"tiled": True, "blockxsize": 64, "blockysize": 64,
                                          "compress": "deflate"}])
@pytest.mark.parametrize("overviews", [[], [2, 4]])
def test_internal_mask(tmp_path, bands, options, overviews):
    array = terrain(bands)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = save(tmp_path / "a.tif", array, **options)
        with rasterio.open(path, "r+") as file:
            file.write_mask((array[0] % 3 != 0).astype("u1") * 255)
        if overviews:
            add_overviews(path, overviews)
    with rasterio.open(path) as file:
        assert file.mask_flag_enums[0] == [MaskFlags.per_dataset]
    check_masks(path)
    check_levels(path)
    with cogpu.open(path) as file:
        assert file.info().mask_source == cogpu.MASK_DIRECTORY


@pytest.mark.parametrize("dtype,nodata", [
    ("u1", 0), ("u1", 255), ("i1", -128), ("u2", 65535), ("i2", -32768), ("u4", 4294967295),
    ("i4", -2147483648),
    ("u8", 5), ("i8", -5), ("f4", -9999), ("f4", float("nan")),
    ("f8", float("nan")), ("f4", -3.4028234663852886e+38), ("f8", 1e300), ("f4", float("inf")),
    ("f2", -1)])
def test_nodata_mask_T112(tmp_path, dtype, nodata):
    array = terrain(2, 40, 33, dtype)
    array[0, 3:9, 5:20] = np.array(nodata).astype(dtype)
    path = save(tmp_path / "a.tif", array, nodata=nodata)
    check_masks(path)
    with cogpu.open(path) as file:
        info = file.info()
        assert info.mask_source == cogpu.MASK_NODATA and info.nodata.matches
        if dtype == "u8":
            assert info.nodata.u64 == nodata
        elif dtype == "i8":
            assert info.nodata.i64 == nodata
        else:
            assert np.array(info.nodata.value).astype(dtype) == np.array(nodata).astype(dtype) or nodata != nodata
        assert file.mask()[5, 7] == 0 and file.mask()[0, 0] == 255


@pytest.mark.parametrize("bands,options", [
    (4, {"photometric": "RGB", "ALPHA": "YES"}), (2, {"ALPHA": "YES"}),
    (4, {"photometric": "RGB", "ALPHA": "PREMULTIPLIED"}), (2, {"ALPHA": "NON-PREMULTIPLIED"})])
@pytest.mark.parametrize("nodata", [None, 1])
def test_alpha_mask(tmp_path, bands, options, nodata):
    array = terrain(bands, 50, 41, "u1")
    array[-1, 5:9] = 0
    path = save(tmp_path / "a.tif", array, nodata=nodata, **options)
    check_masks(path)
    with cogpu.open(path) as file:
        info = file.info()
        assert info.alpha_band == bands
        assert bool(info.premultiplied) == (options["ALPHA"] == "PREMULTIPLIED")
        assert info.mask_source == (cogpu.MASK_ALPHA if nodata is None else cogpu.MASK_NODATA)


@pytest.mark.parametrize("bits", [1, 8])
def test_mask_with_a_band_for_each_band(tmp_path, bits):
    rng = np.random.default_rng(12)
    masks = rng.integers(0, 2, (3, 20, 33)).astype("u1")
    writer = tb.Writer()
    tb.add_image(writer, terrain(3, 20, 33, "u1"), photometric=2)
    tb.add_image(writer, masks if bits == 1 else masks * 255, bits=bits, format=1, photometric=4,
                 tags={254: (tb.LONG, [4])})
    path = tmp_path / "a.tif"
    path.write_bytes(writer.bytes())
    with rasterio.open(path) as file:
        assert file.read_masks()[2].any() and not reference.same(*file.read_masks()[:2])
    check_masks(path)


def test_no_mask_is_all_valid(tmp_path):
    path = save(tmp_path / "a.tif", terrain())
    check_masks(path)
    with cogpu.open(path) as file:
        assert file.info().mask_source == cogpu.MASK_NONE


# ---- metadata ----------------------------------------------------------------------------------

def test_band_facts(tmp_path):
    path = save(tmp_path / "a.tif", terrain(3))
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.1, 2, 1), (-5, 0, 0)
        file.units = ("m", "", "degrees <C> & more")
        file.descriptions = ("height", None, 'größe "x"')
        file.colorinterp = (ColorInterp.gray, ColorInterp.undefined, ColorInterp.alpha)
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        bands = [file.band(i) for i in (1, 2, 3)]
        assert tuple(b.scale for b in bands) == expected.scales
        assert tuple(b.offset for b in bands) == expected.offsets
        assert [bool(b.has_scale) for b in bands] == [True, True, False]
        assert tuple(b.description for b in bands) == expected.descriptions
        assert tuple(b.unit or None for b in bands) == tuple(unit or None
                                                             for unit in expected.units)
        assert [b.interpretation for b in bands] == [c.name for c in expected.colorinterp]
        with pytest.raises(cogpu.CogpuError) as caught:
            file.band(4)
        assert caught.value.status in (cogpu.INVALID_ARGUMENT, cogpu.NOT_FOUND)
        with pytest.raises(cogpu.CogpuError):
            file.band(0)


@pytest.mark.parametrize("bands,options", [
    (1, {}), (2, {}), (3, {"photometric": "RGB"}), (4, {"photometric": "RGB"}), (4, {}),
    (4, {"photometric": "CMYK"}),
    (3, {"photometric": "YCBCR", "compress": "jpeg"}), (5, {"photometric": "RGB", "ALPHA": "YES"}),
    (2, {"ALPHA": "YES"}), (1, {"photometric": "MINISWHITE"}), (3, {"photometric": "MINISBLACK"})])
def test_colour_interpretation_T033(tmp_path, bands, options):
    path = save(tmp_path / "a.tif", terrain(bands, 32, 32, "u1"), **options)
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        names = [file.band(i + 1).interpretation for i in range(bands)]
        assert names == [{"grey": "gray"}.get(c.name, c.name) for c in expected.colorinterp]


def test_palette_T031(tmp_path):
    path = save(tmp_path / "a.tif", terrain(1, 32, 32, "u1") % 4, photometric="PALETTE")
    colours = {i: (i, 255 - i, i // 2, 255) for i in range(256)}
    with rasterio.open(path, "r+") as file:
        file.write_colormap(1, colours)
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        info = file.info()
        assert info.palette_entries == 256 and file.band(1).interpretation == "palette"
        reds, greens, blues = (info.palette[i * 256:(i + 1) * 256] for i in range(3))
        for index, (red, green, blue, _) in expected.colormap(1).items():
            assert (reds[index] // 257, greens[index] // 257, blues[index] // 257) == (red, green,
                                                                                       blue)


def test_items_and_domains(tmp_path):
    path = save(tmp_path / "a.tif", terrain(2))
    with rasterio.open(path, "r+") as file:
        file.update_tags(PLAIN="yes", STRANGE="a<b>&\"c\" ü", EMPTY="")
        file.update_tags(ns="MY_DOMAIN", KEY="other")
        file.update_tags(1, STATISTICS_MEAN="12.5")
        file.update_tags(2, ns="BAND_DOMAIN", DEEP="2")
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        items = {(i.domain, i.band, i.name): i.value for i in file.items() if not i.role}
        for key, value in expected.tags().items():
            if key != "AREA_OR_POINT":
                assert items["", 0, key] == value
        assert items["MY_DOMAIN", 0, "KEY"] == "other"
        assert items["", 1, "STATISTICS_MEAN"] == "12.5"
        assert items["BAND_DOMAIN", 2, "DEEP"] == "2"
        with pytest.raises(cogpu.CogpuError) as caught:
            file.item(len(file.items()))
        assert caught.value.status == cogpu.NOT_FOUND


def test_description_tag(tmp_path):
    path = save(tmp_path / "a.tif", terrain())
    with rasterio.open(path, "r+") as file:
        file.update_tags(TIFFTAG_IMAGEDESCRIPTION="a picture")
    with cogpu.open(path) as file:
        assert file.info().description == "a picture"


@pytest.mark.parametrize("transform", [
    (400000, 10, 0, 5800000, 0, -20), (0.5, 0.25, 0, 10.75, 0, -0.125), (7, 2, 0.5, 9, -0.25, -3),
    (100, -1, 0, 50, 0, -1), (100, 1, 0, 50, 0, 1)])
@pytest.mark.parametrize("point", [False, True])
def test_transform_T126_T127_T141(tmp_path, transform, point):
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=9, width=11, dtype="uint8",
                       crs="EPSG:32633",
                       transform=rasterio.Affine.from_gdal(*transform)) as file:
        if point:
            file.update_tags(AREA_OR_POINT="Point")
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        info = file.info()
        assert bool(info.pixel_is_point) == point
        assert info.has_transform
        assert info.transform == pytest.approx(expected.transform.to_gdal(), rel=1e-15, abs=1e-12)
        assert info.transform == pytest.approx(transform, rel=1e-12)


def test_no_georeference_T130(tmp_path):
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=9, width=11, dtype="uint8"):
        pass
    with cogpu.open(path) as file:
        info = file.info()
        assert not info.has_transform and info.gcps == [] and info.rpc is None and info.geokey_count == 0
        for ask in (file.crs, file.wkt):
            with pytest.raises(cogpu.CogpuError) as caught:
                ask()
            assert caught.value.status == cogpu.NOT_FOUND


def test_gcps_T140(tmp_path):
    path = tmp_path / "a.tif"
    points = [rasterio.control.GroundControlPoint(r, c, 10 + c / 3, 50 - r / 7, c * 1.5)
              for r, c in ((0, 0), (0, 11), (9, 0), (4.5, 2.25))]
    with rasterio.open(path, "w", driver="GTiff", count=1, height=9, width=11, dtype="uint8",
                       gcps=points,
                       crs="EPSG:4326"):
        pass
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        info, (gcps, crs) = file.info(), expected.gcps
        assert not info.has_transform
        assert [(g.column, g.row, g.x, g.y, g.z)
                for g in info.gcps] == [(g.col, g.row, g.x, g.y, g.z) for g in gcps]
        assert file.crs().code == crs.to_epsg() == 4326


def test_rpcs(tmp_path):
    path = tmp_path / "a.tif"
    rpcs = rasterio.rpc.RPC(height_off=1, height_scale=2, lat_off=3, lat_scale=4,
                            line_den_coeff=list(range(20)),
                            line_num_coeff=list(range(20, 40)), line_off=5, line_scale=6,
                            long_off=7, long_scale=8,
                            samp_den_coeff=list(range(40, 60)), samp_num_coeff=list(range(60, 80)),
                            samp_off=9,
                            samp_scale=10, err_bias=0.5, err_rand=0.25)
    with rasterio.open(path, "w", driver="GTiff", count=1, height=9, width=11, dtype="uint8",
                       rpcs=rpcs):
        pass
    with cogpu.open(path) as file, rasterio.open(path) as expected:
        want = expected.rpcs
        assert want.line_off == 5
        assert file.info().rpc == [want.err_bias, want.err_rand, want.line_off, want.samp_off,
                                   want.lat_off,
                                   want.long_off, want.height_off, want.line_scale, want.samp_scale,
                                   want.lat_scale,
                                   want.long_scale, want.height_scale, *want.line_num_coeff,
                                   *want.line_den_coeff,
                                   *want.samp_num_coeff, *want.samp_den_coeff]


# ---- coordinate systems ------------------------------------------------------------------------

CODES = [4326, 3857, 32633, 32733, 2154, 27700, 25832, 3067, 5070, 6933, 3031, 3413, 2056, 28992,
         21781, 3035, 5514,
         2193, 26711, 6318, 7844, 9057, 8252, 4087, 4499, 4258, 2927, 5041, 3832, 6350]


def gdal_with_crs(path, crs):
    with rasterio.open(path, "w", driver="GTiff", count=1, height=9, width=11, dtype="uint8",
                       crs=crs,
                       transform=GEO["transform"]):
        pass
    with rasterio.open(path) as file:
        return file.crs


@pytest.mark.parametrize("code", CODES)
def test_crs_code_T131(tmp_path, code):
    crs = gdal_with_crs(tmp_path / "a.tif", f"EPSG:{code}")
    with cogpu.open(tmp_path / "a.tif") as file:
        said = file.crs()
        assert (said.authority, said.code) == ("EPSG", code)
        assert said.model == ("geographic" if crs.is_geographic else "projected")
        assert rasterio.crs.CRS.from_wkt(file.wkt()) == crs


def test_crs_of_three_dimensions_T131(tmp_path):
    """GDAL names 4979 among the vertical keys, and spells 4978 out."""
    for code, stated in ((4979, (4326, 4979)), (4978, (0, 0))):
        crs = gdal_with_crs(tmp_path / "a.tif", f"EPSG:{code}")
        with cogpu.open(tmp_path / "a.tif") as file:
            said = file.crs()
            assert (said.code, said.vertical) in (stated, (code, 0))
            assert said.model == ("geographic" if code == 4979 else "geocentric")
            assert rasterio.crs.CRS.from_wkt(file.wkt()) == crs


@pytest.mark.parametrize("code,horizontal,vertical",
                         [(5555, 25832, 5783), (7415, 28992, 5709), (9518, 4326, 3855)])
def test_compound_crs_T132(tmp_path, code, horizontal, vertical):
    gdal_with_crs(tmp_path / "a.tif", f"EPSG:{code}")
    with cogpu.open(tmp_path / "a.tif") as file:
        said = file.crs()
        assert (said.code, said.vertical) == (horizontal, vertical)
        assert "COMPOUNDCRS" in file.wkt()


PROJECTIONS = [
    "+proj=laea +lat_0=48 +lon_0=9 +x_0=1000 +y_0=2000",
    "+proj=tmerc +lat_0=1 +lon_0=9.5 +k=0.9999 +x_0=500000 +y_0=10",
    "+proj=lcc +lat_1=40 +lat_2=50 +lat_0=45 +lon_0=3",
    "+proj=lcc +lat_1=45 +lat_0=45 +lon_0=3 +k_0=0.999",
    "+proj=aea +lat_1=29.5 +lat_2=45.5 +lat_0=23 +lon_0=-96",
    "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45",
    "+proj=merc +lon_0=10 +k=0.9", "+proj=eqc +lat_ts=30 +lon_0=5", "+proj=sinu +lon_0=20",
    "+proj=robin +lon_0=30",
    "+proj=cass +lat_0=10 +lon_0=-61", "+proj=poly +lat_0=0 +lon_0=-54",
    "+proj=cea +lon_0=10 +lat_ts=30",
    "+proj=aeqd +lat_0=40 +lon_0=-100", "+proj=eqdc +lat_0=0 +lon_0=10 +lat_1=43 +lat_2=62",
    "+proj=gnom +lat_0=30 +lon_0=7",
    "+proj=ortho +lat_0=30 +lon_0=7", "+proj=mill +lon_0=5", "+proj=vandg +lon_0=5",
    "+proj=omerc +lat_0=4 +lonc=102 +alpha=323 +gamma=323 +k=0.99984 +x_0=0 +y_0=0",
    "+proj=sterea +lat_0=52 +lon_0=5 +k=0.9999 +x_0=155000 +y_0=463000",
    "+proj=tmerc +lat_0=49 +lon_0=-2 +k=0.9996 +x_0=400000 +y_0=-100000 +datum=WGS84 +units=us-ft"]


@pytest.mark.parametrize("text", PROJECTIONS)
def test_crs_by_parameters(tmp_path, text):
    """No code names the system: the WKT by PROJ means what GDAL's means, or the library says that it cannot."""
    crs = gdal_with_crs(tmp_path / "a.tif",
                        text + ("" if "datum" in text else " +datum=WGS84 +units=m"))
    with cogpu.open(tmp_path / "a.tif") as file:
        assert file.crs().code == 0
        try:
            wkt = file.wkt()
        except cogpu.CogpuError as error:
            assert error.status == cogpu.UNSUPPORTED
            pytest.xfail(error.message)
        assert rasterio.crs.CRS.from_wkt(wkt).to_dict() == crs.to_dict()


@pytest.mark.parametrize("dtype, bands, options", [
    ("uint8", 3, dict(interleave="pixel", predictor=2)),
    ("uint16", 4, dict(interleave="pixel", predictor=2)),
    ("float32", 1, dict(predictor=2)),
    ("float32", 1, dict(predictor=3)),
])
def test_rasters_beyond_the_caches(dtype, bands, options, tmp_path):
    """Past 64 MiB pixels are written past the caches, in rows that are aligned or not."""
    side = 4300 if dtype == "float32" else 4900 if bands == 3 else 3000
    rng = np.random.default_rng(3)
    pixels = np.tile(rng.integers(0, 200, (bands, 1, side)).astype(dtype), (1, side, 1))
    pixels += np.arange(side, dtype=dtype)[:, None] % 50
    assert pixels.nbytes > 64 << 20
    path = tmp_path / "large.tif"
    with rasterio.open(path, "w", driver="GTiff", width=side, height=side, count=bands, dtype=dtype,
                       tiled=True, blockxsize=528, blockysize=512, compress="zstd", zstd_level=1,
                       num_threads=2, **options) as file:
        file.write(pixels)
    with cogpu.open(path) as file:
        assert np.array_equal(file.read(threads=2), pixels)
        room = np.zeros(pixels.nbytes + 64, "u1")
        for shift in (0, pixels.itemsize):  # a raster that begins off the vectors' alignment
            out = room[shift:shift + pixels.nbytes].view(dtype).reshape(pixels.shape)
            file.read(out=out)
            assert np.array_equal(out, pixels)
