#include "support/gds_test.h"

fake_cufile *fake;

cogpu_error error;

void with_cufile(const char *path, void (*test)(void)) {
    in_a_process("COGPU_CUFILE", path, "fake_cufile_control", (void **)&fake, test);
}

uint64_t random_state = 1;

uint64_t random_below(uint64_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % bound;
}

void fill_with_noise(uint8_t *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)random_below(256);
}

_Thread_local int current;

atomic_uint made_current, refused;

bool make_current(void *user) {
    CHECK(user == &made_current);
    if (atomic_load(&refused))
        return false;
    current++;
    atomic_fetch_add(&made_current, 1);
    return true;
}

void restore_current(void *user) {
    (void)user;
    current--;
}

bool is_current(void) {
    return current > 0;
}

const cogpu_gds_context context = {make_current, restore_current, &made_current};

void reset(void) {
    unsigned entries = fake->entries, files = fake->files, memories = fake->memories;
    *fake = (fake_cufile){.entries = entries, .is_current = is_current};
    fake->files = files;
    fake->memories = memories;
}

bool is_clean(void) {
    return fake->wrong + fake->without_context + fake->closed_under_way + (unsigned)current == 0;
}

cogpu_gds_request plan_reads[SPANS_MAX];
cogpu_gds_location plan_locations[SPANS_MAX];

cogpu_status plan_batch(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        const cogpu_span *spans, uint32_t count, uint64_t allowed) {
    for (uint32_t i = 0; i < count; i++)
        if (!cogpu_gds_plan_add(plan, file, file_bytes, spans[i], allowed, &plan_locations[i]))
            return COGPU_LIMIT_EXCEEDED;
    return COGPU_OK;
}

void make_spans(cogpu_span *spans, uint32_t count, uint64_t file_bytes, uint64_t most) {
    uint64_t at = random_below(file_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kind = random_below(16);
        at = kind == 0 ? random_below(file_bytes) : kind < 4 ? at + random_below(100000) : at;
        at = at < file_bytes ? at : at % file_bytes;
        spans[i] = (cogpu_span){at, kind == 5 ? 0 : random_below(most)};
        at += spans[i].bytes;
    }
}
