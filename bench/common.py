"""What the benchmarks of the CPU share: memory of this process, tables, and pages that hold them."""
import os
import platform
import re
from statistics import median

import rasters

ALL = os.cpu_count()
RESULTS = rasters.ROOT / "bench" / "results"


def machine():
    models = re.findall(r"model name\s*: (.*)", open("/proc/cpuinfo").read()) or [platform.machine()]
    return f"{models[0]}, {ALL} CPU cores"


def memory(field):
    return int(re.search(field + r":\s*(\d+)", open("/proc/self/status").read())[1]) * 1024


def ratio(seconds, we, peer):
    """How many times as fast as the peer we are, as text."""
    if we not in seconds or peer not in seconds:
        return "-"
    return f"{median(theirs / our for theirs, our in zip(seconds[peer], seconds[we])):.2f}"


def best(seconds, names):
    """The fastest of those who were measured, or None."""
    return min((n for n in names if n in seconds), key=lambda n: median(seconds[n]), default=None)


def speed(amount, seconds, spread):
    if not seconds:
        return "-"
    text = f"{amount / median(seconds):.0f}"
    return text + (f" ({amount / max(seconds):.0f}..{amount / min(seconds):.0f})" if spread else "")


def markdown(header, lines):
    cells = [header, ["---"] + ["---:"] * (len(header) - 1)] + lines
    return "".join("| " + " | ".join(line) + " |\n" for line in cells)


def not_measured(outcome, row, title):
    """Who was left out and why: what it refused of each result, whose `row` is written by `title`, and what is absent."""
    lines = [f"- {name}, {title(result[row])}: {why}\n" for result in outcome[row + "s"]
             for name, why in result["refused"].items()]
    lines += [f"- {name}: not installed\n" for name in outcome.get("absent", [])]
    return ("\nNot measured:\n\n" if lines else "") + "".join(dict.fromkeys(lines))


def put_into(name, mark, text):
    """Puts text between the marks of a page in docs."""
    page = rasters.ROOT / "docs" / name
    marked = re.compile(rf"(<!-- bench:{mark} -->\n).*?(<!-- /bench -->)", re.S)
    whole, found = marked.subn(lambda m: m[1] + text + m[2], page.read_text())
    if not found:
        raise ValueError(f"{page}: no mark <!-- bench:{mark} -->")
    page.write_text(whole)
