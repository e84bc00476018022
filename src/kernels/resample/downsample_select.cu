/*
 * Min and max; mode and median of up to COGPU_DOWNSAMPLE_CANDIDATES samples. A thread computes one
 * sample of a few rows (downsample_common.h).
 *
 * Min and max need one pass over the support. For mode and median a thread keeps all candidates in
 * its own column of shared memory, so that the 32 threads of a warp use 32 different banks and
 * no synchronisation is needed:
 *
 *                 thread 0   thread 1  ...  thread 127
 *      keys[0]       .          .               .
 *      keys[1]       .          .               .
 *      ...
 */
#include "kernels/resample/downsample_select.h"

struct select_shared {
    uint64_t keys[COGPU_DOWNSAMPLE_CANDIDATES][COGPU_DOWNSAMPLE_THREADS];
};

DEVICE_FN uint64_t select_extreme(const struct cogpu_downsample_args *args,
                                  const struct band_view *view, struct support across,
                                  struct support down) {
    uint64_t selected = 0, key;
    bool is_found = false;
    for (uint32_t y = down.begin; y < down.end; y++)
        for (uint32_t x = across.begin; x < across.end; x++)
            if (load_candidate(args, view, x, y, &key) &&
                (!is_found || (args->method == COGPU_RESAMPLE_MIN ? key < selected : key > selected))) {
                selected = key;
                is_found = true;
            }
    return is_found ? key_to_sample(args->type, selected) : view->empty;
}

DEVICE_FN uint32_t collect_candidates(const struct cogpu_downsample_args *args,
                                      const struct band_view *view, struct support across,
                                      struct support down, struct select_shared *shared) {
    uint32_t count = 0;
    for (uint32_t y = down.begin; y < down.end; y++)
        for (uint32_t x = across.begin; x < across.end && count < COGPU_DOWNSAMPLE_CANDIDATES; x++)
            count += load_candidate(args, view, x, y, &shared->keys[count][thread_index()]);
    return count;
}

/* Counts candidates in their order, so the first key to reach the largest count wins. */
DEVICE_FN uint64_t most_frequent_key(const struct select_shared *shared, uint32_t candidates) {
    uint32_t most = 0, me = thread_index();
    uint64_t selected = 0;
    for (uint32_t i = 0; i < candidates; i++) {
        uint64_t key = shared->keys[i][me];
        uint32_t count = 1;
        for (uint32_t k = 0; k < i; k++)
            count += shared->keys[k][me] == key;
        if (count > most) {
            most = count;
            selected = key;
        }
    }
    return selected;
}

/* Insertion sort. */
DEVICE_FN void sort_candidates(struct select_shared *shared, uint32_t candidates) {
    uint32_t me = thread_index();
    for (uint32_t i = 1; i < candidates; i++) {
        uint64_t key = shared->keys[i][me];
        uint32_t k = i;
        for (; k > 0 && key < shared->keys[k - 1][me]; k--)
            shared->keys[k][me] = shared->keys[k - 1][me];
        shared->keys[k][me] = key;
    }
}

DEVICE_FN uint64_t select_sample(const struct cogpu_downsample_args *args,
                                 const struct band_view *view, struct support across,
                                 struct support down, struct select_shared *shared) {
    if (args->method == COGPU_RESAMPLE_MIN || args->method == COGPU_RESAMPLE_MAX)
        return select_extreme(args, view, across, down);
    uint32_t count = collect_candidates(args, view, across, down, shared), me = thread_index();
    if (count == 0)
        return view->empty;
    if (args->method == COGPU_RESAMPLE_MODE)
        return key_to_sample(args->type, most_frequent_key(shared, count));
    sort_candidates(shared, count);
    return median_sample(args, shared->keys[(count - 1) / 2][me], shared->keys[count / 2][me]);
}

KERNEL(cogpu_kernel_downsample_select, struct cogpu_downsample_args, struct select_shared,
       COGPU_DOWNSAMPLE_THREADS, 8) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct downsample_item mine = item_of_thread(args, task);
        struct band_view view = view_of_band(args, mine.band);
        struct support across = column_support(args, mine.item);
        for (uint32_t row = mine.row; !mine.is_idle && row < mine.row + mine.rows; row++)
            store_sample(target_at(args, &view, mine.item, row),
                         select_sample(args, &view, across, row_support(args, row), shared),
                         args->size);
    }
}
