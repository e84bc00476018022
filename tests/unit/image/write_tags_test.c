#include "unit/image/write_tags_test.h"

cogpu_arena tags_arena;

cogpu_tag_list tag_list;

cogpu_error tags_error;

uint32_t tags_photometric;

cogpu_status describe_georef(const cogpu_profile *profile) {
    return cogpu_write_georef_tags(profile, &tags_arena, &tag_list, &tags_error);
}

cogpu_status describe_metadata(const cogpu_profile *profile) {
    return cogpu_write_metadata_tags(profile, &tags_arena, &tag_list, &tags_error);
}

cogpu_status describe_colours(const cogpu_profile *profile) {
    return cogpu_write_color_tags(profile, COMPRESSION_DEFLATE, &tags_arena, &tag_list,
                                  &tags_photometric, &tags_error);
}

cogpu_status describe_colours_as_jpeg(const cogpu_profile *profile) {
    return cogpu_write_color_tags(profile, COMPRESSION_JPEG, &tags_arena, &tag_list,
                                  &tags_photometric, &tags_error);
}

void begin_tags(void) {
    cogpu_arena_close(&tags_arena);
    cogpu_arena_open(&tags_arena, 1 << 28);
    tag_list = (cogpu_tag_list){0};
    cogpu_error_clear(&tags_error);
}

bool accepts(describe *part, const cogpu_profile *profile) {
    begin_tags();
    cogpu_status status = part(profile);
    if (status != COGPU_OK)
        printf("refused: %s\n", tags_error.message);
    return status == COGPU_OK;
}

bool refuses(describe *part, const cogpu_profile *profile, const char *why) {
    begin_tags();
    cogpu_status status = part(profile);
    bool is_so = status == COGPU_INVALID_ARGUMENT && strstr(tags_error.message, why);
    if (!is_so)
        printf("%s: %s\n", cogpu_status_name(status), tags_error.message);
    return is_so;
}

const cogpu_new_tag *find_tag(uint16_t id) {
    for (uint32_t i = 0; i < tag_list.count; i++)
        if (tag_list.tags[i].id == id)
            return &tag_list.tags[i];
    return NULL;
}

const char *text_of(uint16_t id) {
    const cogpu_new_tag *tag = find_tag(id);
    bool is_text = tag && tag->type == TYPE_ASCII && strlen(tag->values) + 1 == (size_t)tag->count;
    return is_text ? tag->values : NULL;
}

bool has_doubles(uint16_t id, uint64_t count, const double *expected) {
    const cogpu_new_tag *tag = find_tag(id);
    return tag && tag->type == TYPE_DOUBLE && tag->count == count &&
           memcmp(tag->values, expected, (size_t)count * sizeof *expected) == 0;
}

bool has_shorts(uint16_t id, uint64_t count, const uint16_t *expected) {
    const cogpu_new_tag *tag = find_tag(id);
    return tag && tag->type == TYPE_SHORT && tag->count == count &&
           memcmp(tag->values, expected, (size_t)count * sizeof *expected) == 0;
}

void open_written(opened_tiff *opened, uint16_t bands) {
    build_open(&opened->file, false, false);
    build_image(&opened->file, 4, 4, bands, 8, (uint16_t)tags_photometric, NULL);
    for (uint32_t i = 0; i < tag_list.count; i++)
        if (tag_list.tags[i].id != TAG_PHOTOMETRIC)
            build_tag(&opened->file, tag_list.tags[i].id, tag_list.tags[i].type,
                      tag_list.tags[i].count, tag_list.tags[i].values);
    CHECK(open_built(opened) == COGPU_OK);
}

cogpu_profile of_one_band(void) {
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = 4,
                           .height = 4,
                           .bands = 1,
                           .type = COGPU_TYPE_U8};
}

cogpu_profile with_transform(double x, double a, double b, double y, double d, double e) {
    cogpu_profile profile = of_one_band();
    profile.has_transform = 1;
    const double transform[6] = {x, a, b, y, d, e};
    memcpy(profile.transform, transform, sizeof transform);
    return profile;
}
