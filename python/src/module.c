/*
 * cogpu._cogpu, the extension module: its functions, and the types that other files add. The
 * contract stands in cogpu/_cogpu.pyi.
 */
#include "module.h"
#include "array.h"
#include "fields.h"
#include "file.h"
#include "network.h"

static PyObject *version(PyObject *module, PyObject *unused) {
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

static PyObject *devices(PyObject *module, PyObject *unused) {
    PyObject *list = PyList_New(0);
    (void)module, (void)unused;
    for (uint32_t i = 0; list; i++) {
        cogpu_device device;
        cogpu_status status;
        Py_BEGIN_ALLOW_THREADS
            status = cogpu_device_info(i, &device);
        Py_END_ALLOW_THREADS
        if (status != COGPU_OK)
            break;
        if (!list_add(list, device_object(&device)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *codecs(PyObject *module, PyObject *unused) {
    static const struct field fields[] = {
        FIELD(cogpu_codec, compression, FIELD_U32), FIELD(cogpu_codec, name, FIELD_TEXT),
        FIELD(cogpu_codec, library, FIELD_TEXT), FIELD(cogpu_codec, available, FIELD_FLAG)};
    PyObject *list = PyList_New(0);
    cogpu_codec codec;
    (void)module, (void)unused;
    for (uint32_t i = 0; list && cogpu_codec_info(i, &codec) == COGPU_OK; i++)
        if (!list_add(list, fields_dict(fields, FIELD_COUNT(fields), &codec)))
            Py_CLEAR(list);
    return list;
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

static PyObject *configure(PyObject *module, PyObject *arguments, PyObject *words) {
    static char *names[] = {"threads",      "cache_bytes", "device_bytes",
                            "jpeg_engines", "network",     NULL};
    PyObject *threads = NULL, *cache = NULL, *device = NULL, *network = Py_None;
    cogpu_context_options options = {0};
    struct arena texts = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, "|$OOOpO", names, &threads, &cache, &device,
                                     &options.jpeg_engines, &network) ||
        (threads && !number_u32(threads, "threads", &options.threads)) ||
        (cache && !number_u64(cache, "cache_bytes", &options.cache_bytes)) ||
        (device && !number_u64(device, "device_bytes", &options.device_bytes)))
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
        {"version", version, METH_NOARGS, PyDoc_STR("version()\n--\n\nOf the engine.")},
        {"devices", devices, METH_NOARGS,
         PyDoc_STR("devices()\n--\n\nName and description of each.")},
        {"codecs", codecs, METH_NOARGS,
         PyDoc_STR("codecs()\n--\n\nFields of cogpu_codec, of each.")},
        {"device_of", device_of, METH_O, PyDoc_STR("device_of(array)\n--\n\nWhere an array lies.")},
        {"place", array_place, METH_VARARGS,
         PyDoc_STR("place(array, device)\n--\n\nAn Array over an array of the host's, or of a copy "
                   "on a GPU.")},
        {"current_device", current_device, METH_O,
         PyDoc_STR("current_device(kind)\n--\n\nThe calling thread's current one: \"cuda:0\".")},
        {"check", (PyCFunction)(void (*)(void))file_check, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR(
             "check(file, *, strict=False)\n--\n\nIs it a COG? Verdicts, and what was found.")},
        {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS,
         PyDoc_STR("configure(*, threads=0, cache_bytes=0, device_bytes=0, jpeg_engines=False, "
                   "network=None)\n--\n\n"
                   "A new context for the reads from now on.")},
        {"forget_context", forget_context, METH_NOARGS,
         PyDoc_STR("forget_context()\n--\n\nAfter a fork: its threads are not here.")},
        {"read_many", file_read_many, METH_O,
         PyDoc_STR(
             "read_many(requests)\n--\n\nMany reads as one batch: a list of (file, keywords).")},
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
