/*
 * cogpu._cogpu, the extension module: its functions, and the types that other files add. The
 * contract is in cogpu/_cogpu.pyi.
 */
#include "module.h"
#include "array.h"
#include "fields.h"
#include "file.h"
#include "network.h"

static PyObject *get_version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyUnicode_FromString(cogpu_version());
}

static PyObject *device_object(const cogpu_device *device) {
    PyObject *dict = PyDict_New();
    if (dict && dict_add(dict, "name", device_name(device->kind, device->index)) &&
        dict_add(dict, "description", text_object(device->description)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *list_devices(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (uint32_t i = 0; list; i++) {
        cogpu_device device = COGPU_DEVICE_INIT;
        cogpu_status status;
        Py_BEGIN_ALLOW_THREADS
            status = cogpu_device_info(i, &device, NULL);
        Py_END_ALLOW_THREADS
        if (status != COGPU_OK)
            break;
        if (!list_add(list, device_object(&device)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *list_codecs(PyObject *module, PyObject *unused) {
    static const struct field fields[] = {FIELD(cogpu_codec, compression, FIELD_U32),
                                          FIELD(cogpu_codec, name, FIELD_TEXT),
                                          FIELD(cogpu_codec, library, FIELD_TEXT),
                                          FIELD(cogpu_codec, can_decode, FIELD_FLAG),
                                          FIELD(cogpu_codec, can_encode, FIELD_FLAG),
                                          FIELD(cogpu_codec, min_level, FIELD_I32),
                                          FIELD(cogpu_codec, max_level, FIELD_I32),
                                          FIELD(cogpu_codec, default_level, FIELD_I32),
                                          FIELD(cogpu_codec, has_quality, FIELD_FLAG),
                                          FIELD(cogpu_codec, has_max_z_error, FIELD_FLAG),
                                          FIELD(cogpu_codec, is_lossy, FIELD_FLAG),
                                          FIELD(cogpu_codec, predictors, FIELD_U32),
                                          FIELD(cogpu_codec, encode_types, FIELD_U32),
                                          FIELD(cogpu_codec, gpu_decode, FIELD_FLAG),
                                          FIELD(cogpu_codec, gpu_encode, FIELD_FLAG)};
    PyObject *list = PyList_New(0);
    cogpu_codec codec = COGPU_CODEC_INIT;
    (void)module, (void)unused;
    for (uint32_t i = 0; list && cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++)
        if (!list_add(list, fields_dict(fields, FIELD_COUNT(fields), &codec)))
            Py_CLEAR(list);
    return list;
}

static PyObject *list_resamplings(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (int i = COGPU_RESAMPLE_DEFAULT + 1; list && i <= COGPU_RESAMPLE_MEDIAN; i++)
        if (!list_add(list, text_object(cogpu_resampling_name((cogpu_resampling)i))))
            Py_CLEAR(list);
    return list;
}

/* TIFF's 0 is not the library's, whose 0 is the default. */
static PyObject *list_photometrics(PyObject *module, PyObject *unused) {
    PyObject *dict = PyDict_New();
    (void)module, (void)unused;
    for (int i = COGPU_PHOTOMETRIC_DEFAULT + 1; dict && i <= COGPU_PHOTOMETRIC_MIN_IS_WHITE; i++) {
        const char *name = cogpu_photometric_name((cogpu_photometric)i);
        if (name &&
            !dict_add(dict, name, PyLong_FromLong(i == COGPU_PHOTOMETRIC_MIN_IS_WHITE ? 0 : i)))
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *device_of(PyObject *module, PyObject *array) {
    struct taking taking = {.name = "array"};
    struct taken taken;
    (void)module;
    if (!raster_take(array, &taking, &taken))
        return NULL;
    PyObject *name = device_name(taken.raster.device, taken.raster.device_index);
    raster_drop(&taken);
    return name;
}

static PyObject *current_device(PyObject *module, PyObject *name) {
    cogpu_device_kind kind;
    uint32_t index;
    (void)module;
    return device_parse(name, &kind, &index) ? device_name(kind, index) : NULL;
}

static PyObject *bbox_to_window(PyObject *module, PyObject *arguments) {
    PyObject *transform_given, *width_given, *height_given, *bbox_given;
    double transform[6], bbox[4];
    uint32_t width, height;
    cogpu_window window = COGPU_WINDOW_INIT;
    cogpu_error error;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OOOO:bbox_to_window", &transform_given, &width_given,
                          &height_given, &bbox_given) ||
        !numbers_real(transform_given, "transform", 6, transform) ||
        !number_u32(width_given, "width", &width) || !number_u32(height_given, "height", &height) ||
        !numbers_real(bbox_given, "bbox", 4, bbox))
        return NULL;
    if (cogpu_bbox_to_window(transform, width, height, bbox, &window, &error) != COGPU_OK)
        return raise_error(&error);
    return Py_BuildValue("(IIII)", window.x, window.y, window.width, window.height);
}

static PyObject *configure_context(PyObject *module, PyObject *arguments, PyObject *words) {
    static char *names[] = {"threads",
                            "cache_bytes",
                            "device_bytes",
                            "use_nvjpeg_hardware",
                            "network",
                            "device_cache_bytes",
                            NULL};
    PyObject *threads = NULL, *cache = Py_None, *device = NULL, *network = Py_None,
             *device_cache = NULL;
    cogpu_context_options options = COGPU_CONTEXT_OPTIONS_INIT;
    struct arena texts = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|$OOOpOO", names, &threads, &cache, &device,
                                     &options.use_nvjpeg_hardware, &network, &device_cache) ||
        (threads && !number_u32(threads, "threads", &options.threads)) ||
        (cache != Py_None && !number_u64(cache, "cache_bytes", &options.cache_bytes)) ||
        (device && !number_u64(device, "device_bytes", &options.device_bytes)) ||
        (device_cache &&
         !number_u64(device_cache, "device_cache_bytes", &options.device_cache_bytes)))
        return NULL;
    if (network != Py_None && !(options.network = network_read(network, &texts))) {
        arena_release(&texts);
        return NULL;
    }
    engine_configure(&options, &texts);
    return Py_NewRef(Py_None);
}

static PyObject *forget_context(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    engine_forget();
    return Py_NewRef(Py_None);
}

PyMODINIT_FUNC PyInit__cogpu(void) {
    static PyMethodDef methods[] = {
        {"version", get_version, METH_NOARGS, PyDoc_STR("version()\n--\n\nOf the engine.")},
        {"devices", list_devices, METH_NOARGS,
         PyDoc_STR("devices()\n--\n\nName and description of each.")},
        {"codecs", list_codecs, METH_NOARGS,
         PyDoc_STR("codecs()\n--\n\nFields of cogpu_codec, of each.")},
        {"resamplings", list_resamplings, METH_NOARGS,
         PyDoc_STR("resamplings()\n--\n\nNames of the resampling methods of overviews.")},
        {"photometrics", list_photometrics, METH_NOARGS,
         PyDoc_STR("photometrics()\n--\n\nNames of photometric interpretations that can be "
                   "written, and TIFF's numbers.")},
        {"device_of", device_of, METH_O,
         PyDoc_STR("device_of(array)\n--\n\nThe device of an array.")},
        {"place", array_place, METH_VARARGS,
         PyDoc_STR("place(array, device)\n--\n\nAn Array over an array of the host's, or of a copy "
                   "on a GPU.")},
        {"current_device", current_device, METH_O,
         PyDoc_STR("current_device(kind)\n--\n\nThe calling thread's current one: \"cuda:0\".")},
        {"check", (PyCFunction)(void (*)(void))file_check, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR(
             "check(file, *, strict=False)\n--\n\nIs it a COG? Verdicts, and what was found.")},
        {"bbox_to_window", bbox_to_window, METH_VARARGS,
         PyDoc_STR("bbox_to_window(transform, width, height, bbox)\n--\n\n(x, y, width, height) of "
                   "the pixels of a level that a bounding box touches.")},
        {"open_mosaic", (PyCFunction)(void (*)(void))mosaic_open, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("open_mosaic(sources, options, *, grid=None, sidecars=None, limits=None, "
                   "vrt_sources=None)\n--\n\nA File of many sources on one grid.")},
        {"configure", (PyCFunction)(void (*)(void))configure_context, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR(
             "configure(*, threads=0, cache_bytes=None, device_bytes=0, use_nvjpeg_hardware=False, "
             "network=None, device_cache_bytes=0)\n--\n\n"
             "A new context for the reads from now on.")},
        {"forget_context", forget_context, METH_NOARGS,
         PyDoc_STR("forget_context()\n--\n\nAfter a fork: its threads are not here.")},
        {"read_many", file_read_many, METH_O,
         PyDoc_STR(
             "read_many(requests)\n--\n\nMany reads as one batch: a list of (file, keywords).")},
        {"read_windows", (PyCFunction)(void (*)(void))file_read_windows,
         METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("read_windows(files, places, out, *, level=0, bands=None, masked=False, "
                   "unscale=False, fill_bad_blocks=False, device=None, stream=None)\n--\n\n"
                   "Windows of one size, as one batch, into one array.")},
        {0}};
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "cogpu._cogpu",
                                            .m_doc = "The engine: files, arrays, writers.",
                                            .m_size = -1, .m_methods = methods};
    PyObject *module = PyModule_Create(&definition);
    if (module && array_add_type(module) && file_add_type(module) &&
        cogpu_python_add_writer(module) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
