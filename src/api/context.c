/* What calls share: threads, the cache of blocks, seats with their working memory, the registry of
 * coordinate systems. */
#include "api/room.h"

#include <string.h>

#define DEVICE_BYTES_DEFAULT UINT64_C(512000000)

static cogpu_status copy_text(cogpu_arena *arena, const char **text, cogpu_error *error) {
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
        TRY(copy_text(&context->arena, texts[i], error));
    return COGPU_OK;
}

cogpu_status cogpu_context_open(const cogpu_context_options *options, cogpu_context **out,
                                cogpu_error *error) {
    if (!out)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_context_open needs a place for the context");
    *out = NULL;
    cogpu_context *context = cogpu_allocate(sizeof *context);
    if (!context)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a context");
    *context =
        (cogpu_context){.device_bytes = options && options->device_bytes ? options->device_bytes
                                                                         : DEVICE_BYTES_DEFAULT,
                        .jpeg_engines = options && options->jpeg_engines};
    pthread_mutex_init(&context->lock, NULL);
    cogpu_arena_open(&context->arena, 64 << 10);
    uint32_t threads = options && options->threads ? options->threads : cogpu_processors();
    cogpu_status status = cogpu_pool_open(threads, &context->pool, error);
    if (status == COGPU_OK && options && options->cache_bytes)
        status = cogpu_cache_open(options->cache_bytes, &context->cache, error);
    if (status == COGPU_OK && options && options->network)
        status = copy_network(context, options->network, error);
    if (status != COGPU_OK) {
        cogpu_context_close(context);
        return status;
    }
    *out = context;
    return COGPU_OK;
}

void cogpu_context_close(cogpu_context *context) {
    if (!context)
        return;
    cogpu_context_close_devices(context);
    cogpu_pool_close(context->pool);
    cogpu_cache_close(context->cache);
    cogpu_registry_close(context->registry);
    cogpu_http_close(context->http);
    cogpu_arena_close(&context->arena);
    while (context->seats) {
        cogpu_seat *seat = context->seats;
        context->seats = seat->next;
        cogpu_context_give_back(NULL, seat);
    }
    pthread_mutex_destroy(&context->lock);
    cogpu_release(context);
}

cogpu_seat *cogpu_context_seat(cogpu_context *context) {
    cogpu_seat *seat = NULL;
    if (context) {
        pthread_mutex_lock(&context->lock);
        seat = context->seats;
        if (seat)
            context->seats = seat->next;
        pthread_mutex_unlock(&context->lock);
    }
    if (!seat && (seat = cogpu_allocate(sizeof *seat)))
        *seat = (cogpu_seat){0};
    return seat;
}

void cogpu_context_give_back(cogpu_context *context, cogpu_seat *seat) {
    if (context) {
        pthread_mutex_lock(&context->lock);
        seat->next = context->seats;
        context->seats = seat;
        pthread_mutex_unlock(&context->lock);
    } else {
        cogpu_seat_close(seat);
        cogpu_release(seat);
    }
}

/* Puts `registry` in the place of the context's, which it hands on. */
static cogpu_registry *swap_registry(cogpu_context *context, cogpu_registry *registry) {
    if (!context)
        return registry;
    pthread_mutex_lock(&context->lock);
    cogpu_registry *last = context->registry;
    context->registry = registry;
    pthread_mutex_unlock(&context->lock);
    return last;
}

cogpu_registry *cogpu_context_registry(cogpu_context *context) {
    return swap_registry(context, NULL);
}

void cogpu_context_keep_registry(cogpu_context *context, cogpu_registry *registry) {
    cogpu_registry_close(swap_registry(context, registry));
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
