"""The Python of the network, README's and that of its own page, runs as it is written, but for names of servers, and
for a GPU where COGPU_DEVICES has none."""

import os
import pathlib
import re

import numpy as np
import pytest
from test_python_read import cogpu

GPU = f"gpu={'cuda' in os.environ.get('COGPU_DEVICES', '')}"
ROOT = pathlib.Path(__file__).resolve().parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "network.md"


def adapted(code, *words):
    """With other words, (written, here), in place of those that stand there."""
    for written, here in words:
        assert written in code
        code = code.replace(written, here)
    return code


def test_readme_runs_as_written(nginx, s3, cog):
    code = re.search(r"^```python network\n(.*?)^```", README.read_text(), re.M | re.S)[1]
    variables = s3.environment()
    cogpu.configure(network={"private_addresses": True, "s3_endpoint": s3.endpoint, "s3_region": s3.region,
                             "s3_access_key": variables["AWS_ACCESS_KEY_ID"],
                             "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"]})
    code = adapted(code, ("https://example.org/dem.tif", f"{nginx.http}/files/masked.tif"), ("gpu=True", GPU),
                   ("s3://bucket/", f"s3://{s3.closed}/"))
    nginx.requests()
    try:
        exec(compile(code, "README.md", "exec"), {"cogpu": cogpu})
    finally:
        cogpu.configure()
    assert len(nginx.requests()) <= 3  # 512 x 512 of tiles of 256: two rows of them
    with cogpu.open(memoryview(s3.get(s3.closed, "part.tif"))) as file:
        np.testing.assert_array_equal(np.asarray(file.read()), cog["masked"].pixels[:, :512, :512])
    assert cogpu.check(memoryview(s3.get(s3.closed, "part.tif")))["verdict"] == "valid"


def test_the_page_runs_as_written(s3, cog, monkeypatch):
    obstore, fsspec = pytest.importorskip("obstore"), pytest.importorskip("fsspec")
    by_settings, by_stores = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    for name, value in (s3.environment() | {"AWS_ENDPOINT_URL": s3.endpoint, "AWS_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)
    s3.put(s3.closed, "dem.tif", cog["masked"].path.read_bytes())
    fsspec.filesystem("memory").pipe_file("/bucket/dem.tif", cog["masked"].path.read_bytes())
    names = {"cogpu": cogpu, "obstore": obstore, "fsspec": fsspec}
    first = cog["masked"].pixels[:, :512, :512]
    try:
        exec(adapted(by_settings, ("network={", "network={'private_addresses': True, "), ("gpu=True", "gpu=False"),
                     ("s3://bucket/", f"s3://{s3.closed}/")), names)
        np.testing.assert_array_equal(names.pop("part"), first)
        with cogpu.open(f"s3://{s3.closed}/part.tif") as file:
            np.testing.assert_array_equal(np.asarray(file.read()), first)
    finally:
        cogpu.configure()
    *lines, last = by_stores.splitlines()
    exec(adapted("\n".join(lines), ('"bucket"', repr(s3.closed))), names)
    np.testing.assert_array_equal(names.pop("part"), first)
    exec(adapted(last, ("gs://", "memory://")), names)
    np.testing.assert_array_equal(names["part"], first)
    for key in ("dem.tif", "part.tif"):
        s3.client.delete_object(Bucket=s3.closed, Key=key)
