"""cogpu.torch.Windows beside rasterio: batches on every device, alone and by workers of a DataLoader."""

import pickle

import numpy as np
import pytest
import rasterio
from conftest import DEVICES, address, write_file
from rasterio.windows import Window

torch = pytest.importorskip("torch")
from cogpu.errors import InvalidArgumentError, DeviceError  # noqa: E402
from cogpu.torch import Windows  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, random, made = tmp_path_factory.mktemp("windows"), np.random.default_rng(4), []
    for name, (height, width), codec in ("a", (150, 220), "deflate"), ("b", (90, 100), "zstd"), ("c", (80, 300), "lzw"):
        pixels = random.integers(0, 3000, (2, height, width)).astype("int16")
        pixels[:, 20:50, 30:60] = -1
        made.append(write_file(folder / f"{name}.tif", pixels, compress=codec, nodata=-1, overviews=[2]))
    return made


def by_rasterio(files, places, size, bands=None, level=0):
    pixels = []
    for index, row, column in np.asarray(places).tolist():
        with rasterio.open(files[index], **({"overview_level": level - 1} if level else {})) as file:
            pixels.append(file.read(bands, window=Window(column, row, size[1], size[0])))
    return np.stack(pixels)


def test_batches_hold_the_pixels_of_their_places(files, device):
    windows = Windows(files, size=(40, 70), batch=6, device=device, length=3, places=True)
    drawn = list(windows)
    assert len(drawn) == len(windows) == 3
    for tensor, places in drawn:
        assert tensor.shape == (6, 2, 40, 70) and tensor.dtype == torch.int16 and tensor.is_contiguous()
        assert tensor.device.type == ("cuda" if device == "cuda" else "cpu")
        assert np.array_equal(tensor.cpu(), by_rasterio(files, places, (40, 70)))
    assert len({int(index) for _, places in drawn for index in places[:, 0]}) == 3


def test_bands_levels_and_types(files, device):
    windows = Windows(files, size=32, batch=4, bands=[2], level=1, device=device, dtype=torch.float32, masked=True,
                      length=2, places=True)
    for tensor, places in windows:
        expected = by_rasterio(files, places, (32, 32), [2], level=1).astype("f4")
        expected[expected == -1] = np.nan
        assert tensor.dtype == torch.float32
        assert np.array_equal(tensor.cpu(), expected, equal_nan=True)


def test_masked_integers_become_float32(files):
    (tensor,) = Windows(files, size=64, batch=40, device="cpu", masked=True, length=1)
    assert tensor.dtype == torch.float32 and tensor.isnan().any() and not (tensor == -1).any()


def test_one_read_a_batch_into_the_tensor_itself(files, device, monkeypatch):
    import cogpu.torch
    calls, read_many = [], cogpu.torch.read_many

    def spied(requests):
        arrays = read_many(requests)
        calls.append([address(options["out"]) for _, options in requests])
        assert all(bool(array.result["device_blocks"]) == (device != "cpu") for array in arrays)
        return arrays
    monkeypatch.setattr(cogpu.torch, "read_many", spied)
    for tensor in Windows(files, size=16, batch=5, device=device, length=2):
        assert calls.pop() == [window.data_ptr() for window in tensor] and not calls


def test_the_same_seed_gives_the_same_windows(files):
    def tensors(seed, epoch=0):
        windows = Windows(files, size=32, batch=3, device="cpu", seed=seed, length=2)
        windows.set_epoch(epoch)
        return torch.stack(list(windows))
    assert torch.equal(tensors(1), tensors(1))
    assert not torch.equal(tensors(1), tensors(2))
    assert not torch.equal(tensors(1), tensors(1, epoch=1))


def test_workers_share_a_pass(files):
    windows = Windows(files, size=32, batch=3, device="cpu", length=5)
    alone = list(windows)  # before the fork: the parent has files open and threads at work
    context = "spawn" if "cuda" in DEVICES else "fork"  # the driver's threads do not outlive a fork
    loader = torch.utils.data.DataLoader(windows, batch_size=None, num_workers=2, multiprocessing_context=context)
    shared = list(loader)
    assert len(shared) == 5 and all(torch.equal(a, b) for a, b in zip(alone, shared))


def test_the_host_s_tensors_are_read_without_cuda(files, monkeypatch):
    """torch asks CUDA whether memory is pinned, which fails in a process that was forked after the use of a GPU."""
    def fail(tensor):
        raise RuntimeError("CUDA error: initialization error")
    monkeypatch.setattr(torch.Tensor, "__dlpack_device__", fail)
    (tensor,) = Windows(files, size=32, batch=3, device="cpu", length=1)
    assert tensor.shape == (3, 2, 32, 32) and tensor.any()


def test_a_gpu_in_a_forked_worker(files, monkeypatch):
    windows = Windows(files, size=32, batch=3, device="cuda", length=1)
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: True)
    with pytest.raises(DeviceError, match="spawn"):
        next(iter(windows))


def test_transform_and_length(files):
    area = 150 * 220 + 90 * 100 + 80 * 300
    windows = Windows(files, size=50, batch=4, device="cpu", transform=lambda tensor: tensor[:, :1].float() / 3000)
    assert len(windows) == -(-area // (50 * 50 * 4)) == len(list(windows))
    assert next(iter(windows)).shape == (4, 1, 50, 50) and next(iter(windows)).max() <= 1


def test_pickled_it_draws_the_same(files):
    windows = Windows(files, size=32, batch=3, device="cpu", length=1)
    assert torch.equal(next(iter(windows)), next(iter(pickle.loads(pickle.dumps(windows)))))


@pytest.mark.parametrize("options, error, match", [
    ({"size": 100}, InvalidArgumentError, "b.tif"), ({"batch": 0}, InvalidArgumentError, "batch"),
    ({"batch": True}, TypeError, "batch"),
    ({"bands": 3}, InvalidArgumentError, "a.tif has 2 bands"), ({"level": 2}, InvalidArgumentError, "level 2"),
    ({"dtype": torch.int16, "masked": True}, InvalidArgumentError, "NaN"),
    ({"length": 0}, InvalidArgumentError, "length"),
    ({"seed": -1}, InvalidArgumentError, "seed")])
def test_bad_arguments(files, options, error, match):
    with pytest.raises(error, match=match):
        Windows(files, **{"size": 32, "device": "cpu", **options})


def test_no_files():
    with pytest.raises(InvalidArgumentError, match="files is empty"):
        Windows([], device="cpu")


def test_a_read_is_a_tensor_without_a_copy(files, device):
    import cogpu
    array = cogpu.open(files[0]).read(device=device)
    tensor = torch.from_dlpack(array)
    with rasterio.open(files[0]) as file:
        assert np.array_equal(tensor.cpu(), file.read())
    if device != "cuda":
        tensor[0, 3, 4] = 77
        assert np.asarray(array)[0, 3, 4] == 77
