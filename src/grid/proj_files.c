/* See proj_files.h. PROJ's file API with stdio, read only. The database is not read through it:
 * SQLite opens files by itself. */
#include "grid/proj_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "..", as a part of a path, leaves a folder. */
static bool climbs(const char *path) {
    for (const char *at = strstr(path, ".."); at; at = strstr(at + 1, ".."))
        if ((at == path || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
            return true;
    return false;
}

static bool is_allowed(const cogpu_proj_folders *folders, const char *path) {
    if (climbs(path))
        return false;
    for (const char *folder = folders->paths; *folder;) {
        size_t chars = strcspn(folder, ":"), length = chars;
        while (length && folder[length - 1] == '/')
            length--;
        if (length && strncmp(path, folder, length) == 0 && path[length] == '/')
            return true;
        folder += chars + (folder[chars] == ':');
    }
    return false;
}

static PROJ_FILE_HANDLE *open_file(PJ_CONTEXT *context, const char *path, PROJ_OPEN_ACCESS access,
                                   void *folders) {
    (void)context;
    if (access != PROJ_OPEN_ACCESS_READ_ONLY || !is_allowed(folders, path))
        return NULL;
    return (PROJ_FILE_HANDLE *)fopen(path, "rb");
}

static size_t read_file(PJ_CONTEXT *context, PROJ_FILE_HANDLE *file, void *to, size_t bytes,
                        void *folders) {
    (void)context, (void)folders;
    return fread(to, 1, bytes, (FILE *)file);
}

static size_t write_file(PJ_CONTEXT *context, PROJ_FILE_HANDLE *file, const void *from,
                         size_t bytes, void *folders) {
    (void)context, (void)file, (void)from, (void)bytes, (void)folders;
    return 0;
}

static int seek_file(PJ_CONTEXT *context, PROJ_FILE_HANDLE *file, long long offset, int whence,
                     void *folders) {
    (void)context, (void)folders;
    return fseeko((FILE *)file, offset, whence) == 0;
}

static unsigned long long file_position(PJ_CONTEXT *context, PROJ_FILE_HANDLE *file,
                                        void *folders) {
    (void)context, (void)folders;
    off_t position = ftello((FILE *)file);
    return position < 0 ? 0 : (unsigned long long)position;
}

static void close_file(PJ_CONTEXT *context, PROJ_FILE_HANDLE *file, void *folders) {
    (void)context, (void)folders;
    fclose((FILE *)file);
}

static int file_exists(PJ_CONTEXT *context, const char *path, void *folders) {
    (void)context;
    return is_allowed(folders, path) && access(path, R_OK) == 0;
}

static int refuse_path(PJ_CONTEXT *context, const char *path, void *folders) {
    (void)context, (void)path, (void)folders;
    return 0;
}

static int refuse_rename(PJ_CONTEXT *context, const char *from, const char *to, void *folders) {
    (void)context, (void)from, (void)to, (void)folders;
    return 0;
}

/* A database may lie beside no other data of PROJ's. */
void cogpu_proj_folders_find(PJ_CONTEXT *context, cogpu_proj_folders *folders) {
    const char *database = proj_context_get_database_path(context);
    const char *searched = proj_info().searchpath;
    const char *slash = database ? strrchr(database, '/') : NULL;
    int length = snprintf(folders->paths, sizeof folders->paths, "%.*s:%s",
                          slash ? (int)(slash - database) : 0, slash ? database : "",
                          searched ? searched : "");
    char *last = strrchr(folders->paths, ':');
    if (last && length >= (int)sizeof folders->paths)
        *last = '\0'; /* the last folder is incomplete */
}

cogpu_status cogpu_proj_restrict_files(PJ_CONTEXT *context, cogpu_proj_folders *folders,
                                       cogpu_error *error) {
    static const PROJ_FILE_API reading = {1,           open_file,     read_file,    write_file,
                                          seek_file,   file_position, close_file,   file_exists,
                                          refuse_path, refuse_path,   refuse_rename};
    if (!proj_context_set_fileapi(context, &reading, folders))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "PROJ could not prepare a context");
    return COGPU_OK;
}
