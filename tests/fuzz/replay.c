/*
 * Takes the names of files, feeds each to a fuzz target once, in a build without libFuzzer: so that
 * what a fuzzer once found, and its seeds, are tests of every build.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The whole file in a block of its exact size, so that a read past its end is seen; NULL without.
 */
static uint8_t *load(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    uint8_t *data = NULL;
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = malloc(size > 0 ? (size_t)size : 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

int main(int count, char **paths) {
    int passed = 0, failed = 0;
    for (int i = 1; i < count; i++) {
        size_t bytes = 0;
        uint8_t *data = load(paths[i], &bytes);
        if (data) {
            LLVMFuzzerTestOneInput(data, bytes);
            passed++;
        } else {
            printf("cannot read %s\n", paths[i]);
            failed++;
        }
        free(data);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
