/* See xml.h. */
#include "base/xml.h"

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

bool cogpu_xml_pass(xml_text *in, const char *word, xml_slice *before) {
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

/* "#65", "#x41": the character; 0 where it is none. */
static uint32_t numbered(xml_slice name) {
    bool is_hex = name.bytes > 1 && (name.at[1] == 'x' || name.at[1] == 'X');
    uint32_t base = is_hex ? 16 : 10, code = 0;
    for (size_t i = is_hex ? 2 : 1; i < name.bytes; i++) {
        char c = name.at[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit >= base || code > 0x10ffff)
            return 0;
        code = code * base + digit;
    }
    bool is_surrogate = code >= 0xd800 && code < 0xe000;
    return code > 0x10ffff || is_surrogate ? 0 : code;
}

static uint32_t named(xml_slice name) {
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
    return name.at[0] == '#' ? numbered(name) : named(name);
}
