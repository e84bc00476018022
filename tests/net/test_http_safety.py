"""Where URLs and servers must not lead: to addresses that are not public, to other schemes, with credentials to other
hosts."""

import base64

import numpy as np
import pytest
from nginx import USER
from test_http_read import HASTY, PATIENT, Reader, cogpu, reader  # noqa: F401

BASIC = "Basic " + base64.b64encode(":".join(USER).encode()).decode()
KEYS = {"s3_access_key": b"AKIDEXAMPLE", "s3_secret_key": b"open-sesame", "s3_region": b"eu-central-1"}


def by_endpoint(nginx, **network):
    """s3://BUCKET/KEY is nginx's /BUCKET/KEY."""
    return Reader(s3_endpoint=nginx.http.encode(), max_retries=1, **network)


def refused(reader, url):  # noqa: F811
    """The error of opening it."""
    with reader.context, pytest.raises(cogpu.CogpuError) as caught:
        reader.open(url)
    return caught.value


def test_an_endpoint_is_trusted(nginx, cog):
    trusting = by_endpoint(nginx, s3_anonymous=1)
    with trusting.context:
        for url in ("s3://files/bigtiff.tif", "s3://moved/http/bigtiff.tif"):  # which leads to itself
            with trusting.open(url) as file:
                np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)


@pytest.mark.parametrize("where, network, setting", [
    ("host", {}, "allow_private_addresses"), ("private", {}, "allow_private_addresses"), ("metadata", {}, "allow_link_local_addresses"),
    ("metadata", {"allow_private_addresses": 1}, "allow_link_local_addresses")])
def test_those_it_leads_to_are_not(where, network, setting, nginx):
    error = refused(by_endpoint(nginx, s3_anonymous=1, **network), f"s3://moved/{where}/bigtiff.tif")
    assert error.name == "invalid_argument" and "not public" in error.message and setting in error.message
    assert error.message.startswith(f"s3://moved/{where}/bigtiff.tif, redirected to http://")
    assert [request.path for request in nginx.requests()] == [f"/moved/{where}/bigtiff.tif"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0x7f.1", "0.0.0.0"])
def test_this_machine_by_other_names(host, nginx):
    error = refused(Reader(max_retries=1, connect_timeout_seconds=2), f"http://{host}:{nginx.ports['http']}/files/bigtiff.tif")
    assert "not public" in error.message
    assert nginx.requests() == []


def test_from_https_down_to_http(nginx):
    error = refused(Reader(**HASTY, ca_file=str(nginx.ca).encode()), f"{nginx.https}/moved/http/bigtiff.tif")
    assert error.name == "io_error"
    assert [request.scheme for request in nginx.requests()] == ["https"]


def test_to_the_disk(nginx):
    assert refused(Reader(**HASTY), f"{nginx.http}/moved/disk/bigtiff.tif").name == "io_error"


@pytest.mark.parametrize("length, is_followed", [(5, True), (6, False)])
def test_chains_of_redirects(length, is_followed, nginx, cog):
    url, hasty = f"{nginx.http}/moved/chain{length}/bigtiff.tif", Reader(**HASTY)
    if is_followed:
        with hasty.context, hasty.open(url) as file:
            assert file.read().shape == cog["bigtiff"].pixels.shape
    else:
        assert "redirects" in refused(hasty, url).message
        assert len(nginx.requests()) == 6


# ---- credentials ---------------------------------------------------------------------------------


def sent(nginx):
    return [request.authorization for request in nginx.requests()]


def test_names_and_passwords(reader, nginx, cog):  # noqa: F811
    url = nginx.http.replace("://", "://%s:%s@" % USER)
    with reader.open(f"{url}/locked/bigtiff.tif") as file:
        np.testing.assert_array_equal(file.read(), cog["bigtiff"].pixels)
    assert set(sent(nginx)) == {BASIC}
    with reader.open(f"{url}/moved/rooted/bigtiff.tif"):
        assert sent(nginx) == [BASIC, BASIC]  # the same host
    with pytest.raises(cogpu.CogpuError, match="401"):
        reader.open(f"{url}/moved/locked/bigtiff.tif")
    assert sent(nginx) == [BASIC, ""]


def test_signatures(nginx):
    signing = by_endpoint(nginx, allow_private_addresses=1, **KEYS)
    with signing.context, signing.open("s3://moved/host/bigtiff.tif"):
        first, second = nginx.requests()
    assert first.authorization.startswith("AWS4-HMAC-SHA256") and second.path == "/files/bigtiff.tif"
    assert second.authorization == "" and "open-sesame" not in str(first)


def test_no_program_names_more_than_it_has_to(reader, nginx):  # noqa: F811
    reader.open(f"{nginx.http}/files/bigtiff.tif").close()
    (request,) = nginx.requests()
    assert request.method == "GET" and request.agent.startswith("cogpu/") and request.accept_encoding == "identity"
