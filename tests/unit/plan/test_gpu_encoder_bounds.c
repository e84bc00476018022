/*
 * Bounds of GPU encoders do not exceed those of CPU encoders, by which files are planned. Else a
 * file planned as a classic TIFF could exceed 4 GiB when a GPU writes it.
 */
#include "codec/codec.h"
#include "kernels/encoder.h"

#include "support/test.h"

static uint64_t host_bound(const cogpu_encoder *encoder, uint32_t compression, uint32_t row_bytes,
                           uint32_t rows) {
    cogpu_encoding encoding = {.format = {.compression = compression,
                                          .width = row_bytes,
                                          .height = rows,
                                          .samples = 1,
                                          .bits = 8,
                                          .type = COGPU_TYPE_U8,
                                          .row_bytes = row_bytes}};
    return encoder->bound(&encoding, (uint64_t)row_bytes * rows);
}

/* Blocks of 1 byte to 16 MiB, of many rows and of one. */
static void check_bounds(const cogpu_gpu_encoder *device, const cogpu_encoder *host,
                         uint32_t compression) {
    uint64_t too_large = 0;
    for (uint32_t row_bytes = 1; row_bytes <= 16 << 20; row_bytes += 1 + row_bytes / 19)
        for (uint32_t rows = 1; (uint64_t)rows * row_bytes <= 16 << 20; rows += 1 + rows / 3)
            too_large += device->bound((uint64_t)rows * row_bytes, row_bytes) >
                         host_bound(host, compression, row_bytes, rows);
    CHECK(too_large == 0);
    if (too_large > 0)
        printf("... compression %u\n", compression);
}

static const cogpu_gpu unlimited = {.shared_bytes = UINT32_MAX};

static void no_device_takes_more_than_planned(void) {
    uint32_t found = 0;
    for (uint32_t compression = 0; compression <= UINT16_MAX; compression++) {
        const cogpu_gpu_encoder *device = cogpu_gpu_encoder_of(&unlimited, compression);
        const cogpu_codec_row *row = cogpu_codec_find(compression);
        if (!device || !device->bound || !row || !row->encoder)
            continue;
        check_bounds(device, row->encoder, compression);
        found++;
    }
    CHECK(found >= 2); /* LZW and PackBits, which take no library */
}

TESTS(gpu_encoder_bounds) {
    RUN(no_device_takes_more_than_planned);
    return FINISH();
}
