/* The handles, for the files of this room. */
#ifndef COGPU_API_ROOM_H
#define COGPU_API_ROOM_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_cache.h"
#include "backend/cuda/gpu_read.h"
#include "backend/cuda/gpu_write.h"
#include "base/pool.h"
#include "image/sidecar.h"

#include <pthread.h>

/* A file beside an open one. */
typedef struct cogpu_sidecar_file {
    const char *path;
    cogpu_io *io; /* of a TIFF; NULL for texts, which are read whole */
    cogpu_tiff tiff;
    const cogpu_sidecar_text *text;
    bool is_used;
} cogpu_sidecar_file;

/* Overviews, mask, its overviews, texts. */
enum { COGPU_SIDECARS_MAX = COGPU_OVERVIEW_FILES_MAX + 2 + SIDECAR_KINDS };

struct cogpu_file {
    uint64_t number;   /* no other file of this process has it */
    cogpu_arena arena; /* holds all that the file hands out */
    cogpu_io *io;
    cogpu_tiff tiff;
    cogpu_picture *pictures;
    uint32_t picture_count;
    cogpu_beside beside;
    cogpu_sidecar_file *sidecars; /* COGPU_SIDECARS_MAX, or NULL where none are looked for */
    uint32_t sidecar_count;
    const char **sidecar_paths; /* of those in use */
    uint32_t sidecar_path_count;
};

/* A device that a context has opened. */
typedef struct cogpu_opened_device {
    struct cogpu_opened_device *next;
    cogpu_device_kind kind;
    uint32_t index;
    cogpu_gpu_reader *reader;
    cogpu_gpu_memory kept; /* by the last writer, for the next */
} cogpu_opened_device;

struct cogpu_context {
    cogpu_pool *pool;
    cogpu_cache *cache; /* NULL without a budget */
    uint64_t device_bytes;
    bool jpeg_engines;
    pthread_mutex_t lock;
    cogpu_seat *seats; /* free ones */
    cogpu_opened_device *devices;
    cogpu_registry *registry; /* NULL while none is open, or a call uses it */
    cogpu_network network;    /* its texts are of the arena */
    cogpu_http *http;         /* NULL while no URL was opened */
    cogpu_arena arena;
};

/* info.c: an image by index. */
cogpu_status cogpu_file_picture(const cogpu_file *file, uint32_t image,
                                const cogpu_picture **picture, cogpu_error *error);

/* context.c: a seat to work on. Without a context it is made for the call. */
cogpu_seat *cogpu_context_seat(cogpu_context *context);
void cogpu_context_give_back(cogpu_context *context, cogpu_seat *seat);
/* The registry that the last call has left, or NULL; and what is kept of this call, or closed where
 * there is no context or another has left one meanwhile. */
cogpu_registry *cogpu_context_registry(cogpu_context *context);
void cogpu_context_keep_registry(cogpu_context *context, cogpu_registry *registry);

/* The context's connections, made if there are none yet; NULL without a context. */
cogpu_status cogpu_context_http(cogpu_context *context, cogpu_http **http, cogpu_error *error);

/* device.c: the device of a raster, opened if this context has not yet. */
cogpu_status cogpu_context_device(cogpu_context *context, cogpu_device_kind kind, uint32_t index,
                                  cogpu_gpu_reader **reader, cogpu_error *error);
void cogpu_context_close_devices(cogpu_context *context);
/* Memory of a device that the last writer has kept, or none; and what is kept of this one, or
 * released where another has kept some meanwhile. */
cogpu_gpu_memory cogpu_context_kept(cogpu_context *context, const cogpu_gpu_reader *reader);
void cogpu_context_keep(cogpu_context *context, cogpu_gpu_reader *reader, cogpu_gpu_memory *memory);

/* A part that only this room asks for: bands of planar CMYK or YCbCr, not converted. */
#define COGPU_STORED ((cogpu_part)2)

/* planar_colours.c: RGBA from CMYK and RGB from YCbCr whose bands lie apart. */
bool cogpu_has_planar_colours(const cogpu_storage *storage);
cogpu_status cogpu_read_planar_colours(const cogpu_file *file, const cogpu_request *request,
                                       const cogpu_read_plan *plan, const cogpu_raster *raster,
                                       cogpu_error *error);

/* read.c: a raster without strides is packed. */
cogpu_status cogpu_raster_set_strides(cogpu_raster *raster, cogpu_error *error);

/* How a window is read in swaths through a bounded piece of memory: rows that take about as
 * much, whole rows of blocks where they fit, so that no block is decoded twice. At least 1. */
uint32_t cogpu_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height);

#endif
