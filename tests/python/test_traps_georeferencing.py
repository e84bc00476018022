"""Files that broke other readers, built from bytes: georeferencing, GeoKeys, metadata
(docs/traps.md, section H).

Each test checks the status, its message and, where pixels come back, their values, and carries the trap's number.
Where GDAL decides what is right, the test compares with GDAL itself.
"""

import cogpu_ctypes as cogpu
import reference
import pytest
import tiff_bytes as tb
from cogpu_ctypes import NOT_FOUND
from tiff_bytes import ASCII, DOUBLE, SHORT
from trap_files import PIXELS, opened, tags

SCALE = (33550, DOUBLE, [10, 20, 0])
TIE = (33922, DOUBLE, [0, 0, 0, 1000, 2000, 0])


def located(*pairs):
    with opened(tb.image(PIXELS, tags=tags(*pairs))) as file:
        assert reference.same(file.read()[0], PIXELS)
        return file.info()


@pytest.mark.parametrize("scale", [[0, 0, 0], [10, 0, 0], [0, 10, 0], [float("nan"), 1, 0],
                                   [1, float("inf"), 0], [10]])
def test_T125_malformed_scale(scale):
    info = located((33550, DOUBLE, scale), TIE)
    assert not info.has_transform and "ModelPixelScale" in info.warning


def test_T126_matrix():
    matrix = [2, 0.5, 0, 7, -0.25, -3, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1]
    assert located((34264, DOUBLE, matrix)).transform == [7, 2, 0.5, 9, -0.25, -3]
    for wrong in (matrix[:15], matrix + [1]):
        info = located((34264, DOUBLE, wrong))
        assert not info.has_transform and "ModelTransformation" in info.warning


def test_T137_tiepoint_elsewhere():
    info = located(SCALE, (33922, DOUBLE, [5, 3, 0, 1000, 2000, 0]))
    assert info.transform == [950, 10, 0, 2060, 0, -20]


def test_T139_negative_scale_and_missing_tiepoint():
    info = located((33550, DOUBLE, [10, -20, 0]), TIE)
    assert info.transform == [1000, 10, 0, 2000, 0, -20] and info.warning
    assert not located(SCALE).has_transform


def test_T140_tiepoints_are_control_points():
    points = [0, 0, 0, 10, 50, 0, 10, 0, 0, 11, 50, 0, 0, 12, 0, 10, 49, 1]
    info = located((33922, DOUBLE, points))
    assert not info.has_transform
    assert [(g.column, g.row, g.x, g.y, g.z) for g in info.gcps] == [(0, 0, 10, 50, 0),
                                                                     (10, 0, 11, 50, 0),
                                                                     (0, 12, 10, 49, 1)]


def geokeys(*words, doubles=None, text=None):
    extra = tags((34735, SHORT, list(words)))
    if doubles is not None:
        extra |= tags((34736, DOUBLE, doubles))
    if text is not None:
        extra |= tags((34737, ASCII, text))
    return tb.image(PIXELS, tags=extra)


def test_T142_valid_keys():
    data = geokeys(1, 1, 0, 4, 1024, 0, 1, 1, 1026, 34737, 5, 0, 2057, 34736, 1, 1, 3072, 0, 1,
                   32633,
                   doubles=[1.5, 6378137.0], text=b"abcd|\0")
    with opened(data) as file:
        assert file.geokeys() == {1024: [1], 1026: "abcd", 2057: [6378137.0], 3072: [32633]}
        assert file.crs().code == 32633 and file.crs().model == "projected"


@pytest.mark.parametrize("words,doubles,text", [
    ([1, 1, 0, 9, 1024, 0, 1, 1], None, None), ([1, 1, 0], None, None), ([1], None, None),
    ([1, 1, 0, 1, 2057, 34736, 1, 5], [1.0], None),
    ([1, 1, 0, 1, 2057, 34736, 65535, 0], [1.0], None),
    ([1, 1, 0, 1, 1026, 34737, 99, 0], None, b"abc|\0"),
    ([1, 1, 0, 1, 1026, 34737, 3, 65535], None, b"abc|\0"),
    ([1, 1, 0, 1, 2057, 34736, 1, 0], None, None), ([1, 1, 0, 1, 1026, 34737, 3, 0], None, None),
    ([1, 1, 0, 1, 1024, 99, 1, 0], None, None), ([9, 9, 9, 1, 1024, 0, 1, 1], None, None),
    ([1, 1, 0, 1, 3072, 34735, 9, 60000], None, None)])
def test_T142_malformed_keys(words, doubles, text):
    with opened(geokeys(*words, doubles=doubles, text=text)) as file:
        assert reference.same(file.read()[0], PIXELS)
        assert file.info().warning
        file.geokeys()


def test_T142_duplicate_and_empty_keys():
    with opened(geokeys(1, 1, 0, 3, 3072, 0, 1, 32633, 3072, 0, 1, 32632, 1024, 0, 1, 1)) as file:
        assert file.geokeys()[3072] in ([32633], [32632])
    with opened(geokeys(1, 1, 0, 2, 2057, 34736, 0, 0, 1026, 34737, 0, 0, doubles=[1.0],
                        text=b"x|\0")) as file:
        file.geokeys()


@pytest.mark.parametrize("words", [[1, 1, 0, 1, 3072, 34736, 1, 0], [1, 1, 0, 1, 2057, 0, 1, 7],
                                   [1, 1, 0, 1, 3072, 34737, 2, 0]])
def test_T143_keys_of_the_wrong_kind(words):
    """A code that stands among the doubles, a length that stands among the codes: no coordinate system."""
    with opened(geokeys(*words, doubles=[32633.0], text=b"ab|\0")) as file:
        file.geokeys()
        try:
            assert file.crs().code in (0, 32633)
        except cogpu.CogpuError as error:
            assert error.status == NOT_FOUND


def metadata(xml):
    return tb.image(PIXELS, tags=tags((42112, ASCII, xml.encode() + b"\0")))


def test_T144_metadata():
    xml = ('<GDALMetadata>\n <Item name="A">x &amp;lt; y</Item>\n <Item name="B" sample="7">far</Item>\n'
           ' <Item name="SCALE" sample="0" role="scale">0.5</Item>\n</GDALMetadata>\n')
    with opened(metadata(xml)) as file:
        items = {item.name: item for item in file.items()}
        assert items["A"].value == "x < y"
        assert file.band(1).scale == 0.5
        assert reference.same(file.read()[0], PIXELS)


@pytest.mark.parametrize("xml", [
    "", "<", "<GDALMetadata>", "<GDALMetadata><Item", '<GDALMetadata><Item name="x', "<a></b>",
    "&&&&", "]]>",
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><GDALMetadata><Item name="x">&b;</Item></GDALMetadata>',
    "<GDALMetadata>" + "<Item>" * 5000, "<" * 10000,
    '<GDALMetadata><Item name="SCALE" role="scale" sample="0">abc</Item></GDALMetadata>',
    '<GDALMetadata><Item name="x" sample="99999999999999999999">1</Item></GDALMetadata>',
    "<GDALMetadata><Item/></GDALMetadata>",
    '<GDALMetadata><Item name="x">&#x110000;&#0;&unknown;&amp</Item></GDALMetadata>'])
def test_T221_malformed_metadata(xml):
    with opened(metadata(xml)) as file:
        assert reference.same(file.read()[0], PIXELS)
        assert "aaaaaaaaaaaaaaaaaaaa" not in "".join(item.value for item in file.items())
        assert file.band(1).scale == 1
