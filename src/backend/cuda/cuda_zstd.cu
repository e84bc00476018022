/*
 * Zstandard frames on the device. Takes tiles of stored frames, hands on their content and a
 * verdict for each tile.
 *
 * A frame is a row of blocks of at most 128 KiB. What is serial in a block (its Huffman streams,
 * its one stream of sequences) is serial in a lane, and many blocks run side by side; what reaches
 * across blocks (tables used again, the last offsets, copies of what earlier blocks hold) is noted
 * and put right later. Hence these steps, each a kernel:
 *
 *     scan       a thread a tile walks the headers and adds up what its blocks need
 *     plan       one warp deals tiles out into rounds that fit the scratch memory
 *     fill       a thread a tile walks again and notes its blocks              (from here: each
 * round) tables     a warp a block builds the tables that the block brings literals   a lane a
 * Huffman stream                                      (beside the next) sequences  four lanes a
 * stream of sequences follow the states, note bit positions and symbols; other warps read the extra
 * bits: lengths and offsets, places by prefix sums execute    a group of threads a tile: literals
 * and matches become bytes sums       a thread a tile with check sums
 *
 * docs/kernels/zstd.md tells more.
 */
#include "backend/cuda/cuda_zstd.h"
#include "backend/cuda/simt.h"

#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
/* Brings the line nearer that somebody will load in a while. */
DEVICE_FN void prefetch(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
#else
#define UNROLLED
DEVICE_FN void prefetch(const void *at) {
    (void)at;
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

DEVICE_FN uint32_t top_bit(uint32_t value) {
    return 31 - leading_zeros(value);
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
    uint32_t least_out; /* bytes that the blocks decode to at least */
    bool has_sum;
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
    w->has_sum |= descriptor >> 2 & 1;
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
    if (verdict == COGPU_GPU_DECODED && block->flags & ZSTD_CODED)
        block->literals_at = take_quads(w, block->literals / ZSTD_QUAD + 2);
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
    block->records_at = take_quads(w, zstd_records(block->sequences));
    w->at += block->in_bytes;
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
        block.in = 0;
        verdict = walk_block(w, &block);
        if (verdict)
            break;
        is_last = block.flags & ZSTD_LAST;
        if (is_last && w->flags & ZSTD_HAS_SUM) {
            if (w->end - w->at < 4)
                return COGPU_GPU_CUT_OFF;
            block.sum = byte4(w->in + w->at);
        }
        if (blocks) {
            block.in = in + w->at - block.in_bytes;
            blocks[w->blocks] = block;
        }
        if (is_last && w->flags & ZSTD_HAS_SUM)
            w->at += 4;
        w->blocks++;
        if (++w->things > most)
            return COGPU_GPU_UNUSUAL;
    }
    return verdict;
}

/* All frames of a tile. Bytes after them that begin no frame do not matter. */
DEVICE_FN uint32_t walk_tile(struct walk *w, const struct zstd_args *args, uint32_t tile,
                             struct zstd_block *blocks, uint32_t first_quad) {
    const cogpu_coded *coded = &args->coded[tile];
    w->in = args->stored + coded->in;
    w->at = 0;
    w->end = coded->in_bytes;
    w->room = coded->room;
    w->things = w->blocks = w->least_out = 0;
    w->quads = first_quad;
    w->has_sum = false;
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
    uint32_t verdict = walk_tile(&w, args, tile, NULL, 0);
    struct zstd_tile need = {0, 0, 0, 0, 0, {0, 0, 0}};
    if (!verdict && w.quads > args->most_quads)
        verdict = COGPU_GPU_UNUSUAL;
    if (!verdict) {
        need.blocks = w.blocks;
        need.quads = w.quads;
        need.has_sum = w.has_sum;
    }
    args->tiles[tile] = need;
    args->verdicts[tile] = verdict;
}

/* Tiles of a round follow each other. Each fits a round, since scan has refused those that do not;
 * those that are left after the last round are the host's. */
KERNEL(cogpu_kernel_zstd_plan, struct zstd_args, struct nothing_shared, 32, 1) {
    uint32_t lane = lane_index(), count = args->tile_count;
    uint32_t at = 0, first = 0, round = 0;
    uint64_t blocks = 0, quads = 0; /* of the round so far */
    while (at < count && round < args->round_count) {
        uint32_t tile = at + lane;
        uint32_t own_blocks = tile < count ? args->tiles[tile].blocks : 0;
        uint32_t own_quads = tile < count ? args->tiles[tile].quads : 0;
        uint64_t sum_blocks = blocks + warp_scan(own_blocks),
                 sum_quads = quads + warp_scan(own_quads);
        bool fits = sum_blocks <= args->most_blocks && sum_quads <= args->most_quads;
        uint32_t taken = trailing_zeros(warp_ballot(!fits));
        if (lane < taken && tile < count) {
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
        if (lane == 0) {
            struct zstd_round note = {first, at, (uint32_t)blocks, first};
            args->rounds[round] = note;
        }
        round++;
        first = at;
        blocks = quads = 0;
    }
    for (uint32_t tile = at + lane; tile < count; tile += WARP)
        args->verdicts[tile] = COGPU_GPU_UNUSUAL;
    for (uint32_t i = round + lane; i < args->round_count; i += WARP) {
        struct zstd_round none = {count, count, 0, count};
        args->rounds[i] = none;
    }
}

KERNEL(cogpu_kernel_zstd_fill, struct zstd_args, struct nothing_shared, 32, 1) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t stride = block_count() * thread_count();
    for (uint32_t tile = round->first_tile + block_index() * thread_count() + thread_index();
         tile < round->end_tile; tile += stride) {
        struct walk w;
        if (args->tiles[tile].blocks)
            walk_tile(&w, args, tile, args->blocks + args->tiles[tile].first_block,
                      args->tiles[tile].first_quad);
    }
}

/* ---- tables --------------------------------------------------------------------------------- */

/* An entry of a table of codes, in a word: bits to read for the next state 0-4, what is added to
 * them 5-13, symbol 16-21, its extra bits 26-31. There are gaps so that three entries may be added:
 * the sum tells the bits of all three states and all extra bits. The second field, as it stands, is
 * a distance in bytes in a table whose entries are 32 bytes apart. */
enum { ENTRY_ADDED = 0x3FE0, ENTRY_SYMBOL = 16, ENTRY_EXTRA = 26 };

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
        uint32_t bits = log - top_bit(number), added = (number << bits) - size;
        table[state] =
            bits | added << 5 | symbol << ENTRY_SYMBOL | extra_bits_of(kind, symbol) << ENTRY_EXTRA;
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
            int32_t bits = (int32_t)(entry & 31);
            room->weights[count++] = (uint8_t)(entry >> ENTRY_SYMBOL & 63);
            if (bit < bits) {
                room->weights[count++] = (uint8_t)(room->small[other] >> ENTRY_SYMBOL & 63);
                is_over = true;
            } else {
                bit -= bits;
                mine = other;
                other = ((entry & ENTRY_ADDED) >> 5) +
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
                table[0] = symbol << ENTRY_SYMBOL | extra_bits_of(kind, symbol) << ENTRY_EXTRA;
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

KERNEL(cogpu_kernel_zstd_tables, struct zstd_args, struct tables_shared, 128, 4) {
    struct tables_room *room = &shared->rooms[warp_index()];
    uint32_t warps = thread_count() / WARP, count = args->rounds[args->round].blocks;
    for (uint32_t i = block_index() * warps + warp_index(); i < count; i += block_count() * warps) {
        struct zstd_block *block = &args->blocks[i];
        bool is_good = true;
        if (block->flags & ZSTD_TREE)
            is_good = make_tree(args, room, block);
        if (block->sequences && is_good)
            is_good = make_codes(args, room, block);
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
    s.out = quad_at(args, block->literals_at);
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

/* The place in a stream, and the word that it is in with the two below. */
struct literal_place {
    int32_t bit;
    uint32_t a, b, c;
};

DEVICE_FN struct literal_place literal_place_at(const struct literals_shared *shared, int32_t bit) {
    int32_t word = bit >> 5;
    struct literal_place place = {bit, literal_word(shared, word), literal_word(shared, word - 1),
                                  literal_word(shared, word - 2)};
    return place;
}

DEVICE_FN uint8_t literal_one(const struct literals_shared *shared, const uint16_t *table,
                              uint32_t down, struct literal_place *place) {
    uint32_t entry = table[funnel_right(place->b, place->a, (uint32_t)place->bit) >> down];
    *place = literal_place_at(shared, place->bit - (int32_t)(entry & 31));
    return (uint8_t)(entry >> 8);
}

/* Four codes are 44 bits at most: the words that are next are the same, or one or two further. */
DEVICE_FN uint32_t literal_four(const struct literals_shared *shared, const uint16_t *table,
                                uint32_t down, struct literal_place *place) {
    int32_t word = place->bit >> 5;
    uint32_t a = place->a, b = place->b, c = place->c, shift = (uint32_t)place->bit;
    uint32_t d = literal_word(shared, word - 3), e = literal_word(shared, word - 4);
    uint32_t high = funnel_right(b, a, shift), low = funnel_right(c, b, shift), e0, e1, e2, e3;
    e0 = table[high >> down];
    high = funnel_left(low, high, e0);
    low = funnel_left(0, low, e0);
    e1 = table[high >> down];
    high = funnel_left(low, high, e1);
    low = funnel_left(0, low, e1);
    e2 = table[high >> down];
    high = funnel_left(low, high, e2);
    e3 = table[high >> down];
    place->bit -= (int32_t)((e0 + e1 + e2 + e3) & 255);
    int32_t further = word - (place->bit >> 5);
    place->a = further == 0 ? a : further == 1 ? b : c;
    place->b = further == 0 ? b : further == 1 ? c : d;
    place->c = further == 0 ? c : further == 1 ? d : e;
    return pick_bytes(pick_bytes(e0, e1, 0x51), pick_bytes(e2, e3, 0x51), 0x5410);
}

DEVICE_FN void literal_decode(struct literals_shared *shared, const uint16_t *table,
                              struct literal_lane *s) {
    int32_t kept = (s->in.bit >> 7) + 1; /* pieces from this one on are in the ring */
    uint32_t count = s->count, down = 32 - s->log, at = 0;
    for (uint32_t i = 0; i < LITERAL_PIECES && kept > 0; i++) {
        kept--;
        literal_keep_piece(shared, kept, true, load_piece(s->in.base, kept));
    }
    struct literal_place place = literal_place_at(shared, s->in.bit);
    uint32_t head = lesser((uint32_t)(-(intptr_t)s->out) & 7, count);
    for (; at < head; at++)
        s->out[at] = literal_one(shared, table, down, &place);
    words4 piece = {0, 0, 0, 0};
    for (; at + 8 <= count; at += 8) {
        /* Eight codes are 11 bytes at most, so a piece each time is enough. */
        int32_t lowest = (place.bit >> 7) - (LITERAL_PIECES - 1);
        bool wants = kept > (lowest < 0 ? 0 : lowest);
        kept -= wants;
        prefetch_piece(s->in.base, kept);
        if (wants)
            piece = load_piece(s->in.base, kept);
        uint32_t low = literal_four(shared, table, down, &place);
        uint32_t high = literal_four(shared, table, down, &place);
        *(uint64_t *)(s->out + at) = (uint64_t)high << 32 | low;
        literal_keep_piece(shared, kept, wants, piece);
    }
    for (; at < count; at++)
        s->out[at] = literal_one(shared, table, down, &place);
    s->is_bad |= place.bit != s->in.begin;
}

KERNEL(cogpu_kernel_zstd_literals, struct zstd_args, struct literals_shared, 32, 6) {
    uint32_t lane = lane_index(), count = args->rounds[args->round].blocks;
    for (uint32_t first = block_index() * LITERAL_BLOCKS; first < count;
         first += block_count() * LITERAL_BLOCKS) {
        sync_warp();
        for (uint32_t i = 0; i < LITERAL_BLOCKS && first + i < count; i++) {
            const struct zstd_block *block = &args->blocks[first + i];
            if (block->flags & ZSTD_CODED && !is_refused(args, block->tile))
                literal_copy_table(args, shared, block, i);
        }
        sync_warp();
        uint32_t own = first + lane / 4;
        if (own >= count)
            continue;
        const struct zstd_block *block = &args->blocks[own];
        if (!(block->flags & ZSTD_CODED) || is_refused(args, block->tile))
            continue;
        struct literal_lane s = literal_lane_of(args, block, lane % 4);
        if (s.count)
            literal_decode(shared, shared->tables[lane / 4], &s);
        if (s.is_bad)
            refuse(args, block->tile, COGPU_GPU_DAMAGED);
    }
}

/* ---- sequences ------------------------------------------------------------------------------- */

enum { CHAINS = 8, REPLICAS = WARP / CHAINS, CHAIN_RING = 64, CHAIN_PIECES = CHAIN_RING / 4 };
/* Steps between two refills, and the extra bits up to which they go without looking. */
enum { CHAIN_STEPS = 8, CHAIN_EXTRA = 38 };

/* What the warps that read the extra bits know of a chain. */
struct chain_facts {
    const uint8_t *base;
    int32_t begin, end; /* of the stream, see struct backward */
    uint32_t count;     /* of sequences */
    uint32_t is_live;
    uint32_t out, from;        /* bytes and literals of the sequences so far */
    uint32_t last[3], is_good; /* offsets after them */
};

struct sequences_shared {
    /* Lengths, matches, offsets; the chains side by side, so that each has its own banks. */
    uint32_t tables[512 + 512 + 256][CHAINS];
    /* Of each chain: the words of its stream round its place, the last four also before the first.
     * They begin where an `or` can do for an addition. */
    uint32_t rings[CHAINS][2 * CHAIN_RING];
    /* Two batches of what the chains note; a little apart from each other for the banks' sake. */
    uint64_t notes[2][CHAINS][WARP + 2];
    struct chain_facts facts[CHAINS];
    uint32_t lengths[64], matches[64]; /* base and, from bit 24 on, extra bits of each symbol */
    uint32_t batches;
};

/* Where a chain is: three states as distances in bytes from the begin of their tables. */
struct chain {
    int32_t bit;
    uint32_t length, match, offset;
    uint32_t column; /* of the chain, in bytes */
    uint32_t ring;   /* likewise */
    const uint8_t *base;
    int32_t kept;   /* pieces of the stream from this one on are in the ring */
    uint32_t count; /* of sequences */
    uint32_t logs[ZSTD_CODE_KINDS];
};

DEVICE_FN void chain_copy_table(const struct zstd_args *args, struct sequences_shared *shared,
                                uint32_t tables_at, uint32_t kind, uint32_t chain, uint32_t replica,
                                uint32_t *log) {
    const uint32_t *tables = (const uint32_t *)quad_at(args, tables_at);
    uint32_t place = codes_place(kind);
    *log = lesser(tables[kind], 9);
    for (uint32_t i = 4 * replica; i < 1u << *log; i += 4 * REPLICAS) {
        words4 entries = load_words4(tables + place + i);
        uint32_t(*to)[CHAINS] = &shared->tables[place - 4 + i];
        to[0][chain] = entries.x;
        to[1][chain] = entries.y;
        to[2][chain] = entries.z;
        to[3][chain] = entries.w;
    }
}

DEVICE_FN void chain_window(const struct sequences_shared *shared, uint32_t ring, int32_t bit,
                            uint32_t *high, uint32_t *low) {
    uint32_t place = ((uint32_t)(bit >> 3) & (4 * CHAIN_RING - 4)) | ring;
    const uint32_t *at = (const uint32_t *)((const uint8_t *)shared->rings + place);
    uint32_t a = at[0], b = at[-1], c = at[-2], shift = (uint32_t)bit;
    *high = funnel_right(b, a, shift);
    *low = funnel_right(c, b, shift);
}

/* One sequence: notes where its extra bits begin and its symbols, goes on to the next states.
 * Returns the sum of the entries. Without `is_careful` the extra bits must be CHAIN_EXTRA at most.
 */
DEVICE_FN uint32_t chain_step(const struct sequences_shared *shared, struct chain *c, uint32_t *bit,
                              uint32_t *symbols, bool is_careful) {
    const uint8_t *tables = (const uint8_t *)shared->tables;
    uint32_t length = *(const uint32_t *)(tables + c->length);
    uint32_t match = *(const uint32_t *)(tables + c->match + 512 * 4 * CHAINS);
    uint32_t offset = *(const uint32_t *)(tables + c->offset + 1024 * 4 * CHAINS);
    uint32_t high, low, sum = length + match + offset, extra = sum >> ENTRY_EXTRA;
    *bit = (uint32_t)c->bit;
    *symbols = pick_bytes(pick_bytes(length, match, 0x0062), offset, 0x0610);
    if (is_careful) {
        chain_window(shared, c->ring, c->bit - (int32_t)extra, &high, &low);
    } else {
        chain_window(shared, c->ring, c->bit, &high, &low);
        high = (uint32_t)((((uint64_t)high << 32 | low) << extra) >> 32);
    }
    /* Now `high` begins with the bits of the next states. */
    uint32_t second = funnel_left(0, high, length), third = funnel_left(0, high, length + match);
    c->bit -= (int32_t)(extra + (sum & 31));
    c->length = funnel_left(high, 0, length) * (4 * CHAINS) + ((length & ENTRY_ADDED) + c->column);
    c->match = funnel_left(second, 0, match) * (4 * CHAINS) + ((match & ENTRY_ADDED) + c->column);
    c->offset = funnel_left(third, 0, offset) * (4 * CHAINS) + ((offset & ENTRY_ADDED) + c->column);
    return sum;
}

/* The piece that this replica is to bring next; `wants` where there is one. */
DEVICE_FN words4 chain_fetch(const uint8_t *base, int32_t bit, int32_t kept, int32_t replica,
                             bool *wants) {
    int32_t lowest = (bit >> 7) - (CHAIN_PIECES - 1), piece = kept - 1 - replica;
    *wants = piece >= (lowest < 0 ? 0 : lowest);
    piece = *wants ? piece : 0;
    prefetch_piece(base, piece);
    return load_piece(base, piece);
}

DEVICE_FN void chain_keep(uint32_t *ring, int32_t piece, words4 words) {
    uint32_t at = (uint32_t)piece % CHAIN_PIECES;
    store_words4(ring + CHAIN_RING + 4 * at, words);
    if (at == CHAIN_PIECES - 1)
        store_words4(ring + CHAIN_RING - 4, words);
}

/* How many pieces all replicas bring. */
DEVICE_FN int32_t chain_brought(int32_t bit, int32_t kept) {
    int32_t lowest = (bit >> 7) - (CHAIN_PIECES - 1), most = kept - (lowest < 0 ? 0 : lowest);
    return most < 0 ? 0 : most > REPLICAS ? REPLICAS : most;
}

/* Copies the tables, tells the other warps, reads the first states. By the chain's four lanes; the
 * ring is not yet there. */
DEVICE_FN void chain_open(const struct zstd_args *args, struct sequences_shared *shared,
                          const struct zstd_block *block, uint32_t replica, uint32_t chain,
                          struct chain *c) {
    struct backward in =
        backward_from(args->stored + block->in + block->bits_in, block->bits_bytes);
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        chain_copy_table(args, shared, block->codes_at[kind], kind, chain, replica, &c->logs[kind]);
    c->base = in.base;
    c->bit = in.bit;
    c->count = block->sequences;
    if (replica == 0) {
        shared->facts[chain].base = in.base;
        shared->facts[chain].begin = in.begin;
        shared->facts[chain].end = in.bit;
        shared->facts[chain].count = block->sequences;
    }
}

/* Fills the ring and reads the first states. */
DEVICE_FN void chain_begin(struct sequences_shared *shared, struct chain *c, uint32_t chain,
                           uint32_t replica) {
    uint32_t high, low, *ring = shared->rings[chain];
    const uint32_t *logs = c->logs;
    c->kept = (c->bit >> 7) + 1;
    c->column = 4 * chain;
    c->ring = 4 * CHAIN_RING * (2 * chain + 1);
    for (uint32_t i = 0; i < CHAIN_PIECES / REPLICAS; i++) {
        bool wants;
        words4 piece = chain_fetch(c->base, c->bit, c->kept, (int32_t)replica, &wants);
        if (wants)
            chain_keep(ring, c->kept - 1 - (int32_t)replica, piece);
        c->kept -= chain_brought(c->bit, c->kept);
    }
    sync_warp();
    chain_window(shared, c->ring, c->bit, &high, &low);
    c->length = funnel_left(high, 0, logs[ZSTD_LENGTH_CODE]) * (4 * CHAINS) + c->column;
    high = funnel_left(0, high, logs[ZSTD_LENGTH_CODE]);
    c->offset = funnel_left(high, 0, logs[ZSTD_OFFSET_CODE]) * (4 * CHAINS) + c->column;
    high = funnel_left(0, high, logs[ZSTD_OFFSET_CODE]);
    c->match = funnel_left(high, 0, logs[ZSTD_MATCH_CODE]) * (4 * CHAINS) + c->column;
    c->bit -= (int32_t)(logs[0] + logs[1] + logs[2]);
    sync_warp();
}

/* Two sequences, noted by the lane whose turn it is. Returns the larger of the sums. */
DEVICE_FN uint32_t chain_pair(const struct sequences_shared *shared, struct chain *c,
                              uint64_t *notes, bool is_turn, bool is_careful) {
    words4 note;
    uint32_t a = chain_step(shared, c, &note.x, &note.y, is_careful);
    uint32_t b = chain_step(shared, c, &note.z, &note.w, is_careful);
    if (is_turn)
        store_words4(notes, note);
    return a > b ? a : b;
}

/* Once more, with a look at the stream after the extra bits, and a refill for each pair. */
DEVICE_FN void chain_steps_again(struct sequences_shared *shared, struct chain *c, uint64_t *notes,
                                 uint32_t chain, uint32_t replica) {
    for (uint32_t i = 0; i < CHAIN_STEPS; i += 2) {
        bool wants;
        chain_pair(shared, c, notes + i, replica == i / 2, true);
        words4 piece = chain_fetch(c->base, c->bit, c->kept, (int32_t)replica, &wants);
        sync_warp();
        if (wants)
            chain_keep(shared->rings[chain], c->kept - 1 - (int32_t)replica, piece);
        c->kept -= chain_brought(c->bit, c->kept);
        sync_warp();
    }
}

/* The next CHAIN_STEPS sequences of all chains of the warp; those that have ended run on over
 * noise. `at` is the number of the first. */
DEVICE_FN void chain_steps(struct sequences_shared *shared, struct chain *c, uint64_t *notes,
                           uint32_t at, uint32_t chain, uint32_t replica) {
    struct chain before = *c;
    bool wants;
    words4 piece = chain_fetch(c->base, c->bit, c->kept, (int32_t)replica, &wants);
    uint32_t most = 0;
    UNROLLED
    for (uint32_t i = 0; i < CHAIN_STEPS; i += 2) {
        uint32_t sum = chain_pair(shared, c, notes + i, replica == i / 2, false);
        most = most > sum ? most : sum;
    }
    sync_warp();
    if (wants)
        chain_keep(shared->rings[chain], c->kept - 1 - (int32_t)replica, piece);
    c->kept -= chain_brought(before.bit, c->kept);
    sync_warp();
    if (warp_any(most >> ENTRY_EXTRA > CHAIN_EXTRA && at < c->count)) {
        before.kept = c->kept;
        *c = before;
        chain_steps_again(shared, c, notes, chain, replica);
    }
}

/* ---- what the sequences mean ------------------------------------------------------------------
 */

/* A record of 16 bytes: where in the block's bytes
 * its literals go, and its match after them; how many literals; the first of them; the offset of
 * the match, see offset_of. */

/* An offset is a number, or REFERS with, from bit 29 on, one of the three last offsets before the
 * block, and how much less than that it is. 0 is none. */
enum { REFERS_SLOT = 29, REFERS_LESS = (1 << REFERS_SLOT) - 1, OFFSET_MOST = 1 << REFERS_SLOT };
#define REFERS 0x80000000u

DEVICE_FN uint32_t reference(uint32_t slot, uint32_t less) {
    return REFERS | slot << REFERS_SLOT | less;
}

/* What an offset is where the three last were these, which may refer themselves. */
DEVICE_FN uint32_t offset_of(uint32_t offset, uint32_t last0, uint32_t last1, uint32_t last2) {
    if (!(offset & REFERS))
        return offset;
    uint32_t slot = offset >> REFERS_SLOT & 3, less = offset & REFERS_LESS;
    uint32_t last = slot == 0 ? last0 : slot == 1 ? last1 : last2;
    if (last & REFERS)
        return last + less;
    return last > less ? last - less : 0;
}

struct history {
    uint32_t last[3];
};

DEVICE_FN struct history history_after(struct history before, struct history change) {
    struct history after;
    for (uint32_t i = 0; i < 3; i++)
        after.last[i] = offset_of(change.last[i], before.last[0], before.last[1], before.last[2]);
    return after;
}

/* How a sequence changes the last offsets; its own offset is the last after it. */
DEVICE_FN struct history history_change(uint32_t value, bool has_literals) {
    struct history change = {{reference(0, 0), reference(1, 0), reference(2, 0)}};
    uint32_t which = value > 3 ? 3 : value - has_literals;
    if (value == 0 || which == 0) /* no sequence, or the last offset again */
        return change;
    uint32_t offset = value > 3 ? value - 3 : which == 3 ? reference(0, 1) : reference(which, 0);
    if (which >= 2)
        change.last[2] = reference(1, 0);
    change.last[1] = reference(0, 0);
    change.last[0] = offset;
    return change;
}

DEVICE_TABLE uint32_t length_base[LENGTH_SYMBOLS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,   12,   13,   14,   15,    16,    18,
    20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
DEVICE_TABLE uint32_t match_base[MATCH_SYMBOLS] = {
    3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,   15,   16,   17,    18,    19,   20,
    21, 22, 23, 24, 25, 26, 27, 28,  29,  30,  31,   32,   33,   34,   35,    37,    39,   41,
    43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};

struct sequence {
    uint32_t literals, match, value;
};

/* Reads the extra bits of a sequence. False where they are not inside the stream. */
DEVICE_FN bool sequence_read(const struct sequences_shared *shared, const struct chain_facts *in,
                             int32_t bit, uint32_t symbols, bool is_last,
                             struct sequence *sequence) {
    uint32_t length = shared->lengths[symbols & 63], match = shared->matches[symbols >> 8 & 63];
    uint32_t length_bits = length >> 24, match_bits = match >> 24, value_bits = symbols >> 16 & 31;
    int32_t from = bit - (int32_t)(length_bits + match_bits + value_bits);
    if (from < in->begin || bit > in->end || (is_last && from != in->begin))
        return false;
    const uint8_t *words = in->base + (uint32_t)from / 32 * (size_t)4;
    uint32_t a = load_u32_aligned(words), b = load_u32_aligned(words + 4),
             c = load_u32_aligned(words + 8), shift = (uint32_t)from & 31;
    uint64_t extra = (uint64_t)funnel_right(b, c, shift) << 32 | funnel_right(a, b, shift);
    sequence->literals = (length & 0xFFFFFF) + ((uint32_t)extra & ((1u << length_bits) - 1));
    extra >>= length_bits;
    sequence->match = (match & 0xFFFFFF) + ((uint32_t)extra & ((1u << match_bits) - 1));
    extra >>= match_bits;
    sequence->value = (1u << value_bits) + ((uint32_t)extra & ((1u << value_bits) - 1));
    return sequence->value < OFFSET_MOST;
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

/* The history after all sequences up to each lane's. A collective. */
DEVICE_FN struct history history_scan(struct history before, uint32_t value, bool has_literals) {
    struct history change = history_change(value, has_literals);
    for (uint32_t by = 1; by < WARP; by *= 2) {
        struct history earlier;
        for (uint32_t i = 0; i < 3; i++)
            earlier.last[i] = warp_read_up(change.last[i], by);
        if (lane_index() >= by)
            change = history_after(earlier, change);
    }
    return history_after(before, change);
}

DEVICE_FN void record_store(uint8_t *at, uint32_t out, uint32_t literals, uint32_t from,
                            uint32_t offset) {
    words4 record = {out, literals, from, offset};
    store_words4(at, record);
}

/* Turns up to 32 notes of a chain into records; `first` is the number of the first. By one warp. */
DEVICE_FN void post_batch(const struct zstd_args *args, struct sequences_shared *shared,
                          const struct zstd_block *block, const uint64_t *notes, uint32_t chain,
                          uint32_t first) {
    struct chain_facts *facts = &shared->facts[chain];
    uint32_t index = first + lane_index(), count = facts->count;
    if (first >= count || !facts->is_good)
        return;
    uint64_t note = notes[lane_index()];
    struct sequence s = {0, 0, 0};
    bool is_good = index >= count || sequence_read(shared, facts, (int32_t)(uint32_t)note,
                                                   (uint32_t)(note >> 32), index == count - 1, &s);
    is_good = warp_all(is_good);
    uint32_t all = s.literals + s.match, literals = s.literals;
    scan_both(&all, &literals);
    struct history last = {{facts->last[0], facts->last[1], facts->last[2]}}, own;
    uint32_t out = facts->out, from = facts->from;
    if (warp_all(s.value > 3)) { /* all 32, none of which refers */
        own.last[0] = s.value - 3;
        for (uint32_t i = 0; i < 3; i++)
            last.last[i] = warp_read(own.last[0], WARP - 1 - i);
    } else {
        own = history_scan(last, s.value, s.literals > 0);
        for (uint32_t i = 0; i < 3; i++)
            last.last[i] = warp_read(own.last[i], WARP - 1);
    }
    if (index < count && is_good)
        record_store(quad_at(args, block->records_at + index), out + all - s.literals - s.match,
                     s.literals, from + literals - s.literals, own.last[0]);
    out += warp_read(all, WARP - 1);
    from += warp_read(literals, WARP - 1);
    sync_warp(); /* all have read what is changed now */
    if (lane_index() == 0) {
        facts->is_good = is_good && out <= block->most_out && from <= block->literals;
        facts->out = out;
        facts->from = from;
        for (uint32_t i = 0; i < 3; i++)
            facts->last[i] = last.last[i];
    }
    sync_warp();
}

/* After the last sequence: the rest of the literals. By one lane. */
DEVICE_FN void post_end(const struct zstd_args *args, const struct chain_facts *facts,
                        struct zstd_block *block) {
    uint32_t rest = block->literals - facts->from;
    if (!facts->is_good || facts->out + rest > block->most_out) {
        refuse(args, block->tile, COGPU_GPU_DAMAGED);
        return;
    }
    record_store(quad_at(args, block->records_at + block->sequences), facts->out, rest, facts->from,
                 1);
    block->out_bytes = facts->out + rest;
    for (uint32_t i = 0; i < 3; i++)
        block->history[i] = facts->last[i];
}

enum { POST_WARPS = 8, SEQUENCES_THREADS = (1 + POST_WARPS) * WARP };

/* The first warp follows the chains, 32 sequences at a time; the others read the extra bits of the
 * 32 before. */
KERNEL(cogpu_kernel_zstd_sequences, struct zstd_args, struct sequences_shared, 288, 4) {
    uint32_t lane = lane_index(), chain = lane % CHAINS, replica = lane / CHAINS;
    uint32_t warp = warp_index(), count = args->rounds[args->round].blocks;
    for (uint32_t i = thread_index(); i < 64; i += SEQUENCES_THREADS) {
        shared->lengths[i] =
            i < LENGTH_SYMBOLS ? length_base[i] | (uint32_t)length_extra[i] << 24 : 0;
        shared->matches[i] = i < MATCH_SYMBOLS ? match_base[i] | (uint32_t)match_extra[i] << 24 : 0;
    }
    for (uint32_t first = block_index() * CHAINS; first < count; first += block_count() * CHAINS) {
        struct chain c;
        sync_block();
        if (warp == 0) {
            /* One lane decides for the chain: literals, which run beside, may refuse the tile now.
             */
            const struct zstd_block *block = &args->blocks[lesser(first + chain, count - 1)];
            bool is_live = first + chain < count && !is_refused(args, block->tile);
            is_live = warp_read(is_live, chain);
            c.base = args->pool;
            c.bit = 0;
            c.count = c.logs[0] = c.logs[1] = c.logs[2] = 0;
            if (replica == 0) {
                struct chain_facts *facts = &shared->facts[chain];
                facts->is_live = is_live;
                facts->count = facts->out = facts->from = 0;
                facts->is_good = true;
                for (uint32_t i = 0; i < 3; i++)
                    facts->last[i] = reference(i, 0);
            }
            if (is_live && block->sequences)
                chain_open(args, shared, block, replica, chain, &c);
            else if (replica == 0) /* states that stay what they are */
                shared->tables[0][chain] = shared->tables[512][chain] =
                    shared->tables[1024][chain] = 0;
            shared->batches = (warp_max(c.count) + WARP - 1) / WARP;
            sync_warp();
            chain_begin(shared, &c, chain, replica);
        }
        sync_block();
        for (uint32_t batch = 0; batch <= shared->batches; batch++) {
            if (warp == 0) {
                uint64_t *notes = shared->notes[batch % 2][chain];
                for (uint32_t i = 0; i < WARP && batch < shared->batches; i += CHAIN_STEPS)
                    chain_steps(shared, &c, notes + i, batch * WARP + i, chain, replica);
            } else if (batch > 0) {
                for (uint32_t i = warp - 1; i < CHAINS && first + i < count; i += POST_WARPS)
                    post_batch(args, shared, &args->blocks[first + i],
                               shared->notes[(batch - 1) % 2][i], i, (batch - 1) * WARP);
            }
            sync_block();
        }
        uint32_t own = thread_index();
        if (own < CHAINS && shared->facts[own].is_live)
            post_end(args, &shared->facts[own], &args->blocks[first + own]);
    }
}

/* ---- execute --------------------------------------------------------------------------------- */

/* A tile is made in stretches, each a multiple of STRETCH bytes from the tile's begin to the next,
 * or the part of that which is in one zstd block. Places in a stretch are counted from that
 * multiple. */

/* Of 32 bytes: those where a record begins, and the number of the record before them. */
struct starts {
    uint32_t bits, before;
};

struct stretch {
    words4 *records; /* begin of the match, first literal, offset */
    uint8_t *bytes;
    struct starts *starts;
    uint16_t *sources; /* of each byte: where it is copied from, or its own place */
    uint16_t *pending; /* of each warp: its bytes that are copied inside the stretch */
    uint32_t *next, *is_bad, *tile;
};

/* What is known of the tile while it is made. */
struct making {
    const struct zstd_args *args;
    const struct zstd_block *block;
    const uint8_t *literals;
    uint8_t *out;                /* the tile's */
    uint32_t base, frame;        /* where the zstd block and its frame begin in the tile */
    uint32_t window, begin, end; /* of the stretch: the multiple, its first place and its end */
    uint32_t last[3];
    uint32_t literal_mask;
};

enum { STRETCH_BAD_OFFSET = 1 };

/* Loads the records of the stretch, from number `first` of the block on. A collective. */
DEVICE_FN void load_records(const struct making *m, struct stretch *s, uint32_t first,
                            uint32_t threads, uint32_t most) {
    const uint8_t *records = quad_at(m->args, m->block->records_at);
    uint32_t count = m->block->sequences + 1, last_word = (m->end - 1) / 32;
    /* Places of the block's bytes in the stretch; wraps where the block began before it. */
    uint32_t shift = m->base - m->window;
    /* What the next stretch will want, as far as one can guess. */
    uint32_t ahead = m->block->literals / (m->block->out_bytes / (m->end - m->begin) + 1);
    for (uint32_t number = thread_index();; number += threads) {
        uint32_t index = first + number;
        bool is_in = false;
        if (index < count && number < most) {
            words4 record = load_words4(records + 16 * (size_t)index);
            int32_t start = (int32_t)(record.x + shift);
            is_in = start < (int32_t)m->end;
            if (is_in) {
                uint32_t next = m->end;
                bool is_final = index + 1 == count;
                if (!is_final)
                    next = load_u32_aligned(records + 16 * (size_t)(index + 1)) + shift;
                uint32_t offset = offset_of(record.w, m->last[0], m->last[1], m->last[2]);
                uint32_t reach = m->base + record.x + record.y - m->frame;
                reach = lesser(reach, m->block->window);
                if (!is_final && (offset == 0 || offset > reach))
                    *s->is_bad = STRETCH_BAD_OFFSET;
                prefetch(records + 16 * (size_t)lesser(index + threads, count - 1));
                prefetch(m->literals +
                         (lesser(record.z + ahead, m->block->literals) & m->literal_mask));
                words4 kept = {(uint32_t)start + record.y, record.z - (uint32_t)start, offset, 0};
                s->records[number] = kept;
                uint32_t place = start < (int32_t)m->begin ? m->begin : (uint32_t)start;
                atomic_or(&s->starts[place / 32].bits, 1u << place % 32);
                if (number == 0)
                    s->starts[place / 32].before = ~0u;
                uint32_t to = lesser(next / 32, last_word);
                for (uint32_t word = place / 32 + 1; word <= to; word++)
                    s->starts[word].before = number;
                if (next >= m->end)
                    *s->next = next == m->end && !is_final ? index + 1 : index;
            }
        }
        if (!sync_block_or(is_in && thread_index() == threads - 1))
            return;
    }
}

/* The byte at `place`: its value, or where in the stretch it is copied from. A stretch that is
 * `plain` is whole, and its literals are not one byte. */
DEVICE_FN bool find_byte(const struct making *m, const struct stretch *s, uint32_t place,
                         uint32_t up_to, bool is_plain, uint32_t *value) {
    struct starts word = s->starts[place / 32];
    words4 record = s->records[word.before + count_ones(word.bits & up_to)];
    int32_t into = (int32_t)place - (int32_t)record.x; /* the match */
    if (into < 0) {
        uint32_t literal = place + record.y;
        *value = m->literals[is_plain ? literal : literal & m->literal_mask];
        return true;
    }
    uint32_t back = record.z;
    if ((uint32_t)into >= back) /* it repeats itself */
        back = (uint32_t)into - (uint32_t)into % back + back;
    int32_t source = (int32_t)(place - back);
    if (source >= (is_plain ? 0 : (int32_t)m->begin)) {
        *value = (uint32_t)source;
        return false;
    }
    *value = m->out[m->window + (uint32_t)source];
    return true;
}

enum { BYTES_AT_ONCE = 8 };

/* Finds all bytes of the stretch; those that are copied inside it go onto the warp's list. Returns
 * how many. */
DEVICE_FN uint32_t find_bytes(const struct making *m, struct stretch *s, uint16_t *pending,
                              uint32_t threads, uint32_t length, bool is_plain) {
    uint32_t lane = lane_index(), up_to = 0xFFFFFFFFu >> (31 - lane), count = 0;
    for (uint32_t row = thread_index(); row < length; row += threads * BYTES_AT_ONCE) {
        uint32_t values[BYTES_AT_ONCE], copied = 0;
        UNROLLED
        for (uint32_t i = 0; i < BYTES_AT_ONCE; i++) {
            uint32_t place = row + i * threads;
            values[i] = 0;
            if ((is_plain || (place >= m->begin && place < m->end)) &&
                !find_byte(m, s, place, up_to, is_plain, &values[i]))
                copied |= 1u << i;
        }
        UNROLLED
        for (uint32_t i = 0; i < BYTES_AT_ONCE; i++) {
            uint32_t place = row + i * threads;
            bool is_copied = copied >> i & 1;
            uint32_t copies = warp_ballot(is_copied);
            s->sources[place] = (uint16_t)(is_copied ? values[i] : place);
            if (!is_copied)
                s->bytes[place] = (uint8_t)values[i];
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
DEVICE_FN void copy_pending(struct stretch *s, const uint16_t *pending, uint32_t count) {
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint32_t place = pending[i], source = s->sources[place];
        for (;;) {
            uint32_t further = s->sources[source];
            if (further == source)
                break;
            source = further;
        }
        s->bytes[place] = s->bytes[source];
    }
}

DEVICE_FN void write_stretch(const struct making *m, const struct stretch *s, uint32_t threads) {
    uint8_t *to = m->out + m->window;
    uint32_t first = (m->begin + 15) / 16, end = m->end / 16;
    for (uint32_t i = first + thread_index(); i < end; i += threads)
        store_words4(to + 16 * i, load_words4(s->bytes + 16 * i));
    if (m->begin % 16 == 0 && m->end % 16 == 0)
        return;
    uint32_t head = lesser(16 * first, m->end), tail = 16 * end > head ? 16 * end : head;
    for (uint32_t i = m->begin + thread_index(); i < head; i += threads)
        to[i] = s->bytes[i];
    for (uint32_t i = tail + thread_index(); i < m->end; i += threads)
        to[i] = s->bytes[i];
}

/* Makes the bytes of a zstd block. False where an offset is no good. */
DEVICE_FN bool make_block(struct making *m, struct stretch *s, uint32_t threads, uint32_t length) {
    uint32_t bytes = m->block->out_bytes, record = 0;
    uint16_t *pending = s->pending + warp_index() * (length / (threads / WARP));
    for (uint32_t done = 0; done < bytes;) {
        m->window = (m->base + done) / length * length;
        m->begin = m->base + done - m->window;
        m->end = lesser(length, m->begin + (bytes - done));
        load_records(m, s, record, threads, length / 3 + 2);
        if (*s->is_bad)
            return false;
        bool is_plain = m->end - m->begin == length && m->literal_mask;
        uint32_t count = is_plain ? find_bytes(m, s, pending, threads, length, true)
                                  : find_bytes(m, s, pending, threads, length, false);
        sync_block();
        copy_pending(s, pending, count);
        for (uint32_t i = thread_index(); i < length / 32; i += threads)
            s->starts[i].bits = 0;
        record = *s->next;
        sync_block();
        write_stretch(m, s, threads);
        done += m->end - m->begin;
    }
    return true;
}

/* All blocks of a tile, one after the other. */
DEVICE_FN uint32_t make_tile(const struct zstd_args *args, struct stretch *s, uint32_t tile,
                             uint32_t threads, uint32_t length) {
    const cogpu_coded *coded = &args->coded[tile];
    const struct zstd_tile *note = &args->tiles[tile];
    struct making m;
    m.args = args;
    m.out = args->decoded + coded->out;
    m.base = m.frame = 0;
    for (uint32_t i = 0; i < note->blocks; i++) {
        const struct zstd_block *block = &args->blocks[note->first_block + i];
        m.block = block;
        m.literals = block->flags & ZSTD_CODED ? quad_at(args, block->literals_at)
                                               : args->stored + block->in + block->literals_in;
        m.literal_mask = block->flags & ZSTD_ONE_BYTE ? 0 : 0xFFFFFFFFu;
        if (block->flags & ZSTD_FIRST) {
            m.frame = m.base;
            m.last[0] = 1;
            m.last[1] = 4;
            m.last[2] = 8;
        }
        if (block->out_bytes > coded->room - m.base)
            return COGPU_GPU_TOO_LONG;
        if (!make_block(&m, s, threads, length))
            return COGPU_GPU_DAMAGED;
        m.base += block->out_bytes;
        if ((block->flags & ZSTD_LAST) && (block->flags & ZSTD_HAS_SIZE) &&
            m.base - m.frame != block->content)
            return COGPU_GPU_DAMAGED;
        uint32_t last[3];
        for (uint32_t k = 0; k < 3; k++)
            last[k] = offset_of(block->history[k], m.last[0], m.last[1], m.last[2]);
        for (uint32_t k = 0; k < 3; k++)
            m.last[k] = last[k];
    }
    return m.base < coded->needed ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
}

/* Takes tiles of the round as long as there are any. */
DEVICE_FN void make_tiles(const struct zstd_args *args, struct stretch *s, uint32_t threads,
                          uint32_t length) {
    struct zstd_round *round = &args->rounds[args->round];
    for (;;) {
        sync_block();
        for (uint32_t i = thread_index(); i < length / 32; i += threads)
            s->starts[i].bits = 0;
        if (thread_index() == 0) {
            uint32_t ticket = atomic_add(&round->ticket, 1);
            bool is_refusal = ticket < round->end_tile && is_refused(args, ticket);
            s->tile[0] = ticket;
            s->tile[1] = is_refusal;
            *s->is_bad = 0;
        }
        sync_block();
        uint32_t tile = s->tile[0];
        if (tile >= round->end_tile)
            return;
        if (s->tile[1])
            continue;
        uint32_t verdict = make_tile(args, s, tile, threads, length);
        if (verdict && thread_index() == 0)
            refuse(args, tile, verdict);
    }
}

#define EXECUTE_SHARED(name, length)                                                               \
    struct name {                                                                                  \
        words4 records[(length) / 3 + 2];                                                          \
        uint8_t bytes[length];                                                                     \
        struct starts starts[(length) / 32];                                                       \
        uint16_t sources[length], pending[length];                                                 \
        uint32_t next, is_bad, tile[2];                                                            \
    }

#define EXECUTE(threads, length)                                                                   \
    struct stretch s = {shared->records, shared->bytes, shared->starts,  shared->sources,          \
                        shared->pending, &shared->next, &shared->is_bad, shared->tile};            \
    make_tiles(args, &s, threads, length)

/* Few tiles: more threads for each. */
EXECUTE_SHARED(few_shared, 3072);
KERNEL(cogpu_kernel_zstd_execute_few, struct zstd_args, struct few_shared, 384, 4) {
    EXECUTE(384, 3072);
}

EXECUTE_SHARED(many_shared, 2048);
KERNEL(cogpu_kernel_zstd_execute_many, struct zstd_args, struct many_shared, 256, 6) {
    EXECUTE(256, 2048);
}

/* ---- sums: XXH64 of frames that carry it ----------------------------------------------------- */

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
            UNROLLED
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

KERNEL(cogpu_kernel_zstd_sums, struct zstd_args, struct nothing_shared, 32, 1) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t stride = block_count() * thread_count();
    for (uint32_t tile = round->first_tile + block_index() * thread_count() + thread_index();
         tile < round->end_tile; tile += stride) {
        const struct zstd_tile *note = &args->tiles[tile];
        if (!note->has_sum || is_refused(args, tile))
            continue;
        const uint8_t *frame = args->decoded + args->coded[tile].out;
        for (uint32_t i = 0, bytes = 0; i < note->blocks; i++) {
            const struct zstd_block *block = &args->blocks[note->first_block + i];
            bytes += block->out_bytes;
            if (!(block->flags & ZSTD_LAST))
                continue;
            if (block->flags & ZSTD_HAS_SUM && (uint32_t)sum_of(frame, bytes) != block->sum)
                refuse(args, tile, COGPU_GPU_BAD_SUM);
            frame += bytes;
            bytes = 0;
        }
    }
}
