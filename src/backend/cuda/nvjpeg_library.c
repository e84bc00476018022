/* Finds nvJPEG and its functions: see nvjpeg_library.h. */
#include "backend/cuda/nvjpeg_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static cogpu_nvjpeg_library library;

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* dlsym hands back an object pointer, which C does not let us call: the bytes are the same. */
#define LOAD(field, name, arguments)                                                               \
    if (!library.why) {                                                                            \
        void *symbol = dlsym(handle, name);                                                        \
        if (symbol)                                                                                \
            memcpy(&library.field, &symbol, sizeof symbol);                                        \
        else                                                                                       \
            library.why = "nvJPEG is too old: it lacks " name;                                     \
    }

static const char *named_file(void) {
    const char *named = getenv("COGPU_NVJPEG");
    return named && *named ? named : NULL;
}

static void *open_library(const char *named) {
    static const char *const names[] = {"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so"};
    void *handle = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !named && !handle; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* It is never unloaded, for CUDA is not made for that. */
static void load_library(void) {
    const char *named = named_file();
    if (!named && cogpu_gpu_count(&library.why) == 0)
        return;
    void *handle = open_library(named);
    library.why = handle  ? NULL
                  : named ? "the file that COGPU_NVJPEG names cannot be loaded"
                          : "nvJPEG (libnvjpeg.so.13 or .12) is not installed";
    COGPU_NVJPEG_CALLS(LOAD)
}

const cogpu_nvjpeg_library *cogpu_nvjpeg_load(void) {
    pthread_once(&library_once, load_library);
    return &library;
}

bool cogpu_nvjpeg_knows(const cogpu_gpu *gpu) {
    return !gpu->is_emulated || named_file();
}
