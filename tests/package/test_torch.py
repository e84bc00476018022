"""cogpu.torch.Windows beside rasterio: batches on every device, alone and by workers of a DataLoader."""

import pathlib
import pickle
import shutil
import threading
import time
import types

import numpy as np
import pytest
import rasterio
from conftest import DEVICES, address, write_file
from rasterio.windows import Window

import cogpu.windows
from cogpu import _cogpu

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


@pytest.fixture
def reads(monkeypatch):
    """(address of out, counts) of each batch that is read."""
    made, read_windows = [], _cogpu.read_windows

    def spied(files, places, out, **how):
        counts = read_windows(files, places, out, **how)
        made.append((address(out), counts))
        return counts
    monkeypatch.setattr(_cogpu, "read_windows", spied)
    return made


def test_one_read_a_batch_into_the_tensor_itself(files, device, reads):
    for tensor in Windows(files, size=16, batch=5, device=device, length=2, prefetch=0):
        (found, counts), = reads
        assert found == tensor.data_ptr() and counts["blocks"] >= 5
        assert bool(counts["device_blocks"]) == (device != "cpu")
        reads.clear()


def test_more_files_than_may_be_open(files, device, reads, monkeypatch):
    whole = list(Windows(files, size=16, batch=9, device=device, length=2))
    monkeypatch.setattr(cogpu.windows, "files_limit", lambda: 2)
    reads.clear()
    parts = list(Windows(files, size=16, batch=9, device=device, length=2))
    assert len(reads) == 2 * 5 and all(torch.equal(a, b) for a, b in zip(whole, parts))


# ---- reading ahead ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_that_are_read_ahead_are_the_same(files, device, prefetch):
    options = {"size": 24, "batch": 4, "device": device, "length": 6, "places": True}
    alone, ahead = (list(Windows(files, **options, prefetch=count)) for count in (0, prefetch))
    assert len(ahead) == 6
    for (tensor, places), (same, same_places) in zip(alone, ahead):
        assert torch.equal(tensor, same) and torch.equal(places, same_places)


def test_the_next_batch_is_read_while_one_is_used(files, device, reads):
    batches = iter(Windows(files, size=16, batch=4, device=device, length=9, prefetch=2))
    next(batches)
    deadline = time.monotonic() + 60
    while len(reads) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    batches.close()
    assert len(reads) == 3


def test_transform_runs_in_the_caller_s_thread_when_a_batch_is_due(files, device):
    threads, torch_state = [], torch.random.get_rng_state()

    def noisy(tensor):
        threads.append(threading.current_thread())
        return tensor.float() + torch.rand(tensor.shape).to(tensor.device)
    options = {"size": 16, "batch": 4, "device": device, "length": 4, "transform": noisy}
    alone = list(Windows(files, **options, prefetch=0))
    torch.random.set_rng_state(torch_state)
    ahead = list(Windows(files, **options, prefetch=2))
    assert set(threads) == {threading.current_thread()}
    assert all(torch.equal(a, b) for a, b in zip(alone, ahead))


def test_an_error_is_raised_when_its_batch_is_due(files, device, tmp_path):
    paths = [pathlib.Path(shutil.copy(file, tmp_path)) for file in files]
    windows = Windows(paths, size=16, batch=1, device=device, length=30, places=True)
    missing = 1  # in the order of the batches: the first of its windows is the first that fails
    order = [int(windows._places.draw(1, number)[0, 0]) for number in range(30)]
    paths[missing].unlink()
    got = 0
    with pytest.raises(FileNotFoundError, match=paths[missing].name):
        for _ in windows:
            got += 1
    assert got == order.index(missing)


def test_workers_of_a_loader_have_no_thread(files, reads, monkeypatch):
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: types.SimpleNamespace(id=1, num_workers=2))
    batches = iter(Windows(files, size=16, batch=4, device="cpu", length=9, prefetch=2))
    next(batches)
    assert len(reads) == 1 and len(list(batches)) == 3


def test_workers_beside_a_loop_that_reads_ahead(files):
    windows = Windows(files, size=32, batch=3, device="cpu", length=5, prefetch=2)
    alone, ahead = list(windows), iter(windows)
    next(ahead)  # a thread is at work when the workers are made
    context = "spawn" if "cuda" in DEVICES else "fork"
    loader = torch.utils.data.DataLoader(windows, batch_size=None, num_workers=2, multiprocessing_context=context)
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(alone, loader, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(alone[1:], ahead, strict=True))


def test_a_loop_may_end_early(files, device):
    windows = Windows(files, size=16, batch=4, device=device, length=50, prefetch=3)
    for _ in range(20):
        for _ in windows:
            break
    for thread in threading.enumerate():
        if thread.name.startswith("cogpu-prefetch"):
            thread.join(60)
            assert not thread.is_alive()


def test_the_epoch_of_a_loop_is_that_of_its_beginning(files):
    windows = Windows(files, size=16, batch=4, device="cpu", length=4, prefetch=0)
    first = list(windows)
    found = []
    for tensor in windows:
        windows.set_epoch(5)
        found.append(tensor)
    assert all(torch.equal(a, b) for a, b in zip(first, found))


@pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU")
def test_tensors_that_are_read_ahead_on_the_caller_s_stream(files):
    """Memory of a batch is not written again while work of the caller's stream that uses it is under way."""
    options = {"size": 64, "batch": 32, "length": 12}
    expected = [tensor.double().sum().item() for tensor in Windows(files, **options, device="cpu")]
    stream, sums = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        for tensor in Windows(files, **options, device="cuda", prefetch=2):
            torch.cuda._sleep(20_000_000)  # the tensor is let go before this ends
            sums.append(tensor.double().sum())
            del tensor
    stream.synchronize()
    assert [one.item() for one in sums] == expected


# ---- which windows ---------------------------------------------------------------------------------------------------


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
    ({"length": 0}, InvalidArgumentError, "length"), ({"prefetch": -1}, InvalidArgumentError, "prefetch"),
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
