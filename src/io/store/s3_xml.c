/*
 * The text of one element in the XML of a store's response.
 *
 * A store is not trusted: one pass over the text, no recursion, bounded lengths, and only printable
 * characters are kept. A DOCTYPE counts as a root of another name.
 */
#include "io/store/s3_internal.h"

#include "base/xml.h"

/* ---- tags ---- */

typedef enum s3_tag_kind { OPENS, CLOSES, IS_EMPTY, IS_OTHER, IS_CDATA, IS_BAD } s3_tag_kind;

/* The tag after a '<': its name, or the content of a CDATA section. */
static s3_tag_kind read_tag(xml_text *in, xml_slice *name) {
    if (cogpu_xml_looking_at(in, "!--"))
        return in->at += 3, cogpu_xml_skip_past(in, "-->", name) ? IS_OTHER : IS_BAD;
    if (cogpu_xml_looking_at(in, "![CDATA["))
        return in->at += 8, cogpu_xml_skip_past(in, "]]>", name) ? IS_CDATA : IS_BAD;
    if (cogpu_xml_looking_at(in, "?"))
        return cogpu_xml_skip_past(in, "?>", name) ? IS_OTHER : IS_BAD;
    xml_slice tag;
    if (!cogpu_xml_skip_past(in, ">", &tag) || !tag.bytes)
        return IS_BAD;
    const bool closes = tag.at[0] == '/', is_empty = tag.at[tag.bytes - 1] == '/';
    *name = (xml_slice){tag.at + closes, 0};
    while (name->at + name->bytes < tag.at + tag.bytes &&
           !cogpu_xml_is_blank(name->at[name->bytes]) && name->at[name->bytes] != '/')
        name->bytes++;
    return !name->bytes ? IS_BAD : closes ? CLOSES : is_empty ? IS_EMPTY : OPENS;
}

/* Moves past the root's tag. False if there is none. */
static bool enter_s3_response(xml_text *in, xml_slice *root) {
    for (xml_slice before; cogpu_xml_skip_past(in, "<", &before);) {
        const s3_tag_kind found = read_tag(in, root);
        if (found != IS_OTHER)
            return found == OPENS;
    }
    return false;
}

/* The content of the first child of the root with this name. Empty if it is incomplete: a response
 * may be truncated after what matters. */
static xml_slice find_child(xml_text in, const char *child) {
    const char *start = NULL;
    for (size_t depth = 1; depth > 0;) {
        xml_slice before, name;
        if (!cogpu_xml_skip_past(&in, "<", &before))
            break;
        const s3_tag_kind what = read_tag(&in, &name);
        if (what == IS_BAD)
            break;
        if (what == OPENS && depth++ == 1 && cogpu_xml_is_word(name, child))
            start = in.at;
        if (what == CLOSES && --depth == 1 && start)
            return (xml_slice){start, (size_t)(name.at - 2 - start)};
    }
    return (xml_slice){in.at, 0};
}

/* ---- text ---- */

/* Only ASCII is kept; other characters become "?". */
static void append_ascii(s3_text *to, uint32_t code) {
    const char c = code < 0x80 ? (char)code : '?';
    const char shown = c <= ' ' ? ' ' : s3_is_graphic(c) ? c : '?';
    s3_put_bytes(to, &shown, 1);
}

static void put_unescaped(s3_text *to, xml_slice from) {
    for (size_t i = 0, bytes; i < from.bytes; i += bytes) {
        const uint32_t code = cogpu_xml_character((xml_slice){from.at + i, from.bytes - i}, &bytes);
        append_ascii(to, code ? code : (uint8_t)from.at[i]);
        bytes = code ? bytes : 1;
    }
}

static void append_decoded_text(s3_text *to, xml_slice content) {
    xml_text in = {content.at, content.at + content.bytes};
    for (xml_slice before, inside; in.at < in.end;) {
        const bool is_last = !cogpu_xml_skip_past(&in, "<", &before);
        put_unescaped(to, before);
        if (!is_last && read_tag(&in, &inside) == IS_CDATA)
            for (size_t i = 0; i < inside.bytes; i++)
                append_ascii(to, (uint8_t)inside.at[i]);
    }
}

static void trim_text(char *text, size_t bytes) {
    const size_t lead = strspn(text, " ");
    memmove(text, text + lead, bytes + 1 - lead);
    for (bytes -= lead; bytes > 0 && text[bytes - 1] == ' '; bytes--)
        text[bytes - 1] = '\0';
}

bool cogpu_s3_xml_text(const char *xml, size_t bytes, const char *root, const char *child,
                       bool may_be_truncated, char *to, size_t capacity) {
    xml_text in = {xml, xml + bytes};
    xml_slice name;
    s3_text text = s3_text_in(to, capacity);
    if (!enter_s3_response(&in, &name) || !cogpu_xml_is_word(name, root))
        return false;
    append_decoded_text(&text, find_child(in, child));
    trim_text(to, text.used);
    if (!text.fits && !may_be_truncated)
        to[0] = '\0';
    return true;
}
