/* A file by path: pread, which threads may share. A file is not mapped: one that another process
 * cuts off while it is read would end this process by a signal. */
#include "io/io.h"
#include "io/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

cogpu_status cogpu_fail_errno(cogpu_error *error, const char *doing, const char *path) {
    char text[128];
    int number = errno;
    if (strerror_r(number, text, sizeof text) != 0)
        text[0] = '\0';
    cogpu_status status = number == ENOENT ? COGPU_ABSENT : COGPU_IO;
    if (number == EFBIG)
        snprintf(text, sizeof text,
                 "File too large: more than this process may write (ulimit -f), or than the file "
                 "system holds");
    char shown[160];
    return cogpu_fail(error, status, "%s: %s%s%s", doing, text, path ? ": " : "",
                      path ? cogpu_path_shown(path, shown, sizeof shown) : "");
}

static cogpu_status file_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                              cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    uint8_t *at = to;
    while (bytes > 0) {
        ssize_t got = pread(io->file, at, bytes, (off_t)offset);
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

static void file_close(cogpu_io *io) {
    close(io->file);
}

/* Of the open file: one that takes its name does not change what is read. */
static cogpu_status file_check(const cogpu_io *io, cogpu_error *error) {
    struct stat about;
    if (fstat(io->file, &about) != 0)
        return cogpu_fail_errno(error, "cannot read the file", NULL);
    if ((uint64_t)about.st_size == io->bytes && about.st_mtim.tv_sec == io->modified.tv_sec &&
        about.st_mtim.tv_nsec == io->modified.tv_nsec)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_IO, "the file changed since it was opened; open it again");
}

/* Without the device's number, which differs between machines that share a file system. */
static void write_state(const struct stat *about, cogpu_io *io) {
    snprintf(io->file_state, sizeof io->file_state, "%llu %lld.%09ld %llu",
             (unsigned long long)about->st_size, (long long)about->st_mtim.tv_sec,
             about->st_mtim.tv_nsec, (unsigned long long)about->st_ino);
    io->state = io->file_state;
}

cogpu_status cogpu_io_open_file(const char *path, cogpu_io **io, cogpu_error *error) {
    cogpu_io kind = {.read = file_read, .check = file_check, .close = file_close};
    /* O_NONBLOCK: a pipe without a writer would keep us waiting for ever; files do not mind. */
    kind.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (kind.file < 0)
        return cogpu_fail_errno(error, "cannot open the file", NULL);
    struct stat about;
    if (fstat(kind.file, &about) != 0 || !S_ISREG(about.st_mode)) {
        file_close(&kind);
        return cogpu_fail(error, COGPU_IO, "cannot open the file: it is a folder or a pipe");
    }
    kind.bytes = (uint64_t)about.st_size;
    kind.modified = about.st_mtim;
    TRY(cogpu_io_open(&kind, io, error));
    write_state(&about, *io);
    return COGPU_OK;
}

int cogpu_io_descriptor(const cogpu_io *io) {
    return io->read == file_read ? io->file : -1;
}
