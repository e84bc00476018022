/* The profile of an output file: from the options, and for the rest from the input. */
#ifndef COGPU_CLI_PROFILE_H
#define COGPU_CLI_PROFILE_H

#include "selection.h"

enum { RPC_NUMBERS = 92 };

/* A number as text, exact. */
typedef char cogpu_digits[32];

typedef struct cogpu_output_profile {
    cogpu_profile profile; /* points into this struct, the arguments and the input */
    cogpu_gcp *gcps;
    double rpc[RPC_NUMBERS];
    cogpu_geokey *keys;
    char *crs; /* of a sidecar, which has no keys */
    cogpu_digits nodata;
    cogpu_metadata_item *items;
    cogpu_digits *scales; /* scale and offset of each band */
    cogpu_extra_tag *tags;
    bool has_mixed_nodata; /* bands have different values: none is written */
} cogpu_output_profile;

cogpu_status cogpu_output_profile_make(const cogpu_selection *selection,
                                       const cogpu_arguments *arguments,
                                       cogpu_output_profile *taken, cogpu_error *error);

/* Whether pixels of the file differ from those that it is made of. */
bool cogpu_profile_is_lossy(const cogpu_profile *profile);

/* Also after a failure. */
void cogpu_profile_free(cogpu_output_profile *taken);

#endif
