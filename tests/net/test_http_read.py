"""Reading over HTTP: the same pixels as from the file, how many requests that takes, and what goes wrong on the way."""

import os
import random
import signal

import cogpu_ctypes as cogpu
import numpy as np
import pytest
from cogs import write

PATIENT = {"allow_private_addresses": 1}
HASTY = PATIENT | {"max_retries": 2, "connect_timeout_seconds": 2, "low_speed_seconds": 1, "timeout_seconds": 8}


class Reader:
    """Opens URLs with settings of the network."""

    def __init__(self, cache_bytes=0, threads=0, **network):
        self.context = cogpu.Context(threads, cache_bytes, network=network)

    def open(self, url):
        return cogpu.open(url, cogpu.OpenOptions(context=self.context.handle))


@pytest.fixture
def reader():
    reader = Reader(**PATIENT)
    with reader.context:
        yield reader


@pytest.fixture
def hasty():
    reader = Reader(**HASTY)
    with reader.context:
        yield reader


@pytest.mark.parametrize("name", ["masked", "jpeg", "planar", "bigtiff", "long_header"])
@pytest.mark.parametrize("server", ["http", "https"])
def test_pixels_are_those_of_the_file(name, server, nginx, cog):
    reader = Reader(**PATIENT, ca_file=str(nginx.ca).encode())
    with reader.context, reader.open(f"{getattr(nginx, server)}/files/{name}.tif") as file:
        np.testing.assert_array_equal(file.read(), cog[name].pixels)
        for level, pixels in enumerate(cog[name].overviews, 1):
            np.testing.assert_array_equal(file.read(level=level), pixels)
    protocols = {request.protocol for request in nginx.requests()}
    assert protocols == ({"HTTP/2.0"} if server == "https" else {"HTTP/1.1"})


@pytest.mark.parametrize("name", ["masked", "jpeg", "planar"])
def test_into_memory_of_a_device(name, reader, nginx, cog):
    with reader.open(f"{nginx.http}/files/{name}.tif") as file:
        file.read(window=(0, 0, 300, 300), device=cogpu.GPU, context=reader.context)
        nginx.requests()
        pixels = file.read(window=(0, 0, 700, 700), device=cogpu.GPU, context=reader.context)
        np.testing.assert_array_equal(pixels, cog[name].pixels[:, :700, :700])
    assert len(nginx.requests()) <= 3 * pixels.shape[0]  # a row of blocks each


@pytest.mark.parametrize("name, x, y, width, height", [
    ("masked", 300, 300, 200, 200), ("masked", 200, 300, 900, 100), ("bigtiff", 100, 100, 200, 200),
    ("jpeg", 300, 10, 500, 200)], ids=["a block", "blocks of a row", "blocks of three rows", "blocks of color"])
def test_a_cold_window_takes_two_requests(name, x, y, width, height, reader, nginx, cog):
    with reader.open(f"{nginx.http}/files/{name}.tif") as file:
        np.testing.assert_array_equal(file.read(window=(x, y, width, height)),
                                      cog[name].pixels[:, y:y + height, x:x + width])
    asked = nginx.requests()
    assert len(asked) == 2 and asked[0].range == "bytes=0-16383"


def test_all_of_a_file_takes_two_requests(reader, nginx, cog):
    with reader.open(f"{nginx.http}/files/masked.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels)
        assert len(nginx.requests()) == 2  # fewer bytes than request_bytes, and neighbours all of them
        for level, pixels in enumerate(cog["masked"].overviews, 1):
            np.testing.assert_array_equal(file.read(level=level), pixels)
            assert len(nginx.requests()) <= 1


def test_blocks_of_the_cache_are_not_asked_for(nginx, cog):
    keeping = Reader(cache_bytes=16 << 20, **PATIENT)
    with keeping.context, keeping.open(f"{nginx.http}/files/masked.tif") as file:
        for x, requests in ((0, 2), (0, 0), (100, 1), (100, 0)):
            window = file.read(window=(x, 0, 500, 200), context=keeping.context)
            np.testing.assert_array_equal(window, cog["masked"].pixels[:, :200, x:x + 500])
            assert len(nginx.requests()) == requests


def test_a_long_file_comes_by_several_requests_at_once(nginx, cog):
    reader = Reader(**PATIENT, max_request_bytes=256 << 10)
    # At 4 MB/s no request is answered before the next one begins.
    with reader.context, reader.open(f"{nginx.http}/slow/masked.tif?rate=4m") as file:
        nginx.requests()
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels)
    asked = nginx.requests()
    assert all(request.bytes <= 256 << 10 for request in asked)
    assert 1 < len({request.connection for request in asked}) <= 16


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_that_share_a_strip_ask_once(threads, nginx):
    """30 MB of pixels in one strip; each byte of the file is asked for once, whichever thread decodes it."""
    rows = np.random.default_rng(1).integers(0, 40, (1, 3000, 5000), "u2").cumsum(2, dtype="u2")
    path = nginx.files / "strip.tif"
    try:
        write(path, rows, driver="GTiff", compress="deflate", predictor=2, blockysize=3000)
        reader = Reader(threads=threads, **PATIENT)
        with reader.context, reader.open(f"{nginx.http}/files/strip.tif") as file:
            nginx.requests()
            np.testing.assert_array_equal(file.read(context=reader.context), rows)
        assert sum(request.bytes for request in nginx.requests()) <= path.stat().st_size
    finally:
        path.unlink()


@pytest.mark.parametrize("where", ["relative", "rooted", "http", "host", "301", "302", "303", "307", "308"])
def test_redirects(where, reader, nginx, cog):
    with reader.open(f"{nginx.http}/moved/{where}/bigtiff.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)


def read_moved(reader, server, cog):
    with reader.open(f"{server.http}/moved/rooted/bigtiff.tif") as file:
        window = file.read(window=(0, 0, 64, 64))
    np.testing.assert_array_equal(window, cog["bigtiff"].pixels[:, :64, :64])
    return [request.path.split("/")[1] for request in server.requests()]


def test_a_redirect_is_followed_once(reader, nginx, cog):
    assert read_moved(reader, nginx, cog) == ["moved", "files", "files"]


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_redirect_that_is_good_no_more_is_asked_for_anew(code, reader, faults, cog):
    faults.plan(at={3: {"kind": "status", "code": code}})
    assert read_moved(reader, faults, cog) == ["moved", "files", "files", "moved", "files"]


@pytest.mark.parametrize("code", [403, 404])
def test_a_redirect_is_asked_for_anew_once(code, hasty, faults, cog):
    faults.plan(at={number: {"kind": "status", "code": code} for number in (3, 5)})
    with pytest.raises(cogpu.CogpuError):
        read_moved(hasty, faults, cog)
    assert len(faults.requests()) == 5


@pytest.mark.parametrize("path, status, words", [
    ("/moved/circle/bigtiff.tif", "io_error", "redirects"), ("/status/404", "not_found", "no such file"),
    ("/status/403", "io_error", "403"), ("/files/none.tif", "not_found", "no such file"),
    ("/page/bigtiff.tif", "not_tiff", "page"), ("/locked/bigtiff.tif", "io_error", "401")])
def test_what_servers_refuse(path, status, words, hasty, nginx):
    with pytest.raises(cogpu.CogpuError, match=words) as caught:
        hasty.open(nginx.http + path)
    assert caught.value.name == status


def test_addresses_that_are_not_public(nginx):
    reader = Reader(max_retries=1)
    with reader.context, pytest.raises(cogpu.CogpuError, match="not public"):
        reader.open(f"{nginx.http}/files/bigtiff.tif")
    assert nginx.requests() == []


def test_a_server_without_ranges(reader, nginx, cog):
    with reader.open(f"{nginx.http}/whole/bigtiff.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)
    little = Reader(**PATIENT, max_full_download_bytes=1000)
    with little.context, pytest.raises(cogpu.CogpuError, match="max_full_download_bytes"):
        little.open(f"{nginx.http}/whole/bigtiff.tif")


def test_a_server_without_ranges_that_does_not_say_how_long(hasty, faults):
    faults.plan(every={"kind": "header", "name": "Content-Length"})
    with pytest.raises(cogpu.CogpuError, match="ignores range requests") as caught:
        hasty.open(f"{faults.http}/whole/masked.tif")
    assert caught.value.name == "unsupported" and len(faults.requests()) == 1


def test_a_server_that_compresses_for_those_who_like_it(reader, nginx, cog):
    with reader.open(f"{nginx.http}/packed/bigtiff.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)


@pytest.mark.parametrize("server", ["expired", "misnamed", "untrusted"])
def test_certificates_are_checked(server, nginx):
    reader = Reader(**HASTY, ca_file=str(nginx.ca).encode())
    with reader.context, pytest.raises(cogpu.CogpuError) as caught:
        reader.open(f"{getattr(nginx, server)}/files/bigtiff.tif")
    assert caught.value.name == "io_error" and nginx.requests() == []


def test_certificates_of_the_environment(nginx, cog, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(nginx.ca))
    reader = Reader(**HASTY)
    with reader.context, reader.open(f"{nginx.https}/files/bigtiff.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "CURL_CA_BUNDLE"])
def test_a_missing_file_of_certificates_is_named(variable, nginx, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv(variable, "/nowhere/ca.pem")
    reader = Reader(**HASTY)
    with reader.context, pytest.raises(cogpu.CogpuError) as caught:
        reader.open(f"{nginx.https}/files/bigtiff.tif")
    assert f"/nowhere/ca.pem ({variable})" in str(caught.value) and nginx.requests() == []


def test_an_option_comes_before_the_environment(nginx, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    reader = Reader(**HASTY, ca_file=str(nginx.ca).encode())
    with reader.context, reader.open(f"{nginx.https}/files/bigtiff.tif") as file:
        assert file.read().size


def in_a_fork(function):
    """What the function says in the child of a fork, which ends by itself where it hangs."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os.write(there, function().encode())
        finally:
            os._exit(0)
    os.close(there)
    with open(here, "rb") as said:
        text = said.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_the_child_of_a_fork(reader, nginx, cog):
    """It has no connections: whatever was opened before says so, what is opened anew works, and the parent goes on."""
    url = f"{nginx.http}/files/long_header.tif"
    file = reader.open(url)

    def child():
        words = []
        for call in (file.read, lambda: reader.open(url)):
            with pytest.raises(cogpu.CogpuError) as caught:
                call()
            words.append(f"{caught.value.name} {'open' in caught.value.message}")
        file.close()
        other = Reader(**PATIENT)
        with other.context, other.open(url) as again:
            words.append(str((again.read() == cog["long_header"].pixels).all()))
        return ", ".join(words)
    assert in_a_fork(child) == "io_error True, io_error True, True"
    np.testing.assert_array_equal(file.read(), cog["long_header"].pixels)
    file.close()


FAULTS = [{"kind": "cut"}, {"kind": "reset"}, {"kind": "lost"}, {"kind": "drop"}, {"kind": "body", "add": -10},
          {"kind": "status", "code": 503}, {"kind": "status", "code": 429, "after": 0},
          {"kind": "status", "code": 500}, {"kind": "delay", "seconds": 0.05}]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(map(str, fault.values())))
@pytest.mark.parametrize("number", [1, 2])
def test_what_is_worth_another_try(fault, number, reader, faults, cog):
    faults.plan(at={number: fault})
    with reader.open(f"{faults.http}/files/masked.tif") as file:
        np.testing.assert_array_equal(file.read(window=(0, 0, 900, 900)), cog["masked"].pixels[:, :900, :900])
    assert sum(faults.done().values()) == 1


def test_goes_on_where_it_stopped(reader, faults, cog):
    """But for the first request, before whose response the version is unknown."""
    faults.plan(at={1: {"kind": "cut", "after": 5000}, 3: {"kind": "reset", "after": 1000}})
    with reader.open(f"{faults.http}/files/masked.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels)
    first, again, cut, rest = [tuple(map(int, request.range.removeprefix("bytes=").split("-")))
                               for request in faults.requests()]
    assert first == again == (0, 16383)
    assert rest == (cut[0] + 1000, cut[1])


def test_a_server_that_falls_silent(faults, cog):
    impatient = Reader(**PATIENT | {"low_speed_seconds": 1})
    faults.plan(at={2: {"kind": "stall", "after": 1000}})
    with impatient.context, impatient.open(f"{faults.http}/files/masked.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels)
    assert faults.done() == {"stall": 1}


def test_the_tries_come_to_an_end(faults):
    reader = Reader(**PATIENT | {"max_retries": 2})
    faults.plan(every={"kind": "status", "code": 503, "after": 0})
    with reader.context, pytest.raises(cogpu.CogpuError, match="503"):
        reader.open(f"{faults.http}/files/masked.tif")
    assert len(faults.requests()) == 3


WRONG = [({"kind": "shift", "by": 5}, "io_error"), ({"kind": "header", "name": "ETag", "value": '"other"'}, "io_error"),
         ({"kind": "header", "name": "Content-Encoding", "value": "gzip"}, "unsupported"),
         ({"kind": "second", "name": "Content-Range", "value": "bytes 0-1/2"}, "io_error"),
         ({"kind": "length", "add": 100}, "io_error"), ({"kind": "status", "code": 404}, "not_found")]


@pytest.mark.parametrize("fault, status", WRONG, ids=lambda fault: str(fault)[:40])
def test_what_is_wrong_is_an_error(fault, status, hasty, faults):
    faults.plan(at={number: fault for number in range(2, 20)})  # blocks of a run that fails are tried one by one
    with hasty.open(f"{faults.http}/files/masked.tif") as file:
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=(0, 0, 300, 300))
    assert caught.value.name == status


@pytest.mark.parametrize("fault, status", [
    ({"kind": "shift", "by": 5}, "io_error"), ({"kind": "header", "name": "Content-Range"}, "io_error"),
    ({"kind": "header", "name": "Content-Encoding", "value": "gzip"}, "unsupported"),
    ({"kind": "header", "name": "Content-Range", "value": "bytes 0-16383/*"}, "unsupported"),
    ({"kind": "body", "add": -5000}, "io_error"), ({"kind": "length", "add": -5000}, "io_error")],
    ids=lambda fault: str(fault)[:60])
def test_what_is_wrong_from_the_beginning(fault, status, hasty, faults):
    faults.plan(every=fault)
    with pytest.raises(cogpu.CogpuError) as caught:
        hasty.open(f"{faults.http}/files/masked.tif")
    assert caught.value.name == status and f"{faults.http}/files/masked.tif" in caught.value.message


def test_a_thousand_windows_on_a_bad_network(reader, faults, cog):
    picked, pixels = random.Random(3), cog["masked"].pixels
    faults.plan(among=[fault for fault in FAULTS if fault["kind"] != "delay"], share=0.05, seed=7)
    with reader.open(f"{faults.http}/files/masked.tif") as file:
        for _ in range(1000):
            x, y = picked.randrange(1900), picked.randrange(1900)
            window = file.read(window=(x, y, 100, 100))
            np.testing.assert_array_equal(window, pixels[:, y:y + 100, x:x + 100])
    assert sum(faults.done().values()) >= 30
