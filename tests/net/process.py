"""Processes of servers that end with the tests, also when those crash, and what servers log."""

import ctypes
import json
import signal
import socket
import subprocess
import time
import types

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def start(command, **options):
    """A process that the kernel kills when the one that started it is gone."""
    return subprocess.Popen([str(word) for word in command], **options,
                            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))


def stop(process):
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def held_port():
    """A socket on a port of this machine that the kernel chose. It does not listen, but lets another of ours do so with
    SO_REUSEPORT, and no other process."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Log:
    """A file of JSON lines that a server goes on writing."""

    def __init__(self, path):
        self.file = open(path, "a+b")
        self.rest, self.lines = b"", []

    def read(self):
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        self.lines += [types.SimpleNamespace(**json.loads(line)) for line in lines]

    def take(self, count=None):
        """The next lines, all unless told how many."""
        self.read()
        taken, self.lines = self.lines[:count], self.lines[count:] if count is not None else []
        return taken

    def take_before(self, is_mark, seconds=10):
        """The lines before one that is bound to come; that one is dropped."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            for index, line in enumerate(self.lines):
                if is_mark(line):
                    return self.take(index + 1)[:-1]
            time.sleep(0.001)
        raise TimeoutError(f"{self.file.name}: the mark did not come; the last lines: {self.lines[-3:]}")
