"""cogpu check: real files get GDAL's and rio-cogeo's verdicts; a COG that is broken in one place gets that rule alone.

GDAL writes the COGs, their bytes are changed here. What GDAL's validator says of real files is known from
the corpus (gdal_cog_validate); rio-cogeo is asked, where it is installed.
"""

import errno
import json
import os
import struct
import warnings

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio
import rasterio.shutil
import tiff_bytes as tb
from conftest import BIN, CORPUS, OLD_GDAL
from test_corpus import table

try:
    from rio_cogeo.cogeo import cog_validate
except ImportError:
    cog_validate = None

GDAL_WORDS = {"invalid": cogpu.INVALID, "valid+warn": cogpu.VALID_WITH_WARNINGS,
              "valid": cogpu.VALID}
GEO = {"crs": "EPSG:32632", "transform": rasterio.Affine(10, 0, 4e5, 0, -10, 5e6)}
GDAL, RIO_COGEO, OGC = 1, 2, 4


# ---- COGs, and what is in them -----------------------------------------------------------------

@pytest.fixture(scope="session")
def valid(tmp_path_factory):
    """The bytes of a COG that GDAL writes; each kind is written once."""
    made = {}
    folder = tmp_path_factory.mktemp("cogs")

    def make(size=(640, 600), bands=1, mask=False, sparse=False, **options):
        key = repr((size, bands, mask, sparse, sorted(options.items())))
        if key not in made:
            made[key] = gdal_cog(folder / f"{len(made)}.tif", size, bands, mask, sparse, options)
        return made[key]
    return make


def gdal_cog(path, size, bands, mask, sparse, options):
    width, height = size
    rows, columns = np.mgrid[:height, :width]
    array = np.stack([(rows * 7 + columns * (band + 3)) % 251 for band in range(bands)]).astype("u1")
    if sparse:
        array[:, :, width // 2:] = 0
        array[:, :150] = 0
    source = path.with_suffix(".source.tif")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(source, "w", driver="GTiff", count=bands, width=width, height=height,
                           dtype="uint8", **GEO) as file:
            file.write(array)
            if mask:
                file.write_mask((array[0] % 7 != 0).astype("u1") * 255)
        rasterio.shutil.copy(source, path, driver="COG",
                             **{"BLOCKSIZE": 128, "COMPRESS": "DEFLATE", "SPARSE_OK": sparse,
                                **options})
    return path.read_bytes()


class Cog:
    """The bytes of a classic little-endian file, to be changed: each directory is a dict of tag ->
    (type, count, where the value stands)."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.directories, self.offsets = [], []
        link = 4
        while offset := self.u32(link):
            count = struct.unpack_from("<H", self.data, offset)[0]
            self.offsets.append(offset)
            self.directories.append(dict(self.entry(offset + 2 + 12 * i) for i in range(count)))
            link = offset + 2 + 12 * count

    def entry(self, at):
        tag, kind, count = struct.unpack_from("<HHI", self.data, at)
        width = struct.calcsize(tb.FORMATS[kind]) * (2 if kind in (tb.RATIONAL, tb.SRATIONAL) else 1)
        return tag, (kind, count, at + 8 if width * count <= 4 else self.u32(at + 8))

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def get(self, directory, tag):
        kind, count, at = self.directories[directory][tag]
        return list(struct.unpack_from(f"<{count}{tb.FORMATS[kind]}", self.data, at))

    def put(self, directory, tag, values):
        kind, count, at = self.directories[directory][tag]
        struct.pack_into(f"<{count}{tb.FORMATS[kind]}", self.data, at, *values)
        return self

    def swap(self, directory, tag, i, j):
        values = self.get(directory, tag)
        values[i], values[j] = values[j], values[i]
        return self.put(directory, tag, values)

    def block(self, directory, index):
        """Where a block stands, and its bytes."""
        return self.get(directory, 324)[index], self.get(directory, 325)[index]

    def move_block(self, directory, index):
        """A block to the end of the file, leader and trailer with it."""
        offset, count = self.block(directory, index)
        offsets = self.get(directory, 324)
        offsets[index] = len(self.data) + 4
        self.data += self.data[offset - 4:offset + count + 4]
        return self.put(directory, 324, offsets)

    def move_level(self, directory):
        """All blocks of a level to the end of the file, in order."""
        for index in range(len(self.get(directory, 324))):
            self.move_block(directory, index)
        return self

    def link(self, directory):
        """Where the offset of the directory is stated."""
        return self.entries(directory - 1)[-1] + 12 if directory else 4

    def entries(self, directory):
        """Where the entries of a directory stand."""
        offset = self.offsets[directory]
        return [offset + 2 + 12 * i for i in range(struct.unpack_from("<H", self.data, offset)[0])]

    def move_directory(self, directory):
        """The directory to the end of the file."""
        offset = self.offsets[directory]
        body = self.data[offset:offset + 2 + 12 * len(self.entries(directory)) + 4]
        self.data += bytes(len(self.data) % 2)
        struct.pack_into("<I", self.data, self.link(directory), len(self.data))
        self.data += body
        return Cog(self.data)

    def replace(self, old, new):
        assert self.data.count(old) == 1 and len(old) == len(new)
        self.data = bytearray(self.data.replace(old, new))
        return self


def check(data, **options):
    with cogpu.open_memory(bytes(data)) as file:
        return file.check(**options)


def rules(findings):
    return sorted({finding.rule for finding in findings})


def validate_by_rio_cogeo(path, checked):
    if cog_validate is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, errors, warned = cog_validate(path, quiet=True)
    verdict = cogpu.INVALID if errors else cogpu.VALID_WITH_WARNINGS if warned else cogpu.VALID
    assert checked.rio_cogeo == verdict, (errors, warned)


# ---- real files --------------------------------------------------------------------------------

@pytest.mark.parametrize("row", table("good.tsv"))
def test_corpus_gdal(row):
    with cogpu.open(CORPUS / "good" / row["file"]) as file:
        checked, findings = file.check()
    assert checked.gdal == GDAL_WORDS[row["gdal_cog_validate"]], findings


@pytest.mark.skipif(cog_validate is None, reason="rio-cogeo is not installed")
@pytest.mark.parametrize("row", table("good.tsv"))
def test_corpus_rio_cogeo(row):
    path = CORPUS / "good" / row["file"]
    with cogpu.open(path) as file:
        checked, _ = file.check(skip_blocks=True)
    validate_by_rio_cogeo(path, checked)


@pytest.mark.parametrize("row", table("bad.tsv"))
def test_corpus_bad(row):
    """Damaged files get a verdict, or were not opened; both in no time."""
    try:
        with cogpu.open(CORPUS / "bad" / row["file"]) as file:
            checked, findings = file.check(strict=True)
    except cogpu.CogpuError:
        return
    assert (checked.errors > 0) == (checked.verdict == cogpu.INVALID)
    assert sum(1 + finding.more for finding in findings) == (
        checked.errors + checked.warnings + checked.notes)


# ---- valid COGs --------------------------------------------------------------------------------

KINDS = {
    "plain": {}, "mask": {"mask": True}, "three bands": {"bands": 3}, "jpeg": {"bands": 3, "COMPRESS": "JPEG"},
    "bigtiff": {"BIGTIFF": "YES"}, "small": {"size": (100, 80)}, "one pixel": {"size": (1, 1)},
    "line": {"size": (700, 1)}, "uncompressed": {"COMPRESS": "NONE"}, "sparse": {"sparse": True},
    "sparse mask": {"sparse": True, "mask": True}, "odd": {"size": (1023, 517)},
}
NEW_KINDS = {
    "band": {"bands": 3, "INTERLEAVE": "BAND"}, "tile": {"bands": 3, "INTERLEAVE": "TILE"},
    "band mask": {"bands": 3, "INTERLEAVE": "BAND", "mask": True},
    "tile mask": {"bands": 3, "INTERLEAVE": "TILE", "mask": True},
}


@pytest.mark.parametrize("kind", KINDS if OLD_GDAL else KINDS | NEW_KINDS)
def test_valid(valid, kind, tmp_path):
    data = valid(**(KINDS | NEW_KINDS)[kind])
    checked, findings = check(data, strict=True)
    assert findings == []
    assert checked.verdict == checked.gdal == checked.rio_cogeo == checked.ogc == cogpu.VALID
    with cogpu.open_memory(data) as file:
        tables = [file.tags(i)[324].count for i in range(file.directory(0).directory_count)]
        assert checked.blocks == sum(tables)
    (tmp_path / "cog.tif").write_bytes(data)
    validate_by_rio_cogeo(tmp_path / "cog.tif", checked)


# ---- COGs broken on purpose, one rule each -----------------------------------------------------

def not_broken(cog):
    return cog


def broken_order(cog):
    """Two blocks change places, each with its leader and trailer."""
    return cog.swap(0, 324, 3, 7).swap(0, 325, 3, 7)


def broken_leader(cog):
    offset, _ = cog.block(0, 5)
    cog.data[offset - 4] ^= 1
    return cog


def broken_trailer(cog):
    offset, count = cog.block(0, 5)
    cog.data[offset + count] ^= 1
    return cog


def broken_mask_leader(cog):
    offset, _ = cog.block(1, 5)
    cog.data[offset - 4] ^= 1
    return cog


def broken_mask_place(cog):
    return cog.move_block(1, len(cog.get(1, 324)) - 1)


def broken_mask_size(cog):
    """Tiles of the mask 256 wide, not 128: a third of its table is more than it needs."""
    return cog.put(1, 322, [256]).put(1, 323, [256])


def broken_directory_order(cog):
    """The directories of the first two overviews change places; the chain is as it was."""
    first, second = cog.offsets[1], cog.offsets[2]
    bodies = [bytes(cog.data[offset:][:2 + 12 * struct.unpack_from("<H", cog.data, offset)[0]])
              for offset in (first, second)]
    assert len(bodies[0]) == len(bodies[1])
    third = cog.offsets[3]
    cog.data[first:first + len(bodies[1])] = bodies[1]
    cog.data[second:second + len(bodies[0])] = bodies[0]
    end = len(bodies[0])
    struct.pack_into("<I", cog.data, cog.link(1), second)
    struct.pack_into("<I", cog.data, second + end, first)
    struct.pack_into("<I", cog.data, first + end, third)
    return cog


def broken_data_order(cog):
    """The smallest overview behind the full resolution."""
    return cog.move_level(len(cog.offsets) - 1)


def broken_middle_order(cog):
    """Full resolution last, as it must be, and before it the overviews in the wrong order."""
    return cog.move_level(1).move_level(2).move_level(0)


def last_directory_last(cog):
    return cog.move_directory(len(cog.offsets) - 1)


def edited(cog):
    return cog.replace(b"KNOWN_INCOMPATIBLE_EDITION=NO\n ", b"KNOWN_INCOMPATIBLE_EDITION=YES\n")


def first_directory_far(cog):
    """The directory to the end of the file, and the data behind it."""
    return cog.move_directory(0).move_level(0)


def first_directory_late(cog):
    """By its own words the ghost area ends two bytes earlier than it does."""
    return cog.replace(b"SIZE=000140 bytes", b"SIZE=000138 bytes")


def same_size(cog, directory, like):
    """A directory gets the size of another, and a table of sparse blocks."""
    for tag in (256, 257):
        cog.put(directory, tag, cog.get(like, tag))
    blocks = len(cog.get(like, 324))
    table = len(cog.data)
    cog.data += bytes(4 * blocks)
    for at in cog.entries(directory):
        if struct.unpack_from("<H", cog.data, at)[0] in (324, 325):
            struct.pack_into("<HII", cog.data, at + 2, tb.LONG, blocks, table)
    return Cog(cog.data)


def overview_as_large(cog):
    return same_size(cog, 1, 0)


def overview_larger(cog):
    return same_size(cog, 1, 0).put(1, 257, [601])


def overview_taller(cog):
    """Larger than the level before it in height alone, which rio-cogeo does not look at."""
    return same_size(cog, 2, 1).put(2, 256, [160]).put(2, 257, [301])


def overview_near_full(cog):
    return same_size(cog, 1, 0).put(1, 256, [630])


def overview_factor(cog):
    """330 is neither half of 640 nor less."""
    return cog.put(1, 256, [330])


def coarsest_too_large(cog):
    """The chain ends before the two smallest overviews."""
    struct.pack_into("<I", cog.data, cog.link(2), 0)
    return cog


def georeferenced_overview(cog):
    """A tag that the overview can do without becomes GeoKeyDirectory."""
    for at in cog.entries(len(cog.offsets) - 1):
        if struct.unpack_from("<H", cog.data, at)[0] == 339:
            struct.pack_into("<HHIHH", cog.data, at, 34735, tb.SHORT, 2, 1, 1)
    return cog


def georeferenced_mask(cog):
    for at in cog.entries(1):
        if struct.unpack_from("<H", cog.data, at)[0] == 284:
            struct.pack_into("<HHIHH", cog.data, at, 34735, tb.SHORT, 2, 1, 1)
    return cog


def malformed_overview(cog):
    return cog.put(len(cog.offsets) - 1, 256, [0])


def cut_off(cog):
    offset, count = cog.block(0, len(cog.get(0, 324)) - 1)
    cog.data = cog.data[:offset + count - 5]
    return cog


def trailer_cut_off(cog):
    offset, count = cog.block(0, len(cog.get(0, 324)) - 1)
    cog.data = cog.data[:offset + count + 2]
    return cog


def table_cut_off(cog):
    for at in cog.entries(0):
        if struct.unpack_from("<H", cog.data, at)[0] == 325:
            struct.pack_into("<I", cog.data, at + 8, len(cog.data) - 3)
    return cog


def broken_tile_order(cog):
    """Blocks of the first two bands of a place change places."""
    places = len(cog.get(0, 324)) // 3
    return cog.swap(0, 324, 0, places).swap(0, 325, 0, places)


ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = {NOTE: 1, WARNING: 2, ERROR: 3}
# What breaks it, the COG it is made of, the rule, whose rule it is, how grave, how grave strictly.
BROKEN = [
    (broken_order, {}, "block-order", GDAL, ERROR, ERROR),
    (broken_leader, {}, "block-leader", GDAL, ERROR, ERROR),
    (broken_trailer, {}, "block-trailer", GDAL, ERROR, ERROR),
    (trailer_cut_off, {}, "block-trailer", GDAL, ERROR, ERROR),
    (broken_mask_leader, {"mask": True}, "block-leader", GDAL, ERROR, ERROR),
    (broken_mask_place, {"mask": True}, "mask-offset", GDAL, ERROR, ERROR),
    (broken_mask_size, {"mask": True}, "mask-block-size", GDAL, ERROR, ERROR),
    (broken_directory_order, {}, "directory-order", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    (broken_data_order, {}, "data-order", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    (broken_middle_order, {}, "data-order", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    (last_directory_last, {}, "data-before-directory", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    (edited, {}, "edited", GDAL | RIO_COGEO, ERROR, ERROR),
    (first_directory_far, {"size": (100, 80)}, "first-directory", GDAL | RIO_COGEO, ERROR, ERROR),
    (first_directory_late, {}, "first-directory", GDAL, ERROR, ERROR),
    (overview_larger, {}, "overview-size", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    (overview_taller, {}, "overview-size", GDAL | OGC, ERROR, ERROR),
    (overview_near_full, {}, "overview-factor", RIO_COGEO | OGC, WARNING, ERROR),
    (overview_as_large, {}, "overview-size", RIO_COGEO | OGC, WARNING, ERROR),
    (overview_factor, {}, "overview-factor", OGC, NOTE, ERROR),
    (not_broken, {"size": (1, 700)}, "overview-width", RIO_COGEO, NOTE, NOTE),
    (coarsest_too_large, {}, "coarsest-level", OGC, NOTE, ERROR),
    (georeferenced_overview, {}, "georeference-in-overview", OGC, NOTE, ERROR),
    (georeferenced_mask, {"mask": True}, "georeference-in-overview", OGC, NOTE, ERROR),
    (cut_off, {}, "block-outside", 0, ERROR, ERROR),
    (table_cut_off, {}, "block-table", 0, ERROR, ERROR),
    (malformed_overview, {"size": (700, 100)}, "malformed-directory", 0, WARNING, WARNING),
]
if not OLD_GDAL:
    BROKEN.append((broken_tile_order, NEW_KINDS["tile"], "block-order", GDAL, ERROR, ERROR))



@pytest.mark.parametrize("breaks,kind,rule,validators,plain,strict", BROKEN,
                         ids=[row[0].__name__ for row in BROKEN])
def test_broken(valid, tmp_path, breaks, kind, rule, validators, plain, strict):
    path = tmp_path / "broken.tif"
    path.write_bytes(breaks(Cog(valid(**kind))).data)
    check_file(path, rule, validators, plain, strict)


def check_file(path, rule, validators, plain, strict):
    """That rule alone, as grave as it should be, and rio-cogeo's own verdict."""
    for is_strict, severity in ((False, plain), (True, strict)):
        with cogpu.open(path) as file:
            checked, findings = file.check(strict=is_strict)
        assert rules(findings) == [rule], findings
        for finding in findings:
            assert finding.severity == SEVERITIES[severity] and finding.validators == validators
            assert finding.message and finding.advice
        assert (checked.verdict == cogpu.INVALID) == (severity == ERROR)
        for verdict, bit in ((checked.gdal, GDAL), (checked.rio_cogeo, RIO_COGEO), (checked.ogc, OGC)):
            assert (verdict == cogpu.VALID) == (not validators & bit)
    if validators:  # the others end with an error where the file is damaged
        validate_by_rio_cogeo(path, checked)


# ---- files that never were COGs ----------------------------------------------------------------

def plain_file(path, size, factors=(), **options):
    """GDAL's GTiff, directories first, with overviews in tiles of 128."""
    width, height = size
    array = (np.add.outer(np.arange(height), np.arange(width)) % 251).astype("u1")
    source = path.with_suffix(".source.tif")
    with rasterio.Env(GDAL_TIFF_OVR_BLOCKSIZE=128, GTIFF_WRITE_COG_GHOST_AREA=False):
        with rasterio.open(source, "w", driver="GTiff", count=1, width=width, height=height,
                           dtype="uint8", **GEO) as file:
            file.write(array, 1)
            if factors:
                file.build_overviews(factors)
        rasterio.shutil.copy(source, path, driver="GTiff", COPY_SRC_OVERVIEWS=True, **options)


def tiles(width, height=None):
    return {"TILED": True, "BLOCKXSIZE": width, "BLOCKYSIZE": height or width}


PLAIN = {
    "strips-wide": ((1100, 300), (2, 4, 8), {}, "not-tiled", GDAL | RIO_COGEO | OGC, ERROR, ERROR),
    "strips-large": ((700, 300), (2, 4), {}, "not-tiled", RIO_COGEO | OGC, WARNING, ERROR),
    "strips-small": ((300, 300), (), {}, "not-tiled", OGC, NOTE, ERROR),
    "tiles-wide": ((2048, 20), (2, 4, 8, 16), tiles(2048), "wide-tiles", GDAL | RIO_COGEO, WARNING, WARNING),
    "tiles-as-wide": ((512, 600), (2, 4), tiles(512), "wide-tiles", RIO_COGEO, NOTE, NOTE),
    "not-square": ((200, 100), (), tiles(256, 128), "tiles-not-square", OGC, NOTE, WARNING),
    "no-power": ((100, 80), (), tiles(144), "tiles-no-power-of-two", OGC, NOTE, WARNING),
    "no-overviews": ((700, 100), (), tiles(128), "no-overviews", GDAL | RIO_COGEO | OGC, WARNING, ERROR),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain(tmp_path, name):
    size, factors, options, *expected = PLAIN[name]
    plain_file(tmp_path / "plain.tif", size, factors, **options)
    check_file(tmp_path / "plain.tif", *expected)


def test_external_overviews(tmp_path):
    path = tmp_path / "file.tif"
    plain_file(path, (600, 600), **tiles(128))
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(path, "r+", IGNORE_COG_LAYOUT_BREAK=True) as file:
        file.build_overviews([2, 4])
    assert path.with_suffix(".tif.ovr").exists()
    check_file(path, "external-overviews", GDAL | RIO_COGEO, ERROR, ERROR)


def test_other_images(tmp_path):
    path = tmp_path / "two.tif"
    for append in (False, True):
        with rasterio.open(path, "w", driver="GTiff", count=1, width=100, height=80, dtype="uint8",
                           tiled=True, blockxsize=128, blockysize=128,
                           APPEND_SUBDATASET=append) as file:
            file.write(np.ones((1, 80, 100), "u1"))
    check_file(path, "other-images", 0, NOTE, NOTE)


def test_classic_beyond_4_gib(valid, tmp_path):
    path = tmp_path / "long.tif"
    path.write_bytes(valid(size=(100, 80)))
    with path.open("r+b") as file:
        file.truncate((1 << 32) + 10)
    check_file(path, "not-bigtiff", OGC, NOTE, ERROR)


# ---- how it is told ----------------------------------------------------------------------------

def test_places_are_counted_and_the_first_told(valid):
    cog = Cog(valid())
    blocks = len(cog.get(0, 324))
    for index in range(blocks):
        cog.data[cog.block(0, index)[0] - 4] ^= 1
    checked, findings = check(cog.data)
    assert checked.errors == blocks and len(findings) == 3
    assert [(f.directory, f.block, f.offset) for f in findings] == [
        (0, index, cog.block(0, index)[0] - 4) for index in range(3)]
    assert [f.more for f in findings] == [0, 0, blocks - 3]
    checked, findings = check(cog.data, skip_blocks=True)
    assert findings == [] and checked.verdict == cogpu.VALID and checked.blocks == 0


def test_after_an_edit_no_promise_is_held(valid):
    checked, findings = check(edited(broken_leader(Cog(valid()))).data)
    assert rules(findings) == ["edited"] and checked.errors == 1


def test_zero_counts_are_sparse(valid):
    """GDAL's rule: a block of no bytes is not there, whatever its offset says."""
    cog = Cog(valid())
    counts = cog.get(0, 325)
    counts[4] = 0
    assert check(cog.put(0, 325, counts).data)[1] == []


def test_few_reads(valid):
    """Small blocks are looked at through a window; large ones by a read each, of the bytes between."""
    for options, most in (({"size": (1024, 1024)}, 0.5), ({"size": (1024, 1024), "BLOCKSIZE": 256, "COMPRESS": "NONE"}, 1.5)):
        data, reads = valid(**options), []

        def read(offset, count):
            reads.append(count)
            return data[offset:offset + count]

        with cogpu.open_source(read, lambda: len(data)) as file:
            reads.clear()
            checked, findings = file.check()
        assert findings == [] and len(reads) < most * checked.blocks + 8, reads
        assert sum(reads) < 1.1 * len(data)


def test_no_image():
    """A mask and nothing else."""
    data = tb.image(np.zeros((16, 16), "u1"), tags={254: (tb.LONG, [4])})
    with pytest.raises(cogpu.CogpuError) as caught:
        check(data)
    assert caught.value.status == cogpu.NOT_FOUND


def test_argument():
    error, checked = cogpu.Error(), cogpu.Checked()
    status = cogpu.lib.cogpu_check(None, None, cogpu.FOUND(), None, checked, error)
    assert status == error.status == cogpu.INVALID_ARGUMENT


# ---- the command -------------------------------------------------------------------------------

def test_command(valid, tmp_path, run):
    path = tmp_path / "dem.tif"
    path.write_bytes(valid())
    done = run(BIN, "check", path)
    assert done.code == 0 and done.stdout.splitlines()[0] == f"{path}: a valid COG" and not done.stderr
    path.write_bytes(broken_leader(Cog(valid())).data)
    done = run(BIN, "check", path)
    first, second, *_ = done.stdout.splitlines()
    assert done.code == 1 and first == f"{path}: not a valid COG: 1 error" and not done.stderr
    assert second.startswith("  error    block-leader: ") and "(directory 0, block 5, offset " in second
    assert run(BIN, "check", path, "--skip-blocks").code == 0


def test_command_strict_and_json(tmp_path, run):
    path = tmp_path / "strips.tif"
    plain_file(path, (300, 300))
    for words, code, severity in (([], 0, "note"), (["--strict"], 1, "error")):
        done = run(BIN, "check", path, "--json", *words)
        report = json.loads(done.stdout)
        assert done.code == code and not done.stderr
        assert report["file"] == str(path) and report["gdal"] == "valid" and report["ogc"] == "invalid"
        assert report["verdict"] == ("invalid" if code else "valid")
        finding, = report["findings"]
        assert finding["rule"] == "not-tiled" and finding["severity"] == severity
        assert finding["validators"] == ["ogc"] and finding["directory"] == 0 and finding["block"] is None


def test_command_refusals(tmp_path, run):
    (tmp_path / "text.tif").write_text("this is no TIFF file")
    for words, code, lines in ((["absent.tif"], 1, 1), ([tmp_path / "text.tif"], 1, 1), ([], 2, 1), (["a", "b"], 1, 2),
                               (["a", "--level", "1"], 2, 1)):
        done = run(BIN, "check", *words)
        assert done.code == code and not done.stdout and len(done.stderr.splitlines()) == lines


# ---- thumbnails --------------------------------------------------------------------------------

def with_sub_directory(shape, dtype="u1", kind=1, photometric=1, tile=None, full=(1, 400, 400)):
    """An image of one tile with a SubIFD; directories first, as in a COG."""
    array, small = np.zeros(full, "u1"), np.zeros(shape, dtype)
    layout = {"tile": tile} if tile else {"rows": shape[1]}

    def build(offsets):
        writer = tb.Writer()
        blocks = [(at, size) for at, size in offsets["blocks"]]
        main = tb.add_image(writer, array, tile=(512, 512), blocks=blocks[:1], photometric=2 if full[0] == 3 else 1,
                            tags={330: (tb.LONG, [offsets["sub"]])})
        sub = tb.add_image(writer, small, blocks=blocks[1:], photometric=photometric, chain=False,
                           tags={254: (tb.LONG, [kind])}, **layout)
        return writer, main, sub
    sizes = full[0] * 512 * 512, small.nbytes
    writer, _, sub = build({"blocks": [(1, sizes[0]), (1, sizes[1])], "sub": 1})
    start = len(writer.data) + -len(writer.data) % 2
    writer, _, sub = build({"blocks": [(start + sizes[1], sizes[0]), (start, sizes[1])], "sub": sub})
    writer.add(bytes(sum(sizes)))
    return writer.bytes()


@pytest.mark.parametrize("shape, dtype, photometric", [
    ((3, 60, 60), "u1", 2), ((4, 60, 60), "u1", 2), ((1, 60, 60), "u2", 1), ((1, 900, 900), "u1", 1), ((1, 400, 400), "u1", 1)],
    ids=["RGB", "RGBA", "uint16", "larger", "same size"])
def test_thumbnail_in_a_sub_directory_is_no_overview(tmp_path, shape, dtype, photometric):
    """What `info` does not count as a level has no rule of overviews: GIMP's thumbnails, for one."""
    path = tmp_path / "a.tif"
    path.write_bytes(with_sub_directory(shape, dtype, photometric=photometric))
    with cogpu.open(path) as file:
        assert file.info().levels == 1
        checked, findings = file.check()
    assert {finding.rule for finding in findings} <= {"first-directory"} and checked.verdict == checked.gdal
    if shape[0] != 1 and cog_validate:  # by bands alone GDAL knows an overview
        with rasterio.open(path) as file:
            assert file.overviews(1) == []
        validate_by_rio_cogeo(path, checked)


def test_overview_in_a_sub_directory_is_one(tmp_path):
    path = tmp_path / "a.tif"
    path.write_bytes(with_sub_directory((1, 200, 200)))
    with cogpu.open(path) as file:
        assert file.info().levels == 2
        checked, findings = file.check()
    assert "not-tiled" in {finding.rule for finding in findings}
    if cog_validate:
        validate_by_rio_cogeo(path, checked)


def test_thumbnail_in_the_chain_with_other_bands(tmp_path):
    """GDAL takes no notice of it."""
    writer = tb.Writer()
    tb.add_image(writer, np.zeros((1, 400, 400), "u1"), tile=(512, 512))
    tb.add_image(writer, np.zeros((3, 60, 60), "u1"), photometric=2, tags={254: (tb.LONG, [1])})
    (tmp_path / "a.tif").write_bytes(writer.bytes())
    with cogpu.open(tmp_path / "a.tif") as file:
        _, findings = file.check()
    assert not {finding.rule for finding in findings} & {"not-tiled", "data-order", "overview-size", "overview-factor"}


# ---- sparse files of very many blocks ----------------------------------------------------------

def sparse_file(path, across, down, bands=1, data=()):
    """A BigTIFF of sparse 16 x 16 tiles whose tables are holes of the file; `data`: (block, offset, count)."""
    blocks = across * down * bands
    entries = [(256, 4, 1, across * 16), (257, 4, 1, down * 16), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (277, 3, 1, bands),
               (284, 3, 1, 2 if bands > 1 else 1), (322, 3, 1, 16), (323, 3, 1, 16)]
    offsets = 16 + 8 + 20 * (len(entries) + 2) + 8
    counts = offsets + 8 * blocks
    entries += [(324, 16, blocks, offsets), (325, 4, blocks, counts)]
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHHHQQ", b"II", 43, 8, 0, 16, len(entries)))
        file.write(b"".join(struct.pack("<HHQQ", *entry) for entry in entries) + bytes(8))
        for block, offset, count in data:
            file.seek(offsets + 8 * block)
            file.write(struct.pack("<Q", offset))
            file.seek(counts + 4 * block)
            file.write(struct.pack("<I", count))
        file.truncate(counts + 4 * blocks + 64)
    return blocks


def has_holes(path):
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        try:
            return os.lseek(file.fileno(), 1 << 16, os.SEEK_DATA) >= size // 2
        except OSError as error:
            return error.errno == errno.ENXIO


def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().split()[1])


@pytest.mark.parametrize("data", [[], [(5, 100, 10), (999_999_000, 110, 10), (999_999_001, 1 << 50, 10)]])
def test_sparse_file_of_a_milliard_blocks(tmp_path, data):
    """Its tables have 12 GB, of which the file system stores next to nothing, and the check reads as little."""
    path = tmp_path / "a.tif"
    blocks = sparse_file(path, 32768, 30518, data=data)
    if not has_holes(path):
        pytest.skip("this file system has no holes")
    with cogpu.open(path) as file:
        before, calls = bytes_read(), []
        checked, findings = file.check(progress=lambda done, total: calls.append((done, total)))
        assert bytes_read() - before < 32 << 20
    assert checked.blocks == blocks and blocks > 10 ** 9
    assert [finding.block for finding in findings if finding.rule == "block-outside"] == ([999_999_001] if data else [])
    assert calls[-1] == (blocks, blocks) and len(calls) < 1000


def test_sparse_tables_without_holes(tmp_path):
    """A source that knows of no holes is read once, in large pieces, and of the counts only what has data."""
    blocks = sparse_file(tmp_path / "a.tif", 4096, 2048, data=[(7_000_000, 100, 10), (7_000_001, 1 << 50, 10)])
    data, reads = (tmp_path / "a.tif").read_bytes(), []

    def read(offset, size):
        reads.append(size)
        return data[offset:offset + size]
    with cogpu.open_source(read, lambda: len(data)) as file:
        reads.clear()
        checked, findings = file.check()
    assert checked.blocks == blocks and [f.block for f in findings if f.rule == "block-outside"] == [7_000_001]
    assert sum(reads) < 8 * blocks * 1.1 and len(reads) < 200


@pytest.mark.parametrize("step", [511, 1024, 5000])
def test_sparse_planes_are_looked_at_once(tmp_path, step):
    """Blocks of each plane are told apart, however runs of sparse ones lie to each other."""
    places = 1024 * 128
    outside = sorted({*range(3, places, step), *range(places + 700, 2 * places, 2 * step)})
    blocks = sparse_file(tmp_path / "a.tif", 1024, 128, bands=3, data=[(block, 1 << 50, 10) for block in outside])
    with cogpu.open(tmp_path / "a.tif") as file:
        checked, findings = file.check()
    found = [finding for finding in findings if finding.rule == "block-outside"]
    assert checked.blocks == blocks and checked.errors == len(outside) == len(found) + found[-1].more
    assert [finding.block for finding in found] == outside[:len(found)]


def test_progress_of_a_check(valid):
    calls = []
    with cogpu.open_memory(valid(mask=True)) as file:
        checked, _ = file.check(progress=lambda done, total: calls.append((done, total)))
        again, _ = file.check()
    assert vars(checked) == vars(again)
    assert calls == sorted(calls) and calls[-1] == (checked.blocks, checked.blocks)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_check_that_is_cancelled(valid, after):
    calls = []
    with cogpu.open_memory(valid(mask=True)) as file:
        with pytest.raises(cogpu.CogpuError) as error:
            file.check(progress=lambda done, total: calls.append(done) or len(calls) > after)
        assert error.value.status == cogpu.CANCELLED and len(calls) == after + 1
        file.check()
