/*
 * Planes of predictor 3 with vectors of every length that the CPU has, against a plain reference:
 * every size of sample, widths from below the shortest to beyond three of the longest vectors, rows
 * of which only a part is wanted. Rows lie between pages that must not be touched, once directly
 * after the first and once directly before the last.
 */
#include "cpu/cpu.h"
#include "cpu/planes.h"

#include "base/bytes.h"
#include "support/test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WIDTH_MAX = 210, SIZE_MAX_BYTES = 8, ROW_MAX = WIDTH_MAX * SIZE_MAX_BYTES };

/* Memory of one page between two others. */
struct guarded {
    uint8_t *memory;
    size_t page;
};

static struct guarded open_guarded(void) {
    struct guarded g = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    uint8_t *all =
        mmap(NULL, 3 * g.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all, g.page, PROT_NONE) != 0 ||
        mprotect(all + 2 * g.page, g.page, PROT_NONE) != 0)
        abort();
    g.memory = all + g.page;
    return g;
}

static void close_guarded(struct guarded *g) {
    munmap(g->memory - g->page, 3 * g->page);
}

static uint8_t *place(const struct guarded *g, size_t bytes, bool at_end) {
    return at_end ? g->memory + g->page - bytes : g->memory;
}

static uint32_t state = 1;

static uint8_t noise(void) {
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

/* Technical note 3: differences run on from plane to plane, the most significant plane is first. */
static void reference(const uint8_t *planes, size_t samples, size_t size, bool sums, uint8_t *to) {
    uint8_t sum = 0;
    for (size_t i = 0; i < samples * size; i++) {
        size_t plane = i / samples, sample = i % samples;
        sum = (uint8_t)(sum + planes[i]);
        to[sample * size + (COGPU_HOST_BIG_ENDIAN ? plane : size - 1 - plane)] =
            sums ? sum : planes[i];
    }
}

struct way {
    size_t vector_bytes;
    bool sums, streams, at_end;
};

static bool differs(const struct guarded memory[2], const uint8_t *row, size_t samples,
                    size_t count, size_t size, const uint8_t *expected, struct way way) {
    uint8_t *from = place(&memory[0], samples * size, way.at_end);
    uint8_t *to = place(&memory[1], count * size, way.at_end);
    const bool streams = way.streams && (uintptr_t)to % 16 == 0;
    memcpy(from, row, samples * size);
    memset(memory[1].memory, 0xA5, memory[1].page);
    if (way.sums)
        cogpu_cpu_undo_planes(from, samples, count, size, to, way.vector_bytes, streams);
    else
        cogpu_cpu_interleave_planes(from, samples, count, size, to, way.vector_bytes, streams);
    size_t written = 0; /* 0xA5 that stayed, outside of the row */
    for (size_t i = 0; i < memory[1].page; i++)
        written += memory[1].memory[i] != 0xA5 &&
                   (memory[1].memory + i < to || memory[1].memory + i >= to + count * size);
    return written || memcmp(to, expected, count * size) != 0 ||
           memcmp(from, row, samples * size) != 0;
}

static int count_faults(const struct guarded memory[2], size_t samples, size_t size) {
    static uint8_t row[ROW_MAX], expected[ROW_MAX];
    const size_t counts[] = {samples, (samples + 1) / 2, 1};
    int faults = 0;
    for (size_t i = 0; i < samples * size; i++)
        row[i] = noise();
    for (int sums = 0; sums < 2; sums++) {
        reference(row, samples, size, sums, expected);
        for (size_t bytes = 0; bytes <= cogpu_cpu_vector_bytes(); bytes += bytes ? bytes : 16)
            for (int k = 0; k < 12; k++)
                faults += differs(memory, row, samples, counts[k % 3], size, expected,
                                  (struct way){bytes, sums, k / 3 % 2, k / 6});
    }
    return faults;
}

static void test_every_width(void) {
    static const size_t sizes[] = {1, 2, 3, 4, 8};
    struct guarded memory[2] = {open_guarded(), open_guarded()};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t samples = 1; samples <= WIDTH_MAX; samples++)
            CHECK(count_faults(memory, samples, sizes[s]) == 0);
    close_guarded(&memory[0]);
    close_guarded(&memory[1]);
}

/* Sums wrap in every byte, and in what a plane begins with. */
static void test_sums_wrap(void) {
    uint8_t planes[4 * 64], expected[4 * 64], got[4 * 64];
    memset(planes, 0xFF, sizeof planes);
    reference(planes, 64, 4, true, expected);
    for (size_t bytes = 0; bytes <= cogpu_cpu_vector_bytes(); bytes += bytes ? bytes : 16) {
        cogpu_cpu_undo_planes(planes, 64, 64, 4, got, bytes, false);
        CHECK(memcmp(got, expected, sizeof got) == 0);
    }
}

TESTS(planes) {
    RUN(test_every_width);
    RUN(test_sums_wrap);
    return FINISH();
}
