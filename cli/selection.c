/*
 * Makes a read request from options and an open file. Its window is inside the level and
 * whose bands exist, so that the rest of a command need not ask again.
 */
#include "selection.h"

#include "report.h"
#include "sample.h"
#include "sources.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>

static cogpu_status use_whole_level(cogpu_selection *selection) {
    selection->request.width = selection->level.width;
    selection->request.height = selection->level.height;
    return COGPU_OK;
}

static cogpu_status use_window(const cogpu_arguments *arguments, cogpu_selection *selection,
                               cogpu_error *error) {
    cogpu_request *request = &selection->request;
    const cogpu_level *level = &selection->level;
    request->x = arguments->x;
    request->y = arguments->y;
    request->width = arguments->width;
    request->height = arguments->height;
    if ((uint64_t)request->x + request->width > level->width ||
        (uint64_t)request->y + request->height > level->height)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "the window %" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
                            " reaches beyond level %" PRIu32 ", which has %" PRIu32 " x %" PRIu32
                            " pixels",
                            request->x, request->y, request->width, request->height, request->level,
                            level->width, level->height);
    return COGPU_OK;
}

static cogpu_status use_bbox(const cogpu_arguments *arguments, cogpu_selection *selection,
                             cogpu_error *error) {
    cogpu_request *request = &selection->request;
    const cogpu_level *level = &selection->level;
    cogpu_window window = COGPU_WINDOW_INIT;
    if (!level->has_transform)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "the image has no transform from pixels to coordinates, so --bbox "
                            "cannot be used; use --window");
    cogpu_status status = cogpu_bbox_to_window(level->transform, level->width, level->height,
                                               arguments->bbox, &window, error);
    if (status == COGPU_NOT_FOUND) /* wrong usage for a command */
        error->status = status = COGPU_INVALID_ARGUMENT;
    request->x = window.x;
    request->y = window.y;
    request->width = window.width;
    request->height = window.height;
    return status;
}

static cogpu_status use_bands(const cogpu_arguments *arguments, cogpu_selection *selection,
                              cogpu_error *error) {
    uint32_t present = selection->image.bands;
    for (uint32_t i = 0; i < arguments->band_count; i++)
        if (arguments->bands[i] > present)
            return cogpu_refuse(error, COGPU_NOT_FOUND,
                                "there is no band %" PRIu32 "; the image has %" PRIu32,
                                arguments->bands[i], present);
    selection->request.bands = arguments->bands;
    selection->request.band_count = arguments->band_count;
    selection->bands = arguments->band_count ? arguments->band_count : present;
    return COGPU_OK;
}

/* The type to read: that of --type, or a float type if NaN or scaling needs one. */
static cogpu_type type_for(const cogpu_arguments *arguments, cogpu_type type) {
    bool needs_float = arguments->masked || arguments->unscaled;
    if (arguments->mask)
        return COGPU_TYPE_U8;
    if (arguments->type)
        return arguments->type;
    bool is_kept = cogpu_sample_is_float(type) || cogpu_sample_is_complex(type);
    return !needs_float || is_kept ? type : cogpu_sample_float_type(type);
}

cogpu_status cogpu_selection_make(const cogpu_input *input, const cogpu_arguments *arguments,
                                  cogpu_selection *selection, cogpu_error *error) {
    *selection = (cogpu_selection){.file = input->file,
                                   .device = arguments->device,
                                   .device_index = arguments->device_index,
                                   .image = COGPU_IMAGE_INIT,
                                   .is_mosaic = cogpu_sources_exist(input->file),
                                   .first_band = COGPU_BAND_INIT,
                                   .level = COGPU_LEVEL_INIT,
                                   .request = COGPU_REQUEST_INIT};
    cogpu_request *request = &selection->request;
    request->image = arguments->image;
    request->level = arguments->level;
    request->threads = arguments->threads;
    request->context = input->context;
    request->content = arguments->mask ? COGPU_CONTENT_MASK : COGPU_CONTENT_PIXELS;
    request->fill_bad_blocks = arguments->fill_bad_blocks;
    request->masked = arguments->masked;
    request->unscale = arguments->unscaled;
    bool decodes_apart = arguments->decode != COGPU_DEVICE_CPU;
    request->decode_device = decodes_apart ? arguments->decode : arguments->device;
    request->decode_device_index =
        decodes_apart ? arguments->decode_index : arguments->device_index;
    TRY(cogpu_image_info(input->file, arguments->image, &selection->image, error));
    TRY(cogpu_band_info(input->file, arguments->image, 1, &selection->first_band, error));
    TRY(cogpu_level_info(input->file, arguments->image, arguments->level, &selection->level,
                         error));
    selection->type = type_for(arguments, selection->image.type);
    TRY(use_bands(arguments, selection, error));
    if (arguments->has_bbox)
        return use_bbox(arguments, selection, error);
    if (arguments->has_window)
        return use_window(arguments, selection, error);
    return use_whole_level(selection);
}

uint32_t cogpu_selection_band(const cogpu_selection *selection, uint32_t index) {
    return selection->request.bands ? selection->request.bands[index] : index + 1;
}

uint64_t cogpu_selection_samples(const cogpu_selection *selection) {
    return (uint64_t)selection->request.width * selection->request.height * selection->bands;
}

void cogpu_selection_json(const cogpu_selection *selection, cogpu_json *json) {
    const cogpu_request *request = &selection->request;
    const uint32_t window[] = {request->x, request->y, request->width, request->height};
    bool is_derived = selection->written_width > 0;
    const uint32_t shape[] = {selection->bands,
                              is_derived ? selection->written_height : request->height,
                              is_derived ? selection->written_width : request->width};
    cogpu_json_unsigned(json, "image", request->image);
    cogpu_json_unsigned(json, "level", request->level);
    cogpu_json_open(json, "window", '-');
    for (int i = 0; i < 4; i++)
        cogpu_json_unsigned(json, NULL, window[i]);
    cogpu_json_close(json);
    cogpu_json_open(json, "bands", '-');
    for (uint32_t i = 0; i < selection->bands; i++)
        cogpu_json_unsigned(json, NULL, cogpu_selection_band(selection, i));
    cogpu_json_close(json);
    cogpu_json_open(json, "shape", '-');
    for (int i = 0; i < 3; i++)
        cogpu_json_unsigned(json, NULL, shape[i]);
    cogpu_json_close(json);
    cogpu_json_text(json, "type",
                    cogpu_type_name(is_derived ? selection->written : selection->type));
}
