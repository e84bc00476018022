"""The readme's Python part, the guide and the examples run as they are written, on a small terrain in the place of the
demo's; and the reference is what the docstrings say. Code marked `gpu` or `torch` runs where those are, that marked
`network` in tests/net."""

import importlib
import re
import struct
import subprocess
import sys
import tomllib
import zlib
from pathlib import Path

import numpy as np
import pytest
import rasterio
from conftest import ROOT, write_file

FENCE = re.compile(r"^```python ?(\w*)\n(.*?)^```", re.M | re.S)


def have(module):
    try:
        return bool(importlib.import_module(module))
    except ImportError:
        return False


def have_gpu():
    if not have("cupy"):
        return False
    import cupy
    return cupy.cuda.is_available()


@pytest.fixture
def terrain(tmp_path, monkeypatch):
    """demo/terrain.tif under the current folder: 520 x 560 heights with nodata, three overviews."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    path = tmp_path / "demo" / "terrain.tif"
    y, x = np.mgrid[:520, :560]
    heights = (900 + 200 * np.sin(x / 40) * np.cos(y / 30) + y).astype("float32")
    heights[40:60, 50:90] = -9999
    return write_file(path, heights[None], nodata=-9999, crs="EPSG:32632", overviews=[2, 4, 8])


def run_blocks(text):
    """Runs a page's code in one namespace, as a reader would; returns that."""
    runs, names = {"": True, "gpu": have_gpu(), "torch": have("torch"), "network": False}, {}
    for mark, code in FENCE.findall(text):
        if runs[mark]:
            exec(compile(code, "page", "exec"), names)
    return names


def readme_code():
    return FENCE.search((ROOT / "README.md").read_text())[0]


@pytest.mark.filterwarnings("ignore::cogpu.FallbackWarning")
def test_readme_runs_as_written(terrain):
    terrain.rename("dem.tif")
    names = run_blocks(readme_code())
    with rasterio.open("feet.tif") as feet, rasterio.open("copy.tif") as copy, rasterio.open("dem.tif") as source:
        pixels = source.read()
        assert feet.nodata == -9999 and feet.overviews(1)
        assert feet.crs == source.crs and feet.transform == source.transform
        expected = np.where(pixels == -9999, -9999, pixels * np.float32(3.28084))
        assert np.allclose(feet.read(), expected, rtol=1e-6)
        assert np.array_equal(copy.read(), pixels) and copy.compression.value == "ZSTD"
        assert np.array_equal(names["part"], pixels[:, :100, :200])
        assert np.array_equal(np.isnan(names["dem"]), pixels == -9999)


def test_readme_is_short():
    assert len(readme_code().strip().splitlines()) < 12


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """xarray finds the engine as if the package were installed, by what pyproject.toml says of it."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["xarray.backends"]
    told = tmp_path / "site" / "cogpu-0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: cogpu\nVersion: 0\n")
    (told / "entry_points.txt").write_text("[xarray.backends]\n" + "\n".join(f"{k} = {v}" for k, v in entries.items()))
    monkeypatch.syspath_prepend(str(told.parent))
    engines = importlib.import_module("xarray.backends.plugins").list_engines
    engines.cache_clear()
    yield
    engines.cache_clear()


def test_guide_runs_as_written(terrain, engine):
    names = run_blocks((ROOT / "docs" / "python.md").read_text())
    with rasterio.open(terrain) as source, rasterio.open("feet.tif") as feet, rasterio.open("waves.tif") as waves:
        pixels = source.read()
        assert np.array_equal(names["pixels"], pixels[:, 10:74, 20:84])
        assert np.array_equal(names["out"], names["pixels"])
        assert np.array_equal(np.asarray(names["many"][2]), pixels[:, 64:96, :32])
        assert np.array_equal(np.asarray(names["part"]), pixels[:, :64, :64])
        assert names["middle"].shape == (1, 260, 280)
        assert feet.overviews(1) and np.array_equal(feet.read() == -9999, pixels == -9999)
        assert waves.crs.to_epsg() == 32632 and waves.nodata == -9999


def test_guide_of_mosaics_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y, x = np.mgrid[:300, :280]
    heights = (900 + 200 * np.sin(x / 40) * np.cos(y / 30) + y).astype("float32")
    for zone, left in (32, 798000), (33, 342000):  # both at 12.9 degrees east
        write_file(tmp_path / f"zone{zone}.tif", heights[None], nodata=-9999, crs=f"EPSG:326{zone}",
                   transform=rasterio.transform.from_origin(left, 5000000, 10, 10))
    names = run_blocks((ROOT / "docs" / "mosaics.md").read_text())
    assert np.asarray(names["window"]).shape == (1, 100, 100)
    assert [source.is_reprojected for source in names["mosaic"].sources] == [True, True]
    assert names["lazy"].shape == names["dem"].shape == names["like"].shape == names["mosaic"].shape
    assert names["top"].sources[0].path == "zone33.tif"
    with rasterio.open("web.tif") as web:
        assert web.crs.to_epsg() == 3857 and np.array_equal(web.read(), names["dem"].fillna(-9999))


def test_pictures_of_the_guide_are_there():
    for name in re.findall(r"!\[.*?\]\((.*?)\)", (ROOT / "docs" / "python.md").read_text()):
        assert (ROOT / "docs" / name).read_bytes().startswith(b"\x89PNG")


def test_links_of_the_pages_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "docs" / "python.md", ROOT / "docs" / "network.md",
                 ROOT / "docs" / "bench-network.md", ROOT / "docs" / "decisions" / "0017-python-package.md"):
        for link in re.findall(r"\]\(([^):#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_reference_is_up_to_date():
    words = [sys.executable, ROOT / "tools" / "python_reference.py", "--check"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- the examples ----

@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return importlib.import_module


def colours(path):
    """The picture of a PNG of 8-bit RGB without filters."""
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    rows = zlib.decompress(data[data.index(b"IDAT") + 4:data.index(b"IEND") - 8])
    return np.frombuffer(rows, "u1").reshape(height, width * 3 + 1)[:, 1:].reshape(height, width, 3)


def test_a_picture_of_the_overview(example, terrain, tmp_path, capsys):
    example("python_open").main(terrain, tmp_path / "open.png", side=100)
    assert "EPSG:32632" in capsys.readouterr().out
    drawn = colours(tmp_path / "open.png")
    assert drawn.shape[:2] == (65, 70) and len(np.unique(drawn.reshape(-1, 3), axis=0)) > 50
    assert (drawn[6, 8] == 255).all()  # where nothing was measured


@pytest.fixture
def hill(terrain):
    """A part of the terrain that the emulated GPU is through with in a moment."""
    cogpu = importlib.import_module("cogpu")
    part = cogpu.open_geotiff(terrain, window=(0, 0, 96, 160))
    return Path(cogpu.to_geotiff(part, terrain.with_name("hill.tif"), tile_size=64))


def test_slopes_on_the_emulated_gpu(example, hill, tmp_path):
    example("python_gpu").main(hill, tmp_path / "slope.tif", tmp_path / "slope.png", "emu")
    with rasterio.open(hill) as source, rasterio.open(tmp_path / "slope.tif") as written:
        heights = np.where(source.read(1) == -9999, np.nan, source.read(1))
        expected = np.degrees(np.arctan(np.hypot(*np.gradient(heights, 10))))
        assert np.allclose(written.read(1, masked=True).filled(np.nan), expected, atol=1e-4, equal_nan=True)


@pytest.mark.skipif(not have_gpu(), reason="no CuPy with a GPU")
def test_slopes_on_a_gpu(example, hill, tmp_path):
    for gpu in True, "emu":
        example("python_gpu").main(hill, tmp_path / f"{gpu}.tif", tmp_path / f"{gpu}.png", gpu)
    with rasterio.open(tmp_path / "True.tif") as one, rasterio.open(tmp_path / "emu.tif") as other:
        slopes = [file.read(masked=True).filled(np.nan) for file in (one, other)]
        assert np.allclose(*slopes, atol=1e-3, equal_nan=True)


def test_statistics_by_blocks(example, terrain, tmp_path, capsys):
    pytest.importorskip("dask")
    example("python_dask").main(terrain, tmp_path / "bars.png", chunks=64)
    with rasterio.open(terrain) as source:
        heights = source.read(masked=True)
    numbers = [float(word) for word in re.findall(r"\d+\.\d+", capsys.readouterr().out)][:4]
    assert np.allclose(numbers, [heights.min(), heights.max(), heights.mean(), heights.std()], atol=0.01)


def test_a_checked_cog(example, tmp_path, capsys):
    example("python_cog").main(tmp_path / "dunes.tif", tmp_path / "dunes.png")
    assert "checked as a COG: valid\n" in capsys.readouterr().out
    validate = importlib.import_module("rio_cogeo.cogeo").cog_validate
    assert validate(str(tmp_path / "dunes.tif"), strict=True)[0]
    with rasterio.open(tmp_path / "dunes.tif") as file:
        expected = example("python_cog").dunes()
        assert np.array_equal(file.read(1), np.where(np.isnan(expected), -9999, expected))
        assert file.transform == rasterio.Affine(10, 0, 600000, 0, -10, 5200000)


def test_one_step_of_training(example, terrain, tmp_path, capsys):
    pytest.importorskip("torch")
    example("train_step").main(terrain, terrain, tmp_path / "batch.png", size=32, batch=8, device="cpu")
    assert re.search(r"\(8, 1, 32, 32\) on cpu: loss \d\.\d+", capsys.readouterr().out)
    assert colours(tmp_path / "batch.png").shape[0] == 32
