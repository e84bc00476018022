"""For users of xarray-spatial 0.10: its open_geotiff and to_geotiff, over our engine."""

from .contract import (GEOREF_STATUS_CRS_ONLY, GEOREF_STATUS_FULL, GEOREF_STATUS_NONE, GEOREF_STATUS_ROTATED_DROPPED,
                       GEOREF_STATUS_TRANSFORM_ONLY, GEOREF_STATUS_VALUES, SUPPORTED_FEATURES)
from .errors import (CloudSizeLimitError, ConflictingCRSError, ConflictingNodataError, DegeneratePixelSizeError,
                     DuplicateIFDTagError, GeoTIFFAmbiguousMetadataError, GeoTIFFFallbackWarning,
                     InconsistentGeoKeysError, InvalidCRSCodeError, InvalidIntegerNodataError,
                     MalformedScaleOffsetError, MixedBandMetadataError, NonRepresentableEPSGCRSError,
                     NonUniformCoordsError, PixelSafetyLimitError, RemoteStableSourcesOnlyError, RotatedTransformError,
                     UnknownCRSModelTypeError, UnparseableCRSError, UnsafeURLError, UnsupportedGeoTIFFFeatureError,
                     VRTStableSourcesOnlyError, VRTUnsupportedError)
from .reading import open_geotiff
from .writing import to_geotiff
