/*
 * Takes in a selection, hands on its pixels a swath at a time. Swaths end at block edges where they
 * can, so that no block is decoded twice; memory is bounded even where a row of blocks is not
 * small.
 */
#include "swath.h"

#include "report.h"

#include <inttypes.h>

static const uint64_t whole_limit = 64 << 20; /* a selection up to this is one swath */
static const uint64_t swath_size = 16 << 20;
static const uint64_t gpu_swath_size = 32 << 20; /* blocks enough for all of a GPU */
static const uint64_t emu_swath_size = 32 << 10; /* it is for tests, with small images */
static const uint64_t block_row_limit = 256
                                        << 20; /* past this, blocks are decoded more than once */
static const uint64_t row_limit = 1 << 30;

/* The rows that are decoded together; uncompressed blocks can be entered at any row. */
static uint32_t decoded_height(const cogpu_level *level) {
    return level->compression == 1 ? 1 : level->block_height;
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Where blocks end that are read and blocks that are written, if that is not too far apart; else
 * where blocks end that are read. */
static uint32_t common_edge(uint32_t read, uint32_t written, uint64_t most_rows) {
    uint64_t edge = (uint64_t)read / common_divisor(read, written) * written;
    return edge <= most_rows ? (uint32_t)edge : read;
}

static uint32_t rows_for(uint64_t row_bytes, uint64_t size, uint32_t edge) {
    uint64_t rows = size / row_bytes;
    if (rows >= edge)
        return (uint32_t)(rows - rows % edge);
    if (row_bytes * edge <= block_row_limit)
        return edge;
    rows = block_row_limit / row_bytes;
    return rows > 0 ? (uint32_t)rows : 1;
}

static cogpu_status open_device(const cogpu_selection *selection, cogpu_swath *swath,
                                cogpu_error *error) {
    return cogpu_device_allocate(selection->request.context, selection->device,
                                 selection->device_index, swath->bytes, &swath->device_memory,
                                 error);
}

static uint64_t band_row_bytes(const cogpu_selection *selection) {
    return (uint64_t)selection->request.width * cogpu_type_bytes(selection->type);
}

/* A selection of more than `whole` bytes is cut into pieces of about `size`, of so many bands. */
static cogpu_status lay_out(const cogpu_selection *selection, uint64_t whole, uint64_t size,
                            uint32_t bands, cogpu_swath *swath, cogpu_error *error) {
    const cogpu_request *request = &selection->request;
    uint64_t row_bytes = band_row_bytes(selection);
    swath->all_bands = swath->bands_at_once = selection->bands;
    swath->top = request->y;
    swath->height = swath->rows_at_once = request->height;
    if (row_bytes <= row_limit && row_bytes * selection->bands > whole / request->height) {
        swath->bands_at_once = bands;
        swath->rows_at_once = rows_for(row_bytes * bands, size, swath->edge);
    }
    if (row_bytes * swath->bands_at_once > row_limit)
        return cogpu_refuse(error, COGPU_LIMIT,
                            "one row takes %" PRIu64
                            " bytes, more than 1 GiB; choose a part with --window or --band",
                            row_bytes * swath->bands_at_once);
    if (swath->rows_at_once > request->height)
        swath->rows_at_once = request->height;
    swath->bytes = (size_t)(row_bytes * swath->bands_at_once * swath->rows_at_once);
    return COGPU_OK;
}

cogpu_status cogpu_swath_open(const cogpu_selection *selection, cogpu_swath_order order,
                              cogpu_swath *swath, cogpu_error *error) {
    bool alone = order == SWATH_BY_BAND || (selection->image.planar && order == SWATH_ANY_ORDER);
    *swath =
        (cogpu_swath){.chunky = order == SWATH_CHUNKY, .edge = decoded_height(&selection->level)};
    TRY(lay_out(selection, whole_limit, swath_size, alone ? 1 : selection->bands, swath, error));
    return selection->device == COGPU_CPU ? COGPU_OK : open_device(selection, swath, error);
}

static uint64_t stream_size(cogpu_device_kind device) {
    if (device == COGPU_EMU)
        return emu_swath_size;
    return device == COGPU_CUDA ? gpu_swath_size : swath_size;
}

cogpu_status cogpu_swath_open_stream(const cogpu_selection *selection, uint32_t written_height,
                                     cogpu_swath *swath, cogpu_error *error) {
    uint64_t size = stream_size(selection->device);
    uint64_t most_rows = size / (band_row_bytes(selection) * selection->bands);
    *swath = (cogpu_swath){
        .is_stream = true,
        .chunky = !selection->image.planar,
        .edge = common_edge(decoded_height(&selection->level), written_height, most_rows)};
    return lay_out(selection, size, size, selection->bands, swath, error);
}

void cogpu_swath_close(cogpu_swath *swath, const cogpu_selection *selection) {
    cogpu_device_release(selection->request.context, selection->device, selection->device_index,
                         swath->device_memory);
}

/* Rows from `row` on, to an edge where there is one. */
static uint32_t rows_from(const cogpu_swath *swath, uint32_t row) {
    uint64_t begin = (uint64_t)swath->top + row, end = begin + swath->rows_at_once;
    uint64_t bottom = (uint64_t)swath->top + swath->height;
    if (end >= bottom)
        return (uint32_t)(bottom - begin);
    if (swath->rows_at_once >= swath->edge)
        end -= end % swath->edge;
    return (uint32_t)(end - begin);
}

bool cogpu_swath_next(cogpu_swath *swath) {
    swath->row += swath->rows;
    if (swath->row == swath->height) {
        swath->row = 0;
        swath->band += swath->bands;
    }
    swath->bands = swath->bands_at_once;
    if (swath->band == swath->all_bands)
        return false;
    swath->rows = rows_from(swath, swath->row);
    return true;
}

void cogpu_swath_count(const cogpu_result *part, cogpu_result *result) {
    if (result->bad_blocks == 0)
        result->first_bad = part->first_bad;
    result->bad_blocks += part->bad_blocks;
    result->blocks += part->blocks;
    result->sparse_blocks += part->sparse_blocks;
    result->device_blocks += part->device_blocks;
    result->bytes_read += part->bytes_read;
}

cogpu_raster cogpu_swath_raster(const cogpu_swath *swath, const cogpu_selection *selection,
                                void *data) {
    cogpu_raster raster = {.data = data,
                           .type = selection->type,
                           .bands = swath->bands,
                           .width = selection->request.width,
                           .height = swath->rows};
    if (swath->is_stream) {
        raster.device = selection->device;
        raster.device_index = selection->device_index;
    }
    if (swath->chunky) {
        raster.stride_band = (int64_t)cogpu_type_bytes(selection->type);
        raster.stride_x = raster.stride_band * swath->bands;
        raster.stride_y = raster.stride_x * raster.width;
    }
    return raster;
}

cogpu_status cogpu_swath_read(const cogpu_swath *swath, const cogpu_selection *selection,
                              void *data, cogpu_result *result, cogpu_error *error) {
    cogpu_request request = selection->request;
    uint32_t one_band;
    request.y += swath->row;
    request.height = swath->rows;
    if (swath->bands != swath->all_bands) {
        one_band = cogpu_selection_band(selection, swath->band);
        request.bands = &one_band;
        request.band_count = 1;
    }
    cogpu_raster raster = cogpu_swath_raster(swath, selection, data);
    cogpu_result part = {0};
    if (swath->device_memory) {
        raster.data = swath->device_memory;
        raster.device = selection->device;
        raster.device_index = selection->device_index;
    }
    TRY(cogpu_read(selection->file, &request, &raster, &part, error));
    if (result)
        cogpu_swath_count(&part, result);
    if (!swath->device_memory)
        return COGPU_OK;
    uint64_t bytes =
        (uint64_t)swath->bands * swath->rows * request.width * cogpu_type_bytes(selection->type);
    return cogpu_device_download(request.context, selection->device, selection->device_index,
                                 swath->device_memory, bytes, data, error);
}
