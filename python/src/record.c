/*
 * Converts Python dicts, numbers and strings to C structs, in memory that is released at once.
 */
#include "record.h"

#include <limits.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

struct piece {
    struct piece *before;
    max_align_t memory[];
};

void *arena_take(struct arena *arena, size_t count, size_t size) {
    struct piece *piece = NULL;
    if (count <= (PY_SSIZE_T_MAX - sizeof *piece) / size)
        piece = PyMem_Calloc(1, sizeof *piece + count * size);
    if (!piece)
        return PyErr_NoMemory();
    piece->before = arena->last;
    arena->last = piece;
    return piece->memory;
}

void arena_release(struct arena *arena) {
    while (arena->last) {
        struct piece *piece = arena->last;
        arena->last = piece->before;
        PyMem_Free(piece);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

bool raise_type(const char *name, const char *due, PyObject *value) {
    PyObject *type = PyType_GetName(Py_TYPE(value));
    if (type)
        PyErr_Format(PyExc_TypeError, "%s must be %s, not %U", name, due, type);
    Py_XDECREF(type);
    return false;
}

bool number_between(PyObject *value, const char *name, int64_t least, uint64_t most, uint64_t *to) {
    if (least == 0)
        return number_u64(value, name, to) &&
               (*to <= most || raise_argument("%s must be from 0 to %llu, not %llu", name,
                                              (unsigned long long)most, (unsigned long long)*to));
    int64_t number = 0;
    if (!number_i64(value, name, &number))
        return false;
    *to = (uint64_t)number;
    return (number >= least && (number < 0 || *to <= most)) ||
           raise_argument("%s must be from %lld to %llu, not %lld", name, (long long)least,
                          (unsigned long long)most, (long long)number);
}

bool number_real(PyObject *value, const char *name, double *to) {
    if (PyBool_Check(value))
        return raise_type(name, "a number", value);
    *to = PyFloat_AsDouble(value);
    if (*to != -1 || !PyErr_Occurred())
        return true;
    return PyErr_ExceptionMatches(PyExc_TypeError) && raise_type(name, "a number", value);
}

PyObject *members_of(PyObject *value, const char *name, Py_ssize_t count) {
    PyObject *members = PySequence_Tuple(value);
    if (!members) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            raise_type(name, "a sequence", value);
        return NULL;
    }
    if (count < 0 || PyTuple_Size(members) == count)
        return members;
    raise_argument("%s must have %zd members, not %zd", name, count, PyTuple_Size(members));
    Py_DECREF(members);
    return NULL;
}

static char *copy_text(struct arena *arena, PyObject *bytes, const char *name) {
    char *from = NULL, *to = NULL;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(bytes, &from, &length) < 0)
        return NULL;
    if (strlen(from) != (size_t)length)
        return (char *)raise_argument("%s must be a text without a NUL", name);
    to = arena_take(arena, (size_t)length + 1, 1);
    return to ? memcpy(to, from, (size_t)length) : NULL;
}

const char *arena_text(struct arena *arena, PyObject *text, const char *name) {
    if (!PyUnicode_Check(text)) {
        raise_type(name, "a str", text);
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    const char *copy = bytes ? copy_text(arena, bytes, name) : NULL;
    Py_XDECREF(bytes);
    return copy;
}

bool numbers_real(PyObject *value, const char *name, Py_ssize_t count, double *to) {
    PyObject *members = members_of(value, name, count);
    bool is_read = members != NULL;
    for (Py_ssize_t i = 0; is_read && i < count; i++)
        is_read = number_real(PyTuple_GetItem(members, i), name, &to[i]);
    Py_XDECREF(members);
    return is_read;
}

/* ---- entries --------------------------------------------------------------------------------- */

void *entry_place(const struct entry *entry, void *record) {
    return (char *)record + entry->offset;
}

bool entry_flag(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    uint64_t number = value == Py_True;
    if (!PyBool_Check(value) && !number_between(value, entry->name, 0, 1, &number))
        return false;
    *(int *)entry_place(entry, record) = (int)number;
    return true;
}

bool entry_int(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    uint64_t number = 0;
    if (!number_between(value, entry->name, INT_MIN, INT_MAX, &number))
        return false;
    *(int *)entry_place(entry, record) = (int)(int64_t)number;
    return true;
}

bool entry_u32(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    return number_u32(value, entry->name, entry_place(entry, record));
}

bool entry_u64(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    return number_u64(value, entry->name, entry_place(entry, record));
}

bool entry_real(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    return number_real(value, entry->name, entry_place(entry, record));
}

bool entry_text(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    const char *text = arena_text(arena, value, entry->name);
    *(const char **)entry_place(entry, record) = text;
    return text != NULL;
}

bool read_list(const struct entry *entry, PyObject *value, void *record, struct arena *arena,
               size_t size, read_member read) {
    PyObject *members = members_of(value, entry->name, -1);
    if (!members)
        return false;
    Py_ssize_t count = PyTuple_Size(members);
    char *list = (uint64_t)count <= UINT32_MAX ? arena_take(arena, (size_t)count, size)
                                               : (char *)PyErr_NoMemory();
    bool is_read = list != NULL;
    for (Py_ssize_t i = 0; is_read && i < count; i++)
        is_read = read(entry->name, PyTuple_GetItem(members, i), list + (size_t)i * size, arena);
    *(void **)entry_place(entry, record) = list;
    *(uint32_t *)((char *)record + entry->count_offset) = (uint32_t)count;
    Py_DECREF(members);
    return is_read;
}

bool entry_type(const struct entry *entry, PyObject *value, void *record, struct arena *arena) {
    (void)arena;
    return type_parse(value, entry->name, entry_place(entry, record));
}

bool read_name(const struct entry *entry, PyObject *value, void *record, struct arena *arena,
               parse_name *parse) {
    const char *text = arena_text(arena, value, entry->name);
    cogpu_error error;
    if (!text || parse(text, entry_place(entry, record), &error) == COGPU_OK)
        return text != NULL;
    return raise_argument("%s: %s", entry->name, error.message);
}

NAME_PARSE(resampling)
bool entry_resampling(const struct entry *entry, PyObject *value, void *record,
                      struct arena *arena) {
    return read_name(entry, value, record, arena, parse_resampling);
}

/* ---- records --------------------------------------------------------------------------------- */

static PyObject *entry_keys(const struct entry *entries, size_t count) {
    PyObject *keys = PyList_New(0);
    for (size_t i = 0; keys && i < count; i++)
        if (!list_add(keys, PyUnicode_FromString(entries[i].key)))
            Py_CLEAR(keys);
    return keys;
}

/* A list of them, by Python's difflib. */
static PyObject *similar_keys(const struct entry *entries, size_t count, PyObject *key) {
    PyObject *keys = entry_keys(entries, count);
    PyObject *difflib = keys ? PyImport_ImportModule("difflib") : NULL;
    PyObject *similar =
        difflib ? PyObject_CallMethod(difflib, "get_close_matches", "OO", key, keys) : NULL;
    Py_XDECREF(difflib);
    Py_XDECREF(keys);
    return similar;
}

static bool refuse_key(const struct entry *entries, size_t count, const char *what, PyObject *key) {
    PyObject *similar = similar_keys(entries, count, key);
    if (similar && PyList_Size(similar) > 0)
        raise_argument("%s has no %.60R; similar: %R", what, key, similar);
    else if (similar)
        raise_argument("%s has no %.60R", what, key);
    Py_XDECREF(similar);
    return false;
}

static bool read_entry(const struct entry *entries, size_t count, const char *what, PyObject *key,
                       PyObject *value, void *record, struct arena *arena) {
    if (!PyUnicode_Check(key))
        return raise_type(what, "a dict of which each key is a str", key);
    for (size_t i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(key, entries[i].key) == 0)
            return value == Py_None || entries[i].read(&entries[i], value, record, arena);
    return refuse_key(entries, count, what, key);
}

bool record_read(const struct entry *entries, size_t count, const char *what, PyObject *dict,
                 void *record, struct arena *arena) {
    if (!PyDict_Check(dict))
        return raise_type(what, "a dict", dict);
    /* A copy, for the values run code of their own, which may change the dict. */
    PyObject *copy = PyDict_Copy(dict), *key, *value;
    Py_ssize_t at = 0;
    bool is_read = copy != NULL;
    while (is_read && PyDict_Next(copy, &at, &key, &value))
        is_read = read_entry(entries, count, what, key, value, record, arena);
    Py_XDECREF(copy);
    return is_read;
}
