/*
 * Zstandard decoder, steps 1 to 3: frame and block headers (RFC 8878, 3.1.1).
 *
 * The headers of a frame give the position and size of all of its parts without any entropy
 * decoding, so one thread per TIFF block is enough:
 *
 *     frame   | magic | frame header | zstd block | zstd block | ... | checksum |      3.1.1
 *     block   | last, type, size (3 bytes) | body |                                    3.1.1.2
 *     body    | literals section | sequences section |                                 3.1.1.3
 *
 * scan   One thread per TIFF block counts its zstd blocks and adds up the scratch memory that their
 *        tables and checkpoints need. It refuses what is malformed or too costly.
 * plan   One warp assigns consecutive TIFF blocks to rounds, such that the needs of a round fit the
 *        scratch memory: a prefix sum over 32 TIFF blocks at a time.
 * list   (per round) One thread per TIFF block parses the headers again and writes a struct
 *        zstd_block for each zstd block, with its share of the pool.
 *
 * The kernels are ordered by the CUDA stream; within a kernel no thread waits for another, except
 * for the warp collectives of plan.
 *
 * Bounds. Each parsed header advances `at` by at least 3 bytes and is checked against `end`; a TIFF
 * block has at most zstd_blocks_max() blocks and frames. Both passes run the same code on the same
 * bytes, so list writes no more than scan has counted.
 *
 * Refused, for the CPU codec to decide: dictionaries, windows of 4 GiB and more, headers that
 * announce more bytes than the TIFF block's capacity, and counts of literals or sequences that no
 * encoder writes.
 */
#include "kernels/zstd/zstd_decode_device.h"

enum { NO_TABLE = 0x7FFFFFFF }; /* no index of the pool */

#define FRAME_MAGIC     0xFD2FB528u
#define SKIPPABLE_MAGIC 0x184D2A50u /* and the 15 numbers after it */

/* Parser of the headers of one TIFF block. */
struct header_scan {
    const uint8_t *in;
    uint32_t at, end;    /* next byte to parse and end, in the TIFF block's encoded bytes */
    uint32_t capacity;   /* bytes that the TIFF block may decode to */
    uint32_t headers;    /* zstd blocks and frames so far */
    uint32_t blocks;     /* zstd blocks so far */
    uint32_t quads;      /* of the pool, allocated so far */
    uint32_t sequences;  /* so far */
    uint32_t literals;   /* Huffman-coded literals so far, in decoded bytes */
    uint32_t output_min; /* bytes that the blocks so far decode to at least */
    /* Of the current frame: */
    uint32_t window_size, content_size, block_size_max, flags;
    /* Tables that the next block may repeat (Repeat_Mode, Treeless_Literals_Block), or NO_TABLE. */
    uint32_t huffman_table, fse_tables[ZSTD_CODE_KINDS];
};

DEVICE_FN uint32_t allocate_quads(struct header_scan *scan, uint32_t quads) {
    uint32_t at = scan->quads;
    scan->quads += quads;
    return at;
}

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
    scan->flags = (size_bytes ? ZSTD_HAS_CONTENT_SIZE : 0) |
                  (descriptor & 4 ? ZSTD_HAS_CHECKSUM : 0) | ZSTD_FIRST_BLOCK;
    scan->huffman_table = NO_TABLE;
    for (uint32_t i = 0; i < ZSTD_CODE_KINDS; i++)
        scan->fse_tables[i] = NO_TABLE;
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

/* Treeless literals use the table of the last block that had a tree. */
DEVICE_FN uint32_t parse_huffman_literals(struct header_scan *scan, const uint8_t *body,
                                          struct zstd_block *block) {
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
    if (has_tree)
        scan->huffman_table = allocate_quads(scan, ZSTD_HUFFMAN_TABLE_QUADS);
    else if (scan->huffman_table == NO_TABLE)
        return COGPU_GPU_MALFORMED;
    block->huffman_table = scan->huffman_table;
    return COGPU_GPU_DECODED;
}

/* Sets *used to the bytes of the body up to the end of the literals. The sequences section that
 * follows has at least one byte. */
DEVICE_FN uint32_t parse_literals_header(struct header_scan *scan, struct zstd_block *block,
                                         uint32_t *used) {
    const uint8_t *body = scan->in + scan->at;
    uint32_t block_status = COGPU_GPU_DECODED;
    if ((body[0] & 3) <= LITERALS_RLE)
        parse_plain_literals(body, block);
    else
        block_status = parse_huffman_literals(scan, body, block);
    if (block_status)
        return block_status;
    *used = block->literals_offset + block->literals_compressed;
    return *used < block->body_bytes ? COGPU_GPU_DECODED : COGPU_GPU_MALFORMED;
}

/* Sequences_Section_Header (3.1.1.3.2.1), which begins at `used`: Number_of_Sequences in 1 to 3
 * bytes, then the Symbol_Compression_Modes, 2 bits for each kind of code from bit 7 down. A block
 * that repeats a table refers to the set of the last block that had one of its own. */
DEVICE_FN uint32_t parse_sequences_header(struct header_scan *scan, struct zstd_block *block,
                                          uint32_t used) {
    const uint8_t *body = scan->in + scan->at;
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
    bool has_own_table = false;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        has_own_table |= compression_mode(block, kind) != MODE_REPEAT;
    if (has_own_table)
        block->own_fse_tables = allocate_quads(scan, ZSTD_FSE_TABLES_QUADS);
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        if (compression_mode(block, kind) != MODE_REPEAT)
            scan->fse_tables[kind] = block->own_fse_tables;
        else if (scan->fse_tables[kind] == NO_TABLE)
            return COGPU_GPU_MALFORMED;
        block->fse_tables[kind] = scan->fse_tables[kind];
    }
    return COGPU_GPU_DECODED;
}

DEVICE_FN uint32_t parse_compressed_block(struct header_scan *scan, struct zstd_block *block) {
    uint32_t used = 0, block_status;
    if (block->body_bytes < 3 || block->body_bytes >= ZSTD_BLOCK_BYTES_MAX)
        return COGPU_GPU_MALFORMED;
    block_status = parse_literals_header(scan, block, &used);
    if (block_status == COGPU_GPU_DECODED)
        block_status = parse_sequences_header(scan, block, used);
    if (block_status == COGPU_GPU_DECODED && block->flags & ZSTD_HUFFMAN_LITERALS) {
        block->literals_out = scan->literals;
        scan->literals += block->literals;
    }
    return block_status;
}

/* A zstd block from its Block_Header on (3.1.1.2), 3 bytes, LSB first: last block (1 bit), type
 * (2), size (21). */
enum { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED, BLOCK_RESERVED };

DEVICE_FN uint32_t parse_block(struct header_scan *scan, struct zstd_block *block) {
    if (scan->end - scan->at < 3)
        return COGPU_GPU_TRUNCATED;
    uint32_t header = load_le24(scan->in + scan->at), type = header >> 1 & 3, size = header >> 3;
    scan->at += 3;
    if (type == BLOCK_RESERVED)
        return COGPU_GPU_MALFORMED;
    if (size > scan->block_size_max)
        return COGPU_GPU_UNSUPPORTED;
    block->flags =
        scan->flags | (header & 1 ? ZSTD_LAST_BLOCK : 0) | (type == BLOCK_RLE ? ZSTD_RLE : 0);
    block->body_bytes = type == BLOCK_RLE ? 1 : size;
    block->window_size = scan->window_size;
    block->content_size = scan->content_size;
    block->block_size_max = scan->block_size_max;
    block->sequences = block->literals_offset = 0;
    block->literals = block->literals_compressed = size;
    scan->flags &= ~(uint32_t)ZSTD_FIRST_BLOCK;
    if (scan->end - scan->at < block->body_bytes)
        return COGPU_GPU_TRUNCATED;
    uint32_t block_status = type == BLOCK_COMPRESSED ? parse_compressed_block(scan, block)
                                                     : (uint32_t)COGPU_GPU_DECODED;
    if (block_status)
        return block_status;
    block->checkpoints = allocate_quads(scan, zstd_checkpoint_quads(block->sequences));
    scan->at += block->body_bytes;
    scan->sequences += block->sequences;
    /* A match has at least 3 bytes (3.1.1.3.2.1.1). */
    uint32_t output_min = block->literals + 3 * block->sequences;
    scan->output_min += output_min;
    if (output_min > scan->block_size_max)
        return COGPU_GPU_MALFORMED;
    return scan->output_min > scan->capacity ? COGPU_GPU_TOO_LONG : COGPU_GPU_DECODED;
}

/* A frame after its magic number. Writes its zstd blocks to `blocks`; NULL: counts them only. */
DEVICE_FN uint32_t parse_frame(struct header_scan *scan, struct zstd_block *blocks, uint64_t in,
                               uint32_t tiff_block) {
    uint32_t block_status = parse_frame_header(scan), blocks_max = zstd_blocks_max(scan->capacity);
    struct zstd_block block;
    for (bool is_last = false; !block_status && !is_last;) {
        block.tiff_block = tiff_block;
        block.body = block.checksum = 0;
        block_status = parse_block(scan, &block);
        if (block_status)
            break;
        is_last = block.flags & ZSTD_LAST_BLOCK;
        if (is_last && scan->flags & ZSTD_HAS_CHECKSUM) {
            if (scan->end - scan->at < 4)
                return COGPU_GPU_TRUNCATED;
            block.checksum = load_le32(scan->in + scan->at);
        }
        /* Streaming encoders end a frame with an empty block: its flags go to the block before. */
        bool is_empty =
            is_last && !(block.flags & ZSTD_FIRST_BLOCK) && block.literals + block.sequences == 0;
        if (blocks && is_empty) {
            blocks[scan->blocks - 1].flags |= ZSTD_LAST_BLOCK;
            blocks[scan->blocks - 1].checksum = block.checksum;
        } else if (blocks) {
            block.body = in + scan->at - block.body_bytes;
            blocks[scan->blocks] = block;
        }
        if (is_last && scan->flags & ZSTD_HAS_CHECKSUM)
            scan->at += 4;
        scan->blocks += !is_empty;
        if (++scan->headers > blocks_max)
            return COGPU_GPU_UNSUPPORTED;
    }
    return block_status;
}

/* All frames of a TIFF block, also skippable ones (3.1.2). Bytes after the last frame are ignored,
 * as the CPU codec ignores them. Pool quads are allocated from `first_quad` on, and Huffman-coded
 * literals are placed from byte `literals` of the TIFF block's output on. */
DEVICE_FN uint32_t parse_tiff_block(struct header_scan *scan, const struct zstd_args *args,
                                    uint32_t tiff_block, struct zstd_block *blocks,
                                    uint32_t first_quad, uint32_t literals) {
    const cogpu_encoded_block *encoded = &args->encoded[tiff_block];
    scan->in = args->stored + encoded->in;
    scan->at = 0;
    scan->end = encoded->in_bytes;
    scan->capacity = encoded->capacity;
    scan->headers = scan->blocks = scan->sequences = scan->output_min = 0;
    scan->quads = first_quad;
    scan->literals = literals;
    for (bool is_first = true;; is_first = false) {
        uint32_t bytes_left = scan->end - scan->at;
        uint32_t magic = bytes_left < 4 ? 0 : load_le32(scan->in + scan->at);
        if ((magic & 0xFFFFFFF0u) == SKIPPABLE_MAGIC) {
            if (bytes_left < 8 || load_le32(scan->in + scan->at + 4) > bytes_left - 8)
                return COGPU_GPU_TRUNCATED;
            scan->at += 8 + load_le32(scan->in + scan->at + 4);
            if (++scan->headers > zstd_blocks_max(scan->capacity))
                return COGPU_GPU_UNSUPPORTED;
        } else if (magic == FRAME_MAGIC) {
            scan->at += 4;
            uint32_t block_status = parse_frame(scan, blocks, encoded->in, tiff_block);
            if (block_status)
                return block_status;
        } else {
            return is_first ? COGPU_GPU_MALFORMED : COGPU_GPU_DECODED;
        }
    }
}

KERNEL(cogpu_kernel_zstd_scan, struct zstd_args, struct nothing_shared, 32, 1) {
    uint32_t tiff_block = block_index() * thread_count() + thread_index();
    if (tiff_block >= args->tiff_block_count)
        return;
    struct header_scan scan;
    uint32_t block_status = parse_tiff_block(&scan, args, tiff_block, NULL, 0, 0);
    struct zstd_tiff_block need = {0, 0, 0, 0, 0, 0, {0, 0}};
    if (!block_status && scan.quads > args->pool_quads)
        block_status = COGPU_GPU_UNSUPPORTED;
    if (!block_status) {
        need.blocks = scan.blocks;
        need.quads = scan.quads;
        need.literals = scan.literals;
        need.sequences = scan.sequences;
    }
    args->tiff_blocks[tiff_block] = need;
    args->statuses[tiff_block] = block_status;
}

/* Estimate: one sequence takes the streams kernel as long as six literals. */
enum { LITERALS_PER_SEQUENCE = 6 };

/* Lanes add up the needs of 32 TIFF blocks; those that still fit are added to the round, and the
 * first that does not fit begins the next one. An empty round accepts at least one TIFF block,
 * because scan has refused those that exceed a round: so the loop ends. TIFF blocks that remain
 * after the last round go to the CPU. */
KERNEL(cogpu_kernel_zstd_plan, struct zstd_args, struct nothing_shared, 32, 1) {
    uint32_t lane = lane_index(), count = args->tiff_block_count;
    uint32_t at = 0, round_begin = 0, round = 0;
    uint64_t blocks = 0, quads = 0; /* of this round so far */
    /* Time of sequences minus time of literals, in units of 256 literals. Below 0 it wraps; its sum
     * is read as signed. */
    uint32_t sequence_surplus = 0;
    while (at < count && round < args->round_count) {
        uint32_t tiff_block = at + lane;
        uint32_t own_blocks = tiff_block < count ? args->tiff_blocks[tiff_block].blocks : 0;
        uint32_t own_quads = tiff_block < count ? args->tiff_blocks[tiff_block].quads : 0;
        uint64_t blocks_up_to = blocks + warp_scan(own_blocks),
                 quads_up_to = quads + warp_scan(own_quads);
        bool fits = blocks_up_to <= args->blocks_max && quads_up_to <= args->pool_quads;
        uint32_t fitting = trailing_zeros(warp_ballot(!fits));
        if (lane < fitting && tiff_block < count) {
            sequence_surplus +=
                args->tiff_blocks[tiff_block].sequences / 256 * LITERALS_PER_SEQUENCE;
            sequence_surplus -= args->tiff_blocks[tiff_block].literals / 256;
            args->tiff_blocks[tiff_block].first_block = (uint32_t)(blocks_up_to - own_blocks);
            args->tiff_blocks[tiff_block].first_quad = (uint32_t)(quads_up_to - own_quads);
        }
        if (fitting > 0) {
            blocks = warp_read64(blocks_up_to, fitting - 1);
            quads = warp_read64(quads_up_to, fitting - 1);
        }
        at = min_u32(at + fitting, count);
        if (fitting == WARP && at < count)
            continue;
        sequence_surplus = warp_sum(sequence_surplus);
        if (lane == 0) {
            struct zstd_round planned = {
                round_begin, at, (uint32_t)blocks, round_begin, (int32_t)sequence_surplus > 0,
                {0, 0, 0}};
            args->rounds[round] = planned;
        }
        round++;
        round_begin = at;
        sequence_surplus = 0;
        blocks = quads = 0;
    }
    for (uint32_t tiff_block = at + lane; tiff_block < count; tiff_block += WARP)
        args->statuses[tiff_block] = COGPU_GPU_UNSUPPORTED;
    for (uint32_t i = round + lane; i < args->round_count; i += WARP) {
        struct zstd_round empty_round = {count, count, 0, count, 0, {0, 0, 0}};
        args->rounds[i] = empty_round;
    }
}

KERNEL(cogpu_kernel_zstd_list, struct zstd_args, struct nothing_shared, 32, 1) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t stride = block_count() * thread_count();
    for (uint32_t tiff_block =
             round->first_tiff_block + block_index() * thread_count() + thread_index();
         tiff_block < round->end_tiff_block; tiff_block += stride) {
        const struct zstd_tiff_block *planned = &args->tiff_blocks[tiff_block];
        struct header_scan scan;
        if (planned->blocks)
            parse_tiff_block(&scan, args, tiff_block, args->blocks + planned->first_block,
                             planned->first_quad,
                             args->encoded[tiff_block].capacity - planned->literals);
    }
}
