/*
 * What readers of XML share: words to look for, and what references to characters stand for. The
 * text is not trusted: nothing is read behind its end, and no call takes longer than it is long.
 */
#ifndef COGPU_BASE_XML_H
#define COGPU_BASE_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text. */
typedef struct xml_slice {
    const char *at;
    size_t bytes;
} xml_slice;

/* What is left of a text to read. */
typedef struct xml_text {
    const char *at, *end;
} xml_text;

bool cogpu_xml_is_blank(char c);
bool cogpu_xml_is_word(xml_slice text, const char *word);
bool cogpu_xml_looking_at(const xml_text *in, const char *word);

/* Goes behind the next `word`, or to the end, and returns false, where there is none; *before is
 * what was passed over. */
bool cogpu_xml_pass(xml_text *in, const char *word, xml_slice *before);

/* What is left of a document to read; `fault` says why the reading ended. */
typedef struct xml_reader {
    xml_text text;
    const char *fault;
    bool is_closed; /* cogpu_xml_next met an end tag */
} xml_reader;

/* A tag: <name attributes>, </name> or <name attributes/>. */
typedef struct xml_tag {
    xml_slice name, attributes;
    bool closes, is_empty;
} xml_tag;

/* An element with what stands between its tags. */
typedef struct xml_element {
    xml_slice name, attributes, content;
    bool has_elements;
} xml_element;

/* Levels of nested elements that are followed. */
enum { XML_DEPTH_MAX = 64 };

/* The building blocks of a reader. Each returns false, with a fault, where the text is malformed.
 * There is no DOCTYPE: a document that has one is malformed, so no entity of its own expands.
 *
 * Passes over a comment, a CDATA section or a processing instruction, behind its '<'. *skipped is
 * false where a tag stands there instead; *text is the content of a CDATA section. */
bool cogpu_xml_skip_other(xml_reader *in, bool *skipped, xml_slice *text);
/* Reads a tag, behind its '<'. A '>' inside quotes does not end it. */
bool cogpu_xml_read_tag(xml_reader *in, xml_tag *tag);
/* Passes over the end tag of `opened`; *content is what stands before it. */
bool cogpu_xml_read_content(xml_reader *in, xml_slice opened, xml_slice *content,
                            bool *has_elements);

/* The next element of a document, or of an element's content. False at the end and on a fault. */
bool cogpu_xml_next(xml_reader *in, xml_element *element);
/* The next name="value"; false at the end of the attributes or where they are malformed. */
bool cogpu_xml_attribute(xml_slice *left, xml_slice *name, xml_slice *value);
/* Whether each element of the document has its end tag. */
bool cogpu_xml_is_whole(xml_text document, const char **fault);

/* Text with its references to characters replaced; `to` may be the text itself, which never grows.
 * Returns the bytes written. */
size_t cogpu_xml_unescape(xml_slice text, char *to);
/* The text of an element's content: comments left out, CDATA sections as they are. */
size_t cogpu_xml_join(xml_slice content, char *to);
/* Equal but for the case of ASCII letters. */
bool cogpu_xml_is_same(xml_slice text, const char *word);

/* The character that "&lt;", "&#65;" or the like stands for, if the text begins with such, and its
 * bytes from '&' to ';'; 0 otherwise. */
uint32_t cogpu_xml_character(xml_slice text, size_t *bytes);

#endif
