"""Work ahead of a loop: threads prepare the next items while the caller uses the current one."""

from __future__ import annotations

import collections
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetched(work: Callable[[Item], Result], items: Iterable[Item], count: int,
               threads: int = 1) -> Generator[Result, None, None]:
    """Yields work(item) of each item, in order. Threads work on up to `count` items beyond the one that the caller
    has; with 0 there is no thread.

    An exception of `work` is raised in the place of its result. An iterator that is closed or deleted early cancels what
    has not begun; what has begun ends by itself, and its result is freed.
    """
    if not count:
        yield from map(work, items)
        return
    pending = collections.deque[Future[Result]]()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="cogpu-prefetch")
    try:
        for item in items:
            pending.append(pool.submit(work, item))
            if len(pending) > count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # Without waiting: the garbage collector may run this in one of the threads.
        pool.shutdown(wait=False, cancel_futures=True)
