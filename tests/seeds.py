"""Seeds for the fuzz targets: takes a folder, fills FOLDER/fuzz_NAME/ for the targets whose input is no TIFF
file, and FOLDER/tiff/ with small files of every codec, type and layout for the others.

Made and not kept, because they are GDAL's output. Replayed in every build, and where a fuzzer begins.
"""

import json
import pathlib
import struct
import subprocess
import sys
import warnings
import zlib

import imagecodecs
import numpy as np
import rasterio
import rasterio.shutil
import tifffile
from rasterio.errors import NotGeoreferencedWarning, RasterioError

ROOT = pathlib.Path(__file__).resolve().parents[1]
LAYOUTS = {"strips": {"blockysize": 16}, "tiles": {"tiled": True, "blockxsize": 16, "blockysize": 16}}
PHOTOMETRICS = [0, 1, 2, 3, 5, 6]  # as fuzz_codec.c has them
# Name, driver options, sample types, bands.
KINDS = [
    ("none", {}, ["uint8", "int16", "uint32", "float64", "complex64"], 2),
    ("planar", {"interleave": "band"}, ["uint16"], 3),
    ("packbits", {"compress": "packbits"}, ["uint8"], 1),
    ("lzw", {"compress": "lzw", "predictor": 2}, ["uint16"], 2),
    ("deflate2", {"compress": "deflate", "predictor": 2}, ["uint8", "int32"], 3),
    ("deflate3", {"compress": "deflate", "predictor": 3}, ["float32"], 1),
    ("big_endian", {"compress": "deflate", "endianness": "big"}, ["float32"], 1),
    ("bigtiff", {"compress": "zstd", "bigtiff": "yes"}, ["uint16"], 1),
    ("lzma", {"compress": "lzma"}, ["uint8"], 1),
    ("jpeg", {"compress": "jpeg", "photometric": "ycbcr"}, ["uint8"], 3),
    ("webp", {"compress": "webp", "webp_lossless": True}, ["uint8"], 4),
    ("lerc", {"compress": "lerc"}, ["float32"], 1),
    ("lerc_zstd", {"compress": "lerc_zstd"}, ["uint16"], 1),
    ("g4", {"compress": "ccittfax4", "nbits": 1}, ["uint8"], 1),
    ("g3", {"compress": "ccittfax3", "nbits": 1}, ["uint8"], 1),
    ("bits", {"nbits": 12}, ["uint16"], 1),
    ("sparse", {"compress": "deflate", "sparse_ok": True, "nodata": 7}, ["uint8"], 1),
    ("georeferenced", {"crs": "EPSG:32632", "transform": rasterio.Affine(10, 0, 4e5, 0, -10, 5e6),
                       "nodata": -9999}, ["float32"], 1),
]


def pixels(name, kind, bands):
    if name == "sparse":
        return np.full((bands, 37, 41), 7, kind)
    rows, columns = np.mgrid[:37, :41]
    steps = np.stack([(rows * (band + 2) + columns) % 97 for band in range(bands)])
    return (steps % 2 if name in ("g3", "g4") else steps).astype(kind)


def write(path, array, **options):
    """False where this GDAL lacks the codec."""
    bands, height, width = array.shape
    try:
        with rasterio.open(path, "w", driver="GTiff", count=bands, height=height, width=width, dtype=array.dtype,
                           **options) as file:
            file.write(array)
    except RasterioError:
        path.unlink(missing_ok=True)
        return False
    return True


def make_tiffs(folder):
    for name, options, kinds, bands in KINDS:
        for kind in kinds:
            for layout, grid in LAYOUTS.items():
                write(folder / f"{name}_{kind}_{layout}.tif", pixels(name, kind, bands), **options, **grid)
    base = folder / "none_int16_tiles.tif"
    data = base.read_bytes()
    (folder / "cut_off.tif").write_bytes(data[:len(data) // 2])
    with rasterio.open(base) as file:
        rasterio.shutil.copy(file, folder / "cog.tif", driver="COG", blocksize=128, compress="deflate")


# Codecs that GDAL lacks, as tifffile writes them: name, compression, options of the encoder, sample types, bands.
IMAGE_CODECS = [("jpeg2000", "jpeg2000", {}, ["uint8", "uint16"], 3),
                ("jp2", "jpeg2000", {"codecformat": "jp2"}, ["uint8"], 1),
                ("jpegxl", "jpegxl", {"lossless": True}, ["uint8", "uint16", "float32"], 3),
                ("jpegxl_lossy", "jpegxl", {"distance": 2.0}, ["uint8"], 3)]


def make_image_tiffs(folder):
    for name, compression, options, kinds, bands in IMAGE_CODECS:
        for kind in kinds:
            array = pixels(name, kind, bands) / (97 if kind == "float32" else 1)
            for layout, grid in (("strips", {"rowsperstrip": 16}), ("tiles", {"tile": (16, 16)})):
                tifffile.imwrite(folder / f"{name}_{kind}_{layout}.tif", array.transpose(1, 2, 0).astype(kind).squeeze(),
                                 compression=compression, compressionargs=options, metadata=None,
                                 photometric="rgb" if bands == 3 else "minisblack", **grid)


def make_old_jpeg(folder):
    """Old-style JPEG: the strip is a stream, with and without the tag that says where it is."""
    array = pixels("old_jpeg", "uint8", 3).transpose(1, 2, 0).copy()
    stream = bytes(imagecodecs.jpeg8_encode(array, level=80, subsampling="420"))
    for name, tags in (("stream", []), ("tag", [(513, 4, 8), (514, 4, len(stream))])):
        path = folder / f"old_jpeg_{name}.tif"
        entries = [(256, 3, 41), (257, 3, 37), (258, 3, 8), (259, 3, 6), (262, 3, 6), (273, 4, 8), (277, 3, 3),
                   (278, 3, 37), (279, 4, len(stream))] + tags
        directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry[:2], 1, entry[2])
                                                                for entry in entries) + bytes(4)
        start = 8 + len(stream) + len(stream) % 2
        path.write_bytes(b"II*\0" + struct.pack("<I", start) + stream.ljust(start - 8, b"\0") + directory)


def make_streams(folder, tiffs):
    """A first block of each file after the 12 bytes by which fuzz_codec chooses codec and format."""
    devices = subprocess.run([ROOT / "build" / "cogpu", "devices", "--json"], capture_output=True, check=True).stdout
    numbers = [codec["compression"] for codec in json.loads(devices)["codecs"]]
    depths = [8, 1, 2, 4, 12, 16, 32, 64]
    for path in sorted(tiffs.glob("*_*_*.tif")):
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            if page.bitspersample not in depths or not page.databytecounts[0]:
                continue
            stream = path.read_bytes()[page.dataoffsets[0]:][:page.databytecounts[0]]
            tables = page.jpegtables if page.jpegtables and len(page.jpegtables) < 256 else b""
            width = page.tilewidth if page.is_tiled else page.imagewidth
            height = page.tilelength if page.is_tiled else page.rowsperstrip
            samples = page.samplesperpixel if page.planarconfig == 1 else 1
            choice = [numbers.index(page.compression), width - 1, height - 1, samples - 1,
                      depths.index(page.bitspersample), max("uif".find(page.dtype.kind), 0),
                      PHOTOMETRICS.index(page.photometric), 0, 0, 0, "lerc_zstd" in path.stem and 2, len(tables)]
        (folder / path.stem).write_bytes(bytes(choice) + tables + stream)


def make_kernel_streams(folder, tiffs):
    """The first block of each file whose codec a kernel decodes, for the target of that kernel."""
    targets = {8: "fuzz_kernel_inflate", 50000: "fuzz_kernel_zstd", 5: "fuzz_kernel_lzw", 32773: "fuzz_kernel_packbits"}
    for target in targets.values():
        (folder / target).mkdir(parents=True, exist_ok=True)
    for path in sorted(tiffs.glob("*_*_*.tif")):
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            target = targets.get(int(page.compression))
            if target is None or not page.databytecounts[0]:
                continue
            stream = path.read_bytes()[page.dataoffsets[0]:][:page.databytecounts[0]]
            rows = page.tilelength if page.is_tiled else page.rowsperstrip
            samples = page.samplesperpixel if page.planarconfig == 1 else 1
            capacity = rows * (page.tilewidth if page.is_tiled else page.imagewidth) * samples * page.bitspersample // 8
        choice = bytes([0, (capacity - 1) % 256, (capacity - 1) // 256, 255])  # see tests/fuzz/kernel_target.h
        (folder / target / path.stem).write_bytes(choice + stream)


def make_lane_streams(folder, tiffs):
    """The first blocks of each deflate file side by side, after the options of fuzz_inflate_lanes: as zlib streams, and
    as content that the target compresses. tests/fuzz/fuzz_inflate_lanes.c has the format."""
    for path in sorted(tiffs.glob("*_*_*.tif")):
        with tifffile.TiffFile(path) as file:
            page = file.pages[0]
            if int(page.compression) != 8:
                continue
            data = path.read_bytes()
            streams = [data[start:][:count] for start, count in zip(page.dataoffsets, page.databytecounts) if count][:6]
        if not streams:
            continue
        contents = [imagecodecs.zlib_decode(stream)[:900] for stream in streams]
        for kind, blocks in ((0, streams), (1, [stream[2:] for stream in streams]), (2, contents), (3, contents)):
            parts = [struct.pack("<BHHB", kind | 6 << 3, len(block), 100, 2) + block for block in blocks]
            (folder / f"{path.stem}_{kind}").write_bytes(bytes([2 * (len(blocks) - 1) + kind % 2]) + b"".join(parts))


def make_deflate_streams(folder):
    """Deflate streams of all kinds of blocks, after the 2 bytes by which fuzz_inflate_chunk divides input and output."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    noise = random.integers(0, 256, 1500, "u1").tobytes()
    contents = {"noise": noise, "far": noise + bytes(31000) + noise, "run": b"a" * 4000,
                "samples": (random.integers(0, 40, 5000, "u1") * random.integers(0, 2, 5000, "u1")).tobytes()}
    for name, content in contents.items():
        for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY):
            for flush in (zlib.Z_NO_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_SYNC_FLUSH):
                stream = zlib.compressobj(6, zlib.DEFLATED, -15, 8, strategy)
                parts = [stream.compress(content[at:at + 700]) + stream.flush(flush) for at in range(0, len(content), 700)]
                data = bytes([40, 90]) + b"".join(parts) + stream.flush()
                (folder / f"{name}_{strategy}_{flush}").write_bytes(data)


def make_texts(metadata, nodata):
    (metadata / "items").write_text('<GDALMetadata>\n  <Item name="DESCRIPTION" sample="0" role="description">red'
                                    '</Item>\n  <Item name="A &amp; B" domain="X">1 &lt; 2</Item>\n</GDALMetadata>')
    (metadata / "odd").write_text("<GDALMetadata><Item name='a'/><!-- b --><Item>c</Item><Other><Item")
    for number, text in enumerate(["-9999", "nan", "1e30", "-3.4028234663852886e+38", "255", "", "1 2", "0x10"]):
        (nodata / str(number)).write_bytes(bytes([number * 2 + 1]) + text.encode())


def make_urls(folder):
    """A URL, and where a redirect leads from there."""
    texts = ["https://user:p%40ss@Example.COM:8443/a%20b/c.tif?x=1&y=[2]#top\n../d;e?f", "s3://bucket/key with spaces",
             "http://[2001:db8::1]:80/a\n//b.example/c/./../d", "HTTP://0x7f.1?q\nhttps://c/%e9",
             "https://h/a\nhttp://h/a"]
    for number, text in enumerate(texts):
        (folder / str(number)).write_text(text)


def make_responses(folder):
    """Lines of servers, after the 4 bytes by which fuzz_response chooses: bytes 100 to 199 are requested."""
    part = "HTTP/1.1 206 Partial Content\r\n"
    responses = [part + 'Content-Range: bytes 100-199/1000\r\nContent-Length: 100\r\nETag: "a1"\r\n\r\n',
               part + "Content-Range: bytes 100-149/150\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
               'HTTP/2 200 \r\ncontent-length: 1000\r\netag: W/"a1"\r\ncontent-type: text/html; charset=utf-8\r\n\r\n',
               "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: https://host/b.tif\r\n\r\n",
               "HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nRetry-After: Sun, 06 Nov 1994 08:50:37 GMT\r\n\r\n",
               "HTTP/1.1 416 X\r\nContent-Range: bytes */1000\r\n\r\n",
               part + "Content-Range: bytes 100-299/300\r\nContent-Length: 200\r\n\r\n",
               part + "Content-Range: bytes 100-199/9223372036854775807\r\nContent-Encoding: gzip\r\n\r\n"]
    for number, response in enumerate(responses):
        for known in (0, 7):
            (folder / f"{number}_{known}").write_bytes(bytes([known, 1, 99, 0]) + response.encode())


def make_s3_bodies(folder):
    """Response bodies of S3: a request that failed, an upload that begins, and its end."""
    (folder / "error").write_text('<?xml version="1.0"?>\n<Error><Code>AuthorizationHeaderMalformed</Code><Message>'
                                  "region 'a' &lt; <![CDATA[b]]>; expecting 'c'</Message><Region>c</Region></Error>")
    (folder / "begun").write_text('<InitiateMultipartUploadResult xmlns="u"><!-- --><Bucket/><UploadId>a&#65;b'
                                  "</UploadId></InitiateMultipartUploadResult>")
    (folder / "done").write_text("<CompleteMultipartUploadResult><ETag>&quot;a&quot;</ETag>"
                                 "</CompleteMultipartUploadResult>")


def make_sidecars(folder):
    """The byte by which fuzz_sidecar chooses a reader, and a text for it."""
    names = ["ERR_BIAS", "ERR_RAND", "LINE_OFF", "SAMP_OFF", "LAT_OFF", "LONG_OFF", "HEIGHT_OFF", "LINE_SCALE",
             "SAMP_SCALE", "LAT_SCALE", "LONG_SCALE", "HEIGHT_SCALE"]
    lists = ["LINE_NUM_COEFF", "LINE_DEN_COEFF", "SAMP_NUM_COEFF", "SAMP_DEN_COEFF"]
    rpb = ["errBias", "errRand", "lineOffset", "sampOffset", "latOffset", "longOffset", "heightOffset", "lineScale",
           "sampScale", "latScale", "longScale", "heightScale"]
    rpb_lists = ["lineNumCoef", "lineDenCoef", "sampNumCoef", "sampDenCoef"]
    numbers = "(" + ", ".join(f"{i}e-3" for i in range(20)) + ")"
    pam = ('<PAMDataset><SRS coordinateEpoch="2020">EPSG:4326</SRS><GeoTransform> 1.0, 2, 0, 3, 0, -4</GeoTransform>'
           '<GCPList Projection="x"><GCP Id="1" Info="i" Pixel="1" Line="2" X="3" Y="4" Z="5"/></GCPList>'
           '<Metadata><MDI key="a">b &amp; c</MDI></Metadata>'
           '<Metadata domain="xml:X" format="xml"><q r="s"/></Metadata>'
           '<PAMRasterBand band="1"><Description>d</Description><NoDataValue le_hex_equiv="000000000000F03F">1'
           "</NoDataValue><UnitType>m</UnitType><Offset>1</Offset><Scale>2</Scale><ColorInterp>Palette</ColorInterp>"
           '<ColorTable><Entry c1="1" c2="2" c3="3" c4="255"/></ColorTable><CategoryNames><Category>w</Category>'
           "</CategoryNames></PAMRasterBand></PAMDataset>")
    points = "<Double>0</Double><Double>-1</Double>"
    xform = ("<GeodataXform><SpatialReference><WKT>GEOGCS[]</WKT></SpatialReference>"
             f"<PolynomialOrder>1</PolynomialOrder><CoeffX>{points}<Double>2</Double></CoeffX>"
             f"<CoeffY>{points}<Double>3</Double></CoeffY>"
             f"<SourceGCPs>{points}</SourceGCPs><TargetGCPs>{points}</TargetGCPs></GeodataXform>")
    rpc_pam = '<PAMDataset><Metadata domain="RPC">' + "".join(
        f'<MDI key="{name}">1</MDI>' for name in names) + "".join(
        f'<MDI key="{name}">{numbers[1:-1]}</MDI>' for name in lists) + "</Metadata></PAMDataset>"
    in_pam = f'<PAMDataset><Metadata domain="xml:ESRI" format="xml">{xform}</Metadata></PAMDataset>'
    texts = [(0, pam), (0, xform), (0, in_pam), (0, rpc_pam), (1, "2,5\n0\n0\n-2\n100\n\n200\n"), (1, "nan\n" * 6),
             (2, "BEGIN_GROUP = IMAGE\n" + "".join(f"\t{name} = 1.5;\n" for name in rpb) + "".join(
                 f"{name} = {numbers};\n" for name in rpb_lists) + "END_GROUP = IMAGE\nEND;\n"),
             (3, "".join(f"{name}: 1 m\r\n" for name in names) + "".join(
                 f"{name}_{i}: {i}\r\n" for name in lists for i in range(1, 21))),
             (4, '<metadata><refSysInfo><RefSystem><refSysID><identCode code="25832"/></refSysID></RefSystem>'
                 "</refSysInfo></metadata>")]
    for number, (kind, text) in enumerate(texts):
        (folder / str(number)).write_bytes(bytes([kind]) + text.encode())


def make_vrts(folder):
    rects = ('<SrcRect xOff="0" yOff="1.5" xSize="10" ySize="10"/><DstRect xOff="-2" yOff="0.25" xSize="5" ySize="7"/>')
    file = '<SourceFilename relativeToVRT="1">a.tif</SourceFilename><SourceBand>1</SourceBand>'
    rule = ("<NODATA>1</NODATA><ScaleOffset>1</ScaleOffset><ScaleRatio>2</ScaleRatio><LUT>0:1,2:3</LUT>"
            "<UseMaskBand>true</UseMaskBand><ColorTableComponent>1</ColorTableComponent>")
    simple = f'<SimpleSource resampling="cubic">{file}{rects}</SimpleSource>'
    band = ('<VRTRasterBand dataType="Int16" band="1"><NoDataValue>-1</NoDataValue>'
            f"<HideNoDataValue>1</HideNoDataValue><ColorInterp>Gray</ColorInterp><ColorTable><Entry c1=\"1\"/></ColorTable>{simple}<ComplexSource>{file}"
            f"{rects}{rule}</ComplexSource><Overview>{file}</Overview><MaskBand><VRTRasterBand>{simple}</VRTRasterBand>"
            "</MaskBand></VRTRasterBand>")
    head = ('<SRS dataAxisToSRSAxisMapping="2,1">EPSG:4326</SRS><GeoTransform>0,1,0,0,0,-1</GeoTransform>'
            '<GCPList Projection="x"><GCP Pixel="1" Line="2" X="3" Y="4"/></GCPList>'
            '<OverviewList resampling="average">2 4</OverviewList>')
    root = '<VRTDataset rasterXSize="30" rasterYSize="20"'
    plain = f"{root}>{head}{band}{band}</VRTDataset>"
    nested = f"{root}><VRTRasterBand><SimpleSource>{plain}</SimpleSource></VRTRasterBand></VRTDataset>"
    six = "".join(f"<{side}{kind}>1,2,0,3,0,-2</{side}{kind}>" for side in ("Src", "Dst")
                  for kind in ("GeoTransform", "InvGeoTransform"))
    warped = (f'{root} subClass="VRTWarpedDataset"><VRTRasterBand subClass="VRTWarpedRasterBand"/><SrcOvrLevel>AUTO-1'
              "</SrcOvrLevel><GDALWarpOptions><ResampleAlg>Bilinear</ResampleAlg>"
              '<Option name="INIT_DEST">NO_DATA</Option><SourceDataset>a.tif</SourceDataset><Transformer>'
              f"<ApproxTransformer><MaxError>0.125</MaxError><BaseTransformer><GenImgProjTransformer>{six}"
              "<ReprojectTransformer><ReprojectionTransformer><SourceSRS>EPSG:4326</SourceSRS><TargetSRS>EPSG:3857"
              "</TargetSRS></ReprojectionTransformer></ReprojectTransformer></GenImgProjTransformer></BaseTransformer>"
              '</ApproxTransformer></Transformer><BandList><BandMapping src="1" dst="1">'
              "<SrcNoDataReal>0</SrcNoDataReal></BandMapping></BandList></GDALWarpOptions></VRTDataset>")
    for name, text in (("plain", plain), ("nested", nested), ("warped", warped)):
        (folder / name).write_text(text)


def make_grids(folder):
    """Choices of fuzz_grid: pairs of its CRSs, and requests."""
    for pair in range(18):
        source, target = pair // 2, (pair * 5 + 1) % 9
        (folder / f"pair_{source}_{target}").write_bytes(bytes([source, 128, 240, target, 128, 240, 1, 16, 16, 1, 0, 0]))
    for number, (fields, doubles) in enumerate([
            (17, [1000, 1000]), (25, [0.5, 0.5]), (33, [-10, -10, 20, 20]), (97, [0, 40, 10, 50]), (7, []),
            (135, [0, 1, 0, 0, 0, -1]), (17, [float("nan"), 1]), (33, [1e300, -1e300, 5e-324, float("inf")])]):
        numbers = [-5e5, 1e4, 0, 5e5, 0, -1e4] * 2 + doubles
        (folder / f"request_{number}").write_bytes(bytes([2, 100, 9, 0, 100, 9, fields, 1, 1, 0, 0, 0])
                                                   + struct.pack(f"<{len(numbers)}d", *numbers))


def main():
    warnings.simplefilter("ignore", NotGeoreferencedWarning)
    folders = [pathlib.Path(sys.argv[1]) / name for name in ("tiff", "fuzz_codec", "fuzz_metadata", "fuzz_nodata",
                                                            "fuzz_url", "fuzz_response", "fuzz_s3_xml",
                                                            "fuzz_grid", "fuzz_inflate_lanes",
                                                            "fuzz_sidecar", "fuzz_vrt")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    tiffs, streams, metadata, nodata, urls, responses, s3_bodies, grids, lane_streams, sidecars, vrts = folders
    make_tiffs(tiffs)
    make_image_tiffs(tiffs)
    make_old_jpeg(tiffs)
    make_streams(streams, tiffs)
    make_kernel_streams(pathlib.Path(sys.argv[1]), tiffs)
    make_lane_streams(lane_streams, tiffs)
    make_deflate_streams(pathlib.Path(sys.argv[1]) / "fuzz_inflate_chunk")
    make_texts(metadata, nodata)
    make_urls(urls)
    make_responses(responses)
    make_s3_bodies(s3_bodies)
    make_grids(grids)
    make_sidecars(sidecars)
    make_vrts(vrts)


if __name__ == "__main__":
    main()
