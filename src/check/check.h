/*
 * COG validation: the rules, the image as validators see it, and what was found. check.c leads and
 * reports, layout.c checks directories and sizes, blocks.c checks each block, rules.c is the table
 * of rules.
 */
#ifndef COGPU_CHECK_CHECK_H
#define COGPU_CHECK_CHECK_H

#include "context/file.h"

/* The rules, in the order in which findings are reported. A rule on which the validators disagree
 * has several cases, which share a name in rules.c. */
typedef enum cogpu_rule {
    RULE_EDITED,
    RULE_EXTERNAL_OVERVIEWS,
    RULE_FIRST_DIRECTORY_FAR, /* beyond the 300 bytes that rio-cogeo allows */
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
    RULE_OVERVIEW_TALLER,    /* larger in height only; rio-cogeo looks at the width */
    RULE_OVERVIEW_FULL_SIZE, /* as wide as the image, by rio-cogeo's factor */
    RULE_OVERVIEW_SAME_SIZE,
    RULE_OVERVIEW_NEAR_FULL, /* the factor rounds to 1, which rio-cogeo rejects */
    RULE_OVERVIEW_FACTOR,
    RULE_OVERVIEW_NARROW, /* a valid factor in height, none in width */
    RULE_GEOREFERENCE,
    RULE_NOT_BIGTIFF,
    RULE_BLOCK_ORDER,
    RULE_BLOCK_LEADER,
    RULE_BLOCK_TRAILER,
    RULE_MASK_OFFSET,
    RULE_MASK_BLOCK_SIZE,
    RULE_BLOCK_OUTSIDE,
    RULE_BLOCK_TABLE,
    RULE_DIRECTORY_MALFORMED,
    RULE_OTHER_IMAGES,
    RULE_COUNT
} cogpu_rule;

/* Severities are COGPU_SEVERITY_NOTE and above, or 0 if a validator has no such rule. */
typedef struct cogpu_check_rule {
    const char *name;
    uint8_t severity, strict; /* ours */
    uint8_t gdal, rio_cogeo, ogc;
    const char *advice;
} cogpu_check_rule;

extern const cogpu_check_rule cogpu_check_rules[RULE_COUNT];

/* A level in the order of the file, even if the reader does not use it. */
typedef struct cogpu_check_level {
    cogpu_storage storage;
    uint64_t directory_offset;
    uint64_t first_block;   /* offset of the first block that is not sparse; 0 where all are */
    uint64_t sparse_before; /* blocks of the first plane before that one, or all of the plane's */
    bool is_malformed;      /* its block table cannot be read, which is in the findings */
    bool has_mask;
    cogpu_storage mask;
} cogpu_check_level;

typedef struct cogpu_check_findings cogpu_check_findings;

typedef struct cogpu_check_run {
    const cogpu_file *file;
    const cogpu_tiff *tiff;
    const cogpu_pyramid *pyramid; /* the first image, as the reader has it */
    cogpu_arena arena;
    cogpu_check_level levels[COGPU_LEVELS_MAX];
    uint32_t level_count;
    cogpu_check_findings *findings; /* one for each rule */
    uint64_t blocks;                /* checked */
    cogpu_progress progress;        /* or NULL */
    void *progress_user;
    uint64_t done, total; /* blocks, for `progress` */
    uint8_t *table_bytes; /* scratch memory of blocks.c for runs of sparse blocks; NULL at first */
    cogpu_error *error;
} cogpu_check_run;

/* check.c: adds a finding. -1 and NO_OFFSET where a position does not apply. */
void cogpu_check_add_finding(cogpu_check_run *run, cogpu_rule rule, int64_t directory,
                             int64_t block, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
#define NO_OFFSET UINT64_MAX

/* check.c: reports `more` further blocks as done; they are counted if `is_final`. Fails if the
 * caller cancels. */
cogpu_status cogpu_check_progress(cogpu_check_run *run, uint64_t more, bool is_final);

/* check.c: see cogpu_check. */
cogpu_status cogpu_check_file(const cogpu_file *file, const cogpu_check_options *options,
                              void (*found)(void *user, const cogpu_finding *finding), void *user,
                              cogpu_checked *checked, cogpu_error *error);

/* layout.c: directories, sizes and order. */
cogpu_status cogpu_check_layout(cogpu_check_run *run);

/* blocks.c: fills level->first_block. */
cogpu_status cogpu_check_first_block(cogpu_check_run *run, cogpu_check_level *level);
/* blocks.c: every block of every level and mask. */
cogpu_status cogpu_check_blocks(cogpu_check_run *run);

#endif
