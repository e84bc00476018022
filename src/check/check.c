/*
 * COG validation of the first image of a file: lists its levels in the order of the file, runs the
 * checks of layout.c and blocks.c, and reports what they found by the rules of rules.c.
 */
#include "check/check.h"

#include <stdarg.h>
#include <stdio.h>

/* Findings of a rule that are reported one by one; the others are counted. */
enum { REPORTED_MAX = 3 };

struct cogpu_check_findings {
    uint64_t count;
    cogpu_finding first[REPORTED_MAX];
};

static uint32_t validators_of(const cogpu_check_rule *rule) {
    return (rule->gdal ? COGPU_RULE_OF_GDAL : 0) | (rule->rio_cogeo ? COGPU_RULE_OF_RIO_COGEO : 0) |
           (rule->ogc ? COGPU_RULE_OF_OGC : 0);
}

void cogpu_check_add_finding(cogpu_check_run *run, cogpu_rule rule, int64_t directory,
                             int64_t block, uint64_t offset, const char *format, ...) {
    const cogpu_check_rule *broken = &cogpu_check_rules[rule];
    cogpu_check_findings *findings = &run->findings[rule];
    if (findings->count++ >= REPORTED_MAX)
        return;
    cogpu_finding *finding = &findings->first[findings->count - 1];
    *finding = (cogpu_finding){.struct_size = sizeof *finding,
                               .rule = broken->name,
                               .advice = broken->advice,
                               .validators = validators_of(broken),
                               .directory = (int32_t)directory,
                               .block = block,
                               .offset = offset <= INT64_MAX ? (int64_t)offset : -1};
    va_list values;
    va_start(values, format);
    vsnprintf(finding->message, sizeof finding->message, format, values);
    va_end(values);
}

/* ---- the image, in the order of the file ----------------------------------------------------- */

enum { SUBFILE_REDUCED = 1, SUBFILE_MASK = 4 }; /* NewSubfileType, TIFF 6.0 section 8 */

static void add_mask_to_level(cogpu_check_run *run, const cogpu_storage *mask) {
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

/* A malformed directory is a finding; lack of memory and I/O errors fail the call. */
static cogpu_status read_storage(cogpu_check_run *run, uint32_t directory, cogpu_storage *storage,
                                 bool *is_valid) {
    cogpu_error why;
    const char *warning = NULL; /* cogpu_image.warning has it already */
    cogpu_status status =
        cogpu_storage_read(run->tiff, directory, &run->arena, storage, &warning, &why);
    *is_valid = status == COGPU_OK;
    if (status == COGPU_OUT_OF_MEMORY || status == COGPU_IO_ERROR) {
        if (run->error)
            *run->error = why;
        return status;
    }
    if (!*is_valid)
        cogpu_check_add_finding(run, RULE_DIRECTORY_MALFORMED, directory, -1,
                                run->tiff->directories[directory].offset,
                                "the directory is malformed: %s", why.message);
    return COGPU_OK;
}

cogpu_status cogpu_check_progress(cogpu_check_run *run, uint64_t more, bool is_final) {
    uint64_t left = run->total - run->done;
    uint64_t done = run->done + (more < left ? more : left);
    if (is_final)
        run->done = done;
    if (run->progress && run->progress(run->progress_user, done, run->total) != 0)
        return cogpu_fail(run->error, COGPU_CANCELLED, "the check was cancelled");
    return COGPU_OK;
}

/* Validators have GDAL's notion of an overview: a directory of the chain with as many bands as the
 * image. A SubIFD may be a thumbnail: it is an overview if the reader uses it as one. */
static bool is_overview(const cogpu_check_run *run, const cogpu_storage *storage, bool is_sub) {
    const cogpu_pyramid *pyramid = run->pyramid;
    if (!is_sub)
        return storage->bands == pyramid->info.bands;
    for (uint32_t i = 1; i < pyramid->info.levels; i++)
        if (!pyramid->levels[i].external &&
            pyramid->levels[i].storage.directory == storage->directory)
            return true;
    return false;
}

static cogpu_status collect_directory(cogpu_check_run *run, uint32_t directory, bool masks) {
    const cogpu_ifd *ifd = &run->tiff->directories[directory];
    cogpu_storage storage;
    bool is_valid;
    if (((ifd->subfile_type & SUBFILE_MASK) != 0) != masks ||
        (!masks && run->level_count == COGPU_LEVELS_MAX))
        return COGPU_OK;
    TRY(read_storage(run, directory, &storage, &is_valid));
    if (is_valid && masks)
        add_mask_to_level(run, &storage);
    else if (is_valid && is_overview(run, &storage, ifd->parent >= 0))
        run->levels[run->level_count++] =
            (cogpu_check_level){.storage = storage, .directory_offset = ifd->offset};
    return COGPU_OK;
}

/* As GDAL does it: the directories of the chain between the image and the next one, and the image's
 * SubIFDs, in the order of the file, which is what is checked. */
static cogpu_status list_levels(cogpu_check_run *run, bool masks) {
    const cogpu_tiff *tiff = run->tiff;
    uint32_t first = run->pyramid->info.directory;
    bool is_of_image = true;
    for (uint32_t i = first + 1; i < tiff->directory_count; i++) {
        const cogpu_ifd *ifd = &tiff->directories[i];
        if (ifd->parent < 0)
            is_of_image = is_of_image && ifd->subfile_type & (SUBFILE_REDUCED | SUBFILE_MASK);
        if (ifd->parent < 0 ? is_of_image
                            : ifd->parent == (int32_t)first &&
                                  ifd->subfile_type & (SUBFILE_REDUCED | SUBFILE_MASK))
            TRY(collect_directory(run, i, masks));
    }
    return COGPU_OK;
}

static cogpu_status run_checks(cogpu_check_run *run, bool with_blocks) {
    TRY(cogpu_arena_allocate(&run->arena, RULE_COUNT, sizeof *run->findings, &run->findings,
                             run->error));
    TRY(cogpu_file_pyramid(run->file, 0, &run->pyramid, run->error));
    run->levels[run->level_count++] = (cogpu_check_level){
        .storage = run->pyramid->levels[0].storage,
        .directory_offset = run->tiff->directories[run->pyramid->info.directory].offset};
    TRY(list_levels(run, false));
    TRY(list_levels(run, true));
    for (uint32_t i = 0; i < run->level_count; i++)
        run->total += run->levels[i].storage.blocks +
                      (run->levels[i].has_mask ? run->levels[i].mask.blocks : 0);
    TRY(cogpu_check_layout(run));
    return with_blocks ? cogpu_check_blocks(run) : COGPU_OK;
}

/* ---- report ---------------------------------------------------------------------------------- */

static cogpu_severity severity_of(const cogpu_check_rule *rule, bool is_strict) {
    return (cogpu_severity)(is_strict ? rule->strict : rule->severity);
}

static void report_rule(cogpu_check_findings *findings, cogpu_severity severity,
                        void (*found)(void *user, const cogpu_finding *finding), void *user) {
    uint64_t reported = findings->count < REPORTED_MAX ? findings->count : REPORTED_MAX;
    for (uint64_t i = 0; i < reported; i++) {
        findings->first[i].severity = severity;
        findings->first[i].more = i + 1 == reported ? findings->count - reported : 0;
        found(user, &findings->first[i]);
    }
}

static void report_findings(const cogpu_check_run *run, bool is_strict,
                            void (*found)(void *user, const cogpu_finding *finding), void *user) {
    for (int severity = COGPU_SEVERITY_ERROR; severity >= COGPU_SEVERITY_NOTE; severity--)
        for (int i = 0; i < RULE_COUNT; i++)
            if ((int)severity_of(&cogpu_check_rules[i], is_strict) == severity)
                report_rule(&run->findings[i], (cogpu_severity)severity, found, user);
}

static void lower_verdict(cogpu_verdict *verdict, unsigned severity) {
    cogpu_verdict lowered = severity == COGPU_SEVERITY_ERROR     ? COGPU_VERDICT_INVALID
                            : severity == COGPU_SEVERITY_WARNING ? COGPU_VERDICT_VALID_WITH_WARNINGS
                                                                 : COGPU_VERDICT_VALID;
    if (lowered < *verdict)
        *verdict = lowered;
}

static void summarise_findings(const cogpu_check_run *run, bool is_strict, cogpu_checked *checked) {
    *checked = (cogpu_checked){.verdict = COGPU_VERDICT_VALID,
                               .gdal = COGPU_VERDICT_VALID,
                               .rio_cogeo = COGPU_VERDICT_VALID,
                               .ogc = COGPU_VERDICT_VALID,
                               .blocks = run->blocks};
    for (int i = 0; i < RULE_COUNT; i++) {
        const cogpu_check_rule *rule = &cogpu_check_rules[i];
        uint64_t count = run->findings[i].count;
        cogpu_severity severity = severity_of(rule, is_strict);
        if (count == 0)
            continue;
        checked->errors += severity == COGPU_SEVERITY_ERROR ? count : 0;
        checked->warnings += severity == COGPU_SEVERITY_WARNING ? count : 0;
        checked->notes += severity == COGPU_SEVERITY_NOTE ? count : 0;
        lower_verdict(&checked->verdict, severity);
        lower_verdict(&checked->gdal, rule->gdal);
        lower_verdict(&checked->rio_cogeo, rule->rio_cogeo);
        lower_verdict(&checked->ogc, rule->ogc);
    }
}

cogpu_status cogpu_check_file(const cogpu_file *file, const cogpu_check_options *options,
                              void (*found)(void *user, const cogpu_finding *finding), void *user,
                              cogpu_checked *checked, cogpu_error *error) {
    bool is_strict = options && options->strict;
    cogpu_check_run run = {.file = file,
                           .tiff = cogpu_file_tiff(file),
                           .error = error,
                           .progress = options ? options->progress : NULL,
                           .progress_user = options ? options->progress_user : NULL};
    cogpu_arena_open(&run.arena, run.tiff->limits.working_memory_bytes);
    cogpu_status status = run_checks(&run, !options || !options->skip_blocks);
    if (status == COGPU_OK) {
        summarise_findings(&run, is_strict, checked);
        if (found)
            report_findings(&run, is_strict, found, user);
    }
    cogpu_arena_close(&run.arena);
    return status;
}
