/*
 * PackBits decoder (TIFF 6.0, section 9): one thread block per TIFF block.
 *
 *     header byte n     0 to 127       n + 1 literal bytes follow
 *                       129 to 255     the next byte, 257 - n times
 *                       128            nothing
 *
 * Below, "run" means either of the first two. A header gives the position of the next one, so the
 * stream is a linked list. It is followed in two levels, for a window of 8 KiB that begins at a
 * header:
 *
 *     window       | segment 0, 32 bytes | segment 1 | segment 2 | ... | segment 255 |
 *     thread           0                     1           2                  255
 *
 * 1. find_exits: each thread assumes of every byte of its segment that it is a header, and finds,
 *    from the last byte to the first, where the list would leave the segment. One look-up per byte.
 * 2. find_entries: one thread follows the list from segment to segment, at most 256 steps. The
 *    entry of a segment is its first true header.
 * 3. list_runs: each thread goes through the true headers of its segment. Prefix sums over the
 *    threads give every run its number and output position.
 * 4. write_runs: eight threads per run write it.
 *
 * The next window begins at the header where the list left this one, so a literal run may extend
 * beyond its window: literals are copied from global memory. A barrier separates the steps.
 *
 * Bounds. Each step advances by at least one encoded byte; writes are limited to the capacity.
 * Nothing in a stream is malformed except its end, as for the CPU codec: what exceeds the capacity
 * is dropped, a literal run that the input truncates is used as far as it goes, a repeat without
 * its byte is dropped. So the only error is TOO_SHORT.
 */
#include "kernels/packbits/packbits_decode_args.h"
#include "kernels/simt.h"

enum {
    THREADS = 256,
    WARPS = THREADS / WARP,
    SEGMENT_BYTES = 32,
    WINDOW = THREADS * SEGMENT_BYTES,
    RUNS_MAX = WINDOW / 2, /* a run takes at least two bytes */
    THREADS_PER_RUN = 8,
    NO_ENTRY = 0xFFFF
};

/* Segments are a word further apart than they are long, so that threads use different banks. */
enum { SEGMENT_WORDS = SEGMENT_BYTES / 4 + 1, SEGMENT_EXITS = SEGMENT_BYTES + 2 };

struct packbits_shared {
    uint32_t words[THREADS * SEGMENT_WORDS]; /* encoded bytes of the window */
    union {
        uint16_t exits[THREADS * SEGMENT_EXITS]; /* steps 1 and 2 */
        uint32_t starts[RUNS_MAX];               /* steps 3 and 4: in the window's output */
    } u;
    uint16_t headers[RUNS_MAX]; /* position of each run's header in the window */
    uint16_t entries[THREADS];
    uint32_t byte_sums[WARPS], run_sums[WARPS];
    uint32_t used; /* encoded bytes up to the next window */
};

/* All threads hold the same values. */
struct packbits_window {
    const uint8_t *in;
    uint32_t left; /* encoded bytes of the TIFF block from there on */
    uint32_t size; /* of the window */
};

DEVICE_FN uint32_t byte_at(const struct packbits_shared *shared, uint32_t at) {
    return ((const uint8_t *)shared->words)[at + at / SEGMENT_BYTES * 4];
}

DEVICE_FN uint16_t *segment_exit(struct packbits_shared *shared, uint32_t at) {
    return &shared->u.exits[at + at / SEGMENT_BYTES * (SEGMENT_EXITS - SEGMENT_BYTES)];
}

/* From a header to the next one. */
DEVICE_FN uint32_t encoded_bytes_of(uint32_t header) {
    return header < 128 ? header + 2 : header == 128 ? 1 : 2;
}

/* What a header `left` bytes before the end of the input decodes to. */
DEVICE_FN uint32_t decoded_bytes_of(uint32_t header, uint32_t left) {
    return header < 128                ? min_u32(header + 1, left - 1)
           : header == 128 || left < 2 ? 0
                                       : 257 - header;
}

/* Loads whole words, which may reach a few bytes around the input (COGPU_GPU_SLACK_BYTES). */
DEVICE_FN void load_window(struct packbits_shared *shared, const struct packbits_window *window) {
    const uint32_t skew = (uint32_t)((uintptr_t)window->in % 4);
    const uint8_t *aligned = window->in - skew;
    for (uint32_t at = 4 * thread_index(); at < window->size; at += 4 * THREADS) {
        uint32_t low = load_u32_aligned(aligned + at);
        uint32_t high = load_u32_aligned(aligned + at + 4);
        shared->words[at / 4 + at / SEGMENT_BYTES] = funnel_right(low, high, 8 * skew);
    }
}

DEVICE_FN void find_exits(struct packbits_shared *shared) {
    const uint32_t begin = SEGMENT_BYTES * thread_index(), end = begin + SEGMENT_BYTES;
    for (uint32_t at = end; at-- > begin;) {
        uint32_t next = at + encoded_bytes_of(byte_at(shared, at));
        *segment_exit(shared, at) = next < end ? *segment_exit(shared, next) : (uint16_t)next;
    }
}

DEVICE_FN void find_entries(struct packbits_shared *shared, uint32_t size) {
    uint32_t at = 0;
    while (at < size) {
        shared->entries[at / SEGMENT_BYTES] = (uint16_t)at;
        at = *segment_exit(shared, at);
    }
    shared->used = at;
}

/* Sum over the warps before this one; *total is the sum of all. After a barrier. */
DEVICE_FN uint32_t sum_warps_before(const uint32_t *sums, uint32_t *total) {
    uint32_t before = 0;
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp_index() ? sums[i] : 0;
        *total += sums[i];
    }
    return before;
}

/* Returns the number of runs; *bytes is what they decode to. */
DEVICE_FN uint32_t list_runs(struct packbits_shared *shared, const struct packbits_window *window,
                             uint32_t *bytes) {
    const uint32_t entry = shared->entries[thread_index()];
    const uint32_t end = min_u32(SEGMENT_BYTES * (thread_index() + 1), window->size);
    uint32_t start = 0, number = 0, count, header;
    for (uint32_t at = entry; at < end; at += encoded_bytes_of(header)) {
        header = byte_at(shared, at);
        uint32_t decoded = decoded_bytes_of(header, window->left - at);
        start += decoded;
        number += decoded > 0;
    }
    const uint32_t starts = warp_scan(start), numbers = warp_scan(number);
    if (lane_index() == WARP - 1) {
        shared->byte_sums[warp_index()] = starts;
        shared->run_sums[warp_index()] = numbers;
    }
    sync_block();
    start = starts - start + sum_warps_before(shared->byte_sums, bytes);
    number = numbers - number + sum_warps_before(shared->run_sums, &count);
    for (uint32_t at = entry; at < end; at += encoded_bytes_of(header)) {
        header = byte_at(shared, at);
        uint32_t decoded = decoded_bytes_of(header, window->left - at);
        if (decoded == 0)
            continue;
        shared->headers[number] = (uint16_t)at;
        shared->u.starts[number++] = start;
        start += decoded;
    }
    return count;
}

/* Writes the listed runs to `out`, of `capacity` bytes. */
DEVICE_FN void write_runs(const struct packbits_shared *shared,
                          const struct packbits_window *window, uint32_t count, uint8_t *out,
                          uint32_t capacity) {
    for (uint32_t i = thread_index() / THREADS_PER_RUN; i < count; i += THREADS / THREADS_PER_RUN) {
        uint32_t at = shared->headers[i], start = shared->u.starts[i];
        uint32_t header = byte_at(shared, at);
        uint32_t end = min_u32(start + decoded_bytes_of(header, window->left - at), capacity);
        const uint8_t *from = window->in + at + 1;
        uint32_t step = header < 128;
        for (uint32_t to = start + thread_index() % THREADS_PER_RUN; to < end;
             to += THREADS_PER_RUN)
            out[to] = from[(to - start) * step];
    }
}

/* Decodes a window. Returns the bytes that it decodes to, also those beyond the capacity. */
DEVICE_FN uint32_t decode_window(struct packbits_shared *shared,
                                 const struct packbits_window *window, uint8_t *out,
                                 uint32_t capacity) {
    uint32_t bytes;
    load_window(shared, window);
    shared->entries[thread_index()] = NO_ENTRY;
    sync_block();
    find_exits(shared);
    sync_block();
    if (thread_index() == 0)
        find_entries(shared, window->size);
    sync_block();
    uint32_t count = list_runs(shared, window, &bytes);
    sync_block();
    write_runs(shared, window, count, out, capacity);
    return bytes;
}

KERNEL(cogpu_kernel_packbits, struct cogpu_packbits_args, struct packbits_shared, THREADS, 6) {
    const cogpu_encoded_block *block = &args->blocks[block_index()];
    uint8_t *out = args->decoded + block->out;
    struct packbits_window window = {args->stored + block->in, block->in_bytes, 0};
    uint32_t done = 0;
    while (window.left > 0 && done < block->capacity) {
        window.size = min_u32(window.left, WINDOW);
        done += decode_window(shared, &window, out + done, block->capacity - done);
        uint32_t used = min_u32(shared->used, window.left);
        window.in += used;
        window.left -= used;
        sync_block();
    }
    if (thread_index() == 0)
        args->statuses[block_index()] =
            min_u32(done, block->capacity) < block->required ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
}
