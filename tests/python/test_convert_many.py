"""cogpu convert IN... --to DIR: names, failures, --jobs, --resume and runs that are killed."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

rasterio = pytest.importorskip("rasterio")
from test_cli import BINARY, failed, run, samples, write  # noqa: E402

pytestmark = pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built")

MANIFEST = "cogpu-manifest.tsv"


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "in").mkdir()
    return [write(tmp_path / "in" / f"{i} odd%name.tif", samples((1, 70, 80), "u2")) for i in range(5)]


def many(inputs, folder, *words, code=0):
    result = run("convert", *inputs, "--to", folder, "--json", *words)
    assert result.returncode == code, result.stderr
    told = json.loads(result.stdout)
    return {one["error"]["file"] if "error" in one else one["file"]: one for one in told}


def skipped(told):
    return sorted(os.path.basename(name)[0] for name, one in told.items() if one.get("skipped"))


def pixels_of(path):
    with rasterio.open(path) as file:
        return file.read()


@pytest.mark.parametrize("jobs", [1, 3])
def test_many_files(inputs, tmp_path, jobs):
    out = tmp_path / "out"
    result = run("convert", *inputs, "--to", out, "--cog", "--jobs", jobs)
    lines = result.stdout.decode().splitlines()
    assert result.returncode == 0 and result.stderr == b""
    assert len(lines) == 6 and lines[-1] == "5 converted, 0 skipped, 0 failed"
    assert sorted(line.split(": ")[0] for line in lines[:-1]) == [str(out / path.name) for path in inputs]
    assert sorted(os.listdir(out)) == sorted([MANIFEST, *(path.name for path in inputs)])
    for path in inputs:
        assert (pixels_of(out / path.name) == pixels_of(path)).all()


def test_one_that_fails_does_not_stop_the_others(inputs, tmp_path):
    inputs[1].write_bytes(b"no TIFF")
    inputs[3].unlink()
    told = many(inputs, tmp_path / "out", "--jobs", 2, code=1)
    assert sorted(name for name, one in told.items() if "error" in one) == [str(inputs[1]), str(inputs[3])]
    assert sorted(os.listdir(tmp_path / "out")) == sorted([MANIFEST, *(inputs[i].name for i in (0, 2, 4))])
    result = run("convert", *inputs, "--to", tmp_path / "out", "--quiet")
    assert result.returncode == 1 and result.stdout == b"" and len(result.stderr.splitlines()) == 2


def test_resume_skips_what_is_finished(inputs, tmp_path):
    out = tmp_path / "out"
    assert skipped(many(inputs[:3], out, "--resume")) == []
    assert skipped(many(inputs, out, "--resume")) == ["0", "1", "2"]
    assert skipped(many(inputs, out, "--resume")) == list("01234")
    assert skipped(many(inputs, out)) == []
    os.utime(inputs[0], ns=(1, 1))  # the input has changed
    (out / inputs[1].name).unlink()  # the output is gone
    (out / inputs[2].name).write_bytes(b"other")  # or is another
    assert skipped(many(inputs, out, "--resume")) == ["3", "4"]
    assert skipped(many(inputs, out, "--resume", "--codec", "lzw")) == []  # other options, another file
    assert skipped(many(inputs, out, "--resume", "--codec", "lzw", "--jobs", 2, "--threads", 1)) == list("01234")


def test_a_torn_manifest_line_is_skipped(inputs, tmp_path):
    out = tmp_path / "out"
    many(inputs, out)
    text = (out / MANIFEST).read_bytes()
    (out / MANIFEST).write_bytes(b"\t\t\n\x00junk\nx\n" + text[:-20])
    assert skipped(many(inputs, out, "--resume")) == list("0123")
    assert skipped(many(inputs, out, "--resume")) == list("01234")


def test_a_killed_run_loses_at_most_the_files_in_flight(tmp_path):
    """SIGKILL at any time: what was finished is listed, whole, and not converted again."""
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    inputs = [write(folder / f"{i:02}.tif", samples((1, 600, 600), "u2"), compress="none") for i in range(16)]
    jobs = 2
    process = subprocess.Popen([BINARY, "convert", *map(str, inputs), "--to", str(out), "--jobs", str(jobs), "--codec", "lzma", "--compression-level", "9"],
                               stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if (out / MANIFEST).exists() and (out / MANIFEST).read_bytes().count(b"\n") >= 4:
            break
        time.sleep(0.001)
    process.kill()
    process.wait(60)
    listed = [line.split(b"\t")[0].decode() for line in (out / MANIFEST).read_bytes().split(b"\n")[:-1]]
    complete = sorted(path.name for path in out.glob("*.tif"))
    assert set(listed) <= set(complete) and len(complete) - len(listed) <= jobs
    for name in complete:
        assert (pixels_of(out / name) == pixels_of(folder / name)).all()
    told = many(inputs, out, "--resume", "--codec", "lzma", "--compression-level", "9")
    assert sorted(os.path.basename(name) for name, one in told.items() if one.get("skipped")) == sorted(listed)
    assert sorted(os.listdir(out)) == sorted([MANIFEST, *(path.name for path in inputs)])


def test_an_interrupted_run_leaves_no_part_files(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    inputs = [write(folder / f"{i:02}.tif", samples((1, 600, 600), "u2"), compress="none") for i in range(16)]
    process = subprocess.Popen([BINARY, "convert", *map(str, inputs), "--to", str(out), "--jobs", "2", "--codec", "lzma", "--compression-level", "9"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None and not (out.exists() and list(out.glob("*.tif"))):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (-signal.SIGINT, 0)
    assert not list(out.glob("*.cogpu-part")) and process.stderr.read() == b""


def test_names_that_cannot_be(inputs, tmp_path):
    (tmp_path / "other").mkdir()
    twin = tmp_path / "other" / inputs[0].name
    twin.write_bytes(inputs[0].read_bytes())
    out = tmp_path / "out"
    assert "two inputs would become" in failed("convert", inputs[0], twin, "--to", out, code=2)
    assert "no file name" in failed("convert", "-", "--to", out, code=2)
    assert "no name" in failed("convert", f"{tmp_path}/", "--to", out, code=2)
    assert "--to" in failed("convert", *inputs, code=2)
    assert "many files" in failed("convert", inputs[0], out, "--resume", code=2)
    assert "cannot be a URL" in failed("convert", *inputs, "--to", "s3://bucket/key", code=2)
    assert not out.exists()
    before = inputs[0].read_bytes()
    result = run("convert", *inputs, "--to", inputs[0].parent)
    assert result.returncode == 1 and result.stderr.count(b"choose another directory") == 5 and inputs[0].read_bytes() == before


def test_no_clobber_of_many(inputs, tmp_path):
    out = tmp_path / "out"
    many(inputs[:2], out)
    told = many(inputs, out, "--no-clobber", code=1)
    assert sum("error" in one for one in told.values()) == 2 and len(list(out.glob("*.tif"))) == 5
    assert skipped(many(inputs, out, "--no-clobber", "--resume")) == list("01234")


@pytest.mark.parametrize("command", ["info", "check", "checksum"])
def test_several_inputs(inputs, command):
    alone = [run(command, path, "--json") for path in inputs]
    together = run(command, *inputs, "--json")
    assert json.loads(together.stdout) == [json.loads(one.stdout) for one in alone]
    assert together.returncode == max(one.returncode for one in alone)
    text = run(command, *inputs).stdout.decode()
    assert all(path.name in text for path in inputs)
    missing = run(command, inputs[0], "missing.tif", inputs[1], "--json")
    told = json.loads(missing.stdout)
    assert missing.returncode == 1 and [("error" in one) for one in told] == [False, True, False]
    assert np.all([one["file"] for one in (told[0], told[2])] == [str(inputs[0]), str(inputs[1])])
