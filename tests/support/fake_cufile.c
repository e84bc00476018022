/*
 * Does the calls of cuFile by pread and pwrite, with the faults that fake_cufile.h describes. With
 * WITHOUT_BATCHES it is a version that has no batches, with WITHOUT_WRITES one that only reads.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include "support/fake_cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PAGE = 4096, ENTRIES_MAX = 256, BATCHES_MAX = 2048, FILES_MAX = 16 };

struct answer {
    int code, cuda_code;
};

struct descriptor {
    int type;
    union {
        int number;
        void *pointer;
    } handle;
    const void *file_system;
};

struct properties {
    struct {
        unsigned major, minor;
        size_t poll_bytes, gds_bytes;
        unsigned status, control;
    } driver;
    unsigned features, cache, buffer_cache, pinned, entries, milliseconds;
};

static fake_cufile fake;
static int files[FILES_MAX];

EXPORT fake_cufile *fake_cufile_control(void);
fake_cufile *fake_cufile_control(void) {
    return &fake;
}

static struct answer answer(int code) {
    return (struct answer){code, 0};
}

static void expect(bool condition) {
    atomic_fetch_add(&fake.wrong, !condition);
}

static void expect_context(void) {
    atomic_fetch_add(&fake.without_context, fake.is_current && !fake.is_current());
}

static bool is_each(uint64_t each, off_t offset) {
    return each != 0 && (uint64_t)offset / PAGE % each == 0;
}

enum operation { READ = 0, WRITE = 1 };

/* What a read or a write comes to: bytes, or an error below 0. The last page of a file may be read
 * in part. */
static ssize_t move_bytes(enum operation operation, void *file, void *memory, size_t bytes,
                          off_t file_offset, off_t device_offset) {
    char *at = (char *)memory + device_offset;
    atomic_fetch_add(&fake.unaligned, file_offset % PAGE != 0 || device_offset % PAGE != 0 ||
                                          (operation == WRITE && bytes % PAGE != 0));
    atomic_fetch_add(operation == READ ? &fake.reads : &fake.writes, 1);
    expect(bytes > 0);
    if (is_each(fake.fail_each, file_offset))
        return -EIO;
    if (is_each(fake.short_each, file_offset))
        bytes /= 2;
    return operation == READ ? pread(*(int *)file, at, bytes, file_offset)
                             : pwrite(*(int *)file, at, bytes, file_offset);
}

EXPORT struct answer cuFileDriverOpen(void);
struct answer cuFileDriverOpen(void) {
    fake.driver_opens++;
    return answer(fake.open_error);
}

EXPORT struct answer cuFileDriverGetProperties(struct properties *properties);
struct answer cuFileDriverGetProperties(struct properties *properties) {
    *properties = (struct properties){.entries = fake.entries ? fake.entries : 128};
    properties->driver.major = fake.is_through_host ? 0 : 2;
    properties->driver.minor = fake.is_through_host ? 0 : 17;
    return answer(fake.properties_error);
}

EXPORT struct answer cuFileHandleRegister(void **handle, struct descriptor *descriptor);
struct answer cuFileHandleRegister(void **handle, struct descriptor *descriptor) {
    int file = descriptor->handle.number, slot = 0;
    expect(descriptor->type == 1 && !descriptor->file_system);
    if (fake.file_error)
        return answer(fake.file_error);
    while (slot < FILES_MAX && files[slot] > 0)
        slot++;
    expect(slot < FILES_MAX && file > 0);
    if (!fake.passes_cache)
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_DIRECT);
    files[slot] = file;
    *handle = &files[slot];
    atomic_fetch_add(&fake.files, 1);
    return answer(0);
}

EXPORT void cuFileHandleDeregister(void *handle);
void cuFileHandleDeregister(void *handle) {
    expect(fcntl(*(int *)handle, F_GETFD) >= 0);
    *(int *)handle = 0;
    atomic_fetch_sub(&fake.files, 1);
}

EXPORT struct answer cuFileBufRegister(const void *memory, size_t bytes, int flags);
struct answer cuFileBufRegister(const void *memory, size_t bytes, int flags) {
    expect(memory && bytes > 0 && flags == 0);
    expect_context();
    if (!fake.memory_error)
        atomic_fetch_add(&fake.memories, 1);
    return answer(fake.memory_error);
}

EXPORT struct answer cuFileBufDeregister(const void *memory);
struct answer cuFileBufDeregister(const void *memory) {
    expect(memory != NULL);
    expect_context();
    atomic_fetch_sub(&fake.memories, 1);
    return answer(0);
}

EXPORT ssize_t cuFileRead(void *file, void *memory, size_t bytes, off_t file_offset,
                          off_t device_offset);
ssize_t cuFileRead(void *file, void *memory, size_t bytes, off_t file_offset, off_t device_offset) {
    expect_context();
    atomic_fetch_add(&fake.alone, 1);
    return move_bytes(READ, file, memory, bytes, file_offset, device_offset);
}

#ifndef WITHOUT_WRITES
EXPORT ssize_t cuFileWrite(void *file, void *memory, size_t bytes, off_t file_offset,
                           off_t device_offset);
ssize_t cuFileWrite(void *file, void *memory, size_t bytes, off_t file_offset,
                    off_t device_offset) {
    expect_context();
    atomic_fetch_add(&fake.alone, 1);
    return move_bytes(WRITE, file, memory, bytes, file_offset, device_offset);
}
#endif

/* ---- batches: by one thread at a time ------------------------------------------------------ */

#ifndef WITHOUT_BATCHES

enum { WAITING = 1, PENDING = 2, CANCELED = 8, COMPLETE = 16, FAILED = 64 };

struct request {
    int mode;
    union {
        struct {
            void *memory;
            off_t file_offset, device_offset;
            size_t bytes;
        } batch;
    } u;
    void *file;
    enum operation operation;
    void *cookie;
};

struct event {
    void *cookie;
    int status;
    size_t result;
};

static struct batch {
    atomic_bool is_open; /* several threads open some at once */
    bool is_cancelled;
    unsigned capacity, count; /* requests; those that have ended are taken out */
    struct request requests[ENTRIES_MAX];
    struct event told; /* the last, or one of no request */
} batches[BATCHES_MAX];

EXPORT struct answer cuFileBatchIOSetUp(void **handle, unsigned capacity);
struct answer cuFileBatchIOSetUp(void **handle, unsigned capacity) {
    unsigned number = atomic_fetch_add(&fake.setups, 1) + 1, slot = 0;
    expect(capacity > 0 && capacity <= (fake.entries ? fake.entries : 128));
    expect_context();
    if (fake.setup_fails_at && number >= fake.setup_fails_at)
        return answer(5030);
    while (slot < BATCHES_MAX && atomic_exchange(&batches[slot].is_open, true))
        slot++;
    if (slot == BATCHES_MAX)
        return answer(5030);
    batches[slot].is_cancelled = false;
    batches[slot].capacity = capacity;
    batches[slot].count = 0;
    batches[slot].told = (struct event){.cookie = (void *)UINTPTR_MAX, .status = COMPLETE};
    *handle = &batches[slot];
    atomic_fetch_add(&fake.batches, 1);
    return answer(0);
}

EXPORT struct answer cuFileBatchIOSubmit(void *handle, unsigned count, struct request *requests,
                                         unsigned flags);
struct answer cuFileBatchIOSubmit(void *handle, unsigned count, struct request *requests,
                                  unsigned flags) {
    struct batch *batch = handle;
    expect(batch->is_open && count > 0 && batch->count + count <= batch->capacity && flags == 0);
    expect_context();
    if (atomic_fetch_add(&fake.submits, 1) + 1 == fake.submit_fails_at)
        return answer(5035);
    for (unsigned i = 0; i < count; i++) {
        expect(requests[i].mode == 1 && requests[i].operation <= WRITE);
        batch->requests[batch->count++] = requests[i];
    }
    atomic_fetch_add(&fake.submitted, count);
    return answer(0);
}

/* Whether the request ends now, and how. */
static bool end(const struct batch *batch, const struct request *request, struct event *event) {
    *event = (struct event){
        .cookie = request->cookie, .status = CANCELED, .result = request->u.batch.bytes};
    if (batch->is_cancelled)
        return true;
    if (is_each(fake.stuck_each, request->u.batch.file_offset))
        return false;
    ssize_t moved = move_bytes(request->operation, request->file, request->u.batch.memory,
                               request->u.batch.bytes, request->u.batch.file_offset,
                               request->u.batch.device_offset);
    event->status = moved < 0 ? FAILED : COMPLETE;
    event->result = (size_t)moved;
    return true;
}

/* The last come first. */
static unsigned end_some(struct batch *batch, unsigned most, struct event *events) {
    unsigned count = 0;
    for (unsigned i = batch->count; i-- > 0 && count < most;)
        if (end(batch, &batch->requests[i], &events[count])) {
            batch->told = events[count++];
            for (unsigned k = i + 1; k < batch->count; k++)
                batch->requests[k - 1] = batch->requests[k];
            batch->count--;
        }
    return count;
}

/* A stray event, which must not be counted: of no request, of one under way, or of one reported
 * before. */
static struct event stray(const struct batch *batch, unsigned number) {
    if (number % 3 == 0)
        return (struct event){.cookie = (void *)UINTPTR_MAX, .status = COMPLETE};
    if (number % 3 == 1 && batch->count > 0)
        return (struct event){.cookie = batch->requests[0].cookie, .status = PENDING};
    return batch->told;
}

EXPORT struct answer cuFileBatchIOGetStatus(void *handle, unsigned least, unsigned *count,
                                            struct event *events, struct timespec *timeout);
struct answer cuFileBatchIOGetStatus(void *handle, unsigned least, unsigned *count,
                                     struct event *events, struct timespec *timeout) {
    struct batch *batch = handle;
    unsigned number = atomic_fetch_add(&fake.waits, 1), most = *count;
    expect(batch->is_open && least <= most && most > 0 && most <= batch->capacity && timeout);
    expect_context();
    if (number == 0)
        atomic_store(&fake.submitted_before_wait, atomic_load(&fake.submitted));
    *count = 0;
    if (number + 1 == fake.status_fails_at)
        return answer(5030);
    if (number + 1 == fake.status_lies_at) {
        *count = most + 1;
        return answer(0);
    }
    if (number < fake.late)
        return answer(0);
    if (fake.has_strays && number % 2 == 0) {
        events[(*count)++] = stray(batch, number / 2);
        return answer(0);
    }
    if (fake.piece && fake.piece < most)
        most = fake.piece;
    *count = end_some(batch, most, events);
    return answer(0);
}

EXPORT struct answer cuFileBatchIOCancel(void *handle);
struct answer cuFileBatchIOCancel(void *handle) {
    struct batch *batch = handle;
    expect(batch->is_open);
    atomic_fetch_add(&fake.cancels, 1);
    batch->is_cancelled = !fake.ignores_cancel;
    return answer(fake.ignores_cancel ? 5030 : 0);
}

EXPORT void cuFileBatchIODestroy(void *handle);
void cuFileBatchIODestroy(void *handle) {
    struct batch *batch = handle;
    expect(batch->is_open);
    atomic_fetch_add(&fake.closed_under_way, batch->count);
    batch->is_open = false;
    atomic_fetch_sub(&fake.batches, 1);
}

#endif
