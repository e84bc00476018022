"""Metadata of bands and of other domains than the default one, read and written; malformed scales and offsets."""

import json
import warnings

import numpy as np
import pytest
import rasterio
import rioxarray
import tifffile
import xarray
from conftest import pixels_of, write_file

import cogpu
from cogpu import georef

DERIVED = ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS")
GPUS = {"cpu": False, "emu": "emu", "cuda": True}


def tags_of(path):
    """All that rasterio has: {(band, domain): tags}."""
    with rasterio.open(path) as file:
        return {(band, domain): tags for band in range(file.count + 1)
                for domain in (None, *file.tag_namespaces(band)) if domain not in DERIVED
                if (tags := {name: text for name, text in file.tags(band, ns=domain).items()
                             if name != "AREA_OR_POINT"})}


@pytest.fixture
def tagged(tmp_path):
    path = write_file(tmp_path / "tagged.tif", pixels_of((3, 70, 80), "int16"))
    with rasterio.open(path, "r+") as file:
        file.update_tags(A="image", NUMBER="007", SERIES="{1,2.5}", SAME="both", PLAIN="x", ONLY="12")
        file.update_tags(1, A="first", B1="one", SAME="both", RATE="0.50")
        file.update_tags(2, B2="zwei, drei", NUMBER="5")
        file.update_tags(3, B1="three")
        file.update_tags(ns="MINE", K="v", NUMBER="010")
        file.update_tags(2, ns="MINE", K="v2 <&> \"quoted\"")
        file.update_tags(3, ns="Zürich", name="Höhe")
        file.update_tags(ns="xml:THING", **{"xml:THING": '<a b="c">text &amp; more</a>'})
        file.update_tags(2, ns="xml:THING", **{"xml:THING": "<a/>"})
        file.update_tags(3, ns="json:J", **{"json:J": '{"a": 1}'})
    return path


def test_tags_of_bands_and_domains(tagged):
    with cogpu.open(tagged) as file, rasterio.open(tagged) as reference:
        for band in range(4):
            assert file.metadata(band) == {name: text for name, text in reference.tags(band).items()
                                           if name != "AREA_OR_POINT"}
            assert file.metadata(band, "MINE") == reference.tags(band, ns="MINE")
            assert set(file.domains(band)) - {""} == set(reference.tag_namespaces(band)) - set(DERIVED)
        assert file.metadata(domain="xml:THING") == {"doc": reference.tags(ns="xml:THING")["xml:THING"]}
        assert file.tags == file.metadata(0, "") and file.metadata(2, "absent") == {}


def test_tags_of_bands_and_domains_survive(tagged, tmp_path, device):
    """Through eager, Dask's and GPU arrays, arithmetic, and files of netCDF's and Zarr's kind of attributes."""
    expected = tags_of(tagged)
    assert expected[2, None]["B2"] == "zwei, drei" and expected[0, "xml:THING"]
    target = tmp_path / "again.tif"
    arrays = [cogpu.open_geotiff(tagged, gpu=GPUS[device]), cogpu.open_geotiff(tagged, gpu=GPUS[device], chunks=64),
              cogpu.open_geotiff(tagged, masked=True, gpu=GPUS[device]),
              xarray.open_dataset(tagged, engine="cogpu", mask_and_scale=False, gpu=GPUS[device])["band_data"]]
    with xarray.set_options(keep_attrs=True):
        arrays += [arrays[0] * 2 + 1, arrays[1] * 2 + 1]
    for array in arrays:
        for how in ({}, {"cog": True}):
            cogpu.to_geotiff(array, target, **how)
            assert tags_of(target) == expected
        assert all(isinstance(array.attrs[name], str) for name in ("band_tags", "tag_domains"))


def test_band_tags_follow_a_choice_of_bands(tagged, tmp_path):
    array, target = cogpu.open_geotiff(tagged), tmp_path / "some.tif"
    of_two, of_three = ({"B2": "zwei, drei", "NUMBER": "5"}, {"B1": "three"})
    for chosen in (array.sel(band=[3, 2]), array[[2, 1]], cogpu.open_geotiff(tagged, band=[3, 2])):
        cogpu.to_geotiff(chosen, target)
        found = tags_of(target)
        assert found[1, None] == of_three and found[2, None] == of_two
        assert found[2, "MINE"] == {"K": "v2 <&> \"quoted\""} and (1, "MINE") not in found
        assert found[0, "MINE"] == {"K": "v", "NUMBER": "010"}
    cogpu.to_geotiff(array.sel(band=3), target)
    assert tags_of(target)[1, None] == of_three
    cogpu.to_geotiff(array.drop_vars("band"), target)
    assert tags_of(target)[3, None] == of_three


def test_tags_that_were_changed(tagged, tmp_path):
    """An attribute that somebody sets is a tag of the image; a band's stays the band's."""
    array, target = cogpu.open_geotiff(tagged), tmp_path / "changed.tif"
    assert array.attrs["A"] == "first" and array.attrs["B1"] == "one"  # as rioxarray has them
    array.attrs |= {"A": "new", "NUMBER": 8}
    del array.attrs["PLAIN"]
    cogpu.to_geotiff(array, target)
    found, before = tags_of(target), tags_of(tagged)
    expected = {**before[0, None], "A": "new", "NUMBER": "8"}
    assert expected.pop("PLAIN") and found[0, None] == expected
    assert found[1, None] == before[1, None]


def test_tags_that_users_set(tmp_path):
    array = xarray.DataArray(np.zeros((2, 8, 8), "u1"), dims=("band", "y", "x"))
    array.attrs = {"band_tags": {1: {"A": "a"}, "2": {"B": 7}}, "tag_domains": {"D": {0: {"K": "v"}, 2: {"K": "w"}}}}
    cogpu.to_geotiff(array, tmp_path / "set.tif")
    assert tags_of(tmp_path / "set.tif") == {(1, None): {"A": "a"}, (2, None): {"B": "7"}, (0, "D"): {"K": "v"},
                                             (2, "D"): {"K": "w"}}
    for name, wrong in (("band_tags", "{"), ("band_tags", [1]), ("band_tags", {"one": {}}), ("band_tags", {1: "a"}),
                        ("tag_domains", {"D": "text"}), ("tag_domains", "[]x")):
        array.attrs = {name: wrong}
        with pytest.raises(cogpu.InvalidArgumentError, match=name):
            cogpu.to_geotiff(array, tmp_path / "set.tif")


def test_statistics_are_not_written(tagged, tmp_path):
    with rasterio.open(tagged, "r+") as file:
        file.update_tags(2, STATISTICS_MEAN="5")
    array = cogpu.open_geotiff(tagged)
    cogpu.to_geotiff(array + 1, tmp_path / "again.tif")
    assert "STATISTICS" not in str(tags_of(tmp_path / "again.tif")) + array.attrs["band_tags"]


def test_attributes_are_rioxarrays(tagged):
    ours, theirs = cogpu.open_geotiff(tagged).attrs, rioxarray.open_rasterio(tagged).attrs
    extra = {"band_tags", "tag_domains"}
    assert {name: str(value) for name, value in ours.items() if name not in extra} == \
        {name: str(value) for name, value in theirs.items()}
    assert json.loads(ours["band_tags"])["3"] == {"B1": "three"}
    assert not extra & set(georef.of_array(cogpu.open_geotiff(tagged))["tags"])


# ---- scale and offset ------------------------------------------------------------------------------------------------

ITEM = '<Item name="{name}" sample="{sample}" role="{role}">{text}</Item>'


def scaled_file(path, scales=(), offsets=()):
    items = [ITEM.format(name=role.upper(), sample=sample, role=role, text=text)
             for role, texts in (("scale", scales), ("offset", offsets)) for sample, text in enumerate(texts)]
    text = f"<GDALMetadata>{''.join(items)}</GDALMetadata>".encode() + b"\0"
    tifffile.imwrite(path, np.arange(1, 513, dtype="uint16").reshape(2, 16, 16), photometric="minisblack",
                     planarconfig="separate", extratags=[(42112, 2, len(text), text, True)], metadata=None)
    return path


@pytest.mark.parametrize("text", ["0", "0.0", "-0", "nan", "inf", "abc", "", "1e999"])
@pytest.mark.parametrize("chunks", [None, 16])
def test_a_malformed_scale_warns_and_is_not_applied(text, chunks, tmp_path, device):
    path = scaled_file(tmp_path / "scaled.tif", scales=("2", text), offsets=("1", "1"))
    with pytest.warns(cogpu.MetadataWarning, match=r"scaled.tif: the scale of band 2 is") as warned:
        array = cogpu.open_geotiff(path, unscale=True, chunks=chunks, gpu=GPUS[device])
        values = array.compute().data
    assert len([one for one in warned if one.category is cogpu.MetadataWarning]) == 1
    assert warned[0].filename == __file__
    pixels = tifffile.imread(path).astype("float32")
    np.testing.assert_array_equal(values.get() if device == "cuda" else values,
                                  [pixels[0] * 2 + 1, pixels[1] + 1])


@pytest.mark.parametrize("text", ["nan", "abc", "inf"])
def test_a_malformed_offset_warns_and_is_not_applied(text, tmp_path):
    path = scaled_file(tmp_path / "scaled.tif", scales=("2", "3"), offsets=(text, "1"))
    with pytest.warns(cogpu.MetadataWarning, match=r"scaled.tif: the offset of band 1 is"):
        array = xarray.open_dataset(path, engine="cogpu")["band_data"]
    np.testing.assert_array_equal(array[0], tifffile.imread(path)[0] * 2.0)
    with pytest.warns(cogpu.MetadataWarning), cogpu.open(path) as file:
        np.testing.assert_array_equal(np.asarray(file.read(unscale=True))[1], tifffile.imread(path)[1] * 3.0 + 1)


def test_valid_scales_do_not_warn(tmp_path):
    path = scaled_file(tmp_path / "scaled.tif", scales=(" 2.5e-1 m", "-3"), offsets=("0", ".5"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = cogpu.open_geotiff(path, unscale=True)
        with cogpu.open(path) as file:
            file.read(unscale=True)
    first, second = tifffile.imread(path)
    np.testing.assert_array_equal(array, [first * 0.25, second * -3. + .5])
    with rasterio.open(path) as reference, cogpu.open(path) as file:
        assert file.scales == reference.scales and file.offsets == reference.offsets


def test_malformed_scales_of_bands_that_are_not_read_do_not_warn(tmp_path):
    path = scaled_file(tmp_path / "scaled.tif", scales=("2", "abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cogpu.open_geotiff(path, unscale=True, band=1)
