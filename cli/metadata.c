/*
 * --metadata, by GDAL's names: items of GDAL_METADATA, but for those that GDAL stores elsewhere:
 * TIFFTAG_... in tags of their own, AREA_OR_POINT among the GeoKeys, and of bands DESCRIPTION,
 * UNITTYPE, SCALE and OFFSET with a role.
 */
#include "metadata.h"

#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint32_t id;
} text_tags[] = {
    {"TIFFTAG_DOCUMENTNAME", 269}, {"TIFFTAG_SOFTWARE", 305},     {"TIFFTAG_DATETIME", 306},
    {"TIFFTAG_ARTIST", 315},       {"TIFFTAG_HOSTCOMPUTER", 316}, {"TIFFTAG_COPYRIGHT", 33432},
};

static const struct {
    const char *name, *role;
} roles[] = {
    {"DESCRIPTION", "description"},
    {"UNITTYPE", "unittype"},
    {"SCALE", "scale"},
    {"OFFSET", "offset"},
};

/* The tag of a name; 0 where it has none. */
static uint32_t tag_of(const char *name) {
    for (size_t i = 0; i < sizeof text_tags / sizeof *text_tags; i++)
        if (strcasecmp(name, text_tags[i].name) == 0)
            return text_tags[i].id;
    return 0;
}

static void remove_tag(cogpu_output_profile *taken, uint32_t id) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < taken->profile.tag_count; i++) {
        if (taken->tags[i].id == id)
            free((void *)taken->tags[i].values);
        else
            taken->tags[kept++] = taken->tags[i];
    }
    taken->profile.tag_count = kept;
}

static cogpu_status set_tag(cogpu_output_profile *taken, uint32_t id, const char *value,
                            cogpu_error *error) {
    enum { TEXT = 2 };
    remove_tag(taken, id);
    if (!*value)
        return COGPU_OK;
    char *copy = strdup(value);
    if (!copy)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the metadata");
    uint32_t at = taken->profile.tag_count++;
    for (; at > 0 && taken->tags[at - 1].id > id; at--)
        taken->tags[at] = taken->tags[at - 1];
    taken->tags[at] = (cogpu_extra_tag){.struct_size = sizeof(cogpu_extra_tag),
                                        .id = id,
                                        .type = TEXT,
                                        .count = strlen(copy) + 1,
                                        .values = copy};
    return COGPU_OK;
}

static bool is_item(const cogpu_metadata_item *item, const cogpu_metadata_option *option) {
    return item->band == option->band && strcmp(item->domain, option->domain) == 0 &&
           strcmp(item->name, option->name) == 0;
}

static void set_item(cogpu_output_profile *taken, const cogpu_metadata_option *option) {
    cogpu_profile *profile = &taken->profile;
    cogpu_metadata_item made = {.struct_size = sizeof(cogpu_metadata_item),
                                .domain = option->domain,
                                .name = option->name,
                                .value = option->value,
                                .role = "",
                                .band = option->band};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < profile->metadata_count; i++)
        if (!is_item(&taken->items[i], option))
            taken->items[kept++] = taken->items[i];
    profile->metadata_count = kept;
    for (size_t i = 0; option->band && !*option->domain && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(option->name, roles[i].name) == 0)
            made.role = roles[i].role;
    if (*option->value)
        taken->items[profile->metadata_count++] = made;
}

static cogpu_status set_raster_type(cogpu_profile *profile, const char *value, cogpu_error *error) {
    bool is_point = strcasecmp(value, "Point") == 0;
    if (!is_point && strcasecmp(value, "Area") != 0)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "--metadata AREA_OR_POINT=%s: expected Area or Point", value);
    profile->pixel_is_point = is_point;
    return COGPU_OK;
}

static cogpu_status apply_option(const cogpu_metadata_option *option, cogpu_output_profile *taken,
                                 cogpu_error *error) {
    cogpu_profile *profile = &taken->profile;
    bool is_plain = option->band == 0 && !*option->domain;
    if (option->band > 0 && (uint32_t)option->band > profile->bands)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "--metadata %" PRId32 ":%s: the new file has %" PRIu32 " band%s",
                            option->band, option->name, profile->bands,
                            profile->bands == 1 ? "" : "s");
    if (is_plain && strcasecmp(option->name, "AREA_OR_POINT") == 0)
        return set_raster_type(profile, option->value, error);
    if (is_plain && strcasecmp(option->name, "TIFFTAG_IMAGEDESCRIPTION") == 0) {
        profile->description = *option->value ? option->value : NULL;
        return COGPU_OK;
    }
    if (is_plain && tag_of(option->name))
        return set_tag(taken, tag_of(option->name), option->value, error);
    set_item(taken, option);
    return COGPU_OK;
}

cogpu_status cogpu_metadata_apply(const cogpu_arguments *arguments, cogpu_output_profile *taken,
                                  cogpu_error *error) {
    for (uint32_t i = 0; i < arguments->metadata_count; i++)
        TRY(apply_option(&arguments->metadata[i], taken, error));
    return COGPU_OK;
}
