"""The benchmark of remote reading in small: what it says of its measurements, that it notices wrong pixels, and that
answers come late, each for itself."""

import concurrent.futures
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from test_http_read import cogpu

sys.path.insert(0, str(cogpu.ROOT / "bench"))
import bench_network  # noqa: E402


def runs(*seconds, requests=3, sent=2_500_000):
    return [{"seconds": each, "cpu": 0.5, "requests": requests, "bytes": sent, "wrong": None} for each in seconds]


OUTCOME = {"machine": "a machine", "side": 64, "repeats": 3, "windows": 5, "delay": 0.03, "absent": ["third"],
           "versions": "Python",
           "jobs": [{"job": "windows", "refused": {"other": "wrong pixels"},
                     "runs": {"cogpu": runs(1.0, 2.0, 1.0), "one": runs(4.0, 4.0, 4.0, requests=9)}}]}


def test_medians_ratios_and_what_is_missing():
    text = bench_network.report(OUTCOME)
    assert "| 5 windows of 512 x 512: cogpu | 1.000 | 1.00 | 0.50 | 3 | 2.5 |" in text
    assert "| 5 windows of 512 x 512: one | 4.000 | 4.00 | 0.50 | 9 | 2.5 |" in text
    assert "- other, 5 windows of 512 x 512: wrong pixels" in text and "- third: not installed" in text


class Peer:
    name = "peer"

    def windows(self, url, places):
        return [np.full((1, 512, 512), y + x) for y, x in places]

    def overview(self, url, level):
        return np.full((1, 300, 300), level)


@pytest.mark.parametrize("job, right", [("windows", np.full((1, 512, 512), 7)), ("overview", np.ones((300, 300)))])
def test_wrong_pixels_are_noticed(job, right, monkeypatch):
    monkeypatch.setattr(bench_network, "CONTENDERS", [Peer])
    monkeypatch.setattr(bench_network, "expected", lambda *given: right)
    assert bench_network.run_here("peer", job, "", None, [(3, 4)])["wrong"] is None
    right[..., -1, -1] += 1
    assert bench_network.run_here("peer", job, "", None, [(3, 4)])["wrong"] == "wrong pixels"


@pytest.fixture
def late(tmp_path, nginx):
    """A server whose answers take a fifth of a second; it has a file of a thousand bytes."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "some.tif").write_bytes(bytes(range(250)) * 4)
    server = bench_network.Server(tmp_path, tmp_path / "files", 0.2)
    yield server
    server.close()


def ask(server, first):
    headers = {"Range": f"bytes={first}-{first + 9}"}
    answer = urllib.request.urlopen(urllib.request.Request(f"{server.url}/some.tif", headers=headers), timeout=60)
    assert answer.read() == bytes(range(first, first + 10))


def test_answers_are_late_and_counted(late):
    start = time.monotonic()
    ask(late, 0)
    ask(late, 100)
    assert time.monotonic() - start >= 0.4
    assert late.asked() == (2, 20) and late.asked() == (0, 0)


def test_answers_wait_each_for_itself(late):
    late.clock.plan(at={1: {"kind": "delay", "seconds": 3600}}, among=[{"kind": "status", "code": 200}], share=1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, late, 0)
        while not late.clock.requests() and not first.done():
            time.sleep(0.01)
        ask(late, 100)
        assert not first.done()
        late.clock.shut()
        assert isinstance(first.exception(), urllib.error.HTTPError)


def test_in_small(tmp_path, nginx, monkeypatch):
    """All who are installed, each in a process of its own, read the right pixels."""
    monkeypatch.syspath_prepend(cogpu.ROOT / "build" / "python")
    pytest.importorskip("cogpu", reason="the package is not built")
    able = [kind for kind in bench_network.CONTENDERS if bench_network.installed(kind.needs)]
    server = bench_network.Server(tmp_path, bench_network.cog(1200).parent, 0)
    for job in bench_network.JOBS:
        found = bench_network.measure(able, job, server, 1200, 4, repeats=1)
        assert found["refused"] == {} and "cogpu" in found["runs"]
        assert all(run["requests"] >= 2 and run["bytes"] > 1e5 for (run,) in found["runs"].values())
    server.close()
