/*
 * A selection read ahead, for a writer: while that works on one chunk, a thread reads the next.
 * Memory is that of two chunks, on the selection's device; of one if the chunks of a mosaic are
 * large.
 *
 *     TRY(cogpu_ahead_open(&selection, &derivation, &profile, &ahead, error));
 *     for (;;) {
 *         TRY(cogpu_ahead_next(ahead, &chunk, error));
 *         if (!chunk) break;
 *         ... chunk->rows, and chunk->mask, until the next call ...
 *     }
 *     cogpu_ahead_close(ahead);
 */
#ifndef COGPU_CLI_AHEAD_H
#define COGPU_CLI_AHEAD_H

#include "derive.h"

typedef struct cogpu_ahead cogpu_ahead;

typedef struct cogpu_ahead_chunk {
    cogpu_raster rows; /* all bands */
    cogpu_raster mask; /* one band of COGPU_TYPE_U8; its data is NULL where none was asked for */
} cogpu_ahead_chunk;

/* By the context of the selection's request, which a device needs and the writer shares. The
 * profile says whether there is a mask, and how high blocks are. The derivation is the reader's
 * until cogpu_ahead_close. */
cogpu_status cogpu_ahead_open(const cogpu_selection *selection, cogpu_derivation *derivation,
                              const cogpu_profile *profile, cogpu_ahead **ahead,
                              cogpu_error *error);

/* The next chunk from the top; NULL at the end. What was begun on the default stream of a GPU with
 * the one before is waited for by the read that comes in its place. */
cogpu_status cogpu_ahead_next(cogpu_ahead *ahead, const cogpu_ahead_chunk **chunk,
                              cogpu_error *error);

/* Waits for the thread. NULL is allowed. */
void cogpu_ahead_close(cogpu_ahead *ahead);

/* Bad blocks that were filled, when all is read. */
const cogpu_result *cogpu_ahead_result(const cogpu_ahead *ahead);

#endif
