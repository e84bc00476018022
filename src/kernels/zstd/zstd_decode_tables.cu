/*
 * Zstandard decoder, step 4: the decoding tables that zstd blocks bring (RFC 8878, 4.1.1
 * and 4.2.1).
 *
 * Two warps per zstd block, which share nothing: one builds the FSE tables of its sequences, one
 * the Huffman table of its literals. A block without own tables is skipped: it has the index of an
 * earlier block's tables. Tables go to the pool, because the streams and execute kernels read them.
 *
 * Building an FSE table (4.1.1), for example with 32 states (Accuracy_Log 5):
 *
 * 1. Counts of -1 take one cell each, from the last state down: 31, 30, ...
 * 2. The other symbols are spread over the remaining states in steps of 5/8 size + 3 = 23. A first
 *    symbol A with count 3 gets the states 0, 23, 14; the next symbol goes on with 5, 28, 19, ...
 * 3. In order of states, the cells of a symbol with count n are numbered n, n + 1, ..., 2n - 1. A
 *    cell numbered k reads bits = log - floor(log2(k)) for its next state, whose baseline is
 *    (k << bits) - size:
 *
 *        state of A      0        14       23
 *        k               3        4        5
 *        bits            4        3        3
 *        baseline        16       0        8
 *        next states     16..31   0..7     8..15          together all 32 states
 *
 * Reading normalized counts is serial, since each value's width depends on the sum so far: lane 0
 * does it on a copy in shared memory. Spreading and numbering are parallel: a ballot gives a lane
 * how many cells before its own are free, a match how many lanes have the same symbol.
 *
 * Bounds. Symbols, logs and counts are checked against the maxima of their kind before they index
 * anything; a description is read from a zero-padded copy of STAGED_BYTES. Refused: what RFC 8878
 * forbids.
 */
#include "kernels/zstd/zstd_decode_fse.h"

enum { WEIGHT_SYMBOLS = 13, OFFSET_DEFAULT_SYMBOLS = 29 };
/* A fourth kind of FSE table, for the weights of a Huffman tree. */
enum { HUFFMAN_WEIGHT = ZSTD_CODE_KINDS, WEIGHT_ACCURACY_LOG_MAX = 6 };

/* Default distributions of Predefined_Mode (3.1.1.3.2.2). */
DEVICE_TABLE int8_t literals_length_default_counts[LITERALS_LENGTH_SYMBOLS] = {
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
    2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
DEVICE_TABLE int8_t offset_default_counts[OFFSET_DEFAULT_SYMBOLS] = {
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
DEVICE_TABLE int8_t match_length_default_counts[MATCH_LENGTH_SYMBOLS] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

/* The longest description, a header byte and 127 bytes of Huffman weights; the rest is padding, for
 * loads past its end. */
enum { STAGED_BYTES = 192 };

/* Shared memory of a warp. */
struct table_scratch {
    uint8_t description[STAGED_BYTES]; /* encoded description of a table, zeros after its end */
    int16_t normalized_counts[64];     /* of each symbol; -1: less than one */
    uint16_t next_state[64];           /* of each symbol: number k of its next cell, see above */
    uint8_t by_rank[512];              /* each symbol as often as its count says, in order */
    uint8_t state_symbols[512];        /* the symbol of each state */
    uint32_t weight_table[1 << WEIGHT_ACCURACY_LOG_MAX]; /* FSE table of Huffman weights */
    uint8_t weights[256];                                /* Huffman weight of each literal */
    uint8_t by_weight[256];                              /* literals sorted by weight */
    uint32_t weight_counts[16];                          /* literals of each weight */
};

struct tables_shared {
    struct table_scratch warps[4];
};

DEVICE_FN uint32_t pack_fse_entry(uint32_t baseline, uint32_t state_bits, uint32_t symbol,
                                  uint32_t extra) {
    return baseline << FSE_BASELINE_SHIFT | state_bits << FSE_STATE_BITS_SHIFT |
           symbol << FSE_SYMBOL_SHIFT | extra << FSE_EXTRA_SHIFT;
}

DEVICE_FN uint32_t symbol_count_of(uint32_t kind) {
    return kind == ZSTD_LITERALS_LENGTH ? LITERALS_LENGTH_SYMBOLS
           : kind == ZSTD_OFFSET        ? OFFSET_SYMBOLS
           : kind == ZSTD_MATCH_LENGTH  ? MATCH_LENGTH_SYMBOLS
                                        : WEIGHT_SYMBOLS;
}

DEVICE_FN uint32_t accuracy_log_max_of(uint32_t kind) {
    return kind == HUFFMAN_WEIGHT ? WEIGHT_ACCURACY_LOG_MAX
           : kind == ZSTD_OFFSET  ? 8
                                  : ACCURACY_LOG_MAX;
}

DEVICE_FN uint32_t extra_bits_of(uint32_t kind, uint32_t symbol) {
    return kind == ZSTD_LITERALS_LENGTH ? literals_length_extra_bits[symbol]
           : kind == ZSTD_OFFSET        ? symbol
           : kind == ZSTD_MATCH_LENGTH  ? match_length_extra_bits[symbol]
                                        : 0;
}

/* Copies an encoded description to shared memory, at most STAGED_BYTES of it. By a warp. */
DEVICE_FN void stage_description(struct table_scratch *scratch, const uint8_t *from,
                                 uint32_t bytes) {
    sync_warp();
    for (uint32_t i = lane_index(); i < STAGED_BYTES; i += WARP)
        scratch->description[i] = i < bytes ? from[i] : 0;
    sync_warp();
}

/* Reads a count + 1 at bit *bit, where `left` cells are not yet assigned. The value is 0 to left
 * + 1. It takes width = floor(log2(left + 1)) + 1 bits, or one bit less if it is below 2^width - 2
 * - left. Example: at the start of a table of 32 cells values are 0 to 33; 0 to 29 take 5 bits, 30
 * to 33 take 6. */
DEVICE_FN uint32_t read_count(const uint8_t *description, uint32_t left, uint32_t *bit) {
    uint32_t next_bits = load_le24(description + *bit / 8) >> *bit % 8;
    uint32_t width = highest_bit(left + 1) + 1, short_values = (1u << width) - 2 - left;
    uint32_t value = next_bits & ((1u << (width - 1)) - 1);
    if (value < short_values) {
        *bit += width - 1;
        return value;
    }
    value = next_bits & ((1u << width) - 1);
    *bit += width;
    return value >= 1u << (width - 1) ? value - short_values : value;
}

/* FSE table description (4.1.1), LSB first, from byte `from` of the staged description on. By one
 * lane. Returns the bytes read, 0 if it is malformed.
 *
 *     Accuracy_Log - 5 (4 bits) | count + 1 of symbol 0 | count + 1 of symbol 1 | ...
 *
 * After a count of 0 follow 2-bit flags: how many more counts are 0, where 3 means that another
 * flag follows. */
DEVICE_FN uint32_t read_normalized_counts(struct table_scratch *scratch, uint32_t from,
                                          uint32_t bytes, uint32_t kind, uint32_t *symbols,
                                          uint32_t *accuracy_log) {
    const uint8_t *description = scratch->description + from;
    uint32_t symbols_max = symbol_count_of(kind), symbol = 0, bit = 4;
    bytes = min_u32(bytes, STAGED_BYTES - 4 - from);
    *accuracy_log = 5 + (description[0] & 15);
    if (*accuracy_log > accuracy_log_max_of(kind))
        return 0;
    int32_t left = 1 << *accuracy_log;
    while (left > 0) {
        if (bit / 8 >= bytes || symbol >= symbols_max)
            return 0;
        int32_t count = (int32_t)read_count(description, (uint32_t)left, &bit) - 1;
        scratch->normalized_counts[symbol++] = (int16_t)count;
        left -= count < 0 ? 1 : count;
        for (uint32_t zeros = count == 0 ? 3 : 0; zeros == 3;) {
            if (bit / 8 >= bytes)
                return 0;
            zeros = load_le16(description + bit / 8) >> bit % 8 & 3;
            bit += 2;
            if (symbol + zeros > symbols_max)
                return 0;
            for (uint32_t i = 0; i < zeros; i++)
                scratch->normalized_counts[symbol++] = 0;
        }
    }
    uint32_t used = (bit + 7) / 8;
    *symbols = symbol;
    return left < 0 || symbol < 2 || used > bytes ? 0 : used;
}

/* Gives symbols with a count of -1 the last states, one each, and starts the numbering of all
 * symbols' cells. Returns the number of such symbols. By a warp. */
DEVICE_FN uint32_t assign_rare_states(struct table_scratch *scratch, uint32_t symbols,
                                      uint32_t size) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1, rare_cells = 0;
    for (uint32_t first = 0; first < symbols; first += WARP) {
        uint32_t symbol = first + lane;
        int32_t count = symbol < symbols ? scratch->normalized_counts[symbol] : 0;
        uint32_t rare_lanes = warp_ballot(count < 0);
        if (count < 0)
            scratch->state_symbols[size - 1 - rare_cells - count_ones(rare_lanes & below)] =
                (uint8_t)symbol;
        rare_cells += count_ones(rare_lanes);
        if (symbol < symbols)
            scratch->next_state[symbol] = (uint16_t)(count < 0 ? 1 : count);
    }
    return rare_cells;
}

/* Spreads the other symbols over the other states: step 2 above. By a warp. */
DEVICE_FN void spread_symbols(struct table_scratch *scratch, uint32_t symbols, uint32_t size,
                              uint32_t rare_cells) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1;
    for (uint32_t symbol = 0, rank = 0; symbol < symbols; symbol++) {
        int32_t count = scratch->normalized_counts[symbol];
        for (int32_t i = (int32_t)lane; i < count; i += WARP)
            scratch->by_rank[rank + (uint32_t)i] = (uint8_t)symbol;
        rank += count > 0 ? (uint32_t)count : 0;
    }
    sync_warp();
    uint32_t step = size / 2 + size / 8 + 3, rank = 0;
    for (uint32_t i = lane; i < size; i += WARP) {
        uint32_t state = i * step & (size - 1);
        bool is_free = state < size - rare_cells;
        uint32_t free_cells = warp_ballot(is_free);
        if (is_free)
            scratch->state_symbols[state] = scratch->by_rank[rank + count_ones(free_cells & below)];
        rank += count_ones(free_cells);
    }
}

/* Builds an FSE table from normalized counts; see the top of the file. By a warp. */
DEVICE_FN void build_fse_table(struct table_scratch *scratch, uint32_t symbols,
                               uint32_t accuracy_log, uint32_t kind, uint32_t *table) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1, size = 1u << accuracy_log;
    sync_warp();
    uint32_t rare_cells = assign_rare_states(scratch, symbols, size);
    spread_symbols(scratch, symbols, size, rare_cells);
    sync_warp();
    for (uint32_t state = lane; state < size; state += WARP) {
        uint32_t symbol = scratch->state_symbols[state], same = warp_match(symbol);
        uint32_t number = scratch->next_state[symbol] + count_ones(same & below);
        sync_warp();
        if (same >> lane == 1)
            scratch->next_state[symbol] = (uint16_t)(number + 1);
        uint32_t bits = accuracy_log - highest_bit(number);
        table[state] =
            pack_fse_entry(number - (size >> bits), bits, symbol, extra_bits_of(kind, symbol));
        sync_warp();
    }
}

/* Bits of a short backward stream in shared memory, from bit `bit` up; 0 if it is before the
 * stream. */
DEVICE_FN uint32_t staged_bits(const uint8_t *stream, int32_t bit, uint32_t count) {
    return bit < 0 ? 0 : load_le16(stream + bit / 8) >> bit % 8 & ((1u << count) - 1);
}

/* Decodes weights by two FSE states that alternate (4.2.1.2). When one lacks bits for its update,
 * the other one gives the last weight. `bit` is the end of the stream. Returns the number of
 * weights, 0 if there are too many. By one lane. */
DEVICE_FN uint32_t decode_weight_stream(struct table_scratch *scratch, const uint8_t *stream,
                                        int32_t bit, uint32_t accuracy_log) {
    uint32_t count = 0;
    bit -= (int32_t)accuracy_log;
    uint32_t state = staged_bits(stream, bit, accuracy_log);
    bit -= (int32_t)accuracy_log;
    uint32_t other_state = staged_bits(stream, bit, accuracy_log);
    if (bit < 0)
        return 0;
    while (count < 254) { /* each turn adds up to two; 255 weights at most are sent */
        uint32_t entry = scratch->weight_table[state], bits = fse_state_bits(entry);
        scratch->weights[count++] = (uint8_t)(entry >> FSE_SYMBOL_SHIFT & 63);
        if (bit < (int32_t)bits) {
            scratch->weights[count++] =
                (uint8_t)(scratch->weight_table[other_state] >> FSE_SYMBOL_SHIFT & 63);
            return count;
        }
        bit -= (int32_t)bits;
        state = other_state;
        other_state = (entry >> FSE_BASELINE_SHIFT << bits) + staged_bits(stream, bit, bits);
    }
    return 0;
}

/* Huffman weights that are FSE-coded (4.2.1.2) in `bytes` bytes, from byte 1 of the staged
 * description on: the description of their FSE table, then a backward stream. Returns their number,
 * 0 if they are malformed. By a warp. */
DEVICE_FN uint32_t decode_huffman_weights(struct table_scratch *scratch, uint32_t bytes) {
    uint32_t used = 0, symbols = 0, accuracy_log = 0, count = 0;
    if (lane_index() == 0)
        used = read_normalized_counts(scratch, 1, bytes, HUFFMAN_WEIGHT, &symbols, &accuracy_log);
    used = warp_read(used, 0);
    symbols = warp_read(symbols, 0);
    accuracy_log = warp_read(accuracy_log, 0);
    uint32_t last_byte = scratch->description[bytes];
    if (used == 0 || used >= bytes || last_byte == 0)
        return 0;
    build_fse_table(scratch, symbols, accuracy_log, HUFFMAN_WEIGHT, scratch->weight_table);
    sync_warp();
    if (lane_index() == 0)
        count = decode_weight_stream(scratch, scratch->description + 1 + used,
                                     (int32_t)(8 * (bytes - used - 1) + highest_bit(last_byte)),
                                     accuracy_log);
    return warp_read(count, 0);
}

/* Checks the weights of the first `count` symbols and appends the last one's, which is implied
 * (4.2.1): it completes the sum of 2^(weight - 1) to a power of two. Returns max_bits, the length
 * of the longest code; 0 if the weights are malformed. By a warp. */
DEVICE_FN uint32_t complete_weights(struct table_scratch *scratch, uint32_t count) {
    uint32_t lane = lane_index(), sum = 0;
    bool is_bad = count == 0;
    sync_warp();
    for (uint32_t i = lane; i < count; i += WARP) {
        uint32_t weight = scratch->weights[i];
        is_bad |= weight > ZSTD_HUFFMAN_BITS_MAX;
        sum += weight > ZSTD_HUFFMAN_BITS_MAX ? 0 : (1u << weight) >> 1;
    }
    sum = warp_sum(sum);
    if (warp_any(is_bad) || sum == 0)
        return 0;
    uint32_t max_bits = highest_bit(sum) + 1, rest = (1u << max_bits) - sum;
    if (max_bits > ZSTD_HUFFMAN_BITS_MAX || rest & (rest - 1))
        return 0;
    if (lane == 0)
        scratch->weights[count] = (uint8_t)(highest_bit(rest) + 1);
    return max_bits;
}

/* Counts the symbols of each weight into scratch->weight_counts. By a warp. */
DEVICE_FN void count_weights(struct table_scratch *scratch, uint32_t count) {
    uint32_t lane = lane_index();
    if (lane < 16)
        scratch->weight_counts[lane] = 0;
    sync_warp();
    for (uint32_t first = 0; first < count; first += WARP) {
        uint32_t weight = first + lane < count ? scratch->weights[first + lane] : 0;
        uint32_t same = warp_match(weight);
        if (same >> lane == 1)
            scratch->weight_counts[weight] += count_ones(same);
        sync_warp();
    }
}

/* Sorts symbols by weight, then by symbol, into scratch->by_weight; `starts` is where those of
 * weight lane_index() begin. By a warp. */
DEVICE_FN void sort_by_weight(struct table_scratch *scratch, uint32_t count, uint32_t starts) {
    uint32_t lane = lane_index(), below = (1u << lane) - 1;
    sync_warp();
    if (lane < 16)
        scratch->weight_counts[lane] = starts; /* from here on: next index of each weight */
    sync_warp();
    for (uint32_t first = 0; first < count; first += WARP) {
        uint32_t weight = first + lane < count ? scratch->weights[first + lane] : 0;
        uint32_t same = warp_match(weight), position = 0;
        if (weight)
            position = scratch->weight_counts[weight] + count_ones(same & below);
        sync_warp();
        if (weight) {
            scratch->by_weight[position] = (uint8_t)(first + lane);
            if (same >> lane == 1)
                scratch->weight_counts[weight] = position + 1;
        }
        sync_warp();
    }
}

/* Huffman decoding table from the weights of `count` symbols (4.2.1.3): for each of the 2^max_bits
 * values of the next bits, symbol << 8 | length of its code. Codes are assigned in order of weight,
 * so a symbol of weight w, whose code has max_bits + 1 - w bits, fills 2^(w - 1) neighbouring
 * entries:
 *
 *     weights A 1, B 1, C 2, max_bits 2:    bits  00  01  10  11
 *                                           entry  A   B   C   C       codes A 00, B 01, C 1
 *
 * Returns max_bits, 0 if the weights are malformed. By a warp. */
DEVICE_FN uint32_t build_huffman_table(struct table_scratch *scratch, uint32_t count,
                                       uint16_t *table) {
    uint32_t lane = lane_index(), max_bits = complete_weights(scratch, count), position = 0;
    if (max_bits == 0)
        return 0;
    count_weights(scratch, count + 1);
    if (scratch->weight_counts[1] == 0) /* a complete code has two codes of the longest length */
        return 0;
    uint32_t own_count = lane > 0 && lane < 16 ? scratch->weight_counts[lane] : 0;
    uint32_t starts = warp_scan(own_count) - own_count;
    sort_by_weight(scratch, count + 1, starts);
    for (uint32_t weight = 1; weight <= max_bits; weight++) {
        uint32_t begin = warp_read(starts, weight), symbols = warp_read(own_count, weight);
        uint32_t entries = symbols << (weight - 1);
        for (uint32_t i = lane; i < entries; i += WARP) {
            uint32_t symbol = scratch->by_weight[begin + (i >> (weight - 1))];
            table[position + i] = (uint16_t)(symbol << 8 | (max_bits + 1 - weight));
        }
        position += entries;
    }
    return max_bits;
}

/* Huffman_Tree_Description (4.2.1.1): a header byte below 128 is the size of FSE-coded weights,
 * from 128 on it is 127 plus the number of weights, 4 bits each. Advances the start of the literals
 * past it. False if it is malformed. By a warp. */
DEVICE_FN bool make_huffman_table(const struct zstd_args *args, struct table_scratch *scratch,
                                  struct zstd_block *block) {
    uint32_t lane = lane_index(), stored = block->literals_compressed;
    stage_description(scratch, args->stored + block->body + block->literals_offset, stored);
    uint32_t header_byte = scratch->description[0], count, used;
    if (header_byte < 128) {
        used = 1 + header_byte;
        if (used > stored)
            return false;
        count = decode_huffman_weights(scratch, header_byte);
    } else {
        count = header_byte - 127;
        used = 1 + (count + 1) / 2;
        if (used > stored)
            return false;
        for (uint32_t i = lane; i < count; i += WARP)
            scratch->weights[i] = (uint8_t)(i & 1 ? scratch->description[1 + i / 2] & 15
                                                  : scratch->description[1 + i / 2] >> 4);
    }
    uint32_t *table = (uint32_t *)pool_at(args, block->huffman_table);
    uint32_t max_bits = build_huffman_table(scratch, count, (uint16_t *)(table + 4));
    if (lane == 0) {
        table[0] = max_bits;
        block->literals_offset += used;
        block->literals_compressed -= used;
    }
    return max_bits != 0;
}

/* Predefined_Mode: the default distribution of a kind. Returns its Accuracy_Log. By a warp. */
DEVICE_FN uint32_t load_default_counts(struct table_scratch *scratch, uint32_t kind,
                                       uint32_t *symbols) {
    *symbols = kind == ZSTD_OFFSET ? OFFSET_DEFAULT_SYMBOLS : symbol_count_of(kind);
    sync_warp();
    for (uint32_t i = lane_index(); i < *symbols; i += WARP)
        scratch->normalized_counts[i] = kind == ZSTD_LITERALS_LENGTH
                                            ? literals_length_default_counts[i]
                                        : kind == ZSTD_OFFSET ? offset_default_counts[i]
                                                              : match_length_default_counts[i];
    return kind == ZSTD_OFFSET ? 5 : 6;
}

/* FSE_Compressed_Mode: the description between `at` and `end` of the body. Returns the bytes read,
 * 0 if it is malformed. By a warp. */
DEVICE_FN uint32_t read_staged_counts(struct table_scratch *scratch, const uint8_t *body,
                                      uint32_t at, uint32_t end, uint32_t kind, uint32_t *symbols,
                                      uint32_t *accuracy_log) {
    uint32_t bytes_left = at < end ? end - at : 0, used = 0;
    stage_description(scratch, body + at, bytes_left);
    if (lane_index() == 0)
        used = read_normalized_counts(scratch, 0, bytes_left, kind, symbols, accuracy_log);
    used = warp_read(used, 0);
    *symbols = warp_read(*symbols, 0);
    *accuracy_log = warp_read(*accuracy_log, 0);
    return used;
}

/* FSE tables of the block's sequences, each by its mode (3.1.1.3.2.1). RLE_Mode is a table of one
 * state that takes no bits. The bitstream of sequences follows the last description; its last byte
 * holds the end mark, so it is not 0. False if something is malformed. By a warp. */
DEVICE_FN bool make_fse_tables(const struct zstd_args *args, struct table_scratch *scratch,
                               struct zstd_block *block) {
    uint32_t lane = lane_index(), at = block->descriptions_offset, end = block->body_bytes;
    const uint8_t *body = args->stored + block->body;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        uint32_t mode = compression_mode(block, kind), accuracy_log = 0, symbols = 0;
        if (mode == MODE_REPEAT)
            continue;
        uint32_t *tables = (uint32_t *)pool_at(args, block->own_fse_tables);
        uint32_t *table = tables + FSE_LOG_WORDS + fse_table_start(kind);
        if (mode == MODE_RLE) {
            uint32_t symbol = at < end ? body[at] : 255;
            at++;
            if (symbol >= symbol_count_of(kind))
                return false;
            if (lane == 0)
                table[0] = pack_fse_entry(0, 0, symbol, extra_bits_of(kind, symbol));
        } else {
            if (mode == MODE_PREDEFINED) {
                accuracy_log = load_default_counts(scratch, kind, &symbols);
            } else {
                uint32_t used =
                    read_staged_counts(scratch, body, at, end, kind, &symbols, &accuracy_log);
                if (used == 0)
                    return false;
                at += used;
            }
            build_fse_table(scratch, symbols, accuracy_log, kind, table);
        }
        if (lane == 0)
            tables[kind] = accuracy_log;
    }
    if (at >= end || body[end - 1] == 0)
        return false;
    if (lane == 0) {
        block->bitstream_offset = at;
        block->bitstream_bytes = end - at;
    }
    return true;
}

/* Even warps build FSE tables, odd warps Huffman tables. */
KERNEL(cogpu_kernel_zstd_tables, struct zstd_args, struct tables_shared, 128, 4) {
    struct table_scratch *scratch = &shared->warps[warp_index()];
    uint32_t warps = thread_count() / WARP, count = 2 * args->rounds[args->round].blocks;
    for (uint32_t i = block_index() * warps + warp_index(); i < count; i += block_count() * warps) {
        struct zstd_block *block = &args->blocks[i / 2];
        bool is_good = true;
        if (i % 2 == 0 && block->sequences)
            is_good = make_fse_tables(args, scratch, block);
        else if (i % 2 && block->flags & ZSTD_HAS_HUFFMAN_TREE)
            is_good = make_huffman_table(args, scratch, block);
        if (!is_good && lane_index() == 0)
            refuse_tiff_block(args, block->tiff_block, COGPU_GPU_MALFORMED);
    }
}
