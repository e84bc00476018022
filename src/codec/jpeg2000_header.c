/* Finds the codestream in a JPEG 2000 block, and checks its headers against the block. */
#include "codec/jpeg2000_header.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

/* Markers of the codestream. */
enum {
    MARKER_SOC = 0xFF4F,
    MARKER_SIZ = 0xFF51,
    MARKER_COD = 0xFF52,
    MARKER_COC = 0xFF53,
    MARKER_SOT = 0xFF90,
    MARKER_SOD = 0xFF93
};

/* Fixed parts of the segments, counted from their length field. */
enum { SIZ_BYTES = 38, SIZ_COMPONENT_BYTES = 3, SOT_BYTES = 10, COD_BYTES = 12, COC_BYTES = 9 };

enum {
    LEVELS_MAX = 32,
    SUBSAMPLING_MAX = 4,
    BITS_MAX = 31,
    PRECINCT_WHOLE = 15,
    STYLE_PRECINCTS = 1
};

/* Memory that OpenJPEG takes for each part, rounded up, and what a stream may make it take: this
 * much, and more for longer streams. */
enum { TILE_COST = 6 << 10, TILE_COMPONENT_COST = 1200, PRECINCT_COST = 1024, BLOCK_COST = 256 };
enum { HELD_BASE = 16 << 20, HELD_PER_BYTE = 1000 };

/* The fields of SIZ that the other checks need. */
typedef struct geometry {
    uint32_t tile_width, tile_height; /* at most those of the image */
    uint64_t tiles;
    uint32_t components;
    uint64_t held; /* memory that the parts take */
    uint64_t limit;
    uint64_t layers, levels, precincts; /* the most of any coding style */
} geometry;

static cogpu_status cut_off(cogpu_error *error) {
    return cogpu_fail(error, COGPU_CORRUPT, "JPEG 2000 stream: its header is cut off");
}

/* The boxes of a JP2 file stand one after the other; the codestream is the content of one. */
static cogpu_status find_box(const uint8_t *in, size_t in_bytes, const uint8_t **stream,
                             size_t *stream_bytes, cogpu_error *error) {
    for (size_t at = 0; in_bytes - at >= 8;) {
        uint64_t bytes = load_u32(in + at, true), head = 8, left = in_bytes - at;
        if (bytes == 1 && left >= 16) {
            head = 16;
            bytes = load_u64(in + at + 8, true);
        }
        if (bytes == 0) /* up to the end */
            bytes = left;
        if (bytes < head)
            break;
        if (memcmp(in + at + 4, "jp2c", 4) == 0) {
            *stream = in + at + head;
            *stream_bytes = (size_t)((bytes < left ? bytes : left) - head);
            return COGPU_OK;
        }
        if (bytes > left)
            break;
        at += (size_t)bytes;
    }
    return cogpu_fail(error, COGPU_CORRUPT, "JPEG 2000 stream: a JP2 file without a codestream");
}

cogpu_status cogpu_jpeg2000_find(const uint8_t *in, size_t in_bytes, const uint8_t **stream,
                                 size_t *stream_bytes, cogpu_error *error) {
    static const uint8_t signature[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', 13, 10, 0x87, 10};
    *stream = in;
    *stream_bytes = in_bytes;
    if (in_bytes >= sizeof signature && memcmp(in, signature, sizeof signature) == 0)
        TRY(find_box(in, in_bytes, stream, stream_bytes, error));
    if (*stream_bytes < 4 || load_u16(*stream, true) != MARKER_SOC ||
        load_u16(*stream + 2, true) != MARKER_SIZ)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG 2000 stream: it begins neither as a codestream nor as a JP2 file");
    return COGPU_OK;
}

/* Depth and subsampling of each component. */
static cogpu_status check_components(const cogpu_block_format *format, const uint8_t *at,
                                     cogpu_error *error) {
    bool is_signed = format->type == COGPU_TYPE_I8 || format->type == COGPU_TYPE_I16 ||
                     format->type == COGPU_TYPE_I32;
    for (uint32_t i = 0; i < format->samples; i++, at += SIZ_COMPONENT_BYTES) {
        uint32_t bits = (at[0] & 0x7Fu) + 1;
        if (bits > format->bits || (at[0] >> 7 != 0) != is_signed)
            return cogpu_fail(error, COGPU_CORRUPT,
                              "JPEG 2000 stream: %s samples of %u bits where the block has %s ones "
                              "of %u",
                              at[0] >> 7 ? "signed" : "unsigned", bits,
                              is_signed ? "signed" : "unsigned", format->bits);
        if (bits > BITS_MAX)
            return cogpu_fail(error, COGPU_UNSUPPORTED,
                              "JPEG 2000 stream: samples of %u bits; only %d are read", bits,
                              BITS_MAX);
        if (at[1] == 0 || at[2] == 0 || at[1] > SUBSAMPLING_MAX || at[2] > SUBSAMPLING_MAX)
            return cogpu_fail(error, COGPU_CORRUPT,
                              "JPEG 2000 stream: component %u is subsampled by %u x %u", i, at[1],
                              at[2]);
    }
    return COGPU_OK;
}

/* SIZ, from its length field on. */
static cogpu_status check_size(const cogpu_block_format *format, const uint8_t *siz, size_t bytes,
                               geometry *g, cogpu_error *error) {
    if (bytes < SIZ_BYTES)
        return cut_off(error);
    uint32_t x1 = load_u32(siz + 4, true), y1 = load_u32(siz + 8, true);
    uint32_t x0 = load_u32(siz + 12, true), y0 = load_u32(siz + 16, true);
    uint32_t tile_x0 = load_u32(siz + 28, true), tile_y0 = load_u32(siz + 32, true);
    g->tile_width = load_u32(siz + 20, true);
    g->tile_height = load_u32(siz + 24, true);
    g->components = load_u16(siz + 36, true);
    if (x1 <= x0 || y1 <= y0 || x1 - x0 != format->width || y1 - y0 != format->height)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG 2000 stream: %lld x %lld pixels where the block has %u x %u",
                          (long long)x1 - x0, (long long)y1 - y0, format->width, format->height);
    if (g->components != format->samples)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG 2000 stream: %u components where the block has %u bands",
                          g->components, format->samples);
    if (bytes < SIZ_BYTES + (size_t)SIZ_COMPONENT_BYTES * g->components)
        return cut_off(error);
    if (g->tile_width == 0 || g->tile_height == 0 || tile_x0 > x0 || tile_y0 > y0 ||
        x0 - tile_x0 >= g->tile_width || y0 - tile_y0 >= g->tile_height)
        return cogpu_fail(error, COGPU_CORRUPT, "JPEG 2000 stream: its tiles miss its image");
    g->tiles = divide_up(x1 - tile_x0, g->tile_width) * divide_up(y1 - tile_y0, g->tile_height);
    g->tile_width = g->tile_width < format->width ? g->tile_width : format->width;
    g->tile_height = g->tile_height < format->height ? g->tile_height : format->height;
    return check_components(format, siz + SIZ_BYTES, error);
}

static cogpu_status too_many(cogpu_error *error) {
    return cogpu_fail(error, COGPU_CORRUPT,
                      "JPEG 2000 stream: so few bytes cannot hold so many tiles, precincts and "
                      "code blocks");
}

/* How many parts of 2^exponent pixels a side has. */
static uint64_t parts_of(uint32_t side, uint32_t exponent) {
    return (uint64_t)(side >> exponent) + 1;
}

/* The memory that one coding style makes the library take for a component of a tile, from the
 * number of decomposition levels on. */
static uint64_t style_cost(geometry *g, const uint8_t *style, bool has_precincts) {
    uint32_t levels = style[0], wide = (style[1] & 0xFu) + 2, high = (style[2] & 0xFu) + 2;
    uint64_t cost = 0;
    g->levels = g->levels > levels ? g->levels : levels;
    for (uint32_t r = 0; r <= levels; r++) {
        uint32_t down = levels - r;
        uint32_t px = has_precincts ? style[5 + r] & 0xFu : PRECINCT_WHOLE;
        uint32_t py = has_precincts ? style[5 + r] >> 4 : PRECINCT_WHOLE;
        uint32_t width = down < 32 ? g->tile_width >> down : 0;
        uint32_t height = down < 32 ? g->tile_height >> down : 0;
        uint64_t precincts = parts_of(width, px) * parts_of(height, py);
        uint32_t bx = wide < px ? wide : px, by = high < py ? high : py;
        /* Above the lowest resolution a precinct spans half as many coefficients of a band. */
        bx -= r > 0 && bx == px && bx > 0;
        by -= r > 0 && by == py && by > 0;
        uint64_t blocks = parts_of(width, bx) * parts_of(height, by);
        g->precincts = g->precincts > precincts ? g->precincts : precincts;
        cost += precincts * PRECINCT_COST + blocks * BLOCK_COST;
    }
    return cost;
}

/* The library notes of each packet whether it was there: two bytes a layer, level, component and
 * precinct. */
static bool packets_fit(const geometry *g) {
    uint64_t packets = 0;
    return checked_mul((g->layers + 1) * (g->levels + 1), g->precincts, &packets) &&
           checked_mul(packets, 2 * (uint64_t)g->components, &packets) && packets <= g->limit;
}

/* COD or COC, from the length field on. A style of the main header holds for all tiles, which are
 * decoded one at a time. */
static cogpu_status add_style(const uint8_t *segment, size_t bytes, bool is_component, geometry *g,
                              cogpu_error *error) {
    size_t wide = g->components > 256, head = is_component ? 3 + wide : 7;
    if (bytes < (is_component ? COC_BYTES + wide : COD_BYTES))
        return cut_off(error);
    bool has_precincts = segment[is_component ? head : 2] & STYLE_PRECINCTS;
    const uint8_t *style = segment + head + is_component;
    size_t left = bytes - head - is_component;
    if (style[0] > LEVELS_MAX || left < 5u + (has_precincts ? style[0] + 1u : 0))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "JPEG 2000 stream: a coding style of %u levels is cut off or too deep",
                          style[0]);
    if (!is_component && load_u16(segment + 4, true) > g->layers)
        g->layers = load_u16(segment + 4, true);
    uint64_t cost = style_cost(g, style, has_precincts);
    if (!checked_mul(cost, is_component ? 1 : g->components, &cost) ||
        !checked_add(cost, g->held, &g->held) || g->held > g->limit || !packets_fit(g))
        return too_many(error);
    return COGPU_OK;
}

/* The segments from `at` to the marker `last`, which the next byte read belongs to. */
static cogpu_status check_segments(const uint8_t *stream, size_t bytes, size_t *at, uint32_t last,
                                   geometry *g, cogpu_error *error) {
    for (;;) {
        if (bytes - *at < 4)
            return cut_off(error);
        uint32_t marker = load_u16(stream + *at, true), length = load_u16(stream + *at + 2, true);
        if (marker == last)
            return COGPU_OK;
        if (marker < 0xFF00 || length < 2 || length > bytes - *at - 2)
            return cut_off(error);
        const uint8_t *segment = stream + *at + 2;
        if (marker == MARKER_COD || marker == MARKER_COC)
            TRY(add_style(segment, length, marker == MARKER_COC, g, error));
        *at += 2 + (size_t)length;
    }
}

/* Each part of a tile begins with a header that may change the coding style. */
static cogpu_status check_tile_parts(const uint8_t *stream, size_t bytes, size_t at, geometry *g,
                                     cogpu_error *error) {
    while (bytes - at >= 2 + SOT_BYTES && load_u16(stream + at, true) == MARKER_SOT) {
        uint32_t length = load_u32(stream + at + 6, true);
        size_t inside = at + 2 + SOT_BYTES;
        TRY(check_segments(stream, bytes, &inside, MARKER_SOD, g, error));
        if (length == 0 || length > bytes - at || length < inside - at)
            break; /* the last one, or one that the library refuses */
        at += length;
    }
    return COGPU_OK;
}

cogpu_status cogpu_jpeg2000_check(const cogpu_block_format *format, const uint8_t *stream,
                                  size_t bytes, cogpu_error *error) {
    size_t at = 4;
    geometry g = {.limit = HELD_BASE + (uint64_t)bytes * HELD_PER_BYTE};
    if (bytes < at + SIZ_BYTES)
        return cut_off(error);
    size_t length = load_u16(stream + at, true);
    TRY(check_size(format, stream + at, length < bytes - at ? length : bytes - at, &g, error));
    uint64_t each = TILE_COST + (uint64_t)TILE_COMPONENT_COST * g.components;
    if (g.tiles > g.limit / each)
        return too_many(error);
    g.held = g.tiles * each;
    at += length;
    if (at > bytes)
        return cut_off(error);
    TRY(check_segments(stream, bytes, &at, MARKER_SOT, &g, error));
    return check_tile_parts(stream, bytes, at, &g, error);
}
