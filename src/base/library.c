/* See library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void set_reason(cogpu_library *library,
                                                             const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(library->reason, sizeof library->reason, format, arguments);
    va_end(arguments);
}

const char *cogpu_library_override(const cogpu_library *library) {
    const char *file = library->variable ? getenv(library->variable) : NULL;
    return file && *file ? file : NULL;
}

static void *open_first(const cogpu_library *library) {
    void *handle = NULL;
    for (size_t i = 0; i < COGPU_LIBRARY_NAMES_MAX && library->names[i] && !handle; i++)
        handle = dlopen(library->names[i], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* dlsym returns an object pointer, which C does not convert to a function pointer: its bytes are
 * the same (POSIX). */
static bool resolve_symbol(void *handle, const cogpu_library_symbol *symbol) {
    void *address = dlsym(handle, symbol->name);
    memcpy(symbol->function, &address, sizeof address);
    return address || symbol->is_optional;
}

static void resolve_symbols(cogpu_library *library, void *handle) {
    for (size_t i = 0; i < library->symbol_count; i++)
        if (!resolve_symbol(handle, &library->symbols[i])) {
            set_reason(library, "%s is too old: it lacks %s", library->title,
                       library->symbols[i].name);
            return;
        }
}

static void load_library_once(cogpu_library *library) {
    const char *override = cogpu_library_override(library);
    void *handle = override ? dlopen(override, RTLD_NOW | RTLD_LOCAL) : open_first(library);
    if (handle)
        resolve_symbols(library, handle);
    else if (override)
        set_reason(library, "the file that %s names cannot be loaded", library->variable);
    else
        set_reason(library, "%s (%s) is not installed", library->title, library->names[0]);
}

const char *cogpu_library_load(cogpu_library *library) {
    pthread_mutex_lock(&library->lock);
    if (!library->is_tried)
        load_library_once(library);
    library->is_tried = true;
    pthread_mutex_unlock(&library->lock);
    return library->reason[0] ? library->reason : NULL;
}
