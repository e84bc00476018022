/* Placements, levels and rectangles of VRT sources. Expected pixels are GDAL 3.12's. */
#include "base/limits.h"
#include "grid/vrt.h"
#include "support/test.h"

#include <math.h>

static const cogpu_vrt vrt = {.width = 20, .height = 16};

static cogpu_vrt_source source_of(double x, double width, double to_x, double to_width) {
    return (cogpu_vrt_source){
        .has_rects = true, .source = {x, 0, width, 16}, .target = {to_x, 0, to_width, 16}};
}

static cogpu_vrt_placement place(const cogpu_vrt_source *source) {
    cogpu_vrt_placement placement;
    cogpu_vrt_place(&vrt, source, 10, 16, vrt.width, vrt.height, &placement);
    return placement;
}

static cogpu_rectangle rectangle_of(const cogpu_vrt_source *source, const cogpu_vrt_window *window,
                                    uint32_t *x) {
    const cogpu_vrt_placement placement = place(source);
    const cogpu_vrt_size size = {10, 16};
    cogpu_rectangle rectangle;
    uint32_t y;
    CHECK(cogpu_vrt_rectangle(&placement, source, COGPU_RESAMPLE_DEFAULT, size, size, window,
                              &rectangle, x, &y));
    return rectangle;
}

/* Columns of the source that a row of the VRT shows from column `first` on. */
static void check_columns(double to_x, double to_width, uint32_t first, const char *columns) {
    const cogpu_vrt_source source = source_of(0, 10, to_x, to_width);
    const cogpu_vrt_window whole = {0, 0, 20, 16};
    uint32_t x, count = (uint32_t)strlen(columns);
    cogpu_rectangle rectangle = rectangle_of(&source, &whole, &x);
    CHECK(x == first && rectangle.width == count);
    for (uint32_t i = 0; i < count && i < rectangle.width; i++)
        CHECK(cogpu_rectangle_nearest(rectangle.x, rectangle.step_x, i, rectangle.low_x,
                                      rectangle.high_x) == (uint32_t)(columns[i] - '0'));
}

static void touched_pixels_are_painted(void) {
    check_columns(0, 10, 0, "0123456789");
    check_columns(0.3, 10, 0, "01234567899");
    check_columns(0.7, 10, 0, "00123456789");
    check_columns(-3, 10, 0, "3456789");
    check_columns(15, 10, 15, "01234");
    check_columns(2, 5, 2, "13579");
}

static void without_rects(void) {
    const cogpu_vrt_source source = {.has_rects = false};
    cogpu_vrt_placement placement = place(&source);
    CHECK(placement.x0 == 0 && placement.x1 == 10 && placement.y1 == 16 && placement.step_x == 1);
}

static void outside(void) {
    cogpu_vrt_source source = source_of(0, 10, 20, 10);
    cogpu_vrt_placement placement = place(&source);
    CHECK(placement.x0 >= placement.x1);
    source = source_of(10, 10, 0, 10); /* beyond the source */
    placement = place(&source);
    CHECK(placement.x0 >= placement.x1);
    source = source_of(5, 10, 0, 10); /* half of it */
    placement = place(&source);
    CHECK(placement.x0 == 0 && placement.x1 == 5 && placement.x == 5);
}

static void windows_are_parts(void) {
    const cogpu_vrt_source source = source_of(0, 10, 0.3, 17.7);
    const cogpu_vrt_window part = {4, 2, 5, 3}, beyond = {18, 0, 2, 2};
    const cogpu_vrt_placement placement = place(&source);
    const cogpu_vrt_size size = {10, 16};
    uint32_t x, y;
    cogpu_rectangle rectangle = rectangle_of(&source, &part, &x);
    CHECK(x == 0 && rectangle.to_x == 4 && rectangle.width == 5 && rectangle.to_y == 2);
    cogpu_rectangle_need need = cogpu_rectangle_needs(&rectangle);
    CHECK(need.x0 == 2 && need.x1 == 5 && need.y0 == 2 && need.y1 == 5);
    CHECK(!cogpu_vrt_rectangle(&placement, &source, COGPU_RESAMPLE_DEFAULT, size, size, &beyond,
                               &rectangle, &x, &y));
}

/* GDAL, overviews by 2, 4 and 8: nearest takes one at 1.2 times the ratio, others at 1.0. */
static void levels(void) {
    static const cogpu_vrt_size sizes[] = {{800, 800}, {400, 400}, {200, 200}, {100, 100}};
    static const struct {
        double ratio;
        cogpu_resampling method;
        uint32_t level;
    } cases[] = {{1, COGPU_RESAMPLE_NEAREST, 0},     {1.55, COGPU_RESAMPLE_NEAREST, 0},
                 {1.667, COGPU_RESAMPLE_NEAREST, 1}, {1.667, COGPU_RESAMPLE_BILINEAR, 0},
                 {1.95, COGPU_RESAMPLE_BILINEAR, 1}, {4, COGPU_RESAMPLE_DEFAULT, 2},
                 {100, COGPU_RESAMPLE_CUBIC, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cogpu_vrt_placement placement = {
            .x1 = 9, .y1 = 9, .step_x = cases[i].ratio, .step_y = cases[i].ratio};
        const cogpu_vrt_source source = {.kind = COGPU_VRT_SIMPLE};
        const cogpu_vrt_source averaged = {.kind = COGPU_VRT_AVERAGED};
        CHECK(cogpu_vrt_choose_level(&placement, &source, cases[i].method, sizes, 4) ==
              cases[i].level);
        CHECK(cogpu_vrt_choose_level(&placement, &averaged, cases[i].method, sizes, 4) == 0);
    }
}

TESTS(vrt_window) {
    RUN(touched_pixels_are_painted);
    RUN(without_rects);
    RUN(outside);
    RUN(windows_are_parts);
    RUN(levels);
    return FINISH();
}
