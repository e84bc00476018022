/* Pieces of rows: which thread copies them, and how they get into the raster. See download.h. */
#include "gpu/download.h"

#include "base/math.h"
#include "cpu/samples.h"

#include <string.h>

/* A quarter of the threads is left to fetch the blocks of the next rows. */
enum { WORKERS_MAX = 64, SHARE_OF_THREADS = 3, OF_SHARES = 4 };

/* Bytes of a plane of a chunk. */
struct piece {
    cogpu_download_chunk *chunk;
    uint32_t plane;
    uint64_t at, bytes;
};

/* The raster as planes of rows: one plane if the bands of a pixel are side by side. */
struct raster_planes {
    uint32_t count;
    size_t item_bytes; /* a pixel of all bands, or a sample */
    uint64_t row_bytes;
    int64_t plane_stride;
    bool is_packed_row, is_packed_plane, streams;
};

struct cogpu_gpu_download {
    cogpu_gpu *gpu;
    cogpu_raster raster;
    struct raster_planes planes;
    uint8_t *pinned; /* NULL: the raster is pinned */
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *copied[WORKERS_MAX];
    uint32_t workers;
    cogpu_pool_job *job;
    pthread_mutex_t lock; /* of all below, and of the chunks' pending pieces */
    pthread_cond_t chunk_done;
    struct piece *pieces; /* all that were added, in order */
    uint64_t piece_count, piece_capacity;
    bool is_abandoned;
    cogpu_error error; /* the first one */
};

/* ---- layout -------------------------------------------------------------------------------- */

static bool has_pixels_together(const cogpu_raster *raster) {
    const int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    return raster->bands > 1 && raster->stride_band == size &&
           raster->stride_x == size * raster->bands;
}

void cogpu_gpu_download_layout(const cogpu_raster *raster, cogpu_raster *rows) {
    const int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    const bool is_together = has_pixels_together(raster);
    rows->stride_x = is_together ? size * rows->bands : size;
    rows->stride_y = rows->stride_x * rows->width;
    rows->stride_band = is_together ? size : rows->stride_y * rows->height;
}

static struct raster_planes describe_planes(const cogpu_raster *raster) {
    const size_t size = cogpu_type_bytes(raster->type);
    const bool is_together = has_pixels_together(raster);
    struct raster_planes planes = {.count = is_together ? 1 : raster->bands,
                                   .item_bytes = is_together ? size * raster->bands : size,
                                   .plane_stride = raster->stride_band};
    planes.row_bytes = (uint64_t)raster->width * planes.item_bytes;
    planes.is_packed_row = raster->stride_x == (int64_t)planes.item_bytes;
    planes.is_packed_plane = planes.is_packed_row && raster->stride_y == (int64_t)planes.row_bytes;
    planes.streams = cogpu_cpu_is_beyond_caches(raster, size);
    return planes;
}

static uint8_t *raster_row(const cogpu_gpu_download *download, uint32_t plane, uint64_t y) {
    const cogpu_raster *raster = &download->raster;
    return (uint8_t *)raster->data + (int64_t)plane * download->planes.plane_stride +
           (int64_t)y * raster->stride_y;
}

/* Whether pieces can be copied straight to their place. */
static bool is_pinned(cogpu_gpu *gpu, const cogpu_raster *raster,
                      const struct raster_planes *planes) {
    bool is = planes->is_packed_plane;
    for (uint32_t p = 0; is && p < planes->count; p++)
        is = gpu->calls->is_pinned(
            gpu, (const uint8_t *)raster->data + (int64_t)p * planes->plane_stride,
            planes->row_bytes * raster->height);
    return is;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Items of a row from byte `at` of it on. */
static void store_items(const struct cogpu_gpu_download *download, uint8_t *row, uint64_t at,
                        const uint8_t *from, uint64_t bytes) {
    const struct raster_planes *planes = &download->planes;
    const size_t item = planes->item_bytes;
    const int64_t stride = download->raster.stride_x;
    if (!planes->is_packed_row)
        cogpu_cpu_copy_samples(row + (int64_t)(at / item) * stride, stride, from, (int64_t)item,
                               (uint32_t)(bytes / item), item);
    else
        cogpu_cpu_copy_bytes(row + at, from, (size_t)bytes, planes->streams);
}

static void store_piece(const cogpu_gpu_download *download, const struct piece *piece,
                        const uint8_t *from) {
    const struct raster_planes *planes = &download->planes;
    const uint64_t row_bytes = planes->row_bytes;
    for (uint64_t done = 0, bytes; done < piece->bytes; done += bytes) {
        const uint64_t y = (piece->at + done) / row_bytes, column = (piece->at + done) % row_bytes;
        bytes = piece->bytes - done;
        if (!planes->is_packed_plane)
            bytes = min_u64(bytes, row_bytes - column);
        store_items(download, raster_row(download, piece->plane, piece->chunk->first_row + y),
                    column, from + done, bytes);
    }
    cogpu_cpu_finish_copies(planes->streams);
}

static cogpu_status copy_piece(cogpu_gpu_download *download, uint32_t worker,
                               const struct piece *piece, cogpu_error *error) {
    cogpu_gpu *gpu = download->gpu;
    const cogpu_raster *rows = &piece->chunk->rows;
    const uint8_t *from = (const uint8_t *)rows->data + (int64_t)piece->plane * rows->stride_band +
                          (int64_t)piece->at;
    uint8_t *to =
        download->pinned
            ? download->pinned + (uint64_t)worker * COGPU_DOWNLOAD_PIECE_BYTES
            : raster_row(download, piece->plane, piece->chunk->first_row) + (int64_t)piece->at;
    TRY(gpu->calls->copy_down(gpu, to, from, piece->bytes, download->stream, error));
    TRY(gpu->calls->record(gpu, download->copied[worker], download->stream, error));
    TRY(gpu->calls->finish_event(gpu, download->copied[worker], error));
    if (download->pinned)
        store_piece(download, piece, to);
    return COGPU_OK;
}

static void work_on_piece(void *argument, uint32_t worker, uint64_t index) {
    cogpu_gpu_download *download = argument;
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    pthread_mutex_lock(&download->lock);
    const struct piece piece = download->pieces[index];
    const bool is_wanted = !download->is_abandoned && download->error.status == COGPU_OK;
    pthread_mutex_unlock(&download->lock);
    if (is_wanted)
        status = copy_piece(download, worker, &piece, &error);
    pthread_mutex_lock(&download->lock);
    if (status != COGPU_OK && download->error.status == COGPU_OK)
        download->error = error;
    if (--piece.chunk->pending == 0)
        pthread_cond_broadcast(&download->chunk_done);
    pthread_mutex_unlock(&download->lock);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* With the lock held. */
static cogpu_status reserve_pieces(cogpu_gpu_download *download, uint64_t count,
                                   cogpu_error *error) {
    const uint64_t needed = download->piece_count + count;
    if (needed <= download->piece_capacity)
        return COGPU_OK;
    const uint64_t capacity = max_u64(needed, 2 * download->piece_capacity);
    struct piece *pieces =
        cogpu_resize(download->pieces, (size_t)(capacity * sizeof *download->pieces));
    if (!pieces)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %llu pieces of rows",
                          (unsigned long long)capacity);
    download->pieces = pieces;
    download->piece_capacity = capacity;
    return COGPU_OK;
}

/* Bytes of the next piece. Where rows are packed in the raster, pieces end at multiples of their
 * size there: large pages, which are mapped on first touch, then have one piece each. */
static uint64_t choose_piece_bytes(const cogpu_gpu_download *download,
                                   const cogpu_download_chunk *chunk, uint32_t plane, uint64_t at) {
    const uint64_t most = COGPU_DOWNLOAD_PIECE_BYTES;
    if (!download->planes.is_packed_plane)
        return most;
    return most - ((uintptr_t)raster_row(download, plane, chunk->first_row) + at) % most;
}

/* With the lock held. */
static void append_pieces(cogpu_gpu_download *download, cogpu_download_chunk *chunk, uint32_t plane,
                          uint64_t at, uint64_t end) {
    for (uint64_t bytes; at < end; at += bytes) {
        bytes = min_u64(end - at, choose_piece_bytes(download, chunk, plane, at));
        download->pieces[download->piece_count++] =
            (struct piece){.chunk = chunk, .plane = plane, .at = at, .bytes = bytes};
        chunk->pending++;
    }
}

cogpu_status cogpu_gpu_download_add(cogpu_gpu_download *download, cogpu_download_chunk *chunk,
                                    uint32_t row, uint32_t count, cogpu_error *error) {
    const uint64_t row_bytes = download->planes.row_bytes;
    const uint64_t at = row * row_bytes, end = at + count * row_bytes;
    const uint64_t most = (end - at) / COGPU_DOWNLOAD_PIECE_BYTES + 2; /* of a plane */
    pthread_mutex_lock(&download->lock);
    const uint64_t before = download->piece_count;
    cogpu_status status = reserve_pieces(download, most * download->planes.count, error);
    for (uint32_t p = 0; status == COGPU_OK && p < download->planes.count; p++)
        append_pieces(download, chunk, p, at, end);
    const uint64_t added = download->piece_count - before;
    pthread_mutex_unlock(&download->lock);
    if (status == COGPU_OK)
        cogpu_pool_add(download->job, added);
    return status;
}

static bool is_pending(cogpu_gpu_download *download, const cogpu_download_chunk *chunk) {
    pthread_mutex_lock(&download->lock);
    const bool is = chunk->pending > 0;
    pthread_mutex_unlock(&download->lock);
    return is;
}

cogpu_status cogpu_gpu_download_wait(cogpu_gpu_download *download, cogpu_download_chunk *chunk,
                                     cogpu_error *error) {
    while (is_pending(download, chunk) && cogpu_pool_help(download->job))
        ;
    pthread_mutex_lock(&download->lock);
    while (chunk->pending > 0) /* other threads have its last pieces */
        pthread_cond_wait(&download->chunk_done, &download->lock);
    const cogpu_status status = download->error.status;
    if (status != COGPU_OK && error)
        *error = download->error;
    pthread_mutex_unlock(&download->lock);
    return status;
}

/* ---- open and close ------------------------------------------------------------------------ */

static uint32_t choose_workers(uint32_t threads, uint64_t pieces) {
    const uint32_t share = 1 + (threads - 1) * SHARE_OF_THREADS / OF_SHARES;
    const uint32_t most = threads > 1 ? max_u32(share, 2) : 1;
    return (uint32_t)min_u64(min_u32(most, WORKERS_MAX), max_u64(pieces, 1));
}

uint64_t cogpu_gpu_download_pinned_bytes(uint32_t threads, uint64_t bytes) {
    const uint64_t pieces = bytes / COGPU_DOWNLOAD_PIECE_BYTES + 1;
    return (uint64_t)choose_workers(threads, pieces) * COGPU_DOWNLOAD_PIECE_BYTES;
}

static cogpu_status open_stream(cogpu_gpu_download *download, cogpu_error *error) {
    cogpu_gpu *gpu = download->gpu;
    TRY(gpu->calls->stream_open(gpu, false, &download->stream, error));
    for (uint32_t i = 0; i < download->workers; i++)
        TRY(gpu->calls->event_open(gpu, &download->copied[i], error));
    return COGPU_OK;
}

cogpu_status cogpu_gpu_download_open(cogpu_gpu_device *device, cogpu_pool *pool, uint32_t threads,
                                     const cogpu_raster *raster, void *pinned,
                                     uint64_t pinned_bytes, cogpu_gpu_download **out,
                                     cogpu_error *error) {
    cogpu_gpu_download *download = cogpu_allocate(sizeof *download);
    *out = NULL;
    if (!download)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a copy of rows");
    *download = (cogpu_gpu_download){
        .gpu = cogpu_gpu_device_gpu(device),
        .raster = *raster,
        .planes = describe_planes(raster),
        .workers = choose_workers(threads, pinned_bytes / COGPU_DOWNLOAD_PIECE_BYTES)};
    download->pinned = is_pinned(download->gpu, raster, &download->planes) ? NULL : pinned;
    cogpu_error_clear(&download->error);
    pthread_mutex_init(&download->lock, NULL);
    pthread_cond_init(&download->chunk_done, NULL);
    cogpu_status status = open_stream(download, error);
    if (status == COGPU_OK)
        status = cogpu_pool_begin(pool, download->workers, work_on_piece, download, &download->job,
                                  error);
    if (status == COGPU_OK)
        *out = download;
    else
        cogpu_gpu_download_close(download, true);
    return status;
}

void cogpu_gpu_download_close(cogpu_gpu_download *download, bool is_abandoned) {
    if (!download)
        return;
    cogpu_gpu *gpu = download->gpu;
    pthread_mutex_lock(&download->lock);
    download->is_abandoned = is_abandoned;
    pthread_mutex_unlock(&download->lock);
    cogpu_pool_end(download->job);
    if (is_abandoned && download->stream) /* it may still write into pinned memory */
        (void)gpu->calls->finish_stream(gpu, download->stream, NULL);
    if (download->stream)
        gpu->calls->stream_close(gpu, download->stream);
    for (uint32_t i = 0; i < download->workers; i++)
        gpu->calls->event_close(gpu, download->copied[i]);
    pthread_cond_destroy(&download->chunk_done);
    pthread_mutex_destroy(&download->lock);
    cogpu_release(download->pieces);
    cogpu_release(download);
}
