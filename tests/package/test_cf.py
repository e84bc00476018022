"""Names of CF for coordinate systems, as pyproj gives them: each method of projection, each kind of system."""

import math
import warnings

import pytest
from cogpu import cf

pyproj = pytest.importorskip("pyproj")

# One or more of each method that CF has a name for, then others: feet, grads, spheres, heights, and no such name.
SYSTEMS = [
    "EPSG:5070", "EPSG:3083", "ESRI:102032", "EPSG:3035", "EPSG:2154", "EPSG:3034", "EPSG:2062", "EPSG:6933",
    "EPSG:3395", "EPSG:3994", "EPSG:5641", "EPSG:2056", "EPSG:29873", "EPSG:9840", "EPSG:5041", "EPSG:3031",
    "EPSG:3413", "ESRI:54008", "ESRI:102034", "EPSG:32633", "EPSG:27700", "EPSG:2263", "EPSG:3295", "ESRI:54049",
    "+proj=geos +h=1e7", "+proj=geos +h=35786023 +lon_0=-75 +sweep=x", "+proj=ortho +lat_0=40 +lon_0=-3",
    "+proj=laea +lat_0=10 +R=6371000", "EPSG:4326", "EPSG:4258", "EPSG:4268", "EPSG:4807", "EPSG:4979", "EPSG:4978",
    "EPSG:3857", "EPSG:28992", "EPSG:5773", "EPSG:9922", "EPSG:7415", "EPSG:5698", "EPSG:4326+5773",
    "+proj=ob_tran +o_proj=longlat +o_lat_p=37 +o_lon_p=0 +lon_0=190",
    "+proj=tmerc +lon_0=5 +ellps=bessel +towgs84=1,2,3,0.4,0.5,0.6,7",
    "+proj=longlat +ellps=intl +towgs84=-87,-98,-121"]


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    return ours == theirs


@pytest.mark.parametrize("words", SYSTEMS)
def test_as_pyproj(words):
    system = pyproj.CRS.from_user_input(words if "+proj" not in words else words + " +type=crs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what CF cannot say
        expected = system.to_cf()
    del expected["crs_wkt"]
    if expected.get("grid_mapping_name") == "rotated_latitude_longitude":  # which no GeoKeys describe
        expected = {}
    for pretty in False, True:
        ours = cf.attributes(system.to_wkt(pretty=pretty).replace("\n", "").replace("  ", ""))
        assert set(ours) == set(expected)
        for name in ours:
            assert same(ours[name], expected[name]), name


def test_texts_are_taken_whole():
    wkt = pyproj.CRS.from_epsg(32633).to_wkt().replace('"WGS 84 / UTM zone 33N"', '"a ""METHOD[""x"",1] b"', 1)
    assert cf.attributes(wkt)["projected_crs_name"] == 'a "METHOD["x",1] b'
    assert cf.attributes(wkt)["grid_mapping_name"] == "transverse_mercator"


@pytest.mark.parametrize("text", ["", "EPSG:32633", "PROJCRS[", 'PROJCRS["x"]', 'PARAMETER["x"]', '"' * 999,
                                  'GEOGCRS["x",DATUM["y"]]',
                                  'GEOGCRS["x",DATUM["y",ELLIPSOID["z",1e,2]],PRIMEM["p",0]]', "[" * 9999])
def test_what_is_no_system_has_no_names(text):
    assert cf.attributes(text) == {}
