/*
 * Warp on the CPU: a window of a target out of a window of a source (plan/warp.h), with the pixels
 * of GDAL's warper.
 *
 *     prepare   arguments that pixel/warp.h computes with                warp_args.c
 *     rows      cells of 16 x 16 target pixels, row by row               warp.c
 *     loops     vector code where all taps of 16 pixels are inside       warp_fast.c
 *     pixels    everything else, one by one: pixel/warp.h
 *
 * Each stage gives the same bits as pixel/warp.h, so results depend neither on threads nor on the
 * instruction set nor on the window that a pixel is part of.
 */
#ifndef COGPU_CPU_WARP_H
#define COGPU_CPU_WARP_H

#include "base/pool.h"
#include "pixel/warp.h"
#include "plan/warp.h"

/* Makes the arguments of a job, and a rule for each band. `args` points to `rules`. */
void cogpu_warp_prepare(const cogpu_warp_job *job, struct warp_rule *rules, struct warp_args *args);

/* Makes the mask of a warp whose nodata is united: 0 where all bands with nodata have it. Both
 * rasters are the source window. */
void cogpu_warp_unite(const cogpu_warp *warp, const cogpu_raster *source, const cogpu_raster *mask);

/* Samples of an alpha band without transparency. */
void cogpu_warp_fill_opaque(cogpu_type type, uint64_t count, uint8_t *samples);

/* Runs a job whose memory is in host memory, on at most `workers` threads of the pool. The pool may
 * be NULL. Fails only if memory runs out. */
cogpu_status cogpu_cpu_warp(const cogpu_warp_job *job, cogpu_pool *pool, uint32_t workers,
                            cogpu_error *error);

#endif
