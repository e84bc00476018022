/*
 * A selection in pieces that fit in memory: runs of whole rows, of one band or of all of them.
 *
 *     TRY(cogpu_swath_open(&selection, SWATH_ANY_ORDER, &swath, error));
 *     while (cogpu_swath_next(&swath)) {
 *         TRY(cogpu_swath_read(&swath, &selection, data, NULL, error));
 *         ... swath.bands bands from swath.band on, swath.rows rows from swath.row on ...
 *     }
 *     cogpu_swath_close(&swath, &selection);
 */
#ifndef COGPU_CLI_SWATH_H
#define COGPU_CLI_SWATH_H

#include "selection.h"

typedef enum cogpu_swath_order {
    SWATH_ANY_ORDER = 0, /* whatever is decoded fastest */
    SWATH_BY_BAND,       /* a band ends before the next one begins */
    SWATH_CHUNKY         /* all bands at once, the samples of a pixel side by side */
} cogpu_swath_order;

typedef struct cogpu_swath {
    bool chunky;                     /* the samples of a pixel lie side by side */
    uint32_t all_bands, top, height; /* of the selection */
    uint32_t edge; /* swaths end at multiples of this row of the level, where they can */
    uint32_t bands_at_once, rows_at_once;
    size_t bytes;   /* room for the largest swath */
    bool is_stream; /* swaths lie on the selection's device, in memory of the caller's; else: */
    void *device_memory; /* for a swath; or NULL */

    uint32_t band, bands; /* of this swath: index among the selected bands */
    uint32_t row, rows;   /* from the top of the window */
} cogpu_swath;

cogpu_status cogpu_swath_open(const cogpu_selection *selection, cogpu_swath_order order,
                              cogpu_swath *swath, cogpu_error *error);

/* Swaths for a writer that works on one while the next is read: of all bands, side by side or not
 * as the file has them, soon at hand, and on the selection's device, by the context of its request.
 * The blocks that the writer makes of them are so high. */
cogpu_status cogpu_swath_open_stream(const cogpu_selection *selection, uint32_t written_height,
                                     cogpu_swath *swath, cogpu_error *error);

/* Also after a failure of cogpu_swath_open. */
void cogpu_swath_close(cogpu_swath *swath, const cogpu_selection *selection);

/* Moves to the next swath, or at first to the first; false at the end. */
bool cogpu_swath_next(cogpu_swath *swath);

/* How the swath lies in `data`, which is memory of the host, or of the device for a stream. */
cogpu_raster cogpu_swath_raster(const cogpu_swath *swath, const cogpu_selection *selection,
                                void *data);

/* Adds what a read of a part says to that of the whole. */
void cogpu_swath_count(const cogpu_result *part, cogpu_result *result);

/* Reads the swath's part of the selection, which may be another one of the same shape. What it says
 * is added to *result. */
cogpu_status cogpu_swath_read(const cogpu_swath *swath, const cogpu_selection *selection,
                              void *data, cogpu_result *result, cogpu_error *error);

#endif
