/*
 * Masks of images that have no mask directory: pixels are read a swath at a time and compared with
 * nodata, or the alpha band is; where there is neither, all pixels are valid. And masks that make
 * NaN of what they call invalid, read a swath at a time after the pixels.
 */
#include "api/job.h"

#include "base/bytes.h"

#include <math.h>
#include <string.h>

static uint8_t *row_of(const cogpu_raster *raster, uint32_t band, uint32_t y) {
    return (uint8_t *)raster->data + (int64_t)band * raster->stride_band +
           (int64_t)y * raster->stride_y;
}

static void spread_band(const cogpu_raster *raster, uint32_t band, uint32_t copies) {
    for (uint32_t y = 0; y < raster->height; y++) {
        for (uint32_t x = 0; x < raster->width; x++) {
            uint8_t *sample = row_of(raster, band, y) + (int64_t)x * raster->stride_x;
            uint8_t valid = *sample ? 255 : 0;
            for (uint32_t copy = 0; copy < copies; copy++)
                sample[(int64_t)copy * raster->stride_band] = valid;
        }
    }
}

void cogpu_mask_spread(const cogpu_raster *raster, uint32_t bands) {
    for (uint32_t band = 0; band < raster->bands; band++)
        spread_band(raster, band, raster->bands == 1 ? bands : 1);
}

static void set_all(const cogpu_raster *raster, uint8_t value) {
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                row_of(raster, band, y)[(int64_t)x * raster->stride_x] = value;
}

/* Is a sample NaN, in either part of a complex one? */
static bool is_nan(const uint8_t *sample, cogpu_type type) {
    float single[2];
    double number[2];
    uint16_t half;
    switch (type) {
    case COGPU_F16:
        memcpy(&half, sample, sizeof half);
        return (half & 0x7C00) == 0x7C00 && (half & 0x03FF);
    case COGPU_F32:
        memcpy(single, sample, sizeof *single);
        return isnan(single[0]);
    case COGPU_CF32:
        memcpy(single, sample, sizeof single);
        return isnan(single[0]) || isnan(single[1]);
    case COGPU_F64:
        memcpy(number, sample, sizeof *number);
        return isnan(number[0]);
    case COGPU_CF64:
        memcpy(number, sample, sizeof number);
        return isnan(number[0]) || isnan(number[1]);
    default:
        return false;
    }
}

/* How a sample is judged. */
struct judge {
    cogpu_type type;
    bool by_alpha, nodata_is_nan;
    uint8_t nodata[16], minus_zero[16]; /* the second for floats whose nodata is 0 */
};

static struct judge judge_for(const cogpu_image *info, bool by_alpha) {
    struct judge judge = {.type = info->type, .by_alpha = by_alpha};
    cogpu_nodata_sample(&info->nodata, info->type, judge.nodata);
    judge.nodata_is_nan = is_nan(judge.nodata, info->type);
    memcpy(judge.minus_zero, judge.nodata, sizeof judge.minus_zero);
    if (info->nodata.value == 0 &&
        (info->type == COGPU_F16 || info->type == COGPU_F32 || info->type == COGPU_F64)) {
        size_t sign = cogpu_type_bytes(info->type) - 1;
        judge.minus_zero[COGPU_HOST_BIG_ENDIAN ? 0 : sign] ^= 0x80;
    }
    return judge;
}

static bool is_valid(const struct judge *judge, const uint8_t *sample) {
    static const uint8_t zero[16];
    size_t size = cogpu_type_bytes(judge->type);
    if (judge->by_alpha)
        return memcmp(sample, zero, size) != 0;
    if (judge->nodata_is_nan)
        return !is_nan(sample, judge->type);
    return memcmp(sample, judge->nodata, size) != 0 && memcmp(sample, judge->minus_zero, size) != 0;
}

/* Bands that are read together, since a block of a chunky file holds them all. */
enum { GROUP_MAX = 64 };

struct group {
    uint32_t first, count;       /* of the raster's bands */
    uint32_t sources[GROUP_MAX]; /* the image's bands that tell them */
    uint32_t swath_rows;
    uint8_t *pixels; /* room for a swath of them */
};

static struct group group_from(const cogpu_request *request, uint32_t alpha_band, uint32_t first,
                               uint32_t bands) {
    struct group group = {.first = first, .count = bands - first};
    if (group.count > GROUP_MAX)
        group.count = GROUP_MAX;
    for (uint32_t i = 0; i < group.count; i++)
        group.sources[i] = alpha_band       ? alpha_band
                           : request->bands ? request->bands[first + i]
                                            : first + i + 1;
    return group;
}

static void judge_swath(const struct judge *judge, const struct group *group, uint32_t y,
                        uint32_t rows, const cogpu_raster *raster) {
    size_t size = cogpu_type_bytes(judge->type);
    const uint8_t *sample = group->pixels;
    for (uint32_t band = group->first; band < group->first + group->count; band++)
        for (uint32_t row = y; row < y + rows; row++)
            for (uint32_t x = 0; x < raster->width; x++, sample += size)
                row_of(raster, band, row)[(int64_t)x * raster->stride_x] =
                    is_valid(judge, sample) ? 255 : 0;
}

/* The bands of a group, swath by swath through its pixels. */
static cogpu_status derive_group(const cogpu_file *file, const cogpu_request *request,
                                 const struct judge *judge, const struct group *group,
                                 const cogpu_raster *raster, cogpu_error *error) {
    for (uint32_t y = 0; y < raster->height; y += group->swath_rows) {
        cogpu_request swath = *request;
        uint32_t left = raster->height - y;
        swath.part = COGPU_PIXELS;
        swath.nan_where_invalid = swath.scaled = 0;
        swath.y += y;
        swath.height = left < group->swath_rows ? left : group->swath_rows;
        swath.bands = group->sources;
        swath.band_count = group->count;
        cogpu_raster target = {.data = group->pixels,
                               .type = judge->type,
                               .bands = group->count,
                               .width = raster->width,
                               .height = swath.height};
        TRY(cogpu_read(file, &swath, &target, NULL, error));
        judge_swath(judge, group, y, swath.height, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_mask_derive(const cogpu_file *file, const cogpu_request *request,
                               const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, request->image, &picture, error));
    const cogpu_image *info = &picture->info;
    const cogpu_storage *storage = &picture->levels[request->level].storage;
    bool by_alpha = picture->unmasked == COGPU_BY_ALPHA;
    if (picture->unmasked == COGPU_ALL_VALID) {
        set_all(raster, 255);
        return COGPU_OK;
    }
    struct judge judge = judge_for(info, by_alpha);
    uint32_t derived = by_alpha ? 1 : raster->bands;
    for (uint32_t first = 0; first < derived; first += GROUP_MAX) {
        struct group group = group_from(request, by_alpha ? info->alpha_band : 0, first, derived);
        uint64_t row_bytes = (uint64_t)raster->width * group.count * cogpu_type_bytes(info->type);
        group.swath_rows = cogpu_swath_rows(storage, row_bytes, raster->height);
        group.pixels = cogpu_allocate((size_t)(group.swath_rows * row_bytes));
        if (!group.pixels)
            return cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath of the mask");
        cogpu_status status = derive_group(file, request, &judge, &group, raster, error);
        cogpu_release(group.pixels);
        TRY(status);
    }
    if (by_alpha)
        spread_band(raster, 0, raster->bands);
    return COGPU_OK;
}

/* ---- NaN where a mask says so ---- */

/* Rows of a mask, in memory of the raster's device. */
struct veil {
    uint8_t *memory;
    bool is_shared; /* one band for all of the raster; else it has as many */
    uint32_t rows;
};

static void void_on_host(const struct veil *veil, uint32_t y, uint32_t rows,
                         const cogpu_raster *raster) {
    size_t size = cogpu_type_bytes(raster->type);
    uint8_t nan[16];
    cogpu_nodata_sample(&(cogpu_nodata){.value = NAN}, raster->type, nan);
    for (uint32_t band = 0; band < raster->bands; band++) {
        const uint8_t *valid =
            veil->memory + (veil->is_shared ? 0 : (size_t)band * rows * raster->width);
        for (uint32_t row = y; row < y + rows; row++)
            for (uint32_t x = 0; x < raster->width; x++)
                if (!*valid++)
                    memcpy(row_of(raster, band, row) + (int64_t)x * raster->stride_x, nan, size);
    }
}

static cogpu_status void_swaths(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                const struct veil *veil, cogpu_error *error) {
    const cogpu_raster *raster = &reading->raster;
    const uint32_t any_band = 1;
    for (uint32_t y = 0; y < raster->height; y += veil->rows) {
        cogpu_request request = reading->item->request;
        cogpu_result result = {0};
        request.part = COGPU_MASK;
        request.nan_where_invalid = request.scaled = 0;
        request.y = reading->plan.y + y;
        request.height = raster->height - y < veil->rows ? raster->height - y : veil->rows;
        if (veil->is_shared) {
            request.bands = &any_band;
            request.band_count = 1;
        }
        cogpu_raster rows = {.data = veil->memory,
                             .type = COGPU_U8,
                             .bands = veil->is_shared ? 1 : raster->bands,
                             .height = request.height,
                             .width = raster->width,
                             .device = raster->device,
                             .device_index = raster->device_index};
        TRY(cogpu_read(reading->item->file, &request, &rows, &result, error));
        cogpu_result_add(&result, &reading->item->result);
        if (reader)
            TRY(cogpu_gpu_reader_void(reader, &rows, y, raster, error));
        else
            void_on_host(veil, y, request.height, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_mask_void(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                             cogpu_error *error) {
    const cogpu_raster *raster = &reading->raster;
    const cogpu_storage *mask = reading->voids;
    bool is_image = mask == reading->plan.storage; /* which has its alpha for all */
    struct veil veil = {.is_shared = is_image || mask->bands == 1};
    uint64_t row_bytes = (uint64_t)raster->width * (veil.is_shared ? 1 : raster->bands);
    veil.rows = cogpu_swath_rows(mask, row_bytes, raster->height);
    if (reader)
        TRY(cogpu_gpu_reader_allocate(reader, veil.rows * row_bytes, (void **)&veil.memory, error));
    else
        veil.memory = cogpu_allocate((size_t)(veil.rows * row_bytes));
    if (!veil.memory)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath of the mask");
    cogpu_status status = void_swaths(reading, reader, &veil, error);
    if (reader)
        cogpu_gpu_reader_release(reader, veil.memory);
    else
        cogpu_release(veil.memory);
    return status;
}
