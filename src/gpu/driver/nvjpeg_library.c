/* Loads nvJPEG: see nvjpeg_library.h. */
#include "gpu/driver/nvjpeg_library.h"

#include "base/library.h"

static cogpu_nvjpeg_library functions;

#define SYMBOL(field, name, arguments) {name, &functions.field, false},
static const cogpu_library_symbol symbols[] = {COGPU_NVJPEG_CALLS(SYMBOL)};
static cogpu_library library = {.title = "nvJPEG",
                                .variable = "COGPU_NVJPEG",
                                .names = {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"},
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols,
                                .lock = PTHREAD_MUTEX_INITIALIZER};

static void load_functions(void) {
    if (cogpu_library_override(&library) || cogpu_gpu_count(&functions.why) > 0)
        functions.why = cogpu_library_load(&library);
}

const cogpu_nvjpeg_library *cogpu_nvjpeg_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_functions);
    return &functions;
}

bool cogpu_nvjpeg_supports(const cogpu_gpu *gpu) {
    return !gpu->is_emulated || cogpu_library_override(&library);
}
