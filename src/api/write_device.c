/*
 * A device as an engine of the writer: takes rows of a swath and of levels, which lie on it or are
 * brought there, hands them to the device's writer (gpu_write.c), and gives what comes of it to the
 * file, unless that finds its way there by itself. Where a codec has no encoder there, its blocks
 * come as they were cut, and go the host's way from there on (write_blocks.c). Or rows of a device
 * go to the host's engine.
 */
#include "api/writer.h"

#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_shrink.h"

/* What rows of a device take on their way to the host. */
enum { DOWN_BYTES = 16 << 20 };

static bool has(const cogpu_writer *writer, const cogpu_raster *rows) {
    return rows->device == writer->device && rows->device_index == writer->device_index;
}

static cogpu_status allocate(cogpu_writer *writer, uint64_t bytes, void **memory,
                             cogpu_error *error) {
    return cogpu_gpu_writer_allocate(writer->gpu_writer, bytes, memory, error);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Rows of a raster from `first` on. */
static cogpu_raster rows_of(const cogpu_raster *raster, uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = (uint8_t *)rows.data + (int64_t)first * rows.stride_y;
    rows.height = count;
    return rows;
}

static cogpu_gpu *gpu_of(const cogpu_writer *writer) {
    return cogpu_gpu_reader_gpu(writer->opened);
}

static cogpu_status move_rows(cogpu_writer *writer, const cogpu_raster *from,
                              const cogpu_raster *to, uint32_t rows, cogpu_error *error) {
    return cogpu_gpu_move_rows(gpu_of(writer), from, to, rows,
                               cogpu_gpu_writer_stream(writer->gpu_writer), error);
}

/* Rows that the host has, packed, through pinned memory. */
static cogpu_status bring_up(cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                             const cogpu_raster *to, uint32_t count, cogpu_error *error) {
    const size_t sample = cogpu_type_bytes(from->type);
    const bool is_planar = to->stride_band != (int64_t)sample && from->bands > 1;
    const uint64_t row_bytes = (uint64_t)from->width * sample * (is_planar ? 1 : from->bands);
    const uint64_t all_bytes = row_bytes * (is_planar ? from->bands : 1);
    for (uint32_t done = 0, rows; done < count; done += rows) {
        uint8_t *pinned = NULL;
        uint64_t room = 0;
        void *device = NULL;
        TRY(cogpu_gpu_writer_lend(writer->gpu_writer, &pinned, &room, error));
        rows = room / all_bytes < count - done ? (uint32_t)(room / all_bytes) : count - done;
        cogpu_writer_gather(writer, from, first + done, rows, is_planar, (size_t)(rows * row_bytes),
                            pinned);
        TRY(cogpu_gpu_writer_upload(writer->gpu_writer, rows * all_bytes, &device, error));
        cogpu_raster packed = *to;
        packed.data = device;
        packed.stride_y = (int64_t)row_bytes;
        packed.stride_x = (int64_t)(is_planar ? sample : sample * from->bands);
        packed.stride_band = (int64_t)(is_planar ? rows * row_bytes : sample);
        cogpu_raster target = rows_of(to, done, rows);
        TRY(move_rows(writer, &packed, &target, rows, error));
    }
    return COGPU_OK;
}

static cogpu_status gather_rows(cogpu_writer *writer, const cogpu_raster *from, uint32_t first,
                                const cogpu_raster *level_rows, uint32_t held, uint32_t count,
                                cogpu_error *error) {
    cogpu_raster to = rows_of(level_rows, held, count);
    if (!has(writer, from))
        return bring_up(writer, from, first, &to, count, error);
    cogpu_raster rows = rows_of(from, first, count);
    return move_rows(writer, &rows, &to, count, error);
}

static cogpu_status gather(cogpu_writer *writer, const cogpu_raster *rows, const cogpu_raster *mask,
                           uint32_t first, uint32_t count, uint32_t held, cogpu_error *error) {
    const struct cogpu_new_level *level = &writer->levels[0];
    TRY(gather_rows(writer, rows, first, &level->rows, held, count, error));
    return level->held_mask ? gather_rows(writer, mask, first, &level->mask, held, count, error)
                            : COGPU_OK;
}

static cogpu_status slide(cogpu_writer *writer, const struct cogpu_new_level *level, uint32_t from,
                          uint32_t count, cogpu_error *error) {
    cogpu_raster rows = rows_of(&level->rows, from, count);
    TRY(move_rows(writer, &rows, &level->rows, count, error));
    if (!level->held_mask)
        return COGPU_OK;
    rows = rows_of(&level->mask, from, count);
    return move_rows(writer, &rows, &level->mask, count, error);
}

static cogpu_status shrink(cogpu_writer *writer, const struct cogpu_new_level *level,
                           uint32_t count, cogpu_error *error) {
    const struct cogpu_new_level *next = level + 1;
    const uint32_t at_hand = level->end - level->first;
    cogpu_raster from = cogpu_level_rows(level, &level->rows, level->first, at_hand);
    cogpu_raster from_mask = cogpu_level_rows(level, &level->mask, level->first, at_hand);
    cogpu_raster to = cogpu_level_rows(next, &next->rows, level->shrunk, count);
    cogpu_raster to_mask = cogpu_level_rows(next, &next->mask, level->shrunk, count);
    bool has_mask = writer->plan.has_mask;
    return cogpu_gpu_shrink(gpu_of(writer), &level->shrink, &from, has_mask ? &from_mask : NULL,
                            level->first, level->shrunk, &to, has_mask ? &to_mask : NULL,
                            cogpu_gpu_writer_stream(writer->gpu_writer), error);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static cogpu_status add_row(cogpu_writer *writer, struct cogpu_new_level *level, uint32_t row,
                            cogpu_error *error) {
    return cogpu_gpu_writer_add_row(writer->gpu_writer, level, level->grid, row, &level->rows,
                                    writer->plan.has_mask ? &level->mask : NULL, level->first,
                                    error);
}

/* Blocks that the host has to encode get theirs when they leave the line. */
static cogpu_status place(void *user, const cogpu_gpu_brought *batch, bool *is_straight,
                          cogpu_error *error) {
    cogpu_writer *writer = user;
    return cogpu_gpu_writer_leaves_encoding(writer->gpu_writer)
               ? COGPU_OK
               : cogpu_writer_place_all(writer, batch, is_straight, error);
}

static cogpu_status leave(void *user, const cogpu_gpu_brought *batch, cogpu_error *error) {
    cogpu_writer *writer = user;
    return cogpu_gpu_writer_leaves_encoding(writer->gpu_writer)
               ? cogpu_writer_add_cut(writer, batch, error)
               : cogpu_writer_give_all(writer, batch, error);
}

static cogpu_status drain(cogpu_writer *writer, cogpu_error *error) {
    TRY(cogpu_gpu_writer_drain(writer->gpu_writer, error));
    return cogpu_writer_drain(writer, error);
}

/* ---- the engine ---------------------------------------------------------------------------- */

static void close_engine(cogpu_writer *writer) {
    cogpu_gpu_writer_close(writer->gpu_writer);
    cogpu_context_keep(writer->context, writer->opened, &writer->gpu_memory);
}

const cogpu_engine cogpu_device_engine = {has,   allocate, gather, shrink,
                                          slide, add_row,  drain,  close_engine};

/* For rows of all levels but the first, which are used where they lie as far as they can. */
static uint64_t bytes_for_rows(const cogpu_writer *writer) {
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < writer->plan.level_count; i++)
        bytes += cogpu_level_bytes(&writer->plan, &writer->levels[i]) +
                 cogpu_level_mask_bytes(&writer->plan, &writer->levels[i]) + 2 * COGPU_GPU_ALIGN;
    return bytes;
}

cogpu_status cogpu_writer_open_engine(cogpu_writer *writer, const cogpu_raster *rows,
                                      cogpu_error *error) {
    cogpu_gpu_writer_options options = {.plan = &writer->plan,
                                        .rows_bytes = bytes_for_rows(writer),
                                        .out = writer->out,
                                        .end = &writer->end,
                                        .direct_bytes = &writer->written.direct_bytes,
                                        .pool = writer->pool,
                                        .seats = writer->seat_count,
                                        .place = place,
                                        .leave = leave,
                                        .user = writer};
    if (writer->device == COGPU_CPU) {
        writer->device = rows->device;
        writer->device_index = rows->device_index;
    }
    writer->engine = &cogpu_host_engine;
    if (writer->device == COGPU_CPU)
        return COGPU_OK;
    TRY(cogpu_context_device(writer->context, writer->device, writer->device_index, &writer->opened,
                             error));
    options.budget = writer->context->device_bytes;
    writer->gpu_memory = cogpu_context_kept(writer->context, writer->opened);
    cogpu_status status = cogpu_gpu_writer_open(gpu_of(writer), &options, &writer->gpu_memory,
                                                &writer->gpu_writer, error);
    if (status == COGPU_OK)
        writer->engine = &cogpu_device_engine;
    else
        cogpu_context_keep(writer->context, writer->opened, &writer->gpu_memory);
    return status == COGPU_UNSUPPORTED || status == COGPU_LIMIT ? COGPU_OK : status;
}

/* ---- rows of a device for the host --------------------------------------------------------- */

/* A raster of so many rows, in memory of the host. */
static cogpu_raster packed_rows(const cogpu_raster *raster, uint32_t rows, uint8_t *memory) {
    const int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    return (cogpu_raster){.data = memory,
                          .type = raster->type,
                          .bands = raster->bands,
                          .height = rows,
                          .width = raster->width,
                          .stride_band = size * raster->width * rows,
                          .stride_y = size * raster->width,
                          .stride_x = size};
}

/* Rows of a raster, wherever it lies, as rows of the host. */
static cogpu_status rows_on_host(cogpu_writer *writer, const cogpu_raster *raster, uint32_t first,
                                 uint32_t count, uint8_t *memory, cogpu_raster *rows,
                                 cogpu_error *error) {
    cogpu_gpu_reader *opened = NULL;
    *rows = *raster;
    if (!raster->data) /* there is no mask */
        return COGPU_OK;
    *rows = rows_of(raster, first, count);
    if (raster->device == COGPU_CPU)
        return COGPU_OK;
    TRY(cogpu_context_device(writer->context, raster->device, raster->device_index, &opened,
                             error));
    *rows = packed_rows(raster, count, memory);
    return cogpu_gpu_bring_down(cogpu_gpu_reader_gpu(opened), raster, first, count, memory, error);
}

cogpu_status cogpu_writer_take_down(cogpu_writer *writer, const cogpu_raster *rows,
                                    const cogpu_raster *mask, cogpu_error *error) {
    const uint64_t row_bytes =
        (uint64_t)rows->width * rows->bands * cogpu_type_bytes(rows->type) + rows->width;
    const uint32_t most = (uint32_t)(DOWN_BYTES / row_bytes > 0 ? DOWN_BYTES / row_bytes : 1);
    const uint32_t piece = most < rows->height ? most : rows->height;
    uint8_t *memory = cogpu_allocate((size_t)(piece * row_bytes));
    cogpu_status status =
        memory ? COGPU_OK : cogpu_fail(error, COGPU_MEMORY, "out of memory for %u rows", piece);
    for (uint32_t y = 0, count; status == COGPU_OK && y < rows->height; y += count) {
        uint8_t *mask_memory = memory + piece * (row_bytes - rows->width);
        cogpu_raster part, mask_part;
        count = piece < rows->height - y ? piece : rows->height - y;
        status = rows_on_host(writer, rows, y, count, memory, &part, error);
        if (status == COGPU_OK)
            status = rows_on_host(writer, mask, y, count, mask_memory, &mask_part, error);
        if (status == COGPU_OK)
            status = cogpu_writer_take(writer, &part, &mask_part, error);
    }
    cogpu_release(memory);
    return status;
}
