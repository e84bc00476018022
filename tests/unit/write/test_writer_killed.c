/* A process that writes a COG is killed a hundred times, at random moments. The target is the old
 * file or a complete new one, and the next writer removes all part files. */
#include "cogpu.h"
#include "support/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 700, KILLS = 100 };

static char folder[] = "/tmp/cogpu-test-XXXXXX", path[64];
static uint16_t pixels[SIDE][SIDE];
static cogpu_error error;

/* All pixels of a file are its number and their position, so that a mixture of two files shows. */
static void fill(uint16_t number) {
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++)
            pixels[y][x] = (uint16_t)(number + 7 * x + 3 * y);
}

static cogpu_status write_file(void) {
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = path};
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = SIDE,
                             .height = SIDE,
                             .bands = 1,
                             .type = COGPU_TYPE_U16,
                             .cog = 1,
                             .codec = "none",
                             .block_width = 128,
                             .threads = 1};
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U16,
                           .bands = 1,
                           .width = SIDE,
                           .height = SIDE};
    return cogpu_write(&sink, &profile, &raster, NULL, NULL, &error);
}

static bool is_complete(void) {
    cogpu_file *file = NULL;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U16,
                           .bands = 1,
                           .width = SIDE,
                           .height = SIDE};
    cogpu_checked checked = COGPU_CHECKED_INIT;
    bool is_good = cogpu_open(path, NULL, &file, &error) == COGPU_OK &&
                   cogpu_read(file, NULL, &raster, NULL, &error) == COGPU_OK &&
                   cogpu_check(file, NULL, NULL, NULL, &checked, &error) == COGPU_OK &&
                   checked.verdict == COGPU_VERDICT_VALID; /* word-check: public field */
    cogpu_close(file);
    for (uint32_t y = 0; is_good && y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++)
            is_good &= (uint16_t)(pixels[y][x] - 7 * x - 3 * y) == pixels[0][0];
    return is_good;
}

static uint32_t files_in_folder(void) {
    DIR *listed = opendir(folder);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(listed));)
        count += entry->d_name[0] != '.';
    closedir(listed);
    return count;
}

static void killed_at_random(void) {
    struct timespec seed;
    clock_gettime(CLOCK_REALTIME, &seed);
    srand((unsigned)seed.tv_nsec);
    uint32_t left_behind = 0, news = 0;
    for (uint16_t i = 1; i <= KILLS; i++) {
        pid_t child = fork();
        if (child == 0) {
            fill((uint16_t)(1000 * (i % 60)));
            while (write_file() == COGPU_OK)
                ;
            _exit(1);
        }
        struct timespec wait = {.tv_nsec = rand() % 30 * 1000000L + rand() % 1000000};
        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
        CHECK(waitpid(child, NULL, 0) == child && is_complete());
        left_behind += files_in_folder() > 1;
        news += pixels[0][0] == 1000 * (i % 60);
    }
    CHECK(left_behind > 0 && news > 0); /* or else nothing was tried */
    fill(5);
    CHECK(write_file() == COGPU_OK && files_in_folder() == 1 && is_complete());
}

TESTS(writer_killed) {
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tif", folder);
    fill(1);
    CHECK(write_file() == COGPU_OK);
    RUN(killed_at_random);
    unlink(path);
    rmdir(folder);
    return FINISH();
}
