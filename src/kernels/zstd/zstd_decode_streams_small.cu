/* Zstandard decoder, step 5: the kernel for devices with less shared memory, which runs half as many
 * chains in half of the memory. */
#define ZSTD_CHAINS 8
#include "kernels/zstd/zstd_decode_streams.h"

KERNEL(cogpu_kernel_zstd_streams_small, struct zstd_args, struct streams_shared,
       STREAM_WARPS *WARP, 1) {
    decode_streams(args, shared);
}
