"""GDAL_METADATA as text: well-formed or not, and its items."""

from typing import Any
from xml.parsers import expat

from ...errors import InvalidArgumentError


def items_of_xml(text: str) -> dict[Any, str]:
    """Items of the image by name, those of bands by (name, band from 0); those of other domains are left out."""
    items: dict[Any, str] = {}
    key: Any = None

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal key
        key = None
        if tag == "Item" and "name" in attributes and not attributes.get("domain"):
            sample = attributes.get("sample", "")
            key = (attributes["name"], int(sample)) if sample.isdigit() else attributes["name"]
            items[key] = ""

    def characters(part: str) -> None:
        if key is not None:
            items[key] += part

    def end(_: str) -> None:
        nonlocal key
        key = None

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse_entities
    parser.StartElementHandler, parser.CharacterDataHandler, parser.EndElementHandler = start, characters, end
    try:
        if text.strip():
            parser.Parse(text, True)
    except expat.ExpatError as error:
        raise InvalidArgumentError(f"gdal_metadata_xml is not well-formed XML ({error})") from error
    return items


def refuse_entities(*_: object) -> None:
    """Entities can make a short text long."""
    raise expat.ExpatError("it has a DOCTYPE")
