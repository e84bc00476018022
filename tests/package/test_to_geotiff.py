"""to_geotiff, compared by rasterio (GDAL), rioxarray and rio-cogeo: pixels, tags and layout, not our own reader."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest

import cogpu
from cogpu import _cogpu, arrays, write
from cogpu.engine import Engine
from cogpu.errors import InvalidArgumentError, NotFoundError
from cogpu.lazy import Pixels
from conftest import Pipe

rasterio = pytest.importorskip("rasterio")
tifffile = pytest.importorskip("tifffile")
xr = pytest.importorskip("xarray")
pytest.importorskip("rioxarray")
from rasterio.transform import Affine  # noqa: E402

TYPES = arrays.TYPES
RPC_NUMBERS = [f"{name}_{what}" for what in ("off", "scale") for name in ("height", "lat", "line", "long", "samp")] + [
    "err_bias", "err_rand"]
RPC_LISTS = ("line_den_coeff", "line_num_coeff", "samp_den_coeff", "samp_num_coeff")
TRANSFORM = (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0)


def noise(shape, dtype="float32", seed=0):
    """Pixels of every kind of value, the same in each run."""
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    values = random.normal(size=shape) * 100
    return (values + 1j * random.normal(size=shape)).astype(dtype) if dtype.kind == "c" else values.astype(dtype)


@contextlib.contextmanager
def opened(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        with rasterio.open(path, **options) as file:
            yield file


def pixels_of(path, **options):
    with opened(path, **options) as file:
        return file.read()


def array_of(shape=(3, 40, 50), dims=("band", "y", "x"), dtype="float32", **attrs):
    """A DataArray on a grid of UTM, whose coordinates are pixel centres."""
    sizes = dict(zip(dims, shape))
    ways = {"x": lambda n: 500005.0 + 10 * np.arange(n), "y": lambda n: 4999995.0 - 10 * np.arange(n)}
    coords = {dim: ways[axis](sizes[dim]) for axis in ways for dim in dims if dim in arrays.AXES[axis]}
    return xr.DataArray(noise(shape, dtype), dims=dims, coords=coords, attrs=attrs)


# ------------------------------------------------------------------------------------------------ pixels


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_every_type(tmp_path, dtype, interleave):
    data = noise((2, 50, 70), dtype)
    path = cogpu.to_geotiff(data, tmp_path / "a.tif", tile_size=32, interleave=interleave)
    assert path == tmp_path / "a.tif"
    got = pixels_of(path)
    assert got.dtype == (np.float32 if dtype == "float16" and got.dtype == np.float32 else np.dtype(dtype))
    np.testing.assert_array_equal(got, data)
    with opened(path) as file:
        assert file.interleaving.value.lower() == interleave
        assert file.block_shapes[0] == (32, 32)


def test_bool_becomes_bytes(tmp_path):
    data = noise((40, 30)) > 0
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    got = pixels_of(tmp_path / "a.tif")
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got[0], data)


def test_byte_order_of_the_other_machines(tmp_path):
    data = noise((40, 30), "int16").astype(">i2")
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], data)


@pytest.mark.parametrize("dims", [("band", "y", "x"), ("y", "x", "band"), ("x", "band", "y"), ("channel", "lat", "lon"),
                                  ("latitude", "longitude", "bands"), ("row", "bands", "col")])
def test_dimensions_in_any_order(tmp_path, dims):
    roles = [next(role for role, names in arrays.AXES.items() if dim in names) for dim in dims]
    shape = tuple({"band": 3, "y": 40, "x": 50}[role] for role in roles)
    data = array_of(shape, dims)
    cogpu.to_geotiff(data, tmp_path / "a.tif", tile_size=16)
    expected = data.values.transpose([roles.index(role) for role in ("band", "y", "x")])
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif"), expected)
    with opened(tmp_path / "a.tif") as file:
        assert file.transform[:6] == TRANSFORM


@pytest.mark.parametrize("dims", [("y", "x"), ("lon", "lat")])
def test_two_dimensions(tmp_path, dims):
    data = array_of((20, 30), dims)
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    expected = data.values if dims[0] == "y" else data.values.T
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], expected)


def test_views_of_any_stride_and_the_array_stays_as_it_is(tmp_path):
    whole = noise((3, 80, 90))
    whole[whole < -150] = np.nan
    before = whole.copy()
    whole.flags.writeable = False
    view = whole[::-1, ::-2, 10:70:3]
    cogpu.to_geotiff(view, tmp_path / "a.tif", nodata=-9999, tile_size=16)
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif"), np.where(np.isnan(view), np.float32(-9999), view))
    np.testing.assert_array_equal(whole, before)


def test_an_array_of_ours(tmp_path):
    data = noise((2, 40, 50))
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    with cogpu.open(tmp_path / "a.tif") as file:
        cogpu.to_geotiff(file.read(), tmp_path / "b.tif")
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


class OnlyDLPack:
    """What an array of a library that we do not know shows of itself."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_what_speaks_dlpack_alone(tmp_path):
    data = noise((2, 40, 50))
    cogpu.to_geotiff(OnlyDLPack(data), tmp_path / "a.tif")
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif"), data)


def test_memory_of_a_gpu_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    there = OnlyDLPack(np.zeros((2, 40, 50), "float32"))
    there.shape, there.dtype, there.__class__ = (2, 40, 50), "float32", type("There", (OnlyDLPack,), {
        "__dlpack_device__": lambda self: (2, 0)})
    planned = write.plan(there, tile_size=16)
    assert planned.rows_per_chunk(1) == 40 and planned.rows(0, 40) is there


def test_torch(tmp_path):
    torch = pytest.importorskip("torch")
    data = torch.arange(2 * 40 * 50, dtype=torch.float32).reshape(40, 50, 2).permute(2, 0, 1).requires_grad_()
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif"), data.detach().numpy())


def test_masked_array(tmp_path):
    data = np.ma.masked_less(noise((40, 50), "int16"), 0)
    cogpu.to_geotiff(data, tmp_path / "a.tif", nodata=-1)
    got = pixels_of(tmp_path / "a.tif", )[0]
    np.testing.assert_array_equal(got, data.filled(-1))
    with pytest.raises(InvalidArgumentError, match="nodata"):
        cogpu.to_geotiff(data, tmp_path / "a.tif")


def test_mask(tmp_path):
    data, mask = noise((3, 40, 50), "uint8"), noise((40, 50)) > 0
    cogpu.to_geotiff(data, tmp_path / "a.tif", mask=mask, cog=True)
    with opened(tmp_path / "a.tif") as file:
        np.testing.assert_array_equal(file.read(), data)
        np.testing.assert_array_equal(file.dataset_mask(), mask * np.uint8(255))
    with pytest.raises(InvalidArgumentError, match="mask"):
        cogpu.to_geotiff(data, tmp_path / "a.tif", mask=mask[1:])


# ------------------------------------------------------------------------------------------------ layout and codecs


@pytest.mark.parametrize("codec, level", [("none", None), (None, None), ("packbits", None), ("lzw", None),
                                          ("deflate", 1), ("deflate", 12), ("zstd", 1), ("zstd", 22), ("lzma", 1),
                                          ("lerc", None),
                                          ("lerc_deflate", None), ("lerc_zstd", None), ("DEFLATE", None)])
def test_lossless_codecs(tmp_path, codec, level):
    data = noise((100, 120))
    cogpu.to_geotiff(data, tmp_path / "a.tif", compression=codec, compression_level=level, tile_size=64)
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], data)
    with opened(tmp_path / "a.tif") as file:
        expected = None if codec in (None, "none") else codec.lower()
        assert (file.compression and file.compression.value.lower()) == expected


def test_levels_matter(tmp_path):
    data = np.round(noise((128, 128)), 0)
    sizes = [len(cogpu.to_geotiff(data, None, compression="zstd", compression_level=level)) for level in (1, 22)]
    assert sizes[1] < sizes[0]


def test_lossy_codecs(tmp_path):
    smooth = (np.add.outer(np.arange(128), np.arange(160)) % 256).astype("uint8")
    for codec in ("jpeg", "webp"):
        data = np.stack([smooth] * 3)
        sizes = [len(cogpu.to_geotiff(data, None, compression=codec, compression_level=level)) for level in (20, 95)]
        assert sizes[0] < sizes[1]
        cogpu.to_geotiff(data, tmp_path / "a.tif", compression=codec, compression_level=95)
        assert abs(pixels_of(tmp_path / "a.tif").astype(int) - data).mean() < 8
    data = noise((64, 64))
    cogpu.to_geotiff(data, tmp_path / "a.tif", compression="lerc", max_z_error=0.5)
    assert 0 < abs(pixels_of(tmp_path / "a.tif")[0] - data).max() <= 0.5


@pytest.mark.parametrize("dtype, predictor, stored", [("float32", None, 3), ("int16", None, 2), ("float32", False, 1),
                                                      ("int16", True, 2), ("float32", 2, 2), ("float64", 3, 3),
                                                      ("int16", 0, 1)])
def test_predictors(tmp_path, dtype, predictor, stored):
    data = noise((40, 50), dtype)
    cogpu.to_geotiff(data, tmp_path / "a.tif", predictor=predictor)
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], data)
    with opened(tmp_path / "a.tif") as file:
        assert int(file.tags(ns="IMAGE_STRUCTURE").get("PREDICTOR", 1)) == stored


def test_strips_tiles_and_bigtiff(tmp_path):
    data = noise((100, 200))
    cogpu.to_geotiff(data, tmp_path / "a.tif", tiled=False)
    with opened(tmp_path / "a.tif") as file:
        assert file.block_shapes[0][1] == 200
        np.testing.assert_array_equal(file.read(1), data)
    cogpu.to_geotiff(data, tmp_path / "a.tif", tile_size=(16, 48), bigtiff=True)
    with opened(tmp_path / "a.tif") as file:
        assert file.block_shapes == [(16, 48)]
    assert (tmp_path / "a.tif").read_bytes()[:4] == b"II\x2b\x00"
    cogpu.to_geotiff(data, tmp_path / "a.tif", bigtiff=False)
    assert (tmp_path / "a.tif").read_bytes()[:4] == b"II\x2a\x00"
    with opened(tmp_path / "a.tif") as file:
        assert file.block_shapes == [(512, 512)]


@pytest.mark.parametrize("photometric, bands, seen", [
    ("auto", 1, ["gray"]), ("auto", 3, ["red", "green", "blue"]), ("minisblack", 3, ["gray", "undefined", "undefined"]),
    ("rgb", 3, ["red", "green", "blue"]), ("rgba", 4, ["red", "green", "blue", "alpha"]),
    ("auto", 4, ["gray", "undefined", "undefined", "undefined"]), (1, 1, ["gray"]), (2, 3, ["red", "green", "blue"])])
def test_photometric(tmp_path, photometric, bands, seen):
    data = noise((bands, 20, 30), "uint8")
    cogpu.to_geotiff(data, tmp_path / "a.tif", photometric=photometric)
    with opened(tmp_path / "a.tif") as file:
        assert [meaning.name for meaning in file.colorinterp] == seen
        np.testing.assert_array_equal(file.read(), data)


@pytest.mark.parametrize("photometric, dtype, bands", [
    ("cielab", "uint8", 3), ("cielab", "uint16", 3), ("ycbcr", "uint16", 3), ("cmyk", "uint16", 4),
    ("miniswhite", "uint8", 1),
    ("miniswhite", "uint8", 3), ("separated", "uint8", 4)])
def test_colours_of_a_file_stay_what_they_are(tmp_path, photometric, dtype, bands):
    """No samples of other colours come under RGB's name; what a read converts, InkSet 1 for one, is RGB."""
    source, out = tmp_path / "a.tif", tmp_path / "b.tif"
    kind = {"miniswhite": 0, "cmyk": 5, "separated": 5, "ycbcr": 6, "cielab": 8}[photometric]
    tags = [(530, 3, 2, (1, 1))] if kind == 6 else [(332, 3, 1, 2)] if photometric == "separated" else []
    data = noise((bands, 20, 30), dtype)
    rows = data[0] if bands == 1 else np.ascontiguousarray(data.transpose(1, 2, 0))
    tifffile.imwrite(source, rows, photometric="minisblack", planarconfig="contig" if bands > 1 else None,
                     extratags=tags, metadata=None)
    with tifffile.TiffFile(source, mode="r+") as file:
        file.pages[0].tags[262].overwrite(kind)
    read = cogpu.open_geotiff(source)
    np.testing.assert_array_equal(read.values, data)
    for chosen, expected in ((read, 1 if photometric == "separated" else kind),
                             (read[::-1], kind if bands == 1 else 1)):
        cogpu.to_geotiff(chosen, out)
        with tifffile.TiffFile(out) as file:
            assert file.pages[0].photometric == expected
        np.testing.assert_array_equal(cogpu.open_geotiff(out).values, chosen.values)


def test_palette_with_an_alpha_band(tmp_path):
    data = noise((2, 20, 30), "uint8")
    palette = [(257 * i, 0, 65535 - 257 * i) for i in range(256)]
    array = xr.DataArray(data, dims=("band", "y", "x"), attrs={"colormap": palette})
    cogpu.to_geotiff(array, tmp_path / "a.tif")
    read = cogpu.open_geotiff(tmp_path / "a.tif")
    cogpu.to_geotiff(read, tmp_path / "b.tif")
    cogpu.to_geotiff(read[1:], tmp_path / "c.tif")
    for name, seen in ("a", ["palette", "undefined"]), ("b", ["palette", "undefined"]), ("c", ["gray"]):
        with opened(tmp_path / f"{name}.tif") as file:
            assert [meaning.name for meaning in file.colorinterp] == seen
            np.testing.assert_array_equal(file.read(), data[-file.count:])


# ------------------------------------------------------------------------------------------------ COG


@pytest.mark.parametrize("dtype, bands, codec", [("uint8", 3, "deflate"), ("float32", 1, "zstd"), ("int16", 2, "lzw")])
def test_cog(tmp_path, dtype, bands, codec):
    cog_validate = pytest.importorskip("rio_cogeo").cog_validate
    data = noise((bands, 300, 280), dtype)
    cogpu.to_geotiff(data, tmp_path / "a.tif", cog=True, compression=codec, tile_size=64, crs=32633,
                     transform=TRANSFORM)
    valid, errors, notes = cog_validate(tmp_path / "a.tif", strict=True, quiet=True)
    assert (valid, errors, notes) == (True, [], [])
    with opened(tmp_path / "a.tif") as file:
        assert file.overviews(1) == [2, 4, 8]
        np.testing.assert_array_equal(file.read(), data)


@pytest.mark.parametrize("name, gdal", [("nearest", "nearest"), ("mean", "average"), ("average", "average"),
                                        ("rms", "rms"), ("mode", "mode"), ("bilinear", "bilinear"), ("cubic", "cubic")])
def test_overviews_are_gdals(tmp_path, name, gdal):
    data = noise((1, 128, 192), "float32")
    data[0, 30:50, 20:90] = -9999
    cogpu.to_geotiff(data, tmp_path / "a.tif", overview_levels=[2, 4], overview_resampling=name, nodata=-9999,
                     tile_size=64)
    cogpu.to_geotiff(data, tmp_path / "b.tif", nodata=-9999, tile_size=64)
    with opened(tmp_path / "b.tif", mode="r+") as file:
        file.build_overviews([2, 4], getattr(rasterio.enums.Resampling, gdal))
    for level in (0, 1):
        ours, theirs = (pixels_of(tmp_path / f, overview_level=level) for f in ("a.tif", "b.tif"))
        assert ours.shape == theirs.shape
        same = np.isclose(ours, theirs, rtol=1e-5, atol=1e-3)
        assert same.mean() > (0.999 if name in ("nearest", "mean", "average", "rms", "mode") else 0.8)


@pytest.mark.parametrize("name, reduce", [("min", np.min), ("max", np.max), ("median", np.median)])
def test_overviews_gdal_has_not(tmp_path, name, reduce):
    data = noise((64, 96), "float64")
    cogpu.to_geotiff(data, tmp_path / "a.tif", overview_levels=[2], overview_resampling=name, tile_size=16)
    expected = reduce(data.reshape(32, 2, 48, 2), axis=(1, 3))
    np.testing.assert_allclose(pixels_of(tmp_path / "a.tif", overview_level=0)[0], expected)


def test_a_cog_may_go_without_overviews(tmp_path):
    cogpu.to_geotiff(noise((300, 300)), tmp_path / "a.tif", cog=True, tile_size=64, overview_levels=[])
    with opened(tmp_path / "a.tif") as file:
        assert file.overviews(1) == []


# ------------------------------------------------------------------------------------------------ nodata


@pytest.mark.parametrize("dtype, nodata, told", [
    ("float32", -9999, -9999), ("float32", float("nan"), np.nan), ("uint8", 255, 255), ("int16", np.int16(-5), -5),
    ("uint8", 3.0, 3), ("float64", np.float32(0.5), 0.5), ("int64", -2**63, -2**63), ("uint64", 2**63, 2**63),
    ("float32", float("inf"), np.inf), ("complex64", 7, 7)])
def test_nodata(tmp_path, dtype, nodata, told):
    cogpu.to_geotiff(noise((20, 30), dtype), tmp_path / "a.tif", nodata=nodata)
    with opened(tmp_path / "a.tif") as file:
        np.testing.assert_equal(file.nodata, told)


@pytest.mark.parametrize("dtype, nodata", [("uint8", 256), ("uint8", -1), ("int16", 0.5), ("int16", float("nan")),
                                           ("uint16", float("inf")), ("float32", 1e39), ("float16", 70000)])
def test_nodata_that_does_not_fit(tmp_path, dtype, nodata):
    with pytest.raises(InvalidArgumentError, match="nodata"):
        cogpu.to_geotiff(np.zeros((20, 30), dtype), tmp_path / "a.tif", nodata=nodata)
    assert not (tmp_path / "a.tif").exists()


def test_nan_of_unmasked_data_stays(tmp_path):
    data = array_of((20, 30), ("y", "x"), _FillValue=-9999.0)
    data.values[3, 4] = np.nan
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    assert np.isnan(pixels_of(tmp_path / "a.tif")[0, 3, 4])
    cogpu.to_geotiff(data, tmp_path / "a.tif", nodata=-9999)
    assert pixels_of(tmp_path / "a.tif")[0, 3, 4] == -9999
    assert np.isnan(data.values[3, 4])


def test_nan_of_data_that_says_it_is_not_masked_stays(tmp_path):
    data = array_of((20, 30), ("y", "x"), nodata=-9999, masked_nodata=False)
    data.values[3, 4] = np.nan
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    assert np.isnan(pixels_of(tmp_path / "a.tif")[0, 3, 4])


@pytest.mark.parametrize("attrs, encoding", [({"nodata": -9999}, {}), ({"nodatavals": (-9999,)}, {}),
                                             ({"nodata": -9999, "masked_nodata": True}, {}),
                                             ({}, {"_FillValue": -9999.0})])
def test_nan_that_stands_for_nodata(tmp_path, attrs, encoding):
    data = array_of((20, 30), ("y", "x"), **attrs)
    data.encoding = encoding
    data.values[3, 4] = np.nan
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    with opened(tmp_path / "a.tif") as file:
        assert file.nodata == -9999 and file.read(1)[3, 4] == -9999


def test_nan_nodata_changes_nothing(tmp_path):
    data = noise((20, 30))
    data[2, 3] = np.nan
    cogpu.to_geotiff(data, tmp_path / "a.tif", nodata=float("nan"))
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], data)


def test_nodata_that_was_left_behind_by_a_cast(tmp_path):
    data = array_of((20, 30), ("y", "x"), "uint8", _FillValue=-9999)
    with pytest.warns(UserWarning, match="nodata -9999, which samples of uint8 cannot be") as caught:
        cogpu.to_geotiff(data, tmp_path / "a.tif")
    assert caught[0].filename == __file__
    with opened(tmp_path / "a.tif") as file:
        assert file.nodata is None


def test_nodata_of_bands_that_differ(tmp_path):
    data = array_of((2, 20, 30), nodatavals=(1, 2))
    with pytest.raises(InvalidArgumentError, match=r"nodata: .*nodatavals\[1\]"):
        cogpu.to_geotiff(data, tmp_path / "a.tif")
    cogpu.to_geotiff(data.assign_attrs(nodatavals=(2, 2)), tmp_path / "a.tif")
    with opened(tmp_path / "a.tif") as file:
        assert file.nodata == 2


def test_nodata_that_contradicts_itself(tmp_path):
    data = array_of((20, 30), ("y", "x"), nodata=-9999, _FillValue=3)
    with pytest.raises(InvalidArgumentError, match="nodata"):
        cogpu.to_geotiff(data, tmp_path / "a.tif")
    cogpu.to_geotiff(data, tmp_path / "a.tif", nodata=5)
    with opened(tmp_path / "a.tif") as file:
        assert file.nodata == 5
    assert data.attrs == {"nodata": -9999, "_FillValue": 3}


# ------------------------------------------------------------------------------------------------ packing


def packed(values, dtype="int16", **encoding):
    data = xr.DataArray(np.asarray(values, dtype="float64"), dims=("y", "x"))
    data.encoding = {"dtype": dtype, "scale_factor": 0.1, "add_offset": 5.0, **encoding}
    return data


def test_pack(tmp_path):
    data = packed([[5.0, 5.1, np.nan], [-10.0, 100.04, 5.26]], _FillValue=-1)
    cogpu.to_geotiff(data, tmp_path / "a.tif", pack=True)
    with opened(tmp_path / "a.tif") as file:
        assert (file.dtypes, file.nodata, file.scales, file.offsets) == (("int16",), -1, (0.1,), (5.0,))
        np.testing.assert_array_equal(file.read(1), [[0, 1, -1], [-150, 950, 3]])
    assert np.isnan(data.values[0, 2])


def test_unpacked_data_is_not_scaled_again(tmp_path):
    cogpu.to_geotiff(packed([[5.0, 6.0]]), tmp_path / "a.tif")
    with opened(tmp_path / "a.tif") as file:
        assert file.scales == (1.0,) and file.dtypes == ("float64",)


@pytest.mark.parametrize("values, options, advice", [
    ([[4000.0]], {}, "int16"), ([[np.inf]], {}, "int16"), ([[np.nan]], {}, "nodata"), 
    ([[-4000.0]], {"dtype": "uint8"}, "uint8"), ([[1.0]], {"scale_factor": 0.0}, "scale"),
    ([[1.0]], {"dtype": None}, "encoding")])
def test_pack_refuses_what_would_not_come_back(tmp_path, values, options, advice):
    with pytest.raises(InvalidArgumentError, match=f"pack.*{advice}"):
        cogpu.to_geotiff(packed(values, **options), tmp_path / "a.tif", pack=True)
    assert not list(tmp_path.iterdir())


def test_pack_by_bands(tmp_path):
    data = xr.DataArray(np.full((2, 3, 4), 7.0), dims=("band", "y", "x"))
    data.encoding = {"dtype": "int64", "scales": (0.5, 2.0), "offsets": (0.0, 1.0), "_FillValue": -2**63}
    data[0, 0, 0] = np.nan
    cogpu.to_geotiff(data, tmp_path / "a.tif", pack=True)
    got = pixels_of(tmp_path / "a.tif")
    assert got[0, 0, 0] == -2**63 and (got[0, 1:] == 14).all() and (got[1] == 3).all()


# ------------------------------------------------------------------------------------------------ place, system, tags


def systems():
    wkt = rasterio.crs.CRS.from_epsg(32633).to_wkt()
    yield from (32633, np.int64(32633), "EPSG:32633", wkt, "+proj=utm +zone=33 +datum=WGS84 +units=m",
                rasterio.crs.CRS.from_epsg(32633))
    with contextlib.suppress(ImportError):
        import pyproj
        yield pyproj.CRS.from_epsg(32633)


@pytest.mark.parametrize("crs", list(systems()), ids=lambda crs: type(crs).__name__ + str(crs)[:9])
def test_crs(tmp_path, crs):
    cogpu.to_geotiff(noise((20, 30)), tmp_path / "a.tif", crs=crs, transform=Affine(*TRANSFORM))
    with opened(tmp_path / "a.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform[:6] == TRANSFORM


@pytest.mark.parametrize("transform", [(10.0, 2.0, 500.0, 3.0, -10.0, 9.0), (10.0, 0.0, 500.0, 0.0, 10.0, 9.0),
                                       (-10.0, 0.0, 500.0, 0.0, -7.5, 9.0)])
def test_transforms_of_any_kind(tmp_path, transform):
    cogpu.to_geotiff(noise((20, 30)), tmp_path / "a.tif", transform=transform)
    with opened(tmp_path / "a.tif") as file:
        np.testing.assert_allclose(file.transform[:6], transform, rtol=1e-15)


def test_parameters_go_before_what_the_data_says(tmp_path):
    data = array_of((20, 30), ("y", "x"), crs=4326, transform=(1, 0, 0, 0, -1, 0))
    data = data.assign_coords(x=np.arange(30.0) ** 2)
    cogpu.to_geotiff(data, tmp_path / "a.tif", crs=32633, transform=TRANSFORM)
    with opened(tmp_path / "a.tif") as file:
        assert file.crs.to_epsg() == 32633 and file.transform[:6] == TRANSFORM
    with pytest.raises(InvalidArgumentError, match="evenly"):
        cogpu.to_geotiff(data, tmp_path / "a.tif")


def test_what_rioxarray_reads(tmp_path):
    rioxarray = pytest.importorskip("rioxarray")
    source = noise((2, 20, 30), "int16")
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", width=30, height=20, count=2, dtype="int16", nodata=-7,
                       crs="EPSG:32633", transform=Affine(*TRANSFORM)) as file:
        file.write(source)
        file.scales, file.offsets, file.units = (0.5, 0.5), (1, 1), ("m", "m")
        file.descriptions = ("near", "far")
        file.update_tags(AREA_OR_POINT="Point", survey="2026")
    for masked in (False, True):
        with rioxarray.open_rasterio(tmp_path / "a.tif", masked=masked) as data:
            cogpu.to_geotiff(data, tmp_path / "b.tif")
        with opened(tmp_path / "b.tif") as file:
            assert file.crs.to_epsg() == 32633 and file.transform[:6] == TRANSFORM and file.nodata == -7
            assert file.descriptions == ("near", "far") and file.units == ("m", "m")
            assert file.tags()["AREA_OR_POINT"] == "Point" and file.tags()["survey"] == "2026"
            np.testing.assert_array_equal(file.read(), source)


def test_points_and_polynomials(tmp_path):
    points = [rasterio.control.GroundControlPoint(row, column, 10.0 + column, 50.0 - row, 3.0)
              for row, column in ((0, 0), (9, 1), (4, 8))]
    numbers = {name: float(i + 1) for i, name in enumerate(RPC_NUMBERS)}
    lists = {name: [i + number / 8 for number in range(20)] for i, name in enumerate(RPC_LISTS)}
    rpc = rasterio.rpc.RPC(**numbers, **lists)
    with opened(tmp_path / "a.tif", mode="w", driver="GTiff", width=20, height=20, count=1, dtype="uint8") as file:
        file.write(noise((1, 20, 20), "uint8"))
        file.gcps = points, rasterio.crs.CRS.from_epsg(4326)
    with opened(tmp_path / "b.tif", mode="w", driver="GTiff", width=20, height=20, count=1, dtype="uint8") as file:
        file.write(noise((1, 20, 20), "uint8"))
        file.rpcs = rpc
    for name in ("a.tif", "b.tif"):
        cogpu.to_geotiff(cogpu.open_geotiff(tmp_path / name), tmp_path / "c.tif")
        with opened(tmp_path / name) as old, opened(tmp_path / "c.tif") as new:
            old_points, new_points = ([(p.row, p.col, p.x, p.y, p.z) for p in file.gcps[0]] for file in (old, new))
            assert new_points == old_points
            assert new.rpcs == old.rpcs and (name == "a.tif" or new.rpcs is not None)


@pytest.mark.parametrize("shape", ["flat", "colours"])
def test_palette(tmp_path, shape):
    colours = np.array([[65535, 0, 0], [0, 65535, 257], [1000, 2000, 3000]])
    data = array_of((20, 30), ("y", "x"), "uint8", colormap=colours if shape == "colours" else tuple(colours.T.ravel()))
    data.values[:] %= 3
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    with opened(tmp_path / "a.tif") as file:
        assert [file.colormap(1)[entry][:3] for entry in range(3)] == [(255, 0, 0), (0, 255, 1), (3, 7, 11)]
        assert "colormap" not in file.tags()
        np.testing.assert_array_equal(file.read(1), data)
    data.attrs["colormap"] = "viridis"
    with pytest.raises(InvalidArgumentError, match="colormap"):
        cogpu.to_geotiff(data, tmp_path / "a.tif")


@pytest.mark.parametrize("options", [{}, {"window": (2, 3, 12, 13)}, {"chunks": 16}, {"masked": True}])
def test_palette_of_a_file_that_was_read(tmp_path, options):
    """It is kept while samples are numbers of its colours, and is in no one's way else."""
    colours = {value: (value, 255 - value, 7, 255) for value in range(256)}
    with opened(tmp_path / "a.tif", mode="w", driver="GTiff", width=30, height=20, count=1, dtype="uint8") as file:
        file.write(noise((1, 20, 30), "uint8"))
        file.write_colormap(1, colours)
    data = cogpu.open_geotiff(tmp_path / "a.tif", **options)
    assert "colormap" not in data.attrs
    cogpu.to_geotiff(data, tmp_path / "b.tif", pack="masked" in options)
    with opened(tmp_path / "b.tif") as file:
        assert file.colormap(1) == colours and file.dtypes == ("uint8",)
    for changed in (data.astype("float32"), data * 2):
        cogpu.to_geotiff(changed, tmp_path / "b.tif")
        with opened(tmp_path / "b.tif") as file:
            assert file.colorinterp[0].name == "gray"
    data.rio.to_raster(tmp_path / "b.tif")
    with opened(tmp_path / "b.tif") as file:
        assert "colormap" not in file.tags()


def test_what_we_read_comes_back_the_same(tmp_path):
    data = array_of((3, 40, 50), crs=32633, nodata=-1.0, units="m", note="here")
    cogpu.to_geotiff(data, tmp_path / "a.tif")
    cogpu.to_geotiff(cogpu.open_geotiff(tmp_path / "a.tif"), tmp_path / "b.tif")
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()


# ------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize("cog", [False, True])
def test_targets_get_the_same_bytes(tmp_path, cog):
    options = {"cog": cog, "tile_size": 32, "crs": 4326}
    data, pipe, memory = noise((2, 90, 100)), Pipe(), io.BytesIO()
    assert cogpu.to_geotiff(data, pipe, **options) is pipe
    assert cogpu.to_geotiff(data, memory, **options) is memory
    assert cogpu.to_geotiff(data, str(tmp_path / "a.tif"), **options) == str(tmp_path / "a.tif")
    written = (tmp_path / "a.tif").read_bytes()
    assert bytes(pipe.taken) == memory.getvalue() == written == cogpu.to_geotiff(data, None, **options)


class Full(Pipe):
    def write(self, data):
        raise OSError(28, "No space left on device")


def test_a_target_that_fails(tmp_path):
    with pytest.raises(OSError, match="No space"):
        cogpu.to_geotiff(noise((20, 30)), Full())


def test_the_old_file_stands_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(b"old")
    seen = []

    def look(done, total):
        seen.append(path.read_bytes())
        if done > 1000:
            raise RuntimeError("enough")

    data = noise((2000, 40))
    with pytest.raises(RuntimeError, match="enough") as caught:  # which keeps all frames, and what is in them
        cogpu.to_geotiff(data, path, progress=look, tile_size=32)
    assert caught.value and set(seen) == {b"old"}
    assert os.listdir(tmp_path) == ["a.tif"] and path.read_bytes() == b"old"
    cogpu.to_geotiff(data, path)
    np.testing.assert_array_equal(pixels_of(path)[0], data)


def test_progress(tmp_path):
    calls = []
    cogpu.to_geotiff(noise((200, 40)), tmp_path / "a.tif", tile_size=16, progress=lambda *now: calls.append(now))
    assert calls[-1] == (200, 200) and len(calls) > 5
    assert [done for done, _ in calls] == sorted({done for done, _ in calls}) and {total for _, total in calls} == {200}


def test_progress_bar(tmp_path, capsys):
    pytest.importorskip("tqdm")
    cogpu.to_geotiff(noise((200, 40)), tmp_path / "a.tif", progress=True)
    assert "200/200" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ chunks, devices


@pytest.mark.parametrize("gpu", [None, "emu"])
@pytest.mark.parametrize("cog", [False, True])
def test_chunks_do_not_show(tmp_path, gpu, cog):
    data = noise((2, 130, 100))
    options = {"gpu": gpu, "cog": cog, "tile_size": 32, "nodata": -1.0}
    assert cogpu.to_geotiff(data, None, **options) == cogpu.to_geotiff(data, None, streaming_buffer_bytes=1, **options)


def test_emulated_gpu(tmp_path):
    data = noise((2, 70, 60), "int16")
    cogpu.to_geotiff(data, tmp_path / "a.tif", gpu="emu", tile_size=32)
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif"), data)
    with cogpu.open(tmp_path / "a.tif") as file:
        there = file.read(device="emu")
    assert _cogpu.device_of(np.from_dlpack(there)).startswith("emu")
    for gpu in (None, "emu", False):
        cogpu.to_geotiff(there, tmp_path / "b.tif", gpu=gpu, tile_size=32)
        np.testing.assert_array_equal(pixels_of(tmp_path / "b.tif"), data)
    assert cogpu.to_geotiff(there, None, gpu=False) == cogpu.to_geotiff(data, None)


def test_rows_are_views():
    whole = noise((64, 80, 3))
    for data in (whole.transpose(2, 0, 1), xr.DataArray(whole, dims=("y", "x", "band"))):
        rows = write.plan(data).rows(10, 30)
        assert rows.shape == (3, 20, 80) and np.shares_memory(rows, whole)


def test_pixel_interleaved_arrays_are_not_copied(tmp_path):
    data = xr.DataArray(np.ones((1024, 1024, 3), "float32"), dims=("y", "x", "band"))
    tracemalloc.start()
    cogpu.to_geotiff(data, tmp_path / "a.tif", compression="none", tile_size=256)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.nbytes / 10


def test_lazy_files_are_copied_a_few_rows_at_a_time(tmp_path, monkeypatch):
    source = noise((600, 64), "float32")
    cogpu.to_geotiff(source, tmp_path / "a.tif", tile_size=32)
    heights, read = [], Pixels.read
    monkeypatch.setattr(Pixels, "read", lambda self, rows, *rest, **more: (heights.append(rows.stop - rows.start),
                                                                          read(self, rows, *rest, **more))[1])
    with xr.open_dataset(tmp_path / "a.tif", engine=Engine) as lazy:
        data = next(iter(lazy.data_vars.values()))
        cogpu.to_geotiff(data, tmp_path / "b.tif", tile_size=32, streaming_buffer_bytes=10000)
    np.testing.assert_array_equal(pixels_of(tmp_path / "b.tif")[0], source)
    assert max(heights) == 32 and sum(heights) == 600


def test_a_file_may_be_written_over_while_it_is_read(tmp_path):
    source = noise((100, 64))
    cogpu.to_geotiff(source, tmp_path / "a.tif", tile_size=16)
    with xr.open_dataset(tmp_path / "a.tif", engine=Engine) as lazy:
        data = next(iter(lazy.data_vars.values()))
        cogpu.to_geotiff(data, tmp_path / "a.tif", tile_size=32, compression="zstd", streaming_buffer_bytes=1)
    np.testing.assert_array_equal(pixels_of(tmp_path / "a.tif")[0], source)


def test_the_least_imports():
    code = ("import sys, numpy, cogpu; cogpu.to_geotiff(numpy.zeros((20, 30)), None); "
            "print([name for name in ('xarray', 'dask', 'pandas', 'tqdm') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("options", [
    {"compression": "lz77"}, {"compression": "lzw", "compression_level": 3}, {"compression_level": 13},
    {"compression_level": 0},
    {"compression": "zstd", "compression_level": 23}, {"tile_size": 100}, {"tile_size": 0}, {"tile_size": (16, 16, 16)},
    {"tiled": False, "tile_size": 32}, {"tiled": False, "cog": True}, {"predictor": 4}, {"interleave": "line"},
    {"overview_levels": [1]}, {"overview_levels": [4, 2]}, {"overview_resampling": "mean"},
    {"cog": True, "overview_resampling": "gauss"}, {"cog": True, "overview_levels": [], "overview_resampling": "mean"},
    {"photometric": "hsv"}, {"photometric": 7}, {"photometric": "rgba"}, {"pack": True}, {"max_z_error": 0.1},
    {"compression": "lerc", "max_z_error": -1},
    {"transform": (1, 2, 3)}, {"transform": (0, 0, 0, 0, 0, 0)}, {"transform": (1, 0, float("nan"), 0, 1, 0)},
    {"streaming_buffer_bytes": 0}], ids=str)
def test_bad_values_are_named(tmp_path, options):
    with pytest.raises(InvalidArgumentError, match="|".join(options)):
        cogpu.to_geotiff(np.zeros((20, 30), "float32"), tmp_path / "a.tif", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [
    {"nodata": True}, {"nodata": np.bool_(True)}, {"nodata": "0"}, {"crs": True}, {"crs": 3.5}, {"tile_size": True},
    {"tile_size": 32.0}, {"compression_level": True}, {"compression": 8}, {"cog": "yes"}, {"cog": 1}, {"tiled": None},
    {"bigtiff": "no"}, {"gpu": "cuda"}, {"gpu": 1}, {"photometric": None}, {"overview_levels": [True]}, {"progress": 3},
    {"predictor": "2"}, {"pack": 1}, {"interleave": None}], ids=str)
def test_bad_types_are_named(tmp_path, options):
    with pytest.raises(TypeError, match="|".join(options)):
        cogpu.to_geotiff(np.zeros((20, 30), "float32"), tmp_path / "a.tif", **options)
    assert not list(tmp_path.iterdir())


def test_unknown_parameters():
    with pytest.raises(TypeError, match="blockxsize"):
        cogpu.to_geotiff(np.zeros((2, 2)), None, blockxsize=512)
    with pytest.raises(TypeError, match="blockxsize"):
        write.plan(np.zeros((2, 2)), blockxsize=512)


@pytest.mark.parametrize("data, error, advice", [
    (np.zeros(5), InvalidArgumentError, "dimensions"), (np.zeros((1, 1, 1, 1)), InvalidArgumentError, "dimensions"),
    (np.zeros((0, 5)), InvalidArgumentError, "no pixels"), ([[1, 2]], TypeError, "list"), (None, TypeError, "data"),
    (np.zeros((2, 2), "datetime64[s]"), InvalidArgumentError, "datetime64"), 
    (np.zeros((2, 2), object), InvalidArgumentError, "object"),
    (np.zeros((2, 2), "longdouble"), InvalidArgumentError, "longdouble|float128"),
    (xr.DataArray(np.zeros((2, 2, 2)), dims=("time", "y", "x")), InvalidArgumentError, "time"),
    (xr.DataArray(np.zeros((2, 2))), InvalidArgumentError, "dim_0"),
    (xr.DataArray(np.zeros((2, 2)), dims=("y", "lat")), InvalidArgumentError, "one of x"),
    (xr.Dataset({"a": (("y", "x"), np.zeros((2, 2)))}), TypeError, "Dataset")], ids=lambda value: type(value).__name__)
def test_bad_data(tmp_path, data, error, advice):
    with pytest.raises(error, match=advice):
        cogpu.to_geotiff(data, tmp_path / "a.tif")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("crs", ["nonsense", 999999, "EPSG:4326x"])
def test_bad_systems(tmp_path, crs):
    with pytest.raises(ValueError, match="crs"):
        cogpu.to_geotiff(np.zeros((2, 2)), tmp_path / "a.tif", crs=crs)
    assert not list(tmp_path.iterdir())


def test_bad_targets(tmp_path):
    with pytest.raises(TypeError):
        cogpu.to_geotiff(np.zeros((2, 2)), 5)
    with pytest.raises(NotFoundError, match="missing"):
        cogpu.to_geotiff(np.zeros((2, 2)), pathlib.Path(tmp_path) / "missing" / "a.tif")


@pytest.mark.parametrize("crs", ["foo", "EPSG:999999", "UNKNOWN:1", "+proj=nothing"])
def test_systems_that_are_none(crs):
    """PROJ would take "foo" for Amersfoort."""
    with pytest.raises(InvalidArgumentError, match="crs: "):
        cogpu.to_geotiff(np.zeros((20, 30), "uint8"), None, crs=crs)


@pytest.mark.parametrize("options", [{"overview_levels": 2}, {"max_z_error": "much"}, {"max_z_error": True},
                                     {"gpu": "cuda"}, {"path": 5}])
def test_words_of_a_wrong_kind_are_named(options):
    with pytest.raises(TypeError, match=next(iter(options))):
        cogpu.to_geotiff(np.zeros((20, 30), "uint8"), **{"path": None, "compression": "lerc", **options})
