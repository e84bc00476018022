/* VRTs: every element, its default, what is refused, malformed texts, limits. */
#include "base/limits.h"
#include "grid/vrt.h"
#include "support/test.h"

static cogpu_arena arena;
static cogpu_error error;
static cogpu_limits limits;
static const cogpu_vrt *vrt;

static cogpu_status parse(const char *xml) {
    cogpu_arena_close(&arena);
    cogpu_arena_open(&arena, 1 << 26);
    cogpu_error_clear(&error);
    return cogpu_vrt_parse(xml, strlen(xml), &limits, &arena, &vrt, &error);
}

#define ROOT(content)    "<VRTDataset rasterXSize=\"30\" rasterYSize=\"20\">" content "</VRTDataset>"
#define BAND(content)    "<VRTRasterBand>" content "</VRTRasterBand>"
#define FILE_A           "<SourceFilename relativeToVRT=\"1\">a&amp;b.tif</SourceFilename>"
#define SIMPLE(content)  "<SimpleSource>" FILE_A content "</SimpleSource>"
#define COMPLEX(content) ROOT(BAND("<ComplexSource>" FILE_A content "</ComplexSource>"))
#define RECT(name, x, y, width, height)                                                            \
    "<" name " xOff=\"" x "\" yOff=\"" y "\" xSize=\"" width "\" ySize=\"" height "\"/>"
#define RECTS RECT("SrcRect", "1", "2", "3", "4") RECT("DstRect", "5", "6.5", "7", "8.0004")

/* The message names what is wrong, and where. */
static void fails(const char *xml, cogpu_status status, const char *part) {
    CHECK(parse(xml) == status);
    if (!strstr(error.message, part)) {
        test_broken = 1;
        printf("\"%s\" does not have \"%s\"\n", error.message, part);
    }
}

static void dataset(void) {
    CHECK(
        parse("<?xml version=\"1.0\"?><!-- c --><vrtdataset RASTERXSIZE=\"30\" rasterYSize=\"20\">"
              "<SRS dataAxisToSRSAxisMapping=\"2,1\" coordinateEpoch=\"2020.5\"> EPSG:4326 </SRS>"
              "<GeoTransform> 1.0, 2, 0, 3, 0, -4</GeoTransform>"
              "<GCPList Projection=\"EPSG:3857\"><GCP Id=\"i\" Pixel=\"1\" Line=\"2\" X=\"3\" "
              "Y=\"4\" Z=\"5\"/></GCPList>"
              "<Metadata><MDI key=\"k\">v</MDI></Metadata>"
              "<Metadata domain=\"D\"><MDI key=\"l\">w</MDI></Metadata>"
              "<OverviewList resampling=\"average\">2 4,8</OverviewList>"
              "<VRTRasterBand/></vrtdataset>") == COGPU_OK);
    CHECK(vrt->width == 30 && vrt->height == 20 && vrt->band_count == 1);
    CHECK_TEXT(vrt->srs, "EPSG:4326");
    CHECK_TEXT(vrt->axis_mapping, "2,1");
    CHECK(vrt->epoch == 2020.5 && vrt->has_transform && vrt->transform[5] == -4);
    CHECK(vrt->gcp_count == 1 && vrt->gcps[0].z == 5);
    CHECK_TEXT(vrt->gcp_srs, "EPSG:3857");
    CHECK(vrt->metadata.item_count == 2);
    CHECK_TEXT(vrt->metadata.items[1].domain, "D");
    CHECK(vrt->overview_factor_count == 3 && vrt->overview_factors[2] == 8);
    CHECK(vrt->overview_resampling == COGPU_RESAMPLE_AVERAGE);
}

static void defaults(void) {
    CHECK(parse(ROOT(BAND(""))) == COGPU_OK);
    const cogpu_vrt_band *band = &vrt->bands[0];
    CHECK(band->type == COGPU_TYPE_U8 && !band->nodata && !band->hides_nodata && !band->colour);
    CHECK(band->scale == 1 && band->offset == 0 && !band->has_scale && !band->palette);
    CHECK(band->block_width == 30 && band->block_height == 20 && band->bits == 0 && !band->mask);
    CHECK(!vrt->srs && !vrt->has_transform && !vrt->gcp_count && !vrt->mask && !vrt->rpc);
    CHECK(vrt->overview_resampling == COGPU_RESAMPLE_NEAREST && !vrt->warp);
    CHECK(vrt->sources.count == 0 && vrt->total_sources == 0);
}

static void bands(void) {
    CHECK(parse(ROOT("<VRTRasterBand dataType=\"Int64\" blockXSize=\"64\" blockYSize=\"8\">"
                     "<NoDataValue> -9223372036854775807 </NoDataValue>"
                     "<HideNoDataValue>1</HideNoDataValue><ColorInterp>Gray</ColorInterp>"
                     "<Description>d</Description><UnitType>m</UnitType><Scale>2</Scale>"
                     "<Offset>3</Offset><ColorTable><Entry c1=\"1\" c2=\"2\" c3=\"3\" c4=\"4\"/>"
                     "<Entry c1=\"9\"/></ColorTable><CategoryNames><Category>w</Category>"
                     "</CategoryNames><Metadata domain=\"IMAGE_STRUCTURE\"><MDI key=\"NBITS\">12"
                     "</MDI></Metadata><Overview>" FILE_A "<SourceBand>2</SourceBand></Overview>"
                     "</VRTRasterBand>")) == COGPU_OK);
    const cogpu_vrt_band *band = &vrt->bands[0];
    CHECK(band->type == COGPU_TYPE_I64 && band->hides_nodata && band->scale == 2);
    CHECK(band->offset == 3 && band->has_scale && band->bits == 12);
    CHECK(band->block_width == 64 && band->block_height == 20);
    CHECK_TEXT(band->nodata, "-9223372036854775807");
    CHECK_TEXT(band->colour, "Gray");
    CHECK_TEXT(band->description, "d");
    CHECK_TEXT(band->unit, "m");
    CHECK(band->palette_entries == 2 && band->palette[1] == 9 * 257);
    CHECK(band->palette[6] == 4 * 257 && band->palette[7] == 65535);
    CHECK(band->overview_count == 1 && band->overviews[0].band == 2);
}

static void sources(void) {
    CHECK(parse(ROOT(BAND(SIMPLE(RECTS "<SourceBand>mask,3</SourceBand>") SIMPLE("")))) ==
          COGPU_OK);
    const cogpu_vrt_source *source = &vrt->sources.entries[0];
    CHECK(vrt->sources.count == 2 && source->kind == COGPU_VRT_SIMPLE && source->of_mask);
    CHECK_TEXT(source->file.path, "a&b.tif");
    CHECK(source->file.relative && source->file.line == 1 && source->has_rects);
    CHECK(source->source.x == 1 && source->source.height == 4);
    CHECK(source->target.y == 6.5 && source->target.height == 8); /* within 1e-3 of 8 */
    CHECK(source->band_count == 1 && source->bands[0].target == 1 && source->bands[0].band == 3);
    CHECK(!source->bands[0].rule && !source->resampling);
    CHECK(!source[1].has_rects && !source[1].of_mask && source[1].bands[0].band == 1);
}

#define LEVEL(text) "<OpenOptions><OOI key=\"OVERVIEW_LEVEL\">" text "</OOI></OpenOptions>"

static void levels_of_sources(void) {
    CHECK(parse(ROOT(BAND(SIMPLE("") SIMPLE(LEVEL("NONE")) SIMPLE(LEVEL("1"))
                              SIMPLE(LEVEL("0 only"))))) == COGPU_OK);
    const cogpu_vrt_source *source = vrt->sources.entries;
    CHECK(vrt->sources.count == 4 && source[0].first_level == 0 && !source[0].has_one_level);
    CHECK(source[1].first_level == 0 && source[1].has_one_level);
    CHECK(source[2].first_level == 2 && !source[2].has_one_level);
    CHECK(source[3].first_level == 1 && source[3].has_one_level);
}

static void kinds_of_sources(void) {
    CHECK(parse(ROOT(BAND("<SimpleSource resampling=\"Lanczos\">" FILE_A "</SimpleSource>"
                          "<SimpleSource resampling=\"average\">" FILE_A "</SimpleSource>"
                          "<ComplexSource resampling=\"average\">" FILE_A "</ComplexSource>"
                          "<AveragedSource>" FILE_A "</AveragedSource>"))) == COGPU_OK);
    const cogpu_vrt_source *source = vrt->sources.entries;
    CHECK(source[0].kind == COGPU_VRT_SIMPLE && source[0].resampling == COGPU_RESAMPLE_LANCZOS);
    CHECK(source[1].kind == COGPU_VRT_AVERAGED && source[3].kind == COGPU_VRT_AVERAGED);
    CHECK(source[2].kind == COGPU_VRT_COMPLEX && source[2].resampling == COGPU_RESAMPLE_AVERAGE);
    CHECK(!cogpu_vrt_source_is_simple(&source[0], COGPU_RESAMPLE_DEFAULT));
    CHECK(!cogpu_vrt_source_is_simple(&source[1], COGPU_RESAMPLE_DEFAULT));
}

static void rules(void) {
    CHECK(parse(COMPLEX("<NODATA>nan</NODATA><UseMaskBand>true</UseMaskBand>"
                        "<ScaleOffset>2</ScaleOffset><LUT>0:5, 10:7.5</LUT>"
                        "<ColorTableComponent>3</ColorTableComponent>")) == COGPU_OK);
    const cogpu_sample_rule *rule = vrt->sources.entries[0].bands[0].rule;
    CHECK(rule->has_nodata && rule->nodata != rule->nodata && rule->uses_mask);
    CHECK(rule->scaling == COGPU_SCALING_LINEAR && rule->ratio == 1 && rule->offset == 2);
    CHECK(rule->palette_component == 3 && rule->lut_count == 2);
    CHECK(rule->lut[1] == 10 && rule->lut[3] == 7.5);
    CHECK(!cogpu_vrt_source_is_simple(&vrt->sources.entries[0], COGPU_RESAMPLE_DEFAULT));
    CHECK(parse(COMPLEX("<Exponent>2</Exponent><SrcMin>1</SrcMin><SrcMax>3</SrcMax>"
                        "<DstMin>4</DstMin><DstMax>5</DstMax><Clip>false</Clip>")) == COGPU_OK);
    rule = vrt->sources.entries[0].bands[0].rule;
    CHECK(rule->scaling == COGPU_SCALING_EXPONENT && rule->exponent == 2 && !rule->is_clipped);
    CHECK(rule->source_from == 1 && rule->source_to == 3 && rule->from == 4 && rule->to == 5);
    CHECK(parse(COMPLEX("<NODATA>7</NODATA>")) == COGPU_OK);
    CHECK(cogpu_vrt_source_is_simple(&vrt->sources.entries[0], COGPU_RESAMPLE_DEFAULT));
    CHECK(!cogpu_vrt_source_is_simple(&vrt->sources.entries[0], COGPU_RESAMPLE_CUBIC));
}

#define OF(name, band)                                                                             \
    "<SimpleSource><SourceFilename>" name "</SourceFilename><SourceBand>" band                     \
    "</SourceBand></SimpleSource>"

/* The same file in all bands is one source; each band keeps its order. */
static void groups(void) {
    CHECK(parse(ROOT(BAND(OF("a", "1") OF("b", "1") OF("a", "1")) BAND(OF("a", "2") OF("b", "2"))
                         BAND(OF("b", "3") OF("a", "3") OF("b", "1")))) == COGPU_OK);
    const cogpu_vrt_source *source = vrt->sources.entries;
    CHECK(vrt->sources.count == 4 && vrt->total_sources == 4);
    CHECK_TEXT(source[0].file.path, "a");
    CHECK_TEXT(source[1].file.path, "b");
    CHECK_TEXT(source[2].file.path, "a");
    CHECK_TEXT(source[3].file.path, "b");
    CHECK(source[0].band_count == 2 && source[0].bands[1].target == 2);
    CHECK(source[1].band_count == 3 && source[1].bands[2].band == 3);
    CHECK(source[2].band_count == 2 && source[2].bands[1].target == 3);
    CHECK(source[3].band_count == 1 && source[3].bands[0].target == 3);
}

static void many_sources_of_one_file(void) {
    enum { COUNT = 4000 };
    static char text[COUNT * 3 * 128];
    char *to = text;
    to += sprintf(to, "<VRTDataset rasterXSize=\"1\" rasterYSize=\"1\">");
    for (int band = 0; band < 3; band++) {
        to += sprintf(to, "<VRTRasterBand>");
        for (int i = 0; i < COUNT; i++)
            to += sprintf(to, "%s", OF("a", "1"));
        to += sprintf(to, "</VRTRasterBand>");
    }
    sprintf(to, "</VRTDataset>");
    CHECK(parse(text) == COGPU_OK);
    CHECK(vrt->sources.count == COUNT && vrt->sources.entries[COUNT - 1].band_count == 3);
}

static void masks(void) {
    CHECK(parse(ROOT("<MaskBand>" BAND(SIMPLE("")) "</MaskBand>" BAND(SIMPLE("")))) == COGPU_OK);
    CHECK(vrt->mask && vrt->mask->sources.count == 1 && vrt->sources.count == 1);
    CHECK(vrt->total_sources == 2);
    CHECK(parse(ROOT(BAND("<MaskBand>" BAND(SIMPLE("")) "</MaskBand>"))) == COGPU_OK);
    CHECK(!vrt->mask && vrt->bands[0].mask && vrt->bands[0].mask->sources.count == 1);
    fails(ROOT("<MaskBand>" BAND("") "</MaskBand>" BAND("<MaskBand>" BAND("") "</MaskBand>")),
          COGPU_CORRUPT, "dataset has one");
    fails(ROOT("<MaskBand/>" BAND("")), COGPU_CORRUPT, "<MaskBand>: it has no VRTRasterBand");
}

static void nested(void) {
    CHECK(parse(ROOT(BAND("<SimpleSource>" ROOT(BAND(SIMPLE(""))) "</SimpleSource>"))) == COGPU_OK);
    const cogpu_vrt_source *source = &vrt->sources.entries[0];
    CHECK(!source->file.path && source->file.nested && source->file.nested->width == 30);
    CHECK(source->file.nested->sources.count == 1 && vrt->total_sources == 2);
}

#define PAIR(side)                                                                                 \
    "<" side "GeoTransform>1,2,0,3,0,-2</" side "GeoTransform><" side                              \
    "InvGeoTransform>-0.5,0.5,0,1.5,0,-0.5</" side "InvGeoTransform>"
#define WARPED(options, source)                                                                    \
    "<VRTDataset rasterXSize=\"30\" rasterYSize=\"20\" subClass=\"VRTWarpedDataset\">"             \
    "<VRTRasterBand subClass=\"VRTWarpedRasterBand\"/><BlockXSize>16</BlockXSize>"                 \
    "<SrcOvrLevel>AUTO-2</SrcOvrLevel><GDALWarpOptions><ResampleAlg>Cubic</ResampleAlg>"           \
    "<Option name=\"INIT_DEST\">NO_DATA</Option><Option name=\"UNIFIED_SRC_NODATA\">YES</Option>"  \
    "<SourceDataset relativeToVRT=\"1\">a.tif</SourceDataset><WorkingDataType>Int16"               \
    "</WorkingDataType>" options "<Transformer><ApproxTransformer><MaxError>0.125</MaxError>"      \
    "<BaseTransformer><GenImgProjTransformer>" source PAIR(                                        \
        "Dst") "<ReprojectTransformer><ReprojectionTransformer><SourceSRS>EPSG:4326</SourceSRS>"   \
               "<TargetSRS>EPSG:3857</TargetSRS><Options><Option key=\"CENTER_LONG\">180</Option>" \
               "</Options></ReprojectionTransformer></ReprojectTransformer></"                     \
               "GenImgProjTransformer>"                                                            \
               "</BaseTransformer></ApproxTransformer></Transformer><BandList><BandMapping "       \
               "src=\"2\" "                                                                        \
               "dst=\"1\"><SrcNoDataReal>-1</SrcNoDataReal><DstNoDataReal>-2</DstNoDataReal>"      \
               "</BandMapping></BandList><DstAlphaBand>1</DstAlphaBand></GDALWarpOptions></"       \
               "VRTDataset>"

static void warped(void) {
    CHECK(parse(WARPED("", PAIR("Src"))) == COGPU_OK);
    const cogpu_vrt_warp *warp = vrt->warp;
    CHECK_TEXT(warp->file.path, "a.tif");
    CHECK(warp->file.relative && warp->resampling == COGPU_RESAMPLE_CUBIC);
    CHECK(warp->working_type == COGPU_TYPE_I16 && warp->max_error == 0.125);
    CHECK(warp->band_count == 1 && warp->bands[0].source == 2 && warp->bands[0].target == 1);
    CHECK_TEXT(warp->bands[0].source_nodata, "-1");
    CHECK_TEXT(warp->bands[0].target_nodata, "-2");
    CHECK_TEXT(warp->bands[0].initial, "NO_DATA");
    CHECK(warp->unites == COGPU_WARP_NODATA_PARTIAL); /* of one band */
    CHECK(warp->overview_level == -4 && warp->target_alpha == 1 && warp->option_count == 2);
    CHECK(warp->has_source_transform && warp->source_inverse[1] == 0.5);
    CHECK(warp->has_target_transform && warp->target_transform[5] == -2 && warp->reprojects);
    CHECK_TEXT(warp->source_srs, "EPSG:4326");
    CHECK_TEXT(warp->reprojection[0].name, "CENTER_LONG");
    CHECK_TEXT(warp->reprojection[0].value, "180");
    CHECK(vrt->bands[0].block_width == 16 && vrt->bands[0].block_height == 20);
}

static void warped_by_points(void) {
    CHECK(parse(WARPED("", "<SrcGCPTransformer><GCPTransformer><Order>2</Order><Reversed>0"
                           "</Reversed><GCPList><GCP Pixel=\"1\" Line=\"2\" X=\"3\" Y=\"4\"/>"
                           "</GCPList></GCPTransformer></SrcGCPTransformer>")) == COGPU_OK);
    CHECK(vrt->warp->gcp_count == 1 && vrt->warp->gcp_order == 2);
    CHECK(!vrt->warp->has_source_transform);
}

static void refused_warps(void) {
    fails(WARPED("<Cutline>POLYGON</Cutline>", PAIR("Src")), COGPU_UNSUPPORTED, "<Cutline>");
    fails(WARPED("", "<SrcTPSTransformer/>"), COGPU_UNSUPPORTED, "<SrcTPSTransformer>");
    fails(WARPED("", "<SrcGeoLocTransformer/>"), COGPU_UNSUPPORTED, "<SrcGeoLocTransformer>");
    fails(WARPED("", "<SrcHomographyTransformer/>"), COGPU_UNSUPPORTED, "Homography");
    fails(WARPED("", ""), COGPU_UNSUPPORTED, "SrcGeoTransform");
    fails(WARPED("<OpenOptions><OOI key=\"a\">b</OOI></OpenOptions>", PAIR("Src")),
          COGPU_UNSUPPORTED, "<OpenOptions>");
    fails("<VRTDataset rasterXSize=\"3\" rasterYSize=\"3\" subClass=\"VRTWarpedDataset\">"
          "<VRTRasterBand/></VRTDataset>",
          COGPU_CORRUPT, "GDALWarpOptions");
}

static void refused(void) {
    static const char *const classes[] = {"VRTDerivedRasterBand", "VRTRawRasterBand",
                                          "VRTPansharpenedRasterBand", "VRTProcessedRasterBand"};
    static const char *const kinds[] = {"KernelFilteredSource", "NoDataFromMaskSource",
                                        "ArraySource"};
    char text[512];
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        snprintf(text, sizeof text, ROOT("<VRTRasterBand subClass=\"%s\"/>"), classes[i]);
        fails(text, COGPU_UNSUPPORTED, classes[i]);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(text, sizeof text, ROOT(BAND("<%s>" FILE_A "</%s>")), kinds[i], kinds[i]);
        fails(text, COGPU_UNSUPPORTED, kinds[i]);
    }
    fails(ROOT("<VRTRasterBand subClass=\"VRTDerivedRasterBand\"><PixelFunctionType>sum"
               "</PixelFunctionType></VRTRasterBand>"),
          COGPU_UNSUPPORTED, "PixelFunctionType \"sum\"");
    fails("<VRTDataset rasterXSize=\"1\" rasterYSize=\"1\" subClass=\"VRTPansharpenedDataset\"/>",
          COGPU_UNSUPPORTED, "VRTPansharpenedDataset");
    fails(ROOT("<Group name=\"/\"/>"), COGPU_UNSUPPORTED, "<Group>");
    fails(ROOT("<VRTRasterBand dataType=\"CFloat16\"/>"), COGPU_UNSUPPORTED, "CFloat16");
    fails(ROOT(BAND(SIMPLE("<OpenOptions><OOI key=\"a\">b</OOI></OpenOptions>"))),
          COGPU_UNSUPPORTED, "<OOI>");
    fails(ROOT(BAND(SIMPLE(LEVEL("-1")))), COGPU_CORRUPT, "OVERVIEW_LEVEL");
    fails(ROOT(BAND(SIMPLE(LEVEL("only")))), COGPU_CORRUPT, "OVERVIEW_LEVEL");
    fails(ROOT(BAND("<SimpleSource resampling=\"gauss\">" FILE_A "</SimpleSource>")),
          COGPU_UNSUPPORTED, "gauss");
    fails(COMPLEX("<Exponent>2</Exponent><DstMin>0</DstMin><DstMax>1</DstMax>"), COGPU_UNSUPPORTED,
          "SrcMin");
}

static void malformed(void) {
    fails("", COGPU_CORRUPT, "VRTDataset");
    fails("<VRTDataset", COGPU_CORRUPT, "malformed");
    fails("<!DOCTYPE a [<!ENTITY b \"c\">]>" ROOT(BAND("")), COGPU_CORRUPT, "malformed");
    fails(ROOT("<VRTRasterBand>"), COGPU_CORRUPT, "malformed");
    fails(ROOT(""), COGPU_CORRUPT, "no VRTRasterBand");
    fails("<VRTDataset rasterXSize=\"0\" rasterYSize=\"1\"/>", COGPU_CORRUPT, "rasterXSize");
    fails("<VRTDataset rasterXSize=\"1\"/>", COGPU_CORRUPT, "rasterYSize");
    fails("<VRTDataset rasterXSize=\"1\" rasterYSize=\"2147483648\"/>", COGPU_CORRUPT,
          "rasterYSize");
    fails(ROOT(BAND("<SimpleSource/>")), COGPU_CORRUPT, "SourceFilename");
    fails(ROOT("\n" BAND("\n" SIMPLE("<SrcRect/>"))), COGPU_CORRUPT, "DstRect");
    fails(ROOT("\n" BAND("\n" SIMPLE(RECT("SrcRect", "0", "0", "1", "nan")
                                         RECT("DstRect", "0", "0", "1", "1")))),
          COGPU_CORRUPT, "line 3, <SrcRect>: ySize");
    fails(ROOT(BAND(
              SIMPLE(RECT("SrcRect", "0", "0", "1", "1") RECT("DstRect", "0", "0", "-1", "1")))),
          COGPU_CORRUPT, "<DstRect>: its size");
    fails(ROOT(BAND(
              SIMPLE(RECT("SrcRect", "1e10", "0", "1", "1") RECT("DstRect", "0", "0", "1", "1")))),
          COGPU_CORRUPT, "<SrcRect>: xOff");
    fails(ROOT(BAND(SIMPLE("<SourceBand>0</SourceBand>"))), COGPU_CORRUPT, "<SourceBand>");
    fails(ROOT(BAND("<NoDataValue>x</NoDataValue>")), COGPU_CORRUPT, "<NoDataValue>");
    fails(COMPLEX("<LUT>5:1,4:2</LUT>"), COGPU_CORRUPT, "<LUT>");
    fails(COMPLEX("<LUT>5</LUT>"), COGPU_CORRUPT, "<LUT>");
    fails(COMPLEX("<ColorTableComponent>5</ColorTableComponent>"), COGPU_CORRUPT, "Component");
    fails(ROOT("<OverviewList>2 1</OverviewList>" BAND("")), COGPU_CORRUPT, "<OverviewList>");
}

static void limited(void) {
    limits.sources = 1;
    fails(ROOT(BAND(OF("a", "1") OF("b", "1"))), COGPU_LIMIT_EXCEEDED, "limit: sources");
    CHECK(parse(ROOT(BAND(OF("a", "1")) BAND(OF("a", "2")))) == COGPU_OK);
    limits = cogpu_limits_complete(NULL);
    limits.bands = 1;
    fails(ROOT(BAND("") BAND("")), COGPU_LIMIT_EXCEEDED, "limit: bands");
    limits = cogpu_limits_complete(NULL);
    limits.vrt_bytes = 10;
    fails(ROOT(BAND("")), COGPU_LIMIT_EXCEEDED, "limit: vrt_bytes");
    limits = cogpu_limits_complete(NULL);
}

/* A text that is cut off or changed anywhere gives an error or a VRT, and no read past its end. */
static void cut_anywhere(void) {
    static const char whole[] = WARPED("", PAIR("Src"));
    for (size_t bytes = 0; bytes < sizeof whole - 1; bytes++) {
        char *text = malloc(bytes + 1);
        cogpu_arena_close(&arena);
        cogpu_arena_open(&arena, 1 << 24);
        memcpy(text, whole, bytes);
        CHECK(cogpu_vrt_parse(text, bytes, &limits, &arena, &vrt, &error) != COGPU_OK);
        free(text);
    }
}

static void identified(void) {
    const char *const good[] = {"<VRTDataset rasterXSize", "\xef\xbb\xbf <vrtdataset>",
                                "<?xml version=\"1.0\"?>\n<!-- c --> <VRTDataset>"};
    const char *const bad[] = {"", "II*", "<VRTDataset", "<PAMDataset>", "<VRTDatasets>"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(cogpu_vrt_identify(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!cogpu_vrt_identify(bad[i], strlen(bad[i])));
}

TESTS(vrt_parse) {
    limits = cogpu_limits_complete(NULL);
    RUN(dataset);
    RUN(defaults);
    RUN(bands);
    RUN(sources);
    RUN(levels_of_sources);
    RUN(kinds_of_sources);
    RUN(rules);
    RUN(groups);
    RUN(many_sources_of_one_file);
    RUN(masks);
    RUN(nested);
    RUN(warped);
    RUN(warped_by_points);
    RUN(refused_warps);
    RUN(refused);
    RUN(malformed);
    RUN(limited);
    RUN(cut_anywhere);
    RUN(identified);
    cogpu_arena_close(&arena);
    return FINISH();
}
