/*
 * Text of any bytes as UTF-8 that is safe to print; numbers in their shortest
 * form.
 */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that follow the first of a sequence; -1 for a byte that begins none. */
static int following_bytes(uint8_t first) {
    if (first < 0x80)
        return 0;
    if (first >= 0xc2 && first < 0xe0)
        return 1;
    if (first >= 0xe0 && first < 0xf0)
        return 2;
    return first >= 0xf0 && first < 0xf5 ? 3 : -1;
}

uint32_t cogpu_text_next(const char **text) {
    const uint8_t *bytes = (const uint8_t *)*text;
    int following = following_bytes(bytes[0]);
    uint32_t code = following > 0 ? bytes[0] & (0x3fu >> following) : bytes[0];
    for (int i = 1; i <= following; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            following = -1;
            break;
        }
        code = code << 6 | (bytes[i] & 0x3f);
    }
    /* Longer than needed, a surrogate, or beyond Unicode: no UTF-8 either. */
    if ((following == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (following == 3 && (code < 0x10000 || code > 0x10ffff)))
        following = -1;
    *text += following < 0 ? 1 : following + 1;
    return following < 0 ? bytes[0] : code;
}

size_t cogpu_text_encode(uint32_t code, char bytes[4]) {
    static const uint32_t marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (char)(marks[count] | code);
    return count;
}

static void print_code(FILE *to, uint32_t code) {
    char bytes[4];
    if (code == '\n')
        fputs("\\n", to);
    else if (code == '\t')
        fputs("\\t", to);
    else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        fprintf(to, "\\x%02x", (unsigned)code);
    else
        fwrite(bytes, 1, cogpu_text_encode(code, bytes), to);
}

void cogpu_text_print(FILE *to, const char *text, size_t limit) {
    for (size_t printed = 0; *text; printed++) {
        if (printed == limit) {
            fputs("...", to);
            return;
        }
        print_code(to, cogpu_text_next(&text));
    }
}

bool cogpu_text_line(const char **lines, char line[LINE_TEXT]) {
    if (!**lines)
        return false;
    size_t length = strcspn(*lines, "\n");
    snprintf(line, LINE_TEXT, "%.*s", (int)length, *lines);
    *lines += length + ((*lines)[length] == '\n');
    return true;
}

const char *cogpu_text_number(double number, char text[NUMBER_TEXT]) {
    if (isnan(number)) {
        snprintf(text, NUMBER_TEXT, "nan"); /* never "-nan" */
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}
