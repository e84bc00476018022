/*
 * The heads of the files on the network that were opened last: so that opening one again asks
 * nobody.
 *
 * A head is good for a while only. That it belongs to the file as it is now is checked by all reads
 * that follow, which ask for the version that the head is of; one that fails drops the head, so
 * that the next to open the file meets it anew. So heads are kept only of files that can be asked
 * for a version, by a strong ETag, and that have more than the head. Any thread may call these.
 */
#ifndef COGPU_IO_HEADS_H
#define COGPU_IO_HEADS_H

#include "io/answer.h"

enum { COGPU_HEADS_MOST = 64, COGPU_HEADS_BYTES = 2 << 20 };

typedef struct cogpu_heads cogpu_heads;

typedef struct cogpu_head {
    uint8_t *data;
    size_t bytes;
    uint64_t size; /* of the file */
    char etag[COGPU_ETAG_BYTES];
    char modified[COGPU_MODIFIED_BYTES];
} cogpu_head;

/* Each is good for so many seconds; none where that is negative. NULL when there is no memory. */
cogpu_heads *cogpu_heads_open(double seconds);
void cogpu_heads_close(cogpu_heads *heads); /* NULL is allowed */

/* `name` is the URL, a line break, and for whom it is asked, secrets among it: they are wiped when
 * they go. Times are seconds of a clock that never goes back. */
void cogpu_heads_keep(cogpu_heads *heads, const char *name, double now, const cogpu_head *head);
/* The data is a copy of the caller's own. False where there is none. */
bool cogpu_heads_find(cogpu_heads *heads, const char *name, double now, cogpu_head *head);
void cogpu_heads_drop(cogpu_heads *heads, const char *name);
/* Whoever asked: the file has changed. */
void cogpu_heads_drop_url(cogpu_heads *heads, const char *url);

#endif
