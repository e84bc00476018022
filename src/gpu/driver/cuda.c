/*
 * A GPU through the CUDA driver API. libcuda is loaded when a GPU is first used, so the library
 * runs without CUDA. It uses the device's primary context, as CuPy, PyTorch and the CUDA runtime
 * do: streams and pointers can be shared. The context is current only during a call, on the calling
 * thread, so all calls are safe on any thread.
 */
#include "base/library.h"
#include "gpu/driver/gpu.h"
#include "gpu/driver/memory_cache.h"
#include "gpu/driver/modules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Types and constants of the driver API. */
typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef void *cu_context, *cu_stream, *cu_event, *cu_module, *cu_function;

enum { CU_SUCCESS = 0, CU_OUT_OF_MEMORY = 2, CU_INVALID_CONTEXT = 201 };
enum {
    CU_MULTIPROCESSORS = 16,
    CU_CAPABILITY_MAJOR = 75,
    CU_CAPABILITY_MINOR = 76,
    CU_SHARED_BYTES_OPTIN = 97
};
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_HOST_PORTABLE = 1 };
enum { CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_IS_MANAGED = 8, CU_POINTER_DEVICE = 9 };
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2 };
enum { CU_FUNCTION_MAX_SHARED = 8, CU_FUNCTION_PREFER_SHARED = 9 };

/* X(field, name in the library, arguments) */
#define CALLS(X)                                                                                   \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (cu_device *, int))                                               \
    X(device_name, "cuDeviceGetName", (char *, int, cu_device))                                    \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, cu_device))                           \
    X(device_bytes, "cuDeviceTotalMem_v2", (size_t *, cu_device))                                  \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cu_context *, cu_device))                       \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device))                                \
    X(context_push, "cuCtxPushCurrent_v2", (cu_context))                                           \
    X(context_pop, "cuCtxPopCurrent_v2", (cu_context *))                                           \
    X(context_device, "cuCtxGetDevice", (cu_device *))                                             \
    X(stream_priorities, "cuCtxGetStreamPriorityRange", (int *, int *))                            \
    X(memory_info, "cuMemGetInfo_v2", (size_t *, size_t *))                                        \
    X(allocate, "cuMemAlloc_v2", (cu_pointer *, size_t))                                           \
    X(release, "cuMemFree_v2", (cu_pointer))                                                       \
    X(address_range, "cuMemGetAddressRange_v2", (cu_pointer *, size_t *, cu_pointer))              \
    X(allocate_host, "cuMemHostAlloc", (void **, size_t, unsigned))                                \
    X(release_host, "cuMemFreeHost", (void *))                                                     \
    X(copy_up, "cuMemcpyHtoDAsync_v2", (cu_pointer, const void *, size_t, cu_stream))              \
    X(copy_down, "cuMemcpyDtoHAsync_v2", (void *, cu_pointer, size_t, cu_stream))                  \
    X(set_bytes, "cuMemsetD8Async", (cu_pointer, unsigned char, size_t, cu_stream))                \
    X(pointer_attribute, "cuPointerGetAttribute", (void *, int, cu_pointer))                       \
    X(context_finish, "cuCtxSynchronize", (void))                                                  \
    X(stream_create, "cuStreamCreateWithPriority", (cu_stream *, unsigned, int))                   \
    X(stream_destroy, "cuStreamDestroy_v2", (cu_stream))                                           \
    X(stream_wait, "cuStreamWaitEvent", (cu_stream, cu_event, unsigned))                           \
    X(stream_finish, "cuStreamSynchronize", (cu_stream))                                           \
    X(event_create, "cuEventCreate", (cu_event *, unsigned))                                       \
    X(event_destroy, "cuEventDestroy_v2", (cu_event))                                              \
    X(event_record, "cuEventRecord", (cu_event, cu_stream))                                        \
    X(event_finish, "cuEventSynchronize", (cu_event))                                              \
    X(event_query, "cuEventQuery", (cu_event))                                                     \
    X(event_elapsed, "cuEventElapsedTime", (float *, cu_event, cu_event))                          \
    X(module_load, "cuModuleLoadData", (cu_module *, const void *))                                \
    X(module_unload, "cuModuleUnload", (cu_module))                                                \
    X(module_function, "cuModuleGetFunction", (cu_function *, cu_module, const char *))            \
    X(function_set, "cuFuncSetAttribute", (cu_function, int, int))                                 \
    X(launch, "cuLaunchKernel",                                                                    \
      (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,          \
       cu_stream, void **, void **))                                                               \
    X(error_name, "cuGetErrorName", (cu_result, const char **))                                    \
    X(error_text, "cuGetErrorString", (cu_result, const char **))

#define FIELD(field, name, arguments) cu_result(*field) arguments;
static struct driver { CALLS(FIELD) } driver;

#define SYMBOL(field, name, arguments) {name, &driver.field, false},
static const cogpu_library_symbol symbols[] = {CALLS(SYMBOL)};
static cogpu_library library = {.title = "NVIDIA's driver",
                                .names = {"libcuda.so.1"},
                                .symbols = symbols,
                                .symbol_count = sizeof symbols / sizeof *symbols,
                                .lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t gpu_count;
static cogpu_error no_gpu; /* why none can be used; without a message if one can */
static pthread_once_t initialize_once = PTHREAD_ONCE_INIT;

static void open_caches(void);
static cogpu_status describe_gpu(uint32_t ordinal, cogpu_gpu *properties, cu_device *device,
                                 cogpu_error *error);

/* Keeps the reason of the first GPU, unless one can be used. */
static void find_usable_gpu(void) {
    cogpu_gpu properties;
    cu_device device;
    cogpu_error reason;
    for (uint32_t i = 0; i < gpu_count; i++) {
        if (describe_gpu(i, &properties, &device, &reason) == COGPU_OK &&
            cogpu_gpu_check(&properties, &reason) == COGPU_OK) {
            no_gpu.message[0] = 0;
            return;
        }
        if (i == 0)
            no_gpu = reason;
    }
}

static void initialize_driver(void) {
    const char *reason = cogpu_library_load(&library);
    int count = 0;
    open_caches();
    if (reason)
        (void)cogpu_fail(&no_gpu, COGPU_DEVICE_ERROR, "%s", reason);
    else if (driver.init(0) != CU_SUCCESS)
        (void)cogpu_fail(&no_gpu, COGPU_DEVICE_ERROR, "NVIDIA's driver finds no GPU");
    else if (driver.device_count(&count) != CU_SUCCESS || count <= 0)
        (void)cogpu_fail(&no_gpu, COGPU_DEVICE_ERROR, "there is no GPU");
    else
        gpu_count = (uint32_t)count;
    find_usable_gpu();
}

uint32_t cogpu_gpu_count(const char **why) {
    pthread_once(&initialize_once, initialize_driver);
    if (why)
        *why = no_gpu.message[0] ? no_gpu.message : NULL;
    return gpu_count;
}

enum { KERNELS_MAX = 64, MODULES_MAX = 64 };

struct driver_gpu {
    cogpu_gpu base;
    cu_device device;
    cu_context context;
    pthread_mutex_t lock; /* of all below */
    cu_module modules[MODULES_MAX];
    struct {
        const cogpu_kernel *kernel;
        cu_function function;
    } functions[KERNELS_MAX];
    uint32_t function_count;
};

static struct driver_gpu *gpu_of(cogpu_gpu *gpu) {
    return (struct driver_gpu *)gpu;
}

static cogpu_status explain(cu_result result, const char *what, cogpu_error *error) {
    const char *name = NULL, *text = NULL;
    if (result == CU_SUCCESS)
        return COGPU_OK;
    driver.error_name(result, &name);
    driver.error_text(result, &text);
    return cogpu_fail(error, result == CU_OUT_OF_MEMORY ? COGPU_OUT_OF_MEMORY : COGPU_DEVICE_ERROR,
                      "the GPU failed %s: %s (%s)", what, text ? text : "unknown error",
                      name ? name : "?");
}

/* Makes the context current on this thread, until pop_context. */
static cu_result push_context(cogpu_gpu *gpu) {
    return driver.context_push(gpu_of(gpu)->context);
}

/* Restores the former context, and makes a status of the call's result. */
static cogpu_status pop_context(cu_result result, const char *what, cogpu_error *error) {
    cu_context popped;
    driver.context_pop(&popped);
    return explain(result, what, error);
}

#define CALL(gpu, what, error, call)                                                               \
    do {                                                                                           \
        TRY(explain(push_context(gpu), "to make its context current", error));                     \
        return pop_context(call, what, error);                                                     \
    } while (0)

static bool driver_make_current(cogpu_gpu *gpu) {
    return push_context(gpu) == CU_SUCCESS;
}

static void driver_restore_current(cogpu_gpu *gpu) {
    (void)gpu;
    (void)pop_context(CU_SUCCESS, "", NULL);
}

static cu_pointer address(const void *memory) {
    return (cu_pointer)(uintptr_t)memory;
}

cogpu_status cogpu_gpu_current(uint32_t *ordinal, cogpu_error *error) {
    const char *why;
    cu_device device = 0;
    cogpu_gpu_count(&why);
    *ordinal = 0;
    if (why)
        return cogpu_fail(error, COGPU_DEVICE_ERROR, "no GPU can be used: %s", why);
    cu_result result = driver.context_device(&device);
    if (result == CU_INVALID_CONTEXT)
        return COGPU_OK;
    TRY(explain(result, "to report the current device", error));
    *ordinal = (uint32_t)device;
    return COGPU_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Caches of small allocations, one for each GPU: all that open a GPU share its primary context and
 * memory. GPUs beyond the last have none. */
enum { CACHED_GPUS = 8 };
static cogpu_memory_cache caches[CACHED_GPUS];

/* With the GPU's context current, as all calls below. */
static bool synchronize_context(void *user) {
    (void)user;
    return driver.context_finish() == CU_SUCCESS;
}

static void free_cached_block(void *user, uint64_t block) {
    (void)user;
    (void)driver.release(block);
}

static void open_caches(void) {
    for (uint32_t i = 0; i < CACHED_GPUS; i++) {
        caches[i] = (cogpu_memory_cache){.synchronize = synchronize_context,
                                         .free_block = free_cached_block};
        pthread_mutex_init(&caches[i].lock, NULL);
    }
}

static cogpu_memory_cache *cache_of(const struct driver_gpu *gpu) {
    return (uint32_t)gpu->device < CACHED_GPUS ? &caches[gpu->device] : NULL;
}

static uint32_t flush_cache(const struct driver_gpu *gpu) {
    cogpu_memory_cache *cache = cache_of(gpu);
    return cache ? cogpu_memory_cache_flush(cache) : 0;
}

/* Keeps an allocation for reuse. False if it cannot be kept: there is no cache, or this is not the
 * start of an allocation, which cuMemFree reports. A second release has no effect. */
static bool keep_allocation(const struct driver_gpu *gpu, cu_pointer memory) {
    cogpu_memory_cache *cache = cache_of(gpu);
    cu_pointer start = 0;
    size_t bytes = 0;
    if (!cache || driver.address_range(&start, &bytes, memory) != CU_SUCCESS || start != memory)
        return false;
    if (!cogpu_memory_cache_holds(cache, memory))
        cogpu_memory_cache_keep(cache, memory, bytes);
    return true;
}

/* Whether the caller has released this memory already. */
static bool is_cached(int device, cu_pointer memory) {
    return device < CACHED_GPUS && cogpu_memory_cache_holds(&caches[device], memory);
}

static cogpu_status driver_memory(cogpu_gpu *gpu, uint64_t *free, uint64_t *total,
                                  cogpu_error *error) {
    size_t free_bytes = 0, total_bytes = 0;
    TRY(explain(push_context(gpu), "to make its context current", error));
    (void)flush_cache(gpu_of(gpu));
    cu_result result = driver.memory_info(&free_bytes, &total_bytes);
    *free = free_bytes;
    *total = total_bytes;
    return pop_context(result, "to report its free memory", error);
}

static cogpu_status driver_allocate(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                    cogpu_error *error) {
    struct driver_gpu *self = gpu_of(gpu);
    const uint64_t size = cache_of(self) ? cogpu_memory_cache_size(bytes) : bytes;
    cu_result result = CU_SUCCESS;
    TRY(explain(push_context(gpu), "to make its context current", error));
    cu_pointer pointer = cache_of(self) ? cogpu_memory_cache_take(cache_of(self), size) : 0;
    if (!pointer)
        result = driver.allocate(&pointer, (size_t)size);
    if (result == CU_OUT_OF_MEMORY && (flush_cache(self) > 0 || size > bytes))
        result = driver.allocate(&pointer, (size_t)bytes);
    *memory = (void *)(uintptr_t)pointer;
    return pop_context(result, "to allocate memory", error);
}

static void driver_release(cogpu_gpu *gpu, void *memory) {
    if (!memory || push_context(gpu) != CU_SUCCESS)
        return;
    bool is_kept = keep_allocation(gpu_of(gpu), address(memory));
    (void)pop_context(is_kept ? CU_SUCCESS : driver.release(address(memory)), "to free memory",
                      NULL);
}

static cogpu_status driver_allocate_pinned(cogpu_gpu *gpu, uint64_t bytes, void **memory,
                                           cogpu_error *error) {
    CALL(gpu, "to allocate pinned host memory", error,
         driver.allocate_host(memory, (size_t)bytes, CU_HOST_PORTABLE));
}

static void driver_release_pinned(cogpu_gpu *gpu, void *memory) {
    if (memory && push_context(gpu) == CU_SUCCESS)
        (void)pop_context(driver.release_host(memory), "to free memory", NULL);
}

/* CU_MEMORY_*, or 0 for memory that the driver does not know, such as pageable host memory. */
static unsigned memory_type(const void *memory) {
    unsigned type = 0;
    return driver.pointer_attribute(&type, CU_POINTER_MEMORY_TYPE, address(memory)) == CU_SUCCESS
               ? type
               : 0;
}

static bool is_managed(const void *memory) {
    unsigned is = 0;
    return driver.pointer_attribute(&is, CU_POINTER_IS_MANAGED, address(memory)) == CU_SUCCESS &&
           is != 0;
}

/* Whether the process has loaded the driver. If not it has no device memory, and loading it only to
 * find out would do harm: a process that forks afterwards loses its GPUs. */
static bool is_loaded(void) {
    void *handle = dlopen(library.names[0], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!handle)
        return false;
    dlclose(handle);
    return !cogpu_library_load(&library);
}

/* Managed memory belongs to its GPU, wherever its pages are. No context is needed. To the driver,
 * memory that is kept for reuse is still allocated. */
bool cogpu_gpu_owns_memory(const void *memory, uint32_t *ordinal) {
    int device = -1;
    if (!is_loaded() || (memory_type(memory) != CU_MEMORY_DEVICE && !is_managed(memory)) ||
        driver.pointer_attribute(&device, CU_POINTER_DEVICE, address(memory)) != CU_SUCCESS ||
        device < 0 || is_cached(device, address(memory)))
        return false;
    *ordinal = (uint32_t)device;
    return true;
}

static bool driver_is_pinned(cogpu_gpu *gpu, const void *memory, uint64_t bytes) {
    if (bytes == 0 || push_context(gpu) != CU_SUCCESS)
        return false;
    bool is = memory_type(memory) == CU_MEMORY_HOST &&
              memory_type((const uint8_t *)memory + bytes - 1) == CU_MEMORY_HOST;
    (void)pop_context(CU_SUCCESS, "", NULL);
    return is;
}

/* ---- streams ------------------------------------------------------------------------------- */

static cogpu_status driver_stream_open(cogpu_gpu *gpu, bool is_urgent, cogpu_gpu_stream **stream,
                                       cogpu_error *error) {
    int least = 0, greatest = 0;
    TRY(explain(push_context(gpu), "to make its context current", error));
    driver.stream_priorities(&least, &greatest);
    return pop_context(driver.stream_create((cu_stream *)stream, CU_STREAM_NON_BLOCKING,
                                            is_urgent ? greatest : least),
                       "to make a stream", error);
}

static void driver_stream_close(cogpu_gpu *gpu, cogpu_gpu_stream *stream) {
    if (stream && push_context(gpu) == CU_SUCCESS)
        (void)pop_context(driver.stream_destroy(stream), "to close a stream", NULL);
}

static cogpu_status driver_event_open(cogpu_gpu *gpu, cogpu_gpu_event **event, cogpu_error *error) {
    CALL(gpu, "to make an event", error, driver.event_create((cu_event *)event, CU_EVENT_DEFAULT));
}

static void driver_event_close(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    if (event && push_context(gpu) == CU_SUCCESS)
        (void)pop_context(driver.event_destroy(event), "to close an event", NULL);
}

static cogpu_status driver_copy_up(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                   cogpu_gpu_stream *stream, cogpu_error *error) {
    CALL(gpu, "to copy from the host", error,
         driver.copy_up(address(to), from, (size_t)bytes, stream));
}

static cogpu_status driver_copy_down(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                     cogpu_gpu_stream *stream, cogpu_error *error) {
    CALL(gpu, "to copy to the host", error,
         driver.copy_down(to, address(from), (size_t)bytes, stream));
}

static cogpu_status driver_clear(cogpu_gpu *gpu, void *to, uint64_t bytes, cogpu_gpu_stream *stream,
                                 cogpu_error *error) {
    CALL(gpu, "to clear memory", error, driver.set_bytes(address(to), 0, (size_t)bytes, stream));
}

static cogpu_status driver_record(cogpu_gpu *gpu, cogpu_gpu_event *event, cogpu_gpu_stream *stream,
                                  cogpu_error *error) {
    CALL(gpu, "to record an event", error, driver.event_record(event, stream));
}

static cogpu_status driver_wait_event(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                      cogpu_gpu_event *event, cogpu_error *error) {
    CALL(gpu, "to wait for an event", error, driver.stream_wait(stream, event, 0));
}

static cogpu_status driver_finish_event(cogpu_gpu *gpu, cogpu_gpu_event *event,
                                        cogpu_error *error) {
    CALL(gpu, "before an event was reached", error, driver.event_finish(event));
}

static cogpu_status driver_finish_stream(cogpu_gpu *gpu, cogpu_gpu_stream *stream,
                                         cogpu_error *error) {
    CALL(gpu, "before a stream was done", error, driver.stream_finish(stream));
}

static bool driver_is_over(cogpu_gpu *gpu, cogpu_gpu_event *event) {
    return push_context(gpu) == CU_SUCCESS &&
           pop_context(driver.event_query(event), "", NULL) == COGPU_OK;
}

static float driver_milliseconds(cogpu_gpu *gpu, cogpu_gpu_event *from, cogpu_gpu_event *to) {
    float milliseconds = 0;
    if (push_context(gpu) == CU_SUCCESS)
        (void)pop_context(driver.event_elapsed(&milliseconds, from, to),
                          "to report the time between events", NULL);
    return milliseconds;
}

/* ---- kernels ------------------------------------------------------------------------------- */

/* CUDA_ERROR_NO_BINARY_FOR_GPU, or one of the compiler of PTX: the capabilities explain it. */
static cogpu_status explain_load(const cogpu_gpu *gpu, cu_result result, cogpu_error *error) {
    char list[COGPU_GPU_LIST_BYTES], what[sizeof list + 100];
    cogpu_gpu_list_capabilities(list);
    snprintf(what, sizeof what,
             "to load its kernels (its compute capability is %u.%u; this build has kernels for %s)",
             gpu->capability / 10, gpu->capability % 10, list);
    return explain(result, what, error);
}

/* Whether a path's file name without extension is `name`. */
static bool has_stem(const char *file, const char *name) {
    const char *slash = strrchr(file, '/'), *last = slash ? slash + 1 : file;
    size_t length = strlen(name);
    return strncmp(last, name, length) == 0 && last[length] == '.';
}

/* Finds the kernel's function in the module with the name of its source file, and loads the module
 * for its first kernel. With the lock held and the context current. */
static cu_result load_function(struct driver_gpu *gpu, const cogpu_kernel *kernel,
                               cu_function *function) {
    cu_result result = CU_SUCCESS;
    size_t i = 0;
    *function = NULL;
    while (i < cogpu_module_count && !has_stem(kernel->file, cogpu_modules[i].name))
        i++;
    if (i == cogpu_module_count || i >= MODULES_MAX)
        return CU_SUCCESS;
    if (!gpu->modules[i])
        result = driver.module_load(&gpu->modules[i], cogpu_modules[i].image);
    if (result == CU_SUCCESS)
        result = driver.module_function(function, gpu->modules[i], kernel->name);
    if (result == CU_SUCCESS)
        result = driver.function_set(*function, CU_FUNCTION_MAX_SHARED, (int)kernel->shared_bytes);
    if (result == CU_SUCCESS && kernel->shared_bytes > 16 << 10)
        result = driver.function_set(*function, CU_FUNCTION_PREFER_SHARED, 100);
    return result;
}

static cogpu_status find_function(struct driver_gpu *gpu, const cogpu_kernel *kernel,
                                  cu_function *function, cogpu_error *error) {
    cu_result result = CU_SUCCESS;
    *function = NULL;
    pthread_mutex_lock(&gpu->lock);
    for (uint32_t i = 0; i < gpu->function_count && !*function; i++)
        if (gpu->functions[i].kernel == kernel)
            *function = gpu->functions[i].function;
    if (!*function) {
        result = load_function(gpu, kernel, function);
        if (*function && gpu->function_count < KERNELS_MAX) {
            gpu->functions[gpu->function_count].kernel = kernel;
            gpu->functions[gpu->function_count++].function = *function;
        }
    }
    pthread_mutex_unlock(&gpu->lock);
    TRY(explain_load(&gpu->base, result, error));
    return *function
               ? COGPU_OK
               : cogpu_fail(error, COGPU_UNSUPPORTED,
                            "this build has no kernel %s: it was made without nvcc; with the CUDA "
                            "toolkit installed, `make clean` and `make`",
                            kernel->name);
}

static cogpu_status driver_launch(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                                  const void *args, cogpu_gpu_stream *stream, cogpu_error *error) {
    cu_function function;
    void *arguments[] = {(void *)(uintptr_t)args};
    cu_result result = CU_SUCCESS;
    TRY(explain(push_context(gpu), "to make its context current", error));
    cogpu_status status = find_function(gpu_of(gpu), kernel, &function, error);
    if (status == COGPU_OK)
        result = driver.launch(function, blocks, 1, 1, kernel->threads, 1, 1,
                               (unsigned)kernel->shared_bytes, stream, arguments, NULL);
    cogpu_status launched =
        pop_context(result, "to launch a kernel", status == COGPU_OK ? error : NULL);
    return status == COGPU_OK ? launched : status;
}

/* ---- the device ---------------------------------------------------------------------------- */

static void driver_close(cogpu_gpu *gpu) {
    struct driver_gpu *self = gpu_of(gpu);
    if (self->context && push_context(gpu) == CU_SUCCESS) {
        (void)flush_cache(self);
        for (size_t i = 0; i < MODULES_MAX; i++)
            if (self->modules[i])
                driver.module_unload(self->modules[i]);
        (void)pop_context(CU_SUCCESS, "", NULL);
    }
    if (self->context)
        driver.context_release(self->device);
    pthread_mutex_destroy(&self->lock);
    cogpu_release(self);
}

static const cogpu_gpu_driver driver_calls = {
    .close = driver_close,
    .make_current = driver_make_current,
    .restore_current = driver_restore_current,
    .memory = driver_memory,
    .allocate = driver_allocate,
    .release = driver_release,
    .allocate_pinned = driver_allocate_pinned,
    .release_pinned = driver_release_pinned,
    .is_pinned = driver_is_pinned,
    .stream_open = driver_stream_open,
    .stream_close = driver_stream_close,
    .event_open = driver_event_open,
    .event_close = driver_event_close,
    .copy_up = driver_copy_up,
    .copy_down = driver_copy_down,
    .clear = driver_clear,
    .launch = driver_launch,
    .record = driver_record,
    .wait_event = driver_wait_event,
    .finish_event = driver_finish_event,
    .finish_stream = driver_finish_stream,
    .is_over = driver_is_over,
    .milliseconds = driver_milliseconds,
};

static cogpu_status describe_gpu(uint32_t ordinal, cogpu_gpu *properties, cu_device *device,
                                 cogpu_error *error) {
    enum { ATTRIBUTES = 4 };
    static const int attributes[ATTRIBUTES] = {CU_MULTIPROCESSORS, CU_CAPABILITY_MAJOR,
                                               CU_CAPABILITY_MINOR, CU_SHARED_BYTES_OPTIN};
    int values[ATTRIBUTES] = {0};
    size_t bytes = 0;
    *properties = (cogpu_gpu){.calls = &driver_calls};
    cu_result result = driver.device_get(device, (int)ordinal);
    if (result == CU_SUCCESS)
        result = driver.device_name(properties->name, sizeof properties->name, *device);
    for (uint32_t i = 0; i < ATTRIBUTES && result == CU_SUCCESS; i++)
        result = driver.device_attribute(&values[i], attributes[i], *device);
    if (result == CU_SUCCESS)
        result = driver.device_bytes(&bytes, *device);
    properties->multiprocessors = (uint32_t)values[0];
    properties->capability = (uint32_t)(10 * values[1] + values[2]);
    properties->shared_bytes = (uint32_t)values[3];
    properties->total_bytes = bytes;
    return explain(result, "to report its properties", error);
}

/* Fails unless there is a GPU of this number. */
static cogpu_status check_ordinal(uint32_t ordinal, cogpu_error *error) {
    const char *why;
    uint32_t count = cogpu_gpu_count(&why);
    if (ordinal < count)
        return COGPU_OK;
    return why ? cogpu_fail(error, COGPU_DEVICE_ERROR, "no GPU can be used: %s", why)
               : cogpu_fail(error, COGPU_DEVICE_ERROR, "there is no GPU %u: the machine has %u",
                            ordinal, count);
}

cogpu_status cogpu_gpu_describe_cuda(uint32_t ordinal, cogpu_gpu *properties, cogpu_error *error) {
    cu_device device;
    TRY(check_ordinal(ordinal, error));
    return describe_gpu(ordinal, properties, &device, error);
}

cogpu_status cogpu_gpu_open_cuda(uint32_t ordinal, cogpu_gpu **gpu, cogpu_error *error) {
    TRY(check_ordinal(ordinal, error));
    struct driver_gpu *self = cogpu_allocate(sizeof *self);
    if (!self)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a GPU");
    *self = (struct driver_gpu){0};
    pthread_mutex_init(&self->lock, NULL);
    *gpu = &self->base;
    cogpu_status status = describe_gpu(ordinal, &self->base, &self->device, error);
    if (status == COGPU_OK)
        status = cogpu_gpu_check(&self->base, error);
    if (status == COGPU_OK)
        status = explain(driver.context_retain(&self->context, self->device), "to make its context",
                         error);
    if (status != COGPU_OK) {
        driver_close(*gpu);
        *gpu = NULL;
    }
    return status;
}
