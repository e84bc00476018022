"""Passwords and signatures stay out of messages, names and reprs, also where a URL is misspelt or malformed."""

import os
import pathlib
import pickle
import subprocess

import pytest

import cogpu
from cogpu.urls import shown

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))
SECRET = "open-sesame"
NAMES = [
    f"http://user:{SECRET}@",
    f"https://user:p@{SECRET}@host.invalid:99999/x.tif",
    f"http:/user:{SECRET}@host.invalid/x.tif",
    f"http:user:{SECRET}@host.invalid/x.tif",
    f"https//user:{SECRET}@host.invalid/x.tif",
    f"user:{SECRET}@host.invalid/x.tif",
    f"http://us er:{SECRET}@host.invalid/x.tif",
    f"http://user:{SECRET}@host .invalid/x.tif",
    f"http://user:{SECRET}\n@host.invalid/x.tif",
    f"http://user:{SECRET}\\@host.invalid/x.tif",
    f"https://user:12/{SECRET}@host.invalid/x.tif",
    f"https://user:12?{SECRET}@host.invalid/x.tif",
    f"https://user:{SECRET}/x@host.invalid/x.tif",
    f"gopher://user:{SECRET}@host.invalid/x.tif",
    f"http://host.invalid:x/x.tif?X-Amz-Signature={SECRET}",
    f"http:/host.invalid/x.tif?sig={SECRET}",
    f"http:/host.invalid/x.tif?token={SECRET}@{SECRET}",
    f"s3://user:{SECRET}@bucket/x.tif",
    f"http://[::1/x.tif?token={SECRET}",
]


def messages(error):
    while error is not None:
        yield repr(error)
        if isinstance(error, cogpu.Error):
            yield f"{error} {pickle.loads(pickle.dumps(error))!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", NAMES)
def test_messages_of_the_package(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert SECRET not in shown(name)
    for opening in (cogpu.open, cogpu.open_geotiff):
        with pytest.raises((cogpu.Error, ValueError)) as raised:
            opening(name)
        assert all(SECRET not in message for message in messages(raised.value))
    np = pytest.importorskip("numpy")
    with pytest.raises((cogpu.Error, ValueError, OSError)) as raised:
        cogpu.to_geotiff(np.zeros((4, 4), "u1"), name)
    assert all(SECRET not in message for message in messages(raised.value))


needs_binary = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")


@needs_binary
@pytest.mark.parametrize("name", NAMES)
def test_messages_of_the_command_line(name, tmp_path):
    for words in (["info", name], ["convert", name, "out.tif"], ["convert", "in.tif", name],
                  ["read", name, "-o", "a.npy"], ["checksum", name, "--json"], [name]):
        result = subprocess.run([BINARY, *words], capture_output=True, text=True, cwd=tmp_path, timeout=60)
        assert result.returncode in (1, 2) and SECRET not in result.stdout + result.stderr, words


@needs_binary
def test_proxies_of_the_environment_are_neither_used_nor_named(tmp_path):
    proxy = f"http://user:{SECRET}@127.0.0.1:9"
    result = subprocess.run([BINARY, "info", "http://127.0.0.1:9/x.tif", "--private-addresses", "--retries", "1"],
                            env={**os.environ, "http_proxy": proxy, "HTTP_PROXY": proxy, "ALL_PROXY": proxy},
                            capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert result.returncode == 1 and SECRET not in result.stderr and "127.0.0.1:9/x.tif" in result.stderr
