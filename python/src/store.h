/*
 * Memory of pixels, counted, without Python objects of its own: tensors that others hold may be the
 * last to let go of it, on any thread and after the interpreter's end.
 */
#ifndef COGPU_PYTHON_STORE_H
#define COGPU_PYTHON_STORE_H

#include "handle.h"
#include "raster.h"

#include <pthread.h>
#include <stdatomic.h>

struct store {
    atomic_size_t users;
    struct engine *engine; /* that the memory came from, or that a read goes on with; may be NULL */
    void *memory;          /* our own, or NULL */
    cogpu_device_kind device;
    uint32_t device_index;
    struct taken taken; /* others' memory */

    /* The read that fills it. While it goes on, the library looks at `bands` and `file`. */
    pthread_mutex_t lock; /* of those who wait; each field below is the reader's before */
    _Atomic(cogpu_pending *) pending; /* atomic: a check need not wait for it */
    bool was_pending;
    struct handle *file;
    uint32_t *bands;
    cogpu_status status;
    cogpu_result result;
    cogpu_error error;
};

/* Host or device memory, 256-byte aligned. These three return NULL with an exception.
 */
struct store *store_of_bytes(size_t bytes, cogpu_device_kind device, uint32_t index);
/* Packed memory for a raster whose type, size and device are set; sets its data. */
struct store *store_new(cogpu_raster *raster);
/* A store over memory of others, which it takes over from *taken, also on failure. */
struct store *store_over(struct taken *taken);
struct store *store_share(struct store *store);
/* Whether this process has had memory of an emulated GPU, which looks like host memory. */
bool store_has_emulated(void);
/* Waits for a pending read first. NULL is allowed. For callers without the GIL, or that do not know
 * whether they have it: deleters of tensors. */
void store_drop(struct store *store);
/* The same for callers with the GIL. It is released meanwhile: freeing device memory waits for the
 * device, which may be at work for other threads. */
void store_drop_with_gil(struct store *store);

/* Waits for a pending read, without the GIL; its outcome is in status, result and error then. */
void store_finish_read(struct store *store);

#endif
