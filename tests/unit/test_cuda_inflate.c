/*
 * The deflate decoder of the device. Streams come from libdeflate, from our encoder, and from a
 * writer which makes what neither makes on demand: sections of any size and kind in any order,
 * codes of any lengths, every mistake. Whatever the device takes, the host's codec must take too,
 * byte for byte.
 */
#include "codec/codec.h"
#include "codec/deflate_encode.h"
#include "draw.h"
#include "gpu_test.h"
#include "test.h"

#ifdef COGPU_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* ---- data ---- */

enum data { CONSTANT, RAMP, NOISE, FEW, FLOATS, WORDS, FAR, DATA_KINDS };

/* Rows of 256 float32, bytes apart and differenced, as predictor 3 does. */
static void make_floats(uint8_t *data, uint32_t bytes) {
    uint8_t row[1024];
    double height = 800;
    for (uint32_t y = 0; y * 1024 < bytes; y++) {
        for (uint32_t x = 0; x < 256; x++) {
            height += ((int)draw(2001) - 1000) / 4000.0;
            float sample = (float)height;
            uint32_t word;
            memcpy(&word, &sample, 4);
            for (uint32_t i = 0; i < 4; i++)
                row[256 * i + x] = (uint8_t)(word >> (24 - 8 * i));
        }
        for (uint32_t i = 1023; i > 0; i--)
            row[i] = (uint8_t)(row[i] - row[i - 1]);
        uint32_t left = bytes - y * 1024;
        memcpy(data + (size_t)y * 1024, row, left < 1024 ? left : 1024);
    }
}

static void make_words(uint8_t *data, uint32_t bytes) {
    static const char *words[] = {"block ", "lane ", "verdict, ", "of a ", "raster ", "32768. "};
    for (uint32_t i = 0; i < bytes;)
        for (const char *at = words[draw(6)]; *at && i < bytes; at++)
            data[i++] = (uint8_t)*at;
}

static uint8_t *make_data(enum data kind, uint32_t bytes) {
    uint8_t *data = malloc(bytes + 1);
    if (kind == FLOATS)
        make_floats(data, bytes);
    else if (kind == WORDS)
        make_words(data, bytes);
    else
        for (uint32_t i = 0; i < bytes; i++)
            data[i] = kind == CONSTANT ? 42
                      : kind == RAMP   ? (uint8_t)(i / 5)
                      : kind == NOISE  ? (uint8_t)draw(256)
                      : kind == FEW    ? (uint8_t)(7 * draw(4))
                      : i < 32768      ? (uint8_t)draw(256)
                                       : data[i - 32768]; /* FAR */
    return data;
}

/* ---- a writer of deflate streams ---- */

struct writer {
    uint8_t *out;
    uint32_t bytes, bit_count;
    uint64_t bits;
};

static void put(struct writer *w, uint32_t bits, uint32_t count) {
    w->bits |= (uint64_t)bits << w->bit_count;
    w->bit_count += count;
    for (; w->bit_count >= 8; w->bit_count -= 8, w->bits >>= 8)
        w->out[w->bytes++] = (uint8_t)w->bits;
}

static void put_to_byte(struct writer *w) {
    put(w, 0, (8 - w->bit_count % 8) % 8);
}

struct huffman {
    uint8_t lengths[288];
    uint32_t codes[288]; /* first bit lowest */
};

static void assign_codes(struct huffman *h) {
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

/* Lengths of at most `limit`. */
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
            depth = counts[i] && depth == 0 ? 1 : depth; /* the only one */
            h->lengths[i] = (uint8_t)depth;
            deepest = depth > deepest ? depth : deepest;
            counts[i] = counts[i] ? counts[i] / 2 + 1 : 0;
        }
    } while (deepest > limit);
    assign_codes(h);
}

struct token {
    uint32_t length, value; /* length 0: a literal */
};

static uint32_t base_of_length(uint32_t symbol, uint32_t *extra) {
    uint32_t n = symbol - 257;
    *extra = n < 8 || n == 28 ? 0 : n / 4 - 1;
    return n == 28 ? 258 : n < 8 ? 3 + n : 3 + ((4 + n % 4) << *extra);
}

static uint32_t base_of_distance(uint32_t symbol, uint32_t *extra) {
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

static void put_symbol(struct writer *w, const struct huffman *h, uint32_t symbol) {
    put(w, h->codes[symbol], h->lengths[symbol]);
}

static void put_tokens(struct writer *w, const struct token *tokens, uint32_t count,
                       const struct huffman *literals, const struct huffman *distances) {
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i].length == 0) {
            put_symbol(w, literals, tokens[i].value);
            continue;
        }
        uint32_t extra, symbol = symbol_of_length(tokens[i].length);
        put_symbol(w, literals, symbol);
        uint32_t rest = tokens[i].length - base_of_length(symbol, &extra);
        put(w, rest, extra);
        symbol = symbol_of_distance(tokens[i].value);
        put_symbol(w, distances, symbol);
        rest = tokens[i].value - base_of_distance(symbol, &extra);
        put(w, rest, extra);
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

/* Code lengths with runs; the header of a section with its own codes. */
static void put_header(struct writer *w, const struct huffman *literals, uint32_t literal_count,
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
    put(w, literal_count - 257, 5);
    put(w, distance_count - 1, 5);
    put(w, sent - 4, 4);
    for (uint32_t i = 0; i < sent; i++)
        put(w, precode.lengths[precode_order[i]], 3);
    for (uint32_t i = 0; i < count; i++) {
        put_symbol(w, &precode, items[i].symbol);
        put(w, items[i].extra, items[i].bits);
    }
}

enum kind { STORED, FIXED, OWN, ANY };

static void put_stored(struct writer *w, bool is_last, const uint8_t *data, uint32_t bytes) {
    put(w, is_last, 3);
    put_to_byte(w);
    put(w, bytes, 16);
    put(w, bytes ^ 0xFFFF, 16);
    for (uint32_t i = 0; i < bytes; i++)
        put(w, data[i], 8);
}

static void put_section(struct writer *w, bool is_last, enum kind kind, const struct token *tokens,
                        uint32_t count, uint32_t limit) {
    struct huffman literals, distances;
    put(w, (uint32_t)is_last | (kind == FIXED ? 2 : 4), 3);
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

/* Greedy, by a table of where three bytes were last seen. */
struct finder {
    uint32_t reach;    /* how far back matches go; 0: none */
    uint32_t longest;  /* match */
    uint32_t section;  /* tokens of one */
    enum kind kind;    /* of sections */
    uint32_t limit;    /* bits of codes */
    uint32_t flush_in; /* every so many sections an empty stored one; 0: never */
};

static uint32_t adler(const uint8_t *data, uint32_t bytes) {
    uint32_t a = 1, b = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static struct writer begin_stream(uint32_t room) {
    struct writer w = {.out = malloc(room)};
    put(&w, 0x78, 8);
    put(&w, 0x9C, 8);
    return w;
}

static void end_stream(struct writer *w, uint32_t sum) {
    put_to_byte(w);
    for (uint32_t i = 0; i < 4; i++)
        put(w, sum >> (24 - 8 * i) & 0xFF, 8);
}

static gpu_stream compress(const uint8_t *data, uint32_t bytes, const struct finder *f) {
    static uint32_t seen[1 << 15];
    struct token *tokens = malloc((f->section + 1) * sizeof *tokens);
    struct writer w = begin_stream(2 * bytes + 400 * (bytes / f->section + 2) + 1000);
    memset(seen, 0xFF, sizeof seen);
    uint32_t at = 0, sections = 0;
    do {
        uint32_t count = 0, first = at;
        while (at < bytes && count < f->section && at - first < 65000) {
            uint32_t length = 0, from = UINT32_MAX;
            if (f->reach > 0 && at + 3 <= bytes) {
                uint32_t hash =
                    (data[at] * 0x9E5u ^ data[at + 1] * 0x1F3u ^ data[at + 2] * 0x1Du) & 0x7FFF;
                from = f->reach == 1 ? at - 1 : seen[hash];
                seen[hash] = at;
            }
            if (from < at && at - from <= f->reach)
                while (length < f->longest && at + length < bytes &&
                       data[from + length] == data[at + length])
                    length++;
            tokens[count].length = length < 3 ? 0 : length;
            tokens[count++].value = length < 3 ? data[at] : at - from;
            at += length < 3 ? 1 : length;
        }
        enum kind kind = f->kind == ANY ? (enum kind)draw(3) : f->kind;
        if (f->flush_in && sections++ % f->flush_in == 0)
            put_stored(&w, false, data, 0);
        if (kind == STORED)
            put_stored(&w, at == bytes, data + first, at - first);
        else
            put_section(&w, at == bytes, kind, tokens, count, f->limit);
    } while (at < bytes);
    end_stream(&w, adler(data, bytes));
    free(tokens);
    return (gpu_stream){.in = w.out, .in_bytes = w.bytes, .room = bytes, .needed = bytes};
}

/* ---- judging ---- */

static bool host_takes(const gpu_stream *stream, uint8_t *out, size_t *got) {
    cogpu_codec_state state = {0};
    cogpu_block_format format = {0};
    cogpu_error error;
    uint8_t *copy = malloc(stream->in_bytes);
    memcpy(copy, stream->in, stream->in_bytes);
    cogpu_status status = cogpu_decode_deflate(&state, &format, copy, stream->in_bytes, out,
                                               stream->room, got, &error);
    cogpu_codec_state_close(&state);
    free(copy);
    return status == COGPU_OK && *got >= stream->needed;
}

/* Whether all that the device takes is what the host makes of it; *taken counts them. Some batches
 * have scratch for a single thread block, which decodes all of their streams. */
static bool agree(gpu_stream *streams, uint32_t count, uint32_t *taken) {
    cogpu_gpu *gpu = gpu_test_open(draw_state);
    bool good = gpu_test_decode(gpu, &cogpu_gpu_inflate, streams, count, (int)draw(2), draw_state);
    *taken = 0;
    for (uint32_t i = 0; good && i < count; i++) {
        uint8_t *out = malloc(streams[i].room);
        size_t got = 0;
        if (streams[i].verdict == COGPU_GPU_DECODED) {
            good = host_takes(&streams[i], out, &got) && memcmp(out, streams[i].out, got) == 0;
            *taken += 1;
            if (!good)
                printf("stream %u, %u bytes to %u: not what the host makes of it\n", i,
                       streams[i].in_bytes, streams[i].room);
        }
        free(out);
        free(streams[i].out);
    }
    gpu->calls->close(gpu);
    return good;
}

static uint32_t verdict_of(gpu_stream stream) {
    uint32_t taken;
    return agree(&stream, 1, &taken) ? stream.verdict : COGPU_GPU_UNTOUCHED;
}

/* All are taken, by both. Frees what they read. */
static bool all_taken(gpu_stream *streams, uint32_t count) {
    uint32_t taken;
    bool good = agree(streams, count, &taken) && taken == count;
    for (uint32_t i = 0; i < count; i++) {
        if (streams[i].verdict != COGPU_GPU_DECODED)
            printf("stream %u, %u bytes to %u: verdict %u\n", i, streams[i].in_bytes,
                   streams[i].needed, streams[i].verdict);
        free((void *)(uintptr_t)streams[i].in);
    }
    return good;
}

/* ---- streams as they should be ---- */

static const struct finder plain = {32768, 258, 16384, OWN, 15, 0};

static void finders(void) {
    static const struct finder kinds[] = {
        {32768, 258, 16384, OWN, 15, 0}, /* as zlib makes them */
        {0, 0, 16384, OWN, 15, 0},       /* Huffman codes alone */
        {1, 258, 16384, OWN, 12, 0},     /* runs */
        {32768, 258, 16384, FIXED, 15, 0}, {0, 0, 16384, STORED, 15, 0},
        {512, 40, 300, ANY, 9, 0}, /* sections of all kinds, many of them */
        {32768, 258, 100, ANY, 15, 2},     {32768, 258, 1 << 20, OWN, 15, 0}, /* one section */
        {256, 3, 5000, OWN, 15, 3},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        gpu_stream streams[DATA_KINDS];
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
            uint32_t bytes = kind == FAR ? 70000 : 1 + draw(kinds[i].section < 1000 ? 7000 : 30000);
            uint8_t *data = make_data((enum data)kind, bytes);
            streams[kind] = compress(data, bytes, &kinds[i]);
            free(data);
        }
        CHECK(all_taken(streams, DATA_KINDS));
    }
}

static void many_sizes(void) {
    enum { COUNT = 70 };
    gpu_stream streams[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bytes = i < 40 ? 1 + i : 12288 * (1 + i % 3) + i / 3 - 25; /* round a slice */
        struct finder finder = plain;
        finder.kind = i % 5 == 0 ? FIXED : i % 7 == 0 ? STORED : OWN;
        uint8_t *data = make_data((enum data)(i % FAR), bytes);
        streams[i] = compress(data, bytes, &finder);
        streams[i].room += i % 4;
        free(data);
    }
    CHECK(all_taken(streams, COUNT));
}

static void large(void) {
    gpu_stream streams[2];
    uint8_t *data = make_data(FLOATS, 300000);
    streams[0] = compress(data, 300000, &plain);
    free(data);
    data = make_data(CONSTANT, 400000);
    streams[1] = compress(data, 400000, &plain);
    free(data);
    CHECK(all_taken(streams, 2));
}

static void libdeflate_levels(void) {
#ifdef COGPU_HAVE_LIBDEFLATE
    for (int level = 1; level <= 12; level++) {
        gpu_stream streams[DATA_KINDS];
        for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
            uint32_t bytes = kind == FAR ? 66000 : 1 + draw(30000);
            uint8_t *data = make_data((enum data)kind, bytes), *out = malloc(2 * bytes + 1000);
            struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
            size_t got = libdeflate_zlib_compress(c, data, bytes, out, 2 * bytes + 1000);
            streams[kind] =
                (gpu_stream){.in = out, .in_bytes = (uint32_t)got, .room = bytes, .needed = bytes};
            libdeflate_free_compressor(c);
            free(data);
        }
        CHECK(all_taken(streams, DATA_KINDS));
    }
#endif
}

static void our_encoder(void) {
#ifdef COGPU_HAVE_LIBDEFLATE
    gpu_stream streams[DATA_KINDS];
    void *memory = malloc(cogpu_deflate_memory_bytes);
    for (uint32_t kind = 0; kind < DATA_KINDS; kind++) {
        const uint32_t bytes = 70000 + draw(20000);
        uint8_t *data = make_data((enum data)kind, bytes);
        struct writer w = begin_stream((uint32_t)cogpu_deflate_bound(bytes) + 6);
        w.bytes += (uint32_t)cogpu_deflate_encode(memory, data, bytes, w.out + w.bytes);
        end_stream(&w, adler(data, bytes));
        streams[kind] =
            (gpu_stream){.in = w.out, .in_bytes = w.bytes, .room = bytes, .needed = bytes};
        free(data);
    }
    CHECK(all_taken(streams, DATA_KINDS));
    free(memory);
#endif
}

/* Tokens drawn from all that the codes allow. */
static bool takes_codes(struct huffman *literals, uint32_t literal_count) {
    struct huffman distances = {{0}, {0}};
    struct token tokens[4000];
    for (uint32_t i = 0; i < 16; i++)
        distances.lengths[i] = (uint8_t)(i < 15 ? i + 1 : 15);
    assign_codes(literals);
    assign_codes(&distances);
    struct writer w = begin_stream(100000);
    uint32_t bytes = 0, symbol, extra;
    for (uint32_t i = 0; i < 4000; i++) {
        if (i < 300 || draw(3)) {
            do
                symbol = draw(256);
            while (literals->lengths[symbol] == 0);
            tokens[i].length = 0;
            tokens[i].value = symbol;
        } else {
            do
                symbol = 257 + draw(29);
            while (literals->lengths[symbol] == 0);
            tokens[i].length = base_of_length(symbol, &extra);
            tokens[i].value = base_of_distance(draw(16), &extra);
        }
        bytes += tokens[i].length ? tokens[i].length : 1;
    }
    put(&w, 5, 3);
    put_header(&w, literals, literal_count, &distances, 16);
    put_tokens(&w, tokens, 4000, literals, &distances);
    end_stream(&w, 0);
    gpu_stream stream = {.in = w.out, .in_bytes = w.bytes, .room = bytes, .needed = bytes};
    /* Its sum, by decoding it. */
    uint8_t *data = malloc(bytes);
    for (uint32_t i = 0, at = 0; i < 4000; i++) {
        if (tokens[i].length == 0)
            data[at++] = (uint8_t)tokens[i].value;
        for (uint32_t k = 0; k < tokens[i].length; k++, at++)
            data[at] = data[at - tokens[i].value];
    }
    w.bytes -= 4;
    end_stream(&w, adler(data, bytes));
    bool is_taken = verdict_of(stream) == COGPU_GPU_DECODED;
    free(data);
    free(w.out);
    return is_taken;
}

/* More long codes than roots, and than branches, hold. */
static void long_codes(void) {
    struct huffman few = {{0}, {0}}, many = {{0}, {0}};
    for (uint32_t i = 0; i < 9; i++)
        few.lengths[i] = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < 64; i++) /* 64 / 2^15 is what is left */
        few.lengths[i < 34 ? 200 + i : 222 + i] = 15;
    CHECK(takes_codes(&few, 286));
    for (uint32_t i = 0; i < 3; i++)
        many.lengths[i] = (uint8_t)(i + 1);
    for (uint32_t i = 0; i < 256; i++) /* 256 / 2^11 */
        many.lengths[i < 227 ? 3 + i : 29 + i] = 11;
    CHECK(takes_codes(&many, 285));
}

/* All codes of 8 or 9 bits: these do not synchronise. */
static void hard_to_synchronise(void) {
    struct finder finder = plain;
    gpu_stream streams[4];
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t *data = make_data(NOISE, 30000);
        finder.reach = 0;
        finder.kind = i % 2 ? FIXED : OWN;
        for (uint32_t k = 0; i >= 2 && k < 30000; k++)
            data[k] &= 0x7F;
        streams[i] = compress(data, 30000, &finder);
        free(data);
    }
    CHECK(all_taken(streams, 4));
}

/* Scratch for each block where they are large; not much of it beside small ones. */
static void scratch(void) {
    cogpu_coded blocks[64] = {{0}};
    uint64_t least, best, more;
    for (uint32_t i = 0; i < 64; i++)
        blocks[i].room = 1 << 20;
    cogpu_gpu_inflate.scratch(blocks, 1, &least, &best);
    CHECK(least == best);
    cogpu_gpu_inflate.scratch(blocks, 64, &least, &more);
    CHECK(more - best >= 63 * (best - COGPU_GPU_ALIGN));
    for (uint32_t i = 0; i < 64; i++)
        blocks[i].room = 1000;
    cogpu_gpu_inflate.scratch(blocks, 64, &least, &best);
    CHECK(best >= least && best - least < 64 * 1000);
}

/* ---- streams as they should not be ---- */

static gpu_stream small_stream(enum data kind, uint32_t bytes, const struct finder *finder) {
    uint8_t *data = make_data(kind, bytes);
    gpu_stream stream = compress(data, bytes, finder);
    free(data);
    return stream;
}

static void sizes_and_sums(void) {
    gpu_stream stream = small_stream(WORDS, 20000, &plain);
    uint8_t *bytes = (uint8_t *)(uintptr_t)stream.in;
    CHECK(verdict_of(stream) == COGPU_GPU_DECODED);
    for (uint32_t less = 1; less < 20000; less = 3 * less + 1) {
        gpu_stream changed = stream;
        changed.room = changed.needed = 20000 - less;
        CHECK(verdict_of(changed) == COGPU_GPU_TOO_LONG);
        changed.room = changed.needed = 20000 + less;
        CHECK(verdict_of(changed) == COGPU_GPU_TOO_SHORT);
        changed.needed = 20000;
        CHECK(verdict_of(changed) == COGPU_GPU_DECODED);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        bytes[stream.in_bytes - i] ^= 0x10;
        CHECK(verdict_of(stream) == COGPU_GPU_BAD_SUM);
        bytes[stream.in_bytes - i] ^= 0x10;
    }
    static const uint8_t heads[][2] = {{0x78, 0x9D}, {0x79, 0x9C}, {0x88, 0x1C}, {0x78, 0xBB},
                                       {0x77, 0x85}, {0x78, 0x20}, {0, 0}};
    for (uint32_t i = 0; i < 7; i++) {
        memcpy(bytes, heads[i], 2);
        CHECK(verdict_of(stream) == COGPU_GPU_DAMAGED);
    }
    for (uint32_t window = 0; window < 8; window++) {
        bytes[0] = (uint8_t)(window << 4 | 8);
        bytes[1] = (uint8_t)(31 - bytes[0] * 256u % 31);
        CHECK(verdict_of(stream) == COGPU_GPU_DECODED);
    }
    free(bytes);
}

static void bytes_behind_the_end(void) {
    gpu_stream stream = small_stream(FLOATS, 5000, &plain);
    uint8_t *longer = malloc(stream.in_bytes + 99);
    memset(longer, 0xAB, stream.in_bytes + 99);
    memcpy(longer, stream.in, stream.in_bytes);
    free((void *)(uintptr_t)stream.in);
    stream.in = longer;
    stream.in_bytes += 99;
    CHECK(verdict_of(stream) == COGPU_GPU_DECODED);
    free(longer);
}

/* At every byte of the end, and at many before it. */
static void cut_off(void) {
    static const struct finder kinds[] = {{32768, 258, 400, ANY, 15, 2},
                                          {32768, 258, 16384, OWN, 15, 0}};
    for (uint32_t kind = 0; kind < 2; kind++) {
        gpu_stream whole = small_stream(kind ? FLOATS : WORDS, 1500, &kinds[kind]);
        gpu_stream *streams = calloc(whole.in_bytes, sizeof *streams);
        uint32_t taken, count = 0;
        for (uint32_t i = 1; i <= whole.in_bytes; i += i + 60 < whole.in_bytes ? 1 + draw(5) : 1) {
            streams[count] = whole;
            streams[count++].in_bytes = i;
        }
        CHECK(agree(streams, count, &taken));
        CHECK(taken == 1 && streams[count - 1].verdict == COGPU_GPU_DECODED);
        for (uint32_t i = 2; i <= 5; i++) /* in the sum itself */
            CHECK(streams[count - i].verdict == COGPU_GPU_CUT_OFF);
        free(streams);
        free((void *)(uintptr_t)whole.in);
    }
}

/* Some end with their sum unharmed, when the host takes them all the same. */
static void mutations(void) {
    enum { COUNT = 50 };
    for (uint32_t turn = 0; turn < 6; turn++) {
        struct finder finder = {32768, 258, turn % 2 ? 500 : 16384, turn % 2 ? ANY : OWN, 15, 0};
        gpu_stream whole = small_stream((enum data)(turn % FAR), 3000, &finder), streams[COUNT];
        uint32_t taken;
        for (uint32_t i = 0; i < COUNT; i++) {
            uint8_t *copy = malloc(whole.in_bytes);
            memcpy(copy, whole.in, whole.in_bytes);
            for (uint32_t changes = draw(3); changes < 3; changes++)
                copy[draw(2) ? draw(whole.in_bytes) : draw(whole.in_bytes < 80 ? 9 : 80)] ^=
                    (uint8_t)(1 << draw(8));
            streams[i] = whole;
            streams[i].in = copy;
            streams[i].room += draw(2) * 500;
        }
        CHECK(agree(streams, COUNT, &taken));
        for (uint32_t i = 0; i < COUNT; i++)
            free((void *)(uintptr_t)streams[i].in);
        free((void *)(uintptr_t)whole.in);
    }
}

/* One section of hand-made tokens or codes; ends with the sum of `bytes` zeros. */
static uint32_t verdict_of_section(const struct huffman *literals, uint32_t literal_count,
                                   const struct huffman *distances, uint32_t distance_count,
                                   const struct token *tokens, uint32_t count, uint32_t bytes) {
    struct writer w = begin_stream(10000);
    static const uint8_t zeros[1000];
    put(&w, 5, 3);
    put_header(&w, literals, literal_count, distances, distance_count);
    put_tokens(&w, tokens, count, literals, distances);
    end_stream(&w, adler(zeros, bytes));
    uint32_t verdict =
        verdict_of((gpu_stream){.in = w.out, .in_bytes = w.bytes, .room = 1000, .needed = bytes});
    free(w.out);
    return verdict;
}

static void odd_codes(void) {
    struct huffman literals = {{0}, {0}}, one = {{1}, {0}}, none = {{0}, {0}}, two = {{1, 1}, {0}};
    const struct token run[] = {{0, 0}, {258, 1}, {0, 0}}, far[] = {{0, 0}, {258, 2}};
    literals.lengths[0] = 1;
    literals.lengths[256] = literals.lengths[285] = 2;
    assign_codes(&literals);
    assign_codes(&one);
    assign_codes(&two);
    CHECK(verdict_of_section(&literals, 286, &two, 2, run, 3, 260) == COGPU_GPU_DECODED);
    CHECK(verdict_of_section(&literals, 286, &one, 1, run, 3, 260) == COGPU_GPU_DECODED);
    CHECK(verdict_of_section(&literals, 286, &none, 1, run, 1, 1) == COGPU_GPU_DECODED);
    /* a distance without a code, one before the start, and one as the first token */
    CHECK(verdict_of_section(&literals, 286, &none, 1, run, 3, 260) != COGPU_GPU_DECODED);
    CHECK(verdict_of_section(&literals, 286, &two, 2, far, 2, 259) == COGPU_GPU_DAMAGED);
    CHECK(verdict_of_section(&literals, 286, &two, 2, run + 1, 2, 259) == COGPU_GPU_DAMAGED);
    /* too many distances, too many literals */
    CHECK(verdict_of_section(&literals, 286, &two, 31, run, 3, 260) != COGPU_GPU_DECODED);
    CHECK(verdict_of_section(&literals, 287, &two, 2, run, 3, 260) != COGPU_GPU_DECODED);
    /* too many codes, too few codes, no end */
    literals.lengths[1] = 2;
    CHECK(verdict_of_section(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_DAMAGED);
    literals.lengths[1] = literals.lengths[285] = 0;
    CHECK(verdict_of_section(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_DAMAGED);
    literals.lengths[256] = 0;
    literals.lengths[1] = 1;
    CHECK(verdict_of_section(&literals, 286, &two, 2, run, 1, 1) == COGPU_GPU_DAMAGED);
    /* the end alone: nothing comes out, which no block is content with */
    literals.lengths[1] = literals.lengths[0] = 0;
    literals.lengths[256] = 1;
    assign_codes(&literals);
    CHECK(verdict_of_section(&literals, 257, &none, 1, run, 0, 0) == COGPU_GPU_DECODED);
    CHECK(verdict_of_section(&literals, 257, &none, 1, run, 0, 1) == COGPU_GPU_TOO_SHORT);
}

/* Bits as given, behind the zlib header. */
static uint32_t verdict_of_bits(const char *bits) {
    struct writer w = begin_stream(100);
    for (; *bits; bits++)
        if (*bits != ' ')
            put(&w, (uint32_t)(*bits - '0'), 1);
    end_stream(&w, 1);
    uint32_t verdict =
        verdict_of((gpu_stream){.in = w.out, .in_bytes = w.bytes, .room = 100, .needed = 0});
    free(w.out);
    return verdict;
}

static void odd_headers(void) {
    CHECK(verdict_of_bits("1 10 0000000") == COGPU_GPU_DECODED);
    CHECK(verdict_of_bits("1 11 0000000") == COGPU_GPU_DAMAGED);
    CHECK(verdict_of_bits("0 10 0000000") != COGPU_GPU_DECODED);
    CHECK(verdict_of_bits("0 10 0000000 0 10 000") == COGPU_GPU_CUT_OFF);
    CHECK(verdict_of_bits("1 00 00000 0000000000000000 1111111111111111") == COGPU_GPU_DECODED);
    CHECK(verdict_of_bits("1 00 00000 0000000000000000 1111111111111110") == COGPU_GPU_DAMAGED);
    CHECK(verdict_of_bits("1 00 00000 1000000000000000 0111111111111111") == COGPU_GPU_CUT_OFF);
    /* code lengths that begin with "as before", and a precode that is none */
    CHECK(verdict_of_bits("1 01 00000 00000 0000 100 000 000 100 00 00 0000") == COGPU_GPU_DAMAGED);
    CHECK(verdict_of_bits("1 01 00000 00000 0000 000 000 000 000 0000000000") == COGPU_GPU_DAMAGED);
    CHECK(verdict_of_bits("1 01 00000 00000 0000 100 100 100 000 0000000000") == COGPU_GPU_DAMAGED);
}

/* A run of code lengths that goes on behind the last. */
static void too_long_a_run(void) {
    struct huffman literals = {{0}, {0}}, none = {{0}, {0}};
    struct writer w = begin_stream(1000);
    literals.lengths[0] = literals.lengths[256] = 1;
    assign_codes(&literals);
    put(&w, 5, 3);
    put_header(&w, &literals, 257, &none, 20);
    put_tokens(&w, NULL, 0, &literals, &none);
    end_stream(&w, 1);
    gpu_stream stream = {.in = w.out, .in_bytes = w.bytes, .room = 10};
    CHECK(verdict_of(stream) == COGPU_GPU_DECODED);
    for (uint8_t distances = 1; distances < 20; distances++) {
        w.out[3] = (uint8_t)((w.out[3] & 0xE0) | (distances - 1));
        CHECK(verdict_of(stream) == COGPU_GPU_DAMAGED);
    }
    free(w.out);
}

/* More sections than any data could need. */
static void endless_sections(void) {
    enum { COUNT = 3000 };
    struct writer w = begin_stream(10 * COUNT);
    for (uint32_t i = 0; i <= COUNT; i++) {
        put(&w, i == COUNT ? 3 : 2, 3);
        put(&w, 0, 7);
    }
    end_stream(&w, 1);
    CHECK(verdict_of((gpu_stream){.in = w.out, .in_bytes = w.bytes, .room = 100}) ==
          COGPU_GPU_UNUSUAL);
    free(w.out);
}

int main(void) {
    draw_state = 0x1234567;
    RUN(finders);
    RUN(many_sizes);
    RUN(large);
    RUN(libdeflate_levels);
    RUN(our_encoder);
    RUN(long_codes);
    RUN(hard_to_synchronise);
    RUN(scratch);
    RUN(sizes_and_sums);
    RUN(bytes_behind_the_end);
    RUN(cut_off);
    RUN(mutations);
    RUN(odd_codes);
    RUN(odd_headers);
    RUN(too_long_a_run);
    RUN(endless_sections);
    return FINISH();
}
