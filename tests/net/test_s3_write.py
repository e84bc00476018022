"""Writing to S3: the bytes of a local file, in parts that the store takes, within four of them in memory; and nothing
left where it fails. AWS's own client says what is in the store."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from test_http_read import cogpu, in_a_fork

MIB = 1 << 20
LEAST, PART = 5 * MIB, 10 * MIB
KEY = "new.tif"
NO_UPLOAD = {}

CODE = "<Error><Code>{}</Code><Message>spoilt</Message></Error>"


def noise(*shape, dtype="u2"):
    """What no codec makes shorter."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(size).bytes(size), dtype).reshape(shape)


def settings(s3, endpoint=None, **more):
    variables = s3.environment()
    return {"s3_endpoint": (endpoint or s3.endpoint).encode(), "s3_region": s3.region.encode(),
            "s3_access_key": variables["AWS_ACCESS_KEY_ID"].encode(),
            "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"].encode(), "max_retries": 2} | more


@pytest.fixture(autouse=True)
def clean(request):
    """An empty bucket, but for what the session has put there."""
    if "s3" not in request.fixturenames and "s3_faults" not in request.fixturenames:
        yield
        return
    s3 = request.getfixturevalue("s3")
    yield
    s3.client.delete_object(Bucket=s3.closed, Key=KEY)
    for upload in s3.client.list_multipart_uploads(Bucket=s3.closed).get("Uploads", []):
        s3.client.abort_multipart_upload(Bucket=s3.closed, Key=upload["Key"], UploadId=upload["UploadId"])


def write(s3, array, chunks=None, endpoint=None, network=None, key=KEY, mask=None, **options):
    with cogpu.Context(network=settings(s3, endpoint, **(network or {}))) as context:
        cogpu.write(array, mask, chunks, f"s3://{s3.closed}/{key}", context=context, **options)


def locally(path, array, mask=None, **options):
    cogpu.write(array, mask, None, path, **options)
    return path.read_bytes()


def parts(requests):
    """(number, bytes) of parts in the order in which they came."""
    return [(int(asked.query["partNumber"]), asked.body) for asked in requests
            if asked.method == "PUT" and "partNumber" in asked.query and asked.status == 200]


def as_gdal_reads_it(s3):
    import rasterio
    from rasterio.session import AWSSession
    variables = s3.environment()
    session = AWSSession(aws_access_key_id=variables["AWS_ACCESS_KEY_ID"], region_name=s3.region,
                         aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
                         endpoint_url=s3.endpoint.partition("//")[2])
    with rasterio.Env(session, AWS_HTTPS="NO", AWS_VIRTUAL_HOSTING="FALSE", VSI_CACHE="FALSE",
                      CPL_VSIL_CURL_NON_CACHED=f"/vsis3/{s3.closed}/{KEY}"):
        with rasterio.open(f"/vsis3/{s3.closed}/{KEY}") as file:
            return file.read()


def methods(requests):
    return [asked.method for asked in requests]


# ---- the object --------------------------------------------------------------------------------------------


COG = {"cog": 1, "codec": b"zstd", "level": 1}
PROFILES = {
    "cog": COG,
    "cog, deflate": COG | {"codec": b"deflate"},
    "cog without overviews": COG | {"overviews": "none"},
    "cog, bigtiff": COG | {"bigtiff": "yes"},
    "cog, planar": COG | {"planar": 1},
    "cog, sparse": COG | {"sparse": 1},
    "tiles": {"codec": b"none"},
    "tiles with overviews": {"codec": b"none", "overviews": "listed", "overview_factors": [2, 4]},
    "strips": {"strips": 1, "codec": b"none"},
    "strips, bigtiff": {"strips": 1, "codec": b"none", "bigtiff": "yes"},
}


@pytest.mark.parametrize("chunks", [None, [100, 1500, 96, 2400]], ids=["at once", "in chunks"])
@pytest.mark.parametrize("options", PROFILES.values(), ids=PROFILES)
def test_the_bytes_are_those_of_a_local_file(options, chunks, s3, tmp_path):
    array = noise(2, 4096, 2048)
    write(s3, array, chunks, **options)
    asked = s3.requests()
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, **options)
    assert s3.uploads(s3.closed) == NO_UPLOAD
    sent = parts(asked)
    assert len(sent) == len(dict(sent)) >= 3
    assert methods(asked) == ["POST"] + ["PUT"] * len(sent) + ["POST"]
    sizes = [size for _, size in sorted(sent)]
    assert min(sizes[:-1]) >= LEAST and max(sizes) <= PART
    assert sum(sizes) == s3.client.head_object(Bucket=s3.closed, Key=KEY)["ContentLength"]
    np.testing.assert_array_equal(as_gdal_reads_it(s3), array)


def test_with_a_mask(s3, tmp_path):
    array, mask = noise(1, 4096, 2048), (np.arange(4096 * 2048).reshape(4096, 2048) % 7 > 2).astype("u1")
    write(s3, array, [1000, 3096], mask=mask, **COG)
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, mask, **COG)


def test_rows_of_a_device(s3, tmp_path):
    array = noise(1, 4096, 2048)
    with cogpu.Context(network=settings(s3)) as context:
        cogpu.write(array, None, [2048, 2048], f"s3://{s3.closed}/{KEY}", cogpu.GPU, context=context, device=cogpu.GPU,
                    cog=1, codec=b"none")
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, cog=1, codec=b"none")


def test_a_small_file_goes_up_at_once(s3, tmp_path):
    array = noise(1, 600, 700)
    write(s3, array, **COG)
    asked = s3.requests()
    assert [(request.method, request.query) for request in asked] == [("PUT", {})]
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, **COG)


def around(*sizes):
    return [size + more for size in sizes for more in (-2, 0, 2)]


@pytest.fixture(scope="module")
def around_pixels(tmp_path_factory):
    """Bytes of a file of strips but for its pixels."""
    path = tmp_path_factory.mktemp("size") / "size.tif"
    return len(locally(path, noise(1, 1, 1 << 20, dtype="u1"), strips=1, codec=b"none")) - (1 << 20)


@pytest.mark.parametrize("size", around(LEAST, PART, PART + 8, LEAST + PART, LEAST + PART + 8, LEAST + 2 * PART + 8))
def test_sizes_near_those_of_parts(size, around_pixels, s3, tmp_path):
    array = noise(1, 1, size - around_pixels, dtype="u1")
    options = {"strips": 1, "codec": b"none"}
    write(s3, array, **options)
    asked = s3.requests()
    local = locally(tmp_path / "local.tif", array, **options)
    assert len(local) == size and s3.get(s3.closed, KEY) == local
    sizes = [size for _, size in sorted(parts(asked))]
    assert bool(sizes) == (size > PART)
    assert all(LEAST <= size <= PART for size in sizes[:-1]) and all(0 < size <= PART for size in sizes[-1:])


def test_a_plain_file_whose_overviews_are_more_than_its_first_level(s3, tmp_path):
    """The header is written between both, when little of the file is known."""
    array = noise(1, 1000, 1000)
    options = {"codec": b"none", "overviews": "listed", "overview_factors": [2, 4], "block_width": 2048, "block_height": 2048}
    write(s3, array, **options)
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, **options)


def test_a_session(s3, tmp_path):
    array = noise(1, 4096, 2048)
    variables = s3.environment("TESTTEMPORARY")
    write(s3, array, network={"s3_access_key": b"TESTTEMPORARY",
                              "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"].encode(),
                              "s3_session_token": variables["AWS_SESSION_TOKEN"].encode()}, **COG)
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", array, **COG)


def test_settings_of_the_environment(s3, tmp_path, monkeypatch):
    """Without a context; the endpoint's address is one of this machine, which such a write may not reach."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    with pytest.raises(cogpu.CogpuError, match="allow_private_addresses"):
        cogpu.write(noise(1, 64, 64), path=f"s3://{s3.closed}/{KEY}")
    assert s3.requests() == []
    with cogpu.Context(network={"allow_private_addresses": 1}) as context:
        cogpu.write(noise(1, 64, 64), path=f"s3://{s3.closed}/{KEY}", context=context)
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", noise(1, 64, 64))


def test_a_key_that_needs_quotes(s3, tmp_path):
    key, array = "höhe 1+1=2/a&b?#%20.tif", noise(1, 4096, 2048)
    write(s3, array, key=key, **COG)
    assert s3.get(s3.closed, key) == locally(tmp_path / "local.tif", array, **COG)
    s3.client.delete_object(Bucket=s3.closed, Key=key)


# ---- while it is written -----------------------------------------------------------------------------------


def wait_until(is_so, seconds=30):
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.02)
    assert is_so()


@pytest.mark.parametrize("options", [COG, {"codec": b"none"}], ids=["cog", "plain"])
def test_parts_go_up_while_rows_come(options, s3):
    """Those of level 0 first; the first of the file last."""
    array = noise(1, 8192, 2048)
    with cogpu.Context(network=settings(s3)) as context:
        writer = cogpu.Writer(cogpu.profile_of(array, context=context, **options), f"s3://{s3.closed}/{KEY}")
        writer.push(array[:, :7680])
        wait_until(lambda: len(s3.uploads(s3.closed).get(KEY, [])) >= 1)
        assert 1 not in s3.uploads(s3.closed)[KEY] and KEY not in s3.keys(s3.closed)
        s3.requests()
        writer.push(array[:, 7680:])
        writer.close()
    assert 1 in dict(parts(s3.requests()))
    assert KEY in s3.keys(s3.closed) and s3.uploads(s3.closed) == NO_UPLOAD


def test_an_old_object_stands_until_the_new_one_is_complete(s3):
    array = noise(1, 8192, 2048)
    s3.put(s3.closed, KEY, b"old")
    with cogpu.Context(network=settings(s3)) as context:
        writer = cogpu.Writer(cogpu.profile_of(array, context=context, **COG), f"s3://{s3.closed}/{KEY}")
        writer.push(array[:, :7680])
        wait_until(lambda: len(s3.uploads(s3.closed).get(KEY, [])) >= 1)
        assert s3.get(s3.closed, KEY) == b"old"
        writer.abort()
    assert s3.get(s3.closed, KEY) == b"old" and s3.uploads(s3.closed) == NO_UPLOAD


def test_a_writer_that_is_faster_than_the_network_waits(s3, s3_faults):
    """Until one of four parts, filled or on their way, is free."""
    s3_faults.plan(every={"kind": "delay", "seconds": 0.2}, only="partNumber")
    write(s3, noise(1, 1 << 13, 1 << 14, dtype="u1"), [1024] * 8, endpoint=s3_faults.http, codec=b"none")
    assert len(parts(s3.requests())) == 14 and 3 <= s3_faults.most() <= 4


def peak_of(megabytes, s3, proxy):
    """Of a process that writes so many from a few rows."""
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import cogpu_ctypes as cogpu, numpy as np, resource
from test_s3_write import settings
rows = np.zeros((1, 64, 1 << 14), "u1")
with cogpu.Context(threads=1, network={settings(s3, proxy.http)!r}) as context:
    profile = cogpu.profile_of(np.broadcast_to(rows[:, :1], (1, {megabytes * 64}, 1 << 14)), context=context, codec=b"none")
    writer = cogpu.Writer(profile, "s3://{s3.closed}/{KEY}")
    for _ in range({megabytes}):
        writer.push(rows)
    writer.close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                              timeout=120).stdout) << 10


def test_memory_does_not_grow_with_the_file(s3, s3_faults):
    s3_faults.plan(every={"kind": "delay", "seconds": 0.05}, only="partNumber")
    little, much = peak_of(4, s3, s3_faults), peak_of(160, s3, s3_faults)
    assert much - little < 4 * PART + 8 * MIB


def test_parts_are_longer_where_the_file_may_be(s3):
    """Of 128 GiB; most of it never comes."""
    rows = noise(1, 256, 1 << 18, dtype="u1")
    with cogpu.Context(network=settings(s3)) as context:
        whole = np.broadcast_to(rows[:, :1], (1, 1 << 19, 1 << 18))
        profile = cogpu.profile_of(whole, context=context, strips=1, codec=b"none")
        writer = cogpu.Writer(profile, f"s3://{s3.closed}/{KEY}")
        writer.push(rows)
        wait_until(lambda: len(s3.uploads(s3.closed).get(KEY, [])) >= 1)
        writer.abort()
    sizes = {size for _, size in parts(s3.requests())}
    assert len(sizes) == 1 and 8500 < (1 << 37) / sizes.pop() < 10000
    assert s3.uploads(s3.closed) == NO_UPLOAD


# ---- what goes wrong ---------------------------------------------------------------------------------------


ARRAY = {"array": noise(1, 4096, 4096), "chunks": [2048, 2048]} | COG


@pytest.fixture
def old(s3):
    """What must stand after a failure."""
    s3.put(s3.closed, KEY, b"old")
    s3.requests()
    yield
    assert s3.get(s3.closed, KEY) == b"old" and s3.uploads(s3.closed) == NO_UPLOAD


@pytest.mark.parametrize("fault", [
    {"kind": "status", "code": 503, "after": 0}, {"kind": "status", "code": 500}, {"kind": "drop"}, {"kind": "lost"},
    {"kind": "status", "code": 400, "text": CODE.format("RequestTimeout")}, {"kind": "cut", "after": 0},
    {"kind": "status", "code": 200, "text": CODE.format("InternalError")}], ids=str)
@pytest.mark.parametrize("only, number", [("partNumber", 2), (r"POST .*uploadId", 1)], ids=["a part", "the end"])
def test_once_is_made_good(only, number, fault, s3, s3_faults, tmp_path):
    s3_faults.plan(at={number: fault}, only=only)
    write(s3, endpoint=s3_faults.http, **ARRAY)
    if fault["kind"] != "cut":  # such an answer may have no body that could be cut
        assert s3_faults.done() == {fault["kind"]: 1}
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", ARRAY["array"], **COG)
    assert s3.uploads(s3.closed) == NO_UPLOAD


@pytest.mark.parametrize("fault", [
    {"kind": "status", "code": 503, "after": 0}, {"kind": "status", "code": 403, "text": CODE.format("AccessDenied")},
    {"kind": "drop"}, {"kind": "header", "name": "ETag"}, {"kind": "status", "code": 307},
    {"kind": "status", "code": 200, "text": CODE.format("InternalError")}], ids=str)
@pytest.mark.parametrize("only", ["partNumber", r"POST .*uploadId", r"POST .*uploads="], ids=["parts", "the end", "the start"])
def test_for_good_leaves_nothing(only, fault, old, s3, s3_faults):
    if fault["kind"] == "header" and only != "partNumber":
        pytest.skip("only answers to parts have one that is needed")
    s3_faults.plan(every=fault, only=only)
    with pytest.raises(cogpu.CogpuError) as caught:
        write(s3, endpoint=s3_faults.http, network={"max_retries": 1}, **ARRAY)
    assert caught.value.name == "io_error" and f"s3://{s3.closed}/{KEY}" in str(caught.value)
    assert fault.get("code", 0) < 300 or str(fault["code"]) in str(caught.value)


def test_a_beginning_whose_answer_is_lost(s3, s3_faults, tmp_path):
    """The unknown upload stays, without parts: it could be one of another writer's."""
    s3_faults.plan(at={1: {"kind": "lost"}}, only=r"POST .*uploads=")
    write(s3, endpoint=s3_faults.http, **ARRAY)
    assert s3_faults.done() == {"lost": 1}
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", ARRAY["array"], **COG)
    assert s3.uploads(s3.closed) == {KEY: []}


def test_an_answer_that_is_lost_and_an_upload_that_is_gone(s3, s3_faults, tmp_path):
    """The object is there, and the store says so only when asked again."""
    s3_faults.plan(every={"kind": "lost"}, only=r"POST .*uploadId")
    write(s3, endpoint=s3_faults.http, **ARRAY)
    assert s3_faults.done() == {"lost": 3}
    assert s3.get(s3.closed, KEY) == locally(tmp_path / "local.tif", ARRAY["array"], **COG)


def test_an_upload_that_another_has_aborted(old, s3, s3_faults):
    array = noise(1, 8192, 2048)
    with cogpu.Context(network=settings(s3)) as context:
        writer = cogpu.Writer(cogpu.profile_of(array, context=context, **COG), f"s3://{s3.closed}/{KEY}")
        writer.push(array[:, :7680])
        wait_until(lambda: len(s3.uploads(s3.closed).get(KEY, [])) >= 1)
        for upload in s3.client.list_multipart_uploads(Bucket=s3.closed)["Uploads"]:
            s3.client.abort_multipart_upload(Bucket=s3.closed, Key=KEY, UploadId=upload["UploadId"])
        with pytest.raises(cogpu.CogpuError, match="NoSuchUpload"):
            writer.push(array[:, 7680:])
            writer.close()


@pytest.mark.parametrize("array", [noise(1, 64, 64), ARRAY["array"]], ids=["small", "large"])
@pytest.mark.parametrize("network, words", [
    ({"s3_secret_key": b"not-the-secret"}, "SignatureDoesNotMatch.*check the secret key"),
    ({"s3_access_key": b"NOBODY"}, "InvalidAccessKeyId"), ({"s3_anonymous": 1}, "403")])
def test_wrong_credentials(network, words, array, old, s3):
    with pytest.raises(cogpu.CogpuError, match=words) as caught:
        write(s3, array, network=network, **COG)
    for secret in ("not-the-secret", s3.environment()["AWS_SECRET_ACCESS_KEY"], "NOBODY", "TESTKEY"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("array", [noise(1, 64, 64), ARRAY["array"]], ids=["small", "large"])
def test_no_bucket(array, s3):
    with cogpu.Context(network=settings(s3)) as context, pytest.raises(cogpu.CogpuError, match="bucket") as caught:
        cogpu.write(array, path=f"s3://no-such-bucket/{KEY}", context=context, **COG)
    assert caught.value.name == "not_found"


@pytest.mark.parametrize("path, network, status, words", [
    ("https://example.com/a.tif", {}, "unsupported", "s3://"), ("ftp://example.com/a.tif", {}, "unsupported", "ftp"),
    ("s3://bucket/a.tif", {"schemes": b"https"}, "unsupported", "s3"), ("s3://bucket", {}, "invalid_argument", "key"),
    ("s3://bucket/", {}, "invalid_argument", "key")])
def test_addresses_that_are_refused(path, network, status, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with cogpu.Context(network={"s3_anonymous": 1} | network) as context:
        with pytest.raises(cogpu.CogpuError, match=words) as caught:
            cogpu.write(noise(1, 64, 64), path=path, context=context)
    assert caught.value.name == status and os.listdir(tmp_path) == []


def test_the_child_of_a_fork(s3):
    """The parent's connections are none of its own: it says so, rather than wait for ever."""
    def put(context):
        cogpu.write(noise(1, 64, 64), None, None, f"s3://{s3.closed}/{KEY}", context=context)

    def child():
        with pytest.raises(cogpu.CogpuError) as caught:
            put(context)
        return f"{caught.value.name} {'forked' in caught.value.message}"
    with cogpu.Context(network=settings(s3)) as context:
        put(context)
        assert in_a_fork(child) == "io_error True"
    assert methods(s3.requests()) == ["PUT"]


def test_rows_that_are_missing(old, s3):
    with pytest.raises(cogpu.CogpuError, match="rows"):
        write(s3, noise(1, 8192, 2048), [8000], **COG)


def test_a_process_that_is_killed(s3):
    """The store keeps its parts, as it must; the object is the old one."""
    s3.put(s3.closed, KEY, b"old")
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
import cogpu_ctypes as cogpu
from test_s3_write import noise, settings
array = noise(1, 8192, 2048)
context = cogpu.Context(network={settings(s3)!r})
writer = cogpu.Writer(cogpu.profile_of(array, context=context, cog=1, codec=b"none"), "s3://{s3.closed}/{KEY}")
writer.push(array[:, :8000])
print("pushed", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"pushed\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert s3.get(s3.closed, KEY) == b"old" and KEY in s3.uploads(s3.closed)
