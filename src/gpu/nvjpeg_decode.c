/*
 * JPEG blocks by nvJPEG: see nvjpeg.h.
 *
 * nvJPEG sees no header that was not checked. Each stream is parsed and written anew (ITU-T T.81,
 * annex B): the tables of tag 347 and its own, SOF0 and SOS with components 1, 2 and 3, and the
 * entropy-coded bytes. So what nvJPEG writes has the size of the block, and what it reads
 * ends. nvJPEG only writes planes: its upsampling and colour conversion differ from libjpeg's.
 */
#include "gpu/nvjpeg.h"

#include "base/bytes.h"
#include "base/math.h"
#include "gpu/driver/nvjpeg_library.h"
#include "kernels/jpeg/jpeg_interleave_args.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_jpeg_interleave;

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

/* Most bytes that are written beyond the segments of the input. */
enum { ADDED_BYTES = 64 };

/* A marker segment, without marker and length. */
struct jpeg_segment {
    const uint8_t *at;
    size_t bytes;
};

/* The headers before the scan, as far as they were read. */
struct jpeg_headers {
    const cogpu_block_format *format;
    uint8_t *to; /* of the next byte */
    bool has_frame;
    uint8_t ids[BANDS_MAX], factors[BANDS_MAX];
    uint8_t quantizers[BANDS_MAX], codes[BANDS_MAX]; /* tables of each component */
    uint32_t has_quantizers, has_codes[2];           /* a bit a table */
    uint32_t interval;                               /* MCUs between two restart markers; 0: none */
};

static void write_bytes(struct jpeg_headers *headers, const void *bytes, size_t count) {
    memcpy(headers->to, bytes, count);
    headers->to += count;
}

static void write_marker(struct jpeg_headers *headers, uint8_t marker, size_t bytes) {
    size_t length = bytes + 2;
    write_bytes(headers, (const uint8_t[]){0xFF, marker, (uint8_t)(length >> 8), (uint8_t)length},
                4);
}

static void write_segment(struct jpeg_headers *headers, uint8_t marker,
                          struct jpeg_segment segment) {
    write_marker(headers, marker, segment.bytes);
    write_bytes(headers, segment.at, segment.bytes);
}

static bool check_quantizers(struct jpeg_headers *headers, struct jpeg_segment segment) {
    enum { TABLE = 1 + 64 };
    for (size_t at = 0; at < segment.bytes; at += TABLE) {
        uint8_t number = segment.at[at];
        if (number > 3 || segment.bytes - at < TABLE)
            return false;
        headers->has_quantizers |= 1u << number;
    }
    return true;
}

/* Number of symbols of a Huffman table (T.81, C.2); 0 if there are too many of any length. The code
 * of all ones is not allowed. */
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

/* Symbols hold the number of bits that follow: of a DC difference or an AC coefficient. */
static bool check_symbols(const uint8_t *symbols, size_t count, bool is_difference) {
    enum { DIFFERENCE_MAX = 11, COEFFICIENT_MAX = 10 };
    for (size_t i = 0; i < count; i++)
        if (is_difference ? symbols[i] > DIFFERENCE_MAX : (symbols[i] & 15) > COEFFICIENT_MAX)
            return false;
    return true;
}

static bool check_codes(struct jpeg_headers *headers, struct jpeg_segment segment) {
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
        headers->has_codes[kind] |= 1u << number;
        at += HEAD + symbols;
    }
    return true;
}

static bool is_ycbcr(const cogpu_block_format *format) {
    return format->photometric == PHOTOMETRIC_YCBCR && format->samples == 3;
}

/* 4:4:4, 4:2:2, 4:2:0: only the luma of YCbCr may have more samples than the others. */
static bool check_factors(const struct jpeg_headers *headers) {
    uint8_t first = headers->factors[0];
    for (uint32_t i = 1; i < headers->format->samples; i++)
        if (headers->factors[i] != 0x11)
            return false;
    return first == 0x11 || (is_ycbcr(headers->format) && (first == 0x21 || first == 0x22));
}

static bool check_ids(const struct jpeg_headers *headers) {
    const uint8_t *ids = headers->ids;
    return headers->format->samples == 1 ||
           (ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

static bool read_frame(struct jpeg_headers *headers, struct jpeg_segment segment) {
    const cogpu_block_format *format = headers->format;
    const uint8_t *at = segment.at;
    if (headers->has_frame || segment.bytes != 6 + 3 * format->samples || at[0] != 8 ||
        load_u16(at + 1, true) != format->height || load_u16(at + 3, true) != format->width ||
        at[5] != format->samples)
        return false;
    for (uint32_t i = 0; i < format->samples; i++) {
        headers->ids[i] = at[6 + 3 * i];
        headers->factors[i] = at[7 + 3 * i];
        headers->quantizers[i] = at[8 + 3 * i];
    }
    headers->has_frame = true;
    return check_ids(headers) && check_factors(headers);
}

static bool has_table(uint32_t tables, uint32_t number) {
    return number < 4 && (tables >> number & 1);
}

/* All components in order, with existing tables, and all coefficients (not progressive). */
static bool read_scan(struct jpeg_headers *headers, struct jpeg_segment segment) {
    uint32_t samples = headers->format->samples;
    const uint8_t *at = segment.at;
    if (!headers->has_frame || segment.bytes != 4 + 2 * samples || at[0] != samples)
        return false;
    for (uint32_t i = 0; i < samples; i++) {
        uint8_t codes = headers->codes[i] = at[2 + 2 * i];
        if (at[1 + 2 * i] != headers->ids[i] ||
            !has_table(headers->has_quantizers, headers->quantizers[i]) ||
            !has_table(headers->has_codes[0], codes >> 4) ||
            !has_table(headers->has_codes[1], codes & 15))
            return false;
    }
    at += 1 + 2 * samples;
    return at[0] == 0 && at[1] == 63 && at[2] == 0;
}

static bool read_segment(struct jpeg_headers *headers, uint8_t marker,
                         struct jpeg_segment segment) {
    switch (marker) {
    case MARK_QUANTIZERS:
        write_segment(headers, marker, segment);
        return check_quantizers(headers, segment);
    case MARK_HUFFMAN:
        write_segment(headers, marker, segment);
        return check_codes(headers, segment);
    case MARK_INTERVAL:
        headers->interval = segment.bytes == 2 ? load_u16(segment.at, true) : 0;
        return segment.bytes == 2;
    case MARK_FRAME:
        return read_frame(headers, segment);
    default: /* libjpeg ignores these, too */
        return (marker >= MARK_APPLICATION && marker < MARK_APPLICATION + 16) ||
               marker == MARK_COMMENT;
    }
}

/* Reads the segments of a stream up to its scan, or of tables up to their end. Returns what
 * follows, or NULL if anything is malformed or not supported. */
static const uint8_t *read_segments(struct jpeg_headers *headers, const uint8_t *at,
                                    const uint8_t *end, bool is_tables) {
    if (end - at < 2 || at[0] != 0xFF || at[1] != MARK_START)
        return NULL;
    for (at += 2; !is_tables || at < end;) {
        if (end - at < 2 || at[0] != 0xFF)
            return NULL;
        uint8_t marker = at[1];
        if (is_tables && marker == MARK_END)
            return at;
        size_t length = end - at < 4 ? 0 : load_u16(at + 2, true);
        if (length < 2 || (size_t)(end - at) < 2 + length)
            return NULL;
        struct jpeg_segment segment = {at + 4, length - 2};
        at += 2 + length;
        if (!is_tables && marker == MARK_SCAN)
            return read_scan(headers, segment) ? at : NULL;
        if ((is_tables && marker == MARK_FRAME) || !read_segment(headers, marker, segment))
            return NULL;
    }
    return at;
}

/* MCUs of a scan, and its 8 x 8 blocks. */
static void count_units(const struct jpeg_headers *headers, uint64_t *units, uint64_t *blocks) {
    const cogpu_block_format *format = headers->format;
    uint32_t x = headers->factors[0] >> 4, y = headers->factors[0] & 15;
    *units = (uint64_t)((format->width + 8 * x - 1) / (8 * x)) *
             ((format->height + 8 * y - 1) / (8 * y));
    *blocks = *units * (x * y + format->samples - 1);
}

/* End of the scan, EOI included; NULL if it has none, or other restart markers than expected.
 */
static const uint8_t *end_of_scan(const uint8_t *at, const uint8_t *end, uint64_t restarts) {
    uint64_t seen = 0;
    for (;;) {
        at = memchr(at, 0xFF, (size_t)(end - at));
        if (!at || end - at < 2)
            return NULL;
        uint8_t marker = at[1];
        at += 2;
        if (marker == 0)
            continue;
        if (marker == MARK_END)
            return seen == restarts ? at : NULL;
        if (marker != MARK_RESTART + seen % 8 || seen++ == restarts)
            return NULL;
    }
}

/* SOF0 and SOS as they were read, with component ids 1, 2 and 3. */
static void write_frame(struct jpeg_headers *headers) {
    const cogpu_block_format *format = headers->format;
    uint8_t samples = (uint8_t)format->samples;
    uint8_t height[] = {(uint8_t)(format->height >> 8), (uint8_t)format->height};
    uint8_t width[] = {(uint8_t)(format->width >> 8), (uint8_t)format->width};
    if (headers->interval) {
        write_marker(headers, MARK_INTERVAL, 2);
        write_bytes(
            headers,
            (const uint8_t[]){(uint8_t)(headers->interval >> 8), (uint8_t)headers->interval}, 2);
    }
    write_marker(headers, MARK_FRAME, 6 + 3 * (size_t)samples);
    write_bytes(headers, (const uint8_t[]){8, height[0], height[1], width[0], width[1], samples},
                6);
    for (uint8_t i = 0; i < samples; i++)
        write_bytes(
            headers,
            (const uint8_t[]){(uint8_t)(i + 1), headers->factors[i], headers->quantizers[i]}, 3);
    write_marker(headers, MARK_SCAN, 4 + 2 * (size_t)samples);
    write_bytes(headers, &samples, 1);
    for (uint8_t i = 0; i < samples; i++)
        write_bytes(headers, (const uint8_t[]){(uint8_t)(i + 1), headers->codes[i]}, 2);
    write_bytes(headers, (const uint8_t[]){0, 63, 0}, 3);
}

size_t cogpu_nvjpeg_bound(const cogpu_block_format *format, size_t stored_bytes) {
    return stored_bytes + (format->jpeg_tables ? format->jpeg_table_bytes : 0) + ADDED_BYTES;
}

/* Bytes of the stream; 0 if it is for the CPU. */
static size_t rewrite_stream(struct jpeg_headers *headers, const uint8_t *stored,
                             size_t stored_bytes) {
    const cogpu_block_format *format = headers->format;
    const uint8_t *tables = format->jpeg_tables, *end = stored + stored_bytes, *start = headers->to;
    uint64_t units, blocks;
    if (format->bits != 8 || (format->samples != 1 && format->samples != 3) || format->width == 0 ||
        format->height == 0)
        return 0;
    write_bytes(headers, (const uint8_t[]){0xFF, MARK_START}, 2);
    if (tables && !read_segments(headers, tables, tables + format->jpeg_table_bytes, true))
        return 0;
    const uint8_t *scan = read_segments(headers, stored, end, false);
    if (!scan)
        return 0;
    count_units(headers, &units, &blocks);
    const uint8_t *scan_end =
        end_of_scan(scan, end, headers->interval ? (units - 1) / headers->interval : 0);
    /* An 8 x 8 block takes at least two codes of one bit. */
    if (!scan_end || (uint64_t)(scan_end - scan) < blocks / 4)
        return 0;
    write_frame(headers);
    write_bytes(headers, scan, (size_t)(scan_end - scan));
    return (size_t)(headers->to - start);
}

void cogpu_nvjpeg_rewrite(const cogpu_block_format *format, const uint8_t *stored,
                          size_t stored_bytes, uint8_t *to, cogpu_nvjpeg_block *block) {
    struct jpeg_headers headers = {.format = format, .to = to};
    block->stream = to;
    block->stream_bytes = rewrite_stream(&headers, stored, stored_bytes);
    block->width = format->width;
    block->height = format->height;
    block->samples = format->samples;
    block->step_x = headers.factors[0] >> 4;
    block->step_y = headers.factors[0] & 15;
    block->is_ycbcr = is_ycbcr(format);
}

/* ---- decode -------------------------------------------------------------------------------- */

/* One nvJPEG call decodes to one output format. */
enum kind { GREY, COLOURS, KINDS };

/* Arguments of the calls of a batch, which must stay while it is in flight: the list of each kind,
 * one after the other. */
struct nvjpeg_slot {
    void *states[KINDS];     /* nvJPEG's; NULL before the first use */
    uint32_t sizes[KINDS];   /* batch size that each is initialized for; 0: none */
    const uint8_t **streams; /* in host memory, as lengths and images */
    size_t *lengths;
    struct nvjpeg_image *images;
    struct cogpu_jpeg_picture *pictures, *device_pictures; /* pinned, and on the device */
};

struct cogpu_nvjpeg {
    cogpu_gpu *gpu;
    const cogpu_nvjpeg_library *library;
    void *handle;
    uint32_t slot_count, batch;
    struct nvjpeg_slot *slots;
};

static void close_nvjpeg_slot(const cogpu_nvjpeg *nvjpeg, struct nvjpeg_slot *slot) {
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

static cogpu_status open_nvjpeg_slot(cogpu_gpu *gpu, uint32_t batch, struct nvjpeg_slot *slot,
                                     cogpu_error *error) {
    uint64_t bytes = batch * sizeof *slot->pictures;
    slot->streams = cogpu_allocate(batch * sizeof *slot->streams);
    slot->lengths = cogpu_allocate(batch * sizeof *slot->lengths);
    slot->images = cogpu_allocate(batch * sizeof *slot->images);
    if (!slot->streams || !slot->lengths || !slot->images)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for nvJPEG");
    TRY(gpu->calls->allocate_pinned(gpu, bytes, (void **)&slot->pictures, error));
    return gpu->calls->allocate(gpu, bytes, (void **)&slot->device_pictures, error);
}

static cogpu_status create_handle(cogpu_nvjpeg *nvjpeg, cogpu_error *error) {
    int result = nvjpeg->library->create(NVJPEG_ENGINES, NULL, NULL, 0, &nvjpeg->handle);
    if (result == NVJPEG_SUCCESS)
        return COGPU_OK;
    nvjpeg->handle = NULL;
    return result == NVJPEG_NO_SUCH_DEVICE
               ? cogpu_fail(error, COGPU_UNSUPPORTED,
                            "no JPEG on the GPU: it has no hardware decoder")
               : cogpu_fail(error, COGPU_DEVICE_ERROR, "nvJPEG cannot start: its error %d", result);
}

cogpu_status cogpu_nvjpeg_open(cogpu_gpu *gpu, uint32_t slots, uint32_t batch, cogpu_nvjpeg **out,
                               cogpu_error *error) {
    const cogpu_nvjpeg_library *library = cogpu_nvjpeg_load();
    *out = NULL;
    if (library->why)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "no JPEG on the GPU: %s", library->why);
    cogpu_nvjpeg *nvjpeg = cogpu_allocate(sizeof *nvjpeg);
    struct nvjpeg_slot *all = cogpu_allocate(slots * sizeof *all);
    if (!nvjpeg || !all) {
        cogpu_release(nvjpeg);
        cogpu_release(all);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for nvJPEG");
    }
    memset(all, 0, slots * sizeof *all);
    *nvjpeg = (cogpu_nvjpeg){
        .gpu = gpu, .library = library, .slot_count = slots, .batch = batch, .slots = all};
    cogpu_status status = create_handle(nvjpeg, error);
    for (uint32_t i = 0; i < slots && status == COGPU_OK; i++)
        status = open_nvjpeg_slot(gpu, batch, &all[i], error);
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
        close_nvjpeg_slot(nvjpeg, &nvjpeg->slots[i]);
    if (nvjpeg->handle)
        nvjpeg->library->destroy(nvjpeg->handle);
    cogpu_release(nvjpeg->slots);
    cogpu_release(nvjpeg);
}

static bool is_of_kind(const cogpu_nvjpeg_block *block, enum kind kind) {
    uint64_t bytes = (uint64_t)block->width * block->height * block->samples;
    return block->stream_bytes > 0 && bytes <= block->capacity &&
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

/* Lists the blocks of a kind from entry `first` on; returns how many. */
static uint32_t list_blocks(struct nvjpeg_slot *slot, uint32_t first,
                            const cogpu_nvjpeg_block *blocks, uint32_t count, enum kind kind) {
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

/* After a failure the state is initialized anew for the next batch. */
static int decode_listed(const cogpu_nvjpeg *nvjpeg, struct nvjpeg_slot *slot, uint32_t first,
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

/* nvJPEG does not report which block of a batch it fails for: then all are for the CPU. Returns how
 * many were listed. */
static uint32_t decode_kind(const cogpu_nvjpeg *nvjpeg, struct nvjpeg_slot *slot, uint32_t first,
                            cogpu_nvjpeg_block *blocks, uint32_t count, enum kind kind,
                            cogpu_gpu_stream *stream) {
    uint32_t listed = list_blocks(slot, first, blocks, count, kind);
    int result = listed ? decode_listed(nvjpeg, slot, first, listed, kind, stream) : NVJPEG_SUCCESS;
    for (uint32_t i = 0; i < count; i++)
        if (is_of_kind(&blocks[i], kind))
            blocks[i].block_status = result == NVJPEG_SUCCESS ? COGPU_GPU_DECODED
                                     : result == NVJPEG_BAD   ? COGPU_GPU_MALFORMED
                                                              : COGPU_GPU_UNSUPPORTED;
    return listed;
}

/* Interleaves planes into pixels. */
static cogpu_status join_planes(const cogpu_nvjpeg *nvjpeg, struct nvjpeg_slot *slot,
                                const cogpu_nvjpeg_block *blocks, uint32_t count,
                                cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_gpu_driver *calls = nvjpeg->gpu->calls;
    uint32_t pictures = 0, tallest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_nvjpeg_block *block = &blocks[i];
        if (block->block_status != COGPU_GPU_DECODED || !is_of_kind(block, COLOURS))
            continue;
        tallest = max_u32(tallest, block->height);
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
    return calls->launch(nvjpeg->gpu, &cogpu_kernel_jpeg_interleave, pictures * args.parts, &args,
                         stream, error);
}

cogpu_status cogpu_nvjpeg_decode(cogpu_nvjpeg *nvjpeg, uint32_t number, cogpu_nvjpeg_block *blocks,
                                 uint32_t count, cogpu_gpu_stream *stream, cogpu_error *error) {
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++)
        blocks[i].block_status = COGPU_GPU_UNSUPPORTED;
    if (number >= nvjpeg->slot_count || count > nvjpeg->batch)
        return COGPU_OK;
    struct nvjpeg_slot *slot = &nvjpeg->slots[number];
    for (enum kind kind = 0; kind < KINDS; kind++)
        listed += decode_kind(nvjpeg, slot, listed, blocks, count, kind, stream);
    return join_planes(nvjpeg, slot, blocks, count, stream, error);
}
