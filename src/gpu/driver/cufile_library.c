/* Loads cuFile: see cufile_library.h. */
#include "gpu/driver/cufile_library.h"

#include "base/library.h"
#include "gpu/driver/gpu.h"

#include <stdio.h>

static cogpu_cufile_library functions;

#define SYMBOL(result, field, name, arguments)       {name, &functions.field, false},
#define BATCH_SYMBOL(result, field, name, arguments) {name, &functions.field, true},
static const cogpu_library_symbol symbols[] = {COGPU_CUFILE_CALLS(SYMBOL)
                                                   COGPU_CUFILE_BATCH_CALLS(BATCH_SYMBOL)};
static cogpu_library library = {.title = "cuFile",
                                .variable = "COGPU_CUFILE",
                                .names = {"libcufile.so.0"},
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols,
                                .lock = PTHREAD_MUTEX_INITIALIZER};

static const char *open_driver(void) {
    static char reason[COGPU_LIBRARY_REASON_BYTES];
    struct cufile_error opened = functions.driver_open();
    if (opened.code == CUFILE_SUCCESS || opened.code == CUFILE_ALREADY_OPEN)
        return NULL;
    snprintf(reason, sizeof reason, "cuFile cannot open its driver: its error %d, CUDA's error %d",
             opened.code, opened.cuda_code);
    return reason;
}

static void read_properties(void) {
    struct cufile_properties properties = {0};
    functions.batch_entries = CUFILE_BATCH_ENTRIES;
    if (functions.properties(&properties).code != CUFILE_SUCCESS)
        return;
    functions.is_direct = properties.major > 0 || properties.minor > 0 ||
                          (properties.supported & CUFILE_PEER_TO_PEER);
    if (properties.batch_entries > 0 && properties.batch_entries < CUFILE_BATCH_ENTRIES)
        functions.batch_entries = properties.batch_entries;
}

/* Without a GPU cuFile is not loaded, since it would print errors and write a log file. */
static void load_functions(void) {
    if (!cogpu_cufile_is_replaced() && cogpu_gpu_count(&functions.why) == 0)
        return;
    functions.why = cogpu_library_load(&library);
    if (!functions.why)
        functions.why = open_driver();
    if (functions.why)
        return;
#define AND_FOUND(result, field, name, arguments) &&functions.field
    functions.has_batches = true COGPU_CUFILE_BATCH_CALLS(AND_FOUND);
    read_properties();
}

const cogpu_cufile_library *cogpu_cufile_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_functions);
    return &functions;
}

bool cogpu_cufile_is_replaced(void) {
    return cogpu_library_override(&library) != NULL;
}
