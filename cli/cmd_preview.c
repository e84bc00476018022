/*
 * `cogpu preview`: a PNG of the requested size. The best overview level is read chunk by chunk,
 * averaged into the pixels of the picture and stretched. Memory: the picture and one chunk, for an
 * image of any size.
 */
#include "chunk.h"
#include "command.h"
#include "interrupt.h"
#include "name.h"
#include "png_file.h"
#include "progress.h"
#include "reduce.h"
#include "report.h"
#include "sample.h"
#include "stretch.h"
#include "target.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum kind { KIND_GRAY = 0, KIND_RGB, KIND_PALETTE } kind;

static const char *const kind_names[] = {"gray", "rgb", "palette"};

enum { MOST_COLOURS = 3, MOST_BANDS = MOST_COLOURS + 1 };

struct preview_job {
    const cogpu_arguments *arguments;
    cogpu_selection selection, mask; /* the mask's is for complex samples, which hold no NaN */
    kind kind;
    uint32_t bands[MOST_BANDS]; /* of the colours, then the alpha's if there is one */
    uint32_t colours;           /* planes of the reduction, before the alpha's: 1 or 3 */
    bool alpha, stretched;
    cogpu_range ranges[MOST_COLOURS];
    cogpu_reduction reduction;
    cogpu_chunk chunk;
    cogpu_progress_bar progress;
    cogpu_result result;
    cogpu_output *output;
    cogpu_png *png;
    uint64_t transparent; /* pixels of the picture */
    char *data;
    uint8_t *mask_data;  /* NULL where `mask` is not needed */
    double *row, *shade; /* a row of the selection, and one colour of it */
    const char *culprit; /* the file that an error is about */
};

/* ---- which bands, and what they mean ----------------------------------------------------------
 */

/* The bands that are called red, green and blue; false where one is missing. */
static bool find_colours(const struct preview_job *job, uint32_t bands[MOST_COLOURS]) {
    static const char *const names[] = {"red", "green", "blue"};
    const cogpu_request *request = &job->selection.request;
    for (uint32_t i = 0; i < MOST_COLOURS; i++) {
        bands[i] = 0;
        for (uint32_t b = job->selection.image.bands; b > 0; b--) {
            cogpu_band band = COGPU_BAND_INIT;
            if (cogpu_band_info(job->selection.file, request->image, b, &band, NULL) == COGPU_OK &&
                strcmp(band.interpretation, names[i]) == 0)
                bands[i] = b;
        }
        if (bands[i] == 0)
            return false;
    }
    return true;
}

/* Bands without names are taken for colours where their type is one of pictures. */
static bool first_three(const cogpu_image *image, uint32_t *bands) {
    uint32_t found = 0;
    bool lab = image->photometric == COGPU_PHOTOMETRIC_CIELAB;
    if ((image->type != COGPU_TYPE_U8 && image->type != COGPU_TYPE_U16) || lab)
        return false;
    for (uint32_t b = 1; b <= image->bands && found < 3; b++)
        if (b != image->alpha_band)
            bands[found++] = b;
    return found == 3;
}

static void choose_kind(struct preview_job *job) {
    const cogpu_arguments *arguments = job->arguments;
    const cogpu_image *image = &job->selection.image;
    bool palette = image->palette && image->palette_entries > 0;
    job->colours = 3;
    if (arguments->band_count == 3) {
        memcpy(job->bands, arguments->bands, 3 * sizeof *job->bands);
        job->kind = KIND_RGB;
    } else if (arguments->band_count == 0 && !palette &&
               (find_colours(job, job->bands) || first_three(image, job->bands))) {
        job->kind = KIND_RGB;
    } else {
        job->bands[0] = arguments->band_count ? arguments->bands[0] : 1;
        job->kind = palette ? KIND_PALETTE : KIND_GRAY;
        job->colours = palette ? 3 : 1;
    }
}

/* A type of which NaN is a value; complex samples have none and are read as they are. */
static cogpu_type type_to_read(cogpu_type type) {
    return cogpu_sample_is_complex(type) ? type : cogpu_sample_float_type(type);
}

static void choose_bands(struct preview_job *job) {
    cogpu_selection *selection = &job->selection;
    const cogpu_image *image = &selection->image;
    choose_kind(job);
    uint32_t count = job->kind == KIND_PALETTE ? 1 : job->colours;
    job->alpha =
        image->alpha_band > 0 && (image->type == COGPU_TYPE_U8 || image->type == COGPU_TYPE_U16);
    if (job->alpha)
        job->bands[count++] = image->alpha_band;
    selection->bands = count;
    selection->request.bands = job->bands;
    selection->request.band_count = count;
    selection->type = type_to_read(image->type);
    selection->request.masked = !cogpu_sample_is_complex(selection->type);
    job->mask = *selection;
    job->mask.type = COGPU_TYPE_U8;
    job->mask.request.content = COGPU_CONTENT_MASK;
}

/* ---- the level that fits ----------------------------------------------------------------------
 */

static uint32_t longest_side(const cogpu_request *request) {
    return request->width > request->height ? request->width : request->height;
}

/* The pixels of a level that cover those from *first on of full resolution. */
static void scale_axis(uint32_t full, uint32_t size, uint32_t *first, uint32_t *count) {
    uint64_t begin = (uint64_t)*first * size / full;
    uint64_t end = (((uint64_t)*first + *count) * size + full - 1) / full;
    *first = (uint32_t)begin;
    *count = (uint32_t)(end - begin);
}

/* The smallest level whose pixels are not fewer than the picture's. */
static cogpu_status choose_preview_level(struct preview_job *job, uint32_t size,
                                         cogpu_error *error) {
    cogpu_selection *selection = &job->selection;
    const cogpu_request full = selection->request;
    for (uint32_t i = 1; i < selection->image.levels; i++) {
        cogpu_request request = full;
        cogpu_level level = COGPU_LEVEL_INIT;
        TRY(cogpu_level_info(selection->file, full.image, i, &level, error));
        request.level = i;
        scale_axis(selection->image.width, level.width, &request.x, &request.width);
        scale_axis(selection->image.height, level.height, &request.y, &request.height);
        if (longest_side(&request) >= size &&
            longest_side(&request) < longest_side(&selection->request)) {
            selection->request = request;
            selection->level = level;
        }
    }
    return COGPU_OK;
}

static uint32_t scaled_side(uint32_t side, uint32_t size, uint32_t largest) {
    uint64_t scaled = ((uint64_t)side * size + largest / 2) / largest;
    return scaled > 0 ? (uint32_t)scaled : 1;
}

static cogpu_status choose_size(struct preview_job *job, cogpu_error *error) {
    const cogpu_request *request = &job->selection.request;
    uint32_t size = job->arguments->size ? job->arguments->size : 1024;
    if (!job->arguments->has_level)
        TRY(choose_preview_level(job, size, error));
    uint32_t largest = longest_side(request);
    if (size > largest)
        size = largest;
    job->reduction = (cogpu_reduction){.from_width = request->width,
                                       .from_height = request->height,
                                       .width = scaled_side(request->width, size, largest),
                                       .height = scaled_side(request->height, size, largest),
                                       .planes = job->colours + job->alpha};
    return COGPU_OK;
}

/* ---- from samples to the planes of the reduction ----------------------------------------------
 */

#define LOAD_REAL(ctype)                                                                           \
    do {                                                                                           \
        const ctype *from = samples;                                                               \
        for (uint32_t i = 0; i < width; i++)                                                       \
            values[i] = (double)from[i];                                                           \
    } while (0)

#define LOAD_COMPLEX(ctype)                                                                        \
    do {                                                                                           \
        const ctype *from = samples;                                                               \
        for (uint32_t i = 0; i < width; i++)                                                       \
            values[i] = hypot((double)from[2 * i], (double)from[2 * i + 1]);                       \
    } while (0)

static void load_row(cogpu_type type, const void *samples, const uint8_t *mask, uint32_t width,
                     double *values) {
    switch (type) {
    case COGPU_TYPE_F32:
        LOAD_REAL(float);
        break;
    case COGPU_TYPE_F64:
        LOAD_REAL(double);
        break;
    case COGPU_TYPE_CI16:
        LOAD_COMPLEX(int16_t);
        break;
    case COGPU_TYPE_CI32:
        LOAD_COMPLEX(int32_t);
        break;
    case COGPU_TYPE_CF32:
        LOAD_COMPLEX(float);
        break;
    default:
        LOAD_COMPLEX(double);
    }
    for (uint32_t i = 0; mask && i < width; i++)
        if (mask[i] == 0)
            values[i] = NAN;
}

/* Entries have 16 bits, though some writers put 8 into them. */
static int palette_shift(const cogpu_image *image) {
    for (uint32_t i = 0; i < image->palette_entries * 3; i++)
        if (image->palette[i] > 255)
            return 8;
    return 0;
}

/* Colours can be averaged, their numbers cannot. A number without a colour is not valid. */
static void add_palette_row(struct preview_job *job, uint32_t row) {
    const cogpu_image *image = &job->selection.image;
    uint32_t entries = image->palette_entries;
    int shift = palette_shift(image);
    for (uint32_t colour = 0; colour < 3; colour++) {
        for (uint32_t i = 0; i < job->reduction.from_width; i++) {
            double index = job->row[i];
            bool known = index >= 0 && index < entries;
            job->shade[i] =
                known ? image->palette[colour * entries + (uint32_t)index] >> shift : NAN;
        }
        cogpu_reduction_add(&job->reduction, colour, row, job->shade);
    }
}

static void add_chunk(struct preview_job *job) {
    const cogpu_chunk *chunk = &job->chunk;
    uint32_t width = job->reduction.from_width;
    size_t row_bytes = width * cogpu_type_bytes(job->selection.type);
    const char *samples = job->data;
    const uint8_t *mask = job->mask_data;
    for (uint32_t i = 0; i < chunk->bands; i++) {
        uint32_t band = chunk->band + i;
        for (uint32_t row = chunk->row; row < chunk->row + chunk->rows; row++) {
            load_row(job->selection.type, samples, mask, width, job->row);
            if (job->kind == KIND_PALETTE && band == 0)
                add_palette_row(job, row);
            else
                cogpu_reduction_add(&job->reduction,
                                    job->kind == KIND_PALETTE ? job->colours : band, row, job->row);
            samples += row_bytes;
            if (mask)
                mask += width;
        }
    }
}

static cogpu_status average_pixels(struct preview_job *job, cogpu_error *error) {
    size_t row_bytes = job->reduction.from_width * cogpu_type_bytes(job->selection.type);
    while (cogpu_chunk_next(&job->chunk)) {
        const cogpu_chunk *chunk = &job->chunk;
        TRY(cogpu_interrupt_check(error));
        TRY(cogpu_chunk_read(chunk, &job->selection, job->data, &job->result, error));
        if (job->mask_data)
            TRY(cogpu_chunk_read(chunk, &job->mask, job->mask_data, NULL, error));
        add_chunk(job);
        cogpu_progress_add(&job->progress, (uint64_t)row_bytes * chunk->rows * chunk->bands);
    }
    return COGPU_OK;
}

/* ---- from planes to grays and colours ---------------------------------------------------------
 */

static size_t pixel_count(const struct preview_job *job) {
    return (size_t)job->reduction.width * job->reduction.height;
}

static double largest_sample(const cogpu_image *image) {
    return ldexp(1, image->bits < 16 ? (int)image->bits : 16) - 1;
}

/* Colours that were multiplied by their alpha become as bright as they are without it. */
static void divide_by_alpha(struct preview_job *job) {
    const double *alpha = cogpu_reduction_plane(&job->reduction, job->colours);
    double largest = largest_sample(&job->selection.image);
    for (uint32_t colour = 0; colour < job->colours; colour++) {
        double *plane = cogpu_reduction_plane(&job->reduction, colour);
        for (size_t i = 0; i < pixel_count(job); i++)
            if (alpha[i] > 0)
                plane[i] *= largest / alpha[i];
    }
}

/* What is a picture already is shown as it is. */
static bool is_shown_as_it_is(const struct preview_job *job) {
    const cogpu_image *image = &job->selection.image;
    return job->kind == KIND_PALETTE || image->bits == 1 ||
           (job->kind == KIND_RGB && image->type == COGPU_TYPE_U8);
}

static cogpu_status choose_ranges(struct preview_job *job, cogpu_error *error) {
    static const double usual[2] = {2, 98};
    const cogpu_arguments *arguments = job->arguments;
    bool asked = arguments->has_stretch || arguments->has_percent;
    double largest = job->kind == KIND_PALETTE ? 255 : largest_sample(&job->selection.image);
    job->stretched = asked || !is_shown_as_it_is(job);
    for (uint32_t i = 0; i < job->colours; i++) {
        cogpu_range *range = &job->ranges[i];
        *range = (cogpu_range){0, largest};
        if (arguments->has_stretch)
            *range = (cogpu_range){arguments->stretch[0], arguments->stretch[1]};
        else if (job->stretched)
            TRY(cogpu_stretch_find(cogpu_reduction_plane(&job->reduction, i), pixel_count(job),
                                   arguments->has_percent ? arguments->percent : usual, range,
                                   error));
    }
    return COGPU_OK;
}

/* A pixel is visible if one of its bands is valid; the alpha band gives its opacity. */
static uint8_t pixel_opacity(const struct preview_job *job, size_t pixel) {
    static const cogpu_range whole = {0, 1};
    bool valid = false;
    for (uint32_t i = 0; i < job->colours; i++)
        valid = valid || !isnan(cogpu_reduction_plane(&job->reduction, i)[pixel]);
    if (!valid || !job->alpha)
        return valid ? 255 : 0;
    double alpha = cogpu_reduction_plane(&job->reduction, job->colours)[pixel];
    return isnan(alpha)
               ? 0
               : cogpu_stretch_apply(&whole, alpha / largest_sample(&job->selection.image));
}

static bool is_opaque(const struct preview_job *job) {
    for (size_t i = 0; i < pixel_count(job); i++)
        if (pixel_opacity(job, i) < 255)
            return false;
    return true;
}

static void paint_row(struct preview_job *job, uint32_t row, bool opaque, uint8_t *to) {
    bool inverted = job->kind == KIND_GRAY && job->selection.image.photometric == 0;
    for (uint32_t column = 0; column < job->reduction.width; column++) {
        size_t pixel = (size_t)row * job->reduction.width + column;
        uint8_t alpha = pixel_opacity(job, pixel);
        for (uint32_t i = 0; i < job->colours; i++) {
            double value = cogpu_reduction_plane(&job->reduction, i)[pixel];
            bool shown = alpha > 0 && !isnan(value);
            uint8_t gray = shown ? cogpu_stretch_apply(&job->ranges[i], value) : 0;
            *to++ = inverted && shown ? (uint8_t)(255 - gray) : gray;
        }
        if (!opaque)
            *to++ = alpha;
        job->transparent += alpha == 0;
    }
}

static cogpu_status write_picture(struct preview_job *job, cogpu_error *error) {
    bool opaque = is_opaque(job);
    const cogpu_png_shape shape = {.width = job->reduction.width,
                                   .height = job->reduction.height,
                                   .bands = job->colours + !opaque,
                                   .type = COGPU_TYPE_U8};
    uint8_t *row = (uint8_t *)job->row; /* reused: no longer needed, and large enough */
    job->culprit = job->arguments->names[1];
    const cogpu_arguments *arguments = job->arguments;
    cogpu_sink sink = cogpu_target_sink(arguments, arguments->files[1], arguments->files, 1);
    sink.keep_sidecars = 1;
    TRY(cogpu_output_open(&sink, &job->output, error));
    TRY(cogpu_png_open(&shape, job->output, &job->png, error));
    for (uint32_t i = 0; i < shape.height; i++) {
        TRY(cogpu_interrupt_check(error));
        paint_row(job, i, opaque, row);
        TRY(cogpu_png_write(job->png, row, 1, error));
    }
    TRY(cogpu_png_finish(job->png, error));
    cogpu_output *output = job->output;
    job->output = NULL; /* a commit frees it, whatever it returns */
    return cogpu_output_commit(output, error);
}

/* ---- the command ------------------------------------------------------------------------------
 */

static cogpu_status allocate_preview(struct preview_job *job, cogpu_error *error) {
    bool masked = cogpu_sample_is_complex(job->selection.type) &&
                  job->mask.image.mask_source != COGPU_MASK_SOURCE_NONE;
    size_t samples = job->chunk.bytes / cogpu_type_bytes(job->selection.type);
    job->data = malloc(job->chunk.bytes);
    job->mask_data = masked ? malloc(samples) : NULL;
    job->row = malloc(job->reduction.from_width * sizeof *job->row);
    job->shade = malloc(job->reduction.from_width * sizeof *job->shade);
    if (!job->data || (masked && !job->mask_data) || !job->row || !job->shade)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                            job->chunk.bytes);
    return cogpu_reduction_open(&job->reduction, error);
}

static cogpu_status prepare_preview(struct preview_job *job, const cogpu_input *input,
                                    cogpu_error *error) {
    TRY(cogpu_selection_make(input, job->arguments, &job->selection, error));
    choose_bands(job);
    if (job->kind == KIND_PALETTE && (job->arguments->has_stretch || job->arguments->has_percent))
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "the image has a palette, which defines its colors; omit "
                            "--stretch and --percentiles");
    TRY(choose_size(job, error));
    job->mask.request = job->selection.request;
    job->mask.request.content = COGPU_CONTENT_MASK;
    TRY(cogpu_chunk_open(&job->selection, CHUNK_ANY_ORDER, &job->chunk, error));
    return allocate_preview(job, error);
}

static cogpu_status make_picture(struct preview_job *job, cogpu_error *error) {
    cogpu_progress_open(&job->progress, cogpu_selection_samples(&job->selection) *
                                            cogpu_type_bytes(job->selection.type));
    cogpu_status status = average_pixels(job, error);
    cogpu_progress_close(&job->progress);
    TRY(status);
    if (job->alpha && job->selection.image.premultiplied)
        divide_by_alpha(job);
    TRY(choose_ranges(job, error));
    return write_picture(job, error);
}

static cogpu_status write_preview(struct preview_job *job, const cogpu_input *input,
                                  cogpu_error *error) {
    job->culprit = input->name;
    cogpu_interrupt_catch();
    cogpu_status status = prepare_preview(job, input, error);
    if (status == COGPU_OK)
        status = make_picture(job, error);
    cogpu_png_close(job->png);
    cogpu_output_abort(job->output);
    cogpu_reduction_close(&job->reduction);
    free(job->data);
    free(job->mask_data);
    free(job->row);
    free(job->shade);
    if (status != COGPU_OK)
        cogpu_interrupt_end();
    return status;
}

static void print_preview_text(const struct preview_job *job) {
    const cogpu_selection *selection = &job->selection;
    FILE *to = cogpu_report_stream();
    cogpu_text_print(to, job->arguments->names[1], SIZE_MAX);
    fprintf(to,
            ": %" PRIu32 " x %" PRIu32 " pixels, %s, of level %" PRIu32 " (%" PRIu32 " x %" PRIu32
            ")",
            job->reduction.width, job->reduction.height, kind_names[job->kind],
            selection->request.level, selection->level.width, selection->level.height);
    for (uint32_t i = 0; job->stretched && i < job->colours; i++)
        fprintf(to, "%s %g to %g", i ? "," : "; stretched", job->ranges[i].low,
                job->ranges[i].high);
    fputc('\n', to);
}

static bool print_preview_json(const struct preview_job *job) {
    cogpu_selection stored = job->selection;
    stored.type = stored.image.type;
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", job->arguments->names[0]);
    cogpu_json_text(&json, "output", job->arguments->names[1]);
    cogpu_selection_json(&stored, &json);
    cogpu_json_text(&json, "kind", kind_names[job->kind]);
    cogpu_json_unsigned(&json, "width", job->reduction.width);
    cogpu_json_unsigned(&json, "height", job->reduction.height);
    cogpu_json_boolean(&json, "stretched", job->stretched);
    cogpu_json_open(&json, "ranges", '-');
    for (uint32_t i = 0; i < job->colours; i++)
        cogpu_json_numbers(&json, NULL, (const double[]){job->ranges[i].low, job->ranges[i].high},
                           2);
    cogpu_json_close(&json);
    cogpu_json_unsigned(&json, "transparent_pixels", job->transparent);
    cogpu_json_unsigned(&json, "bad_blocks", job->result.bad_blocks);
    cogpu_json_close(&json);
    return cogpu_json_print(&json);
}

static int print_result(const struct preview_job *job) {
    cogpu_report_bad_blocks(job->arguments->names[0], &job->result);
    if (job->arguments->json)
        return print_preview_json(job) ? EXIT_DONE : EXIT_FAILED;
    if (!job->arguments->quiet)
        print_preview_text(job);
    return EXIT_DONE;
}

static bool is_png(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".png") == 0;
}

static int run_preview(const cogpu_arguments *arguments) {
    if (arguments->has_bbox && arguments->has_window)
        return cogpu_report_usage("--bbox and --window cannot be combined");
    if (arguments->has_stretch && arguments->has_percent)
        return cogpu_report_usage("--stretch and --percentiles cannot be combined");
    if (arguments->band_count != 0 && arguments->band_count != 1 && arguments->band_count != 3)
        return cogpu_report_usage("--band: expected one band, or three for red, green and blue");
    if (cogpu_name_is_url(arguments->files[1]))
        return cogpu_report_usage("OUT cannot be a URL; write a file and upload it");
    if (cogpu_target_is_stdout(arguments->files[1]))
        cogpu_target_use_stdout();
    else if (!is_png(arguments->files[1]))
        return cogpu_report_usage("%s: expected a file name that ends in .png, or -",
                                  arguments->files[1]);
    if (!cogpu_target_check(arguments->files[1]))
        return EXIT_USAGE;
    struct preview_job job = {.arguments = arguments};
    cogpu_input input;
    cogpu_error error;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    int code = write_preview(&job, &input, &error) == COGPU_OK
                   ? print_result(&job)
                   : cogpu_report_error(job.culprit, &error);
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_preview = {
    .name = "preview",
    .operands = "FILE OUT.png",
    .files = 2,
    .options = OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BBOX | OPTION_BAND |
               OPTION_PICTURE | OPTION_FILL | OPTION_THREADS | OPTION_DEVICE | OPTION_NO_CLOBBER |
               OPTION_NETWORK | OPTION_JSON,
    .summary = "write a PNG from the best overview level",
    .details =
        "Writes an 8-bit PNG: in color if the image has a palette, bands named red, green and\n"
        "blue, or at least three bands of uint8 or uint16; otherwise the first band in gray.\n"
        "Each pixel is the mean of the valid pixels that it covers, and transparent if there are\n"
        "none (nodata, mask, NaN, infinity). Each band is stretched between its 2nd and 98th\n"
        "percentile, except for palettes and uint8 colors. Complex samples are shown by their\n"
        "magnitude. --window is in pixels of full resolution, or of the level that --level names.",
    .run = run_preview,
};
