"""A proxy that spoils answers on purpose: `proxy.py PORT` hands HTTP/1.1 requests on to that port of this machine.

Its first line of output is its own port. Then each line on stdin is an order in JSON, [name, arguments], and gets a
line in return; with the end of stdin it ends. Requests are counted from 1 when a plan is set. A fault is one of

  {"kind": "delay", "seconds": S}            before the answer
  {"kind": "trickle", "seconds": S}          the body byte by byte, with a wait after each
  {"kind": "cut", "after": N}                the connection is closed after N bytes of the body
  {"kind": "reset", "after": N}              ... or reset
  {"kind": "stall", "after": N}              ... or stays open and silent
  {"kind": "lost"}                           ... or is reset when the server has done its work, without an answer
  {"kind": "drop"}                           ... or before the request is handed on
  {"kind": "refuse", "seconds": S}           ... with all others, and none is accepted for a while
  {"kind": "header", "name": H, "value": V}  a header is replaced; without value, dropped
  {"kind": "second", "name": H, "value": V}  a header is there twice; without value, the same
  {"kind": "shift", "by": N}                 Content-Range speaks of other bytes
  {"kind": "length", "add": N}               Content-Length says N more than the body has
  {"kind": "body", "add": N}                 the body has N bytes more, or less, than Content-Length says
  {"kind": "status", "code": C, "after": S}  the server is not asked; Retry-After if `after` is there, and `text`

Where `after` of a body is left out, the plan's dice choose it.
"""

import asyncio
import collections
import json
import random
import re
import socket
import struct
import sys

from process import held_port

PIECE = 1 << 16


class Plan:
    """Which faults a request gets, by its number alone: `at` that number, `every` one, or a share of all at random.
    Requests that `only`, a regular expression, does not find in "METHOD PATH" are neither counted nor touched."""

    def __init__(self, at=None, every=None, among=(), share=0.0, seed=0, only=""):
        self.at = {int(number): fault for number, fault in (at or {}).items()}
        self.every, self.among, self.share, self.seed, self.only = every, among, share, seed, only

    def faults(self, number):
        dice = random.Random(f"{self.seed} {number}")
        faults = [self.every, self.at.get(number)]
        if self.among and dice.random() < self.share:
            faults.append(dice.choice(self.among))
        return [{"point": dice.random(), **fault} for fault in faults if fault]


class Head:
    """The first line and the headers of a request or an answer."""

    def __init__(self, text):
        self.first, *lines = text.decode("latin-1").rstrip("\r\n").split("\r\n")
        parts = [line.partition(":") for line in lines]
        self.headers = [(name, value.strip()) for name, _, value in parts]

    def get(self, name, default=None):
        return next((value for known, value in self.headers if known.lower() == name.lower()), default)

    def set(self, name, value):
        self.headers = [(known, old) for known, old in self.headers if known.lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))

    def length(self):
        return int(self.get("Content-Length") or 0)

    def text(self):
        lines = [self.first, *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join(lines + ["", ""]).encode("latin-1")


def spoil_head(head, fault):
    """Whether the fault is one of the head's, and has changed it."""
    before = head.text()
    if fault["kind"] == "header":
        head.set(fault["name"], fault.get("value"))
    elif fault["kind"] == "second":
        head.headers.append((fault["name"], fault.get("value", head.get(fault["name"]))))
    elif fault["kind"] == "length":
        head.set("Content-Length", str(head.length() + fault["add"]))
    elif fault["kind"] == "shift" and head.get("Content-Range"):
        shifted = re.sub(r"(\d+)-(\d+)", lambda span: "-".join(str(int(end) + fault["by"]) for end in span.groups()),
                         head.get("Content-Range"))
        head.set("Content-Range", shifted)
    return head.text() != before


def reset(writer):
    if not writer.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def send(writer, data):
    """Returns when the kernel has it all, so that a reset loses nothing of it."""
    writer.write(data)
    await writer.drain()


class Ended(Exception):
    """There is nothing more to say on a connection."""


class Proxy:
    def __init__(self, upstream):
        self.upstream, self.listener, self.clients, self.connections = upstream, None, set(), 0
        # Bound, but never listening: the port stays ours while connections are refused.
        self.held = held_port()
        self.port = self.held.getsockname()[1]
        self.plan()

    # ---- orders --------------------------------------------------------------------------------

    def plan(self, **words):
        self.planned, self.number, self.seen, self.done = Plan(**words), 0, [], collections.Counter()
        self.under_way, self.most = 0, 0

    def report(self):
        return {"requests": self.seen, "done": self.done, "most": self.most}

    async def open(self):
        if self.listener is None:
            self.listener = await asyncio.start_server(self.serve, host="127.0.0.1", port=self.port, reuse_port=True)

    async def shut(self):
        """All connections are reset, and new ones refused."""
        if self.listener is not None:
            self.listener.close()
            self.listener = None
        for writer in list(self.clients):
            reset(writer)

    # ---- a connection --------------------------------------------------------------------------

    async def serve(self, reader, writer):
        self.connections += 1
        connection = self.connections
        self.clients.add(writer)
        writer.transport.set_write_buffer_limits(0)
        try:
            while True:
                await self.serve_request(connection, reader, writer)
        except (Ended, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.clients.discard(writer)
            writer.close()

    async def serve_request(self, connection, reader, writer):
        request = Head(await reader.readuntil(b"\r\n\r\n"))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.serve_rest(connection, request, reader, writer)
        finally:
            self.under_way -= 1

    async def serve_rest(self, connection, request, reader, writer):
        if request.get("Expect"):
            await send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
            request.set("Expect", None)
        body = await reader.readexactly(request.length())
        faults = self.count(connection, request)
        for fault in faults:
            if await self.is_answered(fault, reader, writer):
                return
        body, server = await self.ask(request, body)
        try:
            await self.answer(request, body, faults, reader, writer)
        finally:
            server.close()

    def count(self, connection, request):
        """The request's faults."""
        method, path, _ = request.first.split(" ", 2)
        if not re.search(self.planned.only, f"{method} {path}"):
            return []
        self.number += 1
        faults = self.planned.faults(self.number)
        self.seen.append({"number": self.number, "connection": connection, "method": method, "path": path,
                          "range": request.get("Range", ""), "faults": [fault["kind"] for fault in faults]})
        return faults

    async def is_answered(self, fault, reader, writer):
        """Faults for which the server need not be asked."""
        kind = fault["kind"]
        if kind in ("delay", "status", "drop", "refuse"):
            self.done[kind] += 1
        if kind == "delay":
            await asyncio.sleep(fault["seconds"])
            if reader.at_eof():  # no client waits any more: the server need not know
                raise Ended
        elif kind == "status":
            wait = f"Retry-After: {fault['after']}\r\n" if "after" in fault else ""
            text = fault.get("text", "spoilt\n")
            await send(writer, f"HTTP/1.1 {fault['code']} Spoilt\r\n{wait}Content-Length: {len(text)}\r\n\r\n{text}".encode())
        elif kind == "drop":
            reset(writer)
            raise Ended
        elif kind == "refuse":
            await self.shut()
            await asyncio.sleep(fault["seconds"])
            await self.open()
            raise Ended
        return kind == "status"

    async def ask(self, request, body):
        """What the server says, to its end, which the connection's end shows whatever headers say."""
        reader, server = await asyncio.open_connection("127.0.0.1", self.upstream)
        request.set("Connection", "close")
        server.write(request.text() + body)
        await server.drain()
        return reader, server

    async def answer(self, request, body, faults, reader, writer):
        head = Head(await body.readuntil(b"\r\n\r\n"))
        head.set("Connection", None)
        length = head.length()
        for fault in faults:
            if fault["kind"] == "lost":
                self.done["lost"] += 1
                reset(writer)
                raise Ended
            self.done[fault["kind"]] += spoil_head(head, fault)
        await send(writer, head.text())
        await self.send_body(body, length, faults, reader, writer)
        is_chunked, is_bare = head.get("Transfer-Encoding"), request.first.startswith("HEAD ")
        if not is_chunked and not is_bare and (head.get("Content-Length") is None or head.length() > length):
            raise Ended

    async def send_body(self, body, length, faults, reader, writer):
        faults = {fault["kind"]: fault for fault in faults}
        limit, how = body_limit(faults, length)
        sent, trickle = 0, faults.get("trickle")
        while data := await body.read(PIECE):
            allowed = data if limit is None else data[:limit - sent]
            await self.send_piece(writer, allowed, trickle)
            sent += len(allowed)
            if len(allowed) < len(data):
                await self.end(how, reader, writer)
        if trickle:
            self.done["trickle"] += 1
        added = faults.get("body", {}).get("add", 0)
        if added > 0:
            self.done["body"] += 1
            await send(writer, b"+" * added)

    @staticmethod
    async def send_piece(writer, data, trickle):
        for place in range(len(data) if trickle else 0):
            await send(writer, data[place:place + 1])
            await asyncio.sleep(trickle["seconds"])
        if not trickle:
            await send(writer, data)

    async def end(self, how, reader, writer):
        """Of a connection, in the middle of an answer."""
        self.done[how] += 1
        if how == "stall":
            while await reader.read(PIECE):
                pass
        elif how == "reset":
            reset(writer)
        raise Ended


def body_limit(faults, length):
    """How many bytes of a body are sent, and by which fault no more."""
    if faults.get("body", {}).get("add", 0) < 0:
        return max(length + faults["body"]["add"], 0), "body"
    for kind in ("cut", "reset", "stall"):
        if kind in faults:
            return faults[kind].get("after", int(faults[kind]["point"] * length)), kind
    return None, None


async def main(upstream):
    proxy = Proxy(upstream)
    await proxy.open()
    print(proxy.port, flush=True)
    orders = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        name, words = json.loads(line)
        result = getattr(proxy, name)(**words)
        print(json.dumps(await result if asyncio.iscoroutine(result) else result), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
