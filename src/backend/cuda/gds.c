/*
 * Takes places in files and in memory of the device, moves the bytes from one to the other: see
 * gds.h.
 *
 * Pieces, reads or writes, go to cuFile in batches of as many as it takes at once, and all batches
 * are submitted before the first is asked how it stands. What cannot be submitted so, because
 * cuFile is too old for batches or refuses one, is moved by threads, one piece after the other.
 * Whatever goes wrong with a piece is its own affair: it is BAD, and the caller moves these bytes
 * as if there were no cuFile. Only pieces that do not end concern all, for the memory cannot be
 * used again.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "backend/cuda/gds.h"

#include "base/checked.h"
#include "base/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the library --------------------------------------------------------------------------- */

/* cuFile's types and numbers, which its interface fixes. */
struct cufile_error {
    int code, cuda_code;
};

struct cufile_descriptor {
    int type;
    union {
        int number;
        void *pointer;
    } handle;
    const void *file_system;
};

struct cufile_properties {
    unsigned major, minor;
    size_t poll_bytes, direct_bytes;
    unsigned supported, control, features;
    unsigned cache_kib, cache_of_memory_kib, pinned_kib;
    unsigned batch_entries, batch_milliseconds;
    unsigned later[64]; /* what newer versions may add */
};

struct cufile_request {
    int mode;
    void *memory;
    off_t file_offset, device_offset;
    size_t bytes;
    void *file;
    int operation;
    void *cookie;
};

struct cufile_event {
    void *cookie;
    int state;
    size_t result;
};

enum { CUFILE_SUCCESS = 0, CUFILE_ALREADY_OPEN = 5026 };
enum { CUFILE_DESCRIPTOR = 1 }; /* a type of descriptor */
enum { CUFILE_BATCH = 1 };      /* a mode */
enum cufile_operation { CUFILE_READ = 0, CUFILE_WRITE = 1 };
enum { CUFILE_WAITING = 1, CUFILE_PENDING = 2, CUFILE_COMPLETE = 16 };
enum { CUFILE_PEER_TO_PEER = 1 << 11 }; /* direct, by the kernel's own means */
enum { CUFILE_BATCH_ENTRIES = 128 };    /* that cuFile takes unless told otherwise */

/* X(result, field, name in the library, arguments) */
#define CALLS(X)                                                                                   \
    X(struct cufile_error, driver_open, "cuFileDriverOpen", (void))                                \
    X(struct cufile_error, properties, "cuFileDriverGetProperties", (struct cufile_properties *))  \
    X(struct cufile_error, file_register, "cuFileHandleRegister",                                  \
      (void **, struct cufile_descriptor *))                                                       \
    X(void, file_deregister, "cuFileHandleDeregister", (void *))                                   \
    X(struct cufile_error, memory_register, "cuFileBufRegister", (const void *, size_t, int))      \
    X(struct cufile_error, memory_deregister, "cuFileBufDeregister", (const void *))               \
    X(ssize_t, read, "cuFileRead", (void *, void *, size_t, off_t, off_t))                         \
    X(ssize_t, write, "cuFileWrite", (void *, const void *, size_t, off_t, off_t))
#define BATCH_CALLS(X)                                                                             \
    X(struct cufile_error, batch_open, "cuFileBatchIOSetUp", (void **, unsigned))                  \
    X(struct cufile_error, batch_submit, "cuFileBatchIOSubmit",                                    \
      (void *, unsigned, struct cufile_request *, unsigned))                                       \
    X(struct cufile_error, batch_events, "cuFileBatchIOGetStatus",                                 \
      (void *, unsigned, unsigned *, struct cufile_event *, struct timespec *))                    \
    X(struct cufile_error, batch_cancel, "cuFileBatchIOCancel", (void *))                          \
    X(void, batch_close, "cuFileBatchIODestroy", (void *))

#define FIELD(result, field, name, arguments) result(*field) arguments;
static struct library {
    char why[160]; /* it cannot be used; empty where it can */
    bool is_direct, has_batches;
    uint32_t batch_entries;
    CALLS(FIELD)
    BATCH_CALLS(FIELD)
} library;

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* dlsym hands back an object pointer, which C does not let us call: the bytes are the same. */
static bool find(void *handle, const char *name, void *field) {
    void *symbol = dlsym(handle, name);
    memcpy(field, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void open_library(void *handle) {
    struct cufile_properties properties = {0};
#define LOAD(result, field, name, arguments)                                                       \
    if (!find(handle, name, &library.field)) {                                                     \
        snprintf(library.why, sizeof library.why, "cuFile is too old: it lacks %s", name);         \
        return;                                                                                    \
    }
    CALLS(LOAD)
#define LOAD_BATCH(result, field, name, arguments) &&find(handle, name, &library.field)
    library.has_batches = true BATCH_CALLS(LOAD_BATCH);
    struct cufile_error opened = library.driver_open();
    if (opened.code != CUFILE_SUCCESS && opened.code != CUFILE_ALREADY_OPEN) {
        snprintf(library.why, sizeof library.why,
                 "cuFile cannot open its driver: its error %d, CUDA's error %d", opened.code,
                 opened.cuda_code);
        return;
    }
    library.batch_entries = CUFILE_BATCH_ENTRIES;
    if (library.properties(&properties).code != CUFILE_SUCCESS)
        return;
    library.is_direct = properties.major > 0 || properties.minor > 0 ||
                        (properties.supported & CUFILE_PEER_TO_PEER);
    if (properties.batch_entries > 0 && properties.batch_entries < CUFILE_BATCH_ENTRIES)
        library.batch_entries = properties.batch_entries;
}

/* It is never unloaded: it has threads of its own. Without a GPU it would complain on the terminal
 * and in a file, so that it is not even loaded. */
static void load_library(void) {
    const char *named = getenv("COGPU_CUFILE"), *why = NULL;
    bool is_named = named && *named;
    void *handle = NULL;
    if (is_named || cogpu_gpu_count(&why) > 0) {
        handle = dlopen(is_named ? named : "libcufile.so.0", RTLD_NOW | RTLD_LOCAL);
        why = is_named ? "the file that COGPU_CUFILE names cannot be loaded"
                       : "cuFile (libcufile.so.0) is not installed";
    }
    if (handle)
        open_library(handle);
    else
        snprintf(library.why, sizeof library.why, "%s", why);
}

const char *cogpu_gds_absent(void) {
    pthread_once(&library_once, load_library);
    return library.why[0] ? library.why : NULL;
}

bool cogpu_gds_is_direct(void) {
    return !cogpu_gds_absent() && library.is_direct;
}

bool cogpu_gds_serves(const cogpu_gpu *gpu) {
    return (!gpu->is_emulated || getenv("COGPU_CUFILE")) && cogpu_gds_is_direct();
}

static cogpu_status check_present(cogpu_error *error) {
    const char *why = cogpu_gds_absent();
    return why ? cogpu_fail(error, COGPU_UNSUPPORTED, "no GPUDirect Storage: %s", why) : COGPU_OK;
}

static cogpu_status explain(struct cufile_error result, const char *what, cogpu_error *error) {
    return result.code == CUFILE_SUCCESS
               ? COGPU_OK
               : cogpu_fail(error, COGPU_DEVICE, "cuFile failed %s: its error %d, CUDA's error %d",
                            what, result.code, result.cuda_code);
}

/* ---- plan ---------------------------------------------------------------------------------- */

/* A gap of so many bytes is read along, and up to so many bytes are read at once. */
enum { GAP_BYTES = 16 << 10, READ_BYTES = 4 << 20 };

static uint64_t page_down(uint64_t offset) {
    return offset / COGPU_GDS_PAGE * COGPU_GDS_PAGE;
}

static uint64_t page_up(uint64_t offset) {
    return divide_up(offset, COGPU_GDS_PAGE) * COGPU_GDS_PAGE;
}

/* The pages of a file that hold the span; false where there are none. */
static bool pages_of(cogpu_span span, uint64_t file_bytes, uint64_t *start, uint64_t *end) {
    uint64_t last, most = file_bytes < INT64_MAX ? file_bytes : INT64_MAX;
    if (span.bytes == 0 || !checked_add(span.offset, span.bytes, &last) || last > most)
        return false;
    *start = page_down(span.offset);
    *end = page_up(last) < most ? page_up(last) : most;
    return true;
}

/* Whether bytes [start, end) can be had by a longer read: they may lie inside of it, too. */
static bool extends(const cogpu_gds_piece *read, uint64_t start, uint64_t end) {
    uint64_t read_end = read->file_offset + read->bytes;
    if (start < read->file_offset)
        return false;
    return end <= read_end ||
           (start <= page_up(read_end) + GAP_BYTES && end - read->file_offset <= READ_BYTES);
}

bool cogpu_gds_plan_add(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        cogpu_span span, uint64_t allowed, cogpu_gds_place *place) {
    uint64_t start, end, bytes;
    cogpu_gds_piece *last = plan->read_count ? &plan->reads[plan->read_count - 1] : NULL;
    *place = (cogpu_gds_place){.read = COGPU_GDS_NO_READ};
    if (!pages_of(span, file_bytes, &start, &end))
        return true;
    bool is_new = !last || last->file != file || !extends(last, start, end);
    cogpu_gds_piece read = {.file = file, .file_offset = start, .device_offset = plan->bytes};
    if (!is_new)
        read = *last;
    if (end > read.file_offset + read.bytes)
        read.bytes = end - read.file_offset;
    if (!checked_add(read.device_offset, page_up(read.bytes), &bytes) || bytes > allowed)
        return false;
    plan->read_count += is_new;
    plan->bytes = bytes;
    plan->reads[plan->read_count - 1] = read;
    place->read = plan->read_count - 1;
    place->device_offset = read.device_offset + (span.offset - read.file_offset);
    return true;
}

/* What the page cache counts in: on some machines more than cuFile's page, of which it is a
 * multiple. */
static uint64_t cache_page(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > COGPU_GDS_PAGE ? (uint64_t)page : COGPU_GDS_PAGE;
}

cogpu_gds_way cogpu_gds_plan_writes(const cogpu_gds_file *file, cogpu_span span,
                                    uint64_t device_offset, cogpu_gds_piece *writes) {
    uint64_t page = cache_page(), span_end;
    cogpu_gds_way way = {.head = span.bytes};
    if (!checked_add(span.offset, span.bytes, &span_end) || span_end > INT64_MAX)
        return way; /* the host will say why that cannot be */
    uint64_t start = divide_up(span.offset, page) * page, end = span_end / page * page;
    if (start >= end)
        return way;
    way.head = start - span.offset;
    way.tail = span_end - end;
    for (uint64_t at = start; at < end; at += COGPU_GDS_WRITE_BYTES)
        writes[way.count++] = (cogpu_gds_piece){
            .file = file,
            .file_offset = at,
            .bytes = end - at < COGPU_GDS_WRITE_BYTES ? end - at : COGPU_GDS_WRITE_BYTES,
            .device_offset = device_offset + (at - span.offset)};
    return way;
}

/* ---- files and memory ---------------------------------------------------------------------- */

struct cogpu_gds_file {
    int descriptor;
    uint64_t bytes;
    void *handle; /* cuFile's */
};

/* The same file, opened once more: without the page cache, which the bytes are to pass by, where
 * its file system can do so. A lock that the descriptor has stays with it. */
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
        return cogpu_fail(error, COGPU_IO, "GPUDirect Storage takes regular files only");
    cogpu_gds_file *file = cogpu_allocate(sizeof *file);
    if (!file)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a file");
    *file =
        (cogpu_gds_file){.descriptor = open_again(descriptor), .bytes = (uint64_t)about.st_size};
    struct cufile_descriptor named = {.type = CUFILE_DESCRIPTOR, .handle.number = file->descriptor};
    cogpu_status status =
        file->descriptor < 0
            ? cogpu_fail(error, COGPU_IO, "the file cannot be opened once more")
            : explain(library.file_register(&file->handle, &named), "to take up a file", error);
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
        library.file_deregister(file->handle);
    if (file->descriptor >= 0)
        close(file->descriptor);
    cogpu_release(file);
}

uint64_t cogpu_gds_file_bytes(const cogpu_gds_file *file) {
    return file->bytes;
}

static bool enter_gpu(void *gpu) {
    return ((cogpu_gpu *)gpu)->calls->enter(gpu);
}

static void leave_gpu(void *gpu) {
    ((cogpu_gpu *)gpu)->calls->leave(gpu);
}

cogpu_gds_context cogpu_gds_context_of(cogpu_gpu *gpu) {
    return (cogpu_gds_context){enter_gpu, leave_gpu, gpu};
}

static bool enter(const cogpu_gds_context *context) {
    return !context || context->enter(context->user);
}

static void leave(const cogpu_gds_context *context) {
    if (context)
        context->leave(context->user);
}

cogpu_status cogpu_gds_register(const cogpu_gds_context *context, void *memory, uint64_t bytes,
                                cogpu_error *error) {
    TRY(check_present(error));
    if (!enter(context))
        return cogpu_fail(error, COGPU_DEVICE, "the GPU failed to make its context current");
    struct cufile_error result = library.memory_register(memory, (size_t)bytes, 0);
    leave(context);
    return explain(result, "to take up memory of the GPU", error);
}

void cogpu_gds_deregister(const cogpu_gds_context *context, void *memory) {
    if (cogpu_gds_absent() || !enter(context))
        return;
    library.memory_deregister(memory);
    leave(context);
}

/* ---- fetch, write and wait ----------------------------------------------------------------- */

struct batch {
    void *handle;
    uint32_t under_way; /* pieces */
};

/* Pieces of a work from submission to end. */
struct cogpu_gds_flight {
    cogpu_gds_work work;
    enum cufile_operation operation;
    double last_end; /* seconds; when a piece ended last */
    struct cufile_request *requests;
    struct cufile_event *events; /* room for one batch */
    struct batch *batches;
    uint32_t batch_count;
};

/* What needs no cuFile: pieces of nothing, and pieces that cannot be. */
static void sort_out(const cogpu_gds_work *work) {
    for (uint32_t i = 0; i < work->count; i++) {
        cogpu_gds_piece *piece = &work->pieces[i];
        uint64_t device_end, file_end;
        bool fits = checked_add(piece->device_offset, piece->bytes, &device_end) &&
                    checked_add(piece->file_offset, piece->bytes, &file_end) &&
                    device_end <= work->memory_bytes && file_end <= INT64_MAX;
        piece->state = !fits ? COGPU_GDS_BAD : piece->bytes == 0 ? COGPU_GDS_DONE : COGPU_GDS_NEW;
    }
}

static uint32_t count_of(const cogpu_gds_work *work, cogpu_gds_state state) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        count += work->pieces[i].state == state;
    return count;
}

/* Pieces are named by their index. */
static uint32_t list_requests(const cogpu_gds_flight *flight) {
    const cogpu_gds_work *work = &flight->work;
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        const cogpu_gds_piece *piece = &work->pieces[i];
        if (piece->state == COGPU_GDS_NEW)
            flight->requests[count++] =
                (struct cufile_request){.mode = CUFILE_BATCH,
                                        .memory = work->memory,
                                        .file_offset = (off_t)piece->file_offset,
                                        .device_offset = (off_t)piece->device_offset,
                                        .bytes = (size_t)piece->bytes,
                                        .file = piece->file->handle,
                                        .operation = (int)flight->operation,
                                        .cookie = (void *)(uintptr_t)i};
    }
    return count;
}

/* Where cuFile refuses, the pieces stay NEW. */
static void submit_batch(cogpu_gds_flight *flight, struct cufile_request *requests,
                         uint32_t count) {
    struct batch batch = {.under_way = count};
    if (library.batch_open(&batch.handle, count).code != CUFILE_SUCCESS)
        return;
    if (library.batch_submit(batch.handle, count, requests, 0).code != CUFILE_SUCCESS) {
        library.batch_cancel(batch.handle);
        library.batch_close(batch.handle);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        flight->work.pieces[(uintptr_t)requests[i].cookie].state = COGPU_GDS_UNDER_WAY;
    flight->batches[flight->batch_count++] = batch;
}

static void submit(cogpu_gds_flight *flight) {
    uint32_t most = library.batch_entries, count = list_requests(flight);
    for (uint32_t at = 0; at < count; at += most)
        submit_batch(flight, flight->requests + at, count - at < most ? count - at : most);
}

/* One piece, on a thread that waits for it. */
static void move_alone(void *argument, uint32_t seat, uint64_t index) {
    const cogpu_gds_flight *flight = argument;
    const cogpu_gds_work *work = &flight->work;
    cogpu_gds_piece *piece = &work->pieces[index];
    ssize_t moved = -1;
    (void)seat;
    if (piece->state != COGPU_GDS_NEW)
        return;
    if (enter(work->context)) {
        size_t bytes = (size_t)piece->bytes;
        off_t in_file = (off_t)piece->file_offset, in_memory = (off_t)piece->device_offset;
        void *file = piece->file->handle;
        moved = flight->operation == CUFILE_READ
                    ? library.read(file, work->memory, bytes, in_file, in_memory)
                    : library.write(file, work->memory, bytes, in_file, in_memory);
        leave(work->context);
    }
    piece->state = moved >= 0 && (uint64_t)moved == piece->bytes ? COGPU_GDS_DONE : COGPU_GDS_BAD;
}

static void take_note(cogpu_gds_flight *flight, struct batch *batch,
                      const struct cufile_event *event) {
    uintptr_t index = (uintptr_t)event->cookie;
    if (index >= flight->work.count || event->state == CUFILE_WAITING ||
        event->state == CUFILE_PENDING)
        return;
    cogpu_gds_piece *piece = &flight->work.pieces[index];
    if (piece->state != COGPU_GDS_UNDER_WAY)
        return;
    bool is_whole = event->state == CUFILE_COMPLETE && event->result == piece->bytes;
    piece->state = is_whole ? COGPU_GDS_DONE : COGPU_GDS_BAD;
    batch->under_way--;
    flight->last_end = clock_now();
}

/* Waits until the batch's pieces have ended. False: cuFile cannot tell, or none ends any more. */
static bool wait_for(cogpu_gds_flight *flight, struct batch *batch) {
    double patience = flight->work.patience > 0 ? flight->work.patience : 60;
    while (batch->under_way > 0) {
        struct timespec second = {.tv_sec = 1}, moment = {.tv_nsec = 50000};
        unsigned before = batch->under_way, count = before;
        struct cufile_error result =
            library.batch_events(batch->handle, count, &count, flight->events, &second);
        if (result.code != CUFILE_SUCCESS || count > before)
            return false;
        for (unsigned i = 0; i < count; i++)
            take_note(flight, batch, &flight->events[i]);
        if (batch->under_way == before) {
            if (clock_now() - flight->last_end > patience)
                return false;
            nanosleep(&moment, NULL); /* lest we spin where cuFile does not wait */
        }
    }
    return true;
}

static bool wait_for_all(cogpu_gds_flight *flight) {
    bool all = true;
    flight->last_end = clock_now();
    for (uint32_t i = 0; i < flight->batch_count; i++)
        all &= wait_for(flight, &flight->batches[i]);
    return all;
}

/* A batch that does not end is left to cuFile: it may be moving bytes yet. */
static void finish(cogpu_gds_flight *flight) {
    if (!wait_for_all(flight)) {
        for (uint32_t i = 0; i < flight->batch_count; i++)
            if (flight->batches[i].under_way > 0)
                library.batch_cancel(flight->batches[i].handle);
        (void)wait_for_all(flight);
    }
    for (uint32_t i = 0; i < flight->batch_count; i++)
        if (flight->batches[i].under_way == 0)
            library.batch_close(flight->batches[i].handle);
}

/* Without memory for batches there are none: the threads need no memory. */
static bool open_flight(cogpu_gds_flight *flight, uint32_t count) {
    flight->requests = cogpu_allocate(count * sizeof *flight->requests);
    flight->events = cogpu_allocate(library.batch_entries * sizeof *flight->events);
    flight->batches =
        cogpu_allocate(divide_up(count, library.batch_entries) * sizeof *flight->batches);
    return flight->requests && flight->events && flight->batches;
}

static void close_flight(cogpu_gds_flight *flight) {
    cogpu_release(flight->requests);
    cogpu_release(flight->events);
    cogpu_release(flight->batches);
}

static void start(cogpu_gds_flight *flight, const cogpu_gds_work *work,
                  enum cufile_operation operation) {
    *flight = (cogpu_gds_flight){.work = *work, .operation = operation};
    sort_out(work);
    uint32_t count = count_of(work, COGPU_GDS_NEW);
    if (count == 0 || !enter(work->context))
        return;
    if (library.has_batches && open_flight(flight, count))
        submit(flight);
    if (count_of(work, COGPU_GDS_NEW) > 0)
        cogpu_pool_run(work->pool, work->seats, work->count, move_alone, flight);
    leave(work->context);
}

static cogpu_status end(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error) {
    const cogpu_gds_work *work = &flight->work;
    if (flight->batch_count > 0 && enter(work->context)) {
        finish(flight);
        leave(work->context);
    }
    close_flight(flight);
    uint32_t stuck = count_of(work, COGPU_GDS_UNDER_WAY);
    for (uint32_t i = 0; i < work->count; i++)
        if (work->pieces[i].state != COGPU_GDS_DONE)
            work->pieces[i].state = COGPU_GDS_BAD;
    *bad = count_of(work, COGPU_GDS_BAD);
    return stuck == 0
               ? COGPU_OK
               : cogpu_fail(error, COGPU_DEVICE,
                            "cuFile does not end %u of %u %s, not even when told to", stuck,
                            work->count, flight->operation == CUFILE_READ ? "reads" : "writes");
}

cogpu_status cogpu_gds_fetch(const cogpu_gds_work *work, uint32_t *bad, cogpu_error *error) {
    cogpu_gds_flight flight;
    TRY(check_present(error));
    start(&flight, work, CUFILE_READ);
    return end(&flight, bad, error);
}

cogpu_status cogpu_gds_write(const cogpu_gds_work *work, cogpu_gds_flight **flight,
                             cogpu_error *error) {
    *flight = NULL;
    TRY(check_present(error));
    *flight = cogpu_allocate(sizeof **flight);
    if (!*flight)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory to write by cuFile");
    start(*flight, work, CUFILE_WRITE);
    return COGPU_OK;
}

cogpu_status cogpu_gds_wait(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error) {
    *bad = 0;
    if (!flight)
        return COGPU_OK;
    cogpu_status status = end(flight, bad, error);
    cogpu_release(flight);
    return status;
}
