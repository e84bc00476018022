/* Numbers as a person types them: whole words, nothing before or after. */
#ifndef COGPU_CLI_NUMBERS_H
#define COGPU_CLI_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* The text is `count` whole numbers of 32 bits with commas between. */
bool cogpu_parse_wholes(const char *text, uint32_t *numbers, uint32_t count);

/* The text is `count` finite numbers with commas between. */
bool cogpu_parse_numbers(const char *text, double *numbers, uint32_t count);

/* The text is two whole numbers as 512x256, or one for both. */
bool cogpu_parse_size(const char *text, uint32_t *width, uint32_t *height);

/* A list of whole numbers of any length, which the caller frees; NULL where the text is none or
 * there is no memory. */
uint32_t *cogpu_parse_list(const char *text, uint32_t *count);

#endif
