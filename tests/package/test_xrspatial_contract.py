"""compat.xrspatial: mistakes by their classes of errors, aliases, scales, nodata, georeferencing, tags and accessors, as
xarray-spatial has them. What is expected here was learnt from xarray-spatial 0.10.20."""

import io
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rasterio")
xr = pytest.importorskip("xarray")
from cogpu.compat import xrspatial as ours  # noqa: E402
from xrspatial_made import files, opened  # noqa: E402


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return files(tmp_path_factory.mktemp("made"))


# ---- mistakes, and their classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options, error, text", [
    ({"band": 7}, IndexError, "out of range"), ({"band": -1}, IndexError, "out of range"),
    ({"band": True}, ValueError, "non-negative int"), ({"band": 0.0}, TypeError, "non-negative int"),
    ({"overview_level": 1.0}, TypeError, "float"), ({"overview_level": True}, TypeError, "bool"),
    ({"overview_level": 9}, ValueError, "out of range"), ({"window": (0, 0, 100, 100)}, ValueError, "source extent"),
    ({"window": (5, 5, 5, 5)}, ValueError, "non-positive"), ({"bbox": (1, 2, 3)}, ValueError, "4-tuple"),
    ({"bbox": (0, 0, 1, 1), "window": (0, 0, 1, 1)}, ValueError, "mutually exclusive"),
    ({"bbox": (0, 0, np.inf, 1)}, ValueError, "finite"), ({"bbox": (0, 0, 1, 1)}, ValueError, "overlap"),
    ({"bbox": (9, 0, 1, 1)}, ValueError, "non-positive"), ({"dtype": "int16"}, ValueError, "float to int"),
    ({"gpu": "False"}, TypeError, "gpu"), ({"max_cloud_bytes": None, "chunks": 8}, ValueError, "max_cloud_bytes"),
    ({"missing_sources": "raise"}, ValueError, "only applies"), ({"band_nodata": "first"}, ValueError, "only applies")])
def test_mistakes_of_readers_have_their_classes(made, options, error, text):
    with pytest.raises(error, match=text):
        ours.open_geotiff(made["float"], **options)


def test_file_like_objects_are_read_at_once(made):
    with open(made["float"], "rb") as file:
        assert ours.open_geotiff(file, max_cloud_bytes=8).shape == (20, 30)
        with pytest.raises(ValueError, match="file-like"):
            ours.open_geotiff(file, chunks=8)


GRID_2x3 = {"y": [1.5, 0.5], "x": [0.5, 1.5, 2.5]}


@pytest.mark.parametrize("options, error, text", [
    ({"compression": None}, TypeError, "must be a str"), ({"compression": "bzip2"}, ValueError, "Unknown compression"),
    ({"compression": "deflate", "compression_level": 10}, ValueError, "out of range"),
    ({"compression_level": 1.5}, TypeError, "compression_level"), ({"tile_size": 0}, ValueError, "positive"),
    ({"tile_size": 256.0}, ValueError, "tile_size"), ({"tile_size": 24}, ValueError, "16 or 32"),
    ({"cog": True, "tiled": False}, ValueError, "tiled=True"), ({"nodata": True}, TypeError, "numeric"),
    ({"nodata": "missing"}, ValueError, "numeric"), ({"photometric": "rgb"}, ValueError, "at least 3"),
    ({"photometric": "blue"}, ValueError, "valid name"), ({"predictor": 3, "nodata": 1}, ValueError, "predictor=3"),
    ({"pack": True}, ValueError, "no unpack state")])
def test_mistakes_of_writers_have_their_classes(tmp_path, options, error, text):
    data = xr.DataArray(np.ones((2, 3), "int16"), dims=("y", "x"), coords=GRID_2x3)
    with pytest.raises(error, match=text):
        ours.to_geotiff(data, str(tmp_path / "a.tif"), **options)
    assert not (tmp_path / "a.tif").exists()


@pytest.mark.parametrize("data, text", [
    (np.float32(1), "2D or 3D"), (np.zeros(3), "2D or 3D"), (np.zeros((1, 2, 3, 4)), "2D or 3D"),
    (np.zeros((0, 3)), "height=0"), (np.zeros((2, 3, 0)), "no bands"),
    (xr.DataArray(np.zeros((2, 3, 4)), dims=("time", "y", "x")), "temporal leading dim"),
    (xr.DataArray(np.zeros((2, 3, 4)), dims=("y", "x", "z")), "non-band trailing dim")])
def test_shapes_that_cannot_be_written(tmp_path, data, text):
    with pytest.raises(ValueError, match=text):
        ours.to_geotiff(data, str(tmp_path / "a.tif"))


def tiff(path, **tags):
    """A file of 2 x 3 with extra tags of tifffile: {name: (number, type, count, value)}."""
    pytest.importorskip("tifffile").imwrite(path, np.arange(6, dtype="int16").reshape(2, 3), metadata=None,
                                            extratags=[(*tag, True) for tag in tags.values()])
    return str(path)


def geokeys(**keys):
    """GeoKeyDirectory with the model type, and a system as `geographic` or `projected`."""
    numbers = {"model": 1024, "geographic": 2048, "projected": 3072}
    entries = [part for name, value in keys.items() for part in (numbers[name], 0, 1, value)]
    return 34735, 3, 4 + len(entries), (1, 1, 0, len(keys), *entries)


@pytest.mark.parametrize("keys", [{"model": 2, "projected": 4326}, {"model": 1, "geographic": 4326}])
def test_inconsistent_geokeys(tmp_path, keys):
    with pytest.raises(ours.InconsistentGeoKeysError, match="GTModelType"):
        ours.open_geotiff(tiff(tmp_path / "a.tif", keys=geokeys(**keys)))
    keys = {"model": 2, "geographic": 4326}
    assert ours.open_geotiff(tiff(tmp_path / "b.tif", keys=geokeys(**keys))).attrs["crs"] == 4326


def test_degenerate_pixel_size(tmp_path):
    tie = 33922, 12, 6, (0.0, 0.0, 0.0, 5.0, 9.0, 0.0)
    with pytest.raises(ours.DegeneratePixelSizeError, match="ModelPixelScaleTag"):
        ours.open_geotiff(tiff(tmp_path / "a.tif", scale=(33550, 12, 3, (0.0, 30.0, 0.0)), tie=tie))
    good = tiff(tmp_path / "b.tif", scale=(33550, 12, 3, (30.0, 30.0, 0.0)), tie=tie)
    assert ours.open_geotiff(good).attrs["transform"] == (30, 0, 5, 0, -30, 9)


def test_broken_overviews_beside_a_file(tmp_path):
    ours.to_geotiff(np.ones((5, 6)), str(tmp_path / "a.tif"))
    (tmp_path / "a.tif.ovr").write_bytes(b"not a tiff")
    with pytest.warns(RuntimeWarning, match="unreadable sidecar"):
        ours.open_geotiff(str(tmp_path / "a.tif"))
    with pytest.warns(RuntimeWarning), pytest.raises(ValueError, match="external sidecar") as caught:
        ours.open_geotiff(str(tmp_path / "a.tif"), overview_level=1)
    assert caught.value.__cause__ is not None


# ---- aliases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old, new, value", [("name", "default_name", "dem"), ("mask_nodata", "masked", True),
                                             ("mask_and_scale", "unpack", True)])
def test_deprecated_aliases(made, old, new, value):
    with pytest.warns(DeprecationWarning, match=f"{old}.*{new}"):
        got = ours.open_geotiff(made["point"], **{old: value})
    xr.testing.assert_identical(got, ours.open_geotiff(made["point"], **{new: value}))
    assert new != "default_name" or got.name == "dem"
    with pytest.raises(TypeError, match=f"either {new!r}"):
        ours.open_geotiff(made["point"], **{old: value, new: value})


# ---- scale and offset ------------------------------------------------------------------------------------------------


def scaled(path, items, dtype="int16", **attrs):
    data = xr.DataArray(np.arange(6).reshape(2, 3).astype(dtype), dims=("y", "x"), coords=GRID_2x3,
                        attrs={"gdal_metadata": items, **attrs})
    return ours.to_geotiff(data, str(path))


@pytest.mark.parametrize("chunks", [None, 2])
def test_scale_without_a_role(tmp_path, chunks):
    path = scaled(tmp_path / "a.tif", {"SCALE": "2.0", "OFFSET": "10"}, nodata=5)
    with opened(path) as file:
        assert file.scales == (1.0,) and file.tags()["SCALE"] == "2.0"
    data = ours.open_geotiff(path, unpack=True, chunks=chunks)
    np.testing.assert_array_equal(data, [[10, 12, 14], [16, 18, np.nan]])
    assert (data.attrs["scale_factor"], data.attrs["add_offset"], data.dtype) == (2, 10, "float64")
    assert data.attrs["mask_and_scale_dtype"] == "int16"
    ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True)
    raw = ours.open_geotiff(str(tmp_path / "b.tif"))
    np.testing.assert_array_equal(raw, [[0, 1, 2], [3, 4, 5]])
    assert raw.dtype == "int16" and raw.attrs["gdal_metadata"] == {"SCALE": "2.0", "OFFSET": "10.0"}


@pytest.mark.parametrize("name, value", [("SCALE", "0"), ("SCALE", "nan"), ("SCALE", "-inf"), ("SCALE", "abc"),
                                         ("OFFSET", "nan"), ("OFFSET", "xyz")])
def test_malformed_scale_or_offset(tmp_path, name, value):
    path = scaled(tmp_path / "a.tif", {name: value})
    with pytest.raises(ours.MalformedScaleOffsetError, match=f"unpack=True.*{name}"):
        ours.open_geotiff(path, unpack=True)
    assert ours.open_geotiff(path).dtype == "int16"


def test_malformed_metadata_xml(tmp_path):
    text = b'<GDALMetadata><Item name="SCALE">2.0</GDALMetadata>\0'
    path = tiff(tmp_path / "a.tif", metadata=(42112, 2, len(text), text))
    with pytest.raises(ours.MalformedScaleOffsetError, match="XML"):
        ours.open_geotiff(path, unpack=True)
    assert ours.open_geotiff(path).shape == (2, 3)
    bomb = b'<!DOCTYPE a [<!ENTITY b "b">]><GDALMetadata><Item name="SCALE">&b;</Item></GDALMetadata>\0'
    with pytest.raises(ours.MalformedScaleOffsetError, match="DOCTYPE"):
        ours.open_geotiff(tiff(tmp_path / "b.tif", metadata=(42112, 2, len(bomb), bomb)), unpack=True)


def test_pack_after_masked(tmp_path):
    path = str(tmp_path / "a.tif")
    ours.to_geotiff(xr.DataArray(np.array([[1.5, -9999]], "float32"), dims=("y", "x"), attrs={"nodata": -9999}), path)
    data = ours.open_geotiff(path, masked=True)
    assert np.isnan(data.values[0, 1]) and "mask_and_scale_dtype" not in data.attrs
    ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True)
    np.testing.assert_array_equal(ours.open_geotiff(str(tmp_path / "b.tif")), np.array([[1.5, -9999]], "float32"))


def test_pack_of_values_that_do_not_fit(tmp_path):
    data = ours.open_geotiff(scaled(tmp_path / "a.tif", {"SCALE": "0.5"}), unpack=True)
    data[0, 0] = 1e9
    with pytest.raises(ValueError, match="cannot represent"):
        ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True)
    data[0, 0] = np.nan
    with pytest.raises(ValueError, match="cannot restore"):
        ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True)
    with pytest.raises(ValueError, match="cannot be represented"):
        ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True, nodata=1e6)
    data.attrs["scale_factor"] = 0.0
    with pytest.raises(ValueError, match="cannot reverse"):
        ours.to_geotiff(data, str(tmp_path / "b.tif"), pack=True, nodata=1)


# ---- nodata ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodata, stated", [(-9999, -9999), (0.5, 0.5)])
def test_nodata_that_the_type_cannot_hold(tmp_path, nodata, stated):
    path = ours.to_geotiff(np.ones((2, 3), "uint8"), str(tmp_path / "a.tif"), nodata=nodata)
    data = ours.open_geotiff(path, masked=True, allow_invalid_nodata=True)
    assert data.dtype == "uint8" and data.attrs["nodata"] == stated
    assert data.attrs["masked_nodata"] is False and data.attrs["nodata_pixels_present"] is False


@pytest.mark.parametrize("attrs, expected", [({"nodatavals": -1.0}, -1), ({"nodatavals": (-1, -1)}, -1),
                                             ({"nodatavals": (np.nan,)}, None), ({"_FillValue": np.int16(3)}, 3)])
def test_scalar_nodatavals(tmp_path, attrs, expected):
    data = xr.DataArray(np.ones((2, 3), "float32"), dims=("y", "x"), attrs=attrs)
    assert ours.open_geotiff(ours.to_geotiff(data, str(tmp_path / "a.tif"))).attrs.get("nodata") == expected


@pytest.mark.parametrize("pixels, nodata, is_present", [
    (np.array([[1, 2]], "int16"), 2, True), (np.array([[1, 2]], "int16"), 3, False),
    (np.array([[1, np.nan]], "float32"), -1, False), (np.array([[-1, np.nan]], "float32"), -1, True),
    (np.array([[1, np.nan]], "float32"), np.nan, True)])
def test_nodata_pixels_present(tmp_path, pixels, nodata, is_present):
    data = xr.DataArray(pixels, dims=("y", "x"), attrs={"nodata": nodata, "masked_nodata": False})
    path = ours.to_geotiff(data, str(tmp_path / "a.tif"))
    for options in ({}, {"masked": True}):
        assert ours.open_geotiff(path, **options).attrs["nodata_pixels_present"] is is_present
    assert "nodata_pixels_present" not in ours.open_geotiff(path, chunks=1).attrs


# ---- place -----------------------------------------------------------------------------------------------------------


def test_identity_transform_is_kept(tmp_path):
    coords = {"y": [0.5, 1.5], "x": [0.5, 1.5, 2.5]}
    data = xr.DataArray(np.ones((2, 3)), dims=("y", "x"), coords=coords, attrs={"crs": 4326})
    back = ours.open_geotiff(ours.to_geotiff(data, str(tmp_path / "a.tif")))
    assert back.attrs["transform"] == (1, 0, 0, 0, 1, 0) and back.attrs["georef_status"] == "full"
    np.testing.assert_array_equal(back.x, coords["x"])
    again = ours.open_geotiff(ours.to_geotiff(back, str(tmp_path / "b.tif")))
    assert again.attrs["transform"] == (1, 0, 0, 0, 1, 0)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_transform_against_pixel_coordinates(tmp_path, dtype):
    stated = (30.0, 0.0, 100000.0, 0.0, -30.0, 4000000.0)
    data = xr.DataArray(np.ones((4, 5)), dims=("y", "x"), attrs={"transform": stated, "crs": 32610},
                        coords={"y": np.arange(4, dtype=dtype), "x": np.arange(5, dtype=dtype)})
    assert ours.open_geotiff(ours.to_geotiff(data, str(tmp_path / "a.tif"))).attrs["transform"] == stated


def test_one_row_needs_a_pixel_size(tmp_path):
    path = str(tmp_path / "a.tif")
    data = xr.DataArray(np.ones((1, 4)), dims=("y", "x"), coords={"y": [100.0], "x": [0.0, 30, 60, 90]})
    with pytest.raises(ValueError, match="assume_square_pixels_for_degenerate_axis"):
        ours.to_geotiff(data, path)
    with pytest.raises(ValueError, match="pixel size"):
        ours.to_geotiff(data.assign_attrs(assume_square_pixels_for_degenerate_axis="yes"), path)
    ours.to_geotiff(data.assign_attrs(assume_square_pixels_for_degenerate_axis=True), path)
    assert ours.open_geotiff(path).attrs["transform"] == (30, 0, -15, 0, -30, 115)
    column = data.rename({"x": "y", "y": "x"}).transpose("y", "x").isel(y=slice(None, None, -1))
    ours.to_geotiff(column.assign_attrs(assume_square_pixels_for_degenerate_axis=True), path)
    assert ours.open_geotiff(path).attrs["transform"] == (30, 0, 85, 0, -30, 105)


@pytest.mark.parametrize("names", [("y", "x"), ("lat", "lon"), ("row", "col")])
def test_constant_coordinates(tmp_path, names):
    data = xr.DataArray(np.ones((2, 3)), dims=names, coords={names[0]: [5.0, 5.0], names[1]: [1.0, 2, 3]})
    with pytest.raises(ours.NonUniformCoordsError, match="constant"):
        ours.to_geotiff(data, str(tmp_path / "a.tif"))
    marked = data.assign_attrs(_xrspatial_no_georef=True)
    assert ours.open_geotiff(ours.to_geotiff(marked, str(tmp_path / "a.tif"))).attrs["georef_status"] == "none"


# ---- what is written -------------------------------------------------------------------------------------------------


def test_lists_are_data(tmp_path):
    back = ours.open_geotiff(ours.to_geotiff([[1, 2], [3, 4]], str(tmp_path / "a.tif")))
    np.testing.assert_array_equal(back, [[1, 2], [3, 4]])


@pytest.mark.parametrize("predictor", [True, 2, 3])
def test_predictor_without_compression(tmp_path, predictor):
    path = ours.to_geotiff(np.ones((4, 4), "float32"), str(tmp_path / "a.tif"), compression="none", predictor=predictor)
    with opened(path) as file:
        assert file.compression is None and "PREDICTOR" not in file.tags(ns="IMAGE_STRUCTURE")


def test_tile_size_of_strips_is_ignored(tmp_path):
    with pytest.warns(UserWarning, match="ignored when tiled=False"):
        ours.to_geotiff(np.ones((4, 4)), str(tmp_path / "a.tif"), tiled=False, tile_size=128)


def test_tags_are_written_again(tmp_path):
    attrs = {"extra_tags": [(305, 2, 4, "abc"), (65000, 3, 2, (1, 2)), (65001, 12, 1, 1.5)], "x_resolution": 72.0,
             "y_resolution": 72.5, "resolution_unit": "inch",
             "gdal_metadata": {"A": "b & c", ("STAT", 1): "x", ("DESCRIPTION", 0): "red"}}
    data = xr.DataArray(np.ones((2, 3, 2), "uint8"), dims=("y", "x", "band"), attrs=attrs)
    back = ours.open_geotiff(ours.to_geotiff(data, str(tmp_path / "a.tif")))
    assert {name: back.attrs[name] for name in attrs} == attrs
    with opened(tmp_path / "a.tif") as file:
        assert file.descriptions == ("red", None) and file.tags(2)["STAT"] == "x"
        assert file.tags()["TIFFTAG_SOFTWARE"] == "abc"


def test_metadata_as_text_is_written(tmp_path):
    text = '<GDALMetadata><Item name="A">1 &lt; 2</Item><Item name="B" sample="0">c</Item></GDALMetadata>'
    data = xr.DataArray(np.ones((2, 3)), dims=("y", "x"), attrs={"gdal_metadata_xml": text})
    back = ours.open_geotiff(ours.to_geotiff(data, str(tmp_path / "a.tif")))
    assert back.attrs["gdal_metadata"] == {"A": "1 < 2", ("B", 0): "c"}


def test_a_buffer_is_replaced():
    buffer = io.BytesIO()
    ours.to_geotiff(np.ones((400, 400)), buffer, compression="none")
    ours.to_geotiff(np.zeros((2, 2)), buffer)
    assert ours.open_geotiff(buffer).shape == (2, 2) and len(buffer.getvalue()) < 2000


def test_a_stale_sidecar_is_removed(tmp_path):
    sidecar = tmp_path / "a.tif.aux.xml"
    sidecar.write_text("<PAMDataset/>")
    with pytest.raises(ValueError):
        ours.to_geotiff(np.zeros(3), str(tmp_path / "a.tif"))
    assert sidecar.exists()
    ours.to_geotiff(np.zeros((2, 2)), str(tmp_path / "a.tif"))
    assert not sidecar.exists()


def test_half_floats_and_narrow_types(tmp_path):
    path = ours.to_geotiff(np.array([[1.5, 2]], "float16"), str(tmp_path / "a.tif"))
    assert ours.open_geotiff(path).dtype == "float32"
    path = ours.to_geotiff(np.array([[1, 300]], "uint16"), str(tmp_path / "a.tif"))
    np.testing.assert_array_equal(ours.open_geotiff(path, dtype="uint8"), np.array([[1, 44]], "uint8"))


# ---- accessors -------------------------------------------------------------------------------------------------------


def accessor(data):
    """Ours, also where xarray-spatial has registered its own."""
    from cogpu.compat.xrspatial.accessors import DataArrayAccessor, DatasetAccessor

    return (DataArrayAccessor if isinstance(data, xr.DataArray) else DatasetAccessor)(data)


def test_accessors_are_registered():
    assert hasattr(xr.DataArray, "xrs") and hasattr(xr.Dataset, "xrs")


def test_accessors_read_and_write(made, tmp_path):
    whole = ours.open_geotiff(made["float"])
    part = whole[4:9, 10:20]
    xr.testing.assert_identical(accessor(part).open_geotiff(made["float"]),
                                ours.open_geotiff(made["float"], window=(4, 10, 9, 20)))
    lazy = accessor(part.chunk(5)).open_geotiff(made["float"])
    assert lazy.chunks == ((5,), (5, 5))
    dataset = part.to_dataset(name="a")
    assert accessor(dataset).open_geotiff(made["float"]).shape == (5, 10)
    for data, name in ((part, "a.tif"), (dataset, "b.tif")):
        accessor(data).to_geotiff(str(tmp_path / name))
        np.testing.assert_array_equal(ours.open_geotiff(str(tmp_path / name)), part)
    with pytest.raises(ValueError, match="coordinate system"):
        accessor(part.assign_attrs(crs=4326)).open_geotiff(made["float"])
    with pytest.raises(ValueError, match="auto_reproject"):
        accessor(part).open_geotiff(made["float"], auto_reproject=True)
    with pytest.raises(TypeError, match="window"):
        accessor(part).open_geotiff(made["float"], window=(0, 0, 1, 1))
    with pytest.raises(ValueError, match="dimensions y and x"):
        accessor(xr.Dataset()).to_geotiff(str(tmp_path / "c.tif"))


def test_plot_geotiff(made):
    pytest.importorskip("matplotlib").use("Agg")
    data = ours.open_geotiff(made["palette"])
    with pytest.warns(DeprecationWarning, match="xrs.plot"):
        shown = ours.plot_geotiff(data)
    assert tuple(shown.cmap(0)[:3]) == (1, 0, 0)


# ---- the tests of xarray-spatial itself ------------------------------------------------------------------------------


def test_the_suite_of_xarray_spatial(tmp_path):
    """A part of tests/xrspatial_suite.py, where xarray-spatial and what its tests need are installed."""
    for name in ("xrspatial.geotiff", "xdist", "pytest_timeout", "hypothesis", "dask"):
        pytest.importorskip(name)
    script = pathlib.Path(__file__).resolve().parents[1] / "xrspatial_suite.py"
    scope = tmp_path / "scope.json"
    scope.write_text('["read/test_scale_zero_3104.py::test_unpack_rejects_unhonourable_scale[0-numpy]", '
                     '"read/test_rioxarray_compat_2961.py::test_name_alias_warns_and_matches"]')
    done = subprocess.run([sys.executable, str(script), "--python", sys.executable, "--scope", str(scope)],
                          capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["2 of 2 passed"], done.stdout + done.stderr


def test_errors_of_writing_name_the_file(tmp_path):
    data = xr.DataArray(np.ones((5, 6), "f4"), dims=("y", "x"), attrs={"gdal_metadata_xml": "<GDALMetadata><Item>"})
    with pytest.raises(ValueError, match=r"named\.tif: gdal_metadata_xml is not well-formed"):
        ours.to_geotiff(data, str(tmp_path / "named.tif"))
