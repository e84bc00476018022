/*
 * cogpu.Array: a raster for NumPy, CuPy, PyTorch and others, by DLPack and the array interfaces. No
 * copy is made unless requested, and the host waits for no CUDA stream: the consumer's stream waits
 * for ours.
 */
#include "array.h"

#include "dlpack.h"
#include "fields.h"

#include <stdlib.h>
#include <string.h>

typedef struct array {
    PyObject ob_base;
    struct store *store;
    cogpu_raster raster;
} array;

/* DLPack's number for a stream that nothing needs to be done for. */
enum { NO_SYNCHRONISATION = -1 };

static PyTypeObject *array_type;

static size_t raster_bytes(const cogpu_raster *raster) {
    return (size_t)raster->bands * raster->height * raster->width * cogpu_type_bytes(raster->type);
}

PyObject *array_new(struct store *store, const cogpu_raster *raster) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(array_type, Py_tp_alloc);
    array *made = (array *)allocate(array_type, 0);
    if (!made) {
        store_drop_with_gil(store);
        return NULL;
    }
    made->store = store;
    made->raster = *raster;
    return (PyObject *)made;
}

static void array_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    struct store *store = ((array *)object)->store;
    release(object);
    Py_DECREF(type);
    store_drop_with_gil(store);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static PyObject *shape_object(const cogpu_raster *raster) {
    return Py_BuildValue("(III)", (unsigned)raster->bands, (unsigned)raster->height,
                         (unsigned)raster->width);
}

static PyObject *get_shape(PyObject *object, void *closure) {
    (void)closure;
    return shape_object(&((array *)object)->raster);
}

static PyObject *get_dtype(PyObject *object, void *closure) {
    (void)closure;
    return PyUnicode_FromString(cogpu_type_name(((array *)object)->raster.type));
}

static PyObject *get_nbytes(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(raster_bytes(&((array *)object)->raster));
}

static PyObject *get_device(PyObject *object, void *closure) {
    const cogpu_raster *raster = &((array *)object)->raster;
    (void)closure;
    return device_name(raster->device, raster->device_index);
}

static bool finish_read(PyObject *object) {
    struct store *store = ((array *)object)->store;
    Py_BEGIN_ALLOW_THREADS
        store_finish_read(store);
    Py_END_ALLOW_THREADS
    return store->status == COGPU_OK ||
           (store->file ? handle_raise(store->file, &store->error) : raise_error(&store->error));
}

static PyObject *get_result(PyObject *object, void *closure) {
    static const struct field fields[] = {
        FIELD(cogpu_result, blocks, FIELD_U64),
        FIELD(cogpu_result, sparse_blocks, FIELD_U64),
        FIELD(cogpu_result, bad_blocks, FIELD_U64),
        FIELD(cogpu_result, cached_blocks, FIELD_U64),
        FIELD(cogpu_result, device_blocks, FIELD_U64),
        FIELD(cogpu_result, cpu_fallback_blocks, FIELD_U64),
        FIELD(cogpu_result, bytes_read, FIELD_U64),
        FIELD(cogpu_result, gds_bytes, FIELD_U64),
        FIELD(cogpu_result, fetch_ms, FIELD_DOUBLE),
        FIELD(cogpu_result, copy_ms, FIELD_DOUBLE),
        FIELD(cogpu_result, decode_ms, FIELD_DOUBLE),
        FIELD(cogpu_result, unpack_ms, FIELD_DOUBLE),
        FIELD(cogpu_result, sources, FIELD_U64),
        FIELD(cogpu_result, bad_sources, FIELD_U64),
        FIELD(cogpu_result, device_cached_blocks, FIELD_U64),
    };
    (void)closure;
    if (!finish_read(object))
        return NULL;
    const cogpu_result *result = &((array *)object)->store->result;
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), result);
    if (dict &&
        dict_add(dict, "first_bad",
                 result->bad_blocks ? error_object(&result->first_bad) : Py_NewRef(Py_None)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *array_wait(PyObject *object, PyObject *unused) {
    (void)unused;
    struct store *store = ((array *)object)->store;
    if (!finish_read(object))
        return NULL;
    if (store->was_pending && store->result.cpu_fallback_blocks)
        return raise_status(
            COGPU_DEVICE_ERROR,
            "%llu blocks that the device refused came late, after others may have used the memory",
            (unsigned long long)store->result.cpu_fallback_blocks);
    return Py_NewRef(Py_None);
}

static PyObject *array_repr(PyObject *object) {
    PyObject *shape = get_shape(object, NULL), *device = get_device(object, NULL), *text = NULL;
    if (shape && device)
        text = PyUnicode_FromFormat("<cogpu.Array %S %s on %U>", shape,
                                    cogpu_type_name(((array *)object)->raster.type), device);
    Py_XDECREF(shape);
    Py_XDECREF(device);
    return text;
}

/* ---- the array interfaces -------------------------------------------------------------------- */

static bool is_packed(const cogpu_raster *raster) {
    return !raster->stride_band && !raster->stride_y && !raster->stride_x;
}

static PyObject *strides_object(const cogpu_raster *raster) {
    if (is_packed(raster))
        return Py_NewRef(Py_None);
    return Py_BuildValue("(LLL)", (long long)raster->stride_band, (long long)raster->stride_y,
                         (long long)raster->stride_x);
}

/* What both interfaces say of sample types that NumPy has. */
static bool add_samples(PyObject *dict, const cogpu_raster *raster) {
    return dict_add(dict, "shape", shape_object(raster)) &&
           dict_add(dict, "typestr", PyUnicode_FromString(type_string(raster->type))) &&
           dict_add(dict, "strides", strides_object(raster));
}

/* Complex integers are shown as pairs, in a last dimension of two. They are packed, since no array
 * of others has them. */
static bool add_pairs(PyObject *dict, const cogpu_raster *raster) {
    return dict_add(dict, "shape",
                    Py_BuildValue("(IIIi)", (unsigned)raster->bands, (unsigned)raster->height,
                                  (unsigned)raster->width, 2)) &&
           dict_add(dict, "typestr",
                    PyUnicode_FromString(type_string(
                        raster->type == COGPU_TYPE_CI16 ? COGPU_TYPE_I16 : COGPU_TYPE_I32)));
}

static PyObject *array_interface(PyObject *object, bool is_cuda) {
    const cogpu_raster *raster = &((array *)object)->raster;
    if ((raster->device == COGPU_DEVICE_CUDA) != is_cuda) {
        PyErr_SetString(PyExc_AttributeError, "the array is on another device");
        return NULL;
    }
    PyObject *dict = PyDict_New();
    if (dict && dict_add(dict, "version", PyLong_FromLong(3)) &&
        (type_string(raster->type) ? add_samples(dict, raster) : add_pairs(dict, raster)) &&
        dict_add(dict, "data", Py_BuildValue("(NO)", PyLong_FromVoidPtr(raster->data), Py_False)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *get_array_interface(PyObject *object, void *closure) {
    (void)closure;
    PyObject *dict = array_interface(object, false);
    if (dict && !finish_read(object))
        Py_CLEAR(dict);
    return dict;
}

/* The consumer waits for the stream, where a read is still under way. */
static PyObject *get_cuda_array_interface(PyObject *object, void *closure) {
    (void)closure;
    array *self = (array *)object;
    PyObject *dict = array_interface(object, true);
    void *stream = self->raster.stream;
    PyObject *named = self->store->pending
                          ? PyLong_FromUnsignedLongLong(stream ? (uintptr_t)stream : 1)
                          : Py_NewRef(Py_None);
    if (dict && !dict_add(dict, "stream", Py_XNewRef(named)))
        Py_CLEAR(dict);
    Py_XDECREF(named);
    return dict;
}

/* NumPy comes here only where there is no __array_interface__, and would make an array of one
 * object. */
static PyObject *array_array(PyObject *object, PyObject *arguments, PyObject *words) {
    (void)arguments, (void)words;
    PyObject *device = get_device(object, NULL);
    if (device)
        PyErr_Format(PyExc_TypeError,
                     "an array of %s on %U is no NumPy array; numpy.from_dlpack(array, "
                     "device='cpu') copies one down",
                     cogpu_type_name(((array *)object)->raster.type), device);
    Py_XDECREF(device);
    return NULL;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The bytes that a raster covers: from its lowest to past its highest. */
static void find_span(const cogpu_raster *raster, char **start, size_t *bytes) {
    int64_t size = (int64_t)cogpu_type_bytes(raster->type), low = 0, high = size;
    int64_t steps[] = {raster->stride_band, raster->stride_y, raster->stride_x};
    int64_t last[] = {(int64_t)raster->bands - 1, (int64_t)raster->height - 1,
                      (int64_t)raster->width - 1};
    if (is_packed(raster))
        high = (int64_t)raster_bytes(raster);
    for (int i = 0; i < 3; i++)
        *(steps[i] < 0 ? &low : &high) += steps[i] * last[i];
    *start = (char *)raster->data + low;
    *bytes = (size_t)(high - low);
}

static cogpu_status copy_bytes(cogpu_context *context, const cogpu_raster *from, const char *start,
                               size_t bytes, const struct store *to, cogpu_error *error) {
    if (from->device != COGPU_DEVICE_CUDA &&
        to->device != COGPU_DEVICE_CUDA) { /* all of it the host's */
        memcpy(to->memory, start, bytes);
        return COGPU_OK;
    }
    if (to->device == COGPU_DEVICE_CPU)
        return cogpu_device_download(context, from->device, from->device_index, start, bytes,
                                     to->memory, error);
    void *between = malloc(bytes);
    if (!between) {
        *error = no_memory("no memory for a copy by way of the host");
        return COGPU_OUT_OF_MEMORY;
    }
    cogpu_status status = cogpu_device_download(context, from->device, from->device_index, start,
                                                bytes, between, error);
    if (status == COGPU_OK)
        status = cogpu_device_upload(context, to->device, to->device_index, between, bytes,
                                     to->memory, error);
    free(between);
    return status;
}

/* A store of the same bytes in host memory or of the same device, and the raster over it. */
static struct store *copy_array(PyObject *object, bool is_to_host, cogpu_raster *raster) {
    const cogpu_raster *from = &((array *)object)->raster;
    struct engine *engine = finish_read(object) ? engine_take() : NULL;
    char *start;
    size_t bytes;
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    if (!engine)
        return NULL;
    find_span(from, &start, &bytes);
    struct store *copy = store_of_bytes(bytes, is_to_host ? COGPU_DEVICE_CPU : from->device,
                                        is_to_host ? 0 : from->device_index);
    if (copy) {
        Py_BEGIN_ALLOW_THREADS
            status = copy_bytes(engine_context(engine), from, start, bytes, copy, &error);
        Py_END_ALLOW_THREADS
    }
    engine_drop(engine);
    if (status != COGPU_OK) {
        raise_error(&error);
        store_drop_with_gil(copy);
        return NULL;
    }
    if (copy) {
        *raster = *from;
        raster->data = (char *)copy->memory + ((char *)from->data - start);
        raster->device = copy->device, raster->device_index = copy->device_index;
        raster->stream = NULL;
    }
    return copy;
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

static void release_store(void *user) {
    store_drop(user);
}

/* A capsule that was not consumed frees its tensor, without the GIL (store_drop_with_gil). */
static void drop_legacy(PyObject *capsule) {
    struct dl_legacy *tensor = PyCapsule_IsValid(capsule, DL_LEGACY_NAME)
                                   ? PyCapsule_GetPointer(capsule, DL_LEGACY_NAME)
                                   : NULL;
    if (!tensor)
        return;
    Py_BEGIN_ALLOW_THREADS
        tensor->deleter(tensor);
    Py_END_ALLOW_THREADS
}

static void drop_versioned(PyObject *capsule) {
    struct dl_versioned *tensor = PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)
                                      ? PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME)
                                      : NULL;
    if (!tensor)
        return;
    Py_BEGIN_ALLOW_THREADS
        tensor->deleter(tensor);
    Py_END_ALLOW_THREADS
}

/* Both take a reference to the store, also on failure. */
static PyObject *legacy_capsule(struct store *store, const cogpu_raster *raster) {
    struct DLManagedTensor *made = NULL;
    cogpu_error error;
    if (cogpu_dlpack(raster, release_store, store, &made, &error) != COGPU_OK) {
        store_drop_with_gil(store);
        return raise_buffer_error("%s", error.message);
    }
    struct dl_legacy *tensor = (struct dl_legacy *)made;
    PyObject *capsule = PyCapsule_New(tensor, DL_LEGACY_NAME, drop_legacy);
    if (!capsule)
        tensor->deleter(tensor);
    return capsule;
}

static PyObject *versioned_capsule(struct store *store, const cogpu_raster *raster, bool is_copy) {
    struct DLManagedTensorVersioned *made = NULL;
    cogpu_error error;
    if (cogpu_dlpack_versioned(raster, release_store, store, &made, &error) != COGPU_OK) {
        store_drop_with_gil(store);
        return raise_buffer_error("%s", error.message);
    }
    struct dl_versioned *tensor = (struct dl_versioned *)made;
    tensor->flags |= is_copy ? DL_COPIED : 0;
    PyObject *capsule = PyCapsule_New(tensor, DL_VERSIONED_NAME, drop_versioned);
    if (!capsule)
        tensor->deleter(tensor);
    return capsule;
}

/* What the consumer asks for. */
struct wish {
    bool is_versioned, is_copy, is_no_copy, is_to_host, is_synchronised;
    void *stream;
};

static bool parse_stream(PyObject *stream, struct wish *wish) {
    int64_t number = 1;
    if (stream != Py_None && !number_i64(stream, "stream", &number))
        return false;
    if (number == 0 || number < NO_SYNCHRONISATION)
        return raise_argument("stream must be None, -1, 1, 2 or a stream's address, not %lld: 0 "
                              "could mean two streams",
                              (long long)number);
    wish->is_synchronised = number != NO_SYNCHRONISATION;
    wish->stream = (void *)(uintptr_t)number;
    return true;
}

static bool parse_version(PyObject *version, struct wish *wish) {
    int major = 0, minor = 0;
    if (version != Py_None && !number_pair(version, "max_version", &major, &minor))
        return false;
    wish->is_versioned = major >= 1;
    return true;
}

static bool parse_copy(PyObject *copy, struct wish *wish) {
    int is_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    wish->is_copy = is_copy == 1;
    wish->is_no_copy = copy != Py_None && is_copy == 0;
    return is_copy >= 0;
}

static void device_numbers(const cogpu_raster *raster, int *kind, int *index) {
    *kind = raster->device == COGPU_DEVICE_CUDA ? DL_CUDA : DL_CPU;
    *index = raster->device == COGPU_DEVICE_CUDA ? (int)raster->device_index : 0;
}

/* The array's own device, or the host's, to which it is copied down. */
static bool parse_dlpack_device(PyObject *device, const cogpu_raster *raster, struct wish *wish) {
    int kind, index, own_kind, own_index;
    if (device == Py_None)
        return true;
    if (!number_pair(device, "dl_device", &kind, &index))
        return false;
    device_numbers(raster, &own_kind, &own_index);
    if (kind == own_kind && index == own_index)
        return true;
    wish->is_to_host = wish->is_copy = true;
    if (kind != DL_CPU || index != 0)
        return raise_buffer_error("dl_device: an array of (%d, %d) is not copied to (%d, %d)",
                                  own_kind, own_index, kind, index);
    return !wish->is_no_copy ||
           raise_buffer_error("copy=False: an array of a GPU comes to the host by a copy alone");
}

/* The consumer's stream follows ours; host memory has no streams, so that the host waits. */
static bool make_ready(PyObject *object, const struct wish *wish) {
    array *self = (array *)object;
    cogpu_error error;
    cogpu_status status;
    if (self->raster.device != COGPU_DEVICE_CUDA)
        return finish_read(object);
    if (!self->store->pending || !wish->is_synchronised || wish->stream == self->raster.stream)
        return true;
    Py_BEGIN_ALLOW_THREADS
        status =
            cogpu_stream_wait(engine_context(self->store->engine), self->raster.device,
                              self->raster.device_index, wish->stream, self->raster.stream, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_error(&error);
}

static PyObject *array_dlpack(PyObject *object, PyObject *arguments, PyObject *words) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    array *self = (array *)object;
    cogpu_raster raster = self->raster;
    struct wish wish = {0};
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|$OOOO", names, &stream, &version, &device,
                                     &copy) ||
        !parse_stream(stream, &wish) || !parse_version(version, &wish) ||
        !parse_copy(copy, &wish) || !parse_dlpack_device(device, &raster, &wish))
        return NULL;
    if (!type_string(raster.type))
        return raise_buffer_error("DLPack has no samples of type %s", cogpu_type_name(raster.type));
    struct store *store = NULL;
    if (wish.is_copy)
        store = copy_array(object, wish.is_to_host, &raster);
    else if (make_ready(object, &wish))
        store = store_share(self->store);
    if (!store)
        return NULL;
    return wish.is_versioned ? versioned_capsule(store, &raster, wish.is_copy)
                             : legacy_capsule(store, &raster);
}

static PyObject *array_dlpack_device(PyObject *object, PyObject *unused) {
    int kind, index;
    (void)unused;
    device_numbers(&((array *)object)->raster, &kind, &index);
    return Py_BuildValue("(ii)", kind, index);
}

/* ---- arrays of others ------------------------------------------------------------------------ */

static struct store *upload_array(const struct taken *taken, cogpu_raster *raster) {
    size_t bytes;
    char *start;
    cogpu_error error;
    cogpu_status status;
    find_span(&taken->raster, &start, &bytes);
    if (bytes != raster_bytes(&taken->raster))
        return (void *)raise_argument("array must be packed to go to another device");
    struct store *store = store_new(raster);
    if (!store)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_device_upload(engine_context(store->engine), store->device,
                                     store->device_index, start, bytes, store->memory, &error);
    Py_END_ALLOW_THREADS
    if (status == COGPU_OK)
        return store;
    store_drop_with_gil(store);
    return (void *)raise_error(&error);
}

PyObject *array_place(PyObject *module, PyObject *arguments) {
    PyObject *given, *device;
    struct taking taking = {.name = "array"};
    struct taken taken;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO", &given, &device) ||
        !device_parse(device, &taking.device, &taking.device_index) ||
        !raster_take(given, &taking, &taken))
        return NULL;
    cogpu_raster raster = taken.raster;
    if (taking.device != COGPU_DEVICE_CUDA || raster.device == COGPU_DEVICE_CUDA) {
        struct store *over = store_over(&taken);
        return over ? array_new(over, &raster) : NULL;
    }
    raster.stride_band = raster.stride_y = raster.stride_x = 0;
    raster.device = taking.device;
    raster.device_index = taking.device_index;
    struct store *copy = upload_array(&taken, &raster);
    raster_drop(&taken);
    return copy ? array_new(copy, &raster) : NULL;
}

/* ---- the type -------------------------------------------------------------------------------- */

bool array_add_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"wait", array_wait, METH_NOARGS,
         PyDoc_STR("wait()\n--\n\nWaits for a read with wait=False and raises what went wrong; "
                   "DeviceError where blocks came "
                   "late, after others may have used the memory.")},
        {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("__dlpack__(*, stream=None, max_version=None, dl_device=None, "
                   "copy=None)\n--\n\nA capsule of DLPack.")},
        {"__dlpack_device__", array_dlpack_device, METH_NOARGS,
         PyDoc_STR("__dlpack_device__()\n--\n\nDLPack's (kind, number) of the device.")},
        {"__array__", (PyCFunction)(void (*)(void))array_array, METH_VARARGS | METH_KEYWORDS, NULL},
        {0}};
    static PyGetSetDef getters[] = {
        {"shape", get_shape, NULL, PyDoc_STR("(bands, height, width)"), NULL},
        {"dtype", get_dtype, NULL, PyDoc_STR("NumPy's name of the sample type"), NULL},
        {"nbytes", get_nbytes, NULL, PyDoc_STR("Bytes of all samples"), NULL},
        {"device", get_device, NULL, PyDoc_STR("\"cpu\", \"cuda:0\", \"emu:1\""), NULL},
        {"result", get_result, NULL,
         PyDoc_STR("Fields of cogpu_result: blocks, bytes, milliseconds"), NULL},
        {"__array_interface__", get_array_interface, NULL, NULL, NULL},
        {"__cuda_array_interface__", get_cuda_array_interface, NULL, NULL, NULL},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_doc, "Pixels in host memory or of a device, shaped "
                                              "(band, y, x). Memory is freed with the last that "
                                              "refers to it, on any thread."},
                                  {Py_tp_dealloc, array_dealloc},
                                  {Py_tp_repr, array_repr},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, getters},
                                  {0}};
    static PyType_Spec spec = {.name = "cogpu._cogpu.Array",
                               .basicsize = sizeof(array),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    array_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return array_type && PyModule_AddObjectRef(module, "Array", (PyObject *)array_type) == 0;
}
