"""Files beside a TIFF: what GDAL reads of .msk, .aux.xml, world files, RPC files and ArcGIS metadata, in its order of
precedence, and what becomes of broken ones."""

import json
import shutil
import subprocess
import xml.sax.saxutils

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio
from conftest import BIN
from rasterio.control import GroundControlPoint
from rasterio.crs import CRS
from rasterio.transform import Affine, from_origin

pytestmark = pytest.mark.filterwarnings("ignore")

HEIGHT, WIDTH = 40, 50
DEVICES = [cogpu.CPU, cogpu.GPU]


def pixels(bands=1, dtype="uint8"):
    return (np.arange(bands * HEIGHT * WIDTH).reshape(bands, HEIGHT, WIDTH) % 251).astype(dtype)


def save(path, array=None, **options):
    array = pixels() if array is None else array
    with rasterio.open(path, "w", driver="GTiff", height=array.shape[1], width=array.shape[2], count=array.shape[0],
                       dtype=array.dtype, **options) as file:
        file.write(array)
    beside(path, ".aux.xml").unlink(missing_ok=True)
    return path


def beside(path, ending):
    return path.with_name(path.name + ending)


def pam(path, content):
    beside(path, ".aux.xml").write_text(f"<PAMDataset>{content}</PAMDataset>")


def geotransform(numbers):
    return f"<GeoTransform>{','.join(map(str, numbers))}</GeoTransform>"


def srs(crs, **attributes):
    return f"<SRS>{xml.sax.saxutils.escape(CRS.from_user_input(crs).to_wkt())}</SRS>"


def world(path, *numbers):
    path.write_text("".join(f"{number}\n" for number in numbers))


def same_georeferencing(path):
    """Ours and GDAL's agree; returns GDAL's (transform or None, crs, count of points)."""
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        info = ours.info()
        transform = theirs.transform.to_gdal()
        expected = None if theirs.transform == Affine.identity() else transform
        assert (tuple(info.transform) if info.has_transform else None) == (
            None if expected is None else pytest.approx(expected, abs=1e-9))
        points, points_crs = theirs.gcps
        assert [(gcp.column, gcp.row, gcp.x, gcp.y, gcp.z) for gcp in info.gcps] == [
            pytest.approx((point.col, point.row, point.x, point.y, point.z)) for point in points]
        crs = points_crs if points and points_crs else theirs.crs
        if crs:
            assert CRS.from_wkt(ours.wkt()) == crs
        else:
            with pytest.raises(cogpu.CogpuError):
                ours.crs()
        assert sorted([str(path), *ours.sidecars()]) == sorted(theirs.files)
        return expected, crs, len(points)


# ---- world files -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["x.tif", "x.tiff", "X.TIF"])
@pytest.mark.parametrize("ending", ["tfw", "TFW", "Tfw", "tifw", "tiffw", "wld", "WLD", "tif.tfw"])
def test_world_file_names(tmp_path, name, ending):
    path = save(tmp_path / name)
    world(tmp_path / f"x.{ending}", 2, 0, 0, -3, 100, 200)
    same_georeferencing(path)


def test_world_file_order(tmp_path):
    path = save(tmp_path / "x.tif")
    for number, ending in enumerate(["wld", "tifw", "tfw"], 1):
        world(tmp_path / f"x.{ending}", number, 0, 0, -number, 0, 0)
        assert same_georeferencing(path)[0][1] == number


@pytest.mark.parametrize("text", [
    "1,5\n0\n0\n-1\n100\n200\n", "\n\n1\n0\n0\n\n-1\n100\n200\nfoo\n", "1 foo\nbar\n0\n-1\n1e2\n200",
    "1\r\n0\r\n0\r\n-1\r\n100\r\n200\r\n", "0\n0\n0\n-1\n1\n1\n", "1\n0\n0\n0\n1\n1\n", "1\n0\n0\n-1\n100\n", "",
    "2\n1\n0.5\n-2\n3\n4\n", "1\n0\n0\n-1\n100\n200" + "x" * 200, "1\n0\n0\n-1\n100\n" + " " * 98 + "200\n"])
def test_world_file_texts(tmp_path, text):
    path = save(tmp_path / "x.tif")
    (tmp_path / "x.tfw").write_bytes(text.encode())
    same_georeferencing(path)


@pytest.mark.parametrize("text", ["1\n0\n0\n-1\nnan\n200\n", "1\n0\n0\n-1\ninf\n0\n", "1\n2\n2\n4\n1\n1\n"])
def test_world_file_without_place_is_ignored(tmp_path, text):
    """GDAL returns such transforms, which give pixels no finite place or size."""
    path = save(tmp_path / "x.tif")
    (tmp_path / "x.tfw").write_text(text)
    with cogpu.open(path) as file:
        assert not file.info().has_transform and "world file" in file.info().warning


# ---- precedence of georeferencing ------------------------------------------------------------------------------------

GCPS = [GroundControlPoint(0, 0, 10, 50), GroundControlPoint(0, 49, 11, 50), GroundControlPoint(39, 0, 10, 49)]
INTERNAL = {
    "none": {}, "transform": {"transform": from_origin(10, 20, 1, 1)}, "crs": {"crs": "EPSG:32633"},
    "both": {"transform": from_origin(10, 20, 1, 1), "crs": "EPSG:32633"}, "gcps": {"gcps": GCPS, "crs": "EPSG:4326"}}
GCP_LIST = ('<GCPList Projection="EPSG:3857"><GCP Id="a" Info="b" Pixel="1" Line="2" X="3" Y="4" Z="5"/>'
            '<GCP Id="c" Pixel="11" Line="2" X="13" Y="4"/><GCP Id="d" Line="2" X="13" Y="4"/></GCPList>')
PAMS = {"none": "", "transform": geotransform([1, 2, 0, 3, 0, -4]), "crs": srs("EPSG:25832"),
        "both": geotransform([1, 2, 0, 3, 0, -4]) + srs("EPSG:25832"), "gcps": GCP_LIST,
        "gcps and transform": GCP_LIST + geotransform([1, 2, 0, 3, 0, -4]), "bad transform": geotransform([1, 2, 3])}


@pytest.mark.parametrize("with_world", [False, True])
@pytest.mark.parametrize("stated", PAMS)
@pytest.mark.parametrize("internal", INTERNAL)
def test_georeferencing_precedence(tmp_path, internal, stated, with_world):
    path = save(tmp_path / "x.tif", **INTERNAL[internal])
    if with_world:
        world(tmp_path / "x.tfw", 7, 0, 0, -7, 70, 700)
    if PAMS[stated]:
        pam(path, PAMS[stated])
    same_georeferencing(path)


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:32633", "EPSG:5514", "EPSG:3857", "ESRI:54009",
                                 "+proj=laea +lat_0=10 +lon_0=20 +datum=WGS84 +units=m"])
@pytest.mark.parametrize("form", ["wkt1", "wkt2", "esri", "words"])
def test_pam_crs(tmp_path, crs, form):
    path = save(tmp_path / "x.tif")
    text = {"wkt1": lambda: CRS.from_user_input(crs).to_wkt(version="WKT1_GDAL"), "words": lambda: crs,
            "wkt2": lambda: CRS.from_user_input(crs).to_wkt(version="WKT2_2019"),
            "esri": lambda: CRS.from_user_input(crs).to_wkt(version="WKT1_ESRI")}[form]()
    if not text:
        pytest.skip("GDAL has no such form of it")
    pam(path, f"<SRS>{xml.sax.saxutils.escape(text)}</SRS>")
    same_georeferencing(path)
    with cogpu.open(path) as file:
        assert file.crs().external
        if crs.startswith("EPSG:") and form == "words":
            assert f"{file.crs().authority}:{file.crs().code}" == crs


def test_pam_crs_epoch(tmp_path):
    path = save(tmp_path / "x.tif")
    pam(path, '<SRS dataAxisToSRSAxisMapping="2,1" coordinateEpoch="2021.3">EPSG:9000</SRS>')
    same_georeferencing(path)
    with cogpu.open(path) as file:
        assert file.crs().epoch == 2021.3 and file.crs().model == "geographic"


@pytest.mark.parametrize("text", ["EPSG:99999999", "no system", "+init=epsg:4326", "GEOGCS[", "+proj=utm", "&#65;"])
def test_pam_crs_that_is_none(tmp_path, text):
    path = save(tmp_path / "x.tif", crs="EPSG:32633")
    pam(path, f"<SRS>{text}</SRS>")
    with cogpu.open(path) as file:
        assert file.crs().code == 32633 and "the CRS of" in file.info().warning


ARCGIS = "<metadata><refSysInfo><RefSystem><refSysID>{}</refSysID></RefSystem></refSysInfo></metadata>"


@pytest.mark.parametrize("code", ['<identCode code="25832"/>', "<identCode><code>25832</code></identCode>",
                                  '<identCode code="54009"/>', '<identCode code="0"/>', '<identCode code="-4"/>', ""])
@pytest.mark.parametrize("internal", ["none", "both"])
def test_arcgis_metadata_code(tmp_path, code, internal):
    path = save(tmp_path / "x.tif", **INTERNAL[internal])
    (tmp_path / "x.xml").write_text(ARCGIS.format(code))
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        assert (CRS.from_wkt(ours.wkt()) if theirs.crs else None) == theirs.crs


WKT_ESRI = CRS.from_epsg(25832).to_wkt(version="WKT1_ESRI")
POINTS = ("<SourceGCPs><Double>0</Double><Double>{0}0</Double><Double>50</Double><Double>{0}0</Double>"
          "<Double>0</Double><Double>{0}40</Double></SourceGCPs><TargetGCPs><Double>1</Double><Double>2</Double>"
          "<Double>3</Double><Double>4</Double><Double>5</Double><Double>6</Double></TargetGCPs>")
POLYNOMIAL = ("<PolynomialOrder>1</PolynomialOrder><CoeffX><Double>100</Double><Double>2</Double><Double>0.25</Double>"
              "</CoeffX><CoeffY><Double>500</Double><Double>0.5</Double><Double>3</Double></CoeffY>")


@pytest.mark.parametrize("resolution", [False, True])
@pytest.mark.parametrize("content", [POINTS.format(""), POINTS.format("-"), POLYNOMIAL, ""],
                         ids=["points", "points upwards", "polynomial", "crs alone"])
@pytest.mark.parametrize("lone", [False, True])
def test_pam_geodata_xform(tmp_path, content, lone, resolution):
    path = save(tmp_path / "x.tif")
    if resolution:
        with rasterio.open(path, "r+") as file:
            file.update_tags(TIFFTAG_RESOLUTIONUNIT="2", TIFFTAG_XRESOLUTION="10", TIFFTAG_YRESOLUTION="20")
    text = f"<GeodataXform><SpatialReference><WKT>{WKT_ESRI}</WKT></SpatialReference>{content}</GeodataXform>"
    if lone:
        beside(path, ".aux.xml").write_text(text)
    else:
        pam(path, f'<Metadata domain="xml:ESRI" format="xml">{text}</Metadata>')
    same_georeferencing(path)
    with cogpu.open(path) as file:
        [item] = [item for item in file.items() if item.domain == "xml:ESRI"]
        assert item.value == text


# ---- metadata and bands ----------------------------------------------------------------------------------------------

METADATA = """<Metadata><MDI key="A">pam</MDI><MDI key="New">  blanks  </MDI><MDI key="E"></MDI></Metadata>
<Metadata domain="OTHER"><MDI key="K">v &amp; w</MDI></Metadata><metadata Domain="lower"><mdi Key="k">v</mdi></metadata>
<Metadata domain="IMAGE_STRUCTURE"><MDI key="INTERLEAVE">PIXEL</MDI></Metadata>
<PAMRasterBand band="2"><Metadata><MDI key="STATISTICS_MINIMUM">3</MDI><MDI key="B">pam</MDI></Metadata>
<Metadata domain="BAND"><MDI key="x">y</MDI></Metadata></PAMRasterBand>
<PAMRasterBand band="9"><Description>none</Description></PAMRasterBand>"""


def items_of(file, band, domain=""):
    return {item.name: item.value for item in file.items()
            if item.band == band and item.domain == domain and not item.role}


def test_pam_metadata(tmp_path):
    path = save(tmp_path / "x.tif", pixels(2))
    with rasterio.open(path, "r+") as file:
        file.update_tags(A="tiff", C="tiff")
        file.update_tags(2, B="tiff", D="tiff")
        file.update_tags(ns="OTHER", K="tiff", L="tiff")
    beside(path, ".aux.xml").unlink(missing_ok=True)
    pam(path, METADATA)
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        expected = theirs.tags()
        expected.pop("AREA_OR_POINT", None)
        assert items_of(ours, 0) == expected == {"A": "pam", "C": "tiff", "New": "blanks  "}
        for band, domain in ((0, "OTHER"), (0, "lower"), (2, ""), (2, "BAND"), (1, "")):
            assert items_of(ours, band, domain) == theirs.tags(band, ns=domain or None), (band, domain)
        assert not items_of(ours, 0, "IMAGE_STRUCTURE")


def test_pam_documents(tmp_path):
    path = save(tmp_path / "x.tif")
    pam(path, '<Metadata domain="xml:FOO" format="xml"><a b="c">t</a></Metadata>'
              '<Metadata domain="json:BAR" format="json">{"a": 1}</Metadata>')
    with cogpu.open(path) as file:
        assert [(item.domain, item.name, item.value) for item in file.items()] == [
            ("xml:FOO", "doc", '<a b="c">t</a>'), ("json:BAR", "doc", '{"a": 1}')]


BANDS = """<PAMRasterBand band="1"><Description>red</Description><UnitType>K</UnitType><ColorInterp>Red</ColorInterp>
<Offset>5</Offset></PAMRasterBand><PAMRasterBand band="2"><Scale>0.5</Scale><Description></Description>
<ColorInterp>undefined</ColorInterp></PAMRasterBand><PAMRasterBand band="3"><ColorInterp>grey</ColorInterp><UnitType/>
<Scale>2</Scale><Offset>-1</Offset></PAMRasterBand>"""


@pytest.mark.parametrize("internal", [False, True])
def test_pam_bands(tmp_path, internal):
    path = save(tmp_path / "x.tif", pixels(3))
    if internal:
        with rasterio.open(path, "r+") as file:
            file.descriptions, file.units = ("a", "b", "c"), ("m", "m", "m")
            file.scales, file.offsets = (3, 3, 3), (4, 4, 4)
    pam(path, BANDS)
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        bands = [ours.band(band) for band in (1, 2, 3)]
        assert tuple(band.description for band in bands) == theirs.descriptions
        assert tuple(band.unit for band in bands) == theirs.units
        assert tuple(band.scale for band in bands) == theirs.scales
        assert tuple(band.offset for band in bands) == theirs.offsets
        assert [band.interpretation for band in bands] == [colour.name for colour in theirs.colorinterp]


def test_pam_colour_table(tmp_path):
    path = save(tmp_path / "x.tif")
    pam(path, '<PAMRasterBand band="1"><ColorInterp>Palette</ColorInterp><ColorTable><Entry c1="1" c2="2" c3="3" '
              'c4="255"/><Entry c1="4"/></ColorTable><CategoryNames><Category>water</Category><Category/>'
              "<Category>wood</Category></CategoryNames></PAMRasterBand>")
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        colours = theirs.colormap(1)
        assert ours.info().palette == [257 * colours[value][part] for part in range(3) for value in (0, 1)]
        assert ours.band(1).interpretation == theirs.colorinterp[0].name == "palette"
        assert items_of(ours, 1, "CATEGORY_NAMES") == {"0": "water", "2": "wood"}


# ---- nodata ----------------------------------------------------------------------------------------------------------

def value(text, hex_digits=None):
    attribute = f' le_hex_equiv="{hex_digits}"' if hex_digits else ""
    return f"<NoDataValue{attribute}>{text}</NoDataValue>"


def nodata_pam(path, texts):
    pam(path, "".join(f'<PAMRasterBand band="{band}">{text}</PAMRasterBand>' for band, text in enumerate(texts, 1)))


@pytest.mark.parametrize("dtype, text", [
    ("uint8", value("7")), ("uint8", value(" 7.00000000000000E+00 ")), ("float32", value("nan")),
    ("float32", value("-9999")), ("float32", value("1.5", "333333333333F3BF")), ("int64", value("9007199254740993")),
    ("uint64", value("18446744073709551615")), ("float64", value("0.1")), ("int16", value("-32768"))])
@pytest.mark.parametrize("internal", [None, 3])
def test_pam_nodata(tmp_path, dtype, text, internal):
    array = pixels(dtype=dtype)
    path = save(tmp_path / "x.tif", array, nodata=internal)
    nodata_pam(path, [text])
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        nodata = ours.info().nodata
        ours_value = {"int64": nodata.i64, "uint64": nodata.u64}.get(dtype, nodata.value)
        is_float = array.dtype.kind == "f"
        stated = theirs.nodata if array.itemsize < 8 or is_float else int(nodata.text)  # rasterio's is a float
        expected = float(np.dtype(dtype).type(stated)) if is_float else stated
        assert nodata.matches and (ours_value == expected or np.isnan(ours_value) and np.isnan(expected))
        assert np.array_equal(ours.read(content=cogpu.MASK), theirs.read_masks())


@pytest.mark.parametrize("options", [{}, {"interleave": "band"}, {"tiled": True, "blockxsize": 16, "blockysize": 16,
                                                                  "compress": "deflate"}])
@pytest.mark.parametrize("texts", [[value("7"), value("8"), ""], ["", value("9"), ""], [value("7")] * 3,
                                   [value("300"), value("8"), value("8")]])
@pytest.mark.parametrize("internal", [None, 3])
@pytest.mark.parametrize("device", DEVICES)
def test_pam_nodata_by_band(tmp_path, device, options, texts, internal):
    path = save(tmp_path / "x.tif", pixels(3), nodata=internal, **options)
    nodata_pam(path, texts)
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        masks = theirs.read_masks()
        assert np.array_equal(ours.read(content=cogpu.MASK, device=device), masks)
        assert np.array_equal(ours.read(device=device), theirs.read())
        expected = np.where(masks == 0, np.nan, theirs.read().astype("f4"))
        assert np.array_equal(ours.read(masked=True, dtype="f4", device=device), expected, equal_nan=True)
        some = ours.read(content=cogpu.MASK, bands=[3, 2], window=(5, 6, 20, 30), device=device)
        assert np.array_equal(some, masks[[2, 1], 6:36, 5:25])
        context = cogpu.shared_context()
        [(status, many)], failure = cogpu.read_many([(ours, {"content": cogpu.MASK})], context, device)
        assert failure is None and np.array_equal(many, masks)


def test_pam_nodata_fills_sparse_blocks(tmp_path):
    path = tmp_path / "x.tif"
    with rasterio.open(path, "w", driver="GTiff", height=64, width=64, count=2, dtype="uint8", sparse_ok=True,
                       tiled=True, blockxsize=16, blockysize=16):
        pass
    nodata_pam(path, [value("7"), value("9")])
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        for device in DEVICES:
            assert np.array_equal(ours.read(device=device), theirs.read())
        assert ours.read()[:, 0, 0].tolist() == [7, 9]


# ---- masks -----------------------------------------------------------------------------------------------------------

def mask_of(shape=(HEIGHT, WIDTH)):
    rows, columns = np.indices(shape)
    return (((rows + columns) % 3 > 0) * 255).astype("uint8")


def save_mask(path, masks, flags, dtype="uint8", name=".msk", **options):
    """A .msk: masks as (bands, rows, columns), and flags by band, of those that have some."""
    mask_path = beside(path, name)
    with rasterio.open(mask_path, "w", driver="GTiff", height=masks.shape[1], width=masks.shape[2], count=len(masks),
                       dtype=dtype, **options) as file:
        file.write(masks.astype(dtype))
        file.update_tags(**{f"INTERNAL_MASK_FLAGS_{band}": str(flag) for band, flag in flags.items()})
    return mask_path


def same_masks(path, device=cogpu.CPU):
    """Every kind of masked read agrees with GDAL's masks, of any non-zero value."""
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        masks = np.where(theirs.read_masks() > 0, 255, 0).astype("u1")
        array = theirs.read().astype("f4")
        expected = np.where(masks == 0, np.float32(np.nan), array)
        assert np.array_equal(ours.read(content=cogpu.MASK, device=device), masks)
        assert np.array_equal(ours.read(masked=True, dtype="f4", device=device), expected, equal_nan=True)
        window = {"window": (3, 5, 17, 31)}
        cut = np.s_[:, 5:36, 3:20]
        assert np.array_equal(ours.read(content=cogpu.MASK, device=device, **window), masks[cut])
        assert np.array_equal(ours.read(masked=True, dtype="f4", device=device, **window), expected[cut],
                              equal_nan=True)
        last = [len(masks)]
        assert np.array_equal(ours.read(content=cogpu.MASK, device=device, bands=last), masks[-1:])
        assert np.array_equal(ours.read(masked=True, dtype="f4", device=device, bands=last), expected[-1:],
                              equal_nan=True)
        results, failure = cogpu.read_many([(ours, {"content": cogpu.MASK}), (ours, {"content": cogpu.MASK, **window})],
                                           cogpu.shared_context(), device)
        assert failure is None and np.array_equal(results[0][1], masks) and np.array_equal(results[1][1], masks[cut])
        return masks, ours.info()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [".msk", ".MSK"])
def test_msk_made_by_gdal(tmp_path, device, name):
    path = save(tmp_path / "x.tif", pixels(3), tiled=True, blockxsize=16, blockysize=16)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as file:
        file.write_mask(mask_of())
    beside(path, ".msk").rename(beside(path, name))
    masks, info = same_masks(path, device)
    assert (masks == 0).any() and info.mask_source == cogpu.MASK_DIRECTORY
    with cogpu.open(path) as file:
        assert file.level(0).has_mask and file.level(0).mask_external
        assert [str(beside(path, name))] == file.sidecars()
    with cogpu.open(path, cogpu.OpenOptions(sidecars=cogpu.SIDECARS_NONE)) as file:
        assert file.info().mask_source == cogpu.MASK_NONE and not file.sidecars() and file.read(content=cogpu.MASK).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("flags", [{1: 2, 2: 2, 3: 2}, {1: 0, 2: 0, 3: 0}, {1: 2}, {2: 0}, {1: 0, 2: 2, 3: 0}, {}])
@pytest.mark.parametrize("nodata", [None, 7])
def test_msk_flags(tmp_path, device, flags, nodata):
    path = save(tmp_path / "x.tif", pixels(3), nodata=nodata)
    masks = np.stack([mask_of(), np.roll(mask_of(), 1, 1), np.roll(mask_of(), 2, 1)])
    save_mask(path, masks, flags)
    same_masks(path, device)


@pytest.mark.parametrize("dtype, options", [("uint8", {"nbits": 1}), ("uint16", {}), ("float32", {}),
                                            ("uint8", {"compress": "deflate", "tiled": True, "blockxsize": 16,
                                                       "blockysize": 16})])
@pytest.mark.parametrize("device", DEVICES)
def test_msk_kinds(tmp_path, device, dtype, options):
    path = save(tmp_path / "x.tif", pixels(2))
    save_mask(path, (mask_of() > 0)[None], {1: 2, 2: 2}, dtype, **options)
    same_masks(path, device)


def test_internal_mask_beats_msk(tmp_path):
    path = save(tmp_path / "x.tif", nodata=7)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as file:
        file.write_mask(mask_of())
    save_mask(path, 255 - mask_of()[None], {1: 2})
    same_masks(path)
    with cogpu.open(path) as file:
        assert file.level(0).has_mask and not file.level(0).mask_external


@pytest.mark.parametrize("external", ["none", "both", "image"])
@pytest.mark.parametrize("device", DEVICES)
def test_msk_of_overviews(tmp_path, device, external):
    """Masks of overviews: IFDs of the .msk, or its own .msk.ovr."""
    path = save(tmp_path / "x.tif", pixels(2))
    mask = save_mask(path, mask_of()[None], {1: 2, 2: 2})
    for name, beside_it in ((path, external != "none"), (mask, external == "both")):
        beside(path, ".msk.ovr").unlink(missing_ok=True)  # which GDAL makes with the .ovr
        with rasterio.Env(TIFF_USE_OVR=beside_it), rasterio.open(name, "r+") as file:
            file.build_overviews([2, 4], rasterio.enums.Resampling.nearest)
    assert beside(path, ".msk.ovr").exists() == (external == "both")
    same_masks(path, device)
    for level in (1, 2):
        with rasterio.open(path, overview_level=level - 1) as theirs, cogpu.open(path) as ours, \
                rasterio.open(mask, overview_level=level - 1) as mask_file:
            expected = np.repeat(np.where(mask_file.read() > 0, 255, 0), 2, 0)
            assert np.array_equal(np.where(theirs.read_masks() > 0, 255, 0), expected)
            assert np.array_equal(ours.read(level=level, content=cogpu.MASK, device=device), expected)
            nan = np.where(expected == 0, np.float32(np.nan), theirs.read().astype("f4"))
            assert np.array_equal(ours.read(level=level, masked=True, dtype="f4", device=device), nan,
                                  equal_nan=True)
            assert ours.level(level).mask_external


@pytest.mark.parametrize("device", DEVICES)
def test_msk_of_another_size(tmp_path, device):
    """As in GDAL: a larger one is read from its upper left, beyond a smaller one reads fail."""
    path = save(tmp_path / "x.tif")
    save_mask(path, mask_of((HEIGHT + 5, WIDTH + 6))[None], {1: 2})
    same_masks(path, device)
    save_mask(path, mask_of((20, 20))[None], {1: 2})
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        assert ".msk" in ours.info().warning
        assert np.array_equal(ours.read(device=device), theirs.read())
        with pytest.raises(rasterio.errors.RasterioIOError):
            theirs.read_masks()
        for request in ({"content": cogpu.MASK}, {"masked": True, "dtype": "f4"}):
            with pytest.raises(cogpu.CogpuError, match=".msk"):
                ours.read(device=device, **request)
        assert ours.read(content=cogpu.MASK, window=(0, 0, 20, 20), device=device).shape == (1, 20, 20)


@pytest.mark.parametrize("content", [b"", b"no TIFF", b"II*\0\xff\xff\xff\xff"])
def test_msk_that_is_no_tiff(tmp_path, content):
    path = save(tmp_path / "x.tif")
    beside(path, ".msk").write_bytes(content)
    with cogpu.open(path) as file:
        assert file.info().mask_source == cogpu.MASK_NONE and "x.tif.msk" in file.info().warning
        assert not file.sidecars()


def test_overviews_beside_are_ignored_where_there_are_others(tmp_path):
    path = save(tmp_path / "x.tif")
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], rasterio.enums.Resampling.nearest)
    beside(path, ".ovr").rename(tmp_path / "kept")
    with rasterio.open(path, "r+") as file:
        file.build_overviews([5], rasterio.enums.Resampling.nearest)
    (tmp_path / "kept").rename(beside(path, ".ovr"))
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        assert theirs.overviews(1) == [5] and [level.width for level in ours.levels()] == [WIDTH, WIDTH // 5]


def test_overviews_of_overviews(tmp_path):
    """x.tif.ovr.ovr: the overviews of the overview file."""
    path = save(tmp_path / "x.tif")
    for name in (path, beside(path, ".ovr")):
        with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(name, "r+") as file:
            file.build_overviews([2], rasterio.enums.Resampling.nearest)
    assert beside(path, ".ovr.ovr").exists()
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        assert len(theirs.overviews(1)) == 2 and ours.info().levels == 3
        with rasterio.open(path, overview_level=1) as level:
            assert np.array_equal(ours.read(level=2), level.read())


# ---- RPC -------------------------------------------------------------------------------------------------------------

SINGLES = ["ERR_BIAS", "ERR_RAND", "LINE_OFF", "SAMP_OFF", "LAT_OFF", "LONG_OFF", "HEIGHT_OFF", "LINE_SCALE",
           "SAMP_SCALE", "LAT_SCALE", "LONG_SCALE", "HEIGHT_SCALE"]
LISTS = ["LINE_NUM_COEFF", "LINE_DEN_COEFF", "SAMP_NUM_COEFF", "SAMP_DEN_COEFF"]
RPB_NAMES = ["errBias", "errRand", "lineOffset", "sampOffset", "latOffset", "longOffset", "heightOffset", "lineScale",
             "sampScale", "latScale", "longScale", "heightScale", "lineNumCoef", "lineDenCoef", "sampNumCoef",
             "sampDenCoef"]


def coefficients(seed):
    """Twelve numbers and four lists of twenty, different by `seed`."""
    numbers = (np.arange(92) * 0.125 + seed).tolist()
    return dict(zip(SINGLES, numbers)) | {name: numbers[12 + 20 * i:32 + 20 * i] for i, name in enumerate(LISTS)}


def rpc_lines(values, separator=": ", ending="\n"):
    lines = [f"{name}{separator}{values[name]} metres" for name in SINGLES if name in values]
    lines += [f"{name}_{i}{separator}{number!r}" for name in LISTS for i, number in enumerate(values[name], 1)]
    return ending.join(lines) + ending


def rpb_text(values):
    lines = ['satId = "XX";', 'bandId = "P";', "BEGIN_GROUP = IMAGE"]
    for name, rpb in zip(SINGLES + LISTS, RPB_NAMES):
        value = values.get(name)
        if isinstance(value, list):
            lines.append(f"\t{rpb} = (\n" + ",\n".join(f"\t\t\t{number!r}" for number in value) + ");")
        elif value is not None:
            lines.append(f"\t{rpb} = {value!r};")
    return "\n".join([*lines, "END_GROUP = IMAGE", "END;", ""])


def rpc_pam(values):
    return ('<Metadata domain="RPC">' + "".join(
        f'<MDI key="{name}">{" ".join(map(str, value)) if isinstance(value, list) else value}</MDI>'
        for name, value in values.items()) + "</Metadata>")


def same_rpc(path):
    """The numbers by GDAL, and by us; None where there are none."""
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        tags, rpc = theirs.tags(ns="RPC"), ours.info().rpc
        if not tags:
            assert rpc is None
            return None
        expected = [float(tags[name].split()[0]) if name in tags else np.nan for name in SINGLES]
        for name in LISTS:
            expected += map(float, tags[name].split())
        assert np.allclose(rpc, expected, rtol=1e-14, atol=0, equal_nan=True)
        assert not [item for item in ours.items() if item.domain == "RPC"]
        used = [name for name in ours.sidecars() if not name.endswith(".aux.xml")]
        assert set(used) <= set(theirs.files)
        return rpc[2]


def save_with_tag(path, values):
    tags = {name: " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in values.items()}
    save(path)
    with rasterio.open(path, "r+") as file:
        file.update_tags(ns="RPC", **tags)
    beside(path, ".aux.xml").unlink(missing_ok=True)
    return path


FORMS = {"x.rpb": rpb_text, "x.RPB": rpb_text, "x_rpc.txt": rpc_lines, "x_RPC.TXT": rpc_lines, "x.rpc": rpc_lines}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("without", [[], ["ERR_BIAS", "ERR_RAND"], ["LINE_OFF"]])
@pytest.mark.parametrize("tag", [False, True])
def test_rpc_file(tmp_path, name, without, tag):
    path = save_with_tag(tmp_path / "x.tif", coefficients(7)) if tag else save(tmp_path / "x.tif")
    values = {key: value for key, value in coefficients(3).items() if key not in without}
    (tmp_path / name).write_text(FORMS[name](values))
    same_rpc(path)


def test_rpc_precedence(tmp_path):
    """RPB, then _rpc.txt, then .rpc, then the tag, then PAM."""
    path = save(tmp_path / "x.tif")
    pam(path, rpc_pam(coefficients(1)))
    assert same_rpc(path) == 1.25
    save_with_tag(path, coefficients(2))
    pam(path, rpc_pam(coefficients(1)))
    assert same_rpc(path) == 2.25
    for seed, name in enumerate(["x.rpc", "x_RPC.TXT", "x.RPB"], 3):
        (tmp_path / name).write_text(FORMS[name](coefficients(seed)))
        assert same_rpc(path) == seed + 0.25
    (tmp_path / "x.RPB").unlink()
    (tmp_path / "x.IMD").write_text('version = "R";\nEND;\n')
    assert same_rpc(path) == 2.25


@pytest.mark.parametrize("text", [
    rpc_lines(coefficients(3), "="), rpc_lines(coefficients(3), ": ", "\r\r\n"), rpc_lines(coefficients(3)).lower(),
    rpc_lines(coefficients(3), " : "), " " + rpc_lines(coefficients(3)), "x" * 101 + "\n" + rpc_lines(coefficients(3)),
    "x\n" * 120 + rpc_lines(coefficients(3)), "", "LINE_OFF: 1\n"])
def test_rpc_lines(tmp_path, text):
    path = save(tmp_path / "x.tif")
    (tmp_path / "x_RPC.TXT").write_bytes(text.encode())
    same_rpc(path)


# ---- bad input -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text", [
    "", "<", "<PAMDataset>", "<PAMDataset><SRS></PAMDataset>", "<Other/>", "plain text", "<PAMDataset/><", "\0" * 100,
    '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]>'
    '<PAMDataset><Metadata><MDI key="A">&d;</MDI></Metadata></PAMDataset>',
    "<a>" * 100000, "<PAMDataset>" + "<a>" * 70 + "</a>" * 70 + "</PAMDataset>",
    "<PAMDataset><GeoTransform>nan,1,0,0,0,1</GeoTransform><PAMRasterBand band='nan'/></PAMDataset>",
    "<PAMDataset><GeoTransform>0,0,0,0,0,0</GeoTransform><GCPList><GCP Pixel='inf'/></GCPList></PAMDataset>",
    "<PAMDataset><PAMRasterBand band='1'><NoDataValue le_hex_equiv='zz'/><ColorTable><Entry/></ColorTable>"
    "<Scale>nan</Scale></PAMRasterBand></PAMDataset>"])
def test_hostile_pam(tmp_path, text):
    path = save(tmp_path / "x.tif", transform=from_origin(10, 20, 1, 1))
    beside(path, ".aux.xml").write_bytes(text.encode())
    with cogpu.open(path) as file:
        assert list(file.info().transform) == [10, 1, 0, 20, 0, -1]
        assert np.array_equal(file.read(), pixels()) and not file.items()[2:]


def test_hostile_pam_of_two_gigabytes(tmp_path):
    path = save(tmp_path / "x.tif")
    for name in (beside(path, ".aux.xml"), tmp_path / "x.tfw", tmp_path / "x.xml", tmp_path / "x_rpc.txt"):
        with name.open("wb") as file:
            file.write(b"<PAMDataset>" + b" " * 1000)
            file.truncate(2 << 30)
    with cogpu.open(path) as file:
        assert "the limit is" in file.info().warning and np.array_equal(file.read(), pixels())


def test_hostile_folders_and_pipes(tmp_path):
    path = save(tmp_path / "x.tif")
    for ending in (".aux.xml", ".msk"):
        beside(path, ending).mkdir()
    subprocess.run(["mkfifo", beside(path, ".ovr"), tmp_path / "x.tfw"], check=True)
    with cogpu.open(path) as file:
        assert np.array_equal(file.read(), pixels()) and ".msk" in file.info().warning


def test_large_folder_is_probed(tmp_path):
    """Beyond 1000 entries names are tried, in lower and upper case, as GDAL does."""
    path = save(tmp_path / "x.tif")
    for number in range(1100):
        (tmp_path / str(number)).touch()
    for ending in ("TFW", "tfw"):
        world(tmp_path / f"x.{ending}", 2, 0, 0, -2, 0, 0)
        assert same_georeferencing(path)[0]
        (tmp_path / f"x.{ending}").unlink()


# ---- the command line ------------------------------------------------------------------------------------------------

def run(*words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)


def test_info_tells_sidecars(tmp_path):
    path = save(tmp_path / "x.tif", pixels(2))
    save_mask(path, mask_of()[None], {1: 2, 2: 2})
    pam(path, srs("EPSG:25832") + BANDS + rpc_pam(coefficients(1)))
    told = json.loads(run("info", "--json", path).stdout)
    assert told["sidecars"] == [str(beside(path, ".msk")), str(beside(path, ".aux.xml"))]
    assert told["levels"][0]["mask_external"] and told["crs"]["external"] and told["crs"]["code"] == 25832
    assert told["bands"][0]["description"] == "red" and told["mask_source"] == "mask" and len(told["rpc"]) == 92
    text = run("info", path).stdout
    assert ".aux.xml" in text and "of the .msk file" in text and "stated by a sidecar" in text
    told = json.loads(run("info", "--json", "--no-sidecars", path).stdout)
    assert not told["sidecars"] and told["crs"] is None and told["mask_source"] == "none"


def test_convert_carries_sidecars(tmp_path):
    path = save(tmp_path / "x.tif", pixels(3))
    save_mask(path, mask_of()[None], {1: 2, 2: 2, 3: 2})
    world(tmp_path / "x.tfw", 2, 0, 0, -2, 100, 200)
    pam(path, srs("EPSG:25832") + METADATA + BANDS)
    (tmp_path / "x_RPC.TXT").write_text(rpc_lines({key: value for key, value in coefficients(3).items()
                                                   if not key.startswith("ERR")}))
    out = tmp_path / "folder" / "out.tif"
    out.parent.mkdir()
    done = run("convert", path, out)
    assert done.returncode == 0, done.stderr
    assert [name.name for name in out.parent.iterdir()] == ["out.tif"]
    with rasterio.open(path) as before, rasterio.open(out) as after:
        assert np.array_equal(before.read(), after.read())
        assert np.array_equal(before.read_masks() > 0, after.read_masks() > 0)
        assert (before.transform, before.crs) == (after.transform, after.crs)
        kept = {name: value for name, value in after.tags().items() if not name.startswith("AREA_OR_POINT")}
        assert kept == {name: value for name, value in before.tags().items() if name != "AREA_OR_POINT"}
        assert before.tags(2) == after.tags(2) and before.tags(ns="OTHER") == after.tags(ns="OTHER")
        assert before.descriptions == after.descriptions and before.units == after.units
        assert before.scales == after.scales and before.offsets == after.offsets
        assert before.rpcs.line_num_coeff == after.rpcs.line_num_coeff
        assert after.tags(ns="RPC")["ERR_BIAS"] == "-1"
    with rasterio.open(path) as before, rasterio.open(tmp_path / "x.tif", sharing=False):
        assert before.rpcs


def test_convert_of_different_nodata_leaves_it_out(tmp_path):
    path = save(tmp_path / "x.tif", pixels(2))
    nodata_pam(path, [value("7"), value("9")])
    done = run("convert", path, tmp_path / "out.tif")
    assert done.returncode == 0 and "nodata" in done.stderr
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.nodatavals == (None, None)
    done = run("convert", "--band", "2", path, tmp_path / "out.tif")
    with rasterio.open(tmp_path / "out.tif") as file:
        assert done.returncode == 0 and file.nodata == 9


def test_sources_in_memory_have_no_sidecars(tmp_path):
    path = save(tmp_path / "x.tif")
    save_mask(path, mask_of()[None], {1: 2})
    with cogpu.open_memory(path.read_bytes()) as file:
        assert not file.sidecars() and file.info().mask_source == cogpu.MASK_NONE
    shutil.copy(path, tmp_path / "y.tif")
    with cogpu.open(tmp_path / "y.tif") as file:
        assert not file.sidecars()
