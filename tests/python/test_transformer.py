"""Transforms between pixels of a target grid and of a source: positions against GDAL's."""

import math

import cogpu_ctypes as cogpu
import gdal_transformer as reference
import numpy as np
import pytest
import rasterio
import rasterio.warp
from gdal_transformer import Placed, Transformer
from rasterio.crs import CRS
from rasterio.transform import Affine

pytestmark = [
    pytest.mark.skipif(reference.probe is None, reason="libprobe_transformer.so has not been built"),
    pytest.mark.skipif(reference.gdal is None, reason="rasterio has no libgdal of its own"),
    pytest.mark.skipif(reference.probe is not None and reference.probe.cogpu_proj_version() is None,
                       reason="this build has no PROJ")]
SIDE = 1000


@pytest.fixture(autouse=True, scope="module")
def database():
    with reference.gdal_database():
        yield


def place(crs, longitude, latitude, metres, angle=0.0):
    """SIDE x SIDE pixels around a position, rotated by an angle in radians."""
    parsed = CRS.from_user_input(crs)
    (x,), (y,) = rasterio.warp.transform("EPSG:4326", parsed, [longitude], [latitude])
    x = longitude if parsed.is_geographic and longitude > 180 else x
    size = metres / (111320 if parsed.is_geographic else parsed.linear_units_factor[1])
    along, down = size * math.cos(angle), size * math.sin(angle)
    return Placed(crs, SIDE, SIDE, [x - SIDE / 2 * (along + down), along, down,
                                    y - SIDE / 2 * (down - along), down, -along])


def compare(source, target, tolerance=1e-7, **options):
    """Positions in and around both rasters, in both directions. The same positions fail."""
    random = np.random.default_rng(1)
    with reference.gdal_transformer(source, target, **options) as gdal, Transformer(source, target) as ours:
        for back, raster in ((False, source), (True, target)):
            positions = random.uniform(-0.2, 1.2, (500, 2)) * [raster.width, raster.height]
            expected = reference.gdal_positions(gdal, back, positions)
            found = ours.positions(back, positions)
            assert np.array_equal(np.isnan(found), np.isnan(expected))
            valid = ~np.isnan(expected)
            assert valid.any()
            assert np.abs(found - expected)[valid].max() <= tolerance


SINUSOIDAL = "+proj=sinu +R=6371007.181 +units=m"
GEOSTATIONARY = "+proj=geos +h=35785831 +lon_0=0 +sweep=y"
ROTATED_POLE = "+proj=ob_tran +o_proj=longlat +o_lon_p=-162 +o_lat_p=39.25 +lon_0=180"
PAIRS = [  # source, where, target
    ("EPSG:32633", 15, 48, "EPSG:3857"), ("EPSG:32633", 15, 48, "EPSG:4326"), ("EPSG:32633", 15, 48, "EPSG:32632"),
    ("EPSG:32601", -179, 60, "EPSG:32660"), ("EPSG:32601", -179.9, 60, "EPSG:4326"),
    ("EPSG:32733", 15, -30, "EPSG:32633"), ("EPSG:32733", 15, -30, "EPSG:6933"), ("EPSG:3857", 15, 48, "EPSG:4326"),
    ("EPSG:4326", 15, 48, "EPSG:3857"), ("EPSG:4326", 179.9, -17, "EPSG:3832"), ("EPSG:4326", 15, 48, "EPSG:3035"),
    ("EPSG:3035", 15, 48, "EPSG:32633"), ("EPSG:3035", 15, 48, "EPSG:25833"), ("EPSG:25832", 9, 48, "EPSG:3857"),
    ("EPSG:25832", 9, 48, "EPSG:3035"), ("EPSG:3413", -45, 75, "EPSG:4326"), ("EPSG:3413", -45, 75, "EPSG:32622"),
    ("EPSG:3031", 120, -75, "EPSG:4326"), ("EPSG:3031", 10, -89.99, "EPSG:3857"), ("EPSG:3995", 10, 85, "EPSG:3413"),
    ("EPSG:5070", -100, 40, "EPSG:4326"), ("EPSG:5070", -100, 40, "EPSG:32614"), ("EPSG:5070", -100, 40, "EPSG:3857"),
    ("EPSG:4269", -100, 40, "EPSG:5070"), ("EPSG:4269", -100, 40, "EPSG:4326"), ("EPSG:4269", -100, 40, "EPSG:3857"),
    ("EPSG:26914", -100, 40, "EPSG:32614"), ("EPSG:26914", -100, 40, "EPSG:3857"),
    ("EPSG:26714", -100, 40, "EPSG:32614"), ("EPSG:26713", -104.06, 40, "EPSG:4326"),
    ("EPSG:4267", -150, 64, "EPSG:4326"), ("EPSG:4267", -80, 25, "EPSG:4269"), ("EPSG:2154", 2, 46, "EPSG:3857"),
    ("EPSG:2154", 2, 46, "EPSG:4326"), ("EPSG:27700", -1.5, 52, "EPSG:3857"), ("EPSG:27700", -1.5, 52, "EPSG:4326"),
    ("EPSG:31467", 9, 50, "EPSG:25832"), ("EPSG:31467", 9, 50, "EPSG:3857"), ("EPSG:31370", 4.5, 51, "EPSG:3035"),
    ("EPSG:28992", 5, 52, "EPSG:4326"), ("EPSG:21781", 8, 47, "EPSG:2056"), ("EPSG:2056", 8, 47, "EPSG:4326"),
    ("EPSG:3006", 15, 60, "EPSG:4326"), ("EPSG:3067", 25, 62, "EPSG:3857"), ("EPSG:28355", 147, -37, "EPSG:7855"),
    ("EPSG:28355", 147, -37, "EPSG:3857"), ("EPSG:7855", 147, -37, "EPSG:4326"), ("EPSG:3577", 135, -25, "EPSG:4326"),
    ("EPSG:2193", 174, -41, "EPSG:4326"), ("EPSG:2193", 174, -41, "EPSG:27200"),
    ("EPSG:6677", 139.8, 35.7, "EPSG:3857"), ("EPSG:2451", 139.8, 35.7, "EPSG:6677"),
    ("EPSG:4301", 139.8, 35.7, "EPSG:4326"), ("EPSG:22186", -63, -35, "EPSG:4326"),
    ("EPSG:31982", -50, -15, "EPSG:3857"), ("EPSG:29193", -45, -20, "EPSG:31983"), ("EPSG:3978", -95, 60, "EPSG:4326"),
    ("EPSG:3347", -95, 60, "EPSG:3857"), ("EPSG:3979", -95, 60, "EPSG:32615"), ("EPSG:2263", -74, 40.7, "EPSG:3857"),
    ("EPSG:2263", -74, 40.7, "EPSG:4326"), ("EPSG:3338", -150, 64, "EPSG:4326"), ("EPSG:3571", 170, 75, "EPSG:3857"),
    ("ESRI:54009", 10, 45, "EPSG:4326"), ("EPSG:4326", 10, 45, "ESRI:54009"), (SINUSOIDAL, 10, 45, "EPSG:4326"),
    (SINUSOIDAL, 100, 45, "EPSG:32648"), ("EPSG:4326", 200, 10, "EPSG:3857"), ("EPSG:4326", 350, 50, "EPSG:32630"),
    (GEOSTATIONARY, 10, 20, "EPSG:4326"), ("EPSG:4326", 10, 20, GEOSTATIONARY), (ROTATED_POLE, 10, 50, "EPSG:4326"),
    ("EPSG:32633+5773", 15, 48, "EPSG:3857"), ("EPSG:5514", 15, 50, "EPSG:32633"), ("EPSG:2180", 19, 52, "EPSG:3857"),
    ("EPSG:23030", -3, 40, "EPSG:25830"), ("EPSG:3003", 10, 44, "EPSG:32632"), ("EPSG:20137", 38, 9, "EPSG:32637"),
    ("EPSG:24047", 100, 15, "EPSG:32647"), ("EPSG:4617", -75, 45, "EPSG:4326"), ("EPSG:4258", 10, 50, "EPSG:4326"),
    ("EPSG:4283", 147, -37, "EPSG:7844"), ("EPSG:2048", 19, -33, "EPSG:4326"), ("EPSG:4674", -50, -15, "EPSG:4326"),
    ("EPSG:3857", 179.99, 10, "EPSG:3832"), ("EPSG:3408", 0, 80, "EPSG:4326"), ("EPSG:6931", 30, 80, "EPSG:3413"),
    ("EPSG:6932", 30, -80, "EPSG:4326"), ("EPSG:32661", 30, 85, "EPSG:4326"), ("EPSG:5041", 30, 85, "EPSG:3413"),
    ("EPSG:3034", 10, 50, "EPSG:4326"), ("EPSG:9473", 135, -25, "EPSG:3857"), ("EPSG:4807", 0, 46, "EPSG:4326")]


@pytest.mark.parametrize("index", range(len(PAIRS)), ids=[f"{pair[0]} {pair[3]}" for pair in PAIRS])
def test_transformer_crs_pairs(index):
    """Of 2 km and of 200 km, upright and rotated. The large ones extend over areas of several operations."""
    source, longitude, latitude, target = PAIRS[index]
    for metres in (2, 200) if reference.has_proj_of_gdal() else (2, 30):
        compare(place(source, longitude, latitude, metres, 0.3 * (index % 3)),
                place(target, longitude, latitude, metres, 0.2 * (index % 2)),
                tolerance=1e-6 if reference.has_proj_of_gdal() else 0.002 / metres)


def test_transformer_area_of_interest():
    """Transformers of one pair share operations where PROJ would choose the same ones, and only there."""
    target = place("EPSG:4326", -100, 40, 1000)
    with Transformer(place("EPSG:4267", -100, 40, 50), target) as first:
        for longitude, latitude in [(-150, 64), (-80, 25), (-104.1, 41), (-104, 41), (-66, 18), (-100.5, 40.5), (-155, 20)]:
            source = place("EPSG:4267", longitude, latitude, 50)
            positions = np.random.default_rng(1).uniform(0, SIDE, (200, 2))
            with reference.gdal_transformer(source, target) as gdal, Transformer(source, target, first) as ours:
                expected = reference.gdal_positions(gdal, False, positions)
                assert np.abs(ours.positions(False, positions) - expected).max() < 1e-5


@pytest.mark.parametrize("transform", [
    [-180, 0.36, 0, 60, 0, -0.12], [0, 0.36, 0, 60, 0, -0.12], [170, 0.05, 0, 20, 0, -0.05],
    [100.123456789, 0.2, 0, 50, 0, -0.1], [359, 0.01, 0, 60, 0, -0.12], [0, 0.36000001, 0, 60, 0, -0.12],
    [-180.5, 0.361, 0, 60, 0, -0.12], [170, 0.04, -0.02, 20, -0.02, -0.04], [-180, 0.2, 0, -60, 0, 0.12]])
@pytest.mark.parametrize("crs, grid", [
    ("EPSG:4326", [-400, 0.8, 0, 90, 0, -0.18]), ("EPSG:4269", [-400, 0.8, 0, 90, 0, -0.18]),
    ("EPSG:3857", [-2.5e7, 5e4, 0, 1e7, 0, -2e4]), ("EPSG:3832", [-2.5e7, 5e4, 0, 1e7, 0, -2e4])])
def test_transformer_longitudes(transform, crs, grid):
    if crs == "EPSG:4269" and not reference.has_proj_of_gdal():
        pytest.skip("versions of PROJ choose different operations beyond North America")
    compare(Placed("EPSG:4326", SIDE, SIDE, transform), Placed(crs, SIDE, SIDE, grid), 1e-6)


@pytest.mark.parametrize("west, width", [(170, 20), (-190, 20), (-180, 361), (0, 360), (-300, 600), (-180, 370),
                                         (180, 20), (10, 350), (-10, 361)])
@pytest.mark.parametrize("source_west, source_width", [(-180, 360), (-180, 361), (-180.5, 361), (-180, 200), (0, 361)])
def test_transformer_grid_across_antimeridian(west, width, source_west, source_width):
    """gdalwarp -te: a source of more than a turn is wrapped for some grids."""
    compare(Placed("EPSG:4326", SIDE, SIDE, [source_west, source_width / SIDE, 0, 90, 0, -0.18]),
            Placed("EPSG:4326", SIDE, SIDE, [west, width / SIDE, 0, 90, 0, -0.18]),
            TARGET_EXTENT=f"{west},-90,{west + width},90")


def written_otherwise(code):
    """The same CRS as WKT1, and as WKT2 without a code."""
    crs = CRS.from_epsg(code)
    return [crs.to_wkt(version="WKT1_GDAL"), crs.to_wkt(version="WKT2_2019").replace(f',ID["EPSG",{code}]', "")]


@pytest.mark.parametrize("code", [32633, 3857, 2154, 5070, 3413])
def test_transformer_same_crs_written_otherwise(code):
    """No reprojection: the transform is affine, and that of the two geotransforms."""
    source = Placed(f"EPSG:{code}", 100, 80, [5e5, 10, 0, 5e6, 0, -10])
    target = Placed(f"EPSG:{code}", 60, 50, [500100, 20, 0, 4999900, 0, -20])
    for text in written_otherwise(code):
        with Transformer(source, target, source_crs=text) as ours:
            assert ours.affine() == pytest.approx([10, 2, 0, 10, 0, 2], abs=1e-9)


def test_transformer_other_crs_is_not_affine():
    for other in ("EPSG:32632", "EPSG:25833", "EPSG:4326"):
        with Transformer(place("EPSG:32633", 15, 48, 10), place(other, 15, 48, 10)) as ours:
            assert ours.affine() is None


@pytest.mark.parametrize("west, is_affine", [(-170, True), (190, True), (-530, True), (170, False), (-190, False)])
def test_transformer_geographic_affine(west, is_affine):
    """The same geographic CRS is affine if all longitudes of the grid are moved by the same turn."""
    source = Placed("EPSG:4326", 1800, SIDE, [-180, 0.2, 0, 90, 0, -0.1])
    with Transformer(source, Placed("EPSG:4326", 100, 100, [west, 0.2, 0, 40, 0, -0.1])) as ours:
        affine = ours.affine()
        assert (affine is not None) == is_affine
        if is_affine:
            (left, top), (right, bottom) = ours.positions(True, np.array([[0., 0.], [100., 100.]]))
            assert affine == pytest.approx([left, 1, 0, top, 0, 1], abs=1e-9)
            assert [right - left, bottom - top] == pytest.approx([100, 100], abs=1e-9)


# ---- GCPs ----------------------------------------------------------------------------------------

def control_points(count, side):
    random = np.random.default_rng(count)
    pixels = random.uniform(0, side, (count, 2))
    if count >= 4:
        pixels[:4] = [(0, 0), (side, 0), (0, side), (side, side)]
    if count == 5:
        pixels[4] = (0.3 * side, 0.4 * side)
    u, v = pixels.T
    x = 5e5 + 10 * u + 3 * v + 2 / side * u * v + random.normal(0, 3, count)
    y = 5e6 - 10 * v + 2 * u + u * u / side + random.normal(0, 3, count)
    return np.column_stack([pixels, x, y]).tolist()


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 9, 10, 30, 1000])
@pytest.mark.parametrize("side", [1000, 30000])
def test_transformer_gcps(count, side):
    source = Placed("EPSG:32633", side, side, gcps=control_points(count, side))
    for crs, transform in (("EPSG:32633", [5e5, 10, 0, 5e6, 0, -10]), ("EPSG:3857", [1.67e6, 14, 0, 5.65e6, 0, -14]),
                           ("EPSG:4326", [15, 1e-4, 0, 45, 0, -1e-4])):
        compare(source, Placed(crs, side, side, transform), 1e-6)


def across(west, crs="EPSG:4326"):
    points = [(u, v, (west + u / 100 + 180) % 360 - 180, 10 - v / 100) for u in (0, 500, 1000) for v in (0, 500, 1000)]
    return Placed(crs, SIDE, SIDE, gcps=points)


@pytest.mark.parametrize("west", [175, 172, 170, 169, -178, 20])
def test_transformer_gcps_across_antimeridian(west):
    """GDAL's forward positions. Backwards GDAL finds pixels of one side only; here both sides have theirs."""
    source, positions = across(west), np.random.default_rng(1).uniform(0, SIDE, (200, 2))
    target = Placed("EPSG:3832", SIDE, SIDE, [2.5e6, 1000, 0, 1e6, 0, -1000])
    with reference.gdal_transformer(source, target) as gdal, Transformer(source, target) as ours:
        found = ours.positions(False, positions)
        assert np.abs(found - reference.gdal_positions(gdal, False, positions)).max() < 1e-6
        if west >= 170:
            assert np.abs(ours.positions(True, found) - positions).max() < 1e-6


def test_transformer_gcps_on_a_line():
    line = [(u, u, 5e5 + 10 * u, 5e6 - 10 * u) for u in (0, 200, 500, 800, 900, 1000, 1100)]
    for count in (1, 3, 4, 5, 6, 7):
        with pytest.raises(cogpu.CogpuError, match="GCP") as caught:
            Transformer(Placed("EPSG:32633", SIDE, SIDE, gcps=line[:count]), place("EPSG:32633", 15, 45, 10))
        assert caught.value.name == "invalid_argument"


# ---- RPCs ----------------------------------------------------------------------------------------

RPC_SIDE = 5000
RPC_GRIDS = {"EPSG:4326": [14.93, 2.8e-5, 0, 48.05, 0, -2e-5], "EPSG:32633": [494800, 2.1, 0, 5322200, 0, -2.2],
             "EPSG:3857": [1.662e6, 3.1, 0, 6.115e6, 0, -3.3]}


def make_rpc(longitude=15.0):
    """The 92 numbers of a sensor that looks down obliquely."""
    random, middle = np.random.default_rng(1), RPC_SIDE / 2
    line, sample, line_divisor, sample_divisor = np.zeros((4, 20))
    line[:4], sample[:4] = [0.002, 0.11, -1.12, 0.02], [-0.003, 1.09, 0.08, -0.03]
    for terms in (line, sample):
        terms[4:11] += random.normal(0, 5e-4, 7)
        terms[11:] += random.normal(0, 1e-5, 9)
    for terms in (line_divisor, sample_divisor):
        terms[0] = 1
        terms[1:4] += random.normal(0, 1e-3, 3)
        terms[4:] += random.normal(0, 1e-5, 16)
    return [0.5, 0.2, middle - 0.5, middle - 0.5, 48, longitude, 300, middle, middle, 0.05, 0.07, 500,
            *line, *line_divisor, *sample, *sample_divisor]


@pytest.mark.parametrize("height", [0, 300, 800])
@pytest.mark.parametrize("crs", RPC_GRIDS)
def test_transformer_rpc_height(height, crs):
    compare(Placed(None, RPC_SIDE, RPC_SIDE, rpc=make_rpc(), rpc_height=height),
            Placed(crs, RPC_SIDE, RPC_SIDE, RPC_GRIDS[crs]), 1e-6, RPC_HEIGHT=height)


def test_transformer_rpc_across_antimeridian():
    source = Placed(None, RPC_SIDE, RPC_SIDE, rpc=make_rpc(180.0), rpc_height=300)
    compare(source, Placed("EPSG:4326", RPC_SIDE, RPC_SIDE, [179.93, 2.8e-5, 0, 48.05, 0, -2e-5]), 1e-6, RPC_HEIGHT=300)
    compare(source, Placed("EPSG:4326", RPC_SIDE, RPC_SIDE, [-180.07, 2.8e-5, 0, 48.05, 0, -2e-5]), 1e-6, RPC_HEIGHT=300)


DEMS = {"geographic": ("EPSG:4326", [14.9, 0.00135, 0, 48.08, 0, -0.00135]),
        "small": ("EPSG:4326", [14.98, 0.0003, 0, 48.02, 0, -0.0003]),
        "utm": ("EPSG:32633", [492000, 100, 0, 5326000, 0, -100]),
        "rotated": ("EPSG:32633", [488000, 90, 20, 5326000, 20, -90]),
        "south up": ("EPSG:4269", [14.9, 0.00135, 0, 47.92, 0, 0.00135])}


def write_dem(path, heights, crs, transform, nodata=None):
    with rasterio.open(path, "w", driver="GTiff", count=1, width=heights.shape[1], height=heights.shape[0],
                       dtype="float32", crs=crs, transform=Affine.from_gdal(*transform), nodata=nodata) as file:
        file.write(heights, 1)


def make_heights():
    rows, columns = np.mgrid[0:120, 0:150]
    return (300 + 200 * np.sin(columns / 9) + 150 * np.cos(rows / 7)).astype("f4")


@pytest.mark.parametrize("dem", DEMS)
@pytest.mark.parametrize("crs", RPC_GRIDS)
def test_transformer_rpc_dem(dem, crs, tmp_path):
    heights = make_heights()
    write_dem(tmp_path / "dem.tif", heights, *DEMS[dem])
    compare(Placed(None, RPC_SIDE, RPC_SIDE, rpc=make_rpc(), rpc_dem=(heights, *DEMS[dem])),
            Placed(crs, RPC_SIDE, RPC_SIDE, RPC_GRIDS[crs]), 1e-6, RPC_DEM=tmp_path / "dem.tif", RPC_DEM_MISSING_VALUE=0)


def test_transformer_rpc_dem_with_holes(tmp_path):
    """Along a line of constant latitude, as gdalwarp transforms. Elsewhere GDAL widens holes by a pixel."""
    heights, where = make_heights(), DEMS["geographic"]
    heights[np.random.default_rng(1).uniform(0, 1, heights.shape) < 0.2] = -9999
    write_dem(tmp_path / "dem.tif", heights, *where, nodata=-9999)
    known = np.where(heights == -9999, np.nan, heights).astype("f4")
    source = Placed(None, RPC_SIDE, RPC_SIDE, rpc=make_rpc(), rpc_dem=(known, *where))
    target = Placed("EPSG:4326", RPC_SIDE, RPC_SIDE, RPC_GRIDS["EPSG:4326"])
    options = dict(RPC_DEM=tmp_path / "dem.tif", RPC_DEM_MISSING_VALUE=0)
    with reference.gdal_transformer(source, target, **options) as gdal, Transformer(source, target) as ours:
        for row in np.arange(7.5, RPC_SIDE, 100):
            line = np.column_stack([np.linspace(0, RPC_SIDE, 300), np.full(300, row)])
            expected = reference.gdal_positions(gdal, True, line)
            assert np.abs(ours.positions(True, line) - expected).max() < 1e-6
