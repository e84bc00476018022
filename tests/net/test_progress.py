"""Progress of reads over the network, and reads that are cancelled while a server keeps them waiting."""

import numpy as np
import pytest
from test_http_read import PATIENT, Reader, cogpu

PATIENCE = PATIENT | {"low_speed_seconds": 30}  # much longer than a test takes that can be cancelled


@pytest.mark.parametrize("device", [cogpu.CPU, cogpu.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("max_inflight_bytes", [0, 1], ids=["expected", "each for itself"])
def test_a_silent_server_can_be_cancelled(device, max_inflight_bytes, faults, cog):
    calls = []

    def third(done, total):
        calls.append((done, total))
        return len(calls) == 3

    reader = Reader(**PATIENCE, max_inflight_bytes=max_inflight_bytes)
    with reader.context, reader.open(f"{faults.http}/files/masked.tif") as file:
        faults.plan(every={"kind": "stall", "after": 1000})
        with pytest.raises(cogpu.CogpuError) as caught:
            file.read(window=(0, 0, 700, 700), context=reader.context, device=device, progress=third)
        assert caught.value.name == "cancelled" and len(calls) == 3
        faults.plan()  # the file can be read as before
        pixels = file.read(window=(0, 0, 700, 700), context=reader.context, device=device)
        np.testing.assert_array_equal(pixels, cog["masked"].pixels[:, :700, :700])


def test_blocks_are_counted(faults, cog):
    calls = []
    reader = Reader(**PATIENCE)
    with reader.context, reader.open(f"{faults.http}/files/masked.tif") as file:
        file.read(context=reader.context, progress=lambda *call: calls.append(call))
    assert calls == sorted(calls) and calls[-1] == (file.last_result.blocks,) * 2


def test_one_of_many_can_be_cancelled(faults, cog):
    reader = Reader(**PATIENCE)
    with reader.context, reader.open(f"{faults.http}/files/masked.tif") as file, \
            reader.open(f"{faults.http}/files/bigtiff.tif") as other:
        read, error = cogpu.read_many([(file, {}), (other, {"progress": lambda done, total: done > 0})], reader.context)
        assert error.name == "cancelled" and [status for status, _ in read] == [cogpu.OK, cogpu.CANCELLED]
        np.testing.assert_array_equal(read[0][1], cog["masked"].pixels)
