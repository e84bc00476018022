"""compat.xrspatial: shapes, attributes and errors of xarray-spatial, and beside it where it is installed."""

import inspect
import io

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
xr = pytest.importorskip("xarray")
from rasterio.transform import Affine  # noqa: E402

from cogpu.compat import xrspatial as ours  # noqa: E402
from cogpu.errors import InvalidArgumentError, Error, LimitExceededError  # noqa: E402
from xrspatial_made import files, make, opened  # noqa: E402

LEFT_OUT = {"extra_tags"}  # theirs has the palette and the meaning of extra bands too, which have their own attributes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return files(tmp_path_factory.mktemp("made"))


NO_DEFAULT = {"max_cloud_bytes", "on_gpu_failure", "missing_sources", "name", "mask_nodata", "mask_and_scale"}
KINDS = ("float", "bands", "planar", "nodata", "no_crs", "nowhere", "crs_only", "degrees", "point", "palette",
         "upwards", "scales")
NO_SYSTEM = ("no_crs", "nowhere")  # where xarray-spatial writes keys without a system, which GDAL takes for a local one
WAYS = {"plain": {}, "masked": {"masked": True}, "unpacked": {"unpack": True}, "window": {"window": (2, 3, 12, 18)},
        "band": {"band": 0}, "chunks": {"chunks": 16}, "bare": {"parse_coordinates": False}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_as_xarray_spatial(made, kind):
    theirs = pytest.importorskip("xrspatial.geotiff")
    for way in set(WAYS) - ({"unpacked"} if kind == "scales" else set()):
        same_arrays(*(module.open_geotiff(made[kind], **WAYS[way]) for module in (ours, theirs)))


def test_scales_that_differ(made):
    with pytest.raises(ours.MixedBandMetadataError):
        ours.open_geotiff(made["scales"], unpack=True)
    np.testing.assert_array_equal(ours.open_geotiff(made["scales"], unpack=True, band=1),
                                  ours.open_geotiff(made["scales"], band=1) * 0.2 + 1)


def same_arrays(got, expected):
    for fact in ("dims", "shape", "dtype", "name", "chunks"):
        assert getattr(got, fact) == getattr(expected, fact), fact
    assert set(got.coords) == set(expected.coords)
    for name in expected.coords:
        assert got[name].dtype == expected[name].dtype
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-14)
    np.testing.assert_array_equal(got.values, expected.values)
    same_attrs(got.attrs, expected.attrs)


@pytest.mark.parametrize("kind", KINDS)
def test_writes_the_same_as_xarray_spatial(made, tmp_path, kind):
    theirs = pytest.importorskip("xrspatial.geotiff")
    for way in ("plain", "masked", "window"):
        data = theirs.open_geotiff(made[kind], **WAYS[way])
        for module, name in ((ours, "ours.tif"), (theirs, "theirs.tif")):
            module.to_geotiff(data, str(tmp_path / name), compression="deflate")
        with opened(tmp_path / "ours.tif") as got, opened(tmp_path / "theirs.tif") as expected:
            np.testing.assert_array_equal(got.read(), expected.read())
            for fact in ("dtypes", "nodata", "transform", "scales", "offsets", "colorinterp", "block_shapes"):
                np.testing.assert_equal(getattr(got, fact), getattr(expected, fact), err_msg=f"{way} {fact}")
            assert got.crs == expected.crs or kind in NO_SYSTEM
            assert got.tags() == expected.tags() or kind in NO_SYSTEM


def same_attrs(got, expected):
    assert set(got) - LEFT_OUT - {"crs_wkt"} == set(expected) - LEFT_OUT - {"crs_wkt"}
    for name in set(got) - LEFT_OUT - {"crs_wkt", "gdal_metadata"}:
        np.testing.assert_equal(got[name], expected[name], err_msg=name)
    if "crs_wkt" in expected:
        assert rasterio.crs.CRS.from_wkt(got["crs_wkt"]) == rasterio.crs.CRS.from_wkt(expected["crs_wkt"])
    assert {key: number(value) for key, value in got.get("gdal_metadata", {}).items()} == {
        key: number(value) for key, value in expected.get("gdal_metadata", {}).items()}


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_all_their_names_are_here():
    theirs = pytest.importorskip("xrspatial.geotiff")
    assert set(ours.SUPPORTED_FEATURES) <= set(theirs.SUPPORTED_FEATURES)
    for name in set(theirs.__all__) - {"SUPPORTED_FEATURES"}:
        mine, their = getattr(ours, name), getattr(theirs, name)
        if isinstance(their, type):
            assert [base.__name__ for base in their.__mro__ if "GeoTIFF" in base.__name__ or base is ValueError] == [
                base.__name__ for base in mine.__mro__ if "GeoTIFF" in base.__name__ or base is ValueError]
        elif not callable(their):
            assert set(mine) == set(their)
    for name in ("open_geotiff", "to_geotiff"):
        mine, their = (inspect.signature(getattr(module, name)).parameters for module in (ours, theirs))
        assert list(mine) == list(their)
        for parameter in set(mine) - NO_DEFAULT:
            assert mine[parameter].default == their[parameter].default, parameter


def test_attributes(made):
    attrs = ours.open_geotiff(made["point"]).attrs
    assert rasterio.crs.CRS.from_wkt(attrs.pop("crs_wkt")).to_epsg() == 32633
    assert attrs.pop("gdal_metadata") == {"A": "b", ("OFFSET", 0): "5", ("SCALE", 0): "0.10000000000000001"}
    assert attrs.pop("gdal_metadata_xml").startswith("<GDALMetadata>")
    assert attrs == {"_xrspatial_geotiff_contract": 5, "georef_status": "full", "crs": 32633, "raster_type": "point",
                     "transform": (10, 0, 500005, 0, -10, 4999995), "nodata": 4, "masked_nodata": False,
                     "nodata_pixels_present": True}
    data = ours.open_geotiff(made["bands"], masked=True)
    assert (data.dims, data.shape, data.dtype) == (("y", "x", "band"), (20, 30, 3), "uint8")
    assert data.band.values.tolist() == [0, 1, 2] and "nodata" not in data.attrs


@pytest.mark.parametrize("parse_coordinates", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_written_again(made, tmp_path, kind, parse_coordinates):
    data = ours.open_geotiff(made[kind], parse_coordinates=parse_coordinates)
    before = dict(data.attrs)
    assert ours.to_geotiff(data, str(tmp_path / "a.tif")) == str(tmp_path / "a.tif")
    assert dict(data.attrs) == before
    with opened(made[kind]) as old, opened(tmp_path / "a.tif") as new:
        np.testing.assert_array_equal(new.read(), old.read())
        np.testing.assert_equal(new.nodata, old.nodata)
        assert (new.crs, new.transform, new.scales, new.offsets) == (old.crs, old.transform, old.scales, old.offsets)
        assert new.tags() == old.tags() or kind in ("nowhere", "no_crs")
        if kind == "palette":
            assert new.colormap(1) == old.colormap(1)


def test_defaults_of_the_writer(tmp_path):
    ours.to_geotiff(np.zeros((30, 40, 3), "uint8"), str(tmp_path / "a.tif"))
    with opened(tmp_path / "a.tif") as file:
        assert (file.count, file.shape, file.block_shapes[0]) == (3, (30, 40), (256, 256))
        assert file.compression.value == "ZSTD" and "PREDICTOR" not in file.tags(ns="IMAGE_STRUCTURE")
        assert [meaning.name for meaning in file.colorinterp] == ["gray", "undefined", "undefined"]
    ours.to_geotiff(np.zeros((600, 600), "uint8"), str(tmp_path / "a.tif"), cog=True)
    with opened(tmp_path / "a.tif") as file:
        assert file.overviews(1) == [2, 4]
    memory = io.BytesIO()
    assert ours.to_geotiff(np.zeros((30, 40)), memory, cog=True) is memory and memory.getvalue()[:2] == b"II"


def test_unpack_and_pack_again(made, tmp_path):
    data = ours.open_geotiff(made["point"], unpack=True)
    assert data.dtype == "float64" and data.attrs["mask_and_scale_dtype"] == "int16"
    ours.to_geotiff(data, str(tmp_path / "a.tif"), pack=True)
    with opened(made["point"]) as old, opened(tmp_path / "a.tif") as new:
        np.testing.assert_array_equal(new.read(), old.read())
        assert (new.scales, new.offsets, new.nodata) == (old.scales, old.offsets, old.nodata)
    ours.to_geotiff(data, str(tmp_path / "b.tif"))
    with opened(tmp_path / "b.tif") as file:
        assert file.scales == (1.0,)


def test_rotated_grids(tmp_path):
    path = make(tmp_path / "a.tif", np.ones((5, 6), "uint8"), crs="EPSG:32633",
                transform=Affine(10, 1, 500, 2, -10, 900))
    with pytest.raises(ours.RotatedTransformError, match="allow_rotated"):
        ours.open_geotiff(path)
    data = ours.open_geotiff(path, allow_rotated=True)
    assert data.attrs["rotated_affine"] == (10, 1, 500, 2, -10, 900)
    assert data.attrs["georef_status"] == "rotated_dropped"
    assert "crs" not in data.attrs and data.x.dtype == "int64"
    ours.to_geotiff(data, str(tmp_path / "b.tif"))
    with opened(tmp_path / "b.tif") as file:
        assert file.transform == Affine(10, 1, 500, 2, -10, 900)
    ours.to_geotiff(data, str(tmp_path / "b.tif"), drop_rotation=True)
    with opened(tmp_path / "b.tif") as file:
        assert file.transform == Affine.identity()


def test_limits_and_refusals(made, tmp_path):
    path = made["float"]
    with pytest.raises(ours.PixelSafetyLimitError) as caught:
        ours.open_geotiff(path, max_pixels=5)
    assert isinstance(caught.value, LimitExceededError) and isinstance(caught.value, ValueError)
    for options in ({"missing_sources": "warn"}, {"band_nodata": "first"},
                    {"on_gpu_failure": "strict"},
                    {"window": (0, 0, 100, 100)}, {"band": 7}, {"dtype": "int16"}, {"overview_level": 3}):
        with pytest.raises(InvalidArgumentError, match=next(iter(options))):
            ours.open_geotiff(path, **options)
    with pytest.raises(ours.VRTStableSourcesOnlyError):
        ours.open_geotiff("a.vrt", stable_only=True)
    with pytest.raises(ours.RemoteStableSourcesOnlyError):
        ours.open_geotiff("https://example.org/a.tif", stable_only=True)
    with pytest.warns(ours.GeoTIFFFallbackWarning, match="lock"):
        ours.open_geotiff(path, lock=object())
    with pytest.raises(InvalidArgumentError, match="color_ramp"):
        ours.to_geotiff(np.zeros((2, 2)), str(tmp_path / "a.tif"), color_ramp="viridis")


def test_integer_nodata_that_is_none(tmp_path):
    path = str(tmp_path / "a.tif")
    pytest.importorskip("tifffile").imwrite(path, np.ones((5, 6), "uint8"), extratags=[(42113, 2, 0, "nan", True)])
    with pytest.raises(ours.InvalidIntegerNodataError, match="allow_invalid_nodata"):
        ours.open_geotiff(path)
    assert ours.open_geotiff(path, allow_invalid_nodata=True, masked=True).dtype == "uint8"


@pytest.mark.parametrize("attrs, error", [
    ({"nodata": -9999, "nodatavals": (3,)}, "ConflictingNodataError"),
    ({"nodatavals": (3, 4)}, "ConflictingNodataError"),
    ({"crs": 32633, "crs_wkt": rasterio.crs.CRS.from_epsg(4326).to_wkt()}, "ConflictingCRSError")])
def test_attributes_that_contradict_each_other(tmp_path, attrs, error):
    if "crs" in attrs:
        pytest.importorskip("pyproj")
    data = xr.DataArray(np.zeros((3, 3)), dims=("y", "x"), attrs=attrs)
    with pytest.raises(getattr(ours, error)) as caught:
        ours.to_geotiff(data, str(tmp_path / "a.tif"))
    assert isinstance(caught.value, (Error, ours.GeoTIFFAmbiguousMetadataError))
    ours.to_geotiff(data, str(tmp_path / "a.tif"), nodata=3, crs=4326)


def test_uneven_coordinates(tmp_path):
    data = xr.DataArray(np.zeros((3, 3)), dims=("y", "x"), coords={"x": [1.0, 2, 9], "y": [3.0, 2, 1]})
    with pytest.raises(ours.NonUniformCoordsError):
        ours.to_geotiff(data, str(tmp_path / "a.tif"))


@pytest.mark.parametrize("attrs, stored", [({"nodata": -9999}, -9999), ({"_FillValue": -9999}, -9999),
                                           ({"nodata": -9999, "masked_nodata": False}, np.nan)])
def test_nan(tmp_path, attrs, stored):
    data = xr.DataArray(np.full((3, 3), np.nan), dims=("y", "x"), attrs=attrs)
    ours.to_geotiff(data, str(tmp_path / "a.tif"))
    with opened(tmp_path / "a.tif") as file:
        np.testing.assert_equal(file.read(1)[0, 0], stored)
        assert file.nodata == -9999


@pytest.mark.parametrize("crs, error", [("nonsense", "UnparseableCRSError"), (99999, "InvalidCRSCodeError"),
                                        (5773, "NonRepresentableEPSGCRSError")])
def test_systems_that_cannot_be_written(tmp_path, crs, error):
    with pytest.raises(getattr(ours, error), match="crs"):
        ours.to_geotiff(np.zeros((3, 3)), str(tmp_path / "a.tif"), crs=crs)
    with pytest.raises(getattr(ours, error), match="crs"):
        ours.to_geotiff(xr.DataArray(np.zeros((3, 3)), dims=("y", "x"), attrs={"crs": crs}), str(tmp_path / "a.tif"))
