/* Texts, numbers and names of a VRT, and messages about them. */
#include "grid/vrt_reader.h"

#include "base/resampling.h"
#include "base/text.h"
#include "base/type.h"
#include "image/values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

uint32_t cogpu_vrt_line(cogpu_vrt_document *document, const char *at) {
    if (at < document->counted) {
        document->counted = document->start;
        document->line = 1;
    }
    for (; document->counted < at; document->counted++)
        document->line += *document->counted == '\n';
    return document->line;
}

cogpu_status cogpu_vrt_fail(cogpu_vrt_reader *in, const xml_element *at, cogpu_status status,
                            const char *format, ...) {
    char message[256];
    int name_bytes = at->name.bytes < 64 ? (int)at->name.bytes : 64;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return cogpu_fail(in->error, status, "line %u, <%.*s>: %s",
                      cogpu_vrt_line(in->document, at->name.at), name_bytes, at->name.at, message);
}

/* Text for a message, not too long. */
static int shown_bytes(xml_slice text) {
    return text.bytes < 48 ? (int)text.bytes : 48;
}

/* ---- texts ---- */

cogpu_status cogpu_vrt_text(cogpu_vrt_reader *in, xml_slice text, const char **copy) {
    return cogpu_pam_text(in->arena, cogpu_xml_trim(text), copy, in->error);
}

cogpu_status cogpu_vrt_child_text(cogpu_vrt_reader *in, const xml_element *parent, const char *name,
                                  const char **copy) {
    xml_element child;
    *copy = NULL;
    if (!cogpu_pam_child(parent->content, name, &child))
        return COGPU_OK;
    TRY(cogpu_vrt_text(in, child.content, copy));
    if (!(*copy)[0])
        *copy = NULL;
    return COGPU_OK;
}

/* ---- numbers ---- */

cogpu_status cogpu_vrt_number(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                              const char *what, double *value) {
    char digits[COGPU_NUMBER_CHARS * 2];
    text = cogpu_xml_trim(text);
    size_t bytes = text.bytes < sizeof digits - 1 ? text.bytes : sizeof digits - 1;
    memcpy(digits, text.at, bytes);
    digits[bytes] = '\0';
    if (!cogpu_number_parse(digits, value))
        return cogpu_vrt_fail(in, at, COGPU_CORRUPT, "%s \"%.*s\" is no number", what,
                              shown_bytes(text), text.at);
    return COGPU_OK;
}

cogpu_status cogpu_vrt_child_number(cogpu_vrt_reader *in, const xml_element *parent,
                                    const char *name, double *value, bool *is_there) {
    xml_element child;
    *is_there = cogpu_pam_child(parent->content, name, &child);
    return *is_there ? cogpu_vrt_number(in, &child, child.content, "the value", value) : COGPU_OK;
}

cogpu_status cogpu_vrt_whole(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                             const char *what, uint32_t least, uint32_t most, uint32_t *value) {
    double number;
    TRY(cogpu_vrt_number(in, at, text, what, &number));
    if (!(number >= least && number <= most && number == floor(number)))
        return cogpu_vrt_fail(in, at, COGPU_CORRUPT, "%s %.17g is not a whole number from %u to %u",
                              what, number, least, most);
    *value = (uint32_t)number;
    return COGPU_OK;
}

bool cogpu_vrt_bool(xml_slice text, bool otherwise) {
    static const char *const no[] = {"no", "false", "off", "0"};
    text = cogpu_xml_trim(text);
    if (!text.bytes)
        return otherwise;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (cogpu_xml_is_same(text, no[i]))
            return false;
    return true;
}

/* ---- names ---- */

cogpu_status cogpu_vrt_type(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                            cogpu_type *type) {
    for (unsigned i = COGPU_TYPE_NONE + 1; i < COGPU_TYPE_COUNT; i++)
        if (cogpu_xml_is_same(text, cogpu_type_table[i].gdal_name)) {
            *type = (cogpu_type)i;
            return COGPU_OK;
        }
    return cogpu_vrt_fail(in, at, COGPU_UNSUPPORTED, "sample type \"%.*s\" is not supported",
                          shown_bytes(text), text.at);
}

cogpu_status cogpu_vrt_resampling(cogpu_vrt_reader *in, const xml_element *at, xml_slice text,
                                  cogpu_resampling *method) {
    static const cogpu_resampling methods[] = {COGPU_RESAMPLE_NEAREST, COGPU_RESAMPLE_BILINEAR,
                                               COGPU_RESAMPLE_CUBIC,   COGPU_RESAMPLE_CUBICSPLINE,
                                               COGPU_RESAMPLE_LANCZOS, COGPU_RESAMPLE_AVERAGE,
                                               COGPU_RESAMPLE_RMS,     COGPU_RESAMPLE_MODE};
    *method = COGPU_RESAMPLE_DEFAULT;
    if (!text.bytes)
        return COGPU_OK;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const cogpu_resampling_row *row = cogpu_resampling_find(methods[i]);
        if (cogpu_xml_is_same(text, row->name) ||
            (row->alias && cogpu_xml_is_same(text, row->alias))) {
            *method = methods[i];
            return COGPU_OK;
        }
    }
    return cogpu_vrt_fail(in, at, COGPU_UNSUPPORTED, "resampling \"%.*s\" is not supported",
                          shown_bytes(text), text.at);
}

cogpu_status cogpu_vrt_refuse_open_options(cogpu_vrt_reader *in, const xml_element *parent) {
    xml_element options;
    if (cogpu_pam_child(parent->content, "OpenOptions", &options) && options.has_elements)
        return cogpu_vrt_fail(in, &options, COGPU_UNSUPPORTED,
                              "open options of a source are not supported");
    return COGPU_OK;
}
