/* Files beside an open one: where they are, and what they hold. */
#ifndef COGPU_API_SIDECARS_H
#define COGPU_API_SIDECARS_H

#include "api/room.h"

/* Reads what stands beside `path`, a local file or a URL, into file->beside. What cannot be read
 * becomes a warning of file->tiff; only memory fails. */
cogpu_status cogpu_sidecars_open(cogpu_file *file, const char *path, cogpu_http *http,
                                 cogpu_error *error);
/* Lists those of which the images took something, and ends the reading of headers. */
cogpu_status cogpu_sidecars_settle(cogpu_file *file, cogpu_error *error);
void cogpu_sidecars_close(cogpu_file *file);

#endif
