"""The worked examples of docs/examples run from the first cell to the last, on the emulated GPU where there is no other. Cells
that draw are left out without matplotlib; the training loader needs PyTorch."""

import importlib.util
import os
import pathlib
import sys

import numpy as np
import pytest
import rasterio
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools" / "docs"))
import run_examples  # noqa: E402

BIN = pathlib.Path(os.environ.get("COGPU_BIN", ROOT / "build" / "cogpu")).resolve()
HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """run(name) -> names of the script after its last cell, and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(run_examples.FOLDER))
    monkeypatch.setenv("PATH", str(BIN.parent), prepend=os.pathsep)

    def run_script(name):
        names = {"__name__": "__main__"}
        for cell in run_examples.cells((run_examples.FOLDER / f"{name}.py").read_text()):
            if cell.is_code and (HAS_MATPLOTLIB or "pyplot" not in cell.text):
                exec(compile(cell.text, f"{name}.py", "exec"), names)
        assert not HAS_MATPLOTLIB or (tmp_path / f"{name}.png").exists()
        return names, capsys.readouterr().out
    return run_script


def slope_of(path):
    with rasterio.open(path) as file:
        heights = file.read(1, masked=True).filled(np.nan)
    return np.degrees(np.arctan(np.hypot(*np.gradient(heights, 10.0))))


def test_dem_slope(run, tmp_path):
    _, printed = run("dem_slope")
    assert printed.endswith("valid\n")
    with rasterio.open(tmp_path / "slope.tif") as file:
        slope = file.read(1, masked=True).filled(np.nan)
    assert np.allclose(slope, slope_of(tmp_path / "dem.tif"), atol=1e-3, equal_nan=True)


def test_dask_stream(run, tmp_path):
    _, printed = run("dask_stream")
    assert "in 9 chunks" in printed and "256 of 768 rows" in printed and printed.endswith("valid\n")
    with rasterio.open(tmp_path / "shade.tif") as file:
        shade = file.read(1)
        assert file.overviews(1) == [2, 4]
    assert 0 <= np.nanmin(shade) < np.nanmax(shade) <= 1 and 0 < np.isnan(shade).sum() < 20_000


def test_training_loader(run):
    pytest.importorskip("torch")
    names, printed = run("training_loader")
    assert "(32, 1, 48, 48) torch.float32" in printed
    assert np.mean(names["losses"][-10:]) < np.mean(names["losses"][:10]) / 2
    assert "crops a second with training" in printed
    assert ("there is no GPU" in printed) == (names["DEVICE"] == "cpu")


def test_s3_to_gpu(run):
    for module in ("moto", "boto3", "flask"):
        pytest.importorskip(module)
    names, printed = run("s3_to_gpu")
    if not HAS_MATPLOTLIB:  # the last cell draws, and stops the server
        names["server"].stop()
        names["cogpu"].configure()
    assert "(250, 250) mean height" in printed
    expected = names["mountains"]().values[250:500, 200:450]
    assert np.array_equal(np.asarray(names["window"].data), expected, equal_nan=True)


@pytest.mark.skipif(not BIN.exists(), reason="the command line is not built")
def test_two_zones(run, tmp_path):
    names, printed = run("two_zones")
    assert "scenes of a window: 1\nvalid\nsame pixels: True\n" in printed
    with rasterio.open(tmp_path / "joined.tif") as file:
        assert file.crs.to_epsg() == 3035 and file.overviews(1) == [2]
        heights = file.read(1, masked=True)
    land = names["land"].values
    assert abs(heights.mean() - np.nanmean(land)) < 1
    assert np.isclose(heights.count(), np.isfinite(land).sum(), rtol=0.02)
