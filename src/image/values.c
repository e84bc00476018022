/*
 * Takes a tag or a text, hands on numbers. It is here because georeference, metadata and bands all
 * read tags that a file can do without: what is unsound there costs a warning and not the file.
 */
#include "image/values.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers that are taken from a tag at a time; and what the longest text of a number may have. */
enum { STEP = 256, NUMBER_CHARS = 128 };

static bool is_soft(cogpu_status status) {
    return status != COGPU_OK && status != COGPU_MEMORY && status != COGPU_IO;
}

/* The tag if it is there and within the limits; else NULL, and a warning where one is due. */
static const cogpu_entry *usable(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 cogpu_arena *arena, const char **warning) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    if (!entry || !entry->count)
        return NULL;
    if (entry->bytes > tiff->limits.tag_bytes || entry->count > UINT32_MAX) {
        cogpu_warn(arena, warning, "%s is larger than the limit tag_bytes and was left out",
                   cogpu_tag_name(tag));
        return NULL;
    }
    if (!cogpu_tiff_is_inside(tiff, entry)) {
        cogpu_warn(arena, warning, "%s lies beyond the end of the file and was left out",
                   cogpu_tag_name(tag));
        return NULL;
    }
    return entry;
}

/* Turns a failure that only this tag has to bear into a warning. */
static cogpu_status soften(cogpu_status status, uint16_t tag, cogpu_arena *arena,
                           const char **warning, cogpu_error *error) {
    if (!is_soft(status))
        return status;
    cogpu_error_clear(error);
    cogpu_warn(arena, warning, "%s cannot be read and was left out", cogpu_tag_name(tag));
    return COGPU_OK;
}

cogpu_status cogpu_values_doubles(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const double **values, uint32_t *count,
                                  const char **warning, cogpu_error *error) {
    *values = NULL;
    *count = 0;
    const cogpu_entry *entry = usable(tiff, directory, tag, arena, warning);
    if (!entry)
        return COGPU_OK;
    double *room = NULL;
    TRY(cogpu_arena_take(arena, entry->count, sizeof *room, &room, error));
    cogpu_status status = cogpu_tiff_doubles(tiff, entry, 0, entry->count, room, error);
    if (status != COGPU_OK)
        return soften(status, tag, arena, warning, error);
    *values = room;
    *count = (uint32_t)entry->count;
    return COGPU_OK;
}

static cogpu_status read_shorts(const cogpu_tiff *tiff, const cogpu_entry *entry, uint16_t *to,
                                cogpu_error *error) {
    uint64_t step[STEP];
    for (uint64_t first = 0; first < entry->count; first += STEP) {
        uint64_t count = entry->count - first < STEP ? entry->count - first : STEP;
        TRY(cogpu_tiff_u64s(tiff, entry, first, count, step, error));
        for (uint64_t i = 0; i < count; i++) {
            if (step[i] > UINT16_MAX)
                return cogpu_fail(error, COGPU_CORRUPT, "a value of %s is beyond 65535",
                                  cogpu_tag_name(entry->tag));
            to[first + i] = (uint16_t)step[i];
        }
    }
    return COGPU_OK;
}

cogpu_status cogpu_values_shorts(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 cogpu_arena *arena, const uint16_t **values, uint32_t *count,
                                 const char **warning, cogpu_error *error) {
    *values = NULL;
    *count = 0;
    const cogpu_entry *entry = usable(tiff, directory, tag, arena, warning);
    if (!entry)
        return COGPU_OK;
    uint16_t *room = NULL;
    TRY(cogpu_arena_take(arena, entry->count, sizeof *room, &room, error));
    cogpu_status status = read_shorts(tiff, entry, room, error);
    if (status != COGPU_OK)
        return soften(status, tag, arena, warning, error);
    *values = room;
    *count = (uint32_t)entry->count;
    return COGPU_OK;
}

/* ---- tags with a default -------------------------------------------------------------------- */

/* Values that such a tag has at most. */
enum { FIXED_MAX = 6 };

static bool is_whole_type(uint16_t type) {
    return type == TYPE_BYTE || type == TYPE_SHORT || type == TYPE_LONG || type == TYPE_LONG8 ||
           type == TYPE_SBYTE || type == TYPE_SSHORT || type == TYPE_SLONG || type == TYPE_SLONG8;
}

static bool is_number_type(uint16_t type) {
    return is_whole_type(type) || type == TYPE_RATIONAL || type == TYPE_SRATIONAL ||
           type == TYPE_FLOAT || type == TYPE_DOUBLE;
}

/* The tag's numbers, and whether it has all of them, from 0 to `most` where they are to be whole.
 */
static cogpu_status read_fixed(const cogpu_tiff *tiff, uint32_t directory, const cogpu_entry *entry,
                               uint32_t count, bool is_whole, uint32_t most, cogpu_arena *arena,
                               double found[FIXED_MAX], bool *is_sound, const char **warning,
                               cogpu_error *error) {
    *is_sound = entry->count == count &&
                (is_whole ? is_whole_type(entry->type) : is_number_type(entry->type));
    cogpu_status status =
        *is_sound ? cogpu_tiff_doubles(tiff, entry, 0, count, found, error) : COGPU_OK;
    if (status != COGPU_OK && !is_soft(status))
        return status;
    *is_sound = *is_sound && status == COGPU_OK;
    cogpu_error_clear(error);
    for (uint32_t i = 0; *is_sound && is_whole && i < count; i++)
        *is_sound = found[i] >= 0 && found[i] <= most;
    if (!*is_sound)
        cogpu_warn(arena, warning,
                   "%s of directory %u (%llu values of type %u) is not the %u number%s that it "
                   "should be; its default is used",
                   cogpu_tag_name(entry->tag), directory, (unsigned long long)entry->count,
                   entry->type, count, count == 1 ? "" : "s");
    return COGPU_OK;
}

cogpu_status cogpu_values_wholes(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, uint32_t most, cogpu_arena *arena,
                                 uint32_t *values, const char **warning, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    double found[FIXED_MAX];
    bool is_sound = false;
    if (entry)
        TRY(read_fixed(tiff, directory, entry, count, true, most, arena, found, &is_sound, warning,
                       error));
    for (uint32_t i = 0; is_sound && i < count; i++)
        values[i] = (uint32_t)found[i];
    return COGPU_OK;
}

cogpu_status cogpu_values_floats(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, cogpu_arena *arena, float *values,
                                 const char **warning, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    double found[FIXED_MAX];
    bool is_sound = false;
    if (entry)
        TRY(read_fixed(tiff, directory, entry, count, false, 0, arena, found, &is_sound, warning,
                       error));
    for (uint32_t i = 0; is_sound && i < count; i++)
        values[i] = (float)found[i];
    return COGPU_OK;
}

cogpu_status cogpu_values_chars(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                cogpu_arena *arena, const char **values, uint32_t *count,
                                const char **warning, cogpu_error *error) {
    *values = NULL;
    *count = 0;
    const cogpu_entry *entry = usable(tiff, directory, tag, arena, warning);
    if (!entry)
        return COGPU_OK;
    char *room = NULL;
    TRY(cogpu_arena_take(arena, entry->bytes, 1, &room, error));
    cogpu_status status = cogpu_tiff_type_bytes(entry->type) == 1
                              ? cogpu_tiff_raw(tiff, entry, 0, entry->count, room, error)
                              : COGPU_CORRUPT;
    if (status != COGPU_OK)
        return soften(status, tag, arena, warning, error);
    *values = room;
    *count = (uint32_t)entry->bytes;
    return COGPU_OK;
}

/* ---- text ---------------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool cogpu_text_same(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) == lower(*b);
}

static bool starts_with(const char *text, const char *word) {
    while (*word && lower(*text) == *word)
        text++, word++;
    return !*word;
}

static bool parse_word(const char *text, double *value) {
    static const char *const nans[] = {"nan", "1.#qnan", "1.#snan", "1.#ind"};
    static const char *const infinities[] = {"inf", "1.#inf"};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++)
        if (starts_with(text, nans[i]))
            return *value = NAN, true;
    for (size_t i = 0; i < sizeof infinities / sizeof *infinities; i++)
        if (starts_with(text, infinities[i]))
            return *value = INFINITY, true;
    return false;
}

/* Copies what is a decimal number, its point a '.', so that strtod sees nothing else: no
 * hexadecimals, no words. 0 where there is none, or one too long to be meant. */
static size_t copy_decimal(const char *text, char number[NUMBER_CHARS]) {
    size_t length = 0, digits = 0;
    bool point = false;
    for (; length + 1 < NUMBER_CHARS; length++) {
        char c = text[length];
        if (is_digit(c))
            digits++;
        else if ((c == '.' || c == ',') && !point)
            point = true, c = '.';
        else
            break;
        number[length] = c;
    }
    if (!digits)
        return 0;
    size_t exponent = length;
    if (lower(text[exponent]) == 'e') {
        exponent++;
        if (text[exponent] == '+' || text[exponent] == '-')
            exponent++;
        if (is_digit(text[exponent])) {
            while (is_digit(text[exponent]))
                exponent++;
            if (exponent >= NUMBER_CHARS)
                return 0;
            memcpy(number + length, text + length, exponent - length);
            length = exponent;
        }
    }
    if (length + 1 >= NUMBER_CHARS)
        return 0;
    number[length] = '\0';
    return length;
}

/* strtod takes the decimal point from the thread's locale; so that is C for the moment. */
static bool convert(const char *number, double *value) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return false;
    locale_t before = uselocale(plain);
    *value = strtod(number, NULL);
    uselocale(before);
    freelocale(plain);
    return true;
}

static const char *past_digits(const char *text) {
    while (is_digit(*text))
        text++;
    return text;
}

bool cogpu_number_is_whole_text(const char *text) {
    if (*text == '-' || *text == '+')
        text++;
    if (cogpu_text_same(text, "nan") || cogpu_text_same(text, "inf") ||
        cogpu_text_same(text, "infinity"))
        return true;
    const char *end = past_digits(text);
    size_t digits = (size_t)(end - text);
    if (*end == '.') {
        const char *fraction = end + 1;
        end = past_digits(fraction);
        digits += (size_t)(end - fraction);
    }
    if (digits && lower(*end) == 'e') {
        const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
        end = past_digits(exponent);
        if (end == exponent)
            return false;
    }
    return digits && !*end;
}

void cogpu_number_format(double value, char text[COGPU_NUMBER_CHARS]) {
    if (isnan(value)) {
        memcpy(text, "nan", sizeof "nan");
        return;
    }
    snprintf(text, COGPU_NUMBER_CHARS, "%.17g", value);
    /* The locale's point, of one byte or more, is all that is no ASCII letter, digit or sign. */
    size_t length = strspn(text, "+-0123456789einf"), rest = length;
    while (text[rest] && !strchr("+-0123456789e", text[rest]))
        rest++;
    if (rest == length)
        return;
    text[length] = '.';
    memmove(text + length + 1, text + rest, strlen(text + rest) + 1);
}

bool cogpu_number_parse(const char *text, double *value) {
    while (*text == ' ' || (*text >= '\t' && *text <= '\r'))
        text++;
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    char number[NUMBER_CHARS];
    if (!parse_word(text, value) && !(copy_decimal(text, number) && convert(number, value)))
        return false;
    if (negative)
        *value = -*value;
    return true;
}
