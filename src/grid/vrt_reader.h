/* What the parts of the VRT parser share. */
#ifndef COGPU_GRID_VRT_READER_H
#define COGPU_GRID_VRT_READER_H

#include "grid/vrt.h"
#include "image/pam_elements.h"

/* GDAL's limit of VRTs inside VRTs. */
enum { COGPU_VRT_DEPTH_MAX = 32 };

/* State of one document, VRTs inside it included. */
typedef struct cogpu_vrt_document {
    const char *start;
    const char *counted; /* lines are counted up to here */
    uint32_t line;       /* of `counted` */
    const cogpu_limits *limits;
    cogpu_arena *arena;
    cogpu_error *error;
    uint64_t sources; /* so far */
    char *path;       /* scratch memory for the path of a source */
    size_t path_capacity;
} cogpu_vrt_document;

/* State of one VRTDataset. */
typedef struct cogpu_vrt_reader {
    cogpu_vrt_document *document;
    cogpu_arena *arena;
    cogpu_error *error;
    cogpu_vrt *vrt;
    cogpu_pam_elements elements;
    uint32_t depth;
} cogpu_vrt_reader;

/* Sources of a list while they are collected and grouped. */
typedef struct cogpu_vrt_source_list {
    cogpu_growing sources; /* of cogpu_vrt_source */
    cogpu_growing groups;  /* of struct source_group, as many */
    uint32_t *table;       /* hash table of groups, numbered from 1 */
    uint32_t table_size;
    uint32_t band;                 /* target band of the sources that come */
    uint32_t least;                /* sources of that band may join groups from this number on */
    const cogpu_sample_rule *rule; /* the last one */
} cogpu_vrt_source_list;

/* ---- vrt_values.c ---- */

/* "line 12, <SrcRect>: ..." */
cogpu_status cogpu_vrt_fail(cogpu_vrt_reader *in, const xml_element *at, cogpu_status status,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));
uint32_t cogpu_vrt_line(cogpu_vrt_document *document, const char *at);

/* Text of an element or attribute, without blanks at both ends. */
cogpu_status cogpu_vrt_text(cogpu_vrt_reader *in, xml_slice text, const char **copy);
/* Text of the child of that name; NULL without one or if it is empty. */
cogpu_status cogpu_vrt_child_text(cogpu_vrt_reader *in, const xml_element *parent, const char *name,
                                  const char **copy);
/* Numbers, which may be NaN or infinite; `what` is for the message. */
cogpu_status cogpu_vrt_number(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                              const char *what, double *value);
/* The number of the child of that name; *value stays without one. */
cogpu_status cogpu_vrt_child_number(cogpu_vrt_reader *in, const xml_element *parent,
                                    const char *name, double *value, bool *is_there);
/* A whole number from `least` to `most`. */
cogpu_status cogpu_vrt_whole(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                             const char *what, uint32_t least, uint32_t most, uint32_t *value);
/* As GDAL reads booleans: everything but no, false, off and 0. */
bool cogpu_vrt_bool(xml_slice text, bool otherwise);
/* A sample type by GDAL's name. */
cogpu_status cogpu_vrt_type(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                            cogpu_type *type);
/* Resampling by the name of RasterIO; DEFAULT for an empty text. */
cogpu_status cogpu_vrt_resampling(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                                  cogpu_resampling *method);
cogpu_status cogpu_vrt_refuse_open_options(cogpu_vrt_reader *in, const xml_element *parent);

/* ---- vrt_parse.c ---- */

cogpu_status cogpu_vrt_read_nested(cogpu_vrt_reader *outer, const xml_element *element,
                                   const cogpu_vrt **vrt);

/* ---- vrt_source.c ---- */

/* Begins the sources of a band. */
void cogpu_vrt_begin_band(cogpu_vrt_source_list *list, uint32_t band);
/* Reads the element if it is a source. */
cogpu_status cogpu_vrt_read_source(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                                   const xml_element *element, bool *is_source);
cogpu_status cogpu_vrt_finish_sources(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                                      cogpu_vrt_source_array *sources);
/* "3", "mask" or "mask,3"; 1 if there is no element. */
cogpu_status cogpu_vrt_read_source_band(cogpu_vrt_reader *in, const xml_element *parent,
                                        uint32_t *band, bool *of_mask);
/* SourceFilename. */
cogpu_status cogpu_vrt_read_file(cogpu_vrt_reader *in, const xml_element *parent, const char *child,
                                 cogpu_vrt_file *file);

/* ---- vrt_warped.c ---- */

cogpu_status cogpu_vrt_read_warp(cogpu_vrt_reader *in, const xml_element *options,
                                 const xml_element *dataset);

#endif
