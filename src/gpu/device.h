/*
 * One GPU as a context opened it: the driver handle, the memory budget of reads, the slots and
 * buffers that reads share, cuFile and nvJPEG. Any thread may call any of these functions at any
 * time. None of them waits for a read: see README.md for the locks.
 */
#ifndef COGPU_GPU_DEVICE_H
#define COGPU_GPU_DEVICE_H

#include "cpu/block_cache.h"
#include "cpu/cpu.h"
#include "gpu/driver/gpu.h"

typedef struct cogpu_gpu_device cogpu_gpu_device;

/* Owns `gpu` from here on. Reads take at most `budget_bytes` of its memory, on demand. With
 * `use_nvjpeg_hardware` the nvJPEG hardware decoder is used if the GPU has one.
 *
 * The environment variable COGPU_ALWAYS_DEVICE, read here, keeps small reads from being decoded by
 * the CPU where that would be faster. Tests set it, since their files are small. */
cogpu_status cogpu_gpu_device_open(cogpu_gpu *gpu, uint64_t budget_bytes, bool use_nvjpeg_hardware,
                                   cogpu_gpu_device **device, cogpu_error *error);
/* Keeps stored blocks in so many bytes of device memory, for reads to come. To be called before the
 * first read. */
cogpu_status cogpu_gpu_device_open_cache(cogpu_gpu_device *device, uint64_t bytes,
                                         cogpu_error *error);
/* Whether the cache has the block now. */
bool cogpu_gpu_device_has_cached(const cogpu_gpu_device *device, cogpu_block_cache_key key);
void cogpu_gpu_device_close(cogpu_gpu_device *device);
cogpu_gpu *cogpu_gpu_device_gpu(const cogpu_gpu_device *device);
uint64_t cogpu_gpu_device_budget(const cogpu_gpu_device *device);

/* Device memory for callers, and copies that are complete on return: from device to host memory if
 * `is_down`, else the other way. */
cogpu_status cogpu_gpu_device_allocate(cogpu_gpu_device *device, uint64_t bytes, void **memory,
                                       cogpu_error *error);
void cogpu_gpu_device_release(cogpu_gpu_device *device, void *memory);
cogpu_status cogpu_gpu_device_copy(cogpu_gpu_device *device, void *to, const void *from,
                                   uint64_t bytes, bool is_down, cogpu_error *error);

/* Sets samples of a float raster to NaN where `mask` is 0. The mask is packed U8 device memory; its
 * rows are those of the raster from `first_row` on. It has one band for all bands of the raster, or
 * one for each. Complete on return. */
cogpu_status cogpu_gpu_device_apply_mask(cogpu_gpu_device *device, const cogpu_raster *mask,
                                         uint32_t first_row, const cogpu_raster *raster,
                                         cogpu_error *error);

#endif
