#include "support/device_reads.h"

#include <unistd.h>

static cogpu_error error;

const image_kind tiles = {
    .width = 300, .height = 270, .bits = 16, .tile_width = 64, .tile_height = 64, .compression = 8};

cogpu_raster raster_on_device(const image_kind *kind, uint32_t width, uint32_t height) {
    cogpu_raster raster = raster_of(kind, width, height, kind_bands(kind));
    raster.device = COGPU_DEVICE_EMULATOR;
    return raster;
}

struct image open_image_bytes(tiff_builder built, const image_kind *kind,
                              const cogpu_open_options *options) {
    struct image image = {.kind = kind, .built = built};
    CHECK(cogpu_open_memory(built.bytes, built.size, options, &image.file, &error) == COGPU_OK);
    image.raster = raster_on_device(kind, kind->width, kind->height);
    return image;
}

struct image open_image(const image_kind *kind) {
    tiff_builder built;
    build_one(&built, kind);
    return open_image_bytes(built, kind, NULL);
}

void close_image(struct image *image) {
    free(image->raster.data);
    cogpu_close(image->file);
    build_close(&image->built);
}

void move_to_path(struct image *image) {
    char path[] = "/tmp/cogpu-test-XXXXXX";
    const tiff_builder *built = &image->built;
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0 && write(descriptor, built->bytes, built->size) == (ssize_t)built->size);
    close(descriptor);
    cogpu_close(image->file);
    CHECK(cogpu_open(path, NULL, &image->file, &error) == COGPU_OK);
    unlink(path);
}

void damage_block(struct image *image, uint64_t block) {
    uint32_t offset = 0;
    CHECK(cogpu_tag_read(image->file, 0, 324, block, 1, &offset, &error) == COGPU_OK);
    image->built.bytes[offset + 3000] ^= 0x55;
}

bool has_pixels(const cogpu_raster *raster, const image_kind *kind, uint32_t x, uint32_t y) {
    return pixels_match(kind, raster->data, x, y, raster->width, raster->height, NULL, 0);
}

bool is_read(const struct image *image) {
    return has_pixels(&image->raster, image->kind, 0, 0);
}

cogpu_context *open_context(uint64_t device_bytes) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .device_bytes = device_bytes};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

cogpu_context *open_device(uint64_t seed, uint64_t bytes, uint64_t budget, cogpu_gpu **gpu) {
    cogpu_context *context = open_context(ENOUGH);
    cogpu_opened_device *device = cogpu_allocate(sizeof *device);
    *device = (cogpu_opened_device){.kind = COGPU_DEVICE_EMULATOR};
    CHECK(cogpu_gpu_open_emulator(seed, bytes, gpu, &error) == COGPU_OK);
    CHECK(cogpu_gpu_device_open(*gpu, budget, false, &device->device, &error) == COGPU_OK);
    context->devices = device;
    return context;
}

const cogpu_gpu_driver *original_calls;
static cogpu_gpu_driver replaced;

cogpu_gpu_driver *replace_calls(cogpu_gpu *gpu) {
    original_calls = gpu->calls;
    replaced = *gpu->calls;
    gpu->calls = &replaced;
    return &replaced;
}

const image_kind narrow = {.width = 256, .height = 3200, .tile_width = 256, .tile_height = 64};

cogpu_status read_except_gap(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    struct gapped *gapped = user;
    uint64_t left = gapped->built->size - offset;
    bool hits = offset < gapped->end && offset + bytes > gapped->first;
    if (hits &&
        !(__atomic_fetch_add(&gapped->failed, 1, __ATOMIC_RELAXED) > 1 && gapped->is_transient))
        return COGPU_IO_ERROR;
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, gapped->built->bytes + offset, *got);
    return COGPU_OK;
}

cogpu_status size_of_gapped(void *user, uint64_t *bytes) {
    *bytes = ((struct gapped *)user)->built->size;
    return COGPU_OK;
}

static cogpu_status read_and_count(void *user, uint64_t offset, size_t bytes, void *to,
                                   size_t *got) {
    struct counted *counted = user;
    uint64_t left = counted->built->size - offset;
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, counted->built->bytes + offset, *got);
    __atomic_fetch_add(&counted->bytes, *got, __ATOMIC_RELAXED);
    return COGPU_OK;
}

static cogpu_status size_of_counted(void *user, uint64_t *bytes) {
    *bytes = ((struct counted *)user)->built->size;
    return COGPU_OK;
}

void count_reads(struct image *image, struct counted *counted) {
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = counted,
                                 .read = read_and_count,
                                 .size = size_of_counted};
    *counted = (struct counted){.built = &image->built};
    cogpu_close(image->file);
    CHECK(cogpu_open_source(&source, NULL, &image->file, &error) == COGPU_OK);
}

cogpu_gpu_device *open_test_device(uint64_t seed, uint64_t budget, cogpu_gpu **gpu) {
    cogpu_gpu_device *device = NULL;
    *gpu = gpu_test_open(seed);
    CHECK(cogpu_gpu_device_open(*gpu, budget, false, &device, &error) == COGPU_OK);
    return device;
}
