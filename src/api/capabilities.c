/* Public functions about this build: codecs. */
#include "codec/codec.h"

#include "api/sized.h"

cogpu_status cogpu_codec_info(uint32_t index, cogpu_codec *info, cogpu_error *error) {
    cogpu_codec found;
    cogpu_error_clear(error);
    if (!info)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_codec_info needs a pointer for the codec");
    TRY(CHECK_STRUCT(info, cogpu_codec, error));
    if (!cogpu_codec_describe(index, &found))
        return cogpu_fail(error, COGPU_NOT_FOUND, "there is no codec %u", index);
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}
