"""Pages of the documentation site that are generated when MkDocs builds it, so that no copy can be out of date.

index.md            README.md
c-reference/*.md    the public headers (c_reference.py)
cli-reference.md    `cogpu reference markdown`; COGPU_BIN names the program (default: build/cogpu)
contributing.md, changelog.md   CONTRIBUTING.md, CHANGELOG.md

Links to files outside docs/ become the names of these files. The second word of a fence (```python gpu), by which tests choose
blocks, is left out.
"""

import os
import pathlib
import posixpath
import re
import subprocess
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "docs"))

import c_reference  # noqa: E402

LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)")
FENCE_MARK = re.compile(r"^(```\w+) \w+$", re.M)
FROM_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_config(config):
    """Adds the pages that the navigation of mkdocs.yml cannot list: sections of the header, decisions."""
    _, titles = c_reference.pages()
    chapters = {"C reference": [{title: f"{c_reference.FOLDER}/{path}"} for title, path in titles],
                "Decisions": sorted(f"decisions/{path.name}" for path in (ROOT / "docs" / "decisions").glob("*.md"))}
    fill(config.nav, chapters)
    return config


def fill(nav, chapters):
    """Replaces `- Title: []` by the pages of the chapter of that title."""
    for entry in nav:
        for title, pages in entry.items() if isinstance(entry, dict) else ():
            if pages == []:
                entry[title] = chapters[title]
            elif isinstance(pages, list):
                fill(pages, chapters)


def cli_reference():
    program = os.environ.get("COGPU_BIN", ROOT / "build" / "cogpu")
    try:
        return subprocess.run([program, "reference", "markdown"], check=True, text=True, stdout=subprocess.PIPE).stdout
    except OSError as error:
        raise PluginError(f"{program}: {error}; build it (make), or set COGPU_BIN") from error


def on_files(files, config):
    made = {f"{c_reference.FOLDER}/{path}": text for path, text in c_reference.pages()[0].items()}
    made["cli-reference.md"] = cli_reference()
    for source, page in FROM_ROOT.items():
        made[page] = as_page((ROOT / source).read_text())
    made["index.md"] = "---\nhide: [navigation]\n---\n\n" + made["index.md"]
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def as_page(text):
    """Markdown of the root folder with links as from docs/."""
    def target(path):
        if ":" in path or path.startswith("#"):
            return path
        return path.removeprefix("docs/") if path.startswith("docs/") else FROM_ROOT.get(path, f"../{path}")
    return re.sub(r"\]\(([^)\s]+)\)", lambda found: f"]({target(found[1])})", text)


def on_page_markdown(markdown, page, files, **_):
    """Links that leave docs/ become text; those to generated pages find them."""
    def replaced(found):
        text, target = found[1], found[2]
        if ":" in target or target.startswith("#"):
            return found[0]
        path, _, anchor = target.partition("#")
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), path))
        if files.get_file_from_path(inside):
            return found[0]
        outside = posixpath.normpath(posixpath.join("docs", inside))
        if outside == "include/cogpu.h":
            return f"[{text}]({posixpath.relpath('c-reference/index.md', posixpath.dirname(page.file.src_uri) or '.')})"
        if not (ROOT / outside).exists():
            return found[0]  # MkDocs reports it
        return text if outside.endswith(text.strip("`")) and "/" in text else f"{text} (`{outside}`)"
    parts = re.split(r"(^```.*?^```$)", FENCE_MARK.sub(r"\1", markdown), flags=re.M | re.S)  # not in code
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)
