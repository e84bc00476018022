/*
 * Takes the XML of GDAL_METADATA, hands on its items. It is a reader of that one document and not
 * of XML: elements, attributes, comments, CDATA, the five entities and numeric ones; no DOCTYPE.
 * One pass, no recursion, and the items found before a fault are kept.
 *
 * GDAL escapes the text of an item twice, others once; so it is unescaped twice, as GDAL does. An
 * item that holds elements (a domain "xml:...") has their text as its value, untouched.
 */
#include "image/image.h"
#include "image/values.h"

#include "base/xml.h"

#include <string.h>

/* Levels of elements inside an item or a foreign element; items of a document. */
enum { DEPTH_MAX = 64, ITEMS_MAX = 1 << 20, BANDS_MAX = 65536 };

/* Where the reader stands; `fault` says why it cannot go on. */
typedef struct reader {
    xml_text text;
    cogpu_arena *arena;
    const char *fault;
} reader;

/* One tag: <name attributes>, </name> or <name attributes/>. */
typedef struct element {
    xml_slice name, attributes;
    bool closes, is_empty;
} element;

static bool fault(reader *in, const char *why) {
    in->fault = why;
    return false;
}

static bool pass(reader *in, const char *word, xml_slice *before) {
    return cogpu_xml_pass(&in->text, word, before) || fault(in, "it ends too early");
}

/* ---- text ---------------------------------------------------------------------------------- */

static size_t put_utf8(uint32_t code, char *to) {
    if (code < 0x80)
        return to[0] = (char)code, 1;
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(lead[bytes] | code);
    return bytes;
}

/* Replaces entities; `to` may be the text itself, which never grows. What is no entity stays as it
 * is. */
static size_t unescape(xml_slice text, char *to) {
    size_t written = 0;
    for (size_t i = 0, bytes; i < text.bytes; i += bytes) {
        uint32_t code = cogpu_xml_character((xml_slice){text.at + i, text.bytes - i}, &bytes);
        if (code) {
            written += put_utf8(code, to + written);
        } else {
            to[written++] = text.at[i];
            bytes = 1;
        }
    }
    return written;
}

/* ---- elements ------------------------------------------------------------------------------ */

/* Behind the '<'. A '>' inside quotes does not end the tag. */
static bool read_element(reader *in, element *found) {
    *found = (element){0};
    found->closes = cogpu_xml_looking_at(&in->text, "/");
    in->text.at += found->closes;
    const char *start = in->text.at;
    while (in->text.at < in->text.end && !cogpu_xml_is_blank(*in->text.at) && *in->text.at != '>' &&
           *in->text.at != '/')
        in->text.at++;
    found->name = (xml_slice){start, (size_t)(in->text.at - start)};
    start = in->text.at;
    for (char quote = 0; in->text.at < in->text.end; in->text.at++) {
        char c = *in->text.at;
        if (quote ? c == quote : c == '"' || c == '\'')
            quote = quote ? 0 : c;
        else if (!quote && c == '>')
            break;
    }
    if (in->text.at == in->text.end)
        return fault(in, "a tag is not closed");
    found->is_empty = in->text.at > start && in->text.at[-1] == '/';
    found->attributes = (xml_slice){start, (size_t)(in->text.at - start) - found->is_empty};
    in->text.at++;
    return found->name.bytes ? true : fault(in, "a tag has no name");
}

/* Goes over a comment, a CDATA section or a processing instruction, behind its '<'. *skipped is
 * false where an element stands there instead; *text is what a CDATA section holds. */
static bool skip_other(reader *in, bool *skipped, xml_slice *text) {
    xml_slice ignored;
    *text = (xml_slice){in->text.at, 0};
    *skipped = true;
    if (cogpu_xml_looking_at(&in->text, "!--"))
        return in->text.at += 3, pass(in, "-->", &ignored);
    if (cogpu_xml_looking_at(&in->text, "![CDATA["))
        return in->text.at += 8, pass(in, "]]>", text);
    if (cogpu_xml_looking_at(&in->text, "?"))
        return pass(in, "?>", &ignored);
    if (cogpu_xml_looking_at(&in->text, "!"))
        return fault(in, "it has a DOCTYPE or the like");
    *skipped = false;
    return true;
}

/* The next name="value"; false at the end of the attributes or where they are malformed. */
static bool next_attribute(xml_slice *left, xml_slice *name, xml_slice *value) {
    const char *at = left->at, *end = at + left->bytes;
    while (at < end && cogpu_xml_is_blank(*at))
        at++;
    const char *start = at;
    while (at < end && *at != '=' && !cogpu_xml_is_blank(*at))
        at++;
    *name = (xml_slice){start, (size_t)(at - start)};
    while (at < end && cogpu_xml_is_blank(*at))
        at++;
    if (at == end || *at++ != '=')
        return false;
    while (at < end && cogpu_xml_is_blank(*at))
        at++;
    if (at == end || (*at != '"' && *at != '\''))
        return false;
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    if (!close)
        return false;
    *value = (xml_slice){at + 1, (size_t)(close - at - 1)};
    *left = (xml_slice){close + 1, (size_t)(end - close - 1)};
    return true;
}

/* ---- items --------------------------------------------------------------------------------- */

static cogpu_status keep(reader *in, xml_slice text, const char **kept, cogpu_error *error) {
    char *room = NULL;
    TRY(cogpu_arena_take(in->arena, (uint64_t)text.bytes + 1, 1, &room, error));
    room[unescape(text, room)] = '\0';
    *kept = room;
    return COGPU_OK;
}

/* 0-based in the file; the whole image where it is absent or no number. */
static bool read_sample(xml_slice text, int32_t *band) {
    int32_t sample = 0;
    if (cogpu_xml_is_word(text, "-1"))
        return *band = 0, true;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || sample >= BANDS_MAX)
            return false;
        sample = sample * 10 + (text.at[i] - '0');
    }
    *band = sample + 1;
    return text.bytes > 0 && sample < BANDS_MAX;
}

/* *sound is false for an item without a name or of no possible band. */
static cogpu_status read_attributes(reader *in, xml_slice attributes, cogpu_item *item, bool *sound,
                                    cogpu_error *error) {
    xml_slice name, value;
    *item = (cogpu_item){.domain = "", .role = "", .value = ""};
    *sound = true;
    while (next_attribute(&attributes, &name, &value)) {
        if (cogpu_xml_is_word(name, "name"))
            TRY(keep(in, value, &item->name, error));
        else if (cogpu_xml_is_word(name, "domain"))
            TRY(keep(in, value, &item->domain, error));
        else if (cogpu_xml_is_word(name, "role"))
            TRY(keep(in, value, &item->role, error));
        else if (cogpu_xml_is_word(name, "sample"))
            *sound = *sound && read_sample(value, &item->band);
    }
    *sound = *sound && item->name;
    return COGPU_OK;
}

/* Goes behind the end tag of `opened`; *content is what stands between, *has_elements whether there
 * are elements in it. */
static bool find_content(reader *in, xml_slice opened, xml_slice *content, bool *has_elements) {
    const char *start = in->text.at;
    *has_elements = false;
    for (uint32_t depth = 1;;) {
        xml_slice text;
        element found;
        bool skipped;
        if (!pass(in, "<", &text))
            return false;
        const char *tag = in->text.at - 1;
        if (!skip_other(in, &skipped, &text))
            return false;
        if (skipped)
            continue;
        if (!read_element(in, &found))
            return false;
        if (!found.closes) {
            *has_elements = true;
            depth += !found.is_empty;
        } else if (--depth == 0) {
            *content = (xml_slice){start, (size_t)(tag - start)};
            bool fits = found.name.bytes == opened.bytes &&
                        memcmp(found.name.at, opened.at, opened.bytes) == 0;
            return fits ? true : fault(in, "an end tag does not fit");
        }
        if (depth > DEPTH_MAX)
            return fault(in, "its elements are nested too deeply");
    }
}

/* Text, comments and CDATA sections as one text, entities replaced twice. */
static size_t join(xml_slice content, char *to) {
    reader in = {.text = {content.at, content.at + content.bytes}};
    size_t written = 0;
    while (in.text.at < in.text.end) {
        const char *next = memchr(in.text.at, '<', (size_t)(in.text.end - in.text.at));
        xml_slice text = {in.text.at, (size_t)((next ? next : in.text.end) - in.text.at)};
        bool skipped;
        written += unescape(text, to + written);
        if (!next)
            break;
        in.text.at = next + 1;
        if (!skip_other(&in, &skipped, &text))
            break;
        memmove(to + written, text.at, text.bytes);
        written += text.bytes;
    }
    return unescape((xml_slice){to, written}, to);
}

static cogpu_status keep_content(reader *in, xml_slice content, bool as_it_is, const char **kept,
                                 cogpu_error *error) {
    if (as_it_is)
        return cogpu_arena_text(in->arena, content.at, content.bytes, kept, error);
    char *room = NULL;
    TRY(cogpu_arena_take(in->arena, (uint64_t)content.bytes + 1, 1, &room, error));
    room[join(content, room)] = '\0';
    *kept = room;
    return COGPU_OK;
}

/* An element below the root, behind its tag. What is no item is passed over. */
static cogpu_status read_child(reader *in, const element *child, cogpu_item *items, uint32_t *count,
                               cogpu_error *error) {
    xml_slice content = {in->text.at, 0};
    bool has_elements = false, sound;
    if (!child->is_empty && !find_content(in, child->name, &content, &has_elements))
        return COGPU_OK;
    if (!cogpu_xml_is_word(child->name, "Item"))
        return COGPU_OK;
    if (*count == ITEMS_MAX)
        return fault(in, "it has too many items"), COGPU_OK;
    cogpu_item *item = &items[*count];
    TRY(read_attributes(in, child->attributes, item, &sound, error));
    if (!sound)
        return COGPU_OK;
    TRY(keep_content(in, content, has_elements, &item->value, error));
    (*count)++;
    return COGPU_OK;
}

/* Goes behind the root's tag, over what may stand before it. */
static bool enter_root(reader *in, bool *is_empty) {
    for (bool skipped = true; skipped;) {
        xml_slice text;
        if (!pass(in, "<", &text) || !skip_other(in, &skipped, &text))
            return false;
    }
    element root;
    if (!read_element(in, &root))
        return false;
    *is_empty = root.is_empty;
    return cogpu_xml_is_word(root.name, "GDALMetadata") && !root.closes
               ? true
               : fault(in, "its root is not GDALMetadata");
}

static cogpu_status read_children(reader *in, cogpu_item *items, uint32_t *count,
                                  cogpu_error *error) {
    while (!in->fault) {
        xml_slice text;
        element child;
        bool skipped;
        if (!pass(in, "<", &text) || !skip_other(in, &skipped, &text))
            break;
        if (skipped)
            continue;
        if (!read_element(in, &child) || child.closes)
            break;
        TRY(read_child(in, &child, items, count, error));
    }
    return COGPU_OK;
}

/* No more items than this are in the text: what the array has to hold. */
static uint32_t count_items(reader in) {
    uint32_t count = 0;
    xml_slice ignored;
    while (count < ITEMS_MAX && pass(&in, "<Item", &ignored))
        count++;
    return count;
}

cogpu_status cogpu_metadata_parse(const char *xml, size_t bytes, cogpu_arena *arena,
                                  cogpu_metadata *metadata, const char **warning,
                                  cogpu_error *error) {
    *metadata = (cogpu_metadata){0};
    if (!bytes)
        return COGPU_OK;
    reader in = {.text = {xml, xml + bytes}, .arena = arena};
    cogpu_item *items = NULL;
    bool is_empty = false;
    TRY(cogpu_arena_take(arena, count_items(in), sizeof *items, &items, error));
    metadata->items = items;
    if (enter_root(&in, &is_empty) && !is_empty)
        TRY(read_children(&in, items, &metadata->item_count, error));
    if (in.fault)
        cogpu_warn(arena, warning,
                   "GDAL_METADATA is not sound (%s); the %u items before the fault are kept",
                   in.fault, metadata->item_count);
    return COGPU_OK;
}

cogpu_status cogpu_metadata_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                 cogpu_metadata *metadata, const char **warning,
                                 cogpu_error *error) {
    const char *xml;
    uint32_t bytes;
    TRY(cogpu_values_chars(tiff, directory, TAG_GDAL_METADATA, arena, &xml, &bytes, warning,
                           error));
    return cogpu_metadata_parse(xml, bytes ? strnlen(xml, bytes) : 0, arena, metadata, warning,
                                error);
}
