"""bench/gpu_crops.py, in a small size on the emulated GPU: each part runs, and a wrong pixel is seen."""

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

pytest.importorskip("torch")
pytest.importorskip("imagecodecs")
sys.path.insert(0, str(ROOT / "bench"))
import gpu_crops  # noqa: E402
import gpu_files  # noqa: E402


def run(tmp_path, *words):
    command = [sys.executable, gpu_crops.__file__, "--emu", "--tiles", "48", "--files", "3", "--json", tmp_path / "found"]
    printed = subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout
    return json.loads((tmp_path / "found").read_text()), printed


def test_crops_and_training(tmp_path):
    found, printed = run(tmp_path, "--only", "crops", "--only", "train")
    assert set(found) == {f"{part}, {codec}, tiles of 48" for part in ("crops", "train") for codec in ("zlib", "zstd")}
    crops, train = found["crops, zstd, tiles of 48"], found["train, zstd, tiles of 48"]
    ahead = {f"Windows, prefetch={count}" for count in (0, 1, 2)}
    assert {*ahead, "read_windows, one array", "read_many, kept arrays"} <= set(crops) and all(crops.values())
    assert set(train) == {*ahead, "the same batch"} and all(row["ms"] > 0 for row in train.values())
    assert "| train, zlib, tiles of 48 | the same batch | " in printed and "utilisation 100 %" in printed


def test_single_reads(tmp_path):
    found, printed = run(tmp_path, "--only", "latency", "--only", "host")
    assert set(found["latency"]) == {"kept array", "new array", "CPU, host memory"}
    assert found["host"]["CPU"]["ms"] > 0
    assert "ms" in found["host"]["GPU"] or "not measured: GPU" in printed


def test_a_wrong_pixel_is_seen(tmp_path):
    scene = np.random.default_rng(3).integers(0, 999, (96, 96, 4)).astype("uint16")
    paths = gpu_crops.make_files(tmp_path, [scene], gpu_files.Case("scene", "zlib", 2, "48"), 2)
    device = gpu_crops.Device(is_emulated=True)
    gpu_crops.Crops(device, paths, [scene], 32, 3).check()
    with pytest.raises(RuntimeError, match="WRONG PIXELS"):
        gpu_crops.Crops(device, paths, [scene + 1], 32, 3).check()
