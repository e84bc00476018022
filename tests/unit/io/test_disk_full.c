/*
 * Files that find no room: more than the process may write (RLIMIT_FSIZE, ulimit -f), or than the
 * disk has. The writer says so, raises no signal, and leaves neither a file nor a part of one. Each
 * case runs in a child process, which has the limit and the default handler of SIGXFSZ.
 */
#define _GNU_SOURCE /* unshare */
#include "cogpu.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 1024 };

static uint8_t pixels[SIDE * SIDE];
static char folder[] = "/tmp/cogpu-test-XXXXXX", path[64];

static int files(void) {
    DIR *listing = opendir(folder);
    int count = -2; /* . and .. */
    while (listing && readdir(listing))
        count++;
    closedir(listing);
    return count;
}

/* In rows, so that level 0 of a COG goes by a temporary file too; or all at once. */
static cogpu_status write_file(const cogpu_profile *profile, uint32_t rows, cogpu_error *error) {
    cogpu_writer *writer = NULL;
    cogpu_status status = cogpu_writer_open(
        &(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, profile, &writer, error);
    for (uint32_t y = 0; status == COGPU_OK && y < SIDE; y += rows) {
        cogpu_raster part = {.struct_size = sizeof(cogpu_raster),
                             .data = pixels + (size_t)SIDE * y,
                             .type = COGPU_TYPE_U8,
                             .bands = 1,
                             .width = SIDE,
                             .height = rows};
        status = cogpu_writer_write_rows(writer, &part, NULL, error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, error);
    cogpu_writer_abort(writer);
    return status;
}

static const cogpu_profile profiles[] = {
    {.struct_size = sizeof(cogpu_profile),
     .width = SIDE,
     .height = SIDE,
     .bands = 1,
     .type = COGPU_TYPE_U8,
     .codec = "none"},
    {.struct_size = sizeof(cogpu_profile),
     .width = SIDE,
     .height = SIDE,
     .bands = 1,
     .type = COGPU_TYPE_U8,
     .codec = "none",
     .cog = 1,
     .block_width = 64,
     .block_height = 64},
};

/* Each way to write without enough space. Returns the exit status of the child. */
static int write_all(const char *said) {
    int wrong = 0;
    for (size_t i = 0; i < 2; i++)
        for (uint32_t rows = 64; rows <= SIDE; rows *= 16) {
            cogpu_error error;
            cogpu_status status = write_file(&profiles[i], rows, &error);
            bool is_right = status == COGPU_IO_ERROR && strstr(error.message, said) &&
                            strstr(error.message, path) && files() == 0;
            if (!is_right)
                printf("%zu, %u rows: %s, %d files: %s\n", i, rows, cogpu_status_name(status),
                       files(), error.message);
            wrong |= !is_right;
        }
    return wrong;
}

/* The exit status of a child, or -1 where a signal has ended it. */
static int run_child(int (*body)(uint64_t), uint64_t argument) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int result = body(argument);
        fflush(stdout);
        _exit(result);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int within_limit(uint64_t bytes) {
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    signal(SIGXFSZ, SIG_DFL);
    return setrlimit(RLIMIT_FSIZE, &limit) != 0 || write_all("ulimit -f");
}

/* From less than a header to a little less than the file; between them what only the last copy of
 * overviews or of level 0 passes. */
static void test_file_size_limit(void) {
    static const uint64_t limits[] = {0, 1, 100, 4096, 300000, SIDE * SIDE / 2, SIDE * SIDE};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        CHECK(run_child(within_limit, limits[i]) == 0);
}

/* A limit that is kept changes nothing, and neither does the handler of the signal. */
static int with_enough(uint64_t bytes) {
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    struct sigaction before, after;
    cogpu_error error;
    bool is_right = setrlimit(RLIMIT_FSIZE, &limit) == 0 && !sigaction(SIGXFSZ, NULL, &before) &&
                    write_file(&profiles[1], 64, &error) == COGPU_OK &&
                    !sigaction(SIGXFSZ, NULL, &after) && before.sa_handler == after.sa_handler;
    unlink(path);
    return !is_right;
}

static void test_limit_that_is_enough(void) {
    CHECK(run_child(with_enough, 2 * SIDE * SIDE) == 0);
}

enum { CANNOT_MOUNT = 77 };

static bool mount_small(uint64_t bytes) {
    char options[64];
    snprintf(options, sizeof options, "size=%llu,mode=777", (unsigned long long)bytes);
    return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

static int on_small_disk(uint64_t bytes) {
    return mount_small(bytes) ? write_all("No space left") : CANNOT_MOUNT;
}

static void test_full_disk(void) {
    static const uint64_t sizes[] = {4096, 400000, SIDE * SIDE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int status = run_child(on_small_disk, sizes[i]);
        if (status == CANNOT_MOUNT)
            printf("no small disk: tmpfs cannot be mounted here\n");
        CHECK(status == 0 || status == CANNOT_MOUNT);
    }
}

TESTS(disk_full) {
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 7 % 251);
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/new.tif", folder);
    RUN(test_file_size_limit);
    RUN(test_limit_that_is_enough);
    RUN(test_full_disk);
    rmdir(folder);
    return FINISH();
}
