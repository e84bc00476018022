/* See pieces.h. */
#include "io/pieces.h"

#include <string.h>

static cogpu_piece *make(const cogpu_requests *merged, const cogpu_span_of_source *spans,
                         uint32_t count, size_t piece_bytes, cogpu_piece **made) {
    cogpu_piece *first = NULL, **end = &first;
    memset(made, 0, merged->count * sizeof *made);
    for (uint32_t i = 0; i < merged->count; i++) {
        cogpu_piece *piece = made[i] = cogpu_allocate(piece_bytes);
        if (!piece)
            break;
        memset(piece, 0, piece_bytes);
        piece->offset = merged->list[i].offset;
        piece->bytes = (size_t)merged->list[i].bytes;
        *end = piece;
        end = &piece->next;
    }
    for (uint32_t i = 0; i < count; i++)
        if (merged->of_span[i] != COGPU_NO_REQUEST && made[merged->of_span[i]])
            made[merged->of_span[i]]->left += spans[i].bytes;
    return first;
}

cogpu_piece *cogpu_pieces_make(const cogpu_span_of_source *spans, uint32_t count,
                               uint64_t source_bytes, const cogpu_merge_caps *caps,
                               size_t piece_bytes) {
    cogpu_piece *first = NULL, **made;
    cogpu_requests merged;
    cogpu_arena arena;
    cogpu_arena_open(&arena, 64 << 20);
    if (cogpu_merge(spans, count, source_bytes, caps, &arena, &merged, NULL) == COGPU_OK &&
        merged.count > 0 &&
        cogpu_arena_take(&arena, merged.count, sizeof *made, &made, NULL) == COGPU_OK)
        first = make(&merged, spans, count, piece_bytes, made);
    cogpu_arena_close(&arena);
    return first;
}

uint64_t cogpu_pieces_add(cogpu_pieces *pieces, cogpu_piece *made) {
    cogpu_piece **end = &pieces->first;
    uint64_t ticket = ++pieces->tickets;
    while (*end)
        end = &(*end)->next;
    *end = made;
    for (cogpu_piece *piece = made; piece; piece = piece->next)
        piece->ticket = ticket;
    return ticket;
}

cogpu_piece *cogpu_pieces_find(const cogpu_pieces *pieces, uint64_t offset, size_t bytes) {
    for (cogpu_piece *piece = pieces->first; piece; piece = piece->next)
        if (offset >= piece->offset && offset - piece->offset <= piece->bytes &&
            bytes <= piece->bytes - (offset - piece->offset))
            return piece;
    return NULL;
}

bool cogpu_pieces_leave(cogpu_pieces *pieces, cogpu_piece *piece, size_t bytes) {
    piece->users--;
    piece->left -= piece->left < bytes ? piece->left : bytes;
    if (piece->left || piece->users)
        return false;
    cogpu_piece **place = &pieces->first;
    while (*place != piece)
        place = &(*place)->next;
    *place = piece->next;
    return true;
}

cogpu_piece *cogpu_pieces_forget(cogpu_pieces *pieces, uint64_t ticket) {
    cogpu_piece *out = NULL;
    for (cogpu_piece **place = &pieces->first; *place;) {
        cogpu_piece *piece = *place;
        bool is_meant = piece->ticket == ticket;
        piece->left = is_meant ? 0 : piece->left;
        if (!is_meant || piece->users) {
            place = &piece->next;
            continue;
        }
        *place = piece->next;
        piece->next = out;
        out = piece;
    }
    return out;
}
