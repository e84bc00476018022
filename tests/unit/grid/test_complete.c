/*
 * Grids of sources and requests: gdalwarp's sizes (tests/python/test_grid.py compares many more),
 * and input that no grid can come from.
 */
#include "grid_test.h"

#include "support/test.h"

#include <math.h>

static cogpu_operations *operations;
static cogpu_error error;
static cogpu_placement target;

static const char *const UTM = "EPSG:32632";

static bool has_proj(void) {
    return cogpu_proj_version() != NULL;
}

static cogpu_placement utm(void) {
    return place(UTM, 1000, 800, 400000, 10, 5000000, -20);
}

static cogpu_status complete(const cogpu_grid *request, const cogpu_placement *sources,
                             size_t count) {
    target = (cogpu_placement){.crs = request->crs ? request->crs : UTM};
    const cogpu_grid_sources from = {.items = sources, .count = count, .operations = operations};
    return cogpu_grid_complete(request, &from, &target, &error);
}

static bool is_grid(double left, double pixel_x, double top, double pixel_y, uint32_t width,
                    uint32_t height) {
    const double *found = target.transform;
    return target.has_transform && found[0] == left && found[1] == pixel_x && found[2] == 0 &&
           found[3] == top && found[4] == 0 && found[5] == pixel_y && target.width == width &&
           target.height == height;
}

/* ---- grids of gdalwarp ---- */

static void keeps_grids(void) {
    const cogpu_placement north_up = utm(),
                          two[2] = {utm(), place(UTM, 1000, 800, 408000, 7, 5e6, -13)};
    const cogpu_placement south_up = place(UTM, 1000, 800, 400000, 10, 5000000, 20);
    const cogpu_grid request = COGPU_GRID_INIT;
    CHECK(complete(&request, &north_up, 1) == COGPU_OK);
    CHECK(is_grid(400000, 10, 5000000, -20, 1000, 800));
    CHECK(complete(&request, &south_up, 1) == COGPU_OK);
    CHECK(is_grid(400000, 10, 5016000, -20, 1000, 800));
    CHECK(complete(&request, two, 2) == COGPU_OK);
    CHECK(is_grid(400000, 7, 5000000, -13, 2143, 1231));
}

static void applies_sizes(void) {
    const cogpu_placement source = utm();
    cogpu_grid request = COGPU_GRID_INIT;
    request.width = 100;
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400000, 100, 5000000, -100, 100, 160));
    request.width = 0, request.height = 100;
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400000, 160, 5000000, -160, 63, 100));
}

static void applies_resolutions(void) {
    const cogpu_placement source = utm();
    cogpu_grid request = COGPU_GRID_INIT;
    request.resolution[0] = request.resolution[1] = 7;
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400000, 7, 5000000, -7, 1429, 2286));
    request.align = 1;
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400001, 7, 5000002, -7, 1428, 2286)); /* without blank columns */
    request.resolution[0] = request.resolution[1] = 700000, request.align = 0;
    CHECK(complete(&request, &source, 1) == COGPU_OK && target.width == 1 && target.height == 1);
}

static void applies_boxes(void) {
    const cogpu_placement source = utm();
    cogpu_grid request = COGPU_GRID_INIT;
    const double box[4] = {400100, 4990000, 403333, 4999000};
    memcpy(request.bbox, box, sizeof box);
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400100, 3233.0 / 323, 4999000, -20, 323, 450));
    request.crs = UTM;
    CHECK(complete(&request, &source, 1) == COGPU_OK);
    CHECK(is_grid(400100, 3233.0 / 216, 4999000, -15, 216, 600));
    request.resolution[0] = 7, request.resolution[1] = 9;
    CHECK(complete(&request, NULL, 0) == COGPU_OK && target.width == 462 && target.height == 1000);
}

static void takes_transforms(void) {
    cogpu_grid request = COGPU_GRID_INIT;
    const double transform[6] = {1, 2, 3, 4, 5, -6};
    memcpy(request.transform, transform, sizeof transform);
    request.width = 7, request.height = 8;
    CHECK(complete(&request, NULL, 0) == COGPU_OK && target.width == 7 && target.height == 8);
    CHECK(memcmp(target.transform, transform, sizeof transform) == 0);
}

/* W034: the sample of the pole, and a whole turn. */
static void includes_poles(void) {
    const cogpu_placement polar = place("EPSG:3413", 1000, 1000, -4e6, 8000, 4e6, -8000);
    cogpu_grid request = COGPU_GRID_INIT;
    request.crs = "EPSG:4326";
    if (!has_proj())
        return;
    CHECK(complete(&request, &polar, 1) == COGPU_OK);
    CHECK(target.transform[0] == -180 && target.transform[3] == 90);
    CHECK(target.width == 1401 && target.height == 191);
}

static void ends_at_web_mercator(void) {
    const cogpu_placement globe = place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1);
    cogpu_grid request = COGPU_GRID_INIT;
    request.crs = "EPSG:3857";
    if (!has_proj())
        return;
    CHECK(complete(&request, &globe, 1) == COGPU_OK);
    CHECK(target.width == 3494 && target.height == 3494);
    CHECK(fabs(target.transform[3] - 20037508.342789244) < 1e-6);
}

/* Threads share the sources: the grid is the same. */
static void joins_many_sources(void) {
    enum { COUNT = 300 };
    static cogpu_placement sources[COUNT];
    cogpu_grid_sources from = {.items = sources, .count = COUNT, .operations = operations};
    cogpu_placement alone = {.crs = "EPSG:3857"}, together = {.crs = "EPSG:3857"};
    const cogpu_grid request = COGPU_GRID_INIT;
    if (!has_proj())
        return;
    for (uint32_t i = 0; i < COUNT; i++)
        sources[i] =
            place(UTM, 200 + i, 300, 300000 + 1000.0 * i, 10 + i % 7, 5e6 + 500.0 * i, -10);
    CHECK(cogpu_grid_complete(&request, &from, &alone, &error) == COGPU_OK);
    CHECK(cogpu_pool_open(3, &from.pool, &error) == COGPU_OK);
    CHECK(cogpu_grid_complete(&request, &from, &together, &error) == COGPU_OK);
    CHECK(alone.width == together.width && alone.height == together.height);
    CHECK(memcmp(alone.transform, together.transform, sizeof alone.transform) == 0);
    sources[290].width = 0;
    CHECK(cogpu_grid_complete(&request, &from, &together, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "0 x 300 pixels"));
    cogpu_pool_close(from.pool);
}

/* ---- wrong input ---- */

static void refuses(const cogpu_grid *request, const char *word) {
    const cogpu_placement source = utm();
    error.message[0] = '\0';
    CHECK(complete(request, &source, 1) == COGPU_INVALID_ARGUMENT);
    if (!strstr(error.message, word))
        CHECK_TEXT(error.message, word);
}

static void refuses_requests(void) {
    static const double wrong[] = {NAN, INFINITY, -INFINITY, -1};
    cogpu_grid request;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request = (cogpu_grid)COGPU_GRID_INIT, request.resolution[0] = wrong[i];
        request.resolution[1] = 1;
        refuses(&request, "resolution");
        request = (cogpu_grid)COGPU_GRID_INIT, request.resolution[0] = 10; /* the other is 0 */
        refuses(&request, "resolution");
        if (wrong[i] == -1)
            continue;
        request = (cogpu_grid)COGPU_GRID_INIT, request.bbox[2] = wrong[i];
        refuses(&request, "bbox[2]");
        request = (cogpu_grid)COGPU_GRID_INIT, request.transform[5] = wrong[i];
        refuses(&request, "transform[5]");
    }
    request = (cogpu_grid)COGPU_GRID_INIT, request.width = 1u << 31;
    refuses(&request, "width");
    request = (cogpu_grid)COGPU_GRID_INIT, request.height = UINT32_MAX;
    refuses(&request, "height");
    request = (cogpu_grid)COGPU_GRID_INIT, request.align = 1;
    refuses(&request, "align");
    request = (cogpu_grid)COGPU_GRID_INIT, request.reserved = 1;
    refuses(&request, "reserved");
    request = (cogpu_grid)COGPU_GRID_INIT, request.bbox_crs = UTM;
    refuses(&request, "bbox_crs");
}

static void refuses_combinations(void) {
    cogpu_grid request = COGPU_GRID_INIT;
    const double box[4] = {0, 0, 10, 20}, turned[4] = {10, 0, 0, 20}, flipped[4] = {0, 20, 10, 0};
    request.transform[1] = 1, request.transform[5] = -1;
    refuses(&request, "width and height");
    request.width = request.height = 5, request.bbox[2] = 1;
    refuses(&request, "excludes");
    request.bbox[2] = 0, request.transform[5] = 0;
    refuses(&request, "no inverse");
    request = (cogpu_grid)COGPU_GRID_INIT;
    memcpy(request.bbox, box, sizeof box);
    request.width = 5, request.resolution[0] = request.resolution[1] = 1;
    refuses(&request, "resolution");
    memcpy(request.bbox, turned, sizeof box);
    refuses(&request, "excludes");
    request.width = 0;
    refuses(&request, "left");
    memcpy(request.bbox, flipped, sizeof box);
    refuses(&request, "bottom");
    request = (cogpu_grid)COGPU_GRID_INIT;
    memcpy(request.bbox, box, sizeof box);
    request.resolution[0] = request.resolution[1] = 1e-12;
    refuses(&request, "2147483647");
}

static void refuses_sources(void) {
    cogpu_grid request = COGPU_GRID_INIT;
    cogpu_placement source = utm();
    CHECK(complete(&request, NULL, 0) == COGPU_INVALID_ARGUMENT);
    source.width = 0;
    CHECK(complete(&request, &source, 1) == COGPU_INVALID_ARGUMENT);
    source = utm(), source.height = 1u << 31;
    CHECK(complete(&request, &source, 1) == COGPU_INVALID_ARGUMENT);
    source = utm(), source.transform[1] = 0;
    CHECK(complete(&request, &source, 1) == COGPU_INVALID_ARGUMENT);
    source = utm(), source.transform[3] = NAN;
    CHECK(complete(&request, &source, 1) == COGPU_INVALID_ARGUMENT);
    source = utm(), source.crs = NULL;
    CHECK(complete(&request, &source, 1) == COGPU_INVALID_ARGUMENT);
    source = utm(), source.crs = "no CRS";
    CHECK(complete(&request, &source, 1) != COGPU_OK);
}

/* No position of the source exists in the CRS of the grid. */
static void refuses_places_without_positions(void) {
    const cogpu_placement behind = place("EPSG:4326", 100, 100, 170, 0.1, 0, -0.1);
    const cogpu_placement nowhere = place("EPSG:4326", 100, 100, 1e8, 0.1, 1e9, -0.1);
    cogpu_grid request = COGPU_GRID_INIT;
    request.crs = "+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84";
    if (!has_proj())
        return;
    CHECK(complete(&request, &behind, 1) == COGPU_INVALID_ARGUMENT);
    CHECK(complete(&request, &nowhere, 1) == COGPU_INVALID_ARGUMENT);
    request.bbox[0] = 170, request.bbox[1] = -10, request.bbox[2] = 180, request.bbox[3] = 0;
    request.bbox_crs = "EPSG:4326", request.width = 100;
    CHECK(complete(&request, &behind, 1) == COGPU_INVALID_ARGUMENT);
}

TESTS(complete) {
    CHECK(cogpu_operations_open(&operations, &error) == COGPU_OK);
    RUN(keeps_grids);
    RUN(applies_sizes);
    RUN(applies_resolutions);
    RUN(applies_boxes);
    RUN(takes_transforms);
    RUN(includes_poles);
    RUN(ends_at_web_mercator);
    RUN(joins_many_sources);
    RUN(refuses_requests);
    RUN(refuses_combinations);
    RUN(refuses_sources);
    RUN(refuses_places_without_positions);
    cogpu_operations_close(operations);
    return FINISH();
}
