/*
 * One large deflate block decoded by several threads.
 *
 *   stored bytes   |--- chunk 0 ---|--- chunk 1 ---|--- chunk 2 ---|--- chunk 3 ...
 *   block starts   ^    .      .     ? .      .      ? .      .      ?      (? searched, . passed)
 *
 *   thread 0       [bytes..............][search|symbols..]<join>[bytes....]
 *   thread 1       [search|symbols..]<join>[bytes....|resolve][search|symbols..
 *
 * Exactly one thread, the front, knows the 32 KiB before its position and decodes bytes. The others
 * search their chunk for a place where a deflate block may begin, and decode symbols from there
 * (codec/inflate_chunk.h). At the first block boundary in the next chunk the front hands over: if
 * that thread began at the same bit, all it decoded is proven, its last 32 KiB are resolved and it
 * goes on as the front; if not, it begins again at the true bit. Then the symbols of its beginning
 * are resolved, while another thread is the front.
 *
 *   chunks.c        the chunks: who decodes which, joins
 *   chunk_input.c   stored bytes, in segments that threads share
 *   chunk_rows.c    decoded bytes to rows of the raster, Adler-32
 *
 * Whatever does not go well (damage, an unusual stream, no memory, a failed read, cancellation) is
 * not decided here: the caller decodes the block again as a stream and reports what comes of it.
 */
#ifndef COGPU_READ_CHUNKS_H
#define COGPU_READ_CHUNKS_H

#include "codec/inflate_chunk.h"
#include "read/job.h"

#include <stdatomic.h>

/* For each thread. Segments: the one it reads, and up to two at the start of its chunk, which the
 * front will read again. Rows that may be incomplete: at the start of its chunk, between its
 * symbols and its bytes, and at its end. */
enum { CHUNK_SEGMENTS = 3, CHUNK_ROWS = 3 };

/* Sizes, which tests make smaller. */
typedef struct cogpu_chunk_sizes {
    uint64_t chunk_bytes;   /* stored */
    uint64_t segment_bytes; /* stored, read at a time */
    size_t bytes, symbols;  /* decoded, held by a thread */
} cogpu_chunk_sizes;

/* A block to decode. */
typedef struct cogpu_chunk_task {
    const cogpu_read_plan *plan;
    const cogpu_block *block;
    const cogpu_raster *raster;
    cogpu_span span;
    bool checks_all;        /* damage after the rows that are wanted counts */
    cogpu_context *context; /* of workers; may be NULL */
    cogpu_pool *pool;
    uint32_t threads;
    cogpu_chunk_sizes sizes;
} cogpu_chunk_task;

/* Sizes for a block that is stored in so many bytes and decodes to so many. */
cogpu_chunk_sizes cogpu_chunk_sizes_for(uint64_t stored, uint64_t decoded, uint32_t threads);
/* Threads that may decode a block together: 1 if memory does not allow more. workers.c */
uint32_t cogpu_job_chunk_threads(const struct cogpu_read_job *job, const cogpu_storage *storage,
                                 const cogpu_chunk_sizes *sizes);
/* Memory that so many threads take. */
uint64_t cogpu_chunk_memory(const cogpu_chunk_sizes *sizes, uint32_t threads, size_t row_bytes);

/* Whether blocks are large enough, and such that threads may decode one together. */
bool cogpu_storage_has_chunks(const cogpu_storage *storage);
/* Decodes the block of a task, if that is worth it and memory allows. False if it is not decoded.
 */
bool cogpu_task_decode_chunks(struct cogpu_read_job *job, const struct cogpu_read_task *task,
                              uint64_t *read);

/* False: the block is not decoded; the raster may have some of it. *read grows by the bytes that
 * were read. */
bool cogpu_chunks_decode(const cogpu_chunk_task *task, uint64_t *read);

/* ---- chunk_input.c ---- */

/* Part of the stored bytes, in memory while a thread uses it. */
struct chunk_segment {
    uint64_t number;
    uint32_t users;
    bool is_loading, is_loaded;
    bool is_start;    /* a chunk may begin here: the front will need it, wherever it is now */
    uint64_t used_at; /* order of uses */
    uint8_t *memory;
};

struct chunk_input {
    const cogpu_io *io;
    cogpu_meter *meter;
    cogpu_span span;
    uint64_t segment_bytes;
    bool reverses_bits;
    const uint8_t *mapped; /* all of it; then there are no segments */
    pthread_mutex_t lock;  /* of the rest */
    pthread_cond_t loaded;
    struct chunk_segment *segments;
    uint32_t segment_count;
    uint64_t front; /* the segment that the front uses */
    uint64_t uses, read;
};

cogpu_status cogpu_chunk_input_open(const cogpu_chunk_task *task, struct chunk_input *input);
void cogpu_chunk_input_close(struct chunk_input *input);

/* One thread's place in the input. */
struct chunk_reader {
    struct chunk_input *input;
    struct chunk_segment *segment; /* in use; NULL: none */
    enum { READS_SYMBOLS, READS_START, READS_FRONT } purpose;
};

/* Stored bytes from `offset` on, at least one, in memory until the next call; false if they cannot
 * be read. */
bool cogpu_chunk_bytes_at(struct chunk_reader *reader, uint64_t offset, const uint8_t **bytes,
                          size_t *count);
/* Lets the inflater go on at a bit position; false if its bytes cannot be read. */
bool cogpu_chunk_seek(struct chunk_reader *reader, cogpu_inflater *inflater, uint64_t bit);
void cogpu_chunk_end_use(struct chunk_reader *reader);

/* ---- chunk_rows.c ---- */

/* A row whose bytes come from several places. */
struct chunk_row {
    uint64_t number;
    size_t filled; /* bytes; 0: not in use */
    uint8_t *memory;
};

struct chunk_rows {
    const cogpu_chunk_task *task;
    uint64_t first_byte, end_byte; /* of the block, of the rows that are wanted */
    uint64_t needed_bytes;         /* that the stream must have */
    bool needs_adler;
    pthread_mutex_t lock; /* of the rest */
    struct chunk_row *rows;
    uint32_t row_count;
    uint64_t sum, weighted_sum; /* of Adler-32: see chunk_rows.c */
};

cogpu_status cogpu_chunk_rows_open(const cogpu_chunk_task *task, struct chunk_rows *rows);
void cogpu_chunk_rows_close(struct chunk_rows *rows);
/* Takes decoded bytes of the block from `offset` on, and changes them. Any thread, in any order,
 * each byte once. False if memory runs out. */
bool cogpu_chunk_rows_add(struct chunk_rows *rows, cogpu_worker *worker, uint64_t offset,
                          uint8_t *bytes, size_t count);
/* Adler-32 of all `total` bytes of the block. */
uint32_t cogpu_chunk_rows_adler(const struct chunk_rows *rows, uint64_t total);

#endif
