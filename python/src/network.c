/*
 * Converts a dict of settings to cogpu_network.
 */
#include "network.h"

#include <math.h>

static bool entry_finite(const struct entry *entry, PyObject *value, void *record,
                         struct arena *arena) {
    double *number = entry_place(entry, record);
    return entry_real(entry, value, record, arena) &&
           (isfinite(*number) || raise_argument("%s must be finite, not %R", entry->name, value));
}

static bool entry_seconds(const struct entry *entry, PyObject *value, void *record,
                          struct arena *arena) {
    double *seconds = entry_place(entry, record);
    return entry_finite(entry, value, record, arena) &&
           (*seconds >= 0 || raise_argument("%s must be 0 or more, not %R", entry->name, value));
}

#define ENTRY(field, reader)                                                                       \
    { .key = #field, .name = #field, .offset = offsetof(cogpu_network, field), .read = reader }

const cogpu_network *network_read(PyObject *dict, struct arena *arena) {
    static const struct entry entries[] = {ENTRY(connections, entry_u32),
                                           ENTRY(requests, entry_u32),
                                           ENTRY(header_bytes, entry_u64),
                                           ENTRY(gap_bytes, entry_u64),
                                           ENTRY(request_bytes, entry_u64),
                                           ENTRY(held_bytes, entry_u64),
                                           ENTRY(whole_bytes, entry_u64),
                                           ENTRY(retries, entry_u32),
                                           ENTRY(connect_seconds, entry_seconds),
                                           ENTRY(stall_seconds, entry_seconds),
                                           ENTRY(least_bytes, entry_u32),
                                           ENTRY(total_seconds, entry_seconds),
                                           ENTRY(header_seconds, entry_finite),
                                           ENTRY(private_addresses, entry_flag),
                                           ENTRY(link_local_addresses, entry_flag),
                                           ENTRY(private_hosts, entry_text),
                                           ENTRY(schemes, entry_text),
                                           ENTRY(ca_file, entry_text),
                                           ENTRY(s3_region, entry_text),
                                           ENTRY(s3_endpoint, entry_text),
                                           ENTRY(s3_profile, entry_text),
                                           ENTRY(s3_access_key, entry_text),
                                           ENTRY(s3_secret_key, entry_text),
                                           ENTRY(s3_session_token, entry_text),
                                           ENTRY(s3_anonymous, entry_flag)};
    cogpu_network *network = arena_take(arena, 1, sizeof *network);
    if (!network || !record_read(entries, FIELD_COUNT(entries), "network", dict, network, arena))
        return NULL;
    return network;
}
