"""Profiles and rows that the extension module's Writer refuses, each by its name."""

import gc

import numpy as np
import pytest
from cogpu import _cogpu, errors
from test_writer import pixels, profile_of, push_all, write

BAD_TYPES = {"width": ["70", 70.0, True], "height": [None.__class__], "bands": [1j],
             "type": [np.float32, 5], "cog": ["yes", 1.0],
             "block_width": [False], "codec": [b"lzw", 5], "compression_level": [True, 6.0],
             "max_z_error": ["0", True], "bigtiff": [True, 1],
             "nodata": [-9999, True], "photometric": [2], "palette": [5, [1, 2], [("a", 0, 0)]],
             "transform": [5, [True] * 6, "abcdef"],
             "gcps": [[5], [("a", 0, 0, 0)]], "rpc": [["x"] * 92], "crs": [4326, True],
             "geokeys": [[5], [(1024, "", None)]],
             "metadata": [["x"], [{"name": 5}], [{1: "x"}], {"name": "x"}],
             "tags": [[5], [(65000, 3, 1, ("x",))]],
             "overview_factors": [[2.5], [True], 2], "resampling": [1], "device": [0],
             "description": [b"x"], "epoch": ["2010"]}
BAD_VALUES = {"width": [-1, 2**32, 0], "height": [10**30], "bands": [-5], "type": ["float", "U8", ""],
              "cog": [2], "compression_level": [2**31, -2**63, 99],
              "predictor": [7], "bits": [99],
              "bigtiff": ["true", "maybe"], "nodata": ["abc", "1\x002"],
              "photometric": ["minblack"],
              "palette": [[(1, 2)], [(65536, 0, 0)], [(-1, 0, 0)]], "transform": [[1, 2, 3], [np.nan] * 6],
              "gcps": [[(1, 2, 3)], [(1,) * 7]],
              "rpc": [[0.0] * 91], "crs": ["EPSG:none"],
              "geokeys": [[(1024, "", (70000,))], [(1024, "")]],
              "metadata": [[{"nam": "x"}], [{"name": "a", "value": "b", "band": -1}]],
              "tags": [[(65000, 3, 1, (70000,))], [(65000, 99, 1, (0,))], [(65000, 13, 1, (0,))], [(65000, 3, 2, (1,))],
                       [(65000, 3, 2, b"123")], [(65000, 3, 2**40, b"")], [(65000, 6, 1, (128,))], [(65000, 1, 1)]],
              "overview_factors": [[-2], [2**32], [1]], "resampling": ["averge"], "overviews": ["yes"],
              "device": ["tpu", "emu:x", "cuda:-1"]}


def cases(table):
    return [pytest.param(name, value, id=f"{name}-{number}")
            for name, values in table.items() for number, value in enumerate(values)]


@pytest.mark.parametrize("name, value", cases(BAD_TYPES))
def test_wrong_types(name, value):
    with pytest.raises(TypeError, match=name.removesuffix("s")) as caught:
        _cogpu.Writer(None, profile_of(pixels()) | {name: value})
    assert not isinstance(caught.value, errors.Error)


@pytest.mark.parametrize("name, value", cases(BAD_VALUES))
def test_wrong_values(name, value):
    words = {"metadata": "item|'nam'|band", "tags": "tag", "overview_factors": "factor|overview", "gcps": "gcps|point",
             "compression_level": "level", "width": "width|pixels|size|empty",
             "crs": "crs|CRS|EPSG|system", "geokeys": "key"}
    with pytest.raises(errors.InvalidArgumentError, match=words.get(name, name)):
        _cogpu.Writer(None, profile_of(pixels("uint8")) | {name: value})


@pytest.mark.parametrize("key, similar", [
    ("compression", None), ("nodta", "nodata"), ("resample", "resampling"), ("dtype", "type"),
    ("has_transform", "transform"), ("palette_entries", "palette"), ("context", None), ("", None)])
def test_unknown_keys(key, similar):
    with pytest.raises(errors.InvalidArgumentError, match=f"profile has no '{key}'") as caught:
        _cogpu.Writer(None, profile_of(pixels()) | {key: 1})
    if similar:
        assert f"'{similar}'" in str(caught.value)


def test_profiles_that_are_none():
    for profile in None, [], "x", 5:
        with pytest.raises(TypeError, match="profile must be a dict"):
            _cogpu.Writer(None, profile)
    with pytest.raises(TypeError, match="str"):
        _cogpu.Writer(None, {1: 2})
    with pytest.raises(errors.InvalidArgumentError):
        _cogpu.Writer(None, {})
    with pytest.raises(TypeError):
        _cogpu.Writer(None)


def test_none_is_the_default():
    array = pixels()
    nothing = dict.fromkeys(["nodata", "crs", "transform", "metadata", "codec", "overview_factors", "device", "palette",
                             "threads", "cog"])
    assert write(array, **nothing) == write(array)


def test_exceptions_of_values_come_out():
    class Number:
        def __index__(self):
            raise KeyError("index")

        __float__ = __index__

    for name in "width", "max_z_error":
        with pytest.raises(KeyError):
            _cogpu.Writer(None, profile_of(pixels()) | {name: Number()})


def test_a_profile_that_changes_meanwhile():
    profile = profile_of(pixels())

    class Number:
        def __index__(self):
            profile.clear()
            gc.collect()
            return 70

    profile["width"] = Number()
    push_all(_cogpu.Writer(None, profile), pixels())
    assert profile == {}


@pytest.mark.parametrize("rows", [
    None, 5, "rows", [[1.0]], np.zeros((1, 1, 90, 70), "float32"), np.zeros(70, "float32"),
    np.zeros((1, 90, 70), ">f4"), np.zeros((1, 90, 70), "datetime64[s]"), np.zeros((1, 90, 70), object)])
def test_rows_that_are_no_array(rows):
    writer = _cogpu.Writer(None, profile_of(pixels()))
    with pytest.raises((TypeError, errors.InvalidArgumentError), match="rows"):
        writer.write_rows(rows)
    push_all(writer, pixels())


@pytest.mark.parametrize("rows", [
    pixels("float64"), pixels(bands=2), pixels(width=69), pixels(height=91), pixels()[:, :0]])
def test_rows_that_do_not_fit(rows):
    writer = _cogpu.Writer(None, profile_of(pixels()))
    with pytest.raises(errors.InvalidArgumentError):
        writer.write_rows(rows)
    with pytest.raises(errors.InvalidArgumentError, match="closed, or was ended by an error"):
        writer.close()


def test_streams():
    array = pixels()
    writer = _cogpu.Writer(None, profile_of(array))
    for stream in "0", 1.5, True, -1:
        with pytest.raises((TypeError, errors.InvalidArgumentError), match="stream"):
            writer.write_rows(array, stream=stream)
    writer.write_rows(array, stream=7)  # of host memory nothing is asked
    writer.close()
