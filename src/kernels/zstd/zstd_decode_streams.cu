/* Zstandard decoder, step 5: the kernel for devices with 85 KiB of shared memory a thread block. */
#include "kernels/zstd/zstd_decode_streams.h"

KERNEL(cogpu_kernel_zstd_streams, struct zstd_args, struct streams_shared, STREAM_WARPS *WARP, 2) {
    decode_streams(args, shared);
}
