/*
 * Files of a mosaic's members. They are opened when they are needed, and at most some hundred are
 * open at a time, so that a mosaic may have more members than a process may have open files. Any
 * thread may call these functions.
 */
#ifndef COGPU_CONTEXT_MOSAIC_FILES_H
#define COGPU_CONTEXT_MOSAIC_FILES_H

#include "context/file.h"

typedef struct cogpu_mosaic_files cogpu_mosaic_files;

/* Files that should be open at a time: a share of what the process may open. */
uint32_t cogpu_mosaic_files_limit(void);

/* Opens a member by its number. Called outside of the lock, by several threads for different
 * members. */
typedef struct cogpu_member_opener {
    cogpu_status (*open)(void *user, uint32_t member, cogpu_file **file, cogpu_error *error);
    void *user;
} cogpu_member_opener;

cogpu_status cogpu_mosaic_files_open(uint32_t count, const cogpu_member_opener *opener,
                                     cogpu_mosaic_files **files, cogpu_error *error);
void cogpu_mosaic_files_close(cogpu_mosaic_files *files); /* NULL is allowed */

/* The file stays open until it is released as often as it was acquired. */
cogpu_status cogpu_mosaic_files_acquire(cogpu_mosaic_files *files, uint32_t member,
                                        const cogpu_file **file, cogpu_error *error);
void cogpu_mosaic_files_release(cogpu_mosaic_files *files, uint32_t member);

#endif
