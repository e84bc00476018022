"""Metadata items of GDAL (GDAL_METADATA) as attributes of a DataArray, and back.

Tags of the image are attributes by their own names, as in rioxarray, together with those of the first band. Two more
attributes hold what has no place there, as JSON, since a dict cannot be stored in a netCDF file:

band_tags    {"2": {"NAME": "text"}}: tags of bands, by the number that the coordinate `band` has for them. "0" has tags
             of the image that attributes cannot show as they are: those that a band has under the same name, empty
             ones, and texts such as "007", which attributes show as a number.
tag_domains  {"DOMAIN": {"0": {"NAME": "text"}}}: the other domains, by band; "0" is the image.
"""

import json

import numpy as np

from .errors import ArgumentError

BAND_TAGS, TAG_DOMAINS = "band_tags", "tag_domains"
IMAGE = 0
# Of the pixels that were read, which may have changed since: neither written nor kept for that.
NOT_KEPT = "STATISTICS_"
NOT_WRITTEN_DOMAINS = ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS")


def kept_items(file, bands, shown):
    """The attributes band_tags and tag_domains of some bands of a File, as far as they have something to say.

    shown : function of a text, which gives what an attribute of that text is and its text when it is written again
    """
    tags, domains = {}, {}
    for item in file.items:
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


def stated_items(attrs, numbers):
    """The items that the attributes band_tags and tag_domains state, for bands that have `numbers`, in their order:
    dicts as File.items has them, counting from 1. Those of the image in the default domain are image_tags' to say."""
    items = []
    for domain, of_band in ({"": _parsed(attrs, BAND_TAGS)} | _parsed(attrs, TAG_DOMAINS)).items():
        of_band = _by_number(domain, of_band) if domain not in NOT_WRITTEN_DOMAINS else {}
        for place, number in enumerate((IMAGE, *numbers)):
            named = of_band.get(number, {}) if domain or place != IMAGE else {}
            items += [{"domain": domain, "name": name, "value": str(text), "role": "", "band": place}
                      for name, text in named.items() if not name.startswith(NOT_KEPT)]
    return items


def image_tags(attrs, tags, value_of):
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


def band_numbers(array, y, x, bands):
    """What the bands of a DataArray are called in band_tags: its coordinate, or from 1 on."""
    others = [dim for dim in array.dims if dim not in (y, x)]
    name = others[0] if others else "band"
    labels = array.coords[name] if name in array.coords else None
    if labels is not None and labels.dtype.kind in "iu" and labels.size == bands:
        return [int(label) for label in np.ravel(labels.values)]
    return list(range(1, bands + 1))


def _parsed(attrs, name):
    """A dict, given as such or as JSON."""
    stated = attrs.get(name) or {}
    try:
        stated = json.loads(stated) if isinstance(stated, str) else stated
    except ValueError as error:
        raise ArgumentError(f"attrs[{name!r}] is not JSON: {error}") from error
    if not isinstance(stated, dict):
        raise ArgumentError(f"attrs[{name!r}] must be a dict, or one as JSON, not {stated!r}")
    return stated


def _by_number(domain, stated):
    try:
        return {int(number): dict(named) for number, named in stated.items()}
    except (AttributeError, TypeError, ValueError) as error:
        name = f"{TAG_DOMAINS!r}][{domain!r}" if domain else repr(BAND_TAGS)
        raise ArgumentError(f"attrs[{name}] must have dicts of tags by number of the band, not {stated!r}") from error


def _same(one, other):
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and (one == other or one != one and other != other)
