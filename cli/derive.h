/*
 * What convert does to pixels between reading and writing: --size resamples them, --scale maps
 * their values, --dtype changes their type. All of it is done on the host, a few rows at a time.
 */
#ifndef COGPU_CLI_DERIVE_H
#define COGPU_CLI_DERIVE_H

#include "convert_samples.h"
#include "selection.h"

typedef struct cogpu_derivation {
    bool is_needed; /* else pixels are written as they are read */
    bool is_resampled, is_converted;
    cogpu_resample resample;
    cogpu_sample_map *maps; /* of each band */
    void *memory[3];        /* source rows, their mask, unconverted rows; grown as needed */
    size_t memory_bytes[3];
} cogpu_derivation;

/* Sets what is written of the selection, and for --size its level. */
cogpu_status cogpu_derivation_plan(const cogpu_arguments *arguments, cogpu_selection *selection,
                                   cogpu_error *error);

/* Before the first rows: copies the type and size of the new file, and finds the range of values
 * that --scale maps where it names none. */
cogpu_status cogpu_derivation_open(const cogpu_arguments *arguments,
                                   const cogpu_selection *selection, const cogpu_profile *profile,
                                   cogpu_derivation *derivation, cogpu_error *error);
void cogpu_derivation_close(cogpu_derivation *derivation);

/* How many rows can be made at once so that memory for those they are made of is bounded. */
uint32_t cogpu_derivation_rows(const cogpu_derivation *derivation,
                               const cogpu_selection *selection);

/* Makes rows from `row` on, as many as the raster is high. `mask` has data where one is wanted. */
cogpu_status cogpu_derivation_read(cogpu_derivation *derivation, const cogpu_selection *selection,
                                   uint32_t row, cogpu_raster *rows, cogpu_raster *mask,
                                   cogpu_result *result, cogpu_error *error);

#endif
