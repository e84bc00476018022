/*
 * Tags for metadata items, nodata, description and extra tags of a profile. The inverse of
 * metadata.c and nodata.c.
 *
 * GDAL escapes the text of an item twice, and readers unescape it twice. A character that XML
 * cannot hold, or that XML readers trim, becomes a numeric entity inside: plain text to XML. The
 * document is UTF-8; Latin-1 bytes of old items become UTF-8.
 */
#include "base/checked.h"
#include "base/text.h"
#include "image/values.h"
#include "image/write_tags.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------------------------- */

/* A text being built; without a buffer it only counts bytes. */
typedef struct xml_writer {
    char *to;
    size_t bytes;
} xml_writer;

static void append_xml_bytes(xml_writer *out, const char *text, size_t bytes) {
    if (out->to)
        memcpy(out->to + out->bytes, text, bytes);
    out->bytes += bytes;
}

static void append_text(xml_writer *out, const char *text) {
    append_xml_bytes(out, text, strlen(text));
}

static const char *entity_of(char c) {
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
}

/* Appends one character as UTF-8; returns the bytes that it had in the source. */
static size_t append_character(xml_writer *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = utf8_char_bytes(text, 4); /* a NUL is no continuation byte */
    const char latin[2] = {(char)(0xc0 | at[0] >> 6), (char)(0x80 | (at[0] & 0x3f))};
    if (bytes)
        append_xml_bytes(out, text, bytes);
    else
        append_xml_bytes(out, latin, sizeof latin);
    return bytes ? bytes : 1;
}

static void append_escaped(xml_writer *out, const char *text) {
    while (*text) {
        const char *entity = entity_of(*text);
        if (entity)
            append_text(out, entity);
        text += entity ? 1 : append_character(out, text);
    }
}

static bool is_forbidden_control(char c) {
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* Leading blanks count, but GDAL skips them unless they are escaped. */
static void put_escaped_twice(xml_writer *out, const char *text) {
    const char *word = text + strspn(text, " \t\n\r");
    while (*text) {
        char c = *text, numeric[16];
        const char *entity = entity_of(c);
        if (text < word || (is_forbidden_control(c) && c != '\n' && c != '\t')) {
            snprintf(numeric, sizeof numeric, "&#%d;", c);
            entity = numeric;
        }
        if (entity)
            append_escaped(out, entity);
        text += entity ? 1 : append_character(out, text);
    }
}

static bool has_control(const char *text) {
    while (*text && !is_forbidden_control(*text))
        text++;
    return *text;
}

/* ---- items --------------------------------------------------------------------------------- */

static const char *text_or_none(const char *text) {
    return text ? text : "";
}

static bool has_role(const cogpu_metadata_item *item, const char *role) {
    return is_same_name(text_or_none(item->role), role);
}

static cogpu_status check_item(const cogpu_metadata_item *item, uint32_t index, uint32_t bands,
                               cogpu_error *error) {
    double number;
    if (!item->name || !item->name[0])
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "item %u has no name", index);
    if (item->band < 0 || (uint32_t)item->band > bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "item %u (%.40s) names band %d, but bands are numbered 1 to %u", index,
                          item->name, (int)item->band, bands);
    const char *labels[3] = {item->name, text_or_none(item->domain), text_or_none(item->role)};
    const char *value = text_or_none(item->value);
    for (size_t i = 0; i < 3; i++)
        if (has_control(labels[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "item %u has a control character in its name, domain or role", index);
    bool is_number = has_role(item, "scale") || has_role(item, "offset");
    if (is_number && (!cogpu_number_is_whole_text(value) || !cogpu_number_parse(value, &number) ||
                      !isfinite(number)))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the %s of band %d is \"%.40s\", which is not a finite number",
                          item->role, (int)item->band, value);
    return COGPU_OK;
}

static void put_attribute(xml_writer *out, const char *name, const char *value) {
    append_text(out, name);
    append_escaped(out, value);
    append_text(out, "\"");
}

static void put_item(xml_writer *out, const cogpu_metadata_item *item) {
    char sample[16];
    put_attribute(out, "  <Item name=\"", item->name);
    if (item->band) {
        snprintf(sample, sizeof sample, "%d", (int)item->band - 1);
        put_attribute(out, " sample=\"", sample);
    }
    if (item->role && item->role[0])
        put_attribute(out, " role=\"", item->role);
    if (item->domain && item->domain[0])
        put_attribute(out, " domain=\"", item->domain);
    append_text(out, ">");
    put_escaped_twice(out, text_or_none(item->value));
    append_text(out, "</Item>\n");
}

enum { HAS_SCALE = 1, HAS_OFFSET = 2 };

/* GDAL writes scale and offset together: a band with one gets the other, too. */
static void append_missing_halves(xml_writer *out, const uint8_t *halves, uint32_t bands) {
    cogpu_metadata_item offset = {.name = "OFFSET", .value = "0", .role = "offset"};
    cogpu_metadata_item scale = {.name = "SCALE", .value = "1", .role = "scale"};
    for (uint32_t band = 1; band <= bands; band++) {
        scale.band = offset.band = (int32_t)band;
        if (halves[band] == HAS_SCALE)
            put_item(out, &offset);
        else if (halves[band] == HAS_OFFSET)
            put_item(out, &scale);
    }
}

static void put_items(xml_writer *out, const cogpu_profile *profile, const uint8_t *halves) {
    append_text(out, "<GDALMetadata>\n");
    for (uint32_t i = 0; i < profile->metadata_count; i++)
        put_item(out, &profile->metadata[i]);
    append_missing_halves(out, halves, profile->bands);
    append_text(out, "</GDALMetadata>\n");
}

static cogpu_status add_items(const cogpu_profile *profile, cogpu_arena *arena,
                              cogpu_tag_list *list, cogpu_error *error) {
    xml_writer count = {0}, out = {0};
    uint8_t *halves = NULL;
    if (!profile->metadata_count)
        return COGPU_OK;
    if (!profile->metadata)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "item_count is %u, but items is NULL",
                          profile->metadata_count);
    TRY(cogpu_arena_allocate(arena, (uint64_t)profile->bands + 1, 1, &halves, error));
    for (uint32_t i = 0; i < profile->metadata_count; i++) {
        const cogpu_metadata_item *item = &profile->metadata[i];
        TRY(check_item(item, i, profile->bands, error));
        halves[item->band] |= has_role(item, "scale") ? HAS_SCALE : 0;
        halves[item->band] |= has_role(item, "offset") ? HAS_OFFSET : 0;
    }
    put_items(&count, profile, halves);
    TRY(cogpu_arena_allocate(arena, (uint64_t)count.bytes + 1, 1, &out.to, error));
    put_items(&out, profile, halves);
    return cogpu_tag_add_text(list, arena, TAG_GDAL_METADATA, out.to, error);
}

/* ---- nodata -------------------------------------------------------------------------------- */

static cogpu_status add_nodata(const cogpu_profile *profile, cogpu_arena *arena,
                               cogpu_tag_list *list, cogpu_error *error) {
    cogpu_nodata parsed;
    double stated;
    char text[COGPU_NUMBER_CHARS];
    if (!profile->nodata)
        return COGPU_OK;
    if (!cogpu_number_is_whole_text(profile->nodata) ||
        !cogpu_number_parse(profile->nodata, &stated))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "nodata \"%.40s\" is not a number, nor nan", profile->nodata);
    cogpu_nodata_parse(profile->nodata, profile->type, &parsed);
    bool is_word = !strpbrk(profile->nodata, "0123456789");
    if (!parsed.matches || (isinf(parsed.value) && !is_word))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "nodata \"%.40s\" is not a value of type %s: choose another, or "
                          "none",
                          profile->nodata, cogpu_type_name(profile->type));
    if (profile->bits && parsed.value >= ldexp(1, (int)profile->bits))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "nodata \"%.40s\" does not fit samples of %u bits: choose "
                          "another, or none",
                          profile->nodata, profile->bits);
    if (profile->type == COGPU_TYPE_I64)
        snprintf(text, sizeof text, "%" PRId64, parsed.i64);
    else if (profile->type == COGPU_TYPE_U64)
        snprintf(text, sizeof text, "%" PRIu64, parsed.u64);
    else
        cogpu_number_format(stated, text);
    return cogpu_tag_add_text(list, arena, TAG_GDAL_NODATA, text, error);
}

/* ---- extra tags ---------------------------------------------------------------------------- */

typedef struct id_range {
    uint16_t first, last;
} id_range;

/* Tags that the writer sets itself, or that would contradict it, with the profile's field for each.
 */
static bool is_writers(uint32_t id) {
    static const id_range ours[] = {
        {254, 259},     {262, 262},     {266, 266},     {270, 270},     {273, 273},
        {277, 281},     {284, 284},     {292, 293},     {317, 317},     {320, 320},
        {322, 325},     {338, 339},     {347, 347},     {512, 521},     {530, 531},
        {559, 559},     {32995, 32998}, {33550, 33550}, {33920, 33920}, {33922, 33922},
        {34264, 34264}, {34735, 34737}, {42112, 42113}, {50674, 50674}, {50844, 50844}};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (id >= ours[i].first && id <= ours[i].last)
            return true;
    return false;
}

/* Tags whose values are offsets, meaningless in another file: free space, SubIFDs, global
 * parameters, Kodak, EXIF, GPS and interoperability IFDs. */
static bool points_elsewhere(uint32_t id, uint32_t type) {
    static const uint16_t pointers[] = {288, 289, 330, 400, 33424, 34665, 34853, 40965};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (pointers[i] == id)
            return true;
    return type == TYPE_IFD || type == TYPE_IFD8;
}

/* Minimum and maximum sample value: libtiff requires one for each band. */
static bool is_of_each_band(uint32_t id) {
    enum { S_MIN_SAMPLE_VALUE = 340, S_MAX_SAMPLE_VALUE = 341 };
    return id == S_MIN_SAMPLE_VALUE || id == S_MAX_SAMPLE_VALUE;
}

/* The profile's nodata must fit the sample type. The tag itself may hold any value, as in files of
 * other writers: then no sample is nodata. */
static bool is_allowed_tag(const cogpu_extra_tag *tag, const cogpu_profile *profile) {
    return tag->id == TAG_GDAL_NODATA && tag->type == TYPE_ASCII && !profile->nodata;
}

/* For YCbCr that is stored unchanged, the caller may describe it. */
static bool is_of_jpeg(const cogpu_profile *profile, uint32_t id) {
    bool is_meaning = id == TAG_YCBCR_COEFFICIENTS || id == TAG_REFERENCE_BLACK_WHITE;
    return is_meaning && (profile->photometric != COGPU_PHOTOMETRIC_YCBCR ||
                          (profile->codec && strcmp(profile->codec, "jpeg") == 0));
}

static cogpu_status check_tag(const cogpu_profile *profile, const cogpu_extra_tag *tag,
                              cogpu_error *error) {
    uint64_t bytes, width = cogpu_tiff_type_bytes(tag->type);
    if (tag->id > UINT16_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u does not exist; tags are numbered 0 to 65535", tag->id);
    if ((is_writers(tag->id) && !is_allowed_tag(tag, profile)) || is_of_jpeg(profile, tag->id))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u (%s) is set by the writer; use the field of the profile", tag->id,
                          cogpu_tag_name(tag->id));
    if (points_elsewhere(tag->id, tag->type))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u (%s) holds an offset into another file; leave it out", tag->id,
                          cogpu_tag_name(tag->id));
    if (!width)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u has the type %u, which TIFF does not define", tag->id, tag->type);
    if (!tag->count || !tag->values)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "tag %u has no values", tag->id);
    if (is_of_each_band(tag->id) && tag->count != profile->bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u (%s) needs one value for each of %u bands", tag->id,
                          cogpu_tag_name(tag->id), profile->bands);
    if (!checked_mul(tag->count, width, &bytes) || bytes > UINT32_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "tag %u has more than 4 GiB of values",
                          tag->id);
    if (tag->type == TYPE_ASCII && ((const char *)tag->values)[tag->count - 1] != '\0')
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "tag %u is text without the closing NUL, which its count includes",
                          tag->id);
    return COGPU_OK;
}

static cogpu_status add_extra_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                   cogpu_tag_list *list, cogpu_error *error) {
    if (profile->tag_count && !profile->tags)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "tag_count is %u, but tags is NULL",
                          profile->tag_count);
    for (uint32_t i = 0; i < profile->tag_count; i++) {
        const cogpu_extra_tag *tag = &profile->tags[i];
        TRY(check_tag(profile, tag, error));
        TRY(cogpu_tag_add(list, arena, (uint16_t)tag->id, (uint16_t)tag->type, tag->count,
                          tag->values, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_write_metadata_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                       cogpu_tag_list *list, cogpu_error *error) {
    TRY(add_items(profile, arena, list, error));
    TRY(add_nodata(profile, arena, list, error));
    if (profile->description)
        TRY(cogpu_tag_add_text(list, arena, TAG_IMAGE_DESCRIPTION, profile->description, error));
    return add_extra_tags(profile, arena, list, error);
}
