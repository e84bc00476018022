/* Characters and names, in every locale: the functions of ctype.h depend on the locale. */
#ifndef COGPU_BASE_TEXT_H
#define COGPU_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool ascii_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char ascii_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The value of a hexadecimal digit; -1 if the character is none. */
static inline int ascii_hex_value(char c) {
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Equal except for the case of ASCII letters. `b` may be NULL, for a name that a table row does not
 * have. */
static inline bool is_same_name(const char *a, const char *b) {
    if (!b)
        return false;
    while (*a && ascii_lower(*a) == ascii_lower(*b))
        a++, b++;
    return *a == *b;
}

/* Length of the UTF-8 character at `at`, of which `bytes` bytes follow; 0 if it is malformed
 * (RFC 3629, section 4). */
static inline size_t utf8_char_bytes(const char *at, size_t bytes) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = (uint8_t)at[0];
    const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 1)
        return 1;
    if (first < 0xc2 || first > 0xf4 || length > bytes)
        return 0;
    uint32_t code = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        const uint8_t next = (uint8_t)at[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (next & 0x3f);
    }
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < smallest[length] || code > 0x10ffff || is_surrogate ? 0 : length;
}

#endif
