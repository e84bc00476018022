/* The caller's profile as this version has it, with its arrays. */
#ifndef COGPU_API_PROFILE_H
#define COGPU_API_PROFILE_H

#include "base/memory.h"

typedef struct cogpu_taken_profile {
    cogpu_profile profile;
    cogpu_arena arena; /* of arrays that were copied */
} cogpu_taken_profile;

/* Close it also after a failure. */
cogpu_status cogpu_profile_take(const cogpu_profile *given, cogpu_taken_profile *taken,
                                cogpu_error *error);
void cogpu_profile_close(cogpu_taken_profile *taken);

#endif
