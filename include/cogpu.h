/*
 * cogpu: GeoTIFF and Cloud Optimized GeoTIFF rasters, read into the caller's memory, be it the
 * host's or a GPU's.
 *
 * This header is the manual. In short:
 *
 *     cogpu_file *file = NULL;
 *     cogpu_image image;
 *     cogpu_error error;
 *     if (cogpu_open("dem.tif", NULL, &file, &error) != COGPU_OK ||
 *         cogpu_info(file, 0, &image, &error) != COGPU_OK)
 *         return fail(error.message);
 *     float *pixels = malloc(sizeof(float) * image.bands * image.width * image.height);
 *     cogpu_raster raster = {.data = pixels, .type = COGPU_F32, .bands = image.bands,
 *                            .width = image.width, .height = image.height};
 *     if (cogpu_read(file, NULL, &raster, NULL, &error) != COGPU_OK)
 *         return fail(error.message);
 *     cogpu_close(file);
 *
 * Rules that hold for every function:
 *
 * - What can fail returns a cogpu_status and fills the caller's cogpu_error, which may be NULL.
 * - Pointers that a function fills must not be NULL, unless it says so.
 * - The caller owns every buffer it passes. Strings and arrays that the library hands out belong to
 *   the file and live until cogpu_close.
 * - A file may be used by many threads at once, cogpu_close excepted. So may a context.
 * - Nothing is printed, no signal is raised, the process is never ended, and there is no hidden
 *   global or thread-local state.
 * - Zero the structs that the caller fills (`= {0}`) and set what matters: zero means the default.
 * - Files are not trusted: every size in a file is compared with the limits before it is used.
 */
#ifndef COGPU_H
#define COGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COGPU_VERSION_MAJOR 0
#define COGPU_VERSION_MINOR 1
#define COGPU_VERSION_PATCH 0

#if defined(__GNUC__)
#define COGPU_API        __attribute__((visibility("default")))
#define COGPU_MUST_CHECK __attribute__((warn_unused_result))
#else
#define COGPU_API
#define COGPU_MUST_CHECK
#endif

/* "0.1.0"; the library's own, which may differ from the header a program was built with. */
COGPU_API const char *cogpu_version(void);

/* ---------------------------------------------------------------------------------------------
 * Errors
 */

typedef enum cogpu_status {
    COGPU_OK = 0,
    COGPU_ARGUMENT,    /* the call itself is wrong: a window outside the image, a wrong type */
    COGPU_MEMORY,      /* an allocation failed */
    COGPU_IO,          /* the operating system or a user's source failed */
    COGPU_FORMAT,      /* not a TIFF at all */
    COGPU_CORRUPT,     /* a TIFF whose content contradicts itself or is cut off */
    COGPU_UNSUPPORTED, /* valid, but this build or this library cannot read it */
    COGPU_LIMIT,       /* beyond a limit that the caller may raise: see cogpu_limits */
    COGPU_DEVICE,      /* a GPU failed, or there is none of that number */
    COGPU_ABSENT,      /* what was asked for is not there: no such file, image, level, tag */
    COGPU_CANCELLED    /* the caller's progress function cancelled the call */
} cogpu_status;

/* What went wrong and where; -1 where a place does not apply. Owned by the caller. */
typedef struct cogpu_error {
    cogpu_status status;
    int32_t directory; /* index of the TIFF directory, in the order of cogpu_directory_info */
    int64_t block;     /* index of the tile or strip within the directory */
    int64_t offset;    /* byte offset in the file */
    char message[232]; /* what, where and what to do; always terminated */
} cogpu_error;

/* "ok", "argument", "memory", ... */
COGPU_API const char *cogpu_status_name(cogpu_status status);

/* Progress of a long call: `done` of `total` blocks. A non-zero result cancels the call, which then
 * returns COGPU_CANCELLED. Calls come from one thread at a time, not always the same thread. */
typedef int (*cogpu_progress)(void *user, uint64_t done, uint64_t total);

/* ---------------------------------------------------------------------------------------------
 * Sample types
 */

typedef enum cogpu_type {
    COGPU_TYPE_NONE = 0,
    COGPU_U8,
    COGPU_I8,
    COGPU_U16,
    COGPU_I16,
    COGPU_U32,
    COGPU_I32,
    COGPU_U64,
    COGPU_I64,
    COGPU_F16,
    COGPU_F32,
    COGPU_F64,
    COGPU_CI16, /* complex integers: a pair of I16 */
    COGPU_CI32, /* a pair of I32 */
    COGPU_CF32, /* complex floats: a pair of F32 */
    COGPU_CF64  /* a pair of F64 */
} cogpu_type;

/* Bytes of one sample: 1 to 16; 0 for COGPU_TYPE_NONE or a value that is no type. */
COGPU_API size_t cogpu_type_bytes(cogpu_type type);

/* "uint8", "float32", "complex_int16", "complex64", ... (NumPy's name where NumPy has the type). */
COGPU_API const char *cogpu_type_name(cogpu_type type);
/* The type of such a name, or of GDAL's ("Byte", "UInt16", "CInt16", "CFloat32"), in any case of
 * letters. COGPU_ARGUMENT for a name that is no type. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_type_parse(const char *name, cogpu_type *type);

/* ---------------------------------------------------------------------------------------------
 * Opening
 */

typedef struct cogpu_file cogpu_file;

/* Memory, threads, devices, cached blocks and the registry of coordinate systems, which several
 * calls share; made by cogpu_context_open. Optional for reads into host memory: such a read
 * without one takes what it needs for itself. A read into device memory needs one, which keeps the
 * device's working memory. Several threads may use it. */
typedef struct cogpu_context cogpu_context;

/* What a file may ask of us at most; 0 in a field means the default named beside it. A file that
 * wants more gets COGPU_LIMIT with the limit's name. */
typedef struct cogpu_limits {
    uint64_t directories; /* 65,536     directories in a file, SubIFDs counted */
    uint64_t tags;        /* 4,096      entries in one directory */
    uint64_t tag_bytes;   /* 64 MiB     bytes of one tag's value that is taken into memory */
    uint64_t blocks;      /* 2^31 - 1   blocks in one directory */
    uint64_t block_bytes; /* 1 GiB      bytes of one block that is held whole, decoded or stored */
    uint64_t bands;       /* 65,535     bands of an image */
    uint64_t call_bytes;  /* 4 GiB      memory that one call may take beside the caller's raster */
} cogpu_limits;

/* How files on the network are read and written; 0 or NULL in a field means the default named
 * beside it. */
typedef struct cogpu_network {
    uint32_t connections;     /* 16       that are open at once */
    uint32_t requests;        /* 64       that are under way at once: HTTP/2 has several on one
                               * connection */
    uint64_t header_bytes;    /* 16 KiB   of a file, that the first request asks for */
    uint64_t gap_bytes;       /* 64 KiB   between blocks, that are read along in one request */
    uint64_t request_bytes;   /* 8 MiB    that one request asks for */
    uint64_t held_bytes;      /* 48 MiB   that have come and wait to be decoded */
    uint64_t whole_bytes;     /* 16 MiB   of a file whose server knows no ranges, so that all of it
                               * has to come */
    uint32_t retries;         /* 4        of a request that the network or the server has failed */
    double connect_seconds;   /* 10       until a connection stands */
    double stall_seconds;     /* 30       with fewer than least_bytes a second */
    uint32_t least_bytes;     /* 100 */
    double total_seconds;     /* 300      for a request, all its tries counted */
    double header_seconds;    /* 30       for which the header of a file that was opened is kept, so
                               * that opening it again sends no request; negative: never. A file that
                               * has    changed meanwhile is an error when its pixels are read, and is
                               * right    when it is opened after that */
    int private_addresses;    /* non-zero: addresses of this machine and of local networks may be
                               * read from and written to. Without it a URL from who knows where cannot
                               * reach what only this machine can */
    int link_local_addresses; /* non-zero: link-local addresses, and others at which clouds serve
                               * metadata and credentials (169.254.169.254, fd00:ec2::254), may be
                               * read from; private_addresses does not allow them */
    const char *private_hosts; /* that may have private addresses: "host1,host2". Where a public
                                * server redirects to a private address, the host must be one of
                                * these, or that of the URL, also with private_addresses */
    const char *schemes;       /* "https,http,s3" that are allowed */
    const char *ca_file;       /* of certificates that are trusted; the system's */
    /* Of s3:// addresses. What is NULL comes from AWS_REGION, AWS_ENDPOINT_URL, AWS_PROFILE,
     * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the files of the AWS command
     * line. */
    const char *s3_region, *s3_endpoint, *s3_profile;
    const char *s3_access_key, *s3_secret_key, *s3_session_token;
    int s3_anonymous; /* non-zero: without credentials */
} cogpu_network;

/* Whether files beside PATH are read, as GDAL reads them: PATH.ovr, PATH.msk, PATH.aux.xml, world
 * files, RPC files; docs/sidecars.md lists them. What cannot be read of them becomes a warning. */
typedef enum cogpu_sidecars {
    COGPU_SIDECARS_DEFAULT = 0, /* of local files, not of URLs */
    COGPU_SIDECARS_NONE,
    COGPU_SIDECARS_ALL /* of URLs too: one request for each possible name */
} cogpu_sidecars;

typedef struct cogpu_open_options {
    cogpu_limits limits;
    cogpu_sidecars sidecars;
    cogpu_context *context; /* whose connections and settings of the network serve URLs, and which
                             * is closed after the file; may be NULL: the file has its own then.
                             * Connections do not live on in the child of a fork: there files
                             * behind URLs are opened again, with another context */
} cogpu_open_options;

/* Bytes of a source that are wanted, and where they go. */
typedef struct cogpu_source_read {
    uint64_t offset;
    size_t bytes;
    void *to;
} cogpu_source_read;

/* Where bytes come from, when it is neither a path nor memory. `read` puts `bytes` bytes that stand
 * at `offset` into `to`, sets *got, and returns COGPU_OK; fewer than asked means that the source
 * ends there. It is called from several threads at once, and must not call functions of a context.
 * `size` tells the length of the source.
 * `close`, if not NULL, is called once by cogpu_close, or by cogpu_open_source itself when it
 * fails.
 * `read_many`, if not NULL, takes the place of `read`, for a source each read of which is a request
 * over a network: what a call of ours will need is asked for together, neighbours as one, up to 32
 * MiB ahead. It should have all requests under way before it waits for one, and delivers all bytes
 * of all, or fails; then each is asked for again alone. */
typedef struct cogpu_source {
    void *user;
    cogpu_status (*read)(void *user, uint64_t offset, size_t bytes, void *to, size_t *got);
    cogpu_status (*size)(void *user, uint64_t *bytes);
    void (*close)(void *user);
    cogpu_status (*read_many)(void *user, const cogpu_source_read *reads, size_t count);
} cogpu_source;

/* Opens a file, reads its directories and says what they mean; no pixel is read. On failure *file
 * is NULL. `options` may be NULL. Memory given to cogpu_open_memory must live until cogpu_close;
 * where it is pinned (cuMemHostAlloc, cuMemHostRegister), GPUs take blocks straight from it. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open(const char *path,
                                                   const cogpu_open_options *options,
                                                   cogpu_file **file, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open_memory(const void *data, size_t bytes,
                                                          const cogpu_open_options *options,
                                                          cogpu_file **file, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open_source(const cogpu_source *source,
                                                          const cogpu_open_options *options,
                                                          cogpu_file **file, cogpu_error *error);

/* Version identifier of a file: of a URL ETag, Last-Modified and size, of a path size, modification
 * time and inode. The text differs once the file changed. Reads compare it, a path's at their begin
 * and end, and fail with COGPU_IO where the file changed since it was opened. A file that took the
 * path's name meanwhile does not matter to one that is open. NULL for memory and user's sources. */
COGPU_API const char *cogpu_state(const cogpu_file *file);

/* The paths or URLs of the sidecars in use, from 0 on; NULL past the last. */
COGPU_API const char *cogpu_sidecar_path(const cogpu_file *file, uint32_t index);

/* Frees the file and all it handed out. NULL is allowed. */
COGPU_API void cogpu_close(cogpu_file *file);

/* ---------------------------------------------------------------------------------------------
 * What is in the file
 *
 * A file holds images (GDAL calls them subdatasets); most hold one. An image is a pyramid of
 * levels, 0 the full resolution. Each level, and each mask, is a directory of the file.
 */

typedef enum cogpu_layout { COGPU_STRIPS = 0, COGPU_TILES } cogpu_layout;

/* The mask of an image: what tells valid pixels from others, in GDAL's order of precedence. */
typedef enum cogpu_validity {
    COGPU_ALL_VALID = 0,
    COGPU_BY_MASK,   /* a mask directory inside the file, or PATH.msk */
    COGPU_BY_NODATA, /* a nodata value */
    COGPU_BY_ALPHA   /* an alpha band */
} cogpu_validity;

/* The promises of GDAL's ghost area, a text between header and first directory. */
enum {
    COGPU_GHOST_PRESENT = 1,
    COGPU_GHOST_IFDS_BEFORE_DATA = 2,
    COGPU_GHOST_ROW_MAJOR = 4,
    COGPU_GHOST_LEADER = 8,            /* each block is preceded by its size */
    COGPU_GHOST_TRAILER = 16,          /* ... and followed by its last four bytes again */
    COGPU_GHOST_MASK_INTERLEAVED = 32, /* each block is followed by its mask's block */
    COGPU_GHOST_BROKEN = 64,           /* the file was edited since: no promise holds */
    COGPU_GHOST_TILE_INTERLEAVED = 128 /* planar, but the blocks of a place stand together, a band
                                        * after the other */
};

/* A nodata value as the file states it, and what it means for the image's sample type. */
typedef struct cogpu_nodata {
    const char *text; /* as in the file; NULL where none is stated */
    int matches;      /* non-zero where a sample can equal it: "-9999" on uint16 never matches */
    double value;     /* rounded to the sample type; exact for all but 64-bit integers */
    int64_t i64;      /* exact value of an I64 image's nodata */
    uint64_t u64;     /* exact value of a U64 image's nodata */
} cogpu_nodata;

/* A ground control point (GCP). */
typedef struct cogpu_gcp {
    double column, row, level; /* I, J, K of the file; the upper left corner of the image is 0, 0 */
    double x, y, z;
    const char *id, *info; /* of points in PATH.aux.xml; else NULL. Not written */
} cogpu_gcp;

typedef struct cogpu_image {
    uint32_t images;    /* images in the file */
    uint32_t directory; /* the directory of level 0 */
    uint32_t width, height;
    uint32_t bands;
    cogpu_type type; /* of samples as cogpu_read returns them, if it is not asked for floats */
    uint32_t bits;   /* stored bits of a sample, 1 to 128 */
    uint32_t levels; /* 1 = no overviews */
    cogpu_layout layout;
    uint32_t block_width, block_height;
    uint64_t blocks;      /* in the directory of level 0 */
    int planar;           /* non-zero: each band has blocks of its own */
    uint32_t compression; /* TIFF's number */
    const char *codec;    /* its name: "deflate", "lzw", ...; "unknown" */
    uint32_t predictor;   /* 1 none, 2 horizontal, 3 floating point */
    uint32_t photometric; /* as stored: 0 min is white, 1 min is black, 2 RGB, 3 palette, ... */
    uint32_t orientation; /* 1 = rows from the top; pixels are returned as stored */
    uint32_t fill_order;  /* 2 = the bits of each byte are reversed in the file */
    int big_endian, bigtiff;
    uint32_t ghost;          /* COGPU_GHOST_... */
    const char *description; /* ImageDescription, or NULL */

    cogpu_validity validity; /* of band 1: PATH.aux.xml can give bands nodata of their own */
    cogpu_nodata nodata;     /* of band 1; see cogpu_band */
    uint32_t alpha_band;     /* 1-based; 0 = none */
    int premultiplied;       /* the alpha is associated: colours are multiplied by it */
    const uint16_t *palette; /* palette_entries reds, then greens, then blues; NULL without one */
    uint32_t palette_entries;

    /* x = transform[0] + column * transform[1] + row * transform[2]
     * y = transform[3] + column * transform[4] + row * transform[5]
     * for the corner of a pixel, as GDAL's geotransform. */
    int has_transform;
    double transform[6];
    int pixel_is_point; /* the file's coordinates mean centres; `transform` is corrected */
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const double *rpc;   /* the 92 numbers of tag 50844, or NULL. The first two are NaN where a
                          * sidecar does not state them */
    uint32_t geokeys;    /* see cogpu_geokey_info */
    uint32_t items;      /* see cogpu_item_info */
    const char *warning; /* malformed parts of the file that were ignored, a line each; or NULL */
} cogpu_image;

typedef struct cogpu_level {
    uint32_t directory;
    int external; /* the level lies in the .ovr file */
    uint32_t width, height;
    cogpu_layout layout;
    uint32_t block_width, block_height;
    uint64_t blocks;
    uint32_t compression;
    const char *codec;
    uint32_t predictor;
    int has_mask;
    int mask_external; /* the mask lies in the .msk file, or in its .ovr file */
    uint32_t mask_directory;
    int has_transform;
    double transform[6]; /* of level 0, scaled by the ratio of the sizes */
} cogpu_level;

typedef struct cogpu_band {
    const char *description; /* NULL where the file has none */
    const char *unit;
    const char
        *interpretation;  /* "gray", "red", "green", "blue", "alpha", "palette", ... "undefined" */
    double scale, offset; /* value = stored * scale + offset (default: 1 and 0, also for a text that
                             is no number and for a scale of 0) */
    int has_scale;        /* non-zero where the file states scale or offset */
    cogpu_nodata nodata;  /* the image's, unless PATH.aux.xml states another for the band */
} cogpu_band;

/* One item of metadata: of GDAL_METADATA or PATH.aux.xml. A document (of the domains "xml:..." and
 * "json:...") is one item, called "doc". */
typedef struct cogpu_item {
    const char *domain; /* "" for the default domain */
    const char *name;
    const char *value;
    const char *role; /* "", "scale", "offset", "description", "unittype", "colorinterp" */
    int32_t band;     /* 1-based; 0 = of the whole image */
} cogpu_item;

typedef enum cogpu_key_kind {
    COGPU_KEY_SHORT = 0,
    COGPU_KEY_DOUBLE,
    COGPU_KEY_TEXT
} cogpu_key_kind;

/* One GeoKey. Exactly one of the three values is set, by `kind`. */
typedef struct cogpu_geokey {
    uint32_t id;
    const char *name; /* "GTModelType"; "unknown" */
    cogpu_key_kind kind;
    uint32_t count; /* of numbers */
    const uint16_t *shorts;
    const double *doubles;
    const char *text; /* without the closing bar */
} cogpu_geokey;

/* The coordinate reference system: a code of a registry where the keys name one. */
typedef struct cogpu_crs {
    const char *model;     /* "projected", "geographic", "geocentric", "engineering" (LOCAL_CS) */
    const char *authority; /* "EPSG"; "" where the keys describe the system by parameters alone */
    uint32_t code;         /* 0 without an authority */
    uint32_t vertical;     /* EPSG code of the vertical part; 0 = none */
    const char *name;      /* a citation of the file, or "" */
    double epoch;          /* coordinate epoch; 0 = none */
    int external;          /* non-zero: a sidecar states it, not the GeoKeys */
} cogpu_crs;

/* Images and levels count from 0; COGPU_ABSENT past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_info(const cogpu_file *file, uint32_t image,
                                                   cogpu_image *info, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_level_info(const cogpu_file *file, uint32_t image,
                                                         uint32_t level, cogpu_level *info,
                                                         cogpu_error *error);
/* Bands count from 1, as in GDAL, rasterio and the command line. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_band_info(const cogpu_file *file, uint32_t image,
                                                        uint32_t band, cogpu_band *info,
                                                        cogpu_error *error);
/* Items and keys count from 0; COGPU_ABSENT past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_item_info(const cogpu_file *file, uint32_t image,
                                                        uint32_t index, cogpu_item *info,
                                                        cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_geokey_info(const cogpu_file *file, uint32_t image,
                                                          uint32_t index, cogpu_geokey *info,
                                                          cogpu_error *error);
/* COGPU_ABSENT where the image has no keys that say anything of its coordinate system. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_crs_info(const cogpu_file *file, uint32_t image,
                                                       cogpu_crs *info, cogpu_error *error);
/* The system as WKT2, by PROJ. Writes at most `capacity` bytes with the closing NUL into `text`;
 * *needed is what the whole takes, so that a first call may pass capacity 0. `context` may be NULL;
 * one keeps PROJ's registry open for the next call, which takes a tenth of the time then.
 * COGPU_UNSUPPORTED in a build without PROJ, or where the keys describe a system that PROJ cannot
 * name. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_crs_wkt(const cogpu_file *file, uint32_t image,
                                                      cogpu_context *context, char *text,
                                                      size_t capacity, size_t *needed,
                                                      cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Raw tags, for what the structs above leave out
 */

typedef struct cogpu_directory {
    uint32_t directories; /* in the file */
    uint64_t offset;      /* where it stands */
    uint32_t tags;
    int32_t parent;        /* of a SubIFD: the directory that names it; -1 in the main chain */
    uint32_t subfile_type; /* NewSubfileType: 1 reduced, 2 page, 4 mask */
} cogpu_directory;

typedef struct cogpu_tag {
    uint32_t id;
    const char *name; /* "ImageWidth"; "unknown" */
    uint32_t type;    /* TIFF's: 1 BYTE ... 18 IFD8 */
    uint64_t count;
    uint64_t value_offset; /* where the value stands in the file */
    uint64_t bytes;        /* of the value */
} cogpu_tag;

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_directory_info(const cogpu_file *file,
                                                             uint32_t directory,
                                                             cogpu_directory *info,
                                                             cogpu_error *error);
/* The index-th tag of a directory, in file order; COGPU_ABSENT past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_tag_info(const cogpu_file *file, uint32_t directory,
                                                       uint32_t index, cogpu_tag *info,
                                                       cogpu_error *error);
/* `count` elements of a tag from the `first` on, in the machine's byte order and the width of the
 * tag's type (a RATIONAL is two u32), into `to`, an array of count elements. COGPU_ABSENT
 * without such a tag, COGPU_ARGUMENT past its last element. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_tag_read(const cogpu_file *file, uint32_t directory,
                                                       uint32_t id, uint64_t first, uint64_t count,
                                                       void *to, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Devices
 *
 * A raster may be in device memory. The library uses the GPU's primary context, as the CUDA
 * runtime, CuPy and PyTorch do: memory and streams of theirs can be used as they are. GPUs have the
 * numbers that CUDA gives them. It takes NVIDIA's driver, a GPU of compute capability 8.0 or more,
 * and a build for which nvcc was found.
 *
 * What the environment says: CUDA_DEVICE_MAX_CONNECTIONS, best set to 8 before the process first
 * uses CUDA, since a read uses seven streams and NVIDIA's driver has four queues for them
 * otherwise; COGPU_NVJPEG and COGPU_CUFILE, the files of these two libraries where the system's
 * loader does not find them.
 */

typedef enum cogpu_device_kind {
    COGPU_CPU = 0,
    COGPU_CUDA, /* a GPU of NVIDIA's */
    COGPU_EMU   /* a GPU emulated by the CPU, slow and strict, for tests; it takes memory
                 * of the host for its own */
} cogpu_device_kind;

/* "cpu", "cuda", "emu"; NULL for a value that is no kind. */
COGPU_API const char *cogpu_device_kind_name(cogpu_device_kind kind);
/* The kind of such a name, without the index of a device. COGPU_ARGUMENT for another name. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_kind_parse(const char *name,
                                                                cogpu_device_kind *kind);

typedef struct cogpu_context_options {
    uint32_t threads;      /* that read and decode; 0 = one for each CPU core */
    uint64_t cache_bytes;  /* decoded blocks to keep for later reads by the host; 0 = none */
    uint64_t device_bytes; /* device memory that reads may take beside the caller's raster;
                            * 0 = 512 MB. Blocks for which that is too little are decoded by the
                            * host; with a few megabytes reads end with COGPU_LIMIT */
    int jpeg_engines;      /* non-zero: a GPU's JPEG engines may decode JPEG, where it has any and
                            * nvJPEG is installed. Valid blocks have the same pixels, but damaged
                            * ones may go unnoticed */
    const cogpu_network *network; /* NULL means its defaults; copied */
} cogpu_context_options;

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_context_open(const cogpu_context_options *options,
                                                           cogpu_context **context,
                                                           cogpu_error *error);
/* After the last read with it was waited for, and memory from it was released. NULL is allowed. */
COGPU_API void cogpu_context_close(cogpu_context *context);

/* Device memory, for programs without another allocator; not host memory (COGPU_CPU).
 * `index` counts the devices of a kind from 0. Copies are done when the call returns. COGPU_DEVICE
 * where there is no such device. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_allocate(cogpu_context *context,
                                                              cogpu_device_kind device,
                                                              uint32_t index, uint64_t bytes,
                                                              void **memory, cogpu_error *error);
COGPU_API void cogpu_device_release(cogpu_context *context, cogpu_device_kind device,
                                    uint32_t index, void *memory);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_download(cogpu_context *context,
                                                              cogpu_device_kind device,
                                                              uint32_t index, const void *from,
                                                              uint64_t bytes, void *to,
                                                              cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_upload(cogpu_context *context,
                                                            cogpu_device_kind device,
                                                            uint32_t index, const void *from,
                                                            uint64_t bytes, void *to,
                                                            cogpu_error *error);

/* For programs that pass memory and streams of other libraries, as the Python package does.
 *
 * The device of a kind that is the calling thread's now: of GPUs that of its CUDA context (CuPy's
 * and PyTorch's current one), 0 where it has none; of emulated ones, of which there are
 * COGPU_EMU_DEVICES in the environment (1 to 16, else 1), the number in COGPU_EMU_DEVICE (0). */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_current(cogpu_device_kind device,
                                                             uint32_t *index, cogpu_error *error);
/* The device of a pointer: a GPU, whatever library allocated it; an emulated one, if
 * cogpu_device_allocate did with this context; else COGPU_CPU. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_of(cogpu_context *context, const void *memory,
                                                        cogpu_device_kind *device, uint32_t *index,
                                                        cogpu_error *error);
/* What `stream` gets from now on runs after all that `before` holds now; the host does not wait.
 * NULL is the default stream. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_stream_follow(cogpu_context *context,
                                                            cogpu_device_kind device,
                                                            uint32_t index, void *stream,
                                                            void *before, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Reading pixels
 */

/* The caller's pixels. Strides are in bytes; all three 0 means packed: bands one after the other,
 * each row-major. For chunky pixels set stride_x = bands * size, stride_y = width * stride_x and
 * stride_band = size. Strides may be negative. */
typedef struct cogpu_raster {
    void *data;      /* of band 0, row 0, column 0 */
    cogpu_type type; /* the image's, or F16, F32 or F64, to which its samples are then converted;
                      * COGPU_U8 for masks */
    uint32_t bands, height, width;
    int64_t stride_band, stride_y, stride_x;
    cogpu_device_kind device; /* of `data`: COGPU_CPU for host memory */
    uint32_t device_index;    /* which of its kind */
    void *stream; /* of a GPU: a CUstream or cudaStream_t, NULL for the default one; NULL for
                   * others. What it holds already is done before the raster is written */
} cogpu_raster;

typedef enum cogpu_part {
    COGPU_PIXELS = 0,
    COGPU_MASK /* 255 where a pixel is valid, else 0: see cogpu_validity. The raster has
                  the request's bands: with nodata each has a mask of its own, an alpha band
                  or a mask of one band stands for all */
} cogpu_part;

/* A read whose last blocks the device still has to decode. */
typedef struct cogpu_pending cogpu_pending;

/* What to read; NULL or all zero: every pixel of level 0 of image 0.
 *
 * Samples other than complex ones can be converted on the way into a raster of type F16, F32 or
 * F64. They are rounded to the nearest value of that type; scaled, they are computed in double for
 * F64 and in float for the others, product and sum each rounded, as NumPy does. A NaN that comes of
 * a conversion is the quiet one without sign and payload. All devices give the same bits. */
typedef struct cogpu_request {
    uint32_t image, level;
    uint32_t x, y, width,
        height;            /* the window, in pixels of the level; width and height 0: to the edge */
    const uint32_t *bands; /* 1-based, any order, repeats allowed; NULL = all */
    uint32_t band_count;
    cogpu_part part;
    int fill_bad_blocks;   /* non-zero: a block that cannot be read becomes nodata (or 0), is
                            * counted, and the read goes on */
    int nan_where_invalid; /* non-zero: what the mask (COGPU_MASK) calls invalid becomes NaN: with
                            * nodata samples, with a mask directory or an alpha band pixels */
    int scaled; /* non-zero: samples are multiplied by the scale of their band and its offset is
                 * added: see cogpu_band. Nodata is compared before. */
    uint32_t threads;        /* 0 = the context's, or one for each CPU core */
    cogpu_context *context;  /* may be NULL */
    cogpu_pending **pending; /* not NULL: do not wait for the device; see cogpu_wait */
    /* Called after each block or few blocks, and every tenth of a second while a server or a large
     * block keeps the read waiting; NULL: not called. `done` never decreases; the last call of a
     * read that succeeds has done == total. It must not call functions with the same file or
     * context. A pending read may call it until cogpu_wait returns, also from other calls with the
     * same context. */
    cogpu_progress progress;
    void *progress_user;
} cogpu_request;

/* Milliseconds of a read on a device, summed over its batches, whose stages overlap: the host reads
 * (and decodes what the device cannot) while the device copies, decodes and places. Of batches that
 * items of cogpu_read_many share, one item has all. The emulator measures `fetch` alone. */
typedef struct cogpu_stages {
    double fetch, copy, decode, place;
} cogpu_stages;

typedef struct cogpu_result {
    uint64_t blocks;        /* that the window touched */
    uint64_t sparse_blocks; /* of these, without data in the file */
    uint64_t bad_blocks;    /* of these, filled because they could not be read */
    uint64_t cached_blocks; /* of these, found in the context's cache */
    uint64_t device_blocks; /* of these, decoded by the raster's device */
    uint64_t late_blocks;   /* of these, refused by the device and decoded by the host thereafter */
    uint64_t bytes_read;    /* of blocks, from the source */
    uint64_t direct_bytes;  /* of these, straight to the device: see cogpu_no_direct_storage */
    cogpu_stages stages;    /* where the time went, with a device */
    cogpu_error first_bad;  /* the first of the bad blocks */
} cogpu_result;

/* Reads a window into the raster, whose bands, width and height must be those of the request. When
 * it returns the pixels are there, for every stream. On an error the content of the raster is
 * undefined. `result` may be NULL. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_read(const cogpu_file *file,
                                                   const cogpu_request *request,
                                                   cogpu_raster *raster, cogpu_result *result,
                                                   cogpu_error *error);

/* With `pending` in its request, cogpu_read into device memory returns when all blocks are on
 * their way: what the raster's stream gets from then on runs after them, and the host need not
 * wait. The request's bands, the file, the context, and the raster's memory and stream must stay
 * until cogpu_wait, which waits, says how it went, and frees `pending`. Blocks that the device
 * refused (damaged, or rare) are put into the raster only here: where result->late_blocks or the
 * status is not 0, what ran in between has not seen them. Several reads may be pending, and be
 * waited for in any order.
 * Reads that failed, and reads that are through by then, as those that the host does in full and
 * those with NaN by a mask or an alpha band, leave *pending NULL, which cogpu_wait takes too, and
 * then touches neither `result` nor `error`: cogpu_read has filled them. So give both calls the
 * same ones. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_wait(cogpu_pending *pending, cogpu_result *result,
                                                   cogpu_error *error);

/* One read of cogpu_read_many. */
typedef struct cogpu_read_item {
    const cogpu_file *file;
    cogpu_request request; /* its `threads` and `pending` are not used, its `context` is that of the
                            * call */
    cogpu_raster raster;
    cogpu_result result; /* filled */
    cogpu_status status; /* filled */
} cogpu_read_item;

/* Many windows, of one file or of many, as one piece of work for the threads of the context (NULL:
 * one thread for each CPU core, and no devices). Rasters may lie on different devices. Each item
 * gets a status; the first that failed, by index, is the status and the error of the call, and the
 * others are read all the same. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_read_many(cogpu_read_item *items, size_t count,
                                                        cogpu_context *context, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Writing
 *
 * A writer takes rows from the top down, in chunks of any height, encodes each row of blocks when
 * it is full, and forgets it: memory does not grow with the height of the image, overviews
 * included. The file's bytes depend on the pixels and the profile alone, not on chunks, threads or
 * strides.
 *
 *     cogpu_profile profile = {.width = w, .height = h, .bands = 1, .type = COGPU_F32, .cog = 1,
 *                              .crs = "EPSG:32633", .has_transform = 1, .transform = {...}};
 *     cogpu_raster raster = {.data = pixels, .type = COGPU_F32, .bands = 1, .width = w, .height =
 * h}; status = cogpu_write(&(cogpu_sink){.path = "dem.tif"}, &profile, &raster, NULL, NULL,
 * &error);
 */

/* Memory that the library allocated and hands over; zero it before. */
typedef struct cogpu_memory {
    void *data;
    size_t bytes;
} cogpu_memory;

COGPU_API void cogpu_memory_release(cogpu_memory *memory);

/* Where a file goes: a path, an s3:// address, or memory, or memory of the caller's, or a user's
 * functions.
 *
 * A path's old content stands until the new file is complete, and stands for good where writing
 * fails or the process ends before: the writer fills a file beside it (PATH.HEX.cogpu-part), which
 * takes its place at the end. What a process that was killed has left of such files, the next
 * writer of the same path removes. What stood beside an old file and would be read with the new one
 * (PATH.ovr, .aux.xml, .msk, .msk.ovr) goes with it, as GDAL does. Owner, group and permissions of
 * an old file are kept where the process may set them; one that it may not write is not replaced.
 * A full disk, or a file beyond RLIMIT_FSIZE, is COGPU_IO; the limit is compared before each write,
 * so that no SIGXFSZ is raised.
 * What cannot be put in order before the end goes to files without a name beside it, or in TMPDIR
 * where there is no path.
 *
 * An object of S3, "s3://bucket/key", goes up in parts while rows come: level 0 first, header and
 * overviews last. It is there when all of it is; an old one stands until then. At most four parts
 * are in memory, of 10 MiB, or of a 9,000th of what the file may take where that is more: a writer
 * that is faster than the network waits. Where writing fails, no parts stay; where the process is
 * killed, they do, until the bucket's rules remove them. Settings of the network, and credentials,
 * are those of the profile's context, or defaults without one. What stands beside an old object
 * stays. http:// and https:// are for reading alone. */
typedef struct cogpu_sink {
    const char *path;          /* or an s3:// address */
    int keep_sidecars;         /* non-zero: sidecars of the old file still apply, and stay */
    int no_replace;            /* non-zero: COGPU_IO where the path has a file, at the end too */
    const char *const *inputs; /* paths that are read for the new file: COGPU_ARGUMENT where one of
                                * them, by whatever name, or a sidecar of one would be removed */
    uint32_t input_count;
    cogpu_memory *memory; /* filled when the writer is closed; untouched on failure */
    void *buffer;         /* the caller's, of `buffer_bytes`: COGPU_LIMIT where the file needs more;
                           * holds anything after a failure, and behind the file. Where it is pinned
                           * (cuMemHostAlloc, cuMemHostRegister), GPUs put blocks straight into
                           * it */
    size_t buffer_bytes;

    void *user;
    /* Takes `bytes` bytes that stand at `offset`; what it returns instead of COGPU_OK is the
     * writer's status. One call at a time, by any thread of the writer, also between pushes. */
    cogpu_status (*write)(void *user, uint64_t offset, const void *from, size_t bytes);
    cogpu_status (*commit)(void *user); /* after the last byte; may be NULL */
    void (*abort)(void *user);          /* instead of commit, once, also where no writer could be
                                         * opened; may be NULL */
    int append_only; /* non-zero: each write begins where the last one ended. Nothing is written
                      * before the writer is closed, then */
} cogpu_sink;

/* How samples of the next level are made of those of the last one. */
typedef enum cogpu_resampling {
    COGPU_RESAMPLE_DEFAULT = 0, /* nearest with a palette and for complex samples, else average */
    COGPU_NEAREST,
    COGPU_AVERAGE,
    COGPU_RMS,
    COGPU_BILINEAR,
    COGPU_CUBIC,
    COGPU_MODE,
    COGPU_MIN,
    COGPU_MAX,
    COGPU_MEDIAN
} cogpu_resampling;

/* "default", "nearest", "average", "rms", "bilinear", "cubic", "mode", "min", "max", "median"; NULL
 * past the last. */
COGPU_API const char *cogpu_resampling_name(cogpu_resampling method);
/* The method of such a name, or of "near", "mean" and "med", in any case of letters. COGPU_ARGUMENT
 * for another name. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_resampling_parse(const char *name,
                                                               cogpu_resampling *method);

typedef enum cogpu_overviews {
    COGPU_OVERVIEWS_DEFAULT = 0, /* as LISTED with `factors`, else AUTO for a COG, else NONE */
    COGPU_OVERVIEWS_NONE,
    COGPU_OVERVIEWS_AUTO, /* 2, 4, 8 ... until one block holds the level */
    COGPU_OVERVIEWS_LISTED
} cogpu_overviews;

typedef enum cogpu_bigtiff {
    COGPU_BIGTIFF_AUTO = 0, /* where the file could pass 4 GiB in the worst case, by whomever it is
                             * encoded */
    COGPU_BIGTIFF_YES,
    COGPU_BIGTIFF_NO /* COGPU_LIMIT where the file passes 4 GiB: at once where that is known, or
                      * when it does */
} cogpu_bigtiff;

/* TIFF's numbers, but for 0, which TIFF gives to the last. */
typedef enum cogpu_photometric {
    COGPU_PHOTOMETRIC_DEFAULT = 0, /* palette with one; RGB for 3 or 4 bands of uint8 of which the
                                    * fourth, if any, is alpha (YCbCr with JPEG); else min is
                                    * black */
    COGPU_MIN_IS_BLACK = 1,
    COGPU_RGB = 2,
    COGPU_PALETTE = 3,
    COGPU_CMYK = 5,
    COGPU_YCBCR = 6, /* with JPEG: bands are RGB, which it converts; with other codecs: 3 bands of
                      * more than 8 bits, stored as they are */
    COGPU_CIELAB = 8,
    COGPU_MIN_IS_WHITE = 256
} cogpu_photometric;

/* "default", "minisblack", "miniswhite", "rgb", "palette", "cmyk", "ycbcr", "cielab"; NULL for a
 * value that is none. */
COGPU_API const char *cogpu_photometric_name(cogpu_photometric photometric);
/* The interpretation of such a name, in any case of letters. COGPU_ARGUMENT for another name. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_photometric_parse(const char *name,
                                                                cogpu_photometric *photometric);

/* A tag to be written as it is, into the directory of level 0. Tags that the writer makes itself
 * and tags that point to other places of a file are refused; GDAL_NODATA is taken where the profile
 * has no nodata, for a value that no sample can have. */
typedef struct cogpu_extra_tag {
    uint32_t id;
    uint32_t type; /* TIFF's: 1 BYTE ... 12 DOUBLE, 16 LONG8, 17 SLONG8 */
    uint64_t count;
    const void *values; /* in the machine's byte order; a RATIONAL is two u32 */
} cogpu_extra_tag;

/* What is to be written; the first four are required, for all else 0 means the default. What the
 * profile points to must stay until the writer is open. */
typedef struct cogpu_profile {
    uint32_t width, height, bands;
    cogpu_type type;

    int cog;                            /* non-zero: a Cloud Optimized GeoTIFF */
    int strips;                         /* non-zero: strips, not tiles; not with `cog` */
    uint32_t block_width, block_height; /* of tiles, multiples of 16: 512, less with very many
                                         * bands, and the width; of strips the height alone: rows
                                         * of about 256 KiB */
    int planar;                         /* non-zero: each band has blocks of its own */
    const char *codec; /* "none", "packbits", "lzw", "deflate" (the default), "zstd",
                        * "lzma", "jpeg", "webp", "lerc", "lerc_deflate",
                        * "lerc_zstd" */
    int level;         /* deflate 1 to 12 (6), zstd 1 to 22 (9), lzma 1 to 9 (6) */
    int quality;       /* JPEG and WebP 1 to 100 (75) */
    int lossless;      /* WebP: non-zero without loss */
    double max_error;  /* LERC: 0 without loss */
    int predictor;     /* 1 none, 2 horizontal, 3 floating point; 0: 2 for integers and 3 for
                        * floats with lzw, deflate and zstd. With lzma GDAL reads it wrongly
                        * where it uses threads */
    uint32_t bits;     /* of a sample in the file: 1 to 7 of uint8, 9 to 15 of uint16, which is
                        * cut to what they hold; 0: all of the type's. Not with JPEG, WebP, LERC
                        * and predictors */
    cogpu_bigtiff bigtiff;
    int sparse; /* non-zero: blocks that are nodata throughout, or 0 without nodata, are left out;
                 * but for 64-bit integers with a nodata other than 0, which GDAL may misread */

    const char *nodata; /* "-9999", "nan"; NULL = none */
    int nan_is_nodata;  /* non-zero: each NaN of a float image is stored as its nodata, if it has a
                         * number there; the caller's pixels stay as they are */
    cogpu_photometric photometric;
    uint32_t alpha_band;     /* 1-based; 0 = none */
    int premultiplied;       /* of the alpha band */
    const uint16_t *palette; /* palette_entries reds, then greens, then blues */
    uint32_t palette_entries;
    int mask; /* non-zero: rows come with a mask, stored as a mask directory */

    int has_transform;
    double transform[6]; /* of corners, as cogpu_image has it, also with `pixel_is_point` */
    int pixel_is_point;
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const double *rpc; /* 92 numbers, or NULL; the first two may be NaN: not known */
    const char *crs;   /* "EPSG:4326", WKT, PROJ string; needs PROJ except for EPSG codes; or */
    const cogpu_geokey *geokeys; /* keys as a file has them, but for GTRasterType */
    uint32_t geokey_count;
    double epoch; /* of coordinates in a system that moves, as 2010.5; 0 = none */

    const cogpu_item *items; /* GDAL_METADATA, scale, offset, unit and description of bands too */
    uint32_t item_count;
    const char *description; /* ImageDescription */
    const cogpu_extra_tag *tags;
    uint32_t tag_count;

    cogpu_overviews overviews;
    const uint32_t *factors; /* of COGPU_OVERVIEWS_LISTED: ascending, from 2 on */
    uint32_t factor_count;
    cogpu_resampling resampling;

    uint32_t threads;       /* 0 = the context's, or one for each CPU core */
    cogpu_context *context; /* may be NULL, but not with a device */

    /* The device that packs, downsamples and encodes. COGPU_CPU: the device of the first rows. Rows
     * elsewhere are copied there. Encoders of a device and of the host give different bytes and the
     * same pixels, except JPEG of one band or as YCbCr, which nvJPEG encodes with its own rounding
     * if it is installed. The host does what a device cannot do, or cannot do within the context's
     * `device_bytes`. */
    cogpu_device_kind device;
    uint32_t device_index;

    /* Blocks that are encoded, of those of all levels and masks; NULL: not called. A push, put or
     * close that it cancels returns COGPU_CANCELLED and leaves no file. It must not call functions
     * with the same writer or context. */
    cogpu_progress progress;
    void *progress_user;
} cogpu_profile;

typedef struct cogpu_written {
    uint64_t bytes;         /* of the file */
    uint64_t direct_bytes;  /* of these, straight from the device: see cogpu_no_direct_storage */
    uint64_t blocks;        /* of all levels and masks */
    uint64_t sparse_blocks; /* of these, left out */
    uint32_t levels;
    int bigtiff;
} cogpu_written;

typedef struct cogpu_writer cogpu_writer;

/* Checks the profile as a whole before a byte is written. A writer belongs to one thread. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_open(const cogpu_sink *sink,
                                                          const cogpu_profile *profile,
                                                          cogpu_writer **writer,
                                                          cogpu_error *error);

/* The next rows: as many as the raster is high, all bands, of the profile's width and type. `mask`
 * is NULL, or for a profile with a mask one band of COGPU_U8, 0 where a pixel is invalid. The
 * memory is the caller's again when this returns; that of a device is so for all that the raster's
 * stream gets from then on, which waits until the rows are cut; blocks may still be encoded and
 * written then, and a failure of that is reported by a later push or by close. After a failure only
 * cogpu_writer_abort is left. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_push(cogpu_writer *writer,
                                                          const cogpu_raster *rows,
                                                          const cogpu_raster *mask,
                                                          cogpu_error *error);

/* Completes the file and frees the writer, whatever it returns; where rows are missing, or anything
 * fails, no file comes to be. `written` may be NULL. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_close(cogpu_writer *writer,
                                                           cogpu_written *written,
                                                           cogpu_error *error);
/* Frees the writer and leaves no file. NULL is allowed. */
COGPU_API void cogpu_writer_abort(cogpu_writer *writer);

/* All rows at once: a writer that is opened, pushed and closed. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_write(const cogpu_sink *sink,
                                                    const cogpu_profile *profile,
                                                    const cogpu_raster *raster,
                                                    const cogpu_raster *mask,
                                                    cogpu_written *written, cogpu_error *error);

/* Blocks that are encoded elsewhere, by other threads, processes or machines, which have the same
 * profile, and put together here.
 *
 * cogpu_encode encodes one block of a level, pixels or COGPU_MASK, by its index in the level's
 * directory (by planes, then rows, then columns). The raster has the block's pixels as far as they
 * lie inside the image; of a planar file one band. Its result is the caller's to release; it has no
 * bytes where the profile leaves such blocks out. Any thread.
 *
 * cogpu_writer_put takes them in any order, each once, of all levels: a writer that was put to
 * makes no overviews, and takes no rows. Blocks without bytes are left out. The file is the same as
 * one that was pushed, if the blocks are.
 *
 * Level 0 of a COG, which stands at its end, may stay where it was encoded: of its blocks, of all
 * of them then, `encoded` is NULL and `bytes` tells how many there are. The sink gets the file up
 * to where level 0 begins, and cogpu_written counts all of it. What belongs behind are the blocks
 * by cogpu_frame in their order: tile by tile from the upper left, of each tile all planes, then
 * its mask.
 *
 * cogpu_frame puts around the bytes of a block what a COG has there, COGPU_FRAME_BYTES more. A
 * block without bytes has none around it, either. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_encode(const cogpu_profile *profile, uint32_t level,
                                                     cogpu_part part, uint64_t block,
                                                     const cogpu_raster *pixels,
                                                     cogpu_memory *encoded, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_put(cogpu_writer *writer, uint32_t level,
                                                         cogpu_part part, uint64_t block,
                                                         const void *encoded, size_t bytes,
                                                         cogpu_error *error);
enum { COGPU_FRAME_BYTES = 8 };
COGPU_API void cogpu_frame(const void *encoded, size_t bytes, void *framed);

/* What those who encode elsewhere must know of the file that a profile makes, by arithmetic alone:
 * its levels, and of each the grid of blocks. COGPU_ABSENT past the last. */
typedef struct cogpu_outline {
    uint32_t levels;
    uint32_t width, height;
    uint32_t block_width, block_height;
    uint64_t blocks;     /* with those of all planes, without those of masks */
    uint64_t most_bytes; /* of all blocks in the file, those of masks and what a COG puts around
                          * them counted: at most */
} cogpu_outline;

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_profile_outline(const cogpu_profile *profile,
                                                              uint32_t level,
                                                              cogpu_outline *outline,
                                                              cogpu_error *error);

/* Pixels of overviews, made elsewhere as the writer makes them: cogpu_overview_make makes a window
 * of a level, 1 or more, of `pixels`, and of `mask` where the profile has one, that hold what
 * cogpu_overview_needs names of the level before. All memory is the host's. Any thread. */
typedef struct cogpu_window {
    uint32_t x, y, width, height;
} cogpu_window;

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_overview_needs(const cogpu_profile *profile,
                                                             uint32_t level,
                                                             const cogpu_window *window,
                                                             cogpu_window *needs,
                                                             cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_overview_make(const cogpu_profile *profile, uint32_t level, const cogpu_window *window,
                    const cogpu_raster *pixels, const cogpu_raster *mask, cogpu_raster *to,
                    cogpu_raster *to_mask, cogpu_error *error);

/* Resampling of whole rows to a smaller size, by the methods of overviews. */
typedef struct cogpu_resample {
    cogpu_resampling method; /* COGPU_RESAMPLE_DEFAULT: nearest for complex samples, else average */
    cogpu_type type;
    uint32_t bands;
    uint32_t from_width, from_height;
    uint32_t width, height; /* of the result: at most those before, at least a 1,024th of them */
    const char *nodata;     /* "-9999", "nan": samples without weight; NULL = none */
    uint32_t alpha_band;    /* 1-based, 0 where invalid; 0 = none */
    int mask;               /* non-zero: rows come with a mask, as in cogpu_writer_push */
} cogpu_resample;

/* The rows of the source, from *begin up to *end, that rows `row` up to row + count of the result
 * are made of. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_resample_needs(const cogpu_resample *how,
                                                             uint32_t row, uint32_t count,
                                                             uint32_t *begin, uint32_t *end,
                                                             cogpu_error *error);
/* Makes rows of the result from `row` on, as many as `to` is high, of source rows from `from_row`
 * on, which must include those of cogpu_resample_needs. All memory is the host's. Any thread. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_resample_rows(const cogpu_resample *how, uint32_t from_row, const cogpu_raster *from,
                    const cogpu_raster *from_mask, uint32_t row, cogpu_raster *to,
                    cogpu_raster *to_mask, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Files of other formats
 *
 * A plain file that is written as the writer writes a TIFF: see cogpu_sink. Its path appears when
 * all bytes are on the disk. One thread at a time.
 */

typedef struct cogpu_output cogpu_output;

/* COGPU_UNSUPPORTED for s3:// addresses. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_open(const cogpu_sink *sink,
                                                          cogpu_output **output,
                                                          cogpu_error *error);
/* Bytes may come in any order, but in sequence where the sink is append-only. What was never
 * written below the end reads as zeros. After a failure only cogpu_output_abort is left. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_write(cogpu_output *output, uint64_t offset,
                                                           const void *from, size_t bytes,
                                                           cogpu_error *error);
/* Completes the file and frees the output, whatever it returns. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_commit(cogpu_output *output,
                                                            cogpu_error *error);
/* Frees the output and leaves no file. NULL is allowed. */
COGPU_API void cogpu_output_abort(cogpu_output *output);

/* ---------------------------------------------------------------------------------------------
 * Objects of S3 that several machines write
 *
 * A writer to an s3:// address needs none of this. Here one begins an upload and tells others its
 * id. Each of them sends parts of the object, in any order, whose numbers give their order,
 * and tells what the store calls them. One completes the upload: then the object is there, or takes
 * the place of an old one, and not before. All parts but the last have 5 MiB or more. The store
 * keeps the parts of an upload that is neither completed nor aborted, and wants to be paid.
 *
 * `context` has the settings of the network, and connections; NULL means defaults. Any thread, and
 * any machine: each has its own credentials, which are not in the id.
 */

enum {
    COGPU_S3_PARTS_MAX = 10000,
    COGPU_S3_PART_BYTES_MIN = 5 << 20, /* but for the last */
    COGPU_S3_UPLOAD_BYTES = 1024,
    COGPU_S3_ETAG_BYTES = 128
};

typedef struct cogpu_s3_part {
    uint32_t number; /* 1 to COGPU_S3_PARTS_MAX; some may be left out */
    char etag[COGPU_S3_ETAG_BYTES];
} cogpu_s3_part;

/* How long the parts of an object are best, and how many it has then at most: of one that may get
 * as long as `bytes`. So a writer divides what it sends. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_plan(uint64_t bytes, uint64_t *part_bytes,
                                                          uint32_t *parts, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_begin(const char *address,
                                                           cogpu_context *context,
                                                           char upload[COGPU_S3_UPLOAD_BYTES],
                                                           cogpu_error *error);
/* Returns when the store has it. A number that was sent before is replaced. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_upload_send(const char *address, const char *upload,
                                                          cogpu_context *context, uint32_t number,
                                                          const void *from, size_t bytes,
                                                          cogpu_s3_part *part, cogpu_error *error);
/* Of parts by ascending numbers, `bytes` in all. Where it fails, the upload is aborted. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_upload_complete(const char *address, const char *upload, cogpu_context *context,
                      const cogpu_s3_part *parts, size_t count, uint64_t bytes, cogpu_error *error);
/* As far as the store can be reached. What is sent meanwhile may stay: wait for it before. */
COGPU_API void cogpu_upload_abort(const char *address, const char *upload, cogpu_context *context);

/* ---------------------------------------------------------------------------------------------
 * Checking
 *
 * Is a file a valid COG? GDAL's validator, rio-cogeo's and the standard (OGC 21-026) do not ask the
 * same: GDAL and rio-cogeo take a small file of strips for a COG, the standard does not. All of
 * their rules are looked at, and each finding names the validators that have its rule, so that one
 * call gives the verdict of each. Where GDAL or rio-cogeo raise a false alarm, it counts in their
 * verdict and not in ours.
 *
 *     cogpu_checked checked;
 *     status = cogpu_check(file, NULL, print_finding, stdout, &checked, &error);
 *     valid = status == COGPU_OK && checked.verdict != COGPU_INVALID;
 */

typedef enum cogpu_severity {
    COGPU_NOTE = 1, /* good to know */
    COGPU_WARNING,  /* a COG all the same, but one could be better */
    COGPU_FAULT     /* not a COG, or one whose promises do not hold */
} cogpu_severity;

/* Whose rule it is; none of them where damage of the file itself was found. */
enum { COGPU_SAYS_GDAL = 1, COGPU_SAYS_RIO_COGEO = 2, COGPU_SAYS_OGC = 4 };

/* A rule that is broken, and where; -1 where a place does not apply. */
typedef struct cogpu_finding {
    cogpu_severity severity;
    const char *rule;   /* "block-leader": does not change between versions */
    const char *advice; /* what to do */
    uint32_t who;       /* COGPU_SAYS_... */
    int32_t directory;
    int64_t block;
    int64_t offset;
    uint64_t more;     /* in the last finding of a rule: further places, which are not reported */
    char message[232]; /* what is wrong, with numbers */
} cogpu_finding;

typedef struct cogpu_check_options {
    int strict;      /* non-zero: rules of the standard are faults too, and so are warnings of
                      * rio-cogeo, as in its strict mode; otherwise what the standard alone asks
                      * for is a note */
    int skip_blocks; /* non-zero: without the look at each block, whose order, leader, trailer and
                      * mask's place a ghost area may promise; the file is hardly read then */
    cogpu_progress progress; /* or NULL */
    void *progress_user;
} cogpu_check_options;

typedef enum cogpu_verdict {
    COGPU_INVALID = 0,
    COGPU_VALID_WITH_WARNINGS,
    COGPU_VALID
} cogpu_verdict;

typedef struct cogpu_checked {
    cogpu_verdict verdict;              /* by the options */
    cogpu_verdict gdal, rio_cogeo, ogc; /* by the rules of each, whatever the options */
    uint64_t faults, warnings, notes;   /* all of them, those that are not reported too */
    uint64_t blocks;                    /* that were looked at one by one */
} cogpu_checked;

/* Checks the first image of a file, its overviews and masks, and tells what it found: faults first,
 * then warnings and notes, at most a few places for a rule. `options` and `found` may be NULL. An
 * external .ovr file is seen where cogpu_open has seen it. A file that is no COG is no failure of
 * this function; what fails it is memory, a limit, I/O, and a file without an image (COGPU_ABSENT).
 * Its time grows with the number of blocks that have data: runs of sparse ones are passed over, at
 * once where the file itself has a hole there. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_check(const cogpu_file *file, const cogpu_check_options *options,
            void (*found)(void *user, const cogpu_finding *finding), void *user,
            cogpu_checked *checked, cogpu_error *error);

/* "note", "warning", "fault". */
COGPU_API const char *cogpu_severity_name(cogpu_severity severity);
/* "invalid", "valid with warnings", "valid". */
COGPU_API const char *cogpu_verdict_name(cogpu_verdict verdict);

/* ---------------------------------------------------------------------------------------------
 * Rasters for others
 */

/* The raster as a tensor of DLPack (its structs are in DLPack's own header), over the same memory
 * and shaped (band, row, column), for NumPy, CuPy, PyTorch. The first function makes what was usual
 * before version 1 of DLPack (in Python, a capsule called "dltensor"; NumPy takes it as read-only),
 * the second what has been since ("dltensor_versioned"). The tensor's deleter calls release(user),
 * unless `release` is NULL, on whatever thread; until then the memory must stay. What is to be done
 * on a stream before others may use the memory is the caller's. COGPU_UNSUPPORTED for complex
 * integers, which DLPack has not. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_dlpack(const cogpu_raster *raster,
                                                     void (*release)(void *user), void *user,
                                                     struct DLManagedTensor **tensor,
                                                     cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_dlpack_versioned(const cogpu_raster *raster, void (*release)(void *user), void *user,
                       struct DLManagedTensorVersioned **tensor, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * What this build can do
 */

/* A codec. Several names may share a compression number: lerc, lerc_deflate and lerc_zstd do. */
typedef struct cogpu_codec {
    uint32_t compression; /* TIFF's number */
    const char *name;
    const char *library; /* that decodes it, with its version where known; "own" for our code */
    int available;       /* 0: known by name, but this build cannot decode it */
    int can_encode;      /* non-zero: this build can write it */
    int min_level, max_level, default_level; /* of `cogpu_profile.level`; all 0: no levels */
    int has_quality;                         /* non-zero: `cogpu_profile.quality` applies */
    int has_max_error;                       /* non-zero: `cogpu_profile.max_error` applies */
    int is_lossy;          /* non-zero: pixels change when they are written, unless `lossless` */
    uint32_t predictors;   /* that can be written: bit 1 << predictor */
    uint32_t encode_types; /* sample types that can be written: bit 1 << cogpu_type */
    int gpu_decode, gpu_encode; /* non-zero: there are GPU kernels, or nvJPEG, for it */
} cogpu_codec;

/* COGPU_ABSENT past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_codec_info(uint32_t index, cogpu_codec *info);
/* TIFF's compression number of a codec's name, as cogpu_codec_info has it, or of GDAL's name where
 * that differs ("CCITTFAX4", "JXL"), in any case of letters. COGPU_ARGUMENT for another name. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_codec_parse(const char *name, uint32_t *compression);

typedef struct cogpu_device {
    cogpu_device_kind kind;
    uint32_t index;        /* of its kind */
    char name[16];         /* "cpu", "cuda:0", "emu", or with more of them "emu:0": what
                            * --device takes */
    char description[160]; /* CPU cores and vector units; the GPU's name and memory */
} cogpu_device;

/* COGPU_ABSENT past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_info(uint32_t index, cogpu_device *info);
/* Why there is no GPU: "NVIDIA's driver (libcuda.so.1) is not installed"; NULL where there is. */
COGPU_API const char *cogpu_no_cuda(void);

/* Why files are not read straight into memory of GPUs, and not written straight from there, by
 * GPUDirect Storage, but by way of pinned memory: "cuFile (libcufile.so.0) is not installed"; NULL
 * where they are. */
COGPU_API const char *cogpu_no_direct_storage(void);

/* PROJ's version, or NULL in a build without it. */
COGPU_API const char *cogpu_proj_version(void);

/* libcurl's version, or NULL in a build without it, which reads no URLs. */
COGPU_API const char *cogpu_curl_version(void);

#ifdef __cplusplus
}
#endif

#endif
