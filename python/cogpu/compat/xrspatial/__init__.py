"""For users of xarray-spatial 0.10: its open_geotiff and to_geotiff, over our engine.

A program switches by an import. The shapes are those of xarray-spatial, (y, x) and (y, x, band) with bands counted from
0, and so are the names and defaults of parameters, the deprecated aliases (name, mask_nodata, mask_and_scale), the
attributes, the classes of errors for the same mistakes, and the accessor `.xrs` (open_geotiff, to_geotiff, plot), which
is registered where xarray-spatial has not registered its own. Texts of messages are ours.

What differs on purpose:

- Orientation (TIFF tag 274): rows and columns come as they are stored, as GDAL reads them. xarray-spatial turns them.
- MinIsWhite: samples come and go as they are stored, as in GDAL. xarray-spatial inverts them, and refuses signed ones.
- Predictor 3 with several bands is libtiff's; an overview has the transform that follows from the full resolution.
- allow_experimental_codecs and allow_internal_only_jpeg are accepted and have no effect: LERC and JPEG files are
  interchangeable here, and so are metadata and extra tags.
- More is written: rotated grids (unless drop_rotation=True), COGs to file-like objects, overview factors that are no
  powers of two, complex samples, WebP and LZMA; a COG has GDAL's ghost area.
- A file that can be read in spite of a damaged optional tag or a table of blocks that is too short is read.
- gdal_metadata_xml is parsed and written anew; a text that is not well-formed is an error. extra_tags that the writer
  makes itself (photometric interpretation, extra samples) are ignored.
- XRSPATIAL_... environment variables have no effect, but for those of VRT and XRSPATIAL_GEOTIFF_STRICT with VRT:
  cogpu.configure has the settings of the network.
- read_vrt and write_vrt, which xarray-spatial 0.10 has no more by a public name, are here, without the deprecated
  keywords vrt_path and crs_wkt. A chunked read warns of damaged sources when they are read, not before. A band that is
  no integer is a TypeError.
- max_pixels is checked when a chunked array is made, not when it is computed. A packed band keeps its scale as an item
  of the band, where GDAL looks for it. s3:// is written to.
- max_cloud_bytes counts only where it is given: of an object in a store the blocks are read, not all of it.

What is missing: the codecs lz4 and jpeg2000 for writing; colour ramps and tables of classes beside a file
(color_ramp, category_names, category_colors); overviews beside a URL; reprojection by the accessor;
allow_unparseable_crs for writing; write_vrt does not ask PROJ whether it knows the CRS. What we do not have is
refused by name, or left out where it is an attribute.
"""

from .contract import (GEOREF_STATUS_CRS_ONLY, GEOREF_STATUS_FULL, GEOREF_STATUS_NONE, GEOREF_STATUS_ROTATED_DROPPED,
                       GEOREF_STATUS_TRANSFORM_ONLY, GEOREF_STATUS_VALUES, SUPPORTED_FEATURES)
from .errors import (CloudSizeLimitError, ConflictingCRSError, ConflictingNodataError, DegeneratePixelSizeError,
                     DuplicateIFDTagError, GeoTIFFAmbiguousMetadataError, GeoTIFFFallbackWarning,
                     InconsistentGeoKeysError, InvalidCRSCodeError, InvalidIntegerNodataError,
                     MalformedScaleOffsetError, MixedBandMetadataError, NonRepresentableEPSGCRSError,
                     NonUniformCoordsError, PixelSafetyLimitError, RemoteStableSourcesOnlyError, RotatedTransformError,
                     UnknownCRSModelTypeError, UnparseableCRSError, UnsafeURLError, UnsupportedGeoTIFFFeatureError,
                     VRTStableSourcesOnlyError, VRTUnsupportedError)
from .accessors import plot_geotiff, register
from .reading import open_geotiff, read_vrt
from .vrt_writing import write_vrt
from .writing import to_geotiff

__all__ = ["CloudSizeLimitError", "ConflictingCRSError", "ConflictingNodataError", "DegeneratePixelSizeError",
           "DuplicateIFDTagError", "GEOREF_STATUS_CRS_ONLY", "GEOREF_STATUS_FULL", "GEOREF_STATUS_NONE",
           "GEOREF_STATUS_ROTATED_DROPPED", "GEOREF_STATUS_TRANSFORM_ONLY", "GEOREF_STATUS_VALUES",
           "GeoTIFFAmbiguousMetadataError", "GeoTIFFFallbackWarning", "InconsistentGeoKeysError", "InvalidCRSCodeError",
           "InvalidIntegerNodataError", "MalformedScaleOffsetError", "MixedBandMetadataError",
           "NonRepresentableEPSGCRSError", "NonUniformCoordsError", "PixelSafetyLimitError",
           "RemoteStableSourcesOnlyError", "RotatedTransformError", "SUPPORTED_FEATURES", "UnknownCRSModelTypeError",
           "UnparseableCRSError", "UnsafeURLError", "UnsupportedGeoTIFFFeatureError", "VRTStableSourcesOnlyError",
           "VRTUnsupportedError", "open_geotiff", "plot_geotiff", "read_vrt", "to_geotiff", "write_vrt"]

register()
