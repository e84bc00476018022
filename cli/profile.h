/*
 * The profile of a file that is to hold a selection of another one: what the options say of it, and
 * for the rest what the input says of itself.
 */
#ifndef COGPU_CLI_PROFILE_H
#define COGPU_CLI_PROFILE_H

#include "selection.h"

enum { RPC_NUMBERS = 92 };

/* A number as text, exact. */
typedef char cogpu_digits[32];

typedef struct cogpu_taken {
    cogpu_profile profile; /* what it points to lies here, in the arguments and in the input */
    cogpu_gcp *gcps;
    double rpc[RPC_NUMBERS];
    cogpu_geokey *keys;
    char *crs; /* of a sidecar, which has no keys */
    cogpu_digits nodata;
    cogpu_item *items;
    cogpu_digits *scales; /* scale and offset of each band */
    cogpu_extra_tag *tags;
    bool has_mixed_nodata; /* bands have other values than each other: none is written */
} cogpu_taken;

cogpu_status cogpu_profile_take(const cogpu_selection *selection, const cogpu_arguments *arguments,
                                cogpu_taken *taken, cogpu_error *error);

/* Whether pixels of the file differ from those that it is made of. */
bool cogpu_profile_is_lossy(const cogpu_profile *profile);

/* Also after a failure. */
void cogpu_profile_free(cogpu_taken *taken);

#endif
