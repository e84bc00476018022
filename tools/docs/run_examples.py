"""Runs the worked examples of docs/examples and writes their pages.

    tools/docs/run_examples.py [--check] [NAME ...]      (make docs-examples)

An example is a script in cells, as Jupyter's "percent" format has them: `# %% [markdown]` with text, `# %%` with code. The
cells run in one namespace, in a temporary folder. The page NAME.md shows text, code and printed lines; the picture NAME.png,
which the script saves, is copied beside it. --check runs nothing, and ends with 1 if the text or code of a page is not that
of its script.
"""

import argparse
import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples"
NAMES = ["dem_slope", "dask_stream", "training_loader", "s3_to_gpu", "two_zones"]
CELL = re.compile(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", re.M | re.S)
OUTPUT = re.compile(r"^```text\n.*?^```\n\n", re.M | re.S)


@dataclass
class Cell:
    text: str
    is_code: bool
    output: str = ""


def cells(script):
    found = []
    for mark, body in CELL.findall(script):
        text = body.strip("\n")
        found.append(Cell(text if not mark else re.sub(r"^# ?", "", text, flags=re.M), not mark))
    return found


def run(name, script_cells):
    """Fills the output of each cell of code, in a new folder; returns the picture's bytes. `cogpu` is that of the build."""
    names, before = {"__name__": "__main__"}, os.getcwd()
    os.environ["PATH"] = os.pathsep.join([str(ROOT / "build"), os.environ["PATH"]])
    sys.path.insert(0, str(FOLDER))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in script_cells:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    if cell.is_code:
                        exec(compile(cell.text, f"{name}.py", "exec"), names)
                cell.output = printed.getvalue()
            return small_png(f"{name}.png")
        finally:
            os.chdir(before)
            sys.path.remove(str(FOLDER))


def small_png(path):
    """The picture with a palette: shaded terrain compresses badly otherwise."""
    from PIL import Image  # a requirement of matplotlib
    packed = io.BytesIO()
    Image.open(path).convert("RGB").quantize(128).save(packed, "png", optimize=True)
    return packed.getvalue()


def page(name, script_cells):
    parts = []
    for cell in script_cells:
        parts.append(f"```python example\n{cell.text}\n```" if cell.is_code else cell.text)
        if cell.output:
            parts.append(f"```text\n{cell.output.rstrip()}\n```")
    parts.append(f"![What the script draws]({name}.png)")
    parts.append(f"The page was written by `make docs-examples`, which runs [{name}.py]({name}.py) in this order.")
    return "\n\n".join(parts) + "\n"


def without_output(text):
    return OUTPUT.sub("", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare text and code of the pages with the scripts")
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER, help="folder of the pages and pictures")
    parser.add_argument("names", nargs="*", default=NAMES)
    chosen = parser.parse_args()
    for name in chosen.names:
        found = cells((FOLDER / f"{name}.py").read_text())
        if chosen.check:
            if without_output((FOLDER / f"{name}.md").read_text()) != page(name, found):
                sys.exit(f"docs/examples/{name}.md is out of date: run make docs-examples")
            continue
        picture = run(name, found)
        (chosen.out / f"{name}.md").write_text(page(name, found))
        (chosen.out / f"{name}.png").write_bytes(picture)
        print(f"{name}: {sum(cell.is_code for cell in found)} cells, picture of {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
