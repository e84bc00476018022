"""What commands do to files that are there already: inputs that would be removed, owners, permissions, signals, leftovers.

A command never deletes a file that it reads, replaces no file that the user may not write, and leaves nothing behind.
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
from rasterio.enums import Resampling  # noqa: E402
from test_cli import BINARY, done, failed, run, samples, write  # noqa: E402

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")

NOBODY = 65534
SIDECARS = [".ovr", ".msk", ".msk.ovr", ".aux.xml"]


def state(folder):
    return {name: (folder / name).read_bytes() for name in sorted(os.listdir(folder))}


def has_png():
    return json.loads(done("devices", "--json"))["libraries"]["libpng"] is not None


# ---- inputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", SIDECARS)
@pytest.mark.parametrize("name", ["same", "symlink", "hardlink", "relative", "other folder"])
def test_no_command_deletes_its_input(tmp_path, ending, name):
    """The input would be taken for a sidecar of the file that it replaces, and be removed with that."""
    old = write(tmp_path / "x.tif", samples((1, 20, 20), "u1"), tiled=False)
    beside = write(tmp_path / "made.tif", samples((1, 40, 40), "u1"), tiled=False).rename(tmp_path / f"x.tif{ending}")
    source, target = beside, old
    if name == "symlink":
        source = tmp_path / "link.tif"
        source.symlink_to(beside)
    elif name == "hardlink":
        source = tmp_path / "link.tif"
        os.link(beside, source)
    elif name == "relative":
        source = tmp_path / ".." / tmp_path.name / beside.name
    elif name == "other folder":
        (tmp_path / "there").symlink_to(tmp_path)
        target = tmp_path / "there" / "x.tif"
    before = {path: path.read_bytes() for path in (old, beside)}
    line = failed("convert", source, target, code=2)
    assert f"x.tif{ending} is an input" in line and "another path" in line
    assert {path: path.read_bytes() for path in (old, beside)} == before
    done("convert", source, tmp_path / "fine.tif", "--quiet")


def test_overviews_of_another_input_are_not_deleted(tmp_path):
    """y.tif reads its overviews from the sidecars of x.tif."""
    pixels = samples((1, 200, 200), "u1")
    write(tmp_path / "x.tif", pixels)
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(tmp_path / "x.tif", "r+") as file:
        file.build_overviews([2], Resampling.nearest)
    write(tmp_path / "y.tif", pixels)
    (tmp_path / "y.tif.ovr").symlink_to("x.tif.ovr")
    before = state(tmp_path)
    for words in [], ["--level", 1]:
        assert "x.tif.ovr is an input" in failed("convert", tmp_path / "y.tif", tmp_path / "x.tif", *words, code=2)
    assert state(tmp_path) == before


def test_in_place_keeps_what_is_beside(tmp_path):
    pixels = samples((1, 200, 200), "u1")
    path = write(tmp_path / "x.tif", pixels)
    with rasterio.Env(TIFF_USE_OVR=True), rasterio.open(path, "r+") as file:
        file.build_overviews([2], Resampling.nearest)
    (tmp_path / "link.tif").symlink_to("x.tif")
    for source in path, tmp_path / "link.tif":
        done("convert", source, path, "--quiet")
        with rasterio.open(path) as file:
            assert (file.read() == pixels).all() and file.overviews(1) == [2]


# ---- files that are replaced -------------------------------------------------------------------------


def commands(path, folder):
    every = [["convert", path, folder / "out.tif"], ["read", path, "-o", folder / "out.npy"], ["read", path, "-o", folder / "out.raw"]]
    if has_png():
        every += [["read", path, "-o", folder / "out.png"], ["preview", path, folder / "out.png"]]
    return every


def output_of(command):
    return command[command.index("-o") + 1] if "-o" in command else command[2]


def as_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.mark.parametrize("which", range(5))
def test_output_keeps_permissions(tmp_path, which):
    path = write(tmp_path / "in.tif", samples((1, 40, 40), "u1"))
    command = dict(enumerate(commands(path, tmp_path))).get(which) or pytest.skip("built without libpng")
    out = output_of(command)
    for mode in 0o640, 0o604, 0o600:
        subprocess.run([BINARY, *map(str, command), "--quiet"], check=True, umask=0o027)
        assert out.stat().st_mode & 0o7777 == mode
        out.chmod(0o604 if mode == 0o640 else 0o600)
    assert sorted(os.listdir(tmp_path)) == sorted(["in.tif", out.name])


def identity(path):
    about = path.stat()
    return about.st_ino, about.st_uid, about.st_gid, about.st_mode, about.st_mtime_ns


@pytest.fixture
def open_folder():
    """A folder that every user may write to; pytest's own are for one user."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


@needs_root
@pytest.mark.parametrize("which", range(5))
def test_output_keeps_owner_and_read_only_files(open_folder, which):
    tmp_path = open_folder
    path = write(tmp_path / "in.tif", samples((1, 40, 40), "u1"))
    command = dict(enumerate(commands(path, tmp_path))).get(which) or pytest.skip("built without libpng")
    out, words = output_of(command), [BINARY, *map(str, command), "--quiet"]
    out.write_bytes(b"old")
    os.chown(out, 4321, 8765)
    out.chmod(0o664)
    subprocess.run(words, check=True)
    about = out.stat()
    assert (about.st_uid, about.st_gid, about.st_mode & 0o7777) == (4321, 8765, 0o664) and out.read_bytes() != b"old"
    out.write_bytes(b"old")
    before = identity(out)
    denied = subprocess.run(words, preexec_fn=as_nobody, capture_output=True, text=True)
    assert denied.returncode == 1 and "cannot replace the file: Permission denied" in denied.stderr, denied.stderr
    assert out.read_bytes() == b"old" and identity(out) == before and sorted(os.listdir(tmp_path)) == sorted(["in.tif", out.name])


@pytest.mark.parametrize("which", range(5))
def test_no_clobber(tmp_path, which):
    path = write(tmp_path / "in.tif", samples((1, 40, 40), "u1"))
    command = dict(enumerate(commands(path, tmp_path))).get(which) or pytest.skip("built without libpng")
    done(*command, "--no-clobber", "--quiet")
    before = state(tmp_path)
    assert "File exists" in failed(*command, "--no-clobber")
    assert state(tmp_path) == before
    done(*command, "--quiet")


def test_stale_part_files_are_removed(tmp_path):
    path = write(tmp_path / "in.tif", samples((1, 40, 40), "u1"))
    for command in commands(path, tmp_path):
        out = output_of(command)
        (tmp_path / f"{out.name}.0123456789abcdef.cogpu-part").write_bytes(b"left by a dead process")
        done(*command, "--quiet")
    assert not list(tmp_path.glob("*.cogpu-part"))


# ---- signals -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A file that takes seconds to be read and little room."""
    path = tmp_path_factory.mktemp("slow") / "slow.tif"
    with rasterio.open(path, "w", driver="GTiff", count=1, height=40000, width=40000, dtype="uint8", tiled=True, sparse_ok=True):
        pass
    return path


def start(command, ignored=None):
    def before():
        if ignored:
            signal.signal(ignored, signal.SIG_IGN)
    return subprocess.Popen([BINARY, *map(str, command)], preexec_fn=before, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for_part(folder, process):
    deadline = time.monotonic() + 60
    while not list(folder.glob("*.cogpu-part")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_read_removes_its_part_file_when_interrupted(slow, tmp_path, number):
    out = tmp_path / "out.raw"
    out.write_bytes(b"old")
    process = start(["read", slow, "-o", out])
    wait_for_part(tmp_path, process)
    process.send_signal(number)
    assert process.wait(60) in (-number, 0)
    assert os.listdir(tmp_path) == ["out.raw"]
    assert process.returncode == 0 or out.read_bytes() == b"old"


def test_read_ignores_what_nohup_ignores(slow, tmp_path):
    out = tmp_path / "out.raw"
    process = start(["read", slow, "-o", out, "--window", "0,0,40000,20000"], ignored=signal.SIGHUP)
    wait_for_part(tmp_path, process)
    process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0 and out.stat().st_size == 40000 * 20000


def test_a_killed_read_leaves_a_part_that_the_next_removes(slow, tmp_path):
    out = tmp_path / "out.raw"
    process = start(["read", slow, "-o", out])
    wait_for_part(tmp_path, process)
    process.kill()
    process.wait(60)
    assert process.returncode == 0 or (not out.exists() and len(os.listdir(tmp_path)) == 1)
    done("read", slow, "-o", out, "--window", "0,0,10,10", "--quiet")
    assert os.listdir(tmp_path) == ["out.raw"] and out.stat().st_size == 100


# ---- stdout ------------------------------------------------------------------------------------------


def test_stdout_as_output(tmp_path):
    pixels = samples((3, 50, 60), "u2")
    path = write(tmp_path / "in.tif", pixels)
    (tmp_path / "a.tif").write_bytes(run("convert", path, "-", "--cog", "--quiet").stdout)
    with rasterio.open(tmp_path / "a.tif") as file:
        assert (file.read() == pixels).all()
    (tmp_path / "a.npy").write_bytes(run("read", path, "-o", "-", "--quiet").stdout)
    assert (np.load(tmp_path / "a.npy") == pixels).all()
    assert run("read", path, "-o", "-", "--format", "RAW", "--quiet").stdout == pixels.tobytes()
    told = run("convert", path, "-", "--json")
    assert json.loads(told.stderr)["output"] == "-" and told.stdout[:2] == b"II"
    if has_png():
        assert run("preview", path, "-").stdout[:4] == b"\x89PNG" == run("read", path, "-o", "-", "--format", "png").stdout[:4]
    assert not (set(os.listdir(tmp_path)) - {"in.tif", "a.tif", "a.npy"})


def test_stdout_that_is_a_terminal_is_refused(tmp_path):
    path = write(tmp_path / "in.tif", samples((1, 50, 60), "u2"))
    leader, follower = os.openpty()
    for command in ["convert", path, "-"], ["read", path, "-o", "-"], ["preview", path, "-"]:
        result = subprocess.run([BINARY, *map(str, command)], stdout=follower, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 2 and "stdout is a terminal" in result.stderr
    os.close(follower)
    os.close(leader)


def test_a_full_stdout_is_an_error(tmp_path):
    path = write(tmp_path / "in.tif", samples((1, 50, 60), "u2"))
    for command in ["convert", path, "-"], ["read", path, "-o", "-"]:
        with open("/dev/full", "wb") as full:
            result = subprocess.run([BINARY, *map(str, command)], stdout=full, stderr=subprocess.PIPE)
        assert result.returncode == 1
