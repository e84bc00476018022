/*
 * Writes rows as a PNG, samples unchanged: nothing is
 * scaled or inverted, so the samples can be read back from it.
 */
#include "png_file.h"

#include "report.h"

#include <inttypes.h>

#ifdef COGPU_HAVE_PNG

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct cogpu_png {
    cogpu_output *output;
    uint64_t offset; /* where the next bytes go */
    size_t row_bytes;
    png_structp writer;
    png_infop info;
    cogpu_error error; /* what libpng or the disk said */
};

const char *cogpu_png_version(void) {
    return png_get_libpng_ver(NULL);
}

static bool has_palette(const cogpu_selection *selection) {
    return selection->image.palette && selection->bands == 1 &&
           selection->request.content == COGPU_CONTENT_PIXELS;
}

cogpu_status cogpu_png_fit(const cogpu_selection *selection, cogpu_png_shape *shape,
                           cogpu_error *error) {
    bool palette = has_palette(selection);
    uint32_t bands = selection->bands;
    if (selection->type != COGPU_TYPE_U8 && selection->type != COGPU_TYPE_U16)
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "PNG supports uint8 and uint16, but the samples are %s; write .npy or "
                            ".raw",
                            cogpu_type_name(selection->type));
    if (bands != 1 && bands != 3 && bands != 4)
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "PNG supports 1, 3 or 4 bands, not %" PRIu32
                            "; select bands, such as --band %s, or write .npy or .raw",
                            bands, bands == 2 ? "1" : "1,2,3");
    if (palette && (selection->type != COGPU_TYPE_U8 || selection->image.palette_entries > 256))
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "a PNG palette has at most 256 colors, this one has %" PRIu32
                            "; write .npy or .raw",
                            selection->image.palette_entries);
    if (selection->request.width > PNG_UINT_31_MAX || selection->request.height > PNG_UINT_31_MAX)
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "a PNG has fewer than 2^31 rows and columns; select a part with "
                            "--window");
    *shape = (cogpu_png_shape){.width = selection->request.width,
                               .height = selection->request.height,
                               .bands = bands,
                               .type = selection->type,
                               .palette = palette ? selection->image.palette : NULL,
                               .palette_entries = selection->image.palette_entries};
    return COGPU_OK;
}

static void on_error(png_structp writer, png_const_charp message) {
    cogpu_png *png = png_get_error_ptr(writer);
    if (png->error.status == COGPU_OK)
        cogpu_refuse(&png->error, COGPU_IO_ERROR, "libpng: %s", message);
    png_longjmp(writer, 1);
}

/* libpng warns of what it can live with. */
static void on_warning(png_structp writer, png_const_charp message) {
    (void)writer;
    (void)message;
}

static void on_write(png_structp writer, png_bytep data, size_t bytes) {
    cogpu_png *png = png_get_io_ptr(writer);
    if (cogpu_output_write(png->output, png->offset, data, bytes, &png->error) != COGPU_OK)
        png_error(writer, "write");
    png->offset += bytes;
}

static void on_flush(png_structp writer) {
    (void)writer;
}

static void set_palette(cogpu_png *png, const cogpu_png_shape *shape) {
    png_color colours[256];
    uint32_t count = shape->palette_entries;
    for (uint32_t i = 0; i < count; i++) {
        colours[i].red = (png_byte)(shape->palette[i] >> 8);
        colours[i].green = (png_byte)(shape->palette[count + i] >> 8);
        colours[i].blue = (png_byte)(shape->palette[2 * count + i] >> 8);
    }
    png_set_PLTE(png->writer, png->info, colours, (int)count);
}

static int colour_type(const cogpu_png_shape *shape) {
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    return shape->palette ? PNG_COLOR_TYPE_PALETTE : types[shape->bands - 1];
}

static void write_head(cogpu_png *png, const cogpu_png_shape *shape) {
    int bits = (int)cogpu_type_bytes(shape->type) * 8;
    png_set_user_limits(png->writer, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(png->writer, png, on_write, on_flush);
    png_set_compression_level(png->writer, 3); /* half the time of 6, a few percent larger */
    png_set_IHDR(png->writer, png->info, shape->width, shape->height, bits, colour_type(shape),
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (shape->palette)
        set_palette(png, shape);
    png_write_info(png->writer, png->info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (bits == 16)
        png_set_swap(png->writer);
#endif
}

/* libpng leaves by longjmp, so each of the three steps sets its own place to land, in a function
 * that has no variable to lose. */
static cogpu_status open_png(cogpu_png *png, const cogpu_png_shape *shape) {
    png->writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, png, on_error, on_warning);
    if (!png->writer)
        return cogpu_refuse(&png->error, COGPU_OUT_OF_MEMORY, "no memory for the picture");
    if (setjmp(png_jmpbuf(png->writer)))
        return png->error.status;
    png->info = png_create_info_struct(png->writer);
    if (!png->info)
        return cogpu_refuse(&png->error, COGPU_OUT_OF_MEMORY, "no memory for the picture");
    write_head(png, shape);
    return COGPU_OK;
}

cogpu_status cogpu_png_open(const cogpu_png_shape *shape, cogpu_output *output, cogpu_png **png,
                            cogpu_error *error) {
    *png = calloc(1, sizeof **png);
    if (!*png)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the picture");
    (*png)->output = output;
    (*png)->row_bytes = (size_t)shape->width * shape->bands * cogpu_type_bytes(shape->type);
    cogpu_status status = open_png(*png, shape);
    if (status != COGPU_OK) {
        *error = (*png)->error;
        cogpu_png_close(*png);
        *png = NULL;
    }
    return status;
}

static cogpu_status write_row(cogpu_png *png, const void *row) {
    if (setjmp(png_jmpbuf(png->writer)))
        return png->error.status;
    png_write_row(png->writer, row);
    return COGPU_OK;
}

cogpu_status cogpu_png_write(cogpu_png *png, const void *rows, uint32_t count, cogpu_error *error) {
    for (uint32_t i = 0; i < count; i++) {
        if (write_row(png, (const char *)rows + png->row_bytes * i) != COGPU_OK) {
            *error = png->error;
            return error->status;
        }
    }
    return COGPU_OK;
}

static cogpu_status write_png_end(cogpu_png *png) {
    if (setjmp(png_jmpbuf(png->writer)))
        return png->error.status;
    png_write_end(png->writer, NULL);
    return COGPU_OK;
}

cogpu_status cogpu_png_finish(cogpu_png *png, cogpu_error *error) {
    cogpu_status status = write_png_end(png);
    if (status != COGPU_OK)
        *error = png->error;
    return status;
}

void cogpu_png_close(cogpu_png *png) {
    if (png)
        png_destroy_write_struct(&png->writer, &png->info);
    free(png);
}

#else

const char *cogpu_png_version(void) {
    return NULL;
}

static cogpu_status fail_without_libpng(cogpu_error *error) {
    return cogpu_refuse(
        error, COGPU_UNSUPPORTED,
        "this build has no libpng and cannot write PNG files; build with libpng, or "
        "use cogpu read to write .npy or .raw");
}

cogpu_status cogpu_png_fit(const cogpu_selection *selection, cogpu_png_shape *shape,
                           cogpu_error *error) {
    (void)selection;
    (void)shape;
    return fail_without_libpng(error);
}

cogpu_status cogpu_png_open(const cogpu_png_shape *shape, cogpu_output *output, cogpu_png **png,
                            cogpu_error *error) {
    (void)shape;
    (void)output;
    *png = NULL;
    return fail_without_libpng(error);
}

cogpu_status cogpu_png_write(cogpu_png *png, const void *rows, uint32_t count, cogpu_error *error) {
    (void)png;
    (void)rows;
    (void)count;
    return fail_without_libpng(error);
}

cogpu_status cogpu_png_finish(cogpu_png *png, cogpu_error *error) {
    (void)png;
    return fail_without_libpng(error);
}

void cogpu_png_close(cogpu_png *png) {
    (void)png;
}

#endif
