/* The read engine, as src/api calls it. Each function checks the requests that it is given. */
#ifndef COGPU_READ_READ_H
#define COGPU_READ_READ_H

#include "context/context.h"

/* A read whose last batch is still on the device. The public name is cogpu_pending. */
typedef struct cogpu_read_job cogpu_read_job;

/* Reads items whose rasters are on any devices. Fills result and status of each item; the first
 * item that failed is the error. `threads` 0: those of the context, or one for each CPU core. */
cogpu_status cogpu_read_items(cogpu_read_item *items, size_t count, uint32_t threads,
                              cogpu_context *context, cogpu_error *error);

/* Reads one item in two steps. *job is NULL if the read failed or is complete after the first. */
cogpu_status cogpu_read_start(const cogpu_read_item *item, cogpu_read_job **job,
                              cogpu_result *result, cogpu_error *error);
cogpu_status cogpu_read_finish(cogpu_read_job *job, cogpu_result *result, cogpu_error *error);

#endif
