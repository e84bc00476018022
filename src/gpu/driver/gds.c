/*
 * Copies between files and device memory by cuFile: see gds.h.
 *
 * Requests go to cuFile in batches of as many as it accepts. All batches are submitted before the
 * first is polled. If cuFile is too old for batches, or refuses one, threads make one synchronous
 * call a request. A request that fails is BAD, and the caller copies these bytes without cuFile.
 * Only requests that do not end fail the whole call, since their memory cannot be used again.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "gpu/driver/gds.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/math.h"
#include "gpu/driver/cufile_library.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *cogpu_gds_missing_reason(void) {
    return cogpu_cufile_load()->why;
}

bool cogpu_gds_is_direct(void) {
    return cogpu_cufile_load()->is_direct;
}

bool cogpu_gds_supports(const cogpu_gpu *gpu) {
    return (!gpu->is_emulated || cogpu_cufile_is_replaced()) && cogpu_gds_is_direct();
}

static cogpu_status check_present(cogpu_error *error) {
    const char *why = cogpu_gds_missing_reason();
    return why ? cogpu_fail(error, COGPU_UNSUPPORTED, "no GPUDirect Storage: %s", why) : COGPU_OK;
}

static cogpu_status explain(struct cufile_error result, const char *what, cogpu_error *error) {
    return result.code == CUFILE_SUCCESS
               ? COGPU_OK
               : cogpu_fail(error, COGPU_DEVICE_ERROR,
                            "cuFile failed %s: its error %d, CUDA's error %d", what, result.code,
                            result.cuda_code);
}

/* ---- files and memory ---------------------------------------------------------------------- */

struct cogpu_gds_file {
    int descriptor;
    uint64_t bytes;
    void *handle; /* cuFile's */
};

/* The same file, opened again with O_DIRECT if its file system supports that. A lock on the
 * descriptor stays with it. */
static int open_again(int descriptor) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    int mode = fcntl(descriptor, F_GETFL) & O_ACCMODE;
    int again = open(path, mode | O_CLOEXEC | O_DIRECT);
    return again >= 0 ? again : fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

cogpu_status cogpu_gds_file_open(int descriptor, cogpu_gds_file **out, cogpu_error *error) {
    struct stat about;
    *out = NULL;
    TRY(check_present(error));
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return cogpu_fail(error, COGPU_IO_ERROR, "GPUDirect Storage works with regular files only");
    cogpu_gds_file *file = cogpu_allocate(sizeof *file);
    if (!file)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a file");
    *file =
        (cogpu_gds_file){.descriptor = open_again(descriptor), .bytes = (uint64_t)about.st_size};
    struct cufile_descriptor named = {.type = CUFILE_DESCRIPTOR, .handle.number = file->descriptor};
    cogpu_status status =
        file->descriptor < 0
            ? cogpu_fail(error, COGPU_IO_ERROR, "the file cannot be opened again for cuFile")
            : explain(cogpu_cufile_load()->file_register(&file->handle, &named),
                      "to register a file", error);
    if (status == COGPU_OK) {
        *out = file;
        return COGPU_OK;
    }
    file->handle = NULL;
    cogpu_gds_file_close(file);
    return status;
}

void cogpu_gds_file_close(cogpu_gds_file *file) {
    if (!file)
        return;
    if (file->handle)
        cogpu_cufile_load()->file_deregister(file->handle);
    if (file->descriptor >= 0)
        close(file->descriptor);
    cogpu_release(file);
}

uint64_t cogpu_gds_file_bytes(const cogpu_gds_file *file) {
    return file->bytes;
}

static bool make_gpu_current(void *gpu) {
    return ((cogpu_gpu *)gpu)->calls->make_current(gpu);
}

static void restore_gpu_current(void *gpu) {
    ((cogpu_gpu *)gpu)->calls->restore_current(gpu);
}

cogpu_gds_context cogpu_gds_context_of(cogpu_gpu *gpu) {
    return (cogpu_gds_context){make_gpu_current, restore_gpu_current, gpu};
}

static bool make_current(const cogpu_gds_context *context) {
    return !context || context->make_current(context->user);
}

static void restore_current(const cogpu_gds_context *context) {
    if (context)
        context->restore_current(context->user);
}

cogpu_status cogpu_gds_register(const cogpu_gds_context *context, void *memory, uint64_t bytes,
                                cogpu_error *error) {
    TRY(check_present(error));
    if (!make_current(context))
        return cogpu_fail(error, COGPU_DEVICE_ERROR, "the GPU failed to make its context current");
    struct cufile_error result = cogpu_cufile_load()->memory_register(memory, (size_t)bytes, 0);
    restore_current(context);
    return explain(result, "to register device memory", error);
}

void cogpu_gds_deregister(const cogpu_gds_context *context, void *memory) {
    if (cogpu_gds_missing_reason() || !make_current(context))
        return;
    cogpu_cufile_load()->memory_deregister(memory);
    restore_current(context);
}

/* ---- fetch, write and wait ----------------------------------------------------------------- */

struct cufile_batch {
    void *handle;
    uint32_t under_way; /* requests */
};

/* Requests of a call from submission to end. */
struct cogpu_gds_flight {
    cogpu_gds_work work;
    const cogpu_cufile_library *library;
    enum cufile_operation operation;
    double last_end; /* seconds; when a request ended last */
    struct cufile_request *requests;
    struct cufile_event *events; /* of one batch */
    struct cufile_batch *batches;
    uint32_t batch_count;
};

/* Requests that need no cuFile: empty ones are DONE, those out of range BAD. */
static void check_requests(const cogpu_gds_work *work) {
    for (uint32_t i = 0; i < work->count; i++) {
        cogpu_gds_request *request = &work->requests[i];
        uint64_t device_end, file_end;
        bool fits = checked_add(request->device_offset, request->bytes, &device_end) &&
                    checked_add(request->file_offset, request->bytes, &file_end) &&
                    device_end <= work->memory_bytes && file_end <= INT64_MAX;
        request->state = !fits                 ? COGPU_GDS_BAD
                         : request->bytes == 0 ? COGPU_GDS_DONE
                                               : COGPU_GDS_NEW;
    }
}

static uint32_t count_state(const cogpu_gds_work *work, cogpu_gds_state state) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        count += work->requests[i].state == state;
    return count;
}

/* The cookie of a request is its index. */
static uint32_t list_requests(const cogpu_gds_flight *flight) {
    const cogpu_gds_work *work = &flight->work;
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        const cogpu_gds_request *request = &work->requests[i];
        if (request->state == COGPU_GDS_NEW)
            flight->requests[count++] =
                (struct cufile_request){.mode = CUFILE_BATCH,
                                        .memory = work->memory,
                                        .file_offset = (off_t)request->file_offset,
                                        .device_offset = (off_t)request->device_offset,
                                        .bytes = (size_t)request->bytes,
                                        .file = request->file->handle,
                                        .operation = (int)flight->operation,
                                        .cookie = (void *)(uintptr_t)i};
    }
    return count;
}

/* If cuFile refuses the batch its requests stay NEW. */
static void submit_batch(cogpu_gds_flight *flight, struct cufile_request *requests,
                         uint32_t count) {
    struct cufile_batch batch = {.under_way = count};
    if (flight->library->batch_open(&batch.handle, count).code != CUFILE_SUCCESS)
        return;
    if (flight->library->batch_submit(batch.handle, count, requests, 0).code != CUFILE_SUCCESS) {
        flight->library->batch_cancel(batch.handle);
        flight->library->batch_close(batch.handle);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        flight->work.requests[(uintptr_t)requests[i].cookie].state = COGPU_GDS_UNDER_WAY;
    flight->batches[flight->batch_count++] = batch;
}

static void submit_all(cogpu_gds_flight *flight) {
    uint32_t most = flight->library->batch_entries, count = list_requests(flight);
    for (uint32_t at = 0; at < count; at += most)
        submit_batch(flight, flight->requests + at, min_u32(count - at, most));
}

/* One request, by a synchronous call. */
static void copy_request(void *argument, uint32_t worker, uint64_t index) {
    const cogpu_gds_flight *flight = argument;
    const cogpu_gds_work *work = &flight->work;
    cogpu_gds_request *request = &work->requests[index];
    ssize_t moved = -1;
    (void)worker;
    if (request->state != COGPU_GDS_NEW)
        return;
    if (make_current(work->context)) {
        size_t bytes = (size_t)request->bytes;
        off_t in_file = (off_t)request->file_offset, in_memory = (off_t)request->device_offset;
        void *file = request->file->handle;
        moved = flight->operation == CUFILE_READ
                    ? flight->library->read(file, work->memory, bytes, in_file, in_memory)
                    : flight->library->write(file, work->memory, bytes, in_file, in_memory);
        restore_current(work->context);
    }
    request->state =
        moved >= 0 && (uint64_t)moved == request->bytes ? COGPU_GDS_DONE : COGPU_GDS_BAD;
}

static void note_event(cogpu_gds_flight *flight, struct cufile_batch *batch,
                       const struct cufile_event *event) {
    uintptr_t index = (uintptr_t)event->cookie;
    if (index >= flight->work.count || event->state == CUFILE_WAITING ||
        event->state == CUFILE_PENDING)
        return;
    cogpu_gds_request *request = &flight->work.requests[index];
    if (request->state != COGPU_GDS_UNDER_WAY)
        return;
    bool is_whole = event->state == CUFILE_COMPLETE && event->result == request->bytes;
    request->state = is_whole ? COGPU_GDS_DONE : COGPU_GDS_BAD;
    batch->under_way--;
    flight->last_end = clock_now();
}

/* Waits until all requests of the batch have ended. False: cuFile failed, or none ends any more. */
static bool wait_for_batch(cogpu_gds_flight *flight, struct cufile_batch *batch) {
    double patience = flight->work.patience > 0 ? flight->work.patience : 60;
    while (batch->under_way > 0) {
        struct timespec second = {.tv_sec = 1}, moment = {.tv_nsec = 50000};
        unsigned before = batch->under_way, count = before;
        struct cufile_error result =
            flight->library->batch_events(batch->handle, count, &count, flight->events, &second);
        if (result.code != CUFILE_SUCCESS || count > before)
            return false;
        for (unsigned i = 0; i < count; i++)
            note_event(flight, batch, &flight->events[i]);
        if (batch->under_way == before) {
            if (clock_now() - flight->last_end > patience)
                return false;
            nanosleep(&moment, NULL); /* cuFile may return at once */
        }
    }
    return true;
}

static bool wait_for_all(cogpu_gds_flight *flight) {
    bool all = true;
    flight->last_end = clock_now();
    for (uint32_t i = 0; i < flight->batch_count; i++)
        all &= wait_for_batch(flight, &flight->batches[i]);
    return all;
}

/* A batch that does not end is not closed: cuFile may still copy bytes. */
static void finish_batches(cogpu_gds_flight *flight) {
    if (!wait_for_all(flight)) {
        for (uint32_t i = 0; i < flight->batch_count; i++)
            if (flight->batches[i].under_way > 0)
                flight->library->batch_cancel(flight->batches[i].handle);
        (void)wait_for_all(flight);
    }
    for (uint32_t i = 0; i < flight->batch_count; i++)
        if (flight->batches[i].under_way == 0)
            flight->library->batch_close(flight->batches[i].handle);
}

/* Without memory for batches the threads make synchronous calls, which need none. */
static bool allocate_flight(cogpu_gds_flight *flight, uint32_t count) {
    flight->requests = cogpu_allocate(count * sizeof *flight->requests);
    flight->events = cogpu_allocate(flight->library->batch_entries * sizeof *flight->events);
    flight->batches =
        cogpu_allocate(divide_up(count, flight->library->batch_entries) * sizeof *flight->batches);
    return flight->requests && flight->events && flight->batches;
}

static void release_flight(cogpu_gds_flight *flight) {
    cogpu_release(flight->requests);
    cogpu_release(flight->events);
    cogpu_release(flight->batches);
}

static void start_requests(cogpu_gds_flight *flight, const cogpu_gds_work *work,
                           enum cufile_operation operation) {
    *flight =
        (cogpu_gds_flight){.work = *work, .library = cogpu_cufile_load(), .operation = operation};
    check_requests(work);
    uint32_t count = count_state(work, COGPU_GDS_NEW);
    if (count == 0 || !make_current(work->context))
        return;
    if (flight->library->has_batches && allocate_flight(flight, count))
        submit_all(flight);
    if (count_state(work, COGPU_GDS_NEW) > 0)
        cogpu_pool_run(work->pool, work->workers, work->count, copy_request, flight);
    restore_current(work->context);
}

static cogpu_status finish_requests(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error) {
    const cogpu_gds_work *work = &flight->work;
    if (flight->batch_count > 0 && make_current(work->context)) {
        finish_batches(flight);
        restore_current(work->context);
    }
    release_flight(flight);
    uint32_t stuck = count_state(work, COGPU_GDS_UNDER_WAY);
    for (uint32_t i = 0; i < work->count; i++)
        if (work->requests[i].state != COGPU_GDS_DONE)
            work->requests[i].state = COGPU_GDS_BAD;
    *bad = count_state(work, COGPU_GDS_BAD);
    return stuck == 0
               ? COGPU_OK
               : cogpu_fail(error, COGPU_DEVICE_ERROR,
                            "cuFile did not end %u of %u %s, not even after a cancel", stuck,
                            work->count, flight->operation == CUFILE_READ ? "reads" : "writes");
}

cogpu_status cogpu_gds_fetch(const cogpu_gds_work *work, uint32_t *bad, cogpu_error *error) {
    cogpu_gds_flight flight;
    TRY(check_present(error));
    start_requests(&flight, work, CUFILE_READ);
    return finish_requests(&flight, bad, error);
}

cogpu_status cogpu_gds_write(const cogpu_gds_work *work, cogpu_gds_flight **flight,
                             cogpu_error *error) {
    *flight = NULL;
    TRY(check_present(error));
    *flight = cogpu_allocate(sizeof **flight);
    if (!*flight)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory to write by cuFile");
    start_requests(*flight, work, CUFILE_WRITE);
    return COGPU_OK;
}

cogpu_status cogpu_gds_wait(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error) {
    *bad = 0;
    if (!flight)
        return COGPU_OK;
    cogpu_status status = finish_requests(flight, bad, error);
    cogpu_release(flight);
    return status;
}
