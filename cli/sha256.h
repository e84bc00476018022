/* SHA-256 (FIPS 180-4), with the CPU's SHA instructions where present. */
#ifndef COGPU_CLI_SHA256_H
#define COGPU_CLI_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* Mixes whole blocks of 64 bytes into the state. */
typedef void cogpu_sha256_mix(uint32_t state[8], const uint8_t *data, size_t blocks);

typedef struct cogpu_sha256 {
    uint32_t state[8];
    uint64_t bytes;      /* taken so far */
    uint8_t pending[64]; /* of a block that is not full yet */
    cogpu_sha256_mix *mix;
} cogpu_sha256;

void cogpu_sha256_open(cogpu_sha256 *hash);
void cogpu_sha256_add(cogpu_sha256 *hash, const void *data, size_t bytes);

/* Ends the sum and writes it as 64 hexadecimal digits and a NUL. */
void cogpu_sha256_close(cogpu_sha256 *hash, char text[65]);

#endif
