/* PROJ objects of one call, destroyed together at its end. */
#ifndef COGPU_IMAGE_PROJ_OBJECTS_H
#define COGPU_IMAGE_PROJ_OBJECTS_H

#include <proj.h>

#include <stdint.h>

enum { COGPU_PROJ_OBJECTS_MAX = 256 };

/* Radians of a degree, as PROJ rounds it. */
#define COGPU_DEGREE 0.017453292519943295

typedef struct cogpu_proj_objects {
    PJ *objects[COGPU_PROJ_OBJECTS_MAX];
    uint32_t count;
} cogpu_proj_objects;

/* Adds an object to the list. NULL passes through: PROJ functions return it on failure. If the list
 * is full, the object is destroyed and the result is NULL. */
static inline PJ *cogpu_proj_own(cogpu_proj_objects *list, PJ *object) {
    if (object && list->count == COGPU_PROJ_OBJECTS_MAX) {
        proj_destroy(object);
        return NULL;
    }
    if (object)
        list->objects[list->count++] = object;
    return object;
}

static inline void cogpu_proj_destroy_all(cogpu_proj_objects *list) {
    while (list->count > 0)
        proj_destroy(list->objects[--list->count]);
}

#endif
