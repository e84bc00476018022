/*
 * `cogpu devices`: devices, codecs and libraries of this build.
 */
#include "command.h"
#include "json.h"
#include "png_file.h"

#include <inttypes.h>
#include <stdio.h>

static void print_libraries(void) {
    const char *proj = cogpu_proj_version(), *curl = cogpu_curl_version();
    const char *png = cogpu_png_version();
    printf("\nlibraries\n");
    printf("  PROJ     %s\n", proj ? proj : "not built in: coordinate systems have no WKT");
    printf("  libcurl  %s\n", curl ? curl : "not built in: URLs cannot be read");
    printf("  libpng   %s\n", png ? png : "not built in: read cannot write .png");
}

static int print_devices_text(void) {
    cogpu_device device = COGPU_DEVICE_INIT;
    cogpu_codec codec = COGPU_CODEC_INIT;
    printf("cogpu %s\n\ndevices\n", cogpu_version());
    for (uint32_t i = 0; cogpu_device_info(i, &device, NULL) == COGPU_OK; i++)
        printf("  %-6s  %s\n", device.name, device.description);
    if (cogpu_cuda_unavailable_reason())
        printf("  %-6s  none: %s\n", "cuda", cogpu_cuda_unavailable_reason());
    else
        printf("  %-6s  GPUDirect Storage: %s\n", "",
               cogpu_gds_unavailable_reason() ? cogpu_gds_unavailable_reason() : "yes");
    printf("\ncodecs\n");
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++)
        printf("  %5" PRIu32 "  %-14s  %s\n", codec.compression, codec.name,
               codec.can_decode ? codec.library
               : *codec.library ? "not built in"
                                : "not supported");
    print_libraries();
    return EXIT_DONE;
}

static void json_devices(cogpu_json *json) {
    cogpu_device device = COGPU_DEVICE_INIT;
    cogpu_json_open(json, "devices", '[');
    for (uint32_t i = 0; cogpu_device_info(i, &device, NULL) == COGPU_OK; i++) {
        cogpu_json_open(json, NULL, '{');
        cogpu_json_text(json, "name", device.name);
        cogpu_json_text(json, "description", device.description);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
}

static void json_codecs(cogpu_json *json) {
    cogpu_codec codec = COGPU_CODEC_INIT;
    cogpu_json_open(json, "codecs", '[');
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++) {
        cogpu_json_open(json, NULL, '{');
        cogpu_json_unsigned(json, "compression", codec.compression);
        cogpu_json_text(json, "name", codec.name);
        cogpu_json_text(json, "library", codec.library);
        cogpu_json_boolean(json, "can_decode", codec.can_decode);
        cogpu_json_close(json);
    }
    cogpu_json_close(json);
}

static int print_devices_json(void) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "version", cogpu_version());
    json_devices(&json);
    cogpu_json_text(&json, "cuda_unavailable_reason", cogpu_cuda_unavailable_reason());
    cogpu_json_text(&json, "gds_unavailable_reason", cogpu_gds_unavailable_reason());
    json_codecs(&json);
    cogpu_json_open(&json, "libraries", '{');
    cogpu_json_text(&json, "proj", cogpu_proj_version());
    cogpu_json_text(&json, "libcurl", cogpu_curl_version());
    cogpu_json_text(&json, "libpng", cogpu_png_version());
    cogpu_json_close(&json);
    cogpu_json_close(&json);
    return cogpu_json_print(&json) ? EXIT_DONE : EXIT_FAILED;
}

static int run_devices(const cogpu_arguments *arguments) {
    return arguments->json ? print_devices_json() : print_devices_text();
}

const cogpu_command cogpu_cmd_devices = {
    .name = "devices",
    .operands = "",
    .files = 0,
    .options = OPTION_JSON,
    .summary = "list devices, codecs and libraries of this build",
    .details = "Lists the devices that can decode and encode, and the codecs with their libraries.",
    .run = run_devices,
};
