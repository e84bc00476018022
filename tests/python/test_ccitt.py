"""CCITT streams with empty runs, against libtiff.

An empty run changes no pixel, but it is a changing element that the row below is coded against. Encoders seldom
write one, so the test has an encoder of its own: it emits any mode that is valid at its place.
"""

import pathlib
import re

import cogpu_ctypes as cogpu
import reference
import numpy as np
import pytest
import tiff_bytes as tb

CODES = (pathlib.Path(__file__).parents[1] / "support/ccitt_codes.c").read_text()
RLE, G3, G4 = 2, 3, 4
VERTICAL = {-3: "0000010", -2: "000010", -1: "010", 0: "1", 1: "011", 2: "000011", 3: "0000011"}
EOL = "000000000001"
HEIGHT = 40


def table(name):
    return re.findall(r'"([01]+)"', re.search(name + r"\[\w+\] = \{(.*?)\};", CODES, re.DOTALL)[1])


RUNS, LONG_RUNS = (table("white_runs"), table("black_runs")), table("long_runs")


def run_code(black, run):
    code = ""
    while run >= 2560:
        code, run = code + LONG_RUNS[-1], run - 2560
    if run >= 1792:
        code += LONG_RUNS[(run - 1792) // 64]
    elif run >= 64:
        code += RUNS[black][63 + run // 64]
    return code + RUNS[black][run % 64]


class Rows:
    """Rows of any runs: their codes, and the changes of colour that the next row refers to."""

    def __init__(self, rng, width):
        self.rng, self.width = rng, width
        self.above = [width] * 3

    def chance(self, of):
        return self.rng.integers(of) == 0

    def run(self, column, room):
        """Mostly short, often empty; without `room` for more runs to the row's end."""
        left = self.width - column
        if not room:
            return left
        if self.chance(3):
            return 0
        return min(left, int(self.rng.integers(left + 1) if self.chance(4) else self.rng.integers(5)))

    def finish(self, changes):
        self.above = changes + [self.width] * 3

    def row_1d(self):
        """libtiff deletes a pair of an empty white and an empty black run."""
        code, changes, column = "", [], 0
        while column < self.width:
            black = len(changes) % 2
            run = self.run(column, room=len(changes) + 2 < self.width)
            code += run_code(black, run)
            column += run
            changes.append(column)
            if black and column < self.width and [0, *changes][-3] == column:
                del changes[-2:]
        self.finish(changes)
        return code

    def row_2d(self):
        code, changes, a0, b1 = "", [], 0, 0
        above, width = self.above, self.width
        while a0 < width:
            while changes and above[b1] <= a0:
                b1 += 2
            room = len(changes) < width
            shift = int(self.rng.integers(-3, 4))
            if room and self.chance(5) and above[b1] < width:
                code, a0, b1 = code + "0001", above[b1 + 1], b1 + 2
            elif room and not self.chance(3) and a0 <= above[b1] + shift <= width:
                code, a0 = code + VERTICAL[shift], above[b1] + shift
                changes.append(a0)
                b1 = b1 + 1 if shift >= 0 else max(b1 - 1, 0) if b1 else 1
            else:
                code += "001"
                for _ in range(2):
                    run = self.run(a0, room)
                    code += run_code(len(changes) % 2, run)
                    a0 += run
                    changes.append(a0)
        self.finish(changes)
        return code


def encode(rng, width, compression, two_dimensional):
    rows, code = Rows(rng, width), ""
    for row in range(HEIGHT):
        is_2d = compression == G4 or (two_dimensional and row % 4 != 0)
        if compression == G3:
            code += EOL + ("" if not two_dimensional else "0" if is_2d else "1")
        code += rows.row_2d() if is_2d else rows.row_1d()
        if compression == RLE:
            code += "0" * (-len(code) % 8)
    code += {G4: EOL * 2, G3: (EOL + "1" * two_dimensional) * 6}.get(compression, "")
    code += "0" * (-len(code) % 8)
    return int(code, 2).to_bytes(len(code) // 8, "big")


def empty_run_file(seed, width, compression, options, fill_order):
    stream = encode(np.random.default_rng(seed), width, compression, options & 1)
    if fill_order == 2:
        stream = tb.reverse_bits(stream)
    tags = {266: (tb.SHORT, [fill_order])}
    if compression == G3:
        tags |= {292: (tb.LONG, [options])}
    return tb.image(np.zeros((1, HEIGHT, width), "u1"), compression=compression, bits=1, blocks=[stream], tags=tags)


@pytest.mark.parametrize("fill_order", [1, 2])
@pytest.mark.parametrize("compression, options", [(G4, 0), (G3, 1), (G3, 0), (RLE, 0)],
                         ids=["g4", "g3_2d", "g3_1d", "rle"])
@pytest.mark.parametrize("width", [1, 2, 7, 8, 31, 33, 100, 1729, 2561, 6001])
def test_ccitt_empty_runs(width, compression, options, fill_order):
    for seed in range(8):
        data = empty_run_file(seed, width, compression, options, fill_order)
        expected = reference.read(data)
        with cogpu.open_memory(data) as file:
            assert reference.same(file.read(), expected), seed


def test_ccitt_empty_run_in_reference_line():
    """White 5, black 0, white 0, black 3 above: the first change to white below is at 5, not at 8."""
    code = "001" + run_code(0, 5) + run_code(1, 0) + "001" + run_code(0, 0) + run_code(1, 3) + "1"
    code += "001" + run_code(0, 2) + run_code(1, 1) + "1" * 5 + EOL * 2
    code += "0" * (-len(code) % 8)
    data = tb.image(np.zeros((1, 2, 16), "u1"), compression=G4, bits=1,
                    blocks=[int(code, 2).to_bytes(len(code) // 8, "big")])
    expected = reference.read(data)
    with cogpu.open_memory(data) as file:
        assert reference.same(file.read(), expected)
