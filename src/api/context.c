/* Public functions that open and close a context. See context/context.h. */
#include "context/context.h"

cogpu_status cogpu_context_open(const cogpu_context_options *options, cogpu_context **context,
                                cogpu_error *error) {
    if (!context)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_context_open needs a pointer for the context");
    *context = NULL;
    return cogpu_context_create(options, context, error);
}

void cogpu_context_close(cogpu_context *context) {
    cogpu_context_destroy(context);
}
