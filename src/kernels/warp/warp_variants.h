/* Strip kernels of float32 that differ in pixels per thread and in registers, for the benchmark. */
#ifndef COGPU_KERNELS_WARP_WARP_VARIANTS_H
#define COGPU_KERNELS_WARP_WARP_VARIANTS_H

/* X(method, pixels at the same time, resident thread blocks) */
#define COGPU_WARP_VARIANTS_OF(X)                                                                  \
    X(nearest, 1, 6)                                                                               \
    X(nearest, 2, 6)                                                                               \
    X(nearest, 4, 6)                                                                               \
    X(nearest, 4, 4)                                                                               \
    X(bilinear, 1, 4)                                                                              \
    X(bilinear, 1, 5)                                                                              \
    X(bilinear, 2, 3)                                                                              \
    X(bilinear, 2, 4)                                                                              \
    X(bilinear, 4, 2)                                                                              \
    X(bilinear, 4, 3)                                                                              \
    X(cubic, 1, 2)                                                                                 \
    X(cubic, 1, 3)                                                                                 \
    X(cubic, 1, 4)                                                                                 \
    X(cubic, 2, 2)

#endif
