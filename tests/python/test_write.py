"""Files of the writer: read back by us, by GDAL and by tifffile; streamed the same as at once, byte by byte;
what cannot be written is refused before the first byte."""

import io
import os
import subprocess
import sys

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import rasterio
import tifffile
from rasterio.io import MemoryFile

TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]
LOSSLESS = ["none", "packbits", "lzw", "deflate", "zstd", "lzma"]
LAYOUTS = {"tiles": {"block_width": 64}, "low tiles": {"block_width": 80, "block_height": 32},
           "strips": {"strips": 1, "block_height": 7}, "cog": {"cog": 1, "block_width": 64}}


def pixels(dtype, bands=1, height=150, width=203, seed=1):
    """Hills with some noise, which codecs and predictors can get hold of."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    hills = np.sin(x / 17) * 40 + np.cos(y / 11) * 30 + random.normal(0, 2, (bands, height, width)) + 100
    if np.dtype(dtype).kind == "c":
        return (hills + 1j * hills[:, ::-1]).astype(dtype)
    if np.dtype(dtype) == "i1":
        hills -= 100
    return hills.astype(dtype)


def read_back(data, **request):
    with cogpu.open_memory(data) as file:
        return file.read(**request)


def check(array, data, **request):
    """Three readers have the same pixels as those that were written."""
    assert reference.same(read_back(data, **request), array)
    if array.dtype != np.dtype("f2") or not gdal_is_old():
        assert reference.same(reference.read(data), array)
    page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    found = page.asarray()
    if found.ndim == 2:
        found = found[None]
    elif page.planarconfig == 1:
        found = np.moveaxis(found, -1, 0)
    assert reference.same(np.ascontiguousarray(found), array)


def gdal_is_old():
    return tuple(map(int, rasterio.__gdal_version__.split(".")[:2])) < (3, 11)


def is_written(codec):
    return any(row.name == codec and row.can_decode for row in cogpu.codecs().values())


# ---- pixels ------------------------------------------------------------------------------------

@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("codec", LOSSLESS)
@pytest.mark.parametrize("dtype", TYPES)
def test_lossless(dtype, codec, layout):
    array = pixels(dtype)
    check(array, cogpu.write(array, codec=codec, **LAYOUTS[layout]))


@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("bands", [2, 3, 4, 7])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
def test_bands(dtype, bands, planar, layout):
    array = pixels(dtype, bands)
    check(array, cogpu.write(array, interleave=planar, **LAYOUTS[layout]))


@pytest.mark.parametrize("predictor", [1, 2, 3])
@pytest.mark.parametrize("codec", ["lzw", "deflate", "zstd", "lzma"])
@pytest.mark.parametrize("bands", [1, 3])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f2", "f4", "f8"])
def test_predictors(dtype, codec, predictor, bands):
    array = pixels(dtype, bands)
    if predictor == 3 and array.dtype.kind != "f":
        with pytest.raises(cogpu.CogpuError, match="predictor 3 is not for"):
            cogpu.write(array, codec=codec, predictor=predictor)
        return
    check(array, cogpu.write(array, codec=codec, predictor=predictor, block_width=64))


@pytest.mark.parametrize("size", [(1, 1), (1, 513), (513, 1), (16, 16), (17, 15), (512, 512), (513, 511)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes(size, layout):
    array = pixels("u2", 2, *size)
    check(array, cogpu.write(array, **LAYOUTS[layout]))


def test_strides():
    """Any view of the pixels gives the same file."""
    array = pixels("i2", 3)
    expected = cogpu.write(array)
    chunky = np.ascontiguousarray(np.moveaxis(array, 0, -1))
    backwards = np.ascontiguousarray(array[:, ::-1, ::-1])
    wide = np.zeros((6, 300, 406), "i2")
    wide[::2, ::2, ::2] = array
    for view in np.moveaxis(chunky, -1, 0), backwards[:, ::-1, ::-1], wide[::2, ::2, ::2]:
        assert reference.same(view, array)
        assert cogpu.write(view) == expected


# ---- streamed = at once ------------------------------------------------------------------------

CHUNKS = {"24 rows": [24] * 6 + [6], "1 row": [1] * 150, "ragged": [1, 63, 64, 1, 21], "block row": [32] * 4 + [22]}


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("options", [
    {"cog": 1, "block_width": 32}, {"cog": 1, "block_width": 32, "interleave": 1}, {"block_width": 32},
    {"strips": 1, "block_height": 9}, {"cog": 1, "block_width": 32, "resampling": "cubic", "nodata": "-9999"},
    {"block_width": 32, "overview_factors": [2, 6]}, {"cog": 1, "block_width": 16, "sparse": 1, "nodata": "nan"}],
    ids=lambda options: "-".join(f"{k}={v}" for k, v in options.items()))
def test_streamed_is_at_once(chunks, options):
    array = pixels("f4", 3)
    array[:, 20:60, 30:90] = np.nan  # holes
    array[:, 70:100] = -9999
    expected = cogpu.write(array, threads=1, **options)
    chunky = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 0, -1)), -1, 0)
    for threads in 1, 4:
        assert cogpu.write(array, chunks=CHUNKS[chunks], threads=threads, **options) == expected
        assert cogpu.write(chunky, chunks=CHUNKS[chunks], threads=threads, **options) == expected
    check(array, expected)


def test_more_threads_than_there_are():
    array = pixels("u1")
    with cogpu.Context(threads=2) as context:
        assert cogpu.write(array, context=context, threads=2**32 - 1) == cogpu.write(array)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_streamed_with_a_mask(chunks):
    array, mask = pixels("u1", 3), (pixels("u1")[0] > 100).astype("u1")
    options = {"cog": 1, "block_width": 32}
    expected = cogpu.write(array, mask, **options)
    assert cogpu.write(array, mask, CHUNKS[chunks], threads=4, **options) == expected


@pytest.mark.parametrize("options", [{"cog": 1}, {"block_width": 64}, {"strips": 1}, {"block_width": 64, "overview_factors": [2]}])
def test_sinks_get_the_same(tmp_path, options):
    array = pixels("f4", 2)
    expected = cogpu.write(array, **options)
    cogpu.write(array, path=tmp_path / "a.tif", **options)
    assert (tmp_path / "a.tif").read_bytes() == expected
    assert os.listdir(tmp_path) == ["a.tif"]
    for append_only in False, True:
        got, calls = bytearray(), []

        def write(offset, data):
            assert not append_only or offset == len(got)
            got.extend(bytes(max(0, offset + len(data) - len(got))))
            got[offset:offset + len(data)] = data

        writer = cogpu.Writer(cogpu.profile_of(array, **options), write=write, append_only=append_only,
                              commit=lambda: calls.append("commit"), abort=lambda: calls.append("abort"))
        writer.push(array)
        writer.close()
        assert bytes(got) == expected and calls == ["commit"]


# ---- layout ------------------------------------------------------------------------------------

def levels_of(data):
    with cogpu.open_memory(data) as file:
        return [(level.width, level.height) for level in file.levels()]


def test_levels():
    array = pixels("u1", 1, 300, 1000)
    assert levels_of(cogpu.write(array, cog=1, block_width=128)) == [(1000, 300), (500, 150), (250, 75), (125, 38)]
    assert levels_of(cogpu.write(array, cog=1, block_width=128, overviews="none")) == [(1000, 300)]
    assert levels_of(cogpu.write(array, block_width=128)) == [(1000, 300)]
    assert levels_of(cogpu.write(array, block_width=128, overviews="auto"))[1:] == [(500, 150), (250, 75), (125, 38)]
    assert levels_of(cogpu.write(array, block_width=128, overview_factors=[3, 10])) == [(1000, 300), (334, 100), (100, 30)]
    assert levels_of(cogpu.write(pixels("u1", 1, 512, 512), cog=1)) == [(512, 512)]


@pytest.mark.parametrize("planar", [0, 1])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bigtiff", ["no", "yes"])
def test_ghost_and_leaders(planar, masked, bigtiff):
    array = pixels("u2", 3)
    mask = (array[0] > 90).astype("u1") if masked else None
    data = cogpu.write(array, mask, cog=1, block_width=64, interleave=planar, bigtiff=bigtiff)
    with cogpu.open_memory(data) as file:
        info = file.info()
        promises = cogpu.CONSTANTS["COGPU_GHOST_IFDS_BEFORE_DATA"] | cogpu.CONSTANTS["COGPU_GHOST_LEADER"]
        assert info.ghost & promises == promises and info.bigtiff == (bigtiff == "yes")
        assert bool(info.ghost & cogpu.CONSTANTS["COGPU_GHOST_MASK_INTERLEAVED"]) == (masked and not planar)
    with reference.opened(data) as file:
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert reference.same(file.read(), array)
        if masked:
            assert np.array_equal(file.read_masks(1) > 0, mask > 0)
            assert file.overviews(1) == [2, 4]
    for page in tifffile.TiffFile(io.BytesIO(data)).pages:
        for offset, size in zip(page.dataoffsets, page.databytecounts):
            assert int.from_bytes(data[offset - 4:offset], "little") == size
            assert data[offset + size - 4:offset + size] == data[offset + size:offset + size + 4]


@pytest.mark.parametrize("options", [{}, {"cog": 1}, {"cog": 1, "interleave": 1}, {"strips": 1}])
@pytest.mark.parametrize("nodata", [None, "7"])
def test_sparse(options, nodata):
    array = np.full((2, 300, 300), 7 if nodata else 0, "u2")
    array[1, 100, 200] = 9
    options |= {"sparse": 1, "nodata": nodata} if nodata else {"sparse": 1}
    options |= {} if "strips" in options else {"block_width": 64}
    data = cogpu.write(array, **options)
    assert len(data) < 12000
    check_sparse = read_back(data)
    assert reference.same(check_sparse, array) and reference.same(reference.read(data), array)


@pytest.mark.parametrize("ways", [{"GDAL_NUM_THREADS": "3"}, {"GTIFF_HAS_OPTIMIZED_READ_MULTI_RANGE": "YES"}], ids=["threads", "remote"])
@pytest.mark.parametrize("dtype, options", [
    ("u2", {"codec": "lzma"}), ("f4", {"codec": "lzma"}), ("i8", {"sparse": 1, "nodata": "7"}), ("u8", {"sparse": 1, "nodata": "7"}),
    ("u1", {"sparse": 1, "masked": 1}), ("u1", {"sparse": 1, "masked": 1, "interleave": 1}), ("u1", {"masked": 1})],
    ids=lambda options: str(options))
def test_other_ways_of_gdal(dtype, options, ways):
    """With threads, and as it reads from servers, GDAL looks at other things of a COG."""
    array, masked = pixels(dtype, 2, 300, 300), options.get("masked")
    array[:, 64:128] = options.get("nodata", 0)
    mask = np.zeros((300, 300), "u1")
    mask[32:, :130] = 1
    data = cogpu.write(array, mask if masked else None, cog=1, block_width=64, **{k: v for k, v in options.items() if k != "masked"})
    with rasterio.Env(**ways), MemoryFile(data) as memory, memory.open() as file:
        assert reference.same(file.read(), array)
        assert not masked or np.array_equal(file.read_masks(1) > 0, mask > 0)


def test_bigtiff_boundary(tmp_path):
    """A file that could pass 4 GiB is a BigTIFF, whatever it comes to; one that is told not to be is none."""
    rows = np.zeros((1, 500, 50000), "f4")
    for bigtiff, is_big in ("auto", True), ("no", False):
        path = tmp_path / f"{bigtiff}.tif"
        profile = cogpu.profile_of(np.empty((1, 25000, 50000), "f4"), sparse=1, bigtiff=bigtiff, codec="none")
        writer = cogpu.Writer(profile, path)
        for first in range(0, 25000, 500):
            rows[0, 0, 0] = first == 20000
            writer.push(rows)
        writer.close()
        assert writer.written.bigtiff == is_big
        with rasterio.open(path) as file:
            assert file.read(1, window=((20000, 20002), (0, 2))).tolist() == [[1, 0], [0, 0]]
        with cogpu.open(path) as file:
            assert file.info().bigtiff == is_big
            assert file.read(window=(0, 20000, 2, 2)).tolist() == [[[1, 0], [0, 0]]]


def test_passing_4_gib_fails():
    """As soon as it is passed: with 9 of 10 chunks."""
    profile = cogpu.profile_of(np.empty((1, 25000, 50000), "f4"), bigtiff="no", codec="none", sparse=1)
    writer, rows = cogpu.Writer(profile, append_only=False, write=lambda offset, data: None), np.ones((1, 2500, 50000), "f4")
    for _ in range(8):
        writer.push(rows)
    with pytest.raises(cogpu.CogpuError, match="4 GiB") as failure:
        writer.push(rows)
    writer.abort()
    assert failure.value.status == cogpu.LIMIT_EXCEEDED


@pytest.mark.parametrize("height, options, fits", [
    (65535, {"strips": 1, "block_height": 1}, False), (65500, {"strips": 1, "block_height": 100}, True),
    (65500, {"strips": 1, "block_height": 100, "cog": 0, "overviews": "auto"}, False), (64512, {}, True), (65024 + 1, {}, False),
    (65535, {"codec": "lzw"}, True), (65535, {"sparse": 1}, True)])
def test_what_is_known_to_pass_4_gib(tmp_path, height, options, fits):
    """Refused at open; without a codec 65536 columns of uint8 take a 64 KiB a row, tiles are filled up."""
    options = {"codec": "none", "bigtiff": "no", **options}
    profile = cogpu.profile_of(np.broadcast_to(np.uint8(0), (1, height, 65536)), **options)
    if fits:
        cogpu.Writer(profile, tmp_path / "a.tif").abort()
    else:
        with pytest.raises(cogpu.CogpuError, match="4 GiB") as failure:
            cogpu.Writer(profile, tmp_path / "a.tif")
        assert failure.value.status == cogpu.LIMIT_EXCEEDED
    assert not os.listdir(tmp_path)


# ---- what is refused ---------------------------------------------------------------------------

@pytest.mark.parametrize("dtype, options, words", [
    ("u1", {"block_width": 17}, "multiples of 16"), ("u1", {"predictor": 3}, "not for uint8"),
    ("u1", {"predictor": 4}, "no predictor 4"), ("u1", {"codec": "jpeg", "predictor": 2}, "no predictor"),
    ("u1", {"codec": "zip"}, "no codec `zip`"), ("u2", {"codec": "jpeg"}, "jpeg stores no samples of uint16"),
    ("u1", {"compression_level": 13}, "between 1 and 12"), ("u1", {"codec": "lzw", "compression_level": 3}, "no levels"),
    ("u1", {"codec": "zstd", "compression_level": 23}, "between 1 and 22"), ("u1", {"quality": 101}, "between 1 and 100"),
    ("f4", {"codec": "lerc", "max_z_error": -1.0}, "max_z_error"), ("f4", {"codec": "lerc", "max_z_error": float("nan")}, "max_z_error"),
    ("u1", {"nodata": "-1"}, "nodata"), ("u1", {"nodata": "256"}, "nodata"), ("u2", {"nodata": "1.5"}, "nodata"),
    ("u1", {"overview_factors": [2, 2]}, "must grow"), ("u1", {"overview_factors": [1]}, "begin with 2"), ("u1", {"overview_factors": [4, 2]}, "must grow"),
    ("u1", {"overview_factors": [2, 1000, 1001]}, "no smaller"), ("u1", {"overviews": "listed"}, "none is"), ("u1", {"cog": 1, "strips": 1}, "tiles"),
    ("u1", {"metadata": [("SCALE", "nan", "", "scale", 1)]}, "scale"),
    ("u1", {"transform": [0, 0, 0, 0, 0, 0]}, "transform"), ("u1", {"transform": [0, float("nan"), 0, 0, 0, -1]}, "transform"),
    ("c8", {"predictor": 2}, "not for complex64"), ("c8", {"codec": "lerc"}, "lerc stores no samples of complex64"),
    ("c8", {"cog": 1, "resampling": 10}, "resampling"), ("f4", {"resampling": -1}, "resampling"),
    ("u1", {"overviews": 4}, "overviews"), ("u1", {"bigtiff": 3}, "bigtiff"), ("u1", {"bigtiff": -1}, "between 0 and 2, got -1"),
    ("u1", {"block_height": 8}, "for example 512 x 16"), ("u1", {"block_width": 2 ** 32 - 1}, "for example 4294967280"),
    ("u1", {"block_width": 65536}, "1 GiB at most"), ("f4", {"nodata": "x"}, "nor nan"), ("u1", {"nodata": "256"}, "choose another"),
    ("u1", {"quality": 50}, "leave `quality` out"), ("f4", {"max_z_error": 0.1}, "choose one of lerc, lerc_deflate, lerc_zstd"), ("f4", {"codec": "zstd", "max_z_error": 0.1}, "zstd has no maximum error"),
    ("u1", {"codec": "jpeg", "lossless": 1}, "jpeg is always lossy"), ("u1", {"transform": [0, 1e300, 0, 0, 0, -1e300]}, "an area that overflows"),
    ("u1", {"alpha_band": 2}, "numbered 1 to 1"), ("u1", {"alpha_band": 1}, "uses the first 1 bands for color"),
])
def test_refused(tmp_path, dtype, options, words):
    path = tmp_path / "a.tif"
    path.write_bytes(b"old")
    with pytest.raises(cogpu.CogpuError, match=words) as failure:
        cogpu.write(pixels(dtype), path=path, **options)
    assert failure.value.status == cogpu.INVALID_ARGUMENT
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.tif"]


def test_overviews_that_cannot_be_made(tmp_path):
    """Before a byte is written; the sink is told."""
    calls = []
    with pytest.raises(cogpu.CogpuError, match="choose nearest") as failure:
        cogpu.Writer(cogpu.profile_of(pixels("c8"), overview_factors=[2], resampling="median"), write=calls.append, abort=lambda: calls.append("abort"))
    assert failure.value.status == cogpu.UNSUPPORTED and calls == ["abort"]


@pytest.mark.parametrize("codec", ["ccitt_g4", "jpeg2000", "thunderscan"])
def test_codecs_that_are_only_read(codec):
    with pytest.raises(cogpu.CogpuError, match=f"{codec} cannot be written: choose one of none, packbits") as failure:
        cogpu.write(pixels("u1"), codec=codec)
    assert failure.value.status == cogpu.UNSUPPORTED


def test_thirteen_bands_are_no_jpeg():
    with pytest.raises(cogpu.CogpuError, match="interleave"):
        cogpu.write(pixels("u1", 13), codec="jpeg")


@pytest.mark.parametrize("width, options, words", [
    (70000, {"codec": "jpeg", "strips": 1}, "end at 65500"), (16384, {"codec": "webp", "strips": 1}, "end at 16383"),
    (16, {"codec": "webp", "block_width": 16384, "block_height": 16}, "end at 16383"),
    (16, {"codec": "jpeg", "strips": 1, "block_height": 24}, "multiple of 16 rows")])
def test_blocks_that_a_codec_lacks(width, options, words):
    with pytest.raises(cogpu.CogpuError, match=words):
        cogpu.Writer(cogpu.profile_of(np.zeros((3, 40, width), "u1"), **options))


@pytest.mark.parametrize("height, width, rows", [(100000, 1, 65488), (100, 3000, 16), (40, 1000, 40), (200, 1000, 80)])
def test_usual_strips_of_jpeg(height, width, rows):
    """They end where its squares do, as libtiff wants it."""
    data = cogpu.write(np.full((3, height, width), 99, "u1"), codec="jpeg", strips=1)
    assert tifffile.TiffFile(io.BytesIO(data)).pages[0].rowsperstrip == rows
    assert (reference.read(data) == 99).all()


def test_wrong_chunks(tmp_path):
    array, path = pixels("u1"), tmp_path / "a.tif"

    def refused(words, *parts):
        path.write_bytes(b"old")
        writer = cogpu.Writer(cogpu.profile_of(array), path)
        with pytest.raises(cogpu.CogpuError, match=words):
            for part in parts:
                writer.push(part)
            writer.close()
        if writer.handle:
            writer.abort()
        assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.tif"]

    refused("wide", array[:, :, :-1].copy())
    refused("151 rows", np.zeros((1, 151, 203), "u1"))
    refused("rows, and 0 of", array, array[:, :1])
    refused("149 of 150 rows", array[:, :149])
    refused("uint16", array.astype("u2"))
    refused("2 bands", np.zeros((2, 10, 203), "u1"))
    writer = cogpu.Writer(cogpu.profile_of(array), path)
    with pytest.raises(cogpu.CogpuError, match="no mask"):
        writer.push(array, array[0])
    writer.abort()


def test_long_name(tmp_path):
    """As long as a name can be; what a dead process left beside it goes."""
    path, left = tmp_path / ("x" * 255), tmp_path / f"{'x' * 227}.0123456789abcdef.cogpu-part"
    left.write_bytes(b"left")
    cogpu.write(pixels("u1"), path=path)
    assert os.listdir(tmp_path) == [path.name] and reference.same(read_back(path.read_bytes()), pixels("u1"))
    with pytest.raises(cogpu.CogpuError, match="too long"):
        cogpu.Writer(cogpu.profile_of(pixels("u1")), tmp_path / ("x" * 256))


def test_failing_sink():
    """Whatever write fails, its status is the writer's, and abort is called once."""
    array = pixels("f4", 1, 300, 300)
    for options in {"cog": 1, "block_width": 64}, {"block_width": 64}, {"block_width": 64, "append_only": 1}:
        append_only = options.pop("append_only", 0)
        for fails in range(1, 12):
            calls = []

            def write(offset, data):
                calls.append("write")
                return cogpu.IO_ERROR if calls.count("write") == fails else None

            writer = cogpu.Writer(cogpu.profile_of(array, **options), write=write, append_only=append_only,
                                  commit=lambda: calls.append("commit"), abort=lambda: calls.append("abort"))
            try:
                writer.push(array)
                writer.close()
            except cogpu.CogpuError as error:
                assert error.status == cogpu.IO_ERROR
                if writer.handle:
                    writer.abort()
                assert calls.count("abort") == 1 and "commit" not in calls
            else:
                assert calls.count("write") < fails and calls[-1] == "commit" and "abort" not in calls


KILLED = """
import sys; sys.path.insert(0, {here!r})
import cogpu_ctypes as cogpu, numpy as np
array = np.random.default_rng(2).normal(size=(1, 3000, 3000)).astype("f4")
print("ready", flush=True)
for _ in range(1000):
    cogpu.write(array, path={path!r}, cog=1, codec="none", threads=1)
"""


def test_killed(tmp_path):
    """The target of a process that was killed is a complete file, and the next one tidies up."""
    path, random = tmp_path / "a.tif", np.random.default_rng(3)
    small = pixels("u1")
    program = KILLED.format(here=os.path.dirname(__file__), path=str(path))
    cogpu.write(small, path=path)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(random.uniform(0.02, 0.4))
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.wait()
        with rasterio.open(path) as file:
            assert file.width in (203, 3000) and file.checksum(1) >= 0
    cogpu.write(small, path=path)
    assert os.listdir(tmp_path) == ["a.tif"]
    assert reference.same(reference.read(path.read_bytes()), small)
