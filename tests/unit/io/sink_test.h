/*
 * What the tests of sinks share: system calls that fail on demand, a folder, and a file as a writer
 * makes it.
 *
 * The functions that take the place of the C library's are in sink_test.c: they are those of the
 * whole program test_io, and do nothing unusual until a test arms them.
 */
#ifndef COGPU_TESTS_SINK_TEST_H
#define COGPU_TESTS_SINK_TEST_H

#include "io/sink.h"
#include "support/test.h"

#include <sys/types.h>

/* Calls of the system, also those of the library under test, and how one fails. */
enum call { NO_CALL, WRITE, FLUSH, CLOSE, RENAME, KERNEL_COPY, READ, OPEN, ANY_CALL };
enum way { FAILS, IS_SHORT, IS_INTERRUPTED, IS_ZERO, KILLS };

/* Another process gets at a new file before its lock: removes it, or locks it. */
enum thief { NO_THIEF, REMOVES, LOCKS };

typedef struct call_faults {
    enum call call;
    enum way way;
    long failing, made; /* the failing one of those that are made; 0 = all */
    int number;         /* errno */
    bool fired;
    bool has_no_nameless; /* files can't be opened without a name */
    enum thief thief;     /* of the next file that is made */
    int stolen;           /* the descriptor of that process */
} call_faults;

extern call_faults faults;

void arm_call(enum call call, enum way way, long failing, int number);

void disarm_calls(void);

/* ---- a folder to work in ---- */

extern char folder[64];
extern char path[128];
extern cogpu_error sink_error;

const char *in_folder(const char *name);

/* Entries of the folder whose names contain the text. */
int entries(const char *text);

void empty_folder(void);

void put_file(const char *name, const char *text);

bool holds(const char *name, const void *bytes, size_t count);

bool holds_text(const char *name, const char *text);

int open_files(void);

bool error_says(const char *text);

/* ---- a file as the writer makes it ---- */

enum { IN_MEMORY = 256 << 10 };
enum { HEAD = 1000, PIECE = 300001, PIECES = 9, SPILLED = PIECE * PIECES, ALL = HEAD + SPILLED };

extern uint8_t content[ALL];

cogpu_status fill(cogpu_out *out, cogpu_spill *spill);

/* All of a sink's life: a spill, bytes in an order that is not that of the file, commit. */
cogpu_status write_content(const cogpu_sink *sink);

cogpu_status write_path(const char *to);

cogpu_out *open_path(const char *to);

/* A folder of its own, and the content that is written. */
bool open_folder(void);

void close_folder(void);

/* ---- a sink by functions of the caller ---- */

/* What its functions were called with, and where they fail. */
extern struct user_calls {
    uint8_t bytes[ALL];
    size_t largest;
    int writes, failing, commits, aborts;
    cogpu_status commit_status;
} user_calls;

cogpu_sink user_sink(bool append_only);

#endif
