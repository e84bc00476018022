#!/usr/bin/env python3
"""Reports words that this project once used privately, where the field has a term (docs/glossary.md).

    tools/word_check.py [--summary] [PATH ...]

Prints FILE:LINE: word -> term for each, in code, comments, messages and docs; the exit status is 1 if there is any.
A word inside an identifier counts: berth_of, BERTHS. A line that needs the word says why: "word-check: reason".
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".c", ".h", ".cu", ".cpp", ".py", ".pyi", ".md", ".txt", ".cmake", ".sh", ".in"}
# This file, and history that is quoted: decisions name what they replaced.
EXCEPT = re.compile(r"^(tools/word_check\.py|docs/decisions/|docs/glossary\.md|CHANGELOG\.md|LICENSE)")

# Parts of identifiers and words of prose: pattern -> term.
WORDS = {
    r"berths?": "slot, buffer",
    r"seat(s|ed|ing)?": "worker, scratch",
    r"veil(s|ed)?": "mask rows",
    r"passages?": "band pass",
    r"swaths?": "rows, chunk",
    r"shrink(s|ing)?|shrunk|shrank": "downsample",
    r"shelf|shelves": "range cache",
    r"verdicts?": "status, outcome",
    r"judge(s|d|ment)?|judging": "check, compare with the reference",
    r"reckon(s|ed|ing)?": "compute",
    r"mend(s|ed|ing)?": "fix, patch",
    r"unsound": "malformed, invalid",
    r"sound(ly|ness)?": "valid",
    r"rooms?": "capacity, buffer, module",
    r"told|tell": "report, encode, describe",
    r"settle(s|d)?": "finish, seal",
    r"brought": "fetched, downloaded",
}
# Plain English elsewhere, private where it named a thing: only below these folders.
ONLY_IN = {
    r"verdicts?": tuple(f"{folder}/{module}" for folder in ("src", "tests/unit")
                        for module in ("io", "cpu", "gpu", "kernels")),
    r"told|tell": ("src", "cli", "include"),
    r"rooms?": ("src", "cli", "python", "include", "docs", "README.md", "CONTRIBUTING.md"),
}
# Phrases of prose.
PHRASES = {
    r"\b([Nn]obody|[Ww]hoever|[Ww]hom)\b": "name the component",
    r"\b[Hh]ands? on\b": "return, produce, pass to",
    r"\b[Mm]emory of the (host|device|GPU)\b": "host memory, device memory",
    r"\b[Mm]emory of a (host|device|GPU)\b": "device memory",
    r"\bprocessors?\b(?!-)": "CPU, CPU cores",
    r"\bon the ground\b|\bthe ground\b": "georeferencing",
    r"\bPROJ's words\b": "PROJ string",
    r"\b(is|are) due\b": "required, expected",
    r"\bwho wants?\b|\bwho asks?\b|\bwho (is|has|have|does)\b": "name the component",
    r"\bwhat (lies|stands)\b": "say what it is",
    r"\bthe wire\b": "PCIe, the network",
    r"\blast word\b": "fallback",
}
WORD = re.compile(r"(?<![A-Za-z])(?i:" + "|".join(f"(?P<w{index}>{pattern})" for index, pattern in enumerate(WORDS)) +
                  r")(?![a-z])")
PHRASE = re.compile("|".join(f"(?P<p{index}>{pattern})" for index, pattern in enumerate(PHRASES)))
TERMS = {f"w{index}": term for index, term in enumerate(WORDS.values())}
FOLDERS = {f"w{index}": ONLY_IN[pattern] for index, pattern in enumerate(WORDS) if pattern in ONLY_IN}
TERMS |= {f"p{index}": term for index, term in enumerate(PHRASES.values())}


def files(paths):
    """Tracked and new files below the paths that hold text of ours."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *paths], cwd=ROOT, text=True,
                            stdout=subprocess.PIPE, check=True).stdout.splitlines()
    return [name for name in listed if pathlib.Path(name).suffix in SUFFIXES | {""} and not EXCEPT.match(name)
            and (ROOT / name).is_file()]


def findings(name):
    """(line number, word, term) of each private word of a file."""
    try:
        lines = (ROOT / name).read_text().splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        if "word-check:" in line:
            continue
        for found in (*WORD.finditer(line), *PHRASE.finditer(line)):
            group = next(group for group in TERMS if found.groupdict().get(group) is not None)
            if name.startswith(FOLDERS.get(group, "")):
                yield number, found.group(), TERMS[group]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--summary", action="store_true", help="counts by folder and word")
    parser.add_argument("paths", nargs="*", default=["."])
    chosen = parser.parse_args()
    counts, total = collections.Counter(), 0
    for name in files(chosen.paths):
        for number, word, term in findings(name):
            total += 1
            counts["/".join(name.split("/")[:2]), word.lower()] += 1
            if not chosen.summary:
                print(f"{name}:{number}: {word} -> {term}")
    if chosen.summary:
        for (folder, word), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
            print(f"{folder:24s} {word:20s} {count}")
    print(f"{total} private words" if total else "no private words")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
