"""Commands and Python with URLs, of README, docs/network.md and docs/command-line.md, run as they are written, but for names
of servers, and for a GPU where COGPU_DEVICES has none."""

import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from test_python_read import cogpu

GPU = f"gpu={'cuda' in os.environ.get('COGPU_DEVICES', '')}"
ROOT = pathlib.Path(__file__).resolve().parents[2]
README, PAGE, COMMANDS = ROOT / "README.md", ROOT / "docs" / "network.md", ROOT / "docs" / "command-line.md"
BINARY = os.environ.get("COGPU_BIN", str(ROOT / "build" / "cogpu"))


def adapted(code, *words):
    """With other words, (written, here), in place of those that stand there."""
    for written, here in words:
        assert written in code
        code = code.replace(written, here)
    return code


def shell_lines(page, mark=""):
    """Commands of cogpu with URLs in a page's shell blocks."""
    code = "".join(re.findall(rf"^```sh{mark}\n(.*?)^```", page.read_text(), re.M | re.S))
    return [line.split(" # ")[0].strip() for line in code.splitlines() if line.startswith("cogpu ") and "://" in line]


@pytest.mark.parametrize("page, mark, count", [(README, "", 1), (PAGE, " network", 3), (COMMANDS, " network", 3)])
def test_commands_run_as_written(page, mark, count, nginx, s3, cog, tmp_path):
    lines = shell_lines(page, mark)
    assert len(lines) == count
    s3.put(s3.closed, "dem.tif", cog["masked"].path.read_bytes())
    for name in ("dem.tif", "survey.tif"):
        (tmp_path / name).symlink_to(cog["masked"].path)
    for line in lines:
        line = line.replace("https://example.org/dem.tif", f"{nginx.http}/files/masked.tif").replace(
            "s3://bucket/", f"s3://{s3.closed}/")
        words = line.split() if GPU == "gpu=True" else line.replace("cuda", "emu").split()
        done = subprocess.run([BINARY, *words[1:], "--private-addresses"], cwd=tmp_path, capture_output=True, text=True,
                              env={**os.environ, **s3.environment(), "AWS_ENDPOINT_URL": s3.endpoint})
        assert done.returncode == 0, (line, done.stderr)
    s3.client.delete_object(Bucket=s3.closed, Key="dem.tif")


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
        exec(adapted(by_settings, ("network={", "network={'allow_private_addresses': True, "), ("gpu=True", "gpu=False"),
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
