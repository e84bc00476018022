/* Copies an open file to another and reports the result: for `cogpu convert` and `cogpu warp`. */
#ifndef COGPU_CLI_CONVERT_H
#define COGPU_CLI_CONVERT_H

#include "ahead.h"
#include "profile.h"
#include "progress.h"

enum { SIDECARS = 4 };

typedef struct cogpu_convert_job {
    const cogpu_arguments *arguments;
    const char *const *inputs; /* paths that are read for the file */
    uint32_t input_count;
    const char *in_name;             /* of the only input, as shown; NULL for several */
    const char *out_path, *out_name; /* "-": stdout */
    bool is_silent;                  /* no progress bar */

    cogpu_selection selection;
    cogpu_derivation derivation;
    cogpu_output_profile taken;
    cogpu_ahead *ahead;
    cogpu_writer *writer;
    cogpu_progress_bar progress;
    cogpu_result result;
    cogpu_written written;
    double milliseconds;
    const char *lossy_codec; /* of the input; NULL where it is lossless */
    const char *culprit;     /* the file that an error is about */
    bool had_sidecar[SIDECARS];
    bool has_mixed_nodata;
} cogpu_convert_job;

/* Fills all but the first lines of the job. */
cogpu_status cogpu_convert_run(cogpu_convert_job *job, const cogpu_input *input,
                               cogpu_error *error);

/* Converts and reports; a signal ends it. Returns an exit code. */
int cogpu_convert_alone(cogpu_convert_job *job, const cogpu_input *input);

/* Notes, and a line or a JSON object, while the input is open. Returns an exit code. */
int cogpu_convert_report(const cogpu_convert_job *job);

#endif
