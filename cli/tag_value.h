/* The first values of a tag, as text and as JSON. */
#ifndef COGPU_CLI_TAG_VALUE_H
#define COGPU_CLI_TAG_VALUE_H

#include "cogpu.h"
#include "json.h"

enum { TAG_BYTES = 4096 };

typedef struct cogpu_tag_value {
    uint32_t type;
    uint32_t count;            /* of values taken */
    char bytes[TAG_BYTES + 1]; /* a NUL follows */
} cogpu_tag_value;

/* "SHORT", "RATIONAL", ...; "unknown". */
const char *cogpu_tag_type_name(uint32_t type);

/* Takes at most `limit` values; of text as many as fit. None of an unknown
 * type. */
cogpu_status cogpu_tag_value_read(const cogpu_file *file, uint32_t directory, const cogpu_tag *tag,
                                  uint32_t limit, cogpu_tag_value *value, cogpu_error *error);

/* A value of a type that holds whole numbers without a sign; 0 of others. */
uint64_t cogpu_tag_value_unsigned(const cogpu_tag_value *value, uint32_t index);

void cogpu_tag_value_print(const cogpu_tag_value *value);
/* A string for text, else a list; a rational is a list of two. */
void cogpu_tag_value_json(cogpu_json *json, const char *key, const cogpu_tag_value *value);

#endif
