/*
 * Finds and reads the files beside a file, by GDAL's rules for names: in a folder of up to 1000
 * entries the names that are there are compared without regard to case; in larger ones, and behind
 * URLs, the ending is tried in lower case and then in upper case. What the texts mean is told by
 * image/sidecar.h.
 */
#include "api/sidecars.h"
#include "io/url.h"

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

/* Names of the folder that begin with the file's name without its ending, in any case. */
typedef struct listing {
    char **names;
    uint32_t count;
    bool is_known; /* else names have to be tried */
} listing;

typedef struct finder {
    cogpu_file *file;
    const char *path;
    cogpu_http *http;
    bool is_url;
    size_t folder; /* bytes of the path before the name of the file */
    size_t stem;   /* bytes of the path before its last dot */
    listing list;
    cogpu_arena arena; /* of what only finding needs */
    cogpu_error *error;
} finder;

/* ---- names ---- */

static void measure(finder *in) {
    const char *slash = strrchr(in->path, '/');
    const char *name = slash ? slash + 1 : in->path, *dot = strrchr(name, '.');
    in->folder = (size_t)(name - in->path);
    in->stem = dot ? (size_t)(dot - in->path) : strlen(in->path);
}

static cogpu_status add_name(finder *in, const char *name) {
    const char *copy;
    TRY(cogpu_arena_text(&in->arena, name, strlen(name), &copy, in->error));
    in->list.names[in->list.count++] = (char *)copy;
    return COGPU_OK;
}

static cogpu_status read_folder(finder *in, DIR *folder) {
    size_t stem = in->stem - in->folder;
    uint32_t entries = 0;
    TRY(cogpu_arena_take(&in->arena, FOLDER_ENTRIES_MAX, sizeof *in->list.names, &in->list.names,
                         in->error));
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (++entries > FOLDER_ENTRIES_MAX)
            return COGPU_OK;
        if (strncasecmp(entry->d_name, in->path + in->folder, stem) == 0)
            TRY(add_name(in, entry->d_name));
    }
    in->list.is_known = true;
    return COGPU_OK;
}

static cogpu_status list_folder(finder *in) {
    char name[PATH_CHARS];
    if (in->is_url || in->folder >= sizeof name)
        return COGPU_OK;
    snprintf(name, sizeof name, "%.*s", (int)in->folder, in->folder ? in->path : "");
    DIR *folder = opendir(in->folder ? name : ".");
    if (!folder)
        return COGPU_OK;
    cogpu_status status = read_folder(in, folder);
    closedir(folder);
    return status;
}

static void to_upper(char *text) {
    for (; *text; text++)
        if (*text >= 'a' && *text <= 'z')
            *text = (char)(*text - 'a' + 'A');
}

/* ---- one file ---- */

static cogpu_status open_io(const finder *in, const char *path, cogpu_io **io, cogpu_error *error) {
    return in->is_url ? cogpu_io_open_http(path, in->http, io, error)
                      : cogpu_io_open_file(path, io, error);
}

static void warn(finder *in, const char *path, const char *why) {
    const char *slash = strrchr(path, '/');
    cogpu_warn(&in->file->arena, &in->file->tiff.warning, "the file %s was ignored: %s",
               slash ? slash + 1 : path, why);
}

/* Opens the file at `path`; *io is NULL where it is absent or cannot be read. */
static cogpu_status try_path(finder *in, const char *path, cogpu_io **io) {
    cogpu_error why;
    cogpu_status status = open_io(in, path, io, &why);
    if (status == COGPU_OK || status == COGPU_ABSENT)
        return COGPU_OK;
    *io = NULL;
    if (status == COGPU_MEMORY)
        return cogpu_fail(in->error, status, "%s", why.message);
    warn(in, path, why.message);
    return COGPU_OK;
}

/* The name on disk: the same name before others that differ by case. */
static const char *name_on_disk(const finder *in, const char *name) {
    const char *found = NULL;
    for (uint32_t i = 0; i < in->list.count; i++) {
        if (strcmp(in->list.names[i], name) == 0)
            return in->list.names[i];
        if (!found && strcasecmp(in->list.names[i], name) == 0)
            found = in->list.names[i];
    }
    return found;
}

/* Opens the file whose name is the first `keep` bytes of the path and an ending, which may be
 * written in any case. `path` becomes its path, and is of PATH_CHARS. */
static cogpu_status find(finder *in, size_t keep, const char *ending, bool is_exact, char *path,
                         cogpu_io **io) {
    *io = NULL;
    int length = snprintf(path, PATH_CHARS, "%.*s%s", (int)keep, in->path, ending);
    if (length < 0 || length >= PATH_CHARS)
        return COGPU_OK;
    if (in->list.is_known) {
        const char *name = name_on_disk(in, path + in->folder);
        if (!name || (is_exact && strcmp(name, path + in->folder) != 0))
            return COGPU_OK;
        snprintf(path + in->folder, PATH_CHARS - in->folder, "%s", name);
        return try_path(in, path, io);
    }
    TRY(try_path(in, path, io));
    if (*io || is_exact)
        return COGPU_OK;
    to_upper(path + keep);
    return try_path(in, path, io);
}

static cogpu_status keep_path(finder *in, const char *path, cogpu_sidecar_file *file) {
    return cogpu_arena_text(&in->file->arena, path, strlen(path), &file->path, in->error);
}

/* ---- TIFFs: overviews and masks ---- */

/* *tiff is NULL where there is no such file, or it is no TIFF. */
static cogpu_status find_tiff(finder *in, size_t keep, const char *ending,
                              const cogpu_tiff **tiff) {
    char path[PATH_CHARS];
    cogpu_file *file = in->file;
    cogpu_sidecar_file *sidecar = &file->sidecars[file->sidecar_count];
    cogpu_error why;
    *tiff = NULL;
    TRY(find(in, keep, ending, false, path, &sidecar->io));
    if (!sidecar->io)
        return COGPU_OK;
    file->sidecar_count++; /* which closes it */
    TRY(keep_path(in, path, sidecar));
    cogpu_status status =
        cogpu_tiff_open(&sidecar->tiff, sidecar->io, &file->tiff.limits, &file->arena, &why);
    if (status == COGPU_MEMORY)
        return cogpu_fail(in->error, status, "%s", why.message);
    if (status != COGPU_OK) {
        warn(in, path, why.message);
        return COGPU_OK;
    }
    sidecar->tiff.number = file->sidecar_count;
    sidecar->is_used = true;
    *tiff = &sidecar->tiff;
    return COGPU_OK;
}

static cogpu_status find_overviews(finder *in) {
    cogpu_beside *beside = &in->file->beside;
    char ending[4 * COGPU_OVERVIEW_FILES_MAX + 1] = "";
    const cogpu_tiff *tiff;
    do {
        strncat(ending, ".ovr", sizeof ending - strlen(ending) - 1);
        TRY(find_tiff(in, strlen(in->path), ending, &tiff));
        if (tiff)
            beside->overviews[beside->overview_count++] = tiff;
    } while (tiff && beside->overview_count < COGPU_OVERVIEW_FILES_MAX);
    return COGPU_OK;
}

static cogpu_status find_masks(finder *in) {
    cogpu_beside *beside = &in->file->beside;
    TRY(find_tiff(in, strlen(in->path), ".msk", &beside->mask));
    if (beside->mask)
        TRY(find_tiff(in, strlen(in->path), ".msk.ovr", &beside->mask_overviews));
    return COGPU_OK;
}

/* ---- texts ---- */

static cogpu_status read_text(finder *in, const cogpu_io *io, uint64_t most, const char *path,
                              bool is_cut, xml_slice *text) {
    uint64_t bytes = cogpu_io_bytes(io);
    char *content = NULL;
    cogpu_error why;
    if (bytes > most && !is_cut) {
        char reason[96];
        snprintf(reason, sizeof reason, "it has %llu bytes, the limit is %llu",
                 (unsigned long long)bytes, (unsigned long long)most);
        warn(in, path, reason);
        return COGPU_OK;
    }
    bytes = bytes < most ? bytes : most;
    TRY(cogpu_arena_take(&in->file->arena, bytes + 1, 1, &content, in->error));
    if (cogpu_io_read(io, 0, (size_t)bytes, content, &why) != COGPU_OK) {
        warn(in, path, why.message);
        return COGPU_OK;
    }
    *text = (xml_slice){content, (size_t)bytes};
    return COGPU_OK;
}

static cogpu_status find_text(finder *in, cogpu_sidecar_kind kind, size_t keep, const char *ending,
                              uint64_t most) {
    char path[PATH_CHARS];
    cogpu_file *file = in->file;
    cogpu_sidecar_file *sidecar = &file->sidecars[file->sidecar_count];
    cogpu_io *io;
    bool is_world = kind >= SIDECAR_WORLD_SHORT && kind <= SIDECAR_WORLD_WLD;
    TRY(find(in, keep, ending, kind == SIDECAR_PAM, path, &io));
    if (!io)
        return COGPU_OK;
    cogpu_status status = read_text(in, io, most, path, is_world, &file->beside.texts[kind].text);
    cogpu_io_close(io);
    TRY(status);
    sidecar->text = &file->beside.texts[kind];
    file->sidecar_count++;
    return keep_path(in, path, sidecar);
}

/* x.tif: x.tfw, x.tifw, x.wld. */
static cogpu_status find_world(finder *in) {
    const char *extension = in->path[in->stem] ? in->path + in->stem + 1 : "";
    size_t length = strlen(extension);
    char ending[PATH_CHARS];
    if (length >= 2 && length < sizeof ending - 3) {
        snprintf(ending, sizeof ending, ".%c%cw", extension[0], extension[length - 1]);
        TRY(find_text(in, SIDECAR_WORLD_SHORT, in->stem, ending, WORLD_BYTES_MAX));
        snprintf(ending, sizeof ending, ".%sw", extension);
        TRY(find_text(in, SIDECAR_WORLD_LONG, in->stem, ending, WORLD_BYTES_MAX));
    }
    return find_text(in, SIDECAR_WORLD_WLD, in->stem, ".wld", WORLD_BYTES_MAX);
}

/* The first that is there. Metadata of DigitalGlobe (.IMD) without an .RPB stand for no RPC file
 * at all: GDAL then looks for no other. */
static cogpu_status find_rpc(finder *in) {
    static const struct {
        cogpu_sidecar_kind kind;
        const char *ending;
    } files[] = {{SIDECAR_RPB, ".rpb"}, {SIDECAR_RPC_TEXT, "_rpc.txt"}, {SIDECAR_RPC, ".rpc"}};
    char path[PATH_CHARS];
    cogpu_io *metadata = NULL;
    if (strcasecmp(in->path + in->stem, ".ovr") == 0)
        return COGPU_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        TRY(find_text(in, files[i].kind, in->stem, files[i].ending, RPC_BYTES_MAX));
        if (in->file->beside.texts[files[i].kind].text.bytes)
            return COGPU_OK;
        if (i == 0)
            TRY(find(in, in->stem, ".imd", false, path, &metadata));
        cogpu_io_close(metadata);
        if (metadata)
            return COGPU_OK;
    }
    return COGPU_OK;
}

static cogpu_status find_all(finder *in) {
    TRY(list_folder(in));
    TRY(find_overviews(in));
    TRY(find_masks(in));
    TRY(find_text(in, SIDECAR_PAM, strlen(in->path), ".aux.xml", in->file->tiff.limits.tag_bytes));
    TRY(find_world(in));
    TRY(find_text(in, SIDECAR_ARCGIS, in->stem, ".xml", ARCGIS_BYTES_MAX));
    return find_rpc(in);
}

/* ---- all ---- */

cogpu_status cogpu_sidecars_open(cogpu_file *file, const char *path, cogpu_http *http,
                                 cogpu_error *error) {
    finder in = {.file = file, .path = path, .http = http, .error = error};
    in.is_url = cogpu_url_is(path);
    if (in.is_url && strpbrk(path, "?#"))
        return COGPU_OK; /* what follows is a query, and no part of a name */
    measure(&in);
    cogpu_arena_open(&in.arena, file->tiff.limits.call_bytes);
    cogpu_status status = find_all(&in);
    cogpu_arena_close(&in.arena);
    return status;
}

cogpu_status cogpu_sidecars_settle(cogpu_file *file, cogpu_error *error) {
    TRY(cogpu_arena_take(&file->arena, file->sidecar_count, sizeof *file->sidecar_paths,
                         &file->sidecar_paths, error));
    for (uint32_t i = 0; i < file->sidecar_count; i++) {
        const cogpu_sidecar_file *sidecar = &file->sidecars[i];
        if (sidecar->io)
            cogpu_io_settle(sidecar->io);
        if (sidecar->is_used || (sidecar->text && sidecar->text->is_used))
            file->sidecar_paths[file->sidecar_path_count++] = sidecar->path;
    }
    return COGPU_OK;
}

void cogpu_sidecars_close(cogpu_file *file) {
    for (uint32_t i = 0; i < file->sidecar_count; i++)
        cogpu_io_close(file->sidecars[i].io);
}

const char *cogpu_sidecar_path(const cogpu_file *file, uint32_t index) {
    return file && index < file->sidecar_path_count ? file->sidecar_paths[index] : NULL;
}
