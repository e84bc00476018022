"""Real files: the good ones give GDAL's pixels and facts, the bad ones a clear refusal and no harm."""

import csv
import hashlib
import re
import subprocess
import sys

import cogpu_ctypes as cogpu
import pytest
import rasterio
from conftest import BIN, CORPUS, DEVICES, SAN_BIN, TIME_FACTOR, on_device

# Good files that are known not to give GDAL's pixels, and why. Five at most: more would be a policy.
EXCEPTIONS = {
    "gdal__autotest_gcore_data_thunder.tif": "ThunderScan, a scanner's codec of 1986, is not read",
    "imagecodecs__tests_data_tiff_rgb.tiled.jpeg.u2.tif": "JPEG of 12 bits needs another libjpeg",
    "gdal__autotest_gcore_data_cog_strile_arrays_zeroified_when_possible.tif":
        "byte counts of 0 behind valid leaders: the leaders count here, GDAL's ordinary path reads zeros",
    "gdal__autotest_gcore_data_size_of_stripbytecount_at_1_and_lower_than_stripcount.tif":
        "one offset for two strips: the second strip is corrupt here and zeros in GDAL",
}

# Files whose coordinate system is not the same as GDAL's to GDAL's own comparison, and why.
CRS_EXCEPTIONS = {
    "gdal__autotest_gcore_data_WGS_1984_Web_Mercator.tif": "GDAL knows ESRI's name for Web Mercator",
    "gdal__autotest_gcore_data_gtiff_epsg_2193_override.tif": "an ellipsoid that differs in the 12th digit",
    "gdal__autotest_gcore_data_gtiff_esri_pcs_gcs_ellipsoid_names.tif": "GDAL knows ESRI's names of systems",
    "gdal__autotest_gcore_data_tiff_vertcs_scale_offset.tif": "GDAL leaves the vertical part out",
    "gdal__autotest_gcore_data_ycbcr_with_mask.tif": "the same but for the name of the metre",
    "libgeotiff__libgeotiff_test_data_ProjectedCSTypeGeoKey_3410_lambert_cylindrical_equal_area.tif":
        "releases of EPSG's registry differ in the datum",
    "libgeotiff__libgeotiff_test_data_oblique_mercator_laborde.tif": "the same but for the order of axes",
}
# Files that name a code and then describe something else: the code is told as the file states it.
OVERRIDDEN = {"gdal__autotest_gcore_data_epsg_2853_with_us_feet.tif"}

DTYPES = {"Byte": "u1", "Int8": "i1", "UInt16": "u2", "Int16": "i2", "UInt32": "u4", "Int32": "i4",
          "UInt64": "u8", "Int64": "i8", "Float16": "f2", "Float32": "f4", "Float64": "f8",
          "CInt16": cogpu.CI16, "CInt32": cogpu.CI32, "CFloat32": "c8", "CFloat64": "c16"}
CODECS = {"NONE": {1}, "DEFLATE": {8}, "DEFLATE(old 32946)": {32946}, "LZW": {5}, "JPEG": {7},
          "LERC": {34887},
          "ZSTD": {50000}, "PACKBITS": {32773}, "WEBP": {50001}, "LZMA": {34925}, "CCITTFAX3": {3},
          "CCITTFAX4": {4}, "THUNDERSCAN": {32809}}
# GDAL's mask flags. 0 is a mask directory with a band for each band of the image.
VALIDITY = {"1": cogpu.MASK_NONE, "0": cogpu.MASK_DIRECTORY, "2": cogpu.MASK_DIRECTORY, "6": cogpu.MASK_ALPHA,
            "8": cogpu.MASK_NODATA, "10": cogpu.MASK_NODATA}


def table(name):
    path = CORPUS / name
    if not path.exists():
        reason = f"no corpus at {CORPUS} (set COGPU_CORPUS)"
        return [pytest.param(None, id="corpus-absent", marks=pytest.mark.skip(reason=reason))]
    with path.open(newline="") as rows:
        return [pytest.param(row, id=row["file"]) for row in csv.DictReader(rows, delimiter="\t")]


def checksum(text):
    """The hash in what `cogpu checksum` prints."""
    found = re.findall(r"\b[0-9a-f]{64}\b", text)
    return found[0] if found else None


@pytest.mark.no_library
def test_exceptions_stay_few():
    assert len(EXCEPTIONS) <= 5


# ---- good files --------------------------------------------------------------------------------

@pytest.mark.parametrize("row", table("good.tsv"))
def test_good_pixels(row, device, run):
    done = run(BIN, "checksum", CORPUS / "good" / row["file"], *on_device(device),
               timeout=10 if device == "cpu" else 60)
    if row["file"] in EXCEPTIONS:
        assert checksum(done.stdout) != row["sha256_of_pixels"], "it reads: no exception is needed"
        pytest.xfail(EXCEPTIONS[row["file"]])
    assert done.code == 0, done.stderr
    assert checksum(done.stdout) == row["sha256_of_pixels"]


@pytest.mark.parametrize("row", table("good.tsv"))
def test_good_facts(row):
    with cogpu.open(CORPUS / "good" / row["file"]) as file:
        info = file.info()
        assert (info.width, info.height, info.bands) == tuple(int(row[k])
                                                              for k in ("width", "height", "bands"))
        assert info.dtype == DTYPES[row["dtype"]]
        assert info.compression in CODECS[row["compression"]]
        assert info.predictor == int(row["predictor"])
        assert info.layout == {"stripped": cogpu.STRIPS, "tiled": cogpu.TILES}[row["layout"]]
        assert bool(info.interleave) == (row["planar"] == "separate" and info.bands > 1)
        assert bool(info.big_endian) == (row["byte_order"] == "BE")
        assert bool(info.bigtiff) == (row["bigtiff"] == "1")
        if row["photometric"] != "None":
            assert info.photometric == int(row["photometric"])
        assert f"{info.block_width}x{info.block_height}" == row["block"]
        assert info.bits == int(row["bits"])
        assert bool(info.ghost & 1) == (row["ghost"] == "1")


@pytest.mark.parametrize("row", table("good.tsv"))
def test_good_meaning(row):
    """Overviews, mask, nodata, scale and offset."""
    with cogpu.open(CORPUS / "good" / row["file"]) as file:
        info, band = file.info(), file.band(1)
        assert info.levels - 1 == int(row["overviews"])
        assert info.mask_source == VALIDITY[row["mask"]]
        if row["nodata"]:
            assert same_number(info.nodata, float(row["nodata"]))
        else:
            assert not info.nodata.text or not info.nodata.matches
        assert band.scale == float(row["scale"] or 1)
        assert band.offset == float(row["offset"] or 0)


def same_number(nodata, expected):
    """GDAL also reports what no sample can equal; such a value needs to be told in the text alone."""
    stated = nodata.value if nodata.matches else float(nodata.text)
    return stated == expected or (stated != stated and expected != expected)


def gdal_crs(path):
    """GDAL's coordinate system of an image, or of its control points."""
    with rasterio.open(path) as file:
        return file.crs or file.gcps[1]


def reference_codes(row, crs):
    """A code that the keys state is the one that GDAL finds; compound systems have codes of their own."""
    if crs.authority and not crs.vertical and row["file"] not in OVERRIDDEN and row["epsg"].startswith("EPSG"):
        assert f"{crs.authority}:{crs.code}" == row["epsg"]


@pytest.mark.parametrize("row", table("good.tsv"))
def test_good_crs(row):
    path = CORPUS / "good" / row["file"]
    expected = gdal_crs(path)
    with cogpu.open(path) as file:
        try:
            reference_codes(row, file.crs())
        except cogpu.CogpuError as error:
            assert error.status == cogpu.NOT_FOUND and not expected
            return
        try:
            found = rasterio.crs.CRS.from_wkt(file.wkt())
        except cogpu.CogpuError as error:
            assert error.status == cogpu.UNSUPPORTED
            assert not expected or expected.to_wkt().startswith("LOCAL_CS")
            return
    if row["file"] in CRS_EXCEPTIONS:
        assert found != expected, "they are the same: no exception is needed"
        pytest.xfail(CRS_EXCEPTIONS[row["file"]])
    assert found == expected


# ---- bad files ---------------------------------------------------------------------------------

GDAL_PIXELS = """
import hashlib, resource, sys, warnings
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
warnings.simplefilter("ignore")
import rasterio
with rasterio.open(sys.argv[1], driver="GTiff") as file:
    print(hashlib.sha256(file.read().tobytes()).hexdigest())
"""


def gdal_checksum(path):
    """The hash of GDAL's pixels, or None where GDAL refuses; in a process of its own, for safety."""
    done = subprocess.run([sys.executable, "-c", GDAL_PIXELS, path], capture_output=True, text=True)
    return checksum(done.stdout) if done.returncode == 0 else None


def expected_refusal(done):
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert len(lines[0]) > 20 and re.search(r"[a-z]{3}", lines[0]), "an error that says nothing"
    assert done.stdout.strip() == ""


@pytest.fixture(scope="module")
def most_mib(run):
    """What a bad file may take, by device. A GPU's driver takes 200 MiB and more before the first byte is read:
    there it is what a small valid file takes, and little beside."""
    if "cuda" not in DEVICES:
        return dict.fromkeys(DEVICES, 256)
    valid = run(BIN, "checksum", CORPUS / "good" / "gdal__autotest_gdrivers_data_utm.tif", *on_device("cuda"))
    assert valid.code == 0, valid.stderr
    return dict.fromkeys(DEVICES, 256) | {"cuda": valid.mib + 64}


@pytest.mark.parametrize("row", table("bad.tsv"))
def test_bad_file_is_refused_or_read_as_gdal_does(row, device, run, most_mib):
    path = CORPUS / "bad" / row["file"]
    done = run(BIN, "checksum", path, *on_device(device))
    assert done.code in (0, 1), f"{done.code} {done.stderr}"
    assert done.seconds < 2 * TIME_FACTOR
    assert done.mib < most_mib[device]
    if done.code == 1:
        expected_refusal(done)
    else:
        assert checksum(done.stdout) == gdal_checksum(path)


@pytest.mark.parametrize("command", [["info"], *(["checksum", *on_device(device)] for device in DEVICES)], ids=" ".join)
@pytest.mark.parametrize("row", table("bad.tsv"))
def test_bad_file_under_sanitizers(row, command, run):
    if not SAN_BIN.exists():
        pytest.skip(f"{SAN_BIN} has not been built (set COGPU_SAN_BIN)")
    done = run(SAN_BIN, *command, CORPUS / "bad" / row["file"])
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    assert done.code in (0, 1), f"{done.code} {done.stderr}"
    assert done.seconds < 2 * TIME_FACTOR


# ---- good files, cut or with flipped bits ------------------------------------------------------

def mutated(data, seed):
    """A file with a few bytes changed or its end cut off; the same for the same seed."""
    state = hashlib.sha256(f"{seed}:{len(data)}".encode()).digest()
    data = bytearray(data)
    head = min(len(data), 512)
    for i in range(0, 24, 6):
        reach = head if state[i] & 1 else len(data)
        place = int.from_bytes(state[i + 1:i + 5], "little") % reach
        data[place] = state[i + 5] if state[i] & 2 else data[place] ^ 1 << (state[i + 5] & 7)
    return bytes(data[:len(data) * state[31] // 256]) if state[30] < 48 else bytes(data)


@pytest.mark.parametrize("row", [row for row in table("good.tsv")
                                 if row.values[0] is None or int(row.values[0]["bytes"]) < 40_000])
def test_mutated_good_file_survives(row):
    """In this process: a crash here is a crash of the test run, which cannot be overlooked."""
    data = (CORPUS / "good" / row["file"]).read_bytes()
    options = cogpu.limited(block_bytes=1 << 24, working_memory_bytes=1 << 26)
    for seed in range(6):
        try:
            with cogpu.open_memory(mutated(data, seed), options) as file:
                info = file.info()
                if info.width * info.height * info.bands * info.dtype.itemsize <= 1 << 24:
                    file.read(threads=1)
        except cogpu.CogpuError as error:
            assert error.message
