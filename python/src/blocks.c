/*
 * For those who encode elsewhere what a writer puts together: each function takes the profile that
 * all of them have, and works on any thread.
 */
#include "blocks.h"

#include "array.h"
#include "profile.h"

bool block_parse(PyObject *level, PyObject *part, PyObject *index, struct block *block) {
    static const struct word parts[] = {{"pixels", COGPU_PIXELS}, {"mask", COGPU_MASK}, {NULL, 0}};
    int value = 0;
    if (!number_u32(level, "level", &block->level) || !word_parse(part, "part", parts, &value) ||
        !number_u64(index, "block", &block->index))
        return false;
    block->part = (cogpu_part)value;
    return true;
}

/* ---- outline --------------------------------------------------------------------------------- */

static PyObject *outline_dict(const cogpu_outline *outline) {
    static const struct field fields[] = {
        FIELD(cogpu_outline, levels, FIELD_U32),       FIELD(cogpu_outline, width, FIELD_U32),
        FIELD(cogpu_outline, height, FIELD_U32),       FIELD(cogpu_outline, block_width, FIELD_U32),
        FIELD(cogpu_outline, block_height, FIELD_U32), FIELD(cogpu_outline, blocks, FIELD_U64),
        FIELD(cogpu_outline, most_bytes, FIELD_U64)};
    return fields_dict(fields, FIELD_COUNT(fields), outline);
}

static PyObject *outline_list(const cogpu_profile *profile) {
    PyObject *list = PyList_New(0);
    cogpu_outline outline = {.levels = 1};
    for (uint32_t level = 0; list && level < outline.levels; level++) {
        cogpu_error error;
        PyObject *dict = cogpu_profile_outline(profile, level, &outline, &error) == COGPU_OK
                             ? outline_dict(&outline)
                             : raise_error(&error);
        if (!list_add(list, dict))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *compute_outline(PyObject *module, PyObject *dict) {
    (void)module;
    struct given_profile given;
    if (!profile_read(dict, &given))
        return NULL;
    PyObject *list = outline_list(&given.profile);
    profile_release(&given);
    return list;
}

/* ---- encode ---------------------------------------------------------------------------------- */

static PyObject *encode_raster(const cogpu_profile *profile, const struct block *block,
                               const cogpu_raster *pixels) {
    cogpu_memory encoded = {0};
    cogpu_error error;
    cogpu_status status;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_encode(profile, block->level, block->part, block->index, pixels, &encoded,
                              &error);
    Py_END_ALLOW_THREADS
    if (status != COGPU_OK)
        return raise_error(&error);
    PyObject *bytes = PyBytes_FromStringAndSize(encoded.data, (Py_ssize_t)encoded.bytes);
    cogpu_memory_release(&encoded);
    return bytes;
}

static PyObject *encode_block(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "part", "block", "pixels", NULL};
    PyObject *dict, *level, *part, *index, *pixels;
    struct given_profile given;
    struct block block;
    struct taken taken = {0};
    PyObject *bytes = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOO:encode", names, &dict, &level,
                                     &part, &index, &pixels) ||
        !block_parse(level, part, index, &block) || !profile_read(dict, &given))
        return NULL;
    if (raster_take(pixels, &(struct taking){.name = "pixels"}, &taken))
        bytes = encode_raster(&given.profile, &block, &taken.raster);
    raster_drop(&taken);
    profile_release(&given);
    return bytes;
}

/* ---- frame ----------------------------------------------------------------------------------- */

static Py_ssize_t framed_bytes(Py_ssize_t bytes) {
    return bytes ? bytes + COGPU_FRAME_BYTES : 0;
}

static PyObject *frame_all(PyObject *blocks) {
    Py_ssize_t bytes = 0, count = PyTuple_Size(blocks), end = 0, size;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *block = PyTuple_GetItem(blocks, i);
        if (!PyBytes_Check(block))
            return raise_type("a block", "bytes", block), NULL;
        bytes += framed_bytes(PyBytes_Size(block));
    }
    PyObject *framed = PyBytes_FromStringAndSize(NULL, bytes);
    char *to = framed ? PyBytes_AsString(framed) : NULL, *from;
    for (Py_ssize_t i = 0; to && i < count; i++, end += framed_bytes(size)) {
        PyBytes_AsStringAndSize(PyTuple_GetItem(blocks, i), &from, &size);
        cogpu_frame(from, (size_t)size, to + end);
    }
    return framed;
}

static PyObject *frame_block(PyObject *module, PyObject *given) {
    (void)module;
    PyObject *blocks = members_of(given, "blocks", -1);
    PyObject *framed = blocks ? frame_all(blocks) : NULL;
    Py_XDECREF(blocks);
    return framed;
}

/* ---- overviews ------------------------------------------------------------------------------- */

static bool window_parse(PyObject *value, cogpu_window *window) {
    PyObject *members = members_of(value, "window", 4);
    bool is_parsed = members && number_u32(PyTuple_GetItem(members, 0), "window", &window->x) &&
                     number_u32(PyTuple_GetItem(members, 1), "window", &window->y) &&
                     number_u32(PyTuple_GetItem(members, 2), "window", &window->width) &&
                     number_u32(PyTuple_GetItem(members, 3), "window", &window->height);
    Py_XDECREF(members);
    return is_parsed;
}

static PyObject *overview_needs(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "window", NULL};
    PyObject *dict, *number, *value;
    struct given_profile given;
    cogpu_window window, needs;
    cogpu_error error;
    uint32_t level;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO:overview_needs", names, &dict,
                                     &number, &value) ||
        !number_u32(number, "level", &level) || !window_parse(value, &window) ||
        !profile_read(dict, &given))
        return NULL;
    cogpu_status status = cogpu_overview_needs(&given.profile, level, &window, &needs, &error);
    profile_release(&given);
    if (status != COGPU_OK)
        return raise_error(&error);
    return Py_BuildValue("(IIII)", needs.x, needs.y, needs.width, needs.height);
}

/* New host memory, of the window's size. */
static struct store *make_buffer(const cogpu_window *window, cogpu_type type, uint32_t bands,
                                 cogpu_raster *raster) {
    *raster = (cogpu_raster){
        .type = type, .bands = bands, .width = window->width, .height = window->height};
    return store_new(raster);
}

/* What an overview is made of, and what it becomes. */
struct making {
    struct taken pixels, mask;
    bool has_mask;
    cogpu_raster to, to_mask;
    struct store *store, *mask_store;
};

static bool make_buffers(const cogpu_profile *profile, const cogpu_window *window,
                         struct making *making) {
    making->store = make_buffer(window, profile->type, profile->bands, &making->to);
    if (making->store && making->has_mask)
        making->mask_store = make_buffer(window, COGPU_U8, 1, &making->to_mask);
    return making->store && (making->mask_store || !making->has_mask);
}

static bool make_pixels(const cogpu_profile *profile, uint32_t level, const cogpu_window *window,
                        struct making *making) {
    cogpu_error error;
    cogpu_status status;
    bool has_mask = making->has_mask;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_overview_make(profile, level, window, &making->pixels.raster,
                                     has_mask ? &making->mask.raster : NULL, &making->to,
                                     has_mask ? &making->to_mask : NULL, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_error(&error);
}

/* The array of a store, which is taken from where it stood. */
static PyObject *array_of(struct store **place, const cogpu_raster *raster) {
    struct store *given = *place;
    *place = NULL;
    return given ? array_new(given, raster) : Py_NewRef(Py_None);
}

static PyObject *make_arrays(struct making *making) {
    PyObject *array = array_of(&making->store, &making->to);
    PyObject *mask = array ? array_of(&making->mask_store, &making->to_mask) : NULL;
    PyObject *both = mask ? PyTuple_Pack(2, array, mask) : NULL;
    Py_XDECREF(mask);
    Py_XDECREF(array);
    return both;
}

static PyObject *overview_make(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "window", "pixels", "mask", NULL};
    PyObject *dict, *number, *value, *pixels, *mask = Py_None, *arrays = NULL;
    struct given_profile given;
    struct making making = {0};
    cogpu_window window;
    uint32_t level;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOO|O:overview_make", names, &dict,
                                     &number, &value, &pixels, &mask) ||
        !number_u32(number, "level", &level) || !window_parse(value, &window) ||
        !profile_read(dict, &given))
        return NULL;
    making.has_mask = mask != Py_None;
    if (raster_take(pixels, &(struct taking){.name = "pixels"}, &making.pixels) &&
        (!making.has_mask || raster_take(mask, &(struct taking){.name = "mask"}, &making.mask)) &&
        make_buffers(&given.profile, &window, &making) &&
        make_pixels(&given.profile, level, &window, &making))
        arrays = make_arrays(&making);
    store_drop_with_gil(making.store);
    store_drop_with_gil(making.mask_store);
    raster_drop(&making.mask);
    raster_drop(&making.pixels);
    profile_release(&given);
    return arrays;
}

/* ---- the functions --------------------------------------------------------------------------- */

#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_VARARGS | METH_KEYWORDS

static PyMethodDef functions[] = {
    {"outline", compute_outline, METH_O, "outline(profile): the grid of blocks of each level."},
    {"encode", KEYWORDS(encode_block),
     "encode(profile, level, part, block, pixels): the stored bytes of one block."},
    {"frame", frame_block, METH_O,
     "frame(blocks): their bytes as they follow each other in a COG."},
    {"overview_needs", KEYWORDS(overview_needs),
     "overview_needs(profile, level, window): the window of the level before that it is made of."},
    {"overview_make", KEYWORDS(overview_make),
     "overview_make(profile, level, window, pixels, mask=None): pixels and mask of a level."},
    {NULL, NULL, 0, NULL}};

bool blocks_add(PyObject *module) {
    return PyModule_AddFunctions(module, functions) == 0;
}
