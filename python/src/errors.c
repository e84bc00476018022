/*
 * Raises the exception of cogpu.errors for a status.
 */
#include "errors.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

cogpu_error no_memory(const char *message) {
    cogpu_error error = {.status = COGPU_OUT_OF_MEMORY, .directory = -1, .block = -1, .offset = -1};
    snprintf(error.message, sizeof error.message, "%s", message);
    return error;
}

/* A path or URL as str; None where there is none. */
static PyObject *name_object(const char *name) {
    return name ? PyUnicode_DecodeFSDefault(name) : Py_NewRef(Py_None);
}

/* An error without a message of the library's has its words in `message`. */
static PyObject *make_exception(const cogpu_error *error, PyObject *message, const char *name,
                                bool is_missing) {
    PyObject *errors = PyImport_ImportModule("cogpu.errors"), *file = name_object(name);
    PyObject *made = NULL;
    if (errors && file)
        made = PyObject_CallMethod(errors, "make", "sOiLLOi", cogpu_status_name(error->status),
                                   message, (int)error->directory, (long long)error->block,
                                   (long long)error->offset, file, (int)is_missing);
    Py_XDECREF(file);
    Py_XDECREF(errors);
    return made;
}

static PyObject *set_exception(PyObject *exception) {
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

static PyObject *make_of(const cogpu_error *error, const char *name, bool is_missing) {
    PyObject *message =
        PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message), "surrogateescape");
    PyObject *made = message ? make_exception(error, message, name, is_missing) : NULL;
    Py_XDECREF(message);
    return made;
}

PyObject *error_object(const cogpu_error *error) {
    return make_of(error, NULL, false);
}

PyObject *raise_error(const cogpu_error *error) {
    return set_exception(make_of(error, NULL, false));
}

PyObject *raise_file_error(const cogpu_error *error, const char *name) {
    return set_exception(make_of(error, name, false));
}

PyObject *raise_missing(const cogpu_error *error, const char *name) {
    return set_exception(make_of(error, name, true));
}

PyObject *name_raised(const char *name) {
    PyObject *raised = keep_raised(), *errors = PyImport_ImportModule("cogpu.errors");
    PyObject *file = name_object(name), *done = NULL;
    if (raised && errors && file)
        done = PyObject_CallMethod(errors, "add_name", "OO", raised, file);
    Py_XDECREF(file);
    Py_XDECREF(errors);
    if (done)
        return Py_DECREF(done), set_exception(raised);
    Py_XDECREF(raised);
    return NULL;
}

PyObject *keep_raised(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

PyObject *raise_kept(PyObject *kept, const cogpu_error *error) {
    PyObject *context = PyException_GetContext(kept);
    if (!context)
        PyException_SetContext(kept, make_of(error, NULL, false));
    Py_XDECREF(context);
    return set_exception(kept);
}

static PyObject *raise_words(cogpu_status status, const char *format, va_list words) {
    const cogpu_error error = {.status = status, .directory = -1, .block = -1, .offset = -1};
    PyObject *message = PyUnicode_FromFormatV(format, words);
    if (!message)
        return NULL;
    PyObject *exception = make_exception(&error, message, NULL, false);
    Py_DECREF(message);
    return set_exception(exception);
}

PyObject *raise_argument(const char *format, ...) {
    va_list words;
    va_start(words, format);
    raise_words(COGPU_INVALID_ARGUMENT, format, words);
    va_end(words);
    return NULL;
}

PyObject *raise_status(cogpu_status status, const char *format, ...) {
    va_list words;
    va_start(words, format);
    raise_words(status, format, words);
    va_end(words);
    return NULL;
}

PyObject *raise_buffer_error(const char *format, ...) {
    va_list words;
    va_start(words, format);
    PyErr_FormatV(PyExc_BufferError, format, words);
    va_end(words);
    return NULL;
}
