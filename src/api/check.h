/*
 * What the files of the check share: the image as the validators see it, and the list of what was
 * found. check.c gathers and tells, check_layout.c looks at directories, check_blocks.c at each
 * block.
 */
#ifndef COGPU_API_CHECK_H
#define COGPU_API_CHECK_H

#include "api/room.h"

/* The rules, in the order in which findings are told. Some have several cases, on which the
 * validators do not agree: they share a name in check.c's table. */
typedef enum cogpu_rule {
    RULE_EDITED,
    RULE_EXTERNAL_OVERVIEWS,
    RULE_FIRST_DIRECTORY_FAR, /* past the 300 bytes that rio-cogeo allows */
    RULE_FIRST_DIRECTORY,
    RULE_DIRECTORY_ORDER,
    RULE_DATA_BEFORE_DIRECTORY,
    RULE_DATA_ORDER,
    RULE_STRIPS_WIDE,   /* wider than 1024 */
    RULE_STRIPS_LARGE,  /* a side over 512 */
    RULE_STRIPS_SMALL,  /* both sides up to 512 */
    RULE_TILES_WIDE,    /* as wide as the image, over 1024 */
    RULE_TILES_AS_WIDE, /* as wide as the image, up to 1024 */
    RULE_TILES_NOT_SQUARE,
    RULE_TILES_NO_POWER,
    RULE_NO_OVERVIEWS,
    RULE_COARSEST_LEVEL,
    RULE_OVERVIEW_LARGER,
    RULE_OVERVIEW_TALLER,    /* larger, but not by the width, which is what rio-cogeo looks at */
    RULE_OVERVIEW_FULL_SIZE, /* as large as the image, as far as rio-cogeo can tell */
    RULE_OVERVIEW_SAME_SIZE,
    RULE_OVERVIEW_NEAR_FULL, /* the factor rounds to 1, which rio-cogeo refuses */
    RULE_OVERVIEW_FACTOR,
    RULE_OVERVIEW_NARROW, /* a sound factor in height, and none in width */
    RULE_GEOREFERENCE,
    RULE_NOT_BIGTIFF,
    RULE_BLOCK_ORDER,
    RULE_BLOCK_LEADER,
    RULE_BLOCK_TRAILER,
    RULE_MASK_PLACE,
    RULE_MASK_BLOCK_SIZE,
    RULE_BLOCK_OUTSIDE,
    RULE_BLOCK_TABLE,
    RULE_DIRECTORY_UNSOUND,
    RULE_OTHER_IMAGES,
    RULE_COUNT
} cogpu_rule;

/* A level in the order of the file, whether or not the reader has a use for it. */
typedef struct cogpu_check_level {
    cogpu_storage storage;
    uint64_t directory_offset;
    uint64_t first_block;   /* offset of the first block that is not sparse; 0 where all are */
    uint64_t sparse_before; /* blocks of the first plane before that one, or all of the plane's */
    bool unsound;           /* its block table cannot be read, which has been noted */
    bool has_mask;
    cogpu_storage mask;
} cogpu_check_level;

typedef struct cogpu_check_tally cogpu_check_tally;

typedef struct cogpu_check_run {
    const cogpu_file *file;
    const cogpu_tiff *tiff;
    const cogpu_picture *picture; /* the first image, as the reader has it */
    cogpu_arena arena;
    cogpu_check_level levels[COGPU_LEVELS_MAX];
    uint32_t level_count;
    cogpu_check_tally *tallies; /* one a rule */
    uint64_t blocks;            /* looked at */
    cogpu_progress progress;    /* or NULL */
    void *progress_user;
    uint64_t done, total; /* blocks, for it */
    uint8_t *room;        /* of ROOM_BYTES, to look for zeros in */
    cogpu_error *error;
} cogpu_check_run;

/* check.c: notes a finding; -1 where a place does not apply. */
void cogpu_check_note(cogpu_check_run *run, cogpu_rule rule, int64_t directory, int64_t block,
                      uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
#define NO_OFFSET UINT64_MAX

/* check.c: `more` further blocks are done, for good or until the next call; fails where the caller
 * cancels. */
cogpu_status cogpu_check_progress(cogpu_check_run *run, uint64_t more, bool for_good);

/* check_layout.c: directories, sizes and order. */
cogpu_status cogpu_check_layout(cogpu_check_run *run);

/* check_blocks.c: fills level->first_block. */
cogpu_status cogpu_check_first_block(cogpu_check_run *run, cogpu_check_level *level);
/* check_blocks.c: every block of every level and mask. */
cogpu_status cogpu_check_blocks(cogpu_check_run *run);

#endif
