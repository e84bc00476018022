/*
 * pack: slots of a batch, of which each holds the stored bytes of a block, become one piece of
 * bytes, as they stand in the file: side by side, in a COG with the size
 * before each block and its last four bytes after it once more. docs/kernels/pack.md has the idea.
 *
 * So the host needs two copies down: the small one of where blocks begin, whose last entry says how
 * many bytes there are, and then the large one of these.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_PACK_H
#define COGPU_BACKEND_CUDA_CUDA_PACK_H

#include "backend/cuda/cuda_write.h"

enum {
    COGPU_PACK_THREADS = 256,
    COGPU_PACK_SCAN_THREADS = 1024,
    COGPU_PACK_VECTOR = 16, /* bytes that a thread stores at once, aligned */
    COGPU_PACK_AROUND = 4   /* bytes before a block of a COG, and as many behind it */
};

/* Where a block went. */
struct cogpu_packed {
    uint64_t at;    /* where its stored bytes begin; of the entry after the last: bytes of all */
    uint64_t bytes; /* 0: it is left out */
};

struct cogpu_pack_args {
    const cogpu_uncoded *blocks;
    const uint32_t *order; /* which of them stands where; `count` numbers */
    uint32_t count;
    uint32_t parts;  /* blocks of threads that share a block */
    uint32_t around; /* COGPU_PACK_AROUND in a COG, else 0 */
    const uint8_t *slots;
    const uint32_t *sizes; /* at most the room of the slot */
    struct cogpu_packed *places;
    uint8_t *packed; /* aligned to COGPU_PACK_VECTOR: the result begins `skew` bytes behind it */
    uint32_t skew;
};

#ifndef __CUDACC__
/* Bytes that blocks may take together. */
uint64_t cogpu_gpu_pack_bound(const cogpu_uncoded *blocks, uint32_t count, bool is_cog);

/* On the device: `order`, the blocks of the batch by their numbers, as they stand in the file;
 * `places`, in that order, with an entry more than there are blocks; `packed`, which may begin
 * anywhere, with room for cogpu_gpu_pack_bound. Blocks, slots and sizes are those that an
 * encoder was given and has filled; what is stored as it was cut has its slot there. Does not wait.
 */
cogpu_status cogpu_gpu_pack(const cogpu_gpu_encoding *encoding, const uint32_t *order, bool is_cog,
                            struct cogpu_packed *places, uint8_t *packed, cogpu_error *error);
#endif

#endif
