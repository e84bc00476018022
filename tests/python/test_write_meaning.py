"""What a written file says beside its pixels, as GDAL and we read it; COGs before the validators; lossy codecs;
blocks that were encoded elsewhere."""

import ctypes
import io
import re
from ctypes import byref

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import rasterio.shutil
import tifffile
from rasterio.crs import CRS
from test_write import pixels

GEO = {"transform": [500000, 10, 0, 4600000, 0, -10], "crs": "EPSG:32633"}


def info_of(data):
    with cogpu.open_memory(data) as file:
        return file.info()


# ---- georeference ------------------------------------------------------------------------------

@pytest.mark.parametrize("transform", [
    [500000, 10, 0, 4600000, 0, -10], [-180, 0.1, 0, 90, 0, -0.25], [500000, 10, 0, 4600000, 0, 10],
    [500000, -10, 0, 4600000, 0, -10], [1000, 7, 3, 2000, 3, -7], [1000, 0, 3, 2000, 3, 0], [1e-9, 1e-9, 0, 1e9, 0, -1e-3]])
@pytest.mark.parametrize("point", [0, 1])
def test_transform(transform, point):
    data = cogpu.write(pixels("u1"), transform=transform, pixel_is_point=point, crs="EPSG:32633")
    info = info_of(data)
    assert info.has_transform and bool(info.pixel_is_point) == bool(point)
    assert np.allclose(info.transform, transform, rtol=1e-12, atol=0)
    with reference.opened(data) as file:
        assert np.allclose(file.transform.to_gdal(), transform, rtol=1e-12, atol=0)
        assert file.tags()["AREA_OR_POINT"] == ("Point" if point else "Area")
        assert file.crs == CRS.from_epsg(32633)


def test_point_without_a_transform():
    with reference.opened(cogpu.write(pixels("u1"), crs="EPSG:4326", pixel_is_point=1)) as file:
        assert file.tags()["AREA_OR_POINT"] == "Point" and file.crs == CRS.from_epsg(4326)


CRSS = ["EPSG:4326", "EPSG:4258", "EPSG:4269", "EPSG:32633", "EPSG:32733", "EPSG:3857", "EPSG:3035", "EPSG:2154", "EPSG:5070",
        "EPSG:3031", "EPSG:3413", "EPSG:27700", "EPSG:2056", "EPSG:28992", "EPSG:31370", "EPSG:5514", "EPSG:2193", "EPSG:3395",
        "EPSG:2263", "EPSG:4978", "EPSG:4979", "EPSG:7415", "ESRI:102001", "OGC:CRS84",
        "+proj=laea +lat_0=52 +lon_0=10 +x_0=1 +y_0=2 +ellps=GRS80", "+proj=utm +zone=33 +ellps=intl",
        "+proj=tmerc +lat_0=1 +lon_0=9.5 +k=0.9998 +x_0=123456 +ellps=bessel", "+proj=lcc +lat_1=49 +lat_2=44 +lat_0=46.5 +lon_0=3 +ellps=GRS80",
        "+proj=aea +lat_1=29.5 +lat_2=45.5 +lat_0=23 +lon_0=-96 +datum=NAD83", "+proj=stere +lat_0=90 +lat_ts=70 +lon_0=-45 +datum=WGS84",
        "+proj=merc +lon_0=10 +k=0.9 +datum=WGS84", "+proj=eqc +lat_ts=30 +datum=WGS84", "+proj=sinu +R=6371007.181",
        "+proj=longlat +ellps=clrk66", "+proj=tmerc +lat_0=0 +lon_0=9 +datum=WGS84 +units=us-ft"]


def epoch_by_gdal(data, folder):
    """rasterio does not tell it, but GDAL writes it into a VRT."""
    with reference.opened(data) as file:
        rasterio.shutil.copy(file, folder / "a.vrt", driver="VRT")
    found = re.search('coordinateEpoch="([^"]*)"', (folder / "a.vrt").read_text())
    return float(found[1]) if found else 0


@pytest.mark.parametrize("options", [{"crs": "EPSG:9000"}, {"crs": "EPSG:4326"}, {"crs": "EPSG:32633+5773"}])
def test_epoch(tmp_path, options):
    for epoch in 2010.5, 0:
        data = cogpu.write(pixels("u1"), transform=GEO["transform"], epoch=epoch, **options)
        with cogpu.open_memory(data) as file:
            assert file.crs().epoch == epoch
        assert epoch_by_gdal(data, tmp_path) == epoch


@pytest.mark.parametrize("epoch, crs, words", [(float("nan"), "EPSG:4326", "year"), (float("inf"), "EPSG:4326", "year"), (2010, None, "set `crs`")])
def test_epochs_that_are_refused(epoch, crs, words):
    with pytest.raises(cogpu.CogpuError, match=words):
        cogpu.write(pixels("u1"), epoch=epoch, crs=crs)


@pytest.mark.parametrize("crs", CRSS)
def test_crs(crs):
    words = crs if not crs.startswith("+") else crs + " +type=crs"
    data = cogpu.write(pixels("u1"), crs=words, transform=GEO["transform"])
    expected = CRS.from_string(crs)
    with reference.opened(data) as file:
        found = file.crs
    assert found is not None
    if crs == "OGC:CRS84":  # GeoTIFF knows no other order of axes
        assert found == CRS.from_epsg(4326)
    else:
        assert found == expected or found.to_dict() == expected.to_dict(), (found.to_wkt(), expected.to_wkt())


def test_wkt():
    for code in 3035, 32633, 4326, 5070:
        with reference.opened(cogpu.write(pixels("u1"), crs=CRS.from_epsg(code).to_wkt())) as file:
            assert file.crs == CRS.from_epsg(code)


@pytest.mark.parametrize("crs", ["EPSG:99999", "EPSG:", "nonsense", "", "GEOGCS[", "EPSG:4326;"])
def test_crs_that_is_none(crs):
    with pytest.raises(cogpu.CogpuError, match="(?i)crs|coordinate|system|EPSG"):
        cogpu.write(pixels("u1"), crs=crs)


def test_geokeys_as_they_are():
    first = cogpu.write(pixels("u1"), **GEO)
    with cogpu.open_memory(first) as file:
        count = file.info().geokey_count
        keys = [file._fill(cogpu.Geokey, cogpu.lib.cogpu_geokey_info, 0, i) for i in range(count)]
        kept = [key for key in keys if key.id != 1025]
        second = cogpu.write(pixels("u1"), transform=GEO["transform"], geokeys=kept)
        assert second == first


def test_gcps_and_rpc():
    gcps = [cogpu.Gcp(0, 0, 0, 10, 20, 0), cogpu.Gcp(100, 0, 0, 11, 20, 5), cogpu.Gcp(0, 100, 0, 10, 19, 0), cogpu.Gcp(50.5, 60.25, 0, 10.5, 19.5, 1)]
    rpc = np.linspace(-1, 1, 92)
    data = cogpu.write(pixels("u1"), gcps=gcps, rpc=rpc.tolist(), crs="EPSG:4326")
    info = info_of(data)
    assert [(g.column, g.row, g.x, g.y, g.z) for g in info.gcps] == [(g.column, g.row, g.x, g.y, g.z) for g in gcps]
    assert info.rpc == rpc.tolist()
    with reference.opened(data) as file:
        points, crs = file.gcps
        assert crs == CRS.from_epsg(4326) and [(p.col, p.row, p.x, p.y) for p in points] == [(g.column, g.row, g.x, g.y) for g in gcps]
        assert np.allclose(file.rpcs.samp_den_coeff, rpc[72:], rtol=1e-14, atol=0)  # by way of text


# ---- metadata ----------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype, nodata", [
    ("u1", "0"), ("u1", "255"), ("i1", "-128"), ("i2", "-9999"), ("u4", "4294967295"), ("i8", "-9223372036854775808"),
    ("u8", "18446744073709551615"), ("u8", "9007199254740993"), ("f4", "-9999"), ("f4", "nan"), ("f4", "-3.4028234663852886e+38"), ("f8", "1e300"),
    ("f4", "inf"), ("f8", "-inf"), ("f4", "0.1")])
def test_nodata(dtype, nodata):
    data = cogpu.write(pixels(dtype, 1, 700, 700), nodata=nodata, cog=1)
    with reference.opened(data) as file:
        expected = np.dtype(dtype).type(float(nodata)) if dtype[0] == "f" else float(nodata)
        if nodata != "18446744073709551615":  # which rasterio takes for a double, and that for too large
            assert float(file.nodata) == expected or (np.isnan(file.nodata) and nodata == "nan")
    info = info_of(data)
    assert info.nodata.matches
    if dtype in ("i8", "u8"):
        assert {"i8": info.nodata.i64, "u8": info.nodata.u64}[dtype] == int(nodata)
    for page in tifffile.TiffFile(io.BytesIO(data)).pages:
        assert 42113 in page.tags


ITEMS = [("TITLE", "a <b> & \"c\" 'd'", "", "", 0), ("KEY", "wert ÄÖ€", "MY DOMAIN", "", 0), ("STATISTICS_MEAN", "12.5", "", "", 1),
         ("DESCRIPTION", "height", "", "description", 1), ("UNITTYPE", "m", "", "unittype", 2), ("SCALE", "0.1", "", "scale", 2),
         ("OFFSET", "-5", "", "offset", 2), ("LINES", "one\ntwo\t &amp;lt;", "", "", 0), ("EMPTY", "", "", "", 0)]


def test_metadata():
    data = cogpu.write(pixels("u2", 2), metadata=ITEMS, description="what it is")
    with reference.opened(data) as file:
        assert file.tags()["TITLE"] == "a <b> & \"c\" 'd'" and file.tags()["LINES"] == "one\ntwo\t &amp;lt;"
        assert file.tags(ns="MY DOMAIN") == {"KEY": "wert ÄÖ€"} and file.tags(1)["STATISTICS_MEAN"] == "12.5"
        assert file.tags()["TIFFTAG_IMAGEDESCRIPTION"] == "what it is"
        assert file.descriptions == ("height", None) and file.units == (None, "m")
        assert file.scales == (1, 0.1) and file.offsets == (0, -5)
    with cogpu.open_memory(data) as file:
        band = file.band(2)
        assert (band.scale, band.offset, band.unit) == (0.1, -5, "m") and file.band(1).description == "height"
        found = {(item.name, item.domain, item.band): item.value for item in file.items()}
        for name, value, domain, _, band in ITEMS:
            assert found[name, domain, band] == value


def test_extra_tags():
    artist = np.frombuffer(b"me\0", "u1")
    data = cogpu.write(pixels("u1"), tags=[(315, 2, artist), (65000, 12, np.array([1.5, 2.5])), (282, 5, np.array([72, 1], "u4").view("u8"))])
    page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
    assert page.tags[315].value == "me" and page.tags[65000].value == (1.5, 2.5) and page.tags[282].value == (72, 1)


def test_a_value_for_each_band():
    array, least = pixels("u1", 2), np.array([3, 4], "f8")
    with reference.opened(cogpu.write(array, tags=[(340, 12, least), (341, 12, least + 200)])) as file:
        assert reference.same(file.read(), array)
    with pytest.raises(cogpu.CogpuError, match="each of 2 bands"):
        cogpu.write(array, tags=[(341, 12, least[:1])])


@pytest.mark.parametrize("number", [254, 256, 257, 258, 259, 262, 273, 277, 278, 279, 280, 281, 284, 317, 322, 323, 324, 325, 330, 338, 339,
                                    347, 32995, 32996, 33550, 33922, 34264, 34735, 34736, 34737, 34665, 34853, 42112, 42113, 50674])
def test_tags_that_are_ours(number):
    with pytest.raises(cogpu.CogpuError, match=str(number)):
        cogpu.write(pixels("u1"), tags=[(number, 3, np.array([1], "u2"))])


# ---- colours -----------------------------------------------------------------------------------

def test_palette():
    palette = np.arange(768).reshape(3, 256) * 65535 // 767
    data = cogpu.write(pixels("u1", 1, 700, 700), palette=palette.ravel().tolist(), cog=1)
    info = info_of(data)
    assert info.palette == palette.ravel().tolist() and info.photometric == 3 and info.predictor == 1
    with reference.opened(data) as file:
        assert file.colormap(1)[200] == (*(int(v) // 257 for v in palette[:, 200]), 255)
        half = file.read(1, out_shape=(350, 350))
    assert set(np.unique(half)) <= set(np.unique(pixels("u1", 1, 700, 700)))


@pytest.mark.parametrize("bands, options, photometric, interpretations", [
    (1, {}, 1, "gray"), (3, {}, 2, "red green blue"), (4, {"alpha_band": 4}, 2, "red green blue alpha"),
    (4, {}, 1, "gray undefined undefined undefined"), (2, {"alpha_band": 2}, 1, "gray alpha"),
    (3, {"photometric": 1}, 1, "gray undefined undefined"), (4, {"photometric": 5}, 5, "cyan magenta yellow black"),
    (1, {"photometric": 256}, 0, "palette"), (5, {"photometric": 2, "alpha_band": 5}, 2, "red green blue undefined alpha")])
def test_photometric(bands, options, photometric, interpretations):
    data = cogpu.write(pixels("u1", bands), **options)
    assert info_of(data).photometric == photometric
    with reference.opened(data) as file:
        names = " ".join(colour.name for colour in file.colorinterp)
        assert names == interpretations or photometric == 5
        if photometric != 5:
            assert reference.same(file.read(), pixels("u1", bands))


@pytest.mark.parametrize("options", [{"alpha_band": 2}, {"photometric": 2}, {"photometric": 3}, {"photometric": 6}, {"photometric": 77},
                                     {"palette": [0] * 771}])
def test_colours_that_do_not_fit(options):
    with pytest.raises(cogpu.CogpuError):
        cogpu.write(pixels("u1"), **options)


# ---- lossy codecs ------------------------------------------------------------------------------

@pytest.mark.parametrize("layout", [{"block_width": 64}, {"cog": 1, "block_width": 64}, {"strips": 1, "block_height": 16}])
@pytest.mark.parametrize("bands, planar", [(1, 0), (3, 0), (4, 0), (5, 1)])
def test_jpeg(bands, planar, layout):
    array = pixels("u1", bands)
    array[:] = array[:1]  # colours that do not fight each other
    data = cogpu.write(array, codec="jpeg", quality=95, interleave=planar, **layout)
    found, theirs = cogpu.open_memory(data).read(), reference.read(data)
    assert np.abs(found.astype(int) - array).max() < 24 and np.abs(found.astype(int) - array).mean() < 3
    assert np.abs(found.astype(int) - theirs).max() <= 2
    assert info_of(data).photometric == (6 if bands == 3 else 1 if planar or bands in (1, 4) else 2)


@pytest.mark.parametrize("bands", [3, 4])
def test_webp(bands):
    array = pixels("u1", bands)
    exact = cogpu.write(array, codec="webp", lossless=1, block_width=64)
    assert reference.same(reference.read(exact), array) and reference.same(cogpu.open_memory(exact).read(), array)
    lossy = cogpu.write(array, codec="webp", quality=90, block_width=64)
    assert len(lossy) < len(exact) and reference.same(reference.read(lossy), cogpu.open_memory(lossy).read())


@pytest.mark.parametrize("codec", ["lerc", "lerc_deflate", "lerc_zstd"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "f4", "f8"])
@pytest.mark.parametrize("max_z_error", [0, 0.5, 2])
def test_lerc(codec, dtype, max_z_error):
    array = pixels(dtype)
    if dtype[0] == "f":
        array[0, 10:20, 30:40] = np.nan
    data = cogpu.write(array, codec=codec, max_z_error=max_z_error, block_width=64)
    found = reference.read(data)
    assert reference.same(found, cogpu.open_memory(data).read())
    if max_z_error == 0:
        assert reference.same(found, array)
    else:
        assert np.nanmax(np.abs(found.astype("f8") - array)) <= max_z_error
        assert np.array_equal(np.isnan(found), np.isnan(array))


@pytest.mark.parametrize("codec", ["lerc", "lerc_deflate", "lerc_zstd"])
def test_lerc_of_noise(codec):
    """Blobs that are as large as their block, and so of another kind to who packs them."""
    array = np.random.default_rng(1).normal(0, 1, (7, 48, 80))
    data = cogpu.write(array, codec=codec, block_width=80, block_height=48)
    assert reference.same(reference.read(data), array) and reference.same(cogpu.open_memory(data).read(), array)


@pytest.mark.parametrize("dtype, nodata", [("u1", 0), ("i2", 12), ("f4", 12.5)])
def test_lerc_keeps_nodata(dtype, nodata):
    """What is nodata stays so, and no value beside it becomes nodata, be there any in the block or not."""
    array = np.random.default_rng(4).normal(12, 5, (1, 64, 128)).clip(1, 40).astype(dtype)
    array[array == nodata] += 1
    array[0, 20:30, 70:90] = nodata
    data = cogpu.write(array, codec="lerc", max_z_error=3, nodata=str(nodata), block_width=64)
    found = reference.read(data)
    assert np.array_equal(found == nodata, array == nodata) and np.abs(found.astype("f8") - array).max() <= 3


def test_lerc_depends_on_pixels_alone():
    """A block has the same bytes, whatever was encoded before it."""
    array = pixels("u1", 1, 128, 64)
    noise = np.random.default_rng(1).integers(0, 255, (1, 64, 64), "u1")
    blocks = []
    for before in noise, noise * 0:
        array[:, :64] = before
        data = cogpu.write(array, codec="lerc", block_width=64, threads=1)
        page = tifffile.TiffFile(io.BytesIO(data)).pages[0]
        blocks.append(data[page.dataoffsets[1]:][:page.databytecounts[1]])
    assert blocks[0] == blocks[1]


# ---- masks -------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", [{"cog": 1, "block_width": 64}, {"block_width": 64}, {"strips": 1}, {"cog": 1, "block_width": 64, "interleave": 1},
                                     {"cog": 1, "block_width": 64, "sparse": 1}])
def test_mask(options):
    array = pixels("u1", 3)
    mask = (np.hypot(*np.mgrid[-75:75, -101:102]) < 60).astype("u1") * 7
    data = cogpu.write(array, mask, **options)
    with reference.opened(data) as file:
        assert np.array_equal(file.dataset_mask(), np.where(mask, 255, 0)) and reference.same(file.read(), array)
    with cogpu.open_memory(data) as file:
        assert file.info().mask_source == cogpu.MASK_DIRECTORY and np.array_equal(file.mask(), np.where(mask, 255, 0))
        for level in file.levels():
            assert level.has_mask


# ---- validators --------------------------------------------------------------------------------

@pytest.mark.parametrize("bands, options", [
    (1, {}), (3, {}), (3, {"interleave": 1}), (1, {"bigtiff": "yes"}), (1, {"sparse": 1}), (3, {"codec": "jpeg"}), (3, {"codec": "webp"}),
    (1, {"codec": "lerc_zstd"}), (1, {"overviews": "none"}), (1, {"overview_factors": [3, 9]}), (1, {"nodata": "9"}), (1, GEO), (3, {"mask": 1}),
    (3, {"mask": 1, "interleave": 1}), (3, {"mask": 1, "sparse": 1})])
def test_cogs_are_valid(tmp_path, bands, options):
    array, path = pixels("u1", bands, 700, 900), tmp_path / "a.tif"
    array[:, 200:500, 300:600] = 0
    options = dict(options)
    mask = (array[0] > 0).astype("u1") if options.pop("mask", 0) else None
    cogpu.write(array, mask, path=path, cog=1, block_width=128, **options)
    with cogpu.open(path) as file:
        checked, findings = file.check()
        complete = options.get("overviews") != "none" and "overview_factors" not in options
        assert checked.verdict >= (2 if complete else 1) and checked.gdal >= 1 and checked.rio_cogeo >= 1, findings
        assert checked.ogc == 2 or not complete, findings
    rio_cogeo = pytest.importorskip("rio_cogeo.cogeo")
    valid, errors, warnings = rio_cogeo.cog_validate(str(path), strict=options.get("overviews") != "none")
    assert valid, (errors, warnings)


# ---- blocks from elsewhere ---------------------------------------------------------------------

def encode(profile, level, part, block, array):
    memory, error = cogpu.Memory(), cogpu.Error()
    raster = cogpu.raster_of(array)
    status = cogpu.lib.cogpu_encode_block(byref(profile), level, part, ctypes.c_uint64(block), byref(raster), byref(memory), byref(error))
    if status:
        raise cogpu.CogpuError(status, error)
    data = ctypes.string_at(memory.data, memory.bytes)
    cogpu.lib.cogpu_memory_free(byref(memory))
    return data


def put(writer, level, part, block, data):
    error = cogpu.Error()
    status = cogpu.lib.cogpu_writer_write_block(writer.handle, level, part, ctypes.c_uint64(block), data, ctypes.c_size_t(len(data)), byref(error))
    if status:
        raise cogpu.CogpuError(status, error)


@pytest.mark.parametrize("options", [{"cog": 1, "block_width": 64}, {"cog": 1, "block_width": 64, "interleave": 1}, {"block_width": 64},
                                     {"cog": 1, "block_width": 64, "sparse": 1, "overviews": "none"}, {"strips": 1, "block_height": 11}])
@pytest.mark.parametrize("masked", [False, True])
def test_put_is_pushed(options, masked):
    array = pixels("f4", 2)
    array[:, :64, :64] = 0
    mask = (array[0] > 90).astype("u1") if masked else None
    expected = cogpu.write(array, mask, **options)
    profile = cogpu.profile_of(array, mask=int(masked), **options)
    blocks = []
    with cogpu.open_memory(expected) as file:
        planar = file.info().interleave
        for number, level in enumerate(file.levels()):
            whole = file.read(level=number)
            valid = file.mask(level=number)[None] if masked else None
            across = -(-level.width // level.block_width)
            count = across * -(-level.height // level.block_height)
            for index in range(count):
                y, x = index // across * level.block_height, index % across * level.block_width
                part = np.s_[:, y:y + level.block_height, x:x + level.block_width]
                if masked:
                    blocks.append((number, cogpu.MASK, index, encode(profile, number, cogpu.MASK, index, valid[part])))
                for plane in range(2 if planar else 1):
                    cut = whole[part][plane:plane + 1] if planar else whole[part]
                    blocks.append((number, cogpu.PIXELS, plane * count + index,
                                   encode(profile, number, cogpu.PIXELS, plane * count + index, cut)))
    np.random.default_rng(5).shuffle(blocks)
    writer = cogpu.Writer(profile)
    for block in blocks:
        put(writer, *block)
    assert writer.close() == expected
    writer = cogpu.Writer(profile)
    for block in blocks[1:]:
        put(writer, *block)
    with pytest.raises(cogpu.CogpuError, match="is missing"):
        writer.close()


@pytest.mark.parametrize("bands, side", [(4096, 512), (4097, 256), (65535, 128)])
def test_usual_tiles(bands, side):
    """None is larger than readers take it. One without bytes will do to see it."""
    writer = cogpu.Writer(cogpu.profile_of(np.empty((bands, 1, 1), "u1"), sparse=1))
    put(writer, 0, cogpu.PIXELS, 0, b"")
    page = tifffile.TiffFile(io.BytesIO(writer.close())).pages[0]
    assert (page.tilewidth, page.tilelength) == (side, side)


def test_put_refuses():
    array = pixels("u1")
    profile = cogpu.profile_of(array, block_width=64, cog=1)
    for words, calls in {
            "written before": [(0, 0, 0, b"abc"), (0, 0, 0, b"abc")], "no level 9": [(9, 0, 0, b"abc")], "no block 12": [(0, 0, 12, b"abc")],
            "no mask block": [(0, 1, 0, b"abc")], "no bytes": [(0, 0, 0, b"")], "has at most": [(0, 0, 0, bytes(100000))]}.items():
        writer = cogpu.Writer(profile)
        with pytest.raises(cogpu.CogpuError, match=words):
            for call in calls:
                put(writer, *call)
        writer.abort()
    writer = cogpu.Writer(profile)
    put(writer, 0, 0, 0, b"abc")
    with pytest.raises(cogpu.CogpuError, match="takes no rows"):
        writer.push(array)
    writer.abort()
    writer = cogpu.Writer(profile)
    writer.push(array[:, :10])
    with pytest.raises(cogpu.CogpuError, match="takes no blocks"):
        put(writer, 0, 0, 0, b"abc")
    writer.abort()


# ---- samples of few bits -----------------------------------------------------------------------

def few_bits(bits, bands=1):
    """All values that there are, and some that there are not, which become the largest."""
    dtype, largest = ("u1", 255) if bits < 8 else ("u2", 65535)
    array = np.random.default_rng(bits).integers(0, 1 << bits, (bands, 45, 77)).astype(dtype)
    given = array.copy()
    given[:, 3, 5], array[:, 3, 5] = largest, (1 << bits) - 1
    return given, array


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 7, 9, 10, 12, 15])
@pytest.mark.parametrize("bands, options", [
    (1, {"codec": "none", "strips": 1, "block_height": 7}), (1, {"codec": "packbits", "block_width": 16}), (3, {"codec": "lzw", "strips": 1}),
    (3, {"codec": "deflate", "interleave": 1, "block_width": 32}), (2, {"codec": "zstd", "block_width": 48, "cog": 1})])
def test_bits(bits, bands, options):
    given, array = few_bits(bits, bands)
    data = cogpu.write(given, bits=bits, **options)
    assert reference.same(reference.read(data), array)
    with reference.opened(data) as file:
        assert file.tags(1, ns="IMAGE_STRUCTURE")["NBITS"] == str(bits)
    with cogpu.open_memory(data) as file:
        assert file.info().bits == bits and file.info().predictor == 1 and reference.same(file.read(), array)


@pytest.mark.parametrize("bits", [1, 4, 12])
def test_bits_of_levels(bits):
    """Overviews have them too; a mask, a palette, nodata and sparse blocks as ever."""
    given, array = few_bits(bits)
    given[:, :32, :32] = array[:, :32, :32] = 1
    mask = np.ones((45, 77), "u1")
    colours = {"palette": list(range(3 << bits))} if bits < 8 else {}
    data = cogpu.write(given, mask, bits=bits, cog=1, block_width=32, overview_factors=[2], sparse=1, nodata="1", resampling="nearest", **colours)
    with reference.opened(data) as file:
        assert reference.same(file.read(), array) and file.overviews(1) == [2] and file.nodata == 1
        assert not colours or len([entry for entry in file.colormap(1) if entry < 1 << bits]) == 1 << bits
    with reference.opened(data, overview_level=0) as file:
        smaller = file.read()
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), array) and reference.same(file.read(level=1), smaller) and len(np.unique(smaller)) > 1
        assert np.isin(smaller, array).all()


def test_blocks_of_few_bits_that_are_put():
    given, array = few_bits(4)
    profile = cogpu.profile_of(given, bits=4, block_width=64, codec="deflate")
    writer = cogpu.Writer(profile)
    for index, x in enumerate((0, 64)):
        put(writer, 0, 0, index, encode(profile, 0, 0, index, given[:, :, x:x + 64]))
    assert reference.same(reference.read(writer.close()), array)


@pytest.mark.parametrize("dtype, options, words", [
    ("u1", {"bits": 9}, "uint8 can in 1 to 7"), ("u2", {"bits": 8}, "uint16 in 9 to 15"), ("f4", {"bits": 16}, "float32 cannot"), ("i1", {"bits": 4}, "int8 cannot"),
    ("u1", {"bits": 4, "codec": "jpeg"}, "another codec"), ("u1", {"bits": 4, "codec": "lerc"}, "another codec"), ("u1", {"bits": 4, "predictor": 2}, "predictor 2"),
    ("u1", {"bits": 4, "nodata": "16"}, "4 bits"), ("u1", {"bits": 1, "palette": [0] * 9}, "samples have only 2 values")])
def test_bits_that_are_refused(dtype, options, words):
    with pytest.raises(cogpu.CogpuError, match=words) as failure:
        cogpu.write(pixels(dtype), **options)
    assert failure.value.status == cogpu.INVALID_ARGUMENT
