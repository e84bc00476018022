/*
 * `cogpu bench`: measures read throughput of a file on one device, by pipeline stage.
 */
#include "clock.h"
#include "command.h"
#include "input.h"
#include "json.h"
#include "report.h"
#include "selection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UPS = 2, REPEATS = 9 };

struct measured {
    double milliseconds[REPEATS];
    cogpu_result results[REPEATS];
    uint64_t bytes; /* of the pixels */
};

struct target {
    cogpu_context *own; /* where the selection's request has none: threads that stay */
    cogpu_context *context;
    cogpu_raster raster;
};

static cogpu_status open_target(const cogpu_selection *selection, uint64_t bytes,
                                struct target *target, cogpu_error *error) {
    const cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                           .threads = selection->request.threads};
    cogpu_raster *raster = &target->raster;
    *target = (struct target){.raster = {.struct_size = sizeof(cogpu_raster),
                                         .type = selection->type,
                                         .bands = selection->bands,
                                         .height = selection->request.height,
                                         .width = selection->request.width,
                                         .device = selection->device,
                                         .device_index = selection->device_index}};
    if (!selection->request.context)
        TRY(cogpu_context_open(&options, &target->own, error));
    target->context = target->own ? target->own : selection->request.context;
    if (selection->device != COGPU_DEVICE_CPU)
        return cogpu_device_allocate(target->context, selection->device, selection->device_index,
                                     bytes, &raster->data, error);
    raster->data = malloc((size_t)bytes);
    return raster->data ? COGPU_OK
                        : cogpu_refuse(error, COGPU_OUT_OF_MEMORY,
                                       "no memory for %" PRIu64 " bytes of pixels", bytes);
}

static void close_target(struct target *target) {
    if (target->raster.device == COGPU_DEVICE_CPU)
        free(target->raster.data);
    else
        cogpu_device_free(target->context, target->raster.device, target->raster.device_index,
                          target->raster.data);
    cogpu_context_close(target->own);
}

static cogpu_status measure_reads(const cogpu_selection *selection, struct measured *measured,
                                  cogpu_error *error) {
    struct target target;
    cogpu_request request = selection->request;
    *measured = (struct measured){0};
    measured->bytes = cogpu_selection_samples(selection) * cogpu_type_bytes(selection->type);
    cogpu_status status = open_target(selection, measured->bytes, &target, error);
    request.context = target.context;
    for (int i = -WARM_UPS; status == COGPU_OK && i < REPEATS; i++) {
        cogpu_result result = COGPU_RESULT_INIT;
        double start = cogpu_clock_milliseconds();
        status = cogpu_read(selection->file, &request, &target.raster, &result, error);
        if (i < 0)
            continue;
        measured->milliseconds[i] = cogpu_clock_milliseconds() - start;
        measured->results[i] = result;
    }
    close_target(&target);
    return status;
}

/* The repeat with the median time is reported. */
static int median_of(const struct measured *measured) {
    for (int i = 0; i < REPEATS; i++) {
        int below = 0, same = 0;
        for (int j = 0; j < REPEATS; j++) {
            below += measured->milliseconds[j] < measured->milliseconds[i];
            same += measured->milliseconds[j] == measured->milliseconds[i];
        }
        if (below <= REPEATS / 2 && below + same > REPEATS / 2)
            return i;
    }
    return 0;
}

/* The emulated device has no times of its own. */
static void stages_json(const cogpu_result *result, bool is_emulated, cogpu_json *json) {
    cogpu_json_open(json, "stages", '{');
    cogpu_json_number(json, "fetch", result->fetch_ms);
    if (!is_emulated) {
        cogpu_json_number(json, "copy", result->copy_ms);
        cogpu_json_number(json, "decode", result->decode_ms);
        cogpu_json_number(json, "unpack", result->unpack_ms);
    }
    cogpu_json_close(json);
}

static int print_bench_json(const cogpu_input *input, const cogpu_selection *selection,
                            const struct measured *measured, int median) {
    const cogpu_result *result = &measured->results[median];
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", input->name);
    cogpu_selection_json(selection, &json);
    cogpu_json_unsigned(&json, "bytes", measured->bytes);
    cogpu_json_unsigned(&json, "stored_bytes", result->bytes_read);
    cogpu_json_unsigned(&json, "blocks", result->blocks);
    cogpu_json_unsigned(&json, "device_blocks", result->device_blocks);
    cogpu_json_number(&json, "milliseconds", measured->milliseconds[median]);
    if (selection->request.decode_device != COGPU_DEVICE_CPU)
        stages_json(result, selection->request.decode_device == COGPU_DEVICE_EMULATOR, &json);
    cogpu_json_close(&json);
    return cogpu_json_print(&json) ? EXIT_DONE : EXIT_FAILED;
}

static void print_bench_text(const cogpu_selection *selection, const struct measured *measured,
                             int median) {
    const cogpu_result *result = &measured->results[median];
    double milliseconds = measured->milliseconds[median];
    printf("%.2f ms, %.2f GB/s of pixels, %.2f GB/s of the file (median of %d)\n", milliseconds,
           (double)measured->bytes / milliseconds * 1e-6,
           (double)result->bytes_read / milliseconds * 1e-6, REPEATS);
    if (selection->request.decode_device == COGPU_DEVICE_CPU)
        return;
    printf("  fetch   %7.2f ms  by the CPU, while the device works on the batch before\n",
           result->fetch_ms);
    if (selection->request.decode_device == COGPU_DEVICE_EMULATOR) {
        printf("  The device decoded %" PRIu64 " of %" PRIu64
               " blocks. It is emulated, and has no times of its own.\n",
               result->device_blocks, result->blocks);
        return;
    }
    printf("  copy    %7.2f ms\n  decode  %7.2f ms  %" PRIu64 " of %" PRIu64
           " blocks on the device\n",
           result->copy_ms, result->decode_ms, result->device_blocks, result->blocks);
    printf("  unpack  %7.2f ms\n", result->unpack_ms);
}

static int run_bench(const cogpu_arguments *arguments) {
    cogpu_input input;
    cogpu_selection selection;
    struct measured measured;
    cogpu_error error;
    int code = EXIT_DONE;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    if (cogpu_selection_make(&input, arguments, &selection, &error) != COGPU_OK ||
        measure_reads(&selection, &measured, &error) != COGPU_OK)
        code = cogpu_report_error(input.name, &error);
    else if (arguments->json)
        code = print_bench_json(&input, &selection, &measured, median_of(&measured));
    else
        print_bench_text(&selection, &measured, median_of(&measured));
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_bench = {
    .name = "bench",
    .operands = "FILE",
    .files = 1,
    .options = OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BAND | OPTION_MASK |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "measure read throughput, by pipeline stage",
    .details = "Reads the selection eleven times into memory of --device and prints the median of "
               "the last\n"
               "nine. Stages on a GPU overlap: their sum may exceed the total.",
    .run = run_bench,
};
