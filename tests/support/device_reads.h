/*
 * What tests of reads on the emulated device share: files of one image, contexts with a device of
 * their own, a source with bytes that cannot be read.
 */
#ifndef COGPU_TESTS_DEVICE_READS_H
#define COGPU_TESTS_DEVICE_READS_H

#include "context/context.h"
#include "gpu/slot_pool.h"
#include "support/fixture.h"
#include "support/gpu_test.h"
#include "support/test.h"

extern const image_kind tiles;
enum { TILES = 5 * 5 };

/* ---- images and contexts ------------------------------------------------------------------- */

/* A file of one image, open, and a raster on the device for all of it. */
struct image {
    const image_kind *kind;
    tiff_builder built;
    cogpu_file *file;
    cogpu_raster raster;
};

cogpu_raster raster_on_device(const image_kind *kind, uint32_t width, uint32_t height);

/* The file is read from the builder's bytes, which a test may still change. */
struct image open_image_bytes(tiff_builder built, const image_kind *kind,
                              const cogpu_open_options *options);

struct image open_image(const image_kind *kind);

void close_image(struct image *image);

/* From here on the file has a descriptor. */
void move_to_path(struct image *image);

/* A byte of the block's content, far from what its codec checks first. */
void damage_block(struct image *image, uint64_t block);

bool has_pixels(const cogpu_raster *raster, const image_kind *kind, uint32_t x, uint32_t y);

bool is_read(const struct image *image);

enum { ENOUGH = 64 << 20 };

cogpu_context *open_context(uint64_t device_bytes);

/* A context with a device of its own, which has so much memory; reads may take `budget` of it. */
cogpu_context *open_device(uint64_t seed, uint64_t bytes, uint64_t budget, cogpu_gpu **gpu);

/* Calls of the device that a test may replace, until it puts `original_calls` back. */
extern const cogpu_gpu_driver *original_calls;

cogpu_gpu_driver *replace_calls(cogpu_gpu *gpu);

/* Memory for a few tiles of 16 KiB. */
enum { SMALL_BUFFER = 320 << 10 };

/* Of many batches, if buffers are small. */
extern const image_kind narrow;
enum { NARROW_BYTES = 256 * 3200 };

/* The builder's bytes, of which some cannot be read, ever or the first two times. */
struct gapped {
    const tiff_builder *built;
    uint64_t first, end;
    bool is_transient;
    uint32_t failed;
};

cogpu_status read_except_gap(void *user, uint64_t offset, size_t bytes, void *to, size_t *got);

cogpu_status size_of_gapped(void *user, uint64_t *bytes);

/* The builder's bytes, whose reads are counted. */
struct counted {
    const tiff_builder *built;
    uint64_t bytes;
};

/* From here on the image's file is read from such a source. */
void count_reads(struct image *image, struct counted *counted);

cogpu_gpu_device *open_test_device(uint64_t seed, uint64_t budget, cogpu_gpu **gpu);

#endif
