/*
 * Elements that GDAL's PAM and VRT share: metadata, ground control points, nodata, colours,
 * categories, descriptions. Names match in any case.
 */
#ifndef COGPU_IMAGE_PAM_ELEMENTS_H
#define COGPU_IMAGE_PAM_ELEMENTS_H

#include "base/growing.h"
#include "base/xml.h"
#include "image/image.h"

/* What is read so far. */
typedef struct cogpu_pam_elements {
    cogpu_arena *arena;
    cogpu_error *error;
    cogpu_growing items, gcps; /* of cogpu_metadata_item, cogpu_gcp */
} cogpu_pam_elements;

/* Elements of a band that are items with a role in GDAL_METADATA. */
typedef enum cogpu_pam_role {
    PAM_DESCRIPTION = 0,
    PAM_UNIT,
    PAM_COLOUR,
    PAM_SCALE,
    PAM_OFFSET,
    PAM_ROLES
} cogpu_pam_role;

/* Reads the children of an element. */
xml_reader cogpu_pam_content(const xml_element *element);
/* The first child of that name, in any case. */
bool cogpu_pam_child(xml_slice content, const char *name, xml_element *child);
/* An attribute of that name, in any case; empty where there is none. */
xml_slice cogpu_pam_attribute(xml_slice attributes, const char *name);
/* Text without blanks before it, references replaced. */
cogpu_status cogpu_pam_text(cogpu_arena *arena, xml_slice content, const char **text,
                            cogpu_error *error);
/* Numbers at the start of short texts; false where there is none or it is not finite. */
bool cogpu_pam_number(xml_slice text, double *value);
/* A geotransform: six numbers with commas between them. */
bool cogpu_pam_six_numbers(xml_slice text, double numbers[6]);

cogpu_status cogpu_pam_add_item(cogpu_pam_elements *in, cogpu_metadata_item item);
cogpu_status cogpu_pam_add_role(cogpu_pam_elements *in, uint32_t band, cogpu_pam_role role,
                                const char *value);

/* <Metadata> of a band, or of the image: band 0. Items of the image's IMAGE_STRUCTURE are left out.
 */
cogpu_status cogpu_pam_metadata(cogpu_pam_elements *in, const xml_element *metadata, uint32_t band);
/* <GCPList>. *srs stays where it states none. */
cogpu_status cogpu_pam_gcps(cogpu_pam_elements *in, const xml_element *list, const char **srs);
/* <NoDataValue> */
cogpu_status cogpu_pam_nodata(cogpu_pam_elements *in, const xml_element *element,
                              const char **text);
/* <ColorTable>: planes of red, green, blue and alpha, 0 to 65535. NULL without entries. */
cogpu_status cogpu_pam_palette(cogpu_pam_elements *in, const xml_element *element,
                               const uint16_t **palette, uint32_t *entries);
/* <CategoryNames> */
cogpu_status cogpu_pam_categories(cogpu_pam_elements *in, const xml_element *element,
                                  uint32_t band);
/* Description, unit, colour, scale or offset of a band: an item, and values[role]. */
cogpu_status cogpu_pam_role_element(cogpu_pam_elements *in, const xml_element *child, uint32_t band,
                                    const char *values[PAM_ROLES], bool *is_role);

#endif
