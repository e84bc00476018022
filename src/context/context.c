/* Creates a context, and lends its workers, PROJ database and HTTP connections to calls. */
#include "context/context.h"

#include "base/math.h"

#include <string.h>

#define DEVICE_BYTES_DEFAULT UINT64_C(512000000)

/* GDAL's share of the memory, but bounded: a machine has many processes, and these have many
 * contexts. */
enum { CACHE_MEMORY_SHARE = 20, CACHE_BYTES_MAX = 256 << 20 };

enum { NETWORK_TEXT_BYTES = 64 << 10 };

static cogpu_status copy_option_text(cogpu_arena *arena, const char **text, cogpu_error *error) {
    return *text ? cogpu_arena_text(arena, *text, strlen(*text), text, error) : COGPU_OK;
}

static cogpu_status copy_network(cogpu_context *context, const cogpu_network *network,
                                 cogpu_error *error) {
    cogpu_network *own = &context->network;
    TRY(cogpu_network_check(network, error));
    *own = *network;
    const char **texts[] = {&own->private_hosts, &own->schemes,       &own->ca_file,
                            &own->s3_region,     &own->s3_endpoint,   &own->s3_profile,
                            &own->s3_access_key, &own->s3_secret_key, &own->s3_session_token};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(copy_option_text(&context->arena, texts[i], error));
    return COGPU_OK;
}

static cogpu_status open_cache(cogpu_context *context, uint64_t bytes, cogpu_error *error) {
    context->caches_all_blocks = bytes != COGPU_CACHE_DEFAULT;
    if (!context->caches_all_blocks)
        bytes = min_u64(cogpu_memory_limit() / CACHE_MEMORY_SHARE, CACHE_BYTES_MAX);
    return bytes > 0 ? cogpu_block_cache_open(bytes, &context->cache, error) : COGPU_OK;
}

cogpu_status cogpu_context_create(const cogpu_context_options *options, cogpu_context **out,
                                  cogpu_error *error) {
    cogpu_context *context = cogpu_allocate(sizeof *context);
    if (!context)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a context");
    *context = (cogpu_context){.device_bytes = options->device_bytes ? options->device_bytes
                                                                     : DEVICE_BYTES_DEFAULT,
                               .device_cache_bytes = options->device_cache_bytes,
                               .use_nvjpeg_hardware = options->use_nvjpeg_hardware,
                               .network = COGPU_NETWORK_INIT};
    pthread_mutex_init(&context->lock, NULL);
    cogpu_arena_open(&context->arena, NETWORK_TEXT_BYTES);
    uint32_t threads = options->threads ? options->threads : cogpu_cpu_cores();
    cogpu_status status = cogpu_pool_open(threads, &context->pool, error);
    if (status == COGPU_OK)
        status = open_cache(context, options->cache_bytes, error);
    if (status == COGPU_OK && options->network)
        status = copy_network(context, options->network, error);
    if (status != COGPU_OK) {
        cogpu_context_destroy(context);
        return status;
    }
    *out = context;
    return COGPU_OK;
}

void cogpu_context_destroy(cogpu_context *context) {
    if (!context)
        return;
    cogpu_context_close_devices(context);
    cogpu_pool_close(context->pool);
    cogpu_block_cache_close(context->cache);
    cogpu_crs_database_close(context->crs_database);
    cogpu_http_close(context->http);
    cogpu_operations_close(context->operations);
    cogpu_arena_close(&context->arena);
    while (context->workers) {
        cogpu_worker *worker = context->workers;
        context->workers = worker->next;
        cogpu_context_return_worker(NULL, worker);
    }
    pthread_mutex_destroy(&context->lock);
    cogpu_release(context);
}

cogpu_worker *cogpu_context_take_worker(cogpu_context *context) {
    cogpu_worker *worker = NULL;
    if (context) {
        pthread_mutex_lock(&context->lock);
        worker = context->workers;
        if (worker)
            context->workers = worker->next;
        pthread_mutex_unlock(&context->lock);
    }
    if (!worker && (worker = cogpu_allocate(sizeof *worker)))
        *worker = (cogpu_worker){0};
    return worker;
}

void cogpu_context_return_worker(cogpu_context *context, cogpu_worker *worker) {
    if (context) {
        pthread_mutex_lock(&context->lock);
        worker->next = context->workers;
        context->workers = worker;
        pthread_mutex_unlock(&context->lock);
    } else {
        cogpu_worker_close(worker);
        cogpu_release(worker);
    }
}

/* Stores `database` in the context and returns the one that was there. */
static cogpu_crs_database *swap_crs_database(cogpu_context *context, cogpu_crs_database *database) {
    if (!context)
        return database;
    pthread_mutex_lock(&context->lock);
    cogpu_crs_database *last = context->crs_database;
    context->crs_database = database;
    pthread_mutex_unlock(&context->lock);
    return last;
}

cogpu_crs_database *cogpu_context_take_crs_database(cogpu_context *context) {
    return swap_crs_database(context, NULL);
}

void cogpu_context_return_crs_database(cogpu_context *context, cogpu_crs_database *database) {
    cogpu_crs_database_close(swap_crs_database(context, database));
}

cogpu_status cogpu_context_http(cogpu_context *context, cogpu_http **http, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    *http = NULL;
    if (!context)
        return COGPU_OK;
    pthread_mutex_lock(&context->lock);
    if (!context->http)
        status = cogpu_http_open(&context->network, &context->http, error);
    *http = context->http;
    pthread_mutex_unlock(&context->lock);
    return status;
}

cogpu_status cogpu_context_operations(cogpu_context *context, cogpu_operations **operations,
                                      cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    *operations = NULL;
    if (!context)
        return COGPU_OK;
    pthread_mutex_lock(&context->lock);
    if (!context->operations)
        status = cogpu_operations_open(&context->operations, error);
    *operations = context->operations;
    pthread_mutex_unlock(&context->lock);
    return status;
}
