"""The extension module's Writer: what it writes, as rasterio and tifffile read it, to targets of all kinds."""

import contextlib
import gc
import io
import os
import threading
import weakref

import numpy as np
import pytest
import rasterio
import tifffile
from cogpu import _cogpu, errors
from rasterio.io import MemoryFile

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64",
         "complex64", "complex128"]
GEO = {"transform": [500000, 10, 0, 4600000, 0, -10], "crs": "EPSG:32633"}
COG = {"cog": True, "block_width": 32, "block_height": 32}


def pixels(dtype="float32", bands=1, height=90, width=70):
    """Hills with some noise, which codecs and predictors can get hold of."""
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(1).normal(0, 2, (bands, height, width))
    hills = np.sin(x / 17) * 40 + np.cos(y / 11) * 30 + noise
    if np.dtype(dtype).kind == "c":
        return (hills + 1j * hills[:, ::-1]).astype(dtype)
    return (hills if np.dtype(dtype).kind in "if" else hills + 100).astype(dtype)


def profile_of(array, **fields):
    bands, height, width = array.shape
    return {"width": width, "height": height, "bands": bands, "type": array.dtype.name, **fields}


def push_all(writer, array, chunks=None, mask=None):
    first = 0
    for rows in chunks or [array.shape[1]]:
        part = slice(first, first + rows)
        writer.write_rows(array[:, part], None if mask is None else mask[part])
        first += rows
    return writer.close()


def write(array, chunks=None, mask=None, **fields):
    """The bytes of a file."""
    fields |= {"mask": mask is not None}
    return bytes(push_all(_cogpu.Writer(None, profile_of(array, **fields)), array, chunks, mask)["memory"])


@contextlib.contextmanager
def compared(data):
    with MemoryFile(data) as memory, memory.open() as file:
        yield file


def read_by_gdal(data):
    with compared(data) as file:
        return file.read()


def same(found, expected):
    return found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc")


def tifffile_agrees(data, expected):
    """Or cannot say: some codecs and predictors are decoded by imagecodecs, which need not be there."""
    page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    try:
        found = page.asarray()
    except (ImportError, ValueError):
        pytest.importorskip("imagecodecs")
        raise
    if found.ndim == 2:
        return same(found[None], expected)
    return same(np.moveaxis(found, -1, 0) if page.planarconfig == 1 else found, expected)


# ---- what is written ---------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    array = pixels(dtype, 2)
    data = write(array, **COG)
    if dtype == "float16":  # which older versions of GDAL read as float32
        assert np.array_equal(read_by_gdal(data), array)
    else:
        assert same(read_by_gdal(data), array)
    assert tifffile_agrees(data, array)


@pytest.mark.parametrize("fields", [{}, {"interleave": "band"}, {"strips": True, "block_height": 7}, {"bigtiff": "yes"},
                                    {"codec": "lzw", "predictor": 2}, {"codec": "zstd", "compression_level": 3},
                                    {"codec": "none"},
                                    {"threads": 1}, {"bigtiff": "no", "sparse": True, "predictor": 1}],
                         ids=lambda fields: "-".join(fields) or "default")
def test_layouts(fields):
    array = pixels("uint16", 3)
    data = write(array, **fields)
    assert same(read_by_gdal(data), array)
    page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    assert page.planarconfig == (2 if fields.get("interleave") else 1)
    assert page.is_tiled != bool(fields.get("strips"))
    assert tifffile.TiffFile(io.BytesIO(data)).is_bigtiff == (fields.get("bigtiff") == "yes")
    names = {"lzw": "LZW", "zstd": "ZSTD", "none": "NONE"}
    assert page.compression.name == names.get(fields.get("codec"), "ADOBE_DEFLATE")
    assert tifffile_agrees(data, array)


def test_words_are_the_names_of_c():
    array = pixels("uint8", 3)
    names = {"min_is_black": "MINISBLACK", "rgb": "RGB", "default": "RGB"}
    for word, name in names.items():
        assert tifffile.TiffFile(io.BytesIO(write(array, photometric=word))).pages[0].photometric.name == name
    made = {word: write(array, resampling=word, **COG) for word in
            ("default", "nearest", "average", "rms", "bilinear", "cubic", "mode", "min", "max", "median")}
    assert len(set(made.values())) == 9 and made["default"] == made["average"]
    levels = {word: tifffile.TiffFile(io.BytesIO(write(array, overviews=word, **COG))).pages
              for word in ("none", "auto", "default")}
    assert [len(found) for found in levels.values()] == [1, 3, 3]


def test_overviews_listed():
    with compared(write(pixels(), overview_factors=[3, 9], overviews="listed")) as file:
        assert file.overviews(1) == [3, 9]
    with compared(write(pixels(), overview_factors=np.array([2, 4], "uint16"))) as file:
        assert file.overviews(1) == [2, 4]


def test_georeference():
    with compared(write(pixels(), **GEO)) as file:
        assert file.crs == rasterio.crs.CRS.from_epsg(32633)
        assert file.transform.to_gdal() == tuple(GEO["transform"]) and file.tags()["AREA_OR_POINT"] == "Area"
    with compared(write(pixels(), pixel_is_point=True, **GEO)) as file:
        assert file.transform.to_gdal() == tuple(GEO["transform"]) and file.tags()["AREA_OR_POINT"] == "Point"


def test_geokeys():
    keys = [(1024, "GTModelType", (1,)), (3072, "ProjectedCRS", 32633), (1026, "GTCitation", "somewhere"),
            (2057, "EllipsoidSemiMajorAxis", 6378137.0)]
    data = write(pixels(), geokeys=keys, transform=GEO["transform"])
    tags = tifffile.TiffFile(io.BytesIO(data)).pages[0].geotiff_tags
    assert tags["GTModelTypeGeoKey"] == 1 and tags["GTCitationGeoKey"] == "somewhere"
    assert tags["ProjectedCSTypeGeoKey"] == 32633 and tags["GeogSemiMajorAxisGeoKey"] == 6378137
    with compared(data) as file:
        assert file.crs.to_epsg() == 32633


@pytest.mark.parametrize("points", [
    [(0, 0, 10, 20), (70, 0, 80, 20), (0, 90, 10, 110)],
    [(0, 0, 10, 20, 5), (70, 0, 80, 20, 5), (0, 90, 10, 110, 5)],
    [(0, 0, 0, 10, 20, 5), (70, 0, 0, 80, 20, 5), (0, 90, 0, 10, 110, 5)]], ids=["4", "5", "6"])
def test_gcps(points):
    with compared(write(pixels(), gcps=points, crs="EPSG:4326")) as file:
        found, crs = file.gcps
    assert crs.to_epsg() == 4326
    height = 0 if len(points[0]) == 4 else 5
    assert [(p.col, p.row, p.x, p.y, p.z) for p in found] == [(0, 0, 10, 20, height), (70, 0, 80, 20, height),
                                                             (0, 90, 10, 110, height)]


def test_rpc():
    with compared(write(pixels(), rpc=np.arange(1.0, 93))) as file:
        found = file.rpcs
    assert (found.err_bias, found.err_rand, found.line_off) == (1, 2, 3) and found.samp_den_coeff[-1] == 92


def test_nodata_and_nan():
    array = pixels()
    array[:, 10:20, 5:30] = np.nan
    before = array.copy()
    data = write(array, nodata="-9999", nan_is_nodata=True, **COG)
    assert same(array, before)
    assert same(read_by_gdal(data), np.where(np.isnan(array), np.float32(-9999), array))
    with compared(data) as file:
        assert file.nodata == -9999
    assert same(read_by_gdal(write(array, nodata="nan")), array)


def test_mask():
    array, mask = pixels("uint8", 3), np.zeros((90, 70), "uint8")
    mask[20:60, 10:50] = 255
    data = write(array, mask=mask, chunks=[1, 40, 49], **COG)
    with compared(data) as file:
        assert same(file.read_masks(), np.broadcast_to(mask, array.shape)) and same(file.read(), array)
    assert write(array, mask=mask // 255 * 7, **COG) == data
    with pytest.raises(errors.InvalidArgumentError, match="mask"):
        writer = _cogpu.Writer(None, profile_of(array, mask=True))
        writer.write_rows(array)


@pytest.mark.parametrize("kind", [list, lambda colours: np.array(colours, "uint16"), tuple])
def test_palette(kind):
    colours = [(i * 257, (255 - i) * 257, i // 2 * 257) for i in range(256)]
    with compared(write(pixels("uint8"), palette=kind(colours))) as file:
        assert file.colormap(1) == {i: (i, 255 - i, i // 2, 255) for i in range(256)}


def test_items_and_description():
    items = [{"name": "place", "value": "Zürich <&>"},
             {"domain": "other", "name": "a", "value": "b", "role": "", "band": 0},
             {"name": "SCALE", "value": "0.5", "role": "scale", "band": 2},
             {"name": "OFFSET", "value": "7", "role": "offset", "band": np.int64(2)},
             {"name": "UNITTYPE", "value": "m", "role": "unittype", "band": 1},
             {"name": "DESCRIPTION", "value": "height", "role": "description", "band": 1}]
    data = write(pixels("int16", 2), metadata=items, description="a text")
    with compared(data) as file:
        assert file.tags()["place"] == "Zürich <&>" and file.tags(ns="other") == {"a": "b"}
        assert file.scales == (1, 0.5) and file.offsets == (0, 7)
        assert file.units[0] == "m" and file.descriptions == ("height", None)
        assert file.tags()["TIFFTAG_IMAGEDESCRIPTION"] == "a text"


def test_alpha():
    with compared(write(pixels("uint8", 4), alpha_band=4)) as file:
        assert [c.name for c in file.colorinterp] == ["red", "green", "blue", "alpha"]


def test_tags():
    tags = [(65000, 1, 3, b"\x01\x02\x03"), (65001, 2, 4, b"abc\0"), (65002, 3, 2, (1, 65535)),
            (65003, 4, 1, [2**32 - 1]),
            (65004, 5, 1, (1, 3)), (65005, 6, 2, (-128, 127)), (65006, 7, 2, b"\xff\x00"), (65007, 8, 1, (-32768,)),
            (65008, 9, 1, (-2**31,)), (65009, 10, 1, (-1, 3)), (65010, 11, 1, (0.5,)),
            (65011, 12, 2, np.array([0.1, -2])),
            (65012, 16, 1, (2**64 - 1,)), (65013, 17, 1, (-2**63,)),
            (65014, 3, 2, np.array([7, 8], "uint16").tobytes())]
    page = tifffile.TiffFile(io.BytesIO(write(pixels(), tags=tags, bigtiff="yes"))).pages[0]
    found = [page.tags[number].value for number in range(65000, 65015)]
    assert found == [b"\x01\x02\x03", "abc", (1, 65535), 2**32 - 1, (1, 3), (-128, 127), b"\xff\x00", -32768,
                     -2**31, (-1, 3), 0.5, (0.1, -2.0), 2**64 - 1, -2**63, (7, 8)]


def test_what_a_file_tells_can_be_written(tmp_path):
    """Items, keys, points and colours as the module's File gives them."""
    colours = {i: (i, 255 - i, 7, 255) for i in range(256)}
    points = [rasterio.control.GroundControlPoint(row, column, column * 2.0, row * 3.0, 4.0)
              for row in (0, 90) for column in (0, 70)]
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", width=70, height=90, count=1, dtype="uint8",
                       crs="EPSG:32633", gcps=points) as file:
        file.write(pixels("uint8"))
        file.write_colormap(1, colours)
        file.update_tags(place="Zürich")
        file.units, file.scales = ["m"], [0.5]
        half = [0.5] * 20
        file.rpcs = rasterio.rpc.RPC(1, 2, 3, 4, half, half, 5, 6, 7, 8, half, half, 9, 10, err_bias=11, err_rand=12)
    source = _cogpu.File(tmp_path / "a.tif")
    info = source.info()
    fields = {name: info[name] for name in ("palette", "gcps", "rpc", "description")}
    data = write(pixels("uint8"), metadata=source.metadata(), geokeys=source.geokeys(), **fields)
    with compared(data) as found, rasterio.open(tmp_path / "a.tif") as expected:
        assert found.crs == expected.crs and found.colormap(1) == expected.colormap(1)
        assert [p.asdict() | {"id": 0} for p in found.gcps[0]] == [p.asdict() | {"id": 0} for p in expected.gcps[0]]
        assert found.tags() == expected.tags() and found.units == expected.units and found.scales == expected.scales
        assert found.rpcs == expected.rpcs and found.rpcs is not None


# ---- rows --------------------------------------------------------------------------------------

FIELDS = [COG, COG | {"interleave": "band"}, {"strips": True, "block_height": 9},
          COG | {"nodata": "nan", "sparse": True}]


@pytest.mark.parametrize("fields", FIELDS, ids=["cog", "planar", "strips", "sparse"])
@pytest.mark.parametrize("chunks", [[1] * 90, [32, 32, 26], [7, 50, 33]], ids=["1", "32", "ragged"])
def test_chunks_of_any_height_give_the_same_bytes(chunks, fields):
    array = pixels(bands=2)
    array[:, 20:70] = np.nan
    assert write(array, chunks, **fields) == write(array, **fields)


def test_rows_of_any_strides_give_the_same_bytes():
    array = pixels("int16", 3)
    expected = write(array, **COG)
    chunky = np.ascontiguousarray(np.moveaxis(array, 0, -1))
    backwards = np.ascontiguousarray(array[::-1, ::-1, ::-1])
    wide = np.zeros((6, 180, 140), "int16")
    wide[::2, ::2, ::2] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    for view in (np.moveaxis(chunky, -1, 0), backwards[::-1, ::-1, ::-1], wide[::2, ::2, ::2], read_only,
                 np.asfortranarray(array)):
        assert same(np.ascontiguousarray(view), array) and write(view, [40, 50], **COG) == expected


def test_rows_by_any_protocol():
    array = pixels("uint8")
    expected = write(array, **COG)
    fields = profile_of(array, **COG)

    class OnlyInterface:
        __array_interface__ = array.__array_interface__

    class OnlyLegacy:
        def __dlpack__(self, stream=None):
            return array.__dlpack__()

        def __dlpack_device__(self):
            return array.__dlpack_device__()

    for rows in array[0], memoryview(array), OnlyInterface(), OnlyLegacy():
        writer = _cogpu.Writer(None, fields)
        writer.write_rows(rows)
        assert bytes(writer.close()["memory"]) == expected


def test_what_is_written_is_told():
    array = np.zeros((1, 90, 70), "uint8")
    writer = _cogpu.Writer(None, profile_of(array, sparse=True, **COG))
    written = push_all(writer, array)
    assert written.pop("memory").readonly
    assert written == {"bytes": written["bytes"], "gds_bytes": 0, "blocks": 14, "sparse_blocks": 14, "levels": 3,
                       "bigtiff": False}


def test_memory_outlives_the_writer():
    array = pixels()
    writer = _cogpu.Writer(None, profile_of(array))
    memory = push_all(writer, array)["memory"]
    del writer
    gc.collect()
    assert isinstance(memory, memoryview) and memory.readonly and same(read_by_gdal(bytes(memory)), array)
    part = memory[4:8]
    memory.release()
    assert len(bytes(part)) == 4


# ---- targets -----------------------------------------------------------------------------------

def test_paths(tmp_path):
    array = pixels()
    expected = write(array, **COG)
    path = tmp_path / "ä.tif"
    for target in path, str(path), os.fsencode(path):
        path.write_bytes(b"what stood before")
        written = push_all(_cogpu.Writer(target, profile_of(array, **COG)), array)
        assert "memory" not in written and written["bytes"] == len(expected)
        assert path.read_bytes() == expected and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fields", FIELDS, ids=["cog", "planar", "strips", "sparse"])
def test_bytes_io(fields):
    array = pixels(bands=2)
    target = io.BytesIO()
    push_all(_cogpu.Writer(target, profile_of(array, **fields)), array, [50, 40])
    assert target.getvalue() == write(array, **fields)


def test_a_file_begins_where_the_object_stands(tmp_path):
    array = pixels()
    with open(tmp_path / "a", "wb") as target:
        target.write(b"before")
        push_all(_cogpu.Writer(target, profile_of(array, **COG)), array)
    assert (tmp_path / "a").read_bytes() == b"before" + write(array, **COG)


class Pieces:
    """Keeps all that it gets, and cannot seek."""

    def __init__(self):
        self.pieces = []

    def write(self, piece):
        self.pieces.append(piece)

    def seekable(self):
        return False

    def seek(self, *_):
        raise AssertionError("it said that it cannot seek")


@pytest.mark.parametrize("fields", FIELDS, ids=["cog", "planar", "strips", "sparse"])
def test_in_order(fields):
    array = pixels(bands=2)
    target = Pieces()
    push_all(_cogpu.Writer(target, profile_of(array, **fields)), array, [50, 40])
    assert b"".join(target.pieces) == write(array, **fields)


def test_a_pipe():
    array = pixels()
    end, start = os.pipe()
    got = []
    reader = threading.Thread(target=lambda: got.append(os.fdopen(end, "rb").read()))
    reader.start()
    with os.fdopen(start, "wb") as target:
        push_all(_cogpu.Writer(target, profile_of(array, **COG)), array)
    reader.join()
    assert got == [write(array, **COG)]


class Sparing(io.BytesIO):
    """A raw file takes less than it is given."""

    def write(self, piece):
        return super().write(piece[:100])


def test_short_writes():
    array = pixels()
    target = Sparing()
    push_all(_cogpu.Writer(target, profile_of(array, **COG)), array)
    assert target.getvalue() == write(array, **COG)


@pytest.mark.parametrize("answer", [0, -1, 10**9, 2**70])
def test_answers_that_cannot_be(answer):
    class Liar:
        def write(self, piece):
            return answer

    with pytest.raises(errors.IOError, match="write took"):
        push_all(_cogpu.Writer(Liar(), profile_of(pixels())), pixels())


class Broken(io.BytesIO):
    """Fails after some writes."""

    def __init__(self, good, exception, method="write"):
        super().__init__()
        self.good, self.exception, self.method, self.later = good, exception, method, 0

    def count(self, method):
        if method != self.method:
            return
        self.good -= 1
        if self.good == -1:
            raise self.exception
        self.later += self.good < 0

    def write(self, piece):
        self.count("write")
        return super().write(piece)

    def seek(self, *place):
        self.count("seek")
        return super().seek(*place)


@pytest.mark.parametrize("method", ["write", "seek"])
@pytest.mark.parametrize("good", [0, 1, 2])
@pytest.mark.parametrize("fields", FIELDS[:3], ids=["cog", "planar", "strips"])
def test_the_exception_of_an_object_comes_out(fields, good, method):
    array = pixels(bands=2)
    exception = ConnectionResetError("the line is dead")
    target = Broken(good, exception, method)
    with pytest.raises(ConnectionResetError, match="the line is dead") as caught:
        push_all(_cogpu.Writer(target, profile_of(array, **fields)), array, [10] * 9)
        if target.good >= 0:  # there were not as many calls
            raise exception
    assert caught.value is exception and target.later == 0
    if target.good < 0:
        assert isinstance(exception.__context__, errors.IOError)
    alive = weakref.ref(target)
    del target, caught, exception
    gc.collect()
    assert alive() is None


def test_an_object_that_cannot_say_where_it_stands():
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        _cogpu.Writer(closed, profile_of(pixels()))

    class Unsure(io.BytesIO):
        def seekable(self):
            raise KeyError("seekable")

    with pytest.raises(KeyError):
        _cogpu.Writer(Unsure(), profile_of(pixels()))


@pytest.mark.parametrize("target", [7, 1.5, [], object(), io.BytesIO, {}])
def test_no_target(target):
    with pytest.raises(TypeError):
        writer = _cogpu.Writer(target, profile_of(pixels()))
        push_all(writer, pixels())


def test_text_file(tmp_path):
    with open(tmp_path / "a", "w") as target, pytest.raises(TypeError):
        push_all(_cogpu.Writer(target, profile_of(pixels())), pixels())


def test_errors_leave_no_file(tmp_path):
    array = pixels()
    path = tmp_path / "a.tif"
    with pytest.raises(errors.InvalidArgumentError):
        _cogpu.Writer(path, profile_of(array, codec="brotli"))
    with pytest.raises(errors.InvalidArgumentError, match="rows"):
        writer = _cogpu.Writer(path, profile_of(array))
        writer.write_rows(array[:, :50])
        writer.close()
    writer = _cogpu.Writer(path, profile_of(array))
    with pytest.raises(errors.InvalidArgumentError):
        writer.write_rows(array.astype("float64"))
    writer = _cogpu.Writer(path, profile_of(array))
    writer.write_rows(array)
    writer.abort()
    writer = _cogpu.Writer(path, profile_of(array))
    writer.write_rows(array)
    del writer
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="folder"):
        _cogpu.Writer(tmp_path / "no" / "such" / "folder.tif", profile_of(array))
    with pytest.raises(FileNotFoundError):
        _cogpu.Writer(os.fsencode(tmp_path) + b"/\xff/" + b"\xc3\xa4" * 200, profile_of(array))


# ---- devices -----------------------------------------------------------------------------------

@pytest.mark.parametrize("device", ["emu", "emu:0"])
@pytest.mark.parametrize("codec", ["deflate", "none"])
def test_emulated_gpu(device, codec):
    array = pixels("uint16", 2)
    data = write(array, [50, 40], device=device, codec=codec, **COG)
    assert same(read_by_gdal(data), array)
    assert data == write(array, device=device, codec=codec, **COG)
    assert tifffile_agrees(data, array)
    assert (data == write(array, codec=codec, **COG)) == (codec == "none")


def test_rows_on_the_emulated_gpu(tmp_path):
    array = pixels("uint16", 2)
    (tmp_path / "a.tif").write_bytes(write(array))
    rows = _cogpu.File(tmp_path / "a.tif").read(device="emu")
    assert rows.device == "emu:0"
    on_device = write(array, device="emu", **COG)
    for fields in {}, {"device": "emu"}:
        writer = _cogpu.Writer(None, profile_of(array, **COG, **fields))
        writer.write_rows(rows)
        assert bytes(writer.close()["memory"]) == on_device


def test_streams_of_an_emulated_gpu():
    rows = _cogpu.File(memoryview(write(pixels()))).read(device="emu")
    for stream in 3, 1 << 40:
        writer = _cogpu.Writer(None, profile_of(pixels()))
        with pytest.raises(errors.InvalidArgumentError, match="stream.*emulated"):
            writer.write_rows(rows, stream=stream)
        writer.write_rows(rows, stream=2)
        assert same(read_by_gdal(bytes(writer.close()["memory"])), pixels())


def test_no_such_device():
    for device in "emu:7", "cuda:99":
        with pytest.raises(errors.DeviceError):
            write(pixels(), device=device)
