/*
 * Deflate encoder: encodes each part of a TIFF block as one DEFLATE block (RFC 1951) in scratch.
 * deflate_chain.cu runs before it at levels with a search, deflate_join.cu after it, which makes
 * zlib streams (RFC 1950) of the blocks.
 *
 * One thread block of 256 threads encodes a part of 32 KiB, a segment of 128 bytes per thread (see
 * encode/part.h); then it takes the next part, until none is left.
 *
 *     step            function                what runs in parallel          file
 *     load, Adler-32  load_part               words                          here
 *     search          search_matches          four bytes per thread          deflate_search.h
 *     guess costs     guess_costs             bytes, then byte values        deflate_parse.h
 *     parse           parse_segment           segments                       deflate_parse.h
 *     count symbols   count_path_symbols      segments, atomics              deflate_parse.h
 *     build codes     build_block_codes       symbols, then a warp per code  deflate_codes.h
 *     header          make_block_header       warp 0                         deflate_codes.h
 *     bits            code_segment            segments                       deflate_bits.h
 *     move            move_segment            segments, atomics at borders   deflate_bits.h
 *
 * Parse and count run `passes` times; all but the last use a quarter of each segment, to estimate
 * what symbols cost.
 *
 * Memory: struct deflate_shared (deflate_format.h) says what shared memory holds at each step.
 * Global scratch: for each part its encoded bytes and struct cogpu_deflate_part; with a search also
 * hash chains for each part, and matches for each thread block.
 *
 * Synchronisation: block barriers between steps, inside the functions above. Thread blocks share
 * nothing. Kernels follow each other on one stream.
 *
 * Loop bounds: all loops run over bytes, words or symbols of a part, over at most max_chain links,
 * or over rounds of Huffman's algorithm, fewer than symbols. No byte of input can raise a bound.
 *
 * Output bound: write_block reports 0 if a block has 8 * bytes + 32 bits or more, and then the part
 * is stored. So a part takes at most 8 * bytes + COGPU_DEFLATE_STORED_BITS bits of the stream.
 */
#include "kernels/deflate/deflate_bits.h"

/* Loads the part into the byte row, zeros after its end, and sums for Adler-32. Clears the
 * histograms that guess_costs needs. */
DEVICE_FN void load_part(struct deflate_shared *shared, const struct encode_part *part) {
    uint32_t *words = byte_row(shared), sum = 0, position_sum = 0;
    for (uint32_t i = thread_index(); i < HISTOGRAM_COPIES * BYTE_VALUES; i += PART_THREADS)
        shared->v.histograms[i] = 0;
    for (uint32_t i = thread_index(); i < PEEK_WORDS; i += PART_THREADS)
        words[PADDED_WORDS + i] = 0;
    if (thread_index() == 0)
        shared->byte_sum = shared->position_sum = 0;
    sync_block();
    UNROLL
    for (uint32_t i = 0; i < PART_BYTES / 4 / PART_THREADS; i++) {
        const uint32_t index = i * PART_THREADS + thread_index(), at = 4 * index;
        uint32_t word = 0;
        if (at < part->bytes)
            word = clear_past_end(load_u32_aligned(part->in + at), at, part->bytes);
        words[padded_index(index)] = word;
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t byte = word >> 8 * j & 0xFF;
            sum += byte;
            position_sum += byte * (at + j);
        }
    }
    sum = warp_sum(sum);
    position_sum = warp_sum(position_sum % ADLER_MODULUS);
    if (lane_index() == 0) {
        atomic_add(&shared->byte_sum, sum);
        atomic_add(&shared->position_sum, position_sum);
    }
    sync_block();
}

/*
 * Adler-32 of the part (RFC 1950, 8.2), but begun with 0 instead of 1, so that parts can be
 * combined later. For n bytes b[i]:
 *
 *     low  = sum of b[i]
 *     high = sum of (n - i) b[i] = n * low - sum of i b[i]          both modulo 65521
 */
DEVICE_FN uint32_t adler_of_part(const struct deflate_shared *shared, uint32_t bytes) {
    const uint64_t all = (uint64_t)bytes * shared->byte_sum;
    const uint32_t high = (uint32_t)(all % ADLER_MODULUS) + ADLER_MODULUS -
                          shared->position_sum % ADLER_MODULUS;
    return high % ADLER_MODULUS << 16 | shared->byte_sum % ADLER_MODULUS;
}

DEVICE_FN void clear_counts(struct deflate_shared *shared) {
    for (uint32_t i = thread_index(); i < SYMBOLS; i += PART_THREADS)
        shared->codes[i] = 0;
    for (uint32_t i = thread_index(); i < HEADER_WORDS; i += PART_THREADS)
        shared->header[i] = 0;
}

/* Parses the last `words` words of all segments and counts the symbols of the paths. */
DEVICE_FN void parse_part(struct deflate_shared *shared, const struct encode_part *part,
                          const struct chain_search *search, uint32_t words) {
    parse_segment(shared, part, search, words);
    clear_counts(shared);
    sync_block();
    count_path_symbols(shared, part, search, words);
    sync_block();
}

/* Encodes every block_count()-th part. */
DEVICE_FN void encode_parts(const struct cogpu_deflate_args *args, struct deflate_shared *shared,
                            bool has_search) {
    const uint32_t all = args->count * args->max_parts;
    for (uint32_t i = block_index(); i < all; i += block_count()) {
        const uint32_t index = i / args->max_parts, number = i % args->max_parts;
        const cogpu_raw_block *block = &args->blocks[index];
        if (args->sizes[index] == COGPU_GPU_SPARSE || number >= part_count(block->in_bytes))
            continue;
        const struct encode_part part = get_part(args->decoded, block, number, false);
        const struct chain_search chains = {args->chains + (uint64_t)i * PART_BYTES,
                                            args->matches + (uint64_t)block_index() * PART_BYTES};
        const struct chain_search *search = has_search ? &chains : NULL;
        load_part(shared, &part);
        if (has_search)
            search_matches(shared, &part, search, args->max_chain);
        guess_costs(shared, &part);
        for (uint32_t pass = 1; pass < args->passes; pass++) {
            parse_part(shared, &part, search, ESTIMATE_WORDS);
            estimate_costs(shared);
        }
        parse_part(shared, &part, search, SEGMENT_WORDS);
        build_block_codes(shared);
        uint32_t *out = (uint32_t *)(args->encoded + (uint64_t)i * COGPU_DEFLATE_ENCODED_BYTES);
        const uint32_t bits = write_block(shared, &part, out);
        if (thread_index() == 0) {
            args->parts[i].coded_bits = bits;
            args->parts[i].adler = adler_of_part(shared, part.bytes);
        }
        sync_block();
    }
}

KERNEL(cogpu_kernel_deflate, struct cogpu_deflate_args, struct deflate_shared, PART_THREADS, 3) {
    encode_parts(args, shared, false);
}

KERNEL(cogpu_kernel_deflate_search, struct cogpu_deflate_args, struct deflate_shared, PART_THREADS,
       3) {
    encode_parts(args, shared, true);
}
