/* The read engine, as src/api calls it. Each function checks the requests that it is given. */
#ifndef COGPU_READ_READ_H
#define COGPU_READ_READ_H

#include "context/context.h"

/* One read, with the caller's structs as this version has them. */
typedef struct cogpu_read_call {
    const cogpu_file *file;
    cogpu_request request;
    cogpu_raster raster;
    cogpu_error refusal; /* why the caller's structs were refused; COGPU_OK: they were not */
    cogpu_result result; /* filled */
    cogpu_status status; /* filled */
} cogpu_read_call;

/* A read whose last batch may still be on the device. The public name is cogpu_pending. */
typedef struct cogpu_read_job cogpu_read_job;

/* Reads items whose rasters are on any devices. Fills result and status of each item; the first
 * item that failed is the error. `threads` 0: those of the context, or one for each CPU core. */
cogpu_status cogpu_read_items(cogpu_read_call *items, size_t count, uint32_t threads,
                              cogpu_context *context, cogpu_error *error);

/* Reads one item in two steps. *job is NULL after a failure. */
cogpu_status cogpu_read_start(const cogpu_read_call *item, cogpu_read_job **job,
                              cogpu_error *error);
/* Fills *result and frees the job. */
cogpu_status cogpu_read_finish(cogpu_read_job *job, cogpu_result *result, cogpu_error *error);

#endif
