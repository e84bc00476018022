/*
 * What the tests of tags that a profile becomes share (src/image/write_*.c): a list of tags, and a
 * file with them that our reader opens. That others read them alike is for the tests in Python.
 */
#ifndef COGPU_TESTS_WRITE_TAGS_TEST_H
#define COGPU_TESTS_WRITE_TAGS_TEST_H

#include "image/geokey.h"
#include "image/write_tags.h"
#include "support/opened_tiff.h"
#include "support/test.h"

extern cogpu_arena tags_arena;
extern cogpu_tag_list tag_list;
extern cogpu_error tags_error;
extern uint32_t tags_photometric;

typedef cogpu_status describe(const cogpu_profile *profile);

cogpu_status describe_georef(const cogpu_profile *profile);

cogpu_status describe_metadata(const cogpu_profile *profile);

cogpu_status describe_colours(const cogpu_profile *profile);

cogpu_status describe_colours_as_jpeg(const cogpu_profile *profile);

void begin_tags(void);

bool accepts(describe *part, const cogpu_profile *profile);

/* With ARGUMENT and words of which `why` is one part. */
bool refuses(describe *part, const cogpu_profile *profile, const char *why);

const cogpu_new_tag *find_tag(uint16_t id);

const char *text_of(uint16_t id);

bool has_doubles(uint16_t id, uint64_t count, const double *expected);

bool has_shorts(uint16_t id, uint64_t count, const uint16_t *expected);

/* The tags in a file of one image. */
void open_written(opened_tiff *opened, uint16_t bands);

cogpu_profile of_one_band(void);

cogpu_profile with_transform(double x, double a, double b, double y, double d, double e);

#endif
