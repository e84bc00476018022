/*
 * A file that stands where another one is to be written, in a folder of its own: for tests that see
 * whether it stays. One file of a program includes this.
 */
#ifndef COGPU_TESTS_OLD_FILE_H
#define COGPU_TESTS_OLD_FILE_H

#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "cogpu_faults_XXXXXX", path[64];
static const char old[] = "the file before";

static inline void make_folder(void) {
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tif", folder);
}

static inline void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

static inline void put_old_file(void) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(old, 1, sizeof old, file) == sizeof old && fclose(file) == 0);
}

/* Without memory, which may be out. */
static inline bool path_has(const void *bytes, size_t count) {
    FILE *file = fopen(path, "rb");
    uint8_t piece[4096];
    bool same = file != NULL;
    size_t at = 0, got = 0;
    for (; same && (got = fread(piece, 1, sizeof piece, file)) > 0; at += got)
        same = got <= count - at && !memcmp(piece, (const uint8_t *)bytes + at, got);
    if (file)
        fclose(file);
    return same && at == count;
}

static inline uint32_t files_in_folder(void) {
    DIR *listed = opendir(folder);
    uint32_t count = 0;
    for (struct dirent *entry; listed && (entry = readdir(listed));)
        count += entry->d_name[0] != '.';
    closedir(listed);
    return count;
}

#endif
