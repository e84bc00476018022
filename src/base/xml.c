/* See xml.h. */
#include "base/xml.h"
#include "base/text.h"

#include <string.h>

bool cogpu_xml_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool cogpu_xml_is_word(xml_slice text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

bool cogpu_xml_looking_at(const xml_text *in, const char *word) {
    size_t bytes = strlen(word);
    return (size_t)(in->end - in->at) >= bytes && memcmp(in->at, word, bytes) == 0;
}

bool cogpu_xml_skip_past(xml_text *in, const char *word, xml_slice *before) {
    const char *start = in->at;
    bool is_there = false;
    while (in->at < in->end && !is_there) {
        const char *next = memchr(in->at, word[0], (size_t)(in->end - in->at));
        in->at = next ? next : in->end;
        is_there = next && cogpu_xml_looking_at(in, word);
        in->at += next && !is_there;
    }
    *before = (xml_slice){start, (size_t)(in->at - start)};
    in->at += is_there ? strlen(word) : 0;
    return is_there;
}

/* "#65", "#x41": the character; 0 if it is invalid. */
static uint32_t parse_numeric_reference(xml_slice name) {
    bool is_hex = name.bytes > 1 && (name.at[1] == 'x' || name.at[1] == 'X');
    uint32_t base = is_hex ? 16 : 10, code = 0;
    for (size_t i = is_hex ? 2 : 1; i < name.bytes; i++) {
        int digit = ascii_hex_value(name.at[i]);
        if (digit < 0 || (uint32_t)digit >= base || code > 0x10ffff)
            return 0;
        code = code * base + (uint32_t)digit;
    }
    bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code > 0x10ffff || is_surrogate ? 0 : code;
}

static uint32_t find_named_reference(xml_slice name) {
    static const struct {
        const char *name;
        char is;
    } all[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (cogpu_xml_is_word(name, all[i].name))
            return (uint32_t)all[i].is;
    return 0;
}

uint32_t cogpu_xml_character(xml_slice text, size_t *bytes) {
    enum { LONGEST = 10 }; /* "#x0010ffff" */
    size_t length = 0;
    if (!text.bytes || text.at[0] != '&')
        return 0;
    while (length <= LONGEST && 1 + length < text.bytes && text.at[1 + length] != ';')
        length++;
    if (length == 0 || length > LONGEST || 1 + length == text.bytes)
        return 0;
    xml_slice name = {text.at + 1, length};
    *bytes = length + 2;
    return name.at[0] == '#' ? parse_numeric_reference(name) : find_named_reference(name);
}

static bool set_fault(xml_reader *in, const char *why) {
    in->fault = why;
    return false;
}

static bool skip_past(xml_reader *in, const char *word, xml_slice *before) {
    return cogpu_xml_skip_past(&in->text, word, before) || set_fault(in, "it ends too early");
}

static bool is_same_slice(xml_slice one, xml_slice other) {
    bool is_same = one.bytes == other.bytes;
    for (size_t i = 0; is_same && i < one.bytes; i++)
        is_same = ascii_lower(one.at[i]) == ascii_lower(other.at[i]);
    return is_same;
}

bool cogpu_xml_is_same(xml_slice text, const char *word) {
    return is_same_slice(text, (xml_slice){word, strlen(word)});
}

xml_slice cogpu_xml_trim(xml_slice text) {
    while (text.bytes && cogpu_xml_is_blank(*text.at))
        text.at++, text.bytes--;
    while (text.bytes && cogpu_xml_is_blank(text.at[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* ---- text ---------------------------------------------------------------------------------- */

static size_t write_utf8(uint32_t code, char *to) {
    if (code < 0x80)
        return to[0] = (char)code, 1;
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(lead[bytes] | code);
    return bytes;
}

size_t cogpu_xml_unescape(xml_slice text, char *to) {
    size_t written = 0;
    for (size_t i = 0, bytes; i < text.bytes; i += bytes) {
        uint32_t code = cogpu_xml_character((xml_slice){text.at + i, text.bytes - i}, &bytes);
        if (code) {
            written += write_utf8(code, to + written);
        } else {
            to[written++] = text.at[i];
            bytes = 1;
        }
    }
    return written;
}

size_t cogpu_xml_join(xml_slice content, char *to) {
    xml_reader in = {.text = {content.at, content.at + content.bytes}};
    size_t written = 0;
    while (in.text.at < in.text.end) {
        const char *next = memchr(in.text.at, '<', (size_t)(in.text.end - in.text.at));
        xml_slice text = {in.text.at, (size_t)((next ? next : in.text.end) - in.text.at)};
        bool skipped;
        written += cogpu_xml_unescape(text, to + written);
        if (!next)
            break;
        in.text.at = next + 1;
        if (!cogpu_xml_skip_other(&in, &skipped, &text))
            break;
        memmove(to + written, text.at, text.bytes);
        written += text.bytes;
    }
    return written;
}

/* ---- elements ------------------------------------------------------------------------------ */

bool cogpu_xml_read_tag(xml_reader *in, xml_tag *found) {
    *found = (xml_tag){0};
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
        return set_fault(in, "a tag is not closed");
    found->is_empty = in->text.at > start && in->text.at[-1] == '/';
    found->attributes = (xml_slice){start, (size_t)(in->text.at - start) - found->is_empty};
    in->text.at++;
    return found->name.bytes ? true : set_fault(in, "a tag has no name");
}

bool cogpu_xml_skip_other(xml_reader *in, bool *skipped, xml_slice *text) {
    xml_slice ignored;
    *text = (xml_slice){in->text.at, 0};
    *skipped = true;
    if (cogpu_xml_looking_at(&in->text, "!--"))
        return in->text.at += 3, skip_past(in, "-->", &ignored);
    if (cogpu_xml_looking_at(&in->text, "![CDATA["))
        return in->text.at += 8, skip_past(in, "]]>", text);
    if (cogpu_xml_looking_at(&in->text, "?"))
        return skip_past(in, "?>", &ignored);
    if (cogpu_xml_looking_at(&in->text, "!"))
        return set_fault(in, "it has a DOCTYPE or another declaration");
    *skipped = false;
    return true;
}

bool cogpu_xml_attribute(xml_slice *left, xml_slice *name, xml_slice *value) {
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

bool cogpu_xml_read_content(xml_reader *in, xml_slice opened, xml_slice *content,
                            bool *has_elements) {
    const char *start = in->text.at;
    *has_elements = false;
    for (uint32_t depth = 1;;) {
        xml_slice text;
        xml_tag found;
        bool skipped;
        if (!skip_past(in, "<", &text))
            return false;
        const char *tag = in->text.at - 1;
        if (!cogpu_xml_skip_other(in, &skipped, &text))
            return false;
        if (skipped)
            continue;
        if (!cogpu_xml_read_tag(in, &found))
            return false;
        if (!found.closes) {
            *has_elements = true;
            depth += !found.is_empty;
        } else if (--depth == 0) {
            *content = (xml_slice){start, (size_t)(tag - start)};
            return is_same_slice(found.name, opened) ? true
                                                     : set_fault(in, "an end tag does not match");
        }
        if (depth > XML_DEPTH_MAX)
            return set_fault(in, "its elements are nested too deeply");
    }
}

/* Moves past the '<' of the next tag; false at the end of the text. */
static bool find_tag(xml_reader *in) {
    for (bool skipped = true; skipped;) {
        xml_slice text;
        if (!cogpu_xml_skip_past(&in->text, "<", &text) ||
            !cogpu_xml_skip_other(in, &skipped, &text))
            return false;
    }
    return true;
}

bool cogpu_xml_next(xml_reader *in, xml_element *element) {
    xml_tag tag;
    *element = (xml_element){0};
    if (!find_tag(in) || !cogpu_xml_read_tag(in, &tag))
        return false;
    in->is_closed = tag.closes;
    if (tag.closes)
        return false;
    element->name = tag.name;
    element->attributes = tag.attributes;
    element->content = (xml_slice){in->text.at, 0};
    return tag.is_empty ||
           cogpu_xml_read_content(in, tag.name, &element->content, &element->has_elements);
}

bool cogpu_xml_is_whole(xml_text document, const char **fault) {
    xml_reader in = {.text = document};
    xml_slice open[XML_DEPTH_MAX];
    size_t depth = 0;
    while (!in.fault && find_tag(&in)) {
        xml_tag tag;
        if (!cogpu_xml_read_tag(&in, &tag))
            break;
        if (tag.closes && (depth == 0 || !is_same_slice(tag.name, open[--depth])))
            set_fault(&in, "an end tag does not match");
        else if (!tag.closes && !tag.is_empty && depth == XML_DEPTH_MAX)
            set_fault(&in, "its elements are nested too deeply");
        else if (!tag.closes && !tag.is_empty)
            open[depth++] = tag.name;
    }
    if (!in.fault && depth > 0)
        set_fault(&in, "it ends too early");
    *fault = in.fault;
    return !in.fault;
}
