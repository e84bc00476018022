/*
 * Zstandard encoder: encodes each part of a TIFF block as the content of one Zstandard block (RFC
 * 8878, 3.1.1.2) in scratch. zstd_encode_join.cu then makes a frame of the blocks.
 *
 * One thread block of 256 threads encodes a part of 32 KiB, a segment of 128 bytes per thread (see
 * encode/part.h); then it takes the next part, until none is left.
 *
 *     step              function                 in parallel              file: zstd_encode...
 *     load              load_part                16 bytes per thread      .cu
 *     worth a search?   estimate_search_gain     positions                _search.h
 *     search            search_matches           positions, 512 at once   _search.h
 *     costs, parse      parse_first              segments                 _parse.h
 *     list sequences    list_sequences           segments, a scan         _sequences.h
 *     repeat offsets    set_offset_values        ranges, a scan           _sequences.h
 *     FSE tables        build_fse_table          a warp per table         _fse.h
 *     FSE states        encode_all_states        a warp per table         _fse.h
 *     Huffman code      write_tree_description   one warp, beside FSE     _huffman.h
 *     literals          write_literals           segments                 _block.h
 *     sequences         write_sequences          sequences                _block.h
 *
 * With two passes, parse, list and repeat offsets run twice: the second parse has costs from the
 * first. A part of equal bytes becomes an RLE block at once.
 *
 * Memory: struct zstd_encode_shared (zstd_encode_format.h) says what shared memory holds at each
 * step. Global scratch: a workspace for each thread block; for each part its encoded bytes and
 * struct cogpu_zstd_part.
 *
 * Synchronisation: block barriers between steps, inside the functions above. While codes are built,
 * four warps work on different tables until the next barrier. Thread blocks share nothing.
 *
 * Loop bounds: loops run over bytes, words, sequences (at most 42 a segment) or symbols of a part;
 * over rounds of Huffman's algorithm, fewer than symbols; over at most 32 rounds of
 * encode_all_states; over fewer than 64 corrections of normalize_counts.
 *
 * Output bound: a block that is not shorter than its part becomes a raw block. So a part takes at
 * most its bytes and the 3 bytes of the block header.
 */
#include "kernels/zstd/zstd_encode_block.h"
#include "kernels/zstd/zstd_encode_parse.h"

/* Loads the part, without the padding of encode/part.h, and zeros after its end. Returns whether
 * all bytes are equal. */
DEVICE_FN bool load_part(struct zstd_encode_shared *shared, const struct encode_part *part) {
    const uint32_t first = part->in[0] * 0x01010101u;
    uint32_t *words = part_words(shared);
    bool has_other = false;
    for (uint32_t i = PART_BYTES / 4 + thread_index(); i < PADDED_WORDS + PEEK_WORDS;
         i += PART_THREADS)
        words[i] = 0;
    for (uint32_t at = 16 * thread_index(); at < PART_BYTES; at += 16 * PART_THREADS) {
        words4 four = {0, 0, 0, 0};
        if (at < part->bytes)
            four = load_words4(part->in + at);
        uint32_t loaded[4] = {four.x, four.y, four.z, four.w};
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            loaded[i] = clear_past_end(loaded[i], at + 4 * i, part->bytes);
            has_other |= loaded[i] != clear_past_end(first, at + 4 * i, part->bytes);
        }
        const words4 cleared = {loaded[0], loaded[1], loaded[2], loaded[3]};
        store_words4(words + at / 4, cleared);
    }
    return !sync_block_or(has_other);
}

/* Moves the part to the padded layout of encode/part.h. The search needs it without gaps. */
DEVICE_FN void pad_part(struct zstd_encode_shared *shared) {
    uint32_t *words = part_words(shared), held[SEGMENT_WORDS];
    UNROLL
    for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
        held[i] = words[i * PART_THREADS + thread_index()];
    sync_block();
    UNROLL
    for (uint32_t i = 0; i < SEGMENT_WORDS; i++)
        words[padded_index(i * PART_THREADS + thread_index())] = held[i];
    sync_block();
}

/* Returns the bytes of the encoded part, or those of the part if it is not shorter. */
DEVICE_FN uint32_t compress_part(const struct cogpu_zstd_encode_args *args,
                                 struct zstd_encode_shared *shared, const struct encode_part *part,
                                 struct cogpu_zstd_workspace *workspace, uint8_t *out) {
    uint32_t *matches = workspace->u.matches;
    const enum search_gain gain =
        args->hash_tables > 0 ? estimate_search_gain(shared, part) : SEARCH_NEVER;
    if (gain != SEARCH_NEVER)
        search_matches(shared, part, args->hash_tables > 1, matches);
    pad_part(shared);
    const bool is_searched = parse_first(shared, part, matches, gain);
    for (uint32_t pass = 1;; pass++) {
        const struct sequence_list list = list_sequences(shared, part, workspace);
        count_sequence_codes(shared, part, workspace->sequences, list.sequences);
        if (pass == args->passes)
            return write_block(shared, part, workspace, &list, out);
        estimate_costs(shared, part, list.literals, list.sequences);
        parse_segments(shared, part, is_searched ? matches : NULL);
    }
}

/* Encodes every block_count()-th part. */
KERNEL(cogpu_kernel_zstd_encode, struct cogpu_zstd_encode_args, struct zstd_encode_shared,
       PART_THREADS, 2) {
    const uint32_t all = args->count * args->max_parts;
    for (uint32_t i = block_index(); i < all; i += block_count()) {
        const uint32_t index = i / args->max_parts, number = i % args->max_parts;
        const cogpu_raw_block *block = &args->blocks[index];
        if (args->sizes[index] == COGPU_GPU_SPARSE || number >= part_count(block->in_bytes))
            continue;
        const struct encode_part part = get_part(args->decoded, block, number, true);
        struct cogpu_zstd_part encoded = {RLE_BLOCK, 1, 0, 0};
        if (!load_part(shared, &part)) {
            encoded.body_bytes =
                compress_part(args, shared, &part, args->workspaces + block_index(),
                              args->encoded + (uint64_t)i * COGPU_ZSTD_ENCODED_BYTES);
            encoded.block_type = encoded.body_bytes < part.bytes ? COMPRESSED_BLOCK : RAW_BLOCK;
        }
        if (thread_index() == 0)
            args->parts[i] = encoded;
        sync_block();
    }
}
