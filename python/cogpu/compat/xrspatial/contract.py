"""Constants that xarray-spatial publishes, and the mark of parameters that were not given."""

from typing import Any

CONTRACT = 5  # version of the attributes, as xarray-spatial counts them
GEOREF_STATUS_FULL = "full"
GEOREF_STATUS_TRANSFORM_ONLY = "transform_only"
GEOREF_STATUS_CRS_ONLY = "crs_only"
GEOREF_STATUS_NONE = "none"
GEOREF_STATUS_ROTATED_DROPPED = "rotated_dropped"
GEOREF_STATUS_VALUES = (GEOREF_STATUS_FULL, GEOREF_STATUS_TRANSFORM_ONLY, GEOREF_STATUS_CRS_ONLY, GEOREF_STATUS_NONE,
                        GEOREF_STATUS_ROTATED_DROPPED)
CODECS = ("none", "packbits", "lzw", "deflate", "zstd", "jpeg", "lerc")
READS = ("local_file", "local_cog", "windowed", "dask", "sidecar_ovr", "allow_rotated", "gpu", "unpack", "http",
         "http_cog")
WRITES = ("local_file", "cog", "overviews", "bigtiff", "bigtiff_cog", "gpu", "pack", "extra_tags", "gdal_metadata_xml")
# Features by the names of xarray-spatial; those that are not supported are absent.
SUPPORTED_FEATURES: dict[str, str] = {f"{kind}.{name}": "stable" for kind, names in (
    ("codec", CODECS), ("reader", READS), ("writer", WRITES)) for name in names}


class NotGiven:
    """The default of parameters for which None is a value of its own."""

    def __repr__(self) -> str:
        return "<not given>"


NOT_GIVEN: Any = NotGiven()
