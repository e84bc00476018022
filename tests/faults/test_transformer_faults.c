/*
 * Transformers while the n-th allocation fails: opening fails with COGPU_OUT_OF_MEMORY and leaks
 * nothing; positions stay the same, for a call without memory for a worker of its own uses the
 * catalog's.
 */
#include "faults/fault_injection.h"
#include "grid/transformer.h"
#include "support/test.h"

#include <math.h>

static const cogpu_placement source = {.width = 100,
                                       .height = 100,
                                       .crs = "EPSG:32633",
                                       .has_transform = true,
                                       .transform = {500000, 10, 0, 5000000, 0, -10}};
static const cogpu_placement target = {.width = 100,
                                       .height = 100,
                                       .crs = "EPSG:3857",
                                       .has_transform = true,
                                       .transform = {1669000, 10, 0, 5621000, 0, -10}};

static cogpu_status transform_point(double *x, double *y, cogpu_error *error) {
    cogpu_operations *operations = NULL;
    cogpu_transformer *transformer = NULL;
    cogpu_status status = cogpu_operations_open(&operations, error);
    if (status == COGPU_OK)
        status = cogpu_transformer_open(&source, &target, operations, &transformer, error);
    if (status == COGPU_OK)
        cogpu_to_source(transformer, 1, x, y);
    cogpu_transformer_close(transformer);
    cogpu_operations_close(operations);
    return status;
}

static void allocations(void) {
    double right_x = 10, right_y = 20;
    bool is_through = false, has_worked_without = false;
    cogpu_error error;
    CHECK(transform_point(&right_x, &right_y, &error) == COGPU_OK && isfinite(right_x));
    for (long n = 1; !is_through && n < 1000; n++) {
        double x = 10, y = 20;
        arm_fault(ALLOCATION, n);
        cogpu_status status = transform_point(&x, &y, &error);
        is_through = atomic_load(&faults_fired) == 0;
        arm_fault(NO_FAULT, 0);
        CHECK(status == COGPU_OK || (status == COGPU_OUT_OF_MEMORY && !is_through));
        CHECK(status != COGPU_OK || (x == right_x && y == right_y));
        has_worked_without |= status == COGPU_OK && !is_through;
        CHECK(atomic_load(&live_allocations) == 0);
    }
    CHECK(is_through && has_worked_without);
}

TESTS(transformer_faults) {
    reset_faults();
    if (cogpu_proj_version())
        RUN(allocations);
    return FINISH();
}
