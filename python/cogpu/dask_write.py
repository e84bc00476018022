"""Writes Dask arrays to files, a few rows of chunks at a time.

While some rows are written, the user's scheduler computes the next. Steps end at chunk edges, since a chunk is computed
once and as a whole; the writer keeps rows of an incomplete row of blocks. On a cluster the workers encode: see
dask_cluster.py.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import dask
import dask.array
import dask.base
import dask.multiprocessing
import dask.system
import numpy as np

from . import _cogpu
from .arrays import is_dask
from .dask_steps import Steps

if TYPE_CHECKING:
    from .write import Plan

# A chunk that is written, the chunks of the next one, and that one when it is put together.
HELD_AT_ONCE = 3


def write(plan: Plan, target: Any, *, streaming_buffer_bytes: int,
          report: Callable[[int, int], Any] | None = None) -> dict[str, Any]:
    """Writes a plan over a Dask array. Returns the fields of cogpu_written.

    plan
        A `write.Plan`.
    target
        A path or s3:// URL, None for memory, or an object with write.
    streaming_buffer_bytes
        Bytes of pixels in memory at a time, on a cluster per worker; at least a row of chunks and of blocks.
    report
        A function of (done, total), in rows (default: none).

    With a `distributed` client as Dask's scheduler the workers encode, and this process, which may be a task of the
    cluster, assembles the file.
    """
    array = plan.rows(0, plan.shape[1])
    report = report or (lambda done, total: None)
    get = dask.base.get_scheduler(collections=[array])
    client = _client_of(get)
    if client is not None:
        from . import dask_cluster
        return dask_cluster.write(plan, array, target, client, streaming_buffer_bytes, report)
    chunks_of_rows = _chunks_of_rows(plan, array, get, streaming_buffer_bytes // HELD_AT_ONCE)
    writer = _cogpu.Writer(target, plan.profile, plan.inputs)
    try:
        _push_all(writer, chunks_of_rows, plan.shape[1], report)
    except BaseException:
        writer.abort()
        raise
    return writer.close()


def _push_all(writer, chunks_of_rows, height, report):
    with contextlib.closing(_ahead(chunks_of_rows)) as chunks_of_rows:
        for stop, rows, mask in chunks_of_rows:
            writer.write_rows(rows, mask)
            report(stop, height)


def with_mask(plan, array):
    """The array, and behind it the plan's mask, if it has one, in the same chunks (band, y, x)."""
    if plan.mask is None:
        return [array]
    mask = plan.mask
    if not is_dask(mask):
        mask = dask.array.from_array(mask, array.chunks[1:], name=False)
    return [array, mask.rechunk(array.chunks[1:])[None]]


def merged_graph(arrays):
    return {key: task for array in arrays for key, task in array.__dask_graph__().items()}


def rows_by_step(heights, row_bytes, limit, least):
    """Rows of chunks, by their heights, as ranges that take at most `limit` bytes, or `least` pixels of height, or are
    one row."""
    most = max(limit // row_bytes, least)
    steps, first, total = [], 0, 0
    for number, height in enumerate(heights):
        if total and total + height > most:
            steps.append(range(first, number))
            first, total = number, 0
        total += height
    return [*steps, range(first, len(heights))]


def _client_of(get):
    """The client whose method `get` is, if it is one's."""
    distributed = sys.modules.get("distributed")
    owner = getattr(get, "__self__", None)
    return owner if distributed and isinstance(owner, distributed.Client) else None


def _chunks_of_rows(plan, array, get, limit):
    """(last row + 1, rows, mask or None) from the top down."""
    steps = rows_by_step(array.chunks[1], array.nbytes // array.shape[1], limit, plan.block_rows)
    arrays = dask.optimize(*with_mask(plan, array))
    wanted = [[[band[rows.start:rows.stop] for band in array.__dask_keys__()] for array in arrays] for rows in steps]
    stop = 0
    with _one_pool(get) as get:
        for parts in Steps(merged_graph(arrays), wanted).results(get):
            parts = list(parts)
            rows = [_together([[list(row) for row in band] for band in parts.pop(0)]) for _ in arrays]
            stop += rows[0].shape[1]
            yield stop, rows.pop(0), rows.pop()[0] if rows else None  # and nothing is held here meanwhile


@contextlib.contextmanager
def _one_pool(get):
    """Dask's scheduler of processes starts them anew for each call, if it is not given some."""
    if get is not dask.multiprocessing.get or dask.config.get("pool", None) is not None:
        yield get
        return
    count = dask.config.get("num_workers", None) or dask.system.CPU_COUNT
    with ProcessPoolExecutor(count, mp_context=dask.multiprocessing.get_context(),
                             initializer=dask.multiprocessing.initialize_worker_process) as pool:
        yield functools.partial(get, pool=pool)


def _together(parts):
    """One array of chunks in lists by band, row and column, which are let go on the way."""
    first = parts[0][0][0]
    depths = [band[0][0].shape[0] for band in parts]
    heights = [row[0].shape[1] for row in parts[0]]
    widths = [part.shape[2] for part in parts[0][0]]
    if len(depths) == len(heights) == len(widths) == 1:
        return first
    whole = np.empty_like(first, shape=(sum(depths), sum(heights), sum(widths)))
    for band, depth in zip(parts, spans(depths), strict=True):
        for row, height in zip(band, spans(heights), strict=True):
            for width in spans(widths):
                whole[depth, height, width] = row.pop(0)
    return whole


def spans(lengths):
    """Slices of lengths that follow each other."""
    stop = 0
    for length in lengths:
        stop += length
        yield slice(stop - length, stop)


def _ahead(items):
    """The items of a generator; while one is used, another thread makes the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="cogpu-rows") as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
