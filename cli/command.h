/*
 * What a command is. main.c finds it by name, arguments.c reads its command line into a
 * cogpu_arguments by the options it names, and then `run` does the work and returns the exit code.
 */
#ifndef COGPU_CLI_COMMAND_H
#define COGPU_CLI_COMMAND_H

#include "input.h"

/* EXIT_USAGE: the command line cannot be parsed, or asks for something that the file does not have
 * (COGPU_INVALID_ARGUMENT), such as a window outside the image. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct cogpu_command {
    const char *name;
    const char *operands; /* as the usage line shows them: "FILE" */
    int files;            /* how many of them there are at least */
    bool has_more_files;  /* there may be more */
    uint32_t options;     /* OPTION_... of arguments.h */
    const char *summary;  /* a line for the list of commands */
    const char *details;  /* what its own help says beyond that */
    /* One of the two: the whole command, or what it does with each file. */
    int (*run)(const cogpu_arguments *arguments);
    cogpu_input_command *run_each;
};

extern const cogpu_command cogpu_cmd_info;
extern const cogpu_command cogpu_cmd_checksum;
extern const cogpu_command cogpu_cmd_read;
extern const cogpu_command cogpu_cmd_compare;
extern const cogpu_command cogpu_cmd_convert;
extern const cogpu_command cogpu_cmd_warp;
extern const cogpu_command cogpu_cmd_mosaic;
extern const cogpu_command cogpu_cmd_check;
extern const cogpu_command cogpu_cmd_preview;
extern const cogpu_command cogpu_cmd_bench;
extern const cogpu_command cogpu_cmd_devices;

#endif
