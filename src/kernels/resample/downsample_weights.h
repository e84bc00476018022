/*
 * Weights of a support, one after the other, as the loops of kernels need them.
 *
 * Average and rms: both ends are partial, all between weigh 1: nothing is stored. Bilinear and
 * cubic: distances grow by addition and weights are divided by their sum, which costs more than
 * weighing a sample; so up to COGPU_DOWNSAMPLE_TAPS of them are kept in shared memory, `pitch`
 * doubles apart. Longer supports compute them again for every line.
 */
#ifndef COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_WEIGHTS_H
#define COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_WEIGHTS_H

#include "kernels/resample/downsample_common.h"

struct weights {
    struct support support;
    uint32_t count, method;
    double sum;
    double first, last;           /* of average and rms */
    double distance, step, total; /* of kernels: of the first sample from the middle; to the next;
                                   * the sum that weights are divided by */
    const double *stored;         /* NULL: computed on the way */
    uint32_t pitch;
};

/* Position in a loop over weights. */
struct weight_cursor {
    uint32_t k;
    double distance;
};

DEVICE_FN struct weight_cursor begin_weights(const struct weights *weights) {
    struct weight_cursor cursor = {0, weights->distance};
    return cursor;
}

DEVICE_FN double next_weight(const struct weights *weights, struct weight_cursor *cursor) {
    uint32_t k = cursor->k++;
    if (weights->stored)
        return weights->stored[k * weights->pitch];
    if (!resampling_has_kernel(weights->method))
        return k == 0 ? weights->first : k + 1 == weights->count ? weights->last : 1;
    double weight = kernel_weight(weights->method, fabs(cursor->distance)) / weights->total;
    cursor->distance += weights->step;
    return weight;
}

DEVICE_FN void sum_kernel_weights(struct weights *weights, double ratio, uint32_t i) {
    double total = 0;
    weights->step = 1 / ratio;
    weights->distance = first_kernel_distance(weights->support, ratio, 0, i);
    double distance = weights->distance;
    for (uint32_t k = 0; k < weights->count; k++, distance += weights->step)
        total += kernel_weight(weights->method, fabs(distance));
    weights->total = total;
}

/* `memory` holds COGPU_DOWNSAMPLE_TAPS weights, `pitch` apart; NULL: nothing is stored. */
DEVICE_FN struct weights weights_of(uint32_t method, struct support support, double ratio,
                                    uint32_t i, double *memory, uint32_t pitch) {
    struct weights weights = {support, support.end - support.begin, method, 0, 1, 1, 0, 0, 0, NULL,
                              pitch};
    bool is_stored =
        memory && resampling_has_kernel(method) && weights.count <= COGPU_DOWNSAMPLE_TAPS;
    if (resampling_has_kernel(method)) {
        sum_kernel_weights(&weights, ratio, i);
    } else if (weights.count > 1) {
        weights.first = first_area_weight(support, ratio, 0, i);
        weights.last = last_area_weight(support, ratio, 0, i);
    }
    struct weight_cursor cursor = begin_weights(&weights);
    for (uint32_t k = 0; k < weights.count; k++) {
        double weight = next_weight(&weights, &cursor);
        weights.sum += weight;
        if (is_stored)
            memory[k * pitch] = weight;
    }
    weights.stored = is_stored ? memory : NULL;
    return weights;
}

#endif
