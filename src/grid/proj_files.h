/* Which files PROJ may open for a CRS. */
#ifndef COGPU_GRID_PROJ_FILES_H
#define COGPU_GRID_PROJ_FILES_H

#include "base/status.h"

#include <proj.h>

/* Folders of PROJ's database and grids: "folder:folder". */
typedef struct cogpu_proj_folders {
    char paths[8192];
} cogpu_proj_folders;

/* The folders that a context searches. */
void cogpu_proj_folders_find(PJ_CONTEXT *context, cogpu_proj_folders *folders);

/* Lets the context read files of these folders, which must stay, and no others: the text of a CRS
 * may name a grid by any path. */
cogpu_status cogpu_proj_restrict_files(PJ_CONTEXT *context, cogpu_proj_folders *folders,
                                       cogpu_error *error);

#endif
