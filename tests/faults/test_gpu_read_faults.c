/*
 * Failures of a device during reads: the n-th call of each kind, for every n until the read
 * succeeds; all calls from the n-th on (a lost device); too little device memory; and failing
 * allocations of host memory. A read that fails returns the right status and leaves nothing open.
 * The next read with the same context gives the right pixels, unless the device is lost. Reads on
 * the CPU go on in any case.
 */
#include "faults/faulty_gpu.h"

#include "context/context.h"
#include "support/fixture.h"
#include "support/gpu_test.h"

/* ---- the files ---- */

/* Device memory of a context and of the emulated device; more calls than any read makes. */
enum { BUDGET = 2300 << 10, EMULATED = 1 << 30, ENDLESS = 1000 };

struct sample {
    image_kind kind;
    cogpu_content part;
    bool has_damage; /* a block that cannot be decoded */
    uint64_t budget; /* if BUDGET is too small for the device to decode it */
    long step;       /* only every step-th fault, if there are many calls; 0: all */
    tiff_builder file;
    uint8_t *pixels; /* as the CPU reads them */
    size_t bytes;
};

static struct sample samples[] = {
    {.kind = {.width = 40, .height = 40, .tile_width = 16, .tile_height = 16, .compression = 8}},
    {.kind = {.width = 30, .height = 20, .rows_per_strip = 7, .compression = 5, .bands = 2},
     .step = 2},
    {.kind = {.width = 9,
              .height = 9,
              .compression = 50000,
              .bits = 16,
              .bands = 2,
              .planar = true,
              .apart = true},
     .budget = 4 << 20,
     .step = 5},
    {.kind = {.width = 30, .height = 20, .rows_per_strip = 9, .compression = 32773}},
    {.kind = {.width = 30, .height = 20, .rows_per_strip = 6}},
    {.kind = {.width = 30, .height = 20, .rows_per_strip = 6, .compression = 8},
     .has_damage = true},
    {.kind = {.width = 30, .height = 20, .rows_per_strip = 6, .compression = 8},
     .part = COGPU_CONTENT_MASK},
};

enum { SAMPLES = sizeof samples / sizeof *samples, PLAIN = 4 };

static uint64_t budget_of(const struct sample *sample) {
    return sample->budget ? sample->budget : BUDGET;
}

static cogpu_raster raster_for(const struct sample *sample) {
    bool is_wide = sample->kind.bits == 16 && sample->part == COGPU_CONTENT_PIXELS;
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .type = is_wide ? COGPU_TYPE_U16 : COGPU_TYPE_U8,
                          .bands = kind_bands(&sample->kind),
                          .width = sample->kind.width,
                          .height = sample->kind.height};
}

static cogpu_request request_for(const struct sample *sample, cogpu_context *context) {
    return (cogpu_request){.struct_size = sizeof(cogpu_request),
                           .content = sample->part,
                           .fill_bad_blocks = sample->has_damage,
                           .context = context};
}

static cogpu_file *open_file(const struct sample *sample) {
    cogpu_file *file = NULL;
    CHECK(cogpu_open_memory(sample->file.bytes, sample->file.size, NULL, &file, NULL) == COGPU_OK);
    return file;
}

static void make_sample(struct sample *sample) {
    build_one(&sample->file, &sample->kind);
    if (sample->has_damage)
        sample->file.bytes[40] ^= 0x55; /* in the first strip, which begins at 8 */
    cogpu_raster raster = raster_for(sample);
    cogpu_request request = request_for(sample, NULL);
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_file *file = open_file(sample);
    sample->bytes =
        (size_t)raster.bands * raster.width * raster.height * cogpu_type_bytes(raster.type);
    raster.data = sample->pixels = malloc(sample->bytes);
    CHECK(cogpu_read(file, &request, &raster, &result, NULL) == COGPU_OK);
    CHECK(result.bad_blocks == sample->has_damage);
    CHECK(sample->has_damage || sample->part == COGPU_CONTENT_MASK ||
          pixels_match(&sample->kind, sample->pixels, 0, 0, raster.width, raster.height, NULL, 0));
    cogpu_close(file);
}

static void free_sample(struct sample *sample) {
    build_close(&sample->file);
    free(sample->pixels);
}

/* ---- a context with a device of ours ---- */

static faulty_gpu gpu;

static cogpu_device_kind device_kind(void) {
    return gpu_test_is_real() ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
}

static cogpu_gpu *open_behind(uint64_t seed, uint64_t emulated_bytes) {
    cogpu_gpu *behind = NULL;
    if (gpu_test_is_real())
        return gpu_test_open(seed);
    CHECK(cogpu_gpu_open_emulator(seed, emulated_bytes, &behind, NULL) == COGPU_OK);
    return behind;
}

static cogpu_context *open_context(uint64_t device_bytes, uint64_t seed, uint64_t emulated_bytes) {
    const cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .device_bytes = device_bytes};
    cogpu_context *context = NULL;
    cogpu_opened_device *device = cogpu_allocate(sizeof *device);
    CHECK(cogpu_context_open(&options, &context, NULL) == COGPU_OK);
    faulty_open(&gpu, open_behind(seed, emulated_bytes));
    *device = (cogpu_opened_device){.kind = device_kind()};
    CHECK(cogpu_gpu_device_open(&gpu.base, context->device_bytes, false, &device->device, NULL) ==
          COGPU_OK);
    context->devices = device;
    return context;
}

static void close_context(cogpu_context *context) {
    cogpu_context_close(context);
    CHECK(gpu.is_closed && gpu.resource_count == 0 && gpu.bytes == 0);
}

static cogpu_raster device_raster(const struct sample *sample, cogpu_context *context) {
    cogpu_raster raster = raster_for(sample);
    raster.device = device_kind();
    CHECK(cogpu_device_allocate(context, raster.device, 0, sample->bytes, &raster.data, NULL) ==
          COGPU_OK);
    return raster;
}

static bool has_pixels(const struct sample *sample, cogpu_context *context,
                       const cogpu_raster *raster) {
    uint8_t *got = malloc(sample->bytes);
    CHECK(cogpu_device_download(context, raster->device, 0, raster->data, sample->bytes, got,
                                NULL) == COGPU_OK);
    bool same = memcmp(got, sample->pixels, sample->bytes) == 0;
    free(got);
    return same;
}

/* All of the sample, on the device, without faults. */
static void read_well(const struct sample *sample, const cogpu_file *file, cogpu_context *context) {
    cogpu_raster raster = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_error error;
    cogpu_status status = cogpu_read(file, &request, &raster, &result, &error);
    CHECK(status == COGPU_OK);
    if (status != COGPU_OK)
        printf("%s\n", error.message);
    CHECK(has_pixels(sample, context, &raster));
    /* by the device, or its faults would not matter */
    bool is_coded = sample->kind.compression && sample->part == COGPU_CONTENT_PIXELS;
    CHECK(result.device_blocks == (is_coded ? result.blocks - result.bad_blocks : 0));
    cogpu_device_free(context, raster.device, 0, raster.data);
}

static void read_on_host(const struct sample *sample, const cogpu_file *file,
                         cogpu_context *context) {
    cogpu_raster raster = raster_for(sample);
    cogpu_request request = request_for(sample, context);
    raster.data = malloc(sample->bytes);
    CHECK(cogpu_read(file, &request, &raster, NULL, NULL) == COGPU_OK);
    CHECK(memcmp(raster.data, sample->pixels, sample->bytes) == 0);
    free(raster.data);
}

/* ---- calls that fail ---- */

static bool has_text(const cogpu_error *error, cogpu_status status) {
    return error->status == status && error->message[0] != '\0';
}

/* Starts the read, and waits for it. */
static cogpu_status read_in_two_steps(const cogpu_file *file, cogpu_request request,
                                      cogpu_raster *raster, cogpu_error *error) {
    cogpu_pending *pending = NULL;
    cogpu_status status = cogpu_read_async(file, &request, raster, &pending, error);
    CHECK(status == COGPU_OK || !pending);
    return status == COGPU_OK ? cogpu_wait(pending, NULL, error) : status;
}

static long step_of(const struct sample *sample) {
    return sample->step ? sample->step : 1;
}

/* A read with a fault, then one without. Returns true if there was no fault any more. The raster is
 * released in between, so that a late write is noticed. */
static bool survives_call(const struct sample *sample, const cogpu_file *file, gpu_call kind,
                          long n) {
    cogpu_context *context = open_context(budget_of(sample), (uint64_t)n, EMULATED);
    cogpu_raster raster = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    cogpu_status expected = kind == CALL_ALLOCATE || kind == CALL_ALLOCATE_PINNED
                                ? COGPU_OUT_OF_MEMORY
                                : COGPU_DEVICE_ERROR;
    cogpu_error error;
    faulty_arm(&gpu, CALL_FAILS, kind, n);
    cogpu_status status = read_in_two_steps(file, request, &raster, &error);
    bool is_through = gpu.fired == 0;
    faulty_disarm(&gpu);
    if (is_through)
        CHECK(status == COGPU_OK && has_pixels(sample, context, &raster));
    else
        CHECK(status == expected && has_text(&error, status));
    /* A read that could not begin keeps nothing open: only the raster is left. */
    CHECK(is_through || kind > CALL_EVENT_OPEN || gpu.resource_count == 1);
    cogpu_device_free(context, raster.device, 0, raster.data);
    /* If that is fast, reads until all slots were used again. */
    int reads = sample == &samples[PLAIN] && kind > CALL_EVENT_OPEN ? 8 : 1;
    for (int i = 0; i < reads; i++)
        read_well(sample, file, context);
    close_context(context);
    return is_through;
}

static void try_calls(const struct sample *sample, gpu_call kind) {
    cogpu_file *file = open_file(sample);
    for (long n = 1; !survives_call(sample, file, kind, n) && !test_broken; n += step_of(sample))
        CHECK(n < ENDLESS);
    if (test_broken)
        printf("... with sample %d and calls of kind %d\n", (int)(sample - samples), (int)kind);
    cogpu_close(file);
}

/* A read opens the same resources for all files. */
static void opening_fails(void) {
    for (int kind = CALL_MEMORY; kind <= CALL_EVENT_OPEN; kind++)
        try_calls(&samples[PLAIN], (gpu_call)kind);
}

static void working_fails(void) {
    for (int i = 0; i < SAMPLES; i++)
        for (int kind = CALL_COPY_UP; kind < CALLS; kind++)
            try_calls(&samples[i], (gpu_call)kind);
}

/* ---- a device with a cache of stored blocks ---- */

/* A read that fills the cache, or one that finds its blocks there, has a fault: of the device, or
 * of an allocation of host memory. It may succeed, without the cache. Returns true if there was no
 * fault any more. */
static bool survives_with_cache(const struct sample *sample, const cogpu_file *file, bool is_filled,
                                bool is_of_device, long n) {
    cogpu_context *context = open_context(budget_of(sample), (uint64_t)n, EMULATED);
    cogpu_error error;
    CHECK(cogpu_gpu_device_open_cache(context->devices->device, 1 << 20, &error) == COGPU_OK);
    if (is_filled)
        read_well(sample, file, context);
    cogpu_raster raster = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    faulty_disarm(&gpu);
    if (is_of_device)
        faulty_arm(&gpu, CALL_FAILS, ANY_CALL, n);
    else
        arm_fault(ALLOCATION, n);
    cogpu_status status = read_in_two_steps(file, request, &raster, &error);
    bool is_through = is_of_device ? gpu.fired == 0 : atomic_load(&faults_fired) == 0;
    faulty_disarm(&gpu);
    arm_fault(NO_FAULT, 0);
    if (status == COGPU_OK)
        CHECK(has_pixels(sample, context, &raster));
    else
        CHECK(!is_through && has_text(&error, status) &&
              (status == COGPU_OUT_OF_MEMORY || (is_of_device && status == COGPU_DEVICE_ERROR)));
    cogpu_device_free(context, raster.device, 0, raster.data);
    read_well(sample, file, context);
    read_well(sample, file, context);
    close_context(context);
    return is_through;
}

static void reads_with_a_cache_fail(void) {
    fails_for_good = false;
    for (int i = 0; i < SAMPLES; i++)
        for (int how = 0; how < 4; how++) {
            const struct sample *sample = &samples[i];
            cogpu_file *file = open_file(sample);
            for (long n = 1;
                 !survives_with_cache(sample, file, how % 2, how / 2, n) && !test_broken;
                 n += step_of(sample))
                CHECK(n < ENDLESS);
            if (test_broken)
                printf("... with sample %d and a cache\n", i);
            cogpu_close(file);
        }
}

/* The caller's own copies, up and down. */
static void copies_fail(void) {
    cogpu_context *context = open_context(BUDGET, 1, EMULATED);
    uint8_t up[100] = {1, 2, 3}, down[100] = {0};
    void *memory = NULL;
    CHECK(cogpu_device_allocate(context, device_kind(), 0, 100, &memory, NULL) == COGPU_OK);
    for (int is_up = 1; is_up >= 0; is_up--) {
        cogpu_status status = COGPU_DEVICE_ERROR;
        for (long n = 1; status != COGPU_OK; n++) {
            cogpu_error error;
            faulty_arm(&gpu, CALL_FAILS, ANY_CALL, n);
            status =
                is_up ? cogpu_device_upload(context, device_kind(), 0, up, 100, memory, &error)
                      : cogpu_device_download(context, device_kind(), 0, memory, 100, down, &error);
            CHECK((status == COGPU_OK) == (gpu.fired == 0));
            CHECK(status == COGPU_OK || (status == COGPU_DEVICE_ERROR && has_text(&error, status)));
            CHECK(gpu.resource_count == 1);
        }
    }
    CHECK(memcmp(up, down, 100) == 0);
    cogpu_device_free(context, device_kind(), 0, memory);
    close_context(context);
}

/* ---- a device that is lost ---- */

static void many_with_a_lost_device(const struct sample *sample, const cogpu_file *file,
                                    cogpu_context *context, const cogpu_raster *raster) {
    const cogpu_request request = request_for(sample, context);
    cogpu_raster on_host = raster_for(sample);
    cogpu_read_item items[] = {{.struct_size = sizeof(cogpu_read_item),
                                .file = file,
                                .request = &request,
                                .raster = raster},
                               {.struct_size = sizeof(cogpu_read_item),
                                .file = file,
                                .request = &request,
                                .raster = &on_host}};
    cogpu_error error;
    on_host.data = malloc(sample->bytes);
    CHECK(cogpu_read_many(items, 2, context, &error) == COGPU_DEVICE_ERROR &&
          has_text(&error, COGPU_DEVICE_ERROR));
    CHECK(items[0].status == COGPU_DEVICE_ERROR && items[1].status == COGPU_OK);
    CHECK(memcmp(on_host.data, sample->pixels, sample->bytes) == 0);
    free(on_host.data);
}

/* The device is lost during a read. Returns true if it was not any more. Except for PLAIN a read
 * before it has opened all resources. */
static bool survives_loss(const struct sample *sample, const cogpu_file *file, gpu_fault how,
                          long n) {
    cogpu_context *context = open_context(budget_of(sample), (uint64_t)n, EMULATED);
    if (sample != &samples[PLAIN])
        read_well(sample, file, context);
    cogpu_raster raster = device_raster(sample, context), other = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    cogpu_error error;
    faulty_arm(&gpu, how, how == KERNEL_BREAKS ? CALL_LAUNCH : ANY_CALL, n);
    cogpu_status status = read_in_two_steps(file, request, &raster, &error);
    cogpu_device_free(context, raster.device, 0, raster.data);
    bool is_lost = gpu.fired > 0;
    if (is_lost) {
        CHECK(status == COGPU_DEVICE_ERROR && has_text(&error, status));
        CHECK(cogpu_read(file, &request, &other, NULL, &error) == COGPU_DEVICE_ERROR);
        CHECK(cogpu_device_download(context, other.device, 0, other.data, 1, &(char){0}, &error) ==
              COGPU_DEVICE_ERROR);
        read_on_host(sample, file, context);
        many_with_a_lost_device(sample, file, context, &other);
    }
    cogpu_device_free(context, other.device, 0, other.data);
    close_context(context);
    return !is_lost;
}

static void try_losses(gpu_fault how) {
    for (int i = 0; i < SAMPLES; i++) {
        const struct sample *sample = &samples[i];
        cogpu_file *file = open_file(sample);
        for (long n = 1; !survives_loss(sample, file, how, n) && !test_broken; n += step_of(sample))
            CHECK(n < ENDLESS);
        if (test_broken)
            printf("... with sample %d\n", i);
        cogpu_close(file);
    }
}

static void device_is_lost(void) {
    try_losses(DEVICE_IS_LOST);
}

static void kernel_breaks_the_device(void) {
    if (!gpu_test_is_real())
        try_losses(KERNEL_BREAKS);
}

/* ---- into host memory ---- */

/* The device decodes, and rows come down to the CPU's raster. */
static cogpu_status read_into_host(const struct sample *sample, const cogpu_file *file,
                                   cogpu_context *context, uint8_t *pixels, cogpu_error *error) {
    cogpu_raster raster = raster_for(sample);
    cogpu_request request = request_for(sample, context);
    request.decode_device = device_kind();
    raster.data = pixels;
    cogpu_status status = cogpu_read(file, &request, &raster, NULL, error);
    CHECK(status != COGPU_OK || memcmp(pixels, sample->pixels, sample->bytes) == 0);
    return status;
}

static void read_well_into_host(const struct sample *sample, const cogpu_file *file,
                                cogpu_context *context) {
    uint8_t *pixels = malloc(sample->bytes);
    CHECK(read_into_host(sample, file, context, pixels, NULL) == COGPU_OK);
    free(pixels);
}

/* The raster is released after the failed read, so that a late write is noticed. */
static bool survives_into_host(const struct sample *sample, const cogpu_file *file, gpu_call kind,
                               long n) {
    cogpu_context *context = open_context(budget_of(sample), (uint64_t)n, EMULATED);
    cogpu_status expected = kind == CALL_ALLOCATE || kind == CALL_ALLOCATE_PINNED
                                ? COGPU_OUT_OF_MEMORY
                                : COGPU_DEVICE_ERROR;
    uint8_t *pixels = malloc(sample->bytes);
    cogpu_error error;
    faulty_arm(&gpu, CALL_FAILS, kind, n);
    cogpu_status status = read_into_host(sample, file, context, pixels, &error);
    bool is_through = gpu.fired == 0;
    faulty_disarm(&gpu);
    free(pixels);
    CHECK(is_through ? status == COGPU_OK : status == expected && has_text(&error, status));
    read_well_into_host(sample, file, context);
    close_context(context);
    return is_through;
}

static void into_host_memory(void) {
    static const int chosen[] = {0, 3, 5};
    for (int i = 0; i < 3; i++)
        for (int kind = CALL_ALLOCATE; kind < CALLS && !test_broken; kind++) {
            const struct sample *sample = &samples[chosen[i]];
            cogpu_file *file = open_file(sample);
            for (long n = 1; !survives_into_host(sample, file, (gpu_call)kind, n) && !test_broken;
                 n++)
                CHECK(n < ENDLESS);
            if (test_broken)
                printf("... with sample %d and calls of kind %d\n", chosen[i], kind);
            cogpu_close(file);
        }
}

static bool survives_allocation_into_host(const struct sample *sample, const cogpu_file *file,
                                          cogpu_context *context, long n) {
    uint8_t *pixels = malloc(sample->bytes);
    cogpu_error error;
    arm_fault(ALLOCATION, n);
    cogpu_status status = read_into_host(sample, file, context, pixels, &error);
    bool is_through = atomic_load(&faults_fired) == 0;
    arm_fault(NO_FAULT, 0);
    free(pixels);
    CHECK(is_through ? status == COGPU_OK
                     : status == COGPU_OUT_OF_MEMORY && has_text(&error, status));
    return is_through;
}

static void into_host_memory_without_memory(void) {
    close_context(open_context(BUDGET, 1, EMULATED)); /* tests leave a GPU open for the process */
    for (int for_good = 0; for_good < 2; for_good++) {
        fails_for_good = for_good;
        atomic_store(&live_allocations, 0);
        cogpu_file *file = open_file(&samples[0]);
        cogpu_context *context = open_context(BUDGET, 1, EMULATED);
        for (long n = 1;
             !survives_allocation_into_host(&samples[0], file, context, n) && !test_broken; n++)
            CHECK(n < ENDLESS);
        close_context(context);
        cogpu_close(file);
        CHECK(atomic_load(&live_allocations) == 0);
    }
}

/* ---- two reads at a time ---- */

/* A read is pending when another one has a fault: it succeeds unless the device is lost. Returns
 * true if there was no fault any more. */
static bool survives_neighbour(const struct sample *sample, const cogpu_file *file, gpu_fault how,
                               long n) {
    cogpu_context *context = open_context(budget_of(sample), (uint64_t)n, EMULATED);
    cogpu_raster raster = device_raster(sample, context), other = device_raster(sample, context);
    cogpu_request request = request_for(sample, context), other_request = request;
    cogpu_pending *pending = NULL;
    cogpu_error error;
    CHECK(cogpu_read_async(file, &request, &raster, &pending, NULL) == COGPU_OK && pending);
    faulty_arm(&gpu, how, ANY_CALL, n);
    cogpu_status status = read_in_two_steps(file, other_request, &other, &error);
    bool is_through = gpu.fired == 0, is_lost = gpu.is_lost;
    faulty_disarm(&gpu);
    cogpu_device_free(context, other.device, 0, other.data);
    CHECK(is_through ? status == COGPU_OK : has_text(&error, status) && status != COGPU_OK);
    status = cogpu_wait(pending, NULL, &error);
    CHECK(is_lost ? status == COGPU_DEVICE_ERROR && has_text(&error, status)
                  : status == COGPU_OK && has_pixels(sample, context, &raster));
    cogpu_device_free(context, raster.device, 0, raster.data);
    close_context(context);
    return is_through;
}

static void neighbour_fails(void) {
    static const int chosen[] = {0, PLAIN};
    for (int i = 0; i < 2; i++)
        for (int how = CALL_FAILS; how <= DEVICE_IS_LOST; how++) {
            const struct sample *sample = &samples[chosen[i]];
            cogpu_file *file = open_file(sample);
            for (long n = 1; !survives_neighbour(sample, file, (gpu_fault)how, n) && !test_broken;
                 n++)
                CHECK(n < ENDLESS);
            cogpu_close(file);
        }
}

/* ---- host memory ---- */

static bool survives_allocation(const struct sample *sample, const cogpu_file *file,
                                cogpu_context *context, long n) {
    cogpu_raster raster = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    cogpu_error error;
    arm_fault(ALLOCATION, n);
    cogpu_status status = cogpu_read(file, &request, &raster, NULL, &error);
    bool is_through = atomic_load(&faults_fired) == 0;
    arm_fault(NO_FAULT, 0);
    if (is_through)
        CHECK(status == COGPU_OK && has_pixels(sample, context, &raster));
    else
        CHECK(status == COGPU_OUT_OF_MEMORY && has_text(&error, status));
    cogpu_device_free(context, raster.device, 0, raster.data);
    return is_through;
}

/* The first reads open what later ones reuse, until one of them succeeds. */
static void try_allocations(const struct sample *sample) {
    atomic_store(&live_allocations, 0);
    cogpu_file *file = open_file(sample);
    cogpu_context *context = open_context(budget_of(sample), 1, EMULATED);
    for (long n = 1; !survives_allocation(sample, file, context, n) && !test_broken; n++)
        CHECK(n < ENDLESS);
    read_well(sample, file, context);
    close_context(context);
    cogpu_close(file);
    CHECK(atomic_load(&live_allocations) == 0);
    if (test_broken)
        printf("... with sample %d\n", (int)(sample - samples));
}

static void host_has_no_memory(void) {
    close_context(open_context(BUDGET, 1, EMULATED)); /* tests leave a GPU open for the process */
    for (int for_good = 0; for_good < 2; for_good++)
        for (int i = 0; i < SAMPLES; i++) {
            fails_for_good = for_good;
            try_allocations(&samples[i]);
        }
}

/* ---- device memory ---- */

static bool names(const char *message, uint64_t mebibytes) {
    char number[32];
    snprintf(number, sizeof number, " %llu ", (unsigned long long)mebibytes);
    return strstr(message, number) != NULL;
}

/* Free memory is checked before anything is opened. */
static void too_little_is_free(void) {
    enum { DEVICE_BYTES = 4 << 20 };
    for (int i = 0; i < SAMPLES && !gpu_test_is_real(); i++) {
        cogpu_file *file = open_file(&samples[i]);
        cogpu_context *context = open_context(0, 1, DEVICE_BYTES);
        cogpu_raster raster = device_raster(&samples[i], context);
        cogpu_request request = request_for(&samples[i], context);
        cogpu_error error;
        faulty_disarm(&gpu);
        CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_OUT_OF_MEMORY);
        CHECK(has_text(&error, COGPU_OUT_OF_MEMORY) && strstr(error.message, "device_bytes"));
        CHECK(names(error.message, DEVICE_BYTES >> 20));
        CHECK(names(error.message, (DEVICE_BYTES - samples[i].bytes) >> 20));
        CHECK(gpu.made[CALL_ALLOCATE] == 0 && gpu.made[CALL_ALLOCATE_PINNED] == 0);
        CHECK(gpu.resource_count == 1);
        cogpu_device_free(context, raster.device, 0, raster.data);
        close_context(context);

        context = open_context(budget_of(&samples[i]), 1, DEVICE_BYTES);
        read_well(&samples[i], file, context);
        close_context(context);
        cogpu_close(file);
    }
}

/* Reads with the budget. Returns the number of batches, or 0 if the budget is too small. */
static long batches_within(const struct sample *sample, const cogpu_file *file, uint64_t budget) {
    cogpu_context *context = open_context(budget, budget, EMULATED);
    cogpu_raster raster = device_raster(sample, context);
    cogpu_request request = request_for(sample, context);
    cogpu_result result = COGPU_RESULT_INIT;
    faulty_disarm(&gpu);
    cogpu_status status = cogpu_read(file, &request, &raster, &result, NULL);
    long batches = gpu.made[CALL_COPY_UP];
    CHECK(gpu.most_bytes - sample->bytes <= budget);
    CHECK(status == COGPU_OK || status == COGPU_LIMIT_EXCEEDED);
    CHECK(status != COGPU_OK || has_pixels(sample, context, &raster));
    bool is_decoded = status == COGPU_OK && result.device_blocks == result.blocks;
    cogpu_device_free(context, raster.device, 0, raster.data);
    close_context(context);
    return is_decoded ? batches : 0;
}

static void budgets(void) {
    struct sample sample = {.kind = {.width = 256,
                                     .height = 320,
                                     .tile_width = 64,
                                     .tile_height = 64,
                                     .compression = 32773}};
    long most = 0;
    make_sample(&sample);
    cogpu_file *file = open_file(&sample);
    CHECK(batches_within(&sample, file, 64 << 20) == 1);
    for (uint64_t budget = 4 << 20; budget > 100000; budget = budget * 4 / 5) {
        long batches = batches_within(&sample, file, budget);
        most = batches > most ? batches : most;
    }
    CHECK(most >= 3);
    cogpu_close(file);
    free_sample(&sample);
}

/* ---- the tests ---- */

static void without_faults(void) {
    for (int i = 0; i < SAMPLES; i++) {
        cogpu_context *context = open_context(budget_of(&samples[i]), 1, EMULATED);
        cogpu_file *file = open_file(&samples[i]);
        read_well(&samples[i], file, context);
        read_well(&samples[i], file, context);
        cogpu_close(file);
        close_context(context);
    }
}

TESTS(gpu_read_faults) {
    reset_faults();
    for (int i = 0; i < SAMPLES; i++)
        make_sample(&samples[i]);
    RUN(without_faults);
    RUN(opening_fails);
    RUN(working_fails);
    RUN(reads_with_a_cache_fail);
    RUN(copies_fail);
    RUN(device_is_lost);
    RUN(kernel_breaks_the_device);
    RUN(into_host_memory);
    RUN(into_host_memory_without_memory);
    RUN(neighbour_fails);
    RUN(host_has_no_memory);
    RUN(too_little_is_free);
    RUN(budgets);
    for (int i = 0; i < SAMPLES; i++)
        free_sample(&samples[i]);
    return FINISH();
}
