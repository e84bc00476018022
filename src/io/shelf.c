/* See shelf.h. */
#include "io/shelf.h"

#include "io/io.h"

#include <pthread.h>
#include <string.h>

/* Two spans in a request, with what lies between: about what a line brings while one waits for
 * another request. */
enum { TOGETHER_BYTES = 512 << 10 };

/* No two pieces overlap. */
struct piece {
    struct piece *next;
    uint64_t offset;
    size_t bytes;
    uint64_t used_at; /* by the shelf's clock */
    bool is_coming;   /* its bytes are not there yet */
    uint8_t data[];
};

struct cogpu_shelf {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t some_came;
    struct piece *pieces;
    uint64_t bytes, clock;
};

cogpu_shelf *cogpu_shelf_open(void) {
    cogpu_shelf *shelf = cogpu_allocate(sizeof *shelf);
    if (!shelf)
        return NULL;
    *shelf = (cogpu_shelf){0};
    pthread_mutex_init(&shelf->lock, NULL);
    pthread_cond_init(&shelf->some_came, NULL);
    return shelf;
}

void cogpu_shelf_close(cogpu_shelf *shelf) {
    if (!shelf)
        return;
    while (shelf->pieces) {
        struct piece *piece = shelf->pieces;
        shelf->pieces = piece->next;
        cogpu_release(piece);
    }
    pthread_cond_destroy(&shelf->some_came);
    pthread_mutex_destroy(&shelf->lock);
    cogpu_release(shelf);
}

/* ---- under the lock ---- */

static struct piece *find(const cogpu_shelf *shelf, uint64_t offset) {
    for (struct piece *piece = shelf->pieces; piece; piece = piece->next)
        if (offset >= piece->offset && offset - piece->offset < piece->bytes)
            return piece;
    return NULL;
}

static void take_out(cogpu_shelf *shelf, struct piece *piece) {
    for (struct piece **place = &shelf->pieces; *place; place = &(*place)->next)
        if (*place == piece) {
            *place = piece->next;
            break;
        }
    shelf->bytes -= piece->bytes;
    cogpu_release(piece);
}

/* Those that were not used for longest go. */
static void make_room(cogpu_shelf *shelf, size_t bytes) {
    while (shelf->bytes + bytes > COGPU_SHELF_BYTES) {
        struct piece *oldest = NULL;
        for (struct piece *piece = shelf->pieces; piece; piece = piece->next)
            if (!piece->is_coming && (!oldest || piece->used_at < oldest->used_at))
                oldest = piece;
        if (!oldest)
            return;
        take_out(shelf, oldest);
    }
}

/* A piece that has the byte at `offset`, which none has yet, and `bytes` from there on as far as
 * they are missing; it is still to come. NULL when there is no memory. */
static struct piece *add(cogpu_shelf *shelf, const cogpu_io *io, uint64_t offset, uint64_t bytes) {
    uint64_t before = io->head_bytes, after = io->bytes;
    uint64_t length = COGPU_PIECE_LEAST, length_before = 0;
    for (const struct piece *piece = shelf->pieces; piece; piece = piece->next) {
        uint64_t end = piece->offset + piece->bytes;
        if (end <= offset && end >= before) {
            before = end;
            length_before = piece->bytes;
        }
        if (piece->offset > offset && piece->offset < after)
            after = piece->offset;
    }
    uint64_t start = offset;
    if (offset - before < COGPU_PIECE_LEAST) {
        start = before;
        length = 2 * length_before > length ? 2 * length_before : length;
    } else if (io->bytes - offset < COGPU_PIECE_LEAST) {
        /* Directories at the end of a file have their values before them or behind. */
        start = io->bytes - before > COGPU_PIECE_LEAST ? io->bytes - COGPU_PIECE_LEAST : before;
    }
    bytes = bytes > length ? bytes : length;
    length = offset - start + bytes;
    length = length < COGPU_PIECE_MOST ? length : COGPU_PIECE_MOST;
    length = length < after - start ? length : after - start;
    make_room(shelf, (size_t)length);
    struct piece *piece = cogpu_allocate(sizeof *piece + (size_t)length);
    if (!piece)
        return NULL;
    piece->offset = start;
    piece->bytes = (size_t)length;
    piece->used_at = ++shelf->clock;
    piece->is_coming = true;
    piece->next = shelf->pieces;
    shelf->pieces = piece;
    shelf->bytes += length;
    return piece;
}

/* Where the first byte of a span is that nobody has asked for; its end where there is none. */
static uint64_t first_missing(const cogpu_shelf *shelf, const cogpu_io *io,
                              const cogpu_span_of_source *span) {
    uint64_t at = span->offset, end = span->offset + span->bytes;
    at = at < io->head_bytes ? io->head_bytes : at;
    for (const struct piece *piece; at < end && (piece = find(shelf, at));)
        at = piece->offset + piece->bytes;
    return at < end ? at : end;
}

/* ---- without it ---- */

/* Of a piece that this thread has added. It is gone where its bytes do not come. */
static cogpu_status bring(cogpu_shelf *shelf, const cogpu_io *io, struct piece *piece,
                          cogpu_error *error) {
    cogpu_status status = io->read(io, piece->offset, piece->bytes, piece->data, NULL, error);
    pthread_mutex_lock(&shelf->lock);
    piece->is_coming = false;
    if (status != COGPU_OK)
        take_out(shelf, piece);
    pthread_cond_broadcast(&shelf->some_came);
    pthread_mutex_unlock(&shelf->lock);
    return status;
}

/* How many bytes of the range, from its first on, one piece could give; 0 where it had to be asked
 * for, or waited for, and has to be looked for again. */
static cogpu_status copy_some(cogpu_shelf *shelf, const cogpu_io *io, uint64_t offset, size_t bytes,
                              uint8_t *to, size_t *copied, cogpu_error *error) {
    *copied = 0;
    pthread_mutex_lock(&shelf->lock);
    struct piece *piece = find(shelf, offset), *added = NULL;
    if (!piece) {
        added = add(shelf, io, offset, bytes);
    } else if (piece->is_coming) {
        pthread_cond_wait(&shelf->some_came, &shelf->lock);
    } else {
        size_t skip = (size_t)(offset - piece->offset), left = piece->bytes - skip;
        *copied = bytes < left ? bytes : left;
        memcpy(to, piece->data + skip, *copied);
        piece->used_at = ++shelf->clock;
    }
    pthread_mutex_unlock(&shelf->lock);
    if (added)
        return bring(shelf, io, added, error);
    if (piece)
        return COGPU_OK;
    *copied = bytes;
    return io->read(io, offset, bytes, to, NULL, error);
}

cogpu_status cogpu_shelf_read(cogpu_shelf *shelf, const cogpu_io *io, uint64_t offset, size_t bytes,
                              void *to, cogpu_error *error) {
    uint8_t *at = to;
    if (bytes > COGPU_PIECE_MOST)
        return io->read(io, offset, bytes, to, NULL, error);
    while (bytes) {
        size_t some = 0;
        if (offset < io->head_bytes) {
            some = io->head_bytes - (size_t)offset;
            some = some < bytes ? some : bytes;
            memcpy(at, io->head + offset, some);
        } else {
            TRY(copy_some(shelf, io, offset, bytes, at, &some, error));
        }
        offset += some;
        at += some;
        bytes -= some;
    }
    return COGPU_OK;
}

void cogpu_shelf_fetch(cogpu_shelf *shelf, const cogpu_io *io,
                       const cogpu_span_of_source spans[2]) {
    struct piece *added[2] = {NULL, NULL};
    cogpu_span_of_source coming[2];
    uint32_t count = 0;
    pthread_mutex_lock(&shelf->lock);
    uint64_t at[2], end[2];
    for (int i = 0; i < 2; i++) {
        at[i] = first_missing(shelf, io, &spans[i]);
        end[i] = spans[i].offset + spans[i].bytes;
    }
    int low = at[0] <= at[1] ? 0 : 1;
    if (at[0] < end[0] && at[1] < end[1]) {
        /* Who reads on from the second span finds as much behind it as behind the first. */
        uint64_t together = end[!low] - at[low];
        if (together <= TOGETHER_BYTES)
            added[count] = add(shelf, io, at[low], together + COGPU_PIECE_LEAST);
        else
            added[count] = add(shelf, io, at[low], end[low] - at[low]);
        count += added[count] != NULL;
        at[!low] = first_missing(shelf, io, &spans[!low]);
        if (at[!low] < end[!low])
            added[count] = add(shelf, io, at[!low], end[!low] - at[!low]);
        count += count < 2 && added[count] != NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        coming[i] = (cogpu_span_of_source){added[i]->offset, added[i]->bytes};
    pthread_mutex_unlock(&shelf->lock);
    uint64_t ticket = count > 1 ? cogpu_io_expect(io, coming, count) : 0;
    for (uint32_t i = 0; i < count; i++)
        (void)bring(shelf, io, added[i], NULL);
    cogpu_io_forget(io, ticket);
}
