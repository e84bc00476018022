/*
 * The first values of a tag, as text and as JSON.
 */
#include "tag_value.h"

#include "sample.h"
#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_ASCII = 2 };

/* A value is `parts` numbers of the sample type `part`. */
static const struct {
    const char *name;
    cogpu_type part;
    uint32_t parts;
} types[] = {
    [1] = {"BYTE", COGPU_TYPE_U8, 1},      [2] = {"ASCII", COGPU_TYPE_U8, 1},
    [3] = {"SHORT", COGPU_TYPE_U16, 1},    [4] = {"LONG", COGPU_TYPE_U32, 1},
    [5] = {"RATIONAL", COGPU_TYPE_U32, 2}, [6] = {"SBYTE", COGPU_TYPE_I8, 1},
    [7] = {"UNDEFINED", COGPU_TYPE_U8, 1}, [8] = {"SSHORT", COGPU_TYPE_I16, 1},
    [9] = {"SLONG", COGPU_TYPE_I32, 1},    [10] = {"SRATIONAL", COGPU_TYPE_I32, 2},
    [11] = {"FLOAT", COGPU_TYPE_F32, 1},   [12] = {"DOUBLE", COGPU_TYPE_F64, 1},
    [13] = {"IFD", COGPU_TYPE_U32, 1},     [16] = {"LONG8", COGPU_TYPE_U64, 1},
    [17] = {"SLONG8", COGPU_TYPE_I64, 1},  [18] = {"IFD8", COGPU_TYPE_U64, 1},
};

static bool is_known(uint32_t type) {
    return type < sizeof types / sizeof types[0] && types[type].name;
}

const char *cogpu_tag_type_name(uint32_t type) {
    return is_known(type) ? types[type].name : "unknown";
}

static size_t value_bytes(uint32_t type) {
    return cogpu_type_bytes(types[type].part) * types[type].parts;
}

cogpu_status cogpu_tag_value_read(const cogpu_file *file, uint32_t directory, const cogpu_tag *tag,
                                  uint32_t limit, cogpu_tag_value *value, cogpu_error *error) {
    memset(value, 0, sizeof *value);
    value->type = tag->type;
    if (!is_known(tag->type) || tag->count == 0)
        return COGPU_OK;
    uint64_t most = TAG_BYTES / value_bytes(tag->type);
    if (tag->type != TYPE_ASCII && limit < most)
        most = limit;
    uint64_t count = tag->count < most ? tag->count : most;
    value->count = (uint32_t)count;
    return cogpu_tag_read(file, directory, tag->id, 0, count, value->bytes, error);
}

static const void *part_at(const cogpu_tag_value *value, uint32_t index, uint32_t part) {
    return value->bytes + value_bytes(value->type) * index +
           cogpu_type_bytes(types[value->type].part) * part;
}

uint64_t cogpu_tag_value_unsigned(const cogpu_tag_value *value, uint32_t index) {
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    if (index >= value->count)
        return 0;
    const void *from = part_at(value, index, 0);
    switch (types[value->type].part) {
    case COGPU_TYPE_U8:
        return *(const uint8_t *)from;
    case COGPU_TYPE_U16:
        memcpy(&u16, from, sizeof u16);
        return u16;
    case COGPU_TYPE_U32:
        memcpy(&u32, from, sizeof u32);
        return u32;
    case COGPU_TYPE_U64:
        memcpy(&u64, from, sizeof u64);
        return u64;
    default:
        return 0;
    }
}

void cogpu_tag_value_print(const cogpu_tag_value *value) {
    enum { SHOWN_CHARACTERS = 60 };
    char text[SAMPLE_TEXT];
    if (value->type == TYPE_ASCII) {
        cogpu_text_print(stdout, value->bytes, SHOWN_CHARACTERS);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        for (uint32_t part = 0; part < types[value->type].parts; part++) {
            cogpu_sample_text(types[value->type].part, part_at(value, i, part), text);
            printf("%s%s", part > 0 ? "/" : i > 0 ? " " : "", text);
        }
    }
}

static void json_part(cogpu_json *json, cogpu_type type, const void *part) {
    char text[SAMPLE_TEXT];
    double number;
    float small;
    if (type == COGPU_TYPE_F64) {
        memcpy(&number, part, sizeof number);
        cogpu_json_number(json, NULL, number);
    } else if (type == COGPU_TYPE_F32) {
        memcpy(&small, part, sizeof small);
        cogpu_json_number(json, NULL, (double)small);
    } else {
        cogpu_sample_text(type, part, text);
        cogpu_json_plain(json, NULL, text);
    }
}

void cogpu_tag_value_json(cogpu_json *json, const char *key, const cogpu_tag_value *value) {
    if (value->type == TYPE_ASCII) {
        cogpu_json_text(json, key, value->bytes);
        return;
    }
    cogpu_json_open(json, key, '-');
    for (uint32_t i = 0; i < value->count; i++) {
        uint32_t parts = types[value->type].parts;
        if (parts > 1)
            cogpu_json_open(json, NULL, '-');
        for (uint32_t part = 0; part < parts; part++)
            json_part(json, types[value->type].part, part_at(value, i, part));
        if (parts > 1)
            cogpu_json_close(json);
    }
    cogpu_json_close(json);
}
