/* Names that the library's tables have, as lists for help and messages: "a, b or c". */
#ifndef COGPU_CLI_NAME_LISTS_H
#define COGPU_CLI_NAME_LISTS_H

#include "cogpu.h"

#include <stdbool.h>

enum { NAMES_TEXT = 256 };

/* The codec of a name or alias, in any case of letters. */
bool cogpu_find_codec(const char *name, cogpu_codec *codec);

/* Codecs that this build can write; those with a quality; those with levels, and the levels. */
void cogpu_list_codecs(char text[NAMES_TEXT]);
void cogpu_list_quality_codecs(char text[NAMES_TEXT]);
void cogpu_list_levels(char text[NAMES_TEXT]);
/* Methods of overviews; those of mosaics; how mosaics combine pixels. */
void cogpu_list_resamplings(char text[NAMES_TEXT]);
void cogpu_list_warp_resamplings(char text[NAMES_TEXT]);
void cogpu_list_composites(char text[NAMES_TEXT]);

#endif
