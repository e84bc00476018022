"""What we hand to xarray beside what rioxarray hands to it, over the corpus: pixels, dimensions, coordinates,
attributes, coordinate system, transform and nodata, as stored, masked and unscaled."""

import csv
import functools
import json

import numpy as np
import pytest
import rasterio
from conftest import CORPUS

from cogpu import georef
from cogpu.errors import Error
from cogpu.read import open_geotiff

xr = pytest.importorskip("xarray")
rioxarray = pytest.importorskip("rioxarray")



def table():
    """Rows of the corpus's list, without rasters that take long."""
    if not (CORPUS / "good.tsv").exists():
        return []
    with (CORPUS / "good.tsv").open(newline="") as rows:
        return [row for row in csv.DictReader(rows, delimiter="\t")
                if int(row["width"]) * int(row["height"]) * int(row["bands"]) < 1e6]


ROWS = table()
FILES = [row["file"] for row in ROWS]

pytestmark = [pytest.mark.skipif(not FILES, reason=f"no corpus at {CORPUS} (set COGPU_CORPUS)"),
              pytest.mark.filterwarnings("ignore")]

# Where we mean to differ from rioxarray, for all files:
# - `crs_wkt` and `spatial_ref` are WKT 2, which holds what WKT 1 cannot; CF's names of datums follow from it.
# - a rotated grid has no coordinates xc and yc, two rasters of float64 that GeoTransform says in six numbers.
# - a file with RPCs keeps its own coordinate system; rioxarray says EPSG:4326, that of the RPCs.
# - NaN of complex pixels has NaN for both parts.
# And for single ones, by what is not compared:
LOCAL = "rioxarray has a LOCAL_CS, of which the keys say little more than the unit; we have none"
VERTICAL = "GDAL says the unit of the vertical system; the file says none of its band"
WIDE = "rasterio squeezes complex integers of 32 bits into floats of 32"
OTHER_WKT = "the systems differ in names and digits: see CRS_EXCEPTIONS of test_corpus.py"
DIFFERENT = {
    "gdal__autotest_alg_data_bug_6526_input.tif": ({"crs"}, LOCAL),
    "gdal__autotest_gcore_data_GTModelTypeGeoKey_only.tif": ({"crs"}, LOCAL),
    "gdal__autotest_gcore_data_imagine_localcs_citation.tif": ({"crs"}, LOCAL),
    "gdal__autotest_cpp_data_cint32.tif": ({"dtype"}, WIDE),
    "gdal__autotest_gcore_data_complex_int32.tif": ({"dtype"}, WIDE),
    "gdal__autotest_gcore_data_gtiff_cint32_big_endian.tif": ({"dtype"}, WIDE),
    "gdal__autotest_gcore_data_byte_user_defined_geokeys.tif": ({"units"}, VERTICAL),
    "gdal__autotest_gcore_data_epsg4326_3855_geotiff1_1.tif": ({"units"}, VERTICAL),
    "gdal__autotest_gcore_data_gtiff_compdcrs_no_citation.tif": ({"units"}, VERTICAL),
    "gdal__autotest_gcore_data_gtiff_compdcrs_without_gtcitation.tif": ({"units"}, VERTICAL),
    "gdal__autotest_gcore_data_tiff_vertcs_scale_offset.tif": ({"units", "crs"}, VERTICAL + "; GDAL drops the system"),
    "gdal__autotest_utilities_data_input_epsg_6259_plus_6360_us_survey_foot.tif": ({"units"}, VERTICAL),
    "gdal__autotest_gcore_data_gtiff_unknown_colorinterp.tif": ({"COLOR_INTERPRETATION"}, "it is a role, not a tag"),
    "gdal__autotest_gdrivers_data_netcdf_trmm.tif": ({"attrs"}, "rioxarray sorts attributes that came from netCDF"),
    "gdal__autotest_gcore_data_cog_strile_arrays_zeroified_when_possible.tif": ({"pixels"}, "see test_corpus.py"),
    "gdal__autotest_gcore_data_test_nodatavalues.tif": ({"masked"}, "GDAL's NODATA_VALUES are of all bands at once"),
    "gdal__autotest_gcore_data_WGS_1984_Web_Mercator.tif": ({"crs"}, OTHER_WKT),
    "gdal__autotest_gcore_data_gtiff_epsg_2193_override.tif": ({"crs"}, OTHER_WKT),
    "gdal__autotest_gcore_data_ycbcr_with_mask.tif": ({"crs"}, OTHER_WKT),
    "libgeotiff__libgeotiff_test_data_ProjectedCSTypeGeoKey_3410_lambert_cylindrical_equal_area.tif":
        ({"crs"}, OTHER_WKT),
}


ENCODING_OF_OURS = {"preferred_chunks", "source", "colormap", "photometric"}  # that rioxarray has not, or otherwise
OURS_ALONE = {"band_tags", "tag_domains"}  # attributes for what rioxarray does not keep


@functools.lru_cache(maxsize=1)
def address(name):
    """What rioxarray opens; of a file with several images the first."""
    path = str(CORPUS / "good" / name)
    with rasterio.open(path) as file:
        return f"GTIFF_DIR:1:{path}" if file.subdatasets else path


def pair(name, ours, theirs):
    """Our array and rioxarray's of a file; skips what one of them cannot read."""
    path = CORPUS / "good" / name
    try:
        expected = rioxarray.open_rasterio(address(name), **theirs).load()
    except rasterio.errors.RasterioError as error:
        pytest.skip(f"rioxarray: {error}")
    try:
        return open_geotiff(path, **ours), expected
    except Error as error:
        if error.status in ("unsupported", "corrupt"):
            pytest.skip(f"cogpu: {error}")  # which files those are is test_corpus.py's to say
        raise


def same_value(one, other):
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def assert_same_names(one, other, but=()):
    differing = {name: (one.get(name), other.get(name)) for name in {*one, *other} - set(but)
                 if name not in one or name not in other or not same_value(one[name], other[name])}
    assert not differing


def assert_same_pixels(name, array, expected):
    but, _ = DIFFERENT.get(name, ((), None))
    assert array.dims == expected.dims and array.shape == expected.shape
    if "dtype" not in but:
        assert array.dtype == expected.dtype
    if "pixels" not in but:
        np.testing.assert_array_equal(array.values, expected.values)


@pytest.mark.parametrize("name", FILES)
def test_as_stored(name):
    array, expected = pair(name, {}, {})
    but, _ = DIFFERENT.get(name, (set(), None))
    assert_same_pixels(name, array, expected)
    assert_same_place(array, expected, but)
    if "attrs" not in but:
        assert_same_names(array.attrs, expected.attrs,
                          but | OURS_ALONE | ({"_FillValue"} if "dtype" in but else set()))
    if "dtype" not in but:
        assert same_value(array.rio.nodata, expected.rio.nodata)
    assert_same_names(array.encoding, expected.encoding,
                      ENCODING_OF_OURS | ({"rasterio_dtype"} if "dtype" in but else set()))


def assert_same_place(array, expected, but):
    assert set(array.coords) == set(expected.coords) - {"xc", "yc"}
    for name in array.coords:
        np.testing.assert_array_equal(array[name].values, expected[name].values)
        assert array[name].dtype == expected[name].dtype
    assert array.rio.transform() == expected.rio.transform()
    assert array.rio.bounds() == expected.rio.bounds()
    ours, theirs = array.spatial_ref.attrs, expected.spatial_ref.attrs
    for name in ("gcps", "rpcs"):
        assert (name in ours) == (name in theirs)
    if "gcps" in ours:
        assert json.loads(ours["gcps"]) == json.loads(theirs["gcps"])
    if "rpcs" in ours:
        assert_same_rpcs(json.loads(ours["rpcs"]), json.loads(theirs["rpcs"]))
    elif "crs" not in but:
        assert same_system(array.rio.crs, expected.rio.crs)
        assert ("grid_mapping_name" in ours) == ("grid_mapping_name" in theirs)


def assert_same_rpcs(ours, theirs):
    assert set(ours) == set(theirs)
    for name in ours:
        if ours[name] is None or theirs[name] is None:
            assert ours[name] is theirs[name]
        else:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12)  # GDAL hands them on as texts


def same_system(ours, theirs):
    return ours == theirs or (None not in (ours, theirs) and ours.to_epsg() == theirs.to_epsg() is not None)


@pytest.mark.parametrize("name", [row["file"] for row in ROWS if row["mask"] != "1"] + FILES[::20])
def test_masked(name):
    array, expected = pair(name, {"masked": True}, {"masked": True})
    but, _ = DIFFERENT.get(name, (set(), None))
    if "masked" not in but:
        assert_same_pixels(name, array, expected)
    if "dtype" not in but:
        assert_same_names(array.encoding, expected.encoding, ENCODING_OF_OURS)
        assert same_value(array.rio.nodata, expected.rio.nodata)
        assert "_FillValue" not in array.attrs


@pytest.mark.parametrize("name", [row["file"] for row in ROWS if row["scale"] or row["offset"]])
def test_unscaled(name):
    array, expected = pair(name, {"unscale": True}, {"mask_and_scale": True})
    assert_same_pixels(name, array, expected)
    assert_same_names(array.encoding, expected.encoding, ENCODING_OF_OURS)
    assert not {"scale_factor", "scales", "add_offset", "offsets", "_FillValue"} & set(array.attrs)


@pytest.mark.parametrize("row", ROWS[::6], ids=FILES[::6])
def test_window(row):
    height, width = int(row["height"]), int(row["width"])
    top, left = height // 3, width // 3
    array, expected = pair(row["file"], {"window": (top, left, height - top, width - left)}, {})
    part = expected[:, top:height - top, left:width - left]
    assert_same_pixels(row["file"], array, part)
    for dim in {"x", "y"} & set(array.coords):
        np.testing.assert_array_equal(array[dim].values, part[dim].values)


@pytest.mark.parametrize("name", [name for name in FILES if "cogeo" in name or "autotest_gdrivers" in name][::3])
def test_rio_writes_ours_as_it_writes_its_own(name, tmp_path):
    array, expected = pair(name, {}, {})
    if array.dtype.kind == "c" or "gcps" in array.spatial_ref.attrs or "rpcs" in array.spatial_ref.attrs:
        pytest.skip("rioxarray's own round trip does not keep them")
    array.rio.to_raster(tmp_path / "ours.tif")
    expected.rio.to_raster(tmp_path / "theirs.tif")
    with rasterio.open(tmp_path / "ours.tif") as ours, rasterio.open(tmp_path / "theirs.tif") as theirs:
        np.testing.assert_array_equal(ours.read(), theirs.read())
        assert ours.transform == theirs.transform and same_system(ours.crs, theirs.crs)
        assert ours.nodatavals == theirs.nodatavals or np.isnan(ours.nodata)
        assert (ours.scales, ours.offsets) == (theirs.scales, theirs.offsets)


@pytest.mark.parametrize("name", FILES[::4])
def test_the_way_back(name):
    """What of_array says of our array is what the file says."""
    array, _ = pair(name, {}, {})
    stated = georef.of_array(array)
    with rasterio.open(address(name)) as file:
        transform = file.transform.to_gdal()
        assert stated["transform"] == (None if transform == (0, 1, 0, 0, 0, 1) else transform)
        assert stated["scales"] == file.scales and stated["offsets"] == file.offsets
        assert stated["descriptions"] == (file.descriptions if any(file.descriptions) else None)
        assert stated["pixel_is_point"] == (file.tags().get("AREA_OR_POINT") == "Point")
