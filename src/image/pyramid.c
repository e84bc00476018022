/*
 * Takes all directories of a file, hands on its images: which directory is an image of its own,
 * which a smaller level of one, which a mask. The rules are GDAL's: a directory with the "reduced"
 * bit belongs to the image before it (or above it, for SubIFDs), one with the "mask" bit to the
 * level of its size. An unsound image 0 fails; any other unsound directory is left out with a
 * warning.
 */
#include "base/checked.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <stdlib.h>
#include <string.h>

enum { REDUCED = 1, MASK = 4 };
enum role { ROLE_NONE = 0, ROLE_IMAGE, ROLE_LEVEL, ROLE_MASK };

/* A directory with its part in the file. */
struct member {
    cogpu_storage storage;
    enum role role;
    bool external;
    uint32_t owner;      /* index of the image it belongs to */
    struct member *next; /* of the same image: its levels and masks in file order */
};

struct cast {
    struct member *members;
    uint32_t count, images;
    struct member **image; /* the member that is the i-th image, which heads its list */
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
    return mask->type == COGPU_U8 && (mask->bits == 1 || mask->bits == 8) &&
           (mask->bands == 1 || mask->bands == image->bands);
}

static void join(struct cast *cast, struct member *member, enum role role) {
    member->role = role;
    cast->last[member->owner]->next = member;
    cast->last[member->owner] = member;
}

static void found(struct cast *cast, struct member *member) {
    member->role = ROLE_IMAGE;
    member->owner = cast->images++;
    cast->image[member->owner] = cast->last[member->owner] = member;
}

/* Decides on a directory whose storage was read; `owner` is the image that it would belong to. */
static void give_role(struct cast *cast, struct member *member, uint32_t subfile_type,
                      uint32_t owner) {
    const struct member *image = cast->images ? cast->image[owner] : NULL;
    member->owner = owner;
    if (subfile_type & MASK) {
        if (image && can_mask(&member->storage, &image->storage))
            join(cast, member, ROLE_MASK);
    } else if (image && (subfile_type & REDUCED || member->external)) {
        if (same_pixels(&member->storage, &image->storage) &&
            is_smaller(&member->storage, &image->storage))
            join(cast, member, ROLE_LEVEL);
        else
            cogpu_warn(
                cast->arena, &cast->warning,
                "directory %u%s is no level of its image (other size, bands or type) and was "
                "left out",
                member->storage.directory, member->external ? " of the .ovr file" : "");
    } else if (!member->external) {
        found(cast, member);
    }
}

/* The image that a directory belongs to: the last of the chain before it, or its parent's. */
static uint32_t owner_of(const struct cast *cast, const cogpu_tiff *tiff, uint32_t directory) {
    int32_t parent = tiff->directories[directory].parent;
    if (parent >= 0)
        return cast->members[parent].owner;
    return cast->images ? cast->images - 1 : 0;
}

static cogpu_status cast_directories(struct cast *cast, const cogpu_tiff *tiff, bool external) {
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        struct member *member = &cast->members[cast->count++];
        uint32_t owner = external ? 0 : owner_of(cast, tiff, i);
        member->external = external;
        member->owner = owner;
        cogpu_status status =
            cogpu_storage_read(tiff, i, cast->arena, &member->storage, &cast->warning, cast->error);
        bool needed = i == 0 || status == COGPU_IO;
        if (status == COGPU_MEMORY || (status != COGPU_OK && needed && !external)) {
            cogpu_error_place(cast->error, i, -1,
                              (int64_t)(tiff->directories[i].offset & INT64_MAX));
            return status;
        }
        if (status != COGPU_OK)
            cogpu_warn(cast->arena, &cast->warning, "directory %u%s was left out: %s", i,
                       external ? " of the .ovr file" : "",
                       cast->error ? cast->error->message : cogpu_status_name(status));
        else
            give_role(cast, member, tiff->directories[i].subfile_type, owner);
    }
    return COGPU_OK;
}

/* Largest first, as a pyramid is; directories of the same size stay in file order. */
static void insert_level(cogpu_picture *picture, const struct member *member) {
    uint32_t at = picture->info.levels++;
    uint64_t pixels = (uint64_t)member->storage.width * member->storage.height;
    for (; at > 1; at--) {
        const cogpu_storage *before = &picture->levels[at - 1].storage;
        if ((uint64_t)before->width * before->height >= pixels)
            break;
        picture->levels[at] = picture->levels[at - 1];
    }
    picture->levels[at] =
        (cogpu_picture_level){.storage = member->storage, .external = member->external};
}

static cogpu_status gather_levels(const struct cast *cast, uint32_t image, cogpu_picture *picture) {
    uint32_t levels = 1;
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        levels += m->role == ROLE_LEVEL && levels < COGPU_LEVELS_MAX;
    TRY(cogpu_arena_take(cast->arena, levels, sizeof *picture->levels, &picture->levels,
                         cast->error));
    picture->levels[0].storage = cast->image[image]->storage;
    picture->info.levels = 1;
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        if (m->role == ROLE_LEVEL && picture->info.levels < levels)
            insert_level(picture, m);
    return COGPU_OK;
}

static void pair_mask(cogpu_picture *picture, const cogpu_storage *mask) {
    for (uint32_t k = 0; k < picture->info.levels; k++) {
        cogpu_picture_level *level = &picture->levels[k];
        if (!level->has_mask && same_size(&level->storage, mask)) {
            level->has_mask = true;
            level->mask = *mask;
            return;
        }
    }
}

static void pair_masks(const struct cast *cast, uint32_t image, cogpu_picture *picture) {
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        if (m->role == ROLE_MASK)
            pair_mask(picture, &m->storage);
}

static void describe_storage(const cogpu_storage *storage, cogpu_image *info) {
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
    info->planar = storage->planes > 1;
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

static void describe_georef(const cogpu_georef *georef, cogpu_image *info) {
    info->has_transform = georef->has_transform;
    memcpy(info->transform, georef->transform, sizeof info->transform);
    info->pixel_is_point = georef->pixel_is_point;
    info->gcps = georef->gcps;
    info->gcp_count = georef->gcp_count;
    info->rpc = georef->rpc;
    info->geokeys = georef->key_count;
}

/* A text tag of no consequence for the pixels: an unsound one is named and left out. */
static cogpu_status optional_text(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const char **text, const char **warning,
                                  cogpu_error *error) {
    cogpu_status status = cogpu_tiff_text(tiff, directory, tag, arena, text, error);
    if (status != COGPU_CORRUPT && status != COGPU_LIMIT)
        return status;
    cogpu_warn(arena, warning, "tag %s is not sound and was left out", cogpu_tag_name(tag));
    *text = NULL;
    return COGPU_OK;
}

/* ---- masks beside the file ---- */

static bool has_internal_levels(const struct cast *cast) {
    for (const struct member *m = cast->images ? cast->image[0]->next : NULL; m; m = m->next)
        if (m->role == ROLE_LEVEL)
            return true;
    return false;
}

/* Which band of the .msk is the mask of each band: its items INTERNAL_MASK_FLAGS_n tell, and
 * without one for a band it has no mask for it. */
static cogpu_status map_mask_bands(struct cast *cast, const cogpu_storage *mask, uint32_t bands,
                                   const uint32_t **mapped, bool *is_any) {
    enum { PER_DATASET = 2 };
    static const char prefix[] = "INTERNAL_MASK_FLAGS_";
    cogpu_metadata metadata;
    uint32_t *map = NULL;
    TRY(cogpu_metadata_read(mask->tiff, mask->directory, cast->arena, &metadata, &cast->warning,
                            cast->error));
    TRY(cogpu_arena_take(cast->arena, bands, sizeof *map, &map, cast->error));
    *is_any = false;
    for (uint32_t i = 0; i < metadata.item_count; i++) {
        const cogpu_item *item = &metadata.items[i];
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

/* Gives the mask to the level of its size, or, the first of its file, to level 0 whatever its size,
 * as GDAL does: reads outside of it fail. */
static void attach_mask(struct cast *cast, cogpu_picture *picture, const cogpu_storage *mask,
                        bool is_first) {
    for (uint32_t k = 0; k < picture->info.levels; k++) {
        cogpu_picture_level *level = &picture->levels[k];
        bool fits = same_size(&level->storage, mask);
        if (level->has_mask || (is_first ? k > 0 : !fits))
            continue;
        if (!fits)
            cogpu_warn(cast->arena, &cast->warning,
                       "the .msk file has %u x %u pixels, the image %u x %u", mask->width,
                       mask->height, level->storage.width, level->storage.height);
        level->has_mask = level->mask_external = true;
        level->mask = *mask;
        return;
    }
}

static cogpu_status attach_masks_of(struct cast *cast, cogpu_picture *picture,
                                    const cogpu_tiff *tiff, bool has_first) {
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        cogpu_storage mask;
        bool is_first = has_first && i == 0, is_any = true;
        if (tiff->directories[i].subfile_type & MASK)
            continue;
        cogpu_status status =
            cogpu_storage_read(tiff, i, cast->arena, &mask, &cast->warning, cast->error);
        if (status == COGPU_MEMORY)
            return status;
        bool is_sound = status == COGPU_OK && mask.type < COGPU_CI16 &&
                        (is_first || mask.bands == picture->levels[0].mask.bands);
        if (!is_sound)
            cogpu_warn(cast->arena, &cast->warning,
                       "directory %u of the .msk file was left out: %s", i,
                       status == COGPU_OK || !cast->error ? "it is no mask" : cast->error->message);
        if (is_sound && is_first)
            TRY(map_mask_bands(cast, &mask, picture->levels[0].storage.bands, &picture->mask_bands,
                               &is_any));
        if (is_sound && is_any)
            attach_mask(cast, picture, &mask, is_first);
        if (is_first && !picture->levels[0].has_mask)
            return COGPU_OK; /* without a mask of level 0 there are none of others */
    }
    return COGPU_OK;
}

/* A mask inside the file comes before one beside it. */
static cogpu_status attach_masks(struct cast *cast, cogpu_picture *picture,
                                 const cogpu_beside *beside) {
    if (!beside->mask || picture->levels[0].has_mask)
        return COGPU_OK;
    TRY(attach_masks_of(cast, picture, beside->mask, true));
    if (beside->mask_overviews && picture->levels[0].has_mask)
        TRY(attach_masks_of(cast, picture, beside->mask_overviews, false));
    return COGPU_OK;
}

/* ---- what is said of an image ---- */

/* Every block of a level without data in the file is filled with this. */
static void set_fill(cogpu_picture *picture) {
    for (uint32_t k = 0; k < picture->info.levels; k++)
        cogpu_nodata_sample(&picture->info.nodata, picture->info.type,
                            picture->levels[k].storage.format.fill);
}

/* Whether there is an alpha band where GDAL would take it for a mask. */
static bool has_alpha_mask(const cogpu_image *info) {
    return info->alpha_band == info->bands && (info->bands == 2 || info->bands == 4) &&
           (info->type == COGPU_U8 || info->type == COGPU_U16);
}

cogpu_band_rule cogpu_picture_rule(const cogpu_picture *picture, const cogpu_picture_level *level,
                                   uint32_t band) {
    const cogpu_nodata *nodata = &picture->bands[band - 1].nodata;
    cogpu_band_rule rule = {.storage = &level->storage, .band = band, .nodata = nodata};
    uint32_t beside = level->mask_external ? picture->mask_bands[band - 1] : 0;
    if (level->has_mask && (beside || !level->mask_external)) {
        bool is_shared = level->mask.bands < level->storage.bands;
        rule.validity = COGPU_BY_MASK;
        rule.storage = &level->mask;
        rule.band = beside ? beside : is_shared ? 1 : band;
    } else if (nodata->matches) {
        rule.validity = COGPU_BY_NODATA;
    } else if (has_alpha_mask(&picture->info)) {
        rule.validity = COGPU_BY_ALPHA;
        rule.band = picture->info.alpha_band;
    }
    return rule;
}

static bool same_nodata(const cogpu_nodata *one, const cogpu_nodata *other) {
    bool same_value =
        one->value == other->value || (one->value != one->value && other->value != other->value);
    return one->matches == other->matches && same_value && one->i64 == other->i64 &&
           one->u64 == other->u64;
}

/* PAM states nodata by band; the TIFF has one for all. */
static void set_nodata(cogpu_picture *picture, const char *stated, const cogpu_pam *pam) {
    cogpu_image *info = &picture->info;
    for (uint32_t i = 0; i < info->bands; i++) {
        const char *text = pam->nodata && pam->nodata[i] ? pam->nodata[i] : stated;
        cogpu_nodata_parse(text, info->type, &picture->bands[i].nodata);
        if (!same_nodata(&picture->bands[i].nodata, &picture->bands[0].nodata))
            picture->has_band_rules = true;
    }
    info->nodata = picture->bands[0].nodata;
    set_fill(picture);
}

static void set_validity(cogpu_picture *picture) {
    cogpu_picture_level full = picture->levels[0];
    picture->info.validity = cogpu_picture_rule(picture, &full, 1).validity;
    for (uint32_t i = 0; full.mask_external && i < picture->info.bands; i++)
        if (!picture->mask_bands[i])
            picture->has_band_rules = true;
    full.has_mask = false;
    picture->unmasked = cogpu_picture_rule(picture, &full, 1).validity;
}

/* Both resolutions of a TIFF that has them in inches; else zeros. */
static cogpu_status read_resolution(const struct cast *cast, const cogpu_storage *storage,
                                    double per_inch[2]) {
    enum { INCHES = 2 };
    static const uint16_t tags[2] = {TAG_X_RESOLUTION, TAG_Y_RESOLUTION};
    const char *ignored = NULL;
    const uint16_t *unit;
    uint32_t units;
    TRY(cogpu_values_shorts(storage->tiff, storage->directory, TAG_RESOLUTION_UNIT, cast->arena,
                            &unit, &units, &ignored, cast->error));
    for (int i = 0; units == 1 && unit[0] == INCHES && i < 2; i++) {
        const double *values;
        uint32_t count;
        TRY(cogpu_values_doubles(storage->tiff, storage->directory, tags[i], cast->arena, &values,
                                 &count, &ignored, cast->error));
        per_inch[i] = count == 1 ? values[0] : 0;
    }
    return COGPU_OK;
}

static cogpu_status read_pam(struct cast *cast, const cogpu_storage *storage, cogpu_beside *beside,
                             cogpu_pam *pam, const char **warning) {
    const char *fault = NULL;
    *pam = (cogpu_pam){0};
    if (!beside || !beside->texts[SIDECAR_PAM].text.bytes)
        return COGPU_OK;
    cogpu_pam_image image = {.height = storage->height, .bands = storage->bands};
    TRY(read_resolution(cast, storage, image.pixels_per_inch));
    TRY(cogpu_pam_parse(beside->texts[SIDECAR_PAM].text, &image, cast->arena, pam, &fault,
                        cast->error));
    beside->texts[SIDECAR_PAM].is_used = !fault;
    if (fault)
        cogpu_warn(cast->arena, warning, "the file .aux.xml was ignored: %s", fault);
    return COGPU_OK;
}

static void take_palette(const cogpu_pam *pam, cogpu_image *info) {
    uint32_t most = info->type == COGPU_U8 ? 1u << info->bits : 65536;
    if (!pam->palette || (info->type != COGPU_U8 && info->type != COGPU_U16) ||
        pam->palette_entries > most)
        return;
    info->palette = pam->palette;
    info->palette_entries = pam->palette_entries;
}

/* `beside` may be NULL. */
static cogpu_status describe(struct cast *cast, cogpu_picture *picture, cogpu_beside *beside) {
    cogpu_image *info = &picture->info;
    const cogpu_storage *storage = &picture->levels[0].storage;
    const cogpu_tiff *tiff = storage->tiff;
    uint32_t directory = storage->directory;
    const char *nodata = NULL, **warning = &info->warning;
    cogpu_pam pam;
    describe_storage(storage, info);
    TRY(optional_text(tiff, directory, TAG_IMAGE_DESCRIPTION, cast->arena, &info->description,
                      warning, cast->error));
    TRY(optional_text(tiff, directory, TAG_GDAL_NODATA, cast->arena, &nodata, warning,
                      cast->error));
    TRY(read_pam(cast, storage, beside, &pam, warning));
    TRY(cogpu_georef_read(tiff, directory, info->bands, cast->arena, &picture->georef, warning,
                          cast->error));
    if (beside)
        TRY(cogpu_beside_georef(beside, &pam, cast->arena, &picture->georef, warning, cast->error));
    describe_georef(&picture->georef, info);
    TRY(cogpu_metadata_read(tiff, directory, cast->arena, &picture->metadata, warning,
                            cast->error));
    TRY(cogpu_beside_metadata(&pam, info->rpc != NULL, cast->arena, &picture->metadata,
                              cast->error));
    info->items = picture->metadata.item_count;
    TRY(cogpu_bands_read(tiff, storage, &picture->georef, &picture->metadata, cast->arena, info,
                         &picture->bands, warning, cast->error));
    take_palette(&pam, info);
    set_nodata(picture, nodata, &pam);
    set_validity(picture);
    return COGPU_OK;
}

/* Each band of each image costs memory here, and at least a byte in a file that has pixels. */
static cogpu_status check_bands(const struct cast *cast, const cogpu_tiff *tiff) {
    uint64_t bands = 0, most = cogpu_io_bytes(tiff->io);
    if (!checked_add(most, tiff->limits.bands, &most))
        most = UINT64_MAX;
    for (uint32_t i = 0; i < cast->images; i++)
        bands += cast->image[i]->storage.bands;
    if (bands > most)
        return cogpu_fail(cast->error, COGPU_LIMIT,
                          "the %u images of the file have %llu bands together, the limit is %llu; "
                          "raise `bands` to go on",
                          cast->images, (unsigned long long)bands, (unsigned long long)most);
    return COGPU_OK;
}

/* Overviews beside the file count where it has none of its own, as in GDAL. */
static cogpu_status cast_overviews(struct cast *cast, const cogpu_beside *beside) {
    if (!cast->images || has_internal_levels(cast))
        return COGPU_OK;
    for (uint32_t i = 0; i < beside->overview_count; i++)
        TRY(cast_directories(cast, beside->overviews[i], true));
    return COGPU_OK;
}

static uint64_t count_members(const cogpu_tiff *tiff, const cogpu_beside *beside) {
    uint64_t members = tiff->directory_count;
    for (uint32_t i = 0; i < beside->overview_count; i++)
        members += beside->overviews[i]->directory_count;
    return members;
}

cogpu_status cogpu_pictures_read(const cogpu_tiff *tiff, cogpu_beside *beside, cogpu_arena *arena,
                                 cogpu_picture **pictures, uint32_t *count, cogpu_error *error) {
    struct cast cast = {.arena = arena, .error = error, .warning = tiff->warning};
    uint64_t members = count_members(tiff, beside);
    TRY(cogpu_arena_take(arena, members, sizeof *cast.members, &cast.members, error));
    TRY(cogpu_arena_take(arena, members, sizeof *cast.image, &cast.image, error));
    TRY(cogpu_arena_take(arena, members, sizeof *cast.last, &cast.last, error));
    TRY(cast_directories(&cast, tiff, false));
    TRY(cast_overviews(&cast, beside));
    TRY(check_bands(&cast, tiff));
    TRY(cogpu_arena_take(arena, cast.images, sizeof **pictures, pictures, error));
    for (uint32_t i = 0; i < cast.images; i++) {
        cogpu_picture *picture = &(*pictures)[i];
        picture->info.images = cast.images;
        TRY(gather_levels(&cast, i, picture));
        pair_masks(&cast, i, picture);
        if (i == 0)
            TRY(attach_masks(&cast, picture, beside));
        picture->info.warning = cast.warning;
        TRY(describe(&cast, picture, i == 0 ? beside : NULL));
    }
    *count = cast.images;
    return COGPU_OK;
}
