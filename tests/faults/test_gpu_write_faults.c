/*
 * Faults while a file is written from a device: the n-th call of each kind fails, for every n until
 * none is left; all calls from the n-th on fail, as on a lost device; the n-th host allocation; the
 * n-th write of the sink. Each failure has the right status, keeps the old file, and keeps only the
 * memory of the context. The next write with the same context gives the same file, unless the
 * device is lost; the CPU can write in any case.
 */
#include "faults/faulty_gpu.h"
#include "faults/old_file.h"

#include "context/context.h"
#include "support/fake_cufile.h"
#include "support/gpu_test.h"
#include "support/stand_in.h"

/* ---- what is written ---- */

enum { WIDTH = 20, HEIGHT = 18, BUDGET = 1600 << 10 };
enum { WIDE = 256, HIGH = 130 }; /* of a file that has whole pages */
/* Of the emulated device; and no write has so many calls. */
enum { EMULATED = 1 << 30, ENDLESS = 3000 };

/* Where rows are: all on the device; all in host memory, while the profile names the device; the
 * first chunk in host memory, so that the CPU writes; or alternating, while the device writes. */
enum where { ON_DEVICE, FROM_HOST, TO_HOST, BY_TURNS };

struct sample {
    cogpu_profile profile;
    enum where where;
    uint32_t rows;      /* of a chunk */
    long step;          /* only each so-many-th fault, if writes are slow; 0: all */
    uint64_t budget;    /* where BUDGET is not right */
    cogpu_memory whole; /* the file without faults */
    long calls;         /* that the device gets for it */
};

/* The budget of the first allows so few blocks a batch that it needs several batches. */
static struct sample samples[] = {
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U8,
      .bands = 2,
      .interleave = 1,
      .codec = "none"},
     .rows = HEIGHT,
     .budget = 18000},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U16,
      .bands = 2,
      .cog = 1,
      .codec = "none",
      .mask = 1},
     .where = TO_HOST,
     .rows = 14},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_F32,
      .bands = 1,
      .cog = 1,
      .codec = "lerc",
      .mask = 1},
     .rows = HEIGHT,
     .step = 23,
     .budget = 60000},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U8,
      .bands = 1,
      .codec = "lzma",
      .compression_level = 1,
      .mask = 1},
     .where = BY_TURNS,
     .rows = 9,
     .step = 23,
     .budget = 60000},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U8,
      .bands = 3,
      .strips = 1,
      .block_height = 16,
      .codec = "deflate",
      .overviews = COGPU_OVERVIEWS_AUTO,
      .mask = 1},
     .rows = 11,
     .step = 26},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U8,
      .bands = 2,
      .cog = 1,
      .interleave = 1,
      .codec = "deflate",
      .sparse = 1},
     .where = FROM_HOST,
     .rows = 17,
     .step = 31},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

/* Written by cuFile, in several batches; the second has overviews between them. */
static struct sample direct_samples[] = {
    {{.struct_size = sizeof(cogpu_profile), .type = COGPU_TYPE_U8, .bands = 1, .codec = "none"},
     .rows = 50,
     .step = 2,
     .budget = 140000},
    {{.struct_size = sizeof(cogpu_profile),
      .type = COGPU_TYPE_U8,
      .bands = 1,
      .codec = "none",
      .overviews = COGPU_OVERVIEWS_AUTO},
     .rows = HIGH,
     .step = 7,
     .budget = 140000},
};

enum { DIRECT_SAMPLES = sizeof direct_samples / sizeof *direct_samples };

static uint8_t pixels[WIDE * HIGH], mask[WIDTH * HEIGHT];

/* Floats are numbers, and there is an empty corner. */
static void fill_pixels(void) {
    uint32_t number = 1;
    for (size_t i = 300; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)((number = number * 1103515245 + 12345) >> 24) / 8;
    for (size_t i = 0; i < sizeof mask; i++)
        mask[i] = i % 7 != 0;
}

static long step_of(const struct sample *sample) {
    return sample->step ? sample->step : 1;
}

static size_t row_bytes_of(const cogpu_profile *profile) {
    return profile->width * profile->bands * cogpu_type_bytes(profile->type);
}

/* ---- a context with a device of ours ---- */

static faulty_gpu gpu;

static cogpu_device_kind device_kind(void) {
    return gpu_test_is_real() ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
}

static void add_device(cogpu_context *context, faulty_gpu *faulty, uint32_t index, uint64_t seed) {
    cogpu_gpu *behind = NULL;
    cogpu_opened_device *device = cogpu_allocate(sizeof *device);
    if (gpu_test_is_real())
        behind = gpu_test_open(seed);
    else
        CHECK(cogpu_gpu_open_emulator(seed, EMULATED, &behind, NULL) == COGPU_OK);
    faulty_open(faulty, behind);
    *device =
        (cogpu_opened_device){.next = context->devices, .kind = device_kind(), .index = index};
    CHECK(cogpu_gpu_device_open(&faulty->base, context->device_bytes, false, &device->device,
                                NULL) == COGPU_OK);
    context->devices = device;
}

static cogpu_context *open_context(const struct sample *sample, uint64_t seed) {
    const cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                           .threads = 2,
                                           .device_bytes =
                                               sample->budget ? sample->budget : BUDGET};
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(&options, &context, NULL) == COGPU_OK);
    add_device(context, &gpu, 0, seed);
    return context;
}

static void close_context(cogpu_context *context) {
    cogpu_context_close(context);
    CHECK(gpu.is_closed && gpu.resource_count == 0 && gpu.bytes == 0);
}

/* What is open of a kind. */
static uint32_t open_resources(gpu_resource kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpu.resource_count; i++)
        count += gpu.resources[i].kind == kind;
    return count;
}

/* ---- a write ---- */

/* Rows and their mask, in device memory. */
struct chunk {
    void *rows, *mask;
};

static void release_chunk(cogpu_context *context, struct chunk *chunk) {
    cogpu_device_free(context, device_kind(), 0, chunk->rows);
    cogpu_device_free(context, device_kind(), 0, chunk->mask);
    *chunk = (struct chunk){0};
}

static void *upload(cogpu_context *context, uint32_t index, const void *from, size_t bytes) {
    const cogpu_device_kind kind = device_kind();
    void *memory = NULL;
    CHECK(cogpu_device_allocate(context, kind, index, bytes, &memory, NULL) == COGPU_OK);
    CHECK(cogpu_device_upload(context, kind, index, from, bytes, memory, NULL) == COGPU_OK);
    return memory;
}

static struct chunk upload_all(cogpu_context *context, const cogpu_profile *profile) {
    return (struct chunk){upload(context, 0, pixels, row_bytes_of(profile) * profile->height),
                          upload(context, 0, mask, sizeof mask)};
}

static bool is_on_device(enum where where, uint32_t number) {
    return where == ON_DEVICE || (where == TO_HOST && number > 0) ||
           (where == BY_TURNS && number % 2 == 0);
}

/* Some masks are not where their rows are. */
static cogpu_status push_chunk(cogpu_writer *writer, const struct sample *sample,
                               const struct chunk *device, uint32_t number, cogpu_error *error) {
    const cogpu_profile *profile = &sample->profile;
    uint32_t y = number * sample->rows, left = profile->height - y;
    bool is_here = is_on_device(sample->where, number);
    bool mask_is_here = sample->where == BY_TURNS ? number % 3 == 0 : is_here;
    cogpu_raster rows = {.struct_size = sizeof(cogpu_raster),
                         .data = (uint8_t *)(is_here ? device->rows : pixels) +
                                 y * row_bytes_of(profile),
                         .type = profile->type,
                         .bands = profile->bands,
                         .width = profile->width,
                         .height = sample->rows < left ? sample->rows : left,
                         .device = is_here ? device_kind() : COGPU_DEVICE_CPU};
    cogpu_raster valid = {.struct_size = sizeof(cogpu_raster),
                          .data =
                              (uint8_t *)(mask_is_here ? device->mask : mask) + y * profile->width,
                          .type = COGPU_TYPE_U8,
                          .bands = 1,
                          .width = profile->width,
                          .height = rows.height,
                          .device = mask_is_here ? device_kind() : COGPU_DEVICE_CPU};
    return cogpu_writer_write_rows(writer, &rows, profile->mask ? &valid : NULL, error);
}

/* The caller's device memory is released as soon as a push has failed: late accesses show. */
static cogpu_status write_rows(const cogpu_sink *sink, const struct sample *sample,
                               cogpu_context *context, struct chunk *device, cogpu_error *error) {
    cogpu_profile profile = sample->profile;
    cogpu_writer *writer = NULL;
    profile.context = context;
    profile.device =
        sample->where == FROM_HOST || sample->where == BY_TURNS ? device_kind() : COGPU_DEVICE_CPU;
    cogpu_status status = cogpu_writer_open(sink, &profile, &writer, error);
    for (uint32_t i = 0; status == COGPU_OK && i * sample->rows < profile.height; i++)
        status = push_chunk(writer, sample, device, i, error);
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, error);
    release_chunk(context, device);
    cogpu_writer_abort(writer);
    return status;
}

/* Without faults. */
static void write_well(const struct sample *sample, cogpu_context *context) {
    struct chunk device = upload_all(context, &sample->profile);
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_error error = {0};
    cogpu_status status =
        write_rows(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, sample,
                   context, &device, &error);
    CHECK(status == COGPU_OK);
    if (status != COGPU_OK)
        printf("... %s\n", error.message);
    CHECK(memory.bytes == sample->whole.bytes &&
          !memcmp(memory.data, sample->whole.data, memory.bytes));
    cogpu_memory_free(&memory);
    release_chunk(context, &device);
}

/* By the host, with a context whose device is lost. */
static void write_by_host(const struct sample *sample, cogpu_context *context) {
    struct sample by_host = *sample;
    cogpu_memory memory = COGPU_MEMORY_INIT;
    by_host.where = TO_HOST;
    by_host.rows = sample->profile.height;
    CHECK(write_rows(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, &by_host,
                     context, &(struct chunk){0}, NULL) == COGPU_OK);
    cogpu_memory_free(&memory);
}

/* With whatever fault there is: the path has the old file, or the new one. */
static cogpu_status write_to_path(const struct sample *sample, cogpu_context *context,
                                  struct chunk *device) {
    cogpu_error error = {0};
    put_old_file();
    cogpu_status status = write_rows(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path},
                                     sample, context, device, &error);
    if (status == COGPU_OK)
        CHECK(path_has(sample->whole.data, sample->whole.bytes));
    else
        CHECK(path_has(old, sizeof old) && error.status == status && error.message[0]);
    CHECK(files_in_folder() == 1);
    return status;
}

/* ---- faults, one by one ---- */

/* A write with the n-th fault of a kind: true where there was none any more. */
typedef bool survives(const struct sample *sample, cogpu_context *context, struct chunk *device,
                      long n);

/* Only what the context keeps is open: one device allocation and one pinned allocation. */
static void check_kept(void) {
    CHECK(open_resources(GPU_MEMORY) <= 1 && open_resources(GPU_PINNED) <= 1);
    CHECK(open_resources(GPU_STREAM) == 0 && open_resources(GPU_EVENT) == 0);
}

/* Each with a context that has kept nothing; now and then followed by a write without. */
static void try_sample(const struct sample *sample, survives *survives_it) {
    bool is_through = false;
    for (long n = 1; !is_through && !test_broken; n += step_of(sample)) {
        atomic_store(&live_allocations, 0);
        cogpu_context *context = open_context(sample, (uint64_t)n);
        struct chunk device = upload_all(context, &sample->profile);
        is_through = survives_it(sample, context, &device, n);
        faulty_disarm(&gpu);
        release_chunk(context, &device);
        check_kept();
        if (n % 3 == 0 && !gpu.is_lost)
            write_well(sample, context);
        close_context(context);
        CHECK(atomic_load(&live_allocations) == 0);
        CHECK(n < ENDLESS);
        if (test_broken)
            printf("... with %s, %u wide, and fault %ld\n", sample->profile.codec,
                   sample->profile.width, n);
    }
}

static void try_all(survives *survives_it) {
    for (int i = 0; i < SAMPLES && !test_broken; i++)
        if (samples[i].whole.data)
            try_sample(&samples[i], survives_it);
}

/* ---- calls of the device ---- */

/* A writer that is closed waits for its streams, and has reported all failures by then. */
static bool is_late(const struct sample *sample, long n) {
    enum { STREAMS = 4 };
    return sample->where != TO_HOST && n > sample->calls - STREAMS;
}

static bool survives_call(const struct sample *sample, cogpu_context *context, struct chunk *device,
                          long n) {
    faulty_arm(&gpu, CALL_FAILS, ANY_CALL, n);
    cogpu_status status = write_to_path(sample, context, device);
    bool is_through = gpu.fired == 0;
    if (is_through || is_late(sample, n))
        CHECK(status == COGPU_OK);
    else
        CHECK(status == COGPU_DEVICE_ERROR || status == COGPU_OUT_OF_MEMORY);
    return is_through;
}

static void calls_fail(void) {
    try_all(survives_call);
}

/* ---- a device that is lost ---- */

static bool survives_loss(const struct sample *sample, cogpu_context *context, struct chunk *device,
                          long n) {
    faulty_arm(&gpu, DEVICE_IS_LOST, ANY_CALL, n);
    cogpu_status status = write_to_path(sample, context, device);
    if (gpu.fired == 0 || is_late(sample, n))
        CHECK(status == COGPU_OK);
    else
        CHECK(status == COGPU_DEVICE_ERROR);
    if (gpu.is_lost)
        write_by_host(sample, context);
    return gpu.fired == 0;
}

static void device_is_lost(void) {
    try_all(survives_loss);
}

static bool survives_kernel(const struct sample *sample, cogpu_context *context,
                            struct chunk *device, long n) {
    faulty_arm(&gpu, KERNEL_BREAKS, CALL_LAUNCH, n);
    CHECK(write_to_path(sample, context, device) == (gpu.fired ? COGPU_DEVICE_ERROR : COGPU_OK));
    gpu.is_lost = gpu.fired > 0;
    if (gpu.is_lost)
        write_by_host(sample, context);
    return gpu.fired == 0;
}

static void kernel_breaks_the_device(void) {
    if (!gpu_test_is_real())
        try_all(survives_kernel);
}

/* ---- host memory ---- */

static bool survives_allocation(const struct sample *sample, cogpu_context *context,
                                struct chunk *device, long n) {
    fails_for_good = n % 2;
    arm_fault(ALLOCATION, n);
    cogpu_status status = write_to_path(sample, context, device);
    bool is_through = atomic_load(&faults_fired) == 0;
    arm_fault(NO_FAULT, 0);
    CHECK(status == COGPU_OK || (status == COGPU_OUT_OF_MEMORY && !is_through));
    return is_through;
}

static void host_has_no_memory(void) {
    try_all(survives_allocation);
}

/* ---- the sink ---- */

static struct {
    long writes, failing;
    int commits, aborts;
} taken;

static cogpu_status store_bytes(void *user, uint64_t offset, const void *from, size_t bytes) {
    (void)user, (void)offset, (void)from, (void)bytes;
    return ++taken.writes == taken.failing ? COGPU_IO_ERROR : COGPU_OK;
}

static cogpu_status commit(void *user) {
    (void)user;
    taken.commits++;
    return COGPU_OK;
}

static void abort_it(void *user) {
    (void)user;
    taken.aborts++;
}

static bool is_append_only;

static bool survives_sink(const struct sample *sample, cogpu_context *context, struct chunk *device,
                          long n) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink),
                             .write = store_bytes,
                             .commit = commit,
                             .abort = abort_it,
                             .append_only = is_append_only};
    cogpu_error error = {0};
    memset(&taken, 0, sizeof taken);
    taken.failing = n;
    cogpu_status status = write_rows(&sink, sample, context, device, &error);
    bool is_through = taken.writes < n;
    CHECK(status == (is_through ? COGPU_OK : COGPU_IO_ERROR));
    CHECK(is_through || (error.status == COGPU_IO_ERROR && error.message[0]));
    CHECK(taken.commits == is_through && taken.aborts == !is_through);
    return is_through;
}

static void sink_fails(void) {
    try_all(survives_sink);
}

static void sink_that_only_appends_fails(void) {
    is_append_only = true;
    for (int i = 0; i < 2; i++)
        try_sample(&samples[i], survives_sink);
}

/* ---- another device ---- */

/* Rows of one device and a mask of the writer's, and vice versa: what the backend cannot access is
 * downloaded, as the counters of that device show. */
static void rows_of_another_device(void) {
    const struct sample *sample = &samples[1];
    cogpu_profile profile = sample->profile;
    for (uint32_t index = 0; index < 2 && sample->whole.data; index++) {
        static faulty_gpu other;
        cogpu_context *context = open_context(sample, 1);
        add_device(context, &other, 1, 2);
        cogpu_memory files[2] = {{.struct_size = sizeof(cogpu_memory)},
                                 {.struct_size = sizeof(cogpu_memory)}};
        cogpu_raster rows = {
            .struct_size = sizeof(cogpu_raster),
            .data = upload(context, index, pixels, row_bytes_of(&profile) * profile.height),
            .type = profile.type,
            .bands = profile.bands,
            .width = profile.width,
            .height = profile.height,
            .device = device_kind(),
            .device_index = index};
        cogpu_raster valid = {.struct_size = sizeof(cogpu_raster),
                              .data = upload(context, !index, mask, sizeof mask),
                              .type = COGPU_TYPE_U8,
                              .bands = 1,
                              .width = profile.width,
                              .height = profile.height,
                              .device = device_kind(),
                              .device_index = !index};
        cogpu_raster host_rows = rows, host_valid = valid;
        host_rows.data = pixels;
        host_valid.data = mask;
        host_rows.device = host_valid.device = COGPU_DEVICE_CPU;
        profile.context = context;
        profile.device = device_kind();
        faulty_disarm(&other);
        CHECK(cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &files[0]},
                          &profile, &rows, &valid, NULL, NULL) == COGPU_OK);
        CHECK(other.made[CALL_COPY_DOWN] == 1 && other.made[CALL_FINISH_STREAM] == 1);
        CHECK(cogpu_write(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &files[1]},
                          &profile, &host_rows, &host_valid, NULL, NULL) == COGPU_OK);
        CHECK(files[0].bytes == files[1].bytes && files[0].bytes > 0 &&
              !memcmp(files[0].data, files[1].data, files[0].bytes));
        for (int i = 0; i < 2; i++)
            cogpu_memory_free(&files[i]);
        cogpu_device_free(context, rows.device, rows.device_index, rows.data);
        cogpu_device_free(context, valid.device, valid.device_index, valid.data);
        close_context(context);
        CHECK(other.is_closed && other.resource_count == 0);
    }
}

/* ---- cuFile ---- */

static fake_cufile *fake;

/* Without faults, and by cuFile. */
static void count_calls(struct sample *sample) {
    cogpu_context *context = open_context(sample, 1);
    struct chunk device = upload_all(context, &sample->profile);
    faulty_disarm(&gpu);
    fake->writes = 0;
    CHECK(write_to_path(sample, context, &device) == COGPU_OK && fake->writes > 1);
    sample->calls = gpu.made[ANY_CALL];
    release_chunk(context, &device);
    close_context(context);
}

/* Writes that cuFile ends late, or does not do, while other things fail. Of a device that is lost
 * some may be left. */
static void try_directly(survives *survives_it, bool is_lost) {
    for (unsigned i = 0; i < 2; i++)
        for (int k = 0; k < DIRECT_SAMPLES && !test_broken; k++) {
            fake->late = i == 0 ? 200 : 0;
            fake->fail_each = i == 1 ? 2 : 0;
            count_calls(&direct_samples[k]);
            fake->waits = 0; /* which `late` counts */
            try_sample(&direct_samples[k], survives_it);
            CHECK(fake->files == 0);
            CHECK(is_lost || fake->memories + fake->batches == 0);
            CHECK(fake->wrong + fake->closed_under_way + fake->unaligned == 0);
        }
}

static void by_cufile(void) {
    try_directly(survives_call, false);
    try_directly(survives_allocation, false);
    try_directly(survives_loss, true);
}

static void direct_writes_fail(void) {
    if (!gpu_test_is_real())
        in_a_process("COGPU_CUFILE", FAKE_CUFILE, "fake_cufile_control", (void **)&fake, by_cufile);
}

/* ---- too much for the device ---- */

/* Rows of more bytes than any device has, of level 0 and of the levels after it: refused before one
 * of them is looked at. */
static void rows_that_do_not_fit(void) {
    for (int is_cog = 0; is_cog < 2; is_cog++) {
        struct sample sample = {{.struct_size = sizeof(cogpu_profile),
                                 .type = COGPU_TYPE_F64,
                                 .bands = 4,
                                 .cog = is_cog,
                                 .codec = "none",
                                 .width = 1 << 28,
                                 .height = 64,
                                 .block_width = 512},
                                .where = FROM_HOST,
                                .rows = 64,
                                .budget = 64 << 20};
        cogpu_context *context = open_context(&sample, 1);
        faulty_disarm(&gpu);
        CHECK(write_to_path(&sample, context, &(struct chunk){0}) == COGPU_OUT_OF_MEMORY);
        CHECK(gpu.made[CALL_MEMORY] == 1 && gpu.made[CALL_LAUNCH] == 0);
        check_kept();
        close_context(context);
    }
}

/* A block exceeds the budget: the CPU writes, and rows are downloaded. */
static void blocks_that_do_not_fit(void) {
    struct sample sample = samples[0];
    sample.budget = 1000;
    cogpu_context *context = open_context(&sample, 1);
    faulty_disarm(&gpu);
    write_well(&sample, context);
    CHECK(gpu.made[CALL_MEMORY] == 0 && gpu.made[CALL_COPY_DOWN] == 1);
    close_context(context);
}

/* ---- the tests ---- */

/* Without faults: the file, and the number of calls. */
static void write_whole(struct sample *sample) {
    cogpu_profile *profile = &sample->profile;
    cogpu_error error;
    profile->threads = 2;
    sample->whole = (cogpu_memory)COGPU_MEMORY_INIT;
    cogpu_context *context = open_context(sample, 1);
    struct chunk device = upload_all(context, profile);
    faulty_disarm(&gpu);
    cogpu_status status =
        write_rows(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &sample->whole},
                   sample, context, &device, &error);
    CHECK(status == COGPU_OK || status == COGPU_UNSUPPORTED); /* by this build */
    if (status != COGPU_OK)
        printf("%s: %s\n", profile->codec, error.message);
    /* by the device, or its faults would not matter */
    CHECK(status != COGPU_OK || gpu.made[CALL_MEMORY] == (sample->where != TO_HOST));
    sample->calls = gpu.made[ANY_CALL];
    release_chunk(context, &device);
    close_context(context);
}

static void make_sample(struct sample *sample) {
    cogpu_profile *profile = &sample->profile;
    profile->width = WIDTH;
    profile->height = HEIGHT;
    if (!profile->strips)
        profile->block_width = 16;
    write_whole(sample);
}

static void make_direct_sample(struct sample *sample) {
    cogpu_profile *profile = &sample->profile;
    profile->width = WIDE;
    profile->height = HIGH;
    profile->strips = 1;
    profile->block_height = 16;
    write_whole(sample);
}

TESTS(gpu_write_faults) {
    reset_faults();
    fill_pixels();
    make_folder();
    for (int i = 0; i < SAMPLES; i++)
        make_sample(&samples[i]);
    for (int i = 0; i < DIRECT_SAMPLES; i++)
        make_direct_sample(&direct_samples[i]);
    if (test_broken)
        return 1;
    RUN(calls_fail);
    RUN(device_is_lost);
    RUN(kernel_breaks_the_device);
    RUN(host_has_no_memory);
    RUN(sink_fails);
    RUN(sink_that_only_appends_fails);
    RUN(direct_writes_fail);
    RUN(rows_of_another_device);
    RUN(rows_that_do_not_fit);
    RUN(blocks_that_do_not_fit);
    for (int i = 0; i < SAMPLES; i++)
        cogpu_memory_free(&samples[i].whole);
    for (int i = 0; i < DIRECT_SAMPLES; i++)
        cogpu_memory_free(&direct_samples[i].whole);
    remove_folder();
    return FINISH();
}
