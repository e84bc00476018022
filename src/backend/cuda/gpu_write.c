/*
 * Takes rows of levels on the device, hands on stored bytes on the host: see gpu_write.h. A batch,
 * from the first step to the last:
 *
 *     cut       blocks into the berth, as long as it has room, on the stream that all rows go by
 *     seal      the berth's own stream waits for that; encode, pack, and the places come down
 *     bring     the places tell how many bytes there are, and so where in the file these stand;
 *               they come down, in one copy, or are on their way there by cuFile
 *     leave     they are handed on, or there, and the berth is free
 *
 * A berth is sealed when it is full; then the batch before it is brought, and the one before that
 * leaves. So the device always has a batch to encode while the host waits or writes.
 *
 * cuFile wants bytes as far behind a page in memory as they are in the file. Where a batch begins
 * there is known when the one before it is brought: with cuFile between encode and pack.
 */
#include "backend/cuda/gpu_write.h"

#include "backend/cuda/cuda_cut.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/gds.h"
#include "base/checked.h"

#include <string.h>

enum { BERTHS = 3, BLOCKS_MAX = 1024, STAGES = 2 };
/* Decoded bytes of a batch, where its encoder does not ask for more, and unless one block has. */
enum { BATCH_BYTES = 8 << 20 };
/* Pinned memory for rows that come from the host. */
enum { STAGE_BYTES = 4 << 20 };
/* Where a writer has to do with memory of its own beyond what it was opened with. */
enum { EXTRAS = 2 * COGPU_LEVELS_MAX + STAGES };

/* Where things are in a berth, on the device and in pinned memory, which both begin with the same
 * tables. What was packed goes where blocks were before they were encoded. */
struct layout {
    uint32_t blocks;                        /* that it has room for */
    uint64_t uncoded, order, places, sizes; /* tables; the first is of what is cut */
    uint64_t packed, scratch, slots;
    uint64_t end, pinned_end;
    uint64_t decoded_step, slot_step; /* from a block to the next, from `packed` or `slots` on */
    uint64_t scratch_bytes;
};

/* How a batch goes on: it is handed on by the host, or is in its place. */
enum way { BY_RING, TO_BUFFER, BY_CUFILE };

struct berth {
    uint8_t *device, *pinned;
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *cut, *sized, *brought;
    cogpu_gpu_added *added; /* in the order of the file */
    uint32_t pixels, masks; /* blocks: pixels from the front of tables on, masks from their end */
    uint64_t start;         /* of what is packed, from the layout's `packed` on */
    uint64_t file_end;      /* when the batch got its places */
    enum way way;
    /* By cuFile: */
    cogpu_gds_piece *writes;
    cogpu_gds_way split;
    cogpu_gds_flight *flight;
};

struct stage {
    uint8_t *pinned;
    void *device;
    cogpu_gpu_event *up;
};

struct cogpu_gpu_writer {
    cogpu_gpu *gpu;
    cogpu_gpu_writer_options options;
    const cogpu_gpu_encoder *pixel_encoder, *mask_encoder; /* NULL: blocks stay as they are cut */
    void *kept;                                            /* by the encoder of pixels */
    bool is_framed;
    cogpu_gds_file *file; /* NULL: cuFile is not asked */
    cogpu_gds_context gds_context;
    bool is_pinned; /* the caller's buffer */
    struct layout layout;
    cogpu_gpu_memory *memory;
    uint8_t *device;          /* what is used of it, from a page on with cuFile */
    cogpu_gpu_stream *stream; /* that rows go by */
    cogpu_gpu_event *turn;    /* between that one and the caller's */
    struct berth berths[BERTHS];
    uint64_t sealed, brought, gone; /* batches; number n has berth n modulo BERTHS */
    struct stage stages[STAGES];
    uint32_t stage;
    uint64_t rows_used; /* of the memory for rows */
    void *extras[EXTRAS];
    uint32_t extra_count;
};

static uint64_t round_up(uint64_t bytes, uint64_t to) {
    return divide_up(bytes, to) * to;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* What cuFile knows of it. */
static uint8_t *first_page(const cogpu_gpu_memory *memory) {
    return (uint8_t *)memory->device + (0 - (uintptr_t)memory->device) % COGPU_GDS_PAGE;
}

static uint64_t bytes_of_pages(const cogpu_gpu_memory *memory) {
    return memory->device_bytes - (uint64_t)(first_page(memory) - (uint8_t *)memory->device);
}

void cogpu_gpu_memory_release(cogpu_gpu *gpu, cogpu_gpu_memory *memory) {
    const cogpu_gds_context context = cogpu_gds_context_of(gpu);
    if (memory->is_registered)
        cogpu_gds_deregister(&context, first_page(memory));
    gpu->calls->release(gpu, memory->device);
    gpu->calls->release_pinned(gpu, memory->pinned);
    *memory = (cogpu_gpu_memory){0};
}

/* How a block goes through a berth. */
static cogpu_uncoded uncoded_of(const cogpu_gpu_writer *writer, const cogpu_grid *grid,
                                const cogpu_new_block *block) {
    const cogpu_write_plan *plan = writer->options.plan;
    bool is_mask = block->plane == plan->planes;
    const cogpu_gpu_encoder *encoder = is_mask ? writer->mask_encoder : writer->pixel_encoder;
    size_t bytes = 0;
    cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, block, &bytes);
    uint64_t row_bytes = encoding.format.row_bytes;
    bool has_pixels = !is_mask && plan->predictor != 3 && !cogpu_plan_is_packed(plan);
    const uint64_t room = !encoder         ? bytes
                          : encoder->bound ? encoder->bound(bytes, row_bytes)
                                           : plan->most_block_bytes;
    return (cogpu_uncoded){.in_bytes = (uint32_t)bytes,
                           .room = (uint32_t)room,
                           .step = has_pixels ? (uint32_t)plan->pixel_bytes : 1,
                           .row_bytes = (uint32_t)row_bytes};
}

static int level_of(const cogpu_gpu_writer *writer, bool is_mask) {
    const cogpu_write_plan *plan = writer->options.plan;
    return is_mask ? plan->mask_codec->encoder->usual_level : plan->encoding.level;
}

/* The largest block of pixels, and of the mask. */
static cogpu_uncoded largest(const cogpu_gpu_writer *writer, bool is_mask) {
    const cogpu_write_plan *plan = writer->options.plan;
    const cogpu_grid *grid = &plan->levels[0];
    cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, is_mask ? plan->planes : 0);
    return uncoded_of(writer, grid, &block);
}

/* Scratch for so many blocks, of pixels or of the mask, whichever takes more. */
static cogpu_status scratch_for(const cogpu_gpu_writer *writer, uint32_t blocks, uint64_t *least,
                                uint64_t *best, cogpu_error *error) {
    cogpu_uncoded *table = cogpu_allocate(blocks * sizeof *table);
    if (!table)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks", blocks);
    *least = *best = 0;
    for (uint32_t is_mask = 0; is_mask <= writer->options.plan->has_mask; is_mask++) {
        const cogpu_gpu_encoder *encoder = is_mask ? writer->mask_encoder : writer->pixel_encoder;
        uint64_t one = 0, all = 0;
        for (uint32_t i = 0; i < blocks; i++)
            table[i] = largest(writer, is_mask);
        if (encoder)
            encoder->scratch(table, blocks, level_of(writer, is_mask), &one, &all);
        *least = larger(*least, one);
        *best = larger(*best, all);
    }
    cogpu_release(table);
    return COGPU_OK;
}

static struct layout lay_out(const cogpu_gpu_writer *writer, uint32_t blocks, uint64_t scratch) {
    const cogpu_uncoded pixels = largest(writer, false), mask = largest(writer, true);
    const uint64_t around = writer->is_framed ? 2 * COGPU_PACK_AROUND : 0;
    const uint64_t page = writer->file ? COGPU_GDS_PAGE : COGPU_GPU_ALIGN;
    const uint64_t start_most = writer->file ? COGPU_GDS_PAGE : 0;
    const uint64_t packed =
        cogpu_gpu_align(blocks * (larger(pixels.room, mask.room) + around)) + start_most;
    struct layout at = {.blocks = blocks, .scratch_bytes = scratch};
    at.decoded_step = larger(writer->pixel_encoder ? cogpu_gpu_align(pixels.in_bytes) : 0,
                             writer->mask_encoder ? cogpu_gpu_align(mask.in_bytes) : 0);
    at.slot_step = cogpu_gpu_align(larger(pixels.room, mask.room));
    at.uncoded = cogpu_gpu_align(blocks * sizeof(struct cogpu_cut_block));
    at.order = at.uncoded + cogpu_gpu_align(blocks * sizeof(cogpu_uncoded));
    at.places = at.order + cogpu_gpu_align(blocks * sizeof(uint32_t));
    at.sizes = at.places + cogpu_gpu_align((blocks + 1) * sizeof(struct cogpu_packed));
    at.packed =
        round_up(at.sizes + cogpu_gpu_align(blocks * sizeof(uint32_t)) + COGPU_GPU_SLACK, page);
    at.scratch = at.packed + blocks * at.decoded_step + COGPU_GPU_SLACK;
    at.slots = larger(at.scratch + cogpu_gpu_align(scratch), at.packed + packed) + COGPU_GPU_SLACK;
    at.end = round_up(at.slots + blocks * at.slot_step + COGPU_GPU_SLACK, page);
    at.pinned_end = at.packed + packed;
    return at;
}

/* As many blocks to a batch as are good, or as the budget has room for with all the scratch that
 * is good; a single one has to do with less. */
static cogpu_status choose_layout(cogpu_gpu_writer *writer, cogpu_error *error) {
    const uint64_t share = writer->options.budget / BERTHS;
    const cogpu_uncoded pixels = largest(writer, false);
    const cogpu_gpu_encoder *encoder = writer->pixel_encoder;
    const uint64_t batch = encoder && encoder->batch_bytes
                               ? encoder->batch_bytes(level_of(writer, false))
                               : BATCH_BYTES;
    uint64_t blocks = batch / pixels.in_bytes, least = 0, best = 0;
    blocks = blocks < 1 ? 1 : blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX;
    for (;; blocks /= 2) {
        TRY(scratch_for(writer, (uint32_t)blocks, &least, &best, error));
        writer->layout = lay_out(writer, (uint32_t)blocks, best);
        if (writer->layout.end <= share || blocks == 1)
            break;
    }
    if (writer->layout.end > share) {
        const uint64_t over = cogpu_gpu_align(writer->layout.end - share);
        writer->layout = lay_out(writer, 1, best > least + over ? best - over : least);
    }
    if (writer->layout.end > share)
        return cogpu_fail(
            error, COGPU_LIMIT,
            "a block needs %llu MiB of device memory, and %llu MiB are allowed: raise "
            "`device_bytes` of the context, or choose smaller blocks",
            (unsigned long long)(BERTHS * writer->layout.end >> 20),
            (unsigned long long)(writer->options.budget >> 20));
    return COGPU_OK;
}

static cogpu_status open_memory(cogpu_gpu_writer *writer, cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    cogpu_gpu_memory *memory = writer->memory;
    uint64_t free_bytes = 0, total = 0;
    uint64_t device = BERTHS * writer->layout.end + writer->options.rows_bytes +
                      (writer->file ? COGPU_GDS_PAGE : 0);
    uint64_t pinned = BERTHS * writer->layout.pinned_end;
    if (memory->device_bytes >= device && memory->pinned_bytes >= pinned)
        return COGPU_OK;
    device = larger(device, memory->device_bytes);
    pinned = larger(pinned, memory->pinned_bytes);
    cogpu_gpu_memory_release(gpu, memory);
    TRY(gpu->calls->memory(gpu, &free_bytes, &total, error));
    if (device > free_bytes / 10 * 9)
        return cogpu_fail(
            error, COGPU_MEMORY,
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

/* What is not registered works all the same, by way of memory that cuFile has. */
static void prepare_memory(cogpu_gpu_writer *writer) {
    cogpu_gpu_memory *memory = writer->memory;
    writer->device = writer->file ? first_page(memory) : memory->device;
    if (writer->file && !memory->is_registered)
        memory->is_registered = cogpu_gds_register(&writer->gds_context, first_page(memory),
                                                   bytes_of_pages(memory), NULL) == COGPU_OK;
}

cogpu_status cogpu_gpu_writer_allocate(cogpu_gpu_writer *writer, uint64_t bytes, void **memory,
                                       cogpu_error *error) {
    uint64_t at = BERTHS * writer->layout.end + writer->rows_used;
    if (bytes <= writer->options.rows_bytes - writer->rows_used) {
        *memory = writer->device + at;
        writer->rows_used += cogpu_gpu_align(bytes) < writer->options.rows_bytes - writer->rows_used
                                 ? cogpu_gpu_align(bytes)
                                 : bytes;
        return COGPU_OK;
    }
    if (writer->extra_count == EXTRAS)
        return cogpu_fail(error, COGPU_LIMIT, "the writer holds too many pieces of memory");
    TRY(writer->gpu->calls->allocate(writer->gpu, bytes, memory, error));
    writer->extras[writer->extra_count++] = *memory;
    return COGPU_OK;
}

/* ---- open and close ------------------------------------------------------------------------ */

static cogpu_status open_berth(cogpu_gpu_writer *writer, uint32_t number, cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    struct berth *berth = &writer->berths[number];
    berth->device = writer->device + number * writer->layout.end;
    berth->pinned = (uint8_t *)writer->memory->pinned + number * writer->layout.pinned_end;
    /* Pack looks through as many as there are, from the first on: some have no block. */
    memset(berth->pinned + writer->layout.uncoded, 0,
           writer->layout.order - writer->layout.uncoded);
    const uint64_t writes = COGPU_GDS_WRITES(writer->layout.pinned_end);
    berth->added = cogpu_allocate(writer->layout.blocks * sizeof *berth->added);
    if (writer->file)
        berth->writes = cogpu_allocate(writes * sizeof *berth->writes);
    if (!berth->added || (writer->file && !berth->writes))
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks",
                          writer->layout.blocks);
    TRY(calls->event_open(writer->gpu, &berth->cut, error));
    TRY(calls->event_open(writer->gpu, &berth->sized, error));
    TRY(calls->event_open(writer->gpu, &berth->brought, error));
    return calls->stream_open(writer->gpu, false, &berth->stream, error);
}

/* Ways to the file past our memory, if there are any. */
static void open_ways(cogpu_gpu_writer *writer) {
    cogpu_gpu *gpu = writer->gpu;
    const cogpu_out *out = writer->options.out;
    size_t bytes = 0;
    void *buffer = cogpu_out_buffer(out, &bytes);
    writer->is_pinned = buffer && gpu->calls->is_pinned(gpu, buffer, bytes);
    writer->gds_context = cogpu_gds_context_of(gpu);
    if (cogpu_out_descriptor(out) >= 0 && cogpu_gds_serves(gpu))
        (void)cogpu_gds_file_open(cogpu_out_descriptor(out), &writer->file, NULL);
}

static cogpu_status open_writer(cogpu_gpu_writer *writer, cogpu_error *error) {
    const cogpu_write_plan *plan = writer->options.plan;
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    cogpu_new_block block = cogpu_plan_new_block(plan, &plan->levels[0], 0, 0, 0);
    if (cogpu_plan_cut_bytes(plan, &plan->levels[0], &block) > COGPU_GPU_BLOCK_MAX / 2)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "blocks are too large for the device");
    if (!cogpu_gpu_writer_leaves_encoding(writer))
        open_ways(writer);
    TRY(choose_layout(writer, error));
    TRY(open_memory(writer, error));
    prepare_memory(writer);
    TRY(calls->stream_open(writer->gpu, true, &writer->stream, error));
    TRY(calls->event_open(writer->gpu, &writer->turn, error));
    for (uint32_t i = 0; i < BERTHS; i++)
        TRY(open_berth(writer, i, error));
    return COGPU_OK;
}

/* NULL where the host encodes. */
static const cogpu_gpu_encoder *open_encoder(cogpu_gpu *gpu, const cogpu_write_plan *plan,
                                             void **kept) {
    const cogpu_gpu_encoder *encoder = cogpu_gpu_encoder_of(plan->codec->compression);
    bool is_usable =
        encoder && (!encoder->open || encoder->open(gpu, &plan->encoding, kept, NULL) == COGPU_OK);
    return is_usable ? encoder : NULL;
}

cogpu_status cogpu_gpu_writer_open(cogpu_gpu *gpu, const cogpu_gpu_writer_options *options,
                                   cogpu_gpu_memory *memory, cogpu_gpu_writer **out,
                                   cogpu_error *error) {
    const cogpu_write_plan *plan = options->plan;
    cogpu_gpu_writer *writer = cogpu_allocate(sizeof *writer);
    *out = NULL;
    if (!writer)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a writer");
    *writer = (cogpu_gpu_writer){.gpu = gpu, .options = *options, .memory = memory};
    writer->pixel_encoder = open_encoder(gpu, plan, &writer->kept);
    if (!cogpu_gpu_writer_leaves_encoding(writer)) {
        writer->is_framed = plan->is_cog;
        writer->mask_encoder = cogpu_gpu_encoder_of(plan->mask_codec->compression);
    }
    cogpu_status status = open_writer(writer, error);
    if (status == COGPU_OK)
        *out = writer;
    else
        cogpu_gpu_writer_close(writer);
    return status;
}

static void close_berth(cogpu_gpu *gpu, struct berth *berth) {
    const cogpu_gpu_calls *calls = gpu->calls;
    uint32_t bad;
    (void)cogpu_gds_wait(berth->flight, &bad, NULL);
    if (berth->stream) {
        (void)calls->finish_stream(gpu, berth->stream, NULL);
        calls->stream_close(gpu, berth->stream);
    }
    calls->event_close(gpu, berth->cut);
    calls->event_close(gpu, berth->sized);
    calls->event_close(gpu, berth->brought);
    cogpu_release(berth->added);
    cogpu_release(berth->writes);
}

void cogpu_gpu_writer_close(cogpu_gpu_writer *writer) {
    if (!writer)
        return;
    cogpu_gpu *gpu = writer->gpu;
    cogpu_gpu_writer_finish(writer);
    if (writer->stream)
        gpu->calls->stream_close(gpu, writer->stream);
    for (uint32_t i = 0; i < BERTHS; i++)
        close_berth(gpu, &writer->berths[i]);
    cogpu_gds_file_close(writer->file);
    gpu->calls->event_close(gpu, writer->turn);
    for (uint32_t i = 0; i < STAGES; i++) {
        gpu->calls->release_pinned(gpu, writer->stages[i].pinned);
        gpu->calls->event_close(gpu, writer->stages[i].up);
    }
    for (uint32_t i = 0; i < writer->extra_count; i++)
        gpu->calls->release(gpu, writer->extras[i]);
    if (writer->kept)
        writer->pixel_encoder->close(writer->kept);
    cogpu_release(writer);
}

bool cogpu_gpu_writer_leaves_encoding(const cogpu_gpu_writer *writer) {
    return !writer->pixel_encoder && writer->options.plan->codec->compression != COMPRESSION_NONE;
}

/* ---- rows ---------------------------------------------------------------------------------- */

cogpu_status cogpu_gpu_writer_begin(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                    cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    TRY(calls->record(writer->gpu, writer->turn, raster->stream, error));
    return calls->wait_event(writer->gpu, writer->stream, writer->turn, error);
}

cogpu_status cogpu_gpu_writer_end(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                  cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    TRY(calls->record(writer->gpu, writer->turn, writer->stream, error));
    return calls->wait_event(writer->gpu, raster->stream, writer->turn, error);
}

void cogpu_gpu_writer_finish(cogpu_gpu_writer *writer) {
    if (writer && writer->stream)
        (void)writer->gpu->calls->finish_stream(writer->gpu, writer->stream, NULL);
}

cogpu_gpu_stream *cogpu_gpu_writer_stream(const cogpu_gpu_writer *writer) {
    return writer->stream;
}

/* One row at least, and no more than all of them. */
static uint64_t stage_bytes(const cogpu_gpu_writer *writer) {
    const cogpu_write_plan *plan = writer->options.plan;
    const uint64_t row_bytes = plan->levels[0].width * (uint64_t)plan->pixel_bytes * plan->planes;
    const uint64_t rows = STAGE_BYTES / row_bytes;
    return row_bytes * (rows < 1                        ? 1
                        : rows < plan->levels[0].height ? rows
                                                        : plan->levels[0].height);
}

static cogpu_status open_stage(cogpu_gpu_writer *writer, struct stage *stage, cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    TRY(calls->allocate_pinned(writer->gpu, stage_bytes(writer), (void **)&stage->pinned, error));
    TRY(cogpu_gpu_writer_allocate(writer, stage_bytes(writer), &stage->device, error));
    TRY(calls->event_open(writer->gpu, &stage->up, error));
    return calls->record(writer->gpu, stage->up, writer->stream, error);
}

cogpu_status cogpu_gpu_writer_lend(cogpu_gpu_writer *writer, uint8_t **pinned, uint64_t *bytes,
                                   cogpu_error *error) {
    struct stage *stage = &writer->stages[writer->stage];
    if (!stage->up)
        TRY(open_stage(writer, stage, error));
    *pinned = stage->pinned;
    *bytes = stage_bytes(writer);
    return writer->gpu->calls->finish_event(writer->gpu, stage->up, error);
}

cogpu_status cogpu_gpu_writer_upload(cogpu_gpu_writer *writer, uint64_t bytes, void **device,
                                     cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    struct stage *stage = &writer->stages[writer->stage];
    writer->stage = (writer->stage + 1) % STAGES;
    *device = stage->device;
    TRY(calls->copy_up(writer->gpu, stage->device, stage->pinned, bytes, writer->stream, error));
    return calls->record(writer->gpu, stage->up, writer->stream, error);
}

/* ---- a batch ------------------------------------------------------------------------------- */

static struct berth *berth_of(cogpu_gpu_writer *writer, uint64_t batch) {
    return &writer->berths[batch % BERTHS];
}

static uint32_t count_of(const struct berth *berth) {
    return berth->pixels + berth->masks;
}

/* Blocks of one kind, from the front of tables on or at their end. */
static cogpu_gpu_encoding encoding_of(const cogpu_gpu_writer *writer, const struct berth *berth,
                                      uint32_t first, uint32_t count) {
    const struct layout *at = &writer->layout;
    return (cogpu_gpu_encoding){
        .gpu = writer->gpu,
        .stream = berth->stream,
        .blocks = (cogpu_uncoded *)(void *)(berth->pinned + at->uncoded) + first,
        .count = count,
        .device_blocks = (cogpu_uncoded *)(void *)(berth->device + at->uncoded) + first,
        .decoded = berth->device,
        .slots = berth->device,
        .sizes = (uint32_t *)(void *)(berth->device + at->sizes) + first,
        .host_sizes = (uint32_t *)(void *)(berth->pinned + at->sizes) + first,
        .scratch = berth->device + at->scratch,
        .scratch_bytes = at->scratch_bytes,
        .kept = writer->kept};
}

static cogpu_status encode(const cogpu_gpu_writer *writer, const struct berth *berth, bool is_mask,
                           cogpu_error *error) {
    const cogpu_gpu_encoder *encoder = is_mask ? writer->mask_encoder : writer->pixel_encoder;
    const uint32_t count = is_mask ? berth->masks : berth->pixels;
    cogpu_gpu_encoding encoding =
        encoding_of(writer, berth, is_mask ? writer->layout.blocks - count : 0, count);
    encoding.level = level_of(writer, is_mask);
    return encoder && count > 0 ? encoder->encode(&encoding, error) : COGPU_OK;
}

static const struct cogpu_packed *places_of(const cogpu_gpu_writer *writer,
                                            const struct berth *berth) {
    return (const struct cogpu_packed *)(void *)(berth->pinned + writer->layout.places);
}

static uint64_t bytes_of(const cogpu_gpu_writer *writer, const struct berth *berth) {
    return places_of(writer, berth)[count_of(berth)].at;
}

static uint8_t *packed_of(const cogpu_gpu_writer *writer, const struct berth *berth) {
    return berth->device + writer->layout.packed + berth->start;
}

/* Some of the batch's bytes, from the device to the host. */
static cogpu_status copy_down(const cogpu_gpu_writer *writer, const struct berth *berth,
                              uint64_t from, uint64_t bytes, uint8_t *to, cogpu_error *error) {
    return bytes == 0
               ? COGPU_OK
               : writer->gpu->calls->copy_down(writer->gpu, to, packed_of(writer, berth) + from,
                                               bytes, berth->stream, error);
}

/* The same into the berth's own memory, and from there to their place in the file. */
static cogpu_status bring_part(const cogpu_gpu_writer *writer, const struct berth *berth,
                               uint64_t from, uint64_t bytes, cogpu_error *error) {
    uint8_t *to = berth->pinned + writer->layout.packed + from;
    return copy_down(writer, berth, from, bytes, to, error);
}

static cogpu_status write_part(const cogpu_gpu_writer *writer, const struct berth *berth,
                               uint64_t from, uint64_t bytes, cogpu_error *error) {
    return cogpu_out_write(writer->options.out, berth->file_end + from,
                           berth->pinned + writer->layout.packed + from, (size_t)bytes, error);
}

/* ---- by cuFile ----------------------------------------------------------------------------- */

/* Whole pages are on their way; what is left at both ends comes down. */
static cogpu_status send(const cogpu_gpu_writer *writer, struct berth *berth, cogpu_error *error) {
    const cogpu_span span = {berth->file_end, bytes_of(writer, berth)};
    berth->split = cogpu_gds_plan_writes(
        writer->file, span, (uint64_t)(packed_of(writer, berth) - writer->device), berth->writes);
    const cogpu_gds_work work = {.memory = writer->device,
                                 .memory_bytes = bytes_of_pages(writer->memory),
                                 .pieces = berth->writes,
                                 .count = berth->split.count,
                                 .context = &writer->gds_context,
                                 .pool = writer->options.pool,
                                 .seats = writer->options.seats};
    /* Where it fails nothing is written: the host does it, then. */
    (void)cogpu_gds_write(&work, &berth->flight, NULL);
    TRY(bring_part(writer, berth, 0, berth->split.head, error));
    return bring_part(writer, berth, span.bytes - berth->split.tail, berth->split.tail, error);
}

/* All bytes of the batch are in the file: those that cuFile did not write by way of the host. */
static cogpu_status land(const cogpu_gpu_writer *writer, struct berth *berth, cogpu_error *error) {
    const cogpu_gds_piece *writes = berth->writes;
    const cogpu_gds_way split = berth->split;
    cogpu_gds_flight *flight = berth->flight;
    uint32_t bad = 0;
    berth->flight = NULL;
    TRY(cogpu_gds_wait(flight, &bad, error));
    for (uint32_t i = 0; i < split.count; i++)
        if (writes[i].state != COGPU_GDS_DONE)
            TRY(bring_part(writer, berth, writes[i].file_offset - berth->file_end, writes[i].bytes,
                           error));
    TRY(writer->gpu->calls->finish_stream(writer->gpu, berth->stream, error));
    TRY(write_part(writer, berth, 0, split.head, error));
    for (uint32_t i = 0; i < split.count; i++)
        if (writes[i].state == COGPU_GDS_DONE)
            *writer->options.direct_bytes += writes[i].bytes;
        else
            TRY(write_part(writer, berth, writes[i].file_offset - berth->file_end, writes[i].bytes,
                           error));
    return write_part(writer, berth, bytes_of(writer, berth) - split.tail, split.tail, error);
}

/* ---- a batch on its way -------------------------------------------------------------------- */

static cogpu_gpu_brought batch_of(const cogpu_gpu_writer *writer, const struct berth *berth) {
    return (cogpu_gpu_brought){.blocks = berth->added,
                               .count = count_of(berth),
                               .file_end = berth->file_end,
                               .places = places_of(writer, berth),
                               .bytes = berth->pinned + writer->layout.packed};
}

static cogpu_status place(const cogpu_gpu_writer *writer, struct berth *berth, cogpu_error *error) {
    bool is_straight = false;
    berth->file_end = *writer->options.end;
    const cogpu_gpu_brought batch = batch_of(writer, berth);
    TRY(writer->options.place(writer->options.user, &batch, &is_straight, error));
    const bool may_be_direct =
        writer->file && cogpu_out_may_have(berth->file_end + bytes_of(writer, berth));
    berth->way = !is_straight        ? BY_RING
                 : may_be_direct     ? BY_CUFILE
                 : writer->is_pinned ? TO_BUFFER
                                     : BY_RING;
    return COGPU_OK;
}

static cogpu_status bring(cogpu_gpu_writer *writer, cogpu_error *error) {
    const cogpu_gpu_calls *calls = writer->gpu->calls;
    struct berth *berth = berth_of(writer, writer->brought++);
    TRY(calls->finish_event(writer->gpu, berth->sized, error));
    TRY(place(writer, berth, error));
    const uint64_t bytes = bytes_of(writer, berth);
    uint8_t *to = berth->pinned + writer->layout.packed;
    if (berth->way == BY_CUFILE)
        return send(writer, berth, error);
    if (berth->way == TO_BUFFER)
        TRY(cogpu_out_room(writer->options.out, berth->file_end, (size_t)bytes, &to, error));
    TRY(copy_down(writer, berth, 0, bytes, to, error));
    return calls->record(writer->gpu, berth->brought, berth->stream, error);
}

static cogpu_status bring_before(cogpu_gpu_writer *writer, uint64_t batch, cogpu_error *error) {
    while (writer->brought < batch)
        TRY(bring(writer, error));
    return COGPU_OK;
}

static cogpu_status leave(cogpu_gpu_writer *writer, cogpu_error *error) {
    struct berth *berth = berth_of(writer, writer->gone++);
    const cogpu_gpu_brought batch = batch_of(writer, berth);
    if (berth->way == BY_CUFILE)
        TRY(land(writer, berth, error));
    else
        TRY(writer->gpu->calls->finish_event(writer->gpu, berth->brought, error));
    berth->pixels = berth->masks = 0;
    return berth->way == BY_RING ? writer->options.leave(writer->options.user, &batch, error)
                                 : COGPU_OK;
}

static cogpu_status seal(cogpu_gpu_writer *writer, cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    const struct layout *at = &writer->layout;
    struct berth *berth = berth_of(writer, writer->sealed);
    const cogpu_gpu_encoding all = encoding_of(writer, berth, 0, count_of(berth));
    TRY(calls->record(gpu, berth->cut, writer->stream, error));
    TRY(calls->wait_event(gpu, berth->stream, berth->cut, error));
    TRY(calls->copy_up(gpu, berth->device + at->uncoded, berth->pinned + at->uncoded,
                       at->places - at->uncoded, berth->stream, error));
    TRY(encode(writer, berth, false, error));
    TRY(encode(writer, berth, true, error));
    if (writer->file) {
        TRY(bring_before(writer, writer->sealed, error));
        berth->start = *writer->options.end % COGPU_GDS_PAGE;
    }
    TRY(cogpu_gpu_pack(&all, (uint32_t *)(void *)(berth->device + at->order), writer->is_framed,
                       (struct cogpu_packed *)(void *)(berth->device + at->places),
                       packed_of(writer, berth), error));
    TRY(calls->copy_down(gpu, berth->pinned + at->places, berth->device + at->places,
                         (all.count + 1) * sizeof(struct cogpu_packed), berth->stream, error));
    writer->sealed++;
    return calls->record(gpu, berth->sized, berth->stream, error);
}

/* The batches before the last `under_way` ones are brought, and those before them leave. */
static cogpu_status collect(cogpu_gpu_writer *writer, uint64_t under_way, cogpu_error *error) {
    TRY(bring_before(writer, writer->sealed - under_way, error));
    while (writer->gone + 2 * under_way < writer->sealed)
        TRY(leave(writer, error));
    return COGPU_OK;
}

cogpu_status cogpu_gpu_writer_drain(cogpu_gpu_writer *writer, cogpu_error *error) {
    if (count_of(berth_of(writer, writer->sealed)) > 0)
        TRY(seal(writer, error));
    return collect(writer, 0, error);
}

/* ---- blocks into a berth ------------------------------------------------------------------- */

/* A block into the tables; how it is cut, too. */
static void seat(cogpu_gpu_writer *writer, struct berth *berth, const cogpu_grid *grid,
                 const cogpu_new_block *block, uint32_t first) {
    const struct layout *at = &writer->layout;
    const cogpu_write_plan *plan = writer->options.plan;
    bool is_mask = block->plane == plan->planes;
    bool is_encoded = is_mask ? writer->mask_encoder : writer->pixel_encoder;
    uint32_t number = is_mask ? at->blocks - ++berth->masks : berth->pixels++;
    cogpu_uncoded uncoded = uncoded_of(writer, grid, block);
    uncoded.in = at->packed + number * at->decoded_step;
    uncoded.out = at->slots + number * at->slot_step;
    ((uint32_t *)(void *)(berth->pinned + at->order))[count_of(berth) - 1] = number;
    ((cogpu_uncoded *)(void *)(berth->pinned + at->uncoded))[number] = uncoded;
    ((struct cogpu_cut_block *)(void *)berth->pinned)[number] =
        cogpu_gpu_cut_block_of(plan, grid, block, first, is_encoded ? uncoded.in : uncoded.out,
                               is_encoded ? COGPU_GPU_TO_ENCODE : uncoded.in_bytes);
}

/* Blocks of one kind that were seated since. */
static cogpu_status cut(cogpu_gpu_writer *writer, struct berth *berth,
                        const struct cogpu_gpu_cutting *cutting, uint32_t first, uint32_t count,
                        cogpu_error *error) {
    cogpu_gpu *gpu = writer->gpu;
    struct cogpu_cut_block *blocks = (struct cogpu_cut_block *)(void *)berth->pinned + first;
    struct cogpu_cut_block *on_device = (struct cogpu_cut_block *)(void *)berth->device + first;
    uint32_t *sizes = (uint32_t *)(void *)(berth->device + writer->layout.sizes) + first;
    if (count == 0)
        return COGPU_OK;
    TRY(gpu->calls->copy_up(gpu, on_device, blocks, count * sizeof *blocks, writer->stream, error));
    return cogpu_gpu_cut(gpu, cutting, on_device, blocks, count, berth->device, sizes,
                         writer->stream, error);
}

cogpu_status cogpu_gpu_writer_add_row(cogpu_gpu_writer *writer, void *level, const cogpu_grid *grid,
                                      uint32_t row, const cogpu_raster *rows,
                                      const cogpu_raster *mask, uint32_t first,
                                      cogpu_error *error) {
    const cogpu_write_plan *plan = writer->options.plan;
    const uint32_t kinds = plan->planes + plan->has_mask;
    const uint64_t all = (uint64_t)grid->across * kinds;
    struct cogpu_gpu_cutting cutting;
    TRY(cogpu_gpu_cutting_of(plan, grid, rows, mask, &cutting, error));
    for (uint64_t next = 0; next < all;) {
        struct berth *berth = berth_of(writer, writer->sealed);
        const uint32_t pixels = berth->pixels, masks = berth->masks;
        for (; next < all && count_of(berth) < writer->layout.blocks; next++) {
            cogpu_gpu_added *added = &berth->added[count_of(berth)];
            added->level = level;
            added->block = cogpu_plan_new_block(plan, grid, row, (uint32_t)(next / kinds),
                                                (uint32_t)(next % kinds));
            seat(writer, berth, grid, &added->block, first);
        }
        TRY(cut(writer, berth, &cutting, pixels, berth->pixels - pixels, error));
        TRY(cut(writer, berth, &cutting, writer->layout.blocks - berth->masks, berth->masks - masks,
                error));
        if (count_of(berth) == writer->layout.blocks) {
            TRY(seal(writer, error));
            TRY(collect(writer, 1, error));
        }
    }
    return COGPU_OK;
}

/* ---- rows for the host --------------------------------------------------------------------- */

static cogpu_status bring_packed(cogpu_gpu *gpu, const cogpu_raster *from,
                                 const cogpu_raster *packed, uint32_t rows, uint64_t bytes,
                                 uint8_t *to, cogpu_gpu_stream *stream, cogpu_error *error) {
    TRY(cogpu_gpu_follow(gpu, stream, from->stream, error));
    TRY(cogpu_gpu_move_rows(gpu, from, packed, rows, stream, error));
    TRY(gpu->calls->copy_down(gpu, to, packed->data, bytes, stream, error));
    return gpu->calls->finish_stream(gpu, stream, error);
}

cogpu_status cogpu_gpu_bring_down(cogpu_gpu *gpu, const cogpu_raster *raster, uint32_t first,
                                  uint32_t rows, uint8_t *to, cogpu_error *error) {
    const cogpu_gpu_calls *calls = gpu->calls;
    const uint64_t size = cogpu_type_bytes(raster->type), row_bytes = raster->width * size;
    cogpu_raster from = *raster, packed = *raster;
    cogpu_gpu_stream *stream = NULL;
    from.data = (uint8_t *)from.data + (int64_t)first * from.stride_y;
    packed.stride_x = (int64_t)size;
    packed.stride_y = (int64_t)row_bytes;
    packed.stride_band = (int64_t)(rows * row_bytes);
    const uint64_t bytes = rows * row_bytes * raster->bands;
    cogpu_status status = calls->allocate(gpu, bytes, &packed.data, error);
    if (status != COGPU_OK)
        packed.data = NULL;
    if (status == COGPU_OK)
        status = calls->stream_open(gpu, false, &stream, error);
    if (status == COGPU_OK)
        status = bring_packed(gpu, &from, &packed, rows, bytes, to, stream, error);
    if (stream && status != COGPU_OK) /* what it has of the rows is not waited for yet */
        (void)calls->finish_stream(gpu, stream, NULL);
    if (stream)
        calls->stream_close(gpu, stream);
    calls->release(gpu, packed.data);
    return status;
}
