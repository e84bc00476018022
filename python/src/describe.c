/*
 * Metadata of an open file as dicts, lists and tuples: images, levels, bands, CRS, raw tags.
 */
#include "engine.h"
#include "fields.h"
#include "file.h"

#include <stdlib.h>

/* ---- arguments ------------------------------------------------------------------------------- */

/* The file and one or two numbers, by name; NULL with an exception. */
static struct handle *take_numbers(PyObject *file, PyObject *arguments, PyObject *words,
                                   char **names, uint32_t *first, uint32_t *second) {
    PyObject *one = NULL, *two = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, words, second ? "OO" : "|O", names, &one, &two) ||
        (one && !number_u32(one, names[0], first)) || (two && !number_u32(two, names[1], second)))
        return NULL;
    return file_take(file);
}

static struct handle *take_image(PyObject *file, PyObject *arguments, PyObject *words,
                                 uint32_t *image) {
    static char *names[] = {"image", NULL};
    return take_numbers(file, arguments, words, names, image, NULL);
}

static PyObject *drop_after(struct handle *handle, PyObject *result) {
    handle_drop(handle);
    return result;
}

/* With what the image is. */
static struct handle *take_described(PyObject *file, PyObject *arguments, PyObject *words,
                                     uint32_t *index, cogpu_image *image) {
    cogpu_error error;
    struct handle *handle = take_image(file, arguments, words, index);
    if (!handle || cogpu_image_info(handle_file(handle), *index, image, &error) == COGPU_OK)
        return handle;
    return (void *)drop_after(handle, handle_raise(handle, &error));
}

/* ---- images ---------------------------------------------------------------------------------- */

static PyObject *numbers_tuple(const double *numbers, size_t count) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (!number || PyTuple_SetItem(tuple, (Py_ssize_t)i, number) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* An int for images of integers, where it is one of them. */
static PyObject *nodata_object(const cogpu_band *band, cogpu_type type) {
    if (!band->nodata)
        return Py_NewRef(Py_None);
    if (!band->nodata_matches)
        return PyFloat_FromDouble(band->nodata_value);
    if (type == COGPU_TYPE_I64)
        return PyLong_FromLongLong(band->nodata_i64);
    if (type == COGPU_TYPE_U64)
        return PyLong_FromUnsignedLongLong(band->nodata_u64);
    return type < COGPU_TYPE_U64 ? PyLong_FromDouble(band->nodata_value)
                                 : PyFloat_FromDouble(band->nodata_value);
}

/* nodata, nodata_text and nodata_matches. */
static bool add_nodata(PyObject *dict, const cogpu_band *band, cogpu_type type) {
    return dict_add(dict, "nodata", nodata_object(band, type)) &&
           dict_add(dict, "nodata_text", text_object(band->nodata)) &&
           dict_add(dict, "nodata_matches", PyBool_FromLong(band->nodata_matches));
}

static PyObject *palette_object(const cogpu_image *image) {
    if (!image->palette)
        return Py_NewRef(Py_None);
    PyObject *list = PyList_New(0);
    uint32_t count = image->palette_entries;
    const uint16_t *reds = image->palette, *greens = reds + count, *blues = greens + count;
    for (uint32_t i = 0; list && i < count; i++)
        if (!list_add(list, Py_BuildValue("(III)", reds[i], greens[i], blues[i])))
            Py_CLEAR(list);
    return list;
}

static PyObject *gcp_place(const cogpu_gcp *gcp) {
    return Py_BuildValue("(dddddd)", gcp->column, gcp->row, gcp->pixel_z, gcp->x, gcp->y, gcp->z);
}

/* (id, info), None where the file has no such text. */
static PyObject *gcp_name(const cogpu_gcp *gcp) {
    PyObject *id = text_object(gcp->id), *info = text_object(gcp->info);
    PyObject *pair = id && info ? PyTuple_Pack(2, id, info) : NULL;
    Py_XDECREF(id);
    Py_XDECREF(info);
    return pair;
}

static PyObject *gcps_list(struct handle *handle, uint32_t image, uint32_t count,
                           PyObject *(*object_of)(const cogpu_gcp *gcp)) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        cogpu_gcp gcp = COGPU_GCP_INIT;
        cogpu_error error;
        bool is_found = cogpu_gcp_info(handle_file(handle), image, i, &gcp, &error) == COGPU_OK;
        if (!list_add(list, is_found ? object_of(&gcp) : handle_raise(handle, &error)))
            Py_CLEAR(list);
    }
    return list;
}

static bool add_image(PyObject *dict, struct handle *handle, uint32_t index,
                      const cogpu_image *image) {
    cogpu_band band = COGPU_BAND_INIT;
    cogpu_error error;
    if (cogpu_band_info(handle_file(handle), index, 1, &band, &error) != COGPU_OK)
        return handle_raise(handle, &error);
    return dict_add(dict, "layout", text_object(cogpu_layout_name(image->layout))) &&
           dict_add(dict, "interleave", text_object(cogpu_interleave_name(image->interleave))) &&
           dict_add(dict, "mask_source", text_object(cogpu_mask_source_name(image->mask_source))) &&
           add_nodata(dict, &band, image->type) &&
           dict_add(dict, "palette", palette_object(image)) &&
           dict_add(dict, "transform", numbers_tuple(image->transform, 6)) &&
           dict_add(dict, "gcps", gcps_list(handle, index, image->gcp_count, gcp_place)) &&
           dict_add(dict, "gcp_names", gcps_list(handle, index, image->gcp_count, gcp_name)) &&
           dict_add(dict, "rpc", image->rpc ? numbers_tuple(image->rpc, 92) : Py_NewRef(Py_None));
}

PyObject *file_info(PyObject *file, PyObject *arguments, PyObject *words) {
    static const struct field fields[] = {
        FIELD(cogpu_image, directory, FIELD_U32),
        FIELD(cogpu_image, width, FIELD_U32),
        FIELD(cogpu_image, height, FIELD_U32),
        FIELD(cogpu_image, bands, FIELD_U32),
        FIELD(cogpu_image, type, FIELD_TYPE),
        FIELD(cogpu_image, bits, FIELD_U32),
        FIELD(cogpu_image, levels, FIELD_U32),
        FIELD(cogpu_image, block_width, FIELD_U32),
        FIELD(cogpu_image, block_height, FIELD_U32),
        FIELD(cogpu_image, blocks, FIELD_U64),
        FIELD(cogpu_image, compression, FIELD_U32),
        FIELD(cogpu_image, codec, FIELD_TEXT),
        FIELD(cogpu_image, predictor, FIELD_U32),
        FIELD(cogpu_image, photometric, FIELD_U32),
        FIELD(cogpu_image, orientation, FIELD_U32),
        FIELD(cogpu_image, fill_order, FIELD_U32),
        FIELD(cogpu_image, big_endian, FIELD_FLAG),
        FIELD(cogpu_image, bigtiff, FIELD_FLAG),
        FIELD(cogpu_image, ghost, FIELD_U32),
        FIELD(cogpu_image, description, FIELD_TEXT),
        FIELD(cogpu_image, alpha_band, FIELD_U32),
        FIELD(cogpu_image, premultiplied, FIELD_FLAG),
        FIELD(cogpu_image, has_transform, FIELD_FLAG),
        FIELD(cogpu_image, pixel_is_point, FIELD_FLAG),
        FIELD(cogpu_image, geokey_count, FIELD_U32),
        FIELD(cogpu_image, metadata_count, FIELD_U32),
        FIELD(cogpu_image, warning, FIELD_TEXT),
    };
    uint32_t index = 0;
    cogpu_image image = COGPU_IMAGE_INIT;
    struct handle *handle = take_described(file, arguments, words, &index, &image);
    if (!handle)
        return NULL;
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), &image);
    if (dict && !add_image(dict, handle, index, &image))
        Py_CLEAR(dict);
    return drop_after(handle, dict);
}

PyObject *file_level(PyObject *file, PyObject *arguments, PyObject *words) {
    static const struct field fields[] = {FIELD(cogpu_level, directory, FIELD_U32),
                                          FIELD(cogpu_level, external, FIELD_FLAG),
                                          FIELD(cogpu_level, width, FIELD_U32),
                                          FIELD(cogpu_level, height, FIELD_U32),
                                          FIELD(cogpu_level, block_width, FIELD_U32),
                                          FIELD(cogpu_level, block_height, FIELD_U32),
                                          FIELD(cogpu_level, blocks, FIELD_U64),
                                          FIELD(cogpu_level, compression, FIELD_U32),
                                          FIELD(cogpu_level, codec, FIELD_TEXT),
                                          FIELD(cogpu_level, predictor, FIELD_U32),
                                          FIELD(cogpu_level, has_mask, FIELD_FLAG),
                                          FIELD(cogpu_level, mask_external, FIELD_FLAG),
                                          FIELD(cogpu_level, mask_directory, FIELD_U32),
                                          FIELD(cogpu_level, has_transform, FIELD_FLAG)};
    static char *names[] = {"image", "level", NULL};
    uint32_t image = 0, index = 0;
    cogpu_level level = COGPU_LEVEL_INIT;
    cogpu_error error;
    struct handle *handle = take_numbers(file, arguments, words, names, &image, &index);
    if (!handle)
        return NULL;
    if (cogpu_level_info(handle_file(handle), image, index, &level, &error) != COGPU_OK)
        return drop_after(handle, handle_raise(handle, &error));
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), &level);
    if (dict && (!dict_add(dict, "layout", text_object(cogpu_layout_name(level.layout))) ||
                 !dict_add(dict, "transform", numbers_tuple(level.transform, 6))))
        Py_CLEAR(dict);
    return drop_after(handle, dict);
}

PyObject *file_band(PyObject *file, PyObject *arguments, PyObject *words) {
    static const struct field fields[] = {
        FIELD(cogpu_band, description, FIELD_TEXT),    FIELD(cogpu_band, unit, FIELD_TEXT),
        FIELD(cogpu_band, interpretation, FIELD_TEXT), FIELD(cogpu_band, scale, FIELD_DOUBLE),
        FIELD(cogpu_band, offset, FIELD_DOUBLE),       FIELD(cogpu_band, has_scale, FIELD_FLAG)};
    static char *names[] = {"image", "band", NULL};
    uint32_t image = 0, index = 0;
    cogpu_band band = COGPU_BAND_INIT;
    cogpu_error error;
    struct handle *handle = take_numbers(file, arguments, words, names, &image, &index);
    if (!handle)
        return NULL;
    cogpu_image about = COGPU_IMAGE_INIT;
    if (cogpu_band_info(handle_file(handle), image, index, &band, &error) != COGPU_OK ||
        cogpu_image_info(handle_file(handle), image, &about, &error) != COGPU_OK)
        return drop_after(handle, handle_raise(handle, &error));
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), &band);
    if (dict && !add_nodata(dict, &band, about.type))
        Py_CLEAR(dict);
    return drop_after(handle, dict);
}

/* Makes one entry of a list. The list ends where the library returns COGPU_NOT_FOUND. */
typedef cogpu_status list_entry(const cogpu_file *file, uint32_t of, uint32_t index,
                                PyObject **made, cogpu_error *error);

static PyObject *list_all(struct handle *handle, uint32_t of, list_entry *entry) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list; i++) {
        PyObject *made = NULL;
        cogpu_error error;
        cogpu_status status = entry(handle_file(handle), of, i, &made, &error);
        if (status == COGPU_NOT_FOUND && i > 0)
            break;
        if (status != COGPU_OK || !list_add(list, made)) {
            Py_CLEAR(list);
            if (status != COGPU_OK)
                handle_raise(handle, &error);
        }
    }
    return drop_after(handle, list);
}

static cogpu_status item_entry(const cogpu_file *file, uint32_t image, uint32_t index,
                               PyObject **made, cogpu_error *error) {
    static const struct field fields[] = {
        FIELD(cogpu_metadata_item, domain, FIELD_TEXT),
        FIELD(cogpu_metadata_item, name, FIELD_TEXT), FIELD(cogpu_metadata_item, value, FIELD_TEXT),
        FIELD(cogpu_metadata_item, role, FIELD_TEXT), FIELD(cogpu_metadata_item, band, FIELD_I32)};
    cogpu_metadata_item item = COGPU_METADATA_ITEM_INIT;
    cogpu_status status = cogpu_metadata_info(file, image, index, &item, error);
    if (status == COGPU_OK)
        *made = fields_dict(fields, FIELD_COUNT(fields), &item);
    return status;
}

/* A list that may be empty is read only if the image has entries. */
static PyObject *list_of_image(PyObject *file, PyObject *arguments, PyObject *words,
                               list_entry *entry, size_t count_at) {
    uint32_t index = 0;
    cogpu_image image = COGPU_IMAGE_INIT;
    struct handle *handle = take_described(file, arguments, words, &index, &image);
    if (!handle)
        return NULL;
    uint32_t count = *(const uint32_t *)((const char *)&image + count_at);
    return count ? list_all(handle, index, entry) : drop_after(handle, PyList_New(0));
}

PyObject *file_metadata(PyObject *file, PyObject *arguments, PyObject *words) {
    return list_of_image(file, arguments, words, item_entry, offsetof(cogpu_image, metadata_count));
}

/* ---- coordinate systems ---------------------------------------------------------------------- */

PyObject *file_crs(PyObject *file, PyObject *arguments, PyObject *words) {
    static const struct field fields[] = {
        FIELD(cogpu_crs, model, FIELD_TEXT),   FIELD(cogpu_crs, authority, FIELD_TEXT),
        FIELD(cogpu_crs, code, FIELD_U32),     FIELD(cogpu_crs, vertical, FIELD_U32),
        FIELD(cogpu_crs, name, FIELD_TEXT),    FIELD(cogpu_crs, epoch, FIELD_DOUBLE),
        FIELD(cogpu_crs, external, FIELD_FLAG)};
    uint32_t image = 0;
    cogpu_crs crs = COGPU_CRS_INIT;
    cogpu_error error;
    struct handle *handle = take_image(file, arguments, words, &image);
    if (!handle)
        return NULL;
    cogpu_status status = cogpu_crs_info(handle_file(handle), image, &crs, &error);
    if (status == COGPU_NOT_FOUND)
        return drop_after(handle, Py_NewRef(Py_None));
    return drop_after(handle, status == COGPU_OK ? fields_dict(fields, FIELD_COUNT(fields), &crs)
                                                 : handle_raise(handle, &error));
}

/* NULL with the status in `error`, else text to be freed. PROJ does its work each time that it is
 * asked: so the first buffer fits the usual size. */
static char *make_wkt(const cogpu_file *file, uint32_t image, cogpu_context *context,
                      cogpu_error *error) {
    size_t capacity = 0, needed = 16 << 10;
    char *text = NULL;
    while (capacity < needed) {
        capacity = needed;
        free(text);
        text = malloc(capacity);
        if (!text) {
            *error = no_memory("out of memory for a coordinate system");
            return NULL;
        }
        if (cogpu_crs_wkt(file, image, context, text, capacity, &needed, error) != COGPU_OK) {
            free(text);
            return NULL;
        }
    }
    return text;
}

PyObject *file_wkt(PyObject *file, PyObject *arguments, PyObject *words) {
    uint32_t image = 0;
    cogpu_error error;
    char *text;
    struct handle *handle = take_image(file, arguments, words, &image);
    struct engine *engine = handle ? engine_take() : NULL;
    if (!engine)
        return drop_after(handle, NULL);
    Py_BEGIN_ALLOW_THREADS
        text = make_wkt(handle_file(handle), image, engine_context(engine), &error);
        engine_drop(engine);
    Py_END_ALLOW_THREADS
    PyObject *made = text || error.status == COGPU_NOT_FOUND || error.status == COGPU_UNSUPPORTED
                         ? text_object(text)
                         : handle_raise(handle, &error);
    free(text);
    return drop_after(handle, made);
}

/* One number for itself, several as a tuple. */
static PyObject *key_value(const cogpu_geokey *key) {
    if (key->kind == COGPU_GEOKEY_TEXT)
        return text_object(key->text);
    if (key->kind == COGPU_GEOKEY_DOUBLE)
        return key->count == 1 ? PyFloat_FromDouble(key->doubles[0])
                               : numbers_tuple(key->doubles, key->count);
    if (key->count == 1)
        return PyLong_FromLong(key->shorts[0]);
    PyObject *tuple = PyTuple_New((Py_ssize_t)key->count);
    for (uint32_t i = 0; tuple && i < key->count; i++)
        if (PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLong(key->shorts[i])) != 0)
            Py_CLEAR(tuple);
    return tuple;
}

static cogpu_status geokey_entry(const cogpu_file *file, uint32_t image, uint32_t index,
                                 PyObject **made, cogpu_error *error) {
    cogpu_geokey key = COGPU_GEOKEY_INIT;
    cogpu_status status = cogpu_geokey_info(file, image, index, &key, error);
    PyObject *value = status == COGPU_OK ? key_value(&key) : NULL;
    if (value)
        *made = Py_BuildValue("(IsN)", (unsigned)key.id, key.name, value);
    return status;
}

PyObject *file_geokeys(PyObject *file, PyObject *arguments, PyObject *words) {
    return list_of_image(file, arguments, words, geokey_entry, offsetof(cogpu_image, geokey_count));
}

/* ---- raw tags -------------------------------------------------------------------------------- */

static cogpu_status directory_entry(const cogpu_file *file, uint32_t unused, uint32_t index,
                                    PyObject **made, cogpu_error *error) {
    static const struct field fields[] = {
        FIELD(cogpu_directory, offset, FIELD_U64), FIELD(cogpu_directory, tag_count, FIELD_U32),
        FIELD(cogpu_directory, parent, FIELD_I32), FIELD(cogpu_directory, subfile_type, FIELD_U32)};
    cogpu_directory directory = COGPU_DIRECTORY_INIT;
    (void)unused;
    cogpu_status status = cogpu_directory_info(file, index, &directory, error);
    if (status == COGPU_OK)
        *made = fields_dict(fields, FIELD_COUNT(fields), &directory);
    return status;
}

PyObject *file_image_count(PyObject *file, PyObject *unused) {
    (void)unused;
    struct handle *handle = file_take(file);
    return handle
               ? drop_after(handle, PyLong_FromUnsignedLong(cogpu_image_count(handle_file(handle))))
               : NULL;
}

PyObject *file_version_id(PyObject *file, PyObject *unused) {
    (void)unused;
    struct handle *handle = file_take(file);
    return handle ? drop_after(handle, text_object(cogpu_file_version_id(handle_file(handle))))
                  : NULL;
}

PyObject *file_sidecars(PyObject *file, PyObject *unused) {
    (void)unused;
    struct handle *handle = file_take(file);
    PyObject *list = handle ? PyList_New(0) : NULL;
    const char *path;
    for (uint32_t i = 0; list && (path = cogpu_sidecar_path(handle_file(handle), i)); i++)
        if (!list_add(list, PyUnicode_DecodeFSDefault(path)))
            Py_CLEAR(list);
    return handle ? drop_after(handle, list) : NULL;
}

PyObject *file_directories(PyObject *file, PyObject *unused) {
    (void)unused;
    struct handle *handle = file_take(file);
    return handle ? list_all(handle, 0, directory_entry) : NULL;
}

static cogpu_status tag_entry(const cogpu_file *file, uint32_t directory, uint32_t index,
                              PyObject **made, cogpu_error *error) {
    static const struct field fields[] = {
        FIELD(cogpu_tag, id, FIELD_U32),           FIELD(cogpu_tag, name, FIELD_TEXT),
        FIELD(cogpu_tag, type, FIELD_U32),         FIELD(cogpu_tag, count, FIELD_U64),
        FIELD(cogpu_tag, value_offset, FIELD_U64), FIELD(cogpu_tag, bytes, FIELD_U64)};
    cogpu_tag tag = COGPU_TAG_INIT;
    cogpu_status status = cogpu_tag_info(file, directory, index, &tag, error);
    if (status == COGPU_OK)
        *made = fields_dict(fields, FIELD_COUNT(fields), &tag);
    return status;
}

PyObject *file_tags(PyObject *file, PyObject *arguments, PyObject *words) {
    static char *names[] = {"directory", NULL};
    uint32_t directory = 0;
    struct handle *handle = take_numbers(file, arguments, words, names, &directory, NULL);
    return handle ? list_all(handle, directory, tag_entry) : NULL;
}

enum { TIFF_ASCII = 2, TIFF_UNDEFINED = 7, PIECE = 1 << 16 };

/* One element of cogpu_tag_read. */
static PyObject *element_object(uint32_t type, const void *at) {
    switch (type) {
    case 1: /* BYTE */
        return PyLong_FromLong(*(const uint8_t *)at);
    case 3: /* SHORT */
        return PyLong_FromLong(*(const uint16_t *)at);
    case 4:  /* LONG */
    case 13: /* IFD */
        return PyLong_FromUnsignedLong(*(const uint32_t *)at);
    case 5: /* RATIONAL */
        return PyFloat_FromDouble((double)((const uint32_t *)at)[0] /
                                  (double)((const uint32_t *)at)[1]);
    case 6: /* SBYTE */
        return PyLong_FromLong(*(const int8_t *)at);
    case 8: /* SSHORT */
        return PyLong_FromLong(*(const int16_t *)at);
    case 9: /* SLONG */
        return PyLong_FromLong(*(const int32_t *)at);
    case 10: /* SRATIONAL */
        return PyFloat_FromDouble((double)((const int32_t *)at)[0] /
                                  (double)((const int32_t *)at)[1]);
    case 11: /* FLOAT */
        return PyFloat_FromDouble((double)*(const float *)at);
    case 12: /* DOUBLE */
        return PyFloat_FromDouble(*(const double *)at);
    case 17: /* SLONG8 */
        return PyLong_FromLongLong(*(const int64_t *)at);
    default: /* LONG8, IFD8 */
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    }
}

static bool add_elements(PyObject *list, const cogpu_tag *tag, const char *piece, uint64_t count) {
    size_t size = (size_t)(tag->bytes / tag->count);
    if (tag->type == TIFF_ASCII || tag->type == TIFF_UNDEFINED)
        return list_add(list, PyBytes_FromStringAndSize(piece, (Py_ssize_t)count));
    for (uint64_t i = 0; i < count; i++)
        if (!list_add(list, element_object(tag->type, piece + i * size)))
            return false;
    return true;
}

/* In pieces, so that memory grows with what the file has, and not with what it claims to have.
 * Without the GIL, since an object that is read from may be in use by a thread that needs it. */
static bool append_tag_value(struct handle *handle, uint32_t directory, const cogpu_tag *tag,
                             PyObject *list) {
    static _Thread_local union {
        char bytes[PIECE];
        double aligned;
    } piece;
    uint64_t a_piece = tag->count ? PIECE / (tag->bytes / tag->count) : 1;
    for (uint64_t done = 0; done < tag->count; done += a_piece) {
        uint64_t count = tag->count - done < a_piece ? tag->count - done : a_piece;
        cogpu_error error;
        cogpu_status status;
        Py_BEGIN_ALLOW_THREADS
            status = cogpu_tag_read(handle_file(handle), directory, tag->id, done, count,
                                    piece.bytes, &error);
        Py_END_ALLOW_THREADS
        if (status != COGPU_OK)
            return handle_raise(handle, &error);
        if (!add_elements(list, tag, piece.bytes, count))
            return false;
    }
    return true;
}

static bool find_tag(struct handle *handle, uint32_t directory, uint32_t id, cogpu_tag *tag) {
    const cogpu_file *file = handle_file(handle);
    cogpu_error error;
    for (uint32_t i = 0; cogpu_tag_info(file, directory, i, tag, &error) == COGPU_OK; i++)
        if (tag->id == id)
            return true;
    return error.status != COGPU_NOT_FOUND
               ? handle_raise(handle, &error)
               : raise_status(COGPU_NOT_FOUND, "directory %u has no tag %u", (unsigned)directory,
                              (unsigned)id);
}

static PyObject *tag_object(struct handle *handle, uint32_t directory, uint32_t id) {
    cogpu_tag tag = COGPU_TAG_INIT;
    PyObject *list = find_tag(handle, directory, id, &tag) ? PyList_New(0) : NULL, *made = NULL;
    if (list && append_tag_value(handle, directory, &tag, list)) {
        PyObject *empty = PyBytes_FromStringAndSize(NULL, 0);
        bool is_text = tag.type == TIFF_ASCII || tag.type == TIFF_UNDEFINED;
        made =
            is_text && empty ? PyObject_CallMethod(empty, "join", "O", list) : PyList_AsTuple(list);
        Py_XDECREF(empty);
    }
    Py_XDECREF(list);
    return made;
}

PyObject *file_tag(PyObject *file, PyObject *arguments, PyObject *words) {
    static char *names[] = {"directory", "id", NULL};
    uint32_t directory = 0, id = 0;
    struct handle *handle = take_numbers(file, arguments, words, names, &directory, &id);
    return handle ? drop_after(handle, tag_object(handle, directory, id)) : NULL;
}
