/* The caller's network settings: checks and defaults. */
#include "io/http/client.h"

#include <math.h>

cogpu_status cogpu_network_check(const cogpu_network *network, cogpu_error *error) {
    const double most = 1e9; /* in milliseconds still a long, as libcurl takes it */
    const double waits[] = {network->connect_seconds, network->stall_seconds,
                            network->total_seconds};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (!(waits[i] >= 0 && waits[i] <= most))
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "connect_seconds, stall_seconds and total_seconds must be between 0 "
                              "and %.0f",
                              most);
    if (isnan(network->header_seconds))
        return cogpu_fail(error, COGPU_ARGUMENT, "header_seconds must be a number");
    return COGPU_OK;
}

cogpu_network cogpu_network_complete(const cogpu_network *network) {
    static const cogpu_network defaults = {.connections = 16,
                                           .requests = 64,
                                           .header_bytes = 16 << 10,
                                           .gap_bytes = 64 << 10,
                                           .request_bytes = 8 << 20,
                                           .held_bytes = 48 << 20,
                                           .whole_bytes = 16 << 20,
                                           .retries = 4,
                                           .connect_seconds = 10,
                                           .stall_seconds = 30,
                                           .least_bytes = 100,
                                           .total_seconds = 300,
                                           .header_seconds = 30};
    cogpu_network complete = network ? *network : defaults;
#define COMPLETE(field) complete.field = complete.field ? complete.field : defaults.field
    COMPLETE(connections);
    COMPLETE(requests);
    COMPLETE(header_bytes);
    COMPLETE(gap_bytes);
    COMPLETE(request_bytes);
    COMPLETE(held_bytes);
    COMPLETE(whole_bytes);
    COMPLETE(retries);
    COMPLETE(connect_seconds);
    COMPLETE(stall_seconds);
    COMPLETE(least_bytes);
    COMPLETE(total_seconds);
    COMPLETE(header_seconds);
#undef COMPLETE
    return complete;
}
