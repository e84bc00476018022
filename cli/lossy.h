/* Whether the pixels of an input were compressed with loss. */
#ifndef COGPU_CLI_LOSSY_H
#define COGPU_CLI_LOSSY_H

#include "selection.h"

/* The codec's name if it was lossy; NULL if not, or if unknown: WebP and LERC say
 * it in their blocks, of which one is looked at where the input is a local file. */
const char *cogpu_lossy_codec(const cogpu_selection *selection, const char *path);

#endif
