/*
 * Old-style JPEG (compression 6, TIFF 6.0 section 22): builds the JPEG header that the blocks lack,
 * and finds their scans, from the tags of a directory.
 *
 * Three layouts exist. (1) The file holds a complete JPEG stream (JPEGInterchangeFormat) and the
 * strips point into it: the image is one block, the stream's scan. (2) JPEGInterchangeFormat is
 * only a header. (3) The tables are separate (JPEGQTables, JPEGDCTables, JPEGACTables). In (2) and
 * (3) each strip or tile is a scan that follows the header. Malformed parts are ignored here; the
 * codec reports them when a block is read.
 */
#include "image/image.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum {
    MARKER_SOF0 = 0xC0,
    MARKER_SOF2 = 0xC2,
    MARKER_SOF3 = 0xC3,
    MARKER_DHT = 0xC4,
    MARKER_SOI = 0xD8,
    MARKER_SOS = 0xDA,
    MARKER_DQT = 0xDB,
    MARKER_DRI = 0xDD,
    MARKER_APP0 = 0xE0,
    MARKER_APP15 = 0xEF,
    MARKER_COM = 0xFE
};

enum { HEADER_MAX = 64 << 10, SEGMENTS_MAX = 1000, BANDS_MAX = 3, QUANTA = 64, CODE_LENGTHS = 16 };

/* The header being built. */
typedef struct jpeg_header {
    uint8_t *bytes;
    size_t used;
    bool has_frame, has_scan;
    uint32_t across, down; /* subsampling; 1 where the frame has one of another kind */
    uint64_t end;          /* where the scan begins in the file */
} jpeg_header;

static bool append_header(jpeg_header *h, const void *bytes, size_t count) {
    if (count > HEADER_MAX - h->used)
        return false;
    memcpy(h->bytes + h->used, bytes, count);
    h->used += count;
    return true;
}

static bool is_kept(uint8_t marker) {
    return marker == MARKER_DQT || marker == MARKER_DHT || marker == MARKER_DRI ||
           marker == MARKER_SOS || (marker >= MARKER_SOF0 && marker <= MARKER_SOF3);
}

static bool is_skipped(uint8_t marker) {
    return (marker >= MARKER_APP0 && marker <= MARKER_APP15) || marker == MARKER_COM;
}

/* The frame's subsampling: units are whole numbers of pixels, and only the first component has
 * several samples in one. */
static void note_frame(const uint8_t *segment, size_t bytes, jpeg_header *h) {
    uint32_t count = bytes > 9 ? segment[9] : 0;
    h->has_frame = true;
    h->across = h->down = 1;
    if (count != 3 || bytes < 10 + 3 * (size_t)count || segment[14] != 0x11 || segment[17] != 0x11)
        return;
    uint32_t across = segment[11] >> 4, down = segment[11] & 0xFu;
    bool is_known = (across == 1 || across == 2 || across == 4) &&
                    (down == 1 || down == 2 || down == 4) && !(across < 4 && down == 4);
    if (is_known) {
        h->across = across;
        h->down = down;
    }
}

/* Copies marker segments from `at` up to the scan. False if something else is there. */
static bool copy_segments(const cogpu_tiff *tiff, uint64_t at, uint64_t end, jpeg_header *h) {
    uint8_t head[4];
    for (int i = 0; i < SEGMENTS_MAX && end - at >= 4; i++) {
        if (cogpu_io_peek(tiff->io, at, 4, head, NULL) != COGPU_OK || head[0] != 0xFF)
            return false;
        if (head[1] == MARKER_SOI || head[1] == 0xFF) {
            at += head[1] == MARKER_SOI ? 2 : 1;
            continue;
        }
        uint64_t bytes = 2 + (uint64_t)load_u16(head + 2, true);
        if (bytes < 4 || bytes > end - at)
            return false;
        if (is_kept(head[1])) {
            uint8_t *to = h->bytes + h->used;
            if (bytes > HEADER_MAX - h->used ||
                cogpu_io_peek(tiff->io, at, (size_t)bytes, to, NULL) != COGPU_OK)
                return false;
            h->used += (size_t)bytes;
            if (head[1] >= MARKER_SOF0 && head[1] <= MARKER_SOF3)
                note_frame(to, (size_t)bytes, h);
        } else if (!is_skipped(head[1])) {
            return false;
        }
        at += bytes;
        h->end = at;
        if (head[1] == MARKER_SOS) {
            h->has_scan = true;
            return h->has_frame;
        }
    }
    return false;
}

static void begin_header(jpeg_header *h) {
    static const uint8_t start[2] = {0xFF, MARKER_SOI};
    uint8_t *bytes = h->bytes;
    *h = (jpeg_header){.bytes = bytes, .across = 1, .down = 1};
    (void)append_header(h, start, sizeof start);
}

/* Offsets of one table a component; components with the same offset share a table. */
static bool read_offsets(const cogpu_storage *storage, uint16_t tag, uint64_t offsets[BANDS_MAX],
                         uint8_t numbers[BANDS_MAX]) {
    const cogpu_entry *entry = cogpu_tiff_find(storage->tiff, storage->directory, tag);
    if (!entry || entry->count < storage->bands ||
        cogpu_tiff_u64s(storage->tiff, entry, 0, storage->bands, offsets, NULL) != COGPU_OK)
        return false;
    for (uint8_t i = 0; i < storage->bands; i++)
        for (numbers[i] = 0; offsets[numbers[i]] != offsets[i];)
            numbers[i]++;
    return true;
}

static bool put_segment(jpeg_header *h, uint8_t marker, uint8_t first, const uint8_t *bytes,
                        size_t count) {
    const uint8_t head[5] = {0xFF, marker, (uint8_t)((count + 3) >> 8), (uint8_t)(count + 3),
                             first};
    return append_header(h, head, sizeof head) && append_header(h, bytes, count);
}

static bool put_quanta(const cogpu_storage *storage, jpeg_header *h, uint8_t numbers[BANDS_MAX]) {
    uint64_t offsets[BANDS_MAX];
    uint8_t table[QUANTA];
    if (!read_offsets(storage, TAG_JPEG_Q_TABLES, offsets, numbers))
        return false;
    for (uint8_t i = 0; i < storage->bands; i++)
        if (numbers[i] == i &&
            (cogpu_io_peek(storage->tiff->io, offsets[i], sizeof table, table, NULL) != COGPU_OK ||
             !put_segment(h, MARKER_DQT, i, table, sizeof table)))
            return false;
    return true;
}

/* Huffman tables of DC (class 0) or AC (class 1): how many codes each length has, then symbols. */
static bool put_codes(const cogpu_storage *storage, uint16_t tag, uint8_t class, jpeg_header *h,
                      uint8_t numbers[BANDS_MAX]) {
    uint64_t offsets[BANDS_MAX];
    uint8_t table[CODE_LENGTHS + 256];
    if (!read_offsets(storage, tag, offsets, numbers))
        return false;
    for (uint8_t i = 0; i < storage->bands; i++) {
        size_t symbols = 0;
        if (numbers[i] != i)
            continue;
        if (cogpu_io_peek(storage->tiff->io, offsets[i], CODE_LENGTHS, table, NULL) != COGPU_OK)
            return false;
        for (int length = 0; length < CODE_LENGTHS; length++)
            symbols += table[length];
        if (symbols > 256 || cogpu_io_peek(storage->tiff->io, offsets[i] + CODE_LENGTHS, symbols,
                                           table + CODE_LENGTHS, NULL) != COGPU_OK)
            return false;
        if (!put_segment(h, MARKER_DHT, (uint8_t)(class << 4 | i), table, CODE_LENGTHS + symbols))
            return false;
    }
    return true;
}

/* A frame of the size of a block. */
static bool put_frame(const cogpu_storage *storage, jpeg_header *h,
                      const uint8_t quanta[BANDS_MAX]) {
    uint32_t width = storage->block_width, height = storage->block_height;
    uint8_t frame[5 + 3 * BANDS_MAX] = {(uint8_t)(height >> 8), (uint8_t)height,
                                        (uint8_t)(width >> 8), (uint8_t)width,
                                        (uint8_t)storage->bands};
    if (width > UINT16_MAX || height > UINT16_MAX)
        return false;
    for (uint8_t i = 0; i < storage->bands; i++) {
        frame[5 + 3 * i] = i;
        frame[6 + 3 * i] = i == 0 ? (uint8_t)(h->across << 4 | h->down) : 0x11;
        frame[7 + 3 * i] = quanta[i];
    }
    return put_segment(h, MARKER_SOF0, 8, frame, 5 + 3 * (size_t)storage->bands);
}

static bool put_scan(const cogpu_storage *storage, jpeg_header *h, const uint8_t dc[BANDS_MAX],
                     const uint8_t ac[BANDS_MAX]) {
    uint8_t scan[2 * BANDS_MAX + 3] = {0};
    size_t count = 0;
    for (uint8_t i = 0; i < storage->bands; i++) {
        scan[count++] = i;
        scan[count++] = (uint8_t)(dc[i] << 4 | ac[i]);
    }
    scan[count + 1] = 63; /* the last coefficient */
    return put_segment(h, MARKER_SOS, (uint8_t)storage->bands, scan, count + 3);
}

static bool put_restarts(const cogpu_storage *storage, jpeg_header *h) {
    uint64_t interval = 0;
    (void)cogpu_tiff_u64(storage->tiff, storage->directory, TAG_JPEG_RESTART_INTERVAL, 0, &interval,
                         NULL);
    const uint8_t low = (uint8_t)interval;
    return interval == 0 || interval > UINT16_MAX ||
           put_segment(h, MARKER_DRI, (uint8_t)(interval >> 8), &low, 1);
}

/* The header of files that have tables and no stream. */
static bool compose_header(const cogpu_storage *storage, jpeg_header *h) {
    uint8_t quanta[BANDS_MAX], dc[BANDS_MAX], ac[BANDS_MAX];
    begin_header(h);
    h->across = storage->format.subsampling_x;
    h->down = storage->format.subsampling_y;
    return put_quanta(storage, h, quanta) && put_codes(storage, TAG_JPEG_DC_TABLES, 0, h, dc) &&
           put_codes(storage, TAG_JPEG_AC_TABLES, 1, h, ac) && put_restarts(storage, h) &&
           put_frame(storage, h, quanta) && put_scan(storage, h, dc, ac);
}

/* The span of JPEGInterchangeFormat; empty without one. */
static cogpu_span find_stream(const cogpu_storage *storage) {
    const cogpu_tiff *tiff = storage->tiff;
    uint64_t offset = 0, bytes = 0, file_bytes = cogpu_io_bytes(tiff->io);
    (void)cogpu_tiff_u64(tiff, storage->directory, TAG_JPEG_STREAM, 0, &offset, NULL);
    (void)cogpu_tiff_u64(tiff, storage->directory, TAG_JPEG_STREAM_BYTES, 0, &bytes, NULL);
    if (offset == 0 || offset >= file_bytes)
        return (cogpu_span){0};
    if (bytes == 0 || bytes > file_bytes - offset)
        bytes = file_bytes - offset;
    return (cogpu_span){offset, bytes};
}

/* The image is one strip, the scan of the stream, to where the strips end that lie in it. */
static void use_whole_stream(cogpu_storage *storage, const jpeg_header *h, uint64_t end) {
    storage->scan = (cogpu_span){h->end, end - h->end};
    storage->block_height = storage->height;
    storage->down = 1;
    storage->blocks = 1;
}

cogpu_status cogpu_old_jpeg_read(cogpu_storage *storage, cogpu_arena *arena, cogpu_error *error) {
    const cogpu_tiff *tiff = storage->tiff;
    cogpu_block_format *format = &storage->format;
    cogpu_span stream = find_stream(storage), first = {0};
    jpeg_header h = {0};
    if (storage->bands > BANDS_MAX || storage->planes > 1 || storage->bits != 8)
        return COGPU_OK; /* which the codec rejects */
    TRY(cogpu_arena_allocate(arena, HEADER_MAX, 1, &h.bytes, error));
    bool has_first = cogpu_storage_locate(storage, 0, 1, &first, NULL) == COGPU_OK;
    begin_header(&h);
    bool is_valid =
        stream.bytes > 0 && copy_segments(tiff, stream.offset, stream.offset + stream.bytes, &h);
    bool is_inside = has_first && first.offset - stream.offset < stream.bytes;
    if (is_valid && is_inside && storage->across == 1) {
        uint64_t end = stream.offset + stream.bytes, other = first.offset + first.bytes;
        use_whole_stream(storage, &h, storage->blocks == 1 && other > end ? other : end);
    }
    if (!is_valid && has_first) {
        begin_header(&h);
        is_valid = copy_segments(tiff, first.offset, first.offset + first.bytes, &h);
    }
    if (!is_valid)
        is_valid = compose_header(storage, &h);
    if (!is_valid)
        return COGPU_OK;
    format->jpeg_tables = h.bytes;
    format->jpeg_table_bytes = h.used;
    if (storage->colour == COGPU_FROM_YCBCR) {
        format->subsampling_x = h.across;
        format->subsampling_y = h.down;
    }
    return COGPU_OK;
}
