/* See range_list.h. */
#include "io/range/range_list.h"

#include <string.h>

static cogpu_range *build_chain(const cogpu_requests *requests, const cogpu_byte_range *spans,
                                uint32_t count, size_t range_bytes, cogpu_range **by_request) {
    cogpu_range *first = NULL, **end = &first;
    memset(by_request, 0, requests->count * sizeof *by_request);
    for (uint32_t i = 0; i < requests->count; i++) {
        cogpu_range *range = by_request[i] = cogpu_allocate(range_bytes);
        if (!range)
            break;
        memset(range, 0, range_bytes);
        range->offset = requests->list[i].offset;
        range->bytes = (size_t)requests->list[i].bytes;
        *end = range;
        end = &range->next;
    }
    for (uint32_t i = 0; i < count; i++)
        if (requests->of_span[i] != COGPU_NO_REQUEST && by_request[requests->of_span[i]])
            by_request[requests->of_span[i]]->unread_bytes += spans[i].bytes;
    return first;
}

cogpu_range *cogpu_ranges_plan(const cogpu_byte_range *spans, uint32_t count, uint64_t source_bytes,
                               const cogpu_coalesce_limits *limits, size_t range_bytes) {
    enum { ARENA_BYTES = 64 << 20 };
    cogpu_range *first = NULL, **by_request;
    cogpu_requests requests;
    cogpu_arena arena;
    cogpu_arena_open(&arena, ARENA_BYTES);
    if (cogpu_coalesce(spans, count, source_bytes, limits, &arena, &requests, NULL) == COGPU_OK &&
        requests.count > 0 &&
        cogpu_arena_allocate(&arena, requests.count, sizeof *by_request, &by_request, NULL) ==
            COGPU_OK)
        first = build_chain(&requests, spans, count, range_bytes, by_request);
    cogpu_arena_close(&arena);
    return first;
}

uint64_t cogpu_range_list_append(cogpu_range_list *list, cogpu_range *chain) {
    cogpu_range **end = &list->first;
    uint64_t ticket = ++list->tickets;
    while (*end)
        end = &(*end)->next;
    *end = chain;
    for (cogpu_range *range = chain; range; range = range->next)
        range->ticket = ticket;
    return ticket;
}

cogpu_range *cogpu_range_list_find(const cogpu_range_list *list, uint64_t offset, size_t bytes) {
    for (cogpu_range *range = list->first; range; range = range->next)
        if (offset >= range->offset && offset - range->offset <= range->bytes &&
            bytes <= range->bytes - (offset - range->offset))
            return range;
    return NULL;
}

void cogpu_range_list_remove(cogpu_range_list *list, const cogpu_range *range) {
    cogpu_range **link = &list->first;
    while (*link != range)
        link = &(*link)->next;
    *link = range->next;
}

bool cogpu_range_list_end_use(cogpu_range_list *list, cogpu_range *range, size_t bytes_read) {
    range->users--;
    range->unread_bytes -= range->unread_bytes < bytes_read ? range->unread_bytes : bytes_read;
    if (range->unread_bytes || range->users)
        return false;
    cogpu_range_list_remove(list, range);
    return true;
}

cogpu_range *cogpu_range_list_end_ticket(cogpu_range_list *list, uint64_t ticket) {
    cogpu_range *removed = NULL;
    for (cogpu_range **link = &list->first; *link;) {
        cogpu_range *range = *link;
        bool is_meant = range->ticket == ticket;
        range->unread_bytes = is_meant ? 0 : range->unread_bytes;
        if (!is_meant || range->users) {
            link = &range->next;
            continue;
        }
        *link = range->next;
        range->next = removed;
        removed = range;
    }
    return removed;
}
