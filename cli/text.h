/*
 * Text and numbers as they are printed. Text comes from untrusted files: it may be no
 * UTF-8, and it may hold what a terminal would obey.
 */
#ifndef COGPU_CLI_TEXT_H
#define COGPU_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The code point at *text, which moves past it. A byte that is no UTF-8 is taken for Latin-1, which
 * is what older software wrote. */
uint32_t cogpu_text_next(const char **text);

/* Writes a code point as UTF-8, 1 to 4 bytes; returns how many. */
size_t cogpu_text_encode(uint32_t code, char bytes[4]);

/* Prints at most `limit` characters of the text ("..." stands for the rest), control characters as
 * \n, \t or \x1b. */
void cogpu_text_print(FILE *to, const char *text, size_t limit);

/* Copies the next line into `line`, cut where it is too long, and moves past it; false at the end.
 */
enum { LINE_TEXT = 512 };
bool cogpu_text_line(const char **lines, char line[LINE_TEXT]);

/* The shortest decimal that reads back as the same number; "nan", "inf", "-inf". */
enum { NUMBER_TEXT = 32 };
const char *cogpu_text_number(double number, char text[NUMBER_TEXT]);

#endif
