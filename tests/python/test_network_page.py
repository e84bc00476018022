"""docs/network.md has every setting of the network, with the default that the header states and the library has, and
the options that the command line has for them."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def fields():
    """{name: what the header says behind it} of cogpu_network, in its order."""
    struct = re.search(r"typedef struct cogpu_network \{\n(.*?)\n\} cogpu_network;",
                       (ROOT / "include" / "cogpu.h").read_text(), re.S)[1]
    found, behind = {}, re.sub(r"^ *\*", "", struct, flags=re.M)
    for names, comment in re.findall(r"^    (?:const )?[a-z]\w* ([^;/]*);(?: */\*(.*?)\*/)?", behind, re.M | re.S):
        found |= dict.fromkeys(re.findall(r"\w+", names), " ".join((comment or "").split()))
    del found["struct_size"], found["reserved"]
    return found


def stated(comment):
    """The default that a comment begins with, or None."""
    found = re.match(r'("[^"]*"|\d+(?: [KM]iB)?)(?= |$)', comment)
    return found and found[1]


def defaults():
    return {name: stated(comment) for name, comment in fields().items() if stated(comment)}


def rows():
    """{name: default, option} of the page's table."""
    page = (ROOT / "docs" / "network.md").read_text()
    return {name: (default, option) for name, default, option in
            re.findall(r"^\| `(\w+)` \| (.*?) \| (?:`(.*?)` )?\| .*\|$", page, re.M)}


def test_every_setting_is_in_the_page():
    assert len(fields()) >= 23 and list(rows()) == list(fields())


def test_defaults_are_those_of_the_header():
    assert len(defaults()) >= 14
    assert {name: rows()[name][0] for name in defaults()} == defaults()


def test_the_library_has_them_too():
    source = (ROOT / "src/io/http/network.c").read_text()
    usual = re.search(r"cogpu_network defaults = \{(.*?)\};", source, re.S)[1]
    kinds = re.search(r"kinds\[\] = \{(.*?)\};", (ROOT / "src/io/store/store.c").read_text(), re.S)[1]
    has = {name: eval(value) for name, value in re.findall(r"\.(\w+) = ([^,]+)", usual)}
    has["schemes"] = ",".join(re.findall(r"&cogpu_store_(\w+)", kinds))

    def value(default):
        number, _, unit = default.partition(" ")
        return default.strip('"') if default.startswith('"') else int(number) * UNITS[unit]
    assert has == {name: value(default) for name, default in defaults().items()}


@pytest.mark.skipif(not (ROOT / "build" / "cogpu").exists(), reason="the command line is not built")
def test_options_are_those_of_the_command_line():
    said = subprocess.run([ROOT / "build" / "cogpu", "read", "--help"], capture_output=True, text=True).stdout
    options = [option for _, option in rows().values() if option]
    assert len(options) >= 6 and all(option in said for option in options)
