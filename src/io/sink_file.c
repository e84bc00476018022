/*
 * A path as a sink. Bytes go to a part file beside it; when all are on the disk, the part file is
 * renamed, which is atomic. So the path has its old content or the new one, whatever happens to
 * this process.
 *
 * The folder stays open, so that the process may change its working directory meanwhile.
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

struct file_sink {
    cogpu_out out;               /* its `name` is in `path`, below */
    char path[COGPU_PATH_BYTES]; /* links followed */
    char part[COGPU_NAME_BYTES]; /* in the folder; "" once it is renamed */
    bool clears_sidecars;        /* they belong to the file that is replaced */
    bool no_replace;             /* the path had no file, and must have none at the end */
};

static cogpu_status fail_with(int number, cogpu_error *error, const char *doing, const char *path) {
    errno = number;
    return cogpu_fail_errno(error, doing, path);
}

static cogpu_status write_file(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                               cogpu_error *error) {
    if (!cogpu_part_write(out->descriptor, offset, from, bytes))
        return cogpu_fail_errno(error, "cannot write the file", out->path);
    return COGPU_OK;
}

static void abort_file(cogpu_out *out) {
    const struct file_sink *self = (struct file_sink *)out;
    if (self->part[0])
        unlinkat(out->folder, self->part, 0);
    if (out->descriptor >= 0)
        close(out->descriptor);
    if (out->folder >= 0)
        close(out->folder);
}

/* Some file systems report failed writes only when a file is closed. The part file must stay open,
 * because it is locked: so a copy of the descriptor is closed. */
static bool close_copy(int file) {
    int copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return copy >= 0 && close(copy) == 0;
}

/* Some folders cannot be read, and some cannot be flushed: that is no error. */
static bool flush_folder(int folder) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0)
        return true;
    bool is_flushed = fsync(copy) == 0 || errno == EINVAL;
    close(copy);
    return is_flushed;
}

/* Not every file system has RENAME_NOREPLACE. */
static bool rename_part(const struct file_sink *self) {
    const int folder = self->out.folder;
    const char *name = self->out.name;
    if (!self->no_replace)
        return renameat(folder, self->part, folder, name) == 0;
    if (renameat2(folder, self->part, folder, name, RENAME_NOREPLACE) == 0)
        return true;
    return errno == EINVAL && linkat(folder, self->part, folder, name, 0) == 0 &&
           unlinkat(folder, self->part, 0) == 0;
}

static cogpu_status publish_file(struct file_sink *self, cogpu_error *error) {
    const cogpu_out *out = &self->out;
    if (fsync(out->descriptor) != 0 || !close_copy(out->descriptor))
        return cogpu_fail_errno(error, "cannot write the file", out->path);
    if (!rename_part(self))
        return cogpu_fail_errno(error, "cannot rename the new file", out->path);
    self->part[0] = '\0';
    if (self->clears_sidecars)
        cogpu_sidecars_remove(out->folder, out->name);
    if (!flush_folder(out->folder))
        return cogpu_fail_errno(error, "the file is written, but a crash may undo it", out->path);
    return COGPU_OK;
}

static cogpu_status commit_file(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = publish_file((struct file_sink *)out, error);
    abort_file(out);
    return status;
}

/* ---- opening ---- */

/* The file that the new one replaces, if there is one. */
struct old_file {
    bool exists;
    struct stat about;
};

static cogpu_status check_old_file(const cogpu_sink *sink, struct old_file *old,
                                   cogpu_error *error) {
    const char *path = sink->path;
    old->exists = stat(path, &old->about) == 0;
    if (!old->exists && errno == ENOENT)
        return COGPU_OK;
    if (!old->exists)
        return cogpu_fail_errno(error, "cannot write the file", path);
    if (!S_ISREG(old->about.st_mode))
        return cogpu_fail(error, COGPU_IO_ERROR, "cannot write the file: it is a %s: %s",
                          S_ISDIR(old->about.st_mode) ? "folder" : "device or a pipe", path);
    if (sink->no_replace)
        return fail_with(EEXIST, error, "cannot write the file", path);
    /* A rename does not need write permission. */
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return cogpu_fail_errno(error, "cannot replace the file", path);
    return COGPU_OK;
}

/* Owner, group and permissions of the old file, as far as the process may set them. A group that
 * cannot be kept would give the permissions of the old group to another one. */
static void copy_owner(int file, const struct stat *old) {
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

/* Sets self->path to what the path means in the end. A link may point to no file yet. */
static cogpu_status follow_links(struct file_sink *self, const char *path, cogpu_error *error) {
    char link[COGPU_PATH_BYTES];
    size_t bytes = strlen(path);
    if (bytes >= sizeof self->path)
        return fail_with(ENAMETOOLONG, error, "cannot write the file", path);
    memcpy(self->path, path, bytes + 1);
    self->out.path = self->path;
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t got = readlink(self->path, link, sizeof link);
        if (got < 0)
            return COGPU_OK;
        char *to = link[0] == '/' ? self->path : last_name(self->path);
        if ((size_t)got >= sizeof self->path - (size_t)(to - self->path))
            return fail_with(ENAMETOOLONG, error, "cannot follow the link", path);
        memcpy(to, link, (size_t)got);
        to[got] = '\0';
    }
    return fail_with(ELOOP, error, "cannot follow the link", path);
}

static cogpu_status open_folder(struct file_sink *self, cogpu_error *error) {
    char folder[COGPU_PATH_BYTES] = ".";
    char *name = last_name(self->path);
    if (!*name)
        return cogpu_fail(error, COGPU_IO_ERROR,
                          "cannot write the file: no file is named by \"%s\"", self->path);
    if (name > self->path) {
        memcpy(folder, self->path, (size_t)(name - self->path));
        folder[name - self->path] = '\0';
    }
    self->out.name = name;
    self->out.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (self->out.folder < 0)
        return cogpu_fail_errno(error, "cannot open the file's folder", self->path);
    return COGPU_OK;
}

static cogpu_status make_part_file(struct file_sink *self, const cogpu_sink *sink,
                                   cogpu_error *error) {
    cogpu_out *out = &self->out;
    struct old_file old;
    TRY(check_old_file(sink, &old, error));
    TRY(follow_links(self, sink->path, error));
    TRY(open_folder(self, error));
    self->no_replace = sink->no_replace;
    self->clears_sidecars = old.exists && !sink->keep_sidecars;
    if (self->clears_sidecars)
        TRY(cogpu_sidecars_check(out->folder, out->name, sink, error));
    cogpu_parts_clear(out->folder, out->name);
    mode_t mode = old.exists ? old.about.st_mode & MODE_BITS : NEW_FILE_MODE;
    if (!cogpu_part_make(out->folder, out->name, mode, self->part, &out->descriptor))
        return cogpu_fail_errno(error, "cannot create a file beside it", out->path);
    if (old.exists)
        copy_owner(out->descriptor, &old.about);
    return COGPU_OK;
}

cogpu_status cogpu_out_open_file(const cogpu_sink *sink, cogpu_out **out, cogpu_error *error) {
    static const cogpu_out_kind file_kind = {
        .write = write_file, .commit = commit_file, .abort = abort_file};
    struct file_sink *self;
    TRY(cogpu_out_allocate(sizeof *self, &file_kind, &self, error));
    cogpu_status status = make_part_file(self, sink, error);
    if (status == COGPU_OK)
        *out = &self->out;
    else
        cogpu_out_abort(&self->out);
    return status;
}
