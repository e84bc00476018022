/*
 * Structs of cogpu.h as dicts, field by field, and numbers and texts of Python as C has them.
 */
#ifndef COGPU_PYTHON_FIELDS_H
#define COGPU_PYTHON_FIELDS_H

#include "errors.h"

#include <stdbool.h>
#include <stddef.h>

enum field_kind {
    FIELD_U32,
    FIELD_I32,
    FIELD_U64,
    FIELD_I64,
    FIELD_FLAG,
    FIELD_DOUBLE,
    FIELD_TEXT,
    FIELD_TYPE
};

/* A field of a struct: its name in Python, its type and its offset. */
struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};

#define FIELD(type, member, kind)                                                                  \
    { #member, kind, offsetof(type, member) }
#define FIELD_COUNT(table) (sizeof(table) / sizeof *(table))

/* Adds the fields to a dict; false with an exception. */
bool fields_add(PyObject *dict, const struct field *fields, size_t count, const void *from);
PyObject *fields_dict(const struct field *fields, size_t count, const void *from);
/* Adds one value, whose reference it takes; false with an exception, also where value is NULL. */
bool dict_add(PyObject *dict, const char *name, PyObject *value);
/* As dict_add, for lists. */
bool list_add(PyObject *list, PyObject *value);

/* UTF-8, or what a file has in its place; None for NULL. */
PyObject *text_object(const char *text);

/* Whole numbers, but not bools: TypeError for what is no number, InvalidArgumentError for what is
 * out of range. The name is the parameter's. */
bool number_u32(PyObject *value, const char *name, uint32_t *to);
bool number_u64(PyObject *value, const char *name, uint64_t *to);
bool number_i64(PyObject *value, const char *name, int64_t *to);

/* A tuple of two, as DLPack has devices and versions. */
bool number_pair(PyObject *value, const char *name, int *first, int *second);

/* "float32" -> COGPU_TYPE_F32; InvalidArgumentError for others. */
bool type_parse(PyObject *name, const char *parameter, cogpu_type *type);
/* "pixels" or "mask", as `content`. */
bool content_parse(PyObject *name, cogpu_content *content);

#endif
