/* Integers in byte arrays of either byte order, without alignment. */
#ifndef COGPU_BASE_BYTES_H
#define COGPU_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define COGPU_HOST_BIG_ENDIAN true
#else
#define COGPU_HOST_BIG_ENDIAN false
#endif

static inline uint16_t load_u16(const uint8_t *from, bool big_endian) {
    uint16_t value;
    memcpy(&value, from, sizeof value);
    return big_endian == COGPU_HOST_BIG_ENDIAN ? value : __builtin_bswap16(value);
}

static inline uint32_t load_u32(const uint8_t *from, bool big_endian) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return big_endian == COGPU_HOST_BIG_ENDIAN ? value : __builtin_bswap32(value);
}

static inline uint64_t load_u64(const uint8_t *from, bool big_endian) {
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return big_endian == COGPU_HOST_BIG_ENDIAN ? value : __builtin_bswap64(value);
}

/* The low `bytes` bytes of a number, little-endian, as this library writes files. */
static inline void store_little(uint64_t value, uint8_t *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

#endif
