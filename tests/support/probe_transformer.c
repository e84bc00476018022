/* A library for tests/python/test_transformer.py: transformers, which cogpu.h does not show. */
#include "grid/transformer.h"

#define EXPORTED __attribute__((visibility("default")))

typedef struct probe {
    cogpu_operations *operations;
    cogpu_transformer *transformer;
} probe;

/* `operations` is shared by several transformers; it is opened if it is NULL. */
EXPORTED int probe_open(const cogpu_placement *source, const cogpu_placement *target, probe *opened,
                        cogpu_error *error);
EXPORTED void probe_close(cogpu_transformer *transformer, cogpu_operations *operations);
EXPORTED void probe_to_source(const cogpu_transformer *transformer, size_t count, double *x,
                              double *y);
EXPORTED void probe_to_target(const cogpu_transformer *transformer, size_t count, double *x,
                              double *y);
EXPORTED int probe_is_affine(const cogpu_transformer *transformer, double affine[6]);

int probe_open(const cogpu_placement *source, const cogpu_placement *target, probe *opened,
               cogpu_error *error) {
    if (!opened->operations)
        TRY(cogpu_operations_open(&opened->operations, error));
    return cogpu_transformer_open(source, target, opened->operations, &opened->transformer, error);
}

void probe_close(cogpu_transformer *transformer, cogpu_operations *operations) {
    cogpu_transformer_close(transformer);
    cogpu_operations_close(operations);
}

void probe_to_source(const cogpu_transformer *transformer, size_t count, double *x, double *y) {
    cogpu_to_source(transformer, count, x, y);
}

void probe_to_target(const cogpu_transformer *transformer, size_t count, double *x, double *y) {
    cogpu_to_target(transformer, count, x, y);
}

int probe_is_affine(const cogpu_transformer *transformer, double affine[6]) {
    return cogpu_transformer_is_affine(transformer, affine);
}
