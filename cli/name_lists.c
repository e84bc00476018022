/* Lists of names from the library's tables, so that the command line has none of its own. */
#include "name_lists.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LIST_MAX = 64, ITEM_TEXT = 48 };

struct name_list {
    char items[LIST_MAX][ITEM_TEXT];
    int count;
};

/* "a, b or c", where `last` is " or ". */
static void join_names(const struct name_list *list, const char *last, char text[NAMES_TEXT]) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < list->count && used < NAMES_TEXT; i++) {
        const char *separator = i == 0 ? "" : i + 1 == list->count ? last : ", ";
        used += (size_t)snprintf(text + used, NAMES_TEXT - used, "%s%s", separator, list->items[i]);
    }
}

/* The second compression number of deflate has the same name. */
static void add_name(struct name_list *list, const char *item) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i], item) == 0)
            return;
    if (list->count < LIST_MAX)
        snprintf(list->items[list->count++], ITEM_TEXT, "%s", item);
}

bool cogpu_find_codec(const char *name, cogpu_codec *codec) {
    uint32_t compression = 0;
    for (uint32_t i = 0; cogpu_codec_info(i, codec, NULL) == COGPU_OK; i++)
        if (strcasecmp(name, codec->name) == 0)
            return true;
    if (cogpu_codec_parse(name, &compression, NULL) != COGPU_OK)
        return false;
    for (uint32_t i = 0; cogpu_codec_info(i, codec, NULL) == COGPU_OK; i++)
        if (codec->compression == compression)
            return true;
    return false;
}

void cogpu_list_codecs(char text[NAMES_TEXT]) {
    struct name_list names = {.count = 0};
    cogpu_codec codec = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++)
        if (codec.can_encode)
            add_name(&names, codec.name);
    join_names(&names, " or ", text);
}

void cogpu_list_quality_codecs(char text[NAMES_TEXT]) {
    struct name_list names = {.count = 0};
    cogpu_codec codec = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++)
        if (codec.can_encode && codec.has_quality)
            add_name(&names, codec.name);
    join_names(&names, " or ", text);
}

void cogpu_list_levels(char text[NAMES_TEXT]) {
    struct name_list names = {.count = 0};
    cogpu_codec codec = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++) {
        char item[ITEM_TEXT];
        if (!codec.can_encode || codec.max_level == 0)
            continue;
        snprintf(item, sizeof item, "%s %d to %d (%d)", codec.name, codec.min_level,
                 codec.max_level, codec.default_level);
        add_name(&names, item);
    }
    join_names(&names, ", ", text);
}

static void list_resamplings(cogpu_resampling last, char text[NAMES_TEXT]) {
    struct name_list names = {.count = 0};
    for (int i = COGPU_RESAMPLE_DEFAULT + 1; i <= (int)last; i++)
        add_name(&names, cogpu_resampling_name((cogpu_resampling)i));
    join_names(&names, " or ", text);
}

void cogpu_list_resamplings(char text[NAMES_TEXT]) {
    list_resamplings(COGPU_RESAMPLE_MEDIAN, text);
}

void cogpu_list_warp_resamplings(char text[NAMES_TEXT]) {
    list_resamplings(COGPU_RESAMPLE_SUM, text);
}

void cogpu_list_composites(char text[NAMES_TEXT]) {
    struct name_list names = {.count = 0};
    for (int i = COGPU_COMPOSITE_FIRST; cogpu_composite_name((cogpu_composite)i); i++)
        add_name(&names, cogpu_composite_name((cogpu_composite)i));
    join_names(&names, " or ", text);
}
