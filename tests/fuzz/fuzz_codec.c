/*
 * Every codec of the table with any stream and any format of block that a caller may state.
 *
 * Input: 12 bytes that choose codec and format, see `choose`, then the JPEG tables where there are
 * any, then the stream. Good seeds are streams that decode: for each row of the table a block of a
 * small TIFF file of that compression, with 12 bytes before it that state its format; for row 0
 * (none) and the packed ones any bytes do. Also of use: an xz stream with a delta filter, a zstd
 * stream of two frames, LZW streams of both bit orders (the old one begins with the bytes 0 and 1),
 * JPEG with its tables apart, LERC blobs inside deflate and zstd.
 */
#include "support/stream_test.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 12, SIDE_MAX = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The type that a caller would read samples of so many bits as. */
static cogpu_type type_of(uint32_t bits, unsigned kind) {
    static const cogpu_type types[4][3] = {{COGPU_TYPE_U8, COGPU_TYPE_I8, COGPU_TYPE_U8},
                                           {COGPU_TYPE_U16, COGPU_TYPE_I16, COGPU_TYPE_F16},
                                           {COGPU_TYPE_U32, COGPU_TYPE_I32, COGPU_TYPE_F32},
                                           {COGPU_TYPE_U64, COGPU_TYPE_I64, COGPU_TYPE_F64}};
    return types[bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3][kind % 3];
}

static const cogpu_codec_row *choose(const uint8_t *choice, cogpu_block_format *format) {
    static const uint32_t bits[] = {8, 1, 2, 4, 12, 16, 32, 64};
    static const uint32_t photometrics[] = {0, 1, 2, 3, 5, 6};
    cogpu_codec info = COGPU_CODEC_INIT;
    uint32_t rows = 0;
    while (cogpu_codec_info(rows, &info, NULL) == COGPU_OK)
        rows++;
    if (cogpu_codec_info(choice[0] % rows, &info, NULL) != COGPU_OK)
        return NULL;
    *format = (cogpu_block_format){.compression = info.compression,
                                   .width = 1 + choice[1] % SIDE_MAX,
                                   .height = 1 + choice[2] % SIDE_MAX,
                                   .samples = 1 + choice[3] % 5,
                                   .bits = bits[choice[4] % 8],
                                   .photometric = photometrics[choice[6] % 6],
                                   .fill_order = 1 + choice[7] % 2,
                                   .subsampling_x = 1u << choice[8] % 3,
                                   .subsampling_y = 1u << choice[8] / 3 % 3,
                                   .t4_options = choice[9] % 8,
                                   .lerc_packing = choice[10] % 3};
    format->type = type_of(format->bits, choice[5]);
    format->row_bytes = ((size_t)format->width * format->samples * format->bits + 7) / 8;
    return cogpu_codec_find(info.compression);
}

static uint8_t *copy_of(const uint8_t *data, size_t bytes) {
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    cogpu_block_format format;
    if (bytes < CHOICE_BYTES)
        return 0;
    const cogpu_codec_row *row = choose(data, &format);
    const size_t table_bytes = data[11];
    if (!row || !row->decode || bytes < CHOICE_BYTES + table_bytes)
        return 0;
    uint8_t *tables = copy_of(data + CHOICE_BYTES, table_bytes);
    format.jpeg_tables = table_bytes ? tables : NULL;
    format.jpeg_table_bytes = table_bytes;
    const size_t in_bytes = bytes - CHOICE_BYTES - table_bytes;
    uint8_t *in = copy_of(data + CHOICE_BYTES + table_bytes, in_bytes);
    const size_t out_bytes = format.row_bytes * format.height;
    uint8_t *out = malloc(out_bytes);
    cogpu_codec_state state = {0};
    cogpu_error error;
    size_t got = 0;
    if (tables && in && out) {
        cogpu_status status =
            row->decode(&state, &format, in, in_bytes, out, out_bytes, &got, &error);
        if (status == COGPU_OK && got > out_bytes)
            abort();
        if (row->stream &&
            !parts_give(row->stream, &format, in, in_bytes, status, out, got, out_bytes, false))
            abort();
    }
    cogpu_codec_state_close(&state);
    free(tables);
    free(in);
    free(out);
    return 0;
}
