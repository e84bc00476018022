/*
 * Batches of the GPU write pipeline: see write_pipeline.h for the steps and write_pipeline.md for a
 * diagram. Only next_sized and next_finished wait for the device, and the encoder of nvJPEG.
 *
 * cuFile wants bytes as far behind a page boundary in device memory as they are in the file. So
 * with cuFile the file offset of a batch must be known before it is compacted, and all batches
 * before it must have theirs: the caller pulls them between encode_batch and compact_batch.
 */
#include "gpu/write_slot.h"
#include "kernels/pack/pack_args.h"

#include <string.h>

/* ---- open and close ------------------------------------------------------------------------ */

static cogpu_status allocate_tables(const cogpu_gpu_writer *writer, struct cogpu_write_slot *slot,
                                    cogpu_error *error) {
    const uint64_t requests = COGPU_GDS_WRITES(writer->layout.pinned_end);
    slot->blocks = cogpu_allocate(writer->layout.blocks * sizeof *slot->blocks);
    if (writer->file) {
        slot->requests = cogpu_allocate(requests * sizeof *slot->requests);
        slot->unwritten = cogpu_allocate((requests + 2) * sizeof *slot->unwritten);
    }
    if (!slot->blocks || (writer->file && (!slot->requests || !slot->unwritten)))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u blocks",
                          writer->layout.blocks);
    return COGPU_OK;
}

static cogpu_status open_slot(cogpu_gpu_writer *writer, uint32_t number, cogpu_error *error) {
    const cogpu_gpu_driver *calls = writer->gpu->calls;
    const struct cogpu_write_layout *at = &writer->layout;
    struct cogpu_write_slot *slot = &writer->slots[number];
    slot->device = writer->device + number * at->end;
    slot->pinned = (uint8_t *)writer->memory->pinned + number * at->pinned_end;
    /* Compaction looks at the first entries of this table, and some of them have no block. */
    memset(slot->pinned + at->raw_blocks, 0, at->order - at->raw_blocks);
    TRY(allocate_tables(writer, slot, error));
    TRY(calls->event_open(writer->gpu, &slot->packed, error));
    TRY(calls->event_open(writer->gpu, &slot->sized, error));
    TRY(calls->event_open(writer->gpu, &slot->copied, error));
    return calls->stream_open(writer->gpu, false, &slot->stream, error);
}

/* Ways to the output that skip the slot's pinned memory. */
static void open_direct_ways(cogpu_gpu_writer *writer) {
    cogpu_gpu *gpu = writer->gpu;
    const cogpu_gpu_writer_options *options = &writer->options;
    writer->is_buffer_pinned =
        options->buffer && gpu->calls->is_pinned(gpu, options->buffer, options->buffer_bytes);
    writer->gds_context = cogpu_gds_context_of(gpu);
    if (options->file_descriptor >= 0 && cogpu_gds_supports(gpu))
        (void)cogpu_gds_file_open(options->file_descriptor, &writer->file, NULL);
}

static cogpu_status open_writer(cogpu_gpu_writer *writer, cogpu_error *error) {
    const cogpu_write_plan *plan = writer->options.plan;
    const cogpu_new_block block = cogpu_plan_new_block(plan, &plan->levels[0], 0, 0, 0);
    if (cogpu_plan_block_bytes(plan, &plan->levels[0], &block) > COGPU_GPU_BLOCK_BYTES_MAX / 2)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "blocks are too large for the device");
    if (!writer->needs_cpu_encoding)
        open_direct_ways(writer);
    TRY(cogpu_write_open_memory(writer, error));
    TRY(cogpu_write_open_rows(writer, error));
    for (uint32_t i = 0; i < COGPU_WRITE_SLOTS; i++)
        TRY(open_slot(writer, i, error));
    return COGPU_OK;
}

/* NULL if the CPU encodes. */
static const cogpu_gpu_encoder *open_encoder(cogpu_gpu *gpu, const cogpu_write_plan *plan,
                                             void **state) {
    const cogpu_gpu_encoder *encoder = cogpu_gpu_encoder_of(gpu, plan->codec->compression);
    bool is_usable =
        encoder && (!encoder->open || encoder->open(gpu, &plan->encoding, state, NULL) == COGPU_OK);
    return is_usable ? encoder : NULL;
}

/* A batch holds blocks of pixels and of the mask. So the CPU encodes both if the device has no
 * encoder for one of them. */
static void choose_encoders(cogpu_gpu_writer *writer) {
    const cogpu_write_plan *plan = writer->options.plan;
    const cogpu_gpu_encoder *mask_encoder =
        cogpu_gpu_encoder_of(writer->gpu, plan->mask_codec->compression);
    bool lacks_mask_encoder = plan->has_mask && !mask_encoder;
    if (!lacks_mask_encoder)
        writer->pixel_encoder = open_encoder(writer->gpu, plan, &writer->encoder_state);
    writer->needs_cpu_encoding =
        lacks_mask_encoder ||
        (!writer->pixel_encoder && plan->codec->compression != COMPRESSION_NONE);
    if (!writer->needs_cpu_encoding) {
        writer->has_leaders = plan->is_cog;
        writer->mask_encoder = mask_encoder;
    }
}

cogpu_status cogpu_gpu_writer_open(cogpu_gpu *gpu, const cogpu_gpu_writer_options *options,
                                   cogpu_gpu_memory *memory, cogpu_gpu_writer **out,
                                   cogpu_error *error) {
    cogpu_gpu_writer *writer = cogpu_allocate(sizeof *writer);
    *out = NULL;
    if (!writer)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a writer");
    *writer = (cogpu_gpu_writer){.gpu = gpu, .options = *options, .memory = memory};
    choose_encoders(writer);
    cogpu_status status = open_writer(writer, error);
    if (status == COGPU_OK)
        *out = writer;
    else
        cogpu_gpu_writer_close(writer);
    return status;
}

static void close_slot(cogpu_gpu *gpu, struct cogpu_write_slot *slot) {
    const cogpu_gpu_driver *calls = gpu->calls;
    uint32_t failed;
    (void)cogpu_gds_wait(slot->flight, &failed, NULL);
    if (slot->stream) {
        (void)calls->finish_stream(gpu, slot->stream, NULL);
        calls->stream_close(gpu, slot->stream);
    }
    calls->event_close(gpu, slot->packed);
    calls->event_close(gpu, slot->sized);
    calls->event_close(gpu, slot->copied);
    cogpu_release(slot->blocks);
    cogpu_release(slot->requests);
    cogpu_release(slot->unwritten);
}

void cogpu_gpu_writer_close(cogpu_gpu_writer *writer) {
    if (!writer)
        return;
    cogpu_gpu *gpu = writer->gpu;
    cogpu_gpu_writer_wait_rows(writer);
    cogpu_write_close_rows(writer);
    for (uint32_t i = 0; i < COGPU_WRITE_SLOTS; i++)
        close_slot(gpu, &writer->slots[i]);
    cogpu_gds_file_close(writer->file);
    for (uint32_t i = 0; i < writer->extra_count; i++)
        gpu->calls->release(gpu, writer->extras[i]);
    if (writer->encoder_state)
        writer->pixel_encoder->close(writer->encoder_state);
    cogpu_release(writer);
}

bool cogpu_gpu_writer_needs_cpu_encoding(const cogpu_gpu_writer *writer) {
    return writer->needs_cpu_encoding;
}

bool cogpu_gpu_writer_uses_cufile(const cogpu_gpu_writer *writer) {
    return writer->file;
}

bool cogpu_gpu_writer_reaches_buffer(const cogpu_gpu_writer *writer) {
    return writer->is_buffer_pinned;
}

/* ---- pack ---------------------------------------------------------------------------------- */

static uint32_t block_count(const struct cogpu_write_slot *slot) {
    return slot->pixel_blocks + slot->mask_blocks;
}

static struct cogpu_write_slot *slot_of(cogpu_gpu_writer *writer, uint64_t batch) {
    return &writer->slots[batch % COGPU_WRITE_SLOTS];
}

static const struct cogpu_write_slot *open_batch(const cogpu_gpu_writer *writer) {
    return &writer->slots[writer->compacted % COGPU_WRITE_SLOTS];
}

bool cogpu_gpu_writer_is_full(const cogpu_gpu_writer *writer) {
    return block_count(open_batch(writer)) == writer->layout.blocks;
}

bool cogpu_gpu_writer_has_blocks(const cogpu_gpu_writer *writer) {
    return block_count(open_batch(writer)) > 0;
}

/* Enters a block into the tables of the slot: how it is packed, and how it is encoded. */
static void add_block(const cogpu_gpu_writer *writer, struct cogpu_write_slot *slot,
                      const cogpu_block_grid *grid, const cogpu_new_block *block,
                      uint32_t first_row) {
    const struct cogpu_write_layout *at = &writer->layout;
    const cogpu_write_plan *plan = writer->options.plan;
    const bool is_mask = block->plane == plan->planes;
    const bool is_encoded = cogpu_write_encoder(writer, is_mask);
    const uint32_t number = is_mask ? at->blocks - ++slot->mask_blocks : slot->pixel_blocks++;
    cogpu_raw_block raw = cogpu_write_raw_block(writer, grid, block);
    raw.in = at->compacted + number * at->packed_stride;
    raw.out = at->encoder_output + number * at->output_stride;
    ((uint32_t *)(void *)(slot->pinned + at->order))[block_count(slot) - 1] = number;
    ((cogpu_raw_block *)(void *)(slot->pinned + at->raw_blocks))[number] = raw;
    ((struct cogpu_pack_block *)(void *)slot->pinned)[number] =
        cogpu_gpu_pack_block_of(plan, grid, block, first_row, is_encoded ? raw.in : raw.out,
                                is_encoded ? COGPU_GPU_TO_ENCODE : raw.in_bytes);
}

/* Packs blocks of one kind that were added since, on the stream of the rows. */
static cogpu_status launch_pack(cogpu_gpu_writer *writer, struct cogpu_write_slot *slot,
                                const struct cogpu_gpu_packing *packing, uint32_t first,
                                uint32_t count, cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    struct cogpu_pack_block *blocks = (struct cogpu_pack_block *)(void *)slot->pinned + first;
    struct cogpu_pack_block *on_device = (struct cogpu_pack_block *)(void *)slot->device + first;
    uint32_t *sizes = (uint32_t *)(void *)(slot->device + writer->layout.sizes) + first;
    if (count == 0)
        return COGPU_OK;
    TRY(gpu->calls->copy_up(gpu, on_device, blocks, count * sizeof *blocks, writer->stream, error));
    return cogpu_gpu_pack(gpu, packing, on_device, blocks, count, slot->device, sizes,
                          writer->stream, error);
}

cogpu_status cogpu_gpu_writer_pack_blocks(cogpu_gpu_writer *writer, const cogpu_gpu_block_row *row,
                                          uint64_t *next, cogpu_error *error) {
    const cogpu_write_plan *plan = writer->options.plan;
    const uint32_t kinds = plan->planes + plan->has_mask;
    const uint64_t all = (uint64_t)row->grid->across * kinds;
    struct cogpu_write_slot *slot = slot_of(writer, writer->compacted);
    const uint32_t pixels = slot->pixel_blocks, masks = slot->mask_blocks;
    struct cogpu_gpu_packing packing;
    TRY(cogpu_gpu_describe_packing(plan, row->grid, row->pixels, row->mask, &packing, error));
    for (; *next < all && block_count(slot) < writer->layout.blocks; ++*next) {
        cogpu_gpu_batch_block *added = &slot->blocks[block_count(slot)];
        added->level = row->level;
        added->block = cogpu_plan_new_block(plan, row->grid, row->row, (uint32_t)(*next / kinds),
                                            (uint32_t)(*next % kinds));
        add_block(writer, slot, row->grid, &added->block, row->first_row);
    }
    TRY(launch_pack(writer, slot, &packing, pixels, slot->pixel_blocks - pixels, error));
    return launch_pack(writer, slot, &packing, writer->layout.blocks - slot->mask_blocks,
                       slot->mask_blocks - masks, error);
}

/* ---- encode and compact -------------------------------------------------------------------- */

/* Blocks of one kind, at the front of the tables or at their end. */
static cogpu_gpu_encoding encoding_of(const cogpu_gpu_writer *writer,
                                      const struct cogpu_write_slot *slot, uint32_t first,
                                      uint32_t count) {
    const struct cogpu_write_layout *at = &writer->layout;
    return (cogpu_gpu_encoding){
        .gpu = writer->gpu,
        .stream = slot->stream,
        .blocks = (cogpu_raw_block *)(void *)(slot->pinned + at->raw_blocks) + first,
        .count = count,
        .device_blocks = (cogpu_raw_block *)(void *)(slot->device + at->raw_blocks) + first,
        .decoded = slot->device,
        .slots = slot->device,
        .sizes = (uint32_t *)(void *)(slot->device + at->sizes) + first,
        .host_sizes = (uint32_t *)(void *)(slot->pinned + at->sizes) + first,
        .scratch = slot->device + at->scratch,
        .scratch_bytes = at->scratch_bytes,
        .kept = writer->encoder_state};
}

static cogpu_status encode_blocks(const cogpu_gpu_writer *writer,
                                  const struct cogpu_write_slot *slot, bool is_mask,
                                  cogpu_error *error) {
    const cogpu_gpu_encoder *encoder = cogpu_write_encoder(writer, is_mask);
    const uint32_t count = is_mask ? slot->mask_blocks : slot->pixel_blocks;
    cogpu_gpu_encoding encoding =
        encoding_of(writer, slot, is_mask ? writer->layout.blocks - count : 0, count);
    encoding.level = cogpu_write_compression_level(writer, is_mask);
    return encoder && count > 0 ? encoder->encode(&encoding, error) : COGPU_OK;
}

cogpu_status cogpu_gpu_writer_encode_batch(cogpu_gpu_writer *writer, cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    const struct cogpu_write_layout *at = &writer->layout;
    struct cogpu_write_slot *slot = slot_of(writer, writer->compacted);
    TRY(calls->record(gpu, slot->packed, writer->stream, error));
    TRY(calls->wait_event(gpu, slot->stream, slot->packed, error));
    TRY(calls->copy_up(gpu, slot->device + at->raw_blocks, slot->pinned + at->raw_blocks,
                       at->encoded - at->raw_blocks, slot->stream, error));
    TRY(encode_blocks(writer, slot, false, error));
    return encode_blocks(writer, slot, true, error);
}

static uint8_t *compacted_bytes(const cogpu_gpu_writer *writer,
                                const struct cogpu_write_slot *slot) {
    return slot->device + writer->layout.compacted + slot->page_offset;
}

cogpu_status cogpu_gpu_writer_compact_batch(cogpu_gpu_writer *writer, uint64_t file_offset,
                                            cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    const struct cogpu_write_layout *at = &writer->layout;
    struct cogpu_write_slot *slot = slot_of(writer, writer->compacted);
    const cogpu_gpu_encoding all = encoding_of(writer, slot, 0, block_count(slot));
    slot->page_offset = writer->file ? file_offset % COGPU_GDS_PAGE : 0;
    slot->batch = (cogpu_gpu_write_batch){
        .blocks = slot->blocks,
        .count = all.count,
        .encoded = (const struct cogpu_compacted_block *)(void *)(slot->pinned + at->encoded),
        .data = slot->pinned + at->compacted};
    TRY(cogpu_gpu_compact(&all, (uint32_t *)(void *)(slot->device + at->order), writer->has_leaders,
                          (struct cogpu_compacted_block *)(void *)(slot->device + at->encoded),
                          compacted_bytes(writer, slot), error));
    TRY(gpu->calls->copy_down(gpu, slot->pinned + at->encoded, slot->device + at->encoded,
                              (all.count + 1) * sizeof(struct cogpu_compacted_block), slot->stream,
                              error));
    writer->compacted++;
    return gpu->calls->record(gpu, slot->sized, slot->stream, error);
}

/* ---- out of the device --------------------------------------------------------------------- */

cogpu_status cogpu_gpu_writer_next_sized(cogpu_gpu_writer *writer, uint32_t in_flight,
                                         cogpu_gpu_write_batch **batch, cogpu_error *error) {
    *batch = NULL;
    if (writer->sized + in_flight >= writer->compacted)
        return COGPU_OK;
    struct cogpu_write_slot *slot = slot_of(writer, writer->sized++);
    TRY(writer->gpu->calls->finish_event(writer->gpu, slot->sized, error));
    slot->batch.bytes = slot->batch.encoded[slot->batch.count].at;
    *batch = &slot->batch;
    return COGPU_OK;
}

static cogpu_status copy_range(const cogpu_gpu_writer *writer, const struct cogpu_write_slot *slot,
                               uint64_t from, uint64_t bytes, uint8_t *to, cogpu_error *error) {
    return bytes == 0 ? COGPU_OK
                      : writer->gpu->calls->copy_down(writer->gpu, to,
                                                      compacted_bytes(writer, slot) + from, bytes,
                                                      slot->stream, error);
}

cogpu_status cogpu_gpu_writer_copy_batch(cogpu_gpu_writer *writer, cogpu_gpu_write_batch *batch,
                                         uint8_t *to, cogpu_error *error) {
    struct cogpu_write_slot *slot = (struct cogpu_write_slot *)(void *)batch;
    batch->target = to ? COGPU_BATCH_TO_BUFFER : COGPU_BATCH_TO_HOST;
    to = to ? to : slot->pinned + writer->layout.compacted;
    TRY(copy_range(writer, slot, 0, batch->bytes, to, error));
    return writer->gpu->calls->record(writer->gpu, slot->copied, slot->stream, error);
}

/* Adds a range to those that the host has to write. */
static void add_unwritten(struct cogpu_write_slot *slot, uint64_t offset, uint64_t bytes) {
    if (bytes > 0)
        slot->unwritten[slot->batch.unwritten_count++] = (cogpu_span){offset, bytes};
}

static cogpu_status copy_unwritten(const cogpu_gpu_writer *writer,
                                   const struct cogpu_write_slot *slot, uint64_t from,
                                   uint64_t bytes, cogpu_error *error) {
    return copy_range(writer, slot, from, bytes, slot->pinned + writer->layout.compacted + from,
                      error);
}

/* Whole pages go by cuFile. Less than a page at both ends is copied down. */
cogpu_status cogpu_gpu_writer_write_batch(cogpu_gpu_writer *writer, cogpu_gpu_write_batch *batch,
                                          cogpu_error *error) {
    struct cogpu_write_slot *slot = (struct cogpu_write_slot *)(void *)batch;
    const cogpu_span span = {batch->file_offset, batch->bytes};
    batch->target = COGPU_BATCH_TO_FILE;
    slot->split = cogpu_gds_plan_writes(writer->file, span,
                                        (uint64_t)(compacted_bytes(writer, slot) - writer->device),
                                        slot->requests);
    const cogpu_gds_work work = {.memory = writer->device,
                                 .memory_bytes = cogpu_gpu_memory_page_bytes(writer->memory),
                                 .requests = slot->requests,
                                 .count = slot->split.count,
                                 .context = &writer->gds_context,
                                 .pool = writer->options.pool,
                                 .workers = writer->options.workers};
    /* A failure leaves all requests undone: the host writes them in the end. */
    (void)cogpu_gds_write(&work, &slot->flight, NULL);
    TRY(copy_unwritten(writer, slot, 0, slot->split.head, error));
    return copy_unwritten(writer, slot, batch->bytes - slot->split.tail, slot->split.tail, error);
}

/* Waits for cuFile, and copies down what it did not write. */
static cogpu_status finish_file_write(const cogpu_gpu_writer *writer, struct cogpu_write_slot *slot,
                                      cogpu_error *error) {
    cogpu_gpu_write_batch *batch = &slot->batch;
    cogpu_gds_flight *flight = slot->flight;
    uint32_t failed = 0;
    slot->flight = NULL;
    TRY(cogpu_gds_wait(flight, &failed, error));
    batch->unwritten = slot->unwritten;
    add_unwritten(slot, 0, slot->split.head);
    for (uint32_t i = 0; i < slot->split.count; i++) {
        const cogpu_gds_request *request = &slot->requests[i];
        const uint64_t offset = request->file_offset - batch->file_offset;
        if (request->state == COGPU_GDS_DONE) {
            batch->cufile_bytes += request->bytes;
            continue;
        }
        TRY(copy_unwritten(writer, slot, offset, request->bytes, error));
        add_unwritten(slot, offset, request->bytes);
    }
    add_unwritten(slot, batch->bytes - slot->split.tail, slot->split.tail);
    return writer->gpu->calls->finish_stream(writer->gpu, slot->stream, error);
}

cogpu_status cogpu_gpu_writer_next_finished(cogpu_gpu_writer *writer, uint32_t in_flight,
                                            cogpu_gpu_write_batch **batch, cogpu_error *error) {
    *batch = NULL;
    if (writer->finished + in_flight >= writer->compacted)
        return COGPU_OK;
    struct cogpu_write_slot *slot = slot_of(writer, writer->finished++);
    if (slot->batch.target == COGPU_BATCH_TO_FILE)
        TRY(finish_file_write(writer, slot, error));
    else
        TRY(writer->gpu->calls->finish_event(writer->gpu, slot->copied, error));
    slot->pixel_blocks = slot->mask_blocks = 0;
    *batch = &slot->batch;
    return COGPU_OK;
}
