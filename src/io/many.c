/* See many.h. */
#include "io/many.h"

#include "io/pieces.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { GROUP = 256 }; /* ranges at most */

/* A range that is expected. Only its state says whether `data` may be looked at. Its users are
 * those who read it or bring it. */
struct piece {
    cogpu_piece range;
    enum { WANTED, COMING, HERE, LOST } state;
};

struct cogpu_many {
    cogpu_source source;
    uint64_t bytes;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t some_came;
    cogpu_pieces pieces;
    uint64_t held;
};

/* Pieces on their way, by one call. */
struct group {
    cogpu_source_read reads[GROUP];
    struct piece *pieces[GROUP];
    size_t count;
    uint64_t bytes;
};

cogpu_many *cogpu_many_open(const cogpu_source *source, uint64_t bytes) {
    cogpu_many *many = cogpu_allocate(sizeof *many);
    if (!many)
        return NULL;
    *many = (cogpu_many){.source = *source, .bytes = bytes};
    pthread_mutex_init(&many->lock, NULL);
    pthread_cond_init(&many->some_came, NULL);
    return many;
}

/* Whoever expected something has said that nobody reads it any more: there are no pieces. */
void cogpu_many_close(cogpu_many *many) {
    if (!many)
        return;
    pthread_cond_destroy(&many->some_came);
    pthread_mutex_destroy(&many->lock);
    cogpu_release(many);
}

/* ---- under the lock ---- */

static void drop_data(cogpu_many *many, cogpu_piece *range) {
    if (range->data)
        many->held -= range->bytes;
    cogpu_unmap(range->data, range->bytes);
    range->data = NULL;
}

static void leave(cogpu_many *many, cogpu_piece *range, size_t bytes) {
    if (!cogpu_pieces_leave(&many->pieces, range, bytes))
        return;
    drop_data(many, range);
    cogpu_release(range);
}

/* False where there is no room. */
static bool add_to_group(cogpu_many *many, struct piece *piece, struct group *group) {
    cogpu_piece *range = &piece->range;
    if (group->count == GROUP || range->bytes > COGPU_MANY_BYTES - many->held ||
        (group->count && group->bytes + range->bytes > COGPU_GROUP_BYTES))
        return false;
    range->data = cogpu_map(range->bytes);
    if (!range->data)
        return false;
    many->held += range->bytes;
    piece->state = COMING;
    range->users++;
    group->reads[group->count] = (cogpu_source_read){range->offset, range->bytes, range->data};
    group->pieces[group->count++] = piece;
    group->bytes += range->bytes;
    return true;
}

static void settle_group(cogpu_many *many, const struct group *group, cogpu_status status) {
    for (size_t i = 0; i < group->count; i++) {
        struct piece *piece = group->pieces[i];
        piece->state = status == COGPU_OK ? HERE : LOST;
        if (piece->state == LOST)
            drop_data(many, &piece->range);
        leave(many, &piece->range, 0);
    }
    pthread_cond_broadcast(&many->some_came);
}

/* Asks for a piece, and for those after it that were expected with it. Without the lock meanwhile.
 */
static void bring(cogpu_many *many, struct piece *first) {
    struct group group;
    group.count = 0;
    group.bytes = 0;
    for (cogpu_piece *range = &first->range; range && range->ticket == first->range.ticket;
         range = range->next) {
        struct piece *piece = (struct piece *)range;
        if (piece->state == WANTED && !add_to_group(many, piece, &group))
            break;
    }
    if (group.count == 0)
        return;
    pthread_mutex_unlock(&many->lock);
    cogpu_status status = many->source.read_many(many->source.user, group.reads, group.count);
    pthread_mutex_lock(&many->lock);
    settle_group(many, &group, status);
}

/* ---- reads ---- */

static cogpu_status read_alone(cogpu_many *many, uint64_t offset, size_t bytes, void *to) {
    const cogpu_source_read read = {offset, bytes, to};
    return many->source.read_many(many->source.user, &read, 1);
}

cogpu_status cogpu_many_read(cogpu_many *many, uint64_t offset, size_t bytes, void *to) {
    cogpu_status status = COGPU_OK;
    pthread_mutex_lock(&many->lock);
    struct piece *piece = (struct piece *)cogpu_pieces_find(&many->pieces, offset, bytes);
    if (piece) {
        piece->range.users++;
        if (piece->state == WANTED)
            bring(many, piece);
        while (piece->state == COMING)
            pthread_cond_wait(&many->some_came, &many->lock);
    }
    bool is_here = piece && piece->state == HERE;
    pthread_mutex_unlock(&many->lock);
    if (is_here)
        memcpy(to, piece->range.data + (offset - piece->range.offset), bytes);
    else
        status = read_alone(many, offset, bytes, to);
    if (!piece)
        return status;
    pthread_mutex_lock(&many->lock);
    leave(many, &piece->range, bytes);
    pthread_mutex_unlock(&many->lock);
    return status;
}

/* ---- what is expected ---- */

uint64_t cogpu_many_expect(cogpu_many *many, const cogpu_span_of_source *spans, uint32_t count) {
    const cogpu_merge_caps caps = {COGPU_GAP_BYTES, COGPU_REQUEST_BYTES};
    cogpu_piece *made = cogpu_pieces_make(spans, count, many->bytes, &caps, sizeof(struct piece));
    pthread_mutex_lock(&many->lock);
    uint64_t ticket = cogpu_pieces_add(&many->pieces, made);
    pthread_mutex_unlock(&many->lock);
    return ticket;
}

void cogpu_many_forget(cogpu_many *many, uint64_t ticket) {
    pthread_mutex_lock(&many->lock);
    for (cogpu_piece *range = cogpu_pieces_forget(&many->pieces, ticket), *next; range;
         range = next) {
        next = range->next;
        drop_data(many, range);
        cogpu_release(range);
    }
    pthread_mutex_unlock(&many->lock);
}
