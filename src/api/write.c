/* Public writing: cogpu_writer_*, cogpu_write. The engine is in src/write. */
#include "write/writer.h"

#include "api/profile.h"
#include "api/sized.h"

static cogpu_status create_writer(const cogpu_sink *sink, const cogpu_profile *given,
                                  cogpu_writer **writer, cogpu_error *error) {
    cogpu_taken_profile taken;
    cogpu_status status = cogpu_profile_take(given, &taken, error);
    if (status == COGPU_OK)
        status = cogpu_memory_check(sink->memory, error);
    if (status == COGPU_OK)
        status = cogpu_writer_create(sink, &taken.profile, writer, error);
    else if (sink->abort)
        sink->abort(sink->user);
    cogpu_profile_close(&taken);
    return status;
}

cogpu_status cogpu_writer_open(const cogpu_sink *given, const cogpu_profile *profile,
                               cogpu_writer **writer, cogpu_error *error) {
    cogpu_sink sink;
    cogpu_error_clear(error);
    if (writer)
        *writer = NULL;
    if (!given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a writer needs a sink");
    cogpu_status status = TAKE_STRUCT(&sink, given, cogpu_sink, error);
    if (status == COGPU_OK && !writer)
        status = cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                            "cogpu_writer_open needs a pointer for the writer");
    if (status == COGPU_OK)
        return create_writer(&sink, profile, writer, error);
    if (sink.abort)
        sink.abort(sink.user);
    return status;
}

cogpu_status cogpu_writer_write_rows(cogpu_writer *writer, const cogpu_raster *given,
                                     const cogpu_raster *given_mask, cogpu_error *error) {
    cogpu_raster rows, mask;
    cogpu_error_clear(error);
    if (!writer || !given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_writer_write_rows needs a writer and rows");
    TRY(TAKE_STRUCT(&rows, given, cogpu_raster, error));
    TRY(TAKE_STRUCT(&mask, given_mask, cogpu_raster, error));
    return cogpu_writer_append_rows(writer, &rows, given_mask ? &mask : NULL, error);
}

cogpu_status cogpu_writer_close(cogpu_writer *writer, cogpu_written *written, cogpu_error *error) {
    cogpu_written done = COGPU_WRITTEN_INIT;
    cogpu_error_clear(error);
    if (!writer)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "cogpu_writer_close needs a writer");
    cogpu_status status = CHECK_STRUCT(written, cogpu_written, error);
    if (status != COGPU_OK) {
        cogpu_writer_abort(writer);
        return status;
    }
    status = cogpu_writer_finish(writer, &done, error);
    if (status == COGPU_OK)
        GIVE_STRUCT(written, &done);
    return status;
}

cogpu_status cogpu_write(const cogpu_sink *sink, const cogpu_profile *profile,
                         const cogpu_raster *raster, const cogpu_raster *mask,
                         cogpu_written *written, cogpu_error *error) {
    cogpu_writer *writer = NULL;
    TRY(cogpu_writer_open(sink, profile, &writer, error));
    cogpu_status status = cogpu_writer_write_rows(writer, raster, mask, error);
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, written, error);
    cogpu_writer_abort(writer);
    return status;
}
