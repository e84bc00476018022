/*
 * Parses the words of a command line into cogpu_arguments by the option table (options.c), and
 * prints the options of a command.
 */
#include "arguments.h"

#include "command.h"
#include "input_list.h"
#include "name.h"
#include "name_lists.h"
#include "options.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names that a suggestion is chosen from. */
enum { OPTIONS_MAX = 128 };

static bool is_name(const char *name, const char *word, size_t length) {
    return strlen(name) == length && !memcmp(name, word, length);
}

/* The option of a name or alias, of which `word` has `length` characters. A name comes first: an
 * alias may be the name of an option that other commands have. */
static const cogpu_option *find_option(uint32_t allowed, const char *word, size_t length) {
    for (int i = 0; i < cogpu_option_count; i++)
        if (is_name(cogpu_options[i].name, word, length) && (cogpu_options[i].id & allowed))
            return &cogpu_options[i];
    for (const cogpu_option_alias *alias = cogpu_option_aliases; alias->alias; alias++)
        if (is_name(alias->alias, word, length))
            return find_option(allowed, alias->name, strlen(alias->name));
    return NULL;
}

static void refuse_unknown(const cogpu_command *command, const char *word, size_t length) {
    const char *names[OPTIONS_MAX];
    int count = 0;
    for (int i = 0; i < cogpu_option_count && count < OPTIONS_MAX; i++)
        if (cogpu_options[i].id & (command->options | OPTION_COMMON))
            names[count++] = cogpu_options[i].name;
    char name[64]; /* the value may be a secret */
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *nearest = cogpu_nearest_name(name, names, count);
    if (nearest)
        cogpu_report_usage("%s has no option %s; did you mean %s?", command->name, name, nearest);
    else
        cogpu_report_usage("%s has no option %s; see cogpu %s --help", command->name, name,
                           command->name);
}

/* FNV-1a, with the closing NUL. */
static void add_to_hash(uint64_t *hash, const char *text) {
    for (const char *at = text;; at++) {
        *hash = (*hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
        if (!*at)
            return;
    }
}

/* Whether a word is the value of an option with an optional value, and not a file name. */
static bool is_number_list(const char *word) {
    return word[strspn(word, "0123456789+-.,eE")] == '\0' && strpbrk(word, "0123456789");
}

static const char *store_value(const cogpu_option *option, cogpu_arguments *arguments,
                               const char *value) {
    char *flag = (char *)arguments + option->flag_offset;
    if (option->set)
        return option->set(arguments, value);
    if (option->flag_bytes == sizeof(bool))
        memcpy(flag, &(bool){true}, sizeof(bool));
    else
        memcpy(flag, &(int){1}, sizeof(int));
    return NULL;
}

/* Parses the option at words[*index] and moves *index past its value. */
static bool parse_option(const cogpu_command *command, int count, char **words, int *index,
                         cogpu_arguments *arguments) {
    const char *word = words[*index];
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    const cogpu_option *found = find_option(command->options | OPTION_COMMON, word, length);
    if (!found) {
        refuse_unknown(command, word, length);
        return false;
    }
    if (value && !found->value) {
        cogpu_report_usage("%s takes no value", found->name);
        return false;
    }
    bool is_optional = found->value && found->value[0] == '[' && strchr(found->value, '=') == NULL;
    if (!value && is_optional && *index + 1 < count && is_number_list(words[*index + 1])) {
        value = words[++*index];
    } else if (!value && found->value && !is_optional) {
        if (*index + 1 == count) {
            cogpu_report_usage("%s needs a value: %s %s", found->name, found->name, found->value);
            return false;
        }
        value = words[++*index];
    }
    if (found->id & OPTIONS_OF_OUTPUT) {
        add_to_hash(&arguments->output_options, found->name);
        add_to_hash(&arguments->output_options, value ? value : "");
    }
    const char *wrong = store_value(found, arguments, value);
    if (wrong)
        cogpu_report_usage("%s %s: %s", found->name, value ? value : "", wrong);
    return wrong == NULL;
}

static bool check_files(const cogpu_command *command, int given) {
    if (given >= command->files && (given <= command->files || command->has_more_files))
        return true;
    if (given < command->files)
        cogpu_report_usage("%s needs %s; see cogpu %s --help", command->name, command->operands,
                           command->name);
    else
        cogpu_report_usage("%s accepts %s%s only; see cogpu %s --help", command->name,
                           command->files ? "" : "options", command->operands, command->name);
    return false;
}

static bool make_names(cogpu_arguments *arguments) {
    arguments->names = calloc((size_t)arguments->file_count + 1, sizeof *arguments->names);
    bool is_made = arguments->names != NULL;
    for (int i = 0; is_made && i < arguments->file_count; i++) {
        arguments->names[i] = cogpu_name_shown(arguments->files[i]);
        is_made = arguments->names[i] != NULL;
    }
    if (!is_made)
        cogpu_report_usage("out of memory");
    return is_made;
}

static bool parse_words(const cogpu_command *command, int count, char **words,
                        cogpu_arguments *arguments) {
    bool only_files = false; /* after "--" */
    for (int i = 0; i < count; i++) {
        if (!only_files && strcmp(words[i], "--") == 0) {
            only_files = true;
        } else if (!only_files && words[i][0] == '-' && words[i][1] != '\0') {
            if (!parse_option(command, count, words, &i, arguments))
                return false;
        } else {
            arguments->files[arguments->file_count++] = words[i];
        }
    }
    return true;
}

bool cogpu_arguments_parse(const cogpu_command *command, int count, char **words,
                           cogpu_arguments *arguments) {
    arguments->output_options = UINT64_C(0xcbf29ce484222325);
    add_to_hash(&arguments->output_options, cogpu_version());
    arguments->files = calloc((size_t)count + 1, sizeof *arguments->files);
    if (!arguments->files) {
        cogpu_report_usage("out of memory");
        return false;
    }
    if (!parse_words(command, count, words, arguments))
        return false;
    if (arguments->help)
        return true;
    if (arguments->input_list && !cogpu_input_list_insert(arguments))
        return false;
    return check_files(command, arguments->file_count) && make_names(arguments);
}

void cogpu_arguments_free(cogpu_arguments *arguments) {
    for (int i = 0; arguments->names && i < arguments->file_count; i++)
        free(arguments->names[i]);
    for (uint32_t i = 0; i < arguments->metadata_count; i++)
        free(arguments->metadata[i].memory);
    free(arguments->files);
    free(arguments->names);
    free(arguments->metadata);
    free(arguments->bands);
    free(arguments->factors);
    free(arguments->list_text);
}

/* Lists that come from the library's tables. */
static const struct {
    const char *mark;
    void (*list)(char text[NAMES_TEXT]);
} lists[] = {{"@codecs", cogpu_list_codecs},
             {"@quality_codecs", cogpu_list_quality_codecs},
             {"@levels", cogpu_list_levels},
             {"@resamplings", cogpu_list_resamplings},
             {"@warp_resamplings", cogpu_list_warp_resamplings},
             {"@composites", cogpu_list_composites}};

void cogpu_option_help(const cogpu_option *option, char text[OPTION_HELP_TEXT]) {
    const char *help = option->help;
    char names[NAMES_TEXT];
    snprintf(text, OPTION_HELP_TEXT, "%s", help);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *mark = strstr(help, lists[i].mark);
        if (!mark)
            continue;
        lists[i].list(names);
        snprintf(text, OPTION_HELP_TEXT, "%.*s%s%s", (int)(mark - help), help, names,
                 mark + strlen(lists[i].mark));
        return;
    }
}

void cogpu_arguments_help(uint32_t allowed) {
    for (int i = 0; i < cogpu_option_count; i++) {
        if (!(cogpu_options[i].id & (allowed | OPTION_COMMON)))
            continue;
        char left[48], help[OPTION_HELP_TEXT];
        snprintf(left, sizeof left, "%s %s", cogpu_options[i].name,
                 cogpu_options[i].value ? cogpu_options[i].value : "");
        cogpu_option_help(&cogpu_options[i], help);
        printf("  %-28s %s\n", left, help);
    }
}

/* Levenshtein distance; LONGEST for words that are too long to be a typing error. */
static int edit_distance(const char *a, const char *b) {
    enum { LONGEST = 32 };
    size_t b_length = strlen(b);
    if (strlen(a) > LONGEST || b_length > LONGEST)
        return LONGEST;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int corner = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < b_length; j++) {
            int change = corner + (a[i] != b[j]);
            int skip = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            corner = row[j + 1];
            row[j + 1] = change < skip ? change : skip;
        }
    }
    return row[b_length];
}

const char *cogpu_nearest_name(const char *word, const char *const *names, int count) {
    int best = 3; /* at most two typing errors */
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        int far = edit_distance(word, names[i]);
        if (far < best) {
            best = far;
            nearest = names[i];
        }
    }
    return nearest;
}
