/* Numbers from optional tags and from text. */
#ifndef COGPU_IMAGE_VALUES_H
#define COGPU_IMAGE_VALUES_H

#include "tiff/tiff.h"

#include <math.h>

/* All numbers of a tag. *count is 0 if the tag is absent, or if it cannot be read, which *warning
 * reports. Only memory and I/O fail. */
cogpu_status cogpu_values_doubles(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const double **values, uint32_t *count,
                                  const char **warning, cogpu_error *error);
cogpu_status cogpu_values_shorts(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 cogpu_arena *arena, const uint16_t **values, uint32_t *count,
                                 const char **warning, cogpu_error *error);
/* The `count` numbers of a tag with a default. On entry `values` holds the default; it stays if the
 * tag is absent. It also stays, with a warning, if the tag has another count, a type that libtiff
 * rejects, or a number above `most`. */
cogpu_status cogpu_values_wholes(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, uint32_t most, cogpu_arena *arena,
                                 uint32_t *values, const char **warning, cogpu_error *error);
cogpu_status cogpu_values_floats(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 uint32_t count, cogpu_arena *arena, float *values,
                                 const char **warning, cogpu_error *error);
/* The characters of a tag, NULs among them. */
cogpu_status cogpu_values_chars(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                cogpu_arena *arena, const char **values, uint32_t *count,
                                const char **warning, cogpu_error *error);

/* The number at the start of a text, as GDAL reads one: leading blanks and trailing text are
 * ignored, the point may be a comma, "nan" and "inf" are numbers, and so are the names that
 * Microsoft's library printed for them ("-1.#IND"). The process's locale does not matter. False
 * if the text does not start with a number. */
bool cogpu_number_parse(const char *text, double *value);

/* Whether the whole text is a number with '.' as its point. */
bool cogpu_number_is_whole_text(const char *text);

/* A number with enough digits to read back the same value, with '.' in any locale. */
enum { COGPU_NUMBER_CHARS = 32 };
void cogpu_number_format(double value, char text[COGPU_NUMBER_CHARS]);

static inline bool all_finite(const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(numbers[i]))
            return false;
    return true;
}

#endif
