/*
 * Device memory of the CUDA driver: small allocations are kept for reuse. Meanwhile they are not
 * reported as owned, and they are freed if memory runs out. With fake_cuda.c in place of libcuda.
 */
#include "gpu/driver/gpu.h"
#include "gpu/driver/memory_cache.h"
#include "support/fake_cuda.h"
#include "support/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum { MIB = 1 << 20, THREADS = 4, ROUNDS = 500 };

static fake_cuda *fake;

static void load_fake(void) {
    void *library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "fake_cuda_control") : NULL;
    fake_cuda *(*control)(void);
    CHECK(symbol);
    memcpy(&control, &symbol, sizeof symbol);
    fake = control();
}

static cogpu_gpu *open_gpu(void) {
    cogpu_gpu *gpu = NULL;
    cogpu_error error;
    CHECK(cogpu_gpu_open_cuda(0, &gpu, &error) == COGPU_OK);
    return gpu;
}

static void *allocate(cogpu_gpu *gpu, uint64_t bytes) {
    void *memory = NULL;
    cogpu_error error;
    CHECK(gpu->calls->allocate(gpu, bytes, &memory, &error) == COGPU_OK);
    return memory;
}

static bool is_owned(const void *memory) {
    uint32_t ordinal = 9;
    return cogpu_gpu_owns_memory(memory, &ordinal) && ordinal == 0;
}

static void test_released_memory_is_not_owned(void) {
    cogpu_gpu *gpu = open_gpu();
    uint8_t *memory = allocate(gpu, MIB), *other = allocate(gpu, MIB);
    CHECK(is_owned(memory) && is_owned(memory + MIB - 1));
    gpu->calls->release(gpu, memory);
    CHECK(fake->frees == 0 && fake->allocated_bytes == 2 * MIB); /* kept */
    CHECK(!is_owned(memory) && !is_owned(memory + MIB - 1) && is_owned(other));
    gpu->calls->release(gpu, other);
    gpu->calls->close(gpu);
    CHECK(fake->frees == 2 && fake->allocated_bytes == 0);
}

static void test_a_second_release_frees_once(void) {
    cogpu_gpu *gpu = open_gpu();
    void *memory = allocate(gpu, MIB);
    gpu->calls->release(gpu, memory);
    gpu->calls->release(gpu, memory);
    gpu->calls->close(gpu);
    CHECK(fake->wrong_frees == 0 && fake->allocated_bytes == 0);
}

static void test_kept_memory_is_bounded(void) {
    cogpu_gpu *gpu = open_gpu();
    void *memory[200];
    for (uint32_t i = 0; i < 200; i++)
        memory[i] = allocate(gpu, i % 2 ? 1000 : MIB);
    for (uint32_t i = 0; i < 200; i++)
        gpu->calls->release(gpu, memory[i]);
    uint64_t kept = fake->allocated_bytes;
    CHECK(kept > 0 && kept <= 2 * COGPU_MEMORY_CACHE_LIST_BYTES);
    void *large = allocate(gpu, 5 * MIB);
    gpu->calls->release(gpu, large); /* at once */
    CHECK(fake->allocated_bytes == kept);
    gpu->calls->close(gpu);
    CHECK(fake->wrong_frees == 0 && fake->allocated_bytes == 0);
}

/* An allocation of a size that was released before needs no call of the driver. */
static void test_memory_is_reused(void) {
    cogpu_gpu *gpu = open_gpu();
    const uint32_t before = fake->frees;
    for (uint32_t i = 0; i < 1000; i++)
        gpu->calls->release(gpu, allocate(gpu, 700000));
    CHECK(fake->allocated_bytes <= 128 * UINT64_C(720896));
    CHECK(fake->frees == before);
    gpu->calls->close(gpu);
    CHECK(fake->wrong_frees == 0 && fake->allocated_bytes == 0);
}

/* Two objects of one GPU: what one has released the other can allocate, and sees as free. */
static void test_memory_is_for_all_of_a_gpu(void) {
    cogpu_gpu *first = open_gpu(), *second = open_gpu();
    uint64_t free_bytes = 0, total = 0;
    cogpu_error error;
    first->calls->release(first, allocate(first, 4 * MIB));
    CHECK(fake->allocated_bytes == 4 * MIB);
    void *all = allocate(second, FAKE_CUDA_BYTES);
    second->calls->release(second, all);
    first->calls->release(first, allocate(first, 4 * MIB));
    CHECK(second->calls->memory(second, &free_bytes, &total, &error) == COGPU_OK);
    CHECK(free_bytes == FAKE_CUDA_BYTES && total == FAKE_CUDA_BYTES);
    first->calls->close(first);
    second->calls->close(second);
    CHECK(fake->wrong_frees == 0 && fake->allocated_bytes == 0);
}

static void *allocate_and_release(void *gpu_pointer) {
    cogpu_gpu *gpu = gpu_pointer;
    for (uint32_t i = 0; i < ROUNDS; i++)
        gpu->calls->release(gpu, allocate(gpu, 1 + i * 12345 % (6 * MIB)));
    return NULL;
}

static void test_threads_share_the_list(void) {
    cogpu_gpu *gpus[2] = {open_gpu(), open_gpu()};
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_and_release, gpus[i % 2]) == 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    gpus[0]->calls->close(gpus[0]);
    gpus[1]->calls->close(gpus[1]);
    CHECK(fake->wrong_frees == 0 && fake->allocated_bytes == 0);
}

TESTS(cuda_memory) {
    load_fake();
    RUN(test_released_memory_is_not_owned);
    RUN(test_a_second_release_frees_once);
    RUN(test_kept_memory_is_bounded);
    RUN(test_memory_is_reused);
    RUN(test_memory_is_for_all_of_a_gpu);
    RUN(test_threads_share_the_list);
    return FINISH();
}
