/*
 * Entry point: finds the command that the command line names, and runs it.
 */
#include "command.h"
#include "name.h"
#include "reference.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cogpu_command *const commands[] = {
    &cogpu_cmd_info,    &cogpu_cmd_convert, &cogpu_cmd_warp,    &cogpu_cmd_mosaic,
    &cogpu_cmd_check,   &cogpu_cmd_preview, &cogpu_cmd_read,    &cogpu_cmd_checksum,
    &cogpu_cmd_compare, &cogpu_cmd_bench,   &cogpu_cmd_devices,
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_commands(FILE *to) {
    fprintf(to, "Usage: cogpu COMMAND ...\n\n"
                "Reads and writes GeoTIFF and Cloud Optimized GeoTIFF rasters.\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-9s %-14s %s\n", commands[i]->name, commands[i]->operands,
                commands[i]->summary);
    fprintf(to,
            "\ncogpu help COMMAND prints the options of a command, cogpu --version the version.\n"
            "FILE and IN are paths, URLs (https://, http://, s3://), or - for stdin (at\n"
            "most 1 GiB). OUT may be - for stdout.\n"
            "Exit codes: 0 success, 1 the input or the check failed, 2 usage error.\n");
}

static void print_command_help(const cogpu_command *command) {
    printf("Usage: cogpu %s %s%s[options]\n\n%s\n\nOptions:\n", command->name, command->operands,
           command->operands[0] ? " " : "", command->details);
    cogpu_arguments_help(command->options);
}

static int refuse_command(const char *given) {
    char *shown = cogpu_name_shown(given); /* the command may be missing before a URL */
    const char *word = shown ? shown : "of that name";
    const char *names[COMMAND_COUNT];
    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    const char *nearest = cogpu_nearest_name(word, names, COMMAND_COUNT);
    int code = nearest ? cogpu_report_usage("no such command: %s; did you mean %s?", word, nearest)
                       : cogpu_report_usage("no such command: %s; see cogpu --help", word);
    free(shown);
    return code;
}

/* Usage errors are JSON, too, so this is known before it is parsed. */
static bool has_json(int count, char **words) {
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--json") == 0)
            return true;
    return false;
}

static void set_manner(const cogpu_arguments *arguments) {
    const cogpu_report_manner manner = {
        .json = arguments->json, .quiet = arguments->quiet, .verbose = arguments->verbose};
    cogpu_report_set(&manner);
}

static int run_command(const cogpu_command *command, int count, char **words) {
    cogpu_arguments arguments = {.profile = COGPU_PROFILE_INIT,
                                 .network = COGPU_NETWORK_INIT,
                                 .grid = COGPU_GRID_INIT,
                                 .mosaic = COGPU_MOSAIC_OPTIONS_INIT,
                                 .source = COGPU_MOSAIC_SOURCE_INIT};
    int code = EXIT_USAGE;
    if (cogpu_arguments_parse(command, count, words, &arguments)) {
        set_manner(&arguments);
        if (arguments.help) {
            print_command_help(command);
            code = EXIT_DONE;
        } else {
            code = command->run ? command->run(&arguments)
                                : cogpu_input_each(&arguments, command->run_each);
        }
    }
    cogpu_arguments_free(&arguments);
    return code;
}

static const cogpu_command *find_command(const char *name) {
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

/* "cogpu help", "cogpu help COMMAND". */
static int run_help(int count, char **words) {
    if (count > 1)
        return cogpu_report_usage("help accepts one COMMAND only");
    if (count == 0) {
        print_commands(stdout);
        return EXIT_DONE;
    }
    const cogpu_command *command = find_command(words[0]);
    if (!command)
        return refuse_command(words[0]);
    print_command_help(command);
    return EXIT_DONE;
}

/* "cogpu reference FORMAT", for the build and the documentation; the help does not list it. */
static int run_reference(int count, char **words) {
    return count == 1 ? cogpu_reference_print(words[0], commands, COMMAND_COUNT)
                      : cogpu_report_usage("reference needs a format: markdown, man, bash or zsh");
}

static int run_words(int count, char **words) {
    cogpu_report_set(&(cogpu_report_manner){.json = has_json(count, words)});
    if (count == 0) {
        print_commands(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0) {
        print_commands(stdout);
        return EXIT_DONE;
    }
    if (strcmp(words[0], "--version") == 0) {
        printf("cogpu %s\n", cogpu_version());
        return EXIT_DONE;
    }
    if (strcmp(words[0], "help") == 0)
        return run_help(count - 1, words + 1);
    if (strcmp(words[0], "reference") == 0)
        return run_reference(count - 1, words + 1);
    const cogpu_command *command = find_command(words[0]);
    return command ? run_command(command, count - 1, words + 1) : refuse_command(words[0]);
}

int main(int count, char **words) {
    /* NVIDIA's driver has four queues for all streams unless CUDA_DEVICE_MAX_CONNECTIONS says
     * otherwise before it starts, and a read uses seven streams side by side. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 0);
    int code = run_words(count - 1, words + 1);
    /* A full disk behind a pipe or a redirection shows only here. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cogpu_report_note("stdout", "cannot be written: %s", strerror(errno));
        return EXIT_FAILED;
    }
    return code;
}
