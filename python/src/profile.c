/* A dict becomes a cogpu_profile: a table maps each key to a member and a function that reads it.
 */
#include "profile.h"

#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

static bool read_short(PyObject *value, const char *name, uint16_t *to) {
    uint64_t number = 0;
    if (!number_between(value, name, 0, UINT16_MAX, &number))
        return false;
    *to = (uint16_t)number;
    return true;
}

static bool read_factor(const char *name, PyObject *member, void *to, struct arena *arena) {
    (void)arena;
    return number_u32(member, name, to);
}

static bool entry_overview_factors(const struct entry *entry, PyObject *value, void *record,
                                   struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(uint32_t), read_factor);
}

/* ---- colours --------------------------------------------------------------------------------- */

static bool read_colour(const char *name, PyObject *member, void *to, struct arena *arena) {
    (void)arena;
    uint16_t *colour = to;
    PyObject *parts = members_of(member, name, 3);
    bool is_read = parts != NULL;
    for (Py_ssize_t i = 0; is_read && i < 3; i++)
        is_read = read_short(PyTuple_GetItem(parts, i), name, &colour[i]);
    Py_XDECREF(parts);
    return is_read;
}

/* Colours as Python has them, then all reds, all greens, all blues as TIFF has them. */
static bool entry_palette(const struct entry *entry, PyObject *value, void *record,
                          struct arena *arena) {
    cogpu_profile *profile = record;
    if (!read_list(entry, value, record, arena, 3 * sizeof(uint16_t), read_colour))
        return false;
    const uint16_t *colours = profile->palette;
    size_t count = profile->palette_entries;
    uint16_t *planes = arena_take(arena, count, 3 * sizeof *planes);
    for (size_t i = 0; planes && i < 3 * count; i++)
        planes[i] = colours[i % count * 3 + i / count];
    profile->palette = planes;
    return planes != NULL;
}

/* ---- georeferencing -------------------------------------------------------------------------- */

static bool entry_transform(const struct entry *entry, PyObject *value, void *record,
                            struct arena *arena) {
    (void)arena;
    cogpu_profile *profile = record;
    profile->has_transform = 1;
    return numbers_real(value, entry->name, 6, profile->transform);
}

static bool entry_rpc(const struct entry *entry, PyObject *value, void *record,
                      struct arena *arena) {
    enum { RPC_NUMBERS = 92 };
    double *rpc = arena_take(arena, RPC_NUMBERS, sizeof *rpc);
    ((cogpu_profile *)record)->rpc = rpc;
    return rpc && numbers_real(value, entry->name, RPC_NUMBERS, rpc);
}

static bool read_gcp(const char *name, PyObject *member, void *to, struct arena *arena) {
    (void)arena;
    double numbers[6] = {0};
    PyObject *parts = members_of(member, name, -1);
    Py_ssize_t count = parts ? PyTuple_Size(parts) : 0;
    bool is_read =
        parts && ((count >= 4 && count <= 6) ||
                  raise_argument("%s must have points of 4 to 6 numbers, not %zd", name, count));
    is_read = is_read && numbers_real(parts, name, count, numbers);
    const double *ground = &numbers[count == 6 ? 3 : 2];
    *(cogpu_gcp *)to = (cogpu_gcp){.struct_size = sizeof(cogpu_gcp),
                                   .column = numbers[0],
                                   .row = numbers[1],
                                   .pixel_z = count == 6 ? numbers[2] : 0,
                                   .x = ground[0],
                                   .y = ground[1],
                                   .z = ground[2]};
    Py_XDECREF(parts);
    return is_read;
}

static bool entry_gcps(const struct entry *entry, PyObject *value, void *record,
                       struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(cogpu_gcp), read_gcp);
}

/* ---- geokeys --------------------------------------------------------------------------------- */

static bool are_whole(PyObject *members) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(members); i++)
        if (!PyIndex_Check(PyTuple_GetItem(members, i)))
            return false;
    return true;
}

static bool read_shorts(const char *name, PyObject *members, cogpu_geokey *key,
                        struct arena *arena) {
    uint16_t *shorts = arena_take(arena, key->count, sizeof *shorts);
    bool is_read = shorts != NULL;
    for (uint32_t i = 0; is_read && i < key->count; i++)
        is_read = read_short(PyTuple_GetItem(members, i), name, &shorts[i]);
    key->kind = COGPU_GEOKEY_SHORT;
    key->shorts = shorts;
    return is_read;
}

static bool read_doubles(const char *name, PyObject *members, cogpu_geokey *key,
                         struct arena *arena) {
    double *doubles = arena_take(arena, key->count, sizeof *doubles);
    key->kind = COGPU_GEOKEY_DOUBLE;
    key->doubles = doubles;
    return doubles && numbers_real(members, name, key->count, doubles);
}

/* A str is a text; whole numbers are shorts, others doubles; one number may stand alone. */
static bool read_key_value(const char *name, PyObject *value, cogpu_geokey *key,
                           struct arena *arena) {
    if (PyUnicode_Check(value)) {
        key->kind = COGPU_GEOKEY_TEXT;
        key->text = arena_text(arena, value, name);
        return key->text != NULL;
    }
    PyObject *members =
        PySequence_Check(value) ? members_of(value, name, -1) : PyTuple_Pack(1, value);
    if (!members)
        return false;
    bool is_read = (uint64_t)PyTuple_Size(members) <= UINT16_MAX ||
                   raise_argument("%s must have keys of at most 65535 numbers", name);
    key->count = (uint32_t)PyTuple_Size(members);
    is_read = is_read && (are_whole(members) ? read_shorts(name, members, key, arena)
                                             : read_doubles(name, members, key, arena));
    Py_DECREF(members);
    return is_read;
}

static bool read_geokey(const char *name, PyObject *member, void *to, struct arena *arena) {
    cogpu_geokey *key = to;
    *key = (cogpu_geokey){.struct_size = sizeof *key, .name = ""};
    PyObject *parts = members_of(member, name, 3);
    bool is_read = parts && number_u32(PyTuple_GetItem(parts, 0), name, &key->id) &&
                   read_key_value(name, PyTuple_GetItem(parts, 2), key, arena);
    Py_XDECREF(parts);
    return is_read;
}

static bool entry_geokeys(const struct entry *entry, PyObject *value, void *record,
                          struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(cogpu_geokey), read_geokey);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static bool entry_band(const struct entry *entry, PyObject *value, void *record,
                       struct arena *arena) {
    (void)arena;
    uint64_t band = 0;
    if (!number_between(value, entry->name, 0, INT32_MAX, &band))
        return false;
    ((cogpu_metadata_item *)record)->band = (int32_t)band;
    return true;
}

static bool read_item(const char *name, PyObject *member, void *to, struct arena *arena) {
#define ENTRY(member, read)                                                                        \
    { #member, "metadata: " #member, offsetof(cogpu_metadata_item, member), read, 0 }
    static const struct entry entries[] = {ENTRY(domain, entry_text), ENTRY(name, entry_text),
                                           ENTRY(value, entry_text), ENTRY(role, entry_text),
                                           ENTRY(band, entry_band)};
#undef ENTRY
    cogpu_metadata_item *item = to;
    *item = (cogpu_metadata_item){.struct_size = sizeof(cogpu_metadata_item),
                                  .domain = "",
                                  .name = "",
                                  .value = "",
                                  .role = ""};
    return record_read(entries, FIELD_COUNT(entries), name, member, item, arena);
}

static bool entry_metadata(const struct entry *entry, PyObject *value, void *record,
                           struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(cogpu_metadata_item), read_item);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* The types of TIFF that a tag may have here: the size of a number, and how many make a value. */
enum number_kind { NO_NUMBER = 0, UNSIGNED, SIGNED, REAL };
struct tag_type {
    enum number_kind kind;
    size_t size, numbers;
};
static const struct tag_type tag_types[] = {
    [1] = {UNSIGNED, 1, 1},  [2] = {UNSIGNED, 1, 1}, [3] = {UNSIGNED, 2, 1}, [4] = {UNSIGNED, 4, 1},
    [5] = {UNSIGNED, 4, 2},  [6] = {SIGNED, 1, 1},   [7] = {UNSIGNED, 1, 1}, [8] = {SIGNED, 2, 1},
    [9] = {SIGNED, 4, 1},    [10] = {SIGNED, 4, 2},  [11] = {REAL, 4, 1},    [12] = {REAL, 8, 1},
    [16] = {UNSIGNED, 8, 1}, [17] = {SIGNED, 8, 1}};

static bool store_real(PyObject *value, const char *name, size_t size, void *to) {
    double number = 0;
    if (!number_real(value, name, &number))
        return false;
    float single = (float)number;
    memcpy(to, size == sizeof single ? (void *)&single : (void *)&number, size);
    return true;
}

static bool store_number(PyObject *value, const char *name, const struct tag_type *type, void *to) {
    if (type->kind == REAL)
        return store_real(value, name, type->size, to);
    uint64_t number = 0, most = UINT64_MAX >> (64 - 8 * type->size);
    int64_t least = 0;
    if (type->kind == SIGNED) {
        most >>= 1;
        least = -(int64_t)most - 1;
    }
    if (!number_between(value, name, least, most, &number))
        return false;
    switch (type->size) {
    case 1:
        *(uint8_t *)to = (uint8_t)number;
        break;
    case 2:
        *(uint16_t *)to = (uint16_t)number;
        break;
    case 4:
        *(uint32_t *)to = (uint32_t)number;
        break;
    default:
        *(uint64_t *)to = number;
    }
    return true;
}

static bool read_bytes(const char *name, PyObject *value, uint64_t due, cogpu_extra_tag *tag,
                       struct arena *arena) {
    char *from = NULL, *to;
    Py_ssize_t bytes = 0;
    if (PyBytes_AsStringAndSize(value, &from, &bytes) < 0)
        return false;
    if ((uint64_t)bytes != due)
        return raise_argument("%s must have %llu bytes for a tag of that type and count, not %zd",
                              name, (unsigned long long)due, bytes);
    tag->values = to = arena_take(arena, due, 1);
    return to && memcpy(to, from, due);
}

static bool parse_tag_numbers(const char *name, PyObject *value, const struct tag_type *type,
                              uint64_t count, cogpu_extra_tag *tag, struct arena *arena) {
    PyObject *members = members_of(value, name, (Py_ssize_t)count);
    char *to = members ? arena_take(arena, count, type->size) : NULL;
    bool is_read = to != NULL;
    for (uint64_t i = 0; is_read && i < count; i++)
        is_read =
            store_number(PyTuple_GetItem(members, (Py_ssize_t)i), name, type, to + i * type->size);
    tag->values = to;
    Py_XDECREF(members);
    return is_read;
}

static bool read_values(const char *name, PyObject *value, cogpu_extra_tag *tag,
                        struct arena *arena) {
    const struct tag_type *type = tag->type < FIELD_COUNT(tag_types) ? &tag_types[tag->type] : NULL;
    if (!type || type->kind == NO_NUMBER)
        return raise_argument("%s: type %lu of TIFF is not one that can be written", name,
                              (unsigned long)tag->type);
    if (tag->count > UINT32_MAX)
        return raise_argument("%s: %llu values are too many for a tag", name,
                              (unsigned long long)tag->count);
    uint64_t numbers = tag->count * type->numbers;
    return PyBytes_Check(value) ? read_bytes(name, value, numbers * type->size, tag, arena)
                                : parse_tag_numbers(name, value, type, numbers, tag, arena);
}

static bool parse_extra_tag(const char *name, PyObject *member, void *to, struct arena *arena) {
    cogpu_extra_tag *tag = to;
    tag->struct_size = sizeof *tag;
    PyObject *parts = members_of(member, name, 4);
    bool is_read = parts && number_u32(PyTuple_GetItem(parts, 0), name, &tag->id) &&
                   number_u32(PyTuple_GetItem(parts, 1), name, &tag->type) &&
                   number_u64(PyTuple_GetItem(parts, 2), name, &tag->count) &&
                   read_values(name, PyTuple_GetItem(parts, 3), tag, arena);
    Py_XDECREF(parts);
    return is_read;
}

static bool entry_tags(const struct entry *entry, PyObject *value, void *record,
                       struct arena *arena) {
    return read_list(entry, value, record, arena, sizeof(cogpu_extra_tag), parse_extra_tag);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static bool entry_device(const struct entry *entry, PyObject *value, void *record,
                         struct arena *arena) {
    (void)entry, (void)arena;
    cogpu_profile *profile = record;
    return device_parse(value, &profile->device, &profile->device_index);
}

NAME_ENTRY(photometric)
NAME_ENTRY(interleave)
NAME_ENTRY(overviews)
NAME_ENTRY(bigtiff)

#define AT(member) #member, #member, offsetof(cogpu_profile, member)
#define ENTRY(member, read)                                                                        \
    { AT(member), read, 0 }
#define LIST(member, count)                                                                        \
    { AT(member), entry_##member, offsetof(cogpu_profile, count) }

static const struct entry entries[] = {
    ENTRY(width, entry_u32),
    ENTRY(height, entry_u32),
    ENTRY(bands, entry_u32),
    ENTRY(type, entry_type),
    ENTRY(cog, entry_flag),
    ENTRY(strips, entry_flag),
    ENTRY(block_width, entry_u32),
    ENTRY(block_height, entry_u32),
    ENTRY(interleave, entry_interleave),
    ENTRY(codec, entry_text),
    ENTRY(compression_level, entry_int),
    ENTRY(quality, entry_int),
    ENTRY(lossless, entry_flag),
    ENTRY(max_z_error, entry_real),
    ENTRY(predictor, entry_int),
    ENTRY(bits, entry_u32),
    ENTRY(bigtiff, entry_bigtiff),
    ENTRY(sparse, entry_flag),
    ENTRY(nodata, entry_text),
    ENTRY(nan_is_nodata, entry_flag),
    ENTRY(photometric, entry_photometric),
    ENTRY(alpha_band, entry_u32),
    ENTRY(premultiplied, entry_flag),
    LIST(palette, palette_entries),
    ENTRY(mask, entry_flag),
    ENTRY(transform, entry_transform),
    ENTRY(pixel_is_point, entry_flag),
    LIST(gcps, gcp_count),
    ENTRY(rpc, entry_rpc),
    ENTRY(crs, entry_text),
    LIST(geokeys, geokey_count),
    ENTRY(epoch, entry_real),
    LIST(metadata, metadata_count),
    ENTRY(description, entry_text),
    LIST(tags, tag_count),
    ENTRY(overviews, entry_overviews),
    LIST(overview_factors, overview_factor_count),
    ENTRY(resampling, entry_resampling),
    ENTRY(threads, entry_u32),
    ENTRY(device, entry_device),
};

bool profile_read(PyObject *dict, struct given_profile *given) {
    *given = (struct given_profile){.profile = COGPU_PROFILE_INIT};
    given->engine = engine_take();
    if (given->engine && record_read(entries, FIELD_COUNT(entries), "profile", dict,
                                     &given->profile, &given->arena)) {
        given->profile.context = engine_context(given->engine);
        return true;
    }
    profile_release(given);
    return false;
}

void profile_release(struct given_profile *given) {
    engine_drop(given->engine);
    arena_release(&given->arena);
    *given = (struct given_profile){0};
}
