/*
 * Where bytes go (T148, T152): all of them or none. System calls fail, are short, or end the
 * process, one after the other; a path has its old content or the new one then, and nothing else is
 * left beside it after the next run.
 */
#define _GNU_SOURCE
#include "io/sink.h"

#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a world that fails ---- */

/* The functions below take the place of the C library's, also for the library under test. */
enum call { NO_CALL, WRITE, FLUSH, CLOSE, RENAME, KERNEL_COPY, READ, OPEN, ANY_CALL };
enum way { FAILS, IS_SHORT, IS_INTERRUPTED, IS_ZERO, KILLS };

enum thief { NOBODY, REMOVES, LOCKS };

static struct {
    enum call call;
    enum way way;
    long failing, made; /* the failing one of those that are made; 0 = all */
    int number;         /* errno */
    bool fired;
    bool has_no_nameless; /* files can't be opened without a name */
    enum thief thief;     /* of the next file that is made */
    int stolen;           /* his descriptor */
} world;

static void arm(enum call call, enum way way, long failing, int number) {
    world.call = call;
    world.way = way;
    world.failing = failing;
    world.made = 0;
    world.number = number;
    world.fired = false;
}

static void disarm(void) {
    world.call = NO_CALL;
}

static bool strikes(enum call call) {
    if (world.call != call && world.call != ANY_CALL)
        return false;
    bool now = ++world.made == world.failing || world.failing == 0;
    world.fired |= now;
    return now;
}

/* What a call that is struck returns; the real result stands ready. */
static long struck(long result) {
    if (world.way == KILLS)
        kill(getpid(), SIGKILL);
    if (world.way == IS_ZERO)
        return 0;
    errno = world.way == IS_INTERRUPTED ? EINTR : world.number;
    return world.way == IS_SHORT ? result : -1;
}

static bool is_done_first(void) {
    return world.way == IS_SHORT || world.way == KILLS;
}

static size_t shortened(bool now, size_t bytes) {
    return now && world.way == IS_SHORT ? (bytes + 1) / 2 : bytes;
}

ssize_t world_pwrite(int file, const void *from, size_t bytes, off_t at) __asm__("pwrite64");
ssize_t world_pwrite(int file, const void *from, size_t bytes, off_t at) {
    bool now = strikes(WRITE);
    if (now && !is_done_first())
        return struck(0);
    long put = syscall(SYS_pwrite64, file, from, shortened(now, bytes), at);
    return now ? struck(put) : put;
}

ssize_t world_pread(int file, void *to, size_t bytes, off_t at) __asm__("pread64");
ssize_t world_pread(int file, void *to, size_t bytes, off_t at) {
    bool now = strikes(READ);
    if (now && !is_done_first())
        return struck(0);
    long got = syscall(SYS_pread64, file, to, shortened(now, bytes), at);
    return now ? struck(got) : got;
}

/* Nobody pulls the plug here, so nothing has to wait for the disk. */
int world_fsync(int file) __asm__("fsync");
int world_fsync(int file) {
    (void)file;
    return strikes(FLUSH) ? (int)struck(0) : 0;
}

/* A file is closed also where that fails. */
int world_close(int file) __asm__("close");
int world_close(int file) {
    bool now = strikes(CLOSE);
    int result = (int)syscall(SYS_close, file);
    return now ? (int)struck(result) : result;
}

int world_renameat(int from_folder, const char *from, int folder,
                   const char *to) __asm__("renameat");
int world_renameat(int from_folder, const char *from, int folder, const char *to) {
    bool now = strikes(RENAME);
    if (now && !is_done_first())
        return (int)struck(0);
    int result = (int)syscall(SYS_renameat2, from_folder, from, folder, to, 0);
    return now ? (int)struck(result) : result;
}

ssize_t world_copy(int from, off_t *at, int to, off_t *offset, size_t bytes,
                   unsigned flags) __asm__("copy_file_range");
ssize_t world_copy(int from, off_t *at, int to, off_t *offset, size_t bytes, unsigned flags) {
    bool now = strikes(KERNEL_COPY);
    if (now && !is_done_first())
        return struck(0);
    long put =
        syscall(SYS_copy_file_range, from, at, to, offset, shortened(now, bytes), (long)flags);
    return now ? struck(put) : put;
}

static void steal(int folder, const char *name) {
    world.stolen = (int)syscall(SYS_openat, folder, name, O_RDWR | O_CLOEXEC);
    CHECK(flock(world.stolen, LOCK_EX | LOCK_NB) == 0);
    if (world.thief == REMOVES)
        CHECK(unlinkat(folder, name, 0) == 0 && flock(world.stolen, LOCK_UN) == 0);
    world.thief = NOBODY;
}

/* Only files without a name fail to open. */
int world_openat(int folder, const char *name, int flags, ...) __asm__("openat64");
int world_openat(int folder, const char *name, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (world.has_no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    int file = (int)syscall(SYS_openat, folder, name, flags, mode);
    if (world.thief && flags & O_EXCL)
        steal(folder, name);
    return strikes(OPEN) ? (int)struck(file) : file;
}

/* ---- a folder to work in ---- */

static char folder[64], path[128];
static cogpu_error error;

static const char *in_folder(const char *name) {
    static char made[4][400];
    static int next;
    next = (next + 1) % 4;
    snprintf(made[next], sizeof made[next], "%s/%s", folder, name);
    return made[next];
}

/* Entries of the folder whose names contain the text. */
static int entries(const char *text) {
    int count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += entry->d_name[0] != '.' && strstr(entry->d_name, text);
    closedir(list);
    return count;
}

static void empty_folder(void) {
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            remove(in_folder(entry->d_name));
    closedir(list);
}

static void put_file(const char *name, const char *text) {
    FILE *file = fopen(name, "wb");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static bool holds(const char *name, const void *bytes, size_t count) {
    FILE *file = fopen(name, "rb");
    uint8_t *got = malloc(count + 1);
    bool same = file && fread(got, 1, count + 1, file) == count && memcmp(got, bytes, count) == 0;
    if (file)
        fclose(file);
    free(got);
    return same;
}

static bool holds_text(const char *name, const char *text) {
    return holds(name, text, strlen(text));
}

static int open_files(void) {
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list))
        count++;
    closedir(list);
    return count;
}

static bool error_says(const char *text) {
    return strstr(error.message, text) != NULL;
}

/* ---- a file as the writer makes it ---- */

enum { IN_MEMORY = 256 << 10 }; /* of a spill, at most */
enum { HEAD = 1000, PIECE = 300001, PIECES = 9, SPILLED = PIECE * PIECES, ALL = HEAD + SPILLED };

static uint8_t content[ALL];

static void fill_content(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < ALL; i++) {
        state = state * 1664525 + 1013904223;
        content[i] = (uint8_t)(state >> 24);
    }
}

static cogpu_status fill(cogpu_out *out, cogpu_spill *spill) {
    for (int i = 0; i < PIECES; i++) {
        uint64_t offset = 0;
        TRY(cogpu_spill_add(spill, content + HEAD + i * PIECE, PIECE, &offset, &error));
        CHECK(offset == (uint64_t)i * PIECE);
    }
    if (cogpu_out_is_append_only(out))
        TRY(cogpu_out_write(out, 0, content, HEAD, &error));
    TRY(cogpu_spill_copy(spill, 0, SPILLED - 10, out, HEAD, &error));
    TRY(cogpu_spill_copy(spill, SPILLED - 10, 10, out, ALL - 10, &error));
    return cogpu_out_is_append_only(out) ? COGPU_OK
                                         : cogpu_out_write(out, 0, content, HEAD, &error);
}

/* All of a sink's life: a spill, bytes in an order that is not that of the file, commit. */
static cogpu_status write_content(const cogpu_sink *sink) {
    cogpu_out *out = NULL;
    cogpu_spill *spill = NULL;
    cogpu_error_clear(&error);
    TRY(cogpu_out_open(sink, NULL, &out, &error));
    cogpu_status status = cogpu_spill_open(out, 0, &spill, &error);
    if (status == COGPU_OK)
        status = fill(out, spill);
    cogpu_spill_close(spill);
    if (status == COGPU_OK)
        return cogpu_out_commit(out, &error);
    cogpu_out_abort(out);
    return status;
}

static cogpu_status write_path(const char *to) {
    return write_content(&(cogpu_sink){.path = to});
}

static cogpu_out *open_path(const char *to) {
    cogpu_out *out = NULL;
    cogpu_error_clear(&error);
    CHECK(cogpu_out_open(&(cogpu_sink){.path = to}, NULL, &out, &error) == COGPU_OK);
    return out;
}

/* ---- files ---- */

static void test_a_new_file(void) {
    mode_t old = umask(027);
    struct stat about;
    cogpu_out *out = open_path(path);
    CHECK(entries(".cogpu-part") == 1 && entries("") == 1);
    CHECK(cogpu_out_write(out, 5, "world", 5, &error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "he", 2, &error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 99, "", 0, &error) == COGPU_OK);
    CHECK(!cogpu_out_is_append_only(out));
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(holds(path, "he\0\0\0world", 10) && entries("") == 1);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0640);
    umask(old);
    empty_folder();
}

static void test_the_old_file_stands_until_the_end(void) {
    struct stat about;
    put_file(path, "old");
    chmod(path, 0606);
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "brand new", 9, &error) == COGPU_OK);
    CHECK(holds_text(path, "old"));
    cogpu_out_abort(out);
    CHECK(holds_text(path, "old") && entries("") == 1);
    out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "brand new", 9, &error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(holds_text(path, "brand new") && entries("") == 1);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0606);
    cogpu_out_abort(NULL);
    empty_folder();
}

/* What stands beside a file goes with it, when that is replaced and not before. */
static void test_what_stands_beside_the_old_file(void) {
    static const char *const beside[] = {"file.ovr", "file.aux.xml", "file.msk", "file.msk.ovr"};
    for (int kind = 0; kind < 4; kind++) {
        bool is_replaced = kind != 1, is_kept = kind == 2, is_aborted = kind == 3;
        for (int i = 0; i < 4; i++)
            put_file(in_folder(beside[i]), "old");
        put_file(in_folder("file.tfw"), "old");
        put_file(in_folder("other.ovr"), "old");
        if (is_replaced)
            put_file(in_folder("file"), "old");
        cogpu_sink sink = {.path = in_folder("file"), .keep_sidecars = is_kept};
        cogpu_out *out = NULL;
        CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_OK);
        CHECK(cogpu_out_write(out, 0, "new", 3, &error) == COGPU_OK);
        CHECK(entries("") == 7 + is_replaced);
        if (is_aborted)
            cogpu_out_abort(out);
        else
            CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
        CHECK(entries("") == (kind == 0 ? 3 : 7));
        CHECK(holds_text(in_folder("other.ovr"), "old") &&
              holds_text(in_folder("file.tfw"), "old"));
        empty_folder();
    }
}

static cogpu_status open_with_input(const char *input, bool keeps) {
    const char *inputs[] = {in_folder("absent"), input};
    cogpu_sink sink = {
        .path = in_folder("file"), .keep_sidecars = keeps, .inputs = inputs, .input_count = 2};
    cogpu_out *out = NULL;
    cogpu_status status = cogpu_out_open(&sink, NULL, &out, &error);
    if (status == COGPU_OK)
        cogpu_out_abort(out);
    return status;
}

/* A sidecar of the old file that is read for the new one is not removed: the sink is refused. */
static void test_inputs_are_not_removed(void) {
    static const char *const beside[] = {"file.ovr", "file.aux.xml", "file.msk", "file.msk.ovr"};
    put_file(in_folder("file"), "old");
    put_file(in_folder("other"), "old");
    for (int i = 0; i < 4; i++) {
        put_file(in_folder(beside[i]), "old");
        CHECK(symlink(beside[i], in_folder("symbolic")) == 0);
        CHECK(link(in_folder(beside[i]), in_folder("hard")) == 0);
        CHECK(open_with_input(in_folder(beside[i]), false) == COGPU_ARGUMENT);
        CHECK(error_says(beside[i]) && error_says("is read"));
        CHECK(open_with_input(in_folder("symbolic"), false) == COGPU_ARGUMENT);
        CHECK(open_with_input(in_folder("hard"), false) == COGPU_ARGUMENT);
        CHECK(open_with_input(in_folder(beside[i]), true) == COGPU_OK);
        CHECK(open_with_input(in_folder("other"), false) == COGPU_OK);
        CHECK(open_with_input(in_folder("file"), false) == COGPU_OK);
        CHECK(rename(in_folder("symbolic"), in_folder("other.ovr")) == 0);
        CHECK(open_with_input(in_folder("other"), false) == COGPU_ARGUMENT); /* its overviews */
        remove(in_folder("other.ovr"));
        remove(in_folder("hard"));
    }
    remove(in_folder("file"));
    CHECK(open_with_input(in_folder("file.ovr"), false) == COGPU_OK); /* nothing is replaced */
    CHECK(entries("") == 5);
    empty_folder();
}

static void test_no_replace(void) {
    cogpu_sink sink = {.path = path, .no_replace = 1};
    cogpu_out *out = NULL;
    put_file(path, "old");
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_IO && error_says("exists"));
    remove(path);
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "new", 3, &error) == COGPU_OK);
    put_file(path, "of another process");
    CHECK(cogpu_out_commit(out, &error) == COGPU_IO && error_says("exists"));
    CHECK(holds_text(path, "of another process") && entries("") == 1);
    remove(path);
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "new", 3, &error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(holds_text(path, "new") && entries("") == 1);
    empty_folder();
}

/* What root may set, and what a user may not: then the group's permissions are those of all. */
static void test_owner_of_the_old_file(void) {
    enum { SOMEBODY = 4321 };
    struct stat about;
    if (geteuid() != 0)
        return;
    put_file(path, "old");
    CHECK(chown(path, SOMEBODY, SOMEBODY + 1) == 0 && chmod(path, 0664) == 0);
    CHECK(write_path(path) == COGPU_OK && stat(path, &about) == 0);
    CHECK(about.st_uid == SOMEBODY && about.st_gid == SOMEBODY + 1);
    CHECK((about.st_mode & 07777) == 0664);
    CHECK(chmod(path, 0672) == 0 && chmod(folder, 0777) == 0);
    pid_t child = fork();
    if (child == 0) {
        bool is_kept = setgid(99) == 0 && setuid(SOMEBODY) == 0 && write_path(path) == COGPU_OK &&
                       stat(path, &about) == 0 && about.st_gid == 99 &&
                       (about.st_mode & 07777) == 0622;
        bool is_refused = chmod(path, 0444) == 0 && write_path(path) == COGPU_IO &&
                          error_says("cannot replace") && entries("") == 1;
        _exit(is_kept && is_refused ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    chmod(folder, 0700);
    empty_folder();
}

static void test_an_empty_file(void) {
    CHECK(cogpu_out_commit(open_path(path), &error) == COGPU_OK);
    CHECK(holds_text(path, ""));
    empty_folder();
}

/* A link stays one; what it points to is replaced, or made. */
static void test_links(void) {
    struct stat about;
    mkdir(in_folder("below"), 0777);
    put_file(in_folder("below/file"), "old");
    CHECK(symlink("below/file", in_folder("to_file")) == 0);
    CHECK(symlink(in_folder("to_file"), in_folder("to_link")) == 0);
    CHECK(symlink("below/new", in_folder("to_none")) == 0);
    CHECK(symlink("loop", in_folder("loop")) == 0);
    CHECK(symlink("below", in_folder("to_folder")) == 0);
    CHECK(write_path(in_folder("to_link")) == COGPU_OK);
    CHECK(holds(in_folder("below/file"), content, ALL));
    CHECK(write_path(in_folder("to_none")) == COGPU_OK);
    CHECK(holds(in_folder("below/new"), content, ALL));
    CHECK(lstat(in_folder("to_link"), &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(lstat(in_folder("to_none"), &about) == 0 && S_ISLNK(about.st_mode));
    CHECK(write_path(in_folder("to_folder/other")) == COGPU_OK);
    CHECK(holds(in_folder("below/other"), content, ALL));
    CHECK(write_path(in_folder("loop")) == COGPU_IO);
    CHECK(write_path(in_folder("to_folder")) == COGPU_IO && error_says("folder"));
    CHECK(entries("") == 6);
    remove(in_folder("below/file"));
    remove(in_folder("below/new"));
    remove(in_folder("below/other"));
    empty_folder();
}

static void test_what_is_no_file(void) {
    static char long_path[6000], long_name[300];
    int pipe_ends[2];
    struct stat about;
    memset(long_path, 'x', sizeof long_path - 1);
    CHECK(mkfifo(in_folder("pipe"), 0666) == 0);
    CHECK(write_path(folder) == COGPU_IO && error_says("folder") && error_says(folder));
    CHECK(write_path(in_folder("pipe")) == COGPU_IO && error_says("pipe"));
    /* Devices of our own: those of the system are not to be risked. */
    if (mknod(in_folder("device"), S_IFCHR | 0666, makedev(1, 3)) == 0) {
        CHECK(write_path(in_folder("device")) == COGPU_IO && error_says("device"));
        CHECK(stat(in_folder("device"), &about) == 0 && S_ISCHR(about.st_mode));
        remove(in_folder("device"));
    }
    CHECK(pipe(pipe_ends) == 0);
    snprintf(long_name, sizeof long_name, "/proc/self/fd/%d", pipe_ends[1]);
    CHECK(write_path(long_name) == COGPU_IO && error_says("pipe"));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    memset(long_name, 'x', 256);
    CHECK(write_path("") == COGPU_IO);
    CHECK(write_path(in_folder("new/")) == COGPU_IO);
    CHECK(write_path(in_folder("none/new")) == COGPU_ABSENT && error_says("No such file"));
    CHECK(write_path(in_folder("pipe/new")) == COGPU_IO && error_says("Not a directory"));
    CHECK(write_path(long_path) == COGPU_IO && error_says("too long"));
    CHECK(write_path(in_folder(long_name)) == COGPU_IO && error_says("too long"));
    CHECK(entries("") == 1);
    empty_folder();
}

/* Somebody who may change folder and part but not the file; root may do anything. */
static void test_a_file_that_is_protected(void) {
    put_file(path, "old");
    chmod(path, 0444);
    chmod(folder, 0777);
    pid_t child = fork();
    if (child == 0) {
        bool refused = setuid(65534) == 0 && write_path(path) == COGPU_IO && error_says("denied");
        _exit(refused && entries("") == 1 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(holds_text(path, "old"));
    empty_folder();
}

static void test_another_working_folder(void) {
    char *home = getcwd(NULL, 0);
    CHECK(home && chdir(folder) == 0);
    cogpu_out *out = open_path("relative");
    CHECK(chdir("/") == 0);
    CHECK(cogpu_out_write(out, 0, "here", 4, &error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(holds_text(in_folder("relative"), "here"));
    CHECK(chdir(home) == 0);
    free(home);
    empty_folder();
}

static void test_two_writers_of_a_path(void) {
    cogpu_out *one = open_path(path), *two = open_path(path);
    CHECK(entries(".cogpu-part") == 2);
    CHECK(cogpu_out_write(one, 0, "one", 3, &error) == COGPU_OK);
    CHECK(cogpu_out_write(two, 0, "two", 3, &error) == COGPU_OK);
    CHECK(cogpu_out_commit(two, &error) == COGPU_OK && holds_text(path, "two"));
    CHECK(cogpu_out_commit(one, &error) == COGPU_OK && holds_text(path, "one"));
    CHECK(entries("") == 1);
    empty_folder();
}

/* ---- what others have left ---- */

static void test_parts_of_the_dead(void) {
    static const char *const dead[] = {"file.0123456789abcdef.cogpu-part",
                                       "file.ffffffffffffffff.cogpu-part"};
    static const char *const others[] = {
        "file.0123456789abcde.cogpu-part",   "file.0123456789abcdef0.cogpu-part",
        "file.0123456789abcdeg.cogpu-part",  "file.0123456789abcdef.cogpu-par",
        "file0123456789abcdef.cogpu-part",   "fil.0123456789abcdef.cogpu-part",
        "xfile.0123456789abcdef.cogpu-part", "file_0123456789abcdef.cogpu-part"};
    enum { OTHERS = sizeof others / sizeof *others };
    for (int i = 0; i < 2; i++)
        put_file(in_folder(dead[i]), "rest");
    for (int i = 0; i < OTHERS; i++)
        put_file(in_folder(others[i]), "rest");
    mkdir(in_folder("file.0000000000000000.cogpu-part"), 0777);
    CHECK(mkfifo(in_folder("file.0000000000000002.cogpu-part"), 0666) == 0);
    CHECK(symlink(others[0], in_folder("file.0000000000000001.cogpu-part")) == 0);
    cogpu_out *out = open_path(path);
    CHECK(access(in_folder(dead[0]), F_OK) != 0 && access(in_folder(dead[1]), F_OK) != 0);
    CHECK(entries("") == OTHERS + 4);
    cogpu_out_abort(out);
    CHECK(entries("") == OTHERS + 3);
    empty_folder();
}

/* A process that writes, until it is killed. */
static void test_parts_of_the_living(void) {
    int pipe_ends[2];
    char byte;
    CHECK(pipe(pipe_ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        cogpu_out *out = open_path(path);
        if (out && write(pipe_ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    CHECK(write_path(path) == COGPU_OK);
    CHECK(entries(".cogpu-part") == 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(entries(".cogpu-part") == 1);
    CHECK(write_path(path) == COGPU_OK);
    CHECK(entries("") == 1 && holds(path, content, ALL));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    empty_folder();
}

/* A part that another writer finds between its making and its lock looks like a dead one's. */
static void test_parts_taken_for_dead_ones(void) {
    for (int way = REMOVES; way <= LOCKS; way++) {
        world.thief = (enum thief)way;
        CHECK(write_path(path) == COGPU_OK);
        CHECK(world.thief == NOBODY && world.stolen > 0);
        CHECK(entries(".cogpu-part") == (way == LOCKS) && holds(path, content, ALL));
        close(world.stolen);
        CHECK(write_path(path) == COGPU_OK && entries("") == 1);
    }
    empty_folder();
}

/* ---- faults ---- */

/* The n-th call of a kind fails, for every n until all goes well. Returns how often one did. */
static int every_failure(enum call call, int number, const char *words) {
    int count = 0;
    for (long n = 1;; n++) {
        put_file(path, "old");
        arm(call, FAILS, n, number);
        cogpu_status status = write_path(path);
        disarm();
        if (!world.fired) {
            CHECK(status == COGPU_OK && holds(path, content, ALL));
            break;
        }
        CHECK(status == COGPU_IO && error.status == COGPU_IO);
        CHECK(error_says(words) && error_says(path));
        CHECK(holds_text(path, "old") && entries("") == 1);
        count++;
    }
    empty_folder();
    return count;
}

static void test_failing_writes(void) {
    CHECK(every_failure(WRITE, ENOSPC, "No space left on device") >= 4);
    CHECK(every_failure(WRITE, EIO, "Input/output error") >= 4);
    CHECK(every_failure(RENAME, EROFS, "Read-only file system") == 1);
}

/* After the rename there is no way back, but it is told. */
static void test_failing_flushes(void) {
    put_file(path, "old");
    arm(FLUSH, FAILS, 1, EIO);
    CHECK(write_path(path) == COGPU_IO && error_says("Input/output error"));
    CHECK(holds_text(path, "old") && entries("") == 1);
    arm(FLUSH, FAILS, 2, EIO);
    CHECK(write_path(path) == COGPU_IO && error_says("is written"));
    CHECK(holds(path, content, ALL) && entries("") == 1);
    arm(FLUSH, FAILS, 2, EINVAL);
    CHECK(write_path(path) == COGPU_OK);
    disarm();
    empty_folder();
}

/* Without a spill the one close that matters is the first. */
static void test_a_failing_close(void) {
    put_file(path, "old");
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "new", 3, &error) == COGPU_OK);
    arm(CLOSE, FAILS, 1, EDQUOT);
    CHECK(cogpu_out_commit(out, &error) == COGPU_IO && error_says("quota"));
    disarm();
    CHECK(holds_text(path, "old") && entries("") == 1);
    empty_folder();
}

static void test_short_and_interrupted_calls(void) {
    static const enum call calls[] = {WRITE, KERNEL_COPY, READ};
    static const enum way ways[] = {IS_SHORT, IS_INTERRUPTED};
    for (int c = 0; c < 3; c++)
        for (int w = 0; w < 2; w++)
            for (long n = w ? 1 : 0; n < 8; n++) {
                arm(calls[c], ways[w], n, 0);
                CHECK(write_path(path) == COGPU_OK);
                disarm();
                CHECK(holds(path, content, ALL) && entries("") == 1);
                empty_folder();
            }
    arm(WRITE, IS_ZERO, 2, 0);
    CHECK(write_path(path) == COGPU_IO);
    disarm();
    CHECK(entries("") == 0);
}

/* What the kernel would refuse with SIGXFSZ, which ends the process: writes ask first. */
static void test_a_limit_of_the_system(void) {
    struct rlimit old, less;
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0);
    put_file(path, "old");
    for (rlim_t bytes = 0; bytes < ALL; bytes += ALL / 7) {
        less = (struct rlimit){.rlim_cur = bytes, .rlim_max = old.rlim_max};
        CHECK(setrlimit(RLIMIT_FSIZE, &less) == 0);
        cogpu_status status = write_path(path);
        CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
        CHECK(status == COGPU_IO && error_says("File too large"));
        CHECK(holds_text(path, "old") && entries("") == 1);
    }
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, INT64_MAX - 1, "ab", 2, &error) == COGPU_IO);
    CHECK(cogpu_out_write(out, UINT64_MAX, "ab", 2, &error) == COGPU_IO);
    CHECK(error_says("File too large"));
    cogpu_out_abort(out);
    empty_folder();
}

/* The folder is gone when the file shall get its name. */
static void test_a_folder_that_goes(void) {
    mkdir(in_folder("below"), 0777);
    cogpu_out *out = open_path(in_folder("below/file"));
    CHECK(cogpu_out_write(out, 0, "new", 3, &error) == COGPU_OK);
    CHECK(rename(in_folder("below"), in_folder("moved")) == 0);
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(holds_text(in_folder("moved/file"), "new"));
    remove(in_folder("moved/file"));
    out = open_path(in_folder("moved/file"));
    mkdir(in_folder("moved/file"), 0777);
    CHECK(cogpu_out_commit(out, &error) == COGPU_IO && error_says("moved/file"));
    remove(in_folder("moved/file"));
    CHECK(remove(in_folder("moved")) == 0);
    empty_folder();
}

/* ---- a process that is killed ---- */

/* What a killed writer may leave: the old file or the new one; and nothing else after the next. */
static void check_after_a_kill(void) {
    CHECK(holds_text(path, "old") || holds(path, content, ALL));
    CHECK(entries("") <= 3);
    cogpu_out_abort(open_path(path));
    CHECK(entries("") == 1);
    CHECK(holds_text(path, "old") || holds(path, content, ALL));
}

static bool was_killed(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status);
}

/* After each system call that matters, with a spill that has no name and one that had. */
static void test_killed_at_every_call(void) {
    for (int way = 0; way < 2; way++) {
        long n = 1;
        for (bool killed = true; killed; n++) {
            put_file(path, "old");
            pid_t child = fork();
            if (child == 0) {
                world.has_no_nameless = way;
                arm(ANY_CALL, KILLS, n, 0);
                _exit(write_path(path) == COGPU_OK ? 0 : 1);
            }
            killed = was_killed(child);
            CHECK(killed || holds(path, content, ALL));
            check_after_a_kill();
        }
        CHECK(n > 15);
    }
    empty_folder();
}

static void test_killed_at_random_moments(void) {
    srand(1);
    put_file(path, "old");
    for (int i = 0; i < 20; i++) {
        struct timespec moment = {.tv_nsec = rand() % 6000000};
        pid_t child = fork();
        if (child == 0)
            for (;;)
                if (write_path(path) != COGPU_OK)
                    _exit(1);
        nanosleep(&moment, NULL);
        kill(child, SIGKILL);
        CHECK(was_killed(child));
        check_after_a_kill();
    }
    empty_folder();
}

/* ---- memory ---- */

static void test_memory(void) {
    cogpu_memory memory = {0};
    CHECK(write_content(&(cogpu_sink){.memory = &memory}) == COGPU_OK);
    CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
    cogpu_memory_release(&memory);
    CHECK(!memory.data && memory.bytes == 0);
    cogpu_memory_release(&memory);
    cogpu_memory_release(NULL);
}

/* What lies between is zero, also where the memory grew and where it did not. */
static void test_holes_in_memory(void) {
    enum { SIZE = 400000 };
    static uint8_t expected[SIZE];
    cogpu_memory memory = {0};
    cogpu_out *out = NULL;
    size_t end = 0;
    srand(2);
    memset(expected, 0, sizeof expected);
    CHECK(cogpu_out_open(&(cogpu_sink){.memory = &memory}, NULL, &out, &error) == COGPU_OK);
    for (int i = 0; i < 300; i++) {
        size_t bytes = (size_t)rand() % 500, at = (size_t)rand() % (size_t)(i * 1300 + 1);
        memcpy(expected + at, content + i, bytes);
        CHECK(cogpu_out_write(out, at, content + i, bytes, &error) == COGPU_OK);
        if (bytes && at + bytes > end)
            end = at + bytes;
    }
    CHECK(!memory.data && cogpu_out_commit(out, &error) == COGPU_OK);
    CHECK(memory.bytes == end && memcmp(memory.data, expected, end) == 0);
    cogpu_memory_release(&memory);
}

static void test_memory_that_is_not_there(void) {
    static const uint64_t offsets[] = {UINT64_MAX, UINT64_MAX - 1, INT64_MAX, INT64_MAX - 1,
                                       (uint64_t)1 << 62};
    char untouched = 0;
    cogpu_memory memory = {.data = &untouched, .bytes = 7};
    for (int i = 0; i < 5; i++) {
        cogpu_out *out = NULL;
        CHECK(cogpu_out_open(&(cogpu_sink){.memory = &memory}, NULL, &out, &error) == COGPU_OK);
        CHECK(cogpu_out_write(out, 0, "abc", 3, &error) == COGPU_OK);
        CHECK(cogpu_out_write(out, offsets[i], "abc", 3, &error) == COGPU_MEMORY);
        cogpu_out_abort(out);
    }
    CHECK(memory.data == &untouched && memory.bytes == 7);
}

/* What was expected needs no growth, so nothing moves; more than that has to, and what there cannot
 * be is as if it was not expected. */
static void test_memory_that_is_expected(void) {
    static const uint64_t most[] = {ALL, ALL / 2, 0, (uint64_t)1 << 62, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        cogpu_memory memory = {0};
        cogpu_out *out = NULL;
        uint8_t *first = NULL, *room = NULL;
        CHECK(cogpu_out_open(&(cogpu_sink){.memory = &memory}, NULL, &out, &error) == COGPU_OK);
        cogpu_out_expect(out, most[i]);
        CHECK(cogpu_out_room(out, 0, 1, &first, &error) == COGPU_OK);
        for (size_t at = 0; at < ALL; at += HEAD) {
            size_t bytes = ALL - at < HEAD ? ALL - at : HEAD;
            CHECK(cogpu_out_room(out, at, bytes, &room, &error) == COGPU_OK);
            CHECK(most[i] != ALL || room == first + at);
            memcpy(room, content + at, bytes);
        }
        CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
        CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
        cogpu_memory_release(&memory);
    }
}

/* ---- a user's functions ---- */

static struct {
    uint8_t bytes[ALL];
    size_t largest;
    int writes, failing, commits, aborts;
    cogpu_status commit_status;
} user;

static cogpu_status user_write(void *state, uint64_t offset, const void *from, size_t bytes) {
    CHECK(state == &user && bytes > 0 && offset + bytes <= ALL);
    memcpy(user.bytes + offset, from, bytes);
    user.largest = bytes > user.largest ? bytes : user.largest;
    return ++user.writes == user.failing ? COGPU_DEVICE : COGPU_OK;
}

static cogpu_status user_commit(void *state) {
    CHECK(state == &user);
    user.commits++;
    return user.commit_status;
}

static void user_abort(void *state) {
    CHECK(state == &user);
    user.aborts++;
}

static cogpu_sink user_sink(bool append_only) {
    memset(&user, 0, sizeof user);
    return (cogpu_sink){.user = &user,
                        .write = user_write,
                        .commit = user_commit,
                        .abort = user_abort,
                        .append_only = append_only};
}

static void test_functions(void) {
    for (int append_only = 0; append_only < 2; append_only++) {
        cogpu_sink sink = user_sink(append_only);
        CHECK(write_content(&sink) == COGPU_OK && memcmp(user.bytes, content, ALL) == 0);
        CHECK(user.commits == 1 && user.aborts == 0);
        CHECK(user.largest == IN_MEMORY);
        sink.commit = NULL;
        CHECK(write_content(&sink) == COGPU_OK && user.commits == 1);
    }
}

static void test_functions_that_fail(void) {
    for (int n = 1; n < 5; n++) {
        cogpu_sink sink = user_sink(false);
        user.failing = n;
        CHECK(write_content(&sink) == COGPU_DEVICE && error_says("write function"));
        CHECK(user.writes == n && user.commits == 0 && user.aborts == 1);
        user.writes = 0;
        sink.abort = NULL;
        CHECK(write_content(&sink) == COGPU_DEVICE && user.aborts == 1);
    }
    cogpu_sink sink = user_sink(false);
    user.commit_status = COGPU_ABSENT;
    CHECK(write_content(&sink) == COGPU_ABSENT && error_says("commit function"));
    CHECK(user.commits == 1 && user.aborts == 0);
}

static void test_append_only(void) {
    cogpu_sink sink = user_sink(true);
    cogpu_out *out = NULL;
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_OK && cogpu_out_is_append_only(out));
    CHECK(cogpu_out_write(out, 1, "a", 1, &error) == COGPU_ARGUMENT);
    CHECK(cogpu_out_write(out, 0, "abc", 3, &error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 2, "c", 1, &error) == COGPU_ARGUMENT && error_says("append-only"));
    CHECK(cogpu_out_write(out, 4, "c", 1, &error) == COGPU_ARGUMENT);
    CHECK(cogpu_out_write(out, 3, "d", 1, &error) == COGPU_OK);
    CHECK(user.writes == 2);
    cogpu_out_abort(out);
    CHECK(user.aborts == 1);
}

static void test_sinks_that_are_none_or_two(void) {
    cogpu_memory memory = {0};
    cogpu_sink user_and = user_sink(false), none = {0}, half = {.commit = user_commit};
    cogpu_sink both = {.path = path, .memory = &memory};
    cogpu_out *out = NULL;
    CHECK(cogpu_out_open(&none, NULL, &out, &error) == COGPU_ARGUMENT);
    CHECK(cogpu_out_open(&half, NULL, &out, &error) == COGPU_ARGUMENT);
    CHECK(cogpu_out_open(&both, NULL, &out, &error) == COGPU_ARGUMENT);
    user_and.path = path;
    CHECK(cogpu_out_open(&user_and, NULL, &out, &error) == COGPU_ARGUMENT);
    user_and.path = NULL;
    user_and.memory = &memory;
    CHECK(cogpu_out_open(&user_and, NULL, &out, &error) == COGPU_ARGUMENT);
    CHECK(entries("") == 0 && user.aborts == 0 && !out);
}

/* ---- spills ---- */

/* Pieces of all sizes, copied in another order than they came, in the midst of others coming. */
static void spill_pieces(const cogpu_sink *sink, size_t bytes) {
    cogpu_out *out = NULL;
    cogpu_spill *spill = NULL;
    uint64_t offset;
    size_t half = bytes / 2;
    CHECK(cogpu_out_open(sink, NULL, &out, &error) == COGPU_OK);
    CHECK(cogpu_spill_open(out, 0, &spill, &error) == COGPU_OK);
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = at % 7 ? at % 5003 : at % 1300000;
        piece = piece > bytes - at ? bytes - at : piece + (piece == 0);
        CHECK(cogpu_spill_add(spill, content + at, piece, &offset, &error) == COGPU_OK);
        CHECK(offset == at);
        if (at < half && at + piece >= half)
            CHECK(cogpu_spill_copy(spill, 1, half - 1, out, 1, &error) == COGPU_OK);
    }
    CHECK(cogpu_spill_copy(spill, half, bytes - half, out, half, &error) == COGPU_OK);
    CHECK(cogpu_spill_copy(spill, 0, 1, out, 0, &error) == COGPU_OK);
    CHECK(cogpu_spill_copy(spill, bytes, 0, out, 0, &error) == COGPU_OK);
    CHECK(cogpu_spill_add(spill, NULL, 0, &offset, &error) == COGPU_OK && offset == bytes);
    CHECK(!sink->path || entries(".cogpu-part") == 1);
    cogpu_spill_close(spill);
    CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
}

static void test_spills_to_every_sink(void) {
    static const size_t sizes[] = {2, 1000, IN_MEMORY - 1, IN_MEMORY, IN_MEMORY + 1, ALL};
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < 6; i++) {
            cogpu_memory memory = {0};
            cogpu_sink sink = user_sink(false);
            arm(way & 1 ? KERNEL_COPY : NO_CALL, FAILS, 0, EXDEV);
            world.has_no_nameless = way & 2;
            spill_pieces(&(cogpu_sink){.path = path}, sizes[i]);
            spill_pieces(&(cogpu_sink){.memory = &memory}, sizes[i]);
            spill_pieces(&sink, sizes[i]);
            disarm();
            world.has_no_nameless = false;
            CHECK(holds(path, content, sizes[i]) && entries("") == 1);
            CHECK(memory.bytes == sizes[i] && memcmp(memory.data, content, sizes[i]) == 0);
            CHECK(memcmp(user.bytes, content, sizes[i]) == 0 && user.largest <= IN_MEMORY);
            cogpu_memory_release(&memory);
        }
    empty_folder();
}

/* What is held comes to no file; more than that does, and a spill that has bytes stays as it is. */
static void test_held_spills(void) {
    static const uint64_t held[] = {ALL, ALL + 9, ALL / 2, 3, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        cogpu_memory memory = {0};
        cogpu_out *out = NULL;
        cogpu_spill *spill = NULL;
        uint64_t offset;
        CHECK(cogpu_out_open(&(cogpu_sink){.memory = &memory}, NULL, &out, &error) == COGPU_OK);
        CHECK(cogpu_spill_open(out, 0, &spill, &error) == COGPU_OK);
        cogpu_spill_hold(spill, held[i]);
        for (size_t at = 0; at < ALL; at += ALL / 5)
            CHECK(cogpu_spill_add(spill, content + at, ALL - at < ALL / 5 ? ALL - at : ALL / 5,
                                  &offset, &error) == COGPU_OK);
        CHECK((cogpu_spill_memory(spill) != NULL) == (i < 2));
        cogpu_spill_hold(spill, 2 * ALL);
        CHECK(cogpu_spill_copy(spill, 0, ALL, out, 0, &error) == COGPU_OK);
        cogpu_spill_close(spill);
        CHECK(cogpu_out_commit(out, &error) == COGPU_OK);
        CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
        cogpu_memory_release(&memory);
    }
}

/* A small spill needs no file, and one without a path is in TMPDIR. */
static void test_where_spills_are(void) {
    cogpu_memory memory = {0};
    setenv("TMPDIR", in_folder("none"), 1);
    spill_pieces(&(cogpu_sink){.memory = &memory}, IN_MEMORY);
    cogpu_memory_release(&memory);
    CHECK(write_content(&(cogpu_sink){.memory = &memory}) == COGPU_ABSENT && error_says("none"));
    CHECK(!memory.data);
    CHECK(write_path(path) == COGPU_OK);
    unsetenv("TMPDIR");
    CHECK(write_content(&(cogpu_sink){.memory = &memory}) == COGPU_OK);
    cogpu_memory_release(&memory);
    empty_folder();
}

static void test_spills_that_fail(void) {
    cogpu_memory memory = {0};
    for (long n = 1;; n++) {
        arm(WRITE, FAILS, n, ENOSPC);
        cogpu_status status = write_content(&(cogpu_sink){.memory = &memory});
        if (!world.fired)
            break;
        CHECK(status == COGPU_IO && error_says("No space left") && error_says("/tmp"));
        CHECK(!memory.data && n < 10);
    }
    cogpu_memory_release(&memory);
    arm(READ, FAILS, 2, EIO);
    CHECK(write_content(&(cogpu_sink){.memory = &memory}) == COGPU_IO && error_says("read"));
    arm(READ, IS_ZERO, 1, 0);
    CHECK(write_content(&(cogpu_sink){.memory = &memory}) == COGPU_IO && error_says("read"));
    disarm();
    cogpu_spill_close(NULL);
}

int main(void) {
    const char *place = "/tmp/cogpu-sink-XXXXXX";
    unsetenv("TMPDIR");
    memcpy(folder, place, strlen(place) + 1);
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    fill_content();
    int before = open_files();
    RUN(test_a_new_file);
    RUN(test_the_old_file_stands_until_the_end);
    RUN(test_what_stands_beside_the_old_file);
    RUN(test_inputs_are_not_removed);
    RUN(test_no_replace);
    RUN(test_owner_of_the_old_file);
    RUN(test_an_empty_file);
    RUN(test_links);
    RUN(test_what_is_no_file);
    RUN(test_a_file_that_is_protected);
    RUN(test_another_working_folder);
    RUN(test_two_writers_of_a_path);
    RUN(test_parts_of_the_dead);
    RUN(test_parts_of_the_living);
    RUN(test_parts_taken_for_dead_ones);
    RUN(test_failing_writes);
    RUN(test_failing_flushes);
    RUN(test_a_failing_close);
    RUN(test_short_and_interrupted_calls);
    RUN(test_a_limit_of_the_system);
    RUN(test_a_folder_that_goes);
    RUN(test_killed_at_every_call);
    RUN(test_killed_at_random_moments);
    RUN(test_memory);
    RUN(test_holes_in_memory);
    RUN(test_memory_that_is_not_there);
    RUN(test_memory_that_is_expected);
    RUN(test_functions);
    RUN(test_functions_that_fail);
    RUN(test_append_only);
    RUN(test_sinks_that_are_none_or_two);
    RUN(test_spills_to_every_sink);
    RUN(test_held_spills);
    RUN(test_where_spills_are);
    RUN(test_spills_that_fail);
    CHECK(open_files() == before);
    test_failed += test_broken;
    CHECK(rmdir(folder) == 0);
    return FINISH();
}
