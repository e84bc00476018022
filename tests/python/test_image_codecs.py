"""JPEG 2000 and JPEG XL, which GDAL's wheels lack: files that tifffile and imagecodecs make, and what these read of them."""

import io
import itertools
import json
import pathlib
import subprocess
import sys

import cogpu_ctypes as cogpu
import imagecodecs
import reference
import numpy as np
import pytest
import tiff_bytes as tb
import tifffile

JPEG2000, APERIO_YCBCR, APERIO_LOSSY, APERIO_RGB, JXL_OLD, JXL = 34712, 33003, 33004, 33005, 50002, 52546
LAYOUTS = {"strips": {"rows": 20}, "tiles": {"tile": (32, 48)}}
CODECS = {JPEG2000: (["u1", "i1", "u2", "i2"], lambda block: imagecodecs.jpeg2k_encode(block, level=0)),
          JXL_OLD: (["u1", "u2", "f2", "f4"], lambda block: imagecodecs.jpegxl_encode(block, lossless=True, effort=3)),
          JXL: (["u1", "u2", "f2", "f4"], lambda block: imagecodecs.jpegxl_encode(block, lossless=True, effort=3))}
CASES = [(codec, dtype, bands, planar, layout, order)
         for codec, (types, _) in CODECS.items()
         for dtype, bands, planar, layout, order in itertools.product(types, (1, 2, 3, 4), (False, True), LAYOUTS, "<>")
         if not (bands == 1 and planar)]


def picture(dtype, bands, height=75, width=91, seed=1):
    rng = np.random.default_rng(seed)
    shape = (bands, height, width)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    smooth = np.cumsum(rng.integers(0, 2, shape), axis=-1).astype(dtype)
    return np.where(rng.integers(0, 8, shape) == 0, values, smooth)


def blocks_of(array, encode, rows=None, tile=None, planar=False):
    cuts = tb.cut(array, tile, rows, planar)
    return [bytes(encode(np.ascontiguousarray(block[..., 0] if block.shape[2] == 1 else block))) for block in cuts]


def tiff(array, codec, encode, order="<", planar=False, photometric=None, tags=None, **layout):
    bands = len(array)
    photometric = photometric or (2 if bands >= 3 else 1)
    tags = dict(tags or {})
    if bands in (2, 4):
        tags[338] = (tb.SHORT, [2])
    return tb.image(array, order=order, compression=codec, planar=planar, photometric=photometric, tags=tags,
                    blocks=blocks_of(array, encode, planar=planar, **layout), **layout)


@pytest.mark.parametrize("codec,dtype,bands,planar,layout,order", CASES)
def test_lossless(codec, dtype, bands, planar, layout, order):
    array = picture(dtype, bands)
    data = tiff(array, codec, CODECS[codec][1], order, planar, **LAYOUTS[layout])
    with cogpu.open_memory(data) as file:
        assert file.info().dtype == array.dtype
        assert reference.same(file.read(), array)
        assert reference.same(file.read(window=(30, 17, 40, 50), bands=[bands, 1]), array[[bands - 1, 0], 17:67, 30:70])


@pytest.mark.parametrize("compression,options", [("jpeg2000", {"codecformat": "jp2"}), ("jpeg2000", {"level": 40}),
                                                 ("jpeg2000", {"reversible": True}), ("jpegxl", {"distance": 1.0}),
                                                 ("jpegxl", {"lossless": True, "usecontainer": True})])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_as_tifffile_reads_it(compression, options, dtype):
    """Of lossy streams the libraries' versions may round differently."""
    array = np.cumsum(picture(dtype, 3) % 5, axis=1).astype(dtype)
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array.transpose(1, 2, 0), compression=compression, compressionargs=options, tile=(32, 32),
                     photometric="rgb")
    expected = tifffile.imread(io.BytesIO(buffer.getvalue())).transpose(2, 0, 1)
    with cogpu.open_memory(buffer.getvalue()) as file:
        differences = np.abs(file.read().astype("i8") - expected)
    assert differences.max() <= (0 if "lossless" in options or "reversible" in options else 2 if dtype == "u1" else 64)


@pytest.mark.parametrize("effort", [1, 3, 5, 7, 9])
@pytest.mark.parametrize("bands", [1, 3, 4])
def test_jpegxl_with_patches(effort, bands):
    """Glyphs that repeat, which the encoder keeps once, in a hidden frame."""
    rng = np.random.default_rng(0)
    glyphs = [(rng.random((9, 7)) > .5) * 255 for _ in range(6)]
    array = np.full((bands, 400, 400), 255, "u1")
    for y, x in rng.integers(0, 33, (500, 2)) * (12, 10):
        array[:, y:y + 9, x:x + 7] = glyphs[rng.integers(6)]
    encode = lambda block: imagecodecs.jpegxl_encode(block, lossless=True, effort=effort)
    with cogpu.open_memory(tiff(array, JXL, encode)) as file:
        assert reference.same(file.read(), array)


@pytest.mark.parametrize("codec,dtype", [(JPEG2000, "u2"), (JXL, "f4"), (JXL_OLD, "u1")])
def test_on_a_device(codec, dtype):
    """The CPU decodes what the GPU cannot, on the way there."""
    array = picture(dtype, 3)
    with cogpu.open_memory(tiff(array, codec, CODECS[codec][1], tile=(32, 48))) as file:
        assert reference.same(file.read(device=cogpu.GPU), array)
        assert reference.same(file.read(device=cogpu.GPU, window=(5, 6, 70, 60)), array[:, 6:66, 5:75])


@pytest.mark.parametrize("bits", [4, 10, 12])
@pytest.mark.parametrize("order", "<>")
def test_jpeg2000_of_odd_depths(bits, order):
    array = picture("u1" if bits < 8 else "u2", 3) % (1 << bits)
    encode = lambda block: imagecodecs.jpeg2k_encode(block, level=0, bitspersample=bits)
    with cogpu.open_memory(tb.image(array, order=order, compression=JPEG2000, bits=bits, photometric=2, rows=20,
                                    blocks=blocks_of(array, encode, rows=20))) as file:
        assert reference.same(file.read(), array)


def to_rgb(ycbcr):
    """The reference is GDAL's reading of the same samples, uncompressed."""
    return reference.read(tb.image(ycbcr, photometric=6, rows=20, tags={530: (tb.SHORT, [1, 1])}))


@pytest.mark.parametrize("codec,photometric", [(JPEG2000, 6), (APERIO_YCBCR, 2), (APERIO_YCBCR, 6)])
def test_jpeg2000_of_ycbcr(codec, photometric):
    array = picture("u1", 3)
    encode = lambda block: imagecodecs.jpeg2k_encode(block, level=0, mct=False)
    with cogpu.open_memory(tiff(array, codec, encode, photometric=photometric, rows=20)) as file:
        assert reference.same(file.read(), to_rgb(array))


@pytest.mark.parametrize("codec", [APERIO_RGB, APERIO_LOSSY])
def test_jpeg2000_of_aperio(codec):
    array = picture("u1", 3)
    with cogpu.open_memory(tiff(array, codec, CODECS[JPEG2000][1], tile=(32, 48))) as file:
        assert reference.same(file.read(), array)


def test_overviews_and_masks():
    """Levels and masks are as with any codec."""
    array, small = picture("u2", 1), picture("u2", 1, 38, 46, 2)
    mask = (np.arange(75 * 91).reshape(75, 91) % 3 > 0).astype("u1") * 255
    writer = tb.Writer()
    for pixels, kind, codec in ((array, 0, JPEG2000), (mask[None], 4, JXL), (small, 1, JXL)):
        tb.add_image(writer, pixels, compression=codec, rows=20, tags={254: (tb.LONG, [kind])},
                     photometric=4 if kind == 4 else 1, blocks=blocks_of(pixels, CODECS[codec][1], rows=20))
    with cogpu.open_memory(writer.bytes()) as file:
        assert file.info().levels == 2
        assert reference.same(file.read(level=1), small)
        assert reference.same(file.read(content=cogpu.MASK)[0], mask)


# ---- hostile files -----------------------------------------------------------------------------

def refusal(data, **request):
    with pytest.raises(cogpu.CogpuError) as failure, cogpu.open_memory(data) as file:
        file.read(**request)
    return failure.value


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("change,said", [({256: 92}, "92 x 75"), ({256: 90}, "90 x 75"), ({257: 74}, "91 x 74"),
                                         ({257: 76}, "91 x 76"), ({277: 4}, "block has 4 bands"),
                                         ({277: 1}, "block has 1 bands"), ({339: 3}, "")])
def test_sizes_that_contradict_the_directory(codec, change, said):
    array = picture("u1", 3)
    tags = {tag: (tb.SHORT, [value] * (3 if tag in (258, 339) else 1)) for tag, value in change.items()}
    tags |= {278: (tb.SHORT, [100]), 258: (tb.SHORT, [8])}
    data = tb.image(array, compression=codec, photometric=2, tags=tags, drop=() if 339 in change else (339,),
                    blocks=blocks_of(array, CODECS[codec][1]))
    failure = refusal(data)
    assert failure.name in ("corrupt", "unsupported") and said in failure.message, failure


@pytest.mark.parametrize("codec", CODECS)
def test_depth_that_contradicts_the_directory(codec):
    array = picture("u2", 1)
    data = tb.image(array.astype("u1"), compression=codec, blocks=blocks_of(array, CODECS[codec][1]))
    assert refusal(data).name == "corrupt"


@pytest.mark.parametrize("codec", CODECS)
def test_cut_off_and_garbage(codec):
    array = picture("u1", 3)
    whole = blocks_of(array, CODECS[codec][1])[0]
    rng = np.random.default_rng(3)
    ends = [0, 1, 2, 11, 12, *rng.integers(13, len(whole) - 3, 40)]
    for block in [*(whole[:end] for end in ends), rng.bytes(3000), bytes(3000), b"\xff" * 3000]:
        failure = refusal(tb.image(array, compression=codec, photometric=2, blocks=[bytes(block) or (8, 0)]))
        assert failure.name == "corrupt", failure


@pytest.mark.parametrize("codec", CODECS)
def test_small_stream_of_a_huge_block(codec):
    """The stream is valid and small; the directory states a block of gigabytes around it."""
    array = picture("u1", 1, 8, 8)
    whole = blocks_of(array, CODECS[codec][1])[0]
    sides = {256: (tb.LONG, [60000]), 257: (tb.LONG, [60000]), 278: (tb.LONG, [60000])}
    data = tb.image(array, compression=codec, blocks=[whole], tags=sides)
    assert refusal(data, window=(0, 0, 4, 4)).name in ("corrupt", "limit_exceeded")


def test_jpeg2000_that_claims_many_parts():
    """Sizes agree with the directory; tiles, precincts and code blocks would take gigabytes."""
    side = 4000
    stream = bytearray(imagecodecs.jpeg2k_encode(np.zeros((side, side), "u1"), level=0, codecformat="j2k"))
    size, style = stream.index(b"\xff\x51"), stream.index(b"\xff\x52")
    many_tiles = bytes(stream[:size + 22]) + (16).to_bytes(4, "big") * 2 + bytes(stream[size + 30:])
    small_blocks = bytes(stream[:style + 10]) + b"\0\0" + bytes(stream[style + 12:])
    for block in (many_tiles, small_blocks):
        failure = refusal(tb.image(np.zeros((side, side), "u1"), compression=JPEG2000, blocks=[block]))
        assert failure.name == "corrupt" and "so few bytes" in failure.message, failure


# Reads one file with ever more memory. Libraries that were loaded for the first read need none later.
OUT_OF_MEMORY = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
import cogpu_ctypes as cogpu, numpy as np
file = cogpu.open(sys.argv[2])
expected = file.read(threads=1)
out, found = np.empty_like(expected), []
for step in range(24):
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (step << int(sys.argv[3])), resource.RLIM_INFINITY))
    try:
        file.read(out=out, threads=1)
        found.append("ok" if np.array_equal(out, expected) else "wrong pixels")
    except cogpu.CogpuError as failure:
        found.append(failure.name)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(sorted(set(found))))
"""


@pytest.mark.parametrize("codec", [JPEG2000, JXL])
def test_out_of_memory_is_no_damage(codec, tmp_path):
    """Memory that ends inside a library is told as such: no damaged block, no dead process."""
    path = tmp_path / "large.tif"
    array = np.broadcast_to(np.arange(1000, dtype="u2"), (3, 1000, 1000))
    path.write_bytes(tiff(array, codec, CODECS[codec][1]))
    told = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY, str(pathlib.Path(__file__).parent), str(path), "22"],
                          capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == ["ok", "out_of_memory"]
