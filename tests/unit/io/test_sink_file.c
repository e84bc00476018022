/*
 * Files that are written (T148, T152): all bytes or none. System calls fail, are short, or end the
 * process, one after the other; a path has its old content or the new one then, and nothing else is
 * left beside it after the next run.
 */
#define _GNU_SOURCE
#include "unit/io/sink_test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---- */

static void test_a_new_file(void) {
    mode_t old = umask(027);
    struct stat about;
    cogpu_out *out = open_path(path);
    CHECK(entries(".cogpu-part") == 1 && entries("") == 1);
    CHECK(cogpu_out_write(out, 5, "world", 5, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "he", 2, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 99, "", 0, &sink_error) == COGPU_OK);
    CHECK(!cogpu_out_is_append_only(out));
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
    CHECK(holds(path, "he\0\0\0world", 10) && entries("") == 1);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0640);
    umask(old);
    empty_folder();
}

static void test_the_old_file_stays_until_commit(void) {
    struct stat about;
    put_file(path, "old");
    chmod(path, 0606);
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "brand new", 9, &sink_error) == COGPU_OK);
    CHECK(holds_text(path, "old"));
    cogpu_out_abort(out);
    CHECK(holds_text(path, "old") && entries("") == 1);
    out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "brand new", 9, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
    CHECK(holds_text(path, "brand new") && entries("") == 1);
    CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0606);
    cogpu_out_abort(NULL);
    empty_folder();
}

/* Sidecars are removed when their file is replaced, and not before. */
static void test_sidecars_of_the_old_file(void) {
    static const char *const beside[] = {"file.ovr", "file.aux.xml", "file.msk", "file.msk.ovr"};
    for (int kind = 0; kind < 4; kind++) {
        bool is_replaced = kind != 1, is_kept = kind == 2, is_aborted = kind == 3;
        for (int i = 0; i < 4; i++)
            put_file(in_folder(beside[i]), "old");
        put_file(in_folder("file.tfw"), "old");
        put_file(in_folder("other.ovr"), "old");
        if (is_replaced)
            put_file(in_folder("file"), "old");
        cogpu_sink sink = {
            .struct_size = sizeof(cogpu_sink), .path = in_folder("file"), .keep_sidecars = is_kept};
        cogpu_out *out = NULL;
        CHECK(cogpu_out_open(&sink, NULL, &out, &sink_error) == COGPU_OK);
        CHECK(cogpu_out_write(out, 0, "new", 3, &sink_error) == COGPU_OK);
        CHECK(entries("") == 7 + is_replaced);
        if (is_aborted)
            cogpu_out_abort(out);
        else
            CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
        CHECK(entries("") == (kind == 0 ? 3 : 7));
        CHECK(holds_text(in_folder("other.ovr"), "old") &&
              holds_text(in_folder("file.tfw"), "old"));
        empty_folder();
    }
}

static cogpu_status open_with_input(const char *input, bool keeps) {
    const char *inputs[] = {in_folder("absent"), input};
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink),
                       .path = in_folder("file"),
                       .keep_sidecars = keeps,
                       .inputs = inputs,
                       .input_count = 2};
    cogpu_out *out = NULL;
    cogpu_status status = cogpu_out_open(&sink, NULL, &out, &sink_error);
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
        CHECK(open_with_input(in_folder(beside[i]), false) == COGPU_INVALID_ARGUMENT);
        CHECK(error_says(beside[i]) && error_says("is an input"));
        CHECK(open_with_input(in_folder("symbolic"), false) == COGPU_INVALID_ARGUMENT);
        CHECK(open_with_input(in_folder("hard"), false) == COGPU_INVALID_ARGUMENT);
        CHECK(open_with_input(in_folder(beside[i]), true) == COGPU_OK);
        CHECK(open_with_input(in_folder("other"), false) == COGPU_OK);
        CHECK(open_with_input(in_folder("file"), false) == COGPU_OK);
        CHECK(rename(in_folder("symbolic"), in_folder("other.ovr")) == 0);
        CHECK(open_with_input(in_folder("other"), false) ==
              COGPU_INVALID_ARGUMENT); /* its overviews */
        remove(in_folder("other.ovr"));
        remove(in_folder("hard"));
    }
    remove(in_folder("file"));
    CHECK(open_with_input(in_folder("file.ovr"), false) == COGPU_OK); /* nothing is replaced */
    CHECK(entries("") == 5);
    empty_folder();
}

static void test_no_replace(void) {
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = path, .no_replace = 1};
    cogpu_out *out = NULL;
    put_file(path, "old");
    CHECK(cogpu_out_open(&sink, NULL, &out, &sink_error) == COGPU_IO_ERROR && error_says("exists"));
    remove(path);
    CHECK(cogpu_out_open(&sink, NULL, &out, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "new", 3, &sink_error) == COGPU_OK);
    put_file(path, "of another process");
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_IO_ERROR && error_says("exists"));
    CHECK(holds_text(path, "of another process") && entries("") == 1);
    remove(path);
    CHECK(cogpu_out_open(&sink, NULL, &out, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 0, "new", 3, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
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
        bool is_refused = chmod(path, 0444) == 0 && write_path(path) == COGPU_IO_ERROR &&
                          error_says("cannot replace") && entries("") == 1;
        _exit(is_kept && is_refused ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    chmod(folder, 0700);
    empty_folder();
}

static void test_an_empty_file(void) {
    CHECK(cogpu_out_commit(open_path(path), &sink_error) == COGPU_OK);
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
    CHECK(write_path(in_folder("loop")) == COGPU_IO_ERROR);
    CHECK(write_path(in_folder("to_folder")) == COGPU_IO_ERROR && error_says("folder"));
    CHECK(entries("") == 6);
    remove(in_folder("below/file"));
    remove(in_folder("below/new"));
    remove(in_folder("below/other"));
    empty_folder();
}

static void test_targets_that_are_no_files(void) {
    static char long_path[6000], long_name[300];
    int pipe_ends[2];
    struct stat about;
    memset(long_path, 'x', sizeof long_path - 1);
    CHECK(mkfifo(in_folder("pipe"), 0666) == 0);
    CHECK(write_path(folder) == COGPU_IO_ERROR && error_says("folder") && error_says(folder));
    CHECK(write_path(in_folder("pipe")) == COGPU_IO_ERROR && error_says("pipe"));
    /* Devices of our own: those of the system are not to be risked. */
    if (mknod(in_folder("device"), S_IFCHR | 0666, makedev(1, 3)) == 0) {
        CHECK(write_path(in_folder("device")) == COGPU_IO_ERROR && error_says("device"));
        CHECK(stat(in_folder("device"), &about) == 0 && S_ISCHR(about.st_mode));
        remove(in_folder("device"));
    }
    CHECK(pipe(pipe_ends) == 0);
    snprintf(long_name, sizeof long_name, "/proc/self/fd/%d", pipe_ends[1]);
    CHECK(write_path(long_name) == COGPU_IO_ERROR && error_says("pipe"));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    memset(long_name, 'x', 256);
    CHECK(write_path("") == COGPU_IO_ERROR);
    CHECK(write_path(in_folder("new/")) == COGPU_IO_ERROR);
    CHECK(write_path(in_folder("none/new")) == COGPU_NOT_FOUND && error_says("No such file"));
    CHECK(write_path(in_folder("pipe/new")) == COGPU_IO_ERROR && error_says("Not a directory"));
    CHECK(write_path(long_path) == COGPU_IO_ERROR && error_says("too long"));
    CHECK(write_path(in_folder(long_name)) == COGPU_IO_ERROR && error_says("too long"));
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
        bool refused =
            setuid(65534) == 0 && write_path(path) == COGPU_IO_ERROR && error_says("denied");
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
    CHECK(cogpu_out_write(out, 0, "here", 4, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
    CHECK(holds_text(in_folder("relative"), "here"));
    CHECK(chdir(home) == 0);
    free(home);
    empty_folder();
}

static void test_two_writers_of_a_path(void) {
    cogpu_out *one = open_path(path), *two = open_path(path);
    CHECK(entries(".cogpu-part") == 2);
    CHECK(cogpu_out_write(one, 0, "one", 3, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(two, 0, "two", 3, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_commit(two, &sink_error) == COGPU_OK && holds_text(path, "two"));
    CHECK(cogpu_out_commit(one, &sink_error) == COGPU_OK && holds_text(path, "one"));
    CHECK(entries("") == 1);
    empty_folder();
}

/* ---- what others have left ---- */

static void test_part_files_of_dead_processes(void) {
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
static void test_part_files_of_running_processes(void) {
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

/* A part file that is not locked yet looks like that of a dead process. */
static void test_part_files_that_another_writer_takes(void) {
    for (int way = REMOVES; way <= LOCKS; way++) {
        faults.thief = (enum thief)way;
        CHECK(write_path(path) == COGPU_OK);
        CHECK(faults.thief == NO_THIEF && faults.stolen > 0);
        CHECK(entries(".cogpu-part") == (way == LOCKS) && holds(path, content, ALL));
        close(faults.stolen);
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
        arm_call(call, FAILS, n, number);
        cogpu_status status = write_path(path);
        disarm_calls();
        if (!faults.fired) {
            CHECK(status == COGPU_OK && holds(path, content, ALL));
            break;
        }
        CHECK(status == COGPU_IO_ERROR && sink_error.status == COGPU_IO_ERROR);
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
    arm_call(FLUSH, FAILS, 1, EIO);
    CHECK(write_path(path) == COGPU_IO_ERROR && error_says("Input/output error"));
    CHECK(holds_text(path, "old") && entries("") == 1);
    arm_call(FLUSH, FAILS, 2, EIO);
    CHECK(write_path(path) == COGPU_IO_ERROR && error_says("is written"));
    CHECK(holds(path, content, ALL) && entries("") == 1);
    arm_call(FLUSH, FAILS, 2, EINVAL);
    CHECK(write_path(path) == COGPU_OK);
    disarm_calls();
    empty_folder();
}

/* Without a spill the one close that matters is the first. */
static void test_a_failing_close(void) {
    put_file(path, "old");
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, 0, "new", 3, &sink_error) == COGPU_OK);
    arm_call(CLOSE, FAILS, 1, EDQUOT);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_IO_ERROR && error_says("quota"));
    disarm_calls();
    CHECK(holds_text(path, "old") && entries("") == 1);
    empty_folder();
}

static void test_short_and_interrupted_calls(void) {
    static const enum call calls[] = {WRITE, KERNEL_COPY, READ};
    static const enum way ways[] = {IS_SHORT, IS_INTERRUPTED};
    for (int c = 0; c < 3; c++)
        for (int w = 0; w < 2; w++)
            for (long n = w ? 1 : 0; n < 8; n++) {
                arm_call(calls[c], ways[w], n, 0);
                CHECK(write_path(path) == COGPU_OK);
                disarm_calls();
                CHECK(holds(path, content, ALL) && entries("") == 1);
                empty_folder();
            }
    arm_call(WRITE, IS_ZERO, 2, 0);
    CHECK(write_path(path) == COGPU_IO_ERROR);
    disarm_calls();
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
        CHECK(status == COGPU_IO_ERROR && error_says("File too large"));
        CHECK(holds_text(path, "old") && entries("") == 1);
    }
    cogpu_out *out = open_path(path);
    CHECK(cogpu_out_write(out, INT64_MAX - 1, "ab", 2, &sink_error) == COGPU_IO_ERROR);
    CHECK(cogpu_out_write(out, UINT64_MAX, "ab", 2, &sink_error) == COGPU_IO_ERROR);
    CHECK(error_says("File too large"));
    cogpu_out_abort(out);
    empty_folder();
}

/* The folder is gone when the file shall get its name. */
static void test_a_folder_that_is_removed(void) {
    mkdir(in_folder("below"), 0777);
    cogpu_out *out = open_path(in_folder("below/file"));
    CHECK(cogpu_out_write(out, 0, "new", 3, &sink_error) == COGPU_OK);
    CHECK(rename(in_folder("below"), in_folder("moved")) == 0);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
    CHECK(holds_text(in_folder("moved/file"), "new"));
    remove(in_folder("moved/file"));
    out = open_path(in_folder("moved/file"));
    mkdir(in_folder("moved/file"), 0777);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_IO_ERROR && error_says("moved/file"));
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
                faults.has_no_nameless = way;
                arm_call(ANY_CALL, KILLS, n, 0);
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

TESTS(sink_file) {
    int before = open_files();
    if (!open_folder())
        return 1;
    RUN(test_a_new_file);
    RUN(test_the_old_file_stays_until_commit);
    RUN(test_sidecars_of_the_old_file);
    RUN(test_inputs_are_not_removed);
    RUN(test_no_replace);
    RUN(test_owner_of_the_old_file);
    RUN(test_an_empty_file);
    RUN(test_links);
    RUN(test_targets_that_are_no_files);
    RUN(test_a_file_that_is_protected);
    RUN(test_another_working_folder);
    RUN(test_two_writers_of_a_path);
    RUN(test_part_files_of_dead_processes);
    RUN(test_part_files_of_running_processes);
    RUN(test_part_files_that_another_writer_takes);
    RUN(test_failing_writes);
    RUN(test_failing_flushes);
    RUN(test_a_failing_close);
    RUN(test_short_and_interrupted_calls);
    RUN(test_a_limit_of_the_system);
    RUN(test_a_folder_that_is_removed);
    RUN(test_killed_at_every_call);
    RUN(test_killed_at_random_moments);
    CHECK(open_files() == before);
    test_failed += test_broken;
    close_folder();
    return FINISH();
}
