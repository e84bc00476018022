/*
 * Transformers: arithmetic, positions that fail, threads, errors, and files that the text of a CRS
 * names. tests/python/test_transformer.py compares positions with GDAL's. Without PROJ, only CRSs
 * of the same text are tested.
 */
#include "grid/transformer.h"

#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

enum { POINTS = 200, THREADS = 8, ROUNDS = 20 };

static cogpu_operations *operations;
static cogpu_transformer *transformer;
static cogpu_error error;

static bool has_proj(void) {
    return cogpu_proj_version() != NULL;
}

static cogpu_placement placed(const char *crs, const double transform[6]) {
    cogpu_placement made = {.width = 100, .height = 80, .crs = crs, .has_transform = true};
    memcpy(made.transform, transform, sizeof made.transform);
    return made;
}

static const double upright[6] = {500000, 10, 0, 5000000, 0, -10};
static const double rotated[6] = {500000, 8, 3, 5000000, 3, -8};
static const double mercator[6] = {1669000, 10, 0, 5621000, 0, -10};
static const double degrees[6] = {-180, 3.6, 0, 90, 0, -2.25};

static cogpu_status open_pair(const cogpu_placement *source, const cogpu_placement *target) {
    cogpu_transformer_close(transformer);
    return cogpu_transformer_open(source, target, operations, &transformer, &error);
}

static cogpu_status open_crs(const char *source, const char *target) {
    cogpu_placement from = placed(source, upright), to = placed(target, mercator);
    return open_pair(&from, &to);
}

static void fails(cogpu_status status, cogpu_status expected, const char *word) {
    CHECK(status == expected && transformer == NULL);
    if (!strstr(error.message, word))
        CHECK_TEXT(error.message, word);
}

/* ---- arithmetic ---- */

static void affine_sums(void) {
    double affine[6], x[] = {0, 50.5, -3}, y[] = {0, 20.25, 1e6};
    cogpu_placement source = placed("EPSG:32633", upright), target = placed("EPSG:32633", rotated);
    CHECK(open_pair(&source, &target) == COGPU_OK);
    cogpu_to_source(transformer, 3, x, y);
    for (int i = 0; i < 3; i++) {
        double column = i == 0 ? 0 : i == 1 ? 50.5 : -3, row = i == 0 ? 0 : i == 1 ? 20.25 : 1e6;
        double east = 500000 + column * 8 + row * 3, north = 5000000 + column * 3 + row * -8;
        CHECK(x[i] == -50000.0 + east * (1 / 10.0) + north * 0);
        CHECK(y[i] == 500000.0 + east * 0 + north * (1 / -10.0));
    }
    CHECK(cogpu_transformer_is_affine(transformer, affine));
    CHECK(fabs(affine[1] - 0.8) < 1e-9 && fabs(affine[2] - 0.3) < 1e-9 && affine[0] == 0);
    CHECK(fabs(affine[4] + 0.3) < 1e-9 && fabs(affine[5] - 0.8) < 1e-9 && affine[3] == 0);
}

static void rotated_inverse(void) {
    double x = 12.25, y = 34.5;
    cogpu_placement source = placed(NULL, rotated), target = placed(NULL, upright);
    CHECK(open_pair(&source, &target) == COGPU_OK);
    cogpu_to_target(transformer, 1, &x, &y);
    cogpu_to_source(transformer, 1, &x, &y);
    CHECK(fabs(x - 12.25) < 1e-8 && fabs(y - 34.5) < 1e-8);
}

static void longitudes(void) {
    static const double east[6] = {190, 0.36, 0, 90, 0, -2.25};
    double affine[6], x = 0, y = 0;
    cogpu_placement source = placed("EPSG:4326", degrees), target = placed("EPSG:4326", east);
    CHECK(!has_proj() || open_pair(&source, &target) == COGPU_OK);
    if (!has_proj())
        return;
    cogpu_to_source(transformer, 1, &x, &y);
    CHECK(fabs(x - 10 / 3.6) < 1e-12 && y == 0);
    CHECK(cogpu_transformer_is_affine(transformer, affine) && fabs(affine[0] - 10 / 3.6) < 1e-12);
}

/* ---- failures ---- */

static void failed_positions(void) {
    double x[] = {NAN, 10, 54, INFINITY, 54}, y[] = {10, NAN, -100, 10, 20};
    cogpu_placement source = placed("EPSG:32633", upright), target = placed("EPSG:4326", degrees);
    if (!has_proj())
        return;
    CHECK(open_pair(&source, &target) == COGPU_OK);
    cogpu_to_source(transformer, 5, x, y);
    for (int i = 0; i < 4; i++)
        CHECK(isnan(x[i]) && isnan(y[i]));
    CHECK(isfinite(x[4]) && isfinite(y[4]));
}

static void bad_transforms(void) {
    static const double flat[6] = {0, 1, 2, 0, 2, 4}, nan[6] = {0, NAN, 0, 0, 0, 1};
    static const double tiny[6] = {1, 5e-324, 0, 0, 0, 1};
    cogpu_placement good = placed(NULL, upright), bad = placed(NULL, flat);
    fails(open_pair(&bad, &good), COGPU_INVALID_ARGUMENT, "source");
    fails(open_pair(&good, &bad), COGPU_INVALID_ARGUMENT, "grid");
    bad = placed(NULL, nan);
    fails(open_pair(&bad, &good), COGPU_INVALID_ARGUMENT, "finite");
    bad = placed(NULL, tiny);
    fails(open_pair(&bad, &good), COGPU_INVALID_ARGUMENT, "inverse");
    bad.has_transform = false;
    fails(open_pair(&bad, &good), COGPU_INVALID_ARGUMENT, "no transform, no GCPs");
    fails(open_pair(&good, &bad), COGPU_INVALID_ARGUMENT, "grid has no transform");
}

static void missing_crs(void) {
    fails(open_crs(NULL, "EPSG:3857"), COGPU_INVALID_ARGUMENT, "source has no CRS");
    fails(open_crs("EPSG:32633", NULL), COGPU_INVALID_ARGUMENT, "grid has no CRS");
    CHECK(open_crs(NULL, NULL) == COGPU_OK);
}

static void unknown_crs(void) {
    static const char *const texts[] = {
        "",
        "EPSG:",
        "EPSG:999999",
        "nonsense",
        "GEOGCRS[",
        "GEOGCRS[\"a\"]",
        "+proj=nonsense",
        "PROJCS[\"x\",GEOGCS[\"y\",DATUM[\"z\",SPHEROID[\"s\",0,0]]]]",
        "EPSG:9122",
        "@/etc/passwd",
        "+init=/etc/passwd:a"};
    for (size_t i = 0; has_proj() && i < sizeof texts / sizeof *texts; i++)
        fails(open_crs(texts[i], "EPSG:3857"), COGPU_INVALID_ARGUMENT, "PROJ");
    /* a plane without a place on the Earth */
    if (has_proj())
        fails(open_crs("LOCAL_CS[\"a\",UNIT[\"metre\",1]]", "EPSG:3857"), COGPU_INVALID_ARGUMENT,
              "cannot transform");
}

static void long_crs(void) {
    static char text[(1 << 20) + 2];
    memset(text, ' ', sizeof text - 1);
    if (has_proj())
        fails(open_crs(text, "EPSG:3857"), COGPU_INVALID_ARGUMENT, "bytes");
}

static void without_proj(void) {
    if (has_proj())
        return;
    CHECK(open_crs("EPSG:32633", "EPSG:32633") == COGPU_OK);
    fails(open_crs("EPSG:32633", "EPSG:3857"), COGPU_UNSUPPORTED, "no PROJ");
}

/* PROJ would read a grid from this pipe: its bytes must stay in it. */
static void files_in_crs(void) {
    static const char bytes[4096] = {0};
    char path[64], text[160];
    double x = 50, y = 40;
    int unread = 0;
    if (!has_proj())
        return;
    snprintf(path, sizeof path, "/tmp/cogpu_grid_%ld.gsb", (long)getpid());
    CHECK(mkfifo(path, 0600) == 0);
    int pipe = open(path, O_RDWR | O_NONBLOCK);
    CHECK(pipe >= 0 && write(pipe, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    snprintf(text, sizeof text, "+proj=utm +zone=33 +ellps=bessel +nadgrids=%s", path);
    if (open_crs(text, "EPSG:3857") == COGPU_OK)
        cogpu_to_source(transformer, 1, &x, &y);
    snprintf(text, sizeof text, "+proj=utm +zone=33 +ellps=bessel +nadgrids=../../../../../../..%s",
             path);
    if (open_crs(text, "EPSG:3857") == COGPU_OK)
        cogpu_to_source(transformer, 1, &x, &y);
    CHECK(ioctl(pipe, FIONREAD, &unread) == 0 && unread == (int)sizeof bytes);
    close(pipe);
    unlink(path);
}

/* ---- control points and RPCs ---- */

static void bad_gcps(void) {
    cogpu_gcp points[] = {{.column = 0, .row = 0, .x = 5, .y = 6},
                          {.column = 10, .row = 10, .x = NAN, .y = 7}};
    cogpu_placement source = {.width = 10, .height = 10, .gcps = points, .gcp_count = 2};
    cogpu_placement target = placed(NULL, upright);
    fails(open_pair(&source, &target), COGPU_INVALID_ARGUMENT, "finite");
    points[1].x = 5;
    fails(open_pair(&source, &target), COGPU_INVALID_ARGUMENT, "line");
    points[1].x = 25;
    CHECK(open_pair(&source, &target) == COGPU_OK);
    double affine[6];
    CHECK(!cogpu_transformer_is_affine(transformer, affine));
}

static void bad_rpcs(void) {
    double rpc[92] = {0};
    const float heights[1] = {0};
    cogpu_height_model dem = {.width = 1, .height = 1, .heights = heights};
    cogpu_placement source = {.width = 10, .height = 10, .rpc = rpc, .rpc_dem = &dem};
    cogpu_placement target = placed("EPSG:4326", degrees);
    fails(open_pair(&source, &target), COGPU_INVALID_ARGUMENT, "DEM");
    source.rpc_dem = NULL;
    fails(open_pair(&source, &target), COGPU_INVALID_ARGUMENT, "no inverse");
    rpc[50] = INFINITY;
    fails(open_pair(&source, &target), COGPU_INVALID_ARGUMENT, "finite");
}

/* Rows and columns along meridians and parallels, a pixel for 0.001 degrees. */
static void plain_rpcs(void) {
    double rpc[92] = {0}, x[POINTS], y[POINTS];
    cogpu_placement source = {.width = 10, .height = 10, .rpc = rpc};
    static const double grid[6] = {10, 0.001, 0, 50, 0, -0.001};
    cogpu_placement target = placed("EPSG:4326", grid);
    rpc[4] = 50, rpc[5] = 10;
    for (int i = 7; i <= 11; i++)
        rpc[i] = i < 9 ? 1000 : 1;
    rpc[12 + 2] = -1, rpc[32] = 1, rpc[52 + 1] = 1, rpc[72] = 1;
    CHECK(open_pair(&source, &target) == COGPU_OK);
    for (int i = 0; i < POINTS; i++)
        x[i] = i, y[i] = 2 * i;
    cogpu_to_source(transformer, POINTS, x, y);
    for (int i = 0; i < POINTS; i++)
        CHECK(fabs(x[i] - i - 0.5) < 1e-8 && fabs(y[i] - 2 * i - 0.5) < 1e-8);
    cogpu_to_target(transformer, POINTS, x, y);
    for (int i = 0; i < POINTS; i++)
        CHECK(fabs(x[i] - i) < 1e-3 && fabs(y[i] - 2 * i) < 1e-3);
}

/* ---- threads ---- */

static double expected_x[POINTS], expected_y[POINTS];

static void fill_points(double *x, double *y) {
    for (int i = 0; i < POINTS; i++) {
        x[i] = i * 0.5;
        y[i] = i * 0.25;
    }
}

static void *transform_often(void *failed) {
    for (int round = 0; round < ROUNDS; round++) {
        double x[POINTS], y[POINTS];
        fill_points(x, y);
        cogpu_to_source(transformer, POINTS, x, y);
        for (int i = 0; i < POINTS; i++)
            *(int *)failed += x[i] != expected_x[i] || y[i] != expected_y[i];
    }
    return NULL;
}

/* Others open more, which are the same pairs and new ones. */
static void *open_often(void *failed) {
    static const char *const targets[] = {"EPSG:3857", "EPSG:32632", "EPSG:3035"};
    for (int round = 0; round < 3; round++) {
        cogpu_transformer *own = NULL;
        cogpu_placement source = placed("EPSG:32633", upright);
        cogpu_placement target = placed(targets[round], upright);
        *(int *)failed += cogpu_transformer_open(&source, &target, operations, &own, NULL) != 0;
        cogpu_transformer_close(own);
    }
    return NULL;
}

static void threads(void) {
    pthread_t workers[THREADS];
    int failed[THREADS] = {0};
    if (!has_proj())
        return;
    CHECK(open_crs("EPSG:32633", "EPSG:3857") == COGPU_OK);
    fill_points(expected_x, expected_y);
    cogpu_to_source(transformer, POINTS, expected_x, expected_y);
    CHECK(isfinite(expected_x[0]));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&workers[i], NULL, i % 4 ? transform_often : open_often, &failed[i]));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i], NULL);
        CHECK(failed[i] == 0);
    }
}

/* More pairs than a thread keeps clones of. */
static void many_pairs(void) {
    cogpu_transformer *opened[70] = {0};
    double first[70];
    for (int i = 0; has_proj() && i < 70; i++) {
        char crs[64];
        snprintf(crs, sizeof crs, "+proj=laea +lat_0=%d +lon_0=15 +ellps=WGS84", i - 30);
        cogpu_placement source = placed("EPSG:32633", upright), target = placed(crs, upright);
        CHECK(cogpu_transformer_open(&source, &target, operations, &opened[i], &error) == COGPU_OK);
    }
    for (int round = 0; has_proj() && round < 2; round++) {
        for (int i = 0; i < 70; i++) {
            double x = 10, y = 20;
            cogpu_to_target(opened[i], 1, &x, &y);
            CHECK(isfinite(y) && (round == 0 || y == first[i]));
            first[i] = y;
        }
    }
    for (int i = 0; i < 70; i++)
        cogpu_transformer_close(opened[i]);
}

TESTS(transformer) {
    if (cogpu_operations_open(&operations, &error) != COGPU_OK)
        return 1;
    RUN(affine_sums);
    RUN(rotated_inverse);
    RUN(longitudes);
    RUN(failed_positions);
    RUN(bad_transforms);
    RUN(missing_crs);
    RUN(unknown_crs);
    RUN(long_crs);
    RUN(without_proj);
    RUN(files_in_crs);
    RUN(bad_gcps);
    RUN(bad_rpcs);
    RUN(plain_rpcs);
    RUN(threads);
    RUN(many_pairs);
    cogpu_transformer_close(transformer);
    cogpu_operations_close(operations);
    cogpu_transformer_close(NULL);
    cogpu_operations_close(NULL);
    return FINISH();
}
