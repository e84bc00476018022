/*
 * GPUDirect Storage: copies bytes between files and device memory without a copy in host memory, by
 * NVIDIA's cuFile. The library is loaded at the first use. The environment variable COGPU_CUFILE
 * names another file to load.
 *
 * Reading has two steps:
 *
 *     plan      byte ranges become read requests, one after the other in device memory, within an
 *               allowed size. Arithmetic only.
 *     fetch     submits all requests, then waits for all
 *
 * Writing has three, so that the next bytes can be encoded meanwhile:
 *
 *     plan      contiguous bytes become write requests of whole pages; the bytes before and after
 *               these pages go through host memory. Arithmetic only.
 *     write     submits all requests
 *     wait      waits for all
 *
 * cuFile knows no stream order. The device must be done with the memory before a fetch or a write.
 * When fetch returns the bytes are there; until wait returns the memory must not change.
 */
#ifndef COGPU_GPU_DRIVER_GDS_H
#define COGPU_GPU_DRIVER_GDS_H

#include "base/pool.h"
#include "base/span.h"
#include "gpu/driver/gpu.h"

#include <stdbool.h>

/* Why cuFile cannot be used, or NULL. The text stays valid. */
const char *cogpu_gds_missing_reason(void);

/* Whether bytes go straight to the device. Without its kernel driver (nvidia-fs) cuFile copies them
 * through host memory, which gains nothing. */
bool cogpu_gds_is_direct(void);
/* The same for a device: for an emulated one only if COGPU_CUFILE names a fake. */
bool cogpu_gds_supports(const cogpu_gpu *gpu);

/* ---- plan ---------------------------------------------------------------------------------- */

/* Requests begin and end at multiples of this in the file (reads may also end with the file), and
 * begin at multiples of it in memory: cuFile uses a bounce buffer otherwise. So the memory must
 * begin at one, too. */
enum { COGPU_GDS_PAGE = 4096 };

typedef struct cogpu_gds_file cogpu_gds_file;

typedef enum cogpu_gds_state {
    COGPU_GDS_NEW,
    COGPU_GDS_UNDER_WAY,
    COGPU_GDS_DONE, /* all bytes are there */
    COGPU_GDS_BAD   /* failed or short: the caller copies these bytes in another way */
} cogpu_gds_state;

/* A read or a write. */
typedef struct cogpu_gds_request {
    const cogpu_gds_file *file;
    uint64_t file_offset, bytes;
    uint64_t device_offset;
    cogpu_gds_state state; /* after a fetch or a wait: DONE or BAD */
} cogpu_gds_request;

typedef struct cogpu_gds_plan {
    cogpu_gds_request *reads; /* the caller's array, with an entry for each span */
    uint32_t read_count;
    uint64_t bytes; /* of device memory, for all reads */
} cogpu_gds_plan;

/* Where a span's bytes will be. */
typedef struct cogpu_gds_location {
    uint64_t device_offset;
    uint32_t read; /* index of its request, or COGPU_GDS_NO_READ */
} cogpu_gds_location;

#define COGPU_GDS_NO_READ UINT32_MAX

/* Adds a span to the plan if that then needs no more than `allowed` bytes; otherwise returns false
 * and leaves the plan as it is. Neighbours in the file share a request, small gaps included. An
 * empty span, or one outside of its file, gets no request. */
bool cogpu_gds_plan_add(cogpu_gds_plan *plan, const cogpu_gds_file *file, uint64_t file_bytes,
                        cogpu_span span, uint64_t allowed, cogpu_gds_location *location);

/* How the bytes of a span are written.
 *
 *     | head | whole pages      | tail |
 *       host   cuFile             host
 *
 * cuFile writes only pages that belong to this span alone. Head and tail, less than a page each,
 * share a page with neighbours and go through host memory; so does a span without a whole page. So
 * no page is written both through the page cache and past it, the order of the two does not matter,
 * and no flush is needed between them. Requests that end BAD go through host memory after the wait.
 * Committing the sink flushes the file as a whole. */
typedef struct cogpu_gds_write_split {
    uint64_t head, tail; /* bytes through host memory, at the span's beginning and end */
    uint32_t count;      /* of requests in between */
} cogpu_gds_write_split;

/* Most requests for a span of so many bytes. */
enum { COGPU_GDS_WRITE_BYTES = 4 << 20 };
#define COGPU_GDS_WRITES(bytes) ((bytes) / COGPU_GDS_WRITE_BYTES + 1)

/* The span's bytes begin at `device_offset`, which should be equal to the file offset modulo
 * COGPU_GDS_PAGE: else cuFile uses a bounce buffer for all. */
cogpu_gds_write_split cogpu_gds_plan_writes(const cogpu_gds_file *file, cogpu_span span,
                                            uint64_t device_offset, cogpu_gds_request *writes);

/* ---- fetch, write and wait ----------------------------------------------------------------- */

/* cuFile needs the device's context current on each calling thread: `make_current` does
 * that, `restore_current` restores the former one. */
typedef struct cogpu_gds_context {
    bool (*make_current)(void *user);
    void (*restore_current)(void *user);
    void *user;
} cogpu_gds_context;
cogpu_gds_context cogpu_gds_context_of(cogpu_gpu *gpu);

/* A regular file, by a descriptor that the caller may close at once. Writable if the descriptor
 * is. */
cogpu_status cogpu_gds_file_open(int descriptor, cogpu_gds_file **file, cogpu_error *error);
void cogpu_gds_file_close(cogpu_gds_file *file);
uint64_t cogpu_gds_file_bytes(const cogpu_gds_file *file);

/* Registers device memory that many requests will use, and deregisters it before its release. If
 * this fails cuFile works all the same, through buffers of its own. */
cogpu_status cogpu_gds_register(const cogpu_gds_context *context, void *memory, uint64_t bytes,
                                cogpu_error *error);
void cogpu_gds_deregister(const cogpu_gds_context *context, void *memory);

typedef struct cogpu_gds_work {
    void *memory; /* on the device */
    uint64_t memory_bytes;
    cogpu_gds_request *requests;
    uint32_t count;
    const cogpu_gds_context *context; /* may be NULL: it is current already */
    cogpu_pool *pool;                 /* for requests outside of cuFile's batches; may be NULL */
    uint32_t workers;
    double patience; /* seconds without a completed request until all are cancelled; 0 = 60 */
} cogpu_gds_work;

/* Submits all reads, waits for all, and counts those that are BAD. COGPU_DEVICE_ERROR: some did not
 * end even after a cancel, and may still write into the memory. */
cogpu_status cogpu_gds_fetch(const cogpu_gds_work *work, uint32_t *bad, cogpu_error *error);

/* Submits all writes; those outside of cuFile's batches end before it returns. Requests, context
 * and memory must stay until the wait, which must follow. Several may be in flight. If this fails
 * nothing was submitted, and there is nothing to wait for. */
typedef struct cogpu_gds_flight cogpu_gds_flight;
cogpu_status cogpu_gds_write(const cogpu_gds_work *work, cogpu_gds_flight **flight,
                             cogpu_error *error);

/* Waits for all, counts those that are BAD, and frees the flight in any case. COGPU_DEVICE_ERROR:
 * some did not end, and may still read the memory and write to the file, which must be abandoned.
 * NULL is allowed. */
cogpu_status cogpu_gds_wait(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error);

#endif
