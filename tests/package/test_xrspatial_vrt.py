"""compat.xrspatial: VRTs by xarray-spatial's rules, read and written."""

import os

import numpy as np
import pytest
import rasterio
import xarray as xr

import cogpu
from cogpu.compat import xrspatial as ours
from cogpu.errors import InvalidArgumentError
from xrspatial_made import GRID, make

SIDE = 8
PLACES = {"left": (0, 0), "right": (SIDE, 0)}


def source(name, to=(0, 0, SIDE, SIDE), of=(0, 0, SIDE, SIDE), kind="SimpleSource", more="", relative=1, band=1):
    rects = "".join(f'<{key} xOff="{x}" yOff="{y}" xSize="{width}" ySize="{height}"/>'
                    for key, (x, y, width, height) in (("SrcRect", of), ("DstRect", to)))
    return (f'<{kind}><SourceFilename relativeToVRT="{relative}">{name}</SourceFilename><SourceBand>{band}</SourceBand>'
            f"{rects}{more}</{kind}>")


def vrt(folder, bands, *, width=2 * SIDE, height=SIDE, srs="EPSG:32633", transform="500000, 10, 0, 5000000, 0, -10",
        head="", name="a.vrt"):
    """`bands` are (dataType, nodata, sources)."""
    placed = f"<GeoTransform>{transform}</GeoTransform>" if transform else ""
    text = "".join(
        f'<VRTRasterBand dataType="{kind}" band="{number}">'
        + (f"<NoDataValue>{nodata}</NoDataValue>" if nodata is not None else "") + "".join(sources)
        + "</VRTRasterBand>" for number, (kind, nodata, sources) in enumerate(bands, 1))
    (folder / name).write_text(f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}"><SRS>{srs}</SRS>{placed}'
                               f"{head}{text}</VRTDataset>")
    return str(folder / name)


@pytest.fixture
def tiles(tmp_path):
    """Two tiles side by side, with nodata -9 in one pixel of each."""
    pixels = {}
    for number, (name, (column, _)) in enumerate(PLACES.items(), 1):
        pixels[name] = np.arange(SIDE * SIDE, dtype="int16").reshape(SIDE, SIDE) + 100 * number
        pixels[name][2, 3] = -9
        make(tmp_path / f"{name}.tif", pixels[name], crs="EPSG:32633", nodata=-9,
             transform=GRID @ rasterio.Affine.translation(column, 0))
    return pixels


def both(kind="Int16", nodata=-9, **changes):
    return [(kind, nodata, [source("left.tif", **changes), source("right.tif", (SIDE, 0, SIDE, SIDE), **changes)])]


def test_tiles_side_by_side(tmp_path, tiles):
    path = vrt(tmp_path, both())
    array = ours.open_geotiff(path)
    np.testing.assert_array_equal(array, np.hstack([tiles["left"], tiles["right"]]))
    assert array.dims == ("y", "x") and array.dtype == "int16" and array.name == "a"
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(array, file.read(1))
        assert array.attrs["transform"] == tuple(file.transform)[:6]
    assert array.attrs["crs"] == 32633 and array.attrs["georef_status"] == "full"
    assert array.attrs["nodata"] == -9 and array.attrs["masked_nodata"] is False
    assert "vrt_holes" not in array.attrs
    np.testing.assert_allclose(array.x[:2], [500005, 500015])
    np.testing.assert_allclose(array.y[:2], [4999995, 4999985])
    np.testing.assert_array_equal(ours.read_vrt(path), array)


@pytest.mark.parametrize("words", [{}, {"masked": True}, {"window": (1, 5, 7, 12)}, {"band": 0},
                                   {"bbox": (500031, 4999941, 500119, 4999969)}, {"dtype": "float64"}])
def test_chunks_are_the_same(tmp_path, tiles, words):
    path = vrt(tmp_path, both())
    now, later = ours.open_geotiff(path, **words), ours.open_geotiff(path, chunks=3, **words)
    assert later.chunks is not None and later.dtype == now.dtype
    xr.testing.assert_identical(later.compute(), now)


def test_windows_move_the_transform(tmp_path, tiles):
    path = vrt(tmp_path, both())
    part, whole = ours.open_geotiff(path, window=(1, 5, 7, 12)), ours.open_geotiff(path)
    np.testing.assert_array_equal(part, whole[1:7, 5:12])
    np.testing.assert_array_equal(part.x, whole.x[5:12])
    assert part.attrs["transform"] == (10, 0, 500050, 0, -10, 4999990)
    nowhere = vrt(tmp_path, both(), transform=None, srs="")
    part = ours.open_geotiff(nowhere, window=(1, 5, 7, 12))
    assert part.x.values.tolist() == list(range(5, 12)) and part.attrs["georef_status"] == "none"


def test_later_sources_paint_over_earlier_ones_nodata_included(tmp_path, tiles):
    """Unlike a ComplexSource of GDAL's."""
    path = vrt(tmp_path, [("Int16", -9, [source("left.tif"), source("right.tif", kind="ComplexSource",
                                                                    more="<NODATA>-9</NODATA>")])], width=SIDE)
    np.testing.assert_array_equal(ours.open_geotiff(path), tiles["right"])


def test_masked(tmp_path, tiles):
    masked = ours.open_geotiff(vrt(tmp_path, both()), masked=True)
    assert masked.dtype == "float64" and np.isnan(masked[2, [3, SIDE + 3]]).all() and int(masked.isnull().sum()) == 2
    assert masked.attrs["masked_nodata"] is True
    own = ours.open_geotiff(vrt(tmp_path, both(nodata=None, more="<NODATA>-9</NODATA>")), masked=True)
    np.testing.assert_array_equal(own, masked)
    none = ours.open_geotiff(vrt(tmp_path, both(nodata=-77)), masked=True)
    assert none.dtype == "int16"  # no pixel is -77
    floats = ours.open_geotiff(vrt(tmp_path, both("Float32")), masked=True)
    assert floats.dtype == "float32" and int(floats.isnull().sum()) == 2


def test_what_no_source_covers(tmp_path, tiles):
    sources = [source("left.tif", (2, 1, SIDE, SIDE))]
    floats = ours.open_geotiff(vrt(tmp_path, [("Float32", None, sources)]))
    assert np.isnan(floats[0]).all() and not np.isnan(floats[1:, 2:SIDE + 2]).any()
    assert not ours.open_geotiff(vrt(tmp_path, [("Int16", -9, sources)]))[0].any()


def test_scales_and_sizes(tmp_path, tiles):
    more = "<ScaleOffset>1.5</ScaleOffset><ScaleRatio>0.1</ScaleRatio>"
    scaled = ours.open_geotiff(vrt(tmp_path, both(kind="Int16", more=more)))
    assert scaled.dtype == "float64"
    np.testing.assert_array_equal(scaled[:, :SIDE], tiles["left"] * 0.1 + 1.5)
    for size in (3, 5, 13):
        path = vrt(tmp_path, [("Int16", None, [source("left.tif", (0, 0, size, size))])], width=size, height=size)
        index = np.floor((np.arange(size) + 0.5) * SIDE / size).astype(int)
        np.testing.assert_array_equal(ours.open_geotiff(path), tiles["left"][np.ix_(index, index)])
        with rasterio.open(path) as file:
            np.testing.assert_array_equal(ours.open_geotiff(path), file.read(1))


def test_bands(tmp_path, tiles):
    bands = [(kind, nodata, [source(f"{name}.tif")]) for name, kind, nodata in (("left", "Int16", -9),
                                                                                ("right", "Int16", -7))]
    path = vrt(tmp_path, bands, width=SIDE)
    with pytest.raises(ours.MixedBandMetadataError, match="band 2"):
        ours.open_geotiff(path)
    array = ours.open_geotiff(path, band_nodata="first")
    assert array.dims == ("y", "x", "band") and array.attrs["nodata"] == -9
    np.testing.assert_array_equal(array, np.dstack([tiles["left"], tiles["right"]]))
    assert ours.open_geotiff(path, band=1).attrs["nodata"] == -7
    with pytest.raises(ours.MixedBandMetadataError, match="dataType"):
        ours.open_geotiff(vrt(tmp_path, [bands[0], ("Float32", -9, bands[1][2])], width=SIDE))


def test_missing_sources(tmp_path, tiles, monkeypatch):
    path = vrt(tmp_path, [("Int16", None, [source("left.tif"), source("gone.tif", (SIDE, 0, SIDE, SIDE))])])
    for words in {}, {"chunks": 4}, {"missing_sources": "raise"}:
        with pytest.raises(FileNotFoundError, match="gone.tif"):
            ours.open_geotiff(path, **words)
    with pytest.warns(ours.GeoTIFFFallbackWarning, match="gone.tif"):
        array = ours.open_geotiff(path, missing_sources="warn")
    assert [(hole["band"], hole["dst_rect"]) for hole in array.attrs["vrt_holes"]] == [(1, (SIDE, 0, SIDE, SIDE))]
    np.testing.assert_array_equal(array[:, :SIDE], tiles["left"])
    assert not array[:, SIDE:].any()
    later = ours.open_geotiff(path, missing_sources="warn", chunks=4)
    assert later.attrs["vrt_holes"][0]["source"].endswith("gone.tif")
    with pytest.warns(ours.GeoTIFFFallbackWarning, match="gone.tif"):
        np.testing.assert_array_equal(later.compute(), array)
    assert "vrt_holes" not in ours.open_geotiff(path, window=(0, 0, 4, 4), chunks=4).attrs  # it is elsewhere
    with pytest.raises(InvalidArgumentError, match="missing_sources='ignore'"):
        ours.open_geotiff(path, missing_sources="ignore")
    monkeypatch.setenv("XRSPATIAL_GEOTIFF_STRICT", "1")
    with pytest.raises(FileNotFoundError):
        ours.open_geotiff(path, missing_sources="warn")


REFUSED = {
    "a warped VRT": ({"head": "<GDALWarpOptions/>"}, {}, "GDALWarpOptions"),
    "a mask": ({"head": "<MaskBand/>"}, {}, "MaskBand"),
    "a nested VRT": ({}, {"name": "b.VRT"}, "[Nn]ested"),
    "a mask band": ({}, {"more": "<UseMaskBand>1</UseMaskBand>"}, "UseMaskBand"),
    "resampling": ({}, {"of": (0, 0, 4, 4), "more": "<ResampleAlg>Bilinear</ResampleAlg>"}, "Bilinear"),
    "a negative size": ({}, {"of": (0, 0, -4, 4)}, "SrcRect.*negative size"),
    "a negative offset": ({}, {"of": (0, -1, 4, 4)}, "SrcRect.*negative offset"),
    "a place outside": ({}, {"to": (100, 0, 4, 4)}, "DstRect"),
    "another kind of source": ({}, {"kind": "KernelFilteredSource"}, "KernelFilteredSource"),
    "pixels of size 0": ({"transform": "0, 0, 0, 0, 0, -1"}, {}, "pixel size"),
    "another CRS": ({"srs": "EPSG:32632"}, {}, "left.tif"),
    "a way out": ({}, {"name": "../left.tif"}, "outside the VRT directory"),
    "an absolute path": ({}, {"name": "/etc/left.tif", "relative": 0}, "outside the VRT directory"),
}


@pytest.mark.parametrize("words, of_source, message", REFUSED.values(), ids=REFUSED)
def test_what_is_refused(tmp_path, tiles, words, of_source, message):
    path = vrt(tmp_path, [("Int16", None, [source(**{"name": "left.tif", **of_source})])], **words)
    with pytest.raises(ours.VRTUnsupportedError, match=message):
        ours.open_geotiff(path)


def test_other_errors(tmp_path, tiles, monkeypatch):
    rotated = vrt(tmp_path, both(), transform="0, 1, 0.1, 0, 0.1, -1")
    with pytest.raises(ours.RotatedTransformError):
        ours.open_geotiff(rotated)
    array = ours.open_geotiff(rotated, allow_rotated=True)
    assert array.attrs["rotated_affine"] == (1, 0.1, 0, 0.1, -1, 0) and array.x[0] == 0
    with pytest.raises(ours.UnparseableCRSError):
        ours.open_geotiff(vrt(tmp_path, both(), srs="GARBAGE"))
    with pytest.raises(ours.VRTUnsupportedError, match="CFloat32"):
        ours.open_geotiff(vrt(tmp_path, both("CFloat32")))
    with pytest.raises(ours.VRTUnsupportedError, match="no <VRTRasterBand>"):
        ours.open_geotiff(vrt(tmp_path, []))
    with pytest.raises(ours.PixelSafetyLimitError):
        ours.open_geotiff(vrt(tmp_path, both()), max_pixels=10)
    good = vrt(tmp_path, both())
    for words in ({"overview_level": 1}, {"on_gpu_failure": "strict", "gpu": True}, {"unpack": True},
                  {"parse_coordinates": False}):
        with pytest.raises(InvalidArgumentError, match=f"{next(iter(words))}.* is not supported"):
            ours.open_geotiff(good, **words)
    with pytest.raises(ours.VRTStableSourcesOnlyError):
        ours.open_geotiff(good, stable_only=True)
    (tmp_path / "b.vrt").write_text('<!DOCTYPE a [<!ENTITY b "c">]><VRTDataset/>')
    with pytest.raises(ValueError, match="DOCTYPE"):
        ours.open_geotiff(str(tmp_path / "b.vrt"))
    monkeypatch.setenv("XRSPATIAL_VRT_MAX_XML_BYTES", "50")
    with pytest.raises(ValueError, match="50 bytes"):
        ours.open_geotiff(good)


def test_allowed_roots(tmp_path, tiles, monkeypatch):
    (tmp_path / "vrts").mkdir()
    left = source(str(tmp_path / "left.tif"), relative=0)
    path = vrt(tmp_path / "vrts", [("Int16", None, [left])], width=SIDE)
    with pytest.raises(ours.VRTUnsupportedError):
        ours.open_geotiff(path)
    monkeypatch.setenv("XRSPATIAL_VRT_ALLOWED_ROOTS", os.pathsep.join(["/nowhere", str(tmp_path)]))
    np.testing.assert_array_equal(ours.open_geotiff(path), tiles["left"])


# ---- writing ---------------------------------------------------------------------------------------------------------


def grid_of(pixels, **attrs):
    rows, columns = pixels.shape
    return xr.DataArray(pixels, dims=("y", "x"), attrs={"crs": 32633, **attrs},
                        coords={"y": 4999995 - 10.0 * np.arange(rows), "x": 500005 + 10.0 * np.arange(columns)})


@pytest.mark.parametrize("is_lazy", [False, True])
def test_tiles_are_written(tmp_path, is_lazy):
    pixels = np.random.default_rng(2).integers(0, 1000, (40, 50)).astype("int16")
    array = grid_of(pixels, nodata=-1)
    path = str(tmp_path / "out.vrt")
    ours.to_geotiff(array.chunk({"y": 16, "x": 30}) if is_lazy else array, path, tile_size=16)
    names = sorted(os.listdir(tmp_path / "out_tiles"))
    assert len(names) == (6 if is_lazy else 12) and names[0] == "tile_00_00.tif"
    assert sorted(os.listdir(tmp_path)) == ["out.vrt", "out_tiles"]
    again = ours.open_geotiff(path)
    np.testing.assert_array_equal(again, pixels)
    np.testing.assert_allclose(again.x, array.x)
    np.testing.assert_allclose(again.y, array.y)
    assert again.attrs["crs_wkt"] and again.attrs["nodata"] == -1
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(file.read(1), pixels)
        assert file.crs.to_epsg() == 32633 and file.nodata == -1
        assert file.transform == rasterio.Affine(10, 0, 500000, 0, -10, 5000000)
    with pytest.raises(FileExistsError):
        ours.to_geotiff(array, path)


def test_arrays_without_georeferencing_are_written(tmp_path):
    pixels = np.arange(1200, dtype="float32").reshape(30, 40)
    path = str(tmp_path / "out.vrt")
    ours.to_geotiff(pixels, path, tile_size=16)
    again = ours.open_geotiff(path)
    np.testing.assert_array_equal(again, pixels)


def test_a_write_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="2D"):
        ours.to_geotiff(np.zeros((3, 20, 20), "uint8"), str(tmp_path / "out.vrt"))
    for words, message in (({"tiled": False}, "tiled=False"), ({"cog": True}, "cog=True"), ({"tile_size": 0},
                                                                                             "tile_size")):
        with pytest.raises(ValueError, match=message):
            ours.to_geotiff(np.zeros((20, 20), "uint8"), str(tmp_path / "out.vrt"), **words)
    assert not os.listdir(tmp_path)


def test_an_index_of_files(tmp_path, tiles):
    path = str(tmp_path / "a & b.vrt")
    files = [tmp_path / "right.tif", tmp_path / "left.tif"]
    assert ours.write_vrt(path, files) == path
    np.testing.assert_array_equal(ours.open_geotiff(path), np.hstack([tiles["left"], tiles["right"]]))
    with rasterio.open(path) as file:
        np.testing.assert_array_equal(file.read(1), np.hstack([tiles["left"], tiles["right"]]))
        assert file.nodata == -9
    with pytest.raises(ValueError, match="empty"):
        ours.write_vrt(path, [])
    with pytest.raises(TypeError):
        ours.write_vrt(path, files, nodata=True)
    make(tmp_path / "other.tif", np.zeros((4, 4), "int16"), crs="EPSG:32632", transform=GRID, nodata=-9)
    with pytest.raises(ours.VRTUnsupportedError, match="CRS"):
        ours.write_vrt(path, [*files, tmp_path / "other.tif"])
    assert issubclass(ours.VRTUnsupportedError, cogpu.Error)
