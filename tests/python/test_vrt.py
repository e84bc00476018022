"""VRTs that GDAL's own programs make, and VRTs written by hand, beside GDAL's pixels."""

import cogpu_ctypes as cogpu
import gdal_programs
import numpy as np
import pytest
import rasterio
from rasterio.enums import Resampling

METHODS = ["nearest", "bilinear", "cubic", "cubicspline", "lanczos", "average", "rms", "mode"]

pytestmark = pytest.mark.skipif(not gdal_programs.LIBRARY, reason="rasterio brings no GDAL")


def write(path, array, left=0, top=300, pixel=10, mask=None, colours=None, **options):
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(path, "w", driver="GTiff", width=array.shape[2], height=array.shape[1],
                           count=array.shape[0], dtype=array.dtype, crs="EPSG:32632",
                           transform=rasterio.Affine(pixel, 0, left, 0, -pixel, top), **options) as file:
            file.write(array)
            if mask is not None:
                file.write_mask(mask)
            if colours:
                file.write_colormap(1, colours)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("vrt"), np.random.default_rng(7)

    def noise(bands=3, height=30, width=40):
        return random.integers(1, 255, (bands, height, width)).astype("u1")

    def with_hole(value, rows):
        array = noise()
        array[:, rows, 5:20] = value
        return array

    def with_alpha():
        array = noise(4)
        array[3] = (array[3] > 120) * 255
        return array

    made = {"plain1": (noise(),), "plain2": (noise(), 250, 250), "plain3": (noise(), 103, 333),
            "coarse": (noise(), 200, 280, 15)}
    paths = {name: write(folder / f"{name}.tif", *values) for name, values in made.items()}
    for name, array, left, top, nodata in [("nodata1", with_hole(9, slice(5, 10)), 0, 300, 9),
                                           ("nodata2", with_hole(9, slice(8, 20)), 150, 280, 9),
                                           ("nodata3", with_hole(7, slice(8, 20)), 150, 180, 7)]:
        paths[name] = write(folder / f"{name}.tif", array, left, top, nodata=nodata)
    for name, left in [("alpha1", 0), ("alpha2", 155)]:
        paths[name] = write(folder / f"{name}.tif", with_alpha(), left, photometric="RGB")
    for name, left in [("mask1", 0), ("mask2", 200)]:
        paths[name] = write(folder / f"{name}.tif", noise(), left, mask=random.random((30, 40)) > 0.3)
    for dtype in ("int16", "uint16", "int32", "float32", "float64"):
        array = (random.normal(size=(1, 30, 40)) * 100).astype(dtype)
        array[0, 4:7, 5:9] = 99
        paths[dtype] = write(folder / f"{dtype}.tif", array, nodata=99 if dtype != "uint16" else None)
    for dtype in ("complex64", "complex128"):
        array = random.normal(size=(2, 30, 40)) * 100 + 1j * random.normal(size=(2, 30, 40)) * 100
        paths[dtype] = write(folder / f"{dtype}.tif", array.astype(dtype))
    paths["bits12"] = write(folder / "bits12.tif", random.integers(0, 4096, (1, 30, 40)).astype("u2"), nbits=12)
    paths["palette"] = write(folder / "palette.tif", noise(1), photometric="palette",
                             colours={i: (i, 255 - i, i * 7 % 256, 255) for i in range(256)})
    paths["big"] = write(folder / "big.tif", noise(2, 300, 400), 0, 3000)
    with rasterio.open(paths["big"], "r+") as file:
        file.build_overviews([2, 4, 8], Resampling.nearest)
    paths["folder"] = folder
    return paths


def agree(path, tolerance=0, inside=False):
    """The pixels of all bands: equal, or as near as GDAL's rounding to float permits. GDAL reads band by band: reads of
    all at once round in other places. With `inside`, those of a window of one source too."""
    with rasterio.open(path) as file:
        expected = np.stack([file.read(band) for band in file.indexes])
    with cogpu.open(path) as file:
        found = file.read()
        part = file.read(window=(2, 3, 9, 7)) if inside else None
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if inside:
        np.testing.assert_array_equal(part, found[:, 3:10, 2:11])
    if found.dtype.kind == "c":
        return np.testing.assert_allclose(found, expected, tolerance, tolerance)
    wide, right = found.astype("f8"), expected.astype("f8")
    differ = ~((np.abs(wide - right) <= tolerance) | (wide == right) | (np.isnan(wide) & np.isnan(right)))
    assert not differ.any(), f"{differ.sum()} of {differ.size} samples differ"


def rounding(name):
    return 1e-2 if name.startswith("float") else 1


# ---- gdalbuildvrt ----

MOSAICS = [["plain1", "plain2", "plain3"], ["plain1", "coarse"], ["nodata1", "nodata2", "nodata3"],
           ["alpha1", "alpha2"], ["mask1", "mask2"], ["plain3", "plain1"], ["mask1"]]
EXACT = [[], ["-resolution", "highest"], ["-resolution", "lowest"], ["-resolution", "average"], ["-separate"],
         ["-addalpha"], ["-srcnodata", "9"], ["-vrtnodata", "3"], ["-srcnodata", "9 8 7", "-vrtnodata", "1 2 3"],
         ["-hidenodata", "-vrtnodata", "5"], ["-te", "57", "-93", "411", "222"], ["-tap", "-tr", "12", "12"],
         ["-b", "2", "-b", "1"], ["-ignore_srcmaskband"]]
RESAMPLED = [["-tr", "7", "7", "-r", "bilinear"], ["-tr", "7", "7", "-r", "cubic"], ["-tr", "21", "21", "-r", "mode"],
             ["-tr", "17", "17", "-r", "lanczos"], ["-tr", "13", "19", "-r", "cubicspline"],
             ["-tr", "23", "23", "-r", "rms"], ["-tr", "5", "5", "-r", "average"]]


@pytest.mark.parametrize("options", EXACT + RESAMPLED, ids=" ".join)
@pytest.mark.parametrize("names", MOSAICS, ids="+".join)
def test_built(files, names, options):
    path = files["folder"] / "built.vrt"
    path.unlink(missing_ok=True)
    if not gdal_programs.build_vrt(path, [files[name] for name in names], *options):
        pytest.skip("GDAL refuses these options")
    agree(path, 1 if "-r" in options else 0, inside=True)


# ---- gdal_translate ----

TRANSLATED = ["plain1", "nodata1", "alpha1", "mask1", "int16", "uint16", "int32", "float32", "float64", "palette",
              "big"]
CHANGES = [[], ["-srcwin", "3", "4", "20", "15"], ["-srcwin", "-3", "-4", "50", "40"],
           ["-projwin", "33", "277", "222", "111"], ["-scale"], ["-scale", "0", "100", "20", "200"],
           ["-scale", "0", "255", "0", "1", "-ot", "Float32"], ["-exponent", "0.5", "-scale", "0", "255", "0", "255"],
           ["-a_nodata", "3"], ["-b", "1", "-b", "1"], ["-b", "mask"], ["-b", "1", "-mask", "1"], ["-ot", "Byte"],
           ["-ot", "Int16"], ["-ot", "UInt32"], ["-ot", "Float64"], ["-a_ullr", "0", "10", "10", "0"]]


@pytest.mark.parametrize("options", CHANGES, ids=" ".join)
@pytest.mark.parametrize("name", TRANSLATED)
def test_translated(files, name, options):
    path = files["folder"] / "translated.vrt"
    if not gdal_programs.translate(path, files[name], *options):
        pytest.skip("GDAL refuses these options")
    agree(path)


@pytest.mark.parametrize("size", [[], ["-outsize", "90", "70"]], ids=str)
@pytest.mark.parametrize("level", ["NONE", "0", "1", "AUTO-1"])
def test_one_overview(files, level, size):
    path = files["folder"] / "one.vrt"
    assert gdal_programs.translate(path, files["big"], "-ovr", level, *size)
    agree(path, inside=not size)


def test_an_overview_that_a_source_lacks(files):
    path = files["folder"] / "one.vrt"
    assert gdal_programs.translate(path, files["big"], "-ovr", "1")
    path.write_text(path.read_text().replace("1 only", "7 only"))
    with cogpu.open(path) as file, pytest.raises(cogpu.CogpuError, match="overview 7 .* the image has 3"):
        file.read()


@pytest.mark.parametrize("expanded", ["rgb", "rgba"])
def test_expanded_palette(files, expanded):
    path = files["folder"] / "expanded.vrt"
    assert gdal_programs.translate(path, files["palette"], "-expand", expanded)
    agree(path)


@pytest.mark.parametrize("size", [(13, 11), (90, 70), (20, 15)], ids=str)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["plain1", "nodata1", "int16", "float32", "big"])
def test_resized(files, name, method, size):
    path = files["folder"] / "resized.vrt"
    assert gdal_programs.translate(path, files[name], "-outsize", *map(str, size), "-r", method)
    if name == "nodata1" and method == "lanczos" and size == (90, 70):
        pytest.skip("one pixel has just as many valid samples as lanczos needs")
    agree(path, 0 if method == "nearest" else rounding(name))


@pytest.mark.parametrize("name", ["plain1", "alpha1", "mask1", "float32"])
def test_fractional_window(files, name):
    path = files["folder"] / "fractional.vrt"
    assert gdal_programs.translate(path, files[name], "-projwin", "33", "277", "222", "111", "-r", "bilinear")
    agree(path, rounding(name))


@pytest.mark.parametrize("options", [[], ["-srcwin", "3", "4", "20", "15"], ["-outsize", "13", "11"],
                                     ["-scale", "0", "100", "20", "200"], ["-a_nodata", "3"]], ids=" ".join)
@pytest.mark.parametrize("to", ["CFloat32", "CFloat64", "Float32", "Byte", "Int16"])
@pytest.mark.parametrize("name", ["complex64", "complex128", "plain1", "int16", "mask1"])
def test_complex(files, name, to, options):
    path = files["folder"] / "complex.vrt"
    assert gdal_programs.translate(path, files[name], "-ot", to, *options)
    agree(path, 1e-3 if "-scale" in options else 0, inside="-outsize" not in options and "-srcwin" not in options)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_sources_overlap(files, name):
    path = files["folder"] / "complex.vrt"
    assert gdal_programs.build_vrt(path, [files[name], files[name]], "-te", "-50", "-50", "450", "350")
    agree(path, inside=True)


def test_no_complex_kernels(files):
    path = files["folder"] / "complex.vrt"
    assert gdal_programs.translate(path, files["complex64"], "-outsize", "13", "11", "-r", "bilinear")
    with cogpu.open(path) as file, pytest.raises(cogpu.CogpuError, match="complex"):
        file.read()


@pytest.mark.parametrize("method", ["nearest", "bilinear", "cubic", "cubicspline", "lanczos", "mode"])
def test_palette_indices_are_not_interpolated(files, method):
    path = files["folder"] / "indices.vrt"
    assert gdal_programs.translate(path, files["palette"], "-outsize", "31", "50", "-r", method)
    agree(path)


@pytest.mark.parametrize("method", ["cubic", "lanczos", "bilinear"])
def test_few_bits_are_not_exceeded(files, method):
    path = files["folder"] / "bits.vrt"
    assert gdal_programs.translate(path, files["bits12"], "-outsize", "90", "70", "-r", method)
    agree(path, 1)


@pytest.mark.parametrize("size, target", [((122, 91), (121.2121, 90.909)), ((121, 91), (121.2121, 90.909)),
                                          ((109, 82), (108.108, 81.081)), ((108, 81), (108.108, 81.081)),
                                          ((133, 100), (133, 100))])
def test_nearest_of_overviews(files, size, target):
    """Positions are those of the fractional rectangle, in pixels of the overview."""
    path = files["folder"] / "overviews.vrt"
    path.write_text(f'<VRTDataset rasterXSize="{size[0]}" rasterYSize="{size[1]}"><VRTRasterBand dataType="Byte" '
                    f'band="1"><SimpleSource><SourceFilename relativeToVRT="1">{files["big"].name}</SourceFilename>'
                    f'{rect("SrcRect", (0, 0, 400, 300))}{rect("DstRect", (0, 0, *target))}</SimpleSource>'
                    '</VRTRasterBand></VRTDataset>')
    agree(path)


# ---- gdalwarp ----

MERCATOR = ["-t_srs", "EPSG:3857", "-et", "0", "-tr", "13", "13"]


@pytest.mark.parametrize("options", [[], ["-dstalpha"], ["-r", "bilinear"], ["-r", "bilinear", "-dstalpha"],
                                     ["-r", "cubic", "-srcnodata", "9"], ["-r", "bilinear", "-srcnodata", "9 9 9"],
                                     ["-r", "bilinear", "-srcnodata", "9", "-dstalpha"],
                                     ["-r", "average", "-dstalpha", "-wo", "UNIFIED_SRC_NODATA=NO"],
                                     ["-wo", "INIT_DEST=77"], ["-wo", "INIT_DEST=1,2,3", "-dstnodata", "5"],
                                     ["-wo", "INIT_DEST=NO_DATA", "-dstnodata", "5"]], ids=" ".join)
@pytest.mark.parametrize("name", ["plain1", "nodata1", "mask1"])
def test_warped(files, name, options):
    """The alpha band and nodata of pixels need all bands, whichever are read."""
    path = files["folder"] / "warped.vrt"
    path.unlink(missing_ok=True)
    assert gdal_programs.warp(path, files[name], *MERCATOR, *options)
    agree(path, 1, inside=True)
    with cogpu.open(path) as file:
        whole, alpha = file.read(), file.info().bands
        np.testing.assert_array_equal(file.read(bands=[alpha])[0], whole[-1])
        if "-dstalpha" in options:
            assert (file.read(content=cogpu.MASK) == np.where(whole[-1:] > 0, 255, 0)).all()


@pytest.mark.parametrize("option", ["MODE_TIES=MAX", "XSCALE=0.5", "EXCLUDED_VALUES=9", "SRC_ALPHA_MAX=200"])
def test_refused_warp_options(files, option):
    path = files["folder"] / "warped.vrt"
    path.unlink(missing_ok=True)
    assert gdal_programs.warp(path, files["plain1"], *MERCATOR, "-wo", option)
    with pytest.raises(cogpu.CogpuError, match="option .* not supported"):
        cogpu.open(path).close()


# ---- by hand ----

def rect(element, numbers):
    return f"<{element} " + " ".join(f'{key}="{value!r}"' for key, value in zip(("xOff", "yOff", "xSize", "ySize"),
                                                                               numbers)) + "/>"


def by_hand(files, name, source, target, kind="SimpleSource", rule="", dtype="Byte", band="", resampling=""):
    attribute = f' resampling="{resampling}"' if resampling else ""
    text = (f'<VRTDataset rasterXSize="20" rasterYSize="16"><VRTRasterBand dataType="{dtype}" band="1">{band}'
            f'<{kind}{attribute}><SourceFilename relativeToVRT="1">{files[name].name}</SourceFilename>'
            f'{rect("SrcRect", source)}{rect("DstRect", target)}{rule}</{kind}></VRTRasterBand></VRTDataset>')
    path = files["folder"] / "by_hand.vrt"
    path.write_text(text)
    return path


def random_rects(seed):
    random = np.random.default_rng(seed)

    def number(low, high):
        return float(random.choice([random.integers(low, high), random.uniform(low, high),
                                    random.integers(low, high) + random.choice([0.25, 0.5, 0.3, 0.7])]))

    return ([number(-5, 30), number(-5, 25), number(1, 40), number(1, 30)],
            [number(-5, 15), number(-5, 12), number(1, 30), number(1, 30)])


@pytest.mark.parametrize("seed", range(40))
def test_nearest_of_any_rects(files, seed):
    agree(by_hand(files, "plain1", *random_rects(seed)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", [method for method in METHODS[1:] if method != "average"])
@pytest.mark.parametrize("name", ["nodata1", "float32"])
def test_resampling_of_any_rects(files, name, method, seed):
    dtype = "Float32" if name == "float32" else "Byte"
    agree(by_hand(files, name, *random_rects(seed), dtype=dtype, resampling=method), rounding(name))


@pytest.mark.parametrize("size, target", [(40, 40.3), (31, 30.77), (28, 28.57), (17, 17.0), (44, 44.2), (57, 57.14)])
@pytest.mark.parametrize("start", [0, 0.25])
@pytest.mark.parametrize("name", ["plain1", "float32", "int32"])
def test_averaged_twice(files, name, start, size, target):
    """GDAL makes whole pixels of a fractional rectangle, by an average, before it averages. Beyond the border of the
    source it averages memory that was never written: the last columns and rows are left out."""
    dtype = {"float32": "Float32", "int32": "Int32"}.get(name, "Byte")
    path = by_hand(files, name, (start, 0, 40 - start, 30), (0, 0, target, target * 0.75), dtype=dtype,
                   resampling="average")
    path.write_text(path.read_text().replace('rasterXSize="20" rasterYSize="16"',
                                             f'rasterXSize="{size}" rasterYSize="{size * 3 // 4}"'))
    with rasterio.open(path) as file, cogpu.open(path) as ours:
        expected, found = file.read(1)[:-2, :-2], ours.read()[0, :-2, :-2]
        part = ours.read(window=(2, 3, 9, 7))[0]
    np.testing.assert_array_equal(part, found[3:10, 2:11])
    np.testing.assert_allclose(found.astype("f8"), expected.astype("f8"), 1e-5, rounding(name))


@pytest.mark.parametrize("band", ["9", "mask,9", "65535"])
def test_bands_that_a_source_lacks(files, band):
    path = by_hand(files, "plain1", [0, 0, 40, 30], [0, 0, 20, 15])
    path.write_text(path.read_text().replace("</SourceFilename>", f"</SourceFilename><SourceBand>{band}</SourceBand>"))
    with cogpu.open(path) as file, pytest.raises(cogpu.CogpuError, match="plain1.tif: band .* the image has 3"):
        file.read()


RULES = {"nodata": "<NODATA>99</NODATA>", "out of range": "<NODATA>300</NODATA>", "fraction": "<NODATA>99.5</NODATA>",
         "scale": "<ScaleOffset>10.5</ScaleOffset><ScaleRatio>1.7</ScaleRatio>",
         "ratio": "<ScaleRatio>-0.33</ScaleRatio>", "offset": "<ScaleOffset>3</ScaleOffset>",
         "constant": "<ScaleOffset>255</ScaleOffset><ScaleRatio>0</ScaleRatio>",
         "exponent": "<Exponent>0.5</Exponent><SrcMin>10</SrcMin><SrcMax>200</SrcMax><DstMin>5</DstMin>"
                     "<DstMax>240</DstMax>",
         "no range": "<Exponent>2</Exponent><SrcMin>0</SrcMin><SrcMax>100</SrcMax>",
         "table": "<LUT>0:10,50:100,50:120,200:20.5,255:255</LUT>", "mask": "<UseMaskBand>true</UseMaskBand>",
         "mask, scale": "<UseMaskBand>true</UseMaskBand><ScaleRatio>2</ScaleRatio>",
         "nodata, scale, table": "<NODATA>99</NODATA><ScaleRatio>0.5</ScaleRatio><LUT>0:10,50:100,200:20</LUT>"}


@pytest.mark.parametrize("dtype", ["Byte", "Int8", "UInt16", "Int16", "UInt32", "Int32", "Int64", "UInt64", "Float32",
                                   "Float64"])
@pytest.mark.parametrize("rule", RULES)
def test_rules(files, rule, dtype):
    for name in ("plain1", "int16", "uint16", "int32", "float32", "float64", "alpha1", "mask1", "nodata1"):
        agree(by_hand(files, name, [0, 0, 40, 30], [0, 0, 20, 15], "ComplexSource", RULES[rule], dtype,
                      "<NoDataValue>3</NoDataValue>"))


@pytest.mark.parametrize("bits, dtype", [(4, "Byte"), (12, "UInt16"), (20, "UInt32")])
def test_few_bits(files, bits, dtype):
    band = f'<Metadata domain="IMAGE_STRUCTURE"><MDI key="NBITS">{bits}</MDI></Metadata>'
    agree(by_hand(files, "plain1", [0, 0, 40, 30], [0, 0, 20, 15], "ComplexSource", dtype=dtype, band=band))


@pytest.mark.parametrize("refused, rule", [
    ("KernelFilteredSource", ""), ("SimpleSource", "<OpenOptions><OOI key='a'>b</OOI></OpenOptions>"),
    ("NoDataFromMaskSource", "")])
def test_refused_sources(files, refused, rule):
    with pytest.raises(cogpu.CogpuError, match="not supported"):
        cogpu.open(by_hand(files, "plain1", [0, 0, 1, 1], [0, 0, 1, 1], refused, rule)).close()
