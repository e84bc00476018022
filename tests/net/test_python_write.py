"""The Python package writes to s3:// as it writes to paths: arrays, Dask's, blocks that were encoded elsewhere."""

import os

import numpy as np
import pytest
from test_python_read import cogpu
from test_s3_write import KEY, NO_UPLOAD, clean, noise  # noqa: F401 (a fixture)

from cogpu import _cogpu


@pytest.fixture(autouse=True)
def network(s3):
    variables = s3.environment()
    cogpu.configure(network={"s3_endpoint": s3.endpoint, "s3_region": s3.region, "max_retries": 1,
                             "s3_access_key": variables["AWS_ACCESS_KEY_ID"],
                             "s3_secret_key": variables["AWS_SECRET_ACCESS_KEY"]})
    yield
    cogpu.configure()


@pytest.fixture
def url(s3):
    return f"s3://{s3.closed}/{KEY}"


def parts(s3):
    return sum("partNumber" in asked.query for asked in s3.requests())


OPTIONS = {"cog": True, "compression": "zstd", "crs": "EPSG:32633", "transform": (10, 0, 4e5, 0, -10, 5e6)}


@pytest.mark.parametrize("kind", [str, str.encode])
@pytest.mark.parametrize("options", [OPTIONS, OPTIONS | {"cog": False}], ids=["cog", "plain"])
def test_an_array(options, kind, url, s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = noise(4096, 4096)
    assert cogpu.to_geotiff(array, kind(url), **options) == kind(url)
    assert parts(s3) >= 3 and os.listdir(tmp_path) == []
    cogpu.to_geotiff(array, "local.tif", **options)
    assert s3.get(s3.closed, KEY) == (tmp_path / "local.tif").read_bytes()
    assert s3.uploads(s3.closed) == NO_UPLOAD


def test_chunks(url, s3, tmp_path):
    array = noise(4096, 4096)
    cogpu.to_geotiff(array, url, streaming_buffer_bytes=4 << 20, **OPTIONS)
    cogpu.to_geotiff(array, tmp_path / "local.tif", **OPTIONS)
    assert s3.get(s3.closed, KEY) == (tmp_path / "local.tif").read_bytes()


def test_an_array_of_dask(url, s3, tmp_path):
    dask = pytest.importorskip("dask.array")
    array = noise(4096, 4096)
    cogpu.to_geotiff(dask.from_array(array, chunks=(1000, 1500)), url, streaming_buffer_bytes=16 << 20, **OPTIONS)
    cogpu.to_geotiff(array, tmp_path / "local.tif", **OPTIONS)
    assert s3.get(s3.closed, KEY) == (tmp_path / "local.tif").read_bytes()


def test_a_data_array_there_and_back(url, s3):
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(noise(1, 300, 200), dims=("band", "y", "x"))
    cogpu.to_geotiff(array, url, **OPTIONS)
    np.testing.assert_array_equal(cogpu.open_geotiff(url).values.squeeze(), array.values.squeeze())


@pytest.mark.parametrize("size", [300, 3000], ids=["at once", "in parts"])
def test_what_was_read_before_is_read_anew(size, url, s3):
    for _ in range(2):
        array = np.random.default_rng().integers(0, 65535, (1, size, size), "u2")
        cogpu.to_geotiff(array, url, **OPTIONS)
        with cogpu.open(url) as file:
            np.testing.assert_array_equal(np.asarray(file.read()), array)


@pytest.mark.parametrize("options", [{"cog": True}, {}], ids=["cog", "plain"])
def test_blocks_in_any_order(options, url, s3, tmp_path):
    array = noise(4096, 4096, dtype="u1")
    profile = {"width": 4096, "height": 4096, "bands": 1, "type": "uint8", "codec": "none", "block_width": 1024,
               "block_height": 1024, "overviews": "none"} | options
    writer = _cogpu.Writer(url, profile)
    for index in np.random.default_rng(0).permutation(16).tolist():
        y, x = index // 4 * 1024, index % 4 * 1024
        pixels = np.ascontiguousarray(array[None, y:y + 1024, x:x + 1024])
        writer.write_block(0, "pixels", index, _cogpu.encode_block(profile, 0, "pixels", index, pixels))
    writer.close()
    local = _cogpu.Writer(str(tmp_path / "local.tif"), profile)
    local.write_rows(array[None])
    local.close()
    assert parts(s3) == 2 and s3.get(s3.closed, KEY) == (tmp_path / "local.tif").read_bytes()


def test_an_exception_leaves_nothing(url, s3):
    """Of Dask's chunks, when parts are up."""
    dask = pytest.importorskip("dask.array")

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 3:
            raise RuntimeError("no more rows")
        return block

    array = dask.from_array(noise(8192, 4096), chunks=(2048, 4096)).map_blocks(fail, dtype="u2")
    s3.put(s3.closed, KEY, b"old")
    with pytest.raises(RuntimeError, match="no more rows"):
        cogpu.to_geotiff(array, url, streaming_buffer_bytes=16 << 20, **OPTIONS)
    assert parts(s3) >= 1 and s3.uploads(s3.closed) == NO_UPLOAD and s3.get(s3.closed, KEY) == b"old"


def test_what_is_refused(url, s3):
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        cogpu.to_geotiff(noise(64, 64), f"s3://no-such-bucket/{KEY}")
    with pytest.raises(cogpu.UnsupportedError, match="s3://"):
        cogpu.to_geotiff(noise(64, 64), "https://example.com/a.tif")
    cogpu.configure(network={"s3_endpoint": s3.endpoint, "s3_region": s3.region, "s3_access_key": "TESTKEY",
                             "s3_secret_key": "not-the-secret"})
    with pytest.raises(OSError, match="SignatureDoesNotMatch") as caught:
        cogpu.to_geotiff(noise(64, 64), url)
    assert "not-the-secret" not in str(caught.value)
