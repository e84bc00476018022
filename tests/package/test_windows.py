"""Where random windows lie (cogpu.windows), which files go together, and windows that are read as one batch."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import rasterio
from conftest import array_module, host, pixels_of, write_file

import cogpu
from cogpu import _cogpu
from cogpu.errors import CorruptError, InvalidArgumentError
from cogpu.windows import OpenFiles, Places, read_windows, survey


def make(path, shape=(1, 40, 60), dtype="uint8"):
    return write_file(path, np.zeros(shape, dtype))


def test_windows_lie_inside_and_reach_every_edge():
    places = Places([(40, 60), (33, 32)], (32, 30)).draw(4000)
    assert places.dtype == "int64" and places.shape == (4000, 3)
    for raster, (height, width) in enumerate([(40, 60), (33, 32)]):
        rows, columns = places[places[:, 0] == raster, 1:].T
        assert (rows.min(), rows.max()) == (0, height - 32)
        assert (columns.min(), columns.max()) == (0, width - 30)


def test_a_raster_is_drawn_as_often_as_its_area_says():
    drawn = Places([(100, 300), (100, 100)], 100).draw(20000)[:, 0]
    assert abs(np.mean(drawn == 0) - 0.75) < 0.02


def test_a_batch_rests_on_seed_pass_and_number_alone():
    places = Places([(500, 500)] * 3, 16, seed=5)
    second = places.draw(32, number=1, epoch=2)
    assert np.array_equal(second, Places([(500, 500)] * 3, 16, seed=5).draw(32, number=1, epoch=2))
    others = [places.draw(32, 1, 3), places.draw(32, 2, 2), Places([(500, 500)] * 3, 16, seed=6).draw(32, 1, 2)]
    assert not any(np.array_equal(second, other) for other in others)


def test_a_window_as_large_as_the_raster():
    assert np.array_equal(Places([(8, 9)], (8, 9)).draw(3), np.zeros((3, 3)))


def test_windows_that_have_the_area():
    assert Places([(100, 100), (50, 100)], 50).windows() == 6
    assert Places([(100, 101)], 50).windows() == 5


@pytest.mark.parametrize("size, error, match", [
    (0, InvalidArgumentError, "size"), (True, TypeError, "size"), (2.5, TypeError, "size"),
    ((1, 2, 3), InvalidArgumentError, "size"),
    ((4, -1), InvalidArgumentError, "size")])
def test_bad_sizes(size, error, match):
    with pytest.raises(error, match=match):
        Places([(10, 10)], size)


def test_too_small_a_raster_is_named():
    with pytest.raises(InvalidArgumentError, match="little.tif has 10 x 200"):
        Places([(64, 64), (10, 200)], 32, names=["large.tif", "little.tif"])
    with pytest.raises(InvalidArgumentError, match="raster 1"):
        Places([(64, 64), (200, 10)], 32)
    with pytest.raises(InvalidArgumentError, match="empty"):
        Places([], 32)


def test_what_files_have_in_common(tmp_path):
    files = [make(tmp_path / "a.tif", (3, 40, 60), "int16"), make(tmp_path / "b.tif", (3, 30, 20), "int16")]
    assert survey(files) == ([(40, 60), (30, 20)], (1, 2, 3), np.dtype("int16"))
    assert survey(files, bands=2)[1] == (2,)
    assert survey(files, bands=[3, 1])[1] == (3, 1)


@pytest.mark.parametrize("shape, dtype, options, match", [
    ((2, 40, 60), "uint8", {}, "b.tif has 2 bands"), ((1, 40, 60), "int16", {}, "b.tif has pixels of int16"),
    ((1, 40, 60), "uint8", {"bands": 2}, "there is no band 2"), ((1, 40, 60), "uint8", {"level": 1}, "no level 1"),
    ((1, 40, 60), "uint8", {"bands": 0}, "bands=0")])
def test_files_that_do_not_go_together_are_named(tmp_path, shape, dtype, options, match):
    files = [make(tmp_path / "a.tif"), make(tmp_path / "b.tif", shape, dtype)]
    with pytest.raises(InvalidArgumentError, match=match):
        survey(files, **options)


def test_a_file_that_is_not_there_or_no_raster_is_named(tmp_path):
    (tmp_path / "text.tif").write_bytes(b"no TIFF at all")
    for name, error in ("absent.tif", FileNotFoundError), ("text.tif", ValueError):
        with pytest.raises(error, match=name):
            survey([make(tmp_path / "a.tif"), tmp_path / name])


# ---- batches ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crops(tmp_path_factory):
    """Paths of three files of two bands, windows of a batch as (file, row, column), and their pixels by rasterio."""
    folder, paths = tmp_path_factory.mktemp("crops"), []
    for name, (height, width), codec in ("a", (150, 220), "deflate"), ("b", (90, 100), "zstd"), ("c", (80, 300), "lzw"):
        pixels = pixels_of((2, height, width), "int16")
        paths.append(write_file(folder / f"{name}.tif", pixels, compress=codec, nodata=77, overviews=[2]))
    places = np.array([(0, 3, 5), (1, 50, 0), (2, 40, 200), (0, 110, 150), (0, 3, 5)], "int64")
    expected = []
    for file, row, column in places.tolist():
        with rasterio.open(paths[file]) as opened:
            expected.append(opened.read(window=((row, row + 40), (column, column + 70))))
    return paths, places, np.stack(expected)


def opened_of(paths, places):
    files = OpenFiles(paths)
    return files.get(places[:, 0].tolist())


def engines_and_places(paths, places):
    return [file._file for file in opened_of(paths, places)], np.column_stack([0 * places[:, 0], places[:, 1:]])


def test_a_batch_has_the_pixels_of_its_windows(crops, device):
    paths, places, expected = crops
    out = array_module(device).zeros((10, 40, 70), "int16")
    read_windows(opened_of(paths, places), places[:, 1:], out, bands=(1, 2), device=device)
    assert np.array_equal(host(out).reshape(expected.shape), expected)


def test_bands_type_and_nan(crops, device):
    paths, places, expected = crops
    out = array_module(device).zeros((5, 40, 70), "float32")
    read_windows(opened_of(paths, places), places[:, 1:], out, bands=[2], masked=True, device=device)
    expected = np.where(expected == 77, np.nan, expected)[:, 1].astype("f4")
    assert np.isnan(expected).any() and np.array_equal(host(out), expected, equal_nan=True)


def test_a_level(crops, device):
    paths, places, _ = crops
    out = array_module(device).zeros((10, 30, 40), "int16")
    corners = places[:, 1:] // 4
    read_windows(opened_of(paths, places), corners, out, bands=(1, 2), level=1, device=device)
    for got, file, (row, column) in zip(host(out).reshape(5, 2, 30, 40), places[:, 0].tolist(), corners.tolist()):
        with rasterio.open(paths[file], overview_level=0) as opened:
            assert np.array_equal(got, opened.read(window=((row, row + 30), (column, column + 40))))


def test_an_array_with_strides(crops):
    paths, places, expected = crops
    room = np.full((10, 40, 70, 2), 9, "int16")
    read_windows(opened_of(paths, places), places[:, 1:], room[..., 1], bands=(1, 2))
    assert np.array_equal(room[..., 1].reshape(expected.shape), expected) and (room[..., 0] == 9).all()


def test_images_of_a_file(tmp_path):
    import tifffile
    path, pages = tmp_path / "pages.tif", pixels_of((3, 40, 50), "uint16")
    with tifffile.TiffWriter(path) as writer:
        for page in pages:
            writer.write(page, metadata=None)
    files = [cogpu.open(path, image=image) for image in (2, 0, 1)]
    out = np.zeros((3, 20, 20), "uint16")
    read_windows(files, np.array([(1, 2), (3, 4), (5, 6)]), out, bands=(1,))
    assert np.array_equal(out, [pages[2, 1:21, 2:22], pages[0, 3:23, 4:24], pages[1, 5:25, 6:26]])


def test_complex_integers(tmp_path):
    values = (pixels_of((1, 40, 50), "int16") * (1 + 2j)).astype("complex64")
    path = write_file(tmp_path / "complex.tif", values, dtype="complex_int16", compress="deflate")
    out = np.zeros((2, 8, 9), "complex64")
    read_windows([cogpu.open(path)] * 2, np.array([(1, 2), (30, 40)]), out, bands=(1,))
    assert np.array_equal(out, [values[0, 1:9, 2:11], values[0, 30:38, 40:49]])


def test_counts_of_a_batch(crops, device):
    paths, places, _ = crops
    out = array_module(device).zeros((10, 40, 70), "int16")
    files, places = engines_and_places(paths, places)
    cogpu.configure()  # an empty cache
    counts = _cogpu.read_windows(files, places, out, device=device)
    single = [file.read(window=(int(column), int(row), 70, 40), device=device).result
              for file, (_, row, column) in zip(files, places)]
    assert counts["blocks"] == sum(one["blocks"] for one in single) > 5
    assert bool(counts["device_blocks"]) == (device != "cpu") and counts["bad_blocks"] == 0


def test_a_batch_of_nothing():
    counts = _cogpu.read_windows([], np.zeros((0, 3), "int64"), np.zeros((0, 4, 4), "uint8"))
    assert counts["blocks"] == 0


@pytest.mark.parametrize("change, error, match", [
    ({"files": ()}, TypeError, "files must be a list"), ({"files": [1] * 5}, TypeError, "File"),
    ({"places": [(0, 0, 0)] * 5}, TypeError, "bytes-like"),
    ({"places": np.zeros((5, 3), "int32")}, InvalidArgumentError, "places must be an int64"),
    ({"places": np.zeros((5, 3), "float64")}, InvalidArgumentError, "places must be an int64"),
    ({"places": np.zeros((5, 3), ">i8")}, InvalidArgumentError, "places must be an int64"),
    ({"places": np.zeros((5, 2), "int64")}, InvalidArgumentError, r"\(5, 3\)"),
    ({"places": np.zeros((4, 3), "int64")}, InvalidArgumentError, r"\(5, 3\)"),
    ({"places": np.zeros(15, "int64")}, InvalidArgumentError, r"\(5, 3\)"),
    ({"places": np.zeros((5, 6), "int64")[:, ::2]}, ValueError, "contiguous"),
    ({"out": np.zeros((11, 40, 70), "int16")}, InvalidArgumentError, "5 windows"),
    ({"out": np.zeros((0, 40, 70), "int16")}, InvalidArgumentError, "5 windows"),
    ({"out": np.zeros((10, 0, 70), "int16")}, InvalidArgumentError, "out "),
    ({"out": np.zeros((15, 40, 70), "int16")}, InvalidArgumentError, "a.tif: the raster has 3 bands"),
    ({"out": np.zeros((10, 40, 70), "uint8")}, InvalidArgumentError, "a.tif: .*uint8"),
    ({"out": None}, TypeError, "out"), ({"level": 2}, LookupError, "a.tif: there is no level 2"),
    ({"level": -1}, InvalidArgumentError, "level"), ({"bands": (3,)}, InvalidArgumentError, "a.tif: .*band 3"),
    ({"bands": ()}, InvalidArgumentError, "bands"), ({"masked": True}, InvalidArgumentError, "a.tif"),
    ({"device": "tpu"}, InvalidArgumentError, "device"), ({"stream": -1}, InvalidArgumentError, "stream"),
    ({"window": (0, 0, 1, 1)}, TypeError, "window")])
def test_wrong_batches(crops, change, error, match):
    files, places = engines_and_places(*crops[:2])
    if "bands" in change and len(change["bands"]) == 1:
        change = {**change, "out": np.zeros((5, 40, 70), "int16")}
    given = {"files": files, "places": places, "out": np.zeros((10, 40, 70), "int16"), **change}
    with pytest.raises(error, match=match):
        _cogpu.read_windows(given.pop("files"), given.pop("places"), given.pop("out"), **given)


@pytest.mark.parametrize("number, value", [(1, -1), (1, 51), (2, 31), (2, 1 << 32), (1, -(1 << 63)), (0, 1), (0, -1)])
def test_a_window_outside_its_file_is_named(crops, number, value):
    files, places = engines_and_places(*crops[:2])
    places[1, number] = value
    with pytest.raises((InvalidArgumentError, LookupError), match="b.tif"):
        _cogpu.read_windows(files, places, np.zeros((10, 40, 70), "int16"))


def test_a_damaged_file_is_named(crops, tmp_path, device):
    paths, places, expected = crops
    data = bytearray(paths[1].read_bytes())
    with rasterio.open(paths[1]) as file:
        offset = int(file.tags(1, ns="TIFF").get("BLOCK_OFFSET_0_0", 0) or 0)
    data[offset or len(data) // 2:] = b"\xff" * (len(data) - (offset or len(data) // 2))
    (tmp_path / "damaged.tif").write_bytes(data)
    files = [paths[0], tmp_path / "damaged.tif", paths[2]]
    out = array_module(device).zeros((10, 40, 70), "int16")
    with pytest.raises(CorruptError, match="damaged.tif"):
        read_windows(opened_of(files, places), places[:, 1:], out, bands=(1, 2), device=device)
    assert np.array_equal(host(out).reshape(expected.shape)[[0, 2, 3, 4]], expected[[0, 2, 3, 4]])


# ---- open files ------------------------------------------------------------------------------------------------------


def test_files_stay_open(crops):
    files = OpenFiles(crops[0])
    first = files.get([0, 1, 2])
    assert files.get([2, 0, 1, 1]) == [first[2], first[0], first[1], first[1]]
    assert OpenFiles(first).get([1]) == [first[1]]


def test_several_files_are_opened_at_a_time(crops, monkeypatch):
    at_once = threading.Barrier(3)  # each waits until three are being opened

    def open_slowly(number, path):
        at_once.wait(60)
        return cogpu.open(path)
    files = OpenFiles(crops[0] * 3)
    monkeypatch.setattr(files, "_open", open_slowly)
    assert [file.name for file in files] == [str(path) for path in crops[0] * 3]


def test_the_first_file_that_cannot_be_opened_is_named(crops, tmp_path):
    with pytest.raises(FileNotFoundError, match="one.tif"):
        survey(OpenFiles([*crops[0], tmp_path / "one.tif", crops[0][0], tmp_path / "two.tif"]))


def test_the_files_used_last_stay_open(crops, monkeypatch):
    opened, files = [], OpenFiles(crops[0])
    # Of these files alone: a thread that reads ahead may still open others.
    monkeypatch.setattr(files, "_open", lambda number, path: opened.append(number) or cogpu.open(path))
    files.limit = 2
    for numbers in [0], [1], [0, 0], [2], [0, 2], [1]:
        files.get(numbers)
    assert opened == [0, 1, 2, 1]


def test_sidecars_are_searched_once(tmp_path, monkeypatch):
    paths = [make(tmp_path / "a.tif"), make(tmp_path / "b.tif")]
    with rasterio.Env(TIFF_USE_OVR="YES"), rasterio.open(paths[1], "r+") as file:
        file.build_overviews([2])
    assert (tmp_path / "b.tif.ovr").exists()
    files, how = OpenFiles(paths), []
    monkeypatch.setattr(cogpu.windows, "open_file",
                        lambda path, **given: how.append(given) or cogpu.open(path, **given))
    assert [len(file.levels) for file in files] == [1, 2]
    for again in pickle.loads(pickle.dumps(files)), OpenFiles(paths):
        assert [len(file.levels) for file in again] == [1, 2]
    assert how == [{"sidecars": False}]


def test_a_file_that_changed_is_opened_again(tmp_path):
    path = make(tmp_path / "a.tif")
    files = OpenFiles([path])
    before = files.get([0])
    files.forget_changed()
    assert files.get([0]) == before
    write_file(path, np.full((1, 40, 60), 7, "uint8"))
    files.forget_changed()
    (file,) = files.get([0])
    assert (np.asarray(file.read()) == 7).all() and len(file.levels) == 1
    with rasterio.Env(TIFF_USE_OVR="YES"):
        write_file(path, np.full((1, 41, 60), 7, "uint8"), overviews=[2])
    files.forget_changed()
    assert len(files.get([0])[0].levels) == 2


def test_another_process_opens_its_own(crops):
    files = OpenFiles(crops[0])
    files.get([0])
    again = pickle.loads(pickle.dumps(files))
    assert not again._kept and again.get([1])[0].name == str(crops[0][1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_does_not_wait_for_the_parent_s_thread(crops):
    files = OpenFiles(crops[0])
    held, done = threading.Event(), threading.Event()

    def hold():
        with files._lock:
            held.set()
            done.wait(60)
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if files.get([1])[0].shape == (2, 90, 100) else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def ends_of_children(child, count, read_on):
    """Exit statuses of children that run child(), forked while threads call read_on()."""
    stop, ends = threading.Event(), []

    def work():
        while not stop.is_set():
            read_on()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(count):
        number = os.fork()
        if not number:
            signal.alarm(30)
            os._exit(child())
        ends.append(os.waitpid(number, 0)[1])
        if ends[-1]:
            break
    stop.set()
    for thread in threads:
        thread.join()
    return ends


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_reads_the_files_that_are_being_read(crops):
    paths, places, expected = crops
    files = OpenFiles(opened_of(paths, np.array([(0,), (1,), (2,)])))

    def read():
        out = np.zeros((10, 40, 70), "int16")
        read_windows(files.get(places[:, 0].tolist()), places[:, 1:], out, bands=(1, 2))
        return 0 if np.array_equal(out.reshape(expected.shape), expected) else 1
    assert ends_of_children(read, 25, read) == [0] * 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_closes_files_beside_reads(crops):
    """Files leave the block cache when they are closed, whose lock a thread of the parent may have held."""
    paths, *_ = crops
    file, closed = cogpu.open(paths[0]), cogpu.open(paths[1])
    closed.read(window=(0, 0, 8, 8))
    places, out = np.zeros((300, 3), "int64"), np.zeros((600, 4, 4), "int16")

    def close():
        closed.close()
        return 0
    assert ends_of_children(close, 50, lambda: _cogpu.read_windows([file._file] * 300, places, out)) == [0] * 50


MANY_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import numpy as np
from cogpu.windows import OpenFiles, read_windows
files = OpenFiles([sys.argv[1]] * 500)
for file in files:
    assert file.shape == (1, 40, 60)
for _ in range(2):
    for first in range(0, 500, files.limit):
        numbers = range(first, min(first + files.limit, 500))
        out = np.zeros((len(numbers), 8, 8), "uint8")
        read_windows(files.get(numbers), np.zeros((len(numbers), 2), "int64"), out, bands=(1,))
        assert (out == 5).all()
print(files.limit)
"""


def test_more_files_than_a_process_may_open(tmp_path):
    path = write_file(tmp_path / "a.tif", np.full((1, 40, 60), 5, "uint8"))
    found = subprocess.run([sys.executable, "-c", MANY_FILES, path], capture_output=True, text=True)
    assert found.stdout == "32\n", found.stderr


def test_too_many_open_files_is_said(tmp_path):
    path = make(tmp_path / "a.tif")
    program = ("import cogpu, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); "
               "files = [cogpu.open(sys.argv[1]) for _ in range(100)]")
    found = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert "IOError" in found.stderr and "a.tif" in found.stderr and "Too many open files" in found.stderr
