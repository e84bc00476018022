/* Takes the caller's settings of the network, hands on complete ones. */
#include "io/http.h"

cogpu_network cogpu_network_complete(const cogpu_network *network) {
    static const cogpu_network usual = {.connections = 16,
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
                                        .header_seconds = 30,
                                        .schemes = "https,http,s3"};
    cogpu_network complete = network ? *network : usual;
#define COMPLETE(field) complete.field = complete.field ? complete.field : usual.field
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
    COMPLETE(schemes);
#undef COMPLETE
    return complete;
}
