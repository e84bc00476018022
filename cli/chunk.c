/*
 * Reads a selection chunk by chunk. Chunks end at block edges if possible, so that no block is
 * decoded twice. Memory stays bounded even if a row of blocks is large.
 */
#include "chunk.h"

#include "report.h"

#include <inttypes.h>

static const uint64_t whole_limit = 64 << 20; /* a selection up to this is one chunk */
static const uint64_t chunk_size = 16 << 20;
static const uint64_t gpu_chunk_size = 32 << 20; /* blocks enough for all of a GPU */
static const uint64_t emu_chunk_size = 32 << 10; /* it is for tests, with small images */
static const uint64_t block_row_limit = 256
                                        << 20; /* past this, blocks are decoded more than once */
static const uint64_t row_limit = 1 << 30;

/* The rows that are decoded together; uncompressed blocks can be entered at any row. Sources of a
 * mosaic have blocks of their own: chunks as high as its blocks decode few of them twice. */
static uint32_t decoded_height(const cogpu_selection *selection) {
    const cogpu_level *level = &selection->level;
    return level->compression == 1 && !selection->is_mosaic ? 1 : level->block_height;
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

static uint64_t band_row_bytes(const cogpu_selection *selection) {
    return (uint64_t)selection->request.width * cogpu_type_bytes(selection->type);
}

/* A selection of more than `whole` bytes is cut into pieces of about `size`, of so many bands. */
static cogpu_status lay_out(const cogpu_selection *selection, uint64_t whole, uint64_t size,
                            uint32_t bands, cogpu_chunk *chunk, cogpu_error *error) {
    const cogpu_request *request = &selection->request;
    uint64_t row_bytes = band_row_bytes(selection);
    chunk->all_bands = chunk->bands_at_once = selection->bands;
    chunk->top = request->y;
    chunk->height = chunk->rows_at_once = request->height;
    if (row_bytes <= row_limit && row_bytes * selection->bands > whole / request->height) {
        chunk->bands_at_once = bands;
        chunk->rows_at_once = rows_for(row_bytes * bands, size, chunk->edge);
    }
    if (row_bytes * chunk->bands_at_once > row_limit)
        return cogpu_refuse(error, COGPU_LIMIT_EXCEEDED,
                            "one row needs %" PRIu64
                            " bytes, more than 1 GiB; choose a part with --window or --band",
                            row_bytes * chunk->bands_at_once);
    if (chunk->rows_at_once > request->height)
        chunk->rows_at_once = request->height;
    chunk->bytes = (size_t)(row_bytes * chunk->bands_at_once * chunk->rows_at_once);
    return COGPU_OK;
}

cogpu_status cogpu_chunk_open(const cogpu_selection *selection, cogpu_chunk_order order,
                              cogpu_chunk *chunk, cogpu_error *error) {
    bool alone = order == CHUNK_BY_BAND ||
                 (selection->image.interleave == COGPU_INTERLEAVE_BAND && order == CHUNK_ANY_ORDER);
    *chunk = (cogpu_chunk){.chunky = order == CHUNK_CHUNKY, .edge = decoded_height(selection)};
    return lay_out(selection, whole_limit, chunk_size, alone ? 1 : selection->bands, chunk, error);
}

static uint64_t stream_size(cogpu_device_kind device) {
    if (device == COGPU_DEVICE_EMULATOR)
        return emu_chunk_size;
    return device == COGPU_DEVICE_CUDA ? gpu_chunk_size : chunk_size;
}

cogpu_status cogpu_chunk_open_stream(const cogpu_selection *selection, uint32_t written_height,
                                     cogpu_chunk *chunk, cogpu_error *error) {
    uint64_t size = stream_size(selection->device);
    uint64_t most_rows = size / (band_row_bytes(selection) * selection->bands);
    *chunk =
        (cogpu_chunk){.is_stream = true,
                      .chunky = selection->image.interleave == COGPU_INTERLEAVE_PIXEL,
                      .edge = common_edge(decoded_height(selection), written_height, most_rows)};
    /* The writer uses whole rows of blocks in place, and then has no rows of its own. */
    if (selection->is_mosaic && chunk->edge > most_rows && written_height > 1)
        chunk->edge = written_height;
    return lay_out(selection, size, size, selection->bands, chunk, error);
}

/* Rows from `row` on, to an edge where there is one. */
static uint32_t rows_from(const cogpu_chunk *chunk, uint32_t row) {
    uint64_t begin = (uint64_t)chunk->top + row, end = begin + chunk->rows_at_once;
    uint64_t bottom = (uint64_t)chunk->top + chunk->height;
    if (end >= bottom)
        return (uint32_t)(bottom - begin);
    if (chunk->rows_at_once >= chunk->edge)
        end -= end % chunk->edge;
    return (uint32_t)(end - begin);
}

bool cogpu_chunk_next(cogpu_chunk *chunk) {
    chunk->row += chunk->rows;
    if (chunk->row == chunk->height) {
        chunk->row = 0;
        chunk->band += chunk->bands;
    }
    chunk->bands = chunk->bands_at_once;
    if (chunk->band == chunk->all_bands)
        return false;
    chunk->rows = rows_from(chunk, chunk->row);
    return true;
}

void cogpu_chunk_count(const cogpu_result *part, cogpu_result *result) {
    if (result->bad_blocks == 0 && result->bad_sources == 0)
        result->first_bad = part->first_bad;
    result->bad_blocks += part->bad_blocks;
    if (part->bad_sources > result->bad_sources) /* parts may have the same */
        result->bad_sources = part->bad_sources;
    result->blocks += part->blocks;
    result->sparse_blocks += part->sparse_blocks;
    result->device_blocks += part->device_blocks;
    result->bytes_read += part->bytes_read;
}

cogpu_raster cogpu_chunk_raster(const cogpu_chunk *chunk, const cogpu_selection *selection,
                                void *data) {
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = data,
                           .type = selection->type,
                           .bands = chunk->bands,
                           .width = selection->request.width,
                           .height = chunk->rows};
    if (chunk->is_stream) {
        raster.device = selection->device;
        raster.device_index = selection->device_index;
    }
    if (chunk->chunky) {
        raster.stride_band = (int64_t)cogpu_type_bytes(selection->type);
        raster.stride_x = raster.stride_band * chunk->bands;
        raster.stride_y = raster.stride_x * raster.width;
    }
    return raster;
}

cogpu_status cogpu_chunk_read(const cogpu_chunk *chunk, const cogpu_selection *selection,
                              void *data, cogpu_result *result, cogpu_error *error) {
    cogpu_request request = selection->request;
    uint32_t one_band;
    request.y += chunk->row;
    request.height = chunk->rows;
    if (chunk->bands != chunk->all_bands) {
        one_band = cogpu_selection_band(selection, chunk->band);
        request.bands = &one_band;
        request.band_count = 1;
    }
    cogpu_raster raster = cogpu_chunk_raster(chunk, selection, data);
    cogpu_result part = COGPU_RESULT_INIT;
    TRY(cogpu_read(selection->file, &request, &raster, &part, error));
    if (result)
        cogpu_chunk_count(&part, result);
    return COGPU_OK;
}
