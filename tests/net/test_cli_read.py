"""The command line on URLs: the same answers as on paths, its options, and messages that keep secrets."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))
DEVICES = os.environ.get("COGPU_DEVICES", "cpu emu").split()
NEAR = "--private-addresses"
NAME = "someone:open-sesame@"
QUERY = "?X-Amz-Signature=0123abcd"
SECRETS = ["open-sesame", "someone", "Signature", "0123abcd"]

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")


def run(*words, **variables):
    """With no credentials but those given."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | {"HOME": "/nonexistent"}
    return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env={**plain, **variables})


def done(*words, **variables):
    result = run(*words, **variables)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def failed(*words, code=1, **variables):
    """The line on stderr of a command that must fail."""
    result = run(*words, **variables)
    lines = result.stderr.splitlines()
    assert result.returncode == code and len(lines) == 1, (result.returncode, lines)
    return lines[0]


def with_secrets(url):
    return url.replace("://", f"://{NAME}") + QUERY


# ---- the same as from paths ----------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["masked", "planar"])
def test_checksum(name, device, nginx, cog):
    url, words = f"{nginx.http}/files/{name}.tif", ["--device", device, "--window", "100,200,300,250"]
    assert done("checksum", url, NEAR, *words).split() == [done("checksum", cog[name].path, *words).split()[0], url]


def test_info(nginx, cog):
    url = f"{nginx.http}/files/masked.tif"
    told, expected = json.loads(done("info", url, NEAR, "--json")), json.loads(done("info", cog["masked"].path, "--json"))
    assert told.pop("file") == url and expected.pop("file") == str(cog["masked"].path)
    assert told == expected
    assert done("info", url, NEAR).splitlines()[1:] == done("info", cog["masked"].path).splitlines()[1:]


def test_a_window_into_npy(nginx, cog, tmp_path):
    done("read", f"{nginx.http}/files/masked.tif", NEAR, "-o", tmp_path / "a.npy", "--window", "300,200,150,100")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), cog["masked"].pixels[:, 200:300, 300:450])


def test_compare(nginx, cog):
    url, path = f"{nginx.http}/files/masked.tif", cog["masked"].path
    for pair in (url, path), (path, url):
        assert done("compare", *pair, NEAR).startswith("same pixels")
    other = run("compare", url, cog["bigtiff"].path, NEAR, "--json")
    told = json.loads(other.stdout)
    assert other.returncode == 1 and not told["same"] and told["a"]["file"] == url


def test_two_urls_share_connections(nginx, cog):
    url = f"{nginx.http}/files/bigtiff.tif"
    assert done("compare", url, url, NEAR, "--window", "0,0,10,10").startswith("same pixels")
    assert len({request.connection for request in nginx.requests()}) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_convert(device, nginx, cog, tmp_path):
    """A part: of the whole the emulator would take half a minute, with sanitizers."""
    import rasterio
    url, out = f"{nginx.http}/files/masked.tif", tmp_path / "out.tif"
    told = done("convert", url, out, NEAR, "--cog", "--json", "--device", device, "--window", "100,200,600,300")
    assert json.loads(told)["file"] == url
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(), cog["masked"].pixels[:, 200:500, 100:700])
        np.testing.assert_array_equal(file.dataset_mask(), cog["masked"].valid[200:500, 100:700])
    assert {request.path for request in nginx.requests()} == {"/files/masked.tif"}  # nothing beside it


def test_a_path_like_the_url_is_another_file(nginx, cog, tmp_path, monkeypatch):
    url, out, beside = f"{nginx.http}/files/bigtiff.tif", tmp_path / "out.tif", tmp_path / "out.tif.ovr"
    monkeypatch.chdir(tmp_path)
    out.write_bytes(b"old")
    beside.write_bytes(b"old overviews")
    pathlib.Path(url).parent.mkdir(parents=True)
    pathlib.Path(url).hardlink_to(out)
    assert "removed" in run("convert", url, out, NEAR).stderr
    assert not beside.exists() and done("compare", out, cog["bigtiff"].path).startswith("same pixels")


def test_check_preview_and_bench(nginx, cog, tmp_path):
    url = f"{nginx.http}/files/masked.tif"
    assert done("check", url, NEAR).startswith(f"{url}: a valid COG")
    told = json.loads(done("bench", url, NEAR, "--json", "--window", "0,0,64,64"))
    assert told["file"] == url and told["shape"][1:] == [64, 64]
    if json.loads(done("devices", "--json"))["libraries"]["libpng"]:
        told = json.loads(done("preview", url, tmp_path / "a.png", NEAR, "--size", "64", "--json"))
        assert told["file"] == url and (tmp_path / "a.png").exists()


# ---- s3 ------------------------------------------------------------------------------------------


def test_s3(s3, cog):
    words = ["--endpoint", s3.endpoint, "--region", s3.region, "--retries", "1"]
    expected, variables = done("checksum", cog["bigtiff"].path).split()[0], s3.environment()
    del variables["AWS_REGION"]
    url = f"s3://{s3.closed}/bigtiff.tif"
    assert done("checksum", url, *words, **variables).split() == [expected, url]
    assert done("checksum", f"s3://{s3.open}/bigtiff.tif", *words, "--anonymous").split()[0] == expected
    assert "403" in failed("checksum", url, *words, "--anonymous", **variables)


def test_a_presigned_url(s3, cog):
    url = s3.presigned(s3.closed, "bigtiff.tif")
    shown = f"{url.split('?')[0]}?..."
    assert done("checksum", url, NEAR).split() == [done("checksum", cog["bigtiff"].path).split()[0], shown]


# ---- what goes wrong -----------------------------------------------------------------------------


def test_what_is_not_there(nginx):
    url = f"{nginx.http}/files/none.tif"
    line = failed("info", url, NEAR)
    assert line.count(url) == 1 and "no such file" in line
    result = run("info", url, NEAR, "--json")
    error = json.loads(result.stdout)["error"]
    assert result.returncode == 1 and error["file"] == url and error["status"] == "not_found"


def test_addresses_that_are_not_public(nginx):
    url = f"{nginx.http}/files/bigtiff.tif"
    line = failed("info", url, code=2)
    assert "not public" in line and line.count(url) == 1
    assert nginx.requests() == []


def test_how_often_is_tried(nginx):
    failed("info", f"{nginx.http}/status/503?after=0", NEAR, "--retries", "2")
    assert len(nginx.requests()) == 3


def test_a_deadline(nginx):
    failed("info", f"{nginx.http}/status/503?after=5", NEAR, "--timeout", "0.1")
    assert len(nginx.requests()) == 1


# ---- secrets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/files/masked.tif", "/files/none.tif", "/status/403"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_secrets_stay_secret(path, more, nginx, cog, tmp_path):
    url, shown = with_secrets(nginx.http + path), f"{nginx.http}{path}?..."
    for words in (["info", url], ["checksum", url], ["read", url, "-o", tmp_path / "a.npy"], ["check", url],
                  ["compare", url, cog["bigtiff"].path], ["compare", cog["bigtiff"].path, url],
                  ["convert", url, tmp_path / "a.tif"], ["preview", url, tmp_path / "a.png"],
                  ["bench", url, "--window", "0,0,9,9"]):
        result = run(*words, NEAR, *more)
        told = result.stdout + result.stderr
        assert not [secret for secret in SECRETS if secret in told], told
        assert shown in told or not (more or result.returncode), told


@pytest.mark.parametrize("words", [
    ["info", "{}", "--retries", "1", "--timeout", "1"], ["{}"], ["info", "{}", "b.tif"], ["info", "--fiel={}"],
    ["convert", "a.tif", "{}"], ["read", "a.tif", "-o", "{}"], ["preview", "a.tif", "{}"],
    ["compare", "a.tif", "{}"], ["info", "a.tif", "--endpoint", "{}", "--json=1"]])
@pytest.mark.parametrize("url", [
    "http://someone:open-sesame@127.0.0.1:1/a.tif?Signature=0123abcd", "s3://someone:open-sesame@bucket/a?0123abcd",
    "http://a.b:open-sesame/@0123abcd/a.tif", "http://a.b:open-sesame?@h/a.tif", "http://a b:open-sesame#@h/a.tif",
    "ftp://someone:open-sesame@h/a.tif#0123abcd", "http://[::1]open-sesame/0123abcd", "http://[open-sesame/0123abcd"])
def test_secrets_of_what_is_refused(words, url):
    result = run(*[word.format(url) for word in words], AWS_ENDPOINT_URL="http://127.0.0.1:1")
    told = result.stdout + result.stderr
    assert result.returncode in (1, 2) and told
    assert not [secret for secret in SECRETS if secret in told], told
