"""Metadata items of GDAL (GDAL_METADATA) as attributes of a DataArray, and back.

Tags of the image are attributes by their own names, as in rioxarray, together with those of the first band. Two more
attributes hold what has no place there, as JSON, since a dict cannot be stored in a netCDF file:

band_tags    {"2": {"NAME": "text"}}: tags of bands, by the number that the coordinate `band` has for them. "0" has tags
             of the image that attributes cannot show as they are: those that a band has under the same name, empty
             ones, and texts such as "007", which attributes show as a number.
tag_domains  {"DOMAIN": {"0": {"NAME": "text"}}}: the other domains, by band; "0" is the image.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ._types import MetadataItem
    from .file import File

BAND_TAGS, TAG_DOMAINS = "band_tags", "tag_domains"
IMAGE = 0
# Of the pixels that were read, which may have changed since: neither written nor kept for that.
NOT_KEPT = "STATISTICS_"
NOT_WRITTEN_DOMAINS = ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS")


def kept_items(file: File, bands: Iterable[int], shown: Callable[[str], Any]) -> dict[str, str]:
    """The attributes band_tags and tag_domains of some bands of a File, as far as they have something to say.

    shown : function of a text, which gives what an attribute of that text is and its text when it is written again
    """
    tags: dict[int, dict[str, str]] = {}
    domains: dict[str, dict[int, dict[str, str]]] = {}
    for item in file.metadata_items:
        if item["role"] or item["band"] not in (IMAGE, *bands) or item["name"].startswith(NOT_KEPT):
            continue
        of_band = domains.setdefault(item["domain"], {}) if item["domain"] else tags
        of_band.setdefault(item["band"], {})[item["name"]] = item["value"]
    of_bands = {name for band, named in tags.items() if band != IMAGE for name in named}
    tags[IMAGE] = {name: text for name, text in tags.get(IMAGE, {}).items()
                   if name in of_bands or not text or shown(text) != text}
    tags = {band: named for band, named in tags.items() if named}
    return {name: json.dumps(value, ensure_ascii=False, sort_keys=True)
            for name, value in ((BAND_TAGS, tags), (TAG_DOMAINS, domains)) if value}


def stated_items(attrs: dict[Any, Any], numbers: Iterable[int]) -> list[MetadataItem]:
    """The items that the attributes band_tags and tag_domains state, for bands that have `numbers`, in their order:
    dicts as File.metadata_items has them, counting from 1. Those of the image in the default domain are image_tags' to
    say."""
    items: list[MetadataItem] = []
    for domain, of_band in ({"": _parsed(attrs, BAND_TAGS)} | _parsed(attrs, TAG_DOMAINS)).items():
        of_band = _by_number(domain, of_band) if domain not in NOT_WRITTEN_DOMAINS else {}
        for place, number in enumerate((IMAGE, *numbers)):
            named = of_band.get(number, {}) if domain or place != IMAGE else {}
            for name, text in named.items():
                if not name.startswith(NOT_KEPT):
                    items.append({"domain": domain, "name": name, "value": str(text), "role": "", "band": place})
    return items


def image_tags(attrs: dict[Any, Any], tags: dict[str, str], value_of: Callable[[str], Any]) -> dict[str, str]:
    """`tags`, the texts of attributes by name, without those that stand for the first band's tag, and with the texts
    that the file had for the image. An attribute that was changed since is a tag of the image.

    value_of : function of a text: the value that an attribute gets for it
    """
    of_band = _by_number("", _parsed(attrs, BAND_TAGS))
    image = of_band.pop(IMAGE, {})
    for name in [*tags]:
        texts = [named[name] for named in (image, *of_band.values()) if name in named]
        if any(_same(value_of(text), attrs.get(name)) for text in texts):
            del tags[name]
            tags |= {name: image[name]} if name in image else {}
    return tags | {name: text for name, text in image.items() if not text and name not in tags}


def band_numbers(array: Any, y: str, x: str, bands: int) -> list[int]:
    """What the bands of a DataArray are called in band_tags: its coordinate, or from 1 on."""
    others = [dim for dim in array.dims if dim not in (y, x)]
    name = others[0] if others else "band"
    labels = array.coords[name] if name in array.coords else None
    if labels is not None and labels.dtype.kind in "iu" and labels.size == bands:
        return [int(label) for label in labels.values.flat]
    return list(range(1, bands + 1))


def _parsed(attrs: dict[Any, Any], name: str) -> dict[str, Any]:
    """A dict, given as such or as JSON."""
    stated: Any = attrs.get(name) or {}
    try:
        stated = json.loads(stated) if isinstance(stated, str) else stated
    except ValueError as error:
        raise InvalidArgumentError(f"attrs[{name!r}] is not JSON: {error}") from error
    if isinstance(stated, dict):
        return cast("dict[str, Any]", stated)
    raise InvalidArgumentError(f"attrs[{name!r}] must be a dict, or one as JSON, not {stated!r}")


def _by_number(domain: str, stated: dict[str, Any]) -> dict[int, dict[str, Any]]:
    try:
        return {int(number): dict(named) for number, named in stated.items()}
    except (AttributeError, TypeError, ValueError) as error:
        name = f"{TAG_DOMAINS!r}][{domain!r}" if domain else repr(BAND_TAGS)
        raise InvalidArgumentError(f"attrs[{name}] must have dicts of tags by number of the band, not "
                                   f"{stated!r}") from error


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        left, right = np.asarray(cast(Any, one)), np.asarray(cast(Any, other))
        return left.shape == right.shape and bool((left == right).all())
    return type(one) is type(other) and (one == other or one != one and other != other)
