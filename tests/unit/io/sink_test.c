#define _GNU_SOURCE
#include "unit/io/sink_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

call_faults faults;

void arm_call(enum call call, enum way way, long failing, int number) {
    faults.call = call;
    faults.way = way;
    faults.failing = failing;
    faults.made = 0;
    faults.number = number;
    faults.fired = false;
}

void disarm_calls(void) {
    faults.call = NO_CALL;
}

static bool strikes(enum call call) {
    if (faults.call != call && faults.call != ANY_CALL)
        return false;
    bool now = ++faults.made == faults.failing || faults.failing == 0;
    faults.fired |= now;
    return now;
}

/* What a call that is struck returns; the real result stands ready. */
static long struck(long result) {
    if (faults.way == KILLS)
        kill(getpid(), SIGKILL);
    if (faults.way == IS_ZERO)
        return 0;
    errno = faults.way == IS_INTERRUPTED ? EINTR : faults.number;
    return faults.way == IS_SHORT ? result : -1;
}

static bool is_done_first(void) {
    return faults.way == IS_SHORT || faults.way == KILLS;
}

static size_t shortened(bool now, size_t bytes) {
    return now && faults.way == IS_SHORT ? (bytes + 1) / 2 : bytes;
}

ssize_t failing_pwrite(int file, const void *from, size_t bytes, off_t at) __asm__("pwrite64");
ssize_t failing_pwrite(int file, const void *from, size_t bytes, off_t at) {
    bool now = strikes(WRITE);
    if (now && !is_done_first())
        return struck(0);
    long put = syscall(SYS_pwrite64, file, from, shortened(now, bytes), at);
    return now ? struck(put) : put;
}

ssize_t failing_pread(int file, void *to, size_t bytes, off_t at) __asm__("pread64");
ssize_t failing_pread(int file, void *to, size_t bytes, off_t at) {
    bool now = strikes(READ);
    if (now && !is_done_first())
        return struck(0);
    long got = syscall(SYS_pread64, file, to, shortened(now, bytes), at);
    return now ? struck(got) : got;
}

/* No power fails here, so nothing has to wait for the disk. */
int failing_fsync(int file) __asm__("fsync");
int failing_fsync(int file) {
    (void)file;
    return strikes(FLUSH) ? (int)struck(0) : 0;
}

/* A file is closed also where that fails. */
int failing_close(int file) __asm__("close");
int failing_close(int file) {
    bool now = strikes(CLOSE);
    int result = (int)syscall(SYS_close, file);
    return now ? (int)struck(result) : result;
}

int failing_renameat(int from_folder, const char *from, int directory,
                     const char *to) __asm__("renameat");
int failing_renameat(int from_folder, const char *from, int directory, const char *to) {
    bool now = strikes(RENAME);
    if (now && !is_done_first())
        return (int)struck(0);
    int result = (int)syscall(SYS_renameat2, from_folder, from, directory, to, 0);
    return now ? (int)struck(result) : result;
}

ssize_t failing_copy(int from, off_t *at, int to, off_t *offset, size_t bytes,
                     unsigned flags) __asm__("copy_file_range");
ssize_t failing_copy(int from, off_t *at, int to, off_t *offset, size_t bytes, unsigned flags) {
    bool now = strikes(KERNEL_COPY);
    if (now && !is_done_first())
        return struck(0);
    long put =
        syscall(SYS_copy_file_range, from, at, to, offset, shortened(now, bytes), (long)flags);
    return now ? struck(put) : put;
}

static void steal(int directory, const char *name) {
    faults.stolen = (int)syscall(SYS_openat, directory, name, O_RDWR | O_CLOEXEC);
    CHECK(flock(faults.stolen, LOCK_EX | LOCK_NB) == 0);
    if (faults.thief == REMOVES)
        CHECK(unlinkat(directory, name, 0) == 0 && flock(faults.stolen, LOCK_UN) == 0);
    faults.thief = NO_THIEF;
}

/* Only files without a name fail to open. */
int failing_openat(int directory, const char *name, int flags, ...) __asm__("openat64");
int failing_openat(int directory, const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (faults.has_no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int file = (int)syscall(SYS_openat, directory, name, flags, mode);
    if (faults.thief && flags & O_EXCL)
        steal(directory, name);
    return strikes(OPEN) ? (int)struck(file) : file;
}

/* ---- a folder to work in ---- */

char folder[64];

char path[128];

cogpu_error sink_error;

const char *in_folder(const char *name) {
    static char made[4][400];
    static int next;
    next = (next + 1) % 4;
    snprintf(made[next], sizeof made[next], "%s/%s", folder, name);
    return made[next];
}

int entries(const char *text) {
    int count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, text);
    closedir(list);
    return count;
}

void empty_folder(void) {
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            remove(in_folder(entry->d_name));
    closedir(list);
}

void put_file(const char *name, const char *text) {
    FILE *file = fopen(name, "wb");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

bool holds(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(name, "rb");
    uint8_t *got = malloc(count + 1);
    bool same = file && fread(got, 1, count + 1, file) == count && memcmp(got, bytes, count) == 0;
    if (file)
        fclose(file);
    free(got);
    return same;
}

bool holds_text(const char *name, const char *text) {
    return holds(name, text, strlen(text));
}

int open_files(void) {
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list))
        count++;
    closedir(list);
    return count;
}

bool error_says(const char *text) {
    return strstr(sink_error.message, text) != NULL;
}

uint8_t content[ALL];

static void fill_sink_content(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < ALL; i++) {
        state = state * 1664525 + 1013904223;
        content[i] = (uint8_t)(state >> 24);
    }
}

cogpu_status fill(cogpu_out *out, cogpu_spill *spill) {
    for (int i = 0; i < PIECES; i++) {
        uint64_t offset = 0;
        TRY(cogpu_spill_add(spill, content + HEAD + i * PIECE, PIECE, &offset, &sink_error));
        CHECK(offset == (uint64_t)i * PIECE);
    }
    if (cogpu_out_is_append_only(out))
        TRY(cogpu_out_write(out, 0, content, HEAD, &sink_error));
    TRY(cogpu_spill_copy(spill, 0, SPILLED - 10, out, HEAD, &sink_error));
    TRY(cogpu_spill_copy(spill, SPILLED - 10, 10, out, ALL - 10, &sink_error));
    return cogpu_out_is_append_only(out) ? COGPU_OK
                                         : cogpu_out_write(out, 0, content, HEAD, &sink_error);
}

cogpu_status write_content(const cogpu_sink *sink) {
    cogpu_out *out = NULL;
    cogpu_spill *spill = NULL;
    cogpu_error_clear(&sink_error);
    TRY(cogpu_out_open(sink, NULL, &out, &sink_error));
    cogpu_status status = cogpu_spill_open(out, 0, &spill, &sink_error);
    if (status == COGPU_OK)
        status = fill(out, spill);
    cogpu_spill_close(spill);
    if (status == COGPU_OK)
        return cogpu_out_commit(out, &sink_error);
    cogpu_out_abort(out);
    return status;
}

cogpu_status write_path(const char *to) {
    return write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = to});
}

cogpu_out *open_path(const char *to) {
    cogpu_out *out = NULL;
    cogpu_error_clear(&sink_error);
    CHECK(cogpu_out_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = to}, NULL, &out,
                         &sink_error) == COGPU_OK);
    return out;
}

bool open_folder(void) {
    unsetenv("TMPDIR");
    strcpy(folder, "/tmp/cogpu-sink-XXXXXX");
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/file", folder);
    fill_sink_content();
    return true;
}

void close_folder(void) {
    CHECK(rmdir(folder) == 0);
}

/* ---- a sink by functions of the caller ---- */

struct user_calls user_calls;

static cogpu_status user_write(void *state, uint64_t offset, const void *from, size_t bytes) {
    CHECK(state == &user_calls && bytes > 0 && offset + bytes <= ALL);
    memcpy(user_calls.bytes + offset, from, bytes);
    user_calls.largest = bytes > user_calls.largest ? bytes : user_calls.largest;
    return ++user_calls.writes == user_calls.failing ? COGPU_DEVICE_ERROR : COGPU_OK;
}

static cogpu_status user_commit(void *state) {
    CHECK(state == &user_calls);
    user_calls.commits++;
    return user_calls.commit_status;
}

static void user_abort(void *state) {
    CHECK(state == &user_calls);
    user_calls.aborts++;
}

cogpu_sink user_sink(bool append_only) {
    memset(&user_calls, 0, sizeof user_calls);
    return (cogpu_sink){.struct_size = sizeof(cogpu_sink),
                        .user = &user_calls,
                        .write = user_write,
                        .commit = user_commit,
                        .abort = user_abort,
                        .append_only = append_only};
}
