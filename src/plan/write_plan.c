/* Takes a profile, hands on levels, grids and encodings; refuses what no file can hold. */
#include "plan/write_plan.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

enum {
    TILE = 512,
    STRIP_BYTES = 256 << 10,
    USUAL_QUALITY = 75,
    AROUND_BLOCK = 8 /* leader and trailer */
};

/* TIFF's sides have 32 bits, but nobody reads more than these. */
#define SIDE_MAX  INT32_MAX
#define BANDS_MAX UINT16_MAX
/* Decoded bytes of a block, as readers take them by default. */
#define BLOCK_MAX (UINT64_C(1) << 30)

static bool is_float(cogpu_type type) {
    return type == COGPU_F16 || type == COGPU_F32 || type == COGPU_F64;
}

static bool is_complex(cogpu_type type) {
    return type >= COGPU_CI16;
}

/* ---- what is stored ------------------------------------------------------------------------ */

/* An enumeration of C may have any number. */
static cogpu_status check_choices(const cogpu_profile *profile, cogpu_error *error) {
    const struct {
        const char *field;
        int value, last;
    } choices[] = {{"resampling", (int)profile->resampling, COGPU_MEDIAN},
                   {"overviews", (int)profile->overviews, COGPU_OVERVIEWS_LISTED},
                   {"bigtiff", (int)profile->bigtiff, COGPU_BIGTIFF_NO}};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].value < 0 || choices[i].value > choices[i].last)
            return cogpu_fail(error, COGPU_ARGUMENT, "`%s` is %d: 0 to %d are there",
                              choices[i].field, choices[i].value, choices[i].last);
    return COGPU_OK;
}

static cogpu_status check_shape(const cogpu_profile *profile, cogpu_error *error) {
    if (cogpu_type_bytes(profile->type) == 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "the profile has no sample type: set `type`");
    if (profile->width == 0 || profile->height == 0 || profile->width > SIDE_MAX ||
        profile->height > SIDE_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "an image of %u x %u pixels cannot be written: sides go from 1 to %d",
                          profile->width, profile->height, SIDE_MAX);
    if (profile->bands == 0 || profile->bands > BANDS_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "%u bands cannot be written: 1 to %u can",
                          profile->bands, BANDS_MAX);
    return COGPU_OK;
}

/* Fewer bits than the type has; 0: all. */
static cogpu_status check_bits(const cogpu_profile *profile, uint32_t compression,
                               cogpu_error *error) {
    uint32_t bits = profile->bits, all = (uint32_t)cogpu_type_bytes(profile->type) * 8;
    bool is_byte = profile->type == COGPU_U8, is_short = profile->type == COGPU_U16;
    if (bits == 0 || bits == all)
        return COGPU_OK;
    if (!(is_byte && bits < 8) && !(is_short && bits > 8 && bits < 16))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%s cannot be stored in %u bits: uint8 can in 1 to 7, uint16 in 9 to 15",
                          cogpu_type_name(profile->type), bits);
    if (compression == COMPRESSION_JPEG || compression == COMPRESSION_WEBP ||
        compression == COMPRESSION_LERC)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "samples of %u bits are not for JPEG, WebP and LERC: leave `bits` out, "
                          "or choose another codec",
                          bits);
    if (profile->predictor > 1)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "predictor %d is not for samples of %u bits: leave it out, or `bits`",
                          profile->predictor, bits);
    return COGPU_OK;
}

static cogpu_status plan_codec(const cogpu_profile *profile, cogpu_write_plan *plan,
                               cogpu_error *error) {
    const char *name = profile->codec ? profile->codec : "deflate";
    uint32_t packing = strcmp(name, "lerc_deflate") == 0 ? 1
                       : strcmp(name, "lerc_zstd") == 0  ? 2
                                                         : 0;
    plan->codec = cogpu_codec_named(packing ? "lerc" : name);
    const cogpu_codec_row *codec = plan->codec;
    bool lacks_library = codec && !codec->decode && codec->library[0];
    if (lacks_library)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%s cannot be written: this build lacks %s",
                          name, codec->library);
    if (!codec || !codec->encoder)
        return cogpu_fail(error, codec ? COGPU_UNSUPPORTED : COGPU_ARGUMENT,
                          "%s `%.40s`: none, packbits, lzw, deflate, zstd, lzma, jpeg, webp, lerc, "
                          "lerc_deflate and lerc_zstd can be written",
                          codec ? "nothing here writes" : "there is no codec", name);
    plan->encoding.format.compression = plan->codec->compression;
    plan->encoding.format.lerc_packing = packing;
    return COGPU_OK;
}

/* What is lost, is as the caller asks: a number that the codec has no use for is a mistake. */
static cogpu_status check_losses(const cogpu_profile *profile, const cogpu_codec_row *codec,
                                 cogpu_error *error) {
    bool is_jpeg = codec->compression == COMPRESSION_JPEG;
    if (profile->quality && !is_jpeg && codec->compression != COMPRESSION_WEBP)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%s has no quality, JPEG and WebP have: leave `quality` out, or choose "
                          "one of these",
                          codec->name);
    if (profile->max_error > 0 && codec->compression != COMPRESSION_LERC)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%s takes no error, LERC does: leave `max_error` out, or choose lerc, "
                          "lerc_deflate or lerc_zstd",
                          codec->name);
    if (profile->lossless && is_jpeg)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "JPEG always loses something: leave `lossless` out, or choose another "
                          "codec");
    return COGPU_OK;
}

static cogpu_status plan_numbers(const cogpu_profile *profile, cogpu_write_plan *plan,
                                 cogpu_error *error) {
    const cogpu_codec_row *codec = plan->codec, *packer = codec;
    uint32_t packing = plan->encoding.format.lerc_packing;
    if (packing)
        packer = cogpu_codec_find(packing == 1 ? COMPRESSION_DEFLATE : COMPRESSION_ZSTD);
    const cogpu_encoder *encoder = packer->encoder;
    if (!encoder)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "this build cannot write %s", packer->name);
    int level = profile->level ? profile->level : encoder->usual_level;
    if (profile->level &&
        (profile->level < encoder->least_level || profile->level > encoder->most_level))
        return encoder->most_level
                   ? cogpu_fail(error, COGPU_ARGUMENT, "%s has levels from %d to %d, not %d",
                                packer->name, encoder->least_level, encoder->most_level,
                                profile->level)
                   : cogpu_fail(error, COGPU_ARGUMENT, "%s has no levels: leave `level` out",
                                packer->name);
    if (profile->quality < 0 || profile->quality > 100)
        return cogpu_fail(error, COGPU_ARGUMENT, "quality goes from 1 to 100, not %d",
                          profile->quality);
    if (!(profile->max_error >= 0 && profile->max_error <= 1e300))
        return cogpu_fail(error, COGPU_ARGUMENT, "`max_error` must be a number from 0 on");
    TRY(check_losses(profile, codec, error));
    plan->encoding.level = level;
    plan->encoding.quality = profile->quality ? profile->quality : USUAL_QUALITY;
    plan->encoding.lossless = profile->lossless;
    plan->encoding.max_error = profile->max_error;
    return COGPU_OK;
}

/* Types and bands that a codec takes. */
static cogpu_status check_codec(const cogpu_profile *profile, const cogpu_write_plan *plan,
                                cogpu_error *error) {
    uint32_t samples = profile->planar ? 1 : profile->bands;
    cogpu_type type = profile->type;
    switch (plan->codec->compression) {
    case COMPRESSION_JPEG:
        if (type != COGPU_U8)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "JPEG stores uint8, not %s: choose another "
                              "codec",
                              cogpu_type_name(type));
        if (samples != 1 && samples != 3 && samples != 4)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "JPEG stores 1, 3 or 4 bands side by side, not %u: set `planar`, or "
                              "choose another codec",
                              samples);
        return COGPU_OK;
    case COMPRESSION_WEBP:
        if (type != COGPU_U8 || (samples != 3 && samples != 4))
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "WebP stores 3 or 4 bands of uint8 side by side, not %u of %s: "
                              "choose another codec",
                              samples, cogpu_type_name(type));
        return COGPU_OK;
    case COMPRESSION_LERC:
        if (is_complex(type) || type == COGPU_F16 || type == COGPU_I64 || type == COGPU_U64)
            return cogpu_fail(error, COGPU_ARGUMENT, "LERC stores no %s: choose another codec",
                              cogpu_type_name(type));
        return COGPU_OK;
    default:
        return COGPU_OK;
    }
}

static cogpu_status plan_predictor(const cogpu_profile *profile, cogpu_write_plan *plan,
                                   cogpu_error *error) {
    bool takes_2 =
        plan->codec->takes_predictor && !is_complex(profile->type) && !cogpu_plan_is_packed(plan);
    bool takes_3 = takes_2 && is_float(profile->type);
    if (profile->predictor < 0 || profile->predictor > 3)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "there is no predictor %d: 1 is none, 2 horizontal, 3 for floats",
                          profile->predictor);
    if (profile->predictor > 1 && !plan->codec->takes_predictor)
        return cogpu_fail(error, COGPU_ARGUMENT, "%s goes with no predictor: leave `predictor` out",
                          plan->codec->name);
    if ((profile->predictor == 2 && !takes_2) || (profile->predictor == 3 && !takes_3))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "predictor %d is not for %s: leave `predictor` out for the one that fits",
                          profile->predictor, cogpu_type_name(profile->type));
    /* Threads of GDAL's read LZMA as if it never had one. */
    bool is_risky = plan->codec->compression == COMPRESSION_LZMA;
    uint32_t fitting = is_risky ? 1 : takes_3 ? 3 : takes_2 && !profile->palette ? 2 : 1;
    plan->predictor = profile->predictor ? (uint32_t)profile->predictor : fitting;
    return COGPU_OK;
}

/* ---- levels and their grids ---------------------------------------------------------------- */

/* The longest side of a block that a codec takes. */
static uint32_t longest_side(const cogpu_write_plan *plan) {
    enum { JPEG_SIDE = 65500, WEBP_SIDE = 16383 };
    uint32_t compression = plan->codec->compression;
    return compression == COMPRESSION_JPEG   ? JPEG_SIDE
           : compression == COMPRESSION_WEBP ? WEBP_SIDE
                                             : SIDE_MAX;
}

/* Strips of JPEG end where its squares do, subsampled ones too, but for the last one. */
static uint32_t rows_of_jpeg(const cogpu_write_plan *plan) {
    return plan->codec->compression == COMPRESSION_JPEG ? 16 : 1;
}

static uint32_t usual_strip(const cogpu_profile *profile, const cogpu_write_plan *plan) {
    uint64_t row_bytes = (uint64_t)profile->width * plan->pixel_bytes;
    uint64_t rows = row_bytes < STRIP_BYTES ? STRIP_BYTES / row_bytes : 1;
    uint32_t most = longest_side(plan), unit = rows_of_jpeg(plan);
    rows = rows < most ? rows : most;
    return rows < unit ? unit : (uint32_t)rows / unit * unit;
}

static cogpu_status plan_strip(const cogpu_profile *profile, const cogpu_write_plan *plan,
                               uint32_t *width, uint32_t *height, cogpu_error *error) {
    uint32_t unit = rows_of_jpeg(plan);
    if (profile->cog)
        return cogpu_fail(error, COGPU_ARGUMENT, "a COG has tiles: leave `strips` out");
    if (profile->block_width && profile->block_width != profile->width)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "strips are as wide as the image: leave `block_width` out");
    *width = profile->width;
    *height = profile->block_height ? profile->block_height : usual_strip(profile, plan);
    if (*height % unit && *height < profile->height)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "strips of JPEG have a multiple of %u rows, not %u", unit, *height);
    *height = *height < profile->height ? *height : profile->height;
    return COGPU_OK;
}

static uint32_t next_side(uint32_t side) {
    return side > UINT32_MAX - 15 ? UINT32_MAX - 15 : (side + 15) / 16 * 16;
}

/* Less than usual where many bands would make it too large. */
static uint32_t usual_tile(const cogpu_write_plan *plan) {
    uint32_t side = TILE;
    while (side > 16 && (uint64_t)side * side * plan->pixel_bytes > BLOCK_MAX)
        side /= 2;
    return side;
}

static cogpu_status plan_tile(const cogpu_profile *profile, const cogpu_write_plan *plan,
                              uint32_t *width, uint32_t *height, cogpu_error *error) {
    *width = profile->block_width ? profile->block_width : usual_tile(plan);
    *height = profile->block_height ? profile->block_height : *width;
    if (*width % 16 || *height % 16)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tiles of %u x %u are not possible: sides are multiples of 16, "
                          "for example %u x %u",
                          *width, *height, next_side(*width), next_side(*height));
    return COGPU_OK;
}

static cogpu_status plan_block_size(const cogpu_profile *profile, const cogpu_write_plan *plan,
                                    uint32_t *width, uint32_t *height, cogpu_error *error) {
    uint32_t most = longest_side(plan);
    uint64_t bytes = 0;
    TRY(plan->is_tiled ? plan_tile(profile, plan, width, height, error)
                       : plan_strip(profile, plan, width, height, error));
    if (*width > most || *height > most)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "a block of %u x %u pixels is too large for %s, whose sides end at %u: "
                          "choose smaller tiles",
                          *width, *height, plan->codec->name, most);
    if (!checked_mul((uint64_t)*width * plan->pixel_bytes, *height, &bytes) || bytes > BLOCK_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "blocks of %u x %u are too large, with %zu bytes a pixel: readers take 1 "
                          "GiB at most, so choose smaller ones",
                          *width, *height, plan->pixel_bytes);
    return COGPU_OK;
}

static cogpu_status add_level(cogpu_write_plan *plan, uint32_t width, uint32_t height,
                              uint32_t block_width, uint32_t block_height, cogpu_error *error) {
    if (plan->level_count == COGPU_LEVELS_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "more than %d overviews cannot be written",
                          COGPU_LEVELS_MAX - 1);
    cogpu_grid *grid = &plan->levels[plan->level_count++];
    *grid = (cogpu_grid){.width = width,
                         .height = height,
                         .block_width = plan->is_tiled ? block_width : width,
                         .block_height = block_height,
                         .down = (uint32_t)divide_up(height, block_height)};
    grid->across = (uint32_t)divide_up(width, grid->block_width);
    if ((uint64_t)grid->across * grid->down > INT32_MAX / plan->planes)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "%u x %u blocks of %u planes are too many: choose larger blocks",
                          grid->across, grid->down, plan->planes);
    return COGPU_OK;
}

static cogpu_status plan_listed(const cogpu_profile *profile, cogpu_write_plan *plan,
                                uint32_t block_width, uint32_t block_height, cogpu_error *error) {
    if (!profile->factors || profile->factor_count == 0)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "overviews are to be as listed, and none is: set `factors`");
    for (uint32_t i = 0, last = 1; i < profile->factor_count; last = profile->factors[i++]) {
        uint32_t factor = profile->factors[i];
        if (factor < 2)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "overview factors begin with 2: %u is none, leave it out", factor);
        if (factor <= last)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "overview factors must grow, as 2, 4, 8: %u follows %u", factor,
                              last);
        const cogpu_grid *before = &plan->levels[plan->level_count - 1];
        uint32_t width = (uint32_t)divide_up(profile->width, factor);
        uint32_t height = (uint32_t)divide_up(profile->height, factor);
        if (width == before->width && height == before->height)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "an overview by %u would be no smaller than the level before it, "
                              "%u x %u: leave it out",
                              factor, width, height);
        TRY(add_level(plan, width, height, block_width, block_height, error));
    }
    return COGPU_OK;
}

static cogpu_status plan_levels(const cogpu_profile *profile, cogpu_write_plan *plan,
                                cogpu_error *error) {
    uint32_t block_width = 0, block_height = 0;
    TRY(plan_block_size(profile, plan, &block_width, &block_height, error));
    TRY(add_level(plan, profile->width, profile->height, block_width, block_height, error));
    bool is_auto = profile->overviews == COGPU_OVERVIEWS_AUTO ||
                   (profile->overviews == COGPU_OVERVIEWS_DEFAULT && profile->cog);
    bool is_open = profile->overviews == COGPU_OVERVIEWS_DEFAULT;
    if (profile->overviews == COGPU_OVERVIEWS_LISTED || (is_open && profile->factor_count > 0))
        return plan_listed(profile, plan, block_width, block_height, error);
    for (uint32_t factor = 2; is_auto; factor *= 2) {
        const cogpu_grid *last = &plan->levels[plan->level_count - 1];
        uint32_t side = plan->is_tiled ? block_width : TILE;
        if (last->width <= side && last->height <= (plan->is_tiled ? block_height : TILE))
            break;
        TRY(add_level(plan, (uint32_t)divide_up(profile->width, factor),
                      (uint32_t)divide_up(profile->height, factor), block_width, block_height,
                      error));
    }
    return COGPU_OK;
}

/* ---- how large it may get ------------------------------------------------------------------ */

/* Pixels that nothing makes smaller. Cannot overflow, where the most that they take does not. */
static uint64_t least_of_level(const cogpu_write_plan *plan, const cogpu_grid *grid) {
    if (plan->is_sparse || plan->codec->compression != COMPRESSION_NONE)
        return 0;
    uint64_t rows = plan->is_tiled ? (uint64_t)grid->down * grid->block_height : grid->height;
    uint64_t columns = (uint64_t)grid->across * grid->block_width;
    uint64_t row_bytes =
        divide_up(columns * plan->encoding.format.samples * plan->encoding.format.bits, 8);
    return rows * row_bytes * plan->planes;
}

static cogpu_status plan_sizes(cogpu_write_plan *plan, cogpu_error *error) {
    for (uint32_t i = 0; i < plan->level_count; i++) {
        const cogpu_grid *grid = &plan->levels[i];
        cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, 0);
        uint64_t count = (uint64_t)grid->across * grid->down, bytes = 0, all = 0;
        for (uint32_t kind = 0; kind <= plan->has_mask; kind++) {
            size_t decoded = 0;
            block.plane = kind ? plan->planes : 0;
            cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, &block, &decoded);
            const cogpu_codec_row *codec = kind ? plan->mask_codec : plan->codec;
            uint64_t bound = codec->encoder->bound(&encoding, decoded);
            if (bound > UINT32_MAX)
                return cogpu_fail(error, COGPU_ARGUMENT,
                                  "a block may take more than 4 GiB: choose smaller ones");
            if (bound > plan->most_block_bytes)
                plan->most_block_bytes = bound;
            if (kind && bound > plan->most_mask_bytes)
                plan->most_mask_bytes = bound;
            bytes = (bound + AROUND_BLOCK) * (kind ? 1 : plan->planes);
            if (!checked_mul(bytes, count, &all) ||
                !checked_add(plan->most_bytes, all, &plan->most_bytes))
                return cogpu_fail(error, COGPU_ARGUMENT, "no file is large enough for this image");
        }
        plan->least_bytes += least_of_level(plan, grid);
    }
    return COGPU_OK;
}

/* Threads of GDAL's take blocks that are left out of such a file for 0. */
static bool is_misread_sparse(cogpu_type type, const cogpu_nodata *nodata) {
    return (type == COGPU_I64 && nodata->i64 != 0) || (type == COGPU_U64 && nodata->u64 != 0);
}

static void set_fill(const cogpu_profile *profile, cogpu_write_plan *plan) {
    cogpu_nodata nodata;
    cogpu_nodata_parse(profile->nodata, profile->type, &nodata);
    plan->has_nodata = profile->nodata && nodata.matches;
    plan->is_sparse = profile->sparse && !is_misread_sparse(profile->type, &nodata);
    if (plan->has_nodata)
        cogpu_nodata_sample(&nodata, profile->type, plan->fill);
    plan->replaces_nan = profile->nan_is_nodata && plan->has_nodata && is_float(profile->type) &&
                         !isnan(nodata.value);
}

cogpu_status cogpu_plan_write(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error) {
    TRY(check_choices(profile, error));
    TRY(check_shape(profile, error));
    *plan = (cogpu_write_plan){.bands = profile->bands,
                               .planes = profile->planar ? profile->bands : 1,
                               .type = profile->type,
                               .is_cog = profile->cog,
                               .is_tiled = !profile->strips,
                               .is_bigtiff = profile->bigtiff == COGPU_BIGTIFF_YES,
                               .has_mask = profile->mask,
                               .mask_codec = cogpu_codec_find(COMPRESSION_DEFLATE)};
    size_t sample = cogpu_type_bytes(profile->type);
    plan->pixel_bytes = profile->planar ? sample : sample * profile->bands;
    if (plan->has_mask && !plan->mask_codec->encoder)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "this build lacks libdeflate, which masks need");
    TRY(plan_codec(profile, plan, error));
    TRY(plan_numbers(profile, plan, error));
    TRY(check_codec(profile, plan, error));
    TRY(check_bits(profile, plan->codec->compression, error));
    cogpu_block_format *format = &plan->encoding.format;
    format->samples = profile->planar ? 1 : profile->bands;
    format->bits = profile->bits ? profile->bits : (uint32_t)sample * 8;
    format->type = profile->type;
    TRY(plan_predictor(profile, plan, error));
    TRY(plan_levels(profile, plan, error));
    format->fill_order = format->subsampling_x = format->subsampling_y = 1;
    set_fill(profile, plan);
    bool has_mean = !profile->palette && !is_complex(profile->type);
    plan->resampling = profile->resampling ? profile->resampling
                       : has_mean          ? COGPU_AVERAGE
                                           : COGPU_NEAREST;
    return plan_sizes(plan, error);
}

void cogpu_plan_set_photometric(cogpu_write_plan *plan, uint32_t photometric) {
    cogpu_block_format *format = &plan->encoding.format;
    format->photometric = photometric;
    bool shares_chroma = photometric == COGPU_YCBCR && plan->codec->compression == COMPRESSION_JPEG;
    format->subsampling_x = format->subsampling_y = shares_chroma ? 2 : 1;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

cogpu_new_block cogpu_plan_new_block(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                     uint32_t row, uint32_t column, uint32_t plane) {
    cogpu_new_block block = {.column = column, .row = row, .plane = plane};
    block.width = smaller(grid->block_width, grid->width - column * grid->block_width);
    block.height = smaller(grid->block_height, grid->height - row * grid->block_height);
    block.rows = plan->is_tiled ? grid->block_height : block.height;
    return block;
}

cogpu_encoding cogpu_plan_encoding(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                   const cogpu_new_block *block, size_t *decoded_bytes) {
    cogpu_encoding encoding = plan->encoding;
    cogpu_block_format *format = &encoding.format;
    format->width = grid->block_width;
    format->height = block->rows;
    format->row_bytes =
        (size_t)divide_up((uint64_t)grid->block_width * format->samples * format->bits, 8);
    encoding.nodata = plan->has_nodata ? plan->fill : NULL;
    if (block->plane == plan->planes) {
        format->compression = COMPRESSION_DEFLATE;
        format->samples = format->bits = 1;
        format->type = COGPU_U8;
        format->row_bytes = (size_t)divide_up(grid->block_width, 8);
        encoding.level = plan->mask_codec->encoder->usual_level;
    }
    *decoded_bytes = format->row_bytes * format->height;
    return encoding;
}

bool cogpu_plan_is_packed(const cogpu_write_plan *plan) {
    return plan->encoding.format.bits < 8 * cogpu_type_bytes(plan->type);
}

size_t cogpu_plan_cut_bytes(const cogpu_write_plan *plan, const cogpu_grid *grid,
                            const cogpu_new_block *block) {
    bool is_mask = block->plane == plan->planes;
    size_t row_bytes =
        is_mask ? (size_t)divide_up(grid->block_width, 8) : grid->block_width * plan->pixel_bytes;
    return row_bytes * block->rows;
}

uint64_t cogpu_plan_index(const cogpu_write_plan *plan, const cogpu_grid *grid,
                          const cogpu_new_block *block) {
    uint64_t index = (uint64_t)block->row * grid->across + block->column;
    bool is_mask = block->plane == plan->planes;
    return is_mask ? index : index + (uint64_t)block->plane * grid->across * grid->down;
}
