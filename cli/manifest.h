/*
 * The list of files that `convert --to DIR` has finished, in DIR/cogpu-manifest.tsv. A line is
 * appended and flushed to the disk after each file, so that a killed run loses none of them.
 *
 * Lines are: name of the output, its bytes, state of the input (size and time of change, or the
 * version of a URL), hash of the options, the input; with tabs between, and %XX for characters that
 * would be mistaken. Of several lines of one output the last counts; lines cut off by a crash are
 * skipped.
 */
#ifndef COGPU_CLI_MANIFEST_H
#define COGPU_CLI_MANIFEST_H

#include "cogpu.h"

#include <stdbool.h>

typedef struct cogpu_manifest cogpu_manifest;

typedef struct cogpu_manifest_entry {
    const char *output, *input, *state;
    uint64_t bytes, options;
} cogpu_manifest_entry;

/* Reads the old lines where `resume` is set. */
cogpu_status cogpu_manifest_open(const char *folder, bool resume, cogpu_manifest **manifest,
                                 cogpu_error *error);
void cogpu_manifest_close(cogpu_manifest *manifest);

/* Whether the output was made of this input, in this state, with these options, and had so many
 * bytes. Not beside cogpu_manifest_add. */
bool cogpu_manifest_has(const cogpu_manifest *manifest, const cogpu_manifest_entry *entry);

/* Appends a line. Any thread. */
cogpu_status cogpu_manifest_add(cogpu_manifest *manifest, const cogpu_manifest_entry *entry,
                                cogpu_error *error);

#endif
