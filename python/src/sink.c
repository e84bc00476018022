/*
 * A cogpu_sink for the target of a write: path, URL or Python object. The library's threads write
 * to an object under the GIL, each piece as bytes, which the object may keep. The first exception
 * that it raises ends the file, and is kept until the thread that writes can raise it.
 */
#include "sink.h"

#include "gil.h"

/* ---- objects --------------------------------------------------------------------------------- */

static bool seek_target(struct target *target, uint64_t position) {
    if (target->sink.append_only)
        return true;
    PyObject *answer =
        PyObject_CallMethod(target->object, "seek", "K", (unsigned long long)position);
    Py_XDECREF(answer);
    return answer != NULL;
}

/* How much of it the object took: a raw file may take less. Who says nothing took all. */
static bool count_taken(PyObject *answer, size_t bytes, size_t *taken) {
    *taken = bytes;
    if (!PyLong_Check(answer) || PyBool_Check(answer))
        return true;
    *taken = PyLong_AsSize_t(answer);
    if (!PyErr_Occurred() && *taken > 0 && *taken <= bytes)
        return true;
    PyErr_Clear();
    return raise_status(COGPU_IO_ERROR, "the target's write took %R of %zu bytes", answer, bytes);
}

static bool write_some(struct target *target, const char *from, size_t bytes, size_t *taken) {
    PyObject *piece = PyBytes_FromStringAndSize(from, (Py_ssize_t)bytes);
    PyObject *answer = piece ? PyObject_CallMethod(target->object, "write", "O", piece) : NULL;
    bool is_taken = answer && count_taken(answer, bytes, taken);
    Py_XDECREF(answer);
    Py_XDECREF(piece);
    return is_taken;
}

static bool write_all(struct target *target, uint64_t offset, const char *from, size_t bytes) {
    if (!seek_target(target, target->start + offset))
        return false;
    while (bytes > 0) {
        size_t taken = 0;
        if (!write_some(target, from, bytes, &taken))
            return false;
        from += taken;
        bytes -= taken;
    }
    return true;
}

static cogpu_status object_write(void *user, uint64_t offset, const void *from, size_t bytes) {
    struct target *target = user;
    PyGILState_STATE state;
    if (!gil_take(&state))
        return COGPU_IO_ERROR;
    target->writer = PyThread_get_thread_ident();
    if (!target->failure && !write_all(target, offset, from, bytes))
        target->failure = keep_raised();
    target->writer = 0;
    cogpu_status status = target->failure ? COGPU_IO_ERROR : COGPU_OK;
    gil_give(state);
    return status;
}

bool target_is_here(const struct target *target) {
    return target->writer && target->writer == PyThread_get_thread_ident();
}

/* Where the object can seek: not 0; where asking fails: negative. */
static int can_seek(PyObject *object) {
    if (!PyObject_HasAttrString(object, "seek"))
        return 0;
    if (!PyObject_HasAttrString(object, "seekable"))
        return 1;
    PyObject *answer = PyObject_CallMethod(object, "seekable", NULL);
    int is_true = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_true;
}

static bool find_start(struct target *target) {
    if (target->sink.append_only || !PyObject_HasAttrString(target->object, "tell"))
        return true;
    PyObject *answer = PyObject_CallMethod(target->object, "tell", NULL);
    target->start = answer ? PyLong_AsUnsignedLongLong(answer) : 0;
    Py_XDECREF(answer);
    return !PyErr_Occurred();
}

static bool open_sink_object(PyObject *given, struct target *target) {
    int is_seekable = can_seek(given);
    if (is_seekable < 0)
        return false;
    target->object = Py_NewRef(given);
    target->sink = (cogpu_sink){.struct_size = sizeof(cogpu_sink),
                                .user = target,
                                .write = object_write,
                                .append_only = !is_seekable};
    return find_start(target);
}

/* ---- targets --------------------------------------------------------------------------------- */

static bool is_path(PyObject *given) {
    return PyUnicode_Check(given) || PyBytes_Check(given) ||
           PyObject_HasAttrString(given, "__fspath__");
}

static bool open_sink_path(PyObject *given, struct target *target) {
    if (!PyUnicode_FSConverter(given, &target->path))
        return false;
    target->sink.path = PyBytes_AsString(target->path);
    return true;
}

static bool open_any_sink(PyObject *given, struct target *target) {
    if (given == Py_None) {
        target->sink.memory = &target->memory;
        return true;
    }
    if (is_path(given))
        return open_sink_path(given, target);
    if (PyObject_HasAttrString(given, "write"))
        return open_sink_object(given, target);
    PyErr_Format(PyExc_TypeError, "target must be a path, None or an object with write, not %R",
                 Py_TYPE(given));
    return false;
}

bool target_set_inputs(struct target *target, PyObject *paths) {
    target->inputs = PySequence_List(paths);
    Py_ssize_t count = target->inputs ? PyList_Size(target->inputs) : 0;
    target->input_paths = PyMem_Calloc((size_t)count + 1, sizeof *target->input_paths);
    if (!target->inputs || !target->input_paths)
        return PyErr_Occurred() ? false : (PyErr_NoMemory(), false);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *path = NULL;
        if (!PyUnicode_FSConverter(PyList_GetItem(target->inputs, i), &path))
            return false;
        target->input_paths[i] = PyBytes_AsString(path);
        PyList_SetItem(target->inputs, i, path); /* which owns it now */
    }
    target->sink.inputs = target->input_paths;
    target->sink.input_count = (uint32_t)count;
    return true;
}

struct target *target_open(PyObject *given) {
    struct target *target = PyMem_Calloc(1, sizeof *target);
    if (!target)
        return (struct target *)PyErr_NoMemory();
    target->sink = (cogpu_sink)COGPU_SINK_INIT;
    target->memory = (cogpu_memory)COGPU_MEMORY_INIT;
    if (open_any_sink(given, target))
        return target;
    target_release(target);
    return NULL;
}

void target_release(struct target *target) {
    if (!target)
        return;
    cogpu_memory_free(&target->memory);
    Py_XDECREF(target->path);
    Py_XDECREF(target->inputs);
    PyMem_Free(target->input_paths);
    Py_XDECREF(target->object);
    Py_XDECREF(target->failure);
    PyMem_Free(target);
}

int target_visit(struct target *target, visitproc visit, void *arg) {
    Py_VISIT(target->object);
    Py_VISIT(target->failure);
    return 0;
}

PyObject *target_raise(struct target *target, const cogpu_error *error) {
    if (target->failure)
        return raise_kept(Py_NewRef(target->failure), error);
    return target->path && error->status == COGPU_NOT_FOUND
               ? raise_missing(error, target->sink.path)
               : raise_file_error(error, target->sink.path);
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD cogpu_memory memory;
} memory_object;

static PyTypeObject *memory_type;

static int memory_get(PyObject *self, Py_buffer *view, int flags) {
    const cogpu_memory *memory = &((memory_object *)self)->memory;
    return PyBuffer_FillInfo(view, self, memory->data, (Py_ssize_t)memory->bytes, 1, flags);
}

static void memory_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    cogpu_memory_free(&((memory_object *)self)->memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *memory_view(cogpu_memory *memory) {
    memory_object *object = PyObject_New(memory_object, memory_type);
    if (!object)
        return NULL;
    object->memory = *memory;
    *memory = (cogpu_memory)COGPU_MEMORY_INIT;
    PyObject *view = PyMemoryView_FromObject((PyObject *)object);
    Py_DECREF(object);
    return view;
}

bool sink_add_type(PyObject *module) {
    static PyType_Slot slots[] = {{Py_bf_getbuffer, memory_get},
                                  {Py_tp_dealloc, memory_free},
                                  {Py_tp_doc, "The bytes of a file that was written to memory."},
                                  {0, NULL}};
    static PyType_Spec spec = {.name = "cogpu._cogpu.Memory",
                               .basicsize = sizeof(memory_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    memory_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return memory_type && PyModule_AddType(module, memory_type) == 0;
}
