/*
 * Opens a file from a path, URL, buffer or Python object. A Python object is read with the
 * GIL, one thread at a time, since seek and read are two calls; one with read_many is asked by any
 * threads at once. Its exceptions are kept until the library has come back, and raised then as they
 * were.
 */
#include "engine.h"
#include "fields.h"
#include "gil.h"
#include "handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* An object that is read from. */
struct object_source {
    PyObject *object;
    uint64_t bytes;
    PyObject *raised; /* by the object's last failure, or NULL; under the GIL */
    pthread_mutex_t lock;
};

struct handle {
    atomic_size_t users;
    pid_t process; /* that opened it */
    cogpu_file *file;
    struct engine *engine; /* of a URL: whose connections the file uses */
    Py_buffer view;        /* of a file in memory */
    char *name; /* path, URL, or the object's attribute `name`; NULL where there is none */
    struct object_source *object;
    struct handle **sources; /* of a mosaic: open files that it reads */
    size_t source_count;
};

/* ---- objects with read and seek -------------------------------------------------------------- */

static bool seek_source(PyObject *object, uint64_t offset) {
    PyObject *done = PyObject_CallMethod(object, "seek", "L", (long long)offset);
    Py_XDECREF(done);
    return done != NULL;
}

/* What the source gave, which may be less than asked for. `data` may be NULL, with an exception. */
static bool copy_given(PyObject *data, size_t bytes, char *to, size_t *got) {
    Py_buffer view = {0};
    bool is_read = data && PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) == 0;
    if (is_read && (size_t)view.len > bytes) {
        PyErr_Format(PyExc_ValueError, "the source was asked for %zu bytes and gave %zd", bytes,
                     view.len);
        is_read = false;
    } else if (is_read) {
        memcpy(to, view.buf, (size_t)view.len);
        *got = (size_t)view.len;
    }
    if (view.obj)
        PyBuffer_Release(&view);
    return is_read;
}

/* One call of read, which may give less than asked for, and nothing at the end. */
static bool read_some(PyObject *object, size_t bytes, char *to, size_t *got) {
    PyObject *data = PyObject_CallMethod(object, "read", "L", (long long)bytes);
    bool is_read = copy_given(data, bytes, to, got);
    Py_XDECREF(data);
    return is_read;
}

static bool read_all(PyObject *object, uint64_t offset, size_t bytes, char *to, size_t *got) {
    size_t more = 1;
    *got = 0;
    if (!seek_source(object, offset))
        return false;
    while (*got < bytes && more) {
        if (!read_some(object, bytes - *got, to + *got, &more))
            return false;
        *got += more;
    }
    return true;
}

/* With the GIL. What the object raised is kept until the library has come back. */
static bool keep_unless(bool is_read, struct object_source *source) {
    if (is_read)
        return true;
    PyObject *last = source->raised;
    source->raised = keep_raised();
    Py_XDECREF(last);
    return false;
}

static cogpu_status read_object(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    struct object_source *source = user;
    PyGILState_STATE state;
    bool is_read = false;
    pthread_mutex_lock(&source->lock); /* before the GIL, which its holder needs */
    if (gil_take(&state)) {
        is_read = keep_unless(read_all(source->object, offset, bytes, to, got), source);
        gil_give(state);
    }
    pthread_mutex_unlock(&source->lock);
    return is_read ? COGPU_OK : COGPU_IO_ERROR;
}

/* ---- objects with read_many ------------------------------------------------------------------ */

/* Where each range begins; with `bytes`, where it ends. */
static PyObject *places_of(const uint64_t *offsets, const size_t *bytes, size_t count) {
    PyObject *places = PyList_New(0);
    for (size_t i = 0; places && i < count; i++)
        if (!list_add(places, PyLong_FromUnsignedLongLong(offsets[i] + (bytes ? bytes[i] : 0))))
            Py_CLEAR(places);
    return places;
}

static bool copy_answer(PyObject *answer, size_t number, uint64_t offset, size_t bytes, void *to) {
    PyObject *data = PySequence_GetItem(answer, (Py_ssize_t)number);
    size_t got = 0;
    bool is_read = copy_given(data, bytes, to, &got);
    Py_XDECREF(data);
    if (is_read && got < bytes)
        PyErr_Format(PyExc_EOFError, "the source was asked for %zu bytes at %llu and gave %zu",
                     bytes, (unsigned long long)offset, got);
    return is_read && got == bytes;
}

static bool ask_many(PyObject *object, const uint64_t *offsets, const size_t *bytes,
                     void *const *to, size_t count) {
    PyObject *starts = places_of(offsets, NULL, count), *ends = places_of(offsets, bytes, count);
    PyObject *answer = NULL;
    if (starts && ends)
        answer = PyObject_CallMethod(object, "read_many", "OO", starts, ends);
    bool is_read = answer != NULL;
    for (size_t i = 0; is_read && i < count; i++)
        is_read = copy_answer(answer, i, offsets[i], bytes[i], to[i]);
    Py_XDECREF(answer);
    Py_XDECREF(ends);
    Py_XDECREF(starts);
    return is_read;
}

static cogpu_status read_many_of_object(void *user, const uint64_t *offsets, const size_t *bytes,
                                        void *const *to, size_t count) {
    struct object_source *source = user;
    PyGILState_STATE state;
    bool is_read = false;
    if (gil_take(&state)) {
        is_read = keep_unless(ask_many(source->object, offsets, bytes, to, count), source);
        gil_give(state);
    }
    return is_read ? COGPU_OK : COGPU_IO_ERROR;
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool has_read_many(PyObject *object) {
    return PyObject_HasAttrString(object, "read_many");
}

static cogpu_status size_object(void *user, uint64_t *bytes) {
    *bytes = ((struct object_source *)user)->bytes;
    return COGPU_OK;
}

/* Its attribute `size`, or where seek(0, 2) arrives; what returns nothing there is asked by tell().
 */
static bool measure_object(PyObject *object, uint64_t *bytes) {
    PyObject *end = has_read_many(object) ? PyObject_GetAttrString(object, "size")
                                          : PyObject_CallMethod(object, "seek", "ii", 0, 2);
    if (end == Py_None) {
        Py_DECREF(end);
        end = PyObject_CallMethod(object, "tell", NULL);
    }
    if (!end)
        return false;
    *bytes = PyLong_AsUnsignedLongLong(end);
    Py_DECREF(end);
    return !PyErr_Occurred();
}

static void object_close(struct object_source *source) {
    if (!source)
        return;
    pthread_mutex_destroy(&source->lock);
    Py_XDECREF(source->object);
    Py_XDECREF(source->raised);
    free(source);
}

static struct object_source *object_open(PyObject *object) {
    struct object_source *source = calloc(1, sizeof *source);
    if (!source)
        return (void *)PyErr_NoMemory();
    pthread_mutex_init(&source->lock, NULL);
    source->object = Py_NewRef(object);
    if (measure_object(object, &source->bytes))
        return source;
    object_close(source);
    return NULL;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* URLs, with its network settings, and VRTs, with PROJ's operations. The library decides by more;
 * where that differs an engine is taken for nothing, or operations are created again. */
static bool may_need_engine(const char *text, const cogpu_open_options *options) {
    const size_t length = strlen(text);
    return strstr(text, "://") || options->vrt_sources == COGPU_VRT_SOURCES_ANY ||
           (length > 4 && strcasecmp(text + length - 4, ".vrt") == 0);
}

/* Where nothing is at the path, who catches FileNotFoundError should get it. */
static PyObject *raise_no_file(const struct handle *handle, const cogpu_error *error) {
    return error->status == COGPU_NOT_FOUND ? raise_missing(error, handle->name)
                                            : raise_file_error(error, handle->name);
}

static bool open_by_engine(struct handle *handle, const char *url,
                           const cogpu_open_options *options) {
    cogpu_open_options own = *options;
    cogpu_error error;
    cogpu_status status;
    handle->engine = engine_take();
    if (!handle->engine)
        return false;
    own.context = engine_context(handle->engine);
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_open(url, &own, &handle->file, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_no_file(handle, &error);
}

static bool open_file(struct handle *handle, PyObject *path, const cogpu_open_options *options) {
    const char *text = PyBytes_AsString(path);
    cogpu_error error;
    cogpu_status status;
    if (may_need_engine(text, options))
        return open_by_engine(handle, text, options);
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_open(text, options, &handle->file, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_no_file(handle, &error);
}

/* `name` is bytes. */
static bool keep_name(struct handle *handle, PyObject *name) {
    handle->name = strdup(PyBytes_AsString(name));
    return handle->name || PyErr_NoMemory();
}

/* What an object calls itself, where that is a text, as that of Python's files. */
static bool keep_name_of_object(struct handle *handle, PyObject *source) {
    PyObject *name = PyObject_GetAttrString(source, "name"), *bytes = NULL;
    bool is_text = name && PyUnicode_Check(name) && PyUnicode_FSConverter(name, &bytes);
    bool is_kept = !is_text || keep_name(handle, bytes);
    if (is_kept)
        PyErr_Clear(); /* an object without a name is one all the same */
    Py_XDECREF(bytes);
    Py_XDECREF(name);
    return is_kept;
}

static bool open_source_path(struct handle *handle, PyObject *source,
                             const cogpu_open_options *options) {
    PyObject *path = NULL;
    if (!PyUnicode_FSConverter(source, &path))
        return false;
    bool is_open = keep_name(handle, path) && open_file(handle, path, options);
    Py_DECREF(path);
    return is_open;
}

static bool open_memory(struct handle *handle, PyObject *source,
                        const cogpu_open_options *options) {
    cogpu_error error;
    cogpu_status status;
    if (PyObject_GetBuffer(source, &handle->view, PyBUF_SIMPLE) != 0)
        return false;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_open_memory(handle->view.buf, (size_t)handle->view.len, options,
                                   &handle->file, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || handle_raise(handle, &error);
}

static bool open_source_object(struct handle *handle, PyObject *source,
                               const cogpu_open_options *options) {
    cogpu_error error;
    cogpu_status status;
    if (!keep_name_of_object(handle, source))
        return false;
    handle->object = object_open(source);
    if (!handle->object)
        return name_raised(handle->name);
    cogpu_source functions = {.struct_size = sizeof(cogpu_source),
                              .user = handle->object,
                              .read = read_object,
                              .size = size_object};
    if (has_read_many(source))
        functions.read_many = read_many_of_object;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_open_source(&functions, options, &handle->file, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || handle_raise(handle, &error);
}

static bool open_any_source(struct handle *handle, PyObject *source,
                            const cogpu_open_options *options) {
    if (PyUnicode_Check(source) || PyBytes_Check(source) ||
        PyObject_HasAttrString(source, "__fspath__"))
        return open_source_path(handle, source, options);
    if (PyObject_CheckBuffer(source))
        return open_memory(handle, source, options);
    if (has_read_many(source) ||
        (PyObject_HasAttrString(source, "read") && PyObject_HasAttrString(source, "seek")))
        return open_source_object(handle, source, options);
    PyErr_Format(PyExc_TypeError,
                 "source must be a path, a URL, a buffer that holds the file, a cogpu.Stored, or "
                 "an object with "
                 "read and seek, not %R",
                 Py_TYPE(source));
    return false;
}

/* NULL, with the exception that is raised: dropping may run code of others. */
static struct handle *drop_failed(struct handle *handle) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    handle_drop(handle);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

struct handle *handle_open(PyObject *source, const cogpu_open_options *options) {
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return (void *)PyErr_NoMemory();
    handle->users = 1;
    handle->process = getpid();
    if (open_any_source(handle, source, options))
        return handle;
    return drop_failed(handle);
}

struct handle *handle_share(struct handle *handle) {
    atomic_fetch_add(&handle->users, 1);
    return handle;
}

void handle_drop(struct handle *handle) {
    PyGILState_STATE state;
    if (!handle || atomic_fetch_sub(&handle->users, 1) != 1)
        return;
    if (handle->process == getpid()) /* threads that did not come through a fork may hold locks */
        cogpu_close(handle->file);
    for (size_t i = 0; i < handle->source_count; i++)
        handle_drop(handle->sources[i]);
    engine_drop(handle->engine);
    if ((handle->object || handle->view.obj) && gil_take(&state)) {
        object_close(handle->object);
        PyBuffer_Release(&handle->view);
        gil_give(state);
    }
    free(handle->sources);
    free(handle->name);
    free(handle);
}

const cogpu_file *handle_file(const struct handle *handle) {
    return handle->file;
}

const char *handle_name(const struct handle *handle) {
    return handle->name;
}

bool handle_needs_python(const struct handle *handle) {
    bool needs = handle->object;
    for (size_t i = 0; i < handle->source_count && !needs; i++)
        needs = handle_needs_python(handle->sources[i]);
    return needs;
}

/* The object that failed, of a file or of a mosaic's sources; NULL where none did. */
static struct object_source *find_raised(const struct handle *handle) {
    struct object_source *found = handle->object && handle->object->raised ? handle->object : NULL;
    for (size_t i = 0; i < handle->source_count && !found; i++)
        found = find_raised(handle->sources[i]);
    return found;
}

PyObject *handle_raise(struct handle *handle, const cogpu_error *error) {
    struct object_source *failed = error->status == COGPU_IO_ERROR ? find_raised(handle) : NULL;
    if (!failed)
        return raise_file_error(error, handle->name);
    PyObject *raised = failed->raised;
    failed->raised = NULL;
    raise_kept(raised, error);
    return name_raised(handle->name);
}

/* ---- mosaics --------------------------------------------------------------------------------- */

static bool open_mosaic(struct handle *handle, const cogpu_mosaic_source *sources, size_t count,
                        cogpu_mosaic_options *options, cogpu_open_options *open) {
    cogpu_error error;
    cogpu_status status;
    options->open = open;
    handle->engine = engine_take(); /* has PROJ's operations, and the network settings */
    if (!handle->engine)
        return false;
    open->context = engine_context(handle->engine);
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_open_mosaic(sources, count, options, &handle->file, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_no_file(handle, &error);
}

struct handle *handle_open_mosaic(const cogpu_mosaic_source *sources, struct handle *const *files,
                                  size_t count, cogpu_mosaic_options *options,
                                  cogpu_open_options *open) {
    struct handle *handle = calloc(1, sizeof *handle);
    if (handle)
        handle->sources = calloc(count + 1, sizeof *handle->sources);
    if (!handle || !handle->sources) {
        free(handle);
        return (void *)PyErr_NoMemory();
    }
    handle->users = 1;
    handle->process = getpid();
    for (size_t i = 0; i < count; i++)
        if (files[i])
            handle->sources[handle->source_count++] = handle_share(files[i]);
    if (open_mosaic(handle, sources, count, options, open))
        return handle;
    return drop_failed(handle);
}
