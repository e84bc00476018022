/*
 * Classes of network addresses, by which settings decide what a URL may reach. No name is resolved
 * here, and nothing is sent.
 */
#ifndef COGPU_IO_ADDRESS_H
#define COGPU_IO_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* An IPv6 address that carries an IPv4 address (mapped, compatible, translated, NAT64, 6to4,
 * Teredo) has the class of that one. */
typedef enum cogpu_address_class {
    COGPU_ADDRESS_PUBLIC,
    COGPU_ADDRESS_PRIVATE,   /* this machine, private and providers' networks, multicast, tests and
                              * documentation, what is not assigned, other families */
    COGPU_ADDRESS_LINK_LOCAL /* 169.254.0.0/16, fe80::/10, and what else clouds serve metadata and
                              * credentials at */
} cogpu_address_class;

cogpu_address_class cogpu_address_class_of(const struct sockaddr *address);

#endif
