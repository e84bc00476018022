"""Keywords of GDAL, rasterio, rioxarray and xarray-spatial: aliases work, others are refused with our keyword."""

import inspect
import pickle

import numpy as np
import pytest
import rasterio
import xarray

import cogpu
from cogpu import engine, keywords, read, write

FUNCTIONS = {"open": cogpu.open, "open_geotiff": cogpu.open_geotiff, "to_geotiff": cogpu.to_geotiff,
             "File.read": cogpu.File.read, "File.read_mask": cogpu.File.read_mask, "configure": cogpu.configure,
             "open_mosaic": cogpu.open_mosaic, "write_vrt": cogpu.write_vrt, "Source": cogpu.Source,
             "Engine.open_dataset": engine.Engine.open_dataset}
ENTRIES = [(function, name, to) for function, names in keywords.TABLE.items() for name, to in names.items()]


def parameters_of(function):
    return inspect.signature(FUNCTIONS[function]).parameters


@pytest.mark.parametrize("function, name, to", ENTRIES)
def test_entries_name_keywords_that_exist(function, name, to):
    own = parameters_of(function)
    assert name not in own
    words = to.split("`")[1::2]
    assert to in own or " " in to
    for word in words:
        if word.partition("=")[0].isidentifier():
            assert word.partition("=")[0] in own, (function, name, word)


@pytest.mark.parametrize("name, value, same", [
    ("overview_level", 1, {"level": 1}), ("overview_level", None, {}), ("bands", [3, 1], {"band": [3, 1]}),
    ("unpack", True, {"unscale": True}), ("mask_and_scale", True, {"unscale": True})])
def test_aliases_of_open_geotiff(path, name, value, same):
    xarray.testing.assert_identical(cogpu.open_geotiff(path, **{name: value}), cogpu.open_geotiff(path, **same))


@pytest.mark.parametrize("given, same", [
    ({"compress": "LZW"}, {"compression": "lzw"}), ({"blocksize": 64}, {"tile_size": 64}),
    ({"codec": "zstd"}, {"compression": "zstd"}), ({"overview_factors": [2]}, {"overview_levels": [2]})])
def test_aliases_of_to_geotiff(pixels, given, same):
    assert cogpu.to_geotiff(pixels, None, **given) == cogpu.to_geotiff(pixels, None, **same)


def test_aliases_of_file_read(path, pixels):
    with cogpu.open(path) as file:
        np.testing.assert_array_equal(file.read(band=2), pixels[1:2])
        np.testing.assert_array_equal(cogpu.read_many([(file, {"band": 2})])[0], pixels[1:2])


@pytest.mark.parametrize("call, message", [
    (lambda path: cogpu.open_geotiff(path, lock=False), r"open_geotiff\(\) has no keyword `lock`; reads need no lock"),
    (lambda path: cogpu.open_geotiff(path, scaled=True), "use `unscale=True`"),
    (lambda path: cogpu.open_geotiff(path, maskd=True), r"open_geotiff\(\) has no keyword `maskd`; similar: `masked`"),
    (lambda path: cogpu.open_geotiff(path, xyzzy=1), r"has no keyword `xyzzy`$"),
    (lambda path: cogpu.open_geotiff(path, level=1, overview_level=1), "`overview_level` is another name of `level`"),
    (lambda path: cogpu.open_geotiff(path, unpack=True, mask_and_scale=True), "`mask_and_scale` is another name"),
    (lambda path: cogpu.open(path, num_threads=2), r"configure\(threads=...\)"),
    (lambda path: cogpu.open(path).read(indexes=1), r"File.read\(\) has no keyword `indexes`; use `bands`"),
    (lambda path: cogpu.open(path).read(scaled=True), "use `unscale=True`"),
    (lambda path: cogpu.read_many([(cogpu.open(path), {"windw": None})]), "`windw`; similar: `window`"),
    (lambda path: cogpu.to_geotiff(np.ones((9, 9)), None, zlevel=9), "use `compression_level`"),
    (lambda path: cogpu.to_geotiff(np.ones((9, 9)), None, num_threads=2), "configure"),
    (lambda path: cogpu.to_geotiff(np.ones((9, 9)), None, blockxsize=16), "use `tile_size"),
    (lambda path: cogpu.to_geotiff(np.ones((9, 9)), None, cogg=True), "similar: `cog`"),
    (lambda path: cogpu.configure(num_threads=2), "use `threads`")])
def test_what_is_refused(path, call, message):
    with pytest.raises(TypeError, match=message):
        call(path)


def test_bands_count_as_in_rasterio(path):
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(cogpu.open_geotiff(path, band=3), file.read([3]))
    assert cogpu.open_geotiff(path, band=3).band.values.tolist() == [3]


def test_decorated_functions_stay_functions():
    for function in (cogpu.open, cogpu.open_geotiff, cogpu.to_geotiff, cogpu.configure):
        assert pickle.loads(pickle.dumps(function)) is function and function.__doc__
    assert cogpu.open_geotiff is read.open_geotiff and keywords.defaults_of(write.to_geotiff)["compression"] == "deflate"
