"""On a GPU: arrays of CuPy and PyTorch in and out, the order of streams, lifetimes, and the whole package with CuPy
underneath.

Where there is no GPU, or no CuPy, all of it is skipped; tests on the emulated GPU stand with the parts they test.
make test-gpu runs these, by themselves: others on the GPU would change its free memory.
"""

import gc
import subprocess
import sys

import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin

import cogpu
from cogpu import _cogpu

cupy = pytest.importorskip("cupy")
if not any(device["name"].startswith("cuda") for device in _cogpu.devices()):
    pytest.skip("no GPU", allow_module_level=True)


@pytest.fixture(scope="module")
def pixels():
    rng = np.random.default_rng(7)
    smooth = np.add.outer(np.arange(700, dtype="f4"), np.arange(900, dtype="f4"))
    pixels = np.stack([smooth * (band + 1) + rng.integers(0, 9, smooth.shape) for band in range(3)]).astype("f4")
    pixels[:, 10:20, 30:40] = -9999
    return pixels


@pytest.fixture(scope="module")
def path(pixels, tmp_path_factory):
    name = tmp_path_factory.mktemp("cuda") / "three.tif"
    bands, height, width = pixels.shape
    with rasterio.open(name, "w", driver="GTiff", count=bands, height=height, width=width, dtype="float32",
                       nodata=-9999, tiled=True, blockxsize=128, blockysize=128, compress="deflate", predictor=3,
                       crs="EPSG:32633", transform=from_origin(400000, 5000000, 10, 10)) as file:
        file.write(pixels)
        file.build_overviews([2, 4])
    return name


@pytest.fixture
def file(path):
    with cogpu.open(path) as opened:
        yield opened


def slow(stream, array, value):
    """Work that takes some milliseconds and then sets the array: a reader that does not wait for it is found out."""
    with stream:
        a = cupy.ones((2048, 2048), "f4")
        for _ in range(20):
            a = a @ a * 1e-4
        array[...] = value + 0 * a[0, 0]


# ---- arrays in and out -----------------------------------------------------------------------------

def test_cupy_takes_it_without_a_copy(file, pixels):
    array = file.read(device="cuda")
    taken = cupy.from_dlpack(array)
    assert array.device == "cuda:0" and array.__dlpack_device__() == (2, 0)
    assert taken.shape == pixels.shape and taken.data.ptr == array.__cuda_array_interface__["data"][0]
    assert np.array_equal(taken.get(), pixels)
    assert np.array_equal(cupy.asarray(array).get(), pixels)


def test_torch_takes_it_without_a_copy(file, pixels):
    torch = pytest.importorskip("torch")
    array = file.read(device="cuda")
    tensor = torch.from_dlpack(array)
    assert tensor.is_cuda and tensor.data_ptr() == array.__cuda_array_interface__["data"][0]
    assert np.array_equal(tensor.cpu().numpy(), pixels)


def test_numpy_gets_a_copy_on_request_alone(file, pixels):
    array = file.read(device="cuda")
    with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)):
        np.asarray(array, dtype="f4")
    assert np.array_equal(np.from_dlpack(array, device="cpu"), pixels)
    with pytest.raises(BufferError):
        array.__dlpack__(dl_device=(1, 0), copy=False)


class Interface:
    """Memory that speaks __cuda_array_interface__ alone, as Numba's does."""

    def __init__(self, array, stream=None):
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": stream}
        self.array = array


@pytest.mark.parametrize("shape", ["packed", "slice", "chunky", "upside down"])
@pytest.mark.parametrize("speaks", ["dlpack", "interface"])
def test_out(file, pixels, shape, speaks):
    bands, height, width = pixels.shape
    out = {"packed": lambda: cupy.zeros(pixels.shape, "f4"),
           "slice": lambda: cupy.zeros((bands, height + 5, width + 7), "f4")[:, 2:-3, 3:-4],
           "chunky": lambda: cupy.zeros((height, width, bands), "f4").transpose(2, 0, 1),
           "upside down": lambda: cupy.zeros(pixels.shape, "f4")[:, ::-1]}[shape]()
    if speaks == "dlpack":
        file.read(out=out)
    else:
        file.read(out=Interface(out, cupy.cuda.get_current_stream().ptr or 1))
    assert np.array_equal(out.get(), pixels)


def test_out_of_torch(file, pixels):
    torch = pytest.importorskip("torch")
    out = torch.zeros(pixels.shape, device="cuda")
    file.read(out=out)
    assert np.array_equal(out.cpu().numpy(), pixels)


def test_where_memory_lies(file):
    assert _cogpu.current_device("cuda") == "cuda:0"
    assert _cogpu.device_of(cupy.zeros((4, 4))) == "cuda:0"
    assert _cogpu.device_of(np.zeros((4, 4))) == "cpu"


# ---- streams ---------------------------------------------------------------------------------------

def test_a_read_follows_what_its_target_waits_for(file, pixels):
    stream = cupy.cuda.Stream(non_blocking=True)
    out = cupy.zeros(pixels.shape, "f4")
    slow(stream, out, 5)
    with stream:
        file.read(out=out)
    assert np.array_equal(out.get(), pixels)


@pytest.mark.parametrize("number", [None, 1, 2, "own"])
def test_a_consumer_follows_the_read(file, pixels, number):
    """Without a wait of the host: the consumer's stream waits for the read's."""
    ours, theirs = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    for _ in range(5):
        array = file.read(device="cuda", stream=ours.ptr, wait=False)
        taken = cupy.from_dlpack(ConsumedOn(array, theirs.ptr if number == "own" else number))
        with theirs if number == "own" else cupy.cuda.Stream.null:
            total = taken.astype("f8").sum()
        array.wait()
        theirs.synchronize()  # float() waits for the default stream alone
        assert float(total) == pixels.astype("f8").sum()


class ConsumedOn:
    """An array whose consumer has a stream of our choice."""

    def __init__(self, array, stream):
        self.array, self.stream = array, stream

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **others):
        return self.array.__dlpack__(stream=self.stream, **others)


def test_stream_0_is_refused(file):
    with pytest.raises((BufferError, ValueError)):
        file.read(device="cuda").__dlpack__(stream=0)


def test_a_write_follows_what_its_rows_wait_for(pixels, tmp_path):
    stream = cupy.cuda.Stream(non_blocking=True)
    rows = cupy.zeros((1, 512, 512), "f4")
    slow(stream, rows, 3)
    with stream:
        cogpu.to_geotiff(rows, tmp_path / "late.tif")
        rows[...] = 7
    stream.synchronize()
    with rasterio.open(tmp_path / "late.tif") as written:
        assert (written.read() == 3).all()


# ---- lifetimes -------------------------------------------------------------------------------------

def test_arrays_outlive_files(path, pixels):
    with cogpu.open(path) as file:
        taken = cupy.from_dlpack(file.read(device="cuda"))
    gc.collect()
    assert np.array_equal(taken.get(), pixels)


def test_memory_of_the_device_comes_back(file):
    for turn in range(60):
        array = file.read(device="cuda", wait=turn % 2 == 0)
        if turn % 3 == 0:
            cupy.from_dlpack(array)
        if turn == 9:
            free = cupy.cuda.runtime.memGetInfo()[0]
    del array
    gc.collect()
    assert cupy.cuda.runtime.memGetInfo()[0] >= free - (32 << 20)


def test_the_process_ends_well_with_arrays_alive(path):
    program = f"""
import cogpu, cupy
file = cogpu.open({str(path)!r})
kept = [file.read(device="cuda"), file.read(device="cuda", wait=False)]
capsule = kept[0].__dlpack__(max_version=(1, 0))
taken = cupy.from_dlpack(kept[1])
print("end")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "end", done.stderr


# ---- xarray ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("keywords", [{}, {"window": (5, 9, 333, 400)}, {"band": 1}, {"level": 1},
                                      {"masked": True},
                                      {"masked": True, "dtype": "float64", "window": (0, 0, 64, 64), "band": 2}])
def test_open_geotiff(path, keywords):
    expected = cogpu.open_geotiff(path, **keywords)
    found = cogpu.open_geotiff(path, gpu=True, on_gpu_failure="strict", **keywords)
    assert isinstance(found.data, cupy.ndarray) and found.dtype == expected.dtype and found.dims == expected.dims
    assert np.array_equal(found.data.get(), expected.values, equal_nan=True)
    assert isinstance(found.x.data, np.ndarray) and found.attrs.keys() == expected.attrs.keys()


@pytest.mark.parametrize("how", ["open_geotiff", "engine"])
def test_chunked_on_the_device(path, pixels, how):
    xarray, dask = pytest.importorskip("xarray"), pytest.importorskip("dask")
    if how == "engine":
        found = xarray.open_dataset(path, engine="cogpu", chunks={}, backend_kwargs={"gpu": True})["band_data"]
    else:
        found = cogpu.open_geotiff(path, gpu=True, masked=True, chunks=256)
    expected = np.where(pixels == -9999, np.nan, pixels)
    assert isinstance(found.data._meta, cupy.ndarray)
    with dask.config.set(scheduler="threads"):
        assert isinstance(found.data.blocks[0, 0, 0].compute(), cupy.ndarray)
        assert np.array_equal(found.data.compute().get(), expected, equal_nan=True)
    with dask.config.set(scheduler="synchronous"):  # each thread has CuPy compile its kernels anew
        assert np.allclose(float(found.mean().data.compute()), np.nanmean(expected.astype("f8")), rtol=1e-4)
        assert isinstance((found.where(found > 5) * 2).data.compute(), cupy.ndarray)


# ---- writing ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("cog", [False, True])
@pytest.mark.parametrize("compression", ["deflate", "zstd", "lzw", "none"])
def test_to_geotiff(path, pixels, tmp_path, cog, compression):
    data = cogpu.open_geotiff(path, gpu=True)
    cogpu.to_geotiff(data, tmp_path / "device.tif", cog=cog, compression=compression)
    with rasterio.open(tmp_path / "device.tif") as written, rasterio.open(path) as source:
        assert np.array_equal(written.read(), pixels)
        assert (written.crs, written.transform, written.nodata) == (source.crs, source.transform, source.nodata)
    lazy = cogpu.open_geotiff(path, gpu=True, chunks=200)
    cogpu.to_geotiff(lazy, tmp_path / "streamed.tif", cog=cog, compression=compression, streaming_buffer_bytes=1)
    assert (tmp_path / "streamed.tif").read_bytes() == (tmp_path / "device.tif").read_bytes()


def test_host_rows_go_up_and_device_rows_come_down(pixels, tmp_path):
    dask_array = pytest.importorskip("dask.array")
    on_device, names = cupy.asarray(pixels), [tmp_path / f"{name}.tif" for name in "abcd"]
    cogpu.to_geotiff(on_device, names[0])
    cogpu.to_geotiff(pixels, names[1], gpu=True)
    cogpu.to_geotiff(dask_array.from_array(pixels, (3, 100, 300)), names[2], gpu=True, streaming_buffer_bytes=1)
    cogpu.to_geotiff(on_device, names[3], gpu=False)
    assert names[0].read_bytes() == names[1].read_bytes() == names[2].read_bytes()
    cogpu.to_geotiff(pixels, tmp_path / "host.tif")
    assert names[3].read_bytes() == (tmp_path / "host.tif").read_bytes()


def test_nan_becomes_nodata_and_the_array_stays(tmp_path):
    data = cupy.full((1, 64, 64), cupy.nan, "f4")
    data[0, :5] = 2
    cogpu.to_geotiff(data, tmp_path / "nan.tif", nodata=-1)
    assert int(cupy.isnan(data).sum()) == 59 * 64
    with rasterio.open(tmp_path / "nan.tif") as written:
        assert (written.read(1)[5:] == -1).all() and (written.read(1)[:5] == 2).all()


# ---- PyTorch ---------------------------------------------------------------------------------------

def test_windows_on_the_device(path, pixels):
    torch = pytest.importorskip("torch")
    from cogpu.torch import Windows
    batch = next(iter(Windows([path], size=64, batch=8, device="cuda")))
    tensor = batch[0] if isinstance(batch, tuple) else batch
    assert isinstance(tensor, torch.Tensor) and tensor.is_cuda and tuple(tensor.shape) == (8, 3, 64, 64)
