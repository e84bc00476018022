"""The proxy of proxy.py, in a process of its own, and what to tell it."""

import json
import pathlib
import subprocess
import sys
import types

from process import start, stop

PROGRAM = pathlib.Path(__file__).with_name("proxy.py")


class Faults:
    """`http` is where to ask instead of the server itself."""

    def __init__(self, upstream):
        self.process = start([sys.executable, PROGRAM, upstream], text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.http = f"http://127.0.0.1:{self.port}"

    def order(self, name, **words):
        self.process.stdin.write(json.dumps([name, words]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def plan(self, at=None, every=None, among=(), share=0.0, seed=0, only=""):
        """What goes wrong from now on; see Plan in proxy.py. Without words, nothing. Counts begin anew."""
        self.order("open")
        self.order("plan", at=at, every=every, among=among, share=share, seed=seed, only=only)

    def shut(self):
        """Resets all connections and refuses new ones, until open()."""
        self.order("shut")

    def open(self):
        self.order("open")

    def requests(self):
        """Those since the plan was set: number, connection, method, path, range, and kinds of faults."""
        return [types.SimpleNamespace(**seen) for seen in self.order("report")["requests"]]

    def done(self):
        """How often a kind of fault has had its effect since the plan was set."""
        return {kind: count for kind, count in self.order("report")["done"].items() if count}

    def most(self):
        """How many requests were under way at once since the plan was set, from their headers on."""
        return self.order("report")["most"]

    def close(self):
        stop(self.process)
