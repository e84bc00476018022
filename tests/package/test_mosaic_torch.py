"""cogpu.torch.Windows over mosaics: windows of one large raster that lies in many files."""

import pickle

import numpy as np
import pytest
from mosaic_made import composed, tiles

torch = pytest.importorskip("torch")
import cogpu
from cogpu.torch import Windows


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiles(tmp_path_factory.mktemp("mosaic_torch"))


def check(drawn, whole, size):
    for tensor, places in drawn:
        for window, (file, row, column) in zip(tensor, places.tolist()):
            assert file == 0
            np.testing.assert_array_equal(window[0].cpu(), whole[row:row + size, column:column + size])


def test_windows_of_a_mosaic(made, device):
    with cogpu.open_mosaic(made[0]) as mosaic:
        windows = Windows(mosaic, size=40, batch=5, length=3, places=True, device=device)
        drawn = list(windows)
    assert len(drawn) == 3 and drawn[0][0].shape == (5, 1, 40, 40)
    check(drawn, composed(made[1], "first"), 40)


def test_reprojected_windows(made, device):
    with cogpu.open_mosaic(made[0], crs=3857, resampling="bilinear") as mosaic:
        whole = np.asarray(mosaic.read())[0]
        check(Windows([mosaic], size=64, batch=4, length=2, places=True, device=device), whole, 64)


def test_workers_open_their_own(made):
    windows = Windows(cogpu.open_mosaic(made[0]), size=32, batch=4, length=6, places=True, device="cpu")
    assert len(pickle.dumps(windows)) < 50_000
    for how in ({}, {"num_workers": 2}, {"num_workers": 2, "multiprocessing_context": "spawn"}):
        drawn = list(torch.utils.data.DataLoader(windows, batch_size=None, **how))
        assert len(drawn) == 6
        check(drawn, composed(made[1], "first"), 32)
