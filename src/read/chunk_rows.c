/*
 * Decoded bytes of a block, which come in pieces from several threads, to rows of the raster.
 *
 * A piece has whole rows, which are unpacked at once, and parts of rows at its ends. Those are
 * collected; the thread that adds the last part of a row unpacks it.
 *
 * The Adler-32 of the block (RFC 1950, 9) needs no order either. With the sums s1, s2 of a piece
 * alone, all bytes before and after it counted as 0, and n bytes in all:
 *
 *     s1 = 1 + sum of s1(piece)
 *     s2 = n + sum of s2(piece) + s1(piece) * (n - end of piece)
 */
#include "read/chunks.h"

#include <string.h>

enum { ADLER_BASE = 65521 };

cogpu_status cogpu_chunk_rows_open(const cogpu_chunk_task *task, struct chunk_rows *rows) {
    const cogpu_storage *storage = task->plan->storage;
    const uint64_t row_bytes = storage->format.row_bytes;
    const uint32_t end_row = task->block->source_y + task->block->height;
    *rows =
        (struct chunk_rows){.task = task,
                            .first_byte = task->block->source_y * row_bytes,
                            .end_byte = end_row * row_bytes,
                            .needs_adler = task->checks_all || end_row == task->block->needed_rows};
    rows->needed_bytes = rows->needs_adler ? task->block->needed_rows * row_bytes : rows->end_byte;
    pthread_mutex_init(&rows->lock, NULL);
    const uint32_t count = CHUNK_ROWS * task->threads + 1;
    rows->rows = cogpu_allocate(count * sizeof *rows->rows);
    if (!rows->rows)
        return COGPU_OUT_OF_MEMORY;
    while (rows->row_count < count)
        rows->rows[rows->row_count++] = (struct chunk_row){.filled = 0};
    return COGPU_OK;
}

void cogpu_chunk_rows_close(struct chunk_rows *rows) {
    for (uint32_t i = 0; i < rows->row_count; i++)
        cogpu_release(rows->rows[i].memory);
    cogpu_release(rows->rows);
    pthread_mutex_destroy(&rows->lock);
}

/* ---- Adler-32 ---- */

static void add_to_adler(struct chunk_rows *rows, uint64_t end, const uint8_t *bytes,
                         size_t count) {
    const uint32_t adler = cogpu_inflate_adler32(bytes, count);
    const uint64_t s1 = adler & 0xFFFF, s2 = adler >> 16;
    const uint64_t before_end = s1 * (ADLER_BASE - end % ADLER_BASE) % ADLER_BASE;
    pthread_mutex_lock(&rows->lock);
    rows->sum = (rows->sum + s1) % ADLER_BASE;
    rows->weighted_sum = (rows->weighted_sum + s2 + before_end) % ADLER_BASE;
    pthread_mutex_unlock(&rows->lock);
}

uint32_t cogpu_chunk_rows_adler(const struct chunk_rows *rows, uint64_t total) {
    const uint64_t n = total % ADLER_BASE;
    const uint64_t s1 = (1 + rows->sum) % ADLER_BASE;
    const uint64_t s2 = (n + rows->weighted_sum + rows->sum * n) % ADLER_BASE;
    return (uint32_t)(s2 << 16 | s1);
}

/* ---- rows ---- */

/* The row's memory, taken if no part of it came before; NULL if there is none. Under the lock. */
static struct chunk_row *find_row(struct chunk_rows *rows, uint64_t number) {
    struct chunk_row *unused = NULL;
    for (uint32_t i = 0; i < rows->row_count; i++) {
        struct chunk_row *row = &rows->rows[i];
        if (row->filled > 0 && row->number == number)
            return row;
        if (row->filled == 0 && (!unused || row->memory))
            unused = row;
    }
    if (!unused)
        return NULL;
    if (!unused->memory)
        unused->memory = cogpu_allocate(rows->task->plan->storage->format.row_bytes);
    unused->number = number;
    return unused->memory ? unused : NULL;
}

static bool unpack(struct chunk_rows *rows, cogpu_worker *worker, uint64_t first, uint64_t count,
                   uint8_t *bytes) {
    const cogpu_chunk_task *task = rows->task;
    return cogpu_cpu_unpack_rows(worker, task->plan, task->block, (uint32_t)first, (uint32_t)count,
                                 bytes, task->raster, NULL) == COGPU_OK;
}

/* Copied under the lock, since a row that has all its bytes is unpacked at once. */
static bool add_part(struct chunk_rows *rows, cogpu_worker *worker, uint64_t number, size_t at,
                     const uint8_t *bytes, size_t count) {
    pthread_mutex_lock(&rows->lock);
    struct chunk_row *row = find_row(rows, number);
    bool is_complete = false;
    if (row) {
        memcpy(row->memory + at, bytes, count);
        row->filled += count;
        is_complete = row->filled == rows->task->plan->storage->format.row_bytes;
    }
    pthread_mutex_unlock(&rows->lock);
    if (!is_complete)
        return row;
    const bool is_unpacked = unpack(rows, worker, number, 1, row->memory);
    pthread_mutex_lock(&rows->lock);
    row->filled = 0;
    pthread_mutex_unlock(&rows->lock);
    return is_unpacked;
}

bool cogpu_chunk_rows_add(struct chunk_rows *rows, cogpu_worker *worker, uint64_t offset,
                          uint8_t *bytes, size_t count) {
    const size_t row_bytes = rows->task->plan->storage->format.row_bytes;
    uint64_t end = offset + count;
    if (rows->needs_adler)
        add_to_adler(rows, end, bytes, count);
    end = end < rows->end_byte ? end : rows->end_byte;
    if (offset < rows->first_byte) {
        const uint64_t skipped = rows->first_byte - offset;
        bytes += skipped < count ? skipped : count;
        offset = rows->first_byte;
    }
    while (offset < end) {
        const uint64_t row = offset / row_bytes, whole = (end - offset) / row_bytes;
        const size_t at = (size_t)(offset % row_bytes);
        size_t part = (size_t)(whole * row_bytes);
        if (at > 0 || whole == 0) {
            part = row_bytes - at;
            part = end - offset < part ? (size_t)(end - offset) : part;
            if (!add_part(rows, worker, row, at, bytes, part))
                return false;
        } else if (!unpack(rows, worker, row, whole, bytes)) {
            return false;
        }
        bytes += part;
        offset += part;
    }
    return true;
}
