/* See many.h. */
#include "io/many.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { GROUP = 256 }; /* ranges at most */

/* A range that is expected. Only its state says whether `data` may be looked at. */
struct piece {
    struct piece *next;
    uint64_t ticket, offset, left; /* left: bytes of it that nobody has read yet */
    size_t bytes;
    uint8_t *data;
    enum { WANTED, COMING, HERE, LOST } state;
    uint32_t users; /* who read it or bring it */
};

struct cogpu_many {
    cogpu_source source;
    uint64_t bytes;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t some_came;
    struct piece *pieces; /* in the order in which they are wanted */
    uint64_t tickets, held;
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

static void drop_data(cogpu_many *many, struct piece *piece) {
    if (piece->data)
        many->held -= piece->bytes;
    cogpu_unmap(piece->data, piece->bytes);
    piece->data = NULL;
}

static void drop_if_done(cogpu_many *many, struct piece *done) {
    if (done->left || done->users)
        return;
    for (struct piece **place = &many->pieces; *place; place = &(*place)->next)
        if (*place == done) {
            *place = done->next;
            break;
        }
    drop_data(many, done);
    cogpu_release(done);
}

static struct piece *find(cogpu_many *many, uint64_t offset, size_t bytes) {
    for (struct piece *piece = many->pieces; piece; piece = piece->next)
        if (offset >= piece->offset && offset - piece->offset <= piece->bytes &&
            bytes <= piece->bytes - (offset - piece->offset))
            return piece;
    return NULL;
}

/* False where there is no room. */
static bool add_to_group(cogpu_many *many, struct piece *piece, struct group *group) {
    if (group->count == GROUP || piece->bytes > COGPU_MANY_BYTES - many->held ||
        (group->count && group->bytes + piece->bytes > COGPU_GROUP_BYTES))
        return false;
    piece->data = cogpu_map(piece->bytes);
    if (!piece->data)
        return false;
    many->held += piece->bytes;
    piece->state = COMING;
    piece->users++;
    group->reads[group->count] = (cogpu_source_read){piece->offset, piece->bytes, piece->data};
    group->pieces[group->count++] = piece;
    group->bytes += piece->bytes;
    return true;
}

static void settle_group(cogpu_many *many, const struct group *group, cogpu_status status) {
    for (size_t i = 0; i < group->count; i++) {
        struct piece *piece = group->pieces[i];
        piece->state = status == COGPU_OK ? HERE : LOST;
        if (piece->state == LOST)
            drop_data(many, piece);
        piece->users--;
        drop_if_done(many, piece);
    }
    pthread_cond_broadcast(&many->some_came);
}

/* Asks for a piece, and for those after it that were expected with it. Without the lock meanwhile.
 */
static void bring(cogpu_many *many, struct piece *first) {
    struct group group;
    group.count = 0;
    group.bytes = 0;
    for (struct piece *piece = first; piece && piece->ticket == first->ticket; piece = piece->next)
        if (piece->state == WANTED && !add_to_group(many, piece, &group))
            break;
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
    struct piece *piece = find(many, offset, bytes);
    if (piece) {
        piece->users++;
        if (piece->state == WANTED)
            bring(many, piece);
        while (piece->state == COMING)
            pthread_cond_wait(&many->some_came, &many->lock);
    }
    bool is_here = piece && piece->state == HERE;
    pthread_mutex_unlock(&many->lock);
    if (is_here)
        memcpy(to, piece->data + (offset - piece->offset), bytes);
    else
        status = read_alone(many, offset, bytes, to);
    if (!piece)
        return status;
    pthread_mutex_lock(&many->lock);
    piece->users--;
    piece->left -= piece->left < bytes ? piece->left : bytes;
    drop_if_done(many, piece);
    pthread_mutex_unlock(&many->lock);
    return status;
}

/* ---- what is expected ---- */

/* A piece for each request, in their order; as many as there is memory for. */
static struct piece *make_pieces(const cogpu_requests *merged, const cogpu_span_of_source *spans,
                                 uint32_t count, struct piece **made) {
    struct piece *first = NULL, **end = &first;
    for (uint32_t i = 0; i < merged->count; i++) {
        struct piece *piece = made[i] = cogpu_allocate(sizeof *piece);
        if (!piece)
            break;
        *piece = (struct piece){.offset = merged->list[i].offset,
                                .bytes = (size_t)merged->list[i].bytes};
        *end = piece;
        end = &piece->next;
    }
    for (uint32_t i = 0; i < count; i++)
        if (merged->of_span[i] != COGPU_NO_REQUEST && made[merged->of_span[i]])
            made[merged->of_span[i]]->left += spans[i].bytes;
    return first;
}

uint64_t cogpu_many_expect(cogpu_many *many, const cogpu_span_of_source *spans, uint32_t count) {
    const cogpu_merge_caps caps = {COGPU_GAP_BYTES, COGPU_REQUEST_BYTES};
    struct piece *pieces = NULL, **made;
    cogpu_requests merged;
    cogpu_arena arena;
    cogpu_arena_open(&arena, 64 << 20);
    if (cogpu_merge(spans, count, many->bytes, &caps, &arena, &merged, NULL) == COGPU_OK &&
        cogpu_arena_take(&arena, merged.count, sizeof *made, &made, NULL) == COGPU_OK)
        pieces = make_pieces(&merged, spans, count, made);
    cogpu_arena_close(&arena);
    pthread_mutex_lock(&many->lock);
    uint64_t ticket = ++many->tickets;
    for (struct piece *piece = pieces; piece; piece = piece->next)
        piece->ticket = ticket;
    struct piece **end = &many->pieces;
    while (*end)
        end = &(*end)->next;
    *end = pieces;
    pthread_mutex_unlock(&many->lock);
    return ticket;
}

/* One that somebody still reads, who expected it otherwise, goes when that is done. */
void cogpu_many_forget(cogpu_many *many, uint64_t ticket) {
    pthread_mutex_lock(&many->lock);
    for (struct piece *piece = many->pieces, *next; piece; piece = next) {
        next = piece->next;
        if (piece->ticket != ticket)
            continue;
        piece->left = 0;
        drop_if_done(many, piece);
    }
    pthread_mutex_unlock(&many->lock);
}
