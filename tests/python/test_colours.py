"""Photometric interpretations: pixels as GDAL returns them, and what `cogpu convert` calls them in another file."""

import subprocess
import zlib

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import rasterio
import tiff_bytes as tb
from conftest import BIN

MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, CMYK, YCBCR, CIELAB, ICCLAB = 0, 1, 2, 3, 5, 6, 8, 9
DEVICES = {"cpu": cogpu.CPU, "cuda": cogpu.CUDA, "emu": cogpu.EMU}
WHOLE = {530: (tb.SHORT, [1, 1])}
CODECS = [(tb.NONE, bytes), (tb.LZW, tb.lzw_encode), (tb.DEFLATE, zlib.compress), (tb.PACKBITS, tb.packbits_encode)]
MEANINGS = {"usual": {}, "range": {532: (tb.RATIONAL, [16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1])},
            "HDTV": {529: (tb.RATIONAL, [2126, 10000, 7152, 10000, 722, 10000])}}


def noise(bands, dtype="u1", bits=None, size=(20, 33)):
    return reference.noise(np.random.default_rng(bands), (bands, *size), dtype, bits)


def check(data, device="cpu"):
    """Pixels, their type and the names of the bands are GDAL's, as a whole and for a few bands of a window."""
    expected = reference.read(data)
    with reference.opened(data) as theirs, cogpu.open_memory(data) as file:
        assert reference.same(file.read(device=DEVICES[device]), expected)
        chosen = [len(expected), 1]
        part = file.read(device=DEVICES[device], window=(3, 2, 11, 9), bands=chosen)
        assert reference.same(part, expected[[band - 1 for band in chosen], 2:11, 3:14])
        assert [file.band(i + 1).interpretation for i in range(len(expected))] == [c.name for c in theirs.colorinterp]


# ---- reading -----------------------------------------------------------------------------------

@pytest.mark.parametrize("meaning", MEANINGS.values(), ids=MEANINGS)
@pytest.mark.parametrize("codec, encode", CODECS)
@pytest.mark.parametrize("predictor", [1, 2])
@pytest.mark.parametrize("planar", [True, False], ids=["planar", "chunky"])
def test_planar_ycbcr(codec, encode, predictor, planar, meaning, device):
    data = tb.image(noise(3), photometric=YCBCR, planar=planar, rows=7, compression=codec, encode=encode,
                    predictor=predictor, tags=WHOLE | meaning)
    check(data, device)


@pytest.mark.parametrize("planar", [True, False], ids=["planar", "chunky"])
def test_planar_ycbcr_in_one_tile(planar, device):
    check(tb.image(noise(3, size=(32, 32)), photometric=YCBCR, planar=planar, tile=(32, 32), tags=WHOLE), device)


@pytest.mark.parametrize("ratio", [None, [2, 2], [2, 1], [4, 4]])
def test_planar_ycbcr_with_shared_chroma_is_refused(ratio):
    """As by GDAL: its planes are not of one size, and it does not tell of what size."""
    data = tb.image(noise(3), photometric=YCBCR, planar=True, tags={530: (tb.SHORT, ratio)} if ratio else {})
    assert reference.refuses(data)
    with cogpu.open_memory(data) as file, pytest.raises(cogpu.CogpuError, match="YCbCrSubSampling") as error:
        file.read()
    assert error.value.status == cogpu.UNSUPPORTED


def test_ycbcr_of_16_bits_with_shared_chroma_is_refused():
    data = tb.image(noise(3, "u2"), photometric=YCBCR, tags={530: (tb.SHORT, [2, 2])})
    assert reference.refuses(data)
    with cogpu.open_memory(data) as file, pytest.raises(cogpu.CogpuError, match="YCbCrSubSampling") as error:
        file.read()
    assert error.value.status == cogpu.UNSUPPORTED


@pytest.mark.parametrize("dtype", ["u2", "i2", "f4"])
@pytest.mark.parametrize("planar", [True, False], ids=["planar", "chunky"])
@pytest.mark.parametrize("ratio", [[1, 1], [2, 2]])
def test_wide_ycbcr_is_as_stored(dtype, planar, ratio, device):
    if planar or ratio == [1, 1]:
        check(tb.image(noise(3, dtype), photometric=YCBCR, planar=planar, rows=7, tags={530: (tb.SHORT, ratio)}), device)


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("bands, photometric, planar", [
    (4, CMYK, False), (4, CMYK, True), (5, CMYK, False), (7, CMYK, False), (3, YCBCR, False), (3, YCBCR, True)])
def test_inks_and_ycbcr_of_bytes(dtype, bands, photometric, planar, device):
    """Signed or not, they become RGB; of inks the first four."""
    tags = WHOLE if photometric == YCBCR else {338: (tb.SHORT, [2] * (bands - 4))} if bands > 4 else {}
    check(tb.image(noise(bands, dtype), photometric=photometric, planar=planar, rows=7, tags=tags), device)


@pytest.mark.parametrize("layout", [{"rows": 7}, {"tile": (16, 16)}])
def test_five_inks_apart(layout, device):
    """GDAL reads no such file: what it makes of the same inks side by side."""
    array = noise(5)
    data = tb.image(array, photometric=CMYK, planar=True, **layout)
    assert reference.refuses(data)
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(device=DEVICES[device]), reference.read(tb.image(array, photometric=CMYK, rows=7)))


@pytest.mark.parametrize("bands", [4, 5])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_inks_that_are_not_cmyk(bands, dtype):
    """InkSet 2."""
    check(tb.image(noise(bands, dtype), photometric=CMYK, rows=7, tags={332: (tb.SHORT, [2])}))


@pytest.mark.parametrize("bands", [4, 5])
@pytest.mark.parametrize("dtype", ["u2", "i2", "f4"])
@pytest.mark.parametrize("planar", [True, False], ids=["planar", "chunky"])
def test_wide_inks_are_as_stored(bands, dtype, planar):
    check(tb.image(noise(bands, dtype), photometric=CMYK, planar=planar, rows=7))


# ---- converting --------------------------------------------------------------------------------

KINDS = {"u1": ("u1", None), "i1": ("i1", None), "u2": ("u2", None), "i2": ("i2", None), "f4": ("f4", None),
         "4 bits": ("u1", 4), "12 bits": ("u2", 12)}


def converted(tmp_path, data, *words):
    (tmp_path / "in.tif").write_bytes(data)
    done = subprocess.run([BIN, "convert", tmp_path / "in.tif", tmp_path / "out.tif", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (tmp_path / "out.tif").read_bytes()


def photometric_of(data):
    with cogpu.open_memory(data) as file:
        return file.info().photometric


def interpretations(data):
    with cogpu.open_memory(data) as file:
        return [file.band(i + 1).interpretation for i in range(file.info().bands)]


def true_name(data):
    """What the samples of a file are to be called in another one: what they are, or nothing."""
    with cogpu.open_memory(data) as file:
        info = file.info()
    is_byte, kept = info.dtype.itemsize == 1, [MIN_IS_WHITE, RGB] + [CIELAB] * (info.bands >= 3) + [PALETTE] * bool(info.palette)
    if not is_byte:
        kept += [CMYK] * (info.bands >= 4) + [YCBCR] * (info.bands == 3)
    if interpretations(data)[:3] == ["red", "green", "blue"]:
        return RGB
    return info.photometric if info.photometric in kept else MIN_IS_BLACK


@pytest.mark.parametrize("photometric", [MIN_IS_WHITE, MIN_IS_BLACK, RGB, PALETTE, 4, CMYK, YCBCR, CIELAB, ICCLAB])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("planar", [False, True], ids=["chunky", "planar"])
def test_converted_colours(tmp_path, photometric, kind, planar):
    """GDAL reads the same pixels of the new file, where it reads the old one, and no tag tells a lie."""
    dtype, bits = KINDS[kind]
    for bands in (1, 2, 3, 4, 5)[photometric == RGB and 2 or 0:]:
        tags = WHOLE if photometric == YCBCR else {}
        if photometric == PALETTE and dtype[0] == "u":
            depth = bits or 8 * np.dtype(dtype).itemsize
            tags = {320: (tb.SHORT, np.random.default_rng(1).integers(0, 256, 3 << depth) * 257)}
        data = tb.image(noise(bands, dtype, bits, size=(32, 32)), photometric=photometric, planar=planar and bands > 1,
                        bits=bits, tile=(32, 32), tags=tags)
        after = converted(tmp_path, data, "--block", "32")
        with cogpu.open_memory(data) as old, cogpu.open_memory(after) as new:
            assert reference.same(old.read(), new.read()), bands
        assert photometric_of(after) == true_name(data), bands
        if not reference.refuses(data):
            assert reference.same(reference.read(data), reference.read(after)), bands
        if photometric == PALETTE and dtype[0] == "u":
            with reference.opened(data) as old, reference.opened(after) as new:
                assert old.colormap(1) == new.colormap(1)


@pytest.mark.parametrize("photometric, dtype, tags", [
    (CIELAB, "u1", {}), (CIELAB, "u2", {}), (ICCLAB, "u1", {}), (YCBCR, "u2", WHOLE), (CMYK, "u2", {}),
    (CMYK, "u1", {332: (tb.SHORT, [2])})])
@pytest.mark.parametrize("bands", ["3,2,1", "2,3,1"])
def test_chosen_bands_are_not_called_rgb(tmp_path, photometric, dtype, tags, bands):
    data = tb.image(noise(4 if photometric == CMYK else 3, dtype), photometric=photometric, tags=tags)
    after = converted(tmp_path, data, "--band", bands)
    assert photometric_of(after) == MIN_IS_BLACK
    with cogpu.open_memory(data) as old, cogpu.open_memory(after) as new:
        assert reference.same(old.read(bands=[int(band) for band in bands.split(",")]), new.read())


@pytest.mark.parametrize("bands, photometric", [("1", MIN_IS_WHITE), ("2", MIN_IS_BLACK), ("1,2", MIN_IS_WHITE)])
def test_chosen_bands_of_min_is_white(tmp_path, bands, photometric):
    data = tb.image(noise(2), photometric=MIN_IS_WHITE, tags={338: (tb.SHORT, [2])})
    assert photometric_of(converted(tmp_path, data, "--band", bands)) == photometric


@pytest.mark.parametrize("bands, photometric", [("1", PALETTE), ("2", MIN_IS_BLACK), ("1,2", PALETTE)])
def test_chosen_bands_of_a_palette(tmp_path, bands, photometric):
    tags = {320: (tb.SHORT, list(range(768))), 338: (tb.SHORT, [2])}
    data = tb.image(noise(2), photometric=PALETTE, tags=tags)
    after = converted(tmp_path, data, "--band", bands)
    assert photometric_of(after) == photometric
    with reference.opened(after) as file:
        assert file.colorinterp[-1] == rasterio.enums.ColorInterp.alpha or len(bands) == 1


def test_planar_jpeg_of_ycbcr_is_not_called_rgb(tmp_path):
    """Each plane is a grey picture to JPEG, so nothing converts them; GDAL returns the same samples."""
    ramp = (np.add.outer(np.arange(16), np.arange(32)) * 4 % 256).astype("u1")
    planes = [ramp, 255 - ramp, ramp // 2]
    data = tb.image(np.stack(planes), photometric=YCBCR, planar=True, compression=tb.JPEG, tags=WHOLE,
                    blocks=[imagecodecs.jpeg_encode(np.ascontiguousarray(plane)) for plane in planes])
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), reference.read(data))
    assert interpretations(data) == ["Y", "Cb", "Cr"]
    after = converted(tmp_path, data)
    assert photometric_of(after) == MIN_IS_BLACK and reference.same(reference.read(after), reference.read(data))


def test_what_wide_ycbcr_means_is_kept(tmp_path):
    data = tb.image(noise(3, "u2"), photometric=YCBCR, tags=WHOLE | MEANINGS["range"] | MEANINGS["HDTV"])
    after = converted(tmp_path, data)
    with cogpu.open_memory(data) as old, cogpu.open_memory(after) as new:
        for tag, count, dtype in (529, 3, "2u4"), (530, 2, "u2"), (532, 6, "2u4"):
            assert np.array_equal(*(file.tag_read(0, tag, 0, count, dtype) for file in (old, new)))
    assert photometric_of(after) == YCBCR and reference.same(reference.read(after), reference.read(data))


@pytest.mark.parametrize("options", [{"photometric": 6}, {"photometric": 6, "codec": "zstd"}])
def test_ycbcr_of_bytes_is_written_as_jpeg_alone(options):
    """Readers would convert it."""
    with pytest.raises(cogpu.CogpuError, match="jpeg"):
        cogpu.write(noise(3), **options)
