/*
 * Files whose blocks and overviews are made elsewhere, window by window and block by block: of any
 * profile they have the bytes of the file that is pushed. A number as argument draws other ones.
 */
#include "cogpu_distributed.h"

#include "support/draw.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>

enum { SIDE = 150, SAMPLE = 16, BANDS = 4 };

static cogpu_error error;

static bool is_good(cogpu_status status) {
    if (status != COGPU_OK)
        printf("failed: %s\n", error.message);
    return status == COGPU_OK;
}

/* ---- profiles by chance -------------------------------------------------------------------- */

#define ANY(list) list[draw(sizeof list / sizeof *list)]

static void draw_blocks(cogpu_profile *profile) {
    static const uint32_t sides[] = {16, 16, 32, 48};
    profile->cog = draw(2) != 0;
    profile->strips = !profile->cog && draw(3) == 0;
    profile->block_width = profile->strips ? 0 : ANY(sides);
    profile->block_height = profile->strips ? 1 + draw(40) : ANY(sides);
    profile->interleave = draw(3) == 0;
}

static void draw_overviews(cogpu_profile *profile) {
    static const uint32_t powers[] = {2, 4, 8}, odd[] = {3, 5}, steep[] = {7, 8, 40};
    static const uint32_t *const lists[] = {powers, odd, steep};
    static const uint32_t counts[] = {3, 2, 3};
    const uint32_t list = draw(4);
    profile->overviews = list < 3 ? COGPU_OVERVIEWS_LISTED : COGPU_OVERVIEWS_AUTO;
    profile->overview_factors = list < 3 ? lists[list] : NULL;
    profile->overview_factor_count = list < 3 ? counts[list] : 0;
    profile->resampling = (cogpu_resampling)draw(COGPU_RESAMPLE_MEDIAN + 1);
}

static void draw_codec(cogpu_profile *profile) {
    static const char *const codecs[] = {"none", "packbits", "lzw",  "deflate",     "zstd",
                                         "lzma", "jpeg",     "webp", "lerc_deflate"};
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_F32,
                                       COGPU_TYPE_F64};
    profile->codec = ANY(codecs);
    profile->type = draw(2) ? ANY(types) : (cogpu_type)(1 + draw(COGPU_TYPE_CF64));
    if (draw(6) == 0)
        profile->bits = profile->type == COGPU_TYPE_U8 ? 1 + draw(7) : 9 + draw(7);
}

/* Many of them cannot be written. */
static cogpu_profile draw_profile(void) {
    static const char *const nodata[] = {NULL, NULL, "0", "5", "-9999", "nan"};
    static uint16_t palette[3 * 256];
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = 1 + draw(SIDE),
                             .height = 1 + draw(SIDE),
                             .bands = 1 + draw(BANDS),
                             .nodata = ANY(nodata),
                             .nan_is_nodata = draw(2) != 0,
                             .sparse = draw(2) != 0,
                             .mask = draw(3) == 0};
    draw_codec(&profile);
    draw_blocks(&profile);
    draw_overviews(&profile);
    if (draw(3) == 0)
        profile.alpha_band = profile.bands;
    if (draw(8) == 0) {
        profile.palette = palette;
        profile.palette_entries = 256;
        profile.photometric = COGPU_PHOTOMETRIC_PALETTE;
    }
    return profile;
}

/* ---- pixels -------------------------------------------------------------------------------- */

/* A level: all bands one after the other. */
struct level {
    uint32_t width, height;
    uint8_t *pixels, *mask;
};

static uint16_t half_of(double value) {
    int exponent = 0;
    double mantissa = frexp(fabs(value), &exponent);
    if (isnan(value))
        return 0x7E00;
    uint32_t bits =
        value == 0 ? 0 : (uint32_t)(exponent + 14) << 10 | ((uint32_t)(mantissa * 2048) & 1023);
    return (uint16_t)(bits | (value < 0 ? 0x8000u : 0));
}

static void store(cogpu_type type, double value, uint8_t *to) {
    const int64_t whole = isnan(value) ? 0 : (int64_t)value;
    const float narrow = (float)value;
    const uint16_t half = half_of(value);
    const size_t size = cogpu_type_bytes(type);
    switch (type) {
    case COGPU_TYPE_F16:
        memcpy(to, &half, sizeof half);
        break;
    case COGPU_TYPE_F32:
    case COGPU_TYPE_CF32:
        for (size_t at = 0; at < size; at += sizeof narrow)
            memcpy(to + at, &narrow, sizeof narrow);
        break;
    case COGPU_TYPE_F64:
    case COGPU_TYPE_CF64:
        for (size_t at = 0; at < size; at += sizeof value)
            memcpy(to + at, &value, sizeof value);
        break;
    default: /* little endian, as all that tests run on */
        memcpy(to, &whole, size < sizeof whole ? size : sizeof whole);
        break;
    }
}

/* Values that come often, so that many are the same; places that are one value throughout, nodata
 * and NaN among them. */
static double value_at(const cogpu_profile *profile, uint32_t y, uint32_t x, uint32_t band) {
    static const double places[] = {0, 5, -9999, NAN, 7};
    const uint32_t place = (x / 40 + 3 * (y / 30) + profile->width) % 8;
    if (place < 5)
        return places[place];
    return draw(9) == 0 ? NAN : (double)(draw(12) + band * (x / 4) % 250);
}

static void fill_level(const cogpu_profile *profile, const struct level *level) {
    const size_t size = cogpu_type_bytes(profile->type);
    uint8_t *at = level->pixels;
    for (uint32_t band = 0; band < profile->bands; band++)
        for (uint32_t y = 0; y < level->height; y++)
            for (uint32_t x = 0; x < level->width; x++, at += size) {
                memset(at, 0, size);
                store(profile->type, value_at(profile, y, x, band), at);
            }
    for (uint32_t i = 0; i < level->width * level->height; i++)
        level->mask[i] = draw(4) == 0 || i / level->width % 50 < 17 ? 0 : (uint8_t)(1 + draw(255));
}

static struct level open_level(const cogpu_profile *profile, uint32_t width, uint32_t height) {
    const size_t pixels = (size_t)width * height;
    return (struct level){.width = width,
                          .height = height,
                          .pixels =
                              malloc(pixels * profile->bands * cogpu_type_bytes(profile->type)),
                          .mask = malloc(pixels)};
}

static void close_level(struct level *level) {
    free(level->pixels);
    free(level->mask);
}

/* ---- windows ------------------------------------------------------------------------------- */

/* Bands `first` and on, of a window: in memory of their own, in either order. */
static cogpu_raster open_raster(cogpu_type type, uint32_t bands, const cogpu_window *window) {
    const int64_t size = (int64_t)cogpu_type_bytes(type);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = type,
                           .bands = bands,
                           .width = window->width,
                           .height = window->height};
    raster.data = malloc((size_t)size * bands * window->width * window->height);
    raster.stride_x = size;
    raster.stride_y = size * window->width;
    raster.stride_band = raster.stride_y * window->height;
    if (draw(2)) {
        raster.stride_x = size * bands;
        raster.stride_y = raster.stride_x * window->width;
        raster.stride_band = size;
    }
    return raster;
}

/* Between a window of a level's samples and a raster. */
static void move(const struct level *level, uint8_t *samples, uint32_t first,
                 const cogpu_window *window, const cogpu_raster *raster, bool is_back) {
    const size_t size = cogpu_type_bytes(raster->type);
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < window->height; y++)
            for (uint32_t x = 0; x < window->width; x++) {
                uint8_t *there = (uint8_t *)raster->data + b * raster->stride_band +
                                 y * raster->stride_y + x * raster->stride_x;
                size_t row = (size_t)(first + b) * level->height + window->y + y;
                uint8_t *here = samples + (row * level->width + window->x + x) * size;
                memcpy(is_back ? here : there, is_back ? there : here, size);
            }
}

static cogpu_raster cut(const struct level *level, uint8_t *samples, cogpu_type type,
                        uint32_t first, uint32_t bands, const cogpu_window *window) {
    cogpu_raster raster = open_raster(type, bands, window);
    move(level, samples, first, window, &raster, false);
    return raster;
}

static void make_window(const cogpu_profile *profile, uint32_t number, const struct level *levels,
                        const cogpu_window *window) {
    const struct level *before = &levels[number - 1], *level = &levels[number];
    cogpu_window needs = COGPU_WINDOW_INIT;
    CHECK(is_good(cogpu_overview_source_window(profile, number, window, &needs, &error)));
    CHECK(needs.width > 0 && needs.x + needs.width <= before->width);
    CHECK(needs.height > 0 && needs.y + needs.height <= before->height);
    cogpu_raster from = cut(before, before->pixels, profile->type, 0, profile->bands, &needs);
    cogpu_raster from_mask = cut(before, before->mask, COGPU_TYPE_U8, 0, 1, &needs);
    cogpu_raster to = open_raster(profile->type, profile->bands, window);
    cogpu_raster to_mask = open_raster(COGPU_TYPE_U8, 1, window);
    CHECK(is_good(cogpu_overview_compute(profile, number, window, &from,
                                         profile->mask ? &from_mask : NULL, &to,
                                         profile->mask ? &to_mask : NULL, &error)));
    move(level, level->pixels, 0, window, &to, true);
    if (profile->mask)
        move(level, level->mask, 0, window, &to_mask, true);
    free(from.data);
    free(from_mask.data);
    free(to.data);
    free(to_mask.data);
}

/* In windows that are as blocks, or of any size. */
static void make_level(const cogpu_profile *profile, uint32_t number,
                       const cogpu_level_layout *outline, struct level *levels) {
    const bool is_grid = draw(2) != 0;
    const uint32_t width = is_grid ? outline->block_width : 1 + draw(outline->width);
    const uint32_t height = is_grid ? outline->block_height : 1 + draw(outline->height);
    levels[number] = open_level(profile, outline->width, outline->height);
    for (uint32_t y = 0; y < outline->height; y += height)
        for (uint32_t x = 0; x < outline->width; x += width) {
            const cogpu_window window = {
                sizeof(cogpu_window), x, y, width < outline->width - x ? width : outline->width - x,
                height < outline->height - y ? height : outline->height - y};
            make_window(profile, number, levels, &window);
        }
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* A block of a level, by its index in the directory. */
static cogpu_memory encode(const cogpu_profile *profile, uint32_t number, cogpu_content part,
                           uint64_t index, const cogpu_level_layout *outline,
                           const struct level *level) {
    const uint32_t across = (outline->width + outline->block_width - 1) / outline->block_width;
    const uint32_t down = (outline->height + outline->block_height - 1) / outline->block_height;
    const uint32_t plane = (uint32_t)(index / ((uint64_t)across * down));
    const uint32_t rest = (uint32_t)(index % ((uint64_t)across * down));
    cogpu_window window = {sizeof(cogpu_window), rest % across * outline->block_width,
                           rest / across * outline->block_height, outline->block_width,
                           outline->block_height};
    cogpu_memory encoded = COGPU_MEMORY_INIT;
    if (window.width > outline->width - window.x)
        window.width = outline->width - window.x;
    if (window.height > outline->height - window.y)
        window.height = outline->height - window.y;
    cogpu_raster pixels = part == COGPU_CONTENT_MASK
                              ? cut(level, level->mask, COGPU_TYPE_U8, 0, 1, &window)
                              : cut(level, level->pixels, profile->type, plane,
                                    profile->interleave ? 1 : profile->bands, &window);
    CHECK(is_good(cogpu_encode_block(profile, number, part, index, &pixels, &encoded, &error)));
    free(pixels.data);
    return encoded;
}

/* `stays`: where blocks go of which the writer is told no more than their sizes; or NULL. */
static void put(cogpu_writer *writer, const cogpu_profile *profile, uint32_t number,
                cogpu_content part, uint64_t blocks, const cogpu_level_layout *outline,
                const struct level *level, cogpu_memory *stays) {
    for (uint64_t i = blocks; i-- > 0;) {
        cogpu_memory encoded = encode(profile, number, part, i, outline, level);
        const void *given = stays ? NULL : encoded.data;
        CHECK(is_good(
            cogpu_writer_write_block(writer, number, part, i, given, encoded.bytes, &error)));
        if (stays)
            stays[i] = encoded;
        else
            cogpu_memory_free(&encoded);
    }
}

static uint64_t mask_blocks(const cogpu_profile *profile, const cogpu_level_layout *outline) {
    return outline->blocks / (profile->interleave ? profile->bands : 1);
}

static void put_level(cogpu_writer *writer, const cogpu_profile *profile, uint32_t number,
                      const struct level *levels, cogpu_memory *stays) {
    cogpu_level_layout outline = COGPU_LEVEL_LAYOUT_INIT;
    CHECK(is_good(cogpu_profile_level_layout(profile, number, &outline, &error)));
    put(writer, profile, number, COGPU_CONTENT_PIXELS, outline.blocks, &outline, &levels[number],
        stays);
    if (profile->mask)
        put(writer, profile, number, COGPU_CONTENT_MASK, mask_blocks(profile, &outline), &outline,
            &levels[number], stays ? stays + outline.blocks : NULL);
}

static void test_nothing_is_put_around_nothing(void) {
    uint8_t framed[COGPU_COG_BLOCK_OVERHEAD + 3] = {0};
    const uint8_t clear[sizeof framed] = {0};
    cogpu_cog_add_leader_trailer(NULL, 0, framed);
    CHECK(memcmp(framed, clear, sizeof framed) == 0);
    cogpu_cog_add_leader_trailer("abc", 3, framed);
    CHECK(memcmp(framed, "\3\0\0\0abcabc\0", sizeof framed) == 0);
}

static void append_framed(cogpu_memory *file, cogpu_memory *block) {
    const size_t bytes = block->bytes ? block->bytes + COGPU_COG_BLOCK_OVERHEAD : 0;
    file->data = realloc(file->data, file->bytes + bytes + 1);
    cogpu_cog_add_leader_trailer(block->data, block->bytes, (uint8_t *)file->data + file->bytes);
    file->bytes += bytes;
    cogpu_memory_free(block);
}

/* Level 0 behind a file that ends where it begins. */
static void append_level(const cogpu_profile *profile, cogpu_memory *file, cogpu_memory *blocks) {
    cogpu_level_layout outline = COGPU_LEVEL_LAYOUT_INIT;
    CHECK(is_good(cogpu_profile_level_layout(profile, 0, &outline, &error)));
    const uint64_t tiles = mask_blocks(profile, &outline);
    const size_t before = file->bytes;
    for (uint64_t tile = 0; tile < tiles; tile++)
        for (uint64_t i = tile; i < outline.blocks + (profile->mask ? tiles : 0); i += tiles)
            append_framed(file, &blocks[i]);
    CHECK(file->bytes - before <= outline.max_bytes);
}

/* Whether level 0 stays there. */
static cogpu_memory made_elsewhere(const cogpu_profile *profile, struct level *levels, bool stays) {
    static cogpu_memory blocks[(SIDE / 16 + 1) * (SIDE / 16 + 1) * (BANDS + 1)];
    cogpu_memory file = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    cogpu_written written = COGPU_WRITTEN_INIT;
    cogpu_level_layout outline = {.struct_size = sizeof(cogpu_level_layout), .levels = 1};
    uint32_t made = 1;
    for (; made < outline.levels || made == 1; made++) {
        if (cogpu_profile_level_layout(profile, made, &outline, &error) != COGPU_OK)
            break;
        make_level(profile, made, &outline, levels);
    }
    CHECK(cogpu_profile_level_layout(profile, made, &outline, &error) == COGPU_NOT_FOUND);
    CHECK(
        is_good(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &file},
                                  profile, &writer, &error)));
    for (uint32_t i = 0; i < made; i++)
        put_level(writer, profile, i, levels, stays && i == 0 ? blocks : NULL);
    CHECK(is_good(cogpu_writer_close(writer, &written, &error)));
    if (stays)
        append_level(profile, &file, blocks);
    CHECK(written.bytes == file.bytes);
    for (uint32_t i = 1; i < made; i++)
        close_level(&levels[i]);
    return file;
}

/* ---- the same file ------------------------------------------------------------------------- */

static cogpu_status push(const cogpu_profile *profile, const struct level *level,
                         cogpu_memory *file) {
    const cogpu_raster pixels = {.struct_size = sizeof(cogpu_raster),
                                 .data = level->pixels,
                                 .type = profile->type,
                                 .bands = profile->bands,
                                 .width = level->width,
                                 .height = level->height};
    const cogpu_raster mask = {.struct_size = sizeof(cogpu_raster),
                               .data = level->mask,
                               .type = COGPU_TYPE_U8,
                               .bands = 1,
                               .width = level->width,
                               .height = level->height};
    return cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = file}, profile,
                       &pixels, profile->mask ? &mask : NULL, NULL, &error);
}

static void print_profile(const cogpu_profile *profile) {
    printf("%u x %u x %u %s, %s, %s%s%s, blocks of %u x %u, resampling %d, %u factors, nodata "
           "%s%s%s%s, alpha %u, bits %u\n",
           profile->bands, profile->height, profile->width, cogpu_type_name(profile->type),
           profile->codec,
           profile->cog      ? "cog"
           : profile->strips ? "strips"
                             : "tiles",
           profile->interleave ? ", planar" : "", profile->palette ? ", palette" : "",
           profile->block_height, profile->block_width, (int)profile->resampling,
           profile->overview_factor_count, profile->nodata ? profile->nodata : "none",
           profile->nan_is_nodata ? " for NaN" : "", profile->sparse ? ", sparse" : "",
           profile->mask ? ", mask" : "", profile->alpha_band, profile->bits);
}

/* False where the profile is none that can be written. */
static bool try_profile(const cogpu_profile *profile) {
    struct level levels[32] = {open_level(profile, profile->width, profile->height)};
    cogpu_memory pushed = COGPU_MEMORY_INIT;
    fill_level(profile, &levels[0]);
    bool is_written = push(profile, &levels[0], &pushed) == COGPU_OK;
    if (is_written) {
        cogpu_memory made = made_elsewhere(profile, levels, profile->cog && draw(2));
        bool is_same =
            made.bytes == pushed.bytes && memcmp(made.data, pushed.data, made.bytes) == 0;
        CHECK(is_same);
        if (!is_same)
            print_profile(profile);
        cogpu_memory_free(&made);
    }
    cogpu_memory_free(&pushed);
    close_level(&levels[0]);
    return is_written;
}

static void test_bytes_of_the_file_that_is_pushed(void) {
    enum { FILES = 200 };
    cogpu_context *context = NULL;
    CHECK(is_good(cogpu_context_open(
        &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .threads = 2},
        &context, &error)));
    for (uint32_t files = 0; files < FILES;) {
        cogpu_profile profile = draw_profile();
        profile.threads = 1;
        profile.context = draw(2) ? context : NULL;
        files += try_profile(&profile);
    }
    cogpu_context_close(context);
}

/* ---- the outline, and what is refused ------------------------------------------------------ */

static void test_outline_is_that_of_the_file(void) {
    for (uint32_t files = 0; files < 20;) {
        cogpu_profile profile = draw_profile();
        struct level level = open_level(&profile, profile.width, profile.height);
        cogpu_memory memory = COGPU_MEMORY_INIT;
        cogpu_file *file = NULL;
        cogpu_level found = COGPU_LEVEL_INIT;
        cogpu_level_layout outline = {.struct_size = sizeof(cogpu_level_layout), .levels = 1};
        fill_level(&profile, &level);
        profile.threads = 1;
        bool is_written = push(&profile, &level, &memory) == COGPU_OK;
        CHECK(!is_written ||
              is_good(cogpu_open_memory(memory.data, memory.bytes, NULL, &file, &error)));
        for (uint32_t i = 0; is_written && i < outline.levels; i++) {
            CHECK(is_good(cogpu_level_info(file, 0, i, &found, &error)));
            CHECK(is_good(cogpu_profile_level_layout(&profile, i, &outline, &error)));
            CHECK(outline.width == found.width && outline.height == found.height);
            CHECK(outline.block_width == found.block_width && outline.blocks == found.blocks);
            CHECK(outline.block_height == found.block_height);
        }
        CHECK(!is_written || cogpu_level_info(file, 0, outline.levels, &found, NULL) != COGPU_OK);
        files += is_written;
        cogpu_close(file);
        cogpu_memory_free(&memory);
        close_level(&level);
    }
}

static const cogpu_profile simple = {.struct_size = sizeof(cogpu_profile),
                                     .width = 50,
                                     .height = 40,
                                     .bands = 2,
                                     .type = COGPU_TYPE_U8,
                                     .cog = 1,
                                     .block_width = 16,
                                     .block_height = 16};

static cogpu_status needs_of(const cogpu_profile *profile, uint32_t level, cogpu_window window) {
    cogpu_window needs = COGPU_WINDOW_INIT;
    return cogpu_overview_source_window(profile, level, &window, &needs, &error);
}

static void test_invalid_windows(void) {
    cogpu_profile wrong = simple;
    wrong.alpha_band = 3;
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 25, 20}) == COGPU_OK);
    CHECK(needs_of(&simple, 0, (cogpu_window){sizeof(cogpu_window), 0, 0, 25, 20}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK_TEXT(error.message, "level 0 is no overview: the profile has 2, from level 1 on");
    CHECK(needs_of(&simple, 3, (cogpu_window){sizeof(cogpu_window), 0, 0, 1, 1}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 26, 20}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 25, 21}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 0, 20}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 25, 0}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 25, 0, 1, 1}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 0, 20, 1, 1}) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(
        needs_of(&simple, 1, (cogpu_window){sizeof(cogpu_window), 2, 2, UINT32_MAX, UINT32_MAX}) ==
        COGPU_INVALID_ARGUMENT);
    CHECK(needs_of(&wrong, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 1, 1}) ==
          COGPU_INVALID_ARGUMENT);
    wrong = simple;
    wrong.type = COGPU_TYPE_CI16;
    wrong.resampling = COGPU_RESAMPLE_AVERAGE;
    CHECK(needs_of(&wrong, 1, (cogpu_window){sizeof(cogpu_window), 0, 0, 1, 1}) ==
          COGPU_UNSUPPORTED);
}

static cogpu_status make_of(const cogpu_profile *profile, const cogpu_raster *from,
                            const cogpu_raster *mask, cogpu_raster *to, cogpu_raster *to_mask) {
    return cogpu_overview_compute(profile, 1, &(cogpu_window){sizeof(cogpu_window), 1, 1, 5, 4},
                                  from, mask, to, to_mask, &error);
}

/* What a put of one block comes to behind that of another. */
static cogpu_status put_two(const cogpu_profile *profile, const void *first, uint32_t level,
                            const void *second) {
    cogpu_memory file = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    CHECK(
        is_good(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &file},
                                  profile, &writer, &error)));
    CHECK(is_good(cogpu_writer_write_block(writer, 0, COGPU_CONTENT_PIXELS, 1, first, 9, &error)));
    cogpu_status status =
        cogpu_writer_write_block(writer, level, COGPU_CONTENT_PIXELS, 0, second, 9, &error);
    cogpu_writer_abort(writer);
    return status;
}

static void test_blocks_that_cannot_stay_elsewhere(void) {
    static const uint8_t bytes[9];
    cogpu_profile plain = simple;
    plain.cog = 0;
    CHECK(put_two(&simple, NULL, 0, NULL) == COGPU_OK);
    CHECK(put_two(&simple, NULL, 1, bytes) == COGPU_OK);
    CHECK(put_two(&simple, NULL, 1, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK_TEXT(error.message, "only blocks of level 0 of a COG may stay elsewhere: those of level "
                              "1 of this COG need their bytes");
    CHECK(put_two(&simple, NULL, 0, bytes) == COGPU_INVALID_ARGUMENT);
    CHECK_TEXT(error.message, "some blocks of level 0 came with their bytes and others stay "
                              "elsewhere: all of them, or none");
    CHECK(put_two(&simple, bytes, 0, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(put_two(&plain, bytes, 0, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK_TEXT(error.message, "only blocks of level 0 of a COG may stay elsewhere: those of level "
                              "0 of this file, which is none, need their bytes");
}

static void test_rasters_that_do_not_fit(void) {
    uint8_t pixels[2 * 10 * 8], made[2 * 5 * 4];
    cogpu_raster from = {.struct_size = sizeof(cogpu_raster),
                         .data = pixels,
                         .type = COGPU_TYPE_U8,
                         .bands = 2,
                         .width = 10,
                         .height = 8};
    cogpu_raster to = {.struct_size = sizeof(cogpu_raster),
                       .data = made,
                       .type = COGPU_TYPE_U8,
                       .bands = 2,
                       .width = 5,
                       .height = 4};
    cogpu_raster bad[] = {from, from, from, from, from, from};
    cogpu_profile masked = simple;
    masked.mask = 1;
    memset(pixels, 9, sizeof pixels);
    CHECK(is_good(make_of(&simple, &from, NULL, &to, NULL)) && made[0] == 9 && made[39] == 9);
    bad[0].width = 11;
    bad[1].height = 7;
    bad[2].bands = 1;
    bad[3].type = COGPU_TYPE_I8;
    bad[4].data = NULL;
    bad[5].device = COGPU_DEVICE_EMULATOR;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(make_of(&simple, &bad[i], NULL, &to, NULL) == COGPU_INVALID_ARGUMENT);
    to.width = 4;
    CHECK(make_of(&simple, &from, NULL, &to, NULL) == COGPU_INVALID_ARGUMENT);
    to.width = 5;
    CHECK(make_of(&simple, &from, &from, &to, &to) == COGPU_INVALID_ARGUMENT);
    CHECK(make_of(&masked, &from, NULL, &to, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(make_of(&masked, &from, &from, &to, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(make_of(&simple, NULL, NULL, &to, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(make_of(&simple, &from, NULL, NULL, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(make_of(NULL, &from, NULL, &to, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_profile_level_layout(&simple, 0, NULL, &error) == COGPU_INVALID_ARGUMENT);
}

/* ---- many threads -------------------------------------------------------------------------- */

/* Each makes the same overview, and encodes its first block, over and over. */
static void *work(void *argument) {
    const cogpu_profile *profile = argument;
    uint8_t pixels[2 * 50 * 40], made[2 * 25 * 20];
    cogpu_raster from = {.struct_size = sizeof(cogpu_raster),
                         .data = pixels,
                         .type = COGPU_TYPE_U8,
                         .bands = 2,
                         .width = 50,
                         .height = 40};
    cogpu_raster to = {.struct_size = sizeof(cogpu_raster),
                       .data = made,
                       .type = COGPU_TYPE_U8,
                       .bands = 2,
                       .width = 25,
                       .height = 20};
    const cogpu_window all = {sizeof(cogpu_window), 0, 0, 25, 20};
    cogpu_memory first = COGPU_MEMORY_INIT;
    cogpu_error failure;
    bool is_same = true;
    for (uint32_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * i >> 4);
    for (uint32_t i = 0; i < 20; i++) {
        cogpu_memory encoded = COGPU_MEMORY_INIT;
        is_same &= cogpu_overview_compute(profile, 1, &all, &from, NULL, &to, NULL, &failure) == 0;
        cogpu_raster block = to;
        block.stride_band = 25 * 20;
        block.stride_y = 25;
        block.stride_x = 1;
        block.width = block.height = 16;
        is_same &= cogpu_encode_block(profile, 1, COGPU_CONTENT_PIXELS, 0, &block, &encoded,
                                      &failure) == 0;
        if (i == 0) {
            first = encoded;
            continue;
        }
        is_same &=
            encoded.bytes == first.bytes && memcmp(encoded.data, first.data, first.bytes) == 0;
        cogpu_memory_free(&encoded);
    }
    cogpu_memory_free(&first);
    return is_same ? argument : NULL;
}

static void test_many_threads(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    cogpu_profile profile = simple;
    CHECK(is_good(cogpu_context_open(
        &(cogpu_context_options){.struct_size = sizeof(cogpu_context_options), .threads = 1},
        &profile.context, &error)));
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, &profile) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        CHECK(pthread_join(threads[i], &result) == 0 && result);
    }
    cogpu_context_close(profile.context);
}

TESTS(external_blocks) {
    draw_from(test_argc, test_argv);
    RUN(test_bytes_of_the_file_that_is_pushed);
    RUN(test_nothing_is_put_around_nothing);
    RUN(test_outline_is_that_of_the_file);
    RUN(test_invalid_windows);
    RUN(test_blocks_that_cannot_stay_elsewhere);
    RUN(test_rasters_that_do_not_fit);
    RUN(test_many_threads);
    return FINISH();
}
