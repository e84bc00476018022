/*
 * Takes metadata items, nodata, description and extra tags of a profile, hands on their tags.
 * metadata.c and nodata.c are its twins.
 *
 * GDAL escapes the text of an item twice and everyone reads it so. What XML cannot say, or what
 * readers of XML would trim, is a numeric entity within: to XML it is but text. The document is
 * UTF-8; old files have items in Latin-1, whose bytes become UTF-8.
 */
#include "base/checked.h"
#include "image/describe.h"
#include "image/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---------------------------------------------------------------------------------- */

/* A text in the making; without room it only counts. */
typedef struct writer {
    char *to;
    size_t bytes;
} writer;

static void put(writer *out, const char *text, size_t bytes) {
    if (out->to)
        memcpy(out->to + out->bytes, text, bytes);
    out->bytes += bytes;
}

static void put_text(writer *out, const char *text) {
    put(out, text, strlen(text));
}

static const char *entity_of(char c) {
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
}

/* Bytes of the character that begins here; 0 where it is not UTF-8. */
static size_t utf8_bytes(const unsigned char *at) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    uint32_t code = at[0] & (bytes == 1 ? 0x7fu : 0x7fu >> bytes);
    if (at[0] >= 0xf8 || (at[0] >= 0x80 && at[0] < 0xc0))
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[bytes] || code > 0x10ffff || is_surrogate ? 0 : bytes;
}

/* One character, as UTF-8; returns how many bytes of the text it had. */
static size_t put_character(writer *out, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = utf8_bytes(at);
    const char latin[2] = {(char)(0xc0 | at[0] >> 6), (char)(0x80 | (at[0] & 0x3f))};
    if (bytes)
        put(out, text, bytes);
    else
        put(out, latin, sizeof latin);
    return bytes ? bytes : 1;
}

static void put_escaped(writer *out, const char *text) {
    while (*text) {
        const char *entity = entity_of(*text);
        if (entity)
            put_text(out, entity);
        text += entity ? 1 : put_character(out, text);
    }
}

static bool is_control(char c) {
    return (unsigned char)c < ' ' || c == 0x7f;
}

/* Blanks at the start count, but GDAL passes over them where they stand as they are. */
static void put_escaped_twice(writer *out, const char *text) {
    const char *word = text + strspn(text, " \t\n\r");
    while (*text) {
        char c = *text, numeric[16];
        const char *entity = entity_of(c);
        if (text < word || (is_control(c) && c != '\n' && c != '\t')) {
            snprintf(numeric, sizeof numeric, "&#%d;", c);
            entity = numeric;
        }
        if (entity)
            put_escaped(out, entity);
        text += entity ? 1 : put_character(out, text);
    }
}

static bool has_control(const char *text) {
    while (*text && !is_control(*text))
        text++;
    return *text;
}

/* ---- items --------------------------------------------------------------------------------- */

static const char *text_or_none(const char *text) {
    return text ? text : "";
}

static bool has_role(const cogpu_item *item, const char *role) {
    return cogpu_text_same(text_or_none(item->role), role);
}

static cogpu_status check_item(const cogpu_item *item, uint32_t index, uint32_t bands,
                               cogpu_error *error) {
    double number;
    if (!item->name || !item->name[0])
        return cogpu_fail(error, COGPU_ARGUMENT, "item %u has no name", index);
    if (item->band < 0 || (uint32_t)item->band > bands)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "item %u (%.40s) is of band %d, but bands go from 1 to %u", index,
                          item->name, (int)item->band, bands);
    const char *labels[3] = {item->name, text_or_none(item->domain), text_or_none(item->role)};
    const char *value = text_or_none(item->value);
    for (size_t i = 0; i < 3; i++)
        if (has_control(labels[i]))
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "item %u has a control character in its name, domain or role", index);
    bool is_number = has_role(item, "scale") || has_role(item, "offset");
    if (is_number && (!cogpu_number_is_whole_text(value) || !cogpu_number_parse(value, &number) ||
                      !isfinite(number)))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the %s of band %d is \"%.40s\", which is not a finite number",
                          item->role, (int)item->band, value);
    return COGPU_OK;
}

static void put_attribute(writer *out, const char *name, const char *value) {
    put_text(out, name);
    put_escaped(out, value);
    put_text(out, "\"");
}

static void put_item(writer *out, const cogpu_item *item) {
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
    put_text(out, ">");
    put_escaped_twice(out, text_or_none(item->value));
    put_text(out, "</Item>\n");
}

enum { HAS_SCALE = 1, HAS_OFFSET = 2 };

/* Scale and offset go together, as GDAL writes them: a band that has one gets the other. */
static void put_other_halves(writer *out, const uint8_t *halves, uint32_t bands) {
    cogpu_item offset = {.name = "OFFSET", .value = "0", .role = "offset"};
    cogpu_item scale = {.name = "SCALE", .value = "1", .role = "scale"};
    for (uint32_t band = 1; band <= bands; band++) {
        scale.band = offset.band = (int32_t)band;
        if (halves[band] == HAS_SCALE)
            put_item(out, &offset);
        else if (halves[band] == HAS_OFFSET)
            put_item(out, &scale);
    }
}

static void put_items(writer *out, const cogpu_profile *profile, const uint8_t *halves) {
    put_text(out, "<GDALMetadata>\n");
    for (uint32_t i = 0; i < profile->item_count; i++)
        put_item(out, &profile->items[i]);
    put_other_halves(out, halves, profile->bands);
    put_text(out, "</GDALMetadata>\n");
}

static cogpu_status add_items(const cogpu_profile *profile, cogpu_arena *arena,
                              cogpu_tag_list *list, cogpu_error *error) {
    writer count = {0}, out = {0};
    uint8_t *halves = NULL;
    if (!profile->item_count)
        return COGPU_OK;
    if (!profile->items)
        return cogpu_fail(error, COGPU_ARGUMENT, "item_count is %u, but items is NULL",
                          profile->item_count);
    TRY(cogpu_arena_take(arena, (uint64_t)profile->bands + 1, 1, &halves, error));
    for (uint32_t i = 0; i < profile->item_count; i++) {
        const cogpu_item *item = &profile->items[i];
        TRY(check_item(item, i, profile->bands, error));
        halves[item->band] |= has_role(item, "scale") ? HAS_SCALE : 0;
        halves[item->band] |= has_role(item, "offset") ? HAS_OFFSET : 0;
    }
    put_items(&count, profile, halves);
    TRY(cogpu_arena_take(arena, (uint64_t)count.bytes + 1, 1, &out.to, error));
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
        return cogpu_fail(error, COGPU_ARGUMENT, "nodata \"%.40s\" is not a number, nor nan",
                          profile->nodata);
    cogpu_nodata_parse(profile->nodata, profile->type, &parsed);
    bool is_word = !strpbrk(profile->nodata, "0123456789");
    if (!parsed.matches || (isinf(parsed.value) && !is_word))
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "nodata \"%.40s\" is no value that a sample of %s can have: choose another, or "
            "none",
            profile->nodata, cogpu_type_name(profile->type));
    if (profile->bits && parsed.value >= ldexp(1, (int)profile->bits))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "nodata \"%.40s\" is no value that a sample of %u bits can have: choose "
                          "another, or none",
                          profile->nodata, profile->bits);
    if (profile->type == COGPU_I64)
        snprintf(text, sizeof text, "%" PRId64, parsed.i64);
    else if (profile->type == COGPU_U64)
        snprintf(text, sizeof text, "%" PRIu64, parsed.u64);
    else
        cogpu_number_format(stated, text);
    return cogpu_tag_add_text(list, arena, TAG_GDAL_NODATA, text, error);
}

/* ---- extra tags ---------------------------------------------------------------------------- */

typedef struct id_range {
    uint16_t first, last;
} id_range;

/* What the writer makes itself, or what would contradict it, with the profile's fields for it. */
static bool is_ours(uint32_t id) {
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

/* Free space, SubIFDs, global parameters; directories of Kodak, EXIF, GPS and its interoperability:
 * offsets that mean nothing in another file. */
static bool points_elsewhere(uint32_t id, uint32_t type) {
    static const uint16_t pointers[] = {288, 289, 330, 400, 33424, 34665, 34853, 40965};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (pointers[i] == id)
            return true;
    return type == TYPE_IFD || type == TYPE_IFD8;
}

/* The least and the largest sample of each band: libtiff opens no file that has more or fewer. */
static bool is_of_each_band(uint32_t id) {
    enum { S_MIN_SAMPLE_VALUE = 340, S_MAX_SAMPLE_VALUE = 341 };
    return id == S_MIN_SAMPLE_VALUE || id == S_MAX_SAMPLE_VALUE;
}

/* The profile's nodata must be a value that samples can have. The tag may state another one, as
 * files of other writers do: a reader then finds no sample that is nodata. */
static bool may_be_given(const cogpu_extra_tag *tag, const cogpu_profile *profile) {
    return tag->id == TAG_GDAL_NODATA && tag->type == TYPE_ASCII && !profile->nodata;
}

/* Of YCbCr that is stored as it comes, the caller may say what it means. */
static bool is_of_jpeg(const cogpu_profile *profile, uint32_t id) {
    bool is_meaning = id == TAG_YCBCR_COEFFICIENTS || id == TAG_REFERENCE_BLACK_WHITE;
    return is_meaning && (profile->photometric != COGPU_YCBCR ||
                          (profile->codec && strcmp(profile->codec, "jpeg") == 0));
}

static cogpu_status check_tag(const cogpu_profile *profile, const cogpu_extra_tag *tag,
                              cogpu_error *error) {
    uint64_t bytes, width = cogpu_tiff_type_bytes(tag->type);
    if (tag->id > UINT16_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "there is no tag %u; they go from 0 to 65535",
                          tag->id);
    if ((is_ours(tag->id) && !may_be_given(tag, profile)) || is_of_jpeg(profile, tag->id))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %u (%s) is made by the writer; set what it says in the profile",
                          tag->id, cogpu_tag_name(tag->id));
    if (points_elsewhere(tag->id, tag->type))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %u (%s) points to another place of a file, which is not copied with "
                          "it; leave it out",
                          tag->id, cogpu_tag_name(tag->id));
    if (!width)
        return cogpu_fail(error, COGPU_ARGUMENT, "tag %u is of type %u, which TIFF does not have",
                          tag->id, tag->type);
    if (!tag->count || !tag->values)
        return cogpu_fail(error, COGPU_ARGUMENT, "tag %u has no values", tag->id);
    if (is_of_each_band(tag->id) && tag->count != profile->bands)
        return cogpu_fail(error, COGPU_ARGUMENT, "tag %u (%s) has a value for each of %u bands",
                          tag->id, cogpu_tag_name(tag->id), profile->bands);
    if (!checked_mul(tag->count, width, &bytes) || bytes > UINT32_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "tag %u has more than 4 GiB of values", tag->id);
    if (tag->type == TYPE_ASCII && ((const char *)tag->values)[tag->count - 1] != '\0')
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %u is text without the closing NUL, which its count includes",
                          tag->id);
    return COGPU_OK;
}

static cogpu_status add_extra_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                   cogpu_tag_list *list, cogpu_error *error) {
    if (profile->tag_count && !profile->tags)
        return cogpu_fail(error, COGPU_ARGUMENT, "tag_count is %u, but tags is NULL",
                          profile->tag_count);
    for (uint32_t i = 0; i < profile->tag_count; i++) {
        const cogpu_extra_tag *tag = &profile->tags[i];
        TRY(check_tag(profile, tag, error));
        TRY(cogpu_tag_add(list, arena, (uint16_t)tag->id, (uint16_t)tag->type, tag->count,
                          tag->values, error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_describe_metadata(const cogpu_profile *profile, cogpu_arena *arena,
                                     cogpu_tag_list *list, cogpu_error *error) {
    TRY(add_items(profile, arena, list, error));
    TRY(add_nodata(profile, arena, list, error));
    if (profile->description)
        TRY(cogpu_tag_add_text(list, arena, TAG_IMAGE_DESCRIPTION, profile->description, error));
    return add_extra_tags(profile, arena, list, error);
}
