/*
 * Headers of frames and zstd blocks (RFC 8878, 3.1.1): the parsers of the scan and list kernels.
 * Each parses one header; what connects them is in zstd_decode_scan.cu.
 *
 *     frame   | magic | frame header | zstd block | zstd block | ... | checksum |      3.1.1
 *     block   | last, type, size (3 bytes) | body |                                    3.1.1.2
 *     body    | literals section | sequences section |                                 3.1.1.3
 *
 * Bounds. A body is inside the encoded bytes before it is parsed, and has the bytes that are
 * loaded.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_HEADERS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_HEADERS_H

#include "kernels/zstd/zstd_decode_device.h"

enum { NO_TABLE = 0x7FFFFFFF }; /* no index of the pool */

#define FRAME_MAGIC     0xFD2FB528u
#define SKIPPABLE_MAGIC 0x184D2A50u /* and the 15 numbers after it */

/* Parser of the headers of one TIFF block; the same in all lanes of its warp. */
struct header_scan {
    const uint8_t *in;
    uint32_t at, end;    /* next byte to parse and end, in the TIFF block's encoded bytes */
    uint32_t capacity;   /* bytes that the TIFF block may decode to */
    uint32_t headers;    /* zstd blocks and skippable frames so far */
    uint32_t blocks;     /* zstd blocks so far */
    uint32_t quads;      /* of the pool, allocated so far */
    uint32_t sequences;  /* so far */
    uint32_t literals;   /* Huffman-coded literals so far, in decoded bytes */
    uint32_t output_min; /* bytes that the blocks so far decode to at least */
    uint32_t *bodies;    /* offset of each zstd block's body, by header; NULL: not kept */
    uint32_t known;      /* headers whose bodies an earlier pass has found */
    /* Of the current frame: */
    uint32_t window_size, content_size, block_size_max, flags;
    /* Tables that the next block may repeat (Repeat_Mode, Treeless_Literals_Block), or NO_TABLE. */
    uint32_t huffman_table, fse_tables[ZSTD_CODE_KINDS];
};

/* Frame_Header (3.1.1.1), after the magic number:
 *
 *     descriptor (1 byte) | Window_Descriptor (0 or 1) | Frame_Content_Size (0, 1, 2, 4 or 8)
 *
 *     descriptor bits   7-6 content size flag   5 single segment   3 reserved
 *                       2 checksum              1-0 dictionary
 *
 * A Dictionary_ID would follow the window: such frames are refused. */
DEVICE_FN uint32_t parse_frame_header(struct header_scan *scan) {
    if (scan->end - scan->at < 2)
        return COGPU_GPU_TRUNCATED;
    uint32_t descriptor = scan->in[scan->at++];
    bool is_single_segment = descriptor >> 5 & 1;
    uint32_t size_flag = descriptor >> 6,
             size_bytes = size_flag ? 1u << size_flag : is_single_segment;
    if (descriptor & 8)
        return COGPU_GPU_MALFORMED;
    if (descriptor & 3) /* Dictionary_ID_Flag: needs a dictionary */
        return COGPU_GPU_UNSUPPORTED;
    if (scan->end - scan->at < size_bytes + !is_single_segment)
        return COGPU_GPU_TRUNCATED;
    uint64_t window_size = 0, content_size = 0;
    if (!is_single_segment) {
        /* Window_Descriptor (3.1.1.1.2): exponent in 5 bits, eighths of it in 3. */
        uint32_t byte = scan->in[scan->at++], window_log = 10 + (byte >> 3);
        if (window_log > 31)
            return COGPU_GPU_UNSUPPORTED;
        window_size = (1ull << window_log) + (1ull << window_log) / 8 * (byte & 7);
    }
    for (uint32_t i = 0; i < size_bytes; i++)
        content_size |= (uint64_t)scan->in[scan->at++] << 8 * i;
    if (size_bytes == 2) /* 3.1.1.1.4 */
        content_size += 256;
    if (is_single_segment)
        window_size = content_size;
    if (size_bytes && content_size > scan->capacity)
        return COGPU_GPU_TOO_LONG;
    scan->content_size = (uint32_t)content_size;
    scan->window_size = window_size > UINT32_MAX ? UINT32_MAX : (uint32_t)window_size;
    scan->block_size_max = min_u32(scan->window_size, ZSTD_BLOCK_BYTES_MAX);
    scan->flags =
        (size_bytes ? ZSTD_HAS_CONTENT_SIZE : 0) | (descriptor & 4 ? ZSTD_HAS_CHECKSUM : 0);
    return COGPU_GPU_DECODED;
}

/* Literals_Section_Header (3.1.1.3.1.1): type, size format, then one or two sizes.
 *
 *     bits 0-1    LITERALS_RAW ... LITERALS_TREELESS
 *     bits 2-3    size format; raw and RLE with format 0 or 2 use bit 2 only
 *     then        Regenerated_Size; for Huffman-coded literals also Compressed_Size */
enum { LITERALS_RAW, LITERALS_RLE, LITERALS_COMPRESSED, LITERALS_TREELESS };

DEVICE_FN void parse_plain_literals(const uint8_t *body, struct zstd_block *block) {
    bool is_rle = (body[0] & 3) == LITERALS_RLE;
    uint32_t format = body[0] >> 2 & 3, header = format == 3 ? 3 : format == 1 ? 2 : 1;
    uint32_t value = header == 1 ? body[0] >> 3 : load_le24(body) >> 4;
    block->literals = header == 2 ? value & 0xFFF : value;
    block->literals_offset = header;
    block->literals_compressed = is_rle ? 1 : block->literals;
    block->flags |= is_rle ? ZSTD_RLE : 0;
}

DEVICE_FN uint32_t parse_huffman_literals(const uint8_t *body, struct zstd_block *block) {
    bool has_tree = (body[0] & 3) == LITERALS_COMPRESSED;
    uint32_t format = body[0] >> 2 & 3;
    if (block->body_bytes < 6) /* the five bytes that are loaded, and a sequences section */
        return COGPU_GPU_MALFORMED;
    uint32_t bits = format < 2 ? 10 : format == 2 ? 14 : 18, mask = (1u << bits) - 1;
    uint64_t header = load_le32(body) | (uint64_t)body[4] << 32;
    block->literals = (uint32_t)(header >> 4) & mask;
    block->literals_compressed = (uint32_t)(header >> (4 + bits)) & mask;
    block->literals_offset = format < 2 ? 3 : format + 2;
    block->flags |= ZSTD_HUFFMAN_LITERALS | (has_tree ? ZSTD_HAS_HUFFMAN_TREE : 0) |
                    (format ? ZSTD_FOUR_STREAMS : 0);
    /* Legal, but no encoder writes so few. */
    if (block->literals < (format ? 6 : 1) || block->literals_compressed == 0)
        return COGPU_GPU_UNSUPPORTED;
    return COGPU_GPU_DECODED;
}

/* Sets *used to the bytes of the body up to the end of the literals. The sequences section that
 * follows has at least one byte. */
DEVICE_FN uint32_t parse_literals_header(const uint8_t *body, struct zstd_block *block,
                                         uint32_t *used) {
    uint32_t block_status = COGPU_GPU_DECODED;
    if ((body[0] & 3) <= LITERALS_RLE)
        parse_plain_literals(body, block);
    else
        block_status = parse_huffman_literals(body, block);
    if (block_status)
        return block_status;
    *used = block->literals_offset + block->literals_compressed;
    return *used < block->body_bytes ? COGPU_GPU_DECODED : COGPU_GPU_MALFORMED;
}

/* Sequences_Section_Header (3.1.1.3.2.1), which begins at `used`: Number_of_Sequences in 1 to 3
 * bytes, then the Symbol_Compression_Modes, 2 bits for each kind of code from bit 7 down. */
DEVICE_FN uint32_t parse_sequences_header(const uint8_t *body, struct zstd_block *block,
                                          uint32_t used) {
    uint32_t first = body[used++], count = first;
    if (first == 0)
        return used == block->body_bytes ? COGPU_GPU_DECODED : COGPU_GPU_MALFORMED;
    uint32_t extra_bytes = first < 128 ? 0 : first < 255 ? 1 : 2;
    if (block->body_bytes - used < extra_bytes + 1)
        return COGPU_GPU_MALFORMED;
    if (extra_bytes)
        count =
            extra_bytes == 1 ? ((first - 128) << 8) + body[used] : load_le16(body + used) + 0x7F00;
    used += extra_bytes;
    block->sequences = count;
    block->modes = body[used++];
    block->descriptions_offset = used;
    if (count == 0 || block->modes & 3) /* a count of 0 in two bytes; reserved bits */
        return COGPU_GPU_UNSUPPORTED;
    if (count > ZSTD_BLOCK_BYTES_MAX / 3)
        return COGPU_GPU_MALFORMED;
    return COGPU_GPU_DECODED;
}

/* Body of a Compressed_Block. */
DEVICE_FN uint32_t parse_compressed_block(const uint8_t *body, struct zstd_block *block) {
    uint32_t used = 0, block_status;
    if (block->body_bytes < 3 || block->body_bytes >= ZSTD_BLOCK_BYTES_MAX)
        return COGPU_GPU_MALFORMED;
    block_status = parse_literals_header(body, block, &used);
    return block_status ? block_status : parse_sequences_header(body, block, used);
}

/* Block_Header (3.1.1.2), 3 bytes, LSB first: last block (1 bit), type (2), size (21). */
enum { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED, BLOCK_RESERVED };

DEVICE_FN uint32_t block_type(uint32_t header) {
    return header >> 1 & 3;
}

/* Block_Size; an RLE_Block has one byte. */
DEVICE_FN uint32_t body_bytes_of(uint32_t header) {
    return block_type(header) == BLOCK_RLE ? 1 : header >> 3;
}

/* A zstd block with this header and this body, which ends within the encoded bytes. */
DEVICE_FN uint32_t parse_block(const struct header_scan *scan, uint32_t header, uint32_t body,
                               struct zstd_block *block) {
    uint32_t type = block_type(header), size = header >> 3;
    block->flags =
        scan->flags | (header & 1 ? ZSTD_LAST_BLOCK : 0) | (type == BLOCK_RLE ? ZSTD_RLE : 0);
    block->body_bytes = body_bytes_of(header);
    block->window_size = scan->window_size;
    block->content_size = scan->content_size;
    block->block_size_max = scan->block_size_max;
    block->sequences = block->modes = block->literals_offset = block->checksum = 0;
    block->literals = block->literals_compressed = size;
    return type == BLOCK_COMPRESSED ? parse_compressed_block(scan->in + body, block)
                                    : (uint32_t)COGPU_GPU_DECODED;
}

#endif
