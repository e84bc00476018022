/* Samples of any type: their text, their bytes in a file, and how far two of them are apart. */
#ifndef COGPU_CLI_SAMPLE_H
#define COGPU_CLI_SAMPLE_H

#include "cogpu.h"

#include <stdbool.h>

enum { SAMPLE_TEXT = 80 };

/* float16, float32 or float64. */
bool cogpu_sample_is_float(cogpu_type type);
bool cogpu_sample_is_complex(cogpu_type type);
/* The smallest float type, from float32 on, that holds each value of a real type. */
cogpu_type cogpu_sample_float_type(cogpu_type type);

/* "-12", "0.25", "1.5-2i"; floats in the shortest form that reads back the same. */
void cogpu_sample_text(cogpu_type type, const void *sample, char text[SAMPLE_TEXT]);

/* By value: nan equals nan, and -0 equals 0. */
bool cogpu_sample_equal(cogpu_type type, const void *a, const void *b);

/* The absolute difference; nan where one of them is nan. Exact for integers, since a long double
 * holds 64 bits on the machines that we build for. */
long double cogpu_sample_distance(cogpu_type type, const void *a, const void *b);

/* The value of a COGPU_TYPE_F16. */
double cogpu_sample_half(const void *sample);

/* Turns samples of this machine into little endian ones: nothing to do on most. */
void cogpu_sample_to_file(cogpu_type type, void *samples, size_t count);

#endif
