/*
 * cogpu._cogpu.File: open and close. Its other methods are in read.c and describe.c.
 */
#include "file.h"

#include "fields.h"

#include <stdlib.h>
#include <string.h>

typedef struct file {
    PyObject ob_base;
    struct handle *handle; /* NULL when closed; under the GIL */
    char *name;            /* the last handle's, for messages, also when closed */
} file;

static PyTypeObject *file_type;

struct handle *file_take(PyObject *object) {
    if (!PyObject_TypeCheck(object, file_type))
        return (void *)PyErr_Format(PyExc_TypeError, "file must be a File, not %R",
                                    Py_TYPE(object));
    static const cogpu_error closed = {.status = COGPU_INVALID_ARGUMENT,
                                       .directory = -1,
                                       .block = -1,
                                       .offset = -1,
                                       .message = "the file is closed"};
    struct handle *handle = ((file *)object)->handle;
    return handle ? handle_share(handle)
                  : (void *)raise_file_error(&closed, ((file *)object)->name);
}

static bool parse_limits(PyObject *given, cogpu_limits *limits) {
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {{"directories", offsetof(cogpu_limits, directories)},
                 {"tags", offsetof(cogpu_limits, tags)},
                 {"tag_bytes", offsetof(cogpu_limits, tag_bytes)},
                 {"blocks", offsetof(cogpu_limits, blocks)},
                 {"block_bytes", offsetof(cogpu_limits, block_bytes)},
                 {"bands", offsetof(cogpu_limits, bands)},
                 {"working_memory_bytes", offsetof(cogpu_limits, working_memory_bytes)},
                 {"sources", offsetof(cogpu_limits, sources)},
                 {"vrt_bytes", offsetof(cogpu_limits, vrt_bytes)}};
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(given)) {
        PyErr_Format(PyExc_TypeError, "limits must be a dict, not %R", Py_TYPE(given));
        return false;
    }
    while (PyDict_Next(given, &at, &name, &value)) {
        size_t i = 0, count = sizeof names / sizeof *names;
        while (i < count && (!PyUnicode_Check(name) ||
                             PyUnicode_CompareWithASCIIString(name, names[i].name) != 0))
            i++;
        if (i == count)
            return raise_argument("limits has no field %R", name);
        if (!number_u64(value, names[i].name, (uint64_t *)((char *)limits + names[i].offset)))
            return false;
    }
    return true;
}

/* None: the default; True: of URLs too; False: none. */
static bool parse_sidecars(PyObject *given, cogpu_sidecars *sidecars) {
    if (given == Py_None)
        return true;
    if (!PyBool_Check(given)) {
        PyErr_Format(PyExc_TypeError, "sidecars must be True, False or None, not %R", given);
        return false;
    }
    *sidecars = given == Py_True ? COGPU_SIDECARS_ALL : COGPU_SIDECARS_NONE;
    return true;
}

/* None: the default; "below", "any". */
static bool parse_vrt_sources(PyObject *given, cogpu_vrt_sources *sources) {
    bool is_text = PyUnicode_Check(given);
    if (given == Py_None)
        return true;
    if (is_text && PyUnicode_CompareWithASCIIString(given, "below") == 0)
        *sources = COGPU_VRT_SOURCES_BELOW;
    else if (is_text && PyUnicode_CompareWithASCIIString(given, "any") == 0)
        *sources = COGPU_VRT_SOURCES_ANY;
    else
        return raise_argument("vrt_sources must be 'below', 'any' or None, not %R", given);
    return true;
}

bool open_options_read(const struct open_words *words, struct given_options *given) {
    given->limits = (cogpu_limits)COGPU_LIMITS_INIT;
    given->options = (cogpu_open_options)COGPU_OPEN_OPTIONS_INIT;
    given->options.limits = &given->limits;
    return parse_sidecars(words->sidecars, &given->options.sidecars) &&
           parse_vrt_sources(words->vrt_sources, &given->options.vrt_sources) &&
           (words->limits == Py_None || parse_limits(words->limits, &given->limits));
}

static int file_init(PyObject *object, PyObject *arguments, PyObject *words) {
    static char *names[] = {"source", "sidecars", "limits", "vrt_sources", NULL};
    PyObject *source;
    struct open_words open = {Py_None, Py_None, Py_None};
    struct given_options given;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "O|$OOO", names, &source, &open.sidecars,
                                     &open.limits, &open.vrt_sources) ||
        !open_options_read(&open, &given))
        return -1;
    struct handle *opened = handle_open(source, &given.options);
    if (!opened)
        return -1;
    struct handle *last = ((file *)object)->handle;
    free(((file *)object)->name);
    ((file *)object)->name = handle_name(opened) ? strdup(handle_name(opened)) : NULL;
    ((file *)object)->handle = opened;
    handle_drop(last);
    return 0;
}

PyObject *file_of_handle(struct handle *handle) {
    PyObject *object = handle ? PyType_GenericAlloc(file_type, 0) : NULL;
    if (object)
        ((file *)object)->handle = handle;
    else
        handle_drop(handle);
    return object;
}

static PyObject *file_close(PyObject *object, PyObject *unused) {
    (void)unused;
    struct handle *handle = ((file *)object)->handle;
    ((file *)object)->handle = NULL;
    handle_drop(handle);
    return Py_NewRef(Py_None);
}

static void file_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    handle_drop(((file *)object)->handle);
    free(((file *)object)->name);
    release(object);
    Py_DECREF(type);
}

#define WITH_WORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

bool file_add_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"read", WITH_WORDS(file_read), PyDoc_STR("Reads a window into an Array.")},
        {"close", file_close, METH_NOARGS, PyDoc_STR("close()\n--\n\nAfter the last who reads.")},
        {"image_count", file_image_count, METH_NOARGS, PyDoc_STR("Number of images.")},
        {"version_id", file_version_id, METH_NOARGS, PyDoc_STR("cogpu_file_version_id, or None.")},
        {"sidecars", file_sidecars, METH_NOARGS, PyDoc_STR("Paths of the sidecars in use.")},
        {"sources", file_sources, METH_NOARGS,
         PyDoc_STR("Sources of a mosaic: fields of cogpu_source_description.")},
        {"write_vrt", file_write_vrt, METH_O,
         PyDoc_STR("write_vrt(target)\n--\n\nA mosaic as a VRT; None: returns its bytes.")},
        {"info", WITH_WORDS(file_info), PyDoc_STR("Fields of cogpu_image.")},
        {"level", WITH_WORDS(file_level), PyDoc_STR("Fields of cogpu_level.")},
        {"band", WITH_WORDS(file_band), PyDoc_STR("Fields of cogpu_band.")},
        {"metadata", WITH_WORDS(file_metadata), PyDoc_STR("GDAL_METADATA, a dict for each item.")},
        {"crs", WITH_WORDS(file_crs), PyDoc_STR("Fields of cogpu_crs, or None.")},
        {"wkt", WITH_WORDS(file_wkt), PyDoc_STR("The coordinate system as WKT2, or None.")},
        {"geokeys", WITH_WORDS(file_geokeys), PyDoc_STR("GeoKeys: (id, name, value).")},
        {"directories", file_directories, METH_NOARGS,
         PyDoc_STR("Fields of cogpu_directory, of each.")},
        {"tags", WITH_WORDS(file_tags), PyDoc_STR("Fields of cogpu_tag, of each.")},
        {"tag", WITH_WORDS(file_tag), PyDoc_STR("A tag's value: bytes, or a tuple of numbers.")},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "An open file, which many threads may use at once."},
                                  {Py_tp_new, PyType_GenericNew},
                                  {Py_tp_init, file_init},
                                  {Py_tp_dealloc, file_dealloc},
                                  {Py_tp_methods, methods},
                                  {0}};
    static PyType_Spec spec = {.name = "cogpu._cogpu.File",
                               .basicsize = sizeof(file),
                               .flags = Py_TPFLAGS_DEFAULT,
                               .slots = slots};
    file_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return file_type && PyModule_AddObjectRef(module, "File", (PyObject *)file_type) == 0;
}
