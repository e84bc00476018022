/* A VRT that is written parses as what was described. */
#include "base/limits.h"
#include "grid/vrt_write.h"
#include "support/test.h"

static cogpu_arena arena;
static cogpu_error error;

static const uint32_t both[] = {2, 1}, second[] = {0, 1}, factors[] = {2, 4};
static const char *const nodata[] = {"7", NULL};
static const cogpu_vrt_write_band bands[] = {
    {.type = COGPU_TYPE_I16, .nodata = "-1", .hides_nodata = true, .colour = "Gray"},
    {.type = COGPU_TYPE_F32, .description = "a < b & \"c\""}};
static const cogpu_vrt_write_source sources[] = {{.path = "/data/x/tiles/a&b.tif",
                                                  .width = 10,
                                                  .height = 20,
                                                  .type = COGPU_TYPE_I16,
                                                  .block_width = 10,
                                                  .block_height = 16,
                                                  .bands = both,
                                                  .source = {0, 0, 10, 20},
                                                  .target = {-1.5, 0.1, 10, 20},
                                                  .nodata = nodata},
                                                 {.path = "/data/y/c.tif",
                                                  .width = 5,
                                                  .height = 5,
                                                  .type = COGPU_TYPE_F32,
                                                  .block_width = 5,
                                                  .block_height = 5,
                                                  .bands = second,
                                                  .source = {1, 1, 4, 4},
                                                  .target = {3, 3, 8, 8},
                                                  .uses_mask = true,
                                                  .has_mask = true,
                                                  .resampling = COGPU_RESAMPLE_CUBIC}};
static const cogpu_vrt_description description = {.path = "/data/x/out.vrt",
                                                  .width = 30,
                                                  .height = 20,
                                                  .srs = "LOCAL_CS[\"<&>\"]",
                                                  .has_transform = true,
                                                  .transform = {0.1, 1, 0, 1e300, 0, -1.0 / 3},
                                                  .bands = bands,
                                                  .band_count = 2,
                                                  .sources = sources,
                                                  .source_count = 2,
                                                  .overview_factors = factors,
                                                  .overview_factor_count = 2};

static const cogpu_vrt *round_trip(const cogpu_vrt_description *what) {
    const cogpu_limits limits = cogpu_limits_complete(NULL);
    const cogpu_vrt *vrt = NULL;
    const char *text;
    size_t bytes;
    CHECK(cogpu_vrt_write(what, &arena, &text, &bytes, &error) == COGPU_OK);
    CHECK(strlen(text) == bytes && cogpu_vrt_identify(text, bytes));
    CHECK(cogpu_vrt_parse(text, bytes, &limits, &arena, &vrt, &error) == COGPU_OK);
    return vrt;
}

static void dataset(void) {
    const cogpu_vrt *vrt = round_trip(&description);
    CHECK(vrt->width == 30 && vrt->height == 20 && vrt->band_count == 2);
    CHECK_TEXT(vrt->srs, description.srs);
    CHECK(memcmp(vrt->transform, description.transform, sizeof vrt->transform) == 0);
    CHECK(vrt->bands[0].type == COGPU_TYPE_I16 && vrt->bands[0].hides_nodata);
    CHECK_TEXT(vrt->bands[0].nodata, "-1");
    CHECK_TEXT(vrt->bands[1].description, "a < b & \"c\"");
    CHECK(vrt->overview_factor_count == 2 && vrt->overview_factors[1] == 4);
    CHECK(vrt->mask && vrt->mask->sources.count == 1 && vrt->mask->sources.entries[0].of_mask);
}

static void sources_with_rules(void) {
    const cogpu_vrt *vrt = round_trip(&description);
    const cogpu_vrt_source *source = vrt->sources.entries;
    CHECK(vrt->sources.count == 3); /* nodata of band 1 only: another kind of source */
    CHECK_TEXT(source[0].file.path, "tiles/a&b.tif");
    CHECK(source[0].file.relative && source[0].kind == COGPU_VRT_COMPLEX);
    CHECK(source[0].bands[0].band == 2 && source[0].bands[0].rule->nodata == 7);
    CHECK(source[0].target.x == -1.5 && source[0].target.y == 0.1);
    CHECK(source[1].kind == COGPU_VRT_SIMPLE && source[1].bands[0].target == 2);
    CHECK_TEXT(source[2].file.path, "/data/y/c.tif");
    CHECK(!source[2].file.relative && source[2].bands[0].rule->uses_mask);
    CHECK(source[2].resampling == COGPU_RESAMPLE_CUBIC && source[2].band_count == 1);
}

/* Without a path of the VRT, sources keep theirs. */
static void paths(void) {
    cogpu_vrt_description other = description;
    other.path = NULL;
    CHECK_TEXT(round_trip(&other)->sources.entries[0].file.path, "/data/x/tiles/a&b.tif");
    other.path = "out.vrt";
    CHECK(!round_trip(&other)->sources.entries[0].file.relative);
    other.path = "/data/xy/out.vrt";
    CHECK(!round_trip(&other)->sources.entries[0].file.relative);
}

TESTS(vrt_write) {
    cogpu_arena_open(&arena, 1 << 26);
    RUN(dataset);
    RUN(sources_with_rules);
    RUN(paths);
    cogpu_arena_close(&arena);
    return FINISH();
}
