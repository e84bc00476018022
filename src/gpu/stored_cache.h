/*
 * A cache of stored blocks, as they are in their files, in device memory: a read that finds its
 * blocks there neither reads the file nor copies bytes to the device. Decision 24 has the reasons.
 *
 *     slab 0   | block | block | block |    |      full: blocks of about the same age
 *     slab 1   | block | block | free       |      is being filled
 *     slab 2   not allocated yet
 *
 * Device memory is allocated in slabs, on demand. Blocks are appended to one slab. When all slabs
 * are full, the one that was not used for the longest time is emptied and filled again. A slab with
 * a pinned block stays. Any thread may call these functions; none waits for a read.
 *
 * The cache knows no streams. A block is kept after the batch that copied it there is complete, and
 * unpinned after the batch that reads it is complete. So no work is queued that reads or writes the
 * memory of an unpinned block.
 */
#ifndef COGPU_GPU_STORED_CACHE_H
#define COGPU_GPU_STORED_CACHE_H

#include "cpu/block_cache.h"
#include "gpu/driver/gpu.h"

typedef struct cogpu_stored_cache cogpu_stored_cache;

typedef struct cogpu_stored_block {
    struct cogpu_stored_block *next_in_bucket, *next_in_slab;
    cogpu_block_cache_key key;
    uint64_t bytes;
    uint8_t *memory; /* on the device, aligned to COGPU_GPU_ALIGN */
    uint32_t slab;
    bool is_kept; /* its bytes are there */
} cogpu_stored_block;

/* Allocates no device memory yet. */
cogpu_status cogpu_stored_cache_open(cogpu_gpu *gpu, uint64_t budget_bytes,
                                     cogpu_stored_cache **cache, cogpu_error *error);
/* No block is pinned. NULL is allowed. */
void cogpu_stored_cache_close(cogpu_stored_cache *cache);

bool cogpu_stored_cache_has(cogpu_stored_cache *cache, cogpu_block_cache_key key);
/* Finds and pins a block of so many bytes, which the caller unpins after use. NULL if there is
 * none. */
cogpu_stored_block *cogpu_stored_cache_find(cogpu_stored_cache *cache, cogpu_block_cache_key key,
                                            uint64_t bytes);
void cogpu_stored_cache_unpin(cogpu_stored_cache *cache, cogpu_stored_block *block);

/* Memory for a block, which the caller fills, and then keeps or discards. It may wait for another
 * thread that allocates a slab. NULL if the block is in the cache or on its way there, is larger
 * than a slab, if all slabs are in use, or memory runs out. */
cogpu_stored_block *cogpu_stored_cache_reserve(cogpu_stored_cache *cache, cogpu_block_cache_key key,
                                               uint64_t bytes);
void cogpu_stored_cache_keep(cogpu_stored_cache *cache, cogpu_stored_block *block);
void cogpu_stored_cache_discard(cogpu_stored_cache *cache, cogpu_stored_block *block);

#endif
