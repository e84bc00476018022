"""Access to files built from bytes: what a small window costs, sources that fail, threads, contexts, raw tags."""

import struct
import threading
import zlib

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb
from cogpu_ctypes import CORRUPT, INVALID_ARGUMENT, IO_ERROR, NOT_FOUND, OK
from tiff_bytes import ASCII, DOUBLE, LONG, LONG8, RATIONAL, SHORT, Raw
from trap_files import PIXELS, deflated, opened, tags

# ---- what a small window costs -----------------------------------------------------------------

class CountingSource:
    """A sparse file of any length: pieces of bytes, zeros between them, and a list of what was read."""

    def __init__(self, size, pieces):
        self.length, self.pieces, self.reads, self.closed = size, pieces, [], 0

    def read(self, offset, wanted):
        wanted = max(0, min(wanted, self.length - offset))
        self.reads.append(wanted)
        out = bytearray(wanted)
        for at, data in self.pieces:
            low, high = max(at, offset), min(at + len(data), offset + wanted)
            if low < high:
                out[low - offset:high - offset] = data[low - at:high - at]
        return bytes(out)

    def size(self):
        return self.length

    def close(self):
        self.closed += 1

    def open(self, **limits):
        options = cogpu.limited(**limits) if limits else None
        return cogpu.open_source(self.read, self.size, self.close, options)


def million_tiles():
    """262144 x 262144 pixels of 256 x 256 tiles: 2^20 tiles, of which one holds data."""
    tile = np.arange(65536, dtype="u4").reshape(256, 256).astype("u1")
    raw, blocks, chosen = zlib.compress(tile.tobytes()), 1 << 20, 777_777
    offsets_at, counts_at = 1 << 16, (1 << 16) + 8 * blocks
    data_at = counts_at + 4 * blocks
    writer = tb.Writer(big=True)
    writer.directory([(256, LONG, [262144]), (257, LONG, [262144]), (258, SHORT, [8]),
                      (259, SHORT, [tb.DEFLATE]), (262, SHORT, [1]),
                      (277, SHORT, [1]), (322, SHORT, [256]), (323, SHORT, [256]),
                      (324, LONG8, Raw(blocks, offsets_at)),
                      (325, LONG, Raw(blocks, counts_at))])
    pieces = [(0, writer.bytes()), (offsets_at + 8 * chosen, struct.pack("<Q", data_at)),
              (counts_at + 4 * chosen, struct.pack("<I", len(raw))), (data_at, raw)]
    return CountingSource(data_at + len(raw), pieces), tile, chosen


def test_lazy_arrays_of_a_million_blocks():
    source, tile, chosen = million_tiles()
    with source.open() as file:
        assert file.info().blocks == 1 << 20
        assert len(source.reads) <= 3
        x, y = chosen % 1024 * 256, chosen // 1024 * 256
        assert reference.same(file.read(window=(x, y, 256, 256))[0], tile)
        assert reference.same(file.read(window=(x + 3, y + 5, 7, 9))[0], tile[5:14, 3:10])
        assert np.all(file.read(window=(0, 0, 100, 100)) == 0)
        assert file.last_result.sparse_blocks == 1
    assert sum(source.reads) < 128 << 10, source.reads
    assert len(source.reads) <= 16, source.reads
    assert source.closed == 1


def test_T194_opening_reads_no_pixels():
    array = np.random.default_rng(9).integers(0, 255, (2000, 1000), dtype="u1")
    data = tb.image(array, rows=10)
    source = CountingSource(len(data), [(0, data)])
    with source.open() as file:
        file.info()
        assert sum(source.reads) < 64 << 10
        assert reference.same(file.read()[0], array)
        assert file.last_result.bytes_read >= array.nbytes


@pytest.mark.parametrize("failing", ["size", "read at once", "read later"])
def test_source_that_fails(failing):
    data = tb.image(PIXELS, rows=3)
    source = CountingSource(len(data), [(0, data)])
    real = source.read
    if failing == "size":
        source.size = lambda: (IO_ERROR,)
    elif failing == "read at once":
        source.read = lambda offset, wanted: IO_ERROR
    with pytest.raises(cogpu.CogpuError) as caught:
        with cogpu.open_source(lambda o, n: source.read(o, n), source.size, source.close) as file:
            assert failing == "read later"
            source.read = lambda offset, wanted: IO_ERROR
            file.read(window=(0, 0, 10, 3))
            source.read = real
            pytest.skip("the whole file was read when it was opened")
    assert caught.value.status == IO_ERROR
    assert source.closed == 1


def test_source_that_ends_early():
    """A source that is shorter than it says is corrupt or an I/O error, never garbage."""
    data = tb.image(np.ones((500, 500), "u2"), rows=100)
    source = CountingSource(len(data), [(0, data)])
    half = lambda offset, wanted: source.read(offset, max(0, min(wanted, len(data) // 2 - offset)))
    with pytest.raises(cogpu.CogpuError) as caught:
        with cogpu.open_source(half, source.size) as file:
            file.read()
    assert caught.value.status in (IO_ERROR, CORRUPT)


# ---- several threads, several files ------------------------------------------------------------

def test_T181_two_threads_read_one_file():
    array = reference.noise(np.random.default_rng(10), (3, 301, 277), "u2")
    data = deflated(array, tile=(32, 32), predictor=2)
    wrong = []

    def work(file, seed, threads):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x, y = int(rng.integers(270)), int(rng.integers(290))
            w, h = int(rng.integers(1, 277 - x + 1)), int(rng.integers(1, 301 - y + 1))
            if not reference.same(file.read(window=(x, y, w, h), threads=threads),
                              array[:, y:y + h, x:x + w]):
                wrong.append((x, y, w, h))

    with opened(data) as file:
        workers = [threading.Thread(target=work, args=(file, seed, seed % 2 + 1))
                   for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert not wrong


def test_context_caches_blocks():
    array = reference.noise(np.random.default_rng(11), (1, 128, 128), "u2")
    with opened(deflated(array, tile=(32, 32))) as file, cogpu.Context(threads=2,
                                                                       cache_bytes=1 << 20) as context:
        assert reference.same(file.read(context=context), array)
        assert (file.last_result.blocks, file.last_result.cached_blocks) == (16, 0)
        assert reference.same(file.read(context=context, window=(5, 5, 70, 20)), array[:, 5:25, 5:75])
        assert file.last_result.cached_blocks == file.last_result.blocks == 3
        assert reference.same(file.read(context=context), array)
        assert file.last_result.cached_blocks == 16


def test_context_cache_tells_files_apart():
    arrays = [np.full((32, 32), value, "u1") for value in (1, 2, 3)]
    with cogpu.Context(cache_bytes=1 << 20) as context:
        for array in arrays * 2:
            with opened(deflated(array)) as file:
                assert reference.same(file.read(context=context)[0], array)


def test_context_with_too_small_a_cache():
    array = reference.noise(np.random.default_rng(12), (1, 128, 128), "u2")
    with opened(deflated(array, tile=(32, 32))) as file, cogpu.Context(threads=2,
                                                                       cache_bytes=5000) as context:
        for _ in range(4):
            assert reference.same(file.read(context=context), array)


def test_read_many_of_several_files():
    arrays = [reference.noise(np.random.default_rng(i), (2, 60 + i, 50), dtype) for i,
              dtype in enumerate(("u1", "u2", "f4", "f8"))]
    files = [opened(deflated(array, tile=(16, 16))) for array in arrays]
    wanted = [(file, {"window": (i, 2 * j, 20, 30 - j), "bands": [2, 1]}) for i,
              file in enumerate(files) for j in range(5)]
    results, failure = cogpu.read_many(wanted)
    assert failure is None
    for (file, request), (status, found) in zip(wanted, results):
        x, y, w, h = request["window"]
        assert status == OK
        assert reference.same(found, arrays[files.index(file)][::-1, y:y + h, x:x + w])
    for file in files:
        file.close()


def test_read_many_where_one_fails():
    bad = tb.image(PIXELS, compression=tb.DEFLATE, blocks=[b"not deflate at all"])
    with opened(deflated(PIXELS)) as good_file, opened(bad) as bad_file:
        results, failure = cogpu.read_many([(good_file, {}), (bad_file, {}),
                                            (good_file, {"window": (1, 1, 3, 3)}), (bad_file, {})])
        assert [status for status, _ in results] == [OK, CORRUPT, OK, CORRUPT]
        assert failure.status == CORRUPT and failure.block == 0
        assert reference.same(results[0][1][0], PIXELS)
        assert reference.same(results[2][1][0], PIXELS[1:4, 1:4])
        assert cogpu.read_many([]) == ([], None)


# ---- raw tags ----------------------------------------------------------------------------------

@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("big", [False, True])
def test_raw_tags(order, big):
    extra = tags((270, ASCII, b"text\0"), (282, RATIONAL, [300, 7]), (33550, DOUBLE, [1.5, 2.5, 0]),
                 (40000, tb.SLONG, [-5, 6, 7]))
    with opened(tb.image(PIXELS, order=order, big=big, rows=4, tags=extra)) as file:
        found = file.tags()
        assert found[256].name == "ImageWidth" and found[40000].name == "unknown"
        assert (found[282].type, found[282].count, found[282].bytes) == (RATIONAL, 1, 8)
        assert file.tag_read(0, 40000, 0, 3, "i4").tolist() == [-5, 6, 7]
        assert file.tag_read(0, 40000, 1, 1, "i4").tolist() == [6]
        assert file.tag_read(0, 33550, 1, 2, "f8").tolist() == [2.5, 0]
        assert file.tag_read(0, 282, 0, 1, "u4,u4")[0].tolist() == (300, 7)
        assert file.tag_read(0, 270, 0, 5, "u1").tobytes() == b"text\0"
        for tag, first, count, status in ((999, 0, 1, NOT_FOUND), (40000, 2, 2, INVALID_ARGUMENT),
                                          (40000, 2 ** 63, 2 ** 63, INVALID_ARGUMENT)):
            with pytest.raises(cogpu.CogpuError) as caught:
                error = cogpu.Error()
                room = np.zeros(64, "u1")
                cogpu._check(cogpu.lib.cogpu_tag_read(file.handle, 0, tag, first, count,
                                                      room.ctypes.data, error), error)
            assert caught.value.status == status
        with pytest.raises(cogpu.CogpuError) as caught:
            file.directory(1)
        assert caught.value.status in (NOT_FOUND, INVALID_ARGUMENT)
