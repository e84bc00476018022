/* Public cogpu_output: files of other formats, written through the sinks of the writer (io/sink.h).
 */
#include "api/sized.h"
#include "io/http/url.h"
#include "io/sink.h"

struct cogpu_output {
    cogpu_out *out;
};

cogpu_status cogpu_output_open(const cogpu_sink *given, cogpu_output **output, cogpu_error *error) {
    cogpu_sink sink;
    cogpu_error_clear(error);
    if (output)
        *output = NULL;
    if (!given || !output)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_output_open needs a sink and a pointer for the output");
    TRY(TAKE_STRUCT(&sink, given, cogpu_sink, error));
    TRY(cogpu_memory_check(sink.memory, error));
    if (sink.path && cogpu_url_is(sink.path))
        return cogpu_fail(
            error, COGPU_UNSUPPORTED,
            "%s: outputs cannot be written to a URL; write a local file and upload it", sink.path);
    cogpu_output *made = cogpu_allocate(sizeof *made);
    if (!made)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the output");
    cogpu_status status = cogpu_out_open(&sink, NULL, &made->out, error);
    if (status == COGPU_OK)
        *output = made;
    else
        cogpu_release(made);
    return status;
}

cogpu_status cogpu_output_write(cogpu_output *output, uint64_t offset, const void *from,
                                size_t bytes, cogpu_error *error) {
    cogpu_error_clear(error);
    if (!output || (!from && bytes))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_output_write needs an output and bytes");
    return cogpu_out_write(output->out, offset, from, bytes, error);
}

cogpu_status cogpu_output_commit(cogpu_output *output, cogpu_error *error) {
    cogpu_error_clear(error);
    if (!output)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "cogpu_output_commit needs an output");
    cogpu_status status = cogpu_out_commit(output->out, error);
    cogpu_release(output);
    return status;
}

void cogpu_output_abort(cogpu_output *output) {
    if (!output)
        return;
    cogpu_out_abort(output->out);
    cogpu_release(output);
}
