/*
 * The emulator: kernels that are right give the right result whatever the order, and those with the
 * usual mistakes are found out. Streams of the emulated device work as late as they may.
 */
#include "gpu/driver/gpu.h"
#include "kernels/simt.h"

#include "support/test.h"

enum { THREADS = 128, BLOCKS = 3, SEEDS = 40 };

struct plain_args {
    const uint32_t *from;
    uint32_t *to;
    uint32_t mistake;
};

struct sums_shared {
    uint32_t sums[THREADS / WARP];
    uint32_t values[THREADS];
};

/* ---- a kernel of many collectives ---- */

KERNEL(cogpu_kernel_test_all, struct plain_args, struct sums_shared, THREADS, 1) {
    uint32_t thread = thread_index(), at = block_index() * THREADS + thread;
    uint32_t value = args->from[at], lane = lane_index();
    uint32_t scanned = warp_scan(value);
    if (lane == WARP - 1)
        shared->sums[warp_index()] = scanned;
    sync_block();
    for (uint32_t i = 0; i < warp_index(); i++)
        scanned += shared->sums[i];
    uint32_t odd = warp_ballot(value & 1);
    uint32_t facts = (count_ones(odd) == warp_sum(value & 1)) +
                     2u * (warp_read(value, 5) == warp_read_xor(warp_read(value, 5), 7)) +
                     4u * (warp_max(value) >= value && warp_min(value) <= value) +
                     8u * ((warp_match(value) >> lane & 1) == 1) +
                     16u * (sync_block_count(true) == THREADS) + 32u * !sync_block_or(false);
    args->to[at] = scanned + (facts == 63 ? 0 : 1000000);
}

static cogpu_emu_stacks stacks;

static void right_in_any_order(void) {
    uint32_t from[BLOCKS * THREADS], to[BLOCKS * THREADS];
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
        from[i] = i * 7 % 11;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct plain_args args = {from, to, 0};
        memset(to, 0xA5, sizeof to);
        cogpu_emu_finding finding =
            cogpu_emu_run(&cogpu_kernel_test_all, BLOCKS, &args, seed, &stacks);
        CHECK(finding.text[0] == '\0');
        for (uint32_t block = 0, sum = 0; block < BLOCKS; block++, sum = 0)
            for (uint32_t i = block * THREADS; i < (block + 1) * THREADS; i++)
                CHECK(to[i] == (sum += from[i]));
    }
}

/* ---- mistakes ---- */

enum mistake {
    NONE,
    MISSING_BARRIER,
    LEAVES_EARLY,
    PAST_SHARED,
    BEFORE_SHARED,
    NOT_ALIGNED,
    ELSEWHERE_IN_WARP,
    ELSEWHERE_IN_BLOCK,
    NEVER_ENDS,
    LEAVES_THE_WARP,
    MISSING_WAIT,
    GROUP_TOO_SMALL
};

/* Each thread hands its value to the one before it. */
KERNEL(cogpu_kernel_test_mistakes, struct plain_args, struct sums_shared, THREADS, 1) {
    uint32_t thread = thread_index();
    if (args->mistake == LEAVES_EARLY && thread == 40)
        return;
    if (args->mistake == LEAVES_THE_WARP && thread == 40)
        return;
    if (args->mistake == LEAVES_THE_WARP)
        sync_warp();
    if (args->mistake == NEVER_ENDS)
        while (args->mistake)
            relax();
    if (args->mistake == NOT_ALIGNED && thread == 3)
        store_words4(&shared->values[5], load_words4(&shared->values[5]));
    if (args->mistake == ELSEWHERE_IN_WARP) {
        if (thread % 2)
            args->to[thread] = warp_ballot(true);
        else
            args->to[thread] = warp_ballot(true);
    }
    if (args->mistake == ELSEWHERE_IN_BLOCK) {
        if (thread < 64)
            sync_block();
        else
            sync_block();
    }
    if (args->mistake == GROUP_TOO_SMALL && thread < 64)
        sync_group(1, 96);
    if (args->mistake == PAST_SHARED && thread == 9)
        *(volatile uint8_t *)((uint8_t *)(shared + 1) + 1) = 1;
    if (args->mistake == BEFORE_SHARED && thread == 9)
        *(volatile uint8_t *)((uint8_t *)shared - 1) = 1;
    if (args->mistake == MISSING_WAIT) {
        if (thread < THREADS / 4)
            copy_to_shared_16(&shared->values[4 * thread], &args->from[4 * thread]);
        copies_commit();
    } else {
        shared->values[thread] = args->from[thread];
    }
    if (args->mistake != MISSING_BARRIER)
        sync_block();
    args->to[thread] = shared->values[(thread + 1) % THREADS];
}

static _Alignas(16) uint32_t given[THREADS];

static bool hands_over(enum mistake mistake, uint64_t seed, char *text) {
    uint32_t to[THREADS];
    struct plain_args args = {given, to, mistake};
    for (uint32_t i = 0; i < THREADS; i++)
        given[i] = 0x01020304u * i + 99;
    cogpu_emu_finding finding = cogpu_emu_run(&cogpu_kernel_test_mistakes, 1, &args, seed, &stacks);
    strcpy(text, finding.text);
    bool right = !finding.text[0];
    for (uint32_t i = 0; right && i < THREADS; i++)
        right = to[i] == given[(i + 1) % THREADS];
    return right;
}

static void no_mistake(void) {
    char text[300];
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        CHECK(hands_over(NONE, seed, text));
}

/* What is not to be seen in one order shows in another. */
static void missing_barrier(void) {
    char text[300];
    int wrong = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        wrong += !hands_over(MISSING_BARRIER, seed, text);
    CHECK(wrong == SEEDS);
}

static void missing_wait(void) {
    char text[300];
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        CHECK(!hands_over(MISSING_WAIT, seed, text));
}

static void findings(void) {
    static const struct {
        enum mistake mistake;
        const char *text;
    } expected[] = {
        {LEAVES_EARLY, "have ended"},
        {LEAVES_THE_WARP, "have ended"},
        {PAST_SHARED, "past the shared memory"},
        {BEFORE_SHARED, "before the shared memory"},
        {NOT_ALIGNED, "not aligned"},
        {ELSEWHERE_IN_WARP, "at another collective"},
        {ELSEWHERE_IN_BLOCK, "at another collective"},
        {GROUP_TOO_SMALL, "at another collective"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            char text[300];
            CHECK(!hands_over(expected[i].mistake, seed, text));
            CHECK(strstr(text, expected[i].text) && strstr(text, "cogpu_kernel_test_mistakes"));
        }
}

static void never_ends(void) {
    char text[300];
    CHECK(!hands_over(NEVER_ENDS, 1, text));
    CHECK(strstr(text, "does not end"));
}

/* ---- groups: two warps make, two take ---- */

struct queue_shared {
    uint32_t slots[64];
};

KERNEL(cogpu_kernel_test_groups, struct plain_args, struct queue_shared, THREADS, 1) {
    uint32_t thread = thread_index(), sum = 0;
    for (uint32_t round = 0; round < 5; round++) {
        if (thread < 64) {
            if (round > 0)
                sync_group(2, THREADS); /* the slots are free */
            shared->slots[thread] = thread + round;
            fence_block();
            arrive_group(1, THREADS);
        } else {
            sync_group(1, THREADS);
            sum += shared->slots[127 - thread];
            if (round < 4)
                arrive_group(2, THREADS);
        }
    }
    if (thread >= 64)
        args->to[thread] = sum;
}

static void makers_and_takers(void) {
    uint32_t to[THREADS];
    struct plain_args args = {NULL, to, 0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cogpu_emu_finding finding =
            cogpu_emu_run(&cogpu_kernel_test_groups, 1, &args, seed, &stacks);
        CHECK(finding.text[0] == '\0');
        for (uint32_t i = 64; i < THREADS; i++)
            CHECK(to[i] == 5 * (127 - i) + 10);
    }
}

/* ---- the device ---- */

static void streams_work_late(void) {
    int late = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cogpu_gpu *gpu;
        cogpu_gpu_stream *stream, *other;
        cogpu_gpu_event *event;
        void *device, *pinned;
        uint32_t from[THREADS], to[THREADS];
        CHECK(cogpu_gpu_open_emulator(seed, 1 << 20, &gpu, NULL) == COGPU_OK);
        const cogpu_gpu_driver *calls = gpu->calls;
        CHECK(calls->stream_open(gpu, false, &stream, NULL) == COGPU_OK);
        CHECK(calls->stream_open(gpu, true, &other, NULL) == COGPU_OK);
        CHECK(calls->event_open(gpu, &event, NULL) == COGPU_OK);
        CHECK(calls->allocate(gpu, sizeof from, &device, NULL) == COGPU_OK);
        CHECK(calls->allocate_pinned(gpu, sizeof from, &pinned, NULL) == COGPU_OK);
        for (uint32_t i = 0; i < THREADS; i++)
            from[i] = i + 1;
        memset(to, 0, sizeof to);
        CHECK(calls->copy_up(gpu, device, from, sizeof from, stream, NULL) == COGPU_OK);
        CHECK(calls->record(gpu, event, stream, NULL) == COGPU_OK);
        CHECK(calls->wait_event(gpu, other, event, NULL) == COGPU_OK);
        CHECK(calls->copy_down(gpu, to, device, sizeof to, other, NULL) == COGPU_OK);
        late += to[0] == 0;
        CHECK(calls->finish_stream(gpu, other, NULL) == COGPU_OK);
        CHECK(memcmp(from, to, sizeof to) == 0);
        calls->release(gpu, device);
        calls->release_pinned(gpu, pinned);
        calls->event_close(gpu, event);
        calls->stream_close(gpu, other);
        calls->stream_close(gpu, stream);
        calls->close(gpu);
    }
    CHECK(late > SEEDS / 4);
}

/* Who waits for an event waits for what was recorded then, whatever becomes of the event. */
static void events_are_recorded_again(void) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cogpu_gpu *gpu;
        cogpu_gpu_stream *streams[3];
        cogpu_gpu_event *event;
        const uint32_t from = 7;
        uint32_t between = 0, to = 0;
        CHECK(cogpu_gpu_open_emulator(seed, 1 << 20, &gpu, NULL) == COGPU_OK);
        const cogpu_gpu_driver *calls = gpu->calls;
        for (int i = 0; i < 3; i++)
            CHECK(calls->stream_open(gpu, false, &streams[i], NULL) == COGPU_OK);
        CHECK(calls->event_open(gpu, &event, NULL) == COGPU_OK);
        CHECK(calls->copy_up(gpu, &between, &from, sizeof from, streams[0], NULL) == COGPU_OK);
        CHECK(calls->record(gpu, event, streams[0], NULL) == COGPU_OK);
        CHECK(calls->wait_event(gpu, streams[2], event, NULL) == COGPU_OK);
        CHECK(calls->record(gpu, event, streams[1], NULL) == COGPU_OK);
        CHECK(calls->finish_event(gpu, event, NULL) == COGPU_OK);
        calls->event_close(gpu, event);
        CHECK(calls->copy_down(gpu, &to, &between, sizeof to, streams[2], NULL) == COGPU_OK);
        CHECK(calls->finish_stream(gpu, streams[2], NULL) == COGPU_OK);
        CHECK(to == from);
        for (int i = 0; i < 3; i++)
            calls->stream_close(gpu, streams[i]);
        calls->close(gpu);
    }
}

/* A device has an end, and a failure sticks to it. */
static void limits_and_failures(void) {
    cogpu_gpu *gpu;
    cogpu_gpu_stream *stream;
    cogpu_error error;
    void *a, *b;
    uint64_t free_bytes, total;
    uint32_t to[THREADS];
    CHECK(cogpu_gpu_open_emulator(1, 1000, &gpu, &error) == COGPU_OK);
    const cogpu_gpu_driver *calls = gpu->calls;
    CHECK(calls->allocate(gpu, 600, &a, &error) == COGPU_OK);
    CHECK(calls->allocate(gpu, 600, &b, &error) == COGPU_OUT_OF_MEMORY && !b);
    CHECK(calls->memory(gpu, &free_bytes, &total, &error) == COGPU_OK);
    CHECK(free_bytes == 400 && total == 1000);
    calls->release(gpu, a);
    CHECK(calls->allocate(gpu, 1000, &b, &error) == COGPU_OK);
    CHECK(calls->stream_open(gpu, false, &stream, &error) == COGPU_OK);
    struct plain_args args = {given, to, LEAVES_EARLY};
    CHECK(calls->launch(gpu, &cogpu_kernel_test_mistakes, 1, &args, stream, &error) == COGPU_OK);
    CHECK(calls->finish_stream(gpu, stream, &error) == COGPU_DEVICE_ERROR);
    CHECK(strstr(error.message, "have ended"));
    CHECK(calls->copy_up(gpu, b, to, 4, stream, &error) == COGPU_DEVICE_ERROR);
    calls->stream_close(gpu, stream);
    calls->close(gpu);
}

TESTS(emulator) {
    RUN(right_in_any_order);
    RUN(no_mistake);
    RUN(missing_barrier);
    RUN(missing_wait);
    RUN(findings);
    RUN(never_ends);
    RUN(makers_and_takers);
    RUN(streams_work_late);
    RUN(events_are_recorded_again);
    RUN(limits_and_failures);
    cogpu_emu_stacks_release(&stacks);
    return FINISH();
}
