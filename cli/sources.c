/*
 * Reports sources. Their paths may be URLs, of which secrets are not shown.
 */
#include "sources.h"

#include "name.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>

static bool get_source(const cogpu_file *file, uint64_t index, cogpu_source_description *source) {
    *source = (cogpu_source_description)COGPU_SOURCE_DESCRIPTION_INIT;
    return cogpu_source_info(file, index, source, NULL) == COGPU_OK;
}

bool cogpu_sources_exist(const cogpu_file *file) {
    cogpu_source_description source;
    return get_source(file, 0, &source);
}

cogpu_source_counts cogpu_sources_count(const cogpu_file *file) {
    cogpu_source_counts counts = {0};
    cogpu_source_description source;
    for (; get_source(file, counts.all, &source); counts.all++) {
        bool is_skipped = source.status != COGPU_OK;
        counts.skipped += is_skipped;
        counts.reprojected += !is_skipped && source.is_reprojected;
        counts.copied += !is_skipped && source.is_copied;
    }
    return counts;
}

void cogpu_sources_count_json(const cogpu_file *file, cogpu_json *json) {
    cogpu_source_counts counts = cogpu_sources_count(file);
    if (counts.all == 0)
        return;
    cogpu_json_unsigned(json, "sources", counts.all - counts.skipped);
    cogpu_json_unsigned(json, "skipped_sources", counts.skipped);
}

static void add_source(cogpu_json *json, const cogpu_source_description *source) {
    char *shown = source->path ? cogpu_name_shown(source->path) : NULL;
    cogpu_json_open(json, NULL, '{');
    cogpu_json_text(json, "path", shown);
    cogpu_json_text(json, "status", cogpu_status_name(source->status));
    cogpu_json_text(json, "message", source->message);
    cogpu_json_boolean(json, "reprojected", source->is_reprojected);
    cogpu_json_boolean(json, "copied", source->is_copied);
    cogpu_json_open(json, "window", '-');
    for (int i = 0; i < 4; i++)
        cogpu_json_integer(json, NULL, source->window[i]);
    cogpu_json_close(json);
    cogpu_json_close(json);
    free(shown);
}

void cogpu_sources_json(const cogpu_file *file, cogpu_json *json) {
    cogpu_source_description source;
    if (!cogpu_sources_exist(file)) {
        cogpu_json_null(json, "sources");
        return;
    }
    cogpu_json_open(json, "sources", '[');
    for (uint64_t i = 0; get_source(file, i, &source); i++)
        add_source(json, &source);
    cogpu_json_close(json);
}

static void print_source(const cogpu_source_description *source) {
    const int64_t *window = source->window;
    char *shown = source->path ? cogpu_name_shown(source->path) : NULL;
    printf("  ");
    cogpu_text_print(stdout, shown ? shown : "(open file)", SIZE_MAX);
    if (source->status != COGPU_OK) {
        printf(": left out: ");
        cogpu_text_print(stdout, source->message ? source->message : "", SIZE_MAX);
    } else {
        printf(": columns %" PRId64 " to %" PRId64 ", rows %" PRId64 " to %" PRId64 "%s", window[0],
               window[2], window[1], window[3],
               source->is_reprojected ? ", reprojected"
               : source->is_copied    ? ", copied"
                                      : "");
    }
    putchar('\n');
    free(shown);
}

void cogpu_sources_print(const cogpu_file *file) {
    cogpu_source_description source;
    for (uint64_t i = 0; get_source(file, i, &source); i++)
        print_source(&source);
}

void cogpu_sources_note_skipped(const cogpu_file *file) {
    enum { SHOWN = 16 };
    cogpu_source_description source;
    uint64_t count = 0;
    for (uint64_t i = 0; get_source(file, i, &source); i++) {
        if (source.status == COGPU_OK || ++count > SHOWN)
            continue;
        char *shown = source.path ? cogpu_name_shown(source.path) : NULL;
        cogpu_report_note(shown, "left out: %s", source.message ? source.message : "");
        free(shown);
    }
    if (count > SHOWN)
        cogpu_report_note(NULL, "%" PRIu64 " more inputs were left out", count - SHOWN);
}
