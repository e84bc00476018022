/*
 * Applies sidecars to an image in GDAL's default order of precedence: PAM before TIFF tags, tags
 * before world files. As in GDAL, the CRS in ArcGIS's x.xml replaces that of the GeoKeys.
 */
#include "image/sidecar.h"
#include "base/text.h"
#include "image/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata ---- */

static int compare_texts(const char *one, const char *other) {
    for (;; one++, other++) {
        int a = (unsigned char)ascii_lower(*one), b = (unsigned char)ascii_lower(*other);
        if (a != b || a == '\0')
            return a - b;
    }
}

/* The key of an item: band, domain, role, name. */
static int compare_items(const void *one, const void *other) {
    const cogpu_metadata_item *a = *(const cogpu_metadata_item *const *)one,
                              *b = *(const cogpu_metadata_item *const *)other;
    if (a->band != b->band)
        return a->band < b->band ? -1 : 1;
    int by_domain = compare_texts(a->domain, b->domain);
    int by_role = by_domain ? by_domain : compare_texts(a->role, b->role);
    /* A role has one value, whatever the item's name. */
    return by_role || a->role[0] ? by_role : compare_texts(a->name, b->name);
}

/* The last of equal items counts. */
static int compare_in_order(const void *one, const void *other) {
    int by_key = compare_items(one, other);
    const cogpu_metadata_item *a = *(const cogpu_metadata_item *const *)one,
                              *b = *(const cogpu_metadata_item *const *)other;
    return by_key ? by_key : a < b ? 1 : -1;
}

/* Distinct items in sorted order; returns their count. */
static uint32_t sort_items(const cogpu_metadata *metadata, const cogpu_metadata_item **sorted) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < metadata->item_count; i++)
        sorted[i] = &metadata->items[i];
    if (metadata->item_count)
        qsort(sorted, metadata->item_count, sizeof *sorted, compare_in_order);
    for (uint32_t i = 0; i < metadata->item_count; i++)
        if (i == 0 || compare_items(&sorted[i], &sorted[i - 1]) != 0)
            sorted[count++] = sorted[i];
    return count;
}

/* Items of PAM replace those of the TIFF with the same key, in their place, and follow the others.
 */
cogpu_status cogpu_sidecar_metadata(const cogpu_pam *pam, bool has_rpc, cogpu_arena *arena,
                                    cogpu_metadata *metadata, cogpu_error *error) {
    const cogpu_metadata_item **sorted = NULL;
    bool *is_placed = NULL;
    cogpu_metadata_item *items = NULL;
    uint64_t most = (uint64_t)metadata->item_count + pam->metadata.item_count;
    if (!pam->metadata.item_count)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(arena, pam->metadata.item_count, sizeof *sorted, &sorted, error));
    TRY(cogpu_arena_allocate(arena, pam->metadata.item_count, sizeof *is_placed, &is_placed,
                             error));
    TRY(cogpu_arena_allocate(arena, most, sizeof *items, &items, error));
    uint32_t distinct = sort_items(&pam->metadata, sorted), count = 0;
    for (uint32_t i = 0; i < metadata->item_count; i++) {
        const cogpu_metadata_item *item = &metadata->items[i];
        const cogpu_metadata_item **found =
            bsearch(&item, sorted, distinct, sizeof *sorted, compare_items);
        items[count++] = found ? **found : *item;
        if (found)
            is_placed[*found - pam->metadata.items] = true;
    }
    for (uint32_t i = 0; i < pam->metadata.item_count; i++) {
        const cogpu_metadata_item *item = &pam->metadata.items[i];
        const cogpu_metadata_item **found =
            bsearch(&item, sorted, distinct, sizeof *sorted, compare_items);
        bool is_rpc = has_rpc && item->band == 0 && is_same_name(item->domain, "RPC");
        if (found && *found == item && !is_placed[i] && !is_rpc)
            items[count++] = *item;
    }
    *metadata = (cogpu_metadata){.items = items, .item_count = count};
    return COGPU_OK;
}

/* ---- CRS ---- */

/* Keeps the CRS of the GeoKeys if PROJ cannot parse the text. */
static cogpu_status set_crs(cogpu_sidecar_data *beside, const char *text, const char *where,
                            cogpu_arena *arena, cogpu_georef *georef, const char **warning,
                            cogpu_error *error) {
    cogpu_crs crs;
    cogpu_error why;
    cogpu_error_clear(&why);
    cogpu_status status = cogpu_crs_from_text(text, beside->registry, arena, &crs, &why);
    if (status == COGPU_OUT_OF_MEMORY)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "%s", why.message);
    if (status != COGPU_OK) {
        cogpu_warn(arena, warning, "the CRS of the %s was ignored: %s", where, why.message);
        return COGPU_OK;
    }
    georef->crs = crs;
    georef->crs_text = text;
    georef->has_crs = true;
    return COGPU_OK;
}

static cogpu_status apply_arcgis(cogpu_sidecar_data *beside, cogpu_arena *arena,
                                 cogpu_georef *georef, const char **warning, cogpu_error *error) {
    cogpu_sidecar_text *file = &beside->texts[SIDECAR_ARCGIS];
    char code[COGPU_CODE_CHARS];
    const char *text;
    if (!file->text.bytes || !cogpu_arcgis_code(file->text, code))
        return COGPU_OK;
    file->is_used = true;
    TRY(cogpu_arena_text(arena, code, strlen(code), &text, error));
    return set_crs(beside, text, "file .xml", arena, georef, warning, error);
}

/* ---- georeferencing ---- */

/* A world file applies if the TIFF has no transform, and takes precedence over GCPs. */
static void apply_world(cogpu_sidecar_data *beside, cogpu_arena *arena, cogpu_georef *georef,
                        const char **warning) {
    for (int i = SIDECAR_WORLD_SHORT; i <= SIDECAR_WORLD_WLD && !georef->has_transform; i++) {
        cogpu_sidecar_text *file = &beside->texts[i];
        double transform[6];
        if (!file->text.bytes)
            continue;
        if (!cogpu_world_parse(file->text, transform)) {
            cogpu_warn(
                arena, warning,
                "a world file was ignored: its six numbers give pixels no finite position and "
                "size");
            continue;
        }
        file->is_used = true;
        georef->has_transform = true;
        memcpy(georef->transform, transform, sizeof transform);
        georef->gcps = NULL;
        georef->gcp_count = 0;
    }
}

/* GCPs of PAM do not replace a transform of the TIFF. */
static cogpu_status apply_pam(cogpu_sidecar_data *beside, const cogpu_pam *pam, cogpu_arena *arena,
                              cogpu_georef *georef, const char **warning, cogpu_error *error) {
    if (pam->has_transform) {
        georef->has_transform = true;
        memcpy(georef->transform, pam->transform, sizeof georef->transform);
        for (int i = SIDECAR_WORLD_SHORT; i <= SIDECAR_WORLD_WLD; i++)
            beside->texts[i].is_used = false;
    }
    if (pam->gcp_count) {
        georef->gcps = pam->gcps;
        georef->gcp_count = pam->gcp_count;
    }
    const char *srs = pam->gcp_count && pam->gcp_srs && pam->gcp_srs[0] ? pam->gcp_srs : pam->srs;
    if (!srs)
        return COGPU_OK;
    TRY(set_crs(beside, srs, "file .aux.xml", arena, georef, warning, error));
    if (pam->epoch != 0)
        georef->crs.epoch = pam->epoch;
    return COGPU_OK;
}

/* ---- RPC ---- */

/* The first file that exists counts; a malformed one keeps the tag's values. */
static cogpu_status apply_rpc_files(cogpu_sidecar_data *beside, cogpu_arena *arena,
                                    cogpu_georef *georef, const char **warning,
                                    cogpu_error *error) {
    double rpc[COGPU_RPC_NUMBERS], *kept = NULL;
    for (int i = SIDECAR_RPB; i <= SIDECAR_RPC; i++) {
        cogpu_sidecar_text *file = &beside->texts[i];
        if (!file->text.bytes)
            continue;
        bool is_valid = i == SIDECAR_RPB ? cogpu_rpb_parse(file->text, rpc)
                                         : cogpu_rpc_text_parse(file->text, rpc);
        file->is_used = true;
        if (!is_valid) {
            cogpu_warn(arena, warning, "the RPC file was ignored: a coefficient is missing");
            return COGPU_OK;
        }
        TRY(cogpu_arena_allocate(arena, COGPU_RPC_NUMBERS, sizeof *kept, &kept, error));
        memcpy(kept, rpc, sizeof rpc);
        georef->rpc = kept;
        return COGPU_OK;
    }
    return COGPU_OK;
}

static cogpu_status apply_rpc_items(const cogpu_pam *pam, cogpu_arena *arena, cogpu_georef *georef,
                                    cogpu_error *error) {
    double rpc[COGPU_RPC_NUMBERS], *kept = NULL;
    if (georef->rpc || !cogpu_rpc_items_parse(&pam->metadata, rpc))
        return COGPU_OK;
    TRY(cogpu_arena_allocate(arena, COGPU_RPC_NUMBERS, sizeof *kept, &kept, error));
    memcpy(kept, rpc, sizeof rpc);
    georef->rpc = kept;
    return COGPU_OK;
}

cogpu_status cogpu_sidecar_georef(cogpu_sidecar_data *beside, const cogpu_pam *pam,
                                  cogpu_arena *arena, cogpu_georef *georef, const char **warning,
                                  cogpu_error *error) {
    apply_world(beside, arena, georef, warning);
    TRY(apply_arcgis(beside, arena, georef, warning, error));
    TRY(apply_pam(beside, pam, arena, georef, warning, error));
    TRY(apply_rpc_files(beside, arena, georef, warning, error));
    return apply_rpc_items(pam, arena, georef, error);
}
