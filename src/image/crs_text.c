/*
 * CRS definitions as text (code, WKT, PROJJSON, PROJ string) from users and sidecars, parsed by
 * PROJ.
 */
#include "image/crs_text.h"

#include <proj_experimental.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* WKT is a few kilobytes. */
enum { TEXT_BYTES_MAX = 1 << 20 };

/* PROJ matches parts of names, "foo" in Amersfoort: a name must be complete here. */
static bool is_guessed(const char *words, const PJ *crs) {
    const char *name = proj_get_name(crs);
    return !strpbrk(words, ":[={") && (!name || strcasecmp(name, words) != 0);
}

/* Without +type=crs PROJ parses a PROJ string as an operation. */
cogpu_status cogpu_crs_create(cogpu_crs_database *registry, const char *words, cogpu_arena *arena,
                              PJ **crs, cogpu_error *error) {
    char *text = NULL;
    size_t bytes = strlen(words);
    bool is_string = strstr(words, "proj=") || strstr(words, "init=");
    const char *type =
        is_string && !strstr(words, "type=crs") && !strchr(words, '[') ? " +type=crs" : "";
    TRY(cogpu_arena_allocate(arena, (uint64_t)bytes + strlen(type) + 1, 1, &text, error));
    memcpy(text, words, bytes);
    memcpy(text + bytes, type, strlen(type));
    *crs = proj_create(registry, text);
    if (*crs && proj_is_crs(*crs) && !is_guessed(words, *crs))
        return COGPU_OK;
    if (*crs)
        proj_destroy(*crs);
    *crs = NULL;
    return cogpu_fail(
        error, COGPU_INVALID_ARGUMENT,
        "PROJ does not know the CRS \"%.80s\"; use a code such as EPSG:4326, WKT or a "
        "PROJ string",
        words);
}

/* PROJ objects of one call. */
typedef struct parts {
    PJ *crs, *flat, *height;
} parts;

static const char *model_of_type(PJ_TYPE type) {
    switch (type) {
    case PJ_TYPE_PROJECTED_CRS:
        return "projected";
    case PJ_TYPE_GEOGRAPHIC_2D_CRS:
    case PJ_TYPE_GEOGRAPHIC_3D_CRS:
        return "geographic";
    case PJ_TYPE_GEOCENTRIC_CRS:
        return "geocentric";
    default:
        return "";
    }
}

/* 0 if the object has no numeric code. */
static uint32_t object_code(const PJ *object) {
    const char *code = object ? proj_get_id_code(object, 0) : NULL;
    char *end;
    if (!code || !proj_get_id_auth_name(object, 0))
        return 0;
    unsigned long number = strtoul(code, &end, 10);
    return *end || number > INT32_MAX ? 0 : (uint32_t)number;
}

static PJ *without_shift(cogpu_crs_database *registry, PJ *crs) {
    PJ *source =
        proj_get_type(crs) == PJ_TYPE_BOUND_CRS ? proj_get_source_crs(registry, crs) : NULL;
    if (!source)
        return crs;
    proj_destroy(crs);
    return source;
}

static void take_apart(cogpu_crs_database *registry, parts *of) {
    bool is_compound = proj_get_type(of->crs) == PJ_TYPE_COMPOUND_CRS;
    of->flat =
        is_compound ? proj_crs_get_sub_crs(registry, of->crs, 0) : proj_clone(registry, of->crs);
    of->height = is_compound ? proj_crs_get_sub_crs(registry, of->crs, 1) : NULL;
    if (of->flat)
        of->flat = without_shift(registry, of->flat);
}

/* A compound CRS has a code if both parts have one. */
static cogpu_status describe_parts(const parts *of, cogpu_arena *arena, cogpu_crs *crs,
                                   cogpu_error *error) {
    const char *name = proj_get_name(of->crs);
    uint32_t code = object_code(of->flat), vertical = object_code(of->height);
    *crs = (cogpu_crs){
        .authority = "", .model = model_of_type(proj_get_type(of->flat)), .external = 1};
    TRY(cogpu_arena_text(arena, name ? name : "", name ? strlen(name) : 0, &crs->name, error));
    if (!code || (of->height && !vertical))
        return COGPU_OK;
    const char *authority = proj_get_id_auth_name(of->flat, 0);
    crs->code = code;
    crs->vertical = vertical;
    return cogpu_arena_text(arena, authority, strlen(authority), &crs->authority, error);
}

/* The text comes from an untrusted file: it must not make PROJ open other files. */
static bool is_safe_text(const char *text) {
    return strlen(text) <= TEXT_BYTES_MAX && !strstr(text, "init=");
}

cogpu_status cogpu_crs_from_text(const char *text, cogpu_crs_database **registry,
                                 cogpu_arena *arena, cogpu_crs *crs, cogpu_error *error) {
    parts of = {0};
    if (!is_safe_text(text))
        return cogpu_fail(error, COGPU_UNSUPPORTED, "its text is too long, or has \"init=\"");
    if (!*registry)
        TRY(cogpu_crs_database_open(registry, error));
    TRY(cogpu_crs_create(*registry, text, arena, &of.crs, error));
    take_apart(*registry, &of);
    cogpu_status status =
        of.flat ? describe_parts(&of, arena, crs, error)
                : cogpu_fail(error, COGPU_UNSUPPORTED, "PROJ cannot decompose \"%.60s\"", text);
    proj_destroy(of.height);
    proj_destroy(of.flat);
    proj_destroy(of.crs);
    return status;
}
