/*
 * Takes the XML that a store answers with, hands on the text of the one element that is asked for.
 *
 * A store is not trusted: one pass over the text, no recursion, lengths bounded, and nothing is
 * kept but characters that can be shown. A DOCTYPE is taken for a root of another name.
 */
#include "io/s3_inner.h"

enum { ENTITY_BYTES_MAX = 10 };

typedef struct slice {
    const char *at;
    size_t bytes;
} slice;

/* Where the reader stands. */
typedef struct reader {
    const char *at, *end;
} reader;

static bool is_word(slice text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

static bool looking_at(const reader *in, const char *word) {
    const size_t bytes = strlen(word);
    return (size_t)(in->end - in->at) >= bytes && memcmp(in->at, word, bytes) == 0;
}

/* Goes behind the next `word`; *before is what was passed over. */
static bool pass(reader *in, const char *word, slice *before) {
    *before = (slice){in->at, 0};
    for (; in->at < in->end; in->at++) {
        if (!looking_at(in, word))
            continue;
        before->bytes = (size_t)(in->at - before->at);
        in->at += strlen(word);
        return true;
    }
    return false;
}

/* ---- tags ---- */

typedef enum kind { OPENS, CLOSES, IS_EMPTY, IS_OTHER, IS_CDATA, IS_BAD } kind;

/* The tag behind a '<' that was just passed: its name, or what a CDATA section holds. */
static kind read_tag(reader *in, slice *name) {
    if (looking_at(in, "!--"))
        return in->at += 3, pass(in, "-->", name) ? IS_OTHER : IS_BAD;
    if (looking_at(in, "![CDATA["))
        return in->at += 8, pass(in, "]]>", name) ? IS_CDATA : IS_BAD;
    if (looking_at(in, "?"))
        return pass(in, "?>", name) ? IS_OTHER : IS_BAD;
    slice tag;
    if (!pass(in, ">", &tag) || !tag.bytes)
        return IS_BAD;
    const bool closes = tag.at[0] == '/', is_empty = tag.at[tag.bytes - 1] == '/';
    *name = (slice){tag.at + closes, 0};
    while (name->at + name->bytes < tag.at + tag.bytes && !s3_is_blank(name->at[name->bytes]) &&
           name->at[name->bytes] != '/')
        name->bytes++;
    return !name->bytes ? IS_BAD : closes ? CLOSES : is_empty ? IS_EMPTY : OPENS;
}

/* Goes behind the root's tag. False where there is none. */
static bool enter_root(reader *in, slice *root) {
    for (slice before; pass(in, "<", &before);) {
        const kind found = read_tag(in, root);
        if (found != IS_OTHER)
            return found == OPENS;
    }
    return false;
}

/* What stands in the first element of this name right below the root, with all that is inside; none
 * where it is not there as a whole: an answer may have been cut off behind what matters. */
static slice find_child(reader in, const char *child) {
    const char *start = NULL;
    for (size_t depth = 1; depth > 0;) {
        slice before, name;
        if (!pass(&in, "<", &before))
            break;
        const kind what = read_tag(&in, &name);
        if (what == IS_BAD)
            break;
        if (what == OPENS && depth++ == 1 && is_word(name, child))
            start = in.at;
        if (what == CLOSES && --depth == 1 && start)
            return (slice){start, (size_t)(name.at - 2 - start)};
    }
    return (slice){in.at, 0};
}

/* ---- text ---- */

/* "#65", "#x41": the character where it is one of ASCII; else '?', which is as good here. */
static char numeric_entity(slice name) {
    const bool is_hex = name.bytes > 1 && (name.at[1] == 'x' || name.at[1] == 'X');
    const unsigned base = is_hex ? 16 : 10;
    unsigned code = 0;
    for (size_t i = is_hex ? 2 : 1; i < name.bytes; i++) {
        const char c = name.at[i];
        const unsigned digit = s3_is_digit(c)         ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                      : base;
        if (digit >= base || code > 0x7f)
            return '?';
        code = code * base + digit;
    }
    return code > 0 && code <= 0x7f ? (char)code : '?';
}

/* The character that "&name;" stands for; 0 where it stands for none. */
static char entity(slice name) {
    static const struct {
        const char *name;
        char is;
    } named[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    if (name.bytes > 1 && name.at[0] == '#')
        return numeric_entity(name);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (is_word(name, named[i].name))
            return named[i].is;
    return 0;
}

/* ASCII alone is kept; the rest leaves a mark. */
static void put_character(s3_text *to, char c) {
    const char shown = (uint8_t)c <= ' ' ? ' ' : s3_is_graphic(c) ? c : '?';
    s3_put_bytes(to, &shown, 1);
}

static void put_unescaped(s3_text *to, slice from) {
    for (size_t i = 0; i < from.bytes; i++) {
        size_t length = 0;
        const size_t left = from.bytes - i - 1;
        while (from.at[i] == '&' && length < left && length <= ENTITY_BYTES_MAX &&
               from.at[i + 1 + length] != ';')
            length++;
        const bool is_closed = length > 0 && length < left && length <= ENTITY_BYTES_MAX;
        const char c = is_closed ? entity((slice){from.at + i + 1, length}) : 0;
        put_character(to, c ? c : from.at[i]);
        i += c ? length + 1 : 0;
    }
}

static void put_text(s3_text *to, slice content) {
    reader in = {content.at, content.at + content.bytes};
    for (slice before, inside; in.at < in.end;) {
        const bool is_last = !pass(&in, "<", &before);
        before.bytes = (size_t)(in.at - before.at) - !is_last;
        put_unescaped(to, before);
        if (!is_last && read_tag(&in, &inside) == IS_CDATA)
            for (size_t i = 0; i < inside.bytes; i++)
                put_character(to, inside.at[i]);
    }
}

static void trim(char *text, size_t bytes) {
    const size_t lead = strspn(text, " ");
    memmove(text, text + lead, bytes + 1 - lead);
    for (bytes -= lead; bytes > 0 && text[bytes - 1] == ' '; bytes--)
        text[bytes - 1] = '\0';
}

bool cogpu_s3_xml_text(const char *xml, size_t bytes, const char *root, const char *child,
                       bool may_be_cut, char *to, size_t room) {
    reader in = {xml, xml + bytes};
    slice name;
    s3_text text = s3_text_in(to, room);
    if (!enter_root(&in, &name) || !is_word(name, root))
        return false;
    put_text(&text, find_child(in, child));
    trim(to, text.used);
    if (!text.fits && !may_be_cut)
        to[0] = '\0';
    return true;
}
