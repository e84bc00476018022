"""Runs a program and says how it went: "CODE SECONDS KIB STDOUT_BYTES", then its stdout and stderr.

A process of its own, and a small one, because the kernel counts the memory of the process that starts a program
as the program's until it has started. It is started a thousand times, so it imports little.
"""

import os
import signal
import sys
import time


def main(limit, command):
    with open(os.memfd_create("out"), "w+b") as out, open(os.memfd_create("err"), "w+b") as err:
        start = time.monotonic()
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)]
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, limit)
        _, status, usage = os.wait4(child, 0)
        seconds = time.monotonic() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
        out.seek(0)
        err.seek(0)
        text = out.read()
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.buffer.write(b"%d %f %d %d\n" % (code, seconds, usage.ru_maxrss, len(text)))
        sys.stdout.buffer.write(text + err.read())


main(float(sys.argv[1]), sys.argv[2:])
