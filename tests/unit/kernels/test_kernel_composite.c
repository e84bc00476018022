/*
 * Composition on the device against the CPU, bit for bit: all methods and types, rasters at any
 * address and strides, layers of any size and place, NaN and infinities. Planes are compared too.
 */
#include "kernels/composite/composite_args.h"

#include "cpu/composite.h"
#include "support/raster_pair.h"
#include "support/test.h"

enum { LAYERS_MAX = 12 };

static cogpu_error error;

/* Memory on the host and on the device, which begin with the same bytes. */
struct memory_pair {
    uint8_t *host, *device;
    size_t bytes;
};

static struct memory_pair any_memory(size_t bytes) {
    struct memory_pair pair = {allocate_host(bytes), NULL, bytes};
    for (size_t i = 0; i < bytes; i++)
        pair.host[i] = (uint8_t)draw(256);
    pair.device = upload(pair.host, bytes);
    return pair;
}

/* Device memory after the kernels, where bytes that neither side sets are equal too. */
static bool is_same_memory(const struct memory_pair *pair) {
    uint8_t *got = allocate_host(pair->bytes);
    gpu_test_need(gpu->calls->copy_down(gpu, got, pair->device, pair->bytes, stream, &error),
                  &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    bool same = memcmp(got, pair->host, pair->bytes) == 0;
    free(got);
    return same;
}

static void drop_memory(struct memory_pair *pair) {
    free(pair->host);
    gpu->calls->release(gpu, pair->device);
}

/* A composition on both sides. */
enum { VALID, SUMS, COUNTS, STACK, FILL, PLANES };
struct composition_pair {
    cogpu_composition host, device;
    struct raster_pair pixels;
    struct memory_pair planes[PLANES];
    uint32_t layers;
};

static void set_planes(cogpu_composition *composition, uint8_t *const memory[PLANES]) {
    cogpu_composite method = composition->method;
    bool stacks = method == COGPU_COMPOSITE_MEDIAN, sums = method == COGPU_COMPOSITE_MEAN;
    composition->valid = memory[VALID];
    composition->sums = sums ? (double *)(void *)memory[SUMS] : NULL;
    composition->counts = sums || stacks || method == COGPU_COMPOSITE_COUNT
                              ? (uint32_t *)(void *)memory[COUNTS]
                              : NULL;
    composition->stack = stacks ? memory[STACK] : NULL;
    composition->fill = (const uint8_t(*)[16])memory[FILL];
}

static void open_composition(cogpu_composite method, struct composition_pair *pair) {
    cogpu_type type = (cogpu_type)(COGPU_TYPE_U8 + draw(COGPU_TYPE_F64));
    uint32_t bands = 1 + draw(3), height = 1 + draw(13), width = 1 + draw(draw(4) ? 50 : 300);
    size_t samples = (size_t)bands * height * width;
    const uint32_t layers = draw(LAYERS_MAX + 1);
    const size_t bytes[PLANES] = {samples, samples * sizeof(double), samples * sizeof(uint32_t),
                                  samples * cogpu_type_bytes(type) * (layers + 1),
                                  (size_t)bands * 16};
    uint8_t *hosts[PLANES], *devices[PLANES];
    pair->layers = layers;
    pair->pixels = raster_pair_any(type, bands, height, width);
    raster_pair_upload(&pair->pixels);
    for (int i = 0; i < PLANES; i++) {
        pair->planes[i] = any_memory(bytes[i]);
        hosts[i] = pair->planes[i].host;
        devices[i] = pair->planes[i].device;
    }
    pair->host.method = pair->device.method = method;
    pair->host.depth = pair->device.depth = pair->layers;
    pair->host.pixels = &pair->pixels.host;
    pair->device.pixels = &pair->pixels.device;
    set_planes(&pair->host, hosts);
    set_planes(&pair->device, devices);
}

static void add_any_layer(const struct composition_pair *pair, const struct taste *taste) {
    const cogpu_raster *pixels = &pair->pixels.host;
    const size_t size = cogpu_type_bytes(pixels->type);
    cogpu_composite_layer layer = {.x = draw(2) ? 0 : draw(pixels->width),
                                   .y = draw(2) ? 0 : draw(pixels->height)};
    layer.width = draw(2) ? pixels->width - layer.x : 1 + draw(pixels->width - layer.x);
    layer.height = draw(2) ? pixels->height - layer.y : 1 + draw(pixels->height - layer.y);
    size_t samples = (size_t)pixels->bands * layer.width * layer.height;
    uint8_t *samples_of_layer = allocate_host(samples * size), *valid = allocate_host(samples);
    for (size_t i = 0; i < samples; i++) {
        raster_pair_draw_sample(taste, size, samples_of_layer + i * size);
        valid[i] = draw(3) ? (uint8_t)(1 + draw(255)) : 0;
    }
    void *device_samples = upload(samples_of_layer, samples * size);
    void *device_valid = upload(valid, samples);
    layer.pixels = device_samples;
    layer.valid = device_valid;
    gpu_test_need(cogpu_gpu_composite_add(gpu, &pair->device, &layer, stream, &error), &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    layer.pixels = samples_of_layer;
    layer.valid = valid;
    cogpu_cpu_composite_add(NULL, &pair->host, &layer);
    gpu->calls->release(gpu, device_samples);
    gpu->calls->release(gpu, device_valid);
    free(samples_of_layer);
    free(valid);
}

static bool composes_as_host(cogpu_composite method) {
    struct composition_pair pair;
    open_composition(method, &pair);
    const struct taste taste = raster_pair_taste(pair.pixels.host.type);
    gpu_test_need(cogpu_gpu_composite_begin(gpu, &pair.device, stream, &error), &error);
    cogpu_cpu_composite_begin(NULL, &pair.host);
    for (uint32_t i = 0; i < pair.layers; i++)
        add_any_layer(&pair, &taste);
    gpu_test_need(cogpu_gpu_composite_finish(gpu, &pair.device, stream, &error), &error);
    cogpu_cpu_composite_finish(NULL, &pair.host);
    bool same = raster_pair_is_same(&pair.pixels);
    for (int i = 0; i < PLANES; i++)
        same &= is_same_memory(&pair.planes[i]);
    if (!same)
        printf("%s, method %d, %u layers\n", cogpu_type_name(pair.pixels.host.type), (int)method,
               pair.layers);
    raster_pair_drop(&pair.pixels);
    for (int i = 0; i < PLANES; i++)
        drop_memory(&pair.planes[i]);
    return same;
}

static void check_method(cogpu_composite method) {
    int different = 0;
    for (int i = 0; i < 40; i++)
        different += !composes_as_host(method);
    CHECK(different == 0);
}

static void test_first(void) {
    check_method(COGPU_COMPOSITE_FIRST);
}

static void test_last(void) {
    check_method(COGPU_COMPOSITE_LAST);
}

static void test_min(void) {
    check_method(COGPU_COMPOSITE_MIN);
}

static void test_max(void) {
    check_method(COGPU_COMPOSITE_MAX);
}

static void test_mean(void) {
    check_method(COGPU_COMPOSITE_MEAN);
}

static void test_median(void) {
    check_method(COGPU_COMPOSITE_MEDIAN);
}

static void test_count(void) {
    check_method(COGPU_COMPOSITE_COUNT);
}

TESTS(kernel_composite) {
    open_gpu(test_argc, test_argv);
    RUN(test_first);
    RUN(test_last);
    RUN(test_min);
    RUN(test_max);
    RUN(test_mean);
    RUN(test_median);
    RUN(test_count);
    close_gpu();
    return FINISH();
}
