/*
 * Takes in pieces of a file in any order, hands on the file, whole or not at all.
 */
#include "output.h"

#include "report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What an interrupt has to remove; NULL when there is nothing. */
static const char *volatile unfinished;

static void remove_and_die(int number) {
    if (unfinished)
        unlink(unfinished);
    raise(number); /* SA_RESETHAND: this one ends the process */
}

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
enum { INTERRUPTS = sizeof interrupts / sizeof *interrupts };

/* Interrupts come before the file is made, or after it is known what to remove, never between. */
static int make_temporary(char *path) {
    struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < INTERRUPTS; i++)
        sigaddset(&held, interrupts[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    int descriptor = mkstemp(path);
    if (descriptor >= 0) {
        unfinished = path;
        for (size_t i = 0; i < INTERRUPTS; i++)
            sigaction(interrupts[i], &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return descriptor;
}

/* The path behind links, so that a link stays one when the file is replaced. */
static cogpu_status resolve(const char *path, char **resolved, cogpu_error *error) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return cogpu_refuse(error, COGPU_ARGUMENT, "is there and is no regular file");
    *resolved = realpath(path, NULL);
    if (!*resolved)
        *resolved = strdup(path);
    return *resolved ? COGPU_OK : cogpu_refuse(error, COGPU_MEMORY, "no memory for the path");
}

/* mkstemp makes files for the owner alone; this one is to be as any other. */
static void allow_others(int descriptor) {
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, 0666 & ~mask);
}

static cogpu_status open_output(const char *path, cogpu_output *output, cogpu_error *error) {
    TRY(resolve(path, &output->path, error));
    size_t room = strlen(output->path) + sizeof ".XXXXXX";
    output->temporary = malloc(room);
    if (!output->temporary)
        return cogpu_refuse(error, COGPU_MEMORY, "no memory for the path");
    snprintf(output->temporary, room, "%s.XXXXXX", output->path);
    output->descriptor = make_temporary(output->temporary);
    if (output->descriptor < 0)
        return cogpu_refuse(error, COGPU_IO, "cannot be written: %s", strerror(errno));
    allow_others(output->descriptor);
    return COGPU_OK;
}

cogpu_status cogpu_output_open(const char *path, cogpu_output *output, cogpu_error *error) {
    *output = (cogpu_output){.descriptor = -1};
    cogpu_status status = open_output(path, output, error);
    if (status != COGPU_OK)
        cogpu_output_close(output);
    return status;
}

cogpu_status cogpu_output_write(const cogpu_output *output, uint64_t offset, const void *data,
                                size_t bytes, cogpu_error *error) {
    const char *from = data;
    while (bytes > 0) {
        ssize_t done = pwrite(output->descriptor, from, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return cogpu_refuse(error, COGPU_IO, "cannot be written: %s", strerror(errno));
        from += done;
        offset += (uint64_t)done;
        bytes -= (size_t)done;
    }
    return COGPU_OK;
}

cogpu_status cogpu_output_commit(cogpu_output *output, cogpu_error *error) {
    int closed = close(output->descriptor);
    output->descriptor = -1;
    if (closed == 0 && rename(output->temporary, output->path) == 0) {
        unfinished = NULL;
        return COGPU_OK;
    }
    cogpu_refuse(error, COGPU_IO, "cannot be written: %s", strerror(errno));
    unlink(output->temporary);
    unfinished = NULL;
    return COGPU_IO;
}

void cogpu_output_close(cogpu_output *output) {
    if (output->descriptor >= 0) {
        close(output->descriptor);
        unlink(output->temporary);
        unfinished = NULL;
    }
    free(output->temporary);
    free(output->path);
    *output = (cogpu_output){.descriptor = -1};
}
