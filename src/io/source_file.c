/* A file by path, read by pread, which threads may share. It is not mapped into memory: if another
 * process truncated it during a read, a signal would end this process. */
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct file_source {
    cogpu_io io;
    int descriptor;
    struct timespec modified; /* when it was opened */
    char version[80];
};

static const struct file_source *file_of(const cogpu_io *io) {
    return (const struct file_source *)io;
}

static cogpu_status read_file_bytes(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                    cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    uint8_t *at = to;
    while (bytes > 0) {
        ssize_t got = pread(file_of(io)->descriptor, at, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cogpu_fail_errno(error, "cannot read the file", NULL);
        if (got == 0)
            return cogpu_io_short(error, offset, bytes, offset);
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return COGPU_OK;
}

static void close_file(cogpu_io *io) {
    close(file_of(io)->descriptor);
    cogpu_release(io);
}

/* Looks at the open file: another one that got its name does not change what is read. */
static cogpu_status check_file(const cogpu_io *io, cogpu_error *error) {
    const struct file_source *self = file_of(io);
    struct stat about;
    if (fstat(self->descriptor, &about) != 0)
        return cogpu_fail_errno(error, "cannot read the file", NULL);
    if ((uint64_t)about.st_size == io->bytes && about.st_mtim.tv_sec == self->modified.tv_sec &&
        about.st_mtim.tv_nsec == self->modified.tv_nsec)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_IO_ERROR, "the file changed since it was opened; open it again");
}

static int file_descriptor(const cogpu_io *io) {
    return file_of(io)->descriptor;
}

static const cogpu_io_kind file_kind = {.read = read_file_bytes,
                                        .check = check_file,
                                        .descriptor = file_descriptor,
                                        .close = close_file};

/* Without the device's number, which differs between machines that share a file system. */
static void write_version(const struct stat *about, struct file_source *self) {
    snprintf(self->version, sizeof self->version, "%llu %lld.%09ld %llu",
             (unsigned long long)about->st_size, (long long)about->st_mtim.tv_sec,
             about->st_mtim.tv_nsec, (unsigned long long)about->st_ino);
    self->io.version = self->version;
}

cogpu_status cogpu_io_open_file(const char *path, cogpu_io **io, cogpu_error *error) {
    struct stat about;
    /* O_NONBLOCK: a pipe without a writer would block for ever; regular files ignore it. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return cogpu_fail_errno(error, "cannot open the file", NULL);
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(descriptor);
        return cogpu_fail(error, COGPU_IO_ERROR, "cannot open the file: it is a folder or a pipe");
    }
    struct file_source *self = cogpu_allocate(sizeof *self);
    if (!self) {
        close(descriptor);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
    }
    *self = (struct file_source){.io = {.kind = &file_kind, .bytes = (uint64_t)about.st_size},
                                 .descriptor = descriptor,
                                 .modified = about.st_mtim};
    write_version(&about, self);
    return cogpu_io_open(&self->io, io, error);
}
