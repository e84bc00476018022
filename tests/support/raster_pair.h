/*
 * A raster at any address and strides, on the host and on the device (gpu_step_test.h), for tests
 * of kernels against the CPU. Its memory ends with its last sample, and all of it is compared.
 */
#ifndef COGPU_TESTS_RASTER_PAIR_H
#define COGPU_TESTS_RASTER_PAIR_H

#include "support/gpu_step_test.h"

struct raster_pair {
    cogpu_raster host, device;
    uint8_t *memory;
    void *device_memory;
    size_t bytes;
};

struct raster_pair raster_pair_any(cogpu_type type, uint32_t bands, uint32_t height,
                                   uint32_t width);
void raster_pair_drop(struct raster_pair *pair);
void raster_pair_upload(const struct raster_pair *pair);
/* Whether the device's memory has the host's bytes. */
bool raster_pair_is_same(const struct raster_pair *pair);

uint8_t *raster_pair_sample(const cogpu_raster *raster, uint32_t band, uint32_t y, uint32_t x);

/* Numbers that are special to a type or method. Of the last two a double knows but one. */
enum { RASTER_PAIR_NUMBERS = 18 };
extern const char *const raster_pair_numbers[RASTER_PAIR_NUMBERS];

/* Noise, or few numbers, so that some are met often: nodata, 0, NaN; or many that are like them. */
struct taste {
    uint32_t count, noise; /* one of `noise` samples is any bits */
    uint32_t grain;        /* bytes of the others that are noise */
    uint8_t samples[RASTER_PAIR_NUMBERS][16];
};

struct taste raster_pair_taste(cogpu_type type);
void raster_pair_fill(const cogpu_raster *raster, const struct taste *taste);
void raster_pair_draw_sample(const struct taste *taste, size_t size, uint8_t *sample);
/* Mostly areas that are valid or not, and any number but 0 for the former. */
void raster_pair_fill_mask(const cogpu_raster *raster);

#endif
