"""docs/python-reference.md, from the docstrings of the Python package.

Reads the source alone, so that neither a build nor torch is needed; a name that comes from elsewhere in the package is
described where it is offered. Writes the page; with --check it ends with 1
where the page is not what it would write.
"""

import ast
import inspect
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "cogpu"
PAGE = ROOT / "docs" / "python-reference.md"
MODULES = {"cogpu": None, "cogpu.torch": None, "cogpu.windows": None, "cogpu.engine": ["Engine"],
           # and their public names; None: those of __all__
           "cogpu.compat.xrspatial": ["open_geotiff", "plot_geotiff", "read_vrt", "to_geotiff", "write_vrt"]}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
ITEM = re.compile(r"(\w[\w, ]*?)(?: : |\s{2,})(\S.*)")
HEAD = """# Python reference

Made from the docstrings by `tools/python_reference.py`; the [guide](python.md) shows how the pieces go together.
"""


def parsed(path):
    """The syntax of a module, from its stub where it is a C extension."""
    path = path if path.exists() else path.with_suffix(".pyi")
    return ast.parse(path.read_text())


def constant(tree, name):
    """The value of a literal assigned at the top of a module, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return ast.literal_eval(node.value)


def origins(tree, folder):
    """{name: (path of the module that defines it, its name there)} of what a module takes from the package, at its
    top or when it is asked for (_LATER)."""
    found = {name: (folder / f"{module}.py", name) for name, module in (constant(tree, "_LATER") or {}).items()}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            home = folder.joinpath(*[".."] * (node.level - 1), *(node.module or "__init__").split("."))
            for alias in node.names:
                found[alias.asname or alias.name] = home.with_suffix(".py"), alias.name
    return found


def defined(tree, name):
    for node in tree.body:
        if isinstance(node, FUNCTIONS | ast.ClassDef) and node.name == name:
            return node


def find(path, name, tree=None):
    """The class or function that a module offers by this name, wherever it stands, or None."""
    tree = tree or parsed(path)
    node = defined(tree, name)
    home, own = origins(tree, path.parent).get(name, (PACKAGE / "_cogpu.py", name))
    return node or (find(home, own) if home != path else None)


def arguments(node, of_class=False):
    """The parameters as they are called, without self."""
    args = ast.parse(ast.unparse(node)).body[0].args
    if of_class:
        (args.posonlyargs or args.args).pop(0)
    for one in ast.walk(args):
        if isinstance(one, ast.arg):
            one.annotation = None
    return f"({ast.unparse(args)})"


def marks(node):
    return {ast.unparse(mark).split("(")[0] for mark in node.decorator_list}


def text(node):
    return inspect.cleandoc(ast.get_docstring(node) or "")


def prose(docstring):
    """Markdown of a docstring: `name : meaning`, `name   meaning` and a meaning that stands below its name become
    items of a list, headings of NumPy's style lose their rules, code stays."""
    out, in_list = [], False
    plain = re.sub(r"^(\w+)\n-+\n", r"*\1*\n\n", docstring, flags=re.M)
    for line in re.sub(r"^(\w[\w, ]*)\n {4}(?=\S)", r"\1 : ", plain, flags=re.M).splitlines():
        item = ITEM.match(line)
        if item:
            out.append(f"- `{item[1].strip()}`: {item[2]}")
        elif in_list and line:
            out.append(f"  {line.strip()}" if line.startswith(" ") else f"- {line}")
        else:
            out.append(line)
        in_list = bool(item) or (in_list and bool(line))
    return "\n".join(out).strip()


def member(node):
    """A method or property of a class, or None where it is not for the public."""
    hidden = node.name.startswith("_") or not ast.get_docstring(node)
    if hidden or any(mark.endswith(".setter") for mark in marks(node)):
        return None
    plain = marks(node) & {"property", "cached_property", "functools.cached_property"}
    head = node.name if plain else node.name + arguments(node, "staticmethod" not in marks(node))
    body = prose(text(node)).replace("\n", "\n  ")
    return f"- **`{head}`** {body}"


def described(module, name, node):
    """The section of a class or function."""
    methods = [one for one in node.body if isinstance(one, FUNCTIONS)] if isinstance(node, ast.ClassDef) else []
    made = next((one for one in methods if one.name == "__init__"), None)
    bases = ", ".join(map(ast.unparse, getattr(node, "bases", [])))
    if made or isinstance(node, FUNCTIONS):
        call = name + arguments(made or node, bool(made))
    else:
        call = f"class {name}({bases})" if bases else f"class {name}"
    call = textwrap.fill(call, 116, subsequent_indent=" " * (len(name) + 1), break_on_hyphens=False)
    lines = [f"### `{module}.{name}`", "", f"```python\n{call}\n```", "", prose(text(node))]
    if made and ast.get_docstring(made):
        lines += ["", prose(text(made))]
    members = [line for line in map(member, methods) if line]
    return "\n".join(lines + ([""] + members if members else [])).rstrip() + "\n"


def rank(name, node):
    """Functions come first, then classes, then what is raised or warned with."""
    return 2 if name.endswith(("Error", "Warning")) else int(isinstance(node, ast.ClassDef))


def page():
    parts = [HEAD]
    for module, names in MODULES.items():
        path = PACKAGE.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = parsed(path)
        parts.append(f"## `{module}`\n\n{prose(text(tree))}\n")
        names = names or constant(tree, "__all__")
        found = sorted(((name, find(path, name, tree)) for name in names), key=lambda one: (rank(*one), one[0].lower()))
        parts += [described(module, name, node) for name, node in found if node]
    return "\n".join(parts)


if __name__ == "__main__":
    if "--check" in sys.argv:
        is_new = PAGE.exists() and PAGE.read_text() == page()
        sys.exit(0 if is_new else f"{PAGE.name} is out of date: run {sys.argv[0]}")
    PAGE.write_text(page())
