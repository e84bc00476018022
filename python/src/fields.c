/*
 * Converts structs of the library to dicts, and Python numbers and strings to C values.
 */
#include "fields.h"

#include <string.h>

PyObject *text_object(const char *text) {
    if (!text)
        return Py_NewRef(Py_None);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *field_object(const struct field *field, const void *from) {
    const void *at = (const char *)from + field->offset;
    switch (field->kind) {
    case FIELD_U32:
        return PyLong_FromUnsignedLong(*(const uint32_t *)at);
    case FIELD_I32:
        return PyLong_FromLong(*(const int32_t *)at);
    case FIELD_U64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    case FIELD_I64:
        return PyLong_FromLongLong(*(const int64_t *)at);
    case FIELD_FLAG:
        return PyBool_FromLong(*(const int *)at);
    case FIELD_DOUBLE:
        return PyFloat_FromDouble(*(const double *)at);
    case FIELD_TEXT:
        return text_object(*(const char *const *)at);
    case FIELD_TYPE:
        return text_object(cogpu_type_name(*(const cogpu_type *)at));
    }
    return NULL;
}

bool dict_add(PyObject *dict, const char *name, PyObject *value) {
    bool is_added = value && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return is_added;
}

bool list_add(PyObject *list, PyObject *value) {
    bool is_added = value && PyList_Append(list, value) == 0;
    Py_XDECREF(value);
    return is_added;
}

bool fields_add(PyObject *dict, const struct field *fields, size_t count, const void *from) {
    for (size_t i = 0; i < count; i++)
        if (!dict_add(dict, fields[i].name, field_object(&fields[i], from)))
            return false;
    return true;
}

PyObject *fields_dict(const struct field *fields, size_t count, const void *from) {
    PyObject *dict = PyDict_New();
    if (dict && !fields_add(dict, fields, count, from))
        Py_CLEAR(dict);
    return dict;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

/* A new int of what counts as one; a bool does not, since band=True is a mistake. */
static PyObject *whole_number(PyObject *value, const char *name) {
    if (!PyBool_Check(value) && PyIndex_Check(value))
        return PyNumber_Index(value);
    PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name, Py_TYPE(value));
    return NULL;
}

bool number_i64(PyObject *value, const char *name, int64_t *to) {
    PyObject *number = whole_number(value, name);
    if (!number)
        return false;
    int is_beyond = 0;
    *to = PyLong_AsLongLongAndOverflow(number, &is_beyond);
    Py_DECREF(number);
    if (is_beyond)
        raise_argument("%s is out of range: %R", name, value);
    return !PyErr_Occurred();
}

bool number_u64(PyObject *value, const char *name, uint64_t *to) {
    PyObject *number = whole_number(value, name);
    if (!number)
        return false;
    *to = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (PyErr_Occurred()) { /* negative, or more than 64 bits */
        PyErr_Clear();
        return raise_argument("%s is out of range: %R", name, value);
    }
    return true;
}

bool number_u32(PyObject *value, const char *name, uint32_t *to) {
    uint64_t wide = 0;
    if (!number_u64(value, name, &wide))
        return false;
    *to = (uint32_t)wide;
    return wide <= UINT32_MAX || raise_argument("%s is out of range: %R", name, value);
}

bool number_pair(PyObject *value, const char *name, int *first, int *second) {
    if (PyTuple_Check(value) && PyTuple_Size(value) == 2)
        return PyArg_ParseTuple(value, "ii", first, second);
    PyErr_Format(PyExc_TypeError, "%s must be a tuple of two ints, not %R", name, value);
    return false;
}

bool type_parse(PyObject *name, const char *parameter, cogpu_type *type) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "%s must be a str such as 'float32', not %R", parameter,
                     Py_TYPE(name));
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text)
        return false;
    if (cogpu_type_parse(text, type, NULL) == COGPU_OK)
        return true;
    return raise_argument(
        "%s has no type %R; there are uint8 to uint64, int8 to int64, float16 to float64, "
        "complex64 and complex128",
        parameter, name);
}

bool content_parse(PyObject *name, cogpu_content *content) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "content must be 'pixels' or 'mask', not %R", name);
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    return text && (cogpu_content_parse(text, content, NULL) == COGPU_OK ||
                    raise_argument("content must be 'pixels' or 'mask', not %R", name));
}
