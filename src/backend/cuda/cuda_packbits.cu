/*
 * Takes blocks in PackBits, hands on their bytes. A block of threads for each.
 *
 * A head byte of 0 to 127 is followed by one more literal bytes than it says; one of 129 to 255 by
 * a byte that stands for 257 - head of its kind; 128 says nothing. Which bytes are heads is known
 * only from those before. So, for a window of the stored bytes that begins with a head:
 *
 * 1. It is cut into pieces, one a thread. Each thread assumes of every byte of its piece that it is
 *    a head, and finds, from the last byte to the first, where the stream would leave the piece.
 * 2. One thread goes from piece to piece: where does the stream enter each?
 * 3. Each thread goes through the heads of its piece and sums what they decode to. The sums of all
 *    before it say where its literals and runs go in the output, and in a list of them.
 * 4. Eight threads at a time take a literal or run from the list and write it.
 *
 * Nothing in a stream is wrong but its end, as for the host's codec: what lies in the room is
 * taken, a literal that the input cuts as far as it goes, a run without its byte not at all.
 */
#include "backend/cuda/cuda_packbits.h"
#include "backend/cuda/simt.h"

enum {
    THREADS = 256,
    WARPS = THREADS / WARP,
    PIECE = 32,
    WINDOW = THREADS * PIECE,
    LIST_MAX = WINDOW / 2, /* literals and runs take two bytes and more */
    WRITERS = 8,           /* of one literal or run */
    NOWHERE = 0xFFFF
};

/* Pieces lie a word further apart than they are long, so that threads meet different banks. */
enum { PIECE_WORDS = PIECE / 4 + 1, PIECE_PLACES = PIECE + 2 };

struct packbits_shared {
    uint32_t words[THREADS * PIECE_WORDS]; /* the window */
    union {
        uint16_t exits[THREADS * PIECE_PLACES]; /* until pieces are entered; then: */
        uint32_t starts[LIST_MAX];              /* in the window's output */
    } u;
    uint16_t heads[LIST_MAX]; /* where they are in the window */
    uint16_t entries[THREADS];
    uint32_t byte_sums[WARPS], list_sums[WARPS];
    uint32_t taken; /* stored bytes until the next window */
};

/* Where the window lies in the stored bytes. All threads hold the same. */
struct window {
    const uint8_t *in;
    uint32_t left; /* bytes of the block from there on */
    uint32_t size; /* of the window */
};

DEVICE_FN uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t byte_at(const struct packbits_shared *shared, uint32_t at) {
    return ((const uint8_t *)shared->words)[at + at / PIECE * 4];
}

DEVICE_FN uint16_t *exit_at(struct packbits_shared *shared, uint32_t at) {
    return &shared->u.exits[at + at / PIECE * (PIECE_PLACES - PIECE)];
}

/* From a head to the next one. */
DEVICE_FN uint32_t stored_bytes(uint32_t head) {
    return head < 128 ? head + 2 : head == 128 ? 1 : 2;
}

/* What a head `left` bytes before the end of the input decodes to. */
DEVICE_FN uint32_t decoded_bytes(uint32_t head, uint32_t left) {
    return head < 128 ? least(head + 1, left - 1) : head == 128 || left < 2 ? 0 : 257 - head;
}

/* Loads may reach a few bytes round the input. */
DEVICE_FN void load_window(struct packbits_shared *shared, const struct window *window) {
    const uint32_t skip = (uint32_t)((uintptr_t)window->in % 4);
    const uint8_t *aligned = window->in - skip;
    for (uint32_t at = 4 * thread_index(); at < window->size; at += 4 * THREADS) {
        uint32_t low = load_u32_aligned(aligned + at);
        uint32_t high = load_u32_aligned(aligned + at + 4);
        shared->words[at / 4 + at / PIECE] = funnel_right(low, high, 8 * skip);
    }
}

DEVICE_FN void find_exits(struct packbits_shared *shared) {
    const uint32_t begin = PIECE * thread_index(), end = begin + PIECE;
    for (uint32_t at = end; at-- > begin;) {
        uint32_t next = at + stored_bytes(byte_at(shared, at));
        *exit_at(shared, at) = next < end ? *exit_at(shared, next) : (uint16_t)next;
    }
}

DEVICE_FN void enter_pieces(struct packbits_shared *shared, uint32_t size) {
    uint32_t at = 0;
    while (at < size) {
        shared->entries[at / PIECE] = (uint16_t)at;
        at = *exit_at(shared, at);
    }
    shared->taken = at;
}

/* The sum of the values of all threads before this one, and of all. After a barrier. */
DEVICE_FN uint32_t before_warps(const uint32_t *sums, uint32_t *total) {
    uint32_t before = 0;
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        before += i < warp_index() ? sums[i] : 0;
        *total += sums[i];
    }
    return before;
}

/* Lists literals and runs. Returns how many, and what they decode to. */
DEVICE_FN uint32_t list_heads(struct packbits_shared *shared, const struct window *window,
                              uint32_t *bytes) {
    const uint32_t entry = shared->entries[thread_index()];
    const uint32_t end = least(PIECE * (thread_index() + 1), window->size);
    uint32_t start = 0, place = 0, count, head;
    for (uint32_t at = entry; at < end; at += stored_bytes(head)) {
        head = byte_at(shared, at);
        uint32_t decoded = decoded_bytes(head, window->left - at);
        start += decoded;
        place += decoded > 0;
    }
    const uint32_t starts = warp_scan(start), places = warp_scan(place);
    if (lane_index() == WARP - 1) {
        shared->byte_sums[warp_index()] = starts;
        shared->list_sums[warp_index()] = places;
    }
    sync_block();
    start = starts - start + before_warps(shared->byte_sums, bytes);
    place = places - place + before_warps(shared->list_sums, &count);
    for (uint32_t at = entry; at < end; at += stored_bytes(head)) {
        head = byte_at(shared, at);
        uint32_t decoded = decoded_bytes(head, window->left - at);
        if (decoded == 0)
            continue;
        shared->heads[place] = (uint16_t)at;
        shared->u.starts[place++] = start;
        start += decoded;
    }
    return count;
}

/* Writes what is listed to `out`, which has room for `room` bytes. */
DEVICE_FN void write_list(const struct packbits_shared *shared, const struct window *window,
                          uint32_t count, uint8_t *out, uint32_t room) {
    for (uint32_t i = thread_index() / WRITERS; i < count; i += THREADS / WRITERS) {
        uint32_t at = shared->heads[i], start = shared->u.starts[i];
        uint32_t head = byte_at(shared, at);
        uint32_t end = least(start + decoded_bytes(head, window->left - at), room);
        const uint8_t *from = window->in + at + 1;
        uint32_t step = head < 128;
        for (uint32_t to = start + thread_index() % WRITERS; to < end; to += WRITERS)
            out[to] = from[(to - start) * step];
    }
}

/* Decodes a window. Returns the bytes that it decodes to, be there room for them or not. */
DEVICE_FN uint32_t decode_window(struct packbits_shared *shared, const struct window *window,
                                 uint8_t *out, uint32_t room) {
    uint32_t bytes;
    load_window(shared, window);
    shared->entries[thread_index()] = NOWHERE;
    sync_block();
    find_exits(shared);
    sync_block();
    if (thread_index() == 0)
        enter_pieces(shared, window->size);
    sync_block();
    uint32_t count = list_heads(shared, window, &bytes);
    sync_block();
    write_list(shared, window, count, out, room);
    return bytes;
}

KERNEL(cogpu_kernel_packbits, struct cogpu_packbits_args, struct packbits_shared, THREADS, 6) {
    const cogpu_coded *block = &args->blocks[block_index()];
    uint8_t *out = args->decoded + block->out;
    struct window window = {args->stored + block->in, block->in_bytes, 0};
    uint32_t done = 0;
    while (window.left > 0 && done < block->room) {
        window.size = least(window.left, WINDOW);
        done += decode_window(shared, &window, out + done, block->room - done);
        uint32_t taken = least(shared->taken, window.left);
        window.in += taken;
        window.left -= taken;
        sync_block();
    }
    if (thread_index() == 0)
        args->verdicts[block_index()] =
            least(done, block->room) < block->needed ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
}
