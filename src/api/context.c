/* What calls share: threads, the cache of blocks, seats with their working memory, the registry of
 * coordinate systems. */
#include "api/room.h"

#define DEVICE_BYTES_DEFAULT UINT64_C(512000000)

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
    uint32_t threads = options && options->threads ? options->threads : cogpu_processors();
    cogpu_status status = cogpu_pool_open(threads, &context->pool, error);
    if (status == COGPU_OK && options && options->cache_bytes)
        status = cogpu_cache_open(options->cache_bytes, &context->cache, error);
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
