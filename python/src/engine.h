/*
 * The process's one context, made when it is first needed and counted, so that a new one can take
 * its place while reads and memory of the old one are still about. And the words for devices.
 */
#ifndef COGPU_PYTHON_ENGINE_H
#define COGPU_PYTHON_ENGINE_H

#include "record.h"

struct engine;

/* With the GIL; NULL with an exception. To be dropped. */
struct engine *engine_take(void);
/* The one in use, or NULL without an exception where none has been made. To be dropped. */
struct engine *engine_if_made(void);
/* Without Python, on any thread. */
struct engine *engine_share(struct engine *engine);
void engine_drop(struct engine *engine); /* NULL is allowed */
cogpu_context *engine_context(const struct engine *engine);
/* After a fork its threads are in another process: what it holds can only be left lying. */
bool engine_is_forgotten(const struct engine *engine);

/* The next context, by these options, which point into the arena; it is taken over. */
void engine_configure(const cogpu_context_options *options, struct arena *texts);
void engine_forget(void);

/* "cuda:1", "emu": kind and number; without a number the calling thread's current one. False with
 * an exception. */
bool device_parse(PyObject *name, cogpu_device_kind *kind, uint32_t *index);
/* "cpu", "cuda:0", "emu:1". */
PyObject *device_name(cogpu_device_kind kind, uint32_t index);

#endif
