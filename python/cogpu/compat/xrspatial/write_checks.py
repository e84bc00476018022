"""Parameters and arrays that xarray-spatial's to_geotiff refuses, each with its class of error."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import arrays
from ...errors import InvalidArgumentError
from ...profile import PHOTOMETRIC, PHOTOMETRIC_NUMBERS

if TYPE_CHECKING:
    import xarray as xr

LEVELS = {"deflate": (1, 9), "zstd": (1, 22)}
NO_LEVELS = ("lzw", "packbits", "none", "jpeg", "lerc")
OURS = ("webp", "lzma", "lerc_deflate", "lerc_zstd")
NO_PREDICTOR = ("none", "packbits")
DEFAULT_TILE = 256
TEMPORAL = ("time", "date", "datetime", "t")


def is_data_array(data: Any) -> bool:
    import xarray as xr

    return isinstance(data, xr.DataArray)


def check_options(compression: Any, level: Any, tiled: bool, tile_size: Any, cog: bool) -> None:
    if not isinstance(compression, str):
        raise TypeError(f"compression must be a str, not {type(compression).__name__}; 'none' for no compression")
    codec = compression.lower()
    if codec not in (*LEVELS, *NO_LEVELS, *OURS):
        raise InvalidArgumentError(f"Unknown compression {compression!r}: there are {', '.join((*LEVELS, *NO_LEVELS))}")
    if level is not None and (isinstance(level, bool) or not isinstance(level, (int, np.integer))):
        raise TypeError(f"compression_level must be an int, not {level!r}")
    if level is not None and codec in LEVELS and not LEVELS[codec][0] <= level <= LEVELS[codec][1]:
        raise InvalidArgumentError(f"compression_level={level} is out of range for {codec} (valid: "
                                   f"{LEVELS[codec][0]}-{LEVELS[codec][1]})")
    if tiled or cog:
        check_tile_size(tile_size)
    elif tile_size != DEFAULT_TILE:
        warnings.warn(f"tile_size={tile_size} is ignored when tiled=False", UserWarning, stacklevel=3)
    if cog and not tiled:
        raise InvalidArgumentError("cog=True needs tiled=True: a COG has tiles; give cog=False for strips")


def check_vrt(path: Any, tiled: bool, tile_size: Any, cog: bool, overview_levels: Any) -> None:
    if cog or overview_levels is not None:
        raise InvalidArgumentError(f"{path}: cog=True and overview_levels are not compatible with VRT output")
    if not tiled:
        raise InvalidArgumentError(f"{path}: tiled=False is not compatible with VRT output, which is made of tiles")
    check_tile_size(tile_size)


def check_tile_size(tile_size: Any) -> None:
    if isinstance(tile_size, bool) or not isinstance(tile_size, (int, np.integer)) or tile_size <= 0:
        raise InvalidArgumentError(f"tile_size must be a positive int, not {tile_size!r}")
    if tile_size % 16:
        below = tile_size // 16 * 16
        near = f"{below} or {below + 16}" if below else "16"
        raise InvalidArgumentError(f"tile_size={tile_size} must be a multiple of 16, such as {near}")


def check_photometric(photometric: Any, bands: int) -> None:
    kind = PHOTOMETRIC_NUMBERS.get(photometric, photometric) if isinstance(photometric, int) else photometric
    needed = {"rgb": 3, "rgba": 4}.get(kind.lower(), 1) if isinstance(kind, str) else 1
    if bands < needed:
        raise InvalidArgumentError(f"photometric={photometric!r} needs at least {needed} bands, and data has {bands}")
    if isinstance(kind, str) and kind.lower() not in ("auto", *PHOTOMETRIC):
        raise InvalidArgumentError(f"photometric={photometric!r} is not a valid name: give auto, "
                                   f"{', '.join(PHOTOMETRIC)}")


def check_number(name: str, value: Any) -> None:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be numeric, not the bool {value!r}")
    if value is None:
        return
    try:
        float(value)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{name} must be numeric, not {value!r}") from None


def predictor_of(predictor: Any, codec: str, dtype: np.dtype) -> Any:
    """The predictor; codecs that compress nothing, or bytes alone, take none, and say nothing of it."""
    if codec in NO_PREDICTOR:
        return False
    if predictor == 3 and predictor is not True and dtype.kind != "f":
        raise InvalidArgumentError(f"predictor=3 is for floats, not for {dtype}")
    if predictor not in (False, 0, 1) and codec in ("jpeg", "lerc"):
        raise InvalidArgumentError(f"predictor={predictor!r} does not go with {codec}, which has no PREDICTOR tag")
    return predictor


def named(data: Any) -> "xr.DataArray":
    """A DataArray; a plain array's dimensions are (y, x) or (y, x, band)."""
    import xarray as xr

    if isinstance(data, xr.Dataset):
        raise TypeError("data is an xarray.Dataset: give one variable, as data['name']")
    if not isinstance(data, xr.DataArray):
        is_array = hasattr(data, "shape") or hasattr(data, "__dlpack_device__")
        array = arrays.sliceable(data if is_array else np.asarray(data))
        data = xr.DataArray(array, dims=("y", "x", "band")[:len(array.shape)] if len(array.shape) < 4 else None)
    if data.ndim not in (2, 3):
        raise InvalidArgumentError(f"Expected 2D or 3D array, got {data.ndim}D: to_geotiff takes (y, x), (y, x, band) "
                                   "or (band, y, x)")
    return data


def axes_of(data: "xr.DataArray") -> tuple[str, str]:
    """The names of the dimensions of rows and columns. Two dimensions may have any names."""
    dims = tuple(str(dim) for dim in data.dims)
    known = {name for names in arrays.AXES.values() for name in names}
    unknown = [dim for dim in dims if dim not in known]
    if unknown and len(dims) == 3:
        raise InvalidArgumentError(dims_message(dims, unknown[0]))
    y, x = dims if unknown else (dims[axis] for axis in arrays.axes_by_name(dims)[1:])
    if not data.sizes[y] * data.sizes[x]:
        raise InvalidArgumentError(f"to_geotiff: data is empty: height={data.sizes[y]}, width={data.sizes[x]}")
    if not data.size:
        raise InvalidArgumentError(f"to_geotiff: data has no bands: 0 bands in shape {data.shape}")
    return y, x


def dims_message(dims: tuple[str, ...], unknown: str) -> str:
    place = "leading" if dims[0] == unknown else "trailing"
    kind = "temporal" if unknown.lower() in TEMPORAL else "non-band"
    what = f"{kind} {place} dim" if kind == "temporal" or place == "trailing" else "ambiguous dims"
    return (f"to_geotiff: {dims} has {what} {unknown!r}: it takes (y, x), (band, y, x) or (y, x, band). Rename or "
            f"transpose it, write one part at a time, as data.isel({unknown}=0), or give a raw ndarray (y, x, band)")
