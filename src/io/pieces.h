/*
 * Ranges of a source on a network that will be read, in the order in which they are wanted: takes
 * spans, merges neighbours (merge.h), and says which range a read finds its bytes in, and when
 * nobody needs a range any more. Who asks for them, and when, is the matter of whoever has the
 * list; it has a lock for it too.
 */
#ifndef COGPU_IO_PIECES_H
#define COGPU_IO_PIECES_H

#include "io/merge.h"

#include <stdbool.h>

/* The head of what the list's owner knows of a range. */
typedef struct cogpu_piece {
    struct cogpu_piece *next;
    uint64_t ticket, offset;
    uint64_t left; /* bytes of it that nobody has read yet */
    size_t bytes;
    uint8_t *data; /* the owner's; NULL while it is not asked for */
    uint32_t users;
} cogpu_piece;

typedef struct cogpu_pieces {
    cogpu_piece *first;
    uint64_t tickets;
} cogpu_pieces;

/* Those of the spans, of a source of `source_bytes`, each `piece_bytes` long with what the owner
 * has there, all 0: as many as there is memory for. Needs no lock. */
cogpu_piece *cogpu_pieces_make(const cogpu_span_of_source *spans, uint32_t count,
                               uint64_t source_bytes, const cogpu_merge_caps *caps,
                               size_t piece_bytes);
/* Puts them behind the others; the ticket that they have from then on. */
uint64_t cogpu_pieces_add(cogpu_pieces *pieces, cogpu_piece *made);

/* NULL without one. */
cogpu_piece *cogpu_pieces_find(const cogpu_pieces *pieces, uint64_t offset, size_t bytes);

/* A user goes, who has read so many bytes. True where nobody needs the piece any more: it is out of
 * the list, and to be freed. */
bool cogpu_pieces_leave(cogpu_pieces *pieces, cogpu_piece *piece, size_t bytes);

/* Nobody will come for those of the ticket: a list of those to be freed; others go with their last
 * user. */
cogpu_piece *cogpu_pieces_forget(cogpu_pieces *pieces, uint64_t ticket);

#endif
