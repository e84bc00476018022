/* See vrt_write.h. */
#include "grid/vrt_write.h"

#include "base/text.h"
#include "base/type.h"
#include "image/values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */

/* Text that grows; after a failure nothing more is added. */
struct writer {
    cogpu_arena *arena;
    cogpu_error *error;
    cogpu_status status;
    char *text;
    size_t bytes, capacity;
};

static char *reserve(struct writer *out, size_t bytes) {
    enum { FIRST_CAPACITY = 4096 };
    size_t capacity = out->capacity ? out->capacity : FIRST_CAPACITY;
    char *larger = NULL;
    if (out->status == COGPU_OK && bytes >= out->capacity - out->bytes) {
        while (capacity - out->bytes <= bytes && capacity <= SIZE_MAX / 2)
            capacity *= 2;
        out->status = cogpu_arena_allocate(out->arena, capacity, 1, &larger, out->error);
        if (out->status == COGPU_OK) {
            if (out->bytes)
                memcpy(larger, out->text, out->bytes);
            out->text = larger;
            out->capacity = capacity;
        }
    }
    return out->status == COGPU_OK ? out->text + out->bytes : NULL;
}

static void add(struct writer *out, const char *text) {
    size_t bytes = strlen(text);
    char *to = reserve(out, bytes);
    if (!to)
        return;
    memcpy(to, text, bytes + 1);
    out->bytes += bytes;
}

/* Short texts: at most 256 bytes. */
__attribute__((format(printf, 2, 3))) static void addf(struct writer *out, const char *format,
                                                       ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add(out, text);
}

static const char *reference_of(char c) {
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
}

static void add_escaped(struct writer *out, const char *text) {
    for (; *text; text++) {
        const char one[2] = {*text, '\0'}, *reference = reference_of(*text);
        add(out, reference ? reference : one);
    }
}

static void add_element(struct writer *out, const char *indent, const char *name,
                        const char *text) {
    if (!text)
        return;
    addf(out, "%s<%s>", indent, name);
    add_escaped(out, text);
    addf(out, "</%s>\n", name);
}

static void add_number(struct writer *out, double value) {
    char digits[COGPU_NUMBER_CHARS];
    cogpu_number_format(value, digits);
    add(out, digits);
}

/* ---- paths ---- */

/* Bytes of the folder of a path, its last '/' included. */
static size_t folder_bytes(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The path below the folder of the VRT; NULL if it is not below. */
static const char *relative_path(const char *vrt, const char *path) {
    size_t folder = folder_bytes(vrt);
    if (!vrt || strstr(path, "://") || (folder == 0 && path[0] == '/'))
        return NULL;
    if (strncmp(path, vrt, folder) != 0)
        return NULL;
    return strncmp(path + folder, "../", 3) == 0 ? NULL : path + folder;
}

/* ---- sources ---- */

static void add_rect(struct writer *out, const char *name, const cogpu_vrt_rect *rect) {
    const char *names[] = {" xOff=\"", "\" yOff=\"", "\" xSize=\"", "\" ySize=\""};
    const double values[] = {rect->x, rect->y, rect->width, rect->height};
    addf(out, "      <%s", name);
    for (int i = 0; i < 4; i++) {
        add(out, names[i]);
        add_number(out, values[i]);
    }
    add(out, "\" />\n");
}

/* `band` 0: the mask. */
static void add_source(struct writer *out, const cogpu_vrt_description *vrt,
                       const cogpu_vrt_write_source *source, const char *kind, uint32_t band) {
    const char *relative = relative_path(vrt->path, source->path);
    addf(out, "    <%s", kind);
    if (source->resampling)
        addf(out, " resampling=\"%s\"", cogpu_resampling_name(source->resampling));
    addf(out, ">\n      <SourceFilename relativeToVRT=\"%d\">", relative != NULL);
    add_escaped(out, relative ? relative : source->path);
    add(out, "</SourceFilename>\n");
    if (band)
        addf(out, "      <SourceBand>%u</SourceBand>\n", band);
    else
        add(out, "      <SourceBand>mask,1</SourceBand>\n");
    addf(out,
         "      <SourceProperties RasterXSize=\"%u\" RasterYSize=\"%u\" DataType=\"%s\" "
         "BlockXSize=\"%u\" BlockYSize=\"%u\" />\n",
         source->width, source->height, band ? cogpu_type_table[source->type].gdal_name : "Byte",
         source->block_width, source->block_height);
    add_rect(out, "SrcRect", &source->source);
    add_rect(out, "DstRect", &source->target);
}

static void add_band_source(struct writer *out, const cogpu_vrt_description *vrt,
                            const cogpu_vrt_write_source *source, uint32_t band) {
    const char *nodata = source->nodata ? source->nodata[band] : NULL;
    const char *kind = nodata || source->uses_mask ? "ComplexSource" : "SimpleSource";
    add_source(out, vrt, source, kind, source->bands[band]);
    add_element(out, "      ", "NODATA", nodata);
    if (!nodata && source->uses_mask)
        add(out, "      <UseMaskBand>true</UseMaskBand>\n");
    addf(out, "    </%s>\n", kind);
}

/* ---- bands and masks ---- */

static void add_band(struct writer *out, const cogpu_vrt_description *vrt, uint32_t index) {
    const cogpu_vrt_write_band *band = &vrt->bands[index];
    addf(out, "  <VRTRasterBand dataType=\"%s\" band=\"%u\">\n",
         cogpu_type_table[band->type].gdal_name, index + 1);
    add_element(out, "    ", "Description", band->description);
    add_element(out, "    ", "NoDataValue", band->nodata);
    if (band->hides_nodata)
        add(out, "    <HideNoDataValue>1</HideNoDataValue>\n");
    add_element(out, "    ", "ColorInterp", band->colour);
    for (uint32_t i = 0; i < vrt->source_count; i++)
        if (vrt->sources[i].bands[index])
            add_band_source(out, vrt, &vrt->sources[i], index);
    add(out, "  </VRTRasterBand>\n");
}

static void add_mask(struct writer *out, const cogpu_vrt_description *vrt) {
    bool has_mask = false;
    for (uint32_t i = 0; i < vrt->source_count; i++)
        has_mask |= vrt->sources[i].has_mask;
    if (!has_mask)
        return;
    add(out, "  <MaskBand>\n  <VRTRasterBand dataType=\"Byte\">\n");
    for (uint32_t i = 0; i < vrt->source_count; i++) {
        if (!vrt->sources[i].has_mask)
            continue;
        add_source(out, vrt, &vrt->sources[i], "SimpleSource", 0);
        add(out, "    </SimpleSource>\n");
    }
    add(out, "  </VRTRasterBand>\n  </MaskBand>\n");
}

/* ---- the whole ---- */

static void add_overviews(struct writer *out, const cogpu_vrt_description *vrt) {
    if (!vrt->overview_factor_count)
        return;
    cogpu_resampling method =
        vrt->overview_resampling ? vrt->overview_resampling : COGPU_RESAMPLE_NEAREST;
    addf(out, "  <OverviewList resampling=\"%s\">", cogpu_resampling_name(method));
    for (uint32_t i = 0; i < vrt->overview_factor_count; i++)
        addf(out, "%s%u", i ? " " : "", vrt->overview_factors[i]);
    add(out, "</OverviewList>\n");
}

static void add_transform(struct writer *out, const cogpu_vrt_description *vrt) {
    if (!vrt->has_transform)
        return;
    add(out, "  <GeoTransform>");
    for (int i = 0; i < 6; i++) {
        add(out, i ? ", " : "");
        add_number(out, vrt->transform[i]);
    }
    add(out, "</GeoTransform>\n");
}

cogpu_status cogpu_vrt_write(const cogpu_vrt_description *vrt, cogpu_arena *arena,
                             const char **text, size_t *bytes, cogpu_error *error) {
    struct writer out = {.arena = arena, .error = error};
    addf(&out, "<VRTDataset rasterXSize=\"%u\" rasterYSize=\"%u\">\n", vrt->width, vrt->height);
    add_element(&out, "  ", "SRS", vrt->srs);
    add_transform(&out, vrt);
    for (uint32_t i = 0; i < vrt->band_count; i++)
        add_band(&out, vrt, i);
    add_mask(&out, vrt);
    add_overviews(&out, vrt);
    add(&out, "</VRTDataset>\n");
    TRY(out.status);
    *text = out.text;
    *bytes = out.bytes;
    return COGPU_OK;
}
