/*
 * Resources that several calls share: threads, workers, block cache, devices, HTTP connections,
 * PROJ database. All functions here may be called from any thread.
 */
#ifndef COGPU_CONTEXT_CONTEXT_H
#define COGPU_CONTEXT_CONTEXT_H

#include "base/pool.h"
#include "cpu/block_cache.h"
#include "cpu/cpu.h"
#include "gpu/read_pipeline.h"
#include "gpu/write_pipeline.h"
#include "grid/transformer.h"

#include <pthread.h>

/* Memory of calls, kept for the next ones: one of any size, and as many small ones as threads may
 * use at a time. */
enum { COGPU_KEPT_MEMORIES = 9, COGPU_KEPT_SMALL_BYTES = 16 << 20 };

/* A device that a context has opened. */
typedef struct cogpu_opened_device {
    struct cogpu_opened_device *next;
    cogpu_device_kind kind;
    uint32_t index;
    cogpu_gpu_device *device;
    cogpu_gpu_memory kept[COGPU_KEPT_MEMORIES]; /* the first one may be large */
} cogpu_opened_device;

struct cogpu_context {
    cogpu_pool *pool;
    cogpu_block_cache *cache; /* NULL if it has no bytes */
    bool caches_all_blocks;   /* the caller chose its bytes; else those that reads need in part */
    uint64_t device_bytes, device_cache_bytes;
    bool use_nvjpeg_hardware;
    pthread_mutex_t lock;  /* of what follows */
    cogpu_worker *workers; /* free ones */
    cogpu_opened_device *devices;
    cogpu_crs_database *crs_database; /* NULL while none is open, or a call uses it */
    cogpu_network network;            /* its strings are in the arena */
    cogpu_http *http;                 /* NULL until a URL is opened */
    cogpu_operations *operations;     /* NULL until a mosaic is opened */
    cogpu_arena arena;
};

cogpu_status cogpu_context_create(const cogpu_context_options *options, cogpu_context **context,
                                  cogpu_error *error);
/* NULL is allowed. */
void cogpu_context_destroy(cogpu_context *context);

/* Scratch memory for one thread. Without a context it is made for the call. NULL if there is no
 * memory. */
cogpu_worker *cogpu_context_take_worker(cogpu_context *context);
void cogpu_context_return_worker(cogpu_context *context, cogpu_worker *worker);

/* The PROJ database that the last call used, or NULL. It is kept when it is returned, and closed if
 * there is no context or another one was returned meanwhile. */
cogpu_crs_database *cogpu_context_take_crs_database(cogpu_context *context);
void cogpu_context_return_crs_database(cogpu_context *context, cogpu_crs_database *database);

/* The HTTP connections, opened at the first call; NULL without a context. */
cogpu_status cogpu_context_http(cogpu_context *context, cogpu_http **http, cogpu_error *error);
/* The coordinate operations, which take PROJ long to create; NULL without a context. */
cogpu_status cogpu_context_operations(cogpu_context *context, cogpu_operations **operations,
                                      cogpu_error *error);

/* ---- devices.c ---- */

/* The device of a raster, opened at the first call. */
cogpu_status cogpu_context_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                  cogpu_gpu_device **device, cogpu_error *error);
void cogpu_context_close_devices(cogpu_context *context);
/* The largest memory that a call kept, or none. It is kept again, or released if as much is kept
 * already. */
cogpu_gpu_memory cogpu_context_take_memory(cogpu_context *context, const cogpu_gpu_device *device);
void cogpu_context_keep_memory(cogpu_context *context, cogpu_gpu_device *device,
                               cogpu_gpu_memory *memory);
/* Kept memory that is large enough, or new memory. To be kept even after a failure. */
cogpu_status cogpu_context_reserve_memory(cogpu_context *context, cogpu_gpu_device *device,
                                          uint64_t device_bytes, uint64_t pinned_bytes,
                                          cogpu_gpu_memory *memory, cogpu_error *error);

/* Devices of this machine: the CPU, then GPUs, then emulated GPUs. ABSENT after the last. */
cogpu_status cogpu_devices_describe(uint32_t index, cogpu_device *info);
/* The calling thread's emulated GPU, by the environment. */
cogpu_status cogpu_devices_current_emulator(uint32_t *index, cogpu_error *error);
/* Whether an emulated GPU of the context owns the memory; if so, which. */
bool cogpu_context_emulator_owns(cogpu_context *context, const void *memory, uint32_t *index);

#endif
