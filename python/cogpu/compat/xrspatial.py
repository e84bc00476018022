"""For users of xarray-spatial 0.10: its open_geotiff and to_geotiff, over our engine.

The shapes are that package's, (y, x) and (y, x, band) with bands counted from 0, and so are names and defaults of
parameters, attributes, and classes of errors, so that a program switches by an import. What unlocks a codec there
(allow_...) is accepted and has no effect here, where all codecs are sound; what we have not (VRT, downloads, colour
ramps) is refused by name. Attributes of theirs that we leave out, and do not write: nodata_pixels_present, which costs
a pass (there too it may be absent), extra_tags, and the tables of classes beside a file (category_names,
category_colors). gdal_metadata_xml, extra_samples and the resolutions are there to be read, and are not written.
"""

import dataclasses
import os
import warnings

import numpy as np

from .. import arrays, georef, lazy, write
from ..errors import ArgumentError, CorruptError, Error, LimitError, UnsupportedError
from ..file import open as open_file
from ..profile import known_crs
from ..read import open_geotiff as read_geotiff
from ..urls import shown

CONTRACT = 5  # of attributes, as the package counts them
GEOREF_STATUS_FULL = "full"
GEOREF_STATUS_TRANSFORM_ONLY = "transform_only"
GEOREF_STATUS_CRS_ONLY = "crs_only"
GEOREF_STATUS_NONE = "none"
GEOREF_STATUS_ROTATED_DROPPED = "rotated_dropped"
GEOREF_STATUS_VALUES = (GEOREF_STATUS_FULL, GEOREF_STATUS_TRANSFORM_ONLY, GEOREF_STATUS_CRS_ONLY, GEOREF_STATUS_NONE,
                        GEOREF_STATUS_ROTATED_DROPPED)
CODECS = ("none", "packbits", "lzw", "deflate", "zstd", "jpeg", "lerc")
READS = ("local_file", "local_cog", "windowed", "dask", "sidecar_ovr", "allow_rotated", "gpu", "unpack")
WRITES = ("local_file", "cog", "overviews", "bigtiff", "gpu")
# What is there, by that package's names; what is not there is not named. Here nothing is an experiment.
SUPPORTED_FEATURES = {f"{kind}.{name}": "stable" for kind, names in (("codec", CODECS), ("reader", READS),
                                                                     ("writer", WRITES)) for name in names}
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, EXTRA_SAMPLES, GDAL_METADATA = 282, 283, 296, 338, 42112
RESOLUTION_UNITS = {1: "none", 2: "inch", 3: "centimeter"}
PER_BAND = {"SCALE": "scales", "OFFSET": "offsets", "DESCRIPTION": "long_name", "UNITTYPE": "units"}
USUAL = {"SCALE": 1.0, "OFFSET": 0.0, "DESCRIPTION": None, "UNITTYPE": None}
NOT_TAGS = ("_xrspatial_geotiff_contract", "_xrspatial_no_georef", "georef_status", "mask_and_scale_dtype",
            "nodata_dtype_cast", "nodata_pixels_present", "masked_nodata", "x_resolution", "y_resolution",
            "resolution_unit", "extra_samples", "extra_tags", "image_description", "category_names",
            "category_colors", "gdal_metadata", "gdal_metadata_xml", "scale_factor", "add_offset", "rotated_affine",
            "nodatavals", "_FillValue")


class GeoTIFFFallbackWarning(UserWarning):
    """A parameter has no effect here."""


class GeoTIFFAmbiguousMetadataError(Error, ValueError):
    """What a file or an array says of itself is contradictory, or cannot be kept."""


class InvalidCRSCodeError(GeoTIFFAmbiguousMetadataError): ...
class UnparseableCRSError(GeoTIFFAmbiguousMetadataError): ...
class RotatedTransformError(GeoTIFFAmbiguousMetadataError): ...
class DegeneratePixelSizeError(GeoTIFFAmbiguousMetadataError): ...
class NonUniformCoordsError(GeoTIFFAmbiguousMetadataError): ...
class MixedBandMetadataError(GeoTIFFAmbiguousMetadataError): ...
class ConflictingCRSError(GeoTIFFAmbiguousMetadataError): ...
class ConflictingNodataError(GeoTIFFAmbiguousMetadataError): ...
class VRTUnsupportedError(GeoTIFFAmbiguousMetadataError): ...
class InconsistentGeoKeysError(GeoTIFFAmbiguousMetadataError): ...
class InvalidIntegerNodataError(GeoTIFFAmbiguousMetadataError): ...
class MalformedScaleOffsetError(GeoTIFFAmbiguousMetadataError): ...
class VRTStableSourcesOnlyError(GeoTIFFAmbiguousMetadataError): ...
class RemoteStableSourcesOnlyError(GeoTIFFAmbiguousMetadataError): ...
class UnknownCRSModelTypeError(GeoTIFFAmbiguousMetadataError): ...
class NonRepresentableEPSGCRSError(GeoTIFFAmbiguousMetadataError): ...
class DuplicateIFDTagError(CorruptError): ...
class UnsupportedGeoTIFFFeatureError(UnsupportedError): ...
class PixelSafetyLimitError(LimitError): ...
class CloudSizeLimitError(LimitError): ...
class UnsafeURLError(ArgumentError): ...


# ------------------------------------------------------------------------------------------------ reading


def open_geotiff(source, *, dtype=None, window=None, bbox=None, overview_level=None, band=None, default_name=None,
                 chunks=None, gpu=False, max_pixels=None, max_cloud_bytes=None, on_gpu_failure=None,
                 missing_sources=None, allow_rotated=False, allow_unparseable_crs=False, allow_invalid_nodata=False,
                 stable_only=False, allow_experimental_codecs=False, allow_internal_only_jpeg=False, band_nodata=None,
                 masked=False, unpack=False, parse_coordinates=True, lock=None, cache=True):
    """Reads a GeoTIFF or COG as xarray-spatial's open_geotiff does: see there, and cogpu.open_geotiff.

    Returns a DataArray of (y, x), or of (y, x, band) where the file has bands, with NumPy's arrays, Dask's with
    `chunks`, CuPy's with `gpu`.
    """
    refuse_vrt(source, stable_only)
    refuse_given("is for VRT and object stores, which are not read here", missing_sources=missing_sources,
                 band_nodata=band_nodata, max_cloud_bytes=max_cloud_bytes)
    warn_of_given(lock=lock is not None, cache=cache is not True)
    if on_gpu_failure is not None and not gpu:
        raise ArgumentError("on_gpu_failure applies with gpu=True alone")
    file = lazy.opened(source) if lazy.is_path(source) else open_file(source)
    # By nodata alone: masks and alpha bands mean nothing there.
    is_masked = bool(masked or unpack) and file.nodata is not None
    scale, offset = scaling_of(file, band) if unpack else (1.0, 0.0)
    is_scaled = (scale, offset) != (1, 0)
    check_transform(file, allow_rotated)
    check_nodata(file, allow_invalid_nodata)
    is_cast = dtype is not None
    if dtype is None and file.dtype.kind in "iu" and (is_masked or is_scaled):
        dtype = "float64"  # that package's choice; xarray's is float32 for small integers
    options = {"dtype": dtype, "window": window, "bbox": bbox, "overview_level": overview_level, "band": band,
               "chunks": chunks, "gpu": gpu, "masked": is_masked, "unpack": is_scaled, "default_name": default_name,
               "on_gpu_failure": on_gpu_failure, "max_pixels": max_pixels}
    try:
        array = read_geotiff(source if lazy.is_path(source) else file,
                             **{name: value for name, value in options.items() if value is not None})
    except LimitError as error:
        raise PixelSafetyLimitError(str(error)) from error
    transform = georef.of_array(array)["transform"] if file.has_transform else None
    attrs = {**attrs_of(file, transform), **nodata_attrs(file, is_masked)}
    if is_cast and "nodata" in attrs:
        attrs["nodata_dtype_cast"] = str(array.dtype)
    if unpack and (is_masked or is_scaled):
        attrs["mask_and_scale_dtype"] = str(file.dtype)
    if is_scaled:
        attrs |= {"scale_factor": scale, "add_offset": offset}
    return reshaped(array, attrs, parse_coordinates)


def refuse_vrt(path, stable_only=False):
    if not isinstance(path, (str, os.PathLike)):
        return
    text = os.fspath(path)
    if text.lower().endswith(".vrt"):
        kind = VRTStableSourcesOnlyError if stable_only else VRTUnsupportedError
        raise kind(f"{shown(text)}: VRT is not supported; read its sources one by one, or convert it with gdal_translate")
    if stable_only and "://" in text:
        raise RemoteStableSourcesOnlyError(f"{shown(text)}: stable_only=True allows files of this machine alone")


def refuse_given(why, **parameters):
    for name, value in parameters.items():
        if value is not None:
            raise ArgumentError(f"{name}={value!r}: it {why}")


def warn_of_given(**given):
    for name, is_given in given.items():
        if is_given:
            warnings.warn(f"{name} has no effect", GeoTIFFFallbackWarning, stacklevel=3)


def check_transform(file, allow_rotated):
    if file.has_transform and (file.transform.b or file.transform.d) and not allow_rotated:
        raise RotatedTransformError(f"the grid is rotated or sheared ({tuple(file.transform)}): allow_rotated=True "
                                    "reads it without its place on the ground, cogpu.open_geotiff with it")


def check_nodata(file, allow_invalid_nodata):
    nodata = file.info["nodata"]  # as stated; file.nodata is what samples can be
    if nodata is None or file.dtype.kind not in "iu" or allow_invalid_nodata:
        return
    if not np.isfinite(nodata) or nodata != int(nodata):
        raise InvalidIntegerNodataError(f"nodata {nodata} can be no sample of {file.dtype}: give "
                                        "allow_invalid_nodata=True")


def scaling_of(file, band):
    """Scale and offset that hold for all bands, or for the one that is asked for."""
    pairs = list(zip(file.scales, file.offsets))
    pairs = {pairs[band]} if isinstance(band, int) and 0 <= band < len(pairs) else set(pairs)
    if len(pairs) > 1:
        raise MixedBandMetadataError(f"unpack=True: the bands have scales {file.scales} and offsets {file.offsets}: "
                                     "read one with band=, or use cogpu.open_geotiff")
    return pairs.pop()


def attrs_of(file, transform):
    """Attributes as that package has them, but for nodata. `transform`: of the window, in GDAL's order, or None."""
    attrs = {"_xrspatial_geotiff_contract": CONTRACT}
    is_rotated = file.has_transform and bool(file.transform.b or file.transform.d)
    if is_rotated:
        x0, a, b, y0, d, e = transform
        attrs |= {"georef_status": GEOREF_STATUS_ROTATED_DROPPED, "_xrspatial_no_georef": True,
                  "rotated_affine": (a, b, x0, d, e, y0)}
    else:
        attrs |= place_attrs(file, transform)
    if file.area_or_point == "Point":
        attrs["raster_type"] = "point"
    return attrs | tag_attrs(file)


def place_attrs(file, transform):
    attrs = {"georef_status": status_of(transform, file.crs)}
    if file.crs is not None:
        if file.crs.startswith("EPSG:"):
            attrs["crs"] = int(file.crs.removeprefix("EPSG:"))
        attrs["crs_wkt"] = file.wkt or file.crs
    if transform is None:
        attrs["_xrspatial_no_georef"] = True
    else:
        x0, a, _, y0, _, e = transform
        half = 0.5 if file.area_or_point == "Point" else 0.0  # its transform has the first centre, not the corner
        attrs["transform"] = (a, 0.0, x0 + half * a, 0.0, e, y0 + half * e)
    return attrs


def status_of(transform, crs):
    if transform is None:
        return GEOREF_STATUS_NONE if crs is None else GEOREF_STATUS_CRS_ONLY
    return GEOREF_STATUS_TRANSFORM_ONLY if crs is None else GEOREF_STATUS_FULL


def tag_attrs(file):
    """GDAL_METADATA, the palette and the description, where the file has them."""
    attrs = {}
    items = {item["name"] if not item["band"] else (item["name"], item["band"] - 1): item["value"]
             for item in file.items if item["domain"] == ""}
    if items:
        attrs["gdal_metadata"] = items
    if file.palette:
        attrs["colormap"] = tuple(colour[part] for part in range(3) for colour in file.palette)
    if file.info.get("description"):
        attrs["image_description"] = file.info["description"]
    return attrs | raw_tag_attrs(file)


def raw_tag_attrs(file):
    """What that package hands on of tags as they are stored."""
    tags = {number: georef.tiff_tag(file, number, kind) for number, kind in (
        (X_RESOLUTION, tuple), (Y_RESOLUTION, tuple), (RESOLUTION_UNIT, tuple), (EXTRA_SAMPLES, tuple),
        (GDAL_METADATA, bytes))}
    attrs = {name: float(tags[number][0]) for name, number in (("x_resolution", X_RESOLUTION),
                                                               ("y_resolution", Y_RESOLUTION)) if tags[number]}
    if tags[RESOLUTION_UNIT]:
        unit = tags[RESOLUTION_UNIT][0]
        attrs["resolution_unit"] = RESOLUTION_UNITS.get(unit, str(unit))
    if tags[EXTRA_SAMPLES]:
        attrs["extra_samples"] = tags[EXTRA_SAMPLES]
    if tags[GDAL_METADATA]:
        attrs["gdal_metadata_xml"] = tags[GDAL_METADATA].split(b"\0")[0].decode("utf-8", "replace")
    return attrs


def nodata_attrs(file, is_masked):
    stated = file.info["nodata"]
    return {} if stated is None else {"nodata": stated, "masked_nodata": is_masked}


def reshaped(array, attrs, parse_coordinates):
    """(band, y, x) with rioxarray's attributes as (y, x) or (y, x, band) with these."""
    array = array.reset_coords("spatial_ref", drop=True) if "spatial_ref" in array.coords else array
    if "band" in array.dims and array.sizes["band"] == 1:
        array = array.isel(band=0, drop=True)
    elif "band" in array.dims:
        array = array.transpose("y", "x", "band").assign_coords(band=np.arange(array.sizes["band"]))
    if not parse_coordinates:
        array = array.drop_vars(["y", "x"], errors="ignore")
    elif "_xrspatial_no_georef" in attrs:
        array = array.assign_coords({axis: pixel_numbers(array, axis) for axis in ("y", "x")})
    array.attrs, array.encoding = attrs, {}
    return array


def pixel_numbers(array, axis):
    """Rows or columns of the file; of a rotated grid, which comes without coordinates, of the array."""
    return np.floor(array[axis].values).astype("int64") if axis in array.coords else np.arange(array.sizes[axis])


# ------------------------------------------------------------------------------------------------ writing


def to_geotiff(data, path, *, crs=None, nodata=None, compression="zstd", compression_level=None, tiled=True,
               tile_size=256, predictor=False, cog=False, overview_levels=None, overview_resampling="mean",
               bigtiff=None, gpu=None, streaming_buffer_bytes=256 * 1024 * 1024, max_z_error=0.0, photometric="auto",
               allow_internal_only_jpeg=False, allow_experimental_codecs=False, allow_unparseable_crs=False,
               drop_rotation=False, pack=False, color_ramp=None, color_ramp_range=None):
    """Writes a GeoTIFF or COG as xarray-spatial's to_geotiff does: see there, and cogpu.to_geotiff.

    Plain arrays are (y, x) or (y, x, band). A rotated grid (attrs["rotated_affine"]) is written as it is, unless
    drop_rotation=True. A COG may go to a file-like object too, and its overviews are made while rows pass.
    """
    refuse_vrt(path)
    refuse_given("needs files beside the GeoTIFF, which are not written here", color_ramp=color_ramp,
                 color_ramp_range=color_ramp_range)
    data = named(data)
    is_masked, description = data.attrs.get("masked_nodata", True), data.attrs.get("image_description")
    is_plain = photometric == "auto" and "colormap" not in data.attrs
    data = restored(data, pack, drop_rotation, crs, nodata)
    options = {"crs": crs, "nodata": nodata, "compression": compression, "max_z_error": max_z_error, "tiled": tiled,
               "compression_level": compression_level if compression in ("deflate", "zstd") else None,
               "tile_size": tile_size if tiled else None, "predictor": predictor, "cog": cog, "bigtiff": bigtiff,
               "gpu": gpu, "overview_levels": overview_levels if cog else None, "pack": pack,
               "overview_resampling": overview_resampling if cog else None,
               "photometric": "minisblack" if is_plain else photometric}
    check_known(data.attrs.get("crs") if crs is None else crs)
    planned = write.plan(data, **options)
    profile = {**planned.profile, "description": description,
               "nan_is_nodata": planned.dtype.kind == "f" and bool(is_masked)}
    return write.carry_out(dataclasses.replace(planned, profile=profile), path, streaming_buffer_bytes)


def named(data):
    """A DataArray; a plain array's dimensions are (y, x) or (y, x, band)."""
    import xarray as xr

    if isinstance(data, (xr.DataArray, xr.Dataset)):
        return data
    array = arrays.sliceable(data)
    if len(array.shape) not in (2, 3):
        raise ArgumentError(f"data has {len(array.shape)} dimensions; give (y, x) or (y, x, band)")
    return xr.DataArray(array, dims=("y", "x", "band")[:len(array.shape)])


def restored(data, pack, drop_rotation, crs, nodata):
    """The data with attributes where our writer looks for them; the caller's is not touched."""
    _, y, x = (None if axis is None else data.dims[axis] for axis in arrays.axes_by_name(data.dims))
    attrs = data.attrs
    if crs is None:
        check_crs(attrs)
    check_coordinates(data, (y, x))
    kept = {name: value for name, value in attrs.items() if name not in NOT_TAGS}
    kept |= {"nodata": nodata_stated(attrs) if nodata is None else None} | band_attrs(attrs, arrays.arrange(data))
    if attrs.get("raster_type") == "point" and "transform" in attrs:
        a, b, c, d, e, f = tuple(attrs["transform"])[:6]
        kept["transform"] = (a, b, c - (a + b) / 2, d, e, f - (d + e) / 2)
    if attrs.get("rotated_affine") is not None and not drop_rotation:
        kept["rotated_affine"] = attrs["rotated_affine"]
    data = data.copy(deep=False)
    data = data.drop_vars([y, x], errors="ignore") if attrs.get("_xrspatial_no_georef") else data
    data.attrs = {name: value for name, value in kept.items() if value is not None}
    if pack:
        data.encoding = {"dtype": attrs.get("mask_and_scale_dtype"), "scale_factor": attrs.get("scale_factor"),
                         "add_offset": attrs.get("add_offset")}
    return data


def check_crs(attrs):
    """attrs["crs"] and attrs["crs_wkt"] must mean the same; pyproj knows, where it is installed."""
    if attrs.get("crs") is None or not attrs.get("crs_wkt"):
        return
    try:
        import pyproj
    except ImportError:
        return
    code, text = (pyproj.CRS.from_user_input(georef.crs_text(attrs[name])) for name in ("crs", "crs_wkt"))
    if code != text and text.to_epsg() != code.to_epsg():
        raise ConflictingCRSError(f"attrs['crs'] is {code.name}, and attrs['crs_wkt'] is {text.name}: remove one")


def check_known(crs):
    try:
        known_crs(georef.crs_text(crs))
    except UnsupportedError as error:
        raise NonRepresentableEPSGCRSError(str(error)) from error
    except ArgumentError as error:
        raise (UnparseableCRSError if isinstance(crs, str) else InvalidCRSCodeError)(str(error)) from error


def check_coordinates(data, axes):
    for axis in axes:
        steps = np.diff(data.coords[axis].values.astype("float64")) if axis in data.coords else ()
        if len(steps) > 1 and abs(steps - steps.mean()).max() > 1e-3 * abs(steps.mean()):
            raise NonUniformCoordsError(f"the coordinates of {axis!r} are not evenly spaced; a GeoTIFF cannot hold "
                                        "that")


def nodata_stated(attrs):
    """nodata, or nodatavals, or _FillValue; an error where they contradict each other."""
    stated = [attrs.get("nodata"), *(attrs.get("nodatavals") or ()), attrs.get("_FillValue")]
    stated = [value for value in stated if value is not None]
    if len({"nan" if value != value else value for value in stated}) > 1:
        raise ConflictingNodataError(f"attrs name several nodata values, {stated}: give nodata=, or remove some")
    return stated[0] if stated else None


def band_attrs(attrs, arranged):
    """GDAL_METADATA's items: those of the image as a dict, those of bands where rioxarray has them."""
    array, (band, _, _) = arranged
    bands = 1 if band is None else array.shape[band]
    items = attrs.get("gdal_metadata") or {}
    found = {"gdal_metadata": {name: value for name, value in items.items() if isinstance(name, str)}}
    is_unpacked = attrs.get("scale_factor") is not None  # and must not be scaled again by those who read it
    for item, name in PER_BAND.items():
        values = tuple(items.get((item, index), USUAL[item]) for index in range(bands))
        if values != (USUAL[item],) * bands and not (is_unpacked and item in ("SCALE", "OFFSET")):
            found[name] = values
    return found
