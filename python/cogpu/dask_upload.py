"""A COG that a cluster uploads to S3: workers send level 0, and the caller sends all bytes before it.

Level 0 is the end of a COG, and all of it but its first bytes goes from the workers straight to the store. Blocks are
framed where they are encoded. A chain of packs, one for each row of blocks, cuts them into parts: each takes what the
last one has left over. Packs wait for no network, since others send what they have cut, on all workers at once.

Parts belong where their numbers say. Low ones are left for the head, which the caller sends when all sizes are known:
header, directories and overviews; and behind them the first bytes of level 0, which come to the caller, since all parts
but the last must have 5 MiB and a head may be shorter.
"""

import asyncio
import collections
import contextlib
import dataclasses
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from . import _cogpu
from .errors import IOError, LimitExceededError

LEAST_BYTES = _cogpu.PART_BYTES_MIN
DIRECTORY_PARTS = 500  # at most: for the head without overviews
SENT_AT_ONCE = 3  # by the caller, who fills a fourth meanwhile

Part = collections.namedtuple("Part", "number etag data")  # `data` of the first part of level 0, which has no ETag yet


@dataclasses.dataclass(frozen=True)
class Upload:
    """Properties that all workers need. Each worker finds its own credentials."""

    address: str
    id: str
    part_bytes: int
    first: int  # number of the first part of level 0


def begin(target, profile):
    """An upload, or None for what is written otherwise: files that are no COGs, or small, and to other targets."""
    is_address = isinstance(target, (str, bytes)) and os.fsdecode(target)[:5].lower() == "s3://"
    if not is_address or not profile.get("cog"):
        return None
    most = [level["max_bytes"] for level in _cogpu.level_layouts(profile)]
    part_bytes, parts = _cogpu.upload_plan(sum(most))
    if sum(most) <= part_bytes:
        return None
    first = math.ceil(parts * sum(most[1:]) / sum(most)) + DIRECTORY_PARTS
    address = os.fsdecode(target)
    return Upload(address, _cogpu.upload_begin(address), part_bytes, first)


class Head:
    """All but level 0: a target for the writer, which sends what it gets as parts, in order and a few at once."""

    def __init__(self, upload):
        self.upload, self.pending, self.first = upload, bytearray(), b""
        self.number, self.etags = 0, {}
        self.threads, self.under_way = ThreadPoolExecutor(SENT_AT_ONCE), collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.threads.shutdown(cancel_futures=True)

    def write(self, data):
        self.pending += data
        while len(self.pending) >= self.upload.part_bytes:
            self._send(self.upload.part_bytes)

    def take(self, part):
        """A part that a worker has sent, or the first one of level 0."""
        if part.data is None:
            self.etags[part.number] = part.etag
        else:
            self.first = part.data

    def complete(self, size):
        """When the writer is closed, and has told the size of the object."""
        self.pending += self.first
        if self.pending:
            self._send(len(self.pending))
        while self.under_way:
            self._wait()
        _cogpu.upload_complete(self.upload.address, self.upload.id, sorted(self.etags.items()), size)

    def _send(self, size):
        self.number += 1
        if self.number > self.upload.first:
            raise LimitExceededError(f"header, directories and overviews need more than {self.upload.first} parts of "
                                     "the upload")
        if len(self.under_way) == SENT_AT_ONCE:
            self._wait()
        data = bytes(self.pending[:size])
        del self.pending[:size]
        sending = self.threads.submit(_cogpu.upload_send, self.upload.address, self.upload.id, self.number, data)
        self.under_way.append((self.number, sending))

    def _wait(self):
        number, sending = self.under_way.popleft()
        self.etags[number] = sending.result()


@contextlib.contextmanager
def aborted_on_failure(upload, client):
    """Workers send nothing any more when the upload is aborted: a part that comes later might stay in the store."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            client.run(stop, upload.id, on_error="ignore")
        _cogpu.upload_abort(upload.address, upload.id)
        raise


# ---- what tasks do ---------------------------------------------------------------------------------------------------


def sizes(encoded):
    """What the writer must know of blocks that stay elsewhere."""
    return [(level, content, block, len(data)) for level, content, block, data in encoded]


def framed(encoded, row, rows):
    """A row of a region's blocks as it stands in the file; the region has so many."""
    count = len(encoded) // rows
    return _cogpu.add_leaders_trailers([data for _, _, _, data in encoded[row * count:(row + 1) * count]])


def pack(upload, left, pieces, is_last):
    """Parts as (number, bytes); and what is left for the next pack: the number of its first part, and bytes."""
    number, rest = left or (upload.first, b"")
    rest = memoryview(b"".join([rest, *pieces]))
    parts = []
    while len(rest) >= (size := LEAST_BYTES if number == upload.first else upload.part_bytes) or (is_last and rest):
        parts.append((number, bytes(rest[:size])))
        number, rest = number + 1, rest[size:]
    return parts, (number, bytes(rest))


def left_of(packed):
    """Without the parts: they stay where they are sent from."""
    return packed[1]


def send(upload, packed):
    parts, _ = packed
    with _sending(upload.id):
        return [Part(number, None, data) if number == upload.first else
                Part(number, _cogpu.upload_send(upload.address, upload.id, number, data), None)
                for number, data in parts]


# ---- of a worker's process -------------------------------------------------------------------------------------------

_lock, _under_way, _stopped = threading.Lock(), collections.Counter(), set()


@contextlib.contextmanager
def _sending(upload_id):
    with _lock:
        if upload_id in _stopped:
            raise IOError("the upload was aborted")
        _under_way[upload_id] += 1
    try:
        yield
    finally:
        with _lock:
            _under_way[upload_id] -= 1
            if not _under_way[upload_id]:
                del _under_way[upload_id]


async def stop(upload_id):
    """Returns when nothing of an upload is on its way from here, and nothing will be."""
    with _lock:
        _stopped.add(upload_id)
    while _under_way[upload_id]:
        await asyncio.sleep(0.01)
