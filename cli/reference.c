/*
 * The reference of the command line in four formats: Markdown for the documentation site, a manual
 * page, and completions for bash and zsh. Commands and options come from the tables that the parser
 * uses, so that a new option appears in all of them.
 */
#include "reference.h"

#include "name_lists.h"
#include "options.h"
#include "report.h"

#include <stdio.h>
#include <string.h>

typedef struct command_list {
    const cogpu_command *const *commands;
    int count;
} command_list;

static bool has_option(const cogpu_command *command, const cogpu_option *option) {
    return (option->id & (command->options | OPTION_COMMON)) != 0;
}

static bool is_alias_of(const cogpu_option_alias *alias, const cogpu_option *option) {
    return strcmp(alias->name, option->name) == 0;
}

enum { LINE_TEXT = 256 };

/* Copies the first line of a text, and returns the next one. */
static const char *next_line(const char *text, char line[LINE_TEXT]) {
    size_t length = strcspn(text, "\n");
    snprintf(line, LINE_TEXT, "%.*s", (int)length, text);
    return text + length + (text[length] == '\n');
}

/* ---- values that a shell can complete ---------------------------------------------------------*/

static const char *device_name(int value) {
    return cogpu_device_kind_name((cogpu_device_kind)value);
}

static const char *type_name(int value) {
    return cogpu_type_name((cogpu_type)value);
}

static const char *resampling_name(int value) {
    return cogpu_resampling_name((cogpu_resampling)value);
}

static const char *composite_name(int value) {
    return cogpu_composite_name((cogpu_composite)value);
}

static const char *interleave_name(int value) {
    return cogpu_interleave_name((cogpu_interleave)value);
}

static const char *bigtiff_name(int value) {
    return cogpu_bigtiff_name((cogpu_bigtiff)value);
}

/* Options whose values are the names of an enum, from `first` to `last`. `ids` tells options of one
 * name apart. */
static const struct {
    const char *option;
    uint32_t ids;
    const char *(*name)(int value);
    int first, last;
} enums[] = {
    {"--device", UINT32_MAX, device_name, COGPU_DEVICE_CPU, COGPU_DEVICE_EMULATOR},
    {"--type", UINT32_MAX, type_name, COGPU_TYPE_F16, COGPU_TYPE_F64},
    {"--dtype", UINT32_MAX, type_name, COGPU_TYPE_U8, COGPU_TYPE_F64},
    {"--resampling", OPTION_RESHAPE, resampling_name, COGPU_RESAMPLE_NEAREST,
     COGPU_RESAMPLE_MEDIAN},
    {"--resampling", OPTION_GRID, resampling_name, COGPU_RESAMPLE_NEAREST, COGPU_RESAMPLE_SUM},
    {"--overview-resampling", UINT32_MAX, resampling_name, COGPU_RESAMPLE_NEAREST,
     COGPU_RESAMPLE_MEDIAN},
    {"--composite", UINT32_MAX, composite_name, COGPU_COMPOSITE_FIRST, COGPU_COMPOSITE_COUNT},
    {"--interleave", UINT32_MAX, interleave_name, COGPU_INTERLEAVE_PIXEL, COGPU_INTERLEAVE_BAND},
    {"--bigtiff", UINT32_MAX, bigtiff_name, COGPU_BIGTIFF_AUTO, COGPU_BIGTIFF_NO},
};
enum { ENUM_COUNT = sizeof enums / sizeof *enums };

/* The index among `enums`, or ENUM_COUNT. */
static size_t find_enum(const cogpu_option *option) {
    size_t i = 0;
    while (i < ENUM_COUNT &&
           (strcmp(option->name, enums[i].option) != 0 || !(option->id & enums[i].ids)))
        i++;
    return i;
}

/* Prints the words of "a, b or c" with spaces between them. */
static void print_words(const char *list) {
    for (const char *at = list; *at; at++) {
        if (strncmp(at, " or ", 4) == 0)
            at += 3;
        else if (*at == ',')
            continue;
        putchar(*at);
    }
}

/* Prints the values of an option that has_choices, with spaces between them. */
static void print_choices(const cogpu_option *option) {
    if (strcmp(option->name, "--codec") == 0) {
        char names[NAMES_TEXT];
        cogpu_list_codecs(names);
        print_words(names);
    }
    size_t found = find_enum(option);
    for (int value = enums[found % ENUM_COUNT].first;
         found < ENUM_COUNT && value <= enums[found].last; value++)
        printf("%s%s", value == enums[found].first ? "" : " ", enums[found].name(value));
}

static bool has_choices(const cogpu_option *option) {
    return find_enum(option) < ENUM_COUNT || strcmp(option->name, "--codec") == 0;
}

/* ---- Markdown ---------------------------------------------------------------------------------*/

/* Text without markup: a bar would end the cell of a table, and brackets would be a link. */
static void print_cell(const char *text) {
    for (; *text; text++) {
        if (strchr("|<>[]*_", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_markdown_aliases(const cogpu_option *option) {
    for (const cogpu_option_alias *alias = cogpu_option_aliases; alias->alias; alias++)
        if (is_alias_of(alias, option))
            printf(", `%s`", alias->alias);
}

/* Paragraphs of a text whose lines are broken: an indented line becomes an item of a list. */
static void print_markdown_paragraphs(const char *text) {
    bool is_list = false;
    while (*text) {
        char line[LINE_TEXT];
        text = next_line(text, line);
        if (is_list != (*line == ' '))
            putchar('\n');
        is_list = *line == ' ';
        fputs(is_list ? "- " : "", stdout);
        print_cell(line + strspn(line, " "));
        putchar('\n');
    }
    putchar('\n');
}

static void print_markdown_command(const cogpu_command *command) {
    printf("## %s\n\n```text\ncogpu %s %s%s[options]\n```\n\n", command->name, command->name,
           command->operands, command->operands[0] ? " " : "");
    print_markdown_paragraphs(command->details);
    printf("| option | meaning |\n| --- | --- |\n");
    for (int i = 0; i < cogpu_option_count; i++) {
        const cogpu_option *option = &cogpu_options[i];
        char help[OPTION_HELP_TEXT];
        if (!has_option(command, option))
            continue;
        printf("| `%s%s%s`", option->name, option->value ? " " : "",
               option->value ? option->value : "");
        print_markdown_aliases(option);
        printf(" | ");
        cogpu_option_help(option, help);
        print_cell(help);
        printf(" |\n");
    }
    putchar('\n');
}

static void print_markdown(const command_list *list) {
    printf(
        "# Command-line reference\n\n"
        "Printed by `cogpu reference markdown` from the option table of the program, so codecs\n"
        "are those of that build. The [guide](command-line.md) has examples, exit codes and the\n"
        "rules for files that are written. The same texts: `man cogpu`, `cogpu help COMMAND`.\n"
        "Bash and zsh complete commands, options and values after `make install`.\n\n"
        "| command | purpose |\n| --- | --- |\n");
    for (int i = 0; i < list->count; i++)
        printf("| [%s](#%s) | %s |\n", list->commands[i]->name, list->commands[i]->name,
               list->commands[i]->summary);
    putchar('\n');
    for (int i = 0; i < list->count; i++)
        print_markdown_command(list->commands[i]);
}

/* ---- manual page ------------------------------------------------------------------------------*/

/* roff text: hyphens stay hyphens, and no line begins with a control character. */
static void print_roff(const char *text) {
    bool is_start = true;
    for (; *text; text++) {
        if (is_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        is_start = *text == '\n';
    }
}

/* Paragraphs of a text whose lines are broken: an indented line stays a line of its own. */
static void print_roff_paragraphs(const char *text) {
    while (*text) {
        char line[LINE_TEXT];
        text = next_line(text, line);
        if (!*line) {
            puts(".PP");
            continue;
        }
        if (*line == ' ')
            puts(".br");
        print_roff(line + strspn(line, " "));
        putchar('\n');
    }
}

static void print_roff_option(const command_list *list, const cogpu_option *option) {
    char help[OPTION_HELP_TEXT];
    printf(".TP\n.B ");
    print_roff(option->name);
    for (const cogpu_option_alias *alias = cogpu_option_aliases; alias->alias; alias++)
        if (is_alias_of(alias, option)) {
            printf(", ");
            print_roff(alias->alias);
        }
    if (option->value) {
        putchar(' ');
        print_roff(option->value);
    }
    putchar('\n');
    cogpu_option_help(option, help);
    print_roff(help);
    if (option->id & OPTION_COMMON) {
        puts(".");
        return;
    }
    const char *separator = ".\nCommands: ";
    for (int i = 0; i < list->count; i++) {
        if (!has_option(list->commands[i], option))
            continue;
        printf("%s%s", separator, list->commands[i]->name);
        separator = ", ";
    }
    puts(".");
}

static void print_man(const command_list *list) {
    printf(".TH COGPU 1 \"\" \"cogpu %s\" \"User Commands\"\n", cogpu_version());
    puts(".SH NAME\ncogpu \\- read, write and check GeoTIFF and Cloud Optimized GeoTIFF\n"
         ".SH SYNOPSIS\n.B cogpu\n.I COMMAND\n[options] [files]\n"
         ".SH DESCRIPTION\nFILE and IN are paths, URLs (https://, http://, s3://), or \\- for\n"
         "standard input. OUT may be \\- for standard output.\n.SH COMMANDS");
    for (int i = 0; i < list->count; i++) {
        printf(".SS cogpu %s ", list->commands[i]->name);
        print_roff(list->commands[i]->operands);
        putchar('\n');
        print_roff_paragraphs(list->commands[i]->details);
    }
    puts(".SH OPTIONS");
    for (int i = 0; i < cogpu_option_count; i++)
        print_roff_option(list, &cogpu_options[i]);
    puts(".SH EXIT STATUS\n0: success. 1: the input or the check failed. 2: usage error.");
}

/* ---- bash -------------------------------------------------------------------------------------*/

static void print_command_names(const command_list *list) {
    for (int i = 0; i < list->count; i++)
        printf("%s ", list->commands[i]->name);
}

/* "'convert --codec' | 'warp --codec'": the same option may have other values elsewhere. */
static void print_bash_pattern(const command_list *list, const cogpu_option *option) {
    const char *separator = "        ";
    for (int i = 0; i < list->count; i++) {
        if (!has_option(list->commands[i], option))
            continue;
        printf("%s'%s %s'", separator, list->commands[i]->name, option->name);
        separator = " | ";
    }
}

static void print_bash_values(const command_list *list) {
    for (int i = 0; i < cogpu_option_count; i++) {
        if (!has_choices(&cogpu_options[i]))
            continue;
        print_bash_pattern(list, &cogpu_options[i]);
        printf(")\n            COMPREPLY=($(compgen -W '");
        print_choices(&cogpu_options[i]);
        puts("' -- \"$word\"))\n            return ;;");
    }
}

static void print_bash(const command_list *list) {
    puts("# bash completion of cogpu, printed by `cogpu reference bash`.\n_cogpu() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    COMPREPLY=()");
    printf("    if [ \"$COMP_CWORD\" = 1 ] || [ \"$previous\" = help ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    print_command_names(list);
    puts("help --help --version' -- \"$word\"))\n        return\n    fi\n    case "
         "\"${COMP_WORDS[1]} $previous\" in");
    print_bash_values(list);
    puts("    esac\n    [[ $word == -* ]] || return 0 # a file: bash's own completion\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < list->count; i++) {
        printf("        %s)\n            COMPREPLY=($(compgen -W '", list->commands[i]->name);
        for (int j = 0; j < cogpu_option_count; j++)
            if (has_option(list->commands[i], &cogpu_options[j]))
                printf("%s ", cogpu_options[j].name);
        puts("' -- \"$word\")) ;;");
    }
    puts("    esac\n}\ncomplete -o default -F _cogpu cogpu");
}

/* ---- zsh --------------------------------------------------------------------------------------*/

/* Text inside '...' of an _arguments or _describe specification. */
static void print_zsh(const char *text) {
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, stdout);
    }
}

static bool is_file_name(const cogpu_option *option) {
    static const char *const names[] = {"OUT", "DIR", "FILE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option->value, names[i]) == 0)
            return true;
    return false;
}

static void print_zsh_option(const cogpu_option *option) {
    char help[OPTION_HELP_TEXT];
    cogpu_option_help(option, help);
    printf("                '%s%s[", option->name, option->value ? "=" : "");
    print_zsh(help);
    putchar(']');
    if (option->value) {
        putchar(':');
        print_zsh(option->value);
        putchar(':');
        if (has_choices(option)) {
            putchar('(');
            print_choices(option);
            putchar(')');
        } else {
            fputs(is_file_name(option) ? "_files" : " ", stdout);
        }
    }
    puts("' \\");
}

static void print_zsh_completion(const command_list *list) {
    puts(
        "#compdef cogpu\n# zsh completion of cogpu, printed by `cogpu reference zsh`.\n_cogpu() {\n"
        "    local curcontext=$curcontext state line\n    local -a commands\n    commands=(");
    for (int i = 0; i < list->count; i++) {
        printf("        '%s:", list->commands[i]->name);
        print_zsh(list->commands[i]->summary);
        puts("'");
    }
    puts(
        "        'help:print the options of a command'\n    )\n"
        "    _arguments -C '1:command:->command' '*::argument:->argument'\n"
        "    if [[ $state == command ]]; then\n        _describe command commands\n        return\n"
        "    fi\n    case $words[1] in\n        help) _describe command commands ;;");
    for (int i = 0; i < list->count; i++) {
        printf("        %s)\n            _arguments \\\n", list->commands[i]->name);
        for (int j = 0; j < cogpu_option_count; j++)
            if (has_option(list->commands[i], &cogpu_options[j]))
                print_zsh_option(&cogpu_options[j]);
        puts("                '*:file:_files' ;;");
    }
    puts("    esac\n}\n_cogpu \"$@\"");
}

int cogpu_reference_print(const char *format, const cogpu_command *const *commands, int count) {
    static const struct {
        const char *name;
        void (*print)(const command_list *list);
    } formats[] = {{"markdown", print_markdown},
                   {"man", print_man},
                   {"bash", print_bash},
                   {"zsh", print_zsh_completion}};
    const command_list list = {commands, count};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(format, formats[i].name) == 0) {
            formats[i].print(&list);
            return EXIT_DONE;
        }
    return cogpu_report_usage("no such format: %s; expected markdown, man, bash or zsh", format);
}
