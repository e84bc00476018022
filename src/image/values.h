/* Numbers out of tags that a file can do without, and out of text. */
#ifndef COGPU_IMAGE_VALUES_H
#define COGPU_IMAGE_VALUES_H

#include "tiff/tiff.h"

/* All numbers of a tag. Where the tag is absent *count is 0; where it cannot be read it is named in
 * *warning and *count is 0 as well. Only memory and I/O fail. */
cogpu_status cogpu_values_doubles(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const double **values, uint32_t *count,
                                  const char **warning, cogpu_error *error);
cogpu_status cogpu_values_shorts(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                 cogpu_arena *arena, const uint16_t **values, uint32_t *count,
                                 const char **warning, cogpu_error *error);
/* The `count` numbers of a tag that has a default, which is in `values` already and stays there
 * where the tag is absent. So it does where the tag holds another number of values, is of a type
 * that libtiff does not take for it, or holds a number beyond `most`: then it is named in *warning.
 */
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

/* The number at the start of a text, as GDAL reads one: blanks before it and anything after it are
 * passed over, the point may be a comma, "nan" and "inf" are numbers, and so are the names that
 * Microsoft's library printed for them ("-1.#IND"). The process's locale does not matter. False
 * where the text does not start with a number. */
bool cogpu_number_parse(const char *text, double *value);

/* Is the whole text a number, with a point and nothing after it? */
bool cogpu_number_is_whole_text(const char *text);

/* A number with all its digits and a point, whatever the process's locale; what reads it back is
 * the same number. */
enum { COGPU_NUMBER_CHARS = 32 };
void cogpu_number_format(double value, char text[COGPU_NUMBER_CHARS]);

/* Equal but for the case of ASCII letters, in any locale. */
bool cogpu_text_same(const char *a, const char *b);

#endif
