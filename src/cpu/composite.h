/*
 * Layers of a mosaic into one raster on the CPU: plan/composite.h has the contract,
 * pixel/composite.h the arithmetic. All memory is host memory.
 *
 * The calls of one composition follow each other: begin, add for each layer, finish. Each works on
 * rows side by side on the threads of `pool`, which may be NULL. Results do not depend on the
 * number of threads.
 */
#ifndef COGPU_CPU_COMPOSITE_H
#define COGPU_CPU_COMPOSITE_H

#include "base/pool.h"
#include "plan/composite.h"

void cogpu_cpu_composite_begin(cogpu_pool *pool, const cogpu_composition *composition);
void cogpu_cpu_composite_add(cogpu_pool *pool, const cogpu_composition *composition,
                             const cogpu_composite_layer *layer);
void cogpu_cpu_composite_finish(cogpu_pool *pool, const cogpu_composition *composition);

#endif
