/* Pixels and coordinates: values computed by hand. */
#include "cogpu.h"

#include "support/test.h"

#include <math.h>

static cogpu_error error;

static bool is_near(double actual, double expected) {
    return fabs(actual - expected) <= 1e-9 * (1 + fabs(expected));
}

static bool gives_coordinate(const double *transform, double column, double row, double x,
                             double y) {
    double found_x, found_y;
    cogpu_pixel_to_coordinate(transform, column, row, &found_x, &found_y);
    return is_near(found_x, x) && is_near(found_y, y);
}

static bool gives_pixel(const double *transform, double x, double y, double column, double row) {
    double found_column = NAN, found_row = NAN;
    return cogpu_coordinate_to_pixel(transform, x, y, &found_column, &found_row, &error) ==
               COGPU_OK &&
           is_near(found_column, column) && is_near(found_row, row);
}

static const double north_up[] = {400000, 10, 0, 5000000, 0, -10};
/* Columns go north-east, rows south-east. */
static const double rotated[] = {100, 3, 4, 200, 4, -3};
/* No pixel axis is along a coordinate axis, and the pixels are no rectangles. */
static const double sheared[] = {-5, 2, 0.5, 7, -1, 3};

static void test_pixel_to_coordinate(void) {
    CHECK(gives_coordinate(north_up, 0, 0, 400000, 5000000));
    CHECK(gives_coordinate(north_up, 0.5, 0.5, 400005, 4999995));
    CHECK(gives_coordinate(north_up, 64, 48, 400640, 4999520));
    CHECK(gives_coordinate(north_up, -1, -2, 399990, 5000020));
    CHECK(gives_coordinate(rotated, 1, 0, 103, 204));
    CHECK(gives_coordinate(rotated, 0, 1, 104, 197));
    CHECK(gives_coordinate(rotated, 2, 10, 146, 178));
    CHECK(gives_coordinate(sheared, 4, 2, 4, 9));
}

static void test_coordinate_to_pixel(void) {
    CHECK(gives_pixel(north_up, 400005, 4999995, 0.5, 0.5));
    CHECK(gives_pixel(rotated, 146, 178, 2, 10));
    CHECK(gives_pixel(sheared, 4, 9, 4, 2));
    for (double column = -3; column < 100; column += 7.25)
        for (double row = -3; row < 100; row += 7.25) {
            double x, y;
            cogpu_pixel_to_coordinate(rotated, column, row, &x, &y);
            CHECK(gives_pixel(rotated, x, y, column, row));
        }
}

static void test_transforms_without_inverse(void) {
    const double flat[] = {0, 0, 0, 0, 0, -10}, parallel[] = {0, 1, 2, 0, 2, 4};
    const double unknown[] = {0, NAN, 0, 0, 0, -1}, endless[] = {0, INFINITY, 0, 0, 0, -1};
    const double *const all[] = {flat, parallel, unknown, endless};
    for (int i = 0; i < 4; i++) {
        double column = 1, row = 2;
        CHECK(cogpu_coordinate_to_pixel(all[i], 5, 5, &column, &row, &error) ==
              COGPU_INVALID_ARGUMENT);
        CHECK(strstr(error.message, "no inverse") && column == 1 && row == 2);
    }
}

/* Of an image of 64 x 48 pixels. */
static cogpu_status find_window(const double *transform, double left, double bottom, double right,
                                double top, cogpu_window *window) {
    const double bbox[] = {left, bottom, right, top};
    *window = (cogpu_window){.struct_size = sizeof(cogpu_window), 9, 9, 9, 9};
    return cogpu_bbox_to_window(transform, 64, 48, bbox, window, &error);
}

static bool is_window(double left, double bottom, double right, double top, uint32_t x, uint32_t y,
                      uint32_t width, uint32_t height) {
    cogpu_window window;
    return find_window(north_up, left, bottom, right, top, &window) == COGPU_OK && window.x == x &&
           window.y == y && window.width == width && window.height == height;
}

static void test_boxes_inside(void) {
    CHECK(is_window(400000, 4999520, 400640, 5000000, 0, 0, 64, 48)); /* the whole image */
    CHECK(is_window(400010, 4999960, 400030, 4999990, 1, 1, 2, 3));   /* along pixel edges */
    CHECK(is_window(400011, 4999961, 400029, 4999989, 1, 1, 2, 3));   /* within them */
    CHECK(is_window(400009, 4999959, 400031, 4999991, 0, 0, 4, 5));   /* and beyond */
    CHECK(is_window(400012, 4999962, 400013, 4999963, 1, 3, 1, 1));   /* of a part of a pixel */
    CHECK(is_window(400030, 4999960, 400010, 4999990, 1, 1, 2, 3));   /* right before left */
}

/* A millionth of a pixel is 1e-5 here. */
static void test_boxes_almost_along_edges(void) {
    CHECK(is_window(400010 - 9e-6, 4999960 - 9e-6, 400030 + 9e-6, 4999990 + 9e-6, 1, 1, 2, 3));
    CHECK(is_window(400010 + 9e-6, 4999960 + 9e-6, 400030 - 9e-6, 4999990 - 9e-6, 1, 1, 2, 3));
    CHECK(is_window(400010 - 1e-4, 4999960 - 1e-4, 400030 + 1e-4, 4999990 + 1e-4, 0, 0, 4, 5));
}

static void test_boxes_across_the_border(void) {
    CHECK(is_window(399000, 4999990, 400010, 5001000, 0, 0, 1, 1));
    CHECK(is_window(400635, 4000000, 500000, 4999525, 63, 47, 1, 1));
    CHECK(is_window(-INFINITY, -INFINITY, INFINITY, INFINITY, 0, 0, 64, 48));
    CHECK(is_window(-1e300, -1e300, 1e300, 1e300, 0, 0, 64, 48));
}

static void test_boxes_outside(void) {
    static const double boxes[][4] = {{300000, 4999600, 300010, 4999700},
                                      {400640, 4999600, 400700, 4999700}, /* along the right edge */
                                      {399900, 4999600, 400000, 4999700}, /* the left */
                                      {400100, 5000000, 400200, 5000100}, /* the top */
                                      {400100, 4999400, 400200, 4999520}, /* the bottom */
                                      {1e300, 1e300, INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        const double *box = boxes[i];
        cogpu_window window;
        CHECK(find_window(north_up, box[0], box[1], box[2], box[3], &window) == COGPU_NOT_FOUND);
        CHECK(strstr(error.message, "400000,4999520,400640,5000000") && window.width == 9);
    }
}

/* Rows from the bottom, columns from the right. */
static void test_axes_of_other_directions(void) {
    static const double south_up[] = {0, 2, 0, 0, 0, 2}, mirrored[] = {128, -2, 0, 96, 0, -2};
    cogpu_window window;
    CHECK(find_window(south_up, 10, 20, 14, 26, &window) == COGPU_OK);
    CHECK(window.x == 5 && window.y == 10 && window.width == 2 && window.height == 3);
    CHECK(find_window(mirrored, 10, 20, 14, 26, &window) == COGPU_OK);
    CHECK(window.x == 57 && window.y == 35 && window.width == 2 && window.height == 3);
}

static void test_boxes_without_a_window(void) {
    static const double flat[] = {0, 0, 0, 0, 0, -1}, unknown[] = {0, 1, 0, 0, 0, NAN},
                        nowhere[] = {NAN, 1, 0, 0, 0, -1};
    cogpu_window window;
    CHECK(find_window(rotated, 0, 0, 1000, 1000, &window) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "rotated") && window.width == 9);
    CHECK(find_window(flat, 0, 0, 1, 1, &window) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "no inverse"));
    CHECK(find_window(unknown, 0, 0, 1, 1, &window) == COGPU_INVALID_ARGUMENT);
    CHECK(find_window(nowhere, 0, 0, 1, 1, &window) == COGPU_INVALID_ARGUMENT);
    for (int i = 0; i < 4; i++) {
        double box[] = {400010, 4999960, 400030, 4999990};
        box[i] = NAN;
        CHECK(find_window(north_up, box[0], box[1], box[2], box[3], &window) ==
              COGPU_INVALID_ARGUMENT);
        CHECK(strstr(error.message, "NaN") && window.width == 9);
    }
    CHECK(find_window(north_up, NAN, NAN, NAN, NAN, &window) == COGPU_INVALID_ARGUMENT);
}

static void test_missing_pointers(void) {
    const double box[] = {400010, 4999960, 400030, 4999990};
    cogpu_window window = COGPU_WINDOW_INIT;
    double number;
    CHECK(cogpu_bbox_to_window(NULL, 64, 48, box, &window, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_bbox_to_window(north_up, 64, 48, NULL, &window, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_bbox_to_window(north_up, 64, 48, box, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_coordinate_to_pixel(NULL, 0, 0, &number, &number, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_coordinate_to_pixel(north_up, 0, 0, NULL, &number, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_coordinate_to_pixel(north_up, 0, 0, &number, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
}

TESTS(coordinates) {
    RUN(test_pixel_to_coordinate);
    RUN(test_coordinate_to_pixel);
    RUN(test_transforms_without_inverse);
    RUN(test_boxes_inside);
    RUN(test_boxes_almost_along_edges);
    RUN(test_boxes_across_the_border);
    RUN(test_boxes_outside);
    RUN(test_axes_of_other_directions);
    RUN(test_boxes_without_a_window);
    RUN(test_missing_pointers);
    return FINISH();
}
