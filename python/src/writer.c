/*
 * cogpu.Writer: writes rows or blocks. The library's writer belongs to one thread; this one raises
 * an error in a second thread. A failure ends it and leaves no file.
 */
#include "blocks.h"
#include "cogpu_distributed.h"
#include "gil.h"
#include "module.h"
#include "profile.h"
#include "raster.h"
#include "sink.h"
#include "upload.h"

#include <unistd.h>

typedef struct {
    PyObject_HEAD cogpu_writer
        *writer; /* NULL before it is open, and when it is closed, aborted or failed */
    struct target *target;
    struct engine *engine; /* that the writer works with */
    pid_t process;         /* that opened it; 0 = not opened yet */
    bool is_busy;          /* a thread is in the engine with it */
} writer_object;

/* ---- who may use it -------------------------------------------------------------------------- */

/* The engine's threads stay behind in a fork, and one of them cannot wait for itself. */
static bool is_in_reach(const writer_object *self) {
    return self->process == getpid() && !(self->target && target_is_here(self->target));
}

/* Makes it the calling thread's, until is_busy is taken back. False with an exception. */
static bool lock_writer(writer_object *self) {
    if (self->is_busy)
        return raise_argument("the writer is in use: another thread, or the target's own write");
    if (!self->writer)
        return raise_argument(self->process ? "the writer is closed, or was ended by an error"
                                            : "the writer is not open");
    if (!is_in_reach(self))
        return raise_argument("the writer belongs to the process that opened it, and its target's "
                              "write may not use it");
    return self->is_busy = true;
}

/* When the writer is gone. */
static void let_go(writer_object *self) {
    struct target *target = self->target;
    struct engine *last = self->engine;
    self->writer = NULL;
    self->target = NULL;
    self->engine = NULL;
    self->is_busy = false;
    engine_drop(last);
    target_release(target);
}

/* Leaves no file. A writer that is out of reach is left lying: it cannot be ended from here. */
static void discard_writer(writer_object *self) {
    if (!self->writer || !is_in_reach(self))
        return;
    self->is_busy = true;
    Py_BEGIN_ALLOW_THREADS
        cogpu_writer_abort(self->writer);
    Py_END_ALLOW_THREADS
    let_go(self);
}

/* Ends the writer by an error, which is raised. */
static PyObject *fail_writer(writer_object *self, const cogpu_error *error) {
    target_raise(self->target, error);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    discard_writer(self);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

/* ---- open ------------------------------------------------------------------------------------ */

static bool open_writer(writer_object *self, PyObject *dict) {
    struct given_profile given;
    cogpu_error error;
    cogpu_status status;
    if (!profile_read(dict, &given))
        return false;
    self->is_busy = true;
    self->process = getpid();
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_writer_open(&self->target->sink, &given.profile, &self->writer, &error);
    Py_END_ALLOW_THREADS
    self->is_busy = false;
    self->engine = engine_share(given.engine);
    profile_release(&given);
    if (status != COGPU_OK)
        target_raise(self->target, &error);
    return status == COGPU_OK;
}

static int writer_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"target", "profile", "inputs", NULL};
    writer_object *self = (writer_object *)object;
    PyObject *target, *profile, *inputs = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|O:Writer", names, &target, &profile,
                                     &inputs))
        return -1;
    if (self->process || self->target) {
        raise_argument("the writer was opened before");
        return -1;
    }
    self->target = target_open(target);
    if (self->target && (!inputs || target_set_inputs(self->target, inputs)) &&
        open_writer(self, profile))
        return 0;
    let_go(self);
    return -1;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static PyObject *write_rasters(writer_object *self, const cogpu_raster *rows,
                               const cogpu_raster *mask) {
    cogpu_error error;
    cogpu_status status;
    if (!lock_writer(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_writer_write_rows(self->writer, rows, mask, &error);
    Py_END_ALLOW_THREADS
    if (status != COGPU_OK)
        return fail_writer(self, &error);
    self->is_busy = false;
    return Py_NewRef(Py_None);
}

static PyObject *writer_write_rows(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"rows", "mask", "stream", NULL};
    PyObject *rows, *mask = Py_None, *stream = Py_None;
    struct taken taken_rows = {0}, taken_mask = {0};
    struct taking taking = {.name = "rows"}, taking_mask = {.name = "mask"};
    PyObject *answer = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|OO:write_rows", names, &rows, &mask,
                                     &stream) ||
        !stream_parse(stream, &taking.stream))
        return NULL;
    taking_mask.stream = taking.stream;
    bool has_mask = mask != Py_None;
    if (raster_take(rows, &taking, &taken_rows) &&
        (!has_mask || raster_take(mask, &taking_mask, &taken_mask)))
        answer = write_rasters((writer_object *)object, &taken_rows.raster,
                               has_mask ? &taken_mask.raster : NULL);
    raster_drop(&taken_mask);
    raster_drop(&taken_rows);
    return answer;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static PyObject *write_bytes(writer_object *self, const struct block *block, const void *data,
                             size_t bytes) {
    cogpu_error error;
    cogpu_status status;
    if (!lock_writer(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_writer_write_block(self->writer, block->level, block->content, block->index,
                                          data, bytes, &error);
    Py_END_ALLOW_THREADS
    if (status != COGPU_OK)
        return fail_writer(self, &error);
    self->is_busy = false;
    return Py_NewRef(Py_None);
}

static PyObject *writer_write_block(PyObject *object, PyObject *arguments, PyObject *keywords) {
    static char *names[] = {"level", "content", "block", "data", NULL};
    PyObject *level, *content, *index, *data;
    struct block block;
    uint64_t bytes;
    Py_buffer view;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOO:write_block", names, &level,
                                     &content, &index, &data) ||
        !block_parse(level, content, index, &block))
        return NULL;
    if (PyLong_Check(data)) /* as many stay where they were encoded */
        return number_u64(data, "data", &bytes)
                   ? write_bytes((writer_object *)object, &block, NULL, (size_t)bytes)
                   : NULL;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *answer = write_bytes((writer_object *)object, &block, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return answer;
}

/* ---- the end --------------------------------------------------------------------------------- */

static PyObject *written_dict(const cogpu_written *written, struct target *target) {
    static const struct field fields[] = {
        FIELD(cogpu_written, bytes, FIELD_U64),  FIELD(cogpu_written, gds_bytes, FIELD_U64),
        FIELD(cogpu_written, blocks, FIELD_U64), FIELD(cogpu_written, sparse_blocks, FIELD_U64),
        FIELD(cogpu_written, levels, FIELD_U32), FIELD(cogpu_written, bigtiff, FIELD_FLAG)};
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), written);
    if (dict && target->sink.memory && !dict_add(dict, "memory", memory_view(&target->memory)))
        Py_CLEAR(dict);
    return dict;
}

static PyObject *close_writer(PyObject *object, PyObject *nothing) {
    (void)nothing;
    writer_object *self = (writer_object *)object;
    cogpu_written written = COGPU_WRITTEN_INIT;
    cogpu_error error;
    cogpu_status status;
    if (!lock_writer(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_writer_close(self->writer, &written, &error);
    Py_END_ALLOW_THREADS
    PyObject *answer = status == COGPU_OK ? written_dict(&written, self->target)
                                          : target_raise(self->target, &error);
    let_go(self);
    return answer;
}

static PyObject *abort_writer(PyObject *object, PyObject *nothing) {
    (void)nothing;
    writer_object *self = (writer_object *)object;
    if (self->writer && !lock_writer(self))
        return NULL;
    discard_writer(self);
    return Py_NewRef(Py_None);
}

static int writer_traverse(PyObject *object, visitproc visit, void *arg) {
    writer_object *self = (writer_object *)object;
    Py_VISIT(Py_TYPE(object));
    return self->target ? target_visit(self->target, visit, arg) : 0;
}

static int writer_clear(PyObject *object) {
    discard_writer((writer_object *)object);
    return 0;
}

static void writer_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    discard_writer((writer_object *)object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* ---- the type -------------------------------------------------------------------------------- */

#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
    {"write_rows", KEYWORDS(writer_write_rows),
     "write_rows(rows, mask=None, stream=None): the next rows, (band, y, x)."},
    {"write_block", KEYWORDS(writer_write_block),
     "write_block(level, content, block, data): what encode_block returned, or its size where it "
     "stays there."},
    {"close", close_writer, METH_NOARGS, "Completes the file and says what was written."},
    {"abort", abort_writer, METH_NOARGS, "Leaves no file. Nothing where the writer is closed."},
    {NULL, NULL, 0, NULL}};

static bool add_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_init, writer_init},
        {Py_tp_new, PyType_GenericNew},
        {Py_tp_traverse, writer_traverse},
        {Py_tp_clear, writer_clear},
        {Py_tp_dealloc, writer_dealloc},
        {Py_tp_methods, methods},
        {Py_tp_doc,
         "Writer(target, profile, inputs=[]): a file that is written from the top down."},
        {0, NULL}};
    static PyType_Spec spec = {.name = "cogpu._cogpu.Writer",
                               .basicsize = sizeof(writer_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                               .slots = slots};
    PyObject *type = PyType_FromSpec(&spec);
    bool is_added = type && PyModule_AddType(module, (PyTypeObject *)type) == 0;
    Py_XDECREF(type);
    return is_added;
}

int cogpu_python_add_writer(PyObject *module) {
    return add_type(module) && sink_add_type(module) && blocks_add(module) && upload_add(module) &&
                   gil_watch_end()
               ? 0
               : -1;
}
