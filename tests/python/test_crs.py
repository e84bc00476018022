"""GeoKeys that contradict each other or describe no CRS of the registry, read and written as GDAL does."""

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio
import tiff_bytes as tb


def geokey_tags(keys, minor=0):
    """The three GeoKey tags: a whole number is a SHORT, a float a DOUBLE, a text goes to the ASCII tag."""
    entries, doubles, text = [], [], ""
    for key, value in sorted(keys.items()):
        if isinstance(value, int):
            entries += [key, 0, 1, value]
        elif isinstance(value, str):
            entries += [key, 34737, len(value) + 1, len(text)]
            text += value + "|"
        else:
            entries += [key, 34736, 1, len(doubles)]
            doubles.append(value)
    tags = [(34735, tb.SHORT, [1, 1, minor, len(keys), *entries])]
    tags += [(34736, tb.DOUBLE, doubles)] if doubles else []
    return tags + ([(34737, tb.ASCII, text.encode() + b"\0")] if text else [])


def with_geokeys(path, keys):
    writer = tb.Writer()
    offset = writer.add(bytes(16))
    short, long, double = tb.SHORT, tb.LONG, tb.DOUBLE
    writer.directory([(256, short, 4), (257, short, 4), (258, short, 8), (259, short, 1), (262, short, 1),
                      (273, long, offset), (277, short, 1), (278, short, 4), (279, long, 16),
                      (33550, double, [10., 10., 0.]), (33922, double, [0., 0., 0., 100., 200., 0.]),
                      *geokey_tags(keys)])
    path.write_bytes(writer.bytes())


GEOGRAPHIC = {1024: 2, 1025: 1, 2054: 9102}
PROJECTED = {1024: 1, 1025: 1, 3076: 9001}
CONTRADICTIONS = {
    "4326 with other axes": GEOGRAPHIC | {2048: 4326, 2057: 6378206.4, 2058: 6356583.8},
    "4267 with another minor axis": GEOGRAPHIC | {2048: 4267, 2057: 6378206.4, 2058: 6356000.0},
    "4267 with its own axes": GEOGRAPHIC | {2048: 4267, 2057: 6378206.4, 2058: 6356583.8},
    "4267 on a sphere": GEOGRAPHIC | {2048: 4267, 2057: 6371000.0, 2059: 0.0},
    "4267 with a major axis alone": GEOGRAPHIC | {2048: 4267, 2057: 6378000.0},
    "4269 with rounded axes": GEOGRAPHIC | {2048: 4269, 2057: 6378137.0, 2058: 6356752.3},
    "4269 with another ellipsoid": GEOGRAPHIC | {2048: 4269, 2056: 7030},
    "4267 with another datum": GEOGRAPHIC | {2048: 4267, 2050: 6326},
    "4267 from Paris": GEOGRAPHIC | {2048: 4267, 2051: 8903},
    "4267 in grads": GEOGRAPHIC | {2048: 4267, 2054: 9105},
    "Sentinel-1's ellipsoid": GEOGRAPHIC | {2048: 4326, 2056: 4326, 2057: 6378137.0, 2058: 6356752.314245179},
    "a code of three dimensions": GEOGRAPHIC | {2048: 4999},
    "a datum with other axes": GEOGRAPHIC | {2048: 32767, 2049: "foo", 2050: 6267, 2057: 6378137.0, 2059: 298.257223563},
    "2154 on WGS 84": PROJECTED | {2048: 4326, 3072: 2154},
    "26711 with other axes": PROJECTED | {2048: 4267, 2057: 6378206.4, 2058: 6356000.0, 3072: 26711},
    "26711 with axes alone": PROJECTED | {2057: 6378206.4, 2058: 6356000.0, 3072: 26711},
    "26711 with another ellipsoid": PROJECTED | {2056: 7030, 3072: 26711},
    "32633 with other axes": PROJECTED | {2048: 4326, 2057: 6378206.4, 2058: 6356000.0, 3072: 32633},
}


def compare_crs(path, keys):
    with_geokeys(path, keys)
    with rasterio.open(path) as file:
        expected = file.crs
    with cogpu.open(path) as file:
        found = rasterio.crs.CRS.from_wkt(file.wkt())
    assert found == expected and found.to_epsg() == expected.to_epsg()
    return found


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_crs_contradicting_ellipsoid(case, tmp_path):
    compare_crs(tmp_path / "a.tif", CONTRADICTIONS[case])


POLAR = PROJECTED | {2048: 4326, 2054: 9102, 3072: 32767, 3074: 32767, 3075: 15, 3082: 0.0, 3083: 0.0}
HUGHES = {2048: 32767, 2050: 32767, 2056: 7058, 2057: 6378273.0, 2058: 6356889.449}
POLES = {
    "3031": ({3081: -71.0, 3095: 0.0, 3092: 1.0}, 3031),
    "3031 by name": ({1026: "WGS 84 / Antarctic Polar Stereographic", 3081: -71.0, 3095: 0.0, 3092: 1.0}, 3031),
    "3031 by another name": ({3073: "Polar", 3081: -71.0, 3095: 0.0, 3092: 1.0}, 3031),
    "3412": (HUGHES | {3081: -70.0, 3095: 0.0, 3092: 1.0}, 3412),
    "3413": ({3081: 70.0, 3095: -45.0, 3092: 1.0}, 3413),
    "3976": ({3081: -70.0, 3095: 0.0}, 3976),
    "5041": ({3081: 90.0, 3095: 0.0, 3092: 0.994, 3082: 2e6, 3083: 2e6}, 5041),
    "a standard parallel that GDAL does not read": ({3078: -71.0, 3095: 0.0}, None),
    "at the pole": ({3081: -90.0, 3095: 0.0, 3092: 1.0}, None),
    "without a latitude": ({3095: 0.0}, None),
    "a natural longitude": ({3081: -71.0, 3080: 10.0}, None),
}


@pytest.mark.parametrize("case", POLES)
def test_crs_polar_stereographic(case, tmp_path):
    keys, code = POLES[case]
    assert compare_crs(tmp_path / "a.tif", POLAR | keys).to_epsg() == code


LOCAL = {
    "a raster type alone": {1025: 1},
    "a geographic code without a model": {2048: 4326},
    "a name and metres": {1026: "Local", 3076: 9001},
    "an unknown model": {1024: 5, 1026: "Local", 3076: 9003},
    "a geographic citation": {2049: "Local", 3076: 9002},
    "two citations": {1026: "One", 2049: "Two", 3073: "Three"},
    "no unit": {1026: "Local"},
    "a unit by its size": {1026: "Local", 3076: 32767, 3077: 0.5},
    "a geographic linear unit": {1026: "Local", 2052: 9002},
    "a unit in the citation": {1026: "PCS Name = a|LUnits = inches|"},
    "a vertical CRS": {1026: "Local", 3076: 9001, 4096: 5773},
    "an unknown projected code": {1024: 1, 1026: "Local", 3072: 12345, 3076: 9002},
    "no projection": {1024: 1, 1026: "Local", 2048: 4326, 3072: 32767, 3076: 9001},
    "an unknown projection": {1024: 1, 1026: "Local", 2048: 4326, 3072: 32767, 3074: 32767, 3075: 99, 3076: 9001},
    "Esri's text": {1024: 32767, 3073: 'ESRI PE String = LOCAL_CS["x",UNIT["Meter",1.0]]'},
}


@pytest.mark.parametrize("case", LOCAL)
def test_crs_local_read(case, tmp_path):
    assert compare_crs(tmp_path / "a.tif", LOCAL[case]).to_wkt().startswith("LOCAL_CS")


@pytest.mark.parametrize("text", [
    'LOCAL_CS["foo",UNIT["metre",1]]', 'LOCAL_CS["foo",UNIT["foot",0.3048]]', 'LOCAL_CS["foo",UNIT["rod",5.03]]',
    'LOCAL_CS["the ""site""",LOCAL_DATUM["x",0],UNIT["metre",1],AXIS["x",EAST],AXIS["y",NORTH]]',
    'ENGCRS["site",EDATUM["P1"],CS[Cartesian,2],AXIS["(E)",east],AXIS["(N)",north],'
    'LENGTHUNIT["US survey foot",0.304800609601219]]'])
def test_crs_local_written(text, tmp_path):
    """GDAL reads the same CRS from our file as from its own, which has the same keys."""
    ours, theirs = tmp_path / "ours.tif", tmp_path / "theirs.tif"
    with rasterio.open(theirs, "w", driver="GTiff", count=1, height=4, width=4, dtype="uint8", crs=text,
                       transform=rasterio.Affine(1, 0, 0, 0, -1, 0)):
        pass
    with rasterio.open(theirs) as file:
        expected = file.crs
    ours.write_bytes(cogpu.write(np.zeros((1, 4, 4), "u1"), crs=text, transform=[0, 1, 0, 0, 0, -1]))
    with rasterio.open(ours) as file:
        assert file.crs == expected
    with cogpu.open(ours) as one, cogpu.open(theirs) as other:
        assert one.geokeys() == other.geokeys()
