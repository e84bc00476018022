/*
 * Memory layout of the write pipeline: how many blocks a batch has, how a slot is laid out, and the
 * one device allocation and the one pinned allocation that all slots share.
 */
#include "base/checked.h"
#include "base/math.h"
#include "gpu/write_slot.h"
#include "kernels/pack/pack_args.h"

enum { BATCH_BLOCKS_MAX = 1024 };
/* Packed bytes of a batch, unless its encoder wants more or a single block has more. */
enum { BATCH_BYTES = 8 << 20 };

static uint64_t round_up(uint64_t bytes, uint64_t multiple) {
    return divide_up(bytes, multiple) * multiple;
}

/* ---- the allocation ------------------------------------------------------------------------ */

/* cuFile wants registered memory to begin at a page. */
uint8_t *cogpu_gpu_memory_first_page(const cogpu_gpu_memory *memory) {
    return (uint8_t *)memory->device + (0 - (uintptr_t)memory->device) % COGPU_GDS_PAGE;
}

uint64_t cogpu_gpu_memory_page_bytes(const cogpu_gpu_memory *memory) {
    const uint8_t *begin = memory->device;
    return memory->device_bytes - (uint64_t)(cogpu_gpu_memory_first_page(memory) - begin);
}

void cogpu_gpu_memory_release(cogpu_gpu *gpu, cogpu_gpu_memory *memory) {
    const cogpu_gds_context context = cogpu_gds_context_of(gpu);
    if (memory->is_registered)
        cogpu_gds_deregister(&context, cogpu_gpu_memory_first_page(memory));
    gpu->calls->release(gpu, memory->device);
    gpu->calls->release_pinned(gpu, memory->pinned);
    *memory = (cogpu_gpu_memory){0};
}

/* ---- sizes of blocks ----------------------------------------------------------------------- */

cogpu_raw_block cogpu_write_raw_block(const cogpu_gpu_writer *writer, const cogpu_block_grid *grid,
                                      const cogpu_new_block *block) {
    const cogpu_write_plan *plan = writer->options.plan;
    const bool is_mask = block->plane == plan->planes;
    const cogpu_gpu_encoder *encoder = cogpu_write_encoder(writer, is_mask);
    size_t bytes = 0;
    const cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, block, &bytes);
    const uint64_t row_bytes = encoding.format.row_bytes;
    const bool has_pixels = !is_mask && plan->predictor != 3 && !cogpu_plan_is_packed(plan);
    const uint64_t capacity = !encoder         ? bytes
                              : encoder->bound ? encoder->bound(bytes, row_bytes)
                                               : plan->max_block_bytes;
    return (cogpu_raw_block){.in_bytes = (uint32_t)bytes,
                             .capacity = (uint32_t)capacity,
                             .step = has_pixels ? (uint32_t)plan->pixel_bytes : 1,
                             .row_bytes = (uint32_t)row_bytes};
}

int cogpu_write_compression_level(const cogpu_gpu_writer *writer, bool is_mask) {
    const cogpu_write_plan *plan = writer->options.plan;
    return is_mask ? plan->mask_codec->default_level : plan->encoding.level;
}

static cogpu_raw_block largest_block(const cogpu_gpu_writer *writer, bool is_mask) {
    const cogpu_write_plan *plan = writer->options.plan;
    const cogpu_block_grid *grid = &plan->levels[0];
    cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, is_mask ? plan->planes : 0);
    return cogpu_write_raw_block(writer, grid, &block);
}

/* Scratch for this many blocks, of pixels or of the mask: the larger of the two. */
static cogpu_status scratch_sizes(const cogpu_gpu_writer *writer, uint32_t blocks, uint64_t *least,
                                  uint64_t *best, cogpu_error *error) {
    cogpu_raw_block *table = cogpu_allocate(blocks * sizeof *table);
    if (!table)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u blocks", blocks);
    *least = *best = 0;
    for (uint32_t is_mask = 0; is_mask <= writer->options.plan->has_mask; is_mask++) {
        const cogpu_gpu_encoder *encoder = cogpu_write_encoder(writer, is_mask);
        uint64_t one = 0, all = 0;
        for (uint32_t i = 0; i < blocks; i++)
            table[i] = largest_block(writer, is_mask);
        if (encoder)
            encoder->scratch(table, blocks, cogpu_write_compression_level(writer, is_mask), &one,
                             &all);
        *least = max_u64(*least, one);
        *best = max_u64(*best, all);
    }
    cogpu_release(table);
    return COGPU_OK;
}

/* ---- layout of a slot ---------------------------------------------------------------------- */

static struct cogpu_write_layout layout_for(const cogpu_gpu_writer *writer, uint32_t blocks,
                                            uint64_t scratch) {
    const cogpu_raw_block pixels = largest_block(writer, false), mask = largest_block(writer, true);
    const uint64_t overhead = writer->has_leaders ? COGPU_BLOCK_OVERHEAD_BYTES : 0;
    const uint64_t page = writer->file ? COGPU_GDS_PAGE : COGPU_GPU_ALIGN;
    const uint64_t page_offset_max = writer->file ? COGPU_GDS_PAGE : 0;
    const uint64_t compacted_bytes =
        cogpu_gpu_align(blocks * (max_u64(pixels.capacity, mask.capacity) + overhead)) +
        page_offset_max;
    struct cogpu_write_layout at = {.blocks = blocks, .scratch_bytes = scratch};
    at.packed_stride = max_u64(writer->pixel_encoder ? cogpu_gpu_align(pixels.in_bytes) : 0,
                               writer->mask_encoder ? cogpu_gpu_align(mask.in_bytes) : 0);
    at.output_stride = cogpu_gpu_align(max_u64(pixels.capacity, mask.capacity));
    at.raw_blocks = cogpu_gpu_align(blocks * sizeof(struct cogpu_pack_block));
    at.order = at.raw_blocks + cogpu_gpu_align(blocks * sizeof(cogpu_raw_block));
    at.encoded = at.order + cogpu_gpu_align(blocks * sizeof(uint32_t));
    at.sizes = at.encoded + cogpu_gpu_align((blocks + 1) * sizeof(struct cogpu_compacted_block));
    at.compacted = round_up(
        at.sizes + cogpu_gpu_align(blocks * sizeof(uint32_t)) + COGPU_GPU_SLACK_BYTES, page);
    at.scratch = at.compacted + blocks * at.packed_stride + COGPU_GPU_SLACK_BYTES;
    at.encoder_output =
        max_u64(at.scratch + cogpu_gpu_align(scratch), at.compacted + compacted_bytes) +
        COGPU_GPU_SLACK_BYTES;
    at.end = round_up(at.encoder_output + blocks * at.output_stride + COGPU_GPU_SLACK_BYTES, page);
    at.pinned_end = at.compacted + compacted_bytes;
    return at;
}

static uint64_t blocks_wanted(const cogpu_gpu_writer *writer) {
    const cogpu_gpu_encoder *encoder = writer->pixel_encoder;
    const uint64_t bytes = encoder && encoder->batch_bytes
                               ? encoder->batch_bytes(cogpu_write_compression_level(writer, false))
                               : BATCH_BYTES;
    const uint64_t blocks = bytes / largest_block(writer, false).in_bytes;
    return min_u64(max_u64(blocks, 1), BATCH_BLOCKS_MAX);
}

/* As many blocks as wanted, or half as many until they fit the budget with the best scratch. A
 * single block makes do with less scratch. */
static cogpu_status choose_layout(cogpu_gpu_writer *writer, cogpu_error *error) {
    const uint64_t share = writer->options.budget_bytes / COGPU_WRITE_SLOTS;
    uint64_t least = 0, best = 0;
    for (uint64_t blocks = blocks_wanted(writer);; blocks /= 2) {
        TRY(scratch_sizes(writer, (uint32_t)blocks, &least, &best, error));
        writer->layout = layout_for(writer, (uint32_t)blocks, best);
        if (writer->layout.end <= share || blocks == 1)
            break;
    }
    if (writer->layout.end > share) {
        const uint64_t excess = cogpu_gpu_align(writer->layout.end - share);
        writer->layout = layout_for(writer, 1, best > least + excess ? best - excess : least);
    }
    if (writer->layout.end > share)
        return cogpu_fail(
            error, COGPU_LIMIT_EXCEEDED,
            "a block needs %llu MiB of device memory, and %llu MiB are allowed: raise "
            "`device_bytes` of the context, or choose smaller blocks",
            (unsigned long long)(COGPU_WRITE_SLOTS * writer->layout.end >> 20),
            (unsigned long long)(writer->options.budget_bytes >> 20));
    return COGPU_OK;
}

/* ---- allocate ------------------------------------------------------------------------------ */

static cogpu_status allocate_memory(cogpu_gpu_writer *writer, cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    cogpu_gpu_memory *memory = writer->memory;
    uint64_t free_bytes = 0, total = 0;
    uint64_t device = COGPU_WRITE_SLOTS * writer->layout.end + writer->options.rows_bytes +
                      (writer->file ? COGPU_GDS_PAGE : 0);
    uint64_t pinned = COGPU_WRITE_SLOTS * writer->layout.pinned_end;
    if (memory->device_bytes >= device && memory->pinned_bytes >= pinned)
        return COGPU_OK;
    device = max_u64(device, memory->device_bytes);
    pinned = max_u64(pinned, memory->pinned_bytes);
    cogpu_gpu_memory_release(gpu, memory);
    TRY(gpu->calls->memory(gpu, &free_bytes, &total, error));
    if (device > free_bytes / 10 * 9)
        return cogpu_fail(
            error, COGPU_OUT_OF_MEMORY,
            "the writer needs %llu MiB of device memory, and %llu of %llu MiB are free: "
            "lower `device_bytes` of the context",
            (unsigned long long)(device >> 20), (unsigned long long)(free_bytes >> 20),
            (unsigned long long)(total >> 20));
    TRY(gpu->calls->allocate(gpu, device, &memory->device, error));
    memory->device_bytes = device;
    TRY(gpu->calls->allocate_pinned(gpu, pinned, &memory->pinned, error));
    memory->pinned_bytes = pinned;
    return COGPU_OK;
}

cogpu_status cogpu_write_open_memory(cogpu_gpu_writer *writer, cogpu_error *error) {
    cogpu_gpu_memory *memory = writer->memory;
    TRY(choose_layout(writer, error));
    TRY(allocate_memory(writer, error));
    writer->device = writer->file ? cogpu_gpu_memory_first_page(memory) : memory->device;
    /* A failure is no error: cuFile then uses bounce buffers of its own. */
    if (writer->file && !memory->is_registered)
        memory->is_registered =
            cogpu_gds_register(&writer->gds_context, cogpu_gpu_memory_first_page(memory),
                               cogpu_gpu_memory_page_bytes(memory), NULL) == COGPU_OK;
    return COGPU_OK;
}

cogpu_status cogpu_gpu_writer_allocate(cogpu_gpu_writer *writer, uint64_t bytes, void **memory,
                                       cogpu_error *error) {
    const uint64_t offset = COGPU_WRITE_SLOTS * writer->layout.end + writer->rows_used;
    const uint64_t left = writer->options.rows_bytes - writer->rows_used;
    if (bytes <= left) {
        *memory = writer->device + offset;
        writer->rows_used += cogpu_gpu_align(bytes) < left ? cogpu_gpu_align(bytes) : bytes;
        return COGPU_OK;
    }
    if (writer->extra_count == COGPU_EXTRA_ALLOCATIONS)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "the writer has too many device allocations");
    TRY(writer->gpu->calls->allocate(writer->gpu, bytes, memory, error));
    writer->extras[writer->extra_count++] = *memory;
    return COGPU_OK;
}
