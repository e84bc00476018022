/* A VRT's dataset, bands, masks and overviews. vrt_source.c and vrt_warped.c read the rest. */
#include "grid/vrt_reader.h"

#include "base/text.h"
#include "base/type.h"
#include "image/sidecar.h"

#include <math.h>
#include <string.h>

enum { BLOCK_SIDE_MIN = 32, BLOCK_SIDE_MAX = 16384, BLOCK_SIDE = 128, FACTORS_MAX = 64 };
enum { OVERVIEWS_MAX = 64 };

/* ---- identification ---- */

bool cogpu_vrt_identify(const void *start, size_t bytes) {
    enum { LOOKED_AT = 4096 };
    static const char root[] = "<VRTDataset";
    xml_text text = {start, (const char *)start + (bytes < LOOKED_AT ? bytes : LOOKED_AT)};
    xml_slice before;
    while (text.at < text.end && cogpu_xml_skip_past(&text, "<", &before)) {
        xml_slice name = {text.at, sizeof root - 2};
        if ((size_t)(text.end - text.at) > name.bytes && cogpu_xml_is_same(name, root + 1))
            return !ascii_is_letter(text.at[name.bytes]);
    }
    return false;
}

/* ---- what a VRT may have ---- */

static cogpu_status check_dataset_class(cogpu_vrt_reader *in, const xml_element *root,
                                        bool *is_warped) {
    xml_slice class = cogpu_pam_attribute(root->attributes, "subClass");
    *is_warped = cogpu_xml_is_same(class, "VRTWarpedDataset");
    if (!class.bytes || *is_warped || cogpu_xml_is_same(class, "VRTDataset"))
        return COGPU_OK;
    return cogpu_vrt_fail(in, root, COGPU_UNSUPPORTED, "subClass \"%.*s\" is not supported",
                          class.bytes < 48 ? (int)class.bytes : 48, class.at);
}

static cogpu_status check_band_class(cogpu_vrt_reader *in, const xml_element *element,
                                     bool is_warped) {
    xml_slice class = cogpu_pam_attribute(element->attributes, "subClass");
    xml_element function;
    if (!class.bytes || cogpu_xml_is_same(class, "VRTSourcedRasterBand") ||
        (is_warped && cogpu_xml_is_same(class, "VRTWarpedRasterBand")))
        return COGPU_OK;
    int shown = class.bytes < 48 ? (int)class.bytes : 48;
    if (!cogpu_pam_child(element->content, "PixelFunctionType", &function))
        return cogpu_vrt_fail(in, element, COGPU_UNSUPPORTED, "subClass \"%.*s\" is not supported",
                              shown, class.at);
    xml_slice name = cogpu_xml_trim(function.content);
    return cogpu_vrt_fail(in, element, COGPU_UNSUPPORTED,
                          "subClass \"%.*s\" with PixelFunctionType \"%.*s\" is not supported",
                          shown, class.at, name.bytes < 48 ? (int)name.bytes : 48, name.at);
}

/* ---- bands ---- */

static cogpu_status read_band_type(cogpu_vrt_reader *in, const xml_element *element,
                                   cogpu_type *type) {
    xml_slice name = cogpu_pam_attribute(element->attributes, "dataType");
    *type = COGPU_TYPE_U8;
    return name.bytes ? cogpu_vrt_type(in, element, name, type) : COGPU_OK;
}

static uint32_t block_side(xml_slice stated, uint32_t size) {
    double side;
    if (cogpu_pam_number(stated, &side) && side >= BLOCK_SIDE_MIN && side <= BLOCK_SIDE_MAX)
        return (uint32_t)side;
    return size < BLOCK_SIDE ? size : BLOCK_SIDE;
}

/* NBITS, which GDAL keeps among the metadata of the band: among items from `first` on. */
static uint32_t find_bits(const cogpu_growing *items, uint32_t first, cogpu_type type) {
    const cogpu_metadata_item *item = items->entries;
    double bits;
    for (uint32_t i = first; i < items->count; i++) {
        xml_slice value = {item[i].value, strlen(item[i].value)};
        if (is_same_name(item[i].domain, "IMAGE_STRUCTURE") &&
            is_same_name(item[i].name, "NBITS") && cogpu_pam_number(value, &bits) && bits >= 1 &&
            bits < 8 * (double)cogpu_type_bytes(type) && !cogpu_type_is_float(type))
            return (uint32_t)bits;
    }
    return 0;
}

static cogpu_status read_overview(cogpu_vrt_reader *in, cogpu_growing *overviews,
                                  const xml_element *element) {
    cogpu_vrt_overview overview, *place;
    TRY(cogpu_vrt_refuse_open_options(in, element));
    TRY(cogpu_vrt_read_file(in, element, "SourceFilename", &overview.file));
    TRY(cogpu_vrt_read_source_band(in, element, &overview.band, &overview.of_mask));
    TRY(cogpu_growing_add(overviews, sizeof overview, OVERVIEWS_MAX, in->arena, &place, in->error));
    if (!place)
        return cogpu_vrt_fail(in, element, COGPU_LIMIT_EXCEEDED, "the band has more than %d",
                              OVERVIEWS_MAX);
    *place = overview;
    return COGPU_OK;
}

/* A band while it is read. */
struct band_state {
    uint32_t number;
    bool is_mask, is_warped;
    cogpu_vrt_band *band;
    cogpu_pam_elements *elements; /* metadata of masks is not kept */
    cogpu_vrt_source_list *list;
    cogpu_growing overviews;
    const char *values[PAM_ROLES];
};

static cogpu_status read_mask(cogpu_vrt_reader *in, const xml_element *element,
                              const cogpu_vrt_mask **mask);

static cogpu_status read_band_nodata(cogpu_vrt_reader *in, const xml_element *child,
                                     cogpu_vrt_band *band) {
    const char *text;
    double value;
    TRY(cogpu_vrt_number(in, child, child->content, "the value", &value));
    TRY(cogpu_vrt_text(in, child->content, &text));
    band->nodata = text;
    return COGPU_OK;
}

static cogpu_status read_band_child(cogpu_vrt_reader *in, struct band_state *state,
                                    const xml_element *child) {
    cogpu_vrt_band *band = state->band;
    bool is_known;
    if (!state->is_warped) {
        TRY(cogpu_vrt_read_source(in, state->list, child, &is_known));
        if (is_known)
            return COGPU_OK;
    }
    TRY(cogpu_pam_role_element(state->elements, child, state->number, state->values, &is_known));
    if (is_known)
        return COGPU_OK;
    if (cogpu_xml_is_same(child->name, "NoDataValue"))
        return read_band_nodata(in, child, band);
    if (cogpu_xml_is_same(child->name, "HideNoDataValue"))
        band->hides_nodata = cogpu_vrt_bool(child->content, false);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return cogpu_pam_metadata(state->elements, child, state->number);
    if (cogpu_xml_is_same(child->name, "CategoryNames"))
        return cogpu_pam_categories(state->elements, child, state->number);
    if (cogpu_xml_is_same(child->name, "ColorTable"))
        return cogpu_pam_palette(state->elements, child, &band->palette, &band->palette_entries);
    if (cogpu_xml_is_same(child->name, "Overview"))
        return read_overview(in, &state->overviews, child);
    if (cogpu_xml_is_same(child->name, "MaskBand") && !state->is_mask)
        return read_mask(in, child, &band->mask);
    return COGPU_OK;
}

static void set_band_values(cogpu_vrt_band *band, const char *const values[PAM_ROLES]) {
    const char *numbers[] = {values[PAM_SCALE], values[PAM_OFFSET]};
    double *results[] = {&band->scale, &band->offset};
    band->description = values[PAM_DESCRIPTION];
    band->unit = values[PAM_UNIT];
    band->colour = values[PAM_COLOUR];
    band->has_scale = numbers[0] || numbers[1];
    band->scale = 1;
    for (int i = 0; i < 2; i++)
        if (numbers[i])
            cogpu_pam_number((xml_slice){numbers[i], strlen(numbers[i])}, results[i]);
}

static cogpu_status read_band(cogpu_vrt_reader *in, const xml_element *element,
                              struct band_state *state) {
    cogpu_vrt_band *band = state->band;
    xml_reader children = cogpu_pam_content(element);
    xml_element child;
    uint32_t first_item = state->elements->items.count;
    TRY(check_band_class(in, element, state->is_warped));
    TRY(read_band_type(in, element, &band->type));
    cogpu_vrt_begin_band(state->list, state->number);
    while (cogpu_xml_next(&children, &child))
        TRY(read_band_child(in, state, &child));
    set_band_values(band, state->values);
    band->bits = find_bits(&state->elements->items, first_item, band->type);
    band->block_width =
        block_side(cogpu_pam_attribute(element->attributes, "blockXSize"), in->vrt->width);
    band->block_height =
        block_side(cogpu_pam_attribute(element->attributes, "blockYSize"), in->vrt->height);
    band->overviews = state->overviews.entries;
    band->overview_count = state->overviews.count;
    return COGPU_OK;
}

static cogpu_status read_mask(cogpu_vrt_reader *in, const xml_element *element,
                              const cogpu_vrt_mask **mask) {
    xml_element band;
    cogpu_vrt_mask *made = NULL;
    cogpu_vrt_source_list list = {0};
    cogpu_pam_elements elements = {.arena = in->arena, .error = in->error};
    if (*mask)
        return cogpu_vrt_fail(in, element, COGPU_CORRUPT, "there is another one");
    if (!cogpu_pam_child(element->content, "VRTRasterBand", &band))
        return cogpu_vrt_fail(in, element, COGPU_CORRUPT, "it has no VRTRasterBand");
    TRY(cogpu_arena_allocate(in->arena, 1, sizeof *made, &made, in->error));
    struct band_state state = {
        .number = 1, .is_mask = true, .band = &made->band, .elements = &elements, .list = &list};
    TRY(read_band(in, &band, &state));
    TRY(cogpu_vrt_finish_sources(in, &list, &made->sources));
    *mask = made;
    return COGPU_OK;
}

/* ---- datasets ---- */

static cogpu_status read_srs(cogpu_vrt_reader *in, const xml_element *element) {
    cogpu_vrt *vrt = in->vrt;
    xml_slice axes = cogpu_pam_attribute(element->attributes, "dataAxisToSRSAxisMapping");
    xml_slice epoch = cogpu_pam_attribute(element->attributes, "coordinateEpoch");
    TRY(cogpu_vrt_text(in, element->content, &vrt->srs));
    if (!vrt->srs[0])
        vrt->srs = NULL;
    if (axes.bytes)
        TRY(cogpu_vrt_text(in, axes, &vrt->axis_mapping));
    return epoch.bytes ? cogpu_vrt_number(in, element, epoch, "coordinateEpoch", &vrt->epoch)
                       : COGPU_OK;
}

static cogpu_status read_transform(cogpu_vrt_reader *in, const xml_element *element) {
    cogpu_vrt *vrt = in->vrt;
    vrt->has_transform = cogpu_pam_six_numbers(element->content, vrt->transform) &&
                         cogpu_transform_is_valid(vrt->transform);
    return COGPU_OK;
}

static cogpu_status read_overview_list(cogpu_vrt_reader *in, const xml_element *element) {
    cogpu_growing factors = {0};
    xml_slice left = cogpu_xml_trim(element->content);
    TRY(cogpu_vrt_resampling(in, element, cogpu_pam_attribute(element->attributes, "resampling"),
                             &in->vrt->overview_resampling));
    while (left.bytes) {
        uint32_t factor, *place;
        size_t bytes = 0;
        while (bytes < left.bytes && !cogpu_xml_is_blank(left.at[bytes]) && left.at[bytes] != ',')
            bytes++;
        if (bytes) {
            xml_slice text = {left.at, bytes};
            TRY(cogpu_vrt_whole(in, element, text, "factor", 2, INT32_MAX, &factor));
            TRY(cogpu_growing_add(&factors, sizeof factor, FACTORS_MAX, in->arena, &place,
                                  in->error));
            if (!place)
                return cogpu_vrt_fail(in, element, COGPU_LIMIT_EXCEEDED,
                                      "it has more than %d factors", FACTORS_MAX);
            *place = factor;
        }
        size_t used = bytes + (bytes < left.bytes);
        left = (xml_slice){left.at + used, left.bytes - used};
    }
    in->vrt->overview_factors = factors.entries;
    in->vrt->overview_factor_count = factors.count;
    return COGPU_OK;
}

static cogpu_status read_dataset_child(cogpu_vrt_reader *in, const xml_element *child) {
    if (cogpu_xml_is_same(child->name, "SRS"))
        return read_srs(in, child);
    if (cogpu_xml_is_same(child->name, "GeoTransform"))
        return read_transform(in, child);
    if (cogpu_xml_is_same(child->name, "GCPList"))
        return cogpu_pam_gcps(&in->elements, child, &in->vrt->gcp_srs);
    if (cogpu_xml_is_same(child->name, "Metadata"))
        return cogpu_pam_metadata(&in->elements, child, 0);
    if (cogpu_xml_is_same(child->name, "MaskBand"))
        return read_mask(in, child, &in->vrt->mask);
    if (cogpu_xml_is_same(child->name, "OverviewList"))
        return read_overview_list(in, child);
    return COGPU_OK;
}

static cogpu_status read_bands(cogpu_vrt_reader *in, const xml_element *root, bool is_warped) {
    const uint64_t most = in->document->limits->bands;
    const uint32_t limit = most < UINT16_MAX ? (uint32_t)most : UINT16_MAX;
    xml_reader children = cogpu_pam_content(root);
    xml_element child;
    cogpu_growing bands = {0};
    cogpu_vrt_source_list list = {0};
    while (cogpu_xml_next(&children, &child)) {
        cogpu_vrt_band *band;
        if (!cogpu_xml_is_same(child.name, "VRTRasterBand"))
            continue;
        TRY(cogpu_growing_add(&bands, sizeof *band, limit, in->arena, &band, in->error));
        if (!band)
            return cogpu_vrt_fail(in, &child, COGPU_LIMIT_EXCEEDED,
                                  "the VRT has more than %u bands (limit: bands)", limit);
        struct band_state state = {.number = bands.count,
                                   .is_warped = is_warped,
                                   .band = band,
                                   .elements = &in->elements,
                                   .list = &list};
        TRY(read_band(in, &child, &state));
        if (band->mask && in->vrt->mask)
            return cogpu_vrt_fail(in, &child, COGPU_CORRUPT,
                                  "it has a MaskBand, and the dataset has one too");
    }
    in->vrt->bands = bands.entries;
    in->vrt->band_count = bands.count;
    return cogpu_vrt_finish_sources(in, &list, &in->vrt->sources);
}

static cogpu_status check_bands(cogpu_vrt_reader *in, const xml_element *root) {
    xml_element group;
    if (in->vrt->band_count)
        return COGPU_OK;
    if (cogpu_pam_child(root->content, "Group", &group))
        return cogpu_vrt_fail(in, &group, COGPU_UNSUPPORTED,
                              "multidimensional VRTs are not supported");
    return cogpu_vrt_fail(in, root, COGPU_CORRUPT, "it has no VRTRasterBand");
}

static cogpu_status read_warp_options(cogpu_vrt_reader *in, const xml_element *root) {
    xml_element options;
    if (!cogpu_pam_child(root->content, "GDALWarpOptions", &options))
        return cogpu_vrt_fail(in, root, COGPU_CORRUPT,
                              "it is a VRTWarpedDataset without GDALWarpOptions");
    return cogpu_vrt_read_warp(in, &options, root);
}

static cogpu_status finish_metadata(cogpu_vrt_reader *in) {
    cogpu_vrt *vrt = in->vrt;
    double rpc[COGPU_RPC_NUMBERS], *copy = NULL;
    vrt->metadata = (cogpu_metadata){.items = in->elements.items.entries,
                                     .item_count = in->elements.items.count};
    vrt->gcps = in->elements.gcps.entries;
    vrt->gcp_count = in->elements.gcps.count;
    if (!cogpu_rpc_items_parse(&vrt->metadata, rpc))
        return COGPU_OK;
    TRY(cogpu_arena_allocate(in->arena, COGPU_RPC_NUMBERS, sizeof *copy, &copy, in->error));
    memcpy(copy, rpc, sizeof rpc);
    vrt->rpc = copy;
    return COGPU_OK;
}

static cogpu_status read_dataset(cogpu_vrt_reader *in, const xml_element *root) {
    cogpu_vrt *vrt = in->vrt;
    uint64_t sources_before = in->document->sources;
    xml_reader children = cogpu_pam_content(root);
    xml_element child;
    bool is_warped;
    TRY(check_dataset_class(in, root, &is_warped));
    TRY(cogpu_vrt_whole(in, root, cogpu_pam_attribute(root->attributes, "rasterXSize"),
                        "rasterXSize", 1, INT32_MAX, &vrt->width));
    TRY(cogpu_vrt_whole(in, root, cogpu_pam_attribute(root->attributes, "rasterYSize"),
                        "rasterYSize", 1, INT32_MAX, &vrt->height));
    vrt->overview_resampling = COGPU_RESAMPLE_NEAREST;
    while (cogpu_xml_next(&children, &child))
        TRY(read_dataset_child(in, &child));
    TRY(read_bands(in, root, is_warped));
    TRY(check_bands(in, root));
    if (is_warped)
        TRY(read_warp_options(in, root));
    vrt->total_sources = in->document->sources - sources_before;
    return finish_metadata(in);
}

/* ---- documents ---- */

static cogpu_status read_vrt(cogpu_vrt_document *document, uint32_t depth, const xml_element *root,
                             const cogpu_vrt **vrt) {
    cogpu_vrt *made = NULL;
    TRY(cogpu_arena_allocate(document->arena, 1, sizeof *made, &made, document->error));
    cogpu_vrt_reader in = {.document = document,
                           .arena = document->arena,
                           .error = document->error,
                           .vrt = made,
                           .elements = {.arena = document->arena, .error = document->error},
                           .depth = depth};
    TRY(read_dataset(&in, root));
    *vrt = made;
    return COGPU_OK;
}

cogpu_status cogpu_vrt_read_nested(cogpu_vrt_reader *outer, const xml_element *element,
                                   const cogpu_vrt **vrt) {
    if (outer->depth + 1 >= COGPU_VRT_DEPTH_MAX)
        return cogpu_vrt_fail(outer, element, COGPU_LIMIT_EXCEEDED,
                              "VRTs are nested more than %d deep", COGPU_VRT_DEPTH_MAX);
    return read_vrt(outer->document, outer->depth + 1, element, vrt);
}

/* The next root: GDAL reads the first VRTDataset. */
static bool find_root(xml_reader *document, xml_element *root) {
    while (cogpu_xml_next(document, root))
        if (cogpu_xml_is_same(root->name, "VRTDataset"))
            return true;
    return false;
}

cogpu_status cogpu_vrt_parse(const char *xml, size_t bytes, const cogpu_limits *limits,
                             cogpu_arena *arena, const cogpu_vrt **vrt, cogpu_error *error) {
    xml_reader text = {.text = {xml, xml + bytes}};
    cogpu_vrt_document document = {
        .start = xml, .counted = xml, .line = 1, .limits = limits, .arena = arena, .error = error};
    const char *fault;
    xml_element root;
    *vrt = NULL;
    if (bytes > limits->vrt_bytes)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "the VRT has %llu bytes, more than %llu (limit: vrt_bytes)",
                          (unsigned long long)bytes, (unsigned long long)limits->vrt_bytes);
    if (!cogpu_xml_is_whole(text.text, &fault))
        return cogpu_fail(error, COGPU_CORRUPT, "the VRT is malformed: %s", fault);
    if (!find_root(&text, &root))
        return cogpu_fail(error, COGPU_CORRUPT, "the VRT has no VRTDataset");
    return read_vrt(&document, 0, &root, vrt);
}
