/* See profile.h. */
#include "api/profile.h"

#include "api/sized.h"

cogpu_status cogpu_profile_take(const cogpu_profile *given, cogpu_taken_profile *taken,
                                cogpu_error *error) {
    cogpu_profile *profile = &taken->profile;
    cogpu_arena_open(&taken->arena, UINT64_MAX);
    if (!given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the profile is NULL");
    TRY(TAKE_STRUCT(profile, given, cogpu_profile, error));
    TRY(TAKE_STRUCTS(&taken->arena, profile->gcps, profile->gcp_count, cogpu_gcp, error));
    TRY(TAKE_STRUCTS(&taken->arena, profile->geokeys, profile->geokey_count, cogpu_geokey, error));
    TRY(TAKE_STRUCTS(&taken->arena, profile->metadata, profile->metadata_count, cogpu_metadata_item,
                     error));
    return TAKE_STRUCTS(&taken->arena, profile->tags, profile->tag_count, cogpu_extra_tag, error);
}

void cogpu_profile_close(cogpu_taken_profile *taken) {
    cogpu_arena_close(&taken->arena);
}
