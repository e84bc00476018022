/*
 * What is planned by the host's bounds holds for a device: its encoders promise no less. Else a
 * file that may be a classic TIFF by the plan could pass 4 GiB when a device writes it.
 */
#include "backend/cuda/cuda_write.h"
#include "codec/codec.h"

#include "test.h"

static uint64_t host_bound(const cogpu_encoder *encoder, uint32_t compression, uint32_t row_bytes,
                           uint32_t rows) {
    cogpu_encoding encoding = {.format = {.compression = compression,
                                          .width = row_bytes,
                                          .height = rows,
                                          .samples = 1,
                                          .bits = 8,
                                          .type = COGPU_U8,
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

static void no_device_takes_more_than_planned(void) {
    uint32_t found = 0;
    for (uint32_t compression = 0; compression <= UINT16_MAX; compression++) {
        const cogpu_gpu_encoder *device = cogpu_gpu_encoder_of(compression);
        const cogpu_codec_row *row = cogpu_codec_find(compression);
        if (!device || !device->bound || !row || !row->encoder)
            continue;
        check_bounds(device, row->encoder, compression);
        found++;
    }
    CHECK(found >= 2); /* LZW and PackBits, which take no library */
}

int main(void) {
    RUN(no_device_takes_more_than_planned);
    return FINISH();
}
