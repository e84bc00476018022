/*
 * Numbers from optional tags and from text. A malformed optional tag (georeferencing, metadata,
 * bands) gives a warning and is ignored; the file stays readable.
 */
#include "image/values.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers read from a tag at a time; the longest text of a number. */
enum { STEP = 256, NUMBER_CHARS = 128 };

static bool is_soft(cogpu_status status) {
    return status != COGPU_OK && status != COGPU_OUT_OF_MEMORY && status != COGPU_IO_ERROR;
}

/* The tag if present and within the limits; else NULL, with a warning if it was present. */
static const cogpu_entry *find_usable_tag(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                          cogpu_arena *arena, const char **warning) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    if (!entry || !entry->count)
        return NULL;
    if (entry->bytes > tiff->limits.tag_bytes || entry->count > UINT32_MAX) {
        cogpu_warn(arena, warning, "%s exceeds the limit `tag_bytes` and was ignored",
                   cogpu_tag_name(tag));
        return NULL;
    }
    if (!cogpu_tiff_is_inside(tiff, entry)) {
        cogpu_warn(arena, warning, "%s is beyond the end of the file and was ignored",
                   cogpu_tag_name(tag));
        return NULL;
    }
    return entry;
}

/* Turns a failure of this tag alone into a warning. */
static cogpu_status warn_of_tag(cogpu_status status, uint16_t tag, cogpu_arena *arena,
                                const char **warning, cogpu_error *error) {
    if (!is_soft(status))
        return status;
    cogpu_error_clear(error);
    cogpu_warn(arena, warning, "%s cannot be read and was ignored", cogpu_tag_name(tag));
    return COGPU_OK;
}

/* Reads all values of a tag. */
typedef cogpu_status read_values(const cogpu_tiff *tiff, const cogpu_entry *entry, void *to,
                                 cogpu_error *error);

/* All values of an optional tag, `value_bytes` each in memory. */
static cogpu_status read_tag_values(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                    read_values *read, size_t value_bytes, cogpu_arena *arena,
                                    void **values, uint32_t *count, const char **warning,
                                    cogpu_error *error) {
    void *buffer = NULL;
    *values = NULL;
    *count = 0;
    const cogpu_entry *entry = find_usable_tag(tiff, directory, tag, arena, warning);
    if (!entry)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(arena, entry->count, value_bytes, &buffer, error));
    cogpu_status status = read(tiff, entry, buffer, error);
    if (status != COGPU_OK)
        return warn_of_tag(status, tag, arena, warning, error);
    *values = buffer;
    *count = (uint32_t)entry->count;
    return COGPU_OK;
}

static cogpu_status read_doubles(const cogpu_tiff *tiff, const cogpu_entry *entry, void *to,
                                 cogpu_error *error) {
    return cogpu_tiff_doubles(tiff, entry, 0, entry->count, to, error);
}

static cogpu_status read_shorts(const cogpu_tiff *tiff, const cogpu_entry *entry, void *to,
                                cogpu_error *error) {
    uint16_t *values = to;
    uint64_t step[STEP];
    for (uint64_t first = 0; first < entry->count; first += STEP) {
        uint64_t count = entry->count - first < STEP ? entry->count - first : STEP;
        TRY(cogpu_tiff_u64s(tiff, entry, first, count, step, error));
        for (uint64_t i = 0; i < count; i++) {
            if (step[i] > UINT16_MAX)
                return cogpu_fail(error, COGPU_CORRUPT, "a value of %s exceeds 65535",
                                  cogpu_tag_name(entry->tag));
            values[first + i] = (uint16_t)step[i];
        }
    }
    return COGPU_OK;
}

static cogpu_status read_chars(const cogpu_tiff *tiff, const cogpu_entry *entry, void *to,
                               cogpu_error *error) {
    return cogpu_tiff_type_bytes(entry->type) == 1
               ? cogpu_tiff_raw(tiff, entry, 0, entry->count, to, error)
               : COGPU_CORRUPT;
}

cogpu_status cogpu_values_doubles(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const double **values, uint32_t *count,
                                  const char **warning, cogpu_error *error) {
    void *read = NULL;
    TRY(read_tag_values(tiff, directory, tag, read_doubles, sizeof **values, arena, &read, count,
                        warning, error));
    *values = read;
    return COGPU_OK;
}

cogpu_status cogpu_values_shorts(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 cogpu_arena *arena, const uint16_t **values, uint32_t *count,
                                 const char **warning, cogpu_error *error) {
    void *read = NULL;
    TRY(read_tag_values(tiff, directory, tag, read_shorts, sizeof **values, arena, &read, count,
                        warning, error));
    *values = read;
    return COGPU_OK;
}

cogpu_status cogpu_values_chars(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                cogpu_arena *arena, const char **values, uint32_t *count,
                                const char **warning, cogpu_error *error) {
    void *read = NULL;
    TRY(read_tag_values(tiff, directory, tag, read_chars, sizeof **values, arena, &read, count,
                        warning, error));
    *values = read;
    return COGPU_OK;
}

/* ---- tags with a default -------------------------------------------------------------------- */

/* Maximum number of values of such a tag. */
enum { FIXED_MAX = 6 };

static bool is_whole_type(uint16_t type) {
    return type == TYPE_BYTE || type == TYPE_SHORT || type == TYPE_LONG || type == TYPE_LONG8 ||
           type == TYPE_SBYTE || type == TYPE_SSHORT || type == TYPE_SLONG || type == TYPE_SLONG8;
}

static bool is_number_type(uint16_t type) {
    return is_whole_type(type) || type == TYPE_RATIONAL || type == TYPE_SRATIONAL ||
           type == TYPE_FLOAT || type == TYPE_DOUBLE;
}

/* The tag's numbers, and whether all are present: 0 to `most` if they must be integers. */
static cogpu_status read_fixed(const cogpu_tiff *tiff, uint32_t directory, const cogpu_entry *entry,
                               uint32_t count, bool is_whole, uint32_t most, cogpu_arena *arena,
                               double found[FIXED_MAX], bool *is_valid, const char **warning,
                               cogpu_error *error) {
    *is_valid = entry->count == count &&
                (is_whole ? is_whole_type(entry->type) : is_number_type(entry->type));
    cogpu_status status =
        *is_valid ? cogpu_tiff_doubles(tiff, entry, 0, count, found, error) : COGPU_OK;
    if (status != COGPU_OK && !is_soft(status))
        return status;
    *is_valid = *is_valid && status == COGPU_OK;
    cogpu_error_clear(error);
    for (uint32_t i = 0; *is_valid && is_whole && i < count; i++)
        *is_valid = found[i] >= 0 && found[i] <= most;
    if (!*is_valid)
        cogpu_warn(
            arena, warning,
            "%s of directory %u has %llu values of type %u, expected %u number%s; the default "
            "is used",
            cogpu_tag_name(entry->tag), directory, (unsigned long long)entry->count, entry->type,
            count, count == 1 ? "" : "s");
    return COGPU_OK;
}

cogpu_status cogpu_values_wholes(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, uint32_t most, cogpu_arena *arena,
                                 uint32_t *values, const char **warning, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    double found[FIXED_MAX];
    bool is_valid = false;
    if (entry)
        TRY(read_fixed(tiff, directory, entry, count, true, most, arena, found, &is_valid, warning,
                       error));
    for (uint32_t i = 0; is_valid && i < count; i++)
        values[i] = (uint32_t)found[i];
    return COGPU_OK;
}

cogpu_status cogpu_values_floats(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, cogpu_arena *arena, float *values,
                                 const char **warning, cogpu_error *error) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, tag);
    double found[FIXED_MAX];
    bool is_valid = false;
    if (entry)
        TRY(read_fixed(tiff, directory, entry, count, false, 0, arena, found, &is_valid, warning,
                       error));
    for (uint32_t i = 0; is_valid && i < count; i++)
        values[i] = (float)found[i];
    return COGPU_OK;
}

/* ---- text ---------------------------------------------------------------------------------- */

static bool starts_with(const char *text, const char *word) {
    while (*word && ascii_lower(*text) == *word)
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

/* Copies a decimal number with '.' as its point, so that strtod sees no hexadecimals and no words.
 * Returns 0 if there is none, or if it is too long. */
static size_t copy_decimal(const char *text, char number[NUMBER_CHARS]) {
    size_t length = 0, digits = 0;
    bool point = false;
    for (; length + 1 < NUMBER_CHARS; length++) {
        char c = text[length];
        if (ascii_is_digit(c))
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
    if (ascii_lower(text[exponent]) == 'e') {
        exponent++;
        if (text[exponent] == '+' || text[exponent] == '-')
            exponent++;
        if (ascii_is_digit(text[exponent])) {
            while (ascii_is_digit(text[exponent]))
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

/* strtod uses the locale's decimal point: switch the thread to the C locale. */
static bool convert_number(const char *number, double *value) {
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
    while (ascii_is_digit(*text))
        text++;
    return text;
}

bool cogpu_number_is_whole_text(const char *text) {
    if (*text == '-' || *text == '+')
        text++;
    if (is_same_name(text, "nan") || is_same_name(text, "inf") || is_same_name(text, "infinity"))
        return true;
    const char *end = past_digits(text);
    size_t digits = (size_t)(end - text);
    if (*end == '.') {
        const char *fraction = end + 1;
        end = past_digits(fraction);
        digits += (size_t)(end - fraction);
    }
    if (digits && ascii_lower(*end) == 'e') {
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
    /* The locale's decimal point has one or more bytes: none is an ASCII letter, digit or sign. */
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
    if (!parse_word(text, value) && !(copy_decimal(text, number) && convert_number(number, value)))
        return false;
    if (negative)
        *value = -*value;
    return true;
}
