/*
 * Joins the encoded parts of a TIFF block to one Zstandard frame (RFC 8878, 3.1.1) in its slot:
 *
 *     | magic number | descriptor | content size | block header | body | block header | body | ...
 *       4 bytes        1 byte       1, 2 or 4      3 bytes
 *
 * The frame is a single segment (3.1.1.1.1.2): its window is its content, so matches may reach back
 * to the beginning. It has no checksum and no dictionary.
 *
 * 1. cogpu_kernel_zstd_encode_offsets, a warp for each TIFF block: where each Zstandard block
 *    begins in the frame, by a scan, and the size of the frame.
 * 2. cogpu_kernel_zstd_encode_join, a thread block for each part: copies it there. Blocks begin at
 *    any byte; words at their borders are written byte by byte, so no two thread blocks write the
 *    same word. Nothing is synchronised but by the order of the kernels.
 *
 * Output bound: 9 bytes of frame header; for each part 3 bytes and at most its own bytes.
 */
#include "kernels/zstd/zstd_encode_format.h"

enum { MAGIC_BYTES = 4, MAGIC_NUMBER = (int)0xFD2FB528u, SINGLE_SEGMENT_FLAG = 1 << 5 };

/* Frame_Content_Size (3.1.1.1.4): two bytes hold the size minus 256. */
DEVICE_FN uint32_t content_size_bytes(uint32_t in_bytes) {
    return in_bytes < 256 ? 1 : in_bytes < 65536 + 256 ? 2 : 4;
}

DEVICE_FN uint32_t frame_header_byte(uint32_t in_bytes, uint32_t i) {
    const uint32_t bytes = content_size_bytes(in_bytes), size_flag = bytes / 2;
    if (i < MAGIC_BYTES)
        return (uint32_t)MAGIC_NUMBER >> 8 * i & 0xFF;
    if (i == MAGIC_BYTES)
        return size_flag << 6 | SINGLE_SEGMENT_FLAG;
    return (bytes == 2 ? in_bytes - 256 : in_bytes) >> 8 * (i - MAGIC_BYTES - 1) & 0xFF;
}

KERNEL(cogpu_kernel_zstd_encode_offsets, struct cogpu_zstd_encode_args, struct nothing_shared, WARP,
       16) {
    const uint32_t in_bytes = args->blocks[block_index()].in_bytes, count = part_count(in_bytes);
    struct cogpu_zstd_part *parts = args->parts + (uint64_t)block_index() * args->max_parts;
    uint32_t at = MAGIC_BYTES + 1 + content_size_bytes(in_bytes);
    if (args->sizes[block_index()] == COGPU_GPU_SPARSE)
        return;
    sync_warp(); /* all lanes have read the size that lane 0 overwrites */
    for (uint32_t base = 0; base < count; base += WARP) {
        const uint32_t i = base + lane_index();
        const uint32_t bytes = i < count ? COGPU_ZSTD_BLOCK_HEADER_BYTES + parts[i].body_bytes : 0;
        const uint32_t inclusive = warp_scan(bytes);
        if (i < count)
            parts[i].start = at + inclusive - bytes;
        at += warp_read(inclusive, WARP - 1);
    }
    if (lane_index() == 0)
        args->sizes[block_index()] = at;
}

/* Copies from aligned memory to any byte: whole words in the middle, bytes at both ends. */
DEVICE_FN void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    const uint32_t head = min_u32((uint32_t)(-(uintptr_t)to % 4), bytes);
    const uint32_t words = (bytes - head) / 4, tail = head + 4 * words;
    if (thread_index() < head)
        to[thread_index()] = from[thread_index()];
    if (thread_index() < bytes - tail)
        to[tail + thread_index()] = from[tail + thread_index()];
    for (uint32_t i = thread_index(); i < words; i += PART_THREADS) {
        const uint32_t at = head + 4 * i;
        const uint8_t *word = from + (at & ~3u);
        *(number32 *)(to + at) =
            funnel_right(load_u32_aligned(word), load_u32_aligned(word + 4), 8 * (at & 3));
    }
}

KERNEL(cogpu_kernel_zstd_encode_join, struct cogpu_zstd_encode_args, struct nothing_shared,
       PART_THREADS, 8) {
    const uint32_t index = block_index() / args->max_parts;
    const uint32_t number = block_index() % args->max_parts;
    const cogpu_raw_block *block = &args->blocks[index];
    const uint32_t count = part_count(block->in_bytes);
    if (args->sizes[index] == COGPU_GPU_SPARSE || number >= count)
        return;
    const struct encode_part part = get_part(args->decoded, block, number, true);
    const struct cogpu_zstd_part encoded = args->parts[block_index()];
    const bool is_compressed = encoded.block_type == COMPRESSED_BLOCK;
    uint8_t *frame = args->slots + block->out, *out = frame + encoded.start;
    if (number == 0 && thread_index() < encoded.start)
        frame[thread_index()] = (uint8_t)frame_header_byte(block->in_bytes, thread_index());
    /* Block_Size: of the content if compressed, else of the decoded bytes (3.1.1.2.3). */
    const uint32_t block_size = is_compressed ? encoded.body_bytes : part.bytes;
    const uint32_t header = (number + 1 == count) | encoded.block_type << 1 | block_size << 3;
    if (thread_index() < COGPU_ZSTD_BLOCK_HEADER_BYTES)
        out[thread_index()] = (uint8_t)(header >> 8 * thread_index());
    copy_bytes(out + COGPU_ZSTD_BLOCK_HEADER_BYTES,
               is_compressed ? args->encoded + (uint64_t)block_index() * COGPU_ZSTD_ENCODED_BYTES
                             : part.in,
               encoded.body_bytes);
}
