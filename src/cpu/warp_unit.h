/*
 * A unit of a warp: one or several cells, 16 target rows high. Its loops work on a tile: the source
 * pixels of one band that all taps of the unit lie in, as doubles, with a flag for each.
 *
 *     positions --> box of source pixels --> for each band: tile --> results --> samples
 *
 * Pixels outside the source window are in the tile too, as invalid ones, so that loops over taps
 * need no bounds.
 */
#ifndef COGPU_CPU_WARP_UNIT_H
#define COGPU_CPU_WARP_UNIT_H

#include "cpu/vector.h"
#include "cpu/warp.h"

enum {
    UNIT_COLUMNS = 64,
    UNIT_PIXELS = UNIT_COLUMNS * WARP_CELL,
    TILE_SAMPLES = 1 << 16, /* a box with more has no tile */
    TILE_PADDING = 8        /* samples that vector code may load after the last */
};

/* Doubles that are computed at once. */
enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

#define LOAD_LANES(to, from)  memcpy(&(to), (from), sizeof(lanes))
#define STORE_LANES(from, to) memcpy((to), &(from), sizeof(lanes))

/* Source pixels of one band: `width` x `height` from (left, top) of the source window on, which may
 * be negative. */
struct warp_tile {
    int64_t left, top;
    uint32_t width, height;
    bool are_all_valid;
};

/* Scratch memory of a worker. Pixels of a unit are in rows of UNIT_COLUMNS. */
struct warp_unit {
    uint32_t column, row, columns, rows; /* in the target window */
    /* Positions in the level, and pixel_left_of them. Of area methods: the upper left and the lower
     * right corner. Vector code writes up to a cell beyond the last pixel. */
    double x[UNIT_PIXELS + WARP_CELL], y[UNIT_PIXELS + WARP_CELL];
    double left[UNIT_PIXELS + WARP_CELL], top[UNIT_PIXELS + WARP_CELL];
    int32_t origin[UNIT_PIXELS];       /* that pixel in the tile; 0 without a place */
    uint8_t has_place[UNIT_PIXELS];    /* 1: accepted */
    uint8_t is_found[UNIT_PIXELS];     /* of the band: there is a result */
    uint8_t is_any_found[UNIT_PIXELS]; /* of all bands */
    double results[UNIT_PIXELS];
    struct warp_area areas[UNIT_PIXELS]; /* of area methods */
    struct warp_tile tile;
    double values[TILE_SAMPLES + TILE_PADDING];   /* 0 where invalid */
    double masks[TILE_SAMPLES + TILE_PADDING];    /* 1 or 0; not set if all are valid */
    uint8_t valid[TILE_SAMPLES + TILE_PADDING];   /* the same */
    uint8_t blocks[TILE_SAMPLES + TILE_PADDING];  /* squares from each pixel on: all are valid */
    uint8_t squares[TILE_SAMPLES + TILE_PADDING]; /* the same of two by two */
    uint8_t alpha_is_valid[TILE_SAMPLES];
    double candidates[TILE_SAMPLES]; /* of selections */
    float weights[TILE_SAMPLES];
};

/* For each row of a unit and each pixel in it. */
#define EACH_UNIT_ROW(unit, j)    for (uint32_t j = 0; j < (unit)->rows; j++)
#define EACH_UNIT_COLUMN(unit, i) for (uint32_t i = 0; i < (unit)->columns; i++)

/* Functions that are compiled for AVX2 too: NAME##_body is inlined into both. `linkage` is static
 * or extern. */
#if defined(HAVE_AVX2)
#define FOR_AVX2(linkage, name, parameters, arguments)                                             \
    __attribute__((target("avx2"))) static void name##_avx2 parameters {                           \
        name##_body arguments;                                                                     \
    }                                                                                              \
    linkage void name parameters {                                                                 \
        if (__builtin_cpu_supports("avx2"))                                                        \
            name##_avx2 arguments;                                                                 \
        else                                                                                       \
            name##_body arguments;                                                                 \
    }
#else
#define FOR_AVX2(linkage, name, parameters, arguments)                                             \
    linkage void name parameters {                                                                 \
        name##_body arguments;                                                                     \
    }
#endif
#define BODY static inline __attribute__((always_inline)) void

/* ---- warp_place.c: positions ---- */

/* Positions of the pixels of a unit, and whether they are accepted. */
void cogpu_warp_locate(const struct warp_args *args, struct warp_unit *unit);
/* The box of source pixels that the accepted ones need. */
enum warp_box_kind { BOX_IS_EMPTY, BOX_FITS, BOX_IS_TOO_LARGE };
enum warp_box_kind cogpu_warp_find_box(const struct warp_args *args, struct warp_unit *unit);
/* Clears has_place where the nearest pixel is invalid. The tile has the first band. */
void cogpu_warp_check_nearest(const struct warp_args *args, struct warp_unit *unit);

/* ---- warp_tile.c ---- */

/* Loads a band into the tile, whose box is set. */
void cogpu_warp_load_tile(const struct warp_args *args, uint32_t band, struct warp_unit *unit);
/* Loads where alpha is 0. False if it is neither that nor full somewhere, and the method must know.
 */
bool cogpu_warp_load_alpha(const struct warp_args *args, struct warp_unit *unit);

/* Clears valid[i] of nodata. */
void cogpu_warp_clear_matches(struct warp_nodata rule, const double *values, uint32_t count,
                              uint8_t *valid);
/* Sets blocks[i] to 1 where the square of `side` pixels from pixel i on is valid, else to 0. For
 * squares that are in the tile. */
void cogpu_warp_find_blocks(const struct warp_unit *unit, uint32_t side, uint8_t *blocks);

/* ---- warp_kernels.c, warp_areas.c: results of a band ---- */

void cogpu_warp_bilinear(const struct warp_args *args, struct warp_unit *unit);
void cogpu_warp_cubic(const struct warp_args *args, struct warp_unit *unit);
void cogpu_warp_convolve(const struct warp_args *args, struct warp_unit *unit);
/* Whether cogpu_warp_convolve can be used. */
bool cogpu_warp_has_few_taps(const struct warp_args *args);
void cogpu_warp_areas(const struct warp_args *args, struct warp_unit *unit);

/* ---- warp_nearest.c: a row at a time, without a tile ---- */

void cogpu_warp_nearest(const struct warp_args *args, struct warp_unit *unit);

/* ---- warp_store.c ---- */

/* Rounds the results of a band and stores them. */
void cogpu_warp_store(const struct warp_args *args, uint32_t band, const struct warp_unit *unit);
/* Stores the validity of a row. */
void cogpu_warp_store_valid(const struct warp_args *args, uint32_t band, uint32_t column,
                            uint32_t row, const uint8_t *is_found, uint32_t count);

#endif
