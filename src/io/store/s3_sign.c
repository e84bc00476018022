/*
 * AWS Signature Version 4, with SHA-256 (FIPS 180-4) and HMAC (RFC 2104).
 *
 *   canonical request  = method, path, query, host and x-amz-... headers, hash of the body
 *   string to sign     = date, scope, SHA-256 of the canonical request
 *   signature          = HMAC of it, with a key derived from secret, date, region and service
 *
 * Range, If-Match and the like need not be signed. Path and query are encoded and sorted already. A
 * body that is sent over TLS is not hashed. Everything derived from the secret is wiped.
 */
#include "base/bytes.h"
#include "io/store/s3_internal.h"

#include <stdio.h>

enum { BLOCK_BYTES = 64, SUM_BYTES = 32, HEX_BYTES = 2 * SUM_BYTES + 1 };

/* ---- SHA-256 ---- */

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes;               /* hashed so far */
    uint8_t pending[BLOCK_BYTES]; /* of a block that is not complete */
} sha256;

static uint32_t rotate_right(uint32_t x, int bits) {
    return x >> bits | x << (32 - bits);
}

static void sha256_block(uint32_t state[8], const uint8_t *block) {
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = load_u32(block + 4 * i, true);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t chosen = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t major = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] +
                       (rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25)) +
                       chosen + constants[i] + w[i];
        uint32_t two =
            (rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22)) + major;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
    explicit_bzero(w, sizeof w);
    explicit_bzero(s, sizeof s);
}

static sha256 sha256_init(void) {
    return (sha256){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                     0x1f83d9ab, 0x5be0cd19},
                    0,
                    {0}};
}

static void sha256_update(sha256 *to, const void *data, size_t bytes) {
    const uint8_t *from = data;
    while (bytes) {
        const size_t held = to->bytes % BLOCK_BYTES, left = BLOCK_BYTES - held;
        const size_t now = bytes < left ? bytes : left;
        memcpy(to->pending + held, from, now);
        to->bytes += now;
        from += now;
        bytes -= now;
        if (now == left)
            sha256_block(to->state, to->pending);
    }
}

static void sha256_final(sha256 *from, uint8_t sum[SUM_BYTES]) {
    static const uint8_t padding[BLOCK_BYTES] = {0x80};
    const uint64_t bits = from->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_update(from, padding,
                  1 + (2 * BLOCK_BYTES - 9 - from->bytes % BLOCK_BYTES) % BLOCK_BYTES);
    sha256_update(from, length, sizeof length);
    for (int i = 0; i < SUM_BYTES; i++)
        sum[i] = (uint8_t)(from->state[i / 4] >> (24 - 8 * (i % 4)));
    explicit_bzero(from, sizeof *from);
}

static void write_hex(const uint8_t sum[SUM_BYTES], char text[HEX_BYTES]) {
    for (int i = 0; i < SUM_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
}

/* ---- HMAC ---- */

static void pad_key(const uint8_t *key, size_t bytes, uint8_t with, sha256 *to) {
    uint8_t padded[BLOCK_BYTES];
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        padded[i] = (uint8_t)((i < bytes ? key[i] : 0) ^ with);
    sha256_update(to, padded, BLOCK_BYTES);
    explicit_bzero(padded, sizeof padded);
}

/* HMAC-SHA-256. `sum` may be the key. */
static void hmac_sha256(const uint8_t *key, size_t bytes, const char *message,
                        uint8_t sum[SUM_BYTES]) {
    uint8_t short_key[SUM_BYTES], inner[SUM_BYTES];
    sha256 state = sha256_init();
    if (bytes > BLOCK_BYTES) {
        sha256_update(&state, key, bytes);
        sha256_final(&state, short_key);
        key = short_key;
        bytes = SUM_BYTES;
        state = sha256_init();
    }
    pad_key(key, bytes, 0x36, &state);
    sha256_update(&state, message, strlen(message));
    sha256_final(&state, inner);
    state = sha256_init();
    pad_key(key, bytes, 0x5c, &state);
    sha256_update(&state, inner, SUM_BYTES);
    sha256_final(&state, sum);
    explicit_bzero(short_key, sizeof short_key);
}

/* ---- the signature ---- */

enum { TIME_BYTES = 17, DAY_BYTES = 8, SCOPE_BYTES = DAY_BYTES + COGPU_S3_REGION_BYTES + 32 };

/* What is signed for one request. */
typedef struct signing {
    char time[TIME_BYTES]; /* "20130524T000000Z" */
    char scope[SCOPE_BYTES];
    char payload[HEX_BYTES];
    const char *names; /* of the headers */
} signing;

static void sha256_update_words(sha256 *to, const char *const *words) {
    for (; *words; words++)
        sha256_update(to, *words, strlen(*words));
}

/* TLS protects the body already. */
static void write_payload_hash(const cogpu_s3_location *location, const cogpu_http_call *request,
                               char payload[HEX_BYTES]) {
    uint8_t sum[SUM_BYTES];
    sha256 state = sha256_init();
    if (request->bytes && strncmp(location->url, "https:", 6) == 0) {
        snprintf(payload, HEX_BYTES, "UNSIGNED-PAYLOAD");
        return;
    }
    sha256_update(&state, request->body, request->bytes);
    sha256_final(&state, sum);
    write_hex(sum, payload);
}

/* The hash of the canonical request. */
static void hash_request(const cogpu_s3_location *location, const char *token,
                         const cogpu_http_call *request, const signing *about,
                         char text[HEX_BYTES]) {
    const char *const words[] = {request->method,
                                 "\n",
                                 location->url + location->path,
                                 "\n",
                                 request->query,
                                 "\n",
                                 "host:",
                                 location->host,
                                 "\nx-amz-content-sha256:",
                                 about->payload,
                                 "\nx-amz-date:",
                                 about->time,
                                 *token ? "\nx-amz-security-token:" : "",
                                 token,
                                 "\n\n",
                                 about->names,
                                 "\n",
                                 about->payload,
                                 NULL};
    uint8_t sum[SUM_BYTES];
    sha256 state = sha256_init();
    sha256_update_words(&state, words);
    sha256_final(&state, sum);
    write_hex(sum, text);
}

static void make_signature(const cogpu_s3_location *location, const char *secret,
                           const char *message, const char *time, char text[HEX_BYTES]) {
    char key[4 + COGPU_S3_KEY_BYTES], day[DAY_BYTES + 1];
    uint8_t sum[SUM_BYTES];
    snprintf(key, sizeof key, "AWS4%s", secret);
    snprintf(day, sizeof day, "%.*s", DAY_BYTES, time);
    hmac_sha256((const uint8_t *)key, strlen(key), day, sum);
    hmac_sha256(sum, SUM_BYTES, location->region, sum);
    hmac_sha256(sum, SUM_BYTES, "s3", sum);
    hmac_sha256(sum, SUM_BYTES, "aws4_request", sum);
    hmac_sha256(sum, SUM_BYTES, message, sum);
    write_hex(sum, text);
    explicit_bzero(key, sizeof key);
}

static void add_header_line(cogpu_s3_headers *headers, s3_text *text, const char *const *words) {
    headers->lines[headers->count++] = text->at + text->used;
    for (; *words; words++)
        s3_put(text, *words);
    text->used++; /* the NUL stays between lines */
}

static void write_time(time_t now, char text[TIME_BYTES]) {
    struct tm parts = {0};
    gmtime_r(&now, &parts);
    if (!strftime(text, TIME_BYTES, "%Y%m%dT%H%M%SZ", &parts))
        text[0] = '\0';
}

void cogpu_s3_sign(const cogpu_s3_location *location, const cogpu_s3_credentials *credentials,
                   const cogpu_http_call *request, time_t now, cogpu_s3_headers *headers) {
    const char *token = credentials->session_token;
    headers->count = 0;
    if (credentials->is_anonymous)
        return;
    signing about = {.names = *token ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                                     : "host;x-amz-content-sha256;x-amz-date"};
    char request_hash[HEX_BYTES], message[SCOPE_BYTES + HEX_BYTES + 64], signature[HEX_BYTES];
    write_time(now, about.time);
    snprintf(about.scope, sizeof about.scope, "%.*s/%s/s3/aws4_request", DAY_BYTES, about.time,
             location->region);
    write_payload_hash(location, request, about.payload);
    hash_request(location, token, request, &about, request_hash);
    snprintf(message, sizeof message, "AWS4-HMAC-SHA256\n%s\n%s\n%s", about.time, about.scope,
             request_hash);
    make_signature(location, credentials->secret_key, message, about.time, signature);

    s3_text text = s3_text_in(headers->text, sizeof headers->text);
    add_header_line(headers, &text, (const char *const[]){"x-amz-date: ", about.time, NULL});
    add_header_line(headers, &text,
                    (const char *const[]){"x-amz-content-sha256: ", about.payload, NULL});
    add_header_line(headers, &text,
                    (const char *const[]){
                        "Authorization: AWS4-HMAC-SHA256 Credential=", credentials->access_key, "/",
                        about.scope, ", SignedHeaders=", about.names, ", Signature=", signature,
                        NULL});
    if (*token)
        add_header_line(headers, &text,
                        (const char *const[]){"x-amz-security-token: ", token, NULL});
}

void cogpu_s3_headers_wipe(cogpu_s3_headers *headers) {
    explicit_bzero(headers, sizeof *headers);
}
