"""What type checkers say of programs that use the package, and of the package's public modules. They run offline."""

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import PACKAGE

import cogpu
from cogpu import _cogpu

FOLDER = pathlib.Path(cogpu.__file__).parent
PUBLIC = ["__init__", "arguments", "errors", "file", "gdal_names", "grids", "keywords", "later", "metadata", "mosaic", "prefetch",
          "progress", "read", "stored", "target", "urls", "write"]
# Those whose types come from Dask and xarray, which pyright knows in part only.
WITH_OTHERS = ["dask", "engine", "windows"]
VALID = '''
import io
import pathlib

import numpy as np
import xarray
from cogpu.compat import xrspatial

import cogpu
import cogpu.compat.xrspatial

array: xarray.DataArray = cogpu.open_geotiff("a.tif", masked=True, window=(0, 0, 5, 5))
array = cogpu.open_geotiff(pathlib.Path("a.tif"), chunks={"x": 5}, window=((0, 5), (None, 5)), out_shape=(5, 5),
                           resampling="cubic")
array = cogpu.open_geotiff(b"content", window=(slice(0, 5), slice(5)), band=[1, 2], parse_coordinates="2d", gpu="emu")
array = cogpu.open_geotiff(io.BytesIO(b""), boundless=True, fill_value=-1.5, dtype=np.float32, bbox=(0.5, 0, 1, 2))
array = cogpu.open_geotiff("a.tif", level=1, band=2, unscale=True)
cogpu.to_geotiff(array, "b.tif", cog=True, overview_levels=[2, 4], progress=lambda done, rows: None)
cogpu.to_geotiff(np.zeros((4, 4)), io.BytesIO(), nodata=5, tile_size=(64, 128))
cogpu.to_geotiff(array, None)
array = cogpu.open_geotiff(["a.tif", cogpu.Source("b.tif", bands=[1], nodata="none"), {"path": "c.tif"}], crs=3857,
                           resolution=(10, 20), bbox=(0, 0, 1, 1), bbox_crs="EPSG:4326", resampling="lanczos",
                           composite="median", chunks=512)
with cogpu.open_mosaic("a.tif", like=array, dtype="float32", nodata=-1.5, max_error=0, priority=[1]) as mosaic:
    infos: list[cogpu.SourceInfo] = mosaic.sources
    left: int = infos[0].window[1]
cogpu.write_vrt("a.vrt", [pathlib.Path("a.tif"), "b.tif"], shape=(None, 100), composite="last")
cogpu.open("a.vrt", vrt_sources="below")
with cogpu.open("a.tif") as file:
    pixels = np.asarray(file.read(bands=1, dtype="float32", out_shape=(5, 5)))
    mask: cogpu.Array = file.read_mask(window=(0, 0, 5, 5), boundless=True)
    scales: tuple[float, ...] = file.scales
    if file.transform is not None:
        x, y = file.transform.at(0.5, 0.5)
    tags: dict[str, str] = file.metadata(1, "DOMAIN")
    cogpu.read_many([(file, {"window": (0, 0, 1, 1)})])
    cogpu.open_geotiff(file)
with open("a.tif", "rb") as opened:
    verdict = cogpu.check(opened)["verdict"]
cogpu.configure(threads=3, network={"schemes": "https"})
names = [device["name"] for device in cogpu.devices()]
try:
    cogpu.open(cogpu.Stored(None, "a.tif"))
except (cogpu.MissingFileError, cogpu.Error) as error:
    print(error.block, xrspatial, cogpu.compat.xrspatial, cogpu.georef, cogpu.engine.Engine)
'''
WRONG = '''
import cogpu

cogpu.open_geotiff("a.tif", maskd=True)
cogpu.open_geotiff("a.tif", overview_level=1)
cogpu.to_geotiff([1], "b.tif", cogg=True)
cogpu.open("a.tif", imag=1)
cogpu.open_geotif("a.tif")
cogpu.open_geotiff("a.tif", resampling="cubik")
cogpu.open("a.tif").read(windw=None)
cogpu.open_geotiff(5)
cogpu.open("a.tif").shap
cogpu.open_geotiff("a.tif", masked="yes")
cogpu.check("a.tif", strikt=True)
cogpu.configure(thread=3)
cogpu.NoSuchError
cogpu.open_mosaic(["a.tif"], composite="frist")
cogpu.open_mosaic(5)
cogpu.open("a.vrt", vrt_sources="all")
cogpu.Source("a.tif", band=1)
'''
WRONG_LINES = [number for number, line in enumerate(WRONG.splitlines(), 1) if line.startswith("cogpu.")]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "valid.py").write_text(VALID)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def pyright(folder, include, mode="standard"):
    """{file: lines of errors}."""
    found = shutil.which("basedpyright", path=pathlib.Path(sys.executable).parent)
    if not found:
        pytest.skip("basedpyright is not installed")
    settings = {"include": list(map(str, include)), "typeCheckingMode": mode, "pythonVersion": "3.11",
                "reportMissingImports": False, "reportMissingModuleSource": False, "reportMissingTypeStubs": False,
                "reportPrivateUsage": False,  # modules of the package use each other's
                "extraPaths": [] if PACKAGE == "installed" else [PACKAGE]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    run = subprocess.run([found, "--project", folder, "--pythonpath", sys.executable, "--outputjson"],
                         capture_output=True, text=True)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == len(include), run.stdout + run.stderr
    errors = {}
    for one in report["generalDiagnostics"]:
        if one["severity"] == "error":
            errors.setdefault(pathlib.Path(one["file"]).name, []).append((one["range"]["start"]["line"] + 1,
                                                                          one["message"]))
    return errors


def test_pyright_accepts_and_rejects(project):
    errors = pyright(project, ["valid.py", "wrong.py"])
    assert "valid.py" not in errors, errors["valid.py"]
    assert sorted({line for line, _ in errors["wrong.py"]}) == WRONG_LINES


def test_mypy_accepts_and_rejects(project):
    pytest.importorskip("mypy")
    environment = {**os.environ, "MYPYPATH": "" if PACKAGE == "installed" else PACKAGE}
    run = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--ignore-missing-imports",
                          "--no-error-summary", "--cache-dir", project / "cache", "valid.py", "wrong.py"],
                         cwd=project, env=environment, capture_output=True, text=True)
    errors = [line.split(":")[:2] for line in run.stdout.splitlines() if ": error:" in line]
    expected = [("wrong.py", line) for line in WRONG_LINES]
    assert sorted({(name, int(line)) for name, line in errors}) == expected, run.stdout


def test_public_modules_are_strict_to_pyright(tmp_path):
    include = [*((FOLDER / f"{name}.py").resolve() for name in PUBLIC), (FOLDER / "_cogpu.pyi").resolve(),
               (FOLDER / "_types.pyi").resolve()]
    assert pyright(tmp_path, include, "strict") == {}


def test_public_modules_are_strict_to_mypy(tmp_path):
    pytest.importorskip("mypy")
    run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
                          "--ignore-missing-imports", "--cache-dir", tmp_path,
                          *(f"cogpu/{name}.py" for name in (*PUBLIC, *WITH_OTHERS))],
                         cwd=FOLDER.parent, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_public_functions_have_types():
    """Of every parameter of what the package offers."""
    def functions(body):
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from functions(node.body)
            elif isinstance(node, ast.FunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
                yield node

    for name, wanted in (("file", {"open", "check", "read_many", "read", "read_mask", "metadata", "domains",
                                   "__init__"}),
                         ("read", {"open_geotiff"}), ("write", {"to_geotiff"}), ("__init__", {"configure"}),
                         ("torch", {"__init__", "set_epoch"}), ("windows", {"__init__", "draw", "survey"}),
                         ("mosaic", {"open_mosaic", "write_vrt"}), ("dask", {"blocks"}), ("dask_write", {"write"}), ("engine", {"open_dataset"})):
        tree = ast.parse((FOLDER / f"{name}.py").read_text())
        for node in functions(tree.body):
            if node.name in wanted:
                wanted = wanted - {node.name}
                arguments = [one for one in (*node.args.args, *node.args.kwonlyargs) if one.arg != "self"]
                assert all(one.annotation for one in arguments) and node.returns, node.name
        assert not wanted


def test_the_stub_of_the_engine_is_complete():
    stub = ast.parse((FOLDER / "_cogpu.pyi").read_text())
    named = {node.target.id if isinstance(node, ast.AnnAssign) else node.name: node for node in stub.body
             if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))}
    assert {name for name in dir(_cogpu) if not name.startswith("__")} - {"Memory"} == set(named)
    for name in ("Array", "File", "Writer"):
        members = {node.name for node in named[name].body if isinstance(node, ast.FunctionDef)}
        there = {member for member in vars(getattr(_cogpu, name)) if not member.startswith("__")
                 or "array" in member or "dlpack" in member}
        assert there <= members, there - members
