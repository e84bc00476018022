/*
 * cogpu: reads and writes GeoTIFF and Cloud Optimized GeoTIFF (COG) from and to host memory and
 * GPU memory.
 *
 * This header is the reference. docs/c.md is the guide. In short:
 *
 *     cogpu_file *file = NULL;
 *     cogpu_image image = COGPU_IMAGE_INIT;
 *     cogpu_error error;
 *     if (cogpu_open("dem.tif", NULL, &file, &error) != COGPU_OK ||
 *         cogpu_image_info(file, 0, &image, &error) != COGPU_OK)
 *         return fail(error.message);
 *     float *pixels = malloc(sizeof(float) * image.bands * image.width * image.height);
 *     cogpu_raster raster = COGPU_RASTER_INIT;
 *     raster.data = pixels;
 *     raster.type = COGPU_TYPE_F32;
 *     raster.bands = image.bands;
 *     raster.width = image.width;
 *     raster.height = image.height;
 *     if (cogpu_read(file, NULL, &raster, NULL, &error) != COGPU_OK)
 *         return fail(error.message);
 *     cogpu_close(file);
 *
 * Rules for every function:
 *
 * - A function that can fail returns a cogpu_status. If its `error` is not NULL, it is filled:
 * after a failure with status, location and message, after success with COGPU_OK and an empty
 * message.
 * - Structs carry their size. Initialise each struct with its macro (cogpu_image:
 *   COGPU_IMAGE_INIT), then set the fields that matter. Unless a comment says otherwise, 0 or NULL
 *   in a field means its default. A struct whose struct_size is 0 is COGPU_INVALID_ARGUMENT.
 *   cogpu_error alone needs no initialisation.
 * - All elements of an array of structs have the same struct_size. Fields named `reserved` are 0.
 * - Later versions add fields at the end of structs and values at the end of enums. Programs built
 *   with an older header run with a newer library of the same soname. A field that the library does
 *   not know yet must be 0, else the call is COGPU_UNSUPPORTED.
 * - Pointers that a function fills must not be NULL, unless it says so.
 * - The caller owns every buffer that it passes. Strings and arrays that the library returns belong
 *   to the file and live until cogpu_close.
 * - Threads share files and contexts freely; cogpu_close and cogpu_context_close come last. A
 * writer or output belongs to one thread at a time.
 * - The library prints nothing, raises no signal and never ends the process.
 * - Files are untrusted: the library compares every size in a file with cogpu_limits first.
 *
 * Process-wide state: shared libraries that are loaded once (CUDA driver, cuFile, nvJPEG), the
 * GPU's primary context, libcurl's global initialisation. There is no thread-local state.
 * Environment variables that the library reads: AWS_*, libcurl's proxy variables, TMPDIR,
 * COGPU_NVJPEG and COGPU_CUFILE (paths of these libraries), COGPU_ALWAYS_DEVICE (decode on the GPU
 * even if the CPU is faster), COGPU_INFLATE ("lanes" or "library": which decoder the CPU uses for
 * deflate), COGPU_EMU_* (see COGPU_DEVICE_EMULATOR), and those of PROJ and CUDA.
 */
#ifndef COGPU_H
#define COGPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COGPU_VERSION_MAJOR 0
#define COGPU_VERSION_MINOR 2
#define COGPU_VERSION_PATCH 0
/* 200 for 0.2.0. */
#define COGPU_VERSION_NUMBER                                                                       \
    (COGPU_VERSION_MAJOR * 10000 + COGPU_VERSION_MINOR * 100 + COGPU_VERSION_PATCH)

#if defined(__GNUC__)
#define COGPU_API        __attribute__((visibility("default")))
#define COGPU_MUST_CHECK __attribute__((warn_unused_result))
#else
#define COGPU_API
#define COGPU_MUST_CHECK
#endif

#ifdef __cplusplus
#define COGPU_INIT(type)                                                                           \
    { sizeof(type) }
#else
#define COGPU_INIT(type)                                                                           \
    { .struct_size = sizeof(type) }
#endif

/* Version of the library, which may differ from the header's: "0.2.0", 200. */
COGPU_API const char *cogpu_version(void);
COGPU_API uint32_t cogpu_version_number(void);

/* ---------------------------------------------------------------------------------------------
 * Errors
 */

typedef enum cogpu_status {
    COGPU_OK = 0,
    COGPU_INVALID_ARGUMENT, /* the call is wrong: a window outside the image, a wrong type */
    COGPU_OUT_OF_MEMORY,
    COGPU_IO_ERROR,       /* the operating system, the network or a user's source failed */
    COGPU_NOT_TIFF,       /* not a TIFF file */
    COGPU_CORRUPT,        /* a TIFF that is truncated or contradicts itself */
    COGPU_UNSUPPORTED,    /* valid, but this build or this version cannot handle it */
    COGPU_LIMIT_EXCEEDED, /* beyond a limit that the caller may raise: see cogpu_limits */
    COGPU_DEVICE_ERROR,   /* a GPU failed, or there is no such GPU */
    COGPU_NOT_FOUND,      /* no such file, image, level, tag */
    COGPU_CANCELLED       /* the caller's progress function cancelled the call */
} cogpu_status;

/* What went wrong and where; -1 if a location does not apply. The one struct without struct_size,
 * so that callers need not initialise it. Its size is final; `reserved` is for later fields. */
typedef struct cogpu_error {
    cogpu_status status;
    int32_t directory; /* index of the TIFF directory, in the order of cogpu_directory_info */
    int64_t block;     /* index of the tile or strip in the directory */
    int64_t offset;    /* byte offset in the file */
    char message[424]; /* what, where and what to do; always terminated */
    char reserved[64];
} cogpu_error;

/* Progress of a long call: `done` of `total` blocks. A non-zero result cancels the call, which then
 * returns COGPU_CANCELLED. Calls come from one thread at a time, not always the same thread. */
typedef int (*cogpu_progress)(void *user, uint64_t done, uint64_t total);

/* ---------------------------------------------------------------------------------------------
 * Sample types
 */

typedef enum cogpu_type {
    COGPU_TYPE_NONE = 0,
    COGPU_TYPE_U8,
    COGPU_TYPE_I8,
    COGPU_TYPE_U16,
    COGPU_TYPE_I16,
    COGPU_TYPE_U32,
    COGPU_TYPE_I32,
    COGPU_TYPE_U64,
    COGPU_TYPE_I64,
    COGPU_TYPE_F16,
    COGPU_TYPE_F32,
    COGPU_TYPE_F64,
    COGPU_TYPE_CI16, /* complex integer: a pair of I16 */
    COGPU_TYPE_CI32, /* a pair of I32 */
    COGPU_TYPE_CF32, /* complex float: a pair of F32 */
    COGPU_TYPE_CF64  /* a pair of F64 */
} cogpu_type;

/* Bytes of one sample: 1 to 16; 0 for COGPU_TYPE_NONE and unknown values. */
COGPU_API size_t cogpu_type_bytes(cogpu_type type);

/* ---------------------------------------------------------------------------------------------
 * Opening
 */

typedef struct cogpu_file cogpu_file;

/* Resources that calls share: threads, devices, block cache, connections, PROJ database. Create one
 * with cogpu_context_open. Reads into host memory may go without: then each call starts its own
 * threads and keeps no blocks. Reads into device memory need one, which keeps the device's working
 * memory. */
typedef struct cogpu_context cogpu_context;

/* Upper limits of what a file may take. A file that exceeds one is COGPU_LIMIT_EXCEEDED; the
 * message names the limit. */
typedef struct cogpu_limits {
    size_t struct_size;
    uint64_t directories;          /* 65,536    directories in a file, SubIFDs included */
    uint64_t tags;                 /* 4,096     entries in one directory */
    uint64_t tag_bytes;            /* 64 MiB    value of one tag that is loaded */
    uint64_t blocks;               /* 2^31 - 1  blocks in one directory */
    uint64_t block_bytes;          /* 1 GiB     one block in memory, encoded or decoded */
    uint64_t bands;                /* 65,535    bands of an image */
    uint64_t working_memory_bytes; /* 4 GiB     memory of one call besides the caller's raster */
    uint64_t sources;              /* 1,000,000 sources of a mosaic or VRT, nested ones included */
    uint64_t vrt_bytes;            /* 256 MiB   a VRT file */
} cogpu_limits;
#define COGPU_LIMITS_INIT COGPU_INIT(cogpu_limits)

/* How files are read and written over the network. Names follow libcurl where it has the setting.
 */
typedef struct cogpu_network {
    size_t struct_size;
    int32_t max_retries;                 /* 4       of a failed request; 0: none, negative: 4 */
    uint32_t max_connections;            /* 16      open at a time */
    uint32_t max_requests;               /* 64      in flight at a time; HTTP/2 has several on one
                                          * connection */
    uint64_t header_bytes;               /* 16 KiB  that the first request of a file fetches */
    uint64_t coalesce_gap_bytes;         /* 64 KiB  between blocks that one request fetches */
    uint64_t max_request_bytes;          /* 8 MiB   of one request */
    uint64_t max_inflight_bytes;         /* 48 MiB  received and not yet decoded */
    uint64_t max_full_download_bytes;    /* 16 MiB  of a file whose server has no range requests */
    double connect_timeout_seconds;      /* 10 */
    double low_speed_seconds;            /* 30      below low_speed_bytes_per_second: give up */
    uint32_t low_speed_bytes_per_second; /* 100 */
    double timeout_seconds;              /* 300     of a request, retries included */
    double header_cache_seconds; /* 30      for which the header of an opened file is kept, so
                                  * that opening it again sends no request; negative: never.
                                  * If the file changed meanwhile, reading its pixels fails,
                                  * and opening it once more is right */
    int allow_private_addresses; /* non-zero: loopback and local networks may be accessed. Otherwise
                                  * an untrusted URL cannot reach what only this machine can */
    int allow_link_local_addresses; /* non-zero: link-local addresses, and others at which clouds
                                     * serve metadata and credentials (169.254.169.254,
                                     * fd00:ec2::254); allow_private_addresses excludes them */
    const char *private_hosts; /* hosts that may have private addresses: "host1,host2". If a public
                                * server redirects to a private address, the host must be one of
                                * these, or that of the URL, even with allow_private_addresses */
    const char *schemes;       /* "https,http,s3"  allowed schemes */
    const char *ca_file;       /* trusted certificates, PEM (default: the system's) */
    /* For s3:// URLs. Defaults come from AWS_REGION, AWS_ENDPOINT_URL, AWS_PROFILE,
     * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the files of the AWS CLI. */
    const char *s3_region, *s3_endpoint, *s3_profile;
    const char *s3_access_key, *s3_secret_key, *s3_session_token;
    int s3_anonymous; /* non-zero: unsigned requests */
    int reserved;     /* 0 */
} cogpu_network;
#ifdef __cplusplus
#define COGPU_NETWORK_INIT                                                                         \
    { sizeof(cogpu_network), -1 }
#else
#define COGPU_NETWORK_INIT                                                                         \
    { .struct_size = sizeof(cogpu_network), .max_retries = -1 }
#endif

/* Whether files beside PATH are read, as GDAL reads them: PATH.ovr, PATH.msk, PATH.aux.xml, world
 * files, RPC files; see docs/sidecars.md. What cannot be read of them becomes a warning. */
typedef enum cogpu_sidecars {
    COGPU_SIDECARS_DEFAULT = 0, /* of local files, not of URLs */
    COGPU_SIDECARS_NONE,
    COGPU_SIDECARS_ALL /* of URLs too: one request for each possible name */
} cogpu_sidecars;

/* Which files a VRT may name as its sources: see docs/mosaics.md. */
typedef enum cogpu_vrt_sources {
    COGPU_VRT_SOURCES_DEFAULT = 0, /* of a local VRT: regular files of this machine; of a URL: URLs
                                    * of the same server */
    COGPU_VRT_SOURCES_BELOW,       /* of these, only those in the folder of the VRT and below it */
    COGPU_VRT_SOURCES_ANY          /* URLs too, from a local VRT, and other servers */
} cogpu_vrt_sources;

typedef struct cogpu_open_options {
    size_t struct_size;
    const cogpu_limits *limits; /* NULL: defaults */
    cogpu_sidecars sidecars;
    cogpu_context *context; /* connections and network settings for URLs; closed after the file.
                             * NULL: the file has its own. Connections do not survive fork: a child
                             * process opens URLs again, with another context */
    cogpu_vrt_sources vrt_sources;
    int reserved; /* 0 */
} cogpu_open_options;
#define COGPU_OPEN_OPTIONS_INIT COGPU_INIT(cogpu_open_options)

/* A user's source of bytes. The functions are called from several threads at a time, and must not
 * call functions with a context.
 *
 * `read` copies up to `bytes` bytes at `offset` to `to` and sets *got; fewer bytes mean the end.
 * `size` returns the length of the source.
 * `close` (may be NULL) is called once, by cogpu_close, or by cogpu_open_source if that fails.
 * `read_many` (may be NULL) replaces `read` for a source whose reads are network requests: range i
 * is `bytes[i]` bytes at `offsets[i]`, copied to `to[i]`. The library passes all ranges that a call
 * will need, coalesced, up to 32 MiB ahead. The function should start all requests before it waits
 * for one. It delivers all bytes, or fails; then the library calls it for each range alone. */
typedef struct cogpu_source {
    size_t struct_size;
    void *user;
    cogpu_status (*read)(void *user, uint64_t offset, size_t bytes, void *to, size_t *got);
    cogpu_status (*size)(void *user, uint64_t *bytes);
    void (*close)(void *user);
    cogpu_status (*read_many)(void *user, const uint64_t *offsets, const size_t *bytes,
                              void *const *to, size_t count);
} cogpu_source;
#define COGPU_SOURCE_INIT COGPU_INIT(cogpu_source)

/* Opens a path or URL and reads its directories, but no pixels. *file is NULL after a failure.
 * `options` may be NULL. The memory of cogpu_open_memory must live until cogpu_close; if it is
 * pinned (cuMemHostAlloc, cuMemHostRegister), GPUs copy blocks straight from it. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open(const char *path,
                                                   const cogpu_open_options *options,
                                                   cogpu_file **file, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open_memory(const void *data, size_t bytes,
                                                          const cogpu_open_options *options,
                                                          cogpu_file **file, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open_source(const cogpu_source *source,
                                                          const cogpu_open_options *options,
                                                          cogpu_file **file, cogpu_error *error);

/* Version identifier of an open file. URL: ETag, Last-Modified and size; path: size, modification
 * time and inode. It changes when the file changes. Reads compare it and fail with COGPU_IO_ERROR
 * if the file changed since it was opened. NULL for memory and user's sources. */
COGPU_API const char *cogpu_file_version_id(const cogpu_file *file);

/* Paths or URLs of the sidecars in use, from index 0; NULL past the last. */
COGPU_API const char *cogpu_sidecar_path(const cogpu_file *file, uint32_t index);

/* Frees the file and everything it returned. NULL is allowed. */
COGPU_API void cogpu_close(cogpu_file *file);

/* ---------------------------------------------------------------------------------------------
 * Contents of a file
 *
 * A file holds images (subdatasets in GDAL); most hold one. An image has levels: 0 is the full
 * resolution, 1 the first overview. Each level and each mask is a directory of the file.
 */

typedef enum cogpu_layout { COGPU_LAYOUT_STRIPS = 0, COGPU_LAYOUT_TILES } cogpu_layout;

typedef enum cogpu_interleave {
    COGPU_INTERLEAVE_PIXEL = 0, /* a block holds all bands (PlanarConfiguration 1) */
    COGPU_INTERLEAVE_BAND       /* each band has blocks of its own (PlanarConfiguration 2) */
} cogpu_interleave;

/* What defines the valid pixels of an image, in GDAL's order of precedence. */
typedef enum cogpu_mask_source {
    COGPU_MASK_SOURCE_NONE = 0,  /* all pixels are valid */
    COGPU_MASK_SOURCE_DIRECTORY, /* a mask directory of the file, or PATH.msk */
    COGPU_MASK_SOURCE_NODATA,
    COGPU_MASK_SOURCE_ALPHA
} cogpu_mask_source;

/* Promises of GDAL's ghost area, a text between header and first directory. */
enum {
    COGPU_GHOST_PRESENT = 1,
    COGPU_GHOST_IFDS_BEFORE_DATA = 2,
    COGPU_GHOST_ROW_MAJOR = 4,
    COGPU_GHOST_LEADER = 8,            /* each block follows its size */
    COGPU_GHOST_TRAILER = 16,          /* ... and is followed by its last four bytes again */
    COGPU_GHOST_MASK_INTERLEAVED = 32, /* each block is followed by its mask's block */
    COGPU_GHOST_BROKEN = 64,           /* the file was edited since: no promise holds */
    COGPU_GHOST_TILE_INTERLEAVED = 128 /* band interleaved, tile by tile */
};

typedef struct cogpu_image {
    size_t struct_size;
    uint32_t directory; /* of level 0 */
    uint32_t width, height;
    uint32_t bands;
    cogpu_type type; /* of the samples that cogpu_read returns, unless it converts */
    uint32_t bits;   /* stored bits of a sample, 1 to 128 */
    uint32_t levels; /* 1: no overviews */
    cogpu_layout layout;
    uint32_t block_width, block_height;
    uint64_t blocks; /* in the directory of level 0 */
    cogpu_interleave interleave;
    uint32_t compression; /* TIFF's number */
    const char *codec;    /* its name: "deflate", "lzw", ...; "unknown" */
    uint32_t predictor;   /* 1 none, 2 horizontal, 3 floating point */
    uint32_t photometric; /* TIFF's number: 0 min is white, 1 min is black, 2 RGB, 3 palette, ... */
    uint32_t orientation; /* 1: rows from the top; pixels are returned as stored */
    uint32_t fill_order;  /* 2: the bits of each byte are reversed in the file */
    int big_endian, bigtiff;
    uint32_t ghost;          /* COGPU_GHOST_... */
    const char *description; /* ImageDescription, or NULL */

    cogpu_mask_source mask_source; /* of band 1: PATH.aux.xml can give bands nodata of their own */
    uint32_t alpha_band;           /* from 1; 0: none */
    int premultiplied;             /* non-zero: colours are multiplied by alpha (associated) */
    const uint16_t *palette;       /* palette_entries reds, then greens, then blues; or NULL */
    uint32_t palette_entries;

    /* GDAL's geotransform, for the corner of a pixel:
     * x = transform[0] + column * transform[1] + row * transform[2]
     * y = transform[3] + column * transform[4] + row * transform[5] */
    int has_transform;
    double transform[6];
    int pixel_is_point; /* the file's coordinates are pixel centres; `transform` is corrected */
    uint32_t gcp_count; /* ground control points: see cogpu_gcp_info */
    const double *rpc;  /* the 92 numbers of tag 50844, or NULL. The first two are NaN if a sidecar
                         * does not state them */
    uint32_t geokey_count;   /* see cogpu_geokey_info */
    uint32_t metadata_count; /* see cogpu_metadata_info */
    const char *warning; /* malformed parts of the file that were ignored, a line each; or NULL */
} cogpu_image;
#define COGPU_IMAGE_INIT COGPU_INIT(cogpu_image)

typedef struct cogpu_level {
    size_t struct_size;
    uint32_t directory;
    int external; /* non-zero: in the .ovr file */
    uint32_t width, height;
    cogpu_layout layout;
    uint32_t block_width, block_height;
    uint64_t blocks;
    uint32_t compression;
    const char *codec;
    uint32_t predictor;
    int has_mask;
    int mask_external; /* non-zero: in the .msk file, or in its .ovr file */
    uint32_t mask_directory;
    int has_transform;
    double transform[6]; /* that of level 0, scaled by the ratio of the sizes */
} cogpu_level;
#define COGPU_LEVEL_INIT COGPU_INIT(cogpu_level)

typedef struct cogpu_band {
    size_t struct_size;
    const char *description;    /* or NULL */
    const char *unit;           /* or NULL */
    const char *interpretation; /* "gray", "red", "green", "blue", "alpha", "palette", ...
                                 * "undefined" */
    double scale, offset; /* value = stored * scale + offset. 1 and 0 by default, for a text that is
                           * no number, and for a scale of 0 */
    int has_scale;        /* non-zero: the file states scale or offset */
    const char *nodata;   /* as the file states it; NULL: none */
    int nodata_matches;   /* non-zero: a sample can equal it; "-9999" on uint16 never does */
    double nodata_value;  /* rounded to the sample type; exact except for 64-bit integers */
    int64_t nodata_i64;   /* exact value for an I64 image */
    uint64_t nodata_u64;  /* exact value for a U64 image */
} cogpu_band;
#define COGPU_BAND_INIT COGPU_INIT(cogpu_band)

/* A ground control point (GCP). */
typedef struct cogpu_gcp {
    size_t struct_size;
    double column, row, pixel_z; /* I, J, K of the file; 0, 0 is the upper left corner */
    double x, y, z;
    const char *id, *info; /* of points in PATH.aux.xml; else NULL. Not written */
} cogpu_gcp;
#define COGPU_GCP_INIT COGPU_INIT(cogpu_gcp)

/* A metadata item of GDAL_METADATA or PATH.aux.xml. A document (domains "xml:..." and "json:...")
 * is one item named "doc". */
typedef struct cogpu_metadata_item {
    size_t struct_size;
    const char *domain; /* "" for the default domain */
    const char *name;
    const char *value;
    const char *role; /* "", "scale", "offset", "description", "unittype", "colorinterp" */
    int32_t band;     /* from 1; 0: the whole image */
    int reserved;     /* 0 */
} cogpu_metadata_item;
#define COGPU_METADATA_ITEM_INIT COGPU_INIT(cogpu_metadata_item)

typedef enum cogpu_geokey_kind {
    COGPU_GEOKEY_SHORT = 0,
    COGPU_GEOKEY_DOUBLE,
    COGPU_GEOKEY_TEXT
} cogpu_geokey_kind;

/* One GeoKey. `kind` says which of the three values is set. */
typedef struct cogpu_geokey {
    size_t struct_size;
    uint32_t id;
    const char *name; /* "GTModelType"; "unknown" */
    cogpu_geokey_kind kind;
    uint32_t count; /* of numbers */
    const uint16_t *shorts;
    const double *doubles;
    const char *text; /* without the closing bar */
} cogpu_geokey;
#define COGPU_GEOKEY_INIT COGPU_INIT(cogpu_geokey)

/* The coordinate reference system (CRS). */
typedef struct cogpu_crs {
    size_t struct_size;
    const char *model;     /* "projected", "geographic", "geocentric", "engineering" (LOCAL_CS) */
    const char *authority; /* "EPSG"; "" if the keys describe the CRS by parameters only */
    uint32_t code;         /* 0 without an authority */
    uint32_t vertical;     /* EPSG code of the vertical CRS; 0: none */
    const char *name;      /* citation of the file, or "" */
    double epoch;          /* coordinate epoch; 0: none */
    int external;          /* non-zero: from a sidecar, not from the GeoKeys */
    int reserved;          /* 0 */
} cogpu_crs;
#define COGPU_CRS_INIT COGPU_INIT(cogpu_crs)

/* Number of images in the file; 0 for NULL. */
COGPU_API uint32_t cogpu_image_count(const cogpu_file *file);

/* Images, levels, items, keys and points count from 0, bands from 1. COGPU_NOT_FOUND past the last.
 */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_image_info(const cogpu_file *file, uint32_t image,
                                                         cogpu_image *info, cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_level_info(const cogpu_file *file, uint32_t image,
                                                         uint32_t level, cogpu_level *info,
                                                         cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_band_info(const cogpu_file *file, uint32_t image,
                                                        uint32_t band, cogpu_band *info,
                                                        cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_gcp_info(const cogpu_file *file, uint32_t image,
                                                       uint32_t index, cogpu_gcp *info,
                                                       cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_metadata_info(const cogpu_file *file, uint32_t image,
                                                            uint32_t index,
                                                            cogpu_metadata_item *info,
                                                            cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_geokey_info(const cogpu_file *file, uint32_t image,
                                                          uint32_t index, cogpu_geokey *info,
                                                          cogpu_error *error);
/* COGPU_NOT_FOUND if the image has no CRS. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_crs_info(const cogpu_file *file, uint32_t image,
                                                       cogpu_crs *info, cogpu_error *error);
/* The CRS as WKT2, by PROJ. Writes at most `capacity` bytes with the closing NUL to `text`; *needed
 * is the size of the whole, so a first call may pass capacity 0. `context` may be NULL; with one
 * the PROJ database stays open, and the next call takes a tenth of the time. COGPU_UNSUPPORTED in a
 * build without PROJ, or if PROJ cannot express the CRS. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_crs_wkt(const cogpu_file *file, uint32_t image,
                                                      cogpu_context *context, char *text,
                                                      size_t capacity, size_t *needed,
                                                      cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Pixels and coordinates
 */

typedef struct cogpu_window {
    size_t struct_size;
    uint32_t x, y, width, height;
} cogpu_window;
#define COGPU_WINDOW_INIT COGPU_INIT(cogpu_window)

/* Coordinates of a position in pixels; 0, 0 is the upper left corner of the image, 0.5, 0.5 the
 * centre of its first pixel. Any transform, rotated ones included. */
COGPU_API void cogpu_pixel_to_coordinate(const double transform[6], double column, double row,
                                         double *x, double *y);
/* The inverse. COGPU_INVALID_ARGUMENT if the transform has none. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_coordinate_to_pixel(const double transform[6],
                                                                  double x, double y,
                                                                  double *column, double *row,
                                                                  cogpu_error *error);
/* The smallest window of a level that covers the part of a bounding box (left, bottom, right, top)
 * inside the level. A millionth of a pixel is ignored, so a box along pixel edges does not touch
 * the neighbours. COGPU_NOT_FOUND if the box does not touch the level, COGPU_INVALID_ARGUMENT if
 * the transform is rotated or has no inverse. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_bbox_to_window(const double transform[6],
                                                             uint32_t width, uint32_t height,
                                                             const double bbox[4],
                                                             cogpu_window *window,
                                                             cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Raw tags
 */

typedef struct cogpu_directory {
    size_t struct_size;
    uint32_t directory_count; /* in the file */
    uint64_t offset;
    uint32_t tag_count;
    int32_t parent;        /* of a SubIFD: the directory that names it; -1 in the main chain */
    uint32_t subfile_type; /* NewSubfileType: 1 reduced, 2 page, 4 mask */
    int reserved;          /* 0 */
} cogpu_directory;
#define COGPU_DIRECTORY_INIT COGPU_INIT(cogpu_directory)

typedef struct cogpu_tag {
    size_t struct_size;
    uint32_t id;
    const char *name; /* "ImageWidth"; "unknown" */
    uint32_t type;    /* TIFF's: 1 BYTE ... 18 IFD8 */
    uint64_t count;
    uint64_t value_offset; /* of the value in the file */
    uint64_t bytes;        /* of the value */
} cogpu_tag;
#define COGPU_TAG_INIT COGPU_INIT(cogpu_tag)

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_directory_info(const cogpu_file *file,
                                                             uint32_t directory,
                                                             cogpu_directory *info,
                                                             cogpu_error *error);
/* The index-th tag of a directory, in file order; COGPU_NOT_FOUND past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_tag_info(const cogpu_file *file, uint32_t directory,
                                                       uint32_t index, cogpu_tag *info,
                                                       cogpu_error *error);
/* Copies `count` elements of a tag, from element `first`, to the array `to`: in native byte order
 * and the width of the tag's type (a RATIONAL is two uint32). COGPU_NOT_FOUND without such a tag,
 * COGPU_INVALID_ARGUMENT past its last element. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_tag_read(const cogpu_file *file, uint32_t directory,
                                                       uint32_t id, uint64_t first, uint64_t count,
                                                       void *to, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Devices
 *
 * Rasters may be in device memory. The library uses the GPU's primary context, as the CUDA runtime,
 * CuPy and PyTorch do, so their memory and streams work as they are. Device numbers are CUDA's. It
 * needs NVIDIA's driver, a GPU of compute capability 7.5 or later, and a build with nvcc. The CPU
 * encodes what needs more shared memory than the GPU has.
 *
 * Set CUDA_DEVICE_MAX_CONNECTIONS=8 before the process first uses CUDA: a read uses seven streams,
 * and the driver has four hardware queues for them by default.
 */

typedef enum cogpu_device_kind {
    COGPU_DEVICE_CPU = 0,
    COGPU_DEVICE_CUDA,    /* an NVIDIA GPU */
    COGPU_DEVICE_EMULATOR /* a GPU that the CPU emulates, slow and strict, for tests; its device
                           * memory is host memory. COGPU_EMU_DEVICES (1 to 16) in the environment
                           * is the number of such devices,
                           * COGPU_EMU_CAPABILITY (7.5) their compute capability */
} cogpu_device_kind;

typedef struct cogpu_context_options {
    size_t struct_size;
    uint32_t threads;      /* that fetch and decode (default: one per CPU core) */
    uint64_t cache_bytes;  /* decoded blocks kept for later reads into host memory, until their file
                            * is closed; 0: none. COGPU_CACHE_DEFAULT: a twentieth of the memory, at
                            * most 256 MiB, of blocks that a read needs a part of; one read adds at
                            * most a fifth of that */
    uint64_t device_bytes; /* device memory of reads besides the caller's raster (512 MB). The CPU
                            * decodes blocks that do not fit; with a few megabytes reads return
                            * COGPU_LIMIT_EXCEEDED */
    int use_nvjpeg_hardware; /* non-zero: the GPU's JPEG decoder is used, if it has one and nvJPEG
                              * is installed. Valid blocks have the same pixels; damaged blocks may
                              * go unnoticed */
    const cogpu_network *network; /* copied; NULL: defaults */
    uint64_t device_cache_bytes;  /* memory of each device that keeps blocks as they are stored, for
                                   * later reads into rasters there, which then neither read the
                                   * file nor copy its bytes; 0: none. It is beside `device_bytes`,
                                   * and taken as it is needed. Then the device decodes small reads,
                                   * too, which the CPU might decode faster. Blocks with more bytes
                                   * than a sixteenth of it, or than 64 MiB, are not kept. A file
                                   * that is opened again is another file */
} cogpu_context_options;
#define COGPU_CACHE_DEFAULT UINT64_MAX
#ifdef __cplusplus
#define COGPU_CONTEXT_OPTIONS_INIT                                                                 \
    { sizeof(cogpu_context_options), 0, COGPU_CACHE_DEFAULT }
#else
#define COGPU_CONTEXT_OPTIONS_INIT                                                                 \
    { .struct_size = sizeof(cogpu_context_options), .cache_bytes = COGPU_CACHE_DEFAULT }
#endif

COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_context_open(const cogpu_context_options *options,
                                                           cogpu_context **context,
                                                           cogpu_error *error);
/* Close a context after its last pending read and after its device memory is freed. NULL is
 * allowed. */
COGPU_API void cogpu_context_close(cogpu_context *context);

/* Device memory, for programs without another allocator; not host memory (COGPU_DEVICE_CPU).
 * `index` counts the devices of a kind from 0. Copies are complete when the call returns.
 * COGPU_DEVICE_ERROR if there is no such device. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_allocate(cogpu_context *context,
                                                              cogpu_device_kind device,
                                                              uint32_t index, uint64_t bytes,
                                                              void **memory, cogpu_error *error);
COGPU_API void cogpu_device_free(cogpu_context *context, cogpu_device_kind device, uint32_t index,
                                 void *memory);
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

/* For programs that pass memory and streams of other libraries.
 *
 * The calling thread's current device of a kind: of CUDA that of its CUDA context (the current
 * device of CuPy and PyTorch), 0 without one; of emulated ones the number in COGPU_EMU_DEVICE. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_current(cogpu_device_kind device,
                                                             uint32_t *index, cogpu_error *error);
/* The device of a pointer: a GPU, whatever library allocated it; an emulated one, if
 * cogpu_device_allocate did with this context; else COGPU_DEVICE_CPU. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_pointer_device(cogpu_context *context,
                                                             const void *memory,
                                                             cogpu_device_kind *device,
                                                             uint32_t *index, cogpu_error *error);
/* Later work of `stream` runs after the work that `before` holds now; the host does not wait. NULL
 * is the default stream. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_stream_wait(cogpu_context *context,
                                                          cogpu_device_kind device, uint32_t index,
                                                          void *stream, void *before,
                                                          cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Reading pixels
 */

/* The caller's pixels. Strides are in bytes and may be negative; all three 0 means contiguous:
 * bands one after the other, each row-major. For pixel interleaving set stride_x = bands * size,
 * stride_y = width * stride_x and stride_band = size. */
typedef struct cogpu_raster {
    size_t struct_size;
    void *data;      /* of band 0, row 0, column 0 */
    cogpu_type type; /* the image's; or F16, F32 or F64, to which samples are converted;
                      * COGPU_TYPE_U8 for masks */
    uint32_t bands, height, width;
    int64_t stride_band, stride_y, stride_x;
    cogpu_device_kind device; /* of `data` */
    uint32_t device_index;
    void *stream; /* of a GPU: a CUstream or cudaStream_t, NULL for the default stream. Work that it
                   * holds already is done before the raster is written */
} cogpu_raster;
#define COGPU_RASTER_INIT COGPU_INIT(cogpu_raster)

typedef enum cogpu_content {
    COGPU_CONTENT_PIXELS = 0,
    COGPU_CONTENT_MASK /* 255 for a valid pixel, else 0: see cogpu_mask_source. The raster has the
                        * request's bands: with nodata each has its own mask; an alpha band or a
                        * mask directory of one band is repeated */
} cogpu_content;

/* What to read; NULL: every pixel of level 0 of image 0.
 *
 * Samples except complex ones can be converted to F16, F32 or F64. They are rounded to the nearest
 * value of that type. Unscaling computes in double for F64 and in float otherwise; product and sum
 * are rounded separately, as NumPy does. A NaN that a conversion makes is quiet, without sign and
 * payload. All devices give the same bits. */
typedef struct cogpu_request {
    size_t struct_size;
    uint32_t image, level;
    uint32_t x, y;          /* the window, in pixels of the level */
    uint32_t width, height; /* 0: to the edge */
    const uint32_t *bands;  /* from 1, any order, repeats allowed; NULL: all */
    uint32_t band_count;
    cogpu_content content;
    int fill_bad_blocks; /* non-zero: a block that cannot be read becomes nodata (or 0) and is
                          * counted; the read goes on */
    int masked;  /* non-zero: invalid samples become NaN. Needs a float raster. With nodata samples,
                  * with a mask directory or an alpha band pixels */
    int unscale; /* non-zero: scale and offset of the bands are applied; see cogpu_band. Nodata is
                  * compared before */
    uint32_t threads;       /* default: the context's, or one per CPU core */
    cogpu_context *context; /* may be NULL for host memory */
    /* Called after each block or few blocks, and every tenth of a second while the read waits for a
     * server or a large block. `done` never decreases; the last call of a successful read has done
     * == total. The function must not use the same file or context. For an asynchronous read it may
     * be called until cogpu_wait returns, also from other calls with the same context. */
    cogpu_progress progress;
    void *progress_user;
    /* The device that decodes blocks for a raster in host memory; needs `context`. The rows come
     * down while the next ones are decoded, and take as much device memory as `device_bytes` once
     * more. The CPU decodes what the device cannot, and windows of so few blocks that it is faster.
     * Default: the CPU. A raster in device memory is decoded by its own device. */
    cogpu_device_kind decode_device;
    uint32_t decode_device_index;
} cogpu_request;
#define COGPU_REQUEST_INIT COGPU_INIT(cogpu_request)

typedef struct cogpu_result {
    size_t struct_size;
    uint64_t blocks;              /* of the window */
    uint64_t sparse_blocks;       /* of these, without data in the file */
    uint64_t bad_blocks;          /* of these, filled because they could not be read */
    uint64_t cached_blocks;       /* of these, from the context's cache */
    uint64_t device_blocks;       /* of these, decoded by a device */
    uint64_t cpu_fallback_blocks; /* of these, refused by the device and decoded by the CPU */
    uint64_t bytes_read;          /* of blocks, from the source */
    uint64_t gds_bytes;           /* of these, by GPUDirect Storage */
    /* Milliseconds of a read on a device, summed over its batches, whose stages overlap: fetching
     * (and decoding on the CPU what the device cannot), copying to the device, decoding, unpacking.
     * If items of cogpu_read_many share a batch, its time is reported in one of them. The emulator
     * measures fetch_ms only. */
    double fetch_ms, copy_ms, decode_ms, unpack_ms;
    cogpu_error first_bad;         /* the first bad block */
    uint64_t sources;              /* of a mosaic, that the window touches */
    uint64_t bad_sources;          /* of these, left out because they could not be read */
    uint64_t device_cached_blocks; /* of device_blocks, those that the device's cache had */
} cogpu_result;
#define COGPU_RESULT_INIT COGPU_INIT(cogpu_result)

/* Reads a window into the raster, whose bands, width and height must be those of the request. After
 * return the pixels are complete for every stream. After an error the raster's content is
 * undefined. `request` and `result` may be NULL. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_read(const cogpu_file *file,
                                                   const cogpu_request *request,
                                                   const cogpu_raster *raster, cogpu_result *result,
                                                   cogpu_error *error);

/* An asynchronous read. */
typedef struct cogpu_pending cogpu_pending;

/* Returns when all blocks are on their way to the device; work that the raster's stream gets from
 * then on runs after them. The request's bands, the file, the context, and the raster's memory and
 * stream must stay until cogpu_wait. *pending is NULL after a failure. Reads that the CPU does,
 * such as those into host memory, are complete when the call returns.
 *
 * cogpu_wait waits for the read, returns its status and frees `pending`. Blocks that the device
 * refused (damaged or rare ones) reach the raster only then: if result->cpu_fallback_blocks or the
 * status is not 0, work in between has not seen them. Several reads may be pending, and be waited
 * for in any order. NULL is allowed and does nothing. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_read_async(const cogpu_file *file,
                                                         const cogpu_request *request,
                                                         const cogpu_raster *raster,
                                                         cogpu_pending **pending,
                                                         cogpu_error *error);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_wait(cogpu_pending *pending, cogpu_result *result,
                                                   cogpu_error *error);

/* One read of cogpu_read_many. */
typedef struct cogpu_read_item {
    size_t struct_size;
    const cogpu_file *file;
    const cogpu_request *request; /* may be NULL; `threads` and `context` are those of the call */
    const cogpu_raster *raster;
    cogpu_result *result; /* filled; may be NULL */
    cogpu_status status;  /* filled */
    int reserved;         /* 0 */
} cogpu_read_item;
#define COGPU_READ_ITEM_INIT COGPU_INIT(cogpu_read_item)

/* Reads many windows, of one file or of many, in shared batches, by the threads of the context
 * (NULL: one thread per CPU core, and no devices). Rasters may be on different devices. Each item
 * gets a status. The first item that failed, by index, is the status and the error of the call; the
 * others are read all the same. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_read_many(cogpu_read_item *items, size_t count,
                                                        cogpu_context *context, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Writing
 *
 * A writer takes rows from the top down, in chunks of any height. It encodes each row of blocks
 * when it is full, and forgets it: memory does not grow with the height of the image, overviews
 * included. The bytes of the file depend on the pixels and the profile only, not on chunks, threads
 * or strides.
 *
 *     cogpu_profile profile = COGPU_PROFILE_INIT;
 *     cogpu_sink sink = COGPU_SINK_INIT;
 *     profile.width = raster.width;
 *     profile.height = raster.height;
 *     profile.bands = raster.bands;
 *     profile.type = raster.type;
 *     profile.cog = 1;
 *     profile.crs = "EPSG:32633";
 *     sink.path = "dem.tif";
 *     status = cogpu_write(&sink, &profile, &raster, NULL, NULL, &error);
 */

/* Memory that the library allocated for the caller. */
typedef struct cogpu_memory {
    size_t struct_size;
    void *data;
    size_t bytes;
} cogpu_memory;
#define COGPU_MEMORY_INIT COGPU_INIT(cogpu_memory)

/* Frees the data and clears the fields. NULL is allowed. */
COGPU_API void cogpu_memory_free(cogpu_memory *memory);

/* Where a file goes: a path, an s3:// URL, library memory, the caller's buffer, or user functions.
 *
 * Path: the old file stays until the new one is complete, also if writing fails or the process
 * ends. The writer fills a part file beside it (PATH.HEX.cogpu-part) and renames it at the end. The
 * next writer of the same path removes part files of killed processes. Sidecars of the old file
 * that would be read with the new one (PATH.ovr, .aux.xml, .msk, .msk.ovr) are removed with it, as
 * GDAL does. Owner, group and permissions of the old file are kept if the process may set them; a
 * file that it may not write is not replaced. A full disk, or a file beyond RLIMIT_FSIZE, is
 * COGPU_IO_ERROR; no SIGXFSZ is raised. Data that has to wait for its place goes to unnamed files
 * beside the path, or in TMPDIR without a path.
 *
 * s3://bucket/key: a multipart upload while rows come: level 0 first, header and overviews last.
 * The object appears when the upload completes; an old object stays until then. At most four parts
 * are in memory, of 10 MiB, or of a 9,000th of the largest possible file if that is more: a writer
 * that is faster than the network waits. If writing fails, the upload is aborted; if the process is
 * killed, its parts stay until the bucket's rules remove them. Network settings and credentials are
 * those of the profile's context. Sidecars of an old object stay. http:// and https:// are for
 * reading only. */
typedef struct cogpu_sink {
    size_t struct_size;
    const char *path;          /* or an s3:// URL */
    int keep_sidecars;         /* non-zero: sidecars of the old file still apply, and stay */
    int no_replace;            /* non-zero: COGPU_IO_ERROR if the path exists, at the end too */
    const char *const *inputs; /* paths that the new file is made of: COGPU_INVALID_ARGUMENT if one
                                * of them, by whatever name, or its sidecar would be removed */
    uint32_t input_count;
    cogpu_memory *memory; /* filled when the writer is closed; untouched after a failure */
    void *buffer;         /* the caller's: COGPU_LIMIT_EXCEEDED if the file needs more than
                           * buffer_bytes. Its content behind the file, and after a failure, is
                           * undefined. If it is pinned (cuMemHostAlloc, cuMemHostRegister), GPUs
                           * copy blocks straight into it */
    size_t buffer_bytes;

    void *user;
    /* Writes `bytes` bytes at `offset`. A result other than COGPU_OK becomes the writer's status.
     * One call at a time, by any thread of the writer, also between calls of the writer's
     * functions. */
    cogpu_status (*write)(void *user, uint64_t offset, const void *from, size_t bytes);
    cogpu_status (*commit)(void *user); /* after the last byte; may be NULL */
    void (*abort)(void *user); /* instead of commit, once, also if no writer could be opened; may be
                                * NULL */
    int append_only; /* non-zero: each write begins where the last one ended. Nothing is written
                      * before the writer is closed, then */
    int reserved;    /* 0 */
} cogpu_sink;
#define COGPU_SINK_INIT COGPU_INIT(cogpu_sink)

/* How pixels are computed from those of another grid. Overviews have the methods up to
 * COGPU_RESAMPLE_MEDIAN, mosaics have all. */
typedef enum cogpu_resampling {
    COGPU_RESAMPLE_DEFAULT = 0, /* overviews: nearest for palettes and complex samples, else
                                 * average; mosaics: nearest */
    COGPU_RESAMPLE_NEAREST,
    COGPU_RESAMPLE_AVERAGE,
    COGPU_RESAMPLE_RMS,
    COGPU_RESAMPLE_BILINEAR,
    COGPU_RESAMPLE_CUBIC,
    COGPU_RESAMPLE_MODE,
    COGPU_RESAMPLE_MIN,
    COGPU_RESAMPLE_MAX,
    COGPU_RESAMPLE_MEDIAN,
    COGPU_RESAMPLE_CUBICSPLINE,
    COGPU_RESAMPLE_LANCZOS,
    COGPU_RESAMPLE_Q1, /* first quartile */
    COGPU_RESAMPLE_Q3, /* third quartile */
    COGPU_RESAMPLE_SUM /* of the source pixels, by the area of each that a target pixel covers */
} cogpu_resampling;

typedef enum cogpu_overviews {
    COGPU_OVERVIEWS_DEFAULT =
        0, /* LISTED with `overview_factors`, else AUTO for a COG, else NONE */
    COGPU_OVERVIEWS_NONE,
    COGPU_OVERVIEWS_AUTO, /* 2, 4, 8 ... until one block holds the level */
    COGPU_OVERVIEWS_LISTED
} cogpu_overviews;

typedef enum cogpu_bigtiff {
    COGPU_BIGTIFF_AUTO = 0, /* BigTIFF if the file could exceed 4 GiB in the worst case */
    COGPU_BIGTIFF_YES,
    COGPU_BIGTIFF_NO /* COGPU_LIMIT_EXCEEDED if the file exceeds 4 GiB */
} cogpu_bigtiff;

/* TIFF's numbers, except for 0: TIFF's 0 is COGPU_PHOTOMETRIC_MIN_IS_WHITE. */
typedef enum cogpu_photometric {
    COGPU_PHOTOMETRIC_DEFAULT = 0, /* palette with one; RGB for 3 or 4 bands of uint8 of which the
                                    * fourth, if any, is alpha (YCbCr with JPEG); else min is
                                    * black */
    COGPU_PHOTOMETRIC_MIN_IS_BLACK = 1,
    COGPU_PHOTOMETRIC_RGB = 2,
    COGPU_PHOTOMETRIC_PALETTE = 3,
    COGPU_PHOTOMETRIC_CMYK = 5,
    COGPU_PHOTOMETRIC_YCBCR = 6, /* with JPEG: the bands are RGB, which it converts; with other
                                  * codecs: 3 bands of more than 8 bits, stored as they are */
    COGPU_PHOTOMETRIC_CIELAB = 8,
    COGPU_PHOTOMETRIC_MIN_IS_WHITE = 256
} cogpu_photometric;

/* A tag that is written as it is, to the directory of level 0. Tags that the writer makes itself
 * and tags that point to other parts of a file are refused; GDAL_NODATA is accepted if the profile
 * has no nodata, for a value that no sample can have. */
typedef struct cogpu_extra_tag {
    size_t struct_size;
    uint32_t id;
    uint32_t type; /* TIFF's: 1 BYTE ... 12 DOUBLE, 16 LONG8, 17 SLONG8 */
    uint64_t count;
    const void *values; /* in native byte order; a RATIONAL is two uint32 */
} cogpu_extra_tag;
#define COGPU_EXTRA_TAG_INIT COGPU_INIT(cogpu_extra_tag)

/* What to write. Width, height, bands and type are required. Memory that the profile points to must
 * stay until the writer is open. */
typedef struct cogpu_profile {
    size_t struct_size;
    uint32_t width, height, bands;
    cogpu_type type;

    int cog;                            /* non-zero: a Cloud Optimized GeoTIFF */
    int strips;                         /* non-zero: strips instead of tiles; not with `cog` */
    uint32_t block_width, block_height; /* tiles: multiples of 16 (512, less with very many bands;
                                         * the width). Strips: the height only (about 256 KiB) */
    cogpu_interleave interleave;
    const char *codec; /* "none", "packbits", "lzw", "deflate" (default), "zstd", "lzma", "jpeg",
                        * "webp", "lerc", "lerc_deflate", "lerc_zstd"; see cogpu_codec_info */
    int compression_level; /* deflate 1 to 12 (6), zstd 1 to 22 (9), lzma 1 to 9 (6) */
    int quality;           /* JPEG and WebP: 1 to 100 (75) */
    int lossless;          /* non-zero: lossless WebP */
    double max_z_error;    /* LERC; 0: lossless */
    int predictor;         /* 1 none, 2 horizontal, 3 floating point; 0: 2 for integers and 3 for
                            * floats with lzw, deflate and zstd. With lzma, GDAL reads it wrongly if
                            * it uses threads */
    uint32_t bits;         /* of a stored sample: 1 to 7 of uint8, 9 to 15 of uint16, clamped to the
                            * range; 0: all. Not with JPEG, WebP, LERC and predictors */
    cogpu_bigtiff bigtiff;
    int sparse; /* non-zero: blocks that are all nodata (0 without nodata) are left out; except for
                 * 64-bit integers with a nodata other than 0, which GDAL may misread */

    const char *nodata; /* "-9999", "nan"; NULL: none */
    int nan_is_nodata;  /* non-zero: each NaN of a float image is stored as nodata, if that is a
                         * number; the caller's pixels stay as they are */
    cogpu_photometric photometric;
    uint32_t alpha_band;     /* from 1; 0: none */
    int premultiplied;       /* of the alpha band */
    const uint16_t *palette; /* palette_entries reds, then greens, then blues */
    uint32_t palette_entries;
    int mask; /* non-zero: rows come with a mask, stored as a mask directory */

    int has_transform;
    double transform[6]; /* of pixel corners, as in cogpu_image, also with `pixel_is_point` */
    int pixel_is_point;
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const double *rpc; /* 92 numbers, or NULL; the first two may be NaN: unknown */
    const char *crs;   /* "EPSG:4326", WKT, PROJ string; needs PROJ except for EPSG codes; or */
    const cogpu_geokey *geokeys; /* keys as in a file, except GTRasterType */
    uint32_t geokey_count;
    double epoch; /* coordinate epoch of a dynamic CRS, as 2010.5; 0: none */

    const cogpu_metadata_item *metadata; /* GDAL_METADATA; scale, offset, unit and description of
                                          * bands too */
    uint32_t metadata_count;
    const char *description; /* ImageDescription */
    const cogpu_extra_tag *tags;
    uint32_t tag_count;

    cogpu_overviews overviews;
    const uint32_t *overview_factors; /* of COGPU_OVERVIEWS_LISTED: ascending, from 2 */
    uint32_t overview_factor_count;
    cogpu_resampling resampling; /* of overviews */

    uint32_t threads;       /* default: the context's, or one per CPU core */
    cogpu_context *context; /* may be NULL for host memory */

    /* The device that packs, downsamples and encodes. COGPU_DEVICE_CPU: the device of the first
     * rows. Rows elsewhere are copied there. Encoders of GPU and CPU give different bytes and the
     * same pixels, except JPEG of one band or as YCbCr, which nvJPEG encodes with its own rounding
     * if it is installed. The CPU does what a device cannot do, or cannot do within `device_bytes`.
     */
    cogpu_device_kind device;
    uint32_t device_index;

    /* Encoded blocks of all levels and masks. A call that it cancels returns COGPU_CANCELLED and
     * leaves no file. The function must not use the same writer or context. */
    cogpu_progress progress;
    void *progress_user;
} cogpu_profile;
#define COGPU_PROFILE_INIT COGPU_INIT(cogpu_profile)

typedef struct cogpu_written {
    size_t struct_size;
    uint64_t bytes;         /* of the file */
    uint64_t gds_bytes;     /* of these, by GPUDirect Storage */
    uint64_t blocks;        /* of all levels and masks */
    uint64_t sparse_blocks; /* of these, left out */
    uint32_t levels;
    int bigtiff;
} cogpu_written;
#define COGPU_WRITTEN_INIT COGPU_INIT(cogpu_written)

typedef struct cogpu_writer cogpu_writer;

/* Checks the whole profile before the first byte is written. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_open(const cogpu_sink *sink,
                                                          const cogpu_profile *profile,
                                                          cogpu_writer **writer,
                                                          cogpu_error *error);

/* Writes the next rows: all bands, in the profile's width and type. `mask` is NULL, or for a
 * profile with a mask one band of COGPU_TYPE_U8, 0 for invalid pixels. Host memory may be reused
 * when the call returns; device memory by later work of the raster's stream, which waits until the
 * rows are packed. Blocks may still be encoded and written then; a later call reports their
 * failure. After a failure only cogpu_writer_abort is allowed. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_write_rows(cogpu_writer *writer,
                                                                const cogpu_raster *rows,
                                                                const cogpu_raster *mask,
                                                                cogpu_error *error);

/* Completes the file and frees the writer, whatever the status. If rows are missing, or anything
 * fails, there is no new file. `written` may be NULL. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_writer_close(cogpu_writer *writer,
                                                           cogpu_written *written,
                                                           cogpu_error *error);
/* Frees the writer and leaves no file. NULL is allowed. */
COGPU_API void cogpu_writer_abort(cogpu_writer *writer);

/* All rows at once: opens a writer, writes the rows, closes it. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_write(const cogpu_sink *sink,
                                                    const cogpu_profile *profile,
                                                    const cogpu_raster *raster,
                                                    const cogpu_raster *mask,
                                                    cogpu_written *written, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Mosaics and reprojection
 *
 * A mosaic is a list of sources on one grid. Sources may have different CRSs, resolutions and
 * types. The mosaic opens as a file: cogpu_image_info, cogpu_read, cogpu_read_many and all else
 * work on it. Reading a window of it reads the blocks of the sources that the window needs, at the
 * overview level that its resolution needs, and resamples them. Sources on the mosaic's own grid
 * are copied. Reprojection needs PROJ.
 *
 *     cogpu_mosaic_source sources[2] = {COGPU_MOSAIC_SOURCE_INIT, COGPU_MOSAIC_SOURCE_INIT};
 *     cogpu_mosaic_options options = COGPU_MOSAIC_OPTIONS_INIT;
 *     cogpu_grid grid = COGPU_GRID_INIT;
 *     sources[0].path = "utm32.tif";
 *     sources[1].path = "utm33.tif";
 *     grid.crs = "EPSG:3857";
 *     options.grid = &grid;
 *     options.resampling = COGPU_RESAMPLE_BILINEAR;
 *     status = cogpu_open_mosaic(sources, 2, &options, &file, &error);
 *
 * A .vrt file is a mosaic too: cogpu_open opens it. docs/mosaics.md is the guide.
 */

/* A target grid. What is 0 or NULL is computed from the sources, as gdalwarp does. */
typedef struct cogpu_grid {
    size_t struct_size;
    const char *crs;        /* "EPSG:3857", WKT, PROJ string; NULL: that of the first source */
    double transform[6];    /* GDAL's geotransform; with it, width and height are required and the
                             * fields below must be 0 */
    uint32_t width, height; /* in pixels; of both, one may be 0: pixels are square then */
    double resolution[2];   /* width and height of a pixel, in units of the CRS; not with `width` or
                             * `height`, unless `transform` and `bbox` are 0 */
    double bbox[4];         /* left, bottom, right, top */
    const char *bbox_crs;   /* CRS of `bbox` (default: that of the grid) */
    int align;    /* non-zero: edges are multiples of the resolution, which is required (gdalwarp
                   * -tap) */
    int reserved; /* 0 */
} cogpu_grid;
#define COGPU_GRID_INIT COGPU_INIT(cogpu_grid)

/* Which pixel is used where valid pixels of several sources overlap. */
typedef enum cogpu_composite {
    COGPU_COMPOSITE_FIRST = 0, /* that of the first source */
    COGPU_COMPOSITE_LAST,
    COGPU_COMPOSITE_MIN,
    COGPU_COMPOSITE_MAX,
    COGPU_COMPOSITE_MEAN,
    COGPU_COMPOSITE_MEDIAN, /* of an even number: the lower of the two in the middle */
    COGPU_COMPOSITE_COUNT   /* how many sources have a valid pixel */
} cogpu_composite;

typedef struct cogpu_mosaic_source {
    size_t struct_size;
    const char *path;       /* path or URL; or */
    const cogpu_file *file; /* an open file, which must stay open */
    uint32_t image;
    const uint32_t *bands; /* from 1: band i of the mosaic is bands[i] of the source; NULL: all */
    uint32_t band_count;
    const char *nodata;  /* replaces the file's; "none": no nodata */
    int ignore_mask;     /* non-zero: a mask directory does not count */
    int32_t priority;    /* sources are sorted by it, highest first; equal ones keep their order */
    double rpc_height;   /* above the ellipsoid, for a source with RPCs only */
    const char *rpc_dem; /* path of a DEM whose heights replace rpc_height, or NULL */
} cogpu_mosaic_source;
#define COGPU_MOSAIC_SOURCE_INIT COGPU_INIT(cogpu_mosaic_source)

typedef struct cogpu_mosaic_options {
    size_t struct_size;
    const cogpu_grid *grid; /* NULL: computed from the sources */
    cogpu_resampling resampling;
    cogpu_composite composite;
    cogpu_type type;      /* of the samples (default: the type that holds those of all sources) */
    const char *nodata;   /* of pixels without a source (default: that of the first source that has
                           * one, else 0 without being nodata); "none": 0 */
    double max_error;     /* of a pixel's position, in source pixels (0.125): positions are computed
                           * at few points and interpolated; negative: every position is exact */
    int full_resolution;  /* non-zero: overviews of the sources are not used */
    int skip_bad_sources; /* non-zero: a source that cannot be opened or read is left out; see
                           * cogpu_source_info and cogpu_result */
    const cogpu_open_options *open; /* of the sources; NULL: defaults */
} cogpu_mosaic_options;
#define COGPU_MOSAIC_OPTIONS_INIT COGPU_INIT(cogpu_mosaic_options)

/* Opens the sources, but reads no pixels. COGPU_INVALID_ARGUMENT if there are no sources, if a
 * source has no CRS and the grid has one, if PROJ cannot transform between the CRSs, or if the grid
 * is empty. A source that does not touch the grid is no error. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_open_mosaic(const cogpu_mosaic_source *sources,
                                                          size_t count,
                                                          const cogpu_mosaic_options *options,
                                                          cogpu_file **file, cogpu_error *error);

/* A source of a mosaic or VRT, in the order of their priority. */
typedef struct cogpu_source_description {
    size_t struct_size;
    const char *path;    /* NULL for an open file */
    cogpu_status status; /* why the source was left out; COGPU_OK: it was not */
    const char *message; /* of that status, or NULL */
    int is_reprojected;  /* non-zero: its CRS differs from the grid's */
    int is_copied;       /* non-zero: it is on the grid and needs no resampling */
    int64_t window[4];   /* the pixels of the grid that it may touch: left, top, right, bottom */
} cogpu_source_description;
#define COGPU_SOURCE_DESCRIPTION_INIT COGPU_INIT(cogpu_source_description)

/* COGPU_NOT_FOUND past the last source, and for a file that is not a mosaic. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_source_info(const cogpu_file *file, uint64_t index,
                                                          cogpu_source_description *info,
                                                          cogpu_error *error);

/* Writes a mosaic as GDAL's VRT, as gdalbuildvrt does. COGPU_UNSUPPORTED if a VRT cannot express
 * it: sources without a path, reprojected ones, a composite other than FIRST and LAST. Paths below
 * the folder of sink->path are written relative to it. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_write_vrt(const cogpu_file *mosaic,
                                                        const cogpu_sink *sink, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Resampling in host memory, by the methods of overviews
 */

typedef struct cogpu_resample {
    size_t struct_size;
    cogpu_resampling method; /* COGPU_RESAMPLE_DEFAULT: nearest for complex samples, else average */
    cogpu_type type;
    uint32_t bands;
    uint32_t from_width, from_height;
    uint32_t width, height; /* of the result: at most the source's, at least a 1,024th of it */
    const char *nodata;     /* "-9999", "nan": samples without weight; NULL: none */
    uint32_t alpha_band;    /* from 1, 0 in invalid pixels; 0: none */
    int mask;               /* non-zero: rows come with a mask, as in cogpu_writer_write_rows */
} cogpu_resample;
#define COGPU_RESAMPLE_INIT COGPU_INIT(cogpu_resample)

/* The source rows, from *begin up to *end, of which rows `row` up to row + count of the result are
 * computed. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_resample_source_rows(const cogpu_resample *how,
                                                                   uint32_t row, uint32_t count,
                                                                   uint32_t *begin, uint32_t *end,
                                                                   cogpu_error *error);
/* Computes rows of the result from `row` on, as many as `to` has, of source rows from `from_row`
 * on, which must include those of cogpu_resample_source_rows. Any thread. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_resample_rows(const cogpu_resample *how, uint32_t from_row, const cogpu_raster *from,
                    const cogpu_raster *from_mask, uint32_t row, const cogpu_raster *to,
                    const cogpu_raster *to_mask, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * Files of other formats
 *
 * A plain file that is written as safely as a TIFF: see cogpu_sink. Its path appears when all bytes
 * are on the disk.
 */

typedef struct cogpu_output cogpu_output;

/* COGPU_UNSUPPORTED for s3:// URLs. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_open(const cogpu_sink *sink,
                                                          cogpu_output **output,
                                                          cogpu_error *error);
/* Bytes may come in any order, but in sequence if the sink is append-only. Gaps read as zeros.
 * After a failure only cogpu_output_abort is allowed. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_write(cogpu_output *output, uint64_t offset,
                                                           const void *from, size_t bytes,
                                                           cogpu_error *error);
/* Completes the file and frees the output, whatever the status. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_output_commit(cogpu_output *output,
                                                            cogpu_error *error);
/* Frees the output and leaves no file. NULL is allowed. */
COGPU_API void cogpu_output_abort(cogpu_output *output);

/* ---------------------------------------------------------------------------------------------
 * COG validation
 *
 * GDAL's validator, rio-cogeo's and the standard (OGC 21-026) have different rules: GDAL and
 * rio-cogeo accept a small file of strips as a COG, the standard does not. cogpu_check applies the
 * rules of all three. Each finding names the validators that have its rule, and each validator gets
 * a verdict. A known false alarm of GDAL or rio-cogeo counts in their verdict, not in ours.
 *
 *     cogpu_checked checked = COGPU_CHECKED_INIT;
 *     status = cogpu_check(file, NULL, print_finding, stdout, &checked, &error);
 *     valid = status == COGPU_OK && checked.verdict != COGPU_VERDICT_INVALID;
 */

typedef enum cogpu_severity {
    COGPU_SEVERITY_NOTE = 1,
    COGPU_SEVERITY_WARNING, /* a COG, but not an optimal one */
    COGPU_SEVERITY_ERROR    /* not a COG, or one whose promises do not hold */
} cogpu_severity;

/* Validators that have a rule; 0 if the file itself is damaged. */
enum { COGPU_RULE_OF_GDAL = 1, COGPU_RULE_OF_RIO_COGEO = 2, COGPU_RULE_OF_OGC = 4 };

/* A violated rule and its location; -1 if a location does not apply. */
typedef struct cogpu_finding {
    size_t struct_size; /* set by the library */
    cogpu_severity severity;
    const char *rule;    /* "block-leader": the same in all versions */
    const char *advice;  /* what to do */
    uint32_t validators; /* COGPU_RULE_OF_... */
    int32_t directory;
    int64_t block;
    int64_t offset;
    uint64_t more; /* in the last finding of a rule: further locations, which are not reported */
    char message[232]; /* what is wrong, with numbers */
} cogpu_finding;

typedef struct cogpu_check_options {
    size_t struct_size;
    int strict; /* non-zero: rules of the standard and rio-cogeo's warnings are errors too, as in
                 * its strict mode; otherwise rules of the standard alone are notes */
    int skip_blocks; /* non-zero: order, leader, trailer and mask of each block are not verified;
                      * little of the file is read then */
    cogpu_progress progress; /* or NULL */
    void *progress_user;
} cogpu_check_options;
#define COGPU_CHECK_OPTIONS_INIT COGPU_INIT(cogpu_check_options)

typedef enum cogpu_verdict {
    COGPU_VERDICT_INVALID = 0,
    COGPU_VERDICT_VALID_WITH_WARNINGS,
    COGPU_VERDICT_VALID
} cogpu_verdict;

typedef struct cogpu_checked {
    size_t struct_size;
    cogpu_verdict verdict;              /* by the options */
    cogpu_verdict gdal, rio_cogeo, ogc; /* by the rules of each, whatever the options */
    uint64_t errors, warnings, notes;   /* all, those that are not reported too */
    uint64_t blocks;                    /* that were verified one by one */
} cogpu_checked;
#define COGPU_CHECKED_INIT COGPU_INIT(cogpu_checked)

/* Checks the first image of a file with its overviews and masks. Calls `found` for each finding:
 * errors first, then warnings and notes, at most a few locations per rule. `options` and `found`
 * may be NULL. An external .ovr file counts if cogpu_open found it. A file that is no COG is no
 * failure of the function; memory, a limit, I/O, and a file without an image (COGPU_NOT_FOUND) are.
 * Its time grows with the number of blocks that have data. */
COGPU_API COGPU_MUST_CHECK cogpu_status
cogpu_check(const cogpu_file *file, const cogpu_check_options *options,
            void (*found)(void *user, const cogpu_finding *finding), void *user,
            cogpu_checked *checked, cogpu_error *error);

/* ---------------------------------------------------------------------------------------------
 * DLPack
 */

/* Describes the raster as a DLPack tensor over the same memory, shaped (band, row, column), for
 * NumPy, CuPy and PyTorch; DLPack's own header has the structs. The first function makes the tensor
 * of DLPack before version 1 (the Python capsule "dltensor", which NumPy treats as read-only), the
 * second that of version 1 ("dltensor_versioned"). The tensor's deleter calls release(user), unless
 * `release` is NULL, on any thread; until then the memory must stay. The caller synchronises
 * streams. COGPU_UNSUPPORTED for complex integers, which DLPack lacks. */
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
 * Capabilities of this build
 */

/* A codec. Several names may share a compression number: lerc, lerc_deflate and lerc_zstd do. */
typedef struct cogpu_codec {
    size_t struct_size;
    uint32_t compression; /* TIFF's number */
    const char *name;
    const char *library; /* that decodes it, with its version if known; "own" for our code */
    int can_decode;      /* non-zero: this build decodes it */
    int can_encode;      /* non-zero: this build encodes it */
    int min_level, max_level, default_level; /* of `compression_level`; all 0: no levels */
    int has_quality;                         /* non-zero: `quality` applies */
    int has_max_z_error;                     /* non-zero: `max_z_error` applies */
    int is_lossy;               /* non-zero: encoding changes pixels, unless `lossless` */
    uint32_t predictors;        /* for writing: bit 1 << predictor */
    uint32_t encode_types;      /* sample types for writing: bit 1 << cogpu_type */
    int gpu_decode, gpu_encode; /* non-zero: a GPU can do it, by kernels or nvJPEG */
} cogpu_codec;
#define COGPU_CODEC_INIT COGPU_INIT(cogpu_codec)

/* COGPU_NOT_FOUND past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_codec_info(uint32_t index, cogpu_codec *info,
                                                         cogpu_error *error);
/* TIFF's compression number of a codec's name, or of GDAL's name ("CCITTFAX4", "JXL"). */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_codec_parse(const char *name, uint32_t *compression,
                                                          cogpu_error *error);

typedef struct cogpu_device {
    size_t struct_size;
    cogpu_device_kind kind;
    uint32_t index;        /* of its kind */
    char name[16];         /* "cpu", "cuda:0", "emu", or with several "emu:0" */
    char description[160]; /* CPU cores and vector units; the GPU's name and memory */
} cogpu_device;
#define COGPU_DEVICE_INIT COGPU_INIT(cogpu_device)

/* COGPU_NOT_FOUND past the last. */
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_info(uint32_t index, cogpu_device *info,
                                                          cogpu_error *error);
/* Why no GPU can be used: "NVIDIA's driver (libcuda.so.1) is not installed"; NULL if one can. */
COGPU_API const char *cogpu_cuda_unavailable_reason(void);

/* Why GPUDirect Storage is not used, and files go through pinned host memory: "cuFile
 * (libcufile.so.0) is not installed"; NULL if it is used. */
COGPU_API const char *cogpu_gds_unavailable_reason(void);

/* PROJ's version; NULL in a build without it. */
COGPU_API const char *cogpu_proj_version(void);

/* libcurl's version; NULL in a build without it, which reads no URLs. */
COGPU_API const char *cogpu_curl_version(void);

/* ---------------------------------------------------------------------------------------------
 * Names of enumerators
 *
 * _name returns NULL for a value that the enum lacks; for types "none", for statuses "unknown".
 * _parse accepts those names, in any case of letters, and the aliases in parentheses. It returns
 * COGPU_INVALID_ARGUMENT for other names; the message lists the known ones.
 */

/* "ok", "invalid_argument", "out_of_memory", "io_error", "not_tiff", "corrupt", "unsupported",
 * "limit_exceeded", "device_error", "not_found", "cancelled" */
COGPU_API const char *cogpu_status_name(cogpu_status status);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_status_parse(const char *name, cogpu_status *status,
                                                           cogpu_error *error);
/* NumPy's names: "uint8", "float32", "complex64"; "complex_int16", "complex_int32" (GDAL's: "Byte",
 * "UInt16", "CInt16", "CFloat32") */
COGPU_API const char *cogpu_type_name(cogpu_type type);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_type_parse(const char *name, cogpu_type *type,
                                                         cogpu_error *error);
/* "default", "none", "all" */
COGPU_API const char *cogpu_sidecars_name(cogpu_sidecars sidecars);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_sidecars_parse(const char *name,
                                                             cogpu_sidecars *sidecars,
                                                             cogpu_error *error);
/* "strips", "tiles" */
COGPU_API const char *cogpu_layout_name(cogpu_layout layout);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_layout_parse(const char *name, cogpu_layout *layout,
                                                           cogpu_error *error);
/* "pixel", "band" */
COGPU_API const char *cogpu_interleave_name(cogpu_interleave interleave);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_interleave_parse(const char *name,
                                                               cogpu_interleave *interleave,
                                                               cogpu_error *error);
/* "none", "mask" (directory), "nodata", "alpha" */
COGPU_API const char *cogpu_mask_source_name(cogpu_mask_source source);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_mask_source_parse(const char *name,
                                                                cogpu_mask_source *source,
                                                                cogpu_error *error);
/* "short", "double", "text" */
COGPU_API const char *cogpu_geokey_kind_name(cogpu_geokey_kind kind);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_geokey_kind_parse(const char *name,
                                                                cogpu_geokey_kind *kind,
                                                                cogpu_error *error);
/* "cpu", "cuda", "emu" (gpu, emulator) */
COGPU_API const char *cogpu_device_kind_name(cogpu_device_kind kind);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_device_kind_parse(const char *name,
                                                                cogpu_device_kind *kind,
                                                                cogpu_error *error);
/* "pixels", "mask" */
COGPU_API const char *cogpu_content_name(cogpu_content content);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_content_parse(const char *name,
                                                            cogpu_content *content,
                                                            cogpu_error *error);
/* "default", "nearest" (near), "average" (mean), "rms", "bilinear", "cubic", "mode", "min", "max",
 * "median" (med), "cubicspline" (cubic_spline), "lanczos", "q1", "q3", "sum" */
COGPU_API const char *cogpu_resampling_name(cogpu_resampling method);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_resampling_parse(const char *name,
                                                               cogpu_resampling *method,
                                                               cogpu_error *error);
/* "first", "last", "min", "max", "mean", "median", "count" */
COGPU_API const char *cogpu_composite_name(cogpu_composite composite);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_composite_parse(const char *name,
                                                              cogpu_composite *composite,
                                                              cogpu_error *error);
/* "default", "below", "any" */
COGPU_API const char *cogpu_vrt_sources_name(cogpu_vrt_sources sources);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_vrt_sources_parse(const char *name,
                                                                cogpu_vrt_sources *sources,
                                                                cogpu_error *error);
/* "default", "none", "auto", "listed" */
COGPU_API const char *cogpu_overviews_name(cogpu_overviews overviews);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_overviews_parse(const char *name,
                                                              cogpu_overviews *overviews,
                                                              cogpu_error *error);
/* "auto", "yes", "no" */
COGPU_API const char *cogpu_bigtiff_name(cogpu_bigtiff bigtiff);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_bigtiff_parse(const char *name,
                                                            cogpu_bigtiff *bigtiff,
                                                            cogpu_error *error);
/* "default" (auto), "minisblack" (min_is_black), "miniswhite" (min_is_white), "rgb", "palette",
 * "cmyk", "ycbcr", "cielab" */
COGPU_API const char *cogpu_photometric_name(cogpu_photometric photometric);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_photometric_parse(const char *name,
                                                                cogpu_photometric *photometric,
                                                                cogpu_error *error);
/* "note", "warning", "error" */
COGPU_API const char *cogpu_severity_name(cogpu_severity severity);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_severity_parse(const char *name,
                                                             cogpu_severity *severity,
                                                             cogpu_error *error);
/* "invalid", "valid with warnings", "valid" */
COGPU_API const char *cogpu_verdict_name(cogpu_verdict verdict);
COGPU_API COGPU_MUST_CHECK cogpu_status cogpu_verdict_parse(const char *name,
                                                            cogpu_verdict *verdict,
                                                            cogpu_error *error);

#ifdef __cplusplus
}
#endif

#endif
