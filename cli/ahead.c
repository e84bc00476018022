/*
 * Takes in a selection, hands on its swaths, each read while the one before is worked on. Reader
 * and caller share two places: the reader waits for an empty one, the caller for a full one.
 */
#include "ahead.h"

#include "report.h"
#include "swath.h"

#include <pthread.h>
#include <stdlib.h>

enum { PLACES = 2 };

struct cogpu_ahead {
    cogpu_selection selection;
    cogpu_swath swath; /* the thread's alone, as is what it reads into */
    bool with_mask;
    char *data[PLACES];
    uint8_t *masks[PLACES];
    cogpu_ahead_swath swaths[PLACES];

    pthread_t thread;
    bool has_thread, has_locks;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t read, taken; /* swaths, counted from the first */
    bool holding;         /* the caller works on swath `taken` */
    bool ended, stopped;
    cogpu_status status; /* of the reader, with its error */
    cogpu_error error;
    cogpu_result result;
};

static cogpu_status read_mask(const cogpu_ahead *ahead, cogpu_raster *mask, cogpu_error *error) {
    cogpu_request request = ahead->selection.request;
    uint32_t band = cogpu_selection_band(&ahead->selection, 0);
    request.part = COGPU_MASK;
    request.y += ahead->swath.row;
    request.height = ahead->swath.rows;
    request.bands = &band;
    request.band_count = 1;
    mask->type = COGPU_U8;
    mask->bands = 1;
    mask->width = request.width;
    mask->height = request.height;
    return cogpu_read(ahead->selection.file, &request, mask, NULL, error);
}

static cogpu_status read_swath(cogpu_ahead *ahead, uint64_t place) {
    cogpu_ahead_swath *swath = &ahead->swaths[place];
    swath->rows = cogpu_swath_raster(&ahead->swath, &ahead->selection, ahead->data[place]);
    TRY(cogpu_swath_read(&ahead->swath, &ahead->selection, ahead->data[place], &ahead->result,
                         &ahead->error));
    swath->mask = (cogpu_raster){.data = ahead->masks[place]};
    return ahead->with_mask ? read_mask(ahead, &swath->mask, &ahead->error) : COGPU_OK;
}

/* Waits for an empty place; false where nothing more is wanted. */
static bool wait_for_room(cogpu_ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stopped && ahead->read - ahead->taken == PLACES)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    bool wanted = !ahead->stopped;
    pthread_mutex_unlock(&ahead->lock);
    return wanted;
}

static void tell(cogpu_ahead *ahead, cogpu_status status, bool ended) {
    pthread_mutex_lock(&ahead->lock);
    ahead->status = status;
    ahead->ended = ended;
    ahead->read += !ended;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

static void *read_all(void *user) {
    cogpu_ahead *ahead = user;
    cogpu_status status = COGPU_OK;
    while (status == COGPU_OK && wait_for_room(ahead) && cogpu_swath_next(&ahead->swath)) {
        status = read_swath(ahead, ahead->read % PLACES);
        if (status == COGPU_OK)
            tell(ahead, COGPU_OK, false);
    }
    tell(ahead, status, true);
    return NULL;
}

static cogpu_status allocate(cogpu_ahead *ahead, cogpu_error *error) {
    size_t pixels = (size_t)ahead->selection.request.width * ahead->swath.rows_at_once;
    for (int i = 0; i < PLACES; i++) {
        ahead->data[i] = malloc(ahead->swath.bytes);
        ahead->masks[i] = ahead->with_mask ? malloc(pixels) : NULL;
        if (!ahead->data[i] || (ahead->with_mask && !ahead->masks[i]))
            return cogpu_refuse(error, COGPU_MEMORY, "no memory for %zu bytes of pixels",
                                ahead->swath.bytes * PLACES);
    }
    return COGPU_OK;
}

static cogpu_status start(cogpu_ahead *ahead, cogpu_error *error) {
    TRY(cogpu_swath_open(&ahead->selection, SWATH_STREAM, &ahead->swath, error));
    TRY(allocate(ahead, error));
    ahead->has_locks = pthread_mutex_init(&ahead->lock, NULL) == 0 &&
                       pthread_cond_init(&ahead->changed, NULL) == 0;
    ahead->has_thread =
        ahead->has_locks && pthread_create(&ahead->thread, NULL, read_all, ahead) == 0;
    return ahead->has_thread
               ? COGPU_OK
               : cogpu_refuse(error, COGPU_MEMORY, "no thread can be started to read ahead");
}

cogpu_status cogpu_ahead_open(const cogpu_selection *selection, bool with_mask, cogpu_ahead **ahead,
                              cogpu_error *error) {
    *ahead = calloc(1, sizeof **ahead);
    if (!*ahead)
        return cogpu_refuse(error, COGPU_MEMORY, "no memory to read ahead");
    (*ahead)->selection = *selection;
    (*ahead)->with_mask = with_mask;
    cogpu_status status = start(*ahead, error);
    if (status != COGPU_OK) {
        cogpu_ahead_close(*ahead);
        *ahead = NULL;
    }
    return status;
}

cogpu_status cogpu_ahead_next(cogpu_ahead *ahead, const cogpu_ahead_swath **swath,
                              cogpu_error *error) {
    pthread_mutex_lock(&ahead->lock);
    ahead->taken += ahead->holding;
    pthread_cond_broadcast(&ahead->changed);
    while (ahead->read == ahead->taken && !ahead->ended)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    ahead->holding = ahead->read > ahead->taken;
    cogpu_status status = ahead->holding ? COGPU_OK : ahead->status;
    *swath = ahead->holding ? &ahead->swaths[ahead->taken % PLACES] : NULL;
    pthread_mutex_unlock(&ahead->lock);
    if (status != COGPU_OK)
        *error = ahead->error;
    return status;
}

void cogpu_ahead_close(cogpu_ahead *ahead) {
    if (!ahead)
        return;
    if (ahead->has_thread) {
        pthread_mutex_lock(&ahead->lock);
        ahead->stopped = true;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        pthread_join(ahead->thread, NULL);
    }
    if (ahead->has_locks) {
        pthread_cond_destroy(&ahead->changed);
        pthread_mutex_destroy(&ahead->lock);
    }
    cogpu_swath_close(&ahead->swath, &ahead->selection);
    for (int i = 0; i < PLACES; i++) {
        free(ahead->data[i]);
        free(ahead->masks[i]);
    }
    free(ahead);
}

const cogpu_result *cogpu_ahead_result(const cogpu_ahead *ahead) {
    return &ahead->result;
}
