/*
 * Windows of one size, of one file or many, into one array: batches of training crops. What the
 * windows share is parsed once, and their places come as an array, so that a window costs no Python
 * object.
 */
#include "fields.h"
#include "file.h"
#include "raster.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_NUMBERS = 3 };

struct batch {
    size_t count;
    struct handle **handles; /* of each window's file */
    Py_buffer places;        /* int64: image, row, column of each window */
    struct taken out;        /* the windows one after the other, each with its bands */
    cogpu_request shared;    /* the request without the corner */
    uint32_t *bands;
    cogpu_request *requests;
    cogpu_raster *rasters;
    cogpu_read_item *items;
    cogpu_result *results;
};

struct batch_words {
    PyObject *files, *places, *out, *level, *bands, *device, *stream;
};

static bool parse_words(PyObject *arguments, PyObject *words, struct batch_words *given,
                        struct batch *batch) {
    static char *names[] = {"files",   "places",          "out",    "level",  "bands", "masked",
                            "unscale", "fill_bad_blocks", "device", "stream", NULL};
    cogpu_request *shared = &batch->shared;
    return PyArg_ParseTupleAndKeywords(arguments, words, "OOO|$OOpppOO:read_windows", names,
                                       &given->files, &given->places, &given->out, &given->level,
                                       &given->bands, &shared->masked, &shared->unscale,
                                       &shared->fill_bad_blocks, &given->device, &given->stream) &&
           (!given->level || number_u32(given->level, "level", &shared->level)) &&
           request_bands(given->bands, 0, shared, &batch->bands);
}

static bool take_files(PyObject *files, struct batch *batch) {
    if (!PyList_Check(files)) {
        PyErr_Format(PyExc_TypeError, "files must be a list, not %R", Py_TYPE(files));
        return false;
    }
    size_t count = (size_t)PyList_Size(files);
    batch->handles = calloc(count + 1, sizeof *batch->handles);
    batch->requests = calloc(count + 1, sizeof *batch->requests);
    batch->rasters = calloc(count + 1, sizeof *batch->rasters);
    batch->items = calloc(count + 1, sizeof *batch->items);
    batch->results = calloc(count + 1, sizeof *batch->results);
    if (!batch->handles || !batch->requests || !batch->rasters || !batch->items || !batch->results)
        return PyErr_NoMemory();
    for (; batch->count < count; batch->count++)
        if (!(batch->handles[batch->count] =
                  file_take(PyList_GetItem(files, (Py_ssize_t)batch->count))))
            return false;
    return true;
}

static bool take_places(PyObject *places, struct batch *batch) {
    Py_buffer *view = &batch->places;
    if (PyObject_GetBuffer(places, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
        return false;
    const char *format = view->format ? view->format : "B";
    bool is_int64 = view->itemsize == sizeof(int64_t) && (*format == 'l' || *format == 'q');
    if (is_int64 && view->ndim == 2 && (size_t)view->shape[0] == batch->count &&
        view->shape[1] == PLACE_NUMBERS)
        return true;
    return raise_argument("places must be an int64 array of the shape (%zu, %d): image, row and "
                          "column of the window of each file",
                          batch->count, PLACE_NUMBERS);
}

static bool take_out(const struct batch_words *given, struct batch *batch) {
    struct taking taking = {.name = "out", .is_written = true};
    if (!stream_parse(given->stream, &taking.stream) ||
        (given->device && given->device != Py_None &&
         !device_parse(given->device, &taking.device, &taking.device_index)) ||
        !raster_take(given->out, &taking, &batch->out))
        return false;
    const cogpu_raster *out = &batch->out.raster;
    if (out->bands && out->height && out->width && out->bands % batch->count == 0)
        return true;
    return raise_argument("out has the shape (%u, %u, %u), which is not that of %zu windows: "
                          "(windows * bands, height, width)",
                          out->bands, out->height, out->width, batch->count);
}

/* The array is not empty, so it has a stride, and the window's first sample lies inside. */
static void place_raster(const struct batch *batch, size_t index) {
    cogpu_raster *raster = &batch->rasters[index];
    *raster = batch->out.raster;
    raster->bands = (uint32_t)(batch->out.raster.bands / batch->count);
    raster->data = (char *)raster->data + (int64_t)index * raster->bands * raster->stride_band;
}

static bool place_request(const struct batch *batch, size_t index) {
    int64_t place[PLACE_NUMBERS];
    cogpu_request *request = &batch->requests[index];
    memcpy(place, (const char *)batch->places.buf + index * sizeof place, sizeof place);
    for (int i = 0; i < PLACE_NUMBERS; i++)
        if (place[i] < 0 || place[i] > UINT32_MAX) {
            raise_argument("window %zu of the batch has image %lld, row %lld and column %lld",
                           index, (long long)place[0], (long long)place[1], (long long)place[2]);
            return name_raised(handle_name(batch->handles[index]));
        }
    *request = batch->shared;
    request->image = (uint32_t)place[0];
    request->y = (uint32_t)place[1];
    request->x = (uint32_t)place[2];
    request->height = batch->out.raster.height;
    request->width = batch->out.raster.width;
    return true;
}

/* The library checks windows, bands and types against the files. */
static bool make_items(const struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        if (!place_request(batch, i))
            return false;
        place_raster(batch, i);
        batch->items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                            .file = handle_file(batch->handles[i]),
                                            .request = &batch->requests[i],
                                            .raster = &batch->rasters[i],
                                            .result = &batch->results[i]};
        batch->results[i].struct_size = sizeof(cogpu_result);
    }
    return true;
}

static bool run_batch(const struct batch *batch) {
    cogpu_error error;
    cogpu_status status;
    struct engine *engine = engine_take();
    if (!engine)
        return false;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_read_many(batch->items, batch->count, engine_context(engine), &error);
    Py_END_ALLOW_THREADS
    engine_drop(engine);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].status != COGPU_OK) /* the call's error is that of the first */
            return handle_raise(batch->handles[i], &error);
    return status == COGPU_OK || raise_error(&error);
}

static bool read_batch(const struct batch_words *given, struct batch *batch) {
    if (!take_files(given->files, batch) || !take_places(given->places, batch))
        return false;
    if (batch->count == 0)
        return true;
    return take_out(given, batch) && make_items(batch) && run_batch(batch);
}

/* Counts of all windows together. */
static PyObject *sum_results(const struct batch *batch) {
    static const struct field fields[] = {FIELD(cogpu_result, blocks, FIELD_U64),
                                          FIELD(cogpu_result, sparse_blocks, FIELD_U64),
                                          FIELD(cogpu_result, bad_blocks, FIELD_U64),
                                          FIELD(cogpu_result, cached_blocks, FIELD_U64),
                                          FIELD(cogpu_result, device_blocks, FIELD_U64),
                                          FIELD(cogpu_result, device_cached_blocks, FIELD_U64),
                                          FIELD(cogpu_result, cpu_fallback_blocks, FIELD_U64),
                                          FIELD(cogpu_result, bytes_read, FIELD_U64),
                                          FIELD(cogpu_result, gds_bytes, FIELD_U64)};
    cogpu_result sum = COGPU_RESULT_INIT;
    for (size_t i = 0; i < batch->count; i++)
        for (size_t j = 0; j < FIELD_COUNT(fields); j++)
            *(uint64_t *)((char *)&sum + fields[j].offset) +=
                *(const uint64_t *)((const char *)&batch->results[i] + fields[j].offset);
    return fields_dict(fields, FIELD_COUNT(fields), &sum);
}

static void batch_drop(struct batch *batch) {
    raster_drop(&batch->out);
    PyBuffer_Release(&batch->places);
    for (size_t i = 0; i < batch->count; i++)
        handle_drop(batch->handles[i]);
    free(batch->handles);
    free(batch->requests);
    free(batch->rasters);
    free(batch->items);
    free(batch->results);
    free(batch->bands);
}

PyObject *file_read_windows(PyObject *module, PyObject *arguments, PyObject *words) {
    struct batch batch = {.shared = COGPU_REQUEST_INIT};
    struct batch_words given = {0};
    (void)module;
    bool is_read = parse_words(arguments, words, &given, &batch) && read_batch(&given, &batch);
    PyObject *sums = is_read ? sum_results(&batch) : NULL;
    batch_drop(&batch);
    return sums;
}
