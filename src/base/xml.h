/*
 * A small XML reader, for GDAL metadata, PAM sidecars and responses of stores. The text is not
 * trusted: nothing is read past its end, and each call takes linear time.
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

/* Moves past the next `word`; *before is the text before it. Without one, moves to the end and
 * returns false. */
bool cogpu_xml_skip_past(xml_text *in, const char *word, xml_slice *before);

/* The rest of a document; `fault` says why reading failed. */
typedef struct xml_reader {
    xml_text text;
    const char *fault;
    bool is_closed; /* cogpu_xml_next found an end tag */
} xml_reader;

/* A tag: <name attributes>, </name> or <name attributes/>. */
typedef struct xml_tag {
    xml_slice name, attributes;
    bool closes, is_empty;
} xml_tag;

/* An element, and the text between its tags. */
typedef struct xml_element {
    xml_slice name, attributes, content;
    bool has_elements;
} xml_element;

/* Nesting depth of elements. */
enum { XML_DEPTH_MAX = 64 };

/* The building blocks of a reader. Each returns false, with a fault, if the text is malformed. A
 * DOCTYPE is malformed, so a document cannot define entities.
 *
 * Skips a comment, a CDATA section or a processing instruction, after its '<'. *skipped is false if
 * there is a tag instead; *text is the content of a CDATA section. */
bool cogpu_xml_skip_other(xml_reader *in, bool *skipped, xml_slice *text);
/* Reads a tag, after its '<'. A '>' inside quotes does not end it. */
bool cogpu_xml_read_tag(xml_reader *in, xml_tag *tag);
/* Moves past the end tag of `opened`; *content is the text before it. */
bool cogpu_xml_read_content(xml_reader *in, xml_slice opened, xml_slice *content,
                            bool *has_elements);

/* The next element of a document, or of an element's content. False at the end and on a fault. */
bool cogpu_xml_next(xml_reader *in, xml_element *element);
/* The next name="value"; false at the end of the attributes or where they are malformed. */
bool cogpu_xml_attribute(xml_slice *left, xml_slice *name, xml_slice *value);
/* Whether each element of the document has its end tag. */
bool cogpu_xml_is_whole(xml_text document, const char **fault);

/* Replaces character references. `to` may be the text itself, which never grows. Returns the bytes
 * written. */
size_t cogpu_xml_unescape(xml_slice text, char *to);
/* The text of an element's content: comments left out, CDATA sections as they are. */
size_t cogpu_xml_join(xml_slice content, char *to);
/* The text without blanks at both ends. */
xml_slice cogpu_xml_trim(xml_slice text);
/* Equal except for the case of ASCII letters. */
bool cogpu_xml_is_same(xml_slice text, const char *word);

/* The character of a reference such as "&lt;" or "&#65;" at the begin of the text, and the length
 * of the reference; 0 if there is none. */
uint32_t cogpu_xml_character(xml_slice text, size_t *bytes);

#endif
