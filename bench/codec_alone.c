/*
 * The codec libraries alone, from memory to memory: the ceiling of what a reader can reach with
 * them. Takes a file in memory and the places of its blocks, decodes each into one reused block,
 * and hands back how many were decoded. bench.py builds it as a shared library.
 */
#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Single thread; block_bytes is what the largest block decodes to. */
size_t decode_blocks(const char *codec, const uint8_t *file, const uint64_t *offsets,
                     const uint64_t *sizes, size_t blocks, size_t block_bytes) {
    int deflate = strcmp(codec, "deflate") == 0;
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    ZSTD_DCtx *unzstd = ZSTD_createDCtx();
    void *block = malloc(block_bytes);
    size_t done = 0;
    for (size_t i = 0; i < blocks && inflater && unzstd && block; i++) {
        size_t got = 0;
        if (deflate)
            done += libdeflate_zlib_decompress(inflater, file + offsets[i], sizes[i], block,
                                               block_bytes, &got) == LIBDEFLATE_SUCCESS;
        else
            done += !ZSTD_isError(
                ZSTD_decompressDCtx(unzstd, block, block_bytes, file + offsets[i], sizes[i]));
    }
    free(block);
    ZSTD_freeDCtx(unzstd);
    libdeflate_free_decompressor(inflater);
    return done;
}
