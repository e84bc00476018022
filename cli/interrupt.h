/*
 * Interrupts of commands that write files: SIGINT, SIGTERM and SIGHUP set a flag, which a command
 * asks for between its steps, so that it removes what it began. Then the process ends by the
 * signal.
 */
#ifndef COGPU_CLI_INTERRUPT_H
#define COGPU_CLI_INTERRUPT_H

#include "cogpu.h"

/* Signals that are ignored, as by nohup, stay ignored. A second signal ends the process at once. */
void cogpu_interrupt_catch(void);

/* COGPU_IO_ERROR once a signal came. */
cogpu_status cogpu_interrupt_check(cogpu_error *error);

/* Ends the process by the signal that came, if one did. */
void cogpu_interrupt_end(void);

#endif
