/*
 * Repeat offsets (RFC 8878, 3.1.1.5), in a form that threads can combine.
 *
 * An offset value above 3 is an offset plus 3; values 1 to 3 select one of the last three offsets.
 * So an offset may depend on all sequences before it. A thread decodes seven sequences without
 * those: it keeps such an offset as a symbolic reference, "entry i of the offsets before my first
 * sequence, minus d".
 *
 *     31   30  29 28                                     0
 *     | 1 |   i  |                  d                     |      reference; bit 31 clear: an offset
 *
 * What seven sequences do to the three last offsets is then a triple of offsets and references, for
 * example (1000, first, second) after one new offset of 1000. Triples compose associatively, so a
 * prefix scan over the threads resolves all references (scan_offsets, compose_offsets). If all
 * triples are plain offsets, which is usual, the scan is skipped.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_OFFSETS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_OFFSETS_H

#include "kernels/zstd/zstd_decode_device.h"

enum {
    REPEAT_INDEX_SHIFT = 29,
    REPEAT_LESS_MASK = (1 << REPEAT_INDEX_SHIFT) - 1,
    OFFSET_VALUE_LIMIT = 1 << REPEAT_INDEX_SHIFT
};
#define REPEAT_REFERENCE 0x80000000u

DEVICE_FN uint32_t repeat_reference(uint32_t index, uint32_t less) {
    return REPEAT_REFERENCE | index << REPEAT_INDEX_SHIFT | less;
}

/* The last three offsets, latest first: Repeated_Offset1 to 3. */
struct repeat_offsets {
    uint32_t last[3];
};

/* Value of an offset or reference, given the offsets that it refers to, which may be references as
 * well. 0, which is no offset, if the result is not positive. */
DEVICE_FN uint32_t resolve_offset(uint32_t offset, const struct repeat_offsets *before) {
    if (!(offset & REPEAT_REFERENCE))
        return offset;
    uint32_t index = offset >> REPEAT_INDEX_SHIFT & 3, less = offset & REPEAT_LESS_MASK;
    uint32_t last = index == 0 ? before->last[0] : index == 1 ? before->last[1] : before->last[2];
    if (last & REPEAT_REFERENCE)
        return last + less;
    return last > less ? last - less : 0;
}

DEVICE_FN struct repeat_offsets unchanged_offsets(void) {
    struct repeat_offsets unchanged = {
        {repeat_reference(0, 0), repeat_reference(1, 0), repeat_reference(2, 0)}};
    return unchanged;
}

/* At the start of a frame. */
DEVICE_FN struct repeat_offsets initial_offsets(void) {
    struct repeat_offsets initial = {{1, 4, 8}};
    return initial;
}

/* The effect of `before` followed by `change`. */
DEVICE_FN struct repeat_offsets compose_offsets(struct repeat_offsets before,
                                                struct repeat_offsets change) {
    struct repeat_offsets after;
    for (uint32_t i = 0; i < 3; i++)
        after.last[i] = resolve_offset(change.last[i], &before);
    return after;
}

/* Offset of a sequence by its offset value; moves it to the front of the last three.
 *
 *     value       1            2            3               above 3
 *     offset      last[0]      last[1]      last[2]         value - 3      if it has literals
 *                 last[1]      last[2]      last[0] - 1     value - 3      if it has none */
DEVICE_FN uint32_t apply_offset_value(struct repeat_offsets *repeat, uint32_t value,
                                      bool has_literals) {
    uint32_t index = value > 3 ? 3 : value - has_literals, offset = value - 3;
    if (index == 0)
        return repeat->last[0];
    if (value <= 3)
        offset = index == 3   ? resolve_offset(repeat_reference(0, 1), repeat)
                 : index == 2 ? repeat->last[2]
                              : repeat->last[1];
    if (index >= 2)
        repeat->last[2] = repeat->last[1];
    repeat->last[1] = repeat->last[0];
    repeat->last[0] = offset;
    return offset;
}

/* Inclusive prefix scan over the lanes of a warp. */
DEVICE_FN struct repeat_offsets scan_offsets(struct repeat_offsets change) {
    if (!warp_any((change.last[0] | change.last[1] | change.last[2]) & REPEAT_REFERENCE))
        return change;
    for (uint32_t by = 1; by < WARP; by *= 2) {
        struct repeat_offsets earlier;
        for (uint32_t i = 0; i < 3; i++)
            earlier.last[i] = warp_read_up(change.last[i], by);
        if (lane_index() >= by)
            change = compose_offsets(earlier, change);
    }
    return change;
}

#endif
