/*
 * Sources of a VRT's bands. A VRT repeats a source for each band. Those that differ in nothing but
 * their bands become one source with a list of bands, so that one read serves all of them.
 *
 * Sources are painted in the order of the list. A band's source joins a group that is behind the
 * group of the band's last one, or else begins a new group at the end. So each band keeps its own
 * order:
 *
 *     band 1   a  b  c             groups   a  b  c  x        of bands 1 2 3, 1 3, 1 2, 3
 *     band 2   a     c
 *     band 3   a  b     x
 */
#include "grid/vrt_reader.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

enum { PATH_CAPACITY = 256, TABLE_SIZE = 64, LUT_MAX = 1 << 20 };
static const double RECT_TOLERANCE = 1e-3; /* GDAL's */

struct source_node {
    cogpu_vrt_source_band band;
    struct source_node *next;
};

/* What belongs to a source while the list grows. Groups are numbered from 1; 0: none. */
struct source_group {
    uint64_t hash;
    struct source_node *first, *last;
    uint32_t next_equal;  /* the next group with the same key */
    uint32_t last_equal;  /* of the first group of a key: the last one */
    uint32_t cursor;      /* of the first group of a key: where the search goes on */
    uint32_t cursor_band; /* for which band */
};

/* ---- files ---- */

static cogpu_status reserve_path(cogpu_vrt_document *document, size_t bytes) {
    if (bytes <= document->path_capacity)
        return COGPU_OK;
    size_t capacity = document->path_capacity ? document->path_capacity : PATH_CAPACITY;
    while (capacity < bytes)
        capacity *= 2;
    TRY(cogpu_arena_allocate(document->arena, capacity, 1, &document->path, document->error));
    document->path_capacity = capacity;
    return COGPU_OK;
}

/* Reads the path into scratch memory of the document. */
static cogpu_status scan_file(cogpu_vrt_reader *in, const xml_element *parent, const char *child,
                              cogpu_vrt_file *file) {
    xml_element element;
    *file = (cogpu_vrt_file){.line = cogpu_vrt_line(in->document, parent->name.at)};
    if (cogpu_pam_child(parent->content, "VRTDataset", &element))
        return cogpu_vrt_read_nested(in, &element, &file->nested);
    if (!cogpu_pam_child(parent->content, child, &element))
        return cogpu_vrt_fail(in, parent, COGPU_CORRUPT, "it has no %s", child);
    xml_slice relative = cogpu_pam_attribute(element.attributes, "relativeToVRT");
    TRY(reserve_path(in->document, element.content.bytes + 1));
    size_t bytes = cogpu_xml_join(cogpu_xml_trim(element.content), in->document->path);
    in->document->path[bytes] = '\0';
    if (!bytes || memchr(in->document->path, '\0', bytes))
        return cogpu_vrt_fail(in, &element, COGPU_CORRUPT, "it names no file");
    file->path = in->document->path;
    file->relative = cogpu_vrt_bool(relative, false);
    return COGPU_OK;
}

static cogpu_status keep_path(cogpu_vrt_reader *in, cogpu_vrt_file *file) {
    return file->path
               ? cogpu_arena_text(in->arena, file->path, strlen(file->path), &file->path, in->error)
               : COGPU_OK;
}

cogpu_status cogpu_vrt_read_file(cogpu_vrt_reader *in, const xml_element *parent, const char *child,
                                 cogpu_vrt_file *file) {
    TRY(scan_file(in, parent, child, file));
    return keep_path(in, file);
}

cogpu_status cogpu_vrt_read_source_band(cogpu_vrt_reader *in, const xml_element *parent,
                                        uint32_t *band, bool *of_mask) {
    xml_element element;
    *band = 1;
    *of_mask = false;
    if (!cogpu_pam_child(parent->content, "SourceBand", &element))
        return COGPU_OK;
    xml_slice text = cogpu_xml_trim(element.content);
    if (text.bytes >= 4 && cogpu_xml_is_same((xml_slice){text.at, 4}, "mask")) {
        *of_mask = true;
        if (text.bytes == 4)
            return COGPU_OK;
        bool has_comma = text.at[4] == ',';
        text = (xml_slice){text.at + 4 + has_comma, text.bytes - 4 - has_comma};
    }
    return cogpu_vrt_whole(in, &element, text, "band", 1, UINT16_MAX, band);
}

/* ---- rectangles ---- */

static cogpu_status read_side(cogpu_vrt_reader *in, const xml_element *rect, const char *name,
                              double *value) {
    xml_slice text = cogpu_pam_attribute(rect->attributes, name);
    if (!text.bytes)
        return cogpu_vrt_fail(in, rect, COGPU_CORRUPT, "it has no %s", name);
    TRY(cogpu_vrt_number(in, rect, text, name, value));
    if (!(fabs(*value) <= INT32_MAX))
        return cogpu_vrt_fail(in, rect, COGPU_CORRUPT, "%s %.17g is beyond 2147483647", name,
                              *value);
    if (fabs(*value - round(*value)) < RECT_TOLERANCE)
        *value = round(*value);
    return COGPU_OK;
}

static cogpu_status read_rect(cogpu_vrt_reader *in, const xml_element *element,
                              cogpu_vrt_rect *rect) {
    TRY(read_side(in, element, "xOff", &rect->x));
    TRY(read_side(in, element, "yOff", &rect->y));
    TRY(read_side(in, element, "xSize", &rect->width));
    TRY(read_side(in, element, "ySize", &rect->height));
    if (!(rect->width > 0 && rect->height > 0))
        return cogpu_vrt_fail(in, element, COGPU_CORRUPT, "its size %.17g x %.17g is not positive",
                              rect->width, rect->height);
    return COGPU_OK;
}

static cogpu_status read_rects(cogpu_vrt_reader *in, const xml_element *element,
                               cogpu_vrt_source *source) {
    xml_element from, to;
    bool has_from = cogpu_pam_child(element->content, "SrcRect", &from);
    bool has_to = cogpu_pam_child(element->content, "DstRect", &to);
    if (has_from != has_to)
        return cogpu_vrt_fail(in, element, COGPU_CORRUPT, "it has a %s, but no %s",
                              has_from ? "SrcRect" : "DstRect", has_from ? "DstRect" : "SrcRect");
    source->has_rects = has_from;
    if (!has_from)
        return COGPU_OK;
    TRY(read_rect(in, &from, &source->source));
    return read_rect(in, &to, &source->target);
}

/* ---- rules of a ComplexSource ---- */

static cogpu_status read_lut_number(cogpu_vrt_reader *in, const xml_element *lut, xml_slice *left,
                                    char end, double *value) {
    const char *mark = memchr(left->at, end, left->bytes);
    size_t bytes = mark ? (size_t)(mark - left->at) : left->bytes;
    TRY(cogpu_vrt_number(in, lut, (xml_slice){left->at, bytes}, "the value", value));
    size_t used = bytes + (mark != NULL);
    *left = (xml_slice){left->at + used, left->bytes - used};
    return COGPU_OK;
}

/* "input:output,input:output" */
static cogpu_status read_lut(cogpu_vrt_reader *in, const xml_element *lut,
                             cogpu_sample_rule *rule) {
    xml_slice left = cogpu_xml_trim(lut->content);
    uint32_t count = 1;
    double *numbers = NULL;
    for (size_t i = 0; i < left.bytes; i++)
        count += left.at[i] == ',' && count <= LUT_MAX;
    if (count > LUT_MAX)
        return cogpu_vrt_fail(in, lut, COGPU_LIMIT_EXCEEDED, "it has more than %d entries",
                              LUT_MAX);
    TRY(cogpu_arena_allocate(in->arena, 2 * (uint64_t)count, sizeof *numbers, &numbers, in->error));
    for (uint32_t i = 0; i < count; i++) {
        TRY(read_lut_number(in, lut, &left, ':', &numbers[i]));
        TRY(read_lut_number(in, lut, &left, ',', &numbers[count + i]));
        if (i > 0 && !(numbers[i] >= numbers[i - 1]) &&
            !(i == 1 && isnan(numbers[0]) && !isnan(numbers[1])))
            return cogpu_vrt_fail(in, lut, COGPU_CORRUPT, "input %.17g is below the one before it",
                                  numbers[i]);
    }
    rule->lut = numbers;
    rule->lut_count = count;
    return COGPU_OK;
}

static cogpu_status read_exponent(cogpu_vrt_reader *in, const xml_element *element,
                                  cogpu_sample_rule *rule) {
    bool has_exponent, has_from, has_to, has_low, has_high;
    xml_element clip;
    TRY(cogpu_vrt_child_number(in, element, "Exponent", &rule->exponent, &has_exponent));
    if (!has_exponent)
        return COGPU_OK;
    TRY(cogpu_vrt_child_number(in, element, "SrcMin", &rule->source_from, &has_from));
    TRY(cogpu_vrt_child_number(in, element, "SrcMax", &rule->source_to, &has_to));
    TRY(cogpu_vrt_child_number(in, element, "DstMin", &rule->from, &has_low));
    TRY(cogpu_vrt_child_number(in, element, "DstMax", &rule->to, &has_high));
    if (!has_low || !has_high) /* GDAL ignores it */
        return COGPU_OK;
    if (!has_from || !has_to)
        return cogpu_vrt_fail(in, element, COGPU_UNSUPPORTED,
                              "Exponent without SrcMin and SrcMax is not supported");
    rule->scaling = COGPU_SCALING_EXPONENT;
    rule->is_clipped =
        !cogpu_pam_child(element->content, "Clip", &clip) || cogpu_vrt_bool(clip.content, true);
    return COGPU_OK;
}

static cogpu_status read_scaling(cogpu_vrt_reader *in, const xml_element *element,
                                 cogpu_sample_rule *rule) {
    bool has_offset, has_ratio;
    rule->ratio = 1;
    TRY(cogpu_vrt_child_number(in, element, "ScaleOffset", &rule->offset, &has_offset));
    TRY(cogpu_vrt_child_number(in, element, "ScaleRatio", &rule->ratio, &has_ratio));
    if (!has_offset && !has_ratio)
        return read_exponent(in, element, rule);
    rule->scaling = COGPU_SCALING_LINEAR;
    return COGPU_OK;
}

static cogpu_status read_rule(cogpu_vrt_reader *in, const xml_element *element,
                              cogpu_sample_rule *rule) {
    xml_element child;
    TRY(cogpu_vrt_child_number(in, element, "NODATA", &rule->nodata, &rule->has_nodata));
    if (cogpu_pam_child(element->content, "UseMaskBand", &child))
        rule->uses_mask = cogpu_vrt_bool(child.content, false);
    if (cogpu_pam_child(element->content, "ColorTableComponent", &child))
        TRY(cogpu_vrt_whole(in, &child, child.content, "the component", 0, 4,
                            &rule->palette_component));
    TRY(read_scaling(in, element, rule));
    if (cogpu_pam_child(element->content, "LUT", &child))
        TRY(read_lut(in, &child, rule));
    return COGPU_OK;
}

/* NULL for a rule that does nothing. Most sources of a VRT have the same rule. */
static cogpu_status keep_rule(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                              const cogpu_sample_rule *rule, const cogpu_sample_rule **kept) {
    cogpu_sample_rule *copy = NULL;
    if (!list->rule || memcmp(list->rule, rule, sizeof *rule) != 0) {
        TRY(cogpu_arena_allocate(in->arena, 1, sizeof *copy, &copy, in->error));
        memcpy(copy, rule, sizeof *rule);
        list->rule = copy;
    }
    *kept = list->rule;
    return COGPU_OK;
}

/* ---- groups ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < count; i++) /* FNV-1a */
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_source(const cogpu_vrt_source *source) {
    const uint8_t flags[] = {(uint8_t)source->kind,        source->of_mask,
                             source->file.relative,        (uint8_t)source->resampling,
                             (uint8_t)source->first_level, source->has_one_level};
    uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), flags, sizeof flags);
    hash = hash_bytes(hash, source->file.path, strlen(source->file.path));
    hash = hash_bytes(hash, &source->source, sizeof source->source);
    return hash_bytes(hash, &source->target, sizeof source->target);
}

static bool is_same_rect(const cogpu_vrt_rect *a, const cogpu_vrt_rect *b) {
    return a->x == b->x && a->y == b->y && a->width == b->width && a->height == b->height;
}

static bool is_same_source(const cogpu_vrt_source *a, const cogpu_vrt_source *b) {
    return a->kind == b->kind && a->of_mask == b->of_mask && a->has_rects == b->has_rects &&
           a->resampling == b->resampling && a->first_level == b->first_level &&
           a->has_one_level == b->has_one_level && a->file.path &&
           a->file.relative == b->file.relative && strcmp(a->file.path, b->file.path) == 0 &&
           is_same_rect(&a->source, &b->source) && is_same_rect(&a->target, &b->target);
}

static struct source_group *group_at(const cogpu_vrt_source_list *list, uint32_t number) {
    return (struct source_group *)list->groups.entries + (number - 1);
}

static cogpu_vrt_source *source_at(const cogpu_vrt_source_list *list, uint32_t number) {
    return (cogpu_vrt_source *)list->sources.entries + (number - 1);
}

/* The place of the key in the hash table: the number of its first group, or 0. */
static uint32_t *find_slot(const cogpu_vrt_source_list *list, uint64_t hash,
                           const cogpu_vrt_source *source) {
    uint32_t slot = (uint32_t)(hash & (list->table_size - 1));
    while (list->table[slot] && !(group_at(list, list->table[slot])->hash == hash &&
                                  is_same_source(source_at(list, list->table[slot]), source)))
        slot = (slot + 1) & (list->table_size - 1);
    return &list->table[slot];
}

/* At most half of the table is used. */
static cogpu_status grow_table(cogpu_vrt_reader *in, cogpu_vrt_source_list *list) {
    const uint32_t old_size = list->table_size, *old = list->table;
    if (2 * (uint64_t)(list->groups.count + 1) <= old_size)
        return COGPU_OK;
    uint32_t size = old_size ? 2 * old_size : TABLE_SIZE;
    TRY(cogpu_arena_allocate(in->arena, size, sizeof *list->table, &list->table, in->error));
    list->table_size = size;
    for (uint32_t i = 0; i < old_size; i++) {
        if (!old[i])
            continue;
        uint32_t slot = (uint32_t)(group_at(list, old[i])->hash & (size - 1));
        while (list->table[slot])
            slot = (slot + 1) & (size - 1);
        list->table[slot] = old[i];
    }
    return COGPU_OK;
}

static cogpu_status add_group(cogpu_vrt_reader *in, cogpu_vrt_source_list *list, uint64_t hash,
                              cogpu_vrt_source *source, uint32_t *number) {
    const uint64_t most = in->document->limits->sources;
    const uint32_t limit = most < UINT32_MAX / 4 ? (uint32_t)most : UINT32_MAX / 4;
    struct source_group *group;
    cogpu_vrt_source *place;
    if (++in->document->sources > limit)
        return cogpu_fail(in->error, COGPU_LIMIT_EXCEEDED,
                          "line %u: the VRT has more than %u sources (limit: sources)",
                          source->file.line, limit);
    TRY(keep_path(in, &source->file));
    TRY(cogpu_growing_add(&list->groups, sizeof *group, limit, in->arena, &group, in->error));
    TRY(cogpu_growing_add(&list->sources, sizeof *place, limit, in->arena, &place, in->error));
    *place = *source;
    *number = list->groups.count;
    *group = (struct source_group){.hash = hash, .last_equal = *number};
    return COGPU_OK;
}

/* The group that the source joins: a new one if there is none behind list->least. */
static cogpu_status find_group(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                               cogpu_vrt_source *source, uint32_t *number) {
    if (source->file.nested)
        return add_group(in, list, 0, source, number);
    uint64_t hash = hash_source(source);
    TRY(grow_table(in, list));
    uint32_t *slot = find_slot(list, hash, source);
    if (!*slot) {
        TRY(add_group(in, list, hash, source, number));
        *slot = *number;
        return COGPU_OK;
    }
    struct source_group *first = group_at(list, *slot);
    if (first->cursor_band != list->band)
        first->cursor = *slot;
    first->cursor_band = list->band;
    while (first->cursor && first->cursor < list->least)
        first->cursor = group_at(list, first->cursor)->next_equal;
    *number = first->cursor;
    if (*number)
        return COGPU_OK;
    TRY(add_group(in, list, hash, source, number));
    first = group_at(list, *slot);
    group_at(list, first->last_equal)->next_equal = *number;
    first->last_equal = first->cursor = *number;
    return COGPU_OK;
}

static cogpu_status add_source(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                               cogpu_vrt_source *source, const cogpu_vrt_source_band *band) {
    struct source_node *node;
    uint32_t number;
    TRY(find_group(in, list, source, &number));
    TRY(cogpu_arena_allocate(in->arena, 1, sizeof *node, &node, in->error));
    node->band = *band;
    struct source_group *group = group_at(list, number);
    if (group->last)
        group->last->next = node;
    else
        group->first = node;
    group->last = node;
    source_at(list, number)->band_count++;
    list->least = number + 1;
    return COGPU_OK;
}

/* ---- sources ---- */

void cogpu_vrt_begin_band(cogpu_vrt_source_list *list, uint32_t band) {
    list->band = band;
    list->least = 1;
}

/* GDAL averages a SimpleSource whose element or attribute "Resampling" begins with "Aver". */
static bool is_averaged(const xml_element *element) {
    xml_slice name = cogpu_pam_attribute(element->attributes, "resampling");
    xml_element child;
    if (!name.bytes && cogpu_pam_child(element->content, "Resampling", &child))
        name = cogpu_xml_trim(child.content);
    return name.bytes >= 4 && cogpu_xml_is_same((xml_slice){name.at, 4}, "aver");
}

/* OVERVIEW_LEVEL, which gdal_translate -ovr writes: "NONE", "0", "0 only". */
static cogpu_status read_level(cogpu_vrt_reader *in, const xml_element *option,
                               cogpu_vrt_source *source) {
    static const char only[] = "only";
    enum { LEVEL_MAX = 255 };
    const size_t ending = sizeof only - 1;
    xml_slice text = cogpu_xml_trim(option->content);
    uint32_t level;
    source->has_one_level = cogpu_xml_is_same(text, "NONE");
    if (source->has_one_level)
        return COGPU_OK;
    if (text.bytes > ending &&
        cogpu_xml_is_same((xml_slice){text.at + text.bytes - ending, ending}, only)) {
        source->has_one_level = true;
        text.bytes -= ending;
    }
    TRY(cogpu_vrt_whole(in, option, text, "OVERVIEW_LEVEL", 0, LEVEL_MAX - 1, &level));
    source->first_level = level + 1;
    return COGPU_OK;
}

static cogpu_status read_open_options(cogpu_vrt_reader *in, const xml_element *element,
                                      cogpu_vrt_source *source) {
    xml_element options, option;
    if (!cogpu_pam_child(element->content, "OpenOptions", &options))
        return COGPU_OK;
    xml_reader children = cogpu_pam_content(&options);
    while (cogpu_xml_next(&children, &option)) {
        xml_slice key = cogpu_pam_attribute(option.attributes, "key");
        if (!cogpu_xml_is_same(key, "OVERVIEW_LEVEL"))
            return cogpu_vrt_fail(in, &option, COGPU_UNSUPPORTED,
                                  "open options of a source are not supported, but OVERVIEW_LEVEL");
        TRY(read_level(in, &option, source));
    }
    return COGPU_OK;
}

static cogpu_status read_source(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                                const xml_element *element, cogpu_vrt_source_kind kind) {
    cogpu_vrt_source source = {.kind = kind};
    cogpu_vrt_source_band band = {.target = list->band};
    cogpu_sample_rule rule;
    memset(&rule, 0, sizeof rule); /* padding too: rules are compared as bytes */
    TRY(read_open_options(in, element, &source));
    TRY(cogpu_vrt_read_source_band(in, element, &band.band, &source.of_mask));
    TRY(read_rects(in, element, &source));
    if (kind == COGPU_VRT_SIMPLE && is_averaged(element))
        source.kind = COGPU_VRT_AVERAGED;
    if (is_averaged(element))
        source.resampling = COGPU_RESAMPLE_AVERAGE;
    else
        TRY(cogpu_vrt_resampling(in, element,
                                 cogpu_pam_attribute(element->attributes, "resampling"),
                                 &source.resampling));
    if (kind == COGPU_VRT_COMPLEX) {
        TRY(read_rule(in, element, &rule));
        TRY(keep_rule(in, list, &rule, &band.rule));
    }
    TRY(scan_file(in, element, "SourceFilename", &source.file));
    return add_source(in, list, &source, &band);
}

cogpu_status cogpu_vrt_read_source(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                                   const xml_element *element, bool *is_source) {
    static const char *const kinds[] = {[COGPU_VRT_SIMPLE] = "SimpleSource",
                                        [COGPU_VRT_COMPLEX] = "ComplexSource",
                                        [COGPU_VRT_AVERAGED] = "AveragedSource"};
    static const char *const refused[] = {"KernelFilteredSource", "NoDataFromMaskSource",
                                          "ArraySource"};
    *is_source = true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (cogpu_xml_is_same(element->name, kinds[i]))
            return read_source(in, list, element, (cogpu_vrt_source_kind)i);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (cogpu_xml_is_same(element->name, refused[i]))
            return cogpu_vrt_fail(in, element, COGPU_UNSUPPORTED,
                                  "this kind of source is not supported");
    *is_source = false;
    return COGPU_OK;
}

cogpu_status cogpu_vrt_finish_sources(cogpu_vrt_reader *in, cogpu_vrt_source_list *list,
                                      cogpu_vrt_source_array *sources) {
    for (uint32_t number = 1; number <= list->sources.count; number++) {
        cogpu_vrt_source *source = source_at(list, number);
        cogpu_vrt_source_band *bands = NULL;
        uint32_t i = 0;
        TRY(cogpu_arena_allocate(in->arena, source->band_count, sizeof *bands, &bands, in->error));
        for (const struct source_node *node = group_at(list, number)->first; node;
             node = node->next)
            bands[i++] = node->band;
        source->bands = bands;
    }
    *sources = (cogpu_vrt_source_array){list->sources.entries, list->sources.count};
    return COGPU_OK;
}
