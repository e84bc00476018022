"""Files beside a URL: read on request alone, with a request for each possible name."""

import cogpu_ctypes as cogpu
import numpy as np
import pytest

LOCAL = {"allow_private_addresses": 1, "max_retries": 1}


@pytest.fixture
def served(nginx, cog):
    """The URL of a file that has a mask, overviews, a world file and metadata beside it."""
    import rasterio
    from rasterio.enums import Resampling
    path = next(iter(cog.values())).path.parent / "beside.tif"
    before = set(path.parent.iterdir())
    pixels = np.arange(64 * 64, dtype="uint16").reshape(1, 64, 64)
    with rasterio.open(path, "w", driver="GTiff", height=64, width=64, count=1, dtype="uint16") as file:
        file.write(pixels)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False, TIFF_USE_OVR=True), rasterio.open(path, "r+") as file:
        file.write_mask(pixels[0] % 3 > 0)
        file.build_overviews([2], Resampling.nearest)
    path.with_suffix(".tfw").write_text("2\n0\n0\n-2\n100\n200\n")
    path.with_name("beside.tif.aux.xml").write_text(
        "<PAMDataset><SRS>EPSG:25832</SRS><Metadata><MDI key='A'>b</MDI></Metadata></PAMDataset>")
    yield f"{nginx.http}/files/beside.tif", path
    for made in set(path.parent.iterdir()) - before:
        made.unlink()


def test_sidecars_of_urls_on_request(nginx, served):
    url, path = served
    with cogpu.Context(network=LOCAL) as context:
        with cogpu.open(url, cogpu.OpenOptions(context=context.handle)) as file:
            assert not file.sidecars() and file.info().mask_source == cogpu.MASK_NONE
        assert {request.path for request in nginx.requests()} == {"/files/beside.tif"}
        with cogpu.open(path) as local, cogpu.open(url, cogpu.OpenOptions(
                sidecars=cogpu.SIDECARS_ALL, context=context.handle)) as file:
            assert [name.rsplit("/", 1)[1] for name in file.sidecars()] == [
                name.rsplit("/", 1)[1] for name in local.sidecars()]
            assert len(file.sidecars()) == 5 and file.crs().code == 25832 and file.info().levels == 2
            assert list(file.info().transform) == list(local.info().transform)
            assert np.array_equal(file.read(content=cogpu.MASK), local.read(content=cogpu.MASK))
            assert np.array_equal(file.read(level=1), local.read(level=1))
            assert not (file.read(content=cogpu.MASK) == 255).all() and not file.info().warning


def test_no_sidecars_of_a_url_with_a_query(nginx, served):
    url, _ = served
    with cogpu.Context(network=LOCAL) as context, cogpu.open(f"{url}?token=1", cogpu.OpenOptions(
            sidecars=cogpu.SIDECARS_ALL, context=context.handle)) as file:
        assert not file.sidecars()
    assert {request.path.partition("?")[0] for request in nginx.requests()} == {"/files/beside.tif"}
