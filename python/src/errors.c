/*
 * Takes a status, hands on an exception of cogpu.errors, which knows the classes.
 */
#include "errors.h"

#include <stdarg.h>
#include <string.h>

static PyObject *make(const char *status, PyObject *message, int32_t directory, int64_t block,
                      int64_t offset) {
    PyObject *errors = PyImport_ImportModule("cogpu.errors");
    if (!errors)
        return NULL;
    PyObject *error = PyObject_CallMethod(errors, "make", "sOiLL", status, message, (int)directory,
                                          (long long)block, (long long)offset);
    Py_DECREF(errors);
    return error;
}

static PyObject *raise(PyObject *exception) {
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *error_object(const cogpu_error *error) {
    PyObject *message =
        PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message), "surrogateescape");
    if (!message)
        return NULL;
    PyObject *made = make(cogpu_status_name(error->status), message, error->directory, error->block,
                          error->offset);
    Py_DECREF(message);
    return made;
}

PyObject *raise_error(const cogpu_error *error) {
    return raise(error_object(error));
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
        PyException_SetContext(kept, error_object(error));
    Py_XDECREF(context);
    return raise(kept);
}

static PyObject *raise_words(const char *status, const char *format, va_list words) {
    PyObject *message = PyUnicode_FromFormatV(format, words);
    if (!message)
        return NULL;
    PyObject *exception = make(status, message, -1, -1, -1);
    Py_DECREF(message);
    return raise(exception);
}

PyObject *raise_argument(const char *format, ...) {
    va_list words;
    va_start(words, format);
    raise_words("argument", format, words);
    va_end(words);
    return NULL;
}

PyObject *raise_status(cogpu_status status, const char *format, ...) {
    va_list words;
    va_start(words, format);
    raise_words(cogpu_status_name(status), format, words);
    va_end(words);
    return NULL;
}

PyObject *raise_missing(const char *format, ...) {
    PyObject *errors = PyImport_ImportModule("cogpu.errors");
    PyObject *missing = errors ? PyObject_GetAttrString(errors, "MissingFileError") : NULL;
    va_list words;
    va_start(words, format);
    if (missing)
        PyErr_FormatV(missing, format, words);
    va_end(words);
    Py_XDECREF(missing);
    Py_XDECREF(errors);
    return NULL;
}

PyObject *raise_buffer_error(const char *format, ...) {
    va_list words;
    va_start(words, format);
    PyErr_FormatV(PyExc_BufferError, format, words);
    va_end(words);
    return NULL;
}
