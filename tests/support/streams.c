#include "support/streams.h"

void fill_content(uint8_t *to, uint32_t bytes, enum content content) {
    static const char text[] = "the rivers of the plain and the rivers of the mountains ";
    for (uint32_t i = 0; i < bytes; i++)
        switch (content) {
        case CONSTANT:
            to[i] = 7;
            break;
        case RAMP:
            to[i] = (uint8_t)(i / 3);
            break;
        case NOISE:
            to[i] = (uint8_t)draw(256);
            break;
        case FEW_VALUES:
            to[i] = (uint8_t)(draw(10) ? 3 : draw(4));
            break;
        case PREDICTED: /* differences of floats: noise in the low bytes, few values in the high
                           ones */
            to[i] = (uint8_t)(i % 4 == 0 ? draw(256) : i % 4 == 1 ? draw(20) - 10 : 0u - draw(2));
            break;
        case TEXT:
            to[i] = (uint8_t)text[(i + (draw(50) == 0 ? draw(9) : 0)) % (sizeof text - 1)];
            break;
        default:
            to[i] = (uint8_t)(i % 3);
        }
}

const struct lzw_encoder_style lzw_libtiff = {.clear_after = 3836, .greed = 16};

void lzw_put(struct lzw_stream *s, uint32_t code) {
    const uint32_t k = s->codes, width = k < 254 ? 9 : k < 766 ? 10 : k < 1790 ? 11 : 12;
    for (uint32_t i = 0; i < width; i++, s->bit++)
        s->bytes[s->bit / 8] |= (uint8_t)((code >> (width - 1 - i) & 1) << (7 - s->bit % 8));
    s->codes = code == LZW_CLEAR ? 0 : s->codes + 1;
}

static uint16_t lzw_child[LZW_TABLE_FULL][256];

static void lzw_put_clear(struct lzw_stream *s, const struct lzw_encoder_style *style) {
    const uint32_t used = LZW_FIRST + s->codes;
    memset(lzw_child, 0, (used < LZW_TABLE_FULL ? used : LZW_TABLE_FULL) * sizeof *lzw_child);
    lzw_put(s, LZW_CLEAR);
    if (style->double_clear)
        lzw_put(s, LZW_CLEAR);
}

gpu_stream lzw_encode(const uint8_t *content, uint32_t bytes,
                      const struct lzw_encoder_style *style) {
    struct lzw_stream s = {.bytes = calloc(1, 3 * (size_t)bytes + 64)};
    memset(lzw_child, 0, sizeof lzw_child);
    if (!style->no_first_clear)
        lzw_put_clear(&s, style);
    for (uint32_t at = 0, since = 0, last = 0; at < bytes;) {
        if (s.codes >= style->clear_after ||
            (style->clear_at_bytes && since >= style->clear_at_bytes)) {
            lzw_put_clear(&s, style);
            since = 0;
        }
        uint32_t string = content[at++];
        since++;
        /* the entry that this code adds has the number LZW_FIRST + codes - 1 */
        if (s.codes > 0 && LZW_FIRST + s.codes - 1 < LZW_TABLE_FULL && !lzw_child[last][string])
            lzw_child[last][string] = (uint16_t)(LZW_FIRST + s.codes - 1);
        while (at < bytes && lzw_child[string][content[at]] && draw(16) < style->greed) {
            string = lzw_child[string][content[at++]];
            since++;
        }
        lzw_put(&s, string);
        last = string;
    }
    if (!style->no_end)
        lzw_put(&s, LZW_END);
    return (gpu_stream){.in = s.bytes, .in_bytes = (uint32_t)((s.bit + 7) / 8)};
}

static uint32_t packbits_run(const uint8_t *raw, uint32_t bytes) {
    uint32_t run = 1;
    while (run < bytes && run < 128 && raw[run] == raw[0])
        run++;
    return run;
}

uint32_t packbits_encode(const uint8_t *raw, uint32_t bytes, uint8_t *to) {
    uint32_t size = 0;
    for (uint32_t at = 0; at < bytes;) {
        uint32_t run = packbits_run(raw + at, bytes - at), count = 0;
        if (run > 1) {
            to[size++] = (uint8_t)(257 - run);
            to[size++] = raw[at];
            at += run;
            continue;
        }
        while (count < 128 && at + count < bytes &&
               packbits_run(raw + at + count, bytes - at - count) < 3)
            count++;
        to[size++] = (uint8_t)(count - 1);
        memcpy(to + size, raw + at, count);
        size += count;
        at += count;
    }
    return size;
}
