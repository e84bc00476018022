"""The declarations of C headers as ctypes types: those in include for the tests and the benchmarks.

    mirror = header_mirror.read("include/cogpu.h", "include/cogpu_distributed.h")
    mirror.constants["COGPU_OK"]        0
    mirror.structs["cogpu_error"]       a ctypes.Structure
    mirror.callbacks["cogpu_progress"]  a CFUNCTYPE
    mirror.declare(ctypes.CDLL(path))   sets argtypes and restype of each function

It reads the plain C of these headers: enums, structs of scalars, arrays, pointers and function pointers, typedefs of
function pointers, functions. What it does not understand is an error. test_mirror.py compares sizes and offsets with a
compiler's.
"""

import ctypes
import pathlib
import re

SCALARS = {
    "void": None, "char": ctypes.c_char, "int": ctypes.c_int, "double": ctypes.c_double, "float": ctypes.c_float,
    "size_t": ctypes.c_size_t, **{f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}")
                                  for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
QUALIFIERS = re.compile(r"\b(?:const|struct|enum|COGPU_API|COGPU_MUST_CHECK)\b")
DECLARATION = re.compile(r"typedef enum (?P<enum>\w+)? ?\{(?P<enumerators>[^}]*)\} ?\w+;"
                         r"|enum \{(?P<unnamed>[^}]*)\};"
                         r"|typedef struct (?P<struct>\w+) ?\{(?P<fields>.*?)\} ?(?P=struct);"
                         r"|(?:typedef )?struct (?P<opaque>\w+)(?: (?P=opaque))?;"
                         r"|typedef (?P<result>[^;{(]*)\(\*(?P<callback>\w+)\)\((?P<takes>[^;]*)\);"
                         r"|(?P<returns>[^;{}(]*?)\b(?P<function>\w+)\((?P<arguments>[^;{}]*)\);")
MEMBER = re.compile(r"(?P<result>[^(]*)\(\*(?P<name>\w+)\)\((?P<takes>.*)\)$")


NOT_ZERO = {"max_retries": -1, "cache_bytes": 2 ** 64 - 1}


def class_name(name):
    """cogpu_open_options -> OpenOptions"""
    return "".join(part.capitalize() for part in name.split("_")[1:])


def split_list(text):
    """At the commas that are outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def initialise(self, *values, **fields):
    """As the INIT macros of the header do: the struct's size, and the two defaults that are not 0."""
    own = list(dict(self._fields_))[len(values) + 1:]
    fields = {name: value for name, value in NOT_ZERO.items() if name in own} | fields
    ctypes.Structure.__init__(self, ctypes.sizeof(type(self)), *values, **fields)


class Mirror:
    def __init__(self, text):
        self.constants, self.structs, self.callbacks, self.functions = {}, {}, {}, {}
        self.enums, self.opaque = set(), set()
        self._read(" ".join(self._without_noise(text).split()))

    def _without_noise(self, text):
        """The declarations alone: no comments, no directives, no extern "C"."""
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
        for name, value in re.findall(r"^#define (COGPU_\w+)\s+(\d+)\s*$", text, re.M):
            self.constants[name] = int(value)
        text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", " ", text, flags=re.M)
        return re.sub(r'extern "C" \{|^\}\s*$', " ", text, flags=re.M)

    def _read(self, text):
        at = 0
        while text[at:].strip():
            found = DECLARATION.match(text, at + len(text[at:]) - len(text[at:].lstrip()))
            if not found:
                raise ValueError(f"not understood: {text[at:at + 80]}")
            self._add(found)
            at = found.end()

    def _add(self, found):
        if found["enumerators"] is not None or found["unnamed"] is not None:
            self._add_enum(found["enum"], found["enumerators"] or found["unnamed"])
        elif found["struct"]:
            fields = [self._member(line.strip()) for line in found["fields"].split(";") if line.strip()]
            members = {"_fields_": [field for line in fields for field in line]}
            if members["_fields_"][0][0] == "struct_size":
                members["__init__"] = initialise
            self.structs[found["struct"]] = type(class_name(found["struct"]), (ctypes.Structure,), members)
        elif found["opaque"]:
            self.opaque.add(found["opaque"])
        elif found["callback"]:
            self.callbacks[found["callback"]] = self._function_pointer(found["result"], found["takes"])
        else:
            self.functions[found["function"]] = (self._type(found["returns"]), self._parameters(found["arguments"]))

    def _add_enum(self, name, enumerators):
        value = -1
        for entry in split_list(enumerators):
            word, _, expression = (part.strip() for part in entry.partition("="))
            value = eval(expression, {"__builtins__": {}}, self.constants) if expression else value + 1
            self.constants[word] = value
        if name:
            self.enums.add(name)

    def _type(self, text):
        """The type of "const char *": stars counted, handles that have no struct are void pointers."""
        stars, word = text.count("*"), QUALIFIERS.sub(" ", text.replace("*", " ")).strip()
        if word == "char" and stars:
            kind, stars = ctypes.c_char_p, stars - 1
        elif word in self.opaque or word == "void" and stars:
            kind, stars = ctypes.c_void_p, stars - 1
        elif word in self.enums:
            kind = ctypes.c_int
        else:
            kind = {**SCALARS, **self.structs, **self.callbacks}[word]
        for _ in range(stars):
            kind = ctypes.POINTER(kind)
        return kind

    def _member(self, line):
        """(name, type) of each name that a line of a struct declares."""
        pointer = MEMBER.match(line)
        if pointer:
            return [(pointer["name"], self._function_pointer(pointer["result"], pointer["takes"]))]
        first, *others = split_list(line)
        base = re.match(r"(.*?)(\**\s*\w+(?:\[\w+\])*)$", first)
        return [self._named(base[1], declarator) for declarator in (base[2], *others)]

    def _named(self, base, declarator):
        stars, name, lengths = re.match(r"(\**)\s*(\w+)((?:\[\w+\])*)$", declarator).groups()
        kind = self._type(base + stars)
        for length in reversed(re.findall(r"\[(\w+)\]", lengths)):
            kind *= int(length) if length.isdigit() else self.constants[length]
        return name, kind

    def _parameters(self, text):
        return [] if text.strip() in ("", "void") else [self._parameter(part) for part in split_list(text)]

    def _parameter(self, text):
        """A parameter's type: its name goes, and an array is a pointer."""
        pointer = MEMBER.match(text)
        if pointer:
            return self._function_pointer(pointer["result"], pointer["takes"])
        base, name, array = re.match(r"(.*?)(\b\w+)((?:\[\w*\])?)$", text).groups()
        return self._type(base + "*" * bool(array)) if base.strip() else self._type(name)

    def _function_pointer(self, result, parameters):
        return ctypes.CFUNCTYPE(self._type(result), *self._parameters(parameters))

    def field(self, struct, name):
        """The type of a field."""
        return dict(self.structs[struct]._fields_)[name]

    def declare(self, library):
        for name, (result, parameters) in self.functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
        return library


def read(*headers):
    """The declarations of headers, each after those that it includes."""
    return Mirror("\n".join(pathlib.Path(header).read_text() for header in headers))
