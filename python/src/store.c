/*
 * Reference-counted memory of rasters, which is freed without Python.
 */
#include "store.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGNMENT = 256, HUGE_PAGE = 2 << 20 };

/* Rasters of many pages are filled and read faster in huge ones. */
static void *allocate_host(size_t bytes) {
    void *memory = NULL;
    bool is_large = bytes >= 2 * (size_t)HUGE_PAGE;
    if (posix_memalign(&memory, is_large ? HUGE_PAGE : ALIGNMENT, bytes ? bytes : 1) != 0)
        return NULL;
    if (is_large)
        madvise(memory, bytes, MADV_HUGEPAGE); /* advice, which may be declined */
    return memory;
}

static atomic_bool has_emulated;

bool store_has_emulated(void) {
    return has_emulated;
}

static struct store *make_store(void) {
    struct store *made = calloc(1, sizeof *made);
    if (!made)
        return (void *)PyErr_NoMemory();
    made->users = 1;
    made->result = (cogpu_result)COGPU_RESULT_INIT;
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

static bool allocate_store(struct store *store, size_t bytes) {
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    if (store->device != COGPU_DEVICE_CPU && !(store->engine = engine_take()))
        return false;
    if (store->device == COGPU_DEVICE_EMULATOR)
        has_emulated = true;
    Py_BEGIN_ALLOW_THREADS
        if (store->device == COGPU_DEVICE_CPU)
            store->memory = allocate_host(bytes);
        else
            status = cogpu_device_allocate(engine_context(store->engine), store->device,
                                           store->device_index, bytes, &store->memory, &error);
    Py_END_ALLOW_THREADS
    if (status != COGPU_OK)
        return raise_error(&error);
    return store->memory ||
           raise_status(COGPU_OUT_OF_MEMORY, "no memory for an array of %zu bytes", bytes);
}

/* False where no memory holds it. */
static bool checked_raster_bytes(const cogpu_raster *raster, size_t *bytes) {
    return !__builtin_mul_overflow((size_t)raster->bands, (size_t)raster->height, bytes) &&
           !__builtin_mul_overflow(*bytes, (size_t)raster->width, bytes) &&
           !__builtin_mul_overflow(*bytes, cogpu_type_bytes(raster->type), bytes) &&
           *bytes <= PTRDIFF_MAX;
}

struct store *store_of_bytes(size_t bytes, cogpu_device_kind device, uint32_t index) {
    struct store *made = make_store();
    if (!made)
        return NULL;
    made->device = device;
    made->device_index = index;
    if (allocate_store(made, bytes))
        return made;
    store_drop_with_gil(made);
    return NULL;
}

struct store *store_new(cogpu_raster *raster) {
    size_t bytes;
    if (!checked_raster_bytes(raster, &bytes))
        return (void *)raise_status(COGPU_OUT_OF_MEMORY, "no memory holds an array of %u x %u x %u",
                                    raster->bands, raster->height, raster->width);
    struct store *made = store_of_bytes(bytes, raster->device, raster->device_index);
    if (made)
        raster->data = made->memory;
    return made;
}

struct store *store_over(struct taken *taken) {
    struct store *made = make_store();
    if (!made) {
        raster_drop(taken);
        return NULL;
    }
    made->taken = *taken;
    *taken = (struct taken){0};
    return made;
}

struct store *store_share(struct store *store) {
    atomic_fetch_add(&store->users, 1);
    return store;
}

void store_finish_read(struct store *store) {
    pthread_mutex_lock(&store->lock);
    cogpu_pending *pending = store->pending;
    if (pending && !engine_is_forgotten(store->engine))
        store->status = cogpu_wait(pending, &store->result, &store->error);
    store->pending = NULL;
    pthread_mutex_unlock(&store->lock);
}

static void release_memory(struct store *store) {
    if (store->device == COGPU_DEVICE_CPU)
        free(store->memory);
    else if (store->memory && !engine_is_forgotten(store->engine))
        cogpu_device_free(engine_context(store->engine), store->device, store->device_index,
                          store->memory);
}

static void destroy(struct store *store) {
    store_finish_read(store);
    release_memory(store);
    raster_drop(&store->taken);
    handle_drop(store->file);
    engine_drop(store->engine);
    pthread_mutex_destroy(&store->lock);
    free(store->bands);
    free(store);
}

static bool is_last_user(struct store *store) {
    return store && atomic_fetch_sub(&store->users, 1) == 1;
}

void store_drop(struct store *store) {
    if (is_last_user(store))
        destroy(store);
}

void store_drop_with_gil(struct store *store) {
    if (!is_last_user(store))
        return;
    Py_BEGIN_ALLOW_THREADS
        destroy(store);
    Py_END_ALLOW_THREADS
}
