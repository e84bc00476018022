/*
 * LERC decoder (compression 34887) by the LERC library: one blob per block, possibly packed with
 * deflate or zstd (tag 50674).
 *
 * A blob of a hundred bytes may declare gigabytes, so its header is compared with the block before
 * anything is decoded. A block of n bands may be stored as a blob of n values per pixel; of n bands
 * of one value, as libtiff writes masks that differ between bands; or, with 8 bits, of n - 1 values
 * per pixel whose mask is the alpha band. Masked pixels become NaN in floats, as in GDAL, and
 * nodata in integers, where GDAL refuses the file.
 */
#include "base/checked.h"
#include "codec/codec.h"
#include "codec/lerc.h"

#include <string.h>

/* The fields that lerc_getBlobInfo fills. */
enum {
    INFO_VERSION,
    INFO_TYPE,
    INFO_DEPTH,
    INFO_WIDTH,
    INFO_HEIGHT,
    INFO_BANDS,
    INFO_VALID,
    INFO_BYTES,
    INFO_MASKS,
    INFO_DEPTH_AGAIN,
    INFO_USES_NODATA,
    INFO_FIELDS
};

/* A blob, its header checked, and the block it becomes. */
typedef struct blob {
    const uint8_t *in;
    size_t in_bytes;
    uint32_t type;
    size_t sample_bytes;
    size_t pixels;
    uint32_t depth, bands, masks; /* values a pixel, bands of the blob, masks of the blob */
    bool mask_is_alpha;
} blob;

/* Where a decode works: the unpacked blob, one byte of mask a sample, samples in the blob's order.
 */
typedef struct lerc_decode_buffers {
    uint8_t *unpacked;
    size_t unpacked_bytes;
    uint8_t *masks;
    uint8_t *samples;
} lerc_decode_buffers;

uint32_t cogpu_lerc_type(cogpu_type type) {
    switch (type) {
    case COGPU_TYPE_I8:
        return LERC_I8;
    case COGPU_TYPE_U8:
        return LERC_U8;
    case COGPU_TYPE_I16:
        return LERC_I16;
    case COGPU_TYPE_U16:
        return LERC_U16;
    case COGPU_TYPE_I32:
        return LERC_I32;
    case COGPU_TYPE_U32:
        return LERC_U32;
    case COGPU_TYPE_F32:
        return LERC_F32;
    case COGPU_TYPE_F64:
        return LERC_F64;
    default:
        return LERC_NONE;
    }
}

uint64_t cogpu_lerc_bound(const cogpu_block_format *format, uint64_t block_bytes) {
    uint64_t samples = block_bytes / cogpu_type_bytes(format->type);
    return block_bytes + samples / 4 + 1024 * (1 + (uint64_t)format->samples);
}

cogpu_status cogpu_lerc_explain(uint32_t result, cogpu_status otherwise, const char *reason,
                                cogpu_error *error) {
    if (result == 0)
        return COGPU_OK;
    if (result == COGPU_LERC_MEMORY)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "LERC: out of memory for a block");
    return cogpu_fail(error, otherwise, "%s (LERC status %u)", reason, result);
}

static cogpu_status allocate_decode_buffers(cogpu_codec_state *state,
                                            const cogpu_block_format *format, size_t block_bytes,
                                            lerc_decode_buffers *work, cogpu_error *error) {
    uint64_t mask_bytes = block_bytes / cogpu_type_bytes(format->type);
    uint64_t unpacked = format->lerc_packing != 0 ? cogpu_lerc_bound(format, block_bytes) : 0;
    uint64_t sample_bytes = format->samples > 1 ? block_bytes : 0, total = 0;
    if (!checked_add(unpacked, mask_bytes, &total) || !checked_add(total, sample_bytes, &total) ||
        total > SIZE_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED, "LERC: the block is too large");
    uint8_t *memory = cogpu_codec_work(state, (size_t)total);
    if (!memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "LERC: no memory for a block");
    work->samples = memory;
    work->masks = memory + sample_bytes;
    work->unpacked = work->masks + mask_bytes;
    work->unpacked_bytes = (size_t)unpacked;
    return COGPU_OK;
}

static cogpu_status unpack_blob(cogpu_codec_state *state, const cogpu_block_format *format,
                                const lerc_decode_buffers *work, blob *b, cogpu_error *error) {
    size_t got = 0;
    switch (format->lerc_packing) {
    case 0:
        return COGPU_OK;
    case PACKED_DEFLATE:
    case PACKED_ZSTD: {
        const cogpu_codec_row *row = cogpu_codec_find(
            format->lerc_packing == PACKED_ZSTD ? COMPRESSION_ZSTD : COMPRESSION_DEFLATE);
        if (!row || !row->decode)
            return cogpu_fail(error, COGPU_UNSUPPORTED,
                              "LERC packed with a codec that this build lacks");
        TRY(row->decode(state, format, b->in, b->in_bytes, work->unpacked, work->unpacked_bytes,
                        &got, error));
        b->in = work->unpacked;
        b->in_bytes = got;
        return COGPU_OK;
    }
    default:
        return cogpu_fail(error, COGPU_UNSUPPORTED, "LERC packed in way %u: unknown",
                          format->lerc_packing);
    }
}

/* Lerc2 only: to find the size of a Lerc1 blob, the library would decode all of it. */
static cogpu_status read_info(const blob *b, uint32_t info[INFO_FIELDS], cogpu_error *error) {
    static const char key[] = "Lerc2 ";
    memset(info, 0, INFO_FIELDS * sizeof *info);
    if (b->in_bytes < sizeof key - 1 || memcmp(b->in, key, sizeof key - 1) != 0 ||
        b->in_bytes > UINT32_MAX)
        return cogpu_fail(error, COGPU_CORRUPT, "LERC blob: it does not begin with Lerc2");
    TRY(cogpu_lerc_explain(cogpu_lerc_info(b->in, (uint32_t)b->in_bytes, info, INFO_FIELDS),
                           COGPU_CORRUPT, "LERC blob: damaged or cut off", error));
    return info[INFO_BYTES] <= b->in_bytes ? COGPU_OK
                                           : cogpu_fail(error, COGPU_CORRUPT, "LERC blob: cut off");
}

static cogpu_status check_blob_shape(const cogpu_block_format *format,
                                     const uint32_t info[INFO_FIELDS], blob *b,
                                     cogpu_error *error) {
    if (info[INFO_WIDTH] != format->width || info[INFO_HEIGHT] != format->height)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "LERC blob: %u x %u pixels where the block has %u x %u", info[INFO_WIDTH],
                          info[INFO_HEIGHT], format->width, format->height);
    if (info[INFO_TYPE] != b->type)
        return cogpu_fail(error, COGPU_CORRUPT, "LERC blob: samples of LERC type %u, not of %s",
                          info[INFO_TYPE], cogpu_type_name(format->type));
    b->depth = info[INFO_DEPTH];
    b->bands = info[INFO_BANDS];
    b->masks = info[INFO_MASKS];
    bool as_values = b->depth == format->samples && b->bands == 1;
    bool as_bands = b->depth == 1 && b->bands == format->samples;
    b->mask_is_alpha =
        b->type == LERC_U8 && b->bands == 1 && (uint64_t)b->depth + 1 == format->samples;
    if (!as_values && !as_bands && !b->mask_is_alpha)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "LERC blob: %u bands of %u values where the block has %u bands", b->bands,
                          b->depth, format->samples);
    if (b->masks > 1 && b->masks != b->bands)
        return cogpu_fail(error, COGPU_CORRUPT, "LERC blob: %u masks for %u bands", b->masks,
                          b->bands);
    if (info[INFO_USES_NODATA] != 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "LERC blob with a nodata value of its own: not read");
    return COGPU_OK;
}

/* What a pixel outside the mask becomes. */
static void invalid_sample(const cogpu_block_format *format, uint8_t sample[16]) {
    const float nan_float = __builtin_nanf("");
    const double nan_double = __builtin_nan("");
    memcpy(sample, format->fill, 16);
    if (format->type == COGPU_TYPE_F32)
        memcpy(sample, &nan_float, sizeof nan_float);
    else if (format->type == COGPU_TYPE_F64)
        memcpy(sample, &nan_double, sizeof nan_double);
}

/* The blob has all values of a pixel together; `out` has a stride of its own. */
static void spread_band(const uint8_t *from, size_t from_bytes, uint8_t *out, size_t step,
                        size_t pixels) {
    for (size_t i = 0; i < pixels; i++)
        memcpy(out + i * step, from + i * from_bytes, from_bytes);
}

static void fill_invalid(const uint8_t *mask, const uint8_t *sample, size_t sample_bytes,
                         uint32_t count, uint8_t *out, size_t step, size_t pixels) {
    for (size_t i = 0; i < pixels; i++) {
        if (mask[i])
            continue;
        for (uint32_t s = 0; s < count; s++)
            memcpy(out + i * step + s * sample_bytes, sample, sample_bytes);
    }
}

/* GDAL's alpha: the mask as 0 and 255; a blob without a mask is opaque. */
static void alpha_from_mask(const blob *b, const uint8_t *mask, uint8_t *alpha, size_t step) {
    for (size_t i = 0; i < b->pixels; i++)
        alpha[i * step] = b->masks == 0 || mask[i] ? 255 : 0;
}

static void arrange_block(const cogpu_block_format *format, const blob *b,
                          const lerc_decode_buffers *work, uint8_t *out) {
    uint8_t invalid[16];
    size_t value_bytes = b->depth * b->sample_bytes;
    size_t pixel_bytes = format->samples * b->sample_bytes;
    invalid_sample(format, invalid);
    for (uint32_t band = 0; band < b->bands; band++) {
        uint8_t *target = out + band * value_bytes;
        const uint8_t *mask = work->masks + (b->masks > 1 ? band * b->pixels : 0);
        if (value_bytes != pixel_bytes)
            spread_band(work->samples + band * b->pixels * value_bytes, value_bytes, target,
                        pixel_bytes, b->pixels);
        if (b->mask_is_alpha)
            alpha_from_mask(b, mask, target + value_bytes, pixel_bytes);
        else if (b->masks != 0)
            fill_invalid(mask, invalid, b->sample_bytes, b->depth, target, pixel_bytes, b->pixels);
    }
}

static cogpu_status decode_blob(const cogpu_block_format *format, const blob *b,
                                const lerc_decode_buffers *work, uint8_t *out, cogpu_error *error) {
    bool straight = b->depth == format->samples;
    const cogpu_lerc_shape shape = {.type = b->type,
                                    .depth = b->depth,
                                    .width = format->width,
                                    .height = format->height,
                                    .bands = b->bands,
                                    .masks = b->masks};
    TRY(cogpu_lerc_explain(cogpu_lerc_read(&shape, b->in, (uint32_t)b->in_bytes,
                                           b->masks != 0 ? work->masks : NULL,
                                           straight ? out : work->samples),
                           COGPU_CORRUPT, "LERC blob: damaged", error));
    arrange_block(format, b, work, out);
    return COGPU_OK;
}

cogpu_status cogpu_decode_lerc(cogpu_codec_state *state, const cogpu_block_format *format,
                               const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes,
                               size_t *got, cogpu_error *error) {
    uint32_t info[INFO_FIELDS];
    lerc_decode_buffers work = {0};
    blob b = {.in = in, .in_bytes = in_bytes, .type = cogpu_lerc_type(format->type)};
    uint64_t pixels = (uint64_t)format->width * format->height, bytes = 0;
    *got = 0;
    if (b.type == LERC_NONE)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "LERC has no samples of %s",
                          cogpu_type_name(format->type));
    b.sample_bytes = cogpu_type_bytes(format->type);
    b.pixels = (size_t)pixels;
    if (!checked_mul(pixels, (uint64_t)format->samples * b.sample_bytes, &bytes) ||
        bytes > out_bytes)
        return cogpu_fail(error, COGPU_CORRUPT, "LERC: more pixels than the block has");
    TRY(allocate_decode_buffers(state, format, (size_t)bytes, &work, error));
    TRY(unpack_blob(state, format, &work, &b, error));
    TRY(read_info(&b, info, error));
    TRY(check_blob_shape(format, info, &b, error));
    TRY(decode_blob(format, &b, &work, out, error));
    *got = (size_t)bytes;
    return COGPU_OK;
}
