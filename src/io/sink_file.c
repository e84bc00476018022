/*
 * A path as a sink. Bytes go to a part beside the file; when all are there and on the disk, the
 * part takes the file's name, which is one step for whoever looks. So the path has its old content
 * or the new one, whatever happens to this process.
 *
 * The folder is held open, so that a process that changes its own does no harm.
 */
#define _GNU_SOURCE /* O_PATH, AT_EACCESS, renameat2 */
#include "io/io.h"
#include "io/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, NEW_FILE_MODE = 0666, MODE_BITS = 0777 };

static cogpu_status fail_with(int number, cogpu_error *error, const char *doing, const char *path) {
    errno = number;
    return cogpu_fail_errno(error, doing, path);
}

static cogpu_status file_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                               cogpu_error *error) {
    if (!cogpu_part_write(out->file, offset, from, bytes))
        return cogpu_fail_errno(error, "cannot write the file", out->path);
    return COGPU_OK;
}

static void file_abort(cogpu_out *out) {
    if (out->part[0])
        unlinkat(out->folder, out->part, 0);
    if (out->file >= 0)
        close(out->file);
    if (out->folder >= 0)
        close(out->folder);
}

/* Some file systems tell of failed writes only when a file is closed. The part must stay open, as
 * its lock goes with it, so a copy of the descriptor is closed. */
static bool close_copy(int file) {
    int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return copy >= 0 && close(copy) == 0;
}

/* Some folders cannot be read, and some cannot be flushed: not worth failing for. */
static bool flush_folder(int folder) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0)
        return true;
    bool is_flushed = fsync(copy) == 0 || errno == EINVAL;
    close(copy);
    return is_flushed;
}

/* Without replacing anything, where the sink asks for that: not every file system has the flag. */
static bool give_name(const cogpu_out *out) {
    if (!out->no_replace)
        return renameat(out->folder, out->part, out->folder, out->name) == 0;
    if (renameat2(out->folder, out->part, out->folder, out->name, RENAME_NOREPLACE) == 0)
        return true;
    return errno == EINVAL && linkat(out->folder, out->part, out->folder, out->name, 0) == 0 &&
           unlinkat(out->folder, out->part, 0) == 0;
}

static cogpu_status publish(cogpu_out *out, cogpu_error *error) {
    if (fsync(out->file) != 0 || !close_copy(out->file))
        return cogpu_fail_errno(error, "cannot write the file", out->path);
    if (!give_name(out))
        return cogpu_fail_errno(error, "cannot put the new file in its place", out->path);
    out->part[0] = '\0';
    if (out->clears_sidecars)
        cogpu_sidecars_remove(out->folder, out->name);
    if (!flush_folder(out->folder))
        return cogpu_fail_errno(error, "the file is written, but a crash may undo it", out->path);
    return COGPU_OK;
}

static cogpu_status file_commit(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = publish(out, error);
    file_abort(out);
    return status;
}

/* ---- opening ---- */

/* The file that the new one replaces, if there is one. */
struct old_file {
    bool exists;
    struct stat about;
};

static cogpu_status look_at(const cogpu_sink *sink, struct old_file *old, cogpu_error *error) {
    const char *path = sink->path;
    old->exists = stat(path, &old->about) == 0;
    if (!old->exists && errno == ENOENT)
        return COGPU_OK;
    if (!old->exists)
        return cogpu_fail_errno(error, "cannot write the file", path);
    if (!S_ISREG(old->about.st_mode))
        return cogpu_fail(error, COGPU_IO, "cannot write the file: it is a %s: %s",
                          S_ISDIR(old->about.st_mode) ? "folder" : "device or a pipe", path);
    if (sink->no_replace)
        return fail_with(EEXIST, error, "cannot write the file", path);
    /* A rename would not ask. */
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return cogpu_fail_errno(error, "cannot replace the file", path);
    return COGPU_OK;
}

/* Owner, group and permissions of the old file, as far as the process may set them. A group that
 * cannot be kept would give the permissions of the old group to another one. */
static void keep_owner(int file, const struct stat *old) {
    mode_t mode = old->st_mode & MODE_BITS;
    struct stat about;
    if (fchown(file, old->st_uid, old->st_gid) != 0)
        (void)!fchown(file, (uid_t)-1, old->st_gid);
    if (fstat(file, &about) != 0 || about.st_gid != old->st_gid)
        mode &= ~(mode_t)S_IRWXG | (mode & S_IRWXO) << 3;
    (void)!fchmod(file, mode);
}

static char *last_name(char *path) {
    char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Sets out->path to what the path means in the end; a link may well point to no file yet. */
static cogpu_status follow_links(cogpu_out *out, const char *path, cogpu_error *error) {
    char link[COGPU_PATH_BYTES];
    size_t bytes = strlen(path);
    if (bytes >= sizeof out->path)
        return fail_with(ENAMETOOLONG, error, "cannot write the file", path);
    memcpy(out->path, path, bytes + 1);
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t got = readlink(out->path, link, sizeof link);
        if (got < 0)
            return COGPU_OK;
        char *to = link[0] == '/' ? out->path : last_name(out->path);
        if ((size_t)got >= sizeof out->path - (size_t)(to - out->path))
            return fail_with(ENAMETOOLONG, error, "cannot follow the link", path);
        memcpy(to, link, (size_t)got);
        to[got] = '\0';
    }
    return fail_with(ELOOP, error, "cannot follow the link", path);
}

static cogpu_status open_folder(cogpu_out *out, cogpu_error *error) {
    char folder[COGPU_PATH_BYTES] = ".";
    char *name = last_name(out->path);
    if (!*name)
        return cogpu_fail(error, COGPU_IO, "cannot write the file: no file is named by \"%s\"",
                          out->path);
    if (name > out->path) {
        memcpy(folder, out->path, (size_t)(name - out->path));
        folder[name - out->path] = '\0';
    }
    out->name = name;
    out->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (out->folder < 0)
        return cogpu_fail_errno(error, "cannot open the file's folder", out->path);
    return COGPU_OK;
}

cogpu_status cogpu_out_to_file(cogpu_out *out, const cogpu_sink *sink, cogpu_error *error) {
    struct old_file old;
    out->write = file_write;
    out->commit = file_commit;
    out->abort = file_abort;
    TRY(look_at(sink, &old, error));
    TRY(follow_links(out, sink->path, error));
    TRY(open_folder(out, error));
    out->no_replace = sink->no_replace;
    out->clears_sidecars = old.exists && !sink->keep_sidecars;
    if (out->clears_sidecars)
        TRY(cogpu_sidecars_check(out->folder, out->name, sink, error));
    cogpu_parts_clear(out->folder, out->name);
    mode_t mode = old.exists ? old.about.st_mode & MODE_BITS : NEW_FILE_MODE;
    if (!cogpu_part_make(out->folder, out->name, mode, out->part, &out->file))
        return cogpu_fail_errno(error, "cannot make a file beside it", out->path);
    if (old.exists)
        keep_owner(out->file, &old.about);
    return COGPU_OK;
}
