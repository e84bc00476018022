/*
 * What a profile says of an image, as tags: georeference, coordinate system, metadata, nodata,
 * colours, extra tags. Each function checks its part of the profile first, and refuses what cannot
 * be written with ARGUMENT and words that say what to do.
 */
#ifndef COGPU_IMAGE_WRITE_TAGS_H
#define COGPU_IMAGE_WRITE_TAGS_H

#include "image/image.h"
#include "tiff/write.h"

/* write_georef.c: transform (scale and tiepoint, or a matrix where it is rotated or flipped),
 * GCPs, RPC and GeoKeys. */
cogpu_status cogpu_write_georef_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                     cogpu_tag_list *list, cogpu_error *error);

/* write_crs.c (write_crs_absent.c without PROJ, which knows EPSG codes alone): a system in
 * words as keys, ascending. UNSUPPORTED for a system that keys cannot say. */
cogpu_status cogpu_write_crs_keys(const char *crs, cogpu_arena *arena, const cogpu_geokey **keys,
                                  uint32_t *count, cogpu_error *error);

/* write_metadata.c: GDAL_METADATA, nodata, description and extra tags. */
cogpu_status cogpu_write_metadata_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                       cogpu_tag_list *list, cogpu_error *error);

/* write_colours.c: photometric, palette, extra samples; of every level's directory. Also what
 * the codec needs of it. */
cogpu_status cogpu_write_color_tags(const cogpu_profile *profile, uint32_t compression,
                                    cogpu_arena *arena, cogpu_tag_list *list, uint32_t *photometric,
                                    cogpu_error *error);

#endif
