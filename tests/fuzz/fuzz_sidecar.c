/*
 * Input: a byte that chooses a reader, then the text of a sidecar: PAM, a world file, RPB, lines of
 * RPC, ArcGIS metadata. Values are finite where they must be, and texts no longer than the
 * document.
 */
#include "image/sidecar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition) {
    if (!condition)
        abort();
}

static void check_transform(const double transform[6]) {
    for (int i = 0; i < 6; i++)
        need(isfinite(transform[i]));
}

static void check_rpc(bool is_valid, const double *rpc) {
    for (int i = 2; is_valid && i < COGPU_RPC_NUMBERS; i++)
        need(isfinite(rpc[i]));
}

static void check_pam(const cogpu_pam *pam, size_t size) {
    if (pam->has_transform)
        check_transform(pam->transform);
    for (uint32_t i = 0; i < pam->gcp_count; i++)
        need(isfinite(pam->gcps[i].x) || pam->gcps[i].id == NULL);
    for (uint32_t i = 0; i < pam->metadata.item_count; i++) {
        const cogpu_metadata_item *item = &pam->metadata.items[i];
        need(strlen(item->value) <= size && item->band >= 0 && item->band <= BANDS && item->name &&
             item->domain && item->role);
    }
    for (uint32_t i = 0; i < BANDS; i++)
        need(!pam->nodata[i] || strlen(pam->nodata[i]) <= size + 32);
    need(!pam->srs || strlen(pam->srs) <= size);
    for (uint32_t i = 0; i < 3 * pam->palette_entries; i++)
        need(pam->palette[i] % 257 == 0);
}

static void read_pam(xml_slice text, cogpu_arena *arena) {
    const cogpu_pam_image image = {.height = 100, .bands = BANDS, .pixels_per_inch = {10, 20}};
    cogpu_pam pam;
    cogpu_error error;
    const char *fault;
    static const cogpu_metadata_item first = {.struct_size = sizeof(cogpu_metadata_item),
                                              .domain = "",
                                              .name = "DESCRIPTION",
                                              .value = "v",
                                              .role = "description",
                                              .band = 1};
    cogpu_metadata metadata = {.items = &first, .item_count = 1};
    double rpc[COGPU_RPC_NUMBERS];
    if (cogpu_pam_parse(text, &image, arena, &pam, &fault, &error) != COGPU_OK)
        return;
    check_pam(&pam, text.bytes);
    check_rpc(cogpu_rpc_items_parse(&pam.metadata, rpc), rpc);
    if (cogpu_sidecar_metadata(&pam, false, arena, &metadata, &error) == COGPU_OK)
        need(metadata.item_count >= 1 && metadata.item_count <= pam.metadata.item_count + 1);
}

static void read_text(uint8_t kind, xml_slice text, cogpu_arena *arena) {
    double transform[6], rpc[COGPU_RPC_NUMBERS];
    char code[COGPU_CODE_CHARS];
    switch (kind % 5) {
    case 0:
        read_pam(text, arena);
        break;
    case 1:
        if (cogpu_world_parse(text, transform))
            check_transform(transform);
        break;
    case 2:
        check_rpc(cogpu_rpb_parse(text, rpc), rpc);
        break;
    case 3:
        check_rpc(cogpu_rpc_text_parse(text, rpc), rpc);
        break;
    default:
        need(!cogpu_arcgis_code(text, code) || strlen(code) < sizeof code);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cogpu_arena arena;
    if (size == 0)
        return 0;
    char *text = malloc(size); /* so that a read past the end is seen */
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    cogpu_arena_open(&arena, 64 << 20);
    read_text(data[0], (xml_slice){text, size - 1}, &arena);
    cogpu_arena_close(&arena);
    free(text);
    return 0;
}
