/*
 * The part of NVIDIA's cuFile that is used: types, constants and functions of its interface. It is
 * loaded at the first use and never linked. The environment variable COGPU_CUFILE names another
 * file to load.
 *
 * All calls need the device's context to be current.
 */
#ifndef COGPU_GPU_DRIVER_CUFILE_LIBRARY_H
#define COGPU_GPU_DRIVER_CUFILE_LIBRARY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

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
    size_t poll_bytes, direct_io_bytes;
    unsigned supported, control, features;
    unsigned cache_kib, cache_of_memory_kib, pinned_kib;
    unsigned batch_entries, batch_milliseconds;
    unsigned reserved[64]; /* fields of newer versions */
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
enum { CUFILE_PEER_TO_PEER = 1 << 11 }; /* direct, without nvidia-fs */
enum { CUFILE_BATCH_ENTRIES = 128 };    /* default of a batch */

/* X(result, field, name in the library, arguments) */
#define COGPU_CUFILE_CALLS(X)                                                                      \
    X(struct cufile_error, driver_open, "cuFileDriverOpen", (void))                                \
    X(struct cufile_error, properties, "cuFileDriverGetProperties", (struct cufile_properties *))  \
    X(struct cufile_error, file_register, "cuFileHandleRegister",                                  \
      (void **, struct cufile_descriptor *))                                                       \
    X(void, file_deregister, "cuFileHandleDeregister", (void *))                                   \
    X(struct cufile_error, memory_register, "cuFileBufRegister", (const void *, size_t, int))      \
    X(struct cufile_error, memory_deregister, "cuFileBufDeregister", (const void *))               \
    X(ssize_t, read, "cuFileRead", (void *, void *, size_t, off_t, off_t))                         \
    X(ssize_t, write, "cuFileWrite", (void *, const void *, size_t, off_t, off_t))
#define COGPU_CUFILE_BATCH_CALLS(X)                                                                \
    X(struct cufile_error, batch_open, "cuFileBatchIOSetUp", (void **, unsigned))                  \
    X(struct cufile_error, batch_submit, "cuFileBatchIOSubmit",                                    \
      (void *, unsigned, struct cufile_request *, unsigned))                                       \
    X(struct cufile_error, batch_events, "cuFileBatchIOGetStatus",                                 \
      (void *, unsigned, unsigned *, struct cufile_event *, struct timespec *))                    \
    X(struct cufile_error, batch_cancel, "cuFileBatchIOCancel", (void *))                          \
    X(void, batch_close, "cuFileBatchIODestroy", (void *))

#define COGPU_CUFILE_FIELD(result, field, name, arguments) result(*field) arguments;
typedef struct cogpu_cufile_library {
    const char *why;             /* it cannot be used; NULL if it can */
    bool is_direct, has_batches; /* bytes bypass host memory; it is new enough for batches */
    uint32_t batch_entries;      /* most requests of a batch */
    COGPU_CUFILE_CALLS(COGPU_CUFILE_FIELD)
    COGPU_CUFILE_BATCH_CALLS(COGPU_CUFILE_FIELD)
} cogpu_cufile_library;

const cogpu_cufile_library *cogpu_cufile_load(void);

/* Whether COGPU_CUFILE names a file to load in its place. */
bool cogpu_cufile_is_replaced(void);

#endif
