/*
 * Objects of S3 in parts, which several processes write: each takes the object's address and the
 * id of its upload, and asks the store by the process's own connections and settings.
 */
#include "upload.h"

#include "cogpu_distributed.h"
#include "engine.h"

#include <string.h>

/* The caller's text, and the function for messages. */
struct asking {
    struct arena arena;
    struct engine *engine;
    cogpu_context *context;
    const char *address, *upload; /* the latter NULL before there is one */
};

static void close_request(struct asking *asking) {
    engine_drop(asking->engine);
    arena_release(&asking->arena);
}

static bool begin_request(struct asking *asking, PyObject *address, PyObject *upload) {
    *asking = (struct asking){0};
    asking->address = arena_text(&asking->arena, address, "address");
    if (asking->address && upload)
        asking->upload = arena_text(&asking->arena, upload, "upload");
    if (asking->address && (asking->upload || !upload))
        asking->engine = engine_take();
    if (!asking->engine) {
        arena_release(&asking->arena);
        return false;
    }
    asking->context = engine_context(asking->engine);
    return true;
}

static PyObject *raise_of(const struct asking *asking, const cogpu_error *error) {
    return error->status == COGPU_NOT_FOUND ? raise_missing(error, asking->address)
                                            : raise_file_error(error, asking->address);
}

static PyObject *upload_plan(PyObject *module, PyObject *bytes_given) {
    uint64_t bytes, part_bytes;
    uint32_t parts;
    cogpu_error error;
    (void)module;
    if (!number_u64(bytes_given, "bytes", &bytes))
        return NULL;
    if (cogpu_upload_plan(bytes, &part_bytes, &parts, &error) != COGPU_OK)
        return raise_error(&error);
    return Py_BuildValue("KI", (unsigned long long)part_bytes, parts);
}

static PyObject *upload_begin(PyObject *module, PyObject *address) {
    struct asking asking;
    char upload[COGPU_S3_UPLOAD_BYTES];
    cogpu_error error;
    cogpu_status status;
    (void)module;
    if (!begin_request(&asking, address, NULL))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_upload_begin(asking.address, asking.context, upload, &error);
    Py_END_ALLOW_THREADS
    PyObject *made = status == COGPU_OK ? PyUnicode_FromString(upload) : raise_of(&asking, &error);
    close_request(&asking);
    return made;
}

static PyObject *send_bytes(const struct asking *asking, uint32_t number, const Py_buffer *data) {
    cogpu_s3_part part = COGPU_S3_PART_INIT;
    cogpu_error error;
    cogpu_status status;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_upload_send(asking->address, asking->upload, asking->context, number,
                                   data->buf, (size_t)data->len, &part, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK ? text_object(part.etag) : raise_of(asking, &error);
}

static PyObject *upload_send(PyObject *module, PyObject *arguments) {
    PyObject *address, *upload, *number_given, *data, *etag = NULL;
    struct asking asking;
    uint32_t number;
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOO:upload_send", &address, &upload, &number_given, &data) ||
        !number_u32(number_given, "number", &number) ||
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (begin_request(&asking, address, upload)) {
        etag = send_bytes(&asking, number, &view);
        close_request(&asking);
    }
    PyBuffer_Release(&view);
    return etag;
}

static bool part_read(PyObject *member, struct arena *arena, cogpu_s3_part *part) {
    PyObject *pair = members_of(member, "parts", 2);
    part->struct_size = sizeof *part;
    const char *etag = NULL;
    if (pair && number_u32(PyTuple_GetItem(pair, 0), "number", &part->number))
        etag = arena_text(arena, PyTuple_GetItem(pair, 1), "etag");
    if (etag) /* one that is too long has no end then, and is refused for it */
        memccpy(part->etag, etag, '\0', sizeof part->etag);
    Py_XDECREF(pair);
    return etag != NULL;
}

static cogpu_s3_part *parts_read(PyObject *given, struct arena *arena, size_t *count) {
    PyObject *members = members_of(given, "parts", -1);
    cogpu_s3_part *parts = NULL;
    *count = members ? (size_t)PyTuple_Size(members) : 0;
    if (members)
        parts = arena_take(arena, *count, sizeof *parts);
    for (size_t i = 0; parts && i < *count; i++)
        if (!part_read(PyTuple_GetItem(members, (Py_ssize_t)i), arena, &parts[i]))
            parts = NULL;
    Py_XDECREF(members);
    return parts;
}

static PyObject *complete_upload(struct asking *asking, PyObject *given, uint64_t bytes) {
    size_t count;
    const cogpu_s3_part *parts = parts_read(given, &asking->arena, &count);
    cogpu_error error;
    cogpu_status status;
    if (!parts)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_upload_complete(asking->address, asking->upload, asking->context, parts,
                                       count, bytes, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK ? Py_NewRef(Py_None) : raise_of(asking, &error);
}

static PyObject *upload_complete(PyObject *module, PyObject *arguments) {
    PyObject *address, *upload, *parts, *bytes_given, *answer;
    struct asking asking;
    uint64_t bytes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOO:upload_complete", &address, &upload, &parts,
                          &bytes_given) ||
        !number_u64(bytes_given, "bytes", &bytes) || !begin_request(&asking, address, upload))
        return NULL;
    answer = complete_upload(&asking, parts, bytes);
    close_request(&asking);
    return answer;
}

static PyObject *upload_abort(PyObject *module, PyObject *arguments) {
    PyObject *address, *upload;
    struct asking asking;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO:upload_abort", &address, &upload) ||
        !begin_request(&asking, address, upload))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        cogpu_upload_abort(asking.address, asking.upload, asking.context);
    Py_END_ALLOW_THREADS
    close_request(&asking);
    return Py_NewRef(Py_None);
}

bool upload_add(PyObject *module) {
    static PyMethodDef functions[] = {
        {"upload_plan", upload_plan, METH_O,
         "upload_plan(bytes): (bytes of a part, parts) of an object that may get so long."},
        {"upload_begin", upload_begin, METH_O, "upload_begin(address): its id."},
        {"upload_send", upload_send, METH_VARARGS,
         "upload_send(address, upload, number, data): the part's ETag."},
        {"upload_complete", upload_complete, METH_VARARGS,
         "upload_complete(address, upload, parts, bytes): parts are (number, ETag), ascending."},
        {"upload_abort", upload_abort, METH_VARARGS, "upload_abort(address, upload)"},
        {NULL, NULL, 0, NULL}};
    return PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddIntConstant(module, "PART_BYTES_MIN", COGPU_S3_PART_BYTES_MIN) == 0;
}
