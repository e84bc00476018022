/*
 * Finite State Entropy, FSE (RFC 8878, 4.1): normalized counts, table description, encoding table
 * and states. All functions are called by one warp, two symbols per lane, if not stated otherwise.
 *
 * A table has 2^accuracy_log cells. Each symbol gets a number of cells in proportion to its count:
 * the normalized count. A state is a cell; the encoder's states are size + cell. To encode a symbol
 * the encoder writes the low bits of its state, then moves to one of the symbol's cells:
 *
 *     bits  = (state + delta_bits[symbol]) >> 16                 so many low bits are written
 *     state = next_states[(state >> bits) + delta_state[symbol]]
 *
 * The encoder goes from the last symbol to the first, the decoder from the first to the last.
 *
 * Example, counts {5, 2, 1} with accuracy log 5: 5 * 32 / 8 = 20, 8 and 4 cells; sum 32. With
 * counts {5, 1, 1} rounding gives 23 + 5 + 5 = 33, so one cell is removed where it costs least: 22.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_FSE_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_FSE_H

#include "kernels/zstd/zstd_encode_format.h"

/* ---- predefined tables (3.1.1.3.2.2) -------------------------------------------------------- */

DEVICE_TABLE int8_t predefined_literals_lengths[] = {4, 3, 2, 2, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 1, 1, 1, 2, 2, 2, 2, 2,  2,  2,  2,
                                                     2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
DEVICE_TABLE int8_t predefined_offsets[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
DEVICE_TABLE int8_t predefined_match_lengths[] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

DEVICE_FN int32_t predefined_count(uint32_t kind, uint32_t symbol) {
    if (kind == LITERALS_LENGTH)
        return symbol < sizeof predefined_literals_lengths ? predefined_literals_lengths[symbol]
                                                           : 0;
    if (kind == OFFSET)
        return symbol < sizeof predefined_offsets ? predefined_offsets[symbol] : 0;
    return symbol < sizeof predefined_match_lengths ? predefined_match_lengths[symbol] : 0;
}

DEVICE_FN uint32_t predefined_accuracy_log(uint32_t kind) {
    return kind == OFFSET ? 5 : 6;
}

DEVICE_FN uint32_t max_accuracy_log(uint32_t kind) {
    return kind == HUFFMAN_WEIGHTS ? 6 : kind == OFFSET ? 8 : 9;
}

/* ---- normalized counts ---------------------------------------------------------------------- */

/*
 * Rounds counts to cells, at least one for each used symbol, then adds or removes one cell at a
 * time until the sum is the size of the table.
 *
 * With n cells a symbol costs log2(size / n) bits. One cell more saves about count / (n + 1/2), one
 * less costs about count / (n - 1/2): the symbol with the largest saving, or the smallest loss, is
 * changed. The symbol's number in the low bits decides ties. Rounds: fewer than FSE_SYMBOLS, since
 * rounding is off by less than one cell per symbol.
 */
DEVICE_FN void normalize_counts(struct fse_table *table, uint32_t total) {
    const uint32_t size = 1u << table->accuracy_log, lane = lane_index();
    uint32_t counts[2], cells[2];
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t count = table->counts[lane + WARP * i];
        const uint32_t rounded = ((count << table->accuracy_log) + total / 2) / total;
        counts[i] = count;
        cells[i] = count > 0 && rounded == 0 ? 1 : rounded;
    }
    uint32_t sum = warp_sum(cells[0] + cells[1]);
    while (sum != size) {
        const bool is_added = sum < size;
        uint32_t best = is_added ? 0 : UINT32_MAX;
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t twice_between = is_added ? 2 * cells[i] + 1 : 2 * cells[i] - 1;
            const uint32_t gain = (counts[i] << 8) / twice_between * FSE_SYMBOLS + lane + WARP * i;
            if (is_added ? counts[i] > 0 && gain > best : cells[i] > 1 && gain < best)
                best = gain;
        }
        best = is_added ? warp_max(best) : warp_min(best);
        for (uint32_t i = 0; i < 2; i++)
            if (best % FSE_SYMBOLS == lane + WARP * i)
                cells[i] = is_added ? cells[i] + 1 : cells[i] - 1;
        sum = is_added ? sum + 1 : sum - 1;
    }
    for (uint32_t i = 0; i < 2; i++)
        table->normalized[lane + WARP * i] = (int16_t)cells[i];
    sync_warp();
}

/* What the counted symbols cost with the normalized counts, in units of BIT_COST. */
DEVICE_FN uint32_t table_cost(const struct fse_table *table) {
    uint32_t cost = 0;
    for (uint32_t i = lane_index(); i < FSE_SYMBOLS; i += WARP) {
        const int32_t cells = table->normalized[i];
        if (table->counts[i] > 0)
            cost += table->counts[i] *
                    (table->accuracy_log * BIT_COST - log2_cost(cells < 0 ? 1 : (uint32_t)cells));
    }
    sync_warp(); /* all have read what the caller may overwrite */
    return warp_sum(cost);
}

/*
 * FSE table description (4.1.1), LSB first, by one thread.
 *
 *     accuracy log - 5 (4 bits) | count of symbol 0, plus 1 | count of symbol 1, plus 1 | ...
 *
 * A count is at most `left`, the cells not yet assigned, so a value takes log2(left + 1) + 1 bits
 * rounded down, or one less if it is small. After a count of 0, two-bit numbers say how many more
 * zeros follow; 3 means that another number follows. The example {20, 8, 4} with accuracy log 5:
 *
 *     left   value     bits   half   small_values        written
 *            log 5                                       5 - 5 = 0 in 4 bits
 *     32     20 + 1    6      32     64 - 2 - 32 = 30    21 in 5 bits: it is small
 *     12     8 + 1     4      8      16 - 2 - 12 = 2     9 + 2 = 11 in 4 bits
 *     4      4 + 1     3      4      8 - 2 - 4 = 2       5 + 2 = 7 in 3 bits
 */
DEVICE_FN void write_table_description(struct fse_table *table) {
    struct forward_writer w = {table->description, 0};
    for (uint32_t i = 0; i < DESCRIPTION_WORDS; i++)
        table->description[i] = 0;
    put_forward(&w, table->accuracy_log - 5, 4);
    uint32_t left = 1u << table->accuracy_log;
    for (uint32_t i = 0; left > 0;) {
        const uint32_t value = (uint32_t)(table->normalized[i++] + 1);
        const uint32_t bits = log2_floor(left + 1) + 1, half = 1u << (bits - 1);
        const uint32_t small_values = 2 * half - 2 - left;
        if (value < small_values)
            put_forward(&w, value, bits - 1);
        else
            put_forward(&w, value < half ? value : value + small_values, bits);
        left -= value - 1;
        if (value != 1)
            continue;
        uint32_t zeros = 0; /* after this one; a count follows them, since `left` is not 0 */
        while (table->normalized[i + zeros] == 0)
            zeros++;
        i += zeros;
        for (; zeros >= 3; zeros -= 3)
            put_forward(&w, 3, 2);
        put_forward(&w, zeros, 2);
    }
    table->description_bytes = (w.at + 7) / 8;
}

/* ---- encoding table ------------------------------------------------------------------------- */

/*
 * Transforms of symbols, and the cells of those with "less than 1" probability (-1), which are at
 * the end of the table; returns how many these are.
 *
 * A symbol with n cells must bring state >> bits into n to 2 n - 1. So it writes
 * bits = accuracy_log - log2(n - 1), rounded down, from state n << bits on, and one less below.
 * delta_bits is chosen such that the sum carries into bit 16 exactly there. With n = 3 of 32 cells,
 * bits = 5 - 1 = 4: states 48 to 63 write 4 bits and become 3, states 32 to 47 write 3 bits and
 * become 4 or 5.
 */
DEVICE_FN uint32_t set_transforms(struct fse_table *table) {
    const uint32_t size = 1u << table->accuracy_log, lane = lane_index(), below = (1u << lane) - 1;
    uint32_t start = 0, low_cells = 0;
    for (uint32_t i = lane; i < FSE_SYMBOLS; i += WARP) {
        const int32_t normalized = table->normalized[i];
        const uint32_t cells = normalized < 0 ? 1 : (uint32_t)normalized;
        const uint32_t inclusive = start + warp_scan(cells);
        const uint32_t low = warp_ballot(normalized < 0);
        if (normalized < 0)
            table->cell_symbols[size - 1 - low_cells - count_ones(low & below)] = (uint8_t)i;
        low_cells += count_ones(low);
        table->first_states[i] = table->filled_states[i] = inclusive - cells;
        const uint32_t bits =
            cells > 1 ? table->accuracy_log - log2_floor(cells - 1) : table->accuracy_log;
        table->transforms[i].delta_bits = (bits << 16) - (cells << bits);
        table->transforms[i].delta_state = inclusive - 2 * cells;
        start = warp_read(inclusive, WARP - 1);
    }
    sync_warp();
    return low_cells;
}

/* Spreads the other symbols over the cells (4.1.1): the k-th position is k * step modulo the size,
 * and positions in the low-probability area are skipped. 32 positions at a time; the symbol of the
 * n-th used one is found by binary search in first_states. */
DEVICE_FN void spread_symbols(struct fse_table *table, uint32_t low_cells) {
    const uint32_t size = 1u << table->accuracy_log, lane = lane_index(), below = (1u << lane) - 1;
    for (uint32_t base = 0, first = 0; base < size; base += WARP) {
        const uint32_t cell = (base + lane) * (size / 2 + size / 8 + 3) % size;
        const uint32_t is_free = warp_ballot(cell < size - low_cells);
        const uint32_t n = first + count_ones(is_free & below);
        uint32_t symbol = 0;
        for (uint32_t step = FSE_SYMBOLS / 2; step > 0; step /= 2)
            symbol += table->first_states[symbol + step] <= n ? step : 0;
        if (cell < size - low_cells)
            table->cell_symbols[cell] = (uint8_t)symbol;
        first += count_ones(is_free);
    }
    sync_warp();
}

/* Lists the states of each symbol in ascending order of cells. */
DEVICE_FN void list_next_states(struct fse_table *table) {
    const uint32_t size = 1u << table->accuracy_log, lane = lane_index(), below = (1u << lane) - 1;
    for (uint32_t cell = lane; cell < size; cell += WARP) {
        const uint32_t symbol = table->cell_symbols[cell], same = warp_match(symbol);
        const uint32_t at = table->filled_states[symbol] + count_ones(same & below);
        table->next_states[at] = (uint16_t)(size + cell);
        sync_warp();
        if ((same & below) == 0)
            table->filled_states[symbol] += count_ones(same);
        sync_warp();
    }
}

DEVICE_FN void make_rle_table(struct fse_table *table, uint32_t symbol) {
    if (lane_index() == 0) {
        table->accuracy_log = 0; /* one state, no bits */
        table->transforms[symbol].delta_bits = table->transforms[symbol].delta_state = UINT32_MAX;
        table->next_states[0] = 1;
        table->description[0] = symbol;
        table->description_bytes = 1;
        table->mode = RLE_MODE;
    }
    sync_warp();
}

DEVICE_FN void set_predefined_counts(struct fse_table *table, uint32_t kind) {
    for (uint32_t i = lane_index(); i < FSE_SYMBOLS; i += WARP)
        table->normalized[i] = (int16_t)predefined_count(kind, i);
    if (lane_index() == 0) {
        table->accuracy_log = predefined_accuracy_log(kind);
        table->description_bytes = 0;
        table->mode = PREDEFINED_MODE;
    }
    sync_warp();
}

/* Own normalized counts, with about a quarter as many cells as there are symbols to code (`total`),
 * at least 32, and at least one for each of the `used` different ones. */
DEVICE_FN void set_own_counts(struct fse_table *table, uint32_t kind, uint32_t total,
                              uint32_t used) {
    uint32_t log = log2_floor(total) > 7 ? log2_floor(total) - 2 : 5;
    while (1u << log < used)
        log++;
    if (lane_index() == 0) {
        table->accuracy_log = min_u32(log, max_accuracy_log(kind));
        table->mode = FSE_COMPRESSED_MODE;
    }
    sync_warp();
    normalize_counts(table, total);
    if (lane_index() == 0)
        write_table_description(table);
    sync_warp();
}

/* Builds a table from its counts: RLE with one symbol, else the cheaper of own and predefined
 * counts. */
DEVICE_FN void build_fse_table(struct fse_table *table, uint32_t kind) {
    const uint32_t a = table->counts[lane_index()], b = table->counts[lane_index() + WARP];
    const uint32_t total = warp_sum(a + b), low = warp_ballot(a > 0), high = warp_ballot(b > 0);
    const uint32_t used = count_ones(low) + count_ones(high);
    if (used == 1) {
        make_rle_table(table, low ? trailing_zeros(low) : WARP + trailing_zeros(high));
        return;
    }
    uint32_t predefined_cost = UINT32_MAX;
    if (kind != HUFFMAN_WEIGHTS) {
        set_predefined_counts(table, kind);
        predefined_cost = table_cost(table);
    }
    set_own_counts(table, kind, total, used);
    const uint32_t description_cost = 8 * BIT_COST * table->description_bytes;
    if (description_cost + table_cost(table) >= predefined_cost)
        set_predefined_counts(table, kind);
    spread_symbols(table, set_transforms(table));
    list_next_states(table);
    sync_warp();
}

/* ---- states --------------------------------------------------------------------------------- */

/* The state of the last symbol, which is encoded first and for which no bits are written: the first
 * of the symbol's states that is reached with the most bits. */
DEVICE_FN uint32_t initial_state(const struct fse_table *table, uint32_t symbol) {
    const struct fse_transform transform = table->transforms[symbol];
    const uint32_t bits = (transform.delta_bits + (1u << 15)) >> 16;
    return table
        ->next_states[(((bits << 16) - transform.delta_bits) >> bits) + transform.delta_state];
}

DEVICE_FN uint32_t state_bits(const struct fse_table *table, uint32_t symbol, uint32_t state) {
    return (state + table->transforms[symbol].delta_bits) >> 16;
}

DEVICE_FN void put_state(struct backward_writer *w, const struct fse_table *table, uint32_t symbol,
                         uint32_t state) {
    const uint32_t bits = state_bits(table, symbol, state);
    put_backward(w, state & ((1u << bits) - 1), bits);
}

DEVICE_FN uint32_t next_state(const struct fse_table *table, struct fse_transform transform,
                              uint32_t state) {
    const uint32_t bits = (state + transform.delta_bits) >> 16;
    return table->next_states[(state >> bits) + transform.delta_state];
}

/* Encodes symbols from `end` down to `begin`; states[i] becomes the state before symbol i is
 * encoded, whose low bits are written. Returns the last state. Transforms are loaded one symbol
 * ahead. By one thread. */
DEVICE_FN uint32_t encode_states(const struct fse_table *table, const uint8_t *symbols,
                                 uint16_t *states, uint32_t state, uint32_t begin, uint32_t end,
                                 uint32_t stride) {
    struct fse_transform next = table->transforms[symbols[end >= stride ? end - stride : 0]];
    for (uint32_t i = end; i >= begin + stride; i -= stride) {
        const struct fse_transform own = next;
        next = table->transforms[symbols[i >= 2 * stride ? i - 2 * stride : 0]];
        states[i - stride] = (uint16_t)state;
        state = next_state(table, own, state);
    }
    return state;
}

/* Encodes again from another state, until a state equals the stored one: from there on all are
 * equal, and so is the last, `reached`. By one thread. */
DEVICE_FN uint32_t correct_states(const struct fse_table *table, const uint8_t *symbols,
                                  uint16_t *states, uint32_t state, uint32_t begin, uint32_t end,
                                  uint32_t reached) {
    for (uint32_t i = end; i > begin; i--) {
        if (states[i - 1] == state)
            return reached;
        states[i - 1] = (uint16_t)state;
        state = next_state(table, table->transforms[symbols[i - 1]], state);
    }
    return state;
}

enum { WARM_UP_SYMBOLS = 32 }; /* after them states nearly always agree */

/*
 * The states of all sequences for one table, in parallel although each depends on the next one.
 *
 *     lane       0              1              2                   encoding goes <--
 *     range      |<-------------|<-------------|<-------------
 *     warm-up                   |<--           |<--                of lanes 0 and 1: 32 symbols
 *
 * FSE forgets: a state keeps only some bits of the state before it, so from any start states soon
 * agree. Each lane starts with any state 32 symbols after its range. Then lanes compare: where the
 * state a lane entered with is not what the next lane has reached, it corrects its own. At least
 * one more lane is final after each round, so there are at most 32 rounds; usually there is one.
 * The result is exactly that of one lane alone.
 */
DEVICE_FN void encode_all_states(struct fse_table *table, const uint8_t *symbols, uint16_t *states,
                                 uint32_t count) {
    const uint32_t each = (count + WARP - 1) / WARP, last = count - 1;
    const uint32_t begin = min_u32(lane_index() * each, last), end = min_u32(begin + each, last);
    const uint32_t from = min_u32(end + WARM_UP_SYMBOLS, last);
    uint32_t entry = initial_state(table, symbols[from]);
    for (uint32_t i = from; i > end; i--)
        entry = next_state(table, table->transforms[symbols[i - 1]], entry);
    uint32_t reached = encode_states(table, symbols, states, entry, begin, end, 1);
    for (;;) {
        const uint32_t expected = warp_read_down(reached, 1);
        const bool is_wrong = end < last && expected != entry;
        if (!warp_any(is_wrong))
            break;
        if (is_wrong) {
            entry = expected;
            reached = correct_states(table, symbols, states, entry, begin, end, reached);
        }
    }
    if (lane_index() == 0)
        table->final_state = reached - (1u << table->accuracy_log);
}

#endif
