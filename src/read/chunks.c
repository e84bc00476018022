/* Chunks of a large deflate block: who decodes which, and how they are joined. See chunks.h. */
#include "read/chunks.h"

#include "base/math.h"

#include <string.h>

/* RFC 1950: a header of two bytes before the stream, an Adler-32 of four after it. */
enum { ZLIB_HEADER_BYTES = 2 };

#define NO_CHUNK UINT64_MAX

enum chunk_state {
    CHUNK_SEARCHING,
    CHUNK_STARTED, /* at its start_bit, which may be wrong */
    CHUNK_SKIPPED  /* no thread begins in it: it belongs to a chunk before */
};

struct chunk {
    enum chunk_state state;
    uint64_t start_bit;
};

/* What the front knows when it hands over. */
struct front {
    uint64_t bit, offset; /* of the next block in the stream, and of its first byte when decoded */
    uint8_t window[INFLATE_WINDOW];
};

struct chunks {
    const cogpu_chunk_task *task;
    struct chunk_input input;
    struct chunk_rows rows;
    uint64_t count;
    uint64_t last_byte;  /* decoding beyond it is not needed; it may be after the block's end */
    atomic_bool is_over; /* all that is needed is decoded, or `has_failed` */
    atomic_bool has_failed;
    /* The chunk that the front is handed to, whose thread has not seen it yet; NO_CHUNK: none. */
    _Atomic uint64_t offered;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    uint64_t next;      /* the first chunk that no thread has */
    uint64_t known;     /* the chunk of the front */
    struct chunk *ring; /* of chunks from `known` on, by number */
    uint64_t ring_count;
    struct front front;
    bool has_ended; /* the stream, after `total` bytes; `adler` is what it says of them */
    uint64_t total;
    uint32_t adler;
};

/* Working memory of a thread. */
struct chunk_decoder {
    struct chunks *chunks;
    cogpu_worker *worker;
    struct chunk_reader reader;
    uint64_t chunk;          /* that it decodes */
    uint64_t meets;          /* the next chunk, at whose start it will end */
    uint64_t start_bit;      /* of its symbols */
    uint64_t offset;         /* of the next byte in the decoded block, of the front */
    uint64_t symbols_offset; /* of the first symbol */
    size_t history;          /* bytes before it that matches may refer to, at most a window */
    cogpu_inflater inflater;
    uint8_t byte_of[INFLATE_SYMBOLS];
    uint8_t *bytes;    /* a window, then bytes */
    uint16_t *symbols; /* a window, then symbols */
    size_t symbol_count;
};

static struct chunk *chunk_at(struct chunks *c, uint64_t number) {
    return &c->ring[number % c->ring_count];
}

static uint64_t first_bit(const struct chunks *c, uint64_t chunk) {
    return chunk == 0 ? ZLIB_HEADER_BYTES * 8 : chunk * c->task->sizes.chunk_bytes * 8;
}

static void end_all(struct chunks *c, bool has_failed) {
    pthread_mutex_lock(&c->lock);
    if (has_failed)
        atomic_store(&c->has_failed, true);
    atomic_store(&c->is_over, true);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Takes the next chunk; false if there is nothing more to take. */
static bool take_chunk(struct chunks *c, uint64_t *number) {
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->is_over) && c->next < c->count && c->next - c->known >= c->ring_count)
        pthread_cond_wait(&c->changed, &c->lock);
    const bool is_taken = !atomic_load(&c->is_over) && c->next < c->count;
    if (is_taken) {
        *number = c->next++;
        chunk_at(c, *number)->state = CHUNK_SEARCHING;
    }
    pthread_mutex_unlock(&c->lock);
    return is_taken;
}

/* ---- joins --------------------------------------------------------------------------------- */

static bool is_offered(const struct chunk_decoder *d) {
    return atomic_load_explicit(&d->chunks->offered, memory_order_relaxed) == d->chunk;
}

/* What to do at a block boundary that is beyond the start of the next chunk. */
enum meeting { GO_ON, CHUNK_ENDS, MUST_WAIT };

/* The state of chunk d->meets, which begins at or before `bit`. A chunk that no thread has is
 * decoded as part of this one. Under the lock. */
static enum meeting meet_chunk(struct chunk_decoder *d, uint64_t bit, bool is_front) {
    struct chunks *c = d->chunks;
    struct chunk *chunk = chunk_at(c, d->meets);
    if (d->meets == c->next) {
        if (!is_front && d->meets - c->known >= c->ring_count)
            return MUST_WAIT;
        c->next++;
        chunk->state = CHUNK_SKIPPED;
    }
    if (chunk->state == CHUNK_SKIPPED) {
        d->meets++;
        if (is_front)
            c->known = d->meets - 1;
        return GO_ON;
    }
    if (chunk->state == CHUNK_STARTED && chunk->start_bit > bit) {
        d->inflater.stop_bit = chunk->start_bit;
        return GO_ON;
    }
    if (chunk->state == CHUNK_SEARCHING) { /* a better guess than it would find */
        chunk->state = CHUNK_STARTED;
        chunk->start_bit = bit;
    }
    return CHUNK_ENDS;
}

static enum meeting meet_next_chunks(struct chunk_decoder *d, bool is_front) {
    struct chunks *c = d->chunks;
    const uint64_t bit = cogpu_inflate_position(&d->inflater);
    enum meeting meeting = GO_ON;
    pthread_mutex_lock(&c->lock);
    while (meeting == GO_ON && d->inflater.stop_bit <= bit) {
        if (d->meets == c->count)
            d->inflater.stop_bit = UINT64_MAX;
        else if (first_bit(c, d->meets) > bit)
            d->inflater.stop_bit = first_bit(c, d->meets);
        else
            meeting = meet_chunk(d, bit, is_front);
    }
    if (is_front)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return meeting;
}

/* The front goes to the thread of the next chunk. The window is before d->bytes + INFLATE_WINDOW.
 */
static void hand_over(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    pthread_mutex_lock(&c->lock);
    c->front.bit = cogpu_inflate_position(&d->inflater);
    c->front.offset = d->offset;
    memcpy(c->front.window, d->bytes, INFLATE_WINDOW);
    c->known = d->meets;
    atomic_store(&c->offered, d->meets);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Waits for the front. False if that is not needed any more. */
static bool wait_for_front(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->is_over) && !is_offered(d))
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return !atomic_load(&c->is_over);
}

/* Takes the front, which is offered. If it begins where this thread did, the symbols are right: the
 * last of them become the window. Else there are none. */
static bool become_front(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    pthread_mutex_lock(&c->lock);
    const uint64_t bit = c->front.bit;
    d->offset = c->front.offset;
    for (unsigned i = 0; i < 256; i++)
        d->byte_of[i] = (uint8_t)i;
    memcpy(d->byte_of + 256, c->front.window, INFLATE_WINDOW);
    d->symbols_offset = d->offset;
    d->reader.purpose = READS_FRONT;
    atomic_store(&c->offered, NO_CHUNK);
    pthread_mutex_unlock(&c->lock);
    if (d->symbol_count > 0 && bit == d->start_bit && d->offset >= INFLATE_WINDOW) {
        cogpu_inflate_resolve(d->symbols + d->symbol_count, INFLATE_WINDOW, d->byte_of, d->bytes);
        d->offset += d->symbol_count;
    } else {
        memcpy(d->bytes, d->byte_of + 256, INFLATE_WINDOW);
        d->symbol_count = 0;
        d->meets = d->chunk + 1;
        if (!cogpu_chunk_seek(&d->reader, &d->inflater, bit))
            return false;
        cogpu_inflate_start(&d->inflater, first_bit(c, d->meets));
    }
    d->history = d->offset < INFLATE_WINDOW ? (size_t)d->offset : INFLATE_WINDOW;
    return true;
}

/* ---- symbols ------------------------------------------------------------------------------- */

/* Bytes that are searched, and symbols that are decoded, between two looks at the front. */
enum { SEARCH_STEP_BYTES = 32 << 10, SYMBOLS_STEP = 32 << 10 };

/* Where a block may begin in the chunk; UINT64_MAX if nowhere, or if the answer is not needed. */
static uint64_t search_start(struct chunk_decoder *d) {
    const struct chunks *c = d->chunks;
    uint64_t offset = first_bit(c, d->chunk) / 8;
    const uint64_t end = min_u64(first_bit(c, d->chunk + 1) / 8, c->task->span.bytes);
    d->reader.purpose = READS_START;
    while (offset < end && !is_offered(d) && !atomic_load(&c->is_over)) {
        const uint8_t *bytes;
        size_t count;
        if (!cogpu_chunk_bytes_at(&d->reader, offset, &bytes, &count))
            break;
        const uint64_t step = min_u64(min_u64(end - offset, count), SEARCH_STEP_BYTES);
        const uint64_t bit = cogpu_inflate_search(bytes, count, 0, step * 8);
        if (bit != UINT64_MAX)
            return offset * 8 + bit;
        offset += step;
    }
    return UINT64_MAX;
}

/* Chooses the bit where symbols begin; false if there is none. */
static bool choose_start(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    const uint64_t bit = search_start(d);
    pthread_mutex_lock(&c->lock);
    struct chunk *chunk = chunk_at(c, d->chunk);
    if (chunk->state == CHUNK_SEARCHING && !is_offered(d)) {
        chunk->state = bit == UINT64_MAX ? CHUNK_SKIPPED : CHUNK_STARTED;
        chunk->start_bit = bit;
    }
    const bool is_started = chunk->state == CHUNK_STARTED;
    d->start_bit = chunk->start_bit;
    pthread_mutex_unlock(&c->lock);
    return is_started;
}

/* Decodes symbols until the front comes or there is nothing to do without it. */
static void decode_symbols(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    uint16_t *const first = d->symbols + INFLATE_WINDOW;
    const uint16_t *const last = first + c->task->sizes.symbols;
    uint16_t *out = first;
    cogpu_inflate_result result = INFLATE_FULL;
    if (!cogpu_chunk_seek(&d->reader, &d->inflater, d->start_bit))
        return;
    d->reader.purpose = READS_SYMBOLS;
    cogpu_inflate_start(&d->inflater, first_bit(c, d->meets));
    while (out < last && !is_offered(d) && !atomic_load(&c->is_over)) {
        const size_t step = min_size(SYMBOLS_STEP, (size_t)(last - out));
        result = cogpu_inflate_symbols(&d->inflater, d->symbols, &out, out + step);
        if (result != INFLATE_FULL &&
            (result != INFLATE_BOUNDARY || meet_next_chunks(d, false) != GO_ON))
            break;
    }
    d->symbol_count = result == INFLATE_BAD ? 0 : (size_t)(out - first);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void add_rows(struct chunk_decoder *d, uint64_t offset, size_t count) {
    if (!cogpu_chunk_rows_add(&d->chunks->rows, d->worker, offset, d->bytes + INFLATE_WINDOW,
                              count))
        end_all(d->chunks, true);
}

/* The Adler-32 after the stream. */
static void end_stream(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    const bool is_complete =
        d->offset >= c->rows.needed_bytes && cogpu_inflate_need_bits(&d->inflater, 32);
    if (is_complete) {
        c->has_ended = true;
        c->total = d->offset;
        c->adler = __builtin_bswap32(inflate_take_bits(&d->inflater, 32));
    }
    end_all(c, !is_complete);
}

/* False at the end of the chunk, or of all. */
static bool follow_result(struct chunk_decoder *d, cogpu_inflate_result result) {
    struct chunks *c = d->chunks;
    if (d->offset >= c->last_byte) {
        end_all(c, false);
        return false;
    }
    switch (result) {
    case INFLATE_FULL:
        return true;
    case INFLATE_BOUNDARY:
        if (meet_next_chunks(d, true) == GO_ON)
            return true;
        hand_over(d);
        return false;
    case INFLATE_END:
        end_stream(d);
        return false;
    default:
        end_all(c, true);
        return false;
    }
}

/* Decodes as the front. The window is moved before rows are unpacked, which changes the bytes. */
static void decode_bytes(struct chunk_decoder *d) {
    struct chunks *c = d->chunks;
    uint8_t *const first = d->bytes + INFLATE_WINDOW;
    bool goes_on = true;
    while (goes_on && !atomic_load(&c->is_over)) {
        uint8_t *out = first;
        const cogpu_inflate_result result = cogpu_inflate_bytes(&d->inflater, first - d->history,
                                                                &out, first + c->task->sizes.bytes);
        const size_t count = (size_t)(out - first);
        d->offset += count;
        d->history = min_size(d->history + count, INFLATE_WINDOW);
        memmove(d->bytes, out - INFLATE_WINDOW, INFLATE_WINDOW);
        goes_on = follow_result(d, result);
        if (!atomic_load(&c->has_failed))
            add_rows(d, d->offset - count, count);
        if (!cogpu_meter_poll(c->task->plan->meter))
            end_all(c, true);
    }
}

/* The symbols at the beginning of the chunk, from `offset` on. */
static void resolve_symbols(struct chunk_decoder *d, uint64_t offset) {
    struct chunks *c = d->chunks;
    for (size_t done = 0, part; done < d->symbol_count && !atomic_load(&c->has_failed);
         done += part) {
        part = min_size(c->task->sizes.bytes, d->symbol_count - done);
        cogpu_inflate_resolve(d->symbols + INFLATE_WINDOW + done, part, d->byte_of,
                              d->bytes + INFLATE_WINDOW);
        add_rows(d, offset + done, part);
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

static void decode_chunk(struct chunk_decoder *d) {
    d->meets = d->chunk + 1;
    d->symbol_count = 0;
    if (!is_offered(d)) {
        if (choose_start(d))
            decode_symbols(d);
        else if (!is_offered(d))
            return;
        if (!wait_for_front(d))
            return;
    }
    if (!become_front(d)) {
        end_all(d->chunks, true);
        return;
    }
    const uint64_t offset = d->symbols_offset;
    decode_bytes(d);
    resolve_symbols(d, offset);
}

/* Memory of a decoder: its struct, bytes, symbols. */
static size_t bytes_place(void) {
    return (sizeof(struct chunk_decoder) + 63) / 64 * 64;
}

static size_t symbols_place(const cogpu_chunk_sizes *sizes) {
    return bytes_place() + (INFLATE_WINDOW + sizes->bytes + INFLATE_SLACK + 63) / 64 * 64;
}

static size_t decoder_bytes(const cogpu_chunk_sizes *sizes) {
    return symbols_place(sizes) +
           (INFLATE_WINDOW + sizes->symbols + INFLATE_SLACK) * sizeof(uint16_t);
}

static struct chunk_decoder *open_decoder(struct chunks *c, cogpu_worker *worker) {
    const cogpu_chunk_sizes *sizes = &c->task->sizes;
    if (cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes, decoder_bytes(sizes),
                             NULL) != COGPU_OK)
        return NULL;
    struct chunk_decoder *d = (struct chunk_decoder *)(void *)worker->decoded;
    memset(d, 0, sizeof *d);
    d->chunks = c;
    d->worker = worker;
    d->reader.input = &c->input;
    d->bytes = worker->decoded + bytes_place();
    d->symbols = (uint16_t *)(void *)(worker->decoded + symbols_place(sizes));
    memset(d->bytes, 0, INFLATE_WINDOW);
    cogpu_inflate_fill_markers(d->symbols);
    return d;
}

/* A thread, until no chunk is left. If it gets no memory, others do its work; if none does, nothing
 * is decoded. */
static void decode_chunks(void *argument, uint32_t worker_number, uint64_t index) {
    struct chunks *c = argument;
    (void)worker_number, (void)index;
    cogpu_worker *worker = cogpu_context_take_worker(c->task->context);
    struct chunk_decoder *d = worker ? open_decoder(c, worker) : NULL;
    while (d && take_chunk(c, &d->chunk)) {
        decode_chunk(d);
        cogpu_chunk_end_use(&d->reader);
    }
    if (worker)
        cogpu_context_return_worker(c->task->context, worker);
}

/* ---- the block ----------------------------------------------------------------------------- */

/* RFC 1950, 2.2: deflate, a window of 32 KiB, no preset dictionary. Others are left to the stream's
 * decoder. */
static bool has_usual_header(struct chunks *c) {
    struct chunk_reader reader = {.input = &c->input};
    const uint8_t *bytes;
    size_t count;
    const bool is_usual = cogpu_chunk_bytes_at(&reader, 0, &bytes, &count) && count >= 2 &&
                          bytes[0] == 0x78 && !(bytes[1] & 0x20) &&
                          (bytes[0] * 256 + bytes[1]) % 31 == 0;
    cogpu_chunk_end_use(&reader);
    return is_usual;
}

static cogpu_status open_chunks(const cogpu_chunk_task *task, struct chunks *c) {
    const cogpu_storage *storage = task->plan->storage;
    *c = (struct chunks){.task = task, .ring_count = task->threads + 2};
    c->count = (task->span.bytes + task->sizes.chunk_bytes - 1) / task->sizes.chunk_bytes;
    atomic_store(&c->offered, 0);
    c->front.bit = first_bit(c, 0);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->ring = cogpu_allocate((size_t)c->ring_count * sizeof *c->ring);
    const cogpu_status input = cogpu_chunk_input_open(task, &c->input);
    const cogpu_status rows = cogpu_chunk_rows_open(task, &c->rows);
    c->last_byte = c->rows.needs_adler ? storage->block_bytes + 1 : c->rows.end_byte;
    return c->ring && input == COGPU_OK && rows == COGPU_OK ? COGPU_OK : COGPU_OUT_OF_MEMORY;
}

static void close_chunks(struct chunks *c) {
    cogpu_chunk_rows_close(&c->rows);
    cogpu_chunk_input_close(&c->input);
    cogpu_release(c->ring);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

static bool is_decoded(const struct chunks *c) {
    return atomic_load(&c->is_over) && !atomic_load(&c->has_failed) &&
           (!c->has_ended || cogpu_chunk_rows_adler(&c->rows, c->total) == c->adler);
}

bool cogpu_chunks_decode(const cogpu_chunk_task *task, uint64_t *read) {
    struct chunks c;
    const bool is_open = open_chunks(task, &c) == COGPU_OK;
    if (is_open && has_usual_header(&c))
        cogpu_pool_run(task->pool, task->threads, task->threads, decode_chunks, &c);
    const bool is_done = is_open && is_decoded(&c);
    *read += c.input.read;
    close_chunks(&c);
    return is_done;
}

/* ---- sizes --------------------------------------------------------------------------------- */

enum {
    /* Of a chunk: more makes searches rarer, less gives all threads a part of a small block. */
    CHUNK_DECODED_MAX = 8 << 20,
    CHUNK_DECODED_MIN = 1 << 20,
    CHUNKS_PER_THREAD = 3,
    CHUNK_BYTES_MIN = 64 << 10,
    CHUNK_BYTES_MAX = 4 << 20,
    SEGMENT_BYTES = 1 << 20,
    STAGE_BYTES = 256 << 10,
    SYMBOLS = 4 << 20,
    ROW_BYTES_MAX = 1 << 20,
    BLOCK_BYTES_MIN = 4 << 20 /* decoded */
};

cogpu_chunk_sizes cogpu_chunk_sizes_for(uint64_t stored, uint64_t decoded, uint32_t threads) {
    uint64_t part = decoded / (CHUNKS_PER_THREAD * (uint64_t)threads);
    part = min_u64(max_u64(part, CHUNK_DECODED_MIN), CHUNK_DECODED_MAX);
    const uint64_t chunk = stored / (decoded / part + 1);
    return (cogpu_chunk_sizes){.chunk_bytes =
                                   min_u64(max_u64(chunk, CHUNK_BYTES_MIN), CHUNK_BYTES_MAX),
                               .segment_bytes = SEGMENT_BYTES,
                               .bytes = STAGE_BYTES,
                               .symbols = SYMBOLS};
}

uint64_t cogpu_chunk_memory(const cogpu_chunk_sizes *sizes, uint32_t threads, size_t row_bytes) {
    return threads * (decoder_bytes(sizes) + CHUNK_SEGMENTS * sizes->segment_bytes +
                      CHUNK_ROWS * (uint64_t)row_bytes) +
           row_bytes;
}

/* ---- tasks --------------------------------------------------------------------------------- */

bool cogpu_storage_has_chunks(const cogpu_storage *storage) {
    return storage->codec && storage->codec->is_deflate && storage->codec->stream &&
           storage->block_bytes >= BLOCK_BYTES_MIN && storage->format.row_bytes <= ROW_BYTES_MAX &&
           !cogpu_storage_has_units(storage);
}

/* A block that is not streamed is worth it if other threads have no blocks of their own. It is
 * decoded as a whole otherwise: its size is limited, and all of it is checked. */
static bool is_worth_chunks(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    const cogpu_storage *storage = task->window->plan.storage;
    return cogpu_job_streams(job, storage) ||
           (job->batch.task_count < job->threads && !cogpu_task_is_worth_keeping(job, task) &&
            cogpu_cpu_check_block_bytes(storage, task->span.bytes, storage->block_bytes, NULL) ==
                COGPU_OK);
}

bool cogpu_task_decode_chunks(struct cogpu_read_job *job, const struct cogpu_read_task *task,
                              uint64_t *read) {
    const cogpu_read_plan *plan = &task->window->plan;
    const cogpu_storage *storage = plan->storage;
    const uint64_t decoded = (uint64_t)task->block.needed_rows * storage->format.row_bytes;
    cogpu_chunk_task chunks = {.plan = plan,
                               .block = &task->block,
                               .raster = &task->window->raster,
                               .span = task->span,
                               .checks_all = !cogpu_job_streams(job, storage),
                               .context = job->context,
                               .pool = job->pool};
    /* What is hardly compressed is mostly copied, which is faster than a search. */
    if (!cogpu_storage_has_chunks(storage) || !is_worth_chunks(job, task) ||
        task->span.bytes > decoded - decoded / 16 ||
        cogpu_cpu_check_expansion(task->span.bytes, decoded, NULL) != COGPU_OK)
        return false;
    chunks.sizes = cogpu_chunk_sizes_for(task->span.bytes, decoded, job->threads);
    chunks.threads = cogpu_job_chunk_threads(job, storage, &chunks.sizes);
    return chunks.threads > 1 && cogpu_chunks_decode(&chunks, read);
}
