/* Takes the caller's settings of the network, hands on sound and complete ones, and whom to ask by
 * them. */
#include "io/http.h"

#include <math.h>

cogpu_status cogpu_network_check(const cogpu_network *network, cogpu_error *error) {
    const double most = 1e9; /* so that milliseconds are whole numbers that libcurl can have */
    const double waits[] = {network->connect_seconds, network->stall_seconds,
                            network->total_seconds};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (!(waits[i] >= 0 && waits[i] <= most))
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "connect_seconds, stall_seconds and total_seconds must be from 0 to "
                              "%.0f",
                              most);
    if (isnan(network->header_seconds))
        return cogpu_fail(error, COGPU_ARGUMENT, "header_seconds must be a number");
    return COGPU_OK;
}

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

/* An endpoint that the caller has set is trusted, wherever it is. */
cogpu_status cogpu_network_find_s3(const cogpu_network *network, const char *address,
                                   cogpu_s3_place *place, cogpu_s3_credentials *credentials,
                                   cogpu_http_target *target, cogpu_error *error) {
    const cogpu_s3_settings settings = {.endpoint = network->s3_endpoint,
                                        .region = network->s3_region,
                                        .profile = network->s3_profile,
                                        .access_key = network->s3_access_key,
                                        .secret_key = network->s3_secret_key,
                                        .session_token = network->s3_session_token,
                                        .is_anonymous = network->s3_anonymous};
    TRY(cogpu_s3_locate(address, &settings, place, error));
    TRY(cogpu_s3_credentials_find(&settings, credentials, error));
    target->url = place->url;
    target->place = place;
    target->credentials = credentials;
    target->may_be_private |= network->s3_endpoint != NULL;
    return COGPU_OK;
}
