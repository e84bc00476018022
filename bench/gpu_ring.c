/*
 * Raw upload: what the host and PCIe allow a reader of files without any decoding. Takes a
 * file in the page cache, reads it by all threads into a few pieces of pinned memory, and copies
 * each piece to the device while others are filled. gpu_readers.py calls it as a shared library.
 *
 * Threads run ahead over the pieces, as far as there are free ones; the caller sends pieces off in
 * their order and is the only one to talk to the device.
 */
#include "base/pool.h"
#include "gpu/driver/gpu.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

/* Half of the pieces may be on their way at a time, so that the other half can be filled. */
enum { READ_BYTES = 512 << 10, PIECE_BYTES = 8 << 20, PIECES = 8, SENT_MOST = PIECES / 2 };

struct ring {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *sent[PIECES];
    cogpu_pool *pool;
    uint8_t *pinned, *device;
    uint64_t device_bytes;
    /* of the file that is on its way */
    int file;
    uint64_t bytes;
    _Atomic uint64_t free_until;             /* pieces below it may be filled */
    _Atomic uint64_t filled[PIECES], failed; /* bytes; `failed` reads */
};

COGPU_API void bench_ring_close(struct ring *ring) {
    const cogpu_gpu_driver *calls = ring->gpu->calls;
    for (uint32_t i = 0; i < PIECES; i++)
        calls->event_close(ring->gpu, ring->sent[i]);
    calls->stream_close(ring->gpu, ring->stream);
    calls->release_pinned(ring->gpu, ring->pinned);
    calls->release(ring->gpu, ring->device);
    cogpu_pool_close(ring->pool);
    calls->close(ring->gpu);
    cogpu_release(ring);
}

static cogpu_status open_parts(struct ring *ring, cogpu_error *error) {
    const cogpu_gpu_driver *calls = ring->gpu->calls;
    uint32_t cores = cogpu_cpu_cores();
    void *memory;
    TRY(calls->stream_open(ring->gpu, true, &ring->stream, error));
    for (uint32_t i = 0; i < PIECES; i++)
        TRY(calls->event_open(ring->gpu, &ring->sent[i], error));
    TRY(calls->allocate_pinned(ring->gpu, PIECES * (uint64_t)PIECE_BYTES, &memory, error));
    ring->pinned = memory;
    return cogpu_pool_open(cores > 1 ? cores : 2, &ring->pool, error);
}

COGPU_API cogpu_status bench_ring_open(int is_emu, struct ring **opened, cogpu_error *error) {
    cogpu_gpu *gpu;
    TRY(is_emu ? cogpu_gpu_open_emulator(1, 8ULL << 30, &gpu, error)
               : cogpu_gpu_open_cuda(0, &gpu, error));
    struct ring *ring = cogpu_allocate(sizeof *ring);
    if (!ring) {
        gpu->calls->close(gpu);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory");
    }
    *ring = (struct ring){.gpu = gpu};
    cogpu_status status = open_parts(ring, error);
    if (status == COGPU_OK)
        *opened = ring;
    else
        bench_ring_close(ring);
    return status;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void read_part(void *argument, uint32_t worker, uint64_t index) {
    struct ring *ring = argument;
    uint64_t at = index * READ_BYTES, piece = at / PIECE_BYTES;
    uint64_t bytes = smaller(READ_BYTES, ring->bytes - at);
    uint8_t *to = ring->pinned + piece % PIECES * PIECE_BYTES + at % PIECE_BYTES;
    (void)worker;
    while (piece >= atomic_load(&ring->free_until))
        sched_yield();
    for (uint64_t done = 0; done < bytes;) {
        ssize_t got = pread(ring->file, to + done, bytes - done, (off_t)(at + done));
        if (got <= 0) {
            atomic_fetch_add(&ring->failed, 1);
            break;
        }
        done += (uint64_t)got;
    }
    atomic_fetch_add(&ring->filled[piece % PIECES], bytes);
}

/* Sends a piece off once it is full, and frees the one whose place it takes among those that are on
 * their way. */
static cogpu_status send(struct ring *ring, uint64_t piece, cogpu_error *error) {
    const cogpu_gpu_driver *calls = ring->gpu->calls;
    uint64_t at = piece * PIECE_BYTES, bytes = smaller(PIECE_BYTES, ring->bytes - at);
    uint64_t place = piece % PIECES;
    while (atomic_load(&ring->filled[place]) < bytes)
        sched_yield();
    atomic_store(&ring->filled[place], 0);
    TRY(calls->copy_up(ring->gpu, ring->device + at, ring->pinned + place * PIECE_BYTES, bytes,
                       ring->stream, error));
    TRY(calls->record(ring->gpu, ring->sent[place], ring->stream, error));
    if (piece < SENT_MOST)
        return COGPU_OK;
    TRY(calls->finish_event(ring->gpu, ring->sent[(piece - SENT_MOST) % PIECES], error));
    atomic_store(&ring->free_until, piece - SENT_MOST + 1 + PIECES);
    return COGPU_OK;
}

static cogpu_status take(struct ring *ring, cogpu_error *error) {
    cogpu_pool_job *job;
    cogpu_status status = COGPU_OK;
    atomic_store(&ring->failed, 0);
    atomic_store(&ring->free_until, PIECES);
    for (uint32_t i = 0; i < PIECES; i++)
        atomic_store(&ring->filled[i], 0);
    TRY(cogpu_pool_begin(ring->pool, cogpu_pool_threads(ring->pool), read_part, ring, &job, error));
    cogpu_pool_add(job, (ring->bytes + READ_BYTES - 1) / READ_BYTES);
    for (uint64_t piece = 0; piece * PIECE_BYTES < ring->bytes && status == COGPU_OK; piece++)
        status = send(ring, piece, error);
    atomic_store(&ring->free_until, UINT64_MAX); /* no thread waits, whatever happened */
    cogpu_pool_end(job);
    if (status == COGPU_OK && atomic_load(&ring->failed))
        status = cogpu_fail(error, COGPU_IO_ERROR, "the file cannot be read");
    TRY(status);
    return ring->gpu->calls->finish_stream(ring->gpu, ring->stream, error);
}

/* A file as it is, to the device; memory there is kept for the next. */
COGPU_API cogpu_status bench_ring_take(struct ring *ring, const char *path, cogpu_error *error) {
    struct stat about;
    ring->file = open(path, O_RDONLY | O_CLOEXEC);
    if (ring->file < 0 || fstat(ring->file, &about) != 0)
        return cogpu_fail(error, COGPU_IO_ERROR, "%s cannot be opened", path);
    ring->bytes = (uint64_t)about.st_size;
    cogpu_status status = COGPU_OK;
    if (ring->bytes > ring->device_bytes) {
        void *memory = NULL;
        ring->gpu->calls->release(ring->gpu, ring->device);
        status = ring->gpu->calls->allocate(ring->gpu, ring->bytes, &memory, error);
        ring->device = memory;
        ring->device_bytes = status == COGPU_OK ? ring->bytes : 0;
    }
    if (status == COGPU_OK)
        status = take(ring, error);
    close(ring->file);
    return status;
}

/* What it took last, back from the device. */
COGPU_API cogpu_status bench_ring_give(struct ring *ring, void *to, cogpu_error *error) {
    const cogpu_gpu_driver *calls = ring->gpu->calls;
    TRY(calls->copy_down(ring->gpu, to, ring->device, ring->bytes, ring->stream, error));
    return calls->finish_stream(ring->gpu, ring->stream, error);
}
