/*
 * Zstandard decoder, steps 1 to 3: frame and block headers (RFC 8878, 3.1.1).
 *
 * The headers of a frame give the position and size of all of its parts without any entropy
 * decoding. A warp takes a TIFF block; zstd_decode_headers.h has the parsers.
 *
 *     1. find    block headers, one after the other, since each has the size of its block
 *     2. parse   the bodies of 32 zstd blocks, a lane each
 *     3. link    prefix scans over the lanes: shares of the pool, places of literals, and the
 *                tables that blocks repeat, each that of the last block that had one
 *
 * scan   counts the zstd blocks of a TIFF block and adds up the scratch memory that their tables
 * and checkpoints need. It refuses what is malformed or too costly. plan   One warp assigns
 * consecutive TIFF blocks to rounds, such that the needs of a round fit the scratch memory: a
 * prefix sum over 32 TIFF blocks at a time. list   (per round) parses the headers again and writes
 * a struct zstd_block for each zstd block, with its share of the pool.
 *
 * The kernels are ordered by the CUDA stream; within a kernel warps do not wait for each other.
 *
 * Bounds. Each block header advances `at` by at least 3 bytes and is checked against `end`; a TIFF
 * block has at most zstd_blocks_max() blocks and frames. Both passes run the same code on the same
 * bytes, so list writes no more than scan has counted.
 *
 * Refused, for the CPU codec to decide: dictionaries, windows of 4 GiB and more, headers that
 * announce more bytes than the TIFF block's capacity, and counts of literals or sequences that no
 * encoder writes. Of several errors the first is reported.
 */
#include "kernels/zstd/zstd_decode_headers.h"

/* Up to 32 consecutive zstd blocks of a frame. `count` and `is_last` are the same in all lanes; the
 * rest is the lane's own. */
struct block_group {
    uint32_t count;        /* of zstd blocks */
    bool is_last;          /* the last one ends the frame */
    uint32_t header, body; /* Block_Header; offset of the body */
    uint32_t block_status;
};

/* Finds the next 32 zstd blocks, up to the last of the frame or the first error. By a warp. */
DEVICE_FN struct block_group find_blocks(struct header_scan *scan) {
    struct block_group group = {0, false, 0, 0, COGPU_GPU_DECODED};
    uint32_t block_status = COGPU_GPU_DECODED;
    while (group.count < WARP && !group.is_last && !block_status) {
        uint32_t header = 0;
        if (scan->end - scan->at < 3) {
            block_status = COGPU_GPU_TRUNCATED;
        } else {
            header = load_le24(scan->in + scan->at);
            scan->at += 3;
            block_status = block_type(header) == BLOCK_RESERVED           ? COGPU_GPU_MALFORMED
                           : header >> 3 > scan->block_size_max           ? COGPU_GPU_UNSUPPORTED
                           : scan->end - scan->at < body_bytes_of(header) ? COGPU_GPU_TRUNCATED
                                                                          : COGPU_GPU_DECODED;
        }
        if (lane_index() == group.count) {
            group.header = header;
            group.body = scan->at;
            group.block_status = block_status;
        }
        group.count++;
        group.is_last = header & 1;
        scan->at += block_status ? 0 : body_bytes_of(header);
    }
    return group;
}

/* Keeps the offset of the body of header `index`. */
DEVICE_FN void keep_body(const struct header_scan *scan, uint32_t index, uint32_t body) {
    if (scan->bodies && scan->known == 0 && index < zstd_blocks_max(scan->capacity))
        scan->bodies[index] = body;
}

/* The same as find_blocks, from the bodies that scan has kept. By a warp. */
DEVICE_FN struct block_group recall_blocks(struct header_scan *scan) {
    struct block_group group = {WARP, false, 0, 0, COGPU_GPU_DECODED};
    uint32_t lane = lane_index();
    if (scan->headers + lane < scan->known) {
        group.body = scan->bodies[scan->headers + lane];
        group.header = load_le24(scan->in + group.body - 3);
    }
    uint32_t lasts = warp_ballot(group.header & 1);
    if (lasts) {
        group.count = trailing_zeros(lasts) + 1;
        group.is_last = true;
    }
    scan->at = warp_read(group.body + body_bytes_of(group.header), group.count - 1);
    return group;
}

/* Adds the lanes' values to *sum. Returns the sum before the own one. By a warp. */
DEVICE_FN uint32_t add_lanes(uint32_t *sum, uint32_t own) {
    uint32_t up_to = *sum + warp_scan(own);
    *sum = warp_read(up_to, WARP - 1);
    return up_to - own;
}

/* The table that a lane defines, or else the last one defined before it. *table is the one before
 * the first lane and becomes the one after the last. By a warp. */
DEVICE_FN uint32_t last_table(uint32_t *table, bool is_own, uint32_t own) {
    uint32_t owners = warp_ballot(is_own) & 0xFFFFFFFFu >> (WARP - 1 - lane_index());
    uint32_t last = warp_read(own, highest_bit(owners | 1));
    last = owners ? last : *table;
    *table = warp_read(last, WARP - 1);
    return last;
}

/* Assigns tables of its own or earlier ones, and checkpoints. A lane without a block has no
 * sequences and no literals. By a warp. */
DEVICE_FN uint32_t link_tables(struct header_scan *scan, struct zstd_block *block) {
    bool has_tree = block->flags & ZSTD_HAS_HUFFMAN_TREE, has_fse = false, is_missing = false;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++)
        has_fse |= block->sequences && compression_mode(block, kind) != MODE_REPEAT;
    uint32_t tree_quads = has_tree ? ZSTD_HUFFMAN_TABLE_QUADS : 0,
             fse_quads = has_fse ? ZSTD_FSE_TABLES_QUADS : 0;
    uint32_t first =
        add_lanes(&scan->quads, tree_quads + fse_quads + zstd_checkpoint_quads(block->sequences));
    block->own_fse_tables = first + tree_quads;
    block->checkpoints = first + tree_quads + fse_quads;
    block->huffman_table = last_table(&scan->huffman_table, has_tree, first);
    is_missing |= block->flags & ZSTD_HUFFMAN_LITERALS && block->huffman_table == NO_TABLE;
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        bool is_own = block->sequences && compression_mode(block, kind) != MODE_REPEAT;
        block->fse_tables[kind] =
            last_table(&scan->fse_tables[kind], is_own, block->own_fse_tables);
        is_missing |= block->sequences && block->fse_tables[kind] == NO_TABLE;
    }
    return is_missing ? COGPU_GPU_MALFORMED : COGPU_GPU_DECODED;
}

/* Places the literals and adds up the bytes that blocks decode to at least. By a warp. */
DEVICE_FN uint32_t link_output(struct header_scan *scan, struct zstd_block *block, bool is_there) {
    /* A match has at least 3 bytes (3.1.1.3.2.1.1). */
    uint32_t output_min = block->literals + 3 * block->sequences;
    block->literals_out =
        add_lanes(&scan->literals, block->flags & ZSTD_HUFFMAN_LITERALS ? block->literals : 0);
    add_lanes(&scan->sequences, block->sequences);
    uint32_t before = add_lanes(&scan->output_min, output_min);
    if (!is_there)
        return COGPU_GPU_DECODED;
    if (output_min > scan->block_size_max)
        return COGPU_GPU_MALFORMED;
    return before + output_min > scan->capacity ? COGPU_GPU_TOO_LONG : COGPU_GPU_DECODED;
}

/* Parses the lane's zstd block of the group and links it to those before. Returns the block status
 * of the first bad lane. By a warp. */
DEVICE_FN uint32_t parse_group(struct header_scan *scan, const struct block_group *group,
                               struct zstd_block *block) {
    uint32_t lane = lane_index(), block_status = group->block_status, later_status;
    bool is_there = lane < group->count && !block_status;
    block->flags = block->sequences = block->modes = block->literals = 0;
    if (is_there)
        block_status = parse_block(scan, group->header, group->body, block);
    if (block_status) /* sums must not exceed 32 bits */
        block->flags = block->sequences = block->literals = 0;
    is_there &= !block_status;
    later_status = link_tables(scan, block);
    block_status = block_status ? block_status : later_status;
    later_status = link_output(scan, block, is_there);
    block_status = block_status ? block_status : later_status;
    if (is_there && !block_status && scan->headers + lane + 1 > zstd_blocks_max(scan->capacity))
        block_status = COGPU_GPU_UNSUPPORTED;
    uint32_t bad_lanes = warp_ballot(block_status != COGPU_GPU_DECODED);
    return bad_lanes ? warp_read(block_status, trailing_zeros(bad_lanes)) : COGPU_GPU_DECODED;
}

/* Content_Checksum (3.1.1), after the last zstd block. */
DEVICE_FN uint32_t parse_checksum(struct header_scan *scan, uint32_t *checksum) {
    if (!(scan->flags & ZSTD_HAS_CHECKSUM))
        return COGPU_GPU_DECODED;
    if (scan->end - scan->at < 4)
        return COGPU_GPU_TRUNCATED;
    *checksum = load_le32(scan->in + scan->at);
    scan->at += 4;
    return COGPU_GPU_DECODED;
}

/* Writes the blocks of a group to `blocks`; NULL: counts them only. Streaming encoders end a frame
 * with an empty block: its flags go to the block before. By a warp. */
DEVICE_FN void store_group(struct header_scan *scan, const struct block_group *group,
                           struct zstd_block *block, struct zstd_block *blocks, uint32_t checksum) {
    uint32_t lane = lane_index(), last = group->count - 1;
    bool is_empty = group->is_last && !(block->flags & ZSTD_FIRST_BLOCK) &&
                    block->literals + block->sequences == 0;
    is_empty = warp_read(is_empty, last);
    uint32_t count = group->count - is_empty;
    if (group->is_last && lane + 1 == count) {
        block->flags |= ZSTD_LAST_BLOCK;
        block->checksum = checksum;
    }
    if (blocks && lane < count)
        blocks[scan->blocks + lane] = *block;
    if (blocks && is_empty && count == 0 && lane == 0) {
        blocks[scan->blocks - 1].flags |= ZSTD_LAST_BLOCK;
        blocks[scan->blocks - 1].checksum = checksum;
    }
    sync_warp(); /* the next group may begin with an empty block */
    scan->blocks += count;
    scan->headers += group->count;
}

/* A frame after its magic number. By a warp. */
DEVICE_FN uint32_t parse_frame(struct header_scan *scan, struct zstd_block *blocks, uint64_t in,
                               uint32_t tiff_block) {
    uint32_t block_status = parse_frame_header(scan);
    scan->huffman_table = NO_TABLE;
    for (uint32_t i = 0; i < ZSTD_CODE_KINDS; i++)
        scan->fse_tables[i] = NO_TABLE;
    for (bool is_first = true, is_last = false; !block_status && !is_last; is_first = false) {
        struct block_group group = scan->known ? recall_blocks(scan) : find_blocks(scan);
        struct zstd_block block;
        uint32_t checksum = 0;
        if (lane_index() < group.count)
            keep_body(scan, scan->headers + lane_index(), group.body);
        block_status = parse_group(scan, &group, &block);
        is_last = group.is_last;
        if (!block_status && is_last)
            block_status = parse_checksum(scan, &checksum);
        if (block_status)
            break;
        if (is_first && lane_index() == 0)
            block.flags |= ZSTD_FIRST_BLOCK;
        block.tiff_block = tiff_block;
        block.body = in + group.body;
        store_group(scan, &group, &block, blocks, checksum);
    }
    return block_status;
}

/* Where scan keeps the offsets of bodies for list: in the TIFF block's output, which nothing else
 * uses before list has run. NULL if they might not fit. */
DEVICE_FN uint32_t *bodies_of(const struct zstd_args *args, uint32_t tiff_block) {
    const cogpu_encoded_block *encoded = &args->encoded[tiff_block];
    bool fits = sizeof(uint32_t) * zstd_blocks_max(encoded->capacity) <= encoded->capacity;
    return fits ? (uint32_t *)(void *)(args->decoded + encoded->out) : NULL;
}

/* All frames of a TIFF block, also skippable ones (3.1.2). Bytes after the last frame are ignored,
 * as the CPU codec ignores them. Pool quads are allocated from `first_quad` on, and Huffman-coded
 * literals are placed from byte `literals` of the TIFF block's output on. By a warp. */
DEVICE_FN uint32_t parse_tiff_block(struct header_scan *scan, const struct zstd_args *args,
                                    uint32_t tiff_block, struct zstd_block *blocks,
                                    uint32_t first_quad, uint32_t literals) {
    const cogpu_encoded_block *encoded = &args->encoded[tiff_block];
    scan->in = args->stored + encoded->in;
    scan->at = 0;
    scan->end = encoded->in_bytes;
    scan->capacity = encoded->capacity;
    scan->headers = scan->blocks = scan->sequences = scan->output_min = 0;
    scan->bodies = bodies_of(args, tiff_block);
    scan->known = scan->bodies && blocks ? args->tiff_blocks[tiff_block].headers : 0;
    scan->quads = first_quad;
    scan->literals = literals;
    for (bool is_first = true;; is_first = false) {
        uint32_t bytes_left = scan->end - scan->at;
        uint32_t magic = bytes_left < 4 ? 0 : load_le32(scan->in + scan->at);
        if ((magic & 0xFFFFFFF0u) == SKIPPABLE_MAGIC) {
            if (bytes_left < 8 || load_le32(scan->in + scan->at + 4) > bytes_left - 8)
                return COGPU_GPU_TRUNCATED;
            scan->at += 8 + load_le32(scan->in + scan->at + 4);
            if (lane_index() == 0)
                keep_body(scan, scan->headers, scan->at);
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

enum { HEADER_THREADS = 128 };

KERNEL(cogpu_kernel_zstd_scan, struct zstd_args, struct nothing_shared, HEADER_THREADS, 8) {
    uint32_t warps = HEADER_THREADS / WARP;
    for (uint32_t tiff_block = block_index() * warps + warp_index();
         tiff_block < args->tiff_block_count; tiff_block += block_count() * warps) {
        struct header_scan scan;
        uint32_t block_status = parse_tiff_block(&scan, args, tiff_block, NULL, 0, 0);
        struct zstd_tiff_block need = {0, 0, 0, 0, 0, 0, 0, 0};
        if (!block_status && scan.quads > args->pool_quads)
            block_status = COGPU_GPU_UNSUPPORTED;
        if (!block_status) {
            need.blocks = scan.blocks;
            need.quads = scan.quads;
            need.literals = scan.literals;
            need.sequences = scan.sequences;
            need.headers = scan.headers;
        }
        if (lane_index() == 0) {
            args->tiff_blocks[tiff_block] = need;
            args->statuses[tiff_block] = block_status;
        }
    }
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

KERNEL(cogpu_kernel_zstd_list, struct zstd_args, struct nothing_shared, HEADER_THREADS, 8) {
    const struct zstd_round *round = &args->rounds[args->round];
    uint32_t warps = HEADER_THREADS / WARP;
    for (uint32_t tiff_block = round->first_tiff_block + block_index() * warps + warp_index();
         tiff_block < round->end_tiff_block; tiff_block += block_count() * warps) {
        const struct zstd_tiff_block *planned = &args->tiff_blocks[tiff_block];
        struct header_scan scan;
        if (planned->blocks)
            parse_tiff_block(&scan, args, tiff_block, args->blocks + planned->first_block,
                             planned->first_quad,
                             args->encoded[tiff_block].capacity - planned->literals);
    }
}
