/*
 * Composes layers row by row. A work item is some rows of one band. FIRST and LAST are loops over
 * bits of samples, which compilers make vector code; the other methods are loops by type.
 */
#include "cpu/composite.h"

#include "base/checked.h"
#include "base/type.h"
#include "cpu/samples.h"
#include "pixel/composite.h"

enum { ITEM_SAMPLES = 1 << 16 }; /* of a work item, about */

/* Rows of one call: of the composition, or those under a layer. */
struct composite_call {
    const cogpu_composition *composition;
    const cogpu_composite_layer *layer; /* NULL: none */
    void (*work)(const struct composite_call *call, uint32_t band, uint32_t row);
    uint32_t rows, width;
    uint32_t item_rows, items_of_band;
};

/* A row of a band, from the first pixel of the call on. */
struct composite_row {
    uint32_t type, count, depth;
    uint8_t *to;
    int64_t to_stride;
    uint8_t *valid;
    double *sums;
    uint32_t *counts;
    uint8_t *stack;
    size_t stack_stride;              /* bytes from sample to sample of a pixel's stack */
    const uint8_t *from, *from_valid; /* of the layer, or NULL */
};

static struct composite_row row_of(const struct composite_call *call, uint32_t band, uint32_t row) {
    const cogpu_composition *composition = call->composition;
    const cogpu_composite_layer *layer = call->layer;
    const cogpu_raster *pixels = composition->pixels;
    const uint32_t x = layer ? layer->x : 0, y = row + (layer ? layer->y : 0);
    const size_t size = cogpu_type_bytes(pixels->type);
    const size_t plane = (size_t)pixels->width * pixels->height;
    const size_t at = band * plane + (size_t)y * pixels->width + x;
    struct composite_row result = {.type = (uint32_t)pixels->type,
                                   .count = call->width,
                                   .depth = composition->depth,
                                   .to = (uint8_t *)pixels->data + band * pixels->stride_band +
                                         y * pixels->stride_y + x * pixels->stride_x,
                                   .to_stride = pixels->stride_x,
                                   .valid = composition->valid ? composition->valid + at : NULL,
                                   .sums = composition->sums ? composition->sums + at : NULL,
                                   .counts = composition->counts ? composition->counts + at : NULL,
                                   .stack =
                                       composition->stack ? composition->stack + at * size : NULL,
                                   .stack_stride = pixels->bands * plane * size};
    if (layer) {
        size_t skip = ((size_t)band * layer->height + row) * layer->width;
        result.from = layer->pixels + skip * size;
        result.from_valid = layer->valid + skip;
    }
    return result;
}

/* ---- work items ---- */

static void work_on_rows(void *argument, uint32_t worker, uint64_t index) {
    const struct composite_call *call = argument;
    const uint32_t band = (uint32_t)(index / call->items_of_band);
    const uint32_t first = (uint32_t)(index % call->items_of_band) * call->item_rows;
    const uint32_t left = call->rows - first;
    const uint32_t end = first + (left < call->item_rows ? left : call->item_rows);
    (void)worker;
    for (uint32_t row = first; row < end; row++)
        call->work(call, band, row);
}

static void run_call(cogpu_pool *pool, struct composite_call *call) {
    if (call->rows == 0 || call->width == 0)
        return;
    call->item_rows = call->width < ITEM_SAMPLES ? ITEM_SAMPLES / call->width : 1;
    call->items_of_band = (uint32_t)divide_up(call->rows, call->item_rows);
    cogpu_pool_share(pool, (uint64_t)call->items_of_band * call->composition->pixels->bands,
                     work_on_rows, call);
}

/* ---- begin ---- */

static void begin_row(const struct composite_call *call, uint32_t band, uint32_t row) {
    const struct composite_row at = row_of(call, band, row);
    cogpu_cpu_copy_samples(at.to, at.to_stride, call->composition->fill[band], 0, at.count,
                           cogpu_type_bytes((cogpu_type)at.type));
    if (at.valid)
        memset(at.valid, 0, at.count);
    if (at.sums)
        memset(at.sums, 0, at.count * sizeof *at.sums);
    if (at.counts)
        memset(at.counts, 0, at.count * sizeof *at.counts);
}

void cogpu_cpu_composite_begin(cogpu_pool *pool, const cogpu_composition *composition) {
    struct composite_call call = {.composition = composition,
                                  .work = begin_row,
                                  .rows = composition->pixels->height,
                                  .width = composition->pixels->width};
    run_call(pool, &call);
}

/* ---- add: FIRST and LAST ---- */

/* Masks of all bits or none instead of branches. `keeps`: 255 where a valid pixel stays, else 0. */
#define DEFINE_REPLACE(bits)                                                                       \
    static inline __attribute__((always_inline)) void replace_##bits(                              \
        const struct composite_row *row, int64_t stride, uint8_t keeps) {                          \
        const uint8_t *restrict from = row->from, *restrict from_valid = row->from_valid;          \
        uint8_t *restrict to = row->to, *restrict valid = row->valid;                              \
        for (uint32_t i = 0; i < row->count; i++) {                                                \
            bits replaces = (from_valid[i] != 0) & ((valid[i] & keeps) == 0);                      \
            bits mask = (bits)(0 - replaces), old;                                                 \
            LOAD_SAMPLE(bits, sample, from, i);                                                    \
            memcpy(&old, to + i * stride, sizeof old);                                             \
            old = (bits)((sample & mask) | (old & (bits)~mask));                                   \
            memcpy(to + i * stride, &old, sizeof old);                                             \
            valid[i] |= (uint8_t)mask;                                                             \
        }                                                                                          \
    }
DEFINE_REPLACE(uint8_t)
DEFINE_REPLACE(uint16_t)
DEFINE_REPLACE(uint32_t)
DEFINE_REPLACE(uint64_t)

#define REPLACE_CASE(bits)                                                                         \
    case sizeof(bits):                                                                             \
        if (row->to_stride == sizeof(bits))                                                        \
            replace_##bits(row, sizeof(bits), keeps);                                              \
        else                                                                                       \
            replace_##bits(row, row->to_stride, keeps);                                            \
        break;

/* Complex samples of 16 bytes. */
static void replace_widest(const struct composite_row *row, uint8_t keeps) {
    enum { SIZE = 16 };
    for (uint32_t i = 0; i < row->count; i++) {
        if (!row->from_valid[i] || (row->valid[i] & keeps))
            continue;
        memcpy(row->to + i * row->to_stride, row->from + (size_t)i * SIZE, SIZE);
        row->valid[i] = UINT8_MAX;
    }
}

static void replace_samples(const struct composite_row *row, bool keeps_first) {
    const uint8_t keeps = keeps_first ? UINT8_MAX : 0;
    switch (cogpu_type_bytes((cogpu_type)row->type)) {
        REPLACE_CASE(uint8_t)
        REPLACE_CASE(uint16_t)
        REPLACE_CASE(uint32_t)
        REPLACE_CASE(uint64_t)
    default:
        replace_widest(row, keeps);
        break;
    }
}

/* ---- add: the other methods ---- */

#define EXTREME_CASE(kind, bits)                                                                   \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < row->count; i++) {                                                \
            uint8_t *to = row->to + i * row->to_stride;                                            \
            bits old;                                                                              \
            LOAD_SAMPLE(bits, sample, row->from, i);                                               \
            memcpy(&old, to, sizeof old);                                                          \
            bool replaces = row->from_valid[i] &&                                                  \
                            composite_replaces(method, kind, row->valid[i], old, sample);          \
            old = replaces ? sample : old;                                                         \
            memcpy(to, &old, sizeof old);                                                          \
            row->valid[i] |= row->from_valid[i] ? UINT8_MAX : 0;                                   \
        }                                                                                          \
        break;

static void keep_extremes(const struct composite_row *row, uint32_t method) {
    switch (row->type) {
        EACH_SAMPLE_TYPE(EXTREME_CASE)
    default:
        break;
    }
}

#define SUM_CASE(kind, bits)                                                                       \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < row->count; i++) {                                                \
            LOAD_SAMPLE(bits, sample, row->from, i);                                               \
            bool is_valid = row->from_valid[i] != 0;                                               \
            bool counts = is_valid & !composite_is_nan(kind, sample);                              \
            row->sums[i] = counts ? row->sums[i] + sample_to_double(kind, sample) : row->sums[i];  \
            row->counts[i] += counts;                                                              \
            row->valid[i] |= is_valid ? UINT8_MAX : 0;                                             \
        }                                                                                          \
        break;

static void sum_samples(const struct composite_row *row) {
    switch (row->type) {
        EACH_SAMPLE_TYPE(SUM_CASE)
    default:
        break;
    }
}

#define STACK_CASE(kind, bits)                                                                     \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < row->count; i++) {                                                \
            LOAD_SAMPLE(bits, sample, row->from, i);                                               \
            if (!row->from_valid[i])                                                               \
                continue;                                                                          \
            row->valid[i] = UINT8_MAX;                                                             \
            if (!composite_is_nan(kind, sample) && row->counts[i] < row->depth)                    \
                memcpy(row->stack + row->counts[i]++ * row->stack_stride + i * sizeof sample,      \
                       &sample, sizeof sample);                                                    \
        }                                                                                          \
        break;

static void stack_samples(const struct composite_row *row) {
    switch (row->type) {
        EACH_SAMPLE_TYPE(STACK_CASE)
    default:
        break;
    }
}

static void count_samples(const struct composite_row *row) {
    for (uint32_t i = 0; i < row->count; i++) {
        row->counts[i] += row->from_valid[i] != 0;
        row->valid[i] |= row->from_valid[i] ? UINT8_MAX : 0;
    }
}

static void add_row(const struct composite_call *call, uint32_t band, uint32_t row_number) {
    const struct composite_row row = row_of(call, band, row_number);
    switch (call->composition->method) {
    case COGPU_COMPOSITE_FIRST:
    case COGPU_COMPOSITE_LAST:
        replace_samples(&row, call->composition->method == COGPU_COMPOSITE_FIRST);
        break;
    case COGPU_COMPOSITE_MIN:
        keep_extremes(&row, COGPU_COMPOSITE_MIN);
        break;
    case COGPU_COMPOSITE_MAX:
        keep_extremes(&row, COGPU_COMPOSITE_MAX);
        break;
    case COGPU_COMPOSITE_MEAN:
        sum_samples(&row);
        break;
    case COGPU_COMPOSITE_MEDIAN:
        stack_samples(&row);
        break;
    case COGPU_COMPOSITE_COUNT:
        count_samples(&row);
        break;
    }
}

void cogpu_cpu_composite_add(cogpu_pool *pool, const cogpu_composition *composition,
                             const cogpu_composite_layer *layer) {
    struct composite_call call = {.composition = composition,
                                  .layer = layer,
                                  .work = add_row,
                                  .rows = layer->height,
                                  .width = layer->width};
    run_call(pool, &call);
}

/* ---- finish ---- */

#define FINISH_CASE(kind, bits)                                                                    \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < row->count; i++) {                                                \
            struct composite_stack stack = {row->stack + i * sizeof(bits), row->stack_stride,      \
                                            row->counts[i], kind};                                 \
            if (!row->valid[i])                                                                    \
                continue;                                                                          \
            bits sample = (bits)(method == COGPU_COMPOSITE_MEDIAN ? composite_median(&stack)       \
                                 : method == COGPU_COMPOSITE_MEAN                                  \
                                     ? composite_mean(kind, row->sums[i], row->counts[i])          \
                                     : composite_number_to_sample(kind, row->counts[i]));          \
            memcpy(row->to + i * row->to_stride, &sample, sizeof sample);                          \
        }                                                                                          \
        break;

static void finish_samples(const struct composite_row *row, uint32_t method) {
    switch (row->type) {
        EACH_SAMPLE_TYPE(FINISH_CASE)
    default:
        break;
    }
}

static void finish_row(const struct composite_call *call, uint32_t band, uint32_t row_number) {
    const struct composite_row row = row_of(call, band, row_number);
    finish_samples(&row, (uint32_t)call->composition->method);
}

void cogpu_cpu_composite_finish(cogpu_pool *pool, const cogpu_composition *composition) {
    struct composite_call call = {.composition = composition,
                                  .work = finish_row,
                                  .rows = composition->pixels->height,
                                  .width = composition->pixels->width};
    if (composition->counts)
        run_call(pool, &call);
}
