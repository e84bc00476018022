/*
 * Takes the bytes of a frame header of JPEG XL (ISO/IEC 18181-1), hands on whether the image is
 * this one frame.
 *
 * A codestream may hold frames that are never shown and are larger than the image, at a few bytes
 * each. libjxl before 0.11 ends the process where it gets no memory for one, so they are found
 * before it decodes.
 */
#include "codec/jpegxl_frame.h"

enum { FRAME_REGULAR = 0, FLAG_USES_DC_FRAME = 32, BLEND_REPLACE = 0, BLEND_BLEND = 2 };
enum { BLEND_MULTIPLY_ADD = 3, BLEND_MULTIPLY = 4 };

/* Bits, the least significant of a byte first. Past the end they are 0, and `is_short` is set. */
typedef struct bits {
    const uint8_t *in;
    uint64_t at, end;
    bool is_short;
} bits;

static uint32_t take(bits *b, uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; i++, b->at++) {
        if (b->at >= b->end)
            b->is_short = true;
        else
            value |= ((uint32_t)b->in[b->at / 8] >> b->at % 8 & 1u) << i;
    }
    return value;
}

/* One of four ways to code a number: so many bits, plus an offset. */
typedef struct way {
    uint32_t bits, offset;
} way;

static uint32_t take_number(bits *b, const way ways[4]) {
    const way *chosen = &ways[take(b, 2)];
    return take(b, chosen->bits) + chosen->offset;
}

static const way one_to_eight[4] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}};

/* A number of up to 64 bits, of which the low 32 are handed out. */
static uint32_t take_long(bits *b) {
    switch (take(b, 2)) {
    case 0:
        return 0;
    case 1:
        return 1 + take(b, 4);
    case 2:
        return 17 + take(b, 8);
    default: {
        uint64_t value = take(b, 12);
        for (uint32_t shift = 12; take(b, 1); shift += 8) {
            value |= (uint64_t)take(b, shift == 60 ? 4 : 8) << shift;
            if (shift == 60)
                break;
        }
        return (uint32_t)value;
    }
    }
}

static void skip_passes(bits *b) {
    static const way counts[4] = {{0, 1}, {0, 2}, {0, 3}, {3, 4}};
    static const way downsamplings[4] = {{0, 0}, {0, 1}, {0, 2}, {1, 3}};
    static const way last_passes[4] = {{0, 0}, {0, 1}, {0, 2}, {3, 0}};
    uint32_t passes = take_number(b, counts);
    if (passes == 1)
        return;
    uint32_t downsampled = take_number(b, downsamplings);
    take(b, 2 * (passes - 1)); /* shifts */
    for (uint32_t i = 0; i < downsampled; i++)
        take_number(b, one_to_eight);
    for (uint32_t i = 0; i < downsampled; i++)
        take_number(b, last_passes);
}

/* How the frame is laid over an earlier one; of the colours, or of an extra channel. */
static void skip_blending(bits *b, bool has_extras) {
    static const way modes[4] = {{0, 0}, {0, 1}, {0, 2}, {2, 3}};
    static const way alphas[4] = {{0, 0}, {0, 1}, {0, 2}, {3, 3}};
    uint32_t mode = take_number(b, modes);
    bool by_alpha = has_extras && (mode == BLEND_BLEND || mode == BLEND_MULTIPLY_ADD);
    if (by_alpha)
        take_number(b, alphas);
    if (by_alpha || mode == BLEND_MULTIPLY)
        take(b, 1);
    if (mode != BLEND_REPLACE)
        take(b, 2);
}

bool cogpu_jpegxl_is_single(const uint8_t *in, size_t in_bytes, uint32_t extras, bool is_xyb) {
    bits b = {.in = in, .end = 8 * (uint64_t)in_bytes};
    if (take(&b, 1)) /* all values are the default ones */
        return !b.is_short;
    if (take(&b, 2) != FRAME_REGULAR)
        return false;
    bool is_modular = take(&b, 1), is_ycbcr = false;
    uint32_t flags = take_long(&b);
    if (!is_xyb)
        is_ycbcr = take(&b, 1);
    if (flags & FLAG_USES_DC_FRAME)
        return false;
    if (is_ycbcr)
        take(&b, 6); /* subsampling */
    for (uint32_t i = 0; i <= extras && !b.is_short; i++)
        take(&b, 2); /* upsampling, of the colours and of each extra channel */
    if (is_modular)
        take(&b, 2); /* size of groups */
    else if (is_xyb)
        take(&b, 6); /* scales of the quantisation */
    skip_passes(&b);
    if (take(&b, 1)) /* a size or an origin of its own */
        return false;
    for (uint32_t i = 0; i <= extras && !b.is_short; i++)
        skip_blending(&b, extras > 0);
    return take(&b, 1) && !b.is_short; /* it is the last */
}
