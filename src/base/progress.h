/*
 * Progress of one call: counts blocks, reports them to the caller's cogpu_progress function, and
 * remembers whether that cancelled the call. Any thread of the call may report; the function is
 * called by one thread at a time.
 *
 * A NULL meter, and one without a function, reports nothing and is never cancelled.
 */
#ifndef COGPU_BASE_PROGRESS_H
#define COGPU_BASE_PROGRESS_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>

/* How often a call that waits polls for cancellation. */
enum { COGPU_POLL_MS = 100 };

typedef struct cogpu_meter {
    cogpu_progress report;
    void *user;
    pthread_mutex_t lock; /* of the rest; held while the function runs */
    uint64_t done, total;
    bool is_complete;  /* the function was called with done == total */
    double polled_at;  /* time of the last call */
    bool is_cancelled; /* atomic: read without the lock */
} cogpu_meter;

/* A zeroed meter needs no open and may be closed. */
void cogpu_meter_open(cogpu_meter *meter, cogpu_progress report, void *user, uint64_t total);
void cogpu_meter_close(cogpu_meter *meter);

bool cogpu_meter_is_cancelled(const cogpu_meter *meter);

/* Each returns false if the call is cancelled; then the function is not called again.
 *
 * add: so many more blocks are done. move_to: so many are done, unless there were more before.
 * poll: calls the function if the last call was COGPU_POLL_MS ago. complete: calls it with
 * done == total, unless that was reported before. */
bool cogpu_meter_add(cogpu_meter *meter, uint64_t blocks);
bool cogpu_meter_move_to(cogpu_meter *meter, uint64_t done);
bool cogpu_meter_poll(cogpu_meter *meter);
bool cogpu_meter_complete(cogpu_meter *meter);

/* CANCELLED, by the caller's progress function. */
cogpu_status cogpu_fail_cancelled(cogpu_error *error);

/* A nested call that counts as the blocks from `first` to `end` of the meter. The share is the
 * `user` of its progress function. */
typedef struct cogpu_share {
    cogpu_meter *meter;
    uint64_t first, end;
} cogpu_share;
cogpu_progress cogpu_share_progress(const cogpu_share *share);
/* The share of `rows` rows from `row` on, if `height` rows count as the blocks `first` to `end`. */
cogpu_share cogpu_share_of_rows(cogpu_meter *meter, uint64_t first, uint64_t end, uint32_t row,
                                uint32_t rows, uint32_t height);

#endif
