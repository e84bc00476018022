/*
 * Takes the stored bytes of JPEG blocks, hands on their samples in memory of the device: see
 * nvjpeg.h.
 *
 * nvJPEG is handed nothing that a file says unseen. Each stream is taken apart, checked, and put
 * together anew: the tables of tag 347 with its own, a frame and a scan with bands 1, 2 and 3, and
 * the scan's bytes. So what nvJPEG writes has the size of the block, and what it reads ends. It is
 * asked for planes: spreading bands and changing colours it does unlike the host, and by markers.
 */
#include "backend/cuda/nvjpeg.h"

#include "backend/cuda/cuda_jpeg.h"
#include "backend/cuda/nvjpeg_library.h"
#include "base/bytes.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_jpeg_join;

/* ---- rewrite ------------------------------------------------------------------------------- */

enum {
    MARK_FRAME = 0xC0, /* baseline */
    MARK_HUFFMAN = 0xC4,
    MARK_RESTART = 0xD0, /* and the seven after it */
    MARK_START = 0xD8,
    MARK_END = 0xD9,
    MARK_SCAN = 0xDA,
    MARK_QUANTIZERS = 0xDB,
    MARK_INTERVAL = 0xDD,
    MARK_APPLICATION = 0xE0, /* and the fifteen after it */
    MARK_COMMENT = 0xFE
};

enum { BANDS_MAX = 3, PHOTOMETRIC_YCBCR = 6 };

/* What is written beyond the segments of the input. */
enum { ADDED_BYTES = 64 };

/* Between two markers. */
struct segment {
    const uint8_t *at;
    size_t bytes;
};

/* What stands before the scan, as far as it has been read. */
struct header {
    const cogpu_block_format *format;
    uint8_t *to; /* where the next byte is written */
    bool has_frame;
    uint8_t ids[BANDS_MAX], factors[BANDS_MAX];
    uint8_t quantizers[BANDS_MAX], codes[BANDS_MAX]; /* tables that the bands use */
    uint32_t has_quantizers, has_codes[2];           /* a bit for each table */
    uint32_t interval;                               /* units between two restarts; 0 = all */
};

static void put(struct header *header, const void *bytes, size_t count) {
    memcpy(header->to, bytes, count);
    header->to += count;
}

static void put_mark(struct header *header, uint8_t mark, size_t bytes) {
    size_t length = bytes + 2;
    put(header, (const uint8_t[]){0xFF, mark, (uint8_t)(length >> 8), (uint8_t)length}, 4);
}

static void put_segment(struct header *header, uint8_t mark, struct segment segment) {
    put_mark(header, mark, segment.bytes);
    put(header, segment.at, segment.bytes);
}

static bool check_quantizers(struct header *header, struct segment segment) {
    enum { TABLE = 1 + 64 };
    for (size_t at = 0; at < segment.bytes; at += TABLE) {
        uint8_t number = segment.at[at];
        if (number > 3 || segment.bytes - at < TABLE)
            return false;
        header->has_quantizers |= 1u << number;
    }
    return true;
}

/* How many symbols a table of codes has; 0 where they are too many, all or of some length. The code
 * of ones alone is never used. */
static size_t count_symbols(const uint8_t lengths[16]) {
    size_t code = 0, symbols = 0;
    for (uint32_t i = 0; i < 16; i++) {
        code = 2 * code + lengths[i];
        symbols += lengths[i];
        if (code >= (size_t)2 << i)
            return 0;
    }
    return symbols <= 256 ? symbols : 0;
}

/* How many bits follow a code: of a difference between blocks, or of a coefficient. */
static bool check_symbols(const uint8_t *symbols, size_t count, bool is_difference) {
    enum { DIFFERENCE_MAX = 11, COEFFICIENT_MAX = 10 };
    for (size_t i = 0; i < count; i++)
        if (is_difference ? symbols[i] > DIFFERENCE_MAX : (symbols[i] & 15) > COEFFICIENT_MAX)
            return false;
    return true;
}

static bool check_codes(struct header *header, struct segment segment) {
    enum { HEAD = 1 + 16 };
    for (size_t at = 0; at < segment.bytes;) {
        const uint8_t *table = segment.at + at;
        if (segment.bytes - at < HEAD)
            return false;
        uint32_t kind = table[0] >> 4, number = table[0] & 15;
        size_t symbols = count_symbols(table + 1);
        if (kind > 1 || number > 1 || symbols == 0 || segment.bytes - at < HEAD + symbols ||
            !check_symbols(table + HEAD, symbols, kind == 0))
            return false;
        header->has_codes[kind] |= 1u << number;
        at += HEAD + symbols;
    }
    return true;
}

static bool is_ycbcr(const cogpu_block_format *format) {
    return format->photometric == PHOTOMETRIC_YCBCR && format->samples == 3;
}

/* 4:4:4, 4:2:2, 4:2:0; only the first band of YCbCr can have more samples than the others. */
static bool check_factors(const struct header *header) {
    uint8_t first = header->factors[0];
    for (uint32_t i = 1; i < header->format->samples; i++)
        if (header->factors[i] != 0x11)
            return false;
    return first == 0x11 || (is_ycbcr(header->format) && (first == 0x21 || first == 0x22));
}

static bool check_ids(const struct header *header) {
    const uint8_t *ids = header->ids;
    return header->format->samples == 1 ||
           (ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

static bool read_frame(struct header *header, struct segment segment) {
    const cogpu_block_format *format = header->format;
    const uint8_t *at = segment.at;
    if (header->has_frame || segment.bytes != 6 + 3 * format->samples || at[0] != 8 ||
        load_u16(at + 1, true) != format->height || load_u16(at + 3, true) != format->width ||
        at[5] != format->samples)
        return false;
    for (uint32_t i = 0; i < format->samples; i++) {
        header->ids[i] = at[6 + 3 * i];
        header->factors[i] = at[7 + 3 * i];
        header->quantizers[i] = at[8 + 3 * i];
    }
    header->has_frame = true;
    return check_ids(header) && check_factors(header);
}

static bool has(uint32_t tables, uint32_t number) {
    return number < 4 && (tables >> number & 1);
}

/* All bands in their order, with tables that there are, and all of their coefficients. */
static bool read_scan(struct header *header, struct segment segment) {
    uint32_t samples = header->format->samples;
    const uint8_t *at = segment.at;
    if (!header->has_frame || segment.bytes != 4 + 2 * samples || at[0] != samples)
        return false;
    for (uint32_t i = 0; i < samples; i++) {
        uint8_t codes = header->codes[i] = at[2 + 2 * i];
        if (at[1 + 2 * i] != header->ids[i] ||
            !has(header->has_quantizers, header->quantizers[i]) ||
            !has(header->has_codes[0], codes >> 4) || !has(header->has_codes[1], codes & 15))
            return false;
    }
    at += 1 + 2 * samples;
    return at[0] == 0 && at[1] == 63 && at[2] == 0;
}

static bool take_segment(struct header *header, uint8_t mark, struct segment segment) {
    switch (mark) {
    case MARK_QUANTIZERS:
        put_segment(header, mark, segment);
        return check_quantizers(header, segment);
    case MARK_HUFFMAN:
        put_segment(header, mark, segment);
        return check_codes(header, segment);
    case MARK_INTERVAL:
        header->interval = segment.bytes == 2 ? load_u16(segment.at, true) : 0;
        return segment.bytes == 2;
    case MARK_FRAME:
        return read_frame(header, segment);
    default: /* of no account to the host's codec, too */
        return (mark >= MARK_APPLICATION && mark < MARK_APPLICATION + 16) || mark == MARK_COMMENT;
    }
}

/* Takes the segments of a stream up to its scan, or of tables up to their end, and returns where
 * that begins; NULL where anything is unsound or unusual. */
static const uint8_t *take_segments(struct header *header, const uint8_t *at, const uint8_t *end,
                                    bool is_tables) {
    if (end - at < 2 || at[0] != 0xFF || at[1] != MARK_START)
        return NULL;
    for (at += 2; !is_tables || at < end;) {
        if (end - at < 2 || at[0] != 0xFF)
            return NULL;
        uint8_t mark = at[1];
        if (is_tables && mark == MARK_END)
            return at;
        size_t length = end - at < 4 ? 0 : load_u16(at + 2, true);
        if (length < 2 || (size_t)(end - at) < 2 + length)
            return NULL;
        struct segment segment = {at + 4, length - 2};
        at += 2 + length;
        if (!is_tables && mark == MARK_SCAN)
            return read_scan(header, segment) ? at : NULL;
        if ((is_tables && mark == MARK_FRAME) || !take_segment(header, mark, segment))
            return NULL;
    }
    return at;
}

/* How many units of a scan there are, and blocks of 64 samples. */
static void count_units(const struct header *header, uint64_t *units, uint64_t *blocks) {
    const cogpu_block_format *format = header->format;
    uint32_t x = header->factors[0] >> 4, y = header->factors[0] & 15;
    *units = (uint64_t)((format->width + 8 * x - 1) / (8 * x)) *
             ((format->height + 8 * y - 1) / (8 * y));
    *blocks = *units * (x * y + format->samples - 1);
}

/* Where the scan ends, its end marker included; NULL where it does not, or where its restarts are
 * not those that are due. */
static const uint8_t *end_of_scan(const uint8_t *at, const uint8_t *end, uint64_t restarts) {
    uint64_t seen = 0;
    for (;;) {
        at = memchr(at, 0xFF, (size_t)(end - at));
        if (!at || end - at < 2)
            return NULL;
        uint8_t mark = at[1];
        at += 2;
        if (mark == 0)
            continue;
        if (mark == MARK_END)
            return seen == restarts ? at : NULL;
        if (mark != MARK_RESTART + seen % 8 || seen++ == restarts)
            return NULL;
    }
}

/* The frame and the head of the scan, as they were read, but for the names of the bands. */
static void put_frame(struct header *header) {
    const cogpu_block_format *format = header->format;
    uint8_t samples = (uint8_t)format->samples;
    uint8_t height[] = {(uint8_t)(format->height >> 8), (uint8_t)format->height};
    uint8_t width[] = {(uint8_t)(format->width >> 8), (uint8_t)format->width};
    if (header->interval) {
        put_mark(header, MARK_INTERVAL, 2);
        put(header, (const uint8_t[]){(uint8_t)(header->interval >> 8), (uint8_t)header->interval},
            2);
    }
    put_mark(header, MARK_FRAME, 6 + 3 * (size_t)samples);
    put(header, (const uint8_t[]){8, height[0], height[1], width[0], width[1], samples}, 6);
    for (uint8_t i = 0; i < samples; i++)
        put(header, (const uint8_t[]){(uint8_t)(i + 1), header->factors[i], header->quantizers[i]},
            3);
    put_mark(header, MARK_SCAN, 4 + 2 * (size_t)samples);
    put(header, &samples, 1);
    for (uint8_t i = 0; i < samples; i++)
        put(header, (const uint8_t[]){(uint8_t)(i + 1), header->codes[i]}, 2);
    put(header, (const uint8_t[]){0, 63, 0}, 3);
}

size_t cogpu_nvjpeg_bound(const cogpu_block_format *format, size_t stored_bytes) {
    return stored_bytes + (format->jpeg_tables ? format->jpeg_table_bytes : 0) + ADDED_BYTES;
}

/* The bytes of the stream; 0 where it is the host's. */
static size_t rewrite(struct header *header, const uint8_t *stored, size_t stored_bytes) {
    const cogpu_block_format *format = header->format;
    const uint8_t *tables = format->jpeg_tables, *end = stored + stored_bytes, *start = header->to;
    uint64_t units, blocks;
    if (format->bits != 8 || (format->samples != 1 && format->samples != 3) || format->width == 0 ||
        format->height == 0)
        return 0;
    put(header, (const uint8_t[]){0xFF, MARK_START}, 2);
    if (tables && !take_segments(header, tables, tables + format->jpeg_table_bytes, true))
        return 0;
    const uint8_t *scan = take_segments(header, stored, end, false);
    if (!scan)
        return 0;
    count_units(header, &units, &blocks);
    const uint8_t *scan_end =
        end_of_scan(scan, end, header->interval ? (units - 1) / header->interval : 0);
    /* A block takes at least two codes, of a bit each. */
    if (!scan_end || (uint64_t)(scan_end - scan) < blocks / 4)
        return 0;
    put_frame(header);
    put(header, scan, (size_t)(scan_end - scan));
    return (size_t)(header->to - start);
}

void cogpu_nvjpeg_rewrite(const cogpu_block_format *format, const uint8_t *stored,
                          size_t stored_bytes, uint8_t *to, cogpu_nvjpeg_block *block) {
    struct header header = {.format = format, .to = to};
    block->stream = to;
    block->stream_bytes = rewrite(&header, stored, stored_bytes);
    block->width = format->width;
    block->height = format->height;
    block->samples = format->samples;
    block->step_x = header.factors[0] >> 4;
    block->step_y = header.factors[0] & 15;
    block->is_ycbcr = is_ycbcr(format);
}

/* ---- decode -------------------------------------------------------------------------------- */

/* A call decodes to one kind of samples. */
enum kind { GREY, COLOURS, KINDS };

/* What calls are made with, which must stay while they are under way: a list of each kind, one
 * after the other. */
struct slot {
    void *states[KINDS];     /* nvJPEG's; NULL before they are first wanted */
    uint32_t sizes[KINDS];   /* of the batches that they are ready for; 0 = none */
    const uint8_t **streams; /* in memory of the host, as are lengths and images */
    size_t *lengths;
    struct nvjpeg_image *images;
    struct cogpu_jpeg_picture *pictures, *device_pictures; /* pinned, and on the device */
};

struct cogpu_nvjpeg {
    cogpu_gpu *gpu;
    const cogpu_nvjpeg_library *library;
    void *handle;
    uint32_t slot_count, batch;
    struct slot *slots;
};

static void close_slot(const cogpu_nvjpeg *nvjpeg, struct slot *slot) {
    cogpu_gpu *gpu = nvjpeg->gpu;
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (slot->states[kind])
            nvjpeg->library->state_destroy(slot->states[kind]);
    cogpu_release(slot->streams);
    cogpu_release(slot->lengths);
    cogpu_release(slot->images);
    gpu->calls->release_pinned(gpu, slot->pictures);
    gpu->calls->release(gpu, slot->device_pictures);
}

static cogpu_status open_slot(cogpu_gpu *gpu, uint32_t batch, struct slot *slot,
                              cogpu_error *error) {
    uint64_t bytes = batch * sizeof *slot->pictures;
    slot->streams = cogpu_allocate(batch * sizeof *slot->streams);
    slot->lengths = cogpu_allocate(batch * sizeof *slot->lengths);
    slot->images = cogpu_allocate(batch * sizeof *slot->images);
    if (!slot->streams || !slot->lengths || !slot->images)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for nvJPEG");
    TRY(gpu->calls->allocate_pinned(gpu, bytes, (void **)&slot->pictures, error));
    return gpu->calls->allocate(gpu, bytes, (void **)&slot->device_pictures, error);
}

static cogpu_status start(cogpu_nvjpeg *nvjpeg, cogpu_error *error) {
    int result = nvjpeg->library->create(NVJPEG_ENGINES, NULL, NULL, 0, &nvjpeg->handle);
    if (result == NVJPEG_SUCCESS)
        return COGPU_OK;
    nvjpeg->handle = NULL;
    return result == NVJPEG_NO_SUCH_DEVICE
               ? cogpu_fail(error, COGPU_UNSUPPORTED,
                            "no JPEG on the GPU: it has no engines for it")
               : cogpu_fail(error, COGPU_DEVICE, "nvJPEG cannot start: its error %d", result);
}

cogpu_status cogpu_nvjpeg_open(cogpu_gpu *gpu, uint32_t slots, uint32_t batch, cogpu_nvjpeg **out,
                               cogpu_error *error) {
    const cogpu_nvjpeg_library *library = cogpu_nvjpeg_load();
    *out = NULL;
    if (library->why)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "no JPEG on the GPU: %s", library->why);
    cogpu_nvjpeg *nvjpeg = cogpu_allocate(sizeof *nvjpeg);
    struct slot *all = cogpu_allocate(slots * sizeof *all);
    if (!nvjpeg || !all) {
        cogpu_release(nvjpeg);
        cogpu_release(all);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for nvJPEG");
    }
    memset(all, 0, slots * sizeof *all);
    *nvjpeg = (cogpu_nvjpeg){
        .gpu = gpu, .library = library, .slot_count = slots, .batch = batch, .slots = all};
    cogpu_status status = start(nvjpeg, error);
    for (uint32_t i = 0; i < slots && status == COGPU_OK; i++)
        status = open_slot(gpu, batch, &all[i], error);
    if (status == COGPU_OK)
        *out = nvjpeg;
    else
        cogpu_nvjpeg_close(nvjpeg);
    return status;
}

void cogpu_nvjpeg_close(cogpu_nvjpeg *nvjpeg) {
    if (!nvjpeg)
        return;
    for (uint32_t i = 0; i < nvjpeg->slot_count; i++)
        close_slot(nvjpeg, &nvjpeg->slots[i]);
    if (nvjpeg->handle)
        nvjpeg->library->destroy(nvjpeg->handle);
    cogpu_release(nvjpeg->slots);
    cogpu_release(nvjpeg);
}

static bool is_of_kind(const cogpu_nvjpeg_block *block, enum kind kind) {
    uint64_t bytes = (uint64_t)block->width * block->height * block->samples;
    return block->stream_bytes > 0 && bytes <= block->room &&
           block->samples == (kind == GREY ? 1 : 3);
}

static struct nvjpeg_image image_of(const cogpu_nvjpeg_block *block) {
    struct nvjpeg_image image = {{block->decoded}, {block->width}};
    for (uint32_t i = 0; i < 3 && block->samples == 3; i++) {
        image.channel[i] = block->planes + (uint64_t)i * block->width * block->height;
        image.pitch[i] = block->width;
    }
    return image;
}

/* Lists the blocks of a kind from place `first` on; returns how many. */
static uint32_t list_blocks(struct slot *slot, uint32_t first, const cogpu_nvjpeg_block *blocks,
                            uint32_t count, enum kind kind) {
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_of_kind(&blocks[i], kind))
            continue;
        slot->streams[first + listed] = blocks[i].stream;
        slot->lengths[first + listed] = blocks[i].stream_bytes;
        slot->images[first + listed++] = image_of(&blocks[i]);
    }
    return listed;
}

/* After a failure nvJPEG is told the size of the next batch anew, whatever it is. */
static int decode_listed(const cogpu_nvjpeg *nvjpeg, struct slot *slot, uint32_t first,
                         uint32_t count, enum kind kind, void *stream) {
    const cogpu_nvjpeg_library *library = nvjpeg->library;
    void **state = &slot->states[kind];
    int result = NVJPEG_SUCCESS;
    if (!*state && (result = library->state_create(nvjpeg->handle, state)) != NVJPEG_SUCCESS)
        *state = NULL;
    if (result == NVJPEG_SUCCESS && slot->sizes[kind] != count)
        result = library->batch_size(nvjpeg->handle, *state, (int)count, 1,
                                     kind == GREY ? NVJPEG_OUTPUT_GREY : NVJPEG_OUTPUT_PLANES);
    if (result == NVJPEG_SUCCESS)
        result = library->batch_decode(nvjpeg->handle, *state, slot->streams + first,
                                       slot->lengths + first, slot->images + first, stream);
    slot->sizes[kind] = result == NVJPEG_SUCCESS ? count : 0;
    return result;
}

/* nvJPEG does not tell which block of a batch it fails for, so that all are the host's. Returns how
 * many were listed. */
static uint32_t decode_kind(const cogpu_nvjpeg *nvjpeg, struct slot *slot, uint32_t first,
                            cogpu_nvjpeg_block *blocks, uint32_t count, enum kind kind,
                            cogpu_gpu_stream *stream) {
    uint32_t listed = list_blocks(slot, first, blocks, count, kind);
    int result = listed ? decode_listed(nvjpeg, slot, first, listed, kind, stream) : NVJPEG_SUCCESS;
    for (uint32_t i = 0; i < count; i++)
        if (is_of_kind(&blocks[i], kind))
            blocks[i].verdict = result == NVJPEG_SUCCESS ? COGPU_GPU_DECODED
                                : result == NVJPEG_BAD   ? COGPU_GPU_DAMAGED
                                                         : COGPU_GPU_UNUSUAL;
    return listed;
}

/* Planes to pixels. */
static cogpu_status join_planes(const cogpu_nvjpeg *nvjpeg, struct slot *slot,
                                const cogpu_nvjpeg_block *blocks, uint32_t count,
                                cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_gpu_calls *calls = nvjpeg->gpu->calls;
    uint32_t pictures = 0, tallest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_nvjpeg_block *block = &blocks[i];
        if (block->verdict != COGPU_GPU_DECODED || !is_of_kind(block, COLOURS))
            continue;
        tallest = block->height > tallest ? block->height : tallest;
        slot->pictures[pictures++] = (struct cogpu_jpeg_picture){
            block->planes, block->decoded, block->width,   block->height,
            block->step_x, block->step_y,  block->is_ycbcr};
    }
    if (pictures == 0)
        return COGPU_OK;
    struct cogpu_jpeg_args args = {slot->device_pictures,
                                   (tallest + COGPU_JPEG_ROWS - 1) / COGPU_JPEG_ROWS};
    TRY(calls->copy_up(nvjpeg->gpu, slot->device_pictures, slot->pictures,
                       pictures * sizeof *slot->pictures, stream, error));
    return calls->launch(nvjpeg->gpu, &cogpu_kernel_jpeg_join, pictures * args.parts, &args, stream,
                         error);
}

cogpu_status cogpu_nvjpeg_decode(cogpu_nvjpeg *nvjpeg, uint32_t number, cogpu_nvjpeg_block *blocks,
                                 uint32_t count, cogpu_gpu_stream *stream, cogpu_error *error) {
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++)
        blocks[i].verdict = COGPU_GPU_UNUSUAL;
    if (number >= nvjpeg->slot_count || count > nvjpeg->batch)
        return COGPU_OK;
    struct slot *slot = &nvjpeg->slots[number];
    for (enum kind kind = 0; kind < KINDS; kind++)
        listed += decode_kind(nvjpeg, slot, listed, blocks, count, kind, stream);
    return join_planes(nvjpeg, slot, blocks, count, stream, error);
}
