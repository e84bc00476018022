"""open_geotiff: what comes back, by rasterio and rioxarray as references, and what is refused, by the parameter's name."""

import importlib.util
import io
import math

import numpy as np
import pytest
import rasterio
from rasterio.windows import Window

import cogpu
from cogpu import georef
from cogpu.errors import DeviceError, FallbackWarning, InvalidArgumentError, LimitExceededError
from cogpu.read import open_geotiff

xr = pytest.importorskip("xarray")
rioxarray = pytest.importorskip("rioxarray")

WIDTH, HEIGHT = 150, 100
EMU = {"gpu": "emu", "on_gpu_failure": "strict"}
TRANSFORM = rasterio.Affine(10, 0, 499980, 0, -10, 4000020)


def write(path, pixels, overviews=(), **profile):
    bands, height, width = pixels.shape
    profile = {"driver": "GTiff", "tiled": True, "blockxsize": 64, "blockysize": 32, "compress": "deflate",
               "crs": "EPSG:32633", "transform": TRANSFORM, **profile}
    with rasterio.open(path, "w", width=width, height=height, count=bands, dtype=pixels.dtype, **profile) as file:
        file.write(pixels)
        if overviews:
            file.build_overviews(list(overviews), rasterio.enums.Resampling.nearest)
    return str(path)


def noise(dtype="int16", bands=3, low=0, high=200):
    return np.random.default_rng(7).integers(low, high, (bands, HEIGHT, WIDTH)).astype(dtype)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Three bands with nodata, scales, offsets, names, units, tags and two overviews."""
    path = write(tmp_path_factory.mktemp("open") / "scene.tif", noise(), overviews=(2, 4), nodata=7)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.5, 2.0, 0.1), (1.0, 0.0, -3.0)
        file.descriptions, file.units = ("red", "green", "blue"), ("m", "m", "K")
        file.update_tags(PLACE="somewhere", COUNT="12")
    return path


def equal(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert ours.dtype == theirs.dtype


def test_pixels_dimensions_and_name(scene):
    array = open_geotiff(scene)
    with rasterio.open(scene) as file:
        equal(array.values, file.read())
    assert array.dims == ("band", "y", "x")
    assert array.name == "scene"
    assert open_geotiff(scene, default_name="terrain").name == "terrain"
    assert isinstance(array.data, np.ndarray) and array.data.flags.writeable


def test_arrays_have_their_facts_to_themselves(tmp_path):
    path = write(tmp_path / "shifted.tif", noise(), crs="+proj=utm +zone=33 +ellps=bessel +towgs84=1,2,3 +type=crs")
    first, second = open_geotiff(path), open_geotiff(path)
    first.attrs["new"] = first.encoding["new"] = first.x.attrs["new"] = 1
    first.spatial_ref.attrs["towgs84"][0] = 5.0
    first.encoding["preferred_chunks"]["x"] = 1
    for array in (second, open_geotiff(path)):
        assert array.spatial_ref.attrs["towgs84"] == [1.0, 2.0, 3.0]
        assert "new" not in (*array.attrs, *array.encoding, *array.x.attrs)
        assert array.encoding["preferred_chunks"]["x"] == 64


def test_a_name_that_coordinates_have(scene):
    for name in ("x", "band", "pixels"):
        array = open_geotiff(scene, default_name=name)
        assert array.name == name and list(array.coords) == ["band", "x", "y", "spatial_ref"]
        xr.testing.assert_equal(array, open_geotiff(scene))


@pytest.mark.parametrize("source", ["path", "file-like", "memory", "file"])
def test_sources(scene, source):
    with open(scene, "rb") as stream:
        sources = {"path": scene, "file-like": stream, "memory": bytearray(stream.read()), "file": cogpu.open(scene)}
        stream.seek(0)
        equal(open_geotiff(sources[source], window=(3, 4, 50, 60)).values, noise()[:, 3:50, 4:60])


def test_window_is_a_slice_of_the_whole(scene):
    whole, part = open_geotiff(scene), open_geotiff(scene, window=(10, 20, 60, 100))
    xr.testing.assert_identical(part.drop_vars("spatial_ref"), whole[:, 10:60, 20:100].drop_vars("spatial_ref"))
    assert part.rio.transform(recalc=True) == part.rio.transform() == TRANSFORM * rasterio.Affine.translation(20, 10)
    assert part.spatial_ref.attrs["GeoTransform"] == "500180.0 10.0 0.0 3999920.0 0.0 -10.0"
    bare = open_geotiff(scene, window=(10, 20, 60, 100), parse_coordinates=False)
    assert set(bare.coords) == {"band", "spatial_ref"} and bare.rio.bounds() == part.rio.bounds()
    equal(open_geotiff(scene, window=Window(20, 10, 80, 50)).values, part.values)


@pytest.mark.parametrize("box, window", [
    ((500080, 3999420, 500980, 3999920), (10, 10, 60, 100)),   # on the edges of pixels
    ((500081, 3999421, 500979, 3999919), (10, 10, 60, 100)),   # inside of the outermost ones
    ((0, 0, 1e7, 1e7), (0, 0, HEIGHT, WIDTH)),                 # beyond the file
    ((500085, 3999915, 500086, 3999916), (10, 10, 11, 11)),    # within one pixel
])
def test_bbox_takes_all_pixels_that_it_touches(scene, box, window):
    equal(open_geotiff(scene, bbox=box).values, open_geotiff(scene, window=window).values)


def test_bbox_forgives_what_floats_cannot_say(tmp_path):
    path = write(tmp_path / "tenths.tif", noise(), transform=rasterio.Affine(0.1, 0, 7, 0, -0.1, 50), crs="EPSG:4326")
    for first in range(40):
        for last in range(first + 1, 45, 7):
            part = open_geotiff(path, bbox=(7 + 0.1 * first, 50 - 0.1 * last, 7 + 0.1 * last, 50 - 0.1 * first))
            assert part.shape == (3, last - first, last - first)


def test_bbox_on_an_overview(scene):
    part = open_geotiff(scene, bbox=(500080, 3999420, 500980, 3999920), level=1)
    assert part.shape == (3, 25, 45)
    assert part.rio.bounds() == (500080, 3999420, 500980, 3999920)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_level(scene, level):
    array = open_geotiff(scene, level=level)
    with rasterio.open(scene, **({"overview_level": level - 1} if level else {})) as file:
        equal(array.values, file.read())
        assert array.rio.transform() == file.transform
        assert array.rio.bounds() == pytest.approx(tuple(file.bounds))


@pytest.mark.parametrize("band, numbers", [(1, [1]), (3, [3]), ([3, 1], [3, 1]), (np.int64(2), [2])])
def test_band_keeps_its_dimension_and_number(scene, band, numbers):
    array = open_geotiff(scene, band=band)
    with rasterio.open(scene) as file:
        equal(array.values, file.read(numbers))
        assert array.band.values.tolist() == numbers
        names = tuple(file.descriptions[number - 1] for number in numbers)
    assert array.attrs["long_name"] == (names if len(names) > 1 else names[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "complex64"])
def test_dtype(scene, dtype):
    equal(open_geotiff(scene, dtype=dtype).values, noise().astype(dtype))
    assert open_geotiff(scene, dtype=np.dtype(dtype).newbyteorder(">")).dtype.isnative


def test_masked_and_unscale(scene):
    masked, unscaled = open_geotiff(scene, masked=True), open_geotiff(scene, unscale=True)
    equal(masked.values, rioxarray.open_rasterio(scene, masked=True).values)
    equal(unscaled.values, rioxarray.open_rasterio(scene, mask_and_scale=True).values)
    assert masked.encoding["_FillValue"] == 7 and math.isnan(masked.rio.nodata)
    assert masked.attrs["scales"] == (0.5, 2.0, 0.1) and "scales" not in unscaled.attrs
    assert unscaled.encoding["scales"] == (0.5, 2.0, 0.1) and unscaled.encoding["dtype"] == "int16"
    equal(open_geotiff(scene, masked=True, dtype="float64").values, masked.values.astype("float64"))


def test_masked_by_a_mask_and_by_alpha(tmp_path):
    pixels = noise("uint8", bands=4)
    pixels[3] = np.where(pixels[0] < 50, 0, 255)
    paths = [write(tmp_path / "alpha.tif", pixels, photometric="RGB", alpha="yes")]
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        paths.append(write(tmp_path / "mask.tif", pixels[:3]))
        with rasterio.open(paths[1], "r+") as file:
            file.write_mask(pixels[3])
    for path in paths:
        equal(open_geotiff(path, masked=True).values, rioxarray.open_rasterio(path, masked=True).values)


def test_masked_complex(tmp_path):
    pixels = noise("float32", bands=1, high=9).astype("complex64")
    path = write(tmp_path / "complex.tif", pixels, nodata=3)
    equal(open_geotiff(path).values, pixels)
    masked = open_geotiff(path, masked=True).values
    assert np.array_equal(np.isnan(masked), pixels == 3) and np.array_equal(masked[pixels != 3], pixels[pixels != 3])


@pytest.mark.parametrize("keywords", [
    {}, {"window": (3, 5, 77, 93)}, {"band": 2}, {"band": [3, 1]}, {"level": 1}, {"masked": True},
    {"unscale": True}, {"dtype": "float64"}, {"dtype": "int32"},
    {"window": (3, 5, 40, 41), "band": 3, "level": 1, "unscale": True}])
def test_the_gpu_gives_the_same(scene, keywords):
    """T182: window, bands and all else hold on a GPU too."""
    xr.testing.assert_identical(open_geotiff(scene, **EMU, **keywords), open_geotiff(scene, **keywords))


def test_the_gpu_gives_the_same_of_complex_pixels(tmp_path):
    path = write(tmp_path / "complex.tif", noise("float32", bands=1, high=9).astype("complex64"), nodata=3)
    for keywords in ({}, {"masked": True}, {"dtype": "complex128"}):
        equal(open_geotiff(path, **EMU, **keywords).values, open_geotiff(path, **keywords).values)


@pytest.mark.parametrize("keywords", [{}, {"chunks": 32}, {"window": (3, 5, 77, 93), "band": 1, "chunks": 40}], ids=str)
def test_the_gpu_reads_from_objects(scene, keywords):
    """T183: what has no path, as an object of a store, comes to a GPU at once and in chunks."""
    with open(scene, "rb") as stream:
        content = stream.read()
    expected = open_geotiff(scene, **keywords).values
    for source in (io.BytesIO(content), memoryview(content), cogpu.open(Counting(content))):
        equal(open_geotiff(source, **EMU, **keywords).values, expected)


def test_a_gpu_that_fails(scene, monkeypatch):
    """T182: what the CPU does instead is what was asked for."""
    monkeypatch.setenv("COGPU_EMU_DEVICE", "7")  # there is one, number 0
    with pytest.raises(DeviceError):
        open_geotiff(scene, gpu="emu", on_gpu_failure="strict")
    keywords = {"window": (3, 5, 40, 41), "band": 2, "unscale": True}
    with pytest.warns(FallbackWarning):
        equal(open_geotiff(scene, gpu="emu", **keywords).values, open_geotiff(scene, **keywords).values)


def test_decoding_into_host_memory(scene, monkeypatch):
    for keywords in {}, {"masked": True}, {"unscale": True, "band": 2}, {"window": (3, 5, 77, 93)}, {"chunks": 64}, \
            {"window": (-5, -6, 70, 80), "boundless": True}, {"out_shape": (40, 50), "resampling": "average"}:
        found = open_geotiff(scene, decode="emu", on_gpu_failure="strict", **keywords)
        assert isinstance(found.values, np.ndarray)
        equal(found.values, open_geotiff(scene, **keywords).values)
    with pytest.raises(InvalidArgumentError, match="decode"):
        open_geotiff(scene, decode="emu", gpu="emu")
    monkeypatch.setenv("COGPU_EMU_DEVICE", "7")  # there is one, number 0
    with pytest.raises(DeviceError):
        open_geotiff(scene, decode="emu", on_gpu_failure="strict")
    with pytest.warns(FallbackWarning):
        equal(open_geotiff(scene, decode="emu").values, open_geotiff(scene).values)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_no_cupy(scene):
    with pytest.raises(DeviceError, match="CuPy"):
        open_geotiff(scene, gpu=True, on_gpu_failure="strict")
    with pytest.warns(FallbackWarning, match="CuPy"):
        assert isinstance(open_geotiff(scene, gpu=True, band=1).data, np.ndarray)


@pytest.mark.parametrize("keywords, error, name", [
    ({"window": (0, 0, 5, 5), "bbox": (0, 0, 1, 1)}, InvalidArgumentError, "bbox"),
    ({"window": (0, 0, HEIGHT + 1, 5)}, InvalidArgumentError, "window"),
    ({"window": (-1, 0, 5, 5)}, InvalidArgumentError, "window"),
    ({"window": (5, 5, 5, 9)}, InvalidArgumentError, "window"),
    ({"window": (0, 0, 60, 60), "level": 1}, InvalidArgumentError, "window"),
    ({"window": (0, 0, 5)}, (InvalidArgumentError, TypeError), "window"),
    ({"window": (0, 0, True, 5)}, TypeError, "window"),
    ({"bbox": (0, 0, 1, 1)}, InvalidArgumentError, "bbox"),
    ({"bbox": (0, 0, math.nan, 1)}, InvalidArgumentError, "bbox"),
    ({"bbox": (1, 0, 0, 1)}, InvalidArgumentError, "bbox"),
    ({"bbox": (1, 2, 3)}, InvalidArgumentError, "bbox"),
    ({"level": True}, TypeError, "level"),
    ({"level": False}, TypeError, "level"),
    ({"level": -1}, InvalidArgumentError, "level"),
    ({"level": 3}, InvalidArgumentError, "level"),
    ({"level": 1.0}, TypeError, "level"),
    ({"band": True}, TypeError, "band"),
    ({"band": -1}, InvalidArgumentError, "band"),
    ({"band": 0}, InvalidArgumentError, "band"),
    ({"band": 4}, InvalidArgumentError, "band"),
    ({"band": []}, InvalidArgumentError, "band"),
    ({"band": "red"}, TypeError, "band"),
    ({"image": True}, TypeError, "image"),
    ({"image": 1}, (InvalidArgumentError, LookupError), "image"),
    ({"dtype": "uint8"}, InvalidArgumentError, "dtype"),
    ({"dtype": object}, InvalidArgumentError, "dtype"),
    ({"dtype": "longdouble"}, InvalidArgumentError, "dtype"),
    ({"dtype": "number"}, TypeError, "dtype"),
    ({"dtype": "int16", "masked": True}, InvalidArgumentError, "dtype"),
    ({"dtype": "int16", "unscale": True}, InvalidArgumentError, "dtype"),
    ({"gpu": "yes"}, InvalidArgumentError, "gpu"),
    ({"gpu": 1}, InvalidArgumentError, "gpu"),
    ({"on_gpu_failure": "ignore"}, InvalidArgumentError, "on_gpu_failure"),
    ({"max_pixels": 44999}, LimitExceededError, "max_pixels"),
    ({"compression": "zstd"}, TypeError, "compression"),
])
def test_refused_by_name(scene, keywords, error, name):
    """T191, T192: a bool is no number, and no number is counted from the end."""
    with pytest.raises(error, match=name):
        open_geotiff(scene, **keywords)


def test_float_to_int_is_refused(tmp_path):
    """T193"""
    path = write(tmp_path / "float.tif", noise("float32"))
    with pytest.raises(InvalidArgumentError, match="dtype"):
        open_geotiff(path, dtype="int32")


def test_bbox_needs_a_grid_that_is_not_rotated(tmp_path):
    rotated = write(tmp_path / "rotated.tif", noise(), transform=TRANSFORM * rasterio.Affine.rotation(30))
    bare = write(tmp_path / "bare.tif", noise(), transform=None, crs=None)
    for path in (rotated, bare):
        with pytest.raises(InvalidArgumentError, match="bbox"):
            open_geotiff(path, bbox=(0, 0, 1e7, 1e7))


def test_odd_tags_do_no_harm(tmp_path):
    """Tags of a wrong type, and with a value that is not in the file."""
    tifffile = pytest.importorskip("tifffile")
    tags = [(315, "H", 1, 5, True), (282, "s", 0, "many", True), (280, "H", 1, 3, True),
            (305, "s", 0, "a long name", True)]
    tifffile.imwrite(tmp_path / "odd.tif", np.zeros((16, 16), "uint8"), extratags=tags, metadata=None, software=False)
    content = (tmp_path / "odd.tif").read_bytes()
    place = content.index(b"a long name")
    at = content.index(place.to_bytes(4, "little"))
    content = content[:at] + (len(content) + 100).to_bytes(4, "little") + content[at + 4:]
    attrs = open_geotiff(bytearray(content)).attrs
    assert attrs["TIFFTAG_MINSAMPLEVALUE"] == 3
    assert not {"TIFFTAG_ARTIST", "TIFFTAG_SOFTWARE"} & set(attrs)


def test_a_header_may_claim_any_size(tmp_path):
    """Two billion columns, none of which is stored."""
    with rasterio.open(tmp_path / "wide.tif", "w", driver="GTiff", width=2 * 10**9, height=1, count=1, dtype="uint8",
                       tiled=True, blockxsize=1 << 20, blockysize=16, sparse_ok=True):
        pass
    with pytest.raises(LimitExceededError, match="max_pixels"):
        open_geotiff(tmp_path / "wide.tif")
    with pytest.raises(LimitExceededError, match="parse_coordinates"):
        open_geotiff(tmp_path / "wide.tif", chunks=1 << 24)
    assert open_geotiff(tmp_path / "wide.tif", window=(0, 10**9, 1, 10**9 + 9)).shape == (1, 1, 9)
    assert open_geotiff(tmp_path / "wide.tif", chunks=1 << 24, parse_coordinates=False).shape == (1, 1, 2 * 10**9)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_geotiff(tmp_path / "none.tif")


def test_max_pixels_counts_what_is_read(scene):
    assert open_geotiff(scene, max_pixels=45000).size == 45000
    assert open_geotiff(scene, max_pixels=15000, band=1).size == 15000
    assert open_geotiff(scene, max_pixels=300, window=(0, 0, 10, 10)).size == 300


class Counting(io.BytesIO):
    """Counts the bytes that are read, and of which offsets."""

    def __init__(self, content):
        super().__init__(content)
        self.spans = []

    def read(self, size=-1):
        start = self.tell()
        got = super().read(size)
        self.spans.append((start, len(got)))
        return got

    def readinto(self, target):
        start = self.tell()
        count = super().readinto(target)
        self.spans.append((start, count))
        return count


def test_a_window_reads_its_blocks_alone(tmp_path):
    path = write(tmp_path / "flat.tif", noise("uint8"), compress="none", interleave="band")
    with open(path, "rb") as stream:
        source = Counting(stream.read())
    file = cogpu.open(source)
    source.spans.clear()
    open_geotiff(file, window=(0, 0, 32, 64), band=2)  # the header's read has the first
    assert sum(count for _, count in source.spans) == 64 * 32


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = write(tmp_path / "again.tif", noise())
    open_geotiff(path)
    write(tmp_path / "again.tif", noise() + 1)
    equal(open_geotiff(path).values, noise() + 1)


# Dask

@pytest.mark.parametrize("chunks, keywords", [
    ({}, {}), (32, {}), ((64, 32), {"window": (10, 20, 60, 100)}), ({"y": 32, "band": 1}, {"band": [3, 1]}),
    (32, {"level": 1}), (64, {"unscale": True}), (64, EMU),
    (64, {"unscale": True, "window": (5, 6, 90, 91), **EMU})])
def test_chunks(scene, chunks, keywords):
    pytest.importorskip("dask.array")
    array = open_geotiff(scene, chunks=chunks, **keywords)
    assert array.chunks is not None
    xr.testing.assert_identical(array.compute(scheduler="sync"), open_geotiff(scene, **keywords))


def test_max_pixels_of_a_chunk(scene):
    pytest.importorskip("dask.array")
    assert open_geotiff(scene, chunks=32, max_pixels=3 * 32 * 32).size == 45000
    with pytest.raises(LimitExceededError, match="max_pixels"):
        open_geotiff(scene, chunks=32, max_pixels=3 * 32 * 32 - 1)


# What a DataArray says of itself, for writers.

def test_of_array_inverts_open(scene):
    stated = georef.of_array(open_geotiff(scene, window=(10, 20, 60, 100)))
    assert stated["transform"] == (500180, 10, 0, 3999920, 0, -10)
    assert rasterio.CRS.from_user_input(stated["crs"]) == rasterio.CRS.from_epsg(32633)
    assert stated["nodata"] == 7 and not stated["pixel_is_point"]
    assert stated["scales"] == (0.5, 2.0, 0.1) and stated["offsets"] == (1.0, 0.0, -3.0)
    assert stated["descriptions"] == ("red", "green", "blue") and stated["units"] == ("m", "m", "K")
    assert stated["tags"] == {"PLACE": "somewhere", "COUNT": "12"}
    unscaled = georef.of_array(open_geotiff(scene, unscale=True))
    assert unscaled["nodata"] == 7 and unscaled["scales"] is None
    assert unscaled["packed"] == {"dtype": np.dtype("int16"), "scales": (0.5, 2.0, 0.1), "offsets": (1.0, 0.0, -3.0)}


def grid(x, y, **attrs):
    return xr.DataArray(np.zeros((len(y), len(x))), dims=("y", "x"), coords={"x": x, "y": y}, attrs=attrs)


def test_of_array_takes_the_stated_transform_where_coordinates_fit(tmp_path):
    """Coordinates of 0.1 drift; the stated number does not, also not for a slice."""
    step = 1 / 3600
    transform = rasterio.Affine(step, 0, 7 - step / 2, 0, -step, 45 + step / 2)
    path = write(tmp_path / "arc.tif", noise(), transform=transform, crs="EPSG:4326")
    array = open_geotiff(path)
    assert georef.of_array(array)["transform"] == (7 - step / 2, step, 0, 45 + step / 2, 0, -step)
    assert georef.of_array(array[:, 5:, 4:])["transform"][1::4] == (step, -step)
    assert georef.of_array(array[:, 5:, 4:])["transform"][0] == pytest.approx(7 + 3.5 * step, abs=1e-15)
    flipped = georef.of_array(array[:, ::-1])["transform"]
    assert flipped[5] == pytest.approx(step) and flipped[3] == pytest.approx(45 + step / 2 - HEIGHT * step)
    assert georef.of_array(array[:, ::2, ::2])["transform"][1] == pytest.approx(2 * step)


def test_of_array_from_coordinates():
    assert georef.of_array(grid([0.5, 1.5, 2.5], [1.0, 3.0]))["transform"] == (0, 1, 0, 0, 0, 2)
    assert georef.of_array(grid([0.5, 1.5, 2.5], [3.0, 1.0]))["transform"] == (0, 1, 0, 4, 0, -2)
    assert georef.of_array(xr.DataArray(np.zeros((2, 2)), dims=("y", "x")))["transform"] is None
    coarse = np.arange(-180, 180, 0.25).astype("float32")
    assert georef.of_array(grid(coarse, coarse[:9]))["transform"][1] == pytest.approx(0.25)


@pytest.mark.parametrize("array, name", [
    (grid([0, 1, 3], [0, 1]), "'x'"),
    (grid([0, 1, 2], [0, 0]), "'y'"),
    (grid([0, 1, math.nan], [0, 1]), "'x'"),
    (grid([0, 1, 2], [5]), "'y'"),
    (grid(["a", "b"], [5, 6]), "'x'"),
    (xr.DataArray(np.zeros((2, 2)), dims=("y", "x"), coords={"x": [1, 2]}), "'x'"),
    (grid([0, 1], [0, 1], transform=(1, 2, 3)), "transform"),
    (grid([0, 1], [0, 1], long_name=("a", "b")), "long_name"),
    (grid([0, 1], [0, 1], nodata=1, _FillValue=2), "nodata"),
])
def test_of_array_refuses_by_name(array, name):
    with pytest.raises(InvalidArgumentError, match=name):
        georef.of_array(array)


def test_of_array_of_xarray_spatial():
    stated = georef.of_array(grid([15.0, 25.0], [95.0, 85.0], transform=(10, 0, 10, 0, -10, 100), crs=32633, nodata=-1))
    assert stated["transform"] == (10, 10, 0, 100, 0, -10) and stated["crs"] == "EPSG:32633" and stated["nodata"] == -1


@pytest.mark.parametrize("crs, text", [(None, None), (4326, "EPSG:4326"), ("EPSG:4326", "EPSG:4326"), ("", None)])
def test_crs_text(crs, text):
    assert georef.crs_text(crs) == text


def test_crs_text_of_objects():
    assert "4326" in georef.crs_text(rasterio.CRS.from_epsg(4326))
    for wrong in (True, 1.5, object()):
        with pytest.raises(TypeError, match="crs"):
            georef.crs_text(wrong)


@pytest.mark.parametrize("name", ["masked", "unscale", "parse_coordinates", "max_pixels"])
def test_words_of_a_wrong_kind_are_named(path, name):
    with pytest.raises(TypeError, match=name):
        cogpu.open_geotiff(path, **{name: "yes"})
