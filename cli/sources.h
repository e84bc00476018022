/* The sources of a mosaic or VRT, for reports. Other files have none. */
#ifndef COGPU_CLI_SOURCES_H
#define COGPU_CLI_SOURCES_H

#include "cogpu.h"
#include "json.h"

typedef struct cogpu_source_counts {
    uint64_t all, reprojected, copied, skipped;
} cogpu_source_counts;

bool cogpu_sources_exist(const cogpu_file *file);
cogpu_source_counts cogpu_sources_count(const cogpu_file *file);

/* "sources" and "skipped_sources" of a mosaic, as members of the open object. */
void cogpu_sources_count_json(const cogpu_file *file, cogpu_json *json);

/* "sources": a list with each source; null for a file that is not a mosaic. */
void cogpu_sources_json(const cogpu_file *file, cogpu_json *json);

/* A line for each source, on stdout. */
void cogpu_sources_print(const cogpu_file *file);

/* A note for each source that was left out, up to a few. */
void cogpu_sources_note_skipped(const cogpu_file *file);

#endif
