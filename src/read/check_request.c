/* Checks a request: level, window, bands, sample type, raster, codec. */
#include "base/type.h"
#include "read/job.h"

#include "plan/raster.h"

static cogpu_status choose_level(const cogpu_request *request, struct cogpu_read_spec *spec,
                                 cogpu_error *error) {
    TRY(cogpu_file_pyramid(spec->file, request->image, &spec->pyramid, error));
    uint32_t levels = spec->pyramid->info.levels;
    if (request->level >= levels)
        return cogpu_fail(error, COGPU_NOT_FOUND,
                          "there is no level %u: the image has %u, counted from 0", request->level,
                          levels);
    spec->level = &spec->pyramid->levels[request->level];
    return COGPU_OK;
}

/* Width and height of 0 reach to the edge of the level. */
static cogpu_status choose_window(const cogpu_request *request, struct cogpu_read_spec *spec,
                                  cogpu_error *error) {
    uint32_t width = spec->level->storage.width, height = spec->level->storage.height;
    spec->x = request->x;
    spec->y = request->y;
    spec->width = request->width ? request->width : spec->x < width ? width - spec->x : 0;
    spec->height = request->height ? request->height : spec->y < height ? height - spec->y : 0;
    if (spec->width == 0 || spec->height == 0 || spec->x > width || spec->y > height ||
        spec->width > width - spec->x || spec->height > height - spec->y)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "window %u,%u,%u,%u exceeds the %u x %u pixels of level %u", spec->x,
                          spec->y, spec->width, spec->height, width, height, request->level);
    return COGPU_OK;
}

static cogpu_status choose_bands(const cogpu_request *request, struct cogpu_read_spec *spec,
                                 cogpu_error *error) {
    uint32_t bands = spec->level->storage.bands;
    if (request->bands && request->band_count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the list of bands is empty");
    for (uint32_t i = 0; request->bands && i < request->band_count; i++)
        if (request->bands[i] < 1 || request->bands[i] > bands)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "there is no band %u: the image has %u, counted from 1",
                              request->bands[i], bands);
    spec->bands = request->bands;
    spec->band_count = request->bands ? request->band_count : bands;
    return COGPU_OK;
}

static cogpu_status choose_content(const cogpu_request *request, struct cogpu_read_spec *spec,
                                   cogpu_error *error) {
    if (request->content != COGPU_CONTENT_PIXELS && request->content != COGPU_CONTENT_MASK)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "`content` must be COGPU_CONTENT_PIXELS (0) or COGPU_CONTENT_MASK (1), got %u",
            (unsigned)request->content);
    spec->content = request->content == COGPU_CONTENT_MASK ? COGPU_READ_MASK : COGPU_READ_PIXELS;
    spec->fills_bad_blocks = request->fill_bad_blocks;
    spec->masked = request->masked;
    spec->is_unscaled = request->unscale;
    return COGPU_OK;
}

/* A raster in device memory is decoded by its own device. */
static cogpu_status check_decode_device(const cogpu_request *request, const cogpu_raster *raster,
                                        cogpu_error *error) {
    if (raster->device == COGPU_DEVICE_CPU || request->decode_device == COGPU_DEVICE_CPU ||
        (request->decode_device == raster->device &&
         request->decode_device_index == raster->device_index))
        return COGPU_OK;
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "`decode_device` must be the raster's device, %s %u, or the default",
                      cogpu_device_kind_name(raster->device), raster->device_index);
}

static cogpu_status check_mask_type(const struct cogpu_read_spec *spec, cogpu_error *error) {
    if (spec->masked || spec->is_unscaled)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "a mask cannot be scaled or set to NaN; read COGPU_CONTENT_PIXELS for that");
    if (spec->raster.type != COGPU_TYPE_U8)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a mask needs a raster of type uint8, and this one is of type %s",
                          cogpu_type_name(spec->raster.type));
    return COGPU_OK;
}

/* The raster has the type of the pixels, or a float type that they are converted to. */
static cogpu_status check_pixel_type(const struct cogpu_read_spec *spec, cogpu_error *error) {
    cogpu_type type = spec->level->storage.type, wanted = spec->raster.type;
    bool is_converted = spec->masked || spec->is_unscaled;
    if (wanted == type && (!is_converted || cogpu_type_is_float(type)))
        return COGPU_OK;
    if (cogpu_type_is_complex(type) && wanted == type)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "pixels of type %s cannot be scaled or set to NaN",
                          cogpu_type_name(type));
    if (cogpu_type_is_complex(type))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "pixels of type %s cannot be converted to %s, the type of the raster",
                          cogpu_type_name(type), cogpu_type_name(wanted));
    if (!cogpu_type_is_float(wanted))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "pixels of type %s cannot be converted to %s, the type of the raster, "
                          "only to float16, float32 or float64",
                          cogpu_type_name(type), cogpu_type_name(wanted));
    return COGPU_OK;
}

static cogpu_status check_request_raster(struct cogpu_read_spec *spec, cogpu_error *error) {
    cogpu_raster *raster = &spec->raster;
    TRY(spec->content == COGPU_READ_MASK ? check_mask_type(spec, error)
                                         : check_pixel_type(spec, error));
    if (!raster->data)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the raster has no memory: `data` is NULL");
    if (raster->width != spec->width || raster->height != spec->height ||
        raster->bands != spec->band_count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the raster has %u bands of %u x %u pixels, the request %u of %u x %u",
                          raster->bands, raster->width, raster->height, spec->band_count,
                          spec->width, spec->height);
    return cogpu_raster_set_strides(raster, error);
}

cogpu_status cogpu_check_request(const cogpu_read_call *item, struct cogpu_read_spec *spec,
                                 cogpu_error *error) {
    *spec = (struct cogpu_read_spec){.file = item->file, .raster = item->raster};
    if (item->refusal.status != COGPU_OK) {
        *error = item->refusal;
        return error->status;
    }
    TRY(choose_level(&item->request, spec, error));
    TRY(choose_window(&item->request, spec, error));
    TRY(choose_bands(&item->request, spec, error));
    TRY(choose_content(&item->request, spec, error));
    TRY(check_decode_device(&item->request, &item->raster, error));
    return check_request_raster(spec, error);
}

/* ---- codec ---- */

static cogpu_status check_decoder(const cogpu_storage *storage, cogpu_error *error) {
    uint32_t compression = storage->format.compression;
    if (!storage->codec)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "compression %u is not known", compression);
    const char *library = storage->codec->library;
    if (!storage->codec->decode && *library)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "compression %u (%s) needs %s, which this build was made without",
                          compression, storage->codec->name, library);
    if (!storage->codec->decode)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "compression %u (%s) is not supported",
                          compression, storage->codec->name);
    if (compression == COMPRESSION_OLD_JPEG && storage->planes > 1)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "compression %u (%s) with a plane for each band is not supported",
                          compression, storage->codec->name);
    return COGPU_OK;
}

/* Subsampled chroma has a data layout of its own (TIFF 6.0 section 21), which is read from chunky
 * samples of 8 bits only. Like libtiff and GDAL, planes that are not converted to RGB are read as
 * if they were not subsampled. */
static cogpu_status check_chroma(const cogpu_storage *storage, cogpu_error *error) {
    const cogpu_block_format *format = &storage->format;
    bool is_subsampled = format->subsampling_x * format->subsampling_y != 1;
    bool is_chunky = storage->planes == 1, is_converted = storage->colour == COGPU_FROM_YCBCR;
    if (!is_subsampled || is_chunky == is_converted)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "%s YCbCr of %u bits with YCbCrSubSampling %u, %u is not supported",
                      storage->planes > 1 ? "planar" : "chunky", storage->bits,
                      format->subsampling_x, format->subsampling_y);
}

cogpu_status cogpu_check_codec(const cogpu_storage *storage, cogpu_error *error) {
    cogpu_status status = check_decoder(storage, error);
    if (status == COGPU_OK)
        status = check_chroma(storage, error);
    cogpu_error_locate(status == COGPU_OK ? NULL : error, storage->directory, -1, -1);
    return status;
}
