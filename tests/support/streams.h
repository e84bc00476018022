/*
 * Streams for tests of GPU decoders: content of all kinds, and encoders of LZW and
 * PackBits that imitate many others.
 */
#ifndef COGPU_TESTS_STREAMS_H
#define COGPU_TESTS_STREAMS_H

#include "support/draw.h"
#include "support/gpu_test.h"

/* ---- content ---- */

enum content { CONSTANT, RAMP, NOISE, FEW_VALUES, PREDICTED, TEXT, PERIODIC, CONTENTS };

void fill_content(uint8_t *to, uint32_t bytes, enum content content);

/* ---- LZW ---- */

enum { LZW_CLEAR = 256, LZW_END = 257, LZW_FIRST = 258, LZW_TABLE_FULL = 4096 };

struct lzw_encoder_style {
    uint32_t clear_after;    /* codes; libtiff: 3836; more than 3838: the table stays full */
    uint32_t clear_at_bytes; /* also after so many bytes; 0: no */
    uint32_t greed;          /* of 16 strings, how many are the longest possible */
    bool no_first_clear, no_end, double_clear;
};

extern const struct lzw_encoder_style lzw_libtiff;

struct lzw_stream {
    uint8_t *bytes;
    size_t bit;
    uint32_t codes; /* since the last Clear */
};

void lzw_put(struct lzw_stream *s, uint32_t code);

/* An encoder that is not greedy must add what the decoder adds, the last string and the byte after
 * it, even if it is in the table already. */
gpu_stream lzw_encode(const uint8_t *content, uint32_t bytes,
                      const struct lzw_encoder_style *style);

/* ---- PackBits ---- */

/* Runs of two and more, literals for the rest. */
uint32_t packbits_encode(const uint8_t *raw, uint32_t bytes, uint8_t *to);

#endif
