/*
 * Zstandard frames on the device. Takes tiles of stored frames, hands on their content and a
 * verdict for each tile.
 *
 * A frame is a row of blocks of at most 128 KiB. What is serial in a block (its Huffman streams,
 * its one stream of sequences) is serial in a lane, and many blocks run side by side; what reaches
 * across blocks (the last offsets, copies of what earlier blocks hold) is left to the last step,
 * which has a tile to itself. Hence these steps, each a kernel:
 *
 *     scan     a thread a tile walks the headers and adds up what its blocks need
 *     plan     one warp deals tiles out into rounds that fit the scratch memory
 *     fill     a thread a tile walks again and notes its blocks        (from here: each round)
 *     tables   two warps a block build the tables that the block brings
 *     streams  a lane a Huffman stream decodes literals to the end of the tile's room; two lanes a
 *              stream of sequences follow its states and leave marks
 *     execute  a group of threads a tile: sequences are read from the marks on, all at once, and
 *              they and the literals become bytes
 *
 * docs/kernels/zstd.md tells more.
 */
#include "backend/cuda/cuda_zstd.h"
#include "backend/cuda/simt.h"

#ifdef __CUDACC__
#define ROLLED      _Pragma("unroll 1")
#define UNROLL_BY_4 _Pragma("unroll 4")
/* Brings the line nearer that somebody will load in a while. */
DEVICE_FN void prefetch(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
/* A number for a place in shared memory, to which bytes may be added, and the word there: pointers
 * would have their base added at each load. */
DEVICE_FN uint32_t shared_place(const void *shared, const void *at) {
    (void)shared;
    return (uint32_t)__cvta_generic_to_shared(at);
}
DEVICE_FN uint32_t shared_word(const void *shared, uint32_t place) {
    uint32_t word;
    (void)shared;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(place) : "memory");
    return word;
}
/* -1 for 0. */
DEVICE_FN uint32_t top_bit(uint32_t value) {
    uint32_t bit;
    asm("bfind.u32 %0, %1;" : "=r"(bit) : "r"(value));
    return bit;
}
/* 0 where the shift is 32 or more. */
DEVICE_FN uint32_t shift_left(uint32_t value, uint32_t by) {
    asm("shl.b32 %0, %0, %1;" : "+r"(value) : "r"(by));
    return value;
}
/* Without a branch, which would have to be waited for. */
DEVICE_FN void store_if(bool is_wanted, uint64_t *to, uint32_t index, uint32_t low, uint32_t high) {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.global.v2.u32 [%1], {%2, %3}; }" ::"r"(
            (uint32_t)is_wanted),
        "l"(to + index), "r"(low), "r"(high)
        : "memory");
}
/* Adds the two low bytes of a word, in one instruction. */
DEVICE_FN uint32_t plus_two_bytes(uint32_t value, uint32_t word) {
    return __dp4a(word, 0x0101u, value);
}
#else
#define ROLLED
#define UNROLL_BY_4
DEVICE_FN void prefetch(const void *at) {
    (void)at;
}
DEVICE_FN uint32_t shared_place(const void *shared, const void *at) {
    return (uint32_t)((const uint8_t *)at - (const uint8_t *)shared);
}
DEVICE_FN uint32_t shared_word(const void *shared, uint32_t place) {
    return load_u32_aligned((const uint8_t *)shared + place);
}
DEVICE_FN uint32_t top_bit(uint32_t value) {
    return 31 - leading_zeros(value);
}
DEVICE_FN uint32_t shift_left(uint32_t value, uint32_t by) {
    return by < 32 ? value << by : 0;
}
DEVICE_FN void store_if(bool is_wanted, uint64_t *to, uint32_t index, uint32_t low, uint32_t high) {
    if (is_wanted)
        to[index] = (uint64_t)high << 32 | low;
}
DEVICE_FN uint32_t plus_two_bytes(uint32_t value, uint32_t word) {
    return value + (word & 255) + (word >> 8 & 255);
}
#endif

enum { NOWHERE = 0x7FFFFFFF };

DEVICE_FN uint32_t lesser(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

DEVICE_FN uint32_t byte2(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8;
}

DEVICE_FN uint32_t byte3(const uint8_t *at) {
    return byte2(at) | (uint32_t)at[2] << 16;
}

DEVICE_FN uint32_t byte4(const uint8_t *at) {
    return byte3(at) | (uint32_t)at[3] << 24;
}

/* The first thing that is wrong with a tile need not be the one that is told, but it is always the
 * same one. */
DEVICE_FN void refuse(const struct zstd_args *args, uint32_t tile, uint32_t verdict) {
    atomic_max(&args->verdicts[tile], verdict);
}

DEVICE_FN bool is_refused(const struct zstd_args *args, uint32_t tile) {
    return args->verdicts[tile] != COGPU_GPU_DECODED;
}

DEVICE_FN uint8_t *quad_at(const struct zstd_args *args, uint32_t quad) {
    return args->pool + (uint64_t)quad * ZSTD_QUAD;
}

/* ---- the headers of a tile: scan and fill --------------------------------------------------- */

struct walk {
    const uint8_t *in;
    uint32_t at, end; /* in the tile's stored bytes */
    uint32_t room;
    uint32_t things; /* blocks and frames so far */
    uint32_t blocks, quads;
    uint32_t sequences;
    uint32_t literals;  /* Huffman coded ones */
    uint32_t least_out; /* bytes that the blocks decode to at least */
    /* of the frame */
    uint32_t window, content, most_out, flags;
    uint32_t tree_at, codes_at[ZSTD_CODE_KINDS];
};

DEVICE_FN uint32_t take_quads(struct walk *w, uint32_t quads) {
    uint32_t at = w->quads;
    w->quads += quads;
    return at;
}

/* The frame's header after its magic number. */
DEVICE_FN uint32_t walk_frame_header(struct walk *w) {
    if (w->end - w->at < 2)
        return COGPU_GPU_CUT_OFF;
    uint32_t descriptor = w->in[w->at++];
    bool is_single = descriptor >> 5 & 1;
    uint32_t size_flag = descriptor >> 6, size_bytes = size_flag ? 1u << size_flag : is_single;
    if (descriptor & 8)
        return COGPU_GPU_DAMAGED;
    if (descriptor & 3) /* a dictionary */
        return COGPU_GPU_UNUSUAL;
    if (w->end - w->at < size_bytes + !is_single)
        return COGPU_GPU_CUT_OFF;
    uint64_t window = 0, content = 0;
    if (!is_single) {
        uint32_t byte = w->in[w->at++], log = 10 + (byte >> 3);
        if (log > 31)
            return COGPU_GPU_UNUSUAL;
        window = (1ull << log) + (1ull << log) / 8 * (byte & 7);
    }
    for (uint32_t i = 0; i < size_bytes; i++)
        content |= (uint64_t)w->in[w->at++] << 8 * i;
    if (size_bytes == 2)
        content += 256;
    if (is_single)
        window = content;
    if (size_bytes && content > w->room)
        return COGPU_GPU_TOO_LONG;
    w->content = (uint32_t)content;
    w->window = window > UINT32_MAX ? UINT32_MAX : (uint32_t)window;
    w->most_out = lesser(w->window, ZSTD_BLOCK_BYTES);
    w->flags = (size_bytes ? ZSTD_HAS_SIZE : 0) | (descriptor & 4 ? ZSTD_HAS_SUM : 0) | ZSTD_FIRST;
    w->tree_at = NOWHERE;
    for (uint32_t i = 0; i < ZSTD_CODE_KINDS; i++)
        w->codes_at[i] = NOWHERE;
    return COGPU_GPU_DECODED;
}

/* The header of the literals of a compressed block; `used` are the bytes up to their end. */
DEVICE_FN uint32_t walk_literals(struct walk *w, struct zstd_block *block, uint32_t *used) {
    const uint8_t *body = w->in + w->at;
    uint32_t type = body[0] & 3, format = body[0] >> 2 & 3;
    if (type < 2) {
        uint32_t header = format == 3 ? 3 : format == 1 ? 2 : 1;
        uint32_t value = header == 1 ? body[0] >> 3 : byte3(body) >> 4;
        block->literals = header == 2 ? value & 0xFFF : value;
        block->literals_in = header;
        block->literals_stored = type == 1 ? 1 : block->literals;
        block->flags |= type == 1 ? ZSTD_ONE_BYTE : 0;
    } else {
        if (block->in_bytes < 6)
            return COGPU_GPU_DAMAGED;
        uint32_t bits = format < 2 ? 10 : format == 2 ? 14 : 18, mask = (1u << bits) - 1;
        uint64_t header = byte4(body) | (uint64_t)body[4] << 32;
        block->literals = (uint32_t)(header >> 4) & mask;
        block->literals_stored = (uint32_t)(header >> (4 + bits)) & mask;
        block->literals_in = format < 2 ? 3 : format + 2;
        block->flags |= ZSTD_CODED | (type == 2 ? ZSTD_TREE : 0) | (format ? ZSTD_FOUR : 0);
        /* No encoder codes so few. */
        if (block->literals < (format ? 6 : 1) || block->literals_stored == 0)
            return COGPU_GPU_UNUSUAL;
        if (type == 2) {
            w->tree_at = take_quads(w, ZSTD_TREE_QUADS);
        } else if (w->tree_at == NOWHERE) {
            return COGPU_GPU_DAMAGED;
        }
        block->tree_at = w->tree_at;
    }
    *used = block->literals_in + block->literals_stored;
    return *used < block->in_bytes ? COGPU_GPU_DECODED : COGPU_GPU_DAMAGED;
}

/* The header of the sequences, which begins at `used`. */
DEVICE_FN uint32_t walk_sequences(struct walk *w, struct zstd_block *block, uint32_t used) {
    const uint8_t *body = w->in + w->at;
    uint32_t first = body[used++], count = first;
    if (first == 0)
        return used == block->in_bytes ? COGPU_GPU_DECODED : COGPU_GPU_DAMAGED;
    uint32_t more = first < 128 ? 0 : first < 255 ? 1 : 2;
    if (block->in_bytes - used < more + 1)
        return COGPU_GPU_DAMAGED;
    if (more)
        count = more == 1 ? ((first - 128) << 8) + body[used] : byte2(body + used) + 0x7F00;
    used += more;
    block->sequences = count;
    block->modes = body[used++];
    block->codes_in = used;
    if (count == 0 || block->modes & 3)
        return COGPU_GPU_UNUSUAL;
    if (count > ZSTD_BLOCK_BYTES / 3)
        return COGPU_GPU_DAMAGED;
    bool brings = false;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        brings |= (block->modes >> (6 - 2 * kind) & 3) != 3;
    if (brings)
        block->own_codes_at = take_quads(w, ZSTD_CODES_QUADS);
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        if ((block->modes >> (6 - 2 * kind) & 3) != 3)
            w->codes_at[kind] = block->own_codes_at;
        else if (w->codes_at[kind] == NOWHERE)
            return COGPU_GPU_DAMAGED;
        block->codes_at[kind] = w->codes_at[kind];
    }
    return COGPU_GPU_DECODED;
}

DEVICE_FN uint32_t walk_compressed(struct walk *w, struct zstd_block *block) {
    uint32_t used = 0, verdict;
    if (block->in_bytes < 3 || block->in_bytes >= ZSTD_BLOCK_BYTES)
        return COGPU_GPU_DAMAGED;
    verdict = walk_literals(w, block, &used);
    if (verdict == COGPU_GPU_DECODED)
        verdict = walk_sequences(w, block, used);
    if (verdict == COGPU_GPU_DECODED && block->flags & ZSTD_CODED) {
        block->literals_at = w->literals;
        w->literals += block->literals;
    }
    return verdict;
}

/* A block from its header on. */
DEVICE_FN uint32_t walk_block(struct walk *w, struct zstd_block *block) {
    if (w->end - w->at < 3)
        return COGPU_GPU_CUT_OFF;
    uint32_t header = byte3(w->in + w->at), type = header >> 1 & 3, size = header >> 3;
    w->at += 3;
    if (type == 3)
        return COGPU_GPU_DAMAGED;
    if (size > w->most_out)
        return COGPU_GPU_UNUSUAL;
    block->flags = w->flags | (header & 1 ? ZSTD_LAST : 0) | (type == 1 ? ZSTD_ONE_BYTE : 0);
    block->in_bytes = type == 1 ? 1 : size;
    block->window = w->window;
    block->content = w->content;
    block->most_out = w->most_out;
    block->sequences = block->literals_in = 0;
    block->literals = block->literals_stored = size;
    w->flags &= ~(uint32_t)ZSTD_FIRST;
    if (w->end - w->at < block->in_bytes)
        return COGPU_GPU_CUT_OFF;
    uint32_t verdict = type == 2 ? walk_compressed(w, block) : (uint32_t)COGPU_GPU_DECODED;
    if (verdict)
        return verdict;
    block->marks_at = take_quads(w, zstd_mark_quads(block->sequences));
    w->at += block->in_bytes;
    w->sequences += block->sequences;
    /* A sequence is at least three bytes of match. */
    uint32_t least = block->literals + 3 * block->sequences;
    w->least_out += least;
    if (least > w->most_out)
        return COGPU_GPU_DAMAGED;
    return w->least_out > w->room ? COGPU_GPU_TOO_LONG : COGPU_GPU_DECODED;
}

/* A frame after its magic number. With `blocks` they are noted there, else only counted. */
DEVICE_FN uint32_t walk_frame(struct walk *w, struct zstd_block *blocks, uint64_t in,
                              uint32_t tile) {
    uint32_t verdict = walk_frame_header(w), most = zstd_most_blocks(w->room);
    struct zstd_block block;
    for (bool is_last = false; !verdict && !is_last;) {
        block.tile = tile;
        block.in = block.sum = 0;
        verdict = walk_block(w, &block);
        if (verdict)
            break;
        is_last = block.flags & ZSTD_LAST;
        if (is_last && w->flags & ZSTD_HAS_SUM) {
            if (w->end - w->at < 4)
                return COGPU_GPU_CUT_OFF;
            block.sum = byte4(w->in + w->at);
        }
        /* Streaming encoders end with a block of nothing. */
        bool is_nothing =
            is_last && !(block.flags & ZSTD_FIRST) && block.literals + block.sequences == 0;
        if (blocks && is_nothing) {
            blocks[w->blocks - 1].flags |= ZSTD_LAST;
            blocks[w->blocks - 1].sum = block.sum;
        } else if (blocks) {
            block.in = in + w->at - block.in_bytes;
            blocks[w->blocks] = block;
        }
        if (is_last && w->flags & ZSTD_HAS_SUM)
            w->at += 4;
        w->blocks += !is_nothing;
        if (++w->things > most)
            return COGPU_GPU_UNUSUAL;
    }
    return verdict;
}

/* All frames of a tile. Bytes after them that begin no frame do not matter. The first quad and the
 * place of the first literal are given. */
DEVICE_FN uint32_t walk_tile(struct walk *w, const struct zstd_args *args, uint32_t tile,
                             struct zstd_block *blocks, uint32_t first_quad, uint32_t literals) {
    const cogpu_coded *coded = &args->coded[tile];
    w->in = args->stored + coded->in;
    w->at = 0;
    w->end = coded->in_bytes;
    w->room = coded->room;
    w->things = w->blocks = w->sequences = w->least_out = 0;
    w->quads = first_quad;
    w->literals = literals;
    for (bool is_first = true;; is_first = false) {
        uint32_t left = w->end - w->at;
        uint32_t magic = left < 4 ? 0 : byte4(w->in + w->at);
        if ((magic & 0xFFFFFFF0u) == 0x184D2A50u) {
            if (left < 8 || byte4(w->in + w->at + 4) > left - 8)
                return COGPU_GPU_CUT_OFF;
            w->at += 8 + byte4(w->in + w->at + 4);
            if (++w->things > zstd_most_blocks(w->room))
                return COGPU_GPU_UNUSUAL;
        } else if (magic == 0xFD2FB528u) {
            w->at += 4;
            uint32_t verdict = walk_frame(w, blocks, coded->in, tile);
            if (verdict)
                return verdict;
        } else {
            return is_first ? COGPU_GPU_DAMAGED : COGPU_GPU_DECODED;
        }
    }
}

KERNEL(cogpu_kernel_zstd_scan, struct zstd_args, struct nothing_shared, 32, 1) {
    uint32_t tile = block_index() * thread_count() + thread_index();
    if (tile >= args->tile_count)
        return;
    struct walk w;
    uint32_t verdict = walk_tile(&w, args, tile, NULL, 0, 0);
    struct zstd_tile need = {0, 0, 0, 0, 0, 0, {0, 0}};
    if (!verdict && w.quads > args->most_quads)
        verdict = COGPU_GPU_UNUSUAL;
    if (!verdict) {
        need.blocks = w.blocks;
        need.quads = w.quads;
        need.literals = w.literals;
        need.sequences = w.sequences;
    }
    args->tiles[tile] = need;
    args->verdicts[tile] = verdict;
}

/* In the time of so many literals of a block, a sequence is read. */
enum { LITERALS_PER_SEQUENCE = 6 };

/* Tiles of a round follow each other. Each fits a round, since scan has refused those that do not;
 * those that are left after the last round are the host's. */
KERNEL(cogpu_kernel_zstd_plan, struct zstd_args, struct nothing_shared, 32, 1) {
    uint32_t lane = lane_index(), count = args->tile_count;
    uint32_t at = 0, first = 0, round = 0;
    uint64_t blocks = 0, quads = 0; /* of the round so far */
    uint32_t more = 0; /* of the round so far: how much longer sequences take than literals */
    while (at < count && round < args->round_count) {
        uint32_t tile = at + lane;
        uint32_t own_blocks = tile < count ? args->tiles[tile].blocks : 0;
        uint32_t own_quads = tile < count ? args->tiles[tile].quads : 0;
        uint64_t sum_blocks = blocks + warp_scan(own_blocks),
                 sum_quads = quads + warp_scan(own_quads);
        bool fits = sum_blocks <= args->most_blocks && sum_quads <= args->most_quads;
        uint32_t taken = trailing_zeros(warp_ballot(!fits));
        if (lane < taken && tile < count) {
            more += args->tiles[tile].sequences / 256 * LITERALS_PER_SEQUENCE;
            more -= args->tiles[tile].literals / 256;
            args->tiles[tile].first_block = (uint32_t)(sum_blocks - own_blocks);
            args->tiles[tile].first_quad = (uint32_t)(sum_quads - own_quads);
        }
        if (taken > 0) {
            blocks = warp_read64(sum_blocks, taken - 1);
            quads = warp_read64(sum_quads, taken - 1);
        }
        at = lesser(at + taken, count);
        if (taken == WARP && at < count)
            continue;
        more = warp_sum(more);
        if (lane == 0) {
            struct zstd_round note = {first,    at, (uint32_t)blocks, first, (int32_t)more > 0,
                                      {0, 0, 0}};
            args->rounds[round] = note;
        }
        round++;
        first = at;
        more = 0;
        blocks = quads = 0;
    }
    for (uint32_t tile = at + lane; tile < count; tile += WARP)
        args->verdicts[tile] = COGPU_GPU_UNUSUAL;
    for (uint32_t i = round + lane; i < args->round_count; i += WARP) {
        struct zstd_round none = {count, count, 0, count, 0, {0, 0, 0}};
        args->rounds[i] = none;
    }
}

KERNEL(cogpu_kernel_zstd_fill, struct zstd_args, struct nothing_shared, 32, 1) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t stride = block_count() * thread_count();
    for (uint32_t tile = round->first_tile + block_index() * thread_count() + thread_index();
         tile < round->end_tile; tile += stride) {
        const struct zstd_tile *note = &args->tiles[tile];
        struct walk w;
        if (note->blocks)
            walk_tile(&w, args, tile, args->blocks + note->first_block, note->first_quad,
                      args->coded[tile].room - note->literals);
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

/* An entry of a table of codes, in a word: extra bits of its symbol 0-5, bits to read for the next
 * state 8-11, the symbol 16-21, and from 23 on what stands before those bits in the next state.
 * There are gaps so that three entries may be added: the sum tells all extra bits and the bits of
 * all three states. The first field is where it is since a shift looks at the low bits of a word
 * only. */
enum { ENTRY_EXTRA = 0, ENTRY_BITS = 8, ENTRY_SYMBOL = 16, ENTRY_BEFORE = 23 };

DEVICE_FN uint32_t entry_of(uint32_t before, uint32_t bits, uint32_t symbol, uint32_t extra) {
    return before << ENTRY_BEFORE | bits << ENTRY_BITS | symbol << ENTRY_SYMBOL |
           extra << ENTRY_EXTRA;
}

/* Of an entry, or of a sum of them. */
DEVICE_FN uint32_t entry_extra(uint32_t entry) {
    return entry >> ENTRY_EXTRA & 63;
}

DEVICE_FN uint32_t entry_bits(uint32_t entry) {
    return entry >> ENTRY_BITS & 31;
}

enum { LENGTH_SYMBOLS = 36, OFFSET_SYMBOLS = 32, MATCH_SYMBOLS = 53, WEIGHT_SYMBOLS = 13 };
enum { WEIGHT_CODE = ZSTD_CODE_KINDS, WEIGHT_LOG = 6 };

DEVICE_TABLE uint8_t length_extra[LENGTH_SYMBOLS] = {0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0,
                                                     0, 0, 0, 0, 1, 1,  1,  1,  2,  2,  3,  3,
                                                     4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
DEVICE_TABLE uint8_t match_extra[MATCH_SYMBOLS] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
    0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
DEVICE_TABLE int8_t length_shares[LENGTH_SYMBOLS] = {4, 3, 2, 2, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 1, 1, 1, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
DEVICE_TABLE int8_t offset_shares[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
DEVICE_TABLE int8_t match_shares[MATCH_SYMBOLS] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

enum { HEADER_STAGED = 192 };

/* What a warp works with. */
struct tables_room {
    uint8_t header[HEADER_STAGED]; /* stored bytes, zeros after their end */
    int16_t shares[64];  /* of the states of a table, for each symbol; -1: less than one */
    uint16_t next[64];   /* number of a symbol's next state */
    uint8_t ranked[512]; /* symbols in order, as often as they have shares */
    uint8_t spread[512]; /* the symbol of each state */
    uint32_t small[1 << WEIGHT_LOG];
    uint8_t weights[256], by_weight[256];
    uint32_t counts[16];
};

struct tables_shared {
    struct tables_room rooms[4];
};

DEVICE_FN uint32_t symbols_of(uint32_t kind) {
    return kind == ZSTD_LENGTH_CODE   ? LENGTH_SYMBOLS
           : kind == ZSTD_OFFSET_CODE ? OFFSET_SYMBOLS
           : kind == ZSTD_MATCH_CODE  ? MATCH_SYMBOLS
                                      : WEIGHT_SYMBOLS;
}

DEVICE_FN uint32_t most_log_of(uint32_t kind) {
    return kind == WEIGHT_CODE ? WEIGHT_LOG : kind == ZSTD_OFFSET_CODE ? 8 : 9;
}

DEVICE_FN uint32_t extra_bits_of(uint32_t kind, uint32_t symbol) {
    return kind == ZSTD_LENGTH_CODE   ? length_extra[symbol]
           : kind == ZSTD_OFFSET_CODE ? symbol
           : kind == ZSTD_MATCH_CODE  ? match_extra[symbol]
                                      : 0;
}

/* Where the tables of a set begin, in words. */
DEVICE_FN uint32_t codes_place(uint32_t kind) {
    return 4 + (kind == ZSTD_LENGTH_CODE ? 0 : kind == ZSTD_MATCH_CODE ? 512 : 1024);
}

/* `bytes` of them, or as many as fit; a collective. */
DEVICE_FN void stage_header(struct tables_room *room, const uint8_t *from, uint32_t bytes) {
    sync_warp();
    for (uint32_t i = lane_index(); i < HEADER_STAGED; i += WARP)
        room->header[i] = i < bytes ? from[i] : 0;
    sync_warp();
}

/* Reads the shares of the symbols, which stand in the staged header from `from` on. By one lane.
 * Returns the bytes read, 0 where they are no good. */
DEVICE_FN uint32_t read_shares(struct tables_room *room, uint32_t from, uint32_t bytes,
                               uint32_t kind, uint32_t *symbols, uint32_t *log) {
    const uint8_t *header = room->header + from;
    uint32_t most_symbols = symbols_of(kind), count = 0, bit = 4;
    bytes = lesser(bytes, HEADER_STAGED - 4 - from);
    *log = 5 + (header[0] & 15);
    if (*log > most_log_of(kind))
        return 0;
    int32_t left = 1 << *log;
    while (left > 0) {
        if (bit / 8 >= bytes || count >= most_symbols)
            return 0;
        uint32_t next = byte3(header + bit / 8) >> bit % 8;
        uint32_t width = top_bit((uint32_t)left + 1) + 1;
        uint32_t short_ones = (1u << width) - 2 - (uint32_t)left; /* values of width - 1 bits */
        uint32_t value = next & ((1u << (width - 1)) - 1);
        if (value < short_ones) {
            bit += width - 1;
        } else {
            value = next & ((1u << width) - 1);
            bit += width;
            if (value >= 1u << (width - 1))
                value -= short_ones;
        }
        int32_t share = (int32_t)value - 1;
        room->shares[count++] = (int16_t)share;
        left -= share < 0 ? 1 : share;
        for (uint32_t zeros = share == 0 ? 3 : 0; zeros == 3;) {
            if (bit / 8 >= bytes)
                return 0;
            zeros = byte2(header + bit / 8) >> bit % 8 & 3;
            bit += 2;
            if (count + zeros > most_symbols)
                return 0;
            for (uint32_t i = 0; i < zeros; i++)
                room->shares[count++] = 0;
        }
    }
    uint32_t used = (bit + 7) / 8;
    *symbols = count;
    return left < 0 || count < 2 || used > bytes ? 0 : used;
}

/* Builds the table of states from the shares. A collective. */
DEVICE_FN void build_codes(struct tables_room *room, uint32_t symbols, uint32_t log, uint32_t kind,
                           uint32_t *table) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1, size = 1u << log;
    sync_warp();
    /* Symbols of less than one share have the last states, one each. */
    uint32_t rare = 0;
    for (uint32_t first = 0; first < symbols; first += WARP) {
        uint32_t symbol = first + lane;
        int32_t share = symbol < symbols ? room->shares[symbol] : 0;
        uint32_t rares = warp_ballot(share < 0);
        if (share < 0)
            room->spread[size - 1 - rare - count_ones(rares & below)] = (uint8_t)symbol;
        rare += count_ones(rares);
        if (symbol < symbols)
            room->next[symbol] = (uint16_t)(share < 0 ? 1 : share);
    }
    for (uint32_t symbol = 0, rank = 0; symbol < symbols; symbol++) {
        int32_t share = room->shares[symbol];
        for (int32_t i = (int32_t)lane; i < share; i += WARP)
            room->ranked[rank + (uint32_t)i] = (uint8_t)symbol;
        rank += share > 0 ? (uint32_t)share : 0;
    }
    sync_warp();
    /* The others go round in steps and leave those out. */
    uint32_t step = size / 2 + size / 8 + 3, rank = 0;
    for (uint32_t i = lane; i < size; i += WARP) {
        uint32_t state = i * step & (size - 1);
        bool is_free = state < size - rare;
        uint32_t frees = warp_ballot(is_free);
        if (is_free)
            room->spread[state] = room->ranked[rank + count_ones(frees & below)];
        rank += count_ones(frees);
    }
    sync_warp();
    for (uint32_t state = lane; state < size; state += WARP) {
        uint32_t symbol = room->spread[state], same = warp_match(symbol);
        uint32_t number = room->next[symbol] + count_ones(same & below);
        sync_warp();
        if (same >> lane == 1)
            room->next[symbol] = (uint16_t)(number + 1);
        uint32_t bits = log - top_bit(number);
        table[state] = entry_of(number - (size >> bits), bits, symbol, extra_bits_of(kind, symbol));
        sync_warp();
    }
}

/* Weights that are coded in `bytes` bytes of the staged header from its second on. Returns how
 * many, or 0. A collective. */
DEVICE_FN uint32_t read_weights(struct tables_room *room, uint32_t bytes) {
    uint32_t used = 0, symbols = 0, log = 0, count = 0;
    if (lane_index() == 0)
        used = read_shares(room, 1, bytes, WEIGHT_CODE, &symbols, &log);
    used = warp_read(used, 0);
    symbols = warp_read(symbols, 0);
    log = warp_read(log, 0);
    if (used == 0 || used >= bytes || room->header[bytes] == 0)
        return 0;
    build_codes(room, symbols, log, WEIGHT_CODE, room->small);
    sync_warp();
    if (lane_index() == 0) {
        const uint8_t *stream = room->header + 1 + used;
        int32_t bit = (int32_t)(8 * (bytes - used - 1) + top_bit(room->header[bytes]));
        uint32_t mine, other;
        bit -= (int32_t)log;
        mine = bit < 0 ? 0 : byte2(stream + bit / 8) >> bit % 8 & ((1u << log) - 1);
        bit -= (int32_t)log;
        other = bit < 0 ? 0 : byte2(stream + bit / 8) >> bit % 8 & ((1u << log) - 1);
        /* Two states take turns. The one that cannot read on is followed by the other's symbol. */
        bool is_over = bit < 0;
        while (!is_over && count < 254) {
            uint32_t entry = room->small[mine];
            int32_t bits = (int32_t)entry_bits(entry);
            room->weights[count++] = (uint8_t)(entry >> ENTRY_SYMBOL & 63);
            if (bit < bits) {
                room->weights[count++] = (uint8_t)(room->small[other] >> ENTRY_SYMBOL & 63);
                is_over = true;
            } else {
                bit -= bits;
                mine = other;
                other = (entry >> ENTRY_BEFORE << bits) +
                        (byte2(stream + bit / 8) >> bit % 8 & ((1u << bits) - 1));
            }
        }
        count = is_over ? count : 0;
    }
    return warp_read(count, 0);
}

/* The table of a tree from its weights: for all 2^log ways that bits may go on, symbol << 8 and the
 * bits of its code. Codes of small weight come first, among them those of small symbols. Returns
 * the log, or 0. A collective. */
DEVICE_FN uint32_t build_tree(struct tables_room *room, uint32_t count, uint16_t *table) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1, sum = 0;
    bool is_bad = count == 0;
    sync_warp();
    for (uint32_t i = lane; i < count; i += WARP) {
        uint32_t weight = room->weights[i];
        is_bad |= weight > ZSTD_TREE_LOG;
        sum += weight > ZSTD_TREE_LOG ? 0 : (1u << weight) >> 1;
    }
    sum = warp_sum(sum);
    if (warp_any(is_bad) || sum == 0)
        return 0;
    uint32_t log = top_bit(sum) + 1, rest = (1u << log) - sum;
    if (log > ZSTD_TREE_LOG || rest & (rest - 1))
        return 0;
    if (lane == 0)
        room->weights[count] = (uint8_t)(top_bit(rest) + 1);
    count++;
    if (lane < 16)
        room->counts[lane] = 0;
    sync_warp();
    for (uint32_t first = 0; first < count; first += WARP) {
        uint32_t weight = first + lane < count ? room->weights[first + lane] : 0;
        uint32_t same = warp_match(weight);
        if (same >> lane == 1)
            room->counts[weight] += count_ones(same);
        sync_warp();
    }
    if (room->counts[1] == 0) /* the longest codes come in pairs */
        return 0;
    uint32_t own = lane > 0 && lane < 16 ? room->counts[lane] : 0, starts = warp_scan(own) - own;
    sync_warp();
    if (lane < 16)
        room->counts[lane] = starts; /* where the symbols of a weight begin */
    sync_warp();
    for (uint32_t first = 0; first < count; first += WARP) {
        uint32_t weight = first + lane < count ? room->weights[first + lane] : 0;
        uint32_t same = warp_match(weight), at = 0;
        if (weight)
            at = room->counts[weight] + count_ones(same & below);
        sync_warp();
        if (weight) {
            room->by_weight[at] = (uint8_t)(first + lane);
            if (same >> lane == 1)
                room->counts[weight] = at + 1;
        }
        sync_warp();
    }
    uint32_t at = 0;
    for (uint32_t weight = 1; weight <= log; weight++) {
        uint32_t begin = warp_read(starts, weight), symbols = warp_read(own, weight);
        uint32_t entries = symbols << (weight - 1);
        for (uint32_t i = lane; i < entries; i += WARP)
            table[at + i] = (uint16_t)((uint32_t)room->by_weight[begin + (i >> (weight - 1))] << 8 |
                                       (log + 1 - weight));
        at += entries;
    }
    return log;
}

/* The tree of the block's literals. False where it is no good. */
DEVICE_FN bool make_tree(const struct zstd_args *args, struct tables_room *room,
                         struct zstd_block *block) {
    uint32_t lane = lane_index(), stored = block->literals_stored;
    stage_header(room, args->stored + block->in + block->literals_in, stored);
    uint32_t first = room->header[0], count, used;
    if (first < 128) {
        used = 1 + first;
        if (used > stored)
            return false;
        count = read_weights(room, first);
    } else {
        count = first - 127;
        used = 1 + (count + 1) / 2;
        if (used > stored)
            return false;
        for (uint32_t i = lane; i < count; i += WARP)
            room->weights[i] =
                (uint8_t)(i & 1 ? room->header[1 + i / 2] & 15 : room->header[1 + i / 2] >> 4);
    }
    uint32_t *place = (uint32_t *)quad_at(args, block->tree_at);
    uint32_t log = build_tree(room, count, (uint16_t *)(place + 4));
    if (lane == 0) {
        place[0] = log;
        block->literals_in += used;
        block->literals_stored -= used;
    }
    return log != 0;
}

/* Makes the tables for sequences that the block brings, and finds their stream. */
DEVICE_FN bool make_codes(const struct zstd_args *args, struct tables_room *room,
                          struct zstd_block *block) {
    uint32_t lane = lane_index(), at = block->codes_in, end = block->in_bytes;
    const uint8_t *body = args->stored + block->in;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        uint32_t mode = block->modes >> (6 - 2 * kind) & 3, log = 0, symbols = 0;
        if (mode == 3)
            continue;
        uint32_t *tables = (uint32_t *)quad_at(args, block->own_codes_at);
        uint32_t *table = tables + codes_place(kind);
        if (mode == 1) {
            uint32_t symbol = at < end ? body[at] : 255;
            at++;
            if (symbol >= symbols_of(kind))
                return false;
            if (lane == 0)
                table[0] = entry_of(0, 0, symbol, extra_bits_of(kind, symbol));
        } else {
            if (mode == 0) {
                symbols = kind == ZSTD_OFFSET_CODE ? 29 : symbols_of(kind);
                log = kind == ZSTD_OFFSET_CODE ? 5 : 6;
                sync_warp();
                for (uint32_t i = lane; i < symbols; i += WARP)
                    room->shares[i] = kind == ZSTD_LENGTH_CODE   ? length_shares[i]
                                      : kind == ZSTD_OFFSET_CODE ? offset_shares[i]
                                                                 : match_shares[i];
            } else {
                uint32_t left = at < end ? end - at : 0, used = 0;
                stage_header(room, body + at, left);
                if (lane == 0)
                    used = read_shares(room, 0, left, kind, &symbols, &log);
                used = warp_read(used, 0);
                symbols = warp_read(symbols, 0);
                log = warp_read(log, 0);
                if (used == 0)
                    return false;
                at += used;
            }
            build_codes(room, symbols, log, kind, table);
        }
        if (lane == 0)
            tables[kind] = log;
    }
    if (at >= end || body[end - 1] == 0)
        return false;
    if (lane == 0) {
        block->bits_in = at;
        block->bits_bytes = end - at;
    }
    return true;
}

/* A block has two warps: one for its tree, one for its other tables. */
KERNEL(cogpu_kernel_zstd_tables, struct zstd_args, struct tables_shared, 128, 4) {
    struct tables_room *room = &shared->rooms[warp_index()];
    uint32_t warps = thread_count() / WARP, count = 2 * args->rounds[args->round].blocks;
    for (uint32_t i = block_index() * warps + warp_index(); i < count; i += block_count() * warps) {
        struct zstd_block *block = &args->blocks[i / 2];
        bool is_good = true;
        if (i % 2 == 0 && block->sequences)
            is_good = make_codes(args, room, block);
        else if (i % 2 && block->flags & ZSTD_TREE)
            is_good = make_tree(args, room, block);
        if (!is_good && lane_index() == 0)
            refuse(args, block->tile, COGPU_GPU_DAMAGED);
    }
}

/* ---- streams that are read backwards --------------------------------------------------------- */

/* Such a stream is read through 16-byte pieces at multiples of 16, counted from the one that holds
 * its first byte. `bit` is the number of bits, from the begin of that piece, below the place that
 * is read next. */
struct backward {
    const uint8_t *base;
    int32_t bit, begin; /* at its end `bit` is `begin` */
};

/* The stream's last byte must not be 0: its highest bit is where the stream begins. */
DEVICE_FN struct backward backward_from(const uint8_t *stream, uint32_t bytes) {
    struct backward b;
    uint32_t skip = (uint32_t)((uintptr_t)stream % ZSTD_QUAD);
    b.base = stream - skip;
    b.begin = (int32_t)(8 * skip);
    b.bit = b.begin + (int32_t)(8 * (bytes - 1) + top_bit(stream[bytes - 1]));
    return b;
}

/* Memory is a thousand cycles away, so the line that is next but one is asked for already: for each
 * piece of a line, since to ask once only would take a branch, which costs more. */
enum { PIECES_AHEAD = 16 };

DEVICE_FN void prefetch_piece(const uint8_t *base, int32_t piece) {
    int32_t ahead = piece > PIECES_AHEAD ? piece - PIECES_AHEAD : 0;
    prefetch(base + (uint32_t)ahead * (size_t)ZSTD_QUAD);
}

DEVICE_FN words4 load_piece(const uint8_t *base, int32_t piece) {
    return load_words4(base + (uint32_t)piece * (size_t)ZSTD_QUAD);
}

/* ---- literals -------------------------------------------------------------------------------- */

enum { LITERAL_BLOCKS = 8, LITERAL_RING = 32, LITERAL_PIECES = LITERAL_RING / 4 };

struct literals_shared {
    uint16_t tables[LITERAL_BLOCKS][1 << ZSTD_TREE_LOG];
    /* Of each lane: the words of its stream round its place, and room for a piece that is not
     * wanted, since to store it costs less than to ask. */
    uint32_t rings[LITERAL_RING + 4][WARP];
};

struct literal_lane {
    struct backward in;
    uint8_t *out;
    uint32_t count; /* literals to decode */
    uint32_t log;
    bool is_bad;
};

DEVICE_FN void literal_copy_table(const struct zstd_args *args, struct literals_shared *shared,
                                  const struct zstd_block *block, uint32_t place) {
    const uint8_t *from = quad_at(args, block->tree_at);
    uint32_t log = lesser(load_u32_aligned(from), ZSTD_TREE_LOG);
    uint32_t quads = ((2u << log) + ZSTD_QUAD - 1) / ZSTD_QUAD;
    for (uint32_t i = lane_index(); i < quads; i += WARP)
        store_words4((uint8_t *)shared->tables[place] + i * ZSTD_QUAD,
                     load_words4(from + (1 + i) * ZSTD_QUAD));
}

/* Stream `number` of the block's. */
DEVICE_FN struct literal_lane literal_lane_of(const struct zstd_args *args,
                                              const struct zstd_block *block, uint32_t number) {
    struct literal_lane s;
    const uint8_t *stored = args->stored + block->in + block->literals_in;
    uint32_t from = 0, bytes = block->literals_stored;
    s.in.base = args->pool;
    s.in.bit = s.in.begin = 0;
    s.out = args->decoded + args->coded[block->tile].out + block->literals_at;
    s.count = block->literals;
    s.log = lesser(load_u32_aligned(quad_at(args, block->tree_at)), ZSTD_TREE_LOG);
    s.is_bad = s.log == 0;
    if (block->flags & ZSTD_FOUR) {
        uint32_t share = (s.count + 3) / 4;
        uint32_t sizes[3] = {0, 0, 0};
        if (bytes < 10)
            s.is_bad = true;
        else
            for (uint32_t i = 0; i < 3; i++)
                sizes[i] = byte2(stored + 2 * i);
        uint32_t others = 6 + sizes[0] + sizes[1] + sizes[2];
        s.is_bad |= others >= bytes || 3 * share > s.count;
        from = 6 + (number > 0 ? sizes[0] : 0) + (number > 1 ? sizes[1] : 0) +
               (number > 2 ? sizes[2] : 0);
        bytes = number == 0   ? sizes[0]
                : number == 1 ? sizes[1]
                : number == 2 ? sizes[2]
                              : bytes - others;
        s.out += number * share;
        s.count = number < 3 ? share : s.count - 3 * share;
    } else if (number > 0) {
        s.count = 0;
    }
    if (s.count && !s.is_bad)
        s.is_bad = bytes == 0 || stored[from + bytes - 1] == 0;
    if (s.is_bad)
        s.count = 0;
    if (s.count)
        s.in = backward_from(stored + from, bytes);
    return s;
}

DEVICE_FN void literal_keep_piece(struct literals_shared *shared, int32_t piece, bool is_wanted,
                                  words4 words) {
    uint32_t at = is_wanted ? (uint32_t)piece % LITERAL_PIECES * 4 : LITERAL_RING;
    uint32_t lane = lane_index();
    shared->rings[at][lane] = words.x;
    shared->rings[at + 1][lane] = words.y;
    shared->rings[at + 2][lane] = words.z;
    shared->rings[at + 3][lane] = words.w;
}

DEVICE_FN uint32_t literal_word(const struct literals_shared *shared, int32_t word) {
    return shared->rings[(uint32_t)word % LITERAL_RING][lane_index()];
}

/* The place in a stream, the word that it is in with the two below, and, on their own since they
 * are needed first, the next bits of the stream: those of a code at least, at the top. */
struct literal_place {
    int32_t bit;
    uint32_t a, b, c, next;
};

DEVICE_FN struct literal_place literal_place_at(const struct literals_shared *shared, int32_t bit) {
    int32_t word = bit >> 5;
    struct literal_place place = {bit, literal_word(shared, word), literal_word(shared, word - 1),
                                  literal_word(shared, word - 2), 0};
    place.next = funnel_right(place.b, place.a, (uint32_t)bit);
    return place;
}

DEVICE_FN uint8_t literal_one(const struct literals_shared *shared, const uint16_t *table,
                              uint32_t down, struct literal_place *place) {
    uint32_t entry = table[place->next >> down];
    *place = literal_place_at(shared, place->bit - (int32_t)(entry & 31));
    return (uint8_t)(entry >> 8);
}

/* Four codes are 44 bits at most: the words that are next are the same, or one or two further. Of
 * the 64 bits that the four are taken from enough are left for the next code, and the second of
 * four is all in the upper word: both are looked up while the words, or the lower of them, are
 * found. */
DEVICE_FN uint32_t literal_four(const struct literals_shared *shared, const uint16_t *table,
                                uint32_t down, struct literal_place *place) {
    int32_t word = place->bit >> 5;
    uint32_t a = place->a, b = place->b, c = place->c, shift = (uint32_t)place->bit;
    uint32_t d = literal_word(shared, word - 3), e = literal_word(shared, word - 4);
    uint32_t high = funnel_right(b, a, shift), low = funnel_right(c, b, shift), e0, e1, e2, e3;
    e0 = table[place->next >> down];
    e1 = table[funnel_left(0, high, e0) >> down];
    high = funnel_left(low, high, e0);
    low = funnel_left(0, low, e0);
    high = funnel_left(low, high, e1);
    low = funnel_left(0, low, e1);
    e2 = table[high >> down];
    high = funnel_left(low, high, e2);
    low = funnel_left(0, low, e2);
    e3 = table[high >> down];
    place->next = funnel_left(low, high, e3);
    place->bit -= (int32_t)((e0 + e1 + e2 + e3) & 255);
    int32_t further = word - (place->bit >> 5);
    place->a = further == 0 ? a : further == 1 ? b : c;
    place->b = further == 0 ? b : further == 1 ? c : d;
    place->c = further == 0 ? c : further == 1 ? d : e;
    return pick_bytes(pick_bytes(e0, e1, 0x51), pick_bytes(e2, e3, 0x51), 0x5410);
}

/* A piece of a stream on its way to the ring. */
struct literal_piece {
    words4 words;
    int32_t number;
    bool is_wanted;
};

DEVICE_FN struct literal_piece literal_fetch(const uint8_t *base, int32_t bit, int32_t *kept) {
    struct literal_piece piece = {{0, 0, 0, 0}, 0, false};
    int32_t lowest = (bit >> 7) - (LITERAL_PIECES - 1);
    piece.is_wanted = *kept > (lowest < 0 ? 0 : lowest);
    *kept -= piece.is_wanted;
    piece.number = *kept;
    if (piece.is_wanted)
        piece.words = load_piece(base, *kept);
    return piece;
}

DEVICE_FN void literal_keep(struct literals_shared *shared, const struct literal_piece *piece) {
    literal_keep_piece(shared, piece->number, piece->is_wanted, piece->words);
}

/* Eight codes are 11 bytes at most, so a piece for eight is enough; it has the time of eight more
 * to arrive. */
DEVICE_FN void literal_decode(struct literals_shared *shared, const uint16_t *table,
                              struct literal_lane *s) {
    int32_t kept = (s->in.bit >> 7) + 1; /* pieces from this one on are in the ring */
    uint32_t count = s->count, down = 32 - s->log, at = 0;
    for (uint32_t i = 0; i < LITERAL_PIECES && kept > 0; i++) {
        kept--;
        literal_keep_piece(shared, kept, true, load_piece(s->in.base, kept));
    }
    struct literal_place place = literal_place_at(shared, s->in.bit);
    uint32_t head = lesser((uint32_t)(-(uintptr_t)s->out) & 15, count);
    for (; at < head; at++)
        s->out[at] = literal_one(shared, table, down, &place);
    struct literal_piece even, odd = {{0, 0, 0, 0}, 0, false};
    for (; at + 16 <= count; at += 16) {
        words4 out;
        prefetch_piece(s->in.base, kept);
        even = literal_fetch(s->in.base, place.bit, &kept);
        out.x = literal_four(shared, table, down, &place);
        out.y = literal_four(shared, table, down, &place);
        literal_keep(shared, &odd);
        odd = literal_fetch(s->in.base, place.bit, &kept);
        out.z = literal_four(shared, table, down, &place);
        out.w = literal_four(shared, table, down, &place);
        literal_keep(shared, &even);
        store_words4(s->out + at, out);
    }
    literal_keep(shared, &odd);
    for (; at < count; at++)
        s->out[at] = literal_one(shared, table, down, &place);
    s->is_bad |= place.bit != s->in.begin;
}

/* The literals of the blocks from `first` on. By a warp. */
DEVICE_FN void read_literals(const struct zstd_args *args, struct literals_shared *shared,
                             uint32_t first, uint32_t count) {
    uint32_t lane = lane_index();
    sync_warp();
    for (uint32_t i = 0; i < LITERAL_BLOCKS && first + i < count; i++) {
        const struct zstd_block *block = &args->blocks[first + i];
        if (block->flags & ZSTD_CODED && !is_refused(args, block->tile))
            literal_copy_table(args, shared, block, i);
    }
    sync_warp();
    uint32_t own = first + lane / 4;
    if (own >= count)
        return;
    const struct zstd_block *block = &args->blocks[own];
    if (!(block->flags & ZSTD_CODED) || is_refused(args, block->tile))
        return;
    struct literal_lane s = literal_lane_of(args, block, lane % 4);
    if (s.count)
        literal_decode(shared, shared->tables[lane / 4], &s);
    if (s.is_bad)
        refuse(args, block->tile, COGPU_GPU_DAMAGED);
}

/* ---- sequences: marks ------------------------------------------------------------------------ */

enum { CHAINS = 16, REPLICAS = WARP / CHAINS, CHAIN_RING = 64, CHAIN_PIECES = CHAIN_RING / 4 };
/* Memory is so far that a refill is for so many marks. Without a careful step a sequence is 8 bytes
 * at most, so half a ring is enough; with one, the ring is refilled at each. */
enum { CHAIN_TURNS = 2, CHAIN_REFILL = CHAIN_PIECES / 2, CHAIN_BRINGS = CHAIN_REFILL / REPLICAS };
/* Bytes from one state of a chain to the next. */
enum { CHAIN_STATE = 4 * CHAINS };
/* The extra bits of a sequence up to which the chain goes without looking: with the bits of its
 * states they are 64 at most, and one bit of a sum tells that there are more. */
enum { CHAIN_EXTRA = 31, CHAIN_MORE = (CHAIN_EXTRA + 1) << ENTRY_EXTRA };

/* A mark: the place in the stream where the extra bits of a sequence end, and its states. */
enum { MARK_MATCH = 9, MARK_OFFSET = 18 };

struct chains_shared {
    /* Lengths, matches, offsets; the chains side by side, so that each has its own banks. */
    uint32_t tables[512 + 512 + 256][CHAINS];
    /* Of each chain: the words of its stream round its place, the last four also before the first.
     */
    uint32_t rings[CHAINS][CHAIN_RING + 4];
};

/* Where a chain is: three states as places in shared memory, those of the first table. */
struct chain {
    uint32_t minus_bit; /* what is read is added: a `bit` of struct backward would sink */
    uint32_t length, match, offset;
    uint32_t column; /* the place of its first state */
    uint32_t ring;   /* and of its ring */
    const uint8_t *base;
    int32_t kept;   /* pieces of the stream from this one on are in the ring */
    uint32_t count; /* of sequences */
    uint32_t logs[ZSTD_CODE_KINDS];
};

DEVICE_FN void chain_copy_table(const struct zstd_args *args, struct chains_shared *shared,
                                uint32_t tables_at, uint32_t kind, uint32_t chain, uint32_t replica,
                                uint32_t *log) {
    const uint32_t *tables = (const uint32_t *)quad_at(args, tables_at);
    uint32_t place = codes_place(kind);
    *log = lesser(tables[kind], 9);
    UNROLL_BY_4
    for (uint32_t i = 4 * replica; i < 1u << *log; i += 4 * REPLICAS) {
        words4 entries = load_words4(tables + place + i);
        uint32_t(*to)[CHAINS] = &shared->tables[place - 4 + i];
        to[0][chain] = entries.x;
        to[1][chain] = entries.y;
        to[2][chain] = entries.z;
        to[3][chain] = entries.w;
    }
}

/* The 64 bits of the stream below a place. */
DEVICE_FN void chain_window(const struct chains_shared *shared, uint32_t ring, uint32_t minus_bit,
                            uint32_t *high, uint32_t *low) {
    uint32_t place = (~(minus_bit >> 3) & (4 * CHAIN_RING - 4)) + ring;
    uint32_t a = shared_word(shared, place), b = shared_word(shared, place - 4),
             c = shared_word(shared, place - 8);
    *high = funnel_left(b, a, minus_bit);
    *low = funnel_left(c, b, minus_bit);
}

/* The place of the state that an entry leads to, with bits from the top of a word. */
DEVICE_FN uint32_t chain_next(const struct chain *c, uint32_t entry, uint32_t word) {
    return funnel_left(word, entry >> ENTRY_BEFORE, entry >> ENTRY_BITS) * CHAIN_STATE + c->column;
}

/* From one sequence to the next. Returns the sum of the entries. Without `is_careful` the extra
 * bits must be CHAIN_EXTRA at most. */
DEVICE_FN uint32_t chain_step(const struct chains_shared *shared, struct chain *c,
                              bool is_careful) {
    uint32_t length = shared_word(shared, c->length);
    uint32_t match = shared_word(shared, c->match + 512 * CHAIN_STATE);
    uint32_t offset = shared_word(shared, c->offset + 1024 * CHAIN_STATE);
    uint32_t high, low, sum = length + match + offset;
    if (is_careful) {
        chain_window(shared, c->ring, c->minus_bit + entry_extra(sum), &high, &low);
    } else {
        chain_window(shared, c->ring, c->minus_bit, &high, &low);
        high = funnel_left(low, high, sum >> ENTRY_EXTRA);
    }
    /* Now `high` begins with the bits of the next states. */
    c->minus_bit = plus_two_bytes(c->minus_bit, sum);
    uint32_t length_bits = length >> ENTRY_BITS, match_bits = match >> ENTRY_BITS;
    c->length = chain_next(c, length, high);
    c->match = chain_next(c, match, funnel_left(0, high, length_bits));
    c->offset = chain_next(c, offset, funnel_left(0, high, length_bits + match_bits));
    return sum;
}

/* Asks for the pieces of the stream that the ring has room for where nothing above a place is
 * wanted any more. They are there after chain_keep. */
DEVICE_FN void chain_fetch(uint32_t *ring, struct chain *c, uint32_t minus_bit, uint32_t replica) {
    int32_t bit = -(int32_t)minus_bit;
    int32_t lowest = (bit >> 7) - (CHAIN_PIECES - 1), end = c->kept - CHAIN_REFILL;
    lowest = lowest < 0 ? 0 : lowest;
    end = end < lowest ? lowest : end;
    UNROLL
    for (int32_t i = 0; i < CHAIN_BRINGS; i++) {
        int32_t piece = c->kept - 1 - (int32_t)replica - i * REPLICAS;
        uint32_t at = (uint32_t)piece % CHAIN_PIECES;
        const uint8_t *from = c->base + (uint32_t)piece * (size_t)ZSTD_QUAD;
        if (piece >= end)
            copy_to_shared_16(ring + 4 + 4 * at, from);
        if (piece >= end && at == CHAIN_PIECES - 1)
            copy_to_shared_16(ring, from);
    }
    /* They are of two lines at most. */
    prefetch_piece(c->base, replica ? end : c->kept);
    c->kept = c->kept < end ? c->kept : end;
    copies_commit();
}

/* By all replicas, which have read by then what others will be put over. */
DEVICE_FN void chain_keep(void) {
    copies_wait();
    sync_warp();
}

/* Copies the tables and finds the stream. By the chain's lanes. */
DEVICE_FN void chain_open(const struct zstd_args *args, struct chains_shared *shared,
                          const struct zstd_block *block, uint32_t replica, uint32_t chain,
                          struct chain *c) {
    struct backward in =
        backward_from(args->stored + block->in + block->bits_in, block->bits_bytes);
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        chain_copy_table(args, shared, block->codes_at[kind], kind, chain, replica, &c->logs[kind]);
    c->base = in.base;
    c->minus_bit = 0 - (uint32_t)in.bit;
    c->count = block->sequences;
}

/* Fills the ring and reads the first states. */
DEVICE_FN void chain_begin(struct chains_shared *shared, struct chain *c, uint32_t chain,
                           uint32_t replica) {
    uint32_t high, low, *ring = shared->rings[chain];
    const uint32_t *logs = c->logs;
    c->kept = (-(int32_t)c->minus_bit >> 7) + 1;
    c->column = shared_place(shared, &shared->tables[0][chain]);
    c->ring = shared_place(shared, ring + 4);
    for (uint32_t i = 0; i < CHAIN_PIECES / CHAIN_REFILL; i++)
        chain_fetch(ring, c, c->minus_bit, replica);
    chain_keep();
    chain_window(shared, c->ring, c->minus_bit, &high, &low);
    c->length = funnel_left(high, 0, logs[ZSTD_LENGTH_CODE]) * CHAIN_STATE + c->column;
    high = funnel_left(0, high, logs[ZSTD_LENGTH_CODE]);
    c->offset = funnel_left(high, 0, logs[ZSTD_OFFSET_CODE]) * CHAIN_STATE + c->column;
    high = funnel_left(0, high, logs[ZSTD_OFFSET_CODE]);
    c->match = funnel_left(high, 0, logs[ZSTD_MATCH_CODE]) * CHAIN_STATE + c->column;
    c->minus_bit += logs[0] + logs[1] + logs[2];
    sync_warp();
}

/* Once more, with a look at the stream after the extra bits, and a refill for each sequence. */
DEVICE_FN void chain_steps_again(struct chains_shared *shared, struct chain *c, uint32_t chain,
                                 uint32_t replica) {
    chain_keep();
    for (uint32_t i = 0; i < ZSTD_MARKED; i++) {
        chain_step(shared, c, true);
        sync_warp();
        chain_fetch(shared->rings[chain], c, c->minus_bit, replica);
        chain_keep();
    }
}

/* The next ZSTD_MARKED sequences of all chains of the warp; those that have ended run on over
 * noise. A refill is asked for between two of them, where it is done while they wait. */
DEVICE_FN void chain_steps(struct chains_shared *shared, struct chain *c, bool is_over,
                           bool is_refilled, uint32_t chain, uint32_t replica) {
    struct chain before = *c;
    uint32_t any = 0;
    UNROLL
    for (uint32_t i = 0; i < ZSTD_MARKED; i++) {
        any |= chain_step(shared, c, false);
        if (is_refilled && i == 1)
            chain_fetch(shared->rings[chain], c, before.minus_bit, replica);
    }
    if (warp_any(any & CHAIN_MORE && !is_over)) {
        *c = before;
        chain_steps_again(shared, c, chain, replica);
    }
}

/* Marks the sequences of the blocks from `first` on. By a warp. */
DEVICE_FN void mark_sequences(const struct zstd_args *args, struct chains_shared *shared,
                              uint32_t first, uint32_t count) {
    uint32_t lane = lane_index(), chain = lane % CHAINS, replica = lane / CHAINS;
    const struct zstd_block *block = &args->blocks[lesser(first + chain, count - 1)];
    struct chain c;
    /* One lane decides for the chain: literals, which run beside, may refuse the tile now. */
    bool is_live = first + chain < count && block->sequences && !is_refused(args, block->tile);
    is_live = warp_read(is_live, chain);
    c.base = args->pool;
    c.minus_bit = 0;
    c.count = c.logs[0] = c.logs[1] = c.logs[2] = 0;
    if (is_live)
        chain_open(args, shared, block, replica, chain, &c);
    else if (replica == 0) /* states that stay what they are */
        shared->tables[0][chain] = shared->tables[512][chain] = shared->tables[1024][chain] = 0;
    uint32_t most = warp_max(c.count);
    uint64_t *marks = is_live ? (uint64_t *)quad_at(args, block->marks_at) : NULL;
    sync_warp();
    chain_begin(shared, &c, chain, replica);
    for (uint32_t at = 0, mark = 0; at < most;) {
        UNROLL
        for (uint32_t i = 0; i < CHAIN_TURNS; i++, at += ZSTD_MARKED, mark++) {
            uint32_t states = (c.length - c.column) / CHAIN_STATE |
                              (c.match - c.column) / CHAIN_STATE << MARK_MATCH |
                              (c.offset - c.column) / CHAIN_STATE << MARK_OFFSET;
            bool is_over = at >= c.count;
            store_if(replica == 0 && !is_over, marks, mark, 0 - c.minus_bit, states);
            chain_steps(shared, &c, is_over, i == 0, chain, replica);
        }
        chain_keep();
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

enum { STREAM_WARPS = CHAINS / LITERAL_BLOCKS };

struct streams_shared {
    union {
        struct literals_shared literals[STREAM_WARPS];
        struct chains_shared chains;
    } of;
};

/* Takes as many blocks at a time as a warp has chains, for their sequences, by one warp, or for
 * their literals, by both. What takes longer goes first. */
KERNEL(cogpu_kernel_zstd_streams, struct zstd_args, struct streams_shared, 64, 2) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t count = round->blocks, groups = (count + CHAINS - 1) / CHAINS, warp = warp_index();
    for (uint32_t i = block_index(); i < 2 * groups; i += block_count()) {
        uint32_t first = i % groups * CHAINS;
        sync_block();
        if ((i < groups) != (round->literals_last != 0))
            read_literals(args, &shared->of.literals[warp], first + warp * LITERAL_BLOCKS, count);
        else if (warp == 0)
            mark_sequences(args, &shared->of.chains, first, count);
    }
}

/* ---- what the sequences mean ----------------------------------------------------------------- */

/* An offset is a number, or REFERS with, from bit 29 on, one of the three last offsets before some
 * place, and how much less than that it is. 0 is none. */
enum { REFERS_SLOT = 29, REFERS_LESS = (1 << REFERS_SLOT) - 1, OFFSET_MOST = 1 << REFERS_SLOT };
#define REFERS 0x80000000u

DEVICE_FN uint32_t reference(uint32_t slot, uint32_t less) {
    return REFERS | slot << REFERS_SLOT | less;
}

struct history {
    uint32_t last[3];
};

/* What an offset is where the three last were these, which may refer themselves. */
DEVICE_FN uint32_t offset_of(uint32_t offset, const struct history *before) {
    if (!(offset & REFERS))
        return offset;
    uint32_t slot = offset >> REFERS_SLOT & 3, less = offset & REFERS_LESS;
    uint32_t last = slot == 0 ? before->last[0] : slot == 1 ? before->last[1] : before->last[2];
    if (last & REFERS)
        return last + less;
    return last > less ? last - less : 0;
}

DEVICE_FN struct history history_of_none(void) {
    struct history none = {{reference(0, 0), reference(1, 0), reference(2, 0)}};
    return none;
}

DEVICE_FN struct history history_after(struct history before, struct history change) {
    struct history after;
    for (uint32_t i = 0; i < 3; i++)
        after.last[i] = offset_of(change.last[i], &before);
    return after;
}

/* The offset of a sequence by its value; it is the last then. */
DEVICE_FN uint32_t history_step(struct history *history, uint32_t value, bool has_literals) {
    uint32_t which = value > 3 ? 3 : value - has_literals, offset = value - 3;
    if (which == 0)
        return history->last[0];
    if (value <= 3)
        offset = which == 3   ? offset_of(reference(0, 1), history)
                 : which == 2 ? history->last[2]
                              : history->last[1];
    if (which >= 2)
        history->last[2] = history->last[1];
    history->last[1] = history->last[0];
    history->last[0] = offset;
    return offset;
}

/* The changes of all lanes up to each one's, as one change. A collective. */
DEVICE_FN struct history history_scan(struct history change) {
    if (!warp_any((change.last[0] | change.last[1] | change.last[2]) & REFERS))
        return change;
    for (uint32_t by = 1; by < WARP; by *= 2) {
        struct history earlier;
        for (uint32_t i = 0; i < 3; i++)
            earlier.last[i] = warp_read_up(change.last[i], by);
        if (lane_index() >= by)
            change = history_after(earlier, change);
    }
    return change;
}

DEVICE_TABLE uint32_t length_base[LENGTH_SYMBOLS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,   12,   13,   14,   15,    16,    18,
    20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
DEVICE_TABLE uint32_t match_base[MATCH_SYMBOLS] = {
    3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,   15,   16,   17,    18,    19,   20,
    21, 22, 23, 24, 25, 26, 27, 28,  29,  30,  31,   32,   33,   34,   35,    37,    39,   41,
    43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};

/* ---- execute: records ------------------------------------------------------------------------ */

/* A zstd block is made in groups: as many sequences as all threads have marks for, read into
 * records in shared memory, and after the last of them one for the rest of the literals. */

/* Places are counted from the begin of the tile. */
struct record {
    uint32_t match;   /* where its match begins */
    uint32_t literal; /* what is added to a place before that for the number of its literal */
};

/* How far a tile is, or how far a warp's sequences take it. */
struct progress {
    uint32_t out, literals;
    struct history history;
};

enum { EXECUTE_WARPS = 16 }; /* at most */

/* Shared memory of a thread block, those parts that do not depend on its size. What all threads
 * know of the tile is here too, since registers are few. */
struct execute_common {
    uint32_t tables[512 + 512 + 256];
    uint32_t lengths[64], matches[64]; /* base and, from bit 24 on, extra bits of each symbol */
    struct progress warps[EXECUTE_WARPS], now;
    uint32_t tile, block, verdict;
    uint32_t frame_begin, block_begin;
    uint32_t group_first;            /* sequence */
    uint32_t group_begin, group_end; /* in the tile's bytes */
    uint32_t records;                /* of the group */
    uint32_t next;                   /* record of the next stretch */
    uint32_t literal_mask;           /* 0 where the block's literals are one byte */
    uint32_t has_coded;              /* literals: they are among the decoded bytes */
    uint64_t literals;               /* of the block, in the stored or decoded bytes */
    uint64_t out;                    /* the tile's place in the decoded bytes */
};

/* Of 32 bytes: those where a record begins, and the number of the record before them. */
struct starts {
    uint32_t bits, before;
};

/* The group and the stretch that a thread block is about. */
struct workshop {
    struct execute_common *common;
    struct record *records; /* before the first the one that ends where the group begins */
    uint32_t *offsets;
    uint8_t *bytes;
    struct starts *starts;
    uint16_t *sources; /* of each byte: where it is copied from, or its own place */
    uint16_t *pending; /* of each warp: its bytes that are copied inside the stretch */
};

/* 64 bits of a stream from a place on. */
DEVICE_FN uint64_t stream_bits(const uint8_t *base, int32_t from) {
    const uint8_t *words = base + (uint32_t)from / 32 * (size_t)4;
    uint32_t a = load_u32_aligned(words), b = load_u32_aligned(words + 4),
             c = load_u32_aligned(words + 8), shift = (uint32_t)from & 31;
    return (uint64_t)funnel_right(b, c, shift) << 32 | funnel_right(a, b, shift);
}

DEVICE_FN uint32_t low_bits(uint32_t value, uint32_t bits) {
    return value & ((1u << bits) - 1);
}

/* The state that an entry leads to, with the lowest of the bits. */
DEVICE_FN uint32_t next_state(uint32_t entry, uint32_t *rest) {
    uint32_t bits = entry_bits(entry), low = low_bits(*rest, bits);
    *rest >>= bits;
    return (entry >> ENTRY_BEFORE << bits) + low;
}

/* Reads the thread's sequences of the group, of which `left` are left in the block, into records
 * that count from the first of them. False where the stream is no good. */
DEVICE_FN bool read_records(const struct workshop *shop, struct backward in, uint64_t mark,
                            uint32_t slot, uint32_t left, struct progress *own) {
    const uint32_t *tables = shop->common->tables;
    uint32_t states = (uint32_t)(mark >> 32);
    uint32_t length_at = states & 511, match_at = states >> MARK_MATCH & 511,
             offset_at = states >> MARK_OFFSET & 255;
    int32_t bit = (int32_t)(uint32_t)mark;
    for (uint32_t i = 0; i < lesser(ZSTD_MARKED, left); i++) {
        uint32_t length = tables[length_at], match = tables[512 + match_at],
                 offset = tables[1024 + offset_at], sum = length + match + offset;
        bool is_last = i + 1 == left;
        uint32_t extra_bits = entry_extra(sum), state_bits = is_last ? 0 : entry_bits(sum);
        int32_t from = bit - (int32_t)extra_bits, next = from - (int32_t)state_bits;
        if (next < in.begin || bit > in.bit || (is_last && from != in.begin))
            return false;
        uint64_t bits = stream_bits(in.base, next);
        if (!is_last) {
            uint32_t rest = (uint32_t)bits;
            offset_at = next_state(offset, &rest);
            match_at = next_state(match, &rest);
            length_at = next_state(length, &rest);
        }
        bits = extra_bits > CHAIN_EXTRA ? stream_bits(in.base, from) : bits >> state_bits;
        uint32_t of_length = shop->common->lengths[length >> ENTRY_SYMBOL & 63],
                 of_match = shop->common->matches[match >> ENTRY_SYMBOL & 63],
                 value_bits = offset >> ENTRY_SYMBOL & 31;
        uint32_t literals = (of_length & 0xFFFFFF) + low_bits((uint32_t)bits, of_length >> 24);
        bits >>= of_length >> 24;
        uint32_t copied = (of_match & 0xFFFFFF) + low_bits((uint32_t)bits, of_match >> 24);
        bits >>= of_match >> 24;
        uint32_t value = (1u << value_bits) + low_bits((uint32_t)bits, value_bits);
        if (value >= OFFSET_MOST)
            return false;
        struct record record = {own->out + literals, own->literals - own->out};
        shop->records[slot + i] = record;
        shop->offsets[slot + i] = history_step(&own->history, value, literals > 0);
        own->out += literals + copied;
        own->literals += literals;
        bit = next;
    }
    return true;
}

/* Two sums over this lane and those below at once, which takes hardly longer than one. */
DEVICE_FN void scan_both(uint32_t *a, uint32_t *b) {
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint32_t below_a = warp_read_up(*a, by), below_b = warp_read_up(*b, by);
        if (lane_index() >= by) {
            *a += below_a;
            *b += below_b;
        }
    }
}

/* Turns what each lane adds into what it and those below add, and hands back what those below do.
 * A collective. */
DEVICE_FN struct progress progress_scan(struct progress *own) {
    struct progress below = *own;
    scan_both(&own->out, &own->literals);
    below.out = own->out - below.out;
    below.literals = own->literals - below.literals;
    own->history = history_scan(own->history);
    struct history none = history_of_none();
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t last = warp_read_up(own->history.last[i], 1);
        below.history.last[i] = lane_index() ? last : none.last[i];
    }
    return below;
}

DEVICE_FN struct progress progress_after(const struct progress *before,
                                         const struct progress *change) {
    struct progress after = {before->out + change->out, before->literals + change->literals,
                             history_after(before->history, change->history)};
    return after;
}

/* Puts in the place of what each warp adds where it begins, and moves on what is so far. By the
 * first warp. */
DEVICE_FN void sum_warps(struct execute_common *common, uint32_t warps) {
    uint32_t lane = lane_index();
    struct progress own = {0, 0, history_of_none()}, now = common->now;
    if (lane < warps)
        own = common->warps[lane];
    struct progress below = progress_scan(&own);
    if (lane < warps)
        common->warps[lane] = progress_after(&now, &below);
    sync_warp();
    if (lane == WARP - 1)
        common->now = progress_after(&now, &own);
}

/* Reads the group's sequences. False where one is no good. A collective. */
DEVICE_FN bool read_group(const struct zstd_args *args, const struct workshop *shop,
                          uint32_t threads) {
    struct execute_common *common = shop->common;
    const struct zstd_block *block = &args->blocks[common->block];
    uint32_t slot = thread_index() * ZSTD_MARKED, own_first = common->group_first + slot;
    uint32_t count = block->sequences;
    struct progress own = {0, 0, history_of_none()};
    bool is_good = true;
    if (own_first < count) {
        const uint64_t *marks = (const uint64_t *)quad_at(args, block->marks_at);
        struct backward in =
            backward_from(args->stored + block->in + block->bits_in, block->bits_bytes);
        is_good = read_records(shop, in, load_u64_aligned(marks + own_first / ZSTD_MARKED), slot,
                               count - own_first, &own);
    }
    struct progress below = progress_scan(&own);
    if (lane_index() == WARP - 1)
        common->warps[warp_index()] = own;
    if (sync_block_or(!is_good))
        return false;
    if (warp_index() == 0)
        sum_warps(common, threads / WARP);
    sync_block();
    struct progress before = progress_after(&common->warps[warp_index()], &below);
    uint32_t frame = common->frame_begin, window = block->window;
    ROLLED
    for (uint32_t i = 0; i < ZSTD_MARKED && own_first + i < count; i++) {
        struct record record = shop->records[slot + i];
        record.match += before.out;
        record.literal += before.literals - before.out;
        shop->records[slot + i] = record;
        uint32_t offset = offset_of(shop->offsets[slot + i], &before.history);
        shop->offsets[slot + i] = offset;
        is_good &= offset > 0 && offset <= lesser(record.match - frame, window);
    }
    return !sync_block_or(!is_good);
}

/* After the group's sequences were read: adds the rest of the literals to the last group, and goes
 * on to the next. Returns a verdict. By one thread. */
DEVICE_FN uint32_t close_group(const struct zstd_args *args, const struct workshop *shop,
                               uint32_t threads) {
    struct execute_common *common = shop->common;
    const struct zstd_block *block = &args->blocks[common->block];
    uint32_t left = block->sequences - common->group_first, most = threads * ZSTD_MARKED;
    uint32_t literals = common->now.literals, end = common->now.out;
    if (literals > block->literals)
        return COGPU_GPU_DAMAGED;
    common->records = lesser(left, most);
    if (left <= most) {
        struct record rest = {end + block->literals - literals, literals - end};
        shop->records[left] = rest;
        shop->offsets[left] = 1;
        common->records++;
        end = rest.match;
    }
    common->group_first += most;
    common->group_begin = common->group_end;
    common->group_end = end;
    if (end - common->block_begin > block->most_out)
        return COGPU_GPU_DAMAGED;
    return end > args->coded[common->tile].room ? COGPU_GPU_TOO_LONG : COGPU_GPU_DECODED;
}

/* ---- execute: XXH64 of frames that carry it -------------------------------------------------- */

#define PRIME_1 0x9E3779B185EBCA87ull
#define PRIME_2 0xC2B2AE3D27D4EB4Full
#define PRIME_3 0x165667B19E3779F9ull
#define PRIME_4 0x85EBCA77C2B2AE63ull
#define PRIME_5 0x27D4EB2F165667C5ull

DEVICE_FN uint64_t rotate_left(uint64_t value, uint32_t by) {
    return value << by | value >> (64 - by);
}

DEVICE_FN uint64_t sum_round(uint64_t sum, uint64_t input) {
    return rotate_left(sum + input * PRIME_2, 31) * PRIME_1;
}

/* Eight bytes from any place, by loads of aligned words. */
DEVICE_FN uint64_t byte8(const uint8_t *at) {
    uint32_t skip = (uint32_t)((uintptr_t)at % 4);
    const uint8_t *words = at - skip;
    uint32_t a = load_u32_aligned(words), b = load_u32_aligned(words + 4),
             c = load_u32_aligned(words + 8);
    return (uint64_t)funnel_right(b, c, 8 * skip) << 32 | funnel_right(a, b, 8 * skip);
}

DEVICE_FN uint64_t sum_of(const uint8_t *at, uint32_t bytes) {
    uint64_t sum = PRIME_5;
    uint32_t done = 0;
    if (bytes >= 32) {
        uint64_t sums[4] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1};
        for (; bytes - done >= 32; done += 32) {
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[i] = sum_round(sums[i], byte8(at + done + 8 * i));
        }
        sum = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) +
              rotate_left(sums[3], 18);
        for (uint32_t i = 0; i < 4; i++)
            sum = (sum ^ sum_round(0, sums[i])) * PRIME_1 + PRIME_4;
    }
    sum += bytes;
    for (; bytes - done >= 8; done += 8)
        sum = rotate_left(sum ^ sum_round(0, byte8(at + done)), 27) * PRIME_1 + PRIME_4;
    if (bytes - done >= 4) {
        sum = rotate_left(sum ^ byte4(at + done) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        done += 4;
    }
    for (; done < bytes; done++)
        sum = rotate_left(sum ^ at[done] * PRIME_5, 11) * PRIME_1;
    sum = (sum ^ sum >> 33) * PRIME_2;
    sum = (sum ^ sum >> 29) * PRIME_3;
    return sum ^ sum >> 32;
}

/* ---- execute: bytes -------------------------------------------------------------------------- */

/* Bytes are made in stretches. One begins at a multiple of 16, and its places are counted from
 * there; it may begin or end inside that with the group. */

struct stretch {
    const uint8_t *literals; /* of the block */
    uint32_t literal_mask;
    uint8_t *out; /* the tile's */
    uint32_t window, begin, end;
};

/* Where a record begins: its literals follow those of the one before. */
DEVICE_FN uint32_t start_of(const struct workshop *shop, uint32_t index) {
    if (index == 0)
        return shop->common->group_begin;
    struct record before = shop->records[index - 1];
    return before.match + before.literal - shop->records[index].literal;
}

/* Marks where the records of the stretch begin, from number `first` on. */
DEVICE_FN void mark_records(const struct stretch *s, const struct workshop *shop, uint32_t first,
                            uint32_t threads) {
    uint32_t count = shop->common->records, last_word = (s->end - 1) / 32, end = s->window + s->end;
    for (uint32_t index = first + thread_index(); index < count; index += threads) {
        uint32_t start = start_of(shop, index);
        if (start >= end)
            return;
        uint32_t next = index + 1 < count ? start_of(shop, index + 1) : end;
        uint32_t place = index == first ? s->begin : start - s->window;
        uint32_t to = lesser((next - s->window) / 32, last_word);
        atomic_or(&shop->starts[place / 32].bits, 1u << place % 32);
        if (index == first)
            shop->starts[place / 32].before = first - 1;
        for (uint32_t word = place / 32 + 1; word <= to; word++)
            shop->starts[word].before = index;
        if (next >= end)
            shop->common->next = next == end && index + 1 < count ? index + 1 : index;
    }
}

/* How many bytes back a byte is copied from that is so far `into` its match. A match that repeats
 * itself has the byte many times: what is added takes the byte at least a quarter of the way to the
 * begin of the match, and not beyond, without a division. */
DEVICE_FN uint32_t bytes_back(uint32_t back, uint32_t into) {
    return back + shift_left(back, top_bit(into) - top_bit(back) - 1);
}

/* The byte `at` a place of the tile, of 32 that share a word of starts: its value, or where in the
 * stretch it is copied from. A stretch that is `plain` is whole, and its literals are not one byte.
 * Literals and copies go the same way, without a branch, so that the bytes of a thread are found
 * side by side. */
DEVICE_FN bool find_byte(const struct stretch *s, const struct workshop *shop, uint32_t word,
                         uint32_t at, uint32_t up_to, bool is_plain, uint32_t *value) {
    struct starts starts = shop->starts[word];
    uint32_t index = starts.before + count_ones(starts.bits & up_to);
    struct record record = shop->records[index];
    uint32_t back = bytes_back(shop->offsets[index], at - record.match);
    bool is_literal = at < record.match;
    uint32_t from = at + (is_literal ? record.literal : 0 - back);
    if (!is_plain && is_literal)
        from &= s->literal_mask;
    if (!is_literal && from >= s->window + (is_plain ? 0 : s->begin)) {
        *value = from - s->window;
        return false;
    }
    const uint8_t *memory = is_literal ? s->literals : s->out;
    *value = memory[from];
    return true;
}

enum { BYTES_AT_ONCE = 8 };

/* Finds all bytes of the stretch; those that are copied inside it go onto the warp's list. Returns
 * how many. */
DEVICE_FN uint32_t find_bytes(const struct stretch *s, const struct workshop *shop,
                              uint16_t *pending, uint32_t threads, uint32_t length, bool is_plain) {
    uint32_t lane = lane_index(), up_to = 0xFFFFFFFFu >> (31 - lane), count = 0;
    for (uint32_t row = thread_index(); row < length; row += threads * BYTES_AT_ONCE) {
        uint32_t word = row / 32, at = s->window + row;
        uint32_t values[BYTES_AT_ONCE], copied = 0;
        UNROLL
        for (uint32_t i = 0; i < BYTES_AT_ONCE; i++) {
            uint32_t place = row + i * threads;
            values[i] = 0;
            if ((is_plain || (place >= s->begin && place < s->end)) &&
                !find_byte(s, shop, word + i * (threads / 32), at + i * threads, up_to, is_plain,
                           &values[i]))
                copied |= 1u << i;
        }
        UNROLL
        for (uint32_t i = 0; i < BYTES_AT_ONCE; i++) {
            uint32_t place = row + i * threads;
            bool is_copied = copied >> i & 1;
            uint32_t copies = warp_ballot(is_copied);
            shop->sources[place] = (uint16_t)(is_copied ? values[i] : place);
            if (!is_copied)
                shop->bytes[place] = (uint8_t)values[i];
            if (copies) {
                if (is_copied)
                    pending[count + count_ones(copies & up_to) - 1] = (uint16_t)place;
                count += count_ones(copies);
            }
        }
    }
    return count;
}

/* Follows the copies to bytes that are known. Each goes back to an earlier place, so this ends. */
DEVICE_FN void copy_pending(const struct workshop *shop, const uint16_t *pending, uint32_t count) {
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint32_t place = pending[i], source = shop->sources[place];
        for (;;) {
            uint32_t further = shop->sources[source];
            if (further == source)
                break;
            source = further;
        }
        shop->bytes[place] = shop->bytes[source];
    }
}

DEVICE_FN void write_stretch(const struct stretch *s, const struct workshop *shop,
                             uint32_t threads) {
    uint8_t *to = s->out + s->window;
    uint32_t first = (s->begin + 15) / 16, end = s->end / 16;
    for (uint32_t i = first + thread_index(); i < end; i += threads)
        store_words4(to + 16 * i, load_words4(shop->bytes + 16 * i));
    if (s->begin % 16 == 0 && s->end % 16 == 0)
        return;
    uint32_t head = lesser(16 * first, s->end), tail = 16 * end > head ? 16 * end : head;
    for (uint32_t i = s->begin + thread_index(); i < head; i += threads)
        to[i] = shop->bytes[i];
    for (uint32_t i = tail + thread_index(); i < s->end; i += threads)
        to[i] = shop->bytes[i];
}

DEVICE_FN struct stretch stretch_of(const struct zstd_args *args, const struct workshop *shop,
                                    uint32_t at, uint32_t length) {
    struct stretch s;
    const struct execute_common *common = shop->common;
    s.out = args->decoded + common->out;
    s.literals = (common->has_coded ? args->decoded : args->stored) + common->literals;
    s.literal_mask = common->literal_mask;
    s.window = at / 16 * 16;
    s.begin = at - s.window;
    s.end = lesser(length, common->group_end - s.window);
    return s;
}

/* Makes the bytes of the group. */
DEVICE_FN void make_bytes(const struct zstd_args *args, const struct workshop *shop,
                          uint32_t threads, uint32_t length) {
    struct execute_common *common = shop->common;
    uint16_t *pending = shop->pending + warp_index() * (length / (threads / WARP));
    uint32_t record = 0;
    for (uint32_t at = common->group_begin; at < common->group_end;) {
        struct stretch s = stretch_of(args, shop, at, length);
        mark_records(&s, shop, record, threads);
        sync_block();
        bool is_plain = s.end - s.begin == length && s.literal_mask;
        uint32_t copies = is_plain ? find_bytes(&s, shop, pending, threads, length, true)
                                   : find_bytes(&s, shop, pending, threads, length, false);
        sync_block();
        copy_pending(shop, pending, copies);
        for (uint32_t i = thread_index(); i < length / 32; i += threads)
            shop->starts[i].bits = 0;
        record = common->next;
        sync_block();
        s = stretch_of(args, shop, at, length); /* once more: to find bytes takes all registers */
        write_stretch(&s, shop, threads);
        at = s.window + s.end;
    }
}

/* ---- execute: tiles -------------------------------------------------------------------------- */

/* Brings the tables of the block's sequences. */
DEVICE_FN void copy_tables(const struct zstd_args *args, const struct zstd_block *block,
                           const struct workshop *shop, uint32_t threads) {
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        const uint32_t *tables = (const uint32_t *)quad_at(args, block->codes_at[kind]);
        uint32_t place = codes_place(kind), entries = 1u << lesser(tables[kind], 9);
        for (uint32_t i = thread_index(); i < entries; i += threads)
            shop->common->tables[place - 4 + i] = tables[place + i];
    }
}

/* Goes on to a zstd block, which begins where the one before has ended. A collective. */
DEVICE_FN void open_block(const struct zstd_args *args, const struct workshop *shop, uint32_t index,
                          uint32_t threads) {
    struct execute_common *common = shop->common;
    const struct zstd_block *block = &args->blocks[index];
    sync_block();
    if (thread_index() == 0) {
        struct history first = {{1, 4, 8}};
        common->block = index;
        common->out = args->coded[block->tile].out;
        common->has_coded = block->flags & ZSTD_CODED;
        common->literals =
            common->has_coded ? common->out + block->literals_at : block->in + block->literals_in;
        common->literal_mask = block->flags & ZSTD_ONE_BYTE ? 0 : 0xFFFFFFFFu;
        common->block_begin = common->now.out = common->group_end;
        common->now.literals = common->group_first = 0;
        if (block->flags & ZSTD_FIRST) {
            common->now.history = first;
            common->frame_begin = common->group_end;
        }
    }
    if (block->sequences)
        copy_tables(args, block, shop, threads);
    sync_block();
}

/* Makes the block. Returns a verdict. */
DEVICE_FN uint32_t make_block(const struct zstd_args *args, const struct workshop *shop,
                              uint32_t threads, uint32_t length) {
    struct execute_common *common = shop->common;
    do {
        if (args->blocks[common->block].sequences && !read_group(args, shop, threads))
            return COGPU_GPU_DAMAGED;
        if (thread_index() == 0)
            common->verdict = close_group(args, shop, threads);
        sync_block();
        if (common->verdict)
            return common->verdict;
        make_bytes(args, shop, threads, length);
    } while (common->group_first < args->blocks[common->block].sequences);
    return COGPU_GPU_DECODED;
}

/* After the last block of a frame: what the frame says of itself must be so. By one thread. */
DEVICE_FN uint32_t check_frame(const struct zstd_args *args, const struct execute_common *common) {
    const struct zstd_block *block = &args->blocks[common->block];
    uint32_t begin = common->frame_begin, bytes = common->group_end - begin;
    const uint8_t *frame = args->decoded + args->coded[common->tile].out + begin;
    if (block->flags & ZSTD_HAS_SIZE && bytes != block->content)
        return COGPU_GPU_DAMAGED;
    if (block->flags & ZSTD_HAS_SUM && (uint32_t)sum_of(frame, bytes) != block->sum)
        return COGPU_GPU_BAD_SUM;
    return COGPU_GPU_DECODED;
}

/* All blocks of the tile, one after the other. */
DEVICE_FN uint32_t make_tile(const struct zstd_args *args, const struct workshop *shop,
                             uint32_t threads, uint32_t length) {
    struct execute_common *common = shop->common;
    for (uint32_t i = 0; i < args->tiles[common->tile].blocks; i++) {
        open_block(args, shop, args->tiles[common->tile].first_block + i, threads);
        uint32_t verdict = make_block(args, shop, threads, length);
        if (verdict)
            return verdict;
        if (!(args->blocks[common->block].flags & ZSTD_LAST))
            continue;
        sync_block(); /* all bytes of the frame are there */
        if (thread_index() == 0)
            common->verdict = check_frame(args, common);
        sync_block();
        if (common->verdict)
            return common->verdict;
    }
    return common->group_end < args->coded[common->tile].needed ? COGPU_GPU_TOO_SHORT
                                                                : COGPU_GPU_DECODED;
}

/* Takes tiles of the round as long as there are any. */
DEVICE_FN void make_tiles(const struct zstd_args *args, const struct workshop *shop,
                          uint32_t threads, uint32_t length) {
    struct zstd_round *round = &args->rounds[args->round];
    struct execute_common *common = shop->common;
    for (uint32_t i = thread_index(); i < 64; i += threads) {
        common->lengths[i] =
            i < LENGTH_SYMBOLS ? length_base[i] | (uint32_t)length_extra[i] << 24 : 0;
        common->matches[i] = i < MATCH_SYMBOLS ? match_base[i] | (uint32_t)match_extra[i] << 24 : 0;
    }
    for (uint32_t i = thread_index(); i < length / 32; i += threads)
        shop->starts[i].bits = 0;
    for (;;) {
        sync_block();
        if (thread_index() == 0) {
            common->tile = atomic_add(&round->ticket, 1);
            common->verdict = common->tile < round->end_tile ? args->verdicts[common->tile] : 0;
            common->group_end = 0;
        }
        sync_block();
        if (common->tile >= round->end_tile)
            return;
        if (common->verdict)
            continue;
        uint32_t verdict = make_tile(args, shop, threads, length);
        if (verdict && thread_index() == 0)
            refuse(args, common->tile, verdict);
    }
}

/* The kernel, `places` bytes at a time by so many threads. */
#define EXECUTE(name, threads, places, per_multiprocessor)                                         \
    struct name##_shared {                                                                         \
        uint8_t bytes[places];                                                                     \
        struct starts starts[(places) / 32];                                                       \
        struct record records[(threads)*ZSTD_MARKED + 1];                                          \
        struct execute_common common;                                                              \
        uint32_t offsets[(threads)*ZSTD_MARKED + 1];                                               \
        uint16_t sources[places], pending[places];                                                 \
    };                                                                                             \
    KERNEL(cogpu_kernel_zstd_##name, struct zstd_args, struct name##_shared, threads,              \
           per_multiprocessor) {                                                                   \
        struct workshop shop = {&shared->common, shared->records, shared->offsets, shared->bytes,  \
                                shared->starts,  shared->sources, shared->pending};                \
        make_tiles(args, &shop, threads, places);                                                  \
    }

/* The fewer tiles there are for a multiprocessor, the more threads for each. */
EXECUTE(execute_few, 512, 4096, 2)
EXECUTE(execute_some, 384, 3072, 4)
EXECUTE(execute_many, 256, 2048, 5)
