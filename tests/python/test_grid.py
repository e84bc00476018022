"""Grids of cogpu against gdalwarp's (GDALWarp, writing a VRT) and rasterio's calculate_default_transform; scale
factors against the ones that GDAL's warper uses.

With the same PROJ transforms differ in the last bits alone. The tolerance allows for another version of PROJ. A few
results differ on purpose, and are not compared: where GDAL's grid has two billion rows or half of the source.
"""

import contextlib
import ctypes
import functools
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio
import rasterio.warp
from gdal_transformer import Placed, Placement, gdal, gdal_dataset
from rasterio.transform import array_bounds

PROBE_PATH = cogpu.LIBRARY.parent / "tests" / "libprobe_grid.so"
pytestmark = [pytest.mark.skipif(gdal is None, reason="rasterio does not bundle GDAL"),
              pytest.mark.skipif(not PROBE_PATH.exists(), reason="the probe library is not built")]

FLOAT64 = 7  # GDT_Float64


# ---- GDAL ----------------------------------------------------------------------------------------

def declare():
    for name, result, arguments in [
            ("GDALWarpAppOptionsNew", c_void_p, [POINTER(c_char_p), c_void_p]),
            ("GDALWarpAppOptionsFree", None, [c_void_p]),
            ("GDALWarp", c_void_p, [c_char_p, c_void_p, c_int, POINTER(c_void_p), c_void_p, POINTER(c_int)]),
            ("GDALAddBand", c_int, [c_void_p, c_int, c_void_p]),
            ("GDALGetRasterBand", c_void_p, [c_void_p, c_int]),
            ("GDALGetGeoTransform", c_int, [c_void_p, POINTER(c_double)]),
            ("GDALGetRasterXSize", c_int, [c_void_p]), ("GDALGetRasterYSize", c_int, [c_void_p]),
            ("GDALRasterIO", c_int, [c_void_p] + [c_int] * 5 + [c_void_p] + [c_int] * 5)]:
        function = getattr(gdal, name)
        function.restype, function.argtypes = result, arguments


if gdal is not None:
    declare()


def transfer(dataset, writes, pixels):
    height, width = pixels.shape
    assert gdal.GDALRasterIO(gdal.GDALGetRasterBand(dataset, 1), writes, 0, 0, width, height, pixels.ctypes.data, width,
                             height, FLOAT64, 0, 0) == 0
    return pixels


@contextlib.contextmanager
def gdal_sources(sources, pixels):
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(gdal_dataset(source)) for source in sources]
        for dataset in made:
            assert gdal.GDALAddBand(dataset, FLOAT64, None) == 0
            if pixels is not None:
                transfer(dataset, 1, pixels)
        yield (c_void_p * len(made))(*made)


def gdalwarp(sources, *options, pixels=None):
    """Transform, width, height, and the pixels if there are some; None if gdalwarp fails."""
    words = ["-q", "-of", "VRT" if pixels is None else "MEM", *map(str, options)]
    usage = c_int()
    with rasterio.Env(), gdal_sources(sources, pixels) as datasets:
        parsed = gdal.GDALWarpAppOptionsNew((c_char_p * (len(words) + 1))(*(word.encode() for word in words), None), None)
        assert parsed, gdal.CPLGetLastErrorMsg()
        warped = gdal.GDALWarp(b"", None, len(sources), datasets, parsed, byref(usage))
        gdal.GDALWarpAppOptionsFree(parsed)
        if not warped:
            return None
        transform = (c_double * 6)()
        gdal.GDALGetGeoTransform(warped, transform)
        size = gdal.GDALGetRasterXSize(warped), gdal.GDALGetRasterYSize(warped)
        found = None if pixels is None else transfer(warped, 0, np.zeros(size[::-1]))
        gdal.GDALClose(warped)
    return list(transform), *size, found


# ---- cogpu ---------------------------------------------------------------------------------------

@functools.cache
def probe():
    loaded = ctypes.CDLL(str(PROBE_PATH))
    loaded.probe_complete.argtypes = [POINTER(cogpu.Grid), POINTER(Placement), c_size_t, c_int, POINTER(Placement),
                                      POINTER(cogpu.Error)]
    loaded.probe_measure.argtypes = [POINTER(Placement), POINTER(Placement), c_double, POINTER(c_double),
                                     POINTER(c_int64), POINTER(cogpu.Error)]
    return loaded


def complete(sources, grid_crs, /, rounds_up=False, **request):
    """Transform, width, height; None if cogpu fails."""
    placements = (Placement * len(sources))(*(source.placement() for source in sources))
    target, error, asked = Placement(crs=grid_crs.encode()), cogpu.Error(), None
    if request:
        asked = cogpu.Grid()
        for name, value in request.items():
            if isinstance(value, tuple):
                getattr(asked, name)[:] = value
            else:
                setattr(asked, name, value.encode() if isinstance(value, str) else value)
        asked = byref(asked)
    if probe().probe_complete(asked, placements, len(sources), rounds_up, byref(target), byref(error)) != cogpu.OK:
        return None
    return list(target.transform), target.width, target.height


def measure(source, target, radius):
    """Scale of x and y, ratio, and the extent."""
    found, extent, error = (c_double * 3)(), (c_int64 * 4)(), cogpu.Error()
    assert probe().probe_measure(byref(source.placement()), byref(target.placement()), radius, found, extent,
                                 byref(error)) == cogpu.OK, error.message
    return list(found), list(extent)


# ---- grids ---------------------------------------------------------------------------------------

def north_up(crs, width, height, left, pixel_x, top, pixel_y):
    return Placed(crs, width, height, [left, pixel_x, 0, top, 0, pixel_y])


SOURCES = {
    "utm": north_up("EPSG:32632", 5000, 4000, 400000, 10, 5800000, -10),
    "utm_oblong": north_up("EPSG:32632", 1000, 800, 400000, 10, 5000000, -20),
    "utm_south_up": north_up("EPSG:32632", 1000, 800, 400000, 10, 5000000, 20),
    "utm_rotated": Placed("EPSG:32632", 1000, 800, [400000, 8, 3, 5000000, 2, -6]),
    "utm_south": north_up("EPSG:32733", 3000, 3000, 300000, 30, 8000000, -30),
    "utm_antimeridian": north_up("EPSG:32660", 3000, 3000, 600000, 100, 6000000, -100),
    "utm_1": north_up("EPSG:32601", 3000, 3000, 300000, 100, 6000000, -100),
    "globe": north_up("EPSG:4326", 3600, 1800, -180, .1, 90, -.1),
    "degrees": north_up("EPSG:4326", 1200, 900, 5, .01, 50, -.01),
    "arctic": north_up("EPSG:4326", 3600, 300, -180, .1, 90, -.1),
    "degrees_south_up": north_up("EPSG:4326", 1200, 900, 5, .01, 41, .01),
    "degrees_antimeridian": north_up("EPSG:4326", 1000, 1000, 175, .01, 70, -.01),
    "degrees_0_360": north_up("EPSG:4326", 3600, 1800, 0, .1, 90, -.1),
    "mercator": north_up("EPSG:3857", 2000, 2000, 1000000, 100, 6500000, -100),
    "north_pole": north_up("EPSG:3413", 1000, 1000, -4000000, 8000, 4000000, -8000),
    "south_pole": north_up("EPSG:3031", 1200, 1200, -3000000, 5000, 3000000, -5000),
    "arctic_part": north_up("EPSG:3413", 1000, 1000, 500000, 1000, -500000, -1000),
    "lambert": north_up("EPSG:2154", 3000, 2000, 200000, 300, 7000000, -300),
    "sinusoidal": north_up("ESRI:54008", 2000, 2000, 0, 500, 5500000, -500),
    "albers": north_up("EPSG:5070", 5000, 3000, -2300000, 900, 3100000, -900),
    "new_zealand": north_up("EPSG:2193", 2000, 3000, 1000000, 500, 6200000, -500),
    "tiny": north_up("EPSG:32632", 3, 2, 500000, 10, 5000000, -10),
}
CRSS = ["EPSG:4326", "EPSG:3857", "EPSG:32632", "EPSG:3035", "EPSG:3413", "EPSG:3031", "EPSG:32660", "ESRI:54008", "EPSG:6933",
        "EPSG:2154", "EPSG:5070", "EPSG:32733"]
# GDAL's grid is useless: no rows or 2,147,483,646, or a globe in Mercator that ends at a latitude of 89.99.
USELESS = {("globe", "EPSG:2154"), ("degrees_0_360", "EPSG:2154"), ("degrees_0_360", "EPSG:3857"),
           ("north_pole", "EPSG:3031"), ("south_pole", "EPSG:3413"), ("south_pole", "EPSG:2154")}
# The pole is an arc, whose ends GDAL takes a few rows further.
APPROXIMATE = {("south_pole", "EPSG:5070")}


def check_grid(found, expected, tolerance=1e-8):
    assert found is not None and expected is not None
    assert found[1:3] == expected[1:3]
    (left, wide, _, top, _, high), (width, height) = expected[0], expected[1:3]
    extent = max(abs(left), abs(top), wide * width, -high * height)
    assert np.allclose(found[0], expected[0], rtol=0, atol=tolerance * extent)
    assert np.allclose([found[0][1], found[0][5]], [wide, high], rtol=1e-6, atol=0)


@pytest.mark.parametrize("crs", CRSS)
@pytest.mark.parametrize("name", SOURCES)
def test_suggested_grid(name, crs):
    expected, found = gdalwarp([SOURCES[name]], "-t_srs", crs), complete([SOURCES[name]], crs)
    if (name, crs) in USELESS:
        assert found and max(found[1:]) < 10000
    elif (name, crs) in APPROXIMATE:
        assert found[1] == expected[1] and abs(found[2] - expected[2]) <= 5
    else:
        check_grid(found, expected, 1e-6 if name == "south_pole" else 1e-8)


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:3035", "ESRI:54008"])
@pytest.mark.parametrize("name", ["utm", "utm_rotated", "utm_antimeridian", "degrees", "arctic_part", "lambert", "albers"])
def test_suggested_grid_of_rasterio(name, crs):
    source = SOURCES[name]
    with rasterio.Env():
        transform = rasterio.Affine.from_gdal(*source.transform)
        if name == "utm_rotated":  # rasterio knows bounds alone
            source = north_up(source.crs, source.width, source.height, 400000, 8, 5000000, -6)
            transform = rasterio.Affine.from_gdal(*source.transform)
        affine, width, height = rasterio.warp.calculate_default_transform(
            source.crs, crs, source.width, source.height, *array_bounds(source.height, source.width, transform))
    check_grid(complete([source], crs), (list(affine.to_gdal()), width, height))


@pytest.mark.parametrize("sources, crs", [
    (["utm", "utm_oblong"], "EPSG:32632"), (["utm", "degrees"], "EPSG:3035"), (["utm", "mercator", "lambert"], "EPSG:4326"),
    (["utm", "tiny"], "EPSG:32632"), (["utm_antimeridian", "utm_1"], "EPSG:3857"),
    (["utm_south_up", "utm_rotated"], "EPSG:32632")])
def test_several_sources(sources, crs):
    sources = [SOURCES[name] for name in sources]
    check_grid(complete(sources, crs), gdalwarp(sources, "-t_srs", crs))


@pytest.mark.parametrize("name, crs", [("utm", "EPSG:4326"), ("utm_rotated", "EPSG:3857"), ("degrees", "EPSG:3035"),
                                       ("lambert", "EPSG:4326"), ("albers", "EPSG:3857"), ("globe", "ESRI:54008"),
                                       ("new_zealand", "EPSG:2154")])
def test_sum_rounds_up(name, crs):
    check_grid(complete([SOURCES[name]], crs, rounds_up=True), gdalwarp([SOURCES[name]], "-t_srs", crs, "-r", "sum"))


# What gdalwarp is told, and the same as a request. Sizes are chosen for the CRS by `scale`.
REQUESTS = {
    "tr": lambda s: (("-tr", 37 * s, 41 * s), {"resolution": (37 * s, 41 * s)}),
    "tr_tap": lambda s: (("-tr", 50 * s, 50 * s, "-tap"), {"resolution": (50 * s, 50 * s), "align": 1}),
    "tr_coarse": lambda s: (("-tr", 1e7 * s, 1e7 * s), {"resolution": (1e7 * s, 1e7 * s)}),
    "ts": lambda s: (("-ts", 321, 123), {"width": 321, "height": 123}),
    "ts_width": lambda s: (("-ts", 321, 0), {"width": 321}),
    "ts_height": lambda s: (("-ts", 0, 321), {"height": 321}),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("name, crs", [
    ("utm", "EPSG:4326"), ("utm", "EPSG:32633"), ("utm_rotated", "EPSG:32632"), ("utm_rotated", "EPSG:3857"),
    ("utm_south_up", "EPSG:32632"), ("utm_oblong", "EPSG:32632"), ("degrees", "EPSG:3035"), ("lambert", "EPSG:4326"),
    ("degrees_antimeridian", "EPSG:32660"), ("arctic_part", "EPSG:4326"), ("mercator", "EPSG:32632")])
def test_resolution_and_size(name, crs, request_name):
    options, request = REQUESTS[request_name](1e-4 if crs == "EPSG:4326" else 10)
    check_grid(complete([SOURCES[name]], crs, crs=crs, **request), gdalwarp([SOURCES[name]], "-t_srs", crs, *options))


def turned(crs, x, y, pixel, angle):
    along, down = pixel * np.cos(angle), pixel * np.sin(angle)
    return Placed(crs, 24, 20, [x, along, down, y, down, -along])


@pytest.mark.parametrize("factor", [0.5, 1.3, 3.1, 20.3])
@pytest.mark.parametrize("source, crs", [
    (turned("EPSG:2154", 7e5, 6.6e6, 20000, 1.41), "EPSG:4326"), (turned("EPSG:28355", 5e5, 5.9e6, 20000, 1.45), "EPSG:3857"),
    (turned("EPSG:26914", 4e5, 4.4e6, 3000, 1.44), "EPSG:3857"), (turned("EPSG:3857", 2e7, 1e6, 3000, 0.77), "EPSG:3832"),
    (turned("EPSG:4283", 147, -37, 0.03, 1.49), "EPSG:7844")])
def test_blank_borders(source, crs, factor):
    """gdalwarp -tr removes rows that lie above the source or below, and columns left of it or right. Not others."""
    transform, width, _, _ = gdalwarp([source], "-t_srs", crs)
    pixel = transform[1] / factor
    check_grid(complete([source], crs, crs=crs, resolution=(pixel, pixel)), gdalwarp([source], "-t_srs", crs, "-tr", pixel, pixel))


BOXES = {
    "EPSG:4326": (7.6, 50.1, 8.45, 52.2), "EPSG:3857": (850000.5, 6500000, 930000, 6800000),
    "EPSG:32632": (400100, 5770000, 443333, 5799000), "EPSG:3035": (4100000, 3100000, 4180000, 3260000)}


@pytest.mark.parametrize("options, request_fields", [
    ((), {}), (("-tr", .5, .25), {"resolution": (.5, .25)}), (("-ts", 99, 0), {"width": 99}),
    (("-ts", 99, 77), {"width": 99, "height": 77}), (("-tr", .7, .7, "-tap"), {"resolution": (.7, .7), "align": 1})])
@pytest.mark.parametrize("crs", BOXES)
@pytest.mark.parametrize("name", ["utm", "degrees", "mercator"])
def test_box(name, crs, options, request_fields):
    box, scale = BOXES[crs], (BOXES[crs][2] - BOXES[crs][0]) / 100
    options = [word * scale if isinstance(word, float) else word for word in options]
    fields = {key: tuple(part * scale for part in value) if key == "resolution" else value
              for key, value in request_fields.items()}
    expected = gdalwarp([SOURCES[name]], "-t_srs", crs, "-te", *box, *options)
    check_grid(complete([SOURCES[name]], crs, crs=crs, bbox=box, **fields), expected)


@pytest.mark.parametrize("sources", [["utm"], ["utm_oblong", "utm"], ["utm_rotated"], ["utm", "mercator"]])
def test_box_without_crs(sources):
    """Sources that are on the grid's CRS keep their pixels then."""
    sources, box = [SOURCES[name] for name in sources], (400100, 4990000, 443333, 5799000)
    check_grid(complete(sources, "EPSG:32632", bbox=box), gdalwarp(sources, "-te", *box))


@pytest.mark.parametrize("crs, box_crs, box", [
    ("EPSG:32632", "EPSG:4326", (8, 44.8, 9.5, 46)), ("EPSG:3413", "EPSG:4326", (-180, 50, 180, 90)),
    ("EPSG:3413", "EPSG:4326", (-100, 50, 100, 85)), ("EPSG:4326", "EPSG:3413", (-1e6, -1e6, 1e6, 1e6)),
    ("EPSG:4326", "EPSG:32632", (4e5, 5e6, 6e5, 6e6)), ("EPSG:3857", "EPSG:3035", (3e6, 2e6, 5e6, 4e6)),
    ("EPSG:4326", "EPSG:3413", (0, -3e6, 1e6, -2e6))])
def test_box_in_another_crs(crs, box_crs, box):
    expected = gdalwarp([SOURCES["globe"]], "-t_srs", crs, "-te", *box, "-te_srs", box_crs, "-ts", 100, 200)
    found = complete([SOURCES["globe"]], crs, crs=crs, bbox=box, bbox_crs=box_crs, width=100, height=200)
    check_grid(found, expected)


def test_box_across_the_antimeridian():
    """gdalwarp makes a flipped grid of the same box."""
    found = complete([SOURCES["globe"]], "EPSG:4326", crs="EPSG:4326", bbox=(-3e5, 5e6, 9e5, 6e6), bbox_crs="EPSG:32660",
                     resolution=(.1, .1))
    left, right = found[0][0], found[0][0] + found[1] * .1
    assert 160 < left < 180 < right < 200


# ---- scale ---------------------------------------------------------------------------------------

SCALES = [
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:4326", ()),
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:4326", ("-tr", .003, .003)),
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:4326", ("-te", 7.6, 52.1, 7.9, 52.3, "-tr", .004, .003)),
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:3857", ("-ts", 100, 100)),
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:32632", ("-ts", 499, 401)),
    (north_up("EPSG:32632", 500, 400, 400000, 100, 5800000, -100), "EPSG:32632",
     ("-te", 405000, 5770000, 430000, 5795000, "-tr", 333, 250)),
    (north_up("EPSG:4326", 720, 360, -180, .5, 90, -.5), "EPSG:3413",
     ("-te", -4000000, -4000000, 4000000, 4000000, "-ts", 100, 100)),
    (north_up("EPSG:4326", 720, 360, -180, .5, 90, -.5), "EPSG:3035", ("-te", 2.5e6, 1.5e6, 6e6, 5e6, "-ts", 40, 41)),
    (north_up("EPSG:4326", 720, 360, 0, .5, 90, -.5), "EPSG:3857", ("-te", -1e7, -1e7, 1e7, 1e7, "-ts", 100, 100)),
    (north_up("EPSG:3857", 512, 512, 1e6, 100, 6e6, -100), "EPSG:32632", ("-tr", 150, 150)),
    # A window that leaves the source at its end; poles and antimeridians, in the grid and on its edges.
    (north_up("EPSG:3413", 80, 80, -4e6, 1e5, 4e6, -1e5), "EPSG:3995", ("-te", -3e6, -3e6, 2e6, 3e6, "-ts", 30, 31)),
    (north_up("EPSG:4326", 120, 60, 0, 3, 90, -3), "EPSG:4326", ("-te", -180, -90, 180, 90, "-ts", 80, 40)),
    (north_up("EPSG:4326", 120, 60, 0, 3, 90, -3), "EPSG:4326", ("-te", -170, -80, 160, 80, "-ts", 80, 40)),
    (north_up("EPSG:4326", 120, 60, -180, 3, 90, -3), "EPSG:3413", ("-te", -3e6, -4e6, -1e5, 4.1e6, "-ts", 20, 20)),
    (north_up("EPSG:4326", 120, 60, -180, 3, 90, -3), "EPSG:3832", ("-te", 1e6, -3e6, 6e6, 3e6, "-ts", 25, 20)),
    (north_up("EPSG:4326", 120, 60, -180, 3, 90, -3), "EPSG:3832", ("-te", -1e6, -3e6, 1.1e7, 3e6, "-ts", 35, 31)),
    (north_up("EPSG:4326", 120, 60, -180, 3, 90, -3), "EPSG:32661", ("-te", -1e6, -1e6, 3.5e6, 3.5e6, "-ts", 35, 31)),
    # A small grid, mostly outside of the source: not divided.
    (north_up("EPSG:3031", 36, 30, -3e4, 2000, 3e4, -2000), "EPSG:3857", ("-te", -2e7, -6e7, 2e7, -4e7, "-ts", 99, 92)),
]


@pytest.mark.parametrize("method, radius", [("bilinear", 1), ("lanczos", 3)])
@pytest.mark.parametrize("case", range(len(SCALES)))
def test_scale(case, method, radius):
    """With our scale as an option, gdalwarp makes the pixels that it makes by itself."""
    source, crs, options = SCALES[case]
    pixels = np.random.default_rng(case).random((source.height, source.width))
    options = ["-t_srs", crs, "-r", method, "-et", 0, "-wm", 2000, *options]
    transform, width, height, expected = gdalwarp([source], *options, pixels=pixels)
    (x, y, _), _ = measure(source, Placed(crs, width, height, transform), radius)
    found = gdalwarp([source], *options, "-wo", f"XSCALE={x!r}", "-wo", f"YSCALE={y!r}", pixels=pixels)[3]
    assert expected.any() and np.allclose(found, expected, rtol=0, atol=1e-8)


