"""The GPU's benchmark, without a GPU: its files hold the pixels, its checks see a wrong one, its tables name
what is missing and what is wrong."""

import copy
import json
import os
import re
import subprocess
import sys
import types

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


@pytest.mark.no_library
@pytest.mark.parametrize("codec", ["deflate", "zlib", "zstd"])
@pytest.mark.parametrize("block, side", [("512", 300), ("s700", 700)])  # a block, and a strip of more than 4 MiB
def test_files_without_imagecodecs(tmp_path, monkeypatch, codec, block, side):
    monkeypatch.setattr(gpu_files, "imagecodecs", None)
    pixels, case = np.tile(ground("float32", side), (1, 3)), gpu_files.Case("float32", codec, 3, block)
    gpu_files.write_by_ourselves(tmp_path / "a.tif", pixels, case)
    with rasterio.open(tmp_path / "a.tif") as file:
        assert np.array_equal(file.read(1), pixels) and file.block_shapes[0][0] == case.rows


@pytest.mark.parametrize("codec", gpu_files.OF_IMAGECODECS)
@pytest.mark.parametrize("block", ["128", "s64"])
def test_files_by_cogpu(tmp_path, monkeypatch, codec, block):
    monkeypatch.setattr(gpu_files, "imagecodecs", None)
    pixels, predictor = ground("uint16"), 2 if codec == "lzw" else 1
    gpu_files.write_by_ourselves(tmp_path / "a.tif", pixels, gpu_files.Case("uint16", codec, predictor, block))
    with rasterio.open(tmp_path / "a.tif") as file:
        assert np.array_equal(file.read(1), pixels) and file.profile["compress"] == codec
        assert file.block_shapes[0] == ((64, 300) if block == "s64" else (128, 128))


@pytest.mark.no_library
def test_files_of_several_bands(tmp_path):
    pixels = np.dstack([ground("uint16", 100) + 5 * band for band in range(4)])
    gpu_files.write_by_ourselves(tmp_path / "a.tif", pixels, gpu_files.Case("scene", "zlib", 2, "64"))
    with rasterio.open(tmp_path / "a.tif") as file:
        assert np.array_equal(file.read(), pixels.transpose(2, 0, 1)) and file.interleaving.value == "PIXEL"


@pytest.mark.no_library
def test_what_cannot_be_made_here_is_named(monkeypatch):
    def find(name):
        raise OSError(f"no lib{name}")
    for name, value in ("imagecodecs", None), ("GDAL", None), ("library", find):
        monkeypatch.setattr(gpu_files, name, value)
    why = {case.codec: gpu_files.cannot_make(case) for case in gpu_files.cases()}
    assert {codec for codec in why if why[codec]} == {"deflate", "zstd"} and "libzstd" in why["zstd"]


@pytest.mark.no_library
def test_a_run_of_small_rasters():
    cases = [case.within(700) for case in gpu_files.cases()]
    assert {case.side for case in cases} == {0, 700}


@pytest.fixture(scope="module")
def device():
    import gpu_readers
    return gpu_readers.Device(is_emu=True)


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
def test_rasters_of_other_types(tmp_path, device, dtype):
    import gpu_readers
    pixels, path = (ground("float32", 80) % 199).astype(dtype), tmp_path / "a.tif"
    gpu_files.write_by_gdal(path, pixels, gpu_files.Case(dtype, "packbits"))
    device.begin(path, pixels)
    found = gpu_readers.measure(device, [gpu_readers.Cogpu(device)], "file", path, repeats=1)["cogpu"]
    device.end()
    assert found["wrong"] == 0


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
    assert set(found) == {"cogpu", "CPU + upload" if job == "file" else "wire"}
    device.pixels = pixels.copy()
    device.pixels[70, 3] += 1
    assert gpu_readers.measure(device, readers[:1], job, source, repeats=1)["cogpu"]["wrong"] == 1
    device.end()


# ---- writing -----------------------------------------------------------------------------------

@pytest.fixture
def bench(tmp_path, monkeypatch, device):
    """A raster of a tile and a bit more on the device, to be written as it is."""
    import gpu_writers
    import rasters
    monkeypatch.setattr(rasters, "DATA", tmp_path)
    np.save(tmp_path / "float32-520.npy", ground("float32", 520)[None])
    bench = gpu_writers.Bench(device)
    bench.begin(gpu_files.WriteCase("float32", "none"), 520)
    yield bench
    device.end()


@pytest.mark.parametrize("gdal", [gpu_files.GDAL, None], ids=["GDAL", "tifffile"])
def test_every_way_of_writing(bench, tmp_path, monkeypatch, gdal):
    import gpu_writers
    monkeypatch.setattr(gpu_files, "GDAL", gdal)
    kinds = (gpu_writers.Cogpu, gpu_writers.Bare, gpu_writers.Wire, gpu_writers.XarraySpatial)
    writers, missing = gpu_writers.find(bench, kinds)
    assert set(missing) == {"xarray-spatial"}
    who = {"memory": {"cogpu", "wire"}, "buffer": {"cogpu"}, "cache": {"cogpu", "bare"}, "file": {"cogpu", "bare"}}
    assert set(who) == set(gpu_writers.JOBS)
    for job, names in who.items():
        found = gpu_writers.measure(bench, writers, job, tmp_path / "a.tif", repeats=1)
        assert set(found) == names
        assert all(one["wrong"] == 0 and one["ms"] > 0 and one["bytes"] == bench.stored.size for one in found.values())
    assert [path.name for path in tmp_path.iterdir()] == ["float32-520.npy"]


@pytest.mark.parametrize("gdal", [gpu_files.GDAL, None], ids=["GDAL", "tifffile"])
def test_a_wrong_file_is_seen(bench, tmp_path, monkeypatch, gdal):
    import gpu_writers
    monkeypatch.setattr(gpu_files, "GDAL", gdal)
    writer, path, pixels = gpu_writers.Cogpu(bench), tmp_path / "a.tif", bench.device.pixels
    writer.file(path)
    assert gpu_writers.wrong_pixels(bench, path) == 0
    bench.device.pixels = np.array(pixels)
    bench.device.pixels[515, 3] += 1
    assert gpu_writers.wrong_pixels(bench, path) == 2  # by each who reads
    bench.device.pixels = pixels[:519]
    with pytest.raises(RuntimeError, match="the first of"):
        gpu_writers.wrong_pixels(bench, path)
    bench.device.pixels, bench.case.cog = pixels, True
    with pytest.raises(RuntimeError, match="1 levels"):
        gpu_writers.wrong_pixels(bench, path)


def test_other_bytes_are_seen(bench, tmp_path):
    import gpu_writers
    writer = gpu_writers.Cogpu(bench)
    assert writer.wrong(writer.memory(None)) == 0
    path = writer.cache(tmp_path / "a.tif")
    assert writer.wrong(path) == 0
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    assert writer.wrong(path) == 1 and gpu_writers.Bare(bench).wrong(path) == 1


def test_the_memory_of_a_cog(bench, tmp_path):
    import gpu_writers
    picked = types.SimpleNamespace(emu=True, device_bytes=0, side=520, peak="cogpu")
    found = gpu_writers.measure_peak(picked)
    assert found["wrong"] == 0 and found["bytes"] > 0 and found["ms"] > 0 and "device_bytes" not in found
    picked.peak = "xarray-spatial"
    assert "needs a GPU" in gpu_writers.measure_peak(picked)["refused"]


@pytest.mark.no_library
def test_every_level_that_is_written_is_encoded_alone():
    jobs = re.findall(r"{COMPRESSION_(\w+), (\d+), \"", (cogpu.ROOT / "bench" / "gpu_encode.c").read_text())
    for case in gpu_files.encode_cases():
        assert (case.codec.upper(), str(case.level)) in jobs, case.name


# ---- the run -----------------------------------------------------------------------------------

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
    assert len(lines) - len(files) == 3  # each process lists the libraries present


def encode_line(who, level, gb_s, ratio):
    return {"case": "write-float32-deflate-p3", "file": "gpu-float32-none-512-8192.tif", "who": who, "step": "encode",
            "predictor": 3, "codec": "deflate", "level": level, "ms": 4.0, "gb_s": gb_s, "ratio": ratio,
            "beside": "zlib 6", "scratch_bytes": 10**7, "wrong": 0, "unsteady": 0}


def written(ms, **beside):
    return {"ms": ms, "bytes": 157_000_000, "wrong": 0, **beside}


FOUND = {
    "machine": "a GPU, 1.2", "side": 10000, "write_side": 8192, "repeats": 9, "written_by": "GDAL", "cpu_cores": 16,
    "versions": {"cogpu": "1.0", "nvTIFF": "0.8.0"}, "missing": {"xarray-spatial": "No module named 'cupy'"},
    "decode": [{"file": "gpu-float32-lzw-p2-512-10000.tif", "who": "cogpu", "blocks": 400, "stored_bytes": 10**8,
                "decoded_bytes": 4 * 10**8, "scratch_bytes": 0, "ms": 2.0, "gb_s": 200.0, "refused": 0, "wrong": 0}],
    "reads": [{"file": "gpu-float32-lzw-p2-512-10000.tif", "file_bytes": 10**8, "pixel_bytes": 4 * 10**8,
               "from_file": {"cogpu": {"ms": 6.0, "wrong": 0}, "nvTIFF": {"ms": 54.0, "wrong": 0},
                             "CPU + upload": {"ms": 80.0, "wrong": 0}, "ring": {"ms": 4.0, "wrong": 0}},
               "from_memory": {"cogpu": {"ms": 5.0, "wrong": 0}, "nvTIFF": {"refused": "not supported"},
                               "wire": {"ms": 2.0}}}],
    "encode": [encode_line("nvcomp", 1, 3.2, 1.123), encode_line("nvcomp", 2, 2.2, 1.023),
               encode_line("cogpu", 6, 81.5, 1.013),
               {"case": "write-float32-deflate-p3", "who": "cogpu", "step": "pack", "ms": 0.3, "gb_s": 890.0, "wrong": 0}],
    "writes": [{"file": "write-float32-deflate-p3", "level": 6, "pixel_bytes": 268_435_456,
                "to_memory": {"cogpu": written(11.0), "wire": written(3.0)}, "to_buffer": {"cogpu": written(10.5)},
                "to_cache": {"cogpu": written(50.25), "bare": written(44.0), "xarray-spatial": written(823.4)},
                "to_file": {"cogpu": written(120.0), "bare": written(110.0)}},
               {"file": "write-cog-float32-deflate-p3", "level": 6, "pixel_bytes": 268_435_456,
                "to_memory": {"cogpu": written(17.0)}, "to_buffer": {"cogpu": written(16.0)},
                "to_cache": {"cogpu": written(60.0), "xarray-spatial": {"refused": "no"}}, "to_file": {}}],
    "peaks": [{"file": "stream", "who": "cogpu", "allowed": 64 << 20, "ms": 40.0, "device_bytes": 9 * 10**7,
               "host_bytes": 10**8, "bytes": 1, "wrong": 0, "note": "without page-locked memory"},
              {"file": "stream", "who": "xarray-spatial", "allowed": 0, "refused": "No module named 'cupy'"}],
}


@pytest.mark.no_library
def test_report():
    text = gpu_report.report(FOUND)
    assert "| float32-lzw-p2-512-10000 | 100 | 200 | - | 5.0 | - | 6.0 | 54.0 | - | 9.0 | 80.0 | 4.0 | 2.0 |" in text
    assert ("| float32-deflate-p3 | 6 | 81.5 | 1.013 x zlib 6 | 1: 3.2 (1.123), 2: 2.2 (1.023) | 890 | - | 10.0 | 0 |" in text)
    assert "| float32 deflate 6 p3 | 11.0 | 10.5 | 3.0 | 50.2 | 44.0 | 823 | 120 | 110 | 157.0 | 157.0 |" in text
    assert "| float32 deflate 6 p3, COG | 17.0 | 16.0 | - | 60.0 | - | - | - | - | 157.0 | - |" in text
    assert "| cogpu | 64 MiB | 40.0 | 90.0 | 100.0 |" in text and "| xarray-spatial | default | - | - | - |" in text
    assert "- xarray-spatial: No module named 'cupy'" in text
    assert "- nvTIFF, float32-lzw-p2-512-10000: not supported" in text
    assert "- cogpu, memory of a COG: without page-locked memory" in text
    assert not gpu_report.has_failed(FOUND)


@pytest.mark.no_library
def test_tables_of_the_page(tmp_path):
    nothing = {part: [] for part in gpu_report.LISTS}
    reads = FOUND | nothing | {part: FOUND[part] for part in ("decode", "reads")}
    writes = FOUND | nothing | {part: FOUND[part] for part in ("encode", "writes", "peaks")}
    for name, found in (("reads", reads), ("writes", writes)):
        (tmp_path / name).write_text(json.dumps(found))
    text = subprocess.check_output([sys.executable, gpu_report.__file__, tmp_path / "reads", tmp_path / "writes"], text=True)
    assert "| float32 LZW p2 | 200 | - | **6.0** | 54.0 | - | 80.0 | 4.0 | 2.0 |" in text
    assert ("| float32 deflate 6 p3 | 81.5 | 1.013 x zlib 6 | 3.2 (1.123) | **10.5** | **50.2** | 44.0 | 823 | 120 | 110 | 157.0 |"
            in text)
    assert "| float32 deflate 6 p3, COG | - | - | - | **16.0** | **60.0** | - | - | - | - | 157.0 |" in text
    assert "| cogpu | 64 MiB | 40.0 | 90.0 | 100.0 |" in text
    assert "Not measured: xarray-spatial (No module named 'cupy')." in text
    assert set(gpu_report.page_parts(reads)) == {"gpu-read"} and set(gpu_report.page_parts(writes)) == {"gpu-write"}
    page = (cogpu.ROOT / "docs" / "bench-gpu.md").read_text()
    assert all(f"<!-- bench:{mark} -->" in page for mark in gpu_report.page_parts(FOUND))


@pytest.mark.no_library
def test_rows_of_the_page():
    names = ["float32-zlib-p2-1024-3600", "float32-deflate-p3-s3600-3600", "classes-zstd-512-5000", "float32-zlib-p3-512-10000",
             "uint16-zstd-p2-1024-11264", "uint16-lzw-p2-256-10000"]
    read = {"cogpu": {"ms": 6.0, "wrong": 0}}
    found = FOUND | {"decode": [], "reads": [
        {"file": f"gpu-{name}.tif", "file_bytes": 1, "from_file": read, "from_memory": {}} for name in names]}
    titles = [row.split("|")[1].strip() for row in gpu_report.page_reads(found).splitlines()[2:]]
    assert titles == ["float32 zlib p2, tiles of 1024, 3600 x 3600", "float32 deflate p3, one strip, 3600 x 3600",
                      "classes zstd, 5000 x 5000", "uint16 zstd p2, tiles of 1024, 11264 x 11264"]


@pytest.mark.no_library
@pytest.mark.parametrize("part, job, who, fails", [
    ("reads", "from_file", "cogpu", True), ("reads", "from_file", "CPU + upload", True),
    ("reads", "from_file", "nvTIFF", False), ("writes", "to_cache", "cogpu", True),
    ("writes", "to_cache", "xarray-spatial", False)])
def test_wrong_pixels_are_reported(part, job, who, fails):
    found = copy.deepcopy(FOUND)
    found[part][0][job][who]["wrong"] = 7
    assert "WRONG" in gpu_report.report(found)
    assert gpu_report.has_failed(found) == fails


@pytest.mark.no_library
@pytest.mark.parametrize("broken", [
    lambda found: found["reads"][0].pop("from_file") and found["reads"][0].update(failed="ended", from_file={}),
    lambda found: found["reads"][0]["from_memory"].update(cogpu={"refused": "no"}),
    lambda found: found["decode"][0].update(wrong=1),
    lambda found: found["encode"][2].update(unsteady=1),
    lambda found: found["writes"].append({"file": "write-float32-none", "failed": "ended"}),
    lambda found: found["peaks"][0].update(wrong=1),
    lambda found: found["peaks"].append({"file": "--peak=cogpu", "who": "cogpu", "allowed": 0, "failed": "ended"}),
])
def test_what_cogpu_does_not_do_is_a_failure(broken):
    found = copy.deepcopy(FOUND)
    broken(found)
    gpu_report.report(found)
    gpu_report.page_parts(found)
    assert gpu_report.has_failed(found)


@pytest.mark.no_library
def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    paths = gpu_report.draw(FOUND, tmp_path)
    assert [path.name for path in paths] == ["gpu.png", "gpu-write.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    assert not gpu_report.draw(FOUND | {"reads": [], "writes": []}, tmp_path)
