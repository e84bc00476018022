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

/* The character that "&lt;", "&#65;" or the like stands for, if the text begins with such, and its
 * bytes from '&' to ';'; 0 otherwise. */
uint32_t cogpu_xml_character(xml_slice text, size_t *bytes);

#endif
