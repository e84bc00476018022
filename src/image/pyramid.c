/*
 * Groups the directories of a file into images, overview levels and masks.
 *
 * The rules are GDAL's: a directory with the "reduced resolution" bit (NewSubfileType, TIFF 6.0
 * section 8) is a level of the image before it, or of its parent for SubIFDs; one with the "mask"
 * bit belongs to the level of its size. A malformed image 0 fails; any other malformed directory is
 * ignored with a warning.
 */
#include "base/checked.h"
#include "base/type.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <stdlib.h>
#include <string.h>

enum { REDUCED = 1, MASK = 4 };
enum role { ROLE_NONE = 0, ROLE_IMAGE, ROLE_LEVEL, ROLE_MASK };

/* A directory with its role in the file. */
struct member {
    cogpu_storage storage;
    enum role role;
    bool external;
    uint32_t owner;      /* index of the image it belongs to */
    struct member *next; /* of the same image: its levels and masks in file order */
};

struct role_list {
    struct member *members;
    uint32_t count, images;
    struct member **image; /* the member that is the i-th image: head of its list */
    struct member **last;  /* the end of that list */
    cogpu_arena *arena;
    const char *warning;
    cogpu_error *error;
};

static bool same_pixels(const cogpu_storage *a, const cogpu_storage *b) {
    return a->bands == b->bands && a->type == b->type;
}

static bool is_smaller(const cogpu_storage *level, const cogpu_storage *base) {
    return level->width <= base->width && level->height <= base->height &&
           (level->width < base->width || level->height < base->height);
}

static bool same_size(const cogpu_storage *a, const cogpu_storage *b) {
    return a->width == b->width && a->height == b->height;
}

/* One band for all, or one for each. */
static bool can_mask(const cogpu_storage *mask, const cogpu_storage *image) {
    return mask->type == COGPU_TYPE_U8 && (mask->bits == 1 || mask->bits == 8) &&
           (mask->bands == 1 || mask->bands == image->bands);
}

static void append_member(struct role_list *roles, struct member *member, enum role role) {
    member->role = role;
    roles->last[member->owner]->next = member;
    roles->last[member->owner] = member;
}

static void add_image(struct role_list *roles, struct member *member) {
    member->role = ROLE_IMAGE;
    member->owner = roles->images++;
    roles->image[member->owner] = roles->last[member->owner] = member;
}

/* Assigns the role of a directory; `owner` is the image that it would belong to. */
static void give_role(struct role_list *roles, struct member *member, uint32_t subfile_type,
                      uint32_t owner) {
    const struct member *image = roles->images ? roles->image[owner] : NULL;
    member->owner = owner;
    if (subfile_type & MASK) {
        if (image && can_mask(&member->storage, &image->storage))
            append_member(roles, member, ROLE_MASK);
    } else if (image && (subfile_type & REDUCED || member->external)) {
        if (same_pixels(&member->storage, &image->storage) &&
            is_smaller(&member->storage, &image->storage))
            append_member(roles, member, ROLE_LEVEL);
        else
            cogpu_warn(
                roles->arena, &roles->warning,
                "directory %u%s is not a level of its image (other size, bands or type) and was "
                "ignored",
                member->storage.directory, member->external ? " of the .ovr file" : "");
    } else if (!member->external) {
        add_image(roles, member);
    }
}

/* The image that a directory belongs to: the last of the chain before it, or its parent's. */
static uint32_t owner_of(const struct role_list *roles, const cogpu_tiff *tiff,
                         uint32_t directory) {
    int32_t parent = tiff->directories[directory].parent;
    if (parent >= 0)
        return roles->members[parent].owner;
    return roles->images ? roles->images - 1 : 0;
}

static cogpu_status assign_roles(struct role_list *roles, const cogpu_tiff *tiff, bool external) {
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        struct member *member = &roles->members[roles->count++];
        uint32_t owner = external ? 0 : owner_of(roles, tiff, i);
        member->external = external;
        member->owner = owner;
        cogpu_status status = cogpu_storage_read(tiff, i, roles->arena, &member->storage,
                                                 &roles->warning, roles->error);
        bool needed = i == 0 || status == COGPU_IO_ERROR;
        if (status == COGPU_OUT_OF_MEMORY || (status != COGPU_OK && needed && !external)) {
            cogpu_error_locate(roles->error, i, -1,
                               (int64_t)(tiff->directories[i].offset & INT64_MAX));
            return status;
        }
        if (status != COGPU_OK)
            cogpu_warn(roles->arena, &roles->warning, "directory %u%s was ignored: %s", i,
                       external ? " of the .ovr file" : "",
                       roles->error ? roles->error->message : cogpu_status_name(status));
        else
            give_role(roles, member, tiff->directories[i].subfile_type, owner);
    }
    return COGPU_OK;
}

/* Largest first; directories of the same size stay in file order. */
static void insert_level(cogpu_pyramid *pyramid, const struct member *member) {
    uint32_t at = pyramid->info.levels++;
    uint64_t pixels = (uint64_t)member->storage.width * member->storage.height;
    for (; at > 1; at--) {
        const cogpu_storage *before = &pyramid->levels[at - 1].storage;
        if ((uint64_t)before->width * before->height >= pixels)
            break;
        pyramid->levels[at] = pyramid->levels[at - 1];
    }
    pyramid->levels[at] =
        (cogpu_pyramid_level){.storage = member->storage, .external = member->external};
}

static cogpu_status gather_levels(const struct role_list *roles, uint32_t image,
                                  cogpu_pyramid *pyramid) {
    uint32_t levels = 1;
    for (const struct member *m = roles->image[image]->next; m; m = m->next)
        levels += m->role == ROLE_LEVEL && levels < COGPU_LEVELS_MAX;
    TRY(cogpu_arena_allocate(roles->arena, levels, sizeof *pyramid->levels, &pyramid->levels,
                             roles->error));
    pyramid->levels[0].storage = roles->image[image]->storage;
    pyramid->info.levels = 1;
    for (const struct member *m = roles->image[image]->next; m; m = m->next)
        if (m->role == ROLE_LEVEL && pyramid->info.levels < levels)
            insert_level(pyramid, m);
    return COGPU_OK;
}

static void pair_mask(cogpu_pyramid *pyramid, const cogpu_storage *mask) {
    for (uint32_t k = 0; k < pyramid->info.levels; k++) {
        cogpu_pyramid_level *level = &pyramid->levels[k];
        if (!level->has_mask && same_size(&level->storage, mask)) {
            level->has_mask = true;
            level->mask = *mask;
            return;
        }
    }
}

static void pair_masks(const struct role_list *roles, uint32_t image, cogpu_pyramid *pyramid) {
    for (const struct member *m = roles->image[image]->next; m; m = m->next)
        if (m->role == ROLE_MASK)
            pair_mask(pyramid, &m->storage);
}

void cogpu_pyramid_describe_storage(const cogpu_storage *storage, cogpu_image *info) {
    const cogpu_tiff *tiff = storage->tiff;
    info->directory = storage->directory;
    info->width = storage->width;
    info->height = storage->height;
    info->bands = storage->bands;
    info->type = storage->type;
    info->bits = storage->bits;
    info->layout = storage->layout;
    info->block_width = storage->block_width;
    info->block_height = storage->block_height;
    info->blocks = storage->blocks;
    info->interleave = storage->planes > 1 ? COGPU_INTERLEAVE_BAND : COGPU_INTERLEAVE_PIXEL;
    info->compression = storage->format.compression;
    info->codec = storage->codec ? storage->codec->name : "unknown";
    info->predictor = storage->predictor;
    info->photometric = storage->photometric;
    info->orientation = storage->orientation;
    info->fill_order = storage->format.fill_order;
    info->big_endian = tiff->big_endian;
    info->bigtiff = tiff->bigtiff;
    info->ghost = tiff->ghost;
}

void cogpu_pyramid_describe_georef(const cogpu_georef *georef, cogpu_image *info) {
    info->has_transform = georef->has_transform;
    memcpy(info->transform, georef->transform, sizeof info->transform);
    info->pixel_is_point = georef->pixel_is_point;
    info->gcp_count = georef->gcp_count;
    info->rpc = georef->rpc;
    info->geokey_count = georef->key_count;
}

/* A text tag that does not affect pixels: a malformed one is ignored with a warning. */
static cogpu_status optional_text(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const char **text, const char **warning,
                                  cogpu_error *error) {
    cogpu_status status = cogpu_tiff_text(tiff, directory, tag, arena, text, error);
    if (status != COGPU_CORRUPT && status != COGPU_LIMIT_EXCEEDED)
        return status;
    cogpu_warn(arena, warning, "tag %s is malformed and was ignored", cogpu_tag_name(tag));
    *text = NULL;
    return COGPU_OK;
}

/* ---- external masks (.msk) ---- */

static bool has_internal_levels(const struct role_list *roles) {
    for (const struct member *m = roles->images ? roles->image[0]->next : NULL; m; m = m->next)
        if (m->role == ROLE_LEVEL)
            return true;
    return false;
}

/* Which band of the .msk is the mask of each band: its items INTERNAL_MASK_FLAGS_n say so. A band
 * without an item has no mask. */
static cogpu_status map_mask_bands(struct role_list *roles, const cogpu_storage *mask,
                                   uint32_t bands, const uint32_t **mapped, bool *is_any) {
    enum { PER_DATASET = 2 };
    static const char prefix[] = "INTERNAL_MASK_FLAGS_";
    cogpu_metadata metadata;
    uint32_t *map = NULL;
    TRY(cogpu_metadata_read(mask->tiff, mask->directory, roles->arena, &metadata, &roles->warning,
                            roles->error));
    TRY(cogpu_arena_allocate(roles->arena, bands, sizeof *map, &map, roles->error));
    *is_any = false;
    for (uint32_t i = 0; i < metadata.item_count; i++) {
        const cogpu_metadata_item *item = &metadata.items[i];
        if (item->band || item->domain[0] || strncmp(item->name, prefix, sizeof prefix - 1) != 0)
            continue;
        unsigned long band = strtoul(item->name + sizeof prefix - 1, NULL, 10);
        bool is_shared = strtol(item->value, NULL, 10) & PER_DATASET;
        if (band < 1 || band > bands || (!is_shared && band > mask->bands))
            continue;
        map[band - 1] = is_shared ? 1 : (uint32_t)band;
        *is_any = true;
    }
    *mapped = map;
    return COGPU_OK;
}

/* Attaches the mask to the level of its size. As in GDAL, the first mask of the file belongs to
 * level 0 whatever its size: reads outside of it fail. */
static void attach_mask(struct role_list *roles, cogpu_pyramid *pyramid, const cogpu_storage *mask,
                        bool is_first) {
    for (uint32_t k = 0; k < pyramid->info.levels; k++) {
        cogpu_pyramid_level *level = &pyramid->levels[k];
        bool fits = same_size(&level->storage, mask);
        if (level->has_mask || (is_first ? k > 0 : !fits))
            continue;
        if (!fits)
            cogpu_warn(roles->arena, &roles->warning,
                       "the .msk file has %u x %u pixels, the image %u x %u", mask->width,
                       mask->height, level->storage.width, level->storage.height);
        level->has_mask = level->mask_external = true;
        level->mask = *mask;
        return;
    }
}

static cogpu_status attach_masks_of(struct role_list *roles, cogpu_pyramid *pyramid,
                                    const cogpu_tiff *tiff, bool has_first) {
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        cogpu_storage mask;
        bool is_first = has_first && i == 0, is_any = true;
        if (tiff->directories[i].subfile_type & MASK)
            continue;
        cogpu_status status =
            cogpu_storage_read(tiff, i, roles->arena, &mask, &roles->warning, roles->error);
        if (status == COGPU_OUT_OF_MEMORY)
            return status;
        bool is_valid = status == COGPU_OK && !cogpu_type_is_complex(mask.type) &&
                        (is_first || mask.bands == pyramid->levels[0].mask.bands);
        if (!is_valid)
            cogpu_warn(
                roles->arena, &roles->warning, "directory %u of the .msk file was ignored: %s", i,
                status == COGPU_OK || !roles->error ? "it is not a mask" : roles->error->message);
        if (is_valid && is_first)
            TRY(map_mask_bands(roles, &mask, pyramid->levels[0].storage.bands, &pyramid->mask_bands,
                               &is_any));
        if (is_valid && is_any)
            attach_mask(roles, pyramid, &mask, is_first);
        if (is_first && !pyramid->levels[0].has_mask)
            return COGPU_OK; /* no mask of level 0, so no masks of overviews */
    }
    return COGPU_OK;
}

/* An internal mask takes precedence over an external one. */
static cogpu_status attach_masks(struct role_list *roles, cogpu_pyramid *pyramid,
                                 const cogpu_sidecar_data *beside) {
    if (!beside->mask || pyramid->levels[0].has_mask)
        return COGPU_OK;
    TRY(attach_masks_of(roles, pyramid, beside->mask, true));
    if (beside->mask_overviews && pyramid->levels[0].has_mask)
        TRY(attach_masks_of(roles, pyramid, beside->mask_overviews, false));
    return COGPU_OK;
}

/* ---- metadata of an image ---- */

/* Sparse blocks are filled with this sample. */
static void set_fill_sample(cogpu_pyramid *pyramid) {
    for (uint32_t k = 0; k < pyramid->info.levels; k++)
        cogpu_nodata_sample(&pyramid->nodata[0], pyramid->info.type,
                            pyramid->levels[k].storage.format.fill);
}

/* Whether GDAL would use the alpha band as a mask. */
static bool has_alpha_mask(const cogpu_image *info) {
    return info->alpha_band == info->bands && (info->bands == 2 || info->bands == 4) &&
           (info->type == COGPU_TYPE_U8 || info->type == COGPU_TYPE_U16);
}

cogpu_band_rule cogpu_nodata_rule_of_pyramid(const cogpu_pyramid *pyramid,
                                             const cogpu_pyramid_level *level, uint32_t band) {
    const cogpu_nodata *nodata = &pyramid->nodata[band - 1];
    cogpu_band_rule rule = {.storage = &level->storage, .band = band, .nodata = nodata};
    uint32_t beside = level->mask_external ? pyramid->mask_bands[band - 1] : 0;
    if (level->has_mask && (beside || !level->mask_external)) {
        bool is_shared = level->mask.bands < level->storage.bands;
        rule.mask_source = COGPU_MASK_SOURCE_DIRECTORY;
        rule.storage = &level->mask;
        rule.band = beside ? beside : is_shared ? 1 : band;
    } else if (nodata->matches) {
        rule.mask_source = COGPU_MASK_SOURCE_NODATA;
    } else if (has_alpha_mask(&pyramid->info)) {
        rule.mask_source = COGPU_MASK_SOURCE_ALPHA;
        rule.band = pyramid->info.alpha_band;
    }
    return rule;
}

static bool same_nodata(const cogpu_nodata *one, const cogpu_nodata *other) {
    bool same_value =
        one->value == other->value || (one->value != one->value && other->value != other->value);
    return one->matches == other->matches && same_value && one->i64 == other->i64 &&
           one->u64 == other->u64;
}

static void describe_nodata(const cogpu_nodata *nodata, cogpu_band *band) {
    band->nodata = nodata->text;
    band->nodata_matches = nodata->matches;
    band->nodata_value = nodata->value;
    band->nodata_i64 = nodata->i64;
    band->nodata_u64 = nodata->u64;
}

cogpu_status cogpu_pyramid_set_nodata(cogpu_pyramid *pyramid, const char *const *texts,
                                      cogpu_arena *arena, cogpu_error *error) {
    const cogpu_image *info = &pyramid->info;
    TRY(cogpu_arena_allocate(arena, info->bands, sizeof *pyramid->nodata, &pyramid->nodata, error));
    for (uint32_t i = 0; i < info->bands; i++) {
        cogpu_nodata_parse(texts[i], info->type, &pyramid->nodata[i]);
        describe_nodata(&pyramid->nodata[i], &pyramid->bands[i]);
        if (!same_nodata(&pyramid->nodata[i], &pyramid->nodata[0]))
            pyramid->has_band_rules = true;
    }
    set_fill_sample(pyramid);
    return COGPU_OK;
}

/* PAM states nodata by band; the TIFF has one for all. */
static cogpu_status set_band_nodata(struct role_list *roles, cogpu_pyramid *pyramid,
                                    const char *stated, const cogpu_pam *pam) {
    const char **texts = NULL;
    TRY(cogpu_arena_allocate(roles->arena, pyramid->info.bands, sizeof *texts, &texts,
                             roles->error));
    for (uint32_t i = 0; i < pyramid->info.bands; i++)
        texts[i] = pam->nodata && pam->nodata[i] ? pam->nodata[i] : stated;
    return cogpu_pyramid_set_nodata(pyramid, texts, roles->arena, roles->error);
}

void cogpu_pyramid_set_mask_source(cogpu_pyramid *pyramid) {
    cogpu_pyramid_level full = pyramid->levels[0];
    pyramid->info.mask_source = cogpu_nodata_rule_of_pyramid(pyramid, &full, 1).mask_source;
    for (uint32_t i = 0; full.mask_external && i < pyramid->info.bands; i++)
        if (!pyramid->mask_bands[i])
            pyramid->has_band_rules = true;
    full.has_mask = false;
    pyramid->unmasked = cogpu_nodata_rule_of_pyramid(pyramid, &full, 1).mask_source;
}

/* XResolution and YResolution in inches; else zeros. */
static cogpu_status read_resolution(const struct role_list *roles, const cogpu_storage *storage,
                                    double per_inch[2]) {
    enum { INCHES = 2 };
    static const uint16_t tags[2] = {TAG_X_RESOLUTION, TAG_Y_RESOLUTION};
    const char *ignored = NULL;
    const uint16_t *unit;
    uint32_t units;
    TRY(cogpu_values_shorts(storage->tiff, storage->directory, TAG_RESOLUTION_UNIT, roles->arena,
                            &unit, &units, &ignored, roles->error));
    for (int i = 0; units == 1 && unit[0] == INCHES && i < 2; i++) {
        const double *values;
        uint32_t count;
        TRY(cogpu_values_doubles(storage->tiff, storage->directory, tags[i], roles->arena, &values,
                                 &count, &ignored, roles->error));
        per_inch[i] = count == 1 ? values[0] : 0;
    }
    return COGPU_OK;
}

static cogpu_status read_pam_for_image(struct role_list *roles, const cogpu_storage *storage,
                                       cogpu_sidecar_data *beside, cogpu_pam *pam,
                                       const char **warning) {
    const char *fault = NULL;
    *pam = (cogpu_pam){0};
    if (!beside || !beside->texts[SIDECAR_PAM].text.bytes)
        return COGPU_OK;
    cogpu_pam_image image = {.height = storage->height, .bands = storage->bands};
    TRY(read_resolution(roles, storage, image.pixels_per_inch));
    TRY(cogpu_pam_parse(beside->texts[SIDECAR_PAM].text, &image, roles->arena, pam, &fault,
                        roles->error));
    beside->texts[SIDECAR_PAM].is_used = !fault;
    if (fault)
        cogpu_warn(roles->arena, warning, "the file .aux.xml was ignored: %s", fault);
    return COGPU_OK;
}

static void copy_palette(const cogpu_pam *pam, cogpu_image *info) {
    uint32_t most = info->type == COGPU_TYPE_U8 ? 1u << info->bits : 65536;
    if (!pam->palette || (info->type != COGPU_TYPE_U8 && info->type != COGPU_TYPE_U16) ||
        pam->palette_entries > most)
        return;
    info->palette = pam->palette;
    info->palette_entries = pam->palette_entries;
}

/* `beside` may be NULL. */
static cogpu_status read_image_metadata(struct role_list *roles, cogpu_pyramid *pyramid,
                                        cogpu_sidecar_data *beside) {
    cogpu_image *info = &pyramid->info;
    const cogpu_storage *storage = &pyramid->levels[0].storage;
    const cogpu_tiff *tiff = storage->tiff;
    uint32_t directory = storage->directory;
    const char *nodata = NULL, **warning = &info->warning;
    cogpu_pam pam;
    cogpu_pyramid_describe_storage(storage, info);
    TRY(optional_text(tiff, directory, TAG_IMAGE_DESCRIPTION, roles->arena, &info->description,
                      warning, roles->error));
    TRY(optional_text(tiff, directory, TAG_GDAL_NODATA, roles->arena, &nodata, warning,
                      roles->error));
    TRY(read_pam_for_image(roles, storage, beside, &pam, warning));
    TRY(cogpu_georef_read(tiff, directory, info->bands, roles->arena, &pyramid->georef, warning,
                          roles->error));
    if (beside)
        TRY(cogpu_sidecar_georef(beside, &pam, roles->arena, &pyramid->georef, warning,
                                 roles->error));
    cogpu_pyramid_describe_georef(&pyramid->georef, info);
    TRY(cogpu_metadata_read(tiff, directory, roles->arena, &pyramid->metadata, warning,
                            roles->error));
    TRY(cogpu_sidecar_metadata(&pam, info->rpc != NULL, roles->arena, &pyramid->metadata,
                               roles->error));
    info->metadata_count = pyramid->metadata.item_count;
    TRY(cogpu_bands_read(tiff, storage, &pyramid->georef, &pyramid->metadata, roles->arena, info,
                         &pyramid->bands, warning, roles->error));
    copy_palette(&pam, info);
    TRY(set_band_nodata(roles, pyramid, nodata, &pam));
    cogpu_pyramid_set_mask_source(pyramid);
    return COGPU_OK;
}

/* Each band of each image takes memory here, but may take no bytes in the file. */
static cogpu_status check_bands(const struct role_list *roles, const cogpu_tiff *tiff) {
    uint64_t bands = 0, most = cogpu_io_bytes(tiff->io);
    if (!checked_add(most, tiff->limits.bands, &most))
        most = UINT64_MAX;
    for (uint32_t i = 0; i < roles->images; i++)
        bands += roles->image[i]->storage.bands;
    if (bands > most)
        return cogpu_fail(roles->error, COGPU_LIMIT_EXCEEDED,
                          "the %u images of the file have %llu bands together, the limit is %llu; "
                          "raise `bands` to go on",
                          roles->images, (unsigned long long)bands, (unsigned long long)most);
    return COGPU_OK;
}

/* As in GDAL, external overviews count if the file has none of its own. */
static cogpu_status assign_overview_roles(struct role_list *roles,
                                          const cogpu_sidecar_data *beside) {
    if (!roles->images || has_internal_levels(roles))
        return COGPU_OK;
    for (uint32_t i = 0; i < beside->overview_count; i++)
        TRY(assign_roles(roles, beside->overviews[i], true));
    return COGPU_OK;
}

static uint64_t count_members(const cogpu_tiff *tiff, const cogpu_sidecar_data *beside) {
    uint64_t members = tiff->directory_count;
    for (uint32_t i = 0; i < beside->overview_count; i++)
        members += beside->overviews[i]->directory_count;
    return members;
}

cogpu_status cogpu_pyramids_read(const cogpu_tiff *tiff, cogpu_sidecar_data *beside,
                                 cogpu_arena *arena, cogpu_pyramid **pyramids, uint32_t *count,
                                 cogpu_error *error) {
    struct role_list roles = {.arena = arena, .error = error, .warning = tiff->warning};
    uint64_t members = count_members(tiff, beside);
    TRY(cogpu_arena_allocate(arena, members, sizeof *roles.members, &roles.members, error));
    TRY(cogpu_arena_allocate(arena, members, sizeof *roles.image, &roles.image, error));
    TRY(cogpu_arena_allocate(arena, members, sizeof *roles.last, &roles.last, error));
    TRY(assign_roles(&roles, tiff, false));
    TRY(assign_overview_roles(&roles, beside));
    TRY(check_bands(&roles, tiff));
    TRY(cogpu_arena_allocate(arena, roles.images, sizeof **pyramids, pyramids, error));
    for (uint32_t i = 0; i < roles.images; i++) {
        cogpu_pyramid *pyramid = &(*pyramids)[i];
        TRY(gather_levels(&roles, i, pyramid));
        pair_masks(&roles, i, pyramid);
        if (i == 0)
            TRY(attach_masks(&roles, pyramid, beside));
        pyramid->info.warning = roles.warning;
        TRY(read_image_metadata(&roles, pyramid, i == 0 ? beside : NULL));
    }
    *count = roles.images;
    return COGPU_OK;
}
