/*
 * Parses the numbers in the value of an option.
 */
#include "numbers.h"

#include <math.h>
#include <stdlib.h>

static bool parse_whole(const char **text, uint32_t *number) {
    uint64_t value = 0;
    if (**text < '0' || **text > '9')
        return false;
    for (; **text >= '0' && **text <= '9'; ++*text) {
        value = value * 10 + (uint64_t)(**text - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *number = (uint32_t)value;
    return true;
}

bool cogpu_parse_wholes(const char *text, uint32_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && *text++ != ',')
            return false;
        if (!parse_whole(&text, &numbers[i]))
            return false;
    }
    return *text == '\0';
}

bool cogpu_parse_numbers(const char *text, double *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        if (i > 0 && *text++ != ',')
            return false;
        numbers[i] = strtod(text, &end);
        if (end == text || !isfinite(numbers[i]))
            return false;
        text = end;
    }
    return *text == '\0';
}

bool cogpu_parse_size(const char *text, uint32_t *width, uint32_t *height) {
    if (!parse_whole(&text, width))
        return false;
    *height = *width;
    if (*text == 'x') {
        text++;
        if (!parse_whole(&text, height))
            return false;
    }
    return *text == '\0';
}

uint32_t *cogpu_parse_list(const char *text, uint32_t *count) {
    *count = 1;
    for (const char *c = text; *c; c++)
        *count += *c == ',';
    uint32_t *numbers = malloc(*count * sizeof *numbers);
    if (numbers && !cogpu_parse_wholes(text, numbers, *count)) {
        free(numbers);
        numbers = NULL;
    }
    return numbers;
}
