/* Public reads: cogpu_read, cogpu_read_async, cogpu_wait, cogpu_read_many. The engine is in
 * src/read.
 */
#include "read/read.h"

#include "api/sized.h"

static cogpu_status take_call(const cogpu_file *file, const cogpu_request *request,
                              const cogpu_raster *raster, cogpu_read_call *call,
                              cogpu_error *error) {
    cogpu_error_clear(&call->refusal);
    call->file = file;
    if (!raster)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a read needs a raster");
    TRY(TAKE_STRUCT(&call->request, request, cogpu_request, error));
    return TAKE_STRUCT(&call->raster, raster, cogpu_raster, error);
}

cogpu_status cogpu_read(const cogpu_file *file, const cogpu_request *request,
                        const cogpu_raster *raster, cogpu_result *result, cogpu_error *error) {
    cogpu_read_call call;
    cogpu_error_clear(error);
    TRY(take_call(file, request, raster, &call, error));
    TRY(CHECK_STRUCT(result, cogpu_result, error));
    cogpu_status status =
        cogpu_read_items(&call, 1, call.request.threads, call.request.context, error);
    GIVE_STRUCT(result, &call.result);
    return status;
}

/* To callers a pending job is opaque. */
cogpu_status cogpu_read_async(const cogpu_file *file, const cogpu_request *request,
                              const cogpu_raster *raster, cogpu_pending **pending,
                              cogpu_error *error) {
    cogpu_read_call call;
    cogpu_read_job *job = NULL;
    cogpu_error_clear(error);
    if (!pending)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_read_async needs a pointer for the pending read");
    *pending = NULL;
    TRY(take_call(file, request, raster, &call, error));
    cogpu_status status = cogpu_read_start(&call, &job, error);
    *pending = (cogpu_pending *)job;
    return status;
}

cogpu_status cogpu_wait(cogpu_pending *pending, cogpu_result *result, cogpu_error *error) {
    cogpu_result done = COGPU_RESULT_INIT;
    cogpu_error_clear(error);
    if (!pending)
        return COGPU_OK;
    cogpu_status status = cogpu_read_finish((cogpu_read_job *)pending, &done, error);
    if (CHECK_STRUCT(result, cogpu_result, status == COGPU_OK ? error : NULL) != COGPU_OK)
        return status == COGPU_OK ? COGPU_INVALID_ARGUMENT : status;
    GIVE_STRUCT(result, &done);
    return status;
}

/* ---- many ---------------------------------------------------------------------------------- */

static cogpu_status take_item(const void *given, cogpu_context *context, cogpu_read_call *call) {
    cogpu_read_item item;
    cogpu_error *refusal = &call->refusal;
    TRY(TAKE_STRUCT(&item, given, cogpu_read_item, refusal));
    TRY(CHECK_STRUCT(item.result, cogpu_result, refusal));
    TRY(take_call(item.file, item.request, item.raster, call, refusal));
    call->request.context = context;
    call->request.threads = 0;
    return COGPU_OK;
}

/* `result` NULL: none. */
static void give_item(void *given, cogpu_status status, const cogpu_result *result) {
    cogpu_read_item item;
    (void)TAKE_STRUCT(&item, given, cogpu_read_item, NULL); /* its fields are there in any case */
    item.status = status;
    if (result)
        GIVE_STRUCT(item.result, result);
    GIVE_STRUCT(given, &item);
}

static cogpu_status read_items(cogpu_read_item *items, size_t count, cogpu_context *context,
                               cogpu_arena *arena, cogpu_error *error) {
    cogpu_read_call *calls = NULL;
    cogpu_status status = cogpu_arena_allocate(arena, count, sizeof *calls, &calls, error);
    if (status != COGPU_OK) {
        for (size_t i = 0; i < count; i++)
            give_item(cogpu_struct_element(items, i), status, NULL);
        return status;
    }
    for (size_t i = 0; i < count; i++) /* an item that is refused fails alone */
        (void)take_item(cogpu_struct_element(items, i), context, &calls[i]);
    status = cogpu_read_items(calls, count, 0, context, error);
    for (size_t i = 0; i < count; i++)
        give_item(cogpu_struct_element(items, i), calls[i].status,
                  calls[i].refusal.status == COGPU_OK ? &calls[i].result : NULL);
    return status;
}

cogpu_status cogpu_read_many(cogpu_read_item *items, size_t count, cogpu_context *context,
                             cogpu_error *error) {
    cogpu_arena arena;
    cogpu_error_clear(error);
    if (count == 0)
        return COGPU_OK;
    if (!items)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "cogpu_read_many needs items");
    TRY(CHECK_STRUCTS(items, count, cogpu_read_item, error));
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = read_items(items, count, context, &arena, error);
    cogpu_arena_close(&arena);
    return status;
}
