/* Where this code lies on the disk, for files that are shipped beside it. */
#ifndef COGPU_BASE_OWN_FOLDER_H
#define COGPU_BASE_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

enum { COGPU_PATH_BYTES = 4096 };

/* Writes the path of NAME, relative to the folder of the shared library, extension module or
 * program that holds this code. False, with an empty path, unless there is such a file or folder.
 */
bool cogpu_find_beside_library(const char *name, char path[COGPU_PATH_BYTES]);

#endif
