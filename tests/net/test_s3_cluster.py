"""A cluster of processes writes COGs to S3: the bytes of a local file, of which the caller sees no more than it must;
and nothing left where it fails. AWS's own client says what is in the store."""

import concurrent.futures
import ctypes
import functools
import pickle
import random
import types

import numpy as np
import pytest
from test_python_read import cogpu
from test_s3_write import CODE, LEAST, MIB, NO_UPLOAD, PART, noise, parts

distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from cogpu import dask_cluster, dask_upload, write  # noqa: E402

KEY, WORKERS = "of-a-cluster.tif", 3
TILE_BYTE_COUNTS = 325
S3_MOST = 5 << 40  # bytes of an object
pytestmark = pytest.mark.filterwarnings("ignore:Sending large graph")


@pytest.fixture(scope="module")
def cluster():
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "dashboard_address": ":0", "port": 0}}
    worker = {"cls": distributed.Nanny, "options": {"nthreads": 2, "dashboard": False}}
    with distributed.SpecCluster(workers=dict.fromkeys(range(WORKERS), worker), scheduler=scheduler) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def settings(s3, endpoint=None, **more):
    variables = s3.environment()
    return {"s3_endpoint": endpoint or s3.endpoint, "s3_region": s3.region, "max_retries": 1,
            "s3_access_key": variables["AWS_ACCESS_KEY_ID"],
            "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"]} | more


def configure(client, network, caller=None):
    client.run(cogpu.configure, network=network)
    cogpu.configure(network=caller or network)


@pytest.fixture
def client(cluster, s3):
    """All know where the store is, and one that fails leaves nothing."""
    configure(cluster, settings(s3))
    s3.put(s3.closed, KEY, b"old")
    s3.requests()
    yield cluster
    cogpu.configure()
    assert s3.uploads(s3.closed) == NO_UPLOAD
    s3.client.delete_object(Bucket=s3.closed, Key=KEY)


@pytest.fixture
def old(client, s3):
    """What must stand after a failure."""
    yield
    assert s3.get(s3.closed, KEY) == b"old"


def address(s3, key=KEY):
    return f"s3://{s3.closed}/{key}"


def upload(s3, pixels, chunks=(1, 700, 800), path=None, **options):
    options = COG | {"streaming_buffer_bytes": 4 * MIB} | options
    return cogpu.to_geotiff(da.from_array(pixels, chunks), path or address(s3), **options)


def locally(pixels, chunks=None, **options):
    return bytes(cogpu.to_geotiff(pixels, None, **COG | options))


COG = {"cog": True, "tile_size": 256, "compression": "zstd", "compression_level": 1}
PIXELS = noise(2, 2048, 3000)
MASK = np.arange(2048 * 3000).reshape(2048, 3000) % 70000 > 20000


# ---- the object ------------------------------------------------------------------------------------------------------


LAYOUTS = {
    "one band": {"pixels": noise(1, 4000, 2500)},
    "bands": {"pixels": PIXELS},
    "planar": {"pixels": PIXELS, "interleave": "band"},
    "a mask": {"pixels": PIXELS, "mask": MASK},
    "planar with a mask": {"pixels": PIXELS, "mask": MASK, "interleave": "band"},
    "deflate, odd tiles": {"pixels": PIXELS, "compression": "deflate", "tile_size": (272, 336)},
    "no overviews": {"pixels": PIXELS, "overview_levels": []},
    "bigtiff": {"pixels": PIXELS, "bigtiff": True},
    "one region": {"pixels": PIXELS, "chunks": (2, 2048, 3000)},
    "rows of pixels": {"pixels": PIXELS, "chunks": (2, 130, 3000), "streaming_buffer_bytes": 1},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_bytes_are_those_of_a_local_file(layout, client, s3):
    assert upload(s3, **LAYOUTS[layout]) == address(s3)
    asked = s3.requests()
    assert s3.get(s3.closed, KEY) == locally(**LAYOUTS[layout])
    sent = parts(asked)
    sizes = [size for _, size in sorted(sent)]
    assert len(sent) == len(dict(sent)) >= 3 and min(sizes[:-1]) >= LEAST
    assert [request.method for request in asked] == ["POST"] + ["PUT"] * len(sent) + ["POST"]


def sparse(pixels, chunks=None):
    """A plan whose blocks of zeros are left out, which to_geotiff does not."""
    plan = write.plan(da.from_array(pixels, chunks) if chunks else pixels, **COG)
    plan.profile["sparse"] = True
    return plan


@pytest.mark.parametrize("kept", [slice(0, 0), slice(600, 1900), slice(0, 2048)], ids=["none", "some", "all"])
def test_blocks_that_are_left_out(kept, client, s3):
    pixels = np.zeros_like(PIXELS)
    pixels[:, kept] = PIXELS[:, kept]
    write.carry_out(sparse(pixels, (2, 512, 512)), address(s3))
    local = bytes(write.carry_out(sparse(pixels), None))
    assert s3.get(s3.closed, KEY) == local
    assert len(local) < 20000 or kept.stop


SMALL = {  # rows of noise, of all; and how many parts
    "less than a part": (900, 900, 0),
    "less than a part, as one sees afterwards": (0, 4000, 1),
    "first bytes alone": (900, 4000, 1),
    "first bytes and few behind them": (1200, 4000, 2),
}


@pytest.mark.parametrize("rows, height, count", SMALL.values(), ids=SMALL)
def test_what_is_small(rows, height, count, client, s3):
    pixels = np.zeros((1, height, 2500), "u2")
    pixels[:, :rows] = noise(1, rows, 2500)
    upload(s3, pixels)
    sent, local = parts(s3.requests()), locally(pixels)
    assert s3.get(s3.closed, KEY) == local and len(local) < PART
    assert len(sent) == count and sum(size for _, size in sent) in (0, len(local))


@pytest.mark.parametrize("words", [{"cog": False}, {"cog": False, "tiled": False, "tile_size": None}])
def test_what_is_no_cog(words, client, s3):
    upload(s3, PIXELS, **words)
    assert s3.get(s3.closed, KEY) == locally(PIXELS, **words)


def test_level_0_does_not_pass_the_caller(client, s3, monkeypatch):
    """Neither on the way from the workers nor on that to the store, but for its first bytes."""
    came, went = [], []

    def gather(futures):
        found = distributed.Client.gather(client, futures)
        came.extend(result[-1] for results in found for result in results if isinstance(result[-1], bytes))
        return found

    def send(address, upload, number, data):
        went.append(len(data))
        return upload_send(address, upload, number, data)

    upload_send = cogpu._cogpu.upload_send
    monkeypatch.setattr(client, "gather", gather)
    monkeypatch.setattr(cogpu._cogpu, "upload_send", send)
    upload(s3, PIXELS)
    sent = parts(s3.requests())
    local = locally(PIXELS)
    assert s3.get(s3.closed, KEY) == local
    file = cogpu._cogpu.File(memoryview(local))
    blocks, *overviews = (file.tag(number, TILE_BYTE_COUNTS) for number in range(len(file.directories())))
    level_0 = sum(blocks) + 8 * len(blocks)
    assert sum(map(len, came)) == sum(map(sum, overviews)) + LEAST
    assert sum(went) == len(local) - level_0 + LEAST and level_0 > 2 * PART
    assert sum(size for _, size in sent) == len(local) and len(sent) > len(went)


def test_more_of_a_head_than_a_part(client, s3):
    pixels, words = noise(1, 5000, 5000), {"overview_resampling": "nearest"}
    upload(s3, pixels, chunks=(1, 1024, 1024), **words)
    sent = dict(parts(s3.requests()))
    assert {1, 2} < sent.keys() and 3 not in sent and sent[1] == PART and sent[2] >= LEAST
    assert s3.get(s3.closed, KEY) == locally(pixels, **words)


def test_a_task_may_be_the_caller(client, s3):
    path = address(s3)

    def assemble():
        return cogpu.to_geotiff(da.from_array(PIXELS, (2, 700, 800)), path, **COG)

    assert client.submit(assemble, pure=False).result(timeout=120) == path
    assert s3.get(s3.closed, KEY) == locally(PIXELS)


def peak(start=False):
    """Bytes that this process has taken at most since the last start, when they are those that it has."""
    if start:
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as reset:
            reset.write("5")
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def test_memory_of_workers_does_not_grow_with_the_file(client, s3):
    """Of pixels what may be buffered; and the parts that are filled, copied and sent."""
    def fill(chunk, block_info=None):
        seed = block_info[None]["chunk-location"]
        return np.random.default_rng(seed).integers(0, 65536, chunk.shape, "u2")

    pixels = da.zeros((1, 20480, 4096), "u2", chunks=(1, 512, 2048)).map_blocks(fill, dtype="u2")
    buffered, sent = 4 * MIB, 4 * PART + 8 * MIB
    before = client.run(peak, start=True)
    cogpu.to_geotiff(pixels, address(s3), streaming_buffer_bytes=buffered, **COG)
    taken = [bytes_after - before[worker] for worker, bytes_after in client.run(peak).items()]
    assert len(taken) == WORKERS and max(taken) < buffered + sent < pixels.nbytes / 3
    assert {number for number, _ in parts(s3.requests())} > {1}
    with cogpu.open(address(s3)) as file:
        np.testing.assert_array_equal(np.asarray(file.read((19968, 2048, 20480, 4096))), pixels[:, -512:, -2048:])


# ---- uploads by hand -------------------------------------------------------------------------------------------------


@pytest.fixture
def begun(s3):
    """An upload, and the functions that know of it."""
    cogpu.configure(network=settings(s3))
    upload_id = cogpu._cogpu.upload_begin(address(s3))
    calls = (functools.partial(getattr(cogpu._cogpu, f"upload_{name}"), address(s3), upload_id)
             for name in ("send", "complete", "abort"))
    yield types.SimpleNamespace(id=upload_id, **dict(zip(("send", "complete", "abort"), calls)))
    cogpu._cogpu.upload_abort(address(s3), upload_id)
    cogpu.configure()


def test_parts_of_many_threads(begun, s3):
    pieces = {9000: noise(LEAST, dtype="u1"), 17: noise(LEAST + 1, dtype="u1"), 10000: noise(3, dtype="u1")}
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        etags = dict(zip(pieces, threads.map(begun.send, pieces, pieces.values())))
    assert list(s3.uploads(s3.closed).values()) == [[17, 9000, 10000]] and KEY not in s3.keys(s3.closed)
    begun.complete(sorted(etags.items()), sum(map(len, pieces.values())))
    assert s3.get(s3.closed, KEY) == b"".join(pieces[number].tobytes() for number in sorted(pieces))
    assert s3.uploads(s3.closed) == NO_UPLOAD
    s3.client.delete_object(Bucket=s3.closed, Key=KEY)


def test_an_end_that_fails_is_one(begun, s3):
    etag = begun.send(1, b"abc")
    with pytest.raises(cogpu.IOError, match="InvalidPart"):
        begun.complete([(1, etag[:-3] + 'x"')], 3)
    assert s3.uploads(s3.closed) == NO_UPLOAD and KEY not in s3.keys(s3.closed)


def test_an_upload_that_is_aborted(begun, s3):
    begun.send(1, b"abc")
    begun.abort()
    assert s3.uploads(s3.closed) == NO_UPLOAD
    with pytest.raises(cogpu.IOError, match="NoSuchUpload"):
        begun.send(2, b"abc")
    begun.abort()


@pytest.mark.parametrize("number, data", [(0, b"a"), (10001, b"a"), (1, b""), (-1, b"a"), (1 << 32, b"a")])
def test_parts_that_are_refused(number, data, begun, s3):
    s3.requests()
    with pytest.raises(cogpu.InvalidArgumentError):
        begun.send(number, data)
    assert s3.requests() == []


@pytest.mark.parametrize("parts, kind", [
    ([], cogpu.InvalidArgumentError), ([(2, "a"), (1, "a")], cogpu.InvalidArgumentError), ([(1, "a"), (1, "a")], cogpu.InvalidArgumentError),
    ([(1, "")], cogpu.IOError), ([(1, "a" * 128)], cogpu.IOError), ([(1, "a\nb")], cogpu.IOError),
    ([(1, b"a")], TypeError), ([1], TypeError), (5, TypeError), ([(1, "a", 1)], cogpu.InvalidArgumentError)])
def test_ends_that_are_refused(parts, kind, begun, s3):
    s3.requests()
    with pytest.raises(kind):
        begun.complete(parts, 3)
    assert "POST" not in [asked.method for asked in s3.requests()]


@pytest.mark.parametrize("path, kind", [
    ("/tmp/a.tif", cogpu.InvalidArgumentError), ("https://host/a.tif", cogpu.UnsupportedError), (b"s3://bucket/a", TypeError),
    ("s3://bucket", cogpu.InvalidArgumentError), ("s3://no-such-bucket/a", FileNotFoundError),
    ("s3://bucket/a\0b", cogpu.InvalidArgumentError)])
def test_addresses_that_are_refused(path, kind, begun):
    with pytest.raises(kind):
        cogpu._cogpu.upload_begin(path)


@pytest.mark.parametrize("upload_id", ["", "a" * 1024])
def test_ids_that_are_refused(upload_id, begun, s3):
    s3.requests()
    for call in (lambda: cogpu._cogpu.upload_send(address(s3), upload_id, 1, b"a"),
                 lambda: cogpu._cogpu.upload_complete(address(s3), upload_id, [(1, "a")], 1)):
        with pytest.raises(cogpu.InvalidArgumentError, match="id"):
            call()
    cogpu._cogpu.upload_abort(address(s3), upload_id)
    assert s3.requests() == []


# ---- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_packs(seed, monkeypatch):
    """Rows of any length give parts that hold them in order, none but the last too short."""
    dice, first = random.Random(seed), 7
    monkeypatch.setattr(dask_upload, "LEAST_BYTES", 5)
    made = dask_upload.Upload("s3://bucket/key", "id", 10, first)
    rows = [[bytes(dice.randrange(256) for _ in range(dice.choice([0, 1, 4, 5, 6, 10, 35])))
             for _ in range(dice.randrange(1, 4))] for _ in range(dice.randrange(1, 12))]
    left, found = None, []
    for row in rows:
        packed = dask_upload.pack(made, left, row, row is rows[-1])
        found += packed[0]
        left = dask_upload.left_of(packed)
    assert [number for number, _ in found] == list(range(first, first + len(found)))
    assert b"".join(data for _, data in found) == b"".join(b"".join(row) for row in rows)
    sizes = [len(data) for _, data in found]
    assert sizes[:-1] == [5, *[10] * (len(sizes) - 2)][:max(len(sizes) - 1, 0)]
    assert all(0 < size <= 10 for size in sizes) and sizes[:1] <= [5]


@pytest.mark.parametrize("size", [0, 1, PART, PART + 1, 80 << 30, 9000 * PART + 1, S3_MOST, 1 << 63])
def test_parts_are_neither_short_nor_too_many(size):
    part_bytes, count = cogpu._cogpu.upload_plan(size)
    assert cogpu._cogpu.PART_BYTES_MIN == LEAST and part_bytes >= PART and count <= 9000
    assert (count - 1) * part_bytes < min(size, S3_MOST) <= count * part_bytes


@pytest.mark.parametrize("side, part_bytes", [(10_000, PART), (3_000_000, None)])
def test_numbers_are_enough(side, part_bytes, monkeypatch):
    """Whatever the sizes of blocks."""
    monkeypatch.setattr(cogpu._cogpu, "upload_begin", lambda address: "id")
    profile = {"width": side, "height": side, "bands": 1, "type": "float32", "cog": True}
    made = dask_upload.begin("s3://bucket/key", profile)
    level_0, *others = (level["max_bytes"] for level in cogpu._cogpu.level_layouts(profile))
    level_0, others = min(level_0, S3_MOST * 3 // 4), min(sum(others), S3_MOST // 4)
    assert made.part_bytes == part_bytes or not part_bytes and made.part_bytes > PART
    assert others < (made.first - 400) * made.part_bytes
    assert made.first + level_0 / made.part_bytes + 2 < 10_000


@pytest.mark.parametrize("target", [None, "/tmp/s3://x", "https://host/x", "s3:/bucket/key"])
def test_other_targets(target):
    assert dask_upload.begin(target, {"width": 9999, "height": 9999, "bands": 1, "type": "uint8", "cog": True}) is None


# ---- what goes wrong -------------------------------------------------------------------------------------------------


REFUSED = {"kind": "status", "code": 403, "text": CODE.format("AccessDenied")}


def test_a_fault_once_is_made_good(client, s3, s3_faults):
    configure(client, settings(s3, s3_faults.http, max_retries=4))
    s3_faults.plan(at={2: {"kind": "status", "code": 503, "after": 0}, 3: {"kind": "drop"}}, only="partNumber")
    upload(s3, PIXELS)
    assert s3_faults.done() == {"status": 1, "drop": 1}
    assert s3.get(s3.closed, KEY) == locally(PIXELS)


@pytest.mark.parametrize("only", [r"partNumber=(?!1&)", r"partNumber=1&", r"POST .*uploadId"],
                         ids=["a worker's part", "the head", "the end"])
def test_a_store_that_refuses(only, old, client, s3, s3_faults):
    configure(client, settings(s3, s3_faults.http))
    s3_faults.plan(every=REFUSED, only=only)
    with pytest.raises(cogpu.IOError, match="AccessDenied"):
        upload(s3, PIXELS)
    assert s3_faults.done()["status"] >= 1
    assert s3.requests()[-1].method == "DELETE"


def test_what_is_on_its_way_is_waited_for(old, client, s3, s3_faults):
    """A part that came after the end of an upload might stay."""
    configure(client, settings(s3, s3_faults.http))
    s3_faults.plan(at={1: {"kind": "delay", "seconds": 3}, 2: REFUSED}, only="partNumber")
    with pytest.raises(cogpu.IOError, match="AccessDenied"):
        upload(s3, noise(2, 4096, 3000), chunks=(2, 512, 512), streaming_buffer_bytes=256 * MIB)
    assert not any(client.run(lambda: len(dask_upload._under_way)).values())
    assert s3_faults.done() == {"delay": 1, "status": 1}
    methods = [asked.method for asked in s3.requests()]
    assert methods[:2] == ["POST", "PUT"] and methods[-1] == "DELETE"


def test_workers_that_may_not(old, client, s3):
    configure(client, settings(s3, s3_secret_key="not-the-secret"), caller=settings(s3))
    with pytest.raises(cogpu.IOError, match="SignatureDoesNotMatch") as caught:
        upload(s3, PIXELS)
    assert "not-the-secret" not in str(caught.value)
    assert s3.requests()[-1].method == "DELETE"


def test_workers_that_do_not_find_the_store(old, client, s3):
    configure(client, settings(s3, "http://127.0.0.1:1"), caller=settings(s3))
    with pytest.raises(cogpu.IOError, match=KEY):
        upload(s3, PIXELS)


def test_no_bucket(client, s3):
    def compute(chunk):
        raise ZeroDivisionError

    lazy_pixels = da.from_array(PIXELS, (2, 512, 512)).map_blocks(compute, dtype="u2")
    with pytest.raises(FileNotFoundError, match="bucket"):
        cogpu.to_geotiff(lazy_pixels, "s3://no-such-bucket/a.tif", **COG)


class Trouble(Exception):
    pass


def test_what_fails_in_a_task(old, client, s3):
    def fail(chunk, block_info=None):
        if block_info[0]["chunk-location"][1] == 6:
            raise Trouble("row 6")
        return chunk

    lazy_pixels = da.from_array(noise(2, 4096, 3000), (2, 512, 512)).map_blocks(fail, dtype="u2")
    with pytest.raises(Trouble, match="row 6"):
        cogpu.to_geotiff(lazy_pixels, address(s3), streaming_buffer_bytes=1, **COG)
    methods = [asked.method for asked in s3.requests()]
    assert "PUT" in methods and methods[-1] == "DELETE"


@pytest.mark.parametrize("error", [Trouble, KeyboardInterrupt])
def test_what_fails_here(error, old, client, s3):
    def progress(done, total):
        raise error

    with pytest.raises(error):
        upload(s3, PIXELS, progress=progress)
    assert s3.requests()[-1].method == "DELETE"


def test_a_worker_that_was_stopped_sends_nothing(client):
    client.run(dask_upload.stop, "stopped")
    made = dask_upload.Upload("s3://bucket/key", "stopped", 10, 1)
    with pytest.raises(cogpu.IOError, match="^the upload was aborted"):
        client.submit(dask_upload.send, made, ([(2, b"data")], None)).result(timeout=60)


def test_secrets_stay_here(client, s3):
    """What goes to the scheduler and the workers has none."""
    made = dask_upload.begin(address(s3), {"width": 9999, "height": 9999, "bands": 2, "type": "uint16", "cog": True})
    plan = write.plan(da.from_array(PIXELS, (2, 512, 512)), **COG)
    work = dask_cluster.Work(plan, plan.profile, plan.rows(0, 2048), 1 << 20, made)
    cogpu._cogpu.upload_abort(made.address, made.id)
    packed = pickle.dumps([task for key, task in work.graph.items() if "array" not in str(key)])
    assert made.id.encode() in packed
    for secret in (s3.environment()["AWS_SECRET_ACCESS_KEY"], "TESTKEY"):
        assert secret.encode() not in packed
