"""docs/speed.png, the picture of README.md: four bars from the table of docs/bench-gpu.md, which `make bench-gpu` measures.

    tools/docs/speed_picture.py [OUT.png]      (make docs-picture)
"""

import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "bench-gpu.md"
ROW = "float32 deflate p2"  # the first that all contenders read
BARS = {"file to raster, ms": "cogpu, on the GPU", "16 CPU cores + upload": "cogpu, 16 CPU cores + copy to the GPU",
        "nvTIFF": "nvTIFF 0.8", "xarray-spatial": "xarray-spatial 0.10.20 (nvCOMP)"}
OURS, THEIRS = "#12803f", "#9aa7b8"


def figures(page):
    """{label: milliseconds} of the row, by the headings of the first table."""
    table = re.search(r"^\| file \|.*?(?=^\n|\Z)", page, re.M | re.S)[0]
    rows = [[cell.strip().strip("*") for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    found = next(dict(zip(rows[0], row)) for row in rows[2:] if row[0] == ROW)
    return {label: float(found[heading]) for heading, label in BARS.items()}


def draw(times, path):
    figure, axes = pyplot.subplots(figsize=(9, 1.95))
    labels, values = list(times), list(times.values())
    axes.barh(labels, values, color=[OURS if label.startswith("cogpu") else THEIRS for label in labels], height=0.72)
    for row, value in enumerate(values):
        axes.text(value + max(values) * 0.008, row, f"{value:g} ms", va="center", fontsize=10,
                  fontweight="bold" if row == 0 else "normal")
    axes.invert_yaxis()
    axes.set_xlim(0, max(values) * 1.09)
    axes.tick_params(left=False, bottom=False, labelbottom=False, labelsize=10)
    for side in axes.spines.values():
        side.set_visible(False)
    figure.text(0.02, 0.91, "GeoTIFF file to pixels in GPU memory: 10,000 x 10,000 float32, deflate (NVIDIA H200)", fontsize=11)
    figure.tight_layout(rect=(0, -0.06, 1, 0.92))
    figure.savefig(path, dpi=160)


if __name__ == "__main__":
    draw(figures(PAGE.read_text()), sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "speed.png")
