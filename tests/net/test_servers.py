"""The servers of conftest.py do what tests of remote reads take for granted. Clients are Python's, AWS's, and curl."""

import base64
import contextlib
import gzip
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse

import numpy as np
import process
import pytest
import rasterio


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()


@contextlib.contextmanager
def connected(url, trust=None):
    parts = urllib.parse.urlsplit(url)
    words = {"timeout": 20}
    if parts.scheme == "https":
        words["context"] = ssl.create_default_context(cafile=trust)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, **words)
    yield connection
    connection.close()


def fetch(url, method="GET", trust=None, body=None, **headers):
    """An answer as it is, redirect or error. if_match="x" is the header If-Match."""
    parts = urllib.parse.urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    with connected(url, trust) as connection:
        connection.request(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()})
        return Answer(connection.getresponse())


def curl(*words):
    """What curl says; the body goes nowhere."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed (make setup)")
    done = subprocess.run(["curl", "-sS", "-o", os.devnull, "-w", "%{http_code} %{num_connects}\n", *map(str, words)],
                          capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def content(cog):
    """Of jpeg.tif, the smallest."""
    return cog["jpeg"].path.read_bytes()


# ---- processes -----------------------------------------------------------------------------------

def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_servers_end_with_a_crash():
    program = "import os, process; print(process.start(['sleep', '1000']).pid, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.path.dirname(process.__file__)})
    end = time.monotonic() + 20
    while is_running(int(done.stdout)):
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- nginx ---------------------------------------------------------------------------------------

def test_range(nginx, content):
    answer = fetch(f"{nginx.http}/files/jpeg.tif", range="bytes=10-29", user_agent="tester")
    assert (answer.status, answer.body) == (206, content[10:30])
    assert answer.headers["Content-Range"] == f"bytes 10-29/{len(content)}"
    assert answer.headers["Content-Type"] == "image/tiff"
    asked, = nginx.requests()
    assert (asked.method, asked.path, asked.range, asked.status) == ("GET", "/files/jpeg.tif", "bytes=10-29", 206)
    assert (asked.bytes, asked.protocol, asked.agent, asked.scheme) == (20, "HTTP/1.1", "tester", "http")
    assert nginx.requests() == []


def test_range_beyond_the_end(nginx, content):
    answer = fetch(f"{nginx.http}/files/jpeg.tif", range=f"bytes={len(content)}-")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{len(content)}")


def test_connections_are_kept(nginx):
    with connected(nginx.http) as connection:
        for _ in range(3):
            connection.request("GET", "/files/jpeg.tif", headers={"Range": "bytes=0-9"})
            connection.getresponse().read()
    fetch(f"{nginx.http}/files/jpeg.tif")
    one, two, three, other = [asked.connection for asked in nginx.requests()]
    assert one == two == three != other


def test_if_match(nginx):
    url = f"{nginx.http}/files/jpeg.tif"
    etag = fetch(url, "HEAD").headers["ETag"]
    assert fetch(url, if_match=etag, range="bytes=0-9").status == 206
    assert fetch(url, if_match='"other"', range="bytes=0-9").status == 412
    assert [asked.if_match for asked in nginx.requests()] == ["", etag, '"other"']


def test_file_that_changes(nginx):
    path = nginx.files / "changing.bin"
    path.write_bytes(b"first")
    etag = fetch(f"{nginx.http}/files/changing.bin").headers["ETag"]
    path.write_bytes(b"and then")
    assert fetch(f"{nginx.http}/files/changing.bin", if_match=etag).status == 412
    path.unlink()


def test_range_ignored(nginx, content):
    answer = fetch(f"{nginx.http}/whole/jpeg.tif", range="bytes=10-29")
    assert (answer.status, answer.body, answer.headers["Accept-Ranges"]) == (200, content, None)


def test_gzip(nginx, content):
    answer = fetch(f"{nginx.http}/packed/jpeg.tif", accept_encoding="gzip", range="bytes=10-29")
    assert (answer.status, answer.headers["Content-Encoding"]) == (200, "gzip")
    assert gzip.decompress(answer.body) == content
    assert fetch(f"{nginx.http}/packed/jpeg.tif", range="bytes=10-29").body == content[10:30]
    assert fetch(f"{nginx.http}/files/jpeg.tif", accept_encoding="gzip").body == content


def test_slow(nginx):
    """At 1 KiB a second the end is far: what is there after a moment is not all."""
    with connected(nginx.http) as connection:
        connection.request("GET", "/slow/jpeg.tif?rate=1024", headers={"Range": "bytes=0-16383"})
        answer = connection.getresponse()
        assert answer.read(100)
        connection.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            answer.read()


@pytest.mark.parametrize("code", [400, 401, 403, 404, 408, 410, 412, 416, 429, 500, 502, 503, 504])
def test_status(nginx, code):
    answer = fetch(f"{nginx.http}/status/{code}")
    assert (answer.status, answer.headers["Retry-After"]) == (code, None)
    assert fetch(f"{nginx.http}/status/{code}?after=7").headers["Retry-After"] == "7"
    assert [asked.status for asked in nginx.requests()] == [code, code]


def test_missing(nginx):
    assert fetch(f"{nginx.http}/files/no.tif").status == 404


def test_page(nginx):
    answer = fetch(f"{nginx.http}/page/jpeg.tif", range="bytes=0-99")
    assert (answer.status, answer.headers["Content-Type"], answer.body[:6]) == (200, "text/html", b"<html>")


def test_locked(nginx, content):
    from nginx import USER
    word = "Basic " + base64.b64encode(":".join(USER).encode()).decode()
    assert fetch(f"{nginx.http}/locked/jpeg.tif").status == 401
    assert fetch(f"{nginx.http}/locked/jpeg.tif", authorization=word).body == content
    assert [asked.authorization for asked in nginx.requests()] == ["", word]


@pytest.mark.parametrize("where, location", [
    ("relative", "../../files/jpeg.tif"), ("rooted", "/files/jpeg.tif"),
    ("http", "http://127.0.0.1:{http}/files/jpeg.tif"), ("https", "https://localhost:{https}/files/jpeg.tif"),
    ("host", "http://localhost:{http}/files/jpeg.tif"), ("locked", "http://localhost:{http}/locked/jpeg.tif"),
    ("circle", "/moved/circle-back/jpeg.tif"), ("circle-back", "/moved/circle/jpeg.tif"),
    ("metadata", "http://169.254.169.254/latest/meta-data/"), ("private", "http://10.0.0.1/jpeg.tif"),
    ("disk", "file:///etc/hostname"), ("chain1", "/files/jpeg.tif"), ("chain20", "/moved/chain19/jpeg.tif"),
])
def test_redirect(nginx, where, location):
    answer = fetch(f"{nginx.http}/moved/{where}/jpeg.tif")
    assert (answer.status, answer.headers["Location"]) == (302, location.format(**nginx.ports))


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirect_codes(nginx, code):
    answer = fetch(f"{nginx.https}/moved/{code}/jpeg.tif", trust=nginx.ca)
    assert (answer.status, answer.headers["Location"]) == (code, "/files/jpeg.tif")


@pytest.mark.parametrize("where", ["relative", "rooted", "http", "https", "host", "chain5"])
def test_redirect_leads_to_the_file(nginx, where):
    assert curl("-L", "--cacert", nginx.ca, f"{nginx.http}/moved/{where}/jpeg.tif").startswith("200 ")
    *moved, last = [asked.status for asked in nginx.requests()]
    assert set(moved) == {302} and len(moved) == (5 if where == "chain5" else 1) and last == 200


def test_http2(nginx):
    url = f"{nginx.https}/files/jpeg.tif"
    said = curl("--http2", "--cacert", nginx.ca, "-r", "0-9", url, "-o", os.devnull, url)
    assert said.split() == ["206", "1", "206", "0"]
    first, second = nginx.requests()
    assert first.protocol == second.protocol == "HTTP/2.0" and first.connection == second.connection
    assert first.scheme == "https"


def test_tls_of_http1(nginx, content):
    assert fetch(f"{nginx.https}/files/jpeg.tif", trust=nginx.ca).body == content
    assert nginx.requests()[0].protocol == "HTTP/1.1"


@pytest.mark.parametrize("name, why", [("expired", "expired"), ("misnamed", "not valid for 'localhost'"),
                                       ("untrusted", "unable to get local issuer")])
def test_tls_refused(nginx, name, why):
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        fetch(f"{getattr(nginx, name)}/files/jpeg.tif", trust=nginx.ca)
    assert nginx.requests() == []


# ---- the proxy -----------------------------------------------------------------------------------

def part(faults, first=0, last=9999, name="jpeg.tif"):
    return fetch(f"{faults.http}/files/{name}", range=f"bytes={first}-{last}")


def raw_part(faults, count=1):
    """All that comes on one connection for so many requests, and how it ended: closed, reset, or open."""
    request = b"GET /files/jpeg.tif HTTP/1.1\r\nHost: here\r\nRange: bytes=0-9999\r\n\r\n"
    taken = b""
    with socket.create_connection(("127.0.0.1", faults.port), timeout=1) as connection:
        connection.sendall(request * count)
        try:
            while data := connection.recv(1 << 16):
                taken += data
        except ConnectionResetError:
            return taken, "reset"
        except TimeoutError:
            return taken, "open"
    return taken, "closed"


def raw_body(faults):
    taken, end = raw_part(faults)
    return taken.partition(b"\r\n\r\n")[2], end


def test_nothing_spoilt(faults, nginx, content):
    with connected(faults.http) as connection:
        for number in range(5):
            connection.request("GET", "/files/jpeg.tif", headers={"Range": f"bytes={number}-999"})
            assert connection.getresponse().read() == content[number:1000]
    assert fetch(f"{faults.http}/files/jpeg.tif", "HEAD").headers["Content-Length"] == str(len(content))
    assert fetch(f"{faults.http}/packed/jpeg.tif", accept_encoding="gzip").headers["Transfer-Encoding"] == "chunked"
    asked = faults.requests()
    assert [request.number for request in asked] == [1, 2, 3, 4, 5, 6, 7] and faults.done() == {}
    assert len({request.connection for request in asked[:5]}) == 1
    assert asked[2].range == "bytes=2-999" == nginx.requests()[2].range


def test_by_number(faults, content):
    faults.plan(at={2: {"kind": "status", "code": 503, "after": 3}, 4: {"kind": "status", "code": 429}})
    answers = [part(faults) for _ in range(4)]
    assert [answer.status for answer in answers] == [206, 503, 206, 429]
    assert [answer.headers["Retry-After"] for answer in answers] == [None, "3", None, None]
    assert answers[2].body == content[:10000] and faults.done() == {"status": 2}
    faults.plan()
    assert part(faults).status == 206 and faults.done() == {}


def test_connection_after_a_status(faults, content):
    """An error does not cost the connection, nor does the server hear of the request."""
    faults.plan(at={1: {"kind": "status", "code": 500}})
    taken, end = raw_part(faults, 2)
    assert taken.startswith(b"HTTP/1.1 500 ") and taken.endswith(content[:10000]) and end == "open"


def test_only(faults):
    faults.plan(every={"kind": "status", "code": 500}, only="^HEAD ")
    assert (part(faults).status, fetch(faults.http + "/files/jpeg.tif", "HEAD").status) == (206, 500)
    assert [request.method for request in faults.requests()] == ["HEAD"]


@pytest.mark.parametrize("kind, end", [("cut", "closed"), ("reset", "reset"), ("stall", "open")])
@pytest.mark.parametrize("after", [0, 1, 9999])
def test_end_in_the_middle(faults, content, kind, end, after):
    faults.plan(at={1: {"kind": kind, "after": after}})
    assert raw_body(faults) == (content[:after], end)
    assert faults.done() == {kind: 1}
    assert part(faults).body == content[:10000]


def test_end_after_the_end(faults, content):
    """A fault that changes nothing is not counted."""
    faults.plan(every={"kind": "cut", "after": 10000})
    assert part(faults).body == content[:10000] and faults.done() == {}


@pytest.mark.parametrize("kind, reaches", [("drop", 0), ("lost", 1)])
def test_no_answer(faults, nginx, kind, reaches):
    faults.plan(every={"kind": kind})
    assert raw_part(faults) == (b"", "reset")
    assert len(nginx.requests()) == reaches and faults.done() == {kind: 1}


def test_refused(faults):
    with connected(faults.http) as kept:
        kept.request("GET", "/files/jpeg.tif", headers={"Range": "bytes=0-9"})
        kept.getresponse().read()
        faults.shut()
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                part(faults)
        with pytest.raises(ConnectionResetError):
            kept.sock.recv(1)
    faults.open()
    assert part(faults).status == 206


def test_refused_for_a_while(faults):
    faults.plan(at={1: {"kind": "refuse", "seconds": 1000}})
    with pytest.raises(ConnectionResetError):
        part(faults)
    time.sleep(0.1)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            part(faults)
    assert faults.done() == {"refuse": 1}
    faults.plan(at={1: {"kind": "refuse", "seconds": 0.01}})
    with pytest.raises(ConnectionResetError):
        part(faults)
    end = time.monotonic() + 20
    while time.monotonic() < end and not faults.requests()[1:]:
        with contextlib.suppress(ConnectionRefusedError):
            assert part(faults).status == 206
    assert len(faults.requests()) == 2


def test_trickle(faults, content):
    faults.plan(every={"kind": "trickle", "seconds": 0})
    assert part(faults, 0, 999).body == content[:1000] and faults.done() == {"trickle": 1}
    faults.plan(every={"kind": "trickle", "seconds": 1000})
    assert raw_body(faults) == (content[:1], "open")


def test_delay(faults):
    """A delay that is longer than anyone waits for."""
    faults.plan(every={"kind": "delay", "seconds": 1000})
    assert raw_part(faults) == (b"", "open")
    faults.plan(every={"kind": "delay", "seconds": 0.001})
    assert part(faults).status == 206 and faults.done() == {"delay": 1}


def test_delay_of_one_who_left(faults, nginx):
    """The server does not hear of it: the next test would wonder."""
    faults.plan(every={"kind": "delay", "seconds": 0.1})
    with socket.create_connection(("127.0.0.1", faults.port)) as connection:
        connection.sendall(b"GET /files/left HTTP/1.1\r\n\r\n")
        while not faults.requests():
            pass
    assert part(faults).status == 206
    assert [asked.path for asked in nginx.requests()] == ["/files/jpeg.tif"]


def test_content_range(faults, content):
    faults.plan(at={1: {"kind": "shift", "by": 5},
                    2: {"kind": "header", "name": "Content-Range", "value": "bytes 0-9/*"},
                    3: {"kind": "header", "name": "content-range"}})
    said = [part(faults).headers.get_all("Content-Range") for _ in range(3)]
    assert said == [[f"bytes 5-10004/{len(content)}"], ["bytes 0-9/*"], None]
    assert faults.done() == {"shift": 1, "header": 2}


def test_length_that_is_wrong(faults, content):
    faults.plan(every={"kind": "length", "add": 7})
    taken, end = raw_part(faults)
    assert b"Content-Length: 10007\r\n" in taken and taken.endswith(content[:10000]) and end == "closed"
    faults.plan(every={"kind": "length", "add": -7})
    assert part(faults).body == content[:9993] and raw_body(faults) == (content[:10000], "open")


def test_body_that_is_wrong(faults, content):
    faults.plan(every={"kind": "body", "add": -7})
    taken, end = raw_part(faults)
    assert b"Content-Length: 10000\r\n" in taken and taken.endswith(content[:9993]) and end == "closed"
    faults.plan(every={"kind": "body", "add": 7})
    assert raw_body(faults) == (content[:10000] + b"+++++++", "open") and faults.done() == {"body": 1}


def test_length_that_is_absent(faults, content):
    faults.plan(every={"kind": "header", "name": "Content-Length"})
    assert raw_body(faults) == (content[:10000], "closed") and part(faults).body == content[:10000]


def test_etag_and_encoding(faults):
    faults.plan(at={2: {"kind": "header", "name": "ETag", "value": '"new"'},
                    3: {"kind": "header", "name": "Content-Encoding", "value": "gzip"}})
    one, two, three, four = [part(faults) for _ in range(4)]
    assert one.headers["ETag"] == four.headers["ETag"] != two.headers["ETag"] == '"new"'
    assert (three.headers["Content-Encoding"], four.headers["Content-Encoding"], three.body) == ("gzip", None, one.body)


def test_headers_twice(faults):
    faults.plan(at={1: {"kind": "second", "name": "ETag"},
                    2: {"kind": "second", "name": "Content-Range", "value": "bytes 1-2/3"}})
    one, two = part(faults), part(faults)
    assert len(one.headers.get_all("ETag")) == 2 and len(set(one.headers.get_all("ETag"))) == 1
    assert two.headers.get_all("Content-Range")[1] == "bytes 1-2/3" != two.headers.get_all("Content-Range")[0]


def test_every_and_at(faults):
    faults.plan(every={"kind": "delay", "seconds": 0.001}, at={2: {"kind": "status", "code": 500}})
    assert [part(faults).status for _ in range(3)] == [206, 500, 206]
    assert faults.done() == {"delay": 3, "status": 1}


def length_of_part(faults):
    """How a request went: bytes of its body, or its status below zero."""
    try:
        answer = part(faults)
        return len(answer.body) if answer.status == 206 else -answer.status
    except http.client.IncompleteRead as error:
        return len(error.partial)


def lengths(faults, seed):
    faults.plan(among=[{"kind": "cut"}, {"kind": "status", "code": 503}], share=0.3, seed=seed)
    return [length_of_part(faults) for _ in range(60)]


def test_chance(faults):
    first, done = lengths(faults, 1), faults.done()
    spoilt = [length for length in first if length != 10000]
    assert done["cut"] + done["status"] == len(spoilt) and spoilt.count(-503) == done["status"]
    assert len(set(spoilt)) > 3 and 6 <= len(spoilt) <= 30
    assert lengths(faults, 1) == first != lengths(faults, 2)


# ---- S3 ------------------------------------------------------------------------------------------

def refusal(action, *words, **more):
    from botocore.exceptions import ClientError
    with pytest.raises(ClientError) as error:
        action(*words, **more)
    return error.value.response["Error"]["Code"]


def get(client, bucket, key="jpeg.tif", **more):
    return client.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def test_s3_range(s3, content):
    answer = s3.client.get_object(Bucket=s3.closed, Key="jpeg.tif", Range="bytes=10-29")
    assert (answer["Body"].read(), answer["ContentRange"]) == (content[10:30], f"bytes 10-29/{len(content)}")
    asked, = s3.requests()
    assert (asked.method, asked.path, asked.range) == ("GET", f"/{s3.closed}/jpeg.tif", "bytes=10-29")
    assert (asked.status, asked.signed_by, asked.refused) == (206, "header", "")


def test_s3_if_match(s3):
    etag = s3.client.head_object(Bucket=s3.closed, Key="jpeg.tif")["ETag"]
    assert get(s3.client, s3.closed, IfMatch=etag, Range="bytes=0-3")
    assert refusal(get, s3.client, s3.closed, IfMatch='"other"') == "PreconditionFailed"


@pytest.mark.parametrize("words, code", [
    ({"secret": "wrong"}, "SignatureDoesNotMatch"), ({"key": "NOBODY", "secret": "x"}, "InvalidAccessKeyId"),
    ({"region": "us-west-2"}, "AuthorizationHeaderMalformed"), ({"token": "unasked"}, "InvalidToken"),
    ({"key": "TESTTEMPORARY", "token": "another"}, "InvalidToken"),
])
@pytest.mark.parametrize("bucket", ["closed", "open"])
def test_s3_refuses(s3, bucket, words, code):
    """A wrong signature is refused also where none is needed."""
    assert refusal(get, s3.client_of(**words), getattr(s3, bucket)) == code
    assert [asked.refused for asked in s3.requests()] == [code]


def test_s3_session(s3, content):
    assert get(s3.client_of("TESTTEMPORARY"), s3.closed) == content


@pytest.mark.parametrize("key", ["a b/c+d.tif", "ü/100%.tif", "q?x=1&y.tif", "~-_.tif"])
def test_s3_odd_keys(s3, key):
    s3.put(s3.closed, key, b"odd")
    assert s3.get(s3.closed, key) == b"odd" and key in s3.keys(s3.closed)
    assert fetch(s3.presigned(s3.closed, key)).body == b"odd"


def test_s3_presigned(s3, content):
    url = s3.presigned(s3.closed, "jpeg.tif")
    answer = fetch(url, range="bytes=10-29")
    assert (answer.status, answer.body) == (206, content[10:30])
    for spoilt in (url.replace("jpeg", "masked"), url.replace("X-Amz-Expires=600", "X-Amz-Expires=601"), url + "&x=1"):
        answer = fetch(spoilt)
        assert answer.status == 403 and b"<Code>SignatureDoesNotMatch</Code>" in answer.body
    assert b"RequestTimeTooSkewed" in fetch(s3.presigned(s3.closed, "jpeg.tif", seconds=0)).body
    assert fetch(url, "PUT", body=b"x").status == 403
    assert fetch(url, x_amz_meta_more="unsigned").status == 403
    assert fetch(url.replace("jpeg", "%6Apeg")).body == content
    assert {asked.signed_by for asked in s3.requests()} == {"query"}


def test_s3_without_signature(s3, content):
    assert fetch(f"{s3.endpoint}/{s3.open}/jpeg.tif").body == content
    assert fetch(f"{s3.endpoint}/{s3.closed}/jpeg.tif").status == 403
    assert fetch(f"{s3.endpoint}/{s3.closed}?uploads").status == 403
    assert fetch(f"{s3.endpoint}/{s3.open}/jpeg.tif", "PUT", body=b"x").status == 403
    assert fetch(f"{s3.endpoint}/{s3.open}/jpeg.tif", "DELETE").status == 403
    assert s3.get(s3.open, "jpeg.tif") == content


def test_s3_bucket_in_the_host(s3):
    """curl alone knows the address of all names that end in localhost."""
    for bucket, status in ((s3.open, 200), (s3.closed, 403)):
        assert fetch(f"{s3.endpoint}/jpeg.tif", host=f"{bucket}.localhost:{s3.port}").status == status
    words = ["--aws-sigv4", f"aws:amz:{s3.region}:s3", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
             "--user", f"TESTKEY:{s3.environment()['AWS_SECRET_ACCESS_KEY']}"]
    assert curl(*words, f"http://{s3.closed}.localhost:{s3.port}/jpeg.tif").startswith("200 ")


def test_s3_signature_covers_the_body(s3):
    """What is signed for one body does not let another in."""
    signed = {}
    s3.client.meta.events.register_last("before-send.s3", lambda request, **_: signed.update(request.headers))
    s3.put(s3.closed, "body", b"right")
    s3.client.meta.events.unregister("before-send.s3")
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in signed.items()}
    for body, status in ((b"right", 200), (b"wrong", 400)):
        with connected(s3.endpoint) as connection:
            connection.request("PUT", f"/{s3.closed}/body", body, headers)
            assert connection.getresponse().status == status
    assert s3.get(s3.closed, "body") == b"right"


def test_s3_wants_a_hash_of_the_body(s3):
    import signature
    with pytest.raises(signature.Refused, match="InvalidRequest"):
        signature.check_cover(signature.Request("GET", "/", {"host": "x"}, b""), ["host"], "")


def test_s3_signed_by_curl(s3):
    """libcurl signs too, and by other code than AWS's; S3 wants a header that it does not always send by itself."""
    url, secret = f"{s3.endpoint}/{s3.closed}/jpeg.tif", s3.environment()["AWS_SECRET_ACCESS_KEY"]
    words = ["--aws-sigv4", f"aws:amz:{s3.region}:s3", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", url]
    assert curl("--user", f"TESTKEY:{secret}", *words).startswith("200 ")
    assert curl("--user", "TESTKEY:wrong", *words).startswith("403 ")


def begin(s3, client, key, parts):
    upload = client.create_multipart_upload(Bucket=s3.closed, Key=key)["UploadId"]
    sent = [{"PartNumber": number, "ETag": client.upload_part(
        Bucket=s3.closed, Key=key, UploadId=upload, PartNumber=number, Body=body)["ETag"]} for number, body in parts]
    return upload, sent


def test_s3_multipart(s3):
    """Parts go up in any order, are seen until the end, and are joined by their numbers."""
    large, small = os.urandom(5 << 20), b"the end"
    assert s3.uploads(s3.closed) == {}
    upload, sent = begin(s3, s3.client, "joined", [(7, small), (2, large)])
    assert s3.uploads(s3.closed) == {"joined": [2, 7]} and "joined" not in s3.keys(s3.closed)
    s3.client.complete_multipart_upload(Bucket=s3.closed, Key="joined", UploadId=upload,
                                        MultipartUpload={"Parts": sent[::-1]})
    assert s3.uploads(s3.closed) == {} and s3.get(s3.closed, "joined") == large + small


def test_s3_multipart_refuses(s3):
    """A part that is too small and not the last; an order that is wrong; an upload that is unknown."""
    upload, sent = begin(s3, s3.client, "refused", [(1, b"small"), (2, b"last")])
    words = {"Bucket": s3.closed, "Key": "refused", "UploadId": upload}
    complete = s3.client.complete_multipart_upload
    assert refusal(complete, **words, MultipartUpload={"Parts": sent}) == "EntityTooSmall"
    assert refusal(complete, **words, MultipartUpload={"Parts": sent[::-1]}) == "InvalidPartOrder"
    assert s3.uploads(s3.closed) == {"refused": [1, 2]}
    s3.client.abort_multipart_upload(**words)
    assert s3.uploads(s3.closed) == {} and "refused" not in s3.keys(s3.closed)
    assert refusal(complete, **words, MultipartUpload={"Parts": sent}) == "NoSuchUpload"


def test_s3_faults(s3, s3_faults):
    """Signatures hold through the proxy, and a part that fails is not there."""
    client = s3.client_of(endpoint=s3_faults.http)
    s3_faults.plan(at={2: {"kind": "status", "code": 503}}, only="partNumber=")
    assert refusal(begin, s3, client, "failed", [(1, b"one"), (2, b"two")]) == "503"
    assert s3.uploads(s3.closed) == {"failed": [1]}
    upload = s3.client.list_multipart_uploads(Bucket=s3.closed)["Uploads"][0]["UploadId"]
    client.abort_multipart_upload(Bucket=s3.closed, Key="failed", UploadId=upload)
    assert s3.uploads(s3.closed) == {} and s3_faults.done() == {"status": 1}


def test_s3_faults_when_asked_to_go_on(s3, s3_faults):
    """A client that sends its body after "100 Continue" gets one, and one alone."""
    client = s3.client_of(endpoint=s3_faults.http)
    url = client.generate_presigned_url("put_object", {"Bucket": s3.closed, "Key": "expected"}, 600)
    parts = urllib.parse.urlsplit(url)
    with socket.create_connection(("127.0.0.1", s3_faults.port), timeout=20) as connection:
        connection.sendall(f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: 4\r\n"
                           "Expect: 100-continue\r\n\r\n".encode())
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"body")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert s3.get(s3.closed, "expected") == b"body"


# ---- COGs ----------------------------------------------------------------------------------------

def test_cogs(cog, nginx, s3):
    assert set(cog) == {"masked", "jpeg", "planar", "bigtiff", "long_header"}
    for name, made in cog.items():
        content = made.path.read_bytes()
        assert content[:4] == (b"II\x2b\x00" if name == "bigtiff" else b"II\x2a\x00")
        assert made.overviews and made.overviews[0].shape[1:] == tuple(size // 2 for size in made.pixels.shape[1:])
        assert fetch(f"{nginx.http}/files/{made.name}").body == s3.get(s3.closed, made.name) == content


def test_cog_pixels(cog):
    import cogs
    assert np.array_equal(cog["masked"].valid, cogs.disc(2048)) and cog["planar"].valid is None
    inside = cog["masked"].valid == 255
    assert np.array_equal(cog["masked"].pixels[0][inside], cogs.terrain(1, 2048, "f4")[0][inside])
    assert np.array_equal(cog["planar"].pixels, cogs.terrain(3, 768, "i2"))
    assert np.array_equal(cog["bigtiff"].pixels, cogs.terrain(1, 768, "u2"))
    assert np.array_equal(cog["long_header"].pixels, cogs.terrain(1, 2048, "u1"))
    assert abs(cog["jpeg"].pixels.astype(int) - cogs.terrain(3, 1024, "u1")).mean() < 5


def first_block(path):
    """Where the first byte of pixels lies, by GDAL."""
    with rasterio.open(path) as file:
        places = [file.get_tag_item(f"BLOCK_OFFSET_{x}_{y}", "TIFF", bidx=1) for y in range(2) for x in range(2)]
        overviews = [file.get_tag_item("BLOCK_OFFSET_0_0", "TIFF", bidx=1, ovr=level)
                     for level in range(len(file.overviews(1)))]
    return min(int(place) for place in places + overviews if place)


def test_cog_layout(cog):
    """Whose header is in the first 16 KiB, and whose is not."""
    ahead = {name: first_block(made.path) for name, made in cog.items()}
    assert ahead.pop("long_header") > 24 << 10
    assert all(place < 16384 for place in ahead.values()), ahead
    with rasterio.open(cog["planar"].path) as file:
        assert file.interleaving == rasterio.enums.Interleaving.band
    with rasterio.open(cog["jpeg"].path) as file:
        assert file.compression == rasterio.enums.Compression.jpeg and file.count == 3
