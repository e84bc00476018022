/*
 * GPUDirect Storage: takes places in files and in memory of the device, moves the bytes from one to
 * the other without a stop in memory of the host. NVIDIA's cuFile does it, a library that is loaded
 * when it is first asked for; the environment may name another file to load: COGPU_CUFILE.
 *
 * Reading takes two steps, by whoever owns the device's memory:
 *
 *     plan      spans become reads, whose bytes stand one after the other in one piece of memory,
 *               and a guard compares its size with what is allowed. Arithmetic only.
 *     fetch     all reads are submitted, then all are waited for
 *
 * Writing takes three, so that the next bytes can be made meanwhile:
 *
 *     plan      bytes side by side become writes of whole pages, and what is left of them at both
 *               ends, which goes by way of the host. Arithmetic only.
 *     write     all writes are submitted
 *     wait      all are waited for
 *
 * Nothing here is in the order of a stream: the device must be through with the memory before a
 * fetch or a write; when fetch returns the bytes are there, and until wait returns the memory must
 * not change.
 */
#ifndef COGPU_BACKEND_CUDA_GDS_H
#define COGPU_BACKEND_CUDA_GDS_H

#include "backend/cuda/gpu.h"
#include "base/pool.h"
#include "image/image.h"

#include <stdbool.h>

/* Why cuFile cannot be used, or NULL. The text stays. */
const char *cogpu_gds_absent(void);

/* Whether bytes go straight to the device. Without NVIDIA's driver for it (nvidia-fs) cuFile works
 * too, but takes them through memory of the host, which gains nothing. */
bool cogpu_gds_is_direct(void);
/* The same for a device. cuFile knows nothing of an emulated one, unless a stand-in for it was
 * named. */
bool cogpu_gds_serves(const cogpu_gpu *gpu);

/* ---- plan ---------------------------------------------------------------------------------- */

/* Reads and writes begin and end at multiples of this in the file (reads also with it), and begin
 * at multiples of it in memory: cuFile takes a detour otherwise. So the memory has to begin at one,
 * too. */
enum { COGPU_GDS_PAGE = 4096 };

typedef struct cogpu_gds_file cogpu_gds_file;

typedef enum cogpu_gds_state {
    COGPU_GDS_NEW,
    COGPU_GDS_UNDER_WAY,
    COGPU_GDS_DONE, /* all bytes are there */
    COGPU_GDS_BAD   /* it failed or came short: the caller moves these bytes in another way */
} cogpu_gds_state;

/* A read, or a write. */
typedef struct cogpu_gds_piece {
    const cogpu_gds_file *file;
    uint64_t file_offset, bytes;
    uint64_t device_offset;
    cogpu_gds_state state; /* after a fetch or a wait: DONE or BAD */
} cogpu_gds_piece;

typedef struct cogpu_gds_plan {
    cogpu_gds_piece *reads; /* the caller's, with room for as many as there are spans */
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

/* The way that bytes take to a file.
 *
 * A page goes by cuFile only where all of it is this span's. The bytes before and behind, less than
 * a page each, share theirs with what others write; so do all bytes of a span without a whole page.
 * They go by way of the host, with everything else that is small. So no page is ever written both
 * ways, by the page cache and past it, and the order of the two does not matter: neither can put
 * old bytes over new ones, and no flush is needed between them. What comes out BAD goes by way of
 * the host after the wait, when nothing is under way any more. Committing the sink flushes the file
 * as a whole. */
typedef struct cogpu_gds_way {
    uint64_t head, tail; /* bytes by way of the host, at the span's beginning and end */
    uint32_t count;      /* of writes, for what lies between */
} cogpu_gds_way;

/* Writes that a span of so many bytes can need. */
enum { COGPU_GDS_WRITE_BYTES = 4 << 20 };
#define COGPU_GDS_WRITES(bytes) ((bytes) / COGPU_GDS_WRITE_BYTES + 1)

/* The span's bytes stand side by side from `device_offset` on, which should be as far behind a
 * multiple of COGPU_GDS_PAGE as the span is in the file: else cuFile takes a detour for all. */
cogpu_gds_way cogpu_gds_plan_writes(const cogpu_gds_file *file, cogpu_span span,
                                    uint64_t device_offset, cogpu_gds_piece *writes);

/* ---- fetch, write and wait ----------------------------------------------------------------- */

/* cuFile wants the device's context current on each thread that calls it: `enter` does that, and
 * `leave` undoes it. */
typedef struct cogpu_gds_context {
    bool (*enter)(void *user);
    void (*leave)(void *user);
    void *user;
} cogpu_gds_context;
cogpu_gds_context cogpu_gds_context_of(cogpu_gpu *gpu);

/* A regular file, by a descriptor that the caller may close at once. It can be written to if the
 * descriptor can. */
cogpu_status cogpu_gds_file_open(int descriptor, cogpu_gds_file **file, cogpu_error *error);
void cogpu_gds_file_close(cogpu_gds_file *file);
uint64_t cogpu_gds_file_bytes(const cogpu_gds_file *file);

/* Memory of the device that many reads will fill or writes will empty: once, after it is allocated,
 * and before it is released. Where this fails all works all the same, by way of memory that cuFile
 * has. */
cogpu_status cogpu_gds_register(const cogpu_gds_context *context, void *memory, uint64_t bytes,
                                cogpu_error *error);
void cogpu_gds_deregister(const cogpu_gds_context *context, void *memory);

typedef struct cogpu_gds_work {
    void *memory; /* on the device */
    uint64_t memory_bytes;
    cogpu_gds_piece *pieces;
    uint32_t count;
    const cogpu_gds_context *context; /* may be NULL: nothing to do */
    cogpu_pool *pool;                 /* for what cuFile takes in no batch; may be NULL */
    uint32_t seats;
    double patience; /* seconds in which some piece has to end, lest all are given up; 0 = 60 */
} cogpu_gds_work;

/* Submits all reads, then waits for all, and counts those that are BAD. COGPU_DEVICE: some would
 * not end, not even when told to, and may still write into the memory. */
cogpu_status cogpu_gds_fetch(const cogpu_gds_work *work, uint32_t *bad, cogpu_error *error);

/* Submits all writes; those that cuFile takes in no batch end before it returns. Pieces, context
 * and memory have to stay until the wait, which must follow; several works may be under way. Where
 * this fails nothing was submitted, and there is no flight. */
typedef struct cogpu_gds_flight cogpu_gds_flight;
cogpu_status cogpu_gds_write(const cogpu_gds_work *work, cogpu_gds_flight **flight,
                             cogpu_error *error);

/* Waits for all, counts those that are BAD, and frees the flight, whatever it returns.
 * COGPU_DEVICE: some would not end, and may still read the memory and write to the file, which can
 * only be given up. NULL is allowed: nothing to wait for. */
cogpu_status cogpu_gds_wait(cogpu_gds_flight *flight, uint32_t *bad, cogpu_error *error);

#endif
