/*
 * Reads the rows that new rows are made of, resamples them in their own type, then converts values.
 */
#include "derive.h"

#include "chunk.h"
#include "report.h"
#include "sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { SOURCE_ROWS, SOURCE_MASK, UNCONVERTED_ROWS };

/* ---- size -------------------------------------------------------------------------------------
 */

/* 0 for one side keeps the proportions. */
static void find_size(const cogpu_arguments *arguments, cogpu_selection *selection) {
    double width = selection->request.width, height = selection->request.height;
    double across = arguments->to_width, down = arguments->to_height;
    if (across == 0)
        across = fmax(floor(width * down / height + 0.5), 1);
    if (down == 0)
        down = fmax(floor(height * across / width + 0.5), 1);
    selection->written_width = across > UINT32_MAX ? UINT32_MAX : (uint32_t)across;
    selection->written_height = down > UINT32_MAX ? UINT32_MAX : (uint32_t)down;
}

/* A length of the full resolution in pixels of a level; false where that is no whole number. */
static bool map_length(uint32_t length, uint32_t full, uint32_t level, uint32_t *mapped) {
    uint64_t product = (uint64_t)length * level;
    *mapped = (uint32_t)(product / full);
    return product % full == 0;
}

/* Whether the window of full resolution is one of whole pixels of the level, which is not too
 * small. */
static bool fits_level(const cogpu_selection *selection, const cogpu_level *level,
                       cogpu_request *request) {
    const cogpu_image *image = &selection->image;
    const cogpu_request *from = &selection->request;
    return map_length(from->x, image->width, level->width, &request->x) &&
           map_length(from->width, image->width, level->width, &request->width) &&
           map_length(from->y, image->height, level->height, &request->y) &&
           map_length(from->height, image->height, level->height, &request->height) &&
           request->width >= selection->written_width &&
           request->height >= selection->written_height;
}

/* The smallest level that has as many pixels as are wanted. */
static cogpu_status choose_source_level(cogpu_selection *selection, cogpu_error *error) {
    for (uint32_t i = selection->image.levels; i-- > 1;) {
        cogpu_level level = COGPU_LEVEL_INIT;
        cogpu_request request = selection->request;
        TRY(cogpu_level_info(selection->file, request.image, i, &level, error));
        request.level = i;
        if (fits_level(selection, &level, &request)) {
            selection->request = request;
            selection->level = level;
            return COGPU_OK;
        }
    }
    return COGPU_OK;
}

static cogpu_status plan_size(const cogpu_arguments *arguments, cogpu_selection *selection,
                              cogpu_error *error) {
    const cogpu_request *request = &selection->request;
    find_size(arguments, selection);
    if (selection->written_width > request->width || selection->written_height > request->height)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "--size: %" PRIu32 " x %" PRIu32 " pixels are more than the %" PRIu32
                            " x %" PRIu32 " to convert; --size can only make images smaller",
                            selection->written_width, selection->written_height, request->width,
                            request->height);
    return arguments->has_level ? COGPU_OK : choose_source_level(selection, error);
}

/* ---- type -------------------------------------------------------------------------------------
 */

static cogpu_status plan_type(const cogpu_arguments *arguments, cogpu_selection *selection,
                              cogpu_error *error) {
    cogpu_type wanted = arguments->dtype ? arguments->dtype : selection->type;
    if (cogpu_sample_is_complex(selection->type))
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "samples are %s: --dtype and --scale need real samples",
                            cogpu_type_name(selection->type));
    if (wanted == COGPU_TYPE_F16 && arguments->scale.is_given)
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "--scale cannot write float16; add --dtype float32");
    selection->written = wanted;
    if (!arguments->scale.is_given && cogpu_sample_is_float(wanted))
        selection->type = wanted; /* the reader converts to floats */
    return COGPU_OK;
}

cogpu_status cogpu_derivation_plan(const cogpu_arguments *arguments, cogpu_selection *selection,
                                   cogpu_error *error) {
    selection->written = selection->type;
    selection->written_width = selection->request.width;
    selection->written_height = selection->request.height;
    if (arguments->to_width || arguments->to_height)
        TRY(plan_size(arguments, selection, error));
    if (arguments->dtype || arguments->scale.is_given)
        TRY(plan_type(arguments, selection, error));
    return COGPU_OK;
}

/* ---- the range of values ----------------------------------------------------------------------
 */

static void add_range(const double *values, size_t count, double range[2]) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        range[0] = fmin(range[0], values[i]);
        range[1] = fmax(range[1], values[i]);
    }
}

static cogpu_status find_ranges(cogpu_selection *all, cogpu_chunk *chunk, double *data,
                                double (*ranges)[2], cogpu_error *error) {
    while (cogpu_chunk_next(chunk)) {
        size_t count = (size_t)all->request.width * chunk->rows;
        TRY(cogpu_chunk_read(chunk, all, data, NULL, error));
        for (uint32_t i = 0; i < chunk->bands; i++)
            add_range(data + count * i, count, ranges[chunk->band + i]);
    }
    return COGPU_OK;
}

/* Of valid pixels of the whole level, as gdal_translate does, whatever part is converted. */
static cogpu_status measure_ranges(const cogpu_selection *selection, double (*ranges)[2],
                                   cogpu_error *error) {
    cogpu_selection all = *selection;
    cogpu_chunk chunk;
    all.request.x = all.request.y = 0;
    all.request.width = all.level.width;
    all.request.height = all.level.height;
    all.request.masked = 1;
    all.type = COGPU_TYPE_F64;
    all.device = COGPU_DEVICE_CPU;
    for (uint32_t i = 0; i < selection->bands; i++)
        ranges[i][0] = INFINITY, ranges[i][1] = -INFINITY;
    cogpu_status status = cogpu_chunk_open(&all, CHUNK_ANY_ORDER, &chunk, error);
    double *data = status == COGPU_OK ? malloc(chunk.bytes) : NULL;
    if (status == COGPU_OK && !data)
        status = cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                              chunk.bytes);
    if (status == COGPU_OK)
        status = find_ranges(&all, &chunk, data, ranges, error);
    free(data);
    return status;
}

/* A range of one value is widened as gdal_translate does it. */
static void set_scale(cogpu_sample_map *map, const double source[2], const double target[2]) {
    double low = source[0], high = source[1];
    if (!(low <= high) && !isfinite(low)) /* no valid pixel */
        low = 0, high = 1;
    if (low == high)
        high += 0.1;
    map->is_scaled = true;
    map->ratio = (target[1] - target[0]) / (high - low);
    map->offset = target[0] - low * map->ratio;
}

static cogpu_status set_scales(const cogpu_arguments *arguments, const cogpu_selection *selection,
                               cogpu_derivation *derivation, cogpu_error *error) {
    const cogpu_scale_option *option = &arguments->scale;
    double(*ranges)[2] = calloc(selection->bands, sizeof *ranges);
    if (!ranges)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the range of values");
    cogpu_status status = option->has_source ? COGPU_OK : measure_ranges(selection, ranges, error);
    for (uint32_t i = 0; status == COGPU_OK && i < selection->bands; i++) {
        set_scale(&derivation->maps[i], option->has_source ? option->source : ranges[i],
                  option->target);
        cogpu_report_detail(NULL, "band %" PRIu32 ": value * %.17g + %.17g",
                            cogpu_selection_band(selection, i), derivation->maps[i].ratio,
                            derivation->maps[i].offset);
    }
    free(ranges);
    return status;
}

static cogpu_status open_maps(const cogpu_arguments *arguments, const cogpu_selection *selection,
                              cogpu_derivation *derivation, cogpu_error *error) {
    const cogpu_band *band = &selection->first_band;
    derivation->maps = calloc(selection->bands, sizeof *derivation->maps);
    if (!derivation->maps)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the range of values");
    for (uint32_t i = 0; i < selection->bands; i++)
        derivation->maps[i] = (cogpu_sample_map){.from = selection->type,
                                                 .to = selection->written,
                                                 .has_nodata = band->nodata && band->nodata_matches,
                                                 .nodata = band->nodata_value};
    return arguments->scale.is_given ? set_scales(arguments, selection, derivation, error)
                                     : COGPU_OK;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static cogpu_resample plan_resampling(const cogpu_selection *selection,
                                      const cogpu_profile *profile) {
    const cogpu_band *band = &selection->first_band;
    cogpu_resample how = {.struct_size = sizeof(cogpu_resample),
                          .method = profile->resampling,
                          .type = selection->type,
                          .bands = selection->bands,
                          .from_width = selection->request.width,
                          .from_height = selection->request.height,
                          .width = selection->written_width,
                          .height = selection->written_height,
                          .nodata = band->nodata_matches ? band->nodata : NULL,
                          .alpha_band = profile->alpha_band,
                          .mask = profile->mask};
    if (!how.method && profile->palette)
        how.method = COGPU_RESAMPLE_NEAREST; /* indices have no mean */
    return how;
}

cogpu_status cogpu_derivation_open(const cogpu_arguments *arguments,
                                   const cogpu_selection *selection, const cogpu_profile *profile,
                                   cogpu_derivation *derivation, cogpu_error *error) {
    const cogpu_request *request = &selection->request;
    *derivation = (cogpu_derivation){.resample = plan_resampling(selection, profile)};
    derivation->is_resampled =
        selection->written_width != request->width || selection->written_height != request->height;
    derivation->is_converted = arguments->scale.is_given || selection->written != selection->type;
    derivation->is_needed = derivation->is_resampled || derivation->is_converted;
    if (derivation->is_resampled) {
        uint32_t begin, end;
        TRY(cogpu_resample_source_rows(&derivation->resample, 0, 1, &begin, &end, error));
        cogpu_report_detail(NULL, "resampling from level %" PRIu32 ", %" PRIu32 " x %" PRIu32,
                            request->level, request->width, request->height);
    }
    return derivation->is_converted ? open_maps(arguments, selection, derivation, error) : COGPU_OK;
}

void cogpu_derivation_close(cogpu_derivation *derivation) {
    free(derivation->maps);
    for (size_t i = 0; i < sizeof derivation->memory / sizeof *derivation->memory; i++)
        free(derivation->memory[i]);
    *derivation = (cogpu_derivation){0};
}

/* ---- rows -------------------------------------------------------------------------------------
 */

uint32_t cogpu_derivation_rows(const cogpu_derivation *derivation,
                               const cogpu_selection *selection) {
    enum { SOURCE_BYTES = 64 << 20 };
    const cogpu_request *request = &selection->request;
    double row_bytes = (double)request->width * selection->bands *
                       (double)cogpu_type_bytes(selection->type) * request->height /
                       selection->written_height;
    double rows = SOURCE_BYTES / row_bytes;
    if (!derivation->is_needed || rows > selection->written_height)
        return selection->written_height;
    return rows < 1 ? 1 : (uint32_t)rows;
}

static cogpu_status get_memory(cogpu_derivation *derivation, int which, uint64_t bytes,
                               cogpu_error *error) {
    static const uint64_t most = (uint64_t)1 << 31;
    if (bytes <= derivation->memory_bytes[which])
        return COGPU_OK;
    free(derivation->memory[which]);
    derivation->memory_bytes[which] = 0;
    derivation->memory[which] = bytes <= most ? malloc((size_t)bytes) : NULL;
    if (!derivation->memory[which])
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY,
                            "no memory for %" PRIu64 " bytes of pixels; choose a part or some "
                            "bands, or a --size that is not so much smaller",
                            bytes);
    derivation->memory_bytes[which] = (size_t)bytes;
    return COGPU_OK;
}

/* Packed as `like`: samples of a pixel side by side, or bands one after the other. */
static cogpu_status get_raster(cogpu_derivation *derivation, int which, const cogpu_raster *like,
                               cogpu_type type, uint32_t width, uint32_t height,
                               cogpu_raster *raster, cogpu_error *error) {
    int64_t size = (int64_t)cogpu_type_bytes(type);
    bool is_chunky = like->stride_x != 0 && like->stride_band < like->stride_y;
    TRY(get_memory(derivation, which, (uint64_t)size * like->bands * width * height, error));
    *raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                             .data = derivation->memory[which],
                             .type = type,
                             .bands = like->bands,
                             .width = width,
                             .height = height};
    raster->stride_band = is_chunky ? size : size * width * height;
    raster->stride_x = is_chunky ? size * like->bands : size;
    raster->stride_y = raster->stride_x * width;
    return COGPU_OK;
}

static void convert_rows(const cogpu_derivation *derivation, const cogpu_raster *from,
                         cogpu_raster *to) {
    int64_t size = (int64_t)cogpu_type_bytes(to->type);
    bool is_chunky = to->stride_x != 0;
    int64_t step = is_chunky ? to->stride_x : size;
    int64_t row_bytes = is_chunky ? to->stride_y : size * to->width;
    int64_t band_bytes = is_chunky ? to->stride_band : row_bytes * to->height;
    for (uint32_t band = 0; band < to->bands; band++)
        for (uint32_t row = 0; row < to->height; row++)
            cogpu_samples_convert(
                &derivation->maps[band],
                (const char *)from->data + from->stride_band * band + from->stride_y * row,
                from->stride_x, (char *)to->data + band_bytes * band + row_bytes * row, step,
                to->width);
}

static cogpu_status read_part(const cogpu_selection *selection, cogpu_content part, uint32_t first,
                              cogpu_raster *raster, cogpu_result *result, cogpu_error *error) {
    cogpu_request request = selection->request;
    uint32_t band = cogpu_selection_band(selection, 0);
    cogpu_result done = COGPU_RESULT_INIT;
    request.y += first;
    request.height = raster->height;
    request.content = part;
    if (part == COGPU_CONTENT_MASK) {
        request.bands = &band;
        request.band_count = 1;
    }
    TRY(cogpu_read(selection->file, &request, raster, &done, error));
    if (part == COGPU_CONTENT_PIXELS)
        cogpu_chunk_count(&done, result);
    return COGPU_OK;
}

static cogpu_status resample_rows(cogpu_derivation *derivation, const cogpu_selection *selection,
                                  uint32_t row, cogpu_raster *rows, cogpu_raster *mask,
                                  cogpu_result *result, cogpu_error *error) {
    cogpu_raster source, source_mask = {.bands = 1};
    uint32_t begin, end, width = selection->request.width;
    TRY(cogpu_resample_source_rows(&derivation->resample, row, rows->height, &begin, &end, error));
    TRY(get_raster(derivation, SOURCE_ROWS, rows, selection->type, width, end - begin, &source,
                   error));
    TRY(read_part(selection, COGPU_CONTENT_PIXELS, begin, &source, result, error));
    if (mask->data) {
        TRY(get_raster(derivation, SOURCE_MASK, mask, COGPU_TYPE_U8, width, end - begin,
                       &source_mask, error));
        TRY(read_part(selection, COGPU_CONTENT_MASK, begin, &source_mask, result, error));
    }
    return cogpu_resample_rows(&derivation->resample, begin, &source,
                               mask->data ? &source_mask : NULL, row, rows,
                               mask->data ? mask : NULL, error);
}

static cogpu_status read_rows(const cogpu_selection *selection, uint32_t row, cogpu_raster *rows,
                              cogpu_raster *mask, cogpu_result *result, cogpu_error *error) {
    TRY(read_part(selection, COGPU_CONTENT_PIXELS, row, rows, result, error));
    return mask->data ? read_part(selection, COGPU_CONTENT_MASK, row, mask, result, error)
                      : COGPU_OK;
}

cogpu_status cogpu_derivation_read(cogpu_derivation *derivation, const cogpu_selection *selection,
                                   uint32_t row, cogpu_raster *rows, cogpu_raster *mask,
                                   cogpu_result *result, cogpu_error *error) {
    cogpu_raster unconverted = *rows, *to = rows;
    if (derivation->is_converted) {
        TRY(get_raster(derivation, UNCONVERTED_ROWS, rows, selection->type, rows->width,
                       rows->height, &unconverted, error));
        to = &unconverted;
    }
    if (derivation->is_resampled)
        TRY(resample_rows(derivation, selection, row, to, mask, result, error));
    else
        TRY(read_rows(selection, row, to, mask, result, error));
    if (derivation->is_converted)
        convert_rows(derivation, &unconverted, rows);
    return COGPU_OK;
}
