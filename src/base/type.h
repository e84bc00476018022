/*
 * The table of sample types. All that the library knows of a type by itself is one row; code that
 * needs a property reads the row and does not depend on the order of the enumeration.
 */
#ifndef COGPU_BASE_TYPE_H
#define COGPU_BASE_TYPE_H

#include "cogpu.h"

#include <stdbool.h>

/* SampleFormat, tag 339 (TIFF 6.0 section 19; 5 and 6 are of libtiff and GDAL). */
typedef enum cogpu_sample_format {
    SAMPLE_FORMAT_UNSIGNED = 1,
    SAMPLE_FORMAT_SIGNED = 2,
    SAMPLE_FORMAT_FLOAT = 3,
    SAMPLE_FORMAT_COMPLEX_INTEGER = 5,
    SAMPLE_FORMAT_COMPLEX_FLOAT = 6
} cogpu_sample_format;

typedef struct cogpu_type_row {
    const char *name;      /* NumPy's, where NumPy has the type */
    const char *gdal_name; /* also accepted by cogpu_type_parse */
    size_t bytes;
    cogpu_sample_format format;
    cogpu_type part; /* of complex types: the type of each of the two numbers */
} cogpu_type_row;

enum { COGPU_TYPE_COUNT = COGPU_TYPE_CF64 + 1 };
extern const cogpu_type_row cogpu_type_table[COGPU_TYPE_COUNT];

static inline cogpu_sample_format cogpu_type_format(cogpu_type type) {
    return cogpu_type_table[(unsigned)type < COGPU_TYPE_COUNT ? type : COGPU_TYPE_NONE].format;
}

/* A real floating-point type. */
static inline bool cogpu_type_is_float(cogpu_type type) {
    return cogpu_type_format(type) == SAMPLE_FORMAT_FLOAT;
}

/* A pair of numbers, integers or floats. */
static inline bool cogpu_type_is_complex(cogpu_type type) {
    cogpu_sample_format format = cogpu_type_format(type);
    return format == SAMPLE_FORMAT_COMPLEX_INTEGER || format == SAMPLE_FORMAT_COMPLEX_FLOAT;
}

/* Real or complex integers. */
static inline bool cogpu_type_is_integer(cogpu_type type) {
    cogpu_sample_format format = cogpu_type_format(type);
    return format == SAMPLE_FORMAT_UNSIGNED || format == SAMPLE_FORMAT_SIGNED ||
           format == SAMPLE_FORMAT_COMPLEX_INTEGER;
}

/* The type of one number of a sample: the type itself unless it is complex. */
static inline cogpu_type cogpu_type_part(cogpu_type type) {
    return cogpu_type_is_complex(type) ? cogpu_type_table[type].part : type;
}

/* The smallest type that holds all values of both; COGPU_TYPE_NONE if one is complex and the other
 * differs. 64-bit integers of both signs become F64, as in GDAL. */
cogpu_type cogpu_type_union(cogpu_type a, cogpu_type b);

/* Bytes of one number: half a sample of complex types. Byte order is a matter of numbers. */
static inline size_t cogpu_type_number_bytes(cogpu_type type) {
    return cogpu_type_bytes(type) / (cogpu_type_is_complex(type) ? 2 : 1);
}

#endif
