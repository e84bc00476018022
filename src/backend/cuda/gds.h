/*
 * GPUDirect Storage: takes the places of stored bytes in files, hands on the bytes in memory of the
 * device, without a stop in memory of the host. NVIDIA's cuFile does it, a library that is loaded
 * when it is first asked for; the environment may name another file to load: COGPU_CUFILE.
 *
 * Two steps, by whoever owns the device's memory:
 *
 *     plan      spans become reads, whose bytes stand one after the other in one piece of memory,
 *               and a guard compares its size with what is allowed. Arithmetic only.
 *     fetch     all reads are submitted, then all are waited for
 *
 * Nothing here is in the order of a stream: the device must be through with the memory before a
 * fetch, and when fetch returns the bytes are there.
 */
#ifndef COGPU_BACKEND_CUDA_GDS_H
#define COGPU_BACKEND_CUDA_GDS_H

#include "base/pool.h"
#include "image/image.h"

#include <stdbool.h>

/* Why cuFile cannot be used, or NULL. The text stays. */
const char *cogpu_gds_absent(void);

/* Whether bytes go straight to the device. Without NVIDIA's driver for it (nvidia-fs) cuFile works
 * too, but takes them through memory of the host, which gains nothing. */
bool cogpu_gds_is_direct(void);

/* ---- plan ---------------------------------------------------------------------------------- */

/* Reads begin and end at multiples of this in the file (or with it), and begin at multiples of it
 * in memory: cuFile takes a detour otherwise. So the memory has to begin at one, too. */
enum { COGPU_GDS_PAGE = 4096 };

typedef struct cogpu_gds_file cogpu_gds_file;

typedef enum cogpu_gds_state {
    COGPU_GDS_NEW,
    COGPU_GDS_UNDER_WAY,
    COGPU_GDS_DONE, /* all bytes are there */
    COGPU_GDS_BAD   /* it failed or came short: the caller gets these bytes in another way */
} cogpu_gds_state;

typedef struct cogpu_gds_read {
    const cogpu_gds_file *file;
    uint64_t file_offset, bytes;
    uint64_t device_offset;
    cogpu_gds_state state; /* after a fetch: DONE or BAD */
} cogpu_gds_read;

typedef struct cogpu_gds_plan {
    cogpu_gds_read *reads; /* the caller's, with room for as many as there are spans */
    uint32_t read_count;
    uint64_t bytes; /* of memory on the device, for all reads */
} cogpu_gds_plan;

/* Where a span's bytes are found. */
typedef struct cogpu_gds_place {
    uint64_t device_offset;
    uint32_t read; /* that brings them, or COGPU_GDS_NO_READ */
} cogpu_gds_place;

#define COGPU_GDS_NO_READ UINT32_MAX

/* Takes a span into the plan if this then needs no more than `allowed` bytes; otherwise it is false
 * and the plan stays as it is. Neighbours in the file share a read, gaps included where they are
 * small. No read is made for a span of 0 bytes and for one that is not inside its file. */
bool cogpu_gds_plan_add(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        cogpu_span span, uint64_t allowed, cogpu_gds_place *place);

/* ---- fetch --------------------------------------------------------------------------------- */

/* cuFile wants the device's context current on each thread that calls it: `enter` does that, and
 * `leave` undoes it. */
typedef struct cogpu_gds_context {
    bool (*enter)(void *user);
    void (*leave)(void *user);
    void *user;
} cogpu_gds_context;

/* A regular file, by a descriptor that the caller may close at once. */
cogpu_status cogpu_gds_file_open(int descriptor, cogpu_gds_file **file, cogpu_error *error);
void cogpu_gds_file_close(cogpu_gds_file *file);
uint64_t cogpu_gds_file_bytes(const cogpu_gds_file *file);

/* Memory of the device that many fetches will fill: once, after it is allocated, and before it is
 * released. Where this fails a fetch works all the same, by way of memory that cuFile has. */
cogpu_status cogpu_gds_register(const cogpu_gds_context *context, void *memory, uint64_t bytes,
                                cogpu_error *error);
void cogpu_gds_deregister(const cogpu_gds_context *context, void *memory);

typedef struct cogpu_gds_work {
    void *memory; /* on the device */
    uint64_t memory_bytes;
    cogpu_gds_read *reads;
    uint32_t count;
    const cogpu_gds_context *context; /* may be NULL: nothing to do */
    cogpu_pool *pool;                 /* for what cuFile takes in no batch; may be NULL */
    uint32_t seats;
    double patience; /* seconds in which some read has to end, lest all are given up; 0 = 60 */
} cogpu_gds_work;

/* Submits all reads, then waits for all, and counts those that are BAD. COGPU_DEVICE: some would
 * not end, not even when told to, and may still write into the memory. */
cogpu_status cogpu_gds_fetch(const cogpu_gds_work *work, uint32_t *bad, cogpu_error *error);

#endif
