/*
 * How a directory stores its pixels: size, block grid, sample type, codec, predictor. All later
 * steps trust these numbers, so everything that could overflow or divide by zero is rejected here.
 */
#include "image/image.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "image/values.h"

#include <string.h>

enum { FORMAT_UINT = 1, FORMAT_INT, FORMAT_FLOAT, FORMAT_VOID, FORMAT_COMPLEX_INT, FORMAT_COMPLEX };
enum { PHOTOMETRIC_CMYK = 5, PHOTOMETRIC_YCBCR = 6, SIDE_MAX = INT32_MAX };
enum { RGB_BANDS = 3, RGBA_BANDS = 4 };

/* Collects warnings about optional tags. */
struct notes {
    cogpu_arena *arena;
    const char **warning;
};

/* One number up to `most`, of a tag with a default. */
static cogpu_status optional_whole(const cogpu_storage *storage, const struct notes *notes,
                                   uint16_t tag, uint32_t most, uint32_t fallback, uint32_t *value,
                                   cogpu_error *error) {
    *value = fallback;
    return cogpu_values_wholes(storage->tiff, storage->directory, tag, 1, most, notes->arena, value,
                               notes->warning, error);
}

/* The same for a tag whose defined values are first .. last. */
static cogpu_status optional_choice(const cogpu_storage *storage, const struct notes *notes,
                                    uint16_t tag, uint32_t first, uint32_t last, uint32_t fallback,
                                    uint32_t *value, cogpu_error *error) {
    TRY(optional_whole(storage, notes, tag, UINT16_MAX, fallback, value, error));
    if (*value >= first && *value <= last)
        return COGPU_OK;
    cogpu_warn(notes->arena, notes->warning, "%s %u of directory %u is undefined; %u is used",
               cogpu_tag_name(tag), *value, storage->directory, fallback);
    *value = fallback;
    return COGPU_OK;
}

/* One value for all bands. The tag may hold it once, or once for each band. */
static cogpu_status shared_value(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t bands, uint64_t fallback, uint64_t *value,
                                 cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    *value = fallback;
    if (!entry || (entry->count == 0 && tag == TAG_SAMPLE_FORMAT))
        return COGPU_OK;
    if (entry->count != 1 && entry->count < bands)
        return cogpu_fail(error, COGPU_CORRUPT, "tag %s has %llu values for %u bands",
                          cogpu_tag_name(tag), (unsigned long long)entry->count, bands);
    TRY(cogpu_tiff_u64s(tiff, entry, 0, 1, value, error));
    uint64_t other[64], count = entry->count < bands ? entry->count : bands;
    for (uint64_t first = 1; first < count;) {
        uint64_t some = count - first < 64 ? count - first : 64;
        TRY(cogpu_tiff_u64s(tiff, entry, first, some, other, error));
        for (uint64_t i = 0; i < some; i++)
            if (other[i] != *value)
                return cogpu_fail(error, COGPU_UNSUPPORTED,
                                  "bands with different %s (%llu and %llu) are not supported",
                                  cogpu_tag_name(tag), (unsigned long long)*value,
                                  (unsigned long long)other[i]);
        first += some;
    }
    return COGPU_OK;
}

/* GDAL's sample type: odd depths are widened to the next of 8, 16, 32 bits. */
static cogpu_type sample_type(uint64_t format, uint64_t bits) {
    bool is_int = format == FORMAT_INT;
    switch (format) {
    case FORMAT_UINT:
    case FORMAT_INT:
    case FORMAT_VOID:
        if (bits >= 1 && bits <= 8)
            return is_int ? COGPU_TYPE_I8 : COGPU_TYPE_U8;
        if (bits >= 9 && bits <= 16)
            return is_int ? COGPU_TYPE_I16 : COGPU_TYPE_U16;
        if (bits >= 17 && bits <= 32)
            return is_int ? COGPU_TYPE_I32 : COGPU_TYPE_U32;
        return bits == 64 ? (is_int ? COGPU_TYPE_I64 : COGPU_TYPE_U64) : COGPU_TYPE_NONE;
    case FORMAT_FLOAT:
        return bits == 16                 ? COGPU_TYPE_F16
               : bits == 24 || bits == 32 ? COGPU_TYPE_F32
               : bits == 64               ? COGPU_TYPE_F64
                                          : COGPU_TYPE_NONE;
    case FORMAT_COMPLEX_INT:
        return bits == 32 ? COGPU_TYPE_CI16 : bits == 64 ? COGPU_TYPE_CI32 : COGPU_TYPE_NONE;
    case FORMAT_COMPLEX:
        return bits == 64 ? COGPU_TYPE_CF32 : bits == 128 ? COGPU_TYPE_CF64 : COGPU_TYPE_NONE;
    default:
        return COGPU_TYPE_NONE;
    }
}

static cogpu_status read_size(cogpu_storage *storage, cogpu_error *error) {
    const cogpu_tiff *tiff = storage->tiff;
    uint64_t width, height, bands;
    TRY(cogpu_tiff_u64(tiff, storage->directory, TAG_IMAGE_WIDTH, 0, &width, error));
    TRY(cogpu_tiff_u64(tiff, storage->directory, TAG_IMAGE_LENGTH, 0, &height, error));
    TRY(cogpu_tiff_u64(tiff, storage->directory, TAG_SAMPLES_PER_PIXEL, 1, &bands, error));
    if (width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX)
        return cogpu_fail(error, COGPU_CORRUPT,
                          "the image is %llu x %llu pixels; each side must be 1 to 2^31 - 1",
                          (unsigned long long)width, (unsigned long long)height);
    if (bands > tiff->limits.bands)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "the image has %llu bands, the limit is %llu; raise `bands` to go on",
                          (unsigned long long)bands, (unsigned long long)tiff->limits.bands);
    if (bands == 0 || bands > SIDE_MAX)
        return cogpu_fail(error, COGPU_CORRUPT, "an image of %llu bands makes no sense",
                          (unsigned long long)bands);
    storage->width = (uint32_t)width;
    storage->height = (uint32_t)height;
    storage->bands = (uint32_t)bands;
    return COGPU_OK;
}

static cogpu_status read_samples(cogpu_storage *storage, cogpu_error *error) {
    uint64_t bits, format;
    TRY(shared_value(storage->tiff, storage->directory, TAG_BITS_PER_SAMPLE, storage->bands, 1,
                     &bits, error));
    TRY(shared_value(storage->tiff, storage->directory, TAG_SAMPLE_FORMAT, storage->bands,
                     FORMAT_UINT, &format, error));
    storage->type = sample_type(format, bits);
    if (storage->type == COGPU_TYPE_NONE)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "samples of %llu bits and format %llu are not supported",
                          (unsigned long long)bits, (unsigned long long)format);
    storage->bits = (uint32_t)bits;
    storage->sample_format = (uint32_t)format;
    return COGPU_OK;
}

static cogpu_status read_grid(cogpu_storage *storage, cogpu_error *error) {
    const cogpu_tiff *tiff = storage->tiff;
    uint32_t directory = storage->directory;
    bool has_width = cogpu_tiff_find(tiff, directory, TAG_TILE_WIDTH) != NULL;
    bool has_length = cogpu_tiff_find(tiff, directory, TAG_TILE_LENGTH) != NULL;
    uint64_t width = storage->width, height, planar;
    if (has_width != has_length)
        return cogpu_fail(error, COGPU_CORRUPT, "TileWidth or TileLength is missing");
    storage->layout = has_width ? COGPU_LAYOUT_TILES : COGPU_LAYOUT_STRIPS;
    if (has_width) {
        TRY(cogpu_tiff_u64(tiff, directory, TAG_TILE_WIDTH, 0, &width, error));
        TRY(cogpu_tiff_u64(tiff, directory, TAG_TILE_LENGTH, 0, &height, error));
    } else {
        TRY(cogpu_tiff_u64(tiff, directory, TAG_ROWS_PER_STRIP, UINT32_MAX, &height, error));
        if (height > storage->height)
            height = storage->height;
    }
    if (width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX)
        return cogpu_fail(error, COGPU_CORRUPT, "blocks of %llu x %llu pixels make no sense",
                          (unsigned long long)width, (unsigned long long)height);
    TRY(cogpu_tiff_u64(tiff, directory, TAG_PLANAR_CONFIGURATION, 1, &planar, error));
    if (planar != 1 && planar != 2)
        return cogpu_fail(error, COGPU_CORRUPT, "PlanarConfiguration %llu is neither 1 nor 2",
                          (unsigned long long)planar);
    storage->block_width = (uint32_t)width;
    storage->block_height = (uint32_t)height;
    storage->across = (uint32_t)divide_up(storage->width, width);
    storage->down = (uint32_t)divide_up(storage->height, height);
    storage->planes = planar == 2 ? storage->bands : 1;
    if (!checked_mul((uint64_t)storage->across * storage->down, storage->planes,
                     &storage->blocks) ||
        storage->blocks > tiff->limits.blocks)
        return cogpu_fail(
            error, COGPU_LIMIT_EXCEEDED,
            "the directory has %u x %u x %u blocks, the limit is %llu; raise `blocks` "
            "to go on",
            storage->across, storage->down, storage->planes,
            (unsigned long long)tiff->limits.blocks);
    return COGPU_OK;
}

static cogpu_status read_predictor(cogpu_storage *storage, const struct notes *notes,
                                   cogpu_error *error) {
    uint32_t predictor = 1;
    /* Other codecs ignore the tag. */
    if (storage->codec && storage->codec->allows_predictor)
        TRY(optional_whole(storage, notes, TAG_PREDICTOR, UINT16_MAX, 1, &predictor, error));
    uint32_t bits = storage->bits;
    bool whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
    bool is_float = storage->sample_format == FORMAT_FLOAT;
    if (predictor < 1 || predictor > 3)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "predictor %u is not supported", predictor);
    if ((predictor == 2 && !whole) || (predictor == 3 && !is_float))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "predictor %u does not support samples of %u bits and format %u",
                          predictor, bits, storage->sample_format);
    storage->predictor = predictor;
    return COGPU_OK;
}

/* JPEGTables (tag 347), shared by the JPEG blocks. A block that needs missing tables fails when
 * read. */
static cogpu_status read_jpeg_tables(cogpu_storage *storage, const struct notes *notes,
                                     cogpu_error *error) {
    const char *tables = NULL;
    uint32_t bytes = 0;
    if (storage->format.compression != COMPRESSION_JPEG)
        return COGPU_OK;
    TRY(cogpu_values_chars(storage->tiff, storage->directory, TAG_JPEG_TABLES, notes->arena,
                           &tables, &bytes, notes->warning, error));
    storage->format.jpeg_tables = (const uint8_t *)tables;
    storage->format.jpeg_table_bytes = bytes;
    return COGPU_OK;
}

/* YCbCr that the JPEG codec does not convert, and its chroma subsampling. GDAL converts 8-bit
 * samples and returns wider ones as stored. */
static cogpu_status read_ycbcr(cogpu_storage *storage, const struct notes *notes,
                               cogpu_error *error) {
    const cogpu_tiff *tiff = storage->tiff;
    cogpu_block_format *format = &storage->format;
    uint32_t ratio[2] = {2, 2};
    TRY(cogpu_values_wholes(tiff, storage->directory, TAG_YCBCR_SUBSAMPLING, 2, UINT16_MAX,
                            notes->arena, ratio, notes->warning, error));
    if (storage->codec && storage->codec->holds_numbers)
        ratio[0] = ratio[1] = 1;
    for (int i = 0; i < 2; i++)
        if (ratio[i] != 1 && ratio[i] != 2 && ratio[i] != 4)
            return cogpu_fail(error, COGPU_CORRUPT, "YCbCrSubSampling %u is not 1, 2 or 4",
                              ratio[i]);
    format->subsampling_x = ratio[0];
    format->subsampling_y = ratio[1];
    if (storage->bits != 8)
        return COGPU_OK;
    storage->colour = COGPU_FROM_YCBCR;
    storage->type = COGPU_TYPE_U8;
    storage->ycbcr = cogpu_ycbcr_default();
    TRY(cogpu_values_floats(tiff, storage->directory, TAG_YCBCR_COEFFICIENTS, 3, notes->arena,
                            storage->ycbcr.luma, notes->warning, error));
    return cogpu_values_floats(tiff, storage->directory, TAG_REFERENCE_BLACK_WHITE, 6, notes->arena,
                               storage->ycbcr.reference, notes->warning, error);
}

/* 8-bit inks: the first four become RGBA, unless InkSet says that they are not CMYK. */
static cogpu_status read_cmyk(cogpu_storage *storage, const struct notes *notes,
                              cogpu_error *error) {
    enum { INK_SET_CMYK = 1 };
    uint32_t ink_set;
    TRY(optional_whole(storage, notes, TAG_INK_SET, UINT16_MAX, INK_SET_CMYK, &ink_set, error));
    if (storage->bits != 8 || storage->bands < RGBA_BANDS || ink_set != INK_SET_CMYK)
        return COGPU_OK;
    storage->colour = COGPU_FROM_CMYK;
    storage->type = COGPU_TYPE_U8;
    storage->bands = RGBA_BANDS;
    return COGPU_OK;
}

/* Colors that are converted on read: GDAL's rules. */
static cogpu_status read_colour(cogpu_storage *storage, const struct notes *notes,
                                cogpu_error *error) {
    storage->format.subsampling_x = storage->format.subsampling_y = 1;
    storage->format.samples = storage->planes > 1 ? 1 : storage->bands;
    if (storage->photometric == PHOTOMETRIC_CMYK)
        return read_cmyk(storage, notes, error);
    bool is_ycbcr = storage->photometric == PHOTOMETRIC_YCBCR ||
                    storage->format.compression == COMPRESSION_APERIO_YCBCR;
    if (is_ycbcr && storage->bands == RGB_BANDS && storage->format.compression != COMPRESSION_JPEG)
        return read_ycbcr(storage, notes, error);
    return COGPU_OK;
}

bool cogpu_storage_has_units(const cogpu_storage *storage) {
    return storage->colour == COGPU_FROM_YCBCR && storage->planes == 1;
}

bool cogpu_storage_is_rgb_of_ycbcr(const cogpu_storage *storage) {
    bool by_jpeg = storage->format.compression == COMPRESSION_JPEG && storage->planes == 1 &&
                   storage->bands == RGB_BANDS;
    return storage->photometric == PHOTOMETRIC_YCBCR &&
           (by_jpeg || storage->colour == COGPU_FROM_YCBCR);
}

static cogpu_status read_codec_tags(cogpu_storage *storage, const struct notes *notes,
                                    cogpu_error *error) {
    cogpu_block_format *format = &storage->format;
    uint32_t lerc[2] = {0}; /* version, packing */
    TRY(optional_choice(storage, notes, TAG_FILL_ORDER, 1, 2, 1, &format->fill_order, error));
    if (format->compression == COMPRESSION_CCITT_G3)
        TRY(optional_whole(storage, notes, TAG_T4_OPTIONS, UINT32_MAX, 0, &format->t4_options,
                           error));
    if (format->compression == COMPRESSION_LERC)
        TRY(cogpu_values_wholes(storage->tiff, storage->directory, TAG_LERC_PARAMETERS, 2,
                                UINT32_MAX, notes->arena, lerc, notes->warning, error));
    format->lerc_packing = lerc[1];
    TRY(read_jpeg_tables(storage, notes, error));
    return read_colour(storage, notes, error);
}

static cogpu_status size_of_block(cogpu_storage *storage, cogpu_error *error) {
    cogpu_block_format *format = &storage->format;
    format->width = storage->block_width;
    format->height = storage->block_height;
    format->bits = storage->bits;
    format->type = storage->type;
    format->photometric = storage->photometric;
    uint64_t row_bits, block_bytes;
    if (!checked_mul((uint64_t)format->samples * format->bits, format->width, &row_bits) ||
        !checked_mul(divide_up(row_bits, 8), format->height, &block_bytes) ||
        block_bytes > INT64_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "a block of %u x %u pixels and %u bands is too large", format->width,
                          format->height, format->samples);
    format->row_bytes = (size_t)divide_up(row_bits, 8);
    storage->block_bytes = (size_t)block_bytes;
    return COGPU_OK;
}

/* A tile with TileDepth holds several slices; as in GDAL, the first is the image. */
static cogpu_status read_depth(cogpu_storage *storage, cogpu_error *error) {
    uint64_t depth, block_bytes;
    if (storage->layout != COGPU_LAYOUT_TILES)
        return COGPU_OK;
    TRY(cogpu_tiff_u64(storage->tiff, storage->directory, TAG_TILE_DEPTH, 1, &depth, error));
    if (depth <= 1)
        return COGPU_OK;
    if (!checked_mul(storage->block_bytes, depth, &block_bytes) || block_bytes > INT64_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED, "tiles with a depth of %llu are too large",
                          (unsigned long long)depth);
    storage->block_bytes = (size_t)block_bytes;
    return COGPU_OK;
}

/* As in libtiff, tiles may use the strip tags and the reverse. */
static const cogpu_entry *find_either_tag(const cogpu_storage *storage, uint16_t tiles,
                                          uint16_t strips) {
    bool tiled = storage->layout == COGPU_LAYOUT_TILES;
    const cogpu_entry *entry =
        cogpu_tiff_find(storage->tiff, storage->directory, tiled ? tiles : strips);
    return entry ? entry
                 : cogpu_tiff_find(storage->tiff, storage->directory, tiled ? strips : tiles);
}

cogpu_status cogpu_storage_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                cogpu_storage *storage, const char **warning, cogpu_error *error) {
    const struct notes notes = {arena, warning};
    uint64_t compression;
    *storage = (cogpu_storage){.tiff = tiff, .directory = directory};
    TRY(read_size(storage, error));
    TRY(read_samples(storage, error));
    TRY(shared_value(tiff, directory, TAG_COMPRESSION, storage->bands, COMPRESSION_NONE,
                     &compression, error));
    TRY(optional_whole(storage, &notes, TAG_PHOTOMETRIC, UINT16_MAX, 1, &storage->photometric,
                       error));
    TRY(optional_choice(storage, &notes, TAG_ORIENTATION, 1, 8, 1, &storage->orientation, error));
    storage->format.compression = (uint32_t)compression;
    storage->codec = cogpu_codec_find(storage->format.compression);
    storage->big_endian =
        storage->codec && storage->codec->holds_numbers ? COGPU_HOST_BIG_ENDIAN : tiff->big_endian;
    TRY(read_grid(storage, error));
    TRY(read_predictor(storage, &notes, error));
    TRY(read_codec_tags(storage, &notes, error));
    TRY(size_of_block(storage, error));
    TRY(read_depth(storage, error));
    storage->offsets = find_either_tag(storage, TAG_TILE_OFFSETS, TAG_STRIP_OFFSETS);
    storage->counts = find_either_tag(storage, TAG_TILE_BYTE_COUNTS, TAG_STRIP_BYTE_COUNTS);
    if (storage->format.compression != COMPRESSION_OLD_JPEG)
        return COGPU_OK;
    TRY(cogpu_old_jpeg_read(storage, arena, error));
    return size_of_block(storage, error);
}

/* 24-bit integers are bit streams, too, but GDAL, nearly the only writer of them, swaps their bytes
 * in big-endian files. */
uint32_t cogpu_storage_order_unit(const cogpu_storage *storage) {
    if (cogpu_type_is_complex(storage->type))
        return (uint32_t)cogpu_type_number_bytes(storage->type);
    return storage->bits % 8 == 0 ? storage->bits / 8 : 1;
}
