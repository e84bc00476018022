/*
 * GDALWarpOptions of a warped VRT: source, resampling, bands, nodata, and the chain of
 * transformers, from the outside to the inside:
 *
 *     ApproxTransformer            MaxError; may be absent
 *       GenImgProjTransformer      Src...: pixels of the source, Dst...: pixels of the VRT
 *         ReprojectTransformer     between their CRSs; may be absent
 */
#include "grid/vrt_reader.h"

#include "base/text.h"
#include "image/sidecar.h"
#include "image/values.h"

#include <math.h>
#include <string.h>

enum { OPTIONS_MAX = 4096 };

/* ---- names ---- */

static cogpu_status read_method(cogpu_vrt_reader *in, const xml_element *options,
                                cogpu_resampling *method) {
    static const struct {
        const char *name;
        cogpu_resampling method;
    } all[] = {{"NearestNeighbour", COGPU_RESAMPLE_NEAREST},
               {"Bilinear", COGPU_RESAMPLE_BILINEAR},
               {"Cubic", COGPU_RESAMPLE_CUBIC},
               {"CubicSpline", COGPU_RESAMPLE_CUBICSPLINE},
               {"Lanczos", COGPU_RESAMPLE_LANCZOS},
               {"Average", COGPU_RESAMPLE_AVERAGE},
               {"RootMeanSquare", COGPU_RESAMPLE_RMS},
               {"Mode", COGPU_RESAMPLE_MODE},
               {"Maximum", COGPU_RESAMPLE_MAX},
               {"Minimum", COGPU_RESAMPLE_MIN},
               {"Median", COGPU_RESAMPLE_MEDIAN},
               {"Quartile1", COGPU_RESAMPLE_Q1},
               {"Quartile3", COGPU_RESAMPLE_Q3},
               {"Sum", COGPU_RESAMPLE_SUM},
               {"Default", COGPU_RESAMPLE_NEAREST}};
    xml_element element;
    *method = COGPU_RESAMPLE_NEAREST;
    if (!cogpu_pam_child(options->content, "ResampleAlg", &element))
        return COGPU_OK;
    xml_slice name = cogpu_xml_trim(element.content);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (cogpu_xml_is_same(name, all[i].name)) {
            *method = all[i].method;
            return COGPU_OK;
        }
    return cogpu_vrt_fail(in, &element, COGPU_UNSUPPORTED, "resampling \"%.*s\" is not supported",
                          name.bytes < 48 ? (int)name.bytes : 48, name.at);
}

/* Elements `element` of the parent, each with its name in the attribute `attribute`. */
static cogpu_status read_options(cogpu_vrt_reader *in, const xml_element *parent,
                                 const char *attribute, const cogpu_vrt_option **options,
                                 uint32_t *count) {
    xml_reader children = cogpu_pam_content(parent);
    cogpu_growing list = {0};
    xml_element child;
    while (cogpu_xml_next(&children, &child)) {
        cogpu_vrt_option *option;
        if (!cogpu_xml_is_same(child.name, "Option"))
            continue;
        TRY(cogpu_growing_add(&list, sizeof *option, OPTIONS_MAX, in->arena, &option, in->error));
        if (!option)
            return cogpu_vrt_fail(in, &child, COGPU_LIMIT_EXCEEDED, "there are more than %d",
                                  OPTIONS_MAX);
        TRY(cogpu_vrt_text(in, cogpu_pam_attribute(child.attributes, attribute), &option->name));
        TRY(cogpu_vrt_text(in, child.content, &option->value));
    }
    *options = list.entries;
    *count = list.count;
    return COGPU_OK;
}

static const char *find_option(const cogpu_vrt_warp *warp, const char *name) {
    for (uint32_t i = 0; i < warp->option_count; i++)
        if (is_same_name(warp->options[i].name, name))
            return warp->options[i].value;
    return NULL;
}

/* What would change pixels. */
static cogpu_status refuse_options(cogpu_vrt_reader *in, const xml_element *options,
                                   const cogpu_vrt_warp *warp) {
    static const struct {
        const char *name, *harmless;
    } refused[] = {{"MODE_TIES", "FIRST"},
                   {"EXCLUDED_VALUES", ""},
                   {"SRC_ALPHA_MAX", ""},
                   {"DST_ALPHA_MAX", ""},
                   {"XSCALE", ""},
                   {"YSCALE", ""},
                   {"SRC_COORD_PRECISION", "0"},
                   {"NODATA_VALUES_PCT_THRESHOLD", "100"},
                   {"APPLY_VERTICAL_SHIFT", "NO"},
                   {"CUTLINE", ""}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *value = find_option(warp, refused[i].name);
        if (value && !is_same_name(value, refused[i].harmless))
            return cogpu_vrt_fail(in, options, COGPU_UNSUPPORTED,
                                  "the option %s=%.48s is not supported", refused[i].name, value);
    }
    return COGPU_OK;
}

static void set_united_nodata(cogpu_vrt_warp *warp) {
    const char *value = find_option(warp, "UNIFIED_SRC_NODATA");
    warp->unites = COGPU_WARP_NODATA_PARTIAL;
    if (warp->band_count > 1 && value && !is_same_name(value, "PARTIAL"))
        warp->unites = cogpu_vrt_bool((xml_slice){value, strlen(value)}, true)
                           ? COGPU_WARP_NODATA_UNITED
                           : COGPU_WARP_NODATA_OF_BANDS;
}

/* ---- bands ---- */

static cogpu_status read_band_nodata(cogpu_vrt_reader *in, const xml_element *mapping,
                                     const char *real, const char *imaginary, const char **nodata) {
    double value = 0;
    bool is_there;
    xml_element element;
    TRY(cogpu_vrt_child_number(in, mapping, imaginary, &value, &is_there));
    if (value != 0 && cogpu_pam_child(mapping->content, imaginary, &element))
        return cogpu_vrt_fail(in, &element, COGPU_UNSUPPORTED,
                              "nodata with an imaginary part is not supported");
    TRY(cogpu_vrt_child_number(in, mapping, real, &value, &is_there));
    return is_there ? cogpu_vrt_child_text(in, mapping, real, nodata) : COGPU_OK;
}

static cogpu_status read_mapping(cogpu_vrt_reader *in, const xml_element *mapping,
                                 cogpu_vrt_warp_band *band) {
    TRY(cogpu_vrt_whole(in, mapping, cogpu_pam_attribute(mapping->attributes, "src"), "src", 1,
                        UINT16_MAX, &band->source));
    TRY(cogpu_vrt_whole(in, mapping, cogpu_pam_attribute(mapping->attributes, "dst"), "dst", 1,
                        in->vrt->band_count, &band->target));
    TRY(read_band_nodata(in, mapping, "SrcNoDataReal", "SrcNoDataImag", &band->source_nodata));
    return read_band_nodata(in, mapping, "DstNoDataReal", "DstNoDataImag", &band->target_nodata);
}

/* INIT_DEST: one text for all bands, or a list of as many as there are. */
static cogpu_status set_initial(cogpu_vrt_reader *in, const char *text, cogpu_vrt_warp_band *bands,
                                uint32_t count) {
    for (uint32_t i = 0; text && i < count; i++) {
        const char *comma = strchr(text, ',');
        xml_slice one = {text, comma ? (size_t)(comma - text) : strlen(text)};
        TRY(cogpu_vrt_text(in, one, &bands[i].initial));
        text = comma ? comma + 1 : text;
    }
    return COGPU_OK;
}

static cogpu_status read_mappings(cogpu_vrt_reader *in, const xml_element *options,
                                  cogpu_vrt_warp *warp) {
    xml_element list, child;
    cogpu_growing bands = {0};
    if (!cogpu_pam_child(options->content, "BandList", &list))
        return cogpu_vrt_fail(in, options, COGPU_CORRUPT, "it has no BandList");
    xml_reader children = cogpu_pam_content(&list);
    while (cogpu_xml_next(&children, &child)) {
        cogpu_vrt_warp_band *band;
        if (!cogpu_xml_is_same(child.name, "BandMapping"))
            continue;
        TRY(cogpu_growing_add(&bands, sizeof *band, in->vrt->band_count, in->arena, &band,
                              in->error));
        if (!band)
            return cogpu_vrt_fail(in, &child, COGPU_CORRUPT,
                                  "there are more of them than bands (%u)", in->vrt->band_count);
        TRY(read_mapping(in, &child, band));
    }
    if (!bands.count)
        return cogpu_vrt_fail(in, &list, COGPU_CORRUPT, "it has no BandMapping");
    TRY(set_initial(in, find_option(warp, "INIT_DEST"), bands.entries, bands.count));
    warp->bands = bands.entries;
    warp->band_count = bands.count;
    return COGPU_OK;
}

static cogpu_status read_alpha(cogpu_vrt_reader *in, const xml_element *options, const char *name,
                               uint32_t most, uint32_t *band) {
    xml_element element;
    return cogpu_pam_child(options->content, name, &element)
               ? cogpu_vrt_whole(in, &element, element.content, "band", 0, most, band)
               : COGPU_OK;
}

/* ---- transformers ---- */

static cogpu_status read_transform_pair(cogpu_vrt_reader *in, const xml_element *parent,
                                        const char *name, const char *inverse_name, bool *is_there,
                                        double transform[6], double inverse[6]) {
    xml_element element;
    *is_there = cogpu_pam_child(parent->content, name, &element);
    if (!*is_there)
        return COGPU_OK;
    if (!cogpu_pam_six_numbers(element.content, transform))
        return cogpu_vrt_fail(in, &element, COGPU_CORRUPT, "it needs six numbers");
    if (!cogpu_pam_child(parent->content, inverse_name, &element))
        return cogpu_vrt_fail(in, parent, COGPU_CORRUPT, "it has no %s", inverse_name);
    if (!cogpu_pam_six_numbers(element.content, inverse))
        return cogpu_vrt_fail(in, &element, COGPU_CORRUPT, "it needs six numbers");
    return COGPU_OK;
}

static cogpu_status refuse_reversed(cogpu_vrt_reader *in, const xml_element *transformer) {
    xml_element element;
    if (cogpu_pam_child(transformer->content, "Reversed", &element) &&
        cogpu_vrt_bool(element.content, false))
        return cogpu_vrt_fail(in, &element, COGPU_UNSUPPORTED,
                              "reversed transformers are not supported");
    return COGPU_OK;
}

static cogpu_status read_gcps(cogpu_vrt_reader *in, const xml_element *parent,
                              cogpu_vrt_warp *warp) {
    xml_element transformer, child;
    cogpu_pam_elements elements = {.arena = in->arena, .error = in->error};
    const char *srs = NULL;
    if (!cogpu_pam_child(parent->content, "GCPTransformer", &transformer))
        return cogpu_vrt_fail(in, parent, COGPU_CORRUPT, "it has no GCPTransformer");
    TRY(refuse_reversed(in, &transformer));
    if (cogpu_pam_child(transformer.content, "Refine", &child) &&
        cogpu_vrt_bool(child.content, false))
        return cogpu_vrt_fail(in, &child, COGPU_UNSUPPORTED, "refined GCPs are not supported");
    if (cogpu_pam_child(transformer.content, "Order", &child))
        TRY(cogpu_vrt_whole(in, &child, child.content, "the order", 0, 3, &warp->gcp_order));
    if (!cogpu_pam_child(transformer.content, "GCPList", &child))
        return cogpu_vrt_fail(in, &transformer, COGPU_CORRUPT, "it has no GCPList");
    TRY(cogpu_pam_gcps(&elements, &child, &srs));
    if (!elements.gcps.count)
        return cogpu_vrt_fail(in, &child, COGPU_CORRUPT, "it has no GCP");
    warp->gcps = elements.gcps.entries;
    warp->gcp_count = elements.gcps.count;
    return COGPU_OK;
}

static cogpu_status read_rpc_numbers(cogpu_vrt_reader *in, const xml_element *transformer,
                                     cogpu_vrt_warp *warp) {
    xml_element metadata;
    cogpu_pam_elements elements = {.arena = in->arena, .error = in->error};
    double rpc[COGPU_RPC_NUMBERS], *copy = NULL;
    if (!cogpu_pam_child(transformer->content, "Metadata", &metadata))
        return cogpu_vrt_fail(in, transformer, COGPU_CORRUPT, "it has no Metadata");
    TRY(cogpu_pam_metadata(&elements, &metadata, 0));
    cogpu_metadata_item *items = elements.items.entries;
    for (uint32_t i = 0; i < elements.items.count; i++)
        items[i].domain = "RPC";
    if (!cogpu_rpc_items_parse(
            &(cogpu_metadata){.items = items, .item_count = elements.items.count}, rpc))
        return cogpu_vrt_fail(in, &metadata, COGPU_CORRUPT, "a value of the RPCs is missing");
    TRY(cogpu_arena_allocate(in->arena, COGPU_RPC_NUMBERS, sizeof *copy, &copy, in->error));
    memcpy(copy, rpc, sizeof rpc);
    warp->rpc = copy;
    return COGPU_OK;
}

static cogpu_status read_rpc(cogpu_vrt_reader *in, const xml_element *parent,
                             cogpu_vrt_warp *warp) {
    xml_element transformer;
    bool is_there;
    if (!cogpu_pam_child(parent->content, "RPCTransformer", &transformer))
        return cogpu_vrt_fail(in, parent, COGPU_CORRUPT, "it has no RPCTransformer");
    TRY(refuse_reversed(in, &transformer));
    TRY(cogpu_vrt_child_number(in, &transformer, "HeightOffset", &warp->rpc_height, &is_there));
    TRY(cogpu_vrt_child_number(in, &transformer, "HeightScale", &warp->rpc_height_scale,
                               &is_there));
    if (!isfinite(warp->rpc_height) || !isfinite(warp->rpc_height_scale))
        return cogpu_vrt_fail(in, &transformer, COGPU_CORRUPT, "its height is not finite");
    TRY(cogpu_vrt_child_text(in, &transformer, "DEMPath", &warp->rpc_dem));
    return read_rpc_numbers(in, &transformer, warp);
}

/* How pixels of the source lie in its CRS. */
static cogpu_status read_source_side(cogpu_vrt_reader *in, const xml_element *projector,
                                     cogpu_vrt_warp *warp) {
    xml_element element;
    TRY(read_transform_pair(in, projector, "SrcGeoTransform", "SrcInvGeoTransform",
                            &warp->has_source_transform, warp->source_transform,
                            warp->source_inverse));
    if (warp->has_source_transform)
        return COGPU_OK;
    if (cogpu_pam_child(projector->content, "SrcGCPTransformer", &element))
        return read_gcps(in, &element, warp);
    if (cogpu_pam_child(projector->content, "SrcRPCTransformer", &element))
        return read_rpc(in, &element, warp);
    return cogpu_vrt_fail(in, projector, COGPU_UNSUPPORTED,
                          "it has neither SrcGeoTransform nor SrcGCPTransformer nor "
                          "SrcRPCTransformer");
}

static cogpu_status read_target_side(cogpu_vrt_reader *in, const xml_element *projector,
                                     cogpu_vrt_warp *warp) {
    TRY(read_transform_pair(in, projector, "DstGeoTransform", "DstInvGeoTransform",
                            &warp->has_target_transform, warp->target_transform,
                            warp->target_inverse));
    if (!warp->has_target_transform)
        return cogpu_vrt_fail(in, projector, COGPU_UNSUPPORTED, "it has no DstGeoTransform");
    return COGPU_OK;
}

static cogpu_status read_reprojection(cogpu_vrt_reader *in, const xml_element *projector,
                                      cogpu_vrt_warp *warp) {
    xml_element outer, inner, options;
    if (!cogpu_pam_child(projector->content, "ReprojectTransformer", &outer))
        return COGPU_OK;
    if (!cogpu_pam_child(outer.content, "ReprojectionTransformer", &inner))
        return cogpu_vrt_fail(in, &outer, COGPU_CORRUPT, "it has no ReprojectionTransformer");
    TRY(refuse_reversed(in, &inner));
    TRY(cogpu_vrt_child_text(in, &inner, "SourceSRS", &warp->source_srs));
    TRY(cogpu_vrt_child_text(in, &inner, "TargetSRS", &warp->target_srs));
    if (!warp->source_srs || !warp->target_srs)
        return cogpu_vrt_fail(in, &inner, COGPU_CORRUPT, "it has no SourceSRS or no TargetSRS");
    warp->reprojects = true;
    if (cogpu_pam_child(inner.content, "Options", &options))
        TRY(read_options(in, &options, "key", &warp->reprojection, &warp->reprojection_count));
    return COGPU_OK;
}

static cogpu_status refuse_transformers(cogpu_vrt_reader *in, const xml_element *projector) {
    static const char *const ends[] = {"TPSTransformer",        "GeoLocTransformer",
                                       "HomographyTransformer", "PolynomialTransformer",
                                       "Transformer",           "GridTransformer"};
    xml_reader children = cogpu_pam_content(projector);
    xml_element child;
    while (cogpu_xml_next(&children, &child)) {
        if (child.name.bytes < 3)
            continue;
        xml_slice rest = {child.name.at + 3, child.name.bytes - 3};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (cogpu_xml_is_same(rest, ends[i]))
                return cogpu_vrt_fail(in, &child, COGPU_UNSUPPORTED,
                                      "this transformer is not supported");
    }
    return COGPU_OK;
}

static cogpu_status read_error(cogpu_vrt_reader *in, const xml_element *approximation,
                               cogpu_vrt_warp *warp) {
    double errors[2] = {0, 0};
    bool is_there;
    TRY(cogpu_vrt_child_number(in, approximation, "MaxError", &errors[0], &is_there));
    TRY(cogpu_vrt_child_number(in, approximation, "MaxErrorForward", &errors[0], &is_there));
    TRY(cogpu_vrt_child_number(in, approximation, "MaxErrorReverse", &errors[1], &is_there));
    warp->max_error = is_there ? errors[1] : errors[0]; /* target to source is GDAL's reverse */
    if (!(warp->max_error >= 0) || !isfinite(warp->max_error))
        return cogpu_vrt_fail(in, approximation, COGPU_CORRUPT, "its error %.17g is not valid",
                              warp->max_error);
    return COGPU_OK;
}

static cogpu_status read_transformer(cogpu_vrt_reader *in, const xml_element *options,
                                     cogpu_vrt_warp *warp) {
    xml_element outer, approximation, base, projector;
    if (!cogpu_pam_child(options->content, "Transformer", &outer))
        return cogpu_vrt_fail(in, options, COGPU_CORRUPT, "it has no Transformer");
    if (cogpu_pam_child(outer.content, "ApproxTransformer", &approximation)) {
        TRY(read_error(in, &approximation, warp));
        if (!cogpu_pam_child(approximation.content, "BaseTransformer", &base))
            return cogpu_vrt_fail(in, &approximation, COGPU_CORRUPT, "it has no BaseTransformer");
        outer = base;
    }
    if (!cogpu_pam_child(outer.content, "GenImgProjTransformer", &projector))
        return cogpu_vrt_fail(in, &outer, COGPU_UNSUPPORTED,
                              "a transformer other than GenImgProjTransformer is not supported");
    TRY(refuse_transformers(in, &projector));
    TRY(read_source_side(in, &projector, warp));
    TRY(read_target_side(in, &projector, warp));
    return read_reprojection(in, &projector, warp);
}

/* ---- the whole ---- */

static cogpu_status refuse_elements(cogpu_vrt_reader *in, const xml_element *options,
                                    const xml_element *dataset) {
    static const char *const refused[] = {"Cutline", "CutlineBlendDist"};
    xml_element child;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (cogpu_pam_child(options->content, refused[i], &child))
            return cogpu_vrt_fail(in, &child, COGPU_UNSUPPORTED, "cutlines are not supported");
    if (cogpu_pam_child(dataset->content, "VerticalShiftGrids", &child))
        return cogpu_vrt_fail(in, &child, COGPU_UNSUPPORTED, "shifts of heights are not supported");
    return COGPU_OK;
}

static cogpu_status read_working_type(cogpu_vrt_reader *in, const xml_element *options,
                                      cogpu_type *type) {
    xml_element element;
    if (!cogpu_pam_child(options->content, "WorkingDataType", &element) ||
        cogpu_xml_is_same(cogpu_xml_trim(element.content), "Unknown"))
        return COGPU_OK;
    return cogpu_vrt_type(in, &element, cogpu_xml_trim(element.content), type);
}

/* "AUTO", "AUTO-2", "NONE" or a level. */
static cogpu_status read_level(cogpu_vrt_reader *in, const xml_element *dataset, int32_t *level) {
    enum { LEVEL_MAX = 255, AUTO = -1, NONE = -2 };
    xml_element element;
    uint32_t number;
    *level = AUTO;
    if (!cogpu_pam_child(dataset->content, "SrcOvrLevel", &element))
        return COGPU_OK;
    xml_slice text = cogpu_xml_trim(element.content);
    bool is_automatic = text.bytes >= 4 && cogpu_xml_is_same((xml_slice){text.at, 4}, "AUTO");
    if (cogpu_xml_is_same(text, "NONE")) {
        *level = NONE;
    } else if (is_automatic && text.bytes > 5 && text.at[4] == '-') {
        TRY(cogpu_vrt_whole(in, &element, (xml_slice){text.at + 5, text.bytes - 5}, "the level", 1,
                            LEVEL_MAX, &number));
        *level = NONE - (int32_t)number;
    } else if (!is_automatic) {
        TRY(cogpu_vrt_whole(in, &element, text, "the level", 0, LEVEL_MAX, &number));
        *level = (int32_t)number;
    }
    return COGPU_OK;
}

/* Sizes of blocks are children of the dataset here. */
static cogpu_status set_block_size(cogpu_vrt_reader *in, const xml_element *dataset) {
    uint32_t width = in->vrt->width < 512 ? in->vrt->width : 512;
    uint32_t height = in->vrt->height < 128 ? in->vrt->height : 128;
    cogpu_vrt_band *bands = (cogpu_vrt_band *)(uintptr_t)in->vrt->bands;
    xml_element element;
    if (cogpu_pam_child(dataset->content, "BlockXSize", &element))
        TRY(cogpu_vrt_whole(in, &element, element.content, "the size", 1, INT32_MAX, &width));
    if (cogpu_pam_child(dataset->content, "BlockYSize", &element))
        TRY(cogpu_vrt_whole(in, &element, element.content, "the size", 1, INT32_MAX, &height));
    for (uint32_t i = 0; i < in->vrt->band_count; i++) {
        bands[i].block_width = width;
        bands[i].block_height = height;
    }
    return COGPU_OK;
}

static cogpu_status read_source(cogpu_vrt_reader *in, const xml_element *options,
                                cogpu_vrt_warp *warp) {
    TRY(cogpu_vrt_refuse_open_options(in, options));
    TRY(cogpu_vrt_read_file(in, options, "SourceDataset", &warp->file));
    if (++in->document->sources > in->document->limits->sources)
        return cogpu_vrt_fail(in, options, COGPU_LIMIT_EXCEEDED,
                              "the VRT has more than %llu sources (limit: sources)",
                              (unsigned long long)in->document->limits->sources);
    return COGPU_OK;
}

cogpu_status cogpu_vrt_read_warp(cogpu_vrt_reader *in, const xml_element *options,
                                 const xml_element *dataset) {
    cogpu_vrt_warp *warp = NULL;
    TRY(cogpu_arena_allocate(in->arena, 1, sizeof *warp, &warp, in->error));
    TRY(refuse_elements(in, options, dataset));
    TRY(read_source(in, options, warp));
    TRY(read_method(in, options, &warp->resampling));
    TRY(read_working_type(in, options, &warp->working_type));
    TRY(read_options(in, options, "name", &warp->options, &warp->option_count));
    TRY(refuse_options(in, options, warp));
    TRY(read_mappings(in, options, warp));
    set_united_nodata(warp);
    TRY(read_alpha(in, options, "SrcAlphaBand", UINT16_MAX, &warp->source_alpha));
    TRY(read_alpha(in, options, "DstAlphaBand", in->vrt->band_count, &warp->target_alpha));
    TRY(read_level(in, dataset, &warp->overview_level));
    TRY(read_transformer(in, options, warp));
    TRY(set_block_size(in, dataset));
    in->vrt->warp = warp;
    return COGPU_OK;
}
