/*
 * `cogpu check`: validates a COG and prints each finding with its rule, its position and what to
 * do.
 */
#include "command.h"
#include "input.h"
#include "json.h"
#include "progress.h"
#include "report.h"
#include "sources.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The findings, kept because the verdict is printed before them. */
typedef struct findings {
    cogpu_finding *items;
    size_t count, capacity;
    bool failed; /* no memory */
} findings;

static void keep_finding(void *user, const cogpu_finding *finding) {
    findings *list = user;
    if (list->count == list->capacity && !list->failed) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        cogpu_finding *items = realloc(list->items, capacity * sizeof *items);
        list->failed = !items;
        if (items) {
            list->items = items;
            list->capacity = capacity;
        }
    }
    if (!list->failed)
        list->items[list->count++] = *finding;
}

static const struct {
    uint32_t bit;
    const char *key, *name;
} validators[] = {
    {COGPU_RULE_OF_GDAL, "gdal", "GDAL"},
    {COGPU_RULE_OF_RIO_COGEO, "rio_cogeo", "rio-cogeo"},
    {COGPU_RULE_OF_OGC, "ogc", "OGC 21-026"},
};

enum { VALIDATORS = sizeof validators / sizeof *validators };

/* ---- for a person ---------------------------------------------------------------------------- */

static void print_count(const char **before, uint64_t count, const char *what) {
    if (count == 0)
        return;
    printf("%s%" PRIu64 " %s%s", *before, count, what, count == 1 ? "" : "s");
    *before = ", ";
}

static void print_verdict(const char *file, const cogpu_checked *checked) {
    const char *before = ": ";
    cogpu_text_print(stdout, file, SIZE_MAX);
    fputs(checked->verdict == COGPU_VERDICT_INVALID ? ": not a valid COG" : ": a valid COG",
          stdout);
    print_count(&before, checked->errors, "error");
    print_count(&before, checked->warnings, "warning");
    print_count(&before, checked->notes, "note");
    putchar('\n');
}

/* Whose rule it is and what to do, once for all places of a rule. */
static void print_rule(const cogpu_finding *finding) {
    const char *before = "a rule of ";
    if (finding->more)
        printf("           and %" PRIu64 " more\n", finding->more);
    printf("           ");
    for (int i = 0; i < VALIDATORS; i++)
        if (finding->validators & validators[i].bit) {
            printf("%s%s", before, validators[i].name);
            before = ", ";
        }
    printf("%s%s\n", finding->validators ? "; " : "", finding->advice);
}

static void print_check_text(const char *file, const cogpu_checked *checked, const findings *list) {
    print_verdict(file, checked);
    for (size_t i = 0; i < list->count; i++) {
        const cogpu_finding *finding = &list->items[i];
        printf("  %-8s %s: ", cogpu_severity_name(finding->severity), finding->rule);
        cogpu_text_print(stdout, finding->message, SIZE_MAX);
        cogpu_report_position(stdout, finding->directory, finding->block, finding->offset);
        putchar('\n');
        if (i + 1 == list->count || list->items[i + 1].rule != finding->rule)
            print_rule(finding);
    }
    printf("  GDAL: %s; rio-cogeo: %s; OGC 21-026: %s\n", cogpu_verdict_name(checked->gdal),
           cogpu_verdict_name(checked->rio_cogeo), cogpu_verdict_name(checked->ogc));
}

/* ---- for a program --------------------------------------------------------------------------- */

static void json_finding(cogpu_json *json, const cogpu_finding *finding) {
    cogpu_json_open(json, NULL, '{');
    cogpu_json_text(json, "severity", cogpu_severity_name(finding->severity));
    cogpu_json_text(json, "rule", finding->rule);
    cogpu_json_open(json, "validators", '-');
    for (int i = 0; i < VALIDATORS; i++)
        if (finding->validators & validators[i].bit)
            cogpu_json_text(json, NULL, validators[i].key);
    cogpu_json_close(json);
    cogpu_json_text(json, "message", finding->message);
    cogpu_json_text(json, "advice", finding->advice);
    cogpu_json_index(json, "directory", finding->directory);
    cogpu_json_index(json, "block", finding->block);
    cogpu_json_index(json, "offset", finding->offset);
    cogpu_json_unsigned(json, "more", finding->more);
    cogpu_json_close(json);
}

static bool print_check_json(const char *file, const cogpu_checked *checked, const findings *list) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", file);
    cogpu_json_text(&json, "verdict", cogpu_verdict_name(checked->verdict));
    cogpu_json_text(&json, "gdal", cogpu_verdict_name(checked->gdal));
    cogpu_json_text(&json, "rio_cogeo", cogpu_verdict_name(checked->rio_cogeo));
    cogpu_json_text(&json, "ogc", cogpu_verdict_name(checked->ogc));
    cogpu_json_unsigned(&json, "errors", checked->errors);
    cogpu_json_unsigned(&json, "warnings", checked->warnings);
    cogpu_json_unsigned(&json, "notes", checked->notes);
    cogpu_json_unsigned(&json, "blocks", checked->blocks);
    cogpu_json_open(&json, "findings", '[');
    for (size_t i = 0; i < list->count; i++)
        json_finding(&json, &list->items[i]);
    cogpu_json_close(&json);
    cogpu_json_close(&json);
    return cogpu_json_print(&json);
}

static int print_check_result(const cogpu_arguments *arguments, const cogpu_input *input,
                              const cogpu_checked *checked, const findings *list) {
    bool printed = true;
    if (arguments->json)
        printed = print_check_json(input->name, checked, list);
    else
        print_check_text(input->name, checked, list);
    return printed && checked->verdict != COGPU_VERDICT_INVALID ? EXIT_DONE : EXIT_FAILED;
}

static int show_progress(void *user, uint64_t done, uint64_t total) {
    cogpu_progress_bar *bar = user;
    if (bar->total == 0) {
        cogpu_progress_open(bar, total);
        bar->unit = "million blocks/s";
    }
    cogpu_progress_add(bar, done - bar->done);
    return 0;
}

static int check_file(const cogpu_arguments *arguments, const cogpu_input *input, int index) {
    cogpu_progress_bar bar = {0};
    const cogpu_check_options options = {.struct_size = sizeof(cogpu_check_options),
                                         .strict = arguments->strict,
                                         .skip_blocks = arguments->fast,
                                         .progress = show_progress,
                                         .progress_user = &bar};
    cogpu_checked checked = COGPU_CHECKED_INIT;
    cogpu_error error;
    findings list = {0};
    (void)index;
    if (cogpu_sources_exist(input->file)) {
        cogpu_refuse(&error, COGPU_NOT_TIFF, "is a mosaic of other files; check those");
        return cogpu_report_error(input->name, &error);
    }
    cogpu_status status = cogpu_check(input->file, &options, keep_finding, &list, &checked, &error);
    cogpu_progress_close(&bar);
    if (status == COGPU_OK && list.failed)
        status = cogpu_refuse(&error, COGPU_OUT_OF_MEMORY, "no memory for the findings");
    int code = status == COGPU_OK ? print_check_result(arguments, input, &checked, &list)
                                  : cogpu_report_error(input->name, &error);
    free(list.items);
    return code;
}

const cogpu_command cogpu_cmd_check = {
    .name = "check",
    .operands = "FILE...",
    .files = 1,
    .has_more_files = true,
    .options = OPTION_STRICT | OPTION_FAST | OPTION_NETWORK | OPTION_JSON,
    .summary = "validate Cloud Optimized GeoTIFFs",
    .details =
        "Validates a COG by the rules of GDAL's validator, rio-cogeo and the standard\n"
        "(OGC 21-026). Each finding has its rule, its position and what to do. A file with errors\n"
        "is invalid. Rules of the standard alone give notes, or errors with --strict.\n"
        "Exit code: 0 if the file is valid, 1 if not.",
    .run_each = check_file,
};
