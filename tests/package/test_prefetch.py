"""Work ahead of a loop (cogpu.prefetch): order, how far ahead, exceptions, loops that end early."""

import gc
import threading
import weakref

import pytest
from conftest import PACKAGE  # noqa: F401  the package's folder

from cogpu.prefetch import prefetched

SECONDS = 60  # that a thread may take to end


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("cogpu-prefetch")]


def wait_for_end():
    for thread in threads():
        thread.join(SECONDS)
    assert not threads()


class Steps:
    """Work that a test lets go step by step."""

    def __init__(self):
        self.begun, self.released = [], [threading.Event() for _ in range(10)]
        self.begin = [threading.Event() for _ in range(10)]

    def __call__(self, item):
        self.begun.append(item)
        self.begin[item].set()
        assert self.released[item].wait(SECONDS)
        return item * 10


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_all_items_in_order(count):
    assert list(prefetched(lambda item: item * item, range(10), count)) == [item * item for item in range(10)]
    assert list(prefetched(lambda item: item, [], count)) == []
    wait_for_end()


@pytest.mark.parametrize("count", [1, 3])
def test_so_many_items_ahead(count):
    steps = Steps()
    for event in steps.released:
        event.set()
    results = prefetched(steps, range(10), count)
    assert next(results) == 0
    assert steps.begin[count].wait(SECONDS)  # while the caller has the first
    results.close()
    wait_for_end()
    assert steps.begun == list(range(count + 1))


def test_without_a_thread_nothing_is_ahead():
    steps = Steps()
    for event in steps.released:
        event.set()
    results = prefetched(steps, range(10), 0)
    assert next(results) == 0 and steps.begun == [0] and not threads()


def test_an_exception_is_raised_when_its_item_is_due():
    def work(item):
        if item == 1:
            raise ValueError("item 1")
        return item

    results = prefetched(work, range(5), 3)
    assert next(results) == 0
    with pytest.raises(ValueError, match="item 1"):
        next(results)
    with pytest.raises(StopIteration):
        next(results)
    wait_for_end()


@pytest.mark.parametrize("end", ["close", "delete"])
def test_a_loop_that_ends_early_cancels_what_has_not_begun(end):
    steps = Steps()
    steps.released[0].set()
    results = prefetched(steps, range(10), 3)
    assert next(results) == 0
    assert steps.begin[1].wait(SECONDS)
    if end == "close":
        results.close()  # does not wait
    del results
    steps.released[1].set()
    wait_for_end()
    assert steps.begun == [0, 1]


def test_results_are_not_kept():
    class Result:
        pass

    made = []

    def work(item):
        result = Result()
        made.append(weakref.ref(result))
        return result

    results = prefetched(work, range(4), 1)
    for number in range(4):
        result = next(results)
        assert made[number]() is result
        del result
        assert made[number]() is None
    results = prefetched(work, range(4), 2)
    next(results)
    results.close()
    wait_for_end()
    gc.collect()
    assert all(one() is None for one in made)
