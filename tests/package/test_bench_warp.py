"""What the benchmark of warps says of its measurements, and that it notices wrong pixels."""

import sys

import numpy as np
import pytest
from conftest import ROOT, write_file

sys.path.insert(0, str(ROOT / "bench"))
import bench_warp  # noqa: E402
import warp_peers  # noqa: E402

SECONDS = {"cogpu": [1.0, 1.0, 2.0], "gdalwarp": [2.0, 3.0, 2.0], "rasterio": [1.0, 1.5, 1.0]}
OUTCOME = {"machine": "a machine", "sizes": bench_warp.TINY, "threads": [1], "field": [*SECONDS, "rioxarray"],
           "absent": ["another"], "versions": "GDAL",
           "warps": [{"warp": "float32, cubic", "pixels": 3_000_000, "refused": {"rioxarray": "wrong pixels"},
                      "seconds": {"file 1": SECONDS, "memory 1": SECONDS}}],
           "vrts": [{"vrt": "16 files", "refused": {}, "bytes": {"whole": 4_000_000},
                     "seconds": {"whole 1": {"cogpu": [1.0], "GDAL": [2.0]}}}],
           "memory": {"side": 2000, "rss_bytes": 100 << 20, "seconds": 1.0, "overviews": 2, "file_bytes": 100_000},
           "gpu": {"device": "a GPU", "kernels": "cubic 1.0", "refused": {"other": "wrong pixels"}, "seconds": {"plain": [0.001], "warped": [0.003]},
                   "shapes": {"plain": (1, 2, 3), "warped": (1, 2, 3)}}}


def test_medians_ratios_and_what_is_missing():
    found = bench_warp.tables(OUTCOME)
    assert "| float32, cubic | 3 | 2 | 3 | - | 2.00 | 1.00 |" in found["warp"]
    assert "- rioxarray, float32, cubic: wrong pixels" in found["warp"] and "- another: not installed" in found["warp"]
    assert "| 16 files, whole, 1 thread | 4 | - | 2 | 2.00 | - |" in found["vrt"]
    assert "| 100 MiB | 256 MiB |" in found["memory"]
    assert "| warped | 2 x 3 | 3.0 | 3.00 |" in found["gpu"] and "Not measured: other: wrong pixels" in found["gpu"]


def test_pages_have_the_marks_of_all_tables():
    page = (ROOT / "docs" / "bench-warp.md").read_text()
    assert all(f"<!-- bench:{mark} -->\n" in page for mark in bench_warp.tables(OUTCOME))


def test_a_shifted_warp_is_wrong():
    random = np.random.default_rng(1)
    exact = random.random((1, 40, 50)).cumsum(2).astype("float32")
    assert bench_warp.distance(exact, exact) == 0
    assert bench_warp.distance(np.roll(exact, 1, 2)[..., 2:], exact[..., 2:]) > bench_warp.WRONG


def contenders():
    found, _ = warp_peers.field()
    return [pytest.param(one, id=one.name) for one in found]


@pytest.mark.parametrize("contender", contenders())
@pytest.mark.parametrize("kind", ["file", "memory"])
def test_contenders_warp_alike(contender, kind, tmp_path):
    y, x = np.mgrid[:200, :220]
    path = write_file(tmp_path / "a.tif", (100 + 50 * np.sin(x / 9) * np.cos(y / 7)).astype("uint16")[None], crs="EPSG:32632")
    grid = warp_peers.Grid.inside(path, "EPSG:3857")
    exact = warp_peers.Gdalwarp().warp(path, grid, "bilinear", 1, error=0).array("uint16")
    made = (contender.warp(path, grid, "bilinear", 2) if kind == "file" else
            contender.warp_held(contender.held(path), grid, "bilinear", 2))
    pixels = warp_peers.pixels_of(made, exact.dtype)
    assert pixels.shape == exact.shape and bench_warp.distance(pixels, exact) < bench_warp.WRONG
