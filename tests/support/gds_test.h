/*
 * What the tests of GPUDirect Storage share: a fake cuFile to be told what to do, a context that
 * knows whether it is current, and noise.
 */
#ifndef COGPU_TESTS_GDS_TEST_H
#define COGPU_TESTS_GDS_TEST_H

#include "gpu/driver/gds.h"

#include "support/fake_cufile.h"
#include "support/stand_in.h"

enum { PAGE = COGPU_GDS_PAGE };

extern fake_cufile *fake;
extern cogpu_error error;

void with_cufile(const char *path, void (*test)(void));

extern uint64_t random_state;

uint64_t random_below(uint64_t bound);

void fill_with_noise(uint8_t *memory, size_t bytes);

extern _Thread_local int current;
extern atomic_uint made_current, refused;

bool make_current(void *user);

void restore_current(void *user);

bool is_current(void);

extern const cogpu_gds_context context;

/* Orders and counts as at first, but for what is open. */
void reset(void);

/* Nothing was asked that cuFile does not allow, and no context is left current. */
bool is_clean(void);

/* ---- plans of reads ---- */

enum { SPANS_MAX = 6000 };
extern cogpu_gds_request plan_reads[SPANS_MAX];
extern cogpu_gds_location plan_locations[SPANS_MAX];

/* All spans of a batch, or COGPU_LIMIT_EXCEEDED where they need more than is allowed. */
cogpu_status plan_batch(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        const cogpu_span *spans, uint32_t count, uint64_t allowed);

/* Blocks as files have them: one after the other, with holes, jumps and sparse blocks. */
void make_spans(cogpu_span *spans, uint32_t count, uint64_t file_bytes, uint64_t most);

#endif
