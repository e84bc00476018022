"""Many windows of a file at once: what is asked for in which order, and that windows which share blocks have their
own pixels all the same."""

import random

import cogs
import numpy as np
import pytest
from test_http_read import PATIENT, Reader, cogpu

SIZE, BLOCK = 1024, 128
KINDS = {"predicted": {"COMPRESS": "DEFLATE", "PREDICTOR": "YES"}, "deflated": {"COMPRESS": "DEFLATE"},
         "plain": {"COMPRESS": "NONE"}}


@pytest.fixture(scope="module")
def many(nginx_server):
    """{kind: pixels} of KIND.tif."""
    made = {}
    for kind, options in KINDS.items():
        made[kind] = cogs.terrain(2, SIZE, "f4")
        cogs.write(nginx_server.files / f"{kind}.tif", made[kind], BLOCKSIZE=BLOCK, OVERVIEWS="NONE", **options)
    return made


def windows(count, seed, size=200):
    dice = random.Random(seed)
    return [(dice.randrange(SIZE - size), dice.randrange(SIZE - size), size, size) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device, cache_bytes", [(cogpu.CPU, 0), (cogpu.CPU, 1 << 20), (cogpu.GPU, 0)],
                         ids=["cpu", "cache", "gpu"])
def test_windows_that_share_blocks(kind, device, cache_bytes, nginx, many):
    wanted = windows(40, seed=5) + [(0, 0, SIZE, SIZE)]
    with cogpu.Context(network=PATIENT, cache_bytes=cache_bytes) as context:
        options = cogpu.OpenOptions(context=context.handle)
        with cogpu.open(f"{nginx.http}/files/{kind}.tif", options) as file:
            found, failure = cogpu.read_many([(file, {"window": window}) for window in wanted], context, device)
    assert failure is None
    for (x, y, width, height), (_, pixels) in zip(wanted, found):
        np.testing.assert_array_equal(pixels, many[kind][:, y:y + height, x:x + width])
    assert len(nginx.requests()) <= 3  # the header, and the rest at once, of which 8 MiB go together


def test_asked_for_in_the_order_of_the_file(faults, many):
    """Whatever the order of windows: what may be held is used up by those that come first. A thread that finds nothing
    held for it asks for itself, so there is one."""
    reader = Reader(**PATIENT, threads=1, max_connections=1, max_requests=1, coalesce_gap_bytes=1, max_inflight_bytes=200 << 10)
    wanted = [window for window in windows(12, seed=6, size=100)]
    with reader.context, reader.open(f"{faults.http}/files/predicted.tif") as file:
        found, failure = cogpu.read_many([(file, {"window": window}) for window in wanted], reader.context)
    assert failure is None
    for (x, y, width, height), (_, pixels) in zip(wanted, found):
        np.testing.assert_array_equal(pixels, many["predicted"][:, y:y + height, x:x + width])
    first = [int(request.range.removeprefix("bytes=").split("-")[0]) for request in faults.requests()]
    assert len(first) > 8 and first == sorted(first)


def test_a_damaged_block_fails_those_who_want_it(nginx, many):
    path = nginx.files / "damaged.tif"
    stored = bytearray((nginx.files / "predicted.tif").read_bytes())
    stored[-60:] = bytes(60)  # of the last block
    path.write_bytes(stored)
    wanted = [(800, 800, 224, 224), (0, 0, 300, 300), (SIZE - 50, SIZE - 50, 50, 50), (700, 700, 150, 150)]
    reader = Reader(**PATIENT)
    with reader.context, reader.open(f"{nginx.http}/files/damaged.tif") as file:
        found, failure = cogpu.read_many([(file, {"window": window}) for window in wanted], reader.context)
    assert failure.name == "corrupt" and failure.block == (SIZE // BLOCK) ** 2 - 1
    assert [status == cogpu.OK for status, _ in found] == [False, True, False, True]
    for (x, y, width, height), (status, pixels) in zip(wanted, found):
        if status == cogpu.OK:
            np.testing.assert_array_equal(pixels, many["predicted"][:, y:y + height, x:x + width])


@pytest.mark.parametrize("kind", KINDS)
def test_windows_one_by_one_ask_for_no_block_twice(kind, nginx, many):
    with cogpu.Context(network=PATIENT, cache_bytes=cogpu.CACHE_DEFAULT) as context:
        with cogpu.open(f"{nginx.http}/files/{kind}.tif", cogpu.OpenOptions(context=context.handle)) as file:
            nginx.requests()
            for x, y, width, height in windows(40, seed=7):
                pixels = file.read(window=(x, y, width, height), context=context)
                np.testing.assert_array_equal(pixels, many[kind][:, y:y + height, x:x + width])
    ranges = sorted(tuple(map(int, request.range.removeprefix("bytes=").split("-"))) for request in nginx.requests())
    assert len(ranges) > 10 and all(first[1] < second[0] for first, second in zip(ranges, ranges[1:]))
