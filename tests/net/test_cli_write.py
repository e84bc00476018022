"""cogpu convert to s3://: the same bytes as to a path, its options, and what is left when it ends early."""

import json
import os
import signal
import subprocess

import pytest
from test_cli_read import BINARY, DEVICES, NEAR, done, failed, run
from test_s3_write import CODE, KEY, NO_UPLOAD, clean, noise, wait_until  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")


def make_image(path, pixels):
    import rasterio
    with rasterio.open(path, "w", driver="GTiff", width=pixels.shape[2], height=pixels.shape[1], count=1,
                       dtype=pixels.dtype.name, crs="EPSG:32633", transform=rasterio.Affine(10, 0, 4e5, 0, -10, 5e6)) as file:
        file.write(pixels)
    return path


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return make_image(tmp_path_factory.mktemp("image") / "image.tif", noise(1, 8192, 2048))


def words(s3, endpoint=None):
    return ["--endpoint", endpoint or s3.endpoint, "--region", s3.region, "--retries", "2"]


@pytest.mark.parametrize("device", DEVICES)
def test_convert(device, s3, image, tmp_path):
    out, local = f"s3://{s3.closed}/{KEY}", tmp_path / "local.tif"
    options = ["--cog", "--codec", "none", "--device", device]
    told = json.loads(done("convert", image, out, *options, "--json", *words(s3), **s3.environment()))
    done("convert", image, local, *options)
    assert s3.get(s3.closed, KEY) == local.read_bytes()
    assert told["output"] == out and told["bytes"] == local.stat().st_size
    assert s3.uploads(s3.closed) == NO_UPLOAD


def test_from_s3_to_s3(s3, cog, tmp_path):
    """Also in its place; a path that looks like the address is another file."""
    out = f"s3://{s3.closed}/{KEY}"
    done("convert", f"s3://{s3.open}/masked.tif", out, "--cog", *words(s3), **s3.environment())
    done("convert", out, out, *words(s3), **s3.environment())
    assert done("compare", out, cog["masked"].path, *words(s3), **s3.environment()).startswith("same pixels")


def test_nothing_is_made_here(s3, image, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beside = tmp_path / "s3:" / s3.closed / f"{KEY}.ovr"
    beside.parent.mkdir(parents=True)
    beside.write_bytes(b"of another file")
    done("convert", image, f"s3://{s3.closed}/{KEY}", "--cog", *words(s3), **s3.environment())
    assert os.listdir(beside.parent) == [beside.name]


def test_addresses_that_are_not_public(s3, image):
    variables = s3.environment() | {"AWS_ENDPOINT_URL": s3.endpoint}
    assert "not public" in failed("convert", image, f"s3://{s3.closed}/{KEY}", code=2, **variables)
    done("convert", image, f"s3://{s3.closed}/{KEY}", NEAR, **variables)


def test_messages(s3, s3_faults, image):
    out = f"s3://{s3.closed}/{KEY}"
    s3_faults.plan(every={"kind": "status", "code": 403, "text": CODE.format("AccessDenied")}, only="partNumber")
    line = failed("convert", image, out, "--cog", *words(s3, s3_faults.http), **s3.environment())
    assert line.count(out) == 1 and "AccessDenied" in line and s3.uploads(s3.closed) == NO_UPLOAD
    line = failed("convert", image, f"s3://no-such-bucket/{KEY}", *words(s3), **s3.environment())
    assert "NoSuchBucket" in line
    result = run("convert", image, f"s3://someone:open-sesame@{s3.closed}/{KEY}?hush", *words(s3), **s3.environment())
    assert result.returncode == 2 and not {"someone", "open-sesame", "hush"} & set(result.stderr.replace("/", " ").split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(number, s3, s3_faults, tmp_path):
    """While the writer waits for parts."""
    image = make_image(tmp_path / "image.tif", noise(1, 8192, 12288, dtype="u1"))
    s3_faults.plan(every={"kind": "delay", "seconds": 1}, only="partNumber")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | s3.environment()
    process = subprocess.Popen([BINARY, "convert", str(image), f"s3://{s3.closed}/{KEY}", "--codec", "none",
                                *words(s3, s3_faults.http)], env=variables)
    wait_until(lambda: len(s3.uploads(s3.closed).get(KEY, [])) >= 1)
    process.send_signal(number)
    assert process.wait(30) == -number
    assert s3.uploads(s3.closed) == NO_UPLOAD and KEY not in s3.keys(s3.closed)
