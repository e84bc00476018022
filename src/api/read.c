/* Public reads: cogpu_read, cogpu_wait, cogpu_read_many. The engine is in src/read. */
#include "read/read.h"

/* To callers a pending job is opaque. */
static cogpu_pending *pending_of(cogpu_read_job *job) {
    return (cogpu_pending *)job;
}

cogpu_status cogpu_read(const cogpu_file *file, const cogpu_request *request, cogpu_raster *raster,
                        cogpu_result *result, cogpu_error *error) {
    cogpu_pending **pending = request ? request->pending : NULL;
    if (pending)
        *pending = NULL;
    if (!file || !raster)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_read needs a file and a raster");
    cogpu_error_clear(error);
    cogpu_read_item item = {.file = file, .raster = *raster};
    if (request)
        item.request = *request;
    if (pending) {
        cogpu_read_job *job = NULL;
        cogpu_status status = cogpu_read_start(&item, &job, result, error);
        *pending = pending_of(job);
        return status;
    }
    cogpu_status status =
        cogpu_read_items(&item, 1, item.request.threads, item.request.context, error);
    if (result)
        *result = item.result;
    return status;
}

cogpu_status cogpu_wait(cogpu_pending *pending, cogpu_result *result, cogpu_error *error) {
    if (!pending)
        return COGPU_OK;
    cogpu_error_clear(error);
    return cogpu_read_finish((cogpu_read_job *)pending, result, error);
}

cogpu_status cogpu_read_many(cogpu_read_item *items, size_t count, cogpu_context *context,
                             cogpu_error *error) {
    if (!items && count)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_read_many needs items");
    cogpu_error_clear(error);
    for (size_t i = 0; i < count; i++) {
        items[i].request.context = context;
        items[i].request.pending = NULL;
        items[i].request.threads = 0;
    }
    return count ? cogpu_read_items(items, count, 0, context, error) : COGPU_OK;
}
