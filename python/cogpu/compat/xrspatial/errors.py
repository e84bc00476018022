"""The exception classes of xarray-spatial, by their names and bases. Each is also one of ours (cogpu.errors), so that a
program may catch either."""

from ...errors import CorruptError, Error, InvalidArgumentError, LimitExceededError, UnsupportedError


class GeoTIFFFallbackWarning(UserWarning):
    """A parameter has no effect here."""


class GeoTIFFAmbiguousMetadataError(Error, ValueError):
    """The metadata of a file or an array contradict each other, or cannot be stored."""


class InvalidCRSCodeError(GeoTIFFAmbiguousMetadataError):
    """A code that PROJ does not have."""


class UnparseableCRSError(GeoTIFFAmbiguousMetadataError):
    """A text that is neither a code, WKT nor a PROJ string."""


class RotatedTransformError(GeoTIFFAmbiguousMetadataError):
    """The grid is rotated or sheared, and allow_rotated is False."""


class DegeneratePixelSizeError(GeoTIFFAmbiguousMetadataError):
    """The file states pixels of size 0, or of a size that is not finite."""


class NonUniformCoordsError(GeoTIFFAmbiguousMetadataError):
    """Coordinates that are not evenly spaced."""


class MixedBandMetadataError(GeoTIFFAmbiguousMetadataError):
    """Bands that state different scales or offsets, and are read together."""


class ConflictingCRSError(GeoTIFFAmbiguousMetadataError):
    """attrs["crs"] and attrs["crs_wkt"] are different systems."""


class ConflictingNodataError(GeoTIFFAmbiguousMetadataError):
    """The attributes state several nodata values."""


class VRTUnsupportedError(GeoTIFFAmbiguousMetadataError):
    """VRT is neither read nor written."""


class InconsistentGeoKeysError(GeoTIFFAmbiguousMetadataError):
    """The GeoKeys state one kind of coordinate system and describe another."""


class InvalidIntegerNodataError(GeoTIFFAmbiguousMetadataError):
    """NaN, infinity or a fraction as the nodata of integers."""


class MalformedScaleOffsetError(GeoTIFFAmbiguousMetadataError):
    """A SCALE or OFFSET that is no number, or that no value can be unpacked with."""


class VRTStableSourcesOnlyError(GeoTIFFAmbiguousMetadataError):
    """A VRT with stable_only=True."""


class RemoteStableSourcesOnlyError(GeoTIFFAmbiguousMetadataError):
    """A URL with stable_only=True."""


class UnknownCRSModelTypeError(GeoTIFFAmbiguousMetadataError):
    """Never raised here: all model types that PROJ has are known."""


class NonRepresentableEPSGCRSError(GeoTIFFAmbiguousMetadataError):
    """A coordinate system that GeoKeys cannot describe, such as a vertical one."""


class DuplicateIFDTagError(CorruptError):
    """A tag that stands twice in a directory, with different values."""


class UnsupportedGeoTIFFFeatureError(UnsupportedError):
    """Valid, but not supported."""


class PixelSafetyLimitError(LimitExceededError):
    """More pixels than max_pixels."""


class CloudSizeLimitError(LimitExceededError):
    """An object that is larger than max_cloud_bytes."""


class UnsafeURLError(InvalidArgumentError):
    """A URL whose host is not public."""


class BandIndexError(InvalidArgumentError, IndexError):
    """A band that the file does not have; xarray-spatial raises IndexError."""
