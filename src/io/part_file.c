/* Part files: their names, locks that show whether a process still writes them, and complete
 * writes. See out.h. */
#include "io/out.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 16, ATTEMPTS_MAX = 100 };
static const char ending[] = ".cogpu-part";

/* Bytes of a file's name that its part files share: all but the end of a very long name. */
static int name_bytes(const char *name) {
    enum { NAME_BYTES_MAX = COGPU_NAME_BYTES - 1 - DIGITS - sizeof ending };
    size_t bytes = strlen(name);
    return bytes < NAME_BYTES_MAX ? (int)bytes : (int)NAME_BYTES_MAX;
}

static bool name_part(const char *name, char part[COGPU_NAME_BYTES]) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return false;
    snprintf(part, COGPU_NAME_BYTES, "%.*s.%0*llx%s", name_bytes(name), name, DIGITS,
             (unsigned long long)number, ending);
    return true;
}

/* Locks a part file that was just created. Another writer may have taken it for a stale one in
 * between: then it is locked, or unlinked. On a file system without locks no part file is removed.
 */
static bool lock_part(int file) {
    struct stat about;
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(file, &about) == 0 && about.st_nlink > 0;
}

bool cogpu_part_make(int folder, const char *name, mode_t mode, char part[COGPU_NAME_BYTES],
                     int *file) {
    for (int i = 0; i < ATTEMPTS_MAX && name_part(name, part); i++) {
        *file = openat(folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*file >= 0 && lock_part(*file))
            return true;
        if (*file < 0 && errno != EEXIST)
            break;
        if (*file >= 0)
            close(*file);
        *file = -1;
    }
    part[0] = '\0';
    return false;
}

static bool is_part_of(const char *entry, const char *name) {
    size_t bytes = (size_t)name_bytes(name);
    if (strlen(entry) != bytes + 1 + DIGITS + sizeof ending - 1 ||
        memcmp(entry, name, bytes) != 0 || entry[bytes] != '.')
        return false;
    const char *digits = entry + bytes + 1;
    for (int i = 0; i < DIGITS; i++)
        if (!isxdigit((unsigned char)digits[i]))
            return false;
    return strcmp(digits + DIGITS, ending) == 0;
}

static void remove_if_stale(int folder, const char *part) {
    struct stat about;
    int file = openat(folder, part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, part, 0);
    close(file);
}

void cogpu_parts_clear(int folder, const char *name) {
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));)
        if (is_part_of(entry->d_name, name))
            remove_if_stale(folder, entry->d_name);
    closedir(list);
}

bool cogpu_part_may_grow_to(uint64_t bytes) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

bool cogpu_part_write(int file, uint64_t offset, const void *from, size_t bytes) {
    const uint8_t *at = from;
    if (bytes > INT64_MAX || offset > INT64_MAX - bytes) {
        errno = EFBIG;
        return false;
    }
    if (!cogpu_part_may_grow_to(offset + bytes))
        return false;
    while (bytes > 0) {
        ssize_t put = pwrite(file, at, bytes, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = EIO;
        if (put <= 0)
            return false;
        at += put;
        offset += (uint64_t)put;
        bytes -= (size_t)put;
    }
    return true;
}
