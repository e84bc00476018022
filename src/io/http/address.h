/* Classes of network addresses: the settings decide by them what a URL may reach. No name is
 * resolved here, and nothing is sent. */
#ifndef COGPU_IO_HTTP_ADDRESS_H
#define COGPU_IO_HTTP_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* An IPv6 address that carries an IPv4 address (mapped, compatible, translated, NAT64, 6to4,
 * Teredo) has the class of that one. */
typedef enum cogpu_address_class {
    COGPU_ADDRESS_PUBLIC,
    COGPU_ADDRESS_PRIVATE,   /* loopback, private and carrier-grade NAT, multicast, benchmarking and
                              * documentation, unassigned, other families */
    COGPU_ADDRESS_LINK_LOCAL /* 169.254.0.0/16, fe80::/10, and other addresses at which clouds serve
                              * metadata and credentials */
} cogpu_address_class;

cogpu_address_class cogpu_address_class_of(const struct sockaddr *address);

#endif
