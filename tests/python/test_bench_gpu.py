"""The GPU's benchmark, without a GPU: its files hold the pixels, its check sees a wrong one, its tables name
who is missing and who is wrong."""

import copy
import os
import pathlib
import subprocess
import sys

import cogpu_ctypes as cogpu
import numpy as np
import pytest
import rasterio

sys.path.insert(0, str(cogpu.ROOT / "bench"))
import bench_gpu  # noqa: E402
import gpu_files  # noqa: E402
import gpu_report  # noqa: E402

WAYS = {case.name: case for case in gpu_files.cases() if not case.side}


def ground(dtype, side=300):
    steps = np.random.default_rng(5).integers(-2, 3, (side, side))
    return (np.cumsum(steps, axis=1) / (4 if dtype == "float32" else 1) + 900).astype(dtype)


@pytest.mark.no_library
@pytest.mark.parametrize("write", [gpu_files.write_by_gdal, gpu_files.write_by_ourselves])
@pytest.mark.parametrize("case", WAYS.values(), ids=WAYS)
def test_files_hold_the_pixels(tmp_path, case, write):
    if write == gpu_files.write_by_gdal and not case.written_by_gdal:
        pytest.skip("not GDAL's")
    pixels = ground(case.raster)
    write(tmp_path / "a.tif", pixels, case)
    with rasterio.open(tmp_path / "a.tif") as file:
        assert np.array_equal(file.read(1), pixels)
        assert file.profile.get("compress", "none") == case.codec.replace("zlib", "deflate")
        assert file.tags(ns="IMAGE_STRUCTURE").get("PREDICTOR", "1") == str(case.predictor)
        rows, columns = file.block_shapes[0]
        assert rows == case.rows and columns == (file.width if case.is_striped else case.rows)
        assert file.crs.to_epsg() == 32632 and file.transform.c == 356000


@pytest.fixture(scope="module")
def device():
    import gpu_readers
    return gpu_readers.Device(is_emu=True)


@pytest.mark.parametrize("job", ["file", "memory"])
def test_a_wrong_pixel_is_seen(tmp_path, device, job):
    import gpu_readers
    pixels, path = ground("float32", 80), tmp_path / "a.tif"
    gpu_files.write_by_gdal(path, pixels, gpu_files.Case("float32", "lzw", 3, "s64"))
    kinds = [getattr(gpu_readers, name) for name in ("Cogpu", "Processor", "Wire", "NvTiff", "XarraySpatial")]
    readers, missing = gpu_readers.find(device, kinds)
    assert set(missing) == {"nvTIFF", "xarray-spatial"}
    device.begin(path, pixels)
    source = path if job == "file" else device.stored
    found = gpu_readers.measure(device, readers, job, source, repeats=1)
    assert found["cogpu"]["wrong"] == 0 and found["cogpu"]["ms"] > 0
    assert set(found) == {"cogpu", "processor + upload" if job == "file" else "wire"}
    device.pixels = pixels.copy()
    device.pixels[70, 3] += 1
    assert gpu_readers.measure(device, readers[:1], job, source, repeats=1)["cogpu"]["wrong"] == 1
    device.end()


@pytest.mark.no_library
def test_a_reader_of_the_list_may_leave_early():
    end, out = os.pipe()
    os.close(end)
    listed = subprocess.run([sys.executable, bench_gpu.__file__, "--list"], stdout=out, stderr=subprocess.PIPE)
    os.close(out)
    assert listed.stderr == b""


FAKE_READERS = """
import json, sys, time
print(json.dumps({"versions": {}}), flush=True)
for path in sys.argv[1::2]:
    if "ends" in path: sys.exit(3)
    if "hangs" in path: time.sleep(60)
    print("a library says something")
    print(json.dumps({"file": path}), flush=True)
"""


@pytest.mark.no_library
def test_a_reader_that_ends_or_hangs_spoils_its_own_file_alone(tmp_path, monkeypatch):
    (tmp_path / "gpu_readers.py").write_text(FAKE_READERS)
    monkeypatch.setattr(bench_gpu, "BENCH", tmp_path)
    monkeypatch.setattr(bench_gpu, "SECONDS", 1)
    names = ["a", "ends", "b", "hangs", "c"]
    lines = list(bench_gpu.lines_of("gpu_readers.py", [], [(name, "pixels") for name in names], None))
    files = [line for line in lines if "file" in line]
    assert [line["file"] for line in files] == names
    assert ["failed" in line for line in files] == [False, True, False, True, False]
    assert len(lines) - len(files) == 3  # each process says who is there


FOUND = {
    "machine": "a GPU, 1.2", "side": 10000, "repeats": 9, "written_by": "GDAL", "processors": 16,
    "versions": {"cogpu": "1.0", "nvTIFF": "0.8.0"}, "missing": {"xarray-spatial": "No module named 'cupy'"},
    "decode": [{"file": "gpu-float32-lzw-p2-512-10000.tif", "who": "cogpu", "blocks": 400, "stored_bytes": 10**8,
                "decoded_bytes": 4 * 10**8, "scratch_bytes": 0, "ms": 2.0, "gb_s": 200.0, "refused": 0, "wrong": 0}],
    "reads": [{"file": "gpu-float32-lzw-p2-512-10000.tif", "file_bytes": 10**8, "pixel_bytes": 4 * 10**8,
               "from_file": {"cogpu": {"ms": 6.0, "wrong": 0}, "nvTIFF": {"ms": 54.0, "wrong": 0},
                             "processor + upload": {"ms": 80.0, "wrong": 0}, "ring": {"ms": 4.0, "wrong": 0}},
               "from_memory": {"cogpu": {"ms": 5.0, "wrong": 0}, "nvTIFF": {"refused": "not supported"},
                               "wire": {"ms": 2.0}}}],
}


@pytest.mark.no_library
def test_report():
    text = gpu_report.report(FOUND)
    assert "| float32-lzw-p2-512-10000 | 100 | 200.0 | - | 5.0 | - | 6.0 | 54.0 | - | 9.0 | 80.0 | 4.0 | 2.0 |" in text
    assert "- xarray-spatial: No module named 'cupy'" in text
    assert "- nvTIFF, float32-lzw-p2-512-10000: not supported" in text
    assert not gpu_report.has_failed(FOUND)


@pytest.mark.no_library
@pytest.mark.parametrize("who, fails", [("cogpu", True), ("processor + upload", True), ("nvTIFF", False)])
def test_wrong_pixels_are_reported(who, fails):
    found = copy.deepcopy(FOUND)
    found["reads"][0]["from_file"][who]["wrong"] = 7
    assert "WRONG" in gpu_report.report(found)
    assert gpu_report.has_failed(found) == fails


@pytest.mark.no_library
@pytest.mark.parametrize("broken", [
    lambda found: found["reads"][0].pop("from_file") and found["reads"][0].update(failed="ended", from_file={}),
    lambda found: found["reads"][0]["from_memory"].update(cogpu={"refused": "no"}),
    lambda found: found["decode"][0].update(wrong=1),
])
def test_what_cogpu_does_not_do_is_a_failure(broken):
    found = copy.deepcopy(FOUND)
    broken(found)
    gpu_report.report(found)
    assert gpu_report.has_failed(found)


@pytest.mark.no_library
def test_picture(tmp_path):
    pytest.importorskip("matplotlib")
    assert gpu_report.draw(FOUND, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
