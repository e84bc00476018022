/*
 * Finds and reads the files beside a file, by GDAL's rules for names. In a folder of up to 1000
 * entries, names are compared without regard to case. In larger ones, and behind URLs, the ending
 * is tried in lower case and then in upper case. image/sidecar.h interprets the texts.
 */
#include "context/file_object.h"

#include "io/http/url.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    FOLDER_ENTRIES_MAX = 1000,
    PATH_CHARS = 4096,
    WORLD_BYTES_MAX = 16 << 10, /* 100 lines of 100 characters, and blanks */
    RPC_BYTES_MAX = 1 << 20,
    ARCGIS_BYTES_MAX = 10 << 20
};

/* Names in the folder that begin with the file's name without its ending, in any case. */
typedef struct folder_listing {
    char **names;
    uint32_t count;
    bool is_known; /* false: names have to be tried */
} folder_listing;

typedef struct sidecar_search {
    cogpu_file *file;
    const char *path;
    cogpu_http *http;
    bool is_url;
    size_t folder; /* bytes of the path before the name of the file */
    size_t stem;   /* bytes of the path before its last dot */
    folder_listing list;
    cogpu_arena arena; /* for the search alone */
    cogpu_error *error;
} sidecar_search;

/* ---- names ---- */

static void split_path(sidecar_search *search) {
    const char *slash = strrchr(search->path, '/');
    const char *name = slash ? slash + 1 : search->path, *dot = strrchr(name, '.');
    search->folder = (size_t)(name - search->path);
    search->stem = dot ? (size_t)(dot - search->path) : strlen(search->path);
}

static cogpu_status add_sidecar_name(sidecar_search *search, const char *name) {
    const char *copy;
    TRY(cogpu_arena_text(&search->arena, name, strlen(name), &copy, search->error));
    search->list.names[search->list.count++] = (char *)copy;
    return COGPU_OK;
}

static cogpu_status read_folder(sidecar_search *search, DIR *folder) {
    size_t stem = search->stem - search->folder;
    uint32_t entries = 0;
    TRY(cogpu_arena_allocate(&search->arena, FOLDER_ENTRIES_MAX, sizeof *search->list.names,
                             &search->list.names, search->error));
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (++entries > FOLDER_ENTRIES_MAX)
            return COGPU_OK;
        if (strncasecmp(entry->d_name, search->path + search->folder, stem) == 0)
            TRY(add_sidecar_name(search, entry->d_name));
    }
    search->list.is_known = true;
    return COGPU_OK;
}

static cogpu_status list_folder(sidecar_search *search) {
    char name[PATH_CHARS];
    if (search->is_url || search->folder >= sizeof name)
        return COGPU_OK;
    snprintf(name, sizeof name, "%.*s", (int)search->folder, search->folder ? search->path : "");
    DIR *folder = opendir(search->folder ? name : ".");
    if (!folder)
        return COGPU_OK;
    cogpu_status status = read_folder(search, folder);
    closedir(folder);
    return status;
}

static void to_upper(char *text) {
    for (; *text; text++)
        if (*text >= 'a' && *text <= 'z')
            *text = (char)(*text - 'a' + 'A');
}

/* ---- one file ---- */

static cogpu_status open_sidecar(const sidecar_search *search, const char *path, cogpu_io **io,
                                 cogpu_error *error) {
    return search->is_url ? cogpu_io_open_url(path, search->http, io, error)
                          : cogpu_io_open_file(path, io, error);
}

static void warn_ignored(sidecar_search *search, const char *path, const char *why) {
    const char *slash = strrchr(path, '/');
    cogpu_warn(&search->file->arena, &search->file->tiff.warning, "the file %s was ignored: %s",
               slash ? slash + 1 : path, why);
}

/* Opens the file at `path`; *io is NULL if it does not exist or cannot be read. */
static cogpu_status try_path(sidecar_search *search, const char *path, cogpu_io **io) {
    cogpu_error why;
    cogpu_status status = open_sidecar(search, path, io, &why);
    if (status == COGPU_OK || status == COGPU_NOT_FOUND)
        return COGPU_OK;
    *io = NULL;
    if (status == COGPU_OUT_OF_MEMORY)
        return cogpu_fail(search->error, status, "%s", why.message);
    warn_ignored(search, path, why.message);
    return COGPU_OK;
}

/* The name on disk: the same name before others that differ by case. */
static const char *name_on_disk(const sidecar_search *search, const char *name) {
    const char *found = NULL;
    for (uint32_t i = 0; i < search->list.count; i++) {
        if (strcmp(search->list.names[i], name) == 0)
            return search->list.names[i];
        if (!found && strcasecmp(search->list.names[i], name) == 0)
            found = search->list.names[i];
    }
    return found;
}

/* Opens the file whose name is the first `keep` bytes of the path and an ending, which may be
 * written in any case. `path` becomes its path, and is of PATH_CHARS. */
static cogpu_status open_beside(sidecar_search *search, size_t keep, const char *ending,
                                bool is_exact, char *path, cogpu_io **io) {
    *io = NULL;
    int length = snprintf(path, PATH_CHARS, "%.*s%s", (int)keep, search->path, ending);
    if (length < 0 || length >= PATH_CHARS)
        return COGPU_OK;
    if (search->list.is_known) {
        const char *name = name_on_disk(search, path + search->folder);
        if (!name || (is_exact && strcmp(name, path + search->folder) != 0))
            return COGPU_OK;
        snprintf(path + search->folder, PATH_CHARS - search->folder, "%s", name);
        return try_path(search, path, io);
    }
    TRY(try_path(search, path, io));
    if (*io || is_exact)
        return COGPU_OK;
    to_upper(path + keep);
    return try_path(search, path, io);
}

static cogpu_status keep_path(sidecar_search *search, const char *path, cogpu_sidecar_file *file) {
    return cogpu_arena_text(&search->file->arena, path, strlen(path), &file->path, search->error);
}

/* ---- TIFFs: overviews and masks ---- */

/* *tiff is NULL if there is no such file, or it is not a TIFF. */
static cogpu_status find_tiff(sidecar_search *search, size_t keep, const char *ending,
                              const cogpu_tiff **tiff) {
    char path[PATH_CHARS];
    cogpu_file *file = search->file;
    cogpu_sidecar_file *sidecar = &file->sidecars[file->sidecar_count];
    cogpu_error why;
    *tiff = NULL;
    TRY(open_beside(search, keep, ending, false, path, &sidecar->io));
    if (!sidecar->io)
        return COGPU_OK;
    file->sidecar_count++; /* so that cogpu_sidecars_close closes it */
    TRY(keep_path(search, path, sidecar));
    cogpu_status status =
        cogpu_tiff_open(&sidecar->tiff, sidecar->io, &file->tiff.limits, &file->arena, &why);
    if (status == COGPU_OUT_OF_MEMORY)
        return cogpu_fail(search->error, status, "%s", why.message);
    if (status != COGPU_OK) {
        warn_ignored(search, path, why.message);
        return COGPU_OK;
    }
    sidecar->tiff.number = file->sidecar_count;
    sidecar->is_used = true;
    *tiff = &sidecar->tiff;
    return COGPU_OK;
}

static cogpu_status find_overviews(sidecar_search *search) {
    cogpu_sidecar_data *beside = &search->file->beside;
    char ending[4 * COGPU_OVERVIEW_FILES_MAX + 1] = "";
    const cogpu_tiff *tiff;
    do {
        strncat(ending, ".ovr", sizeof ending - strlen(ending) - 1);
        TRY(find_tiff(search, strlen(search->path), ending, &tiff));
        if (tiff)
            beside->overviews[beside->overview_count++] = tiff;
    } while (tiff && beside->overview_count < COGPU_OVERVIEW_FILES_MAX);
    return COGPU_OK;
}

static cogpu_status find_masks(sidecar_search *search) {
    cogpu_sidecar_data *beside = &search->file->beside;
    TRY(find_tiff(search, strlen(search->path), ".msk", &beside->mask));
    if (beside->mask)
        TRY(find_tiff(search, strlen(search->path), ".msk.ovr", &beside->mask_overviews));
    return COGPU_OK;
}

/* ---- texts ---- */

static cogpu_status read_text(sidecar_search *search, const cogpu_io *io, uint64_t max_bytes,
                              const char *path, bool may_truncate, xml_slice *text) {
    uint64_t bytes = cogpu_io_bytes(io);
    char *content = NULL;
    cogpu_error why;
    if (bytes > max_bytes && !may_truncate) {
        char reason[96];
        snprintf(reason, sizeof reason, "it has %llu bytes, the limit is %llu",
                 (unsigned long long)bytes, (unsigned long long)max_bytes);
        warn_ignored(search, path, reason);
        return COGPU_OK;
    }
    bytes = bytes < max_bytes ? bytes : max_bytes;
    TRY(cogpu_arena_allocate(&search->file->arena, bytes + 1, 1, &content, search->error));
    if (cogpu_io_read(io, 0, (size_t)bytes, content, &why) != COGPU_OK) {
        warn_ignored(search, path, why.message);
        return COGPU_OK;
    }
    *text = (xml_slice){content, (size_t)bytes};
    return COGPU_OK;
}

static cogpu_status find_text(sidecar_search *search, cogpu_sidecar_kind kind, size_t keep,
                              const char *ending, uint64_t max_bytes) {
    char path[PATH_CHARS];
    cogpu_file *file = search->file;
    cogpu_sidecar_file *sidecar = &file->sidecars[file->sidecar_count];
    cogpu_io *io;
    bool is_world = kind >= SIDECAR_WORLD_SHORT && kind <= SIDECAR_WORLD_WLD;
    TRY(open_beside(search, keep, ending, kind == SIDECAR_PAM, path, &io));
    if (!io)
        return COGPU_OK;
    cogpu_status status =
        read_text(search, io, max_bytes, path, is_world, &file->beside.texts[kind].text);
    cogpu_io_close(io);
    TRY(status);
    sidecar->text = &file->beside.texts[kind];
    file->sidecar_count++;
    return keep_path(search, path, sidecar);
}

/* x.tif: x.tfw, x.tifw, x.wld. */
static cogpu_status find_world(sidecar_search *search) {
    const char *extension = search->path[search->stem] ? search->path + search->stem + 1 : "";
    size_t length = strlen(extension);
    char ending[PATH_CHARS];
    if (length >= 2 && length < sizeof ending - 3) {
        snprintf(ending, sizeof ending, ".%c%cw", extension[0], extension[length - 1]);
        TRY(find_text(search, SIDECAR_WORLD_SHORT, search->stem, ending, WORLD_BYTES_MAX));
        snprintf(ending, sizeof ending, ".%sw", extension);
        TRY(find_text(search, SIDECAR_WORLD_LONG, search->stem, ending, WORLD_BYTES_MAX));
    }
    return find_text(search, SIDECAR_WORLD_WLD, search->stem, ".wld", WORLD_BYTES_MAX);
}

/* The first that exists. If there is DigitalGlobe metadata (.IMD) without an .RPB, GDAL looks for
 * no other RPC file. */
static cogpu_status find_rpc(sidecar_search *search) {
    static const struct {
        cogpu_sidecar_kind kind;
        const char *ending;
    } files[] = {{SIDECAR_RPB, ".rpb"}, {SIDECAR_RPC_TEXT, "_rpc.txt"}, {SIDECAR_RPC, ".rpc"}};
    char path[PATH_CHARS];
    cogpu_io *metadata = NULL;
    if (strcasecmp(search->path + search->stem, ".ovr") == 0)
        return COGPU_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        TRY(find_text(search, files[i].kind, search->stem, files[i].ending, RPC_BYTES_MAX));
        if (search->file->beside.texts[files[i].kind].text.bytes)
            return COGPU_OK;
        if (i == 0)
            TRY(open_beside(search, search->stem, ".imd", false, path, &metadata));
        cogpu_io_close(metadata);
        if (metadata)
            return COGPU_OK;
    }
    return COGPU_OK;
}

static cogpu_status find_sidecars(sidecar_search *search) {
    TRY(list_folder(search));
    TRY(find_overviews(search));
    TRY(find_masks(search));
    TRY(find_text(search, SIDECAR_PAM, strlen(search->path), ".aux.xml",
                  search->file->tiff.limits.tag_bytes));
    TRY(find_world(search));
    TRY(find_text(search, SIDECAR_ARCGIS, search->stem, ".xml", ARCGIS_BYTES_MAX));
    return find_rpc(search);
}

/* ---- open and close ---- */

cogpu_status cogpu_sidecars_open(cogpu_file *file, const char *path, cogpu_http *http,
                                 cogpu_error *error) {
    sidecar_search search = {.file = file, .path = path, .http = http, .error = error};
    search.is_url = cogpu_url_is(path);
    if (search.is_url && strpbrk(path, "?#"))
        return COGPU_OK; /* a query, not part of a name */
    split_path(&search);
    cogpu_arena_open(&search.arena, file->tiff.limits.working_memory_bytes);
    cogpu_status status = find_sidecars(&search);
    cogpu_arena_close(&search.arena);
    return status;
}

cogpu_status cogpu_sidecars_seal(cogpu_file *file, cogpu_error *error) {
    TRY(cogpu_arena_allocate(&file->arena, file->sidecar_count, sizeof *file->sidecar_paths,
                             &file->sidecar_paths, error));
    for (uint32_t i = 0; i < file->sidecar_count; i++) {
        const cogpu_sidecar_file *sidecar = &file->sidecars[i];
        if (sidecar->io)
            cogpu_io_seal(sidecar->io);
        if (sidecar->is_used || (sidecar->text && sidecar->text->is_used))
            file->sidecar_paths[file->sidecar_path_count++] = sidecar->path;
    }
    return COGPU_OK;
}

void cogpu_sidecars_close(cogpu_file *file) {
    for (uint32_t i = 0; i < file->sidecar_count; i++)
        cogpu_io_close(file->sidecars[i].io);
}
