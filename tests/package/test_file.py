"""Files: facts and pixels as rasterio has them, all the ways in, threads, processes, errors and bad arguments."""

import gc
import io
import mmap
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import cogpu
import numpy as np
import pytest
import rasterio
import rasterio.windows
import tifffile
from cogpu import _cogpu
from conftest import array_module, host, pixels_of, write_file

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64", "complex64",
         "complex128"]


@pytest.fixture
def file(path):
    with cogpu.open(path) as file:
        yield file


LOADED = "print(*{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"


@pytest.mark.parametrize("use", ["", "file = cogpu.open(sys.argv[1])", "cogpu.open(sys.argv[1]).read(device='emu')",
                                 "cogpu.open(sys.argv[1]).read((0, 0, 9, 9), bands=[1], level=0, device='emu')"])
def test_reading_into_a_gpu_loads_no_other_package(use, path):
    """NumPy takes longer to load than CUDA's context."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(cogpu.__file__))}
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys, cogpu; {use}; {LOADED}".replace("; ;", ";"), path],
                          env=environment, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"__main__", "cogpu"}, done.stderr


# ---- facts ---------------------------------------------------------------------------------------

def test_facts_are_those_of_rasterio(path, file):
    with rasterio.open(path) as reference:
        assert file.shape == (reference.count, reference.height, reference.width)
        assert file.dtype == reference.dtypes[0] and file.nodata == reference.nodata
        assert tuple(file.transform) == tuple(reference.transform)[:6]
        assert file.transform.to_gdal() == reference.transform.to_gdal()
        assert file.bounds == tuple(reference.bounds)
        assert file.crs == reference.crs.to_string() and rasterio.crs.CRS.from_wkt(file.wkt) == reference.crs
        assert file.block_shape == reference.block_shapes[0]
        assert file.interleave == reference.interleaving.value.lower()
        assert file.codec == reference.compression.value.lower()
        assert [level.shape for level in file.levels] == [(150, 200), (75, 100)]
        assert file.area_or_point == reference.tags()["AREA_OR_POINT"]
    assert file.levels[0].transform == file.transform and file.levels[1].transform.a == 20
    assert file.name == str(path) and "three.tif" in repr(file)
    assert file.images == 1 and file.palette is None and file.gcps == [] and file.rpc is None and file.warning is None


def test_each_system_has_its_own_wkt(make_file):
    codes = [4326, 32633, 3857, 32633, 2056, 3035, 27700, 3413]
    files = [make_file(np.zeros((1, 8, 8), "uint8"), f"{n}.tif", crs=f"EPSG:{code}") for n, code in enumerate(codes)]
    wkts = [cogpu.open(file).wkt for file in files]
    assert [rasterio.crs.CRS.from_wkt(wkt).to_epsg() for wkt in wkts] == codes
    with ThreadPoolExecutor(8) as pool:  # one registry, which is handed from call to call
        assert list(pool.map(lambda file: cogpu.open(file).wkt, files * 20)) == wkts * 20


def test_bands_and_metadata(make_file):
    path = make_file(pixels_of((2, 70, 80), "uint8"), photometric="MINISBLACK", nodata=200)
    with rasterio.open(path, "r+") as made:
        made.update_tags(SENSOR="x", place="Zürich")
        made.descriptions = ("first", None)
        made.units = ("m", "")
        made.scales, made.offsets = (0.5, 1.0), (3.0, 0.0)
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        assert file.tags == {name: value for name, value in reference.tags().items() if name != "AREA_OR_POINT"}
        assert file.descriptions == reference.descriptions
        assert [unit or "" for unit in file.units] == [unit or "" for unit in reference.units]
        assert file.scales == reference.scales and file.offsets == reference.offsets
        assert file.interpretations == tuple(colour.name for colour in reference.colorinterp)
        assert ("scale", 1, "0.5") in [(item["role"], item["band"], item["value"]) for item in file.metadata_items]
        assert isinstance(file.nodata, int)


def test_palette_gcps_and_point(make_file):
    from rasterio.control import GroundControlPoint
    path = make_file(pixels_of((1, 70, 80), "uint8"), photometric="palette", transform=rasterio.Affine.identity(),
                     crs=None)
    with rasterio.open(path, "r+") as made:
        made.write_colormap(1, {value: (value, 255 - value, 7, 255) for value in range(256)})
        corners = [(row, column) for row in (0, 70) for column in (0, 80)]
        points = [GroundControlPoint(row, column, 10. * column, 20. * row, 0) for row, column in corners]
        made.gcps = points, "EPSG:4326"
    with cogpu.open(path) as file:
        assert file.palette[3] == (3 * 257, 252 * 257, 7 * 257)
        assert [(gcp[1], gcp[0]) for gcp in file.gcps] == corners
        assert not file.has_transform and file.transform is None and file.bounds is None


def test_raw_tags(path):
    file = _cogpu.File(path)
    directories = file.directories()
    assert len(directories) == 2 and directories[1]["subfile_type"] == 1
    tags = {tag["name"]: tag for tag in file.tags(0)}
    assert file.tag(0, 256) == (200,) and file.tag(0, 258) == (16, 16, 16)
    assert file.tag(0, tags["GDALNoData"]["id"] if "GDALNoData" in tags else 42113).rstrip(b"\0") == b"7"
    assert file.tag(0, 33550) == (10.0, 10.0, 0.0)
    assert len(file.tag(0, 324)) == tags["TileOffsets"]["count"] == 12
    assert dict((name, value) for _, name, value in file.geokeys())
    assert file.crs()["code"] == 32633
    assert _cogpu.File(io.BytesIO(path.read_bytes())).tag(0, 33550) == (10.0, 10.0, 0.0)
    with pytest.raises(cogpu.NotFoundError, match="tag 9"):
        file.tag(0, 9)
    with pytest.raises(cogpu.NotFoundError):
        file.tags(2)


@pytest.mark.parametrize("dtype, nodata", [("int64", -(2**63) + 1), ("uint64", 2**64 - 2), ("float32", np.nan),
                                           ("uint8", 0),
                                           ("float64", -9999.5)])
def test_nodata_is_exact(tmp_path, dtype, nodata):
    path = tmp_path / "nodata.tif"  # not by rasterio, to which nodata is a double
    tifffile.imwrite(path, pixels_of((1, 20, 20), dtype)[0], extratags=[(42113, 2, 0, str(nodata), True)])
    found = cogpu.open(path).nodata
    assert type(found) is (int if np.dtype(dtype).kind in "ui" else float)
    assert found == nodata or (np.isnan(found) and np.isnan(nodata))


@pytest.mark.parametrize("text", ["", "256", "-9999", "nan"])
def test_nodata_that_no_sample_can_be(tmp_path, text):
    path = tmp_path / "nodata.tif"
    tifffile.imwrite(path, np.zeros((20, 20), "uint8"), extratags=[(42113, 2, 0, text, True)])
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        assert file.nodata is None is reference.nodata
        assert file.info["nodata_text"] == text


def test_check(path):
    assert cogpu.check(path)["gdal"] in ("valid", "valid with warnings", "invalid")
    with cogpu.open(path) as file:
        checked = cogpu.check(file, strict=True)
    assert checked["verdict"] == "invalid" and checked["errors"] == sum(
        1 + finding["more"] for finding in checked["findings"] if finding["severity"] == "error")
    assert {"rule", "advice", "message", "validators", "offset"} <= checked["findings"][0].keys()


def test_the_build():
    assert cogpu.__version__ == _cogpu.version()
    assert {"cpu"} <= {device["name"] for device in cogpu.devices()}
    assert {codec["name"] for codec in cogpu.codecs()} >= {"deflate", "lzw", "packbits"}
    assert _cogpu.current_device("cpu") == "cpu" and _cogpu.current_device("emu") == "emu:0"


# ---- pixels --------------------------------------------------------------------------------------

@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("dtype", TYPES)
def test_all_types(make_file, dtype, interleave, device):
    pixels = pixels_of((3, 70, 90), dtype)
    array = cogpu.open(make_file(pixels, interleave=interleave)).read(device=device)
    assert array.dtype == dtype and np.array_equal(host(array), pixels)


def write_complex_integers(path, pairs):
    """rasterio writes the narrower of them alone: their bytes as complex64, of which the tag is changed then."""
    raw = np.ascontiguousarray(pairs).view("c8" if pairs.dtype == "i4" else "f4")[..., 0]
    write_file(path, raw, compress="none")
    format_tag = next(tag for tag in _cogpu.File(path).tags(0) if tag["id"] == 339)
    content = bytearray(path.read_bytes())
    for band in range(format_tag["count"]):
        content[format_tag["value_offset"] + 2 * band] = 5
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("dtype, part, wide", [("complex_int16", "i2", "complex64"),
                                               ("complex_int32", "i4", "complex128")])
def test_complex_integers(tmp_path, dtype, part, wide, device):
    pairs = np.stack([pixels_of((2, 70, 90), part), -pixels_of((2, 70, 90), part, seed=2)], -1)
    path = write_complex_integers(tmp_path / "complex.tif", pairs)
    with cogpu.open(path) as file, rasterio.open(path) as reference:
        assert file.info["type"] == dtype and file.dtype == wide
        array = file.read(device=device)
        assert array.device.split(":")[0] == device and array.dtype == wide
        assert np.array_equal(reference.read(), pairs[..., 0] + 1j * pairs[..., 1])
        assert np.array_equal(host(array), reference.read())
        target = array_module(device).zeros((70, 90, 1), wide)
        file.read(bands=2, out=target.transpose(2, 0, 1), device="emu" if device == "emu" else None)
        assert np.array_equal(host(target[..., 0]), reference.read(2))
        assert np.array_equal(host(file.read(dtype="complex128")), reference.read())
        first, second = cogpu.read_many([(file, {"bands": 1}), (file, {"bands": 2, "device": device})])
        assert np.array_equal(host(second)[0], reference.read(2)) and first.shape == (1, 70, 90)
        with pytest.raises(cogpu.InvalidArgumentError, match="dtype"):
            file.read(dtype="float32")
        with pytest.raises(cogpu.InvalidArgumentError, match="out"):
            file.read(out=np.zeros((2, 70, 91), wide))
        raw = file._file.read()
        assert raw.dtype == dtype and np.asarray(raw).shape == (2, 70, 90, 2)
        with pytest.raises(BufferError, match=dtype):
            raw.__dlpack__()


@pytest.mark.parametrize("window, level, bands", [
    ((0, 0, 1, 1), 0, None), ((10, 20, 130, 199), 0, [3, 1]), ((149, 199, 150, 200), 0, 2),
    ((5, 6, 70, 90), 1, (1, 1, 2)),
    (None, 1, np.int64(3)), (np.array([1, 2, 3, 4]), 0, np.array([2])),
    (rasterio.windows.Window(20, 10, 30, 40), 0, None),
], ids=range(7))
def test_windows(path, file, device, window, level, bands):
    array = host(file.read(window, level, bands, device=device))
    with rasterio.open(path, **({"overview_level": level - 1} if level else {})) as reference:
        if window is not None and not isinstance(window, rasterio.windows.Window):
            row0, column0, row1, column1 = map(int, window)
            window = rasterio.windows.Window(column0, row0, column1 - column0, row1 - row0)
        expected = reference.read(None if bands is None else np.atleast_1d(bands).tolist(), window=window)
    assert np.array_equal(array, expected)


@pytest.mark.parametrize("dtype, wide", [("uint8", "float32"), ("int16", "float32"), ("int32", "float64"),
                                         ("uint64", "float64"),
                                         ("float32", "float32"), ("float64", "float64")])
def test_masked(make_file, dtype, wide, device):
    pixels = pixels_of((2, 70, 90), dtype)
    file = cogpu.open(make_file(pixels, nodata=9))
    assert (pixels == 9).any()
    array = host(file.read(masked=True, device=device))
    assert array.dtype == wide and np.array_equal(array, np.where(pixels == 9, np.nan, pixels).astype(wide),
                                                  equal_nan=True)
    assert np.array_equal(host(file.read_mask(device=device)), np.where(pixels == 9, 0, 255))
    assert host(file.read(masked=True, dtype="float16")).dtype == "float16"


def test_masks_of_mask_and_alpha(tmp_path, device):
    pixels = pixels_of((3, 70, 90), "uint8")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        path = write_file(tmp_path / "mask.tif", pixels)
        with rasterio.open(path, "r+") as made:
            mask = np.where(np.add.outer(np.arange(70), np.arange(90)) % 3, 255, 0).astype("u1")
            made.write_mask(mask)
    with cogpu.open(path) as file:
        assert np.array_equal(host(file.read_mask(bands=1, device=device))[0], mask)
        assert np.array_equal(np.isnan(host(file.read(masked=True, device=device))),
                              np.broadcast_to(mask == 0, (3, 70, 90)))


def test_unscale(make_file, device):
    pixels = pixels_of((2, 70, 90), "int16")
    path = make_file(pixels)
    with rasterio.open(path, "r+") as made:
        made.scales, made.offsets = (0.25, 1), (-3, 0)
    array = host(cogpu.open(path).read(unscale=True, device=device))
    assert array.dtype == "float32"
    assert np.array_equal(array, np.stack([pixels[0] * np.float32(0.25) - np.float32(3), pixels[1]]))


@pytest.fixture
def damaged(make_file, pixels):
    """`pixels` in a file whose first block is none: a GPU refuses it, and the host fills it after all others."""
    path = make_file(pixels, compress="deflate", nodata=7)
    content = bytearray(path.read_bytes())
    offset = _cogpu.File(path).tag(0, 324)[0]
    content[offset:offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    return path


@pytest.fixture
def filled(pixels):
    """What is read of `damaged`."""
    filled = pixels.copy()
    filled[:, :64, :64] = 7
    return filled


def test_a_bad_block_is_filled_and_counted(damaged, filled, device):
    with cogpu.open(damaged) as file:
        with pytest.raises(cogpu.CorruptError) as raised:
            file.read(device=device)
        assert (raised.value.directory, raised.value.block) == (0, 0)
        array = file.read(device=device, fill_bad_blocks=True)
        assert array.result["bad_blocks"] == 1 and isinstance(array.result["first_bad"], cogpu.CorruptError)
        assert np.array_equal(host(array), filled)
        again = file.read(device=device, wait=False, fill_bad_blocks=True)
        assert again.result["bad_blocks"] == 1
        for use in (_cogpu.Array.wait, host, lambda array: np.from_dlpack(array, device="cpu"),
                    lambda array: array.result):
            with pytest.raises(cogpu.CorruptError):
                use(file.read(device=device, wait=False))
        with pytest.raises(cogpu.CorruptError):
            cogpu.read_many([(file, {"window": (100, 100, 120, 120)}), (file, {"device": device})])


def test_reads_that_are_not_waited_for(file, pixels, device):
    arrays = [file.read(bands=band, device=device, wait=False) for band in (1, 2, 3)]
    file.close()
    arrays[1].wait()
    arrays[1].wait()
    assert np.array_equal(np.concatenate([host(array) for array in arrays]), pixels)


def test_a_pending_read_keeps_its_file_and_bands(damaged, filled, device):
    """To its end, for the block that the host fills; and lets go of them then."""
    content = bytearray(damaged.read_bytes())
    file = cogpu.open(content)
    array = file.read(bands=[3, 1], device=device, wait=False, fill_bad_blocks=True)
    file.close()
    del file
    gc.collect()
    if device != "cpu":
        with pytest.raises(BufferError):
            content.append(0)  # which fails while a view of it lives
    churn = [bytes([255]) * length for length in range(1, 500)]
    assert np.array_equal(host(array), filled[[2, 0]]) and churn
    del array
    gc.collect()
    content.append(0)


def test_a_pending_read_that_is_dropped_is_waited_for(damaged, filled, device):
    target = array_module(device).zeros(filled.shape, "i2")
    with cogpu.open(damaged) as file:
        array = file.read(out=target, device=device, wait=False, fill_bad_blocks=True)
        del array
    assert np.array_equal(host(target), filled)


def test_read_many(file, make_file, pixels, device):
    other = pixels_of((1, 100, 100), "float32")
    target = np.zeros((1, 100, 100), "float32")
    with cogpu.open(make_file(other)) as second:
        arrays = cogpu.read_many([(file, {"window": (0, 0, 70, 80), "device": device}), (second, {"out": target}),
                                  (file, {"level": 1, "bands": [2], "device": "cpu"}),
                                  (file, {"masked": True, "device": device})])
        assert cogpu.read_many([]) == []
    assert [array.device.split(":")[0] for array in arrays] == [device, "cpu", "cpu", device]
    assert np.array_equal(host(arrays[0]), pixels[:, :70, :80]) and np.array_equal(target, other)
    assert arrays[2].shape == (1, 75, 100) and np.isnan(host(arrays[3])[pixels == 7]).all()
    assert arrays[0].result["blocks"] == 4


@pytest.mark.parametrize("requests", [5, [5], [("file", {})], [(None, None)]])
def test_read_many_of_what_is_no_request(requests):
    with pytest.raises(TypeError):
        _cogpu.read_many(requests)


def test_read_many_refuses_what_is_not_for_it(file):
    for keywords in ({"wait": False}, {"threads": 2}, {"no_such": 1}):
        with pytest.raises(TypeError):
            cogpu.read_many([(file, keywords)])
        with pytest.raises((TypeError, ValueError)):
            _cogpu.read_many([(file._file, keywords)])


# ---- sources -------------------------------------------------------------------------------------

@pytest.mark.parametrize("way", [str, os.fsencode, pathlib.Path])
def test_paths(path, pixels, way):
    file = cogpu.open(way(path))
    assert np.array_equal(np.asarray(file.read()), pixels) and file.name == str(path)


def test_memory(path, pixels, device):
    content = bytearray(path.read_bytes())
    for source in (content, memoryview(content), np.frombuffer(content, "u1")):
        array = cogpu.open(source).read(device=device)
        assert np.array_equal(host(array), pixels)
    del source
    with open(path, "rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        with cogpu.open(mapped) as file:
            assert np.array_equal(np.asarray(file.read()), pixels)
    gc.collect()
    content.extend(b"free")  # which fails while a view of it lives


class Source:
    """Read and seek, with a position, in pieces of at most `most` bytes; fails from the read after `reads` on."""

    name = "of a test"

    def __init__(self, content, most=None, reads=None, error=None):
        self.content, self.most, self.reads, self.error = content, most, reads, error
        self.position, self.calls, self.inside = 0, 0, 0

    def seek(self, offset, whence=0):
        self.position = offset + (len(self.content) if whence == 2 else 0)

    def tell(self):
        return self.position

    def read(self, bytes):
        self.inside += 1
        assert self.inside == 1, "two reads at once"
        self.calls += 1
        if self.reads is not None and self.calls > self.reads:
            self.inside -= 1
            raise self.error
        piece = self.content[self.position:self.position + min(bytes, self.most or bytes)]
        self.position += len(piece)
        self.inside -= 1
        return piece


@pytest.mark.parametrize("most", [None, 1000])
def test_objects(path, pixels, device, most):
    content = path.read_bytes()
    for source in (io.BytesIO(content), Source(content, most), open(path, "rb")):
        with cogpu.open(source) as file:
            assert np.array_equal(host(file.read(device=device)), pixels)
            assert np.array_equal(host(file.read(device=device, wait=False)), pixels)
    assert file.name == str(path)
    source.close()


@pytest.mark.parametrize("error", [OSError(5, "the disk is gone"), KeyError("key"), KeyboardInterrupt()],
                         ids=["os", "key", "interrupt"])
def test_an_object_that_fails(path, device, error):
    content = path.read_bytes()
    opening = Source(content)
    cogpu.open(opening).close()
    with pytest.raises(type(error)) as raised:
        cogpu.open(Source(content, reads=0, error=error))
    assert raised.value is error
    file = cogpu.open(Source(content, reads=opening.calls + 1, error=error))
    error.__context__ = None
    with pytest.raises(type(error)) as raised:
        file.read(device=device)
        file.read(device=device)
    assert raised.value is error, "the object's own exception is raised"
    assert isinstance(error.__context__, cogpu.IOError), "with what the engine says of it"
    file._arguments["source"].reads = None
    assert file.read(device=device).shape == (3, 150, 200)


@pytest.mark.parametrize("answer", [None, "text", 5, b"x" * 100000])
def test_an_object_with_odd_answers(answer):
    class Odd(Source):
        def read(self, bytes):
            return answer
    with pytest.raises((TypeError, ValueError, cogpu.Error)):
        cogpu.open(Odd(b"II*\0" + bytes(100)))


def test_an_object_without_an_end():
    class Endless(Source):
        def seek(self, offset, whence=0):
            return "here"
    with pytest.raises(TypeError):
        cogpu.open(Endless(b""))


@pytest.mark.parametrize("source", [5, None, object(), [1]])
def test_what_is_no_source(source):
    with pytest.raises(TypeError, match="source"):
        cogpu.open(source)


# ---- threads and processes -----------------------------------------------------------------------

@pytest.mark.parametrize("source", [lambda path: path, lambda path: io.BytesIO(path.read_bytes())],
                         ids=["path", "object"])
def test_many_threads_on_one_file(path, pixels, source):
    file = cogpu.open(source(path))
    windows = [(row, column, row + 40, column + 50) for row in range(0, 100, 20) for column in range(0, 150, 30)]

    def read(window):
        row0, column0, row1, column1 = window
        return np.array_equal(np.asarray(file.read(window)), pixels[:, row0:row1, column0:column1])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, windows * 4))


def test_the_gil_is_let_go(path, pixels):
    """A read that cannot end before another thread of Python has run."""
    has_run = threading.Event()

    class Waiting(Source):
        def read(self, bytes):
            assert not self.is_armed or has_run.wait(30)
            return super().read(bytes)

    source = Waiting(path.read_bytes())
    source.is_armed = False
    file = cogpu.open(source)
    source.is_armed = True
    thread = threading.Timer(0.01, has_run.set)
    thread.start()
    assert np.array_equal(np.asarray(file.read()), pixels)
    thread.join()


def test_close_while_others_read(path, pixels):
    """The file is closed after the last of them; who comes later is told."""
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Source):
        def read(self, bytes):
            if self.is_armed:
                inside.set()
                assert go_on.wait(30)
            return super().read(bytes)

    source = Slow(path.read_bytes())
    source.is_armed = False
    file = cogpu.open(source)
    source.is_armed = True
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: np.asarray(file.read()))
        assert inside.wait(30)
        file.close()
        file.close()
        go_on.set()
        assert np.array_equal(reading.result(), pixels)
    with pytest.raises(cogpu.InvalidArgumentError, match="closed"):
        file.read()


def test_a_closed_file_says_so(path):
    with cogpu.open(path) as file:
        array = file.read()
    assert file.shape == array.shape
    for call in (file.read, file.read_mask, file._file.directories, lambda: file._file.info(0),
                 lambda: cogpu.read_many([(file, {})]),
                 lambda: cogpu.check(file)):
        with pytest.raises(cogpu.InvalidArgumentError, match="closed"):
            call()


def test_decoding_into_host_memory(path, pixels):
    with cogpu.open(path) as file:
        assert np.array_equal(np.asarray(file.read(decode="emu")), pixels)
        assert file.read(decode="emu").device == "cpu" and file.read(decode="emu").result["device_blocks"] > 0
        assert file.read(decode="cpu").result["device_blocks"] == 0
        out = np.zeros((*pixels.shape[1:], pixels.shape[0]), pixels.dtype)[::-1]
        file.read(decode="emu", out=out.transpose(2, 0, 1), wait=False)
        assert np.array_equal(out.transpose(2, 0, 1), pixels)
        assert np.array_equal(np.asarray(file.read_mask(decode="emu")), np.asarray(file.read_mask()))
        first, second = cogpu.read_many([(file, {"decode": "emu", "bands": 1}), (file, {"window": (1, 2, 30, 40)})])
        assert np.array_equal(np.asarray(first), pixels[:1]) and first.result["device_blocks"] > 0
        assert np.array_equal(np.asarray(second), pixels[:, 1:30, 2:40]) and second.result["device_blocks"] == 0


def test_pickles(path, pixels):
    with cogpu.open(str(path)) as file:
        again = pickle.loads(pickle.dumps(file))
    assert np.array_equal(np.asarray(again.read()), pixels)
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(cogpu.open(io.BytesIO(path.read_bytes())))
    error = pickle.loads(pickle.dumps(cogpu.CorruptError("words", 1, 2, 3)))
    assert (str(error), error.directory, error.block, error.offset) == ("words", 1, 2, 3)


def in_the_child(path, kept, file, pipe):
    arrays = [file.read(device="emu"), cogpu.open(path).read(), file.read()]
    del kept
    gc.collect()
    pipe.send([(int(np.asarray(array).astype("i8").sum()), array.result["cached_blocks"]) for array in arrays])
    pipe.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(path, pixels):
    """A child has none of its parent's threads, and makes a context of its own: whose cache has nothing yet."""
    cogpu.configure(cache_bytes=1 << 20)
    file = cogpu.open(path)
    kept = [file.read(device="emu"), file.read(), file.read(device="emu", wait=False)]
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(False)
    child = context.Process(target=in_the_child, args=(path, kept, file, send))
    child.start()
    cogpu.configure()
    assert receive.poll(30), "the child hangs"
    total = int(pixels.astype("i8").sum())
    assert receive.recv() == [(total, 0), (total, 0), (total, 0)]
    child.join(30)
    assert child.exitcode == 0
    assert np.array_equal(np.asarray(kept[2]), pixels)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_read_close(path):
    with cogpu.open(path) as file:
        np.from_dlpack(file.read((0, 0, 20, 20))).sum()


def leave_lying(path):
    """A capsule, a failure, an exception of an object's."""
    cogpu.open(path).read((0, 0, 20, 20)).__dlpack__()
    for source in ("no such file", Source(bytes(100), reads=0, error=OSError())):
        with pytest.raises(OSError):
            cogpu.open(source)


@pytest.mark.parametrize("work, count", [(open_read_close, 10000), (leave_lying, 1000)])
def test_memory_stays_flat(path, work, count):
    """T180: what is opened, read and closed leaves nothing behind."""
    for _ in range(count // 5):
        work(path)
    gc.collect()
    before = resident()
    for _ in range(count):
        work(path)
    gc.collect()
    assert resident() - before < 2 << 20


def test_a_new_context(path, pixels):
    try:
        kept = cogpu.open(path).read(device="emu", wait=False)
        cogpu.configure(threads=1, cache_bytes=1 << 20)
        with cogpu.open(path) as file:
            file.read()
            assert file.read().result["cached_blocks"] == 12
        assert np.array_equal(np.asarray(kept), pixels)
    finally:
        cogpu.configure()


def test_network_settings_are_the_fields_of_c():
    try:
        for network in ({"max_retries": 0}, {"max_retries": None, "max_connections": 2, "coalesce_gap_bytes": 1 << 16}):
            cogpu.configure(network=network)
        for network, message in (({"retries": 1}, "similar: .*'max_retries'"), ({"max_retries": -1}, "max_retries")):
            with pytest.raises(cogpu.InvalidArgumentError, match=message):
                cogpu.configure(network=network)
    finally:
        cogpu.configure()


# ---- errors and bad arguments --------------------------------------------------------------------

def test_error_classes(tmp_path):
    missing, text = tmp_path / "missing.tif", tmp_path / "text.tif"
    text.write_text("no raster at all")
    with pytest.raises(FileNotFoundError) as raised:
        cogpu.open(missing)
    assert isinstance(raised.value, cogpu.MissingFileError) and str(missing) in str(raised.value)
    with pytest.raises(cogpu.NotTiffError) as raised:
        cogpu.open(text)
    assert isinstance(raised.value, ValueError) and raised.value.status == "not_tiff"
    with pytest.raises(OSError):
        cogpu.open(tmp_path)
    with pytest.raises(ValueError):
        cogpu.open("a\0b")


def test_limits(path):
    with pytest.raises(cogpu.LimitExceededError, match="bands"):
        cogpu.open(path, limits={"bands": 2})
    for limits, error in (({"no_such": 1}, ValueError), ({"bands": True}, TypeError), ({"bands": -1}, ValueError),
                          ({1: 1}, ValueError), (5, TypeError)):
        with pytest.raises(error):
            cogpu.open(path, limits=limits)


@pytest.mark.parametrize("arguments, error, name", [
    ({"level": True}, TypeError, "level"), ({"bands": True}, TypeError, "bands"),
    ({"bands": [1, False]}, TypeError, "bands"),
    ({"window": (0, 0, True, 5)}, TypeError, "window"), ({"threads": True}, TypeError, "threads"),
    ({"stream": True}, TypeError, "stream"),
    ({"level": "0"}, TypeError, "level"), ({"level": 1.0}, TypeError, "level"), ({"bands": "1"}, TypeError, "bands"),
    ({"bands": 1.5}, TypeError, "bands"), ({"device": 0}, TypeError, "device"), ({"window": 5}, TypeError, "window"),
    ({"window": (1, 2, 3)}, TypeError, "window"), ({"no_such": 1}, TypeError, "no_such"),
    ({"level": -1}, ValueError, "level"), ({"level": 2}, LookupError, "level"),
    ({"level": 1 << 40}, ValueError, "level"),
    ({"bands": 0}, cogpu.Error, "band"), ({"bands": 4}, cogpu.Error, "band"), ({"bands": -1}, ValueError, "bands"),
    ({"bands": ()}, ValueError, "bands"), ({"threads": -1}, ValueError, "threads"),
    ({"window": (0, 0, 151, 200)}, ValueError, "window"), ({"window": (0, 0, 150, 201)}, ValueError, "window"),
    ({"window": (0, 0, 80, 80), "level": 1}, ValueError, "window"), ({"window": (-1, 0, 5, 5)}, ValueError, "window"),
    ({"window": (5, 5, 5, 9)}, ValueError, "window"), ({"window": (9, 5, 6, 9)}, ValueError, "window"),
    ({"window": (0, 0, 1 << 40, 1 << 40)}, ValueError, "window"),
    ({"window": rasterio.windows.Window(0.5, 0, 5, 5)}, ValueError, "window"),
    ({"window": rasterio.windows.Window(0, 0, 500, 5)}, ValueError, "window"),
    ({"device": "tpu"}, ValueError, "device"), ({"device": "cuda:"}, ValueError, "device"),
    ({"device": "cpu:0"}, ValueError, "device"),
    ({"device": "emu:x"}, ValueError, "device"), ({"device": "emu:99999999999"}, ValueError, "device"),
    ({"device": "emu:7"}, cogpu.DeviceError, "emu"),
    ({"decode": "tpu"}, ValueError, "device"), ({"decode": "emu:7"}, cogpu.DeviceError, "emu"),
    ({"device": "emu", "decode": "cuda:0"}, ValueError, "decode_device"),
    ({"dtype": "uint8"}, ValueError, "int16"), ({"dtype": "bool"}, ValueError, "dtype"),
    ({"dtype": "complex64"}, ValueError, "complex64"),
    ({"dtype": "int16", "masked": True}, ValueError, "float32"),
], ids=str)
def test_bad_arguments(file, arguments, error, name):
    """T191, T192: bools are no numbers, and what is out of range is refused, by its name."""
    with pytest.raises(error, match=name):
        file.read(**arguments)


def test_images_that_are_not_there(path):
    for image, error in ((1, cogpu.NotFoundError), (-1, ValueError), (True, TypeError), ("0", TypeError)):
        with pytest.raises(error):
            cogpu.open(path, image=image)
    file = _cogpu.File(path)
    for call in (lambda: file.level(0, 2), lambda: file.band(0, 0), lambda: file.band(0, 4), lambda: file.info(1),
                 lambda: file.metadata(1)):
        with pytest.raises(cogpu.NotFoundError):
            call()
    for call in (lambda: file.level(0), lambda: file.level(0, True), lambda: file.band(0, "1")):
        with pytest.raises(TypeError):
            call()


def test_what_is_no_file():
    with pytest.raises(TypeError):
        _cogpu.read_many([("file", {})])
    with pytest.raises(TypeError):
        _cogpu.check("file")
    unopened = _cogpu.File.__new__(_cogpu.File)
    with pytest.raises(cogpu.InvalidArgumentError, match="closed"):
        unopened.read()


def test_wrong_words_are_named(path):
    with cogpu.open(path) as file:
        with pytest.raises(TypeError, match="dtype"):
            file.read(dtype="decimal")
        for request in (file, (str(path), {}), (file, 5), (file,)):
            with pytest.raises(TypeError, match="requests must be pairs"):
                cogpu.read_many([request])
