"""A file written by a `distributed` cluster: takes a `write.Plan` over a Dask array, hands encoded blocks to a writer.

The workers compute the array, encode its blocks, make the overviews of the pixels that they hold and encode these too.
The process that calls gets encoded blocks alone, in whatever order they come, and puts the file together: so the file
lies where the caller's paths and objects mean something, and workers need no file system in common. They come by way of
the scheduler, unless the client is one with direct_to_workers=True. Of a COG that goes to S3 workers send most
themselves, and the caller gets no more than sizes of it: see dask_upload.py.

Each level is cut into regions of whole blocks, about as large as the array's chunks. A region of the next level is made
of pieces, and a piece where the region lies that it is the overview of: so a quarter of the pixels travels, at most,
and of neighbours the few rows and columns that bilinear and cubic reach for. Work is sent in steps of rows of regions,
two of them at once, so that neither pixels nor encoded blocks pile up.
"""

import collections
import contextlib
import dataclasses
import itertools
import uuid

import dask
import distributed
import numpy as np
from dask._task_spec import Alias, convert_legacy_graph
from dask.core import flatten, literal
from distributed.worker import thread_state

from . import _cogpu, dask_upload
from .dask_steps import Steps
from .dask_write import merged_graph, rows_by_step, with_mask

# Two steps are under way, and a worker may hold the pixels of each twice: as chunks and as regions.
HELD_AT_ONCE = 4


def write(plan, array, target, client, streaming_buffer_bytes, report):
    """As `dask_write.write`, of which it is a part; `array` is the plan's."""
    # Encoders of the host on all workers, whatever devices they have: the file is the same.
    profile = {name: value for name, value in plan.profile.items() if name != "device"}
    limit = streaming_buffer_bytes // HELD_AT_ONCE * max(len(client.nthreads()), 1)
    upload = dask_upload.begin(target, profile)
    if upload is None:
        return _put_together(Work(plan, profile, array, limit), target, client, report)
    with dask_upload.aborted_on_failure(upload, client), dask_upload.Head(upload) as head:
        written = _put_together(Work(plan, profile, array, limit, upload), head, client, report)
        head.complete(written["bytes"])
    return written


def _put_together(work, target, client, report):
    writer = _cogpu.Writer(target, work.profile, work.inputs)
    try:
        with _outside_the_pool():
            _put_all(writer, target, work, client, report)
    except BaseException:
        writer.abort()
        raise
    return writer.close()


def _put_all(writer, target, work, client, report):
    def submit(graph, keys):
        return client.get(graph, keys, sync=False, fifo_timeout=0)

    under_way, done = collections.deque(), 0
    for futures in itertools.chain(work.steps().results(submit, keep=lambda future: future), [None]):
        under_way.append(futures)
        if len(under_way) > 1:
            _put_step(writer, target, client, under_way.popleft())
            done += 1
            report(work.rows_after[done], work.rows_after[-1])


def _put_step(writer, target, client, futures):
    coming = distributed.as_completed(futures)
    futures.clear()  # so that a worker forgets what has been put
    for batch in coming.batches():
        for result in itertools.chain.from_iterable(client.gather(list(batch))):
            if isinstance(result, dask_upload.Part):
                target.take(result)
            else:
                writer.write_block(*result)


@contextlib.contextmanager
def _outside_the_pool():
    """A task that waits for others must not take a worker's thread from them."""
    is_task = hasattr(thread_state, "key")
    if is_task:
        distributed.secede()
    try:
        yield
    finally:
        if is_task:
            distributed.rejoin()


# ---- which tasks there are -------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Grid:
    """A rectangle cut by rows and columns, each cell with the key of the task that makes it."""

    name: str
    rows: tuple  # slices
    columns: tuple

    def cells(self):
        for i, rows in enumerate(self.rows):
            for j, columns in enumerate(self.columns):
                yield (self.name, i, j), rows, columns

    def touched(self, rows, columns):
        """Cells that share pixels with a window."""
        across = [(j, span) for j, span in enumerate(self.columns) if _overlap(span, columns)]
        for i, down in enumerate(self.rows):
            if _overlap(down, rows):
                yield from (((self.name, i, j), down, span) for j, span in across)


def _overlap(one, other):
    return one.start < other.stop and other.start < one.stop


class Work:
    """All tasks of a file: `graph`, and for each step what it encodes and what it makes ready for later ones."""

    def __init__(self, plan, profile, array, limit, upload=None):
        self.profile, self.levels, self.inputs = profile, _cogpu.level_layouts(profile), plan.inputs
        self.token = uuid.uuid4().hex
        self.profile_key = f"profile-{self.token}"
        self.step_of, self.results = {}, set()
        grid = self._first_level(plan, array, limit)
        for level in range(len(self.levels)):
            if level:
                grid = self._next_level(level, grid)
            stays = upload is not None and level == 0
            encoded = self._encode(level, grid, self._add if stays else self._add_result)
            if stays:
                self._upload(encoded, upload)

    def steps(self):
        results, others = ([[] for _ in self.rows_after[1:]] for _ in range(2))
        for key, step in self.step_of.items():
            (results if key in self.results else others)[step].append(key)
        return Steps(self.graph, results, ahead=others)

    def _add(self, key, step, *task):
        self.graph[key] = task
        self.step_of[key] = step

    def _add_result(self, key, step, *task):
        """One that comes to the caller."""
        self._add(key, step, *task)
        self.results.add(key)

    def _name(self, kind, level):
        return f"{kind}-{level}-{self.token}"

    def _first_level(self, plan, array, limit):
        """Regions of whole blocks, about as large as the chunks."""
        outline = self.levels[0]
        rows, columns = _regions(outline, max(array.chunks[1]), max(array.chunks[2]))
        heights, widths = (tuple(span.stop - span.start for span in cuts) for cuts in (rows, columns))
        array, *masks = arrays = dask.optimize(*with_mask(plan, array.rechunk((-1, heights, widths))))
        graph, new = _renamed(arrays, self.token)
        self.graph = graph | {self.profile_key: (literal(self.profile),)}
        self.region_shape = heights[0], widths[0]
        steps = rows_by_step(heights, array.nbytes // array.shape[1], limit, outline["block_height"])
        step_of_row = {row: step for step, row_numbers in enumerate(steps) for row in row_numbers}
        self.rows_after = [0, *(rows[row_numbers[-1]].stop for row_numbers in steps)]
        grid = Grid(self._name("region", 0), rows, columns)
        for key, _, _ in grid.cells():
            _, i, j = key
            self._add(key, step_of_row[i], pair, new[array.name, 0, i, j], *(new[mask.name, 0, i, j] for mask in masks))
        return grid

    def _next_level(self, level, before):
        """Regions of a level, put together of pieces that are overviews of regions of the level before."""
        outline = self.levels[level]
        height, width = outline["height"], outline["width"]
        by = max(round(before.rows[-1].stop / height), round(before.columns[-1].stop / width), 1)
        pieces = Grid(self._name("piece", level), _downsampled(before.rows, by, height),
                      _downsampled(before.columns, by, width))
        for key, down, across in pieces.cells():
            window = (across.start, down.start, across.stop - across.start, down.stop - down.start)
            x, y, needed_width, needed_height = _cogpu.overview_source_window(self.profile, level, window)
            parts, step = self._parts(before, slice(y, y + needed_height), slice(x, x + needed_width))
            self._add(key, step, make_overview, self.profile_key, level, window, parts)
        regions = Grid(self._name("region", level), *_regions(outline, *self.region_shape))
        for key, down, across in regions.cells():
            parts, step = self._parts(pieces, down, across)
            self._add(key, step, together, parts)
        return regions

    def _parts(self, grid, rows, columns):
        """What `together` makes the pixels of a window of, and the step after which all of it is there."""
        parts, step = [], 0
        for key, down, across in grid.touched(rows, columns):
            step = max(step, self.step_of[key])
            inner = _inside(rows, down), _inside(columns, across)
            if inner != (slice(0, down.stop - down.start), slice(0, across.stop - across.start)):
                key = self._cut(key, inner)
            parts.append([max(down.start - rows.start, 0), max(across.start - columns.start, 0), key])
        return parts, step

    def _cut(self, key, inner):
        """A part of a cell, cut where the cell lies, so that no more than it travels."""
        down, across = inner
        part = (f"cut-{key[0]}", *key[1:], down.start, down.stop, across.start, across.stop)
        if part not in self.graph:
            self._add(part, self.step_of[key], cut, key, down, across)
        return part

    def _encode(self, level, grid, add):
        outline, encoded = self.levels[level], dataclasses.replace(grid, name=self._name("encode", level))
        for key, down, across in grid.cells():
            block = down.start // outline["block_height"], across.start // outline["block_width"]
            add((encoded.name, *key[1:]), self.step_of[key], encode, self.profile_key, outline, level, block, key)
        return encoded

    def _upload(self, encoded, upload):
        """Level 0 is packed and sent, a row of blocks after the other."""
        upload_key, left = f"upload-{self.token}", None
        self.graph[upload_key] = (literal(upload),)
        for key, _, _ in encoded.cells():
            self._add_result((self._name("sizes", 0), *key[1:]), self.step_of[key], dask_upload.sizes, key)
        for i, down in enumerate(encoded.rows):
            regions = [(encoded.name, i, j) for j in range(len(encoded.columns))]
            rows = range(-(-(down.stop - down.start) // self.levels[0]["block_height"]))
            for row in rows:
                is_last = down is encoded.rows[-1] and row == rows[-1]
                left = self._pack(upload_key, left, regions, row, len(rows), is_last)

    def _pack(self, upload_key, left, regions, row, rows, is_last):
        """A row of these regions' blocks, behind what the row before has left. Returns the key of what it leaves."""
        step, (_, i, _) = self.step_of[regions[0]], regions[0]
        pieces = [(self._name("framed", 0), *key[1:], row) for key in regions]
        for piece, key in zip(pieces, regions, strict=True):
            self._add(piece, step, dask_upload.framed, key, row, rows)
        packed, sent, left_here = ((self._name(kind, 0), i, row) for kind in ("pack", "send", "left"))
        self._add(packed, step, dask_upload.pack, upload_key, left, pieces, is_last)
        self._add_result(sent, step, dask_upload.send, upload_key, packed)
        self._add(left_here, step, dask_upload.left_of, packed)
        return left_here


def _renamed(arrays, token):
    """The arrays' graph with keys of its own, and these by the old ones. A scheduler must not meet a key with another
    task behind it, and Dask fuses tasks under the same keys in another way when the user computes the array otherwise.
    What is persisted has no task here: of that the new key is another name."""
    graph = convert_legacy_graph(merged_graph(arrays))
    persisted = set(flatten([array.__dask_keys__() for array in arrays])) - graph.keys()
    new = {key: (f"{key[0]}-{token}", *key[1:]) if isinstance(key, tuple) else f"{key}-{token}"
           for key in (*graph, *persisted)}
    tasks = {new[key]: task.substitute(new, key=new[key]) for key, task in graph.items()}
    return tasks | {new[key]: Alias(new[key], key) for key in persisted}, new


def _regions(outline, height, width):
    """Rows and columns that cut a level into whole blocks, about `height` x `width` pixels each."""
    return tuple(tuple(_spans(outline[side], max(round(size / outline["block_" + side]), 1) * outline["block_" + side]))
                 for side, size in (("height", height), ("width", width)))


def _spans(length, size):
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _downsampled(cuts, by, length):
    """The cuts of a level for the next one, which is that many times smaller."""
    stops = sorted({min(span.stop // by, length) for span in cuts[:-1]} - {0, length})
    return tuple(slice(start, stop) for start, stop in zip([0, *stops], [*stops, length]))


def _inside(span, cell):
    """The part of `cell` that `span` wants, counted from the cell's start."""
    return slice(max(span.start, cell.start) - cell.start, min(span.stop, cell.stop) - cell.start)


# ---- what tasks do: regions, pieces and cuts are (pixels, mask or None), in host memory -----------------------


def pair(pixels, mask=None):
    pixels = pixels.get() if hasattr(pixels, "get") else pixels  # CuPy's come down here
    return pixels, None if mask is None else mask[0]


def cut(cell, rows, columns):
    """A copy: a view would keep the whole cell."""
    pixels, mask = cell
    return pixels[:, rows, columns].copy(), None if mask is None else mask[rows, columns].copy()


def together(parts):
    """One cell of cells and the places of their first row and column."""
    if len(parts) == 1:
        return parts[0][2]
    height = max(y + pixels.shape[1] for y, _, (pixels, _) in parts)
    width = max(x + pixels.shape[2] for _, x, (pixels, _) in parts)
    _, _, (pixels, mask) = parts[0]
    whole = np.empty((pixels.shape[0], height, width), pixels.dtype)
    whole_mask = None if mask is None else np.empty((height, width), mask.dtype)
    for y, x, (pixels, mask) in parts:
        place = slice(y, y + pixels.shape[1]), slice(x, x + pixels.shape[2])
        whole[:, *place] = pixels
        if mask is not None:
            whole_mask[place] = mask
    return whole, whole_mask


def make_overview(profile, level, window, parts):
    pixels, mask = _cogpu.overview_compute(profile, level, window, *together(parts))
    return np.asarray(pixels), None if mask is None else np.asarray(mask)[0]


def encode(profile, outline, level, first_block, region):
    """All blocks of a region, of pixels and mask, as (level, content, block, bytes)."""
    pixels, mask = region
    down, across = (tuple(_spans(length, outline[side]))
                    for length, side in zip(pixels.shape[1:], ("block_height", "block_width"), strict=True))
    row_blocks = -(-outline["width"] // outline["block_width"])
    plane_blocks = row_blocks * -(-outline["height"] // outline["block_height"])
    planes = [pixels] if outline["blocks"] == plane_blocks else [pixels[band:band + 1] for band in range(len(pixels))]
    encoded = []
    for (i, rows), (j, columns) in itertools.product(enumerate(down), enumerate(across)):
        block = (first_block[0] + i) * row_blocks + first_block[1] + j
        for number, plane in enumerate(planes):
            index = block + number * plane_blocks
            encoded.append(_encoded(profile, level, "pixels", index, plane[:, rows, columns]))
        if mask is not None:
            encoded.append(_encoded(profile, level, "mask", block, mask[rows, columns]))
    return encoded


def _encoded(profile, level, content, block, pixels):
    return level, content, block, _cogpu.encode_block(profile, level, content, block, pixels)
