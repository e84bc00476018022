#include "faults/old_file.h"

#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

static char folder[32];
char path[64];
const char old[OLD_FILE_BYTES] = "the file before";

void make_folder(void) {
    strcpy(folder, "cogpu_faults_XXXXXX");
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tif", folder);
}

void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

void put_old_file(void) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(old, 1, sizeof old, file) == sizeof old && fclose(file) == 0);
}

bool path_has(const void *bytes, size_t count) {
    FILE *file = fopen(path, "rb");
    uint8_t part[4096];
    bool same = file != NULL;
    size_t at = 0, got = 0;
    for (; same && (got = fread(part, 1, sizeof part, file)) > 0; at += got)
        same = got <= count - at && !memcmp(part, (const uint8_t *)bytes + at, got);
    if (file)
        fclose(file);
    return same && at == count;
}

uint32_t files_in_folder(void) {
    DIR *listed = opendir(folder);
    uint32_t count = 0;
    for (struct dirent *entry; listed && (entry = readdir(listed));)
        count += entry->d_name[0] != '.';
    closedir(listed);
    return count;
}
