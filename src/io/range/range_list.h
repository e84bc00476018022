/*
 * A list of byte ranges of one source. No lock and no I/O: the range cache adds both.
 *
 * A prefetched range counts the planned bytes that are still unread, and the threads that use
 * it. It is removed once both are 0.
 */
#ifndef COGPU_IO_RANGE_RANGE_LIST_H
#define COGPU_IO_RANGE_RANGE_LIST_H

#include "io/range/coalesce.h"

typedef enum cogpu_range_state {
    COGPU_RANGE_PLANNED,  /* not requested yet */
    COGPU_RANGE_LOADING,  /* a thread loads it, and signals the end */
    COGPU_RANGE_ARRIVING, /* requested asynchronously: cogpu_range_loader.wait waits for bytes */
    COGPU_RANGE_LOADED,
    COGPU_RANGE_FAILED
} cogpu_range_state;

/* A loader's own struct may begin with it. */
typedef struct cogpu_range {
    struct cogpu_range *next;
    uint64_t offset;
    size_t bytes;
    uint8_t *data; /* valid once LOADED, or as far as `wait` says; NULL while PLANNED */
    cogpu_range_state state;
    uint32_t users;        /* threads that read or load it */
    uint64_t ticket;       /* of the prefetch that planned it */
    uint64_t unread_bytes; /* planned bytes that are still unread */
    uint64_t used_at;      /* time of the last use, in ticks of the cache: for eviction */
} cogpu_range;

typedef struct cogpu_range_list {
    cogpu_range *first;
    uint64_t tickets; /* given so far */
} cogpu_range_list;

/* Plans the requests for the spans (coalesce.h): a chain of ranges of `range_bytes` bytes each,
 * zeroed. Stops early if memory runs out: spans without a range are read on their own. */
cogpu_range *cogpu_ranges_plan(const cogpu_byte_range *spans, uint32_t count, uint64_t source_bytes,
                               const cogpu_coalesce_limits *limits, size_t range_bytes);
/* Appends a chain, and returns the ticket by which it is removed. */
uint64_t cogpu_range_list_append(cogpu_range_list *list, cogpu_range *chain);

/* The first range that covers all of these bytes, or NULL. */
cogpu_range *cogpu_range_list_find(const cogpu_range_list *list, uint64_t offset, size_t bytes);

/* Unlinks a range. It must be in the list. */
void cogpu_range_list_remove(cogpu_range_list *list, const cogpu_range *range);
/* A user that has read so many bytes is done. True if the range was removed: the caller frees it.
 */
bool cogpu_range_list_end_use(cogpu_range_list *list, cogpu_range *range, size_t bytes_read);
/* The ranges of the ticket will not be read. Returns a chain of those to free now; the others go
 * with their last user. */
cogpu_range *cogpu_range_list_end_ticket(cogpu_range_list *list, uint64_t ticket);

#endif
