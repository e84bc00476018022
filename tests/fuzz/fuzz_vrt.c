/*
 * Input: the text of a VRT. A VRT that parses has bands and a size; its sources paint bands that
 * exist, in order, and their placements and rectangles stay inside of VRT and source.
 */
#include "base/limits.h"
#include "base/status.h"
#include "grid/vrt.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition) {
    if (!condition)
        abort();
}

static void check_rectangle(const cogpu_vrt_placement *placement, const cogpu_vrt_source *source,
                            cogpu_vrt_size full, cogpu_vrt_size level,
                            const cogpu_vrt_window *window) {
    cogpu_rectangle rectangle;
    uint32_t x, y;
    if (!cogpu_vrt_rectangle(placement, source, COGPU_RESAMPLE_BILINEAR, full, level, window,
                             &rectangle, &x, &y))
        return;
    need(rectangle.width && x + (uint64_t)rectangle.width <= window->width);
    need(rectangle.height && y + (uint64_t)rectangle.height <= window->height);
    cogpu_rectangle_need needs = cogpu_rectangle_needs(&rectangle);
    need(needs.x0 < needs.x1 && needs.x1 <= level.width);
    need(needs.y0 < needs.y1 && needs.y1 <= level.height);
}

static void check_source(const cogpu_vrt *vrt, const cogpu_vrt_source *source,
                         uint32_t band_count) {
    static const cogpu_vrt_size levels[] = {{1000, 70}, {500, 35}, {3, 1}};
    const uint32_t to_width = vrt->width / 3 + 1, to_height = vrt->height / 2 + 1;
    const cogpu_vrt_window whole = {0, 0, to_width, to_height};
    const cogpu_vrt_window part = {to_width / 2, to_height / 3, to_width - to_width / 2, 1};
    cogpu_vrt_placement placement;
    need(source->band_count > 0 && (source->file.path || source->file.nested));
    for (uint32_t i = 0; i < source->band_count; i++)
        need(source->bands[i].target >= 1 && source->bands[i].target <= band_count &&
             source->bands[i].band >= 1 &&
             (i == 0 || source->bands[i].target > source->bands[i - 1].target));
    cogpu_vrt_place(vrt, source, levels[0].width, levels[0].height, to_width, to_height,
                    &placement);
    need(placement.x1 <= to_width && placement.y1 <= to_height);
    if (placement.x0 >= placement.x1)
        return;
    need(cogpu_vrt_choose_level(&placement, source, COGPU_RESAMPLE_NEAREST, levels, 3) < 3);
    for (int i = 0; i < 3; i++) {
        check_rectangle(&placement, source, levels[0], levels[i], &whole);
        check_rectangle(&placement, source, levels[0], levels[i], &part);
    }
}

static void check_sources(const cogpu_vrt *vrt, const cogpu_vrt_source_array *sources,
                          uint32_t band_count);

static void check_vrt(const cogpu_vrt *vrt) {
    need(vrt->width && vrt->height && vrt->band_count);
    need(vrt->width <= INT32_MAX && vrt->height <= INT32_MAX);
    for (uint32_t i = 0; i < vrt->band_count; i++) {
        need(cogpu_type_bytes(vrt->bands[i].type) > 0);
        if (vrt->bands[i].mask)
            check_sources(vrt, &vrt->bands[i].mask->sources, 1);
    }
    check_sources(vrt, &vrt->sources, vrt->band_count);
    if (vrt->mask)
        check_sources(vrt, &vrt->mask->sources, 1);
    if (vrt->warp)
        need(vrt->warp->band_count >= 1 && vrt->warp->max_error >= 0);
}

static void check_sources(const cogpu_vrt *vrt, const cogpu_vrt_source_array *sources,
                          uint32_t band_count) {
    for (uint32_t i = 0; i < sources->count; i++) {
        check_source(vrt, &sources->entries[i], band_count);
        if (sources->entries[i].file.nested)
            check_vrt(sources->entries[i].file.nested);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const cogpu_limits limits = cogpu_limits_complete(NULL);
    cogpu_arena arena;
    cogpu_error error;
    const cogpu_vrt *vrt;
    char *xml = malloc(size ? size : 1); /* so that a read past the end is seen */
    if (!xml)
        return 0;
    memcpy(xml, data, size);
    cogpu_arena_open(&arena, 64 << 20);
    cogpu_error_clear(&error);
    (void)cogpu_vrt_identify(xml, size);
    if (cogpu_vrt_parse(xml, size, &limits, &arena, &vrt, &error) == COGPU_OK)
        check_vrt(vrt);
    else
        need(error.message[0] != '\0');
    cogpu_arena_close(&arena);
    free(xml);
    return 0;
}
