/* See address.h. The tables follow IANA's registries of special-purpose addresses (RFC 6890), and
 * the addresses that clouds document for their metadata services. */
#include "io/http/address.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

typedef struct range4 {
    uint8_t first[4];
    unsigned bits;
    cogpu_address_class kind;
} range4;

#define PUBLIC  COGPU_ADDRESS_PUBLIC
#define PRIVATE COGPU_ADDRESS_PRIVATE
#define LINK    COGPU_ADDRESS_LINK_LOCAL

/* The first range that contains an address decides; an address in none is public. */
static const range4 ranges4[] = {
    {{169, 254, 0, 0}, 16, LINK},   /* link-local; metadata of AWS, Azure, Google and most others */
    {{168, 63, 129, 16}, 32, LINK}, /* Azure's WireServer */
    {{100, 100, 100, 200}, 32, LINK}, /* metadata of Alibaba Cloud */
    {{192, 0, 0, 192}, 32, LINK},     /* metadata of Oracle Cloud's older machines */
    {{0, 0, 0, 0}, 8, PRIVATE},       /* this network */
    {{10, 0, 0, 0}, 8, PRIVATE},      /* private */
    {{100, 64, 0, 0}, 10, PRIVATE},   /* carrier-grade NAT */
    {{127, 0, 0, 0}, 8, PRIVATE},     /* loopback */
    {{172, 16, 0, 0}, 12, PRIVATE},   /* private */
    {{192, 0, 0, 0}, 24, PRIVATE},    /* protocols */
    {{192, 0, 2, 0}, 24, PRIVATE},    /* documentation */
    {{192, 88, 99, 0}, 24, PRIVATE},  /* 6to4 relays, deprecated */
    {{192, 168, 0, 0}, 16, PRIVATE},  /* private */
    {{198, 18, 0, 0}, 15, PRIVATE},   /* benchmarking */
    {{198, 51, 100, 0}, 24, PRIVATE}, /* documentation */
    {{203, 0, 113, 0}, 24, PRIVATE},  /* documentation */
    {{224, 0, 0, 0}, 3, PRIVATE},     /* multicast, reserved, broadcast */
};

typedef struct range6 {
    uint8_t first[16];
    unsigned bits;
    enum { IS, CARRIES, MAY_CARRY } what;
    cogpu_address_class kind; /* if it IS of one class */
    unsigned at;              /* byte of the IPv4 address that it CARRIES */
    uint8_t flip;             /* XOR mask of its bytes */
} range6;

/* The first range that contains an address decides; an address in none is private. */
static const range6 ranges6[] = {
    {{0xfe, 0x80}, 10, IS, LINK, 0, 0},          /* link-local */
    {{0xfd, 0, 0x0e, 0xc2}, 32, IS, LINK, 0, 0}, /* AWS: metadata at fd00:ec2::254, and more */
    {{0xfd, 0x20, 0, 0xce}, 32, IS, LINK, 0, 0}, /* Google: metadata at fd20:ce::254 */
    {{0xfd, 0, 0, 0xc1}, 32, IS, LINK, 0, 0},    /* Oracle: metadata at fd00:c1::a9fe:a9fe */
    {{0xfd, 0, 0, 0x42}, 32, IS, LINK, 0, 0},    /* Scaleway: metadata at fd00:42::42 */
    {{0}, 96, CARRIES, 0, 12, 0},                /* IPv4-compatible, ::, ::1 */
    {{[10] = 0xff, [11] = 0xff}, 96, CARRIES, 0, 12, 0},   /* IPv4-mapped */
    {{[8] = 0xff, [9] = 0xff}, 96, MAY_CARRY, 0, 0, 0},    /* IPv4-translated, of local networks */
    {{0, 0x64, 0xff, 0x9b}, 96, CARRIES, 0, 12, 0},        /* NAT64 */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48, MAY_CARRY, 0, 0, 0}, /* NAT64 of local networks */
    {{0x20, 0x02}, 16, CARRIES, 0, 2, 0},                  /* 6to4 */
    {{0x20, 0x01, 0, 0}, 32, CARRIES, 0, 12, 0xff},        /* Teredo */
    {{0x20, 0x01, 0, 0}, 23, IS, PRIVATE, 0, 0},           /* protocols, benchmarks, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, IS, PRIVATE, 0, 0},     /* documentation */
    {{0x3f, 0xff}, 20, IS, PRIVATE, 0, 0},                 /* documentation */
    {{0x20}, 3, IS, PUBLIC, 0, 0},                         /* all unicast that IANA has allocated */
};

static bool has_prefix(const uint8_t *a, const uint8_t *b, unsigned bits) {
    unsigned bytes = bits / 8, rest = bits % 8;
    return memcmp(a, b, bytes) == 0 && (rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0);
}

static cogpu_address_class class_of4(const uint8_t *address) {
    for (size_t i = 0; i < sizeof ranges4 / sizeof *ranges4; i++)
        if (has_prefix(address, ranges4[i].first, ranges4[i].bits))
            return ranges4[i].kind;
    return COGPU_ADDRESS_PUBLIC;
}

/* The offset of the IPv4 address depends on the length of the network's prefix, 48, 56, 64 or 96
 * bits, which is unknown: RFC 6052, 2.2. */
static cogpu_address_class class_of_local_nat64(const uint8_t *address) {
    static const uint8_t positions[][4] = {
        {6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        uint8_t inside[4];
        for (size_t k = 0; k < sizeof inside; k++)
            inside[k] = address[positions[i][k]];
        if (class_of4(inside) == COGPU_ADDRESS_LINK_LOCAL)
            return COGPU_ADDRESS_LINK_LOCAL;
    }
    return COGPU_ADDRESS_PRIVATE;
}

static cogpu_address_class class_of6(const uint8_t *address) {
    for (size_t i = 0; i < sizeof ranges6 / sizeof *ranges6; i++) {
        const range6 *range = &ranges6[i];
        uint8_t inside[4];
        if (!has_prefix(address, range->first, range->bits))
            continue;
        if (range->what == IS)
            return range->kind;
        if (range->what == MAY_CARRY)
            return class_of_local_nat64(address);
        for (size_t k = 0; k < sizeof inside; k++)
            inside[k] = address[range->at + k] ^ range->flip;
        return class_of4(inside);
    }
    return COGPU_ADDRESS_PRIVATE;
}

cogpu_address_class cogpu_address_class_of(const struct sockaddr *address) {
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&four, address, sizeof four);
        return class_of4((const uint8_t *)&four.sin_addr);
    case AF_INET6:
        memcpy(&six, address, sizeof six);
        return class_of6(six.sin6_addr.s6_addr);
    default:
        return COGPU_ADDRESS_PRIVATE;
    }
}
