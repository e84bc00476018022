/* Names of enumerations that have no other properties: photometric interpretations and devices. */
#include "base/text.h"
#include "cogpu.h"

typedef struct named_value {
    int value;
    const char *name;
    const char *alias; /* also accepted; NULL: none */
} named_value;

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))

/* GDAL's PHOTOMETRIC creation option, in lower case. */
static const named_value photometrics[] = {
    {COGPU_PHOTOMETRIC_DEFAULT, "default", "auto"},
    {COGPU_MIN_IS_BLACK, "minisblack", "min_is_black"},
    {COGPU_MIN_IS_WHITE, "miniswhite", "min_is_white"},
    {COGPU_RGB, "rgb", NULL},
    {COGPU_PALETTE, "palette", NULL},
    {COGPU_CMYK, "cmyk", NULL},
    {COGPU_YCBCR, "ycbcr", NULL},
    {COGPU_CIELAB, "cielab", NULL},
};

static const named_value devices[] = {
    {COGPU_CPU, "cpu", NULL}, {COGPU_CUDA, "cuda", NULL}, {COGPU_EMU, "emu", NULL}};

static const char *find_name(const named_value *table, size_t count, int value) {
    for (size_t i = 0; i < count; i++)
        if (table[i].value == value)
            return table[i].name;
    return NULL;
}

static const named_value *find_named_value(const named_value *table, size_t count,
                                           const char *name) {
    for (size_t i = 0; name && i < count; i++)
        if (is_same_name(name, table[i].name) || is_same_name(name, table[i].alias))
            return &table[i];
    return NULL;
}

const char *cogpu_photometric_name(cogpu_photometric photometric) {
    return find_name(photometrics, COUNT_OF(photometrics), (int)photometric);
}

cogpu_status cogpu_photometric_parse(const char *name, cogpu_photometric *photometric) {
    const named_value *found = find_named_value(photometrics, COUNT_OF(photometrics), name);
    if (!found)
        return COGPU_ARGUMENT;
    *photometric = (cogpu_photometric)found->value;
    return COGPU_OK;
}

const char *cogpu_device_kind_name(cogpu_device_kind kind) {
    return find_name(devices, COUNT_OF(devices), (int)kind);
}

cogpu_status cogpu_device_kind_parse(const char *name, cogpu_device_kind *kind) {
    const named_value *found = find_named_value(devices, COUNT_OF(devices), name);
    if (!found)
        return COGPU_ARGUMENT;
    *kind = (cogpu_device_kind)found->value;
    return COGPU_OK;
}
