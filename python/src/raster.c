/*
 * A raster over the memory of any array. Protocols are tried in this order: DLPack (versioned, then
 * unversioned), the CUDA array interface, the buffer protocol, the NumPy array interface.
 */
#include "raster.h"

#include "dlpack.h"
#include "fields.h"
#include "gil.h"
#include "store.h"

#include <stdio.h>
#include <string.h>

/* What a protocol made of an array. */
enum attempt { FAILED = -1, NOT_SPOKEN, TAKEN };

/* ---- types ----------------------------------------------------------------------------------- */

static const struct {
    cogpu_type type;
    uint8_t code, bits;
    char text[4]; /* of the array interfaces, without byte order */
} types[] = {
    {COGPU_TYPE_U8, DL_UINT, 8, "u1"},         {COGPU_TYPE_I8, DL_INT, 8, "i1"},
    {COGPU_TYPE_U16, DL_UINT, 16, "u2"},       {COGPU_TYPE_I16, DL_INT, 16, "i2"},
    {COGPU_TYPE_U32, DL_UINT, 32, "u4"},       {COGPU_TYPE_I32, DL_INT, 32, "i4"},
    {COGPU_TYPE_U64, DL_UINT, 64, "u8"},       {COGPU_TYPE_I64, DL_INT, 64, "i8"},
    {COGPU_TYPE_F16, DL_FLOAT, 16, "f2"},      {COGPU_TYPE_F32, DL_FLOAT, 32, "f4"},
    {COGPU_TYPE_F64, DL_FLOAT, 64, "f8"},      {COGPU_TYPE_CF32, DL_COMPLEX, 64, "c8"},
    {COGPU_TYPE_CF64, DL_COMPLEX, 128, "c16"},
};
enum { TYPES = sizeof types / sizeof *types };

static cogpu_type type_of_tensor(const struct dl_tensor *tensor) {
    for (int i = 0; i < TYPES && tensor->lanes == 1; i++)
        if (types[i].code == tensor->code && types[i].bits == tensor->bits)
            return types[i].type;
    return COGPU_TYPE_NONE;
}

/* "<f4", "|u1"; none for the byte order of other machines. */
static cogpu_type type_of_string(const char *text) {
    bool is_native = text[0] == '<' || text[0] == '=' || text[0] == '|' ||
                     (text[0] == '>' && strcmp(text + 2, "1") == 0);
    for (int i = 0; i < TYPES && is_native; i++)
        if (strcmp(types[i].text, text + 1) == 0)
            return types[i].type;
    return COGPU_TYPE_NONE;
}

/* Of the struct module's words, which leave the size to the machine: "<f", "Zd", "L". */
static cogpu_type type_of_format(const char *format, Py_ssize_t bytes) {
    if (*format == '@' || *format == '=' || *format == '<' || (bytes == 1 && *format))
        format += strchr("@=<>!", *format) != NULL;
    const char *letters = "bhilqBHILQefd";
    static const char kinds[] = "iiiiiuuuuufff";
    bool is_complex = *format == 'Z';
    const char *found = format[is_complex] ? strchr(letters, format[is_complex]) : NULL;
    if (!found || format[is_complex + 1])
        return COGPU_TYPE_NONE;
    char text[24];
    snprintf(text, sizeof text, "<%c%d", is_complex ? 'c' : kinds[found - letters], (int)bytes);
    return type_of_string(text);
}

const char *type_string(cogpu_type type) {
    static const char *const with_order[TYPES] = {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8",
                                                  "<i8", "<f2", "<f4", "<f8", "<c8", "<c16"};
    for (int i = 0; i < TYPES; i++)
        if (types[i].type == type)
            return with_order[i];
    return NULL;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The raster's strides must not all be 0, which would mean packed: a dimension of length 1 may have
 * any. */
static bool avoid_packed(cogpu_raster *raster) {
    int64_t bytes = (int64_t)cogpu_type_bytes(raster->type);
    if (raster->stride_band || raster->stride_y || raster->stride_x)
        return true;
    if (raster->bands == 1)
        raster->stride_band = bytes;
    else if (raster->height == 1)
        raster->stride_y = bytes;
    else if (raster->width == 1)
        raster->stride_x = bytes;
    else
        return false;
    return true;
}

/* `strides` in units of `unit` bytes; NULL for packed. */
static bool set_shape(cogpu_raster *raster, const char *name, int dimensions, const int64_t *shape,
                      const int64_t *strides, int64_t unit) {
    if (dimensions != 2 && dimensions != 3)
        return raise_argument("%s must have the dimensions (band, y, x) or (y, x), not %d of them",
                              name, dimensions);
    int64_t sizes[3] = {1, 1, 1}, steps[3] = {0};
    int64_t packed = (int64_t)cogpu_type_bytes(raster->type);
    bool is_beyond = false;
    for (int i = dimensions - 1, to = 2; to >= 0; i--, to--) {
        sizes[to] = i >= 0 ? shape[i] : 1;
        steps[to] = packed;
        if (strides && i >= 0)
            is_beyond |= __builtin_mul_overflow(strides[i], unit, &steps[to]);
        is_beyond |= sizes[to] < 0 || sizes[to] > UINT32_MAX ||
                     __builtin_mul_overflow(packed, sizes[to], &packed);
    }
    if (is_beyond)
        return raise_argument("%s is larger than a raster can be", name);
    raster->bands = (uint32_t)sizes[0], raster->height = (uint32_t)sizes[1];
    raster->width = (uint32_t)sizes[2];
    raster->stride_band = steps[0], raster->stride_y = steps[1], raster->stride_x = steps[2];
    return avoid_packed(raster) || raise_argument("%s repeats one value; copy it first", name);
}

static bool refuse_type(const char *name, const char *words) {
    return raise_argument(
        "%s has samples of a type that is not taken (%s); there are integers of 8 "
        "to 64 bits, floats of 16 to 64, complex64 and complex128, in the byte order of "
        "the machine",
        name, words);
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

static bool take_tensor(const struct dl_tensor *tensor, const struct taking *taking,
                        cogpu_raster *raster) {
    raster->type = type_of_tensor(tensor);
    if (raster->type == COGPU_TYPE_NONE) {
        char words[64];
        snprintf(words, sizeof words, "DLPack's code %d of %d bits, %d lanes", tensor->code,
                 tensor->bits, tensor->lanes);
        return refuse_type(taking->name, words);
    }
    switch (tensor->device_kind) {
    case DL_CPU:
    case DL_CUDA_HOST:
        break;
    case DL_CUDA:
    case DL_CUDA_MANAGED:
        raster->device = COGPU_DEVICE_CUDA;
        raster->device_index = (uint32_t)tensor->device_index;
        raster->stream = taking->stream;
        break;
    default:
        return raise_argument("%s is on a device of DLPack kind %d, which is neither the host nor "
                              "a CUDA device",
                              taking->name, (int)tensor->device_kind);
    }
    if (!set_shape(raster, taking->name, tensor->dimensions, tensor->shape, tensor->strides,
                   (int64_t)cogpu_type_bytes(raster->type)))
        return false;
    raster->data = (char *)tensor->data + tensor->byte_offset;
    return true;
}

static bool take_capsule(PyObject *capsule, const struct taking *taking, struct taken *taken) {
    if (PyCapsule_IsValid(capsule, DL_VERSIONED_NAME)) {
        taken->versioned = PyCapsule_GetPointer(capsule, DL_VERSIONED_NAME);
        if (PyCapsule_SetName(capsule, DL_VERSIONED_USED_NAME) != 0)
            return false;
        if (taken->versioned->major != 1)
            return raise_argument("%s speaks version %u of DLPack, and 1 is known here",
                                  taking->name, (unsigned)taken->versioned->major);
        taken->is_read_only = taken->versioned->flags & DL_READ_ONLY;
        return take_tensor(&taken->versioned->tensor, taking, &taken->raster);
    }
    taken->legacy = PyCapsule_GetPointer(capsule, DL_LEGACY_NAME);
    return taken->legacy && PyCapsule_SetName(capsule, DL_LEGACY_USED_NAME) == 0 &&
           take_tensor(&taken->legacy->tensor, taking, &taken->raster);
}

/* Calls array.__dlpack__, with max_version or, for what was made before there was one, without. */
static PyObject *ask_capsule(PyObject *array, bool is_versioned, bool is_cuda, void *stream) {
    PyObject *words = PyDict_New(), *none = PyTuple_New(0), *capsule = NULL;
    PyObject *method = PyObject_GetAttrString(array, "__dlpack__");
    bool is_ready = words && none && method;
    if (is_ready && is_versioned)
        is_ready = dict_add(words, "max_version", Py_BuildValue("(ii)", 1, 2));
    if (is_ready && is_cuda) /* 1 is CUDA's default stream */
        is_ready =
            dict_add(words, "stream", PyLong_FromUnsignedLongLong(stream ? (uintptr_t)stream : 1));
    if (is_ready)
        capsule = PyObject_Call(method, none, words);
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(words);
    return capsule;
}

static bool is_on_cuda(PyObject *array, bool *is_cuda) {
    int kind = 0, index = 0;
    PyObject *device = PyObject_CallMethod(array, "__dlpack_device__", NULL);
    bool is_known = device && number_pair(device, "__dlpack_device__()", &kind, &index);
    Py_XDECREF(device);
    *is_cuda = kind == DL_CUDA || kind == DL_CUDA_MANAGED;
    return is_known;
}

/* Which tells what DLPack cannot, and is right where a producer's DLPack is not: CuPy divides
 * negative strides as if they were large ones. */
static bool has_interface(PyObject *array) {
    return PyObject_HasAttrString(array, "__cuda_array_interface__") ||
           PyObject_HasAttrString(array, "__array_interface__");
}

static enum attempt take_dlpack(PyObject *array, const struct taking *taking, struct taken *taken) {
    bool is_cuda = false;
    if (!PyObject_HasAttrString(array, "__dlpack__") ||
        !PyObject_HasAttrString(array, "__dlpack_device__"))
        return NOT_SPOKEN;
    PyObject *capsule =
        is_on_cuda(array, &is_cuda) ? ask_capsule(array, true, is_cuda, taking->stream) : NULL;
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = ask_capsule(array, false, is_cuda, taking->stream);
    }
    if (!capsule)
        return PyErr_ExceptionMatches(PyExc_BufferError) ? NOT_SPOKEN : FAILED;
    bool is_told_elsewhere = has_interface(array); /* asked while no exception is raised */
    bool is_taken = take_capsule(capsule, taking, taken);
    Py_DECREF(capsule);
    if (is_taken)
        return TAKEN;
    raster_drop(taken);
    *taken = (struct taken){.raster = COGPU_RASTER_INIT};
    return is_told_elsewhere && PyErr_ExceptionMatches(PyExc_ValueError) ? NOT_SPOKEN : FAILED;
}

/* ---- the array interfaces -------------------------------------------------------------------- */

/* A tuple of numbers into `to`; their count, or -1 with an exception. */
static int parse_tuple_numbers(PyObject *tuple, const char *name, int64_t to[3]) {
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count < 0) {
        PyErr_Format(PyExc_TypeError, "%s has an array interface without a shape", name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count && i < 3; i++)
        if (!number_i64(PyTuple_GetItem(tuple, i), name, &to[i]))
            return -1;
    return (int)count;
}

static bool take_description(PyObject *dict, const struct taking *taking, struct taken *taken) {
    PyObject *shape = PyDict_GetItemString(dict, "shape"),
             *type = PyDict_GetItemString(dict, "typestr");
    PyObject *data = PyDict_GetItemString(dict, "data"),
             *strides = PyDict_GetItemString(dict, "strides");
    if (!shape || !type || !data || !PyTuple_Check(data) || PyTuple_Size(data) != 2 ||
        !PyUnicode_Check(type)) {
        PyErr_Format(PyExc_TypeError, "%s has an array interface without shape, typestr or data",
                     taking->name);
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(type, NULL);
    if (!text)
        return false;
    taken->raster.type = type_of_string(text);
    if (taken->raster.type == COGPU_TYPE_NONE)
        return refuse_type(taking->name, text);
    int64_t sizes[3], steps[3];
    bool is_strided = strides && strides != Py_None;
    int dimensions = parse_tuple_numbers(shape, taking->name, sizes);
    if (dimensions < 0 ||
        (is_strided && parse_tuple_numbers(strides, taking->name, steps) != dimensions)) {
        return PyErr_Occurred()
                   ? false
                   : raise_argument("%s has as many strides as dimensions", taking->name);
    }
    uint64_t address = 0;
    int is_read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (is_read_only < 0 || !number_u64(PyTuple_GetItem(data, 0), taking->name, &address))
        return false;
    taken->raster.data = (void *)(uintptr_t)address;
    taken->is_read_only = is_read_only;
    return set_shape(&taken->raster, taking->name, dimensions, sizes, is_strided ? steps : NULL, 1);
}

/* The stream that we use the array on follows the one that the array's owner names. */
static bool follow_owner(PyObject *dict, const struct taking *taking, cogpu_raster *raster,
                         cogpu_context *context) {
    PyObject *named = PyDict_GetItemString(dict, "stream");
    void *theirs = NULL;
    cogpu_error error;
    if (!named || named == Py_None)
        return true;
    if (!stream_parse(named, &theirs))
        return false;
    if (!theirs)
        return raise_argument("%s names stream 0, which says nothing of which stream is meant",
                              taking->name);
    return cogpu_stream_wait(context, COGPU_DEVICE_CUDA, raster->device_index, raster->stream,
                             theirs, &error) == COGPU_OK ||
           raise_error(&error);
}

static bool place_cuda(PyObject *dict, const struct taking *taking, cogpu_raster *raster) {
    cogpu_error error;
    struct engine *engine = engine_take();
    if (!engine)
        return false;
    bool is_placed = cogpu_pointer_device(engine_context(engine), raster->data, &raster->device,
                                          &raster->device_index, &error) == COGPU_OK ||
                     raise_error(&error);
    if (is_placed && raster->device != COGPU_DEVICE_CUDA)
        is_placed =
            raise_argument("%s has a __cuda_array_interface__, but no GPU memory", taking->name);
    raster->stream = taking->stream;
    is_placed = is_placed && follow_owner(dict, taking, raster, engine_context(engine));
    engine_drop(engine);
    return is_placed;
}

static enum attempt take_interface(PyObject *array, const char *attribute, bool is_cuda,
                                   const struct taking *taking, struct taken *taken) {
    if (!PyObject_HasAttrString(array, attribute))
        return NOT_SPOKEN;
    PyObject *dict = PyObject_GetAttrString(array, attribute);
    bool is_taken = dict && PyDict_Check(dict) && take_description(dict, taking, taken) &&
                    (!is_cuda || place_cuda(dict, taking, &taken->raster));
    if (dict && !PyDict_Check(dict))
        PyErr_Format(PyExc_TypeError, "%s: %s must be a dict", taking->name, attribute);
    Py_XDECREF(dict);
    if (!is_taken)
        return FAILED;
    taken->owner = Py_NewRef(array);
    return TAKEN;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static enum attempt take_buffer(PyObject *array, const struct taking *taking, struct taken *taken) {
    if (!PyObject_CheckBuffer(array))
        return NOT_SPOKEN;
    Py_buffer *view = &taken->view;
    if (PyObject_GetBuffer(array, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0)
        return PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError)
                   ? NOT_SPOKEN
                   : FAILED;
    const char *format = view->format ? view->format : "B";
    int64_t shape[3] = {0}, strides[3] = {0};
    for (int i = 0; i < view->ndim && i < 3; i++)
        shape[i] = view->shape[i], strides[i] = view->strides[i];
    taken->is_read_only = view->readonly;
    taken->raster.data = view->buf;
    taken->raster.type = type_of_format(format, view->itemsize);
    if (taken->raster.type == COGPU_TYPE_NONE)
        return refuse_type(taking->name, format) ? TAKEN : FAILED;
    return set_shape(&taken->raster, taking->name, view->ndim, shape, strides, 1) ? TAKEN : FAILED;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The error of a protocol is raised only if no protocol works. */
static enum attempt forget_failure(enum attempt attempt, PyObject **failure) {
    if (attempt != NOT_SPOKEN || !PyErr_Occurred())
        return attempt;
    PyObject *type, *traceback;
    Py_CLEAR(*failure);
    PyErr_Fetch(&type, failure, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return attempt;
}

static bool take_any(PyObject *array, const struct taking *taking, struct taken *taken) {
    PyObject *failure = NULL;
    enum attempt attempt = forget_failure(take_dlpack(array, taking, taken), &failure);
    if (attempt == NOT_SPOKEN)
        attempt = take_interface(array, "__cuda_array_interface__", true, taking, taken);
    if (attempt == NOT_SPOKEN)
        attempt = forget_failure(take_buffer(array, taking, taken), &failure);
    if (attempt == NOT_SPOKEN)
        attempt = take_interface(array, "__array_interface__", false, taking, taken);
    if (attempt == NOT_SPOKEN && failure)
        raise_argument("%s cannot be taken as it is: %S", taking->name, failure);
    else if (attempt == NOT_SPOKEN)
        PyErr_Format(PyExc_TypeError, "%s must be an array, not %R", taking->name, Py_TYPE(array));
    Py_XDECREF(failure);
    return attempt == TAKEN;
}

static bool check_written(const struct taken *taken, const char *name) {
    const cogpu_raster *raster = &taken->raster;
    if (taken->is_read_only)
        return raise_argument("%s is read-only", name);
    if ((raster->bands > 1 && !raster->stride_band) || (raster->height > 1 && !raster->stride_y) ||
        (raster->width > 1 && !raster->stride_x))
        return raise_argument("%s has pixels that share memory", name);
    return true;
}

/* Host memory may be an emulated GPU's, because the caller says so or because it came from
 * there. */
static bool place_host(const struct taking *taking, cogpu_raster *raster) {
    if (raster->device != COGPU_DEVICE_CPU)
        return true;
    if (taking->device == COGPU_DEVICE_EMULATOR) {
        raster->device = COGPU_DEVICE_EMULATOR;
        raster->device_index = taking->device_index;
        return stream_check(COGPU_DEVICE_EMULATOR, taking->stream);
    }
    struct engine *engine = store_has_emulated() ? engine_if_made() : NULL;
    if (!engine)
        return true;
    cogpu_device_kind kind = COGPU_DEVICE_CPU;
    uint32_t index = 0;
    cogpu_error error;
    bool is_known = cogpu_pointer_device(engine_context(engine), raster->data, &kind, &index,
                                         &error) == COGPU_OK ||
                    raise_error(&error);
    engine_drop(engine);
    if (is_known && kind == COGPU_DEVICE_EMULATOR) {
        raster->device = kind;
        raster->device_index = index;
    }
    return is_known && stream_check(raster->device, taking->stream);
}

bool raster_take(PyObject *array, const struct taking *taking, struct taken *taken) {
    *taken = (struct taken){.raster = COGPU_RASTER_INIT};
    if (take_any(array, taking, taken) &&
        (!taking->is_written || check_written(taken, taking->name)) &&
        place_host(taking, &taken->raster))
        return true;
    raster_drop(taken);
    return false;
}

/* What needs Python is left lying where there is none any more. */
static void drop_objects(struct taken *taken) {
    PyGILState_STATE state;
    if ((!taken->view.obj && !taken->owner) || !gil_take(&state))
        return;
    PyBuffer_Release(&taken->view);
    Py_CLEAR(taken->owner);
    gil_give(state);
}

void raster_drop(struct taken *taken) {
    if (taken->versioned && taken->versioned->deleter)
        taken->versioned->deleter(taken->versioned);
    if (taken->legacy && taken->legacy->deleter)
        taken->legacy->deleter(taken->legacy);
    taken->versioned = NULL;
    taken->legacy = NULL;
    drop_objects(taken);
}

bool stream_parse(PyObject *value, void **stream) {
    uint64_t number = 0;
    if (value && value != Py_None && !number_u64(value, "stream", &number))
        return false;
    *stream = (void *)(uintptr_t)number;
    return true;
}

bool stream_check(cogpu_device_kind device, const void *stream) {
    enum { PER_THREAD = 2 }; /* CUDA's last number that is no address */
    return device != COGPU_DEVICE_EMULATOR || (uintptr_t)stream <= PER_THREAD ||
           raise_argument("stream must be None, 0, 1 or 2 on an emulated GPU, not %p", stream);
}
