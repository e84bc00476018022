/* See progress.h. */
#include "base/progress.h"

#include "base/clock.h"

void cogpu_meter_open(cogpu_meter *meter, cogpu_progress report, void *user, uint64_t total) {
    meter->report = report;
    meter->user = user;
    meter->done = 0;
    meter->total = total;
    meter->is_complete = false;
    meter->polled_at = 0;
    meter->is_cancelled = false;
    if (report)
        pthread_mutex_init(&meter->lock, NULL);
}

void cogpu_meter_close(cogpu_meter *meter) {
    if (meter->report)
        pthread_mutex_destroy(&meter->lock);
    meter->report = NULL;
}

bool cogpu_meter_is_cancelled(const cogpu_meter *meter) {
    return meter && meter->report && __atomic_load_n(&meter->is_cancelled, __ATOMIC_RELAXED);
}

/* Under the lock. */
static void call_report(cogpu_meter *meter) {
    if (cogpu_meter_is_cancelled(meter))
        return;
    if (meter->report(meter->user, meter->done, meter->total))
        __atomic_store_n(&meter->is_cancelled, true, __ATOMIC_RELAXED);
    meter->is_complete = meter->done == meter->total;
    meter->polled_at = clock_now();
}

static bool report_and_unlock(cogpu_meter *meter, uint64_t done) {
    meter->done = done < meter->total ? done : meter->total;
    call_report(meter);
    pthread_mutex_unlock(&meter->lock);
    return !cogpu_meter_is_cancelled(meter);
}

bool cogpu_meter_add(cogpu_meter *meter, uint64_t blocks) {
    if (!meter || !meter->report)
        return true;
    pthread_mutex_lock(&meter->lock);
    return report_and_unlock(meter, meter->done + blocks);
}

static bool is_time_to_poll(const cogpu_meter *meter) {
    return clock_now() - meter->polled_at >= COGPU_POLL_MS * 1e-3;
}

bool cogpu_meter_move_to(cogpu_meter *meter, uint64_t done) {
    if (!meter || !meter->report)
        return true;
    pthread_mutex_lock(&meter->lock);
    if (done > meter->done || is_time_to_poll(meter))
        return report_and_unlock(meter, done > meter->done ? done : meter->done);
    pthread_mutex_unlock(&meter->lock);
    return !cogpu_meter_is_cancelled(meter);
}

bool cogpu_meter_poll(cogpu_meter *meter) {
    return cogpu_meter_move_to(meter, 0);
}

bool cogpu_meter_complete(cogpu_meter *meter) {
    if (!meter || !meter->report)
        return true;
    pthread_mutex_lock(&meter->lock);
    if (!meter->is_complete)
        return report_and_unlock(meter, meter->total);
    pthread_mutex_unlock(&meter->lock);
    return !cogpu_meter_is_cancelled(meter);
}

cogpu_status cogpu_fail_cancelled(cogpu_error *error) {
    return cogpu_fail(error, COGPU_CANCELLED, "cancelled by the caller's progress function");
}

static int report_share(void *user, uint64_t done, uint64_t total) {
    const cogpu_share *share = user;
    double part = total ? (double)done / (double)total : 1;
    uint64_t blocks = (uint64_t)((double)(share->end - share->first) * part);
    return !cogpu_meter_move_to(share->meter, share->first + blocks);
}

cogpu_share cogpu_share_of_rows(cogpu_meter *meter, uint64_t first, uint64_t end, uint32_t row,
                                uint32_t rows, uint32_t height) {
    double blocks = (double)(end - first) / height;
    return (cogpu_share){meter, first + (uint64_t)(blocks * row),
                         row + rows == height ? end : first + (uint64_t)(blocks * (row + rows))};
}

cogpu_progress cogpu_share_progress(const cogpu_share *share) {
    return share->meter && share->meter->report ? report_share : NULL;
}
