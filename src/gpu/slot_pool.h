/*
 * Slots and buffers that all reads of a device share. A slot is pinned host memory, events and the
 * lists of a batch; a buffer is device memory and a stream. They are opened on demand, in the sizes
 * that reads need, and kept for the next read.
 *
 * A read gets them in two steps. A claim marks entries of the pool as taken, with the lock held;
 * opening the claim then allocates what is not open yet, without the lock.
 *
 * One lock guards what is free and what is taken. It is never held over a call of the driver:
 * memory is opened and closed after its entry is marked as taken.
 */
#ifndef COGPU_GPU_SLOT_POOL_H
#define COGPU_GPU_SLOT_POOL_H

#include "gpu/read_batch.h"

#include <pthread.h>

/* Maximum for one read. With 7 buffers the oldest batch is done when the youngest is fetched. There
 * are more slots than buffers, so that the bytes of a batch are there when a buffer becomes free.
 */
enum { COGPU_READ_BUFFERS = 7, COGPU_READ_SLOTS = 10 };
/* Maximum of slots, and of buffers, for all reads together. */
enum { COGPU_POOL_ENTRIES = 32 };
/* Smallest sizes; larger ones are these times a power of two. */
enum { COGPU_BUFFER_LEAST_BYTES = 4 << 20, COGPU_PINNED_LEAST_BYTES = 1 << 20 };

/* Memory of one kind, pinned or device: an entry for each slot or buffer. */
struct cogpu_memory_list {
    struct {
        bool is_taken;
        uint64_t bytes; /* 0: not open */
    } entries[COGPU_POOL_ENTRIES];
    uint64_t bytes, limit; /* of all entries */
};

struct cogpu_slot_pool {
    cogpu_gpu *gpu;
    pthread_mutex_t lock;   /* guards all below, but not the contents of taken slots and buffers */
    pthread_cond_t changed; /* something was released, or a read was parked */
    struct cogpu_memory_list pinned, device;
    struct cogpu_slot slots[COGPU_POOL_ENTRIES];
    struct cogpu_device_buffer buffers[COGPU_POOL_ENTRIES];
    uint64_t next_ticket, serving; /* reads wait in line for their first slot: ticket lock */
    struct cogpu_read_run *parked; /* started and not finished, oldest first */
    _Atomic uint32_t active_reads; /* between start and finish, without the parked ones */
    uint32_t fetching_reads;
};

/* Bytes that a read wants in each of its slots. */
struct cogpu_slot_sizes {
    uint64_t pinned, device;
};

/* `wanted`, rounded up to `least` times a power of two, but at most `most`. The next read, which
 * may need a little more, then finds memory that is large enough. */
uint64_t cogpu_slot_pool_size(uint64_t wanted, uint64_t least, uint64_t most);

#define COGPU_NO_ENTRY UINT32_MAX

/* The entry that a claim chose, and the entries that must be closed to stay within the limit. */
struct cogpu_memory_claim {
    uint32_t entry;        /* or COGPU_NO_ENTRY */
    bool is_new;           /* to be opened; memory that it had before is closed */
    uint64_t former_bytes; /* of that memory */
    uint32_t evicted;      /* entries to close, one bit each */
};

struct cogpu_slot_claim {
    struct cogpu_memory_claim slot, buffer;
};

/* What a claim consists of: slot and buffer; the buffer if there is one; the slot alone. */
enum cogpu_claim_kind { COGPU_CLAIM_BOTH, COGPU_CLAIM_BOTH_OR_SLOT, COGPU_CLAIM_SLOT };

void cogpu_slot_pool_init(struct cogpu_slot_pool *pool, cogpu_gpu *gpu, uint64_t device_limit);
/* No slot and no buffer may be taken. */
void cogpu_slot_pool_close(struct cogpu_slot_pool *pool);
/* Releases all memory unless something is taken. */
void cogpu_slot_pool_trim(struct cogpu_slot_pool *pool);

/* Marks a free slot, and a buffer, as taken. With the lock held. */
bool cogpu_slot_pool_claim(struct cogpu_slot_pool *pool, const struct cogpu_slot_sizes *sizes,
                           enum cogpu_claim_kind kind, struct cogpu_slot_claim *claim);
/* Opens what was claimed and is not open yet. If that fails the claim is released. The lock must
 * not be held. */
cogpu_status cogpu_slot_pool_open_claim(struct cogpu_slot_pool *pool,
                                        const struct cogpu_slot_sizes *sizes,
                                        const struct cogpu_slot_claim *claim,
                                        struct cogpu_slot **slot, cogpu_error *error);
/* Either may be NULL. */
void cogpu_slot_pool_release(struct cogpu_slot_pool *pool, const struct cogpu_slot *slot,
                             const struct cogpu_device_buffer *buffer);

#endif
