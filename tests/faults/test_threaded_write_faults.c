/*
 * Each allocation of a writer fails in turn, with blocks in flight in other threads and without:
 * the writer reports it, there is no file, and no memory is lost. Only the reservation of the sink
 * and its last reallocation are optional.
 */
#include "cogpu.h"
#include "faults/fault_injection.h"
#include "support/test.h"

enum { SIDE = 100, CHUNK = 30 };

static uint16_t pixels[2][SIDE][SIDE];
static uint8_t mask[SIDE][SIDE];

static void fill(void) {
    for (uint32_t y = 0; y < SIDE; y++)
        for (uint32_t x = 0; x < SIDE; x++) {
            pixels[0][y][x] = (uint16_t)(x * y);
            pixels[1][y][x] = (uint16_t)(x + y);
            mask[y][x] = x > y;
        }
}

/* By chunks, so that rows are held too. */
static cogpu_status write_file(const cogpu_profile *profile, cogpu_memory *file,
                               cogpu_error *error) {
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = file};
    cogpu_writer *writer = NULL;
    cogpu_status status = cogpu_writer_open(&sink, profile, &writer, error);
    for (uint32_t y = 0; status == COGPU_OK && y < SIDE; y += CHUNK) {
        uint32_t rows = SIDE - y < CHUNK ? SIDE - y : CHUNK;
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = pixels[0][y],
                               .type = COGPU_TYPE_U16,
                               .bands = 2,
                               .width = SIDE,
                               .height = rows,
                               .stride_band = sizeof pixels[0],
                               .stride_y = sizeof pixels[0][0],
                               .stride_x = sizeof pixels[0][0][0]};
        cogpu_raster valid = {.struct_size = sizeof(cogpu_raster),
                              .data = mask[y],
                              .type = COGPU_TYPE_U8,
                              .bands = 1,
                              .width = SIDE,
                              .height = rows};
        status = cogpu_writer_write_rows(writer, &raster, &valid, error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, error);
    cogpu_writer_abort(writer);
    return status;
}

static void check_allocations(const cogpu_profile *profile) {
    long made = 0, survived = 0;
    for (long call = 1;; call++) {
        cogpu_memory file = COGPU_MEMORY_INIT;
        cogpu_error error;
        long before = atomic_load(&live_allocations);
        arm_fault(ALLOCATION, call);
        cogpu_status status = write_file(profile, &file, &error);
        bool has_fired = atomic_load(&faults_fired) > 0;
        arm_fault(NO_FAULT, 0);
        CHECK(status == COGPU_OK || (has_fired && status == COGPU_OUT_OF_MEMORY));
        CHECK(status == COGPU_OK || error.status == COGPU_OUT_OF_MEMORY);
        CHECK((file.data != NULL) == (status == COGPU_OK));
        cogpu_memory_free(&file);
        CHECK(atomic_load(&live_allocations) == before);
        if (!has_fired)
            break;
        survived += status == COGPU_OK;
        made = call;
    }
    CHECK(made > 10);
    CHECK(survived <= 2 || profile->threads > 1); /* whose order is another each time */
}

static void any_allocation_may_fail(void) {
    for (uint32_t threads = 1; threads <= 3; threads += 2)
        for (int cog = 0; cog < 2; cog++)
            for (int planar = 0; planar < 2; planar++) {
                cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                         .width = SIDE,
                                         .height = SIDE,
                                         .bands = 2,
                                         .type = COGPU_TYPE_U16,
                                         .cog = cog,
                                         .interleave = planar,
                                         .mask = 1,
                                         .codec = cog ? "lzw" : "none",
                                         .block_width = 32,
                                         .threads = threads};
                for (int i = 0; i < 2; i++) {
                    fails_for_good = i > 0;
                    check_allocations(&profile);
                }
            }
}

TESTS(threaded_write_faults) {
    reset_faults();
    fill();
    RUN(any_allocation_may_fail);
    return FINISH();
}
