"""What the Python package's benchmark says of its measurements, and that it notices wrong pixels."""

import sys

import numpy as np
import pytest
from conftest import ROOT

pytest.importorskip("rioxarray")
sys.path.insert(0, str(ROOT / "bench"))
import bench_python  # noqa: E402

OUTCOME = {"machine": "a machine", "side": 64, "repeats": 3, "windows": 5, "field": ["cogpu", "one", "other"],
           "absent": ["third"], "versions": "Python", "overheads": None,
           "jobs": [{"job": "whole", "seconds": {"cogpu": [1.0, 2.0, 1.0], "one": [4.0] * 3, "other": [3.0] * 3},
                     "refused": {}, "sizes": {}},
                    {"job": "lazy", "seconds": {"cogpu": [0.002]}, "refused": {"one": "wrong pixels"}, "sizes": {}}]}


def test_medians_ratios_and_what_is_missing():
    text = bench_python.report(OUTCOME)
    assert "| read whole | 1.000 s | 4.000 s | 3.000 s | 3.00 |" in text
    assert "| open lazily | 2.00 ms | - | - | - |" in text
    assert "- one, open lazily: wrong pixels" in text and "- third: not installed" in text


class Peer:
    name = "peer"

    def __init__(self, pixels):
        self.pixels = pixels

    def whole(self, path):
        if self.pixels is None:
            raise OSError("not today")
        return self.pixels


def test_a_contender_that_reads_wrong_pixels_is_not_measured(tmp_path):
    course = bench_python.Course.__new__(bench_python.Course)
    course.source, course.target = np.arange(12.0).reshape(1, 3, 4), tmp_path / "out.tif"
    course.path = course.places = course.raster = course.chunked = None
    for pixels, why in (course.source, None), (course.source + 1, "wrong pixels"), (None, "OSError: not today"):
        found = course.measure([Peer(pixels)], "whole", repeats=2)
        assert found["refused"].get("peer") == why and len(found["seconds"].get("peer", [])) == (0 if why else 2)
