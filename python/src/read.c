/*
 * Reads into an Array from keyword arguments: one window, or many as one batch.
 */
#include "array.h"
#include "fields.h"
#include "file.h"

#include <stdlib.h>

/* A read as it is put together. What it holds, the store takes over where the read goes on without
 * us. */
struct reading {
    struct handle *handle;
    cogpu_request request;
    uint32_t *bands;
    cogpu_raster raster;
    struct store *store;
    bool is_waited;
};

/* Keywords that cannot be used as they come. */
struct keywords {
    PyObject *image, *level, *window, *bands, *content, *dtype, *threads, *device, *decode, *out;
    PyObject *stream;
    cogpu_device_kind kind;
    uint32_t index;
    cogpu_type type;
    void *cuda_stream;
};

static bool is_given(const PyObject *value) {
    return value && value != Py_None;
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool parse_keywords(PyObject *arguments, PyObject *words, struct keywords *given,
                           struct reading *reading) {
    static char *names[] = {
        "image",           "level",   "window", "bands",  "content", "dtype",  "masked", "unscale",
        "fill_bad_blocks", "threads", "device", "decode", "out",     "stream", "wait",   NULL};
    cogpu_request *request = &reading->request;
    int is_waited = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|$OOOOOOpppOOOOOp", names, &given->image,
                                     &given->level, &given->window, &given->bands, &given->content,
                                     &given->dtype, &request->masked, &request->unscale,
                                     &request->fill_bad_blocks, &given->threads, &given->device,
                                     &given->decode, &given->out, &given->stream, &is_waited))
        return false;
    reading->is_waited = is_waited;
    return (!given->image || number_u32(given->image, "image", &request->image)) &&
           (!given->level || number_u32(given->level, "level", &request->level)) &&
           (!given->threads || number_u32(given->threads, "threads", &request->threads)) &&
           (!is_given(given->dtype) || type_parse(given->dtype, "dtype", &given->type)) &&
           (!is_given(given->device) || device_parse(given->device, &given->kind, &given->index)) &&
           (!is_given(given->decode) ||
            device_parse(given->decode, &request->decode_device, &request->decode_device_index)) &&
           stream_parse(given->stream, &given->cuda_stream);
}

static bool parse_window(PyObject *window, const cogpu_level *level, cogpu_request *request) {
    uint32_t *numbers[] = {&request->x, &request->y, &request->width, &request->height};
    request->width = level->width;
    request->height = level->height;
    if (!is_given(window))
        return true;
    if (!PyTuple_Check(window) || PyTuple_Size(window) != 4) {
        PyErr_Format(PyExc_TypeError, "window must be a tuple of four ints, not %R", window);
        return false;
    }
    for (int i = 0; i < 4; i++)
        if (!number_u32(PyTuple_GetItem(window, i), "window", numbers[i]))
            return false;
    bool is_inside = request->width && request->height &&
                     (uint64_t)request->x + request->width <= level->width &&
                     (uint64_t)request->y + request->height <= level->height;
    return is_inside ||
           raise_argument(
               "window has %u x %u pixels from column %u, row %u on, and the level %u x %u",
               request->width, request->height, request->x, request->y, level->width,
               level->height);
}

bool request_bands(PyObject *bands, uint32_t all, cogpu_request *request, uint32_t **list) {
    request->band_count = all;
    if (!is_given(bands))
        return true;
    Py_ssize_t count = PyTuple_Check(bands) ? PyTuple_Size(bands) : -1;
    if (count < 0) {
        PyErr_Format(PyExc_TypeError, "bands must be a tuple of ints, not %R", Py_TYPE(bands));
        return false;
    }
    if (count == 0 || count > UINT32_MAX)
        return raise_argument("bands names none");
    *list = malloc((size_t)count * sizeof **list);
    if (!*list)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if (!number_u32(PyTuple_GetItem(bands, i), "bands", &(*list)[i]))
            return false;
    request->bands = *list;
    request->band_count = (uint32_t)count;
    return true;
}

/* ---- the raster ------------------------------------------------------------------------------ */

static bool check_shape(const cogpu_raster *out, const cogpu_raster *wanted) {
    if (out->bands == wanted->bands && out->height == wanted->height && out->width == wanted->width)
        return true;
    return raise_argument("out has the shape (%u, %u, %u), and the pixels (%u, %u, %u)", out->bands,
                          out->height, out->width, wanted->bands, wanted->height, wanted->width);
}

/* Floats take all samples but complex ones; other types those of the image alone. */
static bool check_type(const cogpu_raster *out, cogpu_type asked, cogpu_type wanted) {
    bool is_float =
        out->type == COGPU_TYPE_F16 || out->type == COGPU_TYPE_F32 || out->type == COGPU_TYPE_F64;
    if (out->type == wanted || (asked == COGPU_TYPE_NONE && is_float))
        return true;
    return raise_argument("out has the dtype %s, and the pixels %s", cogpu_type_name(out->type),
                          cogpu_type_name(wanted));
}

static bool check_device(const cogpu_raster *out, const struct keywords *given) {
    if (!is_given(given->device) ||
        (out->device == given->kind && out->device_index == given->index))
        return true;
    PyObject *name = device_name(out->device, out->device_index);
    if (name)
        raise_argument("out is on %U, not on the device %R", name, given->device);
    Py_XDECREF(name);
    return false;
}

static bool use_out(const struct keywords *given, struct reading *reading) {
    struct taking taking = {.name = "out",
                            .is_written = true,
                            .device = given->kind,
                            .device_index = given->index,
                            .stream = given->cuda_stream};
    struct taken taken;
    cogpu_type wanted = reading->raster.type;
    if (!raster_take(given->out, &taking, &taken))
        return false;
    if (!check_shape(&taken.raster, &reading->raster) ||
        !check_type(&taken.raster, given->type, wanted) || !check_device(&taken.raster, given)) {
        raster_drop(&taken);
        return false;
    }
    reading->raster = taken.raster;
    reading->store = store_over(&taken);
    return reading->store;
}

static bool make_raster(const struct keywords *given, cogpu_type type, struct reading *reading) {
    const cogpu_request *request = &reading->request;
    reading->raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                     .type = type,
                                     .bands = request->band_count,
                                     .height = request->height,
                                     .width = request->width};
    if (is_given(given->out))
        return use_out(given, reading);
    reading->raster.device = given->kind;
    reading->raster.device_index = given->index;
    reading->raster.stream = given->kind == COGPU_DEVICE_CUDA ? given->cuda_stream : NULL;
    if (!stream_check(given->kind, given->cuda_stream))
        return false;
    reading->store = store_new(&reading->raster);
    return reading->store;
}

/* ---- one read -------------------------------------------------------------------------------- */

static void reading_drop(struct reading *reading) {
    store_drop_with_gil(reading->store);
    handle_drop(reading->handle);
    free(reading->bands);
}

static bool prepare_reading(PyObject *file, PyObject *arguments, PyObject *words,
                            struct reading *reading) {
    struct keywords given = {0};
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_level level = COGPU_LEVEL_INIT;
    cogpu_error error;
    cogpu_request *request = &reading->request;
    reading->handle = file_take(file);
    if (!reading->handle || !parse_keywords(arguments, words, &given, reading) ||
        (given.content && !content_parse(given.content, &request->content)))
        return false;
    const cogpu_file *opened = handle_file(reading->handle);
    if (cogpu_image_info(opened, request->image, &image, &error) != COGPU_OK ||
        cogpu_level_info(opened, request->image, request->level, &level, &error) != COGPU_OK)
        return handle_raise(reading->handle, &error);
    cogpu_type type = request->content == COGPU_CONTENT_MASK ? COGPU_TYPE_U8
                      : given.type                           ? given.type
                                                             : image.type;
    return (parse_window(given.window, &level, request) &&
            request_bands(given.bands, image.bands, request, &reading->bands) &&
            make_raster(&given, type, reading)) ||
           name_raised(handle_name(reading->handle));
}

/* The store keeps what the library looks at until the read is through. */
static void hand_over(struct reading *reading, struct engine *engine, cogpu_pending *pending) {
    struct store *store = reading->store;
    store->file = handle_share(reading->handle);
    store->bands = reading->bands;
    reading->bands = NULL;
    if (!store->engine)
        store->engine = engine_share(engine);
    store->was_pending = true;
    store->pending = pending;
}

/* Reads of files that call Python, and reads into host memory, have nothing to wait for later. */
static bool is_asynchronous(const struct reading *reading) {
    return !reading->is_waited && !handle_needs_python(reading->handle) &&
           reading->raster.device != COGPU_DEVICE_CPU;
}

static bool run_reading(struct reading *reading, struct engine *engine) {
    struct store *store = reading->store;
    const cogpu_file *file = handle_file(reading->handle);
    cogpu_request *request = &reading->request;
    cogpu_pending *pending = NULL;
    cogpu_status status;
    request->context = engine_context(engine);
    bool is_async = is_asynchronous(reading);
    Py_BEGIN_ALLOW_THREADS
        status = is_async
                     ? cogpu_read_async(file, request, &reading->raster, &pending, &store->error)
                     : cogpu_read(file, request, &reading->raster, &store->result, &store->error);
    Py_END_ALLOW_THREADS
    if (pending)
        hand_over(reading, engine, pending);
    return status == COGPU_OK || handle_raise(reading->handle, &store->error);
}

/* The Array of a read that is through or under way. */
static PyObject *finish_reading(struct reading *reading) {
    PyObject *array = array_new(reading->store, &reading->raster);
    reading->store = NULL;
    return array;
}

/* That of the array's memory, which a new context may have taken over from since. */
static struct engine *engine_for(const struct reading *reading) {
    struct engine *own = reading->store->engine;
    return own ? engine_share(own) : engine_take();
}

PyObject *file_read(PyObject *file, PyObject *arguments, PyObject *words) {
    struct reading reading = {.request = COGPU_REQUEST_INIT};
    PyObject *array = NULL;
    struct engine *engine = NULL;
    if (prepare_reading(file, arguments, words, &reading) && (engine = engine_for(&reading)) &&
        run_reading(&reading, engine))
        array = finish_reading(&reading);
    reading_drop(&reading);
    engine_drop(engine);
    return array;
}

/* ---- many reads ------------------------------------------------------------------------------ */

static bool prepare_item(PyObject *request, PyObject *none, struct reading *reading) {
    PyObject *file = NULL, *words = NULL;
    if (!PyTuple_Check(request) || PyTuple_Size(request) != 2 ||
        !PyDict_Check(words = PyTuple_GetItem(request, 1))) {
        PyErr_Format(PyExc_TypeError,
                     "a request is a file and a dict of the keywords of its read, not %R", request);
        return false;
    }
    file = PyTuple_GetItem(request, 0);
    if (PyDict_GetItemString(words, "wait") || PyDict_GetItemString(words, "threads"))
        return raise_argument("wait and threads are not for reads in a batch");
    return prepare_reading(file, none, words, reading);
}

static bool run_items(struct reading *readings, cogpu_read_item *items, size_t count,
                      struct engine *engine) {
    cogpu_error error;
    cogpu_status status;
    for (size_t i = 0; i < count; i++)
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = handle_file(readings[i].handle),
                                     .request = &readings[i].request,
                                     .raster = &readings[i].raster,
                                     .result = &readings[i].store->result};
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_read_many(items, count, engine_context(engine), &error);
    Py_END_ALLOW_THREADS
    for (size_t i = 0; i < count; i++)
        if (items[i].status != COGPU_OK) /* the call's error is that of the first */
            return handle_raise(readings[i].handle, &error);
    return status == COGPU_OK || raise_error(&error);
}

static PyObject *finish_items(struct reading *readings, size_t count) {
    PyObject *arrays = PyList_New(0);
    for (size_t i = 0; arrays && i < count; i++)
        if (!list_add(arrays, finish_reading(&readings[i])))
            Py_CLEAR(arrays);
    return arrays;
}

static PyObject *read_items(PyObject *requests, struct reading *readings, cogpu_read_item *items,
                            size_t count) {
    PyObject *none = PyTuple_New(0), *arrays = NULL;
    bool is_ready = none;
    for (size_t i = 0; i < count; i++)
        readings[i].request = (cogpu_request)COGPU_REQUEST_INIT;
    for (size_t i = 0; is_ready && i < count; i++)
        is_ready = prepare_item(PyList_GetItem(requests, (Py_ssize_t)i), none, &readings[i]);
    Py_XDECREF(none);
    struct engine *engine = is_ready ? engine_take() : NULL;
    if (engine && run_items(readings, items, count, engine))
        arrays = finish_items(readings, count);
    engine_drop(engine);
    return arrays;
}

PyObject *file_read_many(PyObject *module, PyObject *requests) {
    (void)module;
    if (!PyList_Check(requests))
        return PyErr_Format(PyExc_TypeError, "requests must be a list, not %R", Py_TYPE(requests));
    requests = PyList_GetSlice(requests, 0,
                               PyList_Size(requests)); /* a copy: no other code can change it */
    if (!requests)
        return NULL;
    size_t count = (size_t)PyList_Size(requests);
    struct reading *readings = calloc(count + 1, sizeof *readings);
    cogpu_read_item *items = calloc(count + 1, sizeof *items);
    PyObject *arrays =
        readings && items ? read_items(requests, readings, items, count) : PyErr_NoMemory();
    for (size_t i = 0; readings && i < count; i++)
        reading_drop(&readings[i]);
    free(readings);
    free(items);
    Py_DECREF(requests);
    return arrays;
}
