/*
 * For those who encode elsewhere what a writer puts together: each function takes the profile that
 * all of them have, and works on any thread.
 */
#include "blocks.h"

#include "array.h"
#include "cogpu_distributed.h"
#include "profile.h"

bool block_parse(PyObject *level, PyObject *content, PyObject *index, struct block *block) {
    return number_u32(level, "level", &block->level) && content_parse(content, &block->content) &&
           number_u64(index, "block", &block->index);
}

/* ---- layout ---------------------------------------------------------------------------------- */

static PyObject *layout_dict(const cogpu_level_layout *layout) {
    static const struct field fields[] = {FIELD(cogpu_level_layout, levels, FIELD_U32),
                                          FIELD(cogpu_level_layout, width, FIELD_U32),
                                          FIELD(cogpu_level_layout, height, FIELD_U32),
                                          FIELD(cogpu_level_layout, block_width, FIELD_U32),
                                          FIELD(cogpu_level_layout, block_height, FIELD_U32),
                                          FIELD(cogpu_level_layout, blocks, FIELD_U64),
                                          FIELD(cogpu_level_layout, max_bytes, FIELD_U64)};
    return fields_dict(fields, FIELD_COUNT(fields), layout);
}

static PyObject *layouts_list(const cogpu_profile *profile) {
    PyObject *list = PyList_New(0);
    cogpu_level_layout layout = COGPU_LEVEL_LAYOUT_INIT;
    layout.levels = 1;
    for (uint32_t level = 0; list && level < layout.levels; level++) {
        cogpu_error error;
        PyObject *dict = cogpu_profile_level_layout(profile, level, &layout, &error) == COGPU_OK
                             ? layout_dict(&layout)
                             : raise_error(&error);
        if (!list_add(list, dict))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *level_layouts(PyObject *module, PyObject *dict) {
    (void)module;
    struct given_profile given;
    if (!profile_read(dict, &given))
        return NULL;
    PyObject *list = layouts_list(&given.profile);
    profile_release(&given);
    return list;
}

/* ---- encode ---------------------------------------------------------------------------------- */

static PyObject *encode_raster(const cogpu_profile *profile, const struct block *block,
                               const cogpu_raster *pixels) {
    cogpu_memory encoded = COGPU_MEMORY_INIT;
    cogpu_error error;
    cogpu_status status;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_encode_block(profile, block->level, block->content, block->index, pixels,
                                    &encoded, &error);
    Py_END_ALLOW_THREADS
    if (status != COGPU_OK)
        return raise_error(&error);
    PyObject *bytes = PyBytes_FromStringAndSize(encoded.data, (Py_ssize_t)encoded.bytes);
    cogpu_memory_free(&encoded);
    return bytes;
}

static PyObject *encode_block(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "content", "block", "pixels", NULL};
    PyObject *dict, *level, *content, *index, *pixels;
    struct given_profile given;
    struct block block;
    struct taken taken = {0};
    PyObject *bytes = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOOO:encode_block", names, &dict,
                                     &level, &content, &index, &pixels) ||
        !block_parse(level, content, index, &block) || !profile_read(dict, &given))
        return NULL;
    if (raster_take(pixels, &(struct taking){.name = "pixels"}, &taken))
        bytes = encode_raster(&given.profile, &block, &taken.raster);
    raster_drop(&taken);
    profile_release(&given);
    return bytes;
}

/* ---- leaders and trailers ---------------------------------------------------------------------
 */

static Py_ssize_t stored_bytes(Py_ssize_t bytes) {
    return bytes ? bytes + COGPU_COG_BLOCK_OVERHEAD : 0;
}

static PyObject *add_all(PyObject *blocks) {
    Py_ssize_t bytes = 0, count = PyTuple_Size(blocks), end = 0, size;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *block = PyTuple_GetItem(blocks, i);
        if (!PyBytes_Check(block))
            return raise_type("a block", "bytes", block), NULL;
        bytes += stored_bytes(PyBytes_Size(block));
    }
    PyObject *stored = PyBytes_FromStringAndSize(NULL, bytes);
    char *to = stored ? PyBytes_AsString(stored) : NULL, *from;
    for (Py_ssize_t i = 0; to && i < count; i++, end += stored_bytes(size)) {
        PyBytes_AsStringAndSize(PyTuple_GetItem(blocks, i), &from, &size);
        cogpu_cog_add_leader_trailer(from, (size_t)size, to + end);
    }
    return stored;
}

static PyObject *add_leaders_trailers(PyObject *module, PyObject *given) {
    (void)module;
    PyObject *blocks = members_of(given, "blocks", -1);
    PyObject *stored = blocks ? add_all(blocks) : NULL;
    Py_XDECREF(blocks);
    return stored;
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

static PyObject *overview_source_window(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "window", NULL};
    PyObject *dict, *number, *value;
    struct given_profile given;
    cogpu_window window = COGPU_WINDOW_INIT, needs = COGPU_WINDOW_INIT;
    cogpu_error error;
    uint32_t level;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOO:overview_source_window", names,
                                     &dict, &number, &value) ||
        !number_u32(number, "level", &level) || !window_parse(value, &window) ||
        !profile_read(dict, &given))
        return NULL;
    cogpu_status status =
        cogpu_overview_source_window(&given.profile, level, &window, &needs, &error);
    profile_release(&given);
    if (status != COGPU_OK)
        return raise_error(&error);
    return Py_BuildValue("(IIII)", needs.x, needs.y, needs.width, needs.height);
}

/* New host memory, of the window's size. */
static struct store *make_buffer(const cogpu_window *window, cogpu_type type, uint32_t bands,
                                 cogpu_raster *raster) {
    *raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                             .type = type,
                             .bands = bands,
                             .width = window->width,
                             .height = window->height};
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
        making->mask_store = make_buffer(window, COGPU_TYPE_U8, 1, &making->to_mask);
    return making->store && (making->mask_store || !making->has_mask);
}

static bool make_pixels(const cogpu_profile *profile, uint32_t level, const cogpu_window *window,
                        struct making *making) {
    cogpu_error error;
    cogpu_status status;
    bool has_mask = making->has_mask;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_overview_compute(profile, level, window, &making->pixels.raster,
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

static PyObject *overview_compute(PyObject *module, PyObject *arguments, PyObject *keywords) {
    (void)module;
    static char *names[] = {"profile", "level", "window", "pixels", "mask", NULL};
    PyObject *dict, *number, *value, *pixels, *mask = Py_None, *arrays = NULL;
    struct given_profile given;
    struct making making = {0};
    cogpu_window window = COGPU_WINDOW_INIT;
    uint32_t level;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OOOO|O:overview_compute", names, &dict,
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
    {"level_layouts", level_layouts, METH_O,
     "level_layouts(profile): the block grid of each level."},
    {"encode_block", KEYWORDS(encode_block),
     "encode_block(profile, level, content, block, pixels): the stored bytes of one block."},
    {"add_leaders_trailers", add_leaders_trailers, METH_O,
     "add_leaders_trailers(blocks): the blocks as they follow each other in a COG."},
    {"overview_source_window", KEYWORDS(overview_source_window),
     "overview_source_window(profile, level, window): the window of the level before that it "
     "needs."},
    {"overview_compute", KEYWORDS(overview_compute),
     "overview_compute(profile, level, window, pixels, mask=None): pixels and mask of a level."},
    {NULL, NULL, 0, NULL}};

bool blocks_add(PyObject *module) {
    return PyModule_AddFunctions(module, functions) == 0;
}
