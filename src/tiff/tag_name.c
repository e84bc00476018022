/* Tags by name: the ones that TIFF 6, GeoTIFF, GDAL and common writers use. */
#include "tiff/tiff.h"

static const struct {
    uint16_t tag;
    const char *name;
} names[] = {
    {254, "NewSubfileType"}, {255, "SubfileType"}, {256, "ImageWidth"}, {257, "ImageLength"},
    {258, "BitsPerSample"}, {259, "Compression"}, {262, "PhotometricInterpretation"},
    {263, "Threshholding"}, {264, "CellWidth"}, {265, "CellLength"}, {266, "FillOrder"},
    {269, "DocumentName"}, {270, "ImageDescription"}, {271, "Make"}, {272, "Model"},
    {273, "StripOffsets"}, {274, "Orientation"}, {277, "SamplesPerPixel"}, {278, "RowsPerStrip"},
    {279, "StripByteCounts"}, {280, "MinSampleValue"}, {281, "MaxSampleValue"},
    {282, "XResolution"}, {283, "YResolution"}, {284, "PlanarConfiguration"}, {285, "PageName"},
    {286, "XPosition"}, {287, "YPosition"}, {288, "FreeOffsets"}, {289, "FreeByteCounts"},
    {290, "GrayResponseUnit"}, {291, "GrayResponseCurve"}, {292, "T4Options"}, {293, "T6Options"},
    {296, "ResolutionUnit"}, {297, "PageNumber"}, {301, "TransferFunction"}, {305, "Software"},
    {306, "DateTime"}, {315, "Artist"}, {316, "HostComputer"}, {317, "Predictor"},
    {318, "WhitePoint"}, {319, "PrimaryChromaticities"}, {320, "ColorMap"},
    {321, "HalftoneHints"}, {322, "TileWidth"}, {323, "TileLength"}, {324, "TileOffsets"},
    {325, "TileByteCounts"}, {330, "SubIFDs"}, {332, "InkSet"}, {333, "InkNames"},
    {334, "NumberOfInks"}, {336, "DotRange"}, {337, "TargetPrinter"}, {338, "ExtraSamples"},
    {339, "SampleFormat"}, {340, "SMinSampleValue"}, {341, "SMaxSampleValue"},
    {342, "TransferRange"}, {347, "JPEGTables"}, {512, "JPEGProc"},
    {513, "JPEGInterchangeFormat"}, {514, "JPEGInterchangeFormatLength"},
    {515, "JPEGRestartInterval"}, {517, "JPEGLosslessPredictors"}, {518, "JPEGPointTransforms"},
    {519, "JPEGQTables"}, {520, "JPEGDCTables"}, {521, "JPEGACTables"},
    {529, "YCbCrCoefficients"}, {530, "YCbCrSubSampling"}, {531, "YCbCrPositioning"},
    {532, "ReferenceBlackWhite"}, {700, "XMP"}, {32997, "ImageDepth"}, {32998, "TileDepth"}, {33432, "Copyright"},
    {33550, "ModelPixelScale"}, {33723, "IPTC"}, {33922, "ModelTiepoint"},
    {34264, "ModelTransformation"}, {34377, "Photoshop"}, {34665, "ExifIFD"},
    {34675, "ICCProfile"}, {34735, "GeoKeyDirectory"}, {34736, "GeoDoubleParams"},
    {34737, "GeoAsciiParams"}, {34853, "GPSIFD"}, {42112, "GDAL_METADATA"},
    {42113, "GDAL_NODATA"}, {50674, "LercParameters"}, {50844, "RPCCoefficient"},
};

const char *cogpu_tag_name(uint32_t tag) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].tag == tag)
            return names[i].name;
    return "unknown";
}
