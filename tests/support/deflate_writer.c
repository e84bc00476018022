#include "support/deflate_writer.h"

void put_bits(struct deflate_writer *w, uint32_t bits, uint32_t count) {
    w->bits |= (uint64_t)bits << w->bit_count;
    w->bit_count += count;
    for (; w->bit_count >= 8; w->bit_count -= 8, w->bits >>= 8)
        w->out[w->bytes++] = (uint8_t)w->bits;
}

static void put_to_byte(struct deflate_writer *w) {
    put_bits(w, 0, (8 - w->bit_count % 8) % 8);
}

void assign_codes(struct huffman *h) {
    uint32_t code = 0;
    for (uint32_t length = 1; length <= 15; length++, code <<= 1)
        for (uint32_t i = 0; i < 288; i++)
            if (h->lengths[i] == length) {
                h->codes[i] = 0;
                for (uint32_t bit = 0; bit < length; bit++)
                    h->codes[i] |= (code >> bit & 1) << (length - 1 - bit);
                code++;
            }
}

/* Huffman code of lengths up to `limit`: if it is exceeded, counts are flattened and tried again.
 */
static void make_huffman(struct huffman *h, const uint32_t *given, uint32_t symbols,
                         uint32_t limit) {
    uint32_t counts[288], deepest;
    memcpy(counts, given, symbols * sizeof *counts);
    do {
        uint64_t weight[576];
        uint32_t parent[576] = {0}, nodes = symbols;
        bool is_open[576] = {false};
        for (uint32_t i = 0; i < symbols; i++) {
            weight[i] = counts[i];
            is_open[i] = counts[i] > 0;
        }
        for (;; nodes++) {
            uint32_t least[2] = {UINT32_MAX, UINT32_MAX};
            for (uint32_t i = 0; i < nodes; i++)
                if (is_open[i] && (least[0] == UINT32_MAX || weight[i] < weight[least[0]])) {
                    least[1] = least[0];
                    least[0] = i;
                } else if (is_open[i] && (least[1] == UINT32_MAX || weight[i] < weight[least[1]])) {
                    least[1] = i;
                }
            if (least[1] == UINT32_MAX)
                break;
            weight[nodes] = weight[least[0]] + weight[least[1]];
            parent[least[0]] = parent[least[1]] = nodes;
            is_open[least[0]] = is_open[least[1]] = false;
            is_open[nodes] = true;
        }
        memset(h->lengths, 0, sizeof h->lengths);
        deepest = 0;
        for (uint32_t i = 0; i < symbols; i++) {
            uint32_t depth = 0;
            for (uint32_t node = i; counts[i] && parent[node]; node = parent[node])
                depth++;
            depth = counts[i] && depth == 0 ? 1 : depth; /* a lone symbol */
            h->lengths[i] = (uint8_t)depth;
            deepest = depth > deepest ? depth : deepest;
            counts[i] = counts[i] ? counts[i] / 2 + 1 : 0;
        }
    } while (deepest > limit);
    assign_codes(h);
}

uint32_t base_of_length(uint32_t symbol, uint32_t *extra) {
    uint32_t n = symbol - 257;
    *extra = n < 8 || n == 28 ? 0 : n / 4 - 1;
    return n == 28 ? 258 : n < 8 ? 3 + n : 3 + ((4 + n % 4) << *extra);
}

uint32_t base_of_distance(uint32_t symbol, uint32_t *extra) {
    *extra = symbol < 4 ? 0 : symbol / 2 - 1;
    return symbol < 4 ? 1 + symbol : 1 + ((2 + symbol % 2) << *extra);
}

static uint32_t symbol_of_length(uint32_t length) {
    uint32_t extra, symbol = 285;
    while (base_of_length(symbol, &extra) > length)
        symbol--;
    return symbol;
}

static uint32_t symbol_of_distance(uint32_t distance) {
    uint32_t extra, symbol = 29;
    while (base_of_distance(symbol, &extra) > distance)
        symbol--;
    return symbol;
}

static void put_symbol(struct deflate_writer *w, const struct huffman *h, uint32_t symbol) {
    put_bits(w, h->codes[symbol], h->lengths[symbol]);
}

void put_tokens(struct deflate_writer *w, const struct token *tokens, uint32_t count,
                const struct huffman *literals, const struct huffman *distances) {
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i].length == 0) {
            put_symbol(w, literals, tokens[i].value);
            continue;
        }
        uint32_t extra, symbol = symbol_of_length(tokens[i].length);
        put_symbol(w, literals, symbol);
        uint32_t rest = tokens[i].length - base_of_length(symbol, &extra);
        put_bits(w, rest, extra);
        symbol = symbol_of_distance(tokens[i].value);
        put_symbol(w, distances, symbol);
        rest = tokens[i].value - base_of_distance(symbol, &extra);
        put_bits(w, rest, extra);
    }
    put_symbol(w, literals, 256);
}

static void fixed_codes(struct huffman *literals, struct huffman *distances) {
    memset(distances, 0, sizeof *distances);
    for (uint32_t i = 0; i < 288; i++)
        literals->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances->lengths, 5, 32);
    assign_codes(literals);
    assign_codes(distances);
}

static const uint8_t precode_order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};

void put_header(struct deflate_writer *w, const struct huffman *literals, uint32_t literal_count,
                const struct huffman *distances, uint32_t distance_count) {
    uint8_t lengths[320];
    uint32_t total = literal_count + distance_count, count = 0;
    struct {
        uint32_t symbol, extra, bits;
    } items[320];
    memcpy(lengths, literals->lengths, literal_count);
    memcpy(lengths + literal_count, distances->lengths, distance_count);
    for (uint32_t i = 0, run; i < total; i += run, count++) {
        for (run = 1; i + run < total && lengths[i + run] == lengths[i] && run < 138;)
            run++;
        items[count].symbol = lengths[i];
        items[count].bits = items[count].extra = 0;
        if (lengths[i] == 0 && run >= 3) {
            items[count].symbol = run < 11 ? 17 : 18;
            items[count].bits = run < 11 ? 3 : 7;
            items[count].extra = run - (run < 11 ? 3 : 11);
        } else if (i > 0 && lengths[i] == lengths[i - 1] && run >= 3) {
            run = run > 6 ? 6 : run;
            items[count].symbol = 16;
            items[count].bits = 2;
            items[count].extra = run - 3;
        } else {
            run = 1;
        }
    }
    uint32_t counts[19] = {0}, sent = 19;
    struct huffman precode;
    for (uint32_t i = 0; i < count; i++)
        counts[items[i].symbol]++;
    make_huffman(&precode, counts, 19, 7);
    while (sent > 4 && precode.lengths[precode_order[sent - 1]] == 0)
        sent--;
    put_bits(w, literal_count - 257, 5);
    put_bits(w, distance_count - 1, 5);
    put_bits(w, sent - 4, 4);
    for (uint32_t i = 0; i < sent; i++)
        put_bits(w, precode.lengths[precode_order[i]], 3);
    for (uint32_t i = 0; i < count; i++) {
        put_symbol(w, &precode, items[i].symbol);
        put_bits(w, items[i].extra, items[i].bits);
    }
}

void put_stored(struct deflate_writer *w, bool is_last, const uint8_t *data, uint32_t bytes) {
    put_bits(w, is_last, 3);
    put_to_byte(w);
    put_bits(w, bytes, 16);
    put_bits(w, bytes ^ 0xFFFF, 16);
    for (uint32_t i = 0; i < bytes; i++)
        put_bits(w, data[i], 8);
}

void put_deflate_block(struct deflate_writer *w, bool is_last, enum kind kind,
                       const struct token *tokens, uint32_t count, uint32_t limit) {
    struct huffman literals, distances;
    put_bits(w, (uint32_t)is_last | (kind == FIXED ? 2 : 4), 3);
    if (kind == FIXED) {
        fixed_codes(&literals, &distances);
    } else {
        uint32_t counts[288] = {0}, distance_counts[32] = {0}, last = 286, last_distance = 30;
        counts[256] = 1;
        for (uint32_t i = 0; i < count; i++)
            if (tokens[i].length == 0) {
                counts[tokens[i].value]++;
            } else {
                counts[symbol_of_length(tokens[i].length)]++;
                distance_counts[symbol_of_distance(tokens[i].value)]++;
            }
        make_huffman(&literals, counts, 288, limit);
        make_huffman(&distances, distance_counts, 32, limit);
        while (last > 257 && literals.lengths[last - 1] == 0)
            last--;
        while (last_distance > 1 && distances.lengths[last_distance - 1] == 0)
            last_distance--;
        put_header(w, &literals, last, &distances, last_distance);
    }
    put_tokens(w, tokens, count, &literals, &distances);
}

uint32_t adler(const uint8_t *data, uint32_t bytes) {
    uint32_t a = 1, b = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

struct deflate_writer begin_stream(uint32_t capacity) {
    struct deflate_writer w = {.out = malloc(capacity)};
    put_bits(&w, 0x78, 8);
    put_bits(&w, 0x9C, 8);
    return w;
}

void end_stream(struct deflate_writer *w, uint32_t sum) {
    put_to_byte(w);
    for (uint32_t i = 0; i < 4; i++)
        put_bits(w, sum >> (24 - 8 * i) & 0xFF, 8);
}
