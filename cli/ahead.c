/*
 * Reads a selection ahead: a thread reads the next chunk while the caller processes the one before.
 * They share two buffers in host or device memory: the thread waits for an empty one, the caller
 * for a full one.
 */
#include "ahead.h"

#include "chunk.h"
#include "report.h"

#include <pthread.h>
#include <stdlib.h>

enum { PLACES = 2 };

/* A mosaic needs memory besides that of its pixels: larger chunks are read one by one. */
static const size_t mosaic_chunk_limit = 32 << 20;

struct cogpu_ahead {
    cogpu_selection selection;
    cogpu_derivation *derivation;
    cogpu_selection made; /* the selection, but as it is written: size, type, georeferencing */
    cogpu_chunk chunk;    /* the thread's alone, as is what it reads into */
    bool with_mask;
    uint32_t places; /* up to PLACES, which are used in turn */
    void *data[PLACES], *masks[PLACES];
    cogpu_ahead_chunk chunks[PLACES];

    pthread_t thread;
    bool has_thread, has_locks;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t read, taken; /* chunks, counted from the first */
    bool holding;         /* the caller works on chunk `taken` */
    bool ended, stopped;
    cogpu_status status; /* of the reader, with its error */
    cogpu_error error;
    cogpu_result result;
};

static cogpu_status read_mask(const cogpu_ahead *ahead, cogpu_raster *mask, cogpu_error *error) {
    cogpu_request request = ahead->selection.request;
    uint32_t band = cogpu_selection_band(&ahead->selection, 0);
    request.content = COGPU_CONTENT_MASK;
    request.y += ahead->chunk.row;
    request.height = ahead->chunk.rows;
    request.bands = &band;
    request.band_count = 1;
    *mask = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                           .data = mask->data,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = request.width,
                           .height = request.height,
                           .device = ahead->selection.device,
                           .device_index = ahead->selection.device_index};
    return cogpu_read(ahead->selection.file, &request, mask, NULL, error);
}

static cogpu_status read_chunk(cogpu_ahead *ahead, uint64_t place) {
    cogpu_ahead_chunk *chunk = &ahead->chunks[place];
    chunk->rows = cogpu_chunk_raster(&ahead->chunk, &ahead->made, ahead->data[place]);
    if (ahead->derivation->is_needed) {
        chunk->mask = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                     .data = ahead->masks[place],
                                     .type = COGPU_TYPE_U8,
                                     .bands = 1,
                                     .width = chunk->rows.width,
                                     .height = chunk->rows.height};
        return cogpu_derivation_read(ahead->derivation, &ahead->selection, ahead->chunk.row,
                                     &chunk->rows, &chunk->mask, &ahead->result, &ahead->error);
    }
    TRY(cogpu_chunk_read(&ahead->chunk, &ahead->selection, ahead->data[place], &ahead->result,
                         &ahead->error));
    chunk->mask = (cogpu_raster){.struct_size = sizeof(cogpu_raster), .data = ahead->masks[place]};
    return ahead->with_mask ? read_mask(ahead, &chunk->mask, &ahead->error) : COGPU_OK;
}

/* Waits for an empty place; false where nothing more is wanted. */
static bool wait_for_buffer(cogpu_ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->stopped && ahead->read - ahead->taken == ahead->places)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    bool wanted = !ahead->stopped;
    pthread_mutex_unlock(&ahead->lock);
    return wanted;
}

static void publish_chunk(cogpu_ahead *ahead, cogpu_status status, bool ended) {
    pthread_mutex_lock(&ahead->lock);
    ahead->status = status;
    ahead->ended = ended;
    ahead->read += !ended;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

static void *read_ahead_chunks(void *user) {
    cogpu_ahead *ahead = user;
    cogpu_status status = COGPU_OK;
    while (status == COGPU_OK && wait_for_buffer(ahead) && cogpu_chunk_next(&ahead->chunk)) {
        status = read_chunk(ahead, ahead->read % ahead->places);
        if (status == COGPU_OK)
            publish_chunk(ahead, COGPU_OK, false);
    }
    publish_chunk(ahead, status, true);
    return NULL;
}

static cogpu_status allocate_rows(const cogpu_selection *selection, size_t bytes, void **memory,
                                  cogpu_error *error) {
    if (selection->device != COGPU_DEVICE_CPU)
        return cogpu_device_allocate(selection->request.context, selection->device,
                                     selection->device_index, bytes, memory, error);
    *memory = malloc(bytes);
    return *memory ? COGPU_OK
                   : cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                                  bytes);
}

static void free_rows(const cogpu_selection *selection, void *memory) {
    if (selection->device == COGPU_DEVICE_CPU)
        free(memory);
    else
        cogpu_device_free(selection->request.context, selection->device, selection->device_index,
                          memory);
}

static cogpu_status make_places(cogpu_ahead *ahead, cogpu_error *error) {
    const cogpu_selection *selection = &ahead->made;
    size_t pixels = (size_t)selection->request.width * ahead->chunk.rows_at_once;
    ahead->places = selection->is_mosaic && ahead->chunk.bytes > mosaic_chunk_limit ? 1 : PLACES;
    for (uint32_t i = 0; i < ahead->places; i++) {
        TRY(allocate_rows(selection, ahead->chunk.bytes, &ahead->data[i], error));
        if (ahead->with_mask)
            TRY(allocate_rows(selection, pixels, &ahead->masks[i], error));
    }
    return COGPU_OK;
}

/* Of usual tiles where the profile leaves it open, and of strips any. */
static uint32_t written_height(const cogpu_profile *profile) {
    enum { USUAL_TILE = 512 };
    if (profile->block_height)
        return profile->block_height;
    return profile->strips ? 1 : USUAL_TILE;
}

/* Derived pixels lie in host memory. Resampled rows have no blocks of the source to end at. */
static void set_made(cogpu_ahead *ahead) {
    cogpu_selection *made = &ahead->made;
    *made = ahead->selection;
    if (!ahead->derivation->is_needed)
        return;
    made->request.width = made->written_width;
    made->request.height = made->written_height;
    made->type = made->written;
    made->device = COGPU_DEVICE_CPU;
    if (ahead->derivation->is_resampled) {
        enum { UNCOMPRESSED = 1 };
        made->request.y = 0;
        made->level.compression = UNCOMPRESSED;
        made->is_mosaic = false;
    }
}

static cogpu_status start_reading(cogpu_ahead *ahead, const cogpu_profile *profile,
                                  cogpu_error *error) {
    set_made(ahead);
    TRY(cogpu_chunk_open_stream(&ahead->made, written_height(profile), &ahead->chunk, error));
    uint32_t most_rows = cogpu_derivation_rows(ahead->derivation, &ahead->selection);
    if (ahead->chunk.rows_at_once > most_rows)
        ahead->chunk.rows_at_once = most_rows;
    TRY(make_places(ahead, error));
    ahead->has_locks = pthread_mutex_init(&ahead->lock, NULL) == 0 &&
                       pthread_cond_init(&ahead->changed, NULL) == 0;
    ahead->has_thread =
        ahead->has_locks && pthread_create(&ahead->thread, NULL, read_ahead_chunks, ahead) == 0;
    return ahead->has_thread
               ? COGPU_OK
               : cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no thread can be started to read ahead");
}

cogpu_status cogpu_ahead_open(const cogpu_selection *selection, cogpu_derivation *derivation,
                              const cogpu_profile *profile, cogpu_ahead **ahead,
                              cogpu_error *error) {
    *ahead = calloc(1, sizeof **ahead);
    if (!*ahead)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory to read ahead");
    (*ahead)->selection = *selection;
    (*ahead)->derivation = derivation;
    (*ahead)->with_mask = profile->mask;
    cogpu_status status = start_reading(*ahead, profile, error);
    if (status != COGPU_OK) {
        cogpu_ahead_close(*ahead);
        *ahead = NULL;
    }
    return status;
}

cogpu_status cogpu_ahead_next(cogpu_ahead *ahead, const cogpu_ahead_chunk **chunk,
                              cogpu_error *error) {
    pthread_mutex_lock(&ahead->lock);
    ahead->taken += ahead->holding;
    pthread_cond_broadcast(&ahead->changed);
    while (ahead->read == ahead->taken && !ahead->ended)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    ahead->holding = ahead->read > ahead->taken;
    cogpu_status status = ahead->holding ? COGPU_OK : ahead->status;
    *chunk = ahead->holding ? &ahead->chunks[ahead->taken % ahead->places] : NULL;
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
    for (int i = 0; i < PLACES; i++) {
        free_rows(&ahead->made, ahead->data[i]);
        free_rows(&ahead->made, ahead->masks[i]);
    }
    free(ahead);
}

const cogpu_result *cogpu_ahead_result(const cogpu_ahead *ahead) {
    return &ahead->result;
}
