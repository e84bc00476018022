"""Creation options: parameters of to_geotiff and what the data says of itself (georef) become fields of cogpu_profile.
All that needs no pixel is checked here, so that a wrong call fails before a file is touched, by the name of the
parameter.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from . import _cogpu, georef
from .arguments import flag, number, whole, word
from .errors import Error, InvalidArgumentError

CODECS = {codec["name"]: codec for codec in _cogpu.codecs() if codec["can_encode"]}
QUALITY_MAX = 100
RESAMPLING = (*_cogpu.resamplings(), "mean")  # NumPy's name of average
PHOTOMETRIC_NUMBERS = {number: name for name, number in _cogpu.photometrics().items()}
PHOTOMETRIC = (*PHOTOMETRIC_NUMBERS.values(), "rgba")


# ---- what is asked ---------------------------------------------------------------------------------------------------


def device_of(gpu: Any) -> str | None:
    """The engine's word for where to encode; None for where the rows lie."""
    if gpu is None or isinstance(gpu, str) and gpu == "emu":
        return gpu
    if not isinstance(gpu, (bool, np.bool_)):
        raise TypeError(f"gpu must be True, False or None, not {gpu!r}")
    return "cuda" if gpu else "cpu"


def coding(asked: Any) -> dict[str, Any]:
    """Codec, level or quality, maximum error and predictor. What a codec has is in its row of the engine's table."""
    name = "none" if asked.compression is None else word("compression", asked.compression, CODECS)
    codec = CODECS[name]
    fields = {"codec": name, "predictor": predictor_of(asked.predictor)}
    if asked.compression_level is not None:
        most = QUALITY_MAX if codec["has_quality"] else codec["max_level"]
        if not most:
            raise InvalidArgumentError(f"compression_level={asked.compression_level}: {name} has no levels")
        level = whole(f"{name}: compression_level", asked.compression_level, codec["min_level"] or 1, most)
        fields["quality" if codec["has_quality"] else "compression_level"] = level
    if number("max_z_error", asked.max_z_error, least=0):
        if not codec["has_max_z_error"]:
            raise InvalidArgumentError(f"max_z_error={asked.max_z_error}: only compression='lerc' has one, not "
                                       f"{name!r}")
        fields["max_z_error"] = float(asked.max_z_error)
    return fields


def predictor_of(predictor: Any) -> int | None:
    if predictor is None:
        return None
    if isinstance(predictor, (bool, np.bool_)):
        return 2 if predictor else 1
    return whole("predictor", predictor, 0, 3) or 1


def grid(asked: Any) -> dict[str, Any]:
    is_cog, is_tiled = flag("cog", asked.cog), flag("tiled", asked.tiled)
    if is_cog and not is_tiled:
        raise InvalidArgumentError("tiled=False: a COG has tiles")
    if asked.tile_size is not None and not is_tiled:
        raise InvalidArgumentError("tile_size is given, but tiled=False")
    height, width = sides(asked.tile_size)
    bigtiff = None if asked.bigtiff is None else "yes" if flag("bigtiff", asked.bigtiff) else "no"
    return {"cog": is_cog, "strips": not is_tiled, "block_height": height, "block_width": width, "bigtiff": bigtiff,
            "interleave": word("interleave", asked.interleave, ("pixel", "band"))}


def sides(tile_size: Any) -> tuple[int | None, ...]:
    if tile_size is None:
        return None, None
    both = tuple(tile_size) if isinstance(tile_size, (tuple, list)) else (tile_size, tile_size)
    both = tuple(whole("tile_size", side, 16, 1 << 20) for side in both)
    if len(both) != 2 or any(side % 16 for side in both):
        raise InvalidArgumentError(f"tile_size={tile_size} is not a multiple of 16, or (height, width) of such")
    return both


def pyramid(asked: Any) -> dict[str, Any]:
    factors = asked.overview_levels
    if factors is not None:
        if not isinstance(factors, (list, tuple, range, np.ndarray)):
            raise TypeError(f"overview_levels must be a list of factors, as [2, 4, 8], not {factors!r}")
        factors = [whole("overview_levels", factor, 2, 1 << 20) for factor in factors]
        if factors != sorted(set(factors)):
            raise InvalidArgumentError(f"overview_levels={factors} must ascend")
    kind = "listed" if factors else "none" if factors is not None or not asked.cog else "auto"
    if asked.overview_resampling is None:
        return {"overviews": kind, "overview_factors": factors or None}
    if kind == "none":
        raise InvalidArgumentError(f"overview_resampling={asked.overview_resampling!r} is given, but there are no "
                                   "overviews: give cog=True or overview_levels")
    resampling = word("overview_resampling", asked.overview_resampling, RESAMPLING)
    return {"overviews": kind, "overview_factors": factors or None, "resampling": resampling}


def colours(asked: Any, facts: dict[str, Any], bands: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """What samples mean to the eye. The palette of the file that was read is kept while samples can be numbers of its
    colours; one in attrs, which somebody put there, must fit."""
    kind = asked.photometric
    if not isinstance(kind, str):
        code = whole("photometric", kind)
        if code not in PHOTOMETRIC_NUMBERS:
            raise InvalidArgumentError(f"photometric={code} is not one of {', '.join(map(str, PHOTOMETRIC_NUMBERS))}")
        kind = PHOTOMETRIC_NUMBERS[code]
    kind = word("photometric", kind, ("auto", *PHOTOMETRIC))
    if kind == "rgba" and bands < 4:
        raise InvalidArgumentError(f"photometric='rgba' needs 4 bands, and data has {bands}")
    palette = facts.get("palette")
    if palette is None and kind in ("auto", "palette") and dtype.name in ("uint8", "uint16"):
        palette = facts.get("palette_of_file")
    if kind == "auto" and palette is None and facts.get("photometric_of_file"):
        kind = facts["photometric_of_file"]
        if dtype != facts["dtype_of_file"] or not facts["has_colours_of_file"]:
            kind = "minisblack"  # one more that is not RGB
    if kind == "auto":
        return {"palette": palette}
    if kind == "rgba":
        return {"palette": palette, "photometric": "rgb", "alpha_band": 4}
    return {"palette": palette, "photometric": kind}


def nodata_of(asked: Any, stated: Any, dtype: np.dtype[Any]) -> int | float | None:
    """The nodata value as a Python number that the sample type can hold, or None. What is asked for must fit; what the
    data states may have been left behind by a cast, and then says nothing of these samples."""
    nodata = stated if asked is None else asked
    if nodata is None:
        return None
    nodata = nodata.item() if isinstance(nodata, np.generic) else nodata
    if isinstance(nodata, bool) or not isinstance(nodata, (int, float)):
        raise TypeError(f"nodata must be a number, not {nodata!r}")
    if not georef.fits(nodata, dtype):
        if asked is None:
            warnings.warn(f"the data states nodata {nodata}, which samples of {dtype} cannot be: the file gets none; "
                          "give nodata= that fits", stacklevel=5)
            return None
        raise InvalidArgumentError(f"nodata={nodata} does not fit samples of {dtype}: give nodata that does")
    return int(nodata) if math.isfinite(nodata) and nodata == int(nodata) else float(nodata)


# ---- what the data says ----------------------------------------------------------------------------------------------


def facts_of(data: Any, axes: tuple[int | None, int, int], asked: Any) -> dict[str, Any]:
    """georef's facts of a DataArray, its palette, and whether its NaN stand for nodata."""
    _, y, x = (None if axis is None else data.dims[axis] for axis in axes)
    facts = georef.of_array(told(data, y, x, asked), y, x)
    return {**facts, "palette": palette_of(data.attrs.get("colormap")),
            **colours_of_file(data, axes),
            "masked": nan_means_nodata(data.attrs, data.encoding)}


COLOURS = {"cmyk": 4, "ycbcr": 3, "cielab": 3}


def colours_of_file(data, axes):
    """The palette of the file that was read, or its photometric interpretation where that is not the default of its
    bands; and whether the data still begin with the bands that these speak of."""
    count = 1 if axes[0] is None else data.shape[axes[0]]
    numbers = np.atleast_1d(data.coords["band"].values).tolist() if "band" in data.coords else [*range(1, count + 1)]
    kind, stored = data.encoding.get("photometric"), data.encoding.get("rasterio_dtype")
    palette = palette_of(data.encoding.get("colormap")) if numbers[:1] == [1] else None
    if kind not in PHOTOMETRIC or stored is None:
        return {"palette_of_file": palette}
    needed = [*range(1, COLOURS.get(kind, 1) + 1)]
    has_colours = numbers[:len(needed)] == needed and (kind != "ycbcr" or count == 3)
    return {"palette_of_file": palette, "photometric_of_file": kind, "dtype_of_file": np.dtype(str(stored)),
            "has_colours_of_file": has_colours}


def told(data, y, x, asked):
    """What is georef's to say: without what has no place in tags, and without what a parameter states anew, which may
    be wrong or contradictory here."""
    data = data.copy(deep=False)
    dropped = ("colormap",) if asked.nodata is None else ("colormap", "nodatavals", *georef.NODATA_NAMES)
    data.attrs = {name: value for name, value in data.attrs.items() if name not in dropped}
    return data if asked.transform is None else data.drop_vars([y, x], errors="ignore")


def palette_of(colormap):
    """Colours (red, green, blue) of 16 bits, from such or, as xarray-spatial has them, all reds, greens and blues."""
    if colormap is None:
        return None
    parts = np.asarray(colormap)
    if parts.dtype.kind not in "iu" or parts.size == 0 or parts.size % 3 or parts.ndim == 2 and parts.shape[1] != 3:
        raise InvalidArgumentError("colormap of the data's attrs or encoding must be colours, (red, green, blue), or "
                                   "all reds, greens and blues")
    return (parts if parts.ndim == 2 else parts.reshape(3, -1).T).tolist()


def nan_means_nodata(attrs, encoding):
    """A masked read leaves nodata in the encoding, or says so in xarray-spatial's way. An unmasked one has both in its
    attributes: its NaN are values of the file. Who sets attrs["nodata"] by hand means NaN by it."""
    if "masked_nodata" in attrs:
        return bool(attrs["masked_nodata"])
    stated = encoding.get("_FillValue"), attrs.get("nodata"), attrs.get("nodatavals")
    return any(value is not None for value in stated)


def place(asked: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Where the pixels lie."""
    transform = facts.get("transform") if asked.transform is None else gdal_order(asked.transform)
    points = None if transform else facts.get("gcps")
    return {"transform": transform, "gcps": points, "rpc": facts.get("rpc"),
            "pixel_is_point": facts.get("pixel_is_point", False),
            "crs": known_crs(georef.crs_text(facts.get("crs") if asked.crs is None else asked.crs))}


@functools.lru_cache(maxsize=64)
def known_crs(text):
    """The system's text, if the engine can write it: who plans should know before rows are made."""
    if text is not None:
        try:
            _cogpu.Writer(None, {"width": 1, "height": 1, "bands": 1, "type": "uint8", "crs": text}).abort()
        except Error as error:
            raise type(error)(f"crs: {error}") from error
    return text


def gdal_order(transform):
    try:
        a, b, c, d, e, f = (float(value) for value in tuple(transform)[:6])
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"transform={transform!r} is not six numbers a, b, c, d, e, f") from error
    if not all(map(math.isfinite, (a, b, c, d, e, f))) or a * e == b * d:
        raise InvalidArgumentError(f"transform={transform!r} does not give pixels an area")
    return c, a, b, f, d, e


def items_of(facts: dict[str, Any], scaling: dict[str, Any]) -> list[dict[str, Any]]:
    """GDAL_METADATA: the tags, those of bands and other domains, and of each band what it has."""
    items = [item(name, value) for name, value in (facts.get("tags") or {}).items()] + facts.get("items", [])
    for name, role, values, usual in (("DESCRIPTION", "description", facts.get("descriptions"), None),
                                      ("UNITTYPE", "unittype", facts.get("units"), None),
                                      ("SCALE", "scale", scaling.get("scales"), 1),
                                      ("OFFSET", "offset", scaling.get("offsets"), 0)):
        items += [item(name, str(value), role, band) for band, value in enumerate(values or (), start=1)
                  if value is not None and value != usual]
    return items


def item(name, value, role="", band=0):
    return {"domain": "", "name": name, "value": value, "role": role, "band": band}
