"""Files with sidecars: what we hand to xarray beside what rioxarray hands to it, of files made by GDAL and of those of
the corpus that have some."""

import pickle

import numpy as np
import pytest
import rasterio
from conftest import CORPUS
from rasterio.control import GroundControlPoint
from rasterio.transform import from_origin
from test_rioxarray import OURS_ALONE, assert_same_names, assert_same_place, same_value

import cogpu
from cogpu.read import open_geotiff

xr = pytest.importorskip("xarray")
rioxarray = pytest.importorskip("rioxarray")

pytestmark = pytest.mark.filterwarnings("ignore")

SHAPE = (40, 50)
RPC_NAMES = ["LINE_OFF", "SAMP_OFF", "LAT_OFF", "LONG_OFF", "HEIGHT_OFF", "LINE_SCALE", "SAMP_SCALE", "LAT_SCALE",
             "LONG_SCALE", "HEIGHT_SCALE"]
RPC_LISTS = ["LINE_NUM_COEFF", "LINE_DEN_COEFF", "SAMP_NUM_COEFF", "SAMP_DEN_COEFF"]
RPC = "".join(f"{name}: {i}.5\n" for i, name in enumerate(RPC_NAMES, 1)) + "".join(
    f"{name}_{i}: {i * 0.25}\n" for name in RPC_LISTS for i in range(1, 21))


def save(path, bands=1, dtype="uint8", **options):
    array = (np.arange(bands * SHAPE[0] * SHAPE[1]).reshape(bands, *SHAPE) % 251).astype(dtype)
    with rasterio.open(path, "w", driver="GTiff", height=SHAPE[0], width=SHAPE[1], count=bands, dtype=dtype,
                       **options) as file:
        file.write(array)
    beside(path, ".aux.xml").unlink(missing_ok=True)
    return path


def beside(path, ending):
    return path.with_name(path.name + ending)


def pam(path, content):
    beside(path, ".aux.xml").write_text(f"<PAMDataset>{content}</PAMDataset>")


def band(number, content):
    return f'<PAMRasterBand band="{number}">{content}</PAMRasterBand>'


# ---- files -----------------------------------------------------------------------------------------------------------

def made_mask(path):
    save(path, 3, transform=from_origin(10, 20, 1, 1), crs="EPSG:32633")
    rows, columns = np.indices(SHAPE)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as file:
        file.write_mask((rows + columns) % 3 > 0)
    assert beside(path, ".msk").exists()


def made_mask_and_nodata(path):
    made_mask(path)
    with rasterio.open(path, "r+") as file:
        file.nodata = 7


def made_statistics(path):
    save(path, 2, "float32", transform=from_origin(10, 20, 1, 1), crs="EPSG:32633", nodata=-9999)
    with rasterio.open(path) as file:
        file.stats(approx=False)
    pam(path, "<Metadata><MDI key='A'>1</MDI><MDI key='B'>{1,2,3}</MDI></Metadata>" + band(
        1, "<Metadata><MDI key='STATISTICS_MINIMUM'>0.5</MDI><MDI key='STATISTICS_APPROXIMATE'>YES</MDI></Metadata>"))


def made_pam_place(path):
    save(path, crs="EPSG:32633", transform=from_origin(10, 20, 1, 1))
    pam(path, "<SRS>EPSG:25832</SRS><GeoTransform>1,2,0,3,0,-4</GeoTransform>")


def made_pam_wkt(path):
    save(path)
    wkt = rasterio.CRS.from_epsg(3035).to_wkt().replace("<", "&lt;")
    pam(path, f'<SRS dataAxisToSRSAxisMapping="2,1">{wkt}</SRS><GeoTransform>1,2,0,3,0,-4</GeoTransform>')


def made_gcps(path):
    save(path, gcps=[GroundControlPoint(0, 0, 1, 2), GroundControlPoint(5, 5, 3, 4)], crs="EPSG:4326")
    pam(path, '<GCPList Projection="EPSG:3857"><GCP Id="a" Info="b" Pixel="1" Line="2" X="3" Y="4" Z="5"/>'
              '<GCP Id="c" Pixel="11" Line="2" X="13" Y="4"/></GCPList>')


def made_bands(path):
    save(path, 2, "int16")
    pam(path, band(1, "<Description>red</Description><UnitType>K</UnitType><Scale>0.5</Scale>") +
        band(2, "<Description>blue</Description><Offset>7</Offset><Scale>2</Scale>"))


def made_one_nodata(path):
    save(path, 2)
    pam(path, band(1, "<NoDataValue>7</NoDataValue>") + band(2, "<NoDataValue>7</NoDataValue>"))


def made_own_nodata(path):
    save(path, 3, transform=from_origin(10, 20, 1, 1))
    pam(path, band(1, "<NoDataValue>7</NoDataValue>") + band(2, "<NoDataValue>9</NoDataValue>"))


def made_tags(path):
    save(path, crs="EPSG:32633")
    with rasterio.open(path, "r+") as file:
        file.update_tags(TIFFTAG_SOFTWARE="tiff", A="tiff", AREA_OR_POINT="Point")
    beside(path, ".aux.xml").unlink(missing_ok=True)
    pam(path, "<Metadata><MDI key='TIFFTAG_SOFTWARE'>pam</MDI><MDI key='A'>pam</MDI><MDI key='Empty'/></Metadata>"
              "<Metadata domain='OTHER'><MDI key='C'>d</MDI></Metadata>")


def made_world(path):
    save(path, crs="EPSG:32633")
    path.with_suffix(".tfw").write_text("2\n0\n0\n-2\n100\n200\n")


def made_rpc(path):
    save(path)
    path.with_name(path.stem + "_RPC.TXT").write_text(RPC)


def made_overviews(path):
    save(path)
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(path, "r+") as file:
        file.build_overviews([2, 4], rasterio.enums.Resampling.nearest)


MADE = {name.removeprefix("made_"): make for name, make in globals().items() if name.startswith("made_")}


@pytest.fixture(params=MADE)
def path(request, tmp_path):
    MADE[request.param](tmp_path / "x.tif")
    return tmp_path / "x.tif"


def sides_of(path):
    """Names beside a file of the corpus that GDAL reads with it."""
    with rasterio.open(path) as file:
        return [name for name in file.files if not name.endswith(path.name)]


def of_corpus():
    """Files of the corpus that have a name beside them that begins as theirs."""
    folder = CORPUS / "good"
    names = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    stems = {}
    for name in names:
        stems.setdefault(name.rsplit(".", 1)[0].lower(), []).append(name)
    return [name for name in names if len(stems[name.rsplit(".", 1)[0].lower()]) > 1 or
            any(f"{name}{ending}" in names for ending in (".aux.xml", ".msk", ".ovr"))]


# ---- the comparison --------------------------------------------------------------------------------------------------

def theirs_of(path, **options):
    with rioxarray.open_rasterio(path, **options) as array:
        return array.load()


def compare(path):
    array, expected = open_geotiff(path), theirs_of(path)
    np.testing.assert_array_equal(array.values, expected.values)
    assert array.dtype == expected.dtype
    assert_same_place(array, expected, set())
    assert_same_names(array.attrs, expected.attrs, OURS_ALONE)
    assert same_value(array.rio.nodata, expected.rio.nodata)
    masked, expected = open_geotiff(path, masked=True), theirs_of(path, masked=True)
    np.testing.assert_array_equal(masked.values, expected.values)
    assert masked.dtype == expected.dtype
    unscaled, expected = open_geotiff(path, unscale=True), theirs_of(path, mask_and_scale=True)
    np.testing.assert_array_equal(unscaled.values, expected.values)
    with rasterio.open(path) as theirs, cogpu.open(path) as ours:
        assert sorted(ours.files) == sorted(theirs.files)
        assert [None if np.isnan(value) else value for value in ours.nodatavals if value is not None] == [
            None if np.isnan(value) else value for value in theirs.nodatavals if value is not None]


def test_sidecars_as_rioxarray(path):
    compare(path)


@pytest.mark.parametrize("name", of_corpus())
def test_sidecars_of_the_corpus_as_rioxarray(name):
    path = CORPUS / "good" / name
    if not sides_of(path):
        pytest.skip("GDAL reads nothing beside it")
    compare(path)


def test_sidecars_of_the_corpus_are_found():
    """The search above sees the files beside a file: a list that is empty by mistake compares nothing."""
    folder = CORPUS / "good"
    if not folder.exists():
        pytest.skip(f"no corpus at {CORPUS}")
    endings = (".aux.xml", ".msk", ".ovr", ".tfw", ".wld", ".rpb", "_rpc.txt", ".rpc")
    assert bool([entry for entry in folder.iterdir() if entry.name.lower().endswith(endings)]) <= bool(of_corpus())


# ---- callers of sidecars --------------------------------------------------------------------------------------------

def test_sidecars_can_be_left_out(tmp_path):
    path = tmp_path / "x.tif"
    made_mask(path)
    assert np.isnan(open_geotiff(path, masked=True)).any()
    assert not np.isnan(open_geotiff(path, masked=True, sidecars=False)).any()
    lazy = xr.open_dataset(path, engine="cogpu", sidecars=False).band_data
    assert not np.isnan(pickle.loads(pickle.dumps(lazy))).any()
    assert np.isnan(xr.open_dataset(path, engine="cogpu").band_data).any()
    with cogpu.open(path, sidecars=False) as file:
        assert file.files == [str(path)] and not file.levels[0].mask_external
    for wrong in (1, "yes"):
        with pytest.raises(TypeError, match="sidecars"):
            cogpu.open(path, sidecars=wrong)


@pytest.mark.parametrize("device", ["cpu", "emu"])
def test_sidecar_mask_is_read_on_devices(tmp_path, device):
    path = tmp_path / "x.tif"
    made_mask(path)
    with rasterio.open(path) as file:
        expected = file.read_masks() == 0
    with cogpu.open(path) as file:
        assert np.array_equal(np.asarray(file.read_mask(device=device)) == 0, expected)
        assert np.array_equal(np.isnan(np.asarray(file.read(device=device, masked=True))), expected)


def test_sidecar_that_comes_later_is_seen(tmp_path):
    """Files are kept open by path: one beside them counts as a change."""
    path = save(tmp_path / "x.tif")
    assert open_geotiff(path).rio.crs is None
    pam(path, "<SRS>EPSG:25832</SRS>")
    assert open_geotiff(path).rio.crs.to_epsg() == 25832
    beside(path, ".aux.xml").unlink()
    assert open_geotiff(path).rio.crs is None


def test_sidecar_metadata_survives_a_round_trip(tmp_path):
    """Per band items and other domains of .aux.xml are items of the file."""
    path = save(tmp_path / "x.tif", 2)
    pam(path, "<Metadata domain='OTHER'><MDI key='C'>d</MDI></Metadata>" + band(
        2, "<Metadata><MDI key='STATISTICS_MINIMUM'>3</MDI></Metadata>"))
    with cogpu.open(path) as file:
        assert {(item["domain"], item["name"], item["value"], item["band"]) for item in file.metadata_items} == {
            ("OTHER", "C", "d", 0), ("", "STATISTICS_MINIMUM", "3", 2)}
