"""The C reference: Markdown pages from the public headers, whose comments are the text.

    tools/docs/c_reference.py FOLDER      writes a page for each section of include/cogpu.h, and one for cogpu_distributed.h

tools/docs/hooks.py adds the pages to the documentation site. A section of a header is a comment that begins with a rule of
dashes and a title. Declarations without a comment between them share the comment before the first one.
"""

import pathlib
import re
import sys
import textwrap
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "c-reference"
RULE = re.compile(r"/\* -{20,}\n \* (?P<title>[^\n]+)\n(?P<text>.*?)\*/", re.S)
COMMENT = re.compile(r"/\*(?P<text>.*?)\*/", re.S)
PREPROCESSOR = re.compile(r"#(?:[^\n]*\\\n)*[^\n]*\n")
CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|else|endif|include)\b")
DEFINED = re.compile(r"#define (\w+)")
NAME = re.compile(r"\b(cogpu_\w+|COGPU_\w+)\b")
INTERNAL = {"COGPU_H", "COGPU_DISTRIBUTED_H", "COGPU_API", "COGPU_MUST_CHECK", "COGPU_INIT"}


@dataclass
class Item:
    """Declarations that share a comment."""
    comment: str
    code: list = field(default_factory=list)
    names: list = field(default_factory=list)


@dataclass
class Section:
    title: str
    text: str
    items: list = field(default_factory=list)

    @property
    def page(self):
        return re.sub(r"[^a-z0-9]+", "-", self.title.split(",")[0].lower()).strip("-")


def plain(comment):
    """The text of a comment, without its margin."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment.strip("\n").split("\n")]
    return textwrap.dedent("\n".join([lines[0].strip(), *lines[1:]])).strip()


def statement_end(text, at):
    """Behind the semicolon that ends the declaration at `at`, beyond braces and comments."""
    depth = 0
    while True:
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if text[at - 1] == ";" and depth == 0:
            return at


def names_of(code):
    """What a declaration declares: a type, a function, a macro or enumerators."""
    if code.startswith("#define"):
        return [DEFINED.match(code)[1]]
    bare = COMMENT.sub("", code)
    if bare.startswith("enum {"):
        return re.findall(r"\b(COGPU_\w+)\s*(?==|,|\s*\})", bare)
    if bare.startswith("typedef") and "(*" in bare.split("{")[0]:
        return [re.search(r"\(\*(\w+)\)", bare)[1]]
    if bare.startswith("typedef"):
        return [re.search(r"(\w+);\s*$", bare)[1]]
    if bare.startswith("struct"):
        return [re.search(r"struct (\w+);", bare)[1]]
    return [re.search(r"(\w+)\(", bare.replace("COGPU_MUST_CHECK", ""))[1]]


def tidy(code):
    """A declaration without what only compilers need; prototypes on lines of 100 columns."""
    code = re.sub(r"COGPU_(API|MUST_CHECK)\s+", "", code.strip())
    if "{" in code or code.startswith("#") or "/*" in code or "(" not in code:
        return code
    code = re.sub(r"\s+", " ", code)
    indent = " " * min(code.index("(") + 1, 40)
    parameters = ", ".join(part.replace(" ", "\xa0") for part in code.split(", "))  # lines break between parameters
    return textwrap.fill(parameters, 100, subsequent_indent=indent, break_long_words=False).replace("\xa0", " ")


def sections(text):
    """The sections of a header; the first is its opening comment."""
    opening = COMMENT.search(text)
    found, item, at = [Section("Rules", plain(opening["text"]))], None, opening.end()
    while at < len(text):
        rule, comment, line = (pattern.match(text, at) for pattern in (RULE, COMMENT, PREPROCESSOR))
        if rule:
            found.append(Section(rule["title"].strip(), plain(rule["text"])))
            item, at = None, rule.end()
        elif comment:
            item, at = Item(plain(comment["text"])), comment.end()
            found[-1].items.append(item)
        elif text[at].isspace():
            blank = re.compile(r"\s*").match(text, at)
            if blank[0].count("\n") > 1:
                item = None
            at = blank.end()
        elif line and (CONDITION.match(line[0]) or set(names_of(line[0].strip())) & INTERNAL):
            at = line.end()
        elif text.startswith('extern "C" {', at) or text[at] == "}":
            at = text.index("\n", at)
        else:
            end = line.end() if line else statement_end(text, at)
            item = add(found[-1], item, text[at:end])
            at = end
    return [section for section in found if section.text or section.items]


def add(section, item, code):
    """Adds a declaration to the item whose comment is before it; an _INIT macro to its struct."""
    names = names_of(code.strip())
    if names[0].endswith("_INIT") and section.items and section.items[-1].names:
        item = section.items[-1]
    elif item is None:
        item = Item("")
        section.items.append(item)
    new = [name for name in names if name not in item.names]
    if new:
        item.code.append(tidy(code))
        item.names += new
    return item


def markdown(text, links, own):
    """Prose of a comment: names become links, indented lines stay code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        if all(line.startswith("    ") for line in block.split("\n")):
            blocks.append("```c\n" + textwrap.dedent(block) + "\n```")
        else:
            blocks.append(NAME.sub(lambda found: link(found[0], links, own), re.sub(r"(?<=\n)(?! |-)\s*", "", block)
                                   .replace("*", "\\*").replace("<", "&lt;")))
    return "\n\n".join(blocks).replace("\n- ", "\n\n- ").replace("```\n\n```c\n", "\n")


def link(name, links, own):
    if name not in links or name in own:
        return f"`{name}`" if name in links else name
    return f"[`{name}`]({links[name]}.md#{name})"


def page(section, links, heading):
    lines = [f"# {heading}", "", markdown(section.text, links, ()), ""]
    for item in section.items:
        if not item.code:
            lines += [markdown(item.comment, links, ()), ""]
            continue
        shown = [name for name in item.names if not name.endswith("_INIT")] or item.names
        if shown[0].startswith("COGPU_"):
            shown = shown[:1]
        lines += [f"## {', '.join(f'`{name}`' for name in shown)} {{#{shown[0]}}}", ""]
        lines += ["".join(f'<a id="{name}"></a>' for name in item.names if name != shown[0]), ""]
        lines += [markdown(item.comment, links, item.names), "", "```c", *item.code, "```", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def index(found, links):
    """The first page: rules, and all names by section."""
    lines = ["# C reference", "", "Generated from `include/cogpu.h`, whose comments are the text. The [guide](../c.md) has examples.",
             "", "| section | declarations |", "| --- | --- |"]
    for section in found[1:]:
        names = [name for item in section.items for name in item.names if name.startswith("cogpu_")]
        lines.append(f"| [{section.title}]({section.page}.md) | {', '.join(link(name, links, ()) for name in names)} |")
    return "\n".join(lines) + "\n\n## Rules\n\n" + markdown(found[0].text, links, ()) + "\n"


def pages(root=ROOT):
    """{path below the folder: Markdown}, and [(title, path)] in the order of the header."""
    found = sections((root / "include" / "cogpu.h").read_text())
    other = sections((root / "include" / "cogpu_distributed.h").read_text())
    distributed = Section("Distributed writing", other[0].text + "".join(f"\n\n{section.text}" for section in other[1:]),
                          [item for section in other for item in section.items])
    found.append(distributed)
    found[0].title = "Version"  # what is declared before the first section
    links = {name: section.page for section in found for item in section.items for name in item.names}
    made = {"index.md": index(found, links)}
    found[0].text = ""
    made |= {f"{section.page}.md": page(section, links, section.title) for section in found}
    return made, [("Overview", "index.md"), *((section.title, f"{section.page}.md") for section in found)]


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages()[0].items():
        (folder / name).write_text(text)
