/*
 * A folder with a file that a write replaces: tests check that a failed write leaves the old file
 * as it was, and no other.
 */
#ifndef COGPU_TESTS_OLD_FILE_H
#define COGPU_TESTS_OLD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OLD_FILE_BYTES = 16 };

/* The path of the file, and its content. */
extern char path[64];
extern const char old[OLD_FILE_BYTES];

void make_folder(void);

void remove_folder(void);

void put_old_file(void);

/* Whether the file has exactly these bytes. Allocates nothing by itself: memory may be out. */
bool path_has(const void *bytes, size_t count);

uint32_t files_in_folder(void);

#endif
