/* Public functions that open and close a context. See context/context.h. */
#include "context/context.h"

#include "api/sized.h"

cogpu_status cogpu_context_open(const cogpu_context_options *given, cogpu_context **context,
                                cogpu_error *error) {
    cogpu_context_options options;
    cogpu_network network;
    cogpu_error_clear(error);
    if (!context)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_context_open needs a pointer for the context");
    *context = NULL;
    TRY(TAKE_STRUCT(&options, given, cogpu_context_options, error));
    if (!given)
        options.cache_bytes = COGPU_CACHE_DEFAULT;
    if (options.network) {
        TRY(TAKE_STRUCT(&network, options.network, cogpu_network, error));
        options.network = &network;
    }
    return cogpu_context_create(&options, context, error);
}

void cogpu_context_close(cogpu_context *context) {
    cogpu_context_destroy(context);
}
