/*
 * Replaces write_crs.c in a build without PROJ: GeoKeys for an EPSG code.
 *
 * Only the EPSG database knows whether a code is projected or geographic. The ranges here hold one
 * kind alone (version 12 of the database), and 3857.
 */
#include "base/text.h"
#include "image/geokey.h"
#include "image/values.h"
#include "image/write_tags.h"

#include <string.h>

enum { PROJECTED = 1, GEOGRAPHIC = 2 };

typedef struct code_range {
    uint16_t first, last, model;
} code_range;

static uint16_t model_of_code(uint32_t code) {
    static const code_range ranges[] = {
        {2000, 3816, PROJECTED},  {3825, 3854, PROJECTED},   {3857, 3857, PROJECTED},
        {4001, 4016, GEOGRAPHIC}, {4120, 4216, GEOGRAPHIC},  {4218, 4326, GEOGRAPHIC},
        {4600, 4646, GEOGRAPHIC}, {4657, 4765, GEOGRAPHIC},  {6318, 6318, GEOGRAPHIC},
        {7844, 7844, GEOGRAPHIC}, {20047, 32766, PROJECTED},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].model;
    return 0;
}

/* "EPSG:4326"; 0 for any other text. */
static uint32_t parse_epsg_code(const char *crs) {
    uint32_t code = 0;
    char authority[6];
    memcpy(authority, "     ", sizeof authority);
    for (size_t i = 0; i < 5 && *crs; i++)
        authority[i] = *crs++;
    if (!is_same_name(authority, "EPSG:"))
        return 0;
    for (; ascii_is_digit(*crs) && code < KEY_USER_DEFINED; crs++)
        code = code * 10 + (uint32_t)(*crs - '0');
    return *crs || code >= KEY_USER_DEFINED ? 0 : code;
}

cogpu_status cogpu_write_crs_keys(const char *crs, cogpu_arena *arena, const cogpu_geokey **keys,
                                  uint32_t *count, cogpu_error *error) {
    struct {
        cogpu_geokey keys[2];
        uint16_t values[2];
    } *made = NULL;
    uint32_t code = parse_epsg_code(crs);
    uint16_t model = model_of_code(code);
    if (!model)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "this build has no PROJ and cannot parse \"%.60s\"; use `geokeys`, "
                          "or install libproj and build again",
                          crs);
    TRY(cogpu_arena_allocate(arena, 1, sizeof *made, &made, error));
    made->values[0] = model;
    made->values[1] = (uint16_t)code;
    for (size_t i = 0; i < 2; i++)
        made->keys[i] = (cogpu_geokey){
            .kind = COGPU_GEOKEY_SHORT, .count = 1, .shorts = &made->values[i], .name = ""};
    made->keys[0].id = KEY_MODEL_TYPE;
    made->keys[1].id = model == PROJECTED ? KEY_PROJECTED_CRS : KEY_GEODETIC_CRS;
    *keys = made->keys;
    *count = 2;
    return COGPU_OK;
}
