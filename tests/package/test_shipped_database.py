"""PROJ's database beside the extension module, as a wheel ships it: it is found without any setting."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import cogpu

DATABASES = [pathlib.Path(folder) / "proj.db" for folder in ("/usr/share/proj", "/usr/local/share/proj")]
PRINT_WKT = "import sys, cogpu; print(cogpu.open(sys.argv[1]).wkt)"


@pytest.fixture
def package(tmp_path):
    """A copy of the package without a database."""
    source = pathlib.Path(cogpu.__file__).parent
    shutil.copytree(source, tmp_path / "cogpu", ignore=shutil.ignore_patterns("data", "__pycache__"))
    return tmp_path / "cogpu"


@pytest.fixture
def database():
    shipped = pathlib.Path(cogpu.__file__).parent / "data" / "proj.db"
    found = [path for path in [shipped, *DATABASES] if path.exists()]
    if not found:
        pytest.skip("no proj.db of this PROJ")
    return found[0]


def print_wkt(package, raster):
    """By a process whose PROJ finds no other database."""
    paths = os.pathsep.join(filter(None, [str(package.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PROJ_DATA": "/nowhere", "PROJ_LIB": "/nowhere"}
    return subprocess.run([sys.executable, "-c", PRINT_WKT, raster], capture_output=True, text=True, env=environment)


def test_database_beside_the_module(package, database, path):
    (package / "data").mkdir()
    shutil.copy(database, package / "data" / "proj.db")
    done = print_wkt(package, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PROJCRS[") and done.stderr == ""


def test_without_a_database_proj_prints_nothing(package, path):
    done = print_wkt(package, path)
    assert "PROJCRS[" not in done.stdout
    assert "Cannot find proj.db" not in done.stderr
