/*
 * The CRS that a directory's GeoKeys name: its model, code and citation, without PROJ.
 *
 * The model type decides, as in GDAL: a projected file that also names its geographic base is
 * normal, and a geographic file with a projected code is geographic. Keys without a model, and
 * without a projected CRS, describe an engineering CRS, whatever else they name.
 */
#include "image/geokey.h"

#include <string.h>

enum { MODEL_ENGINEERING, MODEL_PROJECTED, MODEL_GEOGRAPHIC, MODEL_GEOCENTRIC };

static uint32_t model_of_georef(const cogpu_georef *georef) {
    uint32_t model = cogpu_geokey_short(georef, KEY_MODEL_TYPE);
    if (model >= MODEL_PROJECTED && model <= MODEL_GEOCENTRIC)
        return model;
    const char *citation = cogpu_geokey_text(georef, KEY_PROJECTED_CITATION);
    bool has_esri_text = citation && strstr(citation, "ESRI PE String = PROJCS") == citation;
    return cogpu_geokey_short(georef, KEY_PROJECTED_CRS) || has_esri_text ? MODEL_PROJECTED
                                                                          : MODEL_ENGINEERING;
}

/* Projected codes beyond EPSG's range are Esri's. */
static const char *authority_of(uint32_t code, uint32_t model) {
    if (code == 0 || code == KEY_USER_DEFINED)
        return "";
    return model == MODEL_PROJECTED && code >= 53000 && code < 55000 ? "ESRI" : "EPSG";
}

static const char *first_text(const cogpu_georef *georef, uint32_t id, uint32_t other) {
    const char *text = cogpu_geokey_text(georef, id);
    if (!text)
        text = cogpu_geokey_text(georef, other);
    return text ? text : "";
}

void cogpu_crs_from_keys(cogpu_georef *georef) {
    static const char *const models[] = {"engineering", "projected", "geographic", "geocentric"};
    uint32_t model = model_of_georef(georef);
    uint32_t vertical = cogpu_geokey_short(georef, KEY_VERTICAL_CRS);
    bool is_projected = model == MODEL_PROJECTED;
    bool is_engineering = model == MODEL_ENGINEERING;
    uint32_t code = is_engineering ? 0
                                   : cogpu_geokey_short(georef, is_projected ? KEY_PROJECTED_CRS
                                                                             : KEY_GEODETIC_CRS);
    cogpu_crs *crs = &georef->crs;
    *crs = (cogpu_crs){.model = models[model], .authority = authority_of(code, model)};
    crs->code = crs->authority[0] ? code : 0;
    crs->vertical = vertical == KEY_USER_DEFINED ? 0 : vertical;
    crs->name = is_projected     ? first_text(georef, KEY_CITATION, KEY_PROJECTED_CITATION)
                : is_engineering ? first_text(georef, KEY_CITATION, KEY_GEODETIC_CITATION)
                                 : first_text(georef, KEY_GEODETIC_CITATION, KEY_CITATION);
    if (!cogpu_geokey_double(georef, KEY_EPOCH, &crs->epoch))
        crs->epoch = 0;
    georef->has_crs = georef->key_count > 0;
}
