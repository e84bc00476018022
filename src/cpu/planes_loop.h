/*
 * The loops of planes.c for vectors of LANES lanes (lanes.h). It is included once for each number
 * of lanes, and has no guard.
 *
 * Bytes are zipped to samples first and summed then, at the distance of a sample: for floats of 4
 * bytes a lane takes two shifts, where a lane of one plane would take four.
 */
#define JOIN_TOKENS(name, lanes) name##_x##lanes
#define JOIN(name, lanes)        JOIN_TOKENS(name, lanes)
#define WIDE(name)               JOIN(name, LANES)
#define WIDE_FN                  static inline __attribute__((always_inline)) WIDE(LANES_TARGET)

/* What planes begin with: byte k of the result is the sum of all planes before that of byte k. */
WIDE(LANES_TARGET)
static uint64_t WIDE(find_starts)(const uint8_t *planes, size_t samples, size_t size) {
    uint64_t starts = 0;
    uint8_t total = 0;
    for (size_t k = 1; k < size; k++, planes += samples) {
        WIDE(lanes) sum = WIDE(zero)();
        size_t i = 0;
        for (; i + LANES * VECTOR <= samples; i += LANES * VECTOR)
            sum = WIDE(add)(sum, WIDE(load)(planes + i));
        sum = WIDE(last_lane)(WIDE(add)(WIDE(lanes_before)(sum), sum));
        total = (uint8_t)(total + sum_bytes(WIDE(first_lane)(sum)) +
                          sum_scalar(planes + i, samples - i));
        starts |= (uint64_t)total << 8 * (size - 1 - k);
    }
    return starts;
}

/* Bytes 0, 1, ... of samples, a vector each, to as many vectors of samples. */
WIDE_FN void WIDE(zip_bytes)(WIDE(lanes) * v, size_t size) {
    WIDE(lanes) pairs[SAMPLE_BYTES_MAX], fours[SAMPLE_BYTES_MAX];
    for (size_t k = 0; k < size; k += 2) {
        pairs[k] = WIDE(zip_low_1)(v[k], v[k + 1]);
        pairs[k + 1] = WIDE(zip_high_1)(v[k], v[k + 1]);
    }
    for (size_t k = 0; k < size / 4; k++)
        for (size_t half = 0; half < 2; half++) {
            fours[4 * k + 2 * half] = WIDE(zip_low_2)(pairs[4 * k + half], pairs[4 * k + 2 + half]);
            fours[4 * k + 2 * half + 1] =
                WIDE(zip_high_2)(pairs[4 * k + half], pairs[4 * k + 2 + half]);
        }
    for (size_t k = 0; k < size; k++)
        v[k] = size == 2   ? pairs[k]
               : size == 4 ? fours[k]
               : k % 2     ? WIDE(zip_high_4)(fours[k / 2], fours[4 + k / 2])
                           : WIDE(zip_low_4)(fours[k / 2], fours[4 + k / 2]);
}

WIDE_FN void WIDE(load_samples)(const uint8_t *planes, size_t samples, size_t at, size_t size,
                                WIDE(lanes) * v) {
    for (size_t k = 0; k < size; k++)
        v[k] = WIDE(load)(planes + (size - 1 - k) * samples + at);
    WIDE(zip_bytes)(v, size);
}

/* Sums of samples, byte by byte, within lanes. */
WIDE_FN WIDE(lanes) WIDE(sum_samples)(WIDE(lanes) v, size_t size) {
    if (size == 2)
        v = WIDE(add)(v, WIDE(shift)(v, 2));
    if (size <= 4)
        v = WIDE(add)(v, WIDE(shift)(v, 4));
    return WIDE(add)(v, WIDE(shift)(v, 8));
}

/* Both loops: samples from `first` on, as far as they fill vectors; return the number of the next.
 * Without sums, then with: *before is the sample before, in each `size` bytes. */
WIDE_FN size_t WIDE(zip_planes)(const uint8_t *planes, size_t samples, size_t first, size_t count,
                                size_t size, uint8_t *to, bool streams) {
    WIDE(lanes) v[SAMPLE_BYTES_MAX];
    size_t i = first;
    for (; i + LANES * VECTOR <= count; i += LANES * VECTOR) {
        WIDE(load_samples)(planes, samples, i, size, v);
        WIDE(store_turns)(v, size, to + i * size, streams);
    }
    return i;
}

WIDE_FN size_t WIDE(sum_planes)(const uint8_t *planes, size_t samples, size_t first, size_t count,
                                size_t size, vector *before, uint8_t *to, bool streams) {
    const WIDE(lanes) last_sample = WIDE(repeat)(last_sample_control(size));
    WIDE(lanes) total = WIDE(repeat)(*before), v[SAMPLE_BYTES_MAX], sums[SAMPLE_BYTES_MAX];
    size_t i = first;
    for (; i + LANES * VECTOR <= count; i += LANES * VECTOR) {
        WIDE(lanes) sum = WIDE(zero)();
        WIDE(load_samples)(planes, samples, i, size, v);
        for (size_t k = 0; k < size; k++) {
            v[k] = WIDE(sum_samples)(v[k], size);
            sums[k] = sum;
            sum = WIDE(add)(sum, WIDE(shuffle)(v[k], last_sample));
        }
        const WIDE(lanes) lanes_before = WIDE(lanes_before)(sum);
        const WIDE(lanes) start = WIDE(add)(total, lanes_before);
        for (size_t k = 0; k < size; k++)
            v[k] = WIDE(add)(v[k], WIDE(add)(start, sums[k]));
        WIDE(store_turns)(v, size, to + i * size, streams);
        total = WIDE(add)(total, WIDE(last_lane)(WIDE(add)(lanes_before, sum)));
    }
    *before = WIDE(first_lane)(total);
    return i;
}

/* One loop for each size of samples, so that it is a constant inside. `before` NULL: no sums. */
#define UNDO(size)                                                                                 \
    before ? WIDE(sum_planes)(planes, samples, first, count, size, before, to, streams)            \
           : WIDE(zip_planes)(planes, samples, first, count, size, to, streams)

WIDE(LANES_TARGET)
static size_t WIDE(undo_planes)(const uint8_t *planes, size_t samples, size_t first, size_t count,
                                size_t size, vector *before, uint8_t *to, bool streams) {
    switch (size) {
    case 2:
        return UNDO(2);
    case 4:
        return UNDO(4);
    case 8:
        return UNDO(8);
    default:
        return first;
    }
}

#undef JOIN_TOKENS
#undef JOIN
#undef WIDE
#undef WIDE_FN
#undef UNDO
#undef LANES
