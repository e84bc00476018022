/*
 * A selection in pieces that fit in memory: runs of whole rows, of one band or of all of them.
 *
 *     TRY(cogpu_chunk_open(&selection, CHUNK_ANY_ORDER, &chunk, error));
 *     while (cogpu_chunk_next(&chunk)) {
 *         TRY(cogpu_chunk_read(&chunk, &selection, data, NULL, error));
 *         ... chunk.bands bands from chunk.band on, chunk.rows rows from chunk.row on ...
 *     }
 */
#ifndef COGPU_CLI_CHUNK_H
#define COGPU_CLI_CHUNK_H

#include "selection.h"

typedef enum cogpu_chunk_order {
    CHUNK_ANY_ORDER = 0, /* whatever is decoded fastest */
    CHUNK_BY_BAND,       /* a band ends before the next one begins */
    CHUNK_CHUNKY         /* all bands at once, the samples of a pixel side by side */
} cogpu_chunk_order;

typedef struct cogpu_chunk {
    bool chunky;                     /* the samples of a pixel lie side by side */
    uint32_t all_bands, top, height; /* of the selection */
    uint32_t edge; /* chunks end at multiples of this row of the level, where they can */
    uint32_t bands_at_once, rows_at_once;
    size_t bytes;   /* of the largest chunk */
    bool is_stream; /* chunks are in device memory of the selection's device, else in host memory */

    uint32_t band, bands; /* of this chunk: index among the selected bands */
    uint32_t row, rows;   /* from the top of the window */
} cogpu_chunk;

cogpu_status cogpu_chunk_open(const cogpu_selection *selection, cogpu_chunk_order order,
                              cogpu_chunk *chunk, cogpu_error *error);

/* Chunks for a writer that works on one while the next is read: of all bands, side by side or not
 * as the file has them, soon at hand, and on the selection's device, by the context of its request.
 * The blocks that the writer makes of them are so high. */
cogpu_status cogpu_chunk_open_stream(const cogpu_selection *selection, uint32_t written_height,
                                     cogpu_chunk *chunk, cogpu_error *error);

/* Moves to the next chunk, or at first to the first; false at the end. */
bool cogpu_chunk_next(cogpu_chunk *chunk);

/* The layout of the chunk in `data`: host memory, or device memory for a stream. */
cogpu_raster cogpu_chunk_raster(const cogpu_chunk *chunk, const cogpu_selection *selection,
                                void *data);

/* Adds what a read of a part says to that of the whole. */
void cogpu_chunk_count(const cogpu_result *part, cogpu_result *result);

/* Reads the chunk's part of the selection, which may be another one of the same shape. What it says
 * is added to *result. */
cogpu_status cogpu_chunk_read(const cogpu_chunk *chunk, const cogpu_selection *selection,
                              void *data, cogpu_result *result, cogpu_error *error);

#endif
