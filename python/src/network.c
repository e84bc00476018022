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

/* 0 is a value of its own; the default is a field that is left out, or None. */
static bool entry_retries(const struct entry *entry, PyObject *value, void *record,
                          struct arena *arena) {
    uint64_t retries = 0;
    (void)arena;
    if (!number_between(value, entry->name, 0, INT32_MAX, &retries))
        return false;
    *(int32_t *)entry_place(entry, record) = (int32_t)retries;
    return true;
}

#define ENTRY(field, reader)                                                                       \
    { .key = #field, .name = #field, .offset = offsetof(cogpu_network, field), .read = reader }

const cogpu_network *network_read(PyObject *dict, struct arena *arena) {
    static const struct entry entries[] = {ENTRY(max_retries, entry_retries),
                                           ENTRY(max_connections, entry_u32),
                                           ENTRY(max_requests, entry_u32),
                                           ENTRY(header_bytes, entry_u64),
                                           ENTRY(coalesce_gap_bytes, entry_u64),
                                           ENTRY(max_request_bytes, entry_u64),
                                           ENTRY(max_inflight_bytes, entry_u64),
                                           ENTRY(max_full_download_bytes, entry_u64),
                                           ENTRY(connect_timeout_seconds, entry_seconds),
                                           ENTRY(low_speed_seconds, entry_seconds),
                                           ENTRY(low_speed_bytes_per_second, entry_u32),
                                           ENTRY(timeout_seconds, entry_seconds),
                                           ENTRY(header_cache_seconds, entry_finite),
                                           ENTRY(allow_private_addresses, entry_flag),
                                           ENTRY(allow_link_local_addresses, entry_flag),
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
    if (network)
        *network = (cogpu_network)COGPU_NETWORK_INIT;
    if (!network || !record_read(entries, FIELD_COUNT(entries), "network", dict, network, arena))
        return NULL;
    return network;
}
