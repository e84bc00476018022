/*
 * What the tests of GPUDirect Storage share: a fake cuFile to be told what to do, a context that
 * knows whether it is current, and noise.
 */
#ifndef COGPU_TESTS_GDS_TEST_H
#define COGPU_TESTS_GDS_TEST_H

#include "backend/cuda/gds.h"

#include "fake_cufile.h"
#include "stand_in.h"

enum { PAGE = COGPU_GDS_PAGE };

static fake_cufile *fake;
static cogpu_error error;

static void with_cufile(const char *path, void (*test)(void)) {
    in_a_process("COGPU_CUFILE", path, "fake_cufile_control", (void **)&fake, test);
}

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t bound) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 20) % bound;
}

static void fill_with_noise(uint8_t *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)random_below(256);
}

static _Thread_local int current;
static atomic_uint entered, refused;

static bool enter(void *user) {
    CHECK(user == &entered);
    if (atomic_load(&refused))
        return false;
    current++;
    atomic_fetch_add(&entered, 1);
    return true;
}

static void leave(void *user) {
    (void)user;
    current--;
}

static bool is_current(void) {
    return current > 0;
}

static const cogpu_gds_context context = {enter, leave, &entered};

/* Orders and counts as at first, but for what is open. */
static void reset(void) {
    unsigned entries = fake->entries, files = fake->files, memories = fake->memories;
    *fake = (fake_cufile){.entries = entries, .is_current = is_current};
    fake->files = files;
    fake->memories = memories;
}

/* Nothing was asked that cuFile does not allow, and no context is left current. */
static bool is_clean(void) {
    return fake->wrong + fake->without_context + fake->closed_under_way + (unsigned)current == 0;
}

#endif
