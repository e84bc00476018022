/*
 * Walks the frame headers of a JPEG XL codestream (ISO/IEC 18181-1): the frames must be few, and
 * none larger than the image.
 *
 * A codestream may hold frames that are never shown and are larger than the image, at a few bytes
 * each. libjxl before 0.11 ends the process where it gets no memory for one, so they are found
 * before it decodes.
 */
#include "codec/jpegxl_frame.h"

enum { FRAMES_MAX = 8, FRAME_REGULAR = 0, FRAME_REFERENCE = 2 };
enum { FLAG_USES_DC_FRAME = 32, BLEND_REPLACE = 0, BLEND_BLEND = 2 };
enum { BLEND_MULTIPLY_ADD = 3, BLEND_MULTIPLY = 4 };

/* Bits, the least significant of a byte first. Past the end they are 0, and `is_short` is set. */
typedef struct bits {
    const uint8_t *in;
    uint64_t at, end;
    bool is_short;
} bits;

static uint32_t read_bits(bits *b, uint32_t count) {
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

static uint32_t read_number(bits *b, const way ways[4]) {
    const way *chosen = &ways[read_bits(b, 2)];
    return read_bits(b, chosen->bits) + chosen->offset;
}

static const way one_to_eight[4] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}};

/* A number of up to 64 bits, of which the low 32 are handed out. */
static uint32_t read_long(bits *b) {
    switch (read_bits(b, 2)) {
    case 0:
        return 0;
    case 1:
        return 1 + read_bits(b, 4);
    case 2:
        return 17 + read_bits(b, 8);
    default: {
        uint64_t value = read_bits(b, 12);
        for (uint32_t shift = 12; read_bits(b, 1); shift += 8) {
            value |= (uint64_t)read_bits(b, shift == 60 ? 4 : 8) << shift;
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
    uint32_t passes = read_number(b, counts);
    if (passes == 1)
        return;
    uint32_t downsampled = read_number(b, downsamplings);
    read_bits(b, 2 * (passes - 1)); /* shifts */
    for (uint32_t i = 0; i < downsampled; i++)
        read_number(b, one_to_eight);
    for (uint32_t i = 0; i < downsampled; i++)
        read_number(b, last_passes);
}

/* How the frame is laid over an earlier one; of the colours, or of an extra channel. */
static void skip_blending(bits *b, bool has_extras) {
    static const way modes[4] = {{0, 0}, {0, 1}, {0, 2}, {2, 3}};
    static const way alphas[4] = {{0, 0}, {0, 1}, {0, 2}, {3, 3}};
    uint32_t mode = read_number(b, modes);
    bool by_alpha = has_extras && (mode == BLEND_BLEND || mode == BLEND_MULTIPLY_ADD);
    if (by_alpha)
        read_number(b, alphas);
    if (by_alpha || mode == BLEND_MULTIPLY)
        read_bits(b, 1);
    if (mode != BLEND_REPLACE)
        read_bits(b, 2);
}

/* What one frame says of itself. */
typedef struct frame {
    bool is_valid; /* it was read, and is no larger than the image */
    bool is_last;
    uint64_t parts; /* of its data, whose sizes follow the header */
} frame;

/* A size of its own, of a frame that is not shown. */
static uint32_t read_side(bits *b) {
    static const way sides[4] = {{8, 0}, {11, 256}, {14, 2304}, {30, 18688}};
    return read_number(b, sides);
}

static uint64_t groups_of(uint32_t side, uint32_t group) {
    return ((uint64_t)side + group - 1) / group;
}

/* The rest of the header of a frame that is not shown: its name and the filters after decoding.
 * False where filters have values of their own. */
static bool skip_rest(bits *b) {
    static const way names[4] = {{0, 0}, {4, 0}, {5, 16}, {10, 48}};
    read_bits(b, 2 + 1); /* where it is kept; before or after the colour transform */
    for (uint32_t left = read_number(b, names); left > 0 && !b->is_short; left--)
        read_bits(b, 8);
    bool filters_are_default = read_bits(b, 1);
    if (!filters_are_default &&
        ((read_bits(b, 1) && read_bits(b, 1)) || read_bits(b, 2) || read_long(b)))
        return false;
    return read_long(b) == 0 && !b->is_short; /* no extensions */
}

/* A frame that others refer to and that is not shown, as patches are kept. */
static frame read_reference(bits *b, const cogpu_jpegxl_image *image, uint32_t group) {
    uint32_t width = image->width, height = image->height;
    if (read_bits(b, 1)) {
        width = read_side(b);
        height = read_side(b);
    }
    if (!skip_rest(b) || width == 0 || height == 0 || width > image->width ||
        height > image->height)
        return (frame){0};
    uint64_t groups = groups_of(width, group) * groups_of(height, group);
    uint64_t large = groups_of(width, 8 * group) * groups_of(height, 8 * group);
    return (frame){.is_valid = true, .parts = groups == 1 ? 1 : 2 + large + groups};
}

static frame read_frame_header(bits *b, const cogpu_jpegxl_image *image) {
    const frame refused = {0};
    if (read_bits(b, 1)) /* all values are the default ones */
        return (frame){.is_valid = !b->is_short, .is_last = true};
    uint32_t kind = read_bits(b, 2);
    if (kind != FRAME_REGULAR && kind != FRAME_REFERENCE)
        return refused;
    bool is_modular = read_bits(b, 1), is_ycbcr = false;
    uint32_t flags = read_long(b), upsampling = 0, group = 256;
    if (!image->is_xyb)
        is_ycbcr = read_bits(b, 1);
    if (flags & FLAG_USES_DC_FRAME)
        return refused;
    if (is_ycbcr)
        read_bits(b, 6); /* subsampling */
    for (uint32_t i = 0; i <= image->extras && !b->is_short; i++)
        upsampling |= read_bits(b, 2); /* of the colours and of each extra channel */
    if (is_modular)
        group = 128u << read_bits(b, 2);
    else if (image->is_xyb)
        read_bits(b, 6); /* scales of the quantisation */
    if (kind == FRAME_REFERENCE)
        return upsampling ? refused : read_reference(b, image, group);
    skip_passes(b);
    if (read_bits(b, 1)) /* a size or an origin of its own */
        return refused;
    for (uint32_t i = 0; i <= image->extras && !b->is_short; i++)
        skip_blending(b, image->extras > 0);
    bool is_last = read_bits(b, 1);
    return (frame){.is_valid = is_last && !b->is_short, .is_last = is_last};
}

static void skip_to_byte(bits *b) {
    b->at = (b->at + 7) / 8 * 8;
}

/* Moves on past the data of a frame. False where its parts are not in order, or end too
 * early. */
static bool skip_data(bits *b, uint64_t parts) {
    static const way sizes[4] = {{10, 0}, {14, 1024}, {22, 17408}, {30, 4211712}};
    uint64_t bytes = 0;
    if (read_bits(b, 1))
        return false;
    skip_to_byte(b);
    for (uint64_t i = 0; i < parts && !b->is_short; i++)
        bytes += read_number(b, sizes);
    skip_to_byte(b);
    if (b->is_short || bytes > (b->end - b->at) / 8)
        return false;
    b->at += 8 * bytes;
    return true;
}

bool cogpu_jpegxl_is_bounded(const uint8_t *in, size_t in_bytes, const cogpu_jpegxl_image *image) {
    bits b = {.in = in, .end = 8 * (uint64_t)in_bytes};
    for (int i = 0; i < FRAMES_MAX; i++) {
        frame next = read_frame_header(&b, image);
        if (!next.is_valid || next.is_last)
            return next.is_valid;
        if (!skip_data(&b, next.parts))
            return false;
    }
    return false;
}
