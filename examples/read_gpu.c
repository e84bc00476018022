/*
 * Takes the name of a raster, reads its first band as float32 into memory of the first GPU, and
 * shows the first pixel: what a program does that goes on with CUDA. Without a GPU: with
 * COGPU_DEVICE_EMULATOR in the place of COGPU_DEVICE_CUDA it runs on the emulated one, slowly.
 *
 *     cc examples/read_gpu.c $(pkg-config --cflags --libs cogpu) -o read_gpu && ./read_gpu dem.tif
 */
#include <cogpu.h>

#include <stdio.h>

static cogpu_status read_first_band(cogpu_context *context, const cogpu_file *file,
                                    cogpu_raster *raster, cogpu_error *error) {
    const uint32_t first_band = 1;
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .bands = &first_band,
                             .band_count = 1,
                             .context = context};
    uint64_t bytes = sizeof(float) * raster->width * raster->height;
    cogpu_status status =
        cogpu_device_allocate(context, COGPU_DEVICE_CUDA, 0, bytes, &raster->data, error);
    return status == COGPU_OK ? cogpu_read(file, &request, raster, NULL, error) : status;
}

int main(int count, char **words) {
    cogpu_context *context = NULL;
    cogpu_file *file = NULL;
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_error error = {.message = "usage: read_gpu FILE"};
    float first = 0;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = COGPU_TYPE_F32,
                           .bands = 1,
                           .device = COGPU_DEVICE_CUDA};
    cogpu_status status =
        count == 2 ? cogpu_open(words[1], NULL, &file, &error) : COGPU_INVALID_ARGUMENT;
    if (status == COGPU_OK)
        status = cogpu_image_info(file, 0, &image, &error);
    if (status == COGPU_OK)
        status = cogpu_context_open(NULL, &context, &error);
    if (status == COGPU_OK) {
        raster.width = image.width;
        raster.height = image.height;
        status = read_first_band(context, file, &raster, &error);
    }
    if (status == COGPU_OK)
        status = cogpu_device_download(context, COGPU_DEVICE_CUDA, 0, raster.data, sizeof first,
                                       &first, &error);
    if (status == COGPU_OK)
        printf("%u x %u pixels are on the GPU, the first is %g\n", image.width, image.height,
               (double)first);
    else
        fprintf(stderr, "%s\n", error.message);
    cogpu_device_free(context, COGPU_DEVICE_CUDA, 0, raster.data);
    cogpu_context_close(context);
    cogpu_close(file);
    return status == COGPU_OK ? 0 : 1;
}
