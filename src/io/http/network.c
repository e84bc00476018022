/* The caller's network settings: checks and defaults. */
#include "io/http/client.h"

#include <math.h>

cogpu_status cogpu_network_check(const cogpu_network *network, cogpu_error *error) {
    const double most = 1e9; /* in milliseconds still a long, as libcurl takes it */
    const double waits[] = {network->connect_timeout_seconds, network->low_speed_seconds,
                            network->timeout_seconds};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (!(waits[i] >= 0 && waits[i] <= most))
            return cogpu_fail(
                error, COGPU_INVALID_ARGUMENT,
                "connect_timeout_seconds, low_speed_seconds and timeout_seconds must be between 0 "
                "and %.0f",
                most);
    if (isnan(network->header_cache_seconds))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "header_cache_seconds must be a number");
    return COGPU_OK;
}

cogpu_network cogpu_network_complete(const cogpu_network *network) {
    static const cogpu_network defaults = {.max_connections = 16,
                                           .max_requests = 64,
                                           .header_bytes = 16 << 10,
                                           .coalesce_gap_bytes = 64 << 10,
                                           .max_request_bytes = 8 << 20,
                                           .max_inflight_bytes = 48 << 20,
                                           .max_full_download_bytes = 16 << 20,
                                           .max_retries = 4,
                                           .connect_timeout_seconds = 10,
                                           .low_speed_seconds = 30,
                                           .low_speed_bytes_per_second = 100,
                                           .timeout_seconds = 300,
                                           .header_cache_seconds = 30};
    cogpu_network complete = network ? *network : defaults;
#define COMPLETE(field) complete.field = complete.field ? complete.field : defaults.field
    COMPLETE(max_connections);
    COMPLETE(max_requests);
    COMPLETE(header_bytes);
    COMPLETE(coalesce_gap_bytes);
    COMPLETE(max_request_bytes);
    COMPLETE(max_inflight_bytes);
    COMPLETE(max_full_download_bytes);
    if (complete.max_retries < 0)
        complete.max_retries = defaults.max_retries;
    COMPLETE(connect_timeout_seconds);
    COMPLETE(low_speed_seconds);
    COMPLETE(low_speed_bytes_per_second);
    COMPLETE(timeout_seconds);
    COMPLETE(header_cache_seconds);
#undef COMPLETE
    return complete;
}
