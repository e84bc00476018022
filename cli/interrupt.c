/* Signal handlers that set a flag. */
#include "interrupt.h"

#include "report.h"

#include <signal.h>

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number) {
    interrupted = number;
}

void cogpu_interrupt_catch(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

cogpu_status cogpu_interrupt_check(cogpu_error *error) {
    return interrupted ? cogpu_refuse(error, COGPU_IO_ERROR, "interrupted") : COGPU_OK;
}

void cogpu_interrupt_end(void) {
    if (interrupted) {
        signal(interrupted, SIG_DFL);
        raise(interrupted);
    }
}
