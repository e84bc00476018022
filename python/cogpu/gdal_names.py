"""GDAL's own names of files (/vsicurl/..., GTIFF_DIR:...): an error that says what to give instead."""

from __future__ import annotations

import os
import re
from typing import Any

from .errors import Error, UnsupportedError
from .urls import shown

# GDAL's virtual file systems, and the scheme of the URLs that mean the same.
VIRTUAL_STORES = {"vsis3": "s3", "vsis3_streaming": "s3", "vsigs": "gs", "vsigs_streaming": "gs", "vsiaz": "az",
                  "vsiaz_streaming": "az", "vsiadls": "abfs"}
ARCHIVES = {"vsizip": "zip", "vsitar": "tar", "vsi7z": "libarchive", "vsirar": "libarchive"}
VIRTUAL = re.compile(r"/(vsi\w+)(?:/|\?)(.*)", re.DOTALL)
SUBDATASET = re.compile(r"([A-Z][A-Z0-9_]+):(.+)", re.DOTALL)
NOT_TIFF = ("NETCDF", "HDF4_SDS", "HDF4_EOS", "HDF5", "ZARR", "GPKG", "NITF_IM", "SENTINEL2_L1C", "SENTINEL2_L2A",
            "VRT")


def refuse_gdal_name(path: Any) -> None:
    """Raises UnsupportedError for a name of GDAL's; a file of that very name is a file."""
    text = os.fsdecode(path)
    virtual, subdataset = VIRTUAL.fullmatch(text), SUBDATASET.fullmatch(text)
    instead = None
    if virtual and not os.path.lexists(text):
        instead = _instead_of_virtual(*virtual.groups())
    elif subdataset and not os.path.lexists(text):
        instead = _instead_of_subdataset(*subdataset.groups())
    if instead:
        raise UnsupportedError(f"{_shown_name(text)}: this is a name of GDAL's; {instead}")


def _shown_name(text: str) -> str:
    """Without the secrets of a URL that is part of the name."""
    url = re.search(r"[A-Za-z][A-Za-z0-9+.-]+://.*", text, re.DOTALL)
    return text[:url.start()] + shown(url[0]) if url else text


def _instead_of_virtual(system: str, rest: str) -> str:
    if system.startswith("vsicurl"):
        url = rest if "://" in rest else "https://host/file.tif"
        return f"give the URL itself: {shown(url)!r}"
    if system in VIRTUAL_STORES:
        return f"give the URL: '{VIRTUAL_STORES[system]}://{rest}'"
    if system in ARCHIVES:
        return (f"read the file from its archive by fsspec: '{ARCHIVES[system]}://inner.tif::archive', or unpack it")
    if system == "vsimem":
        return "give the file's content as bytes, or an object with read and seek"
    return "give a path, a URL, the file's content as bytes, or an object with read and seek"


def _instead_of_subdataset(driver: str, rest: str) -> str | None:
    if driver == "GTIFF_DIR":
        return _instead_of_directory(rest)
    if driver == "GTIFF_RAW":
        return f"give the path {rest!r}: there is no mode that leaves colours unconverted"
    return "cogpu reads TIFF files alone" if driver in NOT_TIFF else None


def _instead_of_directory(rest: str) -> str:
    """GTIFF_DIR:number:path counts all directories from 1, overviews and masks too; `image` counts images from 0."""
    number, _, path = rest.partition(":")
    if number == "off":
        return "give the path, and the number of the image from 0 as image="
    if not number.isdigit() or not path:
        return "give the path, and image= for an image other than the first"
    image, level = _place_of_directory(path, int(number) - 1)
    if level:
        return f"give open_geotiff({path!r}, image={image}, level={level})"
    return f"give open({path!r}, image={image}), or open_geotiff({path!r}, image={image})"


def _place_of_directory(path: str, directory: int) -> tuple[int, int]:
    """(image, level) of a directory; its own number where the file does not say."""
    from .file import open as open_file
    try:
        with open_file(path) as file:
            for image in range(file.images):
                for level in range(file._file.info(image)["levels"]):
                    facts = file._file.level(image, level)
                    if facts["directory"] == directory and not facts["external"]:
                        return image, level
    except Error:
        pass
    return max(directory, 0), 0
