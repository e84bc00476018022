"""The end of a Writer of the extension module, and of its process; threads; and memory."""

import gc
import io
import os
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from cogpu import _cogpu, errors
from test_writer import COG, Broken, pixels, profile_of, push_all, read_by_gdal, same, write


def test_after_the_end():
    array = pixels()
    closed, aborted = (_cogpu.Writer(None, profile_of(array)) for _ in range(2))
    push_all(closed, array)
    aborted.abort()
    for writer in closed, aborted:
        for use in (lambda: writer.write_rows(array), lambda: writer.write_block(0, "pixels", 0, b"x"), writer.close):
            with pytest.raises(errors.InvalidArgumentError, match="closed"):
                use()
        writer.abort()
        with pytest.raises(errors.InvalidArgumentError, match="opened before"):
            writer.__init__(None, profile_of(array))
    unborn = _cogpu.Writer.__new__(_cogpu.Writer)
    unborn.abort()
    with pytest.raises(errors.InvalidArgumentError, match="not open"):
        unborn.write_rows(array)


class Waiting(io.BytesIO):
    """Its first write waits."""

    def __init__(self):
        super().__init__()
        self.is_inside, self.may_go = threading.Event(), threading.Event()

    def write(self, piece):
        self.is_inside.set()
        assert self.may_go.wait(20)
        return super().write(piece)


def test_two_threads_at_once():
    array = pixels()
    target = Waiting()
    writer = _cogpu.Writer(target, profile_of(array, **COG))
    writer.write_rows(array)
    written = []
    closing = threading.Thread(target=lambda: written.append(writer.close()))
    closing.start()
    assert target.is_inside.wait(20)
    for use in (lambda: writer.write_rows(array), writer.close, writer.abort,
                lambda: writer.write_block(0, "pixels", 0, b"x")):
        with pytest.raises(errors.InvalidArgumentError, match="in use|closed"):
            use()
    target.may_go.set()
    closing.join()
    assert written[0]["bytes"] == len(target.getvalue()) and target.getvalue() == write(array, **COG)


# Blocks that are large enough to be written at once, by the thread that encoded them, when the push has returned.
LARGE = {"strips": True, "block_height": 512, "codec": "none"}


def test_a_target_that_uses_its_writer():
    """Neither deadlock nor crash, be the write in a push or between two."""
    array = pixels(height=1024, width=1024)
    main, raised = threading.get_ident(), []
    is_pushed, is_done = threading.Event(), threading.Event()

    class Meddler(io.BytesIO):
        def write(self, piece):
            is_elsewhere = threading.get_ident() != main
            assert not is_elsewhere or is_pushed.wait(20)
            for use in lambda: writer.write_rows(array), writer.close, writer.abort:
                with pytest.raises(errors.InvalidArgumentError, match="writer"):
                    use()
            raised.append(is_elsewhere)
            is_done.set()
            return super().write(piece)

    target = Meddler()
    writer = _cogpu.Writer(target, profile_of(array, **LARGE))
    writer.write_rows(array[:, :512])
    is_pushed.set()
    assert is_done.wait(20)
    writer.write_rows(array[:, 512:])
    writer.close()
    assert len(raised) >= 3 and raised[0] and target.getvalue() == write(array, **LARGE)


def test_many_writers_in_many_threads():
    arrays = [pixels(bands=1 + i % 3) for i in range(8)]
    expected = [write(array, **COG) for array in arrays]
    found = [None] * len(arrays)

    def work(i):
        target = io.BytesIO()
        push_all(_cogpu.Writer(target, profile_of(arrays[i], **COG)), arrays[i], [30, 30, 30])
        found[i] = target.getvalue()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_a_cycle_is_collected():
    class Holder(io.BytesIO):
        pass

    target = Holder()
    target.writer = _cogpu.Writer(target, profile_of(pixels()))
    target.writer.write_rows(pixels()[:, :40])
    alive = weakref.ref(target)
    del target
    gc.collect()
    assert alive() is None


def run(program):
    """A program in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          env=environment, timeout=60)


PROLOGUE = """
import io, os, sys, threading, time
import numpy as np
from cogpu import _cogpu
array = np.random.default_rng(1).random((1, 1024, 1024), "float32")
profile = dict(width=1024, height=1024, bands=1, type="float32", strips=True, block_height=512, codec="none")
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "writer = None", "sys.modules['kept'] = writer"])
def test_the_interpreter_ends_before_the_writer(end, tmp_path):
    """While a thread of the engine is in the target's write."""
    found = run(PROLOGUE + f"""
is_inside = threading.Event()
class Target(io.BytesIO):
    def write(self, piece):
        is_inside.set()
        time.sleep(0.3)
        return super().write(piece)
writer = _cogpu.Writer(Target(), profile)
path_writer = _cogpu.Writer({str(tmp_path / 'a.tif')!r}, profile)
path_writer.write_rows(array[:, :600])
writer.write_rows(array[:, :600])
assert is_inside.wait(20)
{end}
""")
    assert (found.returncode, found.stderr) == (0, "") and list(tmp_path.iterdir()) == []


def test_the_child_of_a_fork_leaves_the_file_alone(tmp_path):
    found = run(PROLOGUE + f"""
path = {str(tmp_path / 'a.tif')!r}
writer = _cogpu.Writer(path, profile)
writer.write_rows(array[:, :600])
child = os.fork()
if not child:
    try:
        writer.write_rows(array[:, 600:])
    except ValueError as error:
        print(error, flush=True)
    del writer
    os._exit(0)
os.waitpid(child, 0)
writer.write_rows(array[:, 600:])
writer.close()
""")
    assert (found.returncode, found.stderr) == (0, "") and "process" in found.stdout
    assert same(read_by_gdal((tmp_path / "a.tif").read_bytes()),
                np.random.default_rng(1).random((1, 1024, 1024), "float32"))


def memory_of_process():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_nothing_leaks():
    """Neither of what is written nor of what fails."""
    array = pixels(height=512, width=512)
    profile = profile_of(array, codec="none", metadata=[{"name": "a", "value": "b" * 1_000_000}], rpc=[1.0] * 92)

    def once():
        push_all(_cogpu.Writer(None, profile), array)
        for bad in {"overview_factors": [2.5]}, {"codec": "brotli"}:
            with pytest.raises((TypeError, errors.InvalidArgumentError)):
                _cogpu.Writer(None, profile | bad)
        with pytest.raises(ConnectionResetError):
            push_all(_cogpu.Writer(Broken(0, ConnectionResetError()), profile), array)

    def grow(times):
        before = memory_of_process()
        for _ in range(times):
            once()
        gc.collect()
        return memory_of_process() - before

    grow(10)
    assert grow(40) < 40 << 20  # each time megabytes come and go
