/*
 * Dicts of Python as structs of cogpu.h: each value is checked, and refused by its name. What the
 * structs point to lies in an arena, which is released at once. All functions need the GIL, and
 * return false or NULL with an exception.
 */
#ifndef COGPU_PYTHON_RECORD_H
#define COGPU_PYTHON_RECORD_H

#include "fields.h"

struct arena {
    struct piece *last;
};

/* Zeroed, for any type. */
void *arena_take(struct arena *arena, size_t count, size_t size);
/* A str in UTF-8; bytes of a file that were no UTF-8 are again as they were. */
const char *arena_text(struct arena *arena, PyObject *text, const char *name);
void arena_release(struct arena *arena);

/* A whole number from `least` to `most`, in two's complement. */
bool number_between(PyObject *value, const char *name, int64_t least, uint64_t most, uint64_t *to);
/* Any real number but a bool. */
bool number_real(PyObject *value, const char *name, double *to);
/* The members of a sequence, be it an array; as many as `count`, unless that is negative. */
PyObject *members_of(PyObject *value, const char *name, Py_ssize_t count);
/* As many real numbers as `count`. */
bool numbers_real(PyObject *value, const char *name, Py_ssize_t count, double *to);
/* Raises a TypeError that names the expected type. */
bool raise_type(const char *name, const char *due, PyObject *value);

/* An entry of a dict: where in the record it goes, and who reads it. */
struct entry {
    const char *key;
    const char *name; /* in messages */
    size_t offset;
    bool (*read)(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
    size_t count_offset; /* of a list: where its count goes, a uint32_t */
};

/* Defaults stay where a value is None. A key without an entry is refused, with the names that are
 * similar. */
bool record_read(const struct entry *entries, size_t count, const char *what, PyObject *dict,
                 void *record, struct arena *arena);

bool entry_flag(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_int(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_u32(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_u64(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_real(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_text(const struct entry *entry, PyObject *value, void *record, struct arena *arena);

bool entry_type(const struct entry *entry, PyObject *value, void *record, struct arena *arena);
bool entry_resampling(const struct entry *entry, PyObject *value, void *record,
                      struct arena *arena);

/* An enumerator by its name. The library's message lists the names. */
typedef cogpu_status parse_name(const char *name, int *value, cogpu_error *error);
bool read_name(const struct entry *entry, PyObject *value, void *record, struct arena *arena,
               parse_name *parse);
/* parse_bigtiff and the like: an enum of the library has the size of an int. */
#define NAME_PARSE(kind)                                                                           \
    static cogpu_status parse_##kind(const char *name, int *value, cogpu_error *error) {           \
        cogpu_##kind parsed = 0;                                                                   \
        cogpu_status status = cogpu_##kind##_parse(name, &parsed, error);                          \
        *value = (int)parsed;                                                                      \
        return status;                                                                             \
    }
#define NAME_ENTRY(kind)                                                                           \
    NAME_PARSE(kind)                                                                               \
    static bool entry_##kind(const struct entry *entry, PyObject *value, void *record,             \
                             struct arena *arena) {                                                \
        return read_name(entry, value, record, arena, parse_##kind);                               \
    }

/* Reads one member of a list. */
typedef bool (*read_member)(const char *name, PyObject *member, void *to, struct arena *arena);
/* A list with its count: each member has `size` bytes. */
bool read_list(const struct entry *entry, PyObject *value, void *record, struct arena *arena,
               size_t size, read_member read);

/* Where the value of an entry goes. */
void *entry_place(const struct entry *entry, void *record);

#endif
