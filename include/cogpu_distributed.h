/*
 * cogpu_distributed: writing one file by several threads, processes or machines. The Python package
 * writes Dask arrays of a cluster with it.
 *
 * Unstable: this header may change in every version, without a new soname. The rules of cogpu.h
 * apply to its functions and structs.
 */
#ifndef COGPU_DISTRIBUTED_H
#define COGPU_DISTRIBUTED_H

#include "cogpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------
 * Blocks that are encoded elsewhere
 *
 * Workers have the same profile. Each encodes blocks with cogpu_encode_block. One writer takes the
 * encoded blocks with cogpu_writer_write_block. The file has the same bytes as one that was written
 * by rows.
 */

/* Encodes one block of a level, pixels or mask, by its index in the level's directory (bands, then
 * rows, then columns). The raster has the pixels of the block that are inside the image; one band
 * with COGPU_INTERLEAVE_BAND. The caller frees `encoded`; it has no bytes if the profile leaves the
 * block out as sparse. Any thread. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_encode_block(
    const cogpu_profile *profile, uint32_t level, cogpu_content content, uint64_t block,
    const cogpu_raster *pixels, cogpu_memory *encoded, cogpu_error *error);

/* Takes encoded blocks of all levels, in any order, each once. A writer that takes blocks makes no
 * overviews and takes no rows. Blocks without bytes are left out.
 *
 * Level 0 of a COG, which is at its end, may stay where it was encoded: then `encoded` is NULL for
 * all blocks of level 0, and `bytes` is their size. The sink gets the file up to level 0;
 * cogpu_written counts all of it. Behind it belong the blocks with leader and trailer: tile by tile
 * from the upper left, of each tile all bands, then its mask. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_writer_write_block(cogpu_writer *writer, uint32_t level, cogpu_content content,
                         uint64_t block, const void *encoded, size_t bytes, cogpu_error *error);

/* Copies a block with the leader and trailer of a COG, COGPU_COG_BLOCK_OVERHEAD bytes more. A block
 * without bytes has neither. */
enum { COGPU_COG_BLOCK_OVERHEAD = 8 };
COGPU_API void cogpu_cog_add_leader_trailer(const void *encoded, size_t bytes, void *to);

/* The block grid of a level that a profile makes. */
typedef struct cogpu_level_layout {
    size_t struct_size;
    uint32_t levels; /* of the file */
    uint32_t width, height;
    uint32_t block_width, block_height;
    uint64_t blocks;    /* of all bands, without those of masks */
    uint64_t max_bytes; /* of all blocks in the file, masks, leaders and trailers included */
} cogpu_level_layout;
#define COGPU_LEVEL_LAYOUT_INIT COGPU_INIT(cogpu_level_layout)

/* COGPU_NOT_FOUND past the last level. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_profile_level_layout(const cogpu_profile *profile,
                                                                   uint32_t level,
                                                                   cogpu_level_layout *layout,
                                                                   cogpu_error *error);

/* Computes a window of an overview, level 1 or more, as the writer does: of `pixels`, and of `mask`
 * if the profile has one, which hold the window of the level before that
 * cogpu_overview_source_window returns. Host memory only. Any thread. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_overview_source_window(const cogpu_profile *profile,
                                                                     uint32_t level,
                                                                     const cogpu_window *window,
                                                                     cogpu_window *source,
                                                                     cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_overview_compute(const cogpu_profile *profile, uint32_t level, const cogpu_window *window,
                       const cogpu_raster *pixels, const cogpu_raster *mask, const cogpu_raster *to,
                       const cogpu_raster *to_mask, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * S3 multipart uploads by several machines
 *
 * A writer to an s3:// URL needs none of this. One machine begins an upload and shares its id.
 * Others send numbered parts, in any order, and return the store's ETags. One machine completes the
 * upload: then the object appears or is replaced. All parts but the last have 5 MiB or more. The
 * store keeps, and bills, the parts of an upload that is neither completed nor aborted.
 *
 * `context` has network settings and connections; NULL: defaults. Any thread. The id contains no
 * credentials: each machine has its own.
 */

enum {
    COGPU_S3_PARTS_MAX = 10000,
    COGPU_S3_PART_BYTES_MIN = 5 << 20, /* except for the last */
    COGPU_S3_UPLOAD_BYTES = 1024,
    COGPU_S3_ETAG_BYTES = 128
};

typedef struct cogpu_s3_part {
    size_t struct_size;
    uint32_t number; /* 1 to COGPU_S3_PARTS_MAX; numbers may be left out */
    char etag[COGPU_S3_ETAG_BYTES];
    int reserved; /* 0 */
} cogpu_s3_part;
#define COGPU_S3_PART_INIT COGPU_INIT(cogpu_s3_part)

/* The best size of parts, and their largest number, for an object of at most `bytes`. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_plan(uint64_t bytes, uint64_t *part_bytes,
                                                          uint32_t *parts, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_begin(const char *address,
                                                           cogpu_context *context,
                                                           char upload[COGPU_S3_UPLOAD_BYTES],
                                                           cogpu_error *error);
/* Returns when the store has the part. A number that was sent before is replaced. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_send(const char *address, const char *upload,
                                                          cogpu_context *context, uint32_t number,
                                                          const void *from, size_t bytes,
                                                          cogpu_s3_part *part, cogpu_error *error);
/* Parts are in ascending order, `bytes` in all. If it fails, the upload is aborted. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_upload_complete(const char *address, const char *upload, cogpu_context *context,
                      const cogpu_s3_part *parts, size_t count, uint64_t bytes, cogpu_error *error);
/* As far as the store can be reached. Wait for sends first: a part that arrives later may stay. */
COGPU_API void cogpu_upload_abort(const char *address, const char *upload, cogpu_context *context);

#ifdef __cplusplus
}
#endif

#endif
