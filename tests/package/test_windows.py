"""Where random windows lie (cogpu.windows), and which files go together."""

import numpy as np
import pytest
from cogpu.errors import InvalidArgumentError
from cogpu.windows import Places, survey
from conftest import write_file


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
