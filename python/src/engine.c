/*
 * The process-wide context. Nothing here holds the GIL while it waits
 * for the lock, since making a context takes a while and others need the GIL meanwhile.
 */
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct engine {
    atomic_size_t users;
    pid_t process; /* that has its threads */
    cogpu_context *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine *current; /* under the lock, as the next two lines */
static cogpu_context_options options = COGPU_CONTEXT_OPTIONS_INIT;
static struct arena kept; /* what the options point to */

static struct engine *make_engine(cogpu_error *error) {
    struct engine *made = calloc(1, sizeof *made);
    if (!made) {
        *error = no_memory("out of memory for a context");
        return NULL;
    }
    made->users = 1;
    made->process = getpid();
    if (cogpu_context_open(&options, &made->context, error) == COGPU_OK)
        return made;
    free(made);
    return NULL;
}

/* The lock is mostly free, so there is no need to release the GIL, which may take long to
 * come back. */
static struct engine *take_at_once(bool *is_known) {
    struct engine *taken = NULL;
    *is_known = pthread_mutex_trylock(&lock) == 0;
    if (*is_known) {
        taken = current ? engine_share(current) : NULL;
        pthread_mutex_unlock(&lock);
    }
    return taken;
}

struct engine *engine_take(void) {
    cogpu_error error;
    bool is_known;
    struct engine *taken = take_at_once(&is_known);
    if (taken)
        return taken;
    Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&lock);
        if (!current)
            current = make_engine(&error);
        taken = current ? engine_share(current) : NULL;
        pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS
    if (!taken)
        raise_error(&error);
    return taken;
}

struct engine *engine_if_made(void) {
    bool is_known;
    struct engine *taken = take_at_once(&is_known);
    if (is_known)
        return taken;
    Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&lock);
        taken = current ? engine_share(current) : NULL;
        pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS
    return taken;
}

struct engine *engine_share(struct engine *engine) {
    atomic_fetch_add(&engine->users, 1);
    return engine;
}

void engine_drop(struct engine *engine) {
    if (!engine || atomic_fetch_sub(&engine->users, 1) != 1)
        return;
    if (!engine_is_forgotten(engine))
        cogpu_context_close(engine->context);
    free(engine);
}

cogpu_context *engine_context(const struct engine *engine) {
    return engine->context;
}

bool engine_is_forgotten(const struct engine *engine) {
    return engine->process != getpid();
}

void engine_configure(const cogpu_context_options *next, struct arena *texts) {
    struct engine *last;
    struct arena last_texts;
    Py_BEGIN_ALLOW_THREADS
        pthread_mutex_lock(&lock);
        last = current;
        current = NULL;
        options = *next;
        last_texts = kept;
        kept = *texts;
        pthread_mutex_unlock(&lock);
        engine_drop(last);
    Py_END_ALLOW_THREADS
    *texts = (struct arena){0};
    arena_release(&last_texts);
}

void engine_forget(void) {
    /* Who held the lock when the process was forked is not here to open it. */
    pthread_mutex_init(&lock, NULL);
    engine_drop(current);
    current = NULL;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* The number behind "cuda:"; false where it is none. */
static bool parse_index(const char *text, uint32_t *index) {
    char *end = NULL;
    unsigned long number = strtoul(text, &end, 10);
    *index = (uint32_t)number;
    return *text >= '0' && *text <= '9' && !*end && number <= INT32_MAX;
}

/* "cpu", "cuda" for the current device, "cuda:1". */
static bool parse_device_name(const char *name, cogpu_device_kind *kind, uint32_t *index,
                              bool *is_current) {
    char word[16] = "";
    size_t length = strcspn(name, ":");
    if (length >= sizeof word)
        return false;
    memcpy(word, name, length);
    if (cogpu_device_kind_parse(word, kind, NULL) != COGPU_OK)
        return false;
    *index = 0;
    *is_current = !name[length] && *kind != COGPU_DEVICE_CPU;
    return !name[length] || (*kind != COGPU_DEVICE_CPU && parse_index(name + length + 1, index));
}

/* The first call of CUDA may take a while. */
static bool find_current(cogpu_device_kind kind, uint32_t *index) {
    cogpu_error error;
    cogpu_status status;
    Py_BEGIN_ALLOW_THREADS
        status = cogpu_device_current(kind, index, &error);
    Py_END_ALLOW_THREADS
    return status == COGPU_OK || raise_error(&error);
}

bool device_parse(PyObject *name, cogpu_device_kind *kind, uint32_t *index) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "device must be a str such as 'cuda:0', not %R",
                     Py_TYPE(name));
        return false;
    }
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    bool is_current = false;
    if (!text)
        return false;
    if (!parse_device_name(text, kind, index, &is_current))
        return raise_argument("device must be 'cpu', 'cuda', 'cuda:N', 'emu' or 'emu:N', not %R",
                              name);
    return !is_current || find_current(*kind, index);
}

PyObject *device_name(cogpu_device_kind kind, uint32_t index) {
    if (kind == COGPU_DEVICE_CPU)
        return PyUnicode_FromString(cogpu_device_kind_name(kind));
    return PyUnicode_FromFormat("%s:%u", cogpu_device_kind_name(kind), (unsigned)index);
}
