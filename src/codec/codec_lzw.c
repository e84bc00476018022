/*
 * LZW decoder (compression 5, TIFF 6.0 section 13).
 *
 * Each code adds "the string of the previous code, plus the byte that follows it in the output" to
 * the table. So no chain of prefixes is kept: a table entry holds the bytes of a short string,
 * ready to be stored as one word, or start and length of a long string in the output of this
 * segment (what is between two Clear codes).
 *
 *   short   bits 0-55 bytes, first one lowest          bits 56-63 length, 1 to 7
 *   long    bits 0-7 first byte, 8-15 unused, 16-39 start, 40-55 length     bits 56-63 LONG
 *
 * A start fits: the strings of a full table have 1 + 2 + ... + 3838 < 2^23 bytes together.
 *
 * `grow` and `shift` prepare the next entry before its last byte is known: entry = grow | byte <<
 * shift. The last byte of a long string is in the output already, and `shift` moves it into the
 * unused bits.
 *
 * The fast loop reads several codes from each 64-bit word, is compiled once for each code width,
 * and runs where wide loads and stores stay inside the block. decode_code handles all else.
 */
#include "base/bytes.h"
#include "codec/codec.h"

enum { CLEAR = 256, END = 257, FIRST = 258, TABLE_FULL = 4096 };

#define LENGTH_ONE  (UINT64_C(1) << 56)
#define SHORT_LIMIT (7 * LENGTH_ONE) /* what is below it is short, and so is what grows of it */
#define LONG        (UINT64_C(0x80) << 56)
#define CONTROL     (UINT64_C(0xFF) << 56)
#define LONG_START  16
#define LONG_LENGTH 40
#define COPY_BYTES  64 /* that a long string is copied by */

typedef struct lzw_decoder {
    const uint8_t *in;
    size_t in_bytes;
    size_t bit;             /* of the input that comes next */
    uint64_t bits_before;   /* in parts of the stream before `in` */
    uint8_t *out, *out_end; /* where the next string goes */
    uint8_t *segment;       /* where the output of this segment begins */
    uint64_t *table;
    uint64_t grow;
    unsigned shift;
    unsigned next;  /* the entry that the next code adds; END where it adds none yet */
    bool old_style; /* least significant bit first, and no early change of the width */
} lzw_decoder;

static inline void store_short(uint8_t *out, uint64_t entry) {
    if (COGPU_HOST_BIG_ENDIAN)
        entry = __builtin_bswap64(entry);
    memcpy(out, &entry, sizeof entry);
}

static inline uint64_t entry_after(uint64_t grow, unsigned shift, uint64_t entry) {
    return grow | (entry & 0xFF) << shift;
}

static inline size_t string_length(uint64_t entry) {
    return entry < LONG ? (size_t)(entry >> 56) : (size_t)(entry >> LONG_LENGTH & 0xFFFF);
}

static inline const uint8_t *long_string(const uint8_t *segment, uint64_t entry) {
    return segment + (entry >> LONG_START & 0xFFFFFF);
}

/* What the string `entry`, put at `start` of the segment, does to `grow` and `shift`. */
static inline void grow_from(uint64_t entry, size_t start, uint64_t *grow, unsigned *shift) {
    const uint64_t length = string_length(entry);
    if (entry < SHORT_LIMIT) {
        *grow = entry + LENGTH_ONE;
        *shift = 8 * (unsigned)length;
    } else {
        *grow = LONG | (length + 1) << LONG_LENGTH | (uint64_t)start << LONG_START | (entry & 0xFF);
        *shift = 8;
    }
}

/* Writes up to COPY_BYTES more than the string has. */
static inline void append_wide(uint8_t *out, const uint8_t *segment, uint64_t entry) {
    if (entry < LONG) {
        store_short(out, entry);
        return;
    }
    const uint8_t *from = long_string(segment, entry);
    const size_t length = string_length(entry);
    for (size_t done = 0; done < length; done += COPY_BYTES) {
        uint8_t bytes[COPY_BYTES]; /* a string may end where its copy begins */
        memcpy(bytes, from + done, COPY_BYTES);
        memcpy(out + done, bytes, COPY_BYTES);
    }
}

/* Decodes codes of `width` bits until one needs `decode_code`. */
static inline __attribute__((always_inline)) void decode_codes(lzw_decoder *d,
                                                               const unsigned width) {
    const unsigned group = 57 / width; /* a load has 57 bits or more from any bit on */
    const unsigned limit = width == 12 ? TABLE_FULL : (1u << width) - 1;
    uint64_t *const table = d->table;
    uint8_t *const segment = d->segment, *const out_end = d->out_end;
    uint8_t *out = d->out;
    uint64_t grow = d->grow;
    unsigned shift = d->shift, next = d->next;
    size_t bit = d->bit;

    while (next + group <= limit && out_end - out >= 8 * (ptrdiff_t)group &&
           (bit >> 3) + 8 <= d->in_bytes) {
        const uint64_t word = load_u64(d->in + (bit >> 3), true) << (bit & 7);
        uint64_t entry;
        unsigned i, code;
#pragma GCC unroll 6
        for (i = 0; i < group; i++) {
            code = (unsigned)(word >> (64 - width * (i + 1))) & ((1u << width) - 1);
            entry = table[code];
            if (__builtin_expect(code >= next + i || entry >= SHORT_LIMIT, 0))
                goto unusual;
            table[next + i] = entry_after(grow, shift, entry);
            store_short(out, entry);
            grow_from(entry, 0, &grow, &shift);
            out += entry >> 56;
        }
        bit += group * width;
        next += group;
        continue;

    unusual: /* a long string, one that this very code adds, or nothing for this loop */
        bit += i * width;
        next += i;
        if (code == next)
            entry = entry_after(grow, shift, grow);
        const size_t length = string_length(entry);
        if (code > next || entry >= CONTROL || out_end - out < (ptrdiff_t)length + COPY_BYTES)
            break;
        table[next] = entry_after(grow, shift, entry);
        append_wide(out, segment, entry);
        if (code == next) /* its last byte is its first, which a wide copy may have missed */
            out[length - 1] = (uint8_t)entry;
        grow_from(entry, (size_t)(out - segment), &grow, &shift);
        out += length;
        bit += width;
        next++;
    }
    d->out = out;
    d->grow = grow;
    d->shift = shift;
    d->next = next;
    d->bit = bit;
}

/* Of the next code; it changes one code early (TIFF 6.0 section 13). */
static unsigned code_width(const lzw_decoder *d) {
    const unsigned reach = d->old_style ? d->next : d->next + 1;
    return reach < 512 ? 9 : reach < 1024 ? 10 : reach < 2048 ? 11 : 12;
}

/* The `width` bits that come next, from the at most three bytes that hold them. */
static unsigned read_code(lzw_decoder *d, unsigned width) {
    const size_t first = d->bit >> 3, last = (d->bit + width - 1) >> 3;
    const unsigned skip = d->bit & 7;
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; i++) {
        const uint32_t byte = first + i <= last ? d->in[first + i] : 0;
        bits |= byte << (d->old_style ? 8 * i : 16 - 8 * i);
    }
    d->bit += width;
    return (d->old_style ? bits >> skip : bits >> (24 - width - skip)) & ((1u << width) - 1);
}

/* As much of the string as fits, byte by byte: a string may overlap its copy. */
static void append_string(lzw_decoder *d, uint64_t entry) {
    const size_t capacity = (size_t)(d->out_end - d->out), length = string_length(entry);
    const size_t count = length < capacity ? length : capacity;
    const uint8_t *from = long_string(d->segment, entry);
    for (size_t i = 0; i < count; i++)
        d->out[i] = (uint8_t)(entry < LONG ? entry >> 8 * i : from[i]);
    d->out += count;
}

static void start_segment(lzw_decoder *d) {
    d->segment = d->out;
    d->next = END;
}

/* Decodes one code, whatever it is, with every check. `*more` becomes false at the stream's end. */
static cogpu_status decode_code(lzw_decoder *d, bool *more, cogpu_error *error) {
    const unsigned width = code_width(d);
    *more = d->out < d->out_end && d->in_bytes * 8 - d->bit >= width;
    if (!*more)
        return COGPU_OK;
    const unsigned code = read_code(d, width);
    if (code == CLEAR) {
        start_segment(d);
        return COGPU_OK;
    }
    if (code == END) {
        *more = false;
        return COGPU_OK;
    }
    if (code > d->next)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the LZW stream has code %u at bit %llu, where the table ends at %u",
                          code, (unsigned long long)(d->bits_before + d->bit - width), d->next);
    if (code == d->next) /* the string that this very code adds: the last, and its own first byte */
        d->table[code] = entry_after(d->grow, d->shift, d->grow);
    const uint64_t entry = d->table[code];
    if (d->next != END && d->next < TABLE_FULL)
        d->table[d->next] = entry_after(d->grow, d->shift, entry);
    if (d->next < TABLE_FULL)
        d->next++;
    grow_from(entry, (size_t)(d->out - d->segment), &d->grow, &d->shift);
    append_string(d, entry);
    return COGPU_OK;
}

static void decode_at_width(lzw_decoder *d) {
    if (d->next == END || d->old_style)
        return;
    switch (code_width(d)) {
    case 9:
        decode_codes(d, 9);
        break;
    case 10:
        decode_codes(d, 10);
        break;
    case 11:
        decode_codes(d, 11);
        break;
    default:
        decode_codes(d, 12);
    }
}

static void open_lzw(lzw_decoder *d, const uint8_t *in, size_t in_bytes) {
    for (unsigned byte = 0; byte < CLEAR; byte++)
        d->table[byte] = LENGTH_ONE | byte;
    d->table[CLEAR] = d->table[END] = CONTROL;
    /* Clear in the bit order of files before TIFF 5; no other stream begins with it. */
    d->old_style = in_bytes >= 2 && in[0] == 0 && (in[1] & 1);
    start_segment(d);
}

cogpu_status cogpu_decode_lzw(cogpu_codec_state *state, const cogpu_block_format *format,
                              const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                              size_t *got, cogpu_error *error) {
    (void)format;
    lzw_decoder d = {.in = in, .in_bytes = in_bytes, .out = out, .out_end = out + out_bytes};
    d.table = cogpu_codec_work(state, TABLE_FULL * sizeof *d.table);
    if (!d.table)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the LZW table");
    open_lzw(&d, in, in_bytes);
    for (bool more = true; more;) {
        decode_at_width(&d);
        TRY(decode_code(&d, &more, error));
    }
    *got = (size_t)(d.out - out);
    return COGPU_OK;
}

/* ---- streamed: decoded into memory of our own, to which the strings of a segment refer ---- */

enum {
    SEGMENT_BYTES = 1 << 23, /* more than the strings of a full table have together */
    TAIL_BYTES = 64 << 10,   /* for what follows a full table, to which no string refers */
    STRING_MAX = TABLE_FULL,
    INPUT_MIN = 16 /* bytes at hand for a code and the wide load after it */
};

struct lzw_stream {
    lzw_decoder d;
    const uint8_t *given; /* decoded bytes before this are delivered */
    bool more;
    uint64_t table[TABLE_FULL];
    uint8_t memory[SEGMENT_BYTES + TAIL_BYTES];
};

static cogpu_status open_lzw_stream(cogpu_stream_decoder *stream, cogpu_error *error) {
    struct lzw_stream *s = stream->decoder = cogpu_allocate(sizeof *s);
    if (!s)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the LZW decoder");
    cogpu_feed_fill(stream->feed, INPUT_MIN);
    s->d = (lzw_decoder){.table = s->table, .out = s->memory};
    s->given = s->memory;
    s->more = true;
    open_lzw(&s->d, stream->feed->at, stream->feed->bytes);
    return COGPU_OK;
}

/* All decoded bytes are delivered: the next ones overwrite none that a string refers to. */
static void rewind_output(struct lzw_stream *s) {
    lzw_decoder *d = &s->d;
    if (d->next == END) {
        d->out = s->memory;
        start_segment(d);
    } else if (d->out > s->memory + SEGMENT_BYTES) {
        d->out = s->memory + SEGMENT_BYTES;
    }
    s->given = d->out;
}

/* Decodes up to the next Clear, or until input or capacity ends. */
static cogpu_status decode_lzw_part(struct lzw_stream *s, cogpu_feed *feed, cogpu_error *error) {
    lzw_decoder *d = &s->d;
    uint8_t *end = s->memory + sizeof s->memory, *soft_end = end - STRING_MAX;
    rewind_output(s);
    cogpu_feed_fill(feed, INPUT_MIN);
    d->in = feed->at;
    const size_t soft_bytes = feed->left == 0 ? feed->bytes : feed->bytes - INPUT_MIN / 2;
    cogpu_status status = COGPU_OK;
    do {
        /* `decode_code` treats the end of the input as the end of the stream, and truncates a
         * string at the end of the output: `decode_codes` stops well before. */
        d->in_bytes = soft_bytes;
        d->out_end = soft_end;
        decode_at_width(d);
        d->in_bytes = feed->bytes;
        d->out_end = end;
        status = decode_code(d, &s->more, error);
    } while (status == COGPU_OK && s->more && d->next != END && d->out < soft_end &&
             (feed->left == 0 || d->in_bytes - (d->bit >> 3) >= INPUT_MIN));
    cogpu_feed_consume(feed, d->bit >> 3);
    d->bits_before += d->bit & ~(size_t)7;
    d->bit &= 7;
    return status;
}

static cogpu_status decode_lzw_stream(cogpu_stream_decoder *stream, uint8_t *out, size_t out_bytes,
                                      size_t *got, cogpu_error *error) {
    if (!stream->decoder)
        TRY(open_lzw_stream(stream, error));
    struct lzw_stream *s = stream->decoder;
    *got = 0;
    while (*got < out_bytes) {
        const size_t ready = (size_t)(s->d.out - s->given), capacity = out_bytes - *got;
        const size_t count = ready < capacity ? ready : capacity;
        if (count == 0 && !s->more)
            break;
        if (count == 0)
            TRY(decode_lzw_part(s, stream->feed, error));
        memcpy(out + *got, s->given, count);
        s->given += count;
        *got += count;
    }
    return COGPU_OK;
}

const cogpu_stream_codec cogpu_stream_lzw = {decode_lzw_stream, cogpu_stream_decoder_close, false};
