/*
 * Averages rows into a smaller picture. Memory: that of the result.
 */
#include "reduce.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cogpu_status cogpu_reduction_open(cogpu_reduction *reduction, cogpu_error *error) {
    size_t row = (size_t)reduction->width * reduction->planes;
    reduction->pixels = malloc(row * reduction->height * sizeof *reduction->pixels);
    reduction->sums = calloc(row, sizeof *reduction->sums);
    reduction->counts = calloc(row, sizeof *reduction->counts);
    if (reduction->pixels && reduction->sums && reduction->counts)
        return COGPU_OK;
    return cogpu_refuse(error, COGPU_OUT_OF_MEMORY,
                        "no memory for a picture of this size; choose a smaller --size");
}

void cogpu_reduction_close(cogpu_reduction *reduction) {
    free(reduction->pixels);
    free(reduction->sums);
    free(reduction->counts);
}

double *cogpu_reduction_plane(const cogpu_reduction *reduction, uint32_t plane) {
    return reduction->pixels + (size_t)plane * reduction->width * reduction->height;
}

/* The row of the result in whose boxes a row lies. */
static uint32_t box_row(const cogpu_reduction *reduction, uint32_t row) {
    return (uint32_t)((((uint64_t)row + 1) * reduction->height - 1) / reduction->from_height);
}

static void sum_columns(const cogpu_reduction *reduction, const double *values, double *sums,
                        uint64_t *counts) {
    uint64_t column = 0;
    for (uint32_t i = 0; i < reduction->width; i++) {
        uint64_t end = ((uint64_t)i + 1) * reduction->from_width / reduction->width;
        for (; column < end; column++) {
            if (isfinite(values[column])) {
                sums[i] += values[column];
                counts[i]++;
            }
        }
    }
}

static void finish_row(const cogpu_reduction *reduction, double *sums, uint64_t *counts,
                       double *to) {
    for (uint32_t i = 0; i < reduction->width; i++)
        to[i] = counts[i] ? sums[i] / (double)counts[i] : NAN;
    memset(sums, 0, reduction->width * sizeof *sums);
    memset(counts, 0, reduction->width * sizeof *counts);
}

void cogpu_reduction_add(cogpu_reduction *reduction, uint32_t plane, uint32_t row,
                         const double *values) {
    double *sums = reduction->sums + (size_t)plane * reduction->width;
    uint64_t *counts = reduction->counts + (size_t)plane * reduction->width;
    uint32_t box = box_row(reduction, row);
    sum_columns(reduction, values, sums, counts);
    if (row + 1 == reduction->from_height || box_row(reduction, row + 1) != box)
        finish_row(reduction, sums, counts,
                   cogpu_reduction_plane(reduction, plane) + (size_t)box * reduction->width);
}
