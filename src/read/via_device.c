/*
 * Windows of host memory that a device decodes. Rows are read into device memory a chunk at a time
 * (a sub-read), and copied to the raster while the next chunk is read:
 *
 *     chunk 0   | read          |
 *               |     | download       |
 *     chunk 1                   | read          |      in the memory of chunk 1
 *                               |     | download       |
 *     chunk 2                                   | ...  in the memory of chunk 0, when that is done
 *
 * A chunk ends between two rows of blocks, so that no block is decoded twice. Rows of a chunk go
 * down when their blocks are in device memory, before the chunk is complete.
 */
#include "gpu/download.h"
#include "gpu/slot_pool.h"
#include "read/job.h"

#include "base/checked.h"
#include "base/math.h"

enum { CHUNKS = 2, CHUNKS_LEAST_BYTES = 4 << 20, CHUNK_ALIGN = 256 };

/* Complete rows go down when they have so many bytes. */
enum { DOWNLOAD_BYTES = 4 << 20 };

/* A window while it is read. */
struct via_device {
    struct cogpu_read_job *job;
    struct cogpu_read_window *window;
    uint32_t threads;
    uint64_t row_bytes;  /* of all bands */
    uint32_t chunk_rows; /* at most */
    cogpu_gpu_memory memory;
    cogpu_gpu_download *download;
    cogpu_download_chunk chunks[CHUNKS];
    uint64_t *pixels_left; /* of each row of blocks of the current chunk */
};

/* The chunk that is read. */
struct current_chunk {
    struct via_device *via;
    cogpu_download_chunk *chunk;
    const cogpu_read_plan *plan;
    uint32_t complete; /* rows of blocks, from the first one on */
    uint32_t added;    /* rows of pixels that go down */
};

/* ---- chunks -------------------------------------------------------------------------------- */

/* Of a mask, other blocks than the window's. */
static const cogpu_read_plan *plan_of_decoded(const struct cogpu_read_window *window) {
    return &window->parts[0].plan;
}

static uint64_t bytes_of_row(const struct cogpu_read_window *window) {
    uint64_t samples, bytes;
    return checked_mul(window->plan.width, window->plan.band_count, &samples) &&
                   checked_mul(samples, cogpu_type_bytes(window->raster.type), &bytes)
               ? bytes
               : UINT64_MAX;
}

static uint64_t count_most_rows(const struct cogpu_read_window *window) {
    const uint64_t budget = cogpu_gpu_device_budget(window->parts[0].device) / CHUNKS;
    return budget > CHUNK_ALIGN ? (budget - CHUNK_ALIGN) / bytes_of_row(window) : 0;
}

bool cogpu_can_read_via_device(const struct cogpu_read_window *window) {
    const cogpu_read_plan *plan = plan_of_decoded(window);
    return count_most_rows(window) >= min_u32(plan->height, plan->storage->block_height);
}

/* Rows of the chunk that begins with `row` of the window. */
static uint32_t count_rows(const struct via_device *via, uint32_t row) {
    const cogpu_read_plan *plan = plan_of_decoded(via->window);
    const uint64_t first = (uint64_t)plan->y + row, end = first + via->chunk_rows;
    return plan->height - row <= via->chunk_rows
               ? plan->height - row
               : (uint32_t)(end - end % plan->storage->block_height - first);
}

/* Rows of blocks that `rows` rows of pixels from `y` on touch. */
static uint32_t count_block_rows(const cogpu_read_plan *plan, uint32_t y, uint32_t rows) {
    return (uint32_t)divide_up((uint64_t)y % plan->storage->block_height + rows,
                               plan->storage->block_height);
}

static cogpu_status open_memory(struct via_device *via, cogpu_error *error) {
    const struct cogpu_read_window *window = via->window;
    cogpu_gpu_device *device = window->parts[0].device;
    const uint32_t height = window->plan.height;
    const uint64_t most = count_most_rows(window);
    via->row_bytes = bytes_of_row(window);
    via->chunk_rows = (uint32_t)min_u64(most, height);
    const uint64_t chunk_bytes =
        divide_up(via->chunk_rows * via->row_bytes, CHUNK_ALIGN) * CHUNK_ALIGN;
    const uint64_t bytes = chunk_bytes * (via->chunk_rows < height ? CHUNKS : 1);
    TRY(cogpu_context_reserve_memory(
        via->job->context, device,
        cogpu_slot_pool_size(bytes, CHUNKS_LEAST_BYTES, cogpu_gpu_device_budget(device)),
        cogpu_gpu_download_pinned_bytes(via->threads, bytes), &via->memory, error));
    for (uint32_t i = 0; i < CHUNKS; i++)
        via->chunks[i].rows.data = (uint8_t *)via->memory.device + i * chunk_bytes;
    return COGPU_OK;
}

static cogpu_status open_chunks(struct via_device *via, cogpu_error *error) {
    const struct cogpu_read_window *window = via->window;
    TRY(open_memory(via, error));
    const cogpu_read_plan *plan = plan_of_decoded(window);
    const uint32_t block_rows =
        count_block_rows(plan, plan->storage->block_height - 1, via->chunk_rows);
    via->pixels_left = cogpu_allocate(block_rows * sizeof *via->pixels_left);
    if (!via->pixels_left)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u rows of blocks",
                          block_rows);
    return cogpu_gpu_download_open(window->parts[0].device, via->job->pool, via->threads,
                                   &window->raster, via->memory.pinned, via->memory.pinned_bytes,
                                   &via->download, error);
}

static void close_chunks(struct via_device *via, bool is_abandoned) {
    cogpu_gpu_download_close(via->download, is_abandoned);
    cogpu_release(via->pixels_left);
    cogpu_context_keep_memory(via->job->context, via->window->parts[0].device, &via->memory);
}

/* ---- rows whose blocks are complete -------------------------------------------------------- */

/* The last row of pixels, plus one, of rows of blocks from the first one on. */
static uint32_t end_of_block_rows(const cogpu_read_plan *plan, uint32_t block_rows) {
    const uint32_t block_height = plan->storage->block_height;
    const uint64_t end = (uint64_t)block_rows * block_height - plan->y % block_height;
    return (uint32_t)min_u64(end, plan->height);
}

static void count_pixels(struct current_chunk *current) {
    const cogpu_read_plan *plan = current->plan;
    const uint32_t count = count_block_rows(plan, plan->y, plan->height);
    for (uint32_t i = 0, end = 0, first; i < count; i++) {
        first = end;
        end = end_of_block_rows(plan, i + 1);
        current->via->pixels_left[i] = (uint64_t)(end - first) * plan->width * plan->planes;
    }
}

static cogpu_status add_rows(struct current_chunk *current, uint32_t end, cogpu_error *error) {
    TRY(cogpu_gpu_download_add(current->via->download, current->chunk, current->added,
                               end - current->added, error));
    current->added = end;
    return COGPU_OK;
}

/* Rows of blocks become complete in any order, and go down in theirs. Rows that cannot be added
 * here are added, or fail, with the last ones. */
static void note_block(void *user, const cogpu_gpu_read_task *task) {
    struct current_chunk *current = user;
    const cogpu_read_plan *plan = current->plan;
    const uint32_t count = count_block_rows(plan, plan->y, plan->height);
    const uint32_t row = (plan->y % plan->storage->block_height + task->block.target_y) /
                         plan->storage->block_height;
    uint64_t *pixels_left = current->via->pixels_left;
    pixels_left[row] -= (uint64_t)task->block.width * task->block.height;
    while (current->complete < count && pixels_left[current->complete] == 0)
        current->complete++;
    const uint32_t end = current->complete ? end_of_block_rows(plan, current->complete) : 0;
    if ((end - current->added) * current->via->row_bytes >= DOWNLOAD_BYTES)
        (void)add_rows(current, end, NULL);
}

/* ---- the window ---------------------------------------------------------------------------- */

/* Reads rows into device memory. Sub-reads other than blocks write a row more than once. */
static cogpu_status read_chunk(struct via_device *via, struct cogpu_read_window *part,
                               cogpu_download_chunk *chunk, cogpu_share share, cogpu_error *error) {
    struct cogpu_read_job *job = via->job;
    struct current_chunk current = {.via = via, .chunk = chunk, .plan = &part->plan};
    const cogpu_gpu_read_observer observer = {note_block, &current};
    if (part->method == COGPU_READ_BLOCKS && !part->mask) {
        count_pixels(&current);
        job->observer = &observer;
    }
    cogpu_status status = cogpu_read_part(job, part, share, via->window->result, error);
    job->observer = NULL;
    if (status == COGPU_OK && current.added < part->plan.height)
        status = add_rows(&current, part->plan.height, error);
    return status;
}

static cogpu_status read_rows(struct via_device *via, cogpu_download_chunk *chunk, uint32_t row,
                              uint32_t rows, cogpu_error *error) {
    const struct cogpu_read_window *window = via->window;
    const cogpu_read_plan *plan = plan_of_decoded(window);
    struct cogpu_read_window part =
        cogpu_window_part(&window->parts[0], plan->x, plan->y + row, plan->width, rows);
    TRY(cogpu_gpu_download_wait(via->download, chunk, error));
    part.raster.data = chunk->rows.data;
    cogpu_gpu_download_layout(&window->raster, &part.raster);
    chunk->rows = part.raster;
    chunk->first_row = row;
    cogpu_meter *meter = &via->window->meter;
    return read_chunk(via, &part, chunk,
                      cogpu_share_of_rows(meter, 0, meter->total, row, rows, plan->height), error);
}

static cogpu_status read_chunks(struct via_device *via, cogpu_error *error) {
    const uint32_t height = via->window->plan.height;
    uint32_t number = 0;
    TRY(open_chunks(via, error));
    for (uint32_t row = 0, rows; row < height; row += rows) {
        rows = count_rows(via, row);
        TRY(read_rows(via, &via->chunks[number++ % CHUNKS], row, rows, error));
    }
    for (uint32_t i = 0; i < CHUNKS; i++)
        TRY(cogpu_gpu_download_wait(via->download, &via->chunks[i], error));
    return COGPU_OK;
}

cogpu_status cogpu_read_via_device(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                   cogpu_error *error) {
    struct via_device via = {.job = job, .window = window, .threads = 1};
    if (job->pool)
        via.threads = min_u32(job->threads, cogpu_pool_threads(job->pool));
    cogpu_status status = read_chunks(&via, error);
    close_chunks(&via, status != COGPU_OK);
    return status;
}
