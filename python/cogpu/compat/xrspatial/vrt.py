"""VRTs as xarray-spatial takes them: a small part of GDAL's format, parsed and checked before a pixel is read."""

import dataclasses
import functools
import math
import os
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from ...errors import Error, InvalidArgumentError, MissingFileError
from ...file import open as open_file
from ...urls import shown
from .errors import (DegeneratePixelSizeError, MixedBandMetadataError, RotatedTransformError, UnparseableCRSError,
                     UnsupportedGeoTIFFFeatureError, VRTUnsupportedError)
from .metadata_xml import refuse_entities

TYPES = {"Byte": "uint8", "Int8": "int8", "UInt16": "uint16", "Int16": "int16", "UInt32": "uint32", "Int32": "int32",
         "UInt64": "uint64", "Int64": "int64", "Float32": "float32", "Float64": "float64"}
COMPLEX = ("CInt16", "CInt32", "CFloat16", "CFloat32", "CFloat64")
MOST_BYTES = 64 << 20
NEAREST = ("", "nearest", "nearestneighbour", "nearestneighbor", "near")
LOCAL = ("ENGCRS", "LOCAL_CS", "ENGINEERINGCRS")
UNSUPPORTED = ("MaskBand", "GCPList", "PansharpeningOptions", "GDALWarpOptions")
SOURCES = ("SimpleSource", "ComplexSource")
OF_BAND = (*SOURCES, "NoDataValue", "ColorInterp", "ColorTable", "Description", "UnitType", "Offset", "Scale",
           "CategoryNames", "Metadata", "Histograms", "HideNoDataValue", "GDALRasterAttributeTable", "Overview")


class Refused(VRTUnsupportedError, UnsupportedGeoTIFFFeatureError):
    """A feature of VRT that is not read."""


class MalformedVrtError(InvalidArgumentError, ElementTree.ParseError):
    """XML that is not well-formed."""


@dataclasses.dataclass(frozen=True)
class VrtSource:
    """A window of a band of a file, and its place: (column, row, width, height)."""

    path: str
    name: str  # as the VRT has it
    band: int  # from 1
    of: tuple[int, int, int, int]
    to: tuple[int, int, int, int]
    nodata: "float | int | None"
    scale: float = 1.0
    offset: float = 0.0

    @property
    def is_scaled(self) -> bool:
        return (self.scale, self.offset) != (1, 0)


@dataclasses.dataclass(frozen=True)
class VrtBand:
    dtype: np.dtype
    nodata: "float | int | None"
    sources: tuple[VrtSource, ...]


@dataclasses.dataclass(frozen=True)
class Vrt:
    path: str
    width: int
    height: int
    srs: str
    transform: "tuple[float, ...] | None"  # GDAL's order
    is_point: bool
    bands: tuple[VrtBand, ...]

    def sources(self, bands: Any = None) -> Iterator[tuple[int, VrtSource]]:
        """(band from 1, source)"""
        for number in bands or range(1, len(self.bands) + 1):
            for source in self.bands[number - 1].sources:
                yield number, source

    @property
    def is_rotated(self) -> bool:
        return self.transform is not None and bool(self.transform[2] or self.transform[4])


# ---- parsing ---------------------------------------------------------------------------------------------------------


def parse(path: str) -> Vrt:
    text = content_of(path)
    try:
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = refuse_entities
        parser.Parse(text, True)
        root = ElementTree.fromstring(text)
    except (expat.ExpatError, ElementTree.ParseError) as error:
        raise MalformedVrtError(f"{path}: not a well-formed VRT ({error}); a DOCTYPE (DTD) is refused") from error
    if root.tag != "VRTDataset":
        raise InvalidArgumentError(f"{path}: the XML has no <VRTDataset>")
    refuse_features(path, root, "the dataset")
    metadata = [item for element in root.findall("Metadata") if not element.get("domain") for item in element]
    bands = tuple(band_of(path, number, element)
                  for number, element in enumerate(root.findall("VRTRasterBand"), 1))
    if not bands:
        raise VRTUnsupportedError(f"{path}: the VRT has no <VRTRasterBand> (no band)")
    width, height = (whole_of(path, root, name) for name in ("rasterXSize", "rasterYSize"))
    if width < 1 or height < 1:
        raise InvalidArgumentError(f"{path}: rasterXSize={width}, rasterYSize={height} are not a raster")
    is_point = any(item.get("key") == "AREA_OR_POINT" and (item.text or "").strip().lower() == "point"
                   for item in metadata)
    return Vrt(path, width, height, (root.findtext("SRS") or "").strip(), transform_of(path, root), is_point, bands)


def content_of(path: str) -> bytes:
    if "://" in path:
        raise VRTUnsupportedError(f"{shown(path)}: only local VRTs are read here; cogpu.open_geotiff reads URLs")
    try:
        most = int(os.environ.get("XRSPATIAL_VRT_MAX_XML_BYTES", ""))
    except ValueError:
        most = MOST_BYTES
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except FileNotFoundError as error:
        raise MissingFileError(f"{path}: there is no such file") from error
    if len(text) > most:
        raise InvalidArgumentError(f"{path}: the XML exceeds {most} bytes (XRSPATIAL_VRT_MAX_XML_BYTES)")
    return text


def refuse_features(path: str, element: Any, what: str) -> None:
    for name in UNSUPPORTED:
        if element.find(name) is not None:
            raise Refused(f"{path}: <{name}> of {what} is not supported")
    kind = element.get("subClass") or ""
    if kind not in ("", "VRTSourcedRasterBand"):
        raise Refused(f"{path}: subClass={kind!r} of {what} is not supported")


def whole_of(path: str, element: Any, name: str) -> int:
    try:
        return int(float(element.get(name)))
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"{path}: {name}={element.get(name)!r} is not a number") from None


def transform_of(path: str, root: Any) -> "tuple[float, ...] | None":
    text = root.findtext("GeoTransform")
    if text is None or not text.strip():
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise InvalidArgumentError(f"{path}: GeoTransform {text.strip()!r} is not six finite numbers")
    return numbers


def band_of(path: str, number: int, element: Any) -> VrtBand:
    refuse_features(path, element, f"band {number}")
    name = element.get("dataType") or "Float32"
    if name in COMPLEX:
        raise VRTUnsupportedError(f"{path}: band {number} has the dtype {name}: complex samples are not supported")
    if name not in TYPES:
        raise VRTUnsupportedError(f"{path}: band {number} has the unknown dataType {name!r} (dtype)")
    for child in element:
        if child.tag not in OF_BAND:
            raise Refused(f"{path}: <{child.tag}> of band {number} is not supported")
    dtype = np.dtype(TYPES[name])
    nodata = nodata_of(path, element.findtext("NoDataValue"), dtype)
    return VrtBand(dtype, nodata, tuple(source_of(path, number, child, dtype) for child in element
                                        if child.tag in SOURCES))


def nodata_of(path: str, text: "str | None", dtype: np.dtype) -> "float | int | None":
    """An int of an integer band as far as it is one of its samples."""
    if text is None or not text.strip():
        return None
    if dtype.kind in "iu":
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is not None and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            return number
    try:
        value = float(text)
    except ValueError:
        raise InvalidArgumentError(f"{path}: the nodata value {text!r} is not a number") from None
    is_sample = dtype.kind in "iu" and math.isfinite(value) and value == int(value) and \
        np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max
    return int(value) if is_sample else value


def source_of(path: str, band: int, element: Any, dtype: np.dtype) -> VrtSource:
    file = element.find("SourceFilename")
    name = (file.text or "").strip() if file is not None else ""
    if not name:
        raise InvalidArgumentError(f"{path}: a source of band {band} has no SourceFilename")
    refuse_source(path, element, name)
    try:
        number = int(element.findtext("SourceBand") or 1)
        scale, offset = (float(element.findtext(key) or usual)
                         for key, usual in (("ScaleRatio", 1), ("ScaleOffset", 0)))
    except ValueError as error:
        raise InvalidArgumentError(f"{path}: source {name}: {error}") from error
    of, to = (rect_of(path, element, key, name) for key in ("SrcRect", "DstRect"))
    resampling = (element.findtext("ResampleAlg") or element.get("resampling") or "").strip()
    if resampling.lower() not in NEAREST and of[2:] != to[2:]:
        raise VRTUnsupportedError(f"{path}: source {name}: resampling by {resampling} is not supported (ResampleAlg)")
    return VrtSource(path_of(path, name, file.get("relativeToVRT") == "1"), name, number, of, to,
                     nodata_of(path, element.findtext("NODATA"), dtype), scale, offset)


def refuse_source(path: str, element: Any, name: str) -> None:
    if name.lower().endswith(".vrt"):
        raise VRTUnsupportedError(f"{path}: nested VRT: the source {name} is a VRT itself (Nested)")
    if element.find("MaskBand") is not None:
        raise VRTUnsupportedError(f"{path}: source {name}: <MaskBand> is not supported")
    if (element.findtext("UseMaskBand") or "").strip().lower() in ("true", "1"):
        raise VRTUnsupportedError(f"{path}: source {name}: <UseMaskBand> is not supported")


def rect_of(path: str, element: Any, key: str, name: str) -> tuple[int, int, int, int]:
    rect = element.find(key)
    if rect is None:
        raise VRTUnsupportedError(f"{path}: source {name} has no <{key}>")
    x, y, width, height = (whole_of(path, rect, side) for side in ("xOff", "yOff", "xSize", "ySize"))
    what = f"{path}: source {name}: {key} (xOff={x}, yOff={y}, xSize={width}, ySize={height})"
    if width < 0 or height < 0:
        raise VRTUnsupportedError(f"{what} has a negative size")
    if key == "SrcRect" and (x < 0 or y < 0):
        raise VRTUnsupportedError(f"{what} has a negative offset")
    return x, y, width, height


def path_of(path: str, name: str, is_relative: bool) -> str:
    """The path of a source, which lies in the folder of the VRT or below it, or below a root that the environment
    allows."""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    is_absolute = os.path.isabs(name) and not is_relative
    real = os.path.realpath(name if is_absolute else os.path.join(folder, name))
    roots = [folder]
    if is_absolute:
        allowed = os.environ.get("XRSPATIAL_VRT_ALLOWED_ROOTS", "").split(os.pathsep)
        roots += [os.path.realpath(root) for root in allowed if root.strip()]
    if not any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in roots):
        raise VRTUnsupportedError(f"{path}: the source {name} is outside the VRT directory; "
                                  "XRSPATIAL_VRT_ALLOWED_ROOTS allows others")
    return real


# ---- checks ----------------------------------------------------------------------------------------------------------


def check(vrt: Vrt, band: "int | None", band_nodata: Any, allow_rotated: bool, allow_unparseable_crs: bool) -> None:
    """Refuses what is ambiguous, by xarray-spatial's classes. `band` counts from 0."""
    if vrt.is_rotated and not allow_rotated:
        raise RotatedTransformError(f"{vrt.path}: the GeoTransform is a rotated affine transform; allow_rotated=True "
                                    "reads it without georeferencing")
    if vrt.transform is not None and not vrt.is_rotated and not (vrt.transform[1] and vrt.transform[5]):
        raise DegenerateVrtError(f"{vrt.path}: the pixel size is 0")
    for number, source in vrt.sources():
        x, y, width, height = source.to
        if x >= vrt.width or y >= vrt.height or x + width <= 0 or y + height <= 0:
            raise VRTUnsupportedError(f"{vrt.path}: source {source.name} of band {number}: DstRect {source.to} is "
                                      "outside the raster")
    if band is None:
        check_bands(vrt, band_nodata)
    check_systems(vrt, allow_unparseable_crs)


class DegenerateVrtError(DegeneratePixelSizeError, VRTUnsupportedError):
    """Pixels of size 0."""


def check_bands(vrt: Vrt, band_nodata: Any) -> None:
    first = vrt.bands[0]
    for number, band in enumerate(vrt.bands[1:], 2):
        if band.dtype != first.dtype:
            raise MixedBandMetadataError(f"{vrt.path}: mixed dataType: band 1 is {first.dtype}, band {number} "
                                         f"{band.dtype}; read one with band=")
        same = band.nodata == first.nodata or band.nodata is None or first.nodata is None or \
            band.nodata != band.nodata and first.nodata != first.nodata
        if not same and band_nodata is None:
            raise MixedBandMetadataError(f"{vrt.path}: mixed NoDataValue: band 1 has {first.nodata}, band {number} "
                                         f"{band.nodata}; read one with band=, or give band_nodata='first'")


def check_systems(vrt: Vrt, allow_unparseable: bool) -> None:
    """The VRT and its sources have one coordinate reference system."""
    own = system_of(vrt.srs)[0] if vrt.srs else None
    if vrt.srs and own is None and not allow_unparseable:
        raise UnparseableCRSError(f"{vrt.path}: <SRS> {vrt.srs[:80]!r} is not a known CRS; allow_unparseable_crs=True "
                                  "reads the VRT all the same")
    reference, origin = own, "the VRT's <SRS>"
    for path in dict.fromkeys(source.path for _, source in vrt.sources()):
        try:
            with open_file(path) as file:
                found = file.crs
        except (Error, OSError):
            continue  # missing_sources decides
        if found is None or found.startswith(LOCAL):
            continue  # it does not say where the pixels lie
        if reference is None and not vrt.srs:
            reference, origin = found, f"that of {path} (the VRT has no <SRS>)"
        elif reference is not None and not are_same(reference, found):
            raise VRTUnsupportedError(f"{vrt.path}: the CRS of the source {path} ({found[:80]}) differs from {origin} "
                                      f"({reference[:80]}); cogpu.open_geotiff reprojects it")


def are_same(one: str, other: str) -> bool:
    if one == other or system_of(one)[0] == system_of(other)[0]:
        return True
    try:
        import pyproj
        return bool(pyproj.CRS.from_user_input(one) == pyproj.CRS.from_user_input(other))
    except Exception:  # not installed, or it does not know one of them
        return False


@functools.lru_cache(64)
def system_of(text: str) -> "tuple[str | None, str | None]":
    """("EPSG:4326" or WKT, WKT) of a CRS as a text; None where PROJ does not know it."""
    from ...write import to_geotiff
    try:
        pixel = to_geotiff(np.zeros((1, 1), "uint8"), None, crs=text, compression="none")
        with open_file(bytes(pixel)) as file:
            return file.crs, file.wkt
    except Error:
        return None, None
