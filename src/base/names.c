/* Names of enumerations that have no other properties. Types, resampling methods and codecs have
 * tables of their own. */
#include "base/names.h"

#include "base/text.h"

#include <stdio.h>

typedef struct named_value {
    int value;
    const char *name;
    const char *alias; /* also accepted; NULL: none */
} named_value;

cogpu_status cogpu_fail_unknown_name(cogpu_error *error, const char *what, const char *name,
                                     const char *(*name_at)(unsigned index)) {
    char known[320] = "";
    size_t length = 0;
    const char *next;
    for (unsigned i = 0; (next = name_at(i)) && length < sizeof known; i++)
        if (*next)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s",
                                       length ? ", " : "", next);
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "no %s is called `%.40s`; known: %s", what,
                      name ? name : "", known);
}

static const char *find_name(const named_value *table, int value) {
    for (; table->name; table++)
        if (table->value == value)
            return table->name;
    return NULL;
}

static const named_value *find_named_value(const named_value *table, const char *name) {
    for (; name && table->name; table++)
        if (is_same_name(name, table->name) || is_same_name(name, table->alias))
            return table;
    return NULL;
}

/* cogpu_X_name and cogpu_X_parse of the enum cogpu_X, whose table is X_names. */
#define NAMED(X, what)                                                                             \
    static const char *X##_name_at(unsigned index) {                                               \
        return X##_names[index].name;                                                              \
    }                                                                                              \
    cogpu_status cogpu_##X##_parse(const char *name, cogpu_##X *value, cogpu_error *error) {       \
        const named_value *found = find_named_value(X##_names, name);                              \
        cogpu_error_clear(error);                                                                  \
        if (!found)                                                                                \
            return cogpu_fail_unknown_name(error, what, name, X##_name_at);                        \
        *value = (cogpu_##X)found->value;                                                          \
        return COGPU_OK;                                                                           \
    }
#define NAMED_VALUE(X)                                                                             \
    const char *cogpu_##X##_name(cogpu_##X value) {                                                \
        return find_name(X##_names, (int)value);                                                   \
    }

static const named_value status_names[] = {{COGPU_OK, "ok", NULL},
                                           {COGPU_INVALID_ARGUMENT, "invalid_argument", NULL},
                                           {COGPU_OUT_OF_MEMORY, "out_of_memory", NULL},
                                           {COGPU_IO_ERROR, "io_error", NULL},
                                           {COGPU_NOT_TIFF, "not_tiff", NULL},
                                           {COGPU_CORRUPT, "corrupt", NULL},
                                           {COGPU_UNSUPPORTED, "unsupported", NULL},
                                           {COGPU_LIMIT_EXCEEDED, "limit_exceeded", NULL},
                                           {COGPU_DEVICE_ERROR, "device_error", NULL},
                                           {COGPU_NOT_FOUND, "not_found", NULL},
                                           {COGPU_CANCELLED, "cancelled", NULL},
                                           {0, NULL, NULL}};
NAMED(status, "status")

const char *cogpu_status_name(cogpu_status status) {
    const char *name = find_name(status_names, (int)status);
    return name ? name : "unknown";
}

static const named_value sidecars_names[] = {{COGPU_SIDECARS_DEFAULT, "default", NULL},
                                             {COGPU_SIDECARS_NONE, "none", NULL},
                                             {COGPU_SIDECARS_ALL, "all", NULL},
                                             {0, NULL, NULL}};
NAMED(sidecars, "choice of sidecars")
NAMED_VALUE(sidecars)

static const named_value layout_names[] = {
    {COGPU_LAYOUT_STRIPS, "strips", NULL}, {COGPU_LAYOUT_TILES, "tiles", NULL}, {0, NULL, NULL}};
NAMED(layout, "layout")
NAMED_VALUE(layout)

static const named_value interleave_names[] = {{COGPU_INTERLEAVE_PIXEL, "pixel", NULL},
                                               {COGPU_INTERLEAVE_BAND, "band", NULL},
                                               {0, NULL, NULL}};
NAMED(interleave, "interleaving")
NAMED_VALUE(interleave)

static const named_value mask_source_names[] = {{COGPU_MASK_SOURCE_NONE, "none", NULL},
                                                {COGPU_MASK_SOURCE_DIRECTORY, "mask", "directory"},
                                                {COGPU_MASK_SOURCE_NODATA, "nodata", NULL},
                                                {COGPU_MASK_SOURCE_ALPHA, "alpha", NULL},
                                                {0, NULL, NULL}};
NAMED(mask_source, "mask source")
NAMED_VALUE(mask_source)

static const named_value geokey_kind_names[] = {{COGPU_GEOKEY_SHORT, "short", NULL},
                                                {COGPU_GEOKEY_DOUBLE, "double", NULL},
                                                {COGPU_GEOKEY_TEXT, "text", NULL},
                                                {0, NULL, NULL}};
NAMED(geokey_kind, "kind of GeoKey")
NAMED_VALUE(geokey_kind)

static const named_value device_kind_names[] = {{COGPU_DEVICE_CPU, "cpu", NULL},
                                                {COGPU_DEVICE_CUDA, "cuda", "gpu"},
                                                {COGPU_DEVICE_EMULATOR, "emu", "emulator"},
                                                {0, NULL, NULL}};
NAMED(device_kind, "kind of device")
NAMED_VALUE(device_kind)

static const named_value content_names[] = {
    {COGPU_CONTENT_PIXELS, "pixels", NULL}, {COGPU_CONTENT_MASK, "mask", NULL}, {0, NULL, NULL}};
NAMED(content, "content")
NAMED_VALUE(content)

static const named_value composite_names[] = {
    {COGPU_COMPOSITE_FIRST, "first", NULL}, {COGPU_COMPOSITE_LAST, "last", NULL},
    {COGPU_COMPOSITE_MIN, "min", NULL},     {COGPU_COMPOSITE_MAX, "max", NULL},
    {COGPU_COMPOSITE_MEAN, "mean", NULL},   {COGPU_COMPOSITE_MEDIAN, "median", NULL},
    {COGPU_COMPOSITE_COUNT, "count", NULL}, {0, NULL, NULL}};
NAMED(composite, "composite")
NAMED_VALUE(composite)

static const named_value vrt_sources_names[] = {{COGPU_VRT_SOURCES_DEFAULT, "default", NULL},
                                                {COGPU_VRT_SOURCES_BELOW, "below", NULL},
                                                {COGPU_VRT_SOURCES_ANY, "any", NULL},
                                                {0, NULL, NULL}};
NAMED(vrt_sources, "rule of VRT sources")
NAMED_VALUE(vrt_sources)

static const named_value overviews_names[] = {{COGPU_OVERVIEWS_DEFAULT, "default", NULL},
                                              {COGPU_OVERVIEWS_NONE, "none", NULL},
                                              {COGPU_OVERVIEWS_AUTO, "auto", NULL},
                                              {COGPU_OVERVIEWS_LISTED, "listed", NULL},
                                              {0, NULL, NULL}};
NAMED(overviews, "choice of overviews")
NAMED_VALUE(overviews)

static const named_value bigtiff_names[] = {{COGPU_BIGTIFF_AUTO, "auto", NULL},
                                            {COGPU_BIGTIFF_YES, "yes", NULL},
                                            {COGPU_BIGTIFF_NO, "no", NULL},
                                            {0, NULL, NULL}};
NAMED(bigtiff, "choice of BigTIFF")
NAMED_VALUE(bigtiff)

/* GDAL's PHOTOMETRIC creation option, in lower case. */
static const named_value photometric_names[] = {
    {COGPU_PHOTOMETRIC_DEFAULT, "default", "auto"},
    {COGPU_PHOTOMETRIC_MIN_IS_BLACK, "minisblack", "min_is_black"},
    {COGPU_PHOTOMETRIC_MIN_IS_WHITE, "miniswhite", "min_is_white"},
    {COGPU_PHOTOMETRIC_RGB, "rgb", NULL},
    {COGPU_PHOTOMETRIC_PALETTE, "palette", NULL},
    {COGPU_PHOTOMETRIC_CMYK, "cmyk", NULL},
    {COGPU_PHOTOMETRIC_YCBCR, "ycbcr", NULL},
    {COGPU_PHOTOMETRIC_CIELAB, "cielab", NULL},
    {0, NULL, NULL}};
NAMED(photometric, "photometric interpretation")
NAMED_VALUE(photometric)

static const named_value severity_names[] = {{COGPU_SEVERITY_NOTE, "note", NULL},
                                             {COGPU_SEVERITY_WARNING, "warning", NULL},
                                             {COGPU_SEVERITY_ERROR, "error", NULL},
                                             {0, NULL, NULL}};
NAMED(severity, "severity")
NAMED_VALUE(severity)

static const named_value verdict_names[] = {
    {COGPU_VERDICT_INVALID, "invalid", NULL},
    {COGPU_VERDICT_VALID_WITH_WARNINGS, "valid with warnings", NULL},
    {COGPU_VERDICT_VALID, "valid", NULL},
    {0, NULL, NULL}};
NAMED(verdict, "verdict")
NAMED_VALUE(verdict)
