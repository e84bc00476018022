/*
 * cogpu_check: takes an open file, hands on what keeps it from being a COG.
 *
 * The validators' rules are here as a table: how grave a broken rule is for GDAL
 * (validate_cloud_optimized_geotiff.py, gdal driver cog validate), for rio-cogeo (cog_validate),
 * for the standard (OGC 21-026, a "shall" is a fault and a recommendation a warning), and for us.
 * Our severity is GDAL's; what rio-cogeo alone refuses is a warning and what the standard alone
 * refuses is a note, and strictly both are faults. Exceptions say why in a comment.
 */
#include "api/check.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 3 }; /* places of a rule that are told */

enum { NONE = 0, NOTE = COGPU_NOTE, WARN = COGPU_WARNING, FAULT = COGPU_FAULT };

static const struct rule {
    const char *name;
    uint8_t ours, strict;
    uint8_t gdal, rio_cogeo, ogc;
    const char *advice;
} rules[RULE_COUNT] = {
    [RULE_EDITED] = {"edited", FAULT, FAULT, FAULT, FAULT, NONE, "write it anew as a COG"},
    [RULE_EXTERNAL_OVERVIEWS] = {"external-overviews", FAULT, FAULT, FAULT, FAULT, NONE,
                                 "write it anew as a COG, with its overviews inside"},
    [RULE_FIRST_DIRECTORY_FAR] = {"first-directory", FAULT, FAULT, FAULT, FAULT, NONE,
                                  "write it anew as a COG: its directories come first"},
    [RULE_FIRST_DIRECTORY] = {"first-directory", FAULT, FAULT, FAULT, NONE, NONE,
                              "write it anew as a COG: its directories come first"},
    [RULE_DIRECTORY_ORDER] = {"directory-order", FAULT, FAULT, FAULT, FAULT, WARN,
                              "write it anew as a COG: directories from large to small"},
    [RULE_DATA_BEFORE_DIRECTORY] = {"data-before-directory", FAULT, FAULT, FAULT, FAULT, WARN,
                                    "write it anew as a COG: directories before data"},
    [RULE_DATA_ORDER] = {"data-order", FAULT, FAULT, FAULT, FAULT, WARN,
                         "write it anew as a COG: data of the smallest level first"},
    [RULE_STRIPS_WIDE] = {"not-tiled", FAULT, FAULT, FAULT, FAULT, FAULT, "write it anew in tiles"},
    [RULE_STRIPS_LARGE] = {"not-tiled", WARN, FAULT, NONE, FAULT, FAULT, "write it anew in tiles"},
    [RULE_STRIPS_SMALL] = {"not-tiled", NOTE, FAULT, NONE, NONE, FAULT, "write it anew in tiles"},
    /* GDAL and rio-cogeo know a strip by its width, and take a tile that is as wide as the image
     * for one. It is a tile, and where it is small enough a good one. */
    [RULE_TILES_WIDE] = {"wide-tiles", WARN, WARN, FAULT, FAULT, NONE, "use smaller tiles"},
    [RULE_TILES_AS_WIDE] = {"wide-tiles", NOTE, NOTE, NONE, FAULT, NONE,
                            "nothing, or use smaller tiles"},
    [RULE_TILES_NOT_SQUARE] = {"tiles-not-square", NOTE, WARN, NONE, NONE, WARN,
                               "use square tiles, of 512 or 256"},
    [RULE_TILES_NO_POWER] = {"tiles-no-power-of-two", NOTE, WARN, NONE, NONE, WARN,
                             "use tiles of 512 or 256"},
    [RULE_NO_OVERVIEWS] = {"no-overviews", WARN, FAULT, WARN, WARN, FAULT,
                           "write it anew with overviews"},
    [RULE_COARSEST_LEVEL] = {"coarsest-level", NOTE, FAULT, NONE, NONE, FAULT,
                             "add overviews until one tile spans the image"},
    [RULE_OVERVIEW_LARGER] = {"overview-size", FAULT, FAULT, FAULT, FAULT, FAULT,
                              "write it anew with overviews from large to small"},
    [RULE_OVERVIEW_TALLER] = {"overview-size", FAULT, FAULT, FAULT, NONE, FAULT,
                              "write it anew with overviews from large to small"},
    [RULE_OVERVIEW_FULL_SIZE] = {"overview-size", WARN, FAULT, NONE, FAULT, FAULT,
                                 "write it anew with overviews from large to small"},
    [RULE_OVERVIEW_SAME_SIZE] = {"overview-size", NOTE, FAULT, NONE, NONE, FAULT,
                                 "write it anew with overviews from large to small"},
    [RULE_OVERVIEW_FACTOR] = {"overview-factor", NOTE, FAULT, NONE, NONE, FAULT,
                              "write it anew with overviews by 2, 4, 8 and so on"},
    [RULE_OVERVIEW_NEAR_FULL] = {"overview-factor", WARN, FAULT, NONE, FAULT, FAULT,
                                 "write it anew with overviews by 2, 4, 8 and so on"},
    /* rio-cogeo computes factors from widths alone, and a width of one pixel stays. */
    [RULE_OVERVIEW_NARROW] = {"overview-width", NOTE, NOTE, NONE, FAULT, NONE, "nothing"},
    [RULE_GEOREFERENCE] = {"georeference-in-overview", NOTE, FAULT, NONE, NONE, FAULT,
                           "keep GeoTIFF's tags in the full resolution alone"},
    [RULE_NOT_BIGTIFF] = {"not-bigtiff", NOTE, FAULT, NONE, NONE, FAULT, "write it as BigTIFF"},
    [RULE_BLOCK_ORDER] = {"block-order", FAULT, FAULT, FAULT, NONE, NONE,
                          "write it anew as a COG; readers trust the order"},
    [RULE_BLOCK_LEADER] = {"block-leader", FAULT, FAULT, FAULT, NONE, NONE,
                           "write it anew as a COG; readers trust the sizes before blocks"},
    [RULE_BLOCK_TRAILER] = {"block-trailer", FAULT, FAULT, FAULT, NONE, NONE,
                            "write it anew as a COG; the block may have been changed"},
    [RULE_MASK_PLACE] = {"mask-place", FAULT, FAULT, FAULT, NONE, NONE,
                         "write it anew as a COG; readers fetch a block with its mask"},
    [RULE_MASK_BLOCK_SIZE] = {"mask-block-size", FAULT, FAULT, FAULT, NONE, NONE,
                              "write it anew as a COG, mask and image in the same tiles"},
    /* Damage, which no validator has a rule for: theirs end with an error, or do not look. */
    [RULE_BLOCK_OUTSIDE] = {"block-outside", FAULT, FAULT, NONE, NONE, NONE,
                            "fetch or copy the file again"},
    [RULE_BLOCK_TABLE] = {"block-table", FAULT, FAULT, NONE, NONE, NONE,
                          "fetch or copy the file again"},
    [RULE_DIRECTORY_UNSOUND] = {"unsound-directory", WARN, WARN, NONE, NONE, NONE,
                                "look at it with cogpu info --tags"},
    [RULE_OTHER_IMAGES] = {"other-images", NOTE, NOTE, NONE, NONE, NONE,
                           "keep each image in a file of its own"},
};

struct cogpu_check_tally {
    uint64_t places;
    cogpu_finding first[SHOWN];
};

static uint32_t who_says(const struct rule *rule) {
    return (rule->gdal ? COGPU_SAYS_GDAL : 0) | (rule->rio_cogeo ? COGPU_SAYS_RIO_COGEO : 0) |
           (rule->ogc ? COGPU_SAYS_OGC : 0);
}

void cogpu_check_note(cogpu_check_run *run, cogpu_rule rule, int64_t directory, int64_t block,
                      uint64_t offset, const char *format, ...) {
    cogpu_check_tally *tally = &run->tallies[rule];
    if (tally->places++ >= SHOWN)
        return;
    cogpu_finding *finding = &tally->first[tally->places - 1];
    *finding = (cogpu_finding){.rule = rules[rule].name,
                               .advice = rules[rule].advice,
                               .who = who_says(&rules[rule]),
                               .directory = (int32_t)directory,
                               .block = block,
                               .offset = offset <= INT64_MAX ? (int64_t)offset : -1};
    va_list values;
    va_start(values, format);
    vsnprintf(finding->message, sizeof finding->message, format, values);
    va_end(values);
}

/* ---- the image, in the order of the file ----------------------------------------------------- */

enum { REDUCED = 1, MASK = 4 };

static void pair_mask(cogpu_check_run *run, const cogpu_storage *mask) {
    for (uint32_t i = 0; i < run->level_count; i++) {
        cogpu_check_level *level = &run->levels[i];
        if (!level->has_mask && level->storage.width == mask->width &&
            level->storage.height == mask->height) {
            level->has_mask = true;
            level->mask = *mask;
            return;
        }
    }
}

/* A directory that is read as nothing is worth a word, unless the call itself has failed. */
static cogpu_status read_storage(cogpu_check_run *run, uint32_t directory, cogpu_storage *storage,
                                 bool *sound) {
    cogpu_error unsound;
    const char *warning = NULL; /* which opening has told already */
    cogpu_status status =
        cogpu_storage_read(run->tiff, directory, &run->arena, storage, &warning, &unsound);
    *sound = status == COGPU_OK;
    if (status == COGPU_MEMORY || status == COGPU_IO) {
        if (run->error)
            *run->error = unsound;
        return status;
    }
    if (!*sound)
        cogpu_check_note(run, RULE_DIRECTORY_UNSOUND, directory, -1,
                         run->tiff->directories[directory].offset, "the directory is unsound: %s",
                         unsound.message);
    return COGPU_OK;
}

cogpu_status cogpu_check_progress(cogpu_check_run *run, uint64_t more, bool for_good) {
    uint64_t left = run->total - run->done;
    uint64_t done = run->done + (more < left ? more : left);
    if (for_good)
        run->done = done;
    if (run->progress && run->progress(run->progress_user, done, run->total) != 0)
        return cogpu_fail(run->error, COGPU_CANCELLED, "the check was cancelled");
    return COGPU_OK;
}

/* Validators see what GDAL takes for an overview: a directory of the chain with as many bands as
 * the image. Of a SubIFD, which may as well be a thumbnail for viewers, the reader decides. */
static bool is_overview(const cogpu_check_run *run, const cogpu_storage *storage, bool is_sub) {
    const cogpu_picture *picture = run->picture;
    if (!is_sub)
        return storage->bands == picture->info.bands;
    for (uint32_t i = 1; i < picture->info.levels; i++)
        if (!picture->levels[i].external &&
            picture->levels[i].storage.directory == storage->directory)
            return true;
    return false;
}

static cogpu_status gather(cogpu_check_run *run, uint32_t directory, bool masks) {
    const cogpu_ifd *ifd = &run->tiff->directories[directory];
    cogpu_storage storage;
    bool sound;
    if (((ifd->subfile_type & MASK) != 0) != masks ||
        (!masks && run->level_count == COGPU_LEVELS_MAX))
        return COGPU_OK;
    TRY(read_storage(run, directory, &storage, &sound));
    if (sound && masks)
        pair_mask(run, &storage);
    else if (sound && is_overview(run, &storage, ifd->parent >= 0))
        run->levels[run->level_count++] =
            (cogpu_check_level){.storage = storage, .directory_offset = ifd->offset};
    return COGPU_OK;
}

/* As GDAL has it: what of the chain follows the image up to the next one, and its SubIFDs; in the
 * order of the file, for that is what is checked. */
static cogpu_status gather_levels(cogpu_check_run *run, bool masks) {
    const cogpu_tiff *tiff = run->tiff;
    uint32_t first = run->picture->info.directory;
    bool own = true;
    for (uint32_t i = first + 1; i < tiff->directory_count; i++) {
        const cogpu_ifd *ifd = &tiff->directories[i];
        if (ifd->parent < 0)
            own = own && ifd->subfile_type & (REDUCED | MASK);
        if (ifd->parent < 0 ? own
                            : ifd->parent == (int32_t)first && ifd->subfile_type & (REDUCED | MASK))
            TRY(gather(run, i, masks));
    }
    return COGPU_OK;
}

static cogpu_status check_file(cogpu_check_run *run, bool with_blocks) {
    TRY(cogpu_arena_take(&run->arena, RULE_COUNT, sizeof *run->tallies, &run->tallies, run->error));
    TRY(cogpu_file_picture(run->file, 0, &run->picture, run->error));
    run->levels[run->level_count++] = (cogpu_check_level){
        .storage = run->picture->levels[0].storage,
        .directory_offset = run->tiff->directories[run->picture->info.directory].offset};
    TRY(gather_levels(run, false));
    TRY(gather_levels(run, true));
    for (uint32_t i = 0; i < run->level_count; i++)
        run->total += run->levels[i].storage.blocks +
                      (run->levels[i].has_mask ? run->levels[i].mask.blocks : 0);
    TRY(cogpu_check_layout(run));
    return with_blocks ? cogpu_check_blocks(run) : COGPU_OK;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void tell(cogpu_check_tally *tally, cogpu_severity severity,
                 void (*found)(void *user, const cogpu_finding *finding), void *user) {
    uint64_t shown = tally->places < SHOWN ? tally->places : SHOWN;
    for (uint64_t i = 0; i < shown; i++) {
        tally->first[i].severity = severity;
        tally->first[i].more = i + 1 == shown ? tally->places - shown : 0;
        found(user, &tally->first[i]);
    }
}

static void tell_all(const cogpu_check_run *run, bool strict,
                     void (*found)(void *user, const cogpu_finding *finding), void *user) {
    for (int severity = COGPU_FAULT; severity >= COGPU_NOTE; severity--)
        for (int i = 0; i < RULE_COUNT; i++)
            if ((strict ? rules[i].strict : rules[i].ours) == severity)
                tell(&run->tallies[i], (cogpu_severity)severity, found, user);
}

static void lower(cogpu_verdict *verdict, uint8_t severity) {
    cogpu_verdict to = severity == FAULT  ? COGPU_INVALID
                       : severity == WARN ? COGPU_VALID_WITH_WARNINGS
                                          : COGPU_VALID;
    if (to < *verdict)
        *verdict = to;
}

static void sum_up(const cogpu_check_run *run, bool strict, cogpu_checked *checked) {
    *checked =
        (cogpu_checked){COGPU_VALID, COGPU_VALID, COGPU_VALID, COGPU_VALID, 0, 0, 0, run->blocks};
    for (int i = 0; i < RULE_COUNT; i++) {
        uint64_t places = run->tallies[i].places;
        uint8_t severity = strict ? rules[i].strict : rules[i].ours;
        if (places == 0)
            continue;
        checked->faults += severity == FAULT ? places : 0;
        checked->warnings += severity == WARN ? places : 0;
        checked->notes += severity == NOTE ? places : 0;
        lower(&checked->verdict, severity);
        lower(&checked->gdal, rules[i].gdal);
        lower(&checked->rio_cogeo, rules[i].rio_cogeo);
        lower(&checked->ogc, rules[i].ogc);
    }
}

cogpu_status cogpu_check(const cogpu_file *file, const cogpu_check_options *options,
                         void (*found)(void *user, const cogpu_finding *finding), void *user,
                         cogpu_checked *checked, cogpu_error *error) {
    bool strict = options && options->strict, with_blocks = !options || !options->skip_blocks;
    if (!file || !checked)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_check needs a file and a place to sum up");
    cogpu_error_clear(error);
    cogpu_check_run run = {.file = file,
                           .tiff = &file->tiff,
                           .error = error,
                           .progress = options ? options->progress : NULL,
                           .progress_user = options ? options->progress_user : NULL};
    cogpu_arena_open(&run.arena, file->tiff.limits.call_bytes);
    cogpu_status status = check_file(&run, with_blocks);
    if (status == COGPU_OK) {
        sum_up(&run, strict, checked);
        if (found)
            tell_all(&run, strict, found, user);
    }
    cogpu_arena_close(&run.arena);
    return status;
}

const char *cogpu_severity_name(cogpu_severity severity) {
    return severity == COGPU_FAULT ? "fault" : severity == COGPU_WARNING ? "warning" : "note";
}

const char *cogpu_verdict_name(cogpu_verdict verdict) {
    return verdict == COGPU_VALID                 ? "valid"
           : verdict == COGPU_VALID_WITH_WARNINGS ? "valid with warnings"
                                                  : "invalid";
}
