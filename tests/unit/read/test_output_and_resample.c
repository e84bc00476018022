/* Plain files by cogpu_output, rows by cogpu_resample: what they make, and what they refuse. */
#include "cogpu.h"

#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cogpu_error error;

static void test_output(void) {
    char folder[] = "/tmp/cogpu-output-XXXXXX", path[64], found[16] = {0};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = path};
    cogpu_output *output = NULL;
    CHECK(cogpu_output_open(&sink, &output, &error) == COGPU_OK);
    CHECK(cogpu_output_write(output, 3, "world", 5, &error) == COGPU_OK);
    CHECK(cogpu_output_write(output, 0, "he", 2, &error) == COGPU_OK);
    CHECK(access(path, F_OK) != 0);
    CHECK(cogpu_output_commit(output, &error) == COGPU_OK);
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(found, 1, sizeof found, file) == 8 && memcmp(found, "he\0world", 8) == 0);
    fclose(file);
    CHECK(cogpu_output_open(&sink, &output, &error) == COGPU_OK);
    cogpu_output_abort(output);
    cogpu_output_abort(NULL);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0); /* nothing else is there */
}

static void test_outputs_that_cannot_be(void) {
    cogpu_output *output = NULL;
    CHECK(cogpu_output_open(NULL, &output, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_output_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = "x"}, NULL,
                            &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_output_open(&(cogpu_sink)COGPU_SINK_INIT, &output, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_output_open(
              &(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = "s3://bucket/key"}, &output,
              &error) == COGPU_UNSUPPORTED);
    CHECK(cogpu_output_open(
              &(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = "/no/such/folder/x"},
              &output, &error) == COGPU_NOT_FOUND);
    CHECK(output == NULL);
    CHECK(cogpu_output_write(NULL, 0, "", 1, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_output_commit(NULL, &error) == COGPU_INVALID_ARGUMENT);
}

static const cogpu_resample halves = {.struct_size = sizeof(cogpu_resample),
                                      .method = COGPU_RESAMPLE_AVERAGE,
                                      .type = COGPU_TYPE_U8,
                                      .bands = 1,
                                      .from_width = 4,
                                      .from_height = 4,
                                      .width = 2,
                                      .height = 2};

static void test_rows(void) {
    uint8_t from[4][4] = {{1, 3, 5, 7}, {1, 3, 5, 7}, {9, 9, 0, 0}, {9, 9, 0, 8}}, to[2][2] = {0};
    cogpu_raster source = {.struct_size = sizeof(cogpu_raster),
                           .data = from,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = 4,
                           .height = 4};
    cogpu_raster made = {.struct_size = sizeof(cogpu_raster),
                         .data = to,
                         .type = COGPU_TYPE_U8,
                         .bands = 1,
                         .width = 2,
                         .height = 2};
    uint32_t begin = 9, end = 9;
    CHECK(cogpu_resample_source_rows(&halves, 1, 1, &begin, &end, &error) == COGPU_OK);
    CHECK(begin == 2 && end == 4);
    CHECK(cogpu_resample_rows(&halves, 0, &source, NULL, 0, &made, NULL, &error) == COGPU_OK);
    CHECK(to[0][0] == 2 && to[0][1] == 6 && to[1][0] == 9 && to[1][1] == 2);
    cogpu_resample sparse = halves;
    sparse.nodata = "0";
    source.data = from[2];
    source.height = 2;
    made.height = 1;
    CHECK(cogpu_resample_rows(&sparse, 2, &source, NULL, 1, &made, NULL, &error) == COGPU_OK);
    CHECK(to[0][0] == 9 && to[0][1] == 8);
}

static bool is_refused(cogpu_resample how) {
    uint32_t begin, end;
    return cogpu_resample_source_rows(&how, 0, 1, &begin, &end, &error) != COGPU_OK;
}

static void test_what_cannot_be_resampled(void) {
    uint8_t from[16] = {0}, to[4];
    cogpu_raster source = {.struct_size = sizeof(cogpu_raster),
                           .data = from,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = 4,
                           .height = 4};
    cogpu_raster made = {.struct_size = sizeof(cogpu_raster),
                         .data = to,
                         .type = COGPU_TYPE_U8,
                         .bands = 1,
                         .width = 2,
                         .height = 2};
    uint32_t begin, end;
    cogpu_resample how = halves;
    CHECK(is_refused((cogpu_resample)COGPU_RESAMPLE_INIT));
    how.width = 5;
    CHECK(is_refused(how));
    how.width = 0;
    CHECK(is_refused(how));
    how = halves, how.method = (cogpu_resampling)77;
    CHECK(is_refused(how));
    how = halves, how.type = (cogpu_type)99;
    CHECK(is_refused(how));
    how = halves, how.alpha_band = 2;
    CHECK(is_refused(how));
    how = halves, how.from_width = 4000000;
    CHECK(is_refused(how));
    CHECK(cogpu_resample_source_rows(NULL, 0, 1, &begin, &end, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_resample_source_rows(&halves, 1, 2, &begin, &end, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_resample_source_rows(&halves, UINT32_MAX, 1, &begin, &end, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_resample_rows(&halves, 1, &source, NULL, 0, &made, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    source.height = 3;
    CHECK(cogpu_resample_rows(&halves, 0, &source, NULL, 0, &made, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    source.height = 4;
    source.width = 3;
    CHECK(cogpu_resample_rows(&halves, 0, &source, NULL, 0, &made, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    how = halves, how.mask = 1;
    CHECK(cogpu_resample_rows(&how, 0, &source, NULL, 0, &made, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
}

TESTS(output_and_resample) {
    RUN(test_output);
    RUN(test_outputs_that_cannot_be);
    RUN(test_rows);
    RUN(test_what_cannot_be_resampled);
    return FINISH();
}
