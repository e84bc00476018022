/*
 * Mosaics: opened from lists of dicts, described source by source, written as VRT.
 */
#include "file.h"
#include "record.h"
#include "sink.h"

#include <stdlib.h>

/* ---- the request ----------------------------------------------------------------------------- */

/* A mosaic as Python asks for it. */
struct given_mosaic {
    struct arena arena;
    cogpu_mosaic_source *sources;
    struct handle **files; /* of sources that are open; else NULL */
    size_t count;
    cogpu_grid grid;
    cogpu_mosaic_options options;
    struct given_options open;
};

/* A source while its dict is read. */
struct given_source {
    cogpu_mosaic_source source;
    struct handle *file;
};

static bool entry_file(const struct entry *entry, PyObject *value, void *record,
                       struct arena *arena) {
    struct given_source *given = record;
    (void)entry, (void)arena;
    given->file = file_take(value);
    given->source.file = given->file ? handle_file(given->file) : NULL;
    return given->file;
}

static bool read_band(const char *name, PyObject *member, void *to, struct arena *arena) {
    (void)arena;
    return number_u32(member, name, to);
}

static bool entry_bands(const struct entry *entry, PyObject *value, void *record,
                        struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(uint32_t), read_band);
}

static bool read_source(PyObject *dict, struct given_source *given, struct arena *arena) {
#define ENTRY(member, read)                                                                        \
    { #member, "source: " #member, offsetof(struct given_source, source.member), read, 0 }
    static const struct entry entries[] = {
        ENTRY(path, entry_text),
        ENTRY(file, entry_file),
        ENTRY(image, entry_u32),
        {"bands", "source: bands", offsetof(struct given_source, source.bands), entry_bands,
         offsetof(struct given_source, source.band_count)},
        ENTRY(nodata, entry_text),
        ENTRY(ignore_mask, entry_flag),
        ENTRY(priority, entry_int),
        ENTRY(rpc_height, entry_real),
        ENTRY(rpc_dem, entry_text)};
#undef ENTRY
    *given = (struct given_source){.source = COGPU_MOSAIC_SOURCE_INIT};
    return record_read(entries, FIELD_COUNT(entries), "a source", dict, given, arena);
}

static bool read_sources(PyObject *list, struct given_mosaic *given) {
    PyObject *members = members_of(list, "sources", -1);
    bool is_read = members != NULL;
    given->count = members ? (size_t)PyTuple_Size(members) : 0;
    given->sources = arena_take(&given->arena, given->count + 1, sizeof *given->sources);
    given->files = arena_take(&given->arena, given->count + 1, sizeof *given->files);
    if (!given->sources || !given->files)
        is_read = false;
    for (size_t i = 0; is_read && i < given->count; i++) {
        struct given_source source;
        is_read = read_source(PyTuple_GetItem(members, (Py_ssize_t)i), &source, &given->arena);
        given->sources[i] = source.source;
        given->files[i] = source.file;
    }
    Py_XDECREF(members);
    return is_read;
}

/* Pairs and more of real numbers. */
#define REALS_ENTRY(member, count)                                                                 \
    static bool entry_##member(const struct entry *entry, PyObject *value, void *record,           \
                               struct arena *arena) {                                              \
        (void)arena;                                                                               \
        return numbers_real(value, entry->name, count, entry_place(entry, record));                \
    }
REALS_ENTRY(transform, 6)
REALS_ENTRY(resolution, 2)
REALS_ENTRY(bbox, 4)

static bool read_grid(PyObject *dict, struct given_mosaic *given) {
#define ENTRY(member, read)                                                                        \
    { #member, #member, offsetof(cogpu_grid, member), read, 0 }
    static const struct entry entries[] = {ENTRY(crs, entry_text),
                                           ENTRY(transform, entry_transform),
                                           ENTRY(width, entry_u32),
                                           ENTRY(height, entry_u32),
                                           ENTRY(bbox, entry_bbox),
                                           ENTRY(bbox_crs, entry_text),
                                           ENTRY(resolution, entry_resolution),
                                           ENTRY(align, entry_flag)};
#undef ENTRY
    given->grid = (cogpu_grid)COGPU_GRID_INIT;
    if (dict == Py_None)
        return true;
    given->options.grid = &given->grid;
    return record_read(entries, FIELD_COUNT(entries), "grid", dict, &given->grid, &given->arena);
}

NAME_ENTRY(composite)

static bool read_options(PyObject *dict, struct given_mosaic *given) {
#define ENTRY(member, read)                                                                        \
    { #member, #member, offsetof(cogpu_mosaic_options, member), read, 0 }
    static const struct entry entries[] = {
        ENTRY(resampling, entry_resampling),
        ENTRY(composite, entry_composite),
        {"dtype", "dtype", offsetof(cogpu_mosaic_options, type), entry_type, 0},
        ENTRY(nodata, entry_text),
        ENTRY(max_error, entry_real),
        ENTRY(full_resolution, entry_flag),
        ENTRY(skip_bad_sources, entry_flag)};
#undef ENTRY
    return record_read(entries, FIELD_COUNT(entries), "options", dict, &given->options,
                       &given->arena);
}

static void release_given(struct given_mosaic *given) {
    for (size_t i = 0; given->files && i < given->count; i++)
        handle_drop(given->files[i]);
    arena_release(&given->arena);
}

PyObject *mosaic_open(PyObject *module, PyObject *arguments, PyObject *words) {
    static char *names[] = {"sources", "options",     "grid", "sidecars",
                            "limits",  "vrt_sources", NULL};
    PyObject *sources, *options, *grid = Py_None;
    struct open_words open = {Py_None, Py_None, Py_None};
    struct given_mosaic given = {.options = COGPU_MOSAIC_OPTIONS_INIT};
    struct handle *opened = NULL;
    (void)module;
    if (PyArg_ParseTupleAndKeywords(arguments, words, "OO|$OOOO", names, &sources, &options, &grid,
                                    &open.sidecars, &open.limits, &open.vrt_sources) &&
        open_options_read(&open, &given.open) && read_options(options, &given) &&
        read_grid(grid, &given) && read_sources(sources, &given))
        opened = handle_open_mosaic(given.sources, given.files, given.count, &given.options,
                                    &given.open.options);
    release_given(&given);
    return file_of_handle(opened);
}

/* ---- sources --------------------------------------------------------------------------------- */

static PyObject *failure_object(const cogpu_source_description *source) {
    cogpu_error error = {.status = source->status, .directory = -1, .block = -1, .offset = -1};
    if (source->status == COGPU_OK)
        return Py_NewRef(Py_None);
    PyOS_snprintf(error.message, sizeof error.message, "%s",
                  source->message ? source->message : cogpu_status_name(source->status));
    return error_object(&error);
}

static PyObject *source_object(const cogpu_source_description *source) {
    static const struct field fields[] = {
        FIELD(cogpu_source_description, path, FIELD_TEXT),
        FIELD(cogpu_source_description, is_reprojected, FIELD_FLAG),
        FIELD(cogpu_source_description, is_copied, FIELD_FLAG)};
    PyObject *dict = fields_dict(fields, FIELD_COUNT(fields), source);
    const int64_t *window = source->window;
    if (dict && dict_add(dict, "error", failure_object(source)) &&
        dict_add(dict, "window",
                 Py_BuildValue("(LLLL)", (long long)window[0], (long long)window[1],
                               (long long)window[2], (long long)window[3])))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *file_sources(PyObject *file, PyObject *unused) {
    cogpu_source_description source = COGPU_SOURCE_DESCRIPTION_INIT;
    cogpu_error error;
    cogpu_status status = COGPU_OK;
    (void)unused;
    struct handle *handle = file_take(file);
    PyObject *list = handle ? PyList_New(0) : NULL;
    for (uint64_t i = 0; list; i++) {
        status = cogpu_source_info(handle_file(handle), i, &source, &error);
        if (status != COGPU_OK)
            break;
        if (!list_add(list, source_object(&source)))
            Py_CLEAR(list);
    }
    if (list && status != COGPU_NOT_FOUND) {
        Py_CLEAR(list);
        handle_raise(handle, &error);
    }
    handle_drop(handle);
    return list;
}

/* ---- VRT ------------------------------------------------------------------------------------- */

PyObject *file_write_vrt(PyObject *file, PyObject *given) {
    cogpu_error error;
    cogpu_status status;
    struct handle *handle = file_take(file);
    struct target *target = handle ? target_open(given) : NULL;
    PyObject *written = NULL;
    if (target) {
        Py_BEGIN_ALLOW_THREADS
            status = cogpu_write_vrt(handle_file(handle), &target->sink, &error);
        Py_END_ALLOW_THREADS
        if (status != COGPU_OK)
            target_raise(target, &error);
        else
            written = given == Py_None ? memory_view(&target->memory) : Py_NewRef(Py_None);
    }
    target_release(target);
    handle_drop(handle);
    return written;
}
