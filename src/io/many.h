/*
 * Takes what will be read of a user's source that can be asked for many ranges at once, hands on
 * the bytes as they are read.
 *
 * Neighbours share a range (merge.h). Whoever first reads what has not been asked for asks for it
 * and for what comes after it, as a group, in one call; others wait for that. Where there is no
 * room, or a group failed, a read asks for itself: so each block has a verdict of its own.
 */
#ifndef COGPU_IO_MANY_H
#define COGPU_IO_MANY_H

#include "io/merge.h"

typedef struct cogpu_many cogpu_many;

enum {
    COGPU_GROUP_BYTES = 16 << 20, /* that one call asks for, unless one range alone is longer */
    COGPU_MANY_BYTES = 32 << 20   /* that are held for readers */
};

/* Of a source of so many bytes. NULL when there is no memory. */
cogpu_many *cogpu_many_open(const cogpu_source *source, uint64_t bytes);
void cogpu_many_close(cogpu_many *many); /* NULL is allowed */

/* The source's own status where it fails. Any thread, as the others. */
cogpu_status cogpu_many_read(cogpu_many *many, uint64_t offset, size_t bytes, void *to);

/* See cogpu_io_expect. */
uint64_t cogpu_many_expect(cogpu_many *many, const cogpu_span_of_source *spans, uint32_t count);
void cogpu_many_forget(cogpu_many *many, uint64_t ticket);

#endif
