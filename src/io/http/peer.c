/*
 * Which network addresses a transfer may connect to. A URL may come from an untrusted file or
 * server: it must not reach services inside the user's network (server-side request forgery).
 *
 * Addresses are checked where libcurl opens a socket, after the name was resolved: so a DNS server
 * cannot give one address to the check and another to the connection (DNS rebinding).
 */
#include "io/http/client_internal.h"

#include "io/http/address.h"

#include <arpa/inet.h>
#include <string.h>

/* Whether the user named the requested host: in the URL, or in `private_hosts`. */
static bool is_named_by_user(const cogpu_transfer *self) {
    return cogpu_url_has_host_of(self->url, self->request->target->url) ||
           cogpu_url_has_host_in(self->url, self->http->network.private_hosts);
}

static bool may_be_private(const cogpu_transfer *self) {
    const cogpu_network *network = &self->http->network;
    const cogpu_http_target *target = self->request->target;
    return network->allow_private_addresses ||
           (target->may_be_private && cogpu_url_same_host(self->url, target->url)) ||
           cogpu_url_has_host_in(self->url, network->private_hosts);
}

/* Sets `refusal` if the address is not allowed. */
static bool is_allowed_address(cogpu_transfer *self, const struct sockaddr *address) {
    cogpu_address_class class = cogpu_address_class_of(address);
    if (class == COGPU_ADDRESS_PUBLIC)
        return true;
    if (class == COGPU_ADDRESS_LINK_LOCAL && !self->http->network.allow_link_local_addresses)
        self->refusal = PEER_LINK_LOCAL;
    else if (class == COGPU_ADDRESS_PRIVATE && !may_be_private(self))
        self->refusal = PEER_PRIVATE;
    else if (self->is_from_public && !is_named_by_user(self))
        self->refusal = PEER_FROM_PUBLIC;
    else
        return true;
    return false;
}

curl_socket_t cogpu_transfer_open_socket(void *transfer, curlsocktype purpose,
                                         struct curl_sockaddr *address) {
    (void)purpose;
    if (!is_allowed_address(transfer, &address->addr))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* The address that is connected to; false if it is unknown. */
static bool get_peer(const cogpu_transfer *self, struct sockaddr_storage *address) {
    char *text = NULL;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (curl_easy_getinfo(self->easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || !text)
        return false;
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        memcpy(address, &four, sizeof four);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        memcpy(address, &six, sizeof six);
    else
        return false;
    return true;
}

/* libcurl may reuse a connection that another request opened, which was allowed more. */
void cogpu_transfer_check_peer(cogpu_transfer *self) {
    struct sockaddr_storage peer;
    if (!get_peer(self, &peer))
        self->refusal = may_be_private(self) ? self->refusal : PEER_PRIVATE;
    else
        (void)is_allowed_address(self, (const struct sockaddr *)&peer);
}

bool cogpu_transfer_has_public_peer(const cogpu_transfer *self) {
    struct sockaddr_storage peer;
    return get_peer(self, &peer) &&
           cogpu_address_class_of((const struct sockaddr *)&peer) == COGPU_ADDRESS_PUBLIC;
}

void cogpu_transfer_fail_refused(cogpu_transfer *self) {
    static const char *const reasons[] = {
        [PEER_PRIVATE] = "its address is not public; allow_private_addresses (--private-addresses) "
                         "allows that",
        [PEER_LINK_LOCAL] = "its address is link-local, not public; allow_link_local_addresses "
                            "(--link-local-addresses) allows that",
        [PEER_FROM_PUBLIC] = "redirects from public to private addresses need private_hosts "
                             "(--private-hosts)",
    };
    cogpu_fail(&self->request->error, COGPU_INVALID_ARGUMENT, "%s: %s", self->shown,
               reasons[self->refusal]);
}
