/* --metadata: items of the command line among those that the input has. */
#ifndef COGPU_CLI_METADATA_H
#define COGPU_CLI_METADATA_H

#include "profile.h"

/* Sets, replaces and removes items of the profile, whose arrays have capacity for one item and, of
 * the tags that hold text, one tag each. */
cogpu_status cogpu_metadata_apply(const cogpu_arguments *arguments, cogpu_output_profile *taken,
                                  cogpu_error *error);

#endif
